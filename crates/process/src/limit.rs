//! The number of descriptors that this process may have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most that macOS takes, `OPEN_MAX`, whatever the hard limit says.
const OPEN_MAX: u64 = 10_240;

/// Raises the soft limit of open descriptors to the hard one, for a tool that holds a handle on
/// each of many processes. That it cannot be raised is no failure: what has no descriptor is
/// looked at in intervals. Not for a process that executes others, which would inherit it.
pub fn raise_descriptor_limit() {
    let now = getrlimit(Resource::Nofile);
    if now.current == now.maximum {
        return;
    }
    let raised = |to: Option<u64>| {
        let limit = Rlimit {
            current: to,
            maximum: now.maximum,
        };
        setrlimit(Resource::Nofile, limit).is_ok()
    };
    if !raised(now.maximum) {
        raised(Some(
            now.maximum.map_or(OPEN_MAX, |most| most.min(OPEN_MAX)),
        ));
    }
}
