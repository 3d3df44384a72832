//! The configuration of a session: what changes it, what is stored, what a resume restores.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use agentwire_protocol::event::EventKind;
use agentwire_protocol::session::{HookMatcher, McpServer, SystemPrompt};
use agentwire_protocol::{
    AgentType, ApprovalMode, Command, Configure, ErrorCode, SessionConfig, SessionId,
};
use agentwire_sessions::{NewSession, SessionHandle};

use crate::gateway::{Gateway, Reader, prompt, stop};

async fn said(reader: &mut Reader) -> String {
    let end = reader.turn_end().await;
    let EventKind::TurnCompleted(turn) = end.kind else { panic!("{end:?}") };
    turn.result.expect("an answer").to_string()
}

/// Starts a session, reads its answer to the first prompt, stops it.
async fn answer(gateway: &Gateway, new: NewSession) -> (SessionId, String) {
    let before = match &new.resume {
        Some(id) if !new.fork => gateway.hub.summary(id).await.expect("a summary").last_seq,
        _ => 0,
    };
    let session = gateway.hub.start(new).await.expect("a session");
    let mut reader = gateway.reader(&session).await;
    reader.cursor = gateway.hub.events(session.id(), before).await.expect("a cursor");
    let said = said(&mut reader).await;
    stop(&session).await;
    (session.id().clone(), said)
}

fn asks(gateway: &Gateway, prompt: &str, config: SessionConfig) -> NewSession {
    let working_directory = gateway.config().working_directory;
    let new = gateway.session(AgentType::Demo, prompt);
    NewSession { config: SessionConfig { working_directory, ..config }, ..new }
}

fn again(id: &SessionId, prompt: &str, fork: bool, config: SessionConfig) -> NewSession {
    NewSession {
        prompt: Some(agentwire_protocol::Prompt::text(prompt)),
        resume: Some(id.clone()),
        fork,
        config,
        ..NewSession::of(AgentType::Demo)
    }
}

async fn configure(session: &SessionHandle, change: Configure) -> Result<(), ErrorCode> {
    let done = session.send(Command::Configure(change)).await;
    done.map(drop).map_err(|error| error.code)
}

/// A change that the agent refuses has no effect, now or later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_change_changes_nothing() {
    let gateway = Gateway::new().await;
    let session = gateway.start("/say hi").await;
    said(&mut gateway.reader(&session).await).await;
    let unknown = Configure { permission_mode: Some("yolo".to_owned()), ..Configure::default() };
    assert_eq!(configure(&session, unknown).await, Err(ErrorCode::Unsupported));
    let mut reader = gateway.reader(&session).await;
    prompt(&session, "/write file x").await;
    let request = reader.request().await;
    let deny = agentwire_protocol::Settlement::deny(request.as_str(), "no");
    session.send(Command::Settle(deny)).await.expect("accepted");
    stop(&session).await;
    let kept = gateway.hub.record(session.id()).await.expect("a record").config;
    assert_eq!(kept.permission_mode, None);
    let resumed = again(session.id(), "/say {mode}", false, SessionConfig::default());
    assert_eq!(answer(&gateway, resumed).await.1, "default");
}

/// `null` restores the model that the session started with, also for a resume.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_can_be_taken_back() {
    let gateway = Gateway::new().await;
    for first in [Some("mine".to_owned()), None] {
        let config = SessionConfig { model: first.clone(), ..SessionConfig::default() };
        let new = asks(&gateway, "/say {model}", config);
        let session = gateway.hub.start(new).await.expect("a session");
        let mut reader = gateway.reader(&session).await;
        let usual = said(&mut reader).await;
        for (model, expected) in [(Some("other".to_owned()), "other"), (None, &*usual)] {
            let change = Configure { model: Some(model), ..Configure::default() };
            configure(&session, change).await.expect("accepted");
            prompt(&session, "/say {model}").await;
            assert_eq!(said(&mut reader).await, expected);
        }
        assert_eq!(stop(&session).await.model, Some(usual.clone()));
        let kept = gateway.hub.record(session.id()).await.expect("a record").config;
        assert_eq!(kept.model, first);
        let resumed = again(session.id(), "/say {model}", false, SessionConfig::default());
        assert_eq!(answer(&gateway, resumed).await.1, usual);
    }
}

/// The mode that was requested last counts, whichever of the two options names it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resume_may_be_stricter() {
    let gateway = Gateway::new().await;
    let own = |mode: &str| SessionConfig {
        permission_mode: Some(mode.to_owned()),
        ..SessionConfig::default()
    };
    let ours = |mode| SessionConfig { approval_mode: Some(mode), ..SessionConfig::default() };
    for (before, after, expected) in [
        (own("acceptEdits"), ours(ApprovalMode::Ask), "default"),
        (ours(ApprovalMode::AutoEdit), own("default"), "default"),
        (own("plan"), SessionConfig::default(), "plan"),
        (own("plan"), ours(ApprovalMode::AutoEdit), "acceptEdits"),
    ] {
        let (id, _) = answer(&gateway, asks(&gateway, "/say {mode}", before)).await;
        for fork in [true, false] {
            let new = again(&id, "/say {mode}", fork, after.clone());
            assert_eq!(answer(&gateway, new).await.1, expected, "fork: {fork}");
        }
    }
}

/// A resume that brings the whole configuration keeps only the directory of the old one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_can_be_replaced_whole() {
    let gateway = Gateway::new().await;
    let config = SessionConfig {
        permission_mode: Some("acceptEdits".to_owned()),
        system_prompt: Some(SystemPrompt::Text("be odd".to_owned())),
        model: Some("mine".to_owned()),
        max_turns: Some(7),
        ..SessionConfig::default()
    };
    let words = "/say {model} {mode} {system} {cwd}";
    let (id, said) = answer(&gateway, asks(&gateway, words, config)).await;
    let (_, cwd) = said.split_once("mine acceptEdits be odd ").expect("as configured");
    for fork in [true, false] {
        let new = again(&id, words, fork, SessionConfig::default());
        let new = NewSession { replaces_config: true, ..new };
        let (id, said) = answer(&gateway, new).await;
        assert_eq!(said, format!("demo default  {cwd}"), "fork: {fork}");
        let kept = gateway.hub.record(&id).await.expect("a record").config;
        assert_eq!((kept.max_turns, kept.model), (None, None));
    }
}

/// Callbacks belong to the client that is gone. Secrets must not reach readers of the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_the_client_could_answer_is_not_kept() {
    let gateway = Gateway::new().await;
    let server = |kind: &str| McpServer {
        kind: Some(kind.to_owned()),
        url: Some("http://127.0.0.1:9/".to_owned()).filter(|_| kind == "http"),
        ..McpServer::default()
    };
    let hooks = vec![HookMatcher { callback_ids: vec!["h".to_owned()], ..HookMatcher::default() }];
    let config = SessionConfig {
        hooks: Some(BTreeMap::from([("PreToolUse".to_owned(), hooks)])),
        mcp_servers: Some(["sdk", "http"].map(|kind| (kind.to_owned(), server(kind))).into()),
        native_args: Some(vec!["--settings".to_owned(), "{\"secret\":1}".to_owned()]),
        approval_mode: Some(ApprovalMode::AutoAll),
        ..SessionConfig::default()
    };
    let (id, _) = answer(&gateway, asks(&gateway, "/say hi", config)).await;
    let kept = gateway.hub.record(&id).await.expect("a record").config;
    assert_eq!((&kept.hooks, &kept.native_args, &kept.native_options), (&None, &None, &None));
    let servers: Vec<_> = kept.mcp_servers.iter().flatten().map(|(name, _)| &**name).collect();
    assert_eq!(servers, ["http"]);
    let new = again(&id, "/bash echo alone\n/say {result}", false, SessionConfig::default());
    assert_eq!(answer(&gateway, new).await.1.trim(), "alone");
}
