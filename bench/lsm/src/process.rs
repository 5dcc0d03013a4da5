//! What the kernel says of this process and of files.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::Advice;

use crate::engines::Failure;

/// A process counts as idle after this time without writes, with almost no CPU time, and without a thread that waits
/// for a disk or a processor.
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

/// Anonymous resident memory, in bytes: mapped tables belong to the page cache.
pub fn resident() -> Result<u64, Failure> {
    Ok(field("/proc/self/status", "RssAnon:")? * 1024)
}

fn field(path: &str, name: &str) -> Result<u64, Failure> {
    let text = std::fs::read_to_string(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| format!("{path} has no {name}").into())
}

/// Waits until background flushes and merges have ended.
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

/// Whether another thread of this process is runnable, or waits in the kernel, for example for a sync: on a busy
/// machine that may take seconds.
fn others_work() -> bool {
    let number = |stat: &str| stat.split(' ').next().map(str::to_owned);
    let own = std::fs::read_to_string("/proc/thread-self/stat").ok().and_then(|stat| number(&stat));
    Path::new("/proc/self/task").read_dir().into_iter().flatten().flatten().any(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        // The state follows the name, which may contain anything.
        let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
        number(&stat) != own && matches!(state, Some('R' | 'D'))
    })
}

/// Bytes of all files in a directory and below.
pub fn bytes_of_files(dir: &Path) -> u64 {
    // A file removed between the listing and the query takes no space.
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

/// Drops a directory's files from the page cache, once they are on the medium.
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
