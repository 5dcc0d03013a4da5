//! Which strings are stored compressed, and how: what is configured, what was learned, and what came of it.
//!
//! ```text
//!  SET --(write)--> compress --> Effect::Set of the stored form --> engine, log, checkpoint
//!  pass --(idle)--> a string that is cold --> compress without lock --> the same string still? --> Engine::recode
//!  read of a compressed string that was read a moment ago (idle) --> Engine::recode, decompressed
//! ```
//!
//! P1. Compressing changes no value, so a form that only memory knows is in no log: replay may meet the other one.
//! P2. What reads as an integer is not compressed; nor is what would not get shorter by a sixteenth.
//! P3. Worker time of a pass: slices of at most 100 us and one value, and no more than the share configured.

pub mod classes;
pub mod pass;

use crate::txn::Scratch;
use base::Clock;
use classes::Classes;
use codec::{Method, Workspace};
use engine::{Key, Type};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

pub use pass::Pass;

/// The codec of strings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    /// None: strings that are compressed are decompressed by the next pass.
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

    /// Shorter strings stay raw unless another length is configured: five is that of CP-Redis, and below the other two hardly
    /// anything gets shorter.
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
    /// How strings are compressed.
    pub codec: Codec,
    /// The level of zstd.
    pub level: i32,
    /// Shorter strings stay raw; 0 leaves it to the codec.
    pub bytes_min: usize,
    /// Strings are compressed as they are written, not when they are cold.
    pub on_write: bool,
    /// After so many seconds without access a string is cold.
    pub idle_seconds: u32,
    /// What a pass may take of a worker's time, in hundredths.
    pub cpu_percent: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { codec: Codec::Off, level: 1, bytes_min: 0, on_write: false, idle_seconds: 60, cpu_percent: 20 }
    }
}

impl Settings {
    /// Whether a string of these bytes is to be compressed, as far as it tells itself.
    fn takes(&self, value: &[u8]) -> bool {
        self.takes_len(value.len()) && types::decoder::may_be_compressed(Type::String, value)
    }

    /// Whether a string of this length may be compressed.
    fn takes_len(&self, len: usize) -> bool {
        let bytes_min = if self.bytes_min == 0 { self.codec.default_bytes_min() } else { self.bytes_min };
        self.codec != Codec::Off && len >= bytes_min
    }

    fn method(&self) -> Option<Method<'static>> {
        match self.codec {
            Codec::Off => None,
            Codec::Lzf => Some(Method::Lzf),
            Codec::Lz4 => Some(Method::Lz4),
            Codec::Zstd => Some(Method::Zstd(self.level)),
        }
    }
}

/// A string has to get shorter by one part in so many (P2).
const GAIN_PARTS: usize = 16;

/// Figures since the start.
#[derive(Debug, Default)]
pub struct Figures {
    /// Strings compressed by commands.
    pub compressed_on_write: AtomicU64,
    /// Strings compressed by passes.
    pub compressed_by_pass: AtomicU64,
    /// Strings decompressed by passes.
    pub decompressed_by_pass: AtomicU64,
    /// Strings decompressed for commands, and by replay of the log.
    pub decompressed: AtomicU64,
    /// Strings that were tried and did not get shorter.
    pub in_vain: AtomicU64,
    /// Strings not tried, since their class does not compress.
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

/// Adds to a figure.
fn add(figure: &AtomicU64, count: u64) {
    figure.fetch_add(count, Ordering::Relaxed);
}

/// The policy of a store.
#[derive(Default)]
pub struct Compression {
    settings: RwLock<Settings>,
    /// Counts changes of the settings: each begins a pass over all strings.
    generation: AtomicU32,
    /// Whether writes are compressed: of `settings`, for those who ask at each write.
    on_write: AtomicBool,
    classes: Mutex<Classes>,
    /// What came of it.
    pub figures: Figures,
}

impl Compression {
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
        self.on_write.store(settings.on_write && settings.codec != Codec::Off, Ordering::Relaxed);
        *self.classes() = Classes::default();
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes over how many strings were decompressed for commands, or by replay of the log.
    #[inline]
    pub fn count_decompressed(&self, scratch: &mut Scratch) {
        let count = scratch.take_decompressed();
        if count > 0 {
            add(&self.figures.decompressed, count);
        }
    }

    /// Classes of keys whose values do not compress and are not tried now.
    pub fn resting_classes(&self, now_ns: u64) -> usize {
        self.classes().resting(now_ns)
    }

    /// Whether writes are compressed.
    #[inline]
    pub(crate) fn is_on_write(&self) -> bool {
        self.on_write.load(Ordering::Relaxed)
    }

    /// The string in its stored form, if it is to be compressed and gets shorter.
    pub(crate) fn encode<'c>(
        &self,
        coder: &'c mut Coder,
        clock: &dyn Clock,
        key: &Key<'_>,
        value: &[u8],
    ) -> Option<&'c [u8]> {
        let settings = self.settings();
        let method = settings.method().filter(|_| settings.takes(value))?;
        let begun_ns = clock.monotonic_ns();
        if !self.classes().may_compress(key, begun_ns) {
            add(&self.figures.skipped, 1);
            return None;
        }
        coder.stored.clear();
        let len_max = value.len() - value.len() / GAIN_PARTS;
        let is_shorter = coder.workspace.encode(method, value, len_max, &mut coder.stored);
        let ended_ns = clock.monotonic_ns();
        add(&self.figures.compressing_ns, ended_ns.saturating_sub(begun_ns));
        let stored_len = if is_shorter { coder.stored.len() } else { value.len() };
        self.classes().note(key, value.len(), stored_len, ended_ns);
        if !is_shorter {
            add(&self.figures.in_vain, 1);
        }
        is_shorter.then_some(&coder.stored)
    }

    fn classes(&self) -> MutexGuard<'_, Classes> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a thread compresses with.
#[derive(Default)]
pub struct Coder {
    workspace: Workspace,
    /// The stored form made last.
    stored: Vec<u8>,
}
