//! ACL LOG: what was denied of late.

use super::check::Reason;
use base::UnixMs;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Equal denials within this time are one entry.
const MERGE_MS: i64 = 60_000;

/// The number of latest entries among which an equal denial is looked for.
const MERGE_ENTRIES_MAX: usize = 10;

/// An entry keeps the beginning of a longer object or name, so that denials cannot fill memory.
const NAME_BYTES_MAX: usize = 1024;

/// Valkey's default of `acllog-max-len`.
const ENTRIES_MAX_DEFAULT: usize = 128;

/// Where a denied request came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A client.
    TopLevel,
    /// A transaction.
    Multi,
    /// A script.
    Script,
}

impl Origin {
    /// Its word in ACL LOG.
    pub fn word(self) -> &'static str {
        match self {
            Self::TopLevel => "toplevel",
            Self::Multi => "multi",
            Self::Script => "lua",
        }
    }
}

/// One entry, or several equal ones.
#[derive(Clone, Debug)]
pub struct Entry {
    /// How many denials it stands for.
    pub count: u64,
    /// Why.
    pub reason: Reason,
    /// Where the request came from.
    pub origin: Origin,
    /// The command, key, channel or database.
    pub object: Vec<u8>,
    /// The user.
    pub user: Vec<u8>,
    /// The client of the last one, as CLIENT LIST shows it.
    pub client: String,
    /// Its number.
    pub id: u64,
    /// When the first was denied.
    pub created_at: UnixMs,
    /// When the last was denied.
    pub updated_at: UnixMs,
}

/// The latest denials, and how many there were of each kind.
pub struct Log {
    entries: Mutex<Entries>,
    entries_max: AtomicUsize,
    counts: [AtomicU64; 6],
}

#[derive(Default)]
struct Entries {
    /// The latest first.
    latest: VecDeque<Entry>,
    next_id: u64,
}

impl Default for Log {
    fn default() -> Self {
        let entries_max = AtomicUsize::new(ENTRIES_MAX_DEFAULT);
        Self { entries: Mutex::default(), entries_max, counts: Default::default() }
    }
}

impl Log {
    /// Sets `acllog-max-len`. Entries beyond it go with the next denial.
    pub fn set_max(&self, entries_max: usize) {
        self.entries_max.store(entries_max, Ordering::Relaxed);
    }

    /// Notes a denial.
    pub fn note(&self, reason: Reason, origin: Origin, object: &[u8], user: &[u8], client: String, now: UnixMs) {
        if let Some(count) = self.counts.get(reason as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let (object, user) = (beginning(object), beginning(user));
        let entries_max = self.entries_max.load(Ordering::Relaxed);
        let mut entries = self.entries.lock();
        let is_same = |entry: &Entry| {
            (entry.reason, entry.origin) == (reason, origin)
                && (entry.object.as_slice(), entry.user.as_slice()) == (object, user)
                && entry.updated_at.abs_diff(now) <= MERGE_MS.unsigned_abs()
        };
        let known = entries.latest.iter().take(MERGE_ENTRIES_MAX).position(is_same);
        let entry = match known.filter(|_| entries_max > 0).and_then(|place| entries.latest.remove(place)) {
            Some(entry) => Entry { count: entry.count.saturating_add(1), client, updated_at: now, ..entry },
            None if entries_max > 0 => {
                let id = entries.next_id;
                entries.next_id = id.wrapping_add(1);
                Entry {
                    count: 1,
                    reason,
                    origin,
                    object: object.to_vec(),
                    user: user.to_vec(),
                    client,
                    id,
                    created_at: now,
                    updated_at: now,
                }
            }
            None => return entries.latest.clear(),
        };
        entries.latest.push_front(entry);
        entries.latest.truncate(entries_max);
    }

    /// The latest entries, the last one first.
    pub fn latest(&self, count: usize) -> Vec<Entry> {
        self.entries.lock().latest.iter().take(count).cloned().collect()
    }

    /// Forgets the entries. Their numbers continue.
    pub fn reset(&self) {
        self.entries.lock().latest.clear();
    }

    /// How many requests and logins were denied for this reason.
    pub fn count(&self, reason: Reason) -> u64 {
        self.counts.get(reason as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Sets the counts back to 0 (CONFIG RESETSTAT).
    pub fn reset_counts(&self) {
        self.counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }
}

fn beginning(name: &[u8]) -> &[u8] {
    name.get(..NAME_BYTES_MAX).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deny(log: &Log, object: &str, now: UnixMs) {
        log.note(Reason::Key, Origin::TopLevel, object.as_bytes(), b"alice", format!("id={now}"), now);
    }

    fn shown(log: &Log) -> Vec<(String, u64, u64)> {
        let shown = |entry: Entry| (String::from_utf8(entry.object).unwrap(), entry.count, entry.id);
        log.latest(10).into_iter().map(shown).collect()
    }

    #[test]
    fn equal_denials_within_a_minute_are_one_entry() {
        let log = Log::default();
        deny(&log, "a", 0);
        deny(&log, "b", 1);
        deny(&log, "a", MERGE_MS);
        assert_eq!(shown(&log), [("a".to_owned(), 2, 0), ("b".to_owned(), 1, 1)]);
        deny(&log, "b", MERGE_MS + 2);
        assert_eq!(shown(&log)[0], ("b".to_owned(), 1, 2), "too late to be merged");
        assert_eq!(log.count(Reason::Key), 4);
        log.reset();
        assert!(shown(&log).is_empty());
    }

    #[test]
    fn the_log_is_bounded_and_can_be_off() {
        let log = Log::default();
        log.set_max(2);
        (0..5).for_each(|now| deny(&log, &now.to_string(), now));
        assert_eq!(shown(&log), [("4".to_owned(), 1, 4), ("3".to_owned(), 1, 3)]);
        log.set_max(0);
        deny(&log, "3", 5);
        assert!(shown(&log).is_empty());
        assert_eq!(log.count(Reason::Key), 6);
    }
}
