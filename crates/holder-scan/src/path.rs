//! Paths as bytes, as the kernel writes them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What the kernel adds to the name of a file that is gone.
pub const DELETED: &[u8] = b" (deleted)";

/// The bytes of `path`.
pub fn bytes_of(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

/// The path of `bytes`.
pub fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// `path` without slashes at its end; the root stays one.
pub fn trimmed(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|&byte| byte != b'/') {
        Some(last) => &path[..=last],
        None => &path[..path.len().min(1)],
    }
}

/// The directory `told`, which a process that is in `cwd` was told, absolute and without `.` and
/// doubled slashes. `None` where nobody knows from where a relative one is meant.
pub fn told(told: &[u8], cwd: Option<&[u8]>) -> Option<Vec<u8>> {
    let told = to_path(told);
    let absolute = if told.is_absolute() {
        told
    } else {
        to_path(cwd?).join(told)
    };
    let plain: PathBuf = absolute.components().collect();
    plain.is_absolute().then(|| bytes_of(&plain))
}

/// Whether `path` has a part `..`, so that only the file system knows what it lies below.
pub fn goes_up(path: &[u8]) -> bool {
    path.split(|&byte| byte == b'/').any(|part| part == b"..")
}

/// Whether `path` is `folder` or lies below it.
pub fn is_at_or_below(path: &[u8], folder: &[u8]) -> bool {
    let folder = trimmed(folder);
    folder == b"/"
        || path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/") || rest == DELETED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_directory_is_meant_from_where_the_process_is() {
        let table: [(&str, Option<&str>, Option<&str>); 7] = [
            ("/w/app", None, Some("/w/app")),
            ("/w//app/./", Some("/x"), Some("/w/app")),
            (".", Some("/w/app"), Some("/w/app")),
            ("deep", Some("/w/app"), Some("/w/app/deep")),
            ("deep", None, None),
            ("deep", Some("(unreachable)/w"), None),
            ("../b", Some("/w/a"), Some("/w/a/../b")),
        ];
        for (dir, cwd, want) in table {
            let found = told(dir.as_bytes(), cwd.map(str::as_bytes));
            assert_eq!(found.as_deref(), want.map(str::as_bytes), "{dir}");
        }
        assert!(goes_up(b"/w/a/../b") && goes_up(b"/w/.."));
        assert!(!goes_up(b"/w/..a/b..") && !goes_up(b"/"));
    }

    #[test]
    fn below_is_by_whole_parts() {
        let table: [(&str, &str, bool); 9] = [
            ("/w/a", "/w/a", true),
            ("/w/a/b", "/w/a", true),
            ("/w/a/b", "/w/a/", true),
            ("/w/ab", "/w/a", false),
            ("/w", "/w/a", false),
            ("/x", "/", true),
            ("/w/a (deleted)", "/w/a", true),
            ("/w/a (deleted)x", "/w/a", false),
            ("/w/a/b (deleted)", "/w/a", true),
        ];
        for (path, folder, below) in table {
            assert_eq!(
                is_at_or_below(path.as_bytes(), folder.as_bytes()),
                below,
                "{path}"
            );
        }
        assert_eq!(trimmed(b"/w/a//"), b"/w/a");
        assert_eq!(trimmed(b"//"), b"/");
        assert_eq!(trimmed(b""), b"");
    }
}
