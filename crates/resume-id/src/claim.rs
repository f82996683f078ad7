//! Claims: of two launches of one session at the same moment, one goes ahead.
//!
//! A claim is a file for each agent and id, which holds the identity of its claimant. It is
//! rewritten in place under its lock and never unlinked, so that the lock is always on the file
//! that has the name.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use agents::{Agent, sha256_hex};
use process::{Comparison, Here, Identity, Operand, Pid, Standing};
use records::files::{self, LockedFile};
use records::{Deadline, Failure, Record};
use serde::Serialize;

use crate::decide::Claim;
use crate::decision::ClaimNote;

/// More than any claim has, in bytes.
const MAX: usize = 64 << 10;

/// A claim's file under its lock.
#[derive(Debug)]
pub struct Locked {
    file: LockedFile,
}

#[derive(Serialize)]
struct Content<'a> {
    v: u8,
    r#type: &'static str,
    agent: &'a str,
    session_id: &'a str,
    claimant: &'a Identity,
    host: &'a str,
    at: String,
}

/// The claimant that was named: a pid or an identity of a process that lives.
///
/// # Errors
///
/// Wrong usage: it is neither, or there is no such process.
pub fn claimant(word: &str, here: &Here) -> Result<Identity, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::usage(format_args!("--claimant: {why}"));
    let handle = match word.parse().map_err(|why: String| wrong(&why))? {
        Operand::Pid(pid) => here.open(pid).map_err(|why| wrong(&why))?,
        Operand::Ident(ident) => match here.find(&ident, None) {
            Standing::Same(handle) => handle,
            Standing::Unknown(why) => return Err(wrong(&why)),
            gone => {
                let why = format!("process {} is {}", ident.pid(), gone.word());
                return Err(wrong(&why));
            }
        },
    };
    Ok(handle.ident().clone())
}

/// The file of a claim on the session `id` of `agent` in the directory `dir`: absolute, since the
/// decision that names it may be followed from elsewhere.
pub fn path(dir: &Path, agent: &Agent, id: &str) -> PathBuf {
    let id = if agent.shape.ignores_case() {
        id.to_ascii_lowercase()
    } else {
        id.to_owned()
    };
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    dir.join(sha256_hex(format!("{}\0{id}", agent.name).as_bytes()))
}

impl Locked {
    /// Locks a claim's file, which is made if it does not exist, its directory too.
    ///
    /// # Errors
    ///
    /// The file cannot be trusted or locked; at the deadline it cannot be told who has claimed.
    pub fn open(path: &Path, deadline: Deadline) -> Result<Locked, Failure> {
        if let Some(dir) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
            made.map_err(|error| Failure::failed(format_args!("{}: {error}", dir.display())))?;
        }
        match files::lock(path, deadline) {
            Ok(file) => Ok(Locked { file }),
            Err(error) if error.kind() == ErrorKind::TimedOut => Err(Failure::unknown(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the session is free for `claimant`.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn judge(&self, claimant: &Identity, here: &Here) -> Result<Claim, Failure> {
        let content = self.file.read(MAX)?;
        // Empty, or cut off in the middle of being written: its claimant did not come to launch.
        let Ok(record) = Record::parse(content.trim_ascii()) else {
            return Ok(Claim::Free);
        };
        let Some(other) = record.str("claimant").and_then(|word| word.parse().ok()) else {
            return Ok(Claim::Free);
        };
        let host = record.str("host");
        Ok(judge(&other, claimant, || {
            here.find(&other, host.as_deref())
        }))
    }

    /// Claims the session.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(
        &self,
        agent: &str,
        id: &str,
        claimant: &Identity,
        here: &Here,
    ) -> Result<ClaimNote, Failure> {
        let content = Content {
            v: 1,
            r#type: "claim",
            agent,
            session_id: id,
            claimant,
            host: here.host(),
            at: records::time::now(),
        };
        let mut line = serde_json::to_vec(&content)?;
        line.push(b'\n');
        self.file.rewrite_in_place(&line)?;
        Ok(ClaimNote {
            file: self.file.path().display().to_string(),
            claimant: claimant.to_string(),
        })
    }
}

/// Whether a session that `other` has claimed is free for `claimant`.
fn judge(other: &Identity, claimant: &Identity, find: impl FnOnce() -> Standing) -> Claim {
    if other.compare(claimant) == Comparison::Same {
        return Claim::Free;
    }
    let who = format!("process {}", other.pid());
    match find() {
        Standing::Same(_) => Claim::Taken(who),
        Standing::Gone { .. } | Standing::Recycled(_) if other.is_exact() => Claim::Free,
        Standing::Gone { .. } | Standing::Recycled(_) => Claim::Unclear(format!(
            "{who} has claimed the session, and is known by too rough a time to take that over"
        )),
        Standing::Unknown(why) => Claim::Unclear(format!(
            "{who} has claimed the session, and whether it lives cannot be told: {why}"
        )),
    }
}

/// Makes the claim that a decision names that of this process, which becomes the agent.
///
/// # Errors
///
/// No: the claim is no longer the one that the decision has.
pub fn pass_on(note: &Record<'_>, here: &Here, deadline: Deadline) -> Result<(), Failure> {
    let field = |key: &str| {
        note.str(key)
            .ok_or_else(|| Failure::unknown(format_args!("the decision's claim has no {key}")))
    };
    let file = PathBuf::from(field("claim.file")?.into_owned());
    let before: Identity = field("claim.claimant")?
        .parse()
        .map_err(|error| Failure::unknown(format_args!("the decision's claim: {error}")))?;
    let own = here.open(Pid::own()).map_err(Failure::unknown)?;
    if std::fs::symlink_metadata(&file).is_err_and(|e| e.kind() == ErrorKind::NotFound) {
        return Err(Failure::no("the claim on the session is gone"));
    }
    let locked = Locked::open(&file, deadline)?;
    let content = locked.file.read(MAX)?;
    let record = Record::parse(content.trim_ascii()).ok();
    let present = record.as_ref().and_then(|record| record.str("claimant"));
    let present: Option<Identity> = present.and_then(|word| word.parse().ok());
    let of_ours = |present: &Identity| {
        present.compare(&before) == Comparison::Same
            || present.compare(own.ident()) == Comparison::Same
    };
    if !present.is_some_and(|present| of_ours(&present)) {
        return Err(Failure::no("the claim on the session is another's by now"));
    }
    let record = record.as_ref();
    let kept = |key: &str| {
        record
            .and_then(|record| record.str(key))
            .unwrap_or_default()
    };
    locked.write(&kept("agent"), &kept("session_id"), own.ident(), here)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ident(pid: i32) -> Identity {
        format!("linux:0c8f4a2e-1f6b-4f0f-9d55-0b1b5a6c7d8e:4026531836:{pid}:981234:0")
            .parse()
            .unwrap()
    }

    #[test]
    fn whose_claims_stand() {
        let other = ident(100);
        let ours = ident(200);
        assert_eq!(judge(&ours, &ours, || unreachable!()), Claim::Free);
        let found = |standing: Standing| judge(&other, &ours, || standing);
        assert_eq!(found(Standing::Gone { zombie: false }), Claim::Free);
        assert_eq!(found(Standing::Gone { zombie: true }), Claim::Free);
        assert_eq!(found(Standing::Recycled(None)), Claim::Free);
        let unclear = found(Standing::Unknown("why".to_owned()));
        assert!(matches!(unclear, Claim::Unclear(text) if text.ends_with("why")));
        let rough: Identity = "lstart:box:0:100:1764426381:0".parse().unwrap();
        let gone = Standing::Gone { zombie: false };
        assert!(matches!(judge(&rough, &ours, || gone), Claim::Unclear(_)));
    }

    #[test]
    fn a_claim_on_disk() {
        let here = Here::new();
        let folder = tempfile::tempdir().unwrap();
        let agent = agents::Table::built_in()
            .unwrap()
            .get("claude")
            .unwrap()
            .clone();
        let id = "00000000-0000-4000-8000-0000000000a1";
        let path = path(&folder.path().join("new"), &agent, id);
        assert_eq!(
            path,
            super::path(&folder.path().join("new"), &agent, &id.to_uppercase())
        );
        let own = claimant(&std::process::id().to_string(), &here).unwrap();
        let deadline = Deadline::after(Duration::from_secs(60));
        let open = || Locked::open(&path, deadline).unwrap();

        assert_eq!(open().judge(&own, &here).unwrap(), Claim::Free);
        // Written by a process that lives, and is not the one that asks.
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let other = claimant(&child.id().to_string(), &here).unwrap();
        open().write("claude", id, &other, &here).unwrap();
        assert!(matches!(
            open().judge(&own, &here).unwrap(),
            Claim::Taken(_)
        ));
        assert_eq!(open().judge(&other, &here).unwrap(), Claim::Free);
        // Half written.
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        assert_eq!(open().judge(&own, &here).unwrap(), Claim::Free);
        // Killed and collected, or not yet collected.
        std::fs::write(&path, &whole).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(open().judge(&own, &here).unwrap(), Claim::Free);
        // Of another boot: some process has that pid by now, and it is not the claimant.
        let text = String::from_utf8(whole).unwrap();
        let boot = here.boot().unwrap().to_string();
        let pid = std::os::unix::process::parent_id();
        let earlier = text
            .replace(&boot, "00000000-0000-4000-8000-00000000b007")
            .replace(&format!(":{}:", other.pid()), &format!(":{pid}:"));
        std::fs::write(&path, &earlier).unwrap();
        assert_eq!(open().judge(&own, &here).unwrap(), Claim::Free);
        // The same on another machine is nobody's to judge.
        std::fs::write(&path, earlier.replace(here.host(), "elsewhere")).unwrap();
        assert!(matches!(
            open().judge(&own, &here).unwrap(),
            Claim::Unclear(_)
        ));
        assert!(claimant(&other.to_string(), &here).is_err());
        for word in ["", "0", "1", "-1", "4294967295", "x"] {
            assert_eq!(
                claimant(word, &here).unwrap_err().status().code(),
                2,
                "{word}"
            );
        }
    }
}
