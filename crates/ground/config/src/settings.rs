//! The values themselves, as plain fields: what reads them looks nothing up.

use crate::inert::InertValues;
use crate::syntax::quote;
use crate::{
    Address, AppendFsync, ChannelDefault, CompressionCodec, CompressionTime, CopyLoad, Databases, DebugCommand,
    EndFlags, EvictionPolicy, LogErrorAction, LogFormat, LogLevel, LogTime, MemoryShare, OutputLimits, PasswordHash,
    PrimaryAddress, SavePoints, Secret, SsdbNamespaces, Supervision, TierMedium, TierPolicy, TlsAuthClients,
    TlsClientUser,
};
use std::path::PathBuf;

/// A line of `user`.
#[derive(Clone, PartialEq, Eq)]
pub struct UserLine {
    /// The name and the rules.
    pub words: Vec<Vec<u8>>,
}

impl UserLine {
    /// The name.
    pub fn name(&self) -> &[u8] {
        self.words.first().map(Vec::as_slice).unwrap_or_default()
    }

    /// The rules.
    pub fn rules(&self) -> &[Vec<u8>] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The words as a file has them.
    pub(crate) fn to_text(&self) -> String {
        let is_plain = |word: &[u8]| {
            !word.is_empty() && word.iter().all(|byte| byte.is_ascii_graphic() && !b"\"'\\".contains(byte))
        };
        let shown = |word: &Vec<u8>| match is_plain(word) {
            true => String::from_utf8_lossy(word).into_owned(),
            false => quote(word),
        };
        self.words.iter().map(shown).collect::<Vec<_>>().join(" ")
    }
}

/// Its rules may hold a password.
impl std::fmt::Debug for UserLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UserLine({:?}, ..)", String::from_utf8_lossy(self.name()))
    }
}

/// Declares [`Settings`], its blank state and the number of its fields (a test compares that with the table).
macro_rules! settings {
    ($($(#[$doc:meta])+ $field:ident: $type:ty,)*) => {
        /// The value of every supported directive. A field is named after its directive, with its unit.
        ///
        /// The server keeps one in its own kind of shared pointer; [`crate::Change`] makes the next one.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $($(#[$doc])+ pub $field: $type,)*
            /// What was set of the directives that have no effect.
            pub inert: InertValues,
            /// `user`: the users of the file, with their rules. Not kept up to date: users change by other commands.
            pub users: Vec<UserLine>,
        }

        impl Settings {
            /// How many fields there are: one for each supported row.
            #[cfg(test)]
            pub(crate) const FIELD_COUNT: usize = [$(stringify!($field)),*].len();

            /// Every field empty; not a state a server may run with.
            pub(crate) fn blank() -> Self {
                Self { $($field: <$type>::default(),)* inert: InertValues::default(), users: Vec::new() }
            }
        }
    };
}

settings! {
    /// `port`: where TCP connections are accepted; 0 for none.
    port: u16,
    /// `bind`: the addresses for TCP; empty for none.
    bind: Vec<Address>,
    /// `protected-mode`: whether clients of other hosts are refused while no password is set.
    protected_mode: bool,
    /// `tls-port`: where TLS connections are accepted; 0 for none.
    tls_port: u16,
    /// `tls-replication`: whether connections to other servers use TLS.
    tls_replication: bool,
    /// `tls-cert-file`: the certificate of the server, with its chain.
    tls_cert_file: Option<PathBuf>,
    /// `tls-key-file`: its private key.
    tls_key_file: Option<PathBuf>,
    /// `tls-client-cert-file`: the certificate shown to other servers; without it, that of the server.
    tls_client_cert_file: Option<PathBuf>,
    /// `tls-client-key-file`: its private key.
    tls_client_key_file: Option<PathBuf>,
    /// `tls-key-file-pass`: the passphrase of that of the server; empty for none.
    tls_key_file_pass: Secret,
    /// `tls-client-key-file-pass`: that of the key shown to other servers.
    tls_client_key_file_pass: Secret,
    /// `tls-auto-reload-interval`: seconds between looks at the files; 0 for none.
    tls_auto_reload_interval_seconds: u64,
    /// `tls-ca-cert-file`: the CAs that sign certificates of clients and other servers.
    tls_ca_cert_file: Option<PathBuf>,
    /// `tls-ca-cert-dir`: a directory of such files.
    tls_ca_cert_dir: Option<PathBuf>,
    /// `tls-auth-clients`: whether clients need a certificate.
    tls_auth_clients: TlsAuthClients,
    /// `tls-auth-clients-user`: which name in a client's certificate is its user.
    tls_auth_clients_user: TlsClientUser,
    /// `tls-protocols`: the versions offered; empty for all.
    tls_protocols: String,
    /// `tls-ciphers`: the suites of TLS 1.2, as OpenSSL names them; empty for all.
    tls_ciphers: String,
    /// `tls-ciphersuites`: the suites of TLS 1.3; empty for all.
    tls_ciphersuites: String,
    /// `tls-prefer-server-ciphers`: whether the server's order of suites counts, and not the client's.
    tls_prefer_server_ciphers: bool,
    /// `tls-session-caching`: whether clients may resume sessions.
    tls_session_caching: bool,
    /// `memcached-tls`: whether memcached clients use TLS.
    memcached_tls: bool,
    /// `ssdb-tls`: whether clients of SSDB use TLS.
    ssdb_tls: bool,
    /// `memcached-port`: where memcached clients are accepted; 0 for none.
    memcached_port: u16,
    /// `http-port`: port of the page and the metrics; 0 opens none.
    http_port: u16,
    /// `http-bind`: its addresses; empty for none.
    http_bind: Vec<Address>,
    /// `http-tls`: whether the page and the metrics are served over TLS.
    http_tls: bool,
    /// `http-token-file`: the tokens that log in to them; none without one.
    http_token_file: Option<PathBuf>,
    /// `otlp-endpoint`: the URL that figures are sent to; empty for none.
    otlp_endpoint: String,
    /// `otlp-interval`: seconds from one sending to the next.
    otlp_interval_seconds: u32,
    /// `otlp-headers`: what is sent with each; `NAME=VALUE`, separated by commas.
    otlp_headers: Secret,
    /// `otlp-ca-cert-file`: the CAs that sign the certificate of an `https` endpoint.
    otlp_ca_cert_file: Option<PathBuf>,
    /// `tier-dir`: where values go that memory has no room for; none without one.
    tier_dir: Option<PathBuf>,
    /// `tier-max-bytes`: bytes of the tier's files, at most; 0 for no limit.
    tier_max_bytes: u64,
    /// `tier-retain-max-bytes`: bytes of dead segments that old checkpoints may keep; 0 for no limit.
    tier_retain_bytes_max: u64,
    /// `tier-policy`: when values go to the tier.
    tier_policy: TierPolicy,
    /// `tier-medium`: what the tier is made of.
    tier_medium: TierMedium,
    /// `tier-read-delay-ns`: what a read of a mapped segment takes in addition.
    tier_read_delay_ns: u32,
    /// `tier-write-delay-ns`: what 256 bytes written to one take in addition.
    tier_write_delay_ns: u32,
    /// `tier-scrub-interval`: seconds between two reads of the whole tier; 0 for none.
    tier_scrub_seconds: u64,
    /// `tier-min-value-size`: the shortest value that goes there.
    tier_value_bytes_min: u64,
    /// `ssdb-port`: where clients of SSDB's protocol are accepted; 0 for none.
    ssdb_port: u16,
    /// `ssdb-database`: the database that they use; -1 for the first on disk, or 0 without one.
    ssdb_database: i32,
    /// `ssdb-namespaces`: whether their keys, hashes, zsets and queues have a database each.
    ssdb_namespaces: SsdbNamespaces,
    /// `memcached-database`: the database that they use.
    memcached_database: u32,
    /// `memcached-flush`: whether they may remove all entries of it.
    memcached_flush: bool,
    /// `memcached-item-size-max`: the longest data of an item.
    memcached_item_bytes_max: u64,
    /// `memcached-key-size-max`: their longest key.
    memcached_key_bytes_max: u64,
    /// `memcached-enable-shutdown`: whether they may end the server.
    memcached_enable_shutdown: bool,
    /// `arcus-zookeeper`: the servers of ZooKeeper that know the node's cluster; empty for none.
    arcus_zookeeper: String,
    /// `arcus-zookeeper-timeout`: seconds of silence after which they end its session.
    arcus_zookeeper_timeout_seconds: u32,
    /// `arcus-zkfailstop`: whether the server ends when its session has expired.
    arcus_zkfailstop: bool,
    /// `arcus-join`: whether the node joins its cluster at a start.
    arcus_join: bool,
    /// `arcus-sticky-limit`: what sticky items may take; 0 for no such items.
    arcus_sticky_bytes_max: u64,
    /// `arcus-max-list-size`: the most elements of a list of an ARCUS client.
    arcus_list_size_max: u32,
    /// `arcus-max-set-size`: the most elements of a set.
    arcus_set_size_max: u32,
    /// `arcus-max-map-size`: the most elements of a map.
    arcus_map_size_max: u32,
    /// `arcus-max-btree-size`: the most elements of a b+tree.
    arcus_btree_size_max: u32,
    /// `arcus-max-element-bytes`: the longest element, with its line end.
    arcus_element_bytes_max: u64,
    /// `arcus-public-ip`: the address that clients are to use; empty for the host's own.
    arcus_public_ip: String,
    /// `unixsocket`: the path of the socket file, if there is one.
    unixsocket: Option<PathBuf>,
    /// `unixsocketperm`: the permission bits of the socket file.
    unixsocketperm: u32,
    /// `tcp-backlog`: connections the kernel may hold before they are accepted.
    tcp_backlog: u32,
    /// `tcp-keepalive`: seconds of silence before the kernel probes a peer; 0 for never.
    tcp_keepalive_seconds: u32,
    /// `timeout`: seconds after which an idle client is closed; 0 for never.
    timeout_seconds: u32,
    /// `workers`: threads that serve connections; 0 for one for each core.
    workers: u32,
    /// `shards`: slices of the keyspace, a power of two; 0 leaves it to the number of workers.
    shards: u32,
    /// `databases`: how many there are.
    databases: u32,
    /// `database`: where each keeps its entries, and what is evicted of it.
    per_database: Databases,
    /// `dir`: the data directory, as given.
    dir: PathBuf,
    /// `dir-must-hold-data`: whether a directory without data is refused.
    dir_must_hold_data: bool,
    /// `ignore-foreign-files`: whether the server starts in a directory with another server's files.
    ignore_foreign_files: bool,
    /// `dbfilename`: the name of the RDB file that BGSAVE RDB makes there.
    rdb_file: PathBuf,

    /// `requirepass`: the password of the default user; empty for none.
    requirepass: Secret,
    /// `aclfile`: the file that users are kept in, if they are.
    acl_file: Option<PathBuf>,
    /// `acl-password-hash`: how new passwords are kept.
    acl_password_hash: PasswordHash,
    /// `acl-pubsub-default`: the channels of a new user.
    acl_pubsub_default: ChannelDefault,
    /// `acllog-max-len`: entries that ACL LOG keeps.
    acl_log_entries_max: u64,
    /// `sandbox`: whether the process gives up other programs and files.
    sandbox: bool,
    /// `sandbox-allow-path`: files that it may use besides, separated by blanks.
    sandbox_allow_path: String,
    /// `enable-debug-command`: which clients may use DEBUG.
    enable_debug_command: DebugCommand,

    /// `maxclients`: connections at once.
    maxclients: u32,
    /// `maxclients-reserve`: how many of them are kept for connections over loopback and the unix socket.
    maxclients_reserve: u32,
    /// `login-timeout`: seconds a connection has for its first command; 0 for no limit.
    login_timeout_seconds: u32,
    /// `login-max-clients`: connections that have not authenticated.
    login_clients_max: u32,
    /// `login-max-arguments`: arguments of a request before authentication.
    login_arguments_max: u32,
    /// `login-max-bulk-len`: bytes of an argument before authentication.
    login_bulk_bytes_max: u64,
    /// `proto-max-arguments`: arguments of a request.
    proto_arguments_max: u32,
    /// `proto-max-bulk-len`: bytes of an argument.
    proto_bulk_bytes_max: u64,
    /// `proto-max-inline-len`: bytes of an inline command.
    proto_inline_bytes_max: u64,
    /// `client-query-buffer-limit`: received bytes of one client that are not executed yet.
    client_query_buffer_bytes_max: u64,
    /// `client-transaction-limit`: bytes of the commands one client may queue by MULTI.
    client_transaction_bytes_max: u64,
    /// `client-output-buffer-pause`: unsent bytes above which requests of a client are no longer read.
    client_output_pause_bytes: u64,
    /// `client-output-buffer-limit`: when a client that does not read is closed.
    client_output_limits: OutputLimits,
    /// `maxmemory-clients`: memory of all clients together; zero bytes mean the automatic limit.
    maxmemory_clients: MemoryShare,
    /// `tracking-table-max-keys`: keys remembered for clients that cache; 0 for no limit.
    tracked_keys_max: u64,
    /// `notify-keyspace-events`: letters of the events that are published.
    keyspace_events: String,

    /// `maxmemory`: the budget; 0 for none.
    maxmemory_bytes: u64,
    /// `maxmemory-policy`: what is evicted when it is used up.
    maxmemory_policy: EvictionPolicy,
    /// `lfu-log-factor`: how slowly the frequency counter grows.
    lfu_log_factor: u32,
    /// `lfu-decay-time`: minutes after which the frequency counter loses one; 0 for never.
    lfu_decay_minutes: u32,

    /// `compression`: how strings are compressed.
    compression: CompressionCodec,
    /// `compression-level`: the level of zstd.
    compression_level: i64,
    /// `compression-min-bytes`: shorter strings stay as they are; 0 leaves it to the codec.
    compression_bytes_min: u64,
    /// `compression-when`: as they are written, or when they are cold.
    compression_when: CompressionTime,
    /// `compression-idle-time`: seconds without access after which a string is cold.
    compression_idle_seconds: u32,
    /// `compression-cpu-percent`: share of a worker's time for compressing in the background.
    compression_cpu_percent: u32,

    /// `hash-max-listpack-entries`: hashes of at most this many fields are packed into one buffer (`listpack`).
    hash_packed_entries: u64,
    /// `hash-max-listpack-value`: a hash with a longer field or value is packed only while it has few bytes.
    hash_packed_value: u64,
    /// `list-max-listpack-size`: lists of at most this many elements are packed into one buffer; -1 to -5 mean at most
    /// 4, 8, 16, 32 or 64 KiB.
    list_packed_size: i64,
    /// `set-max-intset-entries`: sets of at most this many integers are packed as numbers (`intset`).
    set_integer_entries: u64,
    /// `set-max-listpack-entries`: sets of at most this many members are packed into one buffer.
    set_packed_entries: u64,
    /// `set-max-listpack-value`: a set with a longer member is packed only while it has few bytes.
    set_packed_value: u64,
    /// `zset-max-listpack-entries`: sorted sets of at most this many members are packed into one buffer.
    zset_packed_entries: u64,
    /// `zset-max-listpack-value`: a sorted set with a longer member is packed only while it has few bytes.
    zset_packed_value: u64,
    /// `hll-sparse-max-bytes`: the longest sparse HyperLogLog.
    hll_sparse_bytes_max: u64,
    /// `stream-node-max-bytes`: bytes of a node of a stream, at most; 0 sets no limit.
    stream_node_bytes: u64,
    /// `stream-node-max-entries`: entries of a node of a stream, at most; 0 sets no limit.
    stream_node_entries: u64,

    /// `appendonly`: whether changes are written to the command log.
    appendonly: bool,
    /// `appendfsync`: when the command log is made durable.
    appendfsync: AppendFsync,
    /// `log-window`: milliseconds of acknowledged writes that `everysec` may lose.
    log_window_ms: u64,
    /// `log-segment-size`: bytes of a file of the command log.
    log_segment_bytes: u64,
    /// `log-buffer-size`: bytes of records in memory that are not known to be durable.
    log_buffer_bytes: u64,
    /// `log-on-error`: what a failed write or sync of the log leads to.
    log_on_error: LogErrorAction,
    /// `flush-error-wait`: milliseconds that writes to databases on disk wait after a failed flush.
    flush_error_wait_ms: u64,
    /// `save`: when a checkpoint is taken automatically.
    save: SavePoints,
    /// `auto-aof-rewrite-percentage`: growth of the log, in hundredths of the last checkpoint; 0 for no checkpoints by
    /// it.
    auto_aof_rewrite_percentage: u64,
    /// `auto-aof-rewrite-min-size`: bytes of log below which it does not matter.
    auto_aof_rewrite_bytes_min: u64,
    /// `stop-writes-on-bgsave-error`: whether writes are refused while checkpoints fail.
    stop_writes_on_bgsave_error: bool,
    /// `checkpoint-threads`: files of a checkpoint, each written by a thread.
    checkpoint_threads: u32,
    /// `checkpoint-retain-sets`: complete checkpoints that are kept, with the log from the oldest of them.
    checkpoint_retain_sets: u32,
    /// `checkpoint-retain-time`: seconds of which every moment can be restored.
    checkpoint_retain_seconds: u64,
    /// `checkpoint-retain-size`: bytes that checkpoints and log may take; 0 for a multiple of the largest checkpoint.
    checkpoint_retain_bytes: u64,

    /// `replicaof`: the primary whose data this server has; `None` for a primary.
    replicaof: Option<PrimaryAddress>,
    /// `primaryauth`: the password for the primary; empty for none.
    primaryauth: Secret,
    /// `primaryuser`: the user there; empty for the default user.
    primaryuser: String,
    /// `replica-read-only`: whether a replica refuses writes of clients.
    replica_read_only: bool,
    /// `replica-serve-stale-data`: whether it answers without a link to its primary.
    replica_serve_stale_data: bool,
    /// `repl-diskless-load`: where a replica loads a copy that replaces its data.
    repl_diskless_load: CopyLoad,
    /// `replica-ignore-maxmemory`: whether a replica leaves eviction to its primary.
    replica_ignore_maxmemory: bool,
    /// `replica-priority`: what Sentinel chooses a new primary by; 0 for never.
    replica_priority: u32,
    /// `replica-announced`: whether Sentinel lists it.
    replica_announced: bool,
    /// `replica-announce-ip`: the address that the primary lists; empty for that of the connection.
    replica_announce_ip: String,
    /// `replica-announce-port`: the port that it lists; 0 for `port`.
    replica_announce_port: u16,
    /// `repl-timeout`: seconds of silence after which the link to the primary is given up.
    repl_timeout_seconds: u32,

    /// `shutdown-on-sigterm`: how SIGTERM ends the server.
    shutdown_on_sigterm: EndFlags,
    /// `shutdown-on-sigint`: how SIGINT ends it.
    shutdown_on_sigint: EndFlags,

    /// `supervised`: what is notified when the server is ready.
    supervised: Supervision,

    /// `logfile`: where; `None` for standard output.
    logfile: Option<PathBuf>,
    /// `loglevel`: the least important messages it has.
    loglevel: LogLevel,
    /// `log-format`: the form of its lines.
    log_format: LogFormat,
    /// `log-timestamp-format`: the form of their times.
    log_timestamp_format: LogTime,
    /// `audit-log-file`: where the audit log is; `None` for none.
    audit_log_file: Option<PathBuf>,
    /// `audit-log-max-size`: bytes at which its file is rotated; 0 for never.
    audit_log_bytes_max: u64,
    /// `audit-log-max-files`: rotated files that are kept.
    audit_log_files_max: u32,
    /// `slowlog-log-slower-than`: microseconds; -1 for no log.
    slowlog_slower_than_us: i64,
    /// `slowlog-max-len`: entries kept.
    slowlog_length_max: u64,
    /// `commandlog-request-larger-than`: bytes; -1 for no log.
    commandlog_request_larger_than_bytes: i64,
    /// `commandlog-large-request-max-len`: entries kept.
    commandlog_request_length_max: u64,
    /// `commandlog-reply-larger-than`: bytes; -1 for no log.
    commandlog_reply_larger_than_bytes: i64,
    /// `commandlog-large-reply-max-len`: entries kept.
    commandlog_reply_length_max: u64,
    /// `busy-reply-threshold`: milliseconds that a script may run before other clients get `-BUSY`.
    busy_reply_threshold_ms: u64,
    /// `latency-monitor-threshold`: milliseconds; 0 for no monitor.
    latency_monitor_threshold_ms: u64,
    /// `latency-tracking`: whether each command has a latency histogram.
    latency_tracking: bool,
    /// `latency-tracking-info-percentiles`: which of its percentiles INFO shows.
    latency_tracking_percentiles: Vec<f64>,
}

impl Settings {
    /// Whether users are defined whose rules decide if a password is needed, instead of `requirepass`: in an ACL file,
    /// or in a line for `default`.
    pub fn defines_default_user(&self) -> bool {
        self.acl_file.is_some() || self.users.iter().any(|user| user.name() == b"default")
    }
}
