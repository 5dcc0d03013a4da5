//! Checkpoints of a running server, through files and back.

use crate::harness::{SHARDS, START_MS, TestServer, memory, store};
use crate::spine::random_request;
use base::{DbIndex, HistoryId, KeyspaceId, Lsn, Rng};
use checkpoint::{DataDir, Feed, FeedOptions, LoadProgress, SetHead, SetId, SetInfo, Writer, WriterOptions, load};
use engine::{Effect, Encoding, EntrySink, Keyspace};
use parking_lot::{Condvar, Mutex};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{At, Blocked, Scratch, Store, Way, WriteClass};
use vfs::SimFs;

const HISTORY: HistoryId = HistoryId([1; 20]);

/// 7 MB to a simulated disk take less, however busy the machine.
const WRITTEN_WITHIN: Duration = Duration::from_secs(120);

/// Cuts and walks, running `meanwhile` between steps of the walk, and gives the set on the disk.
pub fn checkpoint(
    server: &mut TestServer,
    dir: &DataDir,
    set: u32,
    limit_bytes: u64,
    mut meanwhile: impl FnMut(&mut TestServer),
) -> SetInfo {
    let feed = Feed::new(FeedOptions { limit_bytes }, server.store.backlog().clone());
    let options = WriterOptions { threads: 3, ..WriterOptions::default() };
    let mut writer = Writer::create(dir, SetId(set), options, &feed).expect("the disk has room");
    let log = server.store.log().expect("a log is installed");
    let cut = server.store.try_cut(|_| feed.sink(), || log.end()).expect("nobody holds a lock");
    assert!(server.store.try_cut(|_| feed.sink(), || Lsn(0)).is_none(), "one checkpoint at a time");
    let head = SetHead {
        cut: cut.lsn,
        history: HISTORY,
        created_ms: cut.at_ms,
        log_from: Some(cut.lsn),
        spaces: cut.spaces,
        libraries: cut.libraries,
        position: cut.position,
    };
    writer.begin(head).expect("threads start");
    while server.store.checkpoint_shards_left() > 0 {
        server.store.walk_checkpoint(16);
        meanwhile(server);
    }
    writer.finish().expect("the disk works")
}

/// An empty store with what the set holds.
pub fn loaded(server: &TestServer, dir: &DataDir, set: &SetInfo) -> Store {
    let loaded = store(&server.clock, SHARDS, None, memory);
    let sink = |effect: &engine::Effect<'_>| loaded.load(effect);
    load(dir, set, 2, &loaded.hasher, &sink, &LoadProgress::default()).expect("the set is whole");
    loaded
}

/// A checkpoint cut at one moment and written while commands run, FLUSHALL among them, holds exactly the state of
/// that moment; with the records after its position replayed on top, it gives the present. Several in a row, over one
/// store.
#[test]
fn files_and_the_records_after_them_give_the_present() {
    let dir = DataDir::open(Arc::new(SimFs::new(1)), Path::new("/data")).expect("the directory opens");
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let mut rng = Rng::new(9);
    let mut run = |server: &mut TestServer, count| {
        (0..count).for_each(|_| drop(server.send(client, &random_request(&mut rng))));
        server.run(client, &["EXEC"]);
    };
    for round in 0..4 {
        (0..3_000).for_each(|n| drop(server.run(client, &["SET", &format!("filler:{n}"), &format!("{round} {n}")])));
        run(&mut server, 500);
        let then = server.replica.store.digest(START_MS);
        *server.replica.kept.lock().expect("no test panics while holding it") = Some(Vec::new());
        let (mut steps, mut flush) = (0, round % 2 == 1);
        let set = checkpoint(&mut server, &dir, round, 8 << 20, |server| {
            run(server, 40);
            steps += 1;
            if steps == 5 && std::mem::take(&mut flush) {
                server.run(client, &["FLUSHALL"]);
                server.keep_up();
            }
        });
        run(&mut server, 100);
        let loaded = loaded(&server, &dir, &set);
        assert_eq!(loaded.digest(START_MS), then, "the set is the state at its cut");
        let kept = server.replica.kept.lock().expect("no test panics while holding it").take().unwrap_or_default();
        for (lsn, record) in &kept {
            assert!(*lsn > set.cut, "records before the cut are in the set");
            loaded.replay(&mut Scratch::default(), *lsn, record).expect("a record replays");
        }
        let now = START_MS;
        assert_eq!(loaded.digest(now), server.store.digest(now), "set and records give the present");
        server.assert_replica_agrees();
    }
    assert_eq!(server.store.backlog().memory().now, 0);
}

/// A walk that is given up, and a store that goes away in the middle of one, leave no set.
#[test]
fn a_checkpoint_that_is_given_up_leaves_nothing() {
    for whole_store in [false, true] {
        let dir = DataDir::open(Arc::new(SimFs::new(1)), Path::new("/data")).expect("the directory opens");
        let server = TestServer::new(memory);
        let feed = Feed::new(FeedOptions::default(), server.store.backlog().clone());
        let mut writer = Writer::create(&dir, SetId(1), WriterOptions::default(), &feed).expect("the disk has room");
        let cut = server.store.try_cut(|_| feed.sink(), || Lsn(0)).expect("nobody holds a lock");
        let (cut, created_ms, spaces) = (cut.lsn, cut.at_ms, cut.spaces);
        writer
            .begin(SetHead {
                cut,
                history: HISTORY,
                created_ms,
                log_from: None,
                spaces,
                libraries: Arc::default(),
                position: Vec::new(),
            })
            .expect("threads start");
        server.store.walk_checkpoint(1);
        assert!(server.store.checkpoint_shards_left() > 0);
        if whole_store {
            drop(server);
        } else {
            server.store.abandon_checkpoint();
            assert_eq!(server.store.checkpoint_shards_left(), 0);
            assert!(server.store.try_cut(|_| Box::new(Nothing), || Lsn(0)).is_some(), "the next one may begin");
        }
        assert!(writer.finish().is_err());
        assert_eq!(dir.list().expect("the directory is there").snapshots, []);
    }
}

/// With a disk that stands still, writes wait before they take a lock, deletions and expirations too; reads work. When
/// the disk moves again, the worker is woken and everything is there.
#[test]
fn writes_wait_while_the_checkpoint_has_no_room() {
    let fs = SimFs::new(1);
    let dir = DataDir::open(Arc::new(fs.clone()), Path::new("/data")).expect("the directory opens");
    let mut server = TestServer::new(memory);
    let client = server.connect();
    let value = "v".repeat(300);
    for n in 0..20_000 {
        server.run(client, &["SET", &format!("k:{n}"), &value]);
    }
    let then = server.store.digest(START_MS);
    let stall = Stall(Arc::default());
    let gate = stall.0.clone();
    fs.on_sync(move |_| gate.pass());
    let feed = Feed::new(FeedOptions { limit_bytes: 2 << 20 }, server.store.backlog().clone());
    let options = WriterOptions { threads: 1, sync_every_bytes: 1, buffer_bytes: 4096, ..WriterOptions::default() };
    let mut writer = Writer::create(&dir, SetId(1), options, &feed).expect("the disk has room");
    let cut = server.store.try_cut(|_| feed.sink(), || Lsn(0)).expect("nobody holds a lock");
    let head = SetHead {
        cut: cut.lsn,
        history: HISTORY,
        created_ms: cut.at_ms,
        log_from: None,
        spaces: cut.spaces,
        libraries: cut.libraries,
        position: cut.position,
    };
    writer.begin(head).expect("threads start");
    // Dropped before the writer, which waits for the disk.
    let stall = stall;
    while server.store.walk_checkpoint(100) {}
    let left = server.store.checkpoint_shards_left();
    assert!(left > 0, "the walk stops while the disk does");
    // Writes still pass: what they hand over fills the other half.
    let at = |writes| At { now: START_MS, db: DbIndex(0), touch: false, worker: 5, writes };
    let mut scratch = Scratch::default();
    let mut set = |n: usize| {
        let key = format!("k:{n}");
        let key = server.store.key(KeyspaceId(0), key.as_bytes());
        let (shard, value) = (server.store.shard_of(&key), engine::Value::Bytes(b"new"));
        server.store.commit_one(&mut scratch, (shard, &key, &Way::NONE), &at(WriteClass::Any), |txn| {
            txn.apply(&Effect::Set { key, value, encoding: Encoding::PLAIN, expire_at: None });
            Ok(())
        })
    };
    let passed = (0..20_000).take_while(|&n| set(n).is_ok()).count();
    assert!((500..19_999).contains(&passed), "{passed} writes passed");
    assert_eq!(set(0), Err(Blocked::Log));
    let memory = server.store.backlog().memory();
    assert!(memory.peak >= memory.limit && memory.peak < memory.limit + (1 << 20), "{memory:?}");
    let key = server.store.key(KeyspaceId(0), b"k:0");
    let place = (server.store.shard_of(&key), &key, &Way::NONE);
    let del = server.store.commit_one(&mut Scratch::default(), place, &at(WriteClass::Frees), |_| Ok(()));
    assert_eq!(del, Err(Blocked::Log));
    let read = server.store.commit_one(&mut Scratch::default(), place, &at(WriteClass::Nothing), |_| Ok(()));
    assert_eq!(read, Ok(()));
    drop(stall);
    // The thread that writes has a lower priority: this one must not keep a processor from it.
    let deadline = Instant::now() + WRITTEN_WITHIN;
    while server.store.checkpoint_shards_left() > 0 {
        if !server.store.walk_checkpoint(100) {
            assert!(Instant::now() < deadline, "the backlog stays full: {:?}", server.store.backlog().memory());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let set_info = writer.finish().expect("the disk works");
    assert_eq!(loaded(&server, &dir, &set_info).digest(START_MS), then);
    assert_eq!(set(0), Ok(()));
}

/// A disk that stands still until this is dropped, also by a failing test.
struct Stall(Arc<Gate>);

impl Drop for Stall {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// Closed until it is opened. A waiting thread takes no processor.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut is_open = self.is_open.lock();
        while !*is_open {
            self.opened.wait(&mut is_open);
        }
    }

    fn open(&self) {
        *self.is_open.lock() = true;
        self.opened.notify_all();
    }
}

/// Wants nothing.
struct Nothing;

impl EntrySink for Nothing {
    fn save(&mut self, _: base::KeyspaceId, _: &engine::Entry<'_>) {}
}
