//! Where a multiplexer's own command is to be found.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The program `name` in the folders of PATH, absolute entries only: a relative one would let the
/// working directory decide what is run.
pub fn on_path(name: &str) -> Option<PathBuf> {
    in_folders(name, std::env::var_os("PATH").as_deref())
}

/// The program `name` in the folders of `path`, which has the form of PATH.
fn in_folders(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(path?)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// The program to run: `chosen` by the caller, else `name` on PATH.
///
/// # Errors
///
/// The text says that it is not to be found.
pub fn find(name: &str, chosen: Option<&OsStr>) -> Result<OsString, String> {
    match chosen {
        Some(chosen) => Ok(chosen.to_owned()),
        None => on_path(name)
            .map(PathBuf::into_os_string)
            .ok_or_else(|| format!("{name} is not on PATH")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn absolute_folders_only() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("1"), folder.path().join("2"));
        for (folder, mode) in [(&first, 0o644), (&second, 0o755)] {
            std::fs::create_dir(folder).unwrap();
            let file = folder.join("prog");
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        std::fs::create_dir(first.join("folder")).unwrap();
        let path = |entries: &[&OsStr]| std::env::join_paths(entries).unwrap();
        let table = [
            (path(&[first.as_os_str(), second.as_os_str()]), true),
            (path(&[first.as_os_str()]), false),
            (path(&[OsStr::new("."), OsStr::new("")]), false),
        ];
        for (path, there) in table {
            let found = in_folders("prog", Some(&path));
            assert_eq!(found, there.then(|| second.join("prog")), "{path:?}");
        }
        assert_eq!(in_folders("folder", Some(first.as_os_str())), None);
        assert_eq!(in_folders("prog", None), None);
    }
}
