//! Agents under a keeper, and in a namespace: nothing outlives them, nothing hangs on them, nothing leaks to them.

mod common;
mod endings;
mod hostile;
mod hydra;
mod namespace;
mod pipes;
mod start;
