//! What waits for the agent, and how long the agent itself waits.

use super::*;

fn prompt(text: &str) -> Command {
    Command::Prompt(Prompt::text(text.to_owned()))
}

fn waiting(trust_gate: &TrustGate) -> Vec<u64> {
    trust_gate.waiting.iter().map(|(call, _)| call.0).collect()
}

fn found(path: &str, digest: Option<&str>) -> SurveyedFile {
    SurveyedFile {
        path: path.to_owned(),
        digest: digest.map(str::to_owned),
        runs: Vec::new(),
        link: None,
        note: None,
    }
}

fn survey_of(files: Vec<SurveyedFile>) -> Survey {
    Survey { files, left_out: None }
}

#[test]
fn an_agent_rests_until_its_time_and_no_longer() {
    let (start, second) = (Instant::now(), Duration::from_secs(1));
    let mut trust_gate = TrustGate::new(Wish::Ask, Some(second));
    // The time starts when the session is durable.
    assert!(!trust_gate.is_waiting() && !trust_gate.has_rested(start + second));
    trust_gate.rest = Rest::Until(start + second);
    assert!(trust_gate.is_waiting());
    assert!(!trust_gate.has_rested(start));
    assert_eq!(trust_gate.rests_until(), Some(start + second));
    assert!(trust_gate.has_rested(start + second));
    assert!(!trust_gate.is_waiting() && !trust_gate.has_rested(start + second), "only once");
    assert_eq!(TrustGate::new(Wish::Ask, None).rests_until(), None);
}

#[test]
fn what_waits_keeps_its_order_and_is_bounded_in_number() {
    let mut trust_gate = TrustGate::new(Wish::Ask, None);
    for call in 0..WAITING as u64 {
        trust_gate.queue(Call(call), Command::Stop).expect("room");
    }
    let error = trust_gate.queue(Call(0), Command::Stop).expect_err("no room");
    assert_eq!(error.code, ErrorCode::Overloaded);
    assert!(error.message.contains("next minute"), "{}", error.message);
    trust_gate.asked = Some(Survey::default());
    let error = trust_gate.queue(Call(0), Command::Stop).expect_err("no room");
    assert!(error.message.contains("trusted"), "{}", error.message);
    let calls: Vec<u64> = trust_gate.take_waiting().iter().map(|(call, _)| call.0).collect();
    assert_eq!(calls, (0..WAITING as u64).collect::<Vec<_>>());
    trust_gate.queue(Call(1), Command::Stop).expect("room again");
}

#[test]
fn what_waits_is_bounded_in_bytes() {
    let mut trust_gate = TrustGate::new(Wish::Ask, None);
    trust_gate.queue(Call(1), prompt("four")).expect("room");
    assert_eq!(trust_gate.bytes, 4);
    trust_gate.bytes = WAITING_BYTES - 3;
    let error = trust_gate.queue(Call(2), prompt("four")).expect_err("no room");
    assert_eq!(error.code, ErrorCode::Overloaded);
    trust_gate.queue(Call(3), prompt("one")).expect("room for this");
    assert_eq!(waiting(&trust_gate), [1, 3]);
    trust_gate.take_prompts();
    assert_eq!(trust_gate.bytes, 0, "released prompts take no room");
}

#[test]
fn prompts_leave_alone_and_other_commands_stay() {
    let mut trust_gate = TrustGate::new(Wish::Ask, None);
    assert!(!trust_gate.has_prompt());
    for (call, command) in [(1, Command::Stop), (2, prompt("a")), (3, Command::Stop)] {
        trust_gate.queue(Call(call), command).expect("room");
    }
    trust_gate.queue(Call(4), prompt("b")).expect("room");
    assert!(trust_gate.has_prompt());
    let texts: Vec<String> = trust_gate.take_prompts().into_iter().map(|it| it.text).collect();
    assert_eq!(texts, ["a", "b"]);
    assert_eq!(waiting(&trust_gate), [1, 3]);
    assert!(!trust_gate.has_prompt());
}

#[test]
fn a_prompt_that_waits_is_dropped_or_changed_alone() {
    let mut trust_gate = TrustGate::new(Wish::Ask, None);
    for (call, id) in [(1, "a"), (2, "b")] {
        let message_id = Some(id.to_owned());
        let prompt = Prompt { message_id, ..Prompt::text("four") };
        trust_gate.queue(Call(call), Command::Prompt(prompt)).expect("room");
    }
    trust_gate.queue(Call(3), Command::Stop).expect("room");
    assert_eq!(trust_gate.edit_prompt("b", "longer"), Ok(true));
    assert_eq!(trust_gate.edit_prompt("c", "longer"), Ok(false));
    assert_eq!(trust_gate.bytes, 10);
    assert!(trust_gate.drop_prompt("a") && !trust_gate.drop_prompt("a"));
    assert_eq!((trust_gate.bytes, waiting(&trust_gate)), (6, vec![2, 3]));
    trust_gate.bytes = WAITING_BYTES;
    let error = trust_gate.edit_prompt("b", "longest").expect_err("no room");
    assert_eq!(error.code, ErrorCode::Overloaded);
    let texts: Vec<&str> = trust_gate.prompts().map(|prompt| prompt.text.as_str()).collect();
    assert_eq!(texts, ["longer"]);
}

#[test]
fn files_that_changed_after_they_were_shown_are_not_the_same() {
    let shown = survey_of(vec![found("a", Some("1")), found("b", None)]);
    assert!(is_same(&shown, &survey_of(vec![found("a", Some("1")), found("b", None)])));
    for other in [
        vec![found("a", Some("2")), found("b", None)],
        vec![found("a", Some("1")), found("b", Some("1"))],
        vec![found("a", Some("1")), found("c", None)],
        vec![found("a", Some("1")), found("b", None), found("c", Some("1"))],
    ] {
        assert!(!is_same(&shown, &survey_of(other)));
    }
    // If all files have digests, a file that is gone runs nothing.
    let both = survey_of(vec![found("a", Some("1")), found("b", Some("1"))]);
    assert!(is_same(&both, &survey_of(vec![found("a", Some("1"))])));
}
