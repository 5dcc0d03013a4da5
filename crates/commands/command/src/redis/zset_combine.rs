//! Union, intersection and difference of sorted sets, of which some may be plain sets.

use super::zset_reply;
use crate::error::{self, Stop};
use crate::spec::{Argument, Docs};
use crate::work::reply::{LongReply, Stepwise};
use crate::work::steps::Building;
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use proto::ReplyBuffer;
use types::zset::{self, Aggregate, Entry, NewSet, Operand, Sources, Steps, View};
use value::{Big, Stored};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&ZUNION, &ZINTER, &ZDIFF, &ZUNIONSTORE, &ZINTERSTORE, &ZDIFFSTORE, &ZINTERCARD];

const SOURCES_AT_1: KeySpec = KeySpec::counted(1, 0, 1, 1, KeyFlags::RO.union(KeyFlags::ACCESS));
const SOURCES_AT_2: KeySpec = KeySpec::counted(2, 0, 1, 1, KeyFlags::RO.union(KeyFlags::ACCESS));
const DESTINATION: KeySpec = KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE));

const UNION_COMPLEXITY: &str = "O(N)+O(M*log(M)) with N being the sum of the sizes of the input sorted sets, and M being the number of elements in the resulting sorted set.";
const UNIONSTORE_COMPLEXITY: &str = "O(N)+O(M log(M)) with N being the sum of the sizes of the input sorted sets, and M being the number of elements in the resulting sorted set.";
const INTER_COMPLEXITY: &str = "O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number of input sorted sets and M being the number of elements in the resulting sorted set.";
const DIFF_COMPLEXITY: &str = "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is the size of the first set, and K is the size of the result set.";

const NUMKEYS: Argument = Argument::integer("numkeys");
const WEIGHTS: Argument = Argument::integer("weight").after("WEIGHTS").optional().repeated();
const AGGREGATE: Argument = Argument::one_of(
    "aggregate",
    &[Argument::word("sum", "SUM"), Argument::word("min", "MIN"), Argument::word("max", "MAX")],
)
.after("AGGREGATE")
.optional();
const WITH_SCORES: Argument = Argument::word("withscores", "WITHSCORES").optional();

/// What is to be made of the sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
    /// Only how many members the intersection has.
    IntersectionLen,
}

impl Operation {
    fn in_steps(self) -> zset::Operation {
        match self {
            Self::Union => zset::Operation::Union,
            Self::Intersection | Self::IntersectionLen => zset::Operation::Intersection,
            Self::Difference => zset::Operation::Difference,
        }
    }
}

/// What is asked for, the sets having been read.
struct Asked {
    sources: Sources,
    aggregate: Aggregate,
    with_scores: bool,
    limit: u64,
}

impl Asked {
    /// From the arguments, the number of keys at `numkeys` and all that follows. Sets are read before the options are
    /// looked at, as in Valkey.
    fn read(ctx: &mut Ctx<'_>, operation: Operation, numkeys: usize, stores: bool) -> Result<Self, Stop> {
        let number = ctx.integer(numkeys)?;
        let Some(number) = usize::try_from(number).ok().filter(|number| *number > 0) else {
            let text = format!("ERR at least 1 input key is needed for '{}' command", ctx.spec.name);
            return Err(Stop::error_with(text));
        };
        let first = numkeys.saturating_add(1);
        if number > ctx.args.len().saturating_sub(first) {
            return Err(error::SYNTAX);
        }
        let after = first.saturating_add(number);
        let mut sources = Sources::with_capacity(number);
        for index in first..after {
            let key = ctx.key(index);
            sources.push(Operand::read(ctx.ks, &key)?);
        }
        let mut asked = Self { sources, aggregate: Aggregate::Sum, with_scores: false, limit: 0 };
        asked.parse(ctx, operation, after, stores)?;
        Ok(asked)
    }

    fn parse(&mut self, ctx: &Ctx<'_>, operation: Operation, from: usize, stores: bool) -> Result<(), Stop> {
        let joins_scores = matches!(operation, Operation::Union | Operation::Intersection);
        let mut at = from;
        while at < ctx.args.len() {
            let left = ctx.args.len().saturating_sub(at);
            let value = at.saturating_add(1);
            if joins_scores && left > self.sources.len() && ctx.is_word(at, "weights") {
                for (source, text) in self.sources.iter_mut().zip(ctx.args.from(value)) {
                    let weight = types::zset::parse_score(text);
                    source.set_weight(weight.ok_or(Stop::error("ERR weight value is not a float"))?);
                }
                at = at.saturating_add(self.sources.len());
            } else if joins_scores && left > 1 && ctx.is_word(at, "aggregate") {
                self.aggregate = match &ctx.args[value] {
                    word if word.eq_ignore_ascii_case(b"sum") => Aggregate::Sum,
                    word if word.eq_ignore_ascii_case(b"min") => Aggregate::Min,
                    word if word.eq_ignore_ascii_case(b"max") => Aggregate::Max,
                    _ => return Err(error::SYNTAX),
                };
                at = value;
            } else if !stores && operation != Operation::IntersectionLen && ctx.is_word(at, "withscores") {
                self.with_scores = true;
            } else if operation == Operation::IntersectionLen && left > 1 && ctx.is_word(at, "limit") {
                let limit = types::string::parse_integer(&ctx.args[value]).and_then(|limit| u64::try_from(limit).ok());
                self.limit = limit.ok_or(Stop::error("ERR LIMIT can't be negative"))?;
                at = value;
            } else {
                return Err(error::SYNTAX);
            }
            at = at.saturating_add(1);
        }
        Ok(())
    }

    fn result(&self, operation: Operation) -> NewSet {
        match operation {
            Operation::Union => types::zset::union(&self.sources, self.aggregate),
            Operation::Difference => types::zset::difference(&self.sources),
            Operation::Intersection | Operation::IntersectionLen => {
                types::zset::intersection(&self.sources, self.aggregate)
            }
        }
    }
}

/// A result in steps, and how its reply is written.
struct Reading {
    steps: Steps,
    with_scores: bool,
}

impl Stepwise for Reading {
    fn step(&mut self) -> bool {
        self.steps.step()
    }

    fn take(&mut self) -> Big {
        Big::Zset(self.steps.take())
    }

    fn made_bytes(&self) -> usize {
        self.steps.made_bytes()
    }

    fn held_bytes(&self) -> usize {
        self.steps.held_bytes()
    }

    fn write_header(&self, made: &Big, reply: &mut ReplyBuffer) -> usize {
        let len = View::of(Stored::Big(made)).len();
        zset_reply::header(reply, len, self.with_scores);
        len as usize
    }
}

fn read(ctx: &mut Ctx<'_>, operation: Operation) -> Result<(), Stop> {
    let mut asked = Asked::read(ctx, operation, 1, false)?;
    let in_steps = operation.in_steps();
    let with_scores = asked.with_scores;
    asked.sources = match Steps::begin(asked.sources, in_steps, asked.aggregate) {
        Ok(steps) => {
            return ctx.reply_stepwise(Reading { steps, with_scores }, move |_, stored, places, reply| {
                let entries = View::of(stored).forward(places.start as u64).take(places.len());
                entries.for_each(|entry| zset_reply::row(reply, with_scores, &entry));
            });
        }
        Err(sources) => sources,
    };
    let result = asked.result(operation);
    let entries = result.iter().map(|(score, member)| Entry { score: *score, member });
    zset_reply::entries(ctx.reply, result.len() as u64, asked.with_scores, entries)
}

fn store(ctx: &mut Ctx<'_>, operation: Operation, event: &'static str) -> Result<(), Stop> {
    let mut asked = Asked::read(ctx, operation, 2, true)?;
    let to = ctx.key(1);
    let is_there = types::zset::is_there(ctx.ks, &to)?;
    let (prepared, is_recorded) = (ctx.take_work::<Building<Reading>>(), ctx.ks.is_recorded());
    let (in_steps, aggregate) = (operation.in_steps(), asked.aggregate);
    if let Some(building) = prepared
        && building.making.steps.is_of(&mut asked.sources, in_steps, aggregate)
        && let Some(made) = building.made(is_recorded)
    {
        let stored = types::zset::store_made(ctx.ks, &to, is_there, made, event);
        ctx.reply.integer(stored as i64);
        return Ok(());
    }
    if ctx.may_begin_work() {
        asked.sources = match Steps::begin(asked.sources, in_steps, aggregate) {
            Ok(steps) => return Err(ctx.begin_work(Building::new(Reading { steps, with_scores: false }, is_recorded))),
            Err(sources) => sources,
        };
    }
    let stored = types::zset::store(ctx.ks, &to, is_there, &asked.result(operation), event);
    ctx.reply.integer(stored as i64);
    Ok(())
}

static ZUNION: CommandSpec = CommandSpec {
    name: "zunion",
    arity: -3,
    flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
    categories: Categories::SORTED_SET,
    keys: &[SOURCES_AT_1],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the members that any of several sorted sets has, with their scores joined.",
        since: "6.2.0",
        group: "sorted-set",
        complexity: UNION_COMPLEXITY,
        arguments: &[NUMKEYS, Argument::key("key", 0).repeated(), WEIGHTS, AGGREGATE, WITH_SCORES],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| read(ctx, Operation::Union)),
};

static ZINTER: CommandSpec = CommandSpec {
    name: "zinter",
    arity: -3,
    flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
    categories: Categories::SORTED_SET,
    keys: &[SOURCES_AT_1],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the members that all of several sorted sets have, with their scores joined.",
        since: "6.2.0",
        group: "sorted-set",
        complexity: INTER_COMPLEXITY,
        arguments: &[NUMKEYS, Argument::key("key", 0).repeated(), WEIGHTS, AGGREGATE, WITH_SCORES],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| read(ctx, Operation::Intersection)),
};

static ZDIFF: CommandSpec = CommandSpec {
    name: "zdiff",
    arity: -3,
    flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
    categories: Categories::SORTED_SET,
    keys: &[SOURCES_AT_1],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the members of the first of several sorted sets that none of the others has.",
        since: "6.2.0",
        group: "sorted-set",
        complexity: DIFF_COMPLEXITY,
        arguments: &[NUMKEYS, Argument::key("key", 0).repeated(), WITH_SCORES],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| read(ctx, Operation::Difference)),
};

static ZUNIONSTORE: CommandSpec = CommandSpec {
    name: "zunionstore",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
    categories: Categories::SORTED_SET,
    keys: &[DESTINATION, SOURCES_AT_2],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Stores the members that any of several sorted sets has, with their scores joined.",
        since: "2.0.0",
        group: "sorted-set",
        complexity: UNIONSTORE_COMPLEXITY,
        arguments: &[Argument::key("destination", 0), NUMKEYS, Argument::key("key", 1).repeated(), WEIGHTS, AGGREGATE],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| store(ctx, Operation::Union, "zunionstore")),
};

static ZINTERSTORE: CommandSpec = CommandSpec {
    name: "zinterstore",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
    categories: Categories::SORTED_SET,
    keys: &[DESTINATION, SOURCES_AT_2],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Stores the members that all of several sorted sets have, with their scores joined.",
        since: "2.0.0",
        group: "sorted-set",
        complexity: INTER_COMPLEXITY,
        arguments: &[Argument::key("destination", 0), NUMKEYS, Argument::key("key", 1).repeated(), WEIGHTS, AGGREGATE],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| store(ctx, Operation::Intersection, "zinterstore")),
};

static ZDIFFSTORE: CommandSpec = CommandSpec {
    name: "zdiffstore",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
    categories: Categories::SORTED_SET,
    keys: &[DESTINATION, SOURCES_AT_2],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Stores the members of the first of several sorted sets that none of the others has.",
        since: "6.2.0",
        group: "sorted-set",
        complexity: DIFF_COMPLEXITY,
        arguments: &[Argument::key("destination", 0), NUMKEYS, Argument::key("key", 1).repeated()],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| store(ctx, Operation::Difference, "zdiffstore")),
};

static ZINTERCARD: CommandSpec = CommandSpec {
    name: "zintercard",
    arity: -3,
    flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
    categories: Categories::SORTED_SET,
    keys: &[SOURCES_AT_1],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Counts the members that all of several sorted sets have.",
        since: "7.0.0",
        group: "sorted-set",
        complexity: "O(N*K) worst case with N being the smallest input sorted set, K being the number of input sorted sets.",
        arguments: &[NUMKEYS, Argument::key("key", 0).repeated(), Argument::integer("limit").after("LIMIT").optional()],
        ..Docs::NONE
    },
    run: Run::Call(zintercard),
};

fn zintercard(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let asked = Asked::read(ctx, Operation::IntersectionLen, 1, false)?;
    match Steps::begin(asked.sources, zset::Operation::Intersection, asked.aggregate) {
        Ok(steps) => ctx.reply_long(Counting(steps.counting(asked.limit))),
        Err(sources) => {
            ctx.reply.integer(types::zset::intersection_len(&sources, asked.limit) as i64);
            Ok(())
        }
    }
}

/// The length of an intersection that is counted in steps.
struct Counting(Steps);

impl LongReply for Counting {
    fn write_piece(&mut self, reply: &mut ReplyBuffer) -> bool {
        let goes_on = self.0.step();
        if !goes_on {
            reply.integer(self.0.count() as i64);
        }
        goes_on
    }

    fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }
}
