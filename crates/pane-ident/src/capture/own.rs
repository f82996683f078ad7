//! The pane that this runs in: what the environment says, and whether that is still true.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::{Binding, Capture};
use crate::caller::Caller;
use crate::servers::{Kind, ServerKey};
use records::{Failure, Status};

/// What an environment says of the pane that it was made for.
#[derive(Debug, PartialEq, Eq)]
struct Hint {
    kind: Kind,
    pane: String,
    socket: OsString,
}

/// What the environment says. Several can be there, one for each multiplexer that runs in another
/// one's pane.
fn hints(env: impl Fn(&str) -> Option<OsString>) -> Vec<Hint> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    let text = |name: &str| set(name)?.into_string().ok();
    let hint = |kind, pane: Option<String>, socket: Option<OsString>| {
        let (pane, socket) = pane.zip(socket)?;
        Some(Hint { kind, pane, socket })
    };
    let tmux = set("TMUX").and_then(|tmux| tmux_socket(&tmux));
    [
        hint(Kind::Herdr, text("HERDR_PANE_ID"), set("HERDR_SOCKET_PATH")),
        hint(Kind::Tmux, text("TMUX_PANE"), tmux),
        hint(Kind::Kitty, text("KITTY_WINDOW_ID"), set("KITTY_LISTEN_ON")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The socket in `TMUX`, which is `SOCKET,SERVER_PID,SESSION`; the path itself may have commas.
fn tmux_socket(tmux: &OsStr) -> Option<OsString> {
    let mut from_the_end = tmux.as_bytes().rsplitn(3, |&byte| byte == b',');
    let socket = from_the_end.nth(2)?;
    (!socket.is_empty()).then(|| OsStr::from_bytes(socket).to_owned())
}

impl Capture<'_> {
    /// Binds the pane that this runs in. Of several the innermost: the one whose process is the
    /// nearest ancestor. A variable that is inherited from a pane which is gone, and whose id is a
    /// stranger's by now, is found out by that.
    pub(super) fn own_pane(&self) -> Result<Binding, Failure> {
        let hints = hints(|name| std::env::var_os(name));
        if hints.is_empty() {
            return Err(Failure::no(
                "not in a pane: the environment names none of herdr, tmux or kitty",
            ));
        }
        let caller = Caller::read();
        let mut nearest: Option<(usize, Binding)> = None;
        let mut stale = Vec::new();
        for hint in hints {
            // kitty is a terminal and runs in nobody's pane: within another's it is not the
            // innermost, and need not answer.
            if hint.kind == Kind::Kitty && nearest.is_some() {
                break;
            }
            let key = ServerKey {
                kind: hint.kind,
                socket: Some(hint.socket),
            };
            let server = self.args.servers.open(&key).map_err(Failure::unknown)?;
            let binding = match self.pane(server.as_ref(), &hint.pane) {
                Ok(binding) => binding,
                Err(failure) if failure.status() == Status::No => {
                    stale.push(failure.message().to_owned());
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            match caller.distance(binding.pid) {
                Some(distance) if nearest.as_ref().is_none_or(|(least, _)| distance < *least) => {
                    nearest = Some((distance, binding));
                }
                Some(_) => {}
                None => stale.push(format!(
                    "the process of pane {}, {}, is no ancestor of this one",
                    hint.pane, binding.pid
                )),
            }
        }
        match nearest {
            Some((_, binding)) => Ok(binding),
            None => Err(Failure::no(format_args!(
                "stale_environment: {}",
                stale.join("; ")
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_environment_says() {
        let hints_of = |vars: &[(&str, &str)]| {
            hints(|name| {
                let var = vars.iter().find(|(known, _)| *known == name);
                var.map(|(_, value)| OsString::from(value))
            })
            .into_iter()
            .map(|hint| (hint.kind, hint.pane, hint.socket.into_string().unwrap()))
            .collect::<Vec<_>>()
        };
        let is = |kind, pane: &str, socket: &str| (kind, pane.to_owned(), socket.to_owned());
        let tmux = [("TMUX", "/tmp/a,b/default,77,0"), ("TMUX_PANE", "%5")];
        assert_eq!(hints_of(&tmux), [is(Kind::Tmux, "%5", "/tmp/a,b/default")]);
        let herdr = [("HERDR_PANE_ID", "w1:p2"), ("HERDR_SOCKET_PATH", "/s")];
        assert_eq!(hints_of(&herdr), [is(Kind::Herdr, "w1:p2", "/s")]);
        assert_eq!(hints_of(&[&tmux[..], &herdr[..]].concat()).len(), 2);
        for half in [&tmux[..1], &tmux[1..], &herdr[..1], &herdr[1..], &[]] {
            assert_eq!(hints_of(half), [], "{half:?}");
        }
        for odd in ["odd", "/s", "/s,1", ",1,0"] {
            assert_eq!(hints_of(&[("TMUX", odd), ("TMUX_PANE", "%5")]), [], "{odd}");
        }
        let bytes = OsStr::from_bytes(b"/\xff,77,0");
        assert_eq!(tmux_socket(bytes).unwrap(), OsStr::from_bytes(b"/\xff"));
    }
}
