//! Generated recordings: the same seed gives the same bytes. Turns with many text deltas, tool calls with
//! results of 1 to 50 KB, and an occasional image, in each wire's format.

use serde_json::{Value, json};

/// A small number generator. Only reproducibility matters, not quality.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A result size: most are small, a few are large.
    fn size(&mut self) -> usize {
        let doublings = self.below(57) as f64 / 10.0;
        (1000.0 * doublings.exp2()).min(50_000.0) as usize
    }
}

const WORDS: &[&str] = &[
    "the", "function", "returns", "a", "value", "that", "`parse`", "should", "keep", "so", "we",
    "move", "it", "into", "its", "own", "module", "and", "\"test\"", "naïve", "—", "error", "path",
];

const CODE: &[&str] = &[
    "    let value = self.read(name)?;\n",
    "fn main() {\n",
    "\tprintln!(\"{value}\");\n",
    "}\n",
    "/// Reads \"one\" line, C:\\temp included.\n",
    "   1234  -rw-r--r--  1 user user  5120 Nov 15 18:23 src/lib.rs\n",
    "test json::tests::keeps_bytes ... ok\n",
];

fn words(random: &mut Random, count: u64) -> String {
    (0..count).fold(String::new(), |mut text, _| {
        text.push_str(WORDS[random.below(WORDS.len() as u64) as usize]);
        text.push(' ');
        text
    })
}

fn output(random: &mut Random, size: usize) -> String {
    let mut text = String::with_capacity(size + 80);
    while text.len() < size {
        text.push_str(CODE[random.below(CODE.len() as u64) as usize]);
    }
    text
}

fn image(random: &mut Random, size: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..size).map(|_| DIGITS[random.below(64) as usize] as char).collect()
}

/// What happens in one turn, independent of a wire.
pub struct Turn {
    number: u64,
    deltas: Vec<String>,
    tools: Vec<Tool>,
}

struct Tool {
    id: String,
    command: String,
    output: String,
    image: Option<String>,
}

impl Turn {
    fn new(random: &mut Random, number: u64) -> Self {
        let deltas = (0..20 + random.below(60)).map(|_| {
            let count = 1 + random.below(4);
            words(random, count)
        });
        let deltas = deltas.collect();
        let tools = (0..1 + random.below(3))
            .map(|tool| {
                let size = random.size();
                Tool {
                    id: format!("call_{number:06}_{tool}"),
                    command: format!("cargo test --package {}", words(random, 3).trim()),
                    output: output(random, size),
                    image: (random.below(40) == 0).then(|| image(random, 80_000)),
                }
            })
            .collect();
        Self { number, deltas, tools }
    }

    fn text(&self) -> String {
        self.deltas.concat()
    }
}

type Say = fn(&Turn, &mut Vec<Value>);

pub const WIRES: &[(&str, Say)] = &[
    ("claude", claude),
    ("codex", codex_app),
    ("codex-exec", codex_exec),
    ("gemini", gemini),
    ("acp", acp),
];

/// A recording of at least that many bytes.
pub fn recording(say: Say, seed: u64, bytes: usize) -> Vec<u8> {
    let mut recording = Vec::with_capacity(bytes + (1 << 20));
    let mut turns = turns(say, seed);
    while recording.len() < bytes {
        turns(&mut recording);
    }
    recording
}

/// Appends one turn per call, without end.
pub fn turns(say: Say, seed: u64) -> impl FnMut(&mut Vec<u8>) {
    let mut random = Random::new(seed);
    let mut number = 0;
    move |recording| {
        number += 1;
        let mut lines = Vec::new();
        say(&Turn::new(&mut random, number), &mut lines);
        for line in lines {
            serde_json::to_writer(&mut *recording, &line).expect("JSON can be written");
            recording.push(b'\n');
        }
    }
}

const SESSION: &str = "e76dfe97-b723-463d-bcb8-554ac59228c9";

fn uuid(number: u64, line: usize) -> String {
    format!("b8b8492b-6804-46c5-{:04x}-{:012x}", line & 0xffff, number)
}

fn claude(turn: &Turn, lines: &mut Vec<Value>) {
    let usage = json!({"input_tokens":100,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":1,"service_tier":"standard"});
    let message = format!("msg_{:08}", turn.number);
    let event = |event: Value, line: usize| json!({"type":"stream_event","event":event,"session_id":SESSION,"parent_tool_use_id":null,"uuid":uuid(turn.number, line)});
    lines.push(json!({"type":"system","subtype":"init","cwd":"/workspace","session_id":SESSION,"tools":["Bash","Edit","Read"],"mcp_servers":[],"model":"claude-opus-5-5","permissionMode":"default","uuid":uuid(turn.number, 0)}));
    lines.push(event(json!({"type":"message_start","message":{"id":message,"type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"usage":usage}}), 1));
    lines.push(event(
        json!({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}),
        2,
    ));
    for (at, delta) in turn.deltas.iter().enumerate() {
        lines.push(event(json!({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":delta}}), at + 3));
    }
    let block = |block: Value, line: usize| json!({"type":"assistant","message":{"id":message,"type":"message","role":"assistant","model":"claude-opus-5-5","content":[block],"stop_reason":null,"stop_sequence":null,"usage":usage},"parent_tool_use_id":null,"session_id":SESSION,"uuid":uuid(turn.number, line),"timestamp":"2026-11-15T18:23:13.272Z"});
    lines.push(block(json!({"type":"text","text":turn.text()}), 1000));
    lines.push(event(json!({"type":"content_block_stop","index":0}), 1001));
    for tool in &turn.tools {
        lines.push(block(json!({"type":"tool_use","id":tool.id,"name":"Bash","input":{"command":tool.command,"description":"Run it"}}), 1002));
        let mut content = vec![json!({"type":"text","text":tool.output})];
        if let Some(data) = &tool.image {
            content.push(json!({"type":"image","source":{"type":"base64","media_type":"image/png","data":data}}));
        }
        lines.push(json!({"type":"user","message":{"role":"user","content":[{"tool_use_id":tool.id,"type":"tool_result","content":content,"is_error":false}]},"parent_tool_use_id":null,"session_id":SESSION,"uuid":uuid(turn.number, 1003),"timestamp":"2026-11-15T18:23:13.419Z"}));
    }
    lines.push(json!({"duration_ms":900,"num_turns":2,"result":"Done.","stop_reason":"end_turn","session_id":SESSION,"total_cost_usd":0.002012 * turn.number as f64,"usage":{"input_tokens":200,"cache_creation_input_tokens":40,"cache_read_input_tokens":60,"output_tokens":50},"modelUsage":{"claude-opus-5-5":{"inputTokens":200 * turn.number,"outputTokens":50 * turn.number,"cacheReadInputTokens":60,"cacheCreationInputTokens":40,"costUSD":0.002012 * turn.number as f64}},"permission_denials":[],"terminal_reason":"completed","is_error":false,"type":"result","subtype":"success","uuid":uuid(turn.number, 1004)}));
}

fn codex_app(turn: &Turn, lines: &mut Vec<Value>) {
    let thread = "01a1e064-31c5-74c3-80fd-daaa3d15f54b";
    let turn_id = uuid(turn.number, 0);
    let mut note = |method: &str, mut params: Value| {
        params["threadId"] = json!(thread);
        params["turnId"] = json!(turn_id);
        lines.push(json!({"method":method,"params":params,"emittedAtMs":1_794_766_025_691_u64}));
    };
    note(
        "turn/started",
        json!({"turn":{"id":turn_id,"items":[],"status":"inProgress","error":null}}),
    );
    let message = format!("msg_{:06}", turn.number);
    note(
        "item/started",
        json!({"item":{"type":"agentMessage","id":message,"text":"","phase":null}}),
    );
    for delta in &turn.deltas {
        note("item/agentMessage/delta", json!({"itemId":message,"delta":delta}));
    }
    note(
        "item/completed",
        json!({"item":{"type":"agentMessage","id":message,"text":turn.text(),"phase":null}}),
    );
    for tool in &turn.tools {
        let item = |status: &str, output: Value, code: Value| json!({"item":{"type":"commandExecution","id":tool.id,"command":tool.command,"cwd":"/workspace/project","processId":null,"source":"agent","status":status,"commandActions":[],"aggregatedOutput":output,"exitCode":code,"durationMs":12}});
        note("item/started", item("inProgress", Value::Null, Value::Null));
        for part in tool.output.as_bytes().chunks(2000).take(4) {
            note(
                "item/commandExecution/outputDelta",
                json!({"itemId":tool.id,"delta":String::from_utf8_lossy(part)}),
            );
        }
        note("item/completed", item("completed", json!(tool.output), json!(0)));
        if let Some(data) = &tool.image {
            let content = json!([{"type":"image","data":data,"mimeType":"image/png"}]);
            let id = format!("{}_shot", tool.id);
            note(
                "item/started",
                json!({"item":{"type":"mcpToolCall","id":id,"server":"browser","tool":"screenshot","arguments":{},"status":"inProgress"}}),
            );
            note(
                "item/completed",
                json!({"item":{"type":"mcpToolCall","id":id,"server":"browser","tool":"screenshot","arguments":{},"status":"completed","result":{"content":content,"structuredContent":null}}}),
            );
        }
    }
    let tokens = json!({"totalTokens":120,"inputTokens":100,"cachedInputTokens":40,"cacheWriteInputTokens":0,"outputTokens":20,"reasoningOutputTokens":5});
    note(
        "thread/tokenUsage/updated",
        json!({"tokenUsage":{"total":tokens,"last":tokens,"modelContextWindow":258_400}}),
    );
    note(
        "turn/completed",
        json!({"turn":{"id":turn_id,"items":[],"status":"completed","error":null,"durationMs":507}}),
    );
}

fn codex_exec(turn: &Turn, lines: &mut Vec<Value>) {
    if turn.number == 1 {
        lines.push(json!({"type":"thread.started","thread_id":SESSION}));
    }
    lines.push(json!({"type":"turn.started"}));
    for (at, text) in turn.deltas.chunks(4).enumerate() {
        lines.push(json!({"type":"item.completed","item":{"id":format!("item_{at}"),"type":"agent_message","text":text.concat()}}));
    }
    for tool in &turn.tools {
        lines.push(json!({"type":"item.started","item":{"id":tool.id,"type":"command_execution","command":tool.command,"aggregated_output":"","exit_code":null,"status":"in_progress"}}));
        lines.push(json!({"type":"item.completed","item":{"id":tool.id,"type":"command_execution","command":tool.command,"aggregated_output":tool.output,"exit_code":0,"status":"completed"}}));
        if let Some(data) = &tool.image {
            let id = format!("{}_shot", tool.id);
            lines.push(json!({"type":"item.started","item":{"id":id,"type":"mcp_tool_call","server":"browser","tool":"screenshot","arguments":{},"result":null,"error":null,"status":"in_progress"}}));
            lines.push(json!({"type":"item.completed","item":{"id":id,"type":"mcp_tool_call","server":"browser","tool":"screenshot","arguments":{},"result":{"content":[{"type":"image","data":data,"mimeType":"image/png"}],"structured_content":null},"error":null,"status":"completed"}}));
        }
    }
    lines.push(json!({"type":"turn.completed","usage":{"input_tokens":100 * turn.number,"cached_input_tokens":40,"output_tokens":20 * turn.number,"reasoning_output_tokens":5}}));
}

fn gemini(turn: &Turn, lines: &mut Vec<Value>) {
    let time = "2026-11-15T18:29:37.291Z";
    lines.push(
        json!({"type":"init","timestamp":time,"session_id":SESSION,"model":"gemini-2.5-pro"}),
    );
    lines.push(json!({"type":"message","timestamp":time,"role":"user","content":"Go on"}));
    for delta in &turn.deltas {
        lines.push(json!({"type":"message","timestamp":time,"role":"assistant","content":delta,"delta":true}));
    }
    for tool in &turn.tools {
        lines.push(json!({"type":"tool_use","timestamp":time,"tool_name":"run_shell_command","tool_id":tool.id,"parameters":{"command":tool.command}}));
        let output = tool.image.as_ref().unwrap_or(&tool.output);
        lines.push(json!({"type":"tool_result","timestamp":time,"tool_id":tool.id,"status":"success","output":output}));
    }
    lines.push(json!({"type":"result","timestamp":time,"status":"success","stats":{"total_tokens":385,"input_tokens":350,"output_tokens":35,"cached":0,"input":350,"duration_ms":258,"tool_calls":2,"models":{"gemini-2.5-pro":{"total_tokens":385,"input_tokens":350,"output_tokens":35,"cached":0,"input":350}}}}));
}

fn acp(turn: &Turn, lines: &mut Vec<Value>) {
    let mut update = |update: Value| {
        lines.push(json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":SESSION,"update":update}}));
    };
    for delta in &turn.deltas {
        update(
            json!({"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":delta}}),
        );
    }
    for tool in &turn.tools {
        update(
            json!({"sessionUpdate":"tool_call","toolCallId":tool.id,"status":"in_progress","title":tool.command,"content":[],"locations":[],"kind":"execute","rawInput":{"command":tool.command}}),
        );
        let mut content =
            vec![json!({"type":"content","content":{"type":"text","text":tool.output}})];
        if let Some(data) = &tool.image {
            content.push(json!({"type":"content","content":{"type":"image","data":data,"mimeType":"image/png"}}));
        }
        update(
            json!({"sessionUpdate":"tool_call_update","toolCallId":tool.id,"status":"completed","title":tool.command,"content":content,"locations":[],"kind":"execute"}),
        );
    }
    lines.push(json!({"jsonrpc":"2.0","id":turn.number,"result":{"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":350,"output_tokens":35},"model_usage":[]}}}}));
}
