//! Every front over every agent: the real program on pipes, with clients that leave nothing unread.

mod agents;
mod bad_input;
mod burst;
mod drive;
mod examples;
mod flood;
mod program;
mod schemas;
