//! `model-server`.

use std::fmt::Write as _;

use agentwire_models::{PLACEHOLDERS, STEPS, programs};

use crate::format;

/// The longest line of an example.
const COLUMNS: usize = 96;

#[derive(Debug, clap::Args)]
pub(crate) struct ModelServer {
    /// Port on 127.0.0.1; 0 picks a free one
    #[arg(long, default_value_t = 0, value_parser = super::port)]
    pub(crate) port: u16,

    /// Log each request on stderr, one JSON object per line
    #[arg(long)]
    pub(crate) log: bool,
}

/// A command; a long one in two lines that a shell joins.
fn continued(line: &str) -> String {
    let mut is_quoted = false;
    let mut place = None;
    for (at, c) in line.char_indices() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted && at + 4 <= COLUMNS => place = Some(at),
            _ => {}
        }
    }
    match place.and_then(|at| line.split_at_checked(at)) {
        Some((start, rest)) if line.len() + 2 > COLUMNS => {
            format!("{start} \\\n    {}", rest.trim_start())
        }
        _ => line.to_owned(),
    }
}

/// The steps and placeholders come from the server's own tables.
pub(super) fn model_server_help() -> String {
    let mut help = "Try it:\n  agentwire model-server --port 4010 --log &\n".to_owned();
    for program in programs("http://127.0.0.1:4010") {
        let line = continued(&program);
        let _ = writeln!(help, "  {line}");
    }
    help.push_str("(Gemini also needs an auth type in its settings: docs/model-server.md.)\n");
    help.push_str(
        "\nor as a prompt: [[think hm]] [[tool Bash {\"command\":\"ls\"}]] [[say there is {result}]]\n\nSteps:\n",
    );
    let pad = |rows: &[(&str, &str)]| rows.iter().map(|(left, _)| left.len()).max().unwrap_or(0);
    for (form, does) in STEPS {
        let width = pad(&STEPS);
        let does = format::wrapped(does, Some(COLUMNS), width + 4, width + 4);
        let _ = writeln!(help, "  {form:<width$}  {does}");
    }
    help.push_str("\nIn TEXT, \\n is a newline, \\] a bracket and {{ a brace. Placeholders:\n");
    for (name, value) in PLACEHOLDERS {
        let _ = writeln!(help, "  {name:<width$}  {value}", width = pad(&PLACEHOLDERS));
    }
    help.push_str(
        "\n\
With TIMES n, the failure happens in the first n attempts only. A tool or a stop ends a response; \
the steps after it answer the next request. A subagent's script goes into its prompt:
  [[tool Task {\"description\":\"look\",\"subagent_type\":\"general-purpose\",\"prompt\":\"[[say hi]]\"}]]
A prompt without steps is echoed.

When it is ready, one JSON line on stderr shows the address:
  {\"ready\":true,\"http\":\"http://127.0.0.1:4010\"}
Ctrl-C stops it. Reference: docs/model-server.md",
    );
    help
}
