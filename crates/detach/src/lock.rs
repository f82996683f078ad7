//! One at a time: the file that holds the record of the process that runs.

use std::os::fd::AsRawFd;
use std::path::Path;

use process::{Handle, Here, Identity, Pid, ProcessRecord, Standing};
use records::files::{self, LockedFile};
use records::{Deadline, Failure, Record};

/// The most that is read of a lock file: no record is longer.
const MAX: usize = 16 << 20;

/// The lock file, locked while a start is decided.
///
/// The lock is not what says that the process runs: its descriptor would go on into the process's
/// own children and outlive it there. The identity in the file says it.
#[derive(Debug)]
pub struct Lock {
    file: LockedFile,
}

/// Who holds a lock file.
#[derive(Debug)]
pub enum Holder {
    /// Nobody: it is empty, half written, or its process is gone.
    Nobody,
    /// A live process, by its record.
    Running {
        /// The record, as it stands in the file.
        line: Vec<u8>,
        /// The process.
        handle: Handle,
    },
    /// It cannot be told, and why.
    Unknown(String),
}

/// How every record of a process begins, as it is written here.
const BEGINNING: &[u8] = b"{\"v\":1,\"type\":\"process\",";

/// What a lock file has in it.
#[derive(Debug)]
enum Content<'a> {
    /// Nothing, or a record that was being written when its author was killed.
    Free,
    /// The record of a process, and the line that it stands in.
    Record(&'a [u8], Record<'a>),
    /// Something else, which is not ours to overwrite.
    Foreign,
}

impl<'a> Content<'a> {
    /// Judges the content of a file. A crash of the machine may have left zeros in it.
    fn of(bytes: &'a [u8]) -> Content<'a> {
        let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
        let length = bytes.iter().rposition(|byte| !is_blank(byte));
        let text = bytes.get(..length.map_or(0, |last| last + 1));
        let text = text.unwrap_or_default();
        if text == b"{}" || BEGINNING.starts_with(text) {
            return Content::Free;
        }
        let line = text.split(|&byte| byte == b'\n').next();
        let line = line.unwrap_or_default();
        match Record::parse(line) {
            Ok(record) if record.kind().as_deref() == Some("process") => {
                Content::Record(line, record)
            }
            Err(_) if line.starts_with(BEGINNING) => Content::Free,
            _ => Content::Foreign,
        }
    }
}

impl Lock {
    /// Locks the file at `path`, which is made if it does not exist.
    ///
    /// # Errors
    ///
    /// It is not to be trusted (125), or another start still holds it at `deadline` (124).
    pub fn take(path: &Path, deadline: Deadline) -> Result<Lock, Failure> {
        match files::lock(path, deadline) {
            Ok(file) => Ok(Lock { file }),
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                Err(Failure::deadline(error))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The descriptor that has the lock.
    pub fn descriptor(&self) -> i32 {
        self.file.file().as_raw_fd()
    }

    /// Who holds it.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is a file of another kind, which is not to be overwritten.
    pub fn holder(&self, here: &Here) -> Result<Holder, Failure> {
        let bytes = self.file.read(MAX)?;
        let path = self.file.path().display();
        let foreign = || Failure::failed(format_args!("{path}: not a lock file of detach"));
        let (line, record) = match Content::of(&bytes) {
            Content::Free => return Ok(Holder::Nobody),
            Content::Foreign => return Err(foreign()),
            Content::Record(line, record) => (line, record),
        };
        let Some(ident) = record
            .str("ident")
            .and_then(|word| word.parse::<Identity>().ok())
        else {
            // Whoever wrote it could not read it, or has identities that are not known here. But
            // nobody writes a number that no command can have.
            let pid = pid(&record).ok_or_else(foreign)?;
            return Ok(Holder::Unknown(format!(
                "{path}: without an identity it cannot be told whether process {pid} lives; remove \
                 the file if it does not"
            )));
        };
        let host = record.str("host");
        Ok(match here.find(&ident, host.as_deref()) {
            Standing::Same(handle) => Holder::Running {
                line: line.to_vec(),
                handle,
            },
            Standing::Gone { .. } => Holder::Nobody,
            Standing::Recycled(_) if ident.is_exact() => Holder::Nobody,
            // A start time of `ps` is enough to refuse a start, not to take over from somebody.
            Standing::Recycled(_) => {
                Holder::Unknown(format!("process {} may be another one by now", ident.pid()))
            }
            Standing::Unknown(why) => Holder::Unknown(why),
        })
    }

    /// Writes the record of the process that holds it from now on.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn write(&self, record: &ProcessRecord) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        Ok(self.file.rewrite_in_place(&line)?)
    }

    /// Nobody holds it any more.
    pub fn clear(&self) {
        // Left as it is, it names a process that is gone, which says the same.
        let _ = self.file.rewrite_in_place(b"");
    }
}

/// The number of the process of `record`, if a command can have it.
fn pid(record: &Record<'_>) -> Option<Pid> {
    let pid = Pid::new(i64::try_from(record.u64("pid")?).ok()?)?;
    (!pid.is_init()).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_no_command_has_is_no_pid() {
        let of = |word: &str| {
            let line = format!("{{\"pid\":{word}}}");
            pid(&Record::parse(line.as_bytes()).unwrap())
        };
        assert_eq!(of("12"), Pid::new(12));
        for word in ["0", "1", "-1", "4294967295", "12.0", "\"12\"", "null"] {
            assert_eq!(of(word), None, "{word}");
        }
    }

    #[test]
    fn half_a_record_is_free_and_what_never_was_one_is_foreign() {
        let mut record = serde_json::to_vec(&ProcessRecord::on("h")).unwrap();
        assert!(record.starts_with(BEGINNING));
        assert!(matches!(Content::of(&record), Content::Record(line, _) if line == record));
        for cut in 0..record.len() {
            let mut half = record[..cut].to_vec();
            for tail in ["", "\n", "\0\0"] {
                half.truncate(cut);
                half.extend_from_slice(tail.as_bytes());
                assert!(matches!(Content::of(&half), Content::Free), "{cut} bytes");
            }
        }
        record.push(b'\n');
        assert!(matches!(Content::of(&record), Content::Record(..)));

        for free in ["", "\n", " ", "\0\0", "{}\n"] {
            assert!(
                matches!(Content::of(free.as_bytes()), Content::Free),
                "{free:?}"
            );
        }
        for foreign in [
            "precious\n",
            "\nprecious\n",
            "{\n  \"name\": \"x\"\n}\n",
            "{\"name\":\"x\"}\n",
            "{\"v\":1,\"type\":\"marker\",\"pid\":12}\n",
            "{\"v\":1,\"type\":\"marker\",\"pid\":1",
            "{\"v\":2",
            "{ broken",
            "[1]\n",
        ] {
            assert!(
                matches!(Content::of(foreign.as_bytes()), Content::Foreign),
                "{foreign:?}"
            );
        }
    }
}
