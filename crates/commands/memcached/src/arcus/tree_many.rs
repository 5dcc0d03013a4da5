//! `bop mget` and `bop smget`: b+trees under several keys.

use super::UNREADABLE_REQUEST;
use super::tree_words::{bkey_text, element_line, query_of};
use crate::details;
use crate::tally::{self, Op, Outcome};
use command::{Ctx, Stop};
use engine::Key;
use proto::memcached::arcus::tree_grammar::take_query;
use proto::memcached::parse_unsigned;
use types::TypeError;
use types::attributed::{Element, Merge, MergeOutcome, Missed, Query, Tree, merge};

/// Where the keys begin.
const KEYS: usize = 2;

/// A request with several keys.
struct Request<'a> {
    keys: Vec<Key<'a>>,
    query: Query,
    mode: Option<&'a [u8]>,
}

impl<'a> Request<'a> {
    fn of(ctx: &Ctx<'a>) -> Result<Self, Stop> {
        let count = ctx.args.bytes(1).and_then(parse_unsigned).and_then(|count| usize::try_from(count).ok());
        let end = count.map(|count| count.saturating_add(KEYS)).ok_or(UNREADABLE_REQUEST)?;
        let keys = (KEYS..end).map(|index| ctx.key(index)).collect();
        let words: Vec<&'a [u8]> = ctx.args.from(end).collect();
        let (query, rest) = take_query(&words, 2).ok_or(UNREADABLE_REQUEST)?;
        Ok(Self { keys, query: query_of(&query), mode: rest.first().copied() })
    }
}

/// `bop mget`: what each tree has, in the order of the keys.
pub fn get_each(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Request { keys, query, .. } = Request::of(ctx)?;
    // All rows are in memory before the reply begins.
    for key in &keys {
        ctx.ks.peek(key)?;
    }
    for key in &keys {
        let entry = ctx.ks.read(key)?;
        let status = |status: &[u8]| [b"VALUE ", key.bytes, b" ", status].concat();
        let Some(entry) = entry else {
            ctx.reply.raw_line(&status(b"NOT_FOUND"));
            continue;
        };
        match look(&entry, &query) {
            Err(missed) => ctx.reply.raw_line(&status(missed.as_bytes())),
            Ok((flags, elements, is_trimmed)) => {
                let word = if is_trimmed { "TRIMMED" } else { "OK" };
                ctx.reply.raw_line(&status(format!("{word} {flags} {}", elements.len()).as_bytes()));
                elements.iter().for_each(|element| element_line(ctx.reply, &[b"ELEMENT"], element));
            }
        }
    }
    ctx.reply.text_line("END");
    note(ctx, Op::BopMget, &keys);
    Ok(())
}

/// Counts the request, and each key as a `bop get`.
fn note(ctx: &Ctx<'_>, op: Op, keys: &[Key<'_>]) {
    tally::count(ctx.stats, op, Outcome::Hit);
    if ctx.stats.outcomes.is_detailed() {
        keys.iter().for_each(|key| details::note(ctx, Op::BopGet, key.bytes, Some(Outcome::Hit)));
    }
}

/// Flags of a tree, its elements that are asked for, and whether others may have been dropped; or why there are none.
fn look<'k>(entry: &engine::Entry<'k>, query: &Query) -> Result<(u32, Vec<Element<'k>>, bool), &'static str> {
    let tree = match Tree::of_entry(entry) {
        Ok(tree) => tree,
        Err(TypeError::WrongType) => return Err("TYPE_MISMATCH"),
        Err(_) => return Err("NOT_FOUND"),
    };
    if !tree.attributes.is_readable {
        return Err("UNREADABLE");
    }
    if !tree.takes(&query.range.from) {
        return Err("BKEY_MISMATCH");
    }
    let elements: Vec<Element<'k>> = tree.select(query).map(|(_, element)| element).collect();
    match (elements.is_empty(), tree.is_trimmed_in(&query.range)) {
        (true, true) => Err("OUT_OF_RANGE"),
        (true, false) => Err("NOT_FOUND_ELEMENT"),
        (false, is_trimmed) => Ok((tree.flags, elements, is_trimmed)),
    }
}

/// `bop smget`: the elements of all trees in one order.
pub fn get_merged(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Request { keys, query, mode } = Request::of(ctx)?;
    let is_unique = mode == Some(b"unique");
    let merged = match merge(ctx.ks, &keys, &query, is_unique)? {
        MergeOutcome::OtherKind => {
            ctx.reply.text_line("BKEY_MISMATCH");
            return Ok(());
        }
        MergeOutcome::Merged(merged) => merged,
    };
    match mode {
        None => reply_old(ctx, &keys, &merged),
        Some(_) => reply_new(ctx, &keys, &merged),
    }
    note(ctx, Op::BopSmget, &keys);
    Ok(())
}

fn name<'k>(keys: &[Key<'k>], of: usize) -> &'k [u8] {
    keys.get(of).map_or(b"", |key| key.bytes)
}

fn elements(ctx: &mut Ctx<'_>, keys: &[Key<'_>], merged: &Merge) {
    for found in &merged.elements {
        let flags = found.flags.to_string();
        let element = Element { bkey: found.bkey, eflag: &found.eflag, data: &found.data };
        element_line(ctx.reply, &[name(keys, found.of), flags.as_bytes()], &element);
    }
}

fn reply_new(ctx: &mut Ctx<'_>, keys: &[Key<'_>], merged: &Merge) {
    ctx.reply.text_line(&format!("ELEMENTS {}", merged.elements.len()));
    elements(ctx, keys, merged);
    ctx.reply.text_line(&format!("MISSED_KEYS {}", merged.missed.len()));
    for (of, missed) in &merged.missed {
        let why: &[u8] = match missed {
            Missed::NoKey => b"NOT_FOUND",
            Missed::Unreadable => b"UNREADABLE",
            Missed::OutOfRange => b"OUT_OF_RANGE",
        };
        ctx.reply.words_line(&[name(keys, *of)], None, why);
    }
    ctx.reply.text_line(&format!("TRIMMED_KEYS {}", merged.trimmed.len()));
    for (of, edge) in &merged.trimmed {
        ctx.reply.words_line(&[name(keys, *of)], None, bkey_text(edge).as_bytes());
    }
    ctx.reply.text_line(if merged.has_duplicates { "DUPLICATED" } else { "END" });
}

/// The reply to a request without a mode, as older clients send it.
fn reply_old(ctx: &mut Ctx<'_>, keys: &[Key<'_>], merged: &Merge) {
    if merged.missed.iter().any(|(_, missed)| *missed == Missed::OutOfRange) {
        return ctx.reply.text_line("OUT_OF_RANGE");
    }
    ctx.reply.text_line(&format!("VALUE {}", merged.elements.len()));
    elements(ctx, keys, merged);
    ctx.reply.text_line(&format!("MISSED_KEYS {}", merged.missed.len()));
    merged.missed.iter().for_each(|(of, _)| ctx.reply.raw_line(name(keys, *of)));
    ctx.reply.text_line(match (merged.has_duplicates, merged.trimmed.is_empty()) {
        (false, true) => "END",
        (false, false) => "TRIMMED",
        (true, true) => "DUPLICATED",
        (true, false) => "DUPLICATED_TRIMMED",
    });
}
