//! `bop`: b+trees under one key.

use super::tree_words::{Head, Lines, bkey_of, bytes_of, element_line, put_element, query_of, update_of};
use super::{Request, UNREADABLE_REQUEST, create as create_any, limits, long_queries, removal_of, value_line};
use crate::tally::Op;
use command::work::steps::Work;
use command::{Ctx, Stop};
use engine::Type;
use proto::memcached::arcus::Family;
use proto::memcached::arcus::grammar::Removal;
use proto::memcached::arcus::tree_grammar::{
    has_eflag, parse_bkey, parse_count, parse_delta, parse_eflag_update, parse_hex, parse_order, parse_positions,
    take_query,
};
use proto::memcached::parse_unsigned;
use types::attributed::{
    self, Added, Answer, Bkey, Btree, ByteKey, Element, Put, Query, Snapshot, Taken, Taking, Tree, Upsert,
};

const OTHER_KIND: &str = "BKEY_MISMATCH";
const NOT_NUMERIC: Stop = Stop::error("CLIENT_ERROR cannot increment or decrement non-numeric value");

/// `bop create key attributes`
pub fn create(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    create_any(ctx, Family::Tree)
}

/// `bop insert key bkey [eflag] [create attributes]`
pub fn insert(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    put(ctx, Upsert::No, false)
}

/// `bop upsert key bkey [eflag] [create attributes]`
pub fn upsert(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    put(ctx, Upsert::Yes, false)
}

/// [`insert`] with `getrim`: shows the element that was dropped for the new one.
pub fn insert_getrim(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    put(ctx, Upsert::No, true)
}

/// [`upsert`] with `getrim`.
pub fn upsert_getrim(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    put(ctx, Upsert::Yes, true)
}

fn put(ctx: &mut Ctx<'_>, upsert: Upsert, is_getrim: bool) -> Result<(), Stop> {
    let Some(mut request) = Request::of(ctx, Op::BopInsert) else { return Ok(()) };
    if is_getrim {
        request.words.pop();
    }
    let bkey = bkey_word(request.word(0))?;
    let has_eflag = has_eflag(request.words_from(1));
    let eflag = if has_eflag { parse_hex(request.word(1)).ok_or(UNREADABLE_REQUEST)? } else { Vec::new() };
    let new = request.created(ctx, if has_eflag { 2 } else { 1 }, Family::Tree)?;
    let element = Element { bkey, eflag: &eflag, data: request.block };
    let allowed = limits::allowed(ctx.host, Type::Btree);
    let (put, trimmed) = Btree(&request.key).insert(ctx.ks, &element, upsert, new.as_ref(), allowed)?;
    match trimmed.filter(|_| is_getrim) {
        Some(gone) => {
            value_line(ctx.reply, gone.flags, 1);
            element_line(ctx.reply, &[], &Element { bkey: gone.bkey, eflag: &gone.eflag, data: &gone.data });
            request.answer(ctx, "TRIMMED")
        }
        None => answer_put(&request, ctx, put),
    }
}

fn answer_put(request: &Request<'_>, ctx: &mut Ctx<'_>, put: Put) -> Result<(), Stop> {
    match put {
        Put::Added(added) => request.answer_added(ctx, added),
        Put::OtherKind => request.answer(ctx, OTHER_KIND),
        Put::EflagMismatch => request.answer(ctx, "EFLAG_MISMATCH"),
        Put::NotNumeric => Err(NOT_NUMERIC),
    }
}

/// `bop update key bkey [eflag update]` with data.
pub fn update(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    change(ctx, true)
}

/// `bop update key bkey [eflag update] -1`
pub fn update_eflag(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    change(ctx, false)
}

fn change(ctx: &mut Ctx<'_>, has_data: bool) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::BopUpdate) else { return Ok(()) };
    let bkey = bkey_word(request.word(0))?;
    // Without data the word that says so is still there.
    let words = request.words_from(1);
    let words = if has_data { words } else { words.split_last().map_or(words, |(_, words)| words) };
    if words.is_empty() && !has_data {
        return request.answer(ctx, "NOTHING_TO_UPDATE");
    }
    let eflag = update_of(&parse_eflag_update(words).ok_or(UNREADABLE_REQUEST)?);
    let data = has_data.then_some(request.block);
    match Btree(&request.key).update(ctx.ks, &bkey, eflag, data)? {
        Put::Added(Added::Replaced) => request.answer(ctx, "UPDATED"),
        put => answer_put(&request, ctx, put),
    }
}

/// `bop delete key range [filter] [count] [drop]`
pub fn delete(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::BopDelete) else { return Ok(()) };
    let (query, rest) = take_query(&request.words, 1).ok_or(UNREADABLE_REQUEST)?;
    let removal = removal_of(Removal::of_delete(rest).ok_or(UNREADABLE_REQUEST)?);
    let query = query_of(&query);
    if query.filter.is_some()
        && let Some(answer) = take_in_steps(ctx, &request, &query, (removal, false))?
    {
        return answer_read(&request, ctx, answer);
    }
    note_cost(ctx, &request, &query)?;
    let answer = Btree(&request.key).take(ctx.ks, &query, (removal, false), |_, _| {})?;
    answer_read(&request, ctx, answer)
}

/// `bop get key range [filter] [[offset] count] [delete|drop]`
pub fn get(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::BopGet) else { return Ok(()) };
    let (query, rest) = take_query(&request.words, 2).ok_or(UNREADABLE_REQUEST)?;
    let removal = removal_of(Removal::of_read(rest).ok_or(UNREADABLE_REQUEST)?);
    let query = query_of(&query);
    if removal == attributed::Removal::Keep {
        let found = match query.elements_max() {
            // Its answer is short, however long the tree is.
            Some(0..=ELEMENTS_MAX) => {
                let (tree, reply) = (Btree(&request.key), &mut *ctx.reply);
                tree.read(ctx.ks, |tree| reply.raw_with(|out| show(tree, &query, out)))?
            }
            _ => read_maybe_long(ctx, &request, &query, shown)?.map(|(lines, answer)| {
                ctx.reply.raw_shared(lines);
                answer
            }),
        };
        note_cost(ctx, &request, &query)?;
        return match found {
            Err(taken) => request.answer_taken(ctx, taken),
            Ok(answer) => answer_read(&request, ctx, answer),
        };
    }
    if let Some(answer) = take_in_steps(ctx, &request, &query, (removal, true))? {
        return answer_read(&request, ctx, answer);
    }
    note_cost(ctx, &request, &query)?;
    let reply = &mut *ctx.reply;
    let answer = Btree(&request.key).take(ctx.ks, &query, (removal, true), |flags, elements| {
        value_line(reply, flags, elements.len() as u64);
        elements.iter().for_each(|element| element_line(reply, &[], element));
    })?;
    answer_read(&request, ctx, answer)
}

/// Notes how many elements the query looks at, if that is asked for; with a filter those of its range. A read is noted
/// when it is answered, since one that another thread answers runs twice.
fn note_cost(ctx: &mut Ctx<'_>, request: &Request<'_>, query: &Query) -> Result<(), Stop> {
    if long_queries::is_on(ctx) {
        let cost = |entry| Tree::of_entry(&entry).map_or(0, |tree| tree.cost(query));
        let cost = ctx.ks.peek_value(&request.key)?.map_or(0, cost);
        request.note_cost(ctx, cost);
    }
    Ok(())
}

/// The lines of the elements that a query asks for, and what follows them.
fn shown(tree: &Tree<'_>, query: &Query) -> (Vec<u8>, Answer) {
    let mut lines = Vec::new();
    let answer = show(tree, query, &mut lines);
    (lines, answer)
}

/// Appends the lines of the elements that a query asks for; gives what follows them.
fn show(tree: &Tree<'_>, query: &Query, out: &mut Vec<u8>) -> Answer {
    let (head, mut count) = (Head::put(out, tree.flags, query.count), 0u64);
    tree.each(query, |element| {
        put_element(out, &[], element);
        count = count.saturating_add(1);
    });
    head.correct(out, tree.flags, count);
    // No key of another kind is in a range.
    match (count, tree.is_trimmed_in_answer(query, count)) {
        (0, _) if tree.is_passed_over(query) => Answer::Taken(Taken::NoElements),
        (0, _) if !tree.takes(&query.range.from) => Answer::OtherKind,
        (0, true) => Answer::OutOfRange,
        (0, false) => Answer::Taken(Taken::NoElements),
        (_, true) => Answer::Trimmed,
        (_, false) => Answer::Taken(Taken::Shown),
    }
}

/// Elements that a read looks at in its turn: within a millisecond. More are looked at by another thread.
const ELEMENTS_MAX: u64 = 1000;

/// Elements that a delete looks at in its turn. Each may cost more than in a read: what is between those that go is put
/// together again.
const DELETED_MAX: u64 = 500;

/// Elements on their way out of a tree, and their lines if they are to be shown.
struct TakingLines {
    taking: Taking,
    lines: Option<Lines>,
}

impl Work for TakingLines {
    fn step(&mut self) -> bool {
        let lines = &mut self.lines;
        self.taking.step(|element| lines.iter_mut().for_each(|lines| lines.push(element)))
    }

    fn held_bytes(&self) -> usize {
        self.taking.held_bytes().saturating_add(self.lines.as_ref().map_or(0, Lines::capacity))
    }
}

/// A delete that looks at many elements of a tree: it is made ready in steps, between other requests. `None` when it is
/// to be done at once.
fn take_in_steps(
    ctx: &mut Ctx<'_>,
    request: &Request<'_>,
    query: &Query,
    (removal, is_read): (attributed::Removal, bool),
) -> Result<Option<Answer>, Stop> {
    let made = ctx.take_work::<TakingLines>();
    let may_begin_work = ctx.may_begin_work();
    if made.is_none() && !may_begin_work {
        return Ok(None);
    }
    let Some(entry) = ctx.ks.peek_value(&request.key)? else { return Ok(None) };
    if is_read && Tree::of_entry(&entry).is_ok_and(|tree| !tree.attributes.is_readable) {
        return Ok(None);
    }
    let Some(made) = made.filter(|made| made.taking.is_of(&entry)) else {
        let taking = Taking::begin(&entry, query, DELETED_MAX).filter(|_| may_begin_work);
        let lines = is_read.then(|| Lines::with_room_for(query.count));
        return taking.map_or(Ok(None), |taking| Err(ctx.begin_work(TakingLines { taking, lines })));
    };
    note_cost(ctx, request, query)?;
    let (TakingLines { taking, lines }, reply) = (*made, &mut *ctx.reply);
    let answer = Btree(&request.key).take_made(ctx.ks, taking, (removal, is_read), |flags, count| {
        if let Some(mut lines) = lines {
            lines.finish(flags, count);
            lines.reply(reply);
        }
    })?;
    Ok(Some(answer))
}

/// What `read` makes of the tree of a request.
fn read_maybe_long<R: Send + 'static>(
    ctx: &mut Ctx<'_>,
    request: &Request<'_>,
    query: &Query,
    read: fn(&Tree<'_>, &Query) -> R,
) -> Result<Result<R, Taken>, Stop> {
    if let Some(Some(made)) = ctx.made_of_copies::<Option<R>>() {
        return Ok(Ok(made));
    }
    let may_begin_work = ctx.may_begin_work();
    let found = Btree(&request.key).read(ctx.ks, |tree| {
        let is_long = may_begin_work && tree.view.len() > ELEMENTS_MAX && tree.cost(query) > ELEMENTS_MAX;
        (!is_long).then(|| read(tree, query))
    })?;
    match found {
        Err(taken) => Ok(Err(taken)),
        Ok(Some(made)) => Ok(Ok(made)),
        Ok(None) => {
            let Some(snapshot) = ctx.ks.peek_value(&request.key)?.map(|entry| Snapshot::of(&entry)) else {
                return Ok(Err(Taken::NoKey));
            };
            let query = query.clone();
            Err(ctx.make_of_copies(snapshot.bytes(), move || snapshot.tree().ok().map(|tree| read(&tree, &query))))
        }
    }
}

fn answer_read(request: &Request<'_>, ctx: &mut Ctx<'_>, answer: Answer) -> Result<(), Stop> {
    match answer {
        Answer::Taken(taken) => request.answer_taken(ctx, taken),
        Answer::Trimmed => request.answer(ctx, "TRIMMED"),
        Answer::OutOfRange => request.answer(ctx, "OUT_OF_RANGE"),
        Answer::OtherKind => request.answer(ctx, OTHER_KIND),
    }
}

/// `bop count key range [filter]`
pub fn count(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::BopCount) else { return Ok(()) };
    let (query, _) = take_query(&request.words, 0).ok_or(UNREADABLE_REQUEST)?;
    let query = query_of(&query);
    let count = |tree: &Tree<'_>, query: &Query| tree.takes(&query.range.from).then(|| tree.count(query));
    let found = match query.filter.is_some() {
        true => {
            let found = read_maybe_long(ctx, &request, &query, count)?;
            note_cost(ctx, &request, &query)?;
            found
        }
        false => Btree(&request.key).read(ctx.ks, |tree| count(tree, &query))?,
    };
    match found {
        Err(taken) => request.answer_taken(ctx, taken),
        Ok(None) => request.answer(ctx, OTHER_KIND),
        Ok(Some(count)) => request.answer(ctx, &format!("COUNT={count}")),
    }
}

/// `bop incr key bkey delta [initial [eflag]]`
pub fn incr(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    add(ctx, Op::BopIncr, u64::wrapping_add)
}

/// `bop decr key bkey delta [initial [eflag]]`
pub fn decr(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    add(ctx, Op::BopDecr, u64::saturating_sub)
}

fn add(ctx: &mut Ctx<'_>, op: Op, step: fn(u64, u64) -> u64) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, op) else { return Ok(()) };
    let bkey = bkey_word(request.word(0))?;
    let delta = parse_delta(request.word(1)).ok_or(UNREADABLE_REQUEST)?;
    let initial = match request.words_from(2) {
        [] => None,
        [initial] => Some((parse_unsigned(initial).ok_or(UNREADABLE_REQUEST)?, ByteKey::default())),
        [initial, eflag, ..] => {
            let eflag = bytes_of(&parse_hex(eflag).ok_or(UNREADABLE_REQUEST)?);
            Some((parse_unsigned(initial).ok_or(UNREADABLE_REQUEST)?, eflag))
        }
    };
    let allowed = limits::allowed(ctx.host, Type::Btree);
    match Btree(&request.key).add(ctx.ks, &bkey, |number| step(number, delta), initial, allowed)? {
        Ok(number) => request.answer(ctx, &number.to_string()),
        Err(put) => answer_put(&request, ctx, put),
    }
}

/// The place of an element in an order.
struct Ordered<'t, 'k> {
    tree: &'t Tree<'k>,
    is_descending: bool,
}

impl<'k> Ordered<'_, 'k> {
    /// The place in this order of a place in ascending order, and the other way round.
    fn place(&self, at: u64) -> u64 {
        if self.is_descending { self.tree.view.len().saturating_sub(1).saturating_sub(at) } else { at }
    }

    /// The place of the element with this key.
    fn of(&self, bkey: &Bkey) -> Option<u64> {
        let (at, is_there) = self.tree.view.position(bkey);
        is_there.then(|| self.place(at))
    }

    /// Elements from one place to another, which may be the smaller one.
    fn between(&self, from: u64, to: u64) -> Vec<Element<'k>> {
        let count = usize::try_from(from.abs_diff(to).saturating_add(1)).unwrap_or(usize::MAX);
        let (first, last) = (self.place(from), self.place(to));
        match first <= last {
            true => self.tree.view.forward(first).take(count).collect(),
            false => self.tree.view.backward(first).take(count).collect(),
        }
    }
}

/// `bop position key bkey order`
pub fn position(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::BopPosition) else { return Ok(()) };
    let bkey = bkey_word(request.word(0))?;
    let is_descending = parse_order(request.word(1)).ok_or(UNREADABLE_REQUEST)?;
    let found = Btree(&request.key)
        .read(ctx.ks, |tree| tree.takes(&bkey).then(|| Ordered { tree, is_descending }.of(&bkey)))?;
    match found {
        Err(taken) => request.answer_taken(ctx, taken),
        Ok(None) => request.answer(ctx, OTHER_KIND),
        Ok(Some(None)) => request.answer_taken(ctx, Taken::NoElements),
        Ok(Some(Some(at))) => request.answer(ctx, &format!("POSITION={at}")),
    }
}

/// `bop gbp key order positions`: elements by their positions.
pub fn get_by_position(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::BopGbp) else { return Ok(()) };
    let is_descending = parse_order(request.word(0)).ok_or(UNREADABLE_REQUEST)?;
    let (from, to) = parse_positions(request.word(1)).ok_or(UNREADABLE_REQUEST)?;
    let (reply, mut count) = (&mut *ctx.reply, 0);
    let found = Btree(&request.key).read(ctx.ks, |tree| {
        let last = tree.view.len().checked_sub(1).filter(|last| from <= *last || to <= *last);
        let Some(last) = last else { return Taken::NoElements };
        let elements = Ordered { tree, is_descending }.between(from.min(last), to.min(last));
        count = elements.len() as u64;
        value_line(reply, tree.flags, count);
        elements.iter().for_each(|element| element_line(reply, &[], element));
        Taken::Shown
    })?;
    request.note_cost(ctx, count);
    request.answer_taken(ctx, found.unwrap_or_else(|taken| taken))
}

/// `bop pwg key bkey order [count]`: the position of an element, and the elements next to it.
pub fn position_with_get(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::BopPwg) else { return Ok(()) };
    let bkey = bkey_word(request.word(0))?;
    let is_descending = parse_order(request.word(1)).ok_or(UNREADABLE_REQUEST)?;
    let count =
        if request.words_from(2).is_empty() { 0 } else { parse_count(request.word(2)).ok_or(UNREADABLE_REQUEST)? };
    let reply = &mut *ctx.reply;
    let found = Btree(&request.key).read(ctx.ks, |tree| {
        if !tree.takes(&bkey) {
            return Answer::OtherKind;
        }
        let ordered = Ordered { tree, is_descending };
        let Some(at) = ordered.of(&bkey) else { return Answer::Taken(Taken::NoElements) };
        let from = at.saturating_sub(count);
        let to = at.saturating_add(count).min(tree.view.len().saturating_sub(1));
        let elements = ordered.between(from, to);
        let index = at.saturating_sub(from);
        reply.text_line(&format!("VALUE {at} {} {} {index}", tree.flags, elements.len()));
        elements.iter().for_each(|element| element_line(reply, &[], element));
        Answer::Taken(Taken::Shown)
    })?;
    answer_read(&request, ctx, found.unwrap_or_else(Answer::Taken))
}

fn bkey_word(word: &[u8]) -> Result<Bkey, Stop> {
    parse_bkey(word).map(|bkey| bkey_of(&bkey)).ok_or(UNREADABLE_REQUEST)
}
