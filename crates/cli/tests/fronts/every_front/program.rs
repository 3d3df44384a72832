//! The program on pipes: every line is read with a deadline, and nothing of it may be left.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::recording::Agent;

/// Longer than anything here takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

const AGENTWIRE: &str = env!("CARGO_BIN_EXE_agentwire");

/// Plays the recording that lies in the session's directory.
const PLAYER: &str = "#!/bin/sh\nexec \"$AGENTWIRE\" play recording.jsonl --speed max\n";

pub(crate) struct Program {
    place: TempDir,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Option<Receiver<String>>,
    stderr: Option<JoinHandle<String>>,
}

/// How the program ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
}

impl Program {
    /// Starts it as a client would. Its agents are recordings, but for the demo agent.
    pub(crate) fn start(args: &[&str], agent: Agent) -> Self {
        let mut program = Self::quiet(args, agent);
        program.listen();
        program
    }

    /// Starts it, and reads nothing of it yet.
    pub(crate) fn quiet(args: &[&str], agent: Agent) -> Self {
        let place = tempfile::tempdir().expect("a directory");
        for name in ["data", "work", "home"] {
            fs::create_dir(place.path().join(name)).expect("a directory");
        }
        if let Some(driver) = agent.driver {
            let config = format!("[agents.{}]\ndriver = \"{driver}\"\n", agent.name);
            fs::write(place.path().join("config.toml"), config).expect("a file");
        }
        let player = place.path().join("player");
        fs::write(&player, PLAYER).expect("a script");
        fs::set_permissions(&player, fs::Permissions::from_mode(0o755)).expect("it may run");
        let mut command = Command::new(AGENTWIRE);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("AGENTWIRE_") {
                command.env_remove(name);
            }
        }
        for name in ["CLAUDE", "CODEX", "GEMINI", "ACP"] {
            command.env(format!("AGENTWIRE_{name}_BIN"), &player);
        }
        if agent.driver.is_some() {
            command.env("AGENTWIRE_CONFIG", place.path().join("config.toml"));
        }
        let mut child = command
            .args(args)
            .env("AGENTWIRE_AGENT", agent.name)
            .current_dir(place.path().join("work"))
            .env("AGENTWIRE", AGENTWIRE)
            .env("AGENTWIRE_DATA_DIR", place.path().join("data"))
            .env("HOME", place.path().join("home"))
            .env("XDG_CONFIG_HOME", place.path().join("home"))
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut told = child.stderr.take().expect("stderr");
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            told.read_to_end(&mut text).expect("stderr can be read");
            String::from_utf8_lossy(&text).into_owned()
        });
        let stdin = child.stdin.take();
        Self { place, child, stdin, lines: None, stderr: Some(stderr) }
    }

    /// Reads what it says from now on.
    pub(crate) fn listen(&mut self) {
        let mut stdout = BufReader::new(self.child.stdout.take().expect("stdout"));
        let (said, lines) = sync_channel(1024);
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).expect("stdout can be read") > 0 {
                assert_eq!(line.pop(), Some(b'\n'), "half a line on stdout");
                let text = String::from_utf8(std::mem::take(&mut line)).expect("stdout is UTF-8");
                if said.send(text).is_err() {
                    return;
                }
            }
        });
        self.lines = Some(lines);
    }

    /// The directory in which it runs.
    pub(crate) fn work(&self) -> PathBuf {
        self.place.path().join("work").canonicalize().expect("it is there")
    }

    /// Where its log is.
    pub(crate) fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Says these bytes; false if it listens no more.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> bool {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).and_then(|()| stdin.flush()).is_ok()
    }

    #[expect(clippy::needless_pass_by_value, reason = "values and texts are said alike")]
    pub(crate) fn say(&mut self, line: impl ToString) {
        assert!(self.bytes(format!("{}\n", line.to_string()).as_bytes()), "it listens no more");
    }

    /// Says all this and then no more, while what it says is read.
    pub(crate) fn pour(&mut self, text: String) {
        drop(self.pour_on(text));
    }

    /// Says all this while what it says is read. It hears no more once what comes back is dropped.
    pub(crate) fn pour_on(&mut self, text: String) -> JoinHandle<ChildStdin> {
        let mut stdin = self.stdin.take().expect("stdin is open");
        std::thread::spawn(move || {
            stdin.write_all(text.as_bytes()).expect("it listens");
            stdin
        })
    }

    /// Says no more.
    pub(crate) fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// The next line; none after the last.
    pub(crate) fn line(&mut self) -> Option<String> {
        self.line_of(|| String::from("it says nothing"))
    }

    /// The next line, or else why it must come.
    pub(crate) fn line_of(&mut self, why: impl Fn() -> String) -> Option<String> {
        match self.lines.as_ref().expect("it is listened to").recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("{}", why()),
        }
    }

    /// Waits for its end. Nothing is unread, and no process of its is left.
    pub(crate) fn end(mut self) -> Ended {
        self.stdin = None;
        if let Some(line) = self.lines.is_some().then(|| self.line()).flatten() {
            panic!("unread: {line}");
        }
        let code = self.child.wait().expect("it ends").code();
        let stderr = self.stderr.take().expect("stderr").join().expect("stderr");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = processes_in(self.place.path());
            if left.is_empty() {
                break;
            }
            assert!(Instant::now() < deadline, "left behind: {left:?}");
            std::thread::yield_now();
        }
        Ended { code, stderr }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whoever works in that directory, with what it was started with.
fn processes_in(place: &Path) -> Vec<(OsString, String)> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let works_there = |path: &Path| {
        fs::read_link(path.join("cwd")).is_ok_and(|directory| directory.starts_with(place))
    };
    processes
        .filter(|entry| works_there(&entry.path()))
        .map(|entry| {
            let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            (entry.file_name(), String::from_utf8_lossy(&words).replace('\0', " "))
        })
        .collect()
}
