//! One session.

pub mod policy;
