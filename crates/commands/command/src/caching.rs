//! Which reads of a connection are tracked, as CLIENT TRACKING has asked.

use std::collections::BTreeSet;

/// What CLIENT TRACKING has asked for.
#[derive(Debug, Default)]
pub struct Caching {
    /// Which reads are tracked.
    pub mode: CachingMode,
    /// CLIENT CACHING has been called for the next command, or transaction.
    pub is_called: bool,
    /// The client receives no invalidations of its own changes.
    pub is_noloop: bool,
    /// The client that receives the invalidations in place of this one; 0 for none.
    pub redirect: u64,
    /// That client is gone.
    pub is_broken: bool,
    /// In BCAST mode: the prefixes of the keys whose invalidations it receives.
    pub prefixes: BTreeSet<Box<[u8]>>,
}

/// The keys whose invalidations a client receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CachingMode {
    /// All it has read.
    #[default]
    All,
    /// Those it has read immediately after CLIENT CACHING YES.
    OptIn,
    /// Those it has read, but not immediately after CLIENT CACHING NO.
    OptOut,
    /// All that begin with its prefixes, read or not.
    Broadcast,
}

impl Caching {
    /// Whether what the running command reads is to be remembered.
    pub fn remembers(&self) -> bool {
        match self.mode {
            CachingMode::All => true,
            CachingMode::OptIn => self.is_called,
            CachingMode::OptOut => !self.is_called,
            CachingMode::Broadcast => false,
        }
    }
}
