//! HyperLogLogs: counting different elements in little memory.

use crate::error::Stop;
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&PFADD, &PFCOUNT, &PFMERGE];

static PFADD: CommandSpec = CommandSpec {
    name: "pfadd",
    arity: -2,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::HYPERLOGLOG,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Adds elements to a HyperLogLog, which is made if the key is absent.",
        since: "2.8.9",
        group: "hyperloglog",
        complexity: "O(1) to add every element.",
        arguments: &[Argument::key("key", 0), Argument::string("element").optional().repeated()],
        ..Docs::NONE
    },
    run: Run::Call(pfadd),
};

fn pfadd(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let limit = ctx.host.sparse_limit.bytes();
    let changed = types::hyperloglog::add(ctx.ks, &key, ctx.args.from(2), limit)?;
    ctx.reply.integer(i64::from(changed));
    Ok(())
}

static PFCOUNT: CommandSpec = CommandSpec {
    name: "pfcount",
    arity: -2,
    flags: Flags::READONLY.union(Flags::MAY_REPLICATE),
    categories: Categories::HYPERLOGLOG,
    keys: &[KeySpec::range(1, -1, 1, KeyFlags::RW.union(KeyFlags::ACCESS))
        .noting("RW because it may change the internal representation of the key, and propagate to replicas")],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Estimates how many different elements were added to one HyperLogLog, or to any of several.",
        since: "2.8.9",
        group: "hyperloglog",
        complexity: "O(1) with a very small average constant time when called with a single key. O(N) with N being the \
                     number of keys, and much bigger constant times, when called with multiple keys.",
        arguments: &[Argument::key("key", 0).repeated()],
        ..Docs::NONE
    },
    run: Run::Call(pfcount),
};

fn pfcount(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let count = match ctx.args.len() {
        2 => {
            let key = ctx.key(1);
            types::hyperloglog::count(ctx.ks, &key)?
        }
        _ => types::hyperloglog::count_union(ctx.ks, ctx.args.from(1))?,
    };
    ctx.reply.integer(count as i64);
    Ok(())
}

static PFMERGE: CommandSpec = CommandSpec {
    name: "pfmerge",
    arity: -2,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::HYPERLOGLOG,
    keys: &[
        KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::INSERT)),
        KeySpec::range(2, -1, 1, KeyFlags::RO.union(KeyFlags::ACCESS)),
    ],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Merges HyperLogLogs into one, which is made if the key is absent.",
        since: "2.8.9",
        group: "hyperloglog",
        complexity: "O(N) to merge N HyperLogLogs, but with high constant times.",
        arguments: &[Argument::key("destkey", 0), Argument::key("sourcekey", 1).optional().repeated()],
        ..Docs::NONE
    },
    run: Run::Call(pfmerge),
};

fn pfmerge(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let to = ctx.key(1);
    let limit = ctx.host.sparse_limit.bytes();
    types::hyperloglog::merge(ctx.ks, &to, ctx.args.from(2), limit)?;
    ctx.reply.ok();
    Ok(())
}
