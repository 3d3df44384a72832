//! Results and errors of the app server, as our clients receive them.

use agentwire_protocol::{ErrorCode, GatewayError, Json};
use serde_json::json;

use super::super::app_wire::Refusal;
use crate::json::Value;

/// How the result of a query is converted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Exact,
    Models,
    Commands,
    Servers,
    Account,
}

pub(super) fn refusal(error: Value<'_>) -> GatewayError {
    let refusal: Refusal<'_> = error.to().unwrap_or_default();
    let message = refusal.message.map(|message| message.to_string());
    GatewayError {
        code: match refusal.code {
            Some(-32001) => ErrorCode::Overloaded,
            _ => ErrorCode::AgentFailed,
        },
        message: message.unwrap_or("codex refused the call".to_owned()),
        details: refusal.data.map(Json::into_owned),
    }
}

impl Shape {
    pub(super) fn of(self, result: Option<Value<'_>>) -> Json<'static> {
        let Some(result) = result else { return Json::trusted("null") };
        let data = || result.get("data").into_iter().flat_map(Value::items);
        let text =
            |value: Value<'_>, name: &str| value.read::<Json<'_>>(name).map(Json::into_owned);
        let list: Vec<serde_json::Value> = match self {
            Self::Exact => return result.json().into_owned(),
            Self::Account => {
                let account = result.get("account").map(|account| account.json().into_owned());
                return account.unwrap_or(Json::EMPTY);
            }
            Self::Models => data()
                .map(|model| {
                    json!({
                        "value": text(model, "model"),
                        "displayName": text(model, "displayName"),
                        "description": text(model, "description"),
                    })
                })
                .collect(),
            Self::Commands => data()
                .flat_map(|place| place.get("skills").into_iter().flat_map(Value::items))
                .map(|skill| {
                    json!({
                        "name": text(skill, "name"),
                        "description": text(skill, "description"),
                        "argumentHint": "",
                    })
                })
                .collect(),
            Self::Servers => data()
                .map(|server| {
                    let info = text(server, "serverInfo");
                    let status = if info.is_some() { "connected" } else { "pending" };
                    json!({ "name": text(server, "name"), "status": status, "serverInfo": info })
                })
                .collect(),
        };
        Json::of(&list)
    }
}
