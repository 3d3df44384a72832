use agentwire_protocol::{Price, SearchQuery, SearchResult, SessionId, TokenUsage};
use agentwire_protocol::{SearchHit, UsageBin, UsageBy, UsageQuery, UsageReport};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::*;
use crate::store::memory::Memory;
use crate::store::{Append, Batch, Store};

/// Stores events of one session, a batch for each list.
fn store(batches: &[&[Value]]) -> Memory {
    let store = Memory::new();
    add_to(&store, "a", 1, batches);
    store
}

fn add_to(store: &Memory, session: &str, first: u64, batches: &[&[Value]]) {
    let mut seq = first;
    for events in batches {
        let first = seq;
        let mut lines = String::new();
        for event in *events {
            let mut event = event.clone();
            event["id"] = json!(format!("{session}{seq}"));
            event["sessionId"] = json!(session);
            event["seq"] = json!(seq);
            event["timestamp"] =
                event.get("at").cloned().unwrap_or(json!("2026-01-02T03:04:05.000Z"));
            event["agentId"] = json!("main");
            lines.push_str(&event.to_string());
            lines.push('\n');
            seq += 1;
        }
        let batch = Batch { first, count: seq - first, lines: lines.into() };
        let record = serde_json::from_value(json!({
            "summary": {
                "id": session, "agentType": "demo", "state": "idle", "createdAt": "", "updatedAt": "",
                "lastSeq": batch.last(), "turns": 0, "usage": TokenUsage::default(), "openRequests": 0,
            },
            "owner": null, "config": {}, "open": {},
        }))
        .unwrap();
        store.append(&[&Append { record, batch: Some(batch), keys: Vec::new() }]).unwrap();
    }
}

fn far() -> Instant {
    Instant::now() + Duration::from_secs(600)
}

fn find(index: &Index, query: &SearchQuery) -> SearchResult {
    index.search(query).unwrap()
}

fn found(index: &Index, words: &str) -> Vec<(u64, String)> {
    let query = SearchQuery { q: words.to_owned(), ..SearchQuery::default() };
    find(index, &query).hits.into_iter().map(|hit: SearchHit| (hit.seq, hit.snippet)).collect()
}

fn text(content: &str, is_complete: bool) -> Value {
    json!({ "type": "textChunk", "content": content, "isComplete": is_complete })
}

fn indexed(store: &Memory) -> Index {
    let index = Index::new(None);
    assert!(index.catch_up(store, far(), Pace::Full).unwrap());
    index
}

#[test]
fn words_that_are_cut_between_chunks_are_found() {
    let store = store(&[
        &[json!({ "type": "turnStarted", "turnNumber": 1, "prompt": "fix the Größe" })],
        &[text("a ser", false)],
        // Another text in between.
        &[
            json!({ "type": "thinkingChunk", "content": "hm, well", "isComplete": true }),
            text("endip", false),
        ],
    ]);
    let index = indexed(&store);
    assert_eq!(found(&index, "serendipity"), []);
    add_to(&store, "a", 5, &[&[text("ity!", true)]]);
    index.catch_up(&store, far(), Pace::Full).unwrap();
    assert_eq!(found(&index, "serendipity"), [(2, "a serendipity!".to_owned())]);
    assert_eq!(found(&index, "grosse"), []);
    assert_eq!(found(&index, "GROSSE grö*"), []);
    assert_eq!(found(&index, "große").len(), 1);
    assert_eq!(found(&index, "größe FIX").len(), 1);
    assert_eq!(found(&index, "groß*").len(), 1);
    assert_eq!(found(&index, "well").len(), 1);
}

#[test]
fn what_people_type_is_never_a_syntax_error() {
    let tool = json!({
        "type": "toolStarted", "toolId": "t", "toolName": "Bash", "kind": "execute",
        "arguments": { "command": "cargo test --lib src/main.rs", "content": "not indexed" },
    });
    let index = indexed(&store(&[&[tool]]));
    for words in [
        "",
        " ",
        "\"",
        "\"\"",
        "*",
        "AND",
        "NEAR(",
        "a OR",
        "body:",
        "scope : s1",
        "-x",
        "^",
        "(",
        "\0",
        "\"cargo",
        "🦀",
        "'; DROP TABLE texts; --",
        "{body} : x",
        "+",
        "a\"b\"c",
        "x*y*",
    ] {
        let query = SearchQuery { q: words.to_owned(), ..SearchQuery::default() };
        assert!(index.search(&query).is_ok(), "{words:?}");
    }
    for words in ["src/main.rs", "--lib", "\"cargo test\"", "carg*", "bash main", "\"test --lib"] {
        assert_eq!(found(&index, words).len(), 1, "{words:?}");
    }
    for words in ["\"test cargo\"", "indexed", "carg", "s1", "toolStarted"] {
        assert_eq!(found(&index, words).len(), 0, "{words:?}");
    }
}

#[test]
fn pages_of_hits_follow_each_other_and_marks_show_the_words() {
    let events: Vec<Value> =
        (0..5).map(|number| text(&format!("no {number} apple pie"), true)).collect();
    let store = store(&[&events]);
    add_to(&store, "b", 1, &[&[text("an Apple", true)]]);
    let index = indexed(&store);
    let query = |after: Option<String>| SearchQuery {
        q: "apple".to_owned(),
        session_id: Some(SessionId::from("a")),
        limit: Some(2),
        after,
        ..SearchQuery::default()
    };
    let (mut seqs, mut after) = (Vec::new(), None);
    loop {
        let page = find(&index, &query(after));
        seqs.extend(page.hits.iter().map(|hit| hit.seq));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seqs, [5, 4, 3, 2, 1]);
    let hit = &find(&index, &query(None)).hits[0];
    assert_eq!((hit.snippet.as_str(), &hit.marks[..]), ("no 4 apple pie", &[[5, 10]][..]));
    let kind = |kind: &str| SearchQuery {
        q: "apple".to_owned(),
        kind: Some(kind.to_owned()),
        ..SearchQuery::default()
    };
    assert_eq!(find(&index, &kind("textChunk")).hits.len(), 6);
    assert_eq!(find(&index, &kind("toolStarted")).hits.len(), 0);
    store.delete(&[SessionId::from("a")]).unwrap();
    index.catch_up(&store, far(), Pace::Full).unwrap();
    assert_eq!(found(&index, "apple").len(), 1);
    index.clear().unwrap();
    assert_eq!(found(&index, "apple"), []);
    index.catch_up(&store, far(), Pace::Full).unwrap();
    assert_eq!(found(&index, "apple").len(), 1);
}

#[test]
fn usage_is_counted_by_what_it_is_told_apart() {
    let started = json!({
        "type": "sessionStarted", "agentType": "demo",
        "config": { "workingDirectory": "/work", "model": "small" },
    });
    let call =
        json!({ "type": "toolStarted", "toolId": "t", "toolName": "Bash", "kind": "execute" });
    let at = |time: &str, mut event: Value| {
        event["at"] = json!(format!("2026-01-02T{time}.000Z"));
        event
    };
    let asked = json!({ "type": "requestRaised", "requestId": "r", "kind": "permission", "inputDigest": "" });
    let settled =
        json!({ "type": "requestSettled", "requestId": "r", "outcome": "allowed", "by": "client" });
    let end = json!({
        "type": "turnCompleted", "turnNumber": 1, "costUsd": 0.5,
        "usage": { "inputTokens": 100, "outputTokens": 10, "cachedTokens": 60, "totalTokens": 110 },
    });
    let failed = json!({ "type": "turnFailed", "turnNumber": 2, "error": "no", "reason": "error" });
    let store = store(&[
        &[started, json!({ "type": "turnStarted", "turnNumber": 1 }), call.clone(), call],
        &[at("03:00:00", asked), at("03:00:07", settled), at("03:10:00", end)],
        &[json!({ "type": "turnStarted", "turnNumber": 2 }), at("05:00:00", failed)],
    ]);
    let index = indexed(&store);
    let prices = BTreeMap::from([(
        "small".to_owned(),
        Price { input: 1e6, output: 2e6, cache_read: 1e5, cache_write: 0.0 },
    )]);
    let report = |query: UsageQuery, prices: &BTreeMap<String, Price>| -> UsageReport {
        index.usage(&UsageSpan::new(&query).unwrap(), prices).unwrap()
    };
    let all = report(UsageQuery::default(), &prices);
    let [row] = &all.rows[..] else { panic!("{all:?}") };
    assert_eq!((row.input_tokens, row.cached_tokens, row.output_tokens), (40, 60, 10));
    assert_eq!((row.turns, row.tool_calls, row.waited_ms), (2, 2, 7000));
    assert_eq!((row.cost_usd, row.computed_cost_usd), (Some(0.5), Some(66.0)));
    assert_eq!(report(UsageQuery::default(), &BTreeMap::new()).rows[0].computed_cost_usd, None);
    let by = |by| UsageQuery { by: Some(by), ..UsageQuery::default() };
    assert_eq!(report(by(UsageBy::Model), &prices).rows[0].model.as_deref(), Some("small"));
    assert_eq!(report(by(UsageBy::Directory), &prices).rows[0].directory.as_deref(), Some("/work"));
    assert_eq!(report(by(UsageBy::Session), &prices).rows[0].session_id, Some("a".into()));
    let hours = report(UsageQuery { bin: Some(UsageBin::Hour), ..by(UsageBy::Agent) }, &prices);
    let bins: Vec<_> =
        hours.rows.iter().map(|row| (row.bin.as_deref().unwrap(), row.turns)).collect();
    assert_eq!(bins, [("2026-01-02T03:00:00Z", 1), ("2026-01-02T05:00:00Z", 1)]);
    let span = UsageQuery {
        from: Some("2026-01-02T03:10:00Z".to_owned()),
        to: Some("2026-01-02T05:00:00Z".to_owned()),
        ..UsageQuery::default()
    };
    assert_eq!(report(span, &prices).rows[0].turns, 1);
    assert!(
        UsageSpan::new(&UsageQuery { from: Some("x".into()), ..UsageQuery::default() }).is_err()
    );
}
