//! One file of the simulated disk: its visible contents, its durable contents, and the changes between them.
//!
//! ```text
//!   write, truncate, ... --> live            read by programs; lost in a power cut
//!                       \--> pending -sync-> durable     all that is sure to survive a power cut
//! ```
//!
//! F1. While `diverged` is false, `live` is `durable` with all of `pending` applied in order.
//! F2. `diverged` files have damage that no call reported (a failed sync, a misdirected write): their synced state is
//!     the pending changes applied to `durable`, never a copy of `live`.
//! F3. Words written through persistent memory are in `live` at once and in `durable` after a fence. A file with such
//!     words is written by nothing else.

use std::ops::Range;
use std::sync::Arc;

use super::cow::CowVec;
use super::draw::{Draw, Fate, SECTOR, sectors};
use super::image::Image;
use super::words::Words;

/// A change that has reached the page cache and may not have reached the medium.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// Data alone; a `Grow` follows a write that extends the file.
    Write {
        offset: u64,
        bytes: Arc<[u8]>,
    },
    /// The length is now at least this.
    Grow(u64),
    /// The length is now at most this.
    Cut(u64),
    Reserve(Range<u64>),
    Punch(Range<u64>),
}

impl Change {
    fn apply(&self, image: &mut Image) {
        match self {
            Change::Write { offset, bytes } => image.write(bytes, *offset),
            Change::Grow(len) => image.grow(*len),
            Change::Cut(len) => image.cut(*len),
            Change::Reserve(range) => image.reserve(range.clone()),
            Change::Punch(range) => image.punch(range.clone()),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct FileNode {
    /// Names that programs see.
    pub links: u32,
    live: Image,
    durable: Image,
    pending: CowVec<Change>,
    /// Words written through persistent memory that are not fenced; in `live`, and not in `pending`.
    words: Words,
    /// Changes that have left `pending` since the file was created; numbers them across syncs.
    retired: u64,
    diverged: bool,
}

impl FileNode {
    /// A file as a reboot finds it: nothing is pending.
    pub fn at_rest(image: Image, links: u32) -> Self {
        Self { links, live: image.clone(), durable: image, ..Self::default() }
    }

    /// The contents that programs see.
    pub fn live(&self) -> &Image {
        &self.live
    }

    pub fn change(&mut self, change: Change) {
        change.apply(&mut self.live);
        self.pending.push(change);
    }

    /// Writes bytes, within the length.
    pub fn change_bytes(&mut self, bytes: &[u8], offset: u64) {
        self.change(Change::Write { offset, bytes: bytes.into() });
    }

    /// Stores bytes through persistent memory, within the length; with `is_flushed`, the next fence covers them.
    pub fn store(&mut self, bytes: &[u8], offset: u64, is_flushed: bool) {
        self.live.write(bytes, offset);
        self.words.store(&self.live, offset..offset + bytes.len() as u64, is_flushed);
    }

    /// The next fence covers the stores to this range.
    pub fn flush(&mut self, range: Range<u64>) {
        self.words.flush(range);
    }

    /// What was flushed is durable.
    pub fn fence(&mut self) {
        self.words.fence(&mut self.durable);
    }

    /// The number of states that the words that are not fenced can be left in; `None` if there are too many to count.
    pub fn word_states(&self) -> Option<u64> {
        self.words.states()
    }

    /// The result of a power cut that leaves the words in the state of this number, and nothing else that is pending.
    pub fn with_word_state(&self, number: u64) -> Image {
        let mut image = self.durable.clone();
        self.words.apply_state(number, &mut image);
        image
    }

    /// Writes only to the visible contents: the medium never receives the bytes, only a new length.
    pub fn change_unseen_by_medium(&mut self, offset: u64, bytes: &[u8]) {
        let old_len = self.live.len();
        self.live.write(bytes, offset);
        self.diverged = true;
        let end = offset + bytes.len() as u64;
        if end > old_len {
            self.change(Change::Grow(end));
        }
    }

    /// Changes bytes in the cache and on the medium, within the file's length: damage at rest.
    pub fn damage(&mut self, offset: u64, bytes: &[u8]) {
        for image in [&mut self.live, &mut self.durable] {
            let n = (bytes.len() as u64).min(image.len().saturating_sub(offset)) as usize;
            image.write(&bytes[..n], offset);
        }
    }

    /// Whether a sync would have nothing to do.
    pub fn is_settled(&self) -> bool {
        self.pending.is_empty() && self.words.is_empty()
    }

    /// The number to pass to [`sync`](Self::sync) so that it covers all changes so far.
    pub fn changes_made(&self) -> u64 {
        self.retired + self.pending.len() as u64
    }

    /// Makes the first `upto` changes of this file durable, counted since its creation.
    pub fn sync(&mut self, upto: u64) {
        let covered = upto.saturating_sub(self.retired) as usize;
        if covered == self.pending.len() && !self.diverged {
            self.durable = self.live.clone();
            self.pending = CowVec::default();
            self.words = Words::default();
        } else {
            self.pending.iter().take(covered).for_each(|change| change.apply(&mut self.durable));
            self.words.settle(&mut self.durable);
            self.pending = self.pending.iter().skip(covered).cloned().collect();
            // A length that a failed sync lost is still dirty metadata: any later sync writes it, over data that never
            // arrives.
            if self.pending.is_empty() {
                self.durable.set_len(self.live.len());
            }
        }
        self.retired += covered as u64;
    }

    /// A failed sync: some pending sectors arrive, and all pages are clean afterwards, so no later sync writes the
    /// others. Programs still see the new bytes or, with `reads_show_old`, the medium's contents.
    pub fn fail_sync(&mut self, draw: &mut Draw, reads_show_old: bool) {
        let len = self.live.len();
        self.durable = self.drawn(draw);
        self.retired += self.pending.len() as u64;
        self.pending = CowVec::default();
        self.words = Words::default();
        self.diverged = true;
        if reads_show_old {
            self.live = self.durable.clone();
            self.live.set_len(len);
        }
    }

    /// The result of a power cut: each pending length, hole and 512-byte sector independently, in any order.
    pub fn drawn(&self, draw: &mut Draw) -> Image {
        let mut image = self.durable.clone();
        if !self.words.is_empty() {
            draw.choose_mood();
            self.words.draw(&mut image, draw);
        }
        if self.pending.is_empty() {
            return image;
        }
        draw.choose_mood();
        let mut len = image.len();
        let kept: Vec<bool> = self.pending.iter().map(|change| draw_len(change, &mut len, draw)).collect();
        draw.choose_mood();
        for (change, kept) in self.pending.iter().zip(kept) {
            match change {
                Change::Write { offset, bytes } => {
                    let n = (bytes.len() as u64).min(len.saturating_sub(*offset)) as usize;
                    draw_write(&mut image, *offset, &bytes[..n], draw);
                }
                other if kept => other.apply(&mut image),
                _ => {}
            }
        }
        debug_assert_eq!(image.len(), len, "the two passes agree");
        image
    }
}

/// Decides whether a change other than a write arrives, and tracks the length.
fn draw_len(change: &Change, len: &mut u64, draw: &mut Draw) -> bool {
    if matches!(change, Change::Write { .. }) {
        return false;
    }
    let kept = draw.keeps();
    match change {
        Change::Grow(new) if kept => *len = (*len).max(*new),
        Change::Cut(new) if kept => *len = (*len).min(*new),
        _ => {}
    }
    kept
}

/// Draws the outcome of each sector of a write. Bytes of a sector outside the write are untouched, and so are bytes at
/// its beginning that the write does not change: they were not pending, and the medium rewrites them with the same
/// value.
fn draw_write(image: &mut Image, offset: u64, bytes: &[u8], draw: &mut Draw) {
    for sector in sectors(offset, bytes.len()) {
        let same = image.same_bytes(&bytes[sector.clone()], offset + sector.start as u64);
        let at = offset + (sector.start + same) as u64;
        let part = &bytes[sector.start + same..sector.end];
        match draw.fate(part.len()) {
            Fate::New => image.write(part, at),
            Fate::Old => {}
            Fate::Zero => image.write(&[0; SECTOR as usize][..part.len()], at),
            Fate::HeadNew(cut) => image.write(&part[..cut], at),
            Fate::TailNew(cut) => image.write(&part[cut..], at + cut as u64),
        }
    }
}
