//! What a request says in advance about its answers: whether an allow can change the call, or be
//! remembered.

use agentwire_protocol::command::Remember;
use agentwire_protocol::event::{EventKind, RequestOutcome};
use agentwire_protocol::{AgentType, ErrorCode, Json, SessionConfig, Settlement};
use serde_json::{Value, json};

use crate::harness::{ACP, CODEX, Session};

#[tokio::test]
async fn a_changed_input_that_the_agent_cannot_take_runs_nothing() {
    for agent in [CODEX, ACP] {
        let mut session = Session::start(agent, SessionConfig::default(), "ASK").await;
        let request = session.request().await;
        assert!(request.input_is_fixed, "{request:?}");
        let id = request.request_id.to_string();
        let allow = |input: &Value| Settlement {
            updated_input: Some(Json::of(input)),
            ..Settlement::allow(id.as_str())
        };
        let error = session.settle(allow(&json!({ "command": "ls" }))).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Unsupported);
        assert!(error.message.contains("updatedInput"), "{}", error.message);
        // It is still open, and nothing has run.
        assert_eq!(session.handle.summary().open_requests, 1);
        assert!(!session.heard().contains("accept") && !session.heard().contains("once"));
        // Returned as it was shown, it is not a change.
        let shown = request.input.as_ref().map(|input| input.read().unwrap());
        session.settle(allow(&shown.unwrap_or(Value::Null))).await.unwrap();
        let settled = session.settled(&id).await;
        assert_eq!((settled.outcome, settled.updated_input), (RequestOutcome::Allowed, None));
        session.completed().await;
        session.end().await;
    }
}

#[tokio::test]
async fn an_agent_that_takes_another_input_is_not_said_to_refuse_it() {
    let claude = (AgentType::Claude, include_str!("../hooks/claude.sh"));
    let mut session = Session::start(claude, SessionConfig::default(), "ASK").await;
    let is_fixed = session
        .until(|kind| match kind {
            EventKind::RequestRaised(request) => Some(request.input_is_fixed),
            EventKind::TurnCompleted(_) => Some(false),
            _ => None,
        })
        .await;
    assert!(!is_fixed);
    session.end().await;
}

/// A changed call that a rule may deny is not allowed, just like one that it denies.
#[tokio::test]
async fn a_changed_input_in_doubt_is_refused() {
    let asks = r#"        say '{"type":"control_request","request_id":"p1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"touch made"},"tool_use_id":"toolu_1"}}' ;;"#;
    let script = include_str!("../hooks/claude.sh");
    let lines = script.lines().map(|line| if line.contains("hook_callback") { asks } else { line });
    let script = lines.collect::<Vec<_>>().join("\n");
    let config = SessionConfig {
        blocked_tools: Some(vec!["Bash(rm:*)".to_owned()]),
        ..SessionConfig::default()
    };
    let mut session = Session::start((AgentType::Claude, &script), config, "ASK").await;
    let id = session.request().await.request_id.to_string();
    let allow = |input: &'static str| Settlement {
        updated_input: Some(Json::trusted(input)),
        ..Settlement::allow(id.as_str())
    };
    for (input, code) in [
        (r#"{"command":"rm x"}"#, ErrorCode::Forbidden),
        (r#"{"comm\u0061nd":"rm x"}"#, ErrorCode::Forbidden),
        (r#"{"command":["rm","x"]}"#, ErrorCode::Forbidden),
        (r#"{"command":["rm",1]}"#, ErrorCode::Forbidden),
        (r#"{"command":"$(echo r)m x"}"#, ErrorCode::Forbidden),
        (r#"{"command":"ls","stdin":"x"}"#, ErrorCode::Forbidden),
        (r"{}", ErrorCode::Forbidden),
        (r#"{"command":"ls","command":"rm x"}"#, ErrorCode::InvalidMessage),
        (r#"{"command":"ls","comm\u0061nd":"rm x"}"#, ErrorCode::InvalidMessage),
        (r#"{"command":"ls","description":"\ud800"}"#, ErrorCode::InvalidMessage),
    ] {
        let error = session.settle(allow(input)).await.unwrap_err();
        assert_eq!(error.code, code, "{input}: {}", error.message);
        assert_eq!(session.handle.summary().open_requests, 1, "{input}");
    }
    session.settle(allow(r#"{ "command": "touch other" }"#)).await.unwrap();
    assert_eq!(session.settled(&id).await.outcome, RequestOutcome::Allowed);
    session.completed().await;
    session.end().await;
}

#[tokio::test]
async fn a_request_says_whether_an_allow_can_be_kept() {
    // Codex gives a reason if it wants more than to run the command.
    let more = CODEX.1.to_owned();
    let plain = more.replace("\\\"reason\\\":\\\"why\\\",", "");
    let several = plain.replace("touch made", "touch made && ls");
    assert!(more != plain && plain != several);
    for (script, is_kept) in [(more, false), (plain, true), (several, false)] {
        let agent = (AgentType::Codex, script.as_str());
        let mut session = Session::start(agent, SessionConfig::default(), "ASK").await;
        let request = session.request().await;
        let id = request.request_id.to_string();
        let allow = Settlement::allow(id.as_str());
        let always = Settlement { remember: Some(Remember::Session), ..allow };
        session.settle(always).await.unwrap();
        let reason = session.settled(&id).await.reason.unwrap().to_string();
        assert_eq!(reason.starts_with("allowed for this session: "), is_kept, "{reason}");
        assert_eq!(!request.allow_is_once, is_kept, "{reason}");
        session.completed().await;
        session.end().await;
    }
}
