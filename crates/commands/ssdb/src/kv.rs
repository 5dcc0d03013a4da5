//! Keys: strings with their expirations.

use crate::answer;
use crate::arguments::{self, WRONG_COUNT};
use crate::many;
use crate::range::Range;
use command::error::check_reply;
use command::spec::Look;
use command::{Ctx, Stop};
use engine::{Key, Type};
use proto::ReplyBuffer;
use types::generic::{self, ExpireCondition, Expiry};
use types::string::{self, Condition, Expiration, SetOutcome, string_value};

/// `get key`
pub fn get(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let value = look.entry.map(string_value).transpose()?;
    answer::value(reply, value);
    Ok(())
}

/// `strlen key`
pub fn strlen(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let value = look.entry.map(string_value).transpose()?;
    answer::count(reply, value.map_or(0, |value| value.len() as u64));
    Ok(())
}

/// `set key value`. The expiration stays.
pub fn set(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    store(ctx, Condition::Always, Expiration::Keep)?;
    answer::number(ctx.reply, 1);
    Ok(())
}

/// `setx key value seconds`
pub fn setx(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let at = arguments::expiration(ctx, 3)?;
    store(ctx, Condition::Always, Expiration::At(at))?;
    answer::number(ctx.reply, 1);
    Ok(())
}

/// `setnx key value`
pub fn setnx(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let outcome = store(ctx, Condition::IfAbsent, Expiration::Never)?;
    answer::boolean(ctx.reply, outcome == SetOutcome::Stored);
    Ok(())
}

/// Stores the value. A key that holds another type keeps it.
fn store(ctx: &mut Ctx<'_>, condition: Condition<'_>, expiration: Expiration) -> Result<SetOutcome, Stop> {
    let key = ctx.key(1);
    if condition == Condition::Always {
        check_type(ctx, &key)?;
    }
    let value = ctx.value(2);
    Ok(string::set(ctx.ks, &key, value, condition, expiration)?)
}

/// Refuses a key of another type.
fn check_type(ctx: &mut Ctx<'_>, key: &Key<'_>) -> Result<(), Stop> {
    match ctx.ks.peek_head(key)? {
        Some(entry) if entry.kind != Type::String => Err(command::error::WRONG_TYPE),
        _ => Ok(()),
    }
}

/// `getset key value`
pub fn getset(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, reply) = (ctx.key(1), &mut *ctx.reply);
    answer::value(reply, string::get(ctx.ks, &key)?);
    store(ctx, Condition::Always, Expiration::Keep)?;
    Ok(())
}

/// `del key`
pub fn del(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    check_type(ctx, &key)?;
    generic::delete(ctx.ks, &key)?;
    answer::number(ctx.reply, 1);
    Ok(())
}

/// `incr key [number]`
pub fn incr(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    add(ctx, false)
}

/// `decr key [number]`
pub fn decr(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    add(ctx, true)
}

fn add(ctx: &mut Ctx<'_>, is_down: bool) -> Result<(), Stop> {
    let (key, by) = (ctx.key(1), arguments::step(&ctx.args, 2, is_down)?);
    let sum = types::counter::increment(ctx.ks, &key, by)?;
    answer::number(ctx.reply, sum);
    Ok(())
}

/// `exists key`
pub fn exists(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let is_there = many::is_string(ctx, &key)?;
    answer::boolean(ctx.reply, is_there);
    Ok(())
}

/// `expire key seconds`, of any type.
pub fn expire(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, at) = (ctx.key(1), arguments::expiration(ctx, 2)?);
    let is_there = generic::expire_at(ctx.ks, &key, at, ExpireCondition::default())?;
    answer::boolean(ctx.reply, is_there);
    Ok(())
}

/// `ttl key`, of any type: whole seconds, and -1 when there is no key or no expiration.
pub fn ttl(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let seconds = match generic::expiry(ctx.ks, &key)? {
        Expiry::Absent | Expiry::Never => -1,
        Expiry::At(at) => at.saturating_sub(ctx.now()).div_euclid(1000),
    };
    answer::number(ctx.reply, seconds);
    Ok(())
}

/// `multi_get key ...`: those that are there.
pub fn multi_get(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    answer::begin(ctx.reply);
    for index in 1..ctx.args.len() {
        let (key, reply) = (ctx.key(index), &mut *ctx.reply);
        let entry = match ctx.ks.read(&key) {
            Ok(entry) => entry,
            Err(fetch) => return Err(many::stopped(ctx, index, fetch)),
        };
        if let Some(entry) = entry.filter(|entry| entry.kind == Type::String) {
            reply.block(key.bytes);
            reply.block(entry.value.bytes());
        }
        check_reply(ctx.reply)?;
    }
    ctx.reply.end_packet();
    Ok(())
}

/// `multi_exists key ...`
pub fn multi_exists(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    answer::begin(ctx.reply);
    for index in 1..ctx.args.len() {
        let key = ctx.key(index);
        let is_there = many::is_string(ctx, &key).map_err(|stop| many::stopped(ctx, index, stop))?;
        ctx.reply.block(key.bytes);
        ctx.reply.block_integer(i64::from(is_there));
    }
    ctx.reply.end_packet();
    Ok(())
}

/// `multi_set key value ...`: all or none. Gives the number of pairs.
pub fn multi_set(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if ctx.args.len().is_multiple_of(2) {
        return Err(WRONG_COUNT);
    }
    for index in (1..ctx.args.len()).step_by(2) {
        let key = ctx.key(index);
        check_type(ctx, &key)?;
    }
    let args = ctx.args;
    let pair = move |index: usize| {
        let value = args.value(index.saturating_add(1)).unwrap_or(engine::Value::Bytes(&[]));
        (args.bytes(index).unwrap_or_default(), value)
    };
    let pairs = (1..args.len()).step_by(2).map(pair);
    let count = pairs.len() as u64;
    string::set_all(ctx.ks, pairs, Condition::Always, Expiration::Keep)?;
    answer::count(ctx.reply, count);
    Ok(())
}

/// `multi_del key ...`: all or none. Gives the number of keys that it names.
pub fn multi_del(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    for index in 1..ctx.args.len() {
        let key = ctx.key(index);
        check_type(ctx, &key)?;
    }
    let (args, count) = (ctx.args, ctx.args.len().saturating_sub(1) as u64);
    generic::delete_all(ctx.ks, args.from(1))?;
    answer::count(ctx.reply, count);
    Ok(())
}

/// `keys start end limit`
pub fn keys(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let range = Range::parse(&ctx.args, 1, false)?;
    crate::walk::names(ctx, Type::String, &range)
}

/// `rkeys start end limit`
pub fn rkeys(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let range = Range::parse(&ctx.args, 1, true)?;
    crate::walk::names(ctx, Type::String, &range)
}

/// `scan start end limit`
pub fn scan(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let range = Range::parse(&ctx.args, 1, false)?;
    crate::walk::values(ctx, &range)
}

/// `rscan start end limit`
pub fn rscan(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let range = Range::parse(&ctx.args, 1, true)?;
    crate::walk::values(ctx, &range)
}

/// Removes a collection of this type, and gives how many elements it had, by `len`.
pub fn clear(
    ctx: &mut Ctx<'_>,
    len: impl FnOnce(&mut dyn engine::Keyspace, &Key<'_>) -> Result<u64, Stop>,
) -> Result<(), Stop> {
    let key = ctx.key(1);
    let count = len(ctx.ks, &key)?;
    if count > 0 {
        generic::delete(ctx.ks, &key)?;
    }
    answer::count(ctx.reply, count);
    Ok(())
}
