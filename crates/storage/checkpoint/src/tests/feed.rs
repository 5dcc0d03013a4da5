//! The queue between shards and writer threads: its limit, its memory, its end.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use vfs::{Fault, SyncCall, errno};

fn save_one(sink: &mut dyn engine::EntrySink, key: &[u8], value: Value<'_>) {
    let entry = Entry {
        key,
        kind: Type::String,
        encoding: Encoding::PLAIN,
        value,
        expire_at: None,
        stamp: 0,
        fields: ExtFields::NONE,
    };
    sink.save(KeyspaceId(0), &entry);
}

fn started(dir: &DataDir, feed: &Feed) -> Writer {
    let options = WriterOptions { threads: 1, buffer_bytes: 4 << 20, ..WriterOptions::default() };
    let mut writer = Writer::create(dir, SetId(1), options, feed).unwrap();
    writer.begin(head(1)).unwrap();
    writer
}

/// Large values are shared; small ones, and those inside entries, are copied. All memory is counted, the peak is
/// reported, and all of it is returned at the end.
#[test]
fn memory_is_counted_and_given_back() {
    let fs = SimFs::new(30);
    let dir = data_dir(&fs);
    let backlog = Arc::new(Backlog::default());
    let feed = Feed::new(FeedOptions { limit_bytes: 8 << 20 }, backlog.clone());
    let mut sink = feed.sink();
    assert_eq!(backlog.memory().now, 0, "a sink without entries takes nothing");
    let small = SharedBytes::new(vec![1; 16 << 10]);
    save_one(&mut *sink, b"small", Value::Shared(&small));
    assert_eq!(Arc::strong_count(&small), 1, "up to 16 KiB are copied");
    let one_chunk = backlog.memory().now;
    assert!((64 << 10..80 << 10).contains(&one_chunk), "{one_chunk}");
    let big = SharedBytes::new(vec![2; 1 << 20]);
    save_one(&mut *sink, b"big", Value::Shared(&big));
    assert_eq!(Arc::strong_count(&big), 2, "beyond that they are shared");
    let memory = backlog.memory();
    assert!(memory.now > one_chunk + (1 << 20) && memory.now < one_chunk + (1 << 20) + 1000, "{memory:?}");
    let writer = started(&dir, &feed);
    sink.finish();
    drop(sink);
    let info = writer.finish().unwrap();
    assert_eq!((info.entries(), Arc::strong_count(&big)), (2, 1));
    let buffers = 4 << 20;
    assert_eq!((backlog.memory().now, backlog.memory().peak), (0, memory.now + buffers));
    drop(feed);
    assert_eq!(backlog.memory().limit, u64::MAX);
}

/// A disk that stalls until this is dropped, also by a failing test.
struct Stall(Arc<AtomicBool>);

impl Drop for Stall {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// While the disk stalls, the walk stops at half of the limit and writes wait at the limit. Both continue when the disk
/// does.
#[test]
fn a_slow_disk_stops_the_walk_first() {
    let fs = SimFs::new(31);
    let dir = data_dir(&fs);
    let stall = Stall(Arc::new(AtomicBool::new(true)));
    let stalled = stall.0.clone();
    fs.on_sync(move |_: &SyncCall<'_>| {
        while stalled.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    });
    let backlog = Arc::new(Backlog::default());
    let feed = Feed::new(FeedOptions { limit_bytes: 1 << 20 }, backlog.clone());
    let options =
        WriterOptions { threads: 1, sync_every_bytes: 1, buffer_bytes: BUFFER_BYTES, ..WriterOptions::default() };
    let mut writer = Writer::create(&dir, SetId(1), options, &feed).unwrap();
    writer.begin(head(1)).unwrap();
    // Dropped before the writer, which waits for the disk.
    let stall = stall;
    let mut sink = feed.sink();
    let mut saved = 0u32;
    let mut save_until = |saved: &mut u32, is_over: &dyn Fn() -> bool| {
        while !is_over() {
            save_one(&mut *sink, &saved.to_be_bytes(), Value::Bytes(&[7; 1000]));
            *saved += 1;
        }
    };
    save_until(&mut saved, &|| !backlog.has_room_for_walk());
    assert!(!backlog.is_full() && backlog.memory().now >= 512 << 10);
    save_until(&mut saved, &|| backlog.is_full());
    assert!(backlog.memory().now < (1 << 20) + (80 << 10), "no more than a chunk beyond the limit");
    assert!(backlog.must_wait(1));
    drop(stall);
    sink.finish();
    drop(sink);
    let info = writer.finish().unwrap();
    assert_eq!(info.entries(), u64::from(saved));
    assert!(backlog.has_room_for_walk() && !backlog.must_wait(1));
}

/// A huge value that the walk shares stops the walk and no write; one that a write hands over stops writes.
#[test]
fn a_huge_value_of_the_walk_stops_no_write() {
    let backlog = Arc::new(Backlog::default());
    let feed = Feed::new(FeedOptions { limit_bytes: 1 << 20 }, backlog.clone());
    let mut sink = feed.sink();
    let huge = SharedBytes::new(vec![1; 10 << 20]);
    sink.set_walking(true);
    save_one(&mut *sink, b"walked", Value::Shared(&huge));
    sink.set_walking(false);
    assert!(!backlog.has_room_for_walk() && !backlog.is_full());
    save_one(&mut *sink, b"overwritten", Value::Shared(&huge));
    assert!(backlog.is_full());
    feed.abort();
    assert!(!backlog.is_full() && backlog.has_room_for_walk() && backlog.memory().now == 0);
}

/// A limit below what the shards' chunks take would stop the walk forever, so the limit is raised.
#[test]
fn chunks_being_filled_never_stop_the_walk() {
    let backlog = Arc::new(Backlog::default());
    let feed = Feed::new(FeedOptions { limit_bytes: 1 }, backlog.clone());
    let mut sinks: Vec<_> = (0..256).map(|_| feed.sink()).collect();
    sinks.iter_mut().for_each(|sink| save_one(&mut **sink, b"k", Value::Bytes(b"v")));
    assert!(backlog.has_room_for_walk(), "{:?}", backlog.memory());
}

/// A failed writer thread ends the set: its error is reported, the files are removed, shards that still save take no
/// memory, and no thread waits.
#[test]
fn a_failed_writer_lets_everybody_go_on() {
    let fs = SimFs::new(32);
    let dir = data_dir(&fs);
    fs.inject(Fault::fail(vfs::Op::Write, errno::ENOSPC).on("prdb-00000001-00").skip(2).forever());
    let backlog = Arc::new(Backlog::default());
    let feed = Feed::new(FeedOptions { limit_bytes: 1 << 20 }, backlog.clone());
    let writer = started(&dir, &feed);
    let mut sink = feed.sink();
    for n in 0..20_000u32 {
        save_one(&mut *sink, &n.to_be_bytes(), Value::Bytes(&[7; 1000]));
    }
    let error = writer.finish().unwrap_err();
    assert!(error.is_out_of_space(), "{error}");
    assert!(feed.is_aborted() && backlog.has_room_for_walk() && !backlog.must_wait(1));
    assert_eq!(dir.list().unwrap().snapshots, []);
    drop(sink);
    assert_eq!(backlog.memory().now, 0);
}

/// F4: a sink dropped before it was finished never ends a complete set, whatever the others do.
#[test]
fn an_unfinished_sink_is_no_end() {
    for finished in [false, true] {
        let fs = SimFs::new(33);
        let dir = data_dir(&fs);
        let feed = Feed::new(FeedOptions::default(), Arc::default());
        let writer = started(&dir, &feed);
        let (mut one, mut other) = (feed.sink(), feed.sink());
        save_one(&mut *one, b"k", Value::Bytes(b"v"));
        one.finish();
        if finished {
            other.finish();
        }
        drop((one, other));
        assert_eq!(writer.finish().is_ok(), finished);
    }
}

/// A dropped writer removes its files and ends its threads.
#[test]
fn a_dropped_writer_leaves_nothing() {
    let fs = SimFs::new(34);
    let dir = data_dir(&fs);
    let feed = Feed::new(FeedOptions::default(), Arc::default());
    let writer = started(&dir, &feed);
    let mut sink = feed.sink();
    save_one(&mut *sink, b"k", Value::Bytes(&[1; 100_000]));
    drop(writer);
    assert_eq!(dir.list().unwrap().snapshots, []);
    assert!(feed.is_aborted());
}

/// Values many times longer than the longest write come back, in their own allocation.
#[test]
fn a_big_value_is_one_entry() {
    let fs = SimFs::new(35);
    let dir = data_dir(&fs);
    let feed = Feed::new(FeedOptions::default(), Arc::default());
    let writer = started(&dir, &feed);
    let mut value = vec![0; (5 << 20) + 17];
    Rng::new(1).fill(&mut value);
    let shared = SharedBytes::new(value.clone());
    let long_key = vec![b'k'; 3 << 20];
    let mut sink = feed.sink();
    save_one(&mut *sink, b"shared", Value::Shared(&shared));
    save_one(&mut *sink, &long_key, Value::Bytes(&value));
    sink.finish();
    drop(sink);
    let info = writer.finish().unwrap();
    let found = Mutex::new(0);
    let sink = |effect: &Effect<'_>| {
        let Effect::Set { key, value: loaded, .. } = effect else { panic!("{effect:?} was not saved") };
        assert!(loaded.bytes() == value && (key.bytes == b"shared" || key.bytes == long_key));
        assert!(matches!(loaded, Value::Shared(_)), "the block's memory becomes the value's");
        *found.lock() += 1;
    };
    load(&dir, &info, 2, &hasher(), &sink, &LoadProgress::default()).unwrap();
    assert_eq!(found.into_inner(), 2);
}
