//! The verbs, one file each.

pub(crate) mod agents;
pub(crate) mod attach;
pub(crate) mod claude;
pub(crate) mod completions;
pub(crate) mod demo_agent;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod front;
pub(crate) mod interrupt;
pub(crate) mod logs;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod model_server;
pub(crate) mod permit;
pub(crate) mod play;
pub(crate) mod prune;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod stop;
pub(crate) mod token;
pub(crate) mod translate;
pub(crate) mod trust;
pub(crate) mod wait;
