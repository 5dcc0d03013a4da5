//! Walks over a shard: first over its table, and then over what only rows hold.

use crate::shard::ShardEngine;
use base::KeyspaceId;
use engine::{Engine, Entry, ScanStep};

/// The bit of a cursor by which a walk is over the rows of a shard. No bound of a table has it.
const IN_ROWS: u64 = 1 << 16;

/// One step of a walk over a shard: first over its table, and then over what only rows hold. `since` is what
/// [`Engine::loads`] gave when the walk began, if that is known; then nothing is visited twice while nothing comes into
/// memory.
pub(crate) fn scan_step(
    engine: &mut ShardEngine,
    space: KeyspaceId,
    bound: u64,
    since: Option<u64>,
    visit: &mut dyn FnMut(&Entry<'_>),
) -> ScanStep {
    if bound & IN_ROWS == 0 {
        let step = engine.scan(space, bound, visit);
        let has_rows = step.next.is_none() && engine.loads(space) > 0;
        return if has_rows { ScanStep { next: Some(IN_ROWS) } } else { step };
    }
    let next = engine.scan_rows(space, position_of(bound), since, visit);
    ScanStep { next: next.map(cursor_of) }
}

/// The cursor of a walk in the order of names, which is over all shards, at a position of a name.
pub(crate) fn cursor_of(position: u64) -> u64 {
    position << (IN_ROWS.trailing_zeros() + 1) | IN_ROWS
}

/// The position of such a cursor.
pub(crate) fn position_of(cursor: u64) -> u64 {
    cursor >> (IN_ROWS.trailing_zeros() + 1)
}

/// Visits every entry of a shard, once.
pub(crate) fn visit_all(engine: &mut ShardEngine, space: KeyspaceId, visit: &mut dyn FnMut(&Entry<'_>)) {
    let since = Some(engine.loads(space));
    let mut next = Some(0);
    while let Some(bound) = next {
        next = scan_step(engine, space, bound, since, visit).next;
    }
}
