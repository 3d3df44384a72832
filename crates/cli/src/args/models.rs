//! The words of `model-server`.

use std::fmt::Write as _;

use agentwire_models::{PLACEHOLDERS, STEPS, programs};

#[derive(Debug, clap::Args)]
pub(crate) struct ModelServer {
    /// The port to listen at, on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,

    /// Tell of each request on stderr, one JSON object a line
    #[arg(long)]
    pub(crate) log: bool,
}

/// What is known to the server itself is told in its words.
pub(super) fn model_server_help() -> String {
    let mut help = "Try it:\n  agentwire model-server --port 4010 --log &\n".to_owned();
    for program in programs("http://127.0.0.1:4010") {
        let _ = writeln!(help, "  {program}");
    }
    help.push_str("(Gemini also wants its auth type in its settings: docs/model-server.md.)\n");
    help.push_str(
        "\nor say: [[think hm]] [[tool Bash {\"command\":\"ls\"}]] [[say there is {result}]]\n\nSteps:\n",
    );
    let pad = |rows: &[(&str, &str)]| rows.iter().map(|(left, _)| left.len()).max().unwrap_or(0);
    for (form, does) in STEPS {
        let _ = writeln!(help, "  {form:<width$}  {does}", width = pad(&STEPS));
    }
    help.push_str(
        "\nIn a TEXT \\n is a newline, \\] a bracket, {{ a brace, and there stands for\n",
    );
    for (name, value) in PLACEHOLDERS {
        let _ = writeln!(help, "  {name:<width$}  {value}", width = pad(&PLACEHOLDERS));
    }
    help.push_str(
        "\n\
With TIMES n a trouble comes in the first n attempts only. A tool and a stop end a response; the steps
after them are for the next request. A subagent's script stands in the prompt that it is given:
  [[tool Task {\"description\":\"look\",\"subagent_type\":\"general-purpose\",\"prompt\":\"[[say found]]\"}]]
A prompt without steps is echoed.

One JSON line on stderr says where it listens: {\"ready\":true,\"http\":\"http://127.0.0.1:4010\"}
Ctrl-C ends it. docs/model-server.md has it all.",
    );
    help
}
