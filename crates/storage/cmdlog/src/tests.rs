//! The log as a whole.

mod basics;
mod crash;
mod damage;
mod golden;
mod pressure;

use std::path::Path;
use std::sync::Arc;

use base::clock::ManualClock;
use base::{Clock, HistoryId, Lsn};
use vfs::{FileSystem, SimFs};

use crate::{Log, LogEnd, LogMode, LogOptions, LogStart, LogTiming, RecoverError, recover};

/// Records, each with the position after it.
pub type Records = Vec<(Lsn, Vec<u8>)>;

pub const DIR: &str = "/";

pub fn history(n: u8) -> HistoryId {
    HistoryId([n; 20])
}

/// Small segments, so that tests see many.
pub fn options(mode: LogMode) -> LogOptions {
    LogOptions { timing: LogTiming::of(mode), segment_bytes: 8192, ring_bytes: 0, ..LogOptions::new(DIR, 2) }
}

/// A log that the test drives step by step, on a simulated disk.
pub fn stepped(fs: &SimFs, clock: &Arc<ManualClock>, mode: LogMode, start: LogStart) -> Arc<Log> {
    let fs: Arc<dyn FileSystem> = Arc::new(fs.clone());
    let clock: Arc<dyn Clock> = Arc::clone(clock) as _;
    Log::create_stepped(fs, clock, options(mode), start, Arc::new(())).expect("the disk works")
}

/// Runs rounds of the sync thread until nothing is due.
pub fn settle(log: &Log) {
    while log.sync_step() {}
}

/// What recovery returns from the beginning.
pub fn read(fs: &SimFs) -> Result<(Records, LogEnd), RecoverError> {
    read_from(fs, Lsn(0))
}

pub fn read_from(fs: &SimFs, from: Lsn) -> Result<(Records, LogEnd), RecoverError> {
    let mut records = Vec::new();
    let mut each = |after: Lsn, payload: &[u8]| {
        records.push((after, payload.to_vec()));
        Ok(())
    };
    let end = recover(fs, Path::new(DIR), from, &mut each, &mut |_| {})?;
    Ok((records, end))
}
