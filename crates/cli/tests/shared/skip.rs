//! Tests that not every machine can run.

use std::io::Write as _;
use std::sync::Once;

/// Tests that download programs or need a browser. They run only where a variable turns them on; there they
/// must pass.
pub(crate) struct Suite {
    variable: &'static str,
    about: &'static str,
    printed: Once,
}

impl Suite {
    pub(crate) const fn new(variable: &'static str, about: &'static str) -> Self {
        Self { variable, about, printed: Once::new() }
    }

    /// Whether the tests run. If not, the first call prints how to turn them on.
    pub(crate) fn is_on(&self) -> bool {
        let is_on = std::env::var_os(self.variable).is_some_and(|value| value == "1");
        if !is_on {
            let Self { variable, about, .. } = self;
            self.printed.call_once(|| print(&format!("{about}; run them with {variable}=1")));
        }
        is_on
    }
}

pub(crate) static BROWSER: Suite =
    Suite::new("AGENTWIRE_TEST_BROWSER", "skipped the tests in a browser (they need chromium)");

pub(crate) static REAL: Suite = Suite::new(
    "AGENTWIRE_TEST_REAL",
    "skipped the tests with the real agents (they need node and npm, and download 1.3 GB)",
);

pub(crate) static SDKS: Suite = Suite::new(
    "AGENTWIRE_TEST_SDKS",
    "skipped the tests with the official SDKs (they need python3 with venv, node and npm, and download 500 MB)",
);

/// Prints why a test is skipped. If the variable is set, the test fails: the machine has what it needs.
pub(crate) fn skipped(why: &str, required: &str) {
    print(&format!("skipped: {why}"));
    assert!(std::env::var_os(required).is_none(), "{required} is set, but {why}");
}

/// Past the capture of the test runner, which hides the output of tests that pass.
fn print(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
