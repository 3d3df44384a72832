//! Names of things: sessions and requests.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `agentId` of the agent that the session started; subagents carry the id of the tool call
/// that spawned them.
pub const MAIN_AGENT: &str = "main";

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(id)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.to_owned())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// One session of agentwire; a UUID. Not the agent's own session id, which may change.
    SessionId
}
id! {
    /// One request that an agent raised; unique within its session.
    RequestId
}
