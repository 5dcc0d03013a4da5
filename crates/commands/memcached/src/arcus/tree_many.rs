//! `bop mget` and `bop smget`: b+trees under several keys.

use super::UNREADABLE_REQUEST;
use super::tree_words::{bkey_text, put_element, put_line, query_of};
use crate::details;
use crate::tally::{self, Op, Outcome};
use command::work::steps::Work;
use command::{Ctx, Stop};
use engine::Key;
use proto::memcached::arcus::tree_grammar::take_query;
use proto::memcached::{Refusal, parse_unsigned};
use std::collections::HashSet;
use types::TypeError;
use types::attributed::{Element, Merge, MergeOutcome, Missed, Query, Snapshot, Tree, Trees, merge};

/// Where the keys begin.
const KEYS: usize = 2;

/// A request with several keys.
struct Request<'a> {
    count: usize,
    query: Query,
    mode: Option<&'a [u8]>,
}

impl<'a> Request<'a> {
    fn of(ctx: &Ctx<'a>) -> Result<Self, Stop> {
        let count = ctx.args.bytes(1).and_then(parse_unsigned).and_then(|count| usize::try_from(count).ok());
        let count = count.ok_or(UNREADABLE_REQUEST)?;
        let words: Vec<&'a [u8]> = ctx.args.from(count.saturating_add(KEYS)).collect();
        let (query, rest) = take_query(&words, 2).ok_or(UNREADABLE_REQUEST)?;
        Ok(Self { count, query: query_of(&query), mode: rest.first().copied() })
    }
}

/// The keys of a request with this many, from one of them on.
fn keys_of<'a>(ctx: &Ctx<'a>, from: usize, count: usize) -> impl Iterator<Item = Key<'a>> {
    (from..count).map(|index| ctx.key(index.saturating_add(KEYS)))
}

/// Elements that a request looks at in its turn: within a millisecond. For more, another thread makes the reply from
/// copies of small trees and shared big ones.
const ELEMENTS_MAX: u64 = 400;

/// Trees that are copied in a turn: in some tenths of a millisecond.
const COPIES_MAX: usize = 1000;

/// Names and trees as they were, each at a moment between the request and its reply.
#[derive(Default)]
struct Copies {
    trees: Vec<(Vec<u8>, Option<Snapshot>)>,
    bytes: usize,
}

/// Nothing is left to do but to copy more.
impl Work for Copies {
    fn step(&mut self) -> bool {
        false
    }

    fn held_bytes(&self) -> usize {
        self.bytes
    }
}

/// The lines that answer a request.
type Lines = Result<Vec<u8>, TypeError>;

/// The reply that `make` makes of all trees: now, or by another thread where there is much to look at.
fn answered(
    ctx: &mut Ctx<'_>,
    request: &Request<'_>,
    make: impl Fn(&mut dyn Trees) -> Lines + Send + 'static,
) -> Result<(), Stop> {
    let lines = match ctx.made_of_copies::<Lines>() {
        Some(lines) => lines?,
        None => {
            let begun = ctx.take_work::<Copies>();
            if begun.is_some() || (ctx.may_begin_work() && cost(ctx, request)? > ELEMENTS_MAX) {
                let copies = copy_more(ctx, request, begun.map(|begun| *begun).unwrap_or_default())?;
                return Err(ctx.make_of_copies(copies.bytes, move || make(&mut copies.trees.as_slice())));
            }
            let keys: Vec<Key<'_>> = keys_of(ctx, 0, request.count).collect();
            make(&mut (&mut *ctx.ks, keys.as_slice()))?
        }
    };
    ctx.reply.raw_shared(lines);
    Ok(())
}

/// How many elements the request looks at, or a little more than [`ELEMENTS_MAX`].
fn cost(ctx: &mut Ctx<'_>, request: &Request<'_>) -> Result<u64, Stop> {
    // Each key is worth an element, so what is under many keys need not be looked at.
    if request.count as u64 > ELEMENTS_MAX {
        return Ok(u64::MAX);
    }
    let mut cost = 0u64;
    // All rows are in memory before the reply begins.
    let keys: Vec<Key<'_>> = keys_of(ctx, 0, request.count).collect();
    for key in &keys {
        let Some(entry) = ctx.ks.peek_value(key)? else { continue };
        if cost <= ELEMENTS_MAX {
            cost = cost.saturating_add(Tree::of_entry(&entry).map_or(0, |tree| tree.cost(&request.query)).max(1));
        }
    }
    Ok(cost)
}

/// Copies the trees that are left, if they are few.
///
/// # Errors
/// Others are to be copied in a later turn.
fn copy_more(ctx: &mut Ctx<'_>, request: &Request<'_>, mut copies: Copies) -> Result<Copies, Stop> {
    let keys: Vec<Key<'_>> = keys_of(ctx, copies.trees.len(), request.count).take(COPIES_MAX).collect();
    for key in &keys {
        let copy = match ctx.ks.read(key) {
            Ok(entry) => entry.map(|entry| Snapshot::of(&entry)),
            Err(_) => return Err(ctx.keep_work(copies)),
        };
        let held = key.bytes.len().saturating_add(copy.as_ref().map_or(0, Snapshot::bytes));
        copies.bytes = copies.bytes.saturating_add(held);
        copies.trees.push((key.bytes.to_vec(), copy));
    }
    if copies.trees.len() < request.count { Err(ctx.pause(copies)) } else { Ok(copies) }
}

/// `bop mget`: what each tree has, in the order of the keys.
pub fn get_each(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let request = Request::of(ctx)?;
    let query = request.query.clone();
    answered(ctx, &request, move |trees| {
        let mut lines = Vec::new();
        for of in 0..trees.count() {
            let name = trees.name(of).to_vec();
            put_tree(&mut lines, &name, trees, of, &query)?;
        }
        put_line(&mut lines, &[b"END"]);
        Ok(lines)
    })?;
    note(ctx, Op::BopMget, &request);
    Ok(())
}

/// The lines of one tree.
fn put_tree(
    lines: &mut Vec<u8>,
    name: &[u8],
    trees: &mut dyn Trees,
    of: usize,
    query: &Query,
) -> Result<(), TypeError> {
    let mut is_there = false;
    let shown = trees.show(of, &mut |tree| {
        is_there = true;
        match look(tree, query) {
            Err(missed) => put_line(lines, &[b"VALUE", name, missed.as_bytes()]),
            Ok((flags, elements, is_trimmed)) => {
                let word = if is_trimmed { "TRIMMED" } else { "OK" };
                put_line(lines, &[b"VALUE", name, format!("{word} {flags} {}", elements.len()).as_bytes()]);
                elements.iter().for_each(|element| put_element(lines, &[b"ELEMENT"], element));
            }
        }
    });
    match shown {
        Ok(()) if is_there => {}
        Ok(()) => put_line(lines, &[b"VALUE", name, b"NOT_FOUND"]),
        Err(TypeError::WrongType) => put_line(lines, &[b"VALUE", name, b"TYPE_MISMATCH"]),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Counts the request, and each key as a `bop get`.
fn note(ctx: &Ctx<'_>, op: Op, request: &Request<'_>) {
    tally::count(ctx.stats, op, Outcome::Hit);
    if ctx.stats.outcomes.is_detailed() {
        keys_of(ctx, 0, request.count).for_each(|key| details::note(ctx, Op::BopGet, key.bytes, Some(Outcome::Hit)));
    }
}

/// Flags of a tree, its elements that are asked for, and whether others may have been dropped; or why there are none.
fn look<'k>(tree: &Tree<'k>, query: &Query) -> Result<(u32, Vec<Element<'k>>, bool), &'static str> {
    if !tree.attributes.is_readable {
        return Err("UNREADABLE");
    }
    if tree.is_passed_over(query) {
        return Err("NOT_FOUND_ELEMENT");
    }
    if !tree.takes(&query.range.from) {
        return Err("BKEY_MISMATCH");
    }
    let elements: Vec<Element<'k>> = tree.select(query).map(|(_, element)| element).collect();
    match (elements.is_empty(), tree.is_trimmed_in_answer(query, elements.len() as u64)) {
        (true, true) => Err("OUT_OF_RANGE"),
        (true, false) => Err("NOT_FOUND_ELEMENT"),
        (false, is_trimmed) => Ok((tree.flags, elements, is_trimmed)),
    }
}

/// What follows the query of `bop smget`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nothing, as older clients send it.
    Old,
    Duplicate,
    Unique,
}

/// `bop smget`: the elements of all trees in one order.
pub fn get_merged(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let request = Request::of(ctx)?;
    let mode = match request.mode {
        None => Mode::Old,
        Some(b"unique") => Mode::Unique,
        Some(_) => Mode::Duplicate,
    };
    let query = request.query.clone();
    answered(ctx, &request, move |trees| {
        if has_twins(trees) {
            return Ok(Refusal::Data.text().as_bytes().iter().chain(b"\r\n").copied().collect());
        }
        Ok(match merge(trees, &query, mode == Mode::Unique)? {
            MergeOutcome::OtherKind => b"BKEY_MISMATCH\r\n".to_vec(),
            MergeOutcome::Merged(merged) if mode == Mode::Old => merged_before(trees, &merged),
            MergeOutcome::Merged(merged) => merged_now(trees, &merged),
        })
    })?;
    note(ctx, Op::BopSmget, &request);
    Ok(())
}

/// Whether two trees have one name.
fn has_twins(trees: &dyn Trees) -> bool {
    let mut seen = HashSet::with_capacity(trees.count());
    !(0..trees.count()).all(|of| seen.insert(trees.name(of)))
}

fn put_elements(lines: &mut Vec<u8>, trees: &dyn Trees, merged: &Merge) {
    for found in &merged.elements {
        let element = Element { bkey: found.bkey, eflag: &found.eflag, data: &found.data };
        put_element(lines, &[trees.name(found.of), found.flags.to_string().as_bytes()], &element);
    }
}

fn put_count(lines: &mut Vec<u8>, word: &str, count: usize) {
    put_line(lines, &[word.as_bytes(), count.to_string().as_bytes()]);
}

fn merged_now(trees: &dyn Trees, merged: &Merge) -> Vec<u8> {
    let mut lines = Vec::new();
    put_count(&mut lines, "ELEMENTS", merged.elements.len());
    put_elements(&mut lines, trees, merged);
    put_count(&mut lines, "MISSED_KEYS", merged.missed.len());
    for (of, missed) in &merged.missed {
        let why: &[u8] = match missed {
            Missed::NoKey => b"NOT_FOUND",
            Missed::Unreadable => b"UNREADABLE",
            Missed::OutOfRange => b"OUT_OF_RANGE",
        };
        put_line(&mut lines, &[trees.name(*of), why]);
    }
    put_count(&mut lines, "TRIMMED_KEYS", merged.trimmed.len());
    for (of, edge) in &merged.trimmed {
        put_line(&mut lines, &[trees.name(*of), bkey_text(edge).as_bytes()]);
    }
    put_line(&mut lines, &[if merged.has_duplicates { b"DUPLICATED" } else { b"END" }]);
    lines
}

/// The reply to a request without a mode.
fn merged_before(trees: &dyn Trees, merged: &Merge) -> Vec<u8> {
    let mut lines = Vec::new();
    if merged.missed.iter().any(|(_, missed)| *missed == Missed::OutOfRange) {
        put_line(&mut lines, &[b"OUT_OF_RANGE"]);
        return lines;
    }
    put_count(&mut lines, "VALUE", merged.elements.len());
    put_elements(&mut lines, trees, merged);
    put_count(&mut lines, "MISSED_KEYS", merged.missed.len());
    merged.missed.iter().for_each(|(of, _)| put_line(&mut lines, &[trees.name(*of)]));
    let end: &[u8] = match (merged.has_duplicates, merged.trimmed.is_empty()) {
        (false, true) => b"END",
        (false, false) => b"TRIMMED",
        (true, true) => b"DUPLICATED",
        (true, false) => b"DUPLICATED_TRIMMED",
    };
    put_line(&mut lines, &[end]);
    lines
}
