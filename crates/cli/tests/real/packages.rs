//! Installs the programs once from the npm registry into the target directory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use agentwire_dialects::program::{Program, Source};
use agentwire_dialects::{claude, codex, gemini};
use serde_json::Value;

#[derive(Clone, Copy)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// The path of the program in `node_modules`.
    program: &'static str,
}

/// The versions are those that `agentwire agents` reports as tested.
pub(crate) const CLAUDE: Package = Package {
    program: "@anthropic-ai/claude-code-linux-x64/claude",
    ..Package::of(&claude::PROGRAM, 1, "")
};

pub(crate) const CLAUDE_BEFORE: Package = Package { version: claude::PROGRAM.tested[0], ..CLAUDE };

pub(crate) const CODEX: Package = Package::of(&codex::PROGRAM, 0, ".bin/codex");

pub(crate) const GEMINI: Package = Package::of(&gemini::PROGRAM, 0, ".bin/gemini");

pub(crate) const CLAUDE_ACP: Package = Package {
    name: "@agentclientprotocol/claude-agent-acp",
    version: "0.99.1",
    program: ".bin/claude-agent-acp",
};

/// The version to use instead of the pinned ones: a number, or `latest`.
pub(crate) fn other_version() -> Option<String> {
    std::env::var("AGENTWIRE_REAL_VERSION").ok().filter(|version| !version.is_empty())
}

impl Package {
    const fn of(known: &Program, version: usize, program: &'static str) -> Self {
        let Source::Npm(name) = known.source else { panic!("not an npm package") };
        Self { name, version: known.tested[version], program }
    }

    /// The pinned version, or another.
    fn wanted(&self) -> String {
        let is_older = self.version == CLAUDE_BEFORE.version;
        other_version().filter(|_| !is_older).unwrap_or_else(|| self.version.to_owned())
    }

    /// The version of the installed package.
    pub(crate) fn installed(&self, program: &Path) -> String {
        let modules = program.ancestors().find(|path| path.ends_with("node_modules"));
        let path = modules.expect("a package").join(self.name).join("package.json");
        let text = fs::read_to_string(path).expect("a file");
        let package: Value = serde_json::from_str(&text).expect("JSON");
        package["version"].as_str().expect("a version").to_owned()
    }

    /// The path of the program, installed if necessary; or why that failed.
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
        // Otherwise npm looks for a project in the parent directories.
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
