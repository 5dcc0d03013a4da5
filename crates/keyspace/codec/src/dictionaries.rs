//! The dictionaries that a server uses, shared by its threads.
//!
//! ```text
//!  train -> Dictionary::create: file, sync, rename, sync of the directory
//!        -> the owner's manifest names it, durably -> insert -> Lease -> Encoder -> values
//!                                                                          ^
//!                    in between a lease holds it --------------------------'   forget: neither values nor leases
//! ```
//!
//! D1. A dictionary is durable, and named by a durable manifest, before it is inserted. So everything that becomes
//!     durable later finds it.
//! D2. It is forgotten only when no lease on it is held and its owner knows of no value in memory. The owner removes
//!     files: checkpoints and the log may need them for longer.
//! D3. A number never names two dictionaries that were inserted.

use crate::dictionary::Dictionary;
use crate::dictionary_number::DictionaryNumber;
use crate::error::CodecError;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use zstd_safe::CDict;

type Known = BTreeMap<DictionaryNumber, Arc<Dictionary>>;

/// All dictionaries that values in memory may name.
#[derive(Default)]
pub struct Dictionaries {
    /// Replaced as a whole when a dictionary comes or goes, so that readers keep the map they saw.
    known: RwLock<Arc<Known>>,
    /// How often `known` was replaced. Written under its lock.
    changes: AtomicU64,
}

impl Dictionaries {
    /// Makes a dictionary available to all threads; see D1. The returned lease keeps it until it is used.
    ///
    /// # Panics
    /// When there is another dictionary of its number: values of one would be read with the other.
    pub fn insert(&self, dictionary: Dictionary) -> Lease {
        let dictionary = Arc::new(dictionary);
        let lease = Lease::new(Arc::clone(&dictionary));
        self.change(|known| {
            let other = known.insert(dictionary.number(), dictionary);
            assert!(other.is_none(), "two dictionaries of one number");
        });
        lease
    }

    /// What a thread reads values with.
    pub fn reader(self: &Arc<Self>) -> Reader {
        let seen = self.changes.load(Ordering::Acquire);
        Reader { all: Some(Arc::clone(self)), known: Arc::clone(&self.known.read()), seen }
    }

    /// Replaces the map by a changed one.
    fn change(&self, change: impl FnOnce(&mut Known)) {
        let mut known = self.known.write();
        change(Arc::make_mut(&mut *known));
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Keeps a dictionary from being forgotten, for readers and writers of values that are not in a store.
    ///
    /// # Errors
    /// `NoDictionary`.
    pub fn lease(&self, number: DictionaryNumber) -> Result<Lease, CodecError> {
        // Under the lock, so that `forget` sees the lease or the lease does not find the dictionary.
        let known = self.known.read();
        known.get(&number).map(|found| Lease::new(Arc::clone(found))).ok_or(CodecError::NoDictionary(number))
    }

    /// The dictionary with this number, to look at.
    pub fn get(&self, number: DictionaryNumber) -> Option<Arc<Dictionary>> {
        self.known.read().get(&number).map(Arc::clone)
    }

    /// All dictionaries, oldest first.
    pub fn list(&self) -> Vec<Arc<Dictionary>> {
        self.known.read().values().map(Arc::clone).collect()
    }

    /// Forgets the dictionaries without a lease of which `is_unused` says that no value is in memory. No thread may
    /// store values meanwhile. Their files stay.
    pub fn forget(&self, is_unused: impl Fn(DictionaryNumber) -> bool) {
        let is_left = |number, found: &Dictionary| found.lease_count() > 0 || !is_unused(number);
        if self.known.read().iter().all(|(number, found)| is_left(*number, found)) {
            return;
        }
        self.change(|known| known.retain(|number, found| is_left(*number, found)));
    }
}

impl fmt::Debug for Dictionaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionaries").field("known", &self.list()).finish()
    }
}

/// The dictionaries as one thread sees them. From value to value it touches no lock and no shared counter, only a
/// number that changes when a dictionary comes or goes.
///
/// The default knows none.
#[derive(Debug, Default)]
pub struct Reader {
    /// `None` when there are none.
    all: Option<Arc<Dictionaries>>,
    known: Arc<Known>,
    /// `changes` before `known` was read: at worst it is read again.
    seen: u64,
}

impl Reader {
    /// Sees these dictionaries from now on; does nothing when it sees them already.
    #[inline]
    pub fn follow(&mut self, all: &Arc<Dictionaries>) {
        if !self.all.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, all)) {
            *self = all.reader();
        }
    }

    /// The dictionary with this number.
    ///
    /// # Errors
    /// `NoDictionary`.
    #[inline]
    pub fn find(&mut self, number: DictionaryNumber) -> Result<&Dictionary, CodecError> {
        if let Some(all) = &self.all {
            let changes = all.changes.load(Ordering::Acquire);
            if changes != self.seen {
                self.known = Arc::clone(&all.known.read());
                self.seen = changes;
            }
        }
        self.known.get(&number).map(|found| &**found).ok_or(CodecError::NoDictionary(number))
    }
}

/// A claim on a dictionary: as long as it is held, the dictionary stays known.
#[derive(Debug)]
pub struct Lease {
    dictionary: Arc<Dictionary>,
}

impl Lease {
    /// Called under the registry's lock or before the dictionary is known, so that forgetting happens wholly before or
    /// after.
    fn new(dictionary: Arc<Dictionary>) -> Self {
        dictionary.leases.fetch_add(1, Ordering::Relaxed);
        Self { dictionary }
    }

    /// What is held.
    pub fn dictionary(&self) -> &Arc<Dictionary> {
        &self.dictionary
    }

    /// Prepares the dictionary for compressing at `level`. Takes some hundred microseconds and about 100 KiB.
    ///
    /// # Errors
    /// `NotADictionary` when zstd finds no memory.
    pub fn into_encoder(self, level: i32) -> Result<Encoder, CodecError> {
        let prepared = CDict::try_create(self.dictionary.content(), level)
            .ok_or(CodecError::NotADictionary("zstd cannot prepare it"))?;
        let prepared = RwLock::new(Some(Arc::new(prepared)));
        Ok(Encoder { lease: self, prepared, used: AtomicBool::new(true), level })
    }
}

impl Clone for Lease {
    fn clone(&self) -> Self {
        // No lock needed: the dictionary stays for the lease that is cloned.
        Self::new(Arc::clone(&self.dictionary))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Release: a thread that finds the lease gone sees the values counted under it.
        self.dictionary.leases.fetch_sub(1, Ordering::Release);
    }
}

/// A dictionary for compressing at one level, shared by threads. Holds a lease. What zstd prepares for it, some hundred
/// KiB, is kept while it is in use, and is made again on the next use.
pub struct Encoder {
    lease: Lease,
    /// `None` after a rest.
    prepared: RwLock<Option<Arc<CDict<'static>>>>,
    /// It was used since the last call of [`Encoder::rest`].
    used: AtomicBool,
    level: i32,
}

impl Encoder {
    /// The dictionary that its values name.
    pub fn dictionary(&self) -> &Arc<Dictionary> {
        self.lease.dictionary()
    }

    /// The level of zstd.
    pub fn level(&self) -> i32 {
        self.level
    }

    /// What zstd compresses with; `None` when it finds no memory for it.
    pub(crate) fn prepared(&self) -> Option<Arc<CDict<'static>>> {
        // Not written by everybody: it is a line of memory that all threads read.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        let found = self.prepared.read().as_ref().map(Arc::clone);
        found.or_else(|| {
            let mut place = self.prepared.write();
            if place.is_none() {
                *place = CDict::try_create(self.dictionary().content(), self.level).map(Arc::new);
            }
            place.as_ref().map(Arc::clone)
        })
    }

    /// Frees the prepared state if it was not used since the last call; returns whether there was any.
    pub fn rest(&self) -> bool {
        !self.used.swap(false, Ordering::Relaxed) && self.prepared.write().take().is_some()
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("dictionary", self.dictionary()).field("level", &self.level).finish()
    }
}

#[cfg(test)]
mod tests;
