//! A real herdr, in a home of its own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use process::{Here, Signal};

/// The named session that the tests use, since the default one cannot be deleted.
const SESSION: &str = "t";

pub struct Server {
    program: OsString,
    home: PathBuf,
    child: Mutex<Option<Child>>,
}

impl Server {
    pub fn start(program: OsString, home: &Path) -> Server {
        let server = Server {
            program,
            home: home.to_owned(),
            child: Mutex::default(),
        };
        server.start_again();
        server
    }

    pub fn socket(&self) -> PathBuf {
        let sessions = self.home.join(".config/herdr/sessions");
        sessions.join(SESSION).join("herdr.sock")
    }

    pub fn start_again(&self) {
        let mut command = self.command(&["--session", SESSION, "server"]);
        *self.child.lock().unwrap() = Some(command.spawn().unwrap());
    }

    pub fn stop(&self) {
        // After a handoff the server is no child of ours.
        self.signal(Signal::SIGTERM);
        if let Some(mut child) = self.child.lock().unwrap().take() {
            child.wait().unwrap();
        }
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while std::os::unix::net::UnixStream::connect(self.socket()).is_ok() {
            assert!(std::time::Instant::now() < deadline, "herdr does not stop");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    pub fn forget(&self) {
        let mut command = self.command(&["session", "delete", SESSION]);
        assert!(command.status().unwrap().success());
    }

    /// Signals the server itself, whoever it is by now.
    pub fn signal(&self, signal: Signal) {
        let Ok(stream) = std::os::unix::net::UnixStream::connect(self.socket()) else {
            return;
        };
        let pid = process::peer(&stream).unwrap().pid;
        if let Some(Ok(handle)) = pid.map(|pid| Here::new().open(pid)) {
            handle.signal(signal);
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm-256color")
            .current_dir(&self.home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal(Signal::SIGCONT);
        self.stop();
    }
}
