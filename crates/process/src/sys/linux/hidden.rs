//! Whether the table hides processes.

use std::fs;

/// `CAP_SYS_PTRACE`, capabilities(7): whoever has it sees every process.
const SYS_PTRACE: u32 = 19;

/// Why some processes do not even show up in the table, where that is so: `/proc` is mounted with
/// hidepid, proc(5), and this process is not exempt.
pub fn concealment() -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let groups = rustix::process::getgroups().unwrap_or_default();
    let mut groups: Vec<u32> = groups
        .into_iter()
        .map(rustix::process::Gid::as_raw)
        .collect();
    groups.push(rustix::process::getegid().as_raw());
    hides(&mounts, &status, &groups)
}

fn hides(mounts: &str, status: &str, groups: &[u32]) -> Option<String> {
    let proc = mounts
        .lines()
        .rfind(|line| line.split(' ').nth(4) == Some("/proc"))?;
    let options = proc.rsplit(' ').next()?;
    let option = |name: &str| {
        let mut options = options.split(',');
        options.find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    };
    let hidepid = option("hidepid").unwrap_or("0");
    let may_trace = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .is_some_and(|set| set >> SYS_PTRACE & 1 == 1);
    // The group of the mount is 0 where no other was given.
    let gid = option("gid").unwrap_or("0").parse().unwrap_or(0);
    let hidden = match hidepid {
        "2" | "invisible" => !may_trace && !groups.contains(&gid),
        "4" | "ptraceable" => !may_trace,
        _ => false,
    };
    hidden.then(|| format!("/proc is mounted with hidepid={hidepid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidepid_hides_from_those_who_may_not_trace() {
        let mount =
            |options: &str| format!("22 27 0:21 / /proc rw,relatime - proc proc {options}\n");
        let capable = "CapEff:\t000001ffffffffff\n";
        let plain = "CapEff:\t0000000000000000\n";
        let table = [
            ("rw", plain, false),
            ("rw,hidepid=2", plain, true),
            ("rw,hidepid=invisible", plain, true),
            ("rw,hidepid=ptraceable", plain, true),
            ("rw,hidepid=1", plain, false),
            ("rw,hidepid=2", capable, false),
            ("rw,gid=7,hidepid=2", plain, false),
            ("rw,gid=8,hidepid=2", plain, true),
        ];
        for (options, status, hidden) in table {
            let found = hides(&mount(options), status, &[7]);
            assert_eq!(found.is_some(), hidden, "{options}");
        }
        assert_eq!(hides("", plain, &[]), None);
    }
}
