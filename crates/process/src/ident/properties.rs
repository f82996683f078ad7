//! What holds of every identity and of every word, tried on random ones.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Any pid that an identity can have.
fn pid() -> impl Strategy<Value = Pid> {
    (Pid::MIN..=Pid::MAX).prop_map(|number| Pid::new(number.into()).unwrap())
}

fn boot() -> impl Strategy<Value = Uuid> {
    any::<u128>().prop_map(Uuid::from_u128)
}

fn identity() -> impl Strategy<Value = Identity> {
    let inode = || 1..=u64::MAX;
    let linux = (
        boot(),
        inode(),
        proptest::option::of(inode()),
        pid(),
        any::<u64>(),
        proptest::option::of(inode()),
    );
    let linux = linux.prop_map(|(boot, pidns, timens, pid, ticks, inode)| {
        Identity::Linux(LinuxIdentity {
            boot,
            pidns,
            timens,
            pid,
            ticks,
            inode,
        })
    });
    let macos = (boot(), pid(), any::<u64>(), 0..1_000_000_u32);
    let macos = macos.prop_map(|(boot, pid, seconds, micros)| {
        Identity::Macos(MacosIdentity {
            boot,
            pid,
            seconds,
            micros,
        })
    });
    let lstart = ("[!-~&&[^:\"'`\\\\]]{1,20}", pid(), any::<u64>());
    let lstart = lstart
        .prop_map(|(host, pid, seconds)| Identity::Lstart(LstartIdentity { host, pid, seconds }));
    prop_oneof![linux, macos, lstart]
}

/// Where the fields with numbers are in a word of each kind.
fn numbers(word: &str) -> &'static [usize] {
    match word {
        word if word.starts_with("linux") => &[2, 3, 4, 5],
        _ => &[3, 4],
    }
}

fn with_field(word: &str, place: usize, change: impl Fn(&str) -> String) -> String {
    let fields = word.split(':').enumerate();
    let fields = fields.map(|(at, field)| match at == place {
        true => change(field),
        false => field.to_owned(),
    });
    fields.collect::<Vec<_>>().join(":")
}

/// A word that is taken is printed as it was written, and then is read as the same.
fn is_taken_as_written(word: &str) -> Result<(), TestCaseError> {
    if let Ok(taken) = word.parse::<Identity>() {
        let printed = taken.to_string();
        let same = match taken {
            Identity::Lstart(_) => printed == word,
            _ => printed == word.to_ascii_lowercase(),
        };
        prop_assert!(same, "{word:?} was taken for {printed:?}");
        prop_assert_eq!(printed.parse(), Ok(taken));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_identity_is_printed_and_read_back(one in identity(), other in identity()) {
        let word = one.to_string();
        prop_assert_eq!(word.parse(), Ok(one.clone()));
        prop_assert!(!word.contains([' ', '"', '\'', '\n']));
        prop_assert_eq!(one.compare(&one), Comparison::Same);
        prop_assert_eq!(one.compare(&other), other.compare(&one));
    }

    /// One byte changed, put in or left out is another identity or none, never the same one.
    #[test]
    fn no_byte_of_a_word_is_without_meaning(
        one in identity(),
        at in any::<proptest::sample::Index>(),
        byte in 0..0x80_u8,
    ) {
        let word = one.to_string();
        let at = at.index(word.len());
        let (before, after) = word.split_at(at);
        let byte = char::from(byte);
        for mutant in [
            format!("{before}{byte}{}", &after[1..]),
            format!("{before}{byte}{after}"),
            format!("{before}{}", &after[1..]),
            format!("{word}{byte}"),
        ] {
            is_taken_as_written(&mutant)?;
            if !mutant.eq_ignore_ascii_case(&word) {
                prop_assert_ne!(mutant.parse::<Identity>().ok(), Some(one.clone()), "{}", mutant);
            }
        }
    }

    /// A number has one way to be written.
    #[test]
    fn numbers_are_written_in_one_way(
        one in identity(),
        place in any::<proptest::sample::Index>(),
        (before, after) in select(vec![
            ("0", ""), ("+", ""), ("-", ""), (" ", ""), ("", " "), ("0x", ""), ("", "_"),
            ("", ".0"), ("", "e0"), ("\u{0665}", ""), ("", "\0"), ("00", ""),
        ]),
    ) {
        let word = one.to_string();
        let places = numbers(&word);
        let place = places[place.index(places.len())];
        let mutant = with_field(&word, place, |field| format!("{before}{field}{after}"));
        prop_assert!(mutant.parse::<Identity>().is_err(), "{mutant:?} was taken");
    }

    /// What names the kind is in lower case, and nothing stands around a word.
    #[test]
    fn a_word_is_a_word(one in identity(), blank in select(vec![" ", "\t", "\n", "\r", "\0", "\u{a0}"])) {
        let word = one.to_string();
        let kind = with_field(&word, 0, str::to_ascii_uppercase);
        for mutant in [kind, format!("{blank}{word}"), format!("{word}{blank}")] {
            prop_assert!(mutant.parse::<Identity>().is_err(), "{mutant:?} was taken");
        }
    }

    #[test]
    fn any_text_is_taken_as_written_or_refused(
        text in prop_oneof![
            any::<String>(),
            "(linux|macos|lstart):[0-9a-fA-F-]{36}:[0-9+]{0,3}:[0-9]{0,7}:[0-9.]{0,9}:[0-9]{0,2}",
            "lstart:[ -~]{0,5}:0:[0-9]{1,2}:[0-9]{1,2}:0",
        ],
    ) {
        is_taken_as_written(&text)?;
    }
}
