//! What agents ask and the client answers: `callback.request` and `callback.response`.

use std::collections::{BTreeMap, VecDeque};

use agentwire_protocol::command::{Behavior, Remember};
use agentwire_protocol::event::{
    Question, RequestKind, RequestRaised, RequestSettled, SettledBy, UNANSWERED,
};
use agentwire_protocol::{AgentType, Json, RequestId, SessionId, Settlement, Text};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::names;
use crate::backend::wire::{Code, Failure, refuse, say};
use crate::front::Outbox;

/// How many callbacks that are over are remembered, to tell who comes late.
const OVER_LIMIT: usize = 1024;

/// The tool by which Claude asks its user.
const QUESTIONS: &str = "AskUserQuestion";

/// The callbacks of all sessions.
#[derive(Debug, Default)]
pub(super) struct Callbacks {
    last: u64,
    open: BTreeMap<u64, Callback>,
    /// Those that are over, and how.
    over: VecDeque<(u64, String)>,
}

/// What a client is asked.
#[derive(Debug)]
struct Callback {
    session: SessionId,
    request: RequestId,
    form: Form,
    /// What is still to be said: a rule may settle it before the client hears of it.
    untold: Option<Payload>,
    /// An answer is on its way.
    is_answered: bool,
}

/// What form its answer has.
#[derive(Debug)]
enum Form {
    /// A decision on a tool that is shown with this input; in Claude's own words, or in ours for
    /// another agent's.
    Tool {
        input: Json<'static>,
        is_native: bool,
    },
    /// Answers to questions that another agent than Claude asks: the words of each, and its key.
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
    },
    Hook {
        #[serde(skip_serializing_if = "Option::is_none")]
        hook_event: Option<Text<'static>>,
        hook_input: Json<'static>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_use_id: Option<Text<'static>>,
    },
}

/// A decision on a tool.
#[derive(Deserialize)]
struct Decision {
    behavior: Behavior,
    #[serde(default, alias = "updatedInput")]
    updated_input: Option<Json<'static>>,
    #[serde(default, alias = "updatedPermissions")]
    updated_permissions: Option<Json<'static>>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    interrupt: Option<bool>,
}

/// An answer that is to be passed on.
pub(super) struct Answered {
    pub(super) number: u64,
    pub(super) session: SessionId,
    pub(super) settlement: Settlement,
}

impl Callbacks {
    /// An agent asks. `shown` is how its tool call was shown. `false` if no client can be asked that.
    pub(super) fn raise(
        &mut self,
        session: &SessionId,
        agent: AgentType,
        request: RequestRaised<'static>,
        shown: Option<(String, Json<'static>)>,
    ) -> bool {
        let id = RequestId::from(request.request_id.decode().as_ref());
        let is_claudes = matches!(agent, AgentType::Claude | AgentType::Demo)
            && request.tool_name.as_ref().is_some_and(|name| *name == *QUESTIONS);
        let (form, payload) = match request.kind {
            RequestKind::Permission => tool(request, shown),
            RequestKind::Question if is_claudes => tool(request, None),
            RequestKind::Question if !request.questions.is_empty() => questions(request),
            RequestKind::Hook => (Form::Hook, hook(request)),
            RequestKind::Question | RequestKind::Mcp | RequestKind::Other => return false,
        };
        self.last += 1;
        let session = session.clone();
        let untold = Some(payload);
        let callback = Callback { session, request: id, form, untold, is_answered: false };
        self.open.insert(self.last, callback);
        true
    }

    /// Says what is still to be said of that session.
    pub(super) fn tell(&mut self, session: &SessionId, out: &mut Outbox) {
        let open = self.open.iter_mut().filter(|(_, callback)| callback.session == *session);
        for (number, callback) in open {
            if let Some(payload) = callback.untold.take() {
                say("callback.request", Some(&name(*number)), Some(session.as_str()), payload, out);
            }
        }
    }

    /// A request is over. The client is told where nobody answered in time.
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
        let is_told = self.open.remove(&number).is_some_and(|callback| callback.untold.is_none());
        let reason = settled.reason.as_ref().map(Text::decode).unwrap_or_default();
        let how = format!("{} by {}", settled.outcome.as_str(), settled.by.as_str());
        if is_told && settled.by == SettledBy::Gateway && reason.starts_with(UNANSWERED) {
            let failure = Failure::new(Code::CallbackTimeout, format!("{reason}: it was denied"));
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

    /// The client answers. It stays open until the session says that it is settled.
    pub(super) fn answer(
        &mut self,
        id: &str,
        session: Option<&str>,
        payload: BTreeMap<String, Json<'static>>,
    ) -> Result<Answered, Failure> {
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
        Ok(Answered { number, session: callback.session.clone(), settlement })
    }

    /// Why an answer came too late, if it did.
    pub(super) fn late(&self, number: u64) -> Option<Failure> {
        let over = self.over.iter().find(|(over, _)| *over == number);
        over.map(|(_, how)| not_open(&name(number), Some(how)))
    }

    /// The answer was not taken: it may be given again.
    pub(super) fn reopen(&mut self, number: u64) {
        if let Some(callback) = self.open.get_mut(&number) {
            callback.is_answered = false;
        }
    }
}

/// The id of a callback.
pub(super) fn name(number: u64) -> String {
    format!("cb-{number}")
}

fn not_open(id: &str, settled: Option<&str>) -> Failure {
    match settled {
        Some(how) => Failure {
            details: Some(Json::of(&json!({ "settled": how }))),
            ..Failure::new(Code::CallbackNotFound, format!("callback {id} is over: {how}"))
        },
        None => Failure::new(Code::CallbackNotFound, format!("there is no callback {id}")),
    }
}

fn tool(
    request: RequestRaised<'static>,
    shown: Option<(String, Json<'static>)>,
) -> (Form, Payload) {
    let RequestRaised { tool_name, input, tool_use_id, suggestions, name, title, .. } = request;
    let is_native = shown.is_none();
    let (tool_name, tool_input) = shown.unwrap_or_else(|| {
        let tool_name = tool_name.or(name).or(title).map(|name| name.to_string());
        let input = input.unwrap_or(Json::checked("{}"));
        (tool_name.unwrap_or_else(|| "unknown".to_owned()), input)
    });
    let tool_input = match tool_input.get().starts_with('{') {
        true => tool_input,
        false => Json::of(&BTreeMap::from([("input", tool_input)])),
    };
    let rules = match suggestions {
        Some(rules) if is_native => Some(rules),
        None if is_native => None,
        Some(_) | None => Some(crate::claude::suggestions(&tool_name, &tool_input)),
    };
    let suggestions = rules.as_ref().map(names::suggestions);
    let form = Form::Tool { input: tool_input.clone(), is_native };
    (form, Payload::CanUseTool { tool_name, tool_input, suggestions, tool_use_id })
}

/// Questions as Claude asks them.
fn questions(request: RequestRaised<'static>) -> (Form, Payload) {
    let asked = |question: &Question<'_>| {
        let options = question.options.iter().map(|option| {
            let description = option.description.as_ref().map(Text::decode).unwrap_or_default();
            json!({ "label": option.label.decode(), "description": description })
        });
        json!({
            "question": question.question.decode(),
            "header": question.header.as_ref().map(Text::decode).unwrap_or_default(),
            "options": options.collect::<Vec<_>>(),
            "multiSelect": question.multi_select,
        })
    };
    let key = |question: &Question<'_>| {
        let words = question.question.to_string();
        let key = question.id.as_ref().map_or_else(|| words.clone(), Text::to_string);
        (words, key)
    };
    let list: Vec<Value> = request.questions.iter().map(asked).collect();
    let mut input = BTreeMap::from([("questions", json!(list))]);
    // Who asks, and what for, beside the questions.
    input.extend(request.message.iter().map(|message| ("message", json!(message.decode()))));
    input.extend(request.name.iter().map(|name| ("metadata", json!({ "source": name.decode() }))));
    let payload = Payload::CanUseTool {
        tool_name: QUESTIONS.to_owned(),
        tool_input: Json::of(&input),
        suggestions: None,
        tool_use_id: request.tool_use_id,
    };
    (Form::Questions(request.questions.iter().map(key).collect()), payload)
}

fn hook(request: RequestRaised<'static>) -> Payload {
    Payload::Hook {
        hook_event: request.name,
        hook_input: names::hook_input(request.input.unwrap_or(Json::checked("{}"))),
        tool_use_id: request.tool_use_id,
    }
}

impl Form {
    fn settlement(
        &self,
        request: &RequestId,
        payload: BTreeMap<String, Json<'static>>,
    ) -> Result<Settlement, Failure> {
        if let Self::Hook = self {
            return Ok(Settlement::output(request.clone(), names::hook_output(payload)));
        }
        let decision: Decision = Json::of(&payload).read().map_err(|error| {
            Failure::invalid(format!("failed to read the answer: {error}; it stays open"))
        })?;
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
            Self::Tool { input: shown, is_native } => {
                let updated_input = decision.updated_input.filter(|input| !is_same(input, shown));
                is_form(updated_input.as_ref(), '{', "updated_input must be an object")?;
                let rules = decision
                    .updated_permissions
                    .filter(|rules| !is_same(rules, &Json::checked("[]")));
                is_form(rules.as_ref(), '[', "updated_permissions must be a list")?;
                let rules = rules.as_ref().map(names::permissions);
                // Rules are Claude's own words; to others "from now on" is said.
                let always =
                    rules.as_ref().is_some_and(|rules| rules.get().contains("\"addRules\""));
                let remember = (!is_native && always).then_some(Remember::Session);
                let updated_permissions = rules.filter(|_| *is_native);
                Ok(Settlement { updated_input, updated_permissions, remember, ..settlement })
            }
            Self::Questions(questions) => {
                let answers = answers(questions, decision.updated_input.as_ref())?;
                Ok(Settlement { behavior: None, answers: Some(answers), ..settlement })
            }
        }
    }
}

fn is_form(value: Option<&Json<'_>>, opens: char, message: &str) -> Result<(), Failure> {
    match value {
        Some(value) if !value.get().starts_with(opens) => Err(Failure::invalid(message)),
        Some(_) | None => Ok(()),
    }
}

/// Clients of Claude give back the input that they allow; most agents take no other.
fn is_same(one: &Json<'_>, other: &Json<'_>) -> bool {
    match (one.read::<Value>(), other.read::<Value>()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// The answers by their keys. A client names them by the words of the question.
fn answers(
    questions: &[(String, String)],
    input: Option<&Json<'_>>,
) -> Result<BTreeMap<String, Json<'static>>, Failure> {
    #[derive(Deserialize)]
    struct Input {
        answers: BTreeMap<String, Json<'static>>,
    }
    let Some(Ok(Input { answers })) = input.map(Json::read) else {
        return Err(Failure::invalid("a question is answered by updated_input.answers"));
    };
    let keyed = answers.into_iter().map(|(words, answer)| {
        match questions.iter().find(|(asked, key)| *asked == words || *key == words) {
            Some((_, key)) => Ok((key.clone(), answer)),
            None => Err(Failure::invalid(format!("there is no question `{words}`"))),
        }
    });
    keyed.collect()
}
