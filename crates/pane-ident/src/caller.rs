//! Who asks: this process, its parent, and so on.

use process::{Pid, Reader};

/// More ancestors than a process has, so that a table that changes while it is read ends this.
const MOST: usize = 4096;

/// This process and its ancestors, nearest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller(Vec<Pid>);

impl Caller {
    /// Reads the chain, from this process up.
    pub fn read() -> Caller {
        let mut reader = Reader::new();
        let mut chain = vec![Pid::own()];
        while let Some(&last) = chain.last() {
            let parent = reader.entry(last).ok().map(|entry| entry.ppid);
            match parent.and_then(|ppid| Pid::new(ppid.into())) {
                Some(parent) if chain.len() < MOST && !chain.contains(&parent) => {
                    chain.push(parent);
                }
                _ => break,
            }
        }
        Caller(chain)
    }

    /// How far up `pid` is: 0 for this process itself; `None` if it is no ancestor.
    pub fn distance(&self, pid: Pid) -> Option<usize> {
        self.0.iter().position(|&ancestor| ancestor == pid)
    }

    /// Whether `pid` is this process or an ancestor of it.
    pub fn includes(&self, pid: Pid) -> bool {
        self.distance(pid).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_goes_up_from_here() {
        let caller = Caller::read();
        let parent = Pid::new(std::os::unix::process::parent_id().into()).unwrap();
        assert_eq!(caller.distance(Pid::own()), Some(0));
        assert_eq!(caller.distance(parent), Some(1));
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = Pid::new(child.id().into()).unwrap();
        assert!(!caller.includes(pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
