//! The kernel's information about a process: CPU time, memory, and permitted cores.

use crate::error::{BenchError, Result};
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};
use std::path::{Path, PathBuf};

/// CPU time used so far by all threads of a process, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CpuTime {
    /// User and system time in nanoseconds, from the scheduler (`/proc/PID/task/*/schedstat`), without threads that
    /// have ended.
    pub total_us: f64,
    /// The user part, in ticks of 10 ms (`/proc/PID/stat`).
    pub user_us: f64,
    /// The system part, in ticks of 10 ms.
    pub system_us: f64,
}

impl CpuTime {
    /// CPU time used since `earlier`. If a thread ended in between, its nanoseconds are missing from the sum; then the
    /// coarser ticks, which include it, are the total.
    pub fn since(self, earlier: Self) -> Self {
        let (user_us, system_us) = (self.user_us - earlier.user_us, self.system_us - earlier.system_us);
        let precise = self.total_us - earlier.total_us;
        let thread_ended = precise < user_us + system_us - TICKS_ERROR_US;
        Self { total_us: if thread_ended { user_us + system_us } else { precise.max(0.0) }, user_us, system_us }
    }
}

/// Ticks are truncated twice, for user and system, at both ends of a span.
const TICKS_ERROR_US: f64 = 40_000.0;

/// Reads the CPU time of `pid`.
///
/// # Errors
/// When the process is gone or may not be looked at.
pub fn cpu_time(pid: u32) -> Result<CpuTime> {
    let mut nanoseconds = 0;
    for task in tasks(pid)? {
        // A thread may end between the listing and the reading.
        let Ok(text) = std::fs::read_to_string(task.join("schedstat")) else { continue };
        nanoseconds += text.split(' ').next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    }
    let (user, system) = ticks(&read(format!("/proc/{pid}/stat"))?);
    let tick_us = 1e6 / rustix::param::clock_ticks_per_second() as f64;
    let (user_us, system_us) = (user as f64 * tick_us, system as f64 * tick_us);
    // A kernel without scheduler statistics provides only ticks.
    let total_us = if nanoseconds > 0 { nanoseconds as f64 / 1e3 } else { user_us + system_us };
    Ok(CpuTime { total_us, user_us, system_us })
}

/// CPU time of the ended children of `pid`, in microseconds, from ticks of 10 ms: a server that forks to save has the
/// cost of its snapshots here.
///
/// # Errors
/// When the process is gone or may not be looked at.
pub fn ended_children_cpu_us(pid: u32) -> Result<f64> {
    let text = read(format!("/proc/{pid}/stat"))?;
    let ticks = stat_field(&text, 13) + stat_field(&text, 14);
    Ok(ticks as f64 * 1e6 / rustix::param::clock_ticks_per_second() as f64)
}

/// The children of `pid` that have not ended, in ascending order.
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let mut children: Vec<u32> = numbers
        .filter(|child| {
            // A process may end between the listing and the reading; an ended one stays as a zombie.
            std::fs::read_to_string(format!("/proc/{child}/stat"))
                .is_ok_and(|text| stat_field(&text, 1) == u64::from(pid) && !text.contains(") Z "))
        })
        .collect();
    children.sort_unstable();
    children
}

/// CPU time of the calling process in microseconds, ended threads included.
pub fn own_cpu_us() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// User and system ticks from `/proc/PID/stat`; the name in it may contain spaces and parentheses.
fn ticks(stat: &str) -> (u64, u64) {
    (stat_field(stat, 11), stat_field(stat, 12))
}

/// A number of `/proc/PID/stat`, counted from the state, which follows the name: 1 is the parent.
fn stat_field(stat: &str, at: usize) -> u64 {
    let after_name = stat.rfind(')').map_or("", |at| &stat[at + 1..]);
    after_name.split_ascii_whitespace().nth(at).and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// Resident memory of `pid` in bytes, shared pages included, exact (`smaps_rollup`) where the kernel allows.
///
/// # Errors
/// When the process is gone or may not be looked at.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    if let Ok(text) = read(format!("/proc/{pid}/smaps_rollup"))
        && let Some(kib) = field_of(&text, "Rss:")
    {
        return Ok(kib * 1024);
    }
    let statm = read(format!("/proc/{pid}/statm"))?;
    let pages: u64 = statm.split(' ').nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
    Ok(pages * rustix::param::page_size() as u64)
}

/// Memory of `pid` and of its current children, in bytes; a page that several of them share counts once. While a server
/// saves in a forked child, the growth is what was copied on write. Walks all pages: about 10 ms per GiB.
///
/// # Errors
/// When the process is gone, may not be looked at, or the kernel has no `smaps_rollup`.
pub fn tree_memory_bytes(pid: u32) -> Result<u64> {
    let proportional = |pid: u32| -> Result<u64> {
        let text = read(format!("/proc/{pid}/smaps_rollup"))?;
        Ok(field_of(&text, "Pss:").unwrap_or(0) * 1024)
    };
    let mut own = 0;
    for _ in 0..TREE_TRIES {
        // If a child starts or ends between two readings, its shared pages would count twice, or not at all.
        let living = children(pid);
        let of_children = || living.iter().map(|&child| proportional(child)).sum::<Result<u64>>().ok();
        let first = of_children();
        own = proportional(pid)?;
        if let (Some(first), Some(second)) = (first, of_children())
            && living == children(pid)
        {
            return Ok(own + first.min(second));
        }
    }
    Ok(own)
}

/// Children start and end at most once or twice while a server saves.
const TREE_TRIES: usize = 5;

/// The most resident memory that `pid` has had since it began, or since [`reset_peak_resident`], in bytes.
///
/// # Errors
/// When the process is gone or may not be looked at.
pub fn peak_resident_bytes(pid: u32) -> Result<u64> {
    Ok(field_of(&read(format!("/proc/{pid}/status"))?, "VmHWM:").unwrap_or(0) * 1024)
}

/// Resets [`peak_resident_bytes`].
///
/// # Errors
/// When the process is gone or is another user's.
pub fn reset_peak_resident(pid: u32) -> Result<()> {
    let path = PathBuf::from(format!("/proc/{pid}/clear_refs"));
    let file_error = |source| BenchError::File { path: path.clone(), op: "reset the peak of memory", source };
    std::fs::write(&path, "5").map_err(file_error)
}

/// The number after `name` in lines such as `Rss:  123 kB`.
pub(crate) fn field_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// True if jemalloc is mapped into the process.
pub fn uses_jemalloc(pid: u32) -> bool {
    read(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.contains("jemalloc"))
}

/// Pins all threads of `pid` to `cores`.
///
/// # Errors
/// When the process is gone, is another user's, or none of the cores exists.
pub fn pin_process(pid: u32, cores: &Cores) -> Result<()> {
    for task in tasks(pid)? {
        let id = task.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
        let Some(thread) = id.and_then(Pid::from_raw) else { continue };
        pin(Some(thread), &cores.set())?;
    }
    Ok(())
}

/// Pins the calling thread to some cores until dropped, then restores its former cores. Threads and processes started
/// meanwhile inherit the pinning.
#[derive(Debug)]
pub struct PinnedThread(Option<CpuSet>);

impl PinnedThread {
    /// `None` leaves the thread unchanged.
    ///
    /// # Errors
    /// When none of the cores exists.
    pub fn new(cores: Option<&Cores>) -> Result<Self> {
        let Some(cores) = cores else { return Ok(Self(None)) };
        let before = sched_getaffinity(None)
            .map_err(|error| BenchError::System { op: "read the thread's cores", source: error.into() })?;
        pin(None, &cores.set())?;
        Ok(Self(Some(before)))
    }
}

impl Drop for PinnedThread {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // The set belonged to this thread a moment ago; if it is refused now, running elsewhere is harmless.
            let _ = sched_setaffinity(None, before);
        }
    }
}

fn pin(thread: Option<Pid>, set: &CpuSet) -> Result<()> {
    sched_setaffinity(thread, set).map_err(|error| BenchError::System {
        op: "pin to cores (see --pin-server, --pin-client)",
        source: error.into(),
    })
}

/// A list of cores, as `0`, `0,2` or `0-3`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Cores(pub Vec<usize>);

impl Cores {
    fn set(&self) -> CpuSet {
        let mut set = CpuSet::new();
        for &core in &self.0 {
            set.set(core);
        }
        set
    }
}

impl std::str::FromStr for Cores {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || BenchError::Usage(format!("cores `{text}`: expected a list such as 0, 0,2 or 0-3"));
        let mut cores = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: usize = first.trim().parse().map_err(|_| bad())?;
            let last: usize = last.trim().parse().map_err(|_| bad())?;
            if first > last || last >= CpuSet::MAX_CPU {
                return Err(bad());
            }
            cores.extend(first..=last);
        }
        Ok(Self(cores))
    }
}

impl std::fmt::Display for Cores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&names.join(","))
    }
}

fn tasks(pid: u32) -> Result<Vec<PathBuf>> {
    let path = PathBuf::from(format!("/proc/{pid}/task"));
    let entries = std::fs::read_dir(&path).map_err(|source| BenchError::File {
        path: path.clone(),
        op: "list the threads of the server (is the pid right, and the process yours?)",
        source,
    })?;
    Ok(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect())
}

fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    std::fs::read_to_string(path).map_err(|source| BenchError::File { path: path.to_owned(), op: "read", source })
}

/// Raises the limit of open files as far as this user may, and returns it.
pub fn raise_descriptor_limit() -> u64 {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Refused means the old limit stays, which the next line reports.
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn cores_are_read() {
        assert_eq!("0,2-4".parse::<Cores>().unwrap(), Cores(vec![0, 2, 3, 4]));
        assert_eq!("0,2-4".parse::<Cores>().unwrap().to_string(), "0,2,3,4");
        for bad in ["", "a", "3-1", "1,", "99999999"] {
            assert!(bad.parse::<Cores>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ticks_stand_after_any_name() {
        let stat = "7 (a) b) c) S 1 2 3 4 5 6 7 8 9 10 111 222 33 44 20";
        assert_eq!(ticks(stat), (111, 222));
        assert_eq!(
            (stat_field(stat, 1), stat_field(stat, 13), stat_field(stat, 14), stat_field(stat, 99)),
            (1, 33, 44, 0)
        );
    }

    /// The CPU time of a busy process must advance about as fast as the clock: here a child that spins for 200 ms.
    #[test]
    fn cpu_time_advances_with_work() {
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let (before, own) = (cpu_time(child.id()).unwrap(), own_cpu_us());
        let start = Instant::now();
        let mut used = CpuTime::default();
        while used.total_us < 100_000.0 && start.elapsed().as_secs() < 30 {
            used = cpu_time(child.id()).unwrap().since(before);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let elapsed_us = start.elapsed().as_secs_f64() * 1e6;
        assert!(used.total_us >= 100_000.0 && used.total_us < elapsed_us * 1.1, "{used:?} in {elapsed_us} us");
        assert!(own_cpu_us() > own);
    }

    #[test]
    fn a_thread_that_ended_leaves_the_ticks() {
        let at = |total_us, user_us| CpuTime { total_us, user_us, system_us: 0.0 };
        assert_eq!(at(5_000.0, 300_000.0).since(at(2_000.0, 0.0)).total_us, 300_000.0);
        assert_eq!(at(95_000.0, 110_000.0).since(at(2_000.0, 0.0)).total_us, 93_000.0);
    }

    #[test]
    fn touched_memory_is_resident() {
        let before = resident_bytes(std::process::id()).unwrap();
        let touched = vec![1u8; 64 << 20];
        let after = resident_bytes(std::process::id()).unwrap();
        assert!(std::hint::black_box(&touched).len() == 64 << 20 && after > before + (60 << 20), "{before} {after}");
    }

    #[test]
    fn children_are_found_and_their_memory_counts() {
        let own = std::process::id();
        let alone = tree_memory_bytes(own).unwrap();
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        assert!(children(own).contains(&child.id()));
        assert!(alone > 0 && tree_memory_bytes(own).unwrap() > 0);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children(own).contains(&child.id()));
        assert!(ended_children_cpu_us(own).unwrap() >= 0.0);
    }

    #[test]
    fn peaks_of_memory_can_be_reset() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let peak = peak_resident_bytes(child.id()).unwrap();
        reset_peak_resident(child.id()).unwrap();
        let after = peak_resident_bytes(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(peak > 0 && after > 0, "{peak} {after}");
        assert!(peak_resident_bytes(u32::MAX).is_err() && reset_peak_resident(u32::MAX).is_err());
    }

    #[test]
    fn a_pinned_thread_gets_its_cores_back() {
        let before = sched_getaffinity(None).unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|&core| before.is_set(core)).unwrap();
        {
            let _pinned = PinnedThread::new(Some(&Cores(vec![first]))).unwrap();
            assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
        }
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
