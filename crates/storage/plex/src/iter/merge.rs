//! Many sorted sources as one, by a loser tree: a step costs one comparison per level of the tree.
//!
//! ```text
//!   tree[0] = winner          each inner node keeps the loser of its match; when the winner moves on,
//!   tree[1..n] = losers       only the matches on its way to the top are played again
//! ```
//!
//! Most matches are decided by the first bytes of the keys, which lie side by side: a match then touches neither
//! source. And as long as the winner's stand before those of the *rival*, the best of all others, it wins again without
//! a match.

use std::cmp::Ordering;

use super::Source;
use crate::error::Result;
use crate::fence::leading;
use crate::key::{self, Kind, SEQNO_MAX, Seqno};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    Backward,
}

impl Way {
    /// Whether a head comes before another one for certain.
    #[inline]
    fn leads(self, head: u128, other: u128) -> bool {
        match self {
            Self::Forward => head < other,
            Self::Backward => head > other,
        }
    }
}

/// The entries of all sources in order. After an error it is not valid.
pub(crate) struct MergeCursor {
    sources: Vec<Source>,
    /// Of each source's entry the first bytes of the key; `None` for one that has ended.
    heads: Vec<Option<u128>>,
    tree: Vec<usize>,
    /// The best head except the winner's; `None` if all others have ended.
    rival: Option<u128>,
    way: Way,
    has_failed: bool,
}

impl MergeCursor {
    /// Sources from the newest to the oldest.
    pub fn new(sources: Vec<Source>) -> Self {
        let (heads, tree) = (vec![None; sources.len()], vec![0; sources.len().max(1)]);
        Self { sources, heads, tree, rival: None, way: Way::Forward, has_failed: true }
    }

    pub fn valid(&self) -> bool {
        !self.has_failed && self.heads.get(self.tree[0]).is_some_and(Option::is_some)
    }

    fn winner(&self) -> &Source {
        &self.sources[self.tree[0]]
    }

    pub fn key(&self) -> &[u8] {
        self.winner().key()
    }

    /// Key and number.
    #[inline]
    pub fn place(&self) -> (&[u8], Seqno) {
        let winner = self.winner();
        (winner.key(), winner.seqno())
    }

    pub fn seqno(&self) -> Seqno {
        self.winner().seqno()
    }

    pub fn kind(&self) -> Kind {
        self.winner().kind()
    }

    pub fn value(&self) -> &[u8] {
        self.winner().value()
    }

    pub fn seek_to_first(&mut self) -> Result<()> {
        self.position(Way::Forward, Source::seek_to_first)
    }

    pub fn seek_to_last(&mut self) -> Result<()> {
        self.position(Way::Backward, Source::seek_to_last)
    }

    /// To the first entry at or after this place.
    pub fn seek(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        self.approach(key, seqno)?;
        self.position(Way::Forward, |source| source.land(key, seqno))
    }

    /// To the last entry before this place.
    pub fn seek_before(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        self.approach(key, seqno)?;
        self.position(Way::Backward, |source| {
            source.land(key, seqno)?;
            if source.valid() { source.prev() } else { source.seek_to_last() }
        })
    }

    /// Counts a scan in every table that the cursor is in; whether a merge of one of them may pay by now.
    pub fn note_scan(&self) -> bool {
        self.sources.iter().fold(false, |often, source| often | source.note_scan())
    }

    /// Counts steps over deleted keys, of which the current entry is the last; whether a merge of its table may pay by
    /// now.
    pub fn note_deleted(&self, steps: u64) -> bool {
        self.winner().note_deleted(steps)
    }

    /// Forwards over keys that show no value to the view, without a look at each: where a memtable knows many such, and
    /// no other source has a key among them. `false` if there are none, and the cursor is where it was.
    pub fn skip_deleted(&mut self, view: Seqno) -> Result<bool> {
        let winner = self.tree[0];
        let Source::Memtable(cursor) = &self.sources[winner] else { return Ok(false) };
        let others = self.sources.iter().zip(&self.heads).enumerate();
        let others = others.filter(|(at, (_, head))| *at != winner && head.is_some());
        let next = others.map(|(_, (source, _))| source.key()).min();
        if next.is_some_and(|next| next <= cursor.key()) {
            return Ok(false);
        }
        let Some(last) = cursor.deleted_until(view, next) else { return Ok(false) };
        let to = next.map_or(last, |next| next.min(last));
        if to <= cursor.key() {
            return Ok(false);
        }
        let to = to.to_vec();
        let moved = self.sources[winner].land(&to, SEQNO_MAX);
        self.note_move(winner, moved)?;
        self.arrive().map(|()| true)
    }

    /// To the next entry. Must be valid.
    pub fn next(&mut self) -> Result<()> {
        self.step(Way::Forward)
    }

    /// To the entry before. Must be valid.
    pub fn prev(&mut self) -> Result<()> {
        self.step(Way::Backward)
    }

    /// Brings all sources on their way to a place. Memory then fetches what they need side by side, where one seek
    /// after the other would wait for each line in turn.
    fn approach(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        self.has_failed = true;
        self.sources.iter_mut().try_for_each(|source| source.aim(key, seqno))?;
        self.sources.iter().for_each(Source::prefetch_cell);
        self.sources.iter_mut().try_for_each(Source::approach)?;
        self.sources.iter().for_each(Source::prefetch_search);
        Ok(())
    }

    fn position(&mut self, way: Way, mut place: impl FnMut(&mut Source) -> Result<()>) -> Result<()> {
        self.way = way;
        self.has_failed = true;
        self.sources.iter_mut().try_for_each(&mut place)?;
        self.heads.clear();
        self.heads.extend(self.sources.iter().map(head));
        self.play_all();
        self.find_rival();
        self.has_failed = false;
        self.arrive()
    }

    /// Makes sure that the winner is on an entry.
    fn arrive(&mut self) -> Result<()> {
        while self.valid() && self.winner().is_ahead() {
            let winner = self.tree[0];
            let arrived = self.sources[winner].arrive();
            self.note_move(winner, arrived)?;
        }
        Ok(())
    }

    /// The winner has moved, or failed to.
    fn note_move(&mut self, winner: usize, moved: Result<()>) -> Result<()> {
        self.has_failed = moved.is_err();
        if moved.is_ok() {
            let head = head(&self.sources[winner]);
            self.heads[winner] = head;
            let wins_again = head.is_some_and(|head| self.rival.is_none_or(|rival| self.way.leads(head, rival)));
            if !wins_again {
                self.play_from(winner);
                self.find_rival();
            }
        }
        moved
    }

    fn step(&mut self, way: Way) -> Result<()> {
        if self.way != way {
            let (key, seqno) = (self.key().to_vec(), self.seqno());
            match way {
                Way::Forward => {
                    self.seek(&key, seqno)?;
                    // Now on the same entry again.
                }
                Way::Backward => return self.seek_before(&key, seqno),
            }
        }
        let winner = self.tree[0];
        let moved = match way {
            Way::Forward => self.sources[winner].next(),
            Way::Backward => self.sources[winner].prev(),
        };
        self.note_move(winner, moved)?;
        self.arrive()
    }

    /// Whether source `a` comes before source `b`. Ended sources come last; the newer source wins a tie.
    fn beats(&self, a: usize, b: usize) -> bool {
        let (Some(x), Some(y)) = (self.heads[a], self.heads[b]) else { return self.heads[a].is_some() };
        let order = x.cmp(&y).then_with(|| {
            let (x, y) = (&self.sources[a], &self.sources[b]);
            key::compare((x.key(), x.seqno()), (y.key(), y.seqno())).then(a.cmp(&b))
        });
        order == if self.way == Way::Forward { Ordering::Less } else { Ordering::Greater }
    }

    /// Plays all matches. Node `i` has children `2i` and `2i + 1`; source `s` is leaf `n + s`.
    fn play_all(&mut self) {
        let n = self.sources.len();
        if n == 0 {
            return;
        }
        let mut winners = vec![0; 2 * n];
        for s in 0..n {
            winners[n + s] = s;
        }
        for node in (1..n).rev() {
            let (a, b) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) = if self.beats(a, b) { (a, b) } else { (b, a) };
            winners[node] = winner;
            self.tree[node] = loser;
        }
        self.tree[0] = winners[1.min(2 * n - 1)];
    }

    /// Plays the matches of one source again, from its leaf to the top.
    fn play_from(&mut self, source: usize) {
        let mut winner = source;
        let mut node = (self.sources.len() + source) / 2;
        while node > 0 {
            if self.beats(self.tree[node], winner) {
                std::mem::swap(&mut self.tree[node], &mut winner);
            }
            node /= 2;
        }
        self.tree[0] = winner;
    }

    /// The best of those that lost to the winner, which stand on its way to the top.
    fn find_rival(&mut self) {
        self.rival = None;
        let mut node = (self.sources.len() + self.tree[0]) / 2;
        while node > 0 {
            if let Some(head) = self.heads[self.tree[node]]
                && self.rival.is_none_or(|best| self.way.leads(head, best))
            {
                self.rival = Some(head);
            }
            node /= 2;
        }
    }
}

/// The first bytes of the source's key; `None` if it has ended.
fn head(source: &Source) -> Option<u128> {
    source.valid().then(|| leading(source.key()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memtable::{Memtable, MemtableCursor};
    use base::Rng;
    use std::sync::Arc;

    /// Any number of sources, walked and turned around at random, agree with one sorted list.
    #[test]
    fn agrees_with_one_list() {
        let mut rng = Rng::new(12);
        for count in [0, 1, 2, 3, 5, 8, 13] {
            let tables: Vec<_> = (0..count).map(|_| Arc::new(Memtable::new(0))).collect();
            let mut list = Vec::new();
            for seqno in 1..=count * 20 {
                let key = rng.below(40).to_string().into_bytes();
                tables[rng.below(count) as usize].insert(0, &key, seqno, Kind::Put, b"");
                list.push((key, seqno));
            }
            list.sort_by(|a, b| key::compare((&a.0, a.1), (&b.0, b.1)));
            let sources = tables.iter().map(|t| Source::Memtable(MemtableCursor::new(t.clone(), 0))).collect();
            let mut cursor = MergeCursor::new(sources);
            assert!(!cursor.valid());
            for _ in 0..300 {
                let (key, seqno) = (rng.below(42).to_string().into_bytes(), rng.below(count * 20 + 2));
                let at = list.partition_point(|e| key::compare((&e.0, e.1), (&key, seqno)).is_lt());
                let mut at = match rng.below(4) {
                    0 => cursor.seek(&key, seqno).map(|()| Some(at)).unwrap(),
                    1 => cursor.seek_before(&key, seqno).map(|()| at.checked_sub(1)).unwrap(),
                    2 => cursor.seek_to_first().map(|()| Some(0)).unwrap(),
                    _ => cursor.seek_to_last().map(|()| list.len().checked_sub(1)).unwrap(),
                };
                for _ in 0..rng.below(30) {
                    let expected = at.and_then(|at| list.get(at));
                    let found = cursor.valid().then(|| (cursor.key().to_vec(), cursor.seqno()));
                    assert_eq!(found.as_ref(), expected);
                    let Some(here) = at.filter(|_| expected.is_some()) else { break };
                    if rng.one_in(3) {
                        cursor.prev().unwrap();
                        at = here.checked_sub(1);
                    } else {
                        cursor.next().unwrap();
                        at = Some(here + 1);
                    }
                }
            }
        }
    }
}
