//! A disk that takes a megabyte a second: replies wait for it, reads do not, and memory does not grow in its place.

use crate::judge::{Promise, Verdict};
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
/// The permitted growth of resident memory: values of the load, and what the log holds back.
const GROWTH_MAX: u64 = 256 << 20;
/// A read is not held up by the disk. Far above what it takes, and far below what the disk needs for what is written.
const READ_MAX: Duration = Duration::from_secs(5);

/// A control group; removed with this value.
struct Group(PathBuf);

impl Group {
    /// A group for which the volume's device is slow.
    fn new(volume: &Volume) -> Result<Self, String> {
        let path = Path::new(GROUPS).join(format!("onggi-faults-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let group = Self(path);
        let file = group.0.join("blkio.throttle.write_bps_device");
        fs::write(&file, format!("{} {BYTES_A_SECOND}", volume.device()?))
            .map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(group)
    }

    /// Takes a process in.
    fn take(&self, pid: u32) -> std::io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), pid.to_string())
    }
}

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

/// Loads the server for `seconds` while its disk is slow, then cuts the power.
pub fn slow(server: &Server, volume: &Volume, seconds: u64, promise: Promise, seed: u64, report: &mut Report) {
    let group = match Group::new(volume) {
        Ok(group) => group,
        Err(text) => {
            println!("ok - {}: a slow disk # SKIP no blkio controller of control groups: {text}", report.name);
            return;
        }
    };
    match run(server, volume, &group, seconds, promise, seed) {
        Ok(Figures { read_max, .. }) if read_max > READ_MAX => {
            report.measured("a slow disk", &format!("a read took {} ms", read_max.as_millis()));
        }
        Ok(Figures { grown, .. }) if grown > GROWTH_MAX => {
            report.measured("a slow disk", &format!("memory grew by {} MB", grown >> 20));
        }
        Ok(Figures { verdict, read_max, grown }) => report.pass(&format!(
            "a slow disk ({seconds} s: {} answered, {} ms lost, a read took at most {} ms, memory grew by {} MB)",
            verdict.answered,
            verdict.lost_us / 1000,
            read_max.as_millis(),
            grown >> 20
        )),
        Err(text) => report.fail("a slow disk", &text),
    }
}

/// What a run has found: nothing that was promised is lost.
struct Figures {
    verdict: Verdict,
    /// The longest read.
    read_max: Duration,
    /// Bytes of resident memory above those of the start.
    grown: u64,
}

fn run(
    server: &Server,
    volume: &Volume,
    group: &Group,
    seconds: u64,
    promise: Promise,
    seed: u64,
) -> Result<Figures, String> {
    let (mut running, _) = server.start()?;
    group.take(running.pid()).map_err(|error| format!("the control group: {error}"))?;
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
    let (running, _) = server.start()?;
    let verdict = crowd.verify(&running, promise).map_err(|wrong| wrong.join("; "))?;
    Ok(Figures { verdict, read_max, grown })
}
