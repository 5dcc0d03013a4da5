//! Hashes: fields set, read and deleted.

use crate::error::{self, Stop};
use crate::spec::{Argument, Docs, Look};
use crate::{Args, Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use engine::Key;
use proto::ReplyBuffer;
use types::hash::Cell;
use value::hash::View;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] =
    &[&HSET, &HSETNX, &HMSET, &HGET, &HMGET, &HEXISTS, &HSTRLEN, &HLEN, &HDEL, &HGETALL, &HKEYS, &HVALS];

static HSET: CommandSpec = CommandSpec {
    name: "hset",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sets fields of a hash.",
        since: "2.0.0",
        group: "hash",
        complexity: "O(1) for each field/value pair added, so O(N) to add N field/value pairs when the command is called with multiple field/value pairs.",
        history: &[("4.0.0", "Takes several fields with their values.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::block("data", &[Argument::string("field"), Argument::string("value")]).repeated(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(hset),
};

fn hset(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let new = set_all(ctx)?;
    ctx.reply.integer(new as i64);
    Ok(())
}

#[inline]
fn set_all(ctx: &mut Ctx<'_>) -> Result<usize, Stop> {
    if !ctx.args.len().is_multiple_of(2) {
        return Err(error::wrong_arity(ctx.spec.name));
    }
    let key = ctx.key(1);
    Ok(types::hash::set_all(ctx.ks, &key, pairs(ctx.args, 2))?)
}

/// The arguments from `from` on as fields and their values.
#[inline]
pub(super) fn pairs<'a>(args: Args<'a>, from: usize) -> impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])> + Clone {
    let at = move |index| args.bytes(index).unwrap_or_default();
    (from..args.len()).step_by(2).map(move |index| (at(index), at(index.saturating_add(1))))
}

static HSETNX: CommandSpec = CommandSpec {
    name: "hsetnx",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sets a field of a hash, but only if it is not there.",
        since: "2.0.0",
        group: "hash",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::string("field"), Argument::string("value")],
        ..Docs::NONE
    },
    run: Run::Call(hsetnx),
};

fn hsetnx(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let is_set = types::hash::set_if_absent(ctx.ks, &key, &ctx.args[2], &ctx.args[3])?;
    ctx.reply.integer(i64::from(is_set));
    Ok(())
}

static HMSET: CommandSpec = CommandSpec {
    name: "hmset",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sets several fields of a hash.",
        since: "2.0.0",
        group: "hash",
        complexity: "O(N) where N is the number of fields being set.",
        arguments: &[
            Argument::key("key", 0),
            Argument::block("data", &[Argument::string("field"), Argument::string("value")]).repeated(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(hmset),
};

fn hmset(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    set_all(ctx)?;
    ctx.reply.ok();
    Ok(())
}

static HGET: CommandSpec = CommandSpec {
    name: "hget",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the value of a field.",
        since: "2.0.0",
        group: "hash",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::string("field")],
        ..Docs::NONE
    },
    run: Run::Read(hget),
};

fn hget(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let cell = types::hash::of_entry(look.entry, look.now)?.get(&look.args[2]);
    reply_value(reply, cell.map(|cell| cell.value));
    Ok(())
}

/// The value of a field, or nothing.
#[inline]
pub(super) fn reply_value(reply: &mut ReplyBuffer, value: Option<&[u8]>) {
    match value {
        Some(value) => reply.bulk(value),
        None => reply.null(),
    }
}

static HMGET: CommandSpec = CommandSpec {
    name: "hmget",
    arity: -3,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the values of several fields.",
        since: "2.0.0",
        group: "hash",
        complexity: "O(N) where N is the number of fields being requested.",
        arguments: &[Argument::key("key", 0), Argument::string("field").repeated()],
        ..Docs::NONE
    },
    run: Run::Read(hmget),
};

fn hmget(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let hash = types::hash::of_entry(look.entry, look.now)?;
    reply.array(look.args.len().saturating_sub(2));
    for field in look.args.from(2) {
        reply_value(reply, hash.get(field).map(|cell| cell.value));
        error::check_reply(reply)?;
    }
    Ok(())
}

static HEXISTS: CommandSpec = CommandSpec {
    name: "hexists",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Tells whether a hash has a field.",
        since: "2.0.0",
        group: "hash",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::string("field")],
        ..Docs::NONE
    },
    run: Run::Read(hexists),
};

fn hexists(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let is_there = types::hash::of_entry(look.entry, look.now)?.get(&look.args[2]).is_some();
    reply.integer(i64::from(is_there));
    Ok(())
}

static HSTRLEN: CommandSpec = CommandSpec {
    name: "hstrlen",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the length of the value of a field.",
        since: "3.2.0",
        group: "hash",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::string("field")],
        ..Docs::NONE
    },
    run: Run::Read(hstrlen),
};

fn hstrlen(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let cell = types::hash::of_entry(look.entry, look.now)?.get(&look.args[2]);
    reply.integer(cell.map_or(0, |cell| cell.value.len()) as i64);
    Ok(())
}

static HLEN: CommandSpec = CommandSpec {
    name: "hlen",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the number of fields of a hash.",
        since: "2.0.0",
        group: "hash",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Read(hlen),
};

fn hlen(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let len = types::hash::of_entry(look.entry, look.now)?.len();
    reply.integer(len as i64);
    Ok(())
}

static HDEL: CommandSpec = CommandSpec {
    name: "hdel",
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST).union(Flags::FREES),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Deletes fields of a hash, and the hash with the last of them.",
        since: "2.0.0",
        group: "hash",
        complexity: "O(N) where N is the number of fields to be removed.",
        history: &[("2.4.0", "Takes several fields.")],
        arguments: &[Argument::key("key", 0), Argument::string("field").repeated()],
        ..Docs::NONE
    },
    run: Run::Call(hdel),
};

fn hdel(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let deleted = types::hash::delete_all(ctx.ks, &key, ctx.args.from(2))?;
    ctx.reply.integer(deleted as i64);
    Ok(())
}

static HGETALL: CommandSpec = CommandSpec {
    name: "hgetall",
    arity: 2,
    flags: Flags::READONLY,
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives all fields of a hash with their values.",
        since: "2.0.0",
        group: "hash",
        complexity: "O(N) where N is the size of the hash.",
        tips: &["nondeterministic_output_order"],
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(hgetall),
};

fn hgetall(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let count = types::hash::read(ctx.ks, &key)?.len();
    ctx.reply.map(count);
    reply_each(ctx, &key, |cell, reply| {
        reply.bulk(cell.field);
        reply.bulk(cell.value);
    })
}

static HKEYS: CommandSpec = CommandSpec {
    name: "hkeys",
    arity: 2,
    flags: Flags::READONLY,
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives all fields of a hash.",
        since: "2.0.0",
        group: "hash",
        complexity: "O(N) where N is the size of the hash.",
        tips: &["nondeterministic_output_order"],
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(hkeys),
};

fn hkeys(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let count = types::hash::read(ctx.ks, &key)?.len();
    ctx.reply.array(count);
    reply_each(ctx, &key, |cell, reply| reply.bulk(cell.field))
}

static HVALS: CommandSpec = CommandSpec {
    name: "hvals",
    arity: 2,
    flags: Flags::READONLY,
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives all values of a hash.",
        since: "2.0.0",
        group: "hash",
        complexity: "O(N) where N is the size of the hash.",
        tips: &["nondeterministic_output_order"],
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(hvals),
};

fn hvals(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let count = types::hash::read(ctx.ks, &key)?.len();
    ctx.reply.array(count);
    reply_each(ctx, &key, |cell, reply| reply.bulk(cell.value))
}

/// Writes all fields that are not due, piece by piece when there are many.
fn reply_each(ctx: &mut Ctx<'_>, key: &Key<'_>, write: fn(Cell<'_>, &mut ReplyBuffer)) -> Result<(), Stop> {
    let now = ctx.now();
    let len = types::hash::peek(ctx.ks, key)?.stored_len();
    ctx.reply_elements(key, 0..len, move |encoding, stored, fields, reply| {
        let cells = View::of(encoding, stored).iter_from(fields.start).take(fields.len());
        cells.filter(|cell| !cell.is_due(now)).for_each(|cell| write(cell, reply));
    })
}
