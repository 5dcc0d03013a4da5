//! The table of figures as instruments of OpenTelemetry, and histograms as its messages.

use super::lock;
use crate::figures::Figures;
use crate::metrics::{self, HISTOGRAM, HISTOGRAM_HELP, OTHERS, Sink};
use crate::{Asked, Facts, replies};
use base::figures::{FAMILIES, Kind, TABLE, Unit};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue as Attribute, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Histogram, HistogramDataPoint, Metric, ResourceMetrics as Message, ScopeMetrics, metric,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{InstrumentKind, ManualReader, Pipeline, SdkMeterProvider, Temporality};
use prost::Message as _;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// What wrote the figures.
const SCOPE: &str = "onggi";

/// The samples of each metric at one time.
#[derive(Default)]
pub struct Snapshot(HashMap<String, Vec<(Vec<KeyValue>, f64)>>);

impl Snapshot {
    /// The metrics of an INFO.
    pub fn of(figures: Option<&Figures<'_>>) -> Self {
        let mut snapshot = Self::default();
        metrics::all(&mut snapshot, figures);
        snapshot
    }
}

impl Sink for Snapshot {
    fn head(&mut self, _: &str, _: &str, _: &str) {}

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let attributes = labels.iter().map(|(label, value)| KeyValue::new((*label).to_owned(), (*value).to_owned()));
        self.0.entry(name.to_owned()).or_default().push((attributes.collect(), value));
    }
}

/// Every metric of the table, read from a snapshot.
pub struct Instruments {
    reader: Reader,
    _provider: SdkMeterProvider,
}

impl Instruments {
    /// Those that show what the snapshot holds when they are collected.
    pub fn new(snapshot: &Arc<Mutex<Snapshot>>, resource: Resource) -> Self {
        let reader = Reader(Arc::new(ManualReader::builder().with_temporality(Temporality::Cumulative).build()));
        let provider = SdkMeterProvider::builder().with_reader(reader.clone()).with_resource(resource).build();
        let meter = provider.meter(SCOPE);
        for (name, help, unit) in OTHERS {
            observe(&meter, snapshot, name, (Kind::Gauge, help, word(unit, name)));
        }
        for row in TABLE.iter().filter(|row| row.kind != Kind::Fact) {
            observe(&meter, snapshot, row.metric, (row.kind, row.help, word(row.unit, row.metric)));
        }
        for row in FAMILIES {
            let unit = if row.metric.contains("_usec") { Unit::Microseconds } else { Unit::Count };
            observe(&meter, snapshot, row.metric, (row.kind, row.help, word(unit, row.metric)));
        }
        Self { reader, _provider: provider }
    }

    /// Reads all.
    pub fn collect(&self, metrics: &mut ResourceMetrics) -> OTelSdkResult {
        self.reader.collect(metrics)
    }
}

/// Makes an instrument.
fn observe(
    meter: &Meter,
    snapshot: &Arc<Mutex<Snapshot>>,
    name: &'static str,
    (kind, help, unit): (Kind, &'static str, &'static str),
) {
    let snapshot = snapshot.clone();
    let observe = move |observer: &dyn opentelemetry::metrics::AsyncInstrument<f64>| {
        for (attributes, value) in lock(&snapshot).0.get(name).into_iter().flatten() {
            observer.observe(*value, attributes);
        }
    };
    match kind {
        Kind::Counter => {
            let counter = meter.f64_observable_counter(name).with_description(help).with_unit(unit);
            counter.with_callback(observe).build();
        }
        Kind::Gauge | Kind::Fact => {
            let gauge = meter.f64_observable_gauge(name).with_description(help).with_unit(unit);
            gauge.with_callback(observe).build();
        }
    }
}

/// A unit as OpenTelemetry names it, after UCUM.
fn word(unit: Unit, metric: &str) -> &'static str {
    match unit {
        Unit::Bytes => "By",
        _ if metric.contains("_seconds") => "s",
        Unit::Seconds | Unit::UnixTime => "s",
        Unit::Milliseconds => "ms",
        Unit::Microseconds => "us",
        Unit::Percent => "%",
        Unit::KibibytesPerSecond => "KiBy/s",
        Unit::Count | Unit::Ratio | Unit::Switch | Unit::State | Unit::Text => "1",
    }
}

/// One reader for the provider, which registers it, and for the thread, which reads.
#[derive(Clone, Debug)]
struct Reader(Arc<ManualReader>);

impl MetricReader for Reader {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, metrics: &mut ResourceMetrics) -> OTelSdkResult {
        self.0.collect(metrics)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}

/// Calls by command and duration as a message. OpenTelemetry has no instrument for histograms that were counted before.
pub fn histograms(facts: &dyn Facts, figures: Option<&Figures<'_>>, resource: &Resource) -> Vec<u8> {
    let Some((figures, Asked::Reply(reply))) = figures.zip(facts.ask(&["LATENCY", "HISTOGRAM"])) else {
        return Vec::new();
    };
    let number = |field| figures.number(field).unwrap_or_default();
    let nanos = |seconds: f64| (seconds * 1e6).max(0.0) as u64 * 1000;
    let now = number("server_time_usec") / 1e6;
    let (start, now) = (nanos(now - number("uptime_in_seconds")), nanos(now));
    let parsed = replies::parse(&reply);
    let commands = parsed.as_ref().map(replies::histograms).unwrap_or_default();
    let points = commands.into_iter().map(|(command, calls, buckets)| {
        let total = figures.lists("cmdstat_").find(|(name, _)| *name == command);
        let (mut counts, mut before) = (Vec::new(), 0);
        let below = buckets.iter().map(|(_, below)| *below).chain([calls]);
        for below in below {
            counts.push(u64::try_from(below - before).unwrap_or_default());
            before = below;
        }
        HistogramDataPoint {
            attributes: vec![Attribute {
                key: "cmd".to_owned(),
                value: Some(AnyValue { value: Some(any_value::Value::StringValue(command)) }),
                ..Attribute::default()
            }],
            start_time_unix_nano: start,
            time_unix_nano: now,
            count: u64::try_from(calls).unwrap_or_default(),
            sum: total.and_then(|(_, list)| list.number("usec")),
            bucket_counts: counts,
            explicit_bounds: buckets.iter().map(|(upper, _)| *upper as f64).collect(),
            ..HistogramDataPoint::default()
        }
    });
    let histogram =
        Histogram { data_points: points.collect(), aggregation_temporality: AggregationTemporality::Cumulative.into() };
    let metric = Metric {
        name: HISTOGRAM.to_owned(),
        description: HISTOGRAM_HELP.to_owned(),
        unit: "us".to_owned(),
        data: Some(metric::Data::Histogram(histogram)),
        ..Metric::default()
    };
    let scope = ScopeMetrics {
        scope: Some(InstrumentationScope { name: SCOPE.to_owned(), ..Default::default() }),
        metrics: vec![metric],
        ..Default::default()
    };
    let resource = Some(resource.into());
    let resource_metrics = vec![Message { resource, scope_metrics: vec![scope], ..Message::default() }];
    ExportMetricsServiceRequest { resource_metrics }.encode_to_vec()
}
