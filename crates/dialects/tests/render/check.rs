//! The rules of the strictest readers of Claude's messages, over a whole session.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

#[derive(Default)]
pub(crate) struct Checker {
    uuids: BTreeSet<String>,
    session_id: Option<String>,
    in_turn: bool,
    pub(crate) results: usize,
    /// Open tool calls: the caller, and the tool's name.
    calls: BTreeMap<String, (Option<String>, String)>,
    threads: BTreeMap<Option<String>, Thread>,
    ended_messages: BTreeSet<String>,
}

#[derive(Default)]
struct Thread {
    message: Option<String>,
    streamed: Option<Streamed>,
}

/// A message that is being streamed.
struct Streamed {
    id: String,
    next: u64,
    /// The open block: its start, the text of its deltas, and the whole block once it has arrived.
    block: Option<(Value, String, Option<Value>)>,
    is_stopping: bool,
}

impl Checker {
    pub(crate) fn line(&mut self, line: &str) {
        assert!(!line.contains(['\n', '\r', '\u{2028}', '\u{2029}']), "{line}");
        let message: Value = serde_json::from_str(line).expect("a line is JSON");
        let uuid = message["uuid"].as_str().expect(line);
        let parts: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert!(parts == [8, 4, 4, 4, 12] && self.uuids.insert(uuid.to_owned()), "{line}");
        let session_id = message["session_id"].as_str().expect(line);
        assert_eq!(self.session_id.get_or_insert(session_id.to_owned()), session_id);
        let nulls =
            ["parent_tool_use_id", "stop_reason", "stop_sequence", "error_status", "status"];
        for part in [&message, &message["message"], &message["event"]] {
            for (key, value) in part.as_object().into_iter().flatten() {
                assert!(!value.is_null() || nulls.contains(&&**key), "{key} is null: {line}");
            }
        }
        match message["type"].as_str().expect(line) {
            "system" => self.system(&message, line),
            "assistant" => self.assistant(&message, line),
            "user" => self.user(&message, line),
            "stream_event" => self.stream_event(&message, line),
            "result" => self.result(&message, line),
            "rate_limit_event" => assert!(message["rate_limit_info"]["status"].is_string()),
            _ => panic!("{line}"),
        }
    }

    /// The session has ended after that many turns.
    pub(crate) fn end(&self, turns: usize, name: &str) {
        assert!(!self.in_turn, "{name}: a turn has no result");
        assert_eq!(self.results, turns, "{name}");
        for thread in self.threads.values() {
            assert!(thread.streamed.is_none(), "{name}: a message does not end");
        }
    }

    fn system(&mut self, message: &Value, line: &str) {
        assert!(message["subtype"].is_string(), "{line}");
        if message["subtype"] != "init" {
            return;
        }
        assert!(!std::mem::replace(&mut self.in_turn, true), "a turn in a turn: {line}");
        for name in ["cwd", "model", "permissionMode", "apiKeySource", "output_style"] {
            assert!(message[name].is_string(), "{name}: {line}");
        }
        for name in ["tools", "slash_commands", "agents", "skills", "plugins"] {
            let items = message[name].as_array().expect(line);
            assert!(items.iter().all(Value::is_string), "{name}: {line}");
        }
        for server in message["mcp_servers"].as_array().expect(line) {
            assert!(server["name"].is_string() && server["status"].is_string(), "{line}");
        }
        let modes = ["default", "acceptEdits", "bypassPermissions", "plan", "dontAsk", "auto"];
        assert!(modes.contains(&message["permissionMode"].as_str().expect(line)), "{line}");
        assert_eq!(message["claude_code_version"], "2.1.325");
    }

    /// The sender. The main agent sends only within turns.
    fn thread(&self, message: &Value, line: &str) -> Option<String> {
        let parent = message.get("parent_tool_use_id").expect(line);
        assert!(parent.is_string() || self.in_turn, "outside of a turn: {line}");
        parent.as_str().map(str::to_owned)
    }

    fn assistant(&mut self, line_message: &Value, line: &str) {
        let who = self.thread(line_message, line);
        let message = &line_message["message"];
        assert!(message["type"] == "message" && message["role"] == "assistant", "{line}");
        let model = message["model"].as_str().expect(line);
        check_usage(&message["usage"], line);
        let [block] = message["content"].as_array().expect(line).as_slice() else {
            panic!("not one block: {line}");
        };
        let id = message["id"].as_str().expect(line).to_owned();
        if model == "<synthetic>" {
            assert!(line_message["error"].is_string() && block["type"] == "text", "{line}");
            return;
        }
        assert!(message["stop_reason"].is_null(), "{line}");
        assert!(!self.ended_messages.contains(&id), "a message goes on after its end: {line}");
        let thread = self.threads.entry(who.clone()).or_default();
        if thread.message.as_ref() != Some(&id) {
            self.ended_messages.extend(thread.message.replace(id.clone()));
        }
        match block["type"].as_str().expect(line) {
            "text" => assert!(block["text"].as_str().is_some_and(|text| !text.is_empty())),
            "thinking" => {
                assert!(block["thinking"].is_string() && block["signature"].is_string(), "{line}");
            }
            "tool_use" => {
                let name = block["name"].as_str().expect(line).to_owned();
                assert!(block["input"].is_object() && !name.is_empty(), "{line}");
                let call = block["id"].as_str().expect(line).to_owned();
                assert!(self.calls.insert(call, (who, name)).is_none(), "called twice: {line}");
            }
            _ => panic!("{line}"),
        }
        if let Some(streamed) = &mut thread.streamed {
            assert_eq!(streamed.id, id);
            let (_, _, whole) = streamed.block.as_mut().expect("a block is open");
            assert!(whole.replace(block.clone()).is_none(), "said twice: {line}");
        }
    }

    fn user(&mut self, line_message: &Value, line: &str) {
        let who = self.thread(line_message, line);
        let message = &line_message["message"];
        assert_eq!(message["role"], "user");
        let thread = self.threads.entry(who.clone()).or_default();
        self.ended_messages.extend(thread.message.take());
        assert!(thread.streamed.is_none(), "the message has not ended: {line}");
        for block in message["content"].as_array().expect(line) {
            if block["type"] == "text" {
                assert!(block["text"].is_string(), "{line}");
                continue;
            }
            assert!(block["type"] == "tool_result" && block["is_error"].is_boolean(), "{line}");
            let call = self.calls.remove(block["tool_use_id"].as_str().expect(line));
            assert_eq!(call.expect("a result without a call").0, who, "{line}");
            match &block["content"] {
                Value::String(_) => {}
                Value::Array(parts) => parts.iter().for_each(|part| check_part(part, line)),
                _ => panic!("{line}"),
            }
        }
    }

    fn stream_event(&mut self, line_message: &Value, line: &str) {
        let who = self.thread(line_message, line);
        let event = &line_message["event"];
        let thread = self.threads.entry(who).or_default();
        let kind = event["type"].as_str().expect(line);
        if kind == "message_start" {
            let message = &event["message"];
            assert!(message["content"].as_array().is_some_and(Vec::is_empty), "{line}");
            assert!(message["model"].is_string() && thread.streamed.is_none(), "{line}");
            let id = message["id"].as_str().expect(line).to_owned();
            thread.streamed = Some(Streamed { id, next: 0, block: None, is_stopping: false });
            return;
        }
        let streamed = thread.streamed.as_mut().expect("a message is open");
        let index = event["index"].as_u64();
        match kind {
            "content_block_start" => {
                assert!(index == Some(streamed.next) && streamed.block.is_none(), "{line}");
                streamed.block = Some((event["content_block"].clone(), String::new(), None));
            }
            "content_block_delta" => {
                let (block, said, whole) = streamed.block.as_mut().expect("a block is open");
                assert!(index == Some(streamed.next) && whole.is_none(), "{line}");
                let (of, field) = match event["delta"]["type"].as_str().expect(line) {
                    "text_delta" => ("text", "text"),
                    "thinking_delta" => ("thinking", "thinking"),
                    "input_json_delta" => ("tool_use", "partial_json"),
                    "signature_delta" => return,
                    _ => panic!("{line}"),
                };
                assert_eq!(block["type"], of);
                said.push_str(event["delta"][field].as_str().expect(line));
            }
            "content_block_stop" => {
                let (block, said, whole) = streamed.block.take().expect("a block is open");
                let whole = whole.expect("the whole block comes before its end");
                assert!(index == Some(streamed.next) && block["type"] == whole["type"], "{line}");
                match whole["type"].as_str().expect(line) {
                    "tool_use" => {
                        let input: Value = serde_json::from_str(&said).expect("the input");
                        assert_eq!(input, whole["input"]);
                        assert_eq!(block["id"], whole["id"]);
                    }
                    field => assert_eq!(whole[field], said),
                }
                streamed.next += 1;
            }
            "message_delta" => {
                assert!(event["delta"]["stop_reason"].is_string(), "{line}");
                assert!(streamed.block.is_none() && !streamed.is_stopping, "{line}");
                streamed.is_stopping = true;
            }
            "message_stop" => {
                assert!(streamed.is_stopping && streamed.next > 0, "{line}");
                thread.streamed = None;
            }
            _ => panic!("{line}"),
        }
    }

    fn result(&mut self, result: &Value, line: &str) {
        // A prompt that arrives after its agent died at the start is refused before anything else is sent.
        let is_late = result["errors"][0].as_str().is_some_and(|why| why.ends_with("be resumed"));
        let in_turn = std::mem::replace(&mut self.in_turn, false);
        assert!(in_turn || is_late, "a result without a turn: {line}");
        self.results += 1;
        for name in ["duration_ms", "duration_api_ms", "num_turns"] {
            assert!(result[name].is_u64(), "{name}: {line}");
        }
        assert!(result["is_error"].is_boolean() && result["total_cost_usd"].is_f64(), "{line}");
        assert!(result["terminal_reason"].is_string(), "{line}");
        check_usage(&result["usage"], line);
        for (_, usage) in result["modelUsage"].as_object().expect(line) {
            assert!(usage["inputTokens"].is_u64() && usage["costUSD"].is_number(), "{line}");
        }
        for denial in result["permission_denials"].as_array().expect(line) {
            assert!(denial["tool_name"].is_string() && denial["tool_use_id"].is_string(), "{line}");
            assert!(denial["tool_input"].is_object(), "{line}");
        }
        if result["subtype"] == "success" {
            assert!(result["result"].is_string() && result.get("errors").is_none(), "{line}");
        } else {
            let errors = result["errors"].as_array().expect(line);
            assert!(!errors.is_empty() && errors.iter().all(Value::is_string), "{line}");
            assert!(result.get("result").is_none() && result["is_error"] == true, "{line}");
        }
        let open = self.calls.values().find(|(who, _)| who.is_none());
        assert!(open.is_none(), "{open:?} has no result: {line}");
        let main = self.threads.entry(None).or_default();
        assert!(main.streamed.is_none(), "the message has not ended: {line}");
    }
}

fn check_usage(usage: &Value, line: &str) {
    for name in
        ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"]
    {
        assert!(usage[name].is_u64(), "{name}: {line}");
    }
}

fn check_part(part: &Value, line: &str) {
    match part["type"].as_str().expect(line) {
        "text" => assert!(part["text"].is_string(), "{line}"),
        "image" => {
            let source = &part["source"];
            let inline = source["media_type"].is_string() && source["data"].is_string();
            assert!(inline || source["url"].is_string(), "{line}");
        }
        _ => panic!("{line}"),
    }
}
