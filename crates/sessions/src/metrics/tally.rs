//! What one session adds to the metrics.

use std::sync::Arc;

use agentwire_protocol::event::RequestKind;
use agentwire_protocol::usage::ModelUsage;
use agentwire_protocol::{AgentType, EventKind, TokenUsage};

use super::{KINDS, Metrics, UsageTotal};
use crate::settings::Settings;

/// What one session adds to the metrics. Its open requests are subtracted when it is dropped.
#[derive(Debug)]
pub(crate) struct Tally {
    metrics: Arc<Metrics>,
    settings: Arc<Settings>,
    agent: AgentType,
    open: Vec<RequestKind>,
}

impl Tally {
    pub(crate) fn new(metrics: Arc<Metrics>, settings: Arc<Settings>, agent: AgentType) -> Self {
        Self { metrics, settings, agent, open: Vec::new() }
    }

    /// Counts an event. `asked` is the kind of the request that the event settles.
    pub(crate) fn note(
        &mut self,
        kind: &EventKind<'_>,
        asked: Option<RequestKind>,
        model: Option<&str>,
    ) {
        if let EventKind::TurnCompleted(turn) = kind {
            self.turn("completed");
            self.spent(Some(turn.usage), turn.cost_usd, &turn.models, model);
        } else if let EventKind::TurnFailed(turn) = kind {
            self.turn(turn.reason.as_str());
            self.spent(turn.usage, turn.cost_usd, &turn.models, model);
        } else if let EventKind::RequestRaised(request) = kind {
            self.open.push(request.kind);
            self.metrics.open_requests.of(request.kind).add(1);
        } else if let (EventKind::RequestSettled(request), Some(asked)) = (kind, asked) {
            self.metrics.settled(asked, request.outcome, request.by);
            self.closed(asked);
        } else if let EventKind::SessionEnded(ended) = kind {
            let labels = (self.agent.as_str(), ended.reason.as_str());
            self.metrics.count(|labeled| *labeled.ended.entry(labels).or_default() += 1);
            KINDS.into_iter().for_each(|kind| while self.closed(kind) {});
        }
    }

    fn closed(&mut self, kind: RequestKind) -> bool {
        let place = self.open.iter().position(|open| *open == kind);
        if let Some(place) = place {
            self.open.swap_remove(place);
            self.metrics.open_requests.of(kind).add(-1);
        }
        place.is_some()
    }

    fn turn(&self, outcome: &'static str) {
        let labels = (self.agent.as_str(), outcome);
        self.metrics.count(|labeled| *labeled.turns.entry(labels).or_default() += 1);
    }

    /// Counts usage. The cost is the agent's own figure, or else follows from the configured prices.
    fn spent(
        &self,
        usage: Option<TokenUsage>,
        cost: Option<f64>,
        models: &[ModelUsage],
        model: Option<&str>,
    ) {
        let whole = |usage, cost| ModelUsage {
            model: model.unwrap_or("unknown").to_owned(),
            usage,
            cost_usd: cost,
        };
        let has_costs = models.iter().any(|part| part.cost_usd.is_some());
        let mut parts = models.to_vec();
        match (models, cost) {
            ([], _) => parts.push(whole(usage.unwrap_or_default(), cost)),
            // A total that is not split by model counts for the session's model.
            ([_, ..], Some(cost)) if !has_costs => {
                parts.push(whole(TokenUsage::default(), Some(cost)));
            }
            ([_, ..], _) => {}
        }
        for part in parts {
            let price = self.settings.prices.get(&part.model).filter(|_| cost.is_none());
            let priced = || price.map(|price| price.of(&part.usage));
            let spent = UsageTotal {
                input: part.usage.fresh_tokens(),
                output: part.usage.output_tokens,
                cache_read: part.usage.cached_tokens.unwrap_or(0),
                cache_creation: part.usage.cache_creation_tokens.unwrap_or(0),
                dollars: part.cost_usd.or_else(priced).unwrap_or(0.0).max(0.0),
            };
            if spent != UsageTotal::default() {
                self.metrics.spent(self.agent, &part.model, spent);
            }
        }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.open.iter().for_each(|kind| self.metrics.open_requests.of(*kind).add(-1));
    }
}
