//! One at a time: the file that holds the record of the process that runs.

use std::os::fd::AsRawFd;
use std::path::Path;

use process::{Handle, Here, Identity, ProcessRecord, Standing};
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
        let line = bytes
            .split(|&byte| byte == b'\n')
            .next()
            .unwrap_or_default();
        if line
            .iter()
            .any(|byte| !byte.is_ascii_whitespace() && *byte != 0)
            && line.first() != Some(&b'{')
        {
            let path = self.file.path().display();
            return Err(Failure::failed(format_args!(
                "{path}: not a lock file of detach"
            )));
        }
        let Ok(record) = Record::parse(line) else {
            return Ok(Holder::Nobody);
        };
        let Some(ident) = record
            .str("ident")
            .and_then(|word| word.parse::<Identity>().ok())
        else {
            return Ok(Holder::Nobody);
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
