//! Every path that a document names exists.

use std::path::Path;

#[test]
fn paths_in_documents_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut named = 0;
    for document in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "docs/decisions/0001-json.md",
    ] {
        let text = std::fs::read_to_string(root.join(document)).expect("the document");
        let words = text.split(|c: char| c.is_whitespace() || "`()|,".contains(c));
        for word in words.map(|word| word.trim_end_matches([':', '.'])) {
            let ours =
                ["crates/", "docs/", "fuzz/", ".ci/"].iter().any(|top| word.starts_with(top));
            if ours && !word.contains(['<', '*']) && !word.contains("parrot") {
                named += 1;
                assert!(root.join(word).exists(), "{document} names {word}");
            }
        }
    }
    assert!(named > 20, "only {named} paths are named");
}
