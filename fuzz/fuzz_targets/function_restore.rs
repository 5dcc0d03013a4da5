//! Payloads of FUNCTION RESTORE, over a store with a log: the bytes as they come, with a footer that is right, or as
//! the texts of libraries. A refused payload changes nothing, and the log alone makes the same libraries. What FUNCTION
//! DUMP gives then is restored as it was.
#![no_main]

use base::clock::ManualClock;
use base::random::SeededEntropy;
use base::{Clock, DbIndex, Lsn};
use command::stats::WorkerStats;
use command::{Args, CommandTable, Ctx, Host, Run, Session, Stop};
use engine::Libraries;
use libfuzzer_sys::fuzz_target;
use proto::{Protocol, ReplyBuffer, Span};
use script::Scripts;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::shard::ShardEngine;
use store::{At, LockSet, RecordSink, Scratch, Store, StoreOptions, Wake, WorkerSet};

/// A library may register its functions for half a second. One that took this long may be refused the next time.
const SURE_WITHIN: Duration = Duration::from_millis(50);

struct NobodyWaits;

impl Wake for NobodyWaits {
    fn wake(&self, _: WorkerSet) {}
}

/// Replays every record at once into a store of its own.
struct Replica {
    store: Store,
    position: Mutex<u64>,
}

impl RecordSink for Replica {
    fn durable(&self) -> Lsn {
        self.end()
    }

    fn end(&self) -> Lsn {
        Lsn(*self.position.lock().expect("nobody panics while holding it"))
    }

    fn append(&self, _: usize, payload: &[u8]) -> Lsn {
        let mut position = self.position.lock().expect("nobody panics while holding it");
        *position += payload.len() as u64;
        self.store.replay(&mut Scratch::default(), Lsn(*position), payload).expect("a record replays");
        Lsn(*position)
    }
}

/// A store without keys, and a connection to it.
struct Server {
    store: Store,
    replica: Arc<Replica>,
    table: Arc<CommandTable>,
    host: Host,
    stats: WorkerStats,
    session: Session,
    scratch: Scratch,
}

impl Server {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(1_700_000_000_000));
        let store = |log| {
            Store::new(StoreOptions {
                shard_count: 1,
                database_count: 1,
                clock: clock.clone(),
                entropy: Arc::new(SeededEntropy::new(1)),
                wake: Arc::new(NobodyWaits),
                log,
                engine: |engine| ShardEngine::Memory(Box::new(engine)),
            })
        };
        let replica = Arc::new(Replica { store: store(None), position: Mutex::default() });
        let table = Arc::new(CommandTable::new(&[script::FUNCTIONS]));
        Self {
            store: store(Some(replica.clone())),
            replica,
            host: Host::alone(table.clone()).with(Arc::new(Scripts::new())),
            stats: WorkerStats::new(table.rows().len()),
            table,
            session: Session::new(1, true, clock.now_ms()),
            scratch: Scratch::default(),
        }
    }

    /// What FUNCTION answers.
    fn function(&mut self, words: &[&[u8]]) -> Vec<u8> {
        let (mut input, mut spans) = (Vec::new(), Vec::new());
        for word in [&[&b"FUNCTION"[..]], words].concat() {
            spans.push(Span::new(input.len(), word.len()).expect("a short argument"));
            input.extend_from_slice(word);
        }
        let args = Args::new(&input, &spans, &[]);
        let row = self.table.resolve(&args).unwrap_or_else(|_| panic!("FUNCTION has it"));
        let Run::Call(run) = row.spec.run else { panic!("it is a command") };
        let mut reply = ReplyBuffer::new(Protocol::Resp3);
        let at = At { now: self.store.clock.now_ms(), db: DbIndex(0), touch: true, worker: 0, writes: row.writes };
        let (host, stats, session) = (&self.host, &self.stats, &mut self.session);
        let done = self.store.commit(&mut self.scratch, &LockSet::All, &at, |txn| {
            let mark = reply.mark();
            let mut ctx = Ctx { spec: row.spec, args, reply: &mut reply, ks: txn, session, host, stats, hashed: None };
            match run(&mut ctx) {
                Ok(()) => Ok(()),
                Err(Stop::Error(text)) => {
                    reply.rewind(mark);
                    reply.error(text.as_bytes());
                    Ok(())
                }
                Err(Stop::Fetch) => panic!("libraries are no rows"),
            }
        });
        assert!(done.is_ok(), "nobody else holds a lock");
        reply.io_slices().flat_map(|slice| slice.to_vec()).collect()
    }

    fn libraries(&self) -> Arc<Libraries> {
        self.store.libraries.get()
    }
}

const POLICIES: [&[u8]; 3] = [b"FLUSH", b"APPEND", b"REPLACE"];

/// Two libraries that are there before.
const BEFORE: [&[u8]; 2] = [
    b"#!lua name=one\nserver.register_function('f', function() end)",
    b"#!lua name=two\nserver.register_function{function_name='g', callback=function() end, flags={'no-writes'}}",
];

/// What is restored: bytes as they are, with a footer, or libraries with these texts, separated by zero bytes.
fn payload(form: u8, bytes: &[u8]) -> Vec<u8> {
    match form % 4 {
        0 => bytes.to_vec(),
        1 => {
            let mut payload = [bytes, &80_u16.to_le_bytes()].concat();
            let checksum = base::checksum::Crc64Rdb::new().update(&payload).finish();
            payload.extend(checksum.to_le_bytes());
            payload
        }
        _ => rdb::dump::write_functions(bytes.split(|byte| *byte == 0)),
    }
}

/// The bytes of a reply that is a string.
fn text_of(reply: &[u8]) -> &[u8] {
    let start = reply.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    &reply[start..reply.len() - b"\r\n".len()]
}

fuzz_target!(|input: &[u8]| {
    let Some(([form, policy], bytes)) = input.split_first_chunk() else { return };
    thread_local! {
        static SERVER: std::cell::RefCell<Server> = std::cell::RefCell::new(Server::new());
    }
    SERVER.with_borrow_mut(|server| {
        server.function(&[b"FLUSH"]);
        for code in BEFORE {
            let loaded = server.function(&[b"LOAD", code]);
            assert!(loaded.starts_with(b"$"), "{}", loaded.escape_ascii());
        }
        let before = server.libraries();
        let restored = payload(*form, bytes);
        let since = Instant::now();
        let reply = server.function(&[b"RESTORE", &restored, POLICIES[usize::from(policy % 3)]]);
        assert_eq!(*server.replica.store.libraries.get(), *server.libraries(), "replayed records give other libraries");
        if reply.starts_with(b"-") {
            assert_eq!(*server.libraries(), *before, "refused, and changed: {}", reply.escape_ascii());
            return;
        }
        assert_eq!(reply, b"+OK\r\n");
        let is_sure = since.elapsed() < SURE_WITHIN;
        let (after, list) = (server.libraries(), server.function(&[b"LIST", b"WITHCODE"]));
        let dump = server.function(&[b"DUMP"]);
        let reply = server.function(&[b"RESTORE", text_of(&dump), b"FLUSH"]);
        if is_sure {
            assert_eq!(reply, b"+OK\r\n", "{}", reply.escape_ascii());
            assert_eq!(*server.libraries(), *after);
            assert_eq!(server.function(&[b"LIST", b"WITHCODE"]), list);
        }
    });
});
