//! What a client may ask of the gateway itself, on the line on which it says commands.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{CommandFrame, FrameError, fields, read};
use crate::error::GatewayError;
use crate::id::SessionId;
use crate::json::Json;
use crate::reply::SessionList;

/// What a client may ask of the gateway.
#[derive(Clone, Debug, PartialEq)]
pub enum Inquiry {
    /// Sessions, newest first: `{"sessions","next"?}`.
    List {
        /// Only those that are not over.
        live: bool,
        /// The last of the page before.
        after: Option<SessionId>,
        /// At most so many.
        limit: Option<usize>,
    },
    /// A session, and what it runs with.
    Show(SessionId),
    /// What agents ask and wait for, `{"requests"}`: of one session, or of all.
    Requests(Option<SessionId>),
    /// Show no more events of that session.
    Detach(SessionId),
}

impl Inquiry {
    /// The name as it stands on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::List { .. } => "list",
            Self::Show(_) => "show",
            Self::Requests(_) => "requests",
            Self::Detach(_) => "detach",
        }
    }
}

/// One inquiry of a client on a line.
#[derive(Clone, Debug, PartialEq)]
pub struct InquiryFrame {
    /// The client's id of the call, given back in the reply.
    pub id: Option<Json<'static>>,
    /// What is asked.
    pub inquiry: Inquiry,
}

/// What a client says on a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// To a session.
    Command(CommandFrame),
    /// To the gateway.
    Inquiry(InquiryFrame),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListFields {
    /// Only those that are not over.
    #[serde(default)]
    live: bool,
    /// The `next` of the page before.
    #[serde(default)]
    after: Option<SessionId>,
    /// At most so many; 50, unless it is said.
    #[serde(default)]
    #[schemars(range(min = 1, max = SessionList::LIMIT))]
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SessionFields {
    /// Which session.
    session_id: SessionId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RequestsFields {
    /// Of which session; of all, if it is left out.
    #[serde(default)]
    session_id: Option<SessionId>,
}

impl Frame {
    /// Reads a line: first its name, then the fields of what has that name. A field that it does not have
    /// is refused by name.
    pub fn from_json(text: &str) -> Result<Self, FrameError> {
        let mut fields = fields(text)?;
        let name = fields.get("command").and_then(|name| name.read::<String>().ok());
        let name = name.unwrap_or_default();
        if !matches!(name.as_str(), "list" | "show" | "requests" | "detach") {
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
        "list" => {
            let ListFields { live, after, limit } = read(fields)?;
            Inquiry::List { live, after, limit }
        }
        "requests" => Inquiry::Requests(read::<RequestsFields>(fields)?.session_id),
        "show" => Inquiry::Show(read::<SessionFields>(fields)?.session_id),
        _ => Inquiry::Detach(read::<SessionFields>(fields)?.session_id),
    })
}
