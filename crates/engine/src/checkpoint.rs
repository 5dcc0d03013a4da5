//! What an engine hands to a running checkpoint.

use crate::Entry;
use base::KeyspaceId;

/// Takes the entries of a checkpoint, each exactly once, as they were at the cut.
pub trait EntrySink: Send {
    /// Copies or shares the entry. Called under the shard's lock: no I/O, no waiting.
    fn save(&mut self, space: KeyspaceId, entry: &Entry<'_>);
}

/// How far a checkpoint's walk over a shard has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkProgress {
    /// There is more to walk.
    More,
    /// Every entry of the cut has been given to the sink.
    Done,
}
