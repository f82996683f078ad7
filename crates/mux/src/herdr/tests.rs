use super::*;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::time::Duration;

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

/// A server that answers each method with a line of its own, and hangs up on all others. It ends
/// once `end` has been asked for.
fn serve(socket: &Path, answers: &[(&str, &str)]) -> std::thread::JoinHandle<()> {
    let listener = UnixListener::bind(socket).unwrap();
    let owned = |&(method, line): &(&str, &str)| (method.to_owned(), line.to_owned());
    let answers: HashMap<String, String> = answers.iter().map(owned).collect();
    std::thread::spawn(move || {
        loop {
            let (mut client, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&client).read_line(&mut line).unwrap();
            let request: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert!(request["id"].is_string() && request["params"].is_object());
            let method = request["method"].as_str().unwrap();
            if method == "end" {
                return;
            }
            if let Some(answer) = answers.get(method) {
                client.write_all(answer.as_bytes()).unwrap();
            }
        }
    })
}

fn panes(answers: &[(&str, &str)]) -> Result<Listing, Silence> {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let server = serve(&socket, answers);
    let herdr = Herdr::at(&socket);
    let panes = herdr.panes(soon());
    let _ = herdr.request("end", &serde_json::json!({}), soon());
    server.join().unwrap();
    panes
}

const PANES: &str = r#"{"id":"x","result":{"type":"pane_list","later":{},"panes":[
    {"pane_id":"w1:p1","tab_id":"w1:t1","cwd":"/a","label":"mine","later":[1]},
    {"pane_id":"w1:p2","tab_id":"w1:t1"}]}}"#;
const TABS: &str = r#"{"id":"x","result":{"tabs":[{"tab_id":"w1:t1","label":"tab"}]}}"#;
const PROCESS: &str =
    r#"{"id":"x","result":{"process_info":{"pane_id":"w1:p1","shell_pid":4242}}}"#;

fn line(text: &str) -> String {
    text.replace('\n', "") + "\n"
}

#[test]
fn panes_with_their_processes() {
    let (list, tabs, process) = (line(PANES), line(TABS), line(PROCESS));
    let listing = panes(&[
        ("pane.list", &list),
        ("tab.list", &tabs),
        ("pane.process_info", &process),
    ])
    .unwrap();
    let pid = Pid::new(4242).unwrap();
    let [first, second] = &listing.panes[..] else {
        panic!("{listing:?}")
    };
    assert_eq!(first.occupant, Occupant::Process(pid));
    assert_eq!(first.cwd.as_deref(), Some(Path::new("/a")));
    assert_eq!(first.label.as_deref(), Some("mine"));
    assert_eq!((second.label.as_deref(), &second.cwd), (Some("tab"), &None));
    // The kernel, not the server, says who is behind the socket.
    assert_eq!(listing.server.unwrap().pid, Some(Pid::own()));
    // Tabs only have labels.
    let refused = line(r#"{"id":"x","error":{"code":"invalid_request","message":"no"}}"#);
    let listing = panes(&[
        ("pane.list", &list),
        ("tab.list", &refused),
        ("pane.process_info", &process),
    ])
    .unwrap();
    let labels: Vec<_> = listing.panes.iter().map(|p| p.label.as_deref()).collect();
    assert_eq!(labels, [Some("mine"), None]);
}

#[test]
fn panes_without_a_process_to_name() {
    let (list, tabs) = (line(PANES), line(TABS));
    let occupants = |answer: &str| {
        let answer = line(answer);
        let answers = [
            ("pane.list", list.as_str()),
            ("tab.list", &tabs),
            ("pane.process_info", &answer),
        ];
        panes(&answers).map(|listing| {
            let panes = listing.panes.into_iter();
            panes.map(|pane| pane.occupant).collect::<Vec<_>>()
        })
    };
    // Closed since it was listed. The id of an error need not be the request's.
    let closed = r#"{"id":"x:probe","error":{"code":"pane_not_found","message":"no"}}"#;
    assert_eq!(occupants(closed), Ok(vec![]));
    for unknown in [
        r#"{"id":"x","error":{"code":"busy","message":"later"}}"#,
        r#"{"id":"x","result":{"process_info":{"shell_pid":null}}}"#,
        r#"{"id":"x","result":{"process_info":{}}}"#,
        r#"{"id":"x","result":{"process_info":{"shell_pid":0}}}"#,
        r#"{"id":"x","result":{"process_info":{"shell_pid":-1}}}"#,
        r#"{"id":"x","result":{"process_info":{"shell_pid":4294967297}}}"#,
    ] {
        let occupants = occupants(unknown).unwrap();
        assert_eq!(occupants.len(), 2);
        let is_unknown = |occupant: &Occupant| matches!(occupant, Occupant::Unknown(_));
        assert!(occupants.iter().all(is_unknown), "{unknown}: {occupants:?}");
    }
}

#[test]
fn answers_that_are_none() {
    for nonsense in [
        "hello\n",
        "[]\n",
        "{}\n",
        "{\"result\":{}}\n",
        "{\"result\":\"panes\"}\n",
        "{\"result\":{\"panes\":[{\"id\":1}]}}\n",
        "{\"error\":{\"code\":\"protocol_mismatch\",\"message\":\"old\"}}\n",
        "{\"event\":\"pane_closed\"}\n",
    ] {
        let answer = panes(&[("pane.list", nonsense)]);
        assert!(matches!(answer, Err(Silence::Failed(_))), "{nonsense:?}");
    }
    // Nothing, or half a line, and the end of the stream.
    for half in ["", "{\"result\":{\"panes\":[]}}"] {
        let answer = panes(&[("pane.list", half)]);
        assert!(matches!(answer, Err(Silence::NoAnswer(_))), "{half:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let nobody = Herdr::at(folder.path().join("none"));
    assert_eq!(nobody.panes(soon()), Ok(Listing::default()));
    assert_eq!(nobody.pane("w1:p1", soon()), Ok(Listing::default()));
}
