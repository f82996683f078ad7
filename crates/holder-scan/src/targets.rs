//! What is asked for beside sessions, in the terms in which the kernel tells of it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use process::{FileId, file_at, kernel_path, socket_ends, tcp_listeners, terminal_called};

use crate::args::{Variable, WhatArgs};
use crate::criteria::Place;
use crate::path;

/// Everything that is asked for beside sessions.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// Files.
    pub files: Vec<FileTarget>,
    /// Sockets by their inode, with the asked path and whether they are a client's.
    pub sockets: HashMap<u64, (Vec<u8>, bool)>,
    /// Listening sockets by their inode.
    pub ports: HashMap<u64, u16>,
    /// Whether sockets were asked for, of which there may be none.
    pub asks_for_sockets: bool,
    /// Variables.
    pub envs: Vec<(Vec<u8>, Vec<u8>)>,
    /// Arguments.
    pub args: Vec<Vec<u8>>,
    /// Working directories.
    pub cwds: Vec<Place>,
    /// Directories at or above working directories.
    pub cwds_under: Vec<Place>,
    /// Terminals, by name.
    pub ttys: Vec<String>,
    /// What could not be looked up, for people.
    pub problems: Vec<String>,
    /// Paths at which nothing is, or nothing of the kind that is asked for, and which of both.
    /// Somebody may hold what was there; or they are misspelt.
    pub missing: Vec<(PathBuf, &'static str)>,
}

/// A file that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTarget {
    /// As it was given, made absolute.
    pub path: Vec<u8>,
    /// As the kernel names it; of one that is gone, the name that it leaves.
    pub kernel_path: Vec<u8>,
    /// The file, in the numbers of descriptors and in those of stat(2); `None` if it is gone.
    pub file: Option<(FileId, FileId)>,
}

impl FileTarget {
    fn look(given: &Path) -> io::Result<FileTarget> {
        let absolute = std::path::absolute(given)?;
        let path = path::trimmed(absolute.as_os_str().as_bytes()).to_vec();
        match file_at(&absolute) {
            Ok(file) => Ok(FileTarget {
                kernel_path: kernel_path(&absolute)?.into_os_string().into_vec(),
                path,
                file: Some(file),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(FileTarget {
                kernel_path: name_left(&absolute),
                path,
                file: None,
            }),
            Err(error) => Err(error),
        }
    }
}

/// The name that the kernel keeps of what is gone from `path`. Its folder may be reached by links,
/// or be gone as well.
fn name_left(path: &Path) -> Vec<u8> {
    let mut folders = path.ancestors().skip(1);
    let resolved = folders.find_map(|folder| {
        let rest = path.strip_prefix(folder).ok()?;
        Some(kernel_path(folder).ok()?.join(rest))
    });
    let resolved = resolved.as_deref().unwrap_or(path).as_os_str();
    [path::trimmed(resolved.as_bytes()), path::DELETED].concat()
}

/// A directory as given and as the kernel names it. One that is gone is named as it is then.
pub fn place(given: &Path) -> Place {
    let absolute = std::path::absolute(given).unwrap_or_else(|_| given.to_owned());
    let resolved = match kernel_path(&absolute) {
        Ok(path) => path.into_os_string().into_vec(),
        Err(_) => name_left(&absolute),
    };
    Place {
        given: absolute.into_os_string().into_vec(),
        resolved: Some(resolved),
    }
}

/// A directory as given, without a look at it.
pub fn place_as_given(given: &Path) -> Place {
    let absolute = std::path::absolute(given).unwrap_or_else(|_| given.to_owned());
    Place {
        given: absolute.into_os_string().into_vec(),
        resolved: None,
    }
}

/// A variable as bytes.
pub fn pair(variable: &Variable) -> (Vec<u8>, Vec<u8>) {
    (
        variable.name.clone().into_bytes(),
        variable.value.clone().into_bytes(),
    )
}

/// What is wrong with a path at which nothing is.
fn lacks_path(path: &Path) -> Option<&'static str> {
    let error = std::fs::symlink_metadata(path).err()?;
    (error.kind() == io::ErrorKind::NotFound).then_some("nothing of that name is there")
}

/// What is wrong with the name of a terminal, as `--tty` takes it, that is none.
fn lacks_terminal(name: &Path) -> Option<&'static str> {
    let path = Path::new("/dev").join(name);
    let is_device = |stat: std::fs::Metadata| stat.file_type().is_char_device();
    lacks_path(&path).or_else(|| {
        let is_other = std::fs::metadata(&path).is_ok_and(|stat| !is_device(stat));
        is_other.then_some("not a terminal")
    })
}

/// The bytes of words.
pub fn bytes(words: &[OsString]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

impl Targets {
    /// Looks up what is asked for. This touches the files that are named, and so may hang with
    /// their mounts.
    pub fn look(what: &WhatArgs) -> Targets {
        let mut targets = Targets {
            asks_for_sockets: !what.socket.is_empty() || !what.port.is_empty(),
            envs: what.env.iter().map(pair).collect(),
            args: bytes(&what.arg),
            cwds: what.cwd.iter().map(|dir| place(dir)).collect(),
            cwds_under: what.cwd_under.iter().map(|dir| place(dir)).collect(),
            ttys: what.tty.iter().map(|tty| terminal_called(tty)).collect(),
            ..Targets::default()
        };
        let paths = [&what.file, &what.socket, &what.cwd, &what.cwd_under];
        let paths = paths.into_iter().flatten();
        let missing = paths.filter_map(|path| Some((path.clone(), lacks_path(path)?)));
        let ttys = what.tty.iter();
        let no_ttys = ttys.filter_map(|tty| Some((tty.clone(), lacks_terminal(tty)?)));
        targets.missing = missing.chain(no_ttys).collect();
        for path in &what.file {
            match FileTarget::look(path) {
                Ok(file) => targets.files.push(file),
                Err(error) => targets.problem(path, &error),
            }
        }
        for path in &what.socket {
            let absolute = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            match socket_ends(&absolute) {
                Ok(ends) => {
                    let name = absolute.as_os_str().as_bytes();
                    let ends = ends.into_iter();
                    let ends = ends.map(|end| (end.inode, (name.to_vec(), end.is_client)));
                    targets.sockets.extend(ends);
                }
                Err(error) => targets.problem(path, &error),
            }
        }
        for &port in &what.port {
            match tcp_listeners(port) {
                Ok(inodes) => targets
                    .ports
                    .extend(inodes.into_iter().map(|inode| (inode, port))),
                Err(error) => targets.problem(&PathBuf::from(format!("port {port}")), &error),
            }
        }
        targets
    }

    fn problem(&mut self, what: &Path, error: &io::Error) {
        self.problems.push(format!("{}: {error}", what.display()));
    }

    /// Whether open descriptors have to be read.
    pub fn needs_descriptors(&self) -> bool {
        !self.files.is_empty()
            || !self.sockets.is_empty()
            || !self.ports.is_empty()
            || self.asks_for_sockets
    }

    /// Whether working directories have to be read.
    pub fn needs_cwd(&self) -> bool {
        !self.cwds.is_empty() || !self.cwds_under.is_empty()
    }

    /// Whether `cwd` is asked for, or lies below what is.
    pub fn has_cwd(&self, cwd: &[u8]) -> bool {
        let is = |place: &Place| place.spellings().any(|dir| dir == cwd);
        let is_above = |place: &Place| {
            let mut spellings = place.spellings();
            spellings.any(|dir| path::is_at_or_below(cwd, dir))
        };
        self.cwds.iter().any(is) || self.cwds_under.iter().any(is_above)
    }

    /// Whether environments have to be read.
    pub fn needs_env(&self) -> bool {
        !self.envs.is_empty()
    }
}
