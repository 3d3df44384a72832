//! Every path that a document names exists.

use std::path::Path;

#[test]
fn paths_in_documents_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut named = 0;
    for document in documents(&root) {
        let text = std::fs::read_to_string(&document).expect("the document");
        let document = document.display();
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

fn documents(root: &Path) -> Vec<std::path::PathBuf> {
    let folders = [root.to_owned(), root.join("docs"), root.join("docs/decisions")];
    let mut documents = Vec::new();
    for folder in folders {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            // The paths of the rules in policy.md are examples.
            let is_document = path.extension().is_some_and(|extension| extension == "md");
            if is_document && !path.ends_with("policy.md") {
                documents.push(path);
            }
        }
    }
    assert!(documents.len() > 10, "only {} documents", documents.len());
    documents
}
