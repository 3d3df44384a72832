//! docs/model-server.md lists everything.

use agentwire_models::{PLACEHOLDERS, STEPS, programs};

#[test]
fn the_page_has_every_step_placeholder_and_program() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/model-server.md");
    let page = std::fs::read_to_string(path).expect("the page");
    for (form, does) in STEPS {
        let row = format!("| `{form}` | {does} |");
        assert!(page.contains(&row), "docs/model-server.md lacks: {row}");
    }
    for (name, value) in PLACEHOLDERS {
        let row = format!("| `{name}` | {value} |");
        assert!(page.contains(&row), "docs/model-server.md lacks: {row}");
    }
    for program in programs("http://127.0.0.1:4010") {
        assert!(page.contains(&program), "docs/model-server.md lacks: {program}");
    }
}
