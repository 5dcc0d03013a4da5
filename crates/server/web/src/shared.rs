//! What the handlers of all paths use.

use crate::Facts;
use crate::live::Live;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What requests need.
#[derive(Clone)]
pub struct Shared {
    /// The server.
    pub facts: Arc<dyn Facts>,
    /// Places for passwords that are checked.
    pub checks: Arc<Semaphore>,
    /// Sources of events.
    pub live: Arc<Live>,
}

/// Text for people.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// A refusal in a sentence.
pub fn refusal(status: StatusCode, text: &str) -> Response {
    (status, [(header::CONTENT_TYPE, TEXT)], text.to_owned()).into_response()
}
