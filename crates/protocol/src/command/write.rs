//! A command as a client writes it.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Command, CommandFrame};
use crate::json::Json;

impl CommandFrame {
    /// The frame on one line: what [`CommandFrame::from_json`] reads.
    pub fn to_json(&self) -> Json<'static> {
        let fields = match &self.command {
            Command::Start(request) => Json::of(request),
            Command::Attach { after } => Json::of(&json!({ "after": after })),
            Command::Prompt(prompt) => Json::of(prompt),
            Command::Interrupt { cancel_queued } => {
                Json::of(&json!({ "cancelQueued": cancel_queued }))
            }
            Command::Stop | Command::Finish => Json::checked("{}"),
            Command::Settle(settlement) => Json::of(settlement),
            Command::Configure(change) => Json::of(change),
            Command::Query { method, args } => {
                Json::of(&BTreeMap::from([("method", Json::of(method)), ("args", Json::of(args))]))
            }
            Command::Rewind { message_id, dry_run } => {
                Json::of(&json!({ "messageId": message_id, "dryRun": dry_run }))
            }
        };
        // What was just written is an object.
        let mut fields: BTreeMap<String, Json<'static>> = fields.read().unwrap_or_default();
        fields.insert("command".to_owned(), Json::of(&self.command.name()));
        if let Some(id) = &self.id {
            fields.insert("id".to_owned(), id.clone());
        }
        if let Some(session) = &self.session_id {
            fields.insert("sessionId".to_owned(), Json::of(session));
        }
        Json::of(&fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Configure, Prompt, Settlement};
    use crate::session::{AgentType, SessionRequest};

    #[test]
    fn what_is_written_is_read_back() {
        let start = SessionRequest {
            agent_type: AgentType::Demo,
            prompt: "/say hi".to_owned(),
            session_id: None,
            fork: false,
            config: None,
        };
        let commands = [
            Command::Start(Box::new(start)),
            Command::Attach { after: 7 },
            Command::Prompt(Prompt {
                message_id: Some("m".to_owned()),
                ..Prompt::text("line\nand \u{2028} \"quotes\"")
            }),
            Command::Interrupt { cancel_queued: true },
            Command::Stop,
            Command::Finish,
            Command::Settle(Settlement::deny("r", "no")),
            Command::Configure(Configure { model: Some(None), ..Configure::default() }),
            Command::Query {
                method: "m".to_owned(),
                args: vec![Json::checked("1e400"), Json::checked("{\"a\":1,\"a\":2}")],
            },
            Command::Rewind { message_id: "m".to_owned(), dry_run: true },
        ];
        for command in commands {
            let name = command.name();
            // The session that a start names is the one to resume.
            let session_id = (name != "start").then(|| "s".to_owned());
            let frame = CommandFrame { id: Some(Json::checked("7")), session_id, command };
            let text = frame.to_json();
            assert_eq!(CommandFrame::from_json(text.get()).unwrap(), frame, "{name}");
            assert!(!text.get().contains(['\n', '\u{2028}']), "{name}");
        }
    }
}
