//! Workloads of other shapes than the benchmark's: what applications do that put and delete, mix lengths, delete all,
//! let values expire, have many key spaces, hold views, or few descriptors.
//!
//! Each pattern is a process of its own, once for each engine. Bytes and files do not depend on the machine; latencies
//! do.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base::random::splitmix64;
use serde::{Deserialize, Serialize};

use crate::engines::{self, Engine, Failure};
use crate::process;
use crate::steps::Subject;
use crate::workload::digits;

/// How often space and files are looked at.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// How long nothing is written before the end is looked at: longer than a database takes to count as idle.
const REST: Duration = Duration::from_secs(13);

/// Length of values, where nothing else is said.
const VALUE_BYTES: usize = 200;

/// Keys are digits.
const KEY_BYTES: u64 = 10;

/// Descriptors of the pattern of that name.
const FEW_DESCRIPTORS: u64 = 1024;

/// A shape of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Puts at the tail; at the head, a look at the first key and its deletion.
    Queue,
    /// Puts what is not there, deletes what is, at random.
    Toggle,
    /// A profile of 10 KB and a counter of 10 bytes per user; only counters are updated.
    Mixed,
    /// All keys are deleted one by one, in scattered order.
    DeleteAll,
    /// Nine tenths are deleted by a hundred ranges, or key by key where the engine has no ranges.
    DeleteRanges,
    /// Keys in the order of time that live for a while: expired by the engine, or deleted by the application.
    Expire,
    /// A hundred key spaces of a thousand keys, updated at random.
    Spaces,
    /// Updates at random while a view is held.
    View,
    /// Keys in order with 1,024 descriptors and a memtable of 256 KiB.
    Descriptors,
}

/// All of them, in the order of a report.
pub const ALL: [Pattern; 9] = [
    Pattern::Queue,
    Pattern::Toggle,
    Pattern::Mixed,
    Pattern::DeleteAll,
    Pattern::DeleteRanges,
    Pattern::Expire,
    Pattern::Spaces,
    Pattern::View,
    Pattern::Descriptors,
];

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(clap::ValueEnum::to_possible_value(self).expect("no pattern is skipped").get_name())
    }
}

/// The results of one engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    pub pattern: Pattern,
    pub engine: String,
    /// All bytes written per byte of keys and values, to the end of the rest.
    pub write_amplification: f64,
    /// Bytes of files per live byte while the pattern worked, where something lives.
    pub space_mean: Option<f64>,
    pub space_peak: Option<f64>,
    /// After the rest, in MB: what lives, and all files.
    pub live_mb: f64,
    pub end_mb: f64,
    pub files_peak: u64,
    /// Of puts and deletions, in microseconds.
    pub write_p9999_us: f64,
    pub write_worst_us: f64,
    /// Of looks at the first key.
    pub head_p50_us: Option<f64>,
    pub head_p99_us: Option<f64>,
    pub seconds: f64,
}

/// The engine, and what was done with it.
struct Work<'a> {
    engine: &'a dyn Engine,
    state: u64,
    user_bytes: u64,
    live_bytes: &'a AtomicU64,
    is_sampled: &'a AtomicBool,
    writes_ns: Vec<u32>,
    heads_ns: Vec<u32>,
}

impl Work<'_> {
    fn random(&mut self, below: u64) -> u64 {
        splitmix64(&mut self.state) % below
    }

    fn timed<T>(&mut self, work: impl FnOnce(&dyn Engine) -> Result<T, Failure>) -> Result<T, Failure> {
        let begin = Instant::now();
        let outcome = work(self.engine)?;
        self.writes_ns.push(u32::try_from(begin.elapsed().as_nanos()).unwrap_or(u32::MAX));
        Ok(outcome)
    }

    /// Puts a value of this length, of which the first bytes differ from put to put.
    fn put(&mut self, key: &[u8], len: usize) -> Result<(), Failure> {
        let value = self.value(key, len);
        self.timed(|engine| engine.put(key, &value))
    }

    fn value(&mut self, key: &[u8], len: usize) -> Vec<u8> {
        self.user_bytes += (key.len() + len) as u64;
        let mut words = splitmix64(&mut self.state);
        let mut value = vec![0; len];
        value
            .chunks_mut(8)
            .for_each(|chunk| chunk.copy_from_slice(&splitmix64(&mut words).to_le_bytes()[..chunk.len()]));
        value
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Failure> {
        self.user_bytes += key.len() as u64;
        self.timed(|engine| engine.delete(key))
    }

    fn lives(&self, bytes: u64) {
        self.live_bytes.store(bytes, Ordering::Release);
    }

    fn sample(&self) {
        self.is_sampled.store(true, Ordering::Release);
    }

    /// Every key once, in a scattered order.
    fn fill(&mut self, keys: u64) -> Result<(), Failure> {
        for rank in 0..keys {
            self.put(&digits(crate::workload::scattered(rank, keys)), VALUE_BYTES)?;
        }
        self.lives(keys * RECORD);
        Ok(())
    }

    fn updates(&mut self, keys: u64, count: u64) -> Result<(), Failure> {
        for _ in 0..count {
            let key = digits(self.random(keys));
            self.put(&key, VALUE_BYTES)?;
        }
        Ok(())
    }

    fn run(&mut self, pattern: Pattern, scale: u64) -> Result<(), Failure> {
        match pattern {
            Pattern::Queue => self.queue(100 * scale, 1000 * scale),
            Pattern::Toggle => self.toggle(150 * scale, 1500 * scale),
            Pattern::Mixed => self.mixed(10 * scale, 1500 * scale),
            Pattern::DeleteAll => {
                let keys = 300 * scale;
                self.fill(keys)?;
                for rank in 0..keys {
                    self.delete(&digits(crate::workload::scattered(rank + 77, keys)))?;
                }
                self.lives(0);
                Ok(())
            }
            Pattern::DeleteRanges => self.delete_ranges(300 * scale, 200 * scale),
            Pattern::Expire => self.expire(100 * scale, 1000 * scale),
            Pattern::Spaces => self.spaces(100, 1000, 1000 * scale),
            Pattern::View => {
                self.fill(200 * scale)?;
                // A view sees one version of each key, which lives as well.
                self.lives(2 * 200 * scale * RECORD);
                let _view = self.engine.hold_view()?;
                self.sample();
                self.updates(200 * scale, 1000 * scale)
            }
            Pattern::Descriptors => {
                self.sample();
                for number in 0..1500 * scale {
                    self.put(&digits(number), VALUE_BYTES)?;
                    self.lives((number + 1) * RECORD);
                }
                Ok(())
            }
        }
    }

    fn queue(&mut self, window: u64, pushes: u64) -> Result<(), Failure> {
        for number in 0..pushes {
            self.put(&digits(number), VALUE_BYTES)?;
            if number < window {
                self.lives((number + 1) * RECORD);
                continue;
            }
            self.sample();
            if number % 16 == 0 {
                let begin = Instant::now();
                if self.engine.scan(b"", 1)? != 1 {
                    return Err("the queue is empty".into());
                }
                self.heads_ns.push(u32::try_from(begin.elapsed().as_nanos()).unwrap_or(u32::MAX));
            }
            self.delete(&digits(number - window))?;
        }
        Ok(())
    }

    fn toggle(&mut self, keys: u64, count: u64) -> Result<(), Failure> {
        let mut is_there = vec![false; keys as usize];
        let mut alive = 0u64;
        for number in 0..count {
            if number == 2 * keys {
                self.sample();
            }
            let at = self.random(keys);
            let there = &mut is_there[at as usize];
            *there = !*there;
            if *there {
                alive += 1;
                self.put(&digits(at), VALUE_BYTES)?;
            } else {
                alive -= 1;
                self.delete(&digits(at))?;
            }
            self.lives(alive * RECORD);
        }
        Ok(())
    }

    fn mixed(&mut self, users: u64, updates: u64) -> Result<(), Failure> {
        for rank in 0..users {
            let user = crate::workload::scattered(rank, users);
            self.put(&digits(2 * user), 10_000)?;
            self.put(&digits(2 * user + 1), 10)?;
        }
        self.lives(users * (2 * KEY_BYTES + 10_010));
        self.sample();
        for _ in 0..updates {
            let user = self.random(users);
            self.put(&digits(2 * user + 1), 10)?;
        }
        Ok(())
    }

    fn delete_ranges(&mut self, keys: u64, elsewhere: u64) -> Result<(), Failure> {
        self.fill(keys)?;
        let width = keys / 100;
        for at in 0..100 {
            let (from, to) = (at * width, at * width + width * 9 / 10);
            let (start, end) = (digits(from), digits(to));
            self.user_bytes += 2 * KEY_BYTES;
            if !self.timed(|engine| engine.delete_range(&start, &end))? {
                (from..to).try_for_each(|number| self.delete(&digits(number)))?;
            }
        }
        let left = (keys - 100 * (width * 9 / 10)) * RECORD;
        self.lives(left);
        self.sample();
        for number in 0..elsewhere {
            self.put(&digits(keys + number), VALUE_BYTES)?;
            self.lives(left + (number + 1) * RECORD);
        }
        Ok(())
    }

    fn expire(&mut self, window: u64, writes: u64) -> Result<(), Failure> {
        // A thousand writes a second of the engine's clock.
        let expires = self.engine.make_expiring(window)?;
        for number in 0..writes {
            let (key, len) = (digits(number), VALUE_BYTES);
            if expires {
                let value = self.value(&key, len);
                self.timed(|engine| engine.put_in(0, &key, &value))?;
                self.engine.pass_ms(1);
            } else {
                self.put(&key, len)?;
            }
            if number < window {
                self.lives((number + 1) * RECORD);
            } else {
                self.sample();
                if !expires {
                    self.delete(&digits(number - window))?;
                }
            }
        }
        Ok(())
    }

    fn spaces(&mut self, spaces: usize, keys: u64, updates: u64) -> Result<(), Failure> {
        self.engine.make_spaces(spaces)?;
        for number in 0..spaces as u64 * keys + updates {
            let (space, key) = match number < spaces as u64 * keys {
                true => ((number / keys) as usize, number % keys),
                false => (self.random(spaces as u64) as usize, self.random(keys)),
            };
            if number == spaces as u64 * keys {
                self.lives(number * (KEY_BYTES + 100));
                self.sample();
            }
            let key = digits(key);
            let value = self.value(&key, 100);
            self.timed(|engine| engine.put_in(space, &key, &value))?;
        }
        Ok(())
    }
}

/// Bytes of key and value.
const RECORD: u64 = KEY_BYTES + VALUE_BYTES as u64;

/// Does the pattern in this process; numbers of keys and writes grow with `scale`, which is 1,000 for full size.
pub fn run(subject: &Subject<'_>, pattern: Pattern, scale: u64) -> Result<Figures, Failure> {
    let dir = subject.dir;
    std::fs::create_dir_all(dir)?;
    let mut settings = subject.settings;
    if pattern == Pattern::Descriptors {
        settings.memtable_bytes = 256 << 10;
        let limit = rustix::process::Rlimit { current: Some(FEW_DESCRIPTORS), maximum: Some(FEW_DESCRIPTORS) };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, limit)?;
    }
    let engine = engines::open(subject.name, dir, &settings)?;
    let (begin, begin_written) = (Instant::now(), process::written()?);
    let (live_bytes, is_sampled, is_done) = (AtomicU64::new(0), AtomicBool::new(false), AtomicBool::new(false));
    let (space, files_peak, work) = std::thread::scope(|scope| -> Result<_, Failure> {
        let sampler = scope.spawn(|| {
            let (mut space, mut files) = (Vec::new(), 0);
            while !is_done.load(Ordering::Acquire) {
                files = files.max(count_files(dir));
                let live = live_bytes.load(Ordering::Acquire);
                if is_sampled.load(Ordering::Acquire) && live > 0 {
                    space.push(process::bytes_of_files(dir) as f64 / live as f64);
                }
                std::thread::sleep(SAMPLE_EVERY);
            }
            (space, files)
        });
        let (live_bytes, is_sampled) = (&live_bytes, &is_sampled);
        let (writes_ns, heads_ns) = (Vec::new(), Vec::new());
        let mut work = Work { engine: &*engine, state: 42, user_bytes: 0, live_bytes, is_sampled, writes_ns, heads_ns };
        let outcome = work.run(pattern, scale);
        is_done.store(true, Ordering::Release);
        let (space, files) = sampler.join().expect("the sampler does not panic");
        outcome.map(|()| (space, files, work))
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    std::thread::sleep(REST);
    process::await_quiet()?;
    let Work { user_bytes, mut writes_ns, mut heads_ns, .. } = work;
    let share = |sorted: &mut Vec<u32>, share: f64| {
        sorted.sort_unstable();
        sorted
            .get(((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1)))
            .map(|ns| f64::from(*ns) / 1e3)
    };
    Ok(Figures {
        pattern,
        engine: subject.name.to_string(),
        write_amplification: (process::written()? - begin_written) as f64 / user_bytes as f64,
        space_mean: (!space.is_empty()).then(|| space.iter().sum::<f64>() / space.len() as f64),
        space_peak: space.iter().copied().reduce(f64::max),
        live_mb: live_bytes.load(Ordering::Acquire) as f64 / 1e6,
        end_mb: process::bytes_of_files(dir) as f64 / 1e6,
        files_peak,
        write_p9999_us: share(&mut writes_ns, 0.9999).unwrap_or(0.0),
        write_worst_us: share(&mut writes_ns, 1.0).unwrap_or(0.0),
        head_p50_us: share(&mut heads_ns, 0.5),
        head_p99_us: share(&mut heads_ns, 0.99),
        seconds,
    })
}

fn count_files(dir: &Path) -> u64 {
    let of = |file: std::fs::DirEntry| if file.path().is_dir() { count_files(&file.path()) } else { 1 };
    dir.read_dir().into_iter().flatten().flatten().map(of).sum()
}

/// The figures as Markdown; those that failed stand with why.
pub fn to_markdown(outcomes: &[Result<Figures, (Pattern, String, String)>], head: &str) -> String {
    let mut text = format!("{head}\n\n");
    text += "| pattern | engine | WA | SA mean | SA peak | MB alive at the end | MB of files | files | write p99.99, ms | \
             worst, ms | head p50, us | p99, us | s |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
    let or_none =
        |figure: Option<f64>, digits: usize| figure.map_or(String::new(), |figure| format!("{figure:.digits$}"));
    for outcome in outcomes {
        match outcome {
            Ok(figures) => {
                let Figures { pattern, engine, write_amplification, live_mb, end_mb, files_peak, seconds, .. } =
                    figures;
                let (mean, peak) = (or_none(figures.space_mean, 2), or_none(figures.space_peak, 2));
                let (p9999, worst) = (figures.write_p9999_us / 1e3, figures.write_worst_us / 1e3);
                let (p50, p99) = (or_none(figures.head_p50_us, 0), or_none(figures.head_p99_us, 0));
                text += &format!(
                    "| {pattern} | {engine} | {write_amplification:.2} | {mean} | {peak} | {live_mb:.1} | {end_mb:.1} | \
                     {files_peak} | {p9999:.2} | {worst:.0} | {p50} | {p99} | {seconds:.0} |\n"
                );
            }
            Err((pattern, engine, why)) => text += &format!("| {pattern} | {engine} | {why} |||||||||||\n"),
        }
    }
    text
}
