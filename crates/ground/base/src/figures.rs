//! The figures of a server, once: INFO writes them under these names, and `/metrics`, its page of the manual and the
//! page of the server are made from the same rows.
//!
//! F1. A field of INFO with one value has a row here, since INFO takes the row to name it. [`FAMILIES`] are the fields
//! whose names and values have parts.

/// What a figure does over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It goes up and down.
    Gauge,
    /// It grows from the start of the server, or from CONFIG RESETSTAT.
    Counter,
    /// Words, or a number that is no measurement: no metric.
    Fact,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Thousandths of a second.
    Milliseconds,
    /// Millionths of a second.
    Microseconds,
    /// Hundredths.
    Percent,
    /// A quotient.
    Ratio,
    /// 0 or 1.
    Switch,
    /// `ok` or `err`: 1 or 0 as a metric.
    State,
    /// Seconds since 1970.
    UnixTime,
    /// 1,024 bytes a second.
    KibibytesPerSecond,
    /// Words.
    Text,
}

impl Unit {
    /// As a table names it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Count | Self::Text => "",
            Self::Bytes => "bytes",
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::Percent => "%",
            Self::Ratio => "ratio",
            Self::Switch => "0 or 1",
            Self::State => "ok or err",
            Self::UnixTime => "Unix time",
            Self::KibibytesPerSecond => "KiB/s",
        }
    }
}

/// A field of INFO with one value.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Section of INFO.
    pub section: &'static str,
    /// Field of INFO.
    pub field: &'static str,
    /// Name as a metric: that of `redis_exporter` where it means the same.
    pub metric: &'static str,
    /// Kind.
    pub kind: Kind,
    /// Unit of the field.
    pub unit: Unit,
    /// What it is.
    pub help: &'static str,
}

impl Figure {
    /// What the field is multiplied by as a metric, which is in seconds if its name says so.
    pub fn scale(&self) -> f64 {
        match self.unit {
            Unit::Microseconds if self.metric.contains("_seconds") => 1e-6,
            Unit::Milliseconds if self.metric.contains("_seconds") => 1e-3,
            _ => 1.0,
        }
    }
}

/// Fields of INFO whose names have a common beginning and whose values have parts: `db0:keys=1,expires=0`.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// How the fields begin.
    pub beginning: &'static str,
    /// The part of the value; `None` for every percentile.
    pub part: Option<&'static str>,
    /// Name as a metric.
    pub metric: &'static str,
    /// The label that has the rest of the field's name.
    pub label: &'static str,
    /// Kind.
    pub kind: Kind,
    /// What the part is multiplied by as a metric.
    pub scale: f64,
    /// What it is.
    pub help: &'static str,
}

const fn family(
    (beginning, part): (&'static str, &'static str),
    (metric, label): (&'static str, &'static str),
    kind: Kind,
    scale: f64,
    help: &'static str,
) -> Family {
    Family { beginning, part: Some(part), metric, label, kind, scale, help }
}

/// In the order in which they are shown.
pub static FAMILIES: &[Family] = &[
    family(("db", "keys"), ("redis_db_keys", "db"), Kind::Gauge, 1.0, "Keys of a database."),
    family(("db", "expires"), ("redis_db_keys_expiring", "db"), Kind::Gauge, 1.0, "Keys of a database that expire."),
    family(("db", "avg_ttl"), ("redis_db_avg_ttl_seconds", "db"), Kind::Gauge, 1e-3, "Average time to live of those."),
    family(
        ("db", "keys_with_volatile_items"),
        ("onggi_db_keys_with_expiring_fields", "db"),
        Kind::Gauge,
        1.0,
        "Hashes of a database with fields that expire.",
    ),
    family(("cmdstat_", "calls"), ("redis_commands_total", "cmd"), Kind::Counter, 1.0, "Calls of a command."),
    family(
        ("cmdstat_", "usec"),
        ("redis_commands_duration_seconds_total", "cmd"),
        Kind::Counter,
        1e-6,
        "Time of its calls.",
    ),
    family(
        ("cmdstat_", "rejected_calls"),
        ("redis_commands_rejected_calls_total", "cmd"),
        Kind::Counter,
        1.0,
        "Calls refused before they ran.",
    ),
    family(
        ("cmdstat_", "failed_calls"),
        ("redis_commands_failed_calls_total", "cmd"),
        Kind::Counter,
        1.0,
        "Calls that answered an error.",
    ),
    family(
        ("errorstat_", "count"),
        ("redis_errors_total", "err"),
        Kind::Counter,
        1.0,
        "Error replies by their first word.",
    ),
    Family {
        beginning: "latency_percentiles_usec_",
        part: None,
        metric: "redis_latency_percentiles_usec",
        label: "cmd",
        kind: Kind::Gauge,
        scale: 1.0,
        help: "Percentiles of the time of a command, in microseconds.",
    },
];

macro_rules! figures {
    ($($section:literal {
        $($name:ident = $kind:ident $field:literal $metric:literal $unit:ident $help:literal;)*
    })*) => {
        $($(
            #[doc = $help]
            pub static $name: Figure = Figure {
                section: $section,
                field: $field,
                metric: $metric,
                kind: Kind::$kind,
                unit: Unit::$unit,
                help: $help,
            };
        )*)*

        /// All of them, in the order of INFO.
        pub static TABLE: &[&Figure] = &[$($(&$name,)*)*];
    };
}

figures! {
    "server" {
        REDIS_VERSION = Fact "redis_version" "" Text
            "Version of Redis whose commands are spoken.";
        SERVER_NAME = Fact "server_name" "" Text
            "The name of the server: onggi.";
        ONGGI_VERSION = Fact "onggi_version" "" Text
            "Version of the program.";
        REDIS_GIT_SHA1 = Fact "redis_git_sha1" "" Text
            "Zeros; kept for tools that read it.";
        REDIS_GIT_DIRTY = Fact "redis_git_dirty" "" Text
            "Zero; kept for tools that read it.";
        REDIS_BUILD_ID = Fact "redis_build_id" "" Text
            "What distinguishes builds of one version.";
        REDIS_MODE = Fact "redis_mode" "" Text
            "standalone.";
        SERVER_MODE = Fact "server_mode" "" Text
            "standalone.";
        OS = Fact "os" "" Text
            "Operating system and machine.";
        ARCH_BITS = Fact "arch_bits" "" Text
            "Bits of a word of the machine.";
        MONOTONIC_CLOCK = Fact "monotonic_clock" "" Text
            "What durations are measured by.";
        MULTIPLEXING_API = Fact "multiplexing_api" "" Text
            "What waits for sockets.";
        PROCESS_ID = Gauge "process_id" "redis_process_id" Count
            "Number of the process.";
        PROCESS_SUPERVISED = Fact "process_supervised" "" Text
            "no; kept for tools that read it.";
        RUN_ID = Fact "run_id" "" Text
            "A random name of this run of the server.";
        TCP_PORT = Fact "tcp_port" "" Text
            "Port of Redis clients; without one, that of TLS.";
        SERVER_TIME_USEC = Fact "server_time_usec" "" Text
            "Time of the server, in microseconds since 1970.";
        UPTIME_IN_SECONDS = Gauge "uptime_in_seconds" "redis_uptime_in_seconds" Seconds
            "Seconds since the start.";
        UPTIME_IN_DAYS = Fact "uptime_in_days" "" Text
            "Days since the start.";
        HZ = Fact "hz" "" Text
            "How often a second figures are sampled.";
        CONFIGURED_HZ = Fact "configured_hz" "" Text
            "The same.";
        EXECUTABLE = Fact "executable" "" Text
            "Path of the program.";
        CONFIG_FILE = Fact "config_file" "" Text
            "Path of the configuration file; empty without one.";
        IO_THREADS_ACTIVE = Gauge "io_threads_active" "redis_io_threads_active" Count
            "Zero: workers do their own input and output.";
        WORKERS = Gauge "workers" "onggi_workers" Count
            "Threads that run commands.";
        SHARDS = Gauge "shards" "onggi_shards" Count
            "Parts of the keyspace, each with a lock.";
    }
    "tls" {
        TLS_SERVER_CERT_SERIAL = Fact "tls_server_cert_serial" "" Text
            "Serial number of the server's certificate.";
        TLS_SERVER_CERT_EXPIRES_IN_SECONDS = Gauge "tls_server_cert_expires_in_seconds"
            "onggi_tls_server_cert_expires_in_seconds" Seconds
            "Time until the server's certificate expires; 0 without one.";
        TLS_CLIENT_CERT_SERIAL = Fact "tls_client_cert_serial" "" Text
            "Serial number of the certificate for connections to other servers.";
        TLS_CLIENT_CERT_EXPIRES_IN_SECONDS = Gauge "tls_client_cert_expires_in_seconds"
            "onggi_tls_client_cert_expires_in_seconds" Seconds
            "Time until that certificate expires; 0 without one.";
        TLS_CA_CERT_SERIAL = Fact "tls_ca_cert_serial" "" Text
            "Serial number of the authority's certificate.";
        TLS_CA_CERT_EXPIRES_IN_SECONDS = Gauge "tls_ca_cert_expires_in_seconds"
            "onggi_tls_ca_cert_expires_in_seconds" Seconds
            "Time until the authority's certificate expires; 0 without one.";
    }
    "clients" {
        CONNECTED_CLIENTS = Gauge "connected_clients" "redis_connected_clients" Count
            "Client connections.";
        CLUSTER_CONNECTIONS = Gauge "cluster_connections" "redis_cluster_connections" Count
            "Zero: there is no cluster bus.";
        MAXCLIENTS = Gauge "maxclients" "redis_max_clients" Count
            "Most client connections (maxclients).";
        CLIENT_RECENT_MAX_INPUT_BUFFER = Gauge "client_recent_max_input_buffer"
            "redis_client_recent_max_input_buffer_bytes" Bytes
            "Longest input buffer of a client.";
        CLIENT_RECENT_MAX_OUTPUT_BUFFER = Gauge "client_recent_max_output_buffer"
            "redis_client_recent_max_output_buffer_bytes" Bytes
            "Longest output buffer of a client.";
        BLOCKED_CLIENTS = Gauge "blocked_clients" "redis_blocked_clients" Count
            "Clients that wait in a blocking command.";
        TRACKING_CLIENTS = Gauge "tracking_clients" "redis_tracking_clients" Count
            "Clients with CLIENT TRACKING.";
        PUBSUB_CLIENTS = Gauge "pubsub_clients" "redis_pubsub_clients" Count
            "Clients with subscriptions.";
        WATCHING_CLIENTS = Gauge "watching_clients" "redis_watching_clients" Count
            "Clients with watched keys.";
        CLIENTS_IN_TIMEOUT_TABLE = Gauge "clients_in_timeout_table" "redis_clients_in_timeout_table" Count
            "Clients that wait with a timeout.";
        TOTAL_WATCHED_KEYS = Gauge "total_watched_keys" "redis_total_watched_keys" Count
            "Watched keys.";
        TOTAL_BLOCKING_KEYS = Gauge "total_blocking_keys" "redis_total_blocking_keys" Count
            "Keys that clients wait for.";
        TOTAL_BLOCKING_KEYS_ON_NOKEY = Gauge "total_blocking_keys_on_nokey" "redis_total_blocking_keys_on_nokey" Count
            "Keys that clients wait for, and for whose deletion too.";
        PAUSED_REASON = Fact "paused_reason" "" Text
            "Why clients are paused; none when they are not.";
        PAUSED_ACTIONS = Fact "paused_actions" "" Text
            "Which commands are paused.";
        PAUSED_TIMEOUT_MILLISECONDS = Gauge "paused_timeout_milliseconds" "onggi_paused_timeout_seconds" Milliseconds
            "How long clients remain paused.";
    }
    "memory" {
        USED_MEMORY = Gauge "used_memory" "redis_memory_used_bytes" Bytes
            "Memory of data, tables and buffers, which maxmemory limits.";
        USED_MEMORY_RSS = Gauge "used_memory_rss" "redis_memory_used_rss_bytes" Bytes
            "Resident memory of the process.";
        USED_MEMORY_PEAK = Gauge "used_memory_peak" "redis_memory_used_peak_bytes" Bytes
            "Highest used_memory.";
        USED_MEMORY_PEAK_PERC = Gauge "used_memory_peak_perc" "onggi_used_memory_peak_perc" Percent
            "used_memory as a share of its peak.";
        USED_MEMORY_OVERHEAD = Gauge "used_memory_overhead" "redis_memory_used_overhead_bytes" Bytes
            "Memory other than keys and values.";
        USED_MEMORY_STARTUP = Gauge "used_memory_startup" "redis_memory_used_startup_bytes" Bytes
            "Memory of the program itself.";
        USED_MEMORY_DATASET = Gauge "used_memory_dataset" "redis_memory_used_dataset_bytes" Bytes
            "Memory of keys and values.";
        USED_MEMORY_DATASET_PERC = Gauge "used_memory_dataset_perc" "onggi_used_memory_dataset_perc" Percent
            "Memory of keys and values as a share of what was used since the start.";
        USED_MEMORY_VALUES = Gauge "used_memory_values" "onggi_used_memory_values" Bytes
            "Memory of values in pages.";
        USED_MEMORY_LARGE_VALUES = Gauge "used_memory_large_values" "onggi_used_memory_large_values" Bytes
            "Memory of values that have an allocation of their own.";
        USED_MEMORY_THAWED = Gauge "used_memory_thawed" "onggi_used_memory_thawed" Bytes
            "Memory of values that were decompressed for commands and are kept for the next ones.";
        USED_MEMORY_TABLE = Gauge "used_memory_table" "onggi_used_memory_table" Bytes
            "Memory of the tables of keys.";
        USED_MEMORY_EXPIRATION_INDEX = Gauge "used_memory_expiration_index" "onggi_used_memory_expiration_index" Bytes
            "Memory of the index of expirations.";
        ALLOCATOR_ALLOCATED = Gauge "allocator_allocated" "redis_allocator_allocated_bytes" Bytes
            "The same as used_memory: memory is taken in pages and counted so.";
        ALLOCATOR_ACTIVE = Gauge "allocator_active" "redis_allocator_active_bytes" Bytes
            "The same as used_memory.";
        ALLOCATOR_RESIDENT = Gauge "allocator_resident" "redis_allocator_resident_bytes" Bytes
            "The same as used_memory_rss.";
        ALLOCATOR_MUZZY = Gauge "allocator_muzzy" "redis_allocator_muzzy_bytes" Bytes
            "Zero: freed memory is given back at once.";
        TOTAL_SYSTEM_MEMORY = Gauge "total_system_memory" "redis_total_system_memory_bytes" Bytes
            "Memory of the machine.";
        USED_MEMORY_LUA = Gauge "used_memory_lua" "redis_memory_used_lua_bytes" Bytes
            "Memory of the Lua interpreters.";
        USED_MEMORY_VM_EVAL = Gauge "used_memory_vm_eval" "redis_memory_used_vm_eval_bytes" Bytes
            "The same as used_memory_lua.";
        USED_MEMORY_SCRIPTS_EVAL = Gauge "used_memory_scripts_eval" "redis_memory_used_scripts_eval_bytes" Bytes
            "Memory of scripts cached for EVALSHA.";
        NUMBER_OF_CACHED_SCRIPTS = Gauge "number_of_cached_scripts" "redis_number_of_cached_scripts" Count
            "Cached scripts.";
        NUMBER_OF_FUNCTIONS = Gauge "number_of_functions" "redis_number_of_functions" Count
            "Loaded functions.";
        NUMBER_OF_LIBRARIES = Gauge "number_of_libraries" "redis_number_of_libraries" Count
            "Loaded libraries of functions.";
        USED_MEMORY_VM_FUNCTIONS = Gauge "used_memory_vm_functions" "redis_memory_used_vm_functions_bytes" Bytes
            "Zero: functions share the interpreters of scripts.";
        USED_MEMORY_VM_TOTAL = Gauge "used_memory_vm_total" "redis_memory_used_vm_total" Bytes
            "The same as used_memory_lua.";
        USED_MEMORY_FUNCTIONS = Gauge "used_memory_functions" "redis_memory_used_functions_bytes" Bytes
            "Memory of libraries of functions.";
        USED_MEMORY_SCRIPTS = Gauge "used_memory_scripts" "redis_memory_used_scripts_bytes" Bytes
            "Memory of cached scripts.";
        MAXMEMORY = Gauge "maxmemory" "redis_memory_max_bytes" Bytes
            "The memory budget (maxmemory); 0 is none.";
        MAXMEMORY_POLICY = Fact "maxmemory_policy" "" Text
            "What happens at the budget.";
        ALLOCATOR_FRAG_RATIO = Gauge "allocator_frag_ratio" "redis_allocator_frag_ratio" Ratio
            "1: what is allocated is what is active.";
        ALLOCATOR_FRAG_BYTES = Gauge "allocator_frag_bytes" "redis_allocator_frag_bytes" Bytes
            "Zero, likewise.";
        ALLOCATOR_RSS_RATIO = Gauge "allocator_rss_ratio" "redis_allocator_rss_ratio" Ratio
            "The same as mem_fragmentation_ratio.";
        ALLOCATOR_RSS_BYTES = Gauge "allocator_rss_bytes" "redis_allocator_rss_bytes" Bytes
            "The same as mem_fragmentation_bytes.";
        RSS_OVERHEAD_RATIO = Gauge "rss_overhead_ratio" "redis_rss_overhead_ratio" Ratio
            "1: there is no other allocator.";
        RSS_OVERHEAD_BYTES = Gauge "rss_overhead_bytes" "redis_rss_overhead_bytes" Bytes
            "Zero, likewise.";
        MEM_FRAGMENTATION_RATIO = Gauge "mem_fragmentation_ratio" "redis_mem_fragmentation_ratio" Ratio
            "Resident memory divided by used memory and the program.";
        MEM_FRAGMENTATION_BYTES = Gauge "mem_fragmentation_bytes" "redis_mem_fragmentation_bytes" Bytes
            "Resident memory beyond used memory and the program.";
        MEM_NOT_COUNTED_FOR_EVICT = Gauge "mem_not_counted_for_evict" "redis_mem_not_counted_for_eviction_bytes" Bytes
            "Memory that maxmemory does not count.";
        MEM_REPLICATION_BACKLOG = Gauge "mem_replication_backlog" "redis_mem_replication_backlog_bytes" Bytes
            "Zero: a server has no replicas.";
        MEM_TOTAL_REPLICATION_BUFFERS = Gauge "mem_total_replication_buffers"
            "redis_mem_total_replication_buffers_bytes" Bytes
            "Zero, likewise.";
        MEM_REPLICAS_REPL_BUFFER = Gauge "mem_replicas_repl_buffer" "onggi_mem_replicas_repl_buffer" Bytes
            "Zero, likewise.";
        MEM_CLIENTS_SLAVES = Gauge "mem_clients_slaves" "redis_mem_clients_slaves" Bytes
            "Zero, likewise.";
        MEM_CLIENTS_NORMAL = Gauge "mem_clients_normal" "redis_mem_clients_normal" Bytes
            "Memory of client buffers.";
        MEM_CLUSTER_LINKS = Gauge "mem_cluster_links" "redis_mem_cluster_links_bytes" Bytes
            "Zero: there is no cluster bus.";
        MEM_AOF_BUFFER = Gauge "mem_aof_buffer" "redis_mem_aof_buffer_bytes" Bytes
            "Zero: the memory of the log is taken at the start.";
        MEM_ALLOCATOR = Fact "mem_allocator" "" Text
            "What gives memory.";
        ACTIVE_DEFRAG_RUNNING = Gauge "active_defrag_running" "redis_active_defrag_running" Switch
            "Zero: pages are compacted as part of writes.";
        LAZYFREE_PENDING_OBJECTS = Gauge "lazyfree_pending_objects" "redis_lazyfree_pending_objects" Count
            "Zero: nothing waits to be freed.";
        LAZYFREED_OBJECTS = Counter "lazyfreed_objects" "redis_lazyfreed_objects_total" Count
            "Zero, likewise.";
    }
    "compression" {
        COMPRESSION = Fact "compression" "" Text
            "The codec of new values.";
        COMPRESSION_VALUES = Gauge "compression_values" "onggi_compression_values" Count
            "Values and leaves of collections that are stored compressed.";
        COMPRESSION_STORED_BYTES = Gauge "compression_stored_bytes" "onggi_compression_stored_bytes" Bytes
            "Their bytes as stored.";
        COMPRESSION_LOGICAL_BYTES = Gauge "compression_logical_bytes" "onggi_compression_logical_bytes" Bytes
            "Their bytes before compression.";
        COMPRESSION_LEAF_PAGES_BYTES = Gauge "compression_leaf_pages_bytes" "onggi_compression_leaf_pages_bytes" Bytes
            "Memory of pages of compressed leaves.";
        COMPRESSION_LEAF_PAGES_GONE_BYTES = Gauge "compression_leaf_pages_gone_bytes"
            "onggi_compression_leaf_pages_gone_bytes" Bytes
            "What of it is dead and not given back yet.";
        COMPRESSION_COMPRESSED_BY_WRITES = Counter "compression_compressed_by_writes"
            "onggi_compression_compressed_by_writes_total" Count
            "Values compressed as they were written.";
        COMPRESSION_COMPRESSED_IN_BACKGROUND = Counter "compression_compressed_in_background"
            "onggi_compression_compressed_in_background_total" Count
            "Values compressed by the pass in the background.";
        COMPRESSION_DECOMPRESSED_IN_BACKGROUND = Counter "compression_decompressed_in_background"
            "onggi_compression_decompressed_in_background_total" Count
            "Values decompressed by that pass.";
        COMPRESSION_DECOMPRESSED_FOR_COMMANDS = Counter "compression_decompressed_for_commands"
            "onggi_compression_decompressed_for_commands_total" Count
            "Values decompressed for commands.";
        COMPRESSION_IN_VAIN = Counter "compression_in_vain" "onggi_compression_in_vain_total" Count
            "Attempts that saved too little.";
        COMPRESSION_SKIPPED = Counter "compression_skipped" "onggi_compression_skipped_total" Count
            "Values not tried, since values like them do not compress.";
        COMPRESSION_CLASSES_SKIPPED = Gauge "compression_classes_skipped" "onggi_compression_classes_skipped" Count
            "Classes of values that are not tried at present.";
        COMPRESSION_DICTIONARIES = Gauge "compression_dictionaries" "onggi_compression_dictionaries" Count
            "Dictionaries in memory.";
        COMPRESSION_DICTIONARIES_IN_USE = Gauge "compression_dictionaries_in_use"
            "onggi_compression_dictionaries_in_use" Count
            "Dictionaries that new values are compressed with.";
        COMPRESSION_DICTIONARY_BYTES = Gauge "compression_dictionary_bytes" "onggi_compression_dictionary_bytes" Bytes
            "Memory of dictionaries.";
        COMPRESSION_VALUES_WITH_DICTIONARY = Gauge "compression_values_with_dictionary"
            "onggi_compression_values_with_dictionary" Count
            "Values compressed with a dictionary.";
        COMPRESSION_CPU_USEC = Counter "compression_cpu_usec" "onggi_compression_cpu_seconds_total" Microseconds
            "Time spent on compressing for writes.";
        COMPRESSION_BACKGROUND_USEC = Counter "compression_background_usec"
            "onggi_compression_background_seconds_total" Microseconds
            "Time spent by the pass in the background.";
        COMPRESSION_SHARDS_TO_VISIT = Gauge "compression_shards_to_visit" "onggi_compression_shards_to_visit" Count
            "Shards that the running pass has not visited.";
        COMPRESSION_ROUNDS = Counter "compression_rounds" "onggi_compression_rounds_total" Count
            "Finished passes.";
    }
    "persistence" {
        DURABILITY = Fact "durability" "" Text
            "What survives a power cut, in words.";
        LOADING = Gauge "loading" "redis_loading_dump_file" Switch
            "1 while data is loaded.";
        ASYNC_LOADING = Gauge "async_loading" "redis_async_loading" Switch
            "1 while a copy of a primary is loaded and old data is served.";
        CURRENT_COW_PEAK = Gauge "current_cow_peak" "redis_current_cow_peak_bytes" Bytes
            "Most memory that the running checkpoint has taken.";
        CURRENT_COW_SIZE = Gauge "current_cow_size" "redis_current_cow_size_bytes" Bytes
            "Memory that the running checkpoint takes.";
        CURRENT_COW_SIZE_AGE = Gauge "current_cow_size_age" "redis_current_cow_size_age" Seconds
            "Zero: it is always measured now.";
        CURRENT_FORK_PERC = Gauge "current_fork_perc" "redis_current_fork_perc" Percent
            "Zero: there is no fork.";
        CURRENT_SAVE_KEYS_PROCESSED = Gauge "current_save_keys_processed" "redis_current_save_keys_processed" Count
            "Keys that the running checkpoint has written.";
        CURRENT_SAVE_KEYS_TOTAL = Gauge "current_save_keys_total" "redis_current_save_keys_total" Count
            "Keys that it will write.";
        RDB_CHANGES_SINCE_LAST_SAVE = Gauge "rdb_changes_since_last_save" "redis_rdb_changes_since_last_save" Count
            "Changes since the last checkpoint.";
        RDB_BGSAVE_IN_PROGRESS = Gauge "rdb_bgsave_in_progress" "redis_rdb_bgsave_in_progress" Switch
            "1 while a checkpoint is taken.";
        RDB_LAST_SAVE_TIME = Gauge "rdb_last_save_time" "redis_rdb_last_save_timestamp_seconds" UnixTime
            "When the last checkpoint was taken.";
        RDB_LAST_BGSAVE_STATUS = Gauge "rdb_last_bgsave_status" "redis_rdb_last_bgsave_status" State
            "1 if the last checkpoint succeeded.";
        RDB_LAST_BGSAVE_TIME_SEC = Gauge "rdb_last_bgsave_time_sec" "redis_rdb_last_bgsave_duration_sec" Seconds
            "How long the last checkpoint took.";
        RDB_CURRENT_BGSAVE_TIME_SEC = Gauge "rdb_current_bgsave_time_sec"
            "redis_rdb_current_bgsave_duration_sec" Seconds
            "How long the running checkpoint has taken; -1 without one.";
        RDB_SAVES = Counter "rdb_saves" "redis_rdb_saves_total" Count
            "Checkpoints since the start.";
        RDB_LAST_COW_SIZE = Gauge "rdb_last_cow_size" "redis_rdb_last_cow_size_bytes" Bytes
            "Memory that the last checkpoint took.";
        RDB_LAST_LOAD_KEYS_EXPIRED = Gauge "rdb_last_load_keys_expired" "redis_rdb_last_load_expired_keys" Count
            "Keys that the start has dropped as expired.";
        RDB_LAST_LOAD_KEYS_LOADED = Gauge "rdb_last_load_keys_loaded" "redis_rdb_last_load_loaded_keys" Count
            "Keys that the start has loaded.";
        AOF_ENABLED = Gauge "aof_enabled" "redis_aof_enabled" Switch
            "1 with the log on.";
        AOF_REWRITE_IN_PROGRESS = Gauge "aof_rewrite_in_progress" "redis_aof_rewrite_in_progress" Switch
            "1 while a checkpoint replaces the log.";
        AOF_REWRITE_SCHEDULED = Gauge "aof_rewrite_scheduled" "redis_aof_rewrite_scheduled" Switch
            "1 if such a checkpoint is to follow.";
        AOF_LAST_REWRITE_TIME_SEC = Gauge "aof_last_rewrite_time_sec" "redis_aof_last_rewrite_duration_sec" Seconds
            "How long the last one took.";
        AOF_CURRENT_REWRITE_TIME_SEC = Gauge "aof_current_rewrite_time_sec"
            "redis_aof_current_rewrite_duration_sec" Seconds
            "How long the running one has taken; -1 without one.";
        AOF_LAST_BGREWRITE_STATUS = Gauge "aof_last_bgrewrite_status" "redis_aof_last_bgrewrite_status" State
            "1 if the last one succeeded.";
        AOF_REWRITES = Counter "aof_rewrites" "onggi_aof_rewrites_total" Count
            "Checkpoints that replaced the log.";
        AOF_REWRITES_CONSECUTIVE_FAILURES = Gauge "aof_rewrites_consecutive_failures"
            "onggi_aof_rewrites_consecutive_failures" Count
            "How many of them have failed since the last success.";
        AOF_LAST_WRITE_STATUS = Gauge "aof_last_write_status" "redis_aof_last_write_status" State
            "1 if the log takes changes.";
        AOF_LAST_COW_SIZE = Gauge "aof_last_cow_size" "redis_aof_last_cow_size_bytes" Bytes
            "Memory that the last one took.";
        MODULE_FORK_IN_PROGRESS = Gauge "module_fork_in_progress" "redis_module_fork_in_progress" Switch
            "Zero: there are no modules.";
        MODULE_FORK_LAST_COW_SIZE = Gauge "module_fork_last_cow_size" "redis_module_fork_last_cow_size" Bytes
            "Zero, likewise.";
        AOF_CURRENT_SIZE = Gauge "aof_current_size" "redis_aof_current_size_bytes" Bytes
            "Bytes of the log.";
        AOF_BASE_SIZE = Gauge "aof_base_size" "redis_aof_base_size_bytes" Bytes
            "Bytes of the log at the last checkpoint.";
        AOF_PENDING_REWRITE = Gauge "aof_pending_rewrite" "redis_aof_pending_rewrite" Switch
            "Zero; kept for tools that read it.";
        AOF_BUFFER_LENGTH = Gauge "aof_buffer_length" "redis_aof_buffer_length" Bytes
            "Bytes of the log that are not written yet.";
        AOF_PENDING_BIO_FSYNC = Gauge "aof_pending_bio_fsync" "redis_aof_pending_bio_fsync" Switch
            "1 while a sync is due.";
        AOF_DELAYED_FSYNC = Counter "aof_delayed_fsync" "redis_aof_delayed_fsync" Count
            "Syncs that were late.";
        LOG_MODE = Fact "log_mode" "" Text
            "When the log is synced, as appendfsync names it.";
        LOG_WINDOW_MS = Gauge "log_window_ms" "onggi_log_window_seconds" Milliseconds
            "Longest time until a change is durable, on a healthy disk.";
        LOG_END = Gauge "log_end" "onggi_log_end" Bytes
            "Position in the log after the last change.";
        LOG_DURABLE = Gauge "log_durable" "onggi_log_durable" Bytes
            "Position in the log up to which changes are durable.";
        LOG_SEGMENTS = Gauge "log_segments" "onggi_log_segments" Count
            "Segments of the log.";
        LOG_SIZE = Gauge "log_size" "onggi_log_size_bytes" Bytes
            "Bytes of all segments of the log.";
        LOG_UNSYNCED_BYTES = Gauge "log_unsynced_bytes" "onggi_log_unsynced_bytes" Bytes
            "Bytes of the log that are not durable yet.";
        LOG_OLDEST_UNSYNCED_MS = Gauge "log_oldest_unsynced_ms" "onggi_log_oldest_unsynced_seconds" Milliseconds
            "Age of the oldest change that is not durable yet.";
        LOG_SYNCS = Counter "log_syncs" "onggi_log_syncs_total" Count
            "Syncs of the log.";
        LOG_LAST_SYNC_USEC = Gauge "log_last_sync_usec" "onggi_log_last_sync_seconds" Microseconds
            "Duration of the last sync.";
        LOG_LONGEST_SYNC_USEC = Gauge "log_longest_sync_usec" "onggi_log_longest_sync_seconds" Microseconds
            "Duration of the longest sync.";
        LOG_FAILURES = Counter "log_failures" "onggi_log_failures_total" Count
            "Failed writes and syncs of the log.";
        LOG_FAILURE = Fact "log_failure" "" Text
            "Why the log takes no changes; empty when it does.";
        RDB_FILE_SAVES = Counter "rdb_file_saves" "onggi_rdb_file_saves_total" Count
            "Files written for dbfilename.";
        RDB_FILE_LAST_STATUS = Gauge "rdb_file_last_status" "onggi_rdb_file_last_status" State
            "1 if the last of them was written.";
        RDB_FILE_LAST_ERROR = Fact "rdb_file_last_error" "" Text
            "Why it was not.";
        RDB_FILE_LAST_TIME = Gauge "rdb_file_last_time" "onggi_rdb_file_last_timestamp_seconds" UnixTime
            "When it was written; 0 for never.";
        RDB_FILE_LAST_KEYS = Gauge "rdb_file_last_keys" "onggi_rdb_file_last_keys" Count
            "Its keys.";
        RDB_FILE_LAST_SIZE = Gauge "rdb_file_last_size" "onggi_rdb_file_last_size" Bytes
            "Its bytes.";
        CHECKPOINT_SETS = Gauge "checkpoint_sets" "onggi_checkpoint_sets" Count
            "Checkpoints that are kept.";
        CHECKPOINT_BYTES = Gauge "checkpoint_bytes" "onggi_checkpoint_bytes" Bytes
            "Their bytes.";
        CHECKPOINT_LAST_STALL_USEC = Gauge "checkpoint_last_stall_usec"
            "onggi_checkpoint_last_stall_seconds" Microseconds
            "How long the last checkpoint held all locks.";
        RESTORABLE_SINCE = Gauge "restorable_since" "onggi_restorable_since_timestamp_seconds" UnixTime
            "Moments from then on can be restored, as far as the log was on; 0 for none.";
        RESTORABLE = Fact "restorable" "" Text
            "The same in words.";
        LAST_LOAD_LOG_RECORDS = Gauge "last_load_log_records" "onggi_last_load_log_records" Count
            "Records of the log that the start has applied.";
        LAST_LOAD_MS = Gauge "last_load_ms" "onggi_last_load_seconds" Milliseconds
            "How long the start took to load the data.";
        LOADING_START_TIME = Gauge "loading_start_time" "redis_loading_start_time_seconds" UnixTime
            "When the load began.";
        LOADING_TOTAL_BYTES = Gauge "loading_total_bytes" "onggi_loading_total_bytes" Bytes
            "Bytes to load.";
        LOADING_RDB_USED_MEM = Gauge "loading_rdb_used_mem" "onggi_loading_rdb_used_mem" Bytes
            "Zero; kept for tools that read it.";
        LOADING_LOADED_BYTES = Gauge "loading_loaded_bytes" "onggi_loading_loaded_bytes" Bytes
            "Bytes loaded so far.";
        LOADING_LOADED_PERC = Gauge "loading_loaded_perc" "onggi_loading_loaded_perc" Percent
            "Their share.";
        LOADING_ETA_SECONDS = Gauge "loading_eta_seconds" "onggi_loading_eta_seconds" Seconds
            "Estimate of the time that remains.";
    }
    "disk" {
        DISK_DATABASES = Gauge "disk_databases" "onggi_disk_databases" Count
            "Databases on disk.";
        DISK_FLUSHES = Counter "disk_flushes" "onggi_disk_flushes_total" Count
            "Flushes of changes from memory to tables.";
        DISK_LAST_FLUSH_STATUS = Gauge "disk_last_flush_status" "onggi_disk_last_flush_status" State
            "1 if the last flush succeeded.";
        DISK_FLUSHED_LSN = Gauge "disk_flushed_lsn" "onggi_disk_flushed_lsn" Bytes
            "Position in the log up to which changes are in tables.";
        DISK_UNFLUSHED_BYTES = Gauge "disk_unflushed_bytes" "onggi_disk_unflushed_bytes" Bytes
            "Bytes of the log after it.";
        DISK_TABLE_BYTES = Gauge "disk_table_bytes" "onggi_disk_table_bytes" Bytes
            "Bytes of tables.";
        DISK_TABLES = Gauge "disk_tables" "onggi_disk_tables" Count
            "Tables.";
        DISK_RETAINED_BYTES = Gauge "disk_retained_bytes" "onggi_disk_retained_bytes" Bytes
            "Bytes of tables that only the copies of checkpoints have.";
        DISK_MEMORY_BYTES = Gauge "disk_memory_bytes" "onggi_disk_memory_bytes" Bytes
            "Memory of rows that are not in tables yet, and of caches.";
        DISK_FLUSHED_BYTES = Counter "disk_flushed_bytes" "onggi_disk_flushed_bytes_total" Bytes
            "Bytes written by flushes.";
        DISK_WRITTEN_BYTES = Counter "disk_written_bytes" "onggi_disk_written_bytes_total" Bytes
            "Bytes written by flushes and merges.";
        DISK_WRITE_AMPLIFICATION = Gauge "disk_write_amplification" "onggi_disk_write_amplification" Ratio
            "Bytes written for a byte flushed.";
        DISK_PARTS_WRITTEN = Counter "disk_parts_written" "onggi_disk_parts_written_total" Count
            "Parts of large rows that flushes have written.";
        DISK_PARTS_KEPT = Counter "disk_parts_kept" "onggi_disk_parts_kept_total" Count
            "Parts of changed rows that were stored already.";
        DISK_LEAVES_WRITTEN = Counter "disk_leaves_written" "onggi_disk_leaves_written_total" Count
            "Leaves of large collections that became rows of their own.";
        DISK_LEAVES_READ = Counter "disk_leaves_read" "onggi_disk_leaves_read_total" Count
            "Such leaves that were read.";
        DISK_MERGES = Counter "disk_merges" "onggi_disk_merges_total" Count
            "Merges of tables.";
        DISK_ROW_READS = Counter "disk_row_reads" "onggi_disk_row_reads_total" Count
            "Rows read from tables.";
        DISK_ROW_READ_USEC_PER_READ = Gauge "disk_row_read_usec_per_read" "onggi_disk_row_read_seconds" Microseconds
            "Mean time of such a read.";
        DISK_ROW_READ_ERRORS = Counter "disk_row_read_errors" "onggi_disk_row_read_errors_total" Count
            "Rows that could not be read.";
    }
    "tier" {
        TIER_ENABLED = Gauge "tier_enabled" "onggi_tier_enabled" Switch
            "1 with values on a tier.";
        TIER_MEDIUM = Fact "tier_medium" "" Text
            "What the tier is made of.";
        TIER_FULL = Gauge "tier_full" "onggi_tier_full" Switch
            "1 when no more values fit.";
        TIER_SEGMENTS = Gauge "tier_segments" "onggi_tier_segments" Count
            "Segments.";
        TIER_MISSING_SEGMENTS = Gauge "tier_missing_segments" "onggi_tier_missing_segments" Count
            "Segments that values are in and whose files are missing.";
        TIER_BYTES = Gauge "tier_bytes" "onggi_tier_bytes" Bytes
            "Bytes of segments.";
        TIER_LIVE_BYTES = Gauge "tier_live_bytes" "onggi_tier_live_bytes" Bytes
            "Bytes of values in use.";
        TIER_DEAD_BYTES = Gauge "tier_dead_bytes" "onggi_tier_dead_bytes" Bytes
            "Bytes of values that nothing uses any more.";
        TIER_PINNED_BYTES = Gauge "tier_pinned_bytes" "onggi_tier_pinned_bytes" Bytes
            "Dead bytes that a checkpoint still needs.";
        TIER_WAITING_BYTES = Gauge "tier_waiting_bytes" "onggi_tier_waiting_bytes" Bytes
            "Bytes that wait to be written.";
        TIER_DEMOTED_VALUES = Counter "tier_demoted_values" "onggi_tier_demoted_values_total" Count
            "Values moved to the tier.";
        TIER_PROMOTED_VALUES = Counter "tier_promoted_values" "onggi_tier_promoted_values_total" Count
            "Values moved back to memory.";
        TIER_APPENDED_VALUES = Counter "tier_appended_values" "onggi_tier_appended_values_total" Count
            "Values written, cleaning included.";
        TIER_APPENDED_BYTES = Counter "tier_appended_bytes" "onggi_tier_appended_bytes_total" Bytes
            "Their bytes.";
        TIER_CLEANED_SEGMENTS = Counter "tier_cleaned_segments" "onggi_tier_cleaned_segments_total" Count
            "Segments cleaned.";
        TIER_CLEANING_BYTES = Counter "tier_cleaning_bytes" "onggi_tier_cleaning_bytes_total" Bytes
            "Live bytes that cleaning has moved.";
        TIER_READ_VALUES = Counter "tier_read_values" "onggi_tier_read_values_total" Count
            "Values read.";
        TIER_FAILED_READS = Counter "tier_failed_reads" "onggi_tier_failed_reads_total" Count
            "Reads that failed.";
        TIER_SCRUBBED_SEGMENTS = Counter "tier_scrubbed_segments" "onggi_tier_scrubbed_segments_total" Count
            "Segments that scrubs have read.";
        TIER_SCRUBBED_BYTES = Counter "tier_scrubbed_bytes" "onggi_tier_scrubbed_bytes_total" Bytes
            "Their bytes.";
        TIER_SCRUB_ROUNDS = Counter "tier_scrub_rounds" "onggi_tier_scrub_rounds_total" Count
            "Scrubs of the whole tier.";
        TIER_DAMAGED_BYTES = Gauge "tier_damaged_bytes" "onggi_tier_damaged_bytes" Bytes
            "Bytes of values that the last scrub could not read.";
    }
    "stats" {
        TOTAL_CONNECTIONS_RECEIVED = Counter "total_connections_received" "redis_connections_received_total" Count
            "Accepted connections.";
        TOTAL_COMMANDS_PROCESSED = Counter "total_commands_processed" "redis_commands_processed_total" Count
            "Commands.";
        INSTANTANEOUS_OPS_PER_SEC = Gauge "instantaneous_ops_per_sec" "redis_instantaneous_ops_per_sec" Count
            "Commands a second, over the last 1.6 s.";
        TOTAL_NET_INPUT_BYTES = Counter "total_net_input_bytes" "redis_net_input_bytes_total" Bytes
            "Bytes received from clients.";
        TOTAL_NET_OUTPUT_BYTES = Counter "total_net_output_bytes" "redis_net_output_bytes_total" Bytes
            "Bytes sent to clients.";
        TOTAL_NET_REPL_INPUT_BYTES = Counter "total_net_repl_input_bytes" "redis_net_repl_input_bytes_total" Bytes
            "Zero: a server has no replicas.";
        TOTAL_NET_REPL_OUTPUT_BYTES = Counter "total_net_repl_output_bytes" "redis_net_repl_output_bytes_total" Bytes
            "Zero, likewise.";
        INSTANTANEOUS_INPUT_KBPS = Gauge "instantaneous_input_kbps" "redis_instantaneous_input_kbps" KibibytesPerSecond
            "KiB received a second, over the last 1.6 s.";
        INSTANTANEOUS_OUTPUT_KBPS = Gauge "instantaneous_output_kbps"
            "redis_instantaneous_output_kbps" KibibytesPerSecond
            "KiB sent a second, over the last 1.6 s.";
        INSTANTANEOUS_INPUT_REPL_KBPS = Gauge "instantaneous_input_repl_kbps"
            "redis_instantaneous_input_repl_kbps" KibibytesPerSecond
            "Zero: a server has no replicas.";
        INSTANTANEOUS_OUTPUT_REPL_KBPS = Gauge "instantaneous_output_repl_kbps"
            "redis_instantaneous_output_repl_kbps" KibibytesPerSecond
            "Zero, likewise.";
        LONGEST_TURN_USEC = Gauge "longest_turn_usec" "onggi_longest_turn_seconds" Microseconds
            "Longest turn of a worker since the start, or since CONFIG RESETSTAT.";
        LONGEST_TURN_CPU_USEC = Gauge "longest_turn_cpu_usec" "onggi_longest_turn_cpu_seconds" Microseconds
            "Longest time of a processor in one turn.";
        REJECTED_CONNECTIONS = Counter "rejected_connections" "redis_rejected_connections_total" Count
            "Connections beyond maxclients.";
        SYNC_FULL = Counter "sync_full" "redis_replica_resyncs_full" Count
            "Zero: a server has no replicas.";
        SYNC_PARTIAL_OK = Counter "sync_partial_ok" "redis_replica_partial_resync_accepted" Count
            "Zero, likewise.";
        SYNC_PARTIAL_ERR = Counter "sync_partial_err" "redis_replica_partial_resync_denied" Count
            "Zero, likewise.";
        EXPIRED_KEYS = Counter "expired_keys" "redis_expired_keys_total" Count
            "Keys removed since their time had come.";
        EXPIRED_STALE_PERC = Gauge "expired_stale_perc" "redis_expired_stale_percentage" Percent
            "Zero: a due key is removed at once.";
        EXPIRED_TIME_CAP_REACHED_COUNT = Counter "expired_time_cap_reached_count"
            "redis_expired_time_cap_reached_total" Count
            "Zero, likewise.";
        EVICTED_KEYS = Counter "evicted_keys" "redis_evicted_keys_total" Count
            "Keys evicted by maxmemory-policy.";
        EVICTED_CLIENTS = Counter "evicted_clients" "redis_evicted_clients_total" Count
            "Clients closed by maxmemory-clients.";
        EVICTED_SCRIPTS = Counter "evicted_scripts" "redis_evicted_scripts_total" Count
            "Cached scripts dropped for newer ones.";
        TOTAL_EVICTION_EXCEEDED_TIME = Counter "total_eviction_exceeded_time"
            "redis_total_eviction_exceeded_time" Milliseconds
            "Zero; kept for tools that read it.";
        CURRENT_EVICTION_EXCEEDED_TIME = Gauge "current_eviction_exceeded_time"
            "redis_current_eviction_exceeded_time" Milliseconds
            "Zero; kept for tools that read it.";
        KEYSPACE_HITS = Counter "keyspace_hits" "redis_keyspace_hits_total" Count
            "Reads of keys that were there.";
        KEYSPACE_MISSES = Counter "keyspace_misses" "redis_keyspace_misses_total" Count
            "Reads of keys that were not.";
        PUBSUB_CHANNELS = Gauge "pubsub_channels" "redis_pubsub_channels" Count
            "Channels with subscribers.";
        PUBSUB_PATTERNS = Gauge "pubsub_patterns" "redis_pubsub_patterns" Count
            "Patterns with subscribers.";
        PUBSUBSHARD_CHANNELS = Gauge "pubsubshard_channels" "redis_pubsubshard_channels" Count
            "Shard channels with subscribers.";
        LATEST_FORK_USEC = Gauge "latest_fork_usec" "redis_latest_fork_seconds" Microseconds
            "Duration of the last fork: 0, there is none.";
        TOTAL_FORKS = Counter "total_forks" "redis_forks_total" Count
            "Zero: there is no fork.";
        MIGRATE_CACHED_SOCKETS = Gauge "migrate_cached_sockets" "redis_migrate_cached_sockets_total" Count
            "Zero: MIGRATE keeps no sockets.";
        SLAVE_EXPIRES_TRACKED_KEYS = Gauge "slave_expires_tracked_keys" "redis_slave_expires_tracked_keys" Count
            "Zero; kept for tools that read it.";
        ACTIVE_DEFRAG_HITS = Counter "active_defrag_hits" "redis_defrag_hits" Count
            "Zero: pages are compacted as part of writes.";
        ACTIVE_DEFRAG_MISSES = Counter "active_defrag_misses" "redis_defrag_misses" Count
            "Zero, likewise.";
        ACTIVE_DEFRAG_KEY_HITS = Counter "active_defrag_key_hits" "redis_defrag_key_hits" Count
            "Zero, likewise.";
        ACTIVE_DEFRAG_KEY_MISSES = Counter "active_defrag_key_misses" "redis_defrag_key_misses" Count
            "Zero, likewise.";
        TOTAL_ACTIVE_DEFRAG_TIME = Counter "total_active_defrag_time" "redis_total_active_defrag_time" Milliseconds
            "Zero, likewise.";
        CURRENT_ACTIVE_DEFRAG_TIME = Gauge "current_active_defrag_time" "redis_current_active_defrag_time" Milliseconds
            "Zero, likewise.";
        TRACKING_TOTAL_KEYS = Gauge "tracking_total_keys" "redis_tracking_total_keys" Count
            "Keys that clients with CLIENT TRACKING have read.";
        TRACKING_TOTAL_ITEMS = Gauge "tracking_total_items" "redis_tracking_total_items" Count
            "Pairs of such a key and a client.";
        TRACKING_TOTAL_PREFIXES = Gauge "tracking_total_prefixes" "redis_tracking_total_prefixes" Count
            "Prefixes that clients track.";
        UNEXPECTED_ERROR_REPLIES = Counter "unexpected_error_replies" "redis_unexpected_error_replies" Count
            "Error replies without a known reason.";
        TOTAL_ERROR_REPLIES = Counter "total_error_replies" "redis_total_error_replies" Count
            "Error replies.";
        DUMP_PAYLOAD_SANITIZATIONS = Counter "dump_payload_sanitizations" "redis_dump_payload_sanitizations" Count
            "Zero: every payload is checked as it is read.";
        TOTAL_READS_PROCESSED = Counter "total_reads_processed" "redis_total_reads_processed" Count
            "Reads from sockets.";
        TOTAL_WRITES_PROCESSED = Counter "total_writes_processed" "redis_total_writes_processed" Count
            "Writes to sockets.";
        IO_THREADED_READS_PROCESSED = Counter "io_threaded_reads_processed" "redis_io_threaded_reads_processed" Count
            "Zero: workers do their own input and output.";
        IO_THREADED_WRITES_PROCESSED = Counter "io_threaded_writes_processed" "redis_io_threaded_writes_processed" Count
            "Zero, likewise.";
        CLIENT_QUERY_BUFFER_LIMIT_DISCONNECTIONS = Counter "client_query_buffer_limit_disconnections"
            "redis_client_query_buffer_limit_disconnections_total" Count
            "Clients closed by client-query-buffer-limit.";
        CLIENT_OUTPUT_BUFFER_LIMIT_DISCONNECTIONS = Counter "client_output_buffer_limit_disconnections"
            "redis_client_output_buffer_limit_disconnections_total" Count
            "Clients closed by client-output-buffer-limit.";
        ACL_ACCESS_DENIED_AUTH = Counter "acl_access_denied_auth" "redis_acl_access_denied_auth_total" Count
            "Refused logins.";
        ACL_ACCESS_DENIED_CMD = Counter "acl_access_denied_cmd" "redis_acl_access_denied_cmd_total" Count
            "Commands refused to users.";
        ACL_ACCESS_DENIED_KEY = Counter "acl_access_denied_key" "redis_acl_access_denied_key_total" Count
            "Commands refused for their keys.";
        ACL_ACCESS_DENIED_CHANNEL = Counter "acl_access_denied_channel" "redis_acl_access_denied_channel_total" Count
            "Commands refused for their channels.";
        ACL_ACCESS_DENIED_TLS_CERT = Counter "acl_access_denied_tls_cert" "redis_acl_access_denied_tls_cert_total" Count
            "Certificates that name no user.";
        ACL_ACCESS_DENIED_DB = Counter "acl_access_denied_db" "redis_acl_access_denied_db_total" Count
            "Commands refused for their database.";
    }
    "replication" {
        ROLE = Fact "role" "" Text
            "master, or slave of a primary.";
        CONNECTED_SLAVES = Gauge "connected_slaves" "redis_connected_slaves" Count
            "Connected replicas.";
        REPLICAS_WAITING_PSYNC = Gauge "replicas_waiting_psync" "onggi_replicas_waiting_psync" Count
            "Zero: a server has no replicas.";
        MASTER_FAILOVER_STATE = Fact "master_failover_state" "" Text
            "no-failover.";
        MASTER_REPLID = Fact "master_replid" "" Text
            "Name of the history of changes.";
        MASTER_REPLID2 = Fact "master_replid2" "" Text
            "Name of the history before a promotion.";
        MASTER_REPL_OFFSET = Gauge "master_repl_offset" "redis_master_repl_offset" Bytes
            "Bytes of the replication stream.";
        SECOND_REPL_OFFSET = Gauge "second_repl_offset" "redis_second_repl_offset" Bytes
            "Up to where that history holds; -1 without one.";
        REPL_BACKLOG_ACTIVE = Gauge "repl_backlog_active" "redis_repl_backlog_is_active" Switch
            "Zero: a server has no replicas.";
        REPL_BACKLOG_SIZE = Gauge "repl_backlog_size" "redis_replication_backlog_bytes" Bytes
            "Zero, likewise.";
        REPL_BACKLOG_FIRST_BYTE_OFFSET = Gauge "repl_backlog_first_byte_offset"
            "redis_repl_backlog_first_byte_offset" Bytes
            "Zero, likewise.";
        REPL_BACKLOG_HISTLEN = Gauge "repl_backlog_histlen" "redis_repl_backlog_history_bytes" Bytes
            "Zero, likewise.";
        MASTER_HOST = Fact "master_host" "" Text
            "Host of the primary.";
        MASTER_PORT = Fact "master_port" "" Text
            "Its port.";
        MASTER_LINK_STATUS = Fact "master_link_status" "" Text
            "up, or down.";
        MASTER_LAST_IO_SECONDS_AGO = Gauge "master_last_io_seconds_ago" "redis_master_last_io_seconds_ago" Seconds
            "Time since the primary has sent something; -1 without a connection.";
        MASTER_SYNC_IN_PROGRESS = Gauge "master_sync_in_progress" "redis_master_sync_in_progress" Switch
            "1 while a copy of the primary is received.";
        SLAVE_READ_REPL_OFFSET = Gauge "slave_read_repl_offset" "redis_slave_read_repl_offset" Bytes
            "Bytes of the primary's stream that were received.";
        SLAVE_REPL_OFFSET = Gauge "slave_repl_offset" "redis_slave_repl_offset" Bytes
            "Bytes of the primary's stream that were applied.";
        REPLICAS_REPL_BUFFER_SIZE = Gauge "replicas_repl_buffer_size" "redis_replicas_repl_buffer_size" Bytes
            "Zero; kept for tools that read it.";
        REPLICAS_REPL_BUFFER_PEAK = Gauge "replicas_repl_buffer_peak" "redis_replicas_repl_buffer_peak" Bytes
            "Zero; kept for tools that read it.";
        MASTER_SYNC_TOTAL_BYTES = Gauge "master_sync_total_bytes" "redis_master_sync_total_bytes" Bytes
            "Bytes of the copy; 0 if the primary does not say.";
        MASTER_SYNC_READ_BYTES = Gauge "master_sync_read_bytes" "redis_master_sync_read_bytes" Bytes
            "Bytes of it that were received.";
        MASTER_SYNC_LEFT_BYTES = Gauge "master_sync_left_bytes" "redis_master_sync_left_bytes" Bytes
            "Bytes of it that are left.";
        MASTER_SYNC_PERC = Gauge "master_sync_perc" "redis_master_sync_perc" Percent
            "Share that was received.";
        MASTER_SYNC_LAST_IO_SECONDS_AGO = Gauge "master_sync_last_io_seconds_ago"
            "redis_master_sync_last_io_seconds_ago" Seconds
            "Time since a part of the copy has come.";
        MASTER_LINK_DOWN_SINCE_SECONDS = Gauge "master_link_down_since_seconds"
            "redis_master_link_down_since_seconds" Seconds
            "How long the primary has not been reached.";
        SLAVE_PRIORITY = Gauge "slave_priority" "redis_slave_priority" Count
            "Zero: Sentinel is not to promote this server.";
        SLAVE_READ_ONLY = Gauge "slave_read_only" "redis_slave_read_only" Switch
            "1 if clients cannot write to this replica.";
        REPLICA_ANNOUNCED = Gauge "replica_announced" "onggi_replica_announced" Switch
            "1 if the primary lists this replica.";
    }
    "cpu" {
        USED_CPU_SYS = Counter "used_cpu_sys" "redis_cpu_sys_seconds_total" Seconds
            "Processor time in the system.";
        USED_CPU_USER = Counter "used_cpu_user" "redis_cpu_user_seconds_total" Seconds
            "Processor time in the program.";
        USED_CPU_SYS_CHILDREN = Counter "used_cpu_sys_children" "redis_cpu_sys_children_seconds_total" Seconds
            "The same of ended child processes.";
        USED_CPU_USER_CHILDREN = Counter "used_cpu_user_children" "redis_cpu_user_children_seconds_total" Seconds
            "The same of ended child processes.";
    }
    "cluster" {
        CLUSTER_ENABLED = Gauge "cluster_enabled" "redis_cluster_enabled" Switch
            "Zero: the server is no part of a cluster.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rows_are_consistent() {
        let fields: BTreeSet<_> = TABLE.iter().map(|row| row.field).collect();
        assert_eq!(fields.len(), TABLE.len());
        let measured = || TABLE.iter().filter(|row| row.kind != Kind::Fact);
        let names: Vec<_> = measured().map(|row| row.metric).chain(FAMILIES.iter().map(|row| row.metric)).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        for row in TABLE {
            assert_eq!(row.kind == Kind::Fact, row.metric.is_empty(), "{row:?}");
            assert_eq!(row.kind == Kind::Fact, row.unit == Unit::Text, "{row:?}");
            assert!(is_name(row.metric), "{row:?}");
            assert!(row.help.ends_with('.') && !row.help.contains(['|', '\n', '\\']), "{row:?}");
            // What exporters call a counter without the suffix stays as it is.
            let is_own_counter = row.kind == Kind::Counter && row.metric.starts_with("onggi_");
            assert!(!is_own_counter || row.metric.ends_with("_total"), "{row:?}");
        }
    }
}
