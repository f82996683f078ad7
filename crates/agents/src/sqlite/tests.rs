//! Against databases that SQLite itself has made, with the command that comes with it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Scratch {
        Scratch(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("it.db")
    }

    fn run(&self, sql: &str) {
        let mut command = Command::new("sqlite3");
        command.arg(self.path()).arg(sql).stdout(Stdio::null());
        assert!(command.status().unwrap().success(), "{sql}");
    }
}

/// A writer that keeps the database open, so that its log is not folded in.
struct Writer {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Writer {
    fn new(scratch: &Scratch) -> Writer {
        let mut child = Command::new("sqlite3")
            .arg(scratch.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        Writer { child, stdin }
    }

    fn say(&mut self, sql: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{sql}").unwrap();
        stdin.flush().unwrap();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.wait();
    }
}

fn deadline() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

fn session(scratch: &Scratch, id: &str) -> std::result::Result<Vec<Vec<Value>>, String> {
    let wanted = |row: &[Value]| row[0].text() == Some(id);
    rows(
        &scratch.path(),
        "session",
        &needed(["id", "directory", "n"]),
        deadline(),
        &wanted,
    )
}

fn needed<const N: usize>(names: [&str; N]) -> [Option<Column>; N] {
    names.map(|name| Some(Column::Needed(name.to_owned())))
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

const TABLE: &str =
    "create table session(id text primary key, junk, directory text not null, n int);";

#[test]
fn a_row_is_found_by_its_id() {
    let scratch = Scratch::new();
    scratch.run(&format!(
        "{TABLE} insert into session values('a', zeroblob(10), '/w/ä', 3), ('b', 1.5, '/x', -70000);
         alter table session add column late text; insert into session values('c', null, '/y', 0, 'l');"
    ));
    assert_eq!(
        session(&scratch, "a"),
        Ok(vec![vec![text("a"), text("/w/ä"), Value::Integer(3)]])
    );
    assert_eq!(
        session(&scratch, "b"),
        Ok(vec![vec![text("b"), text("/x"), Value::Integer(-70000)]])
    );
    assert_eq!(session(&scratch, "d"), Ok(vec![]));
    let columns = [None, Some(Column::Wanted("no such".to_owned()))];
    let nothing = rows(&scratch.path(), "session", &columns, deadline(), &|_| true).unwrap();
    assert_eq!(nothing[0], [Value::Nothing, Value::Nothing]);
    let late = rows(
        &scratch.path(),
        "session",
        &needed(["late"]),
        deadline(),
        &|_| true,
    );
    assert_eq!(
        late,
        Ok(vec![
            vec![Value::Nothing],
            vec![Value::Nothing],
            vec![text("l")]
        ])
    );
}

#[test]
fn a_tree_of_many_pages_and_rows_larger_than_one() {
    for page_size in [512, 4096, 65536] {
        let scratch = Scratch::new();
        scratch.run(&format!(
            "pragma page_size={page_size}; {TABLE}
             with recursive c(i) as (select 1 union all select i+1 from c where i<3000)
             insert into session select 'id'||i, zeroblob(i*7), '/dir/'||i, i from c;
             delete from session where n%3=0;"
        ));
        for i in [1, 2, 1999, 2999] {
            assert_eq!(
                session(&scratch, &format!("id{i}")),
                Ok(vec![vec![
                    text(&format!("id{i}")),
                    text(&format!("/dir/{i}")),
                    Value::Integer(i)
                ]]),
                "{page_size}"
            );
        }
        assert_eq!(session(&scratch, "id3"), Ok(vec![]));
        let all = rows(
            &scratch.path(),
            "session",
            &needed(["id"]),
            deadline(),
            &|_| true,
        )
        .unwrap();
        assert_eq!(all.len(), 2000);
    }
}

#[test]
fn what_is_only_in_the_log_is_read_and_what_is_not_committed_is_not() {
    let scratch = Scratch::new();
    scratch.run(&format!("pragma journal_mode=wal; {TABLE}"));
    let mut writer = Writer::new(&scratch);
    writer.say("pragma wal_autocheckpoint=0;");
    writer.say("insert into session values('a', zeroblob(9000), '/w', 1);");
    wait_for(|| session(&scratch, "a").unwrap().len() == 1);
    writer.say("update session set directory='/moved' where id='a';");
    wait_for(|| session(&scratch, "a").unwrap()[0][1] == text("/moved"));
    // A transaction that spills its pages into the log before it is committed.
    writer.say("pragma cache_size=5; begin;");
    writer.say(
        "with recursive c(i) as (select 1 union all select i+1 from c where i<500)
         insert into session select 'u'||i, zeroblob(3000), '/u', i from c;",
    );
    let wal = beside_wal(&scratch);
    wait_for(|| std::fs::metadata(&wal).unwrap().len() > 500_000);
    assert_eq!(session(&scratch, "u1"), Ok(vec![]));
    writer.say("commit;");
    wait_for(|| session(&scratch, "u500").unwrap().len() == 1);
    // Folded in, and begun anew with old frames behind the new ones.
    writer.say("pragma wal_checkpoint(restart); insert into session values('z', null, '/z', 1);");
    wait_for(|| session(&scratch, "z").unwrap().len() == 1);
    assert_eq!(session(&scratch, "u500").unwrap().len(), 1);
}

fn beside_wal(scratch: &Scratch) -> PathBuf {
    scratch.0.path().join("it.db-wal")
}

fn wait_for(condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn nothing_is_written_and_nobody_is_kept_waiting() {
    let scratch = Scratch::new();
    scratch.run(&format!("pragma journal_mode=wal; {TABLE}"));
    let names = || {
        let folder = std::fs::read_dir(scratch.0.path()).unwrap();
        folder
            .map(|entry| entry.unwrap().file_name())
            .collect::<Vec<_>>()
    };
    let before = names();
    assert_eq!(session(&scratch, "a"), Ok(vec![]));
    assert_eq!(names(), before);
}

#[test]
fn databases_that_cannot_be_read() {
    let scratch = Scratch::new();
    // None at all, or an empty one, has no rows.
    assert_eq!(session(&scratch, "a"), Ok(vec![]));
    std::fs::write(scratch.path(), "").unwrap();
    assert_eq!(session(&scratch, "a"), Ok(vec![]));

    std::fs::write(scratch.path(), "x".repeat(5000)).unwrap();
    assert!(
        session(&scratch, "a")
            .unwrap_err()
            .ends_with("it is not an SQLite database")
    );

    std::fs::remove_file(scratch.path()).unwrap();
    scratch.run("create table session(id text);");
    assert!(
        session(&scratch, "a")
            .unwrap_err()
            .ends_with("table session has no column directory")
    );
    let other = rows(
        &scratch.path(),
        "other",
        &needed(["id"]),
        deadline(),
        &|_| true,
    );
    assert_eq!(other, Ok(vec![]));

    scratch.run("drop table session; create table session(id text primary key, directory, n) without rowid;");
    assert!(
        session(&scratch, "a")
            .unwrap_err()
            .contains("is damaged, or not of a table")
    );

    std::fs::remove_file(scratch.path()).unwrap();
    std::fs::create_dir(scratch.path()).unwrap();
    assert!(session(&scratch, "a").is_err());
}

#[test]
fn damage_never_hangs_and_never_crashes() {
    let scratch = Scratch::new();
    scratch.run(&format!(
        "pragma page_size=512; {TABLE}
         with recursive c(i) as (select 1 union all select i+1 from c where i<200)
         insert into session select 'id'||i, zeroblob(i*9), '/dir/'||i, i from c;"
    ));
    let whole = std::fs::read(scratch.path()).unwrap();
    let damaged = scratch.0.path().join("damaged.db");
    let old = std::time::SystemTime::now() - Duration::from_secs(60);
    // A small generator of numbers that is the same every time.
    let mut state = 1_u64;
    for _ in 0..400 {
        let mut bytes = whole.clone();
        for _ in 0..20 {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let at = usize::try_from(state >> 33).unwrap() % bytes.len();
            bytes[at] = (state >> 20) as u8;
        }
        bytes.truncate(bytes.len() - usize::try_from(state >> 55).unwrap());
        std::fs::write(&damaged, bytes).unwrap();
        std::fs::File::options()
            .write(true)
            .open(&damaged)
            .unwrap()
            .set_modified(old)
            .unwrap();
        let _ = rows(
            &damaged,
            "session",
            &needed(["id", "directory"]),
            deadline(),
            &|_| true,
        );
    }
}

/// Many rows that are said to be long, and whose rest is on a page that names itself as the next.
#[test]
fn a_circle_of_pages_ends_at_the_deadline() {
    const ROWS: u8 = 200;
    /// The most that a row may have, of which 39 bytes are in its cell.
    const SIZE: [u8; 4] = [0x9f, 0xff, 0xff, 0x7f];
    let scratch = Scratch::new();
    scratch.run(&format!(
        "pragma page_size=512; {TABLE} insert into session values('a', zeroblob(3000), '/w', 1);"
    ));
    let mut bytes = std::fs::read(scratch.path()).unwrap();
    let (leaf, rest) = bytes[512..].split_at_mut(512);
    assert_eq!(leaf[0], 0x0d);
    let cell = 512 - 4 - 1 - 39 - 4;
    leaf[4] = ROWS;
    for place in leaf[8..].chunks_exact_mut(2).take(ROWS.into()) {
        place.copy_from_slice(&u16::try_from(cell).unwrap().to_be_bytes());
    }
    leaf[cell..cell + 4].copy_from_slice(&SIZE);
    leaf[508..].copy_from_slice(&3_u32.to_be_bytes());
    rest[..4].copy_from_slice(&3_u32.to_be_bytes());
    std::fs::write(scratch.path(), &bytes).unwrap();
    let started = Instant::now();
    let short = Deadline::after(Duration::from_millis(300));
    let outcome = rows(&scratch.path(), "session", &needed(["id"]), short, &|_| {
        true
    });
    assert!(started.elapsed() < Duration::from_secs(10), "it hangs");
    assert!(outcome.is_err());
}

#[test]
fn a_transaction_under_way_is_waited_for_up_to_the_deadline() {
    let scratch = Scratch::new();
    scratch.run(TABLE);
    let mut writer = Writer::new(&scratch);
    writer.say("begin immediate; insert into session values('a', null, '/w', 1);");
    let journal = scratch.0.path().join("it.db-journal");
    writer.say("pragma cache_size=1; with recursive c(i) as (select 1 union all select i+1 from c where i<300) insert into session select 'u'||i, zeroblob(3000), '/u', i from c;");
    // The journal's header comes last; from then on pages of the database itself are written.
    wait_for(|| std::fs::read(&journal).is_ok_and(|bytes| bytes.starts_with(b"\xd9\xd5\x05\xf9")));
    let wanted = |row: &[Value]| row[0].text() == Some("a");
    let short = Deadline::after(Duration::from_millis(100));
    let busy = rows(&scratch.path(), "session", &needed(["id"]), short, &wanted);
    assert!(busy.unwrap_err().contains("it"), "busy");
    writer.say("commit;");
    wait_for(|| session(&scratch, "a").is_ok_and(|rows| rows.len() == 1));
}
