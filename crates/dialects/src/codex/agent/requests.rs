//! Requests of the app server: what it asks, and how its later messages settle them.

use std::borrow::Cow;

use agentwire_protocol::event::{
    Question, QuestionOption, RequestKind, RequestOption, RequestOptionKind, RequestRaised,
    SettledBy, input_digest,
};
use agentwire_protocol::{Json, JsonObject, Text};

use super::super::app_wire::{
    ApprovalMeta, Choice, Notification, Question as Asking, RequestParams,
};
use super::super::describe::STARTED_AS;
use super::tools::McpCall;
use super::{Translator, pick};
use crate::agent::deny_overload;
use crate::json::Value;
use crate::ledger::Open;
use crate::mcp::form_question;
use crate::tape::{Agent, Ending, Out};

/// Fields of a request that identify it, or are shown as its options.
const BESIDE: &[&str] = &[
    "threadId",
    "conversationId",
    "turnId",
    "itemId",
    "callId",
    "approvalId",
    "startedAtMs",
    "availableDecisions",
];

#[derive(Debug)]
pub(super) struct PendingRequest {
    /// The request's id, exactly as received.
    pub(super) id: String,
    pub(super) what: AnswerFormat,
    pub(super) tool: Option<String>,
    /// A recording shows that it was answered, but not how: what the call does next will show.
    resolved: bool,
}

impl PendingRequest {
    /// The server of the MCP tool that it is about.
    pub(super) fn server(&self) -> Option<&str> {
        if let AnswerFormat::McpCall(server) = &self.what { Some(server) } else { None }
    }
}

/// What is asked, by the format of its answer.
#[derive(Debug)]
pub(super) enum AnswerFormat {
    /// A command or a file change.
    Approval,
    /// The same in the format of older versions.
    Legacy,
    /// The exact permissions requested for the turn.
    Permissions(String),
    /// A call of an MCP tool of the named server.
    McpCall(String),
    /// A form or a URL from an MCP server.
    Elicitation,
    /// The id and the text of each question.
    Questions(Vec<(String, String)>),
    Tool,
    Other,
}

impl Translator {
    pub(super) fn server_request(
        &mut self,
        method: &str,
        id: Value<'_>,
        params: Option<Value<'_>>,
        out: &mut Out<'_>,
    ) {
        let ask: RequestParams<'_> = params.and_then(Value::to).unwrap_or_default();
        let thread_id = ask.thread_id.as_deref().or(ask.conversation_id.as_deref());
        let thread = self.threads.of(thread_id);
        thread.show(out);
        let agent = &thread.owner();
        let wire_id = id.json().get().to_owned();
        // Ids start at 0 in each process; a turn belongs to one process.
        let scope = ask.turn_id.as_deref().or(thread.turn.as_deref()).unwrap_or(method);
        let request_id = format!("{scope}:{}", wire_id.trim_matches('"'));
        let tool = ask.item_id.as_deref().or(ask.call_id.as_deref()).map(str::to_owned);
        let (mut raised, what, tool) = self.asked(method, agent, &ask, params, tool);
        raised.request_id = Text::from(request_id.as_str());
        raised.tool_use_id = tool.as_deref().map(Text::from);
        raised.input_digest = input_digest(raised.input.as_ref());
        let is_known = self.ledger.requests.get(&request_id).is_some();
        let asked =
            PendingRequest { id: wire_id.clone(), what, tool: tool.clone(), resolved: false };
        let server = asked.server().map(str::to_owned);
        if self.ledger.requests.open(&request_id, agent, asked) {
            out.emit_as(agent, raised);
        } else if !is_known && !out.is_recording() {
            self.refuse(tool.as_deref(), server.as_deref());
            deny_overload(&wire_id, out);
        }
    }

    fn asked<'d>(
        &mut self,
        method: &'d str,
        agent: &Agent<'_>,
        ask: &RequestParams<'d>,
        params: Option<Value<'d>>,
        tool: Option<String>,
    ) -> (RequestRaised<'d>, AnswerFormat, Option<String>) {
        let beside = tool.as_deref().zip(params);
        let beside = beside.and_then(|(tool, params)| self.started_as(method, ask, params, tool));
        let whole = |changes: Option<&String>| {
            params.and_then(|params| input(params, changes, beside.as_deref()))
        };
        let base = RequestRaised {
            name: Some(Text::from(method)),
            message: ask.reason.clone().or(ask.message.clone()),
            blocked_path: ask.grant_root.clone(),
            ..RequestRaised::new("", RequestKind::Permission, None)
        };
        let of_tool = |name: &'static str, input| RequestRaised {
            tool_name: Some(Text::fixed(name)),
            input,
            ..base.clone()
        };
        match method {
            "item/commandExecution/requestApproval" => {
                let raised = RequestRaised {
                    title: ask.command.and_then(Value::to),
                    options: ask
                        .available_decisions
                        .into_iter()
                        .flat_map(Value::items)
                        .filter_map(option)
                        .collect(),
                    ..of_tool("command_execution", whole(None))
                };
                (raised, AnswerFormat::Approval, tool)
            }
            "item/fileChange/requestApproval" => {
                let open = tool.as_deref().and_then(|tool| self.ledger.tools.get(tool));
                let has_own = params.is_some_and(|params| params.get("changes").is_some());
                let changes = open.and_then(|tool| tool.memo.changes.as_ref()).filter(|_| !has_own);
                (of_tool("file_change", whole(changes)), AnswerFormat::Approval, tool)
            }
            "execCommandApproval" => {
                (of_tool("command_execution", whole(None)), AnswerFormat::Legacy, tool)
            }
            "applyPatchApproval" => {
                (of_tool("file_change", whole(None)), AnswerFormat::Legacy, tool)
            }
            "item/permissions/requestApproval" => {
                let wanted = ask.permissions.as_ref().map_or("{}", Json::get).to_owned();
                let raised = of_tool("request_permissions", whole(None));
                (raised, AnswerFormat::Permissions(wanted), tool)
            }
            "mcpServer/elicitation/request" => {
                let names = ["mode", "url", "elicitationId"];
                let input = params.and_then(|params| pick(params, &names));
                self.elicitation(agent, ask, base, input)
            }
            "item/tool/requestUserInput" => {
                let questions = ask.questions.into_iter().flat_map(Value::items);
                let questions: Vec<Asking<'d>> = questions.filter_map(Value::to).collect();
                let keys = questions.iter().filter_map(|question| {
                    let words = question.question.as_deref().unwrap_or_default();
                    Some((question.id.as_deref()?.to_owned(), words.to_owned()))
                });
                let what = AnswerFormat::Questions(keys.collect());
                let raised = RequestRaised {
                    kind: RequestKind::Question,
                    questions: questions.into_iter().filter_map(question).collect(),
                    input: params.and_then(|params| pick(params, &["questions"])),
                    ..base
                };
                (raised, what, tool)
            }
            "item/tool/call" => {
                let raised = RequestRaised {
                    kind: RequestKind::Other,
                    tool_name: ask.tool.clone(),
                    input: ask.arguments.clone(),
                    ..base
                };
                (raised, AnswerFormat::Tool, tool)
            }
            _ => {
                let input = params.map(Value::json);
                (
                    RequestRaised { kind: RequestKind::Other, input, ..base },
                    AnswerFormat::Other,
                    tool,
                )
            }
        }
    }

    /// An MCP server asks, or Codex asks about a call of its tool. Codex does not give the call's id: it is
    /// the agent's one open call to that server with the same arguments whose tool the message quotes. If
    /// several calls match, only what they share is reported.
    fn elicitation<'d>(
        &mut self,
        agent: &Agent<'_>,
        ask: &RequestParams<'d>,
        base: RequestRaised<'d>,
        input: Option<Json<'d>>,
    ) -> (RequestRaised<'d>, AnswerFormat, Option<String>) {
        let server = ask.server_name.as_deref().unwrap_or_default();
        let name = ask.server_name.clone().map(Text::new);
        let meta: ApprovalMeta<'d> = ask.meta.and_then(Value::to).unwrap_or_default();
        if meta.kind.as_deref() == Some("mcp_tool_call") {
            let words = ask.message.as_ref().map(Text::decode).unwrap_or_default();
            let arguments = meta.tool_params.as_ref().map(Json::get);
            let fits = |called: &McpCall| {
                called.server == server
                    && called.has_arguments(arguments)
                    && (!words.contains('"') || words.contains(&format!("\"{}\"", called.tool)))
            };
            let calls = self.ledger.tools.iter().filter(|call| agent.id == call.agent.id);
            let open = calls.filter_map(|call| Some((&call.id, call.memo.mcp.as_ref()?)));
            let open: Vec<_> = open.filter(|(_, called)| fits(called)).collect();
            // Which call it is may not be certain, but its server is.
            let full = |tool: &str| Some(format!("mcp__{server}__{tool}"));
            let (tool, tool_name) = match open.as_slice() {
                [] => (None, full(words.split('"').nth(1).unwrap_or_default())),
                [(id, called)] => (Some((*id).clone()), Some(called.tool.clone())),
                [(_, first), rest @ ..] => {
                    let same = rest.iter().all(|(_, called)| called.tool == first.tool);
                    (None, full(if same { &first.tool } else { "" }))
                }
            };
            let raised = RequestRaised {
                tool_name: tool_name.map(Text::from),
                input: meta.tool_params,
                title: meta.tool_description,
                name,
                ..base
            };
            return (raised, AnswerFormat::McpCall(server.to_owned()), tool);
        }
        let schema = ask.requested_schema;
        let fields = schema.and_then(|schema| schema.get("properties"));
        let field = |(name, field): (_, Value<'d>)| form_question(name, field, field.read("title"));
        let raised = RequestRaised {
            kind: RequestKind::Question,
            questions: fields.into_iter().flat_map(Value::fields).map(field).collect(),
            schema: schema.map(Value::json),
            title: ask.url.clone(),
            input,
            name,
            ..base
        };
        (raised, AnswerFormat::Elicitation, None)
    }

    /// The server reports that a request is resolved. In a live session, one that is still open was not
    /// answered here. A recording does not contain the answers; the call shows which it was.
    pub(super) fn resolved(&mut self, notice: &Notification<'_>, out: &mut Out<'_>) {
        let Some(id) = notice.request_id.map(Value::json) else { return };
        let open = self.ledger.requests.iter().find(|request| request.memo.id == id.get());
        let Some(request_id) = open.map(|request| request.id.clone()) else { return };
        let tool = open.and_then(|request| request.memo.tool.clone());
        let asks = open.is_some_and(|request| {
            !matches!(
                request.memo.what,
                AnswerFormat::Questions(_) | AnswerFormat::Tool | AnswerFormat::Elicitation
            )
        });
        let waits = tool.is_some_and(|tool| self.ledger.tools.get(&tool).is_some());
        if asks && waits && out.is_recording() {
            if let Some(request) = self.ledger.requests.get(&request_id) {
                request.memo.resolved = true;
            }
            return;
        }
        let ending = match out.recording() {
            Some(recording) if !asks => recording.answered(SettledBy::Client),
            _ => Ending::RESOLVED,
        };
        if let Some(request) = self.ledger.requests.close(&request_id) {
            out.settled(&request.agent, &request_id, ending, None, None);
        }
    }

    /// The call of an answered request continues, so it was allowed.
    pub(super) fn settle_by_progress(&mut self, tool: &str, out: &mut Out<'_>) {
        let Some(recording) = out.recording() else { return };
        self.settle_where(out, recording.allowed(SettledBy::Client), |request| {
            request.memo.resolved && request.memo.tool.as_deref() == Some(tool)
        });
    }

    /// The call ended, which settles what it waited for.
    pub(super) fn settle_by_end(&mut self, tool: &str, denied: bool, out: &mut Out<'_>) {
        let waits = |request: &Open<PendingRequest>| request.memo.tool.as_deref() == Some(tool);
        let Some(recording) = out.recording() else {
            return self.settle_where(out, Ending::RESOLVED, waits);
        };
        let by = SettledBy::Client;
        self.settle_where(out, recording.answered(by), |request| {
            waits(request)
                && matches!(request.memo.what, AnswerFormat::Tool | AnswerFormat::Questions(_))
        });
        let ending = if denied { Ending::denied(by) } else { recording.allowed(by) };
        self.settle_where(out, ending, waits);
    }

    /// Declines the requests about a file change whose patch has changed. Codex may ask again.
    pub(super) fn deny_changed(&mut self, tool: &str, out: &mut Out<'_>) {
        if out.is_recording() {
            return;
        }
        let fits = |request: &&Open<PendingRequest>| {
            request.memo.tool.as_deref() == Some(tool)
                && matches!(request.memo.what, AnswerFormat::Approval | AnswerFormat::Legacy)
        };
        loop {
            let id = self.ledger.requests.iter().find(fits).map(|request| request.id.clone());
            let Some(id) = id else { return };
            let Some(request) = self.ledger.requests.close(&id) else { return };
            let reason = "the patch changed while its request was open";
            let is_legacy = matches!(request.memo.what, AnswerFormat::Legacy);
            let word = if is_legacy { "denied" } else { "decline" };
            self.refuse(Some(tool), None);
            if let Some(call) = self.ledger.tools.get(tool) {
                call.memo.denial = Some(reason.to_owned());
            }
            let wire_id = &request.memo.id;
            let decision = JsonObject::new().text("decision", word).finish();
            let reply =
                JsonObject::new().raw("id", &Json::trusted(wire_id)).raw("result", &decision);
            out.write(reply.finish().into_text());
            let ending = Ending::denied(SettledBy::Gateway);
            out.settled(&request.agent, &id, ending, Some(Text::from(reason)), None);
        }
    }

    /// The agent's turn ended, and nothing showed how its requests were answered.
    pub(super) fn settle_resolved(&mut self, agent: &Agent<'_>, out: &mut Out<'_>) {
        self.settle_where(out, Ending::RESOLVED, |request| {
            request.memo.resolved && agent.id == request.agent.id
        });
    }

    fn settle_where(
        &mut self,
        out: &mut Out<'_>,
        ending: Ending,
        fits: impl Fn(&Open<PendingRequest>) -> bool,
    ) {
        loop {
            let open = self.ledger.requests.iter().find(|request| fits(request));
            let Some(id) = open.map(|request| request.id.clone()) else { return };
            if let Some(request) = self.ledger.requests.close(&id) {
                out.settled(&request.agent, &id, ending, None, None);
            }
        }
    }
}

/// Everything that a request asks for: every field that is set and not known to be harmless. An unknown
/// field may widen the call, so it is shown, digested and judged. `changes` are those of the item, which
/// the request only names; `beside` is what the item says that is not asked for.
fn input(
    params: Value<'_>,
    changes: Option<&String>,
    beside: Option<&str>,
) -> Option<Json<'static>> {
    let says = |(name, value): &(Cow<'_, str>, Value<'_>)| {
        let is_here = name == "environmentId" && value.string().as_deref() == Some("local");
        let is_ours = beside.is_some() && name == STARTED_AS;
        !is_ours && !BESIDE.contains(&&**name) && value.json().get() != "null" && !is_here
    };
    let changes = changes.map(|changes| Json::trusted(changes.as_str()));
    let mut object = JsonObject::new().maybe("changes", changes.as_ref());
    for (name, value) in params.fields().filter(says) {
        object.add(&name, &value.json());
    }
    object.maybe(STARTED_AS, beside.map(Json::trusted).as_ref()).unless_empty()
}

/// A decision that the server offers: a string, or the only key of an object. One that would change Codex's
/// own rules is not offered: the gateway stores what is allowed from now on.
fn option(decision: Value<'_>) -> Option<RequestOption<'_>> {
    let id = decision.string().or_else(|| decision.fields().next().map(|(name, _)| name))?;
    let kind = match &*id {
        "accept" => RequestOptionKind::AllowOnce,
        "acceptForSession" => RequestOptionKind::AllowAlways,
        "decline" | "cancel" => RequestOptionKind::RejectOnce,
        "acceptWithExecpolicyAmendment" | "applyNetworkPolicyAmendment" => return None,
        _ => RequestOptionKind::Unknown,
    };
    Some(RequestOption { label: Text::new(id.clone()), id: Text::new(id), kind })
}

fn question(question: Asking<'_>) -> Option<Question<'_>> {
    let options = question.options.into_iter().flat_map(Value::items);
    Some(Question {
        question: Text::new(question.question?),
        id: question.id.map(Text::new),
        header: question.header,
        options: options.filter_map(choice).collect(),
        multi_select: false,
        is_secret: question.is_secret.unwrap_or(false),
    })
}

fn choice(option: Value<'_>) -> Option<QuestionOption<'_>> {
    let choice: Choice<'_> = option.to()?;
    Some(QuestionOption { label: choice.label?, description: choice.description })
}
