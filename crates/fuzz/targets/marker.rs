//! The line of a marker's file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use marker::Marker;
use records::Record;

fuzz_target!(|line: &[u8]| {
    let Ok(marker) = Marker::parse(line) else {
        return;
    };
    assert_eq!(marker.line, line);
    let record = Record::parse(line).expect("a marker is a record");
    let is = |key: &str, value: &str| assert_eq!(record.str(key).as_deref(), Some(value), "{key}");
    is("type", "marker");
    is("death_id", &marker.death_id);
    is("announce", &marker.announce.to_string_lossy());
    // What another process wrote as an identity is one, and is written again as the same.
    for (key, ident) in [
        ("ident", Some(&marker.ident)),
        ("guard.ident", marker.guard.as_ref()),
    ] {
        let word = record.str(key);
        assert_eq!(word.is_some(), ident.is_some());
        if let (Some(word), Some(ident)) = (word, ident) {
            assert!(ident.to_string().eq_ignore_ascii_case(&word));
            assert_eq!(ident.to_string().parse().as_ref(), Ok(ident));
        }
    }
    // A key more does not make another marker of it.
    let longer = record.with("stopping", &true).expect("it can be written");
    let longer = Marker::parse(&longer).expect("it is a marker still");
    assert_eq!(
        (longer.ident, longer.death_id),
        (marker.ident, marker.death_id)
    );
    assert_eq!(
        (
            longer.guard,
            longer.host,
            longer.announce_size,
            longer.announce_inode
        ),
        (
            marker.guard,
            marker.host,
            marker.announce_size,
            marker.announce_inode
        )
    );
});
