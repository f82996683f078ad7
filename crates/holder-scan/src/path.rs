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
