//! Becoming another program, with the search through PATH that is ours to explain when it fails.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};

use crate::sys;

/// Where execvp(3) looks when there is no PATH: `confstr(_CS_PATH)` of the systems we run on.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// Why a command was not executed, with the file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such command (status 127).
    NotFound(String),
    /// There is one, and it cannot be executed: no permission, no interpreter, no format (126).
    CannotRun(String),
    /// Anything else (125).
    Failed(String),
}

/// Becomes the command `argv` in this very process, with this process's environment but for the
/// variables `unset`. Returns only where that failed. No shell is tried for a file without an
/// executable format.
///
/// No signal is blocked, and PIPE has its default again, which the runtime has had ignored. One that
/// the caller has had ignored stays so.
pub fn become_command(argv: &[OsString], unset: &[&str]) -> Refusal {
    let unset: Vec<OsString> = unset.iter().map(OsString::from).collect();
    let environment = variables(&unset).collect::<Vec<_>>();
    sys::default_signal(Signal::SIGPIPE);
    let _ = SigSet::empty().thread_set_mask();
    execute(argv, &environment)
}

/// Whether there is a file of the command `name`, so that what was not found to execute it must be
/// its interpreter.
pub fn command_exists(name: &OsStr) -> bool {
    let path = std::env::var_os("PATH");
    let files = candidates(name, path.as_deref());
    files.iter().any(|file| file.is_file())
}

/// This process's environment, with each variable of `pid_env` set to `pid`.
pub(crate) fn environment(pid_env: &[OsString], pid: i32) -> Vec<CString> {
    let pid = OsString::from(pid.to_string());
    let own = pid_env.iter().map(|name| (name.clone(), pid.clone()));
    variables(pid_env).chain(own.filter_map(variable)).collect()
}

/// This process's variables, but for those of `without`.
fn variables(without: &[OsString]) -> impl Iterator<Item = CString> {
    let inherited = std::env::vars_os().filter(|(name, _)| !without.contains(name));
    inherited.filter_map(variable)
}

fn variable((name, value): (OsString, OsString)) -> Option<CString> {
    let mut variable = name.into_vec();
    variable.push(b'=');
    variable.extend_from_slice(value.as_bytes());
    CString::new(variable).ok()
}

/// The files that the command `name` can be, in the order in which they are tried, exec(3).
fn candidates(name: &OsStr, path: Option<&OsStr>) -> Vec<PathBuf> {
    if name.is_empty() {
        return Vec::new();
    }
    if name.as_bytes().contains(&b'/') {
        return vec![PathBuf::from(name)];
    }
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    std::env::split_paths(path)
        .map(|folder| match folder.as_os_str().is_empty() {
            // An empty entry is the working directory.
            true => Path::new(".").join(name),
            false => folder.join(name),
        })
        .collect()
}

/// The command `argv`, ready to be executed in this process's environment where nothing may be
/// allocated any more: in a child, if others of its parent's threads may have held a lock. As with
/// [`become_command`], no shell is tried.
///
/// # Errors
///
/// There is no command, or it holds a NUL byte.
pub(crate) fn prepare(argv: &[OsString]) -> io::Result<sys::Exec> {
    let c_string = |text: &OsStr| CString::new(text.as_bytes()).map_err(io::Error::from);
    let name = argv.first().ok_or(io::ErrorKind::InvalidInput)?;
    let words: io::Result<Vec<CString>> = argv.iter().map(|word| c_string(word)).collect();
    let words = sys::Strings::new(words?);
    let variables = sys::Strings::new(environment(&[], 0));
    let path = std::env::var_os("PATH");
    let files = candidates(name, path.as_deref());
    let files: io::Result<Vec<CString>> = files
        .iter()
        .map(|file| c_string(file.as_os_str()))
        .collect();
    let files = files?;
    Ok(Box::new(move || {
        let mut denied = None;
        for file in &files {
            let error = sys::execve(file, &words, &variables);
            match error.raw_os_error().map(Errno::from_raw) {
                Some(Errno::ENOENT | Errno::ENOTDIR | Errno::ENAMETOOLONG) => {}
                Some(Errno::EACCES) => denied = Some(error),
                _ => return error,
            }
        }
        denied.unwrap_or_else(|| io::Error::from_raw_os_error(Errno::ENOENT as i32))
    }))
}

/// Becomes the command, with signals as they are. Returns only where that failed.
pub(crate) fn execute(argv: &[OsString], environment: &[CString]) -> Refusal {
    let words: Option<Vec<CString>> = argv
        .iter()
        .map(|word| CString::new(word.as_bytes()).ok())
        .collect();
    let (Some(words), Some(name)) = (words, argv.first()) else {
        return Refusal::Failed("the command holds a NUL byte".to_owned());
    };
    let path = std::env::var_os("PATH");
    let by_path = !name.as_bytes().contains(&b'/');
    let mut denied = None;
    for file in candidates(name, path.as_deref()) {
        let Ok(c_file) = CString::new(file.as_os_str().as_bytes()) else {
            continue;
        };
        let Err(error) = nix::unistd::execve(&c_file, &words, environment);
        let shown = file.display();
        let exists = file.metadata().is_ok();
        use nix::errno::Errno as E;
        match error {
            E::ENOENT if exists => {
                return Refusal::CannotRun(format!("{shown}: its interpreter is missing"));
            }
            E::ENOENT | E::ENOTDIR | E::ENAMETOOLONG => {}
            // A folder of PATH that may not be searched has no command for us.
            E::EACCES if by_path && !exists => {}
            E::EACCES => {
                denied.get_or_insert(format!("{shown}: it may not be executed"));
            }
            E::ENOEXEC => {
                return Refusal::CannotRun(format!("{shown}: not an executable format"));
            }
            E::ETXTBSY | E::EPERM | E::EISDIR | E::ELOOP | E::EINVAL => {
                return Refusal::CannotRun(format!("{shown}: {}", error.desc()));
            }
            _ => return Refusal::Failed(format!("{shown}: {}", error.desc())),
        }
    }
    match denied {
        Some(why) => Refusal::CannotRun(why),
        None => Refusal::NotFound(format!("{}: command not found", name.to_string_lossy())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_command_is_looked_for() {
        let look = |name: &str, path: Option<&str>| {
            candidates(OsStr::new(name), path.map(OsStr::new))
                .iter()
                .map(|file| file.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(look("ls", Some("/a:/b")), ["/a/ls", "/b/ls"]);
        assert_eq!(look("ls", Some("/a::/b")), ["/a/ls", "./ls", "/b/ls"]);
        assert_eq!(look("ls", Some("")), ["./ls"]);
        assert_eq!(look("ls", None), ["/usr/bin/ls", "/bin/ls"]);
        assert_eq!(look("./ls", Some("/a")), ["./ls"]);
        assert_eq!(look("/x/ls", Some("/a")), ["/x/ls"]);
        assert!(look("", Some("/a")).is_empty());
    }

    #[test]
    fn the_environment_has_each_name_once() {
        let names = [OsString::from("PATH"), OsString::from("OWN_PID")];
        let variables = environment(&names, 4242);
        let of = |name: &str| {
            variables
                .iter()
                .filter(|v| v.to_bytes().starts_with(format!("{name}=").as_bytes()))
                .map(|v| v.to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(of("PATH"), ["PATH=4242"]);
        assert_eq!(of("OWN_PID"), ["OWN_PID=4242"]);
    }
}
