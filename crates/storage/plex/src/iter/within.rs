//! Which tables a scan may skip, since their filters know no key with its prefix.

use std::sync::Arc;

use super::IterOptions;
use crate::key;
use crate::sstable::{Probe, Table};

/// A scan whose keys all begin with the same bytes, as many as filters know of a key
/// ([`Options::prefix_filter_bytes`](crate::Options::prefix_filter_bytes)).
pub(crate) struct Within {
    prefix: Vec<u8>,
    /// No key with the prefix is at or after it; `None` if there is no such key.
    end: Option<Vec<u8>>,
    probe: Probe,
}

impl Within {
    /// `None` if the range may hold keys with other prefixes, or filters know none.
    pub fn of(range: &IterOptions, prefix_bytes: usize) -> Option<Arc<Self>> {
        let prefix = range.lower.as_ref()?.get(..prefix_bytes).filter(|prefix| !prefix.is_empty())?.to_vec();
        let end = key::prefix_end(&prefix);
        let is_inside = match (&range.upper, &end) {
            (Some(upper), Some(end)) => upper <= end,
            (None, Some(_)) => false,
            (_, None) => true,
        };
        let probe = Probe::new(key::hash(&prefix));
        is_inside.then(|| Arc::new(Self { prefix, end, probe }))
    }

    /// Whether the table has nothing for the scan. Tables after the prefix are not asked: the scan does not reach them.
    pub fn skips(&self, table: &Table) -> bool {
        self.end.as_ref().is_none_or(|end| table.info.smallest < *end)
            && !table.may_have_prefix(self.prefix.len(), &self.probe)
    }

    /// Whether the table, and all before it, lie before the prefix.
    pub fn is_behind(&self, table: &Table) -> bool {
        table.info.ends_before(&self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ranges_of_one_prefix() {
        let of = |from: &[u8], to: &[u8]| Within::of(&IterOptions::range(from..to), 3).is_some();
        assert!(of(b"abc", b"abd") && of(b"abc1", b"abc2") && of(b"abc", b"abc"));
        assert!(!of(b"abc", b"abd0") && !of(b"ab", b"abc") && !of(b"abc", b"b"));
        assert!(Within::of(&IterOptions::prefix(b"abcdef"), 3).is_some());
        assert!(Within::of(&IterOptions::prefix(b"ab"), 3).is_none());
        assert!(Within::of(&IterOptions::prefix(&[255; 4]), 3).is_some());
        assert!(Within::of(&IterOptions::range(&b"abc"[..]..), 3).is_none());
        assert!(
            Within::of(&IterOptions::default(), 3).is_none() && Within::of(&IterOptions::prefix(b"abc"), 0).is_none()
        );
    }
}
