//! Parts of strings.

use super::string::reply_value;
use crate::error::Stop;
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&APPEND, &GETRANGE, &SUBSTR, &SETRANGE];

static APPEND: CommandSpec = CommandSpec {
    name: "append",
    arity: 3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Adds bytes to the end of a string; an absent key becomes a string of them.",
        since: "2.0.0",
        group: "string",
        complexity: "O(1). The amortized time complexity is O(1) assuming the appended value is small and the already present value is of any size, since the dynamic string library used by the server will double the free space available on every reallocation.",
        arguments: &[Argument::key("key", 0), Argument::string("value")],
        ..Docs::NONE
    },
    run: Run::Call(append),
};

fn append(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, value) = (ctx.key(1), ctx.value(2));
    let limit = ctx.host.string_limit.bytes();
    let len = types::range::append(ctx.ks, &key, value, limit)?;
    ctx.reply.integer(len as i64);
    Ok(())
}

static GETRANGE: CommandSpec = CommandSpec {
    name: "getrange",
    arity: 4,
    flags: Flags::READONLY,
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives a part of a string.",
        since: "2.4.0",
        group: "string",
        complexity: "O(N) where N is the length of the returned string. The complexity is ultimately determined by the returned length, but because creating a substring from an existing string is very cheap, it can be considered O(1) for small strings.",
        arguments: &[Argument::key("key", 0), Argument::integer("start"), Argument::integer("end")],
        ..Docs::NONE
    },
    run: Run::Call(getrange),
};

fn getrange(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let (start, end) = (ctx.integer(2)?, ctx.integer(3)?);
    reply_value(ctx.reply, types::range::get(ctx.ks, &key, start, end)?);
    Ok(())
}

static SUBSTR: CommandSpec = CommandSpec {
    name: "substr",
    arity: 4,
    flags: Flags::READONLY,
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives a part of a string; the old name of GETRANGE.",
        since: "1.0.0",
        group: "string",
        complexity: "O(N) where N is the length of the returned string. The complexity is ultimately determined by the returned length, but because creating a substring from an existing string is very cheap, it can be considered O(1) for small strings.",
        arguments: &[Argument::key("key", 0), Argument::integer("start"), Argument::integer("end")],
        ..Docs::NONE
    },
    run: Run::Call(getrange),
};

static SETRANGE: CommandSpec = CommandSpec {
    name: "setrange",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Overwrites a part of a string, which grows to hold it.",
        since: "2.2.0",
        group: "string",
        complexity: "O(1), not counting the time taken to copy the new string in place. Usually, this string is very small so the amortized complexity is O(1). Otherwise, complexity is O(M) with M being the length of the value argument.",
        arguments: &[Argument::key("key", 0), Argument::integer("offset"), Argument::string("value")],
        ..Docs::NONE
    },
    run: Run::Call(setrange),
};

fn setrange(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, value) = (ctx.key(1), ctx.value(3));
    let offset = u64::try_from(ctx.integer(2)?).map_err(|_| Stop::error("ERR offset is out of range"))?;
    let limit = ctx.host.string_limit.bytes();
    let len = types::range::set(ctx.ks, &key, offset, value, limit)?;
    ctx.reply.integer(len as i64);
    Ok(())
}
