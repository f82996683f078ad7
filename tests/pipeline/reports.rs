//! Situations that were reported of other tools, and that more than one of ours has a part in.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Sandbox, lives, number, record, until_dead};

/// Whoever frees a port by ending all that have it open ends browsers and editors as well.
#[test]
fn who_listens_is_ended_and_who_is_connected_is_not() {
    let sandbox = Sandbox::new();
    let server = "import os, socket, time\n\
        s = socket.create_server(('127.0.0.1', 0))\n\
        open('port.new', 'w').write(str(s.getsockname()[1]))\n\
        os.rename('port.new', 'port')\n\
        c, _ = s.accept()\n\
        time.sleep(600)\n";
    std::fs::write(sandbox.path("server.py"), server).unwrap();
    let words = ["--ready-file", "port", "--", "python3", "server.py"];
    let server = number(&sandbox.detach(&words), "pid");
    let port = std::fs::read_to_string(sandbox.path("port")).unwrap();
    let client = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; touch ready; exec sleep 600");
    let words = ["--ready-file", "ready", "--", "bash", "-c", &client];
    let client = number(&sandbox.detach(&words), "pid");
    let line = "holder-scan --port \"$PORT\" --own-arg server.py | reap -o pid,reap.outcome
        holder-scan -q --port \"$PORT\" || echo free";
    let output = sandbox.bash(line).env("PORT", &port).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, format!("{server}\tterminated\nfree\n"));
    assert!(!lives(server) && lives(client));
}

/// A caller may have cleared its mask, or set all of it: what they make is their owner's alone, and
/// can be read by them again.
#[test]
fn files_are_private_whatever_the_mask() {
    for mask in ["000", "022", "777"] {
        let sandbox = Sandbox::new();
        // For the claim; made while its mode is not yet the mask's business.
        std::fs::create_dir(sandbox.path("claims")).unwrap();
        let line = "umask $MASK
            detach -q --log log --record record --lock lock --guard --marker m.marker \
                --announce deaths -- sleep 600
            eventwait -q --path / --timeout 9 --beat beat --summary=summary
            resume-id -q --agent claude --cwd / --record decision --claim claims --claimant $$
            pane-ident exec --binding record --summary=exec -- true
            detach -o status --lock lock -- true";
        let mut command = sandbox.bash(line);
        let output = command
            .env("MASK", mask)
            .env("HOME", sandbox.path(""))
            .output()
            .unwrap();
        assert_eq!(output.stdout, b"running\n", "{mask}: {output:?}");
        let record = std::fs::read(sandbox.path("record")).unwrap();
        let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
        sandbox.track(record["ident"].as_str().unwrap());
        sandbox.track(record["guard"]["ident"].as_str().unwrap());
        let private = |path: &std::path::Path| {
            let mode = std::fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o600, "{mask}: {}", path.display());
        };
        private(&sandbox.path("m.marker"));
        let ended = sandbox
            .tool("reap")
            .args(["-q", "--pidfile", "record"])
            .status();
        assert!(ended.unwrap().success(), "{mask}");
        until_dead(number(&record, "pid"));
        let files = [
            "log", "record", "lock", "deaths", "beat", "summary", "decision", "exec",
        ];
        for file in files {
            private(&sandbox.path(file));
        }
        let claims: Vec<_> = std::fs::read_dir(sandbox.path("claims")).unwrap().collect();
        assert_eq!(claims.len(), 1);
        private(&claims[0].as_ref().unwrap().path());
    }
}

/// A command substitution returns at once in every shell, with one number.
#[test]
fn a_pid_for_any_shell() {
    let sandbox = Sandbox::new();
    for shell in ["sh", "dash", "bash", "zsh -f", "fish --no-config"] {
        let substitute = if shell.starts_with("fish") { "" } else { "$" };
        let line = format!("echo {substitute}(detach -o pid -- sleep 600)");
        let mut command = sandbox.bash(&format!("{shell} -c \"$LINE\""));
        let output = command
            .env("LINE", line)
            .env("HOME", sandbox.path(""))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let pid: i32 = said
            .trim_end()
            .parse()
            .unwrap_or_else(|e| panic!("{shell}: {said:?} {e}"));
        sandbox.track_pid(pid);
        let ident = crate::support::handle(pid).ident().to_string();
        let verified = sandbox
            .tool("pane-ident")
            .args(["verify", &ident])
            .output()
            .unwrap();
        assert_eq!(record(&verified)["verdict"]["state"], "match", "{shell}");
    }
}
