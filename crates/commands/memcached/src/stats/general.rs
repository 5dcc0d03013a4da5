//! `stats`: the names of memcached, then those that ARCUS has besides.

use super::{line, zeros};
use crate::details::Details;
use crate::service::MEMCACHED_VERSION;
use crate::tally::{self, Op, Outcome};
use admin::about;
use command::{Ctx, Host};
use std::sync::Arc;
use store::Store;

/// The commands that `cmd_set` counts.
const STORING: [&str; 7] = ["set", "add", "replace", "append", "prepend", "cas", "ms"];

/// What a command counts under the names of ARCUS.
enum Counted {
    /// `_oks`
    Oks,
    /// `_misses`, `_hits`
    Keys,
    /// `_misses`, `_elem_hits`, `_none_hits`
    Elements,
}

/// The commands of ARCUS, by their names in rows and in statistics.
const COLLECTIONS: [(&str, Op, Counted); 29] = {
    use Counted::{Elements, Keys, Oks};
    [
        ("lop_create", Op::LopCreate, Oks),
        ("lop_insert", Op::LopInsert, Keys),
        ("lop_delete", Op::LopDelete, Elements),
        ("lop_get", Op::LopGet, Elements),
        ("sop_create", Op::SopCreate, Oks),
        ("sop_insert", Op::SopInsert, Keys),
        ("sop_delete", Op::SopDelete, Elements),
        ("sop_get", Op::SopGet, Elements),
        ("sop_exist", Op::SopExist, Keys),
        ("mop_create", Op::MopCreate, Oks),
        ("mop_insert", Op::MopInsert, Keys),
        ("mop_update", Op::MopUpdate, Elements),
        ("mop_delete", Op::MopDelete, Elements),
        ("mop_get", Op::MopGet, Elements),
        ("bop_create", Op::BopCreate, Oks),
        ("bop_insert", Op::BopInsert, Keys),
        ("bop_update", Op::BopUpdate, Elements),
        ("bop_delete", Op::BopDelete, Elements),
        ("bop_get", Op::BopGet, Elements),
        ("bop_count", Op::BopCount, Keys),
        ("bop_position", Op::BopPosition, Elements),
        ("bop_pwg", Op::BopPwg, Elements),
        ("bop_gbp", Op::BopGbp, Elements),
        ("bop_mget", Op::BopMget, Oks),
        ("bop_smget", Op::BopSmget, Oks),
        ("bop_incr", Op::BopIncr, Elements),
        ("bop_decr", Op::BopDecr, Elements),
        ("getattr", Op::GetAttr, Keys),
        ("setattr", Op::SetAttr, Keys),
    ]
};

/// `stats`
pub fn lines(ctx: &mut Ctx<'_>) {
    process(ctx);
    connections(ctx);
    commands(ctx);
    data(ctx);
    collections(ctx);
}

fn process(ctx: &mut Ctx<'_>) {
    let uptime = ctx.now().saturating_sub(ctx.host.about.started_at).max(0);
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
}

fn connections(ctx: &mut Ctx<'_>) {
    let (clients, settings) = (&ctx.host.clients, ctx.host.configuration.current());
    let (count, accepted, rejected) = (clients.count(), clients.accepted(), clients.rejected());
    let is_accepting = count < clients.limit();
    line(ctx, "max_connections", settings.maxclients);
    line(ctx, "curr_connections", count);
    line(ctx, "total_connections", accepted);
    line(ctx, "rejected_connections", rejected);
    line(ctx, "connection_structures", count);
    line(ctx, "daemon_connections", settings.bind.len());
    line(ctx, "quit_connections", calls(ctx.host, &["quit"]));
    line(ctx, "reject_connections", rejected);
    line(ctx, "accepting_conns", u8::from(is_accepting));
    zeros(ctx, &["listen_disabled_num", "time_in_listen_disabled_us", "conn_yields"]);
    line(ctx, "threads", ctx.host.figures.worker_count());
}

fn commands(ctx: &mut Ctx<'_>) {
    let host = ctx.host;
    let sets = calls(host, &STORING);
    line(ctx, "cmd_get", calls(host, &["get", "gets", "mg"]));
    line(ctx, "cmd_set", sets);
    line(ctx, "cmd_flush", calls(host, &["flush_all"]));
    line(ctx, "cmd_touch", calls(host, &["touch", "gat", "gats"]));
    line(ctx, "cmd_meta", calls(host, &["mg", "ms", "md", "ma", "me", "mn"]));
    // Of clients of every dialect: reads are counted where the data is.
    let figures = &host.figures;
    line(ctx, "get_hits", figures.sum_stats(|stats| stats.keyspace_hits.get()));
    line(ctx, "get_misses", figures.sum_stats(|stats| stats.keyspace_misses.get()));
    zeros(ctx, &["get_expired", "get_flushed"]);
    for (name, op) in
        [("delete", Op::Delete), ("incr", Op::Incr), ("decr", Op::Decr), ("cas", Op::Cas), ("touch", Op::Touch)]
    {
        line(ctx, &format!("{name}_misses"), count(host, op, Outcome::Miss));
        line(ctx, &format!("{name}_hits"), count(host, op, Outcome::Hit));
    }
    line(ctx, "cas_badval", count(host, Op::Cas, Outcome::None));
    let logins = count(host, Op::Auth, Outcome::Hit).saturating_add(count(host, Op::Auth, Outcome::Miss));
    line(ctx, "auth_cmds", logins);
    line(ctx, "cmd_auth", logins);
    line(ctx, "auth_errors", count(host, Op::Auth, Outcome::Miss));
    line(ctx, "total_items", sets);
}

fn data(ctx: &mut Ctx<'_>) {
    let host = ctx.host;
    let (store, figures) = (host.part::<crate::Needed, Arc<Store>>(), &host.figures);
    let settings = host.configuration.current();
    let (items, _) = store.len(ctx.session.db);
    let refused = refused_for_memory(host);
    line(ctx, "bytes_read", figures.sum_stats(|stats| stats.input_bytes.get()));
    line(ctx, "bytes_written", figures.sum_stats(|stats| stats.output_bytes.get()));
    line(ctx, "limit_maxbytes", settings.maxmemory_bytes);
    line(ctx, "engine_maxbytes", settings.maxmemory_bytes);
    line(ctx, "bytes", store.used_bytes());
    line(ctx, "curr_items", items);
    line(ctx, "evictions", figures.sum(|worker| worker.evicted_keys.get()));
    let (op, outcome) = tally::TOO_LARGE;
    line(ctx, "store_too_large", count(host, op, outcome));
    line(ctx, "store_no_memory", refused);
    line(ctx, "outofmemorys", refused);
    zeros(
        ctx,
        &[
            "hash_is_expanding",
            "slabs_moved",
            "malloc_fails",
            "expired_unfetched",
            "evicted_unfetched",
            "evicted_active",
            "reclaimed",
            "crawler_reclaimed",
            "crawler_items_checked",
            "lrutail_reflocked",
            "moves_to_cold",
            "moves_to_warm",
            "moves_within_lru",
            "direct_reclaims",
        ],
    );
}

/// What ARCUS has besides.
fn collections(ctx: &mut Ctx<'_>) {
    let host = ctx.host;
    for name in ["incr", "decr", "delete", "cas", "flush_prefix"] {
        line(ctx, &format!("cmd_{name}"), calls(host, &[name]));
    }
    for (name, ..) in COLLECTIONS {
        line(ctx, &format!("cmd_{name}"), calls(host, &[name]));
    }
    for (name, op, counted) in COLLECTIONS {
        let mut show = |suffix: &str, outcome| line(ctx, &format!("{name}_{suffix}"), count(host, op, outcome));
        match counted {
            Counted::Oks => show("oks", Outcome::Hit),
            Counted::Keys => {
                show("misses", Outcome::Miss);
                // `sop exist` of a member that is not there has found its set.
                let hits = count(host, op, Outcome::Hit).saturating_add(count(host, op, Outcome::None));
                line(ctx, &format!("{name}_hits"), hits);
            }
            Counted::Elements => {
                show("misses", Outcome::Miss);
                show("elem_hits", Outcome::Hit);
                show("none_hits", Outcome::None);
            }
        }
    }
    let (items, bytes) = host.part::<crate::Needed, Arc<Store>>().memory.sticky();
    line(ctx, "sticky_items", items);
    line(ctx, "sticky_bytes", bytes);
    line(ctx, "sticky_limit", host.configuration.current().arcus_sticky_bytes_max);
    line(ctx, "stat_prefixes", host.part::<crate::Needed, Arc<Details>>().prefix_count());
}

/// Writes that were refused since memory is full.
pub(super) fn refused_for_memory(host: &Host) -> u64 {
    let figures = &host.figures;
    figures.sum_stats(|stats| stats.errors().get(&b"OOM"[..]).copied().unwrap_or(0))
}

/// The outcomes of a command of all workers.
pub(super) fn count(host: &Host, op: Op, outcome: Outcome) -> u64 {
    host.figures.sum_stats(|stats| tally::get(stats, op, outcome))
}

/// Calls of these commands of memcached clients.
pub(super) fn calls(host: &Host, names: &[&str]) -> u64 {
    let figures = &host.figures;
    let rows = host.table.rows().iter().zip(0u32..);
    let is_asked = |full: &str| full.strip_prefix("memcached|").is_some_and(|name| names.contains(&name));
    let calls = |index: u32| figures.sum_stats(|stats| stats.command(index).map_or(0, |command| command.calls.get()));
    rows.filter(|((name, _), _)| is_asked(name)).map(|(_, index)| calls(index)).fold(0, u64::saturating_add)
}
