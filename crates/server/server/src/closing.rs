//! Log lines about connections that the server closes on its own initiative.

use command::clients::ClientInfo;

/// Logs that the server closes a connection, why, and which directive says so.
#[cold]
pub(crate) fn log_closing(client: &ClientInfo, why: &str, directive: &str) {
    tracing::warn!("closing client id={} addr={}: {why} ({directive})", client.id, client.address);
}
