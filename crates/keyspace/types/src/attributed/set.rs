//! Sets with a bound.

use super::{Added, Found, New, Removal, Taken, add, read, read_to_edit, remove};
use crate::set::choose;
use crate::{TypeError, set};
use engine::{Key, Keyspace, NotifyClass, Type};
use value::set::{Change, Member, View};

/// Operations on the set under a key.
pub struct Set<'k>(pub &'k Key<'k>);

fn view<'k>(found: &Found<'k>) -> View<'k> {
    View::of(found.encoding, found.stored)
}

impl Set<'_> {
    /// Adds a member. `allowed` gives the most members of a set that names no number.
    ///
    /// # Errors
    /// Another type, or a fetch.
    pub fn insert(
        &self,
        ks: &mut dyn Keyspace,
        member: &[u8],
        new: Option<&New>,
        allowed: impl FnOnce() -> u32,
    ) -> Result<Added, TypeError> {
        let (is_full, is_there, new) = match (read_to_edit(ks, self.0, Type::Set)?, new) {
            (Some(found), _) => {
                let set = view(&found);
                (found.attributes.is_full(set.len() as u64, allowed), set.contains(member), None)
            }
            (None, Some(new)) => (false, false, Some(new)),
            (None, None) => return Ok(Added::NoKey),
        };
        match (is_full, is_there) {
            (true, _) => return Ok(Added::Overflowed),
            (_, true) => return Ok(Added::Exists),
            _ => {}
        }
        let mut changes = ks.take_buffer();
        Change::Add(member).put(&mut changes);
        let added = add(ks, self.0, Type::Set, new, &changes);
        ks.give_buffer(changes);
        ks.notify(NotifyClass::SET, "sadd", self.0);
        Ok(added)
    }

    /// Removes a member.
    ///
    /// # Errors
    /// Another type, or a fetch.
    pub fn delete(&self, ks: &mut dyn Keyspace, member: &[u8], removal: Removal) -> Result<Taken, TypeError> {
        let Some(found) = read_to_edit(ks, self.0, Type::Set)? else { return Ok(Taken::NoKey) };
        let set = view(&found);
        let is_last = set.len() == 1;
        if !set.contains(member) {
            return Ok(Taken::NoElements);
        }
        let mut changes = ks.take_buffer();
        Change::Remove(member).put(&mut changes);
        let taken = remove(ks, self.0, (Type::Set, (NotifyClass::SET, "srem")), (removal, is_last), &changes);
        ks.give_buffer(changes);
        Ok(taken)
    }

    /// Whether there is such a member: [`Taken::Shown`] or [`Taken::NoElements`].
    ///
    /// # Errors
    /// Another type, or a fetch.
    pub fn contains(&self, ks: &mut dyn Keyspace, member: &[u8]) -> Result<Taken, TypeError> {
        let Some(found) = read(ks, self.0, Type::Set)? else { return Ok(Taken::NoKey) };
        Ok(match view(&found).contains(member) {
            _ if !found.attributes.is_readable => Taken::Unreadable,
            true => Taken::Shown,
            false => Taken::NoElements,
        })
    }

    /// Shows `count` random members, each once, or all for 0, and removes them if they are to go. `begin` gets the
    /// flags and the number of members before that.
    ///
    /// # Errors
    /// Another type, or a fetch.
    pub fn take<S>(
        &self,
        ks: &mut dyn Keyspace,
        count: u64,
        removal: Removal,
        begin: impl FnOnce(u32, u64) -> S,
        mut show: impl FnMut(&mut S, Member<'_>),
    ) -> Result<Taken, TypeError> {
        let mut rng = set::generator(ks);
        let mut changes = ks.take_buffer();
        let Some(found) = read(ks, self.0, Type::Set)? else { return Ok(Taken::NoKey) };
        if !found.attributes.is_readable {
            return Ok(Taken::Unreadable);
        }
        let set = view(&found);
        let len = set.len() as u64;
        if len == 0 {
            return Ok(Taken::NoElements);
        }
        let count = if count == 0 { len } else { count.min(len) };
        let mut shown = begin(found.flags, count);
        let mut room = base::integer::IntegerText::default();
        let chosen = choose(set, count, false, &mut rng, |member, is_chosen| {
            if is_chosen {
                show(&mut shown, member);
                if removal != Removal::Keep {
                    Change::Remove(member.bytes(&mut room)).put(&mut changes);
                }
            }
            Ok::<(), std::convert::Infallible>(())
        });
        let Ok(()) = chosen;
        let event = (NotifyClass::SET, "spop");
        let taken = remove(ks, self.0, (Type::Set, event), (removal, count == len), &changes);
        ks.give_buffer(changes);
        Ok(taken)
    }
}
