//! Power cuts at every disk operation. Recovery finds a prefix of what was appended, whole records only, at least up to
//! the durable position; and the log continues from there.

use std::sync::Arc;

use base::clock::ManualClock;
use base::{Lsn, Rng};
use vfs::{CrashPoint, Fault, Op, Outage, SimFs, SimOptions, errno};

use super::{Records, history, read, settle, stepped};
use crate::{Admission, Log, LogEnd, LogMode, LogStart};

/// A count, from the environment or the default.
pub fn count(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

/// Seeds; the environment can shift them.
pub fn seeds(usual: u64) -> std::ops::Range<u64> {
    let first = count("CRASH_SEED", 1);
    first..first + count("CRASH_RUNS", usual)
}

/// The events of one life of the log, to judge its remains.
pub struct Life {
    /// Everything appended, in order, since the beginning of the first life.
    pub records: Records,
    /// (disk operations begun, durable position) as observed, ascending.
    durable: Vec<(u64, u64)>,
}

impl Life {
    fn note(&mut self, fs: &SimFs, log: &Log) {
        self.durable.push((fs.operations(), log.durable_lsn().0));
    }

    /// What clients knew to be durable when this operation began.
    fn durable_before(&self, operation: u64) -> u64 {
        let known = self.durable.iter().rev().find(|(operations, _)| *operations < operation);
        known.map_or(0, |(_, durable)| *durable)
    }
}

/// Appends, writes, syncs and advances time as the seed decides.
pub fn live(fs: &SimFs, log: &Log, clock: &ManualClock, seed: u64, steps: u32, before: &Records) -> Life {
    let mut rng = Rng::new(seed);
    let mut life = Life { records: before.clone(), durable: Vec::new() };
    life.note(fs, log);
    for _ in 0..steps {
        match rng.below(10) {
            0..=5 => {
                let len = match rng.below(60) {
                    0 => 66_000 + rng.below(10_000),
                    1..=5 => rng.below(3000),
                    _ => rng.below(120),
                };
                let mut payload = vec![0; len as usize];
                rng.fill(&mut payload);
                let worker = rng.below(2) as usize;
                if log.admit(worker) == Admission::Go {
                    life.records.push((log.append(worker, &payload), payload));
                }
            }
            6 => log.write_step(),
            7 | 8 => drop(log.sync_step()),
            _ => clock.advance_ms(rng.below(700)),
        }
        if rng.one_in(40) {
            log.set_mode([LogMode::Async, LogMode::Sync, LogMode::WrittenOnly][rng.below(3) as usize]);
        }
        life.note(fs, log);
    }
    life
}

/// Recovers a disk and compares: a prefix that includes everything durable.
pub fn judge(fs: &SimFs, records: &Records, durable: u64, what: &str) -> (Records, LogEnd) {
    let (found, end) = read(fs).unwrap_or_else(|error| panic!("{what}: {error}\n{}", trace(fs)));
    assert!(found.len() <= records.len() && found[..] == records[..found.len()], "{what}: not a prefix");
    let lost = records.get(found.len()).is_some_and(|(lsn, _)| lsn.0 <= durable);
    assert!(
        !lost,
        "{what}: {} of {} records, durable {durable}, end {end:?}\n{}",
        found.len(),
        records.len(),
        trace(fs)
    );
    (found, end)
}

fn trace(fs: &SimFs) -> String {
    fs.trace().iter().map(|entry| format!("{entry}\n")).collect()
}

/// Continues after a crash with a second life, cuts or kills that one at its end, and judges it too.
fn live_on(fs: &SimFs, found: &Records, end: LogEnd, seed: u64, what: &str) {
    let mut rng = Rng::new(seed);
    let clock = Arc::new(ManualClock::new(9_000_000));
    let mut durable = end.end_lsn.0;
    fs.set_capacity(None);
    fs.record_crash_points();
    let log = stepped(fs, &clock, LogMode::Sync, LogStart::after(end, history(200)));
    let at_start = fs.take_crash_points();
    // Opening the log must not lose what recovery returned as durable, nor add anything.
    for point in &at_start {
        let proven = log_end_before(found, durable, point, seed, what);
        assert!(proven <= found.len());
    }
    let life = live(fs, &log, &clock, seed, 12, found);
    durable = durable.max(log.durable_lsn().0);
    drop(log);
    let outage = if rng.one_in(3) { Outage::ProcessKill } else { Outage::PowerCut { seed } };
    judge(&fs.recover(outage), &life.records, durable, &format!("{what}, second life"));
}

/// A crash while the log was opened: recovery finds the same records afterwards. It may find fewer where the first
/// crash left records only in the page cache; never others.
fn log_end_before(found: &Records, _durable: u64, point: &CrashPoint, seed: u64, what: &str) -> usize {
    judge(&point.power_cut(seed), found, 0, &format!("{what}, opened again, operation {}", point.operation())).0.len()
}

/// Every operation of a run, with several cuts each; some continue to a second life.
#[test]
fn power_cuts_leave_a_prefix() {
    let cuts = count("CRASH_CUTS", 3);
    let mut points_seen = 0;
    for seed in seeds(12) {
        let (fs, clock) = (SimFs::new(seed), Arc::new(ManualClock::new(1000)));
        fs.record_crash_points();
        let mode = [LogMode::Sync, LogMode::Async, LogMode::WrittenOnly][(seed % 3) as usize];
        let log = stepped(&fs, &clock, mode, LogStart::fresh(history(1), Lsn(0)));
        let mut life = live(&fs, &log, &clock, seed, 120, &Vec::new());
        if seed % 2 == 0 {
            log.close().expect("the disk works");
            life.note(&fs, &log);
        }
        for point in fs.take_crash_points() {
            points_seen += 1;
            let durable = life.durable_before(point.operation());
            for cut in 0..cuts {
                let what = format!("seed {seed}, operation {}, cut {cut}", point.operation());
                let left = point.power_cut(cut);
                let (found, end) = judge(&left, &life.records, durable, &what);
                if (point.operation() + cut) % 4 == 0 {
                    live_on(&left, &found, end, seed ^ cut ^ point.operation(), &what);
                }
            }
        }
    }
    assert!(points_seen > 200, "{points_seen}");
    // For scripts that count crash points.
    println!("crash points: {}", points_seen * cuts);
}

/// Each operation fails once, in turn. The log refuses writes, recovers after a while, and no later power cut
/// loses anything durable. At the end everything appended is durable.
#[test]
fn every_operation_may_fail_once() {
    let mut points_seen = 0;
    for seed in seeds(3) {
        for number in [errno::EIO, errno::ENOSPC] {
            let mut operation = 1;
            loop {
                let fs = SimFs::new(seed);
                let clock = Arc::new(ManualClock::new(1000));
                let mode = [LogMode::Sync, LogMode::Async][(seed % 2) as usize];
                let log = stepped(&fs, &clock, mode, LogStart::fresh(history(1), Lsn(0)));
                fs.inject(Fault::fail_operation(fs.operations() + operation, number));
                fs.record_crash_points();
                let what = format!("seed {seed}, errno {number}, operation {operation}");
                let mut life = live(&fs, &log, &clock, seed, 100, &Vec::new());
                heal(&log, &clock, &what);
                life.note(&fs, &log);
                let durable = log.durable_lsn();
                assert!(
                    life.records.iter().all(|(lsn, _)| *lsn <= durable),
                    "{what}: {durable} {:?}\n{}",
                    log.stats(),
                    trace(&fs)
                );
                for point in fs.take_crash_points() {
                    points_seen += 1;
                    let durable = life.durable_before(point.operation());
                    let what = format!("{what}, cut at {}", point.operation());
                    judge(&point.power_cut(seed), &life.records, durable, &what);
                }
                let end = judge(&fs.recover(Outage::PowerCut { seed: 7 }), &life.records, log.durable_lsn().0, &what);
                assert_eq!(end.0, life.records);
                if fs.faults_fired() == 0 {
                    break;
                }
                operation += 1;
            }
            assert!(operation > 10, "only {operation} operations");
        }
    }
    println!("crash points: {points_seen}");
}

/// Advances time until the log is healthy and everything is durable.
fn heal(log: &Log, clock: &ManualClock, what: &str) {
    for _ in 0..20 {
        clock.advance_ms(1001);
        log.write_step();
        settle(log);
        if log.health().is_none() && log.sync().is_ok() {
            return;
        }
    }
    panic!("{what}: still {:?}", log.health());
}

/// A failed sync is never repeated on the same file, although the second would return `Ok`. No reply that waits for it
/// is released before the records are durable elsewhere.
#[test]
fn a_failed_sync_is_not_believed_the_second_time() {
    for op in [Op::SyncData, Op::SyncAll, Op::SyncDir] {
        for skip in 0..4 {
            let (fs, clock) = (SimFs::new(3), Arc::new(ManualClock::new(1000)));
            let log = stepped(&fs, &clock, LogMode::Sync, LogStart::fresh(history(1), Lsn(0)));
            fs.inject(Fault::fail(op, errno::EIO).skip(skip));
            let mut records = Vec::new();
            for n in 0..40u8 {
                if log.admit(0) == Admission::Go {
                    records.push((log.append(0, &[n; 900]), vec![n; 900]));
                }
                let fired = fs.faults_fired();
                settle(&log);
                if fs.faults_fired() > fired {
                    let failure = log.health().expect("it failed");
                    assert_eq!((failure.errno, failure.op), (Some(errno::EIO), op.as_str()));
                    assert_eq!(log.admit(0), Admission::Refused);
                    assert!(log.durable_lsn() < log.end_lsn());
                    assert!(log.sync().is_err());
                    let left = fs.crash_point().power_cut(u64::from(n));
                    judge(&left, &records, log.durable_lsn().0, "after the failure");
                    // Not before the time of the next attempt.
                    clock.advance_ms(900);
                    settle(&log);
                    assert!(log.health().is_some());
                    clock.advance_ms(200);
                    settle(&log);
                    assert_eq!((log.health(), log.admit(0)), (None, Admission::Go));
                    assert!(log.stats().rotations == 1 && log.stats().failures == 1);
                }
                assert!(records.iter().all(|(lsn, _)| *lsn <= log.durable_lsn()));
            }
            assert_eq!(fs.faults_fired(), 1, "{op} {skip}");
            let cut = fs.recover(Outage::PowerCut { seed: 1 });
            assert_eq!(judge(&cut, &records, log.durable_lsn().0, "at the end").0, records);
        }
    }
}

/// A full disk: writes are refused with the reason and deletes continue. When space returns, the log recovers with
/// everything.
#[test]
fn a_full_disk_ends_when_space_is_back() {
    let (fs, clock) = (SimFs::new(3), Arc::new(ManualClock::new(1000)));
    let log = stepped(&fs, &clock, LogMode::Sync, LogStart::fresh(history(1), Lsn(0)));
    fs.set_capacity(Some(32 << 10));
    let mut records = Vec::new();
    for n in 0..200u8 {
        let admitted = if n % 10 == 0 { log.admit_delete(0) } else { log.admit(0) };
        if admitted == Admission::Go {
            records.push((log.append(0, &[n; 700]), vec![n; 700]));
        }
        settle(&log);
        clock.advance_ms(300);
    }
    let failure = log.health().expect("full");
    assert!(failure.disk_full && failure.errno == Some(errno::ENOSPC), "{failure:?}");
    assert!(failure.message.contains("log-") && failure.message.contains("space"), "{failure}");
    assert_eq!((log.admit(0), log.admit_delete(0)), (Admission::Refused, Admission::Go));
    let waiting = records.iter().filter(|(lsn, _)| *lsn > log.durable_lsn()).count();
    assert!(waiting > 1, "deletes were taken meanwhile");
    judge(&fs.crash_point().power_cut(1), &records, log.durable_lsn().0, "while full");
    fs.set_capacity(None);
    heal(&log, &clock, "space is back");
    assert_eq!(judge(&fs.recover(Outage::PowerCut { seed: 2 }), &records, log.durable_lsn().0, "healed").0, records);
}

/// The page cache survives a kill and shows bytes that a failed sync has lost. The next start does not rely on it: what
/// it returns is durable from then on.
#[test]
fn a_start_does_not_trust_the_page_cache() {
    for seed in 0..20 {
        let (fs, clock) = (SimFs::new(seed), Arc::new(ManualClock::new(1000)));
        let log = stepped(&fs, &clock, LogMode::Sync, LogStart::fresh(history(1), Lsn(0)));
        let mut records = Vec::new();
        for n in 0..8u8 {
            records.push((log.append(0, &[n; 600]), vec![n; 600]));
            if n < 3 {
                settle(&log);
            }
        }
        fs.inject(Fault::fail(Op::SyncData, errno::EIO));
        settle(&log);
        assert!(log.health().is_some());
        drop(log);
        let fs = fs.recover(Outage::ProcessKill);
        let (found, end) = judge(&fs, &records, 0, "after the kill");
        let log = stepped(&fs, &clock, LogMode::Sync, LogStart::after(end, history(2)));
        let durable = log.durable_lsn().0;
        drop(log);
        let again = judge(&fs.recover(Outage::PowerCut { seed }), &found, durable, "after the power cut").0;
        assert_eq!(again, found);
    }
}

/// Many random failures: writes, syncs, new names, full disks, short writes, interruptions. After any power cut
/// everything durable is present. When the disk is healthy again, everything appended becomes durable.
#[test]
fn repeated_failures_lose_nothing_durable() {
    for seed in seeds(25) {
        let options = SimOptions { seed, short_transfer_one_in: 9, interrupt_one_in: 11, ..SimOptions::default() };
        let (fs, clock) = (SimFs::with_options(options), Arc::new(ManualClock::new(1000)));
        let mode = [LogMode::Sync, LogMode::Async][(seed % 2) as usize];
        let log = stepped(&fs, &clock, mode, LogStart::fresh(history(1), Lsn(0)));
        let mut rng = Rng::new(seed);
        let mut records = Vec::new();
        for part in 0..4u64 {
            fs.clear_faults();
            fs.set_capacity(None);
            for _ in 0..rng.below(4) {
                let ops = [
                    Op::Write,
                    Op::SyncData,
                    Op::SyncAll,
                    Op::SyncDir,
                    Op::Open,
                    Op::Allocate,
                    Op::Rename,
                    Op::RemoveFile,
                ];
                let op = ops[rng.below(ops.len() as u64) as usize];
                let number = if rng.one_in(3) { errno::ENOSPC } else { errno::EIO };
                let mut fault = Fault::fail(op, number).skip(rng.below(6)).times(1 + rng.below(3));
                if rng.one_in(3) {
                    fault = fault.reads_show_old();
                }
                fs.inject(fault);
            }
            if rng.one_in(4) {
                fs.set_capacity(Some(rng.below(64) << 10));
            }
            fs.record_crash_points();
            let life = live(&fs, &log, &clock, seed ^ part << 32, 60, &records);
            for point in fs.take_crash_points() {
                let what = format!("seed {seed}, part {part}, operation {}", point.operation());
                let after =
                    |cut| judge(&point.power_cut(cut), &life.records, life.durable_before(point.operation()), &what);
                let (found, end) = after(0);
                if point.operation() % 8 == 0 {
                    live_on(&point.power_cut(0), &found, end, seed ^ point.operation(), &what);
                }
                after(1);
            }
            records = life.records;
        }
        fs.clear_faults();
        fs.set_capacity(None);
        // In `WrittenOnly` the operating system has the only copy; if it dropped it, the log reports it and stays
        // failed.
        clock.advance_ms(5000);
        settle(&log);
        if log.health().is_some_and(|failure| failure.op == Op::Read.as_str()) {
            continue;
        }
        heal(&log, &clock, &format!("seed {seed}"));
        assert!(records.iter().all(|(lsn, _)| *lsn <= log.durable_lsn()));
        let found = judge(&fs.recover(Outage::PowerCut { seed }), &records, log.durable_lsn().0, "healed").0;
        assert_eq!(found.len(), records.len(), "seed {seed}");
    }
}

/// Starts that crash before their first frame each leave an empty segment where the next one begins. Records of a later
/// life at that position are found: its history continues the last one that has frames.
#[test]
fn starts_without_a_frame_do_not_break_the_chain() {
    for starts in 1..5u8 {
        let (mut fs, clock) = (SimFs::new(3), Arc::new(ManualClock::new(1000)));
        let mut records = Vec::new();
        for start in 0..=starts {
            let at = match start {
                0 => LogStart::fresh(history(1), Lsn(0)),
                _ => LogStart::after(read(&fs).expect("it reads").1, history(1 + start)),
            };
            let log = stepped(&fs, &clock, LogMode::Sync, at);
            if start == 0 || start == starts {
                records.push((log.append(0, &[start; 100]), vec![start; 100]));
                settle(&log);
            }
            drop(log);
            fs = fs.recover(Outage::PowerCut { seed: u64::from(start) });
        }
        assert_eq!(judge(&fs, &records, 0, "after all starts").0, records, "{starts} starts");
    }
}
