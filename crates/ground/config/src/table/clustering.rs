//! Several servers together: replicas of another server. What asks for replicas of this one, or for a cluster, is
//! refused.

use crate::directive::Directive;
use crate::field::{Field, choice, flag, integer, text};
use crate::inert::{Inert, check_hostname, check_ipv4, check_ipv6};

const INT_MAX: i64 = i32::MAX as i64;

const NO_REPLICATION: &str = "this server has no replicas of its own yet, and receives every copy into a file first";
const NO_CLUSTER: &str = "cluster mode is not offered yet, and cluster-enabled yes is refused";

pub(super) static REPLICATION: &[Directive] = &[
    Directive::supported(
        "replicaof",
        Field::Primary { get: |s| s.replicaof.as_ref(), set: |s, primary| s.replicaof = primary },
        "no one",
        "",
        "The primary, a Redis or Valkey server, whose data this server has: a copy first, and then every change. The \
         REPLICAOF command changes it while the server runs, and CONFIG REWRITE writes that down.",
    )
    .alias(&["slaveof"])
    .at_start(),
    Directive::supported(
        "primaryauth",
        Field::Secret { get: |s| &s.primaryauth, set: |s, secret| s.primaryauth = secret },
        "",
        "",
        "The password that the primary asks for. Empty for none. Takes effect with the next connection.",
    )
    .alias(&["masterauth"])
    .sensitive(),
    Directive::supported(
        "primaryuser",
        text!(primaryuser),
        "",
        "",
        "The user that logs in at the primary with `primaryauth`. Empty for the default user. Takes effect with the \
         next connection.",
    )
    .alias(&["masteruser"]),
    Directive::supported(
        "replica-read-only",
        flag!(replica_read_only),
        "yes",
        "",
        "Whether a replica refuses writes of its clients with READONLY. With `no`, what they write stays here, and the \
         data is no longer that of the primary.",
    )
    .alias(&["slave-read-only"]),
    Directive::supported(
        "replica-serve-stale-data",
        flag!(replica_serve_stale_data),
        "yes",
        "",
        "Whether a replica answers while it has no link to its primary. With `no`, commands on data get MASTERDOWN.",
    )
    .alias(&["slave-serve-stale-data"]),
    Directive::supported(
        "repl-diskless-load",
        choice!(repl_diskless_load: CopyLoad),
        "disabled",
        "",
        "Where a replica loads a copy that replaces its data. swapdb: next to the old data, which is served until the new \
         data takes its place at one moment; needs memory for both, and loads in place where there is a tier. disabled, \
         on-empty-db, flush-before-load: in place of the old data, and clients get LOADING meanwhile. Every copy is \
         received into a file first.",
    ),
    Directive::supported(
        "replica-ignore-maxmemory",
        flag!(replica_ignore_maxmemory),
        "yes",
        "",
        "With `yes` a replica evicts nothing: the primary evicts, and sends deletions.",
    )
    .alias(&["slave-ignore-maxmemory"]),
    Directive::supported(
        "replica-priority",
        integer!(replica_priority: 0, INT_MAX),
        "100",
        "",
        "By this number Sentinel chooses which replica becomes the primary: the lowest. 0 is never chosen. INFO shows \
         0 for now, because this server has no replicas of its own yet.",
    )
    .alias(&["slave-priority"]),
    Directive::supported(
        "replica-announced",
        flag!(replica_announced),
        "yes",
        "",
        "Whether Sentinel lists this replica to clients. INFO shows it.",
    ),
    Directive::supported(
        "replica-announce-ip",
        text!(replica_announce_ip),
        "",
        "",
        "The address by which the primary lists this replica. Empty for that of the connection. Takes effect with the \
         next connection.",
    )
    .alias(&["slave-announce-ip"]),
    Directive::supported(
        "replica-announce-port",
        integer!(replica_announce_port: 0, 65535),
        "0",
        "",
        "The port by which the primary lists this replica. 0 for `port`. Takes effect with the next connection.",
    )
    .alias(&["slave-announce-port"]),
    Directive::supported(
        "repl-timeout",
        integer!(repl_timeout_seconds: 1, INT_MAX),
        "60",
        "seconds",
        "After this long without a byte of the primary, a replica gives the connection up and opens another. Takes \
         effect with the next connection.",
    ),
    Directive::refused(
        "min-replicas-to-write",
        &["0"],
        "0",
        "this server has no replicas of its own yet, so writes would be accepted without the replicas it asks for",
    )
    .alias(&["min-slaves-to-write"]),
    Directive::refused("import-mode", &["no"], "no", "expired keys are removed here, also during an import"),
    Directive::not_needed("min-replicas-max-lag", Inert::integer("10", 0, INT_MAX), NO_REPLICATION)
        .alias(&["min-slaves-max-lag"]),
    Directive::not_needed("replica-ignore-disk-write-errors", Inert::flag("no"), NO_REPLICATION),
    Directive::not_needed("replica-lazy-flush", Inert::flag("yes"), NO_REPLICATION).alias(&["slave-lazy-flush"]),
    Directive::not_needed("repl-diskless-sync", Inert::flag("yes"), NO_REPLICATION),
    Directive::not_needed("repl-diskless-sync-delay", Inert::integer("5", 0, INT_MAX), NO_REPLICATION),
    Directive::not_needed("repl-diskless-sync-max-replicas", Inert::integer("0", 0, INT_MAX), NO_REPLICATION),
    Directive::not_needed("repl-disable-tcp-nodelay", Inert::flag("no"), NO_REPLICATION),
    Directive::not_needed("repl-ping-replica-period", Inert::integer("10", 1, INT_MAX), NO_REPLICATION)
        .alias(&["repl-ping-slave-period"]),
    Directive::not_needed("repl-backlog-size", Inert::size("10485760", 0, i64::MAX), NO_REPLICATION),
    Directive::not_needed("repl-backlog-ttl", Inert::integer("3600", 0, i64::MAX), NO_REPLICATION),
    Directive::not_needed("repl-mptcp", Inert::flag("no"), NO_REPLICATION),
    Directive::not_needed("dual-channel-replication-enabled", Inert::flag("no"), NO_REPLICATION),
    Directive::not_needed(
        "propagation-error-behavior",
        Inert::choice("ignore", &["ignore", "panic", "panic-on-replicas"]),
        NO_REPLICATION,
    ),
    Directive::always_refused("sentinel", "this program is a server; Redis Sentinel is another one"),
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
