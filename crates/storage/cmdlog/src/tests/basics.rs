//! The log while nothing fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::clock::{ManualClock, SystemClock};
use base::{Lsn, Rng};
use vfs::{RealFs, SimFs};

use super::{DIR, history, options, read, settle, stepped};
use crate::{Admission, Log, LogMode, LogOptions, LogStart, LogTiming, LogWake, Payload, recover};
use engine::SharedBytes;

/// Records of all sizes, from two workers, over many segments, come back in the order of their positions, after a clean
/// end and after a kill. The history continues, or branches off.
#[test]
fn what_is_appended_comes_back() {
    let (mut fs, clock) = (SimFs::new(1), Arc::new(ManualClock::new(1000)));
    let mut rng = Rng::new(5);
    let mut model: Vec<(Lsn, Vec<u8>)> = Vec::new();
    for round in 1..=6u8 {
        let (found, end) = read(&fs).expect("readable");
        assert_eq!(found, model, "round {round}");
        let clean = round % 2 == 1;
        assert_eq!((end.clean, end.torn.clone()), (clean && round > 1, None));
        let start = LogStart::after(end, history(round));
        assert_eq!(start.history() == history(round), round == 1 || !clean);
        let log = stepped(&fs, &clock, LogMode::Async, start);
        for _ in 0..200 {
            let len = if rng.one_in(50) { rng.below(100_000) } else { rng.below(300) };
            let mut payload = vec![0; len as usize];
            rng.fill(&mut payload);
            let worker = rng.below(2) as usize;
            assert_eq!(log.admit(worker), Admission::Go);
            let lsn = if rng.one_in(20) {
                let shared = SharedBytes::new(payload.clone());
                let (head, tail) = (&b"before"[..], &b"behind"[..]);
                let parts = Payload { head, shared: Some((&shared, tail)) };
                payload = parts.to_vec();
                log.append_shared_in_turn(worker, &parts)
            } else {
                log.append_in_turn(worker, &payload)
            };
            log.end_turn(worker);
            model.push((lsn, payload));
            if rng.one_in(10) {
                log.write_step();
            }
            if rng.one_in(20) {
                clock.advance_ms(600);
                settle(&log);
            }
        }
        if clean {
            log.write_step();
            let stats = log.stats();
            assert!(stats.segments > 1 && stats.pending_bytes == 0, "{stats:?}");
            drop(log);
            fs = fs.recover(vfs::Outage::ProcessKill);
        } else {
            assert_eq!(log.close(), Ok(log.durable_lsn()));
            assert_eq!(log.end_lsn(), log.durable_lsn());
        }
    }
}

/// In `Sync` mode a record is durable after one round, in `Async` after half the window, in `WrittenOnly` after a call
/// of `sync`.
#[test]
fn modes_decide_when_records_are_durable() {
    let (fs, clock) = (SimFs::new(1), Arc::new(ManualClock::new(1000)));
    let log = stepped(&fs, &clock, LogMode::Sync, LogStart::fresh(history(1), Lsn(0)));
    let first = log.append(0, b"one");
    assert!(log.holds_replies() && log.durable_lsn() < first);
    settle(&log);
    assert_eq!(log.durable_lsn(), first);

    log.set_mode(LogMode::Async);
    let second = log.append(1, b"two");
    log.write_step();
    settle(&log);
    assert!(log.durable_lsn() < second && log.written_lsn() >= second);
    clock.advance_ms(501);
    settle(&log);
    assert!(log.durable_lsn() >= second);

    log.set_mode(LogMode::WrittenOnly);
    let third = log.append(0, b"three");
    log.write_step();
    clock.advance_ms(100_000);
    settle(&log);
    assert!(log.durable_lsn() < third && log.written_lsn() >= third);
    assert!(log.sync().expect("the disk works") >= third);
}

#[derive(Default)]
struct Woken(AtomicU64);

impl LogWake for Woken {
    fn wake(&self, _: usize) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// The threads do the same on a real disk, without manual steps. Waiters are woken, and an idle log is quiet.
#[test]
fn threads_make_records_durable() {
    let dir = tempfile::tempdir().expect("a directory");
    for (round, mode) in [LogMode::Sync, LogMode::Async, LogMode::WrittenOnly].into_iter().enumerate() {
        let mut count = 0;
        let mut each = |_: Lsn, _: &[u8]| {
            count += 1;
            Ok(())
        };
        let end = recover(&RealFs, dir.path(), Lsn(0), &mut each, &mut |_| {}).expect("readable");
        assert_eq!(count, 2000 * round);
        let timing = Arc::new(LogTiming::new(mode, 20));
        let options = LogOptions { timing, segment_bytes: 1 << 16, ..LogOptions::new(dir.path(), 2) };
        let start = LogStart::after(end, history(round as u8));
        let woken = Arc::new(Woken::default());
        let clock = Arc::new(SystemClock::new());
        let log = Log::create(Arc::new(RealFs), clock, options, start, Arc::clone(&woken) as _).expect("a log");
        std::thread::scope(|scope| {
            for worker in 0..2 {
                let log = &log;
                scope.spawn(move || {
                    for n in 0..1000u32 {
                        while log.admit(worker) != Admission::Go {
                            std::thread::yield_now();
                        }
                        let lsn = log.append(worker, &n.to_le_bytes());
                        if n % 100 == 99 && mode != LogMode::WrittenOnly {
                            log.wait_for(worker);
                            while log.durable_lsn() < lsn {
                                std::thread::yield_now();
                            }
                        }
                    }
                });
            }
        });
        let end = log.close().expect("the disk works");
        assert_eq!(end, log.durable_lsn());
        assert_eq!(log.health(), None);
    }
}

/// Settings change while a log is being created, which takes several syncs. The running log has the new mode and
/// window, not those it was created with, and so has every other log of the cell.
#[test]
fn logs_have_the_mode_and_the_window_of_their_cell_and_none_of_their_own() {
    let (fs, clock) = (SimFs::new(1), Arc::new(ManualClock::new(1000)));
    let timing = LogTiming::of(LogMode::WrittenOnly);
    let open = |first| {
        let options = LogOptions { timing: Arc::clone(&timing), ..options(LogMode::Async) };
        let (fs, clock) = (Arc::new(fs.clone()), Arc::clone(&clock));
        Log::create_stepped(fs, clock as _, options, LogStart::fresh(history(1), Lsn(first)), Arc::new(()))
            .expect("the disk works")
    };
    let old = open(0);
    let changed = Arc::clone(&timing);
    fs.on_sync(move |_| {
        changed.set_mode(LogMode::Sync);
        changed.set_window_ms(20);
    });
    let new = open(1 << 20);
    for log in [&old, &new] {
        assert!(log.holds_replies());
        assert_eq!((log.mode(), log.window_ms()), (LogMode::Sync, 20));
        let end = log.append(0, b"one");
        settle(log);
        assert_eq!(log.durable_lsn(), end);
    }
    new.set_mode(LogMode::Async);
    assert_eq!((old.mode(), timing.mode()), (LogMode::Async, LogMode::Async));
}

/// A log whose threads sleep, with records that no sync would cover, syncs them when the cell's mode asks for it.
#[test]
fn a_change_of_the_cell_wakes_the_threads_of_a_log() {
    let timing = LogTiming::of(LogMode::WrittenOnly);
    let options = LogOptions { timing: Arc::clone(&timing), ..LogOptions::new(DIR, 2) };
    let (fs, clock) = (Arc::new(SimFs::new(1)), Arc::new(SystemClock::new()));
    let log =
        Log::create(fs, clock, options, LogStart::fresh(history(1), Lsn(0)), Arc::new(())).expect("the disk works");
    let end = log.append(0, b"one");
    while log.written_lsn() < end {
        std::thread::yield_now();
    }
    assert!(log.durable_lsn() < end);
    timing.set_mode(LogMode::Sync);
    while log.durable_lsn() < end {
        std::thread::yield_now();
    }
    log.close().expect("the disk works");
}
