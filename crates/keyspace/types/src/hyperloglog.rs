//! HyperLogLogs: strings in the format of [`value::hyperloglog`].
//!
//! A change is logged as the bytes that differ, so that an element added to a dense one costs its register and not 12
//! KiB.

use crate::replacement::Replacement;
use crate::string::string_value;
use crate::{TypeError, range};
use engine::{Effect, Encoding, Entry, Key, Keyspace, NotifyClass, Value};
use value::hyperloglog::{
    self as hll, CARDINALITY_AT, Corrupt, Form, HyperLogLog, Invalid, Observation, REGISTER_COUNT, Registers, dense,
};

impl From<Invalid> for TypeError {
    fn from(_: Invalid) -> Self {
        Self::NotHyperLogLog
    }
}

impl From<Corrupt> for TypeError {
    fn from(_: Corrupt) -> Self {
        Self::CorruptHyperLogLog
    }
}

/// The HyperLogLog in an entry.
fn contents<'k>(entry: &Entry<'k>) -> Result<(Form, &'k [u8]), TypeError> {
    let bytes = string_value(entry)?.bytes();
    Ok((hll::form(bytes)?, bytes))
}

/// Adds elements; an absent key becomes a HyperLogLog, even without any. True when something changed. A sparse one that
/// would take more than `sparse_bytes_max` bytes becomes dense.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::NotHyperLogLog`], [`TypeError::CorruptHyperLogLog`], [`TypeError::Fetch`].
pub fn add<'a>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    elements: impl Iterator<Item = &'a [u8]>,
    sparse_bytes_max: usize,
) -> Result<bool, TypeError> {
    let mut seen = elements.map(Observation::of);
    let Some(entry) = ks.read_to_edit(key)? else {
        let mut new = HyperLogLog::empty(sparse_bytes_max);
        seen.try_for_each(|seen| new.observe(seen).map(|_| ()))?;
        create(ks, key, new);
        ks.notify(NotifyClass::STRING, "pfadd", key);
        return Ok(true);
    };
    let (form, bytes) = contents(&entry)?;
    let seen: Vec<_> = match form {
        Form::Dense => seen.filter(|seen| dense::get(bytes, seen.register) < seen.rank).collect(),
        Form::Sparse => seen.collect(),
    };
    let edited = if seen.is_empty() { None } else { edit(form, bytes, &seen, sparse_bytes_max)? };
    let Some(edited) = edited else {
        let (len, encoding) = (bytes.len() as u64, entry.encoding);
        range::mark_edited(ks, key, len, encoding);
        return Ok(false);
    };
    Replacement::of(&entry, edited.into_bytes()).apply(ks, key);
    ks.notify(NotifyClass::STRING, "pfadd", key);
    Ok(true)
}

/// The HyperLogLog after it has seen these; `None` when that changes nothing.
fn edit(
    form: Form,
    bytes: &[u8],
    seen: &[Observation],
    sparse_bytes_max: usize,
) -> Result<Option<HyperLogLog>, TypeError> {
    let mut edited = HyperLogLog::copy_of(form, bytes, sparse_bytes_max);
    let mut changed = false;
    for seen in seen {
        changed |= edited.observe(*seen)?;
    }
    edited.invalidate();
    Ok(changed.then_some(edited))
}

/// Stores one under a key that is absent.
fn create(ks: &mut dyn Keyspace, key: &Key<'_>, mut new: HyperLogLog) {
    new.invalidate();
    let bytes = new.into_bytes();
    ks.apply(&Effect::Set { key: *key, value: Value::Bytes(&bytes), encoding: Encoding::EDITED, expire_at: None });
}

/// How many different elements were added; 0 when the key is absent. The estimate is stored with the registers, for the
/// next time.
///
/// # Errors
/// As [`add`].
pub fn count(ks: &mut dyn Keyspace, key: &Key<'_>) -> Result<u64, TypeError> {
    let Some(entry) = ks.read(key)? else { return Ok(0) };
    let (form, bytes) = contents(&entry)?;
    let (len, encoding) = (bytes.len() as u64, entry.encoding);
    if let Some(stored) = hll::stored_cardinality(bytes) {
        range::mark_edited(ks, key, len, encoding);
        return Ok(stored);
    }
    let count = hll::estimate(form, bytes)?;
    ks.apply(&Effect::Splice { key: *key, offset: CARDINALITY_AT as u64, bytes: &count.to_le_bytes() });
    Ok(count)
}

/// How many different elements were added to any of the keys; absent ones have none.
///
/// # Errors
/// As [`add`].
pub fn count_union<'a>(ks: &mut dyn Keyspace, keys: impl Iterator<Item = &'a [u8]>) -> Result<u64, TypeError> {
    let mut registers = [0; REGISTER_COUNT];
    merge_all(ks, keys, &mut registers)?;
    Ok(hll::estimate_registers(&registers))
}

/// Makes `to`, which is merged as well if it is there, the union of all keys: dense if one of them is.
///
/// # Errors
/// As [`add`].
pub fn merge<'a>(
    ks: &mut dyn Keyspace,
    to: &Key<'a>,
    sources: impl Iterator<Item = &'a [u8]>,
    sparse_bytes_max: usize,
) -> Result<(), TypeError> {
    let mut registers = [0; REGISTER_COUNT];
    let any_dense = merge_all(ks, std::iter::once(to.bytes).chain(sources), &mut registers)?;
    let Some(entry) = ks.peek_value(to)? else {
        let mut new = HyperLogLog::empty(sparse_bytes_max);
        new.raise_to(&registers, any_dense)?;
        create(ks, to, new);
        ks.notify(NotifyClass::STRING, "pfadd", to);
        return Ok(());
    };
    let (form, bytes) = contents(&entry)?;
    let mut union = HyperLogLog::copy_of(form, bytes, sparse_bytes_max);
    union.raise_to(&registers, any_dense)?;
    union.invalidate();
    Replacement::of(&entry, union.into_bytes()).apply(ks, to);
    ks.notify(NotifyClass::STRING, "pfadd", to);
    Ok(())
}

/// Raises the registers to those of all keys. True when one of these is dense.
fn merge_all<'a>(
    ks: &mut dyn Keyspace,
    keys: impl Iterator<Item = &'a [u8]>,
    registers: &mut Registers,
) -> Result<bool, TypeError> {
    let mut any_dense = false;
    for key in keys {
        let key = ks.key(key);
        if let Some(entry) = ks.read(&key)? {
            let (form, bytes) = contents(&entry)?;
            any_dense |= form == Form::Dense;
            hll::merge_into(registers, form, bytes)?;
        }
    }
    Ok(any_dense)
}
