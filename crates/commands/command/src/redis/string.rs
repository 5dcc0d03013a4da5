//! Strings as wholes: set, get, and both at once.

use super::expiration::TimeUnit;
use super::options::{Accepted, Options};
use crate::error::Stop;
use crate::spec::{Argument, Docs, Look};
use crate::{Args, Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use engine::Value;
use proto::ReplyBuffer;
use types::string::{Condition, Expiration, SetOutcome};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] =
    &[&GET, &SET, &SETNX, &SETEX, &PSETEX, &GETSET, &GETDEL, &GETEX, &DELIFEQ, &STRLEN];

/// A value as a bulk string: copied, or shared when it is big.
#[inline]
pub(crate) fn reply_value(reply: &mut ReplyBuffer, value: Value<'_>) {
    match value {
        Value::Shared(shared) => reply.bulk_shared(shared.clone()),
        _ => reply.bulk(value.bytes()),
    }
}

static GET: CommandSpec = CommandSpec {
    name: "get",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST).union(Flags::SENDS_STRING),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the string under a key.",
        since: "1.0.0",
        group: "string",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Read(get),
};

fn get(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    match look.entry {
        None => reply.null(),
        Some(entry) => reply_value(reply, types::string::string_value(entry)?),
    }
    Ok(())
}

/// The string under the first key, or null. Whether there was one.
#[inline]
fn reply_string(ctx: &mut Ctx<'_>) -> Result<bool, Stop> {
    let key = ctx.key(1);
    let value = types::string::get(ctx.ks, &key)?;
    match value {
        None => ctx.reply.null(),
        Some(value) => reply_value(ctx.reply, value),
    }
    Ok(value.is_some())
}

static SET: CommandSpec = CommandSpec {
    name: "set",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))
        .varying(set_key_flags)
        .noting("`GET` gives the old value.")],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Stores a string under a key, whatever was there.",
        since: "1.0.0",
        group: "string",
        complexity: "O(1)",
        history: &[
            ("2.6.12", "Takes `EX`, `PX`, `NX` and `XX`."),
            ("6.0.0", "Takes `KEEPTTL`."),
            ("6.2.0", "Takes `GET`, `EXAT` and `PXAT`."),
            ("7.0.0", "`NX` and `GET` go together."),
            ("8.1.0", "Takes `IFEQ`."),
        ],
        arguments: &[
            Argument::key("key", 0),
            Argument::string("value"),
            Argument::one_of(
                "condition",
                &[
                    Argument::word("nx", "NX").since("2.6.12"),
                    Argument::word("xx", "XX").since("2.6.12"),
                    Argument::string("comparison-value")
                        .after("IFEQ")
                        .meaning("Stores only if the key holds exactly this string.")
                        .since("8.1.0"),
                ],
            )
            .optional(),
            Argument::word("get", "GET").since("6.2.0").optional(),
            Argument::one_of(
                "expiration",
                &[
                    Argument::integer("seconds").after("EX").since("2.6.12"),
                    Argument::integer("milliseconds").after("PX").since("2.6.12"),
                    Argument::unix_time("unix-time-seconds").after("EXAT").since("6.2.0"),
                    Argument::unix_time("unix-time-milliseconds").after("PXAT").since("6.2.0"),
                    Argument::word("keepttl", "KEEPTTL").since("6.0.0"),
                ],
            )
            .optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(set),
};

/// Overwrites, unless GET asks for the old value.
fn set_key_flags(args: &Args<'_>) -> KeyFlags {
    match args.from(3).any(|word| word.eq_ignore_ascii_case(b"get")) {
        true => KeyFlags::RW | KeyFlags::ACCESS | KeyFlags::UPDATE,
        false => KeyFlags::OW | KeyFlags::UPDATE,
    }
}

fn set(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let options = if ctx.args.len() == 3 {
        Options::default()
    } else {
        Options::parse(ctx, 3..ctx.args.len(), Accepted::BY_SET)?
    };
    let (value, expiration) = (ctx.value(2), options.expiration(ctx)?);
    if options.get {
        reply_string(ctx)?;
    }
    let outcome = types::string::set(ctx.ks, &key, value, options.condition, expiration)?;
    match outcome {
        _ if options.get => {}
        SetOutcome::Stored => ctx.reply.ok(),
        SetOutcome::NotStored => ctx.reply.null(),
    }
    Ok(())
}

static SETNX: CommandSpec = CommandSpec {
    name: "setnx",
    arity: 3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::OW.union(KeyFlags::INSERT))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Stores a string if the key is not there.",
        since: "1.0.0",
        group: "string",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::string("value")],
        ..Docs::NONE
    },
    run: Run::Call(setnx),
};

fn setnx(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, value) = (ctx.key(1), ctx.value(2));
    let outcome = types::string::set(ctx.ks, &key, value, Condition::IfAbsent, Expiration::Never)?;
    ctx.reply.integer(i64::from(outcome == SetOutcome::Stored));
    Ok(())
}

static SETEX: CommandSpec = CommandSpec {
    name: "setex",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Stores a string that expires after some seconds.",
        since: "2.0.0",
        group: "string",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::integer("seconds"), Argument::string("value")],
        ..Docs::NONE
    },
    run: Run::Call(setex),
};

fn setex(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    set_expiring(ctx, TimeUnit::SECONDS)
}

static PSETEX: CommandSpec = CommandSpec {
    name: "psetex",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Stores a string that expires after some milliseconds.",
        since: "2.6.0",
        group: "string",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::integer("milliseconds"), Argument::string("value")],
        ..Docs::NONE
    },
    run: Run::Call(psetex),
};

fn psetex(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    set_expiring(ctx, TimeUnit::MILLISECONDS)
}

fn set_expiring(ctx: &mut Ctx<'_>, unit: TimeUnit) -> Result<(), Stop> {
    let (key, value) = (ctx.key(1), ctx.value(3));
    let expiration = Expiration::At(unit.positive_time(ctx, 2)?);
    types::string::set(ctx.ks, &key, value, Condition::Always, expiration)?;
    ctx.reply.ok();
    Ok(())
}

static GETSET: CommandSpec = CommandSpec {
    name: "getset",
    arity: 3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Stores a string and gives the one that was there.",
        since: "1.0.0",
        group: "string",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::string("value")],
        ..Docs::NONE
    },
    run: Run::Call(getset),
};

fn getset(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_string(ctx)?;
    let (key, value) = (ctx.key(1), ctx.value(2));
    types::string::set(ctx.ks, &key, value, Condition::Always, Expiration::Never)?;
    Ok(())
}

static GETDEL: CommandSpec = CommandSpec {
    name: "getdel",
    arity: 2,
    flags: Flags::WRITE.union(Flags::FAST).union(Flags::FREES),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the string under a key and removes the key.",
        since: "6.2.0",
        group: "string",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(getdel),
};

fn getdel(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if reply_string(ctx)? {
        let key = ctx.key(1);
        types::generic::delete(ctx.ks, &key)?;
    }
    Ok(())
}

static GETEX: CommandSpec = CommandSpec {
    name: "getex",
    arity: -2,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))
        .noting("The expiration may change.")],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the string under a key and changes when it expires.",
        since: "6.2.0",
        group: "string",
        complexity: "O(1)",
        arguments: &[
            Argument::key("key", 0),
            Argument::one_of(
                "expiration",
                &[
                    Argument::integer("seconds").after("EX"),
                    Argument::integer("milliseconds").after("PX"),
                    Argument::unix_time("unix-time-seconds").after("EXAT"),
                    Argument::unix_time("unix-time-milliseconds").after("PXAT"),
                    Argument::word("persist", "PERSIST"),
                ],
            )
            .optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(getex),
};

fn getex(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let options = Options::parse(ctx, 2..ctx.args.len(), Accepted::BY_GETEX)?;
    let expiration = options.expiration(ctx)?;
    if reply_string(ctx)? {
        let key = ctx.key(1);
        match expiration {
            Expiration::At(at) => types::generic::expire_at(ctx.ks, &key, at, Default::default())?,
            _ if options.persist => types::generic::persist(ctx.ks, &key)?,
            _ => false,
        };
    }
    Ok(())
}

static DELIFEQ: CommandSpec = CommandSpec {
    name: "delifeq",
    arity: 3,
    flags: Flags::WRITE.union(Flags::FAST).union(Flags::FREES),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RM.union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Removes a key if it holds exactly the given string.",
        since: "9.0.0",
        group: "string",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::string("value")],
        ..Docs::NONE
    },
    run: Run::Call(delifeq),
};

fn delifeq(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let removed = types::string::delete_if_equal(ctx.ks, &key, &ctx.args[2])?;
    ctx.reply.integer(i64::from(removed));
    Ok(())
}

static STRLEN: CommandSpec = CommandSpec {
    name: "strlen",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the length of a string in bytes.",
        since: "2.2.0",
        group: "string",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(strlen),
};

fn strlen(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let len = types::string::len(ctx.ks, &key)?;
    ctx.reply.integer(len as i64);
    Ok(())
}
