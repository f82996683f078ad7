//! The announcement file: each death in it once.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use marker::Marker;
use records::files::{self, Access};
use records::{Deadline, Record};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

/// Which file the announcement file is, and how long, when a marker is made: what was in it by
/// then cannot be the marker's death.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its length in bytes.
    pub size: u64,
    /// Its inode; 0 where there is none yet.
    pub inode: u64,
}

impl Place {
    /// The announcement file as it is now. It is not made: a file that is there says that
    /// something has died.
    ///
    /// # Errors
    ///
    /// It is not to be trusted, or cannot be written, or not be made where it is to be.
    pub fn now(path: &Path) -> io::Result<Place> {
        match std::fs::symlink_metadata(path) {
            Ok(_) => {
                let meta = files::open_trusted(path, Access::Append)?.metadata()?;
                Ok(Place {
                    size: meta.len(),
                    inode: meta.ino(),
                })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let folder = path.parent().unwrap_or(path);
                let needed = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
                let may = rustix::fs::access(folder, needed).map_err(io::Error::from);
                may.map(|()| Place::default())
                    .map_err(|error| named(folder, &error))
            }
            Err(error) => Err(named(path, &error)),
        }
    }

    fn of(marker: &Marker) -> Place {
        Place {
            size: marker.announce_size,
            inode: marker.announce_inode,
        }
    }
}

/// Puts `line`, the announcement of the death that `marker` stands for, into the file `path`, on
/// the disk, unless it is announced already. Whether it was not.
///
/// With the file's lock: looks for the death's id from where the file ended when the marker was
/// made, or, if it was replaced or cut since, in all of it; then in what it was rotated to,
/// `FILE.1`; then in the marker's own announcement file, if that is another. Ends a line that was
/// left half, and appends the announcement with one write.
///
/// # Errors
///
/// It cannot be opened, locked by `deadline`, searched or written. It may hold a half line then,
/// which does not count.
pub fn once(path: &Path, marker: &Marker, line: &[u8], deadline: Deadline) -> io::Result<bool> {
    let file = open_locked(path, deadline)?;
    let whole = match search(&file, marker)? {
        Search::Found => {
            // Whoever wrote it may have been killed before it was on the disk.
            file.sync_all()?;
            return Ok(false);
        }
        Search::Unended => {
            append(&file, path, b"", true)?;
            return Ok(true);
        }
        Search::NotFound { whole } => whole,
    };
    let mut others = vec![rotated(path)];
    if marker.announce != path {
        others.extend([marker.announce.clone(), rotated(&marker.announce)]);
    }
    for other in others {
        if let Ok(other) = files::open_trusted(&other, Access::Read)
            && matches!(search(&other, marker)?, Search::Found)
        {
            return Ok(false);
        }
    }
    append(&file, path, line, whole)?;
    Ok(true)
}

/// Appends a line that is no death, and so is looked for by nobody.
///
/// # Errors
///
/// As [`once`].
pub fn note(path: &Path, line: &[u8], deadline: Deadline) -> io::Result<()> {
    let file = open_locked(path, deadline)?;
    let whole = last_byte(&file)?.is_none_or(|last| last == b'\n');
    append(&file, path, line, whole)
}

fn append(file: &File, path: &Path, line: &[u8], whole: bool) -> io::Result<()> {
    let is_new = file.metadata()?.len() == 0;
    let start: &[u8] = if whole { b"" } else { b"\n" };
    files::append_line(file, path.display(), &[start, line].concat())?;
    file.sync_all()?;
    if is_new {
        files::sync_folder(path)?;
    }
    Ok(())
}

/// What a search for a death found.
enum Search {
    /// It is announced.
    Found,
    /// It is announced by the file's last line, of which only the newline is missing.
    Unended,
    NotFound {
        /// Whether the file's last line is whole.
        whole: bool,
    },
}

fn search(file: &File, marker: &Marker) -> io::Result<Search> {
    let place = Place::of(marker);
    let meta = file.metadata()?;
    let same = meta.ino() == place.inode && meta.len() >= place.size;
    let from = if same { place.size } else { 0 };
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(from))?;
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            let whole = last_byte(file)?.is_none_or(|last| last == b'\n');
            return Ok(Search::NotFound { whole });
        }
        if names(&line, &marker.death_id) {
            return Ok(match line.ends_with(b"\n") {
                true => Search::Found,
                false => Search::Unended,
            });
        }
    }
}

fn names(line: &[u8], death_id: &str) -> bool {
    Record::parse(line).is_ok_and(|record| record.str("death_id").as_deref() == Some(death_id))
}

fn last_byte(mut file: &File) -> io::Result<Option<u8>> {
    if file.metadata()?.len() == 0 {
        return Ok(None);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(Some(last[0]))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn rotated(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".1");
    name.into()
}

/// Opens the file for appending, and takes its lock.
fn open_locked(path: &Path, deadline: Deadline) -> io::Result<File> {
    loop {
        let file = files::open_trusted(path, Access::Append)?;
        while let Err(errno) = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            match errno {
                Errno::INTR => {}
                Errno::WOULDBLOCK if deadline.passed() => {
                    let message = format!("{}: locked by another process", path.display());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, message));
                }
                Errno::WOULDBLOCK => deadline.sleep(std::time::Duration::from_millis(5)),
                errno => return Err(errno.into()),
            }
        }
        if files::still_named(path, &file)? {
            return Ok(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: &str = "0c8f4a2e-1f6b-4f0f-9d55-0b1b5a6c7d8e";

    fn marker(path: &Path, death_id: &str) -> Marker {
        let place = Place::now(path).unwrap();
        let line = format!(
            "{{\"type\":\"marker\",\"ident\":\"linux:{BOOT}:7:42:9:5\",\"death_id\":\"{death_id}\",\
             \"announce\":\"{}\",\"announce_size\":{},\"announce_inode\":{}}}",
            path.display(),
            place.size,
            place.inode
        );
        Marker::parse(line.as_bytes()).unwrap()
    }

    fn line(death_id: &str) -> Vec<u8> {
        format!("{{\"type\":\"exit\",\"death_id\":\"{death_id}\"}}").into_bytes()
    }

    fn lines(path: &Path) -> Vec<String> {
        std::fs::read_to_string(path)
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn announce(path: &Path, marker: &Marker) -> bool {
        once(path, marker, &line(&marker.death_id), Deadline::never()).unwrap()
    }

    #[test]
    fn each_death_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deaths");
        let (a, b) = (marker(&path, "a"), marker(&path, "b"));
        assert!(announce(&path, &a));
        assert!(announce(&path, &b));
        assert!(!announce(&path, &a) && !announce(&path, &b));
        let late = marker(&path, "c");
        assert!(announce(&path, &late));
        assert!(!announce(&path, &late));
        assert_eq!(lines(&path).len(), 3);
    }

    #[test]
    fn rotation_and_truncation_are_seen_through() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deaths");
        std::fs::write(&path, "{\"older\":1}\n").unwrap();
        let a = marker(&path, "a");
        assert!(announce(&path, &a));
        std::fs::rename(&path, folder.path().join("deaths.1")).unwrap();
        assert!(!announce(&path, &a), "it stands in the rotated file");
        std::fs::remove_file(folder.path().join("deaths.1")).unwrap();
        std::fs::write(&path, [line("a"), b"\n".to_vec()].concat()).unwrap();
        assert!(
            !announce(&path, &a),
            "it stands in a file that was made anew"
        );
        let b = marker(&path, "b");
        std::fs::write(&path, "").unwrap();
        assert!(
            announce(&path, &b),
            "a cut file is searched from its beginning"
        );
    }

    #[test]
    fn a_half_line_does_not_count_and_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deaths");
        let a = marker(&path, "a");
        std::fs::write(&path, &line("a")[..20]).unwrap();
        assert!(announce(&path, &a));
        assert_eq!(lines(&path).len(), 2);
        assert_eq!(lines(&path)[1].as_bytes(), line("a"));
        assert!(!announce(&path, &a));
        // Whole but for its newline: that is all that is added.
        let b = marker(&path, "b");
        let mut text = std::fs::read(&path).unwrap();
        text.extend(line("b"));
        std::fs::write(&path, &text).unwrap();
        assert!(announce(&path, &b));
        assert!(!announce(&path, &b));
        assert_eq!(lines(&path).len(), 3);
    }

    #[test]
    fn what_stands_in_the_markers_own_file_is_not_told_again_in_another() {
        let folder = tempfile::tempdir().unwrap();
        let (own, other) = (folder.path().join("own"), folder.path().join("other"));
        let (a, b) = (marker(&own, "a"), marker(&own, "b"));
        assert!(announce(&own, &a));
        assert!(!announce(&other, &a));
        assert!(announce(&other, &b));
        std::fs::rename(&own, folder.path().join("own.1")).unwrap();
        assert!(!announce(&other, &a), "it stands in the rotated file");
        assert_eq!(lines(&other).len(), 1);
    }

    #[test]
    fn a_place_that_will_not_do_is_known_before_anything_has_died() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deaths");
        assert_eq!(Place::now(&path).unwrap(), Place::default());
        assert!(!path.exists(), "it is not made yet");
        std::os::unix::fs::symlink(folder.path().join("target"), &path).unwrap();
        assert!(Place::now(&path).is_err(), "a link");
        let missing = folder.path().join("missing/deaths");
        let error = Place::now(&missing).unwrap_err().to_string();
        assert!(error.contains("missing"), "{error}");
    }

    #[test]
    fn an_id_that_another_line_only_mentions_is_not_announced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deaths");
        let a = marker(&path, "a");
        std::fs::write(
            &path,
            "{\"note\":\"\\\"death_id\\\":\\\"a\\\"\"}\nnot json \"a\"\n",
        )
        .unwrap();
        assert!(announce(&path, &a));
    }
}
