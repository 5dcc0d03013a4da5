//! Adding members and changing their scores.

use super::{Entry, change, read_to_edit};
use crate::TypeError;
use engine::{Key, Keyspace};
use std::collections::HashMap;
use value::zset::Change;

/// When a member's score is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Whether it has to be there or not.
    pub only: Only,
    /// Which way the score of a member that is there may go; `None` means either.
    pub toward: Option<Toward>,
}

/// Members to be left alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Only {
    /// None.
    #[default]
    Any,
    /// Those that are there.
    New,
    /// Those that are not.
    Existing,
}

/// A direction of scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    /// Up.
    Greater,
    /// Down.
    Less,
}

/// What became of the members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// How many were not there before.
    pub added: u64,
    /// How many have another score than before.
    pub updated: u64,
}

impl Rule {
    /// Whether a member with this score, or one that is not there, is to have the new one.
    fn allows(&self, old: Option<f64>, new: f64) -> bool {
        match (old, self.only, self.toward) {
            (None, Only::Existing, _) | (Some(_), Only::New, _) => false,
            (Some(old), _, Some(Toward::Greater)) => new > old,
            (Some(old), _, Some(Toward::Less)) => new < old,
            _ => true,
        }
    }
}

/// Sets the scores of members, one after the other; none is NaN.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn add(ks: &mut dyn Keyspace, key: &Key<'_>, rule: Rule, entries: &[Entry<'_>]) -> Result<Added, TypeError> {
    let mut changes = ks.take_buffer();
    let outcome = decide(ks, key, rule, entries, &mut changes);
    if !changes.is_empty() {
        change(ks, key, "zadd", false, |buffer| std::mem::swap(buffer, &mut changes));
    }
    ks.give_buffer(changes);
    outcome
}

fn decide(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    rule: Rule,
    entries: &[Entry<'_>],
    changes: &mut Vec<u8>,
) -> Result<Added, TypeError> {
    let view = read_to_edit(ks, key)?;
    let mut outcome = Added::default();
    // What earlier entries of this command did to members that are named again.
    let mut earlier = HashMap::new();
    for entry in entries {
        let old = earlier.get(entry.member).copied().or_else(|| view?.score(entry.member));
        if !rule.allows(old, entry.score) || old == Some(entry.score) {
            continue;
        }
        match old {
            None => outcome.added = outcome.added.saturating_add(1),
            Some(_) => outcome.updated = outcome.updated.saturating_add(1),
        }
        Change::Add { score: entry.score, member: entry.member }.put(changes);
        if entries.len() > 1 {
            earlier.insert(entry.member, entry.score);
        }
    }
    Ok(outcome)
}

/// Adds to a member's score, which is zero if it is not there, and gives the sum; `None` when the rule left it alone.
///
/// # Errors
/// [`TypeError::ScoreNotNumber`] when the sum is of opposite infinities, [`TypeError::WrongType`],
/// [`TypeError::Fetch`].
pub fn increment(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    rule: Rule,
    by: f64,
    member: &[u8],
) -> Result<Option<f64>, TypeError> {
    let old = read_to_edit(ks, key)?.and_then(|view| view.score(member));
    if old.is_some() && rule.only == Only::New {
        return Ok(None);
    }
    let new = old.map_or(by, |old| old + by);
    if new.is_nan() {
        return Err(TypeError::ScoreNotNumber);
    }
    if !rule.allows(old, new) {
        return Ok(None);
    }
    if old != Some(new) {
        change(ks, key, "zincr", false, |changes| Change::Add { score: new, member }.put(changes));
    }
    Ok(Some(new))
}
