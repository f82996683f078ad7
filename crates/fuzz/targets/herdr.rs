//! What herdr and kitty write: answers, and the lines of a stream of events.

#![no_main]

use eventwait::fuzzing::{Fields, Piece, Splitter, event};
use libfuzzer_sys::fuzz_target;
use mux::herdr::{self, Message};
use mux::kitty::fuzzing as kitty;

fuzz_target!(|bytes: &[u8]| {
    let mut lines = Splitter::new(1 << 12, 0);
    lines.feed(bytes);
    while let Some(piece) = lines.next_piece() {
        if let Piece::Line { bytes, .. } = piece {
            look_at(bytes);
        }
    }
    if let Some(Piece::Line { bytes, .. }) = lines.rest() {
        look_at(bytes);
    }
    for pane in kitty::windows(bytes).into_iter().flatten() {
        assert!(!pane.id.is_empty());
    }
});

fn look_at(line: &[u8]) {
    let Ok(message) = herdr::parse_message(line) else {
        return;
    };
    let text = String::from_utf8_lossy(line);
    match message {
        Message::Error { .. } => {}
        Message::Event { name, data } => {
            assert_eq!(herdr::event_name(&name), name);
            assert!(data.get() == "null" || text.contains(data.get()));
            let _ = Fields::of(&data);
            // What is said of it is one line, with the data as the server wrote them.
            let said = serde_json::to_string(&event(&name, &data, false)).expect("it is JSON");
            assert!(said.contains(data.get()) && !said.contains('\n'));
        }
        Message::Result(result) => {
            assert!(text.contains(result.get()));
            if let Some(pane) = Fields::of(&result).pane {
                let said = serde_json::to_string(&pane).expect("it is JSON");
                assert!(!said.contains('\n'));
            }
            herdr::read_as_every_answer(&result);
        }
    }
}
