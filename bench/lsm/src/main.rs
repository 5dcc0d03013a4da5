//! Runs the workload on plex and prints what it wrote and what its files took.
//!
//! ```text
//! cargo run --release -- --keys 952381 --memtable-bytes 4194304 --dir DIR
//! ```
//!
//! WA: bytes written to log and tables, over bytes of keys and values, until the policy is content after the last write.
//! SA: bytes of all files over bytes of live keys and values; mean and peak over the update phase, sampled every 200 ms,
//! and at the end.

mod workload;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use plex::{Background, Options, Policy, Wal};
use workload::{Distribution, RECORD_BYTES, Workload};

#[derive(Parser)]
#[command(about = "Write and space amplification of plex")]
struct Arguments {
    /// Number of keys; 952381 make the 2 GB workload, 9523810 the paper's 20 GB.
    #[arg(long, default_value_t = 952_381)]
    keys: u64,
    /// Memory of a memtable.
    #[arg(long, default_value_t = 4 << 20)]
    memtable_bytes: usize,
    #[arg(long, value_enum, default_value = "uniform")]
    distribution: Distribution,
    #[arg(long, value_enum, default_value = "ldc-ranged")]
    policy: PolicyName,
    /// Of ldc-ranged: bytes of tables per live byte.
    #[arg(long, default_value_t = 1.5)]
    space_amp_target: f64,
    /// Of ldc-ranged: runs over one range.
    #[arg(long, default_value_t = 20)]
    runs_max: usize,
    /// Of tiered and ldc: runs per level.
    #[arg(long, default_value_t = 8)]
    runs_per_level: usize,
    /// Of ldc: entries per distinct key at which a level is merged.
    #[arg(long, default_value_t = 1.6)]
    duplicates_max: f64,
    /// Flush and compact in the writing thread.
    #[arg(long)]
    inline: bool,
    /// An empty or missing directory, which is filled and left behind.
    #[arg(long)]
    dir: PathBuf,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum PolicyName {
    Leveled,
    Tiered,
    Ldc,
    LdcRanged,
}

impl Arguments {
    fn policy(&self) -> Policy {
        match self.policy {
            PolicyName::Leveled => Policy::leveled(),
            PolicyName::Tiered => Policy::Tiered { runs_per_level: self.runs_per_level },
            PolicyName::Ldc => Policy::Ldc { runs_per_level: self.runs_per_level, duplicates_max: self.duplicates_max },
            PolicyName::LdcRanged => {
                Policy::LdcRanged { space_amp_target: self.space_amp_target, runs_max: self.runs_max }
            }
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    if arguments.dir.exists() && arguments.dir.read_dir()?.next().is_some() {
        return Err(format!("{} is not empty", arguments.dir.display()).into());
    }
    let db = Options::new()
        .memtable_bytes(arguments.memtable_bytes)
        .policy(arguments.policy())
        .wal(Wal::Async)
        .background(if arguments.inline { Background::Inline } else { Background::Threads })
        .open(&arguments.dir)?;
    let mut workload = Workload::new(arguments.keys, arguments.distribution);
    let (begin, begin_cpu) = (Instant::now(), cpu());
    for _ in 0..arguments.keys {
        let (key, value) = workload.next();
        db.put(key, value)?;
    }
    let filled = db.stats();
    let is_done = AtomicBool::new(false);
    let samples = std::thread::scope(|scope| -> plex::Result<Vec<f64>> {
        let sampler = scope.spawn(|| {
            let mut samples = Vec::new();
            while !is_done.load(Ordering::Acquire) {
                samples.push(space_amplification(&arguments.dir, arguments.keys));
                std::thread::sleep(Duration::from_millis(200));
            }
            samples
        });
        let updated = (arguments.keys..workload.len()).try_for_each(|_| {
            let (key, value) = workload.next();
            db.put(key, value)
        });
        is_done.store(true, Ordering::Release);
        let samples = sampler.join().expect("the sampler does not panic");
        updated.map(|()| samples)
    })?;
    let (seconds, cpu_seconds) = (begin.elapsed().as_secs_f64(), cpu() - begin_cpu);
    db.flush()?;
    db.settle()?;
    let (stats, writes) = (db.stats(), workload.len() as f64);
    let user = stats.user_bytes as f64;
    let mean = samples.iter().sum::<f64>() / samples.len().max(1) as f64;
    let peak = samples.iter().copied().fold(0.0, f64::max);
    println!("policy           {:?}", arguments.policy());
    println!("WA               {:.2}", stats.write_amplification());
    println!("  log            {:.3}", stats.wal_bytes as f64 / user);
    println!("  flush          {:.3}", stats.flush_bytes as f64 / user);
    println!("  compaction     {:.3}", stats.compaction_bytes_written as f64 / user);
    println!("  while filling  {:.2}", filled.write_amplification());
    println!("SA mean          {mean:.3}");
    println!("SA peak          {peak:.3}");
    println!("SA end           {:.3}", space_amplification(&arguments.dir, arguments.keys));
    println!("k writes/s       {:.0}", writes / seconds / 1000.0);
    println!("CPU s/M writes   {:.2}", cpu_seconds / writes * 1e6);
    println!("samples          {}", samples.len());
    println!("stalls           {}", stats.stalls);
    println!("flushes          {}", stats.flushes);
    println!("compactions      {}", stats.compactions);
    println!("tables           {}", stats.tables);
    println!("levels           {:?}", stats.levels);
    Ok(())
}

/// Bytes of all files per byte of live keys and values.
fn space_amplification(dir: &Path, keys: u64) -> f64 {
    let files = dir.read_dir().into_iter().flatten().flatten();
    // A file that goes between the listing and the question takes nothing.
    let bytes: u64 = files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum();
    bytes as f64 / (keys * RECORD_BYTES) as f64
}

/// Processor time of all threads so far, in seconds.
fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
