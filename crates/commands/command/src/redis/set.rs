//! Sets, one at a time.

use super::scanning::{self, Found, ScanOptions, Scanned};
use crate::drawing::{Draw, Drawn};
use crate::error::{self, Stop};
use crate::spec::{Argument, Docs, Look};
use crate::work::steps::Work;
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use base::integer::IntegerText;
use engine::{Encoding, Key, SharedBig, Type, Value};
use proto::ReplyBuffer;
use std::ops::Range;
use types::set::{Member, Popped, Popping};
use value::set::View;
use value::{Big, Stored};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] =
    &[&SADD, &SREM, &SMOVE, &SCARD, &SISMEMBER, &SMISMEMBER, &SMEMBERS, &SSCAN, &SPOP, &SRANDMEMBER];

/// Writes a member, as long as the reply has not grown too long.
pub(super) fn reply_member(reply: &mut ReplyBuffer, member: Member<'_>) -> Result<(), Stop> {
    write_member(reply, member);
    error::check_reply(reply)
}

fn write_member(reply: &mut ReplyBuffer, member: Member<'_>) {
    match member {
        Member::Text(text) => reply.bulk(text),
        Member::Integer(integer) => reply.bulk_integer(integer),
    }
}

static SADD: CommandSpec = CommandSpec {
    name: "sadd",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::SET,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Adds members to a set, which is made if it is absent.",
        since: "1.0.0",
        group: "set",
        complexity: "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
        history: &[("2.4.0", "Takes several members.")],
        arguments: &[Argument::key("key", 0), Argument::string("member").repeated()],
        ..Docs::NONE
    },
    run: Run::Call(sadd),
};

fn sadd(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let added = types::set::add(ctx.ks, &key, ctx.args.from(2))?;
    ctx.reply.integer(added as i64);
    Ok(())
}

static SREM: CommandSpec = CommandSpec {
    name: "srem",
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST).union(Flags::FREES),
    categories: Categories::SET,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Removes members from a set, which goes with its last one.",
        since: "1.0.0",
        group: "set",
        complexity: "O(N) where N is the number of members to be removed.",
        history: &[("2.4.0", "Takes several members.")],
        arguments: &[Argument::key("key", 0), Argument::string("member").repeated()],
        ..Docs::NONE
    },
    run: Run::Call(srem),
};

fn srem(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let removed = types::set::remove(ctx.ks, &key, ctx.args.from(2))?;
    ctx.reply.integer(removed as i64);
    Ok(())
}

static SMOVE: CommandSpec = CommandSpec {
    name: "smove",
    arity: 4,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::SET,
    keys: &[
        KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)),
        KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT)),
    ],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Moves a member from one set to another.",
        since: "1.0.0",
        group: "set",
        complexity: "O(1)",
        arguments: &[Argument::key("source", 0), Argument::key("destination", 1), Argument::string("member")],
        ..Docs::NONE
    },
    run: Run::Call(smove),
};

fn smove(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (from, to) = (ctx.key(1), ctx.key(2));
    let moved = types::set::move_member(ctx.ks, &from, &to, &ctx.args[3])?;
    ctx.reply.integer(i64::from(moved));
    Ok(())
}

static SCARD: CommandSpec = CommandSpec {
    name: "scard",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::SET,
    keys: &[KeySpec::one(1, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the number of members in a set.",
        since: "1.0.0",
        group: "set",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Read(scard),
};

fn scard(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let len = types::set::of_entry(look.entry)?.map_or(0, |set| set.len());
    reply.integer(len as i64);
    Ok(())
}

static SISMEMBER: CommandSpec = CommandSpec {
    name: "sismember",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::SET,
    keys: &[KeySpec::one(1, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Tells whether a set has a member.",
        since: "1.0.0",
        group: "set",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::string("member")],
        ..Docs::NONE
    },
    run: Run::Read(sismember),
};

fn sismember(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let set = types::set::of_entry(look.entry)?;
    let is_member = set.is_some_and(|set| set.contains(&look.args[2]));
    reply.integer(i64::from(is_member));
    Ok(())
}

static SMISMEMBER: CommandSpec = CommandSpec {
    name: "smismember",
    arity: -3,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::SET,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Tells of each of several members whether a set has it.",
        since: "6.2.0",
        group: "set",
        complexity: "O(N) where N is the number of elements being checked for membership",
        arguments: &[Argument::key("key", 0), Argument::string("member").repeated()],
        ..Docs::NONE
    },
    run: Run::Read(smismember),
};

fn smismember(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let set = types::set::of_entry(look.entry)?;
    reply.array(look.args.len().saturating_sub(2));
    for member in look.args.from(2) {
        let is_member = set.is_some_and(|set| set.contains(member));
        reply.integer(i64::from(is_member));
    }
    Ok(())
}

static SMEMBERS: CommandSpec = CommandSpec {
    name: "smembers",
    arity: 2,
    flags: Flags::READONLY,
    categories: Categories::SET,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives all members of a set.",
        since: "1.0.0",
        group: "set",
        complexity: "O(N) where N is the set cardinality.",
        tips: &["nondeterministic_output_order"],
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(smembers),
};

fn smembers(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let len = types::set::read(ctx.ks, &key)?.map_or(0, |set| set.len());
    ctx.reply.set(len);
    ctx.reply_elements(&key, 0..len, write_members)
}

/// Writes the members at these places of a set.
pub(super) fn write_members(encoding: Encoding, stored: Stored<'_>, places: Range<usize>, reply: &mut ReplyBuffer) {
    let set = View::of(encoding, stored);
    set.iter_from(places.start).take(places.len()).for_each(|member| write_member(reply, member));
}

static SSCAN: CommandSpec = CommandSpec {
    name: "sscan",
    arity: -3,
    flags: Flags::READONLY,
    categories: Categories::SET,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Walks over the members of a set, a part at each call.",
        since: "2.8.0",
        group: "set",
        complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection.",
        tips: &["nondeterministic_output"],
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("cursor"),
            Argument::pattern("pattern").after("MATCH").optional(),
            Argument::integer("count").after("COUNT").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(sscan),
};

fn sscan(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, cursor) = (ctx.key(1), scanning::cursor(ctx, 2)?);
    let options = ScanOptions::parse(ctx, 3, Scanned::Set);
    let mut found = Found::default();
    let mut next = 0;
    // Of an absent set Valkey does not look at the options.
    if let Some(set) = types::set::read(ctx.ks, &key)? {
        let options = options?;
        next = set.scan(cursor, options.count, &mut |member| {
            let mut room = IntegerText::default();
            let member = member.bytes(&mut room);
            if options.wants(member) {
                found.push(member);
            }
        });
    }
    found.reply(next, ctx.reply);
    Ok(())
}

static SPOP: CommandSpec = CommandSpec {
    name: "spop",
    arity: -2,
    flags: Flags::WRITE.union(Flags::FAST).union(Flags::FREES),
    categories: Categories::SET,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Removes random members from a set and gives them.",
        since: "1.0.0",
        group: "set",
        complexity: "Without the count argument O(1), otherwise O(N) where N is the value of the passed count.",
        history: &[("3.2.0", "Takes `count`.")],
        tips: &["nondeterministic_output"],
        arguments: &[Argument::key("key", 0), Argument::integer("count").since("3.2.0").optional()],
        ..Docs::NONE
    },
    run: Run::Call(spop),
};

fn spop(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let count = match ctx.args.len() {
        2 => None,
        3 => Some(ctx.integer(2).ok().and_then(|count| u64::try_from(count).ok()).ok_or(error::NOT_POSITIVE)?),
        _ => return Err(error::SYNTAX),
    };
    let reply = &mut *ctx.reply;
    let Some(count) = count else {
        if !types::set::pop_one(ctx.ks, &key, &mut |member| reply_member(reply, member))? {
            ctx.reply.null();
        }
        return Ok(());
    };
    if count >= TREE_COUNT_MIN && pop_many(ctx, &key, count)? {
        return Ok(());
    }
    let reply = &mut *ctx.reply;
    let (open, mut popped) = (reply.begin_set(), 0usize);
    types::set::pop(ctx.ks, &key, count, &mut |member| {
        popped = popped.saturating_add(1);
        reply_member(reply, member)
    })?;
    reply.end(open, popped);
    Ok(())
}

/// When at least this many members of a tree are chosen, they are chosen in steps.
const TREE_COUNT_MIN: u64 = 512;

/// The tree under the key, shared, if what is there is a big set. Leaves no trace.
fn peek_tree(ctx: &mut Ctx<'_>, key: &Key<'_>) -> Result<Option<SharedBig>, Stop> {
    let entry = ctx.ks.peek(key)?.filter(|entry| entry.kind == Type::Set);
    Ok(entry.and_then(|entry| if let Value::Big(tree) = entry.value { Some(tree.clone()) } else { None }))
}

/// What members are drawn from, if it is a set and not one that is gone through at once. Leaves no trace.
fn drawn(ctx: &mut Ctx<'_>, key: &Key<'_>, draw: Draw) -> Result<Option<Drawn>, Stop> {
    let entry = ctx.ks.peek_value(key)?.filter(|entry| entry.kind == Type::Set);
    Ok(entry.and_then(|entry| Drawn::of(&entry, draw)))
}

/// Pops many members of a tree: they are chosen beforehand, and written in pieces. False, and nothing is done, when
/// they are to be popped at once.
fn pop_many(ctx: &mut Ctx<'_>, key: &Key<'_>, count: u64) -> Result<bool, Stop> {
    let Some(tree) = peek_tree(ctx, key)? else { return Ok(false) };
    let len = View::of(Encoding::BIG, Stored::Big(&tree)).len();
    let is_recorded = ctx.ks.is_recorded();
    let popped = if count >= len as u64 {
        types::set::pop_all(ctx.ks, key);
        tree
    } else if let Some(mut popping) =
        ctx.take_work::<Popping>().filter(|popping| popping.is_of(&tree, count, is_recorded))
    {
        let Popped { rest, popped, changes } = popping.take();
        drop(tree);
        types::set::pop_made(ctx.ks, key, rest, &changes);
        SharedBig::new(Big::Set(popped))
    } else if ctx.may_begin_work()
        && let Some(popping) = Popping::begin(&tree, count, types::set::generator(ctx.ks), is_recorded)
    {
        return Err(ctx.begin_work(popping));
    } else {
        return Ok(false);
    };
    let len = View::of(Encoding::BIG, Stored::Big(&popped)).len();
    ctx.reply.set(len);
    ctx.reply_tree(popped, 0..len, write_members)?;
    Ok(true)
}

impl Work for Popping {
    fn step(&mut self) -> bool {
        Self::step(self)
    }

    fn held_bytes(&self) -> usize {
        Self::held_bytes(self)
    }
}

static SRANDMEMBER: CommandSpec = CommandSpec {
    name: "srandmember",
    arity: -2,
    flags: Flags::READONLY,
    categories: Categories::SET,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives random members of a set.",
        since: "1.0.0",
        group: "set",
        complexity: "Without the count argument O(1), otherwise O(N) where N is the absolute value of the passed count.",
        history: &[("2.6.0", "Takes `count`.")],
        tips: &["nondeterministic_output"],
        arguments: &[Argument::key("key", 0), Argument::integer("count").since("2.6.0").optional()],
        ..Docs::NONE
    },
    run: Run::Call(srandmember),
};

const NOT_NEGATABLE: Stop =
    Stop::error("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");

fn srandmember(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let count = match ctx.args.len() {
        2 => None,
        3 => Some(ctx.integer(2)?),
        _ => return Err(error::SYNTAX),
    };
    if count == Some(i64::MIN) {
        return Err(NOT_NEGATABLE);
    }
    let reply = &mut *ctx.reply;
    let Some(count) = count else {
        if !types::set::random_repeating(ctx.ks, &key, 1, &mut |member| reply_member(reply, member))? {
            ctx.reply.null();
        }
        return Ok(());
    };
    if count.unsigned_abs() >= TREE_COUNT_MIN
        && let Some(drawn) = drawn(ctx, &key, Draw::of(count))?
    {
        let len = types::set::read(ctx.ks, &key)?.map_or(0, |set| set.len()) as u64;
        return ctx.reply_drawn(drawn, len, Draw::of(count), 1, |encoding, stored, place, reply| {
            View::of(encoding, stored).at(place).into_iter().for_each(|member| write_member(reply, member));
        });
    }
    let reply = &mut *ctx.reply;
    let (open, mut shown) = (reply.begin_array(), 0usize);
    let mut show = |member: Member<'_>| {
        shown = shown.saturating_add(1);
        reply_member(reply, member)
    };
    if count >= 0 {
        types::set::random(ctx.ks, &key, count as u64, &mut show)?;
    } else {
        types::set::random_repeating(ctx.ks, &key, count.unsigned_abs(), &mut show)?;
    }
    reply.end(open, shown);
    Ok(())
}
