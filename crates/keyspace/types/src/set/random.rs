//! Members chosen at random: SPOP and SRANDMEMBER. What is recorded are the members, not the choice.

use super::{notify_removal, read, read_to_edit};
use crate::{TypeError, collection};
use base::Rng;
use base::integer::IntegerText;
use engine::{Effect, Key, Keyspace, SharedBig, SharedBytes, Type};
use std::collections::HashSet;
use value::set::{Big, Change, Member, View};

/// Receives each member; it may refuse, and then nothing has changed.
pub type Show<'s, E> = &'s mut dyn FnMut(Member<'_>) -> Result<(), E>;

/// If at least one member in this many is chosen, all are visited; otherwise each is looked up by its place.
const PASS_RATIO: u64 = 8;

/// From this many times as many members popped as left, the set is made anew of those that are left.
const REBUILD_RATIO: u64 = 5;

/// Shows `count` random members, of which some may be the same. False when the set is absent.
///
/// # Errors
/// [`TypeError`] as [`read`], and what `show` gives.
pub fn random_repeating<E: From<TypeError>>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    count: u64,
    show: Show<'_, E>,
) -> Result<bool, E> {
    let mut rng = generator(ks);
    let Some(set) = read(ks, key)? else { return Ok(false) };
    for _ in 0..count {
        show_random(set, &mut rng, show)?;
    }
    Ok(true)
}

/// Shows `count` random members, each once, or all if there are fewer.
///
/// # Errors
/// As [`random_repeating`].
pub fn random<E: From<TypeError>>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    count: u64,
    show: Show<'_, E>,
) -> Result<(), E> {
    let mut rng = generator(ks);
    let Some(set) = read(ks, key)? else { return Ok(()) };
    choose(set, count, false, &mut rng, |member, is_chosen| if is_chosen { show(member) } else { Ok(()) })
}

/// Removes a random member and shows it. False when the set is absent.
///
/// # Errors
/// As [`random_repeating`].
pub fn pop_one<E: From<TypeError>>(ks: &mut dyn Keyspace, key: &Key<'_>, show: Show<'_, E>) -> Result<bool, E> {
    let mut rng = generator(ks);
    let mut changes = ks.take_buffer();
    let Some(set) = read_to_edit(ks, key)? else { return Ok(false) };
    let left = set.len().saturating_sub(1) as u64;
    show_random(set, &mut rng, &mut |member| {
        Change::Remove(member.bytes(&mut IntegerText::default())).put(&mut changes);
        show(member)
    })?;
    collection::edit(ks, key, Type::Set, &changes);
    ks.give_buffer(changes);
    notify_removal(ks, "spop", key, left);
    Ok(true)
}

/// Removes `count` random members, or all if there are fewer, and shows them.
///
/// # Errors
/// As [`random_repeating`].
pub fn pop<E: From<TypeError>>(ks: &mut dyn Keyspace, key: &Key<'_>, count: u64, show: Show<'_, E>) -> Result<(), E> {
    let mut rng = generator(ks);
    let mut changes = ks.take_buffer();
    let Some(set) = read_to_edit(ks, key)?.filter(|_| count > 0) else { return Ok(()) };
    let left = (set.len() as u64).saturating_sub(count);
    let rebuilds = left > 0 && left.saturating_mul(REBUILD_RATIO) <= count;
    if rebuilds {
        Change::Clear.put(&mut changes);
        if !matches!(set, View::Integers(_)) {
            Change::Strings.put(&mut changes);
        }
    }
    choose(set, count, rebuilds, &mut rng, |member, is_popped| {
        let mut room = IntegerText::default();
        match (is_popped, rebuilds) {
            (true, false) if left > 0 => Change::Remove(member.bytes(&mut room)).put(&mut changes),
            (false, true) => Change::Add(member.bytes(&mut room)).put(&mut changes),
            _ => {}
        }
        if is_popped { show(member) } else { Ok(()) }
    })?;
    match left {
        0 => ks.apply(&Effect::Delete { key: *key }),
        _ => collection::edit(ks, key, Type::Set, &changes),
    }
    ks.give_buffer(changes);
    notify_removal(ks, "spop", key, left);
    Ok(())
}

/// [`pop`] of members that were chosen beforehand: the set without them takes its place. The changes may be left out if
/// nothing is recorded.
pub fn pop_made(ks: &mut dyn Keyspace, key: &Key<'_>, rest: Big, changes: &SharedBytes) {
    let (left, rest) = (rest.len() as u64, SharedBig::new(value::Big::Set(rest)));
    if changes.is_empty() && collection::may_be_packed(&rest, &ks.limits()) {
        let mut changes = Vec::new();
        Change::Clear.put(&mut changes);
        Change::Strings.put(&mut changes);
        rest.write_all_changes(&mut changes);
        collection::edit(ks, key, Type::Set, &changes);
    } else {
        collection::replace(ks, key, &rest, changes);
    }
    notify_removal(ks, "spop", key, left);
}

/// [`pop`] of all members, which the caller shows.
pub fn pop_all(ks: &mut dyn Keyspace, key: &Key<'_>) {
    ks.apply(&Effect::Delete { key: *key });
    notify_removal(ks, "spop", key, 0);
}

/// A generator for the choices of one command. The keyspace has one, but a set is borrowed from it while members are
/// chosen.
pub fn generator(ks: &mut dyn Keyspace) -> Rng {
    Rng::new(ks.random_below(u64::MAX))
}

fn show_random<E>(set: View<'_>, rng: &mut Rng, show: Show<'_, E>) -> Result<(), E> {
    let place = rng.below(set.len() as u64) as usize;
    set.at(place).map_or(Ok(()), show)
}

/// Chooses `count` members, all choices equally likely, and reports members and whether they were chosen: all members
/// if `of_all`, and otherwise perhaps only the chosen ones.
pub(crate) fn choose<E>(
    set: View<'_>,
    count: u64,
    of_all: bool,
    rng: &mut Rng,
    mut tell: impl FnMut(Member<'_>, bool) -> Result<(), E>,
) -> Result<(), E> {
    let len = set.len() as u64;
    let is_packed = !matches!(set, View::Big(_));
    if of_all || is_packed || count.saturating_mul(PASS_RATIO) >= len {
        let (mut members_left, mut wanted) = (len, count);
        return set.iter().try_for_each(|member| {
            let is_chosen = rng.below(members_left) < wanted;
            members_left = members_left.saturating_sub(1);
            wanted = wanted.saturating_sub(u64::from(is_chosen));
            tell(member, is_chosen)
        });
    }
    let mut places = HashSet::new();
    // R. Floyd: whatever was chosen before, the last place stands in for one that is taken.
    for last in len.saturating_sub(count)..len {
        let place = rng.below(last.saturating_add(1));
        if !places.insert(place) {
            places.insert(last);
        }
    }
    places.into_iter().filter_map(|place| set.at(place as usize)).try_for_each(|member| tell(member, true))
}
