//! `agentwire search`: finds words in prompts, answers, thinking, calls and paths.

use agentwire_protocol::{SearchHit, SearchQuery, SearchResult};

use crate::args::{Global, Search};
use crate::failure::Failure;
use crate::format::{self, Paint};
use crate::print;
use crate::source::{self, Source};

pub(crate) fn run(global: &Global, args: &Search) -> Result<(), Failure> {
    source::open(global, &args.at, async |source| search(source, args).await)
}

async fn search(source: &Source, args: &Search) -> Result<(), Failure> {
    if args.rebuild {
        source.rebuild_index().await?;
        print::done("the index was made again");
    }
    if args.words.is_empty() {
        return Ok(());
    }
    let session_id = match &args.session {
        Some(session) => Some(source.find(session).await?),
        None => None,
    };
    let mut query = SearchQuery {
        q: args.words.join(" "),
        session_id,
        kind: args.kind.clone(),
        ..SearchQuery::default()
    };
    let mut found = SearchResult { complete: true, ..SearchResult::default() };
    loop {
        let left = args.limit.saturating_sub(found.hits.len());
        query.limit = Some(left.clamp(1, SearchResult::LIMIT));
        let page = source.search(&query).await?;
        found.hits.extend(page.hits);
        found.complete = page.complete;
        found.next.clone_from(&page.next);
        found.hits.truncate(args.limit);
        match page.next {
            Some(next) if found.hits.len() < args.limit => query.after = Some(next),
            Some(_) | None => break,
        }
    }
    if args.json {
        return Ok(print::json(&found)?);
    }
    for hit in &found.hits {
        print::line(&shown(hit, Paint::stdout()))?;
    }
    if found.hits.is_empty() {
        print::note("nothing found");
    } else if found.next.is_some() {
        print::note(&format!("showing {}; -n shows more", found.hits.len()));
    }
    if !found.complete {
        print::note("old sessions are still being read; there may be more");
    }
    Ok(())
}

/// The session, the number and the type of the event, and the text around the words.
fn shown(hit: &SearchHit, paint: Paint) -> String {
    let id = format::short(hit.session_id.as_str());
    let place = format!("{id}:{} {}", hit.seq, hit.kind);
    let mut text = String::new();
    let characters: Vec<char> = hit.snippet.chars().collect();
    let part = |from: usize, to: usize| -> String {
        let part: String = characters.get(from..to).unwrap_or_default().iter().collect();
        // The ends of a part may be spaces that matter.
        format::harmless(&part.replace(['\n', '\r', '\t'], " "))
    };
    let mut at = 0;
    for [start, end] in &hit.marks {
        text.push_str(&part(at, *start));
        text.push_str(&paint.yellow(&part(*start, *end)));
        at = *end;
    }
    text.push_str(&part(at, characters.len()));
    let title = hit.title.as_deref().map(|title| format!("  {}", format::line(title)));
    format!("{}{}\n    {text}", place, paint.dim(&title.unwrap_or_default()))
}
