//! Which path answers what.

use crate::figures::Figures;
use crate::{Facts, json, metrics};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::net::IpAddr;
use std::sync::Arc;

type Shared = State<Arc<dyn Facts>>;

const PAGE: &str = include_str!("page.html");
const TEXT: &str = "text/plain; charset=utf-8";

/// All paths.
pub fn routes(facts: Arc<dyn Facts>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/metrics", get(all_metrics))
        .route("/healthz", get(|State(facts): Shared| async move { state(facts.health()) }))
        .route("/readyz", get(|State(facts): Shared| async move { state(facts.readiness()) }))
        .route("/api/info", get(info))
        .layer(from_fn(guard))
        .with_state(facts)
}

/// A page of another site, whose name was made to lead here, gets nothing; and no answer is kept or framed.
async fn guard(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    if !host.is_some_and(is_address) {
        let text = "421 Misdirected Request: use an address or localhost, such as http://127.0.0.1:9121/\n";
        return (StatusCode::MISDIRECTED_REQUEST, [(header::CONTENT_TYPE, TEXT)], text).into_response();
    }
    let mut response = next.run(request).await;
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; connect-src 'self'; img-src data:; \
             style-src 'unsafe-inline'; script-src 'unsafe-inline'",
        ),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Whether a Host header names an address or this machine, and not a name that others control.
fn is_address(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

async fn page() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], PAGE)
}

async fn all_metrics(State(facts): Shared) -> impl IntoResponse {
    let text = facts.info();
    let figures = text.as_deref().map(Figures::parse);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], metrics::render(figures.as_ref()))
}

async fn info(State(facts): Shared) -> Response {
    match facts.info() {
        Some(text) => {
            ([(header::CONTENT_TYPE, "application/json")], json::render(&Figures::parse(&text))).into_response()
        }
        None => (StatusCode::SERVICE_UNAVAILABLE, [(header::CONTENT_TYPE, TEXT)], "not serving\n").into_response(),
    }
}

fn state(found: Result<(), String>) -> Response {
    match found {
        Ok(()) => (StatusCode::OK, [(header::CONTENT_TYPE, TEXT)], "ok\n".to_owned()).into_response(),
        Err(why) => {
            (StatusCode::SERVICE_UNAVAILABLE, [(header::CONTENT_TYPE, TEXT)], format!("{why}\n")).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_address;

    #[test]
    fn names_of_others_are_no_addresses() {
        for host in ["127.0.0.1:9121", "localhost", "LOCALHOST:9121", "[::1]:9121", "10.0.0.7"] {
            assert!(is_address(host), "{host}");
        }
        for host in ["", "evil.example:9121", "localhost.evil.example", "127.0.0.1.evil.example", "[evil]"] {
            assert!(!is_address(host), "{host}");
        }
    }
}
