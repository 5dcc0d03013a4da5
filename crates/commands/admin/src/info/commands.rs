//! The sections of INFO with a line for each command that was called.

use super::line_of_family;
use crate::histogram::Histogram;
use command::Ctx;
use std::collections::BTreeMap;

/// Calls, time, refusals and failures.
pub(super) fn statistics(ctx: &mut Ctx<'_>, text: &mut String) {
    let figures = &ctx.host.figures;
    for ((name, _), index) in ctx.host.table.rows().iter().zip(0u32..) {
        let sum = |figure: fn(&command::stats::CommandStats) -> u64| {
            figures.sum_stats(|stats| stats.command(index).map_or(0, figure))
        };
        let (calls, rejected) = (sum(|it| it.calls.get()), sum(|it| it.rejected.get()));
        if calls == 0 && rejected == 0 {
            continue;
        }
        let us = sum(|it| it.nanoseconds.get()) as f64 / 1000.0;
        let per_call = us / calls.max(1) as f64;
        let failed = sum(|it| it.failed.get());
        line_of_family(
            text,
            &format!("cmdstat_{name}"),
            format_args!(
                "calls={calls},usec={us:.0},usec_per_call={per_call:.2},rejected_calls={rejected},failed_calls={failed}"
            ),
        );
    }
}

/// Error replies by their code.
pub(super) fn errors(ctx: &mut Ctx<'_>, text: &mut String) {
    let mut errors: BTreeMap<Box<[u8]>, u64> = BTreeMap::new();
    for worker in ctx.host.figures.workers() {
        for (code, count) in worker.stats.errors() {
            let sum = errors.entry(code).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    for (code, count) in errors {
        line_of_family(text, &format!("errorstat_{}", code.escape_ascii()), format_args!("count={count}"));
    }
}

/// The percentiles of durations that `latency-tracking-info-percentiles` names.
pub(super) fn latencies(ctx: &mut Ctx<'_>, text: &mut String) {
    let settings = ctx.host.configuration.current();
    if !settings.latency_tracking {
        return;
    }
    let figures = &ctx.host.figures;
    for ((name, _), index) in ctx.host.table.rows().iter().zip(0u32..) {
        let histogram = Histogram::of(figures, index);
        if histogram.calls == 0 {
            continue;
        }
        let shown: Vec<String> = settings
            .latency_tracking_percentiles
            .iter()
            .map(|percent| format!("p{percent}={:.3}", histogram.percentile_ns(*percent) as f64 / 1000.0))
            .collect();
        line_of_family(text, &format!("latency_percentiles_usec_{name}"), shown.join(","));
    }
}
