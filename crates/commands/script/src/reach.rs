//! What a script has used, and what it writes to the log.

/// What a script has used when it ran before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// It has not run.
    #[default]
    Unknown,
    /// Keys that it had declared.
    Declared,
    /// Others, or whole keyspaces: it runs with all shards locked.
    Beyond,
}

/// Writes a line of a script to the server's log.
pub(crate) fn log(level: u8, text: &[u8]) {
    let text = text.escape_ascii();
    match level {
        0 => tracing::debug!("{text}"),
        1 => tracing::trace!("{text}"),
        2 => tracing::info!("{text}"),
        _ => tracing::warn!("{text}"),
    }
}
