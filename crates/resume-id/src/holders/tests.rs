use super::*;

const A1: &str = "00000000-0000-4000-8000-0000000000a1";
const NOW: &str = "2026-11-29T14:26:21.123Z";

fn look(lines: &[&str]) -> Look {
    let shape = Shape::try_from("uuid".to_owned()).unwrap();
    let here = Place {
        boot_id: Some("b00t".to_owned()),
        pidns: Some("4026531836".to_owned()),
        host: "box".to_owned(),
    };
    let now = records::time::parse(NOW).unwrap();
    let mut reading = Reading::new(A1, &shape);
    for line in lines {
        let record = Record::parse(line.as_bytes()).unwrap();
        reading.hear(&record, &here, now, Duration::from_secs(30));
    }
    reading.finish()
}

fn scan(verdict: &str) -> String {
    format!(
        r#"{{"v":1,"type":"scan","what":{{"session_id":["{A1}"]}},"verdict":"{verdict}","complete":true,"host":"box","boot_id":"b00t","pidns":"4026531836","at":"{NOW}"}}"#
    )
}

fn holder(class: &str, rest: &str) -> String {
    format!(r#"{{"type":"holder","pid":7,"class":"{class}","session_id":"{A1}","root":5{rest}}}"#)
}

fn seen(look: Look) -> Vec<(Class, bool, Option<u128>)> {
    match look {
        Look::Good { holders, .. } => holders
            .into_iter()
            .map(|one| {
                (
                    one.class,
                    one.active,
                    one.settled_for.map(|d| d.as_millis()),
                )
            })
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_good_look() {
    assert!(seen(look(&[&scan("free")])).is_empty());
    let husk = holder(
        "own",
        r#","active":false,"age_ms":9000,"youngest_child_ms":null"#,
    );
    assert_eq!(
        seen(look(&[&husk, &scan("own")])),
        [(Class::Own, false, Some(9000))]
    );
    let loop_ = holder(
        "own",
        r#","active":true,"age_ms":9000,"youngest_child_ms":12"#,
    );
    assert_eq!(
        seen(look(&[&loop_, &scan("own_active")])),
        [(Class::Own, true, Some(12))]
    );
    let itself = holder("self", r#","active":true"#);
    assert_eq!(
        seen(look(&[&itself, &scan("foreign")])),
        [(Class::Itself, true, None)]
    );
    // The ids' case is no difference, other records are none of ours.
    let upper = scan("free").replace(A1, &A1.to_uppercase());
    assert!(seen(look(&[r#"{"type":"process_entry","pid":1}"#, &upper])).is_empty());
}

#[test]
fn what_holds_nothing() {
    for class in ["mention", "descendant"] {
        assert!(seen(look(&[&holder(class, ""), &scan("free")])).is_empty());
    }
    let past = r#","evidence":[{"by":"argv","superseded":true}]"#;
    assert!(seen(look(&[&holder("own", past), &scan("free")])).is_empty());
    let both = r#","evidence":[{"by":"argv","superseded":true},{"by":"fd","superseded":false}]"#;
    assert_eq!(seen(look(&[&holder("own", both), &scan("own")])).len(), 1);
    let other = holder("foreign", "").replace(A1, "other");
    assert!(seen(look(&[&other, &scan("free")])).is_empty());
}

#[test]
fn what_only_its_arguments_say() {
    let flag = |evidence: &str| {
        let evidence = format!(r#","evidence":[{evidence}]"#);
        match look(&[&holder("self", &evidence), &scan("foreign")]) {
            Look::Good { mut holders, .. } => holders.remove(0).flag,
            other => panic!("{other:?}"),
        }
    };
    let argv = r#"{"by":"argv","flag":"--resume"}"#;
    let table = [
        (argv.to_owned(), Some("--resume")),
        (
            format!(r#"{{"by":"cwd","flag":null}},{argv}"#),
            Some("--resume"),
        ),
        (format!(r#"{argv},{{"by":"registry"}}"#), None),
        (format!(r#"{{"by":"fd"}},{argv}"#), None),
        (format!(r#"{{"by":"lock"}},{argv}"#), None),
        (r#"{"by":"argv-json","flag":"--resume"}"#.to_owned(), None),
        (String::new(), None),
    ];
    for (evidence, want) in table {
        assert_eq!(flag(&evidence).as_deref(), want, "{evidence}");
    }
}

#[test]
fn a_look_at_several_ids() {
    let other = "00000000-0000-4000-8000-0000000000b2";
    let both = |verdict: &str| {
        let two = format!(r#"["{A1}","{}"]"#, other.to_uppercase());
        scan(verdict).replace(&format!(r#"["{A1}"]"#), &two)
    };
    let elsewhere = holder("foreign", "").replace(A1, other);
    // The verdict is about the other one; this one is free.
    let free = look(&[&elsewhere, &both("foreign")]);
    assert!(matches!(&free, Look::Good { verdict, .. } if verdict == "free"));
    assert!(seen(free).is_empty());
    let own = look(&[&holder("own", ""), &elsewhere, &both("foreign")]);
    assert_eq!(seen(own), [(Class::Own, true, None)]);
    // What the verdict speaks of must have come, of one of the scan's own ids.
    for lines in [
        vec![both("foreign")],
        vec![elsewhere.clone(), both("own")],
        vec![elsewhere.clone(), both("free")],
        vec![elsewhere.replace(other, "third"), both("foreign")],
        vec![elsewhere.clone(), scan("foreign")],
    ] {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert!(matches!(look(&lines), Look::Bad(_)), "{lines:?}");
    }
}

/// `holder-scan --session-id ID --cwd DIR`: who is in the directory has no id.
#[test]
fn a_look_that_asks_for_more_than_ids() {
    let asked = |verdict: &str, holders: u32| {
        let what = format!(r#""what":{{"cwd":["/w"],"session_id":["{A1}"]}},"holders":{holders}"#);
        let ids = format!(r#""what":{{"session_id":["{A1}"]}}"#);
        scan(verdict).replace(&ids, &what)
    };
    let there = |class: &str| {
        let none = format!(r#""session_id":"{A1}""#);
        holder(class, "").replace(&none, r#""session_id":null"#)
    };
    // The verdicts and the classes of those who are there say nothing of the id.
    for (class, verdict) in [
        ("foreign", "foreign"),
        ("own", "own"),
        ("own", "own_active"),
        ("self", "foreign"),
    ] {
        let free = look(&[&there(class), &asked(verdict, 1)]);
        assert!(matches!(&free, Look::Good { verdict, .. } if verdict == "free"));
        assert!(seen(free).is_empty());
    }
    let table = [
        ("own", r#","active":false"#, "foreign", "own"),
        ("own", "", "foreign", "own_active"),
        ("foreign", "", "foreign", "foreign"),
        ("self", "", "foreign", "foreign"),
    ];
    for (class, rest, all, want) in table {
        let ours = look(&[&holder(class, rest), &there("foreign"), &asked(all, 2)]);
        assert!(
            matches!(&ours, Look::Good { verdict, .. } if verdict == want),
            "{want}: {ours:?}"
        );
        assert_eq!(seen(ours).len(), 1);
    }
    // What was not asked for cannot have been found, and one that did not come may have the id.
    for lines in [
        [there("foreign"), scan("foreign")],
        [there("foreign"), asked("own", 1)],
        [there("foreign"), asked("free", 1)],
        [there("foreign"), asked("foreign", 2)],
    ] {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert!(matches!(look(&lines), Look::Bad(_)), "{lines:?}");
    }
}

#[test]
fn a_look_at_one_user() {
    let limited = |uid: &str| {
        let what = format!(r#""session_id":["{A1}"],"uid":{uid}"#);
        look(&[&scan("free").replace(&format!(r#""session_id":["{A1}"]"#), &what)])
    };
    for uid in ["65534", "0", "\"0\""] {
        assert!(
            matches!(limited(uid), Look::Bad(why) if why.contains("--uid")),
            "{uid}"
        );
    }
    assert!(seen(limited("null")).is_empty());
}

#[test]
fn no_good_look() {
    let changed = |from: &str, to: &str| scan("free").replace(from, to);
    let table = [
        ("silence", vec![]),
        ("holders, and then the scan died", vec![holder("own", "")]),
        (
            "another id",
            vec![changed(A1, "00000000-0000-4000-8000-0000000000b2")],
        ),
        (
            "incomplete",
            vec![changed("\"complete\":true", "\"complete\":false")],
        ),
        (
            "not said to be complete",
            vec![changed("\"complete\":true,", "")],
        ),
        ("another boot", vec![changed("b00t", "0ther")]),
        ("no boot", vec![changed("\"b00t\"", "null")]),
        ("another namespace", vec![changed("4026531836", "1")]),
        ("yesterday", vec![changed("2026-11-29T", "2026-11-28T")]),
        ("tomorrow", vec![changed("2026-11-29T", "2026-11-30T")]),
        ("no time", vec![changed(NOW, "")]),
        ("unknown", vec![scan("unknown")]),
        ("a verdict of the future", vec![scan("perhaps")]),
        (
            "a good one and a bad one",
            vec![scan("free"), changed("b00t", "0ther")],
        ),
        (
            "free, with a holder",
            vec![holder("foreign", ""), scan("free")],
        ),
        ("foreign, without one", vec![scan("foreign")]),
        ("own, without one", vec![scan("own")]),
        (
            "a holder without a pid",
            vec![r#"{"type":"holder","class":"own"}"#.to_owned(), scan("own")],
        ),
    ];
    for (name, lines) in table {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert!(matches!(look(&lines), Look::Bad(_)), "{name}");
    }
}

#[test]
fn a_number_that_no_process_has() {
    let with = |key: &str, value: &str, class: &str| {
        let numbers = [(r#""pid":7"#, "pid"), (r#""root":5"#, "root")];
        let (old, _) = numbers.into_iter().find(|(_, name)| *name == key).unwrap();
        let record = holder(class, "").replace(old, &format!("\"{key}\":{value}"));
        look(&[&record, &scan(class)])
    };
    let bad = [
        "0",
        "-1",
        "1.0",
        "1e2",
        "\"7\"",
        "4194305",
        "4294967295",
        "4294967303",
        "99999999999999999999",
        "true",
        "[7]",
    ];
    for class in ["own", "foreign"] {
        for key in ["pid", "root"] {
            for value in bad {
                let why = format!("a holder with a bad {key}");
                let look = with(key, value, class);
                assert!(
                    matches!(&look, Look::Bad(said) if said.ends_with(&why)),
                    "{key} {value}"
                );
            }
            assert_eq!(seen(with(key, "99999", class)).len(), 1);
        }
    }
    // Init is a process, but none to be ended.
    assert!(matches!(with("root", "1", "own"), Look::Bad(_)));
    assert_eq!(seen(with("root", "1", "foreign")).len(), 1);
    assert_eq!(seen(with("root", "null", "own")).len(), 1);
}

#[test]
fn thirty_seconds_are_not_too_old() {
    let old = |at: &str| scan("free").replace(NOW, at);
    assert!(matches!(
        look(&[&old("2026-11-29T14:25:51.123Z")]),
        Look::Good { .. }
    ));
    assert!(matches!(
        look(&[&old("2026-11-29T14:25:51.122Z")]),
        Look::Bad(_)
    ));
}

#[test]
fn a_line_that_was_lost() {
    let shape = Shape::try_from("uuid".to_owned()).unwrap();
    let mut reading = Reading::new(A1, &shape);
    reading.lose("line 3".to_owned());
    assert!(matches!(reading.finish(), Look::Bad(why) if why.ends_with("line 3")));
}
