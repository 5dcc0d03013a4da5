//! Lines of `bop`.

use super::super::line::Words;
use super::super::parser::{TOO_LONG, push};
use super::super::{Command, Progress, Refusal, parse_signed, parse_unsigned};
use super::Arcus;
use super::family::Family;
use super::grammar::{Removal, split_keys};
use super::line::{Read, Wrong, bare, create, may_create, with_element, words_block};
use super::tree_grammar::{
    has_eflag, parse_bkey, parse_count, parse_delta, parse_eflag_update, parse_hex, parse_order, parse_positions,
    take_query,
};
use crate::request::Arguments;

/// The most keys of one `bop mget`.
const MGET_KEYS_MAX: u64 = 200;
/// The most elements of each.
const MGET_COUNT_MAX: u64 = 50;
/// The most keys of one `bop smget`.
const SMGET_KEYS_MAX: u64 = 10_000;
/// The most elements of all.
const SMGET_COUNT_MAX: u64 = 2000;
/// The most neighbours that `bop pwg` gets on each side.
const NEIGHBOURS_MAX: u64 = 100;

/// The words after the key.
pub(super) fn read(name: &[u8], rest: &[&[u8]]) -> Result<Read, Wrong> {
    let behind = rest.get(1..).unwrap_or_default();
    let has_bkey = rest.first().is_some_and(|word| parse_bkey(word).is_some());
    match name {
        b"create" => create(Arcus::BopCreate, rest, Family::Tree),
        b"insert" => insert(Arcus::BopInsert, Arcus::BopInsertGetrim, rest, has_bkey),
        b"upsert" => insert(Arcus::BopUpsert, Arcus::BopUpsertGetrim, rest, has_bkey),
        b"update" => update(rest, has_bkey),
        b"delete" => bare(Arcus::BopDelete, ends_well(rest, 1, |words| Removal::of_delete(words).is_some())),
        b"get" => bare(Arcus::BopGet, ends_well(rest, 2, |words| Removal::of_read(words).is_some())),
        b"count" => bare(Arcus::BopCount, ends_well(rest, 0, |words| words.is_empty())),
        b"incr" => bare(Arcus::BopIncr, has_bkey && is_addition(behind)),
        b"decr" => bare(Arcus::BopDecr, has_bkey && is_addition(behind)),
        b"position" => {
            let is_right = matches!(rest, [_, order] if parse_order(order).is_some());
            bare(Arcus::BopPosition, has_bkey && is_right)
        }
        b"gbp" => {
            let is_right = |order, positions| parse_order(order).is_some() && parse_positions(positions).is_some();
            bare(Arcus::BopGbp, matches!(*rest, [order, positions] if is_right(order, positions)))
        }
        b"pwg" => neighbours(rest, has_bkey),
        _ => Err(Refusal::Format.into()),
    }
}

/// Whether a query, with at most `numbers_max` numbers, begins these words, and the rest is right.
fn ends_well(words: &[&[u8]], numbers_max: usize, is_right: impl Fn(&[&[u8]]) -> bool) -> bool {
    take_query(words, numbers_max).is_some_and(|(_, rest)| is_right(rest))
}

fn insert(plain: Arcus, getrim: Arcus, rest: &[&[u8]], has_bkey: bool) -> Result<Read, Wrong> {
    let (words, command) = match rest {
        [words @ .., b"getrim"] => (words, getrim),
        words => (words, plain),
    };
    let has_eflag = has_eflag(words.get(1..).unwrap_or_default());
    let is_eflag = !has_eflag || words.get(1).is_some_and(|word| parse_hex(word).is_some());
    let bytes = 1usize.saturating_add(usize::from(has_eflag));
    let is_right = has_bkey && is_eflag && may_create(words, bytes.saturating_add(1), Family::Tree);
    with_element(command, words, bytes, is_right)
}

fn update(rest: &[&[u8]], has_bkey: bool) -> Result<Read, Wrong> {
    let Some((bytes, before)) = rest.split_last().filter(|_| has_bkey) else { return Err(Refusal::Format.into()) };
    let is_right = parse_eflag_update(before.get(1..).unwrap_or_default()).is_some();
    match parse_signed(bytes) {
        Some(-1) => bare(Arcus::BopUpdateEflag, is_right),
        _ => with_element(Arcus::BopUpdate, rest, before.len(), is_right),
    }
}

/// `delta [initial [eflag]]`
fn is_addition(words: &[&[u8]]) -> bool {
    let has_delta = words.first().is_some_and(|word| parse_delta(word).is_some());
    has_delta
        && match words.get(1..).unwrap_or_default() {
            [] => true,
            [initial] => parse_unsigned(initial).is_some(),
            [initial, eflag] => parse_unsigned(initial).is_some() && parse_hex(eflag).is_some(),
            _ => false,
        }
}

/// `bkey order [count]`
fn neighbours(rest: &[&[u8]], has_bkey: bool) -> Result<Read, Wrong> {
    let has_order = rest.get(1).is_some_and(|order| parse_order(order).is_some());
    let count = match rest.get(2..).unwrap_or_default() {
        [] => Some(0),
        [count] => parse_count(count),
        _ => None,
    };
    match count.filter(|_| has_bkey && has_order) {
        Some(count) if count > NEIGHBOURS_MAX => Err(Refusal::TooManyNeighbours.into()),
        count => bare(Arcus::BopPwg, count.is_some()),
    }
}

/// Whether a line of the family names its keys in the block.
pub(super) fn names_keys(family: Family, name: &[u8]) -> bool {
    family == Family::Tree && matches!(name, b"mget" | b"smget")
}

/// `lenkeys numkeys query`: the words after the name.
pub(super) fn read_many(name: &[u8], rest: &[&[u8]], key_bytes_max: usize) -> Result<Read, Wrong> {
    let number = |index: usize| rest.get(index).and_then(|word| parse_count(word)).filter(|number| *number > 0);
    let (Some(bytes), Some(keys)) = (number(0), number(1)) else { return Err(Refusal::Format.into()) };
    let words = rest.get(2..).unwrap_or_default();
    let Some((query, behind)) = take_query(words, 2) else { return Err(Refusal::Format.into()) };
    let is_merged = name == b"smget";
    let (command, keys_max, count_max) = match is_merged {
        true => (Arcus::BopSmget, SMGET_KEYS_MAX, SMGET_COUNT_MAX),
        false => (Arcus::BopMget, MGET_KEYS_MAX, MGET_COUNT_MAX),
    };
    let is_right = match behind {
        [] => true,
        [b"duplicate" | b"unique"] => is_merged,
        _ => false,
    };
    if !is_right {
        return Err(Refusal::Format.into());
    }
    if query.count == 0 || query.count > count_max {
        return Err(Wrong { refusal: Refusal::BadValue, skipped: bytes.saturating_add(2) });
    }
    words_block(command, (bytes, keys), keys_max, key_bytes_max)
}

/// The request of a line with keys in its block: name, how many keys, the keys, the words of the query.
pub(super) fn request(
    command: Arcus,
    ((start, end), consumed): ((usize, usize), usize),
    input: &[u8],
    words: &Words,
    out: &mut Arguments,
) -> Progress {
    let block = input.get(start..end).unwrap_or_default();
    let mark = out.mark();
    let mut at = start;
    let keys = split_keys(block).map(|key| {
        let place = (at, at.saturating_add(key.len()));
        at = place.1.saturating_add(1);
        place
    });
    let name = (words.range(0).0, words.range(1).1);
    let rest = (4..words.len()).map(|index| words.range(index));
    match [name, words.range(3)].into_iter().chain(keys).chain(rest).all(|word| push(word, out)) {
        true => Progress::Request { command: Command::Arcus(command), consumed },
        false => {
            out.rewind(mark);
            Progress::Foreign { what: TOO_LONG }
        }
    }
}
