//! A disk that takes a megabyte a second: replies wait for it, reads do not, and memory does not grow in its place.

use crate::judge::Promise;
use crate::load::{Company, Crowd};
use crate::power::cut;
use crate::report::Report;
use crate::server::Server;
use crate::volume::Volume;
use crate::writer::Ground;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where control groups (version 1) slow a process down at a device.
const GROUPS: &str = "/sys/fs/cgroup/blkio";
const BYTES_A_SECOND: u64 = 1 << 20;
/// Resident memory may grow by so much: values of the load, and what the log holds back.
const GROWTH_MAX: u64 = 256 << 20;
/// A read is not held up by the disk. Far above what it takes, and far below what the disk needs for what is written.
const READ_MAX: Duration = Duration::from_secs(5);

/// A control group; removed with this value.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Loads the server for so many seconds while its disk is slow, then cuts the power.
pub fn slow(server: &Server, volume: &Volume, seconds: u64, promise: Promise, seed: u64, report: &mut Report) {
    if !Path::new(GROUPS).join("blkio.throttle.write_bps_device").exists() {
        println!("ok - {}: a slow disk # SKIP no blkio controller of control groups", report.name);
        return;
    }
    match run(server, volume, seconds, promise, seed) {
        Ok(text) => report.pass(&format!("a slow disk ({text})")),
        Err(text) => report.fail("a slow disk", &text),
    }
}

fn run(server: &Server, volume: &Volume, seconds: u64, promise: Promise, seed: u64) -> Result<String, String> {
    let (mut running, _) = server.start()?;
    let words = |error: std::io::Error| format!("the control group: {error}");
    let group = Group(Path::new(GROUPS).join(format!("onggi-faults-{}", std::process::id())));
    fs::create_dir(&group.0).map_err(words)?;
    fs::write(group.0.join("blkio.throttle.write_bps_device"), format!("{} {BYTES_A_SECOND}", volume.device()?))
        .map_err(words)?;
    fs::write(group.0.join("cgroup.procs"), running.pid().to_string()).map_err(words)?;
    let resident = |pid: u32| -> u64 {
        let text = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
        text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
    };
    let (pid, before) = (running.pid(), resident(running.pid()));
    let mut crowd = Crowd::new(seed);
    let ground = Ground::new(server.port, promise == Promise::Sync, 200_000);
    let (mut read_max, mut grown, mut failed) = (Duration::ZERO, 0, None);
    let mut done = Ok(());
    crowd
        .load(&ground, Company::None, seed, || {
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(seconds) {
                let asked = Instant::now();
                if let Err(error) =
                    running.connect().and_then(|mut connection| connection.call(&["GET", "nobody:writes:this"]))
                {
                    failed = Some(error.to_string());
                    break;
                }
                read_max = read_max.max(asked.elapsed());
                grown = grown.max(resident(pid).saturating_sub(before));
                std::thread::sleep(Duration::from_millis(20));
            }
            done = cut(&mut running, volume);
        })
        .map_err(|wrong| wrong.join("; "))?;
    done?;
    if let Some(error) = failed {
        return Err(format!("a read failed: {error}"));
    }
    if read_max > READ_MAX {
        return Err(format!("a read took {} ms", read_max.as_millis()));
    }
    if grown > GROWTH_MAX {
        return Err(format!("memory grew by {} MB", grown >> 20));
    }
    drop(group);
    let (running, _) = server.start()?;
    let verdict = crowd.verify(&running, promise).map_err(|wrong| wrong.join("; "))?;
    Ok(format!(
        "{seconds} s: {} answered, {} ms lost, a read took at most {} ms, memory grew by {} MB",
        verdict.answered,
        verdict.lost_us / 1000,
        read_max.as_millis(),
        grown >> 20
    ))
}
