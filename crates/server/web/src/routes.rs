//! Which path answers what.

use crate::door::Visitor;
use crate::figures::Figures;
use crate::live::Live;
use crate::login::{self, CHECKS_MAX};
use crate::metrics::Format;
use crate::options::Options;
use crate::shared::{Shared, TEXT, refusal};
use crate::visit::Visit;
use crate::{Access, Asked, Facts, json, metrics, panels, replies};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures_util::stream;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::Semaphore;

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// Seconds of history without `?seconds=`.
const HISTORY_SECONDS: usize = 3600;

/// All paths.
pub fn routes(facts: Arc<dyn Facts>, live: Arc<Live>) -> Router {
    let shared = Shared { facts, checks: Arc::new(Semaphore::new(CHECKS_MAX)), live };
    Router::new()
        .route("/", get(|| file(HTML, include_str!("page/page.html"))))
        .route("/page.js", get(|| file(SCRIPT, include_str!("page/page.js"))))
        .route("/charts.js", get(|| file(SCRIPT, include_str!("page/charts.js"))))
        .route("/page.css", get(|| file(STYLE, include_str!("page/page.css"))))
        .route("/metrics", get(all_metrics))
        .route("/healthz", get(|State(shared): State<Shared>| async move { state(shared.facts.health()) }))
        .route("/readyz", get(|State(shared): State<Shared>| async move { state(shared.facts.readiness()) }))
        .route("/api/info", get(info))
        .route("/api/figures", get(|| async { Json(json::table()) }))
        .route("/api/history", get(history))
        .route("/api/live", get(events))
        .route("/api/hotkeys", get(panels::hot_keys))
        .route("/api/slowlog", get(panels::slow_log))
        .route("/api/clients", get(panels::clients))
        .route("/api/explain", get(panels::explain))
        .layer(from_fn_with_state(shared.clone(), guard))
        .with_state(shared)
}

/// Refuses what a client may not see, and says that no answer is to be kept or framed.
async fn guard(
    State(shared): State<Shared>,
    ConnectInfo(Visitor(visit)): ConnectInfo<Visitor>,
    request: Request,
    next: Next,
) -> Response {
    let headers = request.headers().clone();
    let mut response = match visit.is_near {
        true => checked_host(&headers),
        false => checked_login(&shared, &visit, request.uri().path().to_owned(), &headers).await,
    };
    if response.status() == StatusCode::OK {
        response = next.run(request).await;
    }
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; connect-src 'self'; img-src data:; \
             style-src 'self' 'unsafe-inline'; script-src 'self'",
        ),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// On this host, a page of another site whose name was made to lead here gets nothing.
fn checked_host(headers: &HeaderMap) -> Response {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    match host.is_some_and(is_address) {
        true => StatusCode::OK.into_response(),
        false => {
            let text = "421 Misdirected Request: use an address or localhost, such as http://127.0.0.1:9121/\n";
            refusal(StatusCode::MISDIRECTED_REQUEST, text)
        }
    }
}

/// Clients of other hosts log in first, as a user who may see what `/metrics` shows, or who may ask whether the server
/// works.
async fn checked_login(shared: &Shared, visit: &Visit, path: String, headers: &HeaderMap) -> Response {
    let command = if matches!(path.as_str(), "/healthz" | "/readyz") { "PING" } else { "INFO" };
    match login::access(shared, visit, headers, &[command]).await {
        Access::Granted => StatusCode::OK.into_response(),
        Access::NoLogin => {
            let text = "log in as a user of the server, by its password, a token or a certificate\n";
            let mut response = refusal(StatusCode::UNAUTHORIZED, text);
            for asks in ["Basic realm=\"onggi\", charset=\"UTF-8\"", "Bearer realm=\"onggi\""] {
                response.headers_mut().append(header::WWW_AUTHENTICATE, HeaderValue::from_static(asks));
            }
            response
        }
        Access::Forbidden => refusal(StatusCode::FORBIDDEN, &format!("this user may not run {command}\n")),
    }
}

/// Whether a Host header names an address or this machine, and not a name that others control.
fn is_address(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

async fn file(kind: &'static str, text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, kind)], text)
}

async fn all_metrics(State(shared): State<Shared>, headers: HeaderMap) -> impl IntoResponse {
    let accepted = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let format = Format::accepted(accepted);
    let text = shared.facts.info();
    let figures = text.as_deref().map(Figures::parse);
    let durations = match shared.facts.ask(&["LATENCY", "HISTOGRAM"]) {
        Some(Asked::Reply(reply)) => replies::parse(&reply),
        _ => None,
    };
    ([(header::CONTENT_TYPE, format.content_type())], metrics::render(figures.as_ref(), durations.as_ref(), format))
}

async fn info(State(shared): State<Shared>) -> Response {
    match shared.facts.info() {
        Some(text) => Json(json::object(&Figures::parse(&text))).into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, [(header::CONTENT_TYPE, TEXT)], "not serving\n").into_response(),
    }
}

async fn history(State(shared): State<Shared>, options: Options) -> impl IntoResponse {
    let seconds = options.get("seconds").and_then(|seconds| seconds.parse().ok()).unwrap_or(HISTORY_SECONDS);
    Json(shared.live.history(seconds))
}

/// Server-sent events, one a second.
async fn events(State(shared): State<Shared>) -> impl IntoResponse {
    let mut newest = shared.live.events();
    newest.mark_changed();
    Sse::new(stream::unfold(newest, |mut newest| async {
        // The end of the listener is that of the stream.
        newest.changed().await.ok()?;
        let event = Event::default().data(&**newest.borrow_and_update());
        Some((Ok::<_, Infallible>(event), newest))
    }))
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
