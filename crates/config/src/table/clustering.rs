//! Several servers together. There is one alone so far, and what asks for more is refused.

use crate::directive::Directive;

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
    Directive::not_needed("min-replicas-max-lag", NO_REPLICATION).alias(&["min-slaves-max-lag"]),
    Directive::not_needed("primaryauth", NO_REPLICATION).alias(&["masterauth"]).sensitive(),
    Directive::not_needed("primaryuser", NO_REPLICATION).alias(&["masteruser"]),
    Directive::not_needed("replica-serve-stale-data", NO_REPLICATION).alias(&["slave-serve-stale-data"]),
    Directive::not_needed("replica-read-only", NO_REPLICATION).alias(&["slave-read-only"]),
    Directive::not_needed("replica-priority", NO_REPLICATION).alias(&["slave-priority"]),
    Directive::not_needed("replica-announced", NO_REPLICATION),
    Directive::not_needed("replica-announce-ip", NO_REPLICATION).alias(&["slave-announce-ip"]),
    Directive::not_needed("replica-announce-port", NO_REPLICATION).alias(&["slave-announce-port"]),
    Directive::not_needed("replica-ignore-maxmemory", NO_REPLICATION).alias(&["slave-ignore-maxmemory"]),
    Directive::not_needed("replica-ignore-disk-write-errors", NO_REPLICATION),
    Directive::not_needed("replica-lazy-flush", NO_REPLICATION).alias(&["slave-lazy-flush"]),
    Directive::not_needed("repl-diskless-sync", NO_REPLICATION),
    Directive::not_needed("repl-diskless-sync-delay", NO_REPLICATION),
    Directive::not_needed("repl-diskless-sync-max-replicas", NO_REPLICATION),
    Directive::not_needed("repl-diskless-load", NO_REPLICATION),
    Directive::not_needed("repl-disable-tcp-nodelay", NO_REPLICATION),
    Directive::not_needed("repl-ping-replica-period", NO_REPLICATION).alias(&["repl-ping-slave-period"]),
    Directive::not_needed("repl-timeout", NO_REPLICATION),
    Directive::not_needed("repl-backlog-size", NO_REPLICATION),
    Directive::not_needed("repl-backlog-ttl", NO_REPLICATION),
    Directive::not_needed("repl-mptcp", NO_REPLICATION),
    Directive::not_needed("dual-channel-replication-enabled", NO_REPLICATION),
    Directive::not_needed("propagation-error-behavior", NO_REPLICATION),
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
    Directive::not_needed("cluster-config-file", NO_CLUSTER),
    Directive::not_needed("cluster-config-save-behavior", NO_CLUSTER),
    Directive::not_needed("cluster-databases", NO_CLUSTER),
    Directive::not_needed("cluster-node-timeout", NO_CLUSTER),
    Directive::not_needed("cluster-port", NO_CLUSTER),
    Directive::not_needed("cluster-replica-validity-factor", NO_CLUSTER).alias(&["cluster-slave-validity-factor"]),
    Directive::not_needed("cluster-replica-no-failover", NO_CLUSTER).alias(&["cluster-slave-no-failover"]),
    Directive::not_needed("cluster-migration-barrier", NO_CLUSTER),
    Directive::not_needed("cluster-allow-replica-migration", NO_CLUSTER),
    Directive::not_needed("cluster-require-full-coverage", NO_CLUSTER),
    Directive::not_needed("cluster-allow-reads-when-down", NO_CLUSTER),
    Directive::not_needed("cluster-allow-pubsubshard-when-down", NO_CLUSTER),
    Directive::not_needed("cluster-link-sendbuf-limit", NO_CLUSTER),
    Directive::not_needed("cluster-announce-ip", NO_CLUSTER),
    Directive::not_needed("cluster-announce-port", NO_CLUSTER),
    Directive::not_needed("cluster-announce-tls-port", NO_CLUSTER),
    Directive::not_needed("cluster-announce-bus-port", NO_CLUSTER),
    Directive::not_needed("cluster-announce-hostname", NO_CLUSTER),
    Directive::not_needed("cluster-announce-human-nodename", NO_CLUSTER),
    Directive::not_needed("cluster-announce-client-ipv4", NO_CLUSTER),
    Directive::not_needed("cluster-announce-client-ipv6", NO_CLUSTER),
    Directive::not_needed("cluster-announce-client-port", NO_CLUSTER),
    Directive::not_needed("cluster-announce-client-tls-port", NO_CLUSTER),
    Directive::not_needed("cluster-preferred-endpoint-type", NO_CLUSTER),
    Directive::not_needed("cluster-blacklist-ttl", NO_CLUSTER),
    Directive::not_needed("cluster-manual-failover-timeout", NO_CLUSTER),
    Directive::not_needed("cluster-slot-stats-enabled", NO_CLUSTER),
    Directive::not_needed("cluster-slot-migration-log-max-len", NO_CLUSTER),
    Directive::not_needed("slot-migration-max-failover-repl-bytes", NO_CLUSTER),
    Directive::not_needed("availability-zone", NO_CLUSTER),
];
