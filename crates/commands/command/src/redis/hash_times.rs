//! When fields of hashes are due.

use super::expiration::{self, TimeUnit};
use super::hash_fields;
use crate::error::Stop;
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use types::hash::TimeChange;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] =
    &[&HEXPIRE, &HPEXPIRE, &HEXPIREAT, &HPEXPIREAT, &HTTL, &HPTTL, &HEXPIRETIME, &HPEXPIRETIME, &HPERSIST];

/// What answers stand for, field by field.
const ABSENT: i64 = -2;
const TIMELESS: i64 = -1;
const REFUSED: i64 = 0;
const DONE: i64 = 1;
const DELETED: i64 = 2;

static HEXPIRE: CommandSpec = CommandSpec {
    name: "hexpire",
    arity: -6,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sets how many seconds fields have left.",
        since: "9.0.0",
        group: "hash",
        complexity: "O(N) where N is the number of specified fields.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("seconds"),
            Argument::one_of(
                "condition",
                &[
                    Argument::word("nx", "NX"),
                    Argument::word("xx", "XX"),
                    Argument::word("gt", "GT"),
                    Argument::word("lt", "LT"),
                ],
            )
            .optional(),
            Argument::block("fields", &[Argument::integer("numfields"), Argument::string("field").repeated()])
                .after("FIELDS"),
        ],
        ..Docs::NONE
    },
    run: Run::Call(hexpire),
};

fn hexpire(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    set_deadline(ctx, TimeUnit::SECONDS)
}

static HPEXPIRE: CommandSpec = CommandSpec {
    name: "hpexpire",
    arity: -6,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sets how many milliseconds fields have left.",
        since: "9.0.0",
        group: "hash",
        complexity: "O(N) where N is the number of specified fields.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("milliseconds"),
            Argument::one_of(
                "condition",
                &[
                    Argument::word("nx", "NX"),
                    Argument::word("xx", "XX"),
                    Argument::word("gt", "GT"),
                    Argument::word("lt", "LT"),
                ],
            )
            .since("9.0.0")
            .optional(),
            Argument::block("fields", &[Argument::integer_of("numfields", 0), Argument::string("field").repeated()])
                .after("FIELDS"),
        ],
        ..Docs::NONE
    },
    run: Run::Call(hpexpire),
};

fn hpexpire(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    set_deadline(ctx, TimeUnit::MILLISECONDS)
}

static HEXPIREAT: CommandSpec = CommandSpec {
    name: "hexpireat",
    arity: -6,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sets the second at which fields are due.",
        since: "9.0.0",
        group: "hash",
        complexity: "O(N) where N is the number of specified fields.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("unix-time-seconds"),
            Argument::one_of(
                "condition",
                &[
                    Argument::word("nx", "NX"),
                    Argument::word("xx", "XX"),
                    Argument::word("gt", "GT"),
                    Argument::word("lt", "LT"),
                ],
            )
            .since("9.0.0")
            .optional(),
            Argument::block("fields", &[Argument::integer_of("numfields", 0), Argument::string("field").repeated()])
                .after("FIELDS"),
        ],
        ..Docs::NONE
    },
    run: Run::Call(hexpireat),
};

fn hexpireat(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    set_deadline(ctx, TimeUnit::UNIX_SECONDS)
}

static HPEXPIREAT: CommandSpec = CommandSpec {
    name: "hpexpireat",
    arity: -6,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sets the millisecond at which fields are due.",
        since: "9.0.0",
        group: "hash",
        complexity: "O(N) where N is the number of specified fields.",
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("unix-time-milliseconds"),
            Argument::one_of(
                "condition",
                &[
                    Argument::word("nx", "NX"),
                    Argument::word("xx", "XX"),
                    Argument::word("gt", "GT"),
                    Argument::word("lt", "LT"),
                ],
            )
            .since("9.0.0")
            .optional(),
            Argument::block("fields", &[Argument::integer_of("numfields", 0), Argument::string("field").repeated()])
                .after("FIELDS"),
        ],
        ..Docs::NONE
    },
    run: Run::Call(hpexpireat),
};

fn hpexpireat(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    set_deadline(ctx, TimeUnit::UNIX_MILLISECONDS)
}

static HTTL: CommandSpec = CommandSpec {
    name: "httl",
    arity: -5,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives how many seconds fields have left.",
        since: "9.0.0",
        group: "hash",
        complexity: "O(N) where N is the number of specified fields.",
        arguments: &[
            Argument::key("key", 0),
            Argument::block("fields", &[Argument::integer_of("numfields", 0), Argument::string("field").repeated()])
                .after("FIELDS"),
        ],
        ..Docs::NONE
    },
    run: Run::Call(httl),
};

fn httl(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_deadlines(ctx, TimeUnit::SECONDS)
}

static HPTTL: CommandSpec = CommandSpec {
    name: "hpttl",
    arity: -5,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives how many milliseconds fields have left.",
        since: "9.0.0",
        group: "hash",
        complexity: "O(N) where N is the number of specified fields.",
        arguments: &[
            Argument::key("key", 0),
            Argument::block("fields", &[Argument::integer_of("numfields", 0), Argument::string("field").repeated()])
                .after("FIELDS"),
        ],
        ..Docs::NONE
    },
    run: Run::Call(hpttl),
};

fn hpttl(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_deadlines(ctx, TimeUnit::MILLISECONDS)
}

static HEXPIRETIME: CommandSpec = CommandSpec {
    name: "hexpiretime",
    arity: -5,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the second at which fields are due.",
        since: "9.0.0",
        group: "hash",
        complexity: "O(N) where N is the number of specified fields.",
        arguments: &[
            Argument::key("key", 0),
            Argument::block("fields", &[Argument::integer_of("numfields", 0), Argument::string("field").repeated()])
                .after("FIELDS"),
        ],
        ..Docs::NONE
    },
    run: Run::Call(hexpiretime),
};

fn hexpiretime(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_deadlines(ctx, TimeUnit::UNIX_SECONDS)
}

static HPEXPIRETIME: CommandSpec = CommandSpec {
    name: "hpexpiretime",
    arity: -5,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the millisecond at which fields are due.",
        since: "9.0.0",
        group: "hash",
        complexity: "O(N) where N is the number of specified fields.",
        arguments: &[
            Argument::key("key", 0),
            Argument::block("fields", &[Argument::integer_of("numfields", 0), Argument::string("field").repeated()])
                .after("FIELDS"),
        ],
        ..Docs::NONE
    },
    run: Run::Call(hpexpiretime),
};

fn hpexpiretime(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_deadlines(ctx, TimeUnit::UNIX_MILLISECONDS)
}

static HPERSIST: CommandSpec = CommandSpec {
    name: "hpersist",
    arity: -5,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Makes fields that have a time stay.",
        since: "9.0.0",
        group: "hash",
        complexity: "O(N) where N is the number of specified fields.",
        arguments: &[
            Argument::key("key", 0),
            Argument::block("fields", &[Argument::integer_of("numfields", 0), Argument::string("field").repeated()])
                .after("FIELDS"),
        ],
        ..Docs::NONE
    },
    run: Run::Call(hpersist),
};

fn hpersist(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let fields = hash_fields::read_at(ctx, 2)?;
    let key = ctx.key(1);
    let reply = &mut *ctx.reply;
    reply.array(fields.len());
    types::hash::persist(ctx.ks, &key, fields.iter(), &mut |change| reply.integer(answer(change)))?;
    Ok(())
}

/// HEXPIRE and its relatives, with the time in this unit.
fn set_deadline(ctx: &mut Ctx<'_>, unit: TimeUnit) -> Result<(), Stop> {
    let word = hash_fields::find(ctx, 3)?;
    let condition = expiration::condition(ctx.args.from(3).take(word.saturating_sub(3)))?;
    let fields = hash_fields::read(ctx, word, 1)?;
    let at = unit.deadline(ctx, 2)?;
    let key = ctx.key(1);
    let reply = &mut *ctx.reply;
    reply.array(fields.len());
    types::hash::expire(ctx.ks, &key, fields.iter(), at, condition, &mut |change| reply.integer(answer(change)))?;
    Ok(())
}

fn answer(change: TimeChange) -> i64 {
    match change {
        TimeChange::Absent => ABSENT,
        TimeChange::Timeless => TIMELESS,
        TimeChange::Refused => REFUSED,
        TimeChange::Done => DONE,
        TimeChange::Deleted => DELETED,
    }
}

/// HTTL and its relatives, with the time in this unit.
fn reply_deadlines(ctx: &mut Ctx<'_>, unit: TimeUnit) -> Result<(), Stop> {
    let fields = hash_fields::read_strictly(ctx, 2)?;
    let (key, now) = (ctx.key(1), ctx.now());
    let hash = types::hash::read(ctx.ks, &key)?;
    ctx.reply.array(fields.len());
    for field in fields.iter() {
        let shown = hash.get(field).map_or(ABSENT, |cell| cell.expire_at.map_or(TIMELESS, |at| unit.show(at, now)));
        ctx.reply.integer(shown);
    }
    Ok(())
}
