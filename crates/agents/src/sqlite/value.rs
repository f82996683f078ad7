//! Records: the bytes of a row, taken apart.

use super::{Result, Trouble};

/// What a column holds. Floating-point numbers and blobs are nobody's id, directory or count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// NULL, a column that was added after the row, or a value of another kind.
    Nothing,
    /// An integer.
    Integer(i64),
    /// A text.
    Text(String),
}

impl Value {
    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is one that is not negative.
    pub fn count(&self) -> Option<u64> {
        match self {
            Value::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }
}

fn damaged() -> Trouble {
    Trouble::Unreadable("a row is damaged".to_owned())
}

/// A variable-length integer at the beginning of `bytes`, and its length.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0_u64;
    for (i, &byte) in bytes.iter().enumerate().take(9) {
        if i == 8 {
            return Some((number << 8 | u64::from(byte), 9));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number, i + 1));
        }
    }
    None
}

/// The values at `places` (counted from 0) of the record `payload`; nothing for no place.
pub(super) fn columns(payload: &[u8], places: &[Option<usize>]) -> Result<Vec<Value>> {
    let (header_size, mut at) = varint(payload).ok_or_else(damaged)?;
    let header_size = usize::try_from(header_size).map_err(|_| damaged())?;
    let header = payload.get(..header_size).ok_or_else(damaged)?;
    let mut values = vec![Value::Nothing; places.len()];
    let mut body = header_size;
    let mut column = 0;
    while at < header.len() {
        let (serial, length) = varint(&header[at..]).ok_or_else(damaged)?;
        at += length;
        let size = size(serial).ok_or_else(damaged)?;
        let end = body.checked_add(size).ok_or_else(damaged)?;
        for (value, _) in values
            .iter_mut()
            .zip(places)
            .filter(|(_, p)| **p == Some(column))
        {
            *value = decode(serial, payload.get(body..end).ok_or_else(damaged)?);
        }
        body = end;
        column += 1;
    }
    Ok(values)
}

/// The bytes that a value of this serial type takes.
fn size(serial: u64) -> Option<usize> {
    Some(match serial {
        0 | 8 | 9 => 0,
        1..=4 => usize::try_from(serial).ok()?,
        5 => 6,
        6 | 7 => 8,
        10 | 11 => return None,
        _ => usize::try_from((serial - 12) / 2).ok()?,
    })
}

fn decode(serial: u64, bytes: &[u8]) -> Value {
    match serial {
        8 => Value::Integer(0),
        9 => Value::Integer(1),
        1..=6 => {
            // Big-endian two's complement.
            let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
            let start = if negative { -1_i64 } else { 0 };
            Value::Integer(
                bytes
                    .iter()
                    .fold(start, |number, byte| number << 8 | i64::from(*byte)),
            )
        }
        text if text >= 13 && text % 2 == 1 => {
            Value::Text(String::from_utf8_lossy(bytes).into_owned())
        }
        _ => Value::Nothing,
    }
}
