//! Turns that no recording shows, told event by event.

use agentwire_dialects::claude::render::{Options, Renderer, VERSION};
use agentwire_protocol::Event;
use serde_json::{Value, json};

use crate::check::Checker;

/// Renders events given by their own fields; each comes a second after the one before.
fn render(renderer: &mut Renderer, events: &[Value]) -> Vec<Value> {
    let mut lines = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let mut event = event.clone();
        event["id"] = json!(format!("e-{at}"));
        event["sessionId"] = json!("s-1");
        event["seq"] = json!(at + 1);
        event["timestamp"] = json!(format!("2026-01-01T00:00:{at:02}.000Z"));
        let event = Event::from_json(&event.to_string()).expect("an event");
        assert_ne!(event.kind.name(), "unknown");
        renderer.event(&event, &mut |line| lines.push(line.to_owned()));
    }
    lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn started(agent: &str) -> Value {
    json!({"type":"sessionStarted","agentType":agent,"config":{
        "model":"m-1","workingDirectory":"/p","approvalMode":"autoEdit","mcpServers":{"db":{}}}})
}

fn native(json: &Value) -> Value {
    json!([{"dialect":"claude","stream":"stdout","json":json}])
}

fn kinds(lines: &[Value]) -> Vec<String> {
    let kind = |line: &Value| match line["type"].as_str() {
        Some("system" | "result") => format!("{}/{}", line["type"], line["subtype"]),
        _ => line["type"].to_string(),
    };
    lines.iter().map(|line| kind(line).replace('"', "")).collect()
}

#[test]
fn the_version_is_the_measured_one() {
    assert_eq!(VERSION, "2.1.325");
}

/// A limit keeps a prompt from the agent: Claude says nothing of the turn, so we do.
#[test]
fn a_turn_that_claude_never_heard_of_has_both_bounds() {
    let mut renderer = Renderer::new(Options::default());
    let lines = render(
        &mut renderer,
        &[
            started("claude"),
            json!({"type":"turnStarted","turnNumber":1}),
            json!({"type":"turnFailed","turnNumber":1,"error":"the session has spent $2 of $1","reason":"budget"}),
        ],
    );
    assert_eq!(kinds(&lines), ["system/init", "result/error_max_budget_usd"]);
    assert_eq!(lines[0]["model"], "m-1");
    assert_eq!(lines[0]["cwd"], "/p");
    assert_eq!(lines[0]["permissionMode"], "acceptEdits");
    assert_eq!(lines[0]["mcp_servers"], json!([{"name":"db","status":"pending"}]));
    assert_eq!(lines[1]["errors"], json!(["the session has spent $2 of $1"]));
    assert_eq!(lines[1]["duration_ms"], 1000);
    assert_eq!(renderer.last_is_error(), Some(true));
}

/// Claude dies in mid-turn: its lines pass, the result is ours and names the session as Claude did.
#[test]
fn a_turn_that_claude_did_not_end_gets_its_result() {
    let init = json!({"type":"system","subtype":"init","session_id":"c-1","model":"m"});
    let said = json!({"type":"assistant","session_id":"c-1","message":{"content":[]}});
    let mut renderer = Renderer::new(Options::default());
    let lines = render(
        &mut renderer,
        &[
            started("demo"),
            json!({"type":"turnStarted","turnNumber":1,"native":native(&init)}),
            json!({"type":"textChunk","content":"hi","isComplete":true,"native":native(&said)}),
            json!({"type":"toolFailed","toolId":"t","error":"gone","reason":"interrupted"}),
            json!({"type":"turnFailed","turnNumber":1,"error":"the agent died","reason":"died"}),
        ],
    );
    assert_eq!(lines[..2], [init, said]);
    assert_eq!(kinds(&lines[2..]), ["result/error_during_execution"]);
    assert_eq!(lines[2]["session_id"], "c-1");
    assert_eq!(lines[2]["duration_ms"], 3000);
}

/// A `result` may ride on an event before the turn's end, as when it closes a tool call.
#[test]
fn a_result_of_claudes_is_not_said_twice() {
    let result =
        json!({"is_error":true,"subtype":"error_max_turns","errors":["a","b"],"type":"result"});
    let turn = [
        started("claude"),
        json!({"type":"turnStarted","turnNumber":1}),
        json!({"type":"toolFailed","toolId":"t","error":"x","reason":"interrupted","native":native(&result)}),
        json!({"type":"turnFailed","turnNumber":1,"error":"a","reason":"maxTurns"}),
    ];
    let mut renderer = Renderer::new(Options::default());
    let lines = render(&mut renderer, &turn);
    assert_eq!(lines, [result]);
    assert_eq!(renderer.last_is_error(), Some(true));
    // The next turn is bounded anew.
    assert_eq!(
        kinds(&render(
            &mut renderer,
            &[
                json!({"type":"turnStarted","turnNumber":2}),
                json!({"type":"turnCompleted","turnNumber":2,"usage":{},"result":"done"}),
            ]
        )),
        ["system/init", "result/success"]
    );
}

#[test]
fn only_stdout_of_claude_passes() {
    let message = json!({"type":"assistant"});
    let carried = json!([
        {"dialect":"claude","stream":"stderr","json":message},
        {"dialect":"claude","stream":"stdin","json":message},
        {"dialect":"acp","stream":"stdout","json":message},
        {"dialect":"claude","stream":"stdout","text":"{\"type\":\"assistant\""},
        {"dialect":"claude","stream":"stdout","json":["assistant"]},
        {"dialect":"claude","stream":"stdout","base64":"/w=="},
        {"dialect":"claude","stream":"stdout","json":{"type":"system","subtype":"session_state_changed"}},
        {"dialect":"claude","stream":"stdout","text":"{\"type\":\"user\",\"a\":1,\"a\":\"\u{2028}\"}\r"},
    ]);
    let mut lines = Vec::new();
    let event = json!({"id":"e","sessionId":"s","timestamp":"","type":"other","native":carried});
    let event = Event::from_json(&event.to_string()).expect("an event");
    Renderer::new(Options::default()).event(&event, &mut |line| lines.push(line.to_owned()));
    assert_eq!(lines, [r#"{"type":"user","a":1,"a":"\u2028"}"#]);
}

/// Interrupted in mid-tool: the call's error, the words of the interruption, the result.
#[test]
fn an_interruption_is_told_as_claude_tells_it() {
    let lines = render(
        &mut Renderer::new(Options { partial: true }),
        &[
            started("codex"),
            json!({"type":"turnStarted","turnNumber":1}),
            json!({"type":"textChunk","content":"I r\u{2028}un","isComplete":false}),
            json!({"type":"toolStarted","toolId":"t1","toolName":"command_execution","kind":"execute","arguments":{"command":"sleep 9"}}),
            json!({"type":"toolProgress","toolId":"t1","output":"so far"}),
            json!({"type":"toolFailed","toolId":"t1","error":"cut off","reason":"interrupted"}),
            json!({"type":"turnFailed","turnNumber":1,"error":"interrupted","reason":"interrupted"}),
        ],
    );
    let mut checker = Checker::default();
    lines.iter().for_each(|line| checker.line(&line.to_string().replace('\u{2028}', "\\u2028")));
    checker.end(1, "interrupted");
    let whole: Vec<Value> =
        lines.into_iter().filter(|line| line["type"] != "stream_event").collect();
    assert_eq!(
        kinds(&whole),
        ["system/init", "assistant", "assistant", "user", "user", "result/error_during_execution",]
    );
    assert_eq!(whole[1]["message"]["id"], whole[2]["message"]["id"]);
    assert_eq!(whole[2]["message"]["content"][0]["name"], "Bash");
    assert_eq!(whole[3]["message"]["content"][0]["content"], "cut off\nso far");
    let words = "[Request interrupted by user for tool use]";
    assert_eq!(whole[4]["message"]["content"][0]["text"], words);
    assert_eq!(whole[5]["terminal_reason"], "aborted_tools");
}

/// A failed call of the model is an error of the kind that the specifications list, after a message that no
/// model wrote.
#[test]
fn a_failed_model_is_an_error_during_execution() {
    let mut renderer = Renderer::new(Options::default());
    let lines = render(
        &mut renderer,
        &[
            started("gemini"),
            json!({"type":"turnStarted","turnNumber":1}),
            json!({"type":"turnFailed","turnNumber":1,"error":"slow down","errorType":"RATE_LIMITED","reason":"error"}),
        ],
    );
    assert_eq!(kinds(&lines), ["system/init", "assistant", "result/error_during_execution"]);
    assert_eq!(lines[1]["message"]["model"], "<synthetic>");
    assert_eq!(lines[1]["error"], "rate_limit");
    assert_eq!(lines[2]["is_error"], true);
    assert_eq!(lines[2]["errors"], json!(["slow down"]));
    assert_eq!(lines[2].get("result"), None);
    assert_eq!(lines[2]["terminal_reason"], "api_error");
    assert_eq!(renderer.last_is_error(), Some(true));
}

/// A subagent that no call spawned is told as a `Task`, and all it says names that call.
#[test]
fn a_subagent_is_a_call_of_its_parent() {
    let of = |mut event: Value| {
        event["agentId"] = json!("sub-1");
        event["parentAgentId"] = json!("main");
        event
    };
    let lines = render(
        &mut Renderer::new(Options::default()),
        &[
            started("acp"),
            json!({"type":"turnStarted","turnNumber":1}),
            of(json!({"type":"agentSpawned","name":"Explore","prompt":"look"})),
            of(json!({"type":"textChunk","content":"found","isComplete":true})),
            of(json!({"type":"agentFinished","outcome":"completed","result":"it is there"})),
            json!({"type":"turnCompleted","turnNumber":1,"usage":{}}),
        ],
    );
    assert_eq!(
        kinds(&lines),
        ["system/init", "assistant", "user", "assistant", "user", "result/success"]
    );
    let call = &lines[1]["message"]["content"][0];
    assert_eq!(call["name"], "Task");
    assert_eq!(call["input"]["subagent_type"], "Explore");
    assert_eq!(lines[1]["parent_tool_use_id"], Value::Null);
    assert_eq!(lines[2]["parent_tool_use_id"], "sub-1");
    assert_eq!(lines[2]["message"]["content"][0]["text"], "look");
    assert_eq!(lines[3]["parent_tool_use_id"], "sub-1");
    assert_eq!(lines[4]["parent_tool_use_id"], Value::Null);
    assert_eq!(lines[4]["message"]["content"][0]["tool_use_id"], "sub-1");
    assert_eq!(lines[4]["message"]["content"][0]["content"], "it is there");
}

/// Totals run over the session as Claude's do, and cached input is counted beside the rest.
#[test]
fn totals_run_over_the_session() {
    let turn = |number: u64| {
        [
            json!({"type":"turnStarted","turnNumber":number}),
            json!({"type":"turnCompleted","turnNumber":number,"costUsd":0.25,
                "usage":{"inputTokens":100,"cachedTokens":40,"outputTokens":20,"totalTokens":120}}),
        ]
    };
    let events = [vec![started("codex")], turn(1).to_vec(), turn(2).to_vec()].concat();
    let lines = render(&mut Renderer::new(Options::default()), &events);
    let result = &lines[3];
    assert_eq!(result["usage"]["input_tokens"], 60);
    assert_eq!(result["usage"]["cache_read_input_tokens"], 40);
    assert_eq!(result["total_cost_usd"], 0.5);
    assert_eq!(result["modelUsage"]["m-1"]["inputTokens"], 120);
    assert_eq!(result["modelUsage"]["m-1"]["costUSD"], 0.5);
}

/// The turn that follows a change of model or mode begins with what is then valid.
#[test]
fn init_tells_what_is_then_valid() {
    let turn = [
        json!({"type":"turnStarted","turnNumber":1}),
        json!({"type":"turnCompleted","turnNumber":1,"usage":{}}),
    ];
    let changes = [
        json!({"type":"statusChanged","status":"model","message":"m-2"}),
        json!({"type":"statusChanged","status":"mode","message":"plan"}),
        json!({"type":"statusChanged","status":"mcpServer","message":"db","details":{"status":"ready"}}),
        json!({"type":"statusChanged","status":"commands","details":[{"name":"help"},"init"]}),
    ];
    let events = [vec![started("codex")], changes.to_vec(), turn.to_vec()].concat();
    let lines = render(&mut Renderer::new(Options::default()), &events);
    let init = lines.iter().find(|line| line["subtype"] == "init").expect("an init");
    assert_eq!(init["model"], "m-2");
    assert_eq!(init["permissionMode"], "plan");
    assert_eq!(init["mcp_servers"], json!([{"name":"db","status":"connected"}]));
    assert_eq!(init["slash_commands"], json!(["help", "init"]));
}

/// What Claude's own results counted is not lost in one that we add.
#[test]
fn a_result_of_ours_goes_on_from_claudes_totals() {
    let result = json!({"type":"result","subtype":"success","is_error":false,"session_id":"c-1"});
    let mut renderer = Renderer::new(Options::default());
    let lines = render(
        &mut renderer,
        &[
            started("claude"),
            json!({"type":"turnStarted","turnNumber":1}),
            json!({"type":"turnCompleted","turnNumber":1,"costUsd":0.5,"native":native(&result),
                "usage":{"inputTokens":10,"outputTokens":2,"totalTokens":12}}),
            json!({"type":"turnStarted","turnNumber":2}),
            json!({"type":"turnFailed","turnNumber":2,"error":"gone","reason":"died"}),
        ],
    );
    let ours = lines.last().expect("a result");
    assert_eq!(ours["total_cost_usd"], 0.5);
    assert_eq!(ours["modelUsage"]["m-1"]["inputTokens"], 10);
}

/// What is asked for replaces what was told of a call before; a refused call is listed with it.
#[test]
fn a_call_is_what_was_asked_for() {
    let mut renderer = Renderer::new(Options::default());
    let lines = render(
        &mut renderer,
        &[
            started("acp"),
            json!({"type":"turnStarted","turnNumber":1}),
            json!({"type":"toolStarted","toolId":"t1","toolName":"shell","kind":"execute","title":"ls -la"}),
            json!({"type":"requestRaised","requestId":"r1","kind":"permission","inputDigest":"",
                "toolName":"shell","toolUseId":"t1","title":"ls -la","input":{"command":"rm -rf ~"}}),
            json!({"type":"toolFailed","toolId":"t1","error":"no","reason":"denied"}),
            json!({"type":"turnCompleted","turnNumber":1,"usage":{}}),
        ],
    );
    assert_eq!(lines[1]["message"]["content"][0]["input"], json!({"command":"ls -la"}));
    let denials = &lines.last().expect("a result")["permission_denials"];
    assert_eq!(denials[0]["tool_input"], json!({"command":"rm -rf ~"}));
}

/// A plan in the midst of an answer cuts neither the answer nor the count of messages.
#[test]
fn an_answer_goes_on_after_a_plan() {
    for block in [json!({}), json!({"blockId":"b"})] {
        let chunk = |text: &str, is_complete: bool| {
            let mut chunk = json!({"type":"textChunk","content":text,"isComplete":is_complete});
            chunk["blockId"] = block["blockId"].clone();
            chunk
        };
        let plan = json!({"type":"planUpdated","entries":[{"content":"a","status":"pending"}]});
        let tool = json!({"type":"toolStarted","toolId":"t","toolName":"x","arguments":{}});
        let events = [
            started("acp"),
            json!({"type":"turnStarted","turnNumber":1}),
            chunk("before", true),
            tool,
            json!({"type":"toolCompleted","toolId":"t","success":true}),
            chunk("one ", false),
            plan,
            chunk("two", true),
            json!({"type":"turnCompleted","turnNumber":1,"usage":{}}),
        ];
        let lines = render(&mut Renderer::new(Options::default()), &events);
        let result = lines.last().expect("a result");
        assert_eq!((&result["result"], &result["num_turns"]), (&"one two".into(), &2.into()));
    }
}

/// Of a block without end no more than some is held, and no line is longer.
#[test]
fn a_long_block_is_told_in_parts() {
    let piece = "x".repeat(1 << 20);
    let mut events = vec![started("acp"), json!({"type":"turnStarted","turnNumber":1})];
    let chunk = json!({"type":"textChunk","content":piece,"isComplete":false});
    events.extend(std::iter::repeat_n(chunk, 20));
    events.push(json!({"type":"turnCompleted","turnNumber":1,"usage":{}}));
    let lines = render(&mut Renderer::new(Options::default()), &events);
    let said = lines.iter().filter_map(|line| line["message"]["content"][0]["text"].as_str());
    let said: Vec<usize> = said.map(str::len).collect();
    assert_eq!(said, [8 << 20, 8 << 20, 4 << 20]);
    assert!(lines.iter().all(|line| line.to_string().len() < 9 << 20));
}

/// A prompt that never became a turn is one that failed, between others.
#[test]
fn a_refused_prompt_has_both_bounds() {
    let mut renderer = Renderer::new(Options::default());
    let turn = [
        started("codex"),
        json!({"type":"turnStarted","turnNumber":1}),
        json!({"type":"turnCompleted","turnNumber":1,"costUsd":0.25,"usage":{}}),
    ];
    let mut lines = render(&mut renderer, &turn);
    for _ in 0..2 {
        renderer.refused("s-1", "too long", &mut |line| {
            lines.push(serde_json::from_str(line).expect("JSON"));
        });
    }
    let mut checker = Checker::default();
    lines.iter().for_each(|line| checker.line(&line.to_string()));
    checker.end(3, "refused");
    let last = lines.last().expect("a result");
    assert_eq!(last["errors"], json!(["too long"]));
    assert_eq!(last["total_cost_usd"], 0.25);
    assert_eq!(renderer.last_is_error(), Some(true));
}

/// Questions, modes, retries, compactions and the end of a background agent, as Claude tells them.
#[test]
fn what_happens_beside_the_answer_is_told() {
    let background = |mut event: Value| {
        event["agentId"] = json!("bg-1");
        event["parentAgentId"] = json!("main");
        event
    };
    let lines = render(
        &mut Renderer::new(Options { partial: true }),
        &[
            started("codex"),
            json!({"type":"requestRaised","requestId":"m1","kind":"mcp","inputDigest":"","name":"db"}),
            json!({"type":"turnStarted","turnNumber":1}),
            json!({"type":"requestRaised","requestId":"q1","kind":"question","inputDigest":"",
                "questions":[{"question":"Tea?"}]}),
            json!({"type":"requestSettled","requestId":"q1","outcome":"answered","by":"client"}),
            json!({"type":"statusChanged","status":"mode","message":"auto"}),
            json!({"type":"error","message":"again","willRetry":true}),
            json!({"type":"statusChanged","status":"compacted"}),
            background(json!({"type":"agentSpawned","name":"a","background":true})),
            background(json!({"type":"textChunk","content":"x","isComplete":true})),
            background(json!({"type":"agentFinished","outcome":"completed","result":"4"})),
            json!({"type":"turnCompleted","turnNumber":1,"usage":{}}),
        ],
    );
    let mut checker = Checker::default();
    lines.iter().for_each(|line| checker.line(&line.to_string()));
    checker.end(1, "beside");
    let pieces = lines.iter().filter(|line| line["type"] == "stream_event");
    assert!(pieces.clone().all(|piece| piece["parent_tool_use_id"].is_null()));
    assert_eq!(lines[0]["mcp_servers"], json!([{"name":"db","status":"connected"}]));
    let find = |name: &str| {
        let found = lines.iter().find(|line| line["subtype"] == name);
        found.unwrap_or_else(|| panic!("no {name}"))
    };
    let asked =
        lines.iter().find(|line| line["message"]["content"][0]["name"] == "AskUserQuestion");
    let asked = &asked.expect("a call")["message"]["content"][0];
    assert_eq!(
        (&asked["id"], &asked["input"]["questions"][0]["question"]),
        (&"q1".into(), &"Tea?".into())
    );
    assert_eq!(find("status")["permissionMode"], "auto");
    assert_eq!(find("api_retry")["attempt"], 1);
    assert!(lines.iter().any(|line| line["compact_result"] == "success"));
    let told = find("task_notification");
    assert_eq!((&told["summary"], &told["status"]), (&"4".into(), &"completed".into()));
    let usage = &find("success")["usage"];
    assert_eq!(
        (&usage["service_tier"], &usage["server_tool_use"]["web_search_requests"]),
        (&"standard".into(), &0.into())
    );
}

/// A blank line that has lost its space is a line of both sides.
#[test]
fn a_blank_line_of_a_diff_is_kept() {
    let lines = render(
        &mut Renderer::new(Options::default()),
        &[
            started("codex"),
            json!({"type":"turnStarted","turnNumber":1}),
            json!({"type":"fileChanged","filePath":"/a","changeType":"modified","diff":"@@ -1,3 +1,3 @@\n-a\n+b\n\n c\n\n"}),
            json!({"type":"turnCompleted","turnNumber":1,"usage":{}}),
        ],
    );
    let input = &lines[1]["message"]["content"][0]["input"];
    assert_eq!((&input["old_string"], &input["new_string"]), (&"a\n\nc".into(), &"b\n\nc".into()));
}

/// What a subagent was told may be known only when it has spoken: its message ends there.
#[test]
fn a_prompt_that_is_told_late_stands_between_two_messages() {
    let of = |mut event: Value| {
        event["agentId"] = json!("toolu_1");
        event["parentAgentId"] = json!("main");
        event
    };
    let text = |words: &str| of(json!({"type":"textChunk","content":words,"isComplete":true}));
    let lines = render(
        &mut Renderer::new(Options::default()),
        &[
            started("acp"),
            json!({"type":"turnStarted","turnNumber":1}),
            of(json!({"type":"agentSpawned"})),
            text("before"),
            of(json!({"type":"agentSpawned","prompt":"do it"})),
            text("after"),
            of(json!({"type":"agentFinished","outcome":"completed"})),
            json!({"type":"turnCompleted","turnNumber":1,"usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0}}),
        ],
    );
    let mut checker = Checker::default();
    lines.iter().for_each(|line| checker.line(&line.to_string()));
    let said: Vec<&Value> =
        lines.iter().filter(|line| line["parent_tool_use_id"] == "toolu_1").collect();
    let texts: Vec<&Value> =
        said.iter().map(|line| &line["message"]["content"][0]["text"]).collect();
    assert_eq!(texts, ["before", "do it", "after"]);
    assert_ne!(said[0]["message"]["id"], said[2]["message"]["id"]);
}

/// What agents say of money is added as long as there is a number for it.
#[test]
fn costs_beyond_all_numbers_do_not_count() {
    let turn = |cost: f64| {
        json!({"type":"turnCompleted","turnNumber":1,"costUsd":cost,
            "usage":{"inputTokens":1,"outputTokens":0,"totalTokens":1}})
    };
    let start = || json!({"type":"turnStarted","turnNumber":1});
    let events = [started("acp"), start(), turn(1e308), start(), turn(1e308), start(), turn(0.0)];
    let lines = render(&mut Renderer::new(Options::default()), &events);
    let costs: Vec<&Value> = lines.iter().filter(|line| line["type"] == "result").collect();
    assert_eq!(costs.len(), 3);
    for line in costs {
        assert_eq!(line["total_cost_usd"], 1e308);
        assert_eq!(line["modelUsage"]["m-1"]["costUSD"], 1e308);
    }
}

/// The tools of servers that the client hosts are in `init`, which waits for them; but nothing is said
/// before it.
#[test]
fn tools_of_the_clients_servers_are_in_init() {
    let started = json!({"type":"sessionStarted","agentType":"codex","config":{"mcpServers":{"calc":{"type":"sdk"}}}});
    let turn = json!({"type":"turnStarted","turnNumber":1});
    let asked = json!({"type":"requestRaised","requestId":"m","kind":"mcp","name":"calc","input":{"method":"tools/list"},"inputDigest":"d"});
    let listed = json!({"type":"statusChanged","status":"mcpServer","message":"calc","details":{"status":"connected","tools":["add","sub"]}});
    let text = json!({"type":"textChunk","content":"hi","isComplete":true});
    let mut renderer = Renderer::new(Options::default());
    let lines = render(&mut renderer, &[started.clone(), turn.clone(), asked]);
    assert_eq!(kinds(&lines), [""; 0]);
    let lines = render(&mut renderer, &[listed.clone(), text.clone()]);
    assert_eq!(kinds(&lines), ["system/init", "assistant"]);
    assert_eq!(lines[0]["tools"], json!(["mcp__calc__add", "mcp__calc__sub"]));
    assert_eq!(lines[0]["mcp_servers"], json!([{"name":"calc","status":"connected"}]));
    let mut renderer = Renderer::new(Options::default());
    let lines = render(&mut renderer, &[started, turn, text, listed]);
    assert_eq!(kinds(&lines), ["system/init", "assistant"]);
    assert_eq!(lines[0]["tools"], json!([]));
}

/// A mode that the gateway keeps in Claude's place is reported in Claude's words; one that Claude tells is not
/// told twice.
#[test]
fn a_mode_is_told_once() {
    let status = json!({"type":"system","subtype":"status","status":null,"permissionMode":"plan"});
    let mut renderer = Renderer::new(Options::default());
    let lines = render(
        &mut renderer,
        &[
            started("claude"),
            json!({"type":"statusChanged","status":"mode","message":"acceptEdits"}),
            json!({"type":"statusChanged","status":"mode","message":"plan","native":native(&status)}),
        ],
    );
    assert_eq!(kinds(&lines), ["system/status", "system/status"]);
    assert_eq!(lines[0]["permissionMode"], "acceptEdits");
    assert_eq!(lines[1], status);
}
