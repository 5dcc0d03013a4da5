//! What each section of INFO says. Names of fields are those of Redis and Valkey, which tools look for.

use super::{human, line};
use crate::about::{self, About};
use crate::{Configuration, Figures};
use base::DbIndex;
use command::Ctx;
use command::clients::Clients;
use std::sync::Arc;
use store::Store;

pub(super) fn server(ctx: &mut Ctx<'_>, text: &mut String) {
    let about = ctx.host.part::<About>();
    let settings = ctx.host.part::<Configuration>().current();
    let uptime = (ctx.now() - about.started_at).max(0) / 1000;
    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|it| it.display().to_string()).unwrap_or_default();
    line(text, "redis_version", about::REDIS_VERSION);
    line(text, "server_name", "onggi");
    line(text, "onggi_version", about::VERSION);
    line(text, "redis_mode", "standalone");
    line(text, "server_mode", "standalone");
    line(text, "os", about::operating_system());
    line(text, "arch_bits", usize::BITS);
    line(text, "process_id", std::process::id());
    line(text, "run_id", &about.run_id);
    line(text, "tcp_port", settings.port);
    line(text, "server_time_usec", ctx.now() * 1000);
    line(text, "uptime_in_seconds", uptime);
    line(text, "uptime_in_days", uptime / 86_400);
    line(text, "executable", path(&about.executable));
    line(text, "config_file", path(&about.config_file));
    line(text, "workers", ctx.host.part::<Arc<Figures>>().workers().len());
    line(text, "shards", ctx.host.part::<Arc<Store>>().shard_ids().len());
}

pub(super) fn clients(ctx: &mut Ctx<'_>, text: &mut String) {
    let clients = ctx.host.part::<Clients>();
    line(text, "connected_clients", clients.count());
    line(text, "cluster_connections", 0);
    line(text, "maxclients", clients.limit());
    line(text, "blocked_clients", 0);
    line(text, "tracking_clients", 0);
    line(text, "pubsub_clients", 0);
}

pub(super) fn memory(ctx: &mut Ctx<'_>, text: &mut String) {
    let use_now = crate::memory::MemoryNow::of(ctx);
    let settings = ctx.host.part::<Configuration>().current();
    let mut amount = |name: &str, bytes: u64| {
        line(text, name, bytes);
        line(text, &format!("{name}_human"), human(bytes));
    };
    amount("used_memory", use_now.used);
    if let Some(resident) = use_now.resident {
        amount("used_memory_rss", resident);
    }
    amount("used_memory_peak", use_now.peak);
    if let Some(system) = about::system_memory_bytes() {
        amount("total_system_memory", system);
    }
    amount("maxmemory", settings.maxmemory_bytes);
    line(text, "maxmemory_policy", settings.maxmemory_policy.word());
    line(text, "used_memory_peak_perc", format_args!("{:.2}%", percent(use_now.used, use_now.peak)));
    line(text, "used_memory_overhead", use_now.overhead());
    line(text, "used_memory_dataset", use_now.dataset());
    line(text, "used_memory_dataset_perc", format_args!("{:.2}%", percent(use_now.dataset(), use_now.used)));
    line(text, "used_memory_values", use_now.values);
    line(text, "used_memory_large_values", use_now.large);
    line(text, "used_memory_table", use_now.table);
    line(text, "used_memory_expiration_index", use_now.index);
    line(text, "mem_clients_normal", use_now.clients);
    if let Some(resident) = use_now.resident {
        line(text, "mem_fragmentation_ratio", format_args!("{:.2}", resident as f64 / use_now.used.max(1) as f64));
        line(text, "mem_fragmentation_bytes", resident as i64 - use_now.used as i64);
    }
    line(text, "mem_allocator", "onggi-pages");
    line(text, "active_defrag_running", 0);
    line(text, "lazyfree_pending_objects", 0);
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

pub(super) fn persistence(ctx: &mut Ctx<'_>, text: &mut String) {
    line(text, "durability", "none (memory only)");
    line(text, "loading", 0);
    line(text, "async_loading", 0);
    line(text, "rdb_changes_since_last_save", ctx.host.part::<Arc<Figures>>().sum(|worker| worker.changes.get()));
    line(text, "rdb_bgsave_in_progress", 0);
    line(text, "rdb_last_save_time", ctx.host.part::<About>().started_at / 1000);
    line(text, "rdb_last_bgsave_status", "ok");
    line(text, "rdb_saves", 0);
    line(text, "aof_enabled", 0);
    line(text, "aof_rewrite_in_progress", 0);
    line(text, "aof_rewrite_scheduled", 0);
    line(text, "aof_last_bgrewrite_status", "ok");
    line(text, "aof_last_write_status", "ok");
}

pub(super) fn stats(ctx: &mut Ctx<'_>, text: &mut String) {
    let figures = ctx.host.part::<Arc<Figures>>();
    let rates = figures.rates();
    let kilobytes = |bytes: u64| format!("{:.2}", bytes as f64 / 1024.0);
    line(text, "total_connections_received", ctx.host.part::<Clients>().accepted());
    line(text, "total_commands_processed", figures.sum_stats(|stats| stats.commands_processed.get()));
    line(text, "instantaneous_ops_per_sec", rates.commands);
    line(text, "total_net_input_bytes", figures.sum_stats(|stats| stats.input_bytes.get()));
    line(text, "total_net_output_bytes", figures.sum_stats(|stats| stats.output_bytes.get()));
    line(text, "instantaneous_input_kbps", kilobytes(rates.input_bytes));
    line(text, "instantaneous_output_kbps", kilobytes(rates.output_bytes));
    line(text, "rejected_connections", ctx.host.part::<Clients>().rejected());
    line(text, "sync_full", 0);
    line(text, "sync_partial_ok", 0);
    line(text, "sync_partial_err", 0);
    line(text, "expired_keys", figures.sum(|worker| worker.expired_keys.get()));
    line(text, "evicted_keys", figures.sum(|worker| worker.evicted_keys.get()));
    line(text, "evicted_clients", ctx.host.part::<Clients>().evicted());
    line(text, "keyspace_hits", figures.sum_stats(|stats| stats.keyspace_hits.get()));
    line(text, "keyspace_misses", figures.sum_stats(|stats| stats.keyspace_misses.get()));
    line(text, "pubsub_channels", 0);
    line(text, "pubsub_patterns", 0);
    line(text, "latest_fork_usec", 0);
    line(text, "total_forks", 0);
    line(text, "total_error_replies", figures.sum_stats(|stats| stats.error_replies.get()));
}

pub(super) fn replication(_ctx: &mut Ctx<'_>, text: &mut String) {
    line(text, "role", "master");
    line(text, "connected_slaves", 0);
    line(text, "master_repl_offset", 0);
    line(text, "repl_backlog_active", 0);
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
        let (keys, expiring) = (ctx.ks.len(space), ctx.ks.expiring_len(space));
        if keys > 0 {
            // The average time to live would need a walk over the entries, so it is not measured.
            line(text, &format!("db{}", db.0), format_args!("keys={keys},expires={expiring},avg_ttl=0"));
        }
    }
}
