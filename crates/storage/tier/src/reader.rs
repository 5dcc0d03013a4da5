//! A tier for reading only: for tools that load a data directory whose values lie on it.

use crate::Tier;
use engine::tier::{NewRecord, Origin};
use engine::{Encoding, TierAddress, TierRefusal, ValueTier};
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use vfs::FileSystem;

/// Reads values of a tier that it does not lock. Takes none.
pub struct TierReader {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
}

impl TierReader {
    /// Of the tier in this directory.
    pub fn new(fs: Arc<dyn FileSystem>, dir: PathBuf) -> Self {
        Self { fs, dir }
    }
}

impl ValueTier for TierReader {
    fn append(&self, _record: &NewRecord<'_>, _origin: Origin) -> Result<TierAddress, TierRefusal> {
        Err(TierRefusal::Full)
    }

    fn retain(&self, _key: &[u8], _address: TierAddress) {}

    fn release(&self, _key: &[u8], _address: TierAddress) {}

    fn try_get(&self, _key: &[u8], _address: TierAddress, _value: &mut Vec<u8>) -> Option<Encoding> {
        None
    }

    fn try_copy(
        &self,
        _key: &[u8],
        _address: TierAddress,
        _bytes_max: usize,
        _record: &mut Vec<u8>,
    ) -> Option<(Encoding, Range<usize>)> {
        None
    }

    fn get(&self, key: &[u8], address: TierAddress, value: &mut Vec<u8>) -> io::Result<Encoding> {
        Ok(Tier::read_in(&*self.fs, &self.dir, key, address, value)?)
    }

    fn relieve(&self) {}

    fn value_len_min(&self) -> usize {
        usize::MAX
    }

    fn takes_written(&self) -> bool {
        false
    }

    fn is_mapped(&self) -> bool {
        false
    }

    fn is_durable_at_once(&self) -> bool {
        false
    }
}
