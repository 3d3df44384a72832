//! What the view remembers of a session.

use std::collections::{BTreeMap, BTreeSet};

use agentwire_protocol::MAIN_AGENT;
use agentwire_protocol::event::{RequestRaised, ToolKind, ToolProgress};
use jiff::Timestamp;

use super::layout::Section;
use super::{Origin, decoded, numbers, summary};

/// How many entries of each kind are kept. Beyond that, the view shows less detail.
const LIMIT: usize = 4096;

#[derive(Debug)]
pub(super) struct ViewState {
    pub(super) directory: Option<String>,
    turn_since: Option<Timestamp>,
    /// The agent whose output was shown last.
    pub(super) speaker: String,
    /// The open block of text.
    pub(super) block: Option<(Section, Option<String>)>,
    /// The last prompt; agents repeat it.
    pub(super) prompt: String,
    /// The tool whose line is the last one shown.
    pub(super) last_tool: Option<String>,
    pub(super) agents: BTreeMap<String, ShownAgent>,
    pub(super) tools: BTreeMap<String, ShownTool>,
    requests: BTreeMap<String, ShownRequest>,
    /// Tools of this turn whose changes the user saw when asked.
    seen: BTreeSet<String>,
    /// The last error; agents repeat it.
    error: String,
    /// The last warning; the error of a denied tool repeats it.
    pub(super) warning: String,
}

#[derive(Debug)]
pub(super) struct ShownAgent {
    pub(super) depth: usize,
    pub(super) name: String,
    pub(super) since: Option<Timestamp>,
    /// Some of its output was shown.
    pub(super) spoke: bool,
}

#[derive(Debug)]
pub(super) struct ShownTool {
    pub(super) name: String,
    pub(super) summary: String,
    pub(super) kind: ToolKind,
    pub(super) since: Option<Timestamp>,
    /// Its line was shown.
    pub(super) is_shown: bool,
    /// It started a subagent, which has its own lines.
    pub(super) is_spawner: bool,
    /// Its denial was shown.
    pub(super) is_denied: bool,
    /// Its latest progress text.
    doing: Option<String>,
}

#[derive(Debug)]
pub(super) struct ShownRequest {
    pub(super) agent: String,
    pub(super) parent: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) about: String,
}

impl Default for ViewState {
    fn default() -> Self {
        Self {
            directory: None,
            turn_since: None,
            speaker: MAIN_AGENT.to_owned(),
            block: None,
            prompt: String::new(),
            last_tool: None,
            agents: BTreeMap::new(),
            tools: BTreeMap::new(),
            requests: BTreeMap::new(),
            seen: BTreeSet::new(),
            error: String::new(),
            warning: String::new(),
        }
    }
}

impl ShownTool {
    pub(super) fn new(
        name: String,
        summary: String,
        kind: ToolKind,
        since: Option<Timestamp>,
    ) -> Self {
        let (is_shown, is_spawner, is_denied) = (false, false, false);
        Self { name, summary, kind, since, is_shown, is_spawner, is_denied, doing: None }
    }
}

impl ViewState {
    /// Whether the last warning gave the reason of this tool's denial.
    pub(super) fn has_warned_of(&self, tool: &str, error: &str) -> bool {
        let about = self.warning.strip_prefix(tool).and_then(|rest| rest.split_once(": "));
        about.is_some_and(|(_, reason)| error.contains(reason))
    }

    /// The depth and the name of the agent.
    pub(super) fn agent(&self, origin: Origin<'_>) -> (usize, String) {
        if origin.agent == MAIN_AGENT {
            return (0, String::new());
        }
        if let Some(agent) = self.agents.get(origin.agent) {
            return (agent.depth, agent.name.clone());
        }
        let parent = origin.parent.and_then(|parent| self.agents.get(parent));
        (1 + parent.map_or(0, |agent| agent.depth), "subagent".to_owned())
    }

    pub(super) fn begin_turn(&mut self, now: Option<Timestamp>) {
        self.turn_since = now;
        self.seen.clear();
    }

    pub(super) fn saw(&mut self, tool: &str) {
        self.seen.insert(tool.to_owned());
    }

    pub(super) fn has_seen(&self, tool: &str) -> bool {
        self.seen.contains(tool)
    }

    pub(super) fn heard(&mut self, agent: &str) {
        if let Some(agent) = self.agents.get_mut(agent) {
            agent.spoke = true;
        }
    }

    pub(super) fn open_agent(&mut self, id: &str, agent: ShownAgent) {
        if let Some(tool) = self.tools.get_mut(id) {
            tool.is_spawner = true;
        }
        if self.agents.len() < LIMIT {
            self.agents.insert(id.to_owned(), agent);
        }
    }

    pub(super) fn open_tool(&mut self, id: &str, tool: ShownTool) {
        if self.tools.len() < LIMIT {
            self.tools.insert(id.to_owned(), tool);
        }
    }

    pub(super) fn progress(&mut self, progress: &ToolProgress<'_>) {
        let Some(tool) = self.tools.get_mut(&*progress.tool_id.decode()) else { return };
        let text = progress.message.as_ref().or(progress.output.as_ref());
        let text = text.map(|text| text.decode());
        let last =
            text.as_deref().and_then(|text| text.lines().rfind(|line| !line.trim().is_empty()));
        if let Some(last) = last {
            tool.doing = Some(numbers::cut(last.trim(), 200).into_owned());
        }
    }

    pub(super) fn raised(&mut self, request: &RequestRaised<'_>, origin: Origin<'_>) {
        if self.requests.len() >= LIMIT {
            return;
        }
        let request_of = ShownRequest {
            agent: origin.agent.to_owned(),
            parent: origin.parent.map(str::to_owned),
            tool: decoded(request.tool_use_id.as_ref()),
            about: about(request, self.directory.as_deref()),
        };
        self.requests.insert(request.request_id.to_string(), request_of);
    }

    pub(super) fn settled(&mut self, id: &str) -> Option<ShownRequest> {
        self.requests.remove(id)
    }

    /// Whether this error is new.
    pub(super) fn is_news(&mut self, error: &str) -> bool {
        let is_news = error.is_empty() || !self.error.contains(error);
        if is_news {
            error.clone_into(&mut self.error);
        }
        is_news
    }

    /// The part of the text that is new.
    pub(super) fn news<'e>(&mut self, error: &'e str) -> &'e str {
        let shown = self.error.clone();
        if !self.is_news(error) {
            return "";
        }
        let more = error.strip_prefix(&shown).filter(|_| !shown.is_empty());
        more.map_or(error, |more| more.trim_start_matches([';', ':', ' ']))
    }

    pub(super) fn turn_took(&self, now: Option<Timestamp>) -> Option<u64> {
        since(self.turn_since, now)
    }

    /// What the agent does now: its latest open tool.
    pub(super) fn activity(&self) -> String {
        let running = self.tools.values().filter(|tool| tool.kind != ToolKind::Agent);
        match running.max_by_key(|tool| tool.since) {
            Some(ShownTool { name, doing: Some(doing), .. }) => format!("{name}: {doing}"),
            Some(ShownTool { name, summary, .. }) => format!("{name} {summary}"),
            None => "working".to_owned(),
        }
    }
}

/// A short description of a request.
pub(crate) fn about(request: &RequestRaised<'_>, directory: Option<&str>) -> String {
    let title = request.title.as_ref().or(request.message.as_ref()).map(|text| text.decode());
    if let Some(question) = request.questions.first() {
        return question.question.to_string();
    }
    let name = decoded(request.tool_name.as_ref().or(request.name.as_ref()));
    let is_limit = request.tool_name.is_none() && title.is_some();
    let summary = match is_limit {
        true => title.map(std::borrow::Cow::into_owned).unwrap_or_default(),
        false => summary::summary(request.input.as_ref(), title.as_deref(), directory),
    };
    match name.filter(|_| !is_limit) {
        Some(name) => format!("{name}  {summary}").trim_end().to_owned(),
        None => summary,
    }
}

/// Milliseconds between two times.
pub(super) fn since(then: Option<Timestamp>, now: Option<Timestamp>) -> Option<u64> {
    let passed = now?.duration_since(then?).as_millis();
    u64::try_from(passed).ok()
}
