use super::*;

fn doubt(reason: &'static str) -> Doubt {
    Doubt {
        reason,
        why: "because".to_owned(),
    }
}

fn to(process: Process) -> Bound {
    Bound::To {
        process,
        exact: true,
        role: Role::Unasked,
        ancestor: None,
    }
}

fn live(likeness: Likeness) -> Place {
    Place::Live {
        likeness,
        own: false,
    }
}

fn facts(bound: Bound, place: Place) -> Facts {
    let pane = match place {
        Place::Nowhere => None,
        _ => Some("%3".to_owned()),
    };
    Facts {
        pane,
        bound,
        place,
        elsewhere: None,
    }
}

fn answer(bound: Bound, place: Place) -> (State, &'static str) {
    let judgement = judge(&facts(bound, place));
    assert!(!judgement.message.is_empty());
    assert!(!judgement.weak);
    (judgement.state, judgement.reason)
}

/// Every state of the bound process against every state of the pane.
#[test]
fn a_bound_record() {
    use State::*;
    let lost = || Process::Unknown(doubt("other_namespace"));
    let silent = || Place::Unknown(doubt("server_silent"));
    let unsure = || live(Likeness::Unknown(doubt("unreadable")));
    let table = [
        (Process::Same, live(Likeness::Same), Match, "same_process"),
        (Process::Same, live(Likeness::Other), Foreign, "pane_taken"),
        (Process::Same, unsure(), Unknown, "unreadable"),
        (Process::Same, Place::NoPane, Orphaned, "no_such_pane"),
        (Process::Same, Place::Empty, Orphaned, "dead_pane"),
        (Process::Same, Place::NoServer, Orphaned, "no_server"),
        (Process::Same, silent(), Unknown, "server_silent"),
        (Process::Same, Place::Nowhere, Match, "same_process"),
        (
            Process::Gone,
            live(Likeness::Other),
            Foreign,
            "other_process",
        ),
        (Process::Gone, unsure(), Foreign, "other_process"),
        (Process::Gone, Place::NoPane, Gone, "no_such_pane"),
        (Process::Gone, Place::Empty, Gone, "dead_pane"),
        (Process::Gone, Place::NoServer, Gone, "no_server"),
        // Then the server need not answer.
        (Process::Gone, silent(), Gone, "process_ended"),
        (Process::Gone, Place::Nowhere, Gone, "process_ended"),
        (
            Process::Recycled,
            live(Likeness::Other),
            Foreign,
            "other_process",
        ),
        (Process::Recycled, unsure(), Foreign, "other_process"),
        (Process::Recycled, Place::NoPane, Gone, "no_such_pane"),
        (Process::Recycled, Place::NoServer, Gone, "no_server"),
        (Process::Recycled, silent(), Gone, "process_ended"),
        (Process::Recycled, Place::Nowhere, Foreign, "recycled"),
        // A live process beside the record can be told apart across namespaces and boots.
        (lost(), live(Likeness::Same), Match, "same_process"),
        (lost(), live(Likeness::Other), Foreign, "other_process"),
        (lost(), unsure(), Unknown, "unreadable"),
        (lost(), Place::NoPane, Unknown, "other_namespace"),
        (lost(), Place::Empty, Unknown, "other_namespace"),
        (lost(), Place::NoServer, Unknown, "other_namespace"),
        (lost(), silent(), Unknown, "server_silent"),
        (lost(), Place::Nowhere, Unknown, "other_namespace"),
    ];
    for (process, place, state, reason) in table {
        let what = format!("{process:?} {place:?}");
        assert_eq!(answer(to(process), place), (state, reason), "{what}");
    }
}

#[test]
fn records_that_cannot_be_judged() {
    for place in [Place::Nowhere, Place::NoPane, live(Likeness::Other)] {
        let bad = Bound::Unreadable("nonsense".to_owned());
        assert_eq!(answer(bad, place.clone()), (State::Unknown, "bad_identity"));
        let far = Bound::Elsewhere("other".to_owned());
        assert_eq!(answer(far, place), (State::Unknown, "other_host"));
    }
}

#[test]
fn the_callers_own_pane() {
    let own_pane = |likeness, ancestor| {
        let bound = Bound::To {
            process: Process::Same,
            exact: true,
            role: Role::Unasked,
            ancestor,
        };
        answer(
            bound,
            Place::Live {
                likeness,
                own: true,
            },
        )
    };
    assert_eq!(own_pane(Likeness::Same, None), (State::Own, "own_pane"));
    // Foreign comes first: the record is not about this pane's process at all.
    assert_eq!(own_pane(Likeness::Other, None).0, State::Foreign);
    // One who asks for an ancestor means his own pane.
    assert_eq!(own_pane(Likeness::Same, Some(true)).0, State::Match);
    assert_eq!(
        own_pane(Likeness::Same, Some(false)),
        (State::Foreign, "not_ancestor")
    );
}

#[test]
fn a_process_that_moved() {
    let moved = |own| {
        let judgement = judge(&Facts {
            elsewhere: Some(Elsewhere {
                pane: "%7".to_owned(),
                own,
            }),
            ..facts(to(Process::Same), Place::NoPane)
        });
        (judgement.state, judgement.reason, judgement.live)
    };
    assert_eq!(moved(false), (State::Moved, "other_pane", Live::Bound));
    assert_eq!(moved(true), (State::Own, "own_pane", Live::Bound));
}

#[test]
fn the_same_program() {
    let with = |role: Role, place: Place| {
        let bound = Bound::To {
            process: Process::Same,
            exact: true,
            role,
            ancestor: None,
        };
        answer(bound, place)
    };
    let unreadable = || Role::Unknown(doubt("role_unknown"));
    for place in [live(Likeness::Same), Place::Nowhere, Place::NoPane] {
        let changed = with(Role::Changed, place.clone());
        assert_eq!(changed, (State::Foreign, "role_changed"));
        let unknown = with(unreadable(), place);
        assert_eq!(unknown, (State::Unknown, "role_unknown"));
    }
    assert_eq!(with(Role::Same, Place::Nowhere).0, State::Match);
    assert_eq!(
        with(Role::Same, live(Likeness::Same)),
        (State::Match, "same_process")
    );
}

#[test]
fn an_identity_of_ps_matches_weakly() {
    let bound = Bound::To {
        process: Process::Same,
        exact: false,
        role: Role::Unasked,
        ancestor: None,
    };
    let judgement = judge(&facts(bound, live(Likeness::Same)));
    assert_eq!((judgement.state, judgement.weak), (State::Match, true));
}

#[test]
fn records_without_an_identity() {
    let judged = |differing: Option<Vec<&'static str>>, place: Place| {
        let judgement = judge(&facts(Bound::Nobody { differing }, place));
        (judgement.state, judgement.reason, judgement.weak)
    };
    let here = || live(Likeness::Other);
    let own = Place::Live {
        likeness: Likeness::Other,
        own: true,
    };
    let silent = Place::Unknown(doubt("server_silent"));
    use State::*;
    let table = [
        (None, here(), (Unbound, "no_identity", false)),
        (None, Place::NoPane, (Unbound, "no_identity", false)),
        (Some(vec![]), here(), (Match, "legacy_equal", true)),
        (Some(vec![]), own.clone(), (Own, "own_pane", false)),
        (
            Some(vec!["cwd"]),
            here(),
            (Foreign, "legacy_differs", false),
        ),
        (Some(vec!["cwd"]), own, (Foreign, "legacy_differs", false)),
        (
            Some(vec![]),
            Place::NoPane,
            (Foreign, "no_such_pane", false),
        ),
        (Some(vec![]), Place::NoServer, (Foreign, "no_server", false)),
        (Some(vec![]), silent, (Unknown, "server_silent", false)),
    ];
    for (differing, place, expected) in table {
        let what = format!("{differing:?} {place:?}");
        assert_eq!(judged(differing, place), expected, "{what}");
    }
}

#[test]
fn whose_process_is_shown() {
    let shown = |process, place| judge(&facts(to(process), place)).live;
    assert_eq!(shown(Process::Same, live(Likeness::Same)), Live::InPane);
    assert_eq!(shown(Process::Gone, live(Likeness::Other)), Live::InPane);
    assert_eq!(shown(Process::Same, Place::NoPane), Live::Bound);
    assert_eq!(shown(Process::Recycled, Place::Nowhere), Live::Bound);
    assert_eq!(shown(Process::Gone, Place::NoPane), Live::None);
}
