//! How often translation allocates: `cargo bench --bench allocations`.
#![allow(
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "a benchmark, not the product"
)]

#[path = "corpus.rs"]
mod corpus;
#[path = "writer.rs"]
mod writer;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use crate::writer::{Writer, translate};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    println!("| wire | allocations/event |");
    println!("|---|---|");
    for (name, say) in corpus::WIRES {
        let Some(dialect) = agentwire_dialects::agent(name) else { continue };
        let bytes = corpus::recording(*say, 1, 16 << 20);
        let mut writer = Writer::default();
        // Its buffer grows once.
        translate(dialect, &bytes, &mut writer);
        let region = Region::new(ALLOCATOR);
        translate(dialect, &bytes, &mut writer);
        let change = region.change();
        let count = (change.allocations + change.reallocations) as f64 / writer.seq as f64;
        println!("| {name} | {count:.2} |");
    }
}
