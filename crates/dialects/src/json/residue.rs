//! Lists the values of a line that were not read: the loss of a translation, made visible.

use std::collections::BTreeSet;

use super::read::Value;
use super::scan::{Document, Kind};

/// The paths of values that were not read, such as `message.usage.service_tier` or `items[].id`. `null`
/// carries no information, so it is not listed.
pub fn residue(document: Document<'_>) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    walk(document, 0, String::new(), &mut paths);
    paths
}

fn walk(document: Document<'_>, index: usize, path: String, paths: &mut BTreeSet<String>) {
    let Some(node) = document.nodes.get(index) else { return };
    if node.seen.get() || node.kind == Kind::Null {
        return;
    }
    let nested = (index + 1)..node.next as usize;
    let touched =
        document.nodes.get(nested).is_some_and(|nodes| nodes.iter().any(|node| node.seen.get()));
    // An object or array of which nothing was read is one entry, not one for each leaf.
    if !touched && index > 0 {
        paths.insert(path);
        return;
    }
    let value = Value::new(document, index);
    match node.kind {
        Kind::Object => {
            let mut at = index + 1;
            for (key, _) in value.fields() {
                let below =
                    if path.is_empty() { key.into_owned() } else { format!("{path}.{key}") };
                walk(document, at + 1, below, paths);
                at = document.nodes.get(at + 1).map_or(usize::MAX, |node| node.next as usize);
            }
        }
        Kind::Array => {
            let mut at = index + 1;
            while at < node.next as usize {
                walk(document, at, format!("{path}[]"), paths);
                at = document.nodes.get(at).map_or(usize::MAX, |node| node.next as usize);
            }
        }
        Kind::Null | Kind::False | Kind::True | Kind::Number | Kind::String | Kind::Deep => {
            paths.insert(path);
        }
    }
}
