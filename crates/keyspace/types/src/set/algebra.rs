//! What sets have in common, together, or one without the others.

use super::{Member, view};
use crate::{Kept, TypeError, collection};
use base::integer::IntegerText;
use engine::{Effect, Encoding, Key, Keyspace, NotifyClass, SharedBig, SharedBytes, Type};
use std::collections::HashSet;
use std::ops::ControlFlow;
use value::Stored;
use value::set::{Change, View};

/// What is made of several sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// What is in all of them.
    Intersection,
    /// What is in any of them.
    Union,
    /// What is in the first and in no other.
    Difference,
}

/// Sets to be combined, as they were when they were read.
pub struct Combination {
    pub(super) sets: Sets,
    pub(super) operation: Operation,
}

impl Combination {
    /// Of the sets under these keys.
    ///
    /// # Errors
    /// [`TypeError`] as [`super::read`], of any of the sets.
    pub fn read<'a>(
        ks: &mut dyn Keyspace,
        operation: Operation,
        keys: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Self, TypeError> {
        Ok(Self { sets: Sets::read(ks, keys)?, operation })
    }

    /// Shows every member of the result, each once.
    ///
    /// # Errors
    /// What `show` gives.
    pub fn show<E>(&self, show: &mut dyn FnMut(Member<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut result = Ok(());
        self.sets.visit(self.operation, &mut |member| match show(member) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                result = Err(error);
                ControlFlow::Break(())
            }
        });
        result
    }

    /// How many members it has; counting stops at `limit`.
    pub fn count(&self, limit: u64) -> u64 {
        let mut count = 0u64;
        self.sets.visit(self.operation, &mut |_| {
            count = count.saturating_add(1);
            if count >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        count
    }
}

/// Stores the result under a key, whatever is there, and gives its length. An empty result removes the key.
///
/// # Errors
/// [`TypeError::Fetch`] alone.
pub fn store(ks: &mut dyn Keyspace, to: &Key<'_>, combination: Combination) -> Result<u64, TypeError> {
    let Combination { sets, operation } = combination;
    let mut changes = ks.take_buffer();
    let len = sets.put(operation, &mut changes);
    // The destination may be one of the operands; holding it here would make its change copy it.
    drop(sets);
    put(ks, operation, to, len, |ks| collection::edit(ks, to, Type::Set, &changes))?;
    ks.give_buffer(changes);
    Ok(len)
}

/// [`store`] of a result that was made beforehand, with the changes that build it.
///
/// # Errors
/// As there.
pub fn store_made(
    ks: &mut dyn Keyspace,
    to: &Key<'_>,
    operation: Operation,
    tree: &SharedBig,
    changes: &SharedBytes,
) -> Result<u64, TypeError> {
    let len = View::of(Encoding::BIG, Stored::Big(tree)).len() as u64;
    put(ks, operation, to, len, |ks| collection::replace(ks, to, tree, changes))?;
    Ok(len)
}

/// Replaces the key by `count` members, written by `fill` if there are any.
fn put(
    ks: &mut dyn Keyspace,
    operation: Operation,
    to: &Key<'_>,
    len: u64,
    fill: impl FnOnce(&mut dyn Keyspace),
) -> Result<(), TypeError> {
    let is_taken = ks.peek_head(to)?.is_some();
    if is_taken {
        ks.apply(&Effect::Delete { key: *to });
    }
    if len > 0 {
        fill(ks);
        ks.notify(NotifyClass::SET, operation.event(), to);
    } else if is_taken {
        ks.notify(NotifyClass::GENERIC, "del", to);
    }
    Ok(())
}

impl Operation {
    fn event(self) -> &'static str {
        match self {
            Self::Intersection => "sinterstore",
            Self::Union => "sunionstore",
            Self::Difference => "sdiffstore",
        }
    }
}

/// Sets held together: a keyspace lends one entry at a time.
pub(super) struct Sets(pub(super) Vec<Option<(Encoding, Kept)>>);

impl Sets {
    fn read<'a>(ks: &mut dyn Keyspace, keys: impl Iterator<Item = &'a [u8]>) -> Result<Self, TypeError> {
        keys.map(|key| {
            let key = ks.key(key);
            let Some(entry) = ks.read(&key)? else { return Ok(None) };
            let (encoding, _) = collection::stored(&entry, Type::Set)?;
            Ok(Some((encoding, Kept::new(entry.value))))
        })
        .collect::<Result<_, _>>()
        .map(Self)
    }

    /// Those that are there.
    pub(super) fn views(&self) -> impl Iterator<Item = View<'_>> {
        self.0.iter().flatten().map(|(encoding, kept)| view((*encoding, kept.value().stored())))
    }

    /// The first set, if it is there, and what others are.
    fn first(&self) -> Option<(View<'_>, Vec<View<'_>>)> {
        self.0.first()?.as_ref()?;
        let mut all = self.views();
        Some((all.next()?, all.collect()))
    }

    /// The smallest set and the others, the smaller first, so that a member missing from one is found early. `None`
    /// when one of them is absent.
    fn ascending(&self) -> Option<(View<'_>, Vec<View<'_>>)> {
        let mut all: Vec<View<'_>> = self.views().collect();
        all.sort_by_key(View::len);
        let mut all = all.into_iter();
        let smallest = all.next().filter(|_| self.0.iter().all(Option::is_some))?;
        Some((smallest, all.collect()))
    }

    fn visit(&self, operation: Operation, show: &mut dyn FnMut(Member<'_>) -> ControlFlow<()>) {
        // Where it stopped, the visitor knows.
        let _ = match operation {
            Operation::Intersection => self.ascending().map(|(smallest, others)| {
                let mut common = smallest.iter().filter(|member| others.iter().all(|set| set.contains_member(*member)));
                common.try_for_each(show)
            }),
            Operation::Difference => self.first().map(|(first, others)| {
                let mut only = first.iter().filter(|member| !others.iter().any(|set| set.contains_member(*member)));
                only.try_for_each(show)
            }),
            Operation::Union => {
                let mut seen = HashSet::new();
                let mut all = self.views().flat_map(|set| set.iter());
                let is_several = self.0.len() > 1;
                Some(all.by_ref().filter(|member| !is_several || seen.insert(member.canonical())).try_for_each(show))
            }
        };
    }

    /// Appends the changes that build the result, and returns its length. The result gets the form that it has in
    /// Valkey, which depends on how Valkey computes it.
    fn put(&self, operation: Operation, changes: &mut Vec<u8>) -> u64 {
        if operation == Operation::Difference && self.is_quicker_by_removal() {
            return self.put_first_and_removals(changes);
        }
        let mut len = 0u64;
        self.visit(operation, &mut |member| {
            Change::Add(member.bytes(&mut IntegerText::default())).put(changes);
            len = len.saturating_add(1);
            ControlFlow::Continue(())
        });
        len
    }

    /// Whether Valkey copies the first set and removes the members of the others, instead of looking up each member in
    /// all others.
    fn is_quicker_by_removal(&self) -> bool {
        let Some((first, others)) = self.first() else { return false };
        let sets = others.len().saturating_add(1);
        let members = others.iter().fold(first.len(), |sum, set| sum.saturating_add(set.len()));
        first.len().saturating_mul(sets) / 2 > members
    }

    fn put_first_and_removals(&self, changes: &mut Vec<u8>) -> u64 {
        let Some((first, others)) = self.first() else { return 0 };
        let mut removals = Vec::new();
        let mut len = 0u64;
        for member in first.iter() {
            let mut room = IntegerText::default();
            let is_removed = others.iter().any(|set| set.contains_member(member));
            Change::Add(member.bytes(&mut room)).put(changes);
            if is_removed {
                Change::Remove(member.bytes(&mut room)).put(&mut removals);
            } else {
                len = len.saturating_add(1);
            }
        }
        changes.extend_from_slice(&removals);
        len
    }
}
