//! Classes of keys: which there are, and which one a key belongs to.

use base::{KeyspaceId, varint};
use std::collections::BTreeMap;

/// A class of keys, within one trainer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(u32);

impl ClassId {
    pub(super) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What ends the first part of a key.
const SEPARATORS: [u8; 5] = *b":/|.#";

/// Longest first part; a key with a longer one belongs to the class of keys without a separator.
const PREFIX_LEN_MAX: usize = 64;

/// The first part of a key with its separator, or nothing: what makes its class within a keyspace.
pub fn key_prefix(key: &[u8]) -> &[u8] {
    let end = key.iter().take(PREFIX_LEN_MAX).position(|byte| SEPARATORS.contains(byte));
    end.and_then(|end| key.get(..=end)).unwrap_or_default()
}

/// All classes. They never go.
pub(super) struct ClassTable {
    max: usize,
    ids: BTreeMap<u32, BTreeMap<Box<[u8]>, ClassId>>,
    /// Keyspace and prefix, by class.
    rows: Vec<(KeyspaceId, Box<[u8]>)>,
}

impl ClassTable {
    pub(super) fn new(max: usize) -> Self {
        Self { max, ids: BTreeMap::new(), rows: Vec::new() }
    }

    pub(super) fn class(&mut self, keyspace: KeyspaceId, key: &[u8]) -> ClassId {
        self.class_of_prefix(keyspace, key_prefix(key))
    }

    pub(super) fn class_of_prefix(&mut self, keyspace: KeyspaceId, prefix: &[u8]) -> ClassId {
        if let Some(id) = self.ids.get(&keyspace.0).and_then(|ids| ids.get(prefix)) {
            return *id;
        }
        // The last places are for keys without a separator, of which each keyspace has one class.
        if self.rows.len() >= self.max && !prefix.is_empty() {
            return self.class_of_prefix(keyspace, &[]);
        }
        if self.rows.len() >= self.max.saturating_mul(2) {
            return ClassId(0);
        }
        let id = ClassId::from_index(self.rows.len());
        self.ids.entry(keyspace.0).or_default().insert(prefix.into(), id);
        self.rows.push((keyspace, prefix.into()));
        id
    }

    /// The class of keys without a separator in the same keyspace, if there is one.
    pub(super) fn common(&self, id: ClassId) -> Option<ClassId> {
        let (keyspace, _) = self.rows.get(id.index())?;
        self.ids.get(&keyspace.0)?.get(&[][..]).copied()
    }

    /// Whether it is such a class.
    pub(super) fn is_common(&self, id: ClassId) -> bool {
        self.common(id) == Some(id)
    }

    /// The same class, made if need be; where there is no place for it, the first class.
    pub(super) fn make_common(&mut self, id: ClassId) -> ClassId {
        let keyspace = self.rows.get(id.index()).map_or(KeyspaceId(0), |(keyspace, _)| *keyspace);
        self.class_of_prefix(keyspace, &[])
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = (KeyspaceId, &[u8])> {
        self.rows.iter().map(|(keyspace, prefix)| (*keyspace, &**prefix))
    }

    /// The class as it stands in the file of its dictionary.
    pub(super) fn name(&self, id: ClassId) -> Vec<u8> {
        let mut name = Vec::new();
        if let Some((keyspace, prefix)) = self.rows.get(id.index()) {
            varint::put(&mut name, u64::from(keyspace.0));
            name.extend_from_slice(prefix);
        }
        name
    }
}

/// Keyspace and prefix of a class, as a trainer's [`Verdict::Train`](super::Verdict) and the dictionary's file name it.
pub fn parse_name(mut name: &[u8]) -> Option<(KeyspaceId, &[u8])> {
    let keyspace = u32::try_from(varint::take(&mut name)?).ok()?;
    (key_prefix(name) == name).then_some((KeyspaceId(keyspace), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_part_makes_the_class() {
        let long = [&[b'a'; 64][..], b":1"].concat();
        let cases: [(&[u8], &[u8]); 7] = [
            (b"user:1", b"user:"),
            (b"user:1:name", b"user:"),
            (b"a/b:c", b"a/"),
            (b"plain", b""),
            (b"", b""),
            (b":x", b":"),
            (&long, b""),
        ];
        for (key, expected) in cases {
            assert_eq!(key_prefix(key), expected);
        }
    }

    /// Beyond the bound, keys share a class of their keyspace; beyond twice the bound, one class for all.
    #[test]
    fn classes_are_bounded() {
        let mut table = ClassTable::new(4);
        for n in 0..1000u32 {
            table.class(KeyspaceId(0), format!("p{n}:x").as_bytes());
        }
        assert_eq!(table.len(), 5);
        assert_eq!(table.class(KeyspaceId(0), b"p999:y"), table.class(KeyspaceId(0), b"no separator"));
        for n in 0..1000 {
            table.class(KeyspaceId(n), b"x:1");
        }
        assert_eq!(table.len(), 8);
    }

    #[test]
    fn names_round_trip() {
        let mut table = ClassTable::new(4);
        for (keyspace, key) in [(0, &b"user:1"[..]), (300, b"user:1"), (7, b"none")] {
            let id = table.class(KeyspaceId(keyspace), key);
            let name = table.name(id);
            let (found, found_prefix) = parse_name(&name).expect("a good name");
            assert_eq!(table.class_of_prefix(found, found_prefix), id);
            assert_eq!(found, KeyspaceId(keyspace));
        }
        for wrong in [&b""[..], b"\x80", b"\x00user", b"\x00a:b:"] {
            assert_eq!(parse_name(wrong), None, "{wrong:?}");
        }
    }
}
