//! Precedence of the sources, and the meaning of the file.

use std::time::Duration;

use agentwire_protocol::{ApprovalMode, SessionConfig};
use agentwire_sessions::own_dirs;
use agentwire_sessions::process::ContainmentChoice;
use agentwire_sessions::settings::StoreKind;
use agentwire_sessions::trust::TrustPolicy;

use super::*;

fn nothing(_: &str) -> Option<OsString> {
    None
}

fn loaded(text: &str, environment: Environment) -> Loaded {
    let file = toml::from_str(text).expect("valid settings");
    let global = Global { data_dir: Some("/data".into()), ..Global::default() };
    resolve(file, None, &global, environment).expect("settings")
}

#[test]
fn an_empty_file_says_nothing() {
    let loaded = loaded("", nothing);
    let Settings { data_dir, store, timing, prices, defaults, agents, .. } = loaded.engine;
    assert_eq!(data_dir, Path::new("/data"));
    assert_eq!((store, timing), (StoreKind::Sqlite, Timing::default()));
    assert_eq!(defaults, SessionDefaults::default());
    assert!(prices.is_empty() && loaded.projects.is_empty() && loaded.agent.is_none());
    assert!(agents.values().all(|command| *command == AgentCommand::default()));
}

#[test]
fn the_key_of_the_server_and_a_file_given_elsewhere_are_private() {
    let text = "[server]\ntls_key = \"/etc/key.pem\"\n[process]\ncontainment = \"keeper\"\n";
    let file = toml::from_str(text).expect("valid settings");
    let global = Global { data_dir: Some("/data".into()), ..Global::default() };
    let path = Some(PathBuf::from("/project/agentwire.toml"));
    let engine = resolve(file, path, &global, nothing).expect("settings").engine;
    for private in ["/etc/key.pem", "/project/agentwire.toml"] {
        assert!(engine.private.contains(&PathBuf::from(private)), "{private}");
    }
    // The project can still be worked in.
    assert_eq!(engine.secrets, [PathBuf::from("/etc/key.pem")]);
    assert!(
        own_dirs::all(&engine).iter().all(|place| !Path::new("/project").starts_with(&place.path))
    );
    assert_eq!(engine.containment, ContainmentChoice::Keeper);
    let other = |name: &str| (name == "AGENTWIRE_CONTAINMENT").then(|| OsString::from("namespace"));
    assert_eq!(loaded(text, other).engine.containment, ContainmentChoice::Namespace);
}

/// The page shows the default timeouts.
#[test]
fn the_page_shows_the_usual_times() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let start = page.find("[limits]").expect("the limits");
    let limits = page[start..].split("\n\n").next().expect("their lines");
    assert!(limits.contains("stop_grace"), "{limits}");
    assert_eq!(loaded(limits, nothing).engine.timing, Timing::default());
}

#[test]
fn the_file_is_taken_whole() {
    let loaded = loaded(
        r#"
        agent = "gemini"
        [agents.codex]
        command = ["npx", "codex"]
        args = ["-c", "x"]
        env = { A = "1" }
        driver = "exec"
        model = "m"
        [agents.acp]
        command = "/opt/agent"
        [limits]
        request_timeout = 2.5
        call_timeout = 7
        interrupt_grace = 0
        stop_grace = 8
        signal_grace = 9
        stall_after = 10
        sessions = 11
        [policy]
        approval = "autoEdit"
        allow = ["Read"]
        block = ["Bash"]
        trust = "never"
        [store]
        kind = "memory"
        [prices.m]
        input = 3
        output = 15
        cache_read = 0.3
        [projects]
        web = "/srv/web"
        "#,
        nothing,
    );
    assert_eq!(loaded.agent, Some(AgentType::Gemini));
    let codex = loaded.engine.agent(AgentType::Codex);
    assert_eq!(codex.program.as_deref(), Some("npx"));
    assert_eq!(codex.args, ["codex", "-c", "x"]);
    assert_eq!(codex.env, BTreeMap::from([("A".to_owned(), "1".to_owned())]));
    assert_eq!((codex.driver.as_deref(), codex.model.as_deref()), (Some("exec"), Some("m")));
    assert_eq!(loaded.engine.agent(AgentType::Acp).program.as_deref(), Some("/opt/agent"));
    assert_eq!(
        loaded.engine.timing,
        Timing {
            request: Some(Duration::from_millis(2500)),
            call: Duration::from_secs(7),
            interrupt: Duration::ZERO,
            stop: Duration::from_secs(8),
            signal: Duration::from_secs(9),
            stall: Duration::from_secs(10),
        }
    );
    assert_eq!(loaded.engine.sessions, Some(11));
    assert_eq!(loaded.engine.store, StoreKind::Memory);
    let price = loaded.engine.prices["m"];
    assert_eq!((price.input, price.output), (3.0, 15.0));
    assert_eq!((price.cache_read, price.cache_write), (0.3, 3.0));
    assert_eq!(loaded.projects["web"], Path::new("/srv/web"));
    assert_eq!(
        loaded.engine.defaults,
        SessionDefaults {
            approval: Some(ApprovalMode::AutoEdit),
            allow: Some(vec!["Read".to_owned()]),
            block: vec!["Bash".to_owned()],
            trust: TrustPolicy::Never,
        }
    );
}

#[test]
fn the_environment_wins_over_the_file() {
    let loaded = loaded(
        r#"
        agent = "gemini"
        store.kind = "memory"
        limits.request_timeout = 5
        agents.acp = { command = ["first", "its-argument"], args = ["kept"] }
        "#,
        |name| {
            let value = match name {
                "AGENTWIRE_AGENT" => "codex",
                "AGENTWIRE_STORE" => "sqlite",
                "AGENTWIRE_REQUEST_TIMEOUT" => "0",
                "AGENTWIRE_ACP_BIN" => "/second",
                "AGENTWIRE_CLAUDE_BIN" => "",
                _ => return None,
            };
            Some(value.into())
        },
    );
    assert_eq!(loaded.agent, Some(AgentType::Codex));
    assert_eq!(loaded.engine.store, StoreKind::Sqlite);
    assert_eq!(loaded.engine.timing.request, None);
    let acp = loaded.engine.agent(AgentType::Acp);
    assert_eq!((acp.program.as_deref(), acp.args), (Some("/second"), vec!["kept".to_owned()]));
    assert_eq!(loaded.engine.agent(AgentType::Claude).program, None);
}

#[test]
fn a_session_wins_over_the_defaults_but_lifts_no_block() {
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
    let defaults = SessionDefaults {
        approval: Some(ApprovalMode::AutoAll),
        allow: words(&["Read"]),
        block: vec!["Bash".to_owned()],
        trust: TrustPolicy::Ask,
    };
    let mut silent = SessionConfig::default();
    defaults.apply(&mut silent);
    assert_eq!(silent.approval_mode, Some(ApprovalMode::AutoAll));
    assert_eq!((silent.allowed_tools, silent.blocked_tools), (words(&["Read"]), words(&["Bash"])));

    let mut outspoken = SessionConfig {
        approval_mode: Some(ApprovalMode::Ask),
        allowed_tools: words(&[]),
        blocked_tools: words(&["Write"]),
        ..SessionConfig::default()
    };
    defaults.apply(&mut outspoken);
    defaults.apply(&mut outspoken);
    assert_eq!(outspoken.approval_mode, Some(ApprovalMode::Ask));
    assert_eq!(outspoken.allowed_tools, words(&[]));
    assert_eq!(outspoken.blocked_tools, words(&["Write", "Bash"]));
}

#[test]
fn mistakes_are_named_with_their_place_and_what_was_meant() {
    let cases = [
        ("agnet = 'x'", "line 1, column 1: unknown key `agnet`; did you mean `agent`?"),
        ("\n[agents.codx]", "line 2, column 9: unknown key `codx`; did you mean `codex`?"),
        (
            "[limits]\n  stal_after = 1",
            "line 2, column 3: unknown key `stal_after`; did you mean `stall_after`?",
        ),
        (
            "zebra = 1",
            "line 1, column 1: unknown key `zebra`; known here: agent, agents, limits, policy, process, store, server, prices, projects",
        ),
        ("agent = 'claud'", "line 1, column 9: unknown value `claud`; did you mean `claude`?"),
        (
            "policy.approval = 'autoedit'",
            "line 1, column 19: unknown value `autoedit`; did you mean `autoEdit`?",
        ),
        (
            "limits.stop_grace = 'soon'",
            "line 1, column 21: invalid type: string \"soon\", expected a number",
        ),
        (
            "limits.stop_grace = -1",
            "line 1, column 21: -1 is not a number of seconds from 0 to 1000000000",
        ),
        (
            "limits.stop_grace = nan",
            "line 1, column 21: NaN is not a number of seconds from 0 to 1000000000",
        ),
        ("limits.call_timeout = 0", "line 1, column 23: must be more than 0 seconds"),
        (
            "agents.acp.command = []",
            "line 1, column 22: the list is empty; its first entry is the program",
        ),
        (
            "agents.acp.command = 5",
            "line 1, column 22: invalid type: integer `5`, expected a program, or a list of a program and its arguments",
        ),
        ("projects.x = 'here'", "line 1, column 14: here must start with `/` or `~/`"),
        ("prices.m = { input = inf, output = 1 }", "line 1, column 22: inf is not a price"),
        (
            "store.kind = 'postgres://me:secret@host'",
            "line 1, column 14: this version of agentwire has no PostgreSQL store; use `sqlite` or `memory`",
        ),
    ];
    for (text, expected) in cases {
        let error = toml::from_str::<File>(text).expect_err(text);
        assert_eq!(diagnostic::describe(text, &error), expected);
    }
}

#[test]
fn a_count_is_a_whole_number_from_one() {
    for value in ["0", "-1", "1.5", "'many'"] {
        for key in ["limits.sessions", "limits.in_flight", "server.connections"] {
            let error = toml::from_str::<File>(&format!("{key} = {value}")).expect_err(value);
            let message = error.message();
            assert!(message.ends_with("expected a whole number, 1 or more"), "{message}");
        }
    }
    assert_eq!(loaded("limits.sessions = 3", nothing).engine.sessions, Some(3));
    assert_eq!(loaded("", nothing).engine.sessions, None);
}
