//! The request to a collector.

use super::{PushOptions, lock};
use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use std::fs;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// Bytes of an answer that are read. It says what the collector did not take.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Sends requests, and waits for their answers.
#[derive(Debug)]
pub struct Collector {
    agent: Agent,
    shared: Arc<Shared>,
}

/// What the thread that sends and its client say to each other.
#[derive(Debug, Default)]
pub struct Shared {
    /// Histograms that go with the next request, as a message of their own.
    pub durations: Mutex<Vec<u8>>,
    /// Why the last request had no answer. The exporter says no more than that.
    pub failure: Mutex<Option<String>>,
}

impl Collector {
    /// One that gives a request up after a time.
    pub fn new(options: &PushOptions, timeout: Duration, shared: Arc<Shared>) -> io::Result<Self> {
        let config = Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            // A proxy of the environment is for programs that a person starts.
            .proxy(None);
        let config = match options.endpoint.starts_with("https:") {
            true => config.tls_config(trusted(options)?),
            false => config,
        };
        Ok(Self { agent: config.build().new_agent(), shared })
    }

    fn post(&self, request: Request<Vec<u8>>) -> Result<Response<Bytes>, ureq::Error> {
        let (parts, mut answer) = self.agent.run(request)?.into_parts();
        let bytes = answer.with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
        Ok(Response::from_parts(parts, bytes.into()))
    }
}

/// TLS that trusts the CAs of the file alone.
fn trusted(options: &PushOptions) -> io::Result<TlsConfig> {
    let Some(path) = &options.ca_file else {
        return Err(io::Error::other("otlp-ca-cert-file is empty: name the CAs that sign the endpoint's certificate"));
    };
    let failed = |why: String| io::Error::other(format!("otlp-ca-cert-file {}: {why}", path.display()));
    let pem = fs::read(path).map_err(|error| failed(error.to_string()))?;
    let mut authorities = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| failed(error.to_string()))? {
            authorities.push(certificate);
        }
    }
    if authorities.is_empty() {
        return Err(failed("it has no certificate in PEM".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = RootCerts::new_with_certs(&authorities);
    Ok(TlsConfig::builder().root_certs(roots).unversioned_rustls_crypto_provider(provider).build())
}

#[async_trait]
impl HttpClient for Collector {
    /// Blocks: the thread has nothing else to do.
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        // Messages of protobuf one after the other are one message with all that they hold.
        let body = [&body, lock(&self.shared.durations).as_slice()].concat();
        self.post(Request::from_parts(parts, body)).map_err(|error| {
            *lock(&self.shared.failure) = Some(error.to_string());
            error.into()
        })
    }
}
