//! Tokens across all agents, and what they cost.

use serde_json::{Value, json};

use crate::page::Page;

fn usage(input: u64, cached: u64, output: u64, thoughts: u64, total: u64) -> Value {
    json!({ "inputTokens": input, "cachedTokens": cached, "outputTokens": output,
        "reasoningTokens": thoughts, "totalTokens": total })
}

fn turn(page: &mut Page, usage: &Value) -> Value {
    page.event(json!({ "type": "turnStarted", "turnNumber": 1 }));
    page.event(json!({ "type": "turnCompleted", "turnNumber": 1, "usage": usage }));
    let said = page.said();
    let last = said.last().expect("a message");
    assert_eq!(last["type"], "session.completed");
    last["payload"]["total_usage"].clone()
}

fn is(total: &Value, input: u64, output: u64, cached: u64) {
    let counts = ["input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"]
        .map(|name| total[name].as_u64().expect("a number"));
    assert_eq!(counts, [input, output, cached, 0], "{total}");
    let cost = total["cost_usd"].as_f64().expect("a number");
    let expected = (input as f64 * 3.0 + output as f64 * 15.0 + cached as f64 * 0.3) / 1e6;
    assert!((cost - expected).abs() < 1e-12, "{total}: {expected}");
}

#[test]
fn cached_input_is_counted_once_and_turns_add_up() {
    let mut page = Page::running();
    let spent = usage(100, 80, 20, 50, 170);
    is(&turn(&mut page, &spent), 20, 20, 80);
    is(&turn(&mut page, &spent), 40, 40, 160);
}

fn spawn(page: &mut Page, id: &str) {
    page.event(json!({ "type": "agentSpawned", "agentId": id, "parentAgentId": "main" }));
}

fn report(page: &mut Page, agent: &str, fields: Value) {
    let mut event = json!({ "type": "usageReported", "agentId": agent, "parentAgentId": "main" });
    event.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
    page.event(event);
}

fn finish(page: &mut Page, agent: &str, usage: Option<Value>) -> Value {
    page.said();
    let mut event = json!({ "type": "agentFinished", "agentId": agent, "parentAgentId": "main",
        "outcome": "cancelled" });
    if let Some(usage) = usage {
        event["usage"] = usage;
    }
    page.event(event);
    let said = page.said();
    let done = said.iter().find(|frame| frame["type"] == "agent.completed");
    done.expect("it is completed")["payload"]["usage"].clone()
}

/// Codex counts each thread by itself: a turn is that of the main one.
#[test]
fn subagents_that_count_by_themselves_are_counted_beside_the_turns() {
    let mut page = Page::running();
    spawn(&mut page, "a");
    let step = usage(100, 40, 20, 5, 120);
    report(&mut page, "a", json!({ "usage": step, "total": step }));
    let twice = usage(200, 80, 40, 10, 240);
    report(&mut page, "a", json!({ "usage": step, "total": twice }));
    // A report may come twice.
    report(&mut page, "a", json!({ "usage": step, "total": twice }));
    is(&finish(&mut page, "a", None), 120, 40, 80);
    is(&turn(&mut page, &step), 180, 60, 120);
    is(&turn(&mut page, &step), 240, 80, 160);
}

/// Claude's turns count its subagents in. One that is cut off tells no total of its own.
#[test]
fn a_subagent_without_a_figure_has_what_it_reported() {
    let mut page = Page::running();
    for id in ["a", "b"] {
        spawn(&mut page, id);
        // The first message grows, and is reported as it does.
        let mut reports = vec![(1, "m1"), (9, "m1"), (30, "m2")];
        if id == "b" {
            reports.reverse();
        }
        for (output, message) in reports {
            let usage =
                json!({ "inputTokens": 10, "outputTokens": output, "totalTokens": 10 + output });
            report(&mut page, id, json!({ "usage": usage, "messageId": message }));
        }
    }
    is(&finish(&mut page, "a", None), 20, 39, 0);
    // A total without its parts is no figure.
    is(&finish(&mut page, "b", Some(json!({ "totalTokens": 7 }))), 20, 31, 0);
    is(&turn(&mut page, &usage(50, 0, 70, 0, 120)), 50, 70, 0);
}
