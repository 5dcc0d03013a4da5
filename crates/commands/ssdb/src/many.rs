//! Commands that look at many names, a step at a time.
//!
//! M1. Up to [`AT_ONCE`] names are looked at in one turn, at one moment, and under the locks of their shards alone.
//! M2. More are looked at in steps, and the worker serves others in between. Each step locks all shards, since to find
//!     those of all names would take as long as to read them. So the reply is of several moments, as it is in SSDB.
//! M3. Rows that a step lacks are asked for together.

use crate::pieces::{put_block, reply_packet};
use command::error::REPLY_TOO_LONG;
use command::limits::REPLY_BYTES_MAX;
use command::work::steps::Work;
use command::{Ctx, Stop};
use engine::{Key, Type};
use types::{hash, zset};

/// Names that are looked at in one turn.
pub const AT_ONCE: usize = 256;

/// Writes what a name's reply has.
type Put = fn(&mut Ctx<'_>, &Key<'_>, &mut Vec<u8>) -> Result<(), Stop>;

/// A request under way.
struct Many {
    /// The next argument.
    next: usize,
    /// The reply so far.
    packet: Vec<u8>,
}

impl Work for Many {
    /// Each run of the request is a step.
    fn step(&mut self) -> bool {
        false
    }

    fn held_bytes(&self) -> usize {
        self.packet.capacity()
    }
}

/// Answers for each name, a step in each run.
fn each(ctx: &mut Ctx<'_>, put: Put) -> Result<(), Stop> {
    let mut many = ctx.take_work::<Many>().map_or_else(
        || {
            let mut packet = Vec::new();
            put_block(&mut packet, b"ok");
            Many { next: 1, packet }
        },
        |many| *many,
    );
    let end = ctx.args.len().min(many.next.saturating_add(AT_ONCE));
    while many.next < end {
        let key = ctx.key(many.next);
        match put(ctx, &key, &mut many.packet) {
            Ok(()) => many.next = many.next.saturating_add(1),
            Err(Stop::Fetch) => {
                ask_for(ctx, many.next, end);
                return Err(ctx.keep_work(many));
            }
            Err(stop) => return Err(stop),
        }
        if many.packet.len() > REPLY_BYTES_MAX {
            return Err(REPLY_TOO_LONG);
        }
    }
    if many.next < ctx.args.len() {
        return Err(ctx.begin_work(many));
    }
    reply_packet(ctx, many.packet)
}

/// Asks for the rows of names, so that those that are missing come together.
fn ask_for(ctx: &mut Ctx<'_>, from: usize, end: usize) {
    for index in from..end {
        let key = ctx.key(index);
        // That it is missing is what it is asked for.
        let _ = ctx.ks.peek_value(&key);
    }
}

/// Why a request with few names stops at this one. If its row is missing, those of the names after it are asked for as
/// well.
pub fn stopped(ctx: &mut Ctx<'_>, index: usize, why: impl Into<Stop>) -> Stop {
    let stop = why.into();
    if matches!(stop, Stop::Fetch) {
        ask_for(ctx, index, ctx.args.len());
    }
    stop
}

/// Whether there is such a key.
pub fn is_string(ctx: &mut Ctx<'_>, key: &Key<'_>) -> Result<bool, Stop> {
    let is_there = ctx.ks.peek_head(key)?.is_some_and(|entry| entry.kind == Type::String);
    ctx.ks.count_peek(is_there);
    Ok(is_there)
}

/// `multi_get` of many keys.
pub fn multi_get(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    each(ctx, put_string)
}

/// `multi_exists` of many keys.
pub fn multi_exists(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    each(ctx, put_existence)
}

/// `multi_hsize` of many hashes.
pub fn multi_hsize(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    each(ctx, put_hash_len)
}

/// `multi_zsize` of many zsets.
pub fn multi_zsize(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    each(ctx, put_zset_len)
}

fn put_string(ctx: &mut Ctx<'_>, key: &Key<'_>, packet: &mut Vec<u8>) -> Result<(), Stop> {
    if let Some(entry) = ctx.ks.read(key)?.filter(|entry| entry.kind == Type::String) {
        put_block(packet, key.bytes);
        put_block(packet, entry.value.bytes());
    }
    Ok(())
}

fn put_existence(ctx: &mut Ctx<'_>, key: &Key<'_>, packet: &mut Vec<u8>) -> Result<(), Stop> {
    let is_there = is_string(ctx, key)?;
    put_number(packet, key, u64::from(is_there));
    Ok(())
}

fn put_hash_len(ctx: &mut Ctx<'_>, key: &Key<'_>, packet: &mut Vec<u8>) -> Result<(), Stop> {
    let len = hash::read(ctx.ks, key)?.len();
    put_number(packet, key, len as u64);
    Ok(())
}

fn put_zset_len(ctx: &mut Ctx<'_>, key: &Key<'_>, packet: &mut Vec<u8>) -> Result<(), Stop> {
    let len = zset::read(ctx.ks, key)?.map_or(0, |view| view.len());
    put_number(packet, key, len);
    Ok(())
}

fn put_number(packet: &mut Vec<u8>, key: &Key<'_>, number: u64) {
    put_block(packet, key.bytes);
    put_block(packet, number.to_string().as_bytes());
}
