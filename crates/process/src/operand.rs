//! A process as it is named on a command line.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::ident::Identity;
use crate::pid::Pid;

/// A process as it is named on a command line: by its number, or by its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Whoever has this number now.
    Pid(Pid),
    /// This process and no other.
    Ident(Identity),
}

impl FromStr for Operand {
    type Err = String;

    /// Strict, as [`Pid`] and [`Identity`] are. No number has a colon.
    fn from_str(word: &str) -> Result<Operand, String> {
        if word.contains(':') {
            let ident = word.parse::<Identity>();
            ident.map(Operand::Ident).map_err(|error| error.to_string())
        } else {
            let pid = word.parse::<Pid>();
            pid.map(Operand::Pid).map_err(|error| error.to_string())
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Pid(pid) => pid.fmt(f),
            Operand::Ident(ident) => ident.fmt(f),
        }
    }
}

/// What to do instead where `word`, which names no process, names a file: a record is easily given
/// in the place of a process. `instead` is a command that reads the record, up to its `<`.
pub fn file_hint(word: &str, instead: &str) -> String {
    match Path::new(word).is_file() {
        true => format!("; it is a file: {instead} <{word}'"),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_an_identity() {
        assert!(matches!("4242".parse(), Ok(Operand::Pid(pid)) if pid.get() == 4242));
        let word = "lstart:host:0:4242:1764426381:0";
        assert!(matches!(word.parse(), Ok(Operand::Ident(ident)) if ident.to_string() == word));
        for word in ["", "1", "-1", "4242:", "a:b", "4242 4243"] {
            assert!(word.parse::<Operand>().is_err(), "{word:?}");
        }
    }
}
