//! Token usage, however an agent counts.

use agentwire_protocol::{Price, TokenUsage};

fn usage(
    input: u64,
    output: u64,
    cached: u64,
    created: u64,
    thoughts: u64,
    total: u64,
) -> TokenUsage {
    TokenUsage {
        input_tokens: input,
        output_tokens: output,
        cached_tokens: Some(cached),
        cache_creation_tokens: Some(created),
        reasoning_tokens: Some(thoughts),
        total_tokens: total,
    }
}

#[test]
fn cached_input_is_counted_once() {
    // The cache is counted separately from the input.
    assert_eq!(usage(100, 25, 30, 20, 0, 175).fresh_tokens(), 100);
    // The cache is part of the input, reasoning is part of the output.
    assert_eq!(usage(100, 20, 40, 0, 5, 120).fresh_tokens(), 60);
    // The cache is part of the input, reasoning is counted separately from the output, whether little or
    // much.
    assert_eq!(usage(100, 20, 80, 0, 50, 170).fresh_tokens(), 20);
    assert_eq!(usage(100, 20, 80, 0, 500, 620).fresh_tokens(), 20);
    // Everything is counted separately.
    assert_eq!(usage(100, 20, 80, 10, 50, 260).fresh_tokens(), 100);
    // The sum of two turns is counted like each of them.
    let twice = usage(100, 20, 80, 0, 50, 170).plus(&usage(100, 20, 80, 0, 50, 170));
    assert_eq!(twice.fresh_tokens(), 40);
}

#[test]
fn the_standard_price_is_the_specifications() {
    let cost = Price::STANDARD.of(&usage(1000, 100, 10, 20, 0, 1130));
    assert!((cost - 0.004_578).abs() < 1e-12, "{cost}");
}
