//! A device that is full, at every operation of random histories: an error that says so, reads that work, writes that
//! resume once there is space again, and nothing lost that was acknowledged, also not by a power cut later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::Rng;
use plex::{Background, Db, Error, IterOptions, KeySpaceId, Options, Policy, SortedFile, Wal, WriteBatch};
use vfs::{Fault, Op, Outage, SimFs, errno};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(fs: &SimFs, seed: u64, wal: Wal) -> Options {
    let policy = match seed % 3 {
        0 => Policy::LdcRanged { space_amp_target: 1.3, runs_max: 3 },
        1 => Policy::Leveled { level0_runs_max: 2, level1_bytes: 4 << 10 },
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
        .direct_writes(seed % 2 == 1)
        .merge_parts_max(1 + seed as usize % 3)
        .block_bytes(256)
}

fn contents(db: &Db) -> Map {
    db.iter(IterOptions::default()).and_then(Iterator::collect).expect("reads go on")
}

/// What a call changes.
type Change = Box<dyn Fn(&mut Map)>;

/// The states that reads may find. A write whose sync failed shows once writes resume, or not before the next open, so
/// until then there are two.
struct Known {
    states: Vec<Map>,
    errors: usize,
    /// After each number of disk operations at which a call was over, the states that were possible then.
    history: Vec<(u64, Vec<Map>)>,
}

impl Known {
    fn note(&mut self, change: &Change, is_done: bool) {
        let mut changed = self.states.clone();
        changed.iter_mut().for_each(change);
        if is_done {
            self.states = changed;
        } else {
            self.states.extend(changed);
            self.states.sort();
            self.states.dedup();
        }
    }

    fn check(&self, db: &Db, what: &str) -> Map {
        let found = contents(db);
        let differs = |state: &Map| {
            let keys = state.keys().chain(found.keys());
            keys.filter(|key| state.get(*key) != found.get(*key))
                .map(|key| String::from_utf8_lossy(key).into_owned())
                .collect()
        };
        let differences: Vec<Vec<String>> = self.states.iter().map(differs).collect();
        assert!(differences.iter().any(Vec::is_empty), "{what}: not as it must be: {differences:?}");
        found
    }

    /// Whether a crash before this operation may leave that, if all that was acknowledged is durable.
    fn may_leave(&self, found: &Map, operation: u64) -> bool {
        let over = self.history.partition_point(|(operations, _)| *operations < operation);
        self.history[over.saturating_sub(1)..].iter().any(|(_, states)| states.contains(found))
    }
}

/// A random call, with what it changes; `None` for one that changes nothing.
fn call(fs: &SimFs, db: &Db, rng: &mut Rng, number: u64) -> (plex::Result<()>, Option<Change>) {
    match rng.below(24) {
        0 => (db.flush(), None),
        1 => (db.sync(), None),
        2 => {
            let path = format!("/sorted-{number}");
            let keys = [b"c-ingested", b"f-ingested"];
            let made = SortedFile::create(&path, &options(fs, number, Wal::Off)).and_then(|mut file| {
                keys.iter().try_for_each(|key| file.put(&key[..], &number.to_be_bytes()))?;
                file.finish()
            });
            let insert = move |map: &mut Map| {
                map.extend(keys.map(|key| (key.to_vec(), number.to_be_bytes().to_vec())));
            };
            (made.and_then(|()| db.ingest(KeySpaceId::DEFAULT, &[path])), Some(Box::new(insert)))
        }
        3 => (db.key_space(&format!("space-{number}")).map(drop), None),
        4 => {
            let from = vec![b'a' + rng.below(20) as u8];
            let to = vec![from[0] + rng.below(6) as u8, b'~'];
            let outcome = db.delete_range(&from[..]..&to[..]);
            (outcome, Some(Box::new(move |map| map.retain(|key, _| *key < from || *key >= to))))
        }
        _ => {
            let mut batch = WriteBatch::new();
            let mut values = Vec::new();
            for _ in 0..=rng.below(4) {
                let key = vec![b'a' + rng.below(20) as u8; 1 + rng.below(3) as usize];
                if rng.one_in(5) {
                    batch.delete(&key);
                    values.push((key, None));
                } else {
                    let value = vec![number as u8; rng.below(80) as usize];
                    batch.put(&key, &value);
                    values.push((key, Some(value)));
                }
            }
            let apply = move |map: &mut Map| {
                for (key, value) in &values {
                    match value {
                        Some(value) => drop(map.insert(key.clone(), value.clone())),
                        None => drop(map.remove(key)),
                    }
                }
            };
            (db.write(&batch), Some(Box::new(apply)))
        }
    }
}

/// A history of which only those calls may fail that meet a fault, and only for want of space.
fn run(fs: &SimFs, db: &Db, seed: u64, calls: u64, what: &str) -> Known {
    let mut rng = Rng::new(seed);
    let mut known = Known { states: vec![Map::new()], errors: 0, history: vec![(0, vec![Map::new()])] };
    for number in 1..=calls {
        let faults = fs.faults_fired();
        let (outcome, change) = call(fs, db, &mut rng, number);
        if let Err(error) = &outcome {
            let is_right = error.is_out_of_space() && !matches!(error, Error::Stopped { .. });
            assert!(is_right && fs.faults_fired() > faults, "{what}, call {number}: {error}");
            known.errors += 1;
        }
        let is_write = change.is_some();
        if let Some(change) = change {
            known.note(&change, outcome.is_ok());
        }
        let found = known.check(db, &format!("{what}, call {number}, {outcome:?}"));
        if outcome.is_ok() && is_write {
            // By now it is known what became of writes that failed.
            known.states = vec![found];
        }
        known.history.push((fs.operations(), known.states.clone()));
    }
    known
}

/// Power cuts while the database continues after a lack of space: nothing acknowledged is lost, and it opens.
fn cuts_while_it_goes_on(fs: &SimFs, known: &Known, seed: u64, failed_at: u64, what: &str) {
    for point in fs.take_crash_points() {
        if (failed_at..failed_at + 40).contains(&point.operation()) {
            let what = format!("{what}, {point:?}");
            let db = options(&point.power_cut(failed_at), seed, Wal::Sync)
                .open("/db")
                .unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(known.may_leave(&contents(&db), point.operation()), "{what}: something acknowledged is lost");
            db.put(b"after", b"").unwrap_or_else(|e| panic!("{what}: {e}"));
        }
    }
}

/// One after the other, each operation of a history fails for want of space, and the next one finds it again.
fn every_operation(seed: u64, wal: Wal) -> usize {
    let mut failed = 0;
    for n in 1.. {
        let fs = SimFs::new(seed);
        let db = options(&fs, seed, wal).open("/db").expect("it opens");
        let first = fs.operations();
        fs.inject(Fault::fail_operation(first + n, errno::ENOSPC));
        let what = format!("seed {seed}, {wal:?}, operation {n}");
        let cuts = wal == Wal::Sync && n % 4 == 0;
        if cuts {
            fs.record_crash_points();
        }
        let known = run(&fs, &db, seed, 70, &what);
        if cuts {
            cuts_while_it_goes_on(&fs, &known, seed, first + n, &what);
        }
        failed += known.errors;
        let was_met = fs.faults_fired() > 0;
        fs.clear_faults();
        db.put(b"last", b"").unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut states = known.states.clone();
        states.iter_mut().for_each(|map| drop(map.insert(b"last".to_vec(), Vec::new())));
        let all = Known { states, errors: 0, history: Vec::new() }.check(&db, &what);
        if wal == Wal::Off { db.flush() } else { db.sync() }.unwrap_or_else(|error| panic!("{what}: {error}"));
        db.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
        drop(db);
        for outage in [Outage::ProcessKill, Outage::PowerCut { seed: n }, Outage::PowerCut { seed: n + 1000 }] {
            let after = fs.crash_point().after(outage);
            let db = options(&after, seed, wal).open("/db").unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(contents(&db) == all, "{what}, {outage:?}: something synced is lost");
            db.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        if !was_met {
            assert!(n > 100, "{n}");
            break;
        }
    }
    failed
}

#[test]
fn every_operation_may_find_no_space() {
    for (seed, wal) in [(0, Wal::Sync), (1, Wal::Async), (2, Wal::Off), (3, Wal::Sync), (4, Wal::Sync), (5, Wal::Async)]
    {
        let failed = every_operation(seed, wal);
        assert!(failed > 30, "{failed}");
    }
}

/// From the n-th of its kind on every write or sync fails, for a while; what was acknowledged survives a power cut at
/// any moment, and once there is space again everything works.
#[test]
fn space_may_be_gone_for_long() {
    for seed in 0..6 {
        for op in [Op::Write, Op::SyncData, Op::SyncAll, Op::SyncDir, Op::Open, Op::Rename] {
            for n in 0..12 {
                let fs = SimFs::new(seed);
                let db = options(&fs, seed, Wal::Sync).open("/db").expect("it opens");
                let what = format!("seed {seed}, {op:?} {n}");
                fs.inject(Fault::fail(op, errno::ENOSPC).skip(n).forever());
                let (mut acknowledged, mut failed) = (0u64, 0);
                for i in 1..=80u64 {
                    match db.put(&i.to_be_bytes(), &[i as u8; 60]) {
                        Ok(()) => acknowledged = i,
                        Err(error) => {
                            assert!(error.is_out_of_space(), "{what}: {error}");
                            failed += 1;
                        }
                    }
                    assert_eq!(db.get(&acknowledged.to_be_bytes()).expect("it reads").is_some(), acknowledged > 0);
                    if failed > 5 {
                        break;
                    }
                }
                let cut = fs.crash_point().power_cut(n);
                let reopened = options(&cut, seed, Wal::Sync).open("/db").unwrap_or_else(|e| panic!("{what}: {e}"));
                for i in 1..=acknowledged {
                    assert!(reopened.get(&i.to_be_bytes()).expect("it reads").is_some(), "{what}: {i} is lost");
                }
                fs.clear_faults();
                for i in 101..=160u64 {
                    db.put(&i.to_be_bytes(), &[i as u8; 60]).unwrap_or_else(|error| panic!("{what}: {error}"));
                }
                db.settle().unwrap_or_else(|error| panic!("{what}: {error}"));
                let all = contents(&db);
                drop(db);
                let cut = fs.crash_point().power_cut(n);
                let reopened = options(&cut, seed, Wal::Sync).open("/db").unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(contents(&reopened) == all, "{what}: something is lost");
            }
        }
    }
}

/// A small device fills up; with a larger one, the same database continues.
#[test]
fn a_device_may_grow() {
    for seed in 0..3 {
        let fs = SimFs::new(seed);
        fs.set_capacity(Some(200 << 10));
        let db = options(&fs, seed, Wal::Sync).open("/db").expect("it opens");
        let mut acknowledged = 0u64;
        let mut failed = 0;
        for i in 1..20_000u64 {
            match db.put(&i.to_be_bytes(), &[i as u8; 200]) {
                Ok(()) if failed == 0 => acknowledged = i,
                Ok(()) => {}
                Err(error) => {
                    assert!(error.is_out_of_space(), "{error}");
                    failed += 1;
                }
            }
            if failed > 20 {
                break;
            }
        }
        assert!(failed > 20 && acknowledged > 100, "{failed} {acknowledged}");
        fs.set_capacity(None);
        db.put(b"more", b"").expect("there is room");
        for db in [db, options(&fs.crash_point().power_cut(seed), seed, Wal::Sync).open("/db").expect("it opens")] {
            assert!((1..=acknowledged).all(|i| db.get(&i.to_be_bytes()).expect("it reads").is_some()));
            assert!(db.get(b"more").expect("it reads").is_some());
        }
    }
}

/// With background threads: writers get an error, readers answers, and then writes resume automatically.
#[test]
fn threads_resume_by_themselves() {
    for op in [Op::SyncData, Op::SyncDir, Op::Write] {
        let fs = SimFs::new(1);
        let db = options(&fs, 0, Wal::Sync).background(Background::Threads).open("/db").expect("it opens");
        db.put(b"before", b"1").expect("it writes");
        fs.inject(Fault::fail(op, errno::ENOSPC).forever());
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut number = 0u64;
        while db.put(&number.to_be_bytes(), &[1; 100]).is_ok() {
            number += 1;
            assert!(Instant::now() < deadline, "{op:?}: no error");
        }
        assert_eq!(db.get(b"before").expect("it reads"), Some(b"1".to_vec()));
        fs.clear_faults();
        while db.put(b"after", b"2").is_err() {
            assert!(Instant::now() < deadline, "{op:?}: writes do not go on");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(db);
        let db = options(&fs.crash_point().power_cut(3), 0, Wal::Sync).open("/db").expect("it opens");
        assert_eq!(db.get(b"after").expect("it reads"), Some(b"2".to_vec()));
        assert!((0..number).all(|i| db.get(&i.to_be_bytes()).expect("it reads").is_some()), "{op:?}");
    }
}
