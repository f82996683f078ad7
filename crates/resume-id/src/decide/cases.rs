//! What another supervisor's tests, code and incidents say about launching, in our own words. Where
//! its answer and ours differ, ours is what the manual says: `tests/cases.md` has those.

use agents::State::{Conversational, Unusable};

use super::world::Who::*;
use super::world::*;
use crate::told::Source;

/// What is launched, in short: how, and under which id.
fn launched(world: &World) -> String {
    let said = world.decide();
    let id = match said.text("session_id") {
        A1 => "the stored id",
        NEW => "a new id",
        "null" => "no id",
        other => other,
    };
    format!("{}: {id}", said.short())
}

#[test]
fn launches() {
    let claude = World::claude;
    let table = [
        ("no stored id", claude().without_id(), "mint: a new id"),
        (
            "a restart without a row",
            claude().without_id(),
            "mint: a new id",
        ),
        (
            "somebody's own conversation in the same directory is not ours",
            claude().without_id().transcript(Conversational, Some(true)),
            "mint: a new id",
        ),
        (
            "a transcript",
            claude().conversation().held_by(&[]),
            "resume: the stored id",
        ),
        (
            "no holder, told by nobody",
            claude().conversation(),
            "resume: the stored id",
        ),
        (
            "the transcript is gone",
            claude().verified(),
            "mint: a new id",
        ),
        (
            "a restart whose transcript is gone",
            claude().verified().held_by(&[]),
            "mint: a new id",
        ),
        (
            "under another directory",
            claude().verified().transcript(Conversational, Some(false)),
            "mint: a new id",
        ),
        (
            "held by a stranger",
            claude().conversation().held_by(&[Foreign]),
            "mint: a new id",
        ),
        (
            "held by us, its agent dead",
            claude().conversation().held_by(&[Husk]),
            "reclaim then resume, 1 stale: the stored id",
        ),
        (
            "held by us and by a stranger",
            claude().conversation().held_by(&[Husk, Foreign]),
            "mint, 1 stale: a new id",
        ),
        (
            "held by us and well",
            claude().conversation().held_by(&[Own(60_000)]),
            "already_running: the stored id",
        ),
        (
            "respawned after a crash without a transcript",
            claude().exits(&[(1, 200, false)]),
            "assign: the stored id",
        ),
        (
            "the scan failed",
            claude().conversation().nobody_looked(),
            "unknown: the stored id",
        ),
        (
            "the transcript cannot be looked at",
            claude().unreadable(),
            "unknown: the stored id",
        ),
        (
            "its transcripts cannot be looked for",
            claude().untold(),
            "resume: the stored id",
        ),
        (
            "the same, and it makes its own ids",
            World::of("agy").untold(),
            "resume: the stored id",
        ),
        (
            "the same, and nobody knows whether it took the id",
            claude().untold().source(Source::Pending),
            "assign: the stored id",
        ),
        (
            "the same, held by us, its agent dead",
            claude().untold().held_by(&[Husk]),
            "reclaim then resume, 1 stale: the stored id",
        ),
        (
            "the same, and it keeps dying",
            claude().untold().crashes(3),
            "mint: a new id",
        ),
        (
            "resuming is to be skipped",
            claude().without_id(),
            "mint: a new id",
        ),
        (
            "an agent without ids",
            World::of("codex").without_id(),
            "spawn: no id",
        ),
    ];
    for (name, world, want) in table {
        assert_eq!(launched(&world), want, "{name}");
    }
}

#[test]
fn a_resume_has_no_prompt_and_a_beginning_has() {
    let resume = World::claude().conversation().decide();
    assert_eq!(resume.argv(), format!("claude --resume {A1} NUDGE"));
    assert_eq!(
        resume.fallback(),
        format!("claude --session-id {NEW} PROMPT")
    );
    let mint = World::claude().without_id().decide();
    assert_eq!(mint.argv(), format!("claude --session-id {NEW} PROMPT"));
    assert_eq!(mint.fallback(), "");
    let trusted = World::claude().untold().decide();
    assert_eq!(trusted.argv(), resume.argv());
    assert_eq!(trusted.fallback(), resume.fallback());
    assert_eq!(trusted.key("artifact")["state"], "unknown");
    assert_eq!(trusted.key("session_id_verified"), false);
    let stranger = World::claude().conversation().held_by(&[Foreign]).decide();
    assert_eq!(stranger.fallback(), "");
}

#[test]
fn many_launches() {
    let agent = agents::Table::built_in().unwrap();
    let agent = agent.get("claude").unwrap();
    assert_ne!(
        crate::decision::new_id(agent),
        crate::decision::new_id(agent)
    );
    // Two at the same moment: the second finds the claim of the first, and reaps nothing.
    let first = World::claude().conversation().held_by(&[Husk]);
    assert_eq!(first.says(), "reclaim then resume, 1 stale");
    let second = World::claude().conversation().held_by(&[Husk]).claimed();
    assert_eq!(second.says(), "already_running");
}

#[test]
fn exits_and_loops() {
    // What follows on three of one kind, each after 10 ms.
    let three = |exit: (i32, u64, bool)| World::claude().conversation().exits(&[exit; 3]).says();
    let table = [
        ("code 1", (1, 10, false), "mint"),
        ("code 130", (130, 10, false), "mint"),
        ("code 143", (143, 10, false), "mint"),
        ("code 0", (0, 10, false), "mint"),
        ("code 0, asked for", (0, 10, true), "resume"),
        ("code 0, after a long life", (0, 8_000, false), "resume"),
        ("code 1, after a long life", (1, 8_000, false), "resume"),
    ];
    for (name, exit, want) in table {
        assert_eq!(three(exit), want, "{name}");
    }
    let crashes = |n: usize| World::claude().conversation().crashes(n).says();
    let loops = [
        (0, "resume"),
        (1, "resume"),
        (2, "resume"),
        (3, "mint"),
        (50, "mint"),
    ];
    for (n, want) in loops {
        assert_eq!(crashes(n), want, "{n} crashes");
    }
    // Their distance plays no part, only how long each lived.
    let slow = World::claude()
        .conversation()
        .exits(&[(1, 7_999, false); 3]);
    assert_eq!(slow.says(), "mint");
}

/// One launch after the other: what the row and the history have become is what the next decision
/// is told.
#[test]
fn a_loop_of_launches() {
    // An agent that dies before it writes anything.
    let silent = |deaths: usize| World::claude().crashes(deaths);
    let says: Vec<_> = (0..4).map(|deaths| silent(deaths).says()).collect();
    assert_eq!(says, ["assign", "assign", "assign", "mint"]);
    // One that has written something first: pinned, then resumed, then begun anew.
    let talking = |deaths: usize| match deaths {
        0 => World::claude(),
        _ => World::claude().verified().conversation().crashes(deaths),
    };
    let says: Vec<_> = (0..4).map(|deaths| talking(deaths).says()).collect();
    assert_eq!(says, ["assign", "resume", "resume", "mint"]);
    // The new id has the same trouble, and then somebody has to look.
    let new = |deaths: usize| World::claude().minted_by("breaker").crashes(deaths);
    let says: Vec<_> = (1..4).map(|deaths| new(deaths).says()).collect();
    assert_eq!(says, ["assign", "assign", "give_up"]);
    let broken = World::claude().transcript(Unusable, Some(true)).crashes(1);
    assert_eq!(broken.says(), "mint");
}

#[test]
fn restarts() {
    let conversation = || World::claude().verified().conversation();
    let table = [
        (
            "a crash",
            conversation().exits(&[(1, 20_000, false)]),
            "resume",
        ),
        (
            "a death by signal that a library reports as code 0",
            conversation().exits(&[(0, 20_000, false)]),
            "resume",
        ),
        (
            "five clean exits at once",
            conversation().exits(&[(0, 10, false); 5]),
            "mint",
        ),
        (
            "the same of the breaker's own id",
            conversation()
                .minted_by("breaker")
                .exits(&[(0, 10, false); 5]),
            "give_up",
        ),
        (
            "ten clean exits after a while",
            conversation().exits(&[(0, 9_000, false); 10]),
            "resume",
        ),
        (
            "three crashes of a first launch",
            World::claude().crashes(3),
            "mint",
        ),
        (
            "a long time down changes nothing",
            conversation().crashes(2),
            "resume",
        ),
        (
            "a slow one between quick ones",
            conversation().exits(&[
                (0, 9, false),
                (0, 9, false),
                (0, 9_000, false),
                (0, 9, false),
            ]),
            "resume",
        ),
    ];
    for (name, world, want) in table {
        assert_eq!(world.says(), want, "{name}");
    }
    // Giving up keeps the id, says why, and ends nothing.
    let gave_up = conversation().minted_by("breaker").crashes(3).decide();
    assert_eq!(gave_up.text("session_id"), A1);
    assert_eq!(gave_up.short(), "give_up");
    assert!(gave_up.text("reason").contains("lived less than 8 s"));
}

#[test]
fn rows_and_processes_that_disagree() {
    // A row without a process: it is what transcripts say it is.
    assert_eq!(World::claude().conversation().held_by(&[]).says(), "resume");
    assert_eq!(World::claude().verified().held_by(&[]).says(), "mint");
    assert_eq!(World::claude().without_id().says(), "mint");
    assert_eq!(World::of("codex").without_id().says(), "spawn");
    // A process without a row: it is found by the id, and the row is of no account.
    let unknown_row = World::claude().conversation();
    assert_eq!(
        unknown_row.held_by(&[Husk]).says(),
        "reclaim then resume, 1 stale"
    );
}
