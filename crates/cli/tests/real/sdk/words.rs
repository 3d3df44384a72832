//! The scripts of the SDKs' scenarios, for each agent. A scenario replaces `$`.

use std::path::Path;

use serde_json::{Value, json};

use crate::agents::Agent;

pub(super) fn words(agent: &Agent) -> Value {
    let mut all = if agent.kind == "demo" { demo() } else { scripted(agent) };
    all["model"] = json!(agent.model);
    all["otherModel"] = json!(agent.other_model);
    all["questionMode"] = json!(agent.question_mode);
    all["noQuestion"] = json!(agent.cannot("question").unwrap_or_default());
    all
}

fn scripted(agent: &Agent) -> Value {
    let words = &agent.words;
    json!({
        "say": "[[say $]]",
        "think": "[[think Hm.]]",
        "hang": "[[hang]]",
        "fail": "[[fail 400 invalid_request_error $]]",
        "sayModel": "[[say {model}]]",
        "saySystem": "[[say {system}]]",
        "sayInput": "[[say {system} {prompt}]]",
        "result": "[[say {result}]]",
        "shell": (words.shell)("$").step(),
        "failing": (words.read)(Path::new("gone.txt")).step(),
        "add": (words.server_tool)("calc", "add", json!({ "a": 1, "b": 2 })).step(),
        "plan": (words.plan)("first", "second"),
        "subagent": (words.subagent)("[[say inside]]").step(),
        "question": (words.question)("Tea?", ["Yes", "No"]).step(),
        "structured": (agent.structured)(&json!({ "n": 7 })),
    })
}

fn demo() -> Value {
    json!({
        "say": "/say $",
        "think": "/think Hm.",
        "hang": "/hang",
        "fail": "/fail $",
        "sayModel": "/say {model}",
        "saySystem": "/say {system}",
        "sayInput": "/say {system} {prompt}",
        "result": "/say {result}",
        "shell": "/bash $",
        "failing": "/read gone.txt",
        "add": "/tool mcp__calc__add {\"a\":1,\"b\":2}",
        "plan": "/plan first | second",
        "subagent": "/task look\n/say inside\n/end",
        "question": "/ask Tea? | Yes | No",
        "structured": "/tool StructuredOutput {\"n\":7}",
    })
}
