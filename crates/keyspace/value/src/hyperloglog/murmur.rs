//! MurmurHash64A by Austin Appleby, with the seed that Redis uses: part of the format, since the registers depend on
//! it.

const SEED: u64 = 0xADC8_3B19;
const MULTIPLIER: u64 = 0xC6A4_A793_5BD1_E995;

/// The hash of an element.
pub(super) fn murmur64a(bytes: &[u8]) -> u64 {
    let mix = |word: u64| word ^ word >> 47;
    let start = SEED ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = words.iter().fold(start, |hash, word| {
        let word = mix(u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
        (hash ^ word).wrapping_mul(MULTIPLIER)
    });
    if !rest.is_empty() {
        let word = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = (hash ^ word).wrapping_mul(MULTIPLIER);
    }
    mix(mix(hash).wrapping_mul(MULTIPLIER))
}
