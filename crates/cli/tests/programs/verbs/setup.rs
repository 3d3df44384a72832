//! `agents` and `doctor`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::shared::error;
use crate::verbs::harness::{EngineHome, code};
use crate::verbs::programs::assert_gone;

/// A program that is no agent.
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
    // Nothing was kept for it.
    assert!(!home.data().exists());

    let mut command = home.command(&["agents"]);
    let output = command.env("AGENTWIRE_CODEX_BIN", "/nowhere/codex").output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("/nowhere/codex") && text.contains("npm install -g @openai/codex"),
        "{text}"
    );
}

/// A program that never tells its version is waited for no longer than that, and does not live on.
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
    assert!(named(&told["checks"], "claude")["fix"].as_str().expect("words").contains("npm"));
    let text = home.told(&["doctor"]);
    assert!(text.contains("✓ demo turn") && text.contains("! claude"), "{text}");
    // Its turn was nobody's.
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
    let message = check("settings")["message"].as_str().expect("words");
    assert!(message.contains("line 2, column 1") && message.contains("stop_grace"), "{message}");
    assert_eq!(check("data directory")["status"], "warn");
    assert!(check("data directory")["fix"].as_str().expect("words").starts_with("`chmod 700"));
    assert!(check("owners")["message"].as_str().expect("words").contains("removed 1 stale lock"));
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
