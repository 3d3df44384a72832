//! What a user may get wrong: the program, the key, the model, the network. Each is one clear error, with
//! `agentwire run` and over HTTP. Nothing hangs, and no service is called endlessly.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Place, pause};
use crate::talk::Talk;
use crate::trouble::{HangUp, Trouble, closed};

/// The most requests to the model's service before a program must have given up, with the few retries it is
/// set up with.
const FEW: usize = 24;

pub(crate) fn missing(place: &mut Place) {
    let program = Some(place.scripts().join("nothing"));
    let place = place.with(Trouble { program, ..Trouble::default() });
    let work = place.workspace();
    let said = said(&place, &work, &[], "[[say hello]]", 3);
    let variable = place.agent.variable;
    assert!(said.contains("is not available") && said.contains(variable), "{said}");
    let body = place.request(&work, "[[say hello]]", json!({}));
    let problem = place.ask("POST", "/v1/sessions", &body).expect_err("there is no program");
    assert_eq!(problem["code"], "agentUnavailable", "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|why| why.contains(variable)), "{problem}");
}

pub(crate) fn signed_out(place: &mut Place) {
    let place = place.with(Trouble { set_up: Some(place.agent.sign_out), ..Trouble::default() });
    // The service answers a request without a key like this.
    let advice = match place.agent.kind {
        "claude" => "ANTHROPIC_API_KEY",
        "codex" => "codex login",
        "gemini" => "GEMINI_API_KEY",
        _ => "sign in with the agent's own program",
    };
    fails(&place, "[[fail 401]]", &[advice]);
}

pub(crate) fn wrong_model(place: &mut Place) {
    const MODEL: &str = "no-such-model";
    let work = place.workspace();
    let before = place.models.requests().len();
    let output = place.run(&work, &["-m", MODEL], "[[say hello]]");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(1 | 3)), "{:?}: {text}", output.status);
    assert!(text.contains(MODEL), "{text}");
    one_error(&text, &["the turn failed"]);
    let mut talk = place.session(&work, "[[say hello]]", json!({ "model": MODEL }));
    failed(&mut talk, &[MODEL]);
    assert_few(place.models.requests().len() - before);
}

/// Nobody listens; or the server closes every connection.
pub(crate) fn no_network(place: &mut Place) {
    let nobody = place.with(Trouble { url: Some(closed()), ..Trouble::default() });
    let work = nobody.workspace();
    let text = said(&nobody, &work, &[], "[[say hello]]", 1);
    assert!(text.contains("the turn failed"), "{text}");
    let hang_up = HangUp::start();
    let other = place.with(Trouble { url: Some(hang_up.url.clone()), ..Trouble::default() });
    let mut talk = other.session(&other.workspace(), "[[say hello]]", json!({}));
    failed(&mut talk, &[]);
    let calls = hang_up.calls();
    assert!(calls > 0, "nobody called");
    assert_few(calls);
    talk.stop();
    assert!(hang_up.calls() <= calls + 2, "it is called again and again");
}

/// A program that retries for minutes reports each retry.
pub(crate) fn told(place: &mut Place) {
    let set_up = Some(place.agent.retry);
    let place = place.with(Trouble { url: Some(closed()), set_up, ..Trouble::default() });
    let mut talk = place.session(&place.workspace(), "[[say hello]]", json!({}));
    for _ in 0..2 {
        talk.until("word of a retry", |event| {
            event["type"] == "error" && event["willRetry"] == true
        });
    }
    place.stop_all();
}

/// It can be interrupted meanwhile.
pub(crate) fn retrying(place: &mut Place) {
    let hang_up = HangUp::start();
    let (url, set_up) = (Some(hang_up.url.clone()), Some(place.agent.retry));
    let place = place.with(Trouble { url, set_up, ..Trouble::default() });
    let work = place.workspace();
    let mut talk = place.session(&work, "[[say hello]]", json!({}));
    talk.next("turnStarted");
    let begun = Instant::now();
    while hang_up.calls() < 3 {
        assert!(begun.elapsed() < PATIENCE, "it does not try again: {}", talk.digest());
        pause();
    }
    talk.post("interrupt", &Value::Null);
    let end = talk.ended();
    assert_eq!(end["reason"], "interrupted", "{end}");
    talk.stop();
    place.assert_none_left(&work);
}

/// A program that only prints to stderr and exits.
pub(crate) fn crash(place: &mut Place) {
    let text = "echo 'looking for it' >&2\necho 'the flux file is not there' >&2\nexit 7";
    let place = place.with(Trouble::script(&place.scripts(), text));
    let words = ["exited with code 7 before it said anything", "the flux file is not there"];
    let end = fails_with(&place, "[[say hello]]", &words, 3);
    assert_eq!(end["errorType"], "startFailed", "{end}");
}

/// The real program with a setup it cannot start with.
pub(crate) fn broken(place: &mut Place) {
    let broken = place.agent.broken.expect("what breaks it");
    let (set_up, settings) = (Some(broken.set_up), broken.settings.map(str::to_owned));
    let place = place.with(Trouble { set_up, settings, ..Trouble::default() });
    fails_with(&place, "[[say hello]]", &[broken.says], 3);
    assert!(place.models.requests().is_empty(), "the model was asked");
}

pub(crate) fn silent(place: &mut Place) {
    let trouble = Trouble {
        settings: Some("[limits]\ncall_timeout = 2\n".to_owned()),
        ..Trouble::script(&place.scripts(), "echo 'warming up' >&2\nexec sleep 373")
    };
    let place = place.with(trouble);
    let words = ["said nothing for 2 s after its start", "warming up"];
    fails_with(&place, "[[say hello]]", &words, 3);
}

/// Fails both with `run` and over HTTP, with an error that contains these words.
fn fails(place: &Place, prompt: &str, words: &[&str]) {
    let work = place.workspace();
    let output = place.run(&work, &[], prompt);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(1 | 3)), "{:?}: {text}", output.status);
    one_error(&text, words);
    failed(&mut place.session(&work, prompt, json!({})), words);
    place.stop_all();
}

/// The same; `run` exits with this code. Returns the end of the turn.
fn fails_with(place: &Place, prompt: &str, words: &[&str], code: i32) -> Value {
    let work = place.workspace();
    let text = said(place, &work, &[], prompt, code);
    one_error(&text, words);
    let end = failed(&mut place.session(&work, prompt, json!({})), words);
    place.stop_all();
    end
}

/// The stderr of `agentwire run`, which must exit with this code.
fn said(place: &Place, work: &Path, more: &[&str], prompt: &str, code: i32) -> String {
    let output = place.run(work, more, prompt);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}");
    // An ACP agent may have sent the error as text.
    let is_empty = output.stdout.is_empty() || place.agent.kind == "acp";
    assert!(is_empty, "an error is not an answer: {output:?}");
    text
}

/// Each of the words appears in exactly one line.
fn one_error(text: &str, words: &[&str]) {
    for word in words {
        let lines = text.lines().filter(|line| line.contains(word)).count();
        assert_eq!(lines, 1, "{word:?} is in {lines} lines:\n{text}");
    }
}

/// The turn fails with an error that contains these words.
fn failed(talk: &mut Talk<'_>, words: &[&str]) -> Value {
    let end = talk.ended();
    assert_eq!(end["type"], "turnFailed", "{end}");
    let error = end["error"].as_str().unwrap_or_default();
    assert!(!error.is_empty() && words.iter().all(|word| error.contains(word)), "{end}");
    assert_ne!(end["reason"], "interrupted", "{end}");
    end
}

fn assert_few(asked: usize) {
    assert!(asked <= FEW, "the model's service was asked {asked} times");
}
