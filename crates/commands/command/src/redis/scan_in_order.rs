//! SCAN in a database that keeps its names in order: a cursor is a name, and a pattern that begins with plain bytes is
//! a range.

use super::scanning::{Found, ScanOptions};
use crate::{Ctx, Stop};
use engine::{Names, NamesStep};
use std::io;
use std::ops::Bound;

/// Changed names that a step takes of each shard, at most.
const CHANGED_MAX: usize = 64;

/// What a thread has read.
struct Read(io::Result<NamesStep>);

/// A step from a cursor on: what it has found, and the next cursor. `None` where names are in no order.
pub(super) fn step(ctx: &mut Ctx<'_>, cursor: u64, options: &ScanOptions<'_>) -> Option<Result<(Found, u64), Stop>> {
    let (space, now) = (ctx.ks.space(), ctx.now());
    let from = ctx.ks.name_at(space, cursor)?;
    let read = match ctx.made_of_copies::<Read>() {
        Some(Read(read)) => read,
        None => {
            let prefix = options.prefix();
            let end = after_all_with(prefix);
            let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let range = Names::new(Bound::Included(from.as_slice().max(prefix)), end, false);
            let count = usize::try_from(options.count).unwrap_or(usize::MAX);
            let changed = ctx.ks.changed_names(space, &range, count.clamp(1, CHANGED_MAX))?;
            let held = changed.held_bytes();
            let read = move || Read(changed.step(&range, None, now, count));
            if ctx.may_begin_work() {
                return Some(Err(ctx.make_of_rows(held, read)));
            }
            read().0
        }
    };
    let step = match read {
        Ok(step) => step,
        Err(error) => return Some(Err(Stop::error_with(format!("IOERR names cannot be read: {error}")))),
    };
    let mut found = Found::default();
    for (name, kind) in &step.names {
        if options.wants(name) && options.wants_type(kind.name()) {
            found.push(name);
        }
    }
    // The smallest name behind the last one that was seen.
    let next = step.end.map(|end| [&end[..], &[0]].concat());
    let next = next.map_or(Some(0), |next| ctx.ks.cursor_at(space, &next))?;
    Some(Ok((found, next)))
}

/// The first bytes that come after all that begin with these; `None` where none do.
fn after_all_with(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix.get(..=last)?.to_vec();
    if let Some(byte) = end.last_mut() {
        *byte = byte.saturating_add(1);
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_first_other_bytes() {
        for (prefix, end) in
            [(&b""[..], None), (b"user:", Some(&b"user;"[..])), (b"a\xff\xff", Some(b"b")), (b"\xff", None)]
        {
            assert_eq!(after_all_with(prefix).as_deref(), end, "{}", prefix.escape_ascii());
        }
    }
}
