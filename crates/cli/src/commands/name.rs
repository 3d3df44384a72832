//! `agentwire name`: sets the title, the pin and the tags of a session.

use agentwire_protocol::LabelChange;

use crate::args::{Global, Name};
use crate::failure::Failure;
use crate::format;
use crate::print;
use crate::source::{self, Source};

pub(crate) fn run(global: &Global, args: &Name) -> Result<(), Failure> {
    source::open(global, &args.at, async |source| name(source, args).await)
}

async fn name(source: &Source, args: &Name) -> Result<(), Failure> {
    let id = source.find(&args.session).await?;
    let title = match (&args.title, args.no_title) {
        (Some(title), _) => Some(Some(title.clone())),
        (None, true) => Some(None),
        (None, false) => None,
    };
    let pinned = (args.pin || args.unpin).then_some(args.pin);
    let tags = match args.tags.is_empty() && args.untags.is_empty() {
        true => None,
        false => {
            let known = source.summary(&id).await?.tags;
            let tags = known.into_iter().chain(args.tags.iter().cloned());
            Some(tags.filter(|tag| !args.untags.contains(tag)).collect())
        }
    };
    let session = match (LabelChange { title, pinned, tags }).checked()? {
        change if change.is_empty() => source.summary(&id).await?,
        change => source.label(&id, change).await?,
    };
    if args.json {
        return Ok(print::json(&session)?);
    }
    let mut text = format!("session {}", format::short(session.id.as_str()));
    if let Some(title) = &session.title {
        text.push_str(&format!(": {title}"));
    }
    for tag in &session.tags {
        text.push_str(&format!(" #{tag}"));
    }
    if session.pinned {
        text.push_str(" (pinned)");
    }
    print::done(&format::line(&text));
    Ok(())
}
