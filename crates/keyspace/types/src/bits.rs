//! Over many bytes at once: counting set bits, and finding the first byte that differs.
//!
//! The compiler turns both into vector instructions that every processor of the target has; no wider ones are used.
//!
//! Counting adds up eight words by full adders on all their bits, and then counts one word in place of eight: Harley
//! and Seal's method, as in Warren, "Hacker's Delight", second edition, 5-1; measured over vectors by Muła, Kurz and
//! Lemire, "Faster population counts using AVX2 instructions", 2018.

/// Words side by side, for one vector register or two.
const LANES: usize = 4;
const LANE_BYTES: usize = 8;
const WIDE_BYTES: usize = LANES * LANE_BYTES;
/// Bytes that one round of adders takes.
const ROUND_BYTES: usize = 8 * WIDE_BYTES;

/// Bytes compared at once when searching.
const SEARCH_BYTES: usize = 64;

type Wide = [u64; LANES];

/// How many bits are set.
pub(crate) fn count(bytes: &[u8]) -> u64 {
    let (rounds, rest) = bytes.as_chunks::<ROUND_BYTES>();
    let mut sums = Sums::default();
    let eights = rounds.iter().fold(0u64, |sum, round| sum.wrapping_add(sums.add(round)));
    let (words, rest) = rest.as_chunks::<LANE_BYTES>();
    let words = words.iter().fold(0u64, |sum, word| sum.wrapping_add(set_bits(u64::from_ne_bytes(*word))));
    let rest = rest.iter().fold(words, |sum, byte| sum.wrapping_add(set_bits(u64::from(*byte))));
    // Never near 2^64: memory has fewer bits.
    eights.wrapping_mul(8).wrapping_add(sums.count()).wrapping_add(rest)
}

fn set_bits(word: u64) -> u64 {
    u64::from(word.count_ones())
}

fn set_bits_of_all(words: &Wide) -> u64 {
    words.iter().fold(0, |sum, word| sum.wrapping_add(set_bits(*word)))
}

/// For every bit of a word, how often it was set so far, modulo eight: its ones, twos and fours.
#[derive(Default)]
struct Sums {
    ones: Wide,
    twos: Wide,
    fours: Wide,
}

impl Sums {
    /// Adds eight words and gives how many eights were full.
    #[inline]
    fn add(&mut self, round: &[u8; ROUND_BYTES]) -> u64 {
        let (words, _) = round.as_chunks::<WIDE_BYTES>();
        let [a, b, c, d, e, f, g, h] = words else { return 0 };
        let twos = [add(&mut self.ones, wide(a), wide(b)), add(&mut self.ones, wide(c), wide(d))];
        let fours = add(&mut self.twos, twos[0], twos[1]);
        let twos = [add(&mut self.ones, wide(e), wide(f)), add(&mut self.ones, wide(g), wide(h))];
        let more_fours = add(&mut self.twos, twos[0], twos[1]);
        set_bits_of_all(&add(&mut self.fours, fours, more_fours))
    }

    /// What is in the sums.
    fn count(&self) -> u64 {
        let [ones, twos, fours] = [&self.ones, &self.twos, &self.fours].map(set_bits_of_all);
        ones.wrapping_add(twos.wrapping_mul(2)).wrapping_add(fours.wrapping_mul(4))
    }
}

#[inline]
fn wide(bytes: &[u8; WIDE_BYTES]) -> Wide {
    let mut wide = Wide::default();
    wide.iter_mut().zip(bytes.as_chunks::<LANE_BYTES>().0).for_each(|(word, bytes)| *word = u64::from_ne_bytes(*bytes));
    wide
}

/// Adds two words to a sum, bit by bit, and gives the carries.
#[inline]
fn add(sum: &mut Wide, a: Wide, b: Wide) -> Wide {
    let mut carry = Wide::default();
    for (((sum, carry), a), b) in sum.iter_mut().zip(&mut carry).zip(a).zip(b) {
        let half = *sum ^ a;
        *carry = *sum & a | half & b;
        *sum = half ^ b;
    }
    carry
}

/// The index of the first byte that is another one.
pub(crate) fn first_other(bytes: &[u8], byte: u8) -> Option<usize> {
    let (blocks, _) = bytes.as_chunks::<SEARCH_BYTES>();
    let is_dull = |block: &&[u8; SEARCH_BYTES]| block.iter().fold(0, |found, other| found | (other ^ byte)) == 0;
    let skipped = blocks.iter().take_while(is_dull).count().saturating_mul(SEARCH_BYTES);
    bytes.get(skipped..)?.iter().position(|other| *other != byte).map(|at| skipped.saturating_add(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// At every length around the sizes of words, rounds and blocks, the answers are those of looking at each byte.
    #[test]
    fn vectors_agree_with_bytes() {
        let mut rng = Rng::new(17);
        for len in (0..70).chain(250..260).chain(505..520).chain(1021..1030) {
            for fill in [0x00, 0xFF] {
                let mut bytes = vec![fill; len];
                assert_eq!(first_other(&bytes, fill), None);
                assert_eq!(count(&bytes), if fill == 0 { 0 } else { 8 * len as u64 });
                if let Some(byte) = bytes.get_mut(rng.below(len as u64) as usize) {
                    *byte = 0x10;
                }
                assert_eq!(first_other(&bytes, fill), bytes.iter().position(|byte| *byte != fill));
            }
            let mut bytes = vec![0; len];
            rng.fill(&mut bytes);
            assert_eq!(count(&bytes), bytes.iter().map(|byte| u64::from(byte.count_ones())).sum());
        }
    }
}
