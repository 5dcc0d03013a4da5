//! What the server tells about itself.

use crate::directive::Directive;
use crate::field::Field;
use crate::field::{flag, integer, optional_path};

const SYSLOG: &str = "the log goes to standard output, where systemd's journal collects it, or to logfile";
const NO_CRASH_REPORT: &str = "after a crash the log has one message with place and backtrace, always";
const ONE_FORMAT: &str = "the log has one format";

pub(super) static LOG: &[Directive] = &[
    Directive::not_needed("loglevel", "the log has one level of messages, which is always on"),
    Directive::supported(
        "logfile",
        optional_path!(logfile),
        "",
        "",
        "The file the log is appended to. Empty for standard output.",
    )
    .at_start(),
    Directive::not_needed("log-format", ONE_FORMAT),
    Directive::not_needed("log-timestamp-format", ONE_FORMAT),
    Directive::not_needed("syslog-enabled", SYSLOG),
    Directive::not_needed("syslog-ident", SYSLOG),
    Directive::not_needed("syslog-facility", SYSLOG),
    Directive::not_needed("always-show-logo", "the start logs a banner of a few lines and no picture"),
    Directive::not_needed("crash-log-enabled", NO_CRASH_REPORT),
    Directive::not_needed("crash-memcheck-enabled", NO_CRASH_REPORT),
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
