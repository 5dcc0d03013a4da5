//! Frames: the encoding of a record or a mark in the log's stream.
//!
//! ```text
//! checksum (4) | kind (1) | length of the payload (varint) | payload
//! ```
//!
//! F1. The checksum covers the history id, the LSN where the frame begins, and all bytes after the checksum. So a frame
//!     is valid at one place of one history only: stale contents and misplaced sectors do not pass as frames.
//! F2. Within a history, at most one frame is ever written for an LSN.
//! F3. No run of zero bytes is a frame, since no kind is 0.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used))]

use base::checksum::Crc32c;
use base::{HistoryId, Lsn, UnixMs, varint};

const CHECKSUM_BYTES: usize = 4;
const HISTORY_BYTES: usize = 20;
const LSN_BYTES: usize = 8;
/// The part of a frame's place that its checksum covers (F1).
const PLACE_BYTES: usize = HISTORY_BYTES + LSN_BYTES;
/// The most bytes that a frame has before its payload.
pub(crate) const HEAD_BYTES_MAX: usize = CHECKSUM_BYTES + 1 + varint::MAX_LEN;
/// Bytes of a mark's payload.
pub(crate) const MARK_BYTES: usize = 16;
/// Bytes of a mark's whole frame.
pub(crate) const MARK_FRAME_BYTES: usize = CHECKSUM_BYTES + 1 + 1 + MARK_BYTES;

/// What a frame holds. The numbers are part of the format: never reused, never 0 (F3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The effects of one command or transaction.
    Record = 1,
    /// A [`Mark`].
    Mark = 2,
    /// A [`Mark`] that ends the log: the program shut down in order.
    End = 3,
}

impl Kind {
    pub fn of(number: u8) -> Option<Self> {
        [Self::Record, Self::Mark, Self::End].into_iter().find(|kind| *kind as u8 == number)
    }
}

/// A statement of the log about itself, in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Wall time when the mark was made.
    pub time_ms: UnixMs,
    /// How far the log was durable then. Damage before this position is not a torn tail.
    pub durable_lsn: Lsn,
}

impl Mark {
    pub(crate) fn encode(self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        let (time, durable) = bytes.split_at_mut(8);
        time.copy_from_slice(&self.time_ms.to_le_bytes());
        durable.copy_from_slice(&self.durable_lsn.0.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let (time, durable) = payload.split_first_chunk::<8>()?;
        let durable: [u8; 8] = durable.try_into().ok()?;
        Some(Self { time_ms: UnixMs::from_le_bytes(*time), durable_lsn: Lsn(u64::from_le_bytes(durable)) })
    }
}

/// Bytes a frame takes in the stream.
#[inline]
pub(crate) fn frame_bytes(payload: usize) -> u64 {
    (CHECKSUM_BYTES as u64)
        .saturating_add(1)
        .saturating_add(varint::len(payload as u64) as u64)
        .saturating_add(payload as u64)
}

/// Writes a frame's bytes up to its payload, except the checksum, and returns their number. `frame` must have room for
/// them.
pub(crate) fn begin(frame: &mut [u8], kind: Kind, payload: usize) -> usize {
    let Some((_, [kind_at, length_at @ ..])) = frame.split_first_chunk_mut::<CHECKSUM_BYTES>() else { return 0 };
    *kind_at = kind as u8;
    CHECKSUM_BYTES.saturating_add(1).saturating_add(varint::write(length_at, payload as u64))
}

/// The length of the frame that begins with these bytes; `None` if they are too few.
pub(crate) fn bytes_by_head(head: &[u8]) -> Option<u64> {
    let mut rest = head.get(CHECKSUM_BYTES.saturating_add(1)..)?;
    let length = varint::take(&mut rest)?;
    (head.len().saturating_sub(rest.len()) as u64).checked_add(length)
}

/// Writes the checksum of a frame. `rest` holds the parts of the payload that are not in `frame`.
pub(crate) fn seal(frame: &mut [u8], history: &HistoryId, lsn: u64, rest: &[&[u8]]) {
    let Some((checksum, body)) = frame.split_first_chunk_mut::<CHECKSUM_BYTES>() else { return };
    *checksum = checksum_of(history, lsn, body, rest).to_le_bytes();
}

fn checksum_of(history: &HistoryId, lsn: u64, body: &[u8], rest: &[&[u8]]) -> u32 {
    let mut start = [0; PLACE_BYTES + HEAD_BYTES_MAX];
    let (id, behind) = start.split_at_mut(HISTORY_BYTES);
    id.copy_from_slice(&history.0);
    let (position, head) = behind.split_at_mut(LSN_BYTES);
    position.copy_from_slice(&lsn.to_le_bytes());
    let mut crc = Crc32c::new();
    // A head without payload is hashed together with its place: one short piece costs as much as two.
    match head.get_mut(..body.len()) {
        Some(head) => {
            head.copy_from_slice(body);
            crc.update(start.get(..PLACE_BYTES.saturating_add(body.len())).unwrap_or_default());
        }
        None => {
            crc.update(start.get(..PLACE_BYTES).unwrap_or_default()).update(body);
        }
    }
    for part in rest {
        crc.update(part);
    }
    crc.finish()
}

/// What the bytes at a position of the log are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Look<'a> {
    /// A frame with a right checksum.
    Frame {
        /// Its kind's number; this program may not know it.
        kind: u8,
        payload: &'a [u8],
        /// Bytes of the whole frame.
        bytes: u64,
    },
    /// A frame may begin here, and has this many bytes: more than the caller passed.
    Needs(u64),
    /// No frame.
    Broken,
}

/// Examines the bytes at `lsn`.
pub(crate) fn look<'a>(bytes: &'a [u8], history: &HistoryId, lsn: u64) -> Look<'a> {
    let Some((checksum, body)) = bytes.split_first_chunk::<CHECKSUM_BYTES>() else { return Look::Broken };
    let Some((&kind, mut rest)) = body.split_first() else { return Look::Broken };
    if kind == 0 {
        return Look::Broken;
    }
    let Some(length) = varint::take(&mut rest) else { return Look::Broken };
    let head = bytes.len().saturating_sub(rest.len());
    let Some(all) = (head as u64).checked_add(length) else { return Look::Broken };
    let Some(payload) = usize::try_from(length).ok().and_then(|length| rest.get(..length)) else {
        return Look::Needs(all);
    };
    let Some(body) = usize::try_from(all).ok().and_then(|end| bytes.get(CHECKSUM_BYTES..end)) else {
        return Look::Broken;
    };
    if u32::from_le_bytes(*checksum) != checksum_of(history, lsn, body, &[]) {
        return Look::Broken;
    }
    Look::Frame { kind, payload, bytes: all }
}

/// The newest statement about durability among the marks in these bytes, which begin at `lsn`. Tries every offset,
/// because frame boundaries are unknown after damage.
pub(crate) fn marks_within(bytes: &[u8], history: &HistoryId, lsn: u64) -> Option<Lsn> {
    let heads = bytes.windows(MARK_FRAME_BYTES).enumerate();
    let like_marks = heads.filter(|(_, frame)| {
        let kind = frame.get(CHECKSUM_BYTES).copied();
        let kind = kind == Some(Kind::Mark as u8) || kind == Some(Kind::End as u8);
        kind && frame.get(CHECKSUM_BYTES.saturating_add(1)).copied() == Some(MARK_BYTES as u8)
    });
    let marks = like_marks.filter_map(|(at, frame)| match look(frame, history, lsn.checked_add(at as u64)?) {
        Look::Frame { payload, .. } => Mark::decode(payload).map(|mark| mark.durable_lsn),
        _ => None,
    });
    marks.max()
}

#[cfg(test)]
pub(crate) fn encode(history: &HistoryId, lsn: u64, kind: Kind, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; frame_bytes(payload.len()) as usize];
    let head = begin(&mut frame, kind, payload.len());
    frame[head..].copy_from_slice(payload);
    seal(&mut frame, history, lsn, &[]);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HISTORY: HistoryId = HistoryId([7; 20]);

    /// A frame reads back whole, and only at its own place (F1).
    #[test]
    fn a_frame_is_valid_at_one_place_only() {
        for len in [0, 1, 127, 128, 70_000] {
            let payload = vec![3; len];
            let bytes = encode(&HISTORY, 99, Kind::Record, &payload);
            assert_eq!(bytes.len() as u64, frame_bytes(len));
            let expected = Look::Frame { kind: 1, payload: &payload, bytes: bytes.len() as u64 };
            assert_eq!(look(&bytes, &HISTORY, 99), expected);
            assert_eq!(look(&bytes, &HISTORY, 98), Look::Broken);
            assert_eq!(look(&bytes, &HistoryId([8; 20]), 99), Look::Broken);
            if len > 0 {
                assert_eq!(look(&bytes[..bytes.len() - 1], &HISTORY, 99), Look::Needs(bytes.len() as u64));
            }
        }
    }

    /// Framing costs the promised seven to ten bytes for records of 128 bytes and more, and six below.
    #[test]
    fn framing_is_small() {
        for (payload, framing) in [(0, 6), (127, 6), (128, 7), (16_384, 8), (1 << 28, 10), ((1 << 35) - 1, 10)] {
            assert_eq!(frame_bytes(payload) - payload as u64, framing);
        }
    }

    /// Zeros never form a frame (F3), and no frame survives a flipped bit.
    #[test]
    fn zeros_and_flipped_bits_are_no_frames() {
        assert_eq!(look(&[0; 64], &HISTORY, 0), Look::Broken);
        let bytes = encode(&HISTORY, 5, Kind::Record, b"payload");
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(look(&bytes, &HISTORY, 5), Look::Frame { .. }), "bit {bit}");
        }
    }

    /// Marks are found at any offset, after any garbage; the newest counts.
    #[test]
    fn marks_are_found_behind_garbage() {
        let mark = |durable: u64| Mark { time_ms: 1, durable_lsn: Lsn(durable) }.encode();
        let mut bytes = vec![0xff; 13];
        bytes.extend(encode(&HISTORY, 1013, Kind::Mark, &mark(900)));
        bytes.extend([2; 40]);
        let at = 1000 + bytes.len() as u64;
        bytes.extend(encode(&HISTORY, at, Kind::End, &mark(950)));
        assert_eq!(marks_within(&bytes, &HISTORY, 1000), Some(Lsn(950)));
        assert_eq!(marks_within(&bytes, &HISTORY, 1001), None);
        assert_eq!(marks_within(&bytes[..40], &HISTORY, 1000), Some(Lsn(900)));
    }

    proptest! {
        /// Arbitrary bytes cause no panic. Input that is too short reports how many bytes it needs.
        #[test]
        fn looking_is_total(bytes in proptest::collection::vec(any::<u8>(), 0..64), lsn in any::<u64>()) {
            if let Look::Needs(all) = look(&bytes, &HISTORY, lsn) {
                prop_assert!(all > bytes.len() as u64);
            }
            marks_within(&bytes, &HISTORY, lsn);
        }
    }
}
