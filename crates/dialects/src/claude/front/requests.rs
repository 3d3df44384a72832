//! Puts the agent's requests to the client, in Claude's format.

use std::collections::BTreeMap;

use agentwire_protocol::event::{RequestKind, RequestRaised};
use agentwire_protocol::{Command, Event, Json, NativeLine, Settlement, Stream};
use serde::{Deserialize, Serialize};

use super::initialize::Flavour;
use super::{ClaudeFront, PendingCall, Stage};
use crate::claude::permission;
use crate::front::Outbox;

/// A request that was put to the client.
#[derive(Clone, Debug)]
pub(super) struct ShownRequest {
    pub(super) kind: RequestKind,
    /// It was asked in the agent's own format, and is answered in it.
    pub(super) is_native: bool,
    /// The tool and its input, as they were shown.
    pub(super) tool: String,
    pub(super) input: Json<'static>,
    /// The text of each question, with the key of its answer.
    pub(super) keys: Vec<(String, String)>,
    pub(super) is_answered: bool,
    /// The agent did not accept the client's answer.
    pub(super) is_refused: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "control_request")]
struct ControlRequest<'r> {
    request_id: &'r str,
    request: BTreeMap<&'static str, Json<'r>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "callback.request")]
struct CallbackRequest<'r> {
    id: &'r str,
    session_id: &'r str,
    payload: BTreeMap<&'static str, Json<'r>>,
}

#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type")]
    kind: String,
}

impl ClaudeFront {
    pub(super) fn raised(
        &mut self,
        event: &Event<'_>,
        request: &RequestRaised<'_>,
        out: &mut Outbox,
    ) {
        let Stage::Running(session) = self.stage.clone() else { return };
        let id = request.request_id.decode().into_owned();
        if self.is_for_nobody(request) {
            let tool = request.tool_name.as_ref().map_or("a tool".into(), |name| name.to_string());
            let message = format!(
                "Claude requested permissions to use {tool}, but you haven't granted it yet."
            );
            let call = out.command(&session, Command::Settle(Settlement::deny(&*id, message)));
            self.calls.insert(call, PendingCall::Settle(id));
            return;
        }
        let native = native_line(event);
        let (tool, input) = self.tool(request);
        let line = match (self.flavour, native) {
            (Flavour::Callback, _) if may_call_back(request.kind) => Json::of(&CallbackRequest {
                id: &id,
                session_id: session.as_str(),
                payload: callback(request, &tool, &input, native.is_some()),
            }),
            (_, Some(line)) => offered(line, request),
            (_, None) => Json::of(&ControlRequest {
                request_id: &id,
                request: control_request(request, &tool, &input),
            }),
        };
        let shown = ShownRequest {
            kind: request.kind,
            is_native: native.is_some(),
            tool,
            input,
            keys: permission::keys(&request.questions),
            is_answered: false,
            is_refused: false,
        };
        self.raised.push((id, line.get().as_bytes().to_vec(), shown));
    }

    /// The tool and its input as Claude would have them. A question is its own tool.
    fn tool(&self, request: &RequestRaised<'_>) -> (String, Json<'static>) {
        match request.kind {
            RequestKind::Question => {
                (permission::QUESTIONS.to_owned(), permission::questions(&request.questions))
            }
            RequestKind::Permission | RequestKind::Hook | RequestKind::Mcp | RequestKind::Other => {
                self.renderer.asked(request)
            }
        }
    }

    /// Whether the client has not said that it answers such requests.
    fn is_for_nobody(&self, request: &RequestRaised<'_>) -> bool {
        match request.kind {
            RequestKind::Permission | RequestKind::Question => !self.options.asks_client,
            RequestKind::Hook | RequestKind::Mcp | RequestKind::Other => false,
        }
    }
}

/// The agent's own line, if it speaks Claude's wire.
fn native_line<'e>(event: &'e Event<'_>) -> Option<&'e str> {
    event.native.iter().find_map(|native| {
        let NativeLine::Json(json) = &native.line else { return None };
        let is_ours = native.dialect == "claude" && native.stream == Stream::Stdout;
        let head: Head = json.read().ok().filter(|_| is_ours)?;
        (head.kind == "control_request").then(|| json.get())
    })
}

/// The agent's own line, except for what "always" would remember: the gateway decides that.
fn offered<'l>(line: &'l str, request: &RequestRaised<'_>) -> Json<'l> {
    const SUGGESTIONS: &str = "permission_suggestions";
    let line = Json::trusted(line);
    let read = |json: &Json<'_>| json.read::<BTreeMap<String, Json<'static>>>().ok();
    if request.kind != RequestKind::Permission {
        return line;
    }
    let Some(mut message) = read(&line) else { return line };
    let Some(mut fields) = message.get("request").and_then(read) else { return line };
    if fields.get(SUGGESTIONS).map(Json::get) == request.suggestions.as_ref().map(Json::get) {
        return line;
    }
    match &request.suggestions {
        Some(kept) => fields.insert(SUGGESTIONS.to_owned(), kept.clone().into_owned()),
        None => fields.remove(SUGGESTIONS),
    };
    message.insert("request".to_owned(), Json::of(&fields));
    Json::of(&message)
}

fn may_call_back(kind: RequestKind) -> bool {
    match kind {
        RequestKind::Permission | RequestKind::Question | RequestKind::Hook => true,
        RequestKind::Mcp | RequestKind::Other => false,
    }
}

fn control_request<'r>(
    request: &'r RequestRaised<'_>,
    tool: &str,
    tool_input: &Json<'r>,
) -> BTreeMap<&'static str, Json<'r>> {
    let mut fields = BTreeMap::new();
    let input = request.input.clone();
    match request.kind {
        RequestKind::Permission | RequestKind::Question => {
            fields.insert("subtype", Json::of(&"can_use_tool"));
            fields.insert("display_name", Json::of(&tool));
            fields.insert("tool_name", Json::of(&tool));
            fields.insert("input", tool_input.clone());
            fields.insert("permission_suggestions", rules(tool, tool_input, request));
            fields.extend(reasons(request));
            if request.input_is_fixed {
                fields.insert("input_is_fixed", Json::of(&true));
            }
            // A client may require one.
            let id = request.tool_use_id.as_ref().unwrap_or(&request.request_id);
            fields.insert("tool_use_id", Json::of(id));
        }
        RequestKind::Hook => {
            fields.insert("subtype", Json::of(&"hook_callback"));
            fields.insert("callback_id", Json::of(&request.callback_id));
            fields.insert("input", input.unwrap_or(Json::EMPTY));
            let id = request.tool_use_id.as_ref();
            fields.extend(id.map(|id| ("tool_use_id", Json::of(id))));
        }
        RequestKind::Mcp => {
            fields.insert("subtype", Json::of(&"mcp_message"));
            fields.insert("server_name", Json::of(&request.name));
            fields.insert("message", input.unwrap_or(Json::EMPTY));
        }
        RequestKind::Other => {
            let subtype =
                if request.schema.is_some() { "elicitation" } else { "request_user_dialog" };
            fields.insert("subtype", Json::of(&subtype));
            fields.insert("mcp_server_name", Json::of(&request.name));
            let message = request.message.as_ref().or(request.title.as_ref());
            fields.insert("message", Json::of(&message));
            fields.extend(request.schema.clone().map(|schema| ("requested_schema", schema)));
            fields.extend(input.map(|input| ("input", input)));
        }
    }
    fields
}

/// The fields that say why the agent asks.
fn reasons(request: &RequestRaised<'_>) -> Vec<(&'static str, Json<'static>)> {
    let words = [
        ("description", request.title.as_ref().or(request.message.as_ref())),
        ("blocked_path", request.blocked_path.as_ref()),
        ("decision_reason", request.message.as_ref()),
    ];
    words.into_iter().filter_map(|(name, words)| Some((name, Json::of(words?)))).collect()
}

fn rules(tool: &str, input: &Json<'_>, request: &RequestRaised<'_>) -> Json<'static> {
    match request.kind {
        RequestKind::Permission if !request.allow_is_once => permission::suggestions(tool, input),
        RequestKind::Permission
        | RequestKind::Question
        | RequestKind::Hook
        | RequestKind::Mcp
        | RequestKind::Other => Json::trusted("[]"),
    }
}

fn callback<'r>(
    request: &'r RequestRaised<'_>,
    tool: &str,
    tool_input: &Json<'r>,
    is_native: bool,
) -> BTreeMap<&'static str, Json<'r>> {
    let mut payload = BTreeMap::new();
    if request.kind == RequestKind::Hook {
        payload.insert("callback_type", Json::of(&"hook"));
        payload.insert("hook_event", Json::of(&request.name));
        payload.insert("hook_input", request.input.clone().unwrap_or(Json::EMPTY));
    } else {
        payload.insert("callback_type", Json::of(&"can_use_tool"));
        payload.insert("tool_name", Json::of(&tool));
        payload.insert("tool_input", tool_input.clone());
        let suggestions = match &request.suggestions {
            Some(own) if is_native => own.clone(),
            Some(_) | None => rules(tool, tool_input, request),
        };
        payload.insert("suggestions", suggestions);
        payload.extend(reasons(request));
    }
    let id = request.tool_use_id.as_ref();
    payload.extend(id.map(|id| ("tool_use_id", Json::of(id))));
    payload
}
