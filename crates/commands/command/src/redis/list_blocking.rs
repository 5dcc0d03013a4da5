//! Lists: commands that wait for an element. [`crate::blocking`] explains how waiting works.

use super::list_moving::{Popping, end, move_element};
use crate::error::Stop;
use crate::spec::{Argument, Docs};
use crate::waiting::KeyWait;
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use base::UnixMs;
use engine::Type;
use proto::ReplyBuffer;
use std::ops::Range;
use types::list::{self, End};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&BLPOP, &BRPOP, &BLMOVE, &BRPOPLPUSH, &BLMPOP];

/// Documentation that all rows of this family share.
const fn docs(summary: &'static str, since: &'static str, complexity: &'static str) -> Docs {
    Docs { summary, since, group: "list", complexity, ..Docs::NONE }
}

static BLPOP: CommandSpec = CommandSpec {
    name: "blpop",
    arity: -3,
    flags: Flags::WRITE.union(Flags::BLOCKING),
    categories: Categories::LIST,
    keys: &[KeySpec::range(1, -2, 1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[Argument::key("key", 0).repeated(), Argument::double("timeout")],
        history: &[("6.0.0", "The `timeout` may have a fraction.")],
        ..docs(
            "Takes the first element off the first of several lists that has any, and waits for one if none has.",
            "2.0.0",
            "O(N) where N is the number of provided keys.",
        )
    },
    run: Run::Call(blpop),
};

fn blpop(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    pop_or_wait(ctx, End::Head)
}

static BRPOP: CommandSpec = CommandSpec {
    name: "brpop",
    arity: -3,
    flags: Flags::WRITE.union(Flags::BLOCKING),
    categories: Categories::LIST,
    keys: &[KeySpec::range(1, -2, 1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[Argument::key("key", 0).repeated(), Argument::double("timeout")],
        history: &[("6.0.0", "The `timeout` may have a fraction.")],
        ..docs(
            "Takes the last element off the first of several lists that has any, and waits for one if none has.",
            "2.0.0",
            "O(N) where N is the number of provided keys.",
        )
    },
    run: Run::Call(brpop),
};

fn brpop(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    pop_or_wait(ctx, End::Tail)
}

fn pop_or_wait(ctx: &mut Ctx<'_>, end: End) -> Result<(), Stop> {
    let keys = 1..ctx.args.len().saturating_sub(1);
    let until = ctx.timeout(keys.end)?;
    for index in keys.clone() {
        let key = ctx.key(index);
        let reply = &mut *ctx.reply;
        let shown = list::pop(ctx.ks, &key, end, 1, |_, elements| {
            reply.array(2);
            reply.bulk(key.bytes);
            elements.for_each(|element| reply.bulk(element));
        })?;
        if shown.is_some() {
            return Ok(());
        }
    }
    wait(ctx, keys, until);
    Ok(())
}

/// Waits for one of these keys to be a list.
fn wait(ctx: &mut Ctx<'_>, keys: Range<usize>, until: Option<UnixMs>) {
    let timed_out = ReplyBuffer::null_array;
    ctx.wait_for_keys(KeyWait { keys, kind: Type::List, until, timed_out, when_gone: false, args: None });
}

static BLMOVE: CommandSpec = CommandSpec {
    name: "blmove",
    arity: 6,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::BLOCKING),
    categories: Categories::LIST,
    keys: &[
        KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)),
        KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT)),
    ],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[
            Argument::key("source", 0),
            Argument::key("destination", 1),
            Argument::one_of("wherefrom", &[Argument::word("left", "LEFT"), Argument::word("right", "RIGHT")]),
            Argument::one_of("whereto", &[Argument::word("left", "LEFT"), Argument::word("right", "RIGHT")]),
            Argument::double("timeout"),
        ],
        ..docs(
            "Moves an element from an end of a list to an end of another, and waits for one if there is none.",
            "6.2.0",
            "O(1)",
        )
    },
    run: Run::Call(blmove),
};

fn blmove(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (from, to) = (end(ctx, 3)?, end(ctx, 4)?);
    move_or_wait(ctx, from, to, 5)
}

static BRPOPLPUSH: CommandSpec = CommandSpec {
    name: "brpoplpush",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::BLOCKING),
    categories: Categories::LIST,
    keys: &[
        KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)),
        KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT)),
    ],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[Argument::key("source", 0), Argument::key("destination", 1), Argument::double("timeout")],
        history: &[("6.0.0", "The `timeout` may have a fraction.")],
        ..docs(
            "Moves the last element of a list before the first of another, and waits for one if there is none.",
            "2.2.0",
            "O(1)",
        )
    },
    run: Run::Call(brpoplpush),
};

fn brpoplpush(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    move_or_wait(ctx, End::Tail, End::Head, 3)
}

fn move_or_wait(ctx: &mut Ctx<'_>, from: End, to: End, timeout: usize) -> Result<(), Stop> {
    let until = ctx.timeout(timeout)?;
    if move_element(ctx, from, to)? {
        return Ok(());
    }
    // A transaction gets the null of an element, a wait whose time has come that of an array: so it is in Redis.
    match ctx.session.running {
        Some(_) => ctx.reply.null(),
        None => wait(ctx, 1..2, until),
    }
    Ok(())
}

static BLMPOP: CommandSpec = CommandSpec {
    name: "blmpop",
    arity: -5,
    flags: Flags::WRITE.union(Flags::BLOCKING).union(Flags::MOVABLEKEYS),
    categories: Categories::LIST,
    keys: &[KeySpec::counted(2, 0, 1, 1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[
            Argument::double("timeout"),
            Argument::integer("numkeys"),
            Argument::key("key", 0).repeated(),
            Argument::one_of("where", &[Argument::word("left", "LEFT"), Argument::word("right", "RIGHT")]),
            Argument::integer("count").after("COUNT").optional(),
        ],
        ..docs(
            "Takes elements off the first of several lists that has any, and waits for one if none has.",
            "7.0.0",
            "O(N+M) where N is the number of provided keys and M is the number of elements returned.",
        )
    },
    run: Run::Call(blmpop),
};

fn blmpop(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let popping = Popping::parse(ctx, 2)?;
    let until = ctx.timeout(1)?;
    if !popping.run(ctx)? {
        wait(ctx, popping.keys, until);
    }
    Ok(())
}
