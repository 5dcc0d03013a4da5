//! `lqdetect`: requests for collections that look at many elements, some of each command.
//!
//! ```text
//! a handler --> Request::note_cost --> LongQueries::least <= cost? --> a count, and a sample of at most 500 bytes
//! ```
//!
//! L1. At most [`SAMPLES_MAX`] samples of each of ten commands are kept: 100 KB. When all are there, it ends.

use super::stamps::{stamp, time_of_day};
use super::{Request, for_administrators};
use crate::tally::Op;
use base::UnixMs;
use calendar::{TimeZone, system_zone};
use command::{Ctx, Stop};
use parking_lot::Mutex;
use proto::memcached::parse_unsigned;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Elements that make a request a long one, unless another number is given.
const THRESHOLD: u64 = 4000;
/// Samples of one command.
const SAMPLES_MAX: usize = 20;
/// Bytes of a sample.
const SAMPLE_BYTES_MAX: usize = 500;
/// No request costs that much.
const OFF: u64 = u64::MAX;

const BAD_FORMAT: Stop = Stop::error("CLIENT_ERROR bad command line format");
const USAGE: &str = "\t* Usage: lqdetect [start [threshold] | stop | show | stats]\n";

/// Commands that may be long, in ARCUS' order.
const COMMANDS: [(Op, &str); 10] = [
    (Op::SopGet, "sop get"),
    (Op::MopDelete, "mop delete"),
    (Op::MopGet, "mop get"),
    (Op::LopInsert, "lop insert"),
    (Op::LopDelete, "lop delete"),
    (Op::LopGet, "lop get"),
    (Op::BopDelete, "bop delete"),
    (Op::BopGet, "bop get"),
    (Op::BopCount, "bop count"),
    (Op::BopGbp, "bop gbp"),
];

/// Long requests of one command.
#[derive(Default)]
struct Seen {
    count: u64,
    /// What makes two requests alike, and the line that is shown.
    samples: Vec<(Vec<u8>, Vec<u8>)>,
}

/// How the last run ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Stopped,
    Full,
    Running,
}

impl State {
    fn text(self) -> &'static str {
        match self {
            Self::Stopped => "stopped by explicit request",
            Self::Full => "stopped by internal buffer overflow",
            Self::Running => "running",
        }
    }
}

/// A run from its start on, and after its end.
struct Run {
    state: State,
    threshold: u64,
    begun: UnixMs,
    ended: UnixMs,
    zone: TimeZone,
    seen: [Seen; COMMANDS.len()],
}

impl Run {
    fn new(threshold: u64, now: UnixMs) -> Self {
        let (state, seen) = (State::Running, Default::default());
        Self { state, threshold, begun: now, ended: 0, zone: system_zone(), seen }
    }

    fn end(&mut self, state: State, now: UnixMs) {
        (self.state, self.ended) = (state, now);
    }

    fn stats(&self) -> String {
        let total: u64 = self.seen.iter().map(|seen| seen.count).fold(0, u64::saturating_add);
        format!(
            "\tLong query detection stats : {}\n\tThe last running time : {} ~ {}\n\
             \tThe number of total long query commands : {total}\n\tThe detection threshold : {}\n",
            self.state.text(),
            stamp(self.begun, &self.zone),
            stamp(self.ended, &self.zone),
            self.threshold,
        )
    }

    fn shown(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for ((_, name), seen) in COMMANDS.iter().zip(&self.seen) {
            out.extend_from_slice(format!("{name} : {}\n", seen.count).as_bytes());
            seen.samples.iter().for_each(|(_, line)| out.extend_from_slice(line));
        }
        out
    }

    /// Whether all commands have their samples.
    fn is_full(&self) -> bool {
        self.seen.iter().all(|seen| seen.samples.len() >= SAMPLES_MAX)
    }
}

/// What a request was.
struct Long<'a> {
    op: Op,
    key: &'a [u8],
    words: &'a [&'a [u8]],
    cost: u64,
    address: &'a str,
}

/// The long requests of a server.
pub struct LongQueries {
    /// The threshold while it runs, or [`OFF`]. Written under the lock of `run`; a request that reads an older one is
    /// looked at again there.
    least: AtomicU64,
    run: Mutex<Option<Box<Run>>>,
}

impl Default for LongQueries {
    fn default() -> Self {
        Self { least: AtomicU64::new(OFF), run: Mutex::new(None) }
    }
}

impl LongQueries {
    /// The cost from which on requests are long; more than any cost while it is off.
    fn least(&self) -> u64 {
        self.least.load(Ordering::Relaxed)
    }

    /// False when it runs already.
    fn start(&self, threshold: u64, now: UnixMs) -> bool {
        let mut run = self.run.lock();
        if run.as_ref().is_some_and(|run| run.state == State::Running) {
            return false;
        }
        *run = Some(Box::new(Run::new(threshold, now)));
        self.least.store(threshold, Ordering::Relaxed);
        true
    }

    /// False when it does not run.
    fn stop(&self, now: UnixMs) -> bool {
        let mut run = self.run.lock();
        let Some(run) = run.as_mut().filter(|run| run.state == State::Running) else { return false };
        run.end(State::Stopped, now);
        self.least.store(OFF, Ordering::Relaxed);
        true
    }

    fn note(&self, long: &Long<'_>, now: UnixMs) {
        let mut run = self.run.lock();
        let Some(run) = run.as_mut().filter(|run| run.state == State::Running) else { return };
        let Some(at) = COMMANDS.iter().position(|(op, _)| *op == long.op) else { return };
        let (time, name) = (time_of_day(now, &run.zone), COMMANDS.get(at).map_or("", |(_, name)| name));
        let Some(seen) = run.seen.get_mut(at).filter(|_| long.cost >= run.threshold) else { return };
        seen.count = seen.count.saturating_add(1);
        let words = long.words.join(&b' ');
        // As in ARCUS, requests are alike by what they ask for; those for all elements by their keys.
        let alike = match long.op {
            Op::SopGet | Op::MopGet | Op::MopDelete if words.starts_with(b"0") => long.key.to_vec(),
            _ => words.clone(),
        };
        if seen.samples.len() >= SAMPLES_MAX || seen.samples.iter().any(|(other, _)| *other == alike) {
            return;
        }
        let mut line = format!("{time} {} <{}> {name} ", long.address, long.cost).into_bytes();
        line.extend_from_slice(&[long.key, &words].join(&b' '));
        line.truncate(SAMPLE_BYTES_MAX.saturating_sub(1));
        line.push(b'\n');
        seen.samples.push((alike, line));
        if run.is_full() {
            run.end(State::Full, now);
            self.least.store(OFF, Ordering::Relaxed);
        }
    }
}

/// Whether costs are asked for.
pub fn is_on(ctx: &Ctx<'_>) -> bool {
    ctx.host.part::<crate::Needed, Arc<LongQueries>>().least() != OFF
}

impl Request<'_> {
    /// Notes how many elements the request has looked at.
    pub(super) fn note_cost(&self, ctx: &Ctx<'_>, cost: u64) {
        let queries = ctx.host.part::<crate::Needed, Arc<LongQueries>>();
        if cost >= queries.least() {
            let (op, key, words, address) = (self.op, self.key.bytes, &*self.words, ctx.session.info.address.host());
            queries.note(&Long { op, key, words, cost, address: &address }, ctx.now());
        }
    }
}

/// `lqdetect start [threshold]`, `stop`, `show` or `stats`
pub fn long_queries(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    for_administrators(ctx)?;
    let (queries, now) = (ctx.host.part::<crate::Needed, Arc<LongQueries>>(), ctx.now());
    let words: Vec<&[u8]> = ctx.args.from(1).collect();
    let threshold = match *words.as_slice() {
        [b"start"] => Some(THRESHOLD),
        [b"start", threshold, ..] => {
            let threshold = parse_unsigned(threshold).filter(|number| *number <= u64::from(u32::MAX));
            Some(threshold.map(|number| if number == 0 { THRESHOLD } else { number }).ok_or(BAD_FORMAT)?)
        }
        _ => None,
    };
    let text = match (threshold, words.as_slice()) {
        (Some(threshold), _) if queries.start(threshold, now) => "\tlong query detection started.\n",
        (Some(_), _) => "\tlong query detection already started.\n",
        (None, [b"stop", ..]) if queries.stop(now) => "\tlong query detection stopped.\n",
        (None, [b"stop", ..]) => "\tlong query detection already stopped.\n",
        (None, [what @ (b"show" | b"stats"), ..]) => {
            let run = queries.run.lock();
            // Before the first start there is what an empty run would show.
            let none = || Box::new(Run { state: State::Stopped, threshold: 0, ..Run::new(0, 0) });
            let empty = if run.is_none() { Some(none()) } else { None };
            let Some(run) = run.as_ref().or(empty.as_ref()) else { return Ok(()) };
            let bytes = if *what == b"show" { run.shown() } else { run.stats().into_bytes() };
            ctx.reply.raw(&bytes);
            return Ok(());
        }
        _ => USAGE,
    };
    ctx.reply.text_line(text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(queries: &LongQueries, op: Op, key: &str, words: &[&[u8]], cost: u64) {
        let address = "127.0.0.1";
        queries.note(&Long { op, key: key.as_bytes(), words, cost, address }, 1_790_000_000_123);
    }

    fn shown(queries: &LongQueries) -> String {
        String::from_utf8(queries.run.lock().as_ref().expect("it was started").shown()).expect("text")
    }

    #[test]
    fn samples_are_bounded_and_different() {
        let queries = LongQueries::default();
        note(&queries, Op::BopGet, "b", &[b"0..9"], 9999);
        assert!(queries.start(10, 1) && !queries.start(20, 2) && queries.least() == 10);
        note(&queries, Op::BopGet, "b", &[b"0..9", b"5"], 9);
        for _ in 0..2 {
            note(&queries, Op::BopGet, "b", &[b"0..9", b"5"], 10);
            note(&queries, Op::SopGet, "s", &[b"0"], 4000);
        }
        note(&queries, Op::SopGet, "t", &[b"0"], 4001);
        let text = shown(&queries);
        assert!(text.starts_with("sop get : 3\n") && text.contains("\nmop delete : 0\nmop get : 0\n"), "{text}");
        assert!(text.contains(".123000 127.0.0.1 <10> bop get b 0..9 5\nbop count : 0\n"), "{text}");
        assert_eq!(text.lines().filter(|line| line.contains("127.0.0.1")).count(), 3, "{text}");
        for number in 0..30 {
            note(&queries, Op::LopGet, &"k".repeat(1000), &[format!("0..{number}").as_bytes()], 100);
        }
        let lines = shown(&queries).lines().filter(|line| line.len() == SAMPLE_BYTES_MAX - 1).count();
        assert_eq!(lines, SAMPLES_MAX);
        assert!(queries.stop(2) && !queries.stop(3) && queries.least() == OFF);
    }

    #[test]
    fn a_run_ends_when_all_commands_have_their_samples() {
        let queries = LongQueries::default();
        assert!(queries.start(0, 1));
        for (op, _) in COMMANDS {
            assert!(queries.least() == 0);
            (0..SAMPLES_MAX).for_each(|at| note(&queries, op, &at.to_string(), &[format!("1{at}").as_bytes()], 1));
        }
        let stats = queries.run.lock().as_ref().expect("it was started").stats();
        assert!(stats.starts_with("\tLong query detection stats : stopped by internal buffer overflow\n"), "{stats}");
        assert!(stats.contains("commands : 200\n\tThe detection threshold : 0\n"), "{stats}");
        assert!(queries.least() == OFF && queries.start(0, 2), "it can be started again");
    }
}
