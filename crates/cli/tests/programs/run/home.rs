//! A place of its own for each test: a data directory, a directory to work in, and nobody's settings.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use agentwire_protocol::Event;
use tempfile::TempDir;

pub(crate) struct Home {
    root: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        for name in ["data", "work", "home", "bin"] {
            fs::create_dir(root.path().join(name)).expect("a directory");
        }
        Self { root }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// The program, with no input and no agent but the built-in one.
    pub(crate) fn agentwire(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentwire"));
        command.args(args).current_dir(self.work());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("AGENTWIRE_") {
                command.env_remove(name);
            }
        }
        command
            .env("AGENTWIRE_DATA_DIR", self.root.path().join("data"))
            .env("HOME", self.root.path().join("home"))
            .env("XDG_CONFIG_HOME", self.root.path().join("home"))
            .env("PATH", format!("{}:/usr/bin:/bin", self.root.path().join("bin").display()))
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A program of that name on its path.
    pub(crate) fn program(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.root.path().join("bin").join(name);
        fs::write(&path, script).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.agentwire(args).output().expect("the program runs")
    }

    /// The demo agent, given a prompt.
    pub(crate) fn demo(&self, prompt: &str) -> Output {
        self.run(&["run", "-a", "demo", prompt])
    }

    /// Runs the program with something to read.
    pub(crate) fn run_with(&self, args: &[&str], input: &str) -> Output {
        let mut child =
            self.agentwire(args).stdin(Stdio::piped()).spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("stdin");
        stdin.write_all(input.as_bytes()).expect("it reads");
        drop(stdin);
        child.wait_with_output().expect("the program ends")
    }

    /// The processes that have something to do with this place.
    pub(crate) fn processes(&self) -> Vec<String> {
        let place = self.root.path().to_string_lossy().into_owned();
        let entries = fs::read_dir("/proc").expect("/proc");
        let command = |path: &Path| fs::read(path.join("cmdline")).ok();
        entries
            .filter_map(|entry| command(&entry.ok()?.path()))
            .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
            .filter(|command| command.contains(&place))
            .collect()
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

pub(crate) fn code(status: ExitStatus) -> Option<i32> {
    status.code()
}

/// The events that were printed, one a line.
pub(crate) fn events(output: &[u8]) -> Vec<Event<'static>> {
    text(output).lines().map(|line| Event::from_json(line).expect("an event")).collect()
}

/// Sends a signal to that process alone.
pub(crate) fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.expect("a pid"), signal).expect("it runs");
}
