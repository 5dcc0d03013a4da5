//! Which values are stored compressed, and how: the settings, what was learned, and the figures.
//!
//! ```text
//!  SET --(write)--> compress --> Effect::Set of the stored form --> engine, log, checkpoint
//!  pass --(idle)--> a value that is cold --> compress without lock --> the same value still? --> Engine::recode
//!  read of a compressed value that was read a moment ago (idle) --> Engine::recode, decompressed
//!  samples of what is compressed --> train (a thread of its own): raw, plain, or a new dictionary for a class of keys
//! ```
//!
//! P1. Compressing changes no value, and a form that only memory knows is in no log: replay may meet the other one.
//! P2. A value that reads as an integer is not compressed, nor is one that would shrink by less than a sixteenth.
//! P3. A dictionary in use is leased by its encoder until the form that was made with it is stored (`Encoded`).
//! P4. A collection (its packed bytes, or the changes that build its tree) is compressed as a whole if it has at most
//!     [`COLLECTION_LEN_MAX`](types::decoder::COLLECTION_LEN_MAX) bytes: reading one element decompresses all of them.
//!     A bigger collection is compressed by leaf (`leaves`), each when it has been idle for a while. Collections are
//!     compressed only when cold, even where strings are compressed on write: a client that adds to a collection
//!     mostly does so again.
//! P5. Worker time of a pass: slices of at most 100 us and one value of 32 KiB, and no more than the share configured.
//!     Longer values go to a separate thread (`long`).

mod leaves;
mod long;
pub mod pass;
mod queue;
mod trial;
mod wanted;

use base::{Clock, KeyspaceId, Rng};
use codec::training::{self, Choice, ClassId, Trainer, Verdict};
use codec::{Dictionaries, DictionaryNumber, Encoder, Lease, Method, Workspace};
use engine::{Encoding, Key, Type};
use engine_mem::MemoryUse;
use leaves::LeafKeeper;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

pub use long::LongValues;
pub use pass::Pass;
pub use trial::{TRIED, Taken, Tried, compressed_lengths};

/// The codec of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    /// None: values that are compressed are decompressed by the next pass.
    #[default]
    Off,
    /// LZF.
    Lzf,
    /// LZ4.
    Lz4,
    /// zstd.
    Zstd,
}

impl Codec {
    /// Its name in configuration and in stored forms.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Lzf => "lzf",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// Shorter strings stay raw unless another length is configured: five is that of CP-Redis, and below the other two
    /// hardly anything gets shorter.
    fn default_bytes_min(self) -> usize {
        match self {
            Self::Lzf => 5,
            Self::Off | Self::Lz4 => 32,
            Self::Zstd => 64,
        }
    }
}

/// What is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How values are compressed.
    pub codec: Codec,
    /// The level of zstd.
    pub level: i32,
    /// Shorter values stay raw; 0 leaves it to the codec.
    pub bytes_min: usize,
    /// Strings are compressed as they are written, not when they are cold.
    pub on_write: bool,
    /// Seconds without access after which a value is cold.
    pub idle_seconds: u32,
    /// What a pass may take of a worker's time, in hundredths.
    pub cpu_percent: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { codec: Codec::Off, level: 3, bytes_min: 0, on_write: false, idle_seconds: 60, cpu_percent: 20 }
    }
}

impl Settings {
    /// Whether a value of these bytes may be compressed, judged by the bytes alone.
    fn takes(&self, kind: Type, value: &[u8]) -> bool {
        self.takes_len(value.len()) && types::decoder::may_be_compressed(kind, value)
    }

    /// Whether a value of this length may be compressed.
    fn takes_len(&self, len: usize) -> bool {
        let bytes_min = if self.bytes_min == 0 { self.codec.default_bytes_min() } else { self.bytes_min };
        self.codec != Codec::Off && len >= bytes_min
    }

    /// How a value is compressed for which there is no dictionary.
    fn plain(&self) -> Option<Method<'static>> {
        match self.codec {
            Codec::Off => None,
            Codec::Lzf => Some(Method::Lzf),
            Codec::Lz4 => Some(Method::Lz4),
            Codec::Zstd => Some(Method::Zstd(self.level)),
        }
    }
}

/// A compressed value must be shorter by at least one part in this many (P2).
const GAIN_PARTS: usize = 16;

/// Longest stored form allowed for a value of this length.
fn len_max(len: usize) -> usize {
    len - len / GAIN_PARTS
}

/// Figures since the start.
#[derive(Debug, Default)]
pub struct Figures {
    /// Strings compressed by commands.
    pub compressed_on_write: AtomicU64,
    /// Values compressed by passes.
    pub compressed_by_pass: AtomicU64,
    /// Values decompressed by passes.
    pub decompressed_by_pass: AtomicU64,
    /// Values decompressed for commands, and by replay of the log.
    pub decompressed: AtomicU64,
    /// Values that were tried and did not get shorter.
    pub in_vain: AtomicU64,
    /// Values not tried, since their class does not compress.
    pub skipped: AtomicU64,
    /// Time spent on compressing, of commands and passes.
    pub compressing_ns: AtomicU64,
    /// Time spent on passes, compressing included.
    pub passing_ns: AtomicU64,
    /// Passes over the shards of a worker that came to their end.
    pub passes: AtomicU64,
    /// Shards that running passes have still to go over.
    pub shards_left: AtomicU64,
}

impl Figures {
    /// Counts a value that has this encoding now.
    fn count_pass(&self, encoding: Encoding) {
        add(if encoding.is_compressed() { &self.compressed_by_pass } else { &self.decompressed_by_pass }, 1);
    }
}

/// Adds to a figure.
fn add(figure: &AtomicU64, count: u64) {
    figure.fetch_add(count, Ordering::Relaxed);
}

/// Bits of [`Compression::has_special_stores`]: writes are compressed; there is a tier.
const COMPRESSED: u8 = 1;
const ON_TIER: u8 = 2;

/// The policy of a store.
pub struct Compression {
    settings: RwLock<Settings>,
    /// Counts changes of the settings: each begins a pass over all values.
    generation: AtomicU32,
    /// Counts dictionaries put to use, and classes found to compress that were doubted: after each, a pass looks at all
    /// values.
    adoptions: AtomicU32,
    /// What stores of strings need besides: bits, cheap to read at each write.
    stores: AtomicU8,
    /// The dictionaries that values in memory may name, and those in use.
    pub dictionaries: Arc<Dictionaries>,
    /// Reads leaves of trees.
    keeper: Arc<LeafKeeper>,
    /// What is learned of classes of keys.
    trainer: Mutex<Trainer>,
    /// Values that are too long for workers.
    long: queue::Queue,
    /// What came of it.
    pub figures: Figures,
}

impl Compression {
    /// Nothing is compressed yet.
    pub(crate) fn new(clock: Arc<dyn Clock>, rng: Rng, memory: &Arc<MemoryUse>) -> Self {
        let dictionaries = Arc::<Dictionaries>::default();
        let keeper = LeafKeeper::new(dictionaries.clone(), memory.clone());
        Self {
            settings: RwLock::default(),
            generation: AtomicU32::new(0),
            adoptions: AtomicU32::new(0),
            stores: AtomicU8::new(0),
            dictionaries,
            keeper: Arc::new(keeper),
            trainer: Mutex::new(Trainer::new(training::Settings::default(), clock, rng)),
            long: queue::Queue::default(),
            figures: Figures::default(),
        }
    }

    /// What is configured.
    pub fn settings(&self) -> Settings {
        *self.settings.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is configured: for writes at once, for what is stored by a pass.
    pub fn set(&self, settings: Settings) {
        let mut held = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        if *held == settings {
            return;
        }
        *held = settings;
        match settings.on_write && settings.codec != Codec::Off {
            true => self.stores.fetch_or(COMPRESSED, Ordering::Relaxed),
            false => self.stores.fetch_and(!COMPRESSED, Ordering::Relaxed),
        };
        self.learn_anew(&settings);
        // After the settings: a thread that sees the new generation reads the new settings.
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Uses the dictionaries of an earlier run, which are known now.
    pub fn resume(&self) {
        self.learn_anew(&self.settings());
    }

    /// Forgets what was learned of classes, but for the newest dictionary of each.
    fn learn_anew(&self, settings: &Settings) {
        let encoders = if settings.codec == Codec::Zstd { self.newest_encoders(settings.level) } else { Vec::new() };
        let mut trainer = self.trainer();
        let plain = settings.plain().unwrap_or(Method::Zstd(settings.level));
        trainer.restart(training::Settings { plain, ..training::Settings::default() });
        for encoder in encoders {
            // A file of a class that is none, which nothing here writes, is for reading alone.
            let _ = trainer.resume(encoder);
        }
    }

    /// The newest dictionary of each class, prepared for compressing.
    fn newest_encoders(&self, level: i32) -> Vec<Arc<Encoder>> {
        let mut classes = BTreeSet::new();
        let all = self.dictionaries.list();
        let newest = all.iter().rev().filter(|dictionary| classes.insert(dictionary.class()));
        let encoder = |number| self.dictionaries.lease(number)?.into_encoder(level);
        newest.filter_map(|dictionary| encoder(dictionary.number()).ok().map(Arc::new)).collect()
    }

    /// Judges one class of which there are samples enough, and trains a dictionary for it where that may pay: some 10
    /// to 200 milliseconds, for a thread that has them. `keep` makes a dictionary for a class durable and inserts it;
    /// `None` when it cannot be. False when there was nothing to do.
    pub fn train(&self, keep: impl FnOnce(&[u8], Vec<u8>) -> Option<Lease>) -> bool {
        let Some(task) = self.trainer().next_task() else { return false };
        let id = task.class();
        let trial = task.run();
        let (was_doubted, verdict) = {
            let mut trainer = self.trainer();
            (trainer.is_doubted(id), trainer.settle(trial))
        };
        if let Verdict::Train { class, content } = verdict {
            let level = self.settings().level;
            let encoder = keep(&class, content).and_then(|lease| lease.into_encoder(level).ok());
            match encoder {
                None => self.trainer().give_up(id),
                Some(encoder) => {
                    let is_used = self.trainer().adopt(id, Arc::new(encoder));
                    self.adoptions.fetch_add(u32::from(is_used), Ordering::Relaxed);
                }
            }
        } else if was_doubted && verdict == Verdict::Plain {
            self.adoptions.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    /// Frees what is prepared for compressing with dictionaries that were not used since the last call. True if there
    /// was any.
    pub fn rest(&self) -> bool {
        self.trainer().rest()
    }

    /// Takes over how many values were decompressed for commands, or by replay of the log.
    #[inline]
    pub fn count_decompressed(&self, count: u64) {
        if count > 0 {
            add(&self.figures.decompressed, count);
        }
    }

    /// Classes of keys whose values do not compress and are not tried now.
    pub fn resting_classes(&self) -> usize {
        self.trainer().report().iter().filter(|class| matches!(class.choice, Choice::Raw)).count()
    }

    /// The dictionaries that values are compressed with.
    pub fn dictionaries_in_use(&self) -> BTreeSet<DictionaryNumber> {
        let in_use = |class: &training::ClassReport| match &class.choice {
            Choice::Dictionary(encoder) => Some(encoder.dictionary().number()),
            Choice::Raw | Choice::Plain => None,
        };
        self.trainer().report().iter().filter_map(in_use).collect()
    }

    /// Whether a value under the key that is stored with this dictionary, or with none, would now be stored so again.
    pub(crate) fn is_choice(&self, key: &Key<'_>, dictionary: Option<DictionaryNumber>) -> bool {
        let mut trainer = self.trainer();
        let class = trainer.class(key.space, key.bytes);
        match trainer.choice(class) {
            Choice::Dictionary(encoder) => dictionary == Some(encoder.dictionary().number()),
            // What was compressed once is not worth to be compressed anew.
            Choice::Raw | Choice::Plain => true,
        }
    }

    /// Whether a raw value under this key would stay so, at this moment of the store's clock, and not even become a
    /// sample.
    fn is_resting(&self, space: KeyspaceId, key: &[u8], now_ns: u64) -> bool {
        let mut trainer = self.trainer();
        let class = trainer.class(space, key);
        trainer.raw_until(class).is_some_and(|until_ns| now_ns < until_ns)
    }

    /// Whether strings are stored in another way than as they are: compressed, or on a tier.
    #[inline]
    pub(crate) fn has_special_stores(&self) -> bool {
        self.stores.load(Ordering::Relaxed) != 0
    }

    /// Whether writes are compressed.
    pub(crate) fn is_on_write(&self) -> bool {
        self.stores.load(Ordering::Relaxed) & COMPRESSED != 0
    }

    /// There is a tier, to which strings may go as they are written.
    pub(crate) fn expect_tier(&self) {
        self.stores.fetch_or(ON_TIER, Ordering::Relaxed);
    }

    /// The value, a string or the bytes of a collection, in its stored form, if it is to be compressed and gets
    /// shorter.
    pub(crate) fn encode<'c>(
        &self,
        coder: &'c mut Coder,
        clock: &dyn Clock,
        key: &Key<'_>,
        kind: Type,
        value: &[u8],
    ) -> Option<Encoded<'c>> {
        let settings = self.settings_kept_by(coder);
        let plain = settings.plain().filter(|_| settings.takes(kind, value))?;
        let begun_ns = clock.monotonic_ns();
        let (class, choice) = self.choose(key, value);
        let (method, encoder) = match &choice {
            Choice::Raw => {
                add(&self.figures.skipped, 1);
                return None;
            }
            Choice::Plain => (plain, None),
            Choice::Dictionary(encoder) => (Method::Dictionary(encoder), Some(encoder.clone())),
        };
        coder.stored.clear();
        let is_shorter = coder.workspace.encode(method, value, len_max(value.len()), &mut coder.stored);
        let spent_ns = clock.monotonic_ns().saturating_sub(begun_ns);
        add(&self.figures.compressing_ns, spent_ns);
        let stored_len = if is_shorter { coder.stored.len() } else { value.len() };
        let mut trainer = self.trainer();
        trainer.note(class, value.len(), stored_len);
        trainer.spend(class, spent_ns);
        drop(trainer);
        if !is_shorter {
            add(&self.figures.in_vain, 1);
        }
        is_shorter.then_some(Encoded { bytes: &coder.stored, _encoder: encoder })
    }

    /// What is configured, without a lock unless it has changed since the coder was last used: commands ask at each
    /// write.
    fn settings_kept_by(&self, coder: &mut Coder) -> Settings {
        let generation = self.generation.load(Ordering::Acquire);
        if coder.generation != generation {
            (coder.settings, coder.generation) = (self.settings(), generation);
        }
        coder.settings
    }

    /// The key's class and how its values are compressed; the value may become a sample.
    fn choose(&self, key: &Key<'_>, value: &[u8]) -> (ClassId, Choice) {
        let mut trainer = self.trainer();
        let class = trainer.class(key.space, key.bytes);
        trainer.observe(class, value);
        let choice = trainer.choice(class).clone();
        if matches!(choice, Choice::Raw) {
            trainer.note(class, value.len(), value.len());
        }
        (class, choice)
    }

    fn trainer(&self) -> MutexGuard<'_, Trainer> {
        self.trainer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stored form that was made.
pub(crate) struct Encoded<'c> {
    /// It.
    pub bytes: &'c [u8],
    /// What it needs, so that its dictionary is not forgotten before the form is stored and counted.
    _encoder: Option<Arc<Encoder>>,
}

/// What a thread compresses with.
#[derive(Default)]
pub struct Coder {
    workspace: Workspace,
    /// The stored form made last.
    stored: Vec<u8>,
    /// What was configured when they had this number: at first what every store begins with.
    settings: Settings,
    generation: u32,
}
