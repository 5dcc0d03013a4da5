//! Large rows in parts, so that a change of a few bytes writes a few parts and not the whole row.
//!
//! ```text
//! row:    head | value                           engine::row
//!                |cut where its bytes say so
//! stored: 2 | number | head | names of parts     key space e
//!         number, name -> bytes of a part        key space n
//! ```
//!
//! A cut depends on the bytes before it alone, so an edit moves the cuts near it and no others. A part is named by its
//! SHA-256, so a flush knows from the names alone which parts are stored already.
//!
//! P1. A row and its parts change in one batch, so a view has all parts of its rows.
//! P2. A part belongs to one row: the number is the row's own, and the row's last change deletes what it leaves out.
//! P3. A number is never given twice.
//! P4. A flush has each key once (see [`engine::RowSink`]), so what is stored of it is not in the batch.
//!
//! docs/formats/rows.md describes the bytes.

use crate::{DiskError, RowSpaces};
use base::varint;
use plex::{Db, KeySpaceId, ReadView, WriteBatch};
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;

/// The version of a row in parts. Others are in [`engine::row`](engine::Row).
const VERSION: u8 = 2;

const NAME_BYTES: usize = 16;

/// The SHA-256 of a part's bytes, cut off.
type Name = [u8; NAME_BYTES];

/// How large rows are cut.
#[derive(Clone, Copy, Debug)]
pub struct Cuts {
    /// Rows of this many bytes are in parts; no part has more.
    from: usize,
}

impl Cuts {
    /// For rows of `from` bytes and more; a part has 3/8 of that on average.
    pub fn new(from: usize) -> Self {
        Self { from: from.max(16) }
    }

    /// Whether a row of this length is cut.
    pub fn are_in(&self, row_len: usize) -> bool {
        row_len >= self.from
    }

    /// The next part of what remains of a value.
    fn take<'v>(&self, value: &mut &'v [u8]) -> Option<&'v [u8]> {
        let (least, shift) = (self.from / 8, u64::BITS - (self.from / 4).ilog2());
        let mut sum = 0_u64;
        let mut is_end = |byte: &u8| {
            // Bytes further back than 64 have left the sum.
            sum = (sum << 1).wrapping_add(MIXED[usize::from(*byte)]);
            sum >> shift == 0
        };
        let searched = value.get(least..value.len().min(self.from)).unwrap_or_default();
        let len = searched.iter().position(&mut is_end).map_or(least + searched.len(), |at| least + at + 1);
        let (part, rest) = value.split_at_checked(len).unwrap_or((value, &[]));
        *value = rest;
        (!part.is_empty()).then_some(part)
    }
}

/// A random number for each byte (SplitMix64).
const MIXED: [u64; 256] = {
    let mut mixed = [0; 256];
    let mut state = 0_u64;
    let mut byte = 0;
    while byte < mixed.len() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let first = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let second = (first ^ (first >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed[byte] = second ^ (second >> 31);
        byte += 1;
    }
    mixed
};

fn name_of(part: &[u8]) -> Name {
    let digest = Sha256::digest(part);
    std::array::from_fn(|at| digest[at])
}

/// The key of a part.
fn key_of(number: u64, name: &Name) -> Vec<u8> {
    [&number.to_be_bytes()[..], name].concat()
}

/// A stored row that is in parts.
pub struct Parted<'r> {
    /// What its parts are found by.
    number: u64,
    /// The row without its value.
    pub head: &'r [u8],
    /// The parts of the value: name and length.
    parts: Vec<(Name, usize)>,
}

/// Whether a stored row is in parts.
pub fn is_parted(stored: &[u8]) -> bool {
    stored.first() == Some(&VERSION)
}

impl<'r> Parted<'r> {
    /// Reads a stored row in parts; `None` when it is none.
    pub fn read(stored: &'r [u8]) -> Option<Self> {
        let (&VERSION, mut rest) = stored.split_first()? else { return None };
        let number = varint::take(&mut rest)?;
        let head_len = usize::try_from(varint::take(&mut rest)?).ok()?;
        let (head, mut rest) = rest.split_at_checked(head_len)?;
        let mut parts = Vec::new();
        while !rest.is_empty() {
            let (name, behind) = rest.split_first_chunk::<NAME_BYTES>()?;
            rest = behind;
            parts.push((*name, usize::try_from(varint::take(&mut rest)?).ok()?));
        }
        Some(Self { number, head, parts })
    }

    /// As [`Self::read`], of what is stored for a key.
    ///
    /// # Errors
    /// [`DiskError::Parts`]
    pub fn of_key(stored: &'r [u8], key: &[u8]) -> Result<Self, DiskError> {
        Self::read(stored).ok_or_else(|| DiskError::Parts(key.escape_ascii().to_string()))
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        varint::put(&mut bytes, self.number);
        varint::put(&mut bytes, self.head.len() as u64);
        bytes.extend_from_slice(self.head);
        for (name, len) in &self.parts {
            bytes.extend_from_slice(name);
            varint::put(&mut bytes, *len as u64);
        }
        bytes
    }

    /// The names of its parts, each once.
    pub fn names(&self) -> HashSet<Name> {
        self.parts.iter().map(|(name, _)| *name).collect()
    }

    /// The row. `with_names` verifies the names of its parts.
    ///
    /// # Errors
    /// [`DiskError::Part`] when a part is missing or another.
    fn whole(&self, view: &ReadView, space: KeySpaceId, key: &[u8], with_names: bool) -> Result<Vec<u8>, DiskError> {
        let mut row = self.head.to_vec();
        for (at, (name, len)) in self.parts.iter().enumerate() {
            let part = view.get_in(space, &key_of(self.number, name))?;
            let is_it = |part: &Vec<u8>| part.len() == *len && (!with_names || name_of(part) == *name);
            let part = part.filter(is_it).ok_or_else(|| part_error(key, self.number, at))?;
            row.extend_from_slice(&part);
        }
        Ok(row)
    }
}

fn part_error(key: &[u8], number: u64, at: usize) -> DiskError {
    DiskError::Part { key: key.escape_ascii().to_string(), number, at }
}

/// A row that is in parts, whole, as the view has it, and how many different parts it has. `None` when the view has no
/// such row.
///
/// # Errors
/// [`DiskError`] when it is not in parts that are there.
pub fn whole(
    view: &ReadView,
    (rows, parts): (KeySpaceId, Option<KeySpaceId>),
    key: &[u8],
    with_names: bool,
) -> Result<Option<(Vec<u8>, usize)>, DiskError> {
    let Some(stored) = view.get_in(rows, key)? else { return Ok(None) };
    if !is_parted(&stored) {
        return Ok(Some((stored, 0)));
    }
    let parted = Parted::of_key(&stored, key)?;
    let parts = parts.ok_or_else(|| part_error(key, parted.number, 0))?;
    let row = parted.whole(view, parts, key, with_names)?;
    Ok(Some((row, parted.names().len())))
}

/// The key of the next number of a keyspace, among the counts.
pub fn next_key(space: base::KeyspaceId) -> [u8; 5] {
    let [a, b, c, d] = space.0.to_be_bytes();
    [a, b, c, d, b'n']
}

/// The next number that none has.
pub fn next_number(db: &Db, counts: KeySpaceId, space: base::KeyspaceId) -> Result<u64, DiskError> {
    let Some(stored) = db.get_in(counts, &next_key(space))? else { return Ok(1) };
    let bytes = stored.try_into().map_err(|_| DiskError::Counts(space))?;
    Ok(u64::from_le_bytes(bytes))
}

/// What a change of a row in parts has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Bytes put into the batch.
    pub bytes: usize,
    /// Parts that were put.
    pub written: u64,
    /// Parts that were stored already.
    pub kept: u64,
}

/// Has a batch put a row, in parts if it is large, or delete it, with the parts that it had. `before` is what is stored
/// of it; `number` gives one that none has.
///
/// # Errors
/// [`DiskError`] when what is stored, or the row, is none.
pub fn change(
    batch: &mut WriteBatch,
    spaces: &RowSpaces,
    key: &[u8],
    (before, row): (Option<&[u8]>, Option<&[u8]>),
    cuts: Cuts,
    number: &mut dyn FnMut(&mut WriteBatch) -> Result<u64, DiskError>,
) -> Result<Done, DiskError> {
    let before = match before.filter(|stored| is_parted(stored)) {
        Some(stored) => Some(Parted::of_key(stored, key)?),
        None => None,
    };
    let mut had = before.as_ref().map(Parted::names).unwrap_or_default();
    let mut done = Done { bytes: key.len(), ..Done::default() };
    match (row, spaces.parts) {
        (Some(row), Some(space)) if cuts.are_in(row.len()) => {
            let (head, mut value) = engine::split_row(row).map_err(|source| DiskError::row(key, source))?;
            let number = before.as_ref().map_or_else(|| number(batch), |before| Ok(before.number))?;
            let (mut parted, mut has) = (Parted { number, head, parts: Vec::new() }, HashSet::new());
            while let Some(part) = cuts.take(&mut value) {
                let name = name_of(part);
                parted.parts.push((name, part.len()));
                if !has.insert(name) {
                    continue;
                }
                if had.remove(&name) {
                    done.kept += 1;
                    continue;
                }
                batch.put_in(space, &key_of(number, &name), part);
                done.written += 1;
                done.bytes += part.len();
            }
            let stored = parted.to_bytes();
            done.bytes += stored.len();
            batch.put_in(spaces.short, key, &stored);
        }
        (Some(row), _) => {
            done.bytes += row.len();
            batch.put_in(spaces.short, key, row);
        }
        (None, _) => _ = batch.delete_in(spaces.short, key),
    }
    if let (Some(before), Some(space)) = (before, spaces.parts) {
        had.iter().for_each(|name| _ = batch.delete_in(space, &key_of(before.number, name)));
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Disk, DiskOptions, Shards};
    use base::{KeyspaceId, Lsn, Rng, ShardId};
    use engine::{Encoding, Entry, ExtFields, Type, Value};
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::Arc;
    use vfs::{FileSystem, SimFs};

    fn pieces(cuts: Cuts, mut value: &[u8]) -> Vec<&[u8]> {
        std::iter::from_fn(|| cuts.take(&mut value)).collect()
    }

    /// The parts are the value, have sizes within the bounds, and those that an edit does not touch stay.
    #[test]
    fn an_edit_moves_the_cuts_near_it() {
        let (cuts, mut rng) = (Cuts::new(64 << 10), Rng::new(3));
        let mut value = vec![0; 4 << 20];
        rng.fill(&mut value);
        let before = pieces(cuts, &value);
        assert_eq!(before.concat(), value);
        let (last, others) = before.split_last().expect("there are some");
        assert!(last.len() <= 64 << 10 && others.iter().all(|part| (8 << 10..=64 << 10).contains(&part.len())));
        assert!((120..260).contains(&before.len()), "{} parts", before.len());
        let names: HashSet<Name> = before.iter().map(|part| name_of(part)).collect();
        for edit in 0..20 {
            let mut edited = value.clone();
            let at = rng.below(value.len() as u64) as usize;
            match edit % 3 {
                0 => edited[at] ^= 1,
                1 => edited.insert(at, 7),
                _ => _ = edited.drain(at..(at + 100).min(value.len())),
            }
            let after = pieces(cuts, &edited);
            assert_eq!(after.concat(), edited);
            let new = after.iter().filter(|part| !names.contains(&name_of(part))).count();
            assert!(new <= 6, "{new} new parts");
        }
    }

    /// A value of equal bytes, in which no cut is better than another, and the smallest ones.
    #[test]
    fn any_value_is_cut() {
        for (from, len) in [(0, 0), (0, 1), (16, 15), (64, 1_000), (100, 777), (64 << 10, 1 << 20)] {
            let value = vec![0; len];
            let parts = pieces(Cuts::new(from), &value);
            assert_eq!(parts.concat(), value);
            assert!(parts.iter().all(|part| !part.is_empty() && part.len() <= from.max(16)));
        }
    }

    /// The example of docs/formats/rows.md.
    #[test]
    fn rows_in_parts_have_these_bytes() {
        let head = [1, 0, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0];
        let parts = vec![(name_of(b"abc"), 3), (name_of(b""), 300)];
        let bytes = Parted { number: 7, head: &head, parts }.to_bytes();
        let names = [
            [0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23],
            [0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24],
        ];
        assert_eq!(bytes, [&[2, 7, 12][..], &head, &names[0], &[3], &names[1], &[0xac, 2]].concat());
        let read = Parted::read(&bytes).expect("it is one");
        assert_eq!((read.number, read.head, read.to_bytes()), (7, &head[..], bytes.clone()));
        assert_eq!(read.parts, [(names[0], 3), (names[1], 300)]);
        assert_eq!(key_of(7, &names[0]), [&[0, 0, 0, 0, 0, 0, 0, 7][..], &names[0]].concat());
        let whole_until = [15, 32, bytes.len()];
        for len in 0..bytes.len() {
            assert_eq!(Parted::read(&bytes[..len]).is_some(), whole_until.contains(&len), "{len} bytes");
        }
        assert!(Parted::read(&head).is_none());
    }

    /// Damaged bytes are refused or are another row, and never a panic.
    #[test]
    fn damage_is_refused() {
        let mut rng = Rng::new(5);
        for _ in 0..20_000 {
            let mut bytes = vec![0; rng.below(80) as usize];
            rng.fill(&mut bytes);
            if let Some(version) = bytes.first_mut() {
                *version = VERSION;
            }
            if let Some(read) = Parted::read(&bytes) {
                assert!(read.head.len() + NAME_BYTES * read.parts.len() < bytes.len());
            }
        }
    }

    /// Rows that flushes change at random, and what they are.
    struct World {
        fs: Arc<dyn FileSystem>,
        disk: Arc<Disk>,
        model: BTreeMap<Vec<u8>, Vec<u8>>,
    }

    const DIR: &str = "/lsm";
    const SPACE: KeyspaceId = KeyspaceId(0);

    fn open(fs: &Arc<dyn FileSystem>, dir: &str, is_read_only: bool) -> Arc<Disk> {
        let shards = Shards { count: 1, of: Arc::new(|_| ShardId(0)) };
        let options = DiskOptions { parts_from: 256, is_read_only, ..DiskOptions::default() };
        let disk = Disk::open(fs.clone(), Path::new(dir), shards, options).expect("it is whole");
        disk.open_space(SPACE).expect("it is whole");
        disk
    }

    impl World {
        fn new() -> Self {
            let fs: Arc<dyn FileSystem> = Arc::new(SimFs::new(1));
            Self { disk: open(&fs, DIR, false), fs, model: BTreeMap::new() }
        }

        /// Changes a value somewhere, or makes another.
        fn edit(&mut self, rng: &mut Rng, key: &[u8]) {
            let value = self.model.entry(key.to_vec()).or_default();
            if value.is_empty() || rng.one_in(5) {
                *value = vec![0; 1 + rng.below(8_000) as usize];
                rng.fill(value);
                // So that one part is there twice.
                let half = value.len() / 2;
                let (first, second) = value.split_at_mut(half);
                second[..half].copy_from_slice(first);
            }
            let at = rng.below(value.len() as u64) as usize;
            match rng.below(3) {
                0 => value[at] ^= 1,
                1 => value.insert(at, 1),
                _ => value.truncate(at.max(value.len() - at).max(1)),
            }
        }

        fn flush(&mut self, rng: &mut Rng, lsn: u64) {
            let mut flush = self.disk.begin_flush();
            let mut sink = flush.sink(ShardId(0), SPACE);
            if rng.one_in(15) {
                sink.clear();
                self.model.clear();
            }
            // A flush gives each key once.
            for number in (0..12).filter(|_| rng.one_in(3)).collect::<Vec<_>>() {
                let mut key = format!("key:{number}").into_bytes();
                // A long key's row is whole.
                key.resize(if rng.one_in(8) { crate::KEY_BYTES_MAX + 1 } else { key.len() }, b'k');
                if rng.one_in(4) {
                    self.model.remove(&key);
                    sink.remove(&key);
                    continue;
                }
                self.edit(rng, &key);
                let (kind, encoding, value) = (Type::String, Encoding::PLAIN, Value::Bytes(&self.model[&key]));
                let expire_at = rng.one_in(3).then_some(9);
                sink.store(&Entry { key: &key, kind, encoding, value, expire_at, stamp: 0, fields: ExtFields::NONE });
                if rng.one_in(2) {
                    flush.drain().expect("the disk works");
                }
            }
            drop(sink);
            flush.install(Lsn(lsn)).expect("the disk works");
        }

        fn compare(&self) {
            let (rows, counts) = self.disk.rows(ShardId(0), SPACE).expect("it is open");
            assert_eq!(counts.len, self.model.len() as i64);
            let value_of = |row: &[u8]| engine::split_row(row).expect("it is a row").1.to_vec();
            for (key, value) in &self.model {
                let mut row = Vec::new();
                assert!(rows.get(key, &mut row).expect("the disk works"));
                assert!(value_of(&row) == *value, "{}", key.escape_ascii());
            }
            let (mut scanned, mut next) = (BTreeMap::new(), Some(0));
            while let Some(from) = next {
                next = rows.scan(from, &mut |key, row| _ = scanned.insert(key.to_vec(), value_of(row)));
            }
            assert!(scanned == self.model, "a walk gives every row");
        }

        /// The same rows in a directory, closed and opened again.
        fn opened(self, is_read_only: bool, dir: &str) -> Self {
            let Self { fs, disk, model } = self;
            drop(disk);
            Self { disk: open(&fs, dir, is_read_only), fs, model }
        }
    }

    /// Checks rows that are closed. Gives the number of parts that none has.
    fn verify(fs: &Arc<dyn FileSystem>, dir: &str, model: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<u64, DiskError> {
        let mut rows = BTreeMap::new();
        let see = &mut |_, key: &[u8], row: engine::Row<'_>| {
            let fields = row.fields();
            rows.insert(key.to_vec(), row.as_new(None, &fields).value.bytes().to_vec());
        };
        let found = crate::offline::verify(fs, Path::new(dir), see)?;
        assert!(rows == *model, "a check gives every row");
        Ok(found.unused_parts)
    }

    /// Every read gives whole rows after any changes, and no part is left when its row goes: after merges, in a copy,
    /// and in a database that is open for reading only.
    #[test]
    fn rows_in_parts_are_whole_and_leave_nothing() {
        let (mut world, mut rng) = (World::new(), Rng::new(8));
        for lsn in 1..250 {
            world.flush(&mut rng, lsn);
            world.compare();
            while rng.one_in(3) && world.disk.compact_step().expect("the disk works") {}
        }
        let stats = world.disk.stats();
        assert!(stats.parts_written > 1_000 && stats.parts_kept > 1_000, "{stats:?}");
        world.disk.copy_to(Path::new("/copy")).expect("the disk works");
        let world = world.opened(true, "/copy");
        world.compare();
        let world = world.opened(true, DIR);
        world.compare();
        drop(world.disk);
        for dir in [DIR, "/copy"] {
            assert_eq!(verify(&world.fs, dir, &world.model).expect("it is whole"), 0);
        }
    }

    /// A part that is missing is an error that names the row, and one that no row has is counted.
    #[test]
    fn a_missing_part_is_an_error() {
        let (mut world, mut rng) = (World::new(), Rng::new(9));
        let of = |world: &World| world.disk.space(SPACE).and_then(|rows| rows.parts).expect("it is open");
        let first = |world: &World| {
            let mut all = world.disk.db.iter_in(of(world), plex::IterOptions::default()).expect("the disk works");
            all.next().map(|pair| pair.expect("the disk works").0.to_vec())
        };
        for lsn in 1..100 {
            if lsn < 9 || first(&world).is_none() {
                world.flush(&mut rng, lsn);
            }
        }
        world.disk.db.put_in(of(&world), &[9; 24], b"unused").expect("the disk works");
        world.disk.db.flush().expect("the disk works");
        let World { fs, disk, model } = world;
        drop(disk);
        assert_eq!(verify(&fs, DIR, &model).expect("it is whole"), 1);
        let world = World { disk: open(&fs, DIR, false), fs, model };
        let part = first(&world).expect("there are some");
        world.disk.db.delete_in(of(&world), &part).expect("the disk works");
        world.disk.db.flush().expect("the disk works");
        let (rows, _) = world.disk.rows(ShardId(0), SPACE).expect("it is open");
        let errors = world.model.keys().filter_map(|key| rows.get(key, &mut Vec::new()).err());
        let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
        assert!(matches!(&errors[..], [one] if one.contains(" of collection ")), "{errors:?}");
        drop((rows, world.disk));
        assert!(matches!(verify(&world.fs, DIR, &world.model), Err(DiskError::Part { .. })));
    }
}
