//! The lines of tmux's control mode, tmux(1). Pure.

use process::Pid;
use serde_json::{Value, json};

/// Has tmux tell when a pane of the attached session dies or is given another process.
pub const SUBSCRIBE: &str = "refresh-client -B 'muxutils:%*:#{pane_dead} #{pane_pid}'\n";

/// Has tmux list all panes of the server.
pub const LIST: &str = "list-panes -a -F 'muxutils,#{pane_id},#{pane_pid},#{pane_dead},\
     #{pane_dead_status},#{pane_dead_signal}'\n";

/// How a line of the list begins.
const LISTED: &str = "muxutils,";

/// Notifications after which another pane may be gone.
const CHANGES: [&str; 7] = [
    "layout-change",
    "window-close",
    "unlinked-window-close",
    "window-pane-changed",
    "session-window-changed",
    "sessions-changed",
    "window-add",
];

/// A pane in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// `%N`.
    pub id: String,
    /// The process that the pane was made for.
    pub pid: Option<Pid>,
    /// Whether that has ended and the pane was kept.
    pub is_dead: bool,
    /// With which code it ended.
    pub code: Option<i32>,
    /// By which signal it ended.
    pub signal: Option<i32>,
}

impl Listed {
    /// Whether tmux knows how the process ended.
    pub fn is_explained(&self) -> bool {
        self.code.is_some() || self.signal.is_some()
    }
}

/// What a line means.
#[derive(Debug, PartialEq)]
pub enum Line {
    /// Nothing yet, or nothing at all.
    Nothing,
    /// The panes should be listed.
    Changed,
    /// All panes.
    List(Vec<Listed>),
    /// A notification.
    Notice {
        /// Its name, without the percent sign.
        name: String,
        /// What it says.
        data: Value,
        /// Whether the panes should be listed.
        changes: bool,
    },
}

/// Puts lines together: an answer stands between `%begin` and `%end` or `%error`.
#[derive(Debug, Default)]
pub struct Reader {
    answer: Option<Vec<Listed>>,
}

impl Reader {
    /// Takes the next line.
    pub fn take(&mut self, line: &[u8]) -> Line {
        let text = String::from_utf8_lossy(line);
        let (name, rest) = text.split_once(' ').unwrap_or((&text, ""));
        if let Some(answer) = &mut self.answer {
            match name {
                "%end" | "%error" => {
                    let answer = self.answer.take().unwrap_or_default();
                    // Every server has a pane, so that an answer without one is another's.
                    return if answer.is_empty() {
                        Line::Nothing
                    } else {
                        Line::List(answer)
                    };
                }
                _ => answer.extend(listed(&text)),
            }
            return Line::Nothing;
        }
        match name.strip_prefix('%') {
            None | Some("end" | "error" | "exit") => Line::Nothing,
            Some("begin") => {
                self.answer = Some(Vec::new());
                Line::Nothing
            }
            Some("subscription-changed") => Line::Changed,
            Some("output") => {
                let (pane, text) = rest.split_once(' ').unwrap_or((rest, ""));
                let data = json!({ "pane": pane, "text": unescaped(text) });
                notice("output", data)
            }
            Some("extended-output") => {
                let (head, text) = rest.split_once(" : ").unwrap_or((rest, ""));
                let pane = head.split(' ').next();
                notice("output", json!({ "pane": pane, "text": unescaped(text) }))
            }
            Some(name) => {
                let words: Vec<&str> = rest.split(' ').filter(|word| !word.is_empty()).collect();
                let of = |sign| words.iter().find(|word| is_id(word, sign));
                let data = json!({
                    "session": of('$'),
                    "window": of('@'),
                    "pane": of('%'),
                    "args": words,
                });
                notice(name, data)
            }
        }
    }
}

fn notice(name: &str, data: Value) -> Line {
    Line::Notice {
        name: name.to_owned(),
        data,
        changes: CHANGES.contains(&name),
    }
}

fn is_id(word: &str, sign: char) -> bool {
    let digits = word.strip_prefix(sign).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn listed(line: &str) -> Option<Listed> {
    let fields: Vec<&str> = line.strip_prefix(LISTED)?.split(',').collect();
    let [id, pid, dead, code, signal] = fields[..] else {
        return None;
    };
    let is_dead = !matches!(dead, "" | "0");
    let number = |text: &str| text.parse().ok().filter(|_| is_dead);
    Some(Listed {
        id: is_id(id, '%').then(|| id.to_owned())?,
        pid: pid.parse::<i64>().ok().and_then(Pid::new),
        is_dead,
        code: number(code),
        signal: number(signal).filter(|signal| *signal != 0),
    })
}

/// The text of an output, in which tmux writes control characters and backslashes as `\ooo`.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        let octal = others.get(..3).filter(|_| *first == b'\\');
        let octal = octal.and_then(|digits| str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[3..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(line: &str) -> Line {
        Reader::default().take(line.as_bytes())
    }

    #[test]
    fn notifications_become_objects() {
        let table = [
            (
                "%output %4 hello\\015\\012\\134n",
                "output",
                json!({"pane": "%4", "text": "hello\r\n\\n"}),
                false,
            ),
            (
                "%extended-output %4 12 : a : b",
                "output",
                json!({"pane": "%4", "text": "a : b"}),
                false,
            ),
            (
                "%window-pane-changed @1 %3",
                "window-pane-changed",
                json!({"session": null, "window": "@1", "pane": "%3", "args": ["@1", "%3"]}),
                true,
            ),
            (
                "%session-changed $0 one",
                "session-changed",
                json!({"session": "$0", "window": null, "pane": null, "args": ["$0", "one"]}),
                false,
            ),
            (
                "%sessions-changed",
                "sessions-changed",
                json!({"session": null, "window": null, "pane": null, "args": []}),
                true,
            ),
        ];
        for (line, name, data, changes) in table {
            let name = name.to_owned();
            assert_eq!(
                only(line),
                Line::Notice {
                    name,
                    data,
                    changes
                },
                "{line}"
            );
        }
        assert_eq!(
            only("%subscription-changed muxutils $0 @1 1 %1 : 1 3"),
            Line::Changed
        );
        assert_eq!(only("%exit"), Line::Nothing);
        assert_eq!(
            only("%output %4"),
            notice("output", json!({"pane": "%4", "text": ""}))
        );
    }

    #[test]
    fn a_list_stands_between_begin_and_end() {
        let mut reader = Reader::default();
        let mut take = |line: &str| reader.take(line.as_bytes());
        for line in ["%begin 1 2 0", "%end 1 2 0", "%begin 1 3 1"] {
            assert_eq!(take(line), Line::Nothing);
        }
        for line in [
            "muxutils,%0,77,0,,",
            "muxutils,%1,78,1,3,",
            "muxutils,%2,79,1,,9",
            "x",
        ] {
            assert_eq!(take(line), Line::Nothing);
        }
        let pane = |id: &str, pid, is_dead, code, signal| Listed {
            id: id.to_owned(),
            pid: Pid::new(pid),
            is_dead,
            code,
            signal,
        };
        let want = vec![
            pane("%0", 77, false, None, None),
            pane("%1", 78, true, Some(3), None),
            pane("%2", 79, true, None, Some(9)),
        ];
        assert_eq!(take("%end 1 3 1"), Line::List(want));
        // A refusal is no list.
        assert_eq!(take("%begin 1 4 1"), Line::Nothing);
        assert_eq!(take("parse error"), Line::Nothing);
        assert_eq!(take("%error 1 4 1"), Line::Nothing);
    }
}
