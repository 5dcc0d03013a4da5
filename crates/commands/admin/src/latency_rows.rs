//! LATENCY: events over the threshold, and histograms of all calls.

use crate::histogram::Histogram;
use crate::latency::Event;
use crate::{LatencyMonitor, reply_help};
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop, error};
use std::sync::Arc;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&LATENCY];

static LATENCY: CommandSpec = CommandSpec {
    name: "latency",
    arity: -2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Holds the commands about what took long.",
        since: "2.8.13",
        group: "server",
        complexity: "Depends on subcommand.",
        ..Docs::NONE
    },
    run: Run::Container(&[
        &LATENCY_DOCTOR,
        &LATENCY_GRAPH,
        &LATENCY_HELP,
        &LATENCY_HISTOGRAM,
        &LATENCY_HISTORY,
        &LATENCY_LATEST,
        &LATENCY_RESET,
    ]),
};

static LATENCY_DOCTOR: CommandSpec = CommandSpec {
    name: "doctor",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Says in words what took long.",
        since: "2.8.13",
        group: "server",
        complexity: "O(1)",
        tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
        ..Docs::NONE
    },
    run: Run::Call(latency_doctor),
};

static LATENCY_GRAPH: CommandSpec = CommandSpec {
    name: "graph",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Draws the samples of an event.",
        since: "2.8.13",
        group: "server",
        complexity: "O(1)",
        tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
        arguments: &[Argument::string("event")],
        ..Docs::NONE
    },
    run: Run::Call(latency_graph),
};

static LATENCY_HELP: CommandSpec = CommandSpec {
    name: "help",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lists the subcommands.",
        since: "2.8.13",
        group: "server",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(latency_help),
};

static LATENCY_HISTOGRAM: CommandSpec = CommandSpec {
    name: "histogram",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Gives how many calls of commands took how long.",
        since: "7.0.0",
        group: "server",
        complexity: "O(N) where N is the number of commands with latency information being retrieved.",
        tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
        arguments: &[Argument::string("command").optional().repeated()],
        ..Docs::NONE
    },
    run: Run::Call(latency_histogram),
};

static LATENCY_HISTORY: CommandSpec = CommandSpec {
    name: "history",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Gives times and durations of an event's samples.",
        since: "2.8.13",
        group: "server",
        complexity: "O(1)",
        tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
        arguments: &[Argument::string("event")],
        ..Docs::NONE
    },
    run: Run::Call(latency_history),
};

static LATENCY_LATEST: CommandSpec = CommandSpec {
    name: "latest",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Gives the last sample of each event that took long.",
        since: "2.8.13",
        group: "server",
        complexity: "O(1)",
        tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
        ..Docs::NONE
    },
    run: Run::Call(latency_latest),
};

static LATENCY_RESET: CommandSpec = CommandSpec {
    name: "reset",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Forgets samples of events that took long.",
        since: "2.8.13",
        group: "server",
        complexity: "O(1)",
        tips: &["request_policy:all_nodes", "response_policy:agg_sum"],
        arguments: &[Argument::string("event").optional().repeated()],
        ..Docs::NONE
    },
    run: Run::Call(latency_reset),
};

fn monitor<'c>(ctx: &Ctx<'c>) -> &'c LatencyMonitor {
    ctx.host.part::<crate::Needed, Arc<LatencyMonitor>>()
}

fn latency_latest(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let events = monitor(ctx).events();
    ctx.reply.array(events.len());
    for (name, event) in events {
        let last = event.samples.back().copied();
        ctx.reply.array(4);
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.integer(last.map_or(0, |sample| sample.at_seconds));
        ctx.reply.integer(last.map_or(0, |sample| sample.ms as i64));
        ctx.reply.integer(event.ms_max as i64);
    }
    Ok(())
}

fn latency_history(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let samples = monitor(ctx).event(&ctx.args[2]).map(|(_, event)| event.samples).unwrap_or_default();
    ctx.reply.array(samples.len());
    for sample in samples {
        ctx.reply.array(2);
        ctx.reply.integer(sample.at_seconds);
        ctx.reply.integer(sample.ms as i64);
    }
    Ok(())
}

fn latency_reset(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let monitor = monitor(ctx);
    let count = match ctx.args.len() {
        2 => monitor.reset(None),
        _ => ctx.args.from(2).map(|name| monitor.reset(Some(name))).sum(),
    };
    ctx.reply.integer(count as i64);
    Ok(())
}

fn latency_graph(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some((name, event)) = monitor(ctx).event(&ctx.args[2]) else {
        return Err(error::repeating("ERR No samples available for event '", &ctx.args[2], "'"));
    };
    ctx.reply.verbatim("txt", graph(name, &event, ctx.now() / 1000).as_bytes());
    Ok(())
}

/// Columns of a graph, and its rows.
const GRAPH_COLUMNS: usize = 80;
const GRAPH_ROWS: u64 = 6;

/// The newest samples as columns, oldest left, with the time since the first of them.
fn graph(name: &str, event: &Event, now_seconds: i64) -> String {
    let skipped = event.samples.len().saturating_sub(GRAPH_COLUMNS);
    let shown: Vec<_> = event.samples.iter().skip(skipped).collect();
    let high = shown.iter().map(|sample| sample.ms).max().unwrap_or(0);
    let low = shown.iter().map(|sample| sample.ms).min().unwrap_or(0);
    let mut text = format!("{name} - high {high} ms, low {low} ms (all time high {} ms)\n", event.ms_max);
    text.push_str(&"-".repeat(GRAPH_COLUMNS));
    for row in (1..=GRAPH_ROWS).rev() {
        let columns = shown.iter().map(|sample| if sample.ms * GRAPH_ROWS >= high * row { '#' } else { ' ' });
        text.push('\n');
        text.push_str(columns.collect::<String>().trim_end());
    }
    let age = shown.first().map_or(0, |sample| now_seconds.saturating_sub(sample.at_seconds));
    text.push_str(&format!("\n{} samples, the oldest {age} s ago\n", shown.len()));
    text
}

fn latency_doctor(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let monitor = monitor(ctx);
    let events = monitor.events();
    let mut text = String::new();
    if !monitor.is_on() && events.is_empty() {
        text.push_str(
            "Latency monitoring is off. CONFIG SET latency-monitor-threshold <milliseconds> switches it on; LATENCY \
             HISTOGRAM works without it.\n",
        );
    } else if events.is_empty() {
        text.push_str("No event took as long as latency-monitor-threshold.\n");
    }
    for (name, event) in events {
        let count = event.samples.len().max(1) as u64;
        let average = event.samples.iter().map(|sample| sample.ms).sum::<u64>() / count;
        text.push_str(&format!("{name}: {count} samples, on average {average} ms, at worst {} ms.\n", event.ms_max));
        text.push_str("  SLOWLOG GET names the calls; commands that visit many keys or large values take long.\n");
    }
    ctx.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn latency_histogram(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let figures = &ctx.host.figures;
    let asked = |name: &str| {
        let container = name.split('|').next().unwrap_or_default();
        let is = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        ctx.args.len() == 2 || ctx.args.from(2).any(|word| is(word, name) || is(word, container))
    };
    let rows = ctx.host.table.rows();
    let found: Vec<(&str, Histogram)> = (0u32..)
        .zip(rows)
        .filter(|(_, (name, _))| asked(name))
        .map(|(index, (name, _))| (name.as_str(), Histogram::of(figures, index)))
        .filter(|(_, histogram)| histogram.calls > 0)
        .collect();
    ctx.reply.map(found.len());
    for (name, histogram) in found {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.map(2);
        ctx.reply.bulk(b"calls");
        ctx.reply.integer(histogram.calls as i64);
        ctx.reply.bulk(b"histogram_usec");
        let doublings = histogram.doublings();
        ctx.reply.map(doublings.len());
        for (end, count) in doublings {
            ctx.reply.integer(end as i64);
            ctx.reply.integer(count as i64);
        }
    }
    Ok(())
}

fn latency_help(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_help(
        ctx,
        &[
            "LATENCY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "DOCTOR",
            "    Say in words what took long.",
            "GRAPH <event>",
            "    Draw the samples of an event.",
            "HISTOGRAM [COMMAND ...]",
            "    Give for these commands, or all, how many calls took up to 1, 2, 4, 8, ...",
            "    microseconds.",
            "HISTORY <event>",
            "    Give times and durations of an event's samples.",
            "LATEST",
            "    Give the last sample of every event and its longest.",
            "RESET [<event> ...]",
            "    Forget the samples of these events, or of all.",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}
