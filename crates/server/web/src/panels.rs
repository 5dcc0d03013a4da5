//! What panels of the page request separately, since it names keys and clients.

use crate::door::Visitor;
use crate::options::Options;
use crate::shared::{Shared, refusal};
use crate::visit::Visit;
use crate::{Access, Asked, login, replies};
use axum::Json;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use proto::reply::Value as Reply;
use serde_json::Value;
use std::time::Duration;

/// Time between two looks at work in progress.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Longest wait for workers.
const WAIT_MAX: Duration = Duration::from_secs(120);

type From = ConnectInfo<Visitor>;

/// `/api/hotkeys`
pub async fn hot_keys(state: State<Shared>, visit: From, headers: HeaderMap) -> Response {
    show((&state, &visit.0.0, &headers), &["HOTKEYS", "COUNT", "10"], replies::hot_keys).await
}

/// `/api/slowlog`; with `?values=1` it shows the arguments of calls.
pub async fn slow_log(state: State<Shared>, visit: From, options: Options, headers: HeaderMap) -> Response {
    let shows_values = options.get("values") == Some("1");
    show((&state, &visit.0.0, &headers), &["SLOWLOG", "GET", "20"], |reply| replies::slow_log(reply, shows_values))
        .await
}

/// `/api/clients`
pub async fn clients(state: State<Shared>, visit: From, headers: HeaderMap) -> Response {
    show((&state, &visit.0.0, &headers), &["CLIENT", "LIST"], replies::clients).await
}

/// `/api/explain`, with `?prefix=` and `?depth=`.
pub async fn explain(state: State<Shared>, visit: From, options: Options, headers: HeaderMap) -> Response {
    let option = |name: &str, default: &'static str| options.get(name).unwrap_or(default);
    let words = ["MEMORY", "EXPLAIN", "PREFIX", option("prefix", ""), "DEPTH", option("depth", "1")];
    show((&state, &visit.0.0, &headers), &words, replies::explained).await
}

async fn show(
    (state, visit, headers): (&Shared, &Visit, &HeaderMap),
    words: &[&str],
    render: impl Fn(&Reply) -> Value,
) -> Response {
    match login::access(state, visit, headers, words).await {
        Access::Granted => {}
        Access::NoLogin => {
            return refusal(StatusCode::UNAUTHORIZED, "keys and clients need the login of a user of the server\n");
        }
        Access::Forbidden => {
            let text = format!("this user may not run {}\n", words.first().unwrap_or(&"it"));
            return refusal(StatusCode::FORBIDDEN, &text);
        }
    }
    let reply = match state.facts.ask(words) {
        Some(Asked::Reply(reply)) => Some(reply),
        Some(Asked::Later(look)) => tokio::time::timeout(WAIT_MAX, wait(look)).await.ok(),
        None => None,
    };
    match reply.as_deref().and_then(replies::parse) {
        Some(Reply::Error(text)) => refusal(StatusCode::BAD_REQUEST, &format!("{}\n", String::from_utf8_lossy(&text))),
        Some(reply) => Json(render(&reply)).into_response(),
        None => refusal(StatusCode::SERVICE_UNAVAILABLE, "no answer: the server does not serve, or is busy\n"),
    }
}

async fn wait(look: Box<dyn Fn() -> Option<Vec<u8>> + Send + Sync>) -> Vec<u8> {
    loop {
        if let Some(reply) = look() {
            return reply;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
