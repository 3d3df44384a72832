//! The verbs that look at sessions and at the set-up: the program itself, in a directory of its own.

mod damage;
mod harness;
mod help;
mod locked;
mod logs;
mod model_server;
mod programs;
mod sessions;
mod setup;
