//! The verbs, one file each.

pub(crate) mod attach;
pub(crate) mod completions;
pub(crate) mod demo_agent;
pub(crate) mod logs;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod translate;
