//! The store follows the settings: its memory budget, its compression, and which collections are packed.

use base::DbIndex;
use config::{CompressionCodec, CompressionTime, EvictionPolicy, Settings};
use engine_mem::{EvictionOrder, EvictionScope, StampMode};
use store::Store;
use store::compression::{self, Codec};
use store::evict::Policies;

/// Puts the settings of the store into force.
pub(crate) fn follow_settings(store: &Store, settings: &Settings) {
    set_budget(store, settings);
    set_packed(store, settings);
    set_compression(store, settings);
}

fn set_budget(store: &Store, settings: &Settings) {
    let (log_factor, decay_minutes) = (settings.lfu_log_factor, settings.lfu_decay_minutes);
    let stamps = match settings.counts_uses() {
        true => StampMode::Frequency { log_factor, decay_minutes },
        false => StampMode::Recency,
    };
    let own = settings.policies_of_databases().into_iter();
    let policies = Policies {
        databases: own.map(|(number, policy)| (DbIndex(number), policy_of(policy))).collect(),
        others: policy_of(settings.maxmemory_policy),
    };
    store.set_budget(settings.maxmemory_bytes, policies, stamps);
}

fn policy_of(policy: EvictionPolicy) -> Option<engine_mem::EvictionPolicy> {
    use EvictionPolicy as P;
    let policy_of = |scope, order| Some(engine_mem::EvictionPolicy { scope, order });
    match policy {
        P::NoEviction => None,
        P::AllkeysLru => policy_of(EvictionScope::All, EvictionOrder::Lru),
        P::AllkeysLfu => policy_of(EvictionScope::All, EvictionOrder::Lfu),
        P::AllkeysRandom => policy_of(EvictionScope::All, EvictionOrder::Random),
        P::VolatileLru => policy_of(EvictionScope::Expiring, EvictionOrder::Lru),
        P::VolatileLfu => policy_of(EvictionScope::Expiring, EvictionOrder::Lfu),
        P::VolatileRandom => policy_of(EvictionScope::Expiring, EvictionOrder::Random),
        P::VolatileTtl => policy_of(EvictionScope::Expiring, EvictionOrder::Ttl),
    }
}

fn set_compression(store: &Store, settings: &Settings) {
    let codec = match settings.compression {
        CompressionCodec::Off => Codec::Off,
        CompressionCodec::Lzf => Codec::Lzf,
        CompressionCodec::Lz4 => Codec::Lz4,
        CompressionCodec::Zstd => Codec::Zstd,
    };
    store.compression.set(compression::Settings {
        codec,
        level: i32::try_from(settings.compression_level).unwrap_or(3),
        bytes_min: usize::try_from(settings.compression_bytes_min).unwrap_or(usize::MAX),
        on_write: settings.compression_when == CompressionTime::Write,
        idle_seconds: settings.compression_idle_seconds,
        cpu_percent: settings.compression_cpu_percent,
    });
}

fn set_packed(store: &Store, settings: &Settings) {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let packed = &store.packed;
    packed.set_hash_entries(number(settings.hash_packed_entries));
    packed.set_hash_value(number(settings.hash_packed_value));
    packed.set_list_size(settings.list_packed_size);
    packed.set_set_intset_entries(number(settings.set_integer_entries));
    packed.set_set_entries(number(settings.set_packed_entries));
    packed.set_set_value(number(settings.set_packed_value));
    packed.set_zset_entries(number(settings.zset_packed_entries));
    packed.set_zset_value(number(settings.zset_packed_value));
    packed.set_stream_node_bytes(number(settings.stream_node_bytes));
    packed.set_stream_node_entries(number(settings.stream_node_entries));
}
