//! Part `picture`: what clients see while a server saves. One server at a time is under constant load, and is asked to
//! save several times.
//!
//! ```text
//!          without          with                after
//!    |------------------|===========|--------------------|  ...  next round
//!                    BGSAVE       done
//! ```
//!
//! Two threads measure: the generator's counter is read about every 50 ms and converted to steps of 100 ms. A probe
//! sends one change every millisecond on a separate connection and measures from the time it was due, so that a stall
//! shows in all the probes that it delayed. Memory is measured in a separate round, because measuring disturbs.

use super::checkpoint::{self, Memory, MemoryWatch};
use super::{Data, Directives, KIB, LOG_ASYNC, LOG_OFF, MIB, SET, cells, push, section, settle_disk, start};
use base::random::Rng;
use loadgen::catalogue::TestSpec;
use loadgen::client::{Client, Socket};
use loadgen::compare::Harness;
use loadgen::error::{BenchError, Result};
use loadgen::generator::Pace;
use loadgen::keys::{Distribution, KeyStream};
use loadgen::measure::{self, Row, Settings};
use loadgen::payload::Payload;
use loadgen::process::PinnedThread;
use loadgen::resp::ReplyWalker;
use loadgen::results::{Better, Picture, Section, Track};
use loadgen::server::{Server, ServerSpec};
use loadgen::stats::median;
use loadgen::targets::Target;
use loadgen::template::{Draw, Template};
use rustix::event::{PollFd, PollFlags};
use rustix::time::Timespec;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of keys and values at full size.
const DATA_BYTES: f64 = 5e9;
const ROUNDS: usize = 7;
const WITHOUT_SECONDS: f64 = 5.0;
/// Share of the length before a checkpoint that is drawn and waited for after it.
const AFTER_SHARE: f64 = 0.4;
const STEP: Duration = Duration::from_millis(100);
const PROBE_INTERVAL: Duration = Duration::from_millis(1);

const THROUGHPUT: Target = Target::at_least(0.85, Some(0.95));
const STALL: Target = Target::at_most(5.0, Some(1.0));
/// The permitted extra memory: a share of the data, and a constant.
const MEMORY_SHARE: f64 = 0.10;
const MEMORY_MIB: f64 = 64.0;
/// The longest permitted wait: this much of the wait without a checkpoint, and some milliseconds.
const WAIT_FACTOR: f64 = 2.0;
const WAIT_MS: f64 = 5.0;

struct Load {
    title: &'static str,
    test: &'static str,
    directives: &'static Directives,
    /// The targets are stated for changes only; the other load is ARCUS' picture.
    is_judged: bool,
}

const LOADS: [Load; 2] = [
    Load { title: "all changes, log off", test: "set", directives: LOG_OFF, is_judged: true },
    Load { title: "change:read 1:9, log async", test: "set:1+get:9", directives: LOG_ASYNC, is_judged: false },
];

/// The results of one server under one load.
struct Seen {
    server: String,
    rounds: Vec<Round>,
    memory: Memory,
    reported: Reported,
}

/// One checkpoint under load.
struct Round {
    rate_without: f64,
    rate_with: f64,
    wait_without_ms: f64,
    wait_with_ms: f64,
    seconds: f64,
    track: Track,
}

impl Round {
    fn share(&self) -> f64 {
        self.rate_with / self.rate_without.max(1e-9)
    }
}

/// What a server reports about its last checkpoint; `None` if it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Reported {
    memory_bytes: Option<f64>,
    stall_ms: Option<f64>,
}

pub(super) fn run(harness: &mut Harness<'_>, specs: &[ServerSpec]) -> Result<Vec<Section>> {
    let rounds = harness.plan.rounds.unwrap_or(ROUNDS).max(1);
    harness.steps.expect(LOADS.len() * specs.len() * (rounds + 2));
    let keys = harness.scaled((DATA_BYTES / (16.0 + KIB.max as f64)) as u64);
    let data = Data::new(keys, KIB, harness.plan.settings.content.clone());
    let mut sections = Sections::new(&data);
    for load in &LOADS {
        let mut seen = Vec::new();
        for spec in specs {
            let server = start(harness, spec, load.directives, true)?;
            data.load(harness, &server)?;
            seen.push(observe(harness, &server, load, &data, rounds)?);
        }
        harness.pictures.push(picture(load, &data, &seen));
        sections.add(harness, load, &data, &seen);
    }
    Ok(sections.judged(harness))
}

/// Loads one server while it saves, round after round.
fn observe(harness: &Harness<'_>, server: &Server, load: &Load, data: &Data, rounds: usize) -> Result<Seen> {
    settle_disk(harness);
    let row = Row { test: TestSpec::parse(load.test)?, pipeline: 1, value_size: KIB, pace: Pace::Closed };
    let settings = Settings { warmup_seconds: 0.0, ..data.settings(harness) };
    let (stop, begun) = (AtomicBool::new(false), Instant::now());
    let (count, probes) = (Counter::new(begun), Probes::default());
    std::thread::scope(|scope| {
        let generator = scope.spawn(|| {
            let watch = &mut |progress: loadgen::generator::Progress| count.note(progress.operations);
            let ended = measure::run_until(&server.target, &settings, &row, &stop, watch);
            stop.store(true, Ordering::Relaxed);
            ended
        });
        let probe = scope.spawn(|| {
            let ended = probes.send(server, &settings, begun, &stop);
            stop.store(true, Ordering::Relaxed);
            ended
        });
        let looked = Observer { harness, server, load, count: &count, probes: &probes, stop: &stop, begun };
        let seen = looked.all(rounds);
        stop.store(true, Ordering::Relaxed);
        // If the generator failed, that is the cause of later failures.
        generator.join().expect("the generator does not panic")?;
        probe.join().expect("the probe does not panic")?;
        seen
    })
}

/// Asks the server to save and collects the observations.
struct Observer<'a> {
    harness: &'a Harness<'a>,
    server: &'a Server,
    load: &'a Load,
    count: &'a Counter,
    probes: &'a Probes,
    stop: &'a AtomicBool,
    begun: Instant,
}

impl Observer<'_> {
    fn all(&self, rounds: usize) -> Result<Seen> {
        let mut client = Client::connect(&self.server.target.address, &self.server.target.login)?;
        let without = self.harness.plan.seconds.unwrap_or(WITHOUT_SECONDS);
        let after = without * AFTER_SHARE;
        let name = &self.server.record.name;
        let mut seen = Vec::new();
        for round in 0..rounds {
            self.harness.steps.say(&format!("{name}, {}: checkpoint {}/{rounds}", self.load.title, round + 1));
            settle_disk(self.harness);
            self.wait(self.harness.plan.settings.warmup_seconds + without)?;
            let start = self.now();
            client.must(&["BGSAVE"])?;
            checkpoint::finish(self.server, &mut client)?;
            let end = self.now();
            self.wait(after)?;
            seen.push(self.round(start, end, without, after));
        }
        self.harness.steps.say(&format!("{name}, {}: memory", self.load.title));
        self.wait(without.min(1.0))?;
        let watch = MemoryWatch::begin(self.server.target.pid.expect("the harness started this server"))?;
        client.must(&["BGSAVE"])?;
        let persistence = checkpoint::finish(self.server, &mut client);
        let memory = watch.end()?;
        let reported = reported(&persistence?, &client.info_fields("stats")?);
        Ok(Seen { server: name.clone(), rounds: seen, memory, reported })
    }

    fn round(&self, start: f64, end: f64, without: f64, after: f64) -> Round {
        let step = STEP.as_secs_f64();
        let from = start - (without / step).floor() * step;
        let steps = ((end + after - from) / step).floor() as usize;
        let at = |step_number: usize| from + step * step_number as f64;
        Round {
            rate_without: self.count.rate(from, start),
            rate_with: self.count.rate(start, end),
            wait_without_ms: self.probes.longest_ms(from, start),
            wait_with_ms: self.probes.longest_ms(start, end),
            seconds: end - start,
            track: Track {
                server: self.server.record.name.clone(),
                from_seconds: from - start,
                step_seconds: step,
                end_seconds: end - start,
                values: (0..steps).map(|number| self.count.rate(at(number), at(number + 1))).collect(),
            },
        }
    }

    /// Waits while the load continues.
    fn wait(&self, seconds: f64) -> Result<()> {
        let end = self.now() + seconds;
        loop {
            loadgen::interrupt::check()?;
            let left = end - self.now();
            if left <= 0.0 {
                return Ok(());
            }
            if self.stop.load(Ordering::Relaxed) {
                // The error of the generator or the probe is reported instead.
                return Err(BenchError::Closed { address: self.server.target.address.to_string() });
            }
            std::thread::sleep(Duration::from_secs_f64(left.min(0.05)));
        }
    }

    fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }
}

/// Operations done by a time, as the generator's coordinator counts them.
struct Counter {
    begun: Instant,
    /// Seconds since `begun`, and operations.
    samples: std::sync::Mutex<Vec<(f64, f64)>>,
}

impl Counter {
    fn new(begun: Instant) -> Self {
        Self { begun, samples: std::sync::Mutex::default() }
    }

    fn note(&self, operations: u64) {
        let at = self.begun.elapsed().as_secs_f64();
        self.samples.lock().expect("no holder of this lock panics").push((at, operations as f64));
    }

    /// Operations per second between two times.
    fn rate(&self, from: f64, to: f64) -> f64 {
        let samples = self.samples.lock().expect("no holder of this lock panics");
        (interpolate(&samples, to) - interpolate(&samples, from)) / (to - from).max(1e-9)
    }
}

/// The count at a time between two samples; before the first and after the last, that sample's count.
fn interpolate(samples: &[(f64, f64)], at: f64) -> f64 {
    let after = samples.partition_point(|&(time, _)| time < at);
    match (after.checked_sub(1).map(|before| samples[before]), samples.get(after)) {
        (Some((t0, n0)), Some(&(t1, n1))) => n0 + (n1 - n0) * (at - t0) / (t1 - t0).max(1e-9),
        (Some((_, n)), None) | (None, Some(&(_, n))) => n,
        (None, None) => 0.0,
    }
}

/// The probe's waits: when each was due, in seconds from the beginning, and how long after that its reply came.
#[derive(Default)]
struct Probes(std::sync::Mutex<Vec<(f64, f64)>>);

impl Probes {
    /// Sends one change every millisecond until `stop`, whether or not earlier ones are answered: a slow server must
    /// not receive fewer.
    fn send(&self, server: &Server, settings: &Settings, begun: Instant, stop: &AtomicBool) -> Result<()> {
        let _pinned = PinnedThread::new(settings.generator_cores.as_ref())?;
        let template = Template::new(SET, &settings.key_format)?;
        let keys = KeyStream::new(Distribution::Uniform, settings.keys, settings.seed ^ 0x9B0B);
        let payload = Payload::new(&settings.content, KIB, settings.seed)?;
        let (mut rng, newest) = (Rng::new(settings.seed ^ 0x9B0B), AtomicU64::new(settings.keys));
        let address = || server.target.address.to_string();
        let broken = |source| BenchError::Connect { address: address(), source };
        let mut socket = Client::connect(&server.target.address, &server.target.login)?.into_socket();
        let (mut request, mut walker, mut buffer) = (Vec::new(), ReplyWalker::default(), [0; 4096]);
        let (mut unanswered, mut due, mut op) = (VecDeque::new(), begun.elapsed(), 0);
        while !stop.load(Ordering::Relaxed) {
            let now = begun.elapsed();
            while due <= now {
                let draw = &mut Draw {
                    rng: &mut rng,
                    keys: &keys,
                    key_count: settings.keys,
                    newest: &newest,
                    payload: &payload,
                    op,
                    ordered_fields: false,
                    given_key: None,
                };
                template.encode(&mut request, draw);
                unanswered.push_back(due);
                (due, op) = (due + PROBE_INTERVAL, op + 1);
            }
            socket.write_all(&request).map_err(broken)?;
            request.clear();
            if !is_readable_within(&socket, due.saturating_sub(begun.elapsed()))? {
                continue;
            }
            let length = socket.read(&mut buffer).map_err(broken)?;
            if length == 0 {
                return Err(BenchError::Closed { address: address() });
            }
            let mut replies = 0;
            walker
                .walk(&buffer[..length], |_| replies += 1)
                .map_err(|wrong| BenchError::NotResp { address: address(), byte: wrong.0 })?;
            let answered = begun.elapsed();
            let mut waits = self.0.lock().expect("no holder of this lock panics");
            waits.extend(unanswered.drain(..replies.min(unanswered.len())).map(|due: Duration| {
                let wait = answered.saturating_sub(due);
                (due.as_secs_f64(), wait.as_secs_f64())
            }));
        }
        Ok(())
    }

    /// The longest wait of the probes due between two times, in milliseconds.
    fn longest_ms(&self, from: f64, to: f64) -> f64 {
        let waits = self.0.lock().expect("no holder of this lock panics");
        let within = waits.iter().filter(|&&(due, _)| due >= from && due < to);
        within.map(|&(_, wait)| wait * 1e3).fold(0.0, f64::max)
    }
}

/// Waits for readable bytes with microsecond resolution, which a socket's own timeout lacks.
fn is_readable_within(socket: &Socket, wait: Duration) -> Result<bool> {
    let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
    let mut sockets = [PollFd::new(socket, PollFlags::IN)];
    match rustix::event::poll(&mut sockets, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(BenchError::System { op: "wait for a reply", source: error.into() }),
    }
}

type Fields = std::collections::HashMap<String, String>;

/// Reads a server's report of its last checkpoint: how much memory it took, and how long it blocked clients at its
/// start. For Redis and Valkey these are the memory copied on write and the fork; a server that never forks reports 0.
fn reported(persistence: &Fields, stats: &Fields) -> Reported {
    let number = |fields: &Fields, name: &str| fields.get(name).and_then(|value| value.parse::<f64>().ok());
    Reported {
        memory_bytes: number(persistence, "rdb_last_cow_size"),
        stall_ms: number(persistence, "checkpoint_last_stall_usec")
            .or_else(|| number(stats, "latest_fork_usec").filter(|&us| us > 0.0))
            .map(|us| us / 1e3),
    }
}

/// The course of the round with the median throughput.
fn picture(load: &Load, data: &Data, seen: &[Seen]) -> Picture {
    let typical = |seen: &Seen| {
        let mut order: Vec<&Round> = seen.rounds.iter().collect();
        order.sort_by(|a, b| a.share().total_cmp(&b.share()));
        order[order.len() / 2].track.clone()
    };
    Picture {
        title: format!("Throughput while a checkpoint runs: {}", load.title),
        about: format!(
            "{:.2} GB in {} keys, pipeline 1; the shaded time is the checkpoint. Of all rounds, the one whose \
             throughput fell by the median.",
            data.bytes() as f64 / 1e9,
            data.keys
        ),
        unit: "operations per second, every 100 ms".to_owned(),
        tracks: seen.iter().map(typical).collect(),
    }
}

/// The tables, filled load by load, and the targets of their rows.
struct Sections {
    throughput: (Section, Vec<Option<Target>>),
    wait: (Section, Vec<Option<Target>>),
    stall: (Section, Vec<Option<Target>>),
    memory: (Section, Vec<Option<Target>>),
    length: Section,
}

impl Sections {
    fn new(data: &Data) -> Self {
        let size = format!("{:.2} GB in {} keys of {} B", data.bytes() as f64 / 1e9, data.keys, KIB);
        Self {
            throughput: (
                section(
                    "Throughput during a checkpoint",
                    format!("Operations per second from BGSAVE to its end, over those of the seconds before; {size}."),
                    "of the throughput without",
                    Better::Higher,
                ),
                Vec::new(),
            ),
            wait: (
                section(
                    "Longest wait of a client",
                    "The slowest of the changes that a probe sends every millisecond, beside the load.".to_owned(),
                    "ms",
                    Better::Lower,
                ),
                Vec::new(),
            ),
            stall: (
                section(
                    "Stall at the start, as the server says",
                    "How long no client was served at the beginning of the last checkpoint: \
                     checkpoint_last_stall_usec, or the fork of Redis and Valkey (latest_fork_usec)."
                        .to_owned(),
                    "ms",
                    Better::Lower,
                ),
                Vec::new(),
            ),
            memory: (
                section(
                    "Extra memory of a checkpoint",
                    format!(
                        "The most that the server and its children took, pages that they share counted once, less what \
                         it took before; under the same load, of data of {:.0} MiB. And what INFO says.",
                        data.bytes() as f64 / MIB
                    ),
                    "MiB",
                    Better::Lower,
                ),
                Vec::new(),
            ),
            length: section(
                "Length of a checkpoint under load",
                "From BGSAVE until the server says that it is done. A slower one may be a kinder one.".to_owned(),
                "s",
                Better::Lower,
            ),
        }
    }

    fn add(&mut self, harness: &Harness<'_>, load: &Load, data: &Data, seen: &[Seen]) {
        let of_rounds = |figure: fn(&Round) -> f64| {
            cells(seen.iter().map(|each| (each.server.as_str(), each.rounds.iter().map(figure).collect::<Vec<_>>())))
        };
        let of_server = |figure: &dyn Fn(&Seen) -> Option<f64>| {
            cells(seen.iter().map(|each| (each.server.as_str(), figure(each).into_iter().collect::<Vec<_>>())))
        };
        let judged = |target: Target| load.is_judged.then_some(target);
        let title = load.title;

        push(harness, &mut self.throughput.0, title.to_owned(), of_rounds(Round::share));
        self.throughput.1.push(judged(THROUGHPUT));

        push(harness, &mut self.wait.0, format!("{title}, without"), of_rounds(|round| round.wait_without_ms));
        push(harness, &mut self.wait.0, format!("{title}, with"), of_rounds(|round| round.wait_with_ms));
        let own = seen.iter().find(|each| each.server == harness.plan.subject);
        let without =
            own.and_then(|own| median(&mut own.rounds.iter().map(|round| round.wait_without_ms).collect::<Vec<_>>()));
        let bound = without.map(|without| Target::at_most((WAIT_FACTOR * without + WAIT_MS).round(), None));
        self.wait.1.extend([None, bound.and_then(judged)]);

        let stalls = of_server(&|each| each.reported.stall_ms);
        if !stalls.is_empty() {
            push(harness, &mut self.stall.0, title.to_owned(), stalls);
            self.stall.1.push(judged(STALL));
        }

        push(
            harness,
            &mut self.memory.0,
            format!("{title}, measured"),
            of_server(&|each| Some(each.memory.extra() as f64 / MIB)),
        );
        let bound = (data.bytes() as f64 / MIB * MEMORY_SHARE + MEMORY_MIB).round();
        self.memory.1.push(judged(Target::at_most(bound, Some(MEMORY_MIB))));
        let told = of_server(&|each| Some(each.reported.memory_bytes? / MIB));
        if !told.is_empty() {
            push(harness, &mut self.memory.0, format!("{title}, as INFO says"), told);
            self.memory.1.push(None);
        }

        push(harness, &mut self.length, title.to_owned(), of_rounds(|round| round.seconds));
    }

    fn judged(self, harness: &Harness<'_>) -> Vec<Section> {
        let judge = |(section, targets): (Section, Vec<Option<Target>>)| harness.subject_section(section, &targets);
        let sections =
            vec![judge(self.throughput), judge(self.wait), judge(self.stall), judge(self.memory), self.length];
        sections.into_iter().filter(|section| !section.rows.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_between_samples_are_interpolated() {
        let samples = [(1.0, 100.0), (2.0, 200.0), (4.0, 200.0)];
        let at: Vec<f64> = [0.0, 1.0, 1.5, 2.0, 3.0, 9.0].map(|at| interpolate(&samples, at)).into();
        assert_eq!(at, [100.0, 100.0, 150.0, 200.0, 200.0, 200.0]);
        assert_eq!(interpolate(&[], 1.0), 0.0);
        let count = Counter { begun: Instant::now(), samples: std::sync::Mutex::new(samples.to_vec()) };
        assert_eq!((count.rate(1.0, 2.0), count.rate(2.0, 4.0)), (100.0, 0.0));
    }

    #[test]
    fn waits_belong_to_the_time_they_were_due() {
        let probes = Probes(std::sync::Mutex::new(vec![(1.0, 0.001), (2.0, 0.3), (3.0, 0.002)]));
        assert_eq!(probes.longest_ms(0.0, 2.0), 1.0);
        assert_eq!(probes.longest_ms(2.0, 3.0), 300.0);
        assert_eq!(probes.longest_ms(5.0, 6.0), 0.0);
    }

    #[test]
    fn what_a_server_does_not_say_is_left_out() {
        let fields = |pairs: &[(&str, &str)]| pairs.iter().map(|&(a, b)| (a.to_owned(), b.to_owned())).collect();
        let told = reported(&fields(&[("rdb_last_cow_size", "1048576")]), &fields(&[("latest_fork_usec", "1500")]));
        assert_eq!(told, Reported { memory_bytes: Some(1_048_576.0), stall_ms: Some(1.5) });
        assert_eq!(reported(&fields(&[]), &fields(&[("latest_fork_usec", "0")])), Reported::default());
        let own = reported(&fields(&[("checkpoint_last_stall_usec", "250")]), &fields(&[("latest_fork_usec", "0")]));
        assert_eq!(own.stall_ms, Some(0.25));
    }
}
