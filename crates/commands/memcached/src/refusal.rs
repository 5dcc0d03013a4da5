//! What a client reads whose connection is not served.

/// Protected mode refuses it.
pub const DENIED: &str =
    "SERVER_ERROR clients of other hosts are refused while no password is set: set requirepass, or protected-mode no";

/// There are `maxclients` connections.
pub const TOO_MANY: &str = "ERROR Too many open connections";
