//! Mailbox and restarted requests under schedules that shuttle chooses: built with `--cfg shuttle`, empty otherwise.
//!
//! A worker here waits for its wake-up without the time limit that its loop has, so a lost wake-up is a deadlock, which
//! shuttle reports. SHUTTLE_SCHEDULES says how many schedules to try; a failing one is printed and repeats with
//! `shuttle::replay`. The store's `lock_order` tests the locks below alone.
#![cfg(shuttle)]

use base::clock::ManualClock;
use base::random::SeededEntropy;
use command::Session;
use command::stats::WorkerStats;
use config::Settings;
use server::assembly::{Commands, ServerBuilder};
use server::connection::Connection;
use server::executor::{Executor, Flow, Shared};
use server::fetching::{Fetches, RowThreads};
use server::mailbox::Mailbox;
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::{Condvar, Mutex};
use shuttle::{Config, Runner, thread};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use store::{Wake, WorkerSet};

/// Changes of the running thread that the schedules of PCT have room for.
const PCT_DEPTH: usize = 4;

/// Half of the schedules are drawn evenly, half by PCT (Burckhardt et al., ASPLOS 2010). `ONGGI_TEST_SEED` gives
/// others.
fn check(share: usize, test: fn()) {
    let schedules: usize = std::env::var("SHUTTLE_SCHEDULES").map_or(1_000, |count| count.parse().expect("a number"));
    let schedules = (schedules / share).max(2);
    let mut config = Config::new();
    config.stack_size = 1024 * 1024;
    // Shuttle's atomics are sequentially consistent; weaker orders are for Miri and ThreadSanitizer to judge.
    config.silence_warnings = true;
    let seed: u64 = std::env::var("ONGGI_TEST_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    Runner::new(RandomScheduler::new_from_seed(seed, schedules / 2), config.clone()).run(test);
    Runner::new(PctScheduler::new_from_seed(seed, PCT_DEPTH, schedules / 2), config).run(test);
}

/// An event queue with one event: it ends a wait once for any number of calls before it, as an edge-triggered eventfd
/// does.
#[derive(Default)]
struct Event {
    rung: Mutex<bool>,
    condition: Condvar,
    calls: AtomicUsize,
}

impl Event {
    fn ring(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        *self.rung.lock().expect("no test panics while holding it") = true;
        self.condition.notify_one();
    }

    fn wait(&self) {
        let mut rung = self.rung.lock().expect("no test panics while holding it");
        while !*rung {
            rung = self.condition.wait(rung).expect("no test panics while holding it");
        }
        *rung = false;
    }

    fn mailbox<M>(self: &Arc<Self>) -> Arc<Mailbox<M>> {
        let event = self.clone();
        Arc::new(Mailbox::new(move || {
            event.ring();
            Ok(())
        }))
    }
}

/// Messages of several senders arrive once each and in each sender's order; the owner sleeps whenever it has found
/// nothing (M1), and is not woken more often than it looked (M2).
#[test]
fn every_message_arrives_once() {
    const SENDERS: usize = 3;
    const MESSAGES: usize = 3;
    check(1, || {
        let event = Arc::new(Event::default());
        let mailbox = event.mailbox();
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let mailbox = mailbox.clone();
                thread::spawn(move || (0..MESSAGES).for_each(|number| mailbox.send((sender, number))))
            })
            .collect();
        let (mut messages, mut looks) = (Vec::new(), 0);
        while messages.len() < SENDERS * MESSAGES {
            event.wait();
            looks += 1;
            mailbox.take(&mut messages);
        }
        senders.into_iter().for_each(|sender| sender.join().expect("senders do not fail"));
        for sender in 0..SENDERS {
            let numbers: Vec<usize> =
                messages.iter().filter(|(from, _)| *from == sender).map(|(_, number)| *number).collect();
            assert_eq!(numbers, [0, 1, 2], "sender {sender}");
        }
        let calls = event.calls.load(Ordering::Relaxed);
        assert!(calls <= looks + 1, "{calls} system calls for {looks} looks");
        mailbox.take(&mut messages);
        assert_eq!(messages.len(), SENDERS * MESSAGES, "nothing is delivered twice");
    });
}

/// A wake-up without a message is as good: what changed before it is seen after it.
#[test]
fn every_change_is_seen() {
    const CHANGERS: u64 = 3;
    check(1, || {
        let event = Arc::new(Event::default());
        let mailbox = event.mailbox::<()>();
        let watched = Arc::new(shuttle::sync::atomic::AtomicU64::new(0));
        let changers: Vec<_> = (0..CHANGERS)
            .map(|_| {
                let (mailbox, watched) = (mailbox.clone(), watched.clone());
                thread::spawn(move || {
                    watched.fetch_add(1, Ordering::SeqCst);
                    mailbox.wake();
                })
            })
            .collect();
        loop {
            event.wait();
            mailbox.take(&mut Vec::new());
            if watched.load(Ordering::SeqCst) == CHANGERS {
                break;
            }
        }
        changers.into_iter().for_each(|changer| changer.join().expect("changers do not fail"));
    });
}

const WORKERS: usize = 2;
const CLIENTS: usize = 2;
const REQUESTS: usize = 4;

/// Wakes workers as the server does: through their mailboxes.
struct Mailboxes(Vec<Arc<Mailbox<()>>>);

impl Wake for Mailboxes {
    fn wake(&self, workers: WorkerSet) {
        let woken = self.0.iter().enumerate().filter(|(number, _)| workers.contains(*number));
        woken.for_each(|(_, mailbox)| mailbox.wake());
    }
}

/// A server of one worker's parts. Its table is the same for all schedules, since nothing in it changes.
fn shared(wake: Arc<dyn Wake>) -> Arc<Shared> {
    static COMMANDS: OnceLock<Commands> = OnceLock::new();
    let settings = Settings { shards: 4, databases: 1, workers: WORKERS as u32, ..Settings::default() };
    let clock = Arc::new(ManualClock::new(1_700_000_000_000));
    let builder = ServerBuilder::new(settings, clock, Arc::new(SeededEntropy::new(1)), wake);
    let assembly = builder.commands(COMMANDS.get_or_init(Commands::all).clone()).assemble();
    let fetches = Fetches::new(Box::new(RowThreads::new()), |_, _| {});
    assembly.finish(Box::new(()), fetches, Box::new(|_| {})).expect("default users")
}

/// One line of the replies a client has to get.
#[derive(Debug)]
enum Line {
    Exactly(String),
    Begins(&'static str),
    /// The counter that all clients increment: higher than this client saw it last.
    Shared,
}

/// A client: its requests not yet sent, the lines it has to get and what it got.
struct Client {
    id: usize,
    chunks: Vec<Vec<u8>>,
    expected: Vec<Line>,
    replies: Vec<u8>,
    shared_increments: u64,
}

impl Client {
    /// Random requests in one or several pieces.
    fn new(id: usize, name: &str) -> Self {
        let mut client =
            Self { id, chunks: vec![Vec::new()], expected: Vec::new(), replies: Vec::new(), shared_increments: 0 };
        let own = format!("own:{name}");
        let mut count = 0;
        for _ in 0..REQUESTS {
            match thread_rng().gen_range(0..10) {
                0 | 1 => {
                    count += 1;
                    client.request(&["INCR", &own], Line::Exactly(format!(":{count}")));
                }
                2 | 3 => client.request(&["INCR", "shared"], Line::Shared),
                4 => client.request(&["MSET", "a", "1", "b", "2", "c", "3", "d", "4"], Line::Exactly("+OK".into())),
                // Takes every lock.
                5 => client.request(&["SWAPDB", "0", "0"], Line::Exactly("+OK".into())),
                // Takes every lock, one after the other.
                6 => client.request(&["KEYS", "none"], Line::Exactly("*0".into())),
                7 if count > 0 => {
                    client.request(&["KEYS", &own], Line::Exactly("*1".into()));
                    client.expected.push(Line::Exactly(format!("${}", own.len())));
                    client.expected.push(Line::Exactly(own.clone()));
                }
                // Cannot run at all, and keeps its place in the order all the same.
                8 => client.request(&["NOSUCH"], Line::Begins("-ERR unknown command")),
                _ => {
                    count += 1;
                    client.request(&["MULTI"], Line::Exactly("+OK".into()));
                    client.request(&["INCR", &own], Line::Exactly("+QUEUED".into()));
                    client.request(&["INCR", "shared"], Line::Exactly("+QUEUED".into()));
                    client.request(&["EXEC"], Line::Exactly("*2".into()));
                    client.expected.push(Line::Exactly(format!(":{count}")));
                    client.expected.push(Line::Shared);
                }
            }
            if thread_rng().gen_range(0..3) == 0 {
                client.chunks.insert(0, Vec::new());
            }
        }
        client.shared_increments = client.expected.iter().filter(|line| matches!(line, Line::Shared)).count() as u64;
        client
    }

    /// Chunks are taken from the end, so the one being filled is the first.
    fn request(&mut self, words: &[&str], expected: Line) {
        let chunk = &mut self.chunks[0];
        chunk.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        words.iter().for_each(|word| chunk.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes()));
        self.expected.push(expected);
    }

    /// Every request was answered once, in the order it was sent.
    fn check(&self) {
        let replies = String::from_utf8_lossy(&self.replies);
        let lines: Vec<&str> = replies.split_terminator("\r\n").collect();
        let mut shared = 0;
        for (line, expected) in lines.iter().zip(&self.expected) {
            let fits = match expected {
                Line::Exactly(text) => line == text,
                Line::Begins(text) => line.starts_with(text),
                Line::Shared => {
                    let number: u64 = line.strip_prefix(':').and_then(|number| number.parse().ok()).unwrap_or(0);
                    std::mem::replace(&mut shared, number) < number
                }
            };
            assert!(fits, "{line:?} is not {expected:?} in {lines:?}, which was to be {:?}", self.expected);
        }
        assert_eq!(lines.len(), self.expected.len(), "{lines:?}, which was to be {:?}", self.expected);
    }
}

/// A worker's loop without sockets: it sleeps only when no connection can be read, and only a wake-up ends that.
fn work(worker: usize, shared: Arc<Shared>, mailbox: &Mailbox<()>, event: &Event) -> u64 {
    let stats = Arc::new(WorkerStats::new(shared.table.rows().len()));
    let mut executor = Executor::new(worker, shared, stats);
    executor.limit_batches(u64::MAX);
    let mut clients: Vec<Client> = (0..CLIENTS)
        .map(|number| {
            let id = executor.open(Connection::new(Session::new(number as u64 + 1, true, 0)));
            Client::new(id, &format!("{worker}:{number}"))
        })
        .collect();
    let mut to_send = Vec::new();
    loop {
        executor.begin_turn();
        mailbox.take(&mut Vec::new());
        if executor.has_waiting() {
            executor.run_waiting(true);
        }
        for client in &mut clients {
            if executor.flow(client.id) == Flow::Open
                && let Some(chunk) = client.chunks.pop()
            {
                let copy = |room: &mut [u8]| {
                    room[..chunk.len()].copy_from_slice(&chunk);
                    Ok::<_, Infallible>(chunk.len())
                };
                executor.receive(client.id, copy).expect("nothing fails here");
            }
        }
        executor.run_batch();
        executor.take_to_send(&mut to_send);
        for client in clients.iter_mut().filter(|client| to_send.contains(&client.id)) {
            let reply = &mut executor.connection(client.id).expect("connected").reply;
            client.replies.extend(reply.io_slices().flat_map(|slice| slice.to_vec()));
            reply.advance(reply.len());
        }
        let can_read = |client: &Client| !client.chunks.is_empty() && executor.flow(client.id) == Flow::Open;
        if clients.iter().any(can_read) {
            continue;
        }
        if !executor.has_waiting() {
            break;
        }
        event.wait();
    }
    clients.iter().for_each(Client::check);
    clients.iter().map(|client| client.shared_increments).sum()
}

/// Requests that meet a taken lock park and run again: each exactly once and in its connection's order, whatever else
/// its worker does meanwhile, with requests of one key, of several, of all and of none.
#[test]
fn blocked_requests_run_once_and_in_order() {
    check(2, || {
        let events: Vec<_> = (0..WORKERS).map(|_| Arc::new(Event::default())).collect();
        let mailboxes: Vec<_> = events.iter().map(Event::mailbox::<()>).collect();
        let shared = shared(Arc::new(Mailboxes(mailboxes.clone())));
        let threads: Vec<_> = events
            .iter()
            .zip(&mailboxes)
            .enumerate()
            .map(|(worker, (event, mailbox))| {
                let (shared, event, mailbox) = (shared.clone(), event.clone(), mailbox.clone());
                thread::spawn(move || work(worker, shared, &mailbox, &event))
            })
            .collect();
        let increments: u64 = threads.into_iter().map(|thread| thread.join().expect("workers do not fail")).sum();
        let mut executor = Executor::new(0, shared.clone(), Arc::new(WorkerStats::new(shared.table.rows().len())));
        executor.limit_batches(u64::MAX);
        let client = executor.open(Connection::new(Session::new(1, true, 0)));
        let ask = b"*2\r\n$4\r\nINCR\r\n$6\r\nshared\r\n";
        let copy = |room: &mut [u8]| {
            room[..ask.len()].copy_from_slice(ask);
            Ok::<_, Infallible>(ask.len())
        };
        executor.receive(client, copy).expect("nothing fails here");
        executor.run_batch();
        let reply = &executor.connection(client).expect("connected").reply;
        let bytes: Vec<u8> = reply.io_slices().flat_map(|slice| slice.to_vec()).collect();
        assert_eq!(String::from_utf8_lossy(&bytes), format!(":{}\r\n", increments + 1));
    });
}
