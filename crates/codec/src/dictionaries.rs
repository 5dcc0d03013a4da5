//! The dictionaries of a data directory: which there are, who needs them, and when one may go.
//!
//! ```text
//!  train -> add: file, sync, rename, sync of the directory -> Dictionary -> Encoder -> values
//!                                                                ^
//!          lease: encoder, checkpoint set, log segment ----------'   remove_unneeded: neither leases nor values
//! ```
//!
//! D1. A dictionary is durable before anybody gets hold of it. So whatever becomes durable after it finds it.
//! D2. It goes only when nobody holds a lease and no value is counted, and it goes from memory before its file does.
//! D3. A number never names two dictionaries: numbers rise, one whose file may have been written is never given again, and
//!     the file of the highest number stays.

use crate::dictionary::{self, Dictionary, DictionaryFile, DictionaryNumber};
use crate::error::CodecError;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vfs::{FileKind, FileSystem};
use zstd_safe::CDict;

type Known = BTreeMap<DictionaryNumber, Arc<Dictionary>>;

/// All dictionaries of one directory, shared by threads.
pub struct Dictionaries {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    /// Replaced as a whole when a dictionary comes or goes, so that readers keep the map they saw.
    known: RwLock<Arc<Known>>,
    /// How often `known` was replaced. Written under its lock.
    changes: AtomicU64,
    /// The highest number given so far. Held while files change.
    last_number: Mutex<u32>,
}

impl Dictionaries {
    /// Reads the dictionaries in `dir`, which is made if it is missing, and removes what a crash left half written. Nothing is
    /// counted yet: count values and take leases for sets and segments before [`Dictionaries::remove_unneeded`].
    ///
    /// # Errors
    /// When a file cannot be read, has not the contents that its name promises, or two have one number.
    pub fn open(fs: Arc<dyn FileSystem>, dir: impl Into<PathBuf>) -> Result<Self, CodecError> {
        let dir = dir.into();
        vfs::create_dirs_synced(&*fs, &dir)?;
        let mut known = BTreeMap::new();
        for entry in fs.read_dir(&dir)? {
            let Some(name) = entry.name.to_str().filter(|name| name.starts_with(dictionary::FILE_PREFIX)) else {
                continue;
            };
            let path = dir.join(name);
            if entry.kind != FileKind::File {
                continue;
            }
            if name.ends_with(vfs::REPLACEMENT_SUFFIX) {
                fs.remove_file(&path)?;
                continue;
            }
            let bytes = vfs::read_file(&*fs, &path, dictionary::FILE_LEN_MAX)?;
            let found = Dictionary::prepare(dictionary::read(&path, &bytes)?, name.to_owned())?;
            let number = found.number();
            if let Some(other) = known.insert(number, Arc::new(found)) {
                let reason = format!("it has number {number}, as {} has", other.file_name());
                return Err(CodecError::File { path, reason });
            }
        }
        // A name that was seen may not be durable yet, if the process was killed before its sync.
        fs.sync_dir(&dir)?;
        let last = known.last_key_value().map_or(0, |(number, _)| number.0.get());
        Ok(Self {
            fs,
            dir,
            known: RwLock::new(Arc::new(known)),
            changes: AtomicU64::new(0),
            last_number: Mutex::new(last),
        })
    }

    /// Writes a dictionary trained for `class` to its file and makes it durable; then it is known. Blocks for two syncs.
    /// The answer is a lease, so that nobody removes the dictionary before it is used.
    ///
    /// # Errors
    /// When it is no dictionary, or the file cannot be written. Its number is not given again.
    pub fn add(&self, class: &[u8], content: Vec<u8>) -> Result<Lease, CodecError> {
        let mut last = self.last_number.lock();
        let number = last.checked_add(1).and_then(NonZeroU32::new).ok_or(CodecError::NumbersUsedUp)?;
        let file = DictionaryFile { number: DictionaryNumber(number), class: class.to_vec(), content };
        let bytes = file.encode()?;
        let name = dictionary::file_name(&bytes);
        let prepared = Arc::new(Dictionary::prepare(file, name.clone())?);
        // D3: a failed write may have left a file that a restart finds.
        *last = number.get();
        vfs::replace_file(&*self.fs, &self.dir.join(name), &bytes)?;
        let lease = Lease::new(Arc::clone(&prepared));
        self.change(|known| drop(known.insert(prepared.number(), prepared)));
        Ok(lease)
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

    /// Keeps a dictionary from being removed: for a checkpoint set or a log segment that has values of it.
    ///
    /// # Errors
    /// `NoDictionary`.
    pub fn lease(&self, number: DictionaryNumber) -> Result<Lease, CodecError> {
        // Under the lock, so that `remove_unneeded` sees the lease or the lease does not find the dictionary.
        let known = self.known.read();
        known.get(&number).map(|found| Lease::new(Arc::clone(found))).ok_or(CodecError::NoDictionary(number))
    }

    /// The dictionary with this number, to count values and to look at.
    pub fn get(&self, number: DictionaryNumber) -> Option<Arc<Dictionary>> {
        self.known.read().get(&number).map(Arc::clone)
    }

    /// All dictionaries, oldest first.
    pub fn list(&self) -> Vec<Arc<Dictionary>> {
        self.known.read().values().map(Arc::clone).collect()
    }

    /// Removes the dictionaries that no value and no lease needs, except for the one with the highest number. Tells which.
    ///
    /// # Errors
    /// When a file cannot be removed. All of them are forgotten then, and their files are found by the next start.
    pub fn remove_unneeded(&self) -> Result<Vec<DictionaryNumber>, CodecError> {
        let _files = self.last_number.lock();
        let mut removed = Vec::new();
        self.change(|known| {
            // D3: not the last number given, whose file may not have come to be.
            let newest = known.last_key_value().map(|(number, _)| *number);
            known.retain(|number, found| {
                let needed = Some(*number) == newest || found.lease_count() > 0 || found.value_count() > 0;
                if !needed {
                    removed.push(Arc::clone(found));
                }
                needed
            });
        });
        for dictionary in &removed {
            match self.fs.remove_file(&self.dir.join(dictionary.file_name())) {
                Err(error) if !error.is_not_found() => return Err(error.into()),
                _ => {}
            }
        }
        if !removed.is_empty() {
            self.fs.sync_dir(&self.dir)?;
        }
        Ok(removed.iter().map(|dictionary| dictionary.number()).collect())
    }

    /// The directory with the files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl fmt::Debug for Dictionaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionaries").field("dir", &self.dir).field("known", &self.list()).finish()
    }
}

/// The dictionaries as one thread sees them: no lock and no shared counter is touched from value to value, only a number that
/// changes when a dictionary comes or goes.
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

/// A claim on a dictionary: as long as it is held, the dictionary stays.
#[derive(Debug)]
pub struct Lease {
    dictionary: Arc<Dictionary>,
}

impl Lease {
    /// Called under the registry's lock or before the dictionary is known, so that a removal comes before or after as a whole.
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
        Ok(Encoder { lease: self, prepared, level })
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
        // Release: values counted under this lease are seen by whoever finds it gone.
        self.dictionary.leases.fetch_sub(1, Ordering::Release);
    }
}

/// A dictionary prepared for compressing at one level, shared by threads. Holds a lease.
pub struct Encoder {
    lease: Lease,
    prepared: CDict<'static>,
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

    pub(crate) fn prepared(&self) -> &CDict<'static> {
        &self.prepared
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("dictionary", self.dictionary()).field("level", &self.level).finish()
    }
}

#[cfg(test)]
mod tests;
