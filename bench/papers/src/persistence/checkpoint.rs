//! One checkpoint from outside: its request, its end, and its cost.

use loadgen::client::Client;
use loadgen::error::{BenchError, Result};
use loadgen::process::{self, CpuTime};
use loadgen::server::Server;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a server is polled; each poll costs it some microseconds.
const POLL: Duration = Duration::from_millis(20);

/// The cost of a checkpoint.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    /// From the command until the server reports the end.
    pub(crate) seconds: f64,
    /// CPU time of the server and of its forked children meanwhile.
    pub(crate) cpu_seconds: f64,
}

/// Takes a checkpoint with BGSAVE and waits for its end.
///
/// # Errors
/// When the server refuses, fails to save, or goes away.
pub(crate) fn take(server: &Server) -> Result<Checkpoint> {
    let mut client = Client::connect(&server.target.address, &server.target.login)?;
    wait_until_idle(&mut client)?;
    let pid = server.target.pid.expect("the harness started this server");
    let before = TreeCpu::read(pid)?;
    let seconds = save(server, &mut client)?.as_secs_f64();
    let cpu_seconds = TreeCpu::read(pid)?.since(before) / 1e6;
    Ok(Checkpoint { seconds, cpu_seconds })
}

/// Makes the server take a checkpoint, waits for its end, and returns the duration.
///
/// # Errors
/// As [`take`].
pub(crate) fn save(server: &Server, client: &mut Client) -> Result<Duration> {
    let begun = Instant::now();
    client.must(&["BGSAVE"])?;
    finish(server, client)?;
    Ok(begun.elapsed())
}

/// Waits for the end of a running checkpoint, and returns `INFO persistence` at that point.
///
/// # Errors
/// [`BenchError::Refused`] when it failed.
pub(crate) fn finish(server: &Server, client: &mut Client) -> Result<HashMap<String, String>> {
    let fields = wait_until_idle(client)?;
    match fields.get("rdb_last_bgsave_status").map(String::as_str) {
        None | Some("ok") => Ok(fields),
        Some(status) => {
            let (address, command) = (server.target.address.to_string(), "BGSAVE".to_owned());
            Err(BenchError::Refused { address, command, reply: format!("rdb_last_bgsave_status:{status}") })
        }
    }
}

/// Waits while a checkpoint or a rewrite of the log runs or is due.
fn wait_until_idle(client: &mut Client) -> Result<HashMap<String, String>> {
    wait_until(client, |fields| !is_busy(fields))
}

/// Waits until the log is on, or off, and has no pending work.
///
/// # Errors
/// When the server goes away.
pub(crate) fn wait_for_log(client: &mut Client, is_on: bool) -> Result<()> {
    let wanted = if is_on { "1" } else { "0" };
    let is_so = |fields: &HashMap<String, String>| fields.get("aof_enabled").is_none_or(|value| value == wanted);
    wait_until(client, |fields| is_so(fields) && !is_busy(fields)).map(|_| ())
}

/// Polls `INFO persistence` until it is as wanted.
fn wait_until(
    client: &mut Client,
    is_so: impl Fn(&HashMap<String, String>) -> bool,
) -> Result<HashMap<String, String>> {
    loop {
        loadgen::interrupt::check()?;
        let fields = client.info_fields("persistence")?;
        if is_so(&fields) {
            return Ok(fields);
        }
        std::thread::sleep(POLL);
    }
}

fn is_busy(fields: &HashMap<String, String>) -> bool {
    ["rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled"]
        .into_iter()
        .any(|name| fields.get(name).is_some_and(|value| value != "0"))
}

/// CPU time of a server and of the children it has waited for.
#[derive(Clone, Copy, Debug)]
struct TreeCpu {
    own: CpuTime,
    children_us: f64,
}

impl TreeCpu {
    fn read(pid: u32) -> Result<Self> {
        Ok(Self { own: process::cpu_time(pid)?, children_us: process::ended_children_cpu_us(pid)? })
    }

    /// Microseconds since `earlier`.
    fn since(self, earlier: Self) -> f64 {
        self.own.since(earlier.own).total_us + self.children_us - earlier.children_us
    }
}

/// Memory of a server and its children before and at most, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) before: u64,
    pub(crate) peak: u64,
}

impl Memory {
    /// The growth.
    pub(crate) fn extra(self) -> u64 {
        self.peak.saturating_sub(self.before)
    }
}

/// Watches the memory of a server on a separate thread until stopped.
pub(crate) struct MemoryWatch {
    pid: u32,
    before: u64,
    resident_before: u64,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64>>,
}

const WATCH_STEP: Duration = Duration::from_millis(100);

impl MemoryWatch {
    /// Begins to watch.
    ///
    /// # Errors
    /// The process may not be examined.
    pub(crate) fn begin(pid: u32) -> Result<Self> {
        let before = process::tree_memory_bytes(pid)?;
        let resident_before = process::resident_bytes(pid)?;
        process::reset_peak_resident(pid)?;
        let stop = Arc::new(AtomicBool::new(false));
        let asked = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut peak = before;
            while !asked.load(Ordering::Relaxed) {
                peak = peak.max(process::tree_memory_bytes(pid)?);
                std::thread::sleep(WATCH_STEP);
            }
            Ok(peak)
        });
        Ok(Self { pid, before, resident_before, stop, thread })
    }

    /// Stops, and returns what was observed. The kernel's own peak of the process catches a peak between two samples.
    ///
    /// # Errors
    /// The process ended meanwhile.
    pub(crate) fn end(self) -> Result<Memory> {
        self.stop.store(true, Ordering::Relaxed);
        let seen = self.thread.join().expect("the watching thread does not panic")?;
        let marked = process::peak_resident_bytes(self.pid)?.saturating_sub(self.resident_before);
        Ok(Memory { before: self.before, peak: seen.max(self.before + marked) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_busy_while_any_of_its_jobs_runs() {
        let fields = |pairs: &[(&str, &str)]| pairs.iter().map(|&(a, b)| (a.to_owned(), b.to_owned())).collect();
        assert!(!is_busy(&fields(&[("rdb_bgsave_in_progress", "0"), ("aof_rewrite_in_progress", "0")])));
        assert!(is_busy(&fields(&[("rdb_bgsave_in_progress", "1")])));
        assert!(is_busy(&fields(&[("rdb_bgsave_in_progress", "0"), ("aof_rewrite_scheduled", "1")])));
        assert!(!is_busy(&HashMap::new()));
    }

    #[test]
    fn a_watch_sees_at_least_what_there_was() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let memory = MemoryWatch::begin(child.id()).unwrap().end();
        child.kill().unwrap();
        child.wait().unwrap();
        let memory = memory.unwrap();
        assert!(memory.before > 0 && memory.peak >= memory.before, "{memory:?}");
        assert_eq!(Memory { before: 5, peak: 3 }.extra(), 0);
    }
}
