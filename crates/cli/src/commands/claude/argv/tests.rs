use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use agentwire_protocol::AgentType;
use agentwire_protocol::session::{
    McpServer, OnLimit, SessionConfig, SystemPrompt, SystemPromptPreset,
};
use serde_json::json;

use super::flag::{Fate, Flag, Group, Takes};
use super::table::FLAGS;
use super::{Action, InputFormat, Invocation, OutputFormat, Refused, Resume, help, parse};

const DIRECTORY: &str = "/work place";
const PYTHON: [&str; 5] =
    ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];
const AGENTS: [AgentType; 5] =
    [AgentType::Claude, AgentType::Demo, AgentType::Codex, AgentType::Gemini, AgentType::Acp];

fn read(args: &[&str], agent: AgentType) -> Result<Invocation, Refused> {
    match parse(args.iter().map(OsString::from))? {
        Action::Session(given) => given.with(agent, Path::new(DIRECTORY)),
        asked @ (Action::Version | Action::Help { .. }) => panic!("{asked:?}"),
    }
}

fn refused(args: &[&str], agent: AgentType) -> String {
    let refused = read(args, agent).unwrap_err();
    assert_eq!(refused.exit, 1);
    refused.message
}

/// The flags that an SDK always passes.
fn plain() -> Invocation {
    Invocation {
        prompt: None,
        print: false,
        input: InputFormat::StreamJson,
        output: OutputFormat::StreamJson,
        verbose: true,
        config: SessionConfig {
            working_directory: Some(DIRECTORY.to_owned()),
            include_partial_messages: Some(false),
            ..SessionConfig::default()
        },
        asks_client: false,
        may_bypass: false,
        resume: None,
        fork: false,
        session_id: None,
        include_partial: false,
        forward_subagent_text: false,
        replay_user_messages: false,
        no_session_persistence: false,
    }
}

fn words(list: &[&str]) -> Option<Vec<String>> {
    Some(list.iter().map(|word| (*word).to_owned()).collect())
}

fn append(text: &str) -> Option<SystemPrompt> {
    Some(SystemPrompt::Preset(SystemPromptPreset {
        kind: "preset".to_owned(),
        preset: "claude_code".to_owned(),
        append: Some(text.to_owned()),
    }))
}

/// One row per flag of both SDKs: the words after the flag's name, and what they change.
#[test]
fn what_the_sdks_say_is_understood_in_both_forms() {
    const ID: &str = "11111111-2222-4333-8444-555555555555";
    let check = |flag: &str, value: &str, change: &dyn Fn(&mut Invocation)| {
        let mut expected = plain();
        change(&mut expected);
        let joined = format!("{flag}={value}");
        for form in [vec![flag, value], vec![joined.as_str()]] {
            let args = [&PYTHON[..], &form].concat();
            assert_eq!(read(&args, AgentType::Claude).unwrap(), expected, "{form:?}");
        }
    };
    let native = |flag: &str, value: &str| {
        check(flag, value, &|it| it.config.native_args = words(&[&format!("{flag}={value}")]));
    };
    check("--system-prompt", "", &|it| {
        it.config.system_prompt = Some(SystemPrompt::Text(String::new()));
    });
    check("--system-prompt", "-X", &|it| {
        it.config.system_prompt = Some(SystemPrompt::Text("-X".to_owned()));
    });
    check("--append-system-prompt", "Y", &|it| it.config.system_prompt = append("Y"));
    native("--tools", "");
    native("--tools", "A,B");
    native("--tools", "default");
    check("--allowedTools", "A,B(x y:*) C", &|it| {
        it.config.allowed_tools = words(&["A", "B(x y:*)", "C"]);
    });
    check("--allowed-tools", "Skill(pdf)", &|it| it.config.allowed_tools = words(&["Skill(pdf)"]));
    check("--disallowedTools", "C,D", &|it| it.config.blocked_tools = words(&["C", "D"]));
    check("--max-turns", "3", &|it| {
        (it.config.max_turns, it.config.on_limit) = (Some(3), Some(OnLimit::Fail));
    });
    check("--max-budget-usd", "0.5", &|it| {
        (it.config.max_budget_usd, it.config.on_limit) = (Some(0.5), Some(OnLimit::Fail));
    });
    native("--task-budget", "1000");
    check("--model", "m", &|it| it.config.model = Some("m".to_owned()));
    check("--fallback-model", "f", &|it| it.config.fallback_model = Some("f".to_owned()));
    check("--betas", "a,b", &|it| it.config.betas = words(&["a", "b"]));
    check("--permission-prompt-tool", "stdio", &|it| it.asks_client = true);
    native("--permission-prompt-tool", "mcp__x__ask");
    check("--permission-mode", "plan", &|it| it.config.permission_mode = Some("plan".to_owned()));
    check("--permission-mode", "manual", &|it| {
        it.config.permission_mode = Some("default".to_owned());
    });
    native("--permission-prompts", "none");
    check("--resume", "R", &|it| it.resume = Some(Resume::Session("R".to_owned())));
    check("--session-id", ID, &|it| it.session_id = Some(ID.to_owned()));
    native("--settings", r#"{"sandbox":{"enabled":true}}"#);
    check("--add-dir", "/a", &|it| it.config.additional_directories = words(&["/a"]));
    check("--mcp-config", r#"{"mcpServers":{"s":{"type":"sdk","name":"s"}}}"#, &|it| {
        let server = McpServer { kind: Some("sdk".to_owned()), ..McpServer::default() };
        it.config.mcp_servers = Some(BTreeMap::from([("s".to_owned(), server)]));
    });
    check("--setting-sources", "", &|it| it.config.setting_sources = words(&[]));
    check("--setting-sources", "user,project", &|it| {
        it.config.setting_sources = words(&["user", "project"]);
    });
    native("--plugin-dir", "P");
    native("--thinking", "adaptive");
    native("--thinking-display", "omitted");
    check("--max-thinking-tokens", "0", &|it| it.config.max_thinking_tokens = Some(0));
    native("--effort", "high");
    check("--json-schema", r#"{"type": "object"}"#, &|it| {
        let format = json!({ "type": "json_schema", "schema": { "type": "object" } });
        it.config.output_format = serde_json::from_str(
            &format.to_string().replace(r#"{"type":"object"}"#, r#"{"type": "object"}"#),
        )
        .unwrap();
    });
    check("--agents", r#"{"r":{"description":"d","prompt":"p"}}"#, &|it| {
        let agents = json!({ "r": { "description": "d", "prompt": "p" } });
        it.config.agents = serde_json::from_value(agents).unwrap();
    });
    native("--agent", "a");
    native("--debug-file", "F");
    native("--managed-settings", "{}");
}

#[test]
fn switches_are_understood() {
    let check = |switch: &str, change: &dyn Fn(&mut Invocation)| {
        let mut expected = plain();
        change(&mut expected);
        let args = [&PYTHON[..], &[switch]].concat();
        assert_eq!(read(&args, AgentType::Claude).unwrap(), expected, "{switch}");
    };
    let native = |switch| move |it: &mut Invocation| it.config.native_args = words(&[switch]);
    check("--continue", &|it| it.resume = Some(Resume::Continue));
    check("-c", &|it| it.resume = Some(Resume::Continue));
    check("-p", &|it| it.print = true);
    check("--fork-session", &|it| it.fork = true);
    check("--include-partial-messages", &|it| {
        (it.include_partial, it.config.include_partial_messages) = (true, Some(true));
    });
    check("--include-hook-events", &native("--include-hook-events"));
    check("--no-session-persistence", &|it| {
        native("--no-session-persistence")(it);
        it.no_session_persistence = true;
    });
    check("--allow-dangerously-skip-permissions", &|it| {
        native("--allow-dangerously-skip-permissions")(it);
        it.may_bypass = true;
    });
    check("--dangerously-skip-permissions", &|it| {
        it.config.permission_mode = Some("bypassPermissions".to_owned());
        it.may_bypass = true;
    });
    check("--replay-user-messages", &|it| it.replay_user_messages = true);
    check("--forward-subagent-text", &|it| it.forward_subagent_text = true);
    check("--strict-mcp-config", &native("--strict-mcp-config"));
    check("--session-mirror", &native("--session-mirror"));
    check("--debug", &native("--debug"));
    check("-d", &native("--debug"));
    check("-d2e", &native("--debug-to-stderr"));
    check("--debug=hooks,!mcp", &native("--debug=hooks,!mcp"));
}

#[test]
fn lists_and_operands_follow_the_parser_of_the_program() {
    let args = |args: &[&str]| read(args, AgentType::Claude).unwrap();
    let list = args(&["-p", "--allowedTools", "A", "B(c d)", "--add-dir", "x", "/y", "--", "-hi"]);
    assert_eq!(list.config.allowed_tools, words(&["A", "B(c d)"]));
    assert_eq!(list.config.additional_directories, words(&["/work place/x", "/y"]));
    assert_eq!(list.prompt.as_deref(), Some("-hi"));
    // The equals form takes one value only. Repeated flags add up.
    let list = args(&["--allowedTools=A", "hi", "there", "--allowedTools=B"]);
    assert_eq!(list.config.allowed_tools, words(&["A", "B"]));
    assert_eq!(list.prompt.as_deref(), Some("hi"));
    // A required value may look like a flag, an optional one may not.
    assert_eq!(args(&["--model", "-x"]).config.model.as_deref(), Some("-x"));
    let resumed = args(&["-r", "R", "-pc", "-nN"]);
    assert_eq!(resumed.resume, Some(Resume::Session("R".to_owned())));
    assert_eq!(resumed.config.native_args, words(&["--name=N"]));
    assert!(resumed.print);
    // The last of a single value counts; plugins add up.
    let last = args(&[
        "--model=a",
        "--model=b",
        "--effort=low",
        "--effort=max",
        "--plugin-dir=P",
        "--plugin-dir=Q",
    ]);
    assert_eq!(last.config.model.as_deref(), Some("b"));
    let native = ["--effort=max", "--plugin-dir=P", "--plugin-dir=Q"];
    assert_eq!(last.config.native_args, words(&native));
    assert_eq!(args(&["--print", "--", "mcp"]).prompt.as_deref(), Some("mcp"));
}

#[test]
fn mistakes_are_named_as_the_program_names_them() {
    let check = |args: &[&str], message: &str| {
        assert_eq!(refused(args, AgentType::Claude), message, "{args:?}");
    };
    check(&["--x"], "error: unknown option '--x'");
    check(&["-x"], "error: unknown option '-x'");
    check(&["--nope=3"], "error: unknown option '--nope=3'");
    check(&["--no-verbose=1", "-p"], "error: unknown option '--no-verbose=1'");
    check(&["--verbose=1"], "error: unknown option '--verbose=1'\n(Did you mean --verbose?)");
    check(&["-p", "--model"], "error: option '--model <model>' argument missing");
    check(
        &["--output-format", "xml"],
        "error: option '--output-format <format>' argument 'xml' is invalid. Allowed choices are \
         text, json, stream-json.",
    );
    check(
        &["--max-turns=x"],
        "error: option '--max-turns <turns>' argument 'x' is invalid. must be a whole number",
    );
    check(
        &["--max-budget-usd", "0"],
        "error: option '--max-budget-usd <amount>' argument '0' is invalid. --max-budget-usd must \
         be a positive number greater than 0",
    );
    check(&["--session-id=7"], "Error: Invalid session ID. Must be a valid UUID.");
    check(
        &["-c", "--session-id=11111111-2222-4333-8444-555555555555"],
        "Error: --session-id can only be used with --continue or --resume if --fork-session is \
         also specified.",
    );
    check(
        &["-p", "--output-format", "stream-json"],
        "Error: When using --print, --output-format=stream-json requires --verbose",
    );
    check(
        &["--input-format=stream-json"],
        "Error: --input-format=stream-json requires output-format=stream-json.",
    );
    check(
        &["-p", "--resume"],
        "Error: --resume requires a valid session ID or session title when used with --print. \
         Usage: claude -p --resume <session-id|title>",
    );
    check(&["--resume-session-at=m"], "Error: --resume-session-at requires --resume");
    check(&["--json-schema=[]"], "Error: --json-schema must be a JSON object");
    check(
        &["--setting-sources=foo"],
        "Error processing --setting-sources: Invalid setting source: foo. Valid options are: user, \
         project, local",
    );
    check(
        &["--mcp-config={"],
        "Error: Invalid MCP configuration:\nMCP config file not found: /work place/{",
    );
    check(&["--system-prompt-file=no"], "Error: System prompt file not found: /work place/no");
    check(&["--cloud"], "error: option '--cloud' is not supported by agentwire");
    let command = refused(&["mcp", "list"], AgentType::Claude);
    assert!(
        command.starts_with("error: agentwire does not support the claude command 'mcp'"),
        "{command}"
    );
}

#[test]
fn words_that_are_not_utf8_are_refused() {
    let args = ["-p".into(), OsString::from_vec(b"a\xff".to_vec())];
    let refused = parse(args.into_iter()).unwrap_err();
    assert_eq!(refused.message, "error: argument 2 is not valid UTF-8: 'a\u{fffd}'");
}

#[test]
fn version_and_help_need_nothing_else_to_be_right() {
    let asked = |args: &[&str]| parse(args.iter().map(OsString::from)).unwrap();
    assert!(matches!(asked(&["-v"]), Action::Version));
    assert!(matches!(asked(&["--nope", "--version", "--model"]), Action::Version));
    assert!(matches!(asked(&["-vx"]), Action::Version));
    assert!(matches!(asked(&["--nope", "-h"]), Action::Help { is_short: true }));
    assert!(matches!(asked(&["--help"]), Action::Help { is_short: false }));
    for agent in AGENTS {
        let short = help(agent, true);
        assert!(short.lines().count() <= 30, "{short}");
        for flag in ["--print", "--resume", "--model", "--permission-mode", "--output-format"] {
            assert!(short.contains(flag), "{flag} is not in the short help");
        }
        let help = help(agent, false);
        for flag in FLAGS {
            assert!(help.contains(flag.name()), "{} is not in the help", flag.name());
        }
        assert!(help.contains(&format!("The agent is {} now", agent.as_str())), "{help}");
    }
}

#[test]
fn without_a_screen_there_must_be_a_prompt() {
    let bare = read(&[], AgentType::Demo).unwrap();
    assert!(bare.refuse_screen(true).unwrap_err().message.contains("agentwire run"));
    assert_eq!(bare.refuse_screen(false), Ok(()));
    assert_eq!(read(&["-p"], AgentType::Demo).unwrap().refuse_screen(true), Ok(()));
    assert_eq!(plain().refuse_screen(true), Ok(()));
    assert!(bare.text_prompt("").unwrap_err().message.starts_with("Error: Input must be provided"));
    assert_eq!(bare.text_prompt("piped\n").unwrap(), "piped\n");
    let both = read(&["-p", "hi"], AgentType::Demo).unwrap();
    assert_eq!(both.text_prompt("piped").unwrap(), "hi\npiped");
}

#[test]
fn files_are_read_and_what_we_cannot_say_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    write("prompt.txt", "FILE\n");
    write("mcp.json", r#"{"mcpServers":{"a":{"command":"x","args":[],"env":{"K":"V"}}}}"#);
    write("odd.json", r#"{"mcpServers":{"b":{"type":"http","url":"u","oauth":{}}}}"#);
    let read = |args: &[&str], agent| match parse(args.iter().map(OsString::from)).unwrap() {
        Action::Session(given) => given.with(agent, place.path()),
        asked @ (Action::Version | Action::Help { .. }) => panic!("{asked:?}"),
    };
    let claude = |args: &[&str]| read(args, AgentType::Claude).unwrap().config;
    let text = |text: &str| Some(SystemPrompt::Text(text.to_owned()));
    assert_eq!(claude(&["--system-prompt-file=prompt.txt"]).system_prompt, text("FILE\n"));
    let both = ["--system-prompt=A", "--system-prompt-file=prompt.txt", "--append-system-prompt=B"];
    assert_eq!(claude(&both).system_prompt, text("FILE\n\nA\n\nB"));
    let inline = r#"{"mcpServers":{"c":{"timeout":5,"type":"http","url":"u"},"s":{"type":"sdk"}}}"#;
    let config = claude(&["--mcp-config", "mcp.json", "odd.json", inline]);
    let servers: Vec<_> = config.mcp_servers.unwrap().into_keys().collect();
    assert_eq!(servers, ["a", "s"]);
    let odd = format!("--mcp-config={}", place.path().join("odd.json").display());
    let rest = r#"--mcp-config={"mcpServers":{"c":{"timeout":5,"type":"http","url":"u"}}}"#;
    assert_eq!(config.native_args, words(&[&odd, rest]));
    let message = read(&["--mcp-config=odd.json"], AgentType::Codex).unwrap_err().message;
    assert!(message.ends_with("b: the field oauth is not supported with codex"), "{message}");
    let agents = r#"{"r":{"description":"d","maxTurns":2,"prompt":"p"}}"#;
    let config = claude(&["--agents", agents]);
    assert_eq!(
        (config.agents, config.native_args),
        (None, words(&[&format!("--agents={agents}")]))
    );
}

#[test]
fn other_agents_drop_what_says_nothing_and_refuse_what_they_cannot() {
    let python = [&PYTHON[..], &["--system-prompt", "", "--setting-sources=user", "-d"]].concat();
    for agent in [AgentType::Codex, AgentType::Gemini, AgentType::Acp] {
        let trifles =
            ["--tools=default", "--settings={}", "--thinking=adaptive", "--model=default"];
        assert_eq!(read(&[&python[..], &trifles].concat(), agent).unwrap(), plain());
        let name = agent.as_str();
        for flag in ["--tools=", "--effort=low", "--settings=x", "--betas=b", "--strict-mcp-config"]
        {
            let option = flag.split('=').next().unwrap();
            let message = format!("error: option '{option}' is not supported with {name}");
            assert_eq!(refused(&[flag], agent), message);
        }
    }
    for agent in [AgentType::Codex, AgentType::Gemini, AgentType::Acp] {
        assert!(read(&["--json-schema={}"], agent).unwrap().config.output_format.is_some());
        assert!(read(&["--system-prompt=x"], agent).unwrap().config.system_prompt.is_some());
    }
}

/// A valid value of the flag that has an effect.
fn sample(flag: &Flag) -> Option<String> {
    let text = match (flag.name(), flag.takes) {
        (_, Takes::Nothing) => return None,
        ("--input-format" | "--output-format", _) => "stream-json",
        ("--permission-prompts", _) => "none",
        (_, Takes::Choice(_, choices)) => choices[0],
        ("--permission-prompt-tool", _) => "stdio",
        ("--session-id", _) => "11111111-2222-4333-8444-555555555555",
        ("--system-prompt-file" | "--append-system-prompt-file", _) => "/dev/null",
        ("--json-schema", _) => r#"{"a":1}"#,
        ("--mcp-config", _) => r#"{"mcpServers":{"s":{"command":"c"}}}"#,
        ("--agents", _) => r#"{"r":{"description":"d","prompt":"p"}}"#,
        ("--setting-sources", _) => "user",
        (_, Takes::One(_) | Takes::Maybe(_) | Takes::Many(_)) => "7",
    };
    Some(text.to_owned())
}

/// The flag with a value, and the flags that it requires.
fn line(flag: &Flag) -> Vec<String> {
    let mut line: Vec<_> = PYTHON.iter().map(|word| (*word).to_owned()).collect();
    match flag.name() {
        "--output-format" | "--input-format" | "--verbose" => line = vec!["-p".to_owned()],
        "--resume-session-at" => line.push("--resume=R".to_owned()),
        "--permission-prompts" => line.push("--permission-prompt-tool=stdio".to_owned()),
        _ => {}
    }
    if flag.name() == "--input-format" {
        line.extend(["--output-format=stream-json".to_owned(), "--verbose".to_owned()]);
    } else if flag.name() == "--output-format" {
        line.push("--verbose".to_owned());
    }
    line
}

#[test]
fn every_flag_does_what_its_row_says() {
    for flag in FLAGS.iter().filter(|flag| !matches!(flag.name(), "--version" | "--help")) {
        let base = line(flag);
        let word = match sample(flag) {
            Some(value) => format!("{}={value}", flag.name()),
            None => flag.name().to_owned(),
        };
        for agent in AGENTS {
            let read =
                |args: &[String]| read(&args.iter().map(String::as_str).collect::<Vec<_>>(), agent);
            let given = read(&[&base[..], std::slice::from_ref(&word)].concat());
            let native = |it: &Invocation| it.config.native_args.clone().unwrap_or_default();
            let row = format!("{word} with {}", agent.as_str());
            match flag.fates.with(agent) {
                Fate::Refused => assert!(given.is_err(), "{row}"),
                Fate::Forwarded => assert!(native(&given.unwrap()).contains(&word), "{row}"),
                Fate::Dropped => assert_eq!(given, read(&base), "{row}"),
                // An empty file changes nothing for an agent that keeps its own prompt.
                Fate::Honoured if word.ends_with("/dev/null") => assert!(given.is_ok(), "{row}"),
                Fate::Honoured => {
                    let given = given.unwrap();
                    assert!(!native(&given).contains(&word), "{row}");
                    assert_ne!(Ok(given), read(&base), "{row}");
                }
            }
        }
    }
}

#[test]
fn spellings_are_unique() {
    let mut names: Vec<_> = FLAGS.iter().flat_map(|flag| flag.names).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn the_order_of_flags_says_nothing() {
    let flags = FLAGS.iter().filter(|flag| {
        !matches!(flag.name(), "--version" | "--help" | "--session-id")
            && flag.fates.with(AgentType::Claude) != Fate::Refused
    });
    let mut args: Vec<_> = flags
        .map(|flag| match sample(flag) {
            Some(value) => format!("{}={value}", flag.name()),
            None => flag.name().to_owned(),
        })
        .chain(["prompt".to_owned()])
        .collect();
    let read = |args: &[String]| {
        read(&args.iter().map(String::as_str).collect::<Vec<_>>(), AgentType::Claude).unwrap()
    };
    let expected = read(&args);
    // A fixed shuffle: each round is another order.
    let mut state = 1_u64;
    for _ in 0..200 {
        for index in (1..args.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let other = usize::try_from(state >> 33).unwrap() % (index + 1);
            args.swap(index, other);
        }
        assert_eq!(read(&args), expected, "{args:?}");
    }
}

/// The table of flags in docs/claude-drop-in.md is generated from this one.
#[test]
fn the_document_has_the_table() {
    let mut table = String::from(
        "| flag | claude | demo | codex | gemini | acp | asks nothing of others |\n|---|---|---|---|---|---|---|\n",
    );
    for flag in FLAGS.iter().filter(|flag| flag.group != Group::Screen) {
        let fates = AGENTS.map(|agent| flag.fates.with(agent).word()).join(" | ");
        let vain = flag.vain.iter().map(|value| match *value {
            "" => "empty".to_owned(),
            value => format!("`{value}`"),
        });
        let vain = vain.collect::<Vec<_>>().join(", ");
        let spelled = flag.spelled().replace('|', "\\|");
        writeln!(table, "| `{spelled}` | {fates} | {vain} |").unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/claude-drop-in.md");
    let document = std::fs::read_to_string(path).unwrap();
    assert!(document.contains(&table), "docs/claude-drop-in.md must have this table:\n{table}");
    for flag in FLAGS.iter().filter(|flag| flag.group == Group::Screen) {
        assert!(document.contains(&format!("`{}`", flag.name())), "{} is not told of", flag.name());
    }
}
