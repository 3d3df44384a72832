//! Ids of sessions and requests.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// The `agentId` of the agent that the session started. A subagent has the id of the tool call that spawned
/// it.
pub const MAIN_AGENT: &str = "main";

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $read:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
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
                Self($read(id))
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self::from(id.to_owned())
            }
        }

        impl From<&Self> for $name {
            fn from(id: &Self) -> Self {
                id.clone()
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
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
    /// The id of a session in agentwire, a UUID. Not the agent's own session id, which may change.
    SessionId, plain
}
id! {
    /// The id of a request that an agent raised; unique within its session.
    RequestId, std::convert::identity
}

/// Makes a UUID lower case, so that every UUID has one spelling. Other ids stay unchanged.
fn plain(mut id: String) -> String {
    if is_uuid(&id) {
        id.make_ascii_lowercase();
    }
    id
}

/// Whether a text has the form of a UUID.
pub fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
