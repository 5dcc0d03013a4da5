//! Values that are not in memory: what an engine asks of the tier that keeps them.
//!
//! ```text
//! demote:  append -> address -> the entry keeps the address instead of its value
//! read:    the entry is away -> Fetch, want -> get (no lock held) -> install: the entry has both value and address
//! demote again, unchanged: the value is dropped, nothing is written
//! ```
//!
//! V1. A record on the tier never changes, and its address is never used again. So an address names one version of one
//!     value, and serves as the ticket of its read.
//! V2. `retain` and `release` count the entries that have an address, in memory. A tier removes no record that an entry
//!     has, nor one that a retained checkpoint may name.

use crate::fields::TierAddress;
use crate::{Encoding, Got, Key, Rows, Type};
use base::Rng;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why a tier takes no value now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TierRefusal {
    /// What was appended last is still being written: try again soon.
    Busy,
    /// It is full, or cannot be written. Values stay in memory.
    Full,
}

/// The longest value that goes to a tier.
pub const VALUE_LEN_MAX: usize = 16 << 20;

/// The longest key whose value goes to a tier.
pub const KEY_LEN_MAX: usize = u16::MAX as usize;

/// An entry that expires sooner than this is not worth a write.
pub const EXPIRES_SOON_MS: i64 = 5000;

/// Where an appended value comes from. Values of each kind share segments, since their lifetimes are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It leaves memory.
    Memory,
    /// It survived in a segment that is being cleaned.
    Cleaning,
}

/// A value for a tier, with its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewRecord<'r> {
    /// Its key.
    pub key: &'r [u8],
    /// The type of the value.
    pub kind: Type,
    /// The encoding of the value.
    pub encoding: Encoding,
    /// The value, in the form it is stored in.
    pub value: &'r [u8],
}

/// A record on a tier, as cleaning finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierRecord<'r> {
    /// Where it lies.
    pub address: TierAddress,
    /// What it holds.
    pub record: NewRecord<'r>,
}

/// Where values go that memory has no room for.
pub trait ValueTier: Send + Sync {
    /// Takes a value, in the form it is stored in. Called under a shard's lock: no I/O, no waiting. The caller calls
    /// [`ValueTier::retain`] once its entry has the address.
    ///
    /// # Errors
    /// [`TierRefusal`], with nothing taken.
    fn append(&self, record: &NewRecord<'_>, origin: Origin) -> Result<TierAddress, TierRefusal>;

    /// An entry with this key, or a read in progress, has the address.
    fn retain(&self, key: &[u8], address: TierAddress);

    /// It has the address no longer.
    fn release(&self, key: &[u8], address: TierAddress);

    /// Appends the value to `value` if that takes no I/O, and gives its encoding.
    fn try_get(&self, key: &[u8], address: TierAddress, value: &mut Vec<u8>) -> Option<Encoding>;

    /// Begins to load the record at an address into the processor's caches. Only a hint.
    fn prefetch(&self, _key_len: usize, _address: TierAddress) {}

    /// Copies the record at an address into `record`, over what that has, if it takes no I/O and no more than
    /// `bytes_max` bytes. Gives the encoding of the value, and where it lies in `record`.
    fn try_copy(
        &self,
        key: &[u8],
        address: TierAddress,
        bytes_max: usize,
        record: &mut Vec<u8>,
    ) -> Option<(Encoding, Range<usize>)>;

    /// Appends the value to `value`, and gives its encoding. May wait for a device.
    ///
    /// # Errors
    /// When the record cannot be read, or is not the one that was appended; the error names segment and offset.
    fn get(&self, key: &[u8], address: TierAddress, value: &mut Vec<u8>) -> io::Result<Encoding>;

    /// Writes what was appended, for callers that need room at once and may wait for a device.
    fn relieve(&self);

    /// Values shorter than this stay in memory.
    fn value_len_min(&self) -> usize;

    /// Whether values go to the tier soon after they are written, even if there is memory for them.
    fn takes_written(&self) -> bool;

    /// Whether values are read without I/O, so that one that is written need not be in memory at all.
    fn is_mapped(&self) -> bool;

    /// Whether what was appended is durable at once, so that the command log has its address in place of the value.
    fn is_durable_at_once(&self) -> bool;
}

/// Shards that have values for the tier, written since it was last asked. Shared by all shards of a store.
#[derive(Debug)]
pub struct WrittenShards(Box<[AtomicU64]>);

impl WrittenShards {
    /// For shards of numbers below `count`; none has any.
    pub fn new(count: usize) -> Self {
        Self((0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// A shard has some.
    pub fn mark(&self, shard: usize) {
        self.0[shard / 64].fetch_or(1 << (shard % 64), Ordering::Relaxed);
    }

    /// Whether any shard has some.
    pub fn any(&self) -> bool {
        self.0.iter().any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// A shard that has some, which is then no longer marked.
    pub fn take(&self) -> Option<usize> {
        self.0.iter().enumerate().find_map(|(number, word)| {
            let bits = word.load(Ordering::Relaxed);
            let bit = bits.trailing_zeros();
            let is_taken = bits != 0 && word.fetch_and(!(1 << bit), Ordering::Relaxed) & 1 << bit != 0;
            is_taken.then_some(number * 64 + bit as usize)
        })
    }
}

/// The row of an entry that is away: the encoding (1) and the value. It has one key. Its segment stays while it exists,
/// even if the value is replaced or moved meanwhile.
pub struct AwayRow {
    tier: Arc<dyn ValueTier>,
    key: Box<[u8]>,
    address: TierAddress,
}

impl AwayRow {
    /// The row at an address that an entry with this key has.
    pub fn new(tier: Arc<dyn ValueTier>, key: &[u8], address: TierAddress) -> Self {
        tier.retain(key, address);
        Self { tier, key: key.into(), address }
    }
}

impl Drop for AwayRow {
    fn drop(&mut self) {
        self.tier.release(&self.key, self.address);
    }
}

impl Rows for AwayRow {
    fn may_have(&self, _key: &Key<'_>) -> bool {
        true
    }

    fn try_get(&self, key: &[u8], row: &mut Vec<u8>) -> Got {
        let at = row.len();
        row.push(0);
        match self.tier.try_get(key, self.address, row) {
            Some(encoding) => {
                row[at] = encoding.0;
                Got::Row
            }
            None => {
                row.truncate(at);
                Got::NeedsIo
            }
        }
    }

    fn get(&self, key: &[u8], row: &mut Vec<u8>) -> io::Result<bool> {
        let at = row.len();
        row.push(0);
        row[at] = self.tier.get(key, self.address, row)?.0;
        Ok(true)
    }

    fn scan(&self, _from: u64, _visit: &mut dyn FnMut(&[u8], &[u8])) -> Option<u64> {
        None
    }

    fn random(&self, _rng: &mut Rng, _key: &mut Vec<u8>, _row: &mut Vec<u8>) -> bool {
        false
    }
}
