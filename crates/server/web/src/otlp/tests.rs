//! A collector that the test plays, and a server that says what the test writes.

use super::*;
use crate::metrics::{self, Format, kind_word};
use crate::replies;
use crate::{Access, Asked, Client, Login};
use base::figures::{FAMILIES, Kind, TABLE};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue as Attribute, any_value};
use opentelemetry_proto::tonic::metrics::v1::{AggregationTemporality, NumberDataPoint, metric, number_data_point};
use prost::Message;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Instant;

/// Longer than any wait of the test on a busy machine.
const WAIT: Duration = Duration::from_secs(30);

const HISTOGRAMS: &[u8] =
    b"%1\r\n$3\r\nget\r\n%2\r\n$5\r\ncalls\r\n:9\r\n$14\r\nhistogram_usec\r\n%2\r\n:1\r\n:4\r\n:8\r\n:7\r\n";

/// An INFO with every field of the table.
fn info() -> String {
    let mut text = String::from(
        "cmdstat_get:calls=9,usec=30,rejected_calls=1,failed_calls=2\r\ndb0:keys=5,expires=2,avg_ttl=1500,keys_with_volatile_items=1\r\n",
    );
    text.push_str("latency_percentiles_usec_get:p50=1.003,p99.9=3.007\r\nerrorstat_ERR:count=2\r\n");
    for (number, row) in TABLE.iter().filter(|row| row.kind != Kind::Fact).enumerate() {
        text.push_str(&format!("{}:{}\r\n", row.field, number + 1));
    }
    text + "redis_version:9.1.0\r\n"
}

struct Fake;

impl Facts for Fake {
    fn info(&self) -> Option<String> {
        Some(info())
    }

    fn durations(&self) -> Vec<(u64, u64)> {
        Vec::new()
    }

    fn ask(&self, words: &[&str]) -> Option<Asked> {
        assert_eq!(words, ["LATENCY", "HISTOGRAM"]);
        Some(Asked::Reply(HISTOGRAMS.to_vec()))
    }

    fn access(&self, _: &Client, _: Option<Login<'_>>, _: &[&str]) -> (Access, Duration) {
        (Access::Granted, Duration::ZERO)
    }

    fn tls(&self) -> Option<Arc<ServerConfig>> {
        None
    }

    fn health(&self) -> Result<(), String> {
        Ok(())
    }

    fn readiness(&self) -> Result<(), String> {
        Ok(())
    }
}

/// One request: the lines of its head, and its body.
fn request(stream: impl Read) -> (Vec<String>, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the client is gone");
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_ascii_lowercase()),
        }
    }
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    (head, body)
}

fn answer(mut stream: impl Write, status: &str) {
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
}

fn options(endpoint: String) -> PushOptions {
    PushOptions {
        endpoint,
        interval: Duration::from_secs(1),
        headers: vec![("X-Token".to_owned(), "secret".to_owned())],
        ca_file: None,
        instance: "host:6379".to_owned(),
    }
}

fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1/metrics", listener.local_addr().unwrap());
    (listener, endpoint)
}

/// `{cmd="get"}` of attributes.
fn labels(attributes: &[Attribute]) -> String {
    let text = |attribute: &Attribute| match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => format!("{}=\"{text}\"", attribute.key),
        other => panic!("{other:?}"),
    };
    let all: BTreeSet<String> = attributes.iter().map(text).collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.into_iter().collect::<Vec<_>>().join(",")) }
}

/// The lines of `/metrics` with their labels in order, and the type of each name.
fn scraped() -> (BTreeMap<String, f64>, BTreeMap<String, String>) {
    let (text, reply) = (info(), replies::parse(HISTOGRAMS));
    let text = metrics::render(Some(&Figures::parse(&text)), reply.as_ref(), Format::Prometheus);
    let (mut values, mut kinds) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            kinds.insert(name.to_owned(), kind.to_owned());
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let series = match series.split_once('{') {
                Some((name, rest)) => {
                    let mut labels: Vec<_> = rest.trim_end_matches('}').split(',').collect();
                    labels.sort_unstable();
                    format!("{name}{{{}}}", labels.join(","))
                }
                None => series.to_owned(),
            };
            values.insert(series, value.parse().unwrap());
        }
    }
    (values, kinds)
}

/// What a collector gets is what a scrape shows: names, types, labels and values.
#[test]
fn a_collector_gets_what_a_scrape_shows() {
    let (listener, endpoint) = listener();
    let push = Push::start(options(endpoint), Arc::new(Fake), |line| panic!("{line}")).unwrap();
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(WAIT)).unwrap();
    let (head, body) = request(&stream);
    answer(&stream, "200 OK");
    drop(push);
    assert_eq!(head[0], "post /v1/metrics http/1.1");
    for line in ["content-type: application/x-protobuf", "x-token: secret"] {
        assert!(head.iter().any(|found| found == line), "{line} is not in {head:?}");
    }
    let message = ExportMetricsServiceRequest::decode(body.as_slice()).unwrap();
    let (mut values, mut kinds, mut units) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut put = |name: String, value: f64| assert!(values.insert(name, value).is_none(), "twice");
    for one in &message.resource_metrics {
        let resource = labels(&one.resource.as_ref().expect("a resource").attributes);
        for word in ["service.name=\"onggi\"", "service.instance.id=\"host:6379\"", "service.version="] {
            assert!(resource.contains(word), "{resource}");
        }
        for metric in one.scope_metrics.iter().flat_map(|scope| &scope.metrics) {
            let mut numbers = |points: &[NumberDataPoint]| {
                for point in points {
                    let Some(number_data_point::Value::AsDouble(value)) = point.value else { panic!("{metric:?}") };
                    put(format!("{}{}", metric.name, labels(&point.attributes)), value);
                }
            };
            let kind = match metric.data.as_ref().expect("data") {
                metric::Data::Gauge(gauge) => {
                    numbers(&gauge.data_points);
                    "gauge"
                }
                metric::Data::Sum(sum) => {
                    assert!(sum.is_monotonic && sum.aggregation_temporality() == AggregationTemporality::Cumulative);
                    numbers(&sum.data_points);
                    "counter"
                }
                metric::Data::Histogram(histogram) => {
                    for point in &histogram.data_points {
                        let (label, mut below) = (labels(&point.attributes), 0);
                        let label = label.trim_start_matches('{').trim_end_matches('}');
                        let uppers = point.explicit_bounds.iter().map(|upper| format!("{upper}.0"));
                        for (upper, count) in uppers.chain(["+Inf".to_owned()]).zip(&point.bucket_counts) {
                            below += count;
                            put(format!("{}_bucket{{{label},le=\"{upper}\"}}", metric.name), below as f64);
                        }
                        put(format!("{}_count{{{label}}}", metric.name), point.count as f64);
                        put(format!("{}_sum{{{label}}}", metric.name), point.sum.unwrap());
                    }
                    "histogram"
                }
                other => panic!("{other:?}"),
            };
            kinds.insert(metric.name.clone(), kind.to_owned());
            units.insert(metric.name.clone(), metric.unit.clone());
        }
    }
    let (scraped_values, scraped_kinds) = scraped();
    let sent: BTreeSet<_> = values.iter().map(|(series, value)| format!("{series} {value}")).collect();
    let wanted: BTreeSet<_> = scraped_values.iter().map(|(series, value)| format!("{series} {value}")).collect();
    assert!(sent == wanted, "{:#?}", sent.symmetric_difference(&wanted).collect::<Vec<_>>());
    let (sent, wanted) = (kinds.iter().collect::<BTreeSet<_>>(), scraped_kinds.iter().collect::<BTreeSet<_>>());
    assert!(sent == wanted, "{:#?}", sent.symmetric_difference(&wanted).collect::<Vec<_>>());
    assert!(FAMILIES.iter().all(|row| kinds[row.metric] == kind_word(row.kind)));
    for (name, unit) in [("redis_memory_used_bytes", "By"), ("onggi_log_last_sync_seconds", "s"), ("redis_up", "1")] {
        assert_eq!(units[name], unit, "{name}");
    }
}

/// The log says once that a collector fails, and once that it works again.
#[test]
fn a_collector_that_fails_is_told_once() {
    let (listener, endpoint) = listener();
    let (sender, told) = mpsc::channel();
    let push = Push::start(options(endpoint), Arc::new(Fake), move |line| sender.send(line.to_owned()).unwrap());
    for status in ["503 Service Unavailable", "307 Temporary Redirect", "200 OK"] {
        let (stream, _) = listener.accept().unwrap();
        request(&stream);
        answer(&stream, status);
    }
    let first = told.recv_timeout(WAIT).unwrap();
    assert!(first.contains("does not take figures") && first.contains("503"), "{first}");
    assert!(told.recv_timeout(WAIT).unwrap().contains("takes figures again"));
    drop(push);
}

/// A collector that answers nothing costs a sending.
#[test]
fn a_collector_that_is_silent_is_given_up() {
    let (listener, endpoint) = listener();
    let (sender, told) = mpsc::channel();
    let push = Push::start(options(endpoint), Arc::new(Fake), move |line| sender.send(line.to_owned()).unwrap());
    let (silent, _) = listener.accept().unwrap();
    let began = Instant::now();
    let first = told.recv_timeout(WAIT).unwrap();
    assert!(first.contains("timeout"), "{first}");
    assert!(began.elapsed() >= Duration::from_millis(500));
    let (stream, _) = listener.accept().unwrap();
    request(&stream);
    drop((silent, push));
}

/// A CA whose certificate is in a file, and a collector that has one of it for a name.
struct Authority {
    key: KeyPair,
    params: CertificateParams,
    file: tempfile::NamedTempFile,
}

impl Authority {
    fn new() -> Self {
        let (mut params, key) = (CertificateParams::new(Vec::new()).unwrap(), KeyPair::generate().unwrap());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(params.self_signed(&key).unwrap().pem().as_bytes()).unwrap();
        Self { key, params, file }
    }

    fn collector(&self, name: &str) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let issuer = Issuer::from_params(&self.params, &self.key);
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key);
        Arc::new(config.unwrap())
    }
}

/// Begins to send to a collector, whose certificates these CAs have to sign.
fn push_over_tls(ca: &Authority) -> (TcpListener, Push, mpsc::Receiver<String>) {
    let (listener, endpoint) = listener();
    let ca_file = Some(ca.file.path().to_owned());
    let options = PushOptions { ca_file, ..options(endpoint.replace("http:", "https:")) };
    let (sender, told) = mpsc::channel();
    let push = Push::start(options, Arc::new(Fake), move |line| sender.send(line.to_owned()).unwrap()).unwrap();
    (listener, push, told)
}

fn accept_over_tls(listener: &TcpListener, config: Arc<ServerConfig>) -> StreamOwned<ServerConnection, TcpStream> {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(WAIT)).unwrap();
    StreamOwned::new(ServerConnection::new(config).unwrap(), stream)
}

/// Figures and headers are sent to a collector whose certificate is right.
#[test]
fn a_collector_is_reached_over_tls() {
    let ca = Authority::new();
    let (listener, push, _told) = push_over_tls(&ca);
    let mut stream = accept_over_tls(&listener, ca.collector("127.0.0.1"));
    let (head, body) = request(&mut stream);
    answer(&mut stream, "200 OK");
    assert!(head.iter().any(|line| line == "x-token: secret"), "{head:?}");
    assert!(ExportMetricsServiceRequest::decode(body.as_slice()).unwrap().resource_metrics.len() > 1);
    drop(push);
}

/// A collector with another certificate gets nothing, not even a header, and the log says why.
#[test]
fn a_collector_without_the_right_certificate_gets_nothing() {
    let ca = Authority::new();
    for (config, expected) in [
        (Authority::new().collector("127.0.0.1"), "invalid peer certificate: BadSignature"),
        (ca.collector("collector.example"), "not valid for name"),
    ] {
        let (listener, push, told) = push_over_tls(&ca);
        let mut stream = accept_over_tls(&listener, config);
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
        let line = told.recv_timeout(WAIT).unwrap();
        assert!(line.contains("does not take figures") && line.contains(expected), "{line}");
        drop(push);
    }
}

/// A handshake that stops costs a sending.
#[test]
fn a_handshake_that_stops_is_given_up() {
    let ca = Authority::new();
    let (listener, push, told) = push_over_tls(&ca);
    let (silent, _) = listener.accept().unwrap();
    let line = told.recv_timeout(WAIT).unwrap();
    assert!(line.contains("timeout"), "{line}");
    let mut stream = accept_over_tls(&listener, ca.collector("127.0.0.1"));
    request(&mut stream);
    drop((silent, push));
}

/// Faults of settings are found at the start.
#[test]
fn authorities_are_read_at_the_start() {
    let start = |ca_file: Option<&str>| {
        let options = PushOptions { ca_file: ca_file.map(PathBuf::from), ..options("https://127.0.0.1:1/".to_owned()) };
        Push::start(options, Arc::new(Fake), |_| ()).map(drop).unwrap_err().to_string()
    };
    assert_eq!(start(None), "otlp-ca-cert-file is empty: name the CAs that sign the endpoint's certificate");
    assert!(start(Some("/no/file")).starts_with("otlp-ca-cert-file /no/file: No such file"));
    assert_eq!(start(Some("/dev/null")), "otlp-ca-cert-file /dev/null: it has no certificate in PEM");
}
