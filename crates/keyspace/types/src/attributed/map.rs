//! Hashes with a bound.

use super::{Added, New, Removal, Taken, add, read, read_to_edit, remove};
use crate::TypeError;
use crate::hash::Hash;
use engine::{Key, Keyspace, NotifyClass, Type};
use value::hash::{Cell, Change};

/// Operations on the hash under a key.
pub struct Map<'k>(pub &'k Key<'k>);

/// Which fields are meant.
#[derive(Clone, Copy, Debug)]
pub enum Fields<'a> {
    /// All.
    All,
    /// These.
    Named(&'a [&'a [u8]]),
}

/// What a field may have been before it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// Absent.
    Insert,
    /// Anything.
    Upsert,
    /// There.
    Update,
}

impl Map<'_> {
    /// Sets a field. `allowed` gives the most fields of a hash that names no number.
    ///
    /// # Errors
    /// Another type, or a fetch.
    pub fn set(
        &self,
        ks: &mut dyn Keyspace,
        (field, value): (&[u8], &[u8]),
        store: Store,
        new: Option<&New>,
        allowed: impl FnOnce() -> u32,
    ) -> Result<Added, TypeError> {
        let now = ks.now();
        let (is_full, is_there, new) = match (read_to_edit(ks, self.0, Type::Hash)?, new) {
            (Some(found), _) => {
                let hash = Hash::of(Some((found.encoding, found.stored)), now);
                (found.attributes.is_full(hash.len() as u64, allowed), hash.get(field).is_some(), None)
            }
            (None, Some(new)) => (false, false, Some(new)),
            (None, None) => return Ok(Added::NoKey),
        };
        match (store, is_there) {
            (Store::Insert, true) => return Ok(Added::Exists),
            (Store::Update, false) => return Ok(Added::Absent),
            (_, false) if is_full => return Ok(Added::Overflowed),
            _ => {}
        }
        let mut changes = ks.take_buffer();
        Change::Set { field, value, expire_at: None }.put(&mut changes);
        let added = add(ks, self.0, Type::Hash, new, &changes);
        ks.give_buffer(changes);
        ks.notify(NotifyClass::HASH, "hset", self.0);
        Ok(if is_there { Added::Replaced } else { added })
    }

    /// Shows the fields that are there, and removes them if they are to go. `begin` gets the flags and the number of
    /// these fields before that.
    ///
    /// # Errors
    /// Another type, or a fetch.
    pub fn take<S>(
        &self,
        ks: &mut dyn Keyspace,
        fields: Fields<'_>,
        (removal, is_read): (Removal, bool),
        begin: impl FnOnce(u32, u64) -> S,
        mut show: impl FnMut(&mut S, Cell<'_>),
    ) -> Result<Taken, TypeError> {
        let (now, mut changes) = (ks.now(), ks.take_buffer());
        let found = if is_read { read(ks, self.0, Type::Hash)? } else { read_to_edit(ks, self.0, Type::Hash)? };
        let Some(found) = found else { return Ok(Taken::NoKey) };
        if is_read && !found.attributes.is_readable {
            return Ok(Taken::Unreadable);
        }
        let hash = Hash::of(Some((found.encoding, found.stored)), now);
        let cells: Vec<Cell<'_>> = match fields {
            Fields::All => hash.iter().collect(),
            Fields::Named(names) => distinct(names).filter_map(|name| hash.get(name)).collect(),
        };
        if cells.is_empty() {
            return Ok(Taken::NoElements);
        }
        let is_all = cells.len() == hash.len();
        let mut shown = begin(found.flags, cells.len() as u64);
        for cell in cells {
            if removal != Removal::Keep {
                Change::Delete(cell.field).put(&mut changes);
            }
            show(&mut shown, cell);
        }
        let event = (NotifyClass::HASH, "hdel");
        let taken = remove(ks, self.0, (Type::Hash, event), (removal, is_all), &changes);
        ks.give_buffer(changes);
        Ok(taken)
    }
}

/// The names, each once.
fn distinct<'a>(names: &'a [&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
    let mut seen = std::collections::HashSet::new();
    names.iter().copied().filter(move |name| seen.insert(*name))
}
