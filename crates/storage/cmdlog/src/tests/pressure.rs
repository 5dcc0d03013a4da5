//! A log that is slower than its writers: which workers wait, when they are woken, and what an idle log does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use base::Lsn;
use base::clock::{ManualClock, SystemClock};
use parking_lot::Mutex;
use vfs::{Fault, FileSystem, Op, Outage, SimFs, errno};

use super::{DIR, history, options, read, settle};
use crate::error::LogFailure;
use crate::shared::Shared;
use crate::{Admission, Log, LogMode, LogOptions, LogStart, LogTiming, LogWake, OnSyncError};

/// How long a test waits for other threads.
const DEADLINE: Duration = Duration::from_secs(60);

/// Records which workers the log has woken, and its other reports.
#[derive(Default)]
struct Notes {
    woken: Mutex<Vec<usize>>,
    failed: AtomicU64,
    healthy: AtomicU64,
    stopped: AtomicU64,
}

impl LogWake for Notes {
    fn wake(&self, worker: usize) {
        self.woken.lock().push(worker);
    }
    fn failed(&self, _: &LogFailure) {
        self.failed.fetch_add(1, SeqCst);
    }
    fn healthy(&self) {
        self.healthy.fetch_add(1, SeqCst);
    }
    fn stop(&self, _: &LogFailure) {
        self.stopped.fetch_add(1, SeqCst);
    }
}

fn noted(options: LogOptions) -> (SimFs, Arc<ManualClock>, Arc<Notes>, Arc<Log>) {
    let (fs, clock, notes) = (SimFs::new(1), Arc::new(ManualClock::new(1000)), Arc::new(Notes::default()));
    clock.advance_ms(1);
    let start = LogStart::fresh(history(1), Lsn(0));
    let log =
        Log::create_stepped(Arc::new(fs.clone()), Arc::clone(&clock) as _, options, start, Arc::clone(&notes) as _);
    (fs, clock, notes, log.expect("the disk works"))
}

/// Durable records release their memory: a busy log is synced when half of the memory is used, long before its window
/// ends, so writers do not wait for the clock.
#[test]
fn filling_memory_is_synced_before_its_time() {
    let (_, _, _, log) = noted(options(LogMode::Async));
    log.append(0, &[1; 10_000]);
    log.write_step();
    assert!(!log.sync_step(), "there is time");
    let mut end = Lsn(0);
    for _ in 0..26 {
        end = log.append(0, &[1; 10_000]);
    }
    log.write_step();
    assert!(log.sync_step());
    settle(&log);
    assert!(log.durable_lsn().0 >= end.0 - 4 * 10_000, "{:?}", log.durable_lsn());
}

/// When the memory is full, workers wait, and are woken once, when half of it is free. All of them may be admitted at
/// once, and each has room for what it was admitted for.
#[test]
fn full_memory_makes_workers_wait() {
    let (_, clock, notes, log) = noted(options(LogMode::Async));
    let mut appended = 0;
    while log.admit(0) == Admission::Go {
        log.append(0, &[1; 10_000]);
        appended += 1;
    }
    assert!((30..50).contains(&appended), "{appended}");
    assert_eq!((log.admit(0), log.admit(1)), (Admission::Wait, Admission::Wait));
    let memory = log.stats().memory_bytes;
    log.append(0, &[2; 64 << 10]);
    log.append(1, &[3; 50_000]);
    assert_eq!(log.stats().memory_bytes, memory, "nothing lies beside it");
    log.write_step();
    assert_eq!((log.admit(0), notes.woken.lock().len()), (Admission::Wait, 0), "written is not durable");
    clock.advance_ms(600);
    settle(&log);
    assert_eq!((log.admit(0), &notes.woken.lock()[..]), (Admission::Go, &[0, 1][..]));
    settle(&log);
    assert_eq!(notes.woken.lock().len(), 2, "once");
}

/// A worker that waits for room appends nothing that would request the next sync. If the last sync was not enough, the
/// next one is requested anyway, before the window has passed.
#[test]
fn a_worker_that_still_waits_is_not_forgotten() {
    let (fs, clock, notes, log) = noted(LogOptions { ring_bytes: 1 << 20, ..options(LogMode::Async) });
    for _ in 0..27 {
        log.append(0, &[1; 10_000]);
    }
    let during = Arc::clone(&log);
    fs.on_sync(move |_| {
        while during.admit(0) == Admission::Go {
            during.append(0, &[2; 10_000]);
        }
    });
    log.write_step();
    clock.advance_ms(600);
    assert!(log.sync_step(), "half the window has passed");
    assert_eq!(notes.woken.lock().len(), 0, "more than half of the memory is in use");
    settle(&log);
    assert_eq!((log.admit(0), &notes.woken.lock()[..]), (Admission::Go, &[0][..]));
}

/// Large records bypass the ring, up to a limit. One more is always accepted, even if it alone exceeds the limit.
#[test]
fn big_records_are_bounded() {
    let (fs, clock, notes, log) = noted(LogOptions { segment_bytes: 1 << 20, ..options(LogMode::Async) });
    log.append(0, &vec![7; 65 << 20]);
    assert_eq!((log.admit(0), log.admit(1)), (Admission::Wait, Admission::Wait));
    assert!(log.stats().memory_bytes > 65 << 20);
    log.write_step();
    clock.advance_ms(600);
    settle(&log);
    assert_eq!((log.admit(0), log.admit(1)), (Admission::Go, Admission::Go));
    assert_eq!(notes.woken.lock()[..], [0, 1]);
    assert!(log.stats().memory_bytes < 2 << 20);
    let (records, _) = read(&fs.recover(Outage::PowerCut { seed: 1 })).expect("readable");
    assert!(records.len() == 1 && records[0].1 == vec![7; 65 << 20]);
}

/// In `Async`, when the oldest unsynced record is older than twice the window, all writes wait until it is durable.
#[test]
fn late_syncs_make_writes_wait() {
    let (fs, clock, notes, log) = noted(options(LogMode::Async));
    log.append(0, b"record");
    log.write_step();
    clock.advance_ms(2000);
    log.watch_step();
    assert_eq!(log.admit(0), Admission::Go, "twice the window is allowed");
    clock.advance_ms(1);
    log.watch_step();
    assert_eq!((log.admit(0), log.admit(1)), (Admission::Wait, Admission::Wait));
    let stats = log.stats();
    assert_eq!((stats.delayed_syncs, stats.oldest_unsynced_ms), (1, 2001));
    settle(&log);
    assert_eq!((log.admit(0), &notes.woken.lock()[..]), (Admission::Go, &[0, 1][..]));

    // The limit follows the settings.
    log.append(0, b"record");
    log.write_step();
    clock.advance_ms(300);
    log.set_window_ms(100);
    assert_eq!(log.admit(0), Admission::Wait);
    log.set_mode(LogMode::Sync);
    assert_eq!(log.admit(0), Admission::Go);
    settle(&log);
    assert_eq!(log.durable_lsn(), log.end_lsn());
    assert_eq!(read(&fs.recover(Outage::PowerCut { seed: 1 })).expect("readable").0.len(), 2);
}

/// An idle log does nothing: one mark after a burst, then no byte, no sync, no wake-up, however much time passes.
#[test]
fn an_idle_log_is_quiet() {
    for mode in [LogMode::Async, LogMode::Sync] {
        let (fs, clock, _, log) = noted(options(mode));
        let step = |log: &Log, ms| {
            clock.advance_ms(ms);
            log.write_step();
            settle(log);
            log.watch_step();
        };
        step(&log, 10_000);
        assert_eq!((fs.operations(), log.end_lsn()), (7, Lsn(0)), "nothing but the first segment");
        let record = log.append(0, b"record");
        step(&log, 1);
        step(&log, 600);
        assert!(log.durable_lsn() >= record);
        step(&log, 1100);
        let (end, operations) = (log.end_lsn(), fs.operations());
        assert!(end > record && log.durable_lsn() == end, "the mark after the burst");
        for _ in 0..100 {
            step(&log, 1000);
        }
        assert_eq!((log.end_lsn(), fs.operations()), (end, operations));
    }
}

/// Segments are removed once no checkpoint needs them, never the one that holds the position, and the rest is still a
/// log.
#[test]
fn old_segments_are_removed() {
    let (fs, _, _, log) = noted(options(LogMode::Sync));
    let mut ends = Vec::new();
    for n in 0..100u8 {
        ends.push(log.append(0, &[n; 1000]));
        settle(&log);
    }
    let before = log.stats();
    assert!(before.segments > 10);
    assert_eq!(log.remove_before(Lsn(0)).expect("the disk works"), 0);
    let cut = ends[49];
    assert!(log.remove_before(cut).expect("the disk works") >= 30_000);
    let after = log.stats();
    assert!(after.segments < before.segments && after.size_bytes < before.size_bytes);
    assert_eq!(after.base_size_bytes, after.size_bytes);
    let fs = fs.recover(Outage::PowerCut { seed: 1 });
    let (records, _) = super::read_from(&fs, cut).expect("readable");
    assert_eq!(records.len(), 50);
    assert!(crate::segments(&fs, DIR.as_ref()).expect("readable")[0].first <= cut);
}

/// With `on-sync-error stop` the owner is notified, and nothing is ever written again.
#[test]
fn stop_means_stop() {
    let (fs, clock, notes, log) = noted(LogOptions { on_sync_error: OnSyncError::Stop, ..options(LogMode::Sync) });
    fs.inject(Fault::fail(Op::SyncData, errno::EIO));
    log.append(0, b"record");
    settle(&log);
    assert_eq!((notes.stopped.load(SeqCst), notes.failed.load(SeqCst)), (1, 1));
    let operations = fs.operations();
    clock.advance_ms(100_000);
    log.write_step();
    settle(&log);
    assert_eq!(fs.operations(), operations);
    assert!(log.sync().is_err() && log.close().is_err());
}

/// A failure and its end are reported once each, and a worker that waits for room learns of the failure.
#[test]
fn failures_wake_those_who_wait() {
    let (fs, clock, notes, log) = noted(options(LogMode::Sync));
    while log.admit(0) == Admission::Go {
        log.append(0, &[1; 30_000]);
    }
    log.wait_for(1);
    fs.inject(Fault::fail(Op::SyncData, errno::EIO));
    settle(&log);
    assert_eq!((log.admit(0), log.admit_delete(0)), (Admission::Refused, Admission::Refused));
    assert!(notes.woken.lock().contains(&0), "to hear of it");
    clock.advance_ms(1001);
    settle(&log);
    assert_eq!((log.health(), log.admit(0)), (None, Admission::Go));
    assert!(notes.woken.lock().contains(&1), "durable at last");
    assert_eq!((notes.failed.load(SeqCst), notes.healthy.load(SeqCst)), (1, 1));
}

/// A turn is open from its first record until the worker ends it or waits for what it appended.
#[test]
fn turns_that_append_are_known() {
    let (shared, _) = Shared::new(&options(LogMode::Sync), history(1), 0, Arc::new(()));
    shared.end_turn(0);
    assert!(shared.open_turns().is_empty(), "it has appended nothing");
    for end_turn in [|shared: &Shared| shared.end_turn(1), |shared: &Shared| shared.wait_for(1)] {
        shared.append_in_turn(1, b"first");
        let open = shared.open_turns();
        shared.append_in_turn(1, b"second");
        shared.append(0, b"a turn of its own");
        assert_eq!((open.len(), open[0].0, &open), (1, 1, &shared.open_turns()));
        assert!(!shared.have_ended(&open));
        end_turn(&shared);
        assert!(shared.have_ended(&open) && shared.open_turns().is_empty());
        shared.append_in_turn(1, b"third");
        assert!(shared.have_ended(&open), "the next turn is another");
        shared.end_turn(1);
    }
}

/// A worker that waits while a sync runs stays in its turn: the end of the sync wakes it, and clients write again.
#[test]
fn a_turn_stays_open_over_a_sync() {
    let woken = Arc::new(Notes::default());
    let (shared, _) = Shared::new(&options(LogMode::Sync), history(1), 0, Arc::clone(&woken) as _);
    let end = shared.append_in_turn(1, b"first");
    shared.syncing.store(true, SeqCst);
    shared.wait_for(1);
    assert!(shared.puts_off_sync(1) && !shared.puts_off_sync(0));
    shared.syncing.store(false, SeqCst);
    shared.set_durable(end);
    assert_eq!(*woken.woken.lock(), [1]);
    shared.wait_for(1);
    assert!(!shared.puts_off_sync(1));
    shared.append_in_turn(1, b"second");
    shared.timing().set_mode(LogMode::Async);
    assert!(!shared.puts_off_sync(1), "only where replies wait");
}

/// The end of a turn triggers its sync.
#[test]
fn the_end_of_a_turn_begins_a_sync() {
    let log = Log::create(
        Arc::new(SimFs::new(1)) as Arc<dyn FileSystem>,
        Arc::new(SystemClock::new()),
        LogOptions { timing: LogTiming::of(LogMode::Sync), ..LogOptions::new(DIR, 2) },
        LogStart::fresh(history(1), Lsn(0)),
        Arc::new(()),
    )
    .expect("the disk works");
    for turn in 0..100u8 {
        let end = (0..10).map(|_| log.append_in_turn(0, &[turn; 100])).max().expect("ten of them");
        match turn % 2 {
            0 => log.end_turn(0),
            _ => log.wait_for(0),
        }
        while log.durable_lsn() < end {
            std::thread::yield_now();
        }
    }
    log.close().expect("the disk works");
}

/// Ends a hanging sync with the test.
struct LetGo(Arc<AtomicBool>);

impl Drop for LetGo {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}

/// While a sync hangs, writing continues and nothing is reported durable; then the next sync makes all of it durable.
/// With threads; the test releases the device once it has seen what it expects.
#[test]
fn a_hanging_sync_stops_nothing_else() {
    let fs = SimFs::new(1);
    let log = Log::create(
        Arc::new(fs.clone()) as Arc<dyn FileSystem>,
        Arc::new(SystemClock::new()),
        LogOptions { ring_bytes: 4 << 20, ..LogOptions::new(DIR, 2) },
        LogStart::fresh(history(1), Lsn(0)),
        Arc::new(()),
    )
    .expect("the disk works");
    log.set_mode(LogMode::Sync);
    let (hang, hanging) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
    let (hook_hang, hook_hanging) = (Arc::clone(&hang), Arc::clone(&hanging));
    fs.on_sync(move |_| {
        hook_hanging.fetch_add(1, SeqCst);
        while hook_hang.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    // Release the device before the log is dropped, even if the test fails: the log waits for its threads.
    let _let_go = LetGo(Arc::clone(&hang));
    let wait = |what: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !what() {
            assert!(start.elapsed() < DEADLINE, "written {:?} of {:?}", log.written_lsn(), log.end_lsn());
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    // Too long to sync itself: a self-syncing write delays the writes after it, as any write does.
    log.append(0, &[1; 66_000]);
    wait(&|| hanging.load(SeqCst) == 1);
    // More than may wait for the hanging sync: a quarter of the memory.
    let mut end = Lsn(0);
    for n in 0..200u8 {
        end = log.append(0, &[n; 9000]);
    }
    wait(&|| log.written_lsn() > Lsn(500_000));
    assert_eq!(log.durable_lsn(), Lsn(0));
    hang.store(false, SeqCst);
    assert!(log.sync().expect("the disk works") >= end);
    assert!(hanging.load(SeqCst) <= 5, "one sync for all that gathered: {hanging:?}");
    log.close().expect("the disk works");
}
