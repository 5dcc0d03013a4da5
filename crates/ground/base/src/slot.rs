//! The cluster slot of a key: CRC-16/XMODEM of the key, or of its `{tag}`, modulo 16384
//! (Redis Cluster specification, "Key distribution model" and "Hash tags").

use crate::SlotId;

/// Slots of a cluster.
pub const SLOT_COUNT: usize = 16_384;

/// The slot a key belongs to.
#[inline]
pub fn slot_of(key: &[u8]) -> SlotId {
    SlotId(crc16(hashed_part(key)) & (SLOT_COUNT as u16 - 1))
}

/// The bytes that decide the slot: between the first `{` and the first `}` after it, if there is anything between.
#[inline]
fn hashed_part(key: &[u8]) -> &[u8] {
    if has_brace(key) { tag_of(key) } else { key }
}

/// Whether there is a `{`. Keys are short: words of eight bytes are looked at before a call of `memchr` has begun.
#[inline]
fn has_brace(key: &[u8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let has = |word: &[u8; 8]| {
        let differing = u64::from_le_bytes(*word) ^ (ONES * b'{' as u64);
        differing.wrapping_sub(ONES) & !differing & (ONES << 7) != 0
    };
    match (key.first_chunk(), key.last_chunk()) {
        // Both halves of the word that most keys fit in twice: they overlap, and one branch decides.
        (Some(first), Some(last)) if key.len() <= 16 => has(first) | has(last),
        (_, Some(last)) if key.len() <= 64 => key.as_chunks::<8>().0.iter().any(has) || has(last),
        (_, Some(_)) => memchr::memchr(b'{', key).is_some(),
        (_, None) => key.contains(&b'{'),
    }
}

#[cold]
fn tag_of(key: &[u8]) -> &[u8] {
    let Some(open) = memchr::memchr(b'{', key) else { return key };
    let tail = &key[open + 1..];
    match memchr::memchr(b'}', tail) {
        Some(length) if length > 0 => &tail[..length],
        _ => key,
    }
}

/// CRC-16/XMODEM: polynomial 0x1021, no reflection, starting from 0. Eight bytes a step ("slicing by 8", Kounavis and
/// Berry 2005): bytewise it would cost as much as the table look-up that follows it. The odd bytes come first: since
/// the sum starts from 0, they are a step with zeros before them, and none of their look-ups waits for another.
#[inline]
pub fn crc16(bytes: &[u8]) -> u16 {
    let (head, blocks) = bytes.as_rchunks::<8>();
    let mut crc = head.iter().rev().zip(&TABLES).fold(0, |crc, (&byte, table)| crc ^ table[byte as usize]);
    for block in blocks {
        let [high, low] = crc.to_be_bytes();
        crc = TABLES[7][(block[0] ^ high) as usize]
            ^ TABLES[6][(block[1] ^ low) as usize]
            ^ TABLES[5][block[2] as usize]
            ^ TABLES[4][block[3] as usize]
            ^ TABLES[3][block[4] as usize]
            ^ TABLES[2][block[5] as usize]
            ^ TABLES[1][block[6] as usize]
            ^ TABLES[0][block[7] as usize];
    }
    crc
}

/// `TABLES[k][b]`: the effect of byte `b` followed by `k` zero bytes.
static TABLES: [[u16; 256]; 8] = tables();

const fn tables() -> [[u16; 256]; 8] {
    let mut tables = [[0u16; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        byte = 0;
        while byte < 256 {
            let before = tables[zeros - 1][byte];
            tables[zeros][byte] = (before << 8) ^ tables[0][(before >> 8) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of the specification, and slicing against one byte at a time for every length.
    #[test]
    fn crc_matches_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        let mut rng = crate::Rng::new(1);
        for length in 0..64 {
            let mut bytes = vec![0; length];
            rng.fill(&mut bytes);
            let slow = bytes.iter().fold(0u16, |crc, &b| (crc << 8) ^ TABLES[0][((crc >> 8) as u8 ^ b) as usize]);
            assert_eq!(crc16(&bytes), slow, "length {length}");
        }
    }

    /// The examples of the specification: only a non-empty part between the first braces counts.
    #[test]
    fn hash_tags() {
        assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"{user1000}.followers"));
        assert_eq!(hashed_part(b"foo{}{bar}"), b"foo{}{bar}");
        assert_eq!(hashed_part(b"foo{{bar}}zap"), b"{bar");
        assert_eq!(hashed_part(b"foo{bar}{zap}"), b"bar");
        assert_eq!(hashed_part(b"foo{bar"), b"foo{bar");
        assert_eq!(slot_of(b"123456789").0, 0x31C3);
    }

    /// A brace is found wherever it stands in keys of every length up to beyond what is looked at in words, and nothing
    /// else is taken for one.
    #[test]
    fn braces_are_found_at_every_place() {
        let mut rng = crate::Rng::new(2);
        for length in 0..80 {
            let mut key = vec![0; length];
            rng.fill(&mut key);
            key.iter_mut().filter(|byte| **byte == b'{').for_each(|byte| *byte = b'z');
            assert!(!has_brace(&key), "{key:?}");
            for place in 0..length {
                let old = std::mem::replace(&mut key[place], b'{');
                assert!(has_brace(&key), "{key:?}");
                key[place] = old;
            }
        }
    }
}
