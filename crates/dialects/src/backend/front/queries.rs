//! `query.call`: eight methods, for any agent.

use std::collections::BTreeMap;

use agentwire_protocol::event::AgentInfo;
use agentwire_protocol::{Command, Configure, ErrorCode, GatewayError, Json};
use serde::Serialize;
use serde_json::{Value, json};

use super::options::{count, permission_mode};
use crate::backend::wire::send;
use crate::front::Outbox;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    SupportedModels,
    SupportedCommands,
    McpServerStatus,
    AccountInfo,
    SetModel,
    SetPermissionMode,
    SetMaxThinkingTokens,
    RewindFiles,
}

const METHODS: [(&str, Method); 8] = [
    ("supportedModels", Method::SupportedModels),
    ("supportedCommands", Method::SupportedCommands),
    ("mcpServerStatus", Method::McpServerStatus),
    ("accountInfo", Method::AccountInfo),
    ("setModel", Method::SetModel),
    ("setPermissionMode", Method::SetPermissionMode),
    ("setMaxThinkingTokens", Method::SetMaxThinkingTokens),
    ("rewindFiles", Method::RewindFiles),
];

impl Method {
    pub(super) fn named(name: &str) -> Result<Self, String> {
        let found = METHODS.iter().find(|(known, _)| *known == name);
        found.map(|(_, method)| *method).ok_or_else(|| {
            let known = METHODS.map(|(name, _)| name).join(", ");
            format!("unknown method {name}; expected one of {known}")
        })
    }

    fn name(self) -> &'static str {
        let found = METHODS.iter().find(|(_, method)| *method == self);
        found.map_or("", |(name, _)| name)
    }

    /// The command for the session, or what is wrong with the arguments.
    pub(super) fn command(self, args: &[Json<'static>]) -> Result<Command, String> {
        let first = args.first().filter(|value| value.get() != "null");
        let ask = || Command::Query { method: self.name().to_owned(), args: args.to_vec() };
        let text = |what: &str| match first.map(Json::read::<String>) {
            Some(Ok(text)) => Ok(Some(text)),
            Some(Err(_)) => Err(format!("{} takes {what}", self.name())),
            None => Ok(None),
        };
        let nothing = Configure::default();
        Ok(match self {
            Self::SupportedModels
            | Self::SupportedCommands
            | Self::McpServerStatus
            | Self::AccountInfo => ask(),
            // Null restores the value that the session was started with.
            Self::SetModel => {
                let model = Some(text("the name of a model, or null")?);
                Command::Configure(Configure { model, ..nothing })
            }
            Self::SetPermissionMode => match text("the name of a mode")? {
                Some(mode) => {
                    let (approval_mode, permission_mode) = match permission_mode(mode) {
                        (_, Some(own)) => (None, Some(own)),
                        ours => ours,
                    };
                    Command::Configure(Configure { approval_mode, permission_mode, ..nothing })
                }
                None => return Err("setPermissionMode needs the name of a mode".to_owned()),
            },
            Self::SetMaxThinkingTokens => {
                let tokens = first.map(count).transpose();
                let tokens =
                    tokens.map_err(|_| "setMaxThinkingTokens takes a whole number, or null")?;
                Command::Configure(Configure { max_thinking_tokens: Some(tokens), ..nothing })
            }
            Self::RewindFiles => match text("the uuid of a user message")? {
                Some(message_id) => Command::Rewind { message_id, dry_run: is_dry(args.get(1)) },
                None => return Err("rewindFiles needs the uuid of a user message".to_owned()),
            },
        })
    }

    /// The agent's answer in the form that the client expects.
    pub(super) fn result(self, answer: Json<'static>) -> Json<'static> {
        match self {
            Self::SetModel | Self::SetPermissionMode | Self::SetMaxThinkingTokens => {
                Json::trusted("null")
            }
            Self::SupportedModels => each(answer, |model| {
                let value = first(model, &["value", "modelId", "model", "id"]);
                let name = first(model, &["displayName", "name"]).or_else(|| value.clone());
                vec![("value", value), ("displayName", name), ("description", Some(json!("")))]
            }),
            Self::SupportedCommands => each(answer, |command| {
                let hint = command.get("input").and_then(|input| input.get("hint"));
                let hint = hint.cloned().unwrap_or_else(|| json!(""));
                vec![("description", Some(json!(""))), ("argumentHint", Some(hint))]
            }),
            Self::McpServerStatus | Self::AccountInfo | Self::RewindFiles => answer,
        }
    }
}

/// `{"dryRun": true}` or `true`.
fn is_dry(options: Option<&Json<'_>>) -> bool {
    let options: Value = options.and_then(|options| options.read().ok()).unwrap_or_default();
    let field = first(&options, &["dryRun", "dry_run"]);
    field.unwrap_or(options) == json!(true)
}

fn first(object: &Value, names: &[&str]) -> Option<Value> {
    names.iter().find_map(|name| object.get(name)).cloned()
}

/// Adds to each entry the fields that Claude's clients read, where they are missing.
fn each(
    list: Json<'static>,
    fill: impl Fn(&Value) -> Vec<(&'static str, Option<Value>)>,
) -> Json<'static> {
    let Ok(mut entries) = list.read::<Vec<Value>>() else { return list };
    for entry in &mut entries {
        let missing: Vec<_> =
            fill(entry).into_iter().filter(|(name, _)| entry.get(name).is_none()).collect();
        if let Some(fields) = entry.as_object_mut() {
            fields.extend(
                missing.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))),
            );
        }
    }
    Json::of(&entries)
}

/// What a session's agent has reported about itself.
#[derive(Debug, Default)]
pub(super) struct ReportedInfo(BTreeMap<&'static str, Json<'static>>);

impl ReportedInfo {
    pub(super) fn update_info(&mut self, info: AgentInfo<'static>) {
        let told = [
            (Method::SupportedModels, info.models),
            (Method::SupportedCommands, info.commands),
            (Method::McpServerStatus, info.mcp_servers),
            (Method::AccountInfo, info.account),
        ];
        self.0.extend(told.into_iter().filter_map(|(method, told)| Some((method.name(), told?))));
    }

    /// What the agent reported earlier, if it cannot be asked now.
    pub(super) fn answer(&self, method: Method, error: &GatewayError) -> Option<Json<'static>> {
        let cannot_be_asked = matches!(
            error.code,
            ErrorCode::Unsupported | ErrorCode::Conflict | ErrorCode::SessionNotFound
        );
        self.0.get(method.name()).filter(|_| cannot_be_asked).cloned()
    }
}

#[derive(Serialize)]
struct QueryResult<'r> {
    success: bool,
    result: Json<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'r str>,
}

pub(super) fn send_result(
    id: Option<&str>,
    session: &str,
    result: Result<Json<'static>, &str>,
    out: &mut Outbox,
) {
    let payload = match result {
        Ok(result) => QueryResult { success: true, result, error: None },
        Err(error) => {
            QueryResult { success: false, result: Json::trusted("null"), error: Some(error) }
        }
    };
    send("query.result", id, Some(session), payload, out);
}
