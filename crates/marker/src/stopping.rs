//! `MARKER.stopping`: a process is being ended on purpose.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use process::{Comparison, Here, Identity, Standing};
use records::files::{self, Access};
use records::{Record, time};
use serde::Serialize;

use crate::Marker;

/// More than such a note can be long.
const MAX: usize = 64 << 10;

/// The note that this process is ending the process of a marker. It says who is ending whom, so
/// that it counts only while that is so.
#[derive(Debug)]
pub struct Stopping {
    path: PathBuf,
    file: File,
}

#[derive(Clone, Debug, Serialize)]
struct Note {
    v: u8,
    r#type: &'static str,
    /// Who ends it.
    pid: process::Pid,
    ident: Identity,
    /// What is ended.
    target: Identity,
    at: String,
}

/// The second line of a note, once the target is known to be dead.
const DEAD: &[u8] = b"{\"v\":1,\"type\":\"stopping\",\"dead\":true}";

impl Stopping {
    /// Notes that this process ends `target`. `None` where `marker` is not a marker of ours for
    /// that very process, or somebody else is ending it already.
    ///
    /// # Errors
    ///
    /// The note cannot be written.
    pub fn note(marker: &Path, target: &Identity, here: &Here) -> io::Result<Option<Stopping>> {
        let is_its = || {
            Marker::read(marker)
                .is_ok_and(|marker| marker.ident.compare(target) == Comparison::Same)
        };
        let Ok(own) = here.open(process::Pid::own()) else {
            return Ok(None);
        };
        if !is_its() {
            return Ok(None);
        }
        let mut line = serde_json::to_vec(&Note {
            v: 1,
            r#type: "stopping",
            pid: own.pid(),
            ident: own.ident().clone(),
            target: target.clone(),
            at: time::now(),
        })?;
        line.push(b'\n');
        let path = path_of(marker);
        // Twice: the second time a note that no longer counts is out of the way.
        for _ in 0..2 {
            match files::open_trusted(&path, Access::New) {
                Ok(mut file) => {
                    let written = file.write_all(&line).and_then(|()| file.sync_all());
                    let note = Stopping { path, file };
                    // Its guard may have announced the death meanwhile, and removed the marker, or
                    // have put one for another process in its place: it looks for a note after
                    // that, as this does for the marker after the note. One of them sees the other.
                    if written.is_err() || !is_its() {
                        note.withdraw()?;
                        return written.map(|()| None);
                    }
                    return Ok(Some(note));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            if is_being_stopped(marker, target, here) {
                return Ok(None);
            }
            remove(marker)?;
        }
        Ok(None)
    }

    /// Notes that the target is dead: whoever announces its death may take this as the reason,
    /// also when this process is gone by then.
    ///
    /// # Errors
    ///
    /// The note cannot be written.
    pub fn target_is_dead(&mut self) -> io::Result<()> {
        // Behind the first line, so that no reader ever sees a note without its author. If the
        // death has been announced meanwhile, the file has no name any more, and nobody reads it.
        files::append_line(&self.file, self.path.display(), DEAD)?;
        self.file.sync_all()
    }

    /// Takes the note away again: the target lives on, and a later death of it is an accident.
    ///
    /// # Errors
    ///
    /// It cannot be removed.
    pub fn withdraw(self) -> io::Result<()> {
        remove_file(&self.path)
    }
}

/// Whether the process `target` of the marker `marker` is being ended, or was, on purpose: the
/// note beside the marker is about it, and either its author lives or has noted that it is dead.
pub fn is_being_stopped(marker: &Path, target: &Identity, here: &Here) -> bool {
    let Ok(bytes) = files::read_trusted(&path_of(marker), MAX) else {
        return false;
    };
    let mut lines = bytes.split(|&byte| byte == b'\n');
    let Some(Ok(record)) = lines.next().map(Record::parse) else {
        return false;
    };
    let ident = |key: &str| {
        record
            .str(key)
            .and_then(|word| word.parse::<Identity>().ok())
    };
    let (Some(author), Some(about)) = (ident("ident"), ident("target")) else {
        return false;
    };
    about.compare(target) == Comparison::Same
        && (lines.any(|line| line == DEAD) || matches!(here.find(&author, None), Standing::Same(_)))
}

/// Removes the note beside `marker`, if there is one.
pub(crate) fn remove(marker: &Path) -> io::Result<()> {
    let path = path_of(marker);
    // Only a file that is a note can be one; what else has that name is not ours to remove.
    match files::open_trusted(&path, Access::Read) {
        Ok(_) => remove_file(&path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn remove_file(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn path_of(marker: &Path) -> PathBuf {
    let mut name = OsString::from(marker);
    name.push(".stopping");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Locked;

    fn marker_of(ident: &Identity, path: &Path) -> Locked {
        let pid = ident.pid();
        let line = format!(
            "{{\"v\":1,\"type\":\"marker\",\"pid\":{pid},\"ident\":\"{ident}\",\"death_id\":\"d\",\
             \"announce\":\"/a\"}}"
        );
        Locked::make(path, line.as_bytes()).unwrap()
    }

    #[test]
    fn a_note_counts_for_its_target_while_its_author_lives_or_has_seen_it_die() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.marker");
        let here = Here::new();
        let own = here.open(process::Pid::own()).unwrap().ident().clone();
        let other = own.clone();
        let _marker = marker_of(&other, &path);
        assert!(!is_being_stopped(&path, &other, &here));

        let mut note = Stopping::note(&path, &other, &here).unwrap().unwrap();
        assert!(is_being_stopped(&path, &other, &here));
        assert!(
            Stopping::note(&path, &other, &here).unwrap().is_none(),
            "one is enough"
        );

        // Its author was killed: the same words, with the identity of a process that is gone.
        let file = path_of(&path);
        let text = std::fs::read_to_string(&file).unwrap();
        let mut fields: Vec<String> = own.to_string().split(':').map(str::to_owned).collect();
        fields[4] = "1".to_owned();
        fields[5] = "1".to_owned();
        let gone = format!("\"ident\":\"{}\"", fields.join(":"));
        let orphaned = text.replacen(&format!("\"ident\":\"{own}\""), &gone, 1);
        std::fs::write(&file, &orphaned).unwrap();
        assert!(
            !is_being_stopped(&path, &other, &here),
            "nobody is ending it any more"
        );
        let again = Stopping::note(&path, &other, &here).unwrap();
        assert!(again.is_some(), "a note that does not count is taken over");
        drop(again);
        std::fs::write(
            &file,
            format!("{orphaned}{{\"v\":1,\"type\":\"stopping\",\"dead\":true}}\n"),
        )
        .unwrap();
        assert!(
            is_being_stopped(&path, &other, &here),
            "its author had seen it die"
        );

        // A note that was being written when its author was killed.
        std::fs::write(&file, &text[..20]).unwrap();
        assert!(!is_being_stopped(&path, &other, &here));
        note.target_is_dead().unwrap();
        note.withdraw().unwrap();
        assert!(!file.exists());
    }

    #[test]
    fn a_note_needs_a_marker_of_that_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.marker");
        let here = Here::new();
        let own = here.open(process::Pid::own()).unwrap().ident().clone();
        assert!(
            Stopping::note(&path, &own, &here).unwrap().is_none(),
            "no marker"
        );
        std::fs::write(&path, "something else\n").unwrap();
        assert!(
            Stopping::note(&path, &own, &here).unwrap().is_none(),
            "no marker of ours"
        );
        assert!(!path_of(&path).exists());
    }
}
