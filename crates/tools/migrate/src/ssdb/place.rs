//! How far a copy is: fields of a hash in the database that receives it, changed in the transactions that change data.

use super::row::before_queue;
use proto::reply::Value;
use std::collections::BTreeMap;

/// The key of the hash.
pub(super) const KEY: &[u8] = b"onggi:import";

/// A part of the copy: the rows after a key, up to the next part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub after: Vec<u8>,
    pub seen: Seen,
}

/// Which entries of the binlog rows that were read already have: all up to `all`, none after `some`, and of those in
/// between it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub all: u64,
    pub some: u64,
}

/// What an entry means for a queue whose rows were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The rows have it.
    Had,
    /// The rows may have it: the queue is to be read again.
    Unknown,
    New,
}

impl Seen {
    fn fate(self, sequence: u64) -> Fate {
        match sequence {
            sequence if sequence <= self.all => Fate::Had,
            sequence if sequence <= self.some => Fate::Unknown,
            _ => Fate::New,
        }
    }
}

/// How far a copy is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The SSDB.
    pub source: String,
    /// Whether types have databases of their own.
    pub is_separate: bool,
    /// Whether all rows were read.
    pub is_copied: bool,
    /// The last entry of the binlog that is applied.
    pub sequence: u64,
    /// The last row that was read.
    pub row: Vec<u8>,
    pub parts: Vec<Part>,
    /// Queues that are to be read again, and those that were.
    pub queues: BTreeMap<Vec<u8>, Again>,
    /// Requests that were refused.
    pub left_out: u64,
    /// Why the copy ended.
    pub failure: Option<String>,
}

/// A queue that is read apart from the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    ToRead,
    Read(Seen),
}

impl Place {
    pub fn new(source: String) -> Self {
        Self { source, ..Self::default() }
    }

    /// As fields of the hash: `None` if there is none.
    pub fn load(fields: &[Value]) -> Option<Self> {
        if fields.is_empty() {
            return None;
        }
        let mut place = Self::default();
        for pair in fields.chunks_exact(2) {
            let [name, value] = pair else { continue };
            place.load_field(name.as_bytes()?, value.as_bytes()?)?;
        }
        place.parts.sort_by(|a, b| a.after.cmp(&b.after));
        Some(place)
    }

    fn load_field(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        let text = || std::str::from_utf8(value).ok();
        match name {
            b"source" => self.source = text()?.to_owned(),
            b"databases" => self.is_separate = value != b"1",
            b"copied" => self.is_copied = value == b"yes",
            b"sequence" => self.sequence = text()?.parse().ok()?,
            b"row" => self.row = value.to_vec(),
            b"left_out" => self.left_out = text()?.parse().ok()?,
            b"failure" => self.failure = Some(text()?.to_owned()),
            _ => {
                if let Some(after) = name.strip_prefix(b"part:") {
                    self.parts.push(Part { after: after.to_vec(), seen: seen(text()?)? });
                } else if let Some(queue) = name.strip_prefix(b"queue:") {
                    let again = if value == b"read" { Again::ToRead } else { Again::Read(seen(text()?)?) };
                    self.queues.insert(queue.to_vec(), again);
                }
            }
        }
        Some(())
    }

    /// What an entry means for a queue.
    pub fn fate(&self, queue: &[u8], sequence: u64) -> Fate {
        let seen = match self.queues.get(queue) {
            Some(Again::ToRead) => return Fate::Unknown,
            Some(Again::Read(seen)) => *seen,
            None => {
                let key = before_queue(queue);
                let next = self.parts.partition_point(|part| part.after <= key);
                let part = next.checked_sub(1).and_then(|at| self.parts.get(at));
                part.map(|part| part.seen).unwrap_or_default()
            }
        };
        seen.fate(sequence)
    }

    /// The row after which a copy continues: within a queue it begins again with the queue's first row. Then the queue,
    /// which is to be emptied, follows.
    pub fn resumed(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        if let [b'q', len, rest @ ..] = self.row.as_slice()
            && let Some((name, [_, ..])) = rest.split_at_checked(usize::from(*len))
        {
            return (before_queue(name), Some(name.to_vec()));
        }
        (self.row.clone(), None)
    }
}

fn seen(text: &str) -> Option<Seen> {
    let (all, some) = text.split_once(' ')?;
    Some(Seen { all: all.parse().ok()?, some: some.parse().ok()? })
}

/// The field of a part, and its value.
pub(super) fn part_field(part: &Part) -> (Vec<u8>, Vec<u8>) {
    ([b"part:".as_slice(), &part.after].concat(), seen_text(part.seen))
}

/// The field of a queue.
pub(super) fn queue_field(name: &[u8]) -> Vec<u8> {
    [b"queue:".as_slice(), name].concat()
}

/// The value of a queue's field.
pub(super) fn again_text(again: Again) -> Vec<u8> {
    match again {
        Again::ToRead => b"read".to_vec(),
        Again::Read(seen) => seen_text(seen),
    }
}

fn seen_text(seen: Seen) -> Vec<u8> {
    format!("{} {}", seen.all, seen.some).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(place: &[(&[u8], &[u8])]) -> Vec<Value> {
        place.iter().flat_map(|(name, value)| [name, value].map(|bytes| Value::Bulk(bytes.to_vec()))).collect()
    }

    #[test]
    fn a_place_is_loaded_and_says_what_entries_mean() {
        let stored: &[(&[u8], &[u8])] = &[
            (b"source", b"h:8888"),
            (b"copied", b"yes"),
            (b"sequence", b"70"),
            (b"row", b"q\x01a\0\0\0\0\0\0\xff\xff"),
            (b"part:q\x01m", b"90 120"),
            (b"part:", b"70 70"),
            (b"queue:again", b"read"),
            (b"queue:read", b"200 300"),
        ];
        let place = Place::load(&fields(stored)).unwrap();
        assert_eq!((place.source.as_str(), place.is_copied, place.sequence), ("h:8888", true, 70));
        assert_eq!(place.fate(b"a", 70), Fate::Had);
        assert_eq!(place.fate(b"a", 71), Fate::New);
        // Names are in the order of their lengths.
        let fates = [90, 91, 120, 121].map(|sequence| place.fate(b"long", sequence));
        assert_eq!(fates, [Fate::Had, Fate::Unknown, Fate::Unknown, Fate::New]);
        assert_eq!(place.fate(b"again", u64::MAX), Fate::Unknown);
        assert_eq!([place.fate(b"read", 200), place.fate(b"read", 300)], [Fate::Had, Fate::Unknown]);
        assert_eq!(place.resumed(), (b"q\x01a".to_vec(), Some(b"a".to_vec())));
        let within = Place { row: b"q\x01a".to_vec(), ..Place::default() };
        assert_eq!(within.resumed(), (b"q\x01a".to_vec(), None), "no row of the queue was read");
        assert_eq!(Place::load(&[]), None);
        assert_eq!(Place::load(&fields(&[(b"sequence", b"x")])), None, "not what an import has stored");
    }

    #[test]
    fn fields_are_read_again() {
        let part = Part { after: b"k\xff".to_vec(), seen: Seen { all: 1, some: 2 } };
        let ((name, value), queue) = (part_field(&part), queue_field(b"q"));
        let again = again_text(Again::Read(part.seen));
        let place = Place::load(&fields(&[(&name, &value), (&queue, &again)])).unwrap();
        assert_eq!(place.parts.as_slice(), std::slice::from_ref(&part));
        assert_eq!(place.queues.get(b"q".as_slice()), Some(&Again::Read(part.seen)));
    }
}
