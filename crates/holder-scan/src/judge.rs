//! The judgement: who holds what was asked for, whose it is, and what that comes to.
//!
//! Everything here is a pure function of a [`Snapshot`].

use std::collections::HashSet;
use std::sync::Arc;

use serde::Serialize;

use crate::claimed::{self, Member};
use crate::criteria::Criteria;
use crate::evidence::{By, Evidence};
use crate::id::{Ids, SessionId};
use crate::snapshot::Snapshot;
use crate::tree::{self, Scene, Tree};

/// What a process is to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Of the caller's own: every criterion is confirmed on the root of its tree.
    Own,
    /// Anybody else's.
    Foreign,
    /// The caller, an ancestor of it, or of its pipeline.
    #[serde(rename = "self")]
    Family,
    /// It only names what was asked for.
    Mention,
    /// The id is in its environment: an agent's tool has started it.
    Descendant,
}

/// What the look came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nobody holds it.
    Free,
    /// A husk of the caller's own does, or a process without an agent.
    Own,
    /// The caller's own does, and an agent lives in it.
    OwnActive,
    /// Somebody else does.
    Foreign,
    /// Nobody was seen, and not everybody could be looked at.
    Unknown,
}

/// What is asked of a snapshot. What is asked beside sessions has been looked for while the
/// snapshot was made, and is in its rows.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The sessions.
    pub ids: Arc<Ids>,
    /// What makes a holder the caller's own.
    pub criteria: Criteria,
    /// Whether those are wanted as well that only name a session.
    pub mentions: bool,
    /// Whether the caller's own family is wanted as well.
    pub include_self: bool,
    /// Only processes of this user.
    pub uid: Option<u32>,
}

/// One process that has to do with the question.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its index among the snapshot's rows.
    pub row: usize,
    /// The session that it is about, as it was asked for.
    pub session: Option<String>,
    /// What speaks for it, the strongest first.
    pub evidence: Vec<Evidence>,
    /// Whose it is.
    pub class: Class,
    /// Whether it counts in the verdict, and as what.
    pub counts_as: Option<Class>,
    /// The tree it belongs to.
    pub tree: Tree,
    /// Whether it only carries the session for the agent that it starts.
    pub carrier: bool,
    /// Whether it is a daemon that serves several sessions.
    pub shared: bool,
}

/// The judgement on a snapshot.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// What was found, by session and pid.
    pub findings: Vec<Finding>,
}

impl Judgement {
    /// How many hold.
    pub fn holders(&self) -> usize {
        self.counted().count()
    }

    /// What it comes to after a look that was `complete` or not.
    pub fn verdict(&self, complete: bool) -> Verdict {
        let mut classes = self.counted();
        if classes.any(|(class, _)| class == Class::Foreign) {
            return Verdict::Foreign;
        }
        let own: Vec<bool> = self.counted().map(|(_, active)| active).collect();
        match (own.is_empty(), own.contains(&true), complete) {
            (false, true, _) => Verdict::OwnActive,
            (false, false, _) => Verdict::Own,
            (true, _, true) => Verdict::Free,
            (true, _, false) => Verdict::Unknown,
        }
    }

    fn counted(&self) -> impl Iterator<Item = (Class, bool)> + '_ {
        self.findings.iter().filter_map(|finding| {
            // An ancestor of the caller is at work: its caller asks.
            let active = finding.tree.active || finding.class == Class::Family;
            finding.counts_as.map(|class| (class, active))
        })
    }
}

/// Gives the path behind links, where it can.
pub type Resolve<'a> = &'a dyn Fn(&[u8]) -> Option<Vec<u8>>;

/// Judges a snapshot.
pub fn judge(snapshot: &Snapshot, question: &Question, resolve: Resolve<'_>) -> Judgement {
    let judge = Judge::new(snapshot, question, resolve);
    let mut findings = Vec::new();
    for id in question.ids.iter() {
        let is = |word: &[u8]| id.is(word);
        let mut claims = judge.members.iter().flat_map(|member| &member.claims);
        if !question.mentions && !claims.any(|claim| is(&claim.id)) {
            continue;
        }
        let mut of_session = judge.holders(Some(id.as_str()), &is);
        if question.mentions {
            judge.add_mentions(id, &mut of_session);
            of_session.sort_by_key(|finding| finding.row);
        }
        findings.extend(of_session);
    }
    // Of processes that hold a session the rest is said there.
    let said: HashSet<usize> = findings.iter().map(|finding| finding.row).collect();
    let rest = judge.holders(None, &|_| false);
    findings.extend(
        rest.into_iter()
            .filter(|finding| !said.contains(&finding.row)),
    );
    findings.retain(|finding| judge.is_shown(finding));
    Judgement { findings }
}

/// The processes of the caller's own, by the roots of their trees, whatever they hold: those that
/// meet the criteria and have no ancestor that does.
pub fn own(snapshot: &Snapshot, question: &Question, resolve: Resolve<'_>) -> Vec<Finding> {
    let judge = Judge::new(snapshot, question, resolve);
    let is_own = |at: usize| {
        let is_meant = question.criteria.records.is_none() || judge.is_recorded(at);
        is_meant
            && judge.owner(&Tree::alone(at), false) == Class::Own
            && !snapshot.family.contains(&judge.members[at].row.pid)
    };
    let own: Vec<bool> = (0..judge.members.len()).map(is_own).collect();
    let is_root = |at: &usize| {
        own[*at]
            && !tree::ancestors(&judge.members, *at)
                .iter()
                .any(|&above| own[above])
    };
    (0..judge.members.len())
        .filter(is_root)
        .map(|at| judge.root(at))
        .collect()
}

/// A process of another user is nobody's own by accident. One whose user is not known is judged
/// by the criteria alone.
fn is_users(member: &Member<'_>, snapshot: &Snapshot) -> bool {
    match (member.row.uid, snapshot.caller_uid) {
        (Some(uid), Some(caller)) => uid == caller,
        _ => true,
    }
}

struct Judge<'a> {
    snapshot: &'a Snapshot,
    question: &'a Question,
    members: Vec<Member<'a>>,
    /// Which members meet the criteria that are about one process.
    own: Vec<bool>,
}

impl<'a> Judge<'a> {
    fn new(snapshot: &'a Snapshot, question: &'a Question, resolve: Resolve<'_>) -> Judge<'a> {
        let members = claimed::members(snapshot);
        let criteria = &question.criteria;
        let is_own =
            |member: &Member<'_>| criteria.any() && criteria.are_met_by(member.row, resolve);
        Judge {
            own: members.iter().map(is_own).collect(),
            snapshot,
            question,
            members,
        }
    }

    /// An own process by itself, with whatever session its tree holds.
    fn root(&self, at: usize) -> Finding {
        let members = &self.members;
        let line: Vec<usize> = std::iter::once(at)
            .chain(tree::below(members, at))
            .collect();
        let holding: HashSet<usize> = line
            .iter()
            .copied()
            .filter(|&at| members[at].current().next().is_some())
            .collect();
        let mut claims = line.iter().flat_map(|&at| members[at].current());
        let session = claims
            .find(|claim| claim.is_id)
            .map(|claim| claim.id.clone());
        let tree = self.scene(&holding, true, &|_| true).tree_at(at);
        let own = members[at].claims.iter();
        let evidence: Vec<Evidence> = own.map(|claim| claim.evidence.clone()).collect();
        Finding {
            row: at,
            session: session.map(|id| String::from_utf8_lossy(&id).into_owned()),
            carrier: !evidence.is_empty() && evidence.iter().all(|piece| piece.by.is_carried()),
            evidence,
            class: Class::Own,
            counts_as: Some(Class::Own),
            shared: false,
            tree,
        }
    }

    fn scene<'s>(
        &'s self,
        holding: &'s HashSet<usize>,
        by_session: bool,
        is: &'s dyn Fn(&[u8]) -> bool,
    ) -> Scene<'s> {
        let criteria = &self.question.criteria;
        Scene {
            members: &self.members,
            holding,
            own: &self.own,
            recorded: criteria.records.is_some().then(|| {
                let recorded = (0..self.members.len()).filter(|&at| self.is_recorded(at));
                recorded.collect()
            }),
            family: &self.snapshot.family,
            by_session,
            named_wrapper: !criteria.args.is_empty(),
            is,
        }
    }

    /// The holders of one session, or, without one, of what else was asked for.
    fn holders(&self, session: Option<&str>, is: &dyn Fn(&[u8]) -> bool) -> Vec<Finding> {
        let locked = self.lock_owners(is);
        let mut found: Vec<(usize, Vec<Evidence>)> = Vec::new();
        for (at, member) in self.members.iter().enumerate() {
            let mut evidence: Vec<Evidence> = member
                .claims
                .iter()
                .filter(|claim| is(&claim.id))
                .map(|claim| claim.evidence.clone())
                .collect();
            if evidence.iter().all(|evidence| evidence.superseded)
                || self.waits_for_another(at, &evidence, &locked)
            {
                evidence.clear();
            }
            if session.is_none() || !evidence.is_empty() {
                evidence.extend(member.row.found.iter().cloned());
            }
            if !evidence.is_empty() {
                found.push((at, evidence));
            }
        }
        let holding: HashSet<usize> = found.iter().map(|(at, _)| *at).collect();
        let scene = self.scene(&holding, session.is_some(), is);
        let trees = scene.trees(found.iter().map(|(at, _)| *at));
        let shared: HashSet<usize> = found
            .iter()
            .zip(&trees)
            .filter(|((at, _), _)| self.members[*at].is_shared())
            .map(|(_, tree)| tree.root)
            .collect();
        found
            .into_iter()
            .zip(trees)
            .map(|((at, evidence), tree)| {
                let shared = shared.contains(&tree.root) || self.serves_several(tree.root);
                let class = self.class(at, &tree, shared);
                Finding {
                    row: at,
                    session: session.map(str::to_owned),
                    carrier: evidence.iter().all(|evidence| evidence.by.is_carried()),
                    counts_as: self.counts_as(at, class, &tree, shared, &evidence),
                    evidence,
                    class,
                    tree,
                    shared,
                }
            })
            .collect()
    }

    /// Whether ending the tree of `root` would end more than one session: the root has several, or
    /// agents of several are below it. What an agent's tools have started is the agent's.
    fn serves_several(&self, root: usize) -> bool {
        let member = &self.members[root];
        if member.is_shared() {
            return true;
        }
        let mut below = Vec::new();
        if member.program.agent.is_none() {
            below = claimed::fronts(&self.members, root);
        }
        let fronts = below
            .iter()
            .flat_map(|&front| self.members[front].current());
        let mut ids = fronts.chain(member.current()).filter(|claim| claim.is_id);
        let Some(first) = ids.next() else {
            return false;
        };
        ids.any(|claim| !claim.id.eq_ignore_ascii_case(&first.id))
    }

    /// Who owns the kernel's lock for the session.
    fn lock_owners(&self, is: &dyn Fn(&[u8]) -> bool) -> Vec<usize> {
        let owns = |member: &Member<'_>| {
            member
                .current()
                .any(|claim| claim.evidence.by == By::Lock && is(&claim.id))
        };
        let members = self.members.iter().enumerate();
        members
            .filter(|(_, member)| owns(member))
            .map(|(at, _)| at)
            .collect()
    }

    /// Whether an agent that locks its sessions only names this one, while somebody outside of its
    /// tree has the lock: it waits on its lock screen.
    fn waits_for_another(&self, at: usize, evidence: &[Evidence], owners: &[usize]) -> bool {
        let locks = self.members[at]
            .program
            .agent
            .is_some_and(|agent| !agent.locks.is_empty());
        let related = |owner: usize| {
            owner == at
                || tree::ancestors(&self.members, owner).contains(&at)
                || tree::ancestors(&self.members, at).contains(&owner)
        };
        locks
            && !owners.is_empty()
            && evidence.iter().all(|evidence| evidence.by >= By::Argv)
            && !owners.iter().any(|&owner| related(owner))
    }

    fn class(&self, at: usize, tree: &Tree, shared: bool) -> Class {
        if self.snapshot.family.contains(&self.members[at].row.pid) {
            Class::Family
        } else {
            self.owner(tree, shared)
        }
    }

    /// Whose a tree is: when in doubt, somebody else's.
    fn owner(&self, tree: &Tree, shared: bool) -> Class {
        let criteria = &self.question.criteria;
        let root = &self.members[tree.judge];
        let users = criteria.uid.is_some() || is_users(root, self.snapshot);
        let recorded = criteria.records.is_none()
            || self.is_recorded(tree.judge)
            || tree.line.iter().any(|&at| self.is_recorded(at))
            || tree::below(&self.members, tree.judge).any(|at| self.is_recorded(at));
        if !shared && users && recorded && self.own[tree.judge] {
            Class::Own
        } else {
            Class::Foreign
        }
    }

    /// An ancestor of the caller that holds by more than what it is to start is heard of, so that a
    /// caller inside of the holding agent does not take the session for free.
    fn counts_as(
        &self,
        at: usize,
        class: Class,
        tree: &Tree,
        shared: bool,
        evidence: &[Evidence],
    ) -> Option<Class> {
        if class != Class::Family {
            return Some(class);
        }
        let above = self.snapshot.ancestors.contains(&self.members[at].row.pid);
        let holds = evidence
            .iter()
            .any(|evidence| !evidence.superseded && !evidence.by.is_carried());
        (above && holds && !evidence.iter().all(|evidence| only_names(evidence.by)))
            .then(|| self.owner(tree, shared))
    }

    fn is_recorded(&self, at: usize) -> bool {
        let criteria = &self.question.criteria;
        criteria.records.is_some() && criteria.has_record_of(self.members[at].row)
    }

    fn is_shown(&self, finding: &Finding) -> bool {
        let row = self.members[finding.row].row;
        if self.question.uid.is_some() && row.uid != self.question.uid {
            return false;
        }
        finding.class != Class::Family || finding.counts_as.is_some() || self.question.include_self
    }

    /// Those that name the session and do not hold it.
    fn add_mentions(&self, id: &SessionId, findings: &mut Vec<Finding>) {
        let holding: HashSet<usize> = findings.iter().map(|finding| finding.row).collect();
        for (at, member) in self.members.iter().enumerate() {
            if holding.contains(&at) {
                continue;
            }
            let mut evidence: Vec<Evidence> = member
                .claims
                .iter()
                .filter(|claim| id.is(&claim.id))
                .map(|claim| claim.evidence.clone())
                .collect();
            let argv = member
                .row
                .argv
                .as_deref()
                .unwrap_or_default()
                .iter()
                .enumerate();
            if evidence.is_empty() {
                let named = argv.filter(|(_, argument)| id.is_in(argument));
                evidence.extend(named.map(|(index, _)| Evidence::at(By::Mention, index)));
            }
            let mut class = Class::Mention;
            let env = member.row.env.as_deref().unwrap_or_default().iter();
            let inherited =
                env.filter(|(_, value)| value.as_deref().is_some_and(|value| id.is_in(value)));
            for (name, _) in inherited {
                if evidence.iter().all(|evidence| evidence.by == By::Env) {
                    class = Class::Descendant;
                }
                evidence.push(Evidence::variable(name));
            }
            if evidence.is_empty() {
                continue;
            }
            if self.snapshot.family.contains(&member.row.pid) {
                class = Class::Family;
            }
            findings.push(Finding {
                row: at,
                session: Some(id.as_str().to_owned()),
                evidence,
                class,
                counts_as: None,
                tree: Tree::alone(at),
                carrier: false,
                shared: false,
            });
        }
    }
}

/// Evidence that an ancestor of the caller may have because of the question itself: the script that
/// asks was given the same word, or has set the variable.
fn only_names(by: By) -> bool {
    matches!(by, By::Arg | By::Env | By::Mention)
}
