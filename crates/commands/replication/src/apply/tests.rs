//! Which positions are stored, and with what.

use super::*;
use crate::spool::Spool;
use base::clock::ManualClock;
use base::random::SeededEntropy;
use command::CommandTable;
use engine::Effect;
use std::path::Path;
use store::shard::ShardEngine;
use store::{StoreOptions, Wake, WorkerSet};
use vfs::SimFs;

const ID: &str = "0123456789abcdef0123456789abcdef01234567";
const OTHER: &str = "89abcdef0123456789abcdef0123456789abcdef";

struct NobodyWaits;

impl Wake for NobodyWaits {
    fn wake(&self, _workers: WorkerSet) {}
}

/// Keeps positions where a server does.
struct Around(Host);

impl Surroundings for Around {
    fn host(&self) -> &Host {
        &self.0
    }

    fn keep(&self, txn: &mut store::Txn<'_>, position: &str) {
        txn.apply(&Effect::Position { text: position.as_bytes() });
    }

    fn leave_out(&mut self, _command: &[u8], _why: &str) -> bool {
        false
    }

    fn wait_for_log(&mut self, _why: &str) -> bool {
        false
    }
}

/// A store that follows a stream.
struct Follower {
    store: Arc<Store>,
    applier: Applier,
    around: Around,
}

impl Follower {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(1_700_000_000_000));
        let store = Arc::new(Store::new(StoreOptions {
            shard_count: 2,
            database_count: 4,
            clock: clock.clone(),
            entropy: Arc::new(SeededEntropy::new(5)),
            wake: Arc::new(NobodyWaits),
            log: None,
            engine: |engine| ShardEngine::Memory(Box::new(engine)),
        }));
        let table = Arc::new(CommandTable::new(command::redis::FAMILIES));
        let runner = Runner::new(table.clone());
        let applier = Applier::new(store.clone(), clock, (runner, Scratch::default()), 0, 4);
        Self { store, applier, around: Around(Host::alone(table)) }
    }

    /// Applies a piece of the stream that begins at the position, and then ends.
    fn apply(&mut self, from: Position, stream: &[u8]) {
        let spool = Arc::new(Spool::create(&SimFs::new(1), Path::new("/stream")).unwrap());
        spool.append(stream).unwrap();
        spool.end();
        self.applier.begin(from);
        self.applier.read(SpoolReader::new(spool));
        while self.applier.step(&mut self.around).unwrap() != Outcome::Ended {}
    }

    fn stored(&self) -> String {
        String::from_utf8(self.store.position.get()).unwrap()
    }

    fn keys(&self) -> u64 {
        (0..4).map(|db| self.store.len(DbIndex(db)).0).sum()
    }
}

fn at(id: &str, offset: u64) -> Position {
    Position { id: id.into(), offset }
}

fn request(words: &[&str]) -> Vec<u8> {
    let words: Vec<_> = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    format!("*{}\r\n{}", words.len(), words.concat()).into_bytes()
}

/// Cut after any byte: what is stored is the end of a whole command or transaction, with its database, and the rest of
/// the stream from there leads to the same data.
#[test]
fn a_stream_that_is_cut_anywhere_goes_on_where_the_store_is() {
    let parts = [
        request(&["SELECT", "2"]),
        request(&["SET", "a", "1"]),
        [request(&["MULTI"]), request(&["INCR", "a"]), request(&["SET", "b", "1"]), request(&["EXEC"])].concat(),
        request(&["SELECT", "0"]),
        request(&["RPUSH", "c", "1"]),
    ];
    let stream = parts.concat();
    let ends: Vec<usize> = parts.iter().scan(0, |end, part| Some(std::mem::replace(end, *end + part.len()))).collect();
    let mut whole = Follower::new();
    whole.apply(at(ID, 100), &stream);
    for cut in 0..stream.len() {
        let mut follower = Follower::new();
        follower.applier.loaded(&at(ID, 100));
        follower.apply(at(ID, 100), &stream[..cut]);
        // A restart has what is stored alone.
        let text = follower.stored();
        follower.applier.forget();
        follower.applier.recall(&text);
        let from = follower.applier.position().cloned().unwrap_or(at(ID, 100));
        let done = (from.offset - 100) as usize;
        assert!(ends.contains(&done) && done <= cut, "cut at {cut}: {text}");
        follower.apply(from, &stream[done..]);
        assert_eq!(follower.store.digest(0), whole.store.digest(0), "cut at {cut}");
        assert_eq!(follower.stored(), format!("{ID} {} 0", 100 + stream.len()));
    }
}

/// PINGs move the position in memory. It is stored from time to time, so that a primary has the rest after a kill.
#[test]
fn a_stream_without_changes_is_stored_from_time_to_time() {
    let mut follower = Follower::new();
    follower.applier.loaded(&at(ID, 0));
    let pings = |count: usize| request(&["PING"]).repeat(count);
    let few = pings(10);
    follower.apply(at(ID, 0), &few);
    assert_eq!((follower.stored(), follower.applier.offset()), (String::new(), few.len() as u64));
    let many = pings(2 * KEEP_EVERY_BYTES as usize / 14);
    follower.apply(at(ID, 0), &many);
    let kept: u64 = follower.stored().split(' ').nth(1).unwrap().parse().unwrap();
    assert!(many.len() as u64 - kept < KEEP_EVERY_BYTES && kept <= many.len() as u64, "{kept}");
    assert_eq!(follower.keys(), 0);
    // Another id is stored with the next commands, whatever they are.
    follower.apply(at(OTHER, 500), &pings(1));
    assert_eq!(follower.stored(), format!("{OTHER} 514 0"));
}
