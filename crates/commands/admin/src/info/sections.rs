//! What each section of INFO says. Names of fields are those of Redis and Valkey, which tools look for; fields that
//! stand for something this server has not (replicas, scripts, forks) are there when a tool reads them, and zero.

use super::{human, line, line_of_family};
use crate::about::{self};
use crate::memory::MemoryNow;
use base::DbIndex;
use base::figures::{self as fields, Figure};
use cmdlog::LogMode;
use command::Ctx;
use command::acl::Reason;
use command::clients::ClientFlags;
use durability::{Durability, FlushStatus, LoadingStatus};
use push::Kind;
use replication::{Copied, LinkState, Role};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::Store;
use store::gate::LoadProgress;

/// How often a second figures are sampled: what is left of a periodic tick.
const SAMPLES_PER_SECOND: u32 = 10;

/// Adds lines for what is not there, and so is zero.
fn zeros(text: &mut String, figures: &[&Figure]) {
    figures.iter().for_each(|figure| line(text, figure, 0));
}

pub(super) fn server(ctx: &mut Ctx<'_>, text: &mut String) {
    let about = &ctx.host.about;
    let settings = ctx.host.configuration.current();
    let uptime = (ctx.now() - about.started_at).max(0) / 1000;
    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|it| it.display().to_string()).unwrap_or_default();
    line(text, &fields::REDIS_VERSION, about::REDIS_VERSION);
    line(text, &fields::SERVER_NAME, "onggi");
    line(text, &fields::ONGGI_VERSION, about::VERSION);
    line(text, &fields::REDIS_GIT_SHA1, "00000000");
    line(text, &fields::REDIS_GIT_DIRTY, 0);
    line(text, &fields::REDIS_BUILD_ID, about::build_id());
    line(text, &fields::REDIS_MODE, "standalone");
    line(text, &fields::SERVER_MODE, "standalone");
    line(text, &fields::OS, about::operating_system());
    line(text, &fields::ARCH_BITS, usize::BITS);
    line(text, &fields::MONOTONIC_CLOCK, "CLOCK_MONOTONIC, durations by the processor's time stamp counter");
    line(text, &fields::MULTIPLEXING_API, "epoll");
    line(text, &fields::PROCESS_ID, std::process::id());
    line(text, &fields::PROCESS_SUPERVISED, "no");
    line(text, &fields::RUN_ID, &about.run_id);
    // As in Valkey, the port of TLS stands in for the other.
    line(text, &fields::TCP_PORT, if settings.port == 0 { settings.tls_port } else { settings.port });
    line(text, &fields::SERVER_TIME_USEC, ctx.now() * 1000);
    line(text, &fields::UPTIME_IN_SECONDS, uptime);
    line(text, &fields::UPTIME_IN_DAYS, uptime / 86_400);
    line(text, &fields::HZ, SAMPLES_PER_SECOND);
    line(text, &fields::CONFIGURED_HZ, SAMPLES_PER_SECOND);
    line(text, &fields::EXECUTABLE, path(&about.executable));
    line(text, &fields::CONFIG_FILE, path(&about.config_file));
    line(text, &fields::IO_THREADS_ACTIVE, 0);
    line(text, &fields::WORKERS, ctx.host.figures.worker_count());
    line(text, &fields::SHARDS, ctx.host.part::<crate::Needed, Arc<Store>>().shard_ids().len());
    listeners(&settings)
        .iter()
        .enumerate()
        .for_each(|(number, shown)| line_of_family(text, &format!("listener{number}"), shown));
}

/// Where RESP clients connect, as Valkey shows it.
fn listeners(settings: &config::Settings) -> Vec<String> {
    let bind: String = settings.bind.iter().map(|address| format!(",bind={address}")).collect();
    let tcp = |name: &str, port: u16| (port != 0).then(|| format!("name={name}{bind},port={port}"));
    let unix = settings.unixsocket.as_ref().map(|path| format!("name=unix,bind={}", path.display()));
    [tcp("tcp", settings.port), unix, tcp("tls", settings.tls_port)].into_iter().flatten().collect()
}

pub(super) fn compression(ctx: &mut Ctx<'_>, text: &mut String) {
    let store = ctx.host.part::<crate::Needed, Arc<Store>>();
    let (policy, settings) = (&store.compression, store.compression.settings());
    let (now, figures) = (store.memory.compressed(), &policy.figures);
    let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
    line(text, &fields::COMPRESSION, settings.codec.name());
    line(text, &fields::COMPRESSION_VALUES, now.values);
    line(text, &fields::COMPRESSION_STORED_BYTES, now.stored_bytes);
    line(text, &fields::COMPRESSION_LOGICAL_BYTES, now.logical_bytes);
    let pages = policy.leaf_pages();
    line(text, &fields::COMPRESSION_LEAF_PAGES_BYTES, pages.bytes);
    line(text, &fields::COMPRESSION_LEAF_PAGES_GONE_BYTES, pages.gone_bytes);
    line(text, &fields::COMPRESSION_COMPRESSED_BY_WRITES, read(&figures.compressed_on_write));
    line(text, &fields::COMPRESSION_COMPRESSED_IN_BACKGROUND, read(&figures.compressed_by_pass));
    line(text, &fields::COMPRESSION_DECOMPRESSED_IN_BACKGROUND, read(&figures.decompressed_by_pass));
    let decompressed = read(&figures.decompressed) + policy.leaves_thawed();
    line(text, &fields::COMPRESSION_DECOMPRESSED_FOR_COMMANDS, decompressed);
    line(text, &fields::COMPRESSION_IN_VAIN, read(&figures.in_vain));
    line(text, &fields::COMPRESSION_SKIPPED, read(&figures.skipped));
    line(text, &fields::COMPRESSION_CLASSES_SKIPPED, policy.resting_classes());
    let dictionaries = policy.dictionaries.list();
    line(text, &fields::COMPRESSION_DICTIONARIES, dictionaries.len());
    line(text, &fields::COMPRESSION_DICTIONARIES_IN_USE, policy.dictionaries_in_use().len());
    line(
        text,
        &fields::COMPRESSION_DICTIONARY_BYTES,
        dictionaries.iter().map(|found| found.content().len()).sum::<usize>(),
    );
    line(text, &fields::COMPRESSION_VALUES_WITH_DICTIONARY, store.memory.values_by_dictionary().values().sum::<u64>());
    line(text, &fields::COMPRESSION_CPU_USEC, read(&figures.compressing_ns) / 1000);
    line(text, &fields::COMPRESSION_BACKGROUND_USEC, read(&figures.passing_ns) / 1000);
    line(text, &fields::COMPRESSION_SHARDS_TO_VISIT, read(&figures.shards_left));
    line(text, &fields::COMPRESSION_ROUNDS, read(&figures.passes));
}

pub(super) fn clients(ctx: &mut Ctx<'_>, text: &mut String) {
    let clients = &ctx.host.clients;
    let all = clients.all();
    let watched: Vec<usize> = all.iter().map(|client| client.watched()).filter(|keys| *keys > 0).collect();
    let largest =
        |bytes: fn(&command::clients::Held) -> usize| all.iter().map(|client| bytes(&client.held())).max().unwrap_or(0);
    line(text, &fields::CONNECTED_CLIENTS, clients.count());
    line(text, &fields::CLUSTER_CONNECTIONS, 0);
    line(text, &fields::MAXCLIENTS, clients.limit());
    line(text, &fields::CLIENT_RECENT_MAX_INPUT_BUFFER, largest(|held| held.input_bytes));
    line(text, &fields::CLIENT_RECENT_MAX_OUTPUT_BUFFER, largest(|held| held.unsent_bytes));
    line(text, &fields::BLOCKED_CLIENTS, all.iter().filter(|client| client.is_blocked()).count());
    line(text, &fields::TRACKING_CLIENTS, ctx.host.tracking.client_count());
    line(text, &fields::PUBSUB_CLIENTS, all.iter().filter(|it| it.flags().contains(ClientFlags::SUBSCRIBER)).count());
    line(text, &fields::WATCHING_CLIENTS, watched.len());
    line(text, &fields::CLIENTS_IN_TIMEOUT_TABLE, 0);
    line(text, &fields::TOTAL_WATCHED_KEYS, watched.iter().sum::<usize>());
    let awaited = &ctx.host.part::<crate::Needed, Arc<Store>>().awaited_keys;
    line(text, &fields::TOTAL_BLOCKING_KEYS, awaited.keys());
    line(text, &fields::TOTAL_BLOCKING_KEYS_ON_NOKEY, awaited.absent());
    let (now, pause) = (ctx.now(), &ctx.host.pause);
    let paused = match pause.is_active(now) {
        false => "none",
        true if pause.is_paused(now, command::Flags::empty()) => "all",
        true => "write",
    };
    let reason = match (pause.is_ending(), pause.until(now)) {
        (true, _) => "shutdown_in_progress",
        (false, Some(_)) => "client_pause",
        (false, None) => "none",
    };
    line(text, &fields::PAUSED_REASON, reason);
    line(text, &fields::PAUSED_ACTIONS, paused);
    line(text, &fields::PAUSED_TIMEOUT_MILLISECONDS, pause.until(now).map_or(0, |until| until - now));
}

pub(super) fn memory(ctx: &mut Ctx<'_>, text: &mut String) {
    let scripts = script::figures::figures(ctx);
    let use_now = MemoryNow::of(ctx);
    let settings = ctx.host.configuration.current();
    let resident = use_now.resident.unwrap_or(use_now.used);
    amount(text, &fields::USED_MEMORY, use_now.used);
    amount(text, &fields::USED_MEMORY_RSS, resident);
    amount(text, &fields::USED_MEMORY_PEAK, use_now.peak);
    line(text, &fields::USED_MEMORY_PEAK_PERC, format_args!("{:.2}%", percent(use_now.used, use_now.peak)));
    line(text, &fields::USED_MEMORY_OVERHEAD, use_now.overhead());
    line(text, &fields::USED_MEMORY_STARTUP, use_now.base);
    line(text, &fields::USED_MEMORY_DATASET, use_now.dataset());
    line(text, &fields::USED_MEMORY_DATASET_PERC, format_args!("{:.2}%", use_now.dataset_percent()));
    line(text, &fields::USED_MEMORY_VALUES, use_now.values);
    line(text, &fields::USED_MEMORY_LARGE_VALUES, use_now.large);
    line(text, &fields::USED_MEMORY_THAWED, use_now.thawed);
    line(text, &fields::USED_MEMORY_TABLE, use_now.table);
    line(text, &fields::USED_MEMORY_EXPIRATION_INDEX, use_now.index);
    // Memory is taken from the system in pages and counted so: what is allocated is what is active.
    line(text, &fields::ALLOCATOR_ALLOCATED, use_now.used);
    line(text, &fields::ALLOCATOR_ACTIVE, use_now.used);
    line(text, &fields::ALLOCATOR_RESIDENT, resident);
    line(text, &fields::ALLOCATOR_MUZZY, 0);
    amount(text, &fields::TOTAL_SYSTEM_MEMORY, about::system_memory_bytes().unwrap_or(0));
    // Scripts and functions share the Lua states of the workers.
    line(text, &fields::USED_MEMORY_LUA, scripts.states_bytes);
    line(text, &fields::USED_MEMORY_VM_EVAL, scripts.states_bytes);
    for_people(text, &fields::USED_MEMORY_LUA, scripts.states_bytes as u64);
    line(text, &fields::USED_MEMORY_SCRIPTS_EVAL, scripts.scripts_bytes);
    line(text, &fields::NUMBER_OF_CACHED_SCRIPTS, scripts.scripts);
    line(text, &fields::NUMBER_OF_FUNCTIONS, scripts.functions);
    line(text, &fields::NUMBER_OF_LIBRARIES, scripts.libraries);
    line(text, &fields::USED_MEMORY_VM_FUNCTIONS, 0);
    amount(text, &fields::USED_MEMORY_VM_TOTAL, scripts.states_bytes as u64);
    line(text, &fields::USED_MEMORY_FUNCTIONS, scripts.libraries_bytes);
    amount(text, &fields::USED_MEMORY_SCRIPTS, scripts.scripts_bytes.saturating_add(scripts.libraries_bytes) as u64);
    amount(text, &fields::MAXMEMORY, settings.maxmemory_bytes);
    line(text, &fields::MAXMEMORY_POLICY, settings.maxmemory_policy.word());
    line(text, &fields::ALLOCATOR_FRAG_RATIO, "1.00");
    line(text, &fields::ALLOCATOR_FRAG_BYTES, 0);
    line(text, &fields::ALLOCATOR_RSS_RATIO, format_args!("{:.2}", use_now.resident_ratio()));
    line(text, &fields::ALLOCATOR_RSS_BYTES, use_now.resident_excess());
    line(text, &fields::RSS_OVERHEAD_RATIO, "1.00");
    line(text, &fields::RSS_OVERHEAD_BYTES, 0);
    line(text, &fields::MEM_FRAGMENTATION_RATIO, format_args!("{:.2}", use_now.resident_ratio()));
    line(text, &fields::MEM_FRAGMENTATION_BYTES, use_now.resident_excess());
    zeros(
        text,
        &[
            &fields::MEM_NOT_COUNTED_FOR_EVICT,
            &fields::MEM_REPLICATION_BACKLOG,
            &fields::MEM_TOTAL_REPLICATION_BUFFERS,
            &fields::MEM_REPLICAS_REPL_BUFFER,
            &fields::MEM_CLIENTS_SLAVES,
        ],
    );
    line(text, &fields::MEM_CLIENTS_NORMAL, use_now.clients);
    zeros(text, &[&fields::MEM_CLUSTER_LINKS, &fields::MEM_AOF_BUFFER]);
    line(text, &fields::MEM_ALLOCATOR, "onggi-pages");
    zeros(text, &[&fields::ACTIVE_DEFRAG_RUNNING, &fields::LAZYFREE_PENDING_OBJECTS, &fields::LAZYFREED_OBJECTS]);
}

/// A number of bytes, and the same for people.
fn amount(text: &mut String, figure: &Figure, bytes: u64) {
    line(text, figure, bytes);
    for_people(text, figure, bytes);
}

/// A number of bytes for people alone.
fn for_people(text: &mut String, figure: &Figure, bytes: u64) {
    line_of_family(text, &format!("{}_human", figure.field), human(bytes));
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

/// Databases on disk.
pub(super) fn disk(ctx: &mut Ctx<'_>, text: &mut String) {
    let status = ctx.host.find::<Arc<Durability>>().and_then(|durability| durability.flush_status());
    let Some(FlushStatus { count, flushed, unflushed_bytes, error, databases, retained_bytes, rows }) = status else {
        return line(text, &fields::DISK_DATABASES, 0);
    };
    line(text, &fields::DISK_DATABASES, databases);
    line(text, &fields::DISK_FLUSHES, count);
    line(text, &fields::DISK_LAST_FLUSH_STATUS, ok_or_err(error.is_none()));
    line(text, &fields::DISK_FLUSHED_LSN, flushed.0);
    line(text, &fields::DISK_UNFLUSHED_BYTES, unflushed_bytes);
    line(text, &fields::DISK_TABLE_BYTES, rows.table_bytes);
    line(text, &fields::DISK_TABLES, rows.tables);
    line(text, &fields::DISK_RETAINED_BYTES, retained_bytes);
    line(text, &fields::DISK_MEMORY_BYTES, rows.memory_bytes);
    line(text, &fields::DISK_FLUSHED_BYTES, rows.flushed_bytes);
    line(text, &fields::DISK_WRITTEN_BYTES, rows.written_bytes);
    let amplification = rows.written_bytes as f64 / rows.flushed_bytes.max(1) as f64;
    line(text, &fields::DISK_WRITE_AMPLIFICATION, format!("{amplification:.2}"));
    line(text, &fields::DISK_PARTS_WRITTEN, rows.parts_written);
    line(text, &fields::DISK_PARTS_KEPT, rows.parts_kept);
    line(text, &fields::DISK_LEAVES_WRITTEN, rows.leaves_written);
    line(text, &fields::DISK_LEAVES_READ, rows.leaves_read);
    line(text, &fields::DISK_MERGES, rows.merges);
    line(text, &fields::DISK_ROW_READS, rows.reads);
    line(text, &fields::DISK_ROW_READ_USEC_PER_READ, rows.read_us / rows.reads.max(1));
    line(text, &fields::DISK_ROW_READ_ERRORS, rows.read_errors);
}

/// Values that memory has no room for.
pub(super) fn tier(ctx: &mut Ctx<'_>, text: &mut String) {
    let tier = ctx.host.find::<Arc<Durability>>().and_then(|durability| durability.tier());
    let Some(tier) = tier else { return line(text, &fields::TIER_ENABLED, 0) };
    let figures = tier.figures();
    let counts = &ctx.host.part::<crate::Needed, Arc<Store>>().tier_counts;
    line(text, &fields::TIER_ENABLED, 1);
    line(text, &fields::TIER_MEDIUM, tier.medium().name());
    line(text, &fields::TIER_FULL, u8::from(figures.is_full));
    line(text, &fields::TIER_SEGMENTS, figures.segments);
    line(text, &fields::TIER_MISSING_SEGMENTS, figures.missing_segments);
    line(text, &fields::TIER_BYTES, figures.bytes);
    line(text, &fields::TIER_LIVE_BYTES, figures.live_bytes);
    line(text, &fields::TIER_DEAD_BYTES, figures.dead_bytes);
    line(text, &fields::TIER_PINNED_BYTES, figures.pinned_bytes);
    line(text, &fields::TIER_WAITING_BYTES, figures.waiting_bytes);
    line(text, &fields::TIER_DEMOTED_VALUES, counts.demoted.load(Ordering::Relaxed));
    line(text, &fields::TIER_PROMOTED_VALUES, counts.promoted.load(Ordering::Relaxed));
    line(text, &fields::TIER_APPENDED_VALUES, figures.appended_values);
    line(text, &fields::TIER_APPENDED_BYTES, figures.appended_bytes);
    line(text, &fields::TIER_CLEANED_SEGMENTS, figures.cleaned_segments);
    line(text, &fields::TIER_CLEANING_BYTES, figures.cleaning_bytes);
    line(text, &fields::TIER_READ_VALUES, figures.read_values);
    line(text, &fields::TIER_FAILED_READS, figures.failed_reads);
    line(text, &fields::TIER_SCRUBBED_SEGMENTS, figures.scrubbed_segments);
    line(text, &fields::TIER_SCRUBBED_BYTES, figures.scrubbed_bytes);
    line(text, &fields::TIER_SCRUB_ROUNDS, figures.scrub_rounds);
    line(text, &fields::TIER_DAMAGED_BYTES, figures.damaged_bytes);
}

pub(super) fn persistence(ctx: &mut Ctx<'_>, text: &mut String) {
    let Some(durability) = ctx.host.find::<Arc<Durability>>() else {
        let changes = ctx.host.figures.sum(|worker| worker.changes.get());
        return memory_only(text, changes, ctx.host.about.started_at);
    };
    // A replica that loads a copy shows it as a start shows a checkpoint.
    let of_copy = |at: LoadProgress| LoadingStatus {
        since_ms: at.since,
        done_bytes: at.loaded_bytes,
        total_bytes: at.total_bytes,
        keys: 0,
    };
    let gate = ctx.host.find::<Arc<Store>>().map(|store| &store.gate);
    let loading = durability.loading().or_else(|| gate.and_then(|gate| gate.progress()).map(of_copy));
    let status = durability.status();
    let settings = ctx.host.configuration.current();
    let running = |is_save: bool| status.running.as_ref().filter(|running| running.cause.is_save() == is_save);
    let (saving, rewriting) = (running(true), running(false));
    let any = status.running.as_ref();
    line(text, &fields::DURABILITY, durability_of(&status, &settings));
    let is_aside = gate.is_some_and(|gate| gate.loads_aside());
    line(text, &fields::LOADING, u8::from(loading.is_some() && !is_aside));
    line(text, &fields::ASYNC_LOADING, u8::from(is_aside));
    line(text, &fields::CURRENT_COW_PEAK, any.map_or(0, |running| running.extra_bytes_max));
    line(text, &fields::CURRENT_COW_SIZE, any.map_or(0, |running| running.extra_bytes));
    line(text, &fields::CURRENT_COW_SIZE_AGE, 0);
    line(text, &fields::CURRENT_FORK_PERC, "0.00");
    line(text, &fields::CURRENT_SAVE_KEYS_PROCESSED, any.map_or(0, |running| running.keys_done));
    line(text, &fields::CURRENT_SAVE_KEYS_TOTAL, any.map_or(0, |running| running.keys_total));
    line(text, &fields::RDB_CHANGES_SINCE_LAST_SAVE, status.changes);
    line(text, &fields::RDB_BGSAVE_IN_PROGRESS, u8::from(saving.is_some()));
    line(text, &fields::RDB_LAST_SAVE_TIME, status.last_save_ms / 1000);
    line(text, &fields::RDB_LAST_BGSAVE_STATUS, ok_or_err(status.saves.failures == 0));
    line(text, &fields::RDB_LAST_BGSAVE_TIME_SEC, seconds(status.saves.last_seconds));
    line(text, &fields::RDB_CURRENT_BGSAVE_TIME_SEC, seconds(saving.map(|running| running.seconds)));
    line(text, &fields::RDB_SAVES, status.saves.count);
    line(text, &fields::RDB_LAST_COW_SIZE, status.saves.last_extra_bytes);
    line(text, &fields::RDB_LAST_LOAD_KEYS_EXPIRED, 0);
    line(text, &fields::RDB_LAST_LOAD_KEYS_LOADED, status.load.keys);
    let is_on = status.log.is_some() && !status.is_switching_on;
    line(text, &fields::AOF_ENABLED, u8::from(is_on));
    line(text, &fields::AOF_REWRITE_IN_PROGRESS, u8::from(rewriting.is_some()));
    line(text, &fields::AOF_REWRITE_SCHEDULED, u8::from(status.is_scheduled));
    line(text, &fields::AOF_LAST_REWRITE_TIME_SEC, seconds(status.rewrites.last_seconds));
    line(text, &fields::AOF_CURRENT_REWRITE_TIME_SEC, seconds(rewriting.map(|running| running.seconds)));
    line(text, &fields::AOF_LAST_BGREWRITE_STATUS, ok_or_err(status.rewrites.failures == 0));
    line(text, &fields::AOF_REWRITES, status.rewrites.count);
    line(text, &fields::AOF_REWRITES_CONSECUTIVE_FAILURES, status.rewrites.failures);
    let is_healthy = status.log.as_ref().is_none_or(|log| log.failure.is_none());
    line(text, &fields::AOF_LAST_WRITE_STATUS, ok_or_err(is_healthy));
    line(text, &fields::AOF_LAST_COW_SIZE, status.rewrites.last_extra_bytes);
    zeros(text, &[&fields::MODULE_FORK_IN_PROGRESS, &fields::MODULE_FORK_LAST_COW_SIZE]);
    if let Some(log) = &status.log {
        line(text, &fields::AOF_CURRENT_SIZE, log.current_size);
        line(text, &fields::AOF_BASE_SIZE, log.base_size);
        line(text, &fields::AOF_PENDING_REWRITE, 0);
        line(text, &fields::AOF_BUFFER_LENGTH, log.stats.pending_bytes);
        line(text, &fields::AOF_PENDING_BIO_FSYNC, u8::from(log.stats.unsynced_bytes > 0));
        line(text, &fields::AOF_DELAYED_FSYNC, log.stats.delayed_syncs);
        line(text, &fields::LOG_MODE, appendfsync(log.mode));
        line(text, &fields::LOG_WINDOW_MS, log.window_ms);
        line(text, &fields::LOG_END, log.end);
        line(text, &fields::LOG_DURABLE, log.durable);
        line(text, &fields::LOG_SEGMENTS, log.stats.segments);
        line(text, &fields::LOG_SIZE, log.stats.size_bytes);
        line(text, &fields::LOG_UNSYNCED_BYTES, log.stats.unsynced_bytes);
        line(text, &fields::LOG_OLDEST_UNSYNCED_MS, log.stats.oldest_unsynced_ms);
        line(text, &fields::LOG_SYNCS, log.stats.syncs);
        line(text, &fields::LOG_LAST_SYNC_USEC, log.stats.last_sync_us);
        line(text, &fields::LOG_LONGEST_SYNC_USEC, log.stats.sync_us_max);
        line(text, &fields::LOG_FAILURES, log.stats.failures);
        line(text, &fields::LOG_FAILURE, log.failure.as_ref().map_or("", |failure| failure.message.as_str()));
    }
    line(text, &fields::RDB_FILE_SAVES, status.rdb.count);
    line(text, &fields::RDB_FILE_LAST_STATUS, ok_or_err(status.rdb.last_error.is_none()));
    line(text, &fields::RDB_FILE_LAST_ERROR, status.rdb.last_error.as_deref().unwrap_or_default());
    line(text, &fields::RDB_FILE_LAST_TIME, status.rdb.last_ms.map_or(0, |ms| ms / 1000));
    line(text, &fields::RDB_FILE_LAST_KEYS, status.rdb.last_keys);
    line(text, &fields::RDB_FILE_LAST_SIZE, status.rdb.last_bytes);
    line(text, &fields::CHECKPOINT_SETS, status.sets);
    line(text, &fields::CHECKPOINT_BYTES, status.set_bytes);
    line(text, &fields::CHECKPOINT_LAST_STALL_USEC, status.stall_us);
    // Every moment from then on can be restored, as far as the log was on.
    line(text, &fields::RESTORABLE_SINCE, status.restorable_since_ms.map_or(0, |ms| ms / 1000));
    line(text, &fields::RESTORABLE, status.restorable(ctx.now()));
    line(text, &fields::LAST_LOAD_LOG_RECORDS, status.load.records);
    line(text, &fields::LAST_LOAD_MS, status.load.ms);
    if let Some(loading) = loading {
        let seconds = (ctx.now() - loading.since_ms).max(0) / 1000;
        let share = percent(loading.done_bytes, loading.total_bytes);
        let left = loading.total_bytes.saturating_sub(loading.done_bytes);
        let rate = loading.done_bytes / u64::try_from(seconds).unwrap_or(0).max(1);
        line(text, &fields::LOADING_START_TIME, loading.since_ms / 1000);
        line(text, &fields::LOADING_TOTAL_BYTES, loading.total_bytes);
        line(text, &fields::LOADING_RDB_USED_MEM, 0);
        line(text, &fields::LOADING_LOADED_BYTES, loading.done_bytes);
        line(text, &fields::LOADING_LOADED_PERC, format_args!("{share:.2}"));
        line(text, &fields::LOADING_ETA_SECONDS, left / rate.max(1));
    }
}

/// What survives a power cut, in a few words.
fn durability_of(status: &durability::Status, settings: &config::Settings) -> String {
    let checkpoints = if settings.save.points.is_empty() { "checkpoints when asked for" } else { "checkpoints" };
    match (&status.log, status.is_switching_on) {
        (None, _) => format!("no log, {checkpoints}"),
        (Some(_), true) => format!("the log is being switched on, {checkpoints}"),
        (Some(log), false) => match log.mode {
            LogMode::Sync => "log, synced before each reply".to_owned(),
            LogMode::Async => format!("log, synced within {} ms", log.window_ms),
            LogMode::WrittenOnly => "log, written and left to the operating system".to_owned(),
        },
    }
}

/// A mode of the log, as the setting `appendfsync` names it.
fn appendfsync(mode: LogMode) -> &'static str {
    match mode {
        LogMode::Sync => "always",
        LogMode::Async => "everysec",
        LogMode::WrittenOnly => "no",
    }
}

fn ok_or_err(is_ok: bool) -> &'static str {
    if is_ok { "ok" } else { "err" }
}

/// Seconds, or -1 for none.
fn seconds(seconds: Option<u64>) -> i64 {
    seconds.and_then(|seconds| i64::try_from(seconds).ok()).unwrap_or(-1)
}

/// A server without a data directory.
fn memory_only(text: &mut String, changes: u64, started_at: base::UnixMs) {
    line(text, &fields::DURABILITY, "none (memory only)");
    zeros(
        text,
        &[
            &fields::LOADING,
            &fields::ASYNC_LOADING,
            &fields::CURRENT_COW_PEAK,
            &fields::CURRENT_COW_SIZE,
            &fields::CURRENT_COW_SIZE_AGE,
        ],
    );
    line(text, &fields::CURRENT_FORK_PERC, "0.00");
    zeros(text, &[&fields::CURRENT_SAVE_KEYS_PROCESSED, &fields::CURRENT_SAVE_KEYS_TOTAL]);
    line(text, &fields::RDB_CHANGES_SINCE_LAST_SAVE, changes);
    line(text, &fields::RDB_BGSAVE_IN_PROGRESS, 0);
    line(text, &fields::RDB_LAST_SAVE_TIME, started_at / 1000);
    line(text, &fields::RDB_LAST_BGSAVE_STATUS, "ok");
    line(text, &fields::RDB_LAST_BGSAVE_TIME_SEC, -1);
    line(text, &fields::RDB_CURRENT_BGSAVE_TIME_SEC, -1);
    zeros(
        text,
        &[
            &fields::RDB_SAVES,
            &fields::RDB_LAST_COW_SIZE,
            &fields::RDB_LAST_LOAD_KEYS_EXPIRED,
            &fields::RDB_LAST_LOAD_KEYS_LOADED,
        ],
    );
    zeros(text, &[&fields::AOF_ENABLED, &fields::AOF_REWRITE_IN_PROGRESS, &fields::AOF_REWRITE_SCHEDULED]);
    line(text, &fields::AOF_LAST_REWRITE_TIME_SEC, -1);
    line(text, &fields::AOF_CURRENT_REWRITE_TIME_SEC, -1);
    line(text, &fields::AOF_LAST_BGREWRITE_STATUS, "ok");
    zeros(text, &[&fields::AOF_REWRITES, &fields::AOF_REWRITES_CONSECUTIVE_FAILURES]);
    line(text, &fields::AOF_LAST_WRITE_STATUS, "ok");
    zeros(text, &[&fields::AOF_LAST_COW_SIZE, &fields::MODULE_FORK_IN_PROGRESS, &fields::MODULE_FORK_LAST_COW_SIZE]);
}

pub(super) fn stats(ctx: &mut Ctx<'_>, text: &mut String) {
    let evicted_scripts = script::figures::figures(ctx).evicted;
    let (figures, clients) = (&ctx.host.figures, &ctx.host.clients);
    let rates = figures.rates();
    let kilobytes = |bytes: u64| format!("{:.2}", bytes as f64 / 1024.0);
    line(text, &fields::TOTAL_CONNECTIONS_RECEIVED, clients.accepted());
    // One that waits counts when its wait has ended.
    let waiting = clients.all().iter().filter(|client| client.is_blocked()).count() as u64;
    let processed = figures.sum_stats(|stats| stats.commands_processed.get()).saturating_sub(waiting);
    line(text, &fields::TOTAL_COMMANDS_PROCESSED, processed);
    line(text, &fields::INSTANTANEOUS_OPS_PER_SEC, rates.commands);
    line(text, &fields::TOTAL_NET_INPUT_BYTES, figures.sum_stats(|stats| stats.input_bytes.get()));
    line(text, &fields::TOTAL_NET_OUTPUT_BYTES, figures.sum_stats(|stats| stats.output_bytes.get()));
    zeros(text, &[&fields::TOTAL_NET_REPL_INPUT_BYTES, &fields::TOTAL_NET_REPL_OUTPUT_BYTES]);
    line(text, &fields::INSTANTANEOUS_INPUT_KBPS, kilobytes(rates.input_bytes));
    line(text, &fields::INSTANTANEOUS_OUTPUT_KBPS, kilobytes(rates.output_bytes));
    line(text, &fields::INSTANTANEOUS_INPUT_REPL_KBPS, "0.00");
    line(text, &fields::INSTANTANEOUS_OUTPUT_REPL_KBPS, "0.00");
    line(text, &fields::LONGEST_TURN_USEC, figures.max(|worker| worker.longest_turn_ns.get()) / 1000);
    line(text, &fields::LONGEST_TURN_CPU_USEC, figures.max(|worker| worker.longest_turn_cpu_ns.get()) / 1000);
    line(text, &fields::REJECTED_CONNECTIONS, clients.rejected());
    zeros(text, &[&fields::SYNC_FULL, &fields::SYNC_PARTIAL_OK, &fields::SYNC_PARTIAL_ERR]);
    line(text, &fields::EXPIRED_KEYS, figures.sum(|worker| worker.expired_keys.get()));
    // Expiration is an index: no due entry is left over, and no cycle has to be cut short.
    line(text, &fields::EXPIRED_STALE_PERC, "0.00");
    line(text, &fields::EXPIRED_TIME_CAP_REACHED_COUNT, 0);
    line(text, &fields::EVICTED_KEYS, figures.sum(|worker| worker.evicted_keys.get()));
    line(text, &fields::EVICTED_CLIENTS, clients.evicted());
    line(text, &fields::EVICTED_SCRIPTS, evicted_scripts);
    zeros(text, &[&fields::TOTAL_EVICTION_EXCEEDED_TIME, &fields::CURRENT_EVICTION_EXCEEDED_TIME]);
    line(text, &fields::KEYSPACE_HITS, figures.sum_stats(|stats| stats.keyspace_hits.get()));
    line(text, &fields::KEYSPACE_MISSES, figures.sum_stats(|stats| stats.keyspace_misses.get()));
    let pubsub = &ctx.host.pubsub;
    line(text, &fields::PUBSUB_CHANNELS, pubsub.count(Kind::Channel));
    line(text, &fields::PUBSUB_PATTERNS, pubsub.count(Kind::Pattern));
    line(text, &fields::PUBSUBSHARD_CHANNELS, pubsub.count(Kind::ShardChannel));
    zeros(
        text,
        &[
            &fields::LATEST_FORK_USEC,
            &fields::TOTAL_FORKS,
            &fields::MIGRATE_CACHED_SOCKETS,
            &fields::SLAVE_EXPIRES_TRACKED_KEYS,
            &fields::ACTIVE_DEFRAG_HITS,
            &fields::ACTIVE_DEFRAG_MISSES,
            &fields::ACTIVE_DEFRAG_KEY_HITS,
            &fields::ACTIVE_DEFRAG_KEY_MISSES,
            &fields::TOTAL_ACTIVE_DEFRAG_TIME,
            &fields::CURRENT_ACTIVE_DEFRAG_TIME,
        ],
    );
    let (keys, items, prefixes) = ctx.host.tracking.counts();
    line(text, &fields::TRACKING_TOTAL_KEYS, keys);
    line(text, &fields::TRACKING_TOTAL_ITEMS, items);
    line(text, &fields::TRACKING_TOTAL_PREFIXES, prefixes);
    line(text, &fields::UNEXPECTED_ERROR_REPLIES, 0);
    line(text, &fields::TOTAL_ERROR_REPLIES, figures.sum_stats(|stats| stats.error_replies.get()));
    line(text, &fields::DUMP_PAYLOAD_SANITIZATIONS, 0);
    line(text, &fields::TOTAL_READS_PROCESSED, figures.sum_stats(|stats| stats.reads.get()));
    line(text, &fields::TOTAL_WRITES_PROCESSED, figures.sum_stats(|stats| stats.writes.get()));
    zeros(text, &[&fields::IO_THREADED_READS_PROCESSED, &fields::IO_THREADED_WRITES_PROCESSED]);
    line(text, &fields::CLIENT_QUERY_BUFFER_LIMIT_DISCONNECTIONS, clients.query_limited());
    line(text, &fields::CLIENT_OUTPUT_BUFFER_LIMIT_DISCONNECTIONS, clients.output_limited());
    let denials = &ctx.host.login.log;
    line(text, &fields::ACL_ACCESS_DENIED_AUTH, denials.count(Reason::Login));
    line(text, &fields::ACL_ACCESS_DENIED_CMD, denials.count(Reason::Command));
    line(text, &fields::ACL_ACCESS_DENIED_KEY, denials.count(Reason::Key));
    line(text, &fields::ACL_ACCESS_DENIED_CHANNEL, denials.count(Reason::Channel));
    line(text, &fields::ACL_ACCESS_DENIED_TLS_CERT, denials.count(Reason::Certificate));
    line(text, &fields::ACL_ACCESS_DENIED_DB, denials.count(Reason::Database));
}

pub(super) fn replication(ctx: &mut Ctx<'_>, text: &mut String) {
    let role = ctx.host.find::<Arc<Role>>();
    let offset = role.map_or(0, |role| role.offset());
    match role.and_then(|role| Some((role, role.figures()?))) {
        Some((role, figures)) => replica(ctx, role, &figures, text),
        None => line(text, &fields::ROLE, "master"),
    }
    line(text, &fields::CONNECTED_SLAVES, 0);
    line(text, &fields::REPLICAS_WAITING_PSYNC, 0);
    line(text, &fields::MASTER_FAILOVER_STATE, "no-failover");
    line(text, &fields::MASTER_REPLID, crate::replication::history_id(ctx.host));
    let before = role.and_then(|role| role.histories().before);
    let (id, second) = before.map_or_else(|| ("0".repeat(40), -1), |(id, offset)| (id, offset as i64));
    line(text, &fields::MASTER_REPLID2, id);
    line(text, &fields::MASTER_REPL_OFFSET, offset);
    line(text, &fields::SECOND_REPL_OFFSET, second);
    zeros(
        text,
        &[
            &fields::REPL_BACKLOG_ACTIVE,
            &fields::REPL_BACKLOG_SIZE,
            &fields::REPL_BACKLOG_FIRST_BYTE_OFFSET,
            &fields::REPL_BACKLOG_HISTLEN,
        ],
    );
}

/// How far a copy is, in Valkey's figures: -1 bytes in all before the first one, and 0 where the primary sends the copy
/// while it makes it.
fn copy_progress(copied: Option<Copied>, text: &mut String) {
    let read = copied.map_or(0, |copied| copied.bytes);
    let total = copied.map_or(-1, |copied| copied.total.unwrap_or(0) as i64);
    let share = copied.and_then(|copied| copied.total).map_or(0.0, |total| percent(read, total));
    line(text, &fields::MASTER_SYNC_TOTAL_BYTES, total);
    line(text, &fields::MASTER_SYNC_READ_BYTES, read);
    line(text, &fields::MASTER_SYNC_LEFT_BYTES, total - read as i64);
    line(text, &fields::MASTER_SYNC_PERC, format_args!("{share:.2}"));
}

/// The lines of a replica, in Valkey's order.
fn replica(ctx: &Ctx<'_>, role: &Role, figures: &replication::role::Figures, text: &mut String) {
    let settings = ctx.host.configuration.current();
    let is_copying = figures.link == LinkState::Sync;
    let seconds = |time: Option<Duration>| time.map_or(-1, |time| time.as_secs() as i64);
    line(text, &fields::ROLE, "slave");
    line(text, &fields::MASTER_HOST, &figures.primary.host);
    line(text, &fields::MASTER_PORT, figures.primary.port);
    line(text, &fields::MASTER_LINK_STATUS, if figures.link == LinkState::Connected { "up" } else { "down" });
    line(text, &fields::MASTER_LAST_IO_SECONDS_AGO, seconds(figures.silent));
    line(text, &fields::MASTER_SYNC_IN_PROGRESS, u8::from(is_copying));
    line(text, &fields::SLAVE_READ_REPL_OFFSET, role.received());
    line(text, &fields::SLAVE_REPL_OFFSET, role.offset());
    zeros(text, &[&fields::REPLICAS_REPL_BUFFER_SIZE, &fields::REPLICAS_REPL_BUFFER_PEAK]);
    if is_copying {
        copy_progress(figures.copied, text);
        line(text, &fields::MASTER_SYNC_LAST_IO_SECONDS_AGO, seconds(figures.silent));
    }
    if let Some(down) = figures.down {
        line(text, &fields::MASTER_LINK_DOWN_SINCE_SECONDS, down.as_secs());
    }
    // A promoted server could not serve the other replicas, so Sentinel is not to choose this one.
    line(text, &fields::SLAVE_PRIORITY, 0);
    line(text, &fields::SLAVE_READ_ONLY, u8::from(settings.replica_read_only));
    line(text, &fields::REPLICA_ANNOUNCED, u8::from(settings.replica_announced));
}

pub(super) fn cpu(_ctx: &mut Ctx<'_>, text: &mut String) {
    let Some(cpu) = about::cpu_seconds() else { return };
    for (figure, seconds) in [
        (&fields::USED_CPU_SYS, cpu.system),
        (&fields::USED_CPU_USER, cpu.user),
        (&fields::USED_CPU_SYS_CHILDREN, cpu.system_children),
        (&fields::USED_CPU_USER_CHILDREN, cpu.user_children),
    ] {
        line(text, figure, format_args!("{seconds:.6}"));
    }
}

pub(super) fn cluster(_ctx: &mut Ctx<'_>, text: &mut String) {
    line(text, &fields::CLUSTER_ENABLED, 0);
}

pub(super) fn keyspace(ctx: &mut Ctx<'_>, text: &mut String) {
    for db in (0..).map(DbIndex) {
        let Some(space) = ctx.ks.space_of(db) else { break };
        let (keys, expires) = (ctx.ks.len(space), ctx.ks.expiring_len(space));
        if keys > 0 {
            let ttl = ctx.ks.average_ttl_ms(space).unwrap_or(0);
            let timed = ctx.ks.timed_len(space);
            let value = format!("keys={keys},expires={expires},avg_ttl={ttl},keys_with_volatile_items={timed}");
            line_of_family(text, &format!("db{}", db.0), value);
        }
    }
}
