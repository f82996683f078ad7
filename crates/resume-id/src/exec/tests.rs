use super::*;

const NOW: &str = "2026-11-29T14:26:21.123Z";

/// A decision, with some of its keys changed.
fn decision(changes: &[(&str, &str)]) -> String {
    let mut keys = vec![
        ("type", "\"decision\""),
        ("action", "\"resume\""),
        ("then", "null"),
        ("agent", "\"claude\""),
        ("cwd", "\"/w\""),
        ("argv", r#"["claude","--resume","x"]"#),
        ("env_unset", "[]"),
        ("stale", "[]"),
        (
            "fallback",
            r#"{"action":"mint","argv":["claude","--session-id","y"]}"#,
        ),
        ("reason", "\"because\""),
        ("at", "\"2026-11-29T14:26:21.123Z\""),
    ];
    for (key, value) in changes {
        keys.retain(|(known, _)| known != key);
        if !value.is_empty() {
            keys.push((key, value));
        }
    }
    let members: Vec<_> = keys
        .iter()
        .map(|(key, value)| format!("\"{key}\":{value}"))
        .collect();
    format!("{{{}}}", members.join(","))
}

fn judge(changes: &[(&str, &str)]) -> Result<Order, (u8, String)> {
    let line = decision(changes);
    let record = Record::parse(line.as_bytes()).unwrap();
    let now = records::time::parse(NOW).unwrap();
    order(&record, now, Duration::from_secs(30))
        .map_err(|failure| (failure.status().code(), failure.message().to_owned()))
}

/// Keys of a decision that are to be changed, and to what; to nothing: removed.
type Changes<'a> = &'a [(&'a str, &'a str)];

fn reaped(outcomes: &[&str]) -> String {
    let one = |outcome: &&str| format!(r#"{{"pid":7,"root":5,"reap":{{"outcome":"{outcome}"}}}}"#);
    format!(
        "[{}]",
        outcomes.iter().map(one).collect::<Vec<_>>().join(",")
    )
}

#[test]
fn what_may_be_followed() {
    let order = judge(&[]).unwrap();
    assert_eq!(order.launch, "resume");
    assert_eq!(order.argv, ["claude", "--resume", "x"]);
    assert_eq!(order.cwd, "/w");
    let (launch, argv) = order.fallback.unwrap();
    assert_eq!(
        (launch.as_str(), argv[1].as_str()),
        ("mint", "--session-id")
    );
    for action in ["assign", "mint", "spawn"] {
        let action = format!("\"{action}\"");
        assert!(judge(&[("action", &action), ("fallback", "null")]).is_ok());
    }
    for outcome in ["gone", "terminated", "killed"] {
        let stale = reaped(&[outcome, "gone"]);
        let order = judge(&[
            ("action", "\"reclaim\""),
            ("then", "\"assign\""),
            ("stale", &stale),
        ]);
        assert_eq!(order.unwrap().launch, "assign");
    }
}

#[test]
fn what_may_not() {
    let (dead, alive) = (reaped(&["terminated"]), reaped(&["terminated", "survived"]));
    let (denied, foreign) = (reaped(&["denied"]), reaped(&["foreign"]));
    let (unclear, cut) = (reaped(&["survived", "unknown"]), reaped(&["interrupted"]));
    let reclaim = ("action", "\"reclaim\"");
    let resume = ("then", "\"resume\"");
    let untouched = ("stale", r#"[{"pid":7,"root":5}]"#);
    let then_ask = ("then", "\"ask\"");
    let table: [(&str, Changes<'_>, u8); 20] = [
        ("it runs", &[("action", "\"already_running\"")], 1),
        ("given up", &[("action", "\"give_up\"")], 1),
        ("unknown", &[("action", "\"unknown\"")], 3),
        ("an action of the future", &[("action", "\"ask\"")], 3),
        ("no action", &[("action", "")], 3),
        ("survived", &[reclaim, resume, ("stale", &alive)], 1),
        ("denied", &[reclaim, resume, ("stale", &denied)], 1),
        ("refused", &[("stale", &foreign)], 1),
        ("not known", &[reclaim, resume, ("stale", &unclear)], 3),
        ("interrupted", &[reclaim, resume, ("stale", &cut)], 3),
        ("reap was left out", &[reclaim, resume, untouched], 3),
        ("stale beside a launch, not reaped", &[untouched], 3),
        ("nothing to reclaim", &[reclaim, resume], 3),
        ("nothing follows", &[reclaim, ("stale", &dead)], 3),
        (
            "a way of the future follows",
            &[reclaim, then_ask, ("stale", &dead)],
            3,
        ),
        ("no list of what is stale", &[("stale", "")], 3),
        ("yesterday", &[("at", "\"2026-11-28T14:26:21Z\"")], 3),
        ("tomorrow", &[("at", "\"2026-11-30T14:26:21Z\"")], 3),
        ("no time", &[("at", "null")], 3),
        ("no command", &[("argv", "null")], 3),
    ];
    for (name, changes, want) in table {
        let (status, message) = judge(changes).unwrap_err();
        assert_eq!(status, want, "{name}: {message}");
    }
    for argv in ["[]", "[\"\"]", "[7]", "[\"a\\u0000b\"]", "\"claude\""] {
        assert_eq!(judge(&[("argv", argv)]).unwrap_err().0, 3, "{argv}");
    }
}

#[test]
fn refusals_say_why() {
    let (_, message) = judge(&[("action", "\"give_up\"")]).unwrap_err();
    assert_eq!(message, "not launched: give_up: because");
    let stale = reaped(&["survived"]);
    let (_, message) = judge(&[("stale", &stale)]).unwrap_err();
    assert_eq!(
        message,
        "not launched: process 5 is still in the way (survived)"
    );
}

#[test]
fn variables_that_go_before_a_command() {
    let table = [
        ("claude --resume x", "", "claude --resume x"),
        ("env -u A -u B claude -u x", "A B", "claude -u x"),
        ("env claude", "", "claude"),
        // What env(1) alone understands is left to it.
        ("env -u A B=1 claude", "", "env -u A B=1 claude"),
        ("env -i claude", "", "env -i claude"),
        ("env -u A -i claude", "", "env -u A -i claude"),
        ("env -u", "", "env -u"),
        ("env", "", "env"),
    ];
    for (argv, unset, command) in table {
        let words: Vec<String> = argv.split(' ').map(str::to_owned).collect();
        let (gone, rest) = without_env(&words);
        assert_eq!(
            (gone.join(" "), rest.join(" ")),
            (unset.to_owned(), command.to_owned())
        );
    }
}
