//! Makes spans from events. Pure: the same events always give the same spans.
//!
//! A turn is a trace. Its root is `invoke_agent`. Below it are the tools that ran (`execute_tool`), the
//! subagents (`invoke_agent` again, below the tool that spawned them) and the requests (`request`). Names
//! follow OpenTelemetry's conventions for generative AI; `agentwire.…` is for what they have no name for.
//! Spans contain no text of people or models unless that is turned on.

mod attributes;
mod span;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use agentwire_protocol::event::{
    AgentFinished, AgentInfo, AgentOutcome, AgentSpawned, ErrorEvent, RequestRaised,
    RequestSettled, Status, ToolCompleted, ToolFailed, ToolFailure, ToolStarted, TurnCompleted,
    TurnFailure,
};
use agentwire_protocol::{AgentType, Event, EventKind, MAIN_AGENT, Text};
use agentwire_sessions::clock;

use self::attributes::{message, provider, usage};
pub use self::span::Span;
pub(crate) use self::span::{Attribute, SpanEvent, Value};
use self::span::{CONTENT, WORDS, bounded, content, digest, number_of};

/// How many spans of a session may be open at once; further ones are not traced.
const OPEN: usize = 4096;

/// The largest number of events in a span.
const EVENTS: usize = 128;

/// The longest name of a tool or an agent, in characters.
const NAME: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// A trace is made if half of its id is below this.
    pub sampled: u64,
    /// Whether spans include the text of people and models.
    pub content: bool,
}

pub struct Translator {
    options: TraceOptions,
    agent: Option<AgentType>,
    model: Option<String>,
    version: Option<String>,
    /// The root span of the current turn, if it is traced.
    turn: Option<Turn>,
    tools: HashMap<String, Span>,
    agents: HashMap<String, Span>,
    requests: HashMap<String, Span>,
}

struct Turn {
    root: Span,
    response_model: Option<String>,
    output: String,
}

type SpanSink<'o> = &'o mut dyn FnMut(Span);

impl Translator {
    pub fn new(options: &TraceOptions) -> Self {
        Self {
            options: *options,
            agent: None,
            model: None,
            version: None,
            turn: None,
            tools: HashMap::new(),
            agents: HashMap::new(),
            requests: HashMap::new(),
        }
    }

    /// Whether an event matters, judged by its line: most are pieces of text.
    pub fn wants(&self, line: &[u8]) -> bool {
        const HEAD: usize = 512;
        let head = line.get(..HEAD).unwrap_or(line);
        let Some(place) = memchr::memmem::find(head, b"\"type\":\"") else { return true };
        let name = head.get(place + 8..).unwrap_or_default();
        let is = |kind: &str| name.starts_with(kind.as_bytes());
        !(is("thinkingChunk\"") || is("toolProgress\"") || is("other\"") || is("planUpdated\""))
            && (self.options.content || !is("textChunk\""))
    }

    /// Processes the next event, and passes on the spans that it ends.
    pub fn event(&mut self, event: &Event<'_>, out: SpanSink<'_>) {
        let Some(now) = clock::nanoseconds(&event.timestamp) else { return };
        match &event.kind {
            EventKind::SessionStarted(started) => {
                self.agent = Some(started.agent_type);
                self.model = started.config.model.clone();
                self.update_info(started.info.as_ref());
            }
            EventKind::StatusChanged(changed) => {
                self.update_info(changed.info.as_ref());
                if let (Status::Model, Some(model)) = (changed.status, &changed.message) {
                    self.model = Some(bounded(&model.decode(), NAME));
                }
            }
            EventKind::TurnStarted(turn) => {
                self.end_turn(now, out, |root| root.fail("interrupted", None));
                let prompt = turn.prompt.as_ref().filter(|_| self.options.content);
                self.start_turn(event, now, turn.turn_number, prompt);
            }
            EventKind::TurnCompleted(turn) => self.turn_completed(now, turn, out),
            EventKind::TurnFailed(turn) => {
                let error = Some(&turn.error).filter(|_| self.options.content);
                self.end_turn(now, out, |root| {
                    root.used(turn.usage.as_ref(), turn.cost_usd, &turn.models);
                    root.fail(failure(turn.reason), error);
                });
            }
            EventKind::TextChunk(chunk) => {
                let is_main = *event.agent_id.decode() == *MAIN_AGENT;
                if let Some(turn) = self.turn.as_mut().filter(|_| self.options.content && is_main)
                    && turn.output.len() < CONTENT
                {
                    turn.output.push_str(&chunk.content.decode());
                    // Each block ends its line.
                    turn.output.extend(chunk.is_complete.then_some('\n'));
                }
            }
            EventKind::UsageReported(report) => {
                let is_main = *event.agent_id.decode() == *MAIN_AGENT;
                if let (Some(turn), Some(model), true) = (&mut self.turn, &report.model, is_main) {
                    turn.response_model = Some(bounded(&model.decode(), NAME));
                }
            }
            EventKind::ToolStarted(tool) => self.start_tool(event, now, tool),
            EventKind::ToolCompleted(tool) => self.tool_completed(now, tool, out),
            EventKind::ToolFailed(tool) => self.tool_failed(now, tool, out),
            EventKind::AgentSpawned(spawned) => self.start_agent(event, now, spawned),
            EventKind::AgentFinished(finished) => self.agent_finished(event, now, finished, out),
            EventKind::RequestRaised(request) => self.start_request(event, now, request),
            EventKind::RequestSettled(request) => self.request_settled(now, request, out),
            EventKind::Error(error) => self.add_error(now, error),
            EventKind::SessionEnded(_) => self.end_all(now, out),
            _ => {}
        }
    }

    fn turn_completed(&mut self, now: u64, turn: &TurnCompleted<'_>, out: SpanSink<'_>) {
        let content = self.options.content;
        let output = self.turn.as_mut().map(|turn| std::mem::take(&mut turn.output));
        self.end_turn(now, out, |root| {
            root.used(Some(&turn.usage), turn.cost_usd, &turn.models);
            if let Some(reason) = &turn.stop_reason {
                let reasons = Value::List(vec![bounded(&reason.decode(), NAME)]);
                root.put("gen_ai.response.finish_reasons", reasons);
            }
            let output = output.filter(|output| content && !output.is_empty());
            let result = turn.result.as_ref().filter(|_| content).map(Text::to_string);
            if let Some(output) = output.or(result) {
                root.put("gen_ai.output.messages", message("assistant", output.trim_end()));
            }
        });
    }

    fn update_info(&mut self, info: Option<&AgentInfo<'_>>) {
        let Some(info) = info else { return };
        let text = |text: &Text<'_>| bounded(&text.decode(), NAME);
        self.model = info.model.as_ref().map(text).or(self.model.take());
        self.version = info.agent_version.as_ref().map(text).or(self.version.take());
    }

    fn start_turn(&mut self, event: &Event<'_>, now: u64, number: u64, prompt: Option<&Text<'_>>) {
        let trace: [u8; 16] = digest("trace", &event.id);
        // Sampling uses the last eight bytes, as the conventions say.
        let half = trace.last_chunk::<8>().copied().map_or(0, u64::from_be_bytes) >> 1;
        if half >= self.options.sampled {
            return;
        }
        let agent = self.agent.map_or("agent", AgentType::as_str);
        let mut root = Span::new(trace, None, event, now, format!("invoke_agent {agent}"));
        root.text("gen_ai.operation.name", "invoke_agent");
        root.text("gen_ai.provider.name", provider(self.agent));
        root.text("gen_ai.agent.name", agent);
        root.maybe("gen_ai.agent.version", self.version.as_deref());
        root.text("gen_ai.conversation.id", &event.session_id);
        root.maybe("gen_ai.request.model", self.model.as_deref());
        root.put("agentwire.turn.number", number_of(number));
        if let Some(prompt) = prompt {
            root.put("gen_ai.input.messages", message("user", &prompt.decode()));
        }
        self.turn = Some(Turn { root, response_model: None, output: String::new() });
    }

    /// Work in the background ends later, with its own event.
    fn end_turn(&mut self, now: u64, out: SpanSink<'_>, finish: impl FnOnce(&mut Span)) {
        let Some(Turn { mut root, response_model, .. }) = self.turn.take() else { return };
        finish(&mut root);
        root.model(response_model.as_deref());
        root.end = now.max(root.start);
        out(root);
    }

    /// The span of an agent: of the turn, or of a subagent.
    fn of_agent(&self, agent: &str) -> Option<&Span> {
        self.agents.get(agent).or_else(|| self.tools.get(agent)).or(self.root())
    }

    fn root(&self) -> Option<&Span> {
        self.turn.as_ref().map(|turn| &turn.root)
    }

    fn start_tool(&mut self, event: &Event<'_>, now: u64, tool: &ToolStarted<'_>) {
        let Some(parent) = self.of_agent(&event.agent_id.decode()) else { return };
        let (trace, parent) = (parent.trace, Some(parent.id));
        let name = bounded(&tool.tool_name.decode(), NAME);
        let mut span = Span::new(trace, parent, event, now, format!("execute_tool {name}"));
        span.text("gen_ai.operation.name", "execute_tool");
        span.text("gen_ai.tool.name", &name);
        span.text("gen_ai.tool.call.id", &tool.tool_id.decode());
        span.maybe("agentwire.mcp.server", tool.server.as_ref().map(|it| it.decode()).as_deref());
        if let Some(arguments) = tool.arguments.as_ref().filter(|_| self.options.content) {
            span.put("gen_ai.tool.call.arguments", content(arguments.get()));
        }
        insert_open(&mut self.tools, tool.tool_id.to_string(), span);
    }

    fn tool_completed(&mut self, now: u64, tool: &ToolCompleted<'_>, out: SpanSink<'_>) {
        let content_wanted = self.options.content;
        end(&mut self.tools, &tool.tool_id, now, out, |span| {
            if let Some(code) = tool.exit_code {
                span.put("process.exit.code", Value::Number(code));
            }
            if let Some(result) = tool.result.as_ref().filter(|_| content_wanted) {
                span.put("gen_ai.tool.call.result", content(result.get()));
            }
            if !tool.success {
                span.fail("tool_error", tool.error.as_ref().filter(|_| content_wanted));
            }
        });
    }

    fn tool_failed(&mut self, now: u64, tool: &ToolFailed<'_>, out: SpanSink<'_>) {
        let error = Some(&tool.error).filter(|_| self.options.content);
        let kind = match tool.reason {
            ToolFailure::Denied => "denied",
            ToolFailure::Interrupted => "interrupted",
            ToolFailure::Invalid => "invalid",
        };
        end(&mut self.tools, &tool.tool_id, now, out, |span| span.fail(kind, error));
    }

    fn start_agent(&mut self, event: &Event<'_>, now: u64, spawned: &AgentSpawned<'_>) {
        let id = event.agent_id.to_string();
        let by = event.parent_agent_id.as_ref().map(Text::to_string);
        let parent = self.tools.get(&id);
        let Some(parent) = parent.or_else(|| self.of_agent(by.as_deref().unwrap_or(MAIN_AGENT)))
        else {
            return;
        };
        let (trace, parent) = (parent.trace, Some(parent.id));
        let name = spawned.name.as_ref().map(|name| bounded(&name.decode(), NAME));
        let name = name.unwrap_or_else(|| "subagent".to_owned());
        let mut span = Span::new(trace, parent, event, now, format!("invoke_agent {name}"));
        span.text("gen_ai.operation.name", "invoke_agent");
        span.text("gen_ai.provider.name", provider(self.agent));
        span.text("gen_ai.agent.name", &name);
        span.text("gen_ai.agent.id", &id);
        span.text("gen_ai.conversation.id", &event.session_id);
        if let Some(prompt) = spawned.prompt.as_ref().filter(|_| self.options.content) {
            span.put("gen_ai.input.messages", message("user", &prompt.decode()));
        }
        insert_open(&mut self.agents, id, span);
    }

    fn agent_finished(
        &mut self,
        event: &Event<'_>,
        now: u64,
        finished: &AgentFinished<'_>,
        out: SpanSink<'_>,
    ) {
        let result = finished.result.as_ref().filter(|_| self.options.content);
        end(&mut self.agents, &event.agent_id, now, out, |span| {
            if let Some(used) = &finished.usage {
                usage(used, &mut span.attributes);
            }
            if let Some(result) = result {
                span.put("gen_ai.output.messages", message("assistant", &result.decode()));
            }
            match finished.outcome {
                AgentOutcome::Completed => {}
                AgentOutcome::Failed => span.fail("error", None),
                AgentOutcome::Cancelled => span.fail("interrupted", None),
            }
        });
    }

    fn start_request(&mut self, event: &Event<'_>, now: u64, request: &RequestRaised<'_>) {
        let tool = request.tool_use_id.as_ref().and_then(|id| self.tools.get(&*id.decode()));
        let Some(parent) = tool.or_else(|| self.of_agent(&event.agent_id.decode())) else { return };
        let (trace, parent) = (parent.trace, Some(parent.id));
        let kind = request.kind.as_str();
        let mut span = Span::new(trace, parent, event, now, format!("request {kind}"));
        span.text("agentwire.request.kind", kind);
        span.text("agentwire.request.id", &request.request_id.decode());
        let name = request.tool_name.as_ref().map(|name| bounded(&name.decode(), NAME));
        span.maybe("gen_ai.tool.name", name.as_deref());
        insert_open(&mut self.requests, request.request_id.to_string(), span);
    }

    fn request_settled(&mut self, now: u64, request: &RequestSettled<'_>, out: SpanSink<'_>) {
        end(&mut self.requests, &request.request_id, now, out, |span| {
            span.text("agentwire.request.outcome", request.outcome.as_str());
            span.text("agentwire.request.by", request.by.as_str());
        });
    }

    fn add_error(&mut self, now: u64, error: &ErrorEvent<'_>) {
        let Some(turn) = &mut self.turn else { return };
        if turn.root.events.len() < EVENTS {
            let code = error.code.as_ref().map(|code| bounded(&code.decode(), NAME));
            let code = Value::Text(code.unwrap_or_else(|| "_OTHER".to_owned()));
            let mut attributes = vec![("error.type", code)];
            if self.options.content {
                attributes
                    .push(("error.message", Value::Text(bounded(&error.message.decode(), WORDS))));
            }
            turn.root.events.push(SpanEvent { time: now, name: "error", attributes });
        }
    }

    fn end_all(&mut self, now: u64, out: SpanSink<'_>) {
        for open in [&mut self.requests, &mut self.agents, &mut self.tools] {
            let mut left: Vec<Span> = open.drain().map(|(_, span)| span).collect();
            left.sort_by_key(|span| (span.start, span.id));
            for mut span in left {
                span.fail("died", None);
                span.end = now.max(span.start);
                out(span);
            }
        }
        self.end_turn(now, out, |root| root.fail("died", None));
    }
}

fn insert_open(open: &mut HashMap<String, Span>, id: String, span: Span) {
    if open.len() < OPEN {
        open.insert(id, span);
    }
}

fn end(
    open: &mut HashMap<String, Span>,
    id: &Text<'_>,
    now: u64,
    out: SpanSink<'_>,
    finish: impl FnOnce(&mut Span),
) {
    if let Some(mut span) = open.remove(&*id.decode()) {
        finish(&mut span);
        span.end = now.max(span.start);
        out(span);
    }
}

/// Error types are in snake case.
fn failure(reason: TurnFailure) -> &'static str {
    if reason == TurnFailure::MaxTurns { "max_turns" } else { reason.as_str() }
}
