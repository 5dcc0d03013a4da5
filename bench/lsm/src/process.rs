//! What the kernel says of this process and of files.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::Advice;

use crate::engines::Failure;

/// The process does nothing behind: for so long it wrote nothing, used next to no processor time, and no thread of it waited for a
/// disk or a processor.
const QUIET: Duration = Duration::from_secs(1);

/// Processor time of all threads so far, in seconds.
pub fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Bytes that all threads handed to `write` and its kin so far.
pub fn written() -> Result<u64, Failure> {
    field("/proc/self/io", "wchar:")
}

/// Resident memory that no file stands behind, in bytes: mapped tables are the page cache's.
pub fn resident() -> Result<u64, Failure> {
    Ok(field("/proc/self/status", "RssAnon:")? * 1024)
}

fn field(path: &str, name: &str) -> Result<u64, Failure> {
    let text = std::fs::read_to_string(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| format!("{path} has no {name}").into())
}

/// Waits until flushes and merges behind have come to an end.
pub fn await_quiet() -> Result<(), Failure> {
    let (mut since, mut before) = (Instant::now(), (cpu(), written()?));
    while since.elapsed() < QUIET {
        std::thread::sleep(QUIET / 20);
        let now = (cpu(), written()?);
        if now.1 != before.1 || now.0 - before.0 > 0.02 * QUIET.as_secs_f64() || others_work() {
            (since, before) = (Instant::now(), now);
        }
    }
    Ok(())
}

/// Whether another thread of this process wants to run, or waits in the kernel as for a sync: on a busy machine that may take seconds.
fn others_work() -> bool {
    let number = |stat: &str| stat.split(' ').next().map(str::to_owned);
    let own = std::fs::read_to_string("/proc/thread-self/stat").ok().and_then(|stat| number(&stat));
    Path::new("/proc/self/task").read_dir().into_iter().flatten().flatten().any(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        // The state stands behind the name, which may hold anything.
        let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
        number(&stat) != own && matches!(state, Some('R' | 'D'))
    })
}

/// Bytes of all files in a directory and below.
pub fn bytes_of_files(dir: &Path) -> u64 {
    // A file that goes between the listing and the question takes nothing.
    let mut bytes = 0;
    for file in dir.read_dir().into_iter().flatten().flatten() {
        bytes += match file.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_of_files(&file.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        };
    }
    bytes
}

/// Lets the page cache forget a directory's files, once they are on the medium.
pub fn drop_page_cache(dir: &Path) -> Result<(), Failure> {
    for file in dir.read_dir()? {
        let path = file?.path();
        if path.is_dir() {
            drop_page_cache(&path)?;
        } else {
            let file = File::open(&path)?;
            file.sync_all()?;
            rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}
