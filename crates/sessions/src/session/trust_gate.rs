//! Before the agent starts, it may have to wait, and a request asks whether to trust the project's files
//! that would make it run something, unless they are already trusted as they are. Until that is settled, no
//! process runs and commands wait.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use agentwire_dialects::named_driver;
use agentwire_protocol::event::{
    RequestKind, RequestRaised, SessionEndReason, Status, StatusChanged, TRUST_DIRECTORY,
    TurnFailure,
};
use agentwire_protocol::{
    AgentType, Answer, Call, Command, ErrorCode, GatewayError, Json, Prompt, Text,
};
use serde_json::json;

use tokio::time::Instant;

use super::accept_commands::weight;
use super::actor::Actor;
use super::callers::NOBODY;
use super::commands::taken;
use super::core::Effect;
use super::pending_prompt::{PendingPrompt, replace_text};
use super::pending_request::Asker;
use super::requests::allows;
use super::supervisor::Due;
use crate::slow_fs::access;
use crate::trust::{Ledger, Snapshot, Survey, SurveyedFile, Wish, survey};

const WAITING: usize = 1024;

const WAITING_BYTES: usize = 256 << 20;

/// How long reading or writing the remembered decisions may take.
const LOOK: Duration = Duration::from_secs(10);

/// Whether the project is trusted, and what waits for that decision.
pub(super) struct TrustGate {
    wish: Wish,
    rest: Rest,
    /// What the open request is about.
    asked: Option<Survey>,
    /// The answer, until it is acted on.
    answer: Option<bool>,
    /// The files that were trusted or missing when the session started.
    state: Option<Snapshot>,
    waiting: VecDeque<(Call, Command)>,
    bytes: usize,
}

/// Whether the agent must not start yet, although no request is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// For this long, counted from the start of the session.
    Due(Duration),
    Until(Instant),
    /// It may start.
    Over,
}

/// What follows from the files that were found.
enum Verdict {
    /// There is nothing to trust.
    Nothing,
    Trusted,
    /// Not trusted, for this reason.
    Distrusted(&'static str),
    /// A client must decide.
    Ask(Survey),
}

impl TrustGate {
    pub(super) fn new(wish: Wish, rest: Option<Duration>) -> Self {
        Self {
            wish,
            rest: rest.map_or(Rest::Over, Rest::Due),
            asked: None,
            answer: None,
            state: None,
            waiting: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Whether the agent waits for an answer or for its start time.
    pub(super) fn is_waiting(&self) -> bool {
        self.asked.is_some() || self.rests_until().is_some()
    }

    pub(super) fn rests_until(&self) -> Option<Instant> {
        match self.rest {
            Rest::Until(until) => Some(until),
            Rest::Due(_) | Rest::Over => None,
        }
    }

    /// Ends the rest if its time has passed. Returns whether it ended now.
    fn has_rested(&mut self, now: Instant) -> bool {
        let is_ended = self.rests_until().is_some_and(|until| until <= now);
        if is_ended {
            self.rest = Rest::Over;
        }
        is_ended
    }

    /// Holds a command until the agent starts, if there is room.
    fn queue(&mut self, call: Call, command: Command) -> Result<(), GatewayError> {
        let size = weight(&command);
        if self.waiting.len() >= WAITING || self.bytes + size > WAITING_BYTES {
            let message = match self.asked {
                Some(_) => {
                    "too many commands wait for the decision whether the directory is trusted"
                }
                None => "too many commands wait until the agent starts in the next minute",
            };
            return Err(GatewayError::new(ErrorCode::Overloaded, message));
        }
        self.bytes += size;
        self.waiting.push_back((call, command));
        Ok(())
    }

    /// Takes all waiting commands, in order.
    fn take_waiting(&mut self) -> VecDeque<(Call, Command)> {
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
    }

    /// Takes the waiting prompts; other commands stay.
    fn take_prompts(&mut self) -> Vec<Prompt> {
        let mut prompts = Vec::new();
        for (call, command) in self.take_waiting() {
            match command {
                Command::Prompt(prompt) => prompts.push(prompt),
                other => {
                    self.bytes += weight(&other);
                    self.waiting.push_back((call, other));
                }
            }
        }
        prompts
    }

    pub(super) fn prompts(&self) -> impl Iterator<Item = &Prompt> {
        self.waiting.iter().filter_map(|(_, command)| match command {
            Command::Prompt(prompt) => Some(prompt),
            _ => None,
        })
    }

    /// Drops a prompt that waits. Returns whether it did wait.
    pub(super) fn drop_prompt(&mut self, id: &str) -> bool {
        let is_it = |command: &Command| match command {
            Command::Prompt(prompt) => prompt.message_id.as_deref() == Some(id),
            _ => false,
        };
        let at = self.waiting.iter().position(|(_, command)| is_it(command));
        let dropped = at.and_then(|at| self.waiting.remove(at));
        if let Some((_, command)) = &dropped {
            self.bytes = self.bytes.saturating_sub(weight(command));
        }
        dropped.is_some()
    }

    pub(super) fn edit_prompt(&mut self, id: &str, text: &str) -> Result<bool, GatewayError> {
        for (_, command) in &mut self.waiting {
            if let Command::Prompt(prompt) = command
                && prompt.message_id.as_deref() == Some(id)
            {
                let bytes = self.bytes.saturating_sub(prompt.text.len()) + text.len();
                if bytes > WAITING_BYTES {
                    return Err(GatewayError::new(ErrorCode::Overloaded, "too many prompts wait"));
                }
                replace_text(prompt, text)?;
                self.bytes = bytes;
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn has_prompt(&self) -> bool {
        self.waiting.iter().any(|(_, command)| matches!(command, Command::Prompt(_)))
    }
}

impl Actor {
    /// Starts the agent or asks whether the project is trusted, but not before the start time.
    pub(super) async fn enter(&mut self) -> Result<(), GatewayError> {
        if let Rest::Due(rest) = self.trust_gate.rest {
            self.trust_gate.rest = Rest::Until(Instant::now() + rest);
            let agent = self.plan.agent.as_str();
            let seconds = rest.as_secs() + u64::from(rest.subsec_nanos() > 0);
            let message = format!(
                "{agent} cannot resume a session in the minute in which the session started; the agent \
                 starts in {seconds} s"
            );
            let status = StatusChanged::new(Status::Waiting).message(Text::from(message));
            self.core.emit(status.details(Json::of(&json!({ "seconds": seconds }))));
            return Ok(());
        }
        let verdict = self.judge(None).await;
        self.follow(verdict).await
    }

    /// The agent's start time has come.
    pub(super) fn end_rest(&mut self, now: Instant) {
        if self.trust_gate.has_rested(now) {
            self.supervisor.want(Due::Agent);
        }
    }

    /// The start time has come, or the request is answered and the answer is durable.
    pub(super) async fn start_agent_if_trusted(&mut self) {
        let asked = self.trust_gate.asked.take();
        let answer = self.trust_gate.answer.take().unwrap_or(false);
        if self.phase.is_ending() {
            return;
        }
        let verdict = match (answer, &asked) {
            (_, None) => self.judge(None).await,
            // The files may have changed before the answer came.
            (true, Some(asked)) => self.judge(Some(asked)).await,
            (false, Some(_)) => Verdict::Distrusted("its files were not trusted"),
        };
        if let Err(error) = self.follow(verdict).await {
            self.core.error(error.code.as_str(), error.message.clone());
            return self.end(SessionEndReason::Failed, Some(error.message));
        }
        if self.trust_gate.is_waiting() {
            return;
        }
        for (call, command) in self.trust_gate.take_waiting() {
            self.release(call, command);
        }
    }

    async fn follow(&mut self, verdict: Verdict) -> Result<(), GatewayError> {
        match verdict {
            // If there is nothing to leave out, even an agent that cannot leave it out may start.
            Verdict::Nothing => {
                let is_left_out = self.trust_gate.wish == Wish::Distrust
                    && self.plan.dialect.starts_without_project()
                    && !self.servers_need_trust();
                self.config.trust = is_left_out.then_some(false);
            }
            Verdict::Trusted => self.config.trust = Some(true),
            Verdict::Distrusted(reason) => self.distrust(reason)?,
            Verdict::Ask(found) => {
                self.request_trust(found);
                return Ok(());
            }
        }
        self.open().await?;
        self.core.raise_start(self.supervisor.origin().resume.is_some());
        Ok(())
    }

    /// Examines the files. `shown` is what a client has just trusted.
    async fn judge(&mut self, shown: Option<&Survey>) -> Verdict {
        let Some(found) = self.survey_project().await else {
            return Verdict::Distrusted("its files could not be read in time");
        };
        let state = found.snapshot();
        if found.is_empty() {
            self.trust_gate.state = state;
            return Verdict::Nothing;
        }
        let is_shown = shown.is_some_and(|shown| is_same(shown, &found));
        let remembers = is_shown || self.trust_gate.wish == Wish::Trust;
        let is_trusted = match self.trust_gate.wish {
            Wish::Trust | Wish::TrustOnce => true,
            Wish::Distrust => return Verdict::Distrusted("the session or the settings say so"),
            Wish::Ask => is_shown || self.is_remembered(state.clone()).await,
        };
        if !is_trusted {
            return Verdict::Ask(found);
        }
        self.trust_gate.state.clone_from(&state);
        if let Some(state) = state.filter(|_| remembers) {
            self.remember(state).await;
        }
        Verdict::Trusted
    }

    /// Examines the files on a thread that may block. Returns `None` if that takes too long.
    async fn survey_project(&mut self) -> Option<Survey> {
        let files = self.plan.dialect.project_files(&self.config);
        let directory = self.config.working_directory.as_deref().map(PathBuf::from);
        let Some(directory) = directory.filter(|_| !files.is_empty()) else {
            return Some(Survey::default());
        };
        let further = self.config.additional_directories.iter().flatten();
        let further: Vec<PathBuf> = further.map(|further| directory.join(further)).collect();
        let looked = directory.clone();
        let found = access(&directory, move |here| {
            drop(here);
            survey(&files, &looked, &further, std::env::home_dir().as_deref())
        });
        found.await.ok()
    }

    async fn is_remembered(&mut self, state: Option<Snapshot>) -> bool {
        let Some(state) = state else { return false };
        let (ledger, agent, directory) = self.ledger();
        let asked = tokio::task::spawn_blocking(move || ledger.trusts(agent, &directory, &state));
        tokio::time::timeout(LOOK, asked).await.is_ok_and(|trusts| trusts.unwrap_or(false))
    }

    async fn remember(&mut self, state: Snapshot) {
        let (ledger, agent, directory) = self.ledger();
        let written =
            tokio::task::spawn_blocking(move || ledger.remember(agent, &directory, state));
        let error = match tokio::time::timeout(LOOK, written).await {
            Ok(Ok(Ok(()))) => return,
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it took too long".to_owned(),
        };
        self.warn(format!("the directory is trusted for this session only: {error}"));
    }

    fn ledger(&self) -> (Ledger, AgentType, String) {
        let directory = self.config.working_directory.clone().unwrap_or_default();
        let settings = &self.plan.settings;
        let ledger = match self.plan.pinned_dirs.data_dir(settings) {
            Some(data_dir) => Ledger::within(data_dir),
            None => Ledger::new(&settings.data_dir),
        };
        (ledger, self.plan.agent, directory)
    }

    fn request_trust(&mut self, found: Survey) {
        let id = format!("trust-{}", self.core.journal.last() + 1);
        let agent = self.plan.agent.as_str();
        let directory = self.config.working_directory.clone().unwrap_or_default();
        let mut input = json!({ "directory": directory, "agent": agent, "files": found.files });
        if let (Some(fields), Some(why)) = (input.as_object_mut(), found.left_out) {
            fields.insert("leftOut".to_owned(), json!(why));
        }
        let without = match self.plan.dialect.starts_without_project() {
            true => format!("{agent} starts without the project's settings"),
            false => format!("{agent} does not start"),
        };
        let message = format!(
            "These files can make {agent} run programs or skip questions by itself. If you allow it, \
             {agent} reads them, and you are asked again when one of them changes. If you deny it, \
             {without}."
        );
        let request = RequestRaised {
            tool_name: Some(Text::fixed(TRUST_DIRECTORY)),
            title: Some(Text::from(format!("Trust the files in {directory}?"))),
            message: Some(Text::from(message)),
            input_is_fixed: true,
            allow_is_once: true,
            ..RequestRaised::new(id.as_str(), RequestKind::Permission, Some(Json::of(&input)))
        };
        // No rule and no hook answers this: only a client can trust a project.
        self.core.raise_request(request, Asker::Trust);
        self.wait_for_answer(&id);
        self.trust_gate.asked = Some(found);
    }

    pub(super) fn trust_answered(&mut self, answer: &Answer) -> Result<(), GatewayError> {
        self.trust_gate.answer = Some(allows(answer, TRUST_DIRECTORY)?);
        self.core.effects.push(Effect::Open);
        Ok(())
    }

    /// The agent starts without the project's settings, or not at all.
    fn distrust(&mut self, reason: &str) -> Result<(), GatewayError> {
        let agent = self.plan.agent.as_str();
        let directory = self.config.working_directory.as_deref().unwrap_or_default();
        let advice = "start it again and allow TrustDirectory, or use `--trust` (`config.trust`)";
        if !self.plan.dialect.starts_without_project() {
            let driver = named_driver(self.plan.agent, self.config.driver.as_deref());
            let driver = driver.map_or(self.plan.dialect.name(), |(name, _)| name);
            let message = format!(
                "{directory} is not trusted: {reason}. {agent} with the driver {driver} cannot start \
                 without the project's settings; {advice}"
            );
            return Err(GatewayError::new(ErrorCode::StartFailed, message));
        }
        if self.servers_need_trust() {
            let message = format!(
                "{directory} is not trusted: {reason}. {agent} connects to no MCP servers there, and \
                 the session has some; {advice}"
            );
            return Err(GatewayError::new(ErrorCode::StartFailed, message));
        }
        let message = format!(
            "{directory} is not trusted: {reason}. {agent} starts without the project's settings; to \
             use them, {advice}"
        );
        self.config.trust = Some(false);
        self.warn(message);
        Ok(())
    }

    /// Whether the session's MCP servers are only available if the project is trusted.
    fn servers_need_trust(&self) -> bool {
        let servers = self.config.mcp_servers.as_ref();
        self.plan.dialect.servers_need_trust() && servers.is_some_and(|servers| !servers.is_empty())
    }

    pub(super) fn warn(&mut self, message: String) {
        self.core.emit(StatusChanged::new(Status::Warning).message(Text::from(message)));
    }

    /// With one process per turn, the files may have changed since the last turn.
    pub(super) async fn check_again(&mut self) -> Result<(), GatewayError> {
        // The files are trusted whatever they contain.
        if self.trust_gate.wish == Wish::TrustOnce {
            return Ok(());
        }
        if self.config.trust == Some(false) {
            return Ok(());
        }
        match (self.survey_project().await, &self.trust_gate.state) {
            (Some(found), Some(state)) if found.is_within(state) => Ok(()),
            (Some(_), Some(_)) | (None, _) => {
                self.distrust("its files changed during the session")
            }
            // There is nothing to compare with.
            (Some(_), None) => self.distrust(
                "some of its files cannot be read completely, so it is unknown whether they changed",
            ),
        }
    }

    /// Holds a command until the request is answered or the agent may start. A prompt is accepted
    /// immediately.
    pub(super) fn wait_for_trust(
        &mut self,
        call: Call,
        command: Command,
    ) -> Result<(), GatewayError> {
        let Command::Prompt(prompt) = command else { return self.trust_gate.queue(call, command) };
        let id = prompt.message_id.clone().unwrap_or_default();
        self.trust_gate.queue(NOBODY, Command::Prompt(prompt))?;
        if let Some((_, Command::Prompt(prompt))) = self.trust_gate.waiting.back() {
            self.core.state.entitle(&prompt.text);
        }
        self.queued(&id);
        self.core.answer(call, Ok(taken(&id)));
        Ok(())
    }

    fn release(&mut self, call: Call, command: Command) {
        if let Command::Prompt(prompt) = command {
            return self.release_prompt(prompt);
        }
        // Its caller may already have got a timeout.
        if self.callers.is_waiting(call)
            && let Err(error) = self.command(call, command)
        {
            self.core.answer(call, Err(error));
        }
    }

    fn release_prompt(&mut self, prompt: Prompt) {
        if let Err(error) = self.accept_prompt(NOBODY, PendingPrompt::queued(prompt.clone())) {
            self.fail_prompt(prompt, TurnFailure::Error, &error.message);
        }
    }

    /// Prompts that wait for the decision become failed turns.
    pub(super) fn fail_waiting(&mut self, failure: TurnFailure, reason: &str) {
        for prompt in self.trust_gate.take_prompts() {
            self.fail_prompt(prompt, failure, reason);
        }
    }
}

/// Whether the files found now are those that were shown. For files without a digest, only their paths can
/// be compared.
fn is_same(shown: &Survey, found: &Survey) -> bool {
    let digest = |file: &SurveyedFile| (file.path.clone(), file.digest.clone());
    shown.files.iter().map(digest).eq(found.files.iter().map(digest))
        || shown.snapshot().is_some_and(|shown| found.is_within(&shown))
}
