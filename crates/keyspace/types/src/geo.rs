//! Places on earth: sorted sets whose members have the cell they lie in as their score.
//!
//! A search takes the up to nine cells that cover its shape, each a range of scores, and measures the members in them.

pub mod cell;
pub mod shape;

pub use cell::Point;
pub use shape::{Shape, distance};

use crate::zset::View;
use std::cmp::Ordering;

/// A member that a search has found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found<'a> {
    /// The member.
    pub member: &'a [u8],
    /// Its score.
    pub score: f64,
    /// How many members of the index are before it.
    pub rank: u64,
    /// Where it is.
    pub point: Point,
    /// Metres from the centre of the shape.
    pub distance: f64,
}

/// Which members come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The nearest.
    Nearest,
    /// The farthest.
    Farthest,
}

/// Which of the members within a shape are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// In which order; `None` is that of the search.
    pub order: Option<Order>,
    /// How many at most.
    pub count: Option<usize>,
    /// Whether the search ends as soon as `count` are found, which then need not be the first in the order.
    pub any: bool,
}

impl<'a> Found<'a> {
    /// The member of this rank, which is so far from the centre.
    pub fn at(view: &View<'a>, rank: u64, distance: f64) -> Option<Self> {
        let entry = view.at(rank)?;
        Some(Self { member: entry.member, score: entry.score, rank, point: Point::of_score(entry.score), distance })
    }
}

/// Where a member is.
pub fn position(view: &View<'_>, member: &[u8]) -> Option<Point> {
    view.score(member).map(Point::of_score)
}

/// How many members lie in the cells that cover a shape: [`search`] looks at all of them.
pub fn looked_at(view: &View<'_>, shape: &Shape) -> u64 {
    let counts = shape.cells().into_iter().map(|cell| {
        let (first, end) = cell.scores();
        let before = |score| view.count_before(|entry| entry.score < score);
        before(end).saturating_sub(before(first))
    });
    counts.fold(0, u64::saturating_add)
}

/// The members within a shape.
pub fn search<'a>(view: &View<'a>, shape: &Shape, wanted: Wanted) -> Vec<Found<'a>> {
    let limit = wanted.count.filter(|_| wanted.any).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    for cell in shape.cells() {
        let (first, end) = cell.scores();
        let rank = view.count_before(|entry| entry.score < first);
        let members = (rank..).zip(view.forward(rank).take_while(|entry| entry.score < end));
        let members = members.filter_map(|(rank, entry)| {
            let point = Point::of_score(entry.score);
            let distance = shape.distance_within(point)?;
            Some(Found { member: entry.member, score: entry.score, rank, point, distance })
        });
        found.extend(members.take(limit.saturating_sub(found.len())));
        if found.len() >= limit {
            break;
        }
    }
    if let Some(order) = wanted.order {
        found.sort_by(|a, b| {
            let ordering = a.distance.partial_cmp(&b.distance).unwrap_or(Ordering::Equal);
            if order == Order::Nearest { ordering } else { ordering.reverse() }
        });
    }
    found.truncate(wanted.count.unwrap_or(usize::MAX));
    found
}
