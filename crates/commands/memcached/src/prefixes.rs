//! Entries of a database by the prefixes of their keys, as ARCUS counts them.

use engine::Type;
use std::collections::BTreeMap;

/// Prefixes that are counted one by one. More are counted and not named.
const PREFIXES_MAX: usize = 100_000;

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
    are_too_many: bool,
}

impl Prefixes {
    /// Counts an entry.
    pub fn add(&mut self, prefix: Option<&[u8]>, kind: Type, bytes: u64) {
        let prefix = prefix.map(Box::from);
        if self.counts.len() >= PREFIXES_MAX && !self.counts.contains_key(&prefix) {
            self.are_too_many = true;
            return;
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

/// The name of keys without a prefix.
pub const NULL: &[u8] = b"<null>";
