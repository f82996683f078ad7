//! What herdr is asked for panes' events with, and what of its answers matters. Pure.

use records::time;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::args::Kind;

/// The event of a pane's status.
pub const STATUS: &str = "pane.agent_status_changed";

/// A record of this source.
#[derive(Serialize)]
pub struct Event<'a, D> {
    v: u8,
    r#type: &'static str,
    source: &'static str,
    event: &'a str,
    data: D,
    initial: bool,
    at: String,
}

/// What to subscribe to: the status of each pane, and what happens to any pane.
pub fn subscriptions(panes: &[&str], kinds: &[Kind]) -> Vec<Value> {
    let has = |kind| kinds.contains(&kind);
    let mut all = Vec::new();
    if has(Kind::Status) {
        let status = |pane: &&str| json!({ "type": STATUS, "pane_id": pane });
        all.extend(panes.iter().map(status));
    }
    if has(Kind::Exit) {
        all.push(json!({ "type": "pane.exited" }));
    }
    if has(Kind::Close) {
        all.push(json!({ "type": "pane.closed" }));
    }
    if has(Kind::Exit) || has(Kind::Close) {
        all.push(json!({ "type": "pane.moved" }));
    }
    all
}

/// A record of the event `name`, now.
pub fn event<D: Serialize>(name: &str, data: D, initial: bool) -> Event<'_, D> {
    Event {
        v: 1,
        r#type: "event",
        source: "herdr",
        event: name,
        data,
        initial,
        at: time::now(),
    }
}

/// What matters in the data of events and in results.
#[derive(Default, Deserialize)]
pub struct Fields {
    /// The pane that an event is about.
    pub pane_id: Option<String>,
    /// What that was called before it was moved.
    pub previous_pane_id: Option<String>,
    /// The pane, as it is now.
    pub pane: Option<PaneInfo>,
}

/// A pane, as an event of its status shows it.
#[derive(Deserialize, Serialize)]
pub struct PaneInfo {
    /// Its id.
    pub pane_id: String,
    #[serde(default)]
    workspace_id: Option<String>,
    #[serde(default)]
    agent_status: Option<String>,
    #[serde(default)]
    agent: Option<String>,
}

impl Fields {
    /// Those of this JSON, as far as it has them.
    pub fn of(json: &RawValue) -> Fields {
        // Other data has no such fields.
        serde_json::from_str(json.get()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_subscribed_to() {
        let of = |kinds: &[Kind]| Value::from(subscriptions(&["w1:p1", "w1:p2"], kinds));
        let status = |pane| json!({"type": "pane.agent_status_changed", "pane_id": pane});
        assert_eq!(
            of(&[Kind::Status]),
            json!([status("w1:p1"), status("w1:p2")])
        );
        let gone = [
            json!({"type": "pane.exited"}),
            json!({"type": "pane.closed"}),
        ];
        let moved = json!({"type": "pane.moved"});
        assert_eq!(
            of(&[Kind::Exit, Kind::Close]),
            json!([gone[0], gone[1], moved])
        );
        assert_eq!(of(&[Kind::Close]), json!([gone[1], moved]));
    }
}
