//! What several sets have in common, together, or one without the others.

use super::set::{reply_member, write_members};
use crate::error::{self, Stop};
use crate::spec::{Argument, Docs};
use crate::work::reply::{LongReply, Stepwise};
use crate::work::steps::Building;
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use engine::Encoding;
use proto::ReplyBuffer;
use types::set::{Combination, Operation, Steps};
use value::set::View;
use value::{Big, Stored};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&SINTER, &SINTERSTORE, &SINTERCARD, &SUNION, &SUNIONSTORE, &SDIFF, &SDIFFSTORE];

const INTERSECTION_COMPLEXITY: &str =
    "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.";
const TOTAL_COMPLEXITY: &str = "O(N) where N is the total number of elements in all given sets.";

/// The row of a command that replies with its result.
const fn replying(name: &'static str, docs: &'static Docs, run: Run) -> CommandSpec {
    CommandSpec {
        name,
        arity: -2,
        flags: Flags::READONLY,
        categories: Categories::SET,
        keys: const { &[KeySpec::range(1, -1, 1, KeyFlags::RO.union(KeyFlags::ACCESS))] },
        locks: Locks::Keys,
        docs,
        run,
    }
}

/// The row of a command that stores its result.
const fn storing(name: &'static str, docs: &'static Docs, run: Run) -> CommandSpec {
    CommandSpec {
        name,
        arity: -3,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        categories: Categories::SET,
        keys: const {
            &[
                KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE)),
                KeySpec::range(2, -1, 1, KeyFlags::RO.union(KeyFlags::ACCESS)),
            ]
        },
        locks: Locks::Keys,
        docs,
        run,
    }
}

const fn replying_docs(summary: &'static str, complexity: &'static str) -> Docs {
    Docs {
        summary,
        since: "1.0.0",
        group: "set",
        complexity,
        tips: &["nondeterministic_output_order"],
        arguments: const { &[Argument::key("key", 0).repeated()] },
        ..Docs::NONE
    }
}

const fn storing_docs(summary: &'static str, complexity: &'static str) -> Docs {
    Docs {
        summary,
        since: "1.0.0",
        group: "set",
        complexity,
        arguments: const { &[Argument::key("destination", 0), Argument::key("key", 1).repeated()] },
        ..Docs::NONE
    }
}

static SINTER: CommandSpec = replying(
    "sinter",
    &replying_docs("Gives the members that all of several sets have.", INTERSECTION_COMPLEXITY),
    Run::Call(|ctx| reply(ctx, Operation::Intersection)),
);

static SINTERSTORE: CommandSpec = storing(
    "sinterstore",
    &storing_docs("Stores the members that all of several sets have as a set.", INTERSECTION_COMPLEXITY),
    Run::Call(|ctx| store(ctx, Operation::Intersection)),
);

static SUNION: CommandSpec = replying(
    "sunion",
    &replying_docs("Gives the members that any of several sets has.", TOTAL_COMPLEXITY),
    Run::Call(|ctx| reply(ctx, Operation::Union)),
);

static SUNIONSTORE: CommandSpec = storing(
    "sunionstore",
    &storing_docs("Stores the members that any of several sets has as a set.", TOTAL_COMPLEXITY),
    Run::Call(|ctx| store(ctx, Operation::Union)),
);

static SDIFF: CommandSpec = replying(
    "sdiff",
    &replying_docs("Gives the members of a set that no other has.", TOTAL_COMPLEXITY),
    Run::Call(|ctx| reply(ctx, Operation::Difference)),
);

static SDIFFSTORE: CommandSpec = storing(
    "sdiffstore",
    &storing_docs("Stores the members of a set that no other has as a set.", TOTAL_COMPLEXITY),
    Run::Call(|ctx| store(ctx, Operation::Difference)),
);

fn reply(ctx: &mut Ctx<'_>, operation: Operation) -> Result<(), Stop> {
    let combination = Combination::read(ctx.ks, operation, ctx.args.from(1))?;
    match combination.in_steps() {
        Ok(steps) => ctx.reply_stepwise(steps, write_members),
        Err(combination) => {
            let reply = &mut *ctx.reply;
            let (open, mut len) = (reply.begin_set(), 0usize);
            combination.show(&mut |member| {
                len = len.saturating_add(1);
                reply_member(reply, member)
            })?;
            reply.end(open, len);
            Ok(())
        }
    }
}

impl Stepwise for Steps {
    fn step(&mut self) -> bool {
        Self::step(self)
    }

    fn take(&mut self) -> Big {
        Big::Set(Self::take(self))
    }

    fn made_bytes(&self) -> usize {
        Self::made_bytes(self)
    }

    fn held_bytes(&self) -> usize {
        Self::held_bytes(self)
    }

    fn write_header(&self, made: &Big, reply: &mut ReplyBuffer) -> usize {
        let len = View::of(Encoding::BIG, Stored::Big(made)).len();
        reply.set(len);
        len
    }
}

fn store(ctx: &mut Ctx<'_>, operation: Operation) -> Result<(), Stop> {
    let to = ctx.key(1);
    let combination = Combination::read(ctx.ks, operation, ctx.args.from(2))?;
    let (prepared, is_recorded) = (ctx.take_work::<Building<Steps>>(), ctx.ks.is_recorded());
    let prepared = prepared.filter(|building| building.making.is_of(&combination));
    let len = if let Some((tree, changes)) = prepared.as_ref().and_then(|building| building.made(is_recorded)) {
        types::set::store_made(ctx.ks, &to, operation, tree, changes)?
    } else if ctx.may_begin_work() {
        match combination.in_steps() {
            Ok(steps) => return Err(ctx.begin_work(Building::new(steps, is_recorded))),
            Err(combination) => types::set::store(ctx.ks, &to, combination)?,
        }
    } else {
        types::set::store(ctx.ks, &to, combination)?
    };
    ctx.reply.integer(len as i64);
    Ok(())
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

static SINTERCARD: CommandSpec = CommandSpec {
    name: "sintercard",
    arity: -3,
    flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
    categories: Categories::SET,
    keys: &[KeySpec::counted(1, 0, 1, 1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the number of members that all of several sets have.",
        since: "7.0.0",
        group: "set",
        complexity: INTERSECTION_COMPLEXITY,
        arguments: &[
            Argument::integer("numkeys"),
            Argument::key("key", 0).repeated(),
            Argument::integer("limit").after("LIMIT").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(sintercard),
};

fn sintercard(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let keys = types::string::parse_integer(&ctx.args[1]).filter(|keys| *keys > 0);
    let keys = keys.ok_or(Stop::error("ERR numkeys should be greater than 0"))? as usize;
    let mut at = keys.saturating_add(2);
    if at > ctx.args.len() {
        return Err(Stop::error("ERR Number of keys can't be greater than number of args"));
    }
    let mut limit = u64::MAX;
    while at < ctx.args.len() {
        let value = at.saturating_add(1);
        if !ctx.is_word(at, "limit") || value >= ctx.args.len() {
            return Err(error::SYNTAX);
        }
        let given = types::string::parse_integer(&ctx.args[value]).and_then(|limit| u64::try_from(limit).ok());
        limit = given.ok_or(Stop::error("ERR LIMIT can't be negative"))?;
        if limit == 0 {
            limit = u64::MAX;
        }
        at = value.saturating_add(1);
    }
    match Combination::read(ctx.ks, Operation::Intersection, ctx.args.from(2).take(keys))?.in_steps() {
        Ok(steps) => ctx.reply_long(Counting(steps.counting(limit))),
        Err(combination) => {
            ctx.reply.integer(combination.count(limit) as i64);
            Ok(())
        }
    }
}
