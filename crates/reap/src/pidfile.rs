//! `--pidfile`: a process by the file that names it.

use std::io::{self, Read as _};
use std::path::Path;
use std::time::SystemTime;

use process::Pid;
use records::files::{Access, open_trusted};
use records::{Failure, Record};

use crate::batch::Batch;
use crate::guarded::Keepers;
use crate::judge::{Claim, Rules};

/// The most that is read of a file: a record with long arguments.
const MAX: u64 = 16 << 20;

/// What a file says.
#[derive(Debug, PartialEq, Eq)]
enum Content<'a> {
    /// Its first line is a record, as `detach --record` writes it.
    Record(&'a [u8]),
    /// Its first line is a pid.
    Pid(Pid),
}

/// Takes the process that the file names.
///
/// # Errors
///
/// The file cannot be read or trusted (125); what is in it is neither a pid nor a record (2).
pub fn take(path: &Path, batch: &mut Batch, rules: Rules) -> Result<(), Failure> {
    let file = open_trusted(path, Access::Read)?;
    let named = |error: io::Error| Failure::failed(format_args!("{}: {error}", path.display()));
    let written = file.metadata().and_then(|meta| meta.modified());
    let written: SystemTime = written.map_err(named)?;
    let mut text = Vec::new();
    file.take(MAX).read_to_end(&mut text).map_err(named)?;
    let wrong = |why: String| Failure::usage(format_args!("{}: {why}", path.display()));
    match content(&text).map_err(wrong)? {
        Content::Record(line) => {
            let record = Record::parse(line).map_err(wrong)?;
            let before = batch.jobs.len();
            batch.take(&record, rules);
            if batch.jobs.len() == before {
                return Err(wrong("not the record of a process".to_owned()));
            }
        }
        Content::Pid(pid) => {
            let claim = Claim {
                pid,
                ident: None,
                host: None,
                keepers: Keepers::default(),
            };
            batch.take_claim(claim, Some(written));
        }
    }
    Ok(())
}

fn content(text: &[u8]) -> Result<Content<'_>, String> {
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if line.first() == Some(&b'{') {
        return Ok(Content::Record(line));
    }
    let word = String::from_utf8_lossy(line.get(..line.len().min(80)).unwrap_or_default());
    match word.parse() {
        Ok(pid) => Ok(Content::Pid(pid)),
        Err(error) => Err(format!("{error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_pid() {
        let pid = |text: &str| match content(text.as_bytes()) {
            Ok(Content::Pid(pid)) => Some(pid.get()),
            _ => None,
        };
        assert_eq!(pid("1234\n"), Some(1234));
        assert_eq!(pid("1234"), Some(1234));
        assert_eq!(pid("1234\nrest of the file\n"), Some(1234));
        for wrong in [
            "",
            "\n",
            "\n1234\n",
            "12 34\n",
            " 12\n",
            "12 \n",
            "12\r\n",
            "0\n",
            "1\n",
            "-1\n",
            "-1234\n",
            "+12\n",
            "0x10\n",
            "abc\n",
            "4294967295\n",
            "4294967296\n",
            "012\n",
            "99999999999999999999\n",
            "\u{0}12\n",
        ] {
            assert_eq!(pid(wrong), None, "{wrong:?}");
        }
        let record = b"{\"pid\":5}\n";
        assert_eq!(content(record), Ok(Content::Record(b"{\"pid\":5}")));
    }
}
