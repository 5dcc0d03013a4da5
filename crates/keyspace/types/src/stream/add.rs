//! XADD.

use super::remove::{Trimmed, Trimming};
use super::{Change, Id, Stream, change, notify, read_to_edit};
use crate::TypeError;
use base::UnixMs;
use engine::{Key, Keyspace};
use value::stream::Added;

/// The id that a new entry is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewId {
    /// The time it is, or the next after the last id (`*`).
    Next,
    /// The next of this time (`ms-*`).
    NextOf(u64),
    /// This one; not `0-0`.
    Exactly(Id),
}

/// An entry to be added.
#[derive(Clone, Copy, Debug)]
pub struct Draft<S> {
    /// Its id.
    pub id: NewId,
    /// How many fields, at least one.
    pub field_count: usize,
    /// Their names and values, in turn.
    pub strings: S,
}

/// Bytes of names and values that an entry may have.
const ENTRY_BYTES_MAX: usize = 1 << 30;

/// Adds an entry and then trims the stream; `trimmed` is the trimmed stream if it was made beforehand. Returns the id;
/// `None` when the key is absent and must not be created.
///
/// # Errors
/// [`TypeError::IdsExhausted`], [`TypeError::IdTooSmall`], [`TypeError::EntryTooLong`], [`TypeError::WrongType`],
/// [`TypeError::Fetch`].
pub fn add<'s, S>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    draft: Draft<S>,
    makes_stream: bool,
    trimming: Option<Trimming>,
    trimmed: Option<&Trimmed>,
) -> Result<Option<Id>, TypeError>
where
    S: Iterator<Item = &'s [u8]> + Clone,
{
    let now = ks.now();
    let trimming = trimming.map(|trimming| (trimming, ks.limits()));
    let stream = read_to_edit(ks, key)?;
    if stream.is_none() && !makes_stream {
        return Ok(None);
    }
    let id = draft.id.above(stream.map_or(Id::MIN, Stream::last_id), now)?;
    let bytes = draft.strings.clone().fold(0, |sum: usize, string| sum.saturating_add(string.len()));
    if bytes > ENTRY_BYTES_MAX {
        return Err(TypeError::EntryTooLong);
    }
    let (before, stream) = match trimmed {
        Some(trimmed) => (trimmed.store(ks, key), read_to_edit(ks, key)?),
        None => (0, stream),
    };
    let trimmed = trimming.map_or(0, |(trimming, limits)| {
        let added = Added::new(id, draft.strings.clone());
        trimming.count(stream.unwrap_or(&Stream::default()), Some(added), &limits)
    });
    change(ks, key, |out| {
        Change::put_add(out, id, draft.field_count as u64, draft.strings);
        if trimmed > 0 {
            Change::Trim { count: trimmed }.put(out);
        }
    });
    notify(ks, key, "xadd");
    if before > 0 || trimmed > 0 {
        notify(ks, key, "xtrim");
    }
    Ok(Some(id))
}

impl NewId {
    /// The id after `last`.
    fn above(self, last: Id, now: UnixMs) -> Result<Id, TypeError> {
        let next = last.next().ok_or(TypeError::IdsExhausted)?;
        let id = match self {
            Self::Next => {
                let now = Id { ms: u64::try_from(now).unwrap_or_default(), seq: 0 };
                if now.ms > last.ms { now } else { next }
            }
            Self::NextOf(ms) if ms == last.ms => next,
            Self::NextOf(ms) => Id { ms, seq: 0 },
            Self::Exactly(id) => id,
        };
        // `next` is of a later time when the numbers of this one are used up.
        let is_of_its_time = !matches!(self, Self::NextOf(ms) if id.ms != ms);
        if id > last && is_of_its_time { Ok(id) } else { Err(TypeError::IdTooSmall) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_above_the_last() {
        let id = |ms, seq| Id { ms, seq };
        let above = |new: NewId, last: Id| new.above(last, 1000);
        assert_eq!(above(NewId::Next, id(999, 5)), Ok(id(1000, 0)));
        assert_eq!(above(NewId::Next, id(1000, 5)), Ok(id(1000, 6)));
        assert_eq!(above(NewId::Next, id(2000, u64::MAX)), Ok(id(2001, 0)));
        assert_eq!(above(NewId::Next, Id::MAX), Err(TypeError::IdsExhausted));
        assert_eq!(above(NewId::NextOf(7), id(7, 1)), Ok(id(7, 2)));
        assert_eq!(above(NewId::NextOf(8), id(7, 1)), Ok(id(8, 0)));
        assert_eq!(above(NewId::NextOf(0), Id::MIN), Ok(id(0, 1)));
        assert_eq!(above(NewId::NextOf(6), id(7, 1)), Err(TypeError::IdTooSmall));
        assert_eq!(above(NewId::NextOf(7), id(7, u64::MAX)), Err(TypeError::IdTooSmall));
        assert_eq!(above(NewId::Exactly(id(7, 1)), id(7, 1)), Err(TypeError::IdTooSmall));
        assert_eq!(above(NewId::Exactly(id(7, 2)), id(7, 1)), Ok(id(7, 2)));
    }
}
