//! What each section of INFO says. Names of fields are those of Redis and Valkey, which tools look for; fields that
//! stand for something this server has not (replicas, scripts, forks) are there when a tool reads them, and zero.

use super::{human, line};
use crate::about::{self, About};
use crate::memory::MemoryNow;
use crate::{Configuration, Figures};
use base::DbIndex;
use cmdlog::LogMode;
use command::Ctx;
use command::acl::Reason;
use command::clients::{ClientFlags, Clients};
use command::login::Login;
use command::pause::Pause;
use durability::{Durability, FlushStatus, LoadingStatus};
use push::{Kind, PubSub, Tracking};
use replication::{Copied, LinkState, Role};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::Store;
use store::gate::LoadProgress;

/// How often a second figures are sampled: what is left of a periodic tick.
const SAMPLES_PER_SECOND: u32 = 10;

/// Adds lines for what is not there, and so is zero.
fn zeros(text: &mut String, names: &[&str]) {
    names.iter().for_each(|name| line(text, name, 0));
}

pub(super) fn server(ctx: &mut Ctx<'_>, text: &mut String) {
    let about = ctx.host.part::<About>();
    let settings = ctx.host.part::<Configuration>().current();
    let uptime = (ctx.now() - about.started_at).max(0) / 1000;
    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|it| it.display().to_string()).unwrap_or_default();
    line(text, "redis_version", about::REDIS_VERSION);
    line(text, "server_name", "onggi");
    line(text, "onggi_version", about::VERSION);
    line(text, "redis_git_sha1", "00000000");
    line(text, "redis_git_dirty", 0);
    line(text, "redis_build_id", about::build_id());
    line(text, "redis_mode", "standalone");
    line(text, "server_mode", "standalone");
    line(text, "os", about::operating_system());
    line(text, "arch_bits", usize::BITS);
    line(text, "monotonic_clock", "CLOCK_MONOTONIC, durations by the processor's time stamp counter");
    line(text, "multiplexing_api", "epoll");
    line(text, "process_id", std::process::id());
    line(text, "process_supervised", "no");
    line(text, "run_id", &about.run_id);
    // As in Valkey, the port of TLS stands in for the other.
    line(text, "tcp_port", if settings.port == 0 { settings.tls_port } else { settings.port });
    line(text, "server_time_usec", ctx.now() * 1000);
    line(text, "uptime_in_seconds", uptime);
    line(text, "uptime_in_days", uptime / 86_400);
    line(text, "hz", SAMPLES_PER_SECOND);
    line(text, "configured_hz", SAMPLES_PER_SECOND);
    line(text, "executable", path(&about.executable));
    line(text, "config_file", path(&about.config_file));
    line(text, "io_threads_active", 0);
    line(text, "workers", ctx.host.part::<Arc<Figures>>().worker_count());
    line(text, "shards", ctx.host.part::<Arc<Store>>().shard_ids().len());
    listeners(&settings).iter().enumerate().for_each(|(number, shown)| line(text, &format!("listener{number}"), shown));
}

/// Where RESP clients connect, as Valkey shows it.
fn listeners(settings: &config::Settings) -> Vec<String> {
    let bind: String = settings.bind.iter().map(|address| format!(",bind={address}")).collect();
    let tcp = |name: &str, port: u16| (port != 0).then(|| format!("name={name}{bind},port={port}"));
    let unix = settings.unixsocket.as_ref().map(|path| format!("name=unix,bind={}", path.display()));
    [tcp("tcp", settings.port), unix, tcp("tls", settings.tls_port)].into_iter().flatten().collect()
}

pub(super) fn compression(ctx: &mut Ctx<'_>, text: &mut String) {
    let store = ctx.host.part::<Arc<Store>>();
    let (policy, settings) = (&store.compression, store.compression.settings());
    let (now, figures) = (store.memory.compressed(), &policy.figures);
    let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
    line(text, "compression", settings.codec.name());
    line(text, "compression_values", now.values);
    line(text, "compression_stored_bytes", now.stored_bytes);
    line(text, "compression_logical_bytes", now.logical_bytes);
    let pages = policy.leaf_pages();
    line(text, "compression_leaf_pages_bytes", pages.bytes);
    line(text, "compression_leaf_pages_gone_bytes", pages.gone_bytes);
    line(text, "compression_compressed_by_writes", read(&figures.compressed_on_write));
    line(text, "compression_compressed_in_background", read(&figures.compressed_by_pass));
    line(text, "compression_decompressed_in_background", read(&figures.decompressed_by_pass));
    let decompressed = read(&figures.decompressed) + policy.leaves_thawed();
    line(text, "compression_decompressed_for_commands", decompressed);
    line(text, "compression_in_vain", read(&figures.in_vain));
    line(text, "compression_skipped", read(&figures.skipped));
    line(text, "compression_classes_skipped", policy.resting_classes());
    let dictionaries = policy.dictionaries.list();
    line(text, "compression_dictionaries", dictionaries.len());
    line(text, "compression_dictionaries_in_use", policy.dictionaries_in_use().len());
    line(text, "compression_dictionary_bytes", dictionaries.iter().map(|found| found.content().len()).sum::<usize>());
    line(text, "compression_values_with_dictionary", store.memory.values_by_dictionary().values().sum::<u64>());
    line(text, "compression_cpu_usec", read(&figures.compressing_ns) / 1000);
    line(text, "compression_background_usec", read(&figures.passing_ns) / 1000);
    line(text, "compression_shards_to_visit", read(&figures.shards_left));
    line(text, "compression_rounds", read(&figures.passes));
}

pub(super) fn clients(ctx: &mut Ctx<'_>, text: &mut String) {
    let clients = ctx.host.part::<Clients>();
    let all = clients.all();
    let watched: Vec<usize> = all.iter().map(|client| client.watched()).filter(|keys| *keys > 0).collect();
    let largest =
        |bytes: fn(&command::clients::Held) -> usize| all.iter().map(|client| bytes(&client.held())).max().unwrap_or(0);
    line(text, "connected_clients", clients.count());
    line(text, "cluster_connections", 0);
    line(text, "maxclients", clients.limit());
    line(text, "client_recent_max_input_buffer", largest(|held| held.input_bytes));
    line(text, "client_recent_max_output_buffer", largest(|held| held.unsent_bytes));
    line(text, "blocked_clients", all.iter().filter(|client| client.is_blocked()).count());
    line(text, "tracking_clients", ctx.host.part::<Arc<Tracking>>().client_count());
    line(text, "pubsub_clients", all.iter().filter(|it| it.flags().contains(ClientFlags::SUBSCRIBER)).count());
    line(text, "watching_clients", watched.len());
    line(text, "clients_in_timeout_table", 0);
    line(text, "total_watched_keys", watched.iter().sum::<usize>());
    let awaited = &ctx.host.part::<Arc<Store>>().awaited_keys;
    line(text, "total_blocking_keys", awaited.keys());
    line(text, "total_blocking_keys_on_nokey", awaited.absent());
    let (now, pause) = (ctx.now(), ctx.host.part::<Pause>());
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
    line(text, "paused_reason", reason);
    line(text, "paused_actions", paused);
    line(text, "paused_timeout_milliseconds", pause.until(now).map_or(0, |until| until - now));
}

pub(super) fn memory(ctx: &mut Ctx<'_>, text: &mut String) {
    let scripts = script::figures::figures(ctx);
    let use_now = MemoryNow::of(ctx);
    let settings = ctx.host.part::<Configuration>().current();
    let resident = use_now.resident.unwrap_or(use_now.used);
    amount(text, "used_memory", use_now.used);
    amount(text, "used_memory_rss", resident);
    amount(text, "used_memory_peak", use_now.peak);
    line(text, "used_memory_peak_perc", format_args!("{:.2}%", percent(use_now.used, use_now.peak)));
    line(text, "used_memory_overhead", use_now.overhead());
    line(text, "used_memory_startup", use_now.base);
    line(text, "used_memory_dataset", use_now.dataset());
    line(text, "used_memory_dataset_perc", format_args!("{:.2}%", use_now.dataset_percent()));
    line(text, "used_memory_values", use_now.values);
    line(text, "used_memory_large_values", use_now.large);
    line(text, "used_memory_thawed", use_now.thawed);
    line(text, "used_memory_table", use_now.table);
    line(text, "used_memory_expiration_index", use_now.index);
    // Memory is taken from the system in pages and counted so: what is allocated is what is active.
    line(text, "allocator_allocated", use_now.used);
    line(text, "allocator_active", use_now.used);
    line(text, "allocator_resident", resident);
    line(text, "allocator_muzzy", 0);
    amount(text, "total_system_memory", about::system_memory_bytes().unwrap_or(0));
    // Scripts and functions share the Lua states of the workers.
    line(text, "used_memory_lua", scripts.states_bytes);
    line(text, "used_memory_vm_eval", scripts.states_bytes);
    line(text, "used_memory_lua_human", human(scripts.states_bytes as u64));
    line(text, "used_memory_scripts_eval", scripts.scripts_bytes);
    line(text, "number_of_cached_scripts", scripts.scripts);
    line(text, "number_of_functions", scripts.functions);
    line(text, "number_of_libraries", scripts.libraries);
    line(text, "used_memory_vm_functions", 0);
    amount(text, "used_memory_vm_total", scripts.states_bytes as u64);
    line(text, "used_memory_functions", scripts.libraries_bytes);
    amount(text, "used_memory_scripts", scripts.scripts_bytes.saturating_add(scripts.libraries_bytes) as u64);
    amount(text, "maxmemory", settings.maxmemory_bytes);
    line(text, "maxmemory_policy", settings.maxmemory_policy.word());
    line(text, "allocator_frag_ratio", "1.00");
    line(text, "allocator_frag_bytes", 0);
    line(text, "allocator_rss_ratio", format_args!("{:.2}", use_now.resident_ratio()));
    line(text, "allocator_rss_bytes", use_now.resident_excess());
    line(text, "rss_overhead_ratio", "1.00");
    line(text, "rss_overhead_bytes", 0);
    line(text, "mem_fragmentation_ratio", format_args!("{:.2}", use_now.resident_ratio()));
    line(text, "mem_fragmentation_bytes", use_now.resident_excess());
    zeros(
        text,
        &[
            "mem_not_counted_for_evict",
            "mem_replication_backlog",
            "mem_total_replication_buffers",
            "mem_replicas_repl_buffer",
            "mem_clients_slaves",
        ],
    );
    line(text, "mem_clients_normal", use_now.clients);
    zeros(text, &["mem_cluster_links", "mem_aof_buffer"]);
    line(text, "mem_allocator", "onggi-pages");
    zeros(text, &["active_defrag_running", "lazyfree_pending_objects", "lazyfreed_objects"]);
}

/// A number of bytes, and the same for people.
fn amount(text: &mut String, name: &str, bytes: u64) {
    line(text, name, bytes);
    line(text, &format!("{name}_human"), human(bytes));
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

/// Databases on disk.
pub(super) fn disk(ctx: &mut Ctx<'_>, text: &mut String) {
    let status = ctx.host.find::<Arc<Durability>>().and_then(|durability| durability.flush_status());
    let Some(FlushStatus { count, flushed, unflushed_bytes, error, databases, rows }) = status else {
        return line(text, "disk_databases", 0);
    };
    line(text, "disk_databases", databases);
    line(text, "disk_flushes", count);
    line(text, "disk_last_flush_status", ok_or_err(error.is_none()));
    line(text, "disk_flushed_lsn", flushed.0);
    line(text, "disk_unflushed_bytes", unflushed_bytes);
    line(text, "disk_table_bytes", rows.table_bytes);
    line(text, "disk_tables", rows.tables);
    line(text, "disk_memory_bytes", rows.memory_bytes);
    line(text, "disk_flushed_bytes", rows.flushed_bytes);
    line(text, "disk_written_bytes", rows.written_bytes);
    let amplification = rows.written_bytes as f64 / rows.flushed_bytes.max(1) as f64;
    line(text, "disk_write_amplification", format!("{amplification:.2}"));
    line(text, "disk_merges", rows.merges);
    line(text, "disk_row_reads", rows.reads);
    line(text, "disk_row_read_usec_per_read", rows.read_us / rows.reads.max(1));
}

/// Values that memory has no room for.
pub(super) fn tier(ctx: &mut Ctx<'_>, text: &mut String) {
    let tier = ctx.host.find::<Arc<Durability>>().and_then(|durability| durability.tier());
    let Some(figures) = tier.map(|tier| tier.figures()) else { return line(text, "tier_enabled", 0) };
    let counts = &ctx.host.part::<Arc<Store>>().tier_counts;
    line(text, "tier_enabled", 1);
    line(text, "tier_medium", "file");
    line(text, "tier_full", u8::from(figures.is_full));
    line(text, "tier_segments", figures.segments);
    line(text, "tier_missing_segments", figures.missing_segments);
    line(text, "tier_bytes", figures.bytes);
    line(text, "tier_live_bytes", figures.live_bytes);
    line(text, "tier_dead_bytes", figures.dead_bytes);
    line(text, "tier_pinned_bytes", figures.pinned_bytes);
    line(text, "tier_waiting_bytes", figures.waiting_bytes);
    line(text, "tier_demoted_values", counts.demoted.load(Ordering::Relaxed));
    line(text, "tier_promoted_values", counts.promoted.load(Ordering::Relaxed));
    line(text, "tier_appended_values", figures.appended_values);
    line(text, "tier_appended_bytes", figures.appended_bytes);
    line(text, "tier_cleaned_segments", figures.cleaned_segments);
    line(text, "tier_cleaning_bytes", figures.cleaning_bytes);
    line(text, "tier_read_values", figures.read_values);
    line(text, "tier_failed_reads", figures.failed_reads);
}

pub(super) fn persistence(ctx: &mut Ctx<'_>, text: &mut String) {
    let Some(durability) = ctx.host.find::<Arc<Durability>>() else {
        let changes = ctx.host.part::<Arc<Figures>>().sum(|worker| worker.changes.get());
        return memory_only(text, changes, ctx.host.part::<About>().started_at);
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
    let settings = ctx.host.part::<Configuration>().current();
    let running = |is_save: bool| status.running.as_ref().filter(|running| running.cause.is_save() == is_save);
    let (saving, rewriting) = (running(true), running(false));
    let any = status.running.as_ref();
    line(text, "durability", durability_of(&status, &settings));
    let is_aside = gate.is_some_and(|gate| gate.loads_aside());
    line(text, "loading", u8::from(loading.is_some() && !is_aside));
    line(text, "async_loading", u8::from(is_aside));
    line(text, "current_cow_peak", any.map_or(0, |running| running.extra_bytes_max));
    line(text, "current_cow_size", any.map_or(0, |running| running.extra_bytes));
    line(text, "current_cow_size_age", 0);
    line(text, "current_fork_perc", "0.00");
    line(text, "current_save_keys_processed", any.map_or(0, |running| running.keys_done));
    line(text, "current_save_keys_total", any.map_or(0, |running| running.keys_total));
    line(text, "rdb_changes_since_last_save", status.changes);
    line(text, "rdb_bgsave_in_progress", u8::from(saving.is_some()));
    line(text, "rdb_last_save_time", status.last_save_ms / 1000);
    line(text, "rdb_last_bgsave_status", ok_or_err(status.saves.failures == 0));
    line(text, "rdb_last_bgsave_time_sec", seconds(status.saves.last_seconds));
    line(text, "rdb_current_bgsave_time_sec", seconds(saving.map(|running| running.seconds)));
    line(text, "rdb_saves", status.saves.count);
    line(text, "rdb_last_cow_size", status.saves.last_extra_bytes);
    line(text, "rdb_last_load_keys_expired", 0);
    line(text, "rdb_last_load_keys_loaded", status.load.keys);
    let is_on = status.log.is_some() && !status.is_switching_on;
    line(text, "aof_enabled", u8::from(is_on));
    line(text, "aof_rewrite_in_progress", u8::from(rewriting.is_some()));
    line(text, "aof_rewrite_scheduled", u8::from(status.is_scheduled));
    line(text, "aof_last_rewrite_time_sec", seconds(status.rewrites.last_seconds));
    line(text, "aof_current_rewrite_time_sec", seconds(rewriting.map(|running| running.seconds)));
    line(text, "aof_last_bgrewrite_status", ok_or_err(status.rewrites.failures == 0));
    line(text, "aof_rewrites", status.rewrites.count);
    line(text, "aof_rewrites_consecutive_failures", status.rewrites.failures);
    let is_healthy = status.log.as_ref().is_none_or(|log| log.failure.is_none());
    line(text, "aof_last_write_status", ok_or_err(is_healthy));
    line(text, "aof_last_cow_size", status.rewrites.last_extra_bytes);
    zeros(text, &["module_fork_in_progress", "module_fork_last_cow_size"]);
    if let Some(log) = &status.log {
        line(text, "aof_current_size", log.current_size);
        line(text, "aof_base_size", log.base_size);
        line(text, "aof_pending_rewrite", 0);
        line(text, "aof_buffer_length", log.stats.pending_bytes);
        line(text, "aof_pending_bio_fsync", u8::from(log.stats.unsynced_bytes > 0));
        line(text, "aof_delayed_fsync", log.stats.delayed_syncs);
        line(text, "log_mode", appendfsync(log.mode));
        line(text, "log_window_ms", log.window_ms);
        line(text, "log_end", log.end);
        line(text, "log_durable", log.durable);
        line(text, "log_segments", log.stats.segments);
        line(text, "log_size", log.stats.size_bytes);
        line(text, "log_unsynced_bytes", log.stats.unsynced_bytes);
        line(text, "log_oldest_unsynced_ms", log.stats.oldest_unsynced_ms);
        line(text, "log_syncs", log.stats.syncs);
        line(text, "log_last_sync_usec", log.stats.last_sync_us);
        line(text, "log_longest_sync_usec", log.stats.sync_us_max);
        line(text, "log_failures", log.stats.failures);
        line(text, "log_failure", log.failure.as_ref().map_or("", |failure| failure.message.as_str()));
    }
    line(text, "rdb_file_saves", status.rdb.count);
    line(text, "rdb_file_last_status", ok_or_err(status.rdb.last_error.is_none()));
    line(text, "rdb_file_last_error", status.rdb.last_error.as_deref().unwrap_or_default());
    line(text, "rdb_file_last_time", status.rdb.last_ms.map_or(0, |ms| ms / 1000));
    line(text, "rdb_file_last_keys", status.rdb.last_keys);
    line(text, "rdb_file_last_size", status.rdb.last_bytes);
    line(text, "checkpoint_sets", status.sets);
    line(text, "checkpoint_bytes", status.set_bytes);
    line(text, "checkpoint_last_stall_usec", status.stall_us);
    // Every moment from then on can be restored, as far as the log was on.
    line(text, "restorable_since", status.restorable_since_ms.map_or(0, |ms| ms / 1000));
    line(text, "restorable", status.restorable(ctx.now()));
    line(text, "last_load_log_records", status.load.records);
    line(text, "last_load_ms", status.load.ms);
    if let Some(loading) = loading {
        let seconds = (ctx.now() - loading.since_ms).max(0) / 1000;
        let share = percent(loading.done_bytes, loading.total_bytes);
        let left = loading.total_bytes.saturating_sub(loading.done_bytes);
        let rate = loading.done_bytes / u64::try_from(seconds).unwrap_or(0).max(1);
        line(text, "loading_start_time", loading.since_ms / 1000);
        line(text, "loading_total_bytes", loading.total_bytes);
        line(text, "loading_rdb_used_mem", 0);
        line(text, "loading_loaded_bytes", loading.done_bytes);
        line(text, "loading_loaded_perc", format_args!("{share:.2}"));
        line(text, "loading_eta_seconds", left / rate.max(1));
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
    line(text, "durability", "none (memory only)");
    zeros(text, &["loading", "async_loading", "current_cow_peak", "current_cow_size", "current_cow_size_age"]);
    line(text, "current_fork_perc", "0.00");
    zeros(text, &["current_save_keys_processed", "current_save_keys_total"]);
    line(text, "rdb_changes_since_last_save", changes);
    line(text, "rdb_bgsave_in_progress", 0);
    line(text, "rdb_last_save_time", started_at / 1000);
    line(text, "rdb_last_bgsave_status", "ok");
    line(text, "rdb_last_bgsave_time_sec", -1);
    line(text, "rdb_current_bgsave_time_sec", -1);
    zeros(text, &["rdb_saves", "rdb_last_cow_size", "rdb_last_load_keys_expired", "rdb_last_load_keys_loaded"]);
    zeros(text, &["aof_enabled", "aof_rewrite_in_progress", "aof_rewrite_scheduled"]);
    line(text, "aof_last_rewrite_time_sec", -1);
    line(text, "aof_current_rewrite_time_sec", -1);
    line(text, "aof_last_bgrewrite_status", "ok");
    zeros(text, &["aof_rewrites", "aof_rewrites_consecutive_failures"]);
    line(text, "aof_last_write_status", "ok");
    zeros(text, &["aof_last_cow_size", "module_fork_in_progress", "module_fork_last_cow_size"]);
}

pub(super) fn stats(ctx: &mut Ctx<'_>, text: &mut String) {
    let evicted_scripts = script::figures::figures(ctx).evicted;
    let (figures, clients) = (ctx.host.part::<Arc<Figures>>(), ctx.host.part::<Clients>());
    let rates = figures.rates();
    let kilobytes = |bytes: u64| format!("{:.2}", bytes as f64 / 1024.0);
    line(text, "total_connections_received", clients.accepted());
    // One that waits counts when its wait has ended.
    let waiting = clients.all().iter().filter(|client| client.is_blocked()).count() as u64;
    let processed = figures.sum_stats(|stats| stats.commands_processed.get()).saturating_sub(waiting);
    line(text, "total_commands_processed", processed);
    line(text, "instantaneous_ops_per_sec", rates.commands);
    line(text, "total_net_input_bytes", figures.sum_stats(|stats| stats.input_bytes.get()));
    line(text, "total_net_output_bytes", figures.sum_stats(|stats| stats.output_bytes.get()));
    zeros(text, &["total_net_repl_input_bytes", "total_net_repl_output_bytes"]);
    line(text, "instantaneous_input_kbps", kilobytes(rates.input_bytes));
    line(text, "instantaneous_output_kbps", kilobytes(rates.output_bytes));
    line(text, "instantaneous_input_repl_kbps", "0.00");
    line(text, "instantaneous_output_repl_kbps", "0.00");
    line(text, "longest_turn_usec", figures.max(|worker| worker.longest_turn_ns.get()) / 1000);
    line(text, "longest_turn_cpu_usec", figures.max(|worker| worker.longest_turn_cpu_ns.get()) / 1000);
    line(text, "rejected_connections", clients.rejected());
    zeros(text, &["sync_full", "sync_partial_ok", "sync_partial_err"]);
    line(text, "expired_keys", figures.sum(|worker| worker.expired_keys.get()));
    // Expiration is an index: no due entry is left over, and no cycle has to be cut short.
    line(text, "expired_stale_perc", "0.00");
    line(text, "expired_time_cap_reached_count", 0);
    line(text, "evicted_keys", figures.sum(|worker| worker.evicted_keys.get()));
    line(text, "evicted_clients", clients.evicted());
    line(text, "evicted_scripts", evicted_scripts);
    zeros(text, &["total_eviction_exceeded_time", "current_eviction_exceeded_time"]);
    line(text, "keyspace_hits", figures.sum_stats(|stats| stats.keyspace_hits.get()));
    line(text, "keyspace_misses", figures.sum_stats(|stats| stats.keyspace_misses.get()));
    let pubsub = ctx.host.part::<Arc<PubSub>>();
    line(text, "pubsub_channels", pubsub.count(Kind::Channel));
    line(text, "pubsub_patterns", pubsub.count(Kind::Pattern));
    line(text, "pubsubshard_channels", pubsub.count(Kind::ShardChannel));
    zeros(
        text,
        &[
            "latest_fork_usec",
            "total_forks",
            "migrate_cached_sockets",
            "slave_expires_tracked_keys",
            "active_defrag_hits",
            "active_defrag_misses",
            "active_defrag_key_hits",
            "active_defrag_key_misses",
            "total_active_defrag_time",
            "current_active_defrag_time",
        ],
    );
    let (keys, items, prefixes) = ctx.host.part::<Arc<Tracking>>().counts();
    line(text, "tracking_total_keys", keys);
    line(text, "tracking_total_items", items);
    line(text, "tracking_total_prefixes", prefixes);
    line(text, "unexpected_error_replies", 0);
    line(text, "total_error_replies", figures.sum_stats(|stats| stats.error_replies.get()));
    line(text, "dump_payload_sanitizations", 0);
    line(text, "total_reads_processed", figures.sum_stats(|stats| stats.reads.get()));
    line(text, "total_writes_processed", figures.sum_stats(|stats| stats.writes.get()));
    zeros(text, &["io_threaded_reads_processed", "io_threaded_writes_processed"]);
    line(text, "client_query_buffer_limit_disconnections", clients.query_limited());
    line(text, "client_output_buffer_limit_disconnections", clients.output_limited());
    let denials = &ctx.host.part::<Login>().log;
    line(text, "acl_access_denied_auth", denials.count(Reason::Login));
    line(text, "acl_access_denied_cmd", denials.count(Reason::Command));
    line(text, "acl_access_denied_key", denials.count(Reason::Key));
    line(text, "acl_access_denied_channel", denials.count(Reason::Channel));
    line(text, "acl_access_denied_tls_cert", denials.count(Reason::Certificate));
    line(text, "acl_access_denied_db", denials.count(Reason::Database));
}

pub(super) fn replication(ctx: &mut Ctx<'_>, text: &mut String) {
    let role = ctx.host.find::<Arc<Role>>();
    let offset = role.map_or(0, |role| role.offset());
    match role.and_then(|role| Some((role, role.figures()?))) {
        Some((role, figures)) => replica(ctx, role, &figures, text),
        None => line(text, "role", "master"),
    }
    line(text, "connected_slaves", 0);
    line(text, "replicas_waiting_psync", 0);
    line(text, "master_failover_state", "no-failover");
    line(text, "master_replid", crate::replication::history_id(ctx.host));
    let before = role.and_then(|role| role.histories().before);
    let (id, second) = before.map_or_else(|| ("0".repeat(40), -1), |(id, offset)| (id, offset as i64));
    line(text, "master_replid2", id);
    line(text, "master_repl_offset", offset);
    line(text, "second_repl_offset", second);
    zeros(
        text,
        &["repl_backlog_active", "repl_backlog_size", "repl_backlog_first_byte_offset", "repl_backlog_histlen"],
    );
}

/// How far a copy is, in Valkey's figures: -1 bytes in all before the first one, and 0 where the primary sends the copy
/// while it makes it.
fn copy_progress(copied: Option<Copied>, text: &mut String) {
    let read = copied.map_or(0, |copied| copied.bytes);
    let total = copied.map_or(-1, |copied| copied.total.unwrap_or(0) as i64);
    let share = copied.and_then(|copied| copied.total).map_or(0.0, |total| percent(read, total));
    line(text, "master_sync_total_bytes", total);
    line(text, "master_sync_read_bytes", read);
    line(text, "master_sync_left_bytes", total - read as i64);
    line(text, "master_sync_perc", format_args!("{share:.2}"));
}

/// The lines of a replica, in Valkey's order.
fn replica(ctx: &Ctx<'_>, role: &Role, figures: &replication::role::Figures, text: &mut String) {
    let settings = ctx.host.part::<Configuration>().current();
    let is_copying = figures.link == LinkState::Sync;
    let seconds = |time: Option<Duration>| time.map_or(-1, |time| time.as_secs() as i64);
    line(text, "role", "slave");
    line(text, "master_host", &figures.primary.host);
    line(text, "master_port", figures.primary.port);
    line(text, "master_link_status", if figures.link == LinkState::Connected { "up" } else { "down" });
    line(text, "master_last_io_seconds_ago", seconds(figures.silent));
    line(text, "master_sync_in_progress", u8::from(is_copying));
    line(text, "slave_read_repl_offset", role.received());
    line(text, "slave_repl_offset", role.offset());
    zeros(text, &["replicas_repl_buffer_size", "replicas_repl_buffer_peak"]);
    if is_copying {
        copy_progress(figures.copied, text);
        line(text, "master_sync_last_io_seconds_ago", seconds(figures.silent));
    }
    if let Some(down) = figures.down {
        line(text, "master_link_down_since_seconds", down.as_secs());
    }
    // A promoted server could not serve the other replicas, so Sentinel is not to choose this one.
    line(text, "slave_priority", 0);
    line(text, "slave_read_only", u8::from(settings.replica_read_only));
    line(text, "replica_announced", u8::from(settings.replica_announced));
}

pub(super) fn cpu(_ctx: &mut Ctx<'_>, text: &mut String) {
    let Some(cpu) = about::cpu_seconds() else { return };
    for (name, seconds) in [
        ("used_cpu_sys", cpu.system),
        ("used_cpu_user", cpu.user),
        ("used_cpu_sys_children", cpu.system_children),
        ("used_cpu_user_children", cpu.user_children),
    ] {
        line(text, name, format_args!("{seconds:.6}"));
    }
}

pub(super) fn cluster(_ctx: &mut Ctx<'_>, text: &mut String) {
    line(text, "cluster_enabled", 0);
}

pub(super) fn keyspace(ctx: &mut Ctx<'_>, text: &mut String) {
    for db in (0..).map(DbIndex) {
        let Some(space) = ctx.ks.space_of(db) else { break };
        let (keys, expires) = (ctx.ks.len(space), ctx.ks.expiring_len(space));
        if keys > 0 {
            let ttl = ctx.ks.average_ttl_ms(space).unwrap_or(0);
            let timed = ctx.ks.timed_len(space);
            let value = format!("keys={keys},expires={expires},avg_ttl={ttl},keys_with_volatile_items={timed}");
            line(text, &format!("db{}", db.0), value);
        }
    }
}
