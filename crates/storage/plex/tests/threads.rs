//! Writers, readers and the background threads together: batches are seen whole, views stand still, nothing is lost,
//! and closing in the middle of everything leaves what was written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plex::{Background, Db, IterOptions, Options, Policy, Wal, WriteBatch};
use vfs::{Outage, SimFs};

const WRITERS: u64 = 3;
const ROUNDS: u64 = 1500;

fn open(fs: &Arc<SimFs>, policy: Policy, wal: Wal) -> Db {
    let options = Options::new().file_system(fs.clone()).seed(1).background(Background::Threads);
    options.policy(policy).wal(wal).memtable_bytes(32 << 10).table_bytes(8 << 10).open("/db").expect("it opens")
}

/// A writer's two keys of a slot; one batch always gives both the same number.
fn pair(writer: u64, slot: u64) -> [Vec<u8>; 2] {
    ["left", "right"].map(|side| format!("{side}/{writer}/{slot:03}").into_bytes())
}

fn write(db: &Db, writer: u64) {
    for round in 1..=ROUNDS {
        let mut batch = WriteBatch::new();
        let value = [&round.to_be_bytes()[..], &[0; 60]].concat();
        for key in pair(writer, round % 40) {
            batch.put(&key, &value);
        }
        db.write(&batch).expect("it writes");
    }
}

/// Everything of one side, as (rest of the key, value).
fn side(db: &plex::ReadView, name: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let all = db.iter(IterOptions::prefix(name.as_bytes())).expect("it iterates");
    all.map(|pair| pair.expect("it reads")).map(|(key, value)| (key[name.len()..].to_vec(), value)).collect()
}

fn read(db: &Db, done: &AtomicBool) {
    let mut rounds = 0;
    while !done.load(Ordering::Acquire) || rounds == 0 {
        let view = db.view();
        let (left, right) = (side(&view, "left"), side(&view, "right"));
        assert!(left == right, "a batch was seen in half");
        assert!(side(&view, "left") == left, "a view moved");
        for writer in 0..WRITERS {
            let [left, right] = pair(writer, rounds % 40);
            let first = db.get(&left).expect("it reads");
            let second = db.get(&right).expect("it reads");
            assert!(first <= second, "time went backwards");
        }
        rounds += 1;
    }
}

fn check_final(db: &Db) {
    for writer in 0..WRITERS {
        for slot in 0..40 {
            let last = (1..=ROUNDS).rev().find(|round| round % 40 == slot).expect("every slot was written");
            for key in pair(writer, slot) {
                let value = db.get(&key).expect("it reads").expect("it is there");
                assert_eq!(value[..8], last.to_be_bytes());
            }
        }
    }
    db.verify().expect("all tables are sound");
}

#[test]
fn readers_and_writers_beside_background_work() {
    let policies = [Policy::LdcRanged { space_amp_target: 1.3, runs_max: 4 }, Policy::leveled(), Policy::ldc()];
    for (policy, wal) in policies.into_iter().zip([Wal::Sync, Wal::Async, Wal::Async]) {
        let fs = Arc::new(SimFs::new(1));
        let db = open(&fs, policy.clone(), wal);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    scope.spawn({
                        let db = &db;
                        move || write(db, writer)
                    })
                })
                .collect();
            let reader = scope.spawn(|| read(&db, &done));
            let written: Vec<bool> = writers.into_iter().map(|writer| writer.join().is_ok()).collect();
            done.store(true, Ordering::Release);
            assert!(written.into_iter().all(|ok| ok) && reader.join().is_ok());
        });
        check_final(&db);
        assert!(db.stats().flushes > 2);
        drop(db);
        check_final(&open(&fs, policy, wal));
    }
}

/// A full disk stops writers with an error that says so; with space again, the same database continues.
#[test]
fn a_full_disk_passes() {
    let fs = Arc::new(SimFs::new(1));
    let options = Options::new().file_system(fs.clone()).background(Background::Manual).wal(Wal::Off);
    let db = options.memtable_bytes(64 << 10).open("/db").expect("it opens");
    for i in 0..2000u64 {
        db.put(&i.to_be_bytes(), &[7; 100]).expect("it writes");
    }
    fs.set_capacity(Some(100 << 10));
    let error = db.flush().expect_err("there is no room");
    assert!(error.is_out_of_space(), "{error}");
    assert_eq!(db.get(&5u64.to_be_bytes()).expect("it reads"), Some(vec![7; 100]));
    fs.set_capacity(None);
    db.flush().expect("there is room");
    drop(db);
    let db = Options::new().file_system(fs.clone()).background(Background::Manual).open("/db").expect("it opens");
    assert_eq!(db.iter(IterOptions::default()).expect("it iterates").count(), 2000);
}

/// Log files by number, with their lengths.
fn logs(fs: &SimFs) -> Vec<(String, usize)> {
    let all = fs.contents().into_iter().map(|(path, bytes)| (path.display().to_string(), bytes.len()));
    all.filter(|(name, _)| name.ends_with(".wal")).collect()
}

/// The file of the next log is made while a memtable is flushed, and used by the next one. A close removes it, and so
/// does an open after a kill, which finds all that was written.
#[test]
fn the_file_of_the_next_log_is_made_beforehand() {
    for wal in [Wal::Async, Wal::Sync] {
        let fs = Arc::new(SimFs::new(1));
        let db = open(&fs, Policy::default(), wal);
        let put = |db: &Db, number: u32| db.put(&number.to_be_bytes(), b"value").expect("it writes");
        put(&db, 0);
        db.flush().expect("it flushes");
        let [(_, begun), (spare, 0)] = &logs(&fs)[..] else { panic!("{:?}", logs(&fs)) };
        assert!(*begun > 0);
        let killed = Arc::new(fs.crash_point().after(Outage::ProcessKill));
        let reopened = open(&killed, Policy::default(), wal);
        assert_eq!(reopened.get(&0u32.to_be_bytes()).expect("it reads").as_deref(), Some(&b"value"[..]));
        assert!(!logs(&killed).iter().any(|(name, _)| name == spare), "{:?}", logs(&killed));
        put(&db, 1);
        db.flush().expect("it flushes");
        assert!(logs(&fs).iter().any(|(name, len)| name == spare && *len > 0), "{spare}: {:?}", logs(&fs));
        drop(db);
        assert!(logs(&fs).iter().all(|(_, len)| *len > 0), "{:?}", logs(&fs));
        let reopened = open(&fs, Policy::default(), wal);
        assert!((0..2u32).all(|number| reopened.get(&number.to_be_bytes()).expect("it reads").is_some()));
    }
}
