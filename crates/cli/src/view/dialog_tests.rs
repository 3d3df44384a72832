//! Requests, and what keys do.

use agentwire_protocol::command::Behavior;
use agentwire_protocol::event::input_digest;

use super::*;
use crate::view::layout::Style;

fn request(json: &str) -> RequestRaised<'static> {
    serde_json::from_str(json).expect("a request")
}

fn permission(input: &str) -> Dialog {
    let digest = input_digest(Some(&Json::parse(input).expect("JSON")));
    let json = format!(
        r#"{{"requestId":"r","kind":"permission","inputDigest":"{digest}","toolName":"Bash","input":{input}}}"#
    );
    Dialog::new(request(&json), None).expect("it can be asked")
}

fn questions(json: &str) -> Dialog {
    let json =
        format!(r#"{{"requestId":"r","kind":"question","inputDigest":"d","questions":{json}}}"#);
    Dialog::new(request(&json), None).expect("it can be asked")
}

fn shown(ask: &Dialog) -> String {
    let mut page = Page::new(Style::default());
    ask.show(&mut page, Some("/w"));
    page.take()
}

fn answer(step: DialogStep) -> Settlement {
    match step {
        DialogStep::Answer(settlement) => *settlement,
        DialogStep::Same | DialogStep::Next | DialogStep::Interrupt => {
            panic!("no answer: {step:?}")
        }
    }
}

#[test]
fn keys_allow_and_deny_what_was_shown() {
    let input = r#"{"command":"rm -rf build"}"#;
    let digest = input_digest(Some(&Json::parse(input).expect("JSON")));
    let allow = answer(permission(input).key('y'));
    assert_eq!(allow.behavior, Some(Behavior::Allow));
    assert_eq!((allow.remember, allow.input_digest), (None, Some(digest)));
    assert_eq!(answer(permission(input).key('a')).remember, Some(Remember::Session));
    assert_eq!(answer(permission(input).key('n')).behavior, Some(Behavior::Deny));
    assert_eq!(permission(input).key('i'), DialogStep::Interrupt);
}

#[test]
fn always_is_offered_only_where_it_can_be_kept() {
    assert!(shown(&permission("{}")).contains("[a] always"));
    let once = r#"{"requestId":"r","kind":"permission","inputDigest":"d","toolName":"Bash","allowIsOnce":true}"#;
    let mut ask = Dialog::new(request(once), None).expect("it can be asked");
    assert!(!shown(&ask).contains("always"));
    assert_eq!(ask.key('a'), DialogStep::Same);
    assert_eq!(answer(ask.key('y')).remember, None);
}

#[test]
fn no_other_key_does_anything() {
    let mut ask = permission("{}");
    for key in ('\0'..'\u{100}').filter(|key| !"yandiYANDI".contains(*key)) {
        assert_eq!(ask.key(key), DialogStep::Same, "{key:?}");
    }
}

#[test]
fn a_denial_may_say_why() {
    let mut ask = permission("{}");
    assert_eq!(ask.key('d'), DialogStep::Next);
    assert_eq!(ask.reading(), Reading::Line);
    assert_eq!(ask.line("  \n"), DialogStep::Next);
    assert_eq!(ask.reading(), Reading::Keys);
    ask.key('d');
    let denial = answer(ask.line("use git instead\n"));
    assert_eq!(denial.message.as_deref(), Some("use git instead"));
    assert_eq!(denial.behavior, Some(Behavior::Deny));
}

#[test]
fn an_agent_that_names_its_answers_takes_no_others() {
    let json = r#"{"requestId":"r","kind":"permission","inputDigest":"d","toolName":"x","options":
        [{"id":"1","label":"Once","kind":"allowOnce"},{"id":"2","label":"No","kind":"rejectOnce"}]}"#;
    let mut ask = Dialog::new(request(json), None).expect("it can be asked");
    assert!(!shown(&ask).contains("[a]"));
    assert_eq!(ask.key('a'), DialogStep::Same);
    assert!(matches!(ask.key('y'), DialogStep::Answer(_)));
}

#[test]
fn commands_and_changes_are_shown_whole() {
    let long = format!("echo {}", "x".repeat(5000));
    let ask = permission(&serde_json::json!({ "command": long, "timeout": 5 }).to_string());
    assert!(shown(&ask).contains(&format!("  $ {long}\n  timeout: 5\n")));
    let ask = permission(r#"{"command":"a\nb\u001b[2K","description":"d"}"#);
    insta::assert_snapshot!(shown(&ask), @r"
    ? Bash asks for permission
      $ a
        b\x1b[2K
      description: d
      [y] allow  [a] always in this session  [n] deny  [d] deny with a message  [i] interrupt
    ");
    let ask = permission(
        r#"{"file_path":"/w/a","old_string":"one\ntwo","new_string":"one\n2","replace_all":true}"#,
    );
    insta::assert_snapshot!(shown(&ask), @r"
    ? Bash asks for permission
      a
        one
      - two
      + 2
      replace_all: true
      [y] allow  [a] always in this session  [n] deny  [d] deny with a message  [i] interrupt
    ");
    let ask = permission(
        r#"{"changes":[{"path":"/w/n","kind":{"type":"add"},"diff":"new\n"},{"path":"/w/o","kind":{"type":"update"},"diff":"@@ -4 +4 @@\n-a\n+b\n"}],"x":{"y":1}}"#,
    );
    insta::assert_snapshot!(shown(&ask), @r#"
    ? Bash asks for permission
      n
      1 + new
      o
      4 - a
      4 + b
      x:
        {
          "y": 1
        }
      [y] allow  [a] always in this session  [n] deny  [d] deny with a message  [i] interrupt
    "#);
}

#[test]
fn questions_are_answered_one_after_the_other() {
    let mut ask = questions(
        r#"[{"question":"Which?","header":"H","options":[{"label":"A","description":"first"},{"label":"B"}]},
            {"question":"Any?","id":"q2","multiSelect":true,"options":[{"label":"X"},{"label":"Y"},{"label":"Z"}]},
            {"question":"Name?"}]"#,
    );
    insta::assert_snapshot!(shown(&ask), @r"
    ? H: Which?  (1 of 3)
      1. A  first
      2. B
      [1…] choose  [t] type an answer  [n] decline  [i] interrupt
    ");
    assert_eq!(ask.key('\n'), DialogStep::Same);
    assert_eq!(ask.key('3'), DialogStep::Same);
    assert_eq!(ask.key('2'), DialogStep::Next);
    assert_eq!(ask.key('\n'), DialogStep::Same, "nothing is chosen yet");
    for key in ['3', '2', '1', '2'] {
        assert_eq!(ask.key(key), DialogStep::Next);
    }
    assert!(shown(&ask).contains(" *1. X\n  2. Y\n *3. Z\n"));
    assert_eq!(ask.key('\n'), DialogStep::Next);
    assert_eq!(ask.reading(), Reading::Line);
    let answers = answer(ask.line("Ada\n")).answers.expect("answers");
    let said = |key: &str| answers.get(key).map(|answer| answer.get().to_owned());
    assert_eq!(said("Which?").as_deref(), Some(r#""B""#));
    assert_eq!(said("q2").as_deref(), Some(r#"["X","Z"]"#));
    assert_eq!(said("Name?").as_deref(), Some(r#""Ada""#));
}

#[test]
fn many_options_are_chosen_by_a_typed_number() {
    let options: Vec<_> =
        (1..=12).map(|n| serde_json::json!({ "label": format!("o{n}") })).collect();
    let question = serde_json::json!([{ "question": "Q", "options": options }]).to_string();
    let said = |line: &str| {
        let answers = answer(questions(&question).line(line)).answers.expect("answers");
        answers.get("Q").expect("Q").get().to_owned()
    };
    assert_eq!(said("12"), r#""o12""#);
    assert_eq!(said("13"), r#""13""#);
    assert_eq!(said("1 2"), r#""1 2""#, "one may be chosen, not two");
    assert_eq!(answer(questions(&question).line("")).behavior, Some(Behavior::Deny));
}

#[test]
fn a_secret_is_not_seen() {
    let ask = questions(r#"[{"question":"Key?","isSecret":true}]"#);
    assert_eq!(ask.reading(), Reading::Secret);
}

#[test]
fn what_no_key_can_answer_is_not_asked() {
    for kind in ["hook", "mcp", "other"] {
        let json = format!(r#"{{"requestId":"r","kind":"{kind}","inputDigest":"d"}}"#);
        assert!(Dialog::new(request(&json), None).is_none());
    }
}

#[test]
fn words_mean_options_by_number_or_by_label() {
    let json = r#"{"question":"Tea?","options":[{"label":"Black"},{"label":"Green"}]}"#;
    let one: Question<'static> = serde_json::from_str(json).expect("a question");
    for (said, answer) in
        [("2", "\"Green\""), (" black ", "\"Black\""), ("3", "\"3\""), ("oolong", "\"oolong\"")]
    {
        assert_eq!(meant(&one, said).get(), answer, "{said}");
    }
    let many = Question { multi_select: true, ..one };
    for (said, answer) in
        [("1,2", r#"["Black","Green"]"#), ("green", r#"["Green"]"#), ("x", "\"x\"")]
    {
        assert_eq!(meant(&many, said).get(), answer, "{said}");
    }
}
