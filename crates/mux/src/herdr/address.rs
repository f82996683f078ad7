//! Where herdr's socket is.

use std::ffi::OsString;
use std::path::PathBuf;

/// The socket that a client uses which is told nothing: `HERDR_SOCKET_PATH`, else that of the
/// session `HERDR_SESSION`, else that of the default session. `env` gives a variable's value.
pub fn default_socket(env: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    if let Some(socket) = set("HERDR_SOCKET_PATH") {
        return socket.into();
    }
    let config = match (set("XDG_CONFIG_HOME"), set("HOME")) {
        (Some(config), _) => PathBuf::from(config),
        (None, Some(home)) => PathBuf::from(home).join(".config"),
        (None, None) => std::env::temp_dir(),
    };
    let mut folder = config.join("herdr");
    if let Some(session) = set("HERDR_SESSION").filter(|name| name != "default") {
        folder = folder.join("sessions").join(session);
    }
    folder.join("herdr.sock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_set() {
        type Vars<'a> = &'a [(&'a str, &'a str)];
        let table: [(Vars, &str); 6] = [
            (&[("HOME", "/h")], "/h/.config/herdr/herdr.sock"),
            (
                &[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c")],
                "/c/herdr/herdr.sock",
            ),
            (
                &[("HOME", "/h"), ("HERDR_SESSION", "s")],
                "/h/.config/herdr/sessions/s/herdr.sock",
            ),
            (
                &[("HOME", "/h"), ("HERDR_SESSION", "default")],
                "/h/.config/herdr/herdr.sock",
            ),
            (
                &[("HERDR_SOCKET_PATH", "/x.sock"), ("HERDR_SESSION", "s")],
                "/x.sock",
            ),
            (
                &[("HOME", "/h"), ("HERDR_SOCKET_PATH", "")],
                "/h/.config/herdr/herdr.sock",
            ),
        ];
        for (vars, socket) in table {
            let env = |name: &str| {
                let var = vars.iter().find(|(known, _)| *known == name);
                var.map(|(_, value)| OsString::from(value))
            };
            assert_eq!(default_socket(env), PathBuf::from(socket), "{vars:?}");
        }
    }
}
