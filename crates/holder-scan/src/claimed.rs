//! Which sessions each process of a table names, and which of them it still holds.

use std::collections::{HashMap, HashSet};

use agents::signs::{AGENTS, Signs, id_in_path};

use crate::claims::{Claim, of_argv};
use crate::evidence::{By, Evidence};
use crate::program::Program;
use crate::snapshot::{Open, Row, Snapshot};

/// One process with what follows from its own row and from those below it.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// The row.
    pub row: &'a Row,
    /// What it runs.
    pub program: Program<'a>,
    /// Every session it names, the strongest evidence first; a claim that something stronger has
    /// taken away is marked as superseded.
    pub claims: Vec<Claim>,
    /// Its children, as indices.
    pub children: Vec<usize>,
    /// Its parent, as an index.
    pub parent: Option<usize>,
}

impl Member<'_> {
    /// The sessions that it holds now.
    pub fn current(&self) -> impl Iterator<Item = &Claim> {
        self.claims
            .iter()
            .filter(|claim| !claim.evidence.superseded)
    }

    /// Whether it stands for a session itself: it is an agent, or it names one.
    fn speaks(&self) -> bool {
        self.program.agent.is_some() || !self.claims.is_empty()
    }

    /// Whether it can be seen to serve, or to have, several sessions.
    pub fn is_shared(&self) -> bool {
        let mut ids: Vec<Vec<u8>> = self
            .current()
            .filter(|claim| claim.is_id)
            .map(|claim| claim.id.to_ascii_lowercase())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids.len() > 1 || self.is_daemon()
    }

    /// Whether its subcommand makes it a daemon of its agent.
    fn is_daemon(&self) -> bool {
        let Some(agent) = self.program.agent else {
            return false;
        };
        let from = self.program.script.map_or(1, |(index, _)| index + 1);
        let argv = self.row.argv.as_deref().unwrap_or_default().iter();
        let is_daemon = |word: &[u8]| agent.daemons.iter().any(|name| name.as_bytes() == word);
        // Options may stand before the subcommand, with a value or without.
        let mut after_option = false;
        for word in argv.skip(from) {
            let is_option = word.starts_with(b"-");
            if is_daemon(word) {
                return true;
            }
            if !is_option && !after_option {
                return false;
            }
            after_option = is_option;
        }
        false
    }

    /// Whether its own arguments show only what it starts.
    fn is_agent(&self, kind: Option<&'static Signs>) -> bool {
        self.program.agent.is_some() && self.program.agent == kind
    }
}

/// The members of a table, in the order of its rows.
pub fn members(snapshot: &Snapshot) -> Vec<Member<'_>> {
    let index: HashMap<i32, usize> = snapshot
        .rows
        .iter()
        .enumerate()
        .map(|(at, row)| (row.pid.get(), at))
        .collect();
    let mut members: Vec<Member<'_>> = snapshot
        .rows
        .iter()
        .map(|row| {
            let argv = row.argv.as_deref().unwrap_or_default();
            let program = Program::of(argv, row.exe.as_deref());
            Member {
                row,
                claims: claims(row, &program),
                program,
                children: Vec::new(),
                parent: index
                    .get(
                        &row.ppid
                            .filter(|&ppid| ppid != row.pid.get())
                            .unwrap_or_default(),
                    )
                    .copied(),
            }
        })
        .collect();
    for at in 0..members.len() {
        if let Some(parent) = members[at].parent {
            members[parent].children.push(at);
        }
    }
    forget_what_was_left(&mut members);
    members
}

/// What one row says by itself, the strongest first.
fn claims(row: &Row, program: &Program<'_>) -> Vec<Claim> {
    if program.only_names() {
        return Vec::new();
    }
    let open = row.open.as_deref().unwrap_or_default();
    let mut claims: Vec<Claim> = open.iter().filter_map(claim_of_file).collect();
    // A row without an id, as of an agent that has yet to begin its session, contradicts nothing.
    let registered = row.registry.iter().filter(|row| !row.id.is_empty());
    claims.extend(registered.map(|registered| Claim {
        id: registered.id.clone(),
        is_id: true,
        evidence: Evidence::open(By::Registry, &registered.path, None),
    }));
    claims.sort_by_key(|claim| claim.evidence.by);
    let mut named = of_argv(row.argv.as_deref().unwrap_or_default(), program);
    contradict(&mut named, &claims);
    claims.extend(named);
    claims
}

/// The session whose lock or transcript a file is.
fn claim_of_file(open: &Open) -> Option<Claim> {
    let path = open
        .path
        .strip_suffix(crate::path::DELETED)
        .unwrap_or(&open.path);
    let id_by = |patterns: fn(&Signs) -> &'static [&'static str]| {
        let mut patterns = AGENTS.iter().flat_map(patterns);
        patterns.find_map(|pattern| id_in_path(pattern, path))
    };
    // A table that was written down says which files are lock files.
    let named = || crate::program::base(path).strip_suffix(b".lock");
    let lock = id_by(|agent| agent.locks).or_else(|| named().filter(|_| open.locked));
    let (id, by) = match lock {
        Some(id) if open.locked => (id, By::Lock),
        Some(id) => (id, By::Fd),
        None => (id_by(|agent| agent.transcripts)?, By::Fd),
    };
    Some(Claim {
        id: id.to_vec(),
        is_id: true,
        evidence: Evidence::open(by, &open.path, open.fd.clone()),
    })
}

/// Ids, in lower case. A process may name thousands, so each is looked up and not looked for.
type Folded = HashSet<Vec<u8>>;

fn ids<'c>(claims: impl IntoIterator<Item = &'c Claim>) -> Folded {
    let ids = claims.into_iter().map(Claim::folded);
    ids.collect()
}

impl Claim {
    /// The id, in lower case.
    fn folded(&self) -> Vec<u8> {
        self.id.to_ascii_lowercase()
    }
}

/// Marks the arguments of which stronger evidence of the same process says that it has another
/// session by now: they are those of its launch. A lock or file of this session keeps the claim
/// up, and an open file of another one says nothing, since agents look into old transcripts.
fn contradict(named: &mut [Claim], strong: &[Claim]) {
    let speaks = |other: &Claim| matches!(other.evidence.by, By::Lock | By::Registry);
    if strong.iter().any(speaks) {
        let kept = ids(strong);
        for claim in named {
            claim.evidence.superseded = !kept.contains(&claim.folded());
        }
    }
}

/// Marks what wrappers and launchers named at their start and the agent below has left since.
fn forget_what_was_left(members: &mut [Member<'_>]) {
    // Children first, so that what is below is settled.
    for at in children_first(members) {
        let stale = stale_claims(members, at);
        for claim in stale {
            members[at].claims[claim].evidence.superseded = true;
        }
    }
}

fn stale_claims(members: &[Member<'_>], at: usize) -> Vec<usize> {
    let member = &members[at];
    let weak = |claim: &&(usize, &Claim)| claim.1.evidence.by >= By::Argv;
    let claims: Vec<(usize, &Claim)> = member.claims.iter().enumerate().collect();
    let claims: Vec<_> = claims.iter().filter(weak).collect();
    if claims.is_empty() {
        return Vec::new();
    }
    let fronts = fronts(members, at);
    let below = || fronts.iter().map(|&front| &members[front]);
    let stale: Box<dyn Fn(&Claim) -> bool> = match member.program.agent {
        // A launcher names what its own agent below was launched with. Other agents below are its
        // tools' children.
        Some(_) => {
            let launched = below()
                .filter(|front| front.parent == Some(at) && front.is_agent(member.program.agent));
            let left: Folded = launched
                .flat_map(|front| &ids(&front.claims) - &ids(front.current()))
                .collect();
            Box::new(move |claim| left.contains(&claim.folded()))
        }
        // An agent that a supervisor of several sessions has started for another of them says
        // nothing of this one; of what shell text names one is run after the other.
        None => {
            let (named, held) = (ids(&member.claims), ids(below().flat_map(Member::current)));
            let others = || {
                below()
                    .flat_map(Member::current)
                    .filter(|other| other.is_id)
            };
            let any = others().next().is_some();
            let any_unnamed = others().any(|other| !named.contains(&other.folded()));
            Box::new(move |claim| {
                let in_text = claim.evidence.by == By::ArgvShell;
                (if in_text { any } else { any_unnamed }) && !held.contains(&claim.folded())
            })
        }
    };
    claims
        .into_iter()
        .filter(|(_, claim)| stale(claim))
        .map(|(index, _)| *index)
        .collect()
}

/// The first process on each way down from `at` that is an agent or names a session.
pub fn fronts(members: &[Member<'_>], at: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut seen = HashSet::from([at]);
    let mut next: Vec<usize> = members[at].children.clone();
    while let Some(child) = next.pop() {
        if !seen.insert(child) {
            continue;
        }
        if members[child].speaks() {
            found.push(child);
        } else {
            next.extend(&members[child].children);
        }
    }
    found
}

/// All indices, each after those of its descendants. A table that was read while it changed may
/// hold a circle; its members come in some order.
fn children_first(members: &[Member<'_>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(members.len());
    let mut seen = vec![false; members.len()];
    for start in 0..members.len() {
        let mut stack = vec![(start, false)];
        while let Some((at, done)) = stack.pop() {
            if done {
                order.push(at);
            } else if !std::mem::replace(&mut seen[at], true) {
                stack.push((at, true));
                stack.extend(members[at].children.iter().map(|&child| (child, false)));
            }
        }
    }
    order
}
