//! A stream of bytes, cut into lines in bounded memory. Pure: who reads the bytes, and when, is
//! the sources' business.

use memchr::memchr;

/// How much is asked for at once.
pub const CHUNK: usize = 128 << 10;

/// Cuts a stream into lines.
///
/// Memory grows with the longest line that was met and never beyond the limit; a longer line is
/// skipped to its end, in no more memory than any other.
#[derive(Debug)]
pub struct Splitter {
    buffer: Vec<u8>,
    /// `buffer[start..end]` has been filled and not been given out.
    start: usize,
    end: usize,
    /// How many of those bytes are known to hold no newline.
    searched: usize,
    max_line: usize,
    /// Inside of a line that is too long.
    skipping: bool,
    /// Where in the stream `buffer[start]` is.
    position: u64,
}

/// What a stream consists of.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A line, without its newline.
    Line {
        /// Its bytes.
        bytes: &'a [u8],
        /// Where in the stream it begins.
        at: u64,
    },
    /// A line over the limit, now that its end has been found.
    TooLong,
}

impl Splitter {
    /// For lines of at most `max_line` bytes, in a stream of which the first `position` bytes are
    /// not seen.
    pub fn new(max_line: usize, position: u64) -> Splitter {
        Splitter {
            buffer: Vec::new(),
            start: 0,
            end: 0,
            searched: 0,
            max_line,
            skipping: false,
            position,
        }
    }

    /// Room for the next bytes of the stream: a [`CHUNK`], so that one read is never long. What was
    /// put there is made known by [`Splitter::filled`].
    pub fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.buffer.len() - self.end < CHUNK {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.buffer.len() - self.end < CHUNK {
            // Doubling keeps the copying of a long line linear.
            let size = (self.end + CHUNK).max(2 * self.end);
            self.buffer.resize(size, 0);
        }
        &mut self.buffer[self.end..][..CHUNK]
    }

    /// The first `length` bytes of the room have been filled.
    pub fn filled(&mut self, length: usize) {
        self.end = (self.end + length).min(self.buffer.len());
    }

    /// Takes bytes that were read elsewhere.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.room();
            let length = room.len().min(bytes.len());
            room[..length].copy_from_slice(&bytes[..length]);
            self.filled(length);
            bytes = &bytes[length..];
        }
    }

    /// The next line whose end has come; `None` if more bytes are needed.
    pub fn next_piece(&mut self) -> Option<Piece<'_>> {
        let unread = &self.buffer[self.start..self.end];
        match memchr(b'\n', &unread[self.searched..]) {
            Some(newline) => {
                let (start, length) = (self.start, self.searched + newline);
                let at = self.position;
                self.drop_bytes(length + 1);
                if std::mem::take(&mut self.skipping) || length > self.max_line {
                    return Some(Piece::TooLong);
                }
                let bytes = &self.buffer[start..start + length];
                Some(Piece::Line { bytes, at })
            }
            None if self.skipping || unread.len() > self.max_line => {
                self.skipping = true;
                self.drop_bytes(unread.len());
                None
            }
            None => {
                self.searched = unread.len();
                None
            }
        }
    }

    /// What is left at the end of the stream: a last line without a newline.
    pub fn rest(&mut self) -> Option<Piece<'_>> {
        let (start, length, at) = (self.start, self.end - self.start, self.position);
        if std::mem::take(&mut self.skipping) {
            return Some(Piece::TooLong);
        }
        if length == 0 {
            return None;
        }
        self.drop_bytes(length);
        let bytes = &self.buffer[start..start + length];
        Some(Piece::Line { bytes, at })
    }

    /// Where in the stream the first byte is that has not been given out.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Where in the stream the next byte to be filled in is.
    pub fn read_to(&self) -> u64 {
        self.position + (self.end - self.start) as u64
    }

    /// The stream begins again; what had begun of a line is forgotten.
    pub fn restart(&mut self) {
        let size = self.end - self.start;
        self.drop_bytes(size);
        self.skipping = false;
        self.position = 0;
    }

    fn drop_bytes(&mut self, length: usize) {
        self.start += length;
        self.position += length as u64;
        self.searched = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    enum Seen {
        Line(String, u64),
        TooLong,
    }

    fn seen(piece: Piece<'_>) -> Seen {
        match piece {
            Piece::Line { bytes, at } => Seen::Line(String::from_utf8_lossy(bytes).into(), at),
            Piece::TooLong => Seen::TooLong,
        }
    }

    /// All pieces of `stream`, handed over `step` bytes at a time.
    fn cut(stream: &[u8], step: usize, max_line: usize) -> Vec<Seen> {
        let mut splitter = Splitter::new(max_line, 100);
        let mut pieces = Vec::new();
        for bytes in stream.chunks(step) {
            splitter.feed(bytes);
            while let Some(piece) = splitter.next_piece() {
                pieces.push(seen(piece));
            }
        }
        assert_eq!(splitter.read_to(), 100 + stream.len() as u64);
        pieces.extend(splitter.rest().map(seen));
        assert_eq!(splitter.position(), 100 + stream.len() as u64);
        assert_eq!(splitter.rest(), None);
        pieces
    }

    #[test]
    fn lines_do_not_depend_on_how_the_bytes_arrive() {
        let line = |text: &str, at| Seen::Line(text.to_owned(), at);
        let table: [(&str, Vec<Seen>); 6] = [
            ("", vec![]),
            ("a\n", vec![line("a", 100)]),
            (
                "a\n\nbc",
                vec![line("a", 100), line("", 102), line("bc", 103)],
            ),
            ("{\"k\":\"中\"}\n", vec![line("{\"k\":\"中\"}", 100)]),
            (
                "12345678901234567\nok\n",
                vec![Seen::TooLong, line("ok", 118)],
            ),
            (
                "ok\n12345678901234567",
                vec![line("ok", 100), Seen::TooLong],
            ),
        ];
        for (stream, want) in table {
            for step in 1..=stream.len().max(1) {
                assert_eq!(
                    cut(stream.as_bytes(), step, 16),
                    want,
                    "{stream:?} by {step}"
                );
            }
        }
    }

    #[test]
    fn memory_is_bounded_by_the_longest_line() {
        let mut splitter = Splitter::new(1 << 20, 0);
        let block = vec![b'x'; CHUNK];
        for _ in 0..1000 {
            splitter.feed(&block);
            assert_eq!(splitter.next_piece(), None);
        }
        splitter.feed(b"\nend\n");
        assert_eq!(splitter.next_piece(), Some(Piece::TooLong));
        let at = 1000 * CHUNK as u64 + 1;
        assert_eq!(
            splitter.next_piece(),
            Some(Piece::Line { bytes: b"end", at })
        );
        assert!(
            splitter.buffer.len() <= 4 << 20,
            "{}",
            splitter.buffer.len()
        );
    }
}
