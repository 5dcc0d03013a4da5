//! What has gone to a tier and come back.

use std::sync::atomic::AtomicU64;

/// What has come of demotion since the start.
#[derive(Debug, Default)]
pub struct TierCounts {
    /// Values that left memory.
    pub demoted: AtomicU64,
    /// Values that came back and stayed.
    pub promoted: AtomicU64,
    /// Bytes of memory in use when a load last found nothing to demote; 0 since it found something.
    pub(crate) vain_at: AtomicU64,
}
