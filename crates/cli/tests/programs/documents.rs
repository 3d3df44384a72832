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
            let ours = ["clients/", "crates/", "docs/", "fuzz/", ".ci/"]
                .iter()
                .any(|top| word.starts_with(top));
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
    for member in fs::read_dir(root().join("crates")).expect("a folder") {
        for path in rust_files(&member.expect("an entry").path().join("src")) {
            source += &fs::read_to_string(path).expect("a source file");
        }
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

/// Phrases of an old voice that plain English replaced (docs/style.md).
#[test]
fn documents_and_comments_are_in_plain_english() {
    let old = [
        "for want of",
        "begun anew",
        "anew",
        "whoever",
        "whatever it be",
        "is told of",
        "are told of",
        "all there is",
        "gives away",
        "is no base64",
        "is no json",
        "cannot be had",
        "mended",
    ];
    let old = Regex::new(&format!(r"(?i)\b({})\b", old.join("|"))).expect("a pattern");
    for (document, text) in documents() {
        let name = document.strip_prefix(root()).expect("a path").to_owned();
        // The guide quotes them; decisions are history.
        if !name.ends_with("style.md") && !name.starts_with("docs/decisions") {
            assert_plain(&name, text.lines(), &old);
        }
    }
    for member in fs::read_dir(root().join("crates")).expect("a folder") {
        for path in rust_files(&member.expect("an entry").path().join("src")) {
            let text = fs::read_to_string(&path).expect("a source file");
            let comments = text.lines().filter(|line| line.trim_start().starts_with("//"));
            assert_plain(path.strip_prefix(root()).expect("a path"), comments, &old);
        }
    }
}

fn assert_plain<'t>(file: &Path, lines: impl Iterator<Item = &'t str>, old: &Regex) {
    for line in lines {
        let found = old.find(line).map(|found| found.as_str());
        assert_eq!(found, None, "{}: {line}: see docs/style.md", file.display());
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("a document")
}

fn documents() -> Vec<(PathBuf, String)> {
    let folders = [
        "",
        "clients",
        "clients/typescript",
        "docs",
        "docs/decisions",
        "docs/protocols",
        "crates/dialects/scripts",
    ];
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

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
