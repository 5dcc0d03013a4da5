//! Queues: lists.

use crate::answer;
use crate::arguments::{integer, limit};
use crate::kv::clear;
use crate::pieces::reply_tree;
use crate::range::Range as Names;
use crate::walk;
use command::error::check_reply;
use command::spec::Look;
use command::{Ctx, Stop};
use engine::{Encoding, Key, SharedBig, Type, Value};
use proto::ReplyBuffer;
use std::ops::Range;
use types::list::{self, End, SetOutcome};
use value::list::View;

/// At most this many elements are written at once.
const WRITTEN_AT_ONCE_MAX: u64 = 128;

/// `qsize name`
pub fn qsize(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    answer::count(reply, list::of_entry(look.entry)?.map_or(0, |list| list.len()));
    Ok(())
}

/// `qfix name`: nothing here can be wrong.
pub fn qfix(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    list::of_entry(look.entry)?;
    answer::done(reply);
    Ok(())
}

/// `qfront name`
pub fn qfront(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    answer::bytes(reply, list::of_entry(look.entry)?.and_then(|list| list.first()));
    Ok(())
}

/// `qback name`
pub fn qback(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    answer::bytes(reply, list::of_entry(look.entry)?.and_then(|list| list.last()));
    Ok(())
}

/// `qget name index`
pub fn qget(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let index = integer(&look.args, 2)?;
    let list = list::of_entry(look.entry)?;
    answer::bytes(reply, list.as_ref().and_then(|list| list::element(list, index)));
    Ok(())
}

/// `qset name index item`
pub fn qset(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, index) = (ctx.key(1), integer(&ctx.args, 2)?);
    match list::set(ctx.ks, &key, index, ctx.args.bytes(3).unwrap_or_default())? {
        SetOutcome::Done => answer::done(ctx.reply),
        SetOutcome::NoKey | SetOutcome::OutOfRange => return Err(Stop::error("error index out of range")),
    }
    Ok(())
}

/// `qpush_front name item ...`
pub fn qpush_front(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    push(ctx, End::Head)
}

/// `qpush_back name item ...`, and `qpush`
pub fn qpush_back(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    push(ctx, End::Tail)
}

fn push(ctx: &mut Ctx<'_>, end: End) -> Result<(), Stop> {
    let (key, args) = (ctx.key(1), ctx.args);
    let len = list::push(ctx.ks, &key, end, args.from(2), false)?;
    answer::count(ctx.reply, len);
    Ok(())
}

/// `qpop_front name [size]`, and `qpop`
pub fn qpop_front(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    pop(ctx, End::Head)
}

/// `qpop_back name [size]`
pub fn qpop_back(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    pop(ctx, End::Tail)
}

/// The number of elements that the argument at 2 asks for; 1 without one.
fn size(ctx: &Ctx<'_>) -> Result<u64, Stop> {
    if ctx.args.len() > 2 { limit(&ctx.args, 2) } else { Ok(1) }
}

/// One element is an element or nothing, and several are a list.
fn pop(ctx: &mut Ctx<'_>, end: End) -> Result<(), Stop> {
    let (key, size) = (ctx.key(1), size(ctx)?);
    if size > WRITTEN_AT_ONCE_MAX
        && let Some(tree) = tree(ctx, &key)?
    {
        let len = view(&tree).len();
        let count = size.min(len);
        answer::begin(ctx.reply);
        ctx.ks.read_to_edit(&key)?;
        list::pop_many(ctx.ks, &key, end, count);
        return reply_tree(ctx, tree, 0..count as usize, move |stored, places, reply| {
            let list = View::of(Encoding::BIG, stored);
            let (from, count) = (places.start as u64, places.len());
            match end {
                End::Head => list.forward(from).take(count).for_each(|element| reply.block(element)),
                End::Tail => {
                    let last = len.saturating_sub(1).saturating_sub(from);
                    list.backward(last).take(count).for_each(|element| reply.block(element));
                }
            }
        });
    }
    let reply = &mut *ctx.reply;
    if size != 1 {
        answer::begin(reply);
    }
    let shown = list::pop(ctx.ks, &key, end, size, |_, elements| {
        elements.for_each(|element| match size {
            1 => answer::bytes(reply, Some(element)),
            _ => reply.block(element),
        });
    })?;
    match size {
        1 if shown.is_none() => answer::bytes(ctx.reply, None),
        1 => {}
        _ => ctx.reply.end_packet(),
    }
    Ok(())
}

/// `qtrim_front name [size]`
pub fn qtrim_front(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    trim(ctx, End::Head)
}

/// `qtrim_back name [size]`
pub fn qtrim_back(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    trim(ctx, End::Tail)
}

fn trim(ctx: &mut Ctx<'_>, end: End) -> Result<(), Stop> {
    let (key, size) = (ctx.key(1), size(ctx)?);
    let count = list::view(ctx.ks, &key)?.map_or(0, |list| list.len()).min(size);
    if count > 0 {
        list::pop_many(ctx.ks, &key, end, count);
    }
    answer::count(ctx.reply, count);
    Ok(())
}

/// `qclear name`
pub fn qclear(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    clear(ctx, |ks, key| Ok(list::len(ks, key)?))
}

/// `qslice name begin end`: both included, and negative ones counted from the end.
pub fn qslice(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (begin, end) = (integer(&ctx.args, 2)?, integer(&ctx.args, 3)?);
    give(ctx, |len| {
        let Some(start) = place(begin, len) else { return 0..0 };
        let end = if end < 0 { end.saturating_add_unsigned(len) } else { end };
        let end = u64::try_from(end).map_or(0, |end| end.saturating_add(1)).min(len);
        start..end.max(start)
    })
}

/// `qrange name offset limit`
pub fn qrange(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (begin, limit) = (integer(&ctx.args, 2)?, limit(&ctx.args, 3)?);
    give(ctx, |len| {
        let Some(start) = place(begin, len) else { return 0..0 };
        start..start.saturating_add(limit).min(len)
    })
}

/// Where a place counted from an end is; `None` where there is no element.
fn place(at: i64, len: u64) -> Option<u64> {
    let at = if at < 0 { at.checked_add_unsigned(len)? } else { at };
    u64::try_from(at).ok().filter(|at| *at < len)
}

/// Answers the elements at the places that `find` gives for a length.
fn give(ctx: &mut Ctx<'_>, find: impl FnOnce(u64) -> Range<u64>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let places = find(list::len(ctx.ks, &key)?);
    let count = places.end.saturating_sub(places.start);
    answer::begin(ctx.reply);
    if count > WRITTEN_AT_ONCE_MAX
        && let Some(tree) = tree(ctx, &key)?
    {
        let places = places.start as usize..places.end as usize;
        return reply_tree(ctx, tree, places, |stored, places, reply| {
            let list = View::of(Encoding::BIG, stored);
            list.forward(places.start as u64).take(places.len()).for_each(|element| reply.block(element));
        });
    }
    let reply = &mut *ctx.reply;
    if count > 0
        && let Some(list) = list::of_entry(ctx.ks.peek_value(&key)?.as_ref())?
    {
        list.forward(places.start).take(count as usize).for_each(|element| reply.block(element));
    }
    reply.end_packet();
    check_reply(reply)
}

/// The tree under the key, if what is there is a long list.
fn tree(ctx: &mut Ctx<'_>, key: &Key<'_>) -> Result<Option<SharedBig>, Stop> {
    let entry = ctx.ks.peek_value(key)?.filter(|entry| entry.kind == Type::List);
    Ok(entry.and_then(|entry| if let Value::Big(tree) = entry.value { Some(tree.clone()) } else { None }))
}

fn view(tree: &SharedBig) -> View<'_> {
    View::of(Encoding::BIG, value::Stored::Big(tree))
}

/// `qlist start end limit`
pub fn qlist(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let range = Names::parse(&ctx.args, 1, false)?;
    walk::names(ctx, Type::List, &range)
}

/// `qrlist start end limit`
pub fn qrlist(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let range = Names::parse(&ctx.args, 1, true)?;
    walk::names(ctx, Type::List, &range)
}
