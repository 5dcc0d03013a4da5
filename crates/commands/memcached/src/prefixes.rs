//! Entries of a database by the prefixes of their keys, as ARCUS counts them.

use engine::Type;
use std::collections::BTreeMap;

/// Prefixes that are counted one by one. More are counted and not named.
const PREFIXES_MAX: usize = 100_000;

/// Bytes of their names.
const NAMES_BYTES_MAX: usize = 16 << 20;

/// The types that ARCUS knows, in the order of its statistics.
const TYPES: [Type; 5] = [Type::String, Type::List, Type::Set, Type::Hash, Type::Btree];

/// What there is with one prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries by type; the last are those of types that ARCUS does not know.
    items: [u64; 6],
    bytes: [u64; 6],
}

impl Counts {
    /// All entries.
    pub fn items(&self) -> u64 {
        self.items.iter().sum()
    }

    /// Bytes of all entries.
    pub fn bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// The numbers of `stats prefixes`, each behind its name.
    pub fn words(&self) -> String {
        let [k, l, s, m, b, _] = self.items;
        let [kb, lb, sb, mb, bb, _] = self.bytes;
        let (items, bytes) = (self.items(), self.bytes());
        format!(
            "itm {items} kitm {k} litm {l} sitm {s} mitm {m} bitm {b} \
             tsz {bytes} ktsz {kb} ltsz {lb} stsz {sb} mtsz {mb} btsz {bb}"
        )
    }
}

/// Counts by prefix.
#[derive(Debug, Default)]
pub struct Prefixes {
    counts: BTreeMap<Option<Box<[u8]>>, Counts>,
    name_bytes: usize,
    are_too_many: bool,
}

impl Prefixes {
    /// Counts an entry.
    pub fn add(&mut self, prefix: Option<&[u8]>, kind: Type, bytes: u64) {
        let prefix = prefix.map(Box::<[u8]>::from);
        if !self.counts.contains_key(&prefix) {
            let name_bytes = self.name_bytes.saturating_add(prefix.as_ref().map_or(0, |name| name.len()));
            if self.counts.len() >= PREFIXES_MAX || name_bytes > NAMES_BYTES_MAX {
                self.are_too_many = true;
                return;
            }
            self.name_bytes = name_bytes;
        }
        let counts = self.counts.entry(prefix).or_default();
        let index = TYPES.iter().position(|of| *of == kind).unwrap_or(TYPES.len());
        if let (Some(items), Some(all)) = (counts.items.get_mut(index), counts.bytes.get_mut(index)) {
            (*items, *all) = (items.saturating_add(1), all.saturating_add(bytes));
        }
    }

    /// The prefixes in their order, `<null>` first, with what there is; `None` when there are too many.
    pub fn all(&self) -> Option<impl ExactSizeIterator<Item = (&[u8], &Counts)>> {
        (!self.are_too_many)
            .then(|| self.counts.iter().map(|(prefix, counts)| (prefix.as_deref().unwrap_or(NULL), counts)))
    }
}

/// A part of the prefixes, which `scan prefix` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Where it begins: 0, or what the part before ended with.
    pub cursor: u64,
    /// Prefixes to look at.
    pub count: usize,
    /// As a glob of Redis.
    pub pattern: Option<Vec<u8>>,
}

/// Prefixes, each with what there is, and the cursor of the next part.
type Part<'p> = (Vec<(&'p [u8], Counts)>, u64);

impl Page {
    /// The prefixes of this part in no order, each with what there is, and the next cursor; 0 after the last.
    ///
    /// Prefixes are in the order of a hash that is the same in every call. So one that is there all the time is found,
    /// whatever comes and goes between two calls.
    pub fn of<'p>(&self, prefixes: &'p Prefixes) -> Option<Part<'p>> {
        let all = prefixes.all()?.map(|(name, counts)| (order_of(name), name, *counts));
        let mut rest: Vec<_> = all.filter(|(order, ..)| *order >= self.cursor).collect();
        rest.sort_unstable_by_key(|(order, ..)| *order);
        let last = rest.get(self.count.saturating_sub(1)).map(|(order, ..)| *order);
        let next = last.and_then(|last| last.checked_add(1));
        let next = next.filter(|next| rest.iter().any(|(order, ..)| order >= next)).unwrap_or(0);
        let is_in = |order: u64| next == 0 || order < next;
        let is_wanted = |name: &[u8]| self.pattern.as_ref().is_none_or(|pattern| base::glob::matches(pattern, name));
        let found = rest.into_iter().filter(|(order, name, _)| is_in(*order) && is_wanted(name));
        Some((found.map(|(_, name, counts)| (name, counts)).collect(), next))
    }
}

/// FNV-1a: the place of a prefix among all.
fn order_of(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The name of keys without a prefix.
pub const NULL: &[u8] = b"<null>";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_show_every_prefix_once() {
        let mut prefixes = Prefixes::default();
        prefixes.add(None, Type::Set, 7);
        (0..500).for_each(|number| prefixes.add(Some(format!("p{number}").as_bytes()), Type::String, 100));
        let (mut cursor, mut seen, mut pages) = (0, Vec::new(), 0);
        loop {
            let (found, next) = Page { cursor, count: 7, pattern: None }.of(&prefixes).unwrap();
            seen.extend(found.iter().map(|(name, _)| name.to_vec()));
            (cursor, pages) = (next, pages + 1);
            if cursor == 0 {
                break;
            }
        }
        seen.sort_unstable();
        let mut expected: Vec<Vec<u8>> = (0..500).map(|number| format!("p{number}").into_bytes()).collect();
        expected.push(NULL.to_vec());
        expected.sort_unstable();
        assert_eq!(seen, expected);
        assert_eq!(pages, 501usize.div_ceil(7));
        let matching = Page { cursor: 0, count: 2000, pattern: Some(b"p4?".to_vec()) };
        assert_eq!(matching.of(&prefixes).map(|(found, next)| (found.len(), next)), Some((10, 0)));
    }

    #[test]
    fn names_are_bounded() {
        let mut prefixes = Prefixes::default();
        let name = |number: u32| [&number.to_le_bytes()[..], &[b'x'; 15_000]].concat();
        (0..2000).for_each(|number| prefixes.add(Some(&name(number)), Type::String, 1));
        assert!(prefixes.all().is_none() && prefixes.counts.len() < 1200);
    }
}
