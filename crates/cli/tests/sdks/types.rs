//! The TypeScript declarations match the server's OpenAPI description, and a program written against them
//! holds a conversation with a real server.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::child::{assert_none_left, run};
use crate::harness::serve;
use crate::install::typescript;
use crate::shared::{Home, SDKS};

const DEADLINE: Duration = Duration::from_secs(120);

/// How a strict project checks its programs.
const STRICT: [&str; 9] = [
    "--strict",
    "--exactOptionalPropertyTypes",
    "--noUncheckedIndexedAccess",
    "--module",
    "nodenext",
    "--target",
    "es2022",
    "--skipLibCheck",
    "--noEmit",
];

/// The build command in the example's own comment.
const BUILT: &str = "tsc --module nodenext --outDir out chat.mts && node out/chat.mjs";

/// Run with `AGENTWIRE_UPDATE=1` to rewrite the declarations.
#[tokio::test]
async fn declarations_are_current() {
    if !SDKS.is_on() {
        return;
    }
    let packages = typescript().await;
    let home = Home::new();
    let mut command = program(&packages, home.root(), "openapi-typescript/bin/cli.js");
    command
        .arg(schema().join("openapi.json"))
        .args(["--root-types", "--root-types-no-schema-prefix"])
        // Fields with a default may be omitted. Fields that are always sent are required by their schema.
        .args(["--default-non-nullable", "false"])
        .args(["--output", "made.d.ts"]);
    succeeds(command, home.root()).await;
    let made = fs::read_to_string(home.root().join("made.d.ts")).unwrap();
    let path = schema().join("agentwire.d.ts");
    if std::env::var_os("AGENTWIRE_UPDATE").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let committed = fs::read_to_string(path).unwrap();
    assert!(committed == made, "agentwire.d.ts is stale: AGENTWIRE_UPDATE=1");
}

#[tokio::test]
async fn a_program_of_the_declarations_holds_a_conversation() {
    if !SDKS.is_on() {
        return;
    }
    let packages = typescript().await;
    let directories = Home::new();
    let home = directories.root();
    fs::create_dir(home.join("examples")).unwrap();
    for name in ["agentwire.d.ts", "examples/chat.mts"] {
        fs::copy(schema().join(name), home.join(name)).unwrap();
    }
    symlink(packages.join("node_modules"), home.join("node_modules")).unwrap();
    let example = fs::read_to_string(home.join("examples/chat.mts")).unwrap();
    assert!(example.contains(BUILT), "it is built in another way");
    let built = BUILT.split(' ').skip(1).take_while(|word| *word != "&&");
    let mut command = program(&packages, home, "typescript/bin/tsc");
    command.args(built).current_dir(home.join("examples"));
    succeeds(command, home).await;
    let mut command = program(&packages, home, "typescript/bin/tsc");
    command.args(STRICT).arg("examples/chat.mts");
    succeeds(command, home).await;
    // Fields that are not declared are errors.
    let wrong = example.replace("event.content", "event.contents");
    fs::write(home.join("examples/wrong.mts"), wrong).unwrap();
    let mut command = program(&packages, home, "typescript/bin/tsc");
    command.args(STRICT).arg("examples/wrong.mts");
    let refused = run(command, DEADLINE, &home.join("output")).await.unwrap_err();
    assert!(refused.contains("TS2551") || refused.contains("TS2339"), "{refused}");

    let server = serve(&directories);
    let mut command = Command::new("node");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command
        .current_dir(home.join("examples"))
        .arg("out/chat.mjs")
        .args([&format!("http://{}", server.http), &server.token]);
    command.arg("/say Hello\n/bash echo from the tool\n/ask Which one? | red | blue");
    let ended = run(command, DEADLINE, &home.join("output")).await;
    drop(server);
    assert_none_left(home.to_str().unwrap()).await;
    let said = fs::read_to_string(home.join("output")).unwrap();
    ended.unwrap_or_else(|said| panic!("{said}"));
    for part in ["Hello", "[Bash]", "done", "red", "turn 1: "] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
}

/// A declaration requires only the fields that its command requires.
#[tokio::test]
async fn what_may_be_left_out_is_optional_in_the_declarations() {
    if !SDKS.is_on() {
        return;
    }
    let packages = typescript().await;
    let directories = Home::new();
    let home = directories.root();
    fs::copy(schema().join("agentwire.d.ts"), home.join("agentwire.d.ts")).unwrap();
    fs::write(home.join("least.mts"), LEAST).unwrap();
    let mut command = program(&packages, home, "typescript/bin/tsc");
    command.args(STRICT).arg("least.mts");
    succeeds(command, home).await;
}

const LEAST: &str = r#"
import type { CommandFrame, SessionRequest, TextChunkEvent } from "./agentwire.js";

export const request: SessionRequest = { agentType: "demo", prompt: "" };
export const frames: CommandFrame[] = [
  { command: "start", agentType: "demo", prompt: "" },
  { command: "attach" },
  { command: "prompt", prompt: "" },
  { command: "interrupt" },
  { command: "stop" },
  { command: "finish" },
  { command: "settle", requestId: "" },
  { command: "configure" },
  { command: "query", method: "" },
  { command: "rewind", messageId: "" },
  { command: "queue" },
  { command: "cancel", messageId: "" },
  { command: "edit", messageId: "", prompt: "" },
  { command: "list" },
  { command: "show", sessionId: "" },
  { command: "requests" },
  { command: "detach", sessionId: "" },
  { command: "watch" },
  { command: "unwatch" },
];
// A field that is always sent needs no question mark.
export const isComplete = (event: TextChunkEvent): boolean => event.isComplete;
"#;

fn schema() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema").canonicalize().unwrap()
}

/// A program of a package, in a clean environment.
fn program(packages: &Path, home: &Path, name: &str) -> Command {
    let mut command = Command::new("node");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", home);
    command.arg(packages.join("node_modules").join(name)).current_dir(home);
    command
}

async fn succeeds(command: Command, home: &Path) {
    run(command, DEADLINE, &home.join("output")).await.unwrap_or_else(|said| panic!("{said}"));
}
