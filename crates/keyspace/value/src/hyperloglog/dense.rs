//! Registers of six bits, the first one in the lowest bits of the first byte.

use super::{HEADER_BYTES, Observation, REGISTER_COUNT, Registers, highest};

const REGISTER_BITS: usize = 6;
/// Length of a dense HyperLogLog.
pub const BYTES: usize = HEADER_BYTES + REGISTER_COUNT * REGISTER_BITS / 8;
/// Eight registers lie in six bytes.
const GROUP_BYTES: usize = REGISTER_BITS;

/// One register. The bytes are a dense HyperLogLog.
pub fn get(bytes: &[u8], register: usize) -> u8 {
    let (at, shift) = place(register);
    (u16::from_le_bytes(pair(bytes, at)) >> shift) as u8 & 0x3F
}

pub(super) fn set(bytes: &mut [u8], register: usize, rank: u8) {
    let (at, shift) = place(register);
    let [low, high] = (u16::from_le_bytes(pair(bytes, at)) & !(0x3F << shift) | u16::from(rank) << shift).to_le_bytes();
    bytes[at] = low;
    if shift + REGISTER_BITS > 8 {
        bytes[at + 1] = high;
    }
}

/// Raises the register; false when it is as high already.
pub(super) fn raise(bytes: &mut [u8], seen: Observation) -> bool {
    let raises = get(bytes, seen.register) < seen.rank;
    if raises {
        set(bytes, seen.register, seen.rank);
    }
    raises
}

/// The byte in which a register begins, and its lowest bit there.
fn place(register: usize) -> (usize, usize) {
    let bit = register * REGISTER_BITS;
    (HEADER_BYTES + bit / 8, bit % 8)
}

/// Two bytes; a zero after the very last one.
fn pair(bytes: &[u8], at: usize) -> [u8; 2] {
    [bytes[at], bytes.get(at + 1).copied().unwrap_or(0)]
}

/// Gives all registers, eight at a time.
pub(super) fn ranks(bytes: &[u8], mut each: impl FnMut([u8; 8])) {
    let (groups, _) = bytes[HEADER_BYTES..].as_chunks::<GROUP_BYTES>();
    groups.iter().for_each(|group| each(spread(group)));
}

/// Raises all registers to these.
pub(super) fn merge(bytes: &mut [u8], registers: &Registers) {
    let (groups, _) = bytes[HEADER_BYTES..].as_chunks_mut::<GROUP_BYTES>();
    for (group, ranks) in groups.iter_mut().zip(registers.as_chunks::<8>().0) {
        *group = gather(highest(spread(group), *ranks));
    }
}

/// Eight registers of six bits to one in each byte: by halves, then quarters, then eighths of a word.
fn spread(group: &[u8; GROUP_BYTES]) -> [u8; 8] {
    let [a, b, c, d, e, f] = *group;
    let word = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
    let word = word & 0x0000_0000_00FF_FFFF | (word & 0x0000_FFFF_FF00_0000) << 8;
    let word = word & 0x0000_0FFF_0000_0FFF | (word & 0x00FF_F000_00FF_F000) << 4;
    let word = word & 0x003F_003F_003F_003F | (word & 0x0FC0_0FC0_0FC0_0FC0) << 2;
    word.to_le_bytes()
}

/// The reverse of [`spread`].
fn gather(ranks: [u8; 8]) -> [u8; GROUP_BYTES] {
    let word = u64::from_le_bytes(ranks);
    let word = word & 0x003F_003F_003F_003F | (word & 0x3F00_3F00_3F00_3F00) >> 2;
    let word = word & 0x0000_0FFF_0000_0FFF | (word & 0x0FFF_0000_0FFF_0000) >> 4;
    let word = word & 0x0000_0000_00FF_FFFF | (word & 0x00FF_FFFF_0000_0000) >> 8;
    let [a, b, c, d, e, f, _, _] = word.to_le_bytes();
    [a, b, c, d, e, f]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups of eight agree with registers one by one, both ways.
    #[test]
    fn groups_agree_with_single_registers() {
        let mut rng = base::Rng::new(3);
        let expected: Vec<u8> = (0..REGISTER_COUNT).map(|_| rng.below(64) as u8).collect();
        let mut bytes = vec![0; BYTES];
        (0..REGISTER_COUNT).for_each(|register| set(&mut bytes, register, expected[register]));
        assert!((0..REGISTER_COUNT).all(|register| get(&bytes, register) == expected[register]));
        let mut got = Vec::new();
        ranks(&bytes, |ranks| got.extend(ranks));
        assert_eq!(got, expected);
        let mut merged = vec![0; BYTES];
        merge(&mut merged, &expected.try_into().unwrap());
        assert_eq!(merged, bytes);
    }
}
