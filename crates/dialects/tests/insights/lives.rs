//! A session that ends, goes on, cannot be read or refuses: nothing that is said to it is lost.

use agentwire_dialects::front::Ask;
use agentwire_protocol::{Command, ErrorCode};
use serde_json::json;

use crate::page::{Page, SESSION};

fn input(page: &mut Page, text: &str) {
    page.say("user.input", json!({ "session_id": SESSION, "agent_id": null, "text": text }));
}

fn resumed(page: &mut Page) -> String {
    let Ask::Start(new) = page.start() else { panic!("no start") };
    assert_eq!(new.resume.as_ref().map(|id| id.as_str()), Some(SESSION));
    new.prompt.expect("a prompt").text
}

fn prompted(page: &mut Page) -> String {
    match page.command() {
        (_, Command::Prompt(prompt)) => prompt.text,
        (_, command) => panic!("{command:?}"),
    }
}

#[test]
fn a_session_that_is_over_goes_on_with_the_next_input() {
    let mut page = Page::running();
    page.event(json!({ "type": "sessionEnded", "reason": "failed", "error": "code 3" }));
    // Its turn never began: it is over all the same.
    assert_eq!(page.types(), ["error", "agent.status", "session.completed"]);
    page.end();
    for text in ["one", "two"] {
        input(&mut page, text);
    }
    assert_eq!(resumed(&mut page), "one");
    assert_eq!(prompted(&mut page), "two");
    assert!(page.followed);
    page.is_quiet();
}

/// The end is heard of before the last events are shown: they are shown first.
#[test]
fn an_input_that_comes_too_late_waits_for_the_last_events() {
    let mut page = Page::running();
    page.event(json!({ "type": "turnStarted", "turnNumber": 1 }));
    page.said();
    let inputs = ["one", "two", "three"].map(|text| {
        input(&mut page, text);
        page.command().0
    });
    page.refuse(inputs[0], ErrorCode::Conflict);
    page.refuse(inputs[1], ErrorCode::SessionNotFound);
    page.is_quiet();
    page.event(json!({ "type": "textChunk", "content": "last", "isComplete": true }));
    page.event(json!({ "type": "sessionEnded", "reason": "completed" }));
    assert_eq!(page.types(), ["agent.output", "agent.status", "session.completed"]);
    let shown = page.seq;
    page.end();
    // One that is refused while the session is being resumed waits as well.
    page.refuse(inputs[2], ErrorCode::Conflict);
    input(&mut page, "four");
    assert_eq!(resumed(&mut page), "one");
    assert_eq!(page.followed_after, shown);
    for text in ["two", "three", "four"] {
        assert_eq!(prompted(&mut page), text);
    }
    page.is_quiet();
}

#[test]
fn what_waits_for_a_session_that_cannot_be_resumed_is_told() {
    let mut page = Page::running();
    page.end();
    for text in ["one", "two", "three"] {
        input(&mut page, text);
    }
    let call = page.ask().0;
    page.refuse(call, ErrorCode::AgentUnavailable);
    assert_eq!(page.types(), ["error", "error", "error"]);
    input(&mut page, "again");
    assert_eq!(resumed(&mut page), "again");
}

#[test]
fn an_interrupt_reaches_what_is_being_resumed() {
    let mut page = Page::running();
    page.say("session.interrupt", json!({ "session_id": SESSION }));
    assert_eq!(page.command().1, Command::Interrupt { cancel_queued: false });
    page.end();
    page.say("session.interrupt", json!({ "session_id": SESSION }));
    page.is_quiet();
    input(&mut page, "one");
    page.say("session.interrupt", json!({ "session_id": SESSION }));
    input(&mut page, "two");
    assert_eq!(resumed(&mut page), "one");
    assert_eq!(page.command().1, Command::Interrupt { cancel_queued: false });
    assert_eq!(prompted(&mut page), "two");
    page.is_quiet();
}

#[test]
fn one_that_is_killed_while_it_is_resumed_is_stopped() {
    let mut page = Page::running();
    page.end();
    input(&mut page, "one");
    page.say("session.kill", json!({ "session_id": SESSION }));
    let (resume, _) = page.ask();
    let (stop, command) = page.command();
    assert_eq!(command, Command::Stop);
    page.refuse(stop, ErrorCode::SessionNotFound);
    page.started(resume);
    assert_eq!(page.command().1, Command::Stop);
    page.is_quiet();
}

#[test]
fn a_session_that_cannot_be_read_is_told_and_read_again_with_the_next_input() {
    let mut page = Page::running();
    page.event(json!({ "type": "turnStarted", "turnNumber": 1 }));
    page.said();
    let shown = page.seq;
    page.lose();
    let said = page.said();
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(
        said[0]["payload"],
        json!({ "session_id": SESSION, "agent_id": null,
        "message": "the disk is gone", "code": "HANDLER_ERROR" })
    );
    assert!(!page.followed);
    input(&mut page, "are you there?");
    assert!(page.followed);
    assert_eq!(page.followed_after, shown);
    assert_eq!(prompted(&mut page), "are you there?");
    page.is_quiet();
}

/// What is refused has the code of what was wanted, whoever refuses it and why.
#[test]
fn refusals_have_the_code_of_what_was_wanted() {
    use ErrorCode::*;
    for code in [Forbidden, Internal, InvalidMessage, AgentUnavailable, Overloaded, StorageFull] {
        let mut page = Page::new();
        page.say("session.create", json!({ "prompt": "x" }));
        let call = page.ask().0;
        page.refuse(call, code);
        assert_eq!(page.error(), "SESSION_CREATE_FAILED", "{code:?}");
        let mut page = Page::running();
        let named = json!({ "session_id": SESSION });
        let mode = json!({ "session_id": SESSION, "permission_mode": "plan" });
        page.event(json!({ "type": "requestRaised", "requestId": "r", "kind": "permission",
            "inputDigest": "d", "toolName": "Bash", "input": {} }));
        page.pause();
        page.said();
        let permission = json!({ "session_id": SESSION, "permission_id": "r", "approved": true });
        let text = json!({ "session_id": SESSION, "text": "x" });
        for (kind, payload, wanted) in [
            ("user.input", text, "INPUT_FAILED"),
            ("session.interrupt", named.clone(), "INTERRUPT_FAILED"),
            ("permission_mode.change", mode, "PERMISSION_MODE_CHANGE_FAILED"),
            ("permission.response", permission, "PERMISSION_RESPONSE_FAILED"),
            ("session.kill", named, "HANDLER_ERROR"),
        ] {
            page.say(kind, payload);
            let call = page.command().0;
            page.refuse(call, code);
            assert_eq!(page.error(), wanted, "{kind}: {code:?}");
        }
    }
}

/// An answer that is not taken can be given again, as long as it is waited for.
#[test]
fn an_answer_that_is_refused_may_be_given_again() {
    let mut page = Page::running();
    page.event(json!({ "type": "requestRaised", "requestId": "p", "kind": "permission",
        "inputDigest": "d", "toolName": "Bash", "input": {} }));
    page.event(json!({ "type": "requestRaised", "requestId": "q", "kind": "question",
        "inputDigest": "d", "questions": [{ "question": "A?" }, { "question": "B?" }] }));
    page.pause();
    page.said();
    let permission = json!({ "session_id": SESSION, "permission_id": "p", "approved": true });
    for text in ["a", "b"] {
        input(&mut page, text);
    }
    for code in [ErrorCode::Overloaded, ErrorCode::RequestSettled] {
        page.say("permission.response", permission.clone());
        let (answers, command) = page.command();
        assert!(matches!(command, Command::Settle(_)), "{command:?}");
        let call = page.command().0;
        page.said();
        page.refuse(answers, code);
        assert_eq!(page.error(), "INPUT_FAILED");
        page.refuse(call, code);
        assert_eq!(page.error(), "PERMISSION_RESPONSE_FAILED");
        // Only the answer that was the last is missing.
        input(&mut page, "again");
    }
    let Command::Settle(settlement) = page.command().1 else { panic!("no answer") };
    let answers = settlement.answers.expect("answers");
    let told: Vec<&str> = answers.values().map(|answer| answer.get()).collect();
    assert_eq!(told, ["\"a\"", "\"again\""]);
    for id in ["p", "q"] {
        page.event(json!({ "type": "requestSettled", "requestId": id, "outcome": "allowed",
            "by": "client" }));
    }
    page.said();
    page.say("permission.response", permission);
    assert_eq!(page.error(), "PERMISSION_RESPONSE_FAILED");
    input(&mut page, "a prompt");
    assert_eq!(prompted(&mut page), "a prompt");
}

#[test]
fn a_session_that_somebody_else_resumes_goes_on_for_its_page() {
    let mut page = Page::running();
    page.event(json!({ "type": "sessionEnded", "reason": "completed" }));
    page.said();
    page.end();
    assert_eq!(page.awaited, Some(page.seq));
    page.event(json!({ "type": "turnStarted", "turnNumber": 1 }));
    page.event(json!({ "type": "textChunk", "content": "theirs", "isComplete": true }));
    assert_eq!(page.types(), ["agent.status", "agent.output"]);
    input(&mut page, "mine");
    assert_eq!(prompted(&mut page), "mine");
    page.is_quiet();
}

/// Who comes second with a resume goes on with what the first began.
#[test]
fn a_session_that_runs_already_takes_what_was_to_resume_it() {
    let mut page = Page::running();
    page.event(json!({ "type": "sessionEnded", "reason": "completed" }));
    page.said();
    page.end();
    for text in ["one", "two"] {
        input(&mut page, text);
    }
    let (resume, _) = page.ask();
    page.refuse(resume, ErrorCode::Conflict);
    assert_eq!((page.followed, page.followed_after), (true, page.seq));
    let (one, _) = page.command();
    assert_eq!(prompted(&mut page), "two");
    page.is_quiet();
    // It does not run after all: that is tried once, and then told.
    page.refuse(one, ErrorCode::SessionNotFound);
    page.is_quiet();
    page.end();
    let (resume, _) = page.ask();
    page.refuse(resume, ErrorCode::Conflict);
    assert_eq!(page.error(), "INPUT_FAILED");
    page.is_quiet();
}

#[test]
fn a_session_that_is_not_ended_after_all_is_still_there() {
    let mut page = Page::running();
    page.say("session.kill", json!({ "session_id": SESSION }));
    assert!(!page.followed);
    input(&mut page, "x");
    assert_eq!(page.error(), "SESSION_NOT_FOUND");
    let (stop, _) = page.command();
    page.refuse(stop, ErrorCode::Forbidden);
    assert_eq!(page.error(), "HANDLER_ERROR");
    assert!(page.followed);
    input(&mut page, "y");
    assert_eq!(prompted(&mut page), "y");
    page.say("session.kill", json!({ "session_id": SESSION }));
    let (stop, _) = page.command();
    page.done(stop);
    input(&mut page, "x");
    // It may be one of an earlier connection: the gateway knows that it was killed.
    let (find, _) = page.ask();
    page.refuse(find, ErrorCode::SessionNotFound);
    assert_eq!(page.error(), "SESSION_NOT_FOUND");
}

#[test]
fn an_agent_that_dies_is_told_of_once() {
    let mut page = Page::running();
    page.event(json!({ "type": "turnStarted", "turnNumber": 1 }));
    page.said();
    page.event(json!({ "type": "turnFailed", "turnNumber": 1, "reason": "died",
        "error": "the agent died" }));
    assert_eq!(page.types(), ["error", "agent.status", "session.completed"]);
    page.event(json!({ "type": "sessionEnded", "reason": "failed", "error": "code 3" }));
    page.is_quiet();
    page.end();
    input(&mut page, "again");
    resumed(&mut page);
    page.event(json!({ "type": "sessionEnded", "reason": "failed", "error": "code 4" }));
    assert_eq!(page.types(), ["error", "session.completed"]);
}

#[test]
fn no_more_sessions_run_than_can_be_watched() {
    let mut page = Page::running();
    for _ in 1..agentwire_dialects::front::WATCHED {
        page.say("session.create", json!({ "prompt": "x" }));
        page.ask();
    }
    page.say("session.create", json!({ "prompt": "x" }));
    assert_eq!(page.error(), "SESSION_CREATE_FAILED");
    page.is_quiet();
    page.end();
    page.say("session.create", json!({ "prompt": "x" }));
    page.ask();
    input(&mut page, "x");
    assert_eq!(page.error(), "INPUT_FAILED");
    page.is_quiet();
}
