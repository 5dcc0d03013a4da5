//! The thread that trains dictionaries, and what makes them last.
//!
//! ```text
//! enough samples -> train, judge -> file, synced -> MANIFEST names it -> readers know it -> values compressed with it
//! cut of a checkpoint, all locks: neither values nor encoders? -> forgotten -> MANIFEST with the set: not needed after
//! start: MANIFEST -> dictionaries in use are opened -> set, log -> the newest of each class is used again
//! ```
//!
//! N1. A dictionary is named by a durable manifest before the first value has it, so a value that survives finds it.
//! N2. While a checkpoint is being taken none comes: the manifest is the checkpoint's. So the set's manifest knows all
//!     that were in use at its cut.
//! N3. What was forgotten at a cut comes back into memory only by a start that loads what is older than that cut.

use crate::error::DurabilityError;
use crate::keeper::Durability;
use checkpoint::{CheckpointError, Manifest};
use codec::dictionary::DictionaryFile;
use codec::{CodecError, Dictionary, DictionaryNumber, Lease};
use std::num::NonZeroU32;
use std::time::Duration;
use store::compression::LongValues;

/// Time between two looks at whether there are samples enough.
const LOOK: Duration = Duration::from_millis(100);

/// Looks after the last training at which memory is given back again.
const GIVE_BACK_AGAIN_LOOKS: [u32; 2] = [50, 200];

/// Looks after which memory prepared for compressing is given back, if nothing was compressed in between.
const REST_LOOKS: u32 = 50;

/// Most dictionaries at a time. Each takes some hundred kilobytes while it is in use, and as many may be in use as
/// there are classes; checkpoints make room by those that values have left.
const DICTIONARIES_MAX: usize = 512;

/// Longest pause after a long string.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Why a dictionary is not kept.
#[derive(Debug, thiserror::Error)]
enum Unkept {
    #[error(transparent)]
    Dictionary(#[from] CodecError),
    #[error(transparent)]
    Manifest(#[from] CheckpointError),
}

impl Durability {
    /// Trains dictionaries from what the store samples, until [`Durability::end`]. Call after recovery, on a thread of
    /// its own: a training takes up to some hundred milliseconds, and a dictionary waits for the end of a checkpoint
    /// that is being taken. `give_memory_back` is called when there is nothing more to train, when strings have been
    /// compressed anew, and when dictionaries were left that had been compressed with.
    pub fn train(&self, give_memory_back: impl Fn()) {
        let (mut looks, mut looks_since_training) = (0u32, u32::MAX);
        let mut long = LongValues::default();
        while self.wait_for_samples() {
            (looks, looks_since_training) = (looks.wrapping_add(1), looks_since_training.saturating_add(1));
            while self.train_one() {
                looks_since_training = 0;
            }
            self.compress_long(&mut long);
            let has_rested = looks.is_multiple_of(REST_LOOKS) && self.parts.store.compression.rest();
            if has_rested || looks_since_training == 0 || GIVE_BACK_AGAIN_LOOKS.contains(&looks_since_training) {
                give_memory_back();
            }
        }
    }

    /// Compresses values that are too long for workers, for about the time of a look.
    fn compress_long(&self, long: &mut LongValues) {
        let store = &self.parts.store;
        let percent = u64::from(store.compression.settings().cpu_percent.max(1));
        let mut spent = Duration::ZERO;
        while spent < LOOK && !self.is_ended() {
            let Some(ns) = long.step(store) else { return };
            // The share of a worker's time is that of this thread's, too.
            let pause = Duration::from_nanos(ns.saturating_mul(100 / percent - 1)).min(PAUSE_MAX);
            self.sleep(pause);
            spent += Duration::from_nanos(ns) + pause;
        }
    }

    /// Judges one class of keys, and trains a dictionary for it if that pays; false when there was none to judge.
    pub fn train_one(&self) -> bool {
        let store = &self.parts.store;
        !self.is_ended() && store.compression.train(|class, content| self.keep_or_say(class, content))
    }

    /// Waits for the next look; false when nothing is begun any more.
    fn wait_for_samples(&self) -> bool {
        self.sleep(LOOK);
        !self.is_ended()
    }

    fn keep_or_say(&self, class: &[u8], content: Vec<u8>) -> Option<Lease> {
        match self.keep(class, content) {
            Ok(lease) => lease,
            Err(error) => {
                self.parts.tell.say(&format!("a dictionary could not be written, and is not used: {error}"));
                None
            }
        }
    }

    /// Makes a dictionary last and known; `None` when there is no place for it.
    fn keep(&self, class: &[u8], content: Vec<u8>) -> Result<Option<Lease>, Unkept> {
        let mut place = self.manifest.lock();
        let Some(manifest) = place.as_mut().filter(|_| !self.is_ended()) else { return Ok(None) };
        let mut next = manifest.current().clone();
        let number = next.last_dictionary.checked_add(1).and_then(NonZeroU32::new).map(DictionaryNumber);
        let Some(number) = number.filter(|_| next.dictionaries.len() < DICTIONARIES_MAX) else { return Ok(None) };
        let file = DictionaryFile { number, class: class.to_vec(), content };
        let dictionary = Dictionary::create(&**self.dir.fs(), self.dir.path(), file)?;
        next.add_dictionary(number, dictionary.hash());
        manifest.commit(&self.dir, next)?;
        Ok(Some(self.parts.store.compression.dictionaries.insert(dictionary)))
    }

    /// Opens the dictionaries that a start needs.
    ///
    /// # Errors
    /// As [`Manifest::open_dictionaries`].
    pub(crate) fn open_dictionaries(&self, manifest: &Manifest) -> Result<(), DurabilityError> {
        let known = &self.parts.store.compression.dictionaries;
        manifest.open_dictionaries(&self.dir)?.into_iter().for_each(|found| drop(known.insert(found)));
        Ok(())
    }

    /// Whether every value that was loaded from a set has its dictionary.
    ///
    /// # Errors
    /// The first that is missing.
    pub(crate) fn check_dictionaries(&self) -> Result<(), DurabilityError> {
        let missing = self.parts.store.missing_dictionary();
        missing.map_or(Ok(()), |number| Err(CodecError::NoDictionary(number).into()))
    }

    /// Says in the manifest that names a set what was forgotten at its cut.
    pub(crate) fn retire_dictionaries(&self, next: &mut Manifest) {
        let known = &self.parts.store.compression.dictionaries;
        next.retire_dictionaries(|number| known.get(number).is_some());
    }
}

/// Forgets, under the locks of all shards, the dictionaries that no value in memory has and no encoder uses.
pub(crate) fn forget_unused(store: &store::Store) {
    let dictionaries = &store.compression.dictionaries;
    let values = store.memory.values_by_dictionary();
    dictionaries.forget(|number| !values.contains_key(&number));
}
