//! Deleted ranges of keys: the tombstone itself, and which of many cover a key.

use std::collections::HashSet;
use std::sync::Arc;

use crate::key::Seqno;

/// The keys from `start` (included) to `end` (excluded) were deleted by the change `seqno`: every older version of them
/// is gone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RangeTombstone {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    pub seqno: Seqno,
}

impl RangeTombstone {
    pub fn covers(&self, key: &[u8]) -> bool {
        *self.start <= *key && *key < *self.end
    }

    /// The part within `from` (included) to `to` (excluded), where `None` has no bound; `None` if nothing is left.
    pub fn clipped(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> Option<RangeTombstone> {
        let start = from.map_or(&self.start[..], |from| from.max(&self.start));
        let end = to.map_or(&self.end[..], |to| to.min(&self.end));
        (start < end).then(|| RangeTombstone { start: start.into(), end: end.into(), seqno: self.seqno })
    }
}

/// For one view: the newest tombstone over every key, as pieces that do not overlap.
#[derive(Debug, Default)]
pub(crate) struct Cover {
    /// Where a piece begins, and the newest tombstone from there to the next piece; 0 for none. Ascending.
    pieces: Vec<(Vec<u8>, Seqno)>,
    /// The newest of all.
    newest: Seqno,
}

impl Cover {
    /// Whether there is no tombstone.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The sequence number of the newest tombstone; 0 for none.
    pub fn newest(&self) -> Seqno {
        self.newest
    }

    /// From where (included) to where (excluded) one tombstone hides everything up to this number, if it hides it at
    /// the key.
    pub fn hides(&self, key: &[u8], seqno_max: Seqno) -> Option<(&[u8], &[u8])> {
        if self.newest <= seqno_max {
            return None;
        }
        let next = self.pieces.partition_point(|(start, _)| start.as_slice() <= key);
        let (start, newest) = self.pieces.get(next.checked_sub(1)?)?;
        // The last piece has no tombstone.
        (*newest > seqno_max).then(|| (start.as_slice(), self.pieces[next].0.as_slice()))
    }

    /// Of pieces that ascend; the last one has no tombstone.
    pub fn of_pieces(pieces: impl Iterator<Item = (Vec<u8>, Seqno)>) -> Self {
        let pieces: Vec<_> = pieces.collect();
        let newest = pieces.iter().map(|(_, seqno)| *seqno).max().unwrap_or(0);
        Self { pieces, newest }
    }

    /// The numbers of the tombstones that are the newest over any key.
    pub fn seqnos(&self) -> HashSet<Seqno> {
        self.pieces.iter().map(|(_, seqno)| *seqno).collect()
    }

    /// Tombstones newer than `view` are left out.
    pub fn new<'a>(tombstones: impl IntoIterator<Item = &'a RangeTombstone>, view: Seqno) -> Self {
        let seen: Vec<&RangeTombstone> = tombstones.into_iter().filter(|t| t.seqno <= view).collect();
        let mut borders: Vec<&Vec<u8>> = seen.iter().flat_map(|t| [&t.start, &t.end]).collect();
        borders.sort_unstable();
        borders.dedup();
        let mut starting = seen.clone();
        starting.sort_unstable_by(|a, b| a.start.cmp(&b.start));
        let mut starting = starting.into_iter().peekable();
        // Open tombstones, newest on top; those that have ended are removed when they come up.
        let mut open = std::collections::BinaryHeap::new();
        let mut pieces: Vec<(Vec<u8>, Seqno)> = Vec::new();
        for border in borders {
            while let Some(t) = starting.next_if(|t| t.start == *border) {
                open.push((t.seqno, &t.end));
            }
            while open.peek().is_some_and(|(_, end)| *end <= border) {
                open.pop();
            }
            let newest = open.peek().map_or(0, |(seqno, _)| *seqno);
            if pieces.last().is_none_or(|(_, seqno)| *seqno != newest) {
                pieces.push((border.clone(), newest));
            }
        }
        let newest = seen.iter().map(|t| t.seqno).max().unwrap_or(0);
        Self { pieces, newest }
    }

    /// The newest tombstone over the key; 0 for none.
    pub fn at(&self, key: &[u8]) -> Seqno {
        if self.pieces.is_empty() {
            return 0;
        }
        match self.pieces.partition_point(|(start, _)| start.as_slice() <= key) {
            0 => 0,
            n => self.pieces[n - 1].1,
        }
    }
}

/// What several sources have deleted. A clone shares it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Covers(Arc<[Arc<Cover>]>);

impl Covers {
    /// Those that have no tombstone are left out.
    pub fn new(covers: impl Iterator<Item = Arc<Cover>>) -> Self {
        Self(covers.filter(|cover| !cover.is_empty()).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The newest tombstone over the key; 0 for none.
    pub fn at(&self, key: &[u8]) -> Seqno {
        self.0.iter().map(|cover| cover.at(key)).max().unwrap_or(0)
    }

    /// As [`Cover::hides`], by any one of them.
    pub fn hides(&self, key: &[u8], seqno_max: Seqno) -> Option<(&[u8], &[u8])> {
        self.0.iter().find_map(|cover| cover.hides(key, seqno_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// Pieces agree with asking every tombstone, for random tombstones and views.
    #[test]
    fn pieces_agree_with_the_definition() {
        let mut rng = Rng::new(9);
        for _ in 0..300 {
            let tombstones: Vec<RangeTombstone> = (0..rng.below(12))
                .map(|_| {
                    let start = rng.below(30) as u8;
                    let end = start + 1 + rng.below(8) as u8;
                    RangeTombstone { start: vec![start], end: vec![end], seqno: 1 + rng.below(20) }
                })
                .collect();
            let view = rng.below(22);
            let cover = Cover::new(&tombstones, view);
            for key in 0..40u8 {
                let over = tombstones.iter().filter(|t| t.seqno <= view && t.covers(&[key]));
                let newest = over.map(|t| t.seqno).max().unwrap_or(0);
                assert_eq!(cover.at(&[key]), newest);
                for seqno in 0..22 {
                    let hides = cover.hides(&[key], seqno);
                    assert_eq!(hides.is_some(), newest > seqno);
                    let Some((from, to)) = hides else { continue };
                    assert!((from[0]..to[0]).contains(&key) && (from[0]..to[0]).all(|key| cover.at(&[key]) > seqno));
                }
            }
        }
    }

    #[test]
    fn clipping() {
        let t = RangeTombstone { start: b"b".to_vec(), end: b"f".to_vec(), seqno: 1 };
        let clipped = |from: Option<&[u8]>, to: Option<&[u8]>| t.clipped(from, to).map(|t| (t.start, t.end));
        assert_eq!(clipped(None, None), Some((b"b".to_vec(), b"f".to_vec())));
        assert_eq!(clipped(Some(b"c"), Some(b"d")), Some((b"c".to_vec(), b"d".to_vec())));
        assert_eq!(clipped(Some(b"f"), None), None);
        assert_eq!(clipped(None, Some(b"b")), None);
    }
}
