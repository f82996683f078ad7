//! The lines of shell that take the place of pids, `kill -0` and start times in scripts.

use crate::support::{Sandbox, said, until_dead};

/// One opaque line for a process, and nothing for what is none.
#[test]
fn an_identity_function() {
    let sandbox = Sandbox::new();
    let (mut child, ident) = sandbox.sleeper();
    let pid = ident.pid().to_string();
    let function = r#"
        birth() { pane-ident capture --pid "$1" -o ident 2>/dev/null || return 1; }
        role() { pane-ident capture --pid "$1" -o ident,exe,argv 2>/dev/null || return 1; }
    "#;
    let call = |call: &str| {
        let output = sandbox.bash(&format!("{function}{call}")).output().unwrap();
        assert_eq!(said(&output), "", "{call}");
        (
            String::from_utf8(output.stdout).unwrap(),
            output.status.code(),
        )
    };
    assert_eq!(
        call(&format!("birth {pid}")),
        (format!("{ident}\n"), Some(0))
    );
    let (role, code) = call(&format!("role {pid}"));
    assert_eq!(code, Some(0));
    assert_eq!(role.matches('\n').count(), 1, "{role}");
    assert!(role.contains(r#"["sleep","600"]"#), "{role}");
    for wrong in ["''", "0", "x", "-1", "4194303", "'1 2'"] {
        assert_eq!(
            call(&format!("birth {wrong}")),
            (String::new(), Some(1)),
            "{wrong}"
        );
    }
    child.0.kill().unwrap();
    until_dead(ident.pid().get());
    assert_eq!(
        call(&format!("birth {pid}")),
        (String::new(), Some(1)),
        "a zombie"
    );
}

/// `kill -0`, with the three answers that it should have.
#[test]
fn is_it_still_that_process() {
    let sandbox = Sandbox::new();
    let (mut child, ident) = sandbox.sleeper();
    let line = |ident: &str| {
        // The identity fits into a file of KEY=VALUE lines, without quotes.
        std::fs::write(sandbox.path("claim"), format!("pid={}\nident={ident}\n", 1)).unwrap();
        let script = r#"
            . ./claim
            pane-ident verify -q "$ident"
            case $? in 0) echo alive;; 1) echo dead;; *) echo unknown;; esac
        "#;
        let output = sandbox.bash(script).output().unwrap();
        assert_eq!(said(&output), "");
        String::from_utf8(output.stdout).unwrap()
    };
    let ident = ident.to_string();
    assert_eq!(line(&ident), "alive\n");
    let mut fields: Vec<&str> = ident.split(':').collect();
    fields[2] = "4026539999";
    assert_eq!(line(&fields.join(":")), "unknown\n");
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    assert_eq!(line(&ident), "dead\n");
}
