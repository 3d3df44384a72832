use agentwire_protocol::AgentType;

use super::*;

fn row(version: &str, scenarios: &[(&str, Option<&str>)], observed: Observed) -> Row {
    let column = Column {
        name: "parrot".to_owned(),
        agent: AgentType::Acp,
        driver: "acp".to_owned(),
        pinned: "1.0.0".to_owned(),
        version: version.to_owned(),
        scenarios: scenarios
            .iter()
            .map(|(name, error)| ((*name).to_owned(), error.map(str::to_owned)))
            .collect(),
    };
    let known =
        Residue { messages: ["old".to_owned()].into(), fields: ["text age".to_owned()].into() };
    Row::new(column, observed, &known)
}

fn observed(messages: &[&str], fields: &[&str]) -> Observed {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let examples = messages.iter().map(|name| ((*name).to_owned(), format!("{{`{name}`}}")));
    Observed {
        residue: Residue { messages: owned(messages), fields: owned(fields) },
        examples: examples.collect(),
    }
}

#[test]
fn known_residue_is_no_drift() {
    let report =
        Report { rows: vec![row("1.1.0", &[("text", None)], observed(&["old"], &["text age"]))] };
    assert!(!report.has_drift());
    assert_eq!(
        report.text(),
        "program  pinned  found  scenarios  new messages  new fields\n\
         parrot   1.0.0   1.1.0  1 passed   0             0\n\nnothing new\n"
    );
    let json: Value = serde_json::from_str(&report.json()).expect("JSON");
    assert_eq!(json["drift"], false);
}

#[test]
fn new_residue_and_failures_are_reported() {
    let scenarios = [("text", None), ("shell", Some("no end\n  came"))];
    let found = observed(&["old", "new\u{1b}"], &["text age", "text mood"]);
    let report = Report { rows: vec![row("1.1.0", &scenarios, found)] };
    assert!(report.has_drift());
    assert_eq!(
        report.markdown(),
        "| program | pinned | found | scenarios | new messages | new fields |\n\
         | --- | --- | --- | --- | --- | --- |\n\
         | parrot | 1.0.0 | 1.1.0 | 1 passed, 1 failed | 1 | 1 |\n\n\
         ## parrot 1.1.0\n\n\
         - failed: `shell`: `no end came`\n\
         - new message: `new\u{fffd}`: `` {`new\u{fffd}`} ``\n\
         - new field: `text mood`\n\n\
         drift found\n"
    );
    let text = report.text();
    assert!(text.contains("failed       shell\n               no end came\n"), "{text}");
    let json: Value = serde_json::from_str(&report.json()).expect("JSON");
    let program = &json["programs"][0];
    assert_eq!((&json["drift"], &program["newFields"]), (&json!(true), &json!(["text mood"])));
    assert_eq!(program["failed"]["shell"], "no end\n  came");
}
