//! `--discover` and `--list-agents`.

use crate::home::{A1, B2, Home, in_the_past};
use crate::support::records;

#[test]
fn sessions_of_a_directory_newest_first() {
    let home = Home::new();
    let cwd = home.cwd();
    let discover = ["--discover", "--agent", "claude", "--cwd", &cwd];
    let none = home.tool(&discover).output().unwrap();
    assert_eq!((none.status.code(), none.stdout.len()), (Some(1), 0));

    in_the_past(&home.conversation(A1));
    home.conversation(B2);
    let found = home.tool(&discover).output().unwrap();
    assert_eq!(found.status.code(), Some(0));
    let found = records(&found);
    let ids: Vec<_> = found
        .iter()
        .map(|one| one["session_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [B2, A1]);
    assert_eq!(found[0]["type"], "session");
    assert_eq!(found[0]["cwd"], cwd.as_str());
    assert_eq!(found[0]["turns"], 1);
    assert_eq!(found[0]["state"], "conversational");

    // Since a minute ago there is but one; since tomorrow none.
    let minute_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    let since = minute_ago
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs()
        .to_string();
    let recent = home
        .tool(&[&discover[..], &["--since", &since]].concat())
        .output()
        .unwrap();
    assert_eq!(records(&recent).len(), 1);
    let tomorrow = home.tool(&[&discover[..], &["--since", "2100-01-01T00:00:00Z"]].concat());
    assert_eq!({ tomorrow }.output().unwrap().status.code(), Some(1));
}

#[test]
fn the_table_of_agents() {
    let home = Home::new();
    let listed = home.tool(&["--list-agents"]).output().unwrap();
    let names: Vec<_> = records(&listed)
        .iter()
        .map(|agent| agent["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names.len(), 11, "{names:?}");
    assert!(names.contains(&"cursor-agent".to_owned()));
}
