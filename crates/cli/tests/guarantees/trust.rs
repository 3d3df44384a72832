//! A project's own files make an agent run something only if somebody trusts them.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use agentwire_protocol::event::{
    EventKind, RequestKind, RequestOutcome, RequestRaised, RequestSettled, SettledBy, Status,
    TurnFailure,
};
use agentwire_protocol::{
    AgentType, Command, Configure, ErrorCode, Event, SessionConfig, SessionState, Settlement,
};
use agentwire_sessions::settings::{AgentCommand, Timing};
use agentwire_sessions::trust::{Ledger, TrustPolicy};
use agentwire_sessions::{NewSession, SessionHandle, Settings};

use crate::gateway::{Gateway, Reader, prompt, script, stop};
use crate::shared::AGENTWIRE;

const HOOK: &str =
    r#"{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"sh tools/go.sh"}]}]}}"#;

/// What Codex prints in a turn.
const TURN: &str = "echo '{\"type\":\"thread.started\",\"thread_id\":\"01234567-89ab-cdef-0123-456789abcdef\"}'\n\
    echo '{\"type\":\"turn.started\"}'\n\
    echo '{\"type\":\"item.completed\",\"item\":{\"id\":\"item_0\",\"type\":\"agent_message\",\"text\":\"hi\"}}'\n\
    echo '{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1,\"cached_input_tokens\":0,\"output_tokens\":1}}'\n";

/// A gateway whose agents log their arguments.
async fn gateway(change: impl FnOnce(&mut Settings)) -> Gateway {
    Gateway::with(|settings| {
        let parent = settings.data_dir.parent().expect("a directory").to_path_buf();
        let log = parent.join("argv.log");
        let note = format!("#!/bin/sh\necho \"$*\" >> {}\n", log.display());
        // The demo agent does not know this flag.
        let claude = format!(
            "{note}for word do shift; [ \"$word\" = --strict-mcp-config ] || set -- \"$@\" \"$word\"; \
             done\nexec {AGENTWIRE} demo-agent --state-dir={}/demo \"$@\"\n",
            parent.display()
        );
        let silent = format!("{note}cat > /dev/null\n{TURN}");
        for (agent, text) in [("claude", &claude), ("codex", &silent), ("gemini", &silent)] {
            let program = Some(script(&parent, agent, text));
            settings.agents.insert(agent, AgentCommand { program, ..AgentCommand::default() });
        }
        change(settings);
    })
    .await
}

struct Project<'g> {
    gateway: &'g Gateway,
}

impl Project<'_> {
    fn directory(&self) -> PathBuf {
        let directory = self.gateway.config().working_directory.expect("a directory");
        PathBuf::from(directory).canonicalize().expect("a directory")
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.directory().join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    /// The arguments of all starts so far.
    fn starts(&self) -> Vec<String> {
        let log = fs::read_to_string(self.gateway.home.path("argv.log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    async fn start(
        &self,
        agent: AgentType,
        text: &str,
        change: impl FnOnce(&mut SessionConfig),
    ) -> (SessionHandle, Reader) {
        let mut new = self.gateway.session(agent, text);
        change(&mut new.config);
        self.begin(new).await
    }

    /// Starts or resumes a session. Returns it and a reader of its new events.
    async fn begin(&self, new: NewSession) -> (SessionHandle, Reader) {
        let before = match &new.resume {
            Some(id) => self.gateway.hub.summary(id).await.expect("a session").last_seq,
            None => 0,
        };
        let session = self.gateway.hub.start(new).await.expect("a session");
        let mut reader = self.gateway.reader(&session).await;
        for _ in 0..before {
            reader.next().await.expect("an earlier event");
        }
        (session, reader)
    }

    fn remembers(&self) -> usize {
        Ledger::new(&self.gateway.home.path("data")).entries().len()
    }
}

async fn raised(reader: &mut Reader) -> RequestRaised<'static> {
    let event = reader.until(|kind| matches!(kind, EventKind::RequestRaised(_))).await;
    let EventKind::RequestRaised(request) = event.kind else { unreachable!() };
    *request
}

async fn answer(session: &SessionHandle, request: &RequestRaised<'_>, allow: bool) {
    let id = request.request_id.to_string();
    let answer = if allow { Settlement::allow(id) } else { Settlement::deny(id, "no") };
    session.send(Command::Settle(answer)).await.expect("the answer is accepted");
}

async fn completed(reader: &mut Reader) {
    let end = reader.turn_end().await;
    assert!(matches!(end.kind, EventKind::TurnCompleted(_)), "{end:?}");
}

fn settled(events: &[Event<'static>]) -> Vec<RequestSettled<'static>> {
    let settled = events.iter().filter_map(|event| match &event.kind {
        EventKind::RequestSettled(settled) => Some(settled.clone()),
        _ => None,
    });
    settled.collect()
}

fn warnings(events: &[Event<'static>]) -> Vec<String> {
    let warnings = events.iter().filter_map(|event| match &event.kind {
        EventKind::StatusChanged(status) if status.status == Status::Warning => {
            status.message.as_ref().map(ToString::to_string)
        }
        _ => None,
    });
    warnings.filter(|text| text.contains("not trusted")).collect()
}

fn has_project(start: &str) -> bool {
    !start.contains("--setting-sources=user") && !start.contains("--strict-mcp-config")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_project_is_trusted_once_as_it_is() {
    let gateway = gateway(|_| {}).await;
    let project = Project { gateway: &gateway };
    project.put(".claude/settings.json", HOOK);
    project.put("tools/go.sh", "true");
    let (session, mut reader) = project.start(AgentType::Claude, "/say {turns}", |_| {}).await;
    let request = raised(&mut reader).await;
    assert_eq!(request.kind, RequestKind::Permission);
    assert_eq!(
        request.tool_name.as_ref().map(ToString::to_string).as_deref(),
        Some("TrustDirectory")
    );
    let input: serde_json::Value = request.input.as_ref().expect("an input").read().expect("JSON");
    assert_eq!(input["directory"], *project.directory().to_string_lossy());
    assert_eq!(input["files"][0]["path"], ".claude/settings.json");
    assert_eq!(input["files"][0]["runs"][0], "hooks.SessionStart: sh tools/go.sh");
    assert_eq!(input["files"][0]["digest"].as_str().map(str::len), Some(64));
    assert_eq!(input["files"][1]["path"], "tools/go.sh");
    session.until(|summary| summary.state == SessionState::WaitingPermission).await;
    // The request is in the inbox, and nothing has started.
    let open = gateway.hub.open_requests(None).await.expect("requests");
    assert_eq!(open.len(), 1);
    assert!(project.starts().is_empty(), "{:?}", project.starts());
    answer(&session, &request, true).await;
    completed(&mut reader).await;
    stop(&session).await;
    assert_eq!(project.remembers(), 1);
    assert!(has_project(&project.starts()[0]), "{:?}", project.starts());

    // There is no further request, not even when the session is resumed.
    let mut resumed = gateway.session(AgentType::Claude, "/say {turns}");
    resumed.resume = Some(session.id().clone());
    for new in [gateway.session(AgentType::Claude, "/say again"), resumed.clone()] {
        let (session, mut reader) = project.begin(new).await;
        completed(&mut reader).await;
        stop(&session).await;
    }
    let events = gateway.events(&session).await;
    assert_eq!(settled(&events).len(), 1);

    // After a change of the file that the hook runs, there is a new request, also for a resumed session.
    project.put("tools/go.sh", "rm -r .");
    let before = project.starts().len();
    let (session, mut reader) = project.begin(resumed).await;
    let request = raised(&mut reader).await;
    assert_eq!(project.starts().len(), before);
    answer(&session, &request, false).await;
    completed(&mut reader).await;
    stop(&session).await;
    assert!(!has_project(project.starts().last().expect("a start")), "{:?}", project.starts());
    assert_eq!(warnings(&gateway.events(&session).await).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denial_and_silence_start_the_agent_without_project_settings() {
    let gateway = gateway(|settings| {
        settings.timing = Timing { request: Some(Duration::from_millis(300)), ..Timing::default() };
    })
    .await;
    let project = Project { gateway: &gateway };
    project.put(".mcp.json", r#"{"mcpServers":{"a":{"command":"c"}}}"#);
    // Nobody answers.
    let (session, mut reader) = project.start(AgentType::Claude, "/say one", |_| {}).await;
    completed(&mut reader).await;
    stop(&session).await;
    let events = gateway.events(&session).await;
    let settled = settled(&events);
    assert_eq!((settled[0].outcome, settled[0].by), (RequestOutcome::Denied, SettledBy::Gateway));
    assert_eq!(warnings(&events).len(), 1);
    // Nobody is left to ask.
    let (session, mut reader) = project.start(AgentType::Claude, "/say two", |_| {}).await;
    session.send(Command::Finish).await.expect("an answer");
    completed(&mut reader).await;
    session.ended().await;
    // The client says so at the start.
    let never = |config: &mut SessionConfig| config.trust = Some(false);
    let (session, mut reader) = project.start(AgentType::Claude, "/say three", never).await;
    completed(&mut reader).await;
    stop(&session).await;
    let events = gateway.events(&session).await;
    assert!(requests(&events) == 0 && warnings(&events).len() == 1);
    let starts = project.starts();
    assert_eq!(starts.len(), 3);
    for start in &starts {
        assert!(start.contains("--setting-sources=user"), "{start}");
        assert!(start.contains("--strict-mcp-config"), "{start}");
    }
    assert_eq!(project.remembers(), 0);
}

fn requests(events: &[Event<'static>]) -> usize {
    events.iter().filter(|event| matches!(event.kind, EventKind::RequestRaised(_))).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trust_can_be_given_at_the_start() {
    let gateway = gateway(|_| {}).await;
    let project = Project { gateway: &gateway };
    project.put(".claude/settings.json", HOOK);
    let sources = |names: &'static [&'static str]| {
        move |config: &mut SessionConfig| {
            config.setting_sources = Some(names.iter().map(|name| (*name).to_owned()).collect());
        }
    };
    for (names, remembered) in [(&[][..], 0), (&["user"], 0), (&["user", "project"], 0)] {
        let (session, mut reader) =
            project.start(AgentType::Claude, "/say hi", sources(names)).await;
        completed(&mut reader).await;
        stop(&session).await;
        assert_eq!(requests(&gateway.events(&session).await), 0, "{names:?}");
        let start = project.starts().pop().expect("a start");
        assert!(start.contains(&format!("--setting-sources={}", names.join(","))), "{start}");
        assert_eq!(project.remembers(), remembered);
    }
    let trust = |config: &mut SessionConfig| config.trust = Some(true);
    for change in [trust as fn(&mut SessionConfig), |_| {}] {
        let (session, mut reader) = project.start(AgentType::Claude, "/say hi", change).await;
        completed(&mut reader).await;
        stop(&session).await;
        assert_eq!(requests(&gateway.events(&session).await), 0);
        assert!(has_project(&project.starts().pop().expect("a start")));
        assert_eq!(project.remembers(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_trust_all_or_none() {
    for (policy, expected) in [(TrustPolicy::Always, true), (TrustPolicy::Never, false)] {
        let gateway = gateway(|settings| settings.defaults.trust = policy).await;
        let project = Project { gateway: &gateway };
        project.put(".claude/settings.local.json", HOOK);
        let (session, mut reader) = project.start(AgentType::Claude, "/say hi", |_| {}).await;
        completed(&mut reader).await;
        stop(&session).await;
        assert_eq!(requests(&gateway.events(&session).await), 0);
        assert_eq!(has_project(&project.starts()[0]), expected);
        assert_eq!(project.remembers(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_shown_is_what_is_trusted() {
    let gateway = gateway(|_| {}).await;
    let project = Project { gateway: &gateway };
    project.put(".claude/settings.json", HOOK);
    let (session, mut reader) = project.start(AgentType::Claude, "/say hi", |_| {}).await;
    let first = raised(&mut reader).await;
    project.put(".claude/settings.json", r#"{"apiKeyHelper":"evil"}"#);
    answer(&session, &first, true).await;
    let second = raised(&mut reader).await;
    assert_ne!(first.input_digest, second.input_digest);
    assert!(project.starts().is_empty());
    // An answer for the earlier input is refused.
    let stale = Settlement {
        input_digest: Some(first.input_digest.clone()),
        ..Settlement::allow(second.request_id.to_string())
    };
    let refused = session.send(Command::Settle(stale)).await.expect_err("another input");
    assert_eq!(refused.code, ErrorCode::Conflict);
    answer(&session, &second, true).await;
    completed(&mut reader).await;
    stop(&session).await;
    assert!(has_project(&project.starts()[0]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_wait_in_their_order() {
    let gateway = gateway(|_| {}).await;
    let project = Project { gateway: &gateway };
    project.put(".claude/settings.json", HOOK);
    let (session, mut reader) = project.start(AgentType::Claude, "", |_| {}).await;
    let request = raised(&mut reader).await;
    let change = Configure { model: Some(Some("special".to_owned())), ..Configure::default() };
    let changed = session.post(Command::Configure(change), None).expect("room");
    prompt(&session, "/say with {model}").await;
    answer(&session, &request, false).await;
    changed.await.reply.expect("a change");
    completed(&mut reader).await;
    assert_eq!(session.summary().model.as_deref(), Some("special"));
    stop(&session).await;
    let events = gateway.events(&session).await;
    let said: String = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::TextChunk(chunk) => Some(chunk.content.to_string()),
            _ => None,
        })
        .collect();
    assert!(said.contains("with special"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_and_a_stop_reach_a_session_that_waits() {
    let gateway = gateway(|_| {}).await;
    let project = Project { gateway: &gateway };
    project.put(".claude/settings.json", HOOK);
    let (session, mut reader) = project.start(AgentType::Claude, "/say one", |_| {}).await;
    raised(&mut reader).await;
    session.send(Command::Interrupt { cancel_queued: false }).await.expect("an interrupt");
    let end = reader.turn_end().await;
    let EventKind::TurnFailed(failed) = &end.kind else { panic!("{end:?}") };
    assert_eq!(failed.reason, TurnFailure::Interrupted);
    // The session continues without project settings.
    prompt(&session, "/say two").await;
    completed(&mut reader).await;
    stop(&session).await;
    assert!(!has_project(&project.starts()[0]));
    let (session, mut reader) = project.start(AgentType::Claude, "/say one", |_| {}).await;
    raised(&mut reader).await;
    let summary = stop(&session).await;
    assert_eq!(summary.state, SessionState::Ended);
    assert_eq!(project.starts().len(), 1, "nothing was started");
    let events = gateway.events(&session).await;
    assert_eq!(settled(&events).len(), 1);
    assert!(matches!(events.last().expect("an event").kind, EventKind::SessionEnded(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_cannot_do_without_project_settings_does_not_start() {
    let gateway = gateway(|_| {}).await;
    let project = Project { gateway: &gateway };
    let headless = |config: &mut SessionConfig| config.driver = Some("stream-json".to_owned());
    project.put(".env", "GEMINI_API_KEY=x");
    let (session, mut reader) = project.start(AgentType::Gemini, "hi", headless).await;
    let request = raised(&mut reader).await;
    assert!(request.message.as_ref().is_some_and(|text| text.decode().contains("does not start")));
    answer(&session, &request, false).await;
    let summary = session.ended().await;
    assert!(summary.error.as_ref().is_some_and(|text| text.contains("--trust")), "{summary:?}");
    assert!(project.starts().is_empty());
}

/// If each turn has its own process, files that appear between turns are not read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_change_between_turns_are_not_trusted() {
    let gateway = gateway(|_| {}).await;
    let project = Project { gateway: &gateway };
    let exec = |config: &mut SessionConfig| config.driver = Some("exec".to_owned());
    let (session, mut reader) = project.start(AgentType::Codex, "one", exec).await;
    completed(&mut reader).await;
    project.put(".codex/config.toml", "notify = ['evil']");
    prompt(&session, "two").await;
    completed(&mut reader).await;
    stop(&session).await;
    let starts = project.starts();
    assert!(!starts[0].contains("trust_level"), "{starts:?}");
    assert!(starts[1].contains("\"trust_level\" = \"untrusted\""), "{starts:?}");
    assert_eq!(warnings(&gateway.events(&session).await).len(), 1);
    let (session, mut reader) = project.start(AgentType::Codex, "one", exec).await;
    let request = raised(&mut reader).await;
    answer(&session, &request, true).await;
    completed(&mut reader).await;
    stop(&session).await;
    let starts = project.starts();
    assert!(starts[2].contains("\"trust_level\" = \"trusted\""), "{starts:?}");
}

/// A file without a digest can be trusted, but a later process cannot tell whether it has changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_cannot_be_compared_are_not_trusted_in_later_processes() {
    let gateway = gateway(|_| {}).await;
    let project = Project { gateway: &gateway };
    project.put(".codex/config.toml", "");
    let huge = project.directory().join(".codex/config.toml");
    fs::File::create(huge).and_then(|file| file.set_len(65 << 20)).expect("a file");
    let exec = |config: &mut SessionConfig| config.driver = Some("exec".to_owned());
    let (session, mut reader) = project.start(AgentType::Codex, "one", exec).await;
    let request = raised(&mut reader).await;
    answer(&session, &request, true).await;
    completed(&mut reader).await;
    project.put(".codex/config.toml", "notify = ['evil']");
    prompt(&session, "two").await;
    completed(&mut reader).await;
    stop(&session).await;
    let starts = project.starts();
    assert!(starts[1].contains("\"trust_level\" = \"untrusted\""), "{starts:?}");
    let warnings = warnings(&gateway.events(&session).await);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("cannot be read completely"), "{warnings:?}");
    assert_eq!(project.remembers(), 0);
}
