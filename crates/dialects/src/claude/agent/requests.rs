//! The agent's requests: raised when their line arrives, settled when its output shows that they are done.

use std::borrow::Cow;

use agentwire_protocol::event::{
    ErrorEvent, Question, QuestionOption, RequestKind, RequestRaised, SettledBy, ToolFailure,
};
use agentwire_protocol::{ErrorCode, Json, Text};

use super::Translator;
use crate::claude::wire::{
    AskedQuestion, CallbackPayload, CallbackRequest, ControlRequest, ControlRequestBody, Echo,
    ResultMeta,
};
use crate::json::Value;
use crate::mcp::form_question;
use crate::tape::{Agent, Ending, Out};

/// The state of a request until its answer.
#[derive(Clone, Debug)]
pub(super) struct PendingRequest {
    pub(super) wire: RequestChannel,
    pub(super) sort: AnswerFormat,
    pub(super) tool_use_id: Option<String>,
    /// The input that was shown, if the answer repeats it.
    pub(super) input: Option<Json<'static>>,
    /// The hook's event, or the MCP server.
    pub(super) name: Option<String>,
    pub(super) elicitation_id: Option<String>,
}

/// How it was asked, and so how it must be answered.
#[derive(Clone, Debug)]
pub(super) enum RequestChannel {
    Control,
    /// From the specification, with the session that it names.
    Callback(Option<String>),
}

/// What kind of answer it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerFormat {
    Tool,
    Question,
    Hook,
    Mcp,
    Elicitation,
    Other,
}

impl PendingRequest {
    /// MCP servers and the host are asked at any time, independently of turns.
    pub(super) fn outlives_turn(&self) -> bool {
        match self.sort {
            AnswerFormat::Mcp | AnswerFormat::Other => true,
            AnswerFormat::Tool
            | AnswerFormat::Question
            | AnswerFormat::Hook
            | AnswerFormat::Elicitation => false,
        }
    }
}

impl Translator {
    pub(super) fn control_request(&mut self, line: ControlRequest<'_>, out: &mut Out<'_>) {
        let (Some(id), Some(request)) = (line.request_id, line.request) else { return };
        let asked: ControlRequestBody<'_> = request.to().unwrap_or_default();
        let subtype = asked.subtype.clone().unwrap_or(Text::fixed(""));
        if &*subtype.decode() == "hook_callback" && self.judge(&id, &asked, out) {
            return;
        }
        let sort = match &*subtype.decode() {
            "can_use_tool" => tool_sort(asked.tool_name.as_ref()),
            "hook_callback" => AnswerFormat::Hook,
            "mcp_message" => AnswerFormat::Mcp,
            "elicitation" => AnswerFormat::Elicitation,
            _ => AnswerFormat::Other,
        };
        let native = asked.agent_id.clone().or_else(|| {
            asked
                .input
                .filter(|_| sort == AnswerFormat::Hook)
                .and_then(|input| input.read("agent_id"))
        });
        let agent = self.asker(asked.tool_use_id.as_deref(), native.as_deref());
        let tool_use_id = asked.tool_use_id.clone().map(Text::new);
        let elicitation_id = asked.elicitation_id.clone().map(Cow::into_owned);
        let warning = warning(&asked);
        let raise = match sort {
            AnswerFormat::Tool | AnswerFormat::Question => RequestRaised {
                tool_name: asked.tool_name,
                tool_use_id,
                questions: questions(sort, asked.input),
                suggestions: asked.suggestions.filter(|list| list.get() != "[]"),
                title: asked.title.or(asked.description).or(asked.display_name),
                warning,
                message: asked.decision_reason,
                blocked_path: asked.blocked_path,
                ..RequestRaised::new(id, kind(sort), asked.input.map(Value::json))
            },
            AnswerFormat::Hook => RequestRaised {
                tool_name: asked.input.and_then(|input| input.read("tool_name")),
                name: asked.input.and_then(|input| input.read("hook_event_name")),
                callback_id: asked.callback_id,
                tool_use_id,
                ..RequestRaised::new(id, kind(sort), asked.input.map(Value::json))
            },
            AnswerFormat::Mcp => RequestRaised {
                name: asked.server_name,
                ..RequestRaised::new(id, kind(sort), asked.message.map(Value::json))
            },
            AnswerFormat::Elicitation => RequestRaised {
                name: asked.mcp_server_name,
                message: asked.message.and_then(Value::to),
                questions: schema_questions(request),
                schema: asked.requested_schema,
                ..RequestRaised::new(id, kind(sort), Some(request.json()))
            },
            AnswerFormat::Other => RequestRaised {
                name: Some(subtype),
                tool_use_id,
                ..RequestRaised::new(id, kind(sort), Some(request.json()))
            },
        };
        if sort == AnswerFormat::Mcp && out.is_recording() {
            self.resolve_messages_to(raise.name.as_ref(), out);
        }
        self.raise(&agent, RequestChannel::Control, sort, elicitation_id, raise, out);
    }

    pub(super) fn callback_request(&mut self, line: CallbackRequest<'_>, out: &mut Out<'_>) {
        let Some(id) = line.id else { return };
        let asked: CallbackPayload<'_> = line.payload.unwrap_or_default();
        let hook = asked.kind.as_deref() == Some("hook");
        let sort = if hook { AnswerFormat::Hook } else { tool_sort(asked.tool_name.as_ref()) };
        let agent = self.asker(asked.tool_use_id.as_deref(), None);
        let input = if hook { asked.hook_input } else { asked.tool_input };
        let raise = RequestRaised {
            tool_name: asked.tool_name,
            tool_use_id: asked.tool_use_id.map(Text::new),
            questions: questions(sort, input),
            suggestions: asked.suggestions.filter(|list| list.get() != "[]"),
            blocked_path: asked.blocked_path,
            name: asked.hook_event,
            ..RequestRaised::new(id, kind(sort), input.map(Value::json))
        };
        let wire = RequestChannel::Callback(line.session_id.map(Cow::into_owned));
        self.raise(&agent, wire, sort, None, raise, out);
    }

    fn raise(
        &mut self,
        agent: &Agent<'_>,
        wire: RequestChannel,
        sort: AnswerFormat,
        elicitation_id: Option<String>,
        raise: RequestRaised<'_>,
        out: &mut Out<'_>,
    ) {
        let ask = PendingRequest {
            wire,
            sort,
            tool_use_id: raise.tool_use_id.as_ref().map(Text::to_string),
            input: raise
                .input
                .clone()
                .filter(|_| {
                    matches!(sort, AnswerFormat::Tool | AnswerFormat::Question | AnswerFormat::Mcp)
                })
                .map(Json::into_owned),
            name: raise.name.as_ref().map(Text::to_string),
            elicitation_id,
        };
        let id = raise.request_id.to_string();
        if self.ledger.requests.get(&id).is_some() {
            return;
        }
        if self.ledger.requests.open(&id, agent, ask.clone()) {
            out.emit_as(agent, raise);
        } else if !out.is_recording() {
            // Nobody would answer, and the agent would wait forever.
            let reason = "too many requests are open, this one was denied";
            let code = Some(Text::fixed(ErrorCode::Overloaded.as_str()));
            out.emit(ErrorEvent { code, ..ErrorEvent::new(reason) });
            self.turn_down(&id, &ask, reason, out);
        }
    }

    /// The agent that asks: the one that made the call, or else the one that Claude names by its own id.
    fn asker(&mut self, tool: Option<&str>, native: Option<&str>) -> Agent<'static> {
        let caller = tool.and_then(|id| self.ledger.tools.get(id)).map(|tool| tool.agent.clone());
        caller.or_else(|| self.agents.by_native(native?)).unwrap_or(Agent::main())
    }

    pub(super) fn withdraw(&mut self, id: &str, out: &mut Out<'_>) {
        self.settled(id, Ending::WITHDRAWN, out);
    }

    pub(super) fn settled(&mut self, id: &str, ending: Ending, out: &mut Out<'_>) {
        if let Some(request) = self.ledger.requests.close(id) {
            out.settled(&request.agent, id, ending, None, None);
        }
    }

    /// A tool has its result, so all requests about it are done. In a recording this is the only trace of
    /// the answer. In a live session they were settled before, unless by the agent.
    pub(super) fn settle_by_result(
        &mut self,
        tool: &str,
        meta: &ResultMeta<'_>,
        failure: Option<ToolFailure>,
        out: &mut Out<'_>,
    ) {
        let decision = meta.decision.clone().unwrap_or_default();
        let by_user = decision.source.is_none_or(|source| source.starts_with("user"));
        let recording = out.recording();
        // A hook may still be pending; its own answer settles it.
        let about = |ask: &PendingRequest| {
            ask.tool_use_id.as_deref() == Some(tool)
                && (recording.is_some() || ask.sort != AnswerFormat::Hook)
        };
        for (id, sort) in self.open_requests(about) {
            let client = recording.is_some() && (by_user || sort == AnswerFormat::Hook);
            let by = if client { SettledBy::Client } else { SettledBy::Agent };
            let ending = match (sort, decision.decision.as_deref(), failure, recording) {
                // A call that is reported as rejected, but has a result, ran.
                (AnswerFormat::Tool | AnswerFormat::Question, Some("reject"), None, None) => {
                    Ending::resolved(by)
                }
                (AnswerFormat::Tool | AnswerFormat::Question, Some("reject"), _, _)
                | (
                    AnswerFormat::Tool | AnswerFormat::Question,
                    None,
                    Some(ToolFailure::Denied),
                    _,
                ) => Ending::denied(by),
                (AnswerFormat::Question, Some("accept"), _, Some(recording))
                | (AnswerFormat::Question, None, None, Some(recording)) => recording.answered(by),
                (AnswerFormat::Tool, Some("accept"), _, Some(recording))
                | (AnswerFormat::Tool, None, None, Some(recording)) => recording.allowed(by),
                // The agent's own report allows nothing: the agent continued without the answer.
                _ => Ending::resolved(by),
            };
            self.settled(&id, ending, out);
        }
    }

    /// In a recording: the agent continued, so hooks, servers and the host must have answered.
    pub(super) fn resolve_requests(&mut self, out: &mut Out<'_>) {
        let answered =
            |ask: &PendingRequest| !matches!(ask.sort, AnswerFormat::Tool | AnswerFormat::Question);
        for (id, _) in self.open_requests(answered) {
            self.settled(&id, Ending::resolved(SettledBy::Client), out);
        }
    }

    /// In a recording: messages to a server come one after the other, so earlier ones were answered.
    fn resolve_messages_to(&mut self, server: Option<&Text<'_>>, out: &mut Out<'_>) {
        let server = server.map(Text::to_string);
        let earlier = |ask: &PendingRequest| ask.sort == AnswerFormat::Mcp && ask.name == server;
        for (id, _) in self.open_requests(earlier) {
            self.settled(&id, Ending::resolved(SettledBy::Client), out);
        }
    }

    /// The echo of an answer, in recordings made with `--replay-user-messages`.
    pub(super) fn echoed(&mut self, id: &str, answer: Value<'_>, out: &mut Out<'_>) -> bool {
        // In a live session only we give the answer: what the agent prints settles nothing.
        let Some(recording) = out.recording() else { return false };
        let Some(sort) = self.ledger.requests.get(id).map(|request| request.memo.sort) else {
            return false;
        };
        let echo: Echo<'_> = answer.to().unwrap_or_default();
        let by = SettledBy::Client;
        let ending = match (sort, echo.behavior.as_deref()) {
            (_, Some("deny")) => Ending::denied(by),
            (AnswerFormat::Tool, Some(_)) => recording.allowed(by),
            (AnswerFormat::Question, Some(_)) => recording.answered(by),
            _ => Ending::resolved(by),
        };
        let Some(request) = self.ledger.requests.close(id) else { return false };
        let shown = request.memo.input.as_ref();
        let updated_input = echo.updated_input.filter(|input| Some(input) != shown);
        out.settled(&request.agent, id, ending, echo.message, updated_input);
        true
    }

    pub(super) fn elicitation(&self, elicitation: &str) -> Option<String> {
        let wanted = |ask: &PendingRequest| ask.elicitation_id.as_deref() == Some(elicitation);
        self.open_requests(wanted).into_iter().map(|(id, _)| id).next()
    }

    fn open_requests(&self, fits: impl Fn(&PendingRequest) -> bool) -> Vec<(String, AnswerFormat)> {
        let open = self.ledger.requests.iter().filter(|request| fits(&request.memo));
        open.map(|request| (request.id.clone(), request.memo.sort)).collect()
    }
}

/// Reasons with which Claude asks about any call that is not allowed yet. They are not warnings.
const ORDINARY: [&str; 2] =
    ["This command requires approval", "Path is outside allowed working directories"];

/// Claude's warning: it asks for a reason other than that nobody has allowed the call yet.
fn warning<'a>(asked: &ControlRequestBody<'a>) -> Option<Text<'a>> {
    let reason = asked.decision_reason.clone();
    let is_ordinary = match asked.decision_reason_type.as_deref() {
        Some("workingDir" | "mode") => true,
        Some("other") | None => {
            reason.as_ref().is_none_or(|reason| ORDINARY.contains(&&*reason.decode()))
        }
        Some(_) => false,
    };
    let unnamed = || Text::from("the agent warns about this call without giving a reason");
    (!is_ordinary).then(|| reason.unwrap_or_else(unnamed))
}

fn tool_sort(tool: Option<&Text<'_>>) -> AnswerFormat {
    match tool {
        Some(name) if *name == *"AskUserQuestion" => AnswerFormat::Question,
        _ => AnswerFormat::Tool,
    }
}

fn kind(sort: AnswerFormat) -> RequestKind {
    match sort {
        AnswerFormat::Tool => RequestKind::Permission,
        AnswerFormat::Question | AnswerFormat::Elicitation => RequestKind::Question,
        AnswerFormat::Hook => RequestKind::Hook,
        AnswerFormat::Mcp => RequestKind::Mcp,
        AnswerFormat::Other => RequestKind::Other,
    }
}

fn questions(sort: AnswerFormat, input: Option<Value<'_>>) -> Vec<Question<'_>> {
    let input = input.filter(|_| sort == AnswerFormat::Question);
    let asked = input.and_then(|input| input.get("questions")).into_iter().flat_map(Value::items);
    asked
        .filter_map(Value::to::<AskedQuestion<'_>>)
        .filter_map(|asked| {
            let options = asked.options.unwrap_or_default().into_iter();
            Some(Question {
                question: asked.question?,
                id: None,
                header: asked.header,
                options: options
                    .filter_map(|option| {
                        let description = option.description;
                        Some(QuestionOption { label: option.label?, description })
                    })
                    .collect(),
                multi_select: asked.multi_select.unwrap_or(false),
                is_secret: false,
            })
        })
        .collect()
}

/// One question for each field that a server wants filled in.
fn schema_questions(request: Value<'_>) -> Vec<Question<'_>> {
    let fields = request.get("requested_schema").and_then(|schema| schema.get("properties"));
    let fields = fields.into_iter().flat_map(Value::fields);
    fields.map(|(name, field)| form_question(name, field, None)).collect()
}
