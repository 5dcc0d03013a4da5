mod golden;

use super::*;
use crate::{Disk, DiskOptions, Shards};
use base::{Lsn, ShardId};
use engine::{Encoding, Entry, ExtFields, SharedBig, Type, Value};
use std::path::Path;
use value::hash::{Change, View};
use value::tree::Plan;
use value::{Big, Find, Limits, Stored};
use vfs::{Fault, FileSystem, Op, Outage, SimFs, errno};

/// The examples of docs/formats/rows.md.
#[test]
fn addresses_and_lists_have_these_bytes() {
    let address = Address { space: KeyspaceId(0), number: 5, len: 300 };
    assert_eq!(address.to_bytes(), [0, 5, 0xac, 2]);
    assert!(Address::read(&[0, 5, 0xac, 2, 0]).is_none() && Address::read(&[0, 5]).is_none());
    let mut list = List { next: 9, ..List::default() };
    list.unstored.insert(7);
    list.shared.insert(5, 2);
    let bytes = list.to_bytes();
    assert_eq!(bytes, [1, 9, 1, 7, 5, 2]);
    assert_eq!(List::of_bytes(&bytes), Some(list));
    for other in [&bytes[..5], &bytes[..3], b"\x02\x01\0", b"", b"\x01\x01\x09"] {
        assert_eq!(List::of_bytes(other), None, "{other:?}");
    }
}

#[test]
fn a_row_that_refers_to_a_leaf_has_these_bytes() {
    let row = [&[3, 4, 7, 0, 0x30][..], &[9; 40], &[0, 3, 3, 4, 0, 5, 0xac, 2]].concat();
    let read = Row::read(&row).expect("it is a row");
    assert_eq!((read.kind, read.has_addresses, numbers(&read)), (Type::Hash, true, BTreeSet::from([5])));
    let whole = [&[1][..], &row[1..]].concat();
    assert_eq!(numbers(&Row::read(&whole).expect("it is a row")), BTreeSet::new(), "version 1 has no addresses");
}

const DIR: &str = "/lsm";
const SPACE: KeyspaceId = KeyspaceId(0);

type Fields = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(fs: &SimFs) -> Arc<Disk> {
    let shards = Shards { count: 1, of: Arc::new(|_| ShardId(0)) };
    let options = DiskOptions { parts_from: 256, ..DiskOptions::default() };
    let disk = Disk::open(Arc::new(fs.clone()), Path::new(DIR), shards, options).expect("it is whole");
    disk.open_space(SPACE).expect("it is whole");
    disk
}

fn leaves_of(disk: &Disk) -> Arc<Leaves> {
    disk.space(SPACE).and_then(|rows| rows.leaves).expect("it is open")
}

fn fields_of(tree: &Big) -> Fields {
    let view = View::of(Encoding::BIG, Stored::Big(tree));
    view.iter().map(|cell| (cell.field.to_vec(), cell.value.to_vec())).collect()
}

/// Has leaves for which `choose` says so become rows, or lose their copies.
fn spill(tree: &mut Big, leaves: &Leaves, choose: &mut dyn FnMut() -> bool) {
    let plan = Plan {
        age: 0,
        bytes: 0,
        bytes_max: usize::MAX,
        retries: true,
        compresses: true,
        takes_all: false,
        only_sheds: false,
        is_other: &|_| false,
    };
    let (mut from, mut row) = (Some(0), Vec::new());
    while let Some(here) = from {
        let (found, next) = tree.look_for_cold(here, &plan, usize::MAX);
        from = next;
        match found.filter(|_| choose()) {
            Some(Find::Run(run, _)) => {
                let count = run.bytes(&mut row).expect("it has leaves");
                assert!(tree.store_cold(&run, leaves.put(&row).expect("the disk works"), count));
            }
            Some(Find::Thawed(rank)) => tree.shed(rank),
            None => {}
        }
    }
}

/// Hashes in memory whose leaves are rows, and what they are.
struct World {
    fs: SimFs,
    disk: Arc<Disk>,
    hasher: KeyHasher,
    trees: BTreeMap<u64, SharedBig>,
    model: BTreeMap<u64, Fields>,
    /// Keys that have changed since the last flush.
    dirty: BTreeSet<u64>,
    stored: BTreeMap<u64, Fields>,
}

impl World {
    fn new() -> Self {
        Self::start(SimFs::new(1))
    }

    fn start(fs: SimFs) -> Self {
        let (trees, model, dirty, stored) = Default::default();
        Self { disk: open(&fs), fs, hasher: KeyHasher::new(&mut Rng::new(1)), trees, model, dirty, stored }
    }

    fn clear(&mut self) {
        self.trees.clear();
        self.model.clear();
        self.dirty.clear();
    }

    /// Both keys have the same leaves.
    fn copy(&mut self, from: u64, to: u64) {
        if let (Some(tree), Some(fields)) = (self.trees.get(&from).cloned(), self.model.get(&from).cloned()) {
            self.trees.insert(to, tree);
            self.model.insert(to, fields);
            self.dirty.insert(to);
        }
    }

    fn edit(&mut self, rng: &mut Rng, key: u64) {
        let (limits, fields, mut changes) = (Limits::default(), self.model.entry(key).or_default(), Vec::new());
        for _ in 0..1 + rng.below(30) {
            let (field, value) = (rng.below(300).to_string().into_bytes(), vec![b'v'; 1 + rng.below(90) as usize]);
            Change::Set { field: &field, value: &value, expire_at: None }.put(&mut changes);
            fields.insert(field, value);
        }
        let tree = self.trees.entry(key).or_insert_with(|| SharedBig::new(Big::empty(Type::Hash, &self.hasher)));
        let body = value::Body::Big(SharedBig::make_mut(tree));
        let mut slot = value::Slot { body, encoding: Encoding::BIG, limits: &limits, hasher: &self.hasher };
        value::apply(Type::Hash, &mut slot, &changes);
        self.dirty.insert(key);
    }

    /// Has some leaves become rows, or lose their copies.
    fn spill(&mut self, rng: &mut Rng, key: u64) {
        if let Some(tree) = self.trees.get_mut(&key).map(SharedBig::make_mut) {
            spill(tree, &leaves_of(&self.disk), &mut || rng.one_in(2));
        }
    }

    /// `meanwhile` runs when rows are collected and not yet written.
    fn flush(&mut self, lsn: u64, is_cleared: bool, meanwhile: impl FnOnce(&mut Self)) {
        self.try_flush(lsn, is_cleared, meanwhile).expect("the disk works");
    }

    /// As the flusher does: repeats what can be repeated. Otherwise the next flush brings the same keys.
    fn try_flush(&mut self, lsn: u64, is_cleared: bool, meanwhile: impl FnOnce(&mut Self)) -> Result<(), DiskError> {
        let mut flush = self.disk.begin_flush();
        let mut sink = flush.sink(ShardId(0), SPACE);
        if is_cleared {
            sink.clear();
        }
        let dirty = std::mem::take(&mut self.dirty);
        for key in &dirty {
            let name = key.to_be_bytes();
            let Some(tree) = self.trees.get(key) else {
                sink.remove(&name);
                continue;
            };
            let (kind, encoding, value) = (Type::Hash, Encoding::BIG, Value::Big(tree));
            sink.store(&Entry {
                key: &name,
                kind,
                encoding,
                value,
                expire_at: None,
                stamp: 0,
                fields: ExtFields::NONE,
            });
        }
        drop(sink);
        self.stored = self.model.clone();
        meanwhile(self);
        let installed = flush.install(Lsn(lsn)).map(|_| ());
        match installed {
            Err(_) if flush.is_whole() => flush.install(Lsn(lsn)).map(|_| ()),
            Err(_) => {
                self.dirty.extend(dirty);
                installed
            }
            Ok(()) => installed,
        }
    }

    /// The tree of a key, from its row.
    fn load(&mut self, key: u64) {
        let (rows, _) = self.disk.rows(ShardId(0), SPACE).expect("it is open");
        let mut row = Vec::new();
        if rows.get(&key.to_be_bytes(), &mut row).expect("the disk works") {
            let keeper = absent::both(Arc::<AsStored>::default(), leaves_of(&self.disk).keeper());
            let tree = Row::read(&row).expect("it is a row").tree(&keeper, &self.hasher).expect("it is a tree");
            self.trees.insert(key, tree);
        }
    }

    /// A start after everything in memory was lost.
    fn restart(mut self) -> Self {
        self.trees.clear();
        self.dirty.clear();
        let Self { fs, disk, hasher, trees, dirty, stored, .. } = self;
        drop(disk);
        Self { disk: open(&fs), fs, hasher, trees, model: stored.clone(), dirty, stored }
    }

    fn compare(&mut self) {
        for key in self.model.keys().copied().collect::<Vec<_>>() {
            if !self.trees.contains_key(&key) {
                self.load(key);
            }
            assert!(fields_of(&self.trees[&key]) == self.model[&key], "{key}");
        }
        assert!(self.trees.keys().eq(self.model.keys()));
    }

    /// Nothing is in memory, and what is stored is what it should be. Gives the number of leaves that no row has.
    fn verify(self) -> Result<u64, DiskError> {
        let Self { fs, disk, hasher, trees, stored, .. } = self;
        drop((trees, disk));
        let mut rows = BTreeMap::new();
        let fs: Arc<dyn FileSystem> = Arc::new(fs);
        let found = crate::offline::verify(&fs, Path::new(DIR), &mut |_, key, row| {
            assert!(!row.has_addresses, "a check gives whole rows");
            let keeper: Arc<dyn Keeper> = Arc::<AsStored>::default();
            let tree = row.tree(&keeper, &hasher).expect("it is a tree");
            rows.insert(u64::from_be_bytes(key.try_into().expect("a number")), fields_of(&tree));
        })?;
        assert!(rows == stored, "a check gives every row");
        Ok(found.unused_parts)
    }
}

/// Trees whose leaves are rows are what they should be after changes, copies, deletions, flushes and starts. No leaf is
/// left when nothing refers to it.
#[test]
fn leaves_are_stored_as_long_as_something_refers_to_them() {
    let (mut world, mut rng) = (World::new(), Rng::new(3));
    let (mut starts, mut written) = (0, 0);
    for lsn in 1..400 {
        for _ in 0..rng.below(6) {
            let key = rng.below(6);
            if world.model.contains_key(&key) && !world.trees.contains_key(&key) {
                world.load(key);
            }
            match rng.below(8) {
                0..4 => world.edit(&mut rng, key),
                4 | 5 => {
                    world.spill(&mut rng, key);
                }
                6 => world.copy(key, rng.below(6)),
                _ => {
                    world.trees.remove(&key);
                    if world.model.remove(&key).is_some() {
                        world.dirty.insert(key);
                    }
                }
            }
        }
        let is_cleared = rng.one_in(40);
        if is_cleared {
            // Some are made anew after it.
            world.clear();
            world.edit(&mut rng, 1);
            world.spill(&mut rng, 1);
        }
        if rng.one_in(6) {
            world.disk.flush_leaves().expect("the disk works");
        }
        if is_cleared || rng.one_in(3) {
            world.flush(lsn, is_cleared, |world| {
                for key in world.trees.keys().copied().collect::<Vec<_>>() {
                    if rng.one_in(4) {
                        world.edit(&mut rng, key);
                        world.spill(&mut rng, key);
                    }
                }
            });
            if rng.one_in(2) {
                // Clean ones leave memory.
                let dirty = &world.dirty;
                world.trees.retain(|key, _| dirty.contains(key));
            }
        }
        if rng.one_in(12) {
            written += world.disk.stats().leaves_written;
            world = world.restart();
            starts += 1;
        }
        if rng.one_in(4) {
            world.compare();
        }
        while rng.one_in(3) && world.disk.compact_step().expect("the disk works") {}
    }
    world.compare();
    assert!(starts > 10 && written > 200, "{starts} starts, {written} leaves");
    world.flush(1_000, false, |_| {});
    world.trees.clear();
    world.compare();
    world.trees.clear();
    // What went with the trees is deleted now.
    world.flush(1_001, false, |_| {});
    assert_eq!(world.verify().expect("it is whole"), 0);
}

/// A leaf that is missing is an error for who reads it, and for a check.
#[test]
fn a_missing_leaf_is_an_error() {
    let (mut world, mut rng) = (World::new(), Rng::new(4));
    (0..30).for_each(|_| world.edit(&mut rng, 1));
    world.spill(&mut rng, 1);
    world.flush(1, false, |_| {});
    let leaves = leaves_of(&world.disk);
    let mut all = world.disk.db.iter_in(leaves.space, plex::IterOptions::default()).expect("the disk works");
    let first = all.next().expect("there are some").expect("the disk works").0.to_vec();
    drop(all);
    world.disk.db.delete_in(leaves.space, &first).expect("the disk works");
    world.disk.db.flush().expect("the disk works");
    world.trees.clear();
    world.load(1);
    let absent = absent::catch(|| absent::waiting(|| fields_of(&world.trees[&1]))).expect_err("one is missing");
    let error = absent.error.expect("it was read");
    assert_eq!(error.to_string(), "a leaf of a collection is missing");
    drop((absent.leaf, leaves));
    assert!(matches!(world.verify(), Err(DiskError::Leaf { .. })));
}

/// A tree that has come from another keyspace brings its elements: each keyspace deletes its leaves when its own rows
/// do not refer to them.
#[test]
fn a_row_has_addresses_of_its_own_keyspace_alone() {
    let (mut world, mut rng) = (World::new(), Rng::new(5));
    (0..30).for_each(|_| world.edit(&mut rng, 1));
    world.spill(&mut rng, 1);
    let (kind, encoding, value) = (Type::Hash, Encoding::BIG, Value::Big(&world.trees[&1]));
    let entry = Entry { key: b"k", kind, encoding, value, expire_at: None, stamp: 0, fields: ExtFields::NONE };
    for (space, has_addresses) in [(SPACE, true), (KeyspaceId(1), false)] {
        let mut row = Vec::new();
        let _stops = absent::Stops::new();
        write_row_for(space, &entry, &mut row);
        let read = Row::read(&row).expect("it is a row");
        assert_eq!((read.has_addresses, !numbers(&read).is_empty()), (has_addresses, has_addresses));
    }
}

/// Where rows are at a position, by what was flushed there.
struct Flushed {
    /// Operations of the file system when the flush had returned.
    operations: u64,
    stored: BTreeMap<u64, Fields>,
}

/// The power is cut, or the process is killed, at every operation of flushes and merges: a start finds what one flush
/// stored, with all leaves, and none older than the last that had returned. The next flush leaves no leaf that no row
/// has.
#[test]
fn a_cut_at_any_operation_of_a_flush_loses_no_leaf() {
    let (mut world, mut rng) = (World::new(), Rng::new(6));
    let mut flushed = vec![Flushed { operations: 0, stored: BTreeMap::new() }];
    world.fs.record_crash_points();
    for lsn in 1..=8 {
        if lsn == 5 {
            world.clear();
        }
        for key in 0..3 {
            world.edit(&mut rng, key);
            world.spill(&mut rng, key);
        }
        if lsn % 3 == 2 {
            world.copy(1, 10 + lsn);
        }
        if lsn % 2 == 1 {
            world.disk.flush_leaves().expect("the disk works");
        }
        world.flush(lsn, lsn == 5, |world| {
            for key in 0..3 {
                world.edit(&mut rng, key);
                world.spill(&mut rng, key);
            }
        });
        flushed.push(Flushed { operations: world.fs.operations(), stored: world.stored.clone() });
        while lsn % 2 == 0 && world.disk.compact_step().expect("the disk works") {}
        if lsn % 3 == 0 {
            // Leaves become durable before the flush of their rows.
            world.edit(&mut rng, 0);
            world.spill(&mut rng, 0);
            let copy = world.disk.copy_to(Path::new(&format!("/copy-{lsn}"))).expect("the disk works");
            assert_eq!(copy, Some(Lsn(lsn)));
        }
    }
    let points = world.fs.take_crash_points();
    let (mut leaves, mut positions) = (0, BTreeSet::new());
    for point in &points {
        for outage in [Outage::ProcessKill, Outage::PowerCut { seed: 1 }, Outage::PowerCut { seed: 2 }] {
            let what = format!("operation {}, {outage:?}", point.operation());
            let mut after = World::start(point.after(outage));
            let lsn = after.disk.recovered_lsn().0;
            let durable = flushed.iter().rposition(|flush| flush.operations < point.operation()).unwrap_or(0);
            assert!(lsn as usize >= durable, "{what}: position {lsn} of {durable}");
            after.stored = flushed[lsn as usize].stored.clone();
            after.model = after.stored.clone();
            after.compare();
            leaves += leaves_of(&after.disk).list.lock().handles.len();
            positions.insert(lsn);
            // What follows the start takes no number that rows have.
            if lsn > 0 {
                after.edit(&mut rng, 1);
                after.spill(&mut rng, 1);
            }
            after.flush(100, false, |_| {});
            after.trees.clear();
            after.compare();
            after.trees.clear();
            after.flush(101, false, |_| {});
            assert_eq!(after.verify().unwrap_or_else(|error| panic!("{what}: {error}")), 0, "{what}");
        }
    }
    assert!(points.len() > 60 && leaves > 500 && positions.len() == flushed.len(), "{} {leaves}", points.len());
}

/// A leaf that only a collected row refers to is stored with it, although an edit takes it out of the tree before the
/// row is written.
#[test]
fn an_edit_before_a_collected_row_is_written_takes_no_leaf_from_it() {
    let (mut world, mut rng) = (World::new(), Rng::new(7));
    (0..30).for_each(|_| world.edit(&mut rng, 1));
    world.spill(&mut rng, 1);
    world.flush(1, false, |world| {
        let leaves = leaves_of(&world.disk).list.lock().handles.len();
        assert!(leaves > 1, "{leaves}");
        // Every leaf changes.
        (0..60).for_each(|_| world.edit(&mut rng, 1));
    });
    world = world.restart();
    world.compare();
    assert_eq!(world.verify().expect("it is whole"), 0);
}

/// Leaves become durable before their row, but not with rows of a flush that is on its way.
#[test]
fn leaves_are_flushed_without_rows_that_a_flush_has_drained() {
    let (mut world, mut rng) = (World::new(), Rng::new(9));
    (0..5).for_each(|_| world.edit(&mut rng, 1));
    world.spill(&mut rng, 1);
    world.disk.flush_leaves().expect("the disk works");
    assert_eq!(world.disk.unflushed_leaf_bytes(), 0);
    world.flush(1, false, |_| {});
    (0..5).for_each(|_| world.edit(&mut rng, 1));
    world.spill(&mut rng, 1);
    let mut flush = world.disk.begin_flush();
    let (kind, encoding, value) = (Type::Hash, Encoding::BIG, Value::Big(&world.trees[&1]));
    let key = &1_u64.to_be_bytes()[..];
    let entry = Entry { key, kind, encoding, value, expire_at: None, stamp: 0, fields: ExtFields::NONE };
    flush.sink(ShardId(0), SPACE).store(&entry);
    flush.drain().expect("the disk works");
    world.disk.flush_leaves().expect("the disk works");
    assert!(world.disk.unflushed_leaf_bytes() > 0);
    let mut after = World::start(world.fs.crash_point().after(Outage::ProcessKill));
    (after.model, after.stored) = (world.stored.clone(), world.stored.clone());
    after.compare();
}

/// A flush that fails at any read or write has changed no list of leaves by rows that it has not stored: the next one,
/// of the same keys, neither deletes a leaf that another row has nor keeps one that no row has.
#[test]
fn a_flush_that_failed_and_is_done_again_counts_rows_once() {
    for (op, errno) in [(Op::Read, errno::EIO), (Op::Write, errno::ENOSPC)] {
        let (mut failures, mut call) = (0, 0);
        loop {
            let (mut world, mut rng) = (World::new(), Rng::new(8));
            for key in [1, 9] {
                (0..5).for_each(|_| world.edit(&mut rng, key));
                world.spill(&mut rng, key);
            }
            world.copy(1, 2);
            world.flush(1, false, |_| {});
            // The leaves of the first are those of the second as well, until it changes.
            for key in [1, 9] {
                (0..5).for_each(|_| world.edit(&mut rng, key));
                world.spill(&mut rng, key);
            }
            world.fs.inject(Fault::fail(op, errno).skip(call));
            let is_done = world.try_flush(2, false, |_| {}).is_ok();
            let has_failed = world.fs.faults_fired() > 0;
            world.fs.clear_faults();
            if !is_done {
                failures += 1;
                (0..5).for_each(|_| world.edit(&mut rng, 1));
            }
            world.flush(3, false, |_| {});
            world = world.restart();
            world.compare();
            // What went with the trees is deleted now.
            world.trees.clear();
            world.flush(4, false, |_| {});
            assert_eq!(world.verify().unwrap_or_else(|error| panic!("{op:?} {call}: {error}")), 0, "{op:?} {call}");
            if !has_failed {
                break;
            }
            call += 1;
        }
        assert!(call > 0 && (op == Op::Write || failures > 0), "{op:?}: {failures} of {call}");
    }
}
