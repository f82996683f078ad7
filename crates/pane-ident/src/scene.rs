//! What there is to be seen of the servers, panes and processes that records speak of.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use mux::{Found, Listing, Occupant, Pane};
use process::{Comparison, Here, Identity, Pid, Sight, Standing};
use records::Deadline;
use records::text::lossy;

use crate::caller::Caller;
use crate::claim::{Address, Claim, ClaimedIdent, LegacyKey};
use crate::program::{Program, is_same_path, runs_the_same};
use crate::servers::{Kind, ServerArgs, ServerKey, ask_all};
use crate::verdict::{Bound, Doubt, Elsewhere, Facts, Likeness, Place, Process, Role};

/// What the caller wants of the records.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// By what records without an identity are compared; empty where they are not.
    pub legacy: Vec<LegacyKey>,
    /// Whether the process must still run the same program.
    pub same_argv: bool,
    /// Whether the process must be an ancestor of the caller.
    pub ancestor: bool,
}

/// One look at everything that a set of records speaks of.
pub struct Scene<'a> {
    here: &'a Here,
    caller: Caller,
    servers: HashMap<ServerKey, Result<Listing, Doubt>>,
    residents: RefCell<HashMap<Pid, Resident>>,
    deadline: Deadline,
}

/// Who a pane's process is.
#[derive(Clone, Debug)]
enum Resident {
    Alive(Identity),
    Ended,
    Unknown(String),
}

/// A live process that is shown beside a verdict.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LiveProcess {
    /// Its number.
    pub pid: Pid,
    /// Who it is; `None` where that cannot be read.
    pub ident: Option<Identity>,
    /// Its working directory.
    pub cwd: Option<String>,
    /// What people call its pane.
    pub label: Option<String>,
    /// Its pane.
    pub pane: Option<String>,
}

/// What was found out about one record.
#[derive(Debug)]
pub struct Finding {
    /// What is to be judged.
    pub facts: Facts,
    /// The live process of the record's pane.
    pub in_pane: Option<LiveProcess>,
    /// The live process that has the bound one's pid.
    pub bound: Option<LiveProcess>,
}

impl<'a> Scene<'a> {
    /// Asks all servers of `claims`, each once.
    pub fn survey<'c>(
        here: &'a Here,
        claims: impl IntoIterator<Item = &'c Claim>,
        servers: &ServerArgs,
        deadline: Deadline,
    ) -> Scene<'a> {
        let addresses = claims
            .into_iter()
            .filter_map(|claim| claim.address.as_ref());
        let keys: HashSet<&ServerKey> = addresses
            .filter_map(|address| address.server.as_ref().ok())
            .collect();
        let keys: Vec<ServerKey> = keys.into_iter().cloned().collect();
        Scene {
            here,
            caller: Caller::read(),
            servers: ask_all(here, &keys, servers, deadline),
            residents: RefCell::default(),
            deadline,
        }
    }

    /// Finds out what there is to be known of one record.
    pub fn look(&self, claim: &Claim, wishes: &Wishes) -> Finding {
        let (place, pane, listing) = self.place(claim);
        let in_pane = pane.and_then(|pane| self.live_in(pane));
        let mut finding = Finding {
            facts: Facts {
                pane: pane
                    .map(|pane| pane.id.clone())
                    .or_else(|| claim.pane().map(str::to_owned)),
                bound: Bound::Nobody { differing: None },
                place,
                elsewhere: None,
            },
            in_pane,
            bound: None,
        };
        match &claim.ident {
            ClaimedIdent::Bad(why) => finding.facts.bound = Bound::Unreadable(why.clone()),
            ClaimedIdent::None => {
                let differing = self.differing(claim, finding.in_pane.as_ref(), wishes);
                finding.facts.bound = Bound::Nobody { differing };
            }
            ClaimedIdent::Known(ident) => match self.other_host(ident, claim.host.as_deref()) {
                Some(host) => finding.facts.bound = Bound::Elsewhere(host),
                None => self.look_for(ident, claim, wishes, pane, listing, &mut finding),
            },
        }
        finding
    }

    /// The process that a record is bound to, beside the pane that it names.
    fn look_for(
        &self,
        ident: &Identity,
        claim: &Claim,
        wishes: &Wishes,
        pane: Option<&Pane>,
        listing: Option<&Listing>,
        finding: &mut Finding,
    ) {
        let standing = self.here.find(ident, claim.host.as_deref());
        if let Place::Live { likeness, .. } = &mut finding.facts.place
            && let Some(Occupant::Process(pid)) = pane.map(|pane| &pane.occupant)
        {
            *likeness = self.likeness(ident, &standing, *pid);
        }
        let is_in_pane = matches!(
            finding.facts.place,
            Place::Live {
                likeness: Likeness::Same,
                ..
            }
        );
        // The pid of a record from another namespace is no number of here.
        let pid = match (&standing, pane.map(|pane| &pane.occupant)) {
            (Standing::Unknown(_), Some(Occupant::Process(pid))) if is_in_pane => *pid,
            _ => ident.pid(),
        };
        if matches!(standing, Standing::Same(_)) && !is_in_pane {
            finding.facts.elsewhere = self.elsewhere(pid, finding.facts.pane.as_deref(), listing);
        }
        if matches!(standing, Standing::Same(_) | Standing::Recycled(_)) {
            let other = finding.facts.elsewhere.as_ref();
            let other = other.and_then(|other| find(listing?, &other.pane));
            finding.bound = Some(self.live(pid, other.or(pane.filter(|_| is_in_pane))));
        }
        let lives = is_in_pane || matches!(standing, Standing::Same(_));
        finding.facts.bound = Bound::To {
            exact: ident.is_exact(),
            role: match wishes.same_argv && lives {
                true => role(claim, pid),
                false => Role::Unasked,
            },
            ancestor: (wishes.ancestor && lives).then(|| self.caller.includes(pid)),
            process: match standing {
                Standing::Same(_) => Process::Same,
                Standing::Recycled(_) => Process::Recycled,
                Standing::Gone { .. } => Process::Gone,
                Standing::Unknown(why) => Process::Unknown(self.doubt(ident, why)),
            },
        };
    }

    fn place(&self, claim: &Claim) -> (Place, Option<&Pane>, Option<&Listing>) {
        let Some(address) = &claim.address else {
            return (Place::Nowhere, None, None);
        };
        let doubt = |reason, why: &str| {
            let why = why.to_owned();
            (Place::Unknown(Doubt { reason, why }), None, None)
        };
        let listing = match &address.server {
            Err(why) => return doubt("no_multiplexer", why),
            Ok(key) => match self.servers.get(key) {
                None => return doubt("server_silent", "the server was not asked"),
                Some(Err(silence)) => return doubt(silence.reason, &silence.why),
                Some(Ok(listing)) => listing,
            },
        };
        let none = |place| (place, None, Some(listing));
        if listing.server.is_none() {
            return match self.is_cut_off(address, claim) {
                true => doubt("server_silent", "its server lives, and its socket is gone"),
                false => none(Place::NoServer),
            };
        }
        match listing.find(&address.pane) {
            Found::None => none(Place::NoPane),
            Found::Several => doubt(
                "ambiguous_pane",
                &format!("several panes are called {}", address.pane),
            ),
            Found::One(pane) => (self.occupancy(pane), Some(pane), Some(listing)),
        }
    }

    /// Whether the record's server lives although nobody listens where it should. A cleaner of old
    /// files can remove tmux's socket; its panes live on, and tmux(1) makes it again on USR1.
    fn is_cut_off(&self, address: &Address, claim: &Claim) -> bool {
        let is_tmux = matches!(&address.server, Ok(key) if key.kind == Kind::Tmux);
        let lives = |server| {
            let standing = self.here.find(server, claim.host.as_deref());
            matches!(standing, Standing::Same(_))
        };
        is_tmux && claim.server.as_ref().is_some_and(lives)
    }

    fn occupancy(&self, pane: &Pane) -> Place {
        let doubt = |why: String| Doubt {
            reason: "unreadable",
            why,
        };
        let pid = match &pane.occupant {
            Occupant::Nobody => return Place::Empty,
            // Whether a live process is there at all was not said.
            Occupant::Unknown(why) => {
                return Place::Unknown(doubt(format!("pane {}: {why}", pane.id)));
            }
            Occupant::Process(pid) => *pid,
        };
        match self.resident(pid) {
            Resident::Ended => Place::Empty,
            Resident::Unknown(why) => Place::Live {
                likeness: Likeness::Unknown(doubt(why)),
                own: self.caller.includes(pid),
            },
            // Without a bound process nothing is compared, so it is another.
            Resident::Alive(_) => Place::Live {
                likeness: Likeness::Other,
                own: self.caller.includes(pid),
            },
        }
    }

    /// Whether the live process `pid` is the recorded one.
    fn likeness(&self, recorded: &Identity, standing: &Standing, pid: Pid) -> Likeness {
        let is_recorded_pid = pid == recorded.pid();
        // Identities from `ps` are compared with `ps` again, and count for this host alone.
        if !recorded.is_exact() && !is_recorded_pid {
            return Likeness::Other;
        }
        match (standing, self.resident(pid)) {
            (Standing::Same(_), _) if is_recorded_pid => Likeness::Same,
            (Standing::Recycled(_), _) if is_recorded_pid => Likeness::Other,
            (_, Resident::Alive(live)) => match live.compare(recorded) {
                Comparison::Same => Likeness::Same,
                Comparison::Different => Likeness::Other,
                Comparison::Unknown(why) => Likeness::Unknown(self.doubt(recorded, why.to_owned())),
            },
            (_, Resident::Unknown(why)) => Likeness::Unknown(Doubt {
                reason: "unreadable",
                why,
            }),
            (_, Resident::Ended) => Likeness::Other,
        }
    }

    fn resident(&self, pid: Pid) -> Resident {
        let mut residents = self.residents.borrow_mut();
        let resident = residents
            .entry(pid)
            .or_insert_with(|| match self.here.look(pid) {
                Sight::Alive(handle) => Resident::Alive(handle.ident().clone()),
                Sight::Zombie(_) | Sight::Absent => Resident::Ended,
                Sight::Unknown(why) => Resident::Unknown(why),
            });
        resident.clone()
    }

    /// The pane other than `pane` that has the process `pid`.
    fn elsewhere(
        &self,
        pid: Pid,
        pane: Option<&str>,
        listing: Option<&Listing>,
    ) -> Option<Elsewhere> {
        let mut panes = listing?.panes.iter();
        let other = panes.find(|other| {
            other.occupant == Occupant::Process(pid) && Some(other.id.as_str()) != pane
        })?;
        Some(Elsewhere {
            pane: other.id.clone(),
            own: self.caller.includes(pid),
        })
    }

    fn live_in(&self, pane: &Pane) -> Option<LiveProcess> {
        match &pane.occupant {
            Occupant::Process(pid) => match self.resident(*pid) {
                Resident::Ended => None,
                Resident::Alive(_) | Resident::Unknown(_) => Some(self.live(*pid, Some(pane))),
            },
            Occupant::Nobody | Occupant::Unknown(_) => None,
        }
    }

    /// The live process `pid`, with what its server says of its pane.
    fn live(&self, pid: Pid, pane: Option<&Pane>) -> LiveProcess {
        let ident = match self.resident(pid) {
            Resident::Alive(ident) => Some(ident),
            Resident::Ended | Resident::Unknown(_) => None,
        };
        LiveProcess {
            pid,
            ident,
            cwd: pane
                .and_then(pane_cwd)
                .or_else(|| Program::read(pid, false).cwd),
            label: pane.and_then(|pane| pane.label.clone()),
            pane: pane.map(|pane| pane.id.clone()),
        }
    }

    /// In which of the keys that were asked for a record without identity differs from the pane's
    /// process.
    fn differing(
        &self,
        claim: &Claim,
        live: Option<&LiveProcess>,
        wishes: &Wishes,
    ) -> Option<Vec<&'static str>> {
        if wishes.legacy.is_empty() {
            return None;
        }
        let differs = |key: &LegacyKey| match key {
            LegacyKey::Cwd => {
                let Some((recorded, live)) = claim.cwd.as_deref().zip(live) else {
                    return Some("cwd");
                };
                let own = Program::read(live.pid, false).cwd;
                let paths: Vec<&str> = [live.cwd.as_deref(), own.as_deref()]
                    .into_iter()
                    .flatten()
                    .collect();
                (!is_same_path(recorded, &paths, self.deadline)).then_some("cwd")
            }
            LegacyKey::Label => {
                let live = live.and_then(|live| live.label.as_deref());
                let equal = claim.label.is_some() && claim.label.as_deref() == live;
                (!equal).then_some("label")
            }
        };
        Some(wishes.legacy.iter().filter_map(differs).collect())
    }

    /// The host of a record that was made in another boot on another host.
    fn other_host(&self, ident: &Identity, host: Option<&str>) -> Option<String> {
        let boot = match ident {
            Identity::Linux(linux) => Some(linux.boot),
            Identity::Macos(macos) => Some(macos.boot),
            Identity::Lstart(lstart) => {
                return Some(lstart.host.clone()).filter(|host| host != self.here.host());
            }
        };
        host.filter(|&host| boot != self.here.boot() && host != self.here.host())
            .map(str::to_owned)
    }

    /// Why nothing can be told of a recorded process.
    fn doubt(&self, ident: &Identity, why: String) -> Doubt {
        let other_space = match (ident, self.here.space()) {
            (Identity::Linux(linux), Some(space)) => {
                let own = space.split('+').next().map(str::to_owned);
                own != Some(linux.pidns.to_string())
            }
            _ => false,
        };
        let reason = match self.here.distrust() {
            Some(_) => "foreign_proc",
            None if other_space => "other_namespace",
            None => "unreadable",
        };
        Doubt { reason, why }
    }
}

/// Whether the live process `pid` still runs what the record says.
fn role(claim: &Claim, pid: Pid) -> Role {
    let now = Program::read(pid, false);
    match runs_the_same(claim.exe.as_deref(), claim.argv.as_deref(), &now) {
        Some(true) => Role::Same,
        Some(false) => Role::Changed,
        None => Role::Unknown(Doubt {
            reason: "role_unknown",
            why: "program and arguments are not both in the record, or cannot be read".to_owned(),
        }),
    }
}

/// A pane's working directory, where its server is the one to ask.
pub fn pane_cwd(pane: &Pane) -> Option<String> {
    use std::os::unix::ffi::OsStrExt;
    let cwd = pane.cwd.as_ref()?;
    Some(lossy(cwd.as_os_str().as_bytes()).0)
}

fn find<'l>(listing: &'l Listing, id: &str) -> Option<&'l Pane> {
    listing.panes.iter().find(|pane| pane.id == id)
}
