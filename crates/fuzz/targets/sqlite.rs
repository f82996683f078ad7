//! A database of sessions, as its owner may have left it.

#![no_main]

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use agents::sqlite::{self, Column};
use libfuzzer_sys::fuzz_target;
use records::Deadline;

static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
    let name = format!("muxutils-fuzz-{}.db", std::process::id());
    std::env::temp_dir().join(name)
});

fuzz_target!(|bytes: &[u8]| {
    fs::write(&*PATH, bytes).expect("it can be written");
    // What has just been written is not believed.
    let file = File::options()
        .write(true)
        .open(&*PATH)
        .expect("it is there");
    file.set_modified(SystemTime::UNIX_EPOCH)
        .expect("it is ours");
    let needed = |name: &str| Some(Column::Needed(name.to_owned()));
    let columns = [
        needed("id"),
        needed("directory"),
        Some(Column::Wanted("n".to_owned())),
        None,
    ];
    // A damaged one is read for as long as that is allowed, and no longer.
    let deadline = Deadline::after(Duration::from_secs(1));
    let found = sqlite::rows(&PATH, "session", &columns, deadline, &|_| true);
    for row in found.into_iter().flatten() {
        assert_eq!(row.len(), columns.len());
        for value in &row {
            assert!(value.text().is_none() || value.count().is_none());
        }
    }
    fs::remove_file(&*PATH).expect("it is ours");
});
