//! Comparing the tags of a bucket with one tag, all at once.

/// Which of the twelve 16-bit lanes equal the tag: bit 0 for the lowest lane of the first word.
#[inline]
pub fn equal_lanes(words: [u64; 3], tag: u16) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has SSE2.
    return unsafe { vector::equal_lanes(words, tag) } & 0xFFF;
    #[cfg(not(target_arch = "x86_64"))]
    plain::equal_lanes(words, tag)
}

#[cfg(target_arch = "x86_64")]
mod vector {
    use std::arch::x86_64::{
        _mm_cmpeq_epi16, _mm_cvtsi64_si128, _mm_movemask_epi8, _mm_packs_epi16, _mm_set1_epi16, _mm_unpacklo_epi64,
    };

    /// As above; bits from the twelfth on are undefined.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub fn equal_lanes(words: [u64; 3], tag: u16) -> u32 {
        let [first, second, third] = words.map(u64::cast_signed);
        let wanted = _mm_set1_epi16(tag.cast_signed());
        let low = _mm_unpacklo_epi64(_mm_cvtsi64_si128(first), _mm_cvtsi64_si128(second));
        let equal = _mm_packs_epi16(_mm_cmpeq_epi16(low, wanted), _mm_cmpeq_epi16(_mm_cvtsi64_si128(third), wanted));
        _mm_movemask_epi8(equal).cast_unsigned()
    }
}

/// In plain words, for other processors, and for the vectors to be tested against.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod plain {
    pub fn equal_lanes(words: [u64; 3], tag: u16) -> u32 {
        const LOW: u64 = 0x7FFF_7FFF_7FFF_7FFF;
        let wanted = u64::from(tag) * 0x0001_0001_0001_0001;
        words.iter().rev().fold(0, |found, word| {
            let lanes = word ^ wanted;
            // The top bit of each lane that is zero. Exact: no carry crosses a lane.
            let zero = !(((lanes & LOW).wrapping_add(LOW) | lanes) | LOW);
            // The product gathers the four bits next to each other at the top.
            found << 4 | ((zero >> 15).wrapping_mul(0x0001_0002_0004_0008) >> 48) as u32 & 0xF
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// Vectors, plain words and comparing one by one agree, on lanes chosen to provoke carries.
    #[test]
    fn all_ways_agree() {
        let mut rng = Rng::new(4);
        let tags = [0u16, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF];
        for _ in 0..if cfg!(miri) { 50 } else { 20_000 } {
            let lanes: [u16; 12] = std::array::from_fn(|_| tags[rng.below(tags.len() as u64) as usize]);
            let words = std::array::from_fn(|word| {
                (0..4).fold(0, |bits, lane| bits | u64::from(lanes[4 * word + lane]) << (16 * lane))
            });
            for tag in tags {
                let expected = (0..12).filter(|&lane| lanes[lane] == tag).fold(0, |bits, lane| bits | 1 << lane);
                assert_eq!(equal_lanes(words, tag), expected, "{lanes:x?} {tag:x}");
                assert_eq!(plain::equal_lanes(words, tag), expected, "{lanes:x?} {tag:x}");
            }
        }
    }
}
