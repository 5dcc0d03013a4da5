//! Figures sent to a collector of OpenTelemetry: the metrics of `/metrics`, under the same names.
//!
//! ```text
//! INFO --metrics::all--> Snapshot --instruments--> ManualReader --> MetricExporter --HTTP--> the collector
//! LATENCY HISTOGRAM --------------------------------histograms-------^
//! ```
//!
//! O1. One thread does it all, and sends one request at a time. A slow collector costs a sending, never memory.
//! O2. What was sent is a total, so a sending that fails loses nothing. It is not repeated before its time.
//! O3. The log has a line when the collector stops taking figures, and one when it takes them again.

mod http;
mod metric;

use crate::Facts;
use crate::figures::Figures;
use http::{Collector, Shared};
use metric::{Instruments, Snapshot};
use opentelemetry::KeyValue;
use opentelemetry_otlp::{MetricExporter, Protocol, RetryPolicy, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The longest sending.
const TIMEOUT_MAX: Duration = Duration::from_secs(10);

/// What is sent where.
#[derive(Clone, Debug)]
pub struct PushOptions {
    /// The URL for metrics of a collector.
    pub endpoint: String,
    /// From one sending to the next.
    pub interval: Duration,
    /// Names and values of headers.
    pub headers: Vec<(String, String)>,
    /// The CAs that sign the certificate of an `https` endpoint.
    pub ca_file: Option<PathBuf>,
    /// What tells this server from others, as the attribute `service.instance.id`.
    pub instance: String,
}

/// Figures are sent until this is dropped.
pub struct Push(#[expect(dead_code, reason = "its drop is the end of the thread")] Sender<()>);

impl Push {
    /// Begins to send, on a thread of its own. `tell` receives lines for the log.
    ///
    /// # Errors
    /// The endpoint, a header or the CAs cannot be used, or the system refuses the thread.
    pub fn start(
        options: PushOptions,
        facts: Arc<dyn Facts>,
        tell: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let timeout = TIMEOUT_MAX.min(options.interval);
        let shared = Arc::new(Shared::default());
        let collector = Collector::new(&options, timeout, shared.clone())?;
        let exporter = MetricExporter::builder()
            .with_http()
            .with_http_client(collector)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&options.endpoint)
            .with_timeout(timeout)
            .with_headers(options.headers.into_iter().collect())
            // The next sending has all that this one had.
            .with_retry_policy(RetryPolicy::disabled())
            .build()
            .map_err(|error| io::Error::other(format!("otlp-endpoint {}: {error}", options.endpoint)))?;
        let instance = KeyValue::new("service.instance.id", options.instance);
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_service_name("onggi").with_attributes([version, instance]).build();
        let (sender, receiver) = channel();
        let (interval, endpoint) = (options.interval, options.endpoint);
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        thread::Builder::new().name("otlp".to_owned()).spawn(move || {
            let snapshot = Arc::new(Mutex::new(Snapshot::default()));
            let instruments = Instruments::new(&snapshot, resource.clone());
            let (mut metrics, mut works) = (ResourceMetrics::default(), true);
            while receiver.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let text = facts.info();
                let figures = text.as_deref().map(Figures::parse);
                *lock(&snapshot) = Snapshot::of(figures.as_ref());
                *lock(&shared.durations) = metric::histograms(&*facts, figures.as_ref(), &resource);
                *lock(&shared.failure) = None;
                let sent = instruments.collect(&mut metrics).and_then(|()| runtime.block_on(exporter.export(&metrics)));
                match (sent, works) {
                    (Err(error), true) => {
                        let why = lock(&shared.failure).take().unwrap_or_else(|| error.to_string());
                        tell(&format!(
                            "otlp-endpoint {endpoint} does not take figures: {why}; the server tries again every {} s, \
                             and /metrics has them",
                            interval.as_secs()
                        ));
                    }
                    (Ok(()), false) => tell(&format!("otlp-endpoint {endpoint} takes figures again")),
                    (Err(_), false) | (Ok(()), true) => continue,
                }
                works = !works;
            }
        })?;
        Ok(Self(sender))
    }
}

/// A panic of the other holder leaves whole values.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
