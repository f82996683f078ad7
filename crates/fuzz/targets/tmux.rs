//! What tmux writes: its list of panes, and the lines of its control mode.

#![no_main]

use std::collections::HashSet;

use eventwait::fuzzing::{Data, Line, Reader};
use libfuzzer_sys::fuzz_target;
use mux::{Found, tmux};

fuzz_target!(|bytes: &[u8]| {
    if let Some(listing) = tmux::listed(bytes) {
        let mut seen = HashSet::new();
        for pane in &listing.panes {
            assert!(occurs(pane.id.as_bytes(), bytes), "{}", pane.id);
            assert!(seen.insert(&pane.id), "{} is there twice", pane.id);
            assert_eq!(listing.find(&pane.id), Found::One(pane));
        }
    }
    let mut reader = Reader::default();
    for line in bytes.split(|&byte| byte == b'\n') {
        look_at(reader.take(line), line);
    }
});

fn look_at(line: Line, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match line {
        Line::Nothing | Line::Done | Line::Refused(_) => {}
        Line::List(_, panes) => {
            assert!(!panes.is_empty());
            for pane in panes {
                assert!(pane.id.starts_with('%'));
                assert!(pane.is_dead || !pane.is_explained());
            }
        }
        Line::Notice { name, data, .. } => {
            assert!(name == "output" || text.starts_with(&format!("%{name}")));
            assert!(data.pane().is_none_or(|pane| text.contains(pane)));
            if let Data::Output { text: said, .. } = &data {
                // An escape is four bytes for one, and what is no UTF-8 three for one.
                assert!(said.len() <= 3 * text.len());
            }
            let json = serde_json::to_string(&data).expect("it can be written");
            assert!(!json.contains('\n'));
        }
    }
}

fn occurs(word: &[u8], bytes: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}
