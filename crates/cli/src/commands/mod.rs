//! The verbs, one file each.

pub(crate) mod completions;
pub(crate) mod demo_agent;
pub(crate) mod play;
pub(crate) mod schema;
pub(crate) mod translate;
