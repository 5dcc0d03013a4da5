//! The index of a leaf in the order of hashes: of each element a tag and a length, two bytes, the last element's first.
//!
//! ```text
//! tag, length of n-1 | ... | of 1 | of 0
//! ```
//!
//! A look-up compares four entries at a time as one word, and sums lengths, also four at a time, to find where an
//! element begins. Entry by entry, these two were most of the cost of a look-up in a leaf.

/// What an element takes in the index.
pub const ENTRY_BYTES: usize = 2;
/// Instead of the length of an element that does not fit one byte.
pub const LONG: u8 = u8::MAX;

/// Of a word of entries.
const WORD_BYTES: usize = 8;
const WORD_ENTRIES: usize = WORD_BYTES / ENTRY_BYTES;
/// A one for each entry of a word.
const ONES: u64 = 0x0001_0001_0001_0001;
/// The lengths of this many words can be summed up in one.
const SUMMED_WORDS_MAX: usize = 256;

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    entry: u64,
    mask: u64,
}

impl Wanted {
    /// Entries with this tag.
    #[inline]
    pub fn tag(tag: u8) -> Self {
        Self { entry: u64::from(tag) * ONES, mask: u64::from(u8::MAX) * ONES }
    }

    /// This entry.
    #[inline]
    pub fn entry(entry: [u8; ENTRY_BYTES]) -> Self {
        Self { entry: u64::from(u16::from_le_bytes(entry)) * ONES, mask: u64::MAX }
    }

    /// The highest bit of each entry in the word that is wanted.
    #[inline]
    fn hits(self, word: [u8; WORD_BYTES]) -> u64 {
        const HIGH: u64 = ONES << 15;
        let other = (u64::from_le_bytes(word) ^ self.entry) & self.mask;
        // An entry without its highest bit, plus all ones, has that bit unless it was zero; nothing is carried to the
        // next entry.
        !(((other & !HIGH) + !HIGH) | other) & HIGH
    }
}

/// Gives `is_it` the places of the elements whose entries are wanted, until it has found one.
#[inline]
pub fn find<T>(index: &[u8], wanted: Wanted, mut is_it: impl FnMut(usize) -> Option<T>) -> Option<T> {
    let count = index.len() / ENTRY_BYTES;
    let mut look = |word: [u8; WORD_BYTES], first: usize| {
        let mut hits = wanted.hits(word);
        while hits != 0 {
            let at = first + hits.trailing_zeros() as usize / (8 * ENTRY_BYTES);
            if at < count
                && let Some(found) = is_it(count - 1 - at)
            {
                return Some(found);
            }
            hits &= hits - 1;
        }
        None
    };
    let (words, rest) = index.as_chunks::<WORD_BYTES>();
    for (number, word) in words.iter().enumerate() {
        // Most words have none: it is not called for these.
        if wanted.hits(*word) != 0
            && let Some(found) = look(*word, number * WORD_ENTRIES)
        {
            return Some(found);
        }
    }
    if rest.is_empty() {
        return None;
    }
    match index.last_chunk::<WORD_BYTES>() {
        // With some entries a second time.
        Some(word) => look(*word, count - WORD_ENTRIES),
        None => {
            let mut word = [0; WORD_BYTES];
            word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            look(word, 0)
        }
    }
}

/// The sum of the lengths of the first `place` elements; `None` when one of them is [`LONG`], or when there are far
/// more than a leaf has.
#[inline]
pub fn length_before(index: &[u8], place: usize) -> Option<usize> {
    const LENGTHS: u64 = 0xFF * ONES;
    let entries = &index[index.len() - place * ENTRY_BYTES..];
    let (words, rest) = entries.as_chunks::<WORD_BYTES>();
    if words.len() > SUMMED_WORDS_MAX {
        return None;
    }
    let (mut sums, mut long) = (0, 0);
    for word in words {
        let lengths = u64::from_le_bytes(*word) >> 8 & LENGTHS;
        sums += lengths;
        // The bit above a length plus one is set when it is LONG.
        long |= lengths + ONES;
    }
    let mut sum = 0;
    for entry in rest.chunks_exact(ENTRY_BYTES) {
        sum += usize::from(entry[1]);
        long |= u64::from(entry[1]) + 1;
    }
    const { assert!(SUMMED_WORDS_MAX * (LONG as usize) < 1 << 16) };
    let lanes = [0, 16, 32, 48].map(|shift| (sums >> shift & 0xFFFF) as usize);
    (long & !LENGTHS == 0).then_some(sum + lanes[0] + lanes[1] + lanes[2] + lanes[3])
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// Against entry by entry, of all lengths that an index begins and ends with.
    #[test]
    fn finds_and_sums_as_entry_by_entry() {
        let mut rng = Rng::new(1);
        let rounds = if cfg!(miri) { 20 } else { 2000 };
        for round in 0..rounds {
            let count = rng.below(40) as usize;
            let mut byte = |bound| rng.below(bound) as u8;
            let entries: Vec<[u8; 2]> =
                (0..count).map(|_| [byte(8) * 0x24, if round % 4 == 0 { 248 + byte(8) } else { byte(250) }]).collect();
            let index: Vec<u8> = entries.iter().rev().flatten().copied().collect();
            let places = |is_wanted: &dyn Fn([u8; 2]) -> bool| -> Vec<usize> {
                (0..count).filter(|place| is_wanted(entries[*place])).collect()
            };
            let found = |wanted| {
                let mut found = Vec::new();
                find(&index, wanted, |place| {
                    found.push(place);
                    None::<()>
                });
                found.sort_unstable();
                found.dedup();
                found
            };
            for tag in 0..=u8::MAX {
                assert_eq!(found(Wanted::tag(tag)), places(&|entry| entry[0] == tag));
                let entry = [tag, entries.first().map_or(7, |entry| entry[1])];
                assert_eq!(found(Wanted::entry(entry)), places(&|other| other == entry));
            }
            for place in 0..=count {
                let lengths = entries[..place].iter().map(|entry| entry[1]);
                let sum: usize = lengths.clone().map(usize::from).sum();
                let expected = Some(sum).filter(|_| lengths.clone().all(|length| length != LONG));
                assert_eq!(length_before(&index, place), expected);
            }
        }
    }

    /// The first place that is taken ends the search.
    #[test]
    fn a_search_ends_where_it_finds() {
        let index = [7, 1, 7, 2, 7, 3, 7, 4, 7, 5];
        let mut looks = 0;
        let found = find(&index, Wanted::tag(7), |place| {
            looks += 1;
            (place == 3).then_some(place)
        });
        assert_eq!((found, looks), (Some(3), 2));
        assert_eq!(find(&index[..2], Wanted::tag(7), Some), Some(0));
        assert_eq!(find(&[], Wanted::tag(0), Some), None);
        assert_eq!(find(&[1, 0], Wanted::tag(0), Some), None);
    }

    /// More entries than sums have room for.
    #[test]
    fn too_many_are_left_to_the_long_way() {
        let index = vec![254; 2 * 1100];
        assert_eq!(length_before(&index, 1024), Some(1024 * 254));
        assert_eq!(length_before(&index, 1027), Some(1027 * 254));
        assert_eq!(length_before(&index, 1028), None);
    }
}
