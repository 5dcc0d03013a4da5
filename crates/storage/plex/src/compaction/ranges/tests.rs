//! Ranges that follow a tree are those of a look at all of it, and follow a large one at the cost of what changed.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use base::Rng;
use vfs::{FileSystem, SimFs};

use super::*;
use crate::cache::BlockCache;
use crate::compaction::Policy;
use crate::key::Kind;
use crate::sketch::{KeptSketch, Sketch};
use crate::sstable::{Compression, Filters, Indexes, TableBuilder, TableOptions};
use crate::version::{TablePlace, Version, VersionEdit};

/// A table on a simulated disk that models are made from.
fn template() -> Table {
    let fs: Arc<dyn FileSystem> = Arc::new(SimFs::new(1));
    let options = TableOptions {
        block_bytes: 256,
        filter_bits_per_key: 0,
        filters: Filters::Full,
        indexes: Indexes::Full,
        compression: Compression::None,
        prefix_bytes: 0,
        is_direct: false,
        has_times: false,
    };
    let path = PathBuf::from("/1");
    let mut builder = TableBuilder::new(&*fs, &path, 1, options).unwrap();
    builder.add(b"key", 1, Kind::Put, b"value").unwrap();
    let info = builder.finish().unwrap();
    Table::open(&fs, &Arc::new(BlockCache::new(0, 256)), path, 1, info, vfs::OpenOptions::read()).unwrap()
}

fn sketch(rng: &mut Rng, keys: u64) -> KeptSketch {
    let mut sketch = Sketch::default();
    (0..keys).for_each(|_| sketch.add(crate::key::hash(&rng.below(1000).to_be_bytes())));
    sketch.into_kept()
}

fn key(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn info(keys: std::ops::RangeInclusive<u64>, bytes: u64) -> TableInfo {
    TableInfo {
        smallest: key(*keys.start()),
        largest: key(*keys.end()),
        bytes,
        entry_count: 20,
        ..TableInfo::default()
    }
}

/// A tree that grows and changes at random.
struct Model {
    template: Table,
    rng: Rng,
    version: Version,
    number: u64,
}

impl Model {
    fn apply(&mut self, edit: &VersionEdit) {
        let Self { template, rng, version, .. } = self;
        let open = |number: u64, info: &TableInfo| {
            let keys = sketch(rng, 20);
            Ok(Arc::new(Table::modelled(template, number, info.clone(), number..number + 5, &keys)))
        };
        *version = version.apply(edit, open).unwrap().0;
    }

    fn place(&mut self, level: usize, run: u64) -> TablePlace {
        self.number += 1;
        TablePlace { key_space: 0, level, run, number: self.number }
    }

    /// Tables of a run, at random among these keys.
    fn add_run(&mut self, edit: &mut VersionEdit, level: usize, run: u64, among: std::ops::Range<u64>) {
        let mut at = among.start + self.rng.below(20);
        while at < among.end {
            let to = (at + self.rng.below(40)).min(among.end - 1);
            let place = self.place(level, run);
            let bytes = 1 + self.rng.below(3000);
            edit.added.push((place, info(at..=to, bytes)));
            at = to + 1 + self.rng.below(30);
        }
    }

    /// Takes tables away at random, also from the last run.
    fn remove_some(&mut self, edit: &mut VersionEdit) {
        let tree = self.version.tree(0).unwrap().clone();
        for (level, run, table) in tree.tables() {
            if self.rng.one_in(9) {
                edit.removed.push(TablePlace { key_space: 0, level, run, number: table.number });
            }
        }
    }
}

/// Everything that a choice looks at.
fn all_of(ranges: &mut Ranges) -> String {
    ranges.measure();
    let part = |part: &PartOfRun| (part.run, part.tables.iter().map(|table| table.number).collect::<Vec<_>>());
    let ranges_of = ranges.by_start.iter().map(|(start, range)| {
        let last: Vec<u64> = range.last.iter().map(|table| table.number).collect();
        (start.clone(), range.upper.iter().map(part).collect::<Vec<_>>(), last, range.bytes, range.live_bytes())
    });
    let all: Vec<_> = ranges_of.collect();
    format!("{all:?} {:?} {:?} {:?} {:?}", ranges.gains, ranges.crowds, ranges.tiny, ranges.sums)
}

/// R2, over random changes of trees and views, with last runs that come and go.
#[test]
fn ranges_that_follow_are_those_of_a_look_at_all() {
    let tiny = TinyBytes(2000);
    for seed in 0..20 {
        let mut model = Model { template: template(), rng: Rng::new(seed), version: Version::default(), number: 10 };
        let mut edit = VersionEdit::default();
        model.add_run(&mut edit, 1, 1, 0..1000);
        model.apply(&edit);
        let mut followed = Ranges::default();
        for run in 2..40 {
            let mut edit = VersionEdit::default();
            match model.rng.below(4) {
                0 => model.remove_some(&mut edit),
                1 => {
                    let from = model.rng.below(900);
                    model.add_run(&mut edit, 0, run, from..from + 100);
                }
                2 if model.rng.one_in(4) => model.add_run(&mut edit, 2, run, 0..1000),
                _ => model.add_run(&mut edit, 0, run, 0..1000),
            }
            model.apply(&edit);
            let views: Vec<Seqno> = (0..model.rng.below(3)).map(|i| model.number / (i + 1)).rev().collect();
            let tree = model.version.tree(0).unwrap();
            followed.follow(tree, &views, tiny);
            let mut whole = Ranges::default();
            whole.follow(tree, &views, tiny);
            assert_eq!(all_of(&mut followed), all_of(&mut whole), "seed {seed}, run {run}");
        }
    }
}

/// How long the policy takes to choose in a tree of `tables` tables, where each choice follows a change of one range,
/// at least. Twenty runs lie over each range.
fn choice_among(tables: u64) -> Duration {
    const RUNS: u64 = 20;
    let (template, mut rng) = (template(), Rng::new(1));
    let keys = sketch(&mut rng, 20);
    let model = |number: u64, info: &TableInfo| {
        Ok(Arc::new(Table::modelled(&template, number, info.clone(), number..number, &keys)))
    };
    let mut edit = VersionEdit::default();
    for run in 0..RUNS {
        for range in 0..tables / RUNS {
            let place = TablePlace { key_space: 0, level: usize::from(run == 0), run, number: 1 + range * RUNS + run };
            edit.added.push((place, info(100 * range..=100 * range + 99, if run == 0 { 64 << 20 } else { 4 << 20 })));
        }
    }
    let mut version = Version::default().apply(&edit, model).unwrap().0;
    let chooser = Policy::ldc_ranged().chooser(64 << 20, 8 << 20).unwrap();
    let now = Now::default();
    assert!(chooser.pick(version.tree(0).unwrap(), &now).is_some());
    let mut least = Duration::MAX;
    for step in 0..20 {
        let range = rng.below(tables / RUNS);
        let place = TablePlace { key_space: 0, level: 0, run: 3, number: 1 + range * RUNS + 3 };
        let new = TablePlace { number: tables + RUNS + step, ..place };
        let changed = (new, info(100 * range..=100 * range + 50, 4 << 20));
        let edit = VersionEdit { removed: vec![place], added: vec![changed], ..VersionEdit::default() };
        // A range may be drawn twice.
        let Ok((next, _)) = version.apply(&edit, model) else { continue };
        version = next;
        let begin = Instant::now();
        assert!(chooser.pick(version.tree(0).unwrap(), &now).is_some());
        least = least.min(begin.elapsed());
    }
    least
}

/// A terabyte in ranges of 256 MiB, as keys that come in order leave it: a flush is cut into 1,024 tables at most. It
/// used to be cut into 4,096, 16 KiB each.
#[test]
fn a_flush_to_a_large_tree_is_cut_into_few_tables() {
    const RANGES: u64 = 4096;
    let (template, keys) = (template(), sketch(&mut Rng::new(1), 20));
    let mut edit = VersionEdit::default();
    for range in 0..RANGES {
        let place = TablePlace { key_space: 0, level: 1, run: 1, number: 1 + range };
        edit.added.push((place, info(100 * range..=100 * range + 99, 256 << 20)));
    }
    let model = |number: u64, info: &TableInfo| {
        Ok(Arc::new(Table::modelled(&template, number, info.clone(), number..number, &keys)))
    };
    let version = Version::default().apply(&edit, model).unwrap().0;
    let chooser = Policy::ldc_ranged().chooser(64 << 20, 8 << 20).unwrap();
    let tables = chooser.flush_shape(version.tree(0).unwrap()).cuts.len() + 1;
    assert!((256..=1024).contains(&tables), "{tables}");
}

/// Under a millisecond. A look at all tables took 1.2 s with 6,481 of them. `PLEX_TABLES=1000000` takes a gigabyte of
/// memory, and stays below a millisecond too.
#[test]
fn a_choice_costs_what_changed() {
    let tables = std::env::var("PLEX_TABLES").map_or(60_000, |tables| tables.parse().unwrap());
    let least = choice_among(tables);
    println!("{least:?} among {tables} tables");
    assert!(least < Duration::from_millis(1), "{least:?}");
}
