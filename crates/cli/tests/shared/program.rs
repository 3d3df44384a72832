//! The program on pipes, in a place of its own: every line is read with a deadline.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use tempfile::TempDir;

/// Far more than anything takes here.
const DEADLINE: Duration = Duration::from_secs(60);

/// A machine of its own: home, data, a directory to work in.
pub(crate) fn place() -> TempDir {
    let place = tempfile::tempdir().expect("a directory");
    for name in ["data", "work", "home"] {
        fs::create_dir(place.path().join(name)).expect("a directory");
    }
    place
}

/// The program there, with the demo agent behind it.
pub(crate) fn command(program: impl AsRef<OsStr>, place: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(place.join("work"))
        .env_clear()
        .env("AGENTWIRE_AGENT", "demo")
        .env("AGENTWIRE_DATA_DIR", place.join("data"))
        .env("HOME", place.join("home"))
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The program while it runs.
pub(crate) struct Program {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().expect("the program starts");
        let stdout = BufReader::new(child.stdout.take().expect("stdout"));
        let (said, lines) = sync_channel(1 << 16);
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if said.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().expect("stdin is open").write_all(bytes).expect("it reads");
    }

    /// The next line; none after the last.
    pub(crate) fn line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the program says nothing in time"),
        }
    }

    /// Says no more.
    pub(crate) fn hush(&mut self) {
        self.stdin = None;
    }

    /// The exit code of a program that said nothing on stderr.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let status = self.child.wait().expect("it ends");
        let mut told = String::new();
        self.child.stderr.take().expect("stderr").read_to_string(&mut told).expect("UTF-8");
        assert_eq!(told, "", "stderr is silent");
        status.code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
