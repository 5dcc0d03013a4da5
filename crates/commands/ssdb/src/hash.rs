//! Hashes.

use crate::answer;
use crate::arguments::{self, WRONG_COUNT};
use crate::kv::clear;
use crate::many;
use crate::pieces::{put_block, reply_packet};
use crate::range::{First, Range};
use crate::walk;
use command::error::{REPLY_TOO_LONG, check_reply};
use command::limits::REPLY_BYTES_MAX;
use command::spec::Look;
use command::work::thread::Operand;
use command::{Ctx, Stop};
use engine::{Type, Value};
use proto::ReplyBuffer;
use types::TypeError;
use types::hash::{self, Cell};
use value::Stored;
use value::hash::View;

/// `hget name field`
pub fn hget(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let cell = hash::of_entry(look.entry, look.now)?.get(look.args.bytes(2).unwrap_or_default());
    answer::bytes(reply, cell.map(|cell| cell.value));
    Ok(())
}

/// `hexists name field`
pub fn hexists(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let cell = hash::of_entry(look.entry, look.now)?.get(look.args.bytes(2).unwrap_or_default());
    answer::boolean(reply, cell.is_some());
    Ok(())
}

/// `hsize name`, and `hfix name`: a size here is never wrong.
pub fn hsize(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    answer::count(reply, hash::of_entry(look.entry, look.now)?.len() as u64);
    Ok(())
}

/// `multi_hget name field ...`: those that are there.
pub fn multi_hget(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let hash = hash::of_entry(look.entry, look.now)?;
    answer::begin(reply);
    for cell in look.args.from(2).filter_map(|field| hash.get(field)) {
        reply.block(cell.field);
        reply.block(cell.value);
        check_reply(reply)?;
    }
    reply.end_packet();
    Ok(())
}

/// `multi_hexists name field ...`
pub fn multi_hexists(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let hash = hash::of_entry(look.entry, look.now)?;
    answer::begin(reply);
    for field in look.args.from(2) {
        reply.block(field);
        reply.block_integer(i64::from(hash.get(field).is_some()));
    }
    reply.end_packet();
    Ok(())
}

/// `multi_hsize name ...`
pub fn multi_hsize(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    answer::begin(ctx.reply);
    for index in 1..ctx.args.len() {
        let key = ctx.key(index);
        let len = hash::read(ctx.ks, &key).map(|view| view.len());
        let len = len.map_err(|error| many::stopped(ctx, index, error))?;
        ctx.reply.block(key.bytes);
        ctx.reply.block_integer(len as i64);
    }
    ctx.reply.end_packet();
    Ok(())
}

/// `hset name field value`, and `multi_hset name field value ...`
pub fn hset(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if !ctx.args.len().is_multiple_of(2) {
        return Err(WRONG_COUNT);
    }
    let (key, args) = (ctx.key(1), ctx.args);
    let at = move |index: usize| args.bytes(index).unwrap_or_default();
    let pairs = (2..args.len()).step_by(2).map(move |index| (at(index), at(index.saturating_add(1))));
    let new = hash::set_all(ctx.ks, &key, pairs)?;
    answer::count(ctx.reply, new as u64);
    Ok(())
}

/// `hdel name field`, and `multi_hdel name field ...`
pub fn hdel(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, args) = (ctx.key(1), ctx.args);
    let deleted = hash::delete_all(ctx.ks, &key, args.from(2))?;
    answer::count(ctx.reply, deleted as u64);
    Ok(())
}

/// `hincr name field [number]`
pub fn hincr(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    add(ctx, false)
}

/// `hdecr name field [number]`
pub fn hdecr(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    add(ctx, true)
}

fn add(ctx: &mut Ctx<'_>, is_down: bool) -> Result<(), Stop> {
    let (key, by) = (ctx.key(1), arguments::step(&ctx.args, 3, is_down)?);
    let sum =
        hash::increment(ctx.ks, &key, ctx.args.bytes(2).unwrap_or_default(), by).map_err(|error| match error {
            TypeError::FieldNotInteger => command::error::NOT_INTEGER,
            other => other.into(),
        })?;
    answer::number(ctx.reply, sum);
    Ok(())
}

/// `hclear name`
pub fn hclear(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    clear(ctx, |ks, key| Ok(hash::peek(ks, key)?.len() as u64))
}

/// What is given of each field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Field,
    Value,
    Both,
}

/// `hgetall name`
pub fn hgetall(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    fields(ctx, &Range::ALL, Shown::Both)
}

/// `hscan name start end limit`
pub fn hscan(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let range = Range::parse(&ctx.args, 2, false)?;
    fields(ctx, &range, Shown::Both)
}

/// `hrscan name start end limit`
pub fn hrscan(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let range = Range::parse(&ctx.args, 2, true)?;
    fields(ctx, &range, Shown::Both)
}

/// `hkeys name start end limit`
pub fn hkeys(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let range = Range::parse(&ctx.args, 2, false)?;
    fields(ctx, &range, Shown::Field)
}

/// `hvals name start end limit`
pub fn hvals(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let range = Range::parse(&ctx.args, 2, false)?;
    fields(ctx, &range, Shown::Value)
}

/// Fields in the order of their bytes, which is not that of the hash: of a big one, another thread selects them.
fn fields(ctx: &mut Ctx<'_>, range: &Range<'_>, shown: Shown) -> Result<(), Stop> {
    let (key, now) = (ctx.key(1), ctx.now());
    let tree = match ctx.ks.peek_value(&key)? {
        Some(entry) if entry.kind == Type::Hash => match entry.value {
            Value::Big(tree) => Some((entry.encoding, tree.clone())),
            _ => None,
        },
        _ => None,
    };
    let packet = match tree {
        None => first(hash::read(ctx.ks, &key)?.iter(), range, shown),
        Some((encoding, tree)) => {
            let (start, end) = range.ends();
            let (start, end, range) = (start.to_vec(), end.to_vec(), range.without_ends());
            let operand = Operand::Tree(tree.clone());
            let packet = ctx.made_elsewhere(operand, move || {
                let cells = View::of(encoding, Stored::Big(&tree)).iter().filter(|cell| !cell.is_due(now));
                first(cells, &range.between(&start, &end), shown)
            })?;
            // A client's read.
            ctx.ks.read(&key)?;
            packet
        }
    };
    reply_packet(ctx, packet.ok_or(REPLY_TOO_LONG)?)
}

/// The first fields of the range as a reply; `None` when it is too long.
fn first<'a>(cells: impl Iterator<Item = Cell<'a>>, range: &Range<'_>, shown: Shown) -> Option<Vec<u8>> {
    let mut first = First::new(range.limit, range.is_reversed);
    for cell in cells.filter(|cell| range.contains(cell.field)) {
        let item = (cell.field, cell.value);
        if first.wants(&item) {
            first.push(item);
        }
    }
    let mut packet = Vec::new();
    put_block(&mut packet, b"ok");
    for (field, value) in first.into_first() {
        if shown != Shown::Value {
            put_block(&mut packet, field);
        }
        if shown != Shown::Field {
            put_block(&mut packet, value);
        }
        if packet.len() > REPLY_BYTES_MAX {
            return None;
        }
    }
    Some(packet)
}

/// `hlist start end limit`
pub fn hlist(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let range = Range::parse(&ctx.args, 1, false)?;
    walk::names(ctx, Type::Hash, &range)
}

/// `hrlist start end limit`
pub fn hrlist(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let range = Range::parse(&ctx.args, 1, true)?;
    walk::names(ctx, Type::Hash, &range)
}
