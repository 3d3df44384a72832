//! Requests from the agent: permissions, questions, and files or terminals, which we do not offer.

use agentwire_protocol::event::{
    Question, RequestKind, RequestOption, RequestOptionKind, RequestRaised, SettledBy, ToolFailure,
};
use agentwire_protocol::{Json, Text};

use super::super::wire::{self, Elicitation, Permission, ToolCall};
use super::Translator;
use super::elicitation::form_questions;
use super::tool_content::read_content;
use super::tools::ToolState;
use crate::agent::deny_overload;
use crate::json::Value;
use crate::tape::{Ending, Out};

pub(super) struct PendingRequest {
    /// The agent's id for the request, exactly as written.
    pub(super) wire_id: Json<'static>,
    pub(super) format: AnswerFormat,
}

pub(super) enum AnswerFormat {
    Permission {
        tool: Option<String>,
        options: Vec<RequestOption<'static>>,
    },
    Form {
        fields: Vec<FormField>,
    },
    Link {
        id: Option<String>,
    },
    /// Answered in the agent's own format.
    Other {
        method: String,
    },
}

impl PendingRequest {
    /// The call that it asks about, if it is a permission request.
    pub(super) fn tool(&self) -> Option<&str> {
        match &self.format {
            AnswerFormat::Permission { tool, .. } => tool.as_deref(),
            AnswerFormat::Form { .. } | AnswerFormat::Link { .. } | AnswerFormat::Other { .. } => {
                None
            }
        }
    }
}

pub(super) struct FormField {
    pub(super) id: String,
    pub(super) question: String,
    /// The JSON type.
    pub(super) kind: String,
    pub(super) choices: Vec<String>,
    /// The field for an answer that is not among the choices.
    pub(super) other: Option<String>,
}

impl Translator {
    pub(super) fn request(
        &mut self,
        method: &str,
        id: Value<'_>,
        params: Option<Value<'_>>,
        out: &mut Out<'_>,
    ) {
        let id = id.json();
        if !id
            .get()
            .starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
        {
            return;
        }
        match method {
            "session/request_permission" => self.permission(id, params, out),
            "elicitation/create" => self.elicitation(id, params, out),
            _ => {
                self.advance(out);
                let format = AnswerFormat::Other { method: method.to_owned() };
                let input = params.map(Value::json);
                let request = raised(RequestKind::Other, input);
                self.raise(
                    id,
                    None,
                    format,
                    RequestRaised { name: Some(Text::from(method)), ..request },
                    out,
                );
            }
        }
    }

    fn permission(&mut self, id: Json<'_>, params: Option<Value<'_>>, out: &mut Out<'_>) {
        let read: Permission<'_> = params.and_then(Value::to).unwrap_or_default();
        let call: ToolCall<'_> = read.tool_call.and_then(Value::to).unwrap_or_default();
        let is_ours = self.is_ours(read.session_id.as_deref(), out);
        let tool_id = call.id.as_deref().filter(|id| !self.is_over(id));
        if let Some(tool_id) = tool_id.filter(|_| is_ours) {
            // Gemini first reports a call in its permission request.
            self.in_turn(out);
            let is_new = self.start_tool(tool_id, &call, out);
            self.tool_progress(tool_id, &ToolCall { status: None, ..call.clone() }, is_new, out);
        }
        self.advance(out);
        let options = read.options.unwrap_or_default();
        let options = options.into_iter().filter_map(|option| {
            let kind = option_kind(option.kind.as_deref().unwrap_or_default());
            let label = option.name.or_else(|| option.id.clone())?.into_owned();
            Some(RequestOption { id: option.id?.into_owned(), label, kind })
        });
        let options: Vec<_> = options.collect();
        self.ask(id, &call, read.tool_call, options, out);
    }

    /// Raises a permission request for a call, with everything that is known about it.
    fn ask(
        &mut self,
        wire_id: Json<'_>,
        call: &ToolCall<'_>,
        own: Option<Value<'_>>,
        options: Vec<RequestOption<'static>>,
        out: &mut Out<'_>,
    ) {
        let id = call.id.as_deref();
        let tool = id.and_then(|id| Some((id, &mut self.ledger.tools.get(id)?.memo)));
        let known = |text: &String| (!text.is_empty()).then(|| Text::from(text.clone()));
        let tool_name = tool.as_ref().and_then(|(_, tool)| known(&tool.name));
        let title = tool.as_ref().and_then(|(_, tool)| tool.effects.title().map(str::to_owned));
        let title = call.title.clone().or_else(|| title.map(Text::from));
        // Without arguments, the call itself is shown and digested.
        let input = match tool {
            Some((id, tool)) => {
                tool.effects.asked_version = Some(tool.effects.version());
                tool.judged(id, own)
            }
            None => own.map(|quirks| quirks.json().into_owned()),
        };
        let is_input = |text: &String| input.as_ref().is_some_and(|input| input.get() == text);
        let text = Some(read_content(call.content).text)
            .filter(|text| !text.is_empty() && !is_input(text));
        let format =
            AnswerFormat::Permission { tool: id.map(str::to_owned), options: options.clone() };
        let request = RequestRaised {
            tool_name,
            tool_use_id: id.map(Text::from),
            options,
            title,
            message: text.map(Text::from),
            ..raised(RequestKind::Permission, input)
        };
        self.raise(wire_id, id, format, request, out);
    }

    /// Asks again about a call that changed while its request was open: an answer to the old call does not
    /// apply to the new one.
    pub(super) fn ask_again(&mut self, id: &str, out: &mut Out<'_>) {
        let Some(tool) = self.ledger.tools.get(id) else { return };
        if out.is_recording()
            || tool.memo.effects.asked_version.is_none_or(|it| it == tool.memo.effects.version())
        {
            return;
        }
        let is_about = |request: &PendingRequest| request.tool() == Some(id);
        let open = self.ledger.requests.iter().filter(|request| is_about(&request.memo));
        let options = open.filter_map(|request| match &request.memo.format {
            AnswerFormat::Permission { options, .. } => Some(options.clone()),
            AnswerFormat::Form { .. } | AnswerFormat::Link { .. } | AnswerFormat::Other { .. } => {
                None
            }
        });
        let options: Vec<_> = options.collect();
        let reason = Some("the call changed while its request was open");
        let wire_ids = self.settle_where(Ending::WITHDRAWN, reason, out, is_about);
        for (wire_id, options) in wire_ids.into_iter().zip(options) {
            let call = ToolCall { id: Some(id.into()), ..ToolCall::default() };
            self.ask(wire_id, &call, None, options, out);
        }
    }

    /// The call runs. Unless somebody was asked about exactly this and has answered, the session must judge
    /// it.
    pub(super) fn runs(&mut self, id: &str, out: &mut Out<'_>) {
        let mut requests = self.ledger.requests.iter();
        let is_waiting = requests.any(|request| request.memo.tool() == Some(id));
        let Some(tool) = self.ledger.tools.get(id).map(|tool| &mut tool.memo) else { return };
        let version = Some(tool.effects.version());
        let is_known = tool.effects.run_version == version
            || (tool.effects.asked_version == version && !is_waiting);
        if is_known || out.is_recording() {
            return;
        }
        tool.effects.run_version = version;
        out.unasked(tool.unasked(id));
    }

    /// A call that has ended runs again, or another call uses its id.
    pub(super) fn runs_again(&self, id: &str, call: &ToolCall<'_>, out: &mut Out<'_>) {
        let runs = matches!(call.status.as_deref(), Some("in_progress" | "completed"));
        if runs && !out.is_recording() {
            out.unasked(ToolState::of(id, call).unasked(id));
        }
    }

    fn elicitation(&mut self, id: Json<'_>, params: Option<Value<'_>>, out: &mut Out<'_>) {
        let read: Elicitation<'_> = params.and_then(Value::to).unwrap_or_default();
        self.advance(out);
        let is_link = read.mode.as_deref() == Some("url");
        let (questions, format) = if is_link {
            let message = read.message.clone().unwrap_or(Text::from("open the link"));
            let question = Question {
                question: message,
                id: None,
                header: read.url.clone(),
                options: Vec::new(),
                multi_select: false,
                is_secret: false,
            };
            (vec![question], AnswerFormat::Link { id: read.id.as_deref().map(str::to_owned) })
        } else {
            let (questions, fields) = form_questions(read.schema, read.message.as_ref());
            (questions, AnswerFormat::Form { fields })
        };
        let request = RequestRaised {
            tool_use_id: read.tool_call_id.as_deref().map(Text::from),
            questions,
            title: read.url,
            message: read.message,
            name: Some(Text::from("elicitation/create")),
            schema: read.schema.map(Value::json),
            ..raised(RequestKind::Question, params.map(Value::json))
        };
        let subject = read.id.as_deref().or(read.tool_call_id.as_deref());
        self.raise(id, subject, format, request, out);
    }

    /// The agent's ids start over in each process; the subject makes them unique.
    fn raise(
        &mut self,
        wire_id: Json<'_>,
        subject: Option<&str>,
        format: AnswerFormat,
        request: RequestRaised<'_>,
        out: &mut Out<'_>,
    ) {
        let digest = request.input_digest.get(..16).unwrap_or_default();
        let base = format!("{}:{}", subject.unwrap_or(digest), wire_id.get());
        let id = match self.raised_requests.count(&base) {
            0 => base.clone(),
            times => format!("{base}:{}", times + 1),
        };
        let wire_id = wire_id.into_owned();
        let memo = PendingRequest { wire_id: wire_id.clone(), format };
        let tool = request.tool_use_id.as_ref().map(Text::decode);
        let agent = &self.owner(tool.as_deref());
        // A repeated request counts once: its answer has one id to go to.
        if self.ledger.requests.get(&base).is_some() {
            return;
        }
        if self.ledger.requests.open(&id, agent, memo) {
            self.raised_requests.add(&base);
            out.emit_as(agent, RequestRaised { request_id: Text::from(id), ..request });
        } else if !out.is_recording() {
            deny_overload(wire_id.get(), out);
        }
    }

    pub(super) fn notification(
        &mut self,
        method: &str,
        params: Option<Value<'_>>,
        out: &mut Out<'_>,
    ) {
        match method {
            "$/cancel_request" => {
                let Some(id) = params.and_then(|params| params.read::<Json<'_>>("requestId"))
                else {
                    return;
                };
                let wire_ids = self
                    .settle_where(Ending::WITHDRAWN, None, out, |request| request.wire_id == id);
                for id in &wire_ids {
                    out.write(wire::refusal(id, -32800, "request cancelled"));
                }
            }
            "elicitation/complete" => {
                let Some(done) = params.and_then(|params| params.get("elicitationId")?.string())
                else {
                    return;
                };
                let wire_ids = self.settle_where(
                    Ending::RESOLVED,
                    None,
                    out,
                    |request| matches!(&request.format, AnswerFormat::Link { id: Some(id) } if *id == done),
                );
                for id in &wire_ids {
                    out.write(wire::response(id, &serde_json::json!({ "action": "accept" })));
                }
            }
            _ => {}
        }
    }

    /// Settles the open requests that match, and returns the agent's ids for them.
    pub(super) fn settle_where(
        &mut self,
        ending: Ending,
        reason: Option<&str>,
        out: &mut Out<'_>,
        fits: impl Fn(&PendingRequest) -> bool,
    ) -> Vec<Json<'static>> {
        let open = self.ledger.requests.iter().filter(|request| fits(&request.memo));
        let ids: Vec<String> = open.map(|request| request.id.clone()).collect();
        let mut wire_ids = Vec::new();
        for id in ids {
            if let Some(request) = self.ledger.requests.close(&id) {
                out.settled(&request.agent, &id, ending, reason.map(Text::from), None);
                wire_ids.push(request.memo.wire_id);
            }
        }
        wire_ids
    }

    /// Settles the requests about a call that has its result.
    pub(super) fn settle_requests_of(&mut self, tool_id: &str, ending: Ending, out: &mut Out<'_>) {
        self.settle_where(ending, None, out, |request| request.tool() == Some(tool_id));
    }

    /// A recording does not contain the answers. If the agent continues without another update of a call
    /// that it asked about, the call was refused.
    pub(super) fn settle_passed_over(&mut self, out: &mut Out<'_>) {
        if !out.is_recording() {
            return;
        }
        let tools = self.ledger.requests.iter().filter_map(|request| request.memo.tool());
        let tools: Vec<String> = tools.map(str::to_owned).collect();
        let denied = Ending::denied(SettledBy::Client);
        self.settle_where(denied, None, out, |request| {
            matches!(request.format, AnswerFormat::Permission { .. })
        });
        for tool in tools {
            self.fail_tool(&tool, ToolFailure::Denied, "permission was refused", out);
        }
    }

    /// At the end of a turn in a recording, every request has been answered.
    pub(super) fn settle_unseen(&mut self, out: &mut Out<'_>) {
        self.settle_passed_over(out);
        self.settle_where(Ending::RESOLVED, None, out, |_| true);
    }
}

/// A request with only these fields; [`Translator::raise`] sets its id.
fn raised<'a>(kind: RequestKind, input: Option<Json<'a>>) -> RequestRaised<'a> {
    RequestRaised::new("", kind, input)
}

fn option_kind(kind: &str) -> RequestOptionKind {
    match kind {
        "allow_once" => RequestOptionKind::AllowOnce,
        "allow_always" => RequestOptionKind::AllowAlways,
        "reject_once" => RequestOptionKind::RejectOnce,
        "reject_always" => RequestOptionKind::RejectAlways,
        _ => RequestOptionKind::Unknown,
    }
}
