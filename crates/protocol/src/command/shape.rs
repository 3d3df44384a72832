//! What a client may say on a line, for the schema.

#![expect(dead_code, reason = "a line is read by its name; these types are its schema")]

use schemars::JsonSchema;

use super::inquiry::{ListFields, RequestsFields, SessionFields};
use super::{
    AttachFields, Configure, InterruptFields, NoFields, Prompt, QueryFields, RewindFields,
    Settlement,
};
use crate::json::Json;
use crate::profile::Profile;
use crate::session::SessionRequest;

/// What a client says on a line: a command to a session, or to the gateway.
#[derive(JsonSchema)]
#[schemars(rename = "CommandFrame", rename_all = "camelCase")]
pub struct CommandShape {
    /// The client's id of the call, given back in the reply.
    id: Option<Json<'static>>,
    /// The session; may be left out where the connection has one.
    session_id: Option<String>,
    #[schemars(flatten)]
    command: Named,
}

#[derive(JsonSchema)]
#[schemars(tag = "command", rename_all = "camelCase")]
enum Named {
    /// Begin a session, or resume one.
    Start(Box<Start>),
    /// Read its events from a point on.
    Attach(Attach),
    /// Work on this.
    Prompt(Prompt),
    /// Stop working on it; the session stays.
    Interrupt(InterruptFields),
    /// End the session.
    Stop(NoFields),
    /// End the session once its work is done.
    Finish(NoFields),
    /// Answer a request.
    Settle(Box<Settlement>),
    /// Change the model or the mode. What is left out stays.
    Configure(Configure),
    /// Ask the agent for something.
    Query(QueryFields),
    /// Put files back to what they were at a message.
    Rewind(RewindFields),
    /// Sessions, newest first.
    List(ListFields),
    /// A session, and what it runs with.
    Show(SessionFields),
    /// What agents ask and wait for: of one session, or of all.
    Requests(RequestsFields),
    /// Show no more events of that session.
    Detach(SessionFields),
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct Start {
    #[schemars(flatten)]
    request: SessionRequest,
    /// Which events are shown.
    #[schemars(default)]
    profile: Profile,
    /// Sent twice, it counts once.
    idempotency_key: Option<String>,
}

#[derive(JsonSchema)]
struct Attach {
    #[schemars(flatten)]
    fields: AttachFields,
    /// Which events are shown.
    #[schemars(default)]
    profile: Profile,
}
