//! Sorted sets with scores that are integers.

use crate::answer;
use crate::arguments::{self, WRONG_COUNT, refuse};
use crate::kv::clear;
use crate::many;
use base::double::DoubleText;
use base::integer::parse_integer;
use command::error::check_reply;
use command::spec::Look;
use command::{Ctx, Stop};
use proto::ReplyBuffer;
use types::zset::{self, Entry, Rule, View};

/// Scores are doubles, which hold each integer up to here.
const SCORE_MAX: i64 = 1 << 53;

/// A score that a client of Redis has set.
const NOT_INTEGER: Stop =
    Stop::error("error the score is not an integer: a client of Redis has set it, and it has to change it");

/// The argument at `index` as a score.
fn score(text: &[u8]) -> Result<f64, Stop> {
    let score = parse_integer(text).ok_or_else(|| refuse("give a score as an integer", text))?;
    exact(score).ok_or_else(|| refuse("give a score from -9007199254740992 to 9007199254740992", text))
}

/// The score as a double, if one is exactly that.
fn exact(score: i64) -> Option<f64> {
    (score.unsigned_abs() <= SCORE_MAX.unsigned_abs()).then_some(score as f64)
}

/// The integer that a score is.
pub fn whole(score: f64) -> Option<i64> {
    let is_whole = score.fract() == 0.0 && score.abs() <= SCORE_MAX as f64;
    is_whole.then_some(score as i64)
}

/// A score as a block: an integer, or a number with a fraction that a client of Redis has set.
pub fn put_score(reply: &mut ReplyBuffer, score: f64) {
    match whole(score) {
        Some(score) => reply.block_integer(score),
        None => reply.block(DoubleText::new(score).as_str().as_bytes()),
    }
}

/// A member and its score.
pub fn put_entry(reply: &mut ReplyBuffer, entry: &Entry<'_>) {
    reply.block(entry.member);
    put_score(reply, entry.score);
}

fn member<'a>(look: &Look<'a>) -> &'a [u8] {
    look.args.bytes(2).unwrap_or_default()
}

fn view<'a>(look: &Look<'a>) -> Result<Option<View<'a>>, Stop> {
    Ok(zset::of_entry(look.entry)?)
}

/// `zget name key`
pub fn zget(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    match view(look)?.and_then(|view| view.score(member(look))) {
        None => answer::bytes(reply, None),
        Some(score) => {
            answer::begin(reply);
            put_score(reply, score);
            reply.end_packet();
        }
    }
    Ok(())
}

/// `zexists name key`
pub fn zexists(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let score = view(look)?.and_then(|view| view.score(member(look)));
    answer::boolean(reply, score.is_some());
    Ok(())
}

/// `zsize name`, and `zfix name`: a size here is never wrong.
pub fn zsize(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    answer::count(reply, view(look)?.map_or(0, |view| view.len()));
    Ok(())
}

/// `zrank name key`
pub fn zrank(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let rank = view(look)?.and_then(|view| view.rank(member(look)));
    reply_rank(reply, rank.map(|(rank, _)| rank));
    Ok(())
}

/// `zrrank name key`
pub fn zrrank(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let from_end = |view: View<'_>| {
        let (rank, _) = view.rank(member(look))?;
        view.len().checked_sub(rank)?.checked_sub(1)
    };
    reply_rank(reply, view(look)?.and_then(from_end));
    Ok(())
}

fn reply_rank(reply: &mut ReplyBuffer, rank: Option<u64>) {
    match rank {
        None => answer::bytes(reply, None),
        Some(rank) => answer::count(reply, rank),
    }
}

/// `multi_zget name key ...`: those that are there.
pub fn multi_zget(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let view = view(look)?;
    answer::begin(reply);
    for member in look.args.from(2) {
        if let Some(score) = view.and_then(|view| view.score(member)) {
            put_entry(reply, &Entry { score, member });
        }
        check_reply(reply)?;
    }
    reply.end_packet();
    Ok(())
}

/// `multi_zexists name key ...`
pub fn multi_zexists(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let view = view(look)?;
    answer::begin(reply);
    for member in look.args.from(2) {
        let is_there = view.is_some_and(|view| view.score(member).is_some());
        reply.block(member);
        reply.block_integer(i64::from(is_there));
    }
    reply.end_packet();
    Ok(())
}

/// `multi_zsize name ...`
pub fn multi_zsize(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    answer::begin(ctx.reply);
    for index in 1..ctx.args.len() {
        let key = ctx.key(index);
        let len = zset::read(ctx.ks, &key).map(|view| view.map_or(0, |view| view.len()));
        let len = len.map_err(|error| many::stopped(ctx, index, error))?;
        ctx.reply.block(key.bytes);
        ctx.reply.block_integer(len.cast_signed());
    }
    ctx.reply.end_packet();
    Ok(())
}

/// `zset name key score`, and `multi_zset name key score ...`. Gives how many are new.
pub fn zset(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if !ctx.args.len().is_multiple_of(2) {
        return Err(WRONG_COUNT);
    }
    let (key, args) = (ctx.key(1), ctx.args);
    let entry = |index: usize| {
        let score = score(args.bytes(index.saturating_add(1)).unwrap_or_default())?;
        Ok(Entry { score, member: args.bytes(index).unwrap_or_default() })
    };
    let entries = (2..args.len()).step_by(2).map(entry).collect::<Result<Vec<_>, Stop>>()?;
    let added = zset::add(ctx.ks, &key, Rule::default(), &entries)?;
    answer::count(ctx.reply, added.added);
    Ok(())
}

/// `zdel name key`, and `multi_zdel name key ...`
pub fn zdel(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, args) = (ctx.key(1), ctx.args);
    let removed = zset::remove(ctx.ks, &key, args.from(2))?;
    answer::count(ctx.reply, removed);
    Ok(())
}

/// `zincr name key [number]`
pub fn zincr(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    add(ctx, false)
}

/// `zdecr name key [number]`
pub fn zdecr(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    add(ctx, true)
}

fn add(ctx: &mut Ctx<'_>, is_down: bool) -> Result<(), Stop> {
    let (key, by) = (ctx.key(1), arguments::step(&ctx.args, 3, is_down)?);
    let member = ctx.args.bytes(2).unwrap_or_default();
    let old = zset::read_to_edit(ctx.ks, &key)?.and_then(|view| view.score(member));
    let old = old.map_or(Some(0), whole).ok_or(NOT_INTEGER)?;
    let sum = old.checked_add(by).and_then(|sum| Some((sum, exact(sum)?)));
    let (sum, score) =
        sum.ok_or(Stop::error("error the score would be beyond 9007199254740992, the last exact one"))?;
    zset::add(ctx.ks, &key, Rule::default(), &[Entry { score, member }])?;
    answer::number(ctx.reply, sum);
    Ok(())
}

/// `zclear name`
pub fn zclear(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    clear(ctx, |ks, key| Ok(zset::read_to_edit(ks, key)?.map_or(0, |view| view.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_exact_or_refused() {
        for (text, expected) in [
            ("9007199254740992", Some(9_007_199_254_740_992.0)),
            ("-9007199254740992", Some(-9_007_199_254_740_992.0)),
            ("9007199254740993", None),
            ("-9223372036854775808", None),
            ("1.5", None),
            ("", None),
        ] {
            assert_eq!(score(text.as_bytes()).ok(), expected, "{text}");
        }
        for (score, expected) in [(1.5, None), (f64::INFINITY, None), (1e300, None), (-3.0, Some(-3))] {
            assert_eq!(whole(score), expected);
        }
    }
}
