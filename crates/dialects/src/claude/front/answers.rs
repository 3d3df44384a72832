//! The client's answers to what the agent asked.

use std::collections::BTreeMap;

use agentwire_protocol::command::{Behavior, Remember};
use agentwire_protocol::event::RequestKind;
use agentwire_protocol::{Json, Settlement};
use serde::Deserialize;

use super::requests::Shown;

/// An answer of the client.
pub(super) struct Answer {
    pub(super) id: String,
    said: Result<Json<'static>, String>,
}

#[derive(Deserialize)]
struct ControlResponse {
    response: Response,
}

#[derive(Deserialize)]
struct Response {
    request_id: String,
    #[serde(default)]
    subtype: Option<String>,
    #[serde(default)]
    response: Option<Json<'static>>,
    #[serde(default)]
    error: Option<Json<'static>>,
}

#[derive(Deserialize)]
struct CallbackResponse {
    id: String,
    #[serde(default)]
    payload: Option<Json<'static>>,
}

/// What a permission is answered with; both wires' names.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Permission {
    behavior: Option<Behavior>,
    #[serde(alias = "updated_input")]
    updated_input: Option<Json<'static>>,
    #[serde(alias = "updated_permissions")]
    updated_permissions: Option<Json<'static>>,
    message: Option<String>,
    interrupt: Option<bool>,
}

#[derive(Deserialize)]
struct Answered {
    #[serde(default)]
    answers: BTreeMap<String, Json<'static>>,
}

impl Answer {
    pub(super) fn control(line: &str) -> Result<Self, String> {
        let line: ControlResponse = serde_json::from_str(line)
            .map_err(|error| format!("failed to read the response: {error}"))?;
        let Response { request_id: id, subtype, response, error } = line.response;
        let said = if subtype.as_deref() == Some("error") {
            let text = error.map(|error| error.read().unwrap_or_else(|_| error.get().to_owned()));
            Err(text.unwrap_or_else(|| "the client failed to answer".to_owned()))
        } else {
            Ok(response.unwrap_or(Json::checked("{}")))
        };
        Ok(Self { id, said })
    }

    pub(super) fn callback(line: &str) -> Result<Self, String> {
        let line: CallbackResponse = serde_json::from_str(line)
            .map_err(|error| format!("failed to read the response: {error}"))?;
        Ok(Self { id: line.id, said: Ok(line.payload.unwrap_or(Json::checked("{}"))) })
    }

    /// The answer as a settlement of what was shown.
    pub(super) fn settlement(&self, shown: &Shown) -> Settlement {
        let id = self.id.as_str();
        let said = match &self.said {
            Ok(said) => said,
            Err(error) => return Settlement::error(id, error.clone()),
        };
        match shown.kind {
            RequestKind::Hook | RequestKind::Mcp | RequestKind::Other => {
                Settlement::output(id, said.clone())
            }
            RequestKind::Permission | RequestKind::Question => permission(id, said, shown),
        }
    }
}

fn permission(id: &str, said: &Json<'_>, shown: &Shown) -> Settlement {
    let said: Permission = match said.read() {
        Ok(said) => said,
        Err(error) => return Settlement::error(id, format!("failed to read the answer: {error}")),
    };
    match said.behavior {
        // Silence never allows.
        None => Settlement::error(id, "the answer has no behavior"),
        Some(Behavior::Deny) => {
            let message = said.message.unwrap_or_default();
            Settlement { interrupt: said.interrupt, ..Settlement::deny(id, message) }
        }
        Some(Behavior::Allow) if shown.is_native => Settlement {
            updated_input: said.updated_input,
            updated_permissions: said.updated_permissions,
            ..Settlement::allow(id)
        },
        Some(Behavior::Allow) if shown.kind == RequestKind::Question => {
            let answered = said.updated_input.and_then(|input| input.read::<Answered>().ok());
            let answers = answered.map(|answered| answered.answers).unwrap_or_default();
            let key = |question: String| shown.keys.get(&question).cloned().unwrap_or(question);
            let answers = answers.into_iter().map(|(question, answer)| (key(question), answer));
            Settlement { answers: Some(answers.collect()), ..Settlement::allow(id) }
        }
        Some(Behavior::Allow) => {
            // Rules are Claude's own words; to others "from now on" is said.
            let rules = said.updated_permissions;
            let always = rules.is_some_and(|rules| rules.get().contains("\"addRules\""));
            Settlement {
                // Some clients always give it back; to an agent that takes no change it would be one.
                updated_input: said.updated_input.filter(|input| !is_same(input, shown)),
                remember: always.then_some(Remember::Session),
                ..Settlement::allow(id)
            }
        }
    }
}

fn is_same(input: &Json<'_>, shown: &Shown) -> bool {
    let read = |json: &Json<'_>| json.read::<serde_json::Value>().ok();
    shown.input.as_ref().is_some_and(|shown| read(shown) == read(input))
}
