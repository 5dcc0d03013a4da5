//! Random operations under random options and policies agree with a sorted map: every look-up, scan and view, before
//! and after flushes, merges and reopenings, also when the policy changes from open to open. Values differ in length a
//! hundredfold, keys are put and deleted in turns, key spaces come and go, and few files may be open.
//!
//! `PLEX_CALLS=20000000` makes that many calls, of which each step of an iterator is one; `PLEX_SEED=1000` begins with
//! that seed in place of 0.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use base::Rng;
use plex::{
    Background, Compression, Db, Filters, Indexes, Iter, IterOptions, KeySpaceId, Options, Policy, ReadView, Wal,
    WriteBatch,
};
use vfs::SimFs;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Key spaces in use.
const SPACES: u64 = 2;

struct Run {
    rng: Rng,
    fs: Arc<SimFs>,
    db: Option<Db>,
    spaces: Vec<KeySpaceId>,
    model: Vec<Map>,
    views: Vec<(ReadView, Vec<Map>)>,
    keys: u64,
    /// Whether some values are long.
    is_mixed: bool,
    /// Keys are kept by their hashes: another kind of database, without ranges and scans.
    by_hash: bool,
    /// Key spaces made so far.
    made: u64,
    calls: Cell<u64>,
}

fn random_policy(rng: &mut Rng) -> Policy {
    match rng.below(5) {
        0 => Policy::Leveled { level0_runs_max: 1 + rng.below(4) as usize, level1_bytes: 4 << 10 },
        1 => Policy::Tiered { runs_per_level: 2 + rng.below(4) as usize },
        2 => Policy::Ldc { runs_per_level: 2 + rng.below(6) as usize, duplicates_max: 1.2 },
        _ => Policy::LdcRanged { space_amp_target: 1.2 + rng.unit(), runs_max: 2 + rng.below(8) as usize },
    }
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let keys = [20, 200, 2000][rng.below(3) as usize];
        let fs = Arc::new(SimFs::new(seed));
        let model = vec![Map::new(); SPACES as usize];
        let (is_mixed, by_hash) = (rng.one_in(2), rng.one_in(8));
        let (db, spaces, views, calls) = (None, Vec::new(), Vec::new(), Cell::new(0));
        let mut run = Self { rng, fs, db, spaces, model, views, keys, is_mixed, by_hash, made: 1, calls };
        run.open();
        run
    }

    fn open(&mut self) {
        self.views.clear();
        self.db = None;
        let rng = &mut self.rng;
        let options = Options::new()
            .file_system(self.fs.clone())
            .seed(rng.next_u64())
            .wal([Wal::Sync, Wal::Async][rng.below(2) as usize])
            .background([Background::Inline, Background::Manual][rng.below(2) as usize])
            .policy(match self.by_hash {
                true => Policy::Trie { runs_per_node: 2 + rng.below(6) as usize },
                false => random_policy(rng),
            })
            .memtable_bytes(1 << (10 + rng.below(5)))
            .block_bytes(64 << rng.below(5))
            .table_bytes(1 << (10 + rng.below(5)))
            .prefix_filter_bytes(rng.below(4) as usize)
            .open_files_max(8 << rng.below(8))
            .tables_read_at_open([0, 4096][rng.below(2) as usize])
            .merges_max(1 + rng.below(2) as usize)
            .direct_reads(rng.one_in(3))
            .direct_writes(rng.one_in(3))
            .merge_parts_max(1 + rng.below(2) as usize * rng.below(5) as usize)
            .filter_bits_per_key(rng.below(3) as u32 * 8)
            .filters([Filters::Full, Filters::Partitioned][rng.below(2) as usize])
            .indexes([Indexes::Full, Indexes::Partitioned][rng.below(2) as usize])
            .block_cache_bytes(rng.below(2) as usize * (256 << 10))
            .compression({
                let all = [Compression::None, Compression::Lz4, Compression::Zstd { level: 1 }];
                all.into_iter().skip(rng.below(4) as usize)
            });
        let db = options.open("/db").expect("it opens");
        self.spaces = vec![KeySpaceId::DEFAULT, db.key_space(&self.second()).expect("it is made")];
        self.count(2);
        self.db = Some(db);
    }

    /// The second key space's name.
    fn second(&self) -> String {
        format!("second-{}", self.made)
    }

    /// Drops the second key space and makes another one in its place. Views then see nothing of the new one.
    fn replace_second(&mut self) {
        self.views.clear();
        self.db().drop_key_space(self.spaces[1]).expect("it is dropped");
        self.made += 1;
        self.spaces[1] = self.db().key_space(&self.second()).expect("it is made");
        self.model[1].clear();
        assert_eq!(self.db().key_spaces().len() as u64, SPACES);
        self.count(3);
    }

    /// Puts and deletes the same keys in turns.
    fn toggle(&mut self) {
        let space = self.rng.below(SPACES) as usize;
        for _ in 0..self.rng.below(30) {
            let key = self.key();
            if self.model[space].remove(&key).is_some() {
                self.db().delete_in(self.spaces[space], &key).expect("it is written");
            } else {
                self.db().put_in(self.spaces[space], &key, b"on").expect("it is written");
                self.model[space].insert(key, b"on".to_vec());
            }
            self.count(1);
        }
    }

    fn count(&self, calls: u64) {
        self.calls.set(self.calls.get() + calls);
    }

    fn value(&mut self) -> Vec<u8> {
        let most = if self.is_mixed && self.rng.one_in(8) { 6000 } else { 60 };
        vec![self.rng.next_u64() as u8; self.rng.below(most) as usize]
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("it is open")
    }

    fn key(&mut self) -> Vec<u8> {
        format!("{:0w$}", self.rng.below(self.keys), w = 1 + self.rng.below(4) as usize).into_bytes()
    }

    fn ordered_keys(&mut self) -> (Vec<u8>, Vec<u8>) {
        let (a, b) = (self.key(), self.key());
        if a <= b { (a, b) } else { (b, a) }
    }

    fn write(&mut self) {
        let mut batch = WriteBatch::new();
        for _ in 0..1 + self.rng.below(4) * self.rng.below(4) {
            let space = self.rng.below(SPACES) as usize;
            let id = self.spaces[space];
            match self.rng.below(16) {
                0 if !self.by_hash => {
                    let (from, to) = self.ordered_keys();
                    let start = if self.rng.one_in(40) { Bound::Unbounded } else { Bound::Included(&from[..]) };
                    let end = match self.rng.below(40) {
                        0 => Bound::Unbounded,
                        1..20 => Bound::Included(&to[..]),
                        _ => Bound::Excluded(&to[..]),
                    };
                    batch.delete_range_in(id, (start, end));
                    self.model[space].retain(|key, _| !(start, end).contains(&&key[..]));
                }
                0..4 => {
                    let key = self.key();
                    batch.delete_in(id, &key);
                    self.model[space].remove(&key);
                }
                _ => {
                    let (key, value) = (self.key(), self.value());
                    batch.put_in(id, &key, &value);
                    self.model[space].insert(key, value);
                }
            }
        }
        self.db().write(&batch).expect("it is written");
        self.count(1);
    }

    fn check_some(&mut self) {
        let space = self.rng.below(SPACES) as usize;
        let keys: Vec<Vec<u8>> = (0..5).map(|_| self.key()).collect();
        let expected: Vec<_> = keys.iter().map(|key| self.model[space].get(key).cloned()).collect();
        assert_eq!(self.db().multi_get(self.spaces[space], &keys).expect("it reads"), expected);
        let (from, to) = self.ordered_keys();
        if !self.by_hash {
            self.check_range(space, &from, &to);
        }
        self.count(1);
        if !self.views.is_empty() {
            let at = self.rng.below(self.views.len() as u64) as usize;
            let (view, model) = &self.views[at];
            assert_eq!(
                view.get_in(self.spaces[space], &keys[0]).expect("it reads"),
                model[space].get(&keys[0]).cloned()
            );
            self.check_pairs(
                &model[space],
                || view.iter_in(self.spaces[space], IterOptions::default()),
                |key| view.get_in(self.spaces[space], key),
            );
            self.count(1);
        }
    }

    /// A walk that turns around at random, within bounds.
    fn check_range(&mut self, space: usize, from: &[u8], to: &[u8]) {
        let options = IterOptions::range((Bound::Included(from), Bound::Excluded(to)));
        let mut iter = self.db().iter_in(self.spaces[space], options).expect("it iterates");
        let (target, mut rng) = (self.key(), Rng::new(self.rng.next_u64()));
        let list: Vec<_> = self.model[space].iter().filter(|(k, _)| from <= &k[..] && &k[..] < to).collect();
        let found = list.partition_point(|(key, _)| **key < target);
        let mut at = match rng.below(4) {
            0 => iter.seek_to_first().map(|()| Some(0)),
            1 => iter.seek_to_last().map(|()| list.len().checked_sub(1)),
            2 => iter.seek(&target).map(|()| Some(found)),
            _ => iter.seek_before(&target).map(|()| found.checked_sub(1)),
        }
        .expect("it seeks");
        for _ in 0..12 {
            let expected = at.and_then(|at| list.get(at)).map(|(key, value)| (&key[..], &value[..]));
            assert_eq!(iter.entry(), expected);
            self.count(1);
            let Some(here) = at.filter(|_| expected.is_some()) else { break };
            if rng.one_in(3) {
                iter.step_back().expect("it steps");
                at = here.checked_sub(1);
            } else {
                iter.step_forward().expect("it steps");
                at = Some(here + 1);
            }
        }
    }

    /// A scan of all shows these pairs, or where keys are kept by their hashes, each look-up.
    fn check_pairs(
        &self,
        model: &Map,
        iter: impl FnOnce() -> plex::Result<Iter>,
        get: impl Fn(&[u8]) -> plex::Result<Option<Vec<u8>>>,
    ) {
        if self.by_hash {
            model.iter().for_each(|(key, value)| assert_eq!(get(key).expect("it reads").as_ref(), Some(value)));
        } else {
            let all = iter().expect("it iterates");
            assert!(all.map(|pair| pair.expect("it reads")).eq(model.clone()));
        }
        self.count(model.len() as u64 + 1);
    }

    fn check_all(&self) {
        for (space, model) in self.spaces.iter().zip(&self.model) {
            let db = self.db();
            self.check_pairs(model, || db.iter_in(*space, IterOptions::default()), |key| db.get_in(*space, key));
        }
        self.db().verify().expect("all tables are sound");
    }

    fn step(&mut self) {
        self.count(1);
        match self.rng.below(100) {
            0..55 => self.write(),
            55..59 => self.toggle(),
            59 if self.rng.one_in(4) => self.replace_second(),
            59 => drop(self.db().reclaim_step().expect("it merges")),
            60..85 => self.check_some(),
            85..91 => self.db().flush().expect("it flushes"),
            91..96 => drop(self.db().compact_step().expect("it merges")),
            96..98 if self.views.len() < 3 => self.views.push((self.db().view(), self.model.clone())),
            96..98 => drop(self.views.remove(0)),
            98 if !self.by_hash && self.rng.one_in(2) => {
                let (from, to) = self.ordered_keys();
                let space = self.spaces[self.rng.below(SPACES) as usize];
                self.db().compact_range(space, &from[..]..&to[..]).expect("it merges");
            }
            98 => self.db().settle().expect("it merges"),
            _ => {
                self.open();
                self.check_all();
            }
        }
    }
}

#[test]
fn random_operations_agree_with_a_map() {
    let number = |name| std::env::var(name).map_or(0, |number| number.parse().expect("a number"));
    let (wanted, first) = (number("PLEX_CALLS"), number("PLEX_SEED"));
    let (mut seed, mut calls) = (first, 0);
    while seed < first + 40 || calls < wanted {
        println!("seed {seed}");
        seed += 1;
        let mut run = Run::new(seed - 1);
        for _ in 0..600 {
            run.step();
        }
        run.check_all();
        calls += run.calls.get();
    }
    println!("{calls} calls");
}

/// With settled trees, overwritten and deleted data is gone from the disk.
#[test]
fn space_comes_back() {
    for policy in [Policy::leveled(), Policy::tiered(), Policy::ldc(), Policy::ldc_ranged()] {
        let options = Options::new().file_system(Arc::new(SimFs::new(1))).background(Background::Inline);
        let db = options.policy(policy.clone()).memtable_bytes(16 << 10).open("/db").expect("it opens");
        for i in 0..20_000u64 {
            db.put(&(i % 500).to_be_bytes(), &[1; 100]).expect("it writes");
        }
        db.delete_range(..).expect("it deletes");
        db.flush().expect("it flushes");
        db.settle().expect("it merges");
        assert_eq!(db.iter(IterOptions::default()).expect("it iterates").count(), 0);
        let stats = db.stats();
        assert!(stats.table_bytes < 20_000 * 108 / 2, "{policy:?}: {stats:?}");
    }
}
