//! One thread of the generator: its loop, its connections, and at a fixed rate its schedule.

use super::{Counters, Extent, LOOK_UP, Pace, Run, Shared, nanoseconds, new_histogram};
use crate::client::Socket;
use crate::error::{BenchError, Result};
use crate::memcached;
use crate::resp::{NotResp, Reply, ReplyWalker};
use crate::template::{Draw, Protocol, Template};
use base::random::Rng;
use hdrhistogram::Histogram;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tls::ClientSocket;

const READ_BUFFER_BYTES: usize = 256 << 10;

/// One thread of the generator.
pub(super) struct Worker<'a> {
    run: &'a Run<'a>,
    shared: &'a Shared,
    counters: &'a Counters,
    poll: Poll,
    connections: Vec<Connection>,
    origin: Instant,
    /// Nanoseconds after `origin` where the window starts and ends.
    window: std::ops::Range<u64>,
    schedule: Option<Schedule>,
    weights: u64,
    latency: Histogram<u64>,
}

/// What a thread returns.
pub(super) struct Ended {
    pub(super) latency: Histogram<u64>,
    pub(super) finished: Instant,
    pub(super) first_error: Option<String>,
}

/// The due times of a fixed-rate run: this thread's n-th request is due at `(n + phase) * interval_ns`.
struct Schedule {
    interval_ns: f64,
    /// In [0, 1): spreads the threads' requests between each other's.
    phase: f64,
    next: u64,
    /// Wakes the loop with the resolution that epoll's own timeout lacks.
    timer: OwnedFd,
}

impl Schedule {
    fn due_ns(&self) -> u64 {
        ((self.next as f64 + self.phase) * self.interval_ns) as u64
    }
}

const TIMER: Token = Token(usize::MAX);

struct Connection {
    socket: Stream,
    walker: Walker,
    rng: Rng,
    /// Encoded requests; the kernel has those before `sent`.
    out: Vec<u8>,
    sent: usize,
    /// Requests without a reply, grouped by their start time.
    in_flight: VecDeque<(u64, usize)>,
    in_flight_count: usize,
    /// Fixed rate: due times of requests that wait because the pipeline is full.
    waiting: VecDeque<u64>,
    /// With a fill command: the key of each read in flight, `None` for a fill.
    asked: VecDeque<Option<u64>>,
    /// Missed keys that the next requests will fill.
    missed: Vec<u64>,
    /// Number of the next operation; see I2.
    next_op: u64,
}

/// Parses replies of the server's protocol.
enum Walker {
    Resp(ReplyWalker),
    Memcached(memcached::Walker),
}

impl Walker {
    fn new(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Resp => Self::Resp(ReplyWalker::default()),
            Protocol::Memcached => Self::Memcached(memcached::Walker::default()),
        }
    }

    #[inline]
    fn walk(&mut self, input: &[u8], each: impl FnMut(Reply)) -> std::result::Result<(), NotResp> {
        match self {
            Self::Resp(walker) => walker.walk(input, each),
            Self::Memcached(walker) => walker.walk(input, each),
        }
    }

    fn error(&self) -> Option<&str> {
        match self {
            Self::Resp(walker) => walker.error(),
            Self::Memcached(walker) => walker.error(),
        }
    }
}

enum Stream {
    Tcp(mio::net::TcpStream),
    Unix(mio::net::UnixStream),
    Tls(Box<ClientSocket>),
}

impl Stream {
    fn new(socket: Socket) -> io::Result<Self> {
        Ok(match socket {
            Socket::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                Self::Tcp(mio::net::TcpStream::from_std(stream))
            }
            Socket::Unix(stream) => {
                stream.set_nonblocking(true)?;
                Self::Unix(mio::net::UnixStream::from_std(stream))
            }
            Socket::Tls(stream) => {
                stream.set_nonblocking(true)?;
                Self::Tls(stream)
            }
        })
    }

    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interests = Interest::READABLE | Interest::WRITABLE;
        match self {
            Self::Tcp(stream) => registry.register(stream, token, interests),
            Self::Unix(stream) => registry.register(stream, token, interests),
            Self::Tls(stream) => registry.register(&mut SourceFd(&stream.as_fd().as_raw_fd()), token, interests),
        }
    }

    /// Whether a read that leaves room in the buffer has taken everything. With TLS, records may be left.
    fn ends_with_short_read(&self) -> bool {
        !matches!(self, Self::Tls(_))
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    /// Sends what an earlier write has accepted and encrypted.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        run: &'a Run<'a>,
        shared: &'a Shared,
        at: usize,
        threads: usize,
        share: Vec<(usize, Socket)>,
        origin: Instant,
    ) -> Result<Self> {
        let system = |op| move |source| BenchError::System { op, source };
        let poll = Poll::new().map_err(system("create an epoll instance"))?;
        let mut connections = Vec::with_capacity(share.len());
        for (index, socket) in share {
            let mut socket = Stream::new(socket).map_err(system("make a socket non-blocking"))?;
            socket
                .register(poll.registry(), Token(connections.len()))
                .map_err(system("register a socket with epoll"))?;
            connections.push(Connection {
                socket,
                walker: Walker::new(run.protocol),
                rng: Rng::new(run.seed.wrapping_add((index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))),
                out: Vec::new(),
                sent: 0,
                in_flight: VecDeque::new(),
                in_flight_count: 0,
                waiting: VecDeque::new(),
                asked: VecDeque::new(),
                missed: Vec::new(),
                next_op: index as u64,
            });
        }
        let schedule = match run.pace {
            Pace::Closed => None,
            Pace::Rate(rate) => {
                let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)
                    .map_err(|error| BenchError::System { op: "create a timer", source: error.into() })?;
                poll.registry()
                    .register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)
                    .map_err(system("register a timer with epoll"))?;
                // A thread with one more connection carries that connection's share of the rate.
                let own_rate = rate * connections.len() as f64 / run.connections as f64;
                Some(Schedule { interval_ns: 1e9 / own_rate, phase: at as f64 / threads as f64, next: 0, timer })
            }
        };
        let window = match run.extent {
            Extent::Time { warmup, measured } => nanoseconds(warmup)..nanoseconds(warmup + measured),
            Extent::Operations(_) => 0..u64::MAX,
        };
        Ok(Self {
            run,
            shared,
            counters: &shared.counters[at],
            poll,
            connections,
            origin,
            window,
            schedule,
            weights: run.commands.iter().map(|&(_, weight)| u64::from(weight)).sum(),
            latency: new_histogram(),
        })
    }

    /// The loop, until the window has ended or all operations are answered.
    pub(super) fn drive(mut self) -> Result<Ended> {
        let mut events = Events::with_capacity(1024);
        let mut buffer = vec![0; READ_BUFFER_BYTES];
        let drain_end = self.window.end.saturating_add(nanoseconds(self.run.drain));
        loop {
            let now = self.now();
            if self.shared.stop.load(Ordering::Relaxed) || now >= drain_end || self.is_done(now) {
                break;
            }
            self.release_due(now)?;
            let timeout = self.arm_timer(now)?;
            match self.poll.poll(&mut events, Some(timeout)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result.map_err(|source| BenchError::System { op: "wait for events", source })?,
            }
            for event in &events {
                if event.token() == TIMER {
                    continue;
                }
                let at = event.token().0;
                if event.is_readable() {
                    self.receive(at, &mut buffer, event.is_read_closed())?;
                }
                self.fill_pipeline(at);
                self.send(at)?;
            }
        }
        self.record_unanswered();
        let first_error = self.connections.iter().find_map(|connection| connection.walker.error().map(str::to_owned));
        Ok(Ended { latency: self.latency, finished: Instant::now(), first_error })
    }

    fn now(&self) -> u64 {
        nanoseconds(self.origin.elapsed())
    }

    fn is_done(&self, now: u64) -> bool {
        let idle = || self.connections.iter().all(|each| each.in_flight_count == 0 && each.waiting.is_empty());
        match (self.run.extent, &self.schedule) {
            (Extent::Time { .. }, None) => now >= self.window.end,
            (Extent::Time { .. }, Some(schedule)) => schedule.due_ns() >= self.window.end && idle(),
            (Extent::Operations(count), _) => self.connections.iter().all(|each| each.next_op >= count) && idle(),
        }
    }

    /// Fixed rate: passes every request that is due to its connection.
    fn release_due(&mut self, now: u64) -> Result<()> {
        loop {
            let Some(schedule) = &mut self.schedule else { return Ok(()) };
            let due = schedule.due_ns();
            if due > now || due >= self.window.end {
                return Ok(());
            }
            let at = (schedule.next % self.connections.len() as u64) as usize;
            schedule.next += 1;
            self.connections[at].waiting.push_back(due);
            self.fill_pipeline(at);
            self.send(at)?;
        }
    }

    /// How long to wait for sockets; the timer wakes the loop for an earlier due time.
    fn arm_timer(&mut self, now: u64) -> Result<Duration> {
        let Some(schedule) = &self.schedule else { return Ok(LOOK_UP) };
        let wait_ns = schedule.due_ns().saturating_sub(now);
        if wait_ns == 0 {
            return Ok(Duration::ZERO);
        }
        if schedule.due_ns() < self.window.end {
            let none = Timespec { tv_sec: 0, tv_nsec: 0 };
            let first =
                Timespec { tv_sec: (wait_ns / 1_000_000_000) as i64, tv_nsec: (wait_ns % 1_000_000_000) as i64 };
            let spec = Itimerspec { it_interval: none, it_value: first };
            rustix::time::timerfd_settime(&schedule.timer, TimerfdTimerFlags::empty(), &spec)
                .map_err(|error| BenchError::System { op: "set the timer", source: error.into() })?;
        }
        Ok(LOOK_UP)
    }

    /// Reads everything available, parses the replies and records them. A short read means that nothing is left, unless
    /// the server has closed: then the end of file came in the same event, and no further event will.
    fn receive(&mut self, at: usize, buffer: &mut [u8], closed: bool) -> Result<()> {
        loop {
            let connection = &mut self.connections[at];
            let length = match connection.socket.read(buffer) {
                Ok(0) => return Err(self.closed(at)),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Err(self.closed(at)),
                Err(source) => return Err(BenchError::System { op: "read from the server", source }),
            };
            let now = nanoseconds(self.origin.elapsed());
            let Connection { walker, asked, missed, .. } = connection;
            let (mut replies, mut misses, mut fills, mut errors) = (0, 0, 0, 0);
            let fills_misses = self.run.fill.is_some();
            walker
                .walk(&buffer[..length], |reply| {
                    replies += 1;
                    errors += u64::from(reply == Reply::Error);
                    if fills_misses {
                        match asked.pop_front().flatten() {
                            Some(key) if reply == Reply::Nil => {
                                misses += 1;
                                missed.push(key);
                            }
                            Some(_) => {}
                            None => fills += 1,
                        }
                    } else {
                        misses += u64::from(reply == Reply::Nil);
                    }
                })
                .map_err(|wrong| BenchError::NotResp { address: self.run.address.to_string(), byte: wrong.0 })?;
            let add =
                |counter: &AtomicU64, n: u64| counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
            add(&self.counters.operations, replies as u64);
            add(&self.counters.misses, misses);
            add(&self.counters.fills, fills);
            add(&self.counters.errors, errors);
            self.record(at, replies, now)?;
            if length < buffer.len() && !closed && self.connections[at].socket.ends_with_short_read() {
                return Ok(());
            }
        }
    }

    fn closed(&self, at: usize) -> BenchError {
        let address = self.run.address.to_string();
        match self.connections[at].walker.error() {
            Some(reply) => BenchError::Refused { address, command: self.command_text(), reply: reply.to_owned() },
            None => BenchError::Closed { address },
        }
    }

    fn command_text(&self) -> String {
        self.run.commands.first().map_or_else(String::new, |(template, _)| template.text().to_owned())
    }

    /// Removes `replies` requests from flight, answered at `now`.
    fn record(&mut self, at: usize, mut replies: usize, now: u64) -> Result<()> {
        let connection = &mut self.connections[at];
        connection.in_flight_count = connection
            .in_flight_count
            .checked_sub(replies)
            .ok_or_else(|| BenchError::Unasked { address: self.run.address.to_string() })?;
        while replies > 0 {
            let Some((start, count)) = connection.in_flight.front_mut() else { break };
            let taken = replies.min(*count);
            let counts = if self.schedule.is_some() { self.window.contains(start) } else { self.window.contains(&now) };
            if counts {
                self.latency.saturating_record_n(now.saturating_sub(*start), taken as u64);
            }
            replies -= taken;
            *count -= taken;
            if *count == 0 {
                connection.in_flight.pop_front();
            }
        }
        Ok(())
    }

    /// Fixed rate: requests without a reply at the end have waited at least until now.
    fn record_unanswered(&mut self) {
        if self.schedule.is_none() {
            return;
        }
        let now = self.now();
        for connection in &self.connections {
            let waiting = connection.waiting.iter().map(|&start| (start, 1));
            for (start, count) in connection.in_flight.iter().copied().chain(waiting) {
                if self.window.contains(&start) {
                    self.latency.saturating_record_n(now.saturating_sub(start), count as u64);
                }
            }
        }
    }

    /// Encodes the requests that may be sent now.
    fn fill_pipeline(&mut self, at: usize) {
        if self.schedule.is_some() {
            while self.connections[at].in_flight_count < self.run.pipeline {
                let Some(start) = self.connections[at].waiting.pop_front() else { return };
                self.encode(at, start, 1);
            }
        } else if self.connections[at].in_flight_count == 0 {
            let start = self.now();
            self.encode(at, start, self.run.pipeline);
        }
    }

    fn encode(&mut self, at: usize, start: u64, count: usize) {
        let run = self.run;
        let connection = &mut self.connections[at];
        let limit = match run.extent {
            Extent::Operations(count) => count,
            Extent::Time { .. } => u64::MAX,
        };
        let (mut encoded, mut value_bytes) = (0, 0);
        while encoded < count {
            let given_key = connection.missed.pop();
            if given_key.is_none() && connection.next_op >= limit {
                break;
            }
            let template = match (given_key, run.fill) {
                (Some(_), Some(fill)) => fill,
                _ => pick(run.commands, self.weights, &mut connection.rng),
            };
            let made = template.encode(
                &mut connection.out,
                &mut Draw {
                    rng: &mut connection.rng,
                    keys: run.keys,
                    key_count: run.key_count,
                    newest: &self.shared.newest,
                    payload: run.payload,
                    op: connection.next_op,
                    ordered_fields: run.ordered_fields,
                    given_key,
                },
            );
            if run.fill.is_some() {
                connection.asked.push_back(given_key.is_none().then_some(made.key));
            }
            if given_key.is_none() {
                connection.next_op += run.connections as u64;
            }
            value_bytes += made.value_bytes;
            encoded += 1;
        }
        if encoded > 0 {
            connection.in_flight.push_back((start, encoded));
            connection.in_flight_count += encoded;
            let sum = self.counters.value_bytes.load(Ordering::Relaxed) + value_bytes;
            self.counters.value_bytes.store(sum, Ordering::Relaxed);
        }
    }

    /// Sends until everything is sent or the kernel accepts no more; the next writable event continues.
    fn send(&mut self, at: usize) -> Result<()> {
        let connection = &mut self.connections[at];
        let mut done = connection.socket.flush().map(|()| 0);
        loop {
            match done {
                Ok(length) => connection.sent += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                    return Err(self.closed(at));
                }
                Err(source) => return Err(BenchError::System { op: "send to the server", source }),
            }
            if connection.sent == connection.out.len() {
                break;
            }
            done = connection.socket.write(&connection.out[connection.sent..]);
        }
        connection.out.clear();
        connection.sent = 0;
        Ok(())
    }
}

/// One command, by weight.
#[inline]
fn pick<'t>(commands: &'t [(Template, u32)], weights: u64, rng: &mut Rng) -> &'t Template {
    if let [(only, _)] = commands {
        return only;
    }
    let mut ticket = rng.below(weights);
    for (template, weight) in commands {
        match ticket.checked_sub(u64::from(*weight)) {
            Some(rest) => ticket = rest,
            None => return template,
        }
    }
    unreachable!("the ticket is below the sum of the weights")
}
