//! Usage over time, by agent, model, session or directory.

use std::collections::BTreeMap;

use agentwire_protocol::usage::plus_cost;
use agentwire_protocol::{
    GatewayError, Price, SessionId, TokenUsage, UsageBin, UsageBy, UsageQuery, UsageReport,
    UsageRow,
};
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};

use super::Index;
use crate::store::StoreError;

/// The most rows of a report.
const ROWS: usize = 10_000;

/// What a report is about, checked.
#[derive(Clone, Debug)]
pub struct UsageSpan {
    from: i64,
    to: i64,
    bin: Option<UsageBin>,
    by: Option<UsageBy>,
}

impl UsageSpan {
    pub fn new(query: &UsageQuery) -> Result<Self, GatewayError> {
        let time = |name: &str, text: &Option<String>, usual: i64| match text {
            None => Ok(usual),
            Some(text) => text.parse::<Timestamp>().map(Timestamp::as_millisecond).map_err(|_| {
                let example = "2026-01-31T00:00:00Z";
                GatewayError::invalid(format!("{name}: {text:?} is not a time such as {example}"))
            }),
        };
        let from = time("from", &query.from, i64::MIN)?;
        Ok(Self { from, to: time("to", &query.to, i64::MAX)?, bin: query.bin, by: query.by })
    }
}

impl Index {
    /// The usage of turns that are in the index. Costs are computed only where there is a price.
    pub fn usage(
        &self,
        span: &UsageSpan,
        prices: &BTreeMap<String, Price>,
    ) -> Result<UsageReport, StoreError> {
        self.with(|connection| report(connection, span, prices))
    }
}

fn report(
    connection: &Connection,
    span: &UsageSpan,
    prices: &BTreeMap<String, Price>,
) -> Result<UsageReport, rusqlite::Error> {
    let bin = match span.bin {
        None => "0",
        Some(UsageBin::Hour) => "ended / 3600000 * 3600000",
        Some(UsageBin::Day) => "ended / 86400000 * 86400000",
    };
    let by = match span.by {
        None => "NULL",
        Some(UsageBy::Agent) => "followed.agent",
        Some(UsageBy::Model) => "model",
        Some(UsageBy::Session) => "followed.id",
        Some(UsageBy::Directory) => "followed.directory",
    };
    // Models stay apart here, since each has its price.
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {bin}, {by}, model, sum(input), sum(output), sum(cached), sum(created), sum(reasoning), \
         sum(cost), sum(turns), sum(calls), sum(waited) \
         FROM turns JOIN followed USING (session) WHERE ended >= ?1 AND ended < ?2 \
         GROUP BY 1, 2, 3"
    ))?;
    let mut rows = statement.query(params![span.from, span.to])?;
    let mut found: BTreeMap<(i64, Option<String>), UsageRow> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let key = (row.get(0)?, row.get(1)?);
        let price = row.get::<_, Option<String>>(2)?.and_then(|model| prices.get(&model));
        add(found.entry(key).or_default(), row, price)?;
    }
    let mut rows: Vec<(i64, UsageRow)> = Vec::new();
    for ((at, what), row) in found {
        rows.push((at, named(row, span, at, what)));
    }
    let tokens = |row: &UsageRow| row.input_tokens.saturating_add(row.output_tokens);
    rows.sort_by(|(at, one), (then, other)| at.cmp(then).then(tokens(other).cmp(&tokens(one))));
    let complete = rows.len() <= ROWS;
    rows.truncate(ROWS);
    Ok(UsageReport { rows: rows.into_iter().map(|(_, row)| row).collect(), complete })
}

/// Adds the sums of one model.
fn add(total: &mut UsageRow, row: &Row<'_>, price: Option<&Price>) -> Result<(), rusqlite::Error> {
    let count = |column| row.get::<_, i64>(column).map(|number| u64::try_from(number).unwrap_or(0));
    let (input, output, cached, created) = (count(3)?, count(4)?, count(5)?, count(6)?);
    total.input_tokens += input;
    total.output_tokens += output;
    total.cached_tokens += cached;
    total.cache_creation_tokens += created;
    total.reasoning_tokens += count(7)?;
    if let Some(cost) = row.get::<_, Option<f64>>(8)? {
        total.cost_usd = Some(plus_cost(total.cost_usd.unwrap_or(0.0), cost));
    }
    if let Some(price) = price {
        let usage = TokenUsage {
            input_tokens: input,
            output_tokens: output,
            cached_tokens: Some(cached),
            cache_creation_tokens: Some(created),
            reasoning_tokens: None,
            // Counts the cache apart from the input.
            total_tokens: input + output + cached + created,
        };
        let cost = total.computed_cost_usd.unwrap_or(0.0);
        total.computed_cost_usd = Some(plus_cost(cost, price.of(&usage)));
    }
    total.turns += count(9)?;
    total.tool_calls += count(10)?;
    total.waited_ms += count(11)?;
    Ok(())
}

/// The row with what it is about.
fn named(mut row: UsageRow, span: &UsageSpan, at: i64, what: Option<String>) -> UsageRow {
    if span.bin.is_some() {
        row.bin = Timestamp::from_millisecond(at).ok().map(|at| at.to_string());
    }
    match span.by {
        None => {}
        Some(UsageBy::Agent) => row.agent = what.and_then(|agent| agent.parse().ok()),
        Some(UsageBy::Model) => row.model = what,
        Some(UsageBy::Session) => row.session_id = what.map(SessionId::from),
        Some(UsageBy::Directory) => row.directory = what,
    }
    row
}
