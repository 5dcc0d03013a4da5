//! HOTKEYS: the keys that most is done with. Not a command of Redis or Valkey.

use crate::CommandLog;
use crate::hot_keys::{KEYS_MAX, Measure};
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

/// Each key is an array: key, estimate, error bound, database. Times are microseconds.
fn hotkeys(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
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
    let hot_keys = &ctx.host.part::<Arc<CommandLog>>().hot_keys;
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
