//! Whether a directory that an agent has written down is the one that is asked about.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;

use crate::encode::sha256_hex;

/// A working directory, by all names that an agent may know it by.
#[derive(Clone, Debug, Default)]
pub struct Cwds {
    names: Vec<String>,
    /// What was looked up in the file system: a transcript repeats the same names.
    seen: RefCell<HashMap<String, bool>>,
}

impl Cwds {
    /// The directory `cwd`, as it was given and with its links resolved (`/tmp` is `/private/tmp`
    /// on macOS).
    pub fn new(cwd: &str) -> Cwds {
        let trimmed = trim(cwd);
        let mut names = vec![trimmed.to_owned()];
        let resolved = resolve(trimmed);
        names.extend(resolved.filter(|resolved| resolved != trimmed));
        // Agents resolve links before they make a name of a directory.
        names.reverse();
        Cwds {
            names,
            seen: RefCell::default(),
        }
    }

    /// Its names, the resolved one first.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether `other` is the same directory.
    pub(crate) fn has(&self, other: &str) -> bool {
        let other = trim(other);
        if self.names.iter().any(|name| name == other) {
            return true;
        }
        if let Some(&known) = self.seen.borrow().get(other) {
            return known;
        }
        let resolved = resolve(other);
        let same = resolved.is_some_and(|path| self.names.contains(&path));
        self.seen.borrow_mut().insert(other.to_owned(), same);
        same
    }

    /// Whether `hash` is the SHA-256 of one of its names.
    pub(crate) fn has_sha256(&self, hash: &str) -> bool {
        let mut names = self.names.iter();
        names.any(|name| sha256_hex(name.as_bytes()) == hash)
    }
}

fn trim(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" => path,
        trimmed => trimmed,
    }
}

fn resolve(path: &str) -> Option<String> {
    if !path.starts_with('/') {
        return None;
    }
    let resolved = Path::new(path).canonicalize().ok()?;
    resolved.into_os_string().into_string().ok()
}
