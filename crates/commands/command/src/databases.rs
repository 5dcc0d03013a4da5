//! The arguments of a request that name databases.

use crate::Args;

/// The arguments that name databases.
pub(crate) fn databases_in(name: &str, args: &Args<'_>) -> Vec<usize> {
    match name {
        "select" => vec![1],
        "swapdb" => vec![1, 2],
        "move" => vec![2],
        "copy" => databases_of_copy(args),
        _ => Vec::new(),
    }
}

/// None of a COPY with a wrong option, which the command refuses.
fn databases_of_copy(args: &Args<'_>) -> Vec<usize> {
    let (mut found, mut at) = (Vec::new(), 3usize);
    while let Some(word) = args.bytes(at) {
        let is_db = word.eq_ignore_ascii_case(b"db") && args.bytes(at.saturating_add(1)).is_some();
        if !is_db && !word.eq_ignore_ascii_case(b"replace") {
            return Vec::new();
        }
        if is_db {
            at = at.saturating_add(1);
            found.push(at);
        }
        at = at.saturating_add(1);
    }
    found
}
