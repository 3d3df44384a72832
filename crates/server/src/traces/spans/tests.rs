//! Spans of recorded agents, compared with goldens.

use std::fmt::Write as _;
use std::path::Path;

use agentwire_dialects::agent::Exit;
use agentwire_dialects::tape::{Action, Draft, Sink, Stamp, Tape};
use agentwire_protocol::event::SessionEndReason;
use agentwire_protocol::{Call, GatewayError, Json};

use super::*;

const ALL: TraceOptions = TraceOptions { sampled: 1 << 63, content: false };

/// Stamps events one millisecond apart.
struct Reader {
    translator: Translator,
    seq: u64,
    spans: Vec<Span>,
}

impl Reader {
    fn new(options: TraceOptions) -> Self {
        Self { translator: Translator::new(&options), seq: 0, spans: Vec::new() }
    }
}

impl Sink for Reader {
    fn event(&mut self, draft: Draft<'_>) {
        self.seq += 1;
        let id = format!("s-{}", self.seq);
        let timestamp = format!("2026-01-01T00:00:{:02}.{:03}Z", self.seq / 1000, self.seq % 1000);
        let stamp = Stamp { id: &id, session_id: "s", seq: self.seq, timestamp: &timestamp };
        draft.stamp(stamp, |event| {
            let mut line = Vec::new();
            event.write_line(&mut line).expect("an event can be written");
            if self.translator.wants(&line) {
                self.translator.event(&event, &mut |span| self.spans.push(span));
            }
        });
    }

    fn action(&mut self, _: Action) {}

    fn reply(&mut self, _: Call, _: Result<Json<'static>, GatewayError>) {}
}

fn read(case: &str, options: TraceOptions) -> Vec<Span> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/fixtures");
    let bytes = std::fs::read(fixtures.join(case).join("agent.jsonl")).expect("a recording");
    let name = case.split('/').next().expect("a dialect");
    let agent = match name {
        "claude" => AgentType::Claude,
        "codex" => AgentType::Codex,
        "gemini" => AgentType::Gemini,
        _ => AgentType::Acp,
    };
    let driver = match name {
        "codex" if case.contains("exec") => Some("exec"),
        "gemini" => Some("stream-json"),
        _ => None,
    };
    let dialect = agentwire_dialects::driver(agent, driver).expect("a driver");
    let mut reader = Reader::new(options);
    let mut tape = Tape::recording(dialect);
    tape.feed(&bytes, &mut reader);
    tape.end(Exit::Code(0), &mut reader);
    reader.spans
}

fn tree(spans: &[Span]) -> String {
    fn tell(span: &Span, spans: &[Span], depth: usize, out: &mut String) {
        let milliseconds = |time: u64| (time / 1_000_000) % 100_000;
        let indent = "  ".repeat(depth);
        let (start, end) = (milliseconds(span.start), milliseconds(span.end));
        let error = span.error.as_ref().map(|error| format!(" ERROR {error}"));
        writeln!(out, "{indent}{} {start}..{end}{}", span.name, error.unwrap_or_default())
            .expect("text");
        for (key, value) in &span.attributes {
            writeln!(out, "{indent}    {key} = {value:?}").expect("text");
        }
        for event in &span.events {
            let time = milliseconds(event.time);
            writeln!(out, "{indent}    @{time} {} {:?}", event.name, event.attributes)
                .expect("text");
        }
        let mut children: Vec<_> = spans.iter().filter(|it| it.parent == Some(span.id)).collect();
        children.sort_by_key(|child| child.start);
        for child in children {
            assert_eq!(child.trace, span.trace);
            tell(child, spans, depth + 1, out);
        }
    }
    let mut out = String::new();
    for root in spans.iter().filter(|span| span.parent.is_none()) {
        tell(root, spans, 0, &mut out);
    }
    out
}

#[test]
fn recorded_agents_become_traces() {
    for case in [
        "claude/edge-nested-subagents-three-deep",
        "claude/real-c1-bash-permission-allow",
        "claude/real-c3-bash-permission-deny",
        "claude/real-c13-bash-fails",
        "claude/real-d1-ask-user-question",
        "claude/real-e2-interrupt-mid-tool",
        "claude/real-l1-api-error-400",
        "codex/real-app-mcp-tool-call",
        "codex/real-exec-error-500",
        "acp/real-shell-allow-once",
        "gemini/real-think",
    ] {
        let name = case.replace('/', "-");
        insta::assert_snapshot!(name, tree(&read(case, ALL)));
    }
}

#[test]
fn content_stands_in_spans_only_if_it_is_wanted() {
    let case = "claude/real-c1-bash-permission-allow";
    let with = read(case, TraceOptions { content: true, ..ALL });
    insta::assert_snapshot!("with-content", tree(&with));
    let keys = |spans: &[Span]| -> Vec<&str> {
        spans.iter().flat_map(|span| &span.attributes).map(|(key, _)| *key).collect()
    };
    let said = [
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
    ];
    assert!(said.iter().any(|key| keys(&with).contains(key)));
    assert!(!said.iter().any(|key| keys(&read(case, ALL)).contains(key)));
}

/// In every recording, each span is closed once, its parent exists, and its id is unique.
#[test]
fn spans_are_whole_over_all_recordings() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/fixtures");
    let mut count = 0;
    for dialect in ["claude", "codex", "gemini", "acp"] {
        for case in std::fs::read_dir(fixtures.join(dialect)).expect("cases").flatten() {
            let case = format!("{dialect}/{}", case.file_name().to_string_lossy());
            let spans = read(&case, ALL);
            assert_eq!(spans, read(&case, ALL), "{case}");
            let ids: std::collections::HashSet<_> = spans.iter().map(|span| span.id).collect();
            assert_eq!(ids.len(), spans.len(), "{case}");
            for span in &spans {
                assert!(span.end >= span.start && span.cost() < 64 << 10, "{case}");
                // An error's message is content.
                let kind = span.attributes.iter().find(|(key, _)| *key == "error.type");
                let kind = kind.map(|(_, kind)| kind.clone());
                assert_eq!(span.error.clone().map(Value::Text), kind, "{case}: {span:?}");
                assert!(span.parent.is_none_or(|parent| ids.contains(&parent)), "{case}: {span:?}");
            }
            count += spans.len();
        }
    }
    assert!(count > 100, "only {count} spans");
}

#[test]
fn a_share_of_traces_is_made_whole_or_not_at_all() {
    let begun = |session: usize, sampled: u64| {
        let mut reader = Reader::new(TraceOptions { sampled, content: false });
        let kinds: [EventKind<'_>; 2] = [
            agentwire_protocol::event::TurnStarted {
                turn_number: 1,
                prompt: None,
                message_ids: Vec::new(),
                origin: Default::default(),
            }
            .into(),
            agentwire_protocol::event::SessionEnded {
                reason: SessionEndReason::Failed,
                error: None,
            }
            .into(),
        ];
        reader.seq = session as u64 * 10;
        for kind in kinds {
            let agent = agentwire_dialects::tape::Agent::main();
            reader.event(Draft { agent, kind, native: None });
        }
        reader.spans.len()
    };
    let half = (0..1000).map(|session| begun(session, 1 << 62)).sum::<usize>();
    assert!((350..650).contains(&half), "{half}");
    assert_eq!((0..50).map(|session| begun(session, 1 << 63)).sum::<usize>(), 50);
}
