//! Merges that run side by side: two of different ranges meet, two of one range do not, and with threads of their own
//! the contents are those of a sorted map.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use base::Rng;
use parking_lot::{Condvar, Mutex};
use plex::{Background, CompactionFilter, Db, IterOptions, KeySpaceId, Options, Policy};
use vfs::SimFs;

/// Longest wait of one merge for another; only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(20);

/// A filter that keeps everything, and once armed holds each merge until two have met in it.
#[derive(Debug, Default)]
struct Meeting {
    /// The merges that have arrived, and how many are expected; 0 for none.
    state: Mutex<(BTreeSet<String>, usize)>,
    changed: Condvar,
}

impl Meeting {
    fn arm(&self, expected: usize) {
        *self.state.lock() = (BTreeSet::new(), expected);
    }

    fn met(&self) -> usize {
        self.state.lock().0.len()
    }
}

impl CompactionFilter for Meeting {
    fn keeps(&self, _: KeySpaceId, _: &[u8], _: &[u8]) -> bool {
        let mut state = self.state.lock();
        if state.1 == 0 {
            return true;
        }
        let me: ThreadId = std::thread::current().id();
        state.0.insert(format!("{me:?}"));
        self.changed.notify_all();
        let deadline = Instant::now() + PATIENCE;
        while state.0.len() < state.1 && !self.changed.wait_until(&mut state, deadline).timed_out() {}
        state.1 = 0;
        self.changed.notify_all();
        true
    }
}

fn options(policy: Policy) -> Options {
    let options = Options::new().file_system(Arc::new(SimFs::new(1))).seed(5).policy(policy);
    options.memtable_bytes(8 << 10).table_bytes(4 << 10).block_bytes(512).merges_max(3)
}

fn fill(db: &Db, space: KeySpaceId, rng: &mut Rng, model: &mut BTreeMap<Vec<u8>, Vec<u8>>, count: u64) {
    for number in 0..count {
        let (key, value) = (format!("{:05}", rng.below(4000)).into_bytes(), vec![number as u8; 40]);
        db.put_in(space, &key, &value).expect("it writes");
        model.insert(key, value);
    }
}

fn contents(db: &Db, space: KeySpaceId) -> BTreeMap<Vec<u8>, Vec<u8>> {
    db.iter_in(space, IterOptions::default()).and_then(Iterator::collect).expect("it reads")
}

/// Two callers merge two ranges at once: each waits inside its merge for the other.
#[test]
fn two_ranges_at_once() {
    let meeting = Arc::new(Meeting::default());
    let policy = Policy::LdcRanged { space_amp_target: 50.0, runs_max: 3 };
    let options = options(policy).background(Background::Manual).compaction_filter(meeting.clone());
    let db = options.open("/db").expect("it opens");
    let (mut rng, mut model) = (Rng::new(3), BTreeMap::new());
    // Until the last run has several tables, which are the ranges.
    for _ in 0..40 {
        fill(&db, KeySpaceId::DEFAULT, &mut rng, &mut model, 300);
        db.flush().and_then(|()| db.settle()).expect("it merges");
    }
    // All ranges get more runs than they may have.
    for _ in 0..8 {
        fill(&db, KeySpaceId::DEFAULT, &mut rng, &mut model, 300);
        db.flush().expect("it flushes");
    }
    meeting.arm(2);
    std::thread::scope(|scope| {
        let merge = || assert!(db.compact_step().expect("it merges"));
        let other = scope.spawn(merge);
        merge();
        other.join().expect("no panic");
    });
    assert_eq!(meeting.met(), 2, "no merge ran beside the other");
    assert!(contents(&db, KeySpaceId::DEFAULT) == model);
    db.settle().and_then(|()| db.verify()).expect("tables are sound");
    assert!(contents(&db, KeySpaceId::DEFAULT) == model);
}

/// Of a tree whose merges may meet, as with all policies but one, two callers merge one after the other.
#[test]
fn one_tree_at_a_time() {
    let meeting = Arc::new(Meeting::default());
    let options = options(Policy::Tiered { runs_per_level: 3 }).background(Background::Manual);
    let db = options.compaction_filter(meeting.clone()).open("/db").expect("it opens");
    let second = db.key_space("second").expect("it is made");
    let (mut rng, mut models) = (Rng::new(3), [BTreeMap::new(), BTreeMap::new()]);
    for _ in 0..6 {
        for (space, model) in [KeySpaceId::DEFAULT, second].into_iter().zip(&mut models) {
            fill(&db, space, &mut rng, model, 100);
        }
        db.flush().expect("it flushes");
    }
    // A merge of each key space; a third caller finds nothing to merge.
    meeting.arm(3);
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..2).map(|_| scope.spawn(|| db.compact_step().expect("it merges"))).collect();
        let deadline = Instant::now() + PATIENCE;
        while meeting.met() < 2 && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(meeting.met(), 2, "key spaces are merged side by side");
        assert!(!db.compact_step().expect("it looks"), "both trees are being merged");
        // No more arrive: they continue.
        meeting.arm(0);
        meeting.changed.notify_all();
        assert!(callers.into_iter().all(|caller| caller.join().expect("no panic")));
    });
    db.settle().and_then(|()| db.verify()).expect("tables are sound");
    for (space, model) in [KeySpaceId::DEFAULT, second].into_iter().zip(&models) {
        assert!(contents(&db, space) == *model);
    }
}

/// Threads merge concurrently with each other, with writers and flushes, under every policy; reads find what was
/// written.
#[test]
fn threads_merge_side_by_side() {
    let ranged = Policy::LdcRanged { space_amp_target: 1.3, runs_max: 3 };
    for policy in [ranged, Policy::leveled(), Policy::Tiered { runs_per_level: 3 }] {
        let options = options(policy.clone()).merge_parts_max(2);
        let db = options.clone().open("/db").expect("it opens");
        let spaces = [KeySpaceId::DEFAULT, db.key_space("second").expect("it is made")];
        let models = std::thread::scope(|scope| {
            let write = |number: usize, space| {
                let (mut rng, mut model) = (Rng::new(number as u64), BTreeMap::new());
                fill(&db, space, &mut rng, &mut model, if cfg!(miri) { 100 } else { 2500 });
                model
            };
            let writers: Vec<_> = spaces
                .into_iter()
                .enumerate()
                .map(|(number, space)| scope.spawn(move || write(number, space)))
                .collect();
            writers.into_iter().map(|writer| writer.join().expect("no panic")).collect::<Vec<_>>()
        });
        db.flush().and_then(|()| db.settle()).expect("it merges");
        let check = |db: &Db| {
            db.verify().expect("tables are sound");
            for (space, model) in spaces.into_iter().zip(&models) {
                assert!(contents(db, space) == *model, "{policy:?}");
            }
        };
        check(&db);
        drop(db);
        check(&options.open("/db").expect("it opens again"));
    }
}

/// What a merge that counts stretch by stretch has written so far is its own: a thread that merges a range meanwhile
/// waits for its end.
#[test]
fn tables_of_a_merge_under_way_are_left_alone() {
    let fs = SimFs::new(2);
    let options = Options::new().file_system(Arc::new(fs.clone())).seed(5).policy(Policy::Tiered { runs_per_level: 3 });
    let options = options.memtable_bytes(8 << 10).table_bytes(4 << 10).block_bytes(512).merges_max(3);
    let db = options.background(Background::Manual).open("/db").expect("it opens");
    let (calls, callers) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (of_hook, to_join) = (calls.clone(), callers.clone());
    let meanwhile = db.clone();
    fs.on_sync(move |_| {
        let mut calls = of_hook.lock();
        if *calls > 0 && *calls < 200 {
            *calls += 1;
            let db = meanwhile.clone();
            let range = |db: Db| db.compact_range(KeySpaceId::DEFAULT, &b"00000"[..]..&b"01000"[..]);
            to_join.lock().push(std::thread::spawn(move || range(db)));
            drop(calls);
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    let (mut rng, mut model) = (Rng::new(4), BTreeMap::new());
    for round in 0..27 {
        fill(&db, KeySpaceId::DEFAULT, &mut rng, &mut model, 300);
        db.flush().expect("it flushes");
        // From here on the level that is merged has tables enough for several stretches.
        if round == 17 {
            *calls.lock() = 1;
        }
        db.settle().expect("it merges");
    }
    let started = std::mem::take(&mut *callers.lock());
    assert!(!started.is_empty());
    started.into_iter().for_each(|thread| thread.join().expect("it ends").expect("it merges"));
    db.settle().expect("it merges");
    assert!(contents(&db, KeySpaceId::DEFAULT) == model);
}
