//! Power cuts and kills at every operation of random histories: what is found afterwards is a prefix of the history
//! that has everything acknowledged as durable, whole batches only, and the database continues from there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::Rng;
use plex::{Background, Db, Indexes, IterOptions, KeySpaceId, Options, Policy, Wal, WriteBatch};
use vfs::{CrashPoint, FileSystem, Outage, SimFs};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The key that every batch gives its own number.
const COUNTER: &[u8] = b"counter";

/// Power cuts drawn at each operation.
const POWER_CUTS: u64 = 2;

struct History {
    /// The map after each number of batches.
    states: Vec<Map>,
    /// The number of batches that were handed to the system, or durable, after each number of operations of the disk.
    written: Vec<(u64, usize)>,
    durable: Vec<(u64, usize)>,
}

impl History {
    /// What was reached before an operation began.
    fn before(list: &[(u64, usize)], operation: u64) -> usize {
        list.iter().rev().find(|(at, _)| *at < operation).map_or(0, |(_, batches)| *batches)
    }
}

fn options(fs: &SimFs, seed: u64, wal: Wal) -> Options {
    let policy = match seed % 4 {
        0 => Policy::LdcRanged { space_amp_target: 1.3, runs_max: 3 },
        1 => Policy::Leveled { level0_runs_max: 2, level1_bytes: 4 << 10 },
        2 => Policy::Ldc { runs_per_level: 4, duplicates_max: 1.3 },
        _ => Policy::Tiered { runs_per_level: 3 },
    };
    Options::new()
        .file_system(Arc::new(fs.clone()))
        .seed(seed)
        .wal(wal)
        .background(Background::Inline)
        .policy(policy)
        .memtable_bytes(1500)
        .table_bytes(1 << 10)
        .direct_reads(seed % 5 == 1)
        .direct_writes(seed % 5 < 2)
        .merge_parts_max(1 + seed as usize % 3)
        .tables_read_at_open(if seed.is_multiple_of(3) { 0 } else { 4096 })
        .indexes(if seed.is_multiple_of(2) { Indexes::Full } else { Indexes::Partitioned })
        .block_bytes(256)
}

/// One random history; the disk's crash points are recorded from the first open on.
fn run(fs: &SimFs, seed: u64, wal: Wal, batches: usize) -> History {
    let mut rng = Rng::new(seed);
    let mut history = History { states: vec![Map::new()], written: Vec::new(), durable: Vec::new() };
    let mut db = Some(options(fs, seed, wal).open("/db").expect("it opens"));
    for number in 1..=batches {
        let open = db.as_ref().expect("it is open");
        let mut map = history.states[number - 1].clone();
        let mut batch = WriteBatch::new();
        for _ in 0..rng.below(5) {
            let key = vec![b'a' + rng.below(20) as u8; 1 + rng.below(3) as usize];
            match rng.below(10) {
                0 => {
                    let end = [&key[..], b"~"].concat();
                    batch.delete_range(&key[..]..&end[..]);
                    map.retain(|k, _| *k < key || *k >= end);
                }
                1 | 2 => {
                    batch.delete(&key);
                    map.remove(&key);
                }
                _ => {
                    let value = vec![number as u8; rng.below(80) as usize];
                    batch.put(&key, &value);
                    map.insert(key, value);
                }
            }
        }
        let counter = (number as u64).to_be_bytes();
        batch.put(COUNTER, &counter);
        map.insert(COUNTER.to_vec(), counter.to_vec());
        history.states.push(map);
        open.write(&batch).expect("it writes");
        history.written.push((fs.operations(), number));
        let is_synced = match rng.below(30) {
            0 => open.sync().is_ok(),
            1 => open.flush().is_ok(),
            2 => {
                let from = [b'a' + rng.below(20) as u8];
                open.compact_range(KeySpaceId::DEFAULT, &from[..]..&b"n"[..]).expect("it merges");
                wal == Wal::Sync
            }
            _ => wal == Wal::Sync,
        };
        if is_synced {
            history.durable.push((fs.operations(), number));
        }
        if rng.one_in(60) {
            db = None;
            db = Some(options(fs, seed, wal).open("/db").unwrap_or_else(|e| panic!("{e} {db:?}")));
            // An open brings to the medium what it found only where every write does.
            if wal == Wal::Sync {
                history.durable.push((fs.operations(), number));
            }
        }
    }
    history
}

fn contents(db: &Db) -> plex::Result<Map> {
    db.iter(IterOptions::default())?.collect()
}

/// The database after an outage: the right prefix, sound, and fit for more.
fn check(fs: &SimFs, history: &History, floor: usize, seed: u64, wal: Wal, what: &str) {
    let db = options(fs, seed, wal).open("/db").unwrap_or_else(|e| panic!("{what}: {e}"));
    let found = contents(&db).unwrap_or_else(|e| panic!("{what}: {e}"));
    let counter = found.get(COUNTER).map_or(0, |bytes| u64::from_be_bytes(bytes[..].try_into().expect("8 bytes")));
    assert!(counter as usize >= floor, "{what}: batch {counter} is the last one found, {floor} were durable");
    assert!(found == history.states[counter as usize], "{what}: not the state after batch {counter}");
    db.put(b"after", b"crash").unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(db.get(b"after").expect("it reads"), Some(b"crash".to_vec()), "{what}");
}

/// Two power cuts and a kill at every operation of one history; the number of crashes.
fn check_all(seed: u64, wal: Wal, batches: usize) -> usize {
    let fs = SimFs::new(seed);
    fs.record_crash_points();
    let history = run(&fs, seed, wal, batches);
    let mut checked = 0;
    let points = fs.take_crash_points();
    for point in &points {
        for cut in 0..POWER_CUTS {
            let floor = History::before(&history.durable, point.operation());
            check(&point.power_cut(cut), &history, floor, seed, wal, &format!("seed {seed}, {point:?}, cut {cut}"));
        }
        let floor = History::before(&history.written, point.operation());
        check(&killed(point), &history, floor, seed, wal, &format!("seed {seed}, {point:?}, kill"));
        checked += POWER_CUTS as usize + 1;
    }
    checked
}

fn killed(point: &CrashPoint) -> SimFs {
    point.after(Outage::ProcessKill)
}

/// Histories are shared out among the cores; 22,000 crashes take ten seconds of two busy ones.
#[test]
fn every_crash_leaves_a_prefix() {
    let histories: Vec<(u64, Wal)> = (0..6).flat_map(|seed| [(seed, Wal::Async), (seed, Wal::Sync)]).collect();
    let (next, checked) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(&(seed, wal)) = histories.get(next.fetch_add(1, Ordering::Relaxed)) {
                    checked.fetch_add(check_all(seed, wal, 120), Ordering::Relaxed);
                }
            });
        }
    });
    let checked = checked.into_inner();
    println!("{checked} crash points");
    assert!(checked >= 20_000, "{checked}");
}

/// A crash during the open after a crash, and again: recovery is done over, nothing is lost.
#[test]
fn crashes_during_recovery() {
    for seed in 0..4 {
        let fs = SimFs::new(seed);
        let history = run(&fs, seed, Wal::Sync, 60);
        let all = history.states.len() - 1;
        let second = fs.recover(Outage::PowerCut { seed });
        second.record_crash_points();
        drop(options(&second, seed, Wal::Sync).open("/db").expect("it recovers"));
        for point in second.take_crash_points() {
            for cut in 0..3 {
                let what = format!("seed {seed}, recovery, {point:?}, cut {cut}");
                check(&point.power_cut(cut), &history, all, seed, Wal::Sync, &what);
            }
        }
    }
}

/// The n-th operation fails, for every n: an error, and after a new open everything acknowledged is there.
#[test]
fn every_failing_operation_is_survived() {
    for seed in 0..4 {
        let mut n = 1;
        loop {
            let fs = SimFs::new(seed);
            fs.inject(vfs::Fault::fail_operation(n, vfs::errno::EIO));
            let mut acknowledged = 0u64;
            if let Ok(db) = options(&fs, seed, Wal::Sync).open("/db") {
                for i in 1..=60u64 {
                    let wrote = db.put(b"n", &i.to_be_bytes()).and_then(|()| db.put(&[i as u8; 40], &[1; 60]));
                    if wrote.is_err() {
                        break;
                    }
                    acknowledged = i;
                }
                let n = db.get(b"n").expect("reads go on");
                assert!(n.map_or(0, |b| u64::from_be_bytes(b[..].try_into().expect("8 bytes"))) >= acknowledged);
            }
            let was_met = fs.faults_fired() > 0;
            fs.clear_faults();
            let after = fs.recover(Outage::PowerCut { seed: n });
            let db = options(&after, seed, Wal::Sync).open("/db").unwrap_or_else(|e| panic!("seed {seed}, {n}: {e}"));
            let found = db.get(b"n").expect("it reads");
            let found = found.map_or(0, |b| u64::from_be_bytes(b[..].try_into().expect("8 bytes")));
            assert!(found >= acknowledged, "seed {seed}, operation {n}: {found} of {acknowledged}");
            for i in 1..=acknowledged {
                assert!(db.get(&[i as u8; 40]).expect("it reads").is_some(), "seed {seed}, operation {n}: {i}");
            }
            if !was_met {
                break;
            }
            n += 1;
        }
        assert!(n > 100);
    }
}

/// Without a log of its own, the database says from where another log must be replayed, and has exactly what came
/// before.
#[test]
fn an_external_log_is_replayed_from_an_exact_position() {
    for seed in 0..6 {
        let fs = SimFs::new(seed);
        let db = options(&fs, seed, Wal::Off).open("/db").expect("it opens");
        fs.record_crash_points();
        for lsn in 1..=200u64 {
            let mut batch = WriteBatch::new();
            batch.set_lsn(lsn).put(&lsn.to_be_bytes(), &[1; 30]);
            db.write(&batch).expect("it writes");
        }
        assert!(db.flushed_lsn() > 100);
        for point in fs.take_crash_points() {
            let after = point.power_cut(seed);
            let db = options(&after, seed, Wal::Off).open("/db").expect("it opens");
            let keys: Vec<Vec<u8>> = contents(&db).expect("it reads").into_keys().collect();
            let expected: Vec<Vec<u8>> = (1..=db.recovered_lsn()).map(|lsn| lsn.to_be_bytes().to_vec()).collect();
            assert_eq!(keys, expected, "seed {seed}, {point:?}");
        }
    }
}

/// A second open fails and names the holder; a lost table is named; strangers' files stay.
#[test]
fn opening_is_careful() {
    let fs = SimFs::new(1);
    let db = options(&fs, 0, Wal::Sync).open("/db").expect("it opens");
    let error = options(&fs, 0, Wal::Sync).open("/db").expect_err("it is open");
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    let other = db.key_space("other").expect("it is made");
    assert_ne!(other, KeySpaceId::DEFAULT);
    db.put_in(other, b"k", b"v").expect("it writes");
    db.flush().expect("it flushes");
    drop(db);
    vfs::replace_file(&fs, Path::new("/db/notes.txt"), b"mine").expect("it writes");
    drop(options(&fs, 0, Wal::Sync).open("/db").expect("it opens"));
    assert!(fs.exists(Path::new("/db/notes.txt")).expect("it looks"));
    let missing = options(&fs, 0, Wal::Sync).create_if_missing(false).open("/elsewhere");
    assert!(missing.is_err());
    let table = fs.contents().into_keys().find(|path| path.extension().is_some_and(|e| e == "sst")).expect("a table");
    fs.remove_file(&table).expect("it goes");
    let error = options(&fs, 0, Wal::Sync).open("/db").expect_err("a table is missing");
    assert!(error.is_corruption() && error.to_string().contains(table.to_str().expect("text")), "{error}");
}

/// A flipped bit of any byte of a small database: an error that names the file, or an answer that was right at some
/// moment and has everything that tables and marks of the log vouch for; never a wrong answer, never a panic.
#[test]
fn no_flipped_bit_gives_a_wrong_answer() {
    for seed in 0..4 {
        let fs = SimFs::new(seed);
        let history = run(&fs, seed, Wal::Sync, 40);
        let all = history.states.len() - 1;
        let rest = fs.recover(Outage::ProcessKill);
        let mut noticed = 0;
        for (path, bytes) in rest.contents() {
            for offset in 0..bytes.len() as u64 {
                let damaged = rest.crash_point().after(Outage::ProcessKill);
                damaged.flip_bit(&path, offset, (offset % 8) as u8).expect("the file is there");
                let what = format!("seed {seed}, {} at {offset}", path.display());
                let opened = options(&damaged, seed, Wal::Sync).open("/db");
                match opened.and_then(|db| contents(&db)) {
                    Err(error) => {
                        assert!(error.is_corruption(), "{what}: {error}");
                        noticed += 1;
                    }
                    Ok(found) => {
                        let counter =
                            found.get(COUNTER).map_or(0, |b| u64::from_be_bytes(b[..].try_into().expect("8 bytes")));
                        assert!(
                            found == history.states[counter as usize],
                            "{what}: not the state after batch {counter}"
                        );
                        // Only what the last sync covered has no mark after it yet.
                        assert!(counter as usize + 1 >= all, "{what}: batch {counter} of {all}");
                    }
                }
            }
        }
        assert!(noticed > 100, "{noticed}");
    }
}
