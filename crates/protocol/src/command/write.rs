//! Writes commands in their wire format.

use std::collections::BTreeMap;

use serde_json::json;

use super::inquiry::{Inquiry, InquiryFrame};
use super::{Command, CommandFrame};
use crate::id::SessionId;
use crate::json::Json;

impl Command {
    /// The fields on the wire, without the command's name and session.
    pub fn fields(&self) -> Json<'static> {
        match self {
            Command::Start(request) => Json::of(request),
            Command::Attach { after } => Json::of(&json!({ "after": after })),
            Command::Prompt(prompt) => Json::of(prompt),
            Command::Interrupt { cancel_queued } => {
                Json::of(&json!({ "cancelQueued": cancel_queued }))
            }
            Command::Stop | Command::Finish | Command::Queue => Json::EMPTY,
            Command::Cancel { message_id } => Json::of(&json!({ "messageId": message_id })),
            Command::Edit { message_id, text } => {
                Json::of(&json!({ "messageId": message_id, "prompt": text }))
            }
            Command::Settle(settlement) => Json::of(settlement),
            Command::Configure(change) => Json::of(change),
            Command::Query { method, args } => {
                Json::of(&BTreeMap::from([("method", Json::of(method)), ("args", Json::of(args))]))
            }
            Command::Rewind { message_id, dry_run } => {
                Json::of(&json!({ "messageId": message_id, "dryRun": dry_run }))
            }
        }
    }
}

impl CommandFrame {
    /// The frame as one line, in the format that [`CommandFrame::from_json`] reads.
    pub fn to_json(&self) -> Json<'static> {
        let session = self.session_id.as_deref();
        frame(&self.command.fields(), self.command.name(), &self.id, session)
    }
}

impl InquiryFrame {
    /// The frame as one line, in the format that [`Frame::from_json`](super::Frame::from_json) reads.
    pub fn to_json(&self) -> Json<'static> {
        let (fields, session) = match &self.inquiry {
            Inquiry::List(query) => (Json::of(query), None),
            Inquiry::Usage(query) => (Json::of(query), None),
            Inquiry::Search(query) => (Json::of(query), None),
            Inquiry::Label(session, change) => (Json::of(change), Some(session)),
            Inquiry::Watch { after } => {
                let fields = after.as_ref().map(|after| ("after", json!(after)));
                (Json::of(&fields.into_iter().collect::<BTreeMap<_, _>>()), None)
            }
            Inquiry::Unwatch => (Json::EMPTY, None),
            Inquiry::Show(session) | Inquiry::Detach(session) => (Json::EMPTY, Some(session)),
            Inquiry::Requests(session) => (Json::EMPTY, session.as_ref()),
        };
        frame(&fields, self.inquiry.name(), &self.id, session.map(SessionId::as_str))
    }
}

fn frame(
    fields: &Json<'static>,
    name: &str,
    id: &Option<Json<'static>>,
    session: Option<&str>,
) -> Json<'static> {
    // The callers always pass an object.
    let mut fields: BTreeMap<String, Json<'static>> = fields.read().unwrap_or_default();
    fields.insert("command".to_owned(), Json::of(&name));
    if let Some(id) = id {
        fields.insert("id".to_owned(), id.clone());
    }
    if let Some(session) = session {
        fields.insert("sessionId".to_owned(), Json::of(&session));
    }
    Json::of(&fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Configure, Frame, Prompt, Settlement};
    use crate::labels::LabelChange;
    use crate::listing::ListQuery;
    use crate::report::{SearchQuery, UsageBy, UsageQuery};
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
            Command::Queue,
            Command::Cancel { message_id: "m".to_owned() },
            Command::Edit { message_id: "m".to_owned(), text: "other".to_owned() },
            Command::Settle(Settlement::deny("r", "no")),
            Command::Configure(Configure { model: Some(None), ..Configure::default() }),
            Command::Query {
                method: "m".to_owned(),
                args: vec![Json::trusted("1e400"), Json::trusted("{\"a\":1,\"a\":2}")],
            },
            Command::Rewind { message_id: "m".to_owned(), dry_run: true },
        ];
        for command in commands {
            let name = command.name();
            // The `sessionId` of a start is the session to resume.
            let session_id = (name != "start").then(|| "s".to_owned());
            let frame = CommandFrame { id: Some(Json::trusted("7")), session_id, command };
            let text = frame.to_json();
            assert_eq!(CommandFrame::from_json(text.get()).unwrap(), frame, "{name}");
            assert!(!text.get().contains(['\n', '\u{2028}']), "{name}");
            assert_eq!(Frame::from_json(text.get()), Ok(Frame::Command(frame)), "{name}");
        }
    }

    #[test]
    fn what_is_asked_of_the_gateway_is_read_back() {
        let session = SessionId::from("s");
        for inquiry in [
            Inquiry::List(Box::new(ListQuery {
                live: true,
                after: Some("s".to_owned()),
                limit: Some(7),
                q: Some("a b".to_owned()),
                ..ListQuery::default()
            })),
            Inquiry::List(Box::default()),
            Inquiry::Label(
                session.clone(),
                LabelChange { title: Some(None), pinned: Some(true), tags: None },
            ),
            Inquiry::Show(session.clone()),
            Inquiry::Requests(None),
            Inquiry::Requests(Some(session.clone())),
            Inquiry::Usage(UsageQuery { by: Some(UsageBy::Model), ..UsageQuery::default() }),
            Inquiry::Search(Box::new(SearchQuery { q: "a".to_owned(), ..SearchQuery::default() })),
            Inquiry::Detach(session),
            Inquiry::Watch { after: None },
            Inquiry::Watch { after: Some("c.7".to_owned()) },
            Inquiry::Unwatch,
        ] {
            let frame = InquiryFrame { id: Some(Json::trusted("7")), inquiry };
            assert_eq!(Frame::from_json(frame.to_json().get()), Ok(Frame::Inquiry(frame)));
        }
        for wrong in [
            r#"{"command":"show"}"#,
            r#"{"command":"list","sessionId":"s"}"#,
            r#"{"command":"requests","limit":3}"#,
            r#"{"command":"list","limit":"many"}"#,
        ] {
            assert!(Frame::from_json(wrong).is_err(), "{wrong}");
        }
    }
}
