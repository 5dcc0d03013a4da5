//! Several strings in one command.

use super::options::{Accepted, Options};
use super::string::reply_value;
use crate::error::{self, Stop};
use crate::spec::{Argument, Docs};
use crate::{Args, Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use engine::Value;
use types::TypeError;
use types::string::{Condition, Expiration, SetOutcome};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&MGET, &MSET, &MSETNX, &MSETEX];

static MGET: CommandSpec = CommandSpec {
    name: "mget",
    arity: -2,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::STRING,
    keys: &[KeySpec::range(1, -1, 1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the strings under several keys.",
        since: "1.0.0",
        group: "string",
        complexity: "O(N) where N is the number of keys to retrieve.",
        tips: &["request_policy:multi_shard"],
        arguments: &[Argument::key("key", 0).repeated()],
        ..Docs::NONE
    },
    run: Run::Call(mget),
};

fn mget(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.array(ctx.args.len().saturating_sub(1));
    for index in 1..ctx.args.len() {
        let key = ctx.key(index);
        match types::string::get(ctx.ks, &key) {
            Ok(Some(value)) => reply_value(ctx.reply, value),
            Ok(None) | Err(TypeError::WrongType) => ctx.reply.null(),
            Err(error) => return Err(error.into()),
        }
        error::check_reply(ctx.reply)?;
    }
    Ok(())
}

static MSET: CommandSpec = CommandSpec {
    name: "mset",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::STRING,
    keys: &[KeySpec::range(1, -1, 2, KeyFlags::OW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Stores several strings at once.",
        since: "1.0.1",
        group: "string",
        complexity: "O(N) where N is the number of keys to set.",
        tips: &["request_policy:multi_shard", "response_policy:all_succeeded"],
        arguments: &[Argument::block("data", &[Argument::key("key", 0), Argument::string("value")]).repeated()],
        ..Docs::NONE
    },
    run: Run::Call(mset),
};

fn mset(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    set_pairs(ctx, Condition::Always)?;
    ctx.reply.ok();
    Ok(())
}

static MSETNX: CommandSpec = CommandSpec {
    name: "msetnx",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::STRING,
    keys: &[KeySpec::range(1, -1, 2, KeyFlags::OW.union(KeyFlags::INSERT))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Stores several strings at once, but only if none of the keys is there.",
        since: "1.0.1",
        group: "string",
        complexity: "O(N) where N is the number of keys to set.",
        arguments: &[Argument::block("data", &[Argument::key("key", 0), Argument::string("value")]).repeated()],
        ..Docs::NONE
    },
    run: Run::Call(msetnx),
};

fn msetnx(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let outcome = set_pairs(ctx, Condition::IfAbsent)?;
    ctx.reply.integer(i64::from(outcome == SetOutcome::Stored));
    Ok(())
}

/// Stores all arguments, which are keys and values by turns.
fn set_pairs(ctx: &mut Ctx<'_>, condition: Condition<'_>) -> Result<SetOutcome, Stop> {
    if ctx.args.len().is_multiple_of(2) {
        return Err(error::wrong_arity(ctx.spec.name));
    }
    let pairs = pairs(ctx.args, 1, ctx.args.len());
    Ok(types::string::set_all(ctx.ks, pairs, condition, Expiration::Never)?)
}

/// The arguments from `start` to before `end` as keys and values.
fn pairs<'a>(args: Args<'a>, start: usize, end: usize) -> impl Iterator<Item = (&'a [u8], Value<'a>)> + Clone {
    (start..end).step_by(2).filter_map(move |index| Some((args.bytes(index)?, args.value(index.saturating_add(1))?)))
}

static MSETEX: CommandSpec = CommandSpec {
    name: "msetex",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
    categories: Categories::STRING,
    keys: &[KeySpec::counted(1, 0, 1, 2, KeyFlags::OW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Stores several strings at once, with a common expiration or condition if wished.",
        since: "9.1.0",
        group: "string",
        complexity: "O(N) where N is the number of keys to set.",
        tips: &["request_policy:multi_shard", "response_policy:all_succeeded"],
        arguments: &[
            Argument::integer("numkeys"),
            Argument::block("data", &[Argument::key("key", 0), Argument::string("value")]).repeated(),
            Argument::one_of("condition", &[Argument::word("nx", "NX"), Argument::word("xx", "XX")]).optional(),
            Argument::one_of(
                "expiration",
                &[
                    Argument::integer("seconds").after("EX"),
                    Argument::integer("milliseconds").after("PX"),
                    Argument::unix_time("unix-time-seconds").after("EXAT"),
                    Argument::unix_time("unix-time-milliseconds").after("PXAT"),
                    Argument::word("keepttl", "KEEPTTL"),
                ],
            )
            .optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(msetex),
};

fn msetex(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let invalid = Stop::error("ERR invalid numkeys value or out of range");
    let number = ctx.integer(1).ok().and_then(|number| i32::try_from(number).ok());
    let Some(number) = number.and_then(|number| usize::try_from(number).ok()).filter(|number| *number > 0) else {
        return Err(invalid);
    };
    let end = number.saturating_mul(2).saturating_add(2);
    if end > ctx.args.len() {
        return Err(error::SYNTAX);
    }
    let options = Options::parse(ctx, end..ctx.args.len(), Accepted::BY_MSETEX)?;
    let expiration = options.expiration(ctx)?;
    let outcome = types::string::set_all(ctx.ks, pairs(ctx.args, 2, end), options.condition, expiration)?;
    ctx.reply.integer(i64::from(outcome == SetOutcome::Stored));
    Ok(())
}
