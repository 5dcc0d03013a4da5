//! `stats`: what tools and exporters read.

use crate::arcus::prefix;
use crate::get::END;
use crate::service::MEMCACHED_VERSION;
use crate::sweep::Sweeps;
use admin::{About, Configuration, Figures, about};
use arcus::Cluster;
use command::clients::Clients;
use command::{CommandTable, Ctx, Stop};
use std::fmt::Display;
use std::sync::Arc;
use store::Store;

/// The commands that `cmd_set` counts.
const STORING: [&str; 7] = ["set", "add", "replace", "append", "prepend", "cas", "ms"];

const UNKNOWN: Stop = Stop::error("ERROR");
const NO_STATISTICS: Stop = Stop::error("ERROR no matching stat");

/// `stats [reset]`
pub fn stats(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    match ctx.args.bytes(1) {
        None => general(ctx),
        Some(b"prefixes") => return prefix::statistics(ctx),
        Some(b"settings") => settings(ctx),
        Some(b"zookeeper") => zookeeper(ctx)?,
        Some(b"scrub") => scrub(ctx),
        Some(b"reset") => {
            admin::config_rows::reset_statistics(ctx);
            ctx.reply.text_line("RESET");
            return Ok(());
        }
        Some(_) => return Err(UNKNOWN),
    }
    ctx.reply.text_line(END);
    Ok(())
}

fn line(ctx: &mut Ctx<'_>, name: &str, value: impl Display) {
    ctx.reply.text_line(&format!("STAT {name} {value}"));
}

fn general(ctx: &mut Ctx<'_>) {
    let host = ctx.host;
    let (store, figures) = (host.part::<Arc<Store>>(), host.part::<Arc<Figures>>());
    let (clients, settings) = (host.part::<Clients>(), host.part::<Configuration>().current());
    let calls = |names: &[&str]| calls_of(ctx.host, names);
    let hits = figures.sum_stats(|stats| stats.keyspace_hits.get());
    let misses = figures.sum_stats(|stats| stats.keyspace_misses.get());
    let (gets, sets) = (calls(&["get", "gets", "mg"]), calls(&STORING));
    let (touches, flushes) = (calls(&["touch", "gat", "gats"]), calls(&["flush_all"]));
    let uptime = ctx.now().saturating_sub(host.part::<About>().started_at).max(0);
    let (items, _) = store.len(ctx.session.db);
    let cpu = about::cpu_seconds();
    line(ctx, "pid", std::process::id());
    line(ctx, "uptime", uptime.checked_div(1000).unwrap_or(0));
    line(ctx, "time", ctx.now().checked_div(1000).unwrap_or(0));
    line(ctx, "version", MEMCACHED_VERSION);
    line(ctx, "onggi_version", about::VERSION);
    line(ctx, "pointer_size", usize::BITS);
    if let Some(cpu) = cpu {
        line(ctx, "rusage_user", format_args!("{:.6}", cpu.user));
        line(ctx, "rusage_system", format_args!("{:.6}", cpu.system));
    }
    line(ctx, "max_connections", settings.maxclients);
    line(ctx, "curr_connections", clients.count());
    line(ctx, "total_connections", clients.accepted());
    line(ctx, "rejected_connections", clients.rejected());
    line(ctx, "cmd_get", gets);
    line(ctx, "cmd_set", sets);
    line(ctx, "cmd_flush", flushes);
    line(ctx, "cmd_touch", touches);
    // Of clients of every dialect: reads are counted where the data is.
    line(ctx, "get_hits", hits);
    line(ctx, "get_misses", misses);
    line(ctx, "bytes_read", figures.sum_stats(|stats| stats.input_bytes.get()));
    line(ctx, "bytes_written", figures.sum_stats(|stats| stats.output_bytes.get()));
    line(ctx, "limit_maxbytes", settings.maxmemory_bytes);
    line(ctx, "threads", figures.worker_count());
    line(ctx, "bytes", store.used_bytes());
    line(ctx, "curr_items", items);
    line(ctx, "evictions", figures.sum(|worker| worker.evicted_keys.get()));
}

/// Calls of these commands of memcached clients.
fn calls_of(host: &command::Host, names: &[&str]) -> u64 {
    let figures = host.part::<Arc<Figures>>();
    let rows = host.part::<Arc<CommandTable>>().rows().iter().zip(0u32..);
    let is_asked = |full: &str| full.strip_prefix("memcached|").is_some_and(|name| names.contains(&name));
    let calls = |index: u32| figures.sum_stats(|stats| stats.command(index).map_or(0, |command| command.calls.get()));
    rows.filter(|((name, _), _)| is_asked(name)).map(|(_, index)| calls(index)).fold(0, u64::saturating_add)
}

/// `stats zookeeper`, with the names of ARCUS.
fn zookeeper(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let figures = ctx.host.find::<Arc<Cluster>>().ok_or(NO_STATISTICS)?.figures();
    let settings = ctx.host.part::<Configuration>().current();
    line(ctx, "zk_timeout", settings.arcus_zookeeper_timeout_seconds.saturating_mul(1000));
    line(ctx, "zk_failstop", if settings.arcus_zkfailstop { "on" } else { "off" });
    line(ctx, "zk_connected", figures.is_connected);
    line(ctx, "zk_ready", figures.is_ready);
    line(ctx, "zk_service_code", figures.service.as_deref().unwrap_or("unknown"));
    line(ctx, "zk_cache_nodes", figures.nodes);
    Ok(())
}

/// `stats scrub`, with the names of ARCUS.
fn scrub(ctx: &mut Ctx<'_>) {
    let scrubbed = ctx.host.part::<Arc<Sweeps>>().scrubbed();
    let is_running = scrubbed.began.is_some() && scrubbed.ended.is_none();
    line(ctx, "scrubber:status", if is_running { "running" } else { "stopped" });
    if let (Some(began), Some(ended)) = (scrubbed.began, scrubbed.ended) {
        line(ctx, "scrubber:last_run", ended.saturating_sub(began).checked_div(1000).unwrap_or(0));
        line(ctx, "scrubber:visited", scrubbed.visited);
        line(ctx, "scrubber:cleaned", scrubbed.removed);
    }
}

fn settings(ctx: &mut Ctx<'_>) {
    let settings = ctx.host.part::<Configuration>().current();
    line(ctx, "maxbytes", settings.maxmemory_bytes);
    line(ctx, "maxconns", settings.maxclients);
    line(ctx, "tcpport", settings.memcached_port);
    line(ctx, "item_size_max", settings.memcached_item_bytes_max);
    line(ctx, "flush_enabled", if settings.memcached_flush { "yes" } else { "no" });
    line(ctx, "evictions", if settings.maxmemory_policy == config::EvictionPolicy::NoEviction { "off" } else { "on" });
    line(ctx, "cas_enabled", "yes");
    line(ctx, "num_threads", ctx.host.part::<Arc<Figures>>().worker_count());
    line(ctx, "auth_enabled_ascii", if settings.requirepass.is_empty() { "no" } else { "yes" });
}
