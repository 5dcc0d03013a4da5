//! Which commands the audit log has, and which of their arguments.

use crate::Args;
use crate::login::{REDACTED, is_secret_setting};

/// Commands of administrators that only read, or that replicas send all the time.
const QUIET: [&str; 21] = [
    "acl|dryrun",
    "acl|getuser",
    "acl|list",
    "acl|users",
    "client|list",
    "commandlog|get",
    "commandlog|len",
    "config|get",
    "explain",
    "hotkeys|get",
    "latency|doctor",
    "latency|graph",
    "latency|histogram",
    "latency|history",
    "latency|latest",
    "memcached|verbosity",
    "module|list",
    "pfdebug",
    "replconf",
    "slowlog|get",
    "slowlog|len",
];

/// What a line shows of a command that has run.
pub(super) enum Shown {
    /// Its name alone.
    Nothing,
    /// These arguments.
    Words(Vec<Vec<u8>>),
    /// Directives and their values.
    Settings(Vec<(Vec<u8>, Vec<u8>)>),
}

/// The kind of event that a command is.
pub(super) fn event(name: &str) -> &'static str {
    match name.split_once('|') {
        Some(("acl", _)) => "acl",
        Some(("config", _)) => "config",
        _ => "command",
    }
}

/// Whether a command of administrators changes nothing.
pub(super) fn is_quiet(name: &str, args: &Args<'_>) -> bool {
    match name {
        "acl|log" | "hotkeys" => args.len() < 3,
        _ => QUIET.contains(&name),
    }
}

/// The arguments that contain no secret and no data.
pub(super) fn arguments(name: &str, args: &Args<'_>) -> Shown {
    let words = |words: &mut dyn Iterator<Item = &[u8]>| Shown::Words(words.map(<[u8]>::to_vec).collect());
    match name {
        "config|set" => Shown::Settings(settings(args)),
        "acl|setuser" => Shown::Words(rules(args)),
        "acl|deluser" | "client|kill" | "client|pause" | "function|delete" => words(&mut args.from(2)),
        "bgsave" | "flushall" | "flushdb" | "replicaof" | "save" | "shutdown" | "slaveof" | "swapdb" => {
            words(&mut args.from(1))
        }
        "debug" => words(&mut args.from(1).take(1)),
        // The host and the port.
        "migrate" => words(&mut args.from(1).take(2)),
        _ => Shown::Nothing,
    }
}

fn settings(args: &Args<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let words: Vec<&[u8]> = args.from(2).collect();
    let (pairs, _) = words.as_chunks::<2>();
    let shown = |[name, value]: &[&[u8]; 2]| {
        let value = if is_secret_setting(name) { REDACTED } else { value };
        (name.to_ascii_lowercase(), value.to_vec())
    };
    pairs.iter().map(shown).collect()
}

/// A user and its rules. Those about passwords keep their first character.
fn rules(args: &Args<'_>) -> Vec<Vec<u8>> {
    let rule = |rule: &[u8]| match rule.first() {
        Some(kind @ (b'>' | b'<' | b'#' | b'!')) => [&[*kind], REDACTED].concat(),
        _ => rule.to_vec(),
    };
    args.from(2).take(1).map(<[u8]>::to_vec).chain(args.from(3).map(rule)).collect()
}
