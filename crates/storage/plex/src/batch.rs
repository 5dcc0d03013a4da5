//! Changes that happen together, and their form as a record of the write-ahead log.
//!
//! ```text
//!   record      operation ...
//!   operation   tag | [sequence number] | [position of an external log] | [space] | length | key | [length] | value
//! ```
//!
//! The last operation's last part has no length: it reaches to the record's end. So a batch of one put costs two bytes
//! here, and eight with its frame. Format: docs/formats/plex-wal.md.

use std::ops::RangeBounds;

use base::varint;

use crate::error::{Error, Result};
use crate::expiry;
use crate::iter::IterOptions;
use crate::key::{BATCH_BYTES_MAX, KEY_LEN_MAX, SEQNO_MAX, Seqno, VALUE_LEN_MAX};

/// The kinds of operations, in the tag's low three bits; 0 is the log's own mark.
const PUT: u8 = 1;
const DELETE: u8 = 2;
const DELETE_RANGE: u8 = 3;
const KIND_MASK: u8 = 7;

/// A key space's id follows (otherwise it is 0).
const HAS_KEY_SPACE: u8 = 1 << 3;
/// This is the last operation.
const IS_LAST: u8 = 1 << 4;
/// First operation only: its sequence number follows (otherwise it is the next after the record before).
const HAS_SEQNO: u8 = 1 << 5;
/// First operation only: the position of an external log follows.
const HAS_LSN: u8 = 1 << 6;

/// Changes that become visible together and are recovered together or not at all. Later operations win over earlier
/// ones of the same batch.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    operations: Vec<Operation>,
    data: Vec<u8>,
    lsn: u64,
    wrong: Option<&'static str>,
}

#[derive(Clone, Debug)]
struct Operation {
    kind: u8,
    key_space: u32,
    /// Where `first` begins in the data; `second` follows it.
    at: usize,
    first_len: usize,
    second_len: usize,
}

impl Operation {
    /// The end of a range is after its start, so it is never empty.
    fn is_open_range(&self) -> bool {
        self.kind == DELETE_RANGE && self.second_len == 0
    }
}

/// One operation, to be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change<'a> {
    Put {
        key: &'a [u8],
        value: &'a [u8],
    },
    Delete {
        key: &'a [u8],
    },
    /// Without an end where that is empty, which a written batch has not.
    DeleteRange {
        start: &'a [u8],
        end: &'a [u8],
    },
}

impl WriteBatch {
    /// Without operations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the key a value, in the default key space.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> &mut Self {
        self.put_in(crate::KeySpaceId::DEFAULT, key, value)
    }

    /// Gives the key a value.
    pub fn put_in(&mut self, space: crate::KeySpaceId, key: &[u8], value: &[u8]) -> &mut Self {
        self.push(PUT, space, key, value)
    }

    /// Deletes the key, in the default key space.
    pub fn delete(&mut self, key: &[u8]) -> &mut Self {
        self.delete_in(crate::KeySpaceId::DEFAULT, key)
    }

    /// Deletes the key.
    pub fn delete_in(&mut self, space: crate::KeySpaceId, key: &[u8]) -> &mut Self {
        self.push(DELETE, space, key, b"")
    }

    /// Deletes all keys of the range, in the default key space.
    pub fn delete_range<'a>(&mut self, range: impl RangeBounds<&'a [u8]>) -> &mut Self {
        self.delete_range_in(crate::KeySpaceId::DEFAULT, range)
    }

    /// Deletes all keys of the range, such as `start..end`, `start..` or `..`. An empty range does nothing.
    pub fn delete_range_in<'a>(&mut self, space: crate::KeySpaceId, range: impl RangeBounds<&'a [u8]>) -> &mut Self {
        let IterOptions { lower, upper } = IterOptions::range(range);
        let (start, end) = (lower.unwrap_or_default(), upper.as_deref());
        if end.is_some_and(|end| end <= &start[..]) {
            return self;
        }
        // The end of a range that has none is found when the batch is written (see `closed`).
        self.push(DELETE_RANGE, space, &start, end.unwrap_or_default())
    }

    /// Whether a deleted range has no end yet.
    pub(crate) fn has_open_ranges(&self) -> bool {
        self.operations.iter().any(Operation::is_open_range)
    }

    /// The batch with an end for each deleted range: the first key after the largest that exists. `largest` returns a
    /// bound of the keys of a key space, without those of this batch.
    pub(crate) fn closed(&self, largest: impl Fn(u32) -> Option<Vec<u8>>) -> Self {
        let mut closed = Self { lsn: self.lsn, wrong: self.wrong, ..Self::default() };
        for operation in &self.operations {
            let space = crate::KeySpaceId(operation.key_space);
            let (start, second) = self.parts(operation);
            if !operation.is_open_range() {
                closed.push(operation.kind, space, start, second);
                continue;
            }
            let own = closed.operations.iter().filter(|own| own.key_space == operation.key_space && own.kind == PUT);
            let own = own.map(|own| closed.parts(own).0).max().map(<[u8]>::to_vec);
            let last = largest(operation.key_space).max(own).filter(|last| &last[..] >= start);
            match last {
                None => {}
                Some(mut last) if last.len() < KEY_LEN_MAX => {
                    last.push(0);
                    closed.push(DELETE_RANGE, space, start, &last);
                }
                // There is no longer key that could be the end.
                Some(last) => {
                    if start < &last[..] {
                        closed.push(DELETE_RANGE, space, start, &last);
                    }
                    closed.push(DELETE, space, &last, b"");
                }
            }
        }
        closed
    }

    /// The batch as it is stored: values of key spaces that have times are followed by this one.
    pub(crate) fn timed(&self, has_times: impl Fn(u32) -> bool, now_ms: u64) -> Self {
        let mut timed = Self { lsn: self.lsn, wrong: self.wrong, ..Self::default() };
        let mut stored = Vec::new();
        for operation in &self.operations {
            let (first, mut second) = self.parts(operation);
            if operation.kind == PUT && has_times(operation.key_space) {
                stored.clear();
                stored.extend_from_slice(second);
                expiry::put_time(&mut stored, now_ms);
                second = &stored;
            }
            timed.push(operation.kind, crate::KeySpaceId(operation.key_space), first, second);
        }
        timed
    }

    /// The position in an external log after the record that this batch comes from. A flush that contains the batch
    /// makes it [`recovered_lsn`](crate::Db::recovered_lsn) of the next open. A batch
    /// with a smaller position than one written before, since the open, is refused.
    pub fn set_lsn(&mut self, lsn: u64) -> &mut Self {
        self.lsn = lsn;
        self
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether there are no operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Removes all operations and keeps the memory.
    pub fn clear(&mut self) {
        self.operations.clear();
        self.data.clear();
        self.lsn = 0;
        self.wrong = None;
    }

    /// Frees memory for keys and values beyond `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        if self.data.capacity() > bytes {
            self.data = Vec::new();
        }
    }

    fn push(&mut self, kind: u8, space: crate::KeySpaceId, first: &[u8], second: &[u8]) -> &mut Self {
        if first.len() > KEY_LEN_MAX || (kind == DELETE_RANGE && second.len() > KEY_LEN_MAX) {
            self.wrong = Some("a key has more than 65,535 bytes");
        } else if second.len() > VALUE_LEN_MAX {
            self.wrong = Some("a value has more than 1 GiB, with the 8 bytes of its time where it has one");
        } else {
            let at = self.data.len();
            self.data.reserve(first.len() + second.len());
            self.data.extend_from_slice(first);
            self.data.extend_from_slice(second);
            let (first_len, second_len) = (first.len(), second.len());
            self.operations.push(Operation { kind, key_space: space.0, at, first_len, second_len });
        }
        self
    }

    /// # Errors
    /// Invalid argument, if a key or value that was put in is too long, or all together.
    pub(crate) fn check(&self) -> Result<()> {
        let is_too_long = is_too_long(self.data.len(), self.operations.len());
        let wrong = self.wrong.or(is_too_long.then_some("a batch has more than 4 GiB: cut it into several"));
        wrong.map_or(Ok(()), |what| Err(Error::InvalidArgument(what.into())))
    }

    pub(crate) fn lsn(&self) -> u64 {
        self.lsn
    }

    /// Lengths of all keys and values.
    pub(crate) fn user_bytes(&self) -> u64 {
        self.data.len() as u64
    }

    /// The operations in order, with their key spaces.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (u32, Change<'_>)> {
        self.operations.iter().map(|operation| {
            let (first, second) = self.parts(operation);
            let change = match operation.kind {
                PUT => Change::Put { key: first, value: second },
                DELETE => Change::Delete { key: first },
                _ => Change::DeleteRange { start: first, end: second },
            };
            (operation.key_space, change)
        })
    }

    fn parts(&self, operation: &Operation) -> (&[u8], &[u8]) {
        let first_end = operation.at + operation.first_len;
        (&self.data[operation.at..first_end], &self.data[first_end..first_end + operation.second_len])
    }

    /// The record; `seqno` stands in it only if it is given.
    pub(crate) fn encode(&self, seqno: Option<Seqno>, out: &mut Vec<u8>) {
        out.clear();
        for (index, operation) in self.operations.iter().enumerate() {
            let is_last = index + 1 == self.operations.len();
            let seqno = seqno.filter(|_| index == 0);
            let lsn = (index == 0 && self.lsn > 0).then_some(self.lsn);
            let mut tag = operation.kind;
            for (flag, is_set) in [
                (HAS_KEY_SPACE, operation.key_space != 0),
                (IS_LAST, is_last),
                (HAS_SEQNO, seqno.is_some()),
                (HAS_LSN, lsn.is_some()),
            ] {
                tag |= if is_set { flag } else { 0 };
            }
            out.push(tag);
            let numbers = [seqno, lsn, (operation.key_space != 0).then_some(u64::from(operation.key_space))];
            numbers.into_iter().flatten().for_each(|number| varint::put(out, number));
            let (first, second) = self.parts(operation);
            if operation.kind != DELETE || !is_last {
                varint::put(out, first.len() as u64);
            }
            out.extend_from_slice(first);
            if operation.kind != DELETE {
                if !is_last {
                    varint::put(out, second.len() as u64);
                }
                out.extend_from_slice(second);
            }
        }
    }

    /// Undoes [`encode`](Self::encode), with the first operation's sequence number, which is `next` unless it stands in
    /// the record. `None` if the bytes are no batch.
    pub(crate) fn decode(bytes: &[u8], next: Seqno) -> Option<(Seqno, WriteBatch)> {
        let mut batch = WriteBatch::new();
        let head = decode_changes(bytes, next, |space, change| {
            let (kind, first, second) = match change {
                Change::Put { key, value } => (PUT, key, value),
                Change::Delete { key } => (DELETE, key, &b""[..]),
                Change::DeleteRange { start, end } => (DELETE_RANGE, start, end),
            };
            batch.push(kind, crate::KeySpaceId(space), first, second);
        })?;
        batch.lsn = head.lsn;
        Some((head.first, batch))
    }
}

/// What a record says of all its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHead {
    /// The first operation's sequence number; each further one has the next.
    pub first: Seqno,
    pub len: u64,
    /// The position of an external log; 0 for none.
    pub lsn: u64,
}

/// Hands a record's operations to `see`, with their key spaces and without a copy, and gives what holds for all of
/// them. `next` is the first one's sequence number unless one stands in the record. `None` if the bytes are no batch:
/// what was seen does not count.
pub(crate) fn decode_changes<'a>(
    mut bytes: &'a [u8],
    next: Seqno,
    mut see: impl FnMut(u32, Change<'a>),
) -> Option<RecordHead> {
    let rest = &mut bytes;
    let mut head = RecordHead { first: next, len: 0, lsn: 0 };
    loop {
        let (&tag, behind) = rest.split_first()?;
        *rest = behind;
        if tag & 1 << 7 != 0 || (tag & (HAS_SEQNO | HAS_LSN) != 0 && head.len > 0) {
            return None;
        }
        let mut number = |flag: u8| if tag & flag != 0 { varint::take(rest) } else { Some(0) };
        let (seqno, lsn, space) = (number(HAS_SEQNO)?, number(HAS_LSN)?, number(HAS_KEY_SPACE)?);
        if tag & HAS_SEQNO != 0 {
            head.first = seqno;
        }
        head.lsn = head.lsn.max(lsn);
        let is_last = tag & IS_LAST != 0;
        let mut part = |reaches_to_end: bool, len_max: usize| {
            let len = if reaches_to_end { rest.len() } else { usize::try_from(varint::take(rest)?).ok()? };
            let (part, behind) = rest.split_at_checked(len).filter(|_| len <= len_max)?;
            *rest = behind;
            Some(part)
        };
        let change = match tag & KIND_MASK {
            PUT => Change::Put { key: part(false, KEY_LEN_MAX)?, value: part(is_last, VALUE_LEN_MAX)? },
            DELETE => Change::Delete { key: part(is_last, KEY_LEN_MAX)? },
            DELETE_RANGE => Change::DeleteRange { start: part(false, KEY_LEN_MAX)?, end: part(is_last, KEY_LEN_MAX)? },
            _ => return None,
        };
        see(u32::try_from(space).ok()?, change);
        head.len += 1;
        if is_last {
            break;
        }
    }
    (rest.is_empty() && head.first <= SEQNO_MAX - head.len).then_some(head)
}

/// Whether a batch of this size is larger than [`BATCH_BYTES_MAX`].
fn is_too_long(bytes: usize, operations: usize) -> bool {
    (bytes as u64).saturating_add((operations as u64).saturating_mul(32)) > BATCH_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeySpaceId;
    use base::Rng;

    /// Batches come back from their records; cut or damaged records are refused or are other batches, never a panic.
    #[test]
    fn records_round_trip() {
        let mut rng = Rng::new(8);
        let mut record = Vec::new();
        for _ in 0..500 {
            let mut batch = WriteBatch::new();
            batch.set_lsn(rng.below(2) * rng.below(1000));
            for _ in 0..=rng.below(4) {
                let space = KeySpaceId(rng.below(3) as u32);
                let key = vec![b'k'; rng.below(200) as usize];
                match rng.below(3) {
                    0 => batch.put_in(space, &key, &vec![b'v'; rng.below(300) as usize]),
                    1 => batch.delete_in(space, &key),
                    _ => batch.delete_range_in(space, &key[..]..&b"z"[..]),
                };
            }
            let seqno = (!rng.one_in(2)).then_some(rng.below(1 << 40));
            batch.encode(seqno, &mut record);
            let (first, decoded) = WriteBatch::decode(&record, 77).expect("a batch");
            assert_eq!(first, seqno.unwrap_or(77));
            assert_eq!(decoded.lsn, batch.lsn);
            assert!(decoded.changes().eq(batch.changes()));
            for _ in 0..20 {
                let mut damaged = record.clone();
                let at = rng.below(damaged.len() as u64) as usize;
                damaged[at] = rng.next_u64() as u8;
                damaged.truncate(1 + rng.below(damaged.len() as u64) as usize);
                let _ = WriteBatch::decode(&damaged, 1);
            }
        }
    }

    /// The promised size: two bytes in addition to key and value for a single put, eight in the file.
    #[test]
    fn a_put_costs_two_bytes() {
        let mut record = Vec::new();
        WriteBatch::new().put(b"0123456789", &[0; 200]).encode(None, &mut record);
        assert_eq!(record.len(), 212);
        assert_eq!(varint::len(212) + 4 + 2, 8);
    }

    #[test]
    fn too_long_batches_are_refused() {
        let max = BATCH_BYTES_MAX as usize;
        assert!(!is_too_long(max - 320, 10));
        assert!(is_too_long(max - 319, 10));
        assert!(is_too_long(max, usize::MAX));
    }

    #[test]
    fn too_long_keys_are_refused() {
        let mut batch = WriteBatch::new();
        batch.put(&[0; KEY_LEN_MAX], b"v");
        assert!(batch.check().is_ok());
        batch.put(&[0; KEY_LEN_MAX + 1], b"v");
        assert!(matches!(batch.check(), Err(Error::InvalidArgument(_))));
    }
}
