//! Values that know when they were written, in key spaces with a time to live.
//!
//! ```text
//!   stored value   value | time of its write (8 bytes, milliseconds since 1970, the smallest byte first)
//! ```
//!
//! X1. A value is over once its key space's time to live has passed since its write. From then on no reader sees it,
//!     read views included: flushes and merges may drop it whatever views are held.
//! X2. A value that is over hides older ones of its key, as a tombstone does. So a longer time to live, given later,
//!     brings no older value back.

/// Bytes after a value.
pub(crate) const TIME_LEN: usize = 8;

/// Appends a time to a value.
pub(crate) fn put_time(stored: &mut Vec<u8>, written_ms: u64) {
    stored.extend_from_slice(&written_ms.to_le_bytes());
}

/// A stored value, and when it was written.
pub(crate) fn split(stored: &[u8]) -> Option<(&[u8], u64)> {
    let (value, time) = stored.split_last_chunk::<TIME_LEN>()?;
    Some((value, u64::from_le_bytes(*time)))
}

/// When values of a key space expire, as of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expiry {
    /// `None`: never.
    pub ttl_ms: Option<u64>,
    pub now_ms: u64,
}

impl Expiry {
    fn is_over(&self, written_ms: u64) -> bool {
        self.ttl_ms.is_some_and(|ttl_ms| written_ms.saturating_add(ttl_ms) <= self.now_ms)
    }

    /// The value that a reader gets; `None` once it is over (X1).
    pub fn value<'a>(&self, stored: &'a [u8]) -> Option<&'a [u8]> {
        // Without a time it was not written by this release: it stays as it is.
        let Some((value, written_ms)) = split(stored) else { return Some(stored) };
        (!self.is_over(written_ms)).then_some(value)
    }

    /// Whether all values between these times are over.
    pub fn is_over_for_all(&self, times: Option<(u64, u64)>) -> bool {
        times.is_some_and(|(_, last)| self.is_over(last))
    }

    /// Whether a table with values between these times should be written anew without those that are over: all of them
    /// are, or about half. Where the rest will soon be over as well, the table waits for that.
    pub fn pays(&self, times: Option<(u64, u64)>) -> bool {
        let (Some((first, last)), Some(ttl_ms)) = (times, self.ttl_ms) else { return false };
        let middle = first + (last - first) / 2;
        self.is_over(last) || (self.is_over(middle) && last - first > ttl_ms / 4)
    }
}

/// Times of a table's values, from the first to the last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times(Option<(u64, u64)>);

impl Times {
    pub fn note(&mut self, stored: &[u8]) {
        let Some((_, at)) = split(stored) else { return };
        let (first, last) = self.0.unwrap_or((at, at));
        self.0 = Some((first.min(at), last.max(at)));
    }

    pub fn get(self) -> Option<(u64, u64)> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value is over when its time has come, not before, and never without a time to live.
    #[test]
    fn values_end_with_their_time() {
        let mut stored = b"value".to_vec();
        put_time(&mut stored, 1000);
        let at = |ttl_ms, now_ms| Expiry { ttl_ms, now_ms }.value(&stored).map(<[u8]>::to_vec);
        assert_eq!(at(Some(50), 1049), Some(b"value".to_vec()));
        assert_eq!(at(Some(50), 1050), None);
        assert_eq!(at(Some(50), 10), Some(b"value".to_vec()));
        assert_eq!(at(None, u64::MAX), Some(b"value".to_vec()));
        assert_eq!(Expiry { ttl_ms: Some(1), now_ms: 9 }.value(b"short"), Some(&b"short"[..]));
    }

    /// Tables of a short time wait until all is over, others until half is.
    #[test]
    fn tables_are_due_when_that_pays() {
        let at = |now_ms, times| Expiry { ttl_ms: Some(100), now_ms }.pays(Some(times));
        assert!(!at(119, (10, 20)) && at(120, (10, 20)));
        assert!(!at(149, (0, 100)) && at(150, (0, 100)));
        assert!(!Expiry { ttl_ms: Some(100), now_ms: 900 }.pays(None));
        assert!(!Expiry { ttl_ms: None, now_ms: 900 }.pays(Some((1, 2))));
    }
}
