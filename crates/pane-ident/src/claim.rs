//! What a record claims: a pane, a process, and what else can be compared.

use std::ffi::OsString;

use process::Identity;
use records::Record;

use crate::servers::{Kind, ServerKey};

/// What one record claims. A record that names neither a pane nor an identity claims nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The pane.
    pub address: Option<Address>,
    /// The process.
    pub ident: ClaimedIdent,
    /// The process of the pane's server.
    pub server: Option<Identity>,
    /// The host it was recorded on.
    pub host: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// What people call the pane.
    pub label: Option<String>,
    /// The program.
    pub exe: Option<String>,
    /// Its arguments.
    pub argv: Option<Vec<String>>,
}

/// A pane's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The pane, as the record writes it.
    pub pane: String,
    /// Its server; the text says why there is none that can be asked.
    pub server: Result<ServerKey, String>,
}

/// The identity in a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClaimedIdent {
    /// None: the record is older than bindings.
    #[default]
    None,
    /// Something that is none; the text says why.
    Bad(String),
    /// This one.
    Known(Identity),
}

/// By what a record without an identity can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum LegacyKey {
    /// The working directory.
    Cwd,
    /// What people call the pane.
    Label,
}

impl Claim {
    /// What `record` claims; `None` if that is nothing.
    pub fn of(record: &Record<'_>) -> Option<Claim> {
        let address = address(record);
        let ident = ident(record);
        if address.is_none() && ident == ClaimedIdent::None {
            return None;
        }
        let text = |key: &str| record.str(key).map(std::borrow::Cow::into_owned);
        Some(Claim {
            address,
            ident,
            server: record
                .str("server.ident")
                .and_then(|word| word.parse().ok()),
            host: text("host"),
            cwd: text("cwd"),
            label: text("label"),
            exe: text("exe"),
            argv: record.decode_at("argv").ok().flatten(),
        })
    }

    /// The pane that the record names.
    pub fn pane(&self) -> Option<&str> {
        self.address.as_ref().map(|address| address.pane.as_str())
    }
}

fn ident(record: &Record<'_>) -> ClaimedIdent {
    if !record.has("ident") {
        return ClaimedIdent::None;
    }
    let Some(word) = record.str("ident") else {
        return ClaimedIdent::Bad("the record's ident is not a string".to_owned());
    };
    let ident: Identity = match word.parse() {
        Ok(ident) => ident,
        Err(error) => return ClaimedIdent::Bad(format!("{error}")),
    };
    let pid = u64::try_from(ident.pid().get()).ok();
    if record.has("pid") && record.u64("pid") != pid {
        let why = "the record's pid is not that of its ident";
        return ClaimedIdent::Bad(why.to_owned());
    }
    ClaimedIdent::Known(ident)
}

fn address(record: &Record<'_>) -> Option<Address> {
    let pane = match record.str("pane") {
        Some(pane) => pane.into_owned(),
        // kitty's ids are numbers.
        None => record.u64("pane")?.to_string(),
    };
    if pane.is_empty() {
        return None;
    }
    let kind = match record.str("mux") {
        Some(name) => Kind::of(&name).ok_or_else(|| format!("no multiplexer is called '{name}'")),
        None => by_form(&pane).ok_or_else(|| format!("no multiplexer is named for pane '{pane}'")),
    };
    let server = kind.and_then(|kind| {
        let socket = socket(record)?;
        Ok(ServerKey { kind, socket })
    });
    Some(Address { pane, server })
}

/// The socket of the record's server, where it names one. One that cannot be meant is refused: to
/// ask another server, or none, would make a live pane look as if it were lost.
fn socket(record: &Record<'_>) -> Result<Option<OsString>, String> {
    if !record.has("server") {
        return Ok(None);
    }
    if record
        .get("server")
        .is_some_and(|server| !server.get().starts_with('{'))
    {
        return Err("the record's server is no object".to_owned());
    }
    if !record.has("server.socket") {
        return Ok(None);
    }
    match record.str("server.socket") {
        None => Err("the socket of the record's server is not a string".to_owned()),
        Some(socket) if socket.is_empty() => {
            Err("the socket of the record's server is empty".to_owned())
        }
        // Bytes that could not be shown are lost.
        Some(socket) if record.bool("lossy") == Some(true) && socket.contains('\u{fffd}') => {
            Err("the path of the server's socket is not UTF-8".to_owned())
        }
        Some(socket) => Ok(Some(socket.into_owned().into())),
    }
}

/// The multiplexer whose ids are of the form of `pane`, for records that do not name it.
fn by_form(pane: &str) -> Option<Kind> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if pane.strip_prefix(['%', '@']).is_some_and(digits) {
        return Some(Kind::Tmux);
    }
    let number = |text: &str| {
        let digit = |b: u8| b.is_ascii_digit() || b.is_ascii_uppercase();
        !text.is_empty() && text.bytes().all(digit)
    };
    let (workspace, pane) = pane.split_once(':')?;
    let is_herdr = workspace.strip_prefix('w').is_some_and(number)
        && pane.strip_prefix('p').is_some_and(number);
    is_herdr.then_some(Kind::Herdr)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENT: &str = "linux:0c8f4a2e-1f6b-4f0f-9d55-0b1b5a6c7d8e:4026531836:4242:981234:0";

    fn claim(line: &str) -> Option<Claim> {
        let line = line.replace("IDENT", IDENT);
        Claim::of(&Record::parse(line.as_bytes()).unwrap())
    }

    #[test]
    fn identities_in_records() {
        let known = ClaimedIdent::Known(IDENT.parse().unwrap());
        let table = [
            (r#"{"ident":"IDENT"}"#, Some(&known)),
            (r#"{"ident":"IDENT","pid":4242,"type":"x"}"#, Some(&known)),
            (r#"{"ident":"IDENT","pid":null}"#, Some(&known)),
            (r#"{"pane":"%1"}"#, Some(&ClaimedIdent::None)),
            (r#"{"pane":"%1","ident":null}"#, Some(&ClaimedIdent::None)),
            // A bad number or word is a refusal, not a record without identity.
            (r#"{"ident":"IDENT","pid":4243}"#, None),
            (r#"{"ident":"IDENT","pid":0}"#, None),
            (r#"{"ident":"IDENT","pid":-1}"#, None),
            (r#"{"ident":"IDENT","pid":"4242"}"#, None),
            (r#"{"ident":"IDENT","pid":4242.0}"#, None),
            (r#"{"ident":"","pane":"%1"}"#, None),
            (r#"{"ident":17,"pane":"%1"}"#, None),
            (r#"{"ident":"linux:1:2:3","pane":"%1"}"#, None),
        ];
        for (line, expected) in table {
            let ident = claim(line).unwrap().ident;
            match expected {
                Some(expected) => assert_eq!(&ident, expected, "{line}"),
                None => assert!(matches!(ident, ClaimedIdent::Bad(_)), "{line}: {ident:?}"),
            }
        }
        for line in [
            r#"{"task":"a"}"#,
            r#"{"pane":null}"#,
            r#"{"pane":""}"#,
            "{}",
        ] {
            assert_eq!(claim(line), None, "{line}");
        }
    }

    #[test]
    fn addresses_in_records() {
        let table = [
            (r#"{"mux":"tmux","pane":"a:b"}"#, Some((Kind::Tmux, None))),
            (
                r#"{"mux":"herdr","pane":"w1:p1","server":{"socket":"/s"}}"#,
                Some((Kind::Herdr, Some("/s"))),
            ),
            (r#"{"mux":"kitty","pane":7}"#, Some((Kind::Kitty, None))),
            (r#"{"pane":"%12"}"#, Some((Kind::Tmux, None))),
            (r#"{"pane":"@0"}"#, Some((Kind::Tmux, None))),
            (r#"{"pane":"w1:pA","mux":null}"#, Some((Kind::Herdr, None))),
            (r#"{"pane":"work:plan"}"#, None),
            (r#"{"pane":"%1x"}"#, None),
            (r#"{"pane":"7"}"#, None),
            (r#"{"mux":"zellij","pane":"%1"}"#, None),
        ];
        for (line, expected) in table {
            let server = claim(line).unwrap().address.unwrap().server;
            let expected = expected.map(|(kind, socket)| ServerKey {
                kind,
                socket: socket.map(Into::into),
            });
            assert_eq!(server.ok(), expected, "{line}");
        }
    }

    #[test]
    fn servers_in_records() {
        let table = [
            ("null", Ok(None)),
            ("{}", Ok(None)),
            (r#"{"socket":null}"#, Ok(None)),
            (r#"{"socket":"/s"}"#, Ok(Some("/s"))),
            (r#"{"socket":"name","ident":7}"#, Ok(Some("name"))),
            // Not what a record that was made by a script with an unset variable means.
            (r#"{"socket":""}"#, Err(())),
            (r#"{"socket":7}"#, Err(())),
            (r#""/s""#, Err(())),
            ("[]", Err(())),
        ];
        for (server, expected) in table {
            let line = format!(r#"{{"mux":"tmux","pane":"%0","server":{server}}}"#);
            let key = claim(&line).unwrap().address.unwrap().server;
            let socket = key.map(|key| key.socket).map_err(|_| ());
            assert_eq!(socket, expected.map(|s| s.map(OsString::from)), "{server}");
        }
        for (lossy, is_known) in [(true, false), (false, true)] {
            let server = "\"server\":{\"socket\":\"/\u{fffd}\"}";
            let line = format!(r#"{{"mux":"tmux","pane":"%0","lossy":{lossy},{server}}}"#);
            let key = claim(&line).unwrap().address.unwrap().server;
            assert_eq!(key.is_ok(), is_known, "{line}");
        }
    }

    #[test]
    fn what_else_is_compared() {
        let line = r#"{"pane":"%1","cwd":"/a","label":"l","exe":"/x","argv":["a","b"],"host":"h"}"#;
        let all = claim(line).unwrap();
        assert_eq!(all.cwd.as_deref(), Some("/a"));
        assert_eq!(all.argv, Some(vec!["a".to_owned(), "b".to_owned()]));
        let none = claim(r#"{"pane":"%1","cwd":null,"label":7,"argv":"a b"}"#).unwrap();
        assert_eq!((none.cwd, none.label, none.argv), (None, None, None));
    }
}
