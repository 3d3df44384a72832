//! Limits that the gateway keeps for every agent: steps in a turn, money, tokens. At a limit the agent
//! is paused and somebody is asked; where asking is not wanted, the turn is cut off.

use agentwire_protocol::event::TurnFailure;
use agentwire_protocol::session::OnLimit;
use agentwire_protocol::{SessionConfig, TokenUsage};

use super::book::Book;
use crate::settings::Price;

/// The insights specification's rates, in dollars for a million tokens, for an agent that tells no
/// cost and has no price set: input, output, cache read, cache write.
const DEFAULT_PRICE: Price = Price { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 };

/// What a session may take.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    steps: Option<u64>,
    step: u64,
    dollars: Option<f64>,
    dollar: f64,
    tokens: Option<u64>,
    token: u64,
    asks: bool,
    price: Price,
}

/// A limit that is reached.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reached {
    pub(super) name: &'static str,
    pub(super) failure: TurnFailure,
    pub(super) message: String,
}

impl Limits {
    pub(super) fn new(config: &SessionConfig, price: Option<Price>) -> Self {
        Self {
            steps: config.max_turns.map(u64::from),
            step: config.max_turns.unwrap_or(0).into(),
            dollars: config.max_budget_usd,
            dollar: config.max_budget_usd.unwrap_or(0.0),
            tokens: config.max_budget_tokens,
            token: config.max_budget_tokens.unwrap_or(0),
            asks: config.on_limit.unwrap_or_default() == OnLimit::Ask,
            price: price.unwrap_or(DEFAULT_PRICE),
        }
    }

    /// Whether somebody is asked at a limit.
    pub(super) fn asks(&self) -> bool {
        self.asks
    }

    /// The limit that the session has gone past, if any.
    pub(super) fn reached(&self, book: &Book) -> Option<Reached> {
        if let Some(limit) = self.steps.filter(|limit| book.running.steps > *limit) {
            return Some(Reached {
                name: "maxTurns",
                failure: TurnFailure::MaxTurns,
                message: format!("the turn has taken the {limit} steps that it may"),
            });
        }
        let usage = book.record.summary.usage.plus(&book.running.usage);
        if let Some(limit) = self.tokens.filter(|limit| usage.total_tokens >= *limit) {
            return Some(Reached {
                name: "maxBudgetTokens",
                failure: TurnFailure::Budget,
                message: format!("the session has used {} of {limit} tokens", usage.total_tokens),
            });
        }
        let spent = self.spent(book, &usage);
        let limit = self.dollars.filter(|limit| spent >= *limit)?;
        Some(Reached {
            name: "maxBudgetUsd",
            failure: TurnFailure::Budget,
            message: format!("the session has spent ${spent:.4} of ${limit}"),
        })
    }

    /// The agent's own figure, else by price.
    fn spent(&self, book: &Book, usage: &TokenUsage) -> f64 {
        let told = book.record.summary.cost_usd;
        match (told, book.running.total_cost) {
            (Some(told), Some(running)) => told.max(running),
            (Some(cost), None) | (None, Some(cost)) => cost,
            (None, None) => self.price.of(usage),
        }
    }

    /// Somebody said to go on: as much again.
    pub(super) fn extend(&mut self, name: &str) {
        match name {
            "maxTurns" => self.steps = self.steps.map(|steps| steps + self.step),
            "maxBudgetTokens" => self.tokens = self.tokens.map(|tokens| tokens + self.token),
            _ => self.dollars = self.dollars.map(|dollars| dollars + self.dollar),
        }
    }
}
