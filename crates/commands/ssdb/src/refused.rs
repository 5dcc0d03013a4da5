//! Requests that are not carried out.

use command::{Ctx, Stop};

/// The longest part of a name that an error repeats.
const SHOWN_BYTES_MAX: usize = 64;

/// Commands of SSDB that are absent, each with what to do instead.
pub const ABSENT: [(&str, &str); 17] = [
    ("dump", "use `onggi backup`, or scan, hlist, zlist and qlist"),
    ("sync140", "replicas of this server use REPLICAOF"),
    ("slaveof", "use REPLICAOF in Redis' protocol"),
    ("clear_binlog", "the log is trimmed automatically"),
    ("compact", "files are merged automatically"),
    ("ignore_key_range", "a server here has all keys"),
    ("get_key_range", "a server here has all keys"),
    ("get_kv_range", "a server here has all keys"),
    ("set_kv_range", "a server here has all keys"),
    ("list_allow_ip", "use bind, protected-mode and a firewall"),
    ("add_allow_ip", "use bind, protected-mode and a firewall"),
    ("del_allow_ip", "use bind, protected-mode and a firewall"),
    ("list_deny_ip", "use bind, protected-mode and a firewall"),
    ("add_deny_ip", "use bind, protected-mode and a firewall"),
    ("del_deny_ip", "use bind, protected-mode and a firewall"),
    ("redis_zrange", "use zrange"),
    ("redis_zrrange", "use zrrange"),
];

/// A command with too few or too many arguments.
pub fn wrong_count(_: &mut Ctx<'_>) -> Result<(), Stop> {
    Err(crate::arguments::WRONG_COUNT)
}

/// A command that is not there.
pub fn unknown(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let name = ctx.args.bytes(0).unwrap_or_default();
    if let Some((absent, instead)) = ABSENT.iter().find(|(absent, _)| absent.as_bytes() == name) {
        return Err(Stop::error_with(format!("client_error {absent} is absent here: {instead}")));
    }
    let shown = name.get(..SHOWN_BYTES_MAX).unwrap_or(name);
    Err(Stop::error_with([b"client_error Unknown Command: ", shown].concat()))
}
