use serde_json::json;

use super::*;

fn prompt(text: &str) -> ConversationEntry {
    ConversationEntry::Prompt(text.to_owned())
}

fn results(texts: &[&str]) -> ConversationEntry {
    ConversationEntry::Results(texts.iter().map(|text| (*text).to_owned()).collect())
}

fn conversation(entries: Vec<ConversationEntry>) -> Conversation {
    Conversation { model: "m-1".to_owned(), entries, ..Conversation::default() }
}

fn planned(conversation: &Conversation, attempt: u32) -> ResponsePlan {
    ResponseSteps::find(conversation).expect("steps").plan(conversation, attempt, "id", 40)
}

fn said(entries: Vec<ConversationEntry>) -> String {
    let conversation = conversation(entries);
    let plan = planned(&conversation, 0);
    let texts = plan.blocks.iter().filter_map(|block| match block {
        Block::Text(deltas) => Some(deltas.text()),
        Block::Thinking(_) | Block::Tool(_) | Block::Garbage => None,
    });
    texts.collect::<Vec<_>>().join("|")
}

#[test]
fn the_position_is_the_number_of_responses_since_the_last_script() {
    let script = "[[say one]] [[tool A {}]] [[say two {result}]] [[stop max_tokens]] [[say three]]";
    let mut entries = vec![prompt("[[say older]]"), ConversationEntry::Response, prompt(script)];
    assert_eq!(said(entries.clone()), "one");
    // Some APIs send the text and the call of one response separately.
    entries.extend([
        ConversationEntry::Response,
        ConversationEntry::Response,
        results(&["r", "s"]),
    ]);
    assert_eq!(said(entries.clone()), "two r\ns");
    entries.extend([ConversationEntry::Response, prompt("go on")]);
    assert_eq!(said(entries.clone()), "three");
    entries.extend([ConversationEntry::Response, prompt("and now?")]);
    assert_eq!(said(entries), "You said: and now?");
}

#[test]
fn an_abandoned_script_does_not_continue() {
    let entries = vec![
        prompt("[[tool A {}]] [[say more]]"),
        ConversationEntry::Response,
        results(&["stopped"]),
        ConversationEntry::Abandoned,
        prompt("hello"),
    ];
    assert_eq!(said(entries), "You said: hello");
}

#[test]
fn a_broken_response_is_played_again() {
    let script = "[[tool A]] [[say two]] [[stop]] [[say three]]";
    let mut entries = vec![prompt(script), ConversationEntry::Response, results(&["r"])];
    let whole = entries.clone();
    entries.extend([ConversationEntry::Response, ConversationEntry::Broken]);
    assert_eq!(said(entries), "two");
    let mut entries = whole;
    entries.push(ConversationEntry::Broken);
    assert_eq!(said(entries), "two", "nothing of the broken one was kept");
}

#[test]
fn only_prompts_are_echoed() {
    assert_eq!(said(vec![prompt("[[say a]]"), ConversationEntry::Response]), "Done.");
    assert_eq!(said(Vec::new()), "Done.");
}

#[test]
fn results_without_steps_are_acknowledged() {
    assert_eq!(
        said(vec![prompt("[[tool A]]"), ConversationEntry::Response, results(&["r"])]),
        "Done."
    );
}

#[test]
fn a_side_call_plays_no_script() {
    let mut side = conversation(vec![prompt("title of: [[say x]]")]);
    side.side = Some("{\"title\":\"{model}\"}".to_owned());
    let Some(Block::Text(deltas)) = planned(&side, 0).blocks.into_iter().next() else {
        panic!("a text")
    };
    assert_eq!(deltas.text(), "{\"title\":\"{model}\"}");
}

#[test]
fn placeholders_are_filled_once() {
    let mut entries = vec![prompt("[[tool A]] [[say {{model} {model} {nothing} {result}]]")];
    entries.extend([ConversationEntry::Response, results(&["{model}"])]);
    assert_eq!(said(entries), "{model} m-1 {nothing} {model}");
}

#[test]
fn faults_use_their_attempts_one_after_another() {
    let conversation = conversation(vec![prompt(
        "[[fail 529 TIMES 2]] [[say a b]] [[cut TIMES 1]] [[garbage TIMES 1]] [[say c]]",
    )]);
    assert!(ResponseSteps::find(&conversation).expect("steps").counts());
    let plans: Vec<ResponsePlan> = (0..5).map(|attempt| planned(&conversation, attempt)).collect();
    for plan in &plans[..2] {
        assert!(matches!(&plan.end, End::Fail(failure) if failure.status == 529));
        assert!(plan.blocks.is_empty() && plan.passing);
    }
    assert!(matches!(plans[2].end, End::Cut) && plans[2].passing);
    assert!(matches!(&plans[2].blocks[..], [Block::Text(Deltas { open: true, .. })]));
    assert!(matches!(&plans[3].blocks[..], [_, Block::Garbage, _]) && plans[3].passing);
    assert!(matches!(plans[4].end, End::Stop(Stop::End)) && !plans[4].passing);
    assert!(matches!(&plans[4].blocks[..], [Block::Text(Deltas { open: false, .. }), _]));
}

#[test]
fn deltas_are_words_and_usage_has_a_default() {
    let conversation = conversation(vec![prompt("[[slow 5]] [[say Hello big  world]]")]);
    let plan = planned(&conversation, 0);
    let [Block::Text(deltas)] = &plan.blocks[..] else { panic!("a text") };
    assert_eq!(deltas.pieces, ["Hello ", "big ", " ", "world"]);
    assert_eq!(deltas.pause, Duration::from_millis(5));
    assert_eq!(plan.usage, Usage { input: 10, output: 4, ..Usage::default() });
}

#[test]
fn long_texts_have_larger_deltas_and_a_limit() {
    let result = "a ".repeat(500_000);
    let entries = |script| vec![prompt(script), ConversationEntry::Response, results(&[&result])];
    let echoed = conversation(entries("[[tool A]] [[say {result}]]"));
    let [Block::Text(deltas)] = &planned(&echoed, 0).blocks[..] else { panic!("a text") };
    assert_eq!(deltas.text(), result);
    assert!(deltas.pieces.len() <= 10_000);
    let flood = conversation(entries("[[tool A]] [[repeat 90000 {result}]]"));
    let [Block::Text(deltas)] = &planned(&flood, 0).blocks[..] else { panic!("a text") };
    assert_eq!(deltas.pieces.len(), 67);
}

#[test]
fn calls_of_one_response_have_their_own_ids() {
    let conversation = conversation(vec![prompt("[[tools A {} ;; A {}]]")]);
    let plan = planned(&conversation, 0);
    let [Block::Tool(first), Block::Tool(second)] = &plan.blocks[..] else { panic!("calls") };
    assert_ne!(first.id, second.id);
    assert!(matches!(plan.end, End::Stop(Stop::Tools)));
}

#[test]
fn an_answer_matches_the_requested_schema() {
    let mut conversation = conversation(vec![prompt("hello")]);
    conversation.schema = Some(json!({
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "score": {"type": "NUMBER", "minimum": 3},
            "kind": {"enum": ["a", "b"]},
            "list": {"type": "array", "items": {"$ref": "#/$defs/x"}, "minItems": 2},
            "loop": {"$ref": "#"},
        },
        "$defs": {"x": {"type": ["boolean", "null"]}},
    }));
    let Some(Block::Text(deltas)) = planned(&conversation, 0).blocks.into_iter().next() else {
        panic!("a text")
    };
    let value: serde_json::Value = serde_json::from_str(&deltas.text()).expect("JSON");
    assert_eq!(value["title"], "text");
    assert_eq!(value["score"], 3);
    assert_eq!(value["kind"], "a");
    assert_eq!(value["list"], json!([true, true]));
}
