//! The word that names a process.

#![no_main]

use libfuzzer_sys::fuzz_target;
use process::{Comparison, Identity};

fuzz_target!(|text: &str| {
    let mut words = text.split('\n').map(str::parse::<Identity>);
    let Some(Ok(one)) = words.next() else {
        return;
    };
    // It is printed as it was read, but for the case of a UUID's digits.
    let word = text.split('\n').next().unwrap_or_default();
    let printed = one.to_string();
    match one {
        Identity::Lstart(_) => assert_eq!(printed, word),
        _ => assert_eq!(printed, word.to_ascii_lowercase()),
    }
    assert_eq!(printed.parse().as_ref(), Ok(&one));
    assert!(!printed.contains([' ', '"', '\'', '\n', '=']) || matches!(one, Identity::Lstart(_)));
    assert_eq!(one.compare(&one), Comparison::Same);
    assert!((2..=4_194_304).contains(&one.pid().get()));
    if let Some(Ok(other)) = words.next() {
        assert_eq!(one.compare(&other), other.compare(&one));
        if one == other {
            assert_eq!(printed, other.to_string());
        }
    }
});
