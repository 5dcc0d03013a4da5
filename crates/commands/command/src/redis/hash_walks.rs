//! Some fields of a hash: random ones, or a part at each call.

use super::scanning::{self, Found, ScanOptions, Scanned};
use crate::drawing::{Draw, Drawn};
use crate::error::{self, Stop};
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use engine::{Key, Type};
use proto::{Protocol, ReplyBuffer};
use types::hash::Cell;
use value::hash::View;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&HRANDFIELD, &HSCAN];

static HRANDFIELD: CommandSpec = CommandSpec {
    name: "hrandfield",
    arity: -2,
    flags: Flags::READONLY,
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives random fields of a hash.",
        since: "6.2.0",
        group: "hash",
        complexity: "O(N) where N is the number of fields returned",
        tips: &["nondeterministic_output"],
        arguments: &[
            Argument::key("key", 0),
            Argument::block(
                "options",
                &[Argument::integer("count"), Argument::word("withvalues", "WITHVALUES").optional()],
            )
            .optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(hrandfield),
};

fn hrandfield(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    if ctx.args.len() == 2 {
        let reply = &mut *ctx.reply;
        types::hash::pick(ctx.ks, &key, &mut |cell| super::hash::reply_value(reply, cell.map(|cell| cell.field)))?;
        return Ok(());
    }
    let count = ctx.integer(2)?;
    check_count(count, false)?;
    if ctx.args.len() > 4 || ctx.args.len() == 4 && !ctx.is_word(3, "withvalues") {
        return Err(error::SYNTAX);
    }
    let with_values = ctx.args.len() == 4;
    check_count(count, with_values)?;
    if count.unsigned_abs() >= DRAWN_AT_ONCE_MAX
        && let Some(drawn) = drawn_without_due(ctx, &key, Draw::of(count))?
    {
        let len = types::hash::read(ctx.ks, &key)?.len() as u64;
        let parts = if with_values && ctx.reply.protocol() != Protocol::Resp3 { 2 } else { 1 };
        return ctx.reply_drawn(drawn, len, Draw::of(count), parts, move |encoding, stored, place, reply| {
            if let Some(cell) = View::of(encoding, stored).at(place) {
                reply_field(reply, cell, with_values);
            }
        });
    }
    if !types::hash::read(ctx.ks, &key)?.is_empty() {
        Draw::of(count).check(1)?;
    }
    let reply = &mut *ctx.reply;
    let (open, mut shown, mut fits) = (reply.begin_array(), 0usize, Ok(()));
    let mut show = |cell: Cell<'_>| {
        shown = shown.saturating_add(reply_field(reply, cell, with_values));
        fits = error::check_reply(reply);
        fits.is_ok()
    };
    match u64::try_from(count) {
        Ok(count) => types::hash::distinct(ctx.ks, &key, count, &mut show)?,
        Err(_) => types::hash::repeated(ctx.ks, &key, count.unsigned_abs(), &mut show)?,
    }
    reply.end(open, shown);
    fits
}

/// When at least this many fields of a tree are drawn, they are drawn in pieces.
const DRAWN_AT_ONCE_MAX: u64 = 512;

/// What fields are drawn from, if it is a hash of which no field is due, and not one that is gone through at once.
/// Leaves no trace.
fn drawn_without_due(ctx: &mut Ctx<'_>, key: &Key<'_>, draw: Draw) -> Result<Option<Drawn>, Stop> {
    let now = ctx.now();
    let Some(entry) = ctx.ks.peek_value(key)?.filter(|entry| entry.kind == Type::Hash) else { return Ok(None) };
    let hash = types::hash::of_entry(Some(&entry), now)?;
    Ok((hash.len() == hash.stored_len()).then(|| Drawn::of(&entry, draw)).flatten())
}

/// Counts beyond these have no negative, or no double, in 64 bits.
fn check_count(count: i64, with_values: bool) -> Result<(), Stop> {
    if count < -i64::MAX {
        return Err(COUNT_OUT_OF_RANGE);
    }
    if with_values && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(Stop::error("ERR value is out of range"));
    }
    Ok(())
}

const COUNT_OUT_OF_RANGE: Stop =
    Stop::error("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");

/// A field, with its value as the second of a pair if asked for; in RESP2 pairs are flat. Gives the elements written.
fn reply_field(reply: &mut ReplyBuffer, cell: Cell<'_>, with_value: bool) -> usize {
    let is_nested = with_value && reply.protocol() == Protocol::Resp3;
    if is_nested {
        reply.array(2);
    }
    reply.bulk(cell.field);
    if with_value {
        reply.bulk(cell.value);
    }
    if with_value && !is_nested { 2 } else { 1 }
}

static HSCAN: CommandSpec = CommandSpec {
    name: "hscan",
    arity: -3,
    flags: Flags::READONLY,
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Walks over the fields of a hash, a part at each call.",
        since: "2.8.0",
        group: "hash",
        complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection.",
        tips: &["nondeterministic_output"],
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("cursor"),
            Argument::pattern("pattern").after("MATCH").optional(),
            Argument::integer("count").after("COUNT").optional(),
            Argument::word("novalues", "NOVALUES").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(hscan),
};

fn hscan(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let cursor = scanning::cursor(ctx, 2)?;
    let mut found = Found::default();
    // The options of a walk over nothing are not looked at.
    if types::hash::read(ctx.ks, &key)?.is_empty() {
        found.reply(0, ctx.reply);
        return Ok(());
    }
    let options = ScanOptions::parse(ctx, 3, Scanned::Hash)?;
    let next = types::hash::peek(ctx.ks, &key)?.scan(cursor, options.count, &mut |cell| {
        if options.wants(cell.field) {
            found.push(cell.field);
            if !options.is_bare {
                found.push(cell.value);
            }
        }
    });
    found.reply(next, ctx.reply);
    Ok(())
}
