//! Figures of INFO as metrics, by the table of `base`: names of `redis_exporter` where they mean the same, `onggi_` for
//! others.

use crate::figures::Figures;
use crate::replies;
use base::figures::{FAMILIES, Family, Kind, TABLE, Unit};
use proto::reply::Value as Reply;
use std::fmt::{Display, Write};

/// What a label of `redis_instance_info` shows.
const INSTANCE: [&str; 11] = [
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

/// All metrics. Of a server that does not serve yet, `redis_up 0` alone. `durations` is the reply of LATENCY HISTOGRAM.
pub fn render(figures: Option<&Figures<'_>>, durations: Option<&Reply>, format: Format) -> String {
    let mut text = Text { text: String::new(), format };
    all(&mut text, figures);
    if let Some(figures) = figures {
        histograms(&mut text, figures, durations);
    }
    if format == Format::OpenMetrics {
        text.text.push_str("# EOF\n");
    }
    text.text
}

/// The word of a type. A fact is no metric.
pub fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Gauge => "gauge",
        Kind::Counter => "counter",
        Kind::Fact => "fact",
    }
}

/// Takes metrics one by one.
pub trait Sink {
    /// What the next samples are.
    fn head(&mut self, name: &str, kind: &str, help: &str);

    /// One value.
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64);
}

/// Metrics that neither table has: name, help and unit.
pub const OTHERS: [(&str, &str, Unit); 3] = [
    ("redis_up", "1 while the server serves.", Unit::Switch),
    ("redis_instance_info", "Facts about the server, as labels.", Unit::Switch),
    ("redis_start_time_seconds", "When the server was started.", Unit::UnixTime),
];

/// All metrics except histograms, in the order of the tables. Of a server that does not serve yet, `redis_up 0` alone.
pub fn all(sink: &mut impl Sink, figures: Option<&Figures<'_>>) {
    let [(up, up_help, _), (instance, instance_help, _), (start, start_help, _)] = OTHERS;
    sink.head(up, "gauge", up_help);
    sink.sample(up, &[], f64::from(u8::from(figures.is_some())));
    let Some(figures) = figures else { return };
    let labels: Vec<_> = INSTANCE.iter().filter_map(|name| Some((*name, figures.get(name)?))).collect();
    sink.head(instance, "gauge", instance_help);
    sink.sample(instance, &labels, 1.0);
    if let (Some(now), Some(uptime)) = (figures.number("server_time_usec"), figures.number("uptime_in_seconds")) {
        sink.head(start, "gauge", start_help);
        sink.sample(start, &[], (now / 1e6 - uptime).round());
    }
    for row in TABLE.iter().filter(|row| row.kind != Kind::Fact) {
        if let Some(value) = figures.number(row.field) {
            sink.head(row.metric, kind_word(row.kind), row.help);
            sink.sample(row.metric, &[], value * row.scale());
        }
    }
    FAMILIES.iter().for_each(|row| family(sink, figures, row));
}

/// Fields with parts: `db0:keys=1,expires=0`, `latency_percentiles_usec_get:p50=1.003`.
fn family(sink: &mut impl Sink, figures: &Figures<'_>, row: &Family) {
    sink.head(row.metric, kind_word(row.kind), row.help);
    for (rest, list) in figures.lists(row.beginning) {
        // `db` begins names of other fields too; a database has a number.
        let is_database = row.beginning == "db";
        if is_database && !rest.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let name = if is_database { format!("db{rest}") } else { rest.to_owned() };
        let Some(part) = row.part else {
            for (percentile, value) in list.numbers() {
                if let Some(percent) = percentile.strip_prefix('p').and_then(|text| text.parse::<f64>().ok()) {
                    let quantile = format!("{}", percent / 100.0);
                    sink.sample(row.metric, &[(row.label, &name), ("quantile", &quantile)], value * row.scale);
                }
            }
            continue;
        };
        if let Some(value) = list.number(part) {
            sink.sample(row.metric, &[(row.label, &name)], value * row.scale);
        }
    }
}

/// The name of the histograms.
pub const HISTOGRAM: &str = "redis_commands_latencies_usec";
/// What they are.
pub const HISTOGRAM_HELP: &str = "Calls of a command by their time, in microseconds.";

/// Calls by command and duration, of the reply of LATENCY HISTOGRAM.
fn histograms(text: &mut Text, figures: &Figures<'_>, durations: Option<&Reply>) {
    text.head(HISTOGRAM, "histogram", HISTOGRAM_HELP);
    let (bucket, count, sum) =
        (format!("{HISTOGRAM}_bucket"), format!("{HISTOGRAM}_count"), format!("{HISTOGRAM}_sum"));
    for (command, calls, buckets) in durations.map(replies::histograms).unwrap_or_default() {
        for (upper, below) in buckets {
            // Both formats compare the text of this label; OpenMetrics wants the point.
            text.line(&bucket, &[("cmd", &command), ("le", &format!("{upper}.0"))], below);
        }
        text.line(&bucket, &[("cmd", &command), ("le", "+Inf")], calls);
        text.line(&count, &[("cmd", &command)], calls);
        let total = figures.lists("cmdstat_").find(|(name, _)| *name == command);
        text.line(&sum, &[("cmd", &command)], total.and_then(|(_, list)| list.number("usec")).unwrap_or_default());
    }
}

/// Lines of a format.
#[derive(Default)]
struct Text {
    text: String,
    format: Format,
}

impl Sink for Text {
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

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.line(name, labels, value);
    }
}

impl Text {
    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
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
