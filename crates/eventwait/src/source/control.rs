//! The lines of tmux's control mode, tmux(1). Pure.

use process::Pid;
use serde::Serialize;

/// Has tmux list all panes of the server.
pub const LIST: &str = "list-panes -a -F 'muxutils,#{pid},#{pane_id},#{pane_pid},#{pane_dead},\
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

/// What an event says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Data {
    /// A pane's process has ended.
    Exited {
        /// The pane.
        pane: String,
        /// Its process.
        pid: Option<Pid>,
        /// With which code it ended.
        code: Option<i32>,
        /// By which signal it ended.
        signal: Option<String>,
    },
    /// A pane has printed something.
    Output {
        /// The pane.
        pane: String,
        /// What it has printed.
        text: String,
    },
    /// Anything else, by what it names.
    Notice {
        /// A session, by its id.
        session: Option<String>,
        /// A window, by its id.
        window: Option<String>,
        /// A pane, by its id.
        pane: Option<String>,
        /// All words of the notification.
        args: Vec<String>,
    },
}

impl Data {
    /// The pane that it is about.
    pub fn pane(&self) -> Option<&str> {
        match self {
            Data::Exited { pane, .. } | Data::Output { pane, .. } => Some(pane),
            Data::Notice { pane, .. } => pane.as_deref(),
        }
    }
}

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
    /// A command has been carried out.
    Done,
    /// All panes, and the process of the server that has them.
    List(Option<Pid>, Vec<Listed>),
    /// A command was refused, in these words.
    Refused(String),
    /// A notification.
    Notice {
        /// Its name, without the percent sign.
        name: String,
        /// What it says.
        data: Data,
        /// Whether the panes should be listed.
        changes: bool,
    },
}

/// Puts lines together: an answer stands between `%begin` and `%end` or `%error`.
#[derive(Debug, Default)]
pub struct Reader {
    answer: Option<Answer>,
}

#[derive(Debug, Default)]
struct Answer {
    server: Option<Pid>,
    panes: Vec<Listed>,
    /// Its last other line.
    text: String,
}

impl Reader {
    /// Takes the next line.
    pub fn take(&mut self, line: &[u8]) -> Line {
        let text = String::from_utf8_lossy(line);
        let (name, rest) = text.split_once(' ').unwrap_or((&text, ""));
        if self.answer.is_some() {
            return self.answered(name, &text);
        }
        match name.strip_prefix('%') {
            None | Some("end" | "error" | "exit") => Line::Nothing,
            Some("begin") => {
                self.answer = Some(Answer::default());
                Line::Nothing
            }
            Some("output") => {
                let (pane, text) = rest.split_once(' ').unwrap_or((rest, ""));
                output(pane, text)
            }
            Some("extended-output") => {
                let (head, text) = rest.split_once(" : ").unwrap_or((rest, ""));
                output(head.split(' ').next().unwrap_or_default(), text)
            }
            Some(name) => {
                let words = rest.split(' ').filter(|word| !word.is_empty());
                let args: Vec<String> = words.map(str::to_owned).collect();
                let of = |sign| args.iter().find(|word| is_id(word, sign)).cloned();
                Line::Notice {
                    name: name.to_owned(),
                    changes: CHANGES.contains(&name),
                    data: Data::Notice {
                        session: of('$'),
                        window: of('@'),
                        pane: of('%'),
                        args,
                    },
                }
            }
        }
    }

    /// Takes a line of an answer.
    fn answered(&mut self, name: &str, line: &str) -> Line {
        let Some(answer) = &mut self.answer else {
            return Line::Nothing;
        };
        match name {
            "%end" | "%error" => {
                let answer = std::mem::take(answer);
                self.answer = None;
                // Every server has a pane, so that an answer without one is another command's.
                match (name, answer.panes.is_empty()) {
                    ("%error", _) => Line::Refused(answer.text),
                    (_, true) => Line::Done,
                    (_, false) => Line::List(answer.server, answer.panes),
                }
            }
            _ => {
                match listed(line) {
                    Some((server, pane)) => {
                        answer.server = server;
                        answer.panes.push(pane);
                    }
                    None => line.clone_into(&mut answer.text),
                }
                Line::Nothing
            }
        }
    }
}

fn output(pane: &str, text: &str) -> Line {
    Line::Notice {
        name: "output".to_owned(),
        data: Data::Output {
            pane: pane.to_owned(),
            text: unescaped(text),
        },
        changes: false,
    }
}

fn is_id(word: &str, sign: char) -> bool {
    let digits = word.strip_prefix(sign).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn listed(line: &str) -> Option<(Option<Pid>, Listed)> {
    let fields: Vec<&str> = line.strip_prefix(LISTED)?.split(',').collect();
    let [server, id, pid, dead, code, signal] = fields[..] else {
        return None;
    };
    let process = |text: &str| text.parse::<i64>().ok().and_then(Pid::new);
    let is_dead = !matches!(dead, "" | "0");
    let number = |text: &str| text.parse().ok().filter(|_| is_dead);
    let pane = Listed {
        id: is_id(id, '%').then(|| id.to_owned())?,
        pid: process(pid),
        is_dead,
        code: number(code),
        signal: number(signal).filter(|signal| *signal != 0),
    };
    Some((process(server), pane))
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
                r#"{"pane":"%4","text":"hello\r\n\\n"}"#,
                false,
            ),
            (
                "%extended-output %4 12 : a : b",
                "output",
                r#"{"pane":"%4","text":"a : b"}"#,
                false,
            ),
            ("%output %4", "output", r#"{"pane":"%4","text":""}"#, false),
            (
                "%window-pane-changed @1 %3",
                "window-pane-changed",
                r#"{"session":null,"window":"@1","pane":"%3","args":["@1","%3"]}"#,
                true,
            ),
            (
                "%session-changed $0 one",
                "session-changed",
                r#"{"session":"$0","window":null,"pane":null,"args":["$0","one"]}"#,
                false,
            ),
            (
                "%sessions-changed",
                "sessions-changed",
                r#"{"session":null,"window":null,"pane":null,"args":[]}"#,
                true,
            ),
        ];
        for (line, name, json, lists) in table {
            let Line::Notice {
                name: is,
                data,
                changes,
            } = only(line)
            else {
                panic!("{line}");
            };
            assert_eq!((is.as_str(), changes), (name, lists), "{line}");
            assert_eq!(serde_json::to_string(&data).unwrap(), json);
        }
        assert_eq!(only("%exit"), Line::Nothing);
    }

    #[test]
    fn a_list_stands_between_begin_and_end() {
        let mut reader = Reader::default();
        let mut take = |line: &str| reader.take(line.as_bytes());
        assert_eq!(take("%begin 1 2 0"), Line::Nothing);
        assert_eq!(take("%end 1 2 0"), Line::Done);
        assert_eq!(take("%begin 1 3 1"), Line::Nothing);
        for line in ["%0,77,0,,", "%1,78,1,3,", "%2,79,1,,9"] {
            assert_eq!(take(&format!("muxutils,55,{line}")), Line::Nothing);
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
        assert_eq!(take("%end 1 3 1"), Line::List(Pid::new(55), want));
        // A refusal is no list.
        assert_eq!(take("%begin 1 4 1"), Line::Nothing);
        assert_eq!(take("can't find pane: %9"), Line::Nothing);
        let why = "can't find pane: %9".to_owned();
        assert_eq!(take("%error 1 4 1"), Line::Refused(why));
    }
}
