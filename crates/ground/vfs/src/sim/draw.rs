//! The random decisions of a power cut: which pending changes reached the medium, drawn from a seed.

use std::ops::Range;

use base::Rng;

/// The unit that a device writes atomically, unless the write is torn; in bytes.
pub(super) const SECTOR: u64 = 512;

/// The kinds of damage that a power cut may do to *pending* sectors. All by default. The code under test may rely on
/// anything switched off here, so say why where you do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashModel {
    /// A pending sector may be partly new and partly old, cut at any byte.
    pub torn_sectors: bool,
    /// The pending bytes of a sector may read as zero, even if they replaced durable ones.
    pub zeroed_sectors: bool,
}

impl Default for CrashModel {
    fn default() -> Self {
        Self { torn_sectors: true, zeroed_sectors: true }
    }
}

/// The outcome of one pending sector.
pub(super) enum Fate {
    New,
    Old,
    Zero,
    /// New up to the given byte, old after it.
    HeadNew(usize),
    /// Old up to the given byte, new after it.
    TailNew(usize),
}

pub(super) struct Draw {
    rng: Rng,
    model: CrashModel,
    /// How many of 100 pending changes arrive.
    arriving: u64,
}

impl Draw {
    pub fn new(rng: Rng, model: CrashModel) -> Self {
        Self { rng, model, arriving: 50 }
    }

    /// Draws the share of the following changes that arrives: nothing, everything, half, or any share. With a fixed
    /// share, the two extremes - the likeliest outcomes of a real cut - would almost never occur in a long list.
    pub fn choose_mood(&mut self) {
        self.arriving = match self.rng.below(4) {
            0 => 0,
            1 => 100,
            2 => 50,
            _ => self.rng.below(101),
        };
    }

    /// Whether a change that cannot be torn arrives.
    pub fn keeps(&mut self) -> bool {
        self.rng.below(100) < self.arriving
    }

    /// The outcome of `len` pending bytes within one sector.
    pub fn fate(&mut self, len: usize) -> Fate {
        if self.keeps() {
            return Fate::New;
        }
        // If nothing arrives at all, nothing is damaged either.
        match if self.arriving == 0 { 0 } else { self.rng.below(8) } {
            5 if self.model.zeroed_sectors => Fate::Zero,
            6 if self.model.torn_sectors && len > 1 => Fate::HeadNew(self.cut(len)),
            7 if self.model.torn_sectors && len > 1 => Fate::TailNew(self.cut(len)),
            _ => Fate::Old,
        }
    }

    fn cut(&mut self, len: usize) -> usize {
        1 + self.rng.below(len as u64 - 1) as usize
    }
}

/// The pieces of a write of `len` bytes at `offset` that fall into different sectors, as ranges of the written bytes.
pub(super) fn sectors(offset: u64, len: usize) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        if start == len {
            return None;
        }
        let room = SECTOR - (offset + start as u64) % SECTOR;
        let end = len.min(start + room as usize);
        let sector = start..end;
        start = end;
        Some(sector)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces join without gap and never cross a sector's border.
    #[test]
    fn sectors_tile_a_write() {
        assert_eq!(sectors(510, 4).collect::<Vec<_>>(), [0..2, 2..4]);
        assert_eq!(sectors(0, 1024).collect::<Vec<_>>(), [0..512, 512..1024]);
        assert_eq!(sectors(7, 0).count(), 0);
    }

    /// Every outcome occurs with the full model, and those switched off never do.
    #[test]
    fn fates_follow_the_model() {
        let seen = |model| {
            let mut draw = Draw::new(Rng::new(3), model);
            let mut seen = [false; 5];
            for _ in 0..1000 {
                let kind = match draw.fate(512) {
                    Fate::New => 0,
                    Fate::Old => 1,
                    Fate::Zero => 2,
                    Fate::HeadNew(cut) | Fate::TailNew(cut) if cut == 0 || cut == 512 => panic!("not torn inside"),
                    Fate::HeadNew(_) => 3,
                    Fate::TailNew(_) => 4,
                };
                seen[kind] = true;
            }
            seen
        };
        assert_eq!(seen(CrashModel::default()), [true; 5]);
        let mild = CrashModel { torn_sectors: false, zeroed_sectors: false };
        assert_eq!(seen(mild), [true, true, false, false, false]);
    }
}
