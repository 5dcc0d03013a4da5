//! A golden file: all pairs of a keyspace with leaves that are rows, as this version writes them.
//!
//! A difference is a change of format, which needs a new version number. `ONGGI_WRITE_GOLDEN=1` writes the file if it
//! is missing. Each line is the name of a key space, a key and a value; the last two as hexadecimal text.

use super::*;
use plex::IterOptions;
use std::fmt::Write as _;
use value::{list, set, zset};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/leaves-1.hex");

/// Keys, each of a collection of this type. The last is a copy of the first.
const KEYS: [(&[u8], Type); 5] =
    [(b"hash", Type::Hash), (b"set", Type::Set), (b"zset", Type::Zset), (b"list", Type::List), (b"copy", Type::Hash)];

const ELEMENTS: u64 = 90;

/// The position of the flush.
const LSN: u64 = 300;

/// Some rows are in parts, and some are not.
const PARTS_FROM: usize = 400;

fn open_golden(fs: &SimFs) -> Arc<Disk> {
    let shards = Shards { count: 1, of: Arc::new(|_| ShardId(0)) };
    let options = DiskOptions { parts_from: PARTS_FROM, ..DiskOptions::default() };
    let disk = Disk::open(Arc::new(fs.clone()), Path::new(DIR), shards, options).expect("it is whole");
    disk.open_space(SPACE).expect("it is whole");
    disk
}

/// Adds the elements of these numbers.
fn add(tree: &mut Big, hasher: &KeyHasher, numbers: std::ops::Range<u64>) {
    let (kind, mut changes) = (tree.kind(), Vec::new());
    for number in numbers {
        let (field, value) = (format!("field{number}"), format!("value {} of {number}", number * 7919 % 1000));
        let (field, value) = (field.as_bytes(), value.as_bytes());
        match kind {
            Type::Hash => Change::Set { field, value, expire_at: None }.put(&mut changes),
            Type::Set => set::Change::Add(value).put(&mut changes),
            Type::Zset => zset::Change::Add { score: (number % 7) as f64 / 2.0, member: value }.put(&mut changes),
            Type::List => list::Change::Push { end: list::End::Tail, value }.put(&mut changes),
            other => unreachable!("{other:?}"),
        }
    }
    let limits = Limits::default();
    let mut slot = value::Slot { body: value::Body::Big(tree), encoding: Encoding::BIG, limits: &limits, hasher };
    value::apply(kind, &mut slot, &changes);
}

fn tree_of(kind: Type, hasher: &KeyHasher) -> Big {
    let mut tree = Big::empty(kind, hasher);
    add(&mut tree, hasher, 0..ELEMENTS);
    tree
}

/// The changes that make a tree.
fn changes_of(tree: &Big) -> Vec<u8> {
    let mut changes = Vec::new();
    tree.write_all_changes(&mut changes);
    changes
}

fn store(disk: &Arc<Disk>, trees: &[(&[u8], SharedBig)], lsn: u64) {
    let mut flush = disk.begin_flush();
    let mut sink = flush.sink(ShardId(0), SPACE);
    for (key, tree) in trees {
        let (kind, value) = (tree.kind(), Value::Big(tree));
        let (encoding, fields) = (Encoding::BIG, ExtFields::NONE);
        sink.store(&Entry { key, kind, encoding, value, expire_at: None, stamp: 0, fields });
    }
    drop(sink);
    flush.install(Lsn(lsn)).expect("the disk works");
}

fn load(disk: &Disk, key: &[u8], hasher: &KeyHasher) -> SharedBig {
    let (rows, _) = disk.rows(ShardId(0), SPACE).expect("it is open");
    let mut row = Vec::new();
    assert!(rows.get(key, &mut row).expect("the disk works"), "{}", key.escape_ascii());
    let read = Row::read(&row).expect("it is a row");
    assert!(row[0] == 3 && read.has_addresses, "{}", key.escape_ascii());
    let keeper = absent::both(Arc::<AsStored>::default(), leaves_of(disk).keeper());
    read.tree(&keeper, hasher).expect("it is a tree")
}

/// All pairs, a line each.
fn written() -> String {
    let (disk, hasher) = (open_golden(&SimFs::new(1)), KeyHasher::new(&mut Rng::new(1)));
    let (leaves, mut trees) = (leaves_of(&disk), Vec::<(&[u8], SharedBig)>::new());
    let unused = leaves.put(b"in use, but no row has it").expect("the disk works");
    for (key, kind) in &KEYS[..4] {
        let (mut tree, mut turn) = (tree_of(*kind, &hasher), 0);
        spill(&mut tree, &leaves, &mut || {
            turn += 1;
            turn % 3 != 0
        });
        trees.push((key, SharedBig::new(tree)));
    }
    trees.push((KEYS[4].0, trees[0].1.clone()));
    store(&disk, &trees, LSN);
    drop(unused);
    let mut text = String::new();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for (name, space) in disk.db.key_spaces() {
        for pair in disk.db.iter_in(space, IterOptions::default()).expect("the disk works") {
            let (key, value) = pair.expect("the disk works");
            writeln!(text, "{name} {} {}", hex(&key), hex(&value)).expect("a string takes all");
        }
    }
    text
}

/// A disk that has the pairs.
fn disk_of(text: &str) -> SimFs {
    let fs = SimFs::new(2);
    let tree = plex::Options::new().file_system(Arc::new(fs.clone())).wal(plex::Wal::Off).create_if_missing(true);
    let db = tree.background(plex::Background::Manual).open(Path::new(DIR)).expect("the disk works");
    let mut batch = WriteBatch::new();
    for line in text.lines() {
        let [name, key, value] = line.split(' ').collect::<Vec<_>>().try_into().expect("three words");
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).expect("text"), 16).expect("two digits");
        let bytes = |hex: &str| hex.as_bytes().chunks(2).map(byte).collect::<Vec<_>>();
        batch.put_in(db.key_space(name).expect("the disk works"), &bytes(key), &bytes(value));
    }
    batch.set_lsn(LSN);
    db.write(&batch).expect("the disk works");
    db.flush().expect("the disk works");
    fs
}

/// Rows of version 3, leaves and their list have the bytes of the golden file. A start with that file deletes the leaf
/// that no row has, and gives what was stored; what is changed then and stored again is whole as well.
#[test]
fn leaves_of_before_are_read() {
    if std::env::var_os("ONGGI_WRITE_GOLDEN").is_some() && !Path::new(PATH).exists() {
        std::fs::write(PATH, written()).expect("it is in the crate");
    }
    let golden = std::fs::read_to_string(PATH).expect("the golden file is there");
    assert!(golden == written(), "the format has changed: {PATH} differs from what is written now");

    // A process that hashes differently.
    let (fs, hasher) = (disk_of(&golden), KeyHasher::new(&mut Rng::new(2)));
    let disk = open_golden(&fs);
    assert_eq!(disk.recovered_lsn(), Lsn(LSN));
    let leaves = leaves_of(&disk);
    let is_there = |number| disk.db.get_in(leaves.space, &key_of(number)).expect("the disk works").is_some();
    assert!(!is_there(1) && is_there(2));
    assert!(leaves.list.lock().shared.len() > 1 && leaves.list.lock().shared.values().all(|rows| *rows == 2));
    let mut trees = KEYS.map(|(key, _)| (key, load(&disk, key, &hasher)));
    for ((key, kind), (_, tree)) in KEYS.iter().zip(&mut trees) {
        let expected = changes_of(&tree_of(*kind, &KeyHasher::new(&mut Rng::new(1))));
        assert!(changes_of(tree) == expected, "{}", key.escape_ascii());
        let tree = SharedBig::make_mut(tree);
        add(tree, &hasher, ELEMENTS..ELEMENTS + 9);
        spill(tree, &leaves, &mut || true);
    }
    let expected: BTreeMap<_, _> = trees.iter().map(|(key, tree)| (key.to_vec(), changes_of(tree))).collect();
    store(&disk, &trees, LSN + 1);
    drop((trees, leaves));
    // What went with the trees is deleted now.
    store(&disk, &[], LSN + 2);
    drop(disk);
    let (fs, mut found): (Arc<dyn FileSystem>, _) = (Arc::new(fs), BTreeMap::new());
    let verified = crate::offline::verify(&fs, Path::new(DIR), &mut |_, key, row| {
        let keeper: Arc<dyn Keeper> = Arc::<AsStored>::default();
        found.insert(key.to_vec(), changes_of(&row.tree(&keeper, &hasher).expect("it is a tree")));
    });
    assert_eq!(verified.expect("it is whole").unused_parts, 0);
    assert!(found == expected);
}
