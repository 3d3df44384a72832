//! The shape of a client's line, for the schema.

#![expect(dead_code, reason = "only used for the schema; a line is parsed by its command name")]

use schemars::JsonSchema;

use super::inquiry::{RequestsFields, SessionFields, WatchFields};
use super::{
    AttachFields, CancelFields, Configure, EditFields, InterruptFields, NoFields, Prompt,
    QueryFields, RewindFields, Settlement,
};
use crate::json::Json;
use crate::labels::LabelFields;
use crate::listing::ListQuery;
use crate::profile::Profile;
use crate::report::{SearchQuery, UsageQuery};
use crate::session::SessionRequest;

/// One line of a client: a command to a session, or an inquiry to the gateway.
#[derive(JsonSchema)]
#[schemars(rename = "CommandFrame", rename_all = "camelCase")]
pub struct CommandShape {
    /// The client's id for the call, returned in the reply.
    id: Option<Json<'static>>,
    /// The session; may be omitted if the connection has one.
    session_id: Option<String>,
    #[schemars(flatten)]
    command: Named,
}

#[derive(JsonSchema)]
#[schemars(tag = "command", rename_all = "camelCase")]
enum Named {
    /// Start a session, or resume one.
    Start(Box<Start>),
    /// Read the session's events from a given point.
    Attach(Attach),
    /// Send a prompt.
    Prompt(Prompt),
    /// Stop the current turn; the session stays open.
    Interrupt(InterruptFields),
    /// End the session.
    Stop(NoFields),
    /// End the session once its work is done.
    Finish(NoFields),
    /// Answer a request.
    Settle(Box<Settlement>),
    /// Change the model or the mode. Omitted fields stay as they are.
    Configure(Configure),
    /// Ask the agent for something.
    Query(QueryFields),
    /// Restore files to their state at a message.
    Rewind(RewindFields),
    /// List the prompts that wait for their turn.
    Queue(NoFields),
    /// Cancel a prompt that waits for its turn.
    Cancel(CancelFields),
    /// Change the text of a prompt that waits for its turn.
    Edit(EditFields),
    /// List sessions.
    List(ListQuery),
    /// Change the title, the pin or the tags of a session.
    Label(LabelFields),
    /// Show a session and its config.
    Show(SessionFields),
    /// List open requests: of one session, or of all.
    Requests(RequestsFields),
    /// Report the usage of turns that have ended.
    Usage(UsageQuery),
    /// Search in prompts, answers, thinking, calls and paths.
    Search(SearchQuery),
    /// Stop showing events of that session.
    Detach(SessionFields),
    /// Show all sessions and open requests, and then changes.
    Watch(WatchFields),
    /// Show no more changes.
    Unwatch(NoFields),
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct Start {
    #[schemars(flatten)]
    request: SessionRequest,
    /// Which events to show.
    #[schemars(default)]
    profile: Profile,
    /// A start with a key that was sent before counts once.
    idempotency_key: Option<String>,
}

#[derive(JsonSchema)]
struct Attach {
    #[schemars(flatten)]
    fields: AttachFields,
    /// Which events to show.
    #[schemars(default)]
    profile: Profile,
}
