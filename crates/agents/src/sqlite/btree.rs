//! B-trees of tables: every row, in the order of their numbers.

use super::pager::Pager;
use super::value::varint;
use super::{Result, Trouble};

const INTERIOR: u8 = 0x05;
const LEAF: u8 = 0x0d;

/// The largest row that is put together, in bytes.
const MAX_ROW: usize = 64 << 20;

fn damaged(page: u32) -> Trouble {
    Trouble::Unreadable(format!(
        "page {page} is damaged, or not of a table with row ids"
    ))
}

/// Calls `each` with the record of every row of the table whose root is page `root`.
pub(super) fn scan(
    pager: &Pager,
    root: u32,
    each: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    // A page belongs to one tree and stands in it once: more pages than there are is a circle.
    let mut budget = pager.pages();
    let mut stack = vec![root];
    while let Some(number) = stack.pop() {
        budget = budget.checked_sub(1).ok_or_else(|| damaged(number))?;
        let page = pager.page(number)?;
        let view = Page::new(&page, number)?;
        match view.kind {
            LEAF => {
                for cell in view.cells()? {
                    each(&record(pager, &page, cell, number)?)?;
                }
            }
            INTERIOR => {
                // The rightmost child goes first, to come last.
                stack.push(be32(&page, view.header + 8, number)?);
                for cell in view.cells()?.into_iter().rev() {
                    stack.push(be32(&page, cell, number)?);
                }
            }
            _ => return Err(damaged(number)),
        }
    }
    Ok(())
}

struct Page<'a> {
    bytes: &'a [u8],
    number: u32,
    /// Where the page's header is: behind the file's own on page 1.
    header: usize,
    kind: u8,
}

impl<'a> Page<'a> {
    fn new(bytes: &'a [u8], number: u32) -> Result<Page<'a>> {
        let header = if number == 1 { 100 } else { 0 };
        let kind = *bytes.get(header).ok_or_else(|| damaged(number))?;
        Ok(Page {
            bytes,
            number,
            header,
            kind,
        })
    }

    /// Where the cells are.
    fn cells(&self) -> Result<Vec<usize>> {
        let count = be16(self.bytes, self.header + 3, self.number)?;
        let first = self.header + if self.kind == LEAF { 8 } else { 12 };
        (0..usize::from(count))
            .map(|i| be16(self.bytes, first + 2 * i, self.number).map(usize::from))
            .collect()
    }
}

/// The whole record of the leaf cell at `at`, what has overflowed to other pages included.
fn record(pager: &Pager, page: &[u8], at: usize, number: u32) -> Result<Vec<u8>> {
    let wrong = || damaged(number);
    let cell = page.get(at..).ok_or_else(wrong)?;
    let (size, used) = varint(cell).ok_or_else(wrong)?;
    let (_rowid, more) = varint(&cell[used..]).ok_or_else(wrong)?;
    let size = usize::try_from(size).map_err(|_| wrong())?;
    if size > MAX_ROW {
        return Err(wrong());
    }
    let cell = &cell[used + more..];
    let local = local_size(size, pager.usable());
    let mut record = cell.get(..local).ok_or_else(wrong)?.to_vec();
    if local == size {
        return Ok(record);
    }
    record.reserve(size - local);
    let mut next = be32(cell, local, number)?;
    while record.len() < size {
        let overflow = pager.page(next)?;
        let part = (size - record.len()).min(pager.usable() - 4);
        record.extend_from_slice(overflow.get(4..4 + part).ok_or_else(wrong)?);
        next = be32(&overflow, 0, next)?;
    }
    Ok(record)
}

/// How much of a record of `size` bytes stays on the leaf page.
fn local_size(size: usize, usable: usize) -> usize {
    let most = usable - 35;
    if size <= most {
        return size;
    }
    let least = (usable - 12) * 32 / 255 - 23;
    let rest = least + (size - least) % (usable - 4);
    if rest <= most { rest } else { least }
}

fn be16(bytes: &[u8], at: usize, number: u32) -> Result<u16> {
    let two = bytes.get(at..at + 2).and_then(|part| part.try_into().ok());
    Ok(u16::from_be_bytes(two.ok_or_else(|| damaged(number))?))
}

fn be32(bytes: &[u8], at: usize, number: u32) -> Result<u32> {
    let four = bytes.get(at..at + 4).and_then(|part| part.try_into().ok());
    Ok(u32::from_be_bytes(four.ok_or_else(|| damaged(number))?))
}
