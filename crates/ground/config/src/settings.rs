//! The values themselves, as plain fields: what reads them looks nothing up.

use crate::inert::InertValues;
use crate::{
    Address, AppendFsync, CompressionCodec, CompressionTime, Databases, DebugCommand, EndFlags, EvictionPolicy,
    LogErrorAction, LogFormat, LogLevel, LogTime, MemoryShare, OutputLimits, SavePoints, Secret, Supervision,
    directives,
};
use std::path::PathBuf;

/// Declares [`Settings`], its blank state and the number of its fields (a test compares that with the table).
macro_rules! settings {
    ($(#[$doc:meta] $field:ident: $type:ty,)*) => {
        /// The value of every supported directive. A field is named after its directive, with its unit.
        ///
        /// The server keeps one behind its own kind of shared pointer; [`crate::Change`] makes the next one.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $(#[$doc] pub $field: $type,)*
            /// What was set of the directives that have no effect.
            pub inert: InertValues,
        }

        impl Settings {
            /// How many fields there are: one for each supported row.
            #[cfg(test)]
            pub(crate) const FIELD_COUNT: usize = [$(stringify!($field)),*].len();

            /// Every field empty; not a state a server may run with.
            fn blank() -> Self {
                Self { $($field: <$type>::default(),)* inert: InertValues::default() }
            }
        }
    };
}

settings! {
    /// `port`: where TCP connections are accepted; 0 for none.
    port: u16,
    /// `bind`: the addresses for TCP; empty for none.
    bind: Vec<Address>,
    /// `protected-mode`: whether addresses beyond loopback need a password.
    protected_mode: bool,
    /// `memcached-port`: where memcached clients are accepted; 0 for none.
    memcached_port: u16,
    /// `http-port`: where metrics and the page are shown, on loopback; 0 for nowhere.
    http_port: u16,
    /// `memcached-database`: the database that they use.
    memcached_database: u32,
    /// `memcached-flush`: whether they may remove all entries of it.
    memcached_flush: bool,
    /// `memcached-item-size-max`: the longest data of an item.
    memcached_item_bytes_max: u64,
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
    /// `database`: where each keeps its entries.
    database_engines: Databases,
    /// `dir`: the data directory, as given.
    dir: PathBuf,
    /// `dir-must-hold-data`: whether a directory without data is refused.
    dir_must_hold_data: bool,
    /// `ignore-foreign-files`: whether a start goes on beside another server's files.
    ignore_foreign_files: bool,
    /// `dbfilename`: the name of the RDB file that BGSAVE RDB makes there.
    rdb_file: PathBuf,

    /// `requirepass`: the password of the default user; empty for none.
    requirepass: Secret,
    /// `enable-debug-command`: who may use DEBUG.
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
    /// `list-max-listpack-size`: lists of at most this many elements are packed into one buffer; -1 to -5 mean at most 4, 8, 16, 32 or 64 KiB.
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
    /// `save`: when a checkpoint is taken by itself.
    save: SavePoints,
    /// `auto-aof-rewrite-percentage`: growth of the log, in hundredths of the last checkpoint; 0 for no checkpoints by it.
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
    /// `latency-monitor-threshold`: milliseconds; 0 for no monitor.
    latency_monitor_threshold_ms: u64,
    /// `latency-tracking`: whether each command has a latency histogram.
    latency_tracking: bool,
    /// `latency-tracking-info-percentiles`: which of its percentiles INFO shows.
    latency_tracking_percentiles: Vec<f64>,
}

impl Default for Settings {
    /// The defaults of the table.
    ///
    /// # Panics
    /// When a default of the table is not a value of its field; a test reads them all.
    fn default() -> Self {
        let mut settings = Self::blank();
        for directive in directives() {
            if let Some(setting) = directive.setting()
                && let Err(error) = setting.set_default(&mut settings)
            {
                panic!("the default of {}: {error}", directive.name);
            }
        }
        settings.save.replaceable = true;
        settings
    }
}
