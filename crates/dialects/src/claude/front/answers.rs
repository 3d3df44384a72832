//! The client's answers to what the agent asked.

use agentwire_protocol::command::{Behavior, Remember};
use agentwire_protocol::event::RequestKind;
use agentwire_protocol::{Json, Settlement};
use serde::Deserialize;

use super::requests::Shown;
use crate::claude::permission::{self, Updates};

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

    /// The answer as a settlement of what was shown, and the mode that it sets.
    pub(super) fn settlement(&self, shown: &Shown) -> (Settlement, Option<String>) {
        let id = self.id.as_str();
        let said = match &self.said {
            Ok(said) => said,
            Err(error) => return (Settlement::error(id, error.clone()), None),
        };
        match shown.kind {
            RequestKind::Hook | RequestKind::Mcp | RequestKind::Other => {
                (Settlement::output(id, said.clone()), None)
            }
            RequestKind::Permission | RequestKind::Question => {
                decision(id, said, shown).unwrap_or_else(|why| (Settlement::error(id, why), None))
            }
        }
    }
}

fn decision(
    id: &str,
    said: &Json<'_>,
    shown: &Shown,
) -> Result<(Settlement, Option<String>), String> {
    let said: Permission =
        said.read().map_err(|error| format!("failed to read the answer: {error}"))?;
    let settlement = match said.behavior {
        // Silence never allows.
        None => return Err("the answer has no behavior".to_owned()),
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
            let answers = permission::answers(&shown.keys, said.updated_input.as_ref())?;
            Settlement { answers: Some(answers), ..Settlement::allow(id) }
        }
        Some(Behavior::Allow) => {
            let asked = (&*shown.tool, &shown.input);
            let given = said.updated_permissions.as_ref();
            let updates = given.map(|given| permission::updates(given, asked)).transpose()?;
            let Updates { remember, mode } = updates.unwrap_or_default();
            let is_new = |input: &Json<'_>| !permission::is_same(input, &shown.input);
            let settlement = Settlement {
                updated_input: said.updated_input.filter(is_new),
                remember: remember.then_some(Remember::Session),
                ..Settlement::allow(id)
            };
            return Ok((settlement, mode));
        }
    };
    Ok((settlement, None))
}
