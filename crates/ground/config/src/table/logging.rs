//! What the server reports about itself.

use crate::directive::Directive;
use crate::field::Field;
use crate::field::{choice, flag, integer, optional_path, size};
use crate::inert::Inert;

const SYSLOG: &str = "the log goes to standard output, where systemd's journal collects it, or to logfile";
const NO_CRASH_REPORT: &str = "after a crash the log has one message with place and backtrace, always";

pub(super) static LOG: &[Directive] = &[
    Directive::supported(
        "loglevel",
        choice!(loglevel: LogLevel),
        "notice",
        "",
        "The least important messages that the log has. notice: what happens. warning: only what an operator has to look at.",
    ),
    Directive::supported(
        "logfile",
        optional_path!(logfile),
        "",
        "",
        "The file the log is appended to. Empty for standard output. A file that was renamed or removed is created again by \
         the next message, so logrotate needs no signal; SIGHUP reopens it at once.",
    )
    .at_start(),
    Directive::supported(
        "log-format",
        choice!(log_format: LogFormat),
        "legacy",
        "",
        "The form of a line of the log. legacy: as Redis and Valkey write it, with process id, role, time and level. logfmt: \
         key=value pairs. json: a JSON object.",
    ),
    Directive::supported(
        "log-timestamp-format",
        choice!(log_timestamp_format: LogTime),
        "legacy",
        "",
        "The form of times in the log. legacy: 22 Nov 2026 06:07:35.120. iso8601: 2026-11-22T06:07:35.120Z. milliseconds: since \
         1970. All are in UTC.",
    ),
    Directive::supported(
        "audit-log-file",
        optional_path!(audit_log_file),
        "",
        "",
        "The file of the audit log: logins, denied requests and commands of administrators, one JSON object a line, without \
         passwords and values. Empty for none. A file that was renamed is created again, as with `logfile`.",
    )
    .at_start(),
    Directive::supported(
        "audit-log-max-size",
        size!(audit_log_bytes_max: 0, i64::MAX as u64),
        "100mb",
        "bytes",
        "When the file of the audit log exceeds this size, it is renamed to FILE.1, and a new one begins. 0 leaves rotation \
         to other programs.",
    ),
    Directive::supported(
        "audit-log-max-files",
        integer!(audit_log_files_max: 1, 1000),
        "10",
        "files",
        "How many renamed files of the audit log are kept. The oldest has the highest number.",
    ),
    Directive::not_needed("syslog-enabled", Inert::flag("no"), SYSLOG),
    Directive::not_needed("syslog-ident", Inert::text("onggi"), SYSLOG),
    Directive::not_needed(
        "syslog-facility",
        Inert::choice(
            "local0",
            &["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"],
        ),
        SYSLOG,
    ),
    Directive::not_needed(
        "always-show-logo",
        Inert::flag("no"),
        "the start logs a banner of a few lines and no picture",
    ),
    Directive::not_needed("crash-log-enabled", Inert::flag("yes"), NO_CRASH_REPORT),
    Directive::not_needed("crash-memcheck-enabled", Inert::flag("yes"), NO_CRASH_REPORT),
];

pub(super) static LATENCY: &[Directive] = &[
    Directive::supported(
        "slowlog-log-slower-than",
        integer!(slowlog_slower_than_us: -1, i64::MAX),
        "10000",
        "microseconds",
        "SLOWLOG records a command that runs longer than this; sending the reply is not counted. 0 records every command, \
         -1 none.",
    )
    .alias(&["commandlog-execution-slower-than"]),
    Directive::supported(
        "slowlog-max-len",
        integer!(slowlog_length_max: 0, i64::MAX),
        "128",
        "entries",
        "How many of these records are kept.",
    )
    .alias(&["commandlog-slow-execution-max-len"]),
    Directive::supported(
        "commandlog-request-larger-than",
        integer!(commandlog_request_larger_than_bytes: -1, i64::MAX),
        "1048576",
        "bytes",
        "COMMANDLOG records a command whose request is larger than this. -1 records none.",
    ),
    Directive::supported(
        "commandlog-large-request-max-len",
        integer!(commandlog_request_length_max: 0, i64::MAX),
        "128",
        "entries",
        "How many of these records are kept.",
    ),
    Directive::supported(
        "commandlog-reply-larger-than",
        integer!(commandlog_reply_larger_than_bytes: -1, i64::MAX),
        "1048576",
        "bytes",
        "COMMANDLOG records a command whose reply is larger than this. -1 records none.",
    ),
    Directive::supported(
        "commandlog-large-reply-max-len",
        integer!(commandlog_reply_length_max: 0, i64::MAX),
        "128",
        "entries",
        "How many of these records are kept.",
    ),
    Directive::supported(
        "latency-monitor-threshold",
        integer!(latency_monitor_threshold_ms: 0, i64::MAX),
        "0",
        "milliseconds",
        "LATENCY records events that take at least this long. 0 records none.",
    ),
    Directive::supported(
        "latency-tracking",
        flag!(latency_tracking),
        "yes",
        "",
        "Whether a histogram of latencies is kept for each command, for INFO latencystats and LATENCY HISTOGRAM.",
    ),
    Directive::supported(
        "latency-tracking-info-percentiles",
        Field::Percentiles {
            get: |s| &s.latency_tracking_percentiles,
            set: |s, percentiles| s.latency_tracking_percentiles = percentiles,
        },
        "50 99 99.9",
        "percent",
        "The percentiles of these histograms that INFO latencystats shows.",
    ),
];
