//! HOTKEYS: the keys that most is done with. Two grammars: this server's own, and START, STOP, GET and RESET of Redis
//! 8.6. Valkey has no such command.

use crate::CommandLog;
use crate::hot_key_session::{Report, Totals, Wanted};
use crate::hot_keys::{HotKey, KEYS_MAX, Measure};
use base::DbIndex;
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop, error};
use std::sync::Arc;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&HOTKEYS];

/// Keys shown unless COUNT says otherwise.
const COUNT: usize = 10;

static HOTKEYS: CommandSpec = CommandSpec {
    name: "hotkeys",
    arity: -1,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Gives the keys with the most calls, time or bytes: each with an estimate, its error bound and its \
                  database. A command of Onggi alone.",
        since: "0.1.0",
        group: "server",
        complexity: "O(1): the keys watched are at most 1024.",
        tips: &["nondeterministic_output"],
        arguments: &[
            Argument::integer("count").after("COUNT").optional(),
            Argument::one_of(
                "measure",
                &[Argument::word("ops", "OPS"), Argument::word("cpu", "CPU"), Argument::word("bytes", "BYTES")],
            )
            .after("BY")
            .optional(),
            Argument::word("reset", "RESET").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(hotkeys),
};

/// The words of the grammar of Redis 8.6.
const SESSION_WORDS: [(&str, RunWord); 4] = [("start", start), ("stop", stop), ("get", get), ("reset", reset)];
type RunWord = fn(&mut Ctx<'_>) -> Result<(), Stop>;

fn hotkeys(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    for (word, run) in SESSION_WORDS {
        if ctx.args.len() > 1 && ctx.is_word(1, word) {
            let (log, now, totals) = (log(ctx), ctx.now(), totals(ctx));
            log.hot_key_session.end_when_due(now, || totals, &log.hot_keys);
            return run(ctx);
        }
    }
    list(ctx)
}

/// Each key is an array: key, estimate, error bound, database. Times are microseconds.
fn list(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (mut count, mut measure, mut resets) = (COUNT, Measure::Ops, false);
    let mut at = 1;
    while at < ctx.args.len() {
        let has_value = at + 1 < ctx.args.len();
        if ctx.is_word(at, "count") && has_value {
            let number = usize::try_from(ctx.integer(at + 1)?).ok().filter(|number| *number > 0);
            count = number.ok_or(Stop::error("ERR COUNT must be positive"))?.min(KEYS_MAX);
            at += 2;
        } else if ctx.is_word(at, "by") && has_value {
            measure = [("ops", Measure::Ops), ("cpu", Measure::Cpu), ("bytes", Measure::Bytes)]
                .into_iter()
                .find_map(|(word, measure)| ctx.is_word(at + 1, word).then_some(measure))
                .ok_or(error::SYNTAX)?;
            at += 2;
        } else if ctx.is_word(at, "reset") {
            resets = true;
            at += 1;
        } else {
            return Err(error::SYNTAX);
        }
    }
    let hot_keys = &log(ctx).hot_keys;
    let first = hot_keys.first(measure, count);
    if resets {
        hot_keys.reset();
    }
    let spaces: Vec<_> = (0..).map_while(|db| ctx.ks.space_of(DbIndex(db))).collect();
    let unit = if measure == Measure::Cpu { 1e-3 } else { 1.0 };
    ctx.reply.array(first.len());
    for hot in first {
        ctx.reply.array(4);
        ctx.reply.bulk(&hot.key);
        ctx.reply.integer((hot.estimate * unit).round() as i64);
        ctx.reply.integer((hot.error * unit).ceil() as i64);
        let db = spaces.iter().position(|space| *space == hot.space);
        ctx.reply.integer(db.map_or(-1, |db| db as i64));
    }
    Ok(())
}

fn log<'c>(ctx: &Ctx<'c>) -> &'c CommandLog {
    ctx.host.part::<crate::Needed, Arc<CommandLog>>()
}

fn totals(ctx: &Ctx<'_>) -> Totals {
    let rows = ctx.host.table.rows().len();
    Totals::of(&ctx.host.figures, u32::try_from(rows).unwrap_or(u32::MAX))
}

/// `HOTKEYS START METRICS count [CPU] [NET] [COUNT k] [DURATION seconds] [SAMPLE ratio]`
fn start(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let wanted = wanted(ctx)?;
    let (log, now, totals) = (log(ctx), ctx.now(), totals(ctx));
    if !log.hot_key_session.start(wanted, now, totals, &log.hot_keys) {
        return Err(Stop::error("ERR hotkeys tracking session already in progress"));
    }
    ctx.reply.ok();
    Ok(())
}

/// The arguments of START.
fn wanted(ctx: &Ctx<'_>) -> Result<Wanted, Stop> {
    let mut wanted = Wanted { by_cpu: false, by_net: false, count: COUNT, sample_ratio: 1, duration_ms: None };
    if ctx.args.len() < 4 || !ctx.is_word(2, "metrics") {
        return Err(Stop::error("ERR METRICS parameter is required"));
    }
    let metrics = usize::try_from(ctx.integer(3)?).ok().filter(|metrics| (1..=2).contains(metrics));
    let metrics = metrics.ok_or(Stop::error("ERR METRICS count must be 1 or 2"))?;
    for at in 4..(4 + metrics).min(ctx.args.len()) {
        match () {
            () if ctx.is_word(at, "cpu") && !wanted.by_cpu => wanted.by_cpu = true,
            () if ctx.is_word(at, "net") && !wanted.by_net => wanted.by_net = true,
            () => return Err(error::SYNTAX),
        }
    }
    let mut at = 4 + metrics;
    if at > ctx.args.len() {
        return Err(error::SYNTAX);
    }
    while at < ctx.args.len() {
        if at + 1 == ctx.args.len() {
            return Err(error::SYNTAX);
        }
        match () {
            () if ctx.is_word(at, "count") => wanted.count = bounded(ctx, at, KEYS_MAX as i64)? as usize,
            () if ctx.is_word(at, "duration") => {
                wanted.duration_ms = Some(bounded(ctx, at, i64::MAX / 1000)? * 1000);
            }
            () if ctx.is_word(at, "sample") => wanted.sample_ratio = bounded(ctx, at, i64::MAX)?,
            () if ctx.is_word(at, "slots") => {
                return Err(Stop::error("ERR SLOTS parameter cannot be used in non-cluster mode"));
            }
            () => return Err(error::SYNTAX),
        }
        at += 2;
    }
    Ok(wanted)
}

/// The number after the option at `at`, from 1 to `max`.
fn bounded(ctx: &Ctx<'_>, at: usize, max: i64) -> Result<i64, Stop> {
    let number = ctx.integer(at + 1)?;
    if (1..=max).contains(&number) {
        return Ok(number);
    }
    let option = String::from_utf8_lossy(&ctx.args[at]).to_ascii_uppercase();
    Err(Stop::error_with(format!("ERR {option} must be between 1 and {max}")))
}

fn stop(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    need_no_more(ctx)?;
    let (log, now, totals) = (log(ctx), ctx.now(), totals(ctx));
    match log.hot_key_session.stop(now, totals, &log.hot_keys) {
        true => ctx.reply.ok(),
        false => ctx.reply.null(),
    }
    Ok(())
}

/// Forgets the session, and what is known of keys.
fn reset(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    need_no_more(ctx)?;
    log(ctx).hot_key_session.reset();
    log(ctx).hot_keys.reset();
    ctx.reply.ok();
    Ok(())
}

fn get(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    need_no_more(ctx)?;
    let (log, now, totals) = (log(ctx), ctx.now(), totals(ctx));
    let Some(report) = log.hot_key_session.report(now, totals, &log.hot_keys) else {
        ctx.reply.null();
        return Ok(());
    };
    let Report { wanted, totals, .. } = &report;
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut figures = vec![
        ("all-commands-all-slots-us", signed(totals.command_us)),
        ("net-bytes-all-commands-all-slots", signed(totals.bytes)),
        ("collection-start-time-unix-ms", report.started_at),
        ("collection-duration-ms", report.duration_ms),
    ];
    if wanted.by_cpu {
        figures.push(("total-cpu-time-user-ms", signed(totals.user_ms)));
        figures.push(("total-cpu-time-sys-ms", signed(totals.system_ms)));
    }
    if wanted.by_net {
        figures.push(("total-net-bytes", signed(totals.bytes)));
    }
    // As in Redis, a list of one map: a server of a cluster has one for each range of slots.
    ctx.reply.array(1);
    ctx.reply.map(3 + figures.len() + usize::from(wanted.by_cpu) + usize::from(wanted.by_net));
    ctx.reply.bulk(b"tracking-active");
    ctx.reply.integer(i64::from(report.is_active));
    ctx.reply.bulk(b"sample-ratio");
    ctx.reply.integer(wanted.sample_ratio);
    ctx.reply.bulk(b"selected-slots");
    ctx.reply.array(1);
    ctx.reply.array(2);
    ctx.reply.integer(0);
    ctx.reply.integer(base::slot::SLOT_COUNT as i64 - 1);
    for (name, number) in figures {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.integer(number);
    }
    if wanted.by_cpu {
        reply_keys(ctx, "by-cpu-time-us", &report.by_cpu, 1e-3);
    }
    if wanted.by_net {
        reply_keys(ctx, "by-net-bytes", &report.by_net, 1.0);
    }
    Ok(())
}

/// Keys and their amounts in turn.
fn reply_keys(ctx: &mut Ctx<'_>, name: &str, keys: &[HotKey], unit: f64) {
    ctx.reply.bulk(name.as_bytes());
    ctx.reply.array(keys.len() * 2);
    for hot in keys {
        ctx.reply.bulk(&hot.key);
        ctx.reply.integer((hot.estimate * unit).round() as i64);
    }
}

fn need_no_more(ctx: &Ctx<'_>) -> Result<(), Stop> {
    if ctx.args.len() == 2 { Ok(()) } else { Err(error::SYNTAX) }
}
