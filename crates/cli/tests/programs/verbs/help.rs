//! Help and man pages, as the program prints them.

use crate::shared::error;
use crate::verbs::harness::{EngineHome, code};

#[test]
fn help_of_a_verb_is_what_the_verb_prints() {
    let home = EngineHome::new();
    for verb in [&["run"][..], &["permit", "allow"], &["claude"], &["demo-agent"], &[]] {
        let asked = home.told(&[&["help"][..], verb].concat());
        assert_eq!(asked, home.told(&[verb, &["--help"]].concat()), "{verb:?}");
    }
    let output = home.run(&["help", "lgos"]);
    assert_eq!(code(&output), Some(2));
    assert!(error(&output).contains("'logs'"), "{}", error(&output));
}

#[test]
fn short_help_of_the_drop_ins_fits_a_screen() {
    let home = EngineHome::new();
    for verb in ["claude", "demo-agent"] {
        let (short, long) = (home.told(&[verb, "-h"]), home.told(&[verb, "--help"]));
        assert!(short.lines().count() <= 30, "{short}");
        assert!(short.contains(&format!("`agentwire {verb} --help`")), "{short}");
        assert!(long.lines().count() > 50, "{long}");
    }
}

#[test]
fn the_demo_agent_lists_its_directives_and_flags() {
    let help = EngineHome::new().told(&["demo-agent", "--help"]);
    for part in
        ["\n  /say TEXT ", "\n  /exit CODE ", "\n  --state-dir <path> ", "\n  --model <model> "]
    {
        assert!(help.contains(part), "{part:?} is not in {help}");
    }
}

#[test]
fn man_pages_are_printed_and_written() {
    let home = EngineHome::new();
    let page = home.told(&["man"]);
    assert!(page.contains(".TH agentwire 1") && page.contains(".SH SYNOPSIS"), "{page}");
    assert!(page.contains("agentwire\\-run(1)"), "{page}");
    let page = home.told(&["man", "run"]);
    assert!(page.contains(".TH agentwire-run 1"), "{page}");
    let (own, global) = page.split_once(".SH \"GLOBAL OPTIONS\"").expect("the heading");
    assert!(own.contains("\\-\\-approval") && global.contains("\\-\\-data\\-dir"), "{page}");
    let directory = home.path("man1");
    home.told(&["man", "-o", directory.to_str().expect("a path")]);
    for name in ["agentwire.1", "agentwire-run.1", "agentwire-permit-allow.1"] {
        let text = std::fs::read_to_string(directory.join(name)).expect(name);
        assert!(text.contains(".SH NAME"), "{text}");
    }
    let output = home.run(&["man", "nope"]);
    assert_eq!(code(&output), Some(2));
    assert!(error(&output).contains("unknown verb \"nope\""), "{}", error(&output));
}
