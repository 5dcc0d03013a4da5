//! Removing members: by name, by range, from an end.

use super::{Entry, Range, change, read_to_edit};
use crate::TypeError;
use engine::{Key, Keyspace};
use std::collections::HashSet;
use value::zset::Change;

/// An end of a sorted set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The lowest scores.
    Min,
    /// The highest scores.
    Max,
}

/// Removes members and gives how many were there.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn remove<'a>(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    members: impl Iterator<Item = &'a [u8]> + Clone,
) -> Result<u64, TypeError> {
    let Some(view) = read_to_edit(ks, key)? else { return Ok(0) };
    let are_several = members.clone().nth(1).is_some();
    let mut seen = HashSet::new();
    let is_first_time = |member: &&'a [u8]| !are_several || seen.insert(*member);
    let removed: Vec<&[u8]> = members.filter(is_first_time).filter(|member| view.score(member).is_some()).collect();
    let (count, len) = (removed.len() as u64, view.len());
    if count > 0 {
        change(ks, key, "zrem", count == len, |changes| {
            removed.iter().for_each(|member| Change::Remove { member }.put(changes));
        });
    }
    Ok(count)
}

/// Removes a range and gives how many members it had.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn remove_range(ks: &mut dyn Keyspace, key: &Key<'_>, range: &Range<'_>) -> Result<u64, TypeError> {
    let Some(view) = read_to_edit(ks, key)? else { return Ok(0) };
    let ranks = range.ranks(&view, false);
    let (start, count) = (ranks.start, ranks.end.saturating_sub(ranks.start));
    let event = match range {
        Range::Rank { .. } => "zremrangebyrank",
        Range::Score { .. } => "zremrangebyscore",
        Range::Lex { .. } => "zremrangebylex",
    };
    if count > 0 {
        let is_last = count == view.len();
        change(ks, key, event, is_last, |changes| Change::RemoveRange { start, count }.put(changes));
    }
    Ok(count)
}

/// Removes up to `count` members from an end and shows them before, the outermost first, with how many there are in all.
/// False, and nothing is shown, when the key is absent.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn pop(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    end: End,
    count: u64,
    show: impl FnOnce(u64, &mut dyn Iterator<Item = Entry<'_>>),
) -> Result<bool, TypeError> {
    let Some(view) = read_to_edit(ks, key)? else { return Ok(false) };
    let len = view.len();
    let count = count.min(len);
    let (start, event) = match end {
        End::Min => (0, "zpopmin"),
        End::Max => (len.saturating_sub(count), "zpopmax"),
    };
    match end {
        End::Min => show(count, &mut view.forward(0).take(count as usize)),
        End::Max => show(count, &mut view.backward(u64::MAX).take(count as usize)),
    }
    if count > 0 {
        change(ks, key, event, count == len, |changes| Change::RemoveRange { start, count }.put(changes));
    }
    Ok(true)
}
