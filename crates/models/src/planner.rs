//! Selects the steps that answer a request, and plans the response from them.

mod placeholders;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use http::{HeaderName, HeaderValue};

use crate::conversation::{Conversation, ConversationEntry};
use crate::response_plan::{Block, Deltas, End, Failure, ResponsePlan, Stop, ToolCall, ToolKind};
use crate::schema_sample::schema_sample;
use crate::script::{Fault, LONGEST, Script, Step};
use crate::usage::Usage;
use placeholders::fill;

const PAD_PIECE: usize = 16 * 1024;
const ECHO: usize = 200;

#[derive(Debug)]
pub(crate) struct ResponseSteps {
    steps: Vec<Step>,
    /// Equal for all attempts at this response, and for no other response.
    pub(crate) key: u64,
}

impl ResponseSteps {
    /// The steps for the request: from its script, or a plain answer.
    pub(crate) fn find(conversation: &Conversation) -> Result<Self, Failure> {
        if let Some(answer) = &conversation.side {
            return Ok(Self::plain_text(answer));
        }
        if let Some(steps) = Self::scripted(conversation)? {
            return Ok(steps);
        }
        Ok(match (&conversation.schema, conversation.unanswered()) {
            (Some(schema), _) => Self::plain_text(&schema_sample(schema).to_string()),
            (None, Some(prompt)) => {
                let echo: String = prompt.trim().chars().take(ECHO).collect();
                Self::plain_text(&format!("You said: {echo}"))
            }
            (None, None) => Self::plain_text("Done."),
        })
    }

    /// How many responses the script of the last prompt with markers has had, unless it is over.
    pub(crate) fn responses(conversation: &Conversation) -> Option<usize> {
        ScriptPosition::find(conversation).ok()?.map(|position| position.responses)
    }

    /// The next steps of the last prompt's script.
    fn scripted(conversation: &Conversation) -> Result<Option<Self>, Failure> {
        let Some(position) = ScriptPosition::find(conversation)? else { return Ok(None) };
        let ScriptPosition { script, text, index, responses } = position;
        let mut hasher = DefaultHasher::new();
        (&conversation.session, text, index, responses).hash(&mut hasher);
        let key = hasher.finish();
        let steps = responses_of(script, conversation).into_iter().nth(responses);
        Ok(steps.map(|steps| Self { steps, key }))
    }

    fn plain_text(text: &str) -> Self {
        // The text must not be read as a placeholder.
        Self { steps: vec![Step::Say(text.replace('{', "{{"))], key: 0 }
    }

    /// Whether the attempts at this response must be counted.
    pub(crate) fn counts(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Fault { times: Some(_), .. }))
    }

    /// Plans an attempt, numbered from 0. `size` is the size of the request.
    pub(crate) fn plan(
        self,
        conversation: &Conversation,
        attempt: u32,
        id: &str,
        size: usize,
    ) -> ResponsePlan {
        let mut planner = Planner::new(conversation, attempt, id);
        for step in self.steps {
            planner.add(step);
            if matches!(planner.end, End::Hang | End::Cut | End::Fail(_)) {
                planner.leave_open();
                break;
            }
        }
        planner.finish(size)
    }
}

/// A script, and how far it has been played.
struct ScriptPosition<'conversation> {
    script: Script,
    /// The prompt with the script, and its index in the conversation.
    text: &'conversation str,
    index: usize,
    responses: usize,
}

impl<'conversation> ScriptPosition<'conversation> {
    fn find(conversation: &'conversation Conversation) -> Result<Option<Self>, Failure> {
        let mut responses = 0;
        let mut is_response = false;
        let mut broken = false;
        for (index, entry) in conversation.entries.iter().enumerate().rev() {
            let was_response =
                std::mem::replace(&mut is_response, *entry == ConversationEntry::Response);
            match entry {
                ConversationEntry::Response if was_response => {}
                ConversationEntry::Response if broken => broken = false,
                ConversationEntry::Response => responses += 1,
                ConversationEntry::Broken => broken = true,
                // The conversation contains nothing of the broken response.
                ConversationEntry::Results(_) => broken = false,
                ConversationEntry::Abandoned => return Ok(None),
                ConversationEntry::Prompt(text) => {
                    broken = false;
                    if let Some(script) = Script::parse(text)? {
                        return Ok(Some(Self { script, text, index, responses }));
                    }
                }
            }
        }
        Ok(None)
    }
}

/// The steps of each response. A call that only uses the API's own tools does not end a response.
fn responses_of(script: Script, conversation: &Conversation) -> Vec<Vec<Step>> {
    let mut responses: Vec<Vec<Step>> = Vec::new();
    let mut goes_on = false;
    for steps in script.responses {
        let ends = !matches!(steps.last(), Some(Step::Tools(calls))
            if calls.iter().all(|(name, _)| conversation.kind(name) == ToolKind::Hosted));
        match responses.last_mut() {
            Some(response) if goes_on => response.extend(steps),
            _ => responses.push(steps),
        }
        goes_on = !ends;
    }
    responses
}

struct Planner<'conversation> {
    conversation: &'conversation Conversation,
    id: &'conversation str,
    attempt: u32,
    /// How many attempts the faults so far take.
    taken: u32,
    /// The fault of this attempt is not in all attempts.
    passing: bool,
    pause: Duration,
    blocks: Vec<Block>,
    /// How many more bytes of text the response may have.
    left: usize,
    end: End,
    usage: Option<Usage>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl<'conversation> Planner<'conversation> {
    fn new(
        conversation: &'conversation Conversation,
        attempt: u32,
        id: &'conversation str,
    ) -> Self {
        Self {
            conversation,
            id,
            attempt,
            taken: 0,
            passing: false,
            pause: Duration::ZERO,
            blocks: Vec::new(),
            left: LONGEST,
            end: End::Stop(Stop::End),
            usage: None,
            headers: Vec::new(),
        }
    }

    /// Fills the placeholders of a text, and cuts it where the response is full.
    fn filled(&mut self, text: &str) -> String {
        let filled = fill(text, self.conversation, self.left);
        self.left -= filled.len();
        filled
    }

    fn add(&mut self, step: Step) {
        match step {
            Step::Say(text) => {
                let deltas = Deltas::split_words(&self.filled(&text));
                self.blocks.push(Block::Text(deltas.after(self.pause)));
            }
            Step::Think(text) => {
                let deltas = Deltas::split_words(&self.filled(&text));
                self.blocks.push(Block::Thinking(deltas.after(self.pause)));
            }
            Step::Repeat { count, text } => {
                let text = self.filled(&text);
                let count = count.min(self.left / text.len().max(1) + 1);
                self.left = self.left.saturating_sub(text.len() * (count - 1));
                let pieces = vec![text; count];
                self.blocks.push(Block::Text(Deltas::new(pieces).after(self.pause)));
            }
            Step::Pad(bytes) => {
                let bytes = bytes.min(self.left);
                self.left -= bytes;
                let mut pieces = vec!["B".repeat(PAD_PIECE); bytes / PAD_PIECE];
                pieces.push("B".repeat(bytes % PAD_PIECE));
                self.blocks.push(Block::Text(Deltas::new(pieces).after(self.pause)));
            }
            Step::Tools(calls) => {
                for (name, input) in calls {
                    let id = format!("{}{:02}", self.id, self.blocks.len());
                    let kind = self.conversation.kind(&name);
                    if kind != ToolKind::Hosted {
                        self.end = End::Stop(Stop::Tools);
                    }
                    let call = ToolCall { id, name, kind, input, pause: self.pause };
                    self.blocks.push(Block::Tool(call));
                }
            }
            Step::Stop(stop) => self.end = End::Stop(stop),
            Step::Usage(usage) => self.usage = Some(usage),
            Step::Header(name, value) => self.headers.push((name, value)),
            Step::Slow(pause) => self.pause = pause,
            Step::Fault { fault, times: None } => self.apply_fault(fault),
            Step::Fault { fault, times: Some(times) } => {
                let first = self.taken;
                self.taken = first.saturating_add(times);
                if (first..self.taken).contains(&self.attempt) {
                    self.passing = true;
                    self.apply_fault(fault);
                }
            }
        }
    }

    fn apply_fault(&mut self, fault: Fault) {
        match fault {
            Fault::Garbage => self.blocks.push(Block::Garbage),
            Fault::Fail(failure) => self.end = End::Fail(failure),
            Fault::Hang => self.end = End::Hang,
            Fault::Cut => self.end = End::Cut,
        }
    }

    fn leave_open(&mut self) {
        match self.blocks.last_mut() {
            Some(Block::Text(deltas) | Block::Thinking(deltas)) => deltas.open = true,
            Some(Block::Tool(_) | Block::Garbage) | None => {}
        }
    }

    fn finish(self, size: usize) -> ResponsePlan {
        let written: usize = self
            .blocks
            .iter()
            .map(|block| match block {
                Block::Text(deltas) | Block::Thinking(deltas) => deltas.pieces.len(),
                Block::Tool(call) => call.input.get().len() / 4 + 1,
                Block::Garbage => 0,
            })
            .sum();
        let usage = self.usage.unwrap_or_else(|| Usage {
            input: size as u64 / 4,
            output: written.max(1) as u64,
            ..Usage::default()
        });
        ResponsePlan {
            id: self.id.to_owned(),
            model: self.conversation.model.clone(),
            blocks: self.blocks,
            end: self.end,
            usage,
            headers: self.headers,
            passing: self.passing,
        }
    }
}

#[cfg(test)]
mod tests;
