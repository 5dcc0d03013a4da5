//! Elements of a big collection drawn at random, and written in pieces.

use crate::error::{REPLY_TOO_LONG_TEXT, check_reply};
use crate::limits::REPLY_BYTES_MAX;
use crate::permutation::Permutation;
use crate::work::reply::{LongReply, PIECE_BYTES, held_bytes};
use crate::{Ctx, Stop};
use base::Rng;
use engine::{Encoding, Entry, SharedBig, Value};
use proto::ReplyBuffer;
use value::Stored;

/// The most places looked at for a piece.
const PLACES_MAX: u64 = 2048;

/// The most elements drawn for a piece: each of a big tree is a chain of cache misses, or decompresses a leaf.
const DRAWN_MAX: u64 = 16;

/// Where at least one element in this many is drawn, all places are scanned; where fewer are, places are drawn.
const PASS_RATIO: u64 = 8;

/// The least bytes that an element takes in a reply.
const ELEMENT_BYTES_MIN: u64 = 6;

/// How many elements are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// This many different elements, or all.
    Distinct(u64),
    /// This many draws, each from all elements.
    Repeated(u64),
}

impl Draw {
    /// What a count stands for: a negative one allows repetitions.
    pub fn of(count: i64) -> Self {
        if count < 0 { Self::Repeated(count.unsigned_abs()) } else { Self::Distinct(count.unsigned_abs()) }
    }

    /// Refuses a count that makes the reply too long whatever the elements are, each being `parts` of it.
    ///
    /// # Errors
    /// The reply would be too long.
    pub fn check(self, parts: u64) -> Result<(), Stop> {
        match self {
            Self::Repeated(count)
                if count.saturating_mul(parts).saturating_mul(ELEMENT_BYTES_MIN) > REPLY_BYTES_MAX as u64 =>
            {
                Err(Stop::error(REPLY_TOO_LONG_TEXT))
            }
            _ => Ok(()),
        }
    }
}

/// How places are found.
enum Way {
    /// Any place, this many more times.
    Any(u64),
    /// From `at` on, `wanted` of those that are left, each choice being equally likely.
    Pass { at: u64, wanted: u64 },
    /// The first places of all in a random order, from `at` to `count`.
    Places { at: u64, count: u64, order: Permutation },
}

impl Way {
    fn of(draw: Draw, len: u64, rng: &mut Rng) -> Self {
        match draw {
            Draw::Repeated(count) => Self::Any(count),
            Draw::Distinct(count) if count.saturating_mul(PASS_RATIO) >= len => {
                Self::Pass { at: 0, wanted: count.min(len) }
            }
            Draw::Distinct(count) => Self::Places { at: 0, count, order: Permutation::new(len, rng) },
        }
    }

    /// The next place looked at, and whether it was drawn; `None` when all are drawn.
    fn next(&mut self, len: u64, rng: &mut Rng) -> Option<(u64, bool)> {
        match self {
            Self::Any(left) => {
                *left = left.checked_sub(1)?;
                Some((rng.below(len), true))
            }
            Self::Pass { at, wanted } => {
                let place = Some(*at).filter(|_| *wanted > 0)?;
                let is_drawn = rng.below(len.saturating_sub(place)) < *wanted;
                *at = place.saturating_add(1);
                *wanted = wanted.saturating_sub(u64::from(is_drawn));
                Some((place, is_drawn))
            }
            Self::Places { at, count, order } => {
                let next = Some(*at).filter(|at| at < count)?;
                *at = next.saturating_add(1);
                Some((order.of(next), true))
            }
        }
    }
}

/// Writes the element at a place.
type Write = dyn Fn(Encoding, Stored<'_>, usize, &mut ReplyBuffer) + Send;

/// What elements are drawn from, as it was when the command ran.
pub enum Drawn {
    /// A tree, shared.
    Tree(SharedBig),
    /// A copy of a packed collection.
    Packed(Encoding, Vec<u8>),
}

impl Drawn {
    /// The collection of an entry. `None` for a packed one of which each element is drawn once: that is soon done.
    pub fn of(entry: &Entry<'_>, draw: Draw) -> Option<Self> {
        match entry.value {
            Value::Big(tree) => Some(Self::Tree(tree.clone())),
            value => match (value.stored(), draw) {
                (Stored::Packed(bytes), Draw::Repeated(_)) => Some(Self::Packed(entry.encoding, bytes.to_vec())),
                _ => None,
            },
        }
    }

    fn stored(&self) -> (Encoding, Stored<'_>) {
        match self {
            Self::Tree(tree) => (Encoding::BIG, Stored::Big(tree)),
            Self::Packed(encoding, bytes) => (*encoding, Stored::Packed(bytes)),
        }
    }
}

struct Drawing {
    from: Drawn,
    len: u64,
    rng: Rng,
    way: Way,
    write: Box<Write>,
}

impl LongReply for Drawing {
    fn write_piece(&mut self, reply: &mut ReplyBuffer) -> bool {
        let (start, mut drawn) = (reply.len(), 0u64);
        for _ in 0..PLACES_MAX {
            let Some((place, is_drawn)) = self.way.next(self.len, &mut self.rng) else { return false };
            if is_drawn {
                let (encoding, stored) = self.from.stored();
                (self.write)(encoding, stored, place as usize, reply);
                drawn = drawn.saturating_add(1);
                if drawn >= DRAWN_MAX || reply.len().saturating_sub(start) >= PIECE_BYTES {
                    break;
                }
            }
        }
        true
    }

    fn held_bytes(&self) -> usize {
        match &self.from {
            Drawn::Tree(tree) => held_bytes(tree),
            Drawn::Packed(_, bytes) => bytes.capacity(),
        }
    }
}

impl Ctx<'_> {
    /// Writes elements that are drawn from a collection, which has `len`, as an array: `write` is given their places,
    /// and writes `parts` of the array for each.
    ///
    /// # Errors
    /// More elements than a reply may have; a reply inside EXEC that grows too long.
    pub fn reply_drawn(
        &mut self,
        from: Drawn,
        len: u64,
        draw: Draw,
        parts: u64,
        write: impl Fn(Encoding, Stored<'_>, usize, &mut ReplyBuffer) + Send + 'static,
    ) -> Result<(), Stop> {
        draw.check(parts)?;
        let count = match draw {
            Draw::Distinct(count) => count.min(len),
            Draw::Repeated(count) => count,
        };
        self.reply.array(count.saturating_mul(parts) as usize);
        let mut rng = Rng::new(self.ks.random_below(u64::MAX));
        let way = Way::of(draw, len, &mut rng);
        self.reply_long(Drawing { from, len, rng, way, write: Box::new(write) })?;
        check_reply(self.reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn places(draw: Draw, len: u64, rng: &mut Rng) -> Vec<u64> {
        let mut way = Way::of(draw, len, rng);
        std::iter::from_fn(|| way.next(len, rng)).filter(|(_, is_drawn)| *is_drawn).map(|(place, _)| place).collect()
    }

    /// Each way gives as many places as were asked for, none twice unless that is allowed, and each about equally
    /// often.
    #[test]
    fn places_are_even() {
        let mut rng = Rng::new(1);
        for draw in [Draw::Distinct(4), Draw::Distinct(40), Draw::Distinct(100), Draw::Repeated(30)] {
            let (Draw::Distinct(count) | Draw::Repeated(count)) = draw;
            let rounds = if cfg!(miri) { 20 } else { 4000 };
            let mut counts = [0u32; 100];
            for _ in 0..rounds {
                let places = places(draw, 100, &mut rng);
                assert_eq!(places.len() as u64, count);
                let different = places.iter().collect::<HashSet<_>>().len() as u64;
                assert!(different == count || draw == Draw::Repeated(count));
                places.iter().for_each(|place| counts[*place as usize] += 1);
            }
            let expected = rounds as f64 * count as f64 / 100.0;
            let is_even = |drawn: &u32| (f64::from(*drawn) - expected).abs() <= 6.0 * expected.sqrt();
            assert!(counts.iter().all(is_even), "{draw:?}: {counts:?}");
        }
    }

    #[test]
    fn more_than_there_are_is_all() {
        assert_eq!(places(Draw::Distinct(50), 10, &mut Rng::new(1)), Vec::from_iter(0..10));
    }
}
