//! Sorted sets: members and their scores.

use super::scanning::{Found, ScanOptions, Scanned, cursor};
use super::zset_reply;
use crate::drawing;
use crate::error::{self, Stop};
use crate::spec::{Argument, Docs, Look};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use base::double::DoubleText;
use engine::{Key, SharedBig, Type, Value};
use proto::{Protocol, ReplyBuffer};
use types::zset::{Draw, Entry, Only, Rule, Toward, View};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] =
    &[&ZADD, &ZINCRBY, &ZCARD, &ZSCORE, &ZMSCORE, &ZRANK, &ZREVRANK, &ZREM, &ZRANDMEMBER, &ZSCAN];

/// When at least this many members of a tree are drawn, they are drawn in pieces.
const DRAWN_AT_ONCE_MAX: u64 = 512;

/// The key of a command that reads one sorted set.
pub(super) const READ_KEY: KeySpec = KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS));

static ZADD: CommandSpec = CommandSpec {
    name: "zadd",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::SORTED_SET,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Puts members into a sorted set, or gives those that are there another score.",
        since: "1.2.0",
        group: "sorted-set",
        complexity: "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
        history: &[
            ("2.4.0", "Takes several members."),
            ("3.0.2", "Takes `XX`, `NX`, `CH` and `INCR`."),
            ("6.2.0", "Takes `GT` and `LT`."),
        ],
        arguments: &[
            Argument::key("key", 0),
            Argument::one_of("condition", &[Argument::word("nx", "NX"), Argument::word("xx", "XX")])
                .since("3.0.2")
                .optional(),
            Argument::one_of("comparison", &[Argument::word("gt", "GT"), Argument::word("lt", "LT")])
                .since("6.2.0")
                .optional(),
            Argument::word("change", "CH").since("3.0.2").optional(),
            Argument::word("increment", "INCR").since("3.0.2").optional(),
            Argument::block("data", &[Argument::double("score"), Argument::string("member")]).repeated(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(zadd),
};

/// ZADD's options.
#[derive(Default)]
struct AddOptions {
    rule: Rule,
    counts_updated: bool,
    increments: bool,
    /// Where the first score stands.
    scores_from: usize,
    /// How many members there are.
    members: usize,
}

impl AddOptions {
    fn parse(ctx: &Ctx<'_>) -> Result<Self, Stop> {
        let mut options = Self { scores_from: 2, ..Self::default() };
        let [mut nx, mut xx, mut gt, mut lt] = [false; 4];
        let is = |at: usize, word: &str| ctx.is_word(at, word);
        loop {
            let at = options.scores_from;
            if is(at, "nx") {
                nx = true;
            } else if is(at, "xx") {
                xx = true;
            } else if is(at, "gt") {
                gt = true;
            } else if is(at, "lt") {
                lt = true;
            } else if is(at, "ch") {
                options.counts_updated = true;
            } else if is(at, "incr") {
                options.increments = true;
            } else {
                break;
            }
            options.scores_from = at.saturating_add(1);
        }
        let left = ctx.args.len().saturating_sub(options.scores_from);
        options.members = left / 2;
        if left == 0 || left % 2 == 1 {
            return Err(error::SYNTAX);
        }
        if nx && xx {
            return Err(Stop::error("ERR XX and NX options at the same time are not compatible"));
        }
        if ((gt || lt) && nx) || (gt && lt) {
            return Err(Stop::error("ERR GT, LT, and/or NX options at the same time are not compatible"));
        }
        if options.increments && options.members > 1 {
            return Err(Stop::error("ERR INCR option supports a single increment-element pair"));
        }
        options.rule.only = match (nx, xx) {
            (true, _) => Only::New,
            (_, true) => Only::Existing,
            _ => Only::Any,
        };
        options.rule.toward = match (gt, lt) {
            (true, _) => Some(Toward::Greater),
            (_, true) => Some(Toward::Less),
            _ => None,
        };
        Ok(options)
    }
}

/// The score in the argument at `index`, and the member after it.
fn entry<'a>(ctx: &Ctx<'a>, index: usize) -> Result<Entry<'a>, Stop> {
    let score = types::zset::parse_score(&ctx.args[index]).ok_or(error::NOT_FLOAT)?;
    Ok(Entry { score, member: ctx.args.bytes(index.saturating_add(1)).unwrap_or_default() })
}

fn zadd(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let options = AddOptions::parse(ctx)?;
    let first = entry(ctx, options.scores_from)?;
    if options.increments {
        return reply_incremented(ctx, options.rule, first);
    }
    let key = ctx.key(1);
    let outcome = if options.members == 1 {
        types::zset::add(ctx.ks, &key, options.rule, &[first])?
    } else {
        let indices = (options.scores_from..ctx.args.len()).step_by(2);
        let entries: Vec<Entry<'_>> = indices.map(|index| entry(ctx, index)).collect::<Result<_, _>>()?;
        types::zset::add(ctx.ks, &key, options.rule, &entries)?
    };
    let updated = if options.counts_updated { outcome.updated } else { 0 };
    ctx.reply.integer(outcome.added.saturating_add(updated) as i64);
    Ok(())
}

fn reply_incremented(ctx: &mut Ctx<'_>, rule: Rule, by: Entry<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    match types::zset::increment(ctx.ks, &key, rule, by.score, by.member)? {
        Some(score) => ctx.reply.double(score),
        None => ctx.reply.null(),
    }
    Ok(())
}

static ZINCRBY: CommandSpec = CommandSpec {
    name: "zincrby",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::SORTED_SET,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Adds to the score of a member, which is zero if the member is not there.",
        since: "1.2.0",
        group: "sorted-set",
        complexity: "O(log(N)) where N is the number of elements in the sorted set.",
        arguments: &[Argument::key("key", 0), Argument::integer("increment"), Argument::string("member")],
        ..Docs::NONE
    },
    run: Run::Call(zincrby),
};

fn zincrby(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let by = entry(ctx, 2)?;
    reply_incremented(ctx, Rule::default(), by)
}

static ZCARD: CommandSpec = CommandSpec {
    name: "zcard",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::SORTED_SET,
    keys: &[KeySpec::one(1, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Counts the members of a sorted set.",
        since: "1.2.0",
        group: "sorted-set",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Read(zcard),
};

fn zcard(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let len = types::zset::of_entry(look.entry)?.map_or(0, |set| set.len());
    reply.integer(len as i64);
    Ok(())
}

static ZSCORE: CommandSpec = CommandSpec {
    name: "zscore",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::SORTED_SET,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the score of a member.",
        since: "1.2.0",
        group: "sorted-set",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::string("member")],
        ..Docs::NONE
    },
    run: Run::Read(zscore),
};

fn zscore(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    match types::zset::of_entry(look.entry)?.and_then(|set| set.score(&look.args[2])) {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
    Ok(())
}

static ZMSCORE: CommandSpec = CommandSpec {
    name: "zmscore",
    arity: -3,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::SORTED_SET,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the scores of several members.",
        since: "6.2.0",
        group: "sorted-set",
        complexity: "O(N) where N is the number of members being requested.",
        arguments: &[Argument::key("key", 0), Argument::string("member").repeated()],
        ..Docs::NONE
    },
    run: Run::Read(zmscore),
};

fn zmscore(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let set = types::zset::of_entry(look.entry)?;
    reply.array(look.args.len().saturating_sub(2));
    for member in look.args.from(2) {
        match set.and_then(|set| set.score(member)) {
            Some(score) => reply.double(score),
            None => reply.null(),
        }
    }
    Ok(())
}

const RANK_ARGUMENTS: &[Argument] =
    &[Argument::key("key", 0), Argument::string("member"), Argument::word("withscore", "WITHSCORE").optional()];
const RANK_HISTORY: &[(&str, &str)] = &[("7.2.0", "Takes `WITHSCORE`.")];

static ZRANK: CommandSpec = CommandSpec {
    name: "zrank",
    arity: -3,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::SORTED_SET,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Tells how many members stand before one, the lowest score first.",
        since: "2.0.0",
        group: "sorted-set",
        complexity: "O(log(N))",
        history: RANK_HISTORY,
        arguments: RANK_ARGUMENTS,
        ..Docs::NONE
    },
    run: Run::Read(zrank),
};

static ZREVRANK: CommandSpec = CommandSpec {
    name: "zrevrank",
    arity: -3,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::SORTED_SET,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Tells how many members stand before one, the highest score first.",
        since: "2.0.0",
        group: "sorted-set",
        complexity: "O(log(N))",
        history: RANK_HISTORY,
        arguments: RANK_ARGUMENTS,
        ..Docs::NONE
    },
    run: Run::Read(zrevrank),
};

fn zrank(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    rank(look, reply, (ZRANK.name, false))
}

fn zrevrank(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    rank(look, reply, (ZREVRANK.name, true))
}

fn rank(look: &Look<'_>, reply: &mut ReplyBuffer, (name, is_reversed): (&str, bool)) -> Result<(), Stop> {
    let args = &look.args;
    let with_score = args.len() > 3;
    if args.len() > 4 {
        return Err(error::wrong_arity(name));
    }
    if with_score && !args[3].eq_ignore_ascii_case(b"withscore") {
        return Err(error::SYNTAX);
    }
    let set = types::zset::of_entry(look.entry)?;
    let found = set.and_then(|set| Some((set.len(), set.rank(&args[2])?)));
    match found {
        None if with_score => reply.null_array(),
        None => reply.null(),
        Some((len, (rank, score))) => {
            let rank = if is_reversed { len.saturating_sub(rank).saturating_sub(1) } else { rank };
            if with_score {
                reply.array(2);
            }
            reply.integer(rank as i64);
            if with_score {
                reply.double(score);
            }
        }
    }
    Ok(())
}

static ZREM: CommandSpec = CommandSpec {
    name: "zrem",
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST).union(Flags::FREES),
    categories: Categories::SORTED_SET,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Takes members out of a sorted set; with the last one the key goes.",
        since: "1.2.0",
        group: "sorted-set",
        complexity: "O(M*log(N)) with N being the number of elements in the sorted set and M the number of elements to be removed.",
        history: &[("2.4.0", "Takes several members.")],
        arguments: &[Argument::key("key", 0), Argument::string("member").repeated()],
        ..Docs::NONE
    },
    run: Run::Call(zrem),
};

fn zrem(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let removed = types::zset::remove(ctx.ks, &key, ctx.args.from(2))?;
    ctx.reply.integer(removed as i64);
    Ok(())
}

/// The tree under the key, shared, if what is there is a big sorted set. Leaves no trace.
pub(super) fn peek_tree(ctx: &mut Ctx<'_>, key: &Key<'_>) -> Result<Option<SharedBig>, Stop> {
    let entry = ctx.ks.peek(key)?.filter(|entry| entry.kind == Type::Zset);
    Ok(entry.and_then(|entry| if let Value::Big(tree) = entry.value { Some(tree.clone()) } else { None }))
}

static ZRANDMEMBER: CommandSpec = CommandSpec {
    name: "zrandmember",
    arity: -2,
    flags: Flags::READONLY,
    categories: Categories::SORTED_SET,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives members chosen at random.",
        since: "6.2.0",
        group: "sorted-set",
        complexity: "O(N) where N is the number of members returned",
        tips: &["nondeterministic_output"],
        arguments: &[
            Argument::key("key", 0),
            Argument::block(
                "options",
                &[Argument::integer("count"), Argument::word("withscores", "WITHSCORES").optional()],
            )
            .optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(zrandmember),
};

/// What members are drawn from, if it is a sorted set and not one that is gone through at once. Leaves no trace.
fn drawn(ctx: &mut Ctx<'_>, key: &Key<'_>, draw: drawing::Draw) -> Result<Option<drawing::Drawn>, Stop> {
    let entry = ctx.ks.peek_value(key)?.filter(|entry| entry.kind == Type::Zset);
    Ok(entry.and_then(|entry| drawing::Drawn::of(&entry, draw)))
}

fn zrandmember(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    if ctx.args.len() == 2 {
        let reply = &mut *ctx.reply;
        let is_there = types::zset::random(ctx.ks, &key, Draw::Distinct(1), |_, entries| {
            entries.for_each(|entry| reply.bulk(entry.member));
        })?;
        if !is_there {
            ctx.reply.null();
        }
        return Ok(());
    }
    let count = ctx.integer(2)?;
    if count == i64::MIN {
        return Err(Stop::error(
            "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        ));
    }
    let with_scores = ctx.args.len() > 3;
    if ctx.args.len() > 4 || (with_scores && !ctx.is_word(3, "withscores")) {
        return Err(error::SYNTAX);
    }
    if with_scores && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2 {
        return Err(Stop::error("ERR value is out of range"));
    }
    if count.unsigned_abs() >= DRAWN_AT_ONCE_MAX
        && let Some(drawn) = drawn(ctx, &key, drawing::Draw::of(count))?
    {
        let len = types::zset::read(ctx.ks, &key)?.map_or(0, |view| view.len());
        let parts = if with_scores && ctx.reply.protocol() != Protocol::Resp3 { 2 } else { 1 };
        return ctx.reply_drawn(drawn, len, drawing::Draw::of(count), parts, move |_, stored, place, reply| {
            let entry = View::of(stored).at(place as u64);
            entry.into_iter().for_each(|entry| zset_reply::row(reply, with_scores, &entry));
        });
    }
    let draw = if count < 0 { Draw::Repeated(count.unsigned_abs()) } else { Draw::Distinct(count.unsigned_abs()) };
    let reply = &mut *ctx.reply;
    let mut written = Ok(());
    let is_there = types::zset::random(ctx.ks, &key, draw, |count, entries| {
        written = zset_reply::entries(reply, count, with_scores, entries);
    })?;
    if !is_there {
        ctx.reply.array(0);
    }
    written
}

static ZSCAN: CommandSpec = CommandSpec {
    name: "zscan",
    arity: -3,
    flags: Flags::READONLY,
    categories: Categories::SORTED_SET,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Walks over the members of a sorted set and their scores, a part at each call.",
        since: "2.8.0",
        group: "sorted-set",
        complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection.",
        history: &[("8.0.0", "Takes `NOSCORES`.")],
        tips: &["nondeterministic_output"],
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("cursor"),
            Argument::pattern("pattern").after("MATCH").optional(),
            Argument::integer("count").after("COUNT").optional(),
            Argument::word("noscores", "NOSCORES").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(zscan),
};

fn zscan(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let cursor = cursor(ctx, 2)?;
    let options = ScanOptions::parse(ctx, 3, Scanned::Zset);
    let key = ctx.key(1);
    let mut found = Found::default();
    let mut next = 0;
    if let Some(view) = types::zset::read(ctx.ks, &key)? {
        // Where there is nothing to scan, options are not looked at.
        let options = options?;
        next = view.scan(cursor, options.count, |entry| {
            if options.wants(entry.member) {
                found.push(entry.member);
                if !options.is_bare {
                    found.push(DoubleText::new(entry.score).as_bytes());
                }
            }
        });
    }
    found.reply(next, ctx.reply);
    Ok(())
}
