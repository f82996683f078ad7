//! What a process runs and where: its program, arguments and working directory.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use process::{Handle, Pid, Reader};
use records::Deadline;
use records::text::{Argv, lossy};

/// What the kernel appends to the name of a file that has been removed or replaced.
const DELETED: &str = " (deleted)";

/// What a process runs, as records show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The file it executes.
    pub exe: Option<String>,
    /// Its arguments.
    pub argv: Option<Vec<String>>,
    /// Its working directory.
    pub cwd: Option<String>,
    /// Whether any of them is not UTF-8.
    pub lossy: bool,
    /// Whether an argument has been cut.
    pub argv_cut: bool,
}

impl Program {
    /// Reads what the process `pid` runs, as far as this user may. `full` shows arguments whole.
    pub fn read(pid: Pid, full: bool) -> Program {
        let mut reader = Reader::new();
        let mut program = Program::default();
        let mut path = |path: Result<std::path::PathBuf, _>| {
            let (text, is_lossy) = lossy(path.ok()?.as_os_str().as_bytes());
            program.lossy |= is_lossy;
            Some(text)
        };
        let (exe, cwd) = (path(reader.exe(pid)), path(reader.cwd(pid)));
        (program.exe, program.cwd) = (exe, cwd);
        // Empty means that it cannot be told: a zombie, a kernel thread, a moment within exec.
        if let Ok(argv) = reader.argv(pid)
            && !argv.is_empty()
        {
            let argv = Argv::new(argv.iter().map(Vec::as_slice), full);
            program.lossy |= argv.lossy;
            program.argv_cut = argv.argv_cut;
            program.argv = Some(argv.argv);
        }
        program
    }

    /// Reads what the process that `handle` holds runs, twice, so that it is of one moment and not
    /// from both sides of an exec. `None` if it has ended, or does not keep still.
    pub fn of(handle: &Handle, full: bool) -> Option<Program> {
        let mut before = Program::read(handle.pid(), full);
        for _ in 0..8 {
            let now = Program::read(handle.pid(), full);
            if handle.has_ended() {
                return None;
            }
            if (&now.exe, &now.argv) == (&before.exe, &before.argv) {
                return Some(now);
            }
            before = now;
        }
        None
    }
}

/// Whether a process still runs what a record says; `None` where one of them does not say.
/// Arguments are compared in the form that records show by default, whichever was recorded.
pub fn runs_the_same(exe: Option<&str>, argv: Option<&[String]>, now: &Program) -> Option<bool> {
    let file = |exe: &str| exe.strip_suffix(DELETED).unwrap_or(exe).to_owned();
    let redacted = |argv: &[String]| Argv::new(argv.iter().map(String::as_bytes), false).argv;
    // An update of the program on the disk is no change of the one that runs.
    let same_exe = file(exe?) == file(now.exe.as_deref()?);
    let same_argv = redacted(argv?) == redacted(now.argv.as_deref()?);
    Some(same_exe && same_argv)
}

/// Whether `recorded` is one of the paths in `now`, in either form: as it is written, or with its
/// symbolic links resolved. A relative one is only compared as it is written: the folder that it
/// was relative to is not known, and is not the caller's. Resolving is given up at the deadline, since the path may lie on a
/// mount that hangs.
pub fn is_same_path(recorded: &str, now: &[&str], deadline: Deadline) -> bool {
    if now.contains(&recorded) {
        return true;
    }
    if !Path::new(recorded).is_absolute() {
        return false;
    }
    let resolved = |path: &str| {
        let path = path.to_owned();
        let resolved = records::bounded(deadline, move || std::fs::canonicalize(path));
        resolved.ok()??.ok()
    };
    let Some(recorded) = resolved(recorded) else {
        return false;
    };
    now.iter()
        .any(|path| Path::new(path) == recorded || resolved(path).as_ref() == Some(&recorded))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn program(exe: &str, argv: &[&str]) -> Program {
        Program {
            exe: Some(exe.to_owned()),
            argv: Some(argv.iter().map(|&word| word.to_owned()).collect()),
            ..Program::default()
        }
    }

    #[test]
    fn what_is_the_same_program() {
        let long = "x".repeat(5000);
        let env = r#"{"env":{"TOKEN":"secret"}}"#;
        let now = program("/bin/a (deleted)", &["a", env, &long]);
        let same = |exe: &str, argv: &[&str]| {
            let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
            runs_the_same(Some(exe), Some(&argv), &now)
        };
        assert_eq!(same("/bin/a", &["a", env, &long]), Some(true));
        let redacted = r#"{"env":{"TOKEN":"…"}}"#;
        assert_eq!(same("/bin/a", &["a", redacted, &long[..4096]]), Some(true));
        assert_eq!(same("/bin/b", &["a", env, &long]), Some(false));
        assert_eq!(same("/bin/a", &["a", env]), Some(false));
        assert_eq!(same("/bin/a", &[]), Some(false));
        assert_eq!(runs_the_same(None, Some(&[]), &now), None);
        assert_eq!(runs_the_same(Some("/bin/a"), None, &now), None);
        let hidden = Program::default();
        assert_eq!(runs_the_same(Some("/bin/a"), Some(&[]), &hidden), None);
    }

    #[test]
    fn this_process() {
        let own = Program::read(Pid::own(), false);
        let exe = std::env::current_exe().unwrap();
        assert_eq!(own.exe.as_deref(), exe.to_str());
        let cwd = std::env::current_dir().unwrap();
        assert_eq!(own.cwd.as_deref(), cwd.to_str());
        assert_eq!(own.argv.unwrap().len(), std::env::args().count());
    }

    #[test]
    fn either_form_of_a_path() {
        let soon = Deadline::after(Duration::from_secs(20));
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap().join("real");
        std::fs::create_dir(&real).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let (real, link) = (real.to_str().unwrap(), link.to_str().unwrap());
        assert!(is_same_path(real, &[real], soon));
        assert!(is_same_path(link, &[real], soon));
        assert!(is_same_path(real, &["/other", link], soon));
        assert!(!is_same_path(link, &["/"], soon));
        assert!(!is_same_path("/not/there", &[real], soon));
        assert!(is_same_path("/not/there", &["/not/there"], soon));
        assert!(!is_same_path(real, &[], soon));
        let here = std::env::current_dir().unwrap();
        for relative in [".", "../.", ""] {
            assert!(!is_same_path(relative, &[here.to_str().unwrap()], soon));
        }
    }
}
