//! The directories of one test, and the program in them with a clean environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything here takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) const AGENTWIRE: &str = env!("CARGO_BIN_EXE_agentwire");

/// A test's own machine: a directory to `work` in, `home`, `bin` first on the path, and `data`, which the
/// program creates. Everything is removed with the last clone.
#[derive(Clone, Debug)]
pub(crate) struct Home(Arc<TempDir>);

impl Home {
    pub(crate) fn new() -> Self {
        let root = tempfile::Builder::new().prefix("home-").tempdir();
        let root = root.expect("a directory");
        for name in ["work", "home", "bin"] {
            std::fs::create_dir(root.path().join(name)).expect("a directory");
        }
        Self(Arc::new(root))
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// The working directory, without symbolic links.
    pub(crate) fn work(&self) -> PathBuf {
        self.path("work").canonicalize().expect("it is there")
    }

    /// Gives a command a clean environment in this home.
    pub(crate) fn settle(&self, command: &mut Command) {
        command
            .env_clear()
            .env("AGENTWIRE_DATA_DIR", self.data())
            .env("HOME", self.path("home"))
            .env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()))
            .env("TERM", "xterm")
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    /// The program, without input.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(AGENTWIRE);
        self.settle(&mut command);
        command.args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program runs")
    }

    /// The program's stdout; it must succeed.
    pub(crate) fn told(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", error(&output));
        text(&output.stdout)
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.told(args)).expect("JSON")
    }

    /// Writes a script to `bin`, which is first on the path.
    pub(crate) fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.path("bin").join(name);
        write_program(&path, script);
        path
    }
}

pub(crate) fn write_program(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, script).expect("a script");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

pub(crate) fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
