//! Ranges of sorted sets, by score and member or by rank.

use crate::answer;
use crate::arguments::{integer, limit};
use crate::pieces::reply_tree;
use crate::range::Range as Names;
use crate::walk;
use crate::zset::{put_entry, whole};
use command::error::check_reply;
use command::work::thread::Operand;
use command::{Args, Ctx, Stop};
use engine::{Key, SharedBig, Type, Value};
use proto::ReplyBuffer;
use std::ops::Range;
use types::zset::{self, End, Entry, Removing, View};
use value::Stored;

/// At most this many entries are written at once.
const WRITTEN_AT_ONCE_MAX: u64 = 128;

const NOT_INTEGERS: Stop =
    Stop::error("error a score in the range is not an integer: a client of Redis has set it, and it has to change it");

/// A range of entries in the order of scores, and of members where scores are equal.
struct Asked<'a> {
    /// The entry before the range, or the score that it begins with when there is no member.
    member: &'a [u8],
    start: Option<f64>,
    /// The score of the last entries.
    end: Option<f64>,
    is_reversed: bool,
    offset: u64,
    limit: u64,
}

/// The score in the argument at `index`; none when it is empty.
fn bound(args: &Args<'_>, index: usize) -> Result<Option<f64>, Stop> {
    match args.bytes(index) {
        None | Some(b"") => Ok(None),
        Some(_) => Ok(Some(integer(args, index)? as f64)),
    }
}

impl<'a> Asked<'a> {
    /// `name key_start score_start score_end [offset] limit`
    fn scan(args: &Args<'a>, is_reversed: bool) -> Result<Self, Stop> {
        let (start, end) = (bound(args, 3)?, bound(args, 4)?);
        let (offset, limit) = match args.len() > 6 {
            true => (limit(args, 5)?, limit(args, 6)?),
            false => (0, limit(args, 5)?),
        };
        Ok(Self { member: args.bytes(2).unwrap_or_default(), start, end, is_reversed, offset, limit })
    }

    /// `name score_start score_end`
    fn scores(args: &Args<'a>) -> Result<Self, Stop> {
        let (start, end) = (bound(args, 2)?, bound(args, 3)?);
        Ok(Self { member: b"", start, end, is_reversed: false, offset: 0, limit: u64::MAX })
    }

    /// The ranks of its entries.
    fn ranks(&self, view: &View<'_>) -> Range<u64> {
        let Self { member, end, is_reversed, .. } = *self;
        // A member alone is one with its score.
        let own = || if member.is_empty() { None } else { view.score(member) };
        let start = self.start.or_else(own);
        let ranks = if is_reversed {
            let to = match start {
                None => view.len(),
                Some(score) if member.is_empty() => view.count_before(|entry| entry.score <= score),
                Some(score) => view.count_before(|entry| is_below(entry, score, member)),
            };
            end.map_or(0, |score| view.count_before(|entry| entry.score < score))..to
        } else {
            let is_first = |score| !member.is_empty() && view.score(member) == Some(score);
            let from = match start {
                None => 0,
                Some(score) => {
                    let before = view.count_before(|entry| is_below(entry, score, member));
                    before.saturating_add(u64::from(is_first(score)))
                }
            };
            from..end.map_or(view.len(), |score| view.count_before(|entry| entry.score <= score))
        };
        part(ranks, is_reversed, self.offset, self.limit)
    }
}

fn is_below(entry: &Entry<'_>, score: f64, member: &[u8]) -> bool {
    entry.score < score || entry.score == score && entry.member < member
}

/// `limit` ranks after the first `offset`; both are counted from the end when they are reversed.
fn part(ranks: Range<u64>, is_reversed: bool, offset: u64, limit: u64) -> Range<u64> {
    let Range { start, end } = ranks;
    match is_reversed {
        false => {
            let from = start.saturating_add(offset).min(end);
            from..from.saturating_add(limit).min(end).max(from)
        }
        true => {
            let to = end.saturating_sub(offset).max(start.min(end));
            to.saturating_sub(limit).max(start.min(to))..to
        }
    }
}

fn len(ranks: &Range<u64>) -> u64 {
    ranks.end.saturating_sub(ranks.start)
}

/// Writes some of these entries, counted from the first that is given.
fn write(
    view: &View<'_>,
    ranks: &Range<u64>,
    is_reversed: bool,
    places: Range<usize>,
    mut each: impl FnMut(&Entry<'_>),
) {
    let (from, count) = (places.start as u64, places.len());
    if count == 0 {
        return;
    }
    match is_reversed {
        false => view.forward(ranks.start.saturating_add(from)).take(count).for_each(|entry| each(&entry)),
        true => {
            let last = ranks.end.saturating_sub(1).saturating_sub(from);
            view.backward(last).take(count).for_each(|entry| each(&entry));
        }
    }
}

/// Answers the entries whose ranks `find` gives.
fn give(
    ctx: &mut Ctx<'_>,
    is_reversed: bool,
    find: impl FnOnce(&View<'_>) -> Range<u64>,
    put: fn(&mut ReplyBuffer, &Entry<'_>),
) -> Result<(), Stop> {
    let key = ctx.key(1);
    answer::begin(ctx.reply);
    let reply = &mut *ctx.reply;
    let Some(view) = zset::read(ctx.ks, &key)? else {
        reply.end_packet();
        return Ok(());
    };
    let ranks = find(&view);
    let count = len(&ranks) as usize;
    if len(&ranks) <= WRITTEN_AT_ONCE_MAX {
        write(&view, &ranks, is_reversed, 0..count, |entry| put(reply, entry));
        reply.end_packet();
        return check_reply(reply);
    }
    match tree(ctx, &key)? {
        Some(tree) => reply_tree(ctx, tree, 0..count, move |stored, places, reply| {
            write(&View::of(stored), &ranks, is_reversed, places, |entry| put(reply, entry));
        }),
        None => {
            let reply = &mut *ctx.reply;
            if let Some(view) = zset::read_to_edit(ctx.ks, &key)? {
                write(&view, &ranks, is_reversed, 0..count, |entry| put(reply, entry));
            }
            reply.end_packet();
            check_reply(reply)
        }
    }
}

/// The tree under the key, if what is there is a big sorted set.
fn tree(ctx: &mut Ctx<'_>, key: &Key<'_>) -> Result<Option<SharedBig>, Stop> {
    let entry = ctx.ks.peek_value(key)?.filter(|entry| entry.kind == Type::Zset);
    Ok(entry.and_then(|entry| if let Value::Big(tree) = entry.value { Some(tree.clone()) } else { None }))
}

fn put_member(reply: &mut ReplyBuffer, entry: &Entry<'_>) {
    reply.block(entry.member);
}

/// `zscan name key_start score_start score_end [offset] limit`
pub fn zscan(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let asked = Asked::scan(&ctx.args, false)?;
    give(ctx, false, |view| asked.ranks(view), put_entry)
}

/// `zrscan name key_start score_start score_end [offset] limit`
pub fn zrscan(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let asked = Asked::scan(&ctx.args, true)?;
    give(ctx, true, |view| asked.ranks(view), put_entry)
}

/// `zkeys name key_start score_start score_end limit`
pub fn zkeys(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let asked = Asked::scan(&ctx.args, false)?;
    give(ctx, false, |view| asked.ranks(view), put_member)
}

/// `zrange name offset limit`
pub fn zrange(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    by_rank(ctx, false)
}

/// `zrrange name offset limit`
pub fn zrrange(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    by_rank(ctx, true)
}

fn by_rank(ctx: &mut Ctx<'_>, is_reversed: bool) -> Result<(), Stop> {
    let (offset, limit) = (limit(&ctx.args, 2)?, limit(&ctx.args, 3)?);
    give(ctx, is_reversed, |view| part(0..view.len(), is_reversed, offset, limit), put_entry)
}

/// `zcount name score_start score_end`
pub fn zcount(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, asked) = (ctx.key(1), Asked::scores(&ctx.args)?);
    let count = zset::read(ctx.ks, &key)?.map_or(0, |view| len(&asked.ranks(&view)));
    answer::count(ctx.reply, count);
    Ok(())
}

/// `zsum name score_start score_end`
pub fn zsum(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (sum, _) = sum(ctx)?;
    let sum = i64::try_from(sum).map_err(|_| Stop::error("error the sum has more than 64 bits"))?;
    answer::number(ctx.reply, sum);
    Ok(())
}

/// `zavg name score_start score_end`
pub fn zavg(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (sum, count) = sum(ctx)?;
    let average = if count == 0 { "nan".to_owned() } else { format!("{:.6}", sum as f64 / count as f64) };
    answer::bytes(ctx.reply, Some(average.as_bytes()));
    Ok(())
}

/// The sum of the scores of a range, and how many they are. Of a big set another thread adds them.
fn sum(ctx: &mut Ctx<'_>) -> Result<(i128, u64), Stop> {
    let (key, asked) = (ctx.key(1), Asked::scores(&ctx.args)?);
    let Some(view) = zset::read(ctx.ks, &key)? else { return Ok((0, 0)) };
    let ranks = asked.ranks(&view);
    let sum = match tree(ctx, &key)? {
        Some(tree) => {
            let (operand, ranks) = (Operand::Tree(tree.clone()), ranks.clone());
            ctx.made_elsewhere(operand, move || sum_of(&View::of(Stored::Big(&tree)), &ranks))?
        }
        None => zset::read_to_edit(ctx.ks, &key)?.and_then(|view| sum_of(&view, &ranks)),
    };
    Ok((sum.ok_or(NOT_INTEGERS)?, len(&ranks)))
}

/// The sum of these scores; `None` when one is no integer.
fn sum_of(view: &View<'_>, ranks: &Range<u64>) -> Option<i128> {
    let mut sum = Some(0i128);
    write(view, ranks, false, 0..len(ranks) as usize, |entry| {
        sum = sum.and_then(|sum| sum.checked_add(i128::from(whole(entry.score)?)));
    });
    sum
}

/// `zremrangebyscore name score_start score_end`
pub fn zremrangebyscore(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let asked = Asked::scores(&ctx.args)?;
    let count = remove(ctx, |view| asked.ranks(view), "zremrangebyscore")?;
    answer::count(ctx.reply, count);
    Ok(())
}

/// `zremrangebyrank name start end`
pub fn zremrangebyrank(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (start, end) = (integer(&ctx.args, 2)?, integer(&ctx.args, 3)?);
    let range = zset::Range::Rank { start, end };
    let count = remove(ctx, |view| range.ranks(view, false), "zremrangebyrank")?;
    answer::count(ctx.reply, count);
    Ok(())
}

/// Removes the ranks that `find` gives; of a big set, what is left is made in steps before.
fn remove(ctx: &mut Ctx<'_>, find: impl FnOnce(&View<'_>) -> Range<u64>, event: &'static str) -> Result<u64, Stop> {
    let key = ctx.key(1);
    let Some(view) = zset::read_to_edit(ctx.ks, &key)? else { return Ok(0) };
    let (ranks, all) = (find(&view), view.len());
    let count = len(&ranks);
    if count == 0 {
        return Ok(0);
    }
    if count == all {
        zset::remove_all(ctx.ks, &key, event);
        return Ok(count);
    }
    match removing(ctx, &key, &ranks)? {
        Some(removing) => zset::remove_ranks_made(ctx.ks, &key, *removing, event),
        None => {
            let end = |rank: u64| i64::try_from(rank).unwrap_or(i64::MAX);
            let range = zset::Range::Rank { start: end(ranks.start), end: end(ranks.end.saturating_sub(1)) };
            zset::remove_range(ctx.ks, &key, &range)?;
        }
    }
    Ok(count)
}

/// The removal of many ranks of a tree, prepared; `None` when it is to be done at once.
fn removing(ctx: &mut Ctx<'_>, key: &Key<'_>, ranks: &Range<u64>) -> Result<Option<Box<Removing>>, Stop> {
    let Some(tree) = tree(ctx, key)? else { return Ok(None) };
    let prepared = ctx.take_work::<Removing>().filter(|removing| removing.is_of(&tree, ranks));
    if prepared.is_some() || !ctx.may_begin_work() {
        return Ok(prepared);
    }
    match Removing::begin(&tree, ranks.clone()) {
        Some(removing) => Err(ctx.begin_work(removing)),
        None => Ok(None),
    }
}

/// `zpop_front name limit`
pub fn zpop_front(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    pop(ctx, End::Min)
}

/// `zpop_back name limit`
pub fn zpop_back(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    pop(ctx, End::Max)
}

fn pop(ctx: &mut Ctx<'_>, end: End) -> Result<(), Stop> {
    let (key, limit) = (ctx.key(1), limit(&ctx.args, 2)?);
    let is_reversed = end == End::Max;
    let Some(view) = zset::read_to_edit(ctx.ks, &key)? else {
        answer::done(ctx.reply);
        return Ok(());
    };
    let ranks = part(0..view.len(), is_reversed, 0, limit);
    let count = len(&ranks) as usize;
    answer::begin(ctx.reply);
    let event = if is_reversed { "zpopmax" } else { "zpopmin" };
    let before = tree(ctx, &key)?.filter(|_| len(&ranks) > WRITTEN_AT_ONCE_MAX);
    if let Some(tree) = before {
        remove(ctx, |_| ranks.clone(), event)?;
        return reply_tree(ctx, tree, 0..count, move |stored, places, reply| {
            write(&View::of(stored), &ranks, is_reversed, places, |entry| put_entry(reply, entry));
        });
    }
    let reply = &mut *ctx.reply;
    if let Some(view) = zset::read_to_edit(ctx.ks, &key)? {
        write(&view, &ranks, is_reversed, 0..count, |entry| put_entry(reply, entry));
    }
    remove(ctx, |_| ranks.clone(), event)?;
    ctx.reply.end_packet();
    Ok(())
}

/// `zlist start end limit`
pub fn zlist(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let range = Names::parse(&ctx.args, 1, false)?;
    walk::names(ctx, Type::Zset, &range)
}

/// `zrlist start end limit`
pub fn zrlist(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let range = Names::parse(&ctx.args, 1, true)?;
    walk::names(ctx, Type::Zset, &range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_from_where_the_range_begins() {
        for (offset, limit, forward, reversed) in [
            (0, u64::MAX, 10..20, 10..20),
            (2, 3, 12..15, 15..18),
            (15, 1, 20..20, 10..10),
            (0, 0, 10..10, 20..20),
            (u64::MAX, u64::MAX, 20..20, 10..10),
        ] {
            assert_eq!(part(10..20, false, offset, limit), forward, "{offset} {limit}");
            assert_eq!(part(10..20, true, offset, limit), reversed, "{offset} {limit}, reversed");
        }
        assert_eq!(len(&part(Range { start: 5, end: 3 }, false, 0, 9)), 0);
        assert_eq!(len(&part(Range { start: 5, end: 3 }, true, 0, 9)), 0);
    }
}
