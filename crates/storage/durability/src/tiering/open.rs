//! An open tier.

use crate::cleaner::Cleaner;
use crate::error::DurabilityError;
use crate::scrubber::Scrubber;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tier::Tier;

/// An open tier, and the threads that write, clean and scrub it, which end with this.
pub(crate) struct OpenTier {
    pub tier: Arc<Tier>,
    pub cleaner: Arc<Cleaner>,
    pub scrubber: Arc<Scrubber>,
    pub(super) threads: Vec<JoinHandle<()>>,
}

impl OpenTier {
    pub(super) fn start(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), DurabilityError> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
        self.threads.push(thread.map_err(|error| DurabilityError::TierThread { error })?);
        Ok(())
    }
}

impl Drop for OpenTier {
    fn drop(&mut self) {
        self.tier.end();
        // A panic of it was reported when it happened.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
