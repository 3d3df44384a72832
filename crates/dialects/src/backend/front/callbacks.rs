//! Requests of agents that the client answers: `callback.request` and `callback.response`.

use std::collections::{BTreeMap, VecDeque};

use agentwire_protocol::command::{Behavior, Remember};
use agentwire_protocol::event::{
    RequestKind, RequestOutcome, RequestRaised, RequestSettled, SettledBy, UNANSWERED,
};
use agentwire_protocol::{Json, RequestId, SessionId, Settlement, Text};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::backend::wire::{Code, Failure, refuse, send};
use crate::claude::permission;
use crate::front::Outbox;
use crate::hooks;
use crate::permission_updates;

/// How many settled callbacks are remembered, to explain late answers.
const OVER_LIMIT: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Callbacks {
    last: u64,
    open: BTreeMap<u64, Callback>,
    /// Settled callbacks, and how they were settled.
    over: VecDeque<(u64, String)>,
}

#[derive(Debug)]
struct Callback {
    session: SessionId,
    request: RequestId,
    form: AnswerForm,
    /// Not sent yet: a rule may settle the request before the client sees it.
    unsent: Option<Payload>,
    /// An answer was sent to the session and is not confirmed yet.
    is_answered: bool,
}

#[derive(Debug)]
enum AnswerForm {
    /// A decision on a tool, with the input that was shown. `is_native`: the agent speaks Claude's dialect.
    Tool {
        name: String,
        input: Json<'static>,
        is_native: bool,
    },
    /// Answers to the questions of an agent other than Claude: the text of each question, and its key.
    Questions(Vec<(String, String)>),
    Hook,
}

#[derive(Debug, Serialize)]
#[serde(tag = "callback_type", rename_all = "snake_case")]
enum Payload {
    CanUseTool {
        tool_name: String,
        tool_input: Json<'static>,
        #[serde(skip_serializing_if = "Option::is_none")]
        suggestions: Option<Json<'static>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_use_id: Option<Text<'static>>,
        #[serde(flatten)]
        reasons: Reasons,
    },
    Hook {
        #[serde(skip_serializing_if = "Option::is_none")]
        hook_event: Option<Text<'static>>,
        hook_input: Json<'static>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_use_id: Option<Text<'static>>,
    },
}

/// Why the agent asks, if it says so.
#[derive(Debug, Default, Serialize)]
struct Reasons {
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Text<'static>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision_reason: Option<Text<'static>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked_path: Option<Text<'static>>,
}

/// The fields of a decision on a tool, in all spellings.
const FIELDS: [&str; 9] = [
    "behavior",
    "updated_input",
    "updatedInput",
    "updated_permissions",
    "updatedPermissions",
    "message",
    "interrupt",
    "tool_use_id",
    "toolUseID",
];

#[derive(Deserialize)]
struct Decision {
    behavior: Behavior,
    #[serde(default, alias = "updatedInput")]
    updated_input: Option<Json<'static>>,
    #[serde(default, alias = "updatedPermissions")]
    updated_permissions: Option<Json<'static>>,
    message: Option<String>,
    interrupt: Option<bool>,
}

impl Decision {
    /// Refuses an allow with an unknown field, by name: the field may be misspelt. A deny is never refused
    /// for its form.
    fn of(payload: &BTreeMap<String, Json<'static>>) -> Result<Self, String> {
        let mut fields = payload.clone();
        let is_denial = fields.get("behavior").is_some_and(|it| it.get() == "\"deny\"");
        if is_denial {
            fields.retain(|name, value| match name.as_str() {
                "behavior" => true,
                "message" => value.read::<String>().is_ok(),
                "interrupt" => value.read::<bool>().is_ok(),
                _ => false,
            });
        }
        if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
            return Err(format!("unknown field {unknown}"));
        }
        Json::of(&fields).read().map_err(|error| format!("failed to read the answer: {error}"))
    }
}

pub(super) struct CallbackAnswer {
    pub(super) number: u64,
    pub(super) session: SessionId,
    pub(super) settlement: Settlement,
}

impl Callbacks {
    /// Records a request; `shown` is the tool and its input as they are shown. Returns `false` if no client
    /// can answer it.
    pub(super) fn raise(
        &mut self,
        session: &SessionId,
        request: RequestRaised<'static>,
        shown: (String, Json<'static>),
        is_native: bool,
    ) -> bool {
        let id = RequestId::from(request.request_id.decode().as_ref());
        let is_asking = request.tool_name.as_ref().is_some_and(|it| *it == *permission::QUESTIONS);
        let (form, payload) = match request.kind {
            RequestKind::Permission => tool(request, shown, is_native),
            RequestKind::Question if is_native && is_asking => tool(request, shown, is_native),
            RequestKind::Question if !request.questions.is_empty() => questions(request),
            RequestKind::Hook => (AnswerForm::Hook, hook(request)),
            RequestKind::Question | RequestKind::Mcp | RequestKind::Other => return false,
        };
        self.last += 1;
        let session = session.clone();
        let unsent = Some(payload);
        let callback = Callback { session, request: id, form, unsent, is_answered: false };
        self.open.insert(self.last, callback);
        true
    }

    /// Sends the requests of that session that were not sent yet.
    pub(super) fn tell(&mut self, session: &SessionId, out: &mut Outbox) {
        let open = self.open.iter_mut().filter(|(_, callback)| callback.session == *session);
        for (number, callback) in open {
            if let Some(payload) = callback.unsent.take() {
                send(
                    "callback.request",
                    Some(&name(*number)),
                    Some(session.as_str()),
                    payload,
                    out,
                );
            }
        }
    }

    /// A request was settled. The client gets an error if nobody answered in time.
    pub(super) fn settled(
        &mut self,
        session: &SessionId,
        settled: &RequestSettled<'_>,
        out: &mut Outbox,
    ) {
        let id = settled.request_id.decode();
        let is_it =
            |callback: &Callback| callback.session == *session && callback.request.as_str() == id;
        let found = self.open.iter().find(|(_, callback)| is_it(callback));
        let Some(number) = found.map(|(number, _)| *number) else { return };
        let is_told = self.open.remove(&number).is_some_and(|callback| callback.unsent.is_none());
        let reason = settled.reason.as_ref().map(Text::decode).unwrap_or_default();
        let how = format!("{} by {}", settled.outcome.as_str(), settled.by.as_str());
        if is_told && settled.by == SettledBy::Gateway && reason.starts_with(UNANSWERED) {
            let what = match settled.outcome {
                RequestOutcome::Denied => "denied",
                RequestOutcome::Allowed
                | RequestOutcome::Answered
                | RequestOutcome::Withdrawn
                | RequestOutcome::Resolved => "passed over",
            };
            let failure = Failure::new(Code::CallbackTimeout, format!("{reason}: it was {what}"));
            refuse(Some(&name(number)), Some(session.as_str()), &failure, out);
        }
        self.close(number, how);
    }

    fn close(&mut self, number: u64, how: String) {
        if self.over.len() >= OVER_LIMIT {
            self.over.pop_front();
        }
        self.over.push_back((number, how));
    }

    /// The client answers. The callback stays open until the session reports it settled.
    pub(super) fn answer(
        &mut self,
        id: &str,
        session: Option<&str>,
        payload: &BTreeMap<String, Json<'static>>,
    ) -> Result<CallbackAnswer, Failure> {
        let number = id.strip_prefix("cb-").and_then(|number| number.parse().ok());
        let number = number.filter(|number| name(*number) == id);
        let is_its = |callback: &&mut Callback| {
            session.is_none_or(|session| callback.session.as_str() == session)
        };
        let open = number.and_then(|number| Some((number, self.open.get_mut(&number)?)));
        let Some((number, callback)) = open.filter(|(_, callback)| is_its(callback)) else {
            let over = self.over.iter().find(|(over, _)| Some(*over) == number);
            return Err(not_open(id, over.map(|(_, how)| how.as_str())));
        };
        if callback.is_answered {
            return Err(not_open(id, Some("answered by client")));
        }
        let settlement = callback.form.settlement(&callback.request, payload)?;
        callback.is_answered = true;
        Ok(CallbackAnswer { number, session: callback.session.clone(), settlement })
    }

    /// Why an answer came too late, if it did.
    pub(super) fn late(&self, number: u64) -> Option<Failure> {
        let over = self.over.iter().find(|(over, _)| *over == number);
        over.map(|(_, how)| not_open(&name(number), Some(how)))
    }

    /// The answer was not accepted: the client may answer again.
    pub(super) fn reopen(&mut self, number: u64) {
        if let Some(callback) = self.open.get_mut(&number) {
            callback.is_answered = false;
        }
    }
}

pub(super) fn name(number: u64) -> String {
    format!("cb-{number}")
}

fn not_open(id: &str, settled: Option<&str>) -> Failure {
    match settled {
        Some(how) => Failure {
            details: Some(Json::of(&json!({ "settled": how }))),
            ..Failure::new(
                Code::CallbackNotFound,
                format!("callback {id} is already settled: {how}"),
            )
        },
        None => Failure::new(Code::CallbackNotFound, format!("there is no callback {id}")),
    }
}

fn tool(
    request: RequestRaised<'static>,
    (name, input): (String, Json<'static>),
    is_native: bool,
) -> (AnswerForm, Payload) {
    let rules = match is_native {
        true => request.suggestions,
        false if request.allow_is_once => None,
        false => Some(permission::suggestions(&name, &input)),
    };
    let payload = Payload::CanUseTool {
        tool_name: name.clone(),
        tool_input: input.clone(),
        suggestions: rules,
        tool_use_id: request.tool_use_id,
        reasons: Reasons {
            description: request.title,
            decision_reason: request.message,
            blocked_path: request.blocked_path,
        },
    };
    (AnswerForm::Tool { name, input, is_native }, payload)
}

/// Questions as Claude asks them.
fn questions(request: RequestRaised<'static>) -> (AnswerForm, Payload) {
    let mut input: BTreeMap<String, Json<'static>> =
        permission::questions(&request.questions).read().unwrap_or_default();
    // Who asks, and why, in addition to the questions.
    let message = request.message.iter().map(|message| ("message".to_owned(), Json::of(message)));
    input.extend(message);
    let source = |name: &Text<'_>| Json::of(&json!({ "source": name.decode() }));
    input.extend(request.name.iter().map(|name| ("metadata".to_owned(), source(name))));
    let payload = Payload::CanUseTool {
        tool_name: permission::QUESTIONS.to_owned(),
        tool_input: Json::of(&input),
        suggestions: None,
        tool_use_id: request.tool_use_id,
        reasons: Reasons::default(),
    };
    (AnswerForm::Questions(permission::keys(&request.questions)), payload)
}

fn hook(request: RequestRaised<'static>) -> Payload {
    Payload::Hook {
        hook_event: request.name,
        hook_input: request.input.unwrap_or(Json::EMPTY),
        tool_use_id: request.tool_use_id,
    }
}

impl AnswerForm {
    fn settlement(
        &self,
        request: &RequestId,
        payload: &BTreeMap<String, Json<'static>>,
    ) -> Result<Settlement, Failure> {
        if let Self::Hook = self {
            return hook_answer(request, payload);
        }
        let decision = Decision::of(payload).map_err(|why| open(&why))?;
        let settlement = Settlement {
            behavior: Some(decision.behavior),
            message: decision.message,
            ..Settlement::allow(request.clone())
        };
        if decision.behavior == Behavior::Deny {
            return Ok(Settlement { interrupt: decision.interrupt, ..settlement });
        }
        match self {
            Self::Hook => Ok(settlement),
            Self::Tool { name, input: shown, is_native } => {
                let is_new = |input: &Json<'_>| !permission::is_same(input, shown);
                let updated_input = decision.updated_input.filter(is_new);
                is_form(updated_input.as_ref(), '{', "updated_input must be an object")?;
                let rules = decision.updated_permissions;
                is_form(rules.as_ref(), '[', "updated_permissions must be a list")?;
                let rules = rules.as_ref().map(permission_updates::camel_case).transpose();
                let rules = rules.map_err(|error| open(&error.message))?;
                let rules = rules.filter(|rules| !permission::is_same(rules, &Json::trusted("[]")));
                let settlement = Settlement { updated_input, ..settlement };
                let Some(rules) = rules else { return Ok(settlement) };
                if *is_native {
                    return Ok(Settlement { updated_permissions: Some(rules), ..settlement });
                }
                let updates =
                    permission::updates(&rules, (name, shown)).map_err(|why| open(&why))?;
                if updates.mode.is_some() {
                    return Err(open("setMode is not supported here"));
                }
                let remember = updates.remember.then_some(Remember::Session);
                Ok(Settlement { remember, ..settlement })
            }
            Self::Questions(questions) => {
                let input = decision.updated_input.as_ref();
                let answers = permission::answers(questions, input).map_err(|why| open(&why))?;
                Ok(Settlement { behavior: None, answers: Some(answers), ..settlement })
            }
        }
    }
}

/// Refuses what cannot be read: an agent may treat that as no opinion and run the tool.
fn hook_answer(
    request: &RequestId,
    payload: &BTreeMap<String, Json<'static>>,
) -> Result<Settlement, Failure> {
    let stays = |why: &str| Failure::invalid(format!("{why}; it stays open"));
    if payload.contains_key("behavior") {
        return Err(stays("answer a hook with hook_specific_output, not with behavior"));
    }
    let output = Json::of(payload);
    hooks::Output::check(&output).map_err(|error| stays(&error.message))?;
    Ok(Settlement::output(request.clone(), output))
}

fn is_form(value: Option<&Json<'_>>, opens: char, message: &str) -> Result<(), Failure> {
    match value {
        Some(value) if !value.get().starts_with(opens) => Err(Failure::invalid(message)),
        Some(_) | None => Ok(()),
    }
}

/// A bad answer; the client may answer again.
fn open(why: &str) -> Failure {
    Failure::invalid(format!("{why}; it stays open"))
}
