//! Version edits: the records of a manifest.
//!
//! An edit is a sequence of fields, each a tag and its contents. An unknown tag is an error: what a later release added
//! may not be skipped. Format: docs/formats/plex-manifest.md.

use base::varint;

use crate::key::Seqno;
use crate::key_order::KeyOrder;
use crate::key_space_options::KeySpaceOptions;
use crate::sstable::{Summary, TableInfo};

/// Tags of the fields.
mod tag {
    pub const DATABASE: u64 = 1;
    pub const NEXT_NUMBER: u64 = 2;
    pub const LAST_SEQNO: u64 = 3;
    pub const WAL: u64 = 4;
    pub const FLUSHED_LSN: u64 = 5;
    pub const ADDED: u64 = 6;
    pub const REMOVED: u64 = 7;
    pub const KEY_SPACE: u64 = 8;
    pub const HASHED_KEYS: u64 = 9;
    pub const ADDED_UNDER_NUMBER: u64 = 10;
    pub const DROPPED: u64 = 11;
    pub const NEXT_KEY_SPACE: u64 = 12;
    pub const KEY_SPACE_OPTIONS: u64 = 13;
    pub const SUMMARY: u64 = 14;
}

/// Where a table stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TablePlace {
    pub key_space: u32,
    pub level: usize,
    pub run: u64,
    pub number: u64,
}

/// A change of the version and of its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VersionEdit {
    /// Random, once for ever: goes into the identities of files.
    pub database: Option<u64>,
    /// Files and runs from this number on are not used yet.
    pub next_number: Option<u64>,
    /// No table has a larger sequence number.
    pub last_seqno: Option<Seqno>,
    /// Log files before this number are not needed; and whether there is a file with this number.
    pub wal: Option<(u64, bool)>,
    /// The external log up to here is in the tables.
    pub flushed_lsn: Option<u64>,
    pub added: Vec<(TablePlace, TableInfo)>,
    pub removed: Vec<TablePlace>,
    pub key_spaces: Vec<(u32, Vec<u8>)>,
    /// Replaces those of before.
    pub key_space_options: Vec<(u32, KeySpaceOptions)>,
    /// Key spaces that are gone.
    pub dropped: Vec<u32>,
    /// Key spaces from this number on were never used.
    pub next_key_space: Option<u32>,
    /// Stands in an edit only if it is not the order of bytes.
    pub key_order: KeyOrder,
}

impl VersionEdit {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let numbers = [
            (tag::DATABASE, self.database),
            (tag::NEXT_NUMBER, self.next_number),
            (tag::LAST_SEQNO, self.last_seqno),
            (tag::WAL, self.wal.map(|(number, is_there)| number << 1 | u64::from(is_there))),
            (tag::FLUSHED_LSN, self.flushed_lsn),
        ];
        for (tag, number) in numbers {
            if let Some(number) = number {
                varint::put(&mut out, tag);
                varint::put(&mut out, number);
            }
        }
        if self.key_order == KeyOrder::Hash {
            varint::put(&mut out, tag::HASHED_KEYS);
        }
        for (id, name) in &self.key_spaces {
            varint::put(&mut out, tag::KEY_SPACE);
            varint::put(&mut out, u64::from(*id));
            put_bytes(&mut out, name);
        }
        for (id, options) in &self.key_space_options {
            varint::put(&mut out, tag::KEY_SPACE_OPTIONS);
            varint::put(&mut out, u64::from(*id));
            options.encode(&mut out);
        }
        for id in &self.dropped {
            varint::put(&mut out, tag::DROPPED);
            varint::put(&mut out, u64::from(*id));
        }
        if let Some(id) = self.next_key_space {
            varint::put(&mut out, tag::NEXT_KEY_SPACE);
            varint::put(&mut out, u64::from(id));
        }
        for place in &self.removed {
            varint::put(&mut out, tag::REMOVED);
            put_place(&mut out, place);
        }
        for (place, info) in &self.added {
            let is_given = info.given_seqno > 0;
            varint::put(&mut out, if is_given { tag::ADDED_UNDER_NUMBER } else { tag::ADDED });
            put_place(&mut out, place);
            for number in [info.identity, info.bytes, info.entry_count] {
                varint::put(&mut out, number);
            }
            put_bytes(&mut out, &info.smallest);
            put_bytes(&mut out, &info.largest);
            out.push(u8::from(info.largest_is_excluded));
            if is_given {
                varint::put(&mut out, info.given_seqno);
            }
            if let Some(summary) = &info.summary {
                varint::put(&mut out, tag::SUMMARY);
                put_summary(&mut out, summary);
            }
        }
        out
    }

    /// `None` if the bytes are no edit of this release.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        let mut edit = Self::default();
        while !rest.is_empty() {
            match varint::take(rest)? {
                tag::DATABASE => edit.database = Some(varint::take(rest)?),
                tag::NEXT_NUMBER => edit.next_number = Some(varint::take(rest)?),
                tag::LAST_SEQNO => edit.last_seqno = Some(varint::take(rest)?),
                tag::WAL => {
                    let word = varint::take(rest)?;
                    edit.wal = Some((word >> 1, word & 1 == 1));
                }
                tag::FLUSHED_LSN => edit.flushed_lsn = Some(varint::take(rest)?),
                tag::HASHED_KEYS => edit.key_order = KeyOrder::Hash,
                tag::KEY_SPACE => {
                    let id = u32::try_from(varint::take(rest)?).ok()?;
                    edit.key_spaces.push((id, take_bytes(rest)?));
                }
                tag::KEY_SPACE_OPTIONS => {
                    let id = u32::try_from(varint::take(rest)?).ok()?;
                    edit.key_space_options.push((id, KeySpaceOptions::take(rest)?));
                }
                tag::DROPPED => edit.dropped.push(u32::try_from(varint::take(rest)?).ok()?),
                tag::NEXT_KEY_SPACE => edit.next_key_space = Some(u32::try_from(varint::take(rest)?).ok()?),
                tag::REMOVED => edit.removed.push(take_place(rest)?),
                tag @ (tag::ADDED | tag::ADDED_UNDER_NUMBER) => {
                    let place = take_place(rest)?;
                    let info = TableInfo {
                        identity: varint::take(rest)?,
                        bytes: varint::take(rest)?,
                        entry_count: varint::take(rest)?,
                        smallest: take_bytes(rest)?,
                        largest: take_bytes(rest)?,
                        largest_is_excluded: take_flag(rest)?,
                        given_seqno: if tag == tag::ADDED {
                            0
                        } else {
                            varint::take(rest).filter(|seqno| *seqno > 0)?
                        },
                        summary: None,
                    };
                    edit.added.push((place, info));
                }
                tag::SUMMARY => {
                    let (_, info) = edit.added.last_mut().filter(|(_, info)| info.summary.is_none())?;
                    info.summary = Some(take_summary(rest)?);
                }
                _ => return None,
            }
        }
        Some(edit)
    }
}

/// Of the table that was added last.
fn put_summary(out: &mut Vec<u8>, summary: &Summary) {
    let Summary { tombstone_count, user_bytes, seqno_min, seqno_max, has_ranges, times } = *summary;
    for number in [tombstone_count, user_bytes, seqno_min, seqno_max] {
        varint::put(out, number);
    }
    out.push(u8::from(has_ranges));
    out.push(u8::from(times.is_some()));
    if let Some((first, last)) = times {
        varint::put(out, first);
        varint::put(out, last - first);
    }
}

fn take_summary(rest: &mut &[u8]) -> Option<Summary> {
    let mut summary = Summary {
        tombstone_count: varint::take(rest)?,
        user_bytes: varint::take(rest)?,
        seqno_min: varint::take(rest)?,
        seqno_max: varint::take(rest)?,
        has_ranges: take_flag(rest)?,
        times: None,
    };
    if take_flag(rest)? {
        let first: u64 = varint::take(rest)?;
        summary.times = Some((first, first.checked_add(varint::take(rest)?)?));
    }
    Some(summary)
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn take_bytes(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let len = usize::try_from(varint::take(rest)?).ok()?;
    let (bytes, behind) = rest.split_at_checked(len)?;
    *rest = behind;
    Some(bytes.to_vec())
}

fn take_flag(rest: &mut &[u8]) -> Option<bool> {
    let (&byte, behind) = rest.split_first()?;
    *rest = behind;
    (byte <= 1).then_some(byte == 1)
}

fn put_place(out: &mut Vec<u8>, place: &TablePlace) {
    for number in [u64::from(place.key_space), place.level as u64, place.run, place.number] {
        varint::put(out, number);
    }
}

/// More levels than any policy makes; a bound for what is read.
const LEVEL_COUNT_MAX: u64 = 64;

fn take_place(rest: &mut &[u8]) -> Option<TablePlace> {
    let key_space = u32::try_from(varint::take(rest)?).ok()?;
    let level = varint::take(rest).filter(|level| *level < LEVEL_COUNT_MAX)? as usize;
    Some(TablePlace { key_space, level, run: varint::take(rest)?, number: varint::take(rest)? })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::sstable::Compression;
    use base::Rng;
    use std::time::Duration;

    pub(crate) fn sample() -> VersionEdit {
        let place = TablePlace { key_space: 1, level: 2, run: 30, number: 400 };
        let info = TableInfo {
            identity: 5,
            bytes: 600,
            entry_count: 7,
            smallest: b"a".to_vec(),
            largest: b"zz".to_vec(),
            largest_is_excluded: true,
            given_seqno: 0,
            summary: None,
        };
        VersionEdit {
            database: Some(u64::MAX),
            next_number: Some(401),
            last_seqno: Some(99),
            wal: Some((12, true)),
            flushed_lsn: Some(1 << 40),
            added: vec![(place, info)],
            removed: vec![TablePlace { number: 399, ..place }],
            key_spaces: vec![(1, b"name".to_vec())],
            key_space_options: Vec::new(),
            dropped: Vec::new(),
            next_key_space: None,
            key_order: KeyOrder::Bytes,
        }
    }

    /// With a file that was taken in as it was.
    pub(crate) fn taken_in() -> VersionEdit {
        let mut edit = sample();
        edit.added.iter_mut().for_each(|(_, info)| info.given_seqno = 88);
        edit
    }

    /// With summaries of its tables.
    pub(crate) fn summed_up() -> VersionEdit {
        let mut edit = taken_in();
        let summary =
            Summary { tombstone_count: 3, user_bytes: 500, seqno_min: 8, seqno_max: 99, ..Summary::default() };
        let more = Summary { has_ranges: true, times: Some((1_000_000, 1_000_300)), ..summary };
        edit.added.iter_mut().for_each(|(_, info)| info.summary = Some(more));
        let (place, info) = edit.added[0].clone();
        edit.added.push((TablePlace { number: 401, ..place }, TableInfo { summary: Some(summary), ..info }));
        edit
    }

    /// Of a key space that was dropped.
    pub(crate) fn dropping() -> VersionEdit {
        VersionEdit { dropped: vec![7, 300], next_key_space: Some(301), ..VersionEdit::default() }
    }

    /// Of a key space with options.
    pub(crate) fn with_options() -> VersionEdit {
        let options = KeySpaceOptions::new().ttl(Duration::from_secs(3600)).filter_bits_per_key(8).compression([
            Compression::None,
            Compression::Lz4,
            Compression::Zstd { level: 3 },
        ]);
        let key_spaces = vec![(301, b"sessions".to_vec())];
        VersionEdit { key_spaces, key_space_options: vec![(301, options)], ..VersionEdit::default() }
    }

    /// Edits come back; cut and damaged ones never panic.
    #[test]
    fn edits_round_trip() {
        let bytes = sample().encode();
        assert_eq!(VersionEdit::decode(&bytes), Some(sample()));
        // A summary has a table before it.
        assert_eq!(VersionEdit::decode(&[14, 1, 1, 1, 1, 0, 0]), None);
        assert_eq!(VersionEdit::decode(&[]), Some(VersionEdit::default()));
        let hashed = VersionEdit { key_order: KeyOrder::Hash, ..sample() };
        assert_eq!(VersionEdit::decode(&hashed.encode()), Some(hashed));
        assert_eq!(VersionEdit::decode(&taken_in().encode()), Some(taken_in()));
        assert_eq!(VersionEdit::decode(&summed_up().encode()), Some(summed_up()));
        assert_eq!(VersionEdit::decode(&dropping().encode()), Some(dropping()));
        assert_eq!(VersionEdit::decode(&with_options().encode()), Some(with_options()));
        let mut rng = Rng::new(1);
        let bytes = [bytes, summed_up().encode()].concat();
        for _ in 0..2000 {
            let mut damaged = bytes.clone();
            let at = rng.below(damaged.len() as u64) as usize;
            damaged[at] = rng.next_u64() as u8;
            damaged.truncate(rng.below(damaged.len() as u64 + 1) as usize);
            let _ = VersionEdit::decode(&damaged);
        }
        assert_eq!(VersionEdit::decode(&[15]), None);
    }
}
