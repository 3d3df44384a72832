//! Runs and sessions.

use serde_json::json;

use crate::rpc::client::{Client, error, text, types};

#[test]
fn a_run_is_answered_by_its_result() {
    let mut client = Client::new();
    let answer = client.call("run", &json!({ "agent": "demo", "prompt": "/think hm\n/say hello" }));
    let result = &answer.reply["result"];
    assert_eq!((&result["type"], &result["result"]), (&json!("result"), &json!("hello")));
    for field in ["duration_ms", "duration_api_ms", "num_turns"] {
        assert!(result[field].is_u64(), "{field}: {result}");
    }
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(false)));
    assert!(result["usage"]["input_tokens"].is_u64() && result["session_id"].is_string());
    let session = result["sessionId"].as_str().expect("our id");
    assert!(answer.before.iter().all(|said| said["params"]["sessionId"] == session));
    assert_eq!(text(&answer.before), "hello");
    let types = types(&answer.before);
    assert_eq!((types.first(), types.last()), (Some(&"system"), Some(&"result")));
    let blocks =
        answer.before.iter().map(|said| &said["params"]["message"]["message"]["content"][0]);
    assert!(
        blocks.clone().any(|block| block["type"] == "thinking" && block["signature"].is_string())
    );
    client.close();
}

#[test]
fn queued_runs_are_answered_each_by_its_turn() {
    let mut client = Client::new();
    let session = client.result("session/create", &json!({ "agent": "demo" }))["sessionId"].clone();
    let run = |prompt: &str| json!({ "sessionId": session, "prompt": prompt });
    let ids: Vec<u64> = ["/say one", "/say two", "/say three"]
        .map(|prompt| client.send("run", &run(prompt)))
        .into();
    let mut results = Vec::new();
    for id in ids {
        let answer = client.reply(id);
        results.push(answer.reply["result"]["result"].as_str().expect("a result").to_owned());
    }
    // If an agent merges queued prompts into one turn, all of them get that turn's result.
    assert_eq!(results[0], "one");
    assert!(results[2].ends_with("three"), "{results:?}");
    let events = client.result("session/events", &json!({ "sessionId": session, "limit": 10000 }));
    let turns = events["events"].as_array().expect("events");
    let ended = turns.iter().filter(|event| event["type"] == "turnCompleted").count();
    let mut distinct = results.clone();
    distinct.dedup();
    assert_eq!(distinct.len(), ended);
    client.close();
}

#[test]
fn partial_messages_and_events_come_when_asked_for() {
    let mut client = Client::new();
    let plain = client.call("run", &json!({ "agent": "demo", "prompt": "/say a b" }));
    assert!(!types(&plain.before).contains(&"stream_event"));
    assert!(plain.before.iter().all(|said| said["method"] == "message"));
    for options in
        [json!({ "includePartialMessages": true }), json!({ "include_partial_messages": true })]
    {
        let params =
            json!({ "agent": "demo", "prompt": "/say a b", "events": true, "options": options });
        let answer = client.call("run", &params);
        assert!(types(&answer.before).contains(&"stream_event"));
        let named = json!({ "sessionId": answer.reply["result"]["sessionId"] });
        let mut said = answer.before;
        said.extend(client.call("session/kill", &named).before);
        let events = said.iter().filter(|said| said["method"] == "event");
        let seqs: Vec<u64> =
            events.filter_map(|said| said["params"]["event"]["seq"].as_u64()).collect();
        assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "{seqs:?}");
    }
    client.close();
}

#[test]
fn a_session_takes_messages_and_says_where_it_stands() {
    let mut client = Client::new();
    let session = client.result("session/create", &json!({ "agent": "demo" }))["sessionId"].clone();
    let user = json!({ "type": "user", "message": { "role": "user", "content": "/say hi" }, "session_id": "default" });
    let send = client.send("session/send", &json!({ "sessionId": session, "message": user }));
    let is_result = |said: &serde_json::Value| said["params"]["message"]["type"] == "result";
    let ([sent, _], turn) = client.all([&|said| said["id"] == send, &is_result]);
    assert!(sent["result"]["messageId"].is_string());
    assert_eq!(text(&turn), "hi");
    let blocks = json!({ "role": "user", "content": [{ "type": "text", "text": "/say blocks" }] });
    let ran = client.result("run", &json!({ "sessionId": session, "message": blocks }));
    assert_eq!(ran["result"], "blocks");

    let list = client.result("session/list", &json!({}));
    assert_eq!(list["sessions"][0]["id"], session);
    let page =
        client.result("session/events", &json!({ "sessionId": session, "after": 2, "limit": 3 }));
    let seqs: Vec<&serde_json::Value> =
        page["events"].as_array().expect("events").iter().map(|event| &event["seq"]).collect();
    assert_eq!((seqs, &page["next"]), (vec![&json!(3), &json!(4), &json!(5)], &json!(5)));
    let models = client
        .result("query", &json!({ "sessionId": session, "method": "supportedModels", "args": [] }));
    assert!(models.is_array());
    client.result("session/configure", &json!({ "sessionId": session, "model": "other" }));
    let control =
        json!({ "sessionId": session, "request": { "subtype": "set_model", "model": "third" } });
    client.result("control", &control);
    let ran = client.result("run", &json!({ "sessionId": session, "prompt": "/say {model}" }));
    assert_eq!(ran["result"], "third");
    client.close();
}

#[test]
fn a_turn_is_interrupted_and_a_session_killed() {
    let mut client = Client::new();
    let session = client.result("session/create", &json!({ "agent": "demo" }))["sessionId"].clone();
    let named = json!({ "sessionId": session });
    let run = client.send("run", &json!({ "sessionId": session, "prompt": "/say now\n/hang" }));
    client.until(|said| said["params"]["message"]["type"] == "assistant");
    let interrupt = client.send("session/interrupt", &named);
    let ([_, ran], _) = client.all([&|said| said["id"] == interrupt, &|said| said["id"] == run]);
    assert_eq!(ran["result"]["type"], "result");

    let run = client.send("run", &json!({ "sessionId": session, "prompt": "/say again\n/hang" }));
    client.until(|said| said["params"]["message"]["type"] == "assistant");
    let kill = client.send("session/kill", &named);
    let failed = client.reply(run).reply;
    assert!(failed["error"]["code"] == -32000 || failed["result"]["is_error"] == true, "{failed}");
    assert_eq!(client.reply(kill).reply["result"], json!({}));
    // The session exists until its end is written.
    let mut kill = || client.call("session/kill", &named).reply["error"]["code"].clone();
    assert!((0..10_000).any(|_| kill() == -32002), "it is never gone");
    let sent = json!({ "sessionId": session, "prompt": "x" });
    assert_eq!(client.error("session/send", &sent), (-32002, "sessionNotFound".to_owned()));

    let resumed = client.result("run", &json!({ "sessionId": session, "prompt": "/say {turns}" }));
    assert_eq!((&resumed["result"], &resumed["sessionId"]), (&json!("3"), &session));
    client.close();
}

#[test]
fn a_run_whose_agent_dies_is_told_and_the_session_goes_on() {
    let mut client = Client::new();
    let other = client.result("session/create", &json!({ "agent": "demo" }))["sessionId"].clone();
    let session =
        client.result("run", &json!({ "agent": "demo", "prompt": "/say x" }))["sessionId"].clone();
    let run = |prompt: &str| json!({ "sessionId": session, "prompt": prompt });
    let died = client.send("run", &run("/exit 3"));
    let reply = client.reply(died).reply;
    assert_eq!(error(&reply), (-32000, "agentFailed".to_owned()));
    let again = client.result("run", &run("/say back"));
    assert_eq!(again["result"], "back");
    let ran = client.result("run", &json!({ "sessionId": other, "prompt": "/say alive" }));
    assert_eq!(ran["result"], "alive");
    client.close();
}

#[test]
fn a_later_client_attaches_and_resumes() {
    let mut client = Client::new();
    let ran = client.result("run", &json!({ "agent": "demo", "prompt": "/say first" }));
    let session = ran["sessionId"].clone();
    client.result("session/kill", &json!({ "sessionId": session }));
    let home = client.close();

    let mut client = Client::at(&home);
    let attached = client.call("session/attach", &json!({ "sessionId": session, "events": true }));
    assert_eq!(attached.reply["result"]["session"]["state"], "ended");
    let history = client.until(|said| said["params"]["event"]["type"] == "sessionEnded");
    assert_eq!(text(&history.before), "first");
    let params =
        json!({ "sessionId": session, "prompt": "/say second", "options": { "maxTurns": 5 } });
    let answer = client.call("run", &params);
    assert_eq!(answer.reply["result"]["result"], "second");
    assert_eq!(text(&answer.before), "second", "earlier events are not shown again");
    let unknown = json!({ "sessionId": "00000000-0000-4000-8000-000000000000" });
    assert_eq!(client.error("session/attach", &unknown), (-32002, "sessionNotFound".to_owned()));
    client.close();
}

#[test]
fn a_message_counts_once_and_a_kill_is_followed_by_a_run() {
    let mut client = Client::new();
    let options = json!({ "max_turns": 5 });
    let run = |prompt: &str, id: &str| json!({ "agent": "demo", "cwd": ".", "options": options, "prompt": prompt, "messageId": id });
    let first = "11111111-1111-4111-8111-111111111111";
    let ran = client.result("run", &run("/say one", first));
    let session = ran["sessionId"].clone();
    let again = |prompt: &str, id: &str| {
        let mut params = run(prompt, id);
        params["sessionId"] = session.clone();
        params
    };
    assert_eq!(client.error("run", &again("/say one", first)), (-32000, "conflict".to_owned()));
    let second = "22222222-2222-4222-8222-222222222222";
    assert_eq!(client.result("run", &again("/say two", second))["result"], "two");
    let kill = client.send("session/kill", &json!({ "sessionId": session }));
    let resumed = client.send("run", &json!({ "sessionId": session, "prompt": "/say {turns}" }));
    let killed = client.reply(kill);
    let told =
        killed.before.iter().find(|said| said["method"] == "session/ended").expect("reported");
    let ended = json!({ "sessionId": session, "reason": "completed" });
    assert_eq!((&told["params"], &killed.reply["result"]), (&ended, &json!({})));
    assert_eq!(client.reply(resumed).reply["result"]["result"], "3");
    // The same for a prompt that was accepted before the session ended.
    client.result("session/kill", &json!({ "sessionId": session }));
    let late = json!({ "sessionId": session, "prompt": "/say two", "messageId": second });
    assert_eq!(client.error("run", &late), (-32000, "conflict".to_owned()));
    let greeting = json!({ "sessionId": session, "request": { "subtype": "initialize" } });
    assert!(client.result("control", &greeting)["commands"].is_array());
    client.close();
}

/// The lines that a client sends according to spec/claude-sdk-protocol.md.
#[test]
fn the_specifications_user_messages_are_taken() {
    let lines = [
        r#"{"type":"user","message":{"role":"user","content":"Hello"},"session_id":"default"}"#,
        r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_123","content":"File contents here"}]},"session_id":"default"}"#,
    ];
    for line in lines {
        let mut client = Client::new();
        let session =
            client.result("session/create", &json!({ "agent": "demo" }))["sessionId"].clone();
        let message: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let send =
            client.send("session/send", &json!({ "sessionId": session, "message": message }));
        // The result of a tool that was never called starts no turn.
        if line.contains("tool_result") {
            assert!(client.reply(send).reply["result"]["messageId"].is_string());
        } else {
            let is_assistant =
                |said: &serde_json::Value| said["params"]["message"]["type"] == "assistant";
            let ([_, spoken], _) = client.all([&|said| said["id"] == send, &is_assistant]);
            let assistant = &spoken["params"]["message"]["message"];
            assert_eq!(assistant["role"], "assistant");
            assert!(assistant["content"].is_array() && assistant["model"].is_string());
        }
        client.result("session/kill", &json!({ "sessionId": session }));
        client.close();
    }
}
