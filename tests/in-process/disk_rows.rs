//! Databases whose rows are in an LSM-tree on a simulated disk: replies as in memory, and after a power cut the rows of the last
//! flush with the log behind them.

use crate::harness::{SHARDS, memory, store};
use crate::replay::{Side, request_of};
use base::random::splitmix64;
use base::{Clock, DbIndex, KeyspaceId, Lsn, Rng, ShardId};
use differential::generate::Generator;
use differential::grammar;
use disk::{Disk, Shards};
use engine::FlushProgress;
use std::path::Path;
use std::sync::Arc;
use store::{RecordSink, RecoveryPoints, Scratch, Store};
use vfs::{Outage, SimFs};

const ROUNDS: u64 = 8;
const REQUESTS: usize = 500;

/// Replies that follow the order of a walk, or count entries that no flush has counted.
const NOT_COMPARED: [&str; 3] = ["SCAN", "KEYS", "DBSIZE"];

/// All databases of a store, on one tree.
struct OnDisk {
    store: Arc<Store>,
    disk: Arc<Disk>,
    spaces: Vec<KeyspaceId>,
}

impl OnDisk {
    fn attach(store: &Arc<Store>, fs: &SimFs) -> Self {
        let slots = store.clone();
        let count = store.shard_ids().len() as u16;
        let shards = Shards { count, of: Arc::new(move |key| slots.shard_of_bytes(key)) };
        let spaces: Vec<KeyspaceId> = (0..store.spaces.count() as u32).map(KeyspaceId).collect();
        let path = Path::new("/data/rows");
        let disk = Disk::open(Arc::new(fs.clone()), path, spaces.iter().copied(), shards).expect("it opens");
        for space in &spaces {
            store.back(*space, |shard| disk.rows(shard, *space).expect("it was opened"));
        }
        Self { store: store.clone(), disk, spaces }
    }

    fn places(&self) -> impl Iterator<Item = (ShardId, KeyspaceId)> {
        self.store.shard_ids().flat_map(|shard| self.spaces.iter().map(move |space| (shard, *space)))
    }

    /// Flushes everything as of `lsn`, drops what is clean, and merges tables.
    fn flush_and_drop(&self, lsn: Lsn) {
        let flush = self.disk.begin_flush();
        let mut all = self.store.try_lock_all().expect("nobody else locks");
        all.begin_flush(&self.spaces, |shard, space| flush.sink(shard, space));
        drop(all);
        for (shard, space) in self.places() {
            assert_eq!(self.store.walk_flush(shard, space, usize::MAX), FlushProgress::Done);
        }
        let installed = flush.install(lsn).expect("the disk takes it");
        for (shard, space) in self.places() {
            self.store.end_flush(shard, space, installed.get(&(space, shard)).copied());
            self.store.drop_clean(shard, space, usize::MAX);
        }
        while self.disk.compact_step().expect("the disk takes it") {}
    }
}

#[test]
fn random_commands_over_a_tree_answer_as_in_memory_and_survive_power_cuts() {
    let generator = Generator::new(&grammar::load(&[]).expect("the grammars parse"), false);
    for round in 0..ROUNDS {
        let mut seed = round + 3_000;
        let mut rng = Rng::new(splitmix64(&mut seed));
        let steps = generator.sequence(&mut rng, REQUESTS);
        let (mut plain, mut side, fs) = (Side::new(memory), Side::new(memory), SimFs::new(round));
        *side.server.replica.kept.lock().expect("no test panics while holding it") = Some(Vec::new());
        let on_disk = OnDisk::attach(&side.server.store, &fs);
        let mut queued_own_words = Side::nothing_queued();
        for (number, step) in steps.iter().enumerate() {
            let Some(bytes) = request_of(step) else {
                plain.reopen(step.connection);
                side.reopen(step.connection);
                continue;
            };
            let (expected, got) = (plain.run(step.connection, &bytes), side.run(step.connection, &bytes));
            let is_compared = crate::replay::is_compared(step, &NOT_COMPARED, &mut queued_own_words);
            assert!(expected == got || !is_compared, "round {round}, step {number}: {step}");
            if rng.one_in(20) {
                on_disk.flush_and_drop(side.server.replica.end());
            }
        }
        let now = side.server.clock.now_ms();
        let expected = plain.server.store.digest(now);
        assert_eq!(side.server.store.digest(now), expected, "round {round}");
        assert!(side.server.rounds > 20, "rows are read");

        drop(on_disk);
        fs.crash();
        let fs = fs.recover(Outage::PowerCut { seed: round });
        // Rows are counted anew where the shards are others.
        let shard_count = if round % 2 == 0 { SHARDS } else { SHARDS / 2 };
        let other = Arc::new(store(&side.server.clock, shard_count, None, memory));
        let on_disk = OnDisk::attach(&other, &fs);
        let flushed = on_disk.disk.recovered_lsn();
        let rows = on_disk.spaces.iter().map(|space| (*space, flushed)).collect();
        other.set_recovery_points(RecoveryPoints { loaded: Lsn(0), rows });
        let records = side.server.replica.kept.lock().expect("no test panics while holding it").take();
        let records = records.unwrap_or_default();
        for (lsn, record) in &records {
            other.replay(&mut Scratch::default(), *lsn, record).expect("a record replays");
        }
        assert!(flushed > Lsn(0) && records.last().is_some_and(|last| last.0 >= flushed));
        assert_eq!(other.digest(now), expected, "round {round}");
        on_disk.flush_and_drop(side.server.replica.end());
        for db in (0..16).map(DbIndex) {
            assert_eq!(other.len(db), plain.server.store.len(db), "round {round}");
        }
        assert_eq!(other.digest(now), expected, "round {round}");
    }
}
