//! Taking members from the ends of sorted sets, and waiting for them: see [`crate::blocking`].

use super::zset_reply;
use crate::error::{self, Stop};
use crate::spec::{Argument, Docs};
use crate::waiting::KeyWait;
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use base::UnixMs;
use engine::{Key, Type};
use proto::{Protocol, ReplyBuffer};
use std::ops::Range;
use types::zset::{End, Entry, View};
use value::Stored;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&ZPOPMIN, &ZPOPMAX, &ZMPOP, &BZPOPMIN, &BZPOPMAX, &BZMPOP];

const POPPED: KeyFlags = KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE);
const POP_COMPLEXITY: &str =
    "O(log(N)*M) with N being the number of elements in the sorted set, and M being the number of elements popped.";
const POP_ARGUMENTS: &[Argument] = &[Argument::key("key", 0), Argument::integer("count").optional()];

static ZPOPMIN: CommandSpec = CommandSpec {
    name: "zpopmin",
    arity: -2,
    flags: Flags::WRITE.union(Flags::FAST).union(Flags::FREES),
    categories: Categories::SORTED_SET,
    keys: &[KeySpec::one(1, POPPED)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Takes the members with the lowest scores out and gives them.",
        since: "5.0.0",
        group: "sorted-set",
        complexity: POP_COMPLEXITY,
        arguments: POP_ARGUMENTS,
        ..Docs::NONE
    },
    run: Run::Call(|ctx| pop(ctx, End::Min)),
};

static ZPOPMAX: CommandSpec = CommandSpec {
    name: "zpopmax",
    arity: -2,
    flags: Flags::WRITE.union(Flags::FAST).union(Flags::FREES),
    categories: Categories::SORTED_SET,
    keys: &[KeySpec::one(1, POPPED)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Takes the members with the highest scores out and gives them.",
        since: "5.0.0",
        group: "sorted-set",
        complexity: POP_COMPLEXITY,
        arguments: POP_ARGUMENTS,
        ..Docs::NONE
    },
    run: Run::Call(|ctx| pop(ctx, End::Max)),
};

fn pop(ctx: &mut Ctx<'_>, end: End) -> Result<(), Stop> {
    if ctx.args.len() > 3 {
        return Err(error::SYNTAX);
    }
    let has_count = ctx.args.len() == 3;
    let count = if has_count {
        let number = types::string::parse_integer(&ctx.args[2]).and_then(|number| u64::try_from(number).ok());
        number.ok_or(Stop::error("ERR value is out of range, must be positive"))?
    } else {
        1
    };
    let key = ctx.key(1);
    let write_row = |reply: &mut ReplyBuffer, entry: &Entry<'_>| zset_reply::row(reply, true, entry);
    if pop_prepared(ctx, &key, end, count, |reply, count| zset_reply::header(reply, count, true), write_row)? {
        return Ok(());
    }
    let reply = &mut *ctx.reply;
    // One member without a count is never in a pair.
    let in_pairs = has_count && reply.protocol() == Protocol::Resp3;
    let is_there = types::zset::pop(ctx.ks, &key, end, count, |count, entries| {
        if in_pairs {
            reply.array(count as usize);
        } else {
            reply.array(count.saturating_mul(2) as usize);
        }
        for entry in entries {
            if in_pairs {
                reply.array(2);
            }
            reply.bulk(entry.member);
            reply.double(entry.score);
        }
    })?;
    if !is_there {
        ctx.reply.array(0);
    }
    Ok(())
}

/// When at least this many members are popped from a tree, that happens in steps before the command runs.
const PREPARED_MIN: u64 = 512;

/// Takes many members from an end of a tree: its version without them is made beforehand, and they are written in
/// pieces of the version before. False, and nothing is done, when they are to be taken at once.
fn pop_prepared(
    ctx: &mut Ctx<'_>,
    key: &Key<'_>,
    end: End,
    count: u64,
    write_header: impl FnOnce(&mut ReplyBuffer, u64),
    write_row: impl Fn(&mut ReplyBuffer, &Entry<'_>) + Send + 'static,
) -> Result<bool, Stop> {
    if count < PREPARED_MIN || !ctx.may_reply_in_pieces() {
        return Ok(false);
    }
    let Some(tree) = super::zset::peek_tree(ctx, key)? else { return Ok(false) };
    let len = View::of(Stored::Big(&tree)).len();
    let count = count.min(len);
    let (ranks, event) = match end {
        End::Min => (0..count, "zpopmin"),
        End::Max => (len.saturating_sub(count)..len, "zpopmax"),
    };
    let removing = super::zset_ranges::removing(ctx, tree.clone(), &ranks)?;
    match removing {
        Some(removing) => types::zset::remove_ranks_made(ctx.ks, key, *removing, event),
        // All of them go, which takes no time.
        None if count == len => types::zset::remove_all(ctx.ks, key, event),
        None => return Ok(false),
    }
    write_header(ctx.reply, count);
    let last = ranks.end.saturating_sub(1);
    ctx.reply_tree(tree, 0..count as usize, move |_, stored, places, reply| {
        let (view, from) = (View::of(stored), places.start as u64);
        match end {
            End::Min => view.forward(from).take(places.len()).for_each(|entry| write_row(reply, &entry)),
            End::Max => {
                let entries = view.backward(last.saturating_sub(from)).take(places.len());
                entries.for_each(|entry| write_row(reply, &entry));
            }
        }
    })?;
    Ok(true)
}

static ZMPOP: CommandSpec = CommandSpec {
    name: "zmpop",
    arity: -4,
    flags: Flags::WRITE.union(Flags::MOVABLEKEYS).union(Flags::FREES),
    categories: Categories::SORTED_SET,
    keys: &[KeySpec::counted(1, 0, 1, 1, POPPED)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Takes members from an end of the first of several sorted sets that is there, and gives them.",
        since: "7.0.0",
        group: "sorted-set",
        complexity: "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in the sorted set, and M being the number of elements popped.",
        arguments: &[
            Argument::integer("numkeys"),
            Argument::key("key", 0).repeated(),
            Argument::one_of("where", &[Argument::word("min", "MIN"), Argument::word("max", "MAX")]),
            Argument::integer("count").after("COUNT").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(zmpop),
};

/// What ZMPOP takes.
struct FirstPop {
    /// Arguments that are keys.
    keys: Range<usize>,
    end: End,
    count: u64,
}

impl FirstPop {
    /// From the arguments, the number of keys at `numkeys` and all that follows.
    fn parse(ctx: &Ctx<'_>, numkeys: usize) -> Result<Self, Stop> {
        let positive = |index: usize, what: &'static str| {
            let number = types::string::parse_integer(&ctx.args[index]).and_then(|number| u64::try_from(number).ok());
            number.filter(|number| *number > 0).ok_or(Stop::error(what))
        };
        let keys = positive(numkeys, "ERR numkeys should be greater than 0")?;
        let first = numkeys.saturating_add(1);
        let after = usize::try_from(keys).unwrap_or(usize::MAX).saturating_add(first);
        let end = match ctx.args.bytes(after) {
            Some(word) if word.eq_ignore_ascii_case(b"min") => End::Min,
            Some(word) if word.eq_ignore_ascii_case(b"max") => End::Max,
            _ => return Err(error::SYNTAX),
        };
        let count_at = after.saturating_add(2);
        let count = match ctx.args.len().saturating_sub(after) {
            1 => 1,
            3.. if ctx.is_word(after.saturating_add(1), "count") => {
                let count = positive(count_at, "ERR count should be greater than 0")?;
                if ctx.args.len() > count_at.saturating_add(1) {
                    return Err(error::SYNTAX);
                }
                count
            }
            _ => return Err(error::SYNTAX),
        };
        Ok(Self { keys: first..after, end, count })
    }
}

impl FirstPop {
    /// Pops from the first key that is there; false, and no reply, when none is.
    fn run(&self, ctx: &mut Ctx<'_>) -> Result<bool, Stop> {
        for index in self.keys.clone() {
            let key = ctx.key(index);
            let write_header = |reply: &mut ReplyBuffer, count: u64| {
                reply.array(2);
                reply.bulk(key.bytes);
                reply.array(count as usize);
            };
            if pop_prepared(ctx, &key, self.end, self.count, write_header, zset_reply::pair)? {
                return Ok(true);
            }
            let reply = &mut *ctx.reply;
            let mut written = Ok(());
            let is_there = types::zset::pop(ctx.ks, &key, self.end, self.count, |count, entries| {
                reply.array(2);
                reply.bulk(key.bytes);
                written = zset_reply::pairs(reply, count, entries);
            })?;
            written?;
            if is_there {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn zmpop(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if !FirstPop::parse(ctx, 1)?.run(ctx)? {
        ctx.reply.null_array();
    }
    Ok(())
}

const WAIT_HISTORY: &[(&str, &str)] = &[("6.0.0", "The `timeout` may have a fraction.")];
const WAIT_ARGUMENTS: &[Argument] = &[Argument::key("key", 0).repeated(), Argument::double("timeout")];

static BZPOPMIN: CommandSpec = CommandSpec {
    name: "bzpopmin",
    arity: -3,
    flags: Flags::WRITE.union(Flags::BLOCKING).union(Flags::FAST),
    categories: Categories::SORTED_SET,
    keys: &[KeySpec::range(1, -2, 1, POPPED)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Takes the member with the lowest score out of the first sorted set that is there, and waits if none is.",
        since: "5.0.0",
        group: "sorted-set",
        complexity: "O(log(N)) with N being the number of elements in the sorted set.",
        history: WAIT_HISTORY,
        arguments: WAIT_ARGUMENTS,
        ..Docs::NONE
    },
    run: Run::Call(|ctx| pop_or_wait(ctx, End::Min)),
};

static BZPOPMAX: CommandSpec = CommandSpec {
    name: "bzpopmax",
    arity: -3,
    flags: Flags::WRITE.union(Flags::BLOCKING).union(Flags::FAST),
    categories: Categories::SORTED_SET,
    keys: &[KeySpec::range(1, -2, 1, POPPED)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Takes the member with the highest score out of the first sorted set that is there, and waits if none is.",
        since: "5.0.0",
        group: "sorted-set",
        complexity: "O(log(N)) with N being the number of elements in the sorted set.",
        history: WAIT_HISTORY,
        arguments: WAIT_ARGUMENTS,
        ..Docs::NONE
    },
    run: Run::Call(|ctx| pop_or_wait(ctx, End::Max)),
};

fn pop_or_wait(ctx: &mut Ctx<'_>, end: End) -> Result<(), Stop> {
    let keys = 1..ctx.args.len().saturating_sub(1);
    let until = ctx.timeout(keys.end)?;
    for index in keys.clone() {
        let key = ctx.key(index);
        let reply = &mut *ctx.reply;
        let is_there = types::zset::pop(ctx.ks, &key, end, 1, |_, entries| {
            reply.array(3);
            reply.bulk(key.bytes);
            for entry in entries {
                reply.bulk(entry.member);
                reply.double(entry.score);
            }
        })?;
        if is_there {
            return Ok(());
        }
    }
    wait(ctx, keys, until);
    Ok(())
}

/// Waits for one of these keys to be a sorted set.
fn wait(ctx: &mut Ctx<'_>, keys: Range<usize>, until: Option<UnixMs>) {
    let timed_out = ReplyBuffer::null_array;
    ctx.wait_for_keys(KeyWait { keys, kind: Type::Zset, until, timed_out, when_gone: false, args: None });
}

static BZMPOP: CommandSpec = CommandSpec {
    name: "bzmpop",
    arity: -5,
    flags: Flags::WRITE.union(Flags::BLOCKING).union(Flags::MOVABLEKEYS),
    categories: Categories::SORTED_SET,
    keys: &[KeySpec::counted(2, 0, 1, 1, POPPED)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Takes members from an end of the first of several sorted sets that is there, and waits if none is.",
        since: "7.0.0",
        group: "sorted-set",
        complexity: "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in the sorted set, and M being the number of elements popped.",
        arguments: &[
            Argument::double("timeout"),
            Argument::integer("numkeys"),
            Argument::key("key", 0).repeated(),
            Argument::one_of("where", &[Argument::word("min", "MIN"), Argument::word("max", "MAX")]),
            Argument::integer("count").after("COUNT").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(bzmpop),
};

fn bzmpop(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let asked = FirstPop::parse(ctx, 2)?;
    let until = ctx.timeout(1)?;
    if !asked.run(ctx)? {
        wait(ctx, asked.keys, until);
    }
    Ok(())
}
