//! What is open in a session: its turn, its tool calls and its requests. Shared by all dialects, so that
//! everything that opens is closed exactly once.

use std::collections::VecDeque;

use agentwire_protocol::event::{
    ToolFailed, ToolFailure, TurnCompleted, TurnFailed, TurnFailure, TurnOrigin, TurnStarted,
};
use agentwire_protocol::{GatewayError, MAIN_AGENT, Prompt, Text, TokenUsage};

use crate::agent::report_cancelled;
use crate::prompt_queue::not_queued;
use crate::tape::{Agent, Ending, Out};

/// How many tool calls or requests may be open at once; further ones are not reported.
const OPEN_LIMIT: usize = 1024;

/// The longest id; a call or request with a longer one is not reported.
const ID_LIMIT: usize = 4096;

/// What is open. `T` is what a dialect remembers about a tool call, `R` about a request.
#[derive(Debug)]
pub(crate) struct Ledger<T, R> {
    turn: u64,
    turn_open: bool,
    prompts: VecDeque<TurnInput<'static>>,
    pub(crate) tools: OpenList<T>,
    pub(crate) requests: OpenList<R>,
    /// Which requests outlive the turn that raised them.
    lasting: fn(&R) -> bool,
}

/// What a turn works on.
#[derive(Clone, Debug)]
pub(crate) struct TurnInput<'a> {
    pub(crate) text: Text<'a>,
    /// The ids of its prompts.
    pub(crate) ids: Vec<Text<'a>>,
}

impl<'a> From<Text<'a>> for TurnInput<'a> {
    fn from(text: Text<'a>) -> Self {
        Self { text, ids: Vec::new() }
    }
}

impl From<&Prompt> for TurnInput<'static> {
    fn from(prompt: &Prompt) -> Self {
        let ids = prompt.message_id.iter().map(|id| Text::from(id.clone())).collect();
        Self { text: Text::from(prompt.text.clone()), ids }
    }
}

/// What is open of one kind, oldest first.
#[derive(Debug)]
pub(crate) struct OpenList<M>(Vec<Open<M>>);

/// A tool call without a result, or a request without an answer.
#[derive(Debug)]
pub(crate) struct Open<M> {
    pub(crate) id: String,
    pub(crate) agent: Agent<'static>,
    /// What a dialect remembers about it.
    pub(crate) memo: M,
}

impl<M> OpenList<M> {
    /// Returns `false` if that id is already open, or too many are.
    pub(crate) fn open(&mut self, id: &str, agent: &Agent<'_>, memo: M) -> bool {
        if self.0.len() >= OPEN_LIMIT || id.len() > ID_LIMIT || self.get(id).is_some() {
            return false;
        }
        self.0.push(Open { id: id.to_owned(), agent: owned(agent), memo });
        true
    }

    pub(crate) fn get(&mut self, id: &str) -> Option<&mut Open<M>> {
        self.0.iter_mut().find(|open| open.id == id)
    }

    pub(crate) fn close(&mut self, id: &str) -> Option<Open<M>> {
        let at = self.0.iter().position(|open| open.id == id)?;
        Some(self.0.remove(at))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Open<M>> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Open<M>> {
        self.0.iter_mut()
    }
}

pub(crate) fn owned(agent: &Agent<'_>) -> Agent<'static> {
    Agent { id: agent.id.clone().into_owned(), parent: agent.parent.clone().map(Text::into_owned) }
}

impl<T, R> Default for Ledger<T, R> {
    fn default() -> Self {
        Self {
            turn: 0,
            turn_open: false,
            prompts: VecDeque::new(),
            tools: OpenList(Vec::new()),
            requests: OpenList(Vec::new()),
            lasting: |_| false,
        }
    }
}

impl<T, R> Ledger<T, R> {
    /// A ledger in which some kinds of requests stay open when their turn or agent ends.
    pub(crate) fn keeping(lasting: fn(&R) -> bool) -> Self {
        Self { lasting, ..Self::default() }
    }

    pub(crate) fn turn_is_open(&self) -> bool {
        self.turn_open
    }

    /// A prompt was sent; the next turn belongs to it.
    pub(crate) fn prompt_sent(&mut self, prompt: &Prompt) {
        if self.prompts.len() < OPEN_LIMIT {
            self.prompts.push_back(TurnInput::from(prompt));
        }
    }

    pub(crate) fn has_prompts(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// Cancels the waiting prompts except for the first `kept`.
    pub(crate) fn cancel_prompts(&mut self, kept: usize, out: &mut Out<'_>) {
        for work in self.prompts.drain(kept.min(self.prompts.len())..) {
            work.ids.iter().for_each(|id| report_cancelled(&id.decode(), out));
        }
    }

    /// Cancels the waiting prompt with this id. Returns whether it was the next.
    pub(crate) fn cancel_prompt(
        &mut self,
        message_id: &str,
        out: &mut Out<'_>,
    ) -> Result<bool, GatewayError> {
        let at = self.place(message_id)?;
        self.prompts.remove(at);
        report_cancelled(message_id, out);
        Ok(at == 0)
    }

    /// Gives the waiting prompt with this id another text.
    pub(crate) fn edit_prompt(&mut self, message_id: &str, text: &str) -> Result<(), GatewayError> {
        let at = self.place(message_id)?;
        if let Some(work) = self.prompts.get_mut(at) {
            work.text = Text::from(text.to_owned());
        }
        Ok(())
    }

    fn place(&self, message_id: &str) -> Result<usize, GatewayError> {
        let fits = |work: &TurnInput<'_>| work.ids.iter().any(|id| id.decode() == message_id);
        self.prompts.iter().position(fits).ok_or_else(|| not_queued(message_id))
    }

    /// The prompt of the next turn, if we sent it.
    pub(crate) fn next_prompt(&mut self) -> Option<TurnInput<'static>> {
        self.prompts.pop_front()
    }

    /// Starts a turn. A turn that was still running has ended without reporting it.
    pub(crate) fn start_turn(
        &mut self,
        out: &mut Out<'_>,
        work: Option<TurnInput<'_>>,
        origin: TurnOrigin,
    ) {
        if self.turn_open {
            self.fail_turn(out, TurnFailure::Died, Text::from("the turn ended without a result"));
        }
        self.turn += 1;
        self.turn_open = true;
        let (prompt, message_ids) = work.map(|work| (work.text, work.ids)).unzip();
        let message_ids = message_ids.unwrap_or_default();
        out.emit(TurnStarted { turn_number: self.turn, prompt, message_ids, origin });
    }

    /// Something arrived that only a turn can produce: starts a turn if none is running.
    pub(crate) fn ensure_turn(&mut self, out: &mut Out<'_>) {
        if !self.turn_open {
            let prompt = self.next_prompt();
            self.start_turn(out, prompt, TurnOrigin::Prompt);
        }
    }

    /// The turn completed. What it left open is closed first.
    pub(crate) fn complete_turn(&mut self, out: &mut Out<'_>, completed: TurnCompleted<'_>) {
        self.ensure_turn(out);
        self.close_agent(out, MAIN_AGENT, "the turn ended without its result");
        self.turn_open = false;
        out.emit(TurnCompleted { turn_number: self.turn, ..completed });
    }

    /// The turn ended in any other way. What it left open is closed first.
    pub(crate) fn fail_turn_with(&mut self, out: &mut Out<'_>, failed: TurnFailed<'_>) {
        self.ensure_turn(out);
        self.close_agent(out, MAIN_AGENT, "the turn ended without its result");
        self.turn_open = false;
        out.emit(TurnFailed { turn_number: self.turn, ..failed });
    }

    /// The turn failed, and nothing more is known.
    pub(crate) fn fail_turn(&mut self, out: &mut Out<'_>, reason: TurnFailure, error: Text<'_>) {
        self.fail_turn_with(out, failed_turn(reason, error));
    }

    /// The process ended: closes requests, tools and the turn, in this order.
    pub(crate) fn close_all(&mut self, out: &mut Out<'_>, error: &str) {
        self.close_where(out, error, None);
        if self.turn_open {
            self.fail_turn(out, TurnFailure::Died, Text::from(error));
        }
    }

    /// That agent is done for now: withdraws its requests and interrupts its tool calls. Those of
    /// background subagents continue.
    pub(crate) fn close_agent(&mut self, out: &mut Out<'_>, agent: &str, error: &str) {
        self.close_where(out, error, Some(agent));
    }

    /// Closes what belongs to that agent, or everything.
    fn close_where(&mut self, out: &mut Out<'_>, error: &str, whose: Option<&str>) {
        let lasting = self.lasting;
        let over = |request: &mut Open<R>| {
            whose.is_none_or(|agent| request.agent.id == *agent && !lasting(&request.memo))
        };
        for request in self.requests.0.extract_if(.., over) {
            let reason = Some(Text::from(error));
            out.settled(&request.agent, &request.id, Ending::WITHDRAWN, reason, None);
        }
        let over = |tool: &mut Open<T>| whose.is_none_or(|agent| tool.agent.id == *agent);
        for tool in self.tools.0.extract_if(.., over) {
            out.emit_as(
                &tool.agent,
                ToolFailed {
                    tool_id: Text::from(tool.id.as_str()),
                    error: Text::from(error),
                    reason: ToolFailure::Interrupted,
                    result: None,
                },
            );
        }
    }
}

/// A completed turn with only its usage known; the ledger numbers it.
pub(crate) fn completed_turn<'a>(usage: TokenUsage) -> TurnCompleted<'a> {
    TurnCompleted { usage, ..TurnCompleted::default() }
}

/// A failed turn with only this known; the ledger numbers it.
pub(crate) fn failed_turn(reason: TurnFailure, error: Text<'_>) -> TurnFailed<'_> {
    TurnFailed::new(0, reason, error)
}
