//! Files that are written through memory: persistent memory, and the page cache as its stand-in.
//!
//! R1. Bytes of [`Region::write_nt`], and of [`Region::write`] with a [`Region::flush`] after it, are durable after the
//!     next [`Region::fence`] on a [`RegionKind::Dax`] region, and after [`Region::durable_barrier`] on any.
//! R2. Until then every aligned word of 8 bytes survives a power cut or not, in any order. A word is never torn.
//! R3. A medium error fails the call. The process never ends by SIGBUS.
//! R4. A caller publishes bytes to other threads after a fence, and never changes what it has published.

use std::fmt;
use std::path::Path;

use crate::error::Result;

/// What a region survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionKind {
    /// Persistent memory, mapped without page cache (`MAP_SYNC`): a fence makes writes durable.
    Dax,
    /// The page cache: writes survive the process at once, and a power cut after [`Region::durable_barrier`] if the
    /// file system is on a disk.
    Shared,
}

/// The mapped beginning of a file. The file must not be written by other means meanwhile.
#[expect(clippy::len_without_is_empty, reason = "it is never empty")]
pub trait Region: Send + Sync + fmt::Debug {
    /// The path under which it was mapped, for messages.
    fn path(&self) -> &Path;

    /// What it survives.
    fn kind(&self) -> RegionKind;

    /// Its length in bytes.
    fn len(&self) -> u64;

    /// Fills the buffer from `offset`.
    ///
    /// # Errors
    /// The medium cannot read it, or the file or the region ends before.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()>;

    /// Appends `len` bytes from `offset` to a vector.
    ///
    /// # Errors
    /// As [`read_exact_at`](Self::read_exact_at); the vector is then as before.
    fn append_to(&self, buf: &mut Vec<u8>, len: usize, offset: u64) -> Result<()> {
        let before = buf.len();
        buf.resize(before.saturating_add(len), 0);
        let result = self.read_exact_at(buf.get_mut(before..).unwrap_or_default(), offset);
        if result.is_err() {
            buf.truncate(before);
        }
        result
    }

    /// Begins to load a range of bytes that will be read soon. Only a hint.
    fn prefetch(&self, _offset: u64, _len: u64) {}

    /// Writes bytes past the processor's caches.
    ///
    /// # Errors
    /// The medium failed or has no room, now or earlier: write no more to this region. Any part may have been written.
    fn write_nt(&self, bytes: &[u8], offset: u64) -> Result<()>;

    /// Writes bytes to the processor's caches: for several writes to one line.
    ///
    /// # Errors
    /// As [`write_nt`](Self::write_nt).
    fn write(&self, bytes: &[u8], offset: u64) -> Result<()>;

    /// Begins to write a range of bytes back from the caches.
    fn flush(&self, offset: u64, len: u64);

    /// Orders writes before it with those after it; see R1.
    fn fence(&self);

    /// Makes all writes durable: a fence, or a system call that blocks for as long as the device takes.
    ///
    /// # Errors
    /// As [`File::sync_data`](crate::File::sync_data): what was written since the last success may be lost.
    fn durable_barrier(&self) -> Result<()>;
}
