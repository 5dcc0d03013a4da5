//! Ranges of sorted sets: by rank, by score, by bytes; read, counted, stored and removed.

use super::zset::READ_KEY;
use super::zset_reply;
use crate::error::{self, Stop};
use crate::spec::{Argument, Docs};
use crate::work::reply::Stepwise;
use crate::work::steps::{Building, Work};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use engine::{Encoding, SharedBig};
use proto::ReplyBuffer;
use std::ops;
use types::zset::{Copying, Entry, LexEnd, Limit, NewSet, Range, Removing, View, parse_score_end};
use value::{Big, Stored};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[
    &ZRANGE,
    &ZREVRANGE,
    &ZRANGEBYSCORE,
    &ZREVRANGEBYSCORE,
    &ZRANGEBYLEX,
    &ZREVRANGEBYLEX,
    &ZRANGESTORE,
    &ZCOUNT,
    &ZLEXCOUNT,
    &ZREMRANGEBYRANK,
    &ZREMRANGEBYSCORE,
    &ZREMRANGEBYLEX,
];

const REMOVED_KEY: KeySpec = KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE));

const COMPLEXITY: &str =
    "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements returned.";
const COMPLEXITY_LIMITED: &str = "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements being returned. If M is constant (e.g. always asking for the first 10 elements with LIMIT), you can consider it O(log(N)).";
const COMPLEXITY_COUNTED: &str = "O(log(N)) with N being the number of elements in the sorted set.";
const COMPLEXITY_REMOVED: &str = "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements removed by the operation.";

const WITH_SCORES: Argument = Argument::word("withscores", "WITHSCORES").optional();
const SORT_BY: Argument =
    Argument::one_of("sortby", &[Argument::word("byscore", "BYSCORE"), Argument::word("bylex", "BYLEX")]).optional();
const REV: Argument = Argument::word("rev", "REV").optional();
const LIMIT: Argument =
    Argument::block("limit", &[Argument::integer("offset"), Argument::integer("count")]).after("LIMIT").optional();

/// At most this many entries are written without a second read of the key, which a reply in pieces needs.
const WRITTEN_AT_ONCE_MAX: u64 = 128;

/// By what a range is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// What a command takes in addition to the two ends, of which the first is at `ends`.
struct Form {
    ends: usize,
    /// By what, unless an option may say so.
    by: Option<By>,
    /// Whether the highest score comes first, unless an option may say so.
    is_reversed: Option<bool>,
    /// Whether the members go to another key and not to the client.
    stores: bool,
}

/// A range as a command asks for it.
struct Asked<'a> {
    range: Range<'a>,
    limit: Limit,
    is_reversed: bool,
    with_scores: bool,
}

impl Form {
    const fn read(by: By, is_reversed: bool) -> Self {
        Self { ends: 2, by: Some(by), is_reversed: Some(is_reversed), stores: false }
    }
}

impl<'a> Asked<'a> {
    fn parse(ctx: &Ctx<'a>, form: &Form) -> Result<Self, Stop> {
        let Form { ends, mut by, mut is_reversed, stores } = *form;
        let (mut limit, mut with_scores) = (Limit::NONE, false);
        let mut at = ends.saturating_add(2);
        while at < ctx.args.len() {
            let is = |word: &str| ctx.is_word(at, word);
            let (first, second) = (at.saturating_add(1), at.saturating_add(2));
            if !stores && is("withscores") {
                with_scores = true;
            } else if is("limit") && second < ctx.args.len() {
                limit = Limit { offset: ctx.integer(first)?, count: ctx.integer(second)? };
                at = second;
            } else if is_reversed.is_none() && is("rev") {
                is_reversed = Some(true);
            } else if by.is_none() && is("bylex") {
                by = Some(By::Lex);
            } else if by.is_none() && is("byscore") {
                by = Some(By::Score);
            } else {
                return Err(error::SYNTAX);
            }
            at = at.saturating_add(1);
        }
        let (by, is_reversed) = (by.unwrap_or(By::Rank), is_reversed.unwrap_or(false));
        if limit.count != -1 && by == By::Rank {
            return Err(Stop::error(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if with_scores && by == By::Lex {
            return Err(Stop::error("ERR syntax error, WITHSCORES not supported in combination with BYLEX"));
        }
        let limit = if by == By::Rank { Limit::NONE } else { limit };
        Ok(Self { range: range(ctx, by, ends, is_reversed)?, limit, is_reversed, with_scores })
    }

    /// The ranks of the entries that it asks for.
    fn places(&self, encoding: Encoding, view: &View<'_>) -> Places {
        let ranks = self.limit.of(self.range.ranks(view, self.is_reversed), self.is_reversed, encoding);
        Places { ranks, is_reversed: self.is_reversed }
    }
}

/// Ranks in the order in which they are given.
#[derive(Clone)]
struct Places {
    ranks: ops::Range<u64>,
    is_reversed: bool,
}

impl Places {
    fn len(&self) -> u64 {
        self.ranks.end.saturating_sub(self.ranks.start)
    }

    /// Some of them, counted from the first that is given.
    fn part(&self, part: ops::Range<usize>) -> Self {
        let ops::Range { start, end } = self.ranks;
        let (from, to) = (part.start as u64, part.end as u64);
        let ranks = match self.is_reversed {
            false => start.saturating_add(from)..start.saturating_add(to).min(end),
            true => end.saturating_sub(to).max(start)..end.saturating_sub(from),
        };
        Self { ranks, is_reversed: self.is_reversed }
    }

    /// The entries there.
    fn of<'v>(&self, view: &View<'v>) -> impl Iterator<Item = Entry<'v>> + use<'v> {
        let count = self.len();
        // One of the two is empty.
        let (forward, backward) = if self.is_reversed { (0, count) } else { (count, 0) };
        let forward = (forward > 0).then(|| view.forward(self.ranks.start)).into_iter().flatten();
        let backward = (backward > 0).then(|| view.backward(self.ranks.end.saturating_sub(1))).into_iter().flatten();
        forward.chain(backward).take(count as usize)
    }
}

/// The range between the ends in the argument at `first` and the one after it. The higher end comes first in a range
/// that is reversed, unless it is one of ranks.
fn range<'a>(ctx: &Ctx<'a>, by: By, first: usize, is_reversed: bool) -> Result<Range<'a>, Stop> {
    let second = first.saturating_add(1);
    let (min, max) = if is_reversed && by != By::Rank { (second, first) } else { (first, second) };
    let bytes = |index| ctx.args.bytes(index).unwrap_or_default();
    match by {
        By::Rank => Ok(Range::Rank { start: ctx.integer(min)?, end: ctx.integer(max)? }),
        By::Score => {
            let end = |index| parse_score_end(bytes(index)).ok_or(Stop::error("ERR min or max is not a float"));
            Ok(Range::Score { min: end(min)?, max: end(max)? })
        }
        By::Lex => {
            let end =
                |index| LexEnd::parse(bytes(index)).ok_or(Stop::error("ERR min or max not valid string range item"));
            Ok(Range::Lex { min: end(min)?, max: end(max)? })
        }
    }
}

fn read(ctx: &mut Ctx<'_>, form: &Form) -> Result<(), Stop> {
    let asked = Asked::parse(ctx, form)?;
    let key = ctx.key(1);
    let Some((encoding, view)) = types::zset::read_encoded(ctx.ks, &key)? else {
        ctx.reply.array(0);
        return Ok(());
    };
    let (places, with_scores) = (asked.places(encoding, &view), asked.with_scores);
    let count = places.len();
    zset_reply::header(ctx.reply, count, with_scores);
    if count <= WRITTEN_AT_ONCE_MAX {
        return zset_reply::rows(ctx.reply, with_scores, places.of(&view));
    }
    let all = places.clone();
    let ranks = move |part| all.part(part).ranks;
    ctx.reply_ranked(&key, 0..count as usize, ranks, move |_, stored, part, reply| {
        places.part(part).of(&View::of(stored)).for_each(|entry| zset_reply::row(reply, with_scores, &entry));
    })
}

static ZRANGE: CommandSpec = CommandSpec {
    name: "zrange",
    arity: -4,
    flags: Flags::READONLY,
    categories: Categories::SORTED_SET,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the members of a range of ranks, scores or bytes.",
        since: "1.2.0",
        group: "sorted-set",
        complexity: COMPLEXITY,
        history: &[("6.2.0", "Takes `REV`, `BYSCORE`, `BYLEX` and `LIMIT`.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::string("start"),
            Argument::string("stop"),
            SORT_BY.since("6.2.0"),
            REV.since("6.2.0"),
            LIMIT.since("6.2.0"),
            WITH_SCORES,
        ],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| read(ctx, &Form { ends: 2, by: None, is_reversed: None, stores: false })),
};

static ZREVRANGE: CommandSpec = CommandSpec {
    name: "zrevrange",
    arity: -4,
    flags: Flags::READONLY,
    categories: Categories::SORTED_SET,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the members of a range of ranks, the highest score first.",
        since: "1.2.0",
        group: "sorted-set",
        complexity: COMPLEXITY,
        arguments: &[Argument::key("key", 0), Argument::integer("start"), Argument::integer("stop"), WITH_SCORES],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| read(ctx, &Form::read(By::Rank, true))),
};

static ZRANGEBYSCORE: CommandSpec = CommandSpec {
    name: "zrangebyscore",
    arity: -4,
    flags: Flags::READONLY,
    categories: Categories::SORTED_SET,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the members of a range of scores.",
        since: "1.0.5",
        group: "sorted-set",
        complexity: COMPLEXITY_LIMITED,
        history: &[("2.0.0", "Takes `WITHSCORES`.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::double("min"),
            Argument::double("max"),
            WITH_SCORES.since("2.0.0"),
            LIMIT,
        ],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| read(ctx, &Form::read(By::Score, false))),
};

static ZREVRANGEBYSCORE: CommandSpec = CommandSpec {
    name: "zrevrangebyscore",
    arity: -4,
    flags: Flags::READONLY,
    categories: Categories::SORTED_SET,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the members of a range of scores, the highest first.",
        since: "2.2.0",
        group: "sorted-set",
        complexity: COMPLEXITY_LIMITED,
        history: &[("2.1.6", "Either end may be left out of the range.")],
        arguments: &[Argument::key("key", 0), Argument::double("max"), Argument::double("min"), WITH_SCORES, LIMIT],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| read(ctx, &Form::read(By::Score, true))),
};

static ZRANGEBYLEX: CommandSpec = CommandSpec {
    name: "zrangebylex",
    arity: -4,
    flags: Flags::READONLY,
    categories: Categories::SORTED_SET,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the members of a range of bytes, where all scores are the same.",
        since: "2.8.9",
        group: "sorted-set",
        complexity: COMPLEXITY_LIMITED,
        arguments: &[Argument::key("key", 0), Argument::string("min"), Argument::string("max"), LIMIT],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| read(ctx, &Form::read(By::Lex, false))),
};

static ZREVRANGEBYLEX: CommandSpec = CommandSpec {
    name: "zrevrangebylex",
    arity: -4,
    flags: Flags::READONLY,
    categories: Categories::SORTED_SET,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the members of a range of bytes, the last first, where all scores are the same.",
        since: "2.8.9",
        group: "sorted-set",
        complexity: COMPLEXITY_LIMITED,
        arguments: &[Argument::key("key", 0), Argument::string("max"), Argument::string("min"), LIMIT],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| read(ctx, &Form::read(By::Lex, true))),
};

static ZRANGESTORE: CommandSpec = CommandSpec {
    name: "zrangestore",
    arity: -5,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::SORTED_SET,
    keys: &[
        KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE)),
        KeySpec::one(2, KeyFlags::RO.union(KeyFlags::ACCESS)),
    ],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Stores the members of a range under another key.",
        since: "6.2.0",
        group: "sorted-set",
        complexity: "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements stored into the destination key.",
        arguments: &[
            Argument::key("dst", 0),
            Argument::key("src", 1),
            Argument::string("min"),
            Argument::string("max"),
            SORT_BY,
            REV,
            LIMIT,
        ],
        ..Docs::NONE
    },
    run: Run::Call(zrangestore),
};

fn zrangestore(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let asked = Asked::parse(ctx, &Form { ends: 3, by: None, is_reversed: None, stores: true })?;
    let (to, from) = (ctx.key(1), ctx.key(2));
    if let Some(tree) = super::zset::peek_tree(ctx, &from)? {
        let ranks = asked.places(Encoding::BIG, &View::of(Stored::Big(&tree))).ranks;
        let (prepared, is_recorded) = (ctx.take_work::<Building<Copying>>(), ctx.ks.is_recorded());
        let prepared = prepared.filter(|building| building.making.is_of(&tree, &ranks));
        if let Some(made) = prepared.as_ref().and_then(|building| building.made(is_recorded)) {
            types::zset::read(ctx.ks, &from)?;
            let is_there = types::zset::is_there(ctx.ks, &to)?;
            let stored = types::zset::store_made(ctx.ks, &to, is_there, made, "zrangestore");
            ctx.reply.integer(stored as i64);
            return Ok(());
        }
        if let Some(copying) = Copying::begin(&tree, ranks).filter(|_| ctx.may_begin_work()) {
            return Err(ctx.begin_work(Building::new(copying, is_recorded)));
        }
    }
    let entries: NewSet = match types::zset::read_encoded(ctx.ks, &from)? {
        None => NewSet::new(),
        Some((encoding, view)) => {
            asked.places(encoding, &view).of(&view).map(|entry| (entry.score, entry.member.to_vec())).collect()
        }
    };
    let is_there = types::zset::is_there(ctx.ks, &to)?;
    let stored = types::zset::store(ctx.ks, &to, is_there, &entries, "zrangestore");
    ctx.reply.integer(stored as i64);
    Ok(())
}

impl Stepwise for Copying {
    fn step(&mut self) -> bool {
        Self::step(self)
    }

    fn take(&mut self) -> Big {
        Big::Zset(Self::take(self))
    }

    fn made_bytes(&self) -> usize {
        Self::made_bytes(self)
    }

    fn held_bytes(&self) -> usize {
        Self::held_bytes(self)
    }

    fn write_header(&self, made: &Big, reply: &mut ReplyBuffer) -> usize {
        let len = View::of(Stored::Big(made)).len();
        reply.array(len as usize);
        len as usize
    }
}

static ZCOUNT: CommandSpec = CommandSpec {
    name: "zcount",
    arity: 4,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::SORTED_SET,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Counts the members of a range of scores.",
        since: "2.0.0",
        group: "sorted-set",
        complexity: COMPLEXITY_COUNTED,
        arguments: &[Argument::key("key", 0), Argument::double("min"), Argument::double("max")],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| count(ctx, By::Score)),
};

static ZLEXCOUNT: CommandSpec = CommandSpec {
    name: "zlexcount",
    arity: 4,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::SORTED_SET,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Counts the members of a range of bytes, where all scores are the same.",
        since: "2.8.9",
        group: "sorted-set",
        complexity: COMPLEXITY_COUNTED,
        arguments: &[Argument::key("key", 0), Argument::string("min"), Argument::string("max")],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| count(ctx, By::Lex)),
};

fn count(ctx: &mut Ctx<'_>, by: By) -> Result<(), Stop> {
    let range = range(ctx, by, 2, false)?;
    let key = ctx.key(1);
    let ranks = types::zset::read(ctx.ks, &key)?.map_or(0..0, |view| range.ranks(&view, false));
    ctx.reply.integer(ranks.end.saturating_sub(ranks.start) as i64);
    Ok(())
}

static ZREMRANGEBYRANK: CommandSpec = CommandSpec {
    name: "zremrangebyrank",
    arity: 4,
    flags: Flags::WRITE.union(Flags::FREES),
    categories: Categories::SORTED_SET,
    keys: &[REMOVED_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Takes the members of a range of ranks out; with the last one the key goes.",
        since: "2.0.0",
        group: "sorted-set",
        complexity: COMPLEXITY_REMOVED,
        arguments: &[Argument::key("key", 0), Argument::integer("start"), Argument::integer("stop")],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| remove(ctx, By::Rank)),
};

static ZREMRANGEBYSCORE: CommandSpec = CommandSpec {
    name: "zremrangebyscore",
    arity: 4,
    flags: Flags::WRITE.union(Flags::FREES),
    categories: Categories::SORTED_SET,
    keys: &[REMOVED_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Takes the members of a range of scores out; with the last one the key goes.",
        since: "1.2.0",
        group: "sorted-set",
        complexity: COMPLEXITY_REMOVED,
        arguments: &[Argument::key("key", 0), Argument::double("min"), Argument::double("max")],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| remove(ctx, By::Score)),
};

static ZREMRANGEBYLEX: CommandSpec = CommandSpec {
    name: "zremrangebylex",
    arity: 4,
    flags: Flags::WRITE.union(Flags::FREES),
    categories: Categories::SORTED_SET,
    keys: &[REMOVED_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Takes the members of a range of bytes out, where all scores are the same; with the last one the key goes.",
        since: "2.8.9",
        group: "sorted-set",
        complexity: COMPLEXITY_REMOVED,
        arguments: &[Argument::key("key", 0), Argument::string("min"), Argument::string("max")],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| remove(ctx, By::Lex)),
};

fn remove(ctx: &mut Ctx<'_>, by: By) -> Result<(), Stop> {
    let range = range(ctx, by, 2, false)?;
    let key = ctx.key(1);
    if let Some(tree) = super::zset::peek_tree(ctx, &key)? {
        let ranks = range.ranks(&View::of(Stored::Big(&tree)), false);
        if let Some(removing) = removing(ctx, tree, &ranks)? {
            types::zset::remove_ranks_made(ctx.ks, &key, *removing, range.event());
            ctx.reply.integer(ranks.end.saturating_sub(ranks.start) as i64);
            return Ok(());
        }
    }
    let removed = types::zset::remove_range(ctx.ks, &key, &range)?;
    ctx.reply.integer(removed as i64);
    Ok(())
}

/// The removal of many ranks of a tree, prepared; `None` when it is to be done at once.
///
/// # Errors
/// It has to be prepared first.
pub(super) fn removing(
    ctx: &mut Ctx<'_>,
    tree: SharedBig,
    ranks: &ops::Range<u64>,
) -> Result<Option<Box<Removing>>, Stop> {
    let prepared = ctx.take_work::<Removing>().filter(|removing| removing.is_of(&tree, ranks));
    if prepared.is_some() || !ctx.may_begin_work() {
        return Ok(prepared);
    }
    match Removing::begin(&tree, ranks.clone()) {
        Some(removing) => Err(ctx.begin_work(removing)),
        None => Ok(None),
    }
}

impl Work for Removing {
    fn step(&mut self) -> bool {
        Self::step(self)
    }

    fn held_bytes(&self) -> usize {
        Self::held_bytes(self)
    }
}
