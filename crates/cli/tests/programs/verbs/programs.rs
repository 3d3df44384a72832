//! What `agents` and `doctor` report about programs: whether they are signed in, and known problems of
//! their versions. The programs are scripts that print what the real ones print.

use std::fs;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::shared::error;
use crate::verbs::harness::{EngineHome, code};
use crate::verbs::setup::{answer, named, program};

/// Parts of the programs' answers that must never be shown.
const SECRETS: [&str; 4] =
    ["nobody@example.invalid", "Nobody and Sons", "sk-made-***56789", "made-up-key"];

fn claude(home: &EngineHome, version: &str, status: &str) {
    let script = format!(
        "case \"$1 $2 $3\" in\n'--version  ') echo '{version} (Claude Code)';;\n\
         'auth status --json') {status};;\n*) echo what; exit 9;;\nesac"
    );
    program(home, "claude", &script);
}

fn codex(home: &EngineHome, version: &str, status: &str) {
    let script = format!(
        "case \"$1 $2\" in\n'--version ') echo 'codex-cli {version}';;\n'login status') {status};;\n\
         *) exit 9;;\nesac"
    );
    program(home, "codex", &script);
}

fn run(home: &EngineHome, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = home.command(args);
    let output = command.envs(variables.iter().copied()).output();
    let output = output.expect("it runs");
    let all = format!("{}{}", String::from_utf8_lossy(&output.stdout), error(&output));
    for secret in SECRETS {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
    output
}

fn told(home: &EngineHome, name: &str) -> Value {
    let agents = answer(&run(home, &["agents", "--json"], &[]));
    named(agents.get("agents").expect("a list"), name).clone()
}

fn check(home: &EngineHome, name: &str) -> Value {
    let checks = answer(&run(home, &["doctor", "--json"], &[]));
    named(checks.get("checks").expect("a list"), name).clone()
}

/// A project's settings could make a program run something, so it is not asked in the current directory.
#[test]
fn programs_are_asked_outside_of_the_working_directory() {
    let home = EngineHome::new();
    let file = home.path("where");
    claude(&home, "2.1.325", &format!("pwd >> {}; echo '{{}}'", file.display()));
    told(&home, "claude");
    assert_eq!(fs::read_to_string(file).expect("a file"), "/\n");
}

#[test]
fn claude_tells_whether_it_is_signed_in() {
    let home = EngineHome::new();
    let says = |signed_in: bool, more: &str| {
        format!(
            "printf '%s' '{{ \"loggedIn\": {signed_in}, {more}, \"email\": \"nobody@example.invalid\", \
             \"orgName\": \"Nobody and Sons\" }}'"
        )
    };
    let cases = [
        (says(true, "\"authMethod\": \"claude.ai\""), "signedIn", json!("account"), "ok"),
        (says(true, "\"authMethod\": \"api_key\""), "signedIn", json!("apiKey"), "ok"),
        (says(true, "\"apiProvider\": \"new\""), "signedIn", Value::Null, "ok"),
        (says(false, "\"authMethod\": \"none\"") + "; exit 1", "notSignedIn", Value::Null, "warn"),
        ("echo 'not json'; exit 1".to_owned(), "notTold", Value::Null, "ok"),
        ("echo nobody@example.invalid >&2; kill -9 $$".to_owned(), "notTold", Value::Null, "ok"),
    ];
    for (script, login, method, status) in cases {
        claude(&home, "2.1.325", &script);
        let agent = told(&home, "claude");
        assert_eq!((&agent["login"], &agent["loginMethod"]), (&json!(login), &method), "{script}");
        assert_eq!((&agent["version"], &agent["standing"]), (&json!("2.1.325"), &json!("tested")));
        let check = check(&home, "claude");
        assert_eq!(check["status"], status, "{check}");
        assert_eq!(check["fix"].is_string(), status == "warn", "{check}");
    }
    claude(&home, "2.1.325", &(says(false, "\"authMethod\": \"none\"") + "; exit 1"));
    let fix = check(&home, "claude")["fix"].as_str().expect("text").to_owned();
    assert!(fix.contains("sign in") && fix.contains("ANTHROPIC_API_KEY"), "{fix}");
    let text = String::from_utf8(run(&home, &["agents"], &[]).stdout).expect("UTF-8");
    assert!(text.contains("2.1.325 tested, not signed in"), "{text}");
}

#[test]
fn codex_tells_whether_it_is_signed_in() {
    let home = EngineHome::new();
    let key = "echo 'API key configured - sk-made-***56789' >&2; echo 'It is checked later.' >&2";
    codex(&home, "0.166.0", key);
    let agent = told(&home, "codex");
    assert_eq!((&agent["login"], &agent["loginMethod"]), (&json!("signedIn"), &json!("apiKey")));
    let text = String::from_utf8(run(&home, &["agents"], &[]).stdout).expect("UTF-8");
    assert!(text.contains("0.166.0 tested, signed in with an API key"), "{text}");

    codex(&home, "0.200.0", "echo 'Not logged in' >&2; exit 1");
    assert_eq!(told(&home, "codex")["login"], "notSignedIn");
    let output = run(&home, &["doctor", "--json"], &[]);
    // Codex can use its own provider, so this alone is not a failure.
    assert_eq!(code(&output), Some(0), "{}", error(&output));
    let checks = answer(&output);
    let check = named(&checks["checks"], "codex");
    assert_eq!(check["status"], "warn");
    let (message, fix) = (check["message"].as_str(), check["fix"].as_str());
    assert!(message.is_some_and(|text| text.contains("newer than tested, not signed in")));
    let fix = fix.expect("text");
    assert!(fix.contains("npm install -g @openai/codex@0.166.0"), "{fix}");
    assert!(fix.contains("`codex login`") && fix.contains("provider"), "{fix}");
}

#[test]
fn gemini_tells_nothing_but_that_its_variable_is_there_is_seen() {
    let home = EngineHome::new();
    let asked = home.path("asked");
    program(&home, "gemini", &format!("echo \"$@\" >> {}; echo 0.61.0", asked.display()));
    let agents = |variables: &[(&str, &str)]| {
        let agents = answer(&run(&home, &["agents", "--json"], variables));
        named(&agents["agents"], "gemini").clone()
    };
    let agent = agents(&[]);
    assert_eq!((&agent["login"], &agent["keyVariable"]), (&json!("notTold"), &Value::Null));
    assert_eq!(agents(&[("GEMINI_API_KEY", "")])["keyVariable"], Value::Null);
    let agent = agents(&[("GEMINI_API_KEY", "made-up-key")]);
    assert_eq!(agent["keyVariable"], "GEMINI_API_KEY");
    assert_eq!(fs::read_to_string(asked).expect("it ran"), "--version\n".repeat(3));
    assert_eq!(check(&home, "gemini")["status"], "ok");
    // An agent that needs no login reports none; neither does one that is not installed.
    assert_eq!(told(&home, "demo")["login"], Value::Null);
    assert_eq!(told(&home, "codex")["login"], Value::Null);
}

/// A version that does not know these arguments may take them as a prompt, which costs money.
#[test]
fn a_version_that_may_not_understand_is_not_asked() {
    let home = EngineHome::new();
    let asked = home.path("asked");
    for version in ["2.1.29", "unknown"] {
        claude(&home, version, &format!("touch {}", asked.display()));
        assert_eq!(told(&home, "claude")["login"], "notTold");
        assert!(!asked.exists(), "{version}");
    }
}

/// A program that hangs or prints too much is killed with everything that it started.
#[test]
fn agents_waits_for_no_login_for_ever() {
    let home = EngineHome::new();
    let began = home.path("began");
    let name = format!("hangs-{}", std::process::id());
    let hangs = format!("sh -c 'sleep 600; true' {name} & echo > {}; wait", began.display());
    claude(&home, "2.1.325", &hangs);
    codex(&home, "0.166.0", "while :; do echo Not logged out; done");
    let agents = answer(&run(&home, &["agents", "--json"], &[]));
    for name in ["claude", "codex"] {
        let agent = named(&agents["agents"], name);
        assert_eq!((&agent["standing"], &agent["login"]), (&json!("tested"), &json!("notTold")));
    }
    assert!(began.exists(), "it was started");
    assert_gone(&name);
}

/// Waits until no process has `name` in its command line. A killed process exists until its keeper reaps
/// it. Pids prove nothing where an agent has its own pid namespace.
pub(crate) fn assert_gone(name: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    let runs = || {
        let processes = fs::read_dir("/proc").expect("processes").flatten();
        let mut lines = processes.filter_map(|it| fs::read(it.path().join("cmdline")).ok());
        lines.any(|line| String::from_utf8_lossy(&line).contains(name))
    };
    while runs() {
        assert!(Instant::now() < deadline, "{name} still runs");
        std::thread::yield_now();
    }
}

#[test]
fn a_known_problem_is_told_with_what_to_do() {
    let home = EngineHome::new();
    program(&home, "gemini", "echo 0.40.1");
    let agent = told(&home, "gemini");
    assert_eq!(agent["standing"], "older");
    let problems = agent["problems"].as_array().expect("problems");
    assert_eq!(problems.len(), 1, "{agent}");
    assert!(problems[0]["what"].as_str().is_some_and(|what| what.contains("--session-id")));
    assert_eq!(problems[0]["fatal"], false);
    let check_of_it = check(&home, "gemini");
    assert_eq!(check_of_it["status"], "warn", "{check_of_it}");

    // No session works with this version.
    program(&home, "gemini", "echo 0.39.0");
    let output = run(&home, &["doctor", "--json"], &[]);
    assert_eq!(code(&output), Some(1));
    let checks = answer(&output);
    let check_of_it = named(&checks["checks"], "gemini");
    assert_eq!(check_of_it["status"], "fail", "{check_of_it}");
    let (message, fix) = (&check_of_it["message"], &check_of_it["fix"]);
    assert!(message.as_str().is_some_and(|text| text.contains("--skip-trust")), "{message}");
    assert_eq!(fix, "upgrade it: npm install -g @google/gemini-cli");
    let text = String::from_utf8(run(&home, &["agents"], &[]).stdout).expect("UTF-8");
    assert!(
        text.contains("0.39.0 older than tested") && text.contains("known problem: it exits"),
        "{text}"
    );

    program(&home, "gemini", "echo 0.61.0");
    assert_eq!(told(&home, "gemini")["problems"], Value::Null);
}
