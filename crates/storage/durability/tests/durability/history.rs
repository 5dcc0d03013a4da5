//! How much of the history is kept: a day by default, never more than the limit of space, and the state before a flush.

use crate::checkpoints::restored;
use crate::life::{DIR, Life, START_MS, policy};
use crate::model::Model;
use base::{DbIndex, UnixMs};
use checkpoint::{DataDir, ManifestFile, Retention, Space};
use config::Settings;
use durability::{Cause, Policy};
use engine::{Effect, Encoding, Keyspace, Value};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::{At, LockSet, Txn, WriteClass};
use vfs::{FileSystem, SimFs};

const DAY_MS: u64 = 86_400_000;

fn commit(life: &mut Life, change: &dyn Fn(&mut Txn<'_>)) {
    let at = At { now: START_MS, db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Any };
    let run = |txn: &mut Txn<'_>| {
        change(txn);
        Ok(())
    };
    while life.store.commit(&mut life.scratch, &LockSet::All, &at, run).is_err() {
        std::thread::yield_now();
    }
    life.changes.fetch_add(1, Ordering::Relaxed);
    life.end_turn();
}

/// Keys of one command.
const KEYS: usize = 50;

/// Sets keys with values of a hundred bytes.
fn fill(life: &mut Life, keys: std::ops::Range<u32>) {
    for first in keys.clone().step_by(KEYS) {
        commit(life, &|txn| {
            for number in (first..keys.end).take(KEYS) {
                let name = format!("key:{number}");
                let key = txn.key(name.as_bytes());
                let value = Value::Bytes(&[b'v'; 100]);
                txn.apply(&Effect::Set { key, value, encoding: Encoding::PLAIN, expire_at: None });
            }
        });
    }
    life.changes.fetch_add(keys.len() as u64, Ordering::Relaxed);
}

fn flushall(life: &mut Life) {
    commit(life, &|txn| {
        let space = txn.space_of(DbIndex(0)).expect("the first database");
        txn.apply(&Effect::Clear { space });
    });
}

fn set_times(fs: &SimFs) -> Vec<UnixMs> {
    let dir = DataDir::open_to_look(Arc::new(fs.clone()), Path::new(DIR));
    let file = ManifestFile::load(&dir).expect("it reads").expect("there is one");
    file.current().sets.iter().map(|set| set.created_ms - START_MS).collect()
}

/// Bytes of checkpoints and log.
fn taken(fs: &SimFs) -> u64 {
    let entries = fs.read_dir(Path::new(DIR)).expect("the directory");
    let names = entries.into_iter().map(|entry| entry.name.to_string_lossy().into_owned());
    let kept = names.filter(|name| name.starts_with("prdb-") || name.starts_with("log-"));
    kept.filter_map(|name| fs.metadata(&Path::new(DIR).join(name)).ok()).map(|found| found.len).sum()
}

/// In 0.1.0 a FLUSHALL could be undone for a minute or two: the checkpoint that the save rule took after it and the one
/// of the stop pushed out the last state before it.
#[test]
fn the_state_before_a_flush_outlives_the_save_rule_and_the_stop() {
    let fs = SimFs::new(31);
    let default = Policy::of(&Settings::default());
    let policy = Policy { retention: default.retention, save_points: default.save_points, ..policy() };
    let mut life = Life::start(&fs, policy).expect("it starts");
    fill(&mut life, 0..20_000);
    let (before, position) = (Model::digest(&life.store), life.store.log().expect("it is on").end());
    flushall(&mut life);
    life.clock.advance_ms(61_000);
    // 10,000 changes in 60 seconds.
    life.wait_until(|| life.durability.status().sets == 1);
    life.wait_for_rest();
    life.checkpoint(Cause::Shutdown).expect("the disk works");
    life.stop();
    assert_eq!(set_times(&fs).len(), 3, "the beginning, the save rule's, the stop's");
    assert!(restored(&fs, 0, position) == before, "all 20,000 keys");
}

/// Sets and log together stay below the limit, however many checkpoints are taken and however much is written.
#[test]
fn what_is_kept_never_exceeds_the_limit_of_space() {
    let fs = SimFs::new(32);
    // Small segments are half header.
    let (limit, segment_bytes) = (600_000, 16 << 10);
    let retention = Retention { sets: 2, age_ms: Some(DAY_MS), space: Space::Bytes(limit) };
    let mut life = Life::start(&fs, Policy { retention, segment_bytes, ..policy() }).expect("it starts");
    // The last round may be one that gives up all sets but two, by when the keeper trims.
    let (mut most, mut most_sets) = (0, 0);
    for round in 0..60 {
        fill(&mut life, 0..round * 5);
        life.clock.advance_ms(600_000);
        life.checkpoint(Cause::Asked).expect("the disk works");
        assert!(taken(&fs) <= limit, "{} bytes in round {round}", taken(&fs));
        most = most.max(taken(&fs));
        most_sets = most_sets.max(life.durability.status().sets);
    }
    assert!(most > limit / 2, "and what may be kept is: {most} bytes");
    let since = |life: &Life| life.durability.status().restorable_since_ms;
    let reach = since(&life);
    assert!(most_sets > 2, "more than the fewest are kept where there is room: {most_sets}");
    assert!(reach > Some(START_MS), "the history has lost its beginning");
    // Without a checkpoint the log has to give way, as soon as it has begun a segment.
    fill(&mut life, 0..2_000);
    life.wait_until(|| since(&life) > reach && taken(&fs) <= limit);
    life.stop();
}

/// However short the time that is kept: the state before a flush stays for a day.
#[test]
fn a_flush_pins_the_set_before_it_for_a_day() {
    let fs = SimFs::new(33);
    // Two sets, as the policy of these tests says, and no time.
    let mut life = Life::start(&fs, policy()).expect("it starts");
    fill(&mut life, 0..100);
    for _ in 0..3 {
        life.clock.advance_ms(1_000);
        life.checkpoint(Cause::Asked).expect("the disk works");
    }
    fill(&mut life, 100..120);
    let (before, position) = (Model::digest(&life.store), life.store.log().expect("it is on").end());
    flushall(&mut life);
    for _ in 0..3 {
        life.clock.advance_ms(1_000);
        life.checkpoint(Cause::Asked).expect("the disk works");
    }
    life.stop();
    // A start does not forget it.
    let life = Life::start(&fs, policy()).expect("it starts");
    life.clock.advance_ms(7_000);
    life.checkpoint(Cause::Asked).expect("the disk works");
    assert_eq!(set_times(&fs)[0], 3_000);
    assert!(restored(&fs, 0, position) == before);
    life.clock.advance_ms(DAY_MS);
    life.checkpoint(Cause::Asked).expect("the disk works");
    assert_eq!(set_times(&fs).len(), 2, "a day later it goes");
    let segments = cmdlog::segments(&fs, Path::new(DIR)).expect("they can be listed");
    assert!(segments[0].first > position, "and so does its log: {segments:?}");
    life.stop();
}
