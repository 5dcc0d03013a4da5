//! Puts the records of all workers, and the log's own marks, into one stream again: by LSN, without a gap.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::frame::{self, Kind, MARK_BYTES};
use crate::ring::Entry;
use crate::shared::{Intake, Shared};

/// How far one worker's records are merged.
#[derive(Clone, Copy, Default)]
struct Lane {
    /// Position in the ring.
    ring: u64,
    /// Number of the record in the side queue.
    side: u64,
    head: Option<Head>,
}

/// The next record of a lane.
#[derive(Clone, Copy)]
enum Head {
    Ring(Entry),
    Side(u64),
}

impl Head {
    fn lsn(&self) -> u64 {
        match self {
            Self::Ring(entry) => entry.lsn,
            Self::Side(lsn) => *lsn,
        }
    }
}

impl Lane {
    /// The lane's next record at or beyond `from`, if it is published.
    fn head(&mut self, intake: &Intake, from: u64) -> Option<Head> {
        while self.head.is_none_or(|head| head.lsn() < from) {
            match self.head.take() {
                // Durable already, and merged a second time after a failure.
                Some(old) => self.pass(old),
                None => {
                    let in_ring = intake.ring.entry(self.ring).map(Head::Ring);
                    let beside = intake.side.get(self.side).map(|(lsn, _)| Head::Side(lsn));
                    self.head = in_ring.into_iter().chain(beside).min_by_key(Head::lsn);
                    self.head?;
                }
            }
        }
        self.head
    }

    fn pass(&mut self, head: Head) {
        match head {
            Head::Ring(entry) => self.ring = entry.end(),
            Head::Side(_) => self.side += 1,
        }
    }
}

/// A mark that is not durable yet.
struct OwnMark {
    lsn: u64,
    kind: Kind,
    payload: [u8; MARK_BYTES],
}

/// What comes next in the stream.
pub(crate) enum Picked {
    /// A record in a worker's ring.
    Ring(usize, Entry),
    /// A record by reference.
    Side(Arc<[u8]>),
    /// One of the log's own.
    Mark(Kind, [u8; MARK_BYTES]),
}

impl Picked {
    /// Bytes of the payload.
    pub fn payload_bytes(&self) -> usize {
        match self {
            Self::Ring(_, entry) => entry.bytes,
            Self::Side(payload) => payload.len(),
            Self::Mark(..) => MARK_BYTES,
        }
    }
}

/// The merge. Cursors only; what is merged stays where it is until it is released.
pub(crate) struct Merge {
    lanes: Vec<Lane>,
    marks: VecDeque<OwnMark>,
    /// The lane that gave the last record: the likeliest to give the next.
    last: usize,
}

impl Merge {
    pub fn new(workers: usize) -> Self {
        Self { lanes: vec![Lane::default(); workers], marks: VecDeque::new(), last: 0 }
    }

    /// Adds a mark to the stream.
    pub fn push_mark(&mut self, shared: &Shared, kind: Kind, payload: [u8; MARK_BYTES]) {
        let lsn = shared.reserve(frame::frame_bytes(MARK_BYTES));
        self.marks.push_back(OwnMark { lsn, kind, payload });
    }

    /// Takes what stands at `next`; `None` if its worker has not published it yet, or nothing was appended.
    pub fn take(&mut self, intakes: &[Intake], next: u64) -> Option<Picked> {
        let count = self.lanes.len();
        for offset in 0..count {
            let index = (self.last + offset) % count;
            let (lane, intake) = (&mut self.lanes[index], &intakes[index]);
            let Some(head) = lane.head(intake, next).filter(|head| head.lsn() == next) else { continue };
            let picked = match head {
                Head::Ring(entry) => Picked::Ring(index, entry),
                Head::Side(_) => Picked::Side(intake.side.get(lane.side)?.1),
            };
            lane.head = None;
            lane.pass(head);
            self.last = index;
            return Some(picked);
        }
        let mark = self.marks.iter().find(|mark| mark.lsn == next)?;
        Some(Picked::Mark(mark.kind, mark.payload))
    }

    /// How far each ring is merged.
    pub fn ring_positions(&self) -> Vec<u64> {
        self.lanes.iter().map(|lane| lane.ring).collect()
    }

    /// Goes back to the first record that is kept.
    pub fn rewind(&mut self, intakes: &[Intake]) {
        for (lane, intake) in self.lanes.iter_mut().zip(intakes) {
            *lane = Lane { ring: intake.ring.released(), side: intake.side.released(), head: None };
        }
    }

    /// Forgets the marks before `lsn`.
    pub fn release_marks(&mut self, lsn: u64) {
        while self.marks.front().is_some_and(|mark| mark.lsn < lsn) {
            self.marks.pop_front();
        }
    }
}
