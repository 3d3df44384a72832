use agentwire_protocol::AgentType;

use super::*;
use crate::{driver, program, programs};

fn example(tested: &'static [&'static str], problems: &'static [Problem]) -> Program {
    Program { tested, problems, ..*program(AgentType::Acp) }
}

#[test]
fn versions_are_found_in_what_programs_print() {
    assert_eq!(version_in("2.1.197 (Claude Code)\n"), Some("2.1.197"));
    assert_eq!(version_in("codex-cli 0.166.0\n"), Some("0.166.0"));
    assert_eq!(version_in("warning: 3 things\nv0.61.0-nightly.1\n"), Some("0.61.0-nightly.1"));
    assert_eq!(version_in("no version here 1.2 1.2.3.4 a.b.c"), None);
}

#[test]
fn a_version_stands_to_those_tested() {
    let program = example(&["2.1.197", "2.1.325"], &[]);
    let cases = [
        ("2.1.197", Standing::Tested),
        ("2.1.325", Standing::Tested),
        ("2.1.200", Standing::Between),
        ("2.1.99", Standing::Older),
        ("2.2.0", Standing::Newer),
        ("10.0.0", Standing::Newer),
        ("latest", Standing::Unknown),
    ];
    for (version, expected) in cases {
        assert_eq!(program.standing(Some(version)), expected, "{version}");
    }
    assert_eq!(program.standing(None), Standing::Unknown);
    assert_eq!(example(&[], &[]).standing(Some("1.0.0")), Standing::Unknown);
}

#[test]
fn a_problem_is_that_of_its_versions() {
    const PROBLEMS: &[Problem] = &[
        Problem {
            from: None,
            before: Some("1.2.0"),
            what: "too old",
            remedy: "upgrade",
            fatal: true,
        },
        Problem {
            from: Some("1.1.0"),
            before: Some("1.10.0"),
            what: "broken",
            remedy: "upgrade",
            fatal: false,
        },
        Problem {
            from: Some("2.0.0"),
            before: None,
            what: "changed",
            remedy: "go back",
            fatal: false,
        },
    ];
    let program = example(&[], PROBLEMS);
    let cases: [(&str, &[&str]); 8] = [
        ("0.9.0", &["too old"]),
        ("1.1.0", &["too old", "broken"]),
        ("1.2.0", &["broken"]),
        ("1.9.99", &["broken"]),
        ("1.10.0", &[]),
        ("2.0.0-beta.1", &["changed"]),
        ("3.0.0", &["changed"]),
        ("unknown", &[]),
    ];
    for (version, expected) in cases {
        let found = program.problems_of(Some(version));
        let found: Vec<_> = found.into_iter().map(|problem| problem.what).collect();
        assert_eq!(found, expected, "{version}");
    }
    assert_eq!(program.problems_of(None), []);
}

#[test]
fn what_is_known_of_each_program_fits_together() {
    let listed: Vec<AgentType> = programs().iter().map(|program| program.agent).collect();
    assert_eq!(listed, AgentType::ALL);
    for agent in AgentType::ALL {
        let program = program(agent);
        let default = driver(agent, None).expect("a default");
        assert_eq!(default.name(), program.drivers[0].1.name(), "{agent:?}");
        for (name, dialect) in program.drivers {
            assert_eq!(dialect.agent_type(), agent, "{agent:?} {name}");
            let found = driver(agent, Some(name)).expect("a driver");
            assert_eq!(found.name(), dialect.name(), "{agent:?} {name}");
        }
        assert!(driver(agent, Some("telepathy")).is_err());
        let order = |version: &&str| numbers(version).expect("a version");
        assert!(program.tested.is_sorted_by_key(order), "{agent:?}");
        // Tested versions work.
        for version in program.tested {
            let fatal = program.problems_of(Some(version)).into_iter().any(|problem| problem.fatal);
            assert!(!fatal, "{agent:?} {version}");
        }
        for problem in program.problems {
            let bounds = [problem.from, problem.before];
            assert!(bounds.iter().flatten().all(|bound| numbers(bound).is_some()), "{problem:?}");
            assert!(bounds != [None, None], "this problem has no version: {problem:?}");
        }
    }
}

#[test]
fn a_program_that_is_asked_has_its_answer_read() {
    let read = |agent| match program(agent).login {
        LoginQuestion::Ask { read, .. } => read,
        LoginQuestion::None { .. } | LoginQuestion::Needless => panic!("{agent:?} is not asked"),
    };
    let claude = read(AgentType::Claude);
    let says = |method: &str| {
        let signed_in = method != "none";
        format!(
            "{{\n  \"loggedIn\": {signed_in},\n  \"authMethod\": \"{method}\",\n  \"apiProvider\": \
             \"firstParty\",\n  \"email\": \"nobody@example.invalid\"\n}}\n"
        )
    };
    let cases = [
        ("none", Login::NotSignedIn),
        ("api_key", Login::SignedIn(Some(LoginMethod::ApiKey))),
        ("api_key_helper", Login::SignedIn(Some(LoginMethod::ApiKey))),
        ("oauth_token", Login::SignedIn(Some(LoginMethod::Token))),
        ("third_party", Login::SignedIn(Some(LoginMethod::Cloud))),
        ("claude.ai", Login::SignedIn(Some(LoginMethod::Account))),
        ("something new", Login::SignedIn(None)),
    ];
    for (method, expected) in cases {
        assert_eq!(claude(&says(method), ""), expected, "{method}");
    }
    for text in ["", "{\"loggedIn\": tr", "null", "[]", "{}", "error: unknown option '--json'"] {
        assert_eq!(claude(text, text), Login::NotTold, "{text}");
    }

    let codex = read(AgentType::Codex);
    let cases = [
        ("Not logged in\n", Login::NotSignedIn),
        ("Logged in using ChatGPT\n", Login::SignedIn(Some(LoginMethod::Account))),
        (
            "API key configured - sk-made-***56789\nAuthentication is checked when you send a request.\n",
            Login::SignedIn(Some(LoginMethod::ApiKey)),
        ),
        ("WARNING: something\nLogged in using a talisman\n", Login::SignedIn(None)),
        ("Error loading configuration: config.toml:1:6: Not logged in", Login::NotTold),
        ("", Login::NotTold),
    ];
    for (text, expected) in cases {
        assert_eq!(codex("", text), expected, "{text}");
    }
}
