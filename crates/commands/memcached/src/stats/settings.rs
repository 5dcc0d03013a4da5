//! `stats settings`, with the names of memcached and ARCUS.

use super::{line, yes};
use command::Ctx;

/// `stats settings`
pub fn lines(ctx: &mut Ctx<'_>) {
    let settings = ctx.host.configuration.current();
    line(ctx, "maxbytes", settings.maxmemory_bytes);
    line(ctx, "maxconns", settings.maxclients);
    line(ctx, "tcpport", settings.memcached_port);
    line(ctx, "udpport", 0);
    let inter = settings.bind.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    line(ctx, "sticky_limit", settings.arcus_sticky_bytes_max);
    line(ctx, "inter", if inter.is_empty() { "NULL" } else { &inter });
    line(ctx, "verbosity", verbosity(&settings));
    line(ctx, "oldest", 0);
    let policy = settings.policy_of_database(ctx.session.db.0);
    line(ctx, "evictions", if policy == config::EvictionPolicy::NoEviction { "off" } else { "on" });
    line(ctx, "domain_socket", "NULL");
    line(ctx, "growth_factor", "1.00");
    line(ctx, "chunk_size", 1);
    line(ctx, "num_threads", ctx.host.figures.worker_count());
    line(ctx, "stat_key_prefix", ":");
    line(ctx, "detail_enabled", yes(ctx.stats.outcomes.is_detailed()));
    line(ctx, "allow_detailed", "yes");
    line(ctx, "cas_enabled", "yes");
    line(ctx, "tcp_backlog", settings.tcp_backlog);
    line(ctx, "binding_protocol", "ascii");
    line(ctx, "shutdown_command", yes(settings.memcached_enable_shutdown));
    line(ctx, "auth_enabled_sasl", "yes");
    line(ctx, "auth_required_sasl", yes(!settings.requirepass.is_empty()));
    line(ctx, "auth_enabled_ascii", yes(!settings.requirepass.is_empty()));
    line(ctx, "item_size_max", settings.memcached_item_bytes_max);
    line(ctx, "key_size_max", settings.memcached_key_bytes_max);
    line(ctx, "flush_enabled", yes(settings.memcached_flush));
    line(ctx, "dump_enabled", "no");
    line(ctx, "slab_reassign", "no");
    line(ctx, "slab_automove", 0);
    line(ctx, "lru_crawler", "no");
    line(ctx, "lru_maintainer_thread", "no");
    line(ctx, "lru_segmented", "no");
    line(ctx, "track_sizes", "no");
    line(ctx, "ssl_enabled", yes(settings.memcached_tls));
    line(ctx, "max_list_size", settings.arcus_list_size_max);
    line(ctx, "max_set_size", settings.arcus_set_size_max);
    line(ctx, "max_map_size", settings.arcus_map_size_max);
    line(ctx, "max_btree_size", settings.arcus_btree_size_max);
    line(ctx, "max_element_bytes", settings.arcus_element_bytes_max);
    line(ctx, "max_stats_prefixes", crate::arcus::prefix::LISTED_MAX);
}

/// What `verbosity` has set.
fn verbosity(settings: &config::Settings) -> u8 {
    match settings.loglevel {
        config::LogLevel::Verbose => 1,
        config::LogLevel::Debug => 2,
        _ => 0,
    }
}
