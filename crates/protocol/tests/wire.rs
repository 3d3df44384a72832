//! What is written can be read back, and what is read can be written again.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a test reads fixtures and fails by panicking"
)]

use agentwire_protocol::command::{Behavior, Remember};
use agentwire_protocol::event::{
    RequestKind, SessionEndReason, SessionEnded, TextChunk, ToolStarted, UsageReported,
};
use agentwire_protocol::{
    Answer, Command, CommandFrame, Configure, ErrorCode, Event, EventKind, Frame, GatewayError,
    Json, Lines, Native, NativeLine, OpenRequest, Profile, Settlement, Stream, Text,
};
use proptest::prelude::*;

fn event<'a>(kind: impl Into<EventKind<'a>>) -> Event<'a> {
    Event {
        id: "s-1".into(),
        session_id: "s".into(),
        seq: 1,
        timestamp: "2026-01-01T00:00:00.000Z".into(),
        kind: kind.into(),
        agent_id: Text::from("main"),
        parent_agent_id: None,
        native: Lines::default(),
    }
}

fn line(event: &Event<'_>) -> String {
    let mut line = Vec::new();
    event.write_line(&mut line).expect("an event can be written");
    String::from_utf8(line).expect("UTF-8")
}

#[test]
fn an_event_is_flat_and_in_the_words_of_the_specification() {
    let ended = event(SessionEnded { reason: SessionEndReason::Completed, error: None });
    assert_eq!(
        line(&ended),
        "{\"id\":\"s-1\",\"sessionId\":\"s\",\"seq\":1,\"timestamp\":\"2026-01-01T00:00:00.000Z\",\
         \"type\":\"sessionEnded\",\"reason\":\"completed\",\"agentId\":\"main\"}\n"
    );
}

#[test]
fn a_kind_of_a_newer_gateway_is_relayed_whole() {
    let new = r#"{"id":"e","sessionId":"s","seq":9,"timestamp":"t","type":"moonPhase","phase":{"a":[1e400,"\ud83d"]},"agentId":"main"}"#;
    let event = Event::from_json(new).expect("an event");
    assert_eq!((event.kind.name(), event.seq), ("moonPhase", 9));
    assert_eq!(line(&event).trim_end(), new);
    assert_eq!(serde_json::to_string(&event).expect("JSON"), new);
    assert_eq!(Profile::Core.show(event), None);
}

#[test]
fn a_value_of_a_newer_gateway_is_relayed_whole() {
    for fields in [
        r#""type":"sessionEnded","reason":"eclipsed""#,
        r#""type":"requestRaised","requestId":"r","kind":"riddle","inputDigest":"d""#,
    ] {
        let new = format!(
            r#"{{"id":"e","sessionId":"s","seq":9,"timestamp":"t",{fields},"agentId":"main"}}"#
        );
        let event = Event::from_json(&new).expect("an event");
        assert!(matches!(event.kind, EventKind::Unknown(_)));
        assert_eq!(line(&event).trim_end(), new);
    }
}

/// A request of an unknown kind still waits for an answer, and can be answered.
#[test]
fn a_request_of_a_newer_gateway_can_be_answered() {
    let new = r#"{"id":"e","sessionId":"s","seq":9,"timestamp":"t","type":"requestRaised","requestId":"r","kind":"riddle","inputDigest":"d","agentId":"main"}"#;
    let open = OpenRequest::of(&Event::from_json(new).expect("an event")).expect("it asks");
    assert_eq!((open.request.kind, &*open.request.request_id.decode()), (RequestKind::Other, "r"));
    let listed = r#"{"sessionId":"s","agentId":"main","raisedAt":"t","seq":9,"state":"handedOn","requestId":"r","kind":"riddle","inputDigest":"d"}"#;
    assert_eq!(serde_json::from_str::<OpenRequest>(listed).expect("a request"), open);
}

/// The native lines in docs/protocols/unified.md are valid.
#[test]
fn the_document_shows_native_lines() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocols/unified.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let blocks: Vec<&str> =
        text.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!blocks.is_empty());
    for line in blocks.iter().flat_map(|block| block.lines()) {
        let native: Native<'_> = serde_json::from_str(line).expect("a native line");
        assert_eq!(serde_json::to_string(&native).expect("JSON"), line);
    }
}

#[test]
fn error_codes_are_written_as_they_are_named() {
    for code in ErrorCode::ALL {
        assert_eq!(serde_json::to_string(&code).expect("JSON"), format!("\"{}\"", code.as_str()));
    }
}

#[test]
fn command_frames_are_read_by_name() {
    let read = |text| CommandFrame::from_json(text).map(|frame| frame.command);
    let interrupt = |cancel_queued| Ok(Command::Interrupt { cancel_queued });
    assert_eq!(read(r#"{"id":"c1","command":"interrupt"}"#), interrupt(false));
    assert_eq!(read(r#"{"command":"interrupt","cancelQueued":true}"#), interrupt(true));
    let change = |model| Ok(Command::Configure(Configure { model, ..Configure::default() }));
    assert_eq!(read(r#"{"command":"configure"}"#), change(None));
    assert_eq!(read(r#"{"command":"configure","model":null}"#), change(Some(None)));
    assert_eq!(read(r#"{"command":"configure","model":"m"}"#), change(Some(Some("m".into()))));
    assert_eq!(read(r#"{"id":7,"command":"attach","after":5}"#), Ok(Command::Attach { after: 5 }));
    let query = read(r#"{"command":"query","method":"setModel","args":["opus",{"a":1}]}"#);
    let args = vec![Json::trusted("\"opus\""), Json::trusted("{\"a\":1}")];
    assert_eq!(query, Ok(Command::Query { method: "setModel".into(), args }));
    let code = |text| CommandFrame::from_json(text).map_err(|refused| refused.error.code);
    let refused = CommandFrame::from_json(r#"{"id":[7],"command":"dance"}"#);
    assert_eq!(refused.map_err(|refused| refused.id), Err(Some(Json::trusted("[7]"))));
    assert_eq!(code("{"), Err(ErrorCode::InvalidJson));
    assert_eq!(code("{}"), Err(ErrorCode::InvalidMessage));
    assert_eq!(code(r#"{"command":"dance"}"#), Err(ErrorCode::UnknownMethod));
    assert_eq!(code(r#"{"command":"prompt"}"#), Err(ErrorCode::InvalidMessage));
}

#[test]
fn what_a_command_does_not_have_is_refused_by_name() {
    let start = |fields: &str| {
        format!(
            r#"{{"command":"start","agentType":"demo","prompt":"x","profile":"core",{fields}}}"#
        )
    };
    let cases = [
        (start(r#""permission_mode":"plan""#), "permission_mode"),
        (start(r#""config":{"blocked_tools":["Bash"]}"#), "config.blocked_tools"),
        (start(r#""config":{"modle":null}"#), "config.modle"),
        (start(r#""config":{"sandbox":{"enabeld":true}}"#), "config.sandbox.enabeld"),
        (start(r#""config":{"mcpServers":{"a":{"cmd":"x"}}}"#), "config.mcpServers.a.cmd"),
        (start(r#""config":{"hooks":{"Stop":[{"matchr":"x"}]}}"#), "config.hooks.Stop.matchr"),
        (start(r#""config":{"agentType":"codex"}"#), "config.agentType is codex"),
        (start(r#""config":{"maxTurns":0}"#), "maxTurns is 0"),
        (
            r#"{"command":"settle","requestId":"r","behavior":"allow","update_input":{}}"#
                .to_owned(),
            "`update_input`",
        ),
        (r#"{"command":"attach","from":1}"#.to_owned(), "`from`"),
        (r#"{"command":"prompt","prompt":"x","image":[]}"#.to_owned(), "`image`"),
        (r#"{"command":"settle","requestId":"r","behaviour":"deny"}"#.to_owned(), "`behaviour`"),
        (r#"{"command":"configure","mode":"plan"}"#.to_owned(), "`mode`"),
        (r#"{"command":"query","method":"m","arg":1}"#.to_owned(), "`arg`"),
        (r#"["c1","stop"]"#.to_owned(), "sequence"),
    ];
    for (frame, named) in cases {
        let error = CommandFrame::from_json(&frame).expect_err(&frame).error;
        assert_eq!(error.code, ErrorCode::InvalidMessage, "{frame}");
        assert!(error.message.contains(named), "{frame}: {}", error.message);
    }
    // Commands that stop and answers that deny are never refused for their form.
    for frame in [
        r#"{"command":"stop","now":true}"#,
        r#"{"command":"finish","now":true}"#,
        r#"{"command":"interrupt","cancelQueued":"maybe","now":true}"#,
        r#"{"command":"settle","requestId":"r","behavior":"deny","message":7,"why":"?"}"#,
    ] {
        let taken = CommandFrame::from_json(frame);
        assert!(taken.is_ok(), "{frame}: {taken:?}");
    }
    let taken = CommandFrame::from_json(&start(r#""id":null,"config":{"agentType":"demo"}"#));
    assert_eq!(taken.expect("a frame").id, Some(Json::trusted("null")));
}

#[test]
fn silence_never_allows() {
    let read =
        |text: &str| serde_json::from_str::<Settlement>(text).expect("a settlement").answer();
    let refused = read(r#"{"requestId":"r"}"#).map_err(|error: GatewayError| error.code);
    assert_eq!(refused, Err(ErrorCode::InvalidMessage));
    assert!(matches!(read(r#"{"requestId":"r","behavior":"allow"}"#), Ok(Answer::Allow { .. })));
    let denied = read(r#"{"requestId":"r","behavior":"deny","answers":{"a":"b"}}"#);
    assert!(matches!(denied, Ok(Answer::Deny { .. })));
    let allow = Settlement { remember: Some(Remember::Session), ..Settlement::allow("r") };
    assert!(matches!(allow.answer(), Ok(Answer::Allow { always: true, .. })));
    assert_eq!(allow.behavior, Some(Behavior::Allow));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Any text in any field, and any bytes as the agent's line, are read back unchanged. The fast writer
    /// writes the same as serde_json, except for the two line separators.
    #[test]
    fn any_text_and_any_line_come_back(
        text in any::<String>(),
        name in "\\PC*",
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        unterminated in any::<bool>(),
    ) {
        let native = match String::from_utf8(bytes.clone()) {
            Ok(text) => NativeLine::Text(text.into()),
            Err(_) => NativeLine::Bytes(bytes.clone().into()),
        };
        let native =
            [Native { dialect: name.as_str().into(), stream: Stream::Stdout, line: native, unterminated }];
        let mut kind = event(TextChunk { content: Text::from(text.as_str()), is_complete: true, block_id: None });
        kind.native = Lines::Lent(&native);
        let written = line(&kind);
        let splits = written.trim_end_matches('\n').contains(['\n', '\r', '\u{2028}', '\u{2029}']);
        prop_assert!(!splits);
        let read = Event::from_json(&written).expect("an event");
        prop_assert_eq!(&read, &kind);
        prop_assert_eq!(read.native[0].line.bytes(), bytes.as_slice());
        let by_serde = serde_json::to_string(&kind).expect("JSON");
        let by_serde = by_serde.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
        prop_assert_eq!(written.trim_end_matches('\n'), by_serde);
    }

    #[test]
    fn any_arguments_keep_their_text(key in any::<String>(), number in any::<f64>()) {
        prop_assume!(number.is_finite());
        let json = Json::of(&serde_json::json!({ key: [number, null, true] }));
        let tool = event(ToolStarted {
            tool_id: Text::from("t"),
            tool_name: Text::from("n"),
            arguments: Some(json.clone()),
            kind: Default::default(),
            title: None,
            server: None,
        });
        let read = Event::from_json(&line(&tool)).expect("an event");
        let EventKind::ToolStarted(read) = read.kind else { panic!("another kind") };
        prop_assert_eq!(read.arguments, Some(json));
    }

    /// Costs are exact to the last bit.
    #[test]
    fn any_number_comes_back(number in any::<f64>(), whole in any::<u64>()) {
        for number in [number, whole as f64] {
            prop_assume!(number.is_finite());
            let usage = event(UsageReported { total_cost_usd: Some(number), ..UsageReported::default() });
            prop_assert_eq!(Event::from_json(&line(&usage)).expect("an event"), usage);
        }
    }
}

/// The inquiries in the document can be read.
#[test]
fn the_inquiries_of_the_document_are_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocols/unified.md");
    let text = std::fs::read_to_string(path).unwrap();
    let block = text.split("```jsonl gateway\n").nth(1).and_then(|rest| rest.split("```").next());
    let names: Vec<&str> = block
        .unwrap()
        .lines()
        .map(|line| match Frame::from_json(line) {
            Ok(Frame::Inquiry(frame)) => frame.inquiry.name(),
            other => panic!("{line}: {other:?}"),
        })
        .collect();
    assert_eq!(
        names,
        ["list", "show", "requests", "label", "usage", "search", "detach", "watch", "unwatch"]
    );
}
