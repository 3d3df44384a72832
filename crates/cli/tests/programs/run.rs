//! `agentwire run`, `attach` and `logs` as programs, with the demo agent, over pipes and on a
//! pseudo-terminal.

mod harness;
mod narrow;
mod pipes;
mod policy;
mod reading;
mod signals;
mod terminal;
mod trust;
mod welcome;
