//! The types of agentwire's protocol: events, commands, errors and ids. Data only.
//!
//! This crate does no I/O and reads no clock. It knows neither the wire of an agent nor the wire of a
//! front; those are in `agentwire-dialects`.

#![warn(missing_docs)]

pub mod command;
pub mod error;
pub mod event;
pub mod id;
pub mod json;
pub mod labels;
pub mod listing;
pub mod native;
pub mod profile;
pub mod reply;
pub mod report;
pub mod schema;
pub mod session;
pub mod shell;
pub mod strict;
pub mod summary;
pub mod usage;
pub mod watch;

pub use command::{
    Answer, Call, Command, CommandFrame, Configure, Frame, FrameError, Image, Inquiry,
    InquiryFrame, Prompt, Settlement,
};
pub use error::{ErrorCode, GatewayError};
pub use event::{Event, EventKind};
pub use id::{MAIN_AGENT, RequestId, SessionId};
pub use json::{Json, JsonObject, Text};
pub use labels::{LabelChange, Labels, SessionChange};
pub use listing::{ListQuery, SessionSort};
pub use native::{Lines, Native, NativeLine, Stream};
pub use profile::Profile;
pub use reply::{OpenRequest, Resume, SessionDetails};
pub use report::{
    SearchHit, SearchQuery, SearchResult, UsageBin, UsageBy, UsageQuery, UsageReport, UsageRow,
};
pub use session::{
    AgentType, ApprovalMode, NewSession, SandboxMode, SessionConfig, SessionRequest,
};
pub use strict::Fields;
pub use summary::{SessionState, SessionSummary, TurnEnd};
pub use usage::{Price, TokenUsage};
pub use watch::{ChangedSession, WatchChange, WatchFrame};
