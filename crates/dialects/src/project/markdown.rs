//! Decides whether an agent's Markdown file is only text. The fields at its top are YAML, and agents accept
//! more forms of it than can be listed here. So a file is harmless only if every line has a known plain
//! form.

/// Fields that neither run nor allow anything.
const HARMLESS: &[&str] = &[
    "agent",
    "argument-hint",
    "arguments",
    "author",
    "color",
    "context",
    "description",
    "disable-model-invocation",
    "disallowed-tools",
    "disallowedTools",
    "display_name",
    "effort",
    "kind",
    "license",
    "maxTurns",
    "max_turns",
    "model",
    "name",
    "paths",
    "skills",
    "tags",
    "temperature",
    "timeout_mins",
    "title",
    // Limits the session's tools to these. The policy still judges each call.
    "tools",
    "user-invocable",
    "version",
    "when_to_use",
];

const MARK: &str = "---";

/// The lines at the top of a Markdown file if they are not known to be harmless, else `None`.
pub(super) fn unknown_fields(text: &str) -> Option<Vec<&str>> {
    // Some agents skip these characters before the mark, so we do too.
    let is_skipped = |letter: char| letter.is_whitespace() || letter == '\u{feff}';
    let text = text.trim_start_matches(is_skipped);
    if !text.starts_with(MARK) {
        return None;
    }
    let mut lines = text.lines();
    let is_opened = lines.next().is_some_and(is_mark);
    let mut head = Vec::new();
    let mut is_closed = false;
    for line in lines.by_ref() {
        is_closed = is_mark(line);
        if is_closed {
            break;
        }
        head.push(line);
    }
    let has_field = head.iter().any(|line| !line.trim().is_empty());
    // Without a field in between, an agent may take the second mark for the first.
    let is_clear = has_field || !lines.any(|line| line.starts_with(MARK));
    let is_harmless = is_opened && is_closed && is_clear && are_harmless(&head);
    (!is_harmless).then_some(head)
}

fn is_mark(line: &str) -> bool {
    line.trim_end_matches([' ', '\t']) == MARK
}

fn are_harmless(head: &[&str]) -> bool {
    let mut has_field = false;
    head.iter().all(|line| {
        // YAML treats some of these as line ends.
        let is_odd = |letter: char| {
            (letter.is_control() && letter != '\t')
                || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}')
        };
        if line.contains(is_odd) {
            return false;
        }
        if line.trim().is_empty() || line.starts_with('#') {
            return true;
        }
        if line.starts_with([' ', '\t']) {
            // A continuation of the value above: text or an item, but nothing that can be a field.
            let item = line.trim_start();
            let item = item.strip_prefix("- ").unwrap_or(item);
            return has_field && !line.contains(':') && is_plain(item);
        }
        has_field = true;
        line.split_once(':').is_some_and(|(name, value)| {
            HARMLESS.contains(&name)
                && (value.is_empty() || value.starts_with([' ', '\t']))
                && is_plain(value)
        })
    })
}

/// Whether a value is a text or a list of texts, without tags, anchors or fields.
fn is_plain(value: &str) -> bool {
    let value = value.trim();
    if value.starts_with('[') {
        return !value.contains(['!', '&', '*', '{', ':']);
    }
    !value.starts_with(['!', '&', '*', '{', '%', '@', '`', '?'])
}
