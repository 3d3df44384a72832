//! Tests that need what not every machine has.

use std::io::Write as _;

/// Says why a test is skipped. Where the variable is set, the machine has what it needs, and the test fails.
pub(crate) fn skipped(why: &str, required: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
    assert!(std::env::var_os(required).is_none(), "{required} is set, but {why}");
}
