//! MEMORY EXPLAIN: what keys cost, by their prefixes. Not a command of Redis or Valkey.

use crate::explanations::{Caller, Compression, Explanation, Explanations};
use crate::prefixes::{Explained, Grouping, Sums};
use command::blocking::{Awaited, Block};
use command::clients::Clients;
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop, error};
use proto::ReplyBuffer;
use std::sync::Arc;
use store::Store;
use store::compression::{TRIED, Tried};

/// Bytes of PREFIX.
const PREFIX_BYTES_MAX: usize = 512;
/// Parts of a key.
const DEPTH_MAX: i64 = 32;
/// What ends a part unless SEPARATOR says otherwise.
const SEPARATOR: u8 = b':';
/// The number of fields of a sample.
const SAMPLE_FIELDS: usize = 3 + TRIED.len();
/// What keys are listed under whose prefix is not.
const OTHER: &[u8] = b"(other)";

pub(crate) static MEMORY_EXPLAIN: CommandSpec = CommandSpec {
    name: "explain",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_MULTI),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Gives what the keys of the database cost, by their prefixes. A command of Onggi alone.",
        since: "0.1.0",
        group: "server",
        complexity: "O(N) where N is the number of keys in the database, in steps between other commands.",
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        arguments: &[
            Argument::string("prefix").after("PREFIX").optional(),
            Argument::integer("depth").after("DEPTH").optional(),
            Argument::string("separator").after("SEPARATOR").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(explain),
};

fn explain(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let grouping = grouping(ctx)?;
    let info = ctx.session.info.clone();
    let closer = ctx.host.find::<Clients>().and_then(Clients::closer);
    let caller = Caller { worker: info.worker(), client: info.id, closer };
    let store = ctx.host.part::<Arc<Store>>().clone();
    let explanation = Arc::new(Explanation::new(ctx.ks.space(), grouping, store, caller));
    ctx.host.part::<Arc<Explanations>>().add(&explanation);
    ctx.session.block = Some(Block::begin(&info, Awaited::Task(explanation), None));
    Ok(())
}

fn grouping(ctx: &Ctx<'_>) -> Result<Grouping, Stop> {
    let mut grouping = Grouping { prefix: Box::default(), depth: 1, separator: SEPARATOR };
    for at in (2..ctx.args.len()).step_by(2) {
        if at + 1 >= ctx.args.len() {
            return Err(error::SYNTAX);
        }
        let value = &ctx.args[at + 1];
        if ctx.is_word(at, "prefix") {
            if value.len() > PREFIX_BYTES_MAX {
                return Err(Stop::error("ERR PREFIX must not be longer than 512 bytes"));
            }
            grouping.prefix = value.into();
        } else if ctx.is_word(at, "depth") {
            let depth = Some(ctx.integer(at + 1)?).filter(|depth| (1..=DEPTH_MAX).contains(depth));
            let depth = depth.and_then(|depth| usize::try_from(depth).ok());
            grouping.depth = depth.ok_or(Stop::error("ERR DEPTH must be between 1 and 32"))?;
        } else if ctx.is_word(at, "separator") {
            let [separator] = value else { return Err(Stop::error("ERR SEPARATOR must be one byte")) };
            grouping.separator = *separator;
        } else {
            return Err(error::SYNTAX);
        }
    }
    Ok(grouping)
}

/// Writes the reply: all keys, and a map for each prefix.
pub(crate) fn reply(explained: &Explained, compression: &[Compression], duration_ms: u64, reply: &mut ReplyBuffer) {
    let Explained { total, groups, others } = explained;
    reply.map(8);
    integer(reply, "duration.ms", duration_ms);
    sums(reply, total);
    reply.bulk(b"prefixes");
    let has_others = others.keys > 0;
    reply.array(groups.len().saturating_add(usize::from(has_others)));
    for ((name, group), compression) in groups.iter().zip(compression) {
        prefix(reply, name, &group.sums, group.missed_bytes, compression);
    }
    if has_others {
        prefix(reply, OTHER, others, 0, &Compression::default());
    }
}

fn prefix(reply: &mut ReplyBuffer, name: &[u8], of: &Sums, missed_bytes: u64, compression: &Compression) {
    reply.map(11);
    reply.bulk(b"prefix");
    reply.bulk(name);
    sums(reply, of);
    integer(reply, "missed.bytes", missed_bytes);
    reply.bulk(b"largest");
    reply.array(of.largest.len());
    for (key, stored_bytes) in &of.largest {
        reply.array(2);
        reply.bulk(key);
        reply.integer(*stored_bytes as i64);
    }
    integer(reply, "compression.usec", compression.spent_ns / 1000);
    let Tried { values, bytes, stored_bytes, by_codec } = compression.tried;
    reply.bulk(b"sample");
    reply.map(SAMPLE_FIELDS);
    integer(reply, "keys", values);
    integer(reply, "logical.bytes", bytes);
    integer(reply, "stored.bytes", stored_bytes);
    for (codec, bytes) in TRIED.into_iter().zip(by_codec) {
        integer(reply, &format!("{codec}.bytes"), bytes);
    }
}

/// Six fields.
fn sums(reply: &mut ReplyBuffer, sums: &Sums) {
    integer(reply, "keys", sums.keys);
    integer(reply, "logical.bytes", sums.logical_bytes);
    integer(reply, "stored.bytes", sums.stored_bytes);
    integer(reply, "overhead.bytes", sums.overhead_bytes());
    integer(reply, "compressed.keys", sums.compressed);
    let percent = sums.ratio_percent();
    reply.bulk(b"ratio");
    reply.bulk(format!("{}.{:02}", percent / 100, percent % 100).as_bytes());
}

fn integer(reply: &mut ReplyBuffer, name: &str, value: u64) {
    reply.bulk(name.as_bytes());
    reply.integer(value as i64);
}
