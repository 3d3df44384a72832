//! `agentwire usage`: what agents have used, as a table, and over time as a plot.

use agentwire_protocol::{
    ErrorCode, GatewayError, UsageBin, UsageBy, UsageQuery, UsageReport, UsageRow,
};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use crate::args::{Global, Usage};
use crate::failure::Failure;
use crate::format::{self, Paint};
use crate::print;
use crate::source;

/// The widest bar of the plot.
const BAR: usize = 40;

/// The most bars of the plot.
const BARS: usize = 60;

pub(crate) fn run(global: &Global, args: &Usage) -> Result<(), Failure> {
    let query = UsageQuery {
        from: args.since.map(ago).transpose()?.map(|from| from.to_string()),
        to: None,
        bin: args.bin,
        by: args.by,
    };
    // People also see how it goes over time.
    let plotted = UsageQuery { bin: Some(UsageBin::Day), by: None, ..query.clone() };
    let has_plot = !args.json && args.bin.is_none() && print::columns().is_some();
    let (report, days) = source::open(global, &args.at, async |source| {
        let report = source.usage(&query).await?;
        let days = if has_plot { Some(source.usage(&plotted).await?) } else { None };
        Ok((report, days))
    })?;
    if args.json {
        return Ok(print::json(&report)?);
    }
    if report.rows.is_empty() {
        print::note("no turn has ended in this time");
    } else {
        table(&report, args)?;
    }
    if let Some(days) = days.filter(|days| days.rows.len() > 1) {
        plot(&days)?;
    }
    if !report.complete {
        print::note("old sessions are still being read; the numbers are not complete yet");
    }
    Ok(())
}

fn table(report: &UsageReport, args: &Usage) -> Result<(), Failure> {
    let about = match args.by {
        None => "",
        Some(UsageBy::Agent) => "AGENT",
        Some(UsageBy::Model) => "MODEL",
        Some(UsageBy::Session) => "SESSION",
        Some(UsageBy::Directory) => "DIRECTORY",
    };
    let head = [
        "TIME",
        about,
        "TURNS",
        "CALLS",
        "WAITED",
        "INPUT",
        "CACHED",
        "OUTPUT",
        "REASONING",
        "COST",
        "COMPUTED",
    ];
    let rows: Vec<[String; 11]> = report.rows.iter().map(row).collect();
    Ok(print::table(head, &rows)?)
}

fn row(row: &UsageRow) -> [String; 11] {
    let about = [
        row.agent.map(|agent| agent.as_str().to_owned()),
        row.model.clone(),
        row.session_id.as_ref().map(|id| format::short(id.as_str()).to_owned()),
        row.directory.clone(),
    ];
    let about = about.into_iter().flatten().next().unwrap_or_else(|| "-".to_owned());
    let cost = |cost: Option<f64>| cost.map_or_else(|| "-".to_owned(), format::dollars);
    [
        row.bin.clone().unwrap_or_else(|| "all".to_owned()),
        format::line(&about),
        row.turns.to_string(),
        row.tool_calls.to_string(),
        seconds(row.waited_ms),
        row.input_tokens.to_string(),
        (row.cached_tokens + row.cache_creation_tokens).to_string(),
        row.output_tokens.to_string(),
        row.reasoning_tokens.to_string(),
        cost(row.cost_usd),
        cost(row.computed_cost_usd),
    ]
}

fn seconds(milliseconds: u64) -> String {
    match milliseconds / 1000 {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        seconds => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// New tokens by day, the last days only.
fn plot(days: &UsageReport) -> Result<(), Failure> {
    let paint = Paint::stdout();
    let tokens = |row: &UsageRow| row.input_tokens + row.output_tokens;
    let last = days.rows.get(days.rows.len().saturating_sub(BARS)..).unwrap_or_default();
    let most = last.iter().map(tokens).max().unwrap_or(0).max(1);
    print::line("")?;
    print::line(&paint.dim("new tokens by day (UTC)"))?;
    for row in last {
        let day = row.bin.as_deref().and_then(|bin| bin.get(..10)).unwrap_or_default();
        let length = usize::try_from(tokens(row).saturating_mul(BAR as u64) / most).unwrap_or(BAR);
        let bar = "█".repeat(length);
        print::line(&format!("{day}  {} {}", paint.green(&format!("{bar:BAR$}")), tokens(row)))?;
    }
    Ok(())
}

fn ago(age: Span) -> Result<Timestamp, GatewayError> {
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    now.checked_sub(age).map(|then| then.timestamp()).map_err(|error| {
        let message = format!("--since is out of range: {error}");
        GatewayError::new(ErrorCode::InvalidMessage, message)
    })
}
