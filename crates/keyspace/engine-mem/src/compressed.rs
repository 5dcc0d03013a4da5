//! How many values are stored compressed, what that saves, and which dictionaries they need.

use codec::DictionaryNumber;
use codec::stored::Stored;
use engine::Entry;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

/// Values that are stored compressed; of a big collection, each leaf that is counts as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompressedUse {
    /// How many there are.
    pub values: u64,
    /// Bytes stored for them, headers of the stored form included.
    pub stored_bytes: u64,
    /// Bytes of the values: of a collection its packed bytes, of a tree its changes.
    pub logical_bytes: u64,
}

/// [`CompressedUse`] of all shards of a store, counted as such values come and go.
#[derive(Debug, Default)]
pub(crate) struct CompressedCounters {
    values: AtomicU64,
    stored_bytes: AtomicU64,
    logical_bytes: AtomicU64,
    /// Values by dictionary. A number comes with its first value, and goes when another one comes after its last has
    /// gone.
    by_dictionary: RwLock<BTreeMap<DictionaryNumber, AtomicU64>>,
}

impl CompressedCounters {
    /// Counts an entry that has come. One that is not compressed counts nothing.
    pub(crate) fn add(&self, entry: &Entry<'_>) {
        if entry.is_compressed() && !entry.is_away() {
            self.add_stored(entry.value.bytes());
        }
    }

    /// Counts a stored form that has come.
    pub(crate) fn add_stored(&self, bytes: &[u8]) {
        self.values.fetch_add(1, Ordering::Relaxed);
        self.stored_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let Ok(stored) = Stored::parse(bytes) else { return };
        self.logical_bytes.fetch_add(stored.len as u64, Ordering::Relaxed);
        if let Some(number) = stored.form.dictionary() {
            self.add_of_dictionary(number);
        }
    }

    /// Counts an entry that goes.
    pub(crate) fn sub(&self, entry: &Entry<'_>) {
        if entry.is_compressed() && !entry.is_away() {
            self.sub_stored(entry.value.bytes());
        }
    }

    /// Counts a stored form that goes.
    pub(crate) fn sub_stored(&self, bytes: &[u8]) {
        self.values.fetch_sub(1, Ordering::Relaxed);
        self.stored_bytes.fetch_sub(bytes.len() as u64, Ordering::Relaxed);
        let Ok(stored) = Stored::parse(bytes) else { return };
        self.logical_bytes.fetch_sub(stored.len as u64, Ordering::Relaxed);
        if let Some(number) = stored.form.dictionary() {
            let counts = self.by_dictionary.read().unwrap_or_else(PoisonError::into_inner);
            let before = counts.get(&number).map_or(0, |count| count.fetch_sub(1, Ordering::Relaxed));
            debug_assert!(before > 0, "a value of dictionary {number} goes that never came");
        }
    }

    fn add_of_dictionary(&self, number: DictionaryNumber) {
        let counts = self.by_dictionary.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get(&number) {
            count.fetch_add(1, Ordering::Relaxed);
            return;
        }
        drop(counts);
        let mut counts = self.by_dictionary.write().unwrap_or_else(PoisonError::into_inner);
        counts.retain(|_, count| *count.get_mut() > 0);
        *counts.entry(number).or_default().get_mut() += 1;
    }

    pub(crate) fn read(&self) -> CompressedUse {
        CompressedUse {
            values: self.values.load(Ordering::Relaxed),
            stored_bytes: self.stored_bytes.load(Ordering::Relaxed),
            logical_bytes: self.logical_bytes.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn by_dictionary(&self) -> BTreeMap<DictionaryNumber, u64> {
        let counts = self.by_dictionary.read().unwrap_or_else(PoisonError::into_inner);
        let counts = counts.iter().map(|(number, count)| (*number, count.load(Ordering::Relaxed)));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}
