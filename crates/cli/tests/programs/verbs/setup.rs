//! `agents` and `doctor`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::shared::error;
use crate::verbs::harness::{EngineHome, code};
use crate::verbs::programs::assert_gone;

/// A shell script in place of an agent's program.
pub(crate) fn program(home: &EngineHome, name: &str, script: &str) -> PathBuf {
    home.program(name, &format!("#!/bin/sh\n{script}\n"))
}

pub(crate) fn named<'v>(list: &'v Value, name: &str) -> &'v Value {
    let mut items = list.as_array().expect("a list").iter();
    items.find(|item| item["name"] == name).expect("an entry")
}

pub(crate) fn answer(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn agents_tells_where_they_are_and_which_were_tested() {
    let home = EngineHome::new();
    let claude = program(&home, "claude", "echo '2.1.197 (Claude Code)'");
    let seen = home.path("environment");
    let codex = format!("env > {}; echo 'codex-cli 99.0.0'", seen.display());
    let codex = program(&home, "other-codex", &codex);
    program(&home, "gemini", "echo 0.1.0");
    fs::create_dir_all(home.path("home/.config/agentwire")).expect("a directory");
    let config = format!("[agents.codex]\ncommand = {codex:?}\nenv = {{ EXTRA = 'yes' }}\n");
    fs::write(home.path("home/.config/agentwire/config.toml"), config).expect("settings");

    let mut command = home.command(&["agents", "--json"]);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", error(&output));
    let agents = &answer(&output)["agents"];
    let told = |name: &str| {
        let agent = named(agents, name);
        (agent["path"].clone(), agent["version"].clone(), agent["standing"].clone())
    };
    assert_eq!(told("claude"), (json!(claude), json!("2.1.197"), json!("tested")));
    assert_eq!(told("codex"), (json!(codex), json!("99.0.0"), json!("newer")));
    assert_eq!(told("gemini").2, "older");
    assert_eq!(told("acp"), (Value::Null, Value::Null, json!("missing")));
    assert_eq!(told("demo").2, "tested");
    let environment = fs::read_to_string(seen).expect("the environment");
    assert!(environment.contains("EXTRA=yes") && environment.contains("HOME="), "{environment}");
    assert!(!environment.contains("AGENTWIRE_"), "{environment}");
    // Nothing was stored.
    assert!(!home.data().exists());

    let mut command = home.command(&["agents"]);
    let output = command.env("AGENTWIRE_CODEX_BIN", "/nowhere/codex").output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("/nowhere/codex") && text.contains("npm install -g @openai/codex"),
        "{text}"
    );
}

/// A program that never prints its version is not waited for beyond the limit, and is killed.
#[test]
fn agents_does_not_hang_on_a_program_that_does() {
    let home = EngineHome::new();
    let began = home.path("began");
    let name = format!("silent-{}", std::process::id());
    let script = format!("echo > {}; exec sh -c 'sleep 600; true' {name}", began.display());
    program(&home, "claude", &script);
    let mut command = home.command(&["agents", "--json"]);
    let output = command.output().expect("it runs");
    assert_eq!(named(&answer(&output)["agents"], "claude")["standing"], "unknown");
    assert!(began.exists(), "it was started");
    assert_gone(&name);
}

#[test]
fn doctor_finds_a_sound_place_sound() {
    let home = EngineHome::new();
    let output = home.run(&["doctor", "--json"]);
    let told = answer(&output);
    assert_eq!((code(&output), &told["ok"]), (Some(0), &json!(true)), "{told:#}");
    for name in [
        "settings",
        "data directory",
        "store",
        "events",
        "disk",
        "owners",
        "runtime files",
        "demo",
        "demo turn",
    ] {
        assert_eq!(named(&told["checks"], name)["status"], "ok", "{told:#}");
    }
    assert!(named(&told["checks"], "claude")["fix"].as_str().expect("text").contains("npm"));
    let text = home.told(&["doctor"]);
    assert!(text.contains("✓ demo turn") && text.contains("! claude"), "{text}");
    // The demo turn leaves no session behind.
    assert_eq!(home.json(&["ls", "--json"]), json!({"sessions": []}));
    assert!(!home.data().join("demo").exists());
}

#[test]
fn doctor_tells_what_is_wrong_and_goes_on() {
    let home = EngineHome::new();
    fs::create_dir(home.data()).expect("a directory");
    fs::set_permissions(home.data(), fs::Permissions::from_mode(0o755)).expect("permissions");
    fs::create_dir_all(home.data().join("owners")).expect("a directory");
    let lock = home.data().join("owners/4b2c6f6e-0c07-4ba2-8b1a-6a54d3a3a2d7.lock");
    fs::write(&lock, "1\n").expect("a lock that nobody holds");
    fs::create_dir_all(home.data().join("run/launch-x")).expect("a directory");
    let config = home.path("broken.toml");
    fs::write(&config, "[limits]\nstop_graze = 1\n").expect("settings");

    let config = config.to_str().expect("UTF-8");
    let output = home.run(&["--config", config, "doctor", "--json"]);
    let told = answer(&output);
    assert_eq!((code(&output), &told["ok"]), (Some(1), &json!(false)), "{told:#}");
    let check = |name: &str| named(&told["checks"], name);
    assert_eq!(check("settings")["status"], "fail");
    let message = check("settings")["message"].as_str().expect("text");
    assert!(message.contains("line 2, column 1") && message.contains("stop_grace"), "{message}");
    assert_eq!(check("data directory")["status"], "warn");
    assert!(check("data directory")["fix"].as_str().expect("text").starts_with("`chmod 700"));
    assert!(check("owners")["message"].as_str().expect("text").contains("removed 1 stale lock"));
    assert_eq!(check("runtime files")["status"], "warn");
    assert_eq!(check("demo turn")["status"], "ok");
    assert!(!lock.exists());

    let mut command = home.command(&["doctor", "--json"]);
    let output = command.env("AGENTWIRE_AGENT", "codex").output().expect("it runs");
    assert_eq!(named(&answer(&output)["checks"], "codex")["status"], "fail");
    assert_eq!(code(&output), Some(1));

    let rules = home.path("rules.toml");
    fs::write(&rules, "policy.allow = ['Bash(']\n").expect("settings");
    let mut command = home.command(&["doctor", "--json"]);
    let output = command.env("AGENTWIRE_CONFIG", rules).output().expect("it runs");
    assert_eq!(named(&answer(&output)["checks"], "policy")["status"], "fail");

    let mut command = home.command(&["doctor"]);
    let output = command.env("AGENTWIRE_DATA_DIR", "/dev/null/x").output().expect("it runs");
    assert_eq!(code(&output), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("✗ store"));
}

/// A wrong variable is named, and the other checks still run.
#[test]
fn doctor_goes_on_after_a_wrong_variable() {
    let home = EngineHome::new();
    let checks = |file: &str, name: &str, value: &str| {
        let config = home.path("settings.toml");
        fs::write(&config, file).expect("settings");
        let mut command = home.command(&["doctor", "--json"]);
        let output = command.env("AGENTWIRE_CONFIG", config).env(name, value).output();
        let output = output.expect("it runs");
        assert_eq!(code(&output), Some(1));
        answer(&output)["checks"].clone()
    };
    let said = checks("", "AGENTWIRE_AGENT", "foo");
    assert_eq!(named(&said, "settings")["fix"], "fix or unset the variable", "{said:#}");
    assert_eq!(named(&said, "demo turn")["status"], "ok", "{said:#}");
    let said = checks("agnet = 'x'", "AGENTWIRE_AGENT", "foo");
    let all = said.as_array().expect("a list").iter();
    let fixes: Vec<&Value> =
        all.filter(|check| check["name"] == "settings").map(|check| &check["fix"]).collect();
    assert!(fixes[0].as_str().expect("text").starts_with("fix the file"), "{said:#}");
    assert_eq!(fixes[1..], [&json!("fix or unset the variable")], "{said:#}");
    assert_eq!(named(&said, "demo turn")["status"], "ok", "{said:#}");
    let said = checks("", "AGENTWIRE_CLAUDE_BIN", "/nowhere/claude");
    assert_eq!(named(&said, "claude")["fix"], "correct AGENTWIRE_CLAUDE_BIN, or unset it");
}

#[test]
fn an_agent_that_cannot_be_found_is_told_with_what_is_wrong() {
    let home = EngineHome::new();
    let mut command = home.command(&["run", "-a", "claude", "hi"]);
    let output = command.env("AGENTWIRE_CLAUDE_BIN", "/nowhere/claude").output().expect("it runs");
    let told = error(&output);
    assert!(
        told.contains("/nowhere/claude") && told.contains("correct AGENTWIRE_CLAUDE_BIN"),
        "{told}"
    );
    let told = error(&home.run(&["run", "-a", "acp", "hi"]));
    assert!(told.contains("acp is not available: no command is set"), "{told}");
}

#[test]
fn a_data_directory_that_cannot_be_used_is_named() {
    let home = EngineHome::new();
    let file = home.path("file");
    fs::write(&file, "x").expect("a file");
    let file = file.to_str().expect("UTF-8");
    for args in [&["ls"][..], &["token", "ls"], &["run", "-a", "demo", "hi"], &["serve"]] {
        let told = error(&home.run(&[&["--data-dir", file], args].concat()));
        assert!(told.contains(&format!("the data directory {file}: ")), "{args:?}: {told}");
        assert!(told.contains("choose another with --data-dir"), "{args:?}: {told}");
    }
    fs::create_dir(home.data()).expect("a directory");
    fs::set_permissions(home.data(), fs::Permissions::from_mode(0o700)).expect("permissions");
    fs::create_dir(home.data().join("agentwire.db")).expect("a directory");
    let told = error(&home.run(&["ls"]));
    let name = home.data().canonicalize().expect("a path").join("agentwire.db");
    assert!(told.contains(&format!("failed to open {}: ", name.display())), "{told}");
}

#[test]
fn empty_lists_say_so() {
    let home = EngineHome::new();
    for (args, says) in [
        (&["token", "ls"][..], "no tokens except the operator's"),
        (&["trust", "ls"], "no trusted directories"),
    ] {
        let output = home.run(args);
        assert!(output.status.success() && output.stdout.is_empty(), "{args:?}");
        assert!(error(&output).contains(says), "{args:?}: {}", error(&output));
    }
    home.told(&["token", "create", "--scope", "watch", "--name", "a dashboard"]);
    let text = home.told(&["token", "ls"]);
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!((words[1], words[3..].join(" ").as_str()), ("watch", "a dashboard"), "{text}");
    assert!(words[2].ends_with('s') && !words[2].contains(':'), "{text}");
}
