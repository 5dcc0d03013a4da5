//! Keys of any type: there or not, removed, renamed, copied, moved.

use crate::error::{self, Stop};
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use base::KeyspaceId;
use engine::Type;
use types::generic::{IfTaken, Moved};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&DEL, &UNLINK, &EXISTS, &TOUCH, &TYPE, &RENAME, &RENAMENX, &COPY, &MOVE];

static DEL: CommandSpec = CommandSpec {
    name: "del",
    arity: -2,
    flags: Flags::WRITE.union(Flags::FREES),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::range(1, -1, 1, KeyFlags::RM.union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Removes keys and what is stored under them.",
        since: "1.0.0",
        group: "generic",
        complexity: "O(N) where N is the number of keys that will be removed. When a key to remove holds a value other than a string, the individual complexity for this key is O(M) where M is the number of elements in the list, set, sorted set or hash. Removing a single key that holds a string value is O(1).",
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        arguments: &[Argument::key("key", 0).repeated()],
        ..Docs::NONE
    },
    run: Run::Call(del),
};

fn del(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let removed = if ctx.args.len() == 2 {
        let key = ctx.key(1);
        i64::from(types::generic::delete(ctx.ks, &key)?)
    } else {
        types::generic::delete_all(ctx.ks, ctx.args.from(1))? as i64
    };
    ctx.reply.integer(removed);
    Ok(())
}

static UNLINK: CommandSpec = CommandSpec {
    name: "unlink",
    arity: -2,
    flags: Flags::WRITE.union(Flags::FAST).union(Flags::FREES),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::range(1, -1, 1, KeyFlags::RM.union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Removes keys; their memory is given back in the background.",
        since: "4.0.0",
        group: "generic",
        complexity: "O(1) for each key removed regardless of its size. Then the command does O(N) work in a different thread in order to reclaim memory, where N is the number of allocations the deleted objects where composed of.",
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        arguments: &[Argument::key("key", 0).repeated()],
        ..Docs::NONE
    },
    run: Run::Call(del),
};

static EXISTS: CommandSpec = CommandSpec {
    name: "exists",
    arity: -2,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::range(1, -1, 1, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Counts how many of the given keys are there.",
        since: "1.0.0",
        group: "generic",
        complexity: "O(N) where N is the number of keys to check.",
        history: &[("3.0.3", "Takes several keys.")],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        arguments: &[Argument::key("key", 0).repeated()],
        ..Docs::NONE
    },
    run: Run::Call(exists),
};

fn exists(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let found = types::generic::count(ctx.ks, ctx.args.from(1))?;
    ctx.reply.integer(found as i64);
    Ok(())
}

static TOUCH: CommandSpec = CommandSpec {
    name: "touch",
    arity: -2,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::range(1, -1, 1, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Counts how many of the given keys are there and marks them as used now.",
        since: "3.2.1",
        group: "generic",
        complexity: "O(N) where N is the number of keys that will be touched.",
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        arguments: &[Argument::key("key", 0).repeated()],
        ..Docs::NONE
    },
    run: Run::Call(touch),
};

fn touch(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let found = types::generic::touch(ctx.ks, ctx.args.from(1))?;
    ctx.reply.integer(found as i64);
    Ok(())
}

static TYPE: CommandSpec = CommandSpec {
    name: "type",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(1, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Names the type of what is stored under a key.",
        since: "1.0.0",
        group: "generic",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(kind),
};

fn kind(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let kind = types::generic::kind(ctx.ks, &key)?;
    ctx.reply.simple(kind.map_or("none", Type::name));
    Ok(())
}

static RENAME: CommandSpec = CommandSpec {
    name: "rename",
    arity: 3,
    flags: Flags::WRITE,
    categories: Categories::KEYSPACE,
    keys: &[
        KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)),
        KeySpec::one(2, KeyFlags::OW.union(KeyFlags::UPDATE)),
    ],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives a key another name; what had that name is gone.",
        since: "1.0.0",
        group: "generic",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::key("newkey", 1)],
        ..Docs::NONE
    },
    run: Run::Call(rename),
};

fn rename(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (from, to) = (ctx.key(1), ctx.key(2));
    match types::generic::rename(ctx.ks, &from, &to, IfTaken::Replace)? {
        Moved::Absent => return Err(error::NO_SUCH_KEY),
        Moved::Done | Moved::Taken => ctx.reply.ok(),
    }
    Ok(())
}

static RENAMENX: CommandSpec = CommandSpec {
    name: "renamenx",
    arity: 3,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[
        KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)),
        KeySpec::one(2, KeyFlags::OW.union(KeyFlags::INSERT)),
    ],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives a key another name unless that is taken.",
        since: "1.0.0",
        group: "generic",
        complexity: "O(1)",
        history: &[("3.2.0", "A key may be given its own name; that is no error any more.")],
        arguments: &[Argument::key("key", 0), Argument::key("newkey", 1)],
        ..Docs::NONE
    },
    run: Run::Call(renamenx),
};

fn renamenx(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (from, to) = (ctx.key(1), ctx.key(2));
    match types::generic::rename(ctx.ks, &from, &to, IfTaken::Leave)? {
        Moved::Absent => return Err(error::NO_SUCH_KEY),
        moved => ctx.reply.integer(i64::from(moved == Moved::Done)),
    }
    Ok(())
}

static COPY: CommandSpec = CommandSpec {
    name: "copy",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::KEYSPACE,
    keys: &[
        KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS)),
        KeySpec::one(2, KeyFlags::OW.union(KeyFlags::UPDATE)),
    ],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Stores what is under a key under another key as well.",
        since: "6.2.0",
        group: "generic",
        complexity: "O(N) worst case for collections, where N is the number of nested items. O(1) for string values.",
        arguments: &[
            Argument::key("source", 0),
            Argument::key("destination", 1),
            Argument::integer("destination-db").after("DB").optional(),
            Argument::word("replace", "REPLACE").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(copy),
};

fn copy(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (mut space, mut if_taken) = (ctx.ks.space(), IfTaken::Leave);
    let mut at = 3;
    while at < ctx.args.len() {
        if ctx.is_word(at, "replace") {
            if_taken = IfTaken::Replace;
        } else if ctx.is_word(at, "db") && at.saturating_add(1) < ctx.args.len() {
            at = at.saturating_add(1);
            space = keyspace(ctx, at)?;
        } else {
            return Err(error::SYNTAX);
        }
        at = at.saturating_add(1);
    }
    let (from, to) = (ctx.key(1), ctx.key(2).in_space(space));
    let moved = types::generic::copy(ctx.ks, &from, &to, if_taken)?;
    ctx.reply.integer(i64::from(moved == Moved::Done));
    Ok(())
}

static MOVE: CommandSpec = CommandSpec {
    name: "move",
    arity: 3,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Moves a key to another database.",
        since: "1.0.0",
        group: "generic",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::integer("db")],
        ..Docs::NONE
    },
    run: Run::Call(move_key),
};

fn move_key(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let space = keyspace(ctx, 2)?;
    let key = ctx.key(1);
    let moved = types::generic::move_to(ctx.ks, &key, space)?;
    ctx.reply.integer(i64::from(moved == Moved::Done));
    Ok(())
}

/// The keyspace of the database number at `index`.
fn keyspace(ctx: &Ctx<'_>, index: usize) -> Result<KeyspaceId, Stop> {
    let db = ctx.database(index)?;
    ctx.ks.space_of(db).ok_or(error::DB_OUT_OF_RANGE)
}
