//! What is pending in a group: XACK, XPENDING, XCLAIM, XAUTOCLAIM.

use super::stream_ids::reply_entry;
use super::stream_ids::{self, INVALID_ID, reply_id};
use crate::error::{self, Stop, check_reply, up_to_zero};
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use base::UnixMs;
use engine::Key;
use proto::ReplyBuffer;
use types::stream::{AutoClaim, ClaimOptions, Claimant, Group, Id, Pending};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&XACK, &XPENDING, &XCLAIM, &XAUTOCLAIM];

static XACK: CommandSpec = CommandSpec {
    name: "xack",
    arity: -4,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::STREAM,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Acknowledges entries that are pending in a group, and counts them.",
        since: "5.0.0",
        group: "stream",
        complexity: "O(1) for each message ID processed.",
        arguments: &[Argument::key("key", 0), Argument::string("group"), Argument::string("id").repeated()],
        ..Docs::NONE
    },
    run: Run::Call(xack),
};

fn xack(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, group) = (ctx.key(1), &ctx.args[2]);
    // Without a group the ids are not looked at.
    let mut acknowledged = 0;
    if types::stream::has_group(ctx.ks, &key, group)? {
        let ids = stream_ids::ids(ctx, 3)?;
        acknowledged = types::stream::acknowledge(ctx.ks, &key, group, ids)?;
    }
    ctx.reply.integer(acknowledged as i64);
    Ok(())
}

static XPENDING: CommandSpec = CommandSpec {
    name: "xpending",
    arity: -3,
    flags: Flags::READONLY,
    categories: Categories::STREAM,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Tells what is pending in a group: in sum, or entry by entry.",
        since: "5.0.0",
        group: "stream",
        complexity: "O(N) with N being the number of elements returned, so asking for a small fixed number of entries per call is O(1). O(M), where M is the total number of entries scanned when used with the IDLE filter. When the command returns just the summary and the list of consumers is small, it runs in O(1) time; otherwise, an additional O(N) time for iterating every consumer.",
        history: &[("6.2.0", "Takes `IDLE`, and either end may be left out of the range.")],
        tips: &["nondeterministic_output"],
        arguments: &[
            Argument::key("key", 0),
            Argument::string("group"),
            Argument::block(
                "filters",
                &[
                    Argument::integer("min-idle-time").after("IDLE").optional().since("6.2.0"),
                    Argument::string("start"),
                    Argument::string("end"),
                    Argument::integer("count"),
                    Argument::string("consumer").optional(),
                ],
            )
            .optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(xpending),
};

fn xpending(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let filter = match ctx.args.len() {
        3 => None,
        6..=9 => Some(Filter::parse(ctx)?),
        _ => return Err(error::SYNTAX),
    };
    let (key, now) = (ctx.key(1), ctx.now());
    let stream = types::stream::read(ctx.ks, &key)?;
    let group = stream.and_then(|stream| stream.group(&ctx.args[2])).ok_or_else(|| no_group(&key, &ctx.args[2]))?;
    match filter {
        None => {
            reply_summary(ctx.reply, group);
            Ok(())
        }
        Some(filter) => filter.reply(ctx.reply, group, now),
    }
}

/// There is no such group, or no stream.
fn no_group(key: &Key<'_>, group: &[u8]) -> Stop {
    let words: [&[u8]; 5] =
        [b"NOGROUP No such key '", up_to_zero(key.bytes), b"' or consumer group '", up_to_zero(group), b"'"];
    Stop::error_with(words.concat())
}

fn reply_summary(reply: &mut ReplyBuffer, group: &Group) {
    reply.array(4);
    reply.integer(group.pending_count() as i64);
    let first = group.pending(Id::MIN).next();
    for edge in [first, group.last_pending()] {
        match edge {
            Some(pending) => reply_id(reply, pending.id()),
            None => reply.null(),
        }
    }
    if first.is_none() {
        reply.null_array();
        return;
    }
    let open = reply.begin_array();
    let mut count = 0usize;
    for consumer in group.consumers().filter(|consumer| consumer.pending_count() > 0) {
        reply.array(2);
        reply.bulk(consumer.name());
        reply.bulk_integer(consumer.pending_count() as i64);
        count = count.saturating_add(1);
    }
    reply.end(open, count);
}

/// Which pending entries XPENDING lists.
struct Filter<'a> {
    min_idle_ms: i64,
    start: Id,
    end: Id,
    count: usize,
    consumer: Option<&'a [u8]>,
}

impl<'a> Filter<'a> {
    fn parse(ctx: &Ctx<'a>) -> Result<Self, Stop> {
        let (mut min_idle_ms, mut at) = (0, 3usize);
        if ctx.is_word(at, "idle") {
            min_idle_ms = ctx.integer(4)?;
            if ctx.args.len() < 8 {
                return Err(error::SYNTAX);
            }
            at = 5;
        }
        let (end, count) = (at.saturating_add(1), at.saturating_add(2));
        Ok(Self {
            min_idle_ms,
            count: usize::try_from(ctx.integer(count)?).unwrap_or(0),
            start: stream_ids::start(ctx, at)?,
            end: stream_ids::end(ctx, end)?,
            consumer: ctx.args.bytes(count.saturating_add(1)),
        })
    }

    fn reply(&self, reply: &mut ReplyBuffer, group: &Group, now: UnixMs) -> Result<(), Stop> {
        let Some(name) = self.consumer else { return self.reply_each(reply, group.pending(self.start), now) };
        let ids = group.consumer(name).into_iter().flat_map(|consumer| consumer.pending_ids(self.start));
        self.reply_each(reply, ids.filter_map(|id| group.pending_entry(id)), now)
    }

    fn reply_each<'g>(
        &self,
        reply: &mut ReplyBuffer,
        all: impl Iterator<Item = &'g Pending>,
        now: UnixMs,
    ) -> Result<(), Stop> {
        let idle_ms = |pending: &Pending| now.saturating_sub(pending.claim().delivered);
        let asked_for = all
            .take_while(|pending| pending.id() <= self.end)
            .filter(|pending| self.min_idle_ms == 0 || idle_ms(pending) >= self.min_idle_ms)
            .take(self.count);
        let open = reply.begin_array();
        let mut written = 0usize;
        for pending in asked_for {
            reply.array(4);
            reply_id(reply, pending.id());
            reply.bulk(pending.owner());
            reply.integer(idle_ms(pending).max(0));
            reply.integer(pending.claim().deliveries as i64);
            check_reply(reply)?;
            written = written.saturating_add(1);
        }
        reply.end(open, written);
        Ok(())
    }
}

static XCLAIM: CommandSpec = CommandSpec {
    name: "xclaim",
    arity: -6,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::STREAM,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Makes a consumer the owner of entries that are pending for others, as if they were delivered to it.",
        since: "5.0.0",
        group: "stream",
        complexity: "O(log N) with N being the number of messages in the PEL of the consumer group.",
        tips: &["nondeterministic_output"],
        arguments: &[
            Argument::key("key", 0),
            Argument::string("group"),
            Argument::string("consumer"),
            Argument::string("min-idle-time"),
            Argument::string("id").repeated(),
            Argument::integer("ms").after("IDLE").optional(),
            Argument::unix_time("unix-time-milliseconds").after("TIME").optional(),
            Argument::integer("count").after("RETRYCOUNT").optional(),
            Argument::word("force", "FORCE").optional(),
            Argument::word("justid", "JUSTID").optional(),
            Argument::string("lastid").after("LASTID").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(xclaim),
};

fn xclaim(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, group) = (ctx.key(1), &ctx.args[2]);
    if !types::stream::has_group(ctx.ks, &key, group)? {
        return Err(no_group(&key, group));
    }
    let min_idle_ms = min_idle_ms(ctx, "ERR Invalid min-idle-time argument for XCLAIM")?;
    let ids: Vec<Id> = ctx.args.from(5).map_while(|text| stream_ids::parse(text, 0)).collect();
    let (options, just_ids) = claim_options(ctx, ids.len().saturating_add(5))?;
    let claimant = Claimant { group, consumer: &ctx.args[3], min_idle_ms, just_ids };
    let claimed = types::stream::claim(ctx.ks, &key, &claimant, &ids, &options)?;
    reply_claimed(ctx, &key, &claimed, just_ids)
}

/// The options after the ids, and whether only ids are asked for.
fn claim_options(ctx: &Ctx<'_>, from: usize) -> Result<(ClaimOptions, bool), Stop> {
    let mut options = ClaimOptions::default();
    let mut just_ids = false;
    let mut at = from;
    while at < ctx.args.len() {
        let value = at.saturating_add(1);
        let has_value = value < ctx.args.len();
        let number = |otherwise| types::string::parse_integer(&ctx.args[value]).ok_or(Stop::error(otherwise));
        let values = if ctx.is_word(at, "force") {
            options.force = true;
            0
        } else if ctx.is_word(at, "justid") {
            just_ids = true;
            0
        } else if has_value && ctx.is_word(at, "idle") {
            let idle_ms = number("ERR Invalid IDLE option argument for XCLAIM")?;
            options.delivered = Some(ctx.now().saturating_sub(idle_ms));
            1
        } else if has_value && ctx.is_word(at, "time") {
            options.delivered = Some(number("ERR Invalid TIME option argument for XCLAIM")?);
            1
        } else if has_value && ctx.is_word(at, "retrycount") {
            options.deliveries = u64::try_from(number("ERR Invalid RETRYCOUNT option argument for XCLAIM")?).ok();
            1
        } else if has_value && ctx.is_word(at, "lastid") {
            options.last = stream_ids::parse(&ctx.args[value], 0).ok_or(INVALID_ID)?;
            1
        } else {
            return Err(error::repeating("ERR Unrecognized XCLAIM option '", &ctx.args[at], "'"));
        };
        at = value.saturating_add(values);
    }
    Ok((options, just_ids))
}

fn min_idle_ms(ctx: &Ctx<'_>, otherwise: &'static str) -> Result<i64, Stop> {
    types::string::parse_integer(&ctx.args[4]).ok_or(Stop::error(otherwise))
}

/// Writes what was claimed, as ids or as entries.
fn reply_claimed(ctx: &mut Ctx<'_>, key: &Key<'_>, ids: &[Id], just_ids: bool) -> Result<(), Stop> {
    ctx.reply.array(ids.len());
    if just_ids {
        ids.iter().for_each(|id| reply_id(ctx.reply, *id));
    } else if let Some(stream) = types::stream::read_again(ctx.ks, key)? {
        let entries = ids.iter().filter_map(|id| stream.entry(*id));
        entries.for_each(|entry| reply_entry(ctx.reply, &entry));
    }
    Ok(())
}

static XAUTOCLAIM: CommandSpec = CommandSpec {
    name: "xautoclaim",
    arity: -6,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::STREAM,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Makes a consumer the owner of entries that have been pending for long, as if they were delivered to it.",
        since: "6.2.0",
        group: "stream",
        complexity: "O(1) if COUNT is small.",
        history: &[("7.0.0", "Gives also the ids that were pending and whose entries are gone.")],
        tips: &["nondeterministic_output"],
        arguments: &[
            Argument::key("key", 0),
            Argument::string("group"),
            Argument::string("consumer"),
            Argument::string("min-idle-time"),
            Argument::string("start"),
            Argument::integer("count").after("COUNT").optional(),
            Argument::word("justid", "JUSTID").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(xautoclaim),
};

/// Entries that XAUTOCLAIM claims at most by default.
const AUTO_CLAIM_COUNT: u64 = 100;
/// The highest COUNT it takes.
const AUTO_CLAIM_COUNT_MAX: u64 = i64::MAX as u64 / 16;

fn xautoclaim(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let min_idle_ms = min_idle_ms(ctx, "ERR Invalid min-idle-time argument for XAUTOCLAIM")?;
    let mut search = AutoClaim { start: stream_ids::start(ctx, 5)?, count: AUTO_CLAIM_COUNT };
    let mut just_ids = false;
    let mut at = 6usize;
    while at < ctx.args.len() {
        let value = at.saturating_add(1);
        if ctx.is_word(at, "count") && value < ctx.args.len() {
            let count = types::string::parse_integer(&ctx.args[value]).and_then(|count| u64::try_from(count).ok());
            let in_range = count.filter(|count| (1..=AUTO_CLAIM_COUNT_MAX).contains(count));
            search.count = in_range.ok_or(Stop::error("ERR COUNT must be > 0"))?;
            at = value;
        } else if ctx.is_word(at, "justid") {
            just_ids = true;
        } else {
            return Err(error::SYNTAX);
        }
        at = at.saturating_add(1);
    }
    let (key, group) = (ctx.key(1), &ctx.args[2]);
    if !types::stream::has_group(ctx.ks, &key, group)? {
        return Err(no_group(&key, group));
    }
    let claimant = Claimant { group, consumer: &ctx.args[3], min_idle_ms, just_ids };
    let outcome = types::stream::auto_claim(ctx.ks, &key, &claimant, search)?;
    ctx.reply.array(3);
    reply_id(ctx.reply, outcome.next);
    reply_claimed(ctx, &key, &outcome.claimed, just_ids)?;
    ctx.reply.array(outcome.gone.len());
    outcome.gone.iter().for_each(|id| reply_id(ctx.reply, *id));
    Ok(())
}
