//! The search in texts. What people type is never a query language: it is turned into words first.

use agentwire_protocol::{SearchHit, SearchQuery, SearchResult, SessionId};
use rusqlite::{Connection, params};

use super::{Index, number};
use crate::store::StoreError;

/// How many words of a query count.
const WORDS: usize = 32;

/// Marks in snippets, which texts do not have.
const MARKS: (char, char) = ('\u{2}', '\u{3}');

impl Index {
    /// The texts that have all words, the last indexed first. Titles are left out.
    pub fn search(&self, query: &SearchQuery) -> Result<SearchResult, StoreError> {
        self.with(|connection| search(connection, query))
    }
}

fn search(connection: &Connection, query: &SearchQuery) -> Result<SearchResult, rusqlite::Error> {
    let limit = query.limit.unwrap_or(SearchResult::PAGE).clamp(1, SearchResult::LIMIT);
    let mut result = SearchResult { hits: Vec::new(), next: None, complete: true };
    let Some(words) = words(&query.q) else { return Ok(result) };
    let mut wanted = format!("body : ({words})");
    if let Some(id) = &query.session_id {
        let Some(number) = number(connection, id)? else { return Ok(result) };
        wanted.push_str(&format!(" AND scope : s{number}"));
    }
    if let Some(kind) = &query.kind {
        let kind: String = kind.chars().filter(char::is_ascii_alphanumeric).collect();
        wanted.push_str(&format!(" AND scope : \"{kind}\""));
    }
    let after = query.after.as_deref().map_or(i64::MAX, |after| after.parse().unwrap_or(0));
    let mut statement = connection.prepare_cached(
        "SELECT texts.rowid, followed.id, texts.seq, scope, time, snippet(texts, 1, ?4, ?5, '…', 24) \
         FROM texts JOIN followed ON followed.session = texts.session \
         WHERE texts MATCH ?1 AND texts.rowid < ?2 ORDER BY texts.rowid DESC LIMIT ?3",
    )?;
    let (start, end) = (MARKS.0.to_string(), MARKS.1.to_string());
    let mut rows = statement.query(params![wanted, after, limit + 1, start, end])?;
    let mut last = 0_i64;
    while let Some(row) = rows.next()? {
        if result.hits.len() == limit {
            result.next = Some(last.to_string());
            break;
        }
        last = row.get(0)?;
        let scope: String = row.get(3)?;
        let (snippet, marks) = marked(&row.get::<_, String>(5)?);
        result.hits.push(SearchHit {
            session_id: SessionId::from(row.get::<_, String>(1)?),
            seq: row.get(2)?,
            kind: scope.split(' ').nth(1).unwrap_or_default().to_owned(),
            timestamp: row.get(4)?,
            title: None,
            snippet,
            marks,
        });
    }
    Ok(result)
}

/// The words as SQLite wants them, each in quotes; `None` if there are none.
fn words(text: &str) -> Option<String> {
    let mut terms = Vec::new();
    for (number, part) in text.split('"').enumerate() {
        // Every second part was in quotes. A quote without an end ends with the text.
        let is_phrase = number % 2 == 1;
        let singles: Vec<&str> =
            if is_phrase { vec![part] } else { part.split_whitespace().collect() };
        for word in singles {
            let is_start = !is_phrase && word.ends_with('*');
            let word: String = word.chars().filter(|c| *c != '\0').collect();
            // Without a letter or a digit there is nothing to find.
            if word.contains(char::is_alphanumeric) && terms.len() < WORDS {
                terms.push(format!("\"{word}\"{}", if is_start { " *" } else { "" }));
            }
        }
    }
    (!terms.is_empty()).then(|| terms.join(" AND "))
}

/// The snippet without marks, and where they were.
fn marked(text: &str) -> (String, Vec<[usize; 2]>) {
    let (mut plain, mut marks) = (String::new(), Vec::new());
    let (mut at, mut start) = (0, 0);
    for c in text.chars() {
        if c == MARKS.0 {
            start = at;
        } else if c == MARKS.1 {
            marks.push([start, at]);
        } else {
            plain.push(c);
            at += 1;
        }
    }
    (plain, marks)
}
