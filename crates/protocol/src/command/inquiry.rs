//! Inquiries to the gateway itself, sent on the same line protocol as commands.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{CommandFrame, FrameError, fields, read};
use crate::error::GatewayError;
use crate::id::SessionId;
use crate::json::Json;
use crate::labels::{LabelChange, LabelFields};
use crate::listing::ListQuery;
use crate::report::{SearchQuery, UsageQuery};

/// An inquiry to the gateway.
#[derive(Clone, Debug, PartialEq)]
pub enum Inquiry {
    /// Sessions: `{"sessions","next"?}`.
    List(Box<ListQuery>),
    /// Change the labels of a session.
    Label(SessionId, LabelChange),
    /// A session and its config.
    Show(SessionId),
    /// Open requests, `{"requests"}`: of one session, or of all.
    Requests(Option<SessionId>),
    /// Usage over time.
    Usage(UsageQuery),
    /// Search in the texts of sessions.
    Search(Box<SearchQuery>),
    /// Stop showing events of that session.
    Detach(SessionId),
    /// Show the sessions and open requests of all, and then changes.
    Watch {
        /// The cursor of the last change that the client has.
        after: Option<String>,
    },
    /// Show no more changes.
    Unwatch,
}

impl Inquiry {
    /// The name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::List(_) => "list",
            Self::Label(..) => "label",
            Self::Show(_) => "show",
            Self::Requests(_) => "requests",
            Self::Usage(_) => "usage",
            Self::Search(_) => "search",
            Self::Detach(_) => "detach",
            Self::Watch { .. } => "watch",
            Self::Unwatch => "unwatch",
        }
    }
}

/// One inquiry line of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct InquiryFrame {
    /// The client's id for the call, returned in the reply.
    pub id: Option<Json<'static>>,
    /// The inquiry.
    pub inquiry: Inquiry,
}

/// One line of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// A command to a session.
    Command(CommandFrame),
    /// An inquiry to the gateway.
    Inquiry(InquiryFrame),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WatchFields {
    /// The `cursor` of the last change that the client has; without it, everything is shown.
    #[serde(default)]
    after: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SessionFields {
    /// The session.
    session_id: SessionId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RequestsFields {
    /// Only requests of this session; of all sessions if omitted.
    #[serde(default)]
    session_id: Option<SessionId>,
}

impl Frame {
    /// Reads a line: first its name, then the fields that belong to that name. An unknown field is refused;
    /// the error names it.
    pub fn from_json(text: &str) -> Result<Self, FrameError> {
        let mut fields = fields(text)?;
        let name = fields.get("command").and_then(|name| name.read::<String>().ok());
        let name = name.unwrap_or_default();
        let is_inquiry = matches!(
            name.as_str(),
            "list"
                | "show"
                | "requests"
                | "label"
                | "detach"
                | "watch"
                | "unwatch"
                | "usage"
                | "search"
        );
        if !is_inquiry {
            return CommandFrame::of(fields).map(Self::Command);
        }
        let id = fields.remove("id");
        fields.remove("command");
        match inquiry(&name, &Json::of(&fields)) {
            Ok(inquiry) => Ok(Self::Inquiry(InquiryFrame { id, inquiry })),
            Err(error) => Err(FrameError { id, error }),
        }
    }
}

fn inquiry(name: &str, fields: &Json<'static>) -> Result<Inquiry, GatewayError> {
    Ok(match name {
        "list" => Inquiry::List(Box::new(read(fields)?)),
        "label" => {
            let LabelFields { session_id, title, pinned, tags } = read(fields)?;
            Inquiry::Label(session_id, LabelChange { title, pinned, tags }.checked()?)
        }
        "usage" => Inquiry::Usage(read(fields)?),
        "search" => Inquiry::Search(Box::new(read(fields)?)),
        "requests" => Inquiry::Requests(read::<RequestsFields>(fields)?.session_id),
        "watch" => Inquiry::Watch { after: read::<WatchFields>(fields)?.after },
        // What ends something is never refused for its form.
        "unwatch" => Inquiry::Unwatch,
        "show" => Inquiry::Show(read::<SessionFields>(fields)?.session_id),
        _ => Inquiry::Detach(read::<SessionFields>(fields)?.session_id),
    })
}
