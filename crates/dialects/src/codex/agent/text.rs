//! Growing blocks of text and thinking: what was reported of each, so that nothing is reported twice.

use std::borrow::Cow;

use agentwire_protocol::Text;
use agentwire_protocol::event::{PlanUpdated, TextChunk, ThinkingChunk};

use crate::ledger::owned;
use crate::sent_text::SentText;
use crate::tape::{Agent, Out};

/// How many blocks may be open at once; beyond that, the oldest is forgotten.
const OPEN_LIMIT: usize = 256;

/// The longest text of a plan that is stored, in bytes.
const PLAN_LIMIT: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    Text,
    /// Reasoning that comes in one piece.
    Reasoning,
    Summary(u64),
    /// A part of the raw reasoning.
    Content(u64),
    /// A plan as text, reported only when it is complete.
    Plan,
}

/// The item that a block belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockKey<'k> {
    pub(super) item: &'k str,
    pub(super) part: BlockKind,
    /// Whether the wire gave the item its id.
    pub(super) named: bool,
}

#[derive(Debug, Default)]
pub(super) struct Blocks(Vec<Block>);

#[derive(Debug)]
struct Block {
    /// Who started it. The same agent ends it, whatever the line says.
    agent: Agent<'static>,
    item: String,
    part: BlockKind,
    name: Option<String>,
    sent: SentText,
    /// The text of a plan, which is reported at its end.
    plan: String,
    /// Whether the text so far ended in dots that may mean that more follows.
    dots: bool,
    open: bool,
    attempt: u32,
}

const DOTS: &str = "...";

impl Blocks {
    /// The next piece of a block, as a JSON string.
    pub(super) fn delta(
        &mut self,
        out: &mut Out<'_>,
        agent: &Agent<'_>,
        key: BlockKey<'_>,
        json: &str,
    ) {
        let block = self.block(agent, key);
        block.add_reported(&Text::quoted(json).decode());
        block.open = true;
        block.emit(out, Text::quoted(json), false);
    }

    /// The whole block so far, as a JSON string. The specification ends an incomplete one in dots
    /// (`seed-agent-message`): they are reported only if they turn out to be the end.
    pub(super) fn grow(
        &mut self,
        out: &mut Out<'_>,
        agent: &Agent<'_>,
        key: BlockKey<'_>,
        json: &str,
    ) {
        let block = self.block(agent, key);
        let dots = inside(json).strip_suffix(DOTS);
        let json = &*dots.map_or(Cow::Borrowed(json), |shown| Cow::Owned(quote(shown)));
        let whole = Text::quoted(json);
        let whole = whole.decode();
        let rest = match rest(&block.sent, json) {
            Some(rest) => rest,
            None => {
                block.restart(out);
                Text::quoted(json)
            }
        };
        block.dots = dots.is_some();
        block.open |= block.dots;
        block.sent = SentText::default();
        block.plan.clear();
        block.add_reported(&whole);
        if !rest.is_empty() {
            block.open = true;
            block.emit(out, rest, false);
        }
    }

    /// Ends the block; `json` is its whole text, if the wire repeats it.
    pub(super) fn finish(
        &mut self,
        out: &mut Out<'_>,
        agent: &Agent<'_>,
        key: BlockKey<'_>,
        json: Option<&str>,
    ) {
        let at = self.0.iter().position(|block| block.is(key));
        let mut block = match at {
            Some(at) => self.0.swap_remove(at),
            None => Block::new(agent, key),
        };
        let content = match json.map(|json| (rest(&block.sent, json), json)) {
            None => block.tail(),
            Some((Some(rest), _)) => rest,
            Some((None, json)) => {
                block.restart(out);
                Text::quoted(json)
            }
        };
        if key.part == BlockKind::Plan {
            let whole = json.map_or(Text::from(block.plan.as_str()), Text::quoted);
            out.emit_as(&block.agent, plan(whole));
            return;
        }
        block.emit(out, content, true);
    }

    /// The item starts again, as after a broken stream: what was reported of it becomes a separate block.
    pub(super) fn restart(&mut self, out: &mut Out<'_>, item: &str) {
        self.0.iter_mut().filter(|block| block.item == item).for_each(|block| block.restart(out));
    }

    /// Closes the blocks of one agent, or of all.
    pub(super) fn close(&mut self, out: &mut Out<'_>, agent: Option<&Agent<'_>>) {
        let theirs = |block: &mut Block| agent.is_none_or(|agent| agent.id == block.agent.id);
        for block in self.0.extract_if(.., theirs) {
            block.close(out);
        }
    }

    fn block(&mut self, agent: &Agent<'_>, key: BlockKey<'_>) -> &mut Block {
        let at = match self.0.iter().position(|block| block.is(key)) {
            Some(at) => at,
            None => {
                if self.0.len() >= OPEN_LIMIT {
                    self.0.remove(0);
                }
                self.0.push(Block::new(agent, key));
                self.0.len() - 1
            }
        };
        #[expect(clippy::indexing_slicing, reason = "`at` was found in this list or just added")]
        &mut self.0[at]
    }
}

impl Block {
    fn new(agent: &Agent<'_>, key: BlockKey<'_>) -> Self {
        let name = match key.part {
            _ if !key.named => None,
            BlockKind::Text | BlockKind::Reasoning | BlockKind::Plan => Some(key.item.to_owned()),
            BlockKind::Summary(index) => Some(format!("{}/summary/{index}", key.item)),
            BlockKind::Content(index) => Some(format!("{}/content/{index}", key.item)),
        };
        Self {
            agent: owned(agent),
            item: key.item.to_owned(),
            part: key.part,
            name,
            sent: SentText::default(),
            plan: String::new(),
            dots: false,
            open: false,
            attempt: 1,
        }
    }

    /// Adds to what was reported. The text of a plan is stored, up to a limit.
    fn add_reported(&mut self, text: &str) {
        self.sent.add(text);
        if self.part == BlockKind::Plan && self.plan.len() + text.len() <= PLAN_LIMIT {
            self.plan.push_str(text);
        }
    }

    fn tail(&self) -> Text<'static> {
        Text::fixed(if self.dots { DOTS } else { "" })
    }

    fn is(&self, key: BlockKey<'_>) -> bool {
        self.part == key.part && self.item == key.item
    }

    fn restart(&mut self, out: &mut Out<'_>) {
        if self.part != BlockKind::Plan {
            self.close(out);
        }
        self.sent = SentText::default();
        self.plan.clear();
        self.dots = false;
        if std::mem::take(&mut self.open) {
            self.attempt += 1;
        }
    }

    fn close(&self, out: &mut Out<'_>) {
        match self.part {
            BlockKind::Plan => {
                out.emit_as(&self.agent, plan(Text::from(self.plan.as_str())));
            }
            _ if self.open => self.emit(out, self.tail(), true),
            _ => {}
        }
    }

    fn emit(&self, out: &mut Out<'_>, content: Text<'_>, is_complete: bool) {
        let block_id = self.name.as_deref().map(|name| match self.attempt {
            1 => Text::from(name),
            attempt => Text::from(format!("{name}#{attempt}")),
        });
        let agent = &self.agent;
        match self.part {
            BlockKind::Text => out.emit_as(agent, TextChunk { content, is_complete, block_id }),
            BlockKind::Reasoning | BlockKind::Summary(_) | BlockKind::Content(_) => {
                out.emit_as(
                    agent,
                    ThinkingChunk { content, is_complete, block_id, signature: None },
                );
            }
            BlockKind::Plan => {}
        }
    }
}

fn plan(explanation: Text<'_>) -> PlanUpdated<'_> {
    PlanUpdated { entries: Vec::new(), explanation: Some(explanation) }
}

fn inside(json: &str) -> &str {
    json.get(1..json.len().saturating_sub(1)).unwrap_or_default()
}

fn quote(inside: &str) -> String {
    format!("\"{inside}\"")
}

/// The part of `json` after what was reported; `None` if it does not start with that.
fn rest<'j>(sent: &SentText, json: &'j str) -> Option<Text<'j>> {
    if sent.is_empty() {
        return Some(Text::quoted(json));
    }
    let whole = Text::quoted(json);
    let whole = whole.decode();
    Some(Text::from(sent.rest_of(&whole)?.to_owned()))
}
