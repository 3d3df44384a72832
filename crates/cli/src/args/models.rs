//! `model-server`.

use std::fmt::Write as _;

use agentwire_models::{PLACEHOLDERS, STEPS, programs};

#[derive(Debug, clap::Args)]
pub(crate) struct ModelServer {
    /// Port on 127.0.0.1; 0 picks a free one
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,

    /// Log each request on stderr, one JSON object per line
    #[arg(long)]
    pub(crate) log: bool,
}

/// The steps and placeholders come from the server's own tables.
pub(super) fn model_server_help() -> String {
    let mut help = "Try it:\n  agentwire model-server --port 4010 --log &\n".to_owned();
    for program in programs("http://127.0.0.1:4010") {
        let _ = writeln!(help, "  {program}");
    }
    help.push_str("(Gemini also needs an auth type in its settings: docs/model-server.md.)\n");
    help.push_str(
        "\nor as a prompt: [[think hm]] [[tool Bash {\"command\":\"ls\"}]] [[say there is {result}]]\n\nSteps:\n",
    );
    let pad = |rows: &[(&str, &str)]| rows.iter().map(|(left, _)| left.len()).max().unwrap_or(0);
    for (form, does) in STEPS {
        let _ = writeln!(help, "  {form:<width$}  {does}", width = pad(&STEPS));
    }
    help.push_str("\nIn TEXT, \\n is a newline, \\] a bracket and {{ a brace. Placeholders:\n");
    for (name, value) in PLACEHOLDERS {
        let _ = writeln!(help, "  {name:<width$}  {value}", width = pad(&PLACEHOLDERS));
    }
    help.push_str(
        "\n\
With TIMES n, the failure happens in the first n attempts only. A tool or a stop ends a response; the
steps after it answer the next request. A subagent's script goes into its prompt:
  [[tool Task {\"description\":\"look\",\"subagent_type\":\"general-purpose\",\"prompt\":\"[[say found]]\"}]]
A prompt without steps is echoed.

When it is ready, one JSON line on stderr shows the address:
  {\"ready\":true,\"http\":\"http://127.0.0.1:4010\"}
Ctrl-C stops it. Reference: docs/model-server.md",
    );
    help
}
