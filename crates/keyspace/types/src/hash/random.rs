//! Random fields. Numbers are drawn between looks at the hash, since both need the keyspace.

use super::{Cell, Hash, peek, read};
use crate::TypeError;
use engine::{Key, Keyspace};
use std::collections::HashSet;

/// Numbers drawn between two looks.
const DRAWS: usize = 64;

/// Shows some field, each equally likely; `None` when there is none.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`], or what `show` gives.
pub fn pick(ks: &mut dyn Keyspace, key: &Key<'_>, show: &mut dyn FnMut(Option<Cell<'_>>)) -> Result<(), TypeError> {
    let mut shown = false;
    repeated(ks, key, 1, &mut |cell| {
        show(Some(cell));
        shown = true;
        true
    })?;
    if !shown {
        show(None);
    }
    Ok(())
}

/// Shows `count` fields, each time each of them equally likely, until `show` says false; none when there is none.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn repeated(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    count: u64,
    show: &mut dyn FnMut(Cell<'_>) -> bool,
) -> Result<(), TypeError> {
    let hash = read(ks, key)?;
    let live = Live::of(&hash);
    let mut left = if live.len() == 0 { 0 } else { count };
    let mut draws = [0; DRAWS];
    while left > 0 {
        let wanted = DRAWS.min(usize::try_from(left).unwrap_or(DRAWS));
        let draws = draws.get_mut(..wanted).unwrap_or_default();
        draws.iter_mut().for_each(|draw| *draw = ks.random_below(live.len()));
        let hash = peek(ks, key)?;
        if !draws.iter().filter_map(|draw| live.cell(&hash, *draw)).all(&mut *show) {
            return Ok(());
        }
        left = left.saturating_sub(wanted as u64);
    }
    Ok(())
}

/// Shows `count` different fields, or all if there are no more, each choice of fields equally likely, until `show` says
/// false.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn distinct(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    count: u64,
    show: &mut dyn FnMut(Cell<'_>) -> bool,
) -> Result<(), TypeError> {
    let hash = read(ks, key)?;
    let live = Live::of(&hash);
    if count >= live.len() {
        hash.iter().all(show);
        return Ok(());
    }
    // Of many, it is faster to choose those that are left out.
    let leaves_out = count > live.len() / 2;
    let draws = if leaves_out { live.len().saturating_sub(count) } else { count };
    let mut chosen = HashSet::new();
    while (chosen.len() as u64) < draws {
        chosen.insert(ks.random_below(live.len()));
    }
    let hash = peek(ks, key)?;
    if leaves_out || !hash.view.is_big() {
        let numbered = (0u64..).zip(hash.iter());
        let mut shown = numbered.filter(|(number, _)| chosen.contains(number) != leaves_out).map(|(_, cell)| cell);
        shown.all(show);
    } else {
        chosen.into_iter().filter_map(|number| live.cell(&hash, number)).all(show);
    }
    Ok(())
}

/// Which places of a hash have fields that are not due.
enum Live {
    /// All of `len` places.
    All(u64),
    /// These.
    Places(Vec<usize>),
}

impl Live {
    fn of(hash: &Hash<'_>) -> Self {
        if hash.view.count_due(hash.now) == 0 {
            return Self::All(hash.view.len() as u64);
        }
        let places = hash.view.iter().enumerate().filter(|(_, cell)| !cell.is_due(hash.now)).map(|(place, _)| place);
        Self::Places(places.collect())
    }

    fn len(&self) -> u64 {
        match self {
            Self::All(len) => *len,
            Self::Places(places) => places.len() as u64,
        }
    }

    fn cell<'a>(&self, hash: &Hash<'a>, number: u64) -> Option<Cell<'a>> {
        let number = usize::try_from(number).ok()?;
        match self {
            Self::All(_) => hash.view.at(number),
            Self::Places(places) => hash.view.at(*places.get(number)?),
        }
    }
}
