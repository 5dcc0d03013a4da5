//! How many crash points per second one core explores, for a small log: `cargo bench -p onggi-vfs`.
//!
//! A point is one power cut, one boot and one recovery (all segments read, all records checked).

#[path = "../tests/mini_log/mod.rs"]
mod mini_log;

use std::path::Path;
use std::time::{Duration, Instant};

use mini_log::{MiniLog, recover};
use vfs::{CrashPoint, FileSystem, FsError, OpenOptions, Outage, SimFs};

const RECORDS: u64 = 400;
const SEGMENT_LEN: u64 = 16 * 1024;
const TIME: Duration = Duration::from_secs(3);

fn main() {
    recorded_points();
    repeated_runs();
    large_files();
}

/// One run that records every operation, with many draws of each.
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

/// The same with a separate run for each point, as when a seed is replayed.
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

/// Recording shares data instead of copying it. A frozen disk per operation must cost little compared with 64 MiB of
/// writes, and a cut must cost what is pending, not what is stored.
fn large_files() {
    const MIB: u64 = 1 << 20;
    let write = |record: bool| {
        let fs = SimFs::new(1);
        if record {
            fs.record_crash_points();
        }
        let started = Instant::now();
        let file = fs.open(Path::new("/big"), OpenOptions::write().create_new()).expect("creates");
        fs.sync_dir(Path::new("/")).expect("syncs");
        let piece = vec![7; 16 << 10];
        for offset in (0..64 * MIB).step_by(piece.len()) {
            file.write_all_at(&piece, offset).expect("writes");
            if (offset + piece.len() as u64).is_multiple_of(MIB) {
                file.sync_data().expect("syncs");
            }
        }
        (started.elapsed(), fs.take_crash_points())
    };
    let (plain, _) = write(false);
    let (recorded, points) = write(true);
    let (cuts, time) = spin(&points[points.len() - 100..], |_| {});
    println!("64 MiB in {} operations: {plain:.0?}, recorded {recorded:.0?}", points.len());
    println!("cut and boot at its end: {:>7.0} crash points/s", rate(cuts, time));
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
