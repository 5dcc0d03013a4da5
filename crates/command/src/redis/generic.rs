//! Keys of any type.

use crate::error::Stop;
use crate::spec::Docs;
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use types::generic::ExpireCondition;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&DEL, &EXPIRE];

static DEL: CommandSpec = CommandSpec {
    name: "del",
    arity: -2,
    flags: Flags::WRITE,
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::range(1, -1, 1, KeyFlags::RM.union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Removes keys.",
        since: "1.0.0",
        group: "generic",
        complexity: "O(N) where N is the number of keys.",
        history: &[],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        arguments: &[],
        deprecated: None,
    },
    run: Run::Call(del),
};

fn del(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    // Every row is in memory before the first is removed (K1).
    if ctx.args.len() > 2 {
        for index in 1..ctx.args.len() {
            let key = ctx.key(index);
            ctx.ks.peek(&key)?;
        }
    }
    let mut removed = 0;
    for index in 1..ctx.args.len() {
        let key = ctx.key(index);
        removed += i64::from(types::generic::delete(ctx.ks, &key)?);
    }
    ctx.reply.integer(removed);
    Ok(())
}

static EXPIRE: CommandSpec = CommandSpec {
    name: "expire",
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sets how many seconds a key has left.",
        since: "1.0.0",
        group: "generic",
        complexity: "O(1)",
        history: &[],
        tips: &[],
        arguments: &[],
        deprecated: None,
    },
    run: Run::Call(expire),
};

fn expire(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let seconds = ctx.integer(2)?;
    let at = seconds
        .checked_mul(1000)
        .and_then(|ms| ms.checked_add(ctx.now()))
        .ok_or_else(|| Stop::error_with(format!("ERR invalid expire time in '{}' command", ctx.spec.name)))?;
    let key = ctx.key(1);
    let set = types::generic::expire_at(ctx.ks, &key, at, ExpireCondition::default())?;
    ctx.reply.integer(i64::from(set));
    Ok(())
}
