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
    // Every option has a description, and examples keep their lines.
    let page = page.replace("\\-", "-");
    for option in ["--driver", "--profile", "--data-dir", "--config", "--log-level", "--log-format"]
    {
        let (_, after) = page.split_once(&format!("\\fB{option}\\fR \\fI")).expect(option);
        assert!(after.lines().nth(1).is_some_and(|line| !line.is_empty()), "{option}: {page}");
    }
    assert!(page.contains("\n.SH EXAMPLES\n.nf\n  agentwire run -a demo "), "{page}");
    assert!(!page.contains("EXTRA"), "{page}");
    let program = home.told(&["man"]);
    let groups = ["Sessions", "Server", "Drop-ins", "Tools"].map(|name| {
        program.find(&format!(".SS {name}\n")).unwrap_or_else(|| panic!("{name} in {program}"))
    });
    assert!(groups.is_sorted(), "{program}");
    let page = home.told(&["man", "permit", "allow"]);
    assert!(page.contains(".TH agentwire-permit-allow 1"), "{page}");
    let directory = home.path("man1");
    home.told(&["man", "-o", directory.to_str().expect("a path")]);
    for name in ["agentwire.1", "agentwire-run.1", "agentwire-permit-allow.1"] {
        let text = std::fs::read_to_string(directory.join(name)).expect(name);
        assert!(text.contains(".SH NAME"), "{text}");
    }
    let output = home.run(&["man", "nope"]);
    assert_eq!(code(&output), Some(2));
    assert!(error(&output).contains("unknown command \"nope\""), "{}", error(&output));
}

#[test]
fn wrong_words_and_variables_are_named_as_they_were_given() {
    let home = EngineHome::new();
    let told = |args: &[&str], variable: Option<(&str, &str)>| {
        let output = home.command(args).envs(variable).output().expect("it runs");
        assert_eq!(code(&output), Some(2), "{args:?}: {}", error(&output));
        error(&output)
    };
    let level = Some(("AGENTWIRE_LOG", "loud"));
    assert!(
        told(&["ls"], level).contains("'loud' for 'AGENTWIRE_LOG'"),
        "{}",
        told(&["ls"], level)
    );
    let given = told(&["ls", "--log-level", "loud"], None);
    assert!(given.contains("for '--log-level <LEVEL>'"), "{given}");
    let unknown = told(&["lgos"], None);
    assert!(unknown.contains("unrecognized command 'lgos'"), "{unknown}");
    assert!(unknown.contains("similar command exists: 'logs'"), "{unknown}");
    let prompt = told(&["run", "hi", "there"], None);
    assert!(prompt.contains("tip: quote the prompt"), "{prompt}");
}
