//! Starts the program as a client of a front does, with recordings as agents.

use crate::recording::Agent;
use crate::shared::{AGENTWIRE, Home, Program};

/// Plays the recording in the session's directory.
const PLAYER: &str = "#!/bin/sh\nexec \"$AGENTWIRE\" play recording.jsonl --speed max\n";

/// Starts it as a client would. All agents except the demo agent are recordings.
pub(crate) fn start(args: &[&str], agent: Agent) -> Program {
    let mut program = start_quiet(args, agent);
    program.listen();
    program
}

/// Starts it without reading its stdout yet.
pub(crate) fn start_quiet(args: &[&str], agent: Agent) -> Program {
    let home = Home::new();
    let player = home.program("player", PLAYER);
    let mut command = home.command(args);
    for name in ["CLAUDE", "CODEX", "GEMINI", "ACP"] {
        command.env(format!("AGENTWIRE_{name}_BIN"), &player);
    }
    if let Some(driver) = agent.driver {
        let config = home.path("config.toml");
        let settings = format!("[agents.{}]\ndriver = \"{driver}\"\n", agent.name);
        std::fs::write(&config, settings).expect("a file");
        command.env("AGENTWIRE_CONFIG", config);
    }
    command.env("AGENTWIRE_AGENT", agent.name).env("AGENTWIRE", AGENTWIRE);
    Program::quiet(&home, &mut command)
}
