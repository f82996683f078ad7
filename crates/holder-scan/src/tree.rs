//! Holders as trees: a wrapper and the agent below it are one holding, judged by its root.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use process::Pid;

use crate::claimed::Member;
use crate::evidence::By;
use crate::json;
use crate::program::Kind;

/// The tree that a holder belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Its topmost process, as an index, as all below.
    pub root: usize,
    /// The process it is judged by: the root, or a wrapper above it that is of the caller's family.
    pub judge: usize,
    /// The agent in it: the one its registry names, else the deepest; the root of a husk.
    pub primary: usize,
    /// Whether an agent lives in it.
    pub active: bool,
    /// The age of the youngest agent below the wrapper, or, where none lives, of the youngest
    /// process.
    pub youngest_child: Option<Duration>,
    /// The holder and its ancestors up to the root.
    pub line: Vec<usize>,
}

impl Tree {
    /// A process by itself.
    pub fn alone(at: usize) -> Tree {
        Tree {
            root: at,
            judge: at,
            primary: at,
            active: false,
            youngest_child: None,
            line: vec![at],
        }
    }
}

/// What trees are found in: the table, and who holds what was asked for.
pub struct Scene<'a> {
    /// The table.
    pub members: &'a [Member<'a>],
    /// The holders.
    pub holding: &'a HashSet<usize>,
    /// Who meets the criteria.
    pub own: &'a [bool],
    /// Who is a process of the record of the caller's own, where one was given.
    pub recorded: Option<HashSet<usize>>,
    /// The caller's family, which is the root of nothing but itself.
    pub family: &'a HashSet<Pid>,
    /// Whether sessions are asked for.
    pub by_session: bool,
    /// Whether the criteria say what the wrapper is called.
    pub named_wrapper: bool,
    /// The asked session.
    pub is: &'a dyn Fn(&[u8]) -> bool,
}

impl Scene<'_> {
    /// The trees of these holders. Those of one tree have all but their line in common.
    pub fn trees(&self, holders: impl Iterator<Item = usize>) -> Vec<Tree> {
        let mut known: HashMap<usize, Tree> = HashMap::new();
        let tree = |at: usize| {
            let root = self.root(at);
            let tree = known.entry(root).or_insert_with(|| self.tree_at(root));
            Tree {
                line: self.line(at, root),
                ..tree.clone()
            }
        };
        holders.map(tree).collect()
    }

    /// From `at` up to `root`.
    fn line(&self, at: usize, root: usize) -> Vec<usize> {
        let mut line = vec![at];
        line.extend(
            ancestors(self.members, at)
                .into_iter()
                .take_while(|_| at != root),
        );
        if let Some(end) = line.iter().position(|&above| above == root) {
            line.truncate(end + 1);
        }
        line
    }

    /// The tree that `root` is the root of.
    pub fn tree_at(&self, root: usize) -> Tree {
        let agents = self.agents_below(root);
        let root_is_agent = self.is_agent(root, root) && !self.is_wrapper(root);
        Tree {
            root,
            judge: self.judge(root),
            primary: self.primary(root, &agents, root_is_agent),
            active: root_is_agent || !agents.is_empty(),
            youngest_child: (!root_is_agent)
                .then(|| self.youngest(root, &agents))
                .flatten(),
            line: vec![root],
        }
    }

    /// The topmost ancestor that is part of the same holding: it holds the same, or it is a
    /// wrapper, or it meets the caller's criteria.
    ///
    /// The way up ends below the caller's own family, at a multiplexer or a terminal, and at an
    /// agent that has another session: what runs below that is its tool.
    fn root(&self, at: usize) -> usize {
        let family = |at: usize| self.family.contains(&self.members[at].row.pid);
        let inside = family(at);
        let mut root = at;
        let mut below = at;
        let mut agent = self.members[at].program.agent;
        for above in ancestors(self.members, at) {
            let member = &self.members[above];
            let ends = member.row.pid.is_init()
                || member.program.kind == Kind::Carrier
                || (family(above) && !inside);
            if ends {
                break;
            }
            let holds = self.holding.contains(&above);
            if self.by_session && member.program.agent.is_some() {
                let launched = member.program.agent == agent
                    && self.members[below].parent == Some(above)
                    && member.current().next().is_none();
                if !holds && !launched {
                    break;
                }
                agent = member.program.agent;
                root = above;
            } else if holds || self.wraps(above) || self.is_own(above) {
                root = above;
            }
            below = above;
        }
        root
    }

    /// Who the tree of `root` is judged by. A wrapper of the caller's own that asks while its agent
    /// lives is no part of what may be ended, but the agent is its own by it, as it is when somebody
    /// else asks.
    fn judge(&self, root: usize) -> usize {
        let family = |at: usize| self.family.contains(&self.members[at].row.pid);
        let above = ancestors(self.members, root).into_iter();
        above
            .take_while(|&at| {
                let member = &self.members[at];
                let is_passed = member.program.kind != Kind::Carrier && !member.row.pid.is_init();
                is_passed && member.program.agent.is_none() && !family(root)
            })
            .filter(|&at| {
                let is_wrapper = self.holding.contains(&at) || self.wraps(at);
                self.by_session && family(at) && is_wrapper
            })
            .last()
            .filter(|&topmost| self.own[topmost] && !self.members[topmost].is_shared())
            .unwrap_or(root)
    }

    /// Whether a process is there to start an agent, of whatever session.
    fn wraps(&self, at: usize) -> bool {
        let member = &self.members[at];
        self.by_session && member.program.agent.is_none() && !member.claims.is_empty()
    }

    /// Whether the criteria make `at` the caller's own by itself. A recorded process is own as
    /// such; of its ancestors nothing is known by it.
    fn is_own(&self, at: usize) -> bool {
        self.own[at]
            && self
                .recorded
                .as_ref()
                .is_none_or(|recorded| recorded.contains(&at))
    }

    /// Whether `at`, in the tree of `root`, is the agent rather than what starts it: it is one by
    /// its program, it holds by more than what it is to start, or it is the command that the root's
    /// JSON argument names.
    fn is_agent(&self, at: usize, root: usize) -> bool {
        let member = &self.members[at];
        if member.program.agent.is_some() {
            return true;
        }
        if member.program.only_names() {
            return false;
        }
        let holds = member
            .current()
            .any(|claim| !claim.evidence.by.is_carried() && (self.is)(&claim.id));
        holds || (at != root && self.is_command_of(at, root))
    }

    fn is_command_of(&self, at: usize, root: usize) -> bool {
        let argv = self.members[root].row.argv.as_deref().unwrap_or_default();
        argv.iter()
            .skip(1)
            .filter_map(|argument| json::Argument::parse(argument))
            .flat_map(|json| json.commands)
            .any(|command| self.members[at].program.is_command(&command))
    }

    /// Whether the criteria name the root as the wrapper, although its arguments hold the id as an
    /// agent's do.
    fn is_wrapper(&self, root: usize) -> bool {
        let member = &self.members[root];
        self.named_wrapper
            && self.own[root]
            && member.program.agent.is_none()
            && member.current().all(|claim| claim.evidence.by >= By::Argv)
    }

    /// The first agent on each way down from the root.
    fn agents_below(&self, root: usize) -> Vec<usize> {
        let mut found = Vec::new();
        self.walk_below(root, |at| {
            let agent = self.is_agent(at, root);
            if agent {
                found.push(at);
            }
            !agent
        });
        found
    }

    /// The age of the youngest agent below the wrapper; where none lives, of the youngest process.
    fn youngest(&self, root: usize, agents: &[usize]) -> Option<Duration> {
        let mut below = agents.to_vec();
        if below.is_empty() {
            self.walk_below(root, |at| {
                below.push(at);
                true
            });
        }
        let ages = below.into_iter().filter_map(|at| self.members[at].row.age);
        ages.min()
    }

    /// Goes down from `root`, deeper where `enter` says so.
    fn walk_below(&self, root: usize, mut enter: impl FnMut(usize) -> bool) {
        let mut seen = HashSet::from([root]);
        let mut next = self.members[root].children.clone();
        while let Some(at) = next.pop() {
            if seen.insert(at) && enter(at) {
                next.extend(&self.members[at].children);
            }
        }
    }

    /// The agent itself: the process that a registry names, else the deepest agent on the way
    /// down through launchers, else the root.
    fn primary(&self, root: usize, agents: &[usize], root_is_agent: bool) -> usize {
        let members = self.members;
        let registered = |at: &usize| {
            let mut claims = members[*at].current();
            claims.any(|claim| claim.evidence.by == By::Registry && (self.is)(&claim.id))
        };
        let mut in_tree: Vec<usize> = std::iter::once(root).chain(below(members, root)).collect();
        in_tree.retain(|at| self.holding.contains(at));
        in_tree.sort_unstable();
        if let Some(at) = in_tree.iter().copied().find(|at| registered(at)) {
            return at;
        }
        let start = if root_is_agent {
            vec![root]
        } else {
            agents.to_vec()
        };
        // A launcher's own agent below is the one that works.
        let deepest = start.into_iter().map(|at| self.innermost(at));
        let depth = |at: &usize| ancestors(members, *at).len();
        let holds_first = |at: &usize| (self.holding.contains(at), depth(at));
        deepest.max_by_key(holds_first).unwrap_or(root)
    }

    fn innermost(&self, at: usize) -> usize {
        let mut at = at;
        for _ in 0..self.members.len() {
            let same = |child: &&usize| {
                let member = &self.members[**child];
                let launched = member.program.agent.is_some()
                    && member.program.agent == self.members[at].program.agent
                    && member.current().next().is_none();
                let holds = self.holding.contains(*child)
                    && (member.program.agent.is_some() || self.members[at].program.agent.is_none());
                launched || holds
            };
            match self.members[at].children.iter().find(same) {
                Some(&child) => at = child,
                None => break,
            }
        }
        at
    }
}

/// The parent of `at`, its parent and so on, nearest first.
pub fn ancestors(members: &[Member<'_>], at: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut seen = HashSet::from([at]);
    let mut next = members[at].parent;
    while let Some(parent) = next {
        if !seen.insert(parent) {
            break;
        }
        found.push(parent);
        next = members[parent].parent;
    }
    found
}

/// All descendants of `at`.
pub fn below<'a>(members: &'a [Member<'a>], at: usize) -> impl Iterator<Item = usize> + 'a {
    let mut seen = HashSet::from([at]);
    let mut next = members[at].children.clone();
    std::iter::from_fn(move || {
        loop {
            let child = next.pop()?;
            if seen.insert(child) {
                next.extend(&members[child].children);
                return Some(child);
            }
        }
    })
}
