//! Runs an example or a test where nothing is installed: its own program acts as `agentwire`, and
//! its data is deleted at the end.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agentwire_sessions::Settings;
use agentwire_sessions::bridge::relay;
use agentwire_sessions::process::{self, keeper};
use agentwire_sessions::settings::StoreKind;
use tempfile::TempDir;

use crate::{engine, print};

/// The verbs with which agentwire or a client starts this program.
const VERBS: [&str; 4] = [keeper::VERB, relay::VERB, "demo-agent", "unified"];

/// A temporary place to try things.
pub struct Trial {
    program: PathBuf,
    directory: TempDir,
}

impl Trial {
    fn new() -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("agentwire-trial-").tempdir()?;
        std::fs::create_dir(directory.path().join("work"))?;
        Ok(Self { program: std::env::current_exe()?, directory })
    }

    /// The program that acts as `agentwire`: this one.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// An empty directory for agents to work in.
    pub fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// The data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Settings for a gateway in this process with a memory store.
    pub fn settings(&self) -> Settings {
        Settings {
            data_dir: self.data_dir(),
            store: StoreKind::Memory,
            keeper: process::own_program(),
            ..Settings::default()
        }
    }
}

/// The `main` of such a program: does the work, unless the program was started as `agentwire`.
pub fn run<E: Display>(work: impl AsyncFnOnce(&Trial) -> Result<(), E>) -> ExitCode {
    let verb = std::env::args().nth(1);
    if verb.is_some_and(|verb| VERBS.contains(&verb.as_str())) {
        return crate::main();
    }
    let tried = Trial::new().and_then(|trial| Ok((engine::runtime()?, trial)));
    let (runtime, trial) = match tried {
        Ok(tried) => tried,
        Err(error) => {
            print::error(&error.to_string());
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(work(&trial)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print::error(&error.to_string());
            ExitCode::FAILURE
        }
    }
}
