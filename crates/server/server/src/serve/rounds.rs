//! What each worker does between requests, ten times a second: upkeep of its shards, and figures of the server.

use crate::client_memory::ClientMemory;
use crate::executor::Shared;
use crate::observe::Observed;
use crate::upkeep::Upkeep;
use admin::Explanations;
use admin::hot_key_session::Totals;
use base::ShardId;
use durability::Durability;
use std::sync::Arc;
use std::thread;

/// Rounds of upkeep in a second.
const ROUNDS_PER_SECOND: u32 = 10;

/// Rounds of upkeep, ten a second, after which memory is given back again after a burst: by then its last holder has
/// freed it.
const TRIM_AGAIN_ROUNDS: [u32; 2] = [15, 50];

/// The upkeep of one worker, which is without shards if it is the attendant. The first also samples the figures, and
/// gives memory back after bursts.
pub(super) fn upkeep(
    shared: &Arc<Shared>,
    memory: &Arc<ClientMemory>,
    worker: usize,
    worker_count: usize,
    durability: Option<Arc<Durability>>,
) -> Upkeep {
    let of_worker = |shard: &ShardId| usize::from(shard.0) % worker_count == worker;
    let shards = shared.store.shard_ids().filter(of_worker).collect();
    let explanations = shared.host.part::<admin::Needed, Arc<Explanations>>().clone();
    if worker != 0 {
        return Upkeep::new(shared.store.clone(), shards, Box::new(|| {}), durability, explanations);
    }
    let (store, sweeps) =
        (shared.store.clone(), shared.host.part::<memcached::Needed, Arc<memcached::Sweeps>>().clone());
    let (shared, memory) = (Arc::downgrade(shared), memory.clone());
    let (mut rounds_since_burst, mut rounds) = (u32::MAX, 0u32);
    let each_round = move || {
        // At once, and again when upkeep has freed what the clients held.
        rounds_since_burst = if memory.has_dropped() { 0 } else { rounds_since_burst.saturating_add(1) };
        if rounds_since_burst == 0 || TRIM_AGAIN_ROUNDS.contains(&rounds_since_burst) {
            // Elsewhere, since it walks the C library's heaps. Without a thread the next burst is the next occasion.
            let _ = thread::Builder::new().name("trim".to_owned()).spawn(heap::trim);
        }
        if let Some(shared) = shared.upgrade() {
            shared.host.tracking.forget_excess();
            let figures = &shared.host.figures;
            figures.sample(shared.store.clock.monotonic_ns(), shared.store.used_bytes());
            let totals = || Totals::of(figures, u32::try_from(shared.table.rows().len()).unwrap_or(u32::MAX));
            shared.slow_log.hot_key_session.end_when_due(
                shared.store.clock.now_ms(),
                totals,
                &shared.slow_log.hot_keys,
            );
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(ROUNDS_PER_SECOND)
                && let Some(observed) = shared.host.find::<Observed>()
            {
                observed.count(&shared);
            }
        }
    };
    Upkeep::new(store, shards, Box::new(each_round), durability, explanations).with_sweeps(sweeps)
}
