//! Troubles that people have reported of launching agents, and what is decided in them.
//!
//! Those that are about other rooms are shown there:
//!
//! | trouble | shown in |
//! |---|---|
//! | an id file that grew to a thousand repeated lines; a blank or huge id (frankbria/ralph-claude-code#254, handarbeit/fabrik#1128) | `told` |
//! | two new sessions in one discovery window (edspencer/herdctl#357) | `--discover` |
//! | a lock whose owner is dead, or lives as another user (dcostenco/prism-coder#169); one from before the boot (vim/vim#7947); one whose pid was handed out again (patroni/patroni#681) | `claim` |
//! | a retry that begins before the holder is dead (openclaw/openclaw#62935) | `exec` |
//!
//! What ends otherwise here, or has no test, is in `tests/cases.md`.

use agents::State::{Conversational, Unusable};

use super::world::Who::*;
use super::world::*;

#[test]
fn what_is_decided() {
    let claude = World::claude;
    let days: Vec<_> = (0..100)
        .flat_map(|_| [(1, 40, false), (0, 86_400_000, false)])
        .collect();
    let table = [
        (
            "anthropics/claude-code#5524: 'in use', and no process runs",
            claude().conversation().held_by(&[]),
            "resume",
        ),
        (
            "Untrivial-ai/agent-orchestrator#4280: killed and restored for ever",
            claude().conversation().crashes(3),
            "mint",
        ),
        (
            "EdanStarfire/claudecode_webui#1017: the conversation is no more",
            claude().verified().held_by(&[]),
            "mint",
        ),
        (
            "thedotmack/claude-mem#817: a counter says that there were turns",
            claude().verified(),
            "mint",
        ),
        (
            "agent-of-empires/agent-of-empires#2344: a newer session in the same directory",
            claude().conversation(),
            "resume",
        ),
        (
            "asheshgoplani/agent-deck#1815: held by one of ours under another name",
            claude().conversation().held_by(&[Foreign]),
            "mint",
        ),
        (
            "skills-directory/skill-codex#24: no id, and a shared directory",
            World::of("codex").without_id(),
            "spawn",
        ),
        (
            "anthropics/claude-code#87525: a crashed session, its wrapper alive",
            claude().conversation().held_by(&[Husk]),
            "reclaim then resume, 1 stale",
        ),
        (
            "github/copilot-cli#4098: the last line is cut",
            World::of("copilot").conversation().damaged().held_by(&[]),
            "resume",
        ),
        (
            "gethouston/houston#327: the same broken transcript at each try",
            claude().conversation().damaged().crashes(3),
            "mint",
        ),
        (
            "bobmatnyc/trusty-tools#3631: it starts well, and dies after 3 s",
            claude().conversation().exits(&[(1, 3_000, false); 3]),
            "mint",
        ),
        (
            "thiagoesteves/deployex#300: a hundred crashes, healthy days between",
            claude().conversation().exits(&days),
            "resume",
        ),
        (
            "elle-lisp/elle#1211: ninety-nine restarts",
            claude().conversation().crashes(99),
            "mint",
        ),
        (
            "anthropics/claude-code#62851: it looks like a transcript, and is none",
            claude().transcript(Unusable, Some(true)),
            "mint",
        ),
        (
            "anomalyco/opencode#41841: it hangs when resumed from elsewhere",
            World::of("opencode").transcript(Conversational, Some(false)),
            "spawn",
        ),
    ];
    for (name, world, want) in table {
        assert_eq!(world.says(), want, "{name}");
    }
}

#[test]
fn a_new_id_begins_with_a_clean_record() {
    let minted = World::claude().conversation().crashes(3).decide();
    assert_eq!(minted.text("minted_by"), "breaker");
    let next = World::claude().minted_by("breaker").decide();
    assert_eq!(next.key("breaker")["failures"], 0);
    assert_eq!(next.short(), "assign");
}
