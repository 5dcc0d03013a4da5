//! What clients may send and leave unread, and how long they may take.

use command::Session;
use config::{OutputLimit, Settings};
use proto::Limits;

/// What clients may send, and how long they may take.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// Requests before login.
    pub before_login: Limits,
    /// Requests after it.
    pub after_login: Limits,
    /// Bytes of an unfinished request, less the one argument being received.
    pub query_bytes_max: usize,
    /// Bytes of an item of a memcached client.
    pub item_bytes_max: usize,
    /// Bytes of an element of a collection of ARCUS.
    pub element_bytes_max: usize,
    /// Fields that one request of ARCUS names.
    pub fields_max: usize,
    /// Bytes of its key.
    pub key_bytes_max: usize,
    /// Bytes queued by MULTI.
    pub transaction_bytes_max: usize,
    /// Unsent bytes above which no requests of a connection run.
    pub output_pause_bytes: usize,
    /// Bytes of further requests that are received meanwhile.
    pub backlog_bytes_max: usize,
    /// Bytes that a large argument may lack: one that lacks more is not kept.
    pub receiving_bytes_max: usize,
    /// What may be unsent to a client.
    pub output: OutputBounds,
    /// What may be unsent to one with subscriptions.
    pub subscriber_output: OutputBounds,
    /// Seconds of silence after which it is closed; 0 for never.
    pub idle_seconds: i64,
    /// Seconds it has for its first command; 0 for no limit.
    pub login_seconds: i64,
}

impl ClientLimits {
    /// What may be unsent to this client.
    pub fn output_of(&self, session: &Session) -> &OutputBounds {
        if session.subscriptions.is_some() { &self.subscriber_output } else { &self.output }
    }

    /// The limits that the settings ask for.
    pub fn of(settings: &Settings) -> Self {
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            before_login: Limits {
                bulk_bytes_max: bytes(settings.login_bulk_bytes_max),
                argument_count_max: settings.login_arguments_max as usize,
                inline_bytes_max: bytes(settings.proto_inline_bytes_max),
                before_login: true,
            },
            after_login: Limits {
                bulk_bytes_max: bytes(settings.proto_bulk_bytes_max),
                argument_count_max: settings.proto_arguments_max as usize,
                inline_bytes_max: bytes(settings.proto_inline_bytes_max),
                before_login: false,
            },
            query_bytes_max: bytes(settings.client_query_buffer_bytes_max),
            item_bytes_max: bytes(settings.memcached_item_bytes_max),
            element_bytes_max: bytes(settings.arcus_element_bytes_max),
            fields_max: settings.arcus_map_size_max as usize,
            key_bytes_max: bytes(settings.memcached_key_bytes_max),
            transaction_bytes_max: bytes(settings.client_transaction_bytes_max),
            output_pause_bytes: bytes(settings.client_output_pause_bytes),
            backlog_bytes_max: bytes(settings.client_query_buffer_bytes_max),
            receiving_bytes_max: usize::MAX,
            output: OutputBounds::of(&settings.client_output_limits.normal),
            subscriber_output: OutputBounds::of(&settings.client_output_limits.pubsub),
            idle_seconds: i64::from(settings.timeout_seconds),
            login_seconds: i64::from(settings.login_timeout_seconds),
        }
    }
}

/// How much may be unsent before a connection is closed.
#[derive(Clone, Copy, Debug)]
pub struct OutputBounds {
    /// Unsent bytes above which it is closed.
    pub hard_bytes: usize,
    /// Unsent bytes above which it is closed after [`Self::soft_seconds`].
    pub soft_bytes: usize,
    /// How long the soft limit is tolerated.
    pub soft_seconds: i64,
}

impl OutputBounds {
    fn of(limit: &OutputLimit) -> Self {
        // 0 means no limit where Redis says so.
        let bytes = |max: u64| if max == 0 { usize::MAX } else { usize::try_from(max).unwrap_or(usize::MAX) };
        Self {
            hard_bytes: bytes(limit.hard_bytes),
            soft_bytes: bytes(limit.soft_bytes),
            soft_seconds: i64::try_from(limit.soft_seconds).unwrap_or(i64::MAX),
        }
    }
}
