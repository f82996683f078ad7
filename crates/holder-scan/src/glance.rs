//! One quick look at a process: whether it may have to do with the question. Next to nothing is
//! allocated for one that has not.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use agents::signs::{AGENTS, RESUME, SESSION_ID, Signs, id_in_path};
use memchr::memmem;
use process::{DescriptorInfo, FileId, Mounts, Pid, Reader, Unread, terminal_name};

use crate::claims;
use crate::evidence::{By, Evidence};
use crate::json;
use crate::live::{Request, Scope};
use crate::look::Look;
use crate::path;
use crate::program::{self, Program};
use crate::targets::FileTarget;

/// What a quick look saw.
#[derive(Clone, Debug, Default)]
pub struct Glance {
    /// The agent that the process calls itself.
    pub agent: Option<&'static Signs>,
    /// Whether its arguments may name what is asked for.
    pub is_near: bool,
    /// Whether it may be an agent under another name, and so have files of a session open.
    pub may_hold_files: bool,
    /// What speaks for its holding what is asked for beside sessions.
    pub found: Vec<Evidence>,
}

impl Glance {
    /// Whether it is worth a closer look.
    pub fn is_candidate(&self) -> bool {
        self.is_near || !self.found.is_empty()
    }
}

/// Looks quickly at one process after another.
pub struct Glancer<'a> {
    request: &'a Request<'a>,
    reader: Reader,
    own_uid: u32,
    marks: Marks,
    mounts: HashMap<PathBuf, Rc<Mounts>>,
    unread: HashSet<Pid>,
}

impl<'a> Glancer<'a> {
    /// For one question.
    pub fn new(request: &'a Request<'a>) -> Glancer<'a> {
        Glancer {
            request,
            reader: Reader::new(),
            own_uid: nix::unistd::geteuid().as_raw(),
            marks: Marks::new(),
            mounts: HashMap::new(),
            unread: HashSet::new(),
        }
    }

    /// Whether environments are wanted of those that are looked at closely.
    pub fn needs_env(&self) -> bool {
        let question = self.request.question;
        question.mentions || !question.criteria.envs.is_empty() || self.request.targets.needs_env()
    }

    /// Looks at `pid`; `None` if it is gone.
    pub fn glance(&mut self, pid: Pid, look: &mut Look) -> Option<Glance> {
        let mut glance = Glance::default();
        if self.needs_argv(pid) {
            match self.reader.raw_argv(pid) {
                Ok(raw) => glance = self.marks.look_at_argv(self.request, raw),
                Err(Unread::Gone) => return None,
                Err(why) => self.note(pid, why, look),
            }
        }
        if glance.is_near && self.request.scope == Scope::Asked && !self.request.question.mentions {
            glance.is_near = self.claims_what_is_asked(pid);
        }
        let targets = self.request.targets;
        if targets.needs_descriptors() {
            self.look_at_files(pid, &mut glance, look);
        }
        if targets.needs_cwd() {
            match self.reader.cwd(pid) {
                Ok(cwd) => self.look_at_cwd(&path::bytes_of(&cwd), &mut glance),
                Err(why) => self.note(pid, why, look),
            }
        }
        if targets.needs_env() || self.wants_mentions() {
            match self.reader.environ(pid) {
                Ok(environ) => self.look_at_env(&environ, &mut glance),
                Err(why) if targets.needs_env() => self.note(pid, why, look),
                Err(_) => {}
            }
        }
        if !targets.ttys.is_empty() {
            match self.reader.entry(pid) {
                Ok(entry) => {
                    let name = terminal_name(entry.tty);
                    if name.is_some_and(|name| targets.ttys.contains(&name)) {
                        glance.found.push(Evidence::by(By::Tty));
                    }
                }
                Err(Unread::Gone) => return None,
                Err(why) => self.note(pid, why, look),
            }
        }
        if self.request.scope == Scope::Holding && self.may_be_own(pid) {
            glance.is_near = true;
        }
        Some(glance)
    }

    fn needs_argv(&self, pid: Pid) -> bool {
        let (question, targets) = (self.request.question, self.request.targets);
        // What asks for ids names them, and holds none.
        let may_hold = pid != Pid::own() || question.mentions;
        (may_hold && !question.ids.is_empty())
            || !targets.args.is_empty()
            || targets.needs_cwd()
            || self.request.scope != Scope::Asked
    }

    /// Whether a process whose arguments have the bytes of an asked id in them claims it. Most that
    /// have are the shells and tools that ask.
    fn claims_what_is_asked(&mut self, pid: Pid) -> bool {
        let exe = self.reader.exe(pid).ok().map(|exe| path::bytes_of(&exe));
        let Ok(raw) = self.reader.raw_argv(pid) else {
            return false;
        };
        let words = raw.strip_suffix(b"\0").unwrap_or(raw);
        let argv: Vec<&[u8]> = words.split(|&byte| byte == 0).collect();
        let program = Program::of(&argv, exe.as_deref());
        let claims = claims::of_argv(&argv, &program);
        let mut claims = claims.iter();
        claims.any(|claim| self.request.question.ids.has(&claim.id))
    }

    fn wants_mentions(&self) -> bool {
        self.request.question.mentions && !self.request.question.ids.is_empty()
    }

    /// Whether the criteria may be met. Only what is cheap is asked here.
    fn may_be_own(&mut self, pid: Pid) -> bool {
        let criteria = &self.request.question.criteria;
        if !criteria.any() {
            return false;
        }
        let argv = self.reader.argv(pid).unwrap_or_default();
        let exe = self.reader.exe(pid).ok().map(|exe| path::bytes_of(&exe));
        let program = Program::of(&argv, exe.as_deref());
        criteria.args.iter().all(|text| program.is_called(text))
    }

    /// Something of `pid` could not be read.
    fn note(&mut self, pid: Pid, why: Unread, look: &mut Look) {
        if why == Unread::Gone || self.unread.contains(&pid) {
            return;
        }
        // The dead and the kernel's own have nothing to be read.
        let Ok(entry) = self.reader.entry(pid) else {
            return;
        };
        if self.reader.is_dead(&entry) || entry.kernel_thread {
            return;
        }
        self.unread.insert(pid);
        let uid = self.reader.uid(pid).ok();
        let asked = match self.request.question.uid {
            Some(asked) => uid == Some(asked),
            // Init is nobody's own, and sandboxes shield it even from root.
            None => !pid.is_init() && (self.own_uid == 0 || uid == Some(self.own_uid)),
        };
        if asked {
            look.unreadable += 1;
        } else {
            look.others_unseen += 1;
        }
    }

    fn look_at_files(&mut self, pid: Pid, glance: &mut Glance, look: &mut Look) {
        let targets = self.request.targets;
        let open = match self.reader.descriptors(pid) {
            Ok(open) => open,
            Err(why) => return self.note(pid, why, look),
        };
        for (fd, target) in open {
            let path = path::bytes_of(&target);
            if let Some(inode) = socket_inode(&path) {
                glance.found.extend(self.socket_evidence(inode, fd));
            } else if !targets.files.is_empty() && path.first() == Some(&b'/') {
                let mounts = self.mounts(pid);
                let info = self.reader.descriptor(pid, fd, &mounts).ok();
                let info = info.unwrap_or(DescriptorInfo {
                    file: None,
                    locked: false,
                });
                if targets
                    .files
                    .iter()
                    .any(|asked| is_open(asked, info.file, &path))
                {
                    glance.found.push(file_evidence(&path, &fd.to_string()));
                }
            }
        }
        if targets.files.is_empty() {
            return;
        }
        for link in ["cwd", "root", "exe"] {
            self.look_at_link(pid, link, glance, look);
        }
        match self.reader.mappings(pid) {
            Ok(mappings) => {
                for (file, path) in mappings {
                    let path = path::bytes_of(&path);
                    let is_exe = |seen: &Evidence| seen.fd.as_deref() == Some("exe");
                    if targets
                        .files
                        .iter()
                        .any(|asked| is_open(asked, Some(file), &path))
                        && !glance.found.iter().any(is_exe)
                    {
                        glance.found.push(file_evidence(&path, "mem"));
                    }
                }
            }
            Err(why) => self.note(pid, why, look),
        }
    }

    fn socket_evidence(&self, inode: u64, fd: i32) -> Option<Evidence> {
        let targets = self.request.targets;
        if let Some((path, is_client)) = targets.sockets.get(&inode) {
            let mut evidence = Evidence::open(By::Socket, path, Some(fd.to_string()));
            evidence.name = Some(if *is_client { "client" } else { "bound" }.to_owned());
            return Some(evidence);
        }
        let port = targets.ports.get(&inode)?;
        Some(Evidence {
            name: Some(port.to_string()),
            fd: Some(fd.to_string()),
            ..Evidence::by(By::Port)
        })
    }

    /// `cwd`, `root` and `exe` are told by name alone. Only one on the mount of the asked file,
    /// which has answered, is looked at itself.
    fn look_at_link(&mut self, pid: Pid, link: &str, glance: &mut Glance, look: &mut Look) {
        let target = match link {
            "cwd" => self.reader.cwd(pid),
            "root" => self.reader.root(pid),
            _ => self.reader.exe(pid),
        };
        let target = match target {
            Ok(target) => target,
            // A process without an executable is the kernel's own.
            Err(_) if link == "exe" => return,
            Err(why) => return self.note(pid, why, look),
        };
        let path = path::bytes_of(&target);
        for asked in &self.request.targets.files {
            let by_name = path == asked.kernel_path;
            if by_name || self.is_behind(pid, link, &target, asked) {
                glance.found.push(file_evidence(&path, link));
                return;
            }
        }
    }

    fn is_behind(&mut self, pid: Pid, link: &str, target: &Path, asked: &FileTarget) -> bool {
        let Some((by_descriptor, by_stat)) = asked.file else {
            return false;
        };
        self.mounts(pid).device_at(target) == Some(by_descriptor.device)
            && self.reader.linked_file(pid, link) == Ok(by_stat)
    }

    fn look_at_cwd(&self, cwd: &[u8], glance: &mut Glance) {
        let targets = self.request.targets;
        if targets.has_cwd(cwd) {
            glance
                .found
                .push(Evidence::open(By::Cwd, cwd, Some("cwd".to_owned())));
        }
    }

    fn look_at_env(&self, environ: &[Vec<u8>], glance: &mut Glance) {
        for pair in environ {
            let mut parts = pair.splitn(2, |&byte| byte == b'=');
            let (Some(name), Some(value)) = (parts.next(), parts.next()) else {
                continue;
            };
            let asked = |(key, wanted): &(Vec<u8>, Vec<u8>)| key == name && wanted == value;
            if self.request.targets.envs.iter().any(asked) {
                glance.found.push(Evidence::variable(name));
            }
            if self.wants_mentions() {
                glance.is_near |= self.request.question.ids.any_near(value);
            }
        }
    }

    /// The mounts that `pid` sees; of processes with the same ones they are read once.
    pub fn mounts(&mut self, pid: Pid) -> Rc<Mounts> {
        let space = self.reader.mount_space(pid).unwrap_or_default();
        if let Some(known) = self.mounts.get(&space) {
            return Rc::clone(known);
        }
        let read = self
            .reader
            .mounts(pid)
            .or_else(|_| self.reader.mounts(Pid::own()));
        let mounts = Rc::new(read.unwrap_or_default());
        self.mounts.insert(space, Rc::clone(&mounts));
        mounts
    }

    /// The session whose file `path` is.
    pub fn session_in<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        let path = path.strip_suffix(path::DELETED).unwrap_or(path);
        AGENTS
            .iter()
            .flat_map(|agent| agent.locks.iter().chain(agent.transcripts))
            .find_map(|pattern| id_in_path(pattern, path))
    }
}

/// How many arguments are looked at to see what a program is.
const LEADING: usize = 8;

/// Byte strings that are searched for in arguments.
struct Marks {
    escape: memmem::Finder<'static>,
    flags: [memmem::Finder<'static>; 2],
}

impl Marks {
    fn new() -> Marks {
        Marks {
            escape: memmem::Finder::new(b"\\u"),
            flags: [SESSION_ID, RESUME].map(memmem::Finder::new),
        }
    }

    /// Looks at the bytes of an argument list. Only the dead and the kernel's own have none.
    fn look_at_argv(&self, request: &Request<'_>, raw: &[u8]) -> Glance {
        if raw.is_empty() {
            return Glance::default();
        }
        let mut words = [&raw[..0]; LEADING];
        let mut count = 0;
        for (word, slot) in raw.split(|&byte| byte == 0).zip(&mut words) {
            *slot = word;
            count += 1;
        }
        let words = &words[..count];
        let agent = program::agent_of(words);
        let mut glance = Glance {
            agent,
            is_near: self.is_near(request, raw, agent.is_some()),
            may_hold_files: agent.is_some() || program::runs_scripts(words[0]) || is_rewritten(raw),
            ..Glance::default()
        };
        let targets = request.targets;
        if !targets.args.is_empty() {
            let named = |word: &[u8]| {
                let mut asked = targets.args.iter();
                asked.any(|text| text == word || text == program::base(word))
            };
            let words = raw.split(|&byte| byte == 0).enumerate();
            let found = words.filter(|(_, word)| named(word));
            glance
                .found
                .extend(found.map(|(index, _)| Evidence::at(By::Arg, index)));
        }
        if targets.needs_cwd() && raw.contains(&b'{') {
            glance.found.extend(
                configured_cwds(raw)
                    .filter(|(_, cwd)| targets.has_cwd(cwd))
                    .map(|(index, cwd)| Evidence {
                        index: Some(index),
                        ..Evidence::open(By::Cwd, &cwd, None)
                    }),
            );
        }
        glance
    }

    /// Whether arguments may name what is asked for. An id may be written with escapes in JSON.
    fn is_near(&self, request: &Request<'_>, raw: &[u8], is_agent: bool) -> bool {
        let ids = &request.question.ids;
        let named = ids.any_near(raw) || (!ids.is_empty() && self.escape.find(raw).is_some());
        let any = || is_agent || self.flags.iter().any(|flag| flag.find(raw).is_some());
        named || (request.scope == Scope::Holding && any())
    }
}

/// The working directories in the JSON arguments of a program that starts others, with the index
/// of each.
fn configured_cwds(raw: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    let argv: Vec<&[u8]> = raw.split(|&byte| byte == 0).collect();
    let only_names = Program::of(&argv, None).only_names();
    let arguments = argv
        .into_iter()
        .enumerate()
        .skip(1)
        .filter(move |_| !only_names);
    arguments
        .filter_map(|(index, argument)| {
            let cwd = json::Argument::parse(argument)?.cwd?;
            Some((index, path::trimmed(&cwd).to_vec()))
        })
        .collect::<Vec<_>>()
        .into_iter()
}

/// Whether a process has written a title over its arguments: they no longer end as the kernel has
/// set them up.
fn is_rewritten(raw: &[u8]) -> bool {
    !raw.ends_with(b"\0") || raw.ends_with(b"\0\0")
}

/// The inode in `socket:[INODE]`.
fn socket_inode(target: &[u8]) -> Option<u64> {
    let inode = target.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    str::from_utf8(inode).ok()?.parse().ok()
}

/// Whether an open file is the asked one: by device and inode; by name where the kernel does not
/// tell them, or where the asked one is gone.
fn is_open(asked: &FileTarget, file: Option<FileId>, path: &[u8]) -> bool {
    match (asked.file, file) {
        (Some((asked, _)), Some(file)) => asked == file,
        _ => path == asked.kernel_path,
    }
}

/// Evidence that a process has the asked file.
fn file_evidence(path: &[u8], fd: &str) -> Evidence {
    Evidence::open(By::File, path, Some(fd.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_and_sockets() {
        assert!(is_rewritten(b"pi\0\0\0"));
        assert!(is_rewritten(b"nginx: master"));
        assert!(!is_rewritten(b"a\0b\0"));
        assert_eq!(socket_inode(b"socket:[12]"), Some(12));
        assert_eq!(socket_inode(b"pipe:[12]"), None);
        assert_eq!(socket_inode(b"socket:[x]"), None);
    }
}
