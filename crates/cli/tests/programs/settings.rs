//! Settings as the program reads them, and the page that documents them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::shared::Home;

/// The program without agents, with everything in its default place.
fn agentwire(home: &Home, args: &[&str]) -> Command {
    let mut command = home.command(args);
    command.env_remove("AGENTWIRE_DATA_DIR").env("PATH", "/nowhere").current_dir("/");
    command
}

fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status.code(), text(stdout), text(stderr))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn schema() -> Value {
    let (code, text, _) = run(&mut agentwire(&Home::new(), &["schema", "config"]));
    assert_eq!(code, Some(0));
    serde_json::from_str(&text).expect("a schema is JSON")
}

/// Run with `AGENTWIRE_UPDATE=1` to update it.
#[test]
fn the_committed_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/config.json");
    if std::env::var_os("AGENTWIRE_UPDATE").is_some() {
        fs::write(&path, format!("{:#}\n", schema())).expect("the schema can be written");
    }
    let committed = fs::read_to_string(path).expect("the schema is committed");
    let committed: Value = serde_json::from_str(&committed).expect("a schema is JSON");
    assert_eq!(committed, schema(), "config.json is stale: AGENTWIRE_UPDATE=1");
}

fn page() -> String {
    fs::read_to_string(root().join("docs/settings.md")).expect("the page")
}

fn examples(page: &str) -> Vec<&str> {
    let blocks = page.split("```toml\n").skip(1);
    blocks.map(|block| block.split("```").next().expect("a block ends")).collect()
}

/// The program accepts the examples on the page, and they match the schema.
#[test]
fn the_examples_of_the_page_are_valid() {
    let page = page();
    let schema = jsonschema::validator_for(&schema()).expect("a schema");
    assert!(examples(&page).len() >= 2);
    for example in examples(&page) {
        let home = Home::new();
        let file = home.path("config.toml");
        fs::write(&file, example).expect("settings");
        let (code, _, error) =
            run(agentwire(&home, &["agents", "--json"]).env("AGENTWIRE_CONFIG", &file));
        assert_eq!(code, Some(0), "{error}");
        let value: Value = toml::from_str(example).expect("TOML");
        assert!(schema.is_valid(&value), "{example}");
    }
}

/// The schema refuses what the program refuses.
#[test]
fn the_schema_and_the_program_agree() {
    let schema = jsonschema::validator_for(&schema()).expect("a schema");
    for (text, valid) in [
        ("", true),
        ("agent = 'demo'", true),
        ("agent = 'hal'", false),
        ("agents.acp.command = ['a', 'b']", true),
        ("agents.acp.command = []", false),
        ("agents.acp.command = ''", false),
        ("agents.hal = {}", false),
        ("agents.acp.env = { A = 1 }", false),
        ("limits.request_timeout = 0", true),
        ("limits.request_timeout = 0.5", true),
        ("limits.request_timeout = -0.5", false),
        ("limits.request_timeout = 2e9", false),
        ("limits.call_timeout = 0", false),
        ("limits.stall_after = 'x'", false),
        ("limits.sessions = 1", true),
        ("limits.sessions = 0", false),
        ("policy.approval = 'autoAll'", true),
        ("policy.approval = 'yolo'", false),
        ("policy.allow = 'Read'", false),
        ("policy.trust = 'never'", true),
        ("policy.trust = true", false),
        ("store.kind = 'memory'", true),
        ("store.kind = 'postgres://host/db'", false),
        ("prices.m = { input = 1, output = 2 }", true),
        ("prices.m = { input = 1 }", false),
        ("prices.m = { input = 1, output = -2 }", false),
        ("projects.a = '/a'", true),
        ("projects.a = '~/a'", true),
        ("projects.a = 'a'", false),
        ("server.http = '127.0.0.1:0'", true),
        ("server.insights = '[::1]:8765'", true),
        ("server.http = 'localhost:8080'", false),
        ("server.http = 8080", false),
        ("server.hosts = ['a', 'b:1']", true),
        ("server.hosts = 'a'", false),
        ("server.open = true", true),
        ("server.connections = 1", true),
        ("server.connections = 0", false),
        ("server.log_format = 'json'", true),
        ("server.log_format = 'xml'", false),
        ("server.log_level = 'debug'", true),
        ("server.log_level = 'loud'", false),
        ("server.htpp = '127.0.0.1:0'", false),
        ("zebra = 1", false),
    ] {
        let home = Home::new();
        let file = home.path("config.toml");
        fs::write(&file, text).expect("settings");
        let (code, _, error) = run(agentwire(&home, &["agents"]).env("AGENTWIRE_CONFIG", &file));
        assert_eq!(code, Some(if valid { 0 } else { 2 }), "{text}: {error}");
        let value: Value = toml::from_str(text).expect("TOML");
        assert_eq!(schema.is_valid(&value), valid, "{text}");
    }
}

/// Every key that the program accepts is in an example, and every variable that it reads is in the table.
#[test]
fn the_page_is_complete() {
    let page = page();
    let shown = examples(&page).join("\n");
    let mut keys = BTreeSet::new();
    collect_keys(&schema(), &mut keys);
    assert!(keys.len() > 20);
    for key in keys {
        assert!(shown.contains(&key), "docs/settings.md does not show {key}");
    }
    let mut read = BTreeSet::new();
    collect_variables(&root().join("crates/cli/src"), &mut read);
    read.extend(agentwire_dialects::programs().iter().filter_map(|known| known.variable()));
    let table = page.split("## The environment").nth(1).expect("the table");
    let told: BTreeSet<String> = variables(table);
    assert_eq!(told, read);
}

fn collect_keys(schema: &Value, keys: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get("properties") {
                keys.extend(properties.keys().cloned());
            }
            fields.values().for_each(|value| collect_keys(value, keys));
        }
        Value::Array(values) => values.iter().for_each(|value| collect_keys(value, keys)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The variable names in the strings of the settings and the command line.
fn collect_variables(folder: &Path, found: &mut BTreeSet<String>) {
    for file in ["settings.rs", "args.rs", "args/client.rs", "args/server.rs", "remote.rs"] {
        let text = fs::read_to_string(folder.join(file)).expect("source");
        let quoted = text.split('"').filter(|part| part.starts_with("AGENTWIRE_"));
        found.extend(quoted.map(str::to_owned));
    }
}

fn variables(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
    words
        .filter(|word| word.len() > "AGENTWIRE_".len() && word.starts_with("AGENTWIRE_"))
        .map(str::to_owned)
        .collect()
}

/// Defaults, then the file, then the environment, then flags.
#[test]
fn flags_win_over_the_environment_and_that_over_the_usual_places() {
    let home = Home::new();
    let path = |name: &str| home.path("home").join(name);
    let listing = |change: &dyn Fn(&mut Command)| {
        let mut command = agentwire(&home, &["ls", "--json"]);
        change(&mut command);
        let (code, text, error) = run(&mut command);
        assert_eq!((code, error.as_str()), (Some(0), ""), "{text}");
    };
    listing(&|_| {});
    assert!(path(".local/share/agentwire/agentwire.db").exists());
    listing(&|command| {
        command.env("XDG_DATA_HOME", path("xdg"));
    });
    assert!(path("xdg/agentwire/agentwire.db").exists());
    listing(&|command| {
        command.env("XDG_DATA_HOME", "not/absolute").env("AGENTWIRE_DATA_DIR", path("variable"));
    });
    assert!(path("variable/agentwire.db").exists());
    listing(&|command| {
        command.env("AGENTWIRE_DATA_DIR", path("unused")).arg("--data-dir").arg(path("flag"));
    });
    assert!(path("flag/agentwire.db").exists() && !path("unused").exists());
    // The file selects a store that stores nothing on disk; the variable wins.
    fs::create_dir_all(path("xdg/agentwire")).expect("a directory");
    fs::write(path("xdg/agentwire/config.toml"), "store.kind = 'memory'").expect("settings");
    listing(&|command| {
        command.env("XDG_CONFIG_HOME", path("xdg")).env("AGENTWIRE_DATA_DIR", path("memory"));
    });
    assert!(!path("memory").exists());
    listing(&|command| {
        command.env("XDG_CONFIG_HOME", path("xdg")).env("AGENTWIRE_DATA_DIR", path("memory"));
        command.env("AGENTWIRE_STORE", "sqlite");
    });
    assert!(path("memory/agentwire.db").exists());
}

#[test]
fn a_named_file_must_be_there() {
    let home = Home::new();
    let missing = home.path("missing.toml");
    let (code, _, error) = run(agentwire(&home, &["ls"]).env("AGENTWIRE_CONFIG", &missing));
    assert_eq!(code, Some(2));
    assert!(error.contains("missing.toml"), "{error}");
    // A flag wins over the variable.
    let there = home.path("there.toml");
    fs::write(&there, "").expect("settings");
    let mut command = agentwire(&home, &["ls", "--config"]);
    let (code, _, error) = run(command.arg(&there).env("AGENTWIRE_CONFIG", &missing));
    assert_eq!(code, Some(0), "{error}");
}

#[test]
fn a_wrong_variable_is_named() {
    for (name, value, told) in [
        ("AGENTWIRE_AGENT", "cladue", "did you mean `claude`?"),
        ("AGENTWIRE_STORE", "postgres://me:secret@host/db", "no PostgreSQL store"),
        ("AGENTWIRE_REQUEST_TIMEOUT", "soon", "not a number of seconds"),
        ("AGENTWIRE_REQUEST_TIMEOUT", "-1", "not a number of seconds"),
        ("AGENTWIRE_TRUST", "yes", "expected `ask`, `always` or `never`"),
        ("AGENTWIRE_LOG", "loud", "possible values"),
    ] {
        let (code, _, error) = run(agentwire(&Home::new(), &["ls"]).env(name, value));
        assert_eq!(code, Some(2), "{name}");
        assert!(error.contains(told) && !error.contains("secret"), "{error}");
    }
}

/// Log lines go to stderr, and only at the requested level.
#[test]
fn the_log_level_is_heeded() {
    let told = |level: &str| {
        let (code, text, error) =
            run(&mut agentwire(&Home::new(), &["--log-level", level, "doctor"]));
        assert_eq!(code, Some(0), "{text}");
        error
    };
    assert_eq!(told("warn"), "");
    assert!(told("info").contains("session started"));
    let all = told("debug");
    assert!(all.contains("agent process started") && all.contains("agent process ended"), "{all}");
}
