//! Strings that are numbers.

use crate::error::Stop;
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&INCR, &DECR, &INCRBY, &DECRBY, &INCRBYFLOAT];

static INCR: CommandSpec = CommandSpec {
    name: "incr",
    arity: 2,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Adds one to the integer under a key; an absent key counts as 0.",
        since: "1.0.0",
        group: "string",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(incr),
};

fn incr(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    add(ctx, 1)
}

static DECR: CommandSpec = CommandSpec {
    name: "decr",
    arity: 2,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Subtracts one from the integer under a key; an absent key counts as 0.",
        since: "1.0.0",
        group: "string",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(decr),
};

fn decr(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    add(ctx, -1)
}

static INCRBY: CommandSpec = CommandSpec {
    name: "incrby",
    arity: 3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Adds a number to the integer under a key; an absent key counts as 0.",
        since: "1.0.0",
        group: "string",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::integer("increment")],
        ..Docs::NONE
    },
    run: Run::Call(incrby),
};

fn incrby(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let by = ctx.integer(2)?;
    add(ctx, by)
}

static DECRBY: CommandSpec = CommandSpec {
    name: "decrby",
    arity: 3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Subtracts a number from the integer under a key; an absent key counts as 0.",
        since: "1.0.0",
        group: "string",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::integer("decrement")],
        ..Docs::NONE
    },
    run: Run::Call(decrby),
};

fn decrby(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let by = ctx.integer(2)?.checked_neg().ok_or(Stop::error("ERR decrement would overflow"))?;
    add(ctx, by)
}

#[inline]
fn add(ctx: &mut Ctx<'_>, by: i64) -> Result<(), Stop> {
    let key = ctx.key(1);
    let sum = types::counter::increment(ctx.ks, &key, by)?;
    ctx.reply.integer(sum);
    Ok(())
}

static INCRBYFLOAT: CommandSpec = CommandSpec {
    name: "incrbyfloat",
    arity: 3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Adds a number with a fraction to the one under a key; an absent key counts as 0.",
        since: "2.6.0",
        group: "string",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::double("increment")],
        ..Docs::NONE
    },
    run: Run::Call(incrbyfloat),
};

fn incrbyfloat(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let sum = types::counter::increment_float(ctx.ks, &key, &ctx.args[2])?;
    ctx.reply.bulk(sum.as_bytes());
    Ok(())
}
