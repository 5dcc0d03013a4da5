//! A mapped tier under the store of an example: each SET stores on it, and GET answers from it.

use base::random::{Entropy as _, SeededEntropy};
use std::path::Path;
use std::sync::Arc;
use store::Store;
use tier::{Medium, Options, SEGMENT_BYTES, Tier, TierId};

/// Puts a new tier in a directory under the store, which has room for everything.
pub fn attach(store: &Store, dir: &Path) -> Arc<Tier> {
    let options = Options {
        max_bytes: u64::MAX,
        value_len_min: 64,
        takes_written: true,
        segment_bytes: SEGMENT_BYTES,
        medium: Medium::Shared,
        delays: vfs::Delays::NONE,
    };
    let mut id = [0; 16];
    SeededEntropy::new(2).fill(&mut id);
    let tell = |text: &str| eprintln!("{text}");
    let tier = Tier::open(Arc::new(vfs::RealFs), dir, None, TierId(id), options, tell).expect("the directory is empty");
    let writer = tier.clone();
    std::thread::spawn(move || writer.run());
    let under_store: Arc<dyn engine::ValueTier> = tier.clone();
    store.attach_tier(&under_store);
    tier
}

/// Moves what is in memory still, since a segment was not ready for it.
pub fn settle(store: &Store, tier: &Tier) {
    while store.shard_ids().any(|shard| store.demote(shard, usize::MAX) > 0) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    eprintln!("values put on the tier: {}", tier.figures().appended_values);
}
