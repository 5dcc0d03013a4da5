//! Spans of what takes long, for subscribers of `tracing`; without the feature of that name they are no code at all.

/// Enters a span of the target `plex` until the end of the caller's block.
#[cfg(feature = "tracing")]
macro_rules! span {
    ($name:literal $(, $field:ident = $value:expr)* $(,)?) => {
        let _span = tracing::debug_span!(target: "plex", $name $(, $field = $value)*).entered();
    };
}

/// Nothing: the feature `tracing` is off.
#[cfg(not(feature = "tracing"))]
macro_rules! span {
    ($($words:tt)*) => {};
}

pub(crate) use span;
