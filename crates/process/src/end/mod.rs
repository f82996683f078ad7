//! The sequence that ends processes and comes back only when they are dead.
//!
//! | room | what it knows |
//! |---|---|
//! | this | what is asked for, and what came of it |
//! | `kin` | who belongs to a target, by one reading of the table |
//! | `proof` | who is left of a group whose leader has ended |
//! | `outcome` | what came of a member, and of a target by its members |
//! | `cast` | the members, each held by its handle |
//! | `gather` | who belongs to each target, before the first signal and between the stages |
//! | `sequence` | signal, wait, look again, kill, wait, look again |
//!
//! No signal ever goes to a group: each member gets it through its own handle. A group only says
//! who is a member.

mod cast;
mod gather;
mod kin;
mod outcome;
mod proof;
mod sequence;

use std::io;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::entry::State;
use crate::handle::Handle;
use crate::here::Here;
use crate::ident::Identity;
use crate::interrupt::Interrupts;
use crate::pid::Pid;
use crate::record::Named;

pub use outcome::{Outcome, Refusal};
pub use proof::Remains;

/// How far the end of a target reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Scope {
    /// The target alone.
    Process,
    /// The process group that the target leads; the target alone if it leads none.
    Group,
    /// The target and all its descendants, also those in sessions of their own.
    Tree,
    /// The tree, and the group too if the target leads it.
    #[default]
    Auto,
}

impl Scope {
    fn takes_descendants(self) -> bool {
        matches!(self, Scope::Tree | Scope::Auto)
    }

    fn takes_group(self) -> bool {
        matches!(self, Scope::Group | Scope::Auto)
    }
}

/// How processes are ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndOptions {
    /// The first signal.
    pub signal: Signal,
    /// How long they have to end by it. Zero is: no wait.
    pub grace: Duration,
    /// How long their death by KILL is waited for.
    pub kill_grace: Duration,
    /// Whether what is left after the grace gets KILL.
    pub kill: bool,
    /// Whether zombies are waited for too, within the kill grace, until no entry of them is left.
    pub vanish: bool,
    /// Whether nothing is signalled, and only said what would be.
    pub dry_run: bool,
}

impl Default for EndOptions {
    /// TERM, five seconds, KILL, two seconds.
    fn default() -> EndOptions {
        EndOptions {
            signal: Signal::SIGTERM,
            grace: Duration::from_secs(5),
            kill_grace: Duration::from_secs(2),
            kill: true,
            vanish: false,
            dry_run: false,
        }
    }
}

/// One thing that is to be ended.
#[derive(Debug)]
pub struct Target {
    /// Where it begins.
    pub root: Root,
    /// How far it reaches.
    pub scope: Scope,
    /// Processes that belong to it whatever their place in the table, by their identity.
    pub extra: Vec<Handle>,
}

impl Target {
    /// A live process, with what `scope` takes.
    pub fn alive(handle: Handle, scope: Scope) -> Target {
        Target {
            root: Root::Alive(handle),
            scope,
            extra: Vec::new(),
        }
    }
}

/// Where a target begins.
#[derive(Debug)]
pub enum Root {
    /// At a live process.
    Alive(Handle),
    /// At what a process that has ended has left of its group; `None` where that is nobody.
    Ended(Option<Remains>),
}

/// What is still waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// How many processes still live.
    pub alive: usize,
    /// Whether they have got KILL.
    pub killed: bool,
    /// How long they will be waited for.
    pub left: Duration,
}

/// Who looks on, and may call a halt.
#[derive(Default)]
pub struct Watch<'a> {
    /// The signals that stop the sequence before its next stage.
    pub interrupts: Option<&'a Interrupts>,
    /// Told about once a second what is waited for.
    pub progress: Option<&'a mut dyn FnMut(Pending)>,
}

/// What came of all targets.
#[derive(Debug)]
pub struct Ended {
    /// What came of each, in their order.
    pub reports: Vec<Report>,
    /// The signal that stopped the sequence before it was done.
    pub interrupted: Option<Signal>,
    /// Why the sequence was given up before it was done: the table could not be read again, or
    /// waiting failed. The reports are true all the same; members that were forked meanwhile may
    /// be missing in them.
    pub trouble: Option<io::Error>,
}

/// What came of one target.
#[derive(Clone, Debug)]
pub struct Report {
    /// In a word.
    pub outcome: Outcome,
    /// The signals that its members were sent, each once, in the order of their first use.
    pub signals: Vec<Signal>,
    /// Everybody who belonged to it, the root first.
    pub members: Vec<MemberReport>,
    /// Those that still live.
    pub survivors: Vec<Survivor>,
    /// Those that are dead, and that their parents have yet to collect.
    pub zombies: Vec<Named>,
    /// From the beginning of the call to the last death, or to its end.
    pub took: Duration,
}

/// What came of one member.
#[derive(Clone, Debug)]
pub struct MemberReport {
    /// The process.
    pub pid: Pid,
    /// Who it is.
    pub ident: Identity,
    /// In a word.
    pub outcome: Outcome,
}

/// A member that still lives.
#[derive(Clone, Debug)]
pub struct Survivor {
    /// The process.
    pub pid: Pid,
    /// Who it is.
    pub ident: Identity,
    /// What it is doing: `D` is uninterruptible sleep, which no signal ends. `None` where the
    /// table hides it.
    pub state: Option<State>,
}

/// Ends `targets`, all of them at the same time: a hundred that are stubborn take one grace.
///
/// Who belongs to them is found before the first signal and kept; the table is read again between
/// the stages for members that were forked meanwhile, and after KILL until a reading finds none.
/// A target whose members would include the caller, its ancestors or its pipeline is refused, as
/// are init and threads of the kernel. Death is noticed by the kernel's own notice; a zombie is
/// dead.
///
/// Every member is held by a descriptor until this returns; without a descriptor to be had it is
/// looked at in short intervals instead.
///
/// # Errors
///
/// The process table cannot be read. Nothing has been signalled then.
pub fn end(
    here: &Here,
    targets: Vec<Target>,
    options: &EndOptions,
    watch: Watch<'_>,
) -> io::Result<Ended> {
    Ok(sequence::Sequence::begin(here, targets, options, watch)?.run())
}
