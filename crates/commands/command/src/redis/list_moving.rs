//! Lists: elements that move to another list, or are taken off the first of several.

use super::list::show;
use super::list_long;
use crate::error::{self, Stop};
use crate::spec::{Argument, Docs};
use crate::{Args, Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use base::integer::parse_integer;
use proto::ReplyBuffer;
use std::ops::Range;
use types::list::{self, End};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&LMOVE, &RPOPLPUSH, &LMPOP];

/// Documentation that all rows of this family share.
const fn docs(summary: &'static str, since: &'static str, complexity: &'static str) -> Docs {
    Docs { summary, since, group: "list", complexity, ..Docs::NONE }
}

static LMOVE: CommandSpec = CommandSpec {
    name: "lmove",
    arity: 5,
    flags: Flags::WRITE.union(Flags::DENYOOM),
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
        ],
        ..docs("Moves an element from an end of a list to an end of another, and gives it.", "6.2.0", "O(1)")
    },
    run: Run::Call(lmove),
};

fn lmove(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (from, to) = (end(ctx, 3)?, end(ctx, 4)?);
    move_or_null(ctx, from, to)
}

static RPOPLPUSH: CommandSpec = CommandSpec {
    name: "rpoplpush",
    arity: 3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::LIST,
    keys: &[
        KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)),
        KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT)),
    ],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[Argument::key("source", 0), Argument::key("destination", 1)],
        ..docs("Moves the last element of a list before the first of another, and gives it.", "1.2.0", "O(1)")
    },
    run: Run::Call(rpoplpush),
};

fn rpoplpush(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    move_or_null(ctx, End::Tail, End::Head)
}

fn move_or_null(ctx: &mut Ctx<'_>, from: End, to: End) -> Result<(), Stop> {
    if !move_element(ctx, from, to)? {
        ctx.reply.null();
    }
    Ok(())
}

/// Moves an element from the list in the first argument to the one in the second and replies it; false when there is
/// none.
pub(super) fn move_element(ctx: &mut Ctx<'_>, from: End, to: End) -> Result<bool, Stop> {
    let (source, destination) = (ctx.key(1), ctx.key(2));
    let reply = &mut *ctx.reply;
    let moved = list::move_element(ctx.ks, (&source, from), (&destination, to), |element| reply.bulk(element))?;
    Ok(moved.is_some())
}

/// The end of a list that the argument at `index` names.
pub(super) fn end(ctx: &Ctx<'_>, index: usize) -> Result<End, Stop> {
    match () {
        () if ctx.is_word(index, "left") => Ok(End::Head),
        () if ctx.is_word(index, "right") => Ok(End::Tail),
        () => Err(error::SYNTAX),
    }
}

static LMPOP: CommandSpec = CommandSpec {
    name: "lmpop",
    arity: -4,
    flags: Flags::WRITE.union(Flags::MOVABLEKEYS).union(Flags::FREES),
    categories: Categories::LIST,
    keys: &[KeySpec::counted(1, 0, 1, 1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[
            Argument::integer("numkeys"),
            Argument::key("key", 0).repeated(),
            Argument::one_of("where", &[Argument::word("left", "LEFT"), Argument::word("right", "RIGHT")]),
            Argument::integer("count").after("COUNT").optional(),
        ],
        ..docs(
            "Takes elements off the first of several lists that has any.",
            "7.0.0",
            "O(N+M) where N is the number of provided keys and M is the number of elements returned.",
        )
    },
    run: Run::Call(lmpop),
};

fn lmpop(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let popping = Popping::parse(ctx, 1)?;
    if !popping.run(ctx)? {
        ctx.reply.null_array();
    }
    Ok(())
}

/// What LMPOP and BLMPOP take off which lists.
pub(super) struct Popping {
    /// The arguments that are the keys.
    pub(super) keys: Range<usize>,
    end: End,
    count: u64,
}

impl Popping {
    /// From the number of keys at `index` on.
    pub(super) fn parse(ctx: &Ctx<'_>, index: usize) -> Result<Self, Stop> {
        const NO_KEYS: Stop = Stop::error("ERR numkeys should be greater than 0");
        const NO_COUNT: Stop = Stop::error("ERR count should be greater than 0");
        let count = positive(&ctx.args, index).ok_or(NO_KEYS)?;
        let first = index.saturating_add(1);
        let last = usize::try_from(count).ok().and_then(|count| first.checked_add(count));
        let at = last.filter(|at| *at < ctx.args.len()).ok_or(error::SYNTAX)?;
        let end = end(ctx, at)?;
        let options = at.saturating_add(1);
        let count = match ctx.args.len().saturating_sub(options) {
            0 => 1,
            given @ 2.. if ctx.is_word(options, "count") => {
                let count = positive(&ctx.args, options.saturating_add(1)).ok_or(NO_COUNT)?;
                if given > 2 {
                    return Err(error::SYNTAX);
                }
                count
            }
            _ => return Err(error::SYNTAX),
        };
        Ok(Self { keys: first..at, end, count })
    }

    /// Replies the first key that has elements, and those; false when none has.
    pub(super) fn run(&self, ctx: &mut Ctx<'_>) -> Result<bool, Stop> {
        for index in self.keys.clone() {
            let key = ctx.key(index);
            let write_header = |reply: &mut ReplyBuffer| {
                reply.array(2);
                reply.bulk(key.bytes);
            };
            if list_long::pop(ctx, &key, self.end, self.count, write_header)? {
                return Ok(true);
            }
            let reply = &mut *ctx.reply;
            let shown = list::pop(ctx.ks, &key, self.end, self.count, |count, elements| {
                write_header(reply);
                show(reply, count, elements);
            })?;
            if shown.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The argument at `index` as a positive number.
fn positive(args: &Args<'_>, index: usize) -> Option<u64> {
    parse_integer(&args[index]).and_then(|number| u64::try_from(number).ok()).filter(|number| *number > 0)
}
