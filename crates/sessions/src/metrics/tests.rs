//! What is counted, and under which labels.

use agentwire_protocol::event::{RequestRaised, RequestSettled, TurnCompleted};
use agentwire_protocol::usage::ModelUsage;
use agentwire_protocol::{Price, Text, TokenUsage};

use super::*;
use crate::settings::Settings;

fn tally(prices: &[(&str, Price)]) -> (Arc<Metrics>, Tally) {
    let metrics = Arc::new(Metrics::default());
    let prices = prices.iter().map(|(model, price)| ((*model).to_owned(), *price)).collect();
    let settings = Arc::new(Settings { prices, ..Settings::default() });
    (Arc::clone(&metrics), Tally::new(metrics, settings, AgentType::Codex))
}

fn turn(input: u64, cached: u64, output: u64, models: &[&str]) -> TurnCompleted<'static> {
    // As Codex counts: tokens from the cache are included in the input.
    let usage = TokenUsage {
        input_tokens: input,
        output_tokens: output,
        cached_tokens: Some(cached),
        total_tokens: input + output,
        ..TokenUsage::default()
    };
    let models =
        models.iter().map(|model| ModelUsage { model: (*model).to_owned(), usage, cost_usd: None });
    TurnCompleted {
        turn_number: 1,
        usage,
        duration_ms: None,
        cost_usd: None,
        models: models.collect(),
        stop_reason: None,
        result: None,
        structured_output: None,
        denials: None,
    }
}

#[test]
fn tokens_do_not_overlap_and_prices_fill_in_for_the_agent() {
    let price = Price { input: 1.0, output: 10.0, cache_read: 0.5, cache_write: 0.0 };
    let (metrics, mut tally) = tally(&[("m", price)]);
    tally.note(&turn(1000, 400, 50, &[]).into(), None, Some("m"));
    let own = TurnCompleted { cost_usd: Some(2.0), ..turn(10, 0, 1, &[]) };
    tally.note(&own.into(), None, Some("m"));
    tally.note(&turn(7, 0, 1, &["a", "b"]).into(), None, Some("m"));
    tally.note(&turn(3, 0, 0, &[]).into(), None, None);
    let labeled = metrics.labeled();
    let of = |model: &str| labeled.spent[&("codex", model.to_owned())];
    assert_eq!((of("m").input, of("m").cache_read, of("m").output), (610, 400, 51));
    let priced = (600.0 + 0.5 * 400.0 + 10.0 * 50.0) / 1e6;
    assert!((of("m").dollars - 2.0 - priced).abs() < 1e-12, "{:?}", of("m"));
    assert_eq!((of("a").input, of("b").input, of("unknown").input), (7, 7, 3));
    assert_eq!(labeled.turns[&("codex", "completed")], 4);
}

#[test]
fn models_are_bounded_in_number_and_in_length() {
    let (metrics, mut tally) = tally(&[]);
    for number in 0..MODELS + 10 {
        tally.note(&turn(1, 0, 0, &[]).into(), None, Some(&format!("{number}{}", "x".repeat(500))));
    }
    let spent = metrics.labeled().spent;
    assert_eq!(spent.len(), MODELS + 1);
    assert_eq!(spent[&("codex", "other".to_owned())].input, 10);
    assert!(spent.keys().all(|(_, model)| model.len() <= MODEL_NAME));
}

#[test]
fn what_a_session_has_open_is_taken_back_with_it() {
    let (metrics, mut tally) = tally(&[]);
    let open = |kind| metrics.open_requests.of(kind).get();
    for kind in KINDS {
        tally.note(&RequestRaised::new("r", kind, None).into(), None, None);
        assert_eq!(open(kind), 1);
    }
    let settled = RequestSettled {
        request_id: Text::from("r"),
        outcome: RequestOutcome::Denied,
        by: SettledBy::Policy,
        client: None,
        reason: None,
        updated_input: None,
    };
    tally.note(&settled.clone().into(), Some(RequestKind::Question), None);
    // A request that is settled twice, or was never raised, changes nothing.
    tally.note(&settled.clone().into(), None, None);
    assert_eq!(open(RequestKind::Question), 0);
    assert_eq!(metrics.labeled().settled, BTreeMap::from([(("question", "denied", "policy"), 1)]));
    drop(tally);
    assert!(KINDS.into_iter().all(|kind| open(kind) == 0));
}

#[test]
fn a_histogram_counts_each_value_once_and_up_to_its_bound() {
    let histogram = Histogram::<SIZES>::default();
    for value in [0, 1, 2, 3, 10_000, 10_001, 1 << 40] {
        histogram.observe(value);
    }
    let (buckets, count, sum) = histogram.read();
    assert_eq!(buckets.first(), Some(&(1, 2)));
    assert_eq!(buckets.get(2), Some(&(5, 4)));
    assert_eq!(buckets.last(), Some(&(10_000, 5)));
    assert_eq!((count, sum), (7, 20_007 + (1 << 40)));
}
