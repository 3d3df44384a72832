//! The runner itself: a script with any wrong expectation fails.

use crate::script::check;

const SCRIPT: &str = r#"# One process for each turn.
session> codex-exec {"config":{"model":"m"}}

--- It cannot be asked anything.
client> {"command":"query","method":"supportedModels"}
    client< 1 refused: unsupported: codex with exec does not support the query supportedModels

--- A signal interrupts it.
client> {"command":"prompt","prompt":"hi"}
    client< 1 {}
agent> {"type":"turn.started"}
    log< turnStarted {"prompt":"hi","turnNumber":1}
client> {"command":"interrupt"}
    agent< (signal to interrupt)
    client< 2 {}
"#;

#[test]
fn a_script_that_is_right_passes() {
    assert!(check("right", SCRIPT).is_ok());
}

#[test]
fn a_wrong_expectation_fails_and_is_shown() {
    for (right, wrong) in [
        // Another error, another value, another kind of event.
        ("refused: unsupported:", "refused: overloaded:"),
        (r#""turnNumber":1}"#, r#""turnNumber":2}"#),
        ("log< turnStarted", "log< turnFailed"),
        // Something that is sent is not expected, and the other way round.
        ("    agent< (signal to interrupt)\n", ""),
        ("    client< 1 {}\n", "    client< 1 {}\n    agent< {}\n"),
        // Another order.
        (
            "    agent< (signal to interrupt)\n    client< 2 {}\n",
            "    client< 2 {}\n    agent< (signal to interrupt)\n",
        ),
    ] {
        let script = SCRIPT.replacen(right, wrong, 1);
        assert_ne!(script, SCRIPT, "{right} is in the script");
        let found = check("wrong", &script).expect_err("it is wrong");
        assert_eq!(found.played, SCRIPT, "what is written in its place is what comes");
        let line = right.trim().lines().next().expect("a line");
        let shown = found.difference;
        assert!(shown.contains("wrong, as it should be") && shown.contains(line), "{shown}");
        let (fewer, more) = (shown.matches("\n-").count(), shown.matches("\n+").count());
        assert!(fewer + more > 0, "{shown}");
    }
}

#[test]
#[should_panic(expected = "odd, line 2: no such line: clientt")]
fn a_line_that_is_none_fails() {
    let _ = check("odd", "session> codex-exec\nclientt {}\n");
}

#[test]
#[should_panic(expected = "nobody is there for agent> {}")]
fn a_line_without_a_session_fails() {
    let _ = check("odd", "agent> {}\n");
}

#[test]
#[should_panic(expected = "turnStartd")]
fn an_event_that_is_none_fails() {
    let _ = check("odd", "front> board\nlog> turnStartd {}\n");
}
