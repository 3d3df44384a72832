use super::*;

fn steps(text: &str) -> Vec<Vec<Step>> {
    Script::parse(text).expect("a script").expect("markers").responses
}

fn parse_error_of(text: &str) -> String {
    let failure = Script::parse(text).expect_err("a mistake");
    assert_eq!(failure.status, 400);
    assert!(failure.message.contains("Steps are: say TEXT"), "{}", failure.message);
    failure.message
}

#[test]
fn text_without_markers_is_no_script() {
    for text in ["", "hello", "if [[ -f x ]]; then", "[[[", "]] [[", "[[Name]]"] {
        assert_eq!(Script::parse(text).expect("no mistake"), None, "{text}");
    }
}

#[test]
fn tools_and_stops_end_a_response() {
    let responses = steps("Do [[say a]] it [[tool Bash {}]] [[say b]][[stop max_tokens]][[say c]]");
    assert_eq!(responses.len(), 3);
    assert_eq!(responses[0][0], Step::Say("a".to_owned()));
    assert!(matches!(&responses[0][1], Step::Tools(calls) if calls[0].0 == "Bash"));
    assert_eq!(responses[1][1], Step::Stop(Stop::MaxTokens));
    assert_eq!(responses[2], [Step::Say("c".to_owned())]);
    assert_eq!(steps("[[tool Bash]]").len(), 1);
}

#[test]
fn a_marker_may_contain_nested_json() {
    let text = r#"[[tool Task {"prompt":"[[tool Bash {\"command\":\"a ]] b\"}]] [[say sub]]"}]] [[say main]]"#;
    let responses = steps(text);
    assert_eq!(responses[1], [Step::Say("main".to_owned())]);
    let Step::Tools(calls) = &responses[0][0] else { panic!("tools") };
    let input: serde_json::Value = serde_json::from_str(calls[0].1.get()).expect("JSON");
    let inner = steps(input["prompt"].as_str().expect("a prompt"));
    assert_eq!(inner.len(), 2);
    assert_eq!(inner[1], [Step::Say("sub".to_owned())]);
}

#[test]
fn several_tools_at_once() {
    let responses = steps(r#"[[tools Bash {"command":"a;;b"} ;; Read {"x":[[1]]} ;; Plain]]"#);
    let Step::Tools(calls) = &responses[0][0] else { panic!("tools") };
    let calls: Vec<(&str, &str)> =
        calls.iter().map(|(name, input)| (name.as_str(), input.get())).collect();
    assert_eq!(
        calls,
        [("Bash", r#"{"command":"a;;b"}"#), ("Read", r#"{"x":[[1]]}"#), ("Plain", "{}")]
    );
}

#[test]
fn text_is_kept_except_escapes() {
    for (text, expected) in [
        ("[[say Hello]]", "Hello"),
        ("[[say  two  blanks ]]", " two  blanks "),
        (r"[[say a\nb\\n\]\]]]", "a\nb\\n]]"),
        ("[[say a[0]]]", "a[0]"),
        ("[[say]]", ""),
        ("[[say über {model}]]", "über {model}"),
    ] {
        assert_eq!(steps(text), [[Step::Say(expected.to_owned())]], "{text}");
    }
}

#[test]
fn failures_take_their_arguments_in_any_order_but_the_message_last() {
    let fail = |status, kind: Option<&str>, message: &str, times| Step::Fault {
        fault: Fault::Fail(Failure {
            status,
            kind: kind.map(str::to_owned),
            message: message.to_owned(),
            retry_after: None,
        }),
        times,
    };
    for (text, expected) in [
        ("[[fail 500]]", fail(500, None, "scripted failure", None)),
        ("[[fail 529 overloaded_error TIMES 2]]", {
            fail(529, Some("overloaded_error"), "scripted failure", Some(2))
        }),
        ("[[fail 529 TIMES 2 overloaded_error Come back]]", {
            fail(529, Some("overloaded_error"), "Come back", Some(2))
        }),
        ("[[fail 503 UNAVAILABLE no one]]", fail(503, Some("UNAVAILABLE"), "no one", None)),
        ("[[fail 400 I am out]]", fail(400, None, "I am out", None)),
    ] {
        assert_eq!(steps(text)[0], [expected], "{text}");
    }
    let Step::Fault { fault: Fault::Fail(limit), times } =
        &steps("[[ratelimit TIMES 1 RETRY-AFTER 7]]")[0][0]
    else {
        panic!("a limit")
    };
    assert_eq!((limit.status, limit.retry_after, *times), (429, Some(7), Some(1)));
}

#[test]
fn the_other_steps() {
    assert_eq!(
        steps("[[usage 1 2]] [[slow 30]] [[pad 9]] [[repeat 3 x ]] [[header a-b c d]] [[stop]]")[0],
        [
            Step::Usage(Usage { input: 1, output: 2, ..Usage::default() }),
            Step::Slow(Duration::from_millis(30)),
            Step::Pad(9),
            Step::Repeat { count: 3, text: "x ".to_owned() },
            Step::Header(HeaderName::from_static("a-b"), HeaderValue::from_static("c d")),
            Step::Stop(Stop::End),
        ]
    );
    assert_eq!(
        steps("[[hang]] [[cut TIMES 2]]")[0],
        [
            Step::Fault { fault: Fault::Hang, times: None },
            Step::Fault { fault: Fault::Cut, times: Some(2) },
        ]
    );
}

#[test]
fn a_parse_error_names_the_marker_and_the_reason() {
    for (text, wrong) in [
        ("a [[sya Hello]] b", "`[[sya Hello]]`: unknown step `sya`"),
        ("[[tool Bash {\"a\":]]", "the tool's input is not JSON"),
        ("[[tool Bash {} more]]", "unexpected `more`"),
        ("[[tool]]", "the tool's name is missing"),
        ("[[say forever", "does not end"),
        ("[[tool Bash {}", "does not end"),
        ("[[fail 200]]", "200 is not an error status"),
        ("[[fail abc]]", "`abc` is not a valid number"),
        ("[[usage -1]]", "`-1` is not a valid number"),
        ("[[pad 99999999999]]", "more than 64 MiB"),
        ("[[repeat 9999999999 abc]]", "more than 100000 deltas"),
        ("[[header content-length 4]]", "only the server may set"),
        ("[[header a:b c]]", "not a header name"),
        ("[[hang on]]", "unexpected `on`"),
        ("[[tool A {\"a\":\"\\ud800\"}]]", "the tool's input is not JSON"),
    ] {
        let message = parse_error_of(text);
        assert!(message.contains(wrong), "{text}: {message}");
    }
}
