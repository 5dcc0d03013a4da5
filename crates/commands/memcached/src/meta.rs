//! Meta commands: `mg`, `ms`, `md`, `ma`, `me`.
//!
//! An item that the flag `I` has marked is *stale*. Of the clients that get it, the first has *won* (`W`): it is to
//! renew the item. The others learn that another client has won (`Z`). Both marks are kept with the item ([`Marks`]).

use crate::arguments::Lifetime;
use crate::arguments::remaining_seconds;
use crate::delta::{self, Outcome};
use crate::item::{self, Attributes, Marks, TYPE_MISMATCH};
use crate::meta_flags::MetaFlags;
use crate::tally::{self, Op};
use base::UnixMs;
use command::{Ctx, Stop};
use engine::{Key, Type, Value};
use proto::memcached::{Refusal, encode_key};
use types::generic;
use types::string::Expiration;

const DONE: &str = "HD";
const MISS: &str = "EN";
const ABSENT: &str = "NF";
const NOT_STORED: &str = "NS";
const OTHER_ID: &str = "EX";

/// What is stored under a key, without its data.
struct Found {
    is_item: bool,
    len: usize,
    client_flags: u32,
    marks: Marks,
    expire_at: Option<UnixMs>,
    idle_seconds: u64,
}

fn look(ctx: &mut Ctx<'_>, key: &Key<'_>) -> Result<Option<Found>, Stop> {
    let Some(entry) = ctx.ks.peek_value(key)? else { return Ok(None) };
    let (fields, is_item, stamp) = (entry.fields.get(), entry.kind == Type::String, entry.stamp);
    let mut found = Found {
        is_item,
        len: if is_item { entry.value.bytes().len() } else { 0 },
        client_flags: fields.flags,
        marks: Marks::of(&fields),
        expire_at: entry.expire_at,
        idle_seconds: 0,
    };
    found.idle_seconds = ctx.ks.idle_seconds(stamp);
    Ok(Some(found))
}

/// The flags of a request, whose errors `mg` and `ms` report in detail.
fn flags(ctx: &Ctx<'_>, first: usize) -> Result<MetaFlags, Stop> {
    MetaFlags::parse(&ctx.args, first, ctx.now()).map_err(Stop::error)
}

/// The flags of a request, for which `md` and `ma` have one text for all that is wrong.
fn flags_of_change(ctx: &Ctx<'_>) -> Result<MetaFlags, Stop> {
    MetaFlags::parse(&ctx.args, 2, ctx.now()).map_err(|text| match text {
        "CLIENT_ERROR opaque token too long" => Stop::error(text),
        _ => Stop::error("CLIENT_ERROR invalid or duplicate flag"),
    })
}

/// A line of a reply.
struct Line {
    bytes: Vec<u8>,
    has_binary_key: bool,
}

impl Line {
    fn new(code: &str, flags: &MetaFlags) -> Self {
        Self { bytes: code.as_bytes().to_vec(), has_binary_key: flags.has_binary_key }
    }

    fn word(&mut self, letter: char, value: impl std::fmt::Display) {
        self.bytes.extend_from_slice(format!(" {letter}{value}").as_bytes());
    }

    /// Repeats a word of the request that asks for that: the opaque token, or the key.
    fn echo(&mut self, word: &[u8], key: &[u8]) {
        match word.first() {
            Some(b'O') => {
                self.bytes.push(b' ');
                self.bytes.extend_from_slice(word);
            }
            Some(b'k') if self.has_binary_key => self.word('k', format_args!("{} b", encode_key(key))),
            Some(b'k') => {
                self.bytes.extend_from_slice(b" k");
                self.bytes.extend_from_slice(key);
            }
            _ => {}
        }
    }

    /// Repeats all such words.
    fn echo_all(&mut self, ctx: &Ctx<'_>, first: usize) {
        let key = ctx.args.bytes(1).unwrap_or_default();
        ctx.args.from(first).for_each(|word| self.echo(word, key));
    }

    fn time_left(&mut self, expire_at: Option<UnixMs>, now: UnixMs) {
        match expire_at {
            None => self.word('t', -1),
            Some(at) => self.word('t', remaining_seconds(at, now)),
        }
    }

    fn send(self, ctx: &mut Ctx<'_>) {
        ctx.reply.raw_line(&self.bytes);
    }
}

/// `mg key flags`
pub fn get(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (flags, key, now) = (flags(ctx, 2)?, ctx.key(1), ctx.now());
    let found = look(ctx, &key)?;
    let (mut item, is_new) = match (found, flags.vivify) {
        (Some(found), _) if !found.is_item => return miss(ctx, &flags),
        (Some(found), _) => (found, false),
        (None, None) => {
            ctx.ks.count_peek(false);
            return miss(ctx, &flags);
        }
        (None, Some(_)) => {
            let attributes = Attributes { flags: 0, lifetime: Lifetime::of(Expiration::Never), marks: Marks::NONE };
            item::store(ctx, &key, Value::Bytes(b""), &attributes)?;
            (look(ctx, &key)?.ok_or(GONE)?, true)
        }
    };
    let id = if asks_for(ctx, 2, b'c') { item::id(ctx, &key)? } else { None };
    let was_won = item.marks.is_won;
    let mut line = match flags.wants_data {
        true => Line::new(&format!("VA {}", item.len), &flags),
        false => Line::new(DONE, &flags),
    };
    let mut wins = false;
    let expire_at = item.expire_at;
    for word in ctx.args.from(2) {
        match word.first() {
            Some(b'T') => item.expire_at = time_of(flags.expiration),
            Some(b'N') if is_new => {
                item.expire_at = time_of(flags.vivify);
                wins = true;
            }
            Some(b'R') => wins |= !was_won && !is_new && is_before(item.expire_at, flags.renew_before),
            Some(b's') => line.word('s', item.len),
            Some(b't') => line.time_left(item.expire_at, now),
            Some(b'c') => line.word('c', id.unwrap_or(0)),
            Some(b'f') => line.word('f', item.client_flags),
            Some(b'l') => line.word('l', item.idle_seconds),
            _ => line.echo(word, key.bytes),
        }
    }
    if was_won {
        line.bytes.extend_from_slice(b" Z");
    }
    if item.marks.is_stale {
        line.bytes.extend_from_slice(b" X");
        wins |= !was_won;
    }
    if wins {
        line.bytes.extend_from_slice(b" W");
    }
    line.send(ctx);
    if flags.wants_data {
        let entry = if flags.leaves_no_trace { ctx.ks.peek_value(&key)? } else { ctx.ks.read(&key)? };
        if let Some(entry) = &entry {
            item::reply_data(ctx.reply, entry);
        }
    } else if !flags.leaves_no_trace {
        ctx.ks.read(&key)?;
    }
    if wins && !was_won {
        item::mark(ctx, &key, Marks { is_won: true, ..item.marks })?;
    }
    if item.expire_at != expire_at {
        expire(ctx, &key, item.expire_at)?;
    }
    Ok(())
}

/// An item that was stored in this very command is not there. No client can bring this about.
const GONE: Stop = Stop::error("SERVER_ERROR the item vanished: a bug of this server");

fn miss(ctx: &mut Ctx<'_>, flags: &MetaFlags) -> Result<(), Stop> {
    if !flags.is_quiet {
        let mut line = Line::new(MISS, flags);
        line.echo_all(ctx, 2);
        line.send(ctx);
    }
    Ok(())
}

fn asks_for(ctx: &Ctx<'_>, first: usize, letter: u8) -> bool {
    ctx.args.from(first).any(|word| word.first() == Some(&letter))
}

fn time_of(expiration: Option<Expiration>) -> Option<UnixMs> {
    match expiration {
        Some(Expiration::At(at)) => Some(at),
        _ => None,
    }
}

fn is_before(expire_at: Option<UnixMs>, limit: Option<Expiration>) -> bool {
    matches!((expire_at, limit), (Some(at), Some(Expiration::At(limit))) if at < limit)
}

fn expire(ctx: &mut Ctx<'_>, key: &Key<'_>, expire_at: Option<UnixMs>) -> Result<(), Stop> {
    match expire_at {
        Some(at) => generic::expire_at(ctx.ks, key, at, Default::default())?,
        None => generic::persist(ctx.ks, key)?,
    };
    Ok(())
}

/// `ms key data flags`
pub fn set(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    const FIRST: usize = 3;
    let (flags, key) = (flags(ctx, FIRST)?, ctx.key(1));
    let mode = flags.mode.unwrap_or(b'S');
    if !b"EAPRS".contains(&mode) {
        return Err(Stop::error("CLIENT_ERROR invalid mode for ms M token"));
    }
    let found = look(ctx, &key)?;
    if found.as_ref().is_some_and(|found| !found.is_item) {
        return Err(TYPE_MISMATCH);
    }
    let outcome = store(ctx, &key, &flags, mode, found)?;
    if outcome == DONE && flags.is_quiet {
        return Ok(());
    }
    let id = match outcome == DONE && asks_for(ctx, FIRST, b'c') {
        true => item::id(ctx, &key)?,
        false => None,
    };
    let mut line = Line::new(outcome, &flags);
    for word in ctx.args.from(FIRST) {
        match word.first() {
            Some(b'c') => line.word('c', id.unwrap_or(0)),
            _ => line.echo(word, key.bytes),
        }
    }
    line.send(ctx);
    Ok(())
}

/// How the id of a request stands to that of the item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ids {
    /// None was given, or the item has it.
    Fit,
    /// The item has a later one.
    Older,
    /// The item has another one.
    Differ,
}

fn compare_id(ctx: &mut Ctx<'_>, key: &Key<'_>, flags: &MetaFlags) -> Result<Ids, Stop> {
    let Some(given) = flags.id.filter(|id| *id != 0) else { return Ok(Ids::Fit) };
    let own = item::id(ctx, key)?.unwrap_or(0);
    Ok(match given.cmp(&own) {
        std::cmp::Ordering::Equal => Ids::Fit,
        std::cmp::Ordering::Less => Ids::Older,
        std::cmp::Ordering::Greater => Ids::Differ,
    })
}

fn store(
    ctx: &mut Ctx<'_>,
    key: &Key<'_>,
    flags: &MetaFlags,
    mode: u8,
    found: Option<Found>,
) -> Result<&'static str, Stop> {
    let expiration = flags.expiration.unwrap_or(Expiration::Never);
    let attributes = Attributes { flags: flags.client_flags, lifetime: Lifetime::of(expiration), marks: Marks::NONE };
    let value = ctx.value(2);
    let Some(found) = found else {
        let compares = flags.id.is_some() && matches!(mode, b'S' | b'R');
        return Ok(match mode {
            _ if compares => ABSENT,
            b'S' | b'E' => {
                item::store(ctx, key, value, &attributes)?;
                DONE
            }
            _ => NOT_STORED,
        });
    };
    // An item is compared with an id of 0, too, and has none such.
    let ids = match flags.id {
        Some(0) if matches!(mode, b'S' | b'R') => Ids::Differ,
        _ => compare_id(ctx, key, flags)?,
    };
    match mode {
        b'E' => return Ok(NOT_STORED),
        b'S' | b'R' if ids == Ids::Older && flags.marks_stale => {
            let marks = Marks { is_stale: true, ..found.marks };
            let expiration = found.expire_at.map_or(Expiration::Never, Expiration::At);
            item::store(ctx, key, value, &Attributes { lifetime: Lifetime::of(expiration), marks, ..attributes })?;
        }
        _ if ids != Ids::Fit => return Ok(OTHER_ID),
        b'S' | b'R' => item::store(ctx, key, value, &attributes)?,
        _ => {
            let (len, new) = (found.len, value.bytes());
            if len.saturating_add(new.len()) > item::bytes_max(ctx) {
                tally::count_too_large(ctx.stats);
                return Err(Stop::error(Refusal::TooLarge.text()));
            }
            let joined = match ctx.ks.peek_value(key)? {
                Some(entry) if mode == b'A' => [entry.value.bytes(), new].concat(),
                Some(entry) => [new, entry.value.bytes()].concat(),
                None => return Err(GONE),
            };
            item::extend(ctx, key, &joined)?;
        }
    }
    Ok(DONE)
}

/// `md key flags`
pub fn delete(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (flags, key) = (flags_of_change(ctx)?, ctx.key(1));
    let outcome = match look(ctx, &key)? {
        None => ABSENT,
        Some(found) if found.is_item && compare_id_of_delete(ctx, &key, &flags)? => OTHER_ID,
        Some(found) if found.is_item && flags.marks_stale => {
            if let Some(expiration) = flags.expiration {
                expire(ctx, &key, time_of(Some(expiration)))?;
            }
            item::make_stale(ctx, &key)?;
            DONE
        }
        Some(_) => {
            generic::delete(ctx.ks, &key)?;
            DONE
        }
    };
    match outcome {
        ABSENT => tally::count(ctx.stats, Op::Delete, tally::Outcome::Miss),
        DONE => tally::count(ctx.stats, Op::Delete, tally::Outcome::Hit),
        _ => {}
    }
    if outcome != DONE || !flags.is_quiet {
        let mut line = Line::new(outcome, &flags);
        line.echo_all(ctx, 2);
        line.send(ctx);
    }
    Ok(())
}

/// Whether the request names an id, 0 included, that the item does not have.
fn compare_id_of_delete(ctx: &mut Ctx<'_>, key: &Key<'_>, flags: &MetaFlags) -> Result<bool, Stop> {
    Ok(flags.id.is_some() && item::id(ctx, key)? != flags.id)
}

/// `ma key flags`
pub fn arithmetic(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (flags, key, now) = (flags_of_change(ctx)?, ctx.key(1), ctx.now());
    let (op, change): (_, fn(u64, u64) -> u64) = match flags.mode.unwrap_or(b'I') {
        b'I' | b'+' => (Op::Incr, u64::wrapping_add),
        b'D' | b'-' => (Op::Decr, u64::saturating_sub),
        _ => return Err(Stop::error("CLIENT_ERROR invalid mode for ma M token")),
    };
    let found = look(ctx, &key)?;
    let (number, expire_at, is_new) = match found {
        Some(found) if !found.is_item => return Err(TYPE_MISMATCH),
        Some(found) if found.len == 0 => return Err(delta::NOT_NUMERIC),
        Some(_) if compare_id(ctx, &key, &flags)? != Ids::Fit => return answer_without_item(ctx, OTHER_ID, &flags),
        Some(found) => match delta::change(ctx, &key, |old| change(old, flags.delta.unwrap_or(1)))? {
            Outcome::Changed(number) => {
                tally::count(ctx.stats, op, tally::Outcome::Hit);
                (number, found.expire_at, false)
            }
            Outcome::NotNumeric | Outcome::NotFound => return Err(delta::NOT_NUMERIC),
            Outcome::OtherType => return Err(TYPE_MISMATCH),
        },
        None if flags.vivify.is_some() => {
            let attributes = Attributes { flags: 0, lifetime: Lifetime::of(Expiration::Never), marks: Marks::NONE };
            item::store(ctx, &key, Value::Bytes(flags.initial.to_string().as_bytes()), &attributes)?;
            tally::count(ctx.stats, op, tally::Outcome::Miss);
            (flags.initial, None, true)
        }
        None => {
            tally::count(ctx.stats, op, tally::Outcome::Miss);
            return answer_without_item(ctx, ABSENT, &flags);
        }
    };
    let text = number.to_string();
    let id = if asks_for(ctx, 2, b'c') { item::id(ctx, &key)? } else { None };
    let mut line = match flags.wants_data {
        true => Line::new(&format!("VA {}", text.len()), &flags),
        false => Line::new(DONE, &flags),
    };
    let mut until = expire_at;
    for word in ctx.args.from(2) {
        match word.first() {
            Some(b'c') => line.word('c', id.unwrap_or(0)),
            Some(b't') => line.time_left(until, now),
            Some(b'T') => until = time_of(flags.expiration),
            Some(b'N') if is_new => until = time_of(flags.vivify),
            _ => line.echo(word, key.bytes),
        }
    }
    if is_new || !flags.is_quiet {
        line.send(ctx);
        if flags.wants_data {
            ctx.reply.text_line(&text);
        }
    }
    if until != expire_at {
        expire(ctx, &key, until)?;
    }
    Ok(())
}

fn answer_without_item(ctx: &mut Ctx<'_>, code: &str, flags: &MetaFlags) -> Result<(), Stop> {
    let mut line = Line::new(code, flags);
    line.echo_all(ctx, 2);
    line.send(ctx);
    Ok(())
}

/// `me key`: what is known about an item.
pub fn debug(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, now) = (ctx.key(1), ctx.now());
    let Some(found) = look(ctx, &key)?.filter(|found| found.is_item) else {
        ctx.reply.text_line(MISS);
        return Ok(());
    };
    let id = item::id(ctx, &key)?.unwrap_or(0);
    let left = found.expire_at.map_or(-1, |at| remaining_seconds(at, now));
    let mut line = b"ME ".to_vec();
    line.extend_from_slice(key.bytes);
    let (idle, size) = (found.idle_seconds, found.len);
    line.extend_from_slice(format!(" exp={left} la={idle} cas={id} size={size}").as_bytes());
    ctx.reply.raw_line(&line);
    Ok(())
}
