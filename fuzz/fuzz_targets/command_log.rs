//! Segments of the command log: arbitrary bytes as a file, and a valid log with some of its bytes replaced. Reading
//! returns a prefix of the appended records, or an error; it never takes more memory than the file.
#![no_main]

use std::path::Path;
use std::sync::Arc;

use base::clock::ManualClock;
use base::{HistoryId, Lsn};
use cmdlog::{Log, LogMode, LogOptions, LogStart, LogTiming, RecoverError, recover};
use libfuzzer_sys::fuzz_target;
use vfs::{FileSystem, OpenOptions, Outage, SimFs};

const FIRST: &str = "/log-0000000000000000";

fuzz_target!(|input: &[u8]| {
    let Some((control, data)) = onggi_fuzz::control(input, 4) else { return };
    if control[0] % 2 == 0 {
        let fs = SimFs::new(1);
        write(&fs, data, 0);
        // // Reading the same bytes twice gives the same result.
        assert_eq!(read(&fs).ok(), read(&fs).ok());
        return;
    }
    let (fs, records) = log_of(data);
    let offset = u64::from(u16::from_le_bytes([control[1], control[2]])) % 10_000;
    write(&fs, &data[..data.len().min(usize::from(control[3]))], offset);
    if let Ok(found) = read(&fs) {
        assert!(found.len() <= records.len() && found[..] == records[..found.len()]);
    }
});

/// A log with a record for each line.
fn log_of(data: &[u8]) -> (SimFs, Vec<Vec<u8>>) {
    let fs = SimFs::new(1);
    let options = LogOptions {
        timing: LogTiming::of(LogMode::Sync),
        segment_bytes: 8192,
        ring_bytes: 0,
        ..LogOptions::new("/", 1)
    };
    let start = LogStart::fresh(HistoryId([1; 20]), Lsn(0));
    let clock = Arc::new(ManualClock::new(1000));
    let log = Log::create_stepped(Arc::new(fs.clone()), clock, options, start, Arc::new(())).expect("the disk works");
    let records: Vec<Vec<u8>> = data.split(|byte| *byte == b'\n').take(100).map(<[u8]>::to_vec).collect();
    for record in &records {
        log.append(0, record);
        log.sync_step();
    }
    drop(log);
    (fs.recover(Outage::ProcessKill), records)
}

fn write(fs: &SimFs, bytes: &[u8], offset: u64) {
    let file = fs.open(Path::new(FIRST), OpenOptions::write().create()).expect("the disk works");
    file.write_all_at(bytes, offset).expect("the disk works");
}

fn read(fs: &SimFs) -> Result<Vec<Vec<u8>>, RecoverError> {
    let mut records = Vec::new();
    let mut each = |_: Lsn, payload: &[u8]| {
        records.push(payload.to_vec());
        Ok(())
    };
    recover(fs, Path::new("/"), Lsn(0), &mut each, &mut |_| {})?;
    Ok(records)
}
