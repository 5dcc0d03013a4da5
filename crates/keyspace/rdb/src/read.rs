//! Reads values by their form.

mod module;
mod stream;

pub(crate) use module::{read_id as read_module_id, skip_parts as skip_module_parts};

use crate::error::{Flaw, RdbError};
use crate::format::{Dialect, Form, kind};
use crate::input::Input;
use crate::packed::listpack::Element;
use crate::packed::{intset, listpack, ziplist, zipmap};
use crate::strings::Strings;
use crate::value::{Hash, Value, Zset};
use base::UnixMs;
use std::io::Read;

/// Reads a value of this form.
pub(crate) fn read_value(input: &mut Input<impl Read>, form: Form, dialect: Dialect) -> Result<Value, RdbError> {
    Ok(match (form.number(), dialect) {
        (kind::STRING, _) => Value::String(input.own_string()?),
        (kind::LIST, _) => Value::List(strings(input)?),
        (kind::LIST_ZIPLIST, _) => Value::List(packed(input, ziplist::read)?),
        (kind::LIST_QUICKLIST, _) => Value::List(quicklist(input, Nodes::Ziplists)?),
        (kind::LIST_QUICKLIST_2, _) => Value::List(quicklist(input, Nodes::Listpacks)?),
        (kind::SET, _) => set(input, strings)?,
        (kind::SET_INTSET, _) => Value::Set(packed(input, intset::read)?),
        (kind::SET_LISTPACK, _) => set(input, |input| packed(input, listpack::read))?,
        (kind::ZSET, _) => zset(input, |input| scored(input, 2, text_score))?,
        (kind::ZSET_2, _) => zset(input, |input| scored(input, 9, binary_score))?,
        (kind::ZSET_ZIPLIST, _) => packed_zset(input, ziplist::read)?,
        (kind::ZSET_LISTPACK, _) => packed_zset(input, listpack::read)?,
        (kind::HASH, _) => hash(input, |input| {
            let mut hash = Hash::default();
            for _ in 0..input.count(2, "the number of fields")? {
                push_field(input, &mut hash, None)?;
            }
            Ok(hash)
        })?,
        (kind::HASH_ZIPMAP, _) => packed_hash(input, zipmap::read)?,
        (kind::HASH_ZIPLIST, _) => packed_hash(input, ziplist::read)?,
        (kind::HASH_LISTPACK, _) => packed_hash(input, listpack::read)?,
        (kind::HASH_2, Dialect::Valkey) => hash(input, valkey_hash)?,
        (kind::HASH_METADATA, _) => hash(input, |input| {
            let first = Some(expiration(input)?);
            redis_hash(input, first)
        })?,
        (kind::HASH_METADATA_PRE_GA, Dialect::Redis) => hash(input, |input| redis_hash(input, None))?,
        (kind::HASH_LISTPACK_EX, _) => {
            // The earliest expiration, which the fields repeat.
            expiration(input)?;
            hash(input, |input| packed(input, expiring_fields))?
        }
        (kind::HASH_LISTPACK_EX_PRE_GA, Dialect::Redis) => hash(input, |input| packed(input, expiring_fields))?,
        (kind::STREAM_LISTPACKS, _) => Value::Stream(stream::read(input, 1)?.into()),
        (kind::STREAM_LISTPACKS_2, _) => Value::Stream(stream::read(input, 2)?.into()),
        (kind::STREAM_LISTPACKS_3, _) => Value::Stream(stream::read(input, 3)?.into()),
        (kind::MODULE_2, _) => Value::Module(module::skip_value(input)?),
        _ => return Err(RdbError::Unsupported { offset: input.offset(), what: format!("a value of {form}") }),
    })
}

/// Reads a string and unpacks it.
fn packed<R: Read, T: Default>(
    input: &mut Input<R>,
    read: impl FnOnce(&[u8], &mut T) -> Result<(), Flaw>,
) -> Result<T, RdbError> {
    let offset = input.offset();
    let bytes = input.own_string()?;
    let mut value = T::default();
    read(&bytes, &mut value).map_err(|flaw| input.flawed(offset, flaw))?;
    Ok(value)
}

fn strings<R: Read>(input: &mut Input<R>) -> Result<Strings, RdbError> {
    let mut strings = Strings::default();
    for _ in 0..input.count(1, "the number of elements")? {
        input.push_string(&mut strings)?;
    }
    Ok(strings)
}

/// The contents of a quicklist's nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nodes {
    Ziplists,
    /// Or single elements, as a number before each node says.
    Listpacks,
}

fn quicklist(input: &mut Input<impl Read>, nodes: Nodes) -> Result<Strings, RdbError> {
    const PLAIN: u64 = 1;
    const PACKED: u64 = 2;
    let mut all = Strings::default();
    for _ in 0..input.count(1, "the number of nodes")? {
        let offset = input.offset();
        let container = if nodes == Nodes::Listpacks { input.length("what the node is")? } else { PACKED };
        match container {
            PLAIN => input.push_string(&mut all)?,
            PACKED => {
                let at = input.offset();
                let node = input.own_string()?;
                let read = if nodes == Nodes::Ziplists { ziplist::read } else { listpack::read };
                read(&node, &mut all).map_err(|flaw| input.flawed(at, flaw))?;
            }
            _ => return Err(input.damaged(offset, "a plain or a packed node")),
        }
    }
    Ok(all)
}

fn set<R: Read>(
    input: &mut Input<R>,
    read: impl FnOnce(&mut Input<R>) -> Result<Strings, RdbError>,
) -> Result<Value, RdbError> {
    let offset = input.offset();
    let members = read(input)?;
    if members.are_distinct(1) {
        return Ok(Value::Set(members));
    }
    Err(input.damaged(offset, "distinct members"))
}

fn zset<R: Read>(
    input: &mut Input<R>,
    read: impl FnOnce(&mut Input<R>) -> Result<Zset, RdbError>,
) -> Result<Value, RdbError> {
    let offset = input.offset();
    let zset = read(input)?;
    if zset.members().are_distinct(1) {
        return Ok(Value::Zset(zset));
    }
    Err(input.damaged(offset, "distinct members"))
}

fn scored<R: Read>(
    input: &mut Input<R>,
    part_len: u64,
    score: impl Fn(&mut Input<R>) -> Result<f64, RdbError>,
) -> Result<Zset, RdbError> {
    let (mut members, mut scores) = (Strings::default(), Vec::new());
    let offset = input.offset();
    for _ in 0..input.count(part_len, "the number of members")? {
        input.push_string(&mut members)?;
        scores.push(score(input)?);
    }
    Zset::of(members, scores).ok_or_else(|| input.damaged(offset, "scores that are numbers"))
}

fn binary_score<R: Read>(input: &mut Input<R>) -> Result<f64, RdbError> {
    input.array("a score").map(f64::from_le_bytes)
}

fn text_score<R: Read>(input: &mut Input<R>) -> Result<f64, RdbError> {
    const EXPECTED: &str = "a score as text";
    const NAN: u8 = 253;
    const INFINITE: u8 = 254;
    const MINUS_INFINITE: u8 = 255;
    let offset = input.offset();
    match input.byte(EXPECTED)? {
        NAN => Ok(f64::NAN),
        INFINITE => Ok(f64::INFINITY),
        MINUS_INFINITE => Ok(f64::NEG_INFINITY),
        len => {
            let mut text = Vec::with_capacity(usize::from(len));
            for _ in 0..len {
                text.push(input.byte(EXPECTED)?);
            }
            parse_score(&text).ok_or_else(|| input.damaged(offset, EXPECTED))
        }
    }
}

fn parse_score(text: &[u8]) -> Option<f64> {
    str::from_utf8(text).ok()?.parse().ok()
}

fn packed_zset<R: Read>(
    input: &mut Input<R>,
    read: impl FnOnce(&[u8], &mut Strings) -> Result<(), Flaw>,
) -> Result<Value, RdbError> {
    zset(input, |input| {
        let offset = input.offset();
        let pairs = packed(input, read)?;
        let members = pairs.iter().step_by(2).collect();
        let scores = pairs.iter().skip(1).step_by(2).map(parse_score).collect::<Option<_>>();
        scores
            .and_then(|scores| Zset::of(members, scores))
            .ok_or_else(|| input.damaged(offset, "members and scores in turn"))
    })
}

fn hash<R: Read>(
    input: &mut Input<R>,
    read: impl FnOnce(&mut Input<R>) -> Result<Hash, RdbError>,
) -> Result<Value, RdbError> {
    let offset = input.offset();
    let hash = read(input)?;
    if hash.pairs().are_distinct(2) {
        return Ok(Value::Hash(hash));
    }
    Err(input.damaged(offset, "distinct fields"))
}

fn push_field<R: Read>(input: &mut Input<R>, hash: &mut Hash, expire_at: Option<UnixMs>) -> Result<(), RdbError> {
    hash.push_with(expire_at, |pairs| {
        input.push_string(pairs)?;
        input.push_string(pairs)
    })
}

fn packed_hash<R: Read>(
    input: &mut Input<R>,
    read: impl FnOnce(&[u8], &mut Strings) -> Result<(), Flaw>,
) -> Result<Value, RdbError> {
    hash(input, |input| {
        let offset = input.offset();
        let pairs = packed(input, read)?;
        Hash::of(pairs).ok_or_else(|| input.damaged(offset, "fields and values in turn"))
    })
}

/// Reads an expiration time, which must be present.
fn expiration<R: Read>(input: &mut Input<R>) -> Result<UnixMs, RdbError> {
    let offset = input.offset();
    let time = input.time_ms("a time of expiration")?;
    if time >= 0 { Ok(time) } else { Err(input.damaged(offset, "a time of expiration")) }
}

/// Field, value, expiration time or -1.
fn valkey_hash<R: Read>(input: &mut Input<R>) -> Result<Hash, RdbError> {
    const NONE: UnixMs = -1;
    let mut hash = Hash::default();
    for _ in 0..input.count(10, "the number of fields")? {
        push_field(input, &mut hash, None)?;
        let offset = input.offset();
        let time = input.time_ms("a time of expiration")?;
        if time < NONE {
            return Err(input.damaged(offset, "a time of expiration"));
        }
        hash.expire_last((time != NONE).then_some(time));
    }
    Ok(hash)
}

/// Time, field, value. The time is 0 for none. Otherwise it counts from one before the earliest of all or, in
/// pre-releases, from 1970.
fn redis_hash<R: Read>(input: &mut Input<R>, earliest: Option<UnixMs>) -> Result<Hash, RdbError> {
    const EXPECTED: &str = "a time of expiration";
    let mut hash = Hash::default();
    for _ in 0..input.count(3, "the number of fields")? {
        let offset = input.offset();
        let time = input.length(EXPECTED)?;
        let expire_at = match earliest {
            _ if time == 0 => None,
            None => Some(UnixMs::try_from(time).ok()),
            Some(earliest) => Some(earliest.checked_add_unsigned(time - 1)),
        };
        if expire_at == Some(None) {
            return Err(input.damaged(offset, EXPECTED));
        }
        let expire_at = expire_at.flatten();
        push_field(input, &mut hash, expire_at)?;
    }
    Ok(hash)
}

/// Field, value, expiration time or 0, as elements of a listpack.
fn expiring_fields(bytes: &[u8], hash: &mut Hash) -> Result<(), Flaw> {
    let mut elements = listpack::Elements::of(bytes)?;
    while let Some(field) = elements.take()? {
        let value = elements.need("a value")?;
        let flaw = elements.flaw("a time of expiration");
        let expire_at = match elements.need("a time of expiration")? {
            Element::Integer(0) => None,
            Element::Integer(time @ 1..) => Some(time),
            Element::Integer(_) | Element::String(_) => return Err(flaw),
        };
        hash.push_with(expire_at, |pairs| {
            field.push_to(pairs);
            value.push_to(pairs);
            Ok(())
        })?;
    }
    Ok(())
}
