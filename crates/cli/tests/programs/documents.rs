//! The documents agree with the repository: paths, links, cited tests and quoted messages exist.

use std::fs;
use std::path::{Path, PathBuf};

use regex_lite::Regex;

#[test]
fn paths_in_documents_exist() {
    let mut named = 0;
    for (document, text) in documents() {
        // The paths of the rules in policy.md are examples.
        if document.ends_with("policy.md") {
            continue;
        }
        let words = text.split(|c: char| c.is_whitespace() || "`()|,".contains(c));
        for word in words.map(|word| word.trim_end_matches([':', '.'])) {
            let ours =
                ["crates/", "docs/", "fuzz/", ".ci/"].iter().any(|top| word.starts_with(top));
            if ours && !word.contains(['<', '*']) && !word.contains("parrot") {
                named += 1;
                assert!(root().join(word).exists(), "{} names {word}", document.display());
            }
        }
    }
    assert!(named > 20, "only {named} paths are named");
}

#[test]
fn links_lead_to_files_and_headings() {
    let link = Regex::new(r"\]\(([^)\s]+)\)").expect("a pattern");
    let mut links = 0;
    for (document, text) in documents() {
        let text = without_code(&text);
        for found in link.captures_iter(&text) {
            let target = &found[1];
            if target.contains("://") {
                continue;
            }
            links += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = match file {
                "" => document.clone(),
                file => document.parent().expect("a directory").join(file),
            };
            let from = document.display();
            assert!(path.exists(), "{from} links to {target}, and there is no such file");
            if !heading.is_empty() {
                let headings = headings(&fs::read_to_string(path).expect("a document"));
                let exists = headings.iter().any(|name| name == heading);
                assert!(exists, "{from} links to {target}, and there is no such heading");
            }
        }
    }
    assert!(links > 100, "only {links} links");
}

#[test]
fn tests_that_show_a_guarantee_exist() {
    let text = read("docs/guarantees.md");
    let cited = Regex::new(r"`([a-z_/0-9]+\.rs)::([a-z_0-9]+)`").expect("a pattern");
    let mut tests = 0;
    for found in cited.captures_iter(&text) {
        let (file, name) = (&found[1], &found[2]);
        let path = root().join("crates").join(file);
        let source = fs::read_to_string(&path).unwrap_or_else(|_| panic!("no such file: {file}"));
        // A function, or a name in a list from which a macro makes functions.
        let defined =
            Regex::new(&format!(r"(?m)\bfn {name}\b|^\s+(.* )?{name}\b")).expect("a pattern");
        assert!(defined.is_match(&source), "no such test: {file}::{name}");
        tests += 1;
    }
    assert!(tests > 100, "only {tests} tests");
    let script = Regex::new(r"`([a-z_/0-9]+/scripts/[a-z0-9/-]+\.script)`").expect("a pattern");
    for found in script.captures_iter(&text) {
        assert!(root().join("crates").join(&found[1]).exists(), "no such script: {}", &found[1]);
    }
}

/// The constant parts of each message in a `symptom` block appear in the source.
#[test]
fn messages_in_the_troubleshooting_page_exist() {
    let mut source = String::new();
    for member in fs::read_dir(root().join("crates")).expect("a directory") {
        read_rust(&member.expect("an entry").path().join("src"), &mut source);
    }
    let continued = Regex::new(r"\\\n\s*").expect("a pattern");
    let source = continued.replace_all(&source, "").replace("\\\"", "\"");
    let text = read("docs/troubleshooting.md");
    let mut messages = 0;
    for block in text.split("```text symptom\n").skip(1) {
        let (block, _) = block.split_once("```").expect("an end");
        for line in block.lines() {
            messages += 1;
            for part in line.split('…').map(|part| part.trim_matches([' ', ';', ':', ',', '`'])) {
                let is_known = part.len() < 6 || source.contains(part);
                assert!(is_known, "no message has {part:?} of {line:?}");
            }
        }
    }
    assert!(messages > 20, "only {messages} messages");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("a document")
}

fn documents() -> Vec<(PathBuf, String)> {
    let folders = ["", "docs", "docs/decisions", "docs/protocols", "crates/dialects/scripts"];
    let mut documents = Vec::new();
    for folder in folders {
        for entry in fs::read_dir(root().join(folder)).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(&path).expect("a document");
                documents.push((path, text));
            }
        }
    }
    assert!(documents.len() > 40, "only {} documents", documents.len());
    documents
}

/// The text without code blocks and code spans.
fn without_code(text: &str) -> String {
    let blocks = text.split("```").step_by(2).collect::<String>();
    blocks.lines().map(|line| line.split('`').step_by(2).collect::<String>() + "\n").collect()
}

/// The anchors of a document's headings, as GitHub makes them.
fn headings(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    let blocks = text.split("```").step_by(2).collect::<String>();
    for line in blocks.lines().filter(|line| line.starts_with('#')) {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let same = anchors.iter().filter(|other| **other == anchor).count();
        anchors.push(if same == 0 { anchor } else { format!("{anchor}-{same}") });
    }
    anchors
}

fn read_rust(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read_rust(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            *all += &fs::read_to_string(path).expect("a source file");
        }
    }
}
