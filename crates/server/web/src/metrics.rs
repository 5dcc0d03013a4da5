//! Figures of INFO as metrics: names of `redis_exporter` where they mean the same, `onggi_` for others.

use crate::figures::Figures;
use std::fmt::{Display, Write};

/// Whether a figure only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It goes up and down.
    Gauge,
    /// It grows from the start of the server, or from CONFIG RESETSTAT.
    Counter,
}

/// A metric and the field of INFO that it shows.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Field of INFO.
    pub field: &'static str,
    /// Name.
    pub name: &'static str,
    /// Kind.
    pub kind: Kind,
    /// What the field is multiplied by.
    pub scale: f64,
    /// What it is, with its unit.
    pub help: &'static str,
}

const fn metric(field: &'static str, name: &'static str, kind: Kind, scale: f64, help: &'static str) -> Metric {
    Metric { field, name, kind, scale, help }
}

/// Metrics without labels. Other fields of INFO that are numbers follow as gauges named `onggi_` and the field.
pub const TABLE: &[Metric] = &[
    metric("uptime_in_seconds", "redis_uptime_in_seconds", Kind::Gauge, 1.0, "Seconds since the start."),
    metric("process_id", "redis_process_id", Kind::Gauge, 1.0, "Number of the process."),
    metric("connected_clients", "redis_connected_clients", Kind::Gauge, 1.0, "Client connections."),
    metric("maxclients", "redis_max_clients", Kind::Gauge, 1.0, "Most client connections (maxclients)."),
    metric("blocked_clients", "redis_blocked_clients", Kind::Gauge, 1.0, "Clients that wait in a blocking command."),
    metric("tracking_clients", "redis_tracking_clients", Kind::Gauge, 1.0, "Clients with CLIENT TRACKING."),
    metric("pubsub_clients", "redis_pubsub_clients", Kind::Gauge, 1.0, "Clients with subscriptions."),
    metric("watching_clients", "redis_watching_clients", Kind::Gauge, 1.0, "Clients with watched keys."),
    metric(
        "clients_in_timeout_table",
        "redis_clients_in_timeout_table",
        Kind::Gauge,
        1.0,
        "Clients that wait with a timeout.",
    ),
    metric("total_watched_keys", "redis_total_watched_keys", Kind::Gauge, 1.0, "Watched keys."),
    metric("total_blocking_keys", "redis_total_blocking_keys", Kind::Gauge, 1.0, "Keys that clients wait for."),
    metric(
        "total_blocking_keys_on_nokey",
        "redis_total_blocking_keys_on_nokey",
        Kind::Gauge,
        1.0,
        "Keys that clients wait for, and for whose deletion too.",
    ),
    metric(
        "client_recent_max_input_buffer",
        "redis_client_recent_max_input_buffer_bytes",
        Kind::Gauge,
        1.0,
        "Longest input buffer of a client.",
    ),
    metric(
        "client_recent_max_output_buffer",
        "redis_client_recent_max_output_buffer_bytes",
        Kind::Gauge,
        1.0,
        "Longest output buffer of a client.",
    ),
    metric(
        "used_memory",
        "redis_memory_used_bytes",
        Kind::Gauge,
        1.0,
        "Memory of data, tables and buffers, which maxmemory limits.",
    ),
    metric("used_memory_rss", "redis_memory_used_rss_bytes", Kind::Gauge, 1.0, "Resident memory of the process."),
    metric("used_memory_peak", "redis_memory_used_peak_bytes", Kind::Gauge, 1.0, "Highest used_memory."),
    metric(
        "used_memory_overhead",
        "redis_memory_used_overhead_bytes",
        Kind::Gauge,
        1.0,
        "Memory other than keys and values.",
    ),
    metric("used_memory_startup", "redis_memory_used_startup_bytes", Kind::Gauge, 1.0, "Memory of the program itself."),
    metric("used_memory_dataset", "redis_memory_used_dataset_bytes", Kind::Gauge, 1.0, "Memory of keys and values."),
    metric("used_memory_lua", "redis_memory_used_lua_bytes", Kind::Gauge, 1.0, "Memory of the Lua interpreters."),
    metric("used_memory_scripts", "redis_memory_used_scripts_bytes", Kind::Gauge, 1.0, "Memory of cached scripts."),
    metric("number_of_cached_scripts", "redis_number_of_cached_scripts", Kind::Gauge, 1.0, "Cached scripts."),
    metric("maxmemory", "redis_memory_max_bytes", Kind::Gauge, 1.0, "The memory budget (maxmemory); 0 is none."),
    metric(
        "mem_fragmentation_ratio",
        "redis_mem_fragmentation_ratio",
        Kind::Gauge,
        1.0,
        "Resident memory divided by used memory and the program.",
    ),
    metric(
        "mem_fragmentation_bytes",
        "redis_mem_fragmentation_bytes",
        Kind::Gauge,
        1.0,
        "Resident memory beyond used memory and the program.",
    ),
    metric("mem_clients_normal", "redis_mem_clients_normal", Kind::Gauge, 1.0, "Memory of client buffers."),
    metric(
        "mem_not_counted_for_evict",
        "redis_mem_not_counted_for_eviction_bytes",
        Kind::Gauge,
        1.0,
        "Memory that maxmemory does not count.",
    ),
    metric("loading", "redis_loading_dump_file", Kind::Gauge, 1.0, "1 while data is loaded."),
    metric(
        "rdb_changes_since_last_save",
        "redis_rdb_changes_since_last_save",
        Kind::Gauge,
        1.0,
        "Changes since the last checkpoint.",
    ),
    metric(
        "rdb_bgsave_in_progress",
        "redis_rdb_bgsave_in_progress",
        Kind::Gauge,
        1.0,
        "1 while a checkpoint is taken.",
    ),
    metric(
        "rdb_last_save_time",
        "redis_rdb_last_save_timestamp_seconds",
        Kind::Gauge,
        1.0,
        "When the last checkpoint was taken.",
    ),
    metric(
        "rdb_last_bgsave_status",
        "redis_rdb_last_bgsave_status",
        Kind::Gauge,
        1.0,
        "1 if the last checkpoint succeeded.",
    ),
    metric(
        "rdb_last_bgsave_time_sec",
        "redis_rdb_last_bgsave_duration_sec",
        Kind::Gauge,
        1.0,
        "How long the last checkpoint took.",
    ),
    metric(
        "rdb_current_bgsave_time_sec",
        "redis_rdb_current_bgsave_duration_sec",
        Kind::Gauge,
        1.0,
        "How long the running checkpoint has taken; -1 without one.",
    ),
    metric("rdb_saves", "redis_rdb_saves_total", Kind::Counter, 1.0, "Checkpoints since the start."),
    metric(
        "rdb_last_load_keys_loaded",
        "redis_rdb_last_load_loaded_keys",
        Kind::Gauge,
        1.0,
        "Keys that the start has loaded.",
    ),
    metric(
        "rdb_last_load_keys_expired",
        "redis_rdb_last_load_expired_keys",
        Kind::Gauge,
        1.0,
        "Keys that the start has dropped as expired.",
    ),
    metric("aof_enabled", "redis_aof_enabled", Kind::Gauge, 1.0, "1 with the log on."),
    metric(
        "aof_rewrite_in_progress",
        "redis_aof_rewrite_in_progress",
        Kind::Gauge,
        1.0,
        "1 while a checkpoint replaces the log.",
    ),
    metric(
        "aof_rewrite_scheduled",
        "redis_aof_rewrite_scheduled",
        Kind::Gauge,
        1.0,
        "1 if such a checkpoint is to follow.",
    ),
    metric(
        "aof_last_rewrite_time_sec",
        "redis_aof_last_rewrite_duration_sec",
        Kind::Gauge,
        1.0,
        "How long the last one took.",
    ),
    metric(
        "aof_current_rewrite_time_sec",
        "redis_aof_current_rewrite_duration_sec",
        Kind::Gauge,
        1.0,
        "How long the running one has taken; -1 without one.",
    ),
    metric(
        "aof_last_bgrewrite_status",
        "redis_aof_last_bgrewrite_status",
        Kind::Gauge,
        1.0,
        "1 if the last one succeeded.",
    ),
    metric("aof_last_write_status", "redis_aof_last_write_status", Kind::Gauge, 1.0, "1 if the log takes changes."),
    metric("aof_current_size", "redis_aof_current_size_bytes", Kind::Gauge, 1.0, "Bytes of the log."),
    metric("aof_base_size", "redis_aof_base_size_bytes", Kind::Gauge, 1.0, "Bytes of the log at the last checkpoint."),
    metric(
        "aof_buffer_length",
        "redis_aof_buffer_length",
        Kind::Gauge,
        1.0,
        "Bytes of the log that are not written yet.",
    ),
    metric("aof_pending_bio_fsync", "redis_aof_pending_bio_fsync", Kind::Gauge, 1.0, "1 while a sync is due."),
    metric("aof_delayed_fsync", "redis_aof_delayed_fsync", Kind::Counter, 1.0, "Syncs that were late."),
    metric("pubsub_channels", "redis_pubsub_channels", Kind::Gauge, 1.0, "Channels with subscribers."),
    metric("pubsub_patterns", "redis_pubsub_patterns", Kind::Gauge, 1.0, "Patterns with subscribers."),
    metric("pubsubshard_channels", "redis_pubsubshard_channels", Kind::Gauge, 1.0, "Shard channels with subscribers."),
    metric(
        "latest_fork_usec",
        "redis_latest_fork_seconds",
        Kind::Gauge,
        1e-6,
        "Duration of the last fork: 0, there is none.",
    ),
    metric(
        "instantaneous_ops_per_sec",
        "redis_instantaneous_ops_per_sec",
        Kind::Gauge,
        1.0,
        "Commands a second, over the last 1.6 s.",
    ),
    metric("master_repl_offset", "redis_master_repl_offset", Kind::Gauge, 1.0, "Bytes of the replication stream."),
    metric("connected_slaves", "redis_connected_slaves", Kind::Gauge, 1.0, "Connected replicas."),
    metric(
        "total_connections_received",
        "redis_connections_received_total",
        Kind::Counter,
        1.0,
        "Accepted connections.",
    ),
    metric(
        "rejected_connections",
        "redis_rejected_connections_total",
        Kind::Counter,
        1.0,
        "Connections beyond maxclients.",
    ),
    metric("total_commands_processed", "redis_commands_processed_total", Kind::Counter, 1.0, "Commands."),
    metric("total_net_input_bytes", "redis_net_input_bytes_total", Kind::Counter, 1.0, "Bytes received from clients."),
    metric("total_net_output_bytes", "redis_net_output_bytes_total", Kind::Counter, 1.0, "Bytes sent to clients."),
    metric("expired_keys", "redis_expired_keys_total", Kind::Counter, 1.0, "Keys removed since their time had come."),
    metric("evicted_keys", "redis_evicted_keys_total", Kind::Counter, 1.0, "Keys evicted by maxmemory-policy."),
    metric(
        "evicted_clients",
        "redis_evicted_clients_total",
        Kind::Counter,
        1.0,
        "Clients closed by maxmemory-clients.",
    ),
    metric("keyspace_hits", "redis_keyspace_hits_total", Kind::Counter, 1.0, "Reads of keys that were there."),
    metric("keyspace_misses", "redis_keyspace_misses_total", Kind::Counter, 1.0, "Reads of keys that were not."),
    metric("total_error_replies", "redis_total_error_replies", Kind::Counter, 1.0, "Error replies."),
    metric(
        "unexpected_error_replies",
        "redis_unexpected_error_replies",
        Kind::Counter,
        1.0,
        "Error replies without a known reason.",
    ),
    metric("total_reads_processed", "redis_total_reads_processed", Kind::Counter, 1.0, "Reads from sockets."),
    metric("total_writes_processed", "redis_total_writes_processed", Kind::Counter, 1.0, "Writes to sockets."),
    metric("acl_access_denied_auth", "redis_acl_access_denied_auth_total", Kind::Counter, 1.0, "Refused logins."),
    metric("used_cpu_sys", "redis_cpu_sys_seconds_total", Kind::Counter, 1.0, "Processor time in the system."),
    metric("used_cpu_user", "redis_cpu_user_seconds_total", Kind::Counter, 1.0, "Processor time in the program."),
    metric(
        "used_cpu_sys_children",
        "redis_cpu_sys_children_seconds_total",
        Kind::Counter,
        1.0,
        "The same of ended child processes.",
    ),
    metric(
        "used_cpu_user_children",
        "redis_cpu_user_children_seconds_total",
        Kind::Counter,
        1.0,
        "The same of ended child processes.",
    ),
    metric(
        "used_cpu_sys_main_thread",
        "redis_cpu_sys_main_thread_seconds_total",
        Kind::Counter,
        1.0,
        "The same of the main thread.",
    ),
    metric(
        "used_cpu_user_main_thread",
        "redis_cpu_user_main_thread_seconds_total",
        Kind::Counter,
        1.0,
        "The same of the main thread.",
    ),
    metric("log_syncs", "onggi_log_syncs_total", Kind::Counter, 1.0, "Syncs of the log."),
    metric(
        "log_unsynced_bytes",
        "onggi_log_unsynced_bytes",
        Kind::Gauge,
        1.0,
        "Bytes of the log that are not durable yet.",
    ),
    metric(
        "log_oldest_unsynced_ms",
        "onggi_log_oldest_unsynced_seconds",
        Kind::Gauge,
        1e-3,
        "Age of the oldest change that is not durable yet.",
    ),
    metric("log_size", "onggi_log_size_bytes", Kind::Gauge, 1.0, "Bytes of all segments of the log."),
    metric("log_segments", "onggi_log_segments", Kind::Gauge, 1.0, "Segments of the log."),
    metric("log_last_sync_usec", "onggi_log_last_sync_seconds", Kind::Gauge, 1e-6, "Duration of the last sync."),
    metric(
        "log_longest_sync_usec",
        "onggi_log_longest_sync_seconds",
        Kind::Gauge,
        1e-6,
        "Duration of the longest sync.",
    ),
    metric("log_failures", "onggi_log_failures_total", Kind::Counter, 1.0, "Failed writes and syncs of the log."),
];

/// Fields that are no figure, or one of the table in other words.
const LEFT_OUT: &[&str] = &[
    "arch_bits",
    "hz",
    "configured_hz",
    "lru_clock",
    "tcp_port",
    "server_time_usec",
    "uptime_in_days",
    "second_repl_offset",
    "redis_version",
    "valkey_version",
    "redis_git_sha1",
    "redis_git_dirty",
    "gcc_version",
    "allocator_version",
];

/// What a label of `redis_instance_info` shows.
const INSTANCE: &[&str] = &[
    "role",
    "redis_version",
    "valkey_version",
    "onggi_version",
    "redis_mode",
    "os",
    "arch_bits",
    "maxmemory_policy",
    "tcp_port",
    "run_id",
    "process_id",
];

/// How metrics are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The text format of Prometheus, version 0.0.4.
    #[default]
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The one that a header `Accept` asks for.
    pub fn accepted(accept: &str) -> Self {
        let asks = accept.split(',').any(|kind| kind.trim().starts_with("application/openmetrics-text"));
        if asks { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// Its media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// All metrics. Of a server that does not serve yet, `redis_up 0` alone.
pub fn render(figures: Option<&Figures<'_>>, format: Format) -> String {
    let mut text = Text { text: String::new(), format };
    text.head("redis_up", "gauge", "1 while the server serves.");
    text.sample("redis_up", &[], u8::from(figures.is_some()));
    figures.iter().for_each(|figures| all(&mut text, figures));
    if format == Format::OpenMetrics {
        text.text.push_str("# EOF\n");
    }
    text.text
}

fn all(text: &mut Text, figures: &Figures<'_>) {
    instance(text, figures);
    for metric in TABLE {
        if let Some(value) = figures.number(metric.field) {
            let kind = if metric.kind == Kind::Counter { "counter" } else { "gauge" };
            text.head(metric.name, kind, metric.help);
            text.sample(metric.name, &[], value * metric.scale);
        }
    }
    databases(text, figures);
    commands(text, figures);
    errors(text, figures);
    latencies(text, figures);
    others(text, figures);
}

fn instance(text: &mut Text, figures: &Figures<'_>) {
    let labels: Vec<_> = INSTANCE.iter().filter_map(|name| Some((*name, figures.get(name)?))).collect();
    text.head("redis_instance_info", "gauge", "Facts about the server, as labels.");
    text.sample("redis_instance_info", &labels, 1);
    if let (Some(now), Some(uptime)) = (figures.number("server_time_usec"), figures.number("uptime_in_seconds")) {
        text.head("redis_start_time_seconds", "gauge", "When the server was started.");
        text.sample("redis_start_time_seconds", &[], (now / 1e6 - uptime).round());
    }
}

/// `db0:keys=1,expires=0,avg_ttl=0`
fn databases(text: &mut Text, figures: &Figures<'_>) {
    let all = figures.lists("db").filter(|(db, _)| db.bytes().all(|byte| byte.is_ascii_digit()));
    let all: Vec<_> = all.map(|(db, list)| (format!("db{db}"), list)).collect();
    for (part, name, scale, help) in [
        ("keys", "redis_db_keys", 1.0, "Keys of a database."),
        ("expires", "redis_db_keys_expiring", 1.0, "Keys of a database that expire."),
        ("avg_ttl", "redis_db_avg_ttl_seconds", 1e-3, "Average time to live of those."),
    ] {
        text.head(name, "gauge", help);
        for (db, list) in &all {
            if let Some(value) = list.number(part) {
                text.sample(name, &[("db", db)], value * scale);
            }
        }
    }
}

/// `cmdstat_get:calls=1,usec=2,usec_per_call=2.00,rejected_calls=0,failed_calls=0`
fn commands(text: &mut Text, figures: &Figures<'_>) {
    for (part, name, scale, help) in [
        ("calls", "redis_commands_total", 1.0, "Calls of a command."),
        ("usec", "redis_commands_duration_seconds_total", 1e-6, "Time of its calls."),
        ("rejected_calls", "redis_commands_rejected_calls_total", 1.0, "Calls refused before they ran."),
        ("failed_calls", "redis_commands_failed_calls_total", 1.0, "Calls that answered an error."),
    ] {
        text.head(name, "counter", help);
        for (command, list) in figures.lists("cmdstat_") {
            if let Some(value) = list.number(part) {
                text.sample(name, &[("cmd", command)], value * scale);
            }
        }
    }
}

/// `errorstat_ERR:count=1`
fn errors(text: &mut Text, figures: &Figures<'_>) {
    text.head("redis_errors_total", "counter", "Error replies by their first word.");
    for (error, list) in figures.lists("errorstat_") {
        if let Some(count) = list.number("count") {
            text.sample("redis_errors_total", &[("err", error)], count);
        }
    }
}

/// `latency_percentiles_usec_get:p50=1.003,p99=1.003,p99.9=1.003`
fn latencies(text: &mut Text, figures: &Figures<'_>) {
    text.head("redis_latency_percentiles_usec", "gauge", "Percentiles of the time of a command, in microseconds.");
    for (command, list) in figures.lists("latency_percentiles_usec_") {
        for (part, value) in list.numbers() {
            if let Some(percent) = part.strip_prefix('p').and_then(|percent| percent.parse::<f64>().ok()) {
                let quantile = format!("{}", percent / 100.0);
                text.sample("redis_latency_percentiles_usec", &[("cmd", command), ("quantile", &quantile)], value);
            }
        }
    }
}

/// Every other field that is a number.
fn others(text: &mut Text, figures: &Figures<'_>) {
    for (field, value) in figures.numbers() {
        if LEFT_OUT.contains(&field) || TABLE.iter().any(|metric| metric.field == field) {
            continue;
        }
        let name = format!("onggi_{field}");
        text.head(&name, "gauge", &format!("The field {field} of INFO."));
        text.sample(&name, &[], value);
    }
}

/// Lines of a format.
#[derive(Default)]
struct Text {
    text: String,
    format: Format,
}

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // In OpenMetrics the family of a counter has its name without the suffix, and a counter without the suffix is
        // none.
        let (name, kind) = match (self.format, kind, name.strip_suffix("_total")) {
            (Format::OpenMetrics, "counter", Some(family)) => (family, kind),
            (Format::OpenMetrics, "counter", None) => (name, "unknown"),
            _ => (name, kind),
        };
        // Writing to a string cannot fail.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(name);
        for (number, (label, value)) in labels.iter().enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"{}\"", escaped(value));
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

/// The value of a label between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests;
