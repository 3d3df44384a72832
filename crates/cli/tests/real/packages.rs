//! The programs, fetched once from the npm registry into the target directory and kept there.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package of a version.
#[derive(Clone, Copy)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// The program within `node_modules`.
    program: &'static str,
}

pub(crate) const CLAUDE: Package = Package {
    name: "@anthropic-ai/claude-code",
    version: "2.1.325",
    program: "@anthropic-ai/claude-code-linux-x64/claude",
};

pub(crate) const CLAUDE_BEFORE: Package = Package { version: "2.1.197", ..CLAUDE };

pub(crate) const CODEX: Package =
    Package { name: "@openai/codex", version: "0.166.0", program: ".bin/codex" };

pub(crate) const GEMINI: Package =
    Package { name: "@google/gemini-cli", version: "0.61.0", program: ".bin/gemini" };

pub(crate) const CLAUDE_ACP: Package = Package {
    name: "@agentclientprotocol/claude-agent-acp",
    version: "0.99.1",
    program: ".bin/claude-agent-acp",
};

/// Whether the newest versions are wanted, not the pinned ones.
pub(crate) fn takes_latest() -> bool {
    std::env::var_os("AGENTWIRE_REAL_LATEST").is_some_and(|value| value == "1")
}

impl Package {
    /// What is wanted: the pinned version, or the newest.
    pub(crate) fn wanted(&self) -> &'static str {
        let is_older = self.version == CLAUDE_BEFORE.version;
        if takes_latest() && !is_older { "latest" } else { self.version }
    }

    /// The program, fetched if it is not here; why not, if it cannot be.
    pub(crate) fn fetch(&self) -> Result<PathBuf, String> {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("agents");
        fs::create_dir_all(&root).expect("a directory");
        let name = format!("{}-{}", self.name.replace(['@', '/'], "-"), self.wanted());
        let lock = File::create(root.join(format!("{name}.lock"))).expect("a file");
        lock.lock().expect("a lock");
        let directory = root.join(name);
        let whole = directory.join("whole");
        if !whole.exists() || self.wanted() == "latest" {
            let _ = fs::remove_dir_all(&directory);
            fs::create_dir(&directory).expect("a directory");
            self.install(&directory)?;
            fs::write(whole, "").expect("a file");
        }
        let program = directory.join("node_modules").join(self.program);
        if program.exists() {
            Ok(program)
        } else {
            Err(format!("{} is not in the package", self.program))
        }
    }

    fn install(&self, directory: &Path) -> Result<(), String> {
        // Else npm goes up in search of a project.
        fs::write(directory.join("package.json"), "{\"private\":true}").expect("a file");
        let output = Command::new("npm")
            .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
            .args(["--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000"])
            .arg(format!("{}@{}", self.name, self.wanted()))
            .current_dir(directory)
            .output()
            .map_err(|error| format!("failed to start npm: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("failed to install {}: {}", self.name, String::from_utf8_lossy(&output.stderr)))
    }
}
