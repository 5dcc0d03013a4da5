//! Several servers together. There is one alone so far, and what asks for more is refused.

use crate::directive::Directive;
use crate::inert::{Inert, check_hostname, check_ipv4, check_ipv6};

const INT_MAX: i64 = i32::MAX as i64;

const NO_REPLICATION: &str = "replication is not offered yet, and replicaof is refused";
const NO_CLUSTER: &str = "cluster mode is not offered yet, and cluster-enabled yes is refused";

pub(super) static REPLICATION: &[Directive] = &[
    Directive::refused(
        "replicaof",
        &["no one"],
        "",
        "replication is not offered yet, so this server would answer without the data of that primary",
    )
    .alias(&["slaveof"])
    .at_start(),
    Directive::refused(
        "min-replicas-to-write",
        &["0"],
        "0",
        "replication is not offered yet, so writes would be accepted without the replicas it asks for",
    )
    .alias(&["min-slaves-to-write"]),
    Directive::refused("import-mode", &["no"], "no", "expired keys are removed here, also during an import"),
    Directive::not_needed("min-replicas-max-lag", Inert::integer("10", 0, INT_MAX), NO_REPLICATION)
        .alias(&["min-slaves-max-lag"]),
    Directive::not_needed("primaryauth", Inert::text(""), NO_REPLICATION).alias(&["masterauth"]).sensitive(),
    Directive::not_needed("primaryuser", Inert::text(""), NO_REPLICATION).alias(&["masteruser"]),
    Directive::not_needed("replica-serve-stale-data", Inert::flag("yes"), NO_REPLICATION)
        .alias(&["slave-serve-stale-data"]),
    Directive::not_needed("replica-read-only", Inert::flag("yes"), NO_REPLICATION).alias(&["slave-read-only"]),
    Directive::not_needed("replica-priority", Inert::integer("100", 0, INT_MAX), NO_REPLICATION)
        .alias(&["slave-priority"]),
    Directive::not_needed("replica-announced", Inert::flag("yes"), NO_REPLICATION),
    Directive::not_needed("replica-announce-ip", Inert::text(""), NO_REPLICATION).alias(&["slave-announce-ip"]),
    Directive::not_needed("replica-announce-port", Inert::integer("0", 0, 65535), NO_REPLICATION)
        .alias(&["slave-announce-port"]),
    Directive::not_needed("replica-ignore-maxmemory", Inert::flag("yes"), NO_REPLICATION)
        .alias(&["slave-ignore-maxmemory"]),
    Directive::not_needed("replica-ignore-disk-write-errors", Inert::flag("no"), NO_REPLICATION),
    Directive::not_needed("replica-lazy-flush", Inert::flag("yes"), NO_REPLICATION).alias(&["slave-lazy-flush"]),
    Directive::not_needed("repl-diskless-sync", Inert::flag("yes"), NO_REPLICATION),
    Directive::not_needed("repl-diskless-sync-delay", Inert::integer("5", 0, INT_MAX), NO_REPLICATION),
    Directive::not_needed("repl-diskless-sync-max-replicas", Inert::integer("0", 0, INT_MAX), NO_REPLICATION),
    Directive::not_needed(
        "repl-diskless-load",
        Inert::choice("disabled", &["disabled", "on-empty-db", "swapdb", "flush-before-load"]),
        NO_REPLICATION,
    ),
    Directive::not_needed("repl-disable-tcp-nodelay", Inert::flag("no"), NO_REPLICATION),
    Directive::not_needed("repl-ping-replica-period", Inert::integer("10", 1, INT_MAX), NO_REPLICATION)
        .alias(&["repl-ping-slave-period"]),
    Directive::not_needed("repl-timeout", Inert::integer("60", 1, INT_MAX), NO_REPLICATION),
    Directive::not_needed("repl-backlog-size", Inert::size("10485760", 0, i64::MAX), NO_REPLICATION),
    Directive::not_needed("repl-backlog-ttl", Inert::integer("3600", 0, i64::MAX), NO_REPLICATION),
    Directive::not_needed("repl-mptcp", Inert::flag("no"), NO_REPLICATION),
    Directive::not_needed("dual-channel-replication-enabled", Inert::flag("no"), NO_REPLICATION),
    Directive::not_needed(
        "propagation-error-behavior",
        Inert::choice("ignore", &["ignore", "panic", "panic-on-replicas"]),
        NO_REPLICATION,
    ),
    Directive::always_refused("sentinel", "this program is a server; Redis Sentinel runs beside it"),
];

pub(super) static CLUSTER: &[Directive] = &[
    Directive::refused(
        "cluster-enabled",
        &["no"],
        "no",
        "cluster mode is not offered yet, so clients would find no slots",
    )
    .at_start(),
    Directive::not_needed("cluster-config-file", Inert::text("nodes.conf"), NO_CLUSTER),
    Directive::not_needed("cluster-config-save-behavior", Inert::choice("sync", &["sync", "best-effort"]), NO_CLUSTER),
    Directive::not_needed("cluster-databases", Inert::integer("1", 1, INT_MAX), NO_CLUSTER),
    Directive::not_needed("cluster-node-timeout", Inert::integer("15000", 0, i64::MAX), NO_CLUSTER),
    Directive::not_needed("cluster-port", Inert::integer("0", 0, 65535), NO_CLUSTER),
    Directive::not_needed("cluster-replica-validity-factor", Inert::integer("10", 0, INT_MAX), NO_CLUSTER)
        .alias(&["cluster-slave-validity-factor"]),
    Directive::not_needed("cluster-replica-no-failover", Inert::flag("no"), NO_CLUSTER)
        .alias(&["cluster-slave-no-failover"]),
    Directive::not_needed("cluster-migration-barrier", Inert::integer("1", 0, INT_MAX), NO_CLUSTER),
    Directive::not_needed("cluster-allow-replica-migration", Inert::flag("yes"), NO_CLUSTER),
    Directive::not_needed("cluster-require-full-coverage", Inert::flag("yes"), NO_CLUSTER),
    Directive::not_needed("cluster-allow-reads-when-down", Inert::flag("no"), NO_CLUSTER),
    Directive::not_needed("cluster-allow-pubsubshard-when-down", Inert::flag("yes"), NO_CLUSTER),
    Directive::not_needed("cluster-link-sendbuf-limit", Inert::size("0", 0, i64::MAX), NO_CLUSTER),
    Directive::not_needed("cluster-announce-ip", Inert::text(""), NO_CLUSTER),
    Directive::not_needed("cluster-announce-port", Inert::integer("0", 0, 65535), NO_CLUSTER),
    Directive::not_needed("cluster-announce-tls-port", Inert::integer("0", 0, 65535), NO_CLUSTER),
    Directive::not_needed("cluster-announce-bus-port", Inert::integer("0", 0, 65535), NO_CLUSTER),
    Directive::not_needed("cluster-announce-hostname", Inert::checked_text("", check_hostname), NO_CLUSTER),
    Directive::not_needed("cluster-announce-human-nodename", Inert::text(""), NO_CLUSTER),
    Directive::not_needed("cluster-announce-client-ipv4", Inert::checked_text("", check_ipv4), NO_CLUSTER),
    Directive::not_needed("cluster-announce-client-ipv6", Inert::checked_text("", check_ipv6), NO_CLUSTER),
    Directive::not_needed("cluster-announce-client-port", Inert::integer("0", 0, 65535), NO_CLUSTER),
    Directive::not_needed("cluster-announce-client-tls-port", Inert::integer("0", 0, 65535), NO_CLUSTER),
    Directive::not_needed(
        "cluster-preferred-endpoint-type",
        Inert::choice("ip", &["ip", "hostname", "unknown-endpoint"]),
        NO_CLUSTER,
    ),
    Directive::not_needed("cluster-blacklist-ttl", Inert::integer("60", i64::MIN, i64::MAX), NO_CLUSTER),
    Directive::not_needed("cluster-manual-failover-timeout", Inert::integer("5000", 1, INT_MAX), NO_CLUSTER),
    Directive::not_needed("cluster-slot-stats-enabled", Inert::flag("no"), NO_CLUSTER),
    Directive::not_needed("cluster-slot-migration-log-max-len", Inert::integer("1000", 0, i64::MAX), NO_CLUSTER),
    Directive::not_needed("slot-migration-max-failover-repl-bytes", Inert::size("0", -1, i64::MAX), NO_CLUSTER),
    Directive::not_needed("availability-zone", Inert::text(""), NO_CLUSTER),
];
