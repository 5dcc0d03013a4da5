//! The libraries of functions: their texts by name. Data of the server as a whole, in no keyspace.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Libraries, ordered by name. A clone shares the texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Libraries {
    by_name: BTreeMap<Box<[u8]>, Arc<[u8]>>,
}

impl Libraries {
    /// Applies [`Effect::Library`](crate::Effect::Library).
    pub fn apply(&mut self, name: &[u8], code: &[u8]) {
        if code.is_empty() {
            self.by_name.remove(name);
        } else {
            self.by_name.insert(name.into(), code.into());
        }
    }

    /// The text of a library.
    pub fn get(&self, name: &[u8]) -> Option<&Arc<[u8]>> {
        self.by_name.get(name)
    }

    /// All libraries: name and text.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &Arc<[u8]>)> {
        self.by_name.iter().map(|(name, code)| (&**name, code))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Bytes of their names and texts.
    pub fn bytes(&self) -> usize {
        self.iter().map(|(name, code)| name.len().saturating_add(code.len())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_text_of_a_name_counts() {
        let mut libraries = Libraries::default();
        libraries.apply(b"b", b"one");
        libraries.apply(b"a", b"two");
        libraries.apply(b"b", b"three");
        let all: Vec<_> = libraries.iter().map(|(name, code)| (name, &**code)).collect();
        assert_eq!(all, [(&b"a"[..], &b"two"[..]), (b"b", b"three")]);
        assert_eq!((libraries.len(), libraries.bytes()), (2, 10));
        libraries.apply(b"a", b"");
        libraries.apply(b"absent", b"");
        assert_eq!((libraries.get(b"a"), libraries.len()), (None, 1));
    }
}
