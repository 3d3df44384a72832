//! Agents under a keeper, and in a namespace: nothing outlives them, nothing hangs because of them, nothing
//! leaks to them.

mod endings;
mod forking_trees;
mod harness;
mod keeper_attacks;
mod namespace;
mod pipes;
mod start;
