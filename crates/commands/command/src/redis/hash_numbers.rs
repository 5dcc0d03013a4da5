//! Fields of hashes that are numbers.

use crate::error::{self, Stop};
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use types::extended::Extended;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&HINCRBY, &HINCRBYFLOAT];

static HINCRBY: CommandSpec = CommandSpec {
    name: "hincrby",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Adds a number to the integer in a field; an absent field counts as 0.",
        since: "2.0.0",
        group: "hash",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::string("field"), Argument::integer("increment")],
        ..Docs::NONE
    },
    run: Run::Call(hincrby),
};

fn hincrby(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let by = ctx.integer(3)?;
    let sum = types::hash::increment(ctx.ks, &key, &ctx.args[2], by)?;
    ctx.reply.integer(sum);
    Ok(())
}

static HINCRBYFLOAT: CommandSpec = CommandSpec {
    name: "hincrbyfloat",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Adds a number with a fraction to the one in a field; an absent field counts as 0.",
        since: "2.6.0",
        group: "hash",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::string("field"), Argument::double("increment")],
        ..Docs::NONE
    },
    run: Run::Call(hincrbyfloat),
};

fn hincrbyfloat(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let by = Extended::parse(&ctx.args[3]).ok_or(error::NOT_FLOAT)?;
    if !by.is_finite() {
        return Err(Stop::error("ERR value is NaN or Infinity"));
    }
    let sum = types::hash::increment_float(ctx.ks, &key, &ctx.args[2], by)?;
    ctx.reply.bulk(sum.as_bytes());
    Ok(())
}
