//! The scripts that clients have sent: their texts by digest, one cache for all workers.
//!
//! Workers compile a script when they first run it. A new [`Scripts::generation`] means that all were forgotten.

use crate::running::Running;
use crate::shebang::{self, Flags};
use command::Stop;
use parking_lot::Mutex;
use sha1::{Digest, Sha1};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// What a request gets that names a script by a digest which is not in the cache.
pub const NO_SCRIPT: Stop = Stop::error("NOSCRIPT No matching script.");

/// The digest of a script as clients write it: forty hexadecimal digits in lower case.
pub type Sha = [u8; 40];

/// Hashes digests, which are as good as random: with a secret of this map, and in a few instructions.
#[derive(Clone)]
pub struct DigestHashes(u64);

impl Default for DigestHashes {
    fn default() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }
}

impl BuildHasher for DigestHashes {
    type Hasher = DigestHasher;

    fn build_hasher(&self) -> DigestHasher {
        DigestHasher(self.0)
    }
}

/// See [`DigestHashes`].
pub struct DigestHasher(u64);

impl DigestHasher {
    #[inline]
    fn mix(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ mixed >> 29;
    }
}

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        rest.iter().for_each(|byte| self.mix(u64::from(*byte)));
    }

    fn write_usize(&mut self, _: usize) {
        // All digests have the same length.
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Scripts that EVAL has brought, not SCRIPT LOAD: more than this many, and the one used longest ago is forgotten.
const EVALUATED_MAX: usize = 500;

/// `busy-reply-threshold` where none is configured.
const BUSY_AFTER_MS: u64 = 5000;

/// Bytes a cached script takes besides its text.
const OVERHEAD_BYTES: usize = 160;

/// A cached script.
#[derive(Debug)]
pub struct Script {
    /// Its digest.
    pub sha: Sha,
    /// Its text, with the first line.
    pub text: Arc<[u8]>,
    /// Length of the first line, where that says what it may do.
    pub header_len: usize,
    /// What that says.
    pub flags: Flags,
    is_forgotten: AtomicBool,
}

impl Script {
    /// Whether the cache has dropped it, alone, for others: what workers have compiled of it runs no more then. After
    /// SCRIPT FLUSH they begin with a new state instead, by [`Scripts::generation`].
    pub fn is_forgotten(&self) -> bool {
        self.is_forgotten.load(Ordering::Acquire)
    }

    /// What is compiled.
    pub fn code(&self) -> &[u8] {
        self.text.get(self.header_len..).unwrap_or_default()
    }
}

#[derive(Default)]
struct Cache {
    scripts: HashMap<Sha, Cached, DigestHashes>,
    /// Those of EVAL, the one added longest ago first.
    evaluated: VecDeque<Sha>,
    bytes: usize,
}

struct Cached {
    script: Arc<Script>,
    is_evaluated: bool,
}

/// The cache, and the script that runs. A part of the host.
#[derive(Default)]
pub struct Scripts {
    /// The scripts that run.
    pub running: Running,
    cache: Mutex<Cache>,
    generation: AtomicU64,
    evicted: AtomicU64,
    /// Bytes of the states of all workers.
    states_bytes: AtomicUsize,
    busy_after_ms: AtomicU64,
    /// How many functions these libraries have registered.
    #[cfg(feature = "lua")]
    functions: Mutex<(Arc<engine::Libraries>, usize)>,
}

impl Scripts {
    /// No scripts.
    pub fn new() -> Self {
        let scripts = Self::default();
        scripts.set_busy_after_ms(BUSY_AFTER_MS);
        scripts
    }

    /// Sets how long a script may run before it is busy (`busy-reply-threshold`).
    pub fn set_busy_after_ms(&self, ms: u64) {
        self.busy_after_ms.store(ms, Ordering::Relaxed);
    }

    /// A script that runs longer than this is busy: requests of others are refused, and SCRIPT KILL is the way out.
    pub fn busy_after(&self) -> Duration {
        Duration::from_millis(self.busy_after_ms.load(Ordering::Relaxed))
    }

    /// The script of this digest, in any case of letters.
    pub fn find(&self, sha: &[u8]) -> Option<Arc<Script>> {
        let mut sha = Sha::try_from(sha).ok()?;
        sha.make_ascii_lowercase();
        self.cache.lock().scripts.get(&sha).map(|cached| cached.script.clone())
    }

    /// Adds a script that was compiled. `is_evaluated`: by EVAL, so that it may be forgotten.
    pub fn add(&self, script: Arc<Script>, is_evaluated: bool) {
        let cache = &mut *self.cache.lock();
        if let Some(cached) = cache.scripts.get_mut(&script.sha) {
            // SCRIPT LOAD keeps what EVAL has brought.
            if !is_evaluated && std::mem::take(&mut cached.is_evaluated) {
                cache.evaluated.retain(|sha| *sha != script.sha);
            }
            return;
        }
        while is_evaluated && cache.evaluated.len() >= EVALUATED_MAX {
            let Some(oldest) = cache.evaluated.pop_front() else { break };
            if let Some(cached) = cache.scripts.remove(&oldest) {
                cached.script.is_forgotten.store(true, Ordering::Release);
                cache.bytes -= cached.script.text.len() + OVERHEAD_BYTES;
            }
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
        if is_evaluated {
            cache.evaluated.push_back(script.sha);
        }
        cache.bytes += script.text.len() + OVERHEAD_BYTES;
        cache.scripts.insert(script.sha, Cached { script, is_evaluated });
    }

    /// Forgets all scripts.
    pub fn flush(&self) {
        *self.cache.lock() = Cache::default();
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// How often all scripts were forgotten.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// How many scripts there are.
    pub fn len(&self) -> usize {
        self.cache.lock().scripts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the cache takes.
    pub fn cached_bytes(&self) -> usize {
        self.cache.lock().bytes
    }

    /// Bytes that the Lua states take.
    pub fn states_bytes(&self) -> usize {
        self.states_bytes.load(Ordering::Relaxed)
    }

    /// How many scripts were forgotten for others.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Notes how many functions these libraries have registered.
    #[cfg(feature = "lua")]
    pub(crate) fn count_functions(&self, libraries: &Arc<engine::Libraries>, count: usize) {
        *self.functions.lock() = (libraries.clone(), count);
    }

    /// How many functions these libraries have registered, if a worker has compiled them.
    #[cfg(feature = "lua")]
    pub(crate) fn functions_of(&self, libraries: &Arc<engine::Libraries>) -> Option<usize> {
        let functions = self.functions.lock();
        Arc::ptr_eq(&functions.0, libraries).then_some(functions.1)
    }

    /// A worker's state has another size now.
    #[cfg(feature = "lua")]
    pub(crate) fn state_changed(&self, before: usize, after: usize) {
        self.states_bytes.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }
}

/// A script from its text.
///
/// # Errors
/// A first line that is wrong.
pub fn script(text: &[u8]) -> Result<Script, Stop> {
    let (flags, header_len) = shebang::read(text)?;
    Ok(Script { sha: sha1_hex(text), text: text.into(), header_len, flags, is_forgotten: AtomicBool::new(false) })
}

/// The SHA-1 of bytes, as hexadecimal digits in lower case.
pub fn sha1_hex(bytes: &[u8]) -> Sha {
    let mut text = [0; 40];
    for (pair, byte) in text.chunks_exact_mut(2).zip(Sha1::digest(bytes)) {
        pair.copy_from_slice(&[
            b"0123456789abcdef"[usize::from(byte >> 4)],
            b"0123456789abcdef"[usize::from(byte & 15)],
        ]);
    }
    text
}
