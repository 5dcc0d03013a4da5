//! The iterator that users see: the newest visible version of each key, deleted keys left out, within bounds.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use super::MergeCursor;
use crate::bell::Bell;
use crate::error::{Error, Result};
use crate::expiry::Expiry;
use crate::key::{self, Kind, SEQNO_MAX, Seqno};
use crate::memtable::{Claim, Memtable};
use crate::range_tombstone::Covers;

/// Steps over deleted keys that are counted together.
const DELETED_AT_ONCE: u64 = 64;

/// Steps over deleted keys in a row from which the iterator lets others know that there is no value among them.
/// (Few in tests, whose databases are small.)
const CLAIM_FROM: u64 = if cfg!(test) { 3 } else { 32 };

/// Steps over deleted keys in a row after which it is asked again whether many can be skipped at once. (Few in tests.)
const SKIP_EVERY: u64 = if cfg!(test) { 2 } else { 32 };

/// Which keys an iterator shows. Start from [`range`](Self::range), [`prefix`](Self::prefix) or `default()` (all keys).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IterOptions {
    /// First key, included.
    pub(crate) lower: Option<Vec<u8>>,
    /// End, excluded.
    pub(crate) upper: Option<Vec<u8>>,
}

impl IterOptions {
    /// The keys of a range.
    pub fn range<'a>(range: impl RangeBounds<&'a [u8]>) -> Self {
        // The smallest key after k is k with a zero byte.
        let behind = |key: &[u8]| [key, &[0]].concat();
        let lower = match range.start_bound() {
            Bound::Included(key) => Some(key.to_vec()),
            Bound::Excluded(key) => Some(behind(key)),
            Bound::Unbounded => None,
        };
        let upper = match range.end_bound() {
            Bound::Included(key) => Some(behind(key)),
            Bound::Excluded(key) => Some(key.to_vec()),
            Bound::Unbounded => None,
        };
        Self { lower, upper }
    }

    /// The keys that begin with these bytes.
    pub fn prefix(prefix: &[u8]) -> Self {
        Self { lower: Some(prefix.to_vec()), upper: key::prefix_end(prefix) }
    }
}

/// A position among the keys of one key space, as of the moment it was made: later writes do not show. It keeps the
/// files it reads from being removed, so it should not be kept for longer than needed.
///
/// As an [`Iterator`] it yields owned pairs from the current place on, and begins at the first key:
///
/// ```
/// # let fs = std::sync::Arc::new(vfs::SimFs::new(1));
/// # let db = plex::Options::new().file_system(fs).open("/db")?;
/// db.put(b"a", b"1")?;
/// db.put(b"b", b"2")?;
/// for pair in db.iter(plex::IterOptions::default())? {
///     let (key, value) = pair?;
///     println!("{key:?} {value:?}");
/// }
/// # Ok::<(), plex::Error>(())
/// ```
pub struct Iter {
    cursor: MergeCursor,
    view: Seqno,
    covers: Covers,
    bounds: IterOptions,
    expiry: Option<Expiry>,
    place: Place,
    key: Vec<u8>,
    /// Backwards only, since there the cursor has passed it.
    value: Vec<u8>,
    /// The memtable that was written to when the iterator was made, and the key space: what is known of gaps.
    written: (Arc<Memtable>, u32),
    /// Where the walk over deleted keys began, if at a place that was sought.
    sought: Vec<u8>,
    /// Steps over deleted keys.
    deleted: u64,
    /// What the step after the last pair met; the iterator's next item.
    failure: Option<Error>,
    /// Rung when this scan was one too many for tables that could be merged.
    bell: Arc<Bell>,
}

/// Where the iterator is, and the merge cursor with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nowhere yet.
    New,
    /// On `key`; the cursor is on the version shown.
    Forward,
    /// On `key`; the cursor is before all its versions.
    Backward,
    /// Before the first key, after the last one, or stopped by an error.
    Outside,
}

impl std::fmt::Debug for Iter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Iter").field("view", &self.view).field("bounds", &self.bounds).finish_non_exhaustive()
    }
}

impl Iter {
    pub(crate) fn new(
        cursor: MergeCursor,
        view: Seqno,
        covers: Covers,
        bounds: IterOptions,
        expiry: Option<Expiry>,
        written: (Arc<Memtable>, u32),
        bell: Arc<Bell>,
    ) -> Self {
        Self {
            cursor,
            view,
            covers,
            bounds,
            expiry,
            place: Place::New,
            key: Vec::new(),
            value: Vec::new(),
            written,
            sought: Vec::new(),
            deleted: 0,
            failure: None,
            bell,
        }
    }

    /// Steps over deleted keys so far.
    #[cfg(test)]
    pub(crate) fn deleted_steps(&self) -> u64 {
        self.deleted
    }

    /// The key and value here; `None` outside of the keys.
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        match self.place {
            Place::Forward => Some((&self.key, self.value_of(self.cursor.value())?)),
            Place::Backward => Some((&self.key, self.value_of(&self.value)?)),
            Place::New | Place::Outside => None,
        }
    }

    /// What a stored value shows; `None` once it is over.
    fn value_of<'a>(&self, stored: &'a [u8]) -> Option<&'a [u8]> {
        self.expiry.as_ref().map_or(Some(stored), |expiry| expiry.value(stored))
    }

    /// Whether the cursor's version, which the view sees, is a value that shows.
    fn shows(&self, key: &[u8], seqno: Seqno) -> bool {
        self.cursor.kind() == Kind::Put
            && self.covers.at(key) <= seqno
            && self.expiry.as_ref().is_none_or(|expiry| expiry.value(self.cursor.value()).is_some())
    }

    /// To the first key.
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.seek(b"")
    }

    /// To the last key.
    pub fn seek_to_last(&mut self) -> Result<()> {
        self.place = Place::Outside;
        match &self.bounds.upper {
            Some(upper) => self.cursor.seek_before(upper, SEQNO_MAX)?,
            None => self.cursor.seek_to_last()?,
        }
        self.note_seek();
        self.find_backward()
    }

    /// To the first key at or after this one.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.place = Place::Outside;
        let from = self.bounds.lower.as_deref().map_or(key, |lower| lower.max(key));
        let (memtable, space) = &self.written;
        let gap_end = memtable.gap_end(*space, from, self.view);
        self.sought.clear();
        match &gap_end {
            Some(None) => return Ok(()),
            Some(Some(end)) => self.sought.extend_from_slice(end),
            None => self.sought.extend_from_slice(from),
        }
        self.cursor.seek(&self.sought, SEQNO_MAX)?;
        self.note_seek();
        self.find_forward(false, true)
    }

    /// To the last key before this one.
    pub fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.place = Place::Outside;
        let to = self.bounds.upper.as_deref().map_or(key, |upper| upper.min(key));
        self.cursor.seek_before(to, SEQNO_MAX)?;
        self.note_seek();
        self.find_backward()
    }

    /// To the next key; from a new iterator to the first. Outside it stays outside.
    pub fn step_forward(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.place, Place::Outside) {
            Place::New => self.seek_to_first(),
            Place::Forward => {
                self.cursor.next()?;
                self.find_forward(true, false)
            }
            Place::Backward => {
                self.cursor.seek(&self.key, 0)?;
                self.find_forward(true, false)
            }
            Place::Outside => Ok(()),
        }
    }

    /// To the key before; from a new iterator to the last. Outside it stays outside.
    pub fn step_back(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.place, Place::Outside) {
            Place::New => self.seek_to_last(),
            Place::Forward => {
                self.cursor.seek_before(&self.key, SEQNO_MAX)?;
                self.find_backward()
            }
            Place::Backward => self.find_backward(),
            Place::Outside => Ok(()),
        }
    }

    /// Lets tables know that a scan came to them.
    fn note_seek(&self) {
        if self.cursor.note_scan() {
            self.bell.ring();
        }
    }

    /// The cursor is on a deletion. Its table learns of it now and then.
    fn note_deleted(&mut self) {
        self.deleted += 1;
        if self.deleted.is_multiple_of(DELETED_AT_ONCE) && self.cursor.note_deleted(DELETED_AT_ONCE) {
            self.bell.ring();
        }
    }

    /// From the cursor's entry on to the first that shows. With `skips_key`, older versions of `key` do not. The walk
    /// begins at `sought` if that is so.
    fn find_forward(&mut self, mut skips_key: bool, mut is_from_sought: bool) -> Result<()> {
        let (mut steps, mut claim) = (0, None);
        while self.cursor.valid() {
            let (key, seqno) = self.cursor.place();
            if self.bounds.upper.as_deref().is_some_and(|upper| key >= upper) {
                break;
            }
            if seqno > self.view {
                // L2 of gaps.
                claim.take().into_iter().for_each(|claim: Claim| claim.keep(Some(key)));
            } else if !(skips_key && key == self.key) {
                self.key.clear();
                self.key.extend_from_slice(key);
                if self.shows(key, seqno) {
                    self.place = Place::Forward;
                    claim.into_iter().for_each(|claim: Claim| claim.keep(Some(&self.key)));
                    return Ok(());
                }
                skips_key = true;
                self.note_deleted();
                steps += 1;
                let (memtable, space) = &self.written;
                match memtable.gap_end(*space, &self.key, self.view) {
                    Some(None) => break,
                    Some(Some(end)) => {
                        if claim.is_none() {
                            self.sought.clone_from(&end);
                            (is_from_sought, steps) = (true, 0);
                        }
                        self.cursor.seek(&end, SEQNO_MAX)?;
                        skips_key = false;
                        continue;
                    }
                    None => {}
                }
                if steps == CLAIM_FROM && self.expiry.is_none() {
                    if !is_from_sought {
                        self.sought.clone_from(&self.key);
                    }
                    claim = Claim::begin(memtable, *space, &self.sought, self.view);
                    if claim.is_some() {
                        self.cursor.seek(&self.sought, SEQNO_MAX)?;
                        skips_key = false;
                        continue;
                    }
                }
                if steps.is_multiple_of(SKIP_EVERY) && self.cursor.skip_deleted(self.view)? {
                    continue;
                }
            }
            self.cursor.next()?;
        }
        // Behind the upper bound, tables may have been left out.
        claim.into_iter().for_each(|claim: Claim| claim.keep(self.bounds.upper.as_deref()));
        Ok(())
    }

    /// From the cursor's entry back to the first key that shows.
    fn find_backward(&mut self) -> Result<()> {
        while self.cursor.valid() {
            if self.bounds.lower.as_deref().is_some_and(|lower| self.cursor.key() < lower) {
                return Ok(());
            }
            self.key.clear();
            self.key.extend_from_slice(self.cursor.key());
            // Backwards, the newest version that the view sees comes last.
            let mut shows = false;
            while self.cursor.valid() && self.cursor.key() == self.key {
                if self.cursor.seqno() <= self.view {
                    shows = self.shows(&self.key, self.cursor.seqno());
                    self.value.clear();
                    self.value.extend_from_slice(self.cursor.value());
                }
                self.cursor.prev()?;
            }
            if shows {
                self.place = Place::Backward;
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Iterator for Iter {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.place == Place::New
            && let Err(error) = self.seek_to_first()
        {
            return Some(Err(error));
        }
        if let Some(error) = self.failure.take() {
            return Some(Err(error));
        }
        let pair = self.entry().map(|(key, value)| (key.to_vec(), value.to_vec()))?;
        // The pair is good, whatever the step after it meets.
        self.failure = self.step_forward().err();
        Some(Ok(pair))
    }
}
