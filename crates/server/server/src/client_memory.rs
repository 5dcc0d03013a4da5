//! What all clients hold together, and how far that may go.
//!
//! ```text
//! free:   maxmemory-clients - held    each client may leave a sixteenth of it unsent; above that its requests do not
//!                                     run, so that pipelines wait and no client is closed
//! free:   3/4 of it - held            each client may have half of it as a backlog of such requests
//! none:   held > 7/8 of it            the clients that hold most are closed; the rest is for what arrives meanwhile
//! ```
//!
//! With `maxmemory` set, data and clients share it, and data comes first: clients may hold three quarters of what data
//! leaves free, but always `SLACK_BYTES_MIN` or a tenth of it. If they could hold all of it, clients slightly above the
//! limit would have data evicted, and that would give them room for more. The large value that a client is sending
//! counts only here, not against `maxmemory-clients`: it will become data.
//!
//! H1. What a connection is charged with is what its worker has added for it; the worker takes it back when it closes.

use command::clients::{ClientInfo, Clients, Held};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// What clients may always hold, however full memory is, unless a tenth of `maxmemory` is more.
const SLACK_BYTES_MIN: u64 = 32 << 20;

/// What one client may leave unsent, however full memory is.
const UNSENT_BYTES_MIN: u64 = 64 << 10;

/// The part of the free room that one client may leave unsent.
const UNSENT_SHARE: u64 = 16;

/// The part of the free room that one client may have as a backlog.
const BACKLOG_SHARE: u64 = 2;

/// Changes below this are not charged: a client between two requests of a pipeline costs no shared write.
const STEP_BYTES: usize = 4096;

/// Less unsent than this is not charged.
const UNSENT_UNCOUNTED: usize = 16 << 10;

/// What clients must have let go of for memory to be given back.
const DROP_BYTES_MIN: u64 = 16 << 20;

/// Least time between two looks for clients to close: each goes over all of them.
const EVICTION_INTERVAL_MS: i64 = 5;

/// What all clients hold, shared by the workers.
#[derive(Debug, Default)]
pub struct ClientMemory {
    own: AtomicU64,
    receiving: AtomicU64,
    /// `maxmemory-clients` in bytes.
    max_bytes: AtomicU64,
    /// `maxmemory`; 0 for none.
    budget_bytes: AtomicU64,
    looked_at_ms: AtomicI64,
    /// The most held since memory was last given back.
    peak: AtomicU64,
}

/// What a connection is charged with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    own: usize,
    receiving: usize,
}

impl Charge {
    /// What these bytes are charged as.
    pub fn of(held: &Held) -> Self {
        // A small reply is usually sent, and its buffer given back, before anybody looks.
        let replies = if held.unsent_bytes < UNSENT_UNCOUNTED { 0 } else { held.reply_buffer_bytes };
        let own = held.input_bytes + held.queued_bytes + held.subscription_bytes + replies;
        Self { own: own / STEP_BYTES * STEP_BYTES, receiving: held.receiving_bytes }
    }
}

impl ClientMemory {
    /// Sets `maxmemory-clients` in bytes, and `maxmemory` (0 for none).
    pub fn set_limits(&self, max_bytes: u64, budget_bytes: u64) {
        self.max_bytes.store(max_bytes, Ordering::Relaxed);
        self.budget_bytes.store(budget_bytes, Ordering::Relaxed);
    }

    /// Changes what a connection is charged with.
    pub fn change(&self, from: Charge, to: Charge) {
        let add = |sum: &AtomicU64, from: usize, to: usize| {
            // Wraps around for a negative difference, which is what adding it means.
            sum.fetch_add((to as u64).wrapping_sub(from as u64), Ordering::Relaxed);
        };
        add(&self.own, from.own, to.own);
        add(&self.receiving, from.receiving, to.receiving);
    }

    /// What all clients hold.
    pub fn held_bytes(&self) -> u64 {
        self.held().1
    }

    /// What one client may leave unsent before it has to wait, when data takes `data_bytes`.
    pub fn unsent_bytes_max(&self, data_bytes: u64) -> usize {
        let (own, all) = self.held();
        let free = (self.max_bytes.load(Ordering::Relaxed).saturating_sub(own))
            .min(self.share(data_bytes).saturating_sub(all));
        usize::try_from((free / UNSENT_SHARE).max(UNSENT_BYTES_MIN)).unwrap_or(usize::MAX)
    }

    /// Bytes of requests that one client may have in its backlog, when data takes `data_bytes`. Backlogs alone never
    /// hold enough to close clients.
    pub fn backlog_bytes_max(&self, data_bytes: u64) -> usize {
        let (own, all) = self.held();
        let (max, share) = (self.max_bytes.load(Ordering::Relaxed), self.share(data_bytes));
        let free = (max / 4 * 3).saturating_sub(own).min((share / 4 * 3).saturating_sub(all));
        usize::try_from(free / BACKLOG_SHARE).unwrap_or(usize::MAX)
    }

    /// Bytes that a large argument may still lack, when data takes `data_bytes`: a longer one is refused, since clients
    /// would be closed for it.
    pub fn receiving_bytes_max(&self, data_bytes: u64) -> usize {
        let (_, all) = self.held();
        usize::try_from((self.share(data_bytes) / 8 * 7).saturating_sub(all)).unwrap_or(usize::MAX)
    }

    /// Closes clients when they hold too much, given `data_bytes` of data. Returns them.
    pub fn evict(&self, clients: &Clients, data_bytes: u64, now_ms: i64) -> Vec<Arc<ClientInfo>> {
        let (own, all) = self.held();
        let (max, share) = (self.max_bytes.load(Ordering::Relaxed), self.share(data_bytes));
        let (max, share) = (max / 8 * 7, share / 8 * 7);
        if own <= max && all <= share {
            return Vec::new();
        }
        let looked = self.looked_at_ms.load(Ordering::Relaxed);
        if (looked..looked.saturating_add(EVICTION_INTERVAL_MS)).contains(&now_ms)
            || self.looked_at_ms.compare_exchange(looked, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            return Vec::new();
        }
        let mut closed = clients.evict_above(max, Held::own);
        closed.extend(clients.evict_above(share, Held::total));
        closed
    }

    /// Whether the buffers of clients have shrunk by `DROP_BYTES_MIN` since their peak, so that freed memory should go
    /// back to the system. True once for each peak. One thread calls it.
    pub fn has_dropped(&self) -> bool {
        let (_, all) = self.held();
        let peak = self.peak.fetch_max(all, Ordering::Relaxed).max(all);
        let dropped = peak.saturating_sub(all) >= DROP_BYTES_MIN;
        if dropped {
            self.peak.store(all, Ordering::Relaxed);
        }
        dropped
    }

    /// What is counted against `maxmemory-clients`, and all of it.
    fn held(&self) -> (u64, u64) {
        let own = self.own.load(Ordering::Relaxed);
        (own, own.saturating_add(self.receiving.load(Ordering::Relaxed)))
    }

    /// What `maxmemory` leaves to clients.
    fn share(&self, data_bytes: u64) -> u64 {
        match self.budget_bytes.load(Ordering::Relaxed) {
            0 => u64::MAX,
            budget => (budget.saturating_sub(data_bytes) / 4 * 3).max(budget / 10).max(SLACK_BYTES_MIN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn charge(own_mb: usize, receiving_mb: usize) -> Charge {
        let bytes = |mb: usize| mb << 20;
        Charge::of(&Held { input_bytes: bytes(own_mb), receiving_bytes: bytes(receiving_mb), ..Held::default() })
    }

    #[test]
    fn the_less_is_free_the_sooner_clients_wait() {
        let memory = ClientMemory::default();
        memory.set_limits(256 * MB, 0);
        assert_eq!(memory.unsent_bytes_max(0), 16 << 20);
        memory.change(Charge::default(), charge(192, 1000));
        assert_eq!(memory.unsent_bytes_max(0), 4 << 20, "a value being received is no part of it");
        memory.change(charge(192, 1000), charge(300, 0));
        assert_eq!(memory.unsent_bytes_max(0), 64 << 10);
        memory.change(charge(300, 0), Charge::default());
        assert_eq!(memory.unsent_bytes_max(0), 16 << 20, "all of it was taken back");
    }

    #[test]
    fn backlogs_leave_room_for_others() {
        let memory = ClientMemory::default();
        memory.set_limits(256 * MB, 0);
        assert_eq!(memory.backlog_bytes_max(0), 96 << 20);
        memory.change(Charge::default(), charge(92, 0));
        assert_eq!(memory.backlog_bytes_max(0), 50 << 20);
        memory.change(charge(92, 0), charge(200, 0));
        assert_eq!(memory.backlog_bytes_max(0), 0);
    }

    #[test]
    fn data_comes_first() {
        let memory = ClientMemory::default();
        memory.set_limits(256 * MB, 100 * MB);
        assert_eq!(memory.share(20 * MB), 60 * MB);
        assert_eq!(memory.share(99 * MB), 32 * MB);
        memory.set_limits(256 * MB, 1000 * MB);
        assert_eq!(memory.share(2000 * MB), 100 * MB);
        memory.change(Charge::default(), charge(0, 60));
        assert_eq!(memory.unsent_bytes_max(2000 * MB), 5 << 19, "a value being received counts against maxmemory");
    }

    #[test]
    fn memory_is_given_back_once_after_a_burst() {
        let memory = ClientMemory::default();
        memory.change(Charge::default(), charge(10, 0));
        assert!(!memory.has_dropped());
        memory.change(charge(10, 0), charge(40, 0));
        assert!(!memory.has_dropped());
        memory.change(charge(40, 0), charge(20, 0));
        assert!(memory.has_dropped() && !memory.has_dropped());
    }

    #[test]
    fn small_changes_are_not_charged() {
        let held = |input_bytes| Held { input_bytes, ..Held::default() };
        assert_eq!(Charge::of(&held(4000)), Charge::default());
        assert_ne!(Charge::of(&held(5000)), Charge::default());
    }
}
