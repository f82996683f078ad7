//! The rows, one after the other, and their order.

use super::world::Who::*;
use super::world::*;
use super::*;
use crate::told::Source;
use agents::State::{Conversational, Unusable};

fn all(table: &[(&str, World, &str)]) {
    for (name, world, want) in table {
        assert_eq!(world.says(), *want, "{name}");
    }
}

#[test]
fn row_2_no_good_look() {
    all(&[
        (
            "nobody looked",
            World::claude().conversation().nobody_looked(),
            "unknown",
        ),
        (
            "whatever else is known",
            World::claude().nobody_looked().crashes(3).claimed(),
            "unknown",
        ),
        (
            "nobody can hold no id",
            World::claude().without_id().nobody_looked(),
            "mint",
        ),
        (
            "nobody can hold no id",
            World::of("codex").without_id().nobody_looked(),
            "spawn",
        ),
        ("nobody was asked", World::claude().conversation(), "resume"),
    ]);
    assert_eq!(
        World::claude().nobody_looked().decide().text("holders"),
        "unknown"
    );
    assert_eq!(World::claude().decide().text("holders"), "not_consulted");
    assert_eq!(
        World::claude().held_by(&[]).decide().text("holders"),
        "as tested"
    );
}

#[test]
fn row_3_a_stranger_holds_it() {
    all(&[
        (
            "takes ids",
            World::claude().conversation().held_by(&[Foreign]),
            "mint",
        ),
        (
            "makes its own",
            World::of("opencode").conversation().held_by(&[Foreign]),
            "spawn",
        ),
        (
            "with a husk",
            World::claude().held_by(&[Foreign, Husk]),
            "mint, 1 stale",
        ),
        (
            "with a live one",
            World::claude().held_by(&[Own(60_000), Foreign]),
            "mint",
        ),
        (
            "before the claim",
            World::claude().held_by(&[Foreign]).claimed(),
            "mint",
        ),
        (
            "before the breaker",
            World::claude().held_by(&[Foreign, Own(10)]).crashes(3),
            "mint",
        ),
        (
            "not to be read",
            World::claude().held_by(&[Foreign]).unreadable(),
            "mint",
        ),
        (
            "stop is about what is missing",
            World::claude().held_by(&[Foreign]).stop_if_missing(),
            "mint",
        ),
    ]);
    let said = World::claude()
        .verified()
        .conversation()
        .held_by(&[Foreign])
        .decide();
    assert_eq!(said.text("session_id"), NEW);
    assert_eq!(said.text("previous_session_id"), A1);
    assert_eq!(said.key("minted_by"), &serde_json::Value::Null);
    assert_eq!(said.key("session_id_verified"), false);
    assert_eq!(said.argv(), format!("claude --session-id {NEW} PROMPT"));
    assert!(said.text("reason").contains("process 100"));
}

#[test]
fn row_3_a_shared_daemon() {
    let codex = || World::of("codex").conversation();
    all(&[
        (
            "takes further clients",
            codex().held_by(&[Daemon]),
            "resume",
        ),
        (
            "with a husk of ours",
            codex().held_by(&[Daemon, Husk]),
            "resume, 1 stale",
        ),
        (
            "with a client of ours",
            codex().held_by(&[Daemon, Own(60_000)]),
            "already_running",
        ),
        (
            "with a client that starts",
            codex().held_by(&[Daemon, Own(10)]),
            "unknown",
        ),
        (
            "with a launch under way",
            codex().held_by(&[Daemon]).claimed(),
            "already_running",
        ),
        (
            "with a stranger beside",
            codex().held_by(&[Daemon, Foreign]),
            "spawn",
        ),
        (
            "nothing to continue",
            World::of("codex").held_by(&[Daemon]),
            "spawn",
        ),
        (
            "of an agent without",
            World::claude().conversation().held_by(&[Daemon]),
            "mint",
        ),
    ]);
    let said = codex().held_by(&[Daemon]).decide();
    assert_eq!(said.key("may_block"), false);
    assert_eq!(said.argv(), format!("codex resume {A1} NUDGE"));
}

#[test]
fn row_4_claimed() {
    let unclear = Claim::Unclear("who knows".to_owned());
    all(&[
        (
            "by one that lives",
            World::claude().conversation().claimed(),
            "already_running",
        ),
        (
            "it cannot be told",
            World::claude().conversation().claim(unclear),
            "unknown",
        ),
        (
            "before an unsettled one",
            World::claude().held_by(&[Own(10)]).claimed(),
            "already_running",
        ),
        (
            "before the breaker",
            World::claude().crashes(3).claimed(),
            "already_running",
        ),
        (
            "before a husk",
            World::claude().held_by(&[Husk]).claimed(),
            "already_running",
        ),
    ]);
}

#[test]
fn row_5_it_runs() {
    all(&[
        (
            "settled",
            World::claude().held_by(&[Own(8_000)]),
            "already_running",
        ),
        (
            "not quite",
            World::claude().held_by(&[Own(7_999)]),
            "unknown",
        ),
        (
            "before the breaker",
            World::claude().held_by(&[Own(8_000)]).crashes(9),
            "already_running",
        ),
        (
            "with a husk beside",
            World::claude().held_by(&[Husk, Own(9_000)]),
            "already_running",
        ),
        (
            "the caller is inside",
            World::claude().held_by(&[Itself(true)]),
            "already_running",
        ),
        (
            "the caller only names it",
            World::claude().held_by(&[Itself(false)]),
            "assign",
        ),
    ]);
    let said = World::claude().held_by(&[Husk, Own(9_000)]).decide();
    assert_eq!(said.key("holder")["pid"], 101);
    assert_eq!(said.key("argv"), &serde_json::Value::Null);
    assert_eq!(said.text("session_id"), A1);
}

#[test]
fn row_6_the_breaker() {
    all(&[
        ("three", World::claude().conversation().crashes(3), "mint"),
        (
            "two are not enough",
            World::claude().conversation().crashes(2),
            "resume",
        ),
        ("also at first launches", World::claude().crashes(3), "mint"),
        (
            "code 0 at once",
            World::claude().exits(&[(0, 5, false); 3]),
            "mint",
        ),
        (
            "on purpose",
            World::claude().exits(&[(0, 5, true); 3]),
            "assign",
        ),
        (
            "a healthy one between",
            World::claude().exits(&[
                (1, 5, false),
                (1, 5, false),
                (0, 8_000, false),
                (1, 5, false),
            ]),
            "assign",
        ),
        (
            "with its wrapper",
            World::claude().crashes(3).held_by(&[Own(10), Husk]),
            "mint, 2 stale",
        ),
        (
            "an agent without ids",
            World::of("codex").conversation().crashes(3),
            "spawn",
        ),
        (
            "tried already",
            World::claude().crashes(3).minted_by("breaker"),
            "give_up",
        ),
        (
            "tried already, and it lives still",
            World::claude()
                .crashes(3)
                .minted_by("breaker")
                .held_by(&[Own(10)]),
            "give_up",
        ),
        (
            "minted by somebody else",
            World::claude().crashes(3).minted_by("me"),
            "mint",
        ),
    ]);
    let said = World::claude().conversation().crashes(3).decide();
    assert_eq!(said.text("minted_by"), "breaker");
    assert_eq!(said.text("previous_session_id"), A1);
    assert_eq!(said.key("breaker")["failures"], 3);
    let said = World::claude().crashes(4).minted_by("breaker").decide();
    assert_eq!(said.key("breaker")["last_exit"]["log_tail"], "boom");
    assert!(said.text("reason").contains("exit code 1 after 0.9 s"));
    assert!(said.text("reason").contains("boom"));
    assert_eq!(said.text("session_id"), A1);
    assert_eq!(said.text("minted_by"), "breaker");
}

#[test]
fn row_7_not_yet_settled() {
    all(&[
        (
            "young",
            World::claude().conversation().held_by(&[Own(10)]),
            "unknown",
        ),
        (
            "of an unknown age",
            World::claude().held_by(&[OwnOfUnknownAge]),
            "unknown",
        ),
        (
            "with a husk beside",
            World::claude().held_by(&[Husk, Own(10)]),
            "unknown",
        ),
    ]);
    assert_eq!(
        World::claude().held_by(&[Own(10)]).decide().text("reason"),
        "unsettled"
    );
}

/// It was called as the agent is, and only its caller can tell that it is none.
#[test]
fn the_callers_own_script() {
    for (age, action, begins) in [
        (
            10,
            "unknown",
            "unsettled: the caller runs inside of process 100, which",
        ),
        (
            9_000,
            "already_running",
            "process 100 holds the session and is well;",
        ),
    ] {
        let said = World::claude().held_by(&[Script(age)]).decide();
        assert_eq!(said.short(), action);
        let reason = said.text("reason");
        assert!(reason.starts_with(begins), "{reason}");
        assert!(
            reason.contains("call it with the id alone, without --session-id"),
            "{reason}"
        );
    }
    let agent = World::claude().held_by(&[Itself(true)]).decide();
    assert!(
        agent
            .text("reason")
            .ends_with("the caller runs inside of it")
    );
}

#[test]
fn row_8_a_husk() {
    let held = |world: World| world.held_by(&[Husk]);
    all(&[
        (
            "a conversation",
            held(World::claude().conversation()),
            "reclaim then resume, 1 stale",
        ),
        (
            "zero turns",
            held(World::claude()),
            "reclaim then assign, 1 stale",
        ),
        (
            "unusable",
            held(World::claude().transcript(Unusable, Some(true))),
            "reclaim then mint, 1 stale",
        ),
        (
            "lost, of an agent without ids",
            held(World::of("codex")),
            "reclaim then spawn, 1 stale",
        ),
        (
            "where nothing is launched",
            held(World::claude().verified()).stop_if_missing(),
            "give_up",
        ),
        (
            "where it cannot be told",
            held(World::claude().unreadable()),
            "unknown",
        ),
        (
            "two of them",
            World::claude().held_by(&[Husk, Husk]),
            "reclaim then assign, 2 stale",
        ),
    ]);
    let said = held(World::claude().conversation()).decide();
    assert_eq!(said.argv(), format!("claude --resume {A1} NUDGE"));
    assert_eq!(said.fallback(), format!("claude --session-id {NEW} PROMPT"));
    assert!(said.text("reason").contains("process 100"));
}

#[test]
fn row_9_a_conversation() {
    all(&[
        ("ours", World::claude().conversation(), "resume"),
        (
            "no directory is said",
            World::of("agy").transcript(Conversational, None),
            "resume",
        ),
        (
            "never assigned again",
            World::claude().source(Source::Assigned).conversation(),
            "resume",
        ),
        (
            "one of ours, one elsewhere",
            World::claude()
                .transcript(Conversational, Some(false))
                .conversation(),
            "resume",
        ),
        (
            "damaged at its end",
            World::claude().conversation().damaged(),
            "resume",
        ),
    ]);
    let said = World::claude().conversation().decide();
    assert_eq!(said.key("session_id_verified"), true);
    assert_eq!(said.key("artifact")["turns"], 12);
    assert_eq!(said.argv(), format!("claude --resume {A1} NUDGE"));
    assert!(
        World::claude()
            .conversation()
            .damaged()
            .decide()
            .text("reason")
            .contains("damaged")
    );
    // Agents that would show a lock screen or a menu to a second one.
    for agent in ["codex", "copilot"] {
        let unseen = World::of(agent).conversation();
        assert_eq!(unseen.decide().key("may_block"), true, "{agent}");
        let seen = World::of(agent).conversation().held_by(&[]);
        assert_eq!(seen.decide().key("may_block"), false, "{agent}");
    }
    assert_eq!(
        World::claude().conversation().decide().key("may_block"),
        false
    );
    // Agents that would ask about a directory, or hang, in another one than the session's.
    for agent in ["codex", "opencode", "pi"] {
        let unsaid = World::of(agent).transcript(Conversational, None);
        let said = unsaid.held_by(&[]).decide();
        assert_eq!(said.short(), "resume", "{agent}");
        assert_eq!(said.key("may_block"), true, "{agent}");
        assert!(said.text("reason").contains("of which directory"));
    }
    let unsaid = World::of("codex").transcript(Conversational, None);
    let said = unsaid.held_by(&[Daemon]).decide();
    assert_eq!(said.key("may_block"), true);
}

#[test]
fn row_10_stopped_before_the_first_message() {
    all(&[
        ("the same id again", World::claude(), "assign"),
        (
            "not yet known to be taken",
            World::claude().source(Source::Pending),
            "assign",
        ),
        ("opens or creates", World::of("pi"), "assign"),
        (
            "metadata is in nobody's way there",
            World::of("pi").transcript(Unusable, Some(true)),
            "assign",
        ),
        ("seen before", World::claude().verified(), "mint"),
        (
            "not given by us",
            World::claude().source(Source::Discovered),
            "mint",
        ),
    ]);
    let said = World::claude().decide();
    assert_eq!(said.argv(), format!("claude --session-id {A1} PROMPT"));
    assert_eq!(said.fallback(), format!("claude --resume {A1} NUDGE"));
    assert_eq!(said.key("session_id_verified"), false);
}

#[test]
fn rows_11_and_12_no_id() {
    for agent in ["codex", "opencode", "hermes", "agy", "cursor-agent"] {
        let world = World::of(agent).without_id();
        assert_eq!(world.says(), "spawn", "{agent}");
        let said = world.decide();
        assert_eq!(said.key("session_id"), &serde_json::Value::Null);
        assert_eq!(said.text("session_id_source"), "pending");
        assert_eq!(said.key("artifact"), &serde_json::Value::Null);
        assert_eq!(said.argv(), format!("{agent} PROMPT"));
        // Nothing is missing, so nothing is to be stopped.
        assert_eq!(
            World::of(agent).without_id().stop_if_missing().says(),
            "spawn"
        );
    }
    for agent in ["claude", "gemini", "qwen", "pi", "grok", "copilot"] {
        let world = World::of(agent).without_id();
        assert_eq!(world.says(), "mint", "{agent}");
        assert_eq!(
            world.decide().argv(),
            format!("{agent} --session-id {NEW} PROMPT")
        );
    }
}

#[test]
fn a_beginning_of_the_breaker_has_no_id_at_first() {
    let began = World::of("codex").conversation().crashes(3).decide();
    assert_eq!(
        (began.short().as_str(), began.text("minted_by")),
        ("spawn", "breaker")
    );
    // It is stopped before there is an id, and begun again.
    let again = World::of("codex")
        .without_id()
        .minted_by("breaker")
        .decide();
    assert_eq!(
        (again.short().as_str(), again.text("minted_by")),
        ("spawn", "breaker")
    );
    let found = World::of("codex").conversation().minted_by("breaker");
    assert_eq!(found.crashes(3).says(), "give_up");
    // What takes the place of an id is nobody's but its own.
    let lost = World::claude().verified().minted_by("breaker").decide();
    assert_eq!(
        (lost.short().as_str(), lost.text("minted_by")),
        ("mint", "null")
    );
}

#[test]
fn row_13_lost() {
    let unusable = || World::claude().transcript(Unusable, Some(true));
    let elsewhere = || World::claude().transcript(Conversational, Some(false));
    all(&[
        ("unusable", unusable(), "mint"),
        ("gone", World::claude().verified(), "mint"),
        ("elsewhere", elsewhere(), "mint"),
        (
            "unusable, no ids",
            World::of("hermes").transcript(Unusable, Some(true)),
            "spawn",
        ),
        ("gone, no ids", World::of("opencode").verified(), "spawn"),
        ("never there, no ids", World::of("opencode"), "spawn"),
        ("unusable, stop", unusable().stop_if_missing(), "give_up"),
        (
            "gone, stop",
            World::claude().verified().stop_if_missing(),
            "give_up",
        ),
        ("elsewhere, stop", elsewhere().stop_if_missing(), "give_up"),
        (
            "zero turns are nothing missing",
            World::claude().stop_if_missing(),
            "assign",
        ),
    ]);
    let reasons = [
        (unusable(), "no message"),
        (World::claude().verified(), "is gone"),
        (elsewhere(), "another directory (/elsewhere)"),
    ];
    for (world, want) in reasons {
        assert!(world.decide().text("reason").contains(want), "{want}");
    }
    // Who says stop gets no new session by a back door either.
    let resume = World::claude().conversation().stop_if_missing();
    assert_eq!(resume.decide().fallback(), "");
}

#[test]
fn row_14_it_cannot_be_told() {
    let two = World::claude()
        .transcript(Conversational, Some(false))
        .transcript(Conversational, Some(false));
    all(&[
        ("two other directories", two, "unknown"),
        ("not to be read", World::claude().unreadable(), "unknown"),
        (
            "not to be read, no id",
            World::claude().unreadable().without_id(),
            "mint",
        ),
    ]);
    let said = World::claude().unreadable().decide();
    assert_eq!(said.key("artifact")["state"], "unknown");
}

#[test]
fn a_decision_has_all_its_keys() {
    let keys = |world: World| {
        let record = world.decide();
        let text = record.key("type").as_str().map(str::to_owned);
        assert_eq!(text.as_deref(), Some("decision"));
        record.keys()
    };
    let want = keys(World::claude());
    for world in [
        World::claude().conversation().held_by(&[Husk]),
        World::claude().nobody_looked(),
        World::of("codex").without_id(),
        World::claude().crashes(3).minted_by("breaker"),
    ] {
        assert_eq!(keys(world), want);
    }
}
