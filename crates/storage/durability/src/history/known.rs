//! What the keeper knows of the history.

use base::Lsn;
use checkpoint::Pin;

/// What the keeper knows for it.
#[derive(Default)]
pub(crate) struct History {
    /// Sets before flushes that this process has seen.
    pub(super) pins: Vec<Pin>,
    /// Flushes before the newest set's cut.
    pub(super) flushes_at_cut: u64,
    /// The settings have changed, or the server was started.
    pub is_due: bool,
    /// Where the log ended at the last decision.
    pub(super) decided_at: Lsn,
}
