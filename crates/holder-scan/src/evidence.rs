//! What speaks for a process holding something.

use records::text::lossy;
use serde::Serialize;

/// The kind of a piece of evidence, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// It owns the kernel's lock on the agent's lock file for the session.
    Lock,
    /// It has the session's transcript or lock file open.
    Fd,
    /// The agent's own table of live sessions says so.
    Registry,
    /// A whole argument.
    Argv,
    /// A JSON argument.
    ArgvJson,
    /// The argument of a shell that is its text.
    ArgvShell,
    /// It has the file open, mapped, as its executable, root or working directory.
    File,
    /// It has the socket, or is connected to it.
    Socket,
    /// A variable of its environment.
    Env,
    /// An argument that was asked for.
    Arg,
    /// Its working directory.
    Cwd,
    /// It listens on the port.
    Port,
    /// Its controlling terminal.
    Tty,
    /// It only names the session.
    Mention,
}

impl By {
    /// Whether this shows only what the process is to start again, not that it holds anything
    /// now: the evidence of a wrapper.
    pub fn is_carried(self) -> bool {
        matches!(self, By::ArgvJson | By::ArgvShell)
    }
}

/// One piece of evidence, as a record shows it. Values of variables are never in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Its kind.
    pub by: By,
    /// The index of the argument that the flag is in.
    pub index: Option<usize>,
    /// The flag or subcommand before the id.
    pub flag: Option<String>,
    /// Whether something stronger says that the process has gone on to another session.
    pub superseded: bool,
    /// The variable.
    pub name: Option<String>,
    /// The file, as the kernel names it.
    pub path: Option<String>,
    /// How the file is open: a descriptor's number, `cwd`, `root`, `exe` or `mem`.
    pub fd: Option<String>,
    /// Whether bytes of it had to be replaced to be shown.
    #[serde(skip)]
    pub lossy: bool,
}

impl Evidence {
    /// Evidence of one kind, with nothing more to be said.
    pub fn by(by: By) -> Evidence {
        Evidence {
            by,
            index: None,
            flag: None,
            superseded: false,
            name: None,
            path: None,
            fd: None,
            lossy: false,
        }
    }

    /// Evidence by the variable `name`.
    pub fn variable(name: &[u8]) -> Evidence {
        let (name, lossy) = lossy(name);
        Evidence {
            name: Some(name),
            lossy,
            ..Evidence::by(By::Env)
        }
    }

    /// Evidence in the argument `index`, after `flag`.
    pub fn after_flag(by: By, index: usize, flag: &[u8]) -> Evidence {
        Evidence {
            index: Some(index),
            flag: Some(String::from_utf8_lossy(flag).into_owned()),
            ..Evidence::by(by)
        }
    }

    /// Evidence in the argument `index`.
    pub fn at(by: By, index: usize) -> Evidence {
        Evidence {
            index: Some(index),
            ..Evidence::by(by)
        }
    }

    /// Evidence by the file `path`, open as `fd`.
    pub fn open(by: By, path: &[u8], fd: Option<String>) -> Evidence {
        let (path, lossy) = lossy(path);
        Evidence {
            path: Some(path),
            fd,
            lossy,
            ..Evidence::by(by)
        }
    }
}
