//! The commands that inspect sessions and the setup, run as programs in their own directory.

mod damage;
mod harness;
mod help;
mod locked;
mod logs;
mod model_server;
mod programs;
mod sessions;
mod setup;
