//! Over all keys of a keyspace: SCAN, KEYS, RANDOMKEY.

use engine::{Entry, Keyspace};

/// Steps that visit nothing are ended after this many per entry asked for, so that a walk over a table that has emptied
/// stays short.
const STEPS_PER_ENTRY: u64 = 10;

/// How often a random entry is drawn anew because it has expired.
const RANDOM_DRAWS: usize = 100;

/// Visits the live entries of the stretch that starts at `cursor` (0 starts a walk), of about `count` entries, and
/// returns the cursor of the next stretch: 0 when the walk is complete. Every entry present throughout a whole walk is
/// visited at least once.
pub fn scan(ks: &mut dyn Keyspace, cursor: u64, entries: u64, visit: &mut dyn FnMut(&Entry<'_>)) -> u64 {
    let (space, now) = (ks.space(), ks.now());
    let (mut cursor, mut visited) = (cursor, 0u64);
    let steps = entries.saturating_mul(STEPS_PER_ENTRY);
    for _ in 0..steps {
        let step = ks.scan(space, cursor, &mut |entry| {
            visited = visited.saturating_add(1);
            if !entry.is_expired(now) {
                visit(entry);
            }
        });
        // A step that cannot continue (the next shard is locked) returns its own cursor.
        let stuck = step.next == Some(cursor);
        cursor = step.next.unwrap_or(0);
        if cursor == 0 || stuck || visited >= entries {
            break;
        }
    }
    cursor
}

/// Visits every live entry of the selected keyspace, whose shards are all locked, or locked one stretch at a time: then
/// entries that come or go meanwhile may be visited or not, and no other is missed or visited twice.
pub fn all(ks: &mut dyn Keyspace, visit: &mut dyn FnMut(&Entry<'_>)) {
    let (space, now) = (ks.space(), ks.now());
    let mut cursor = Some(0);
    while let Some(from) = cursor {
        cursor = ks
            .scan(space, from, &mut |entry| {
                if !entry.is_expired(now) {
                    visit(entry)
                }
            })
            .next;
        assert!(cursor != Some(from), "a walk over locked shards did not move");
    }
}

/// Shows some live key, each about equally likely, while few have expired. False when there is none.
pub fn random_key(ks: &mut dyn Keyspace, show: &mut dyn FnMut(&[u8])) -> bool {
    let (space, now) = (ks.space(), ks.now());
    for _ in 0..RANDOM_DRAWS {
        match ks.random_entry(space) {
            None => break,
            Some(entry) if entry.is_expired(now) => {}
            Some(entry) => {
                show(entry.key);
                return true;
            }
        }
    }
    // After this many draws of expired entries, a walk over all entries is the surer way to find one.
    let mut first = None;
    all(ks, &mut |entry| {
        if first.is_none() {
            first = Some(entry.key.to_vec());
        }
    });
    first.is_some_and(|key| {
        show(&key);
        true
    })
}
