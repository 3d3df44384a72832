//! A session's usage: its turns, and its subagents if their usage is separate.

use std::collections::BTreeMap;

use agentwire_protocol::event::UsageReported;
use agentwire_protocol::usage::{ModelUsage, plus_cost};
use agentwire_protocol::{Price, Text, TokenUsage};

use super::messages::Usage;

/// How many subagents are counted separately.
const AGENT_LIMIT: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct SessionUsage {
    prices: BTreeMap<String, Price>,
    usage: TokenUsage,
    cost_usd: f64,
    agents: BTreeMap<String, SubagentUsage>,
}

#[derive(Debug, Default)]
struct SubagentUsage {
    model: Option<String>,
    /// All messages before the last.
    sum: TokenUsage,
    /// The last message, which may be reported again as it grows.
    last: Option<(Option<String>, TokenUsage)>,
    /// Its own running total, and the value of that total at its start. An agent that keeps a total per
    /// subagent leaves subagents out of its turns.
    total: Option<(TokenUsage, TokenUsage)>,
}

impl SessionUsage {
    pub(super) fn new(prices: BTreeMap<String, Price>) -> Self {
        Self { prices, ..Self::default() }
    }

    /// A turn has ended. The cost is the agent's own figure, else by price.
    pub(super) fn turn(
        &mut self,
        usage: &TokenUsage,
        cost_usd: Option<f64>,
        models: &[ModelUsage],
        model: Option<&str>,
    ) {
        self.usage = self.usage.plus(usage);
        let cost = match (cost_usd, models) {
            (Some(cost), _) => cost,
            (None, []) => self.price(model).of(usage),
            (None, models) => models
                .iter()
                .map(|it| it.cost_usd.unwrap_or(self.price(Some(&it.model)).of(&it.usage)))
                .fold(0.0, plus_cost),
        };
        self.cost_usd = plus_cost(self.cost_usd, cost);
    }

    pub(super) fn report(&mut self, agent: &str, report: &UsageReported<'_>, model: Option<&str>) {
        if self.agents.len() >= AGENT_LIMIT && !self.agents.contains_key(agent) {
            (self.usage, self.cost_usd) = self.together();
            self.agents.clear();
        }
        let counted = self.agents.entry(agent.to_owned()).or_default();
        let model = report.model.as_ref().map(Text::to_string).or(model.map(str::to_owned));
        counted.model = model.or(counted.model.take());
        counted.report(report);
    }

    /// A subagent's total usage: the agent's figure, else the sum of its reports.
    pub(super) fn of_agent(
        &self,
        agent: &str,
        told: Option<TokenUsage>,
        model: Option<&str>,
    ) -> Usage {
        let counted = self.agents.get(agent);
        let says = |usage: &TokenUsage| usage.input_tokens > 0 || usage.output_tokens > 0;
        let usage = told.filter(says).or(counted.map(SubagentUsage::usage)).unwrap_or_default();
        let model = counted.and_then(|counted| counted.model.as_deref()).or(model);
        Usage::new(&usage, self.price(model).of(&usage))
    }

    pub(super) fn total(&self) -> Usage {
        let (usage, cost_usd) = self.together();
        Usage::new(&usage, cost_usd)
    }

    fn together(&self) -> (TokenUsage, f64) {
        let apart = self.agents.values().filter(|counted| counted.total.is_some());
        apart.fold((self.usage, self.cost_usd), |(sum, cost), counted| {
            let usage = counted.usage();
            (sum.plus(&usage), plus_cost(cost, self.price(counted.model.as_deref()).of(&usage)))
        })
    }

    fn price(&self, model: Option<&str>) -> Price {
        let price = model.and_then(|model| self.prices.get(model));
        price.copied().unwrap_or(Price::STANDARD)
    }
}

impl SubagentUsage {
    fn report(&mut self, report: &UsageReported<'_>) {
        if let Some(total) = report.total {
            let begun = report.usage.map_or(TokenUsage::default(), |last| total.since(&last));
            let (_, begun) = self.total.unwrap_or((total, begun));
            self.total = Some((total, begun));
        }
        let Some(usage) = report.usage else { return };
        let id = report.message_id.as_ref().map(Text::to_string);
        match self.last.take() {
            Some((before, _)) if before.is_some() && before == id => {}
            Some((_, whole)) => self.sum = self.sum.plus(&whole),
            None => {}
        }
        self.last = Some((id, usage));
    }

    fn usage(&self) -> TokenUsage {
        match (&self.total, &self.last) {
            (Some((total, begun)), _) => total.since(begun),
            (None, Some((_, last))) => self.sum.plus(last),
            (None, None) => self.sum,
        }
    }
}
