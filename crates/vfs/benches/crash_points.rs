//! How many crash points a second one core explores, for a small log: `cargo bench -p onggi-vfs`.
//!
//! A point is one power cut, one boot and one recovery (all segments read, all records checked).

#[path = "../tests/mini_log/mod.rs"]
mod mini_log;

use std::time::{Duration, Instant};

use mini_log::{MiniLog, recover};
use vfs::{CrashPoint, FsError, Outage, SimFs};

const RECORDS: u64 = 400;
const SEGMENT_LEN: u64 = 16 * 1024;
const TIME: Duration = Duration::from_secs(3);

fn main() {
    recorded_points();
    repeated_runs();
}

/// One run, every operation recorded, many draws of each.
fn recorded_points() {
    let fs = SimFs::new(1);
    fs.record_crash_points();
    let started = Instant::now();
    let log = run(&fs).expect("nothing fails before a crash");
    let recording = started.elapsed();
    let points = fs.take_crash_points();
    assert!(recover(&fs).expect("reads") == RECORDS && log.durable() == RECORDS);

    let (draws, boots) = spin(&points, |_| {});
    let (explored, recovered) = spin(&points, |fs| assert!(recover(fs).expect("recovers") <= RECORDS));
    println!("log of {RECORDS} records, {} operations, recorded in {recording:.1?}", points.len());
    println!("cut and boot:          {:>9.0} crash points/s", rate(draws, boots));
    println!("cut, boot and recover: {:>9.0} crash points/s", rate(explored, recovered));
}

/// The same with a run of its own for each point, as when a seed is replayed.
fn repeated_runs() {
    let operations = {
        let fs = SimFs::new(1);
        run(&fs).expect("nothing fails before a crash");
        fs.operations()
    };
    let (started, mut count) = (Instant::now(), 0);
    while started.elapsed() < TIME {
        let fs = SimFs::new(1);
        fs.crash_at(1 + count % operations);
        assert!(run(&fs).is_err_and(|error| error.is_crash()));
        recover(&fs.recover(Outage::PowerCut { seed: count })).expect("recovers");
        count += 1;
    }
    println!("run, cut, boot, recover: {:>7.0} crash points/s", rate(count, started.elapsed()));
}

fn run(fs: &SimFs) -> Result<MiniLog<'_>, FsError> {
    let mut log = MiniLog::create(fs, SEGMENT_LEN)?;
    for record in 1..=RECORDS {
        log.append(100)?;
        if record % 4 == 0 {
            log.sync()?;
        }
    }
    Ok(log)
}

fn spin(points: &[CrashPoint], visit: impl Fn(&SimFs)) -> (u64, Duration) {
    let (started, mut count) = (Instant::now(), 0);
    for seed in 0.. {
        for point in points {
            visit(&point.power_cut(seed));
            count += 1;
        }
        if started.elapsed() > TIME {
            break;
        }
    }
    (count, started.elapsed())
}

fn rate(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}
