//! Lines of records: how they come in, and that what is not ours goes through.

#![no_main]

use std::collections::BTreeMap;

use eventwait::fuzzing::{Path, Wanted};
use libfuzzer_sys::fuzz_target;
use records::input::{Input, Lines};
use records::{Record, columns, human};
use serde_json::value::RawValue;

/// What a filter adds, under a key of its own or in the place of one that is there.
const ADDED: &str = r#"{"pid":7,"s":"a\"}"}"#;

fuzz_target!(|bytes: &[u8]| {
    let mut lines = Lines::new("fuzz", bytes).with_max_line(1 << 16);
    let (mut number, mut good) = (0, 0);
    while let Some(line) = lines.next_record().expect("bytes can be read") {
        number += 1;
        match line {
            Input::Bad(bad) => assert_eq!(bad.number, number),
            Input::Record(record) => {
                good += 1;
                look_at(&record);
            }
        }
    }
    let ends = bytes.iter().filter(|&&byte| byte == b'\n').count();
    let open = usize::from(!bytes.is_empty() && !bytes.ends_with(b"\n"));
    assert_eq!(number, (ends + open) as u64);
    assert!(good <= number);
});

fn look_at(record: &Record<'_>) {
    let keys: Vec<String> = record
        .members()
        .iter()
        .map(|member| member.key.to_string())
        .take(2)
        .chain(["type", "ident", "stale.0.pid", "a.b", "a.0", "0.a", ""].map(str::to_owned))
        .collect();
    goes_through(record, "reap");
    goes_through(record, &keys[0]);
    for key in &keys {
        as_eventwait_reads_it(record, key);
    }
    if let Some(line) = columns::tabbed(record, &keys) {
        assert!(!line.contains(|c: char| c.is_control() && c != '\t'));
        assert_eq!(line.matches('\t').count(), keys.len() - 1);
    }
    if let Some(words) = columns::shell_words(record, &keys) {
        assert!(is_words(&words), "{words:?}");
    }
    let line = human::line(record, &[]);
    assert!(!line.contains(char::is_control));
    let _ = (
        record.kind(),
        record.u64("pid"),
        record.bool("lossy"),
        record.array("argv"),
    );
    let _ = record.decode::<BTreeMap<String, &RawValue>>();
    if record.get("stale").is_some() {
        let _ = record.with_at(&["stale", "0", "reap"], &1);
    }
}

/// With a key set, every other byte is the same: where the value is taken out again, the line is
/// what it was.
fn goes_through(record: &Record<'_>, key: &str) {
    let value: &RawValue = serde_json::from_str(ADDED).expect("it is JSON");
    let out = record.with(key, value).expect("it can be written");
    let set = Record::parse(&out).expect("it is a record still");
    let was = record.members();
    let (mut back, mut done) = (String::new(), 0);
    for (place, member) in set.members().iter().enumerate() {
        let start = member.value.get().as_ptr().addr() - set.text().as_ptr().addr();
        match was.get(place) {
            Some(old) if old.key != key => assert_eq!(old.value.get(), member.value.get()),
            Some(old) => {
                assert_eq!(member.value.get(), ADDED);
                back.push_str(&set.text()[done..start]);
                back.push_str(old.value.get());
                done = start + ADDED.len();
            }
            None => {
                assert_eq!((member.key.as_ref(), member.value.get()), (key, ADDED));
                let name = serde_json::to_string(key).expect("a string");
                let comma = usize::from(!was.is_empty());
                back.push_str(&set.text()[done..start - 1 - name.len() - comma]);
                done = start + ADDED.len();
            }
        }
    }
    back.push_str(&set.text()[done..]);
    assert_eq!(back.as_bytes(), record.bytes());
    let again = set.with_at(&[key], value).expect("an object is there");
    assert_eq!(again.len(), out.len());
}

/// Two readers of one line agree.
fn as_eventwait_reads_it(record: &Record<'_>, key: &str) {
    let path = Path::new(key);
    let wanted = Wanted::new([&path]);
    let found = wanted.look(record.text()).expect("it is JSON");
    assert_eq!(found.get(&path), record.get(key).map(RawValue::get));
}

/// Whether `text` is words of a shell in which nothing is expanded.
fn is_words(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let Some(inner) = rest.strip_prefix('\'') else {
            let bare = |c: char| c.is_ascii_alphanumeric() || "+-. ".contains(c);
            match rest.strip_prefix("\\'").or_else(|| rest.strip_prefix(bare)) {
                Some(after) => rest = after,
                None => return false,
            }
            continue;
        };
        match inner.split_once('\'') {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}
