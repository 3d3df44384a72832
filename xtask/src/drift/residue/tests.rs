use agentwire_protocol::AgentType;
use serde_json::json;

use super::*;

/// The log of a session in which the agent wrote these lines.
fn observed(agent: AgentType, driver_name: &str, lines: &[&str]) -> Observed {
    let dialect = driver(agent, Some(driver_name)).expect("a driver");
    let log: String = lines
        .iter()
        .zip(1..)
        .map(|(line, seq)| {
            let line: &serde_json::value::RawValue = serde_json::from_str(line).expect("JSON");
            format!(
                "{{\"id\":\"e{seq}\",\"sessionId\":\"s\",\"seq\":{seq},\"timestamp\":\"2026-01-01T00:00:00Z\",\
                 \"type\":\"other\",\"agentId\":\"main\",\"native\":[{{\"dialect\":\"{}\",\"stream\":\"stdout\",\
                 \"json\":{line}}},{{\"dialect\":\"x\",\"stream\":\"stderr\",\"text\":\"a warning\"}}]}}\n",
                dialect.name()
            )
        })
        .collect();
    let mut observed = Observed::default();
    observed.read(dialect, &log).expect("a log");
    observed
}

const INIT: &str =
    r#"{"type":"init","timestamp":"2026-01-01T00:00:00Z","session_id":"a","model":"m"}"#;
const SAYS: &str = r#"{"type":"message","timestamp":"2026-01-01T00:00:00Z","role":"assistant","content":"Hi","delta":true}"#;

#[test]
fn an_invented_message_and_an_invented_field_are_new() {
    let known = observed(AgentType::Gemini, "stream-json", &[INIT, SAYS]).residue;
    let same = observed(AgentType::Gemini, "stream-json", &[INIT, SAYS, SAYS]);
    assert_eq!(same.residue.beyond(&known), Residue::default());

    let field = SAYS.replace("\"delta\"", "\"mood\":{\"joy\":0.5},\"delta\"");
    let message = r#"{"type":"horoscope","timestamp":"2026-01-01T00:00:00Z","sign":"leo"}"#;
    let found = observed(AgentType::Gemini, "stream-json", &[INIT, &field, message]);
    let new = found.residue.beyond(&known);
    assert_eq!(new.messages, ["horoscope".to_owned()].into());
    // The fields of an unknown message are not listed one by one.
    assert_eq!(new.fields, ["message mood".to_owned()].into());
    assert_eq!(found.examples["horoscope"], message);
}

#[test]
fn a_new_kind_of_a_known_message_is_new() {
    let init =
        r#"{"type":"system","subtype":"init","session_id":"a","tools":[],"model":"m","cwd":"/"}"#;
    let weather = r#"{"type":"system","subtype":"weather","session_id":"a","sky":"blue"}"#;
    let known = observed(AgentType::Claude, "stream-json", &[init]).residue;
    let found = observed(AgentType::Claude, "stream-json", &[init, weather]).residue.beyond(&known);
    assert_eq!(found.messages, ["system/weather".to_owned()].into());

    // A field that is known in one kind of message is new in another.
    let update = |kind: &str, more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"a","update":{{"sessionUpdate":"{kind}","content":{{"type":"text","text":"Hi"}}{more}}}}}}}"#
        )
    };
    let (speech, thought) = ("agent_message_chunk", "agent_thought_chunk");
    let before = [update(speech, r#","aside":1"#), update(thought, "")];
    let after = [update(speech, r#","aside":1"#), update(thought, r#","aside":1"#)];
    let read = |lines: &[String; 2]| {
        observed(AgentType::Acp, "acp", &lines.each_ref().map(String::as_str)).residue
    };
    let new = read(&after).beyond(&read(&before));
    let expected = format!("session/update/{thought} params.update.aside");
    assert_eq!((new.messages.len(), new.fields), (0, [expected].into()));
}

#[test]
fn names_of_things_are_ignored() {
    assert_eq!(without_names("modelUsage.claude-opus-4-5.webSearches"), "modelUsage.*.webSearches");
    assert_eq!(without_names("stats.models.gemini-2.5-pro.tokens"), "stats.models.*.tokens");
    assert_eq!(without_names("items[].id"), "items[].id");
    assert_eq!(name(&json!({ "id": 1, "result": {} })), "reply");
    assert_eq!(name(&json!({ "id": 1, "error": {} })), "reply/error");
    assert_eq!(name(&json!({ "type": "two words", "subtype": "x" })), "two_words/x");
}

/// A message that is only logged may gain fields, such as a reply that is never read.
#[test]
fn a_new_field_of_a_logged_message_is_new() {
    let kept = |more: &str| {
        let line =
            format!(r#"{{"type":"horoscope","timestamp":"2026","sign":{{"name":"leo"{more}}}}}"#);
        observed(AgentType::Gemini, "stream-json", &[INIT, &line]).residue
    };
    let new = kept(r#","luck":{"money":true},"none":null"#).beyond(&kept(""));
    assert_eq!((new.messages.len(), new.fields), (0, ["horoscope sign.luck".to_owned()].into()));
}
