//! The lines of herdr's protocol: one JSON object each.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// One request as a line, with its newline. `id` must be a string, and `params` must be there
/// even when empty; a server answers anything else with an error of its own.
pub fn request_line(id: &str, method: &str, params: &serde_json::Value) -> Vec<u8> {
    let request = serde_json::json!({ "id": id, "method": method, "params": params });
    format!("{request}\n").into_bytes()
}

/// One line from the server.
#[derive(Clone, Debug)]
pub enum Message {
    /// The result of a request, or that a subscription has begun.
    Result(Box<RawValue>),
    /// A refusal. In the middle of a stream it says that something was lost.
    Error {
        /// The server's word for it.
        code: String,
        /// Its text for people.
        message: String,
    },
    /// Something has happened.
    Event {
        /// What, in the one form of [`event_name`].
        name: String,
        /// The rest, as the server wrote it; `null` where it wrote nothing.
        data: Box<RawValue>,
    },
}

/// Reads one line.
///
/// # Errors
///
/// The text says what in it is not of the protocol.
pub fn parse_message(line: &[u8]) -> Result<Message, String> {
    #[derive(Deserialize)]
    struct Envelope {
        result: Option<Box<RawValue>>,
        error: Option<ErrorBody>,
        event: Option<String>,
        data: Option<Box<RawValue>>,
    }
    #[derive(Deserialize)]
    struct ErrorBody {
        #[serde(default)]
        code: String,
        #[serde(default)]
        message: String,
    }
    let text = String::from_utf8_lossy(line);
    // An array would be taken for the envelope's fields in their order.
    if !text.trim_start().starts_with('{') {
        return Err("the line is no JSON object".to_owned());
    }
    let envelope: Envelope = serde_json::from_str(&text)
        .map_err(|error| format!("the line is not readable: {error}"))?;
    if let Some(ErrorBody { code, message }) = envelope.error {
        return Ok(Message::Error { code, message });
    }
    if let Some(event) = envelope.event {
        return Ok(Message::Event {
            name: event_name(&event).into_owned(),
            data: envelope.data.unwrap_or_else(null),
        });
    }
    match envelope.result {
        Some(result) => Ok(Message::Result(result)),
        None => Err("the line has neither result, error nor event".to_owned()),
    }
}

fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

/// The name of an event in the one form that subscriptions use: `pane.closed`. On the wire most
/// of them come as `pane_closed`; the three that belong to one pane keep the dot.
pub fn event_name(wire: &str) -> Cow<'_, str> {
    if wire.contains('.') {
        Cow::Borrowed(wire)
    } else {
        Cow::Owned(wire.replacen('_', ".", 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_name() {
        let table = [
            ("pane_closed", "pane.closed"),
            ("pane_agent_detected", "pane.agent_detected"),
            ("pane.agent_status_changed", "pane.agent_status_changed"),
            ("workspace_metadata_updated", "workspace.metadata_updated"),
            ("layout_updated", "layout.updated"),
            ("odd", "odd"),
        ];
        for (wire, name) in table {
            assert_eq!(event_name(wire), name);
        }
    }

    #[test]
    fn requests_have_an_id_and_params() {
        let line = request_line("s1", "ping", &serde_json::json!({}));
        assert_eq!(line, b"{\"id\":\"s1\",\"method\":\"ping\",\"params\":{}}\n");
    }

    #[test]
    fn what_a_line_is() {
        let show = |line: &str| match parse_message(line.as_bytes()) {
            Ok(Message::Result(result)) => format!("result {result}"),
            Ok(Message::Error { code, message }) => format!("error {code}: {message}"),
            Ok(Message::Event { name, data }) => format!("event {name} {data}"),
            Err(_) => "malformed".to_owned(),
        };
        let table = [
            (
                r#"{"id":"p1","result":{"type":"pong"},"new":1}"#,
                r#"result {"type":"pong"}"#,
            ),
            (
                r#"{"id":"s:sub:0:probe","error":{"code":"pane_not_found","message":"gone","x":[]}}"#,
                "error pane_not_found: gone",
            ),
            (r#"{"id":"","error":{}}"#, "error : "),
            (
                r#"{"data":{"pane_id":"w1:p4","n":1.0},"event":"pane_closed"}"#,
                r#"event pane.closed {"pane_id":"w1:p4","n":1.0}"#,
            ),
            (r#"{"event":"pane_closed"}"#, "event pane.closed null"),
            (r#"{"id":"x"}"#, "malformed"),
            ("[1,2,3,4]", "malformed"),
            ("Error: Custom { kind: Other }", "malformed"),
            ("", "malformed"),
            (r#"{"result":"a string"}"#, r#"result "a string""#),
        ];
        for (line, shown) in table {
            assert_eq!(show(line), shown, "{line}");
        }
    }
}
