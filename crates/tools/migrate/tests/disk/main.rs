//! Tools over databases on disk: checks, restores to any moment, backups and repairs, also of what a power cut has
//! left.
//!
//! The lives are those of the tests of `durability`, whose crate may not use tools.

#[path = "../../../../storage/durability/tests/durability/life.rs"]
#[allow(dead_code, reason = "the tests of durability use the rest")]
mod life;
#[path = "../../../../storage/durability/tests/durability/model.rs"]
#[allow(dead_code, reason = "the tests of durability use the rest")]
mod model;

use crate::life::{DIR, Life, found, policy};
use crate::model::Model;
use base::clock::ManualClock;
use base::{DbIndex, HistoryId, KeyspaceId, Lsn, Rng};
use checkpoint::{DataDir, ManifestFile, Name};
use durability::{Cause, Policy};
use engine::{Effect, Keyspace};
use inspect::{Point, Source, Verdict, When};
use std::path::Path;
use std::sync::Arc;
use store::{At, Digest, LockSet, Txn, WriteClass};
use vfs::{FileSystem, Outage, SimFs};

/// Databases 0 and 1 are on disk, and are flushed for every kilobyte of log.
fn on_disk() -> Policy {
    Policy { disk_databases: vec![0, 1], flush_bytes: 2 << 10, ..policy() }
}

fn flushes(life: &Life) -> u64 {
    life.durability.flush_status().map_or(0, |status| status.count)
}

/// A life with a flush after every few commands, and the states that it goes through.
fn live(life: &mut Life, model: &mut Model, rng: &mut Rng, rounds: usize) -> Vec<(Lsn, Digest)> {
    let mut states = Vec::new();
    for round in 0..rounds {
        for _ in 0..12 {
            let before = model.last();
            model.command(life, rng);
            model.look(life);
            states.extend(life.scratch.wrote().filter(|_| model.last() > before).map(|lsn| (lsn, model.now())));
        }
        // A flush has begun for every kilobyte.
        life.wait_until(|| life.durability.flush_status().is_none_or(|status| status.unflushed_bytes < 1 << 10));
        for shard in life.store.shard_ids() {
            (0..2).for_each(|space| _ = life.store.drop_clean(shard, KeyspaceId(space), usize::MAX));
        }
        if round % 3 == 2 {
            let _ = life.checkpoint(Cause::Asked);
        }
    }
    states
}

const NEWEST: When = When::At(Point::Time(i64::MAX));

/// Puts a state in the place of the data directory.
fn restore(fs: &SimFs, to: When) -> Result<inspect::Restored, inspect::ToolError> {
    let (shared, into): (Arc<dyn FileSystem>, _) = (Arc::new(fs.clone()), Path::new("/restored"));
    let (clock, from) = (ManualClock::new(9_000_000), Source::Stopped(Path::new(DIR)));
    let done = inspect::restore(&shared, &clock, &from, to, into, HistoryId([9; 20]), &mut |_| {})?;
    // A copy of the copy is as good.
    fs.rename(into, Path::new("/first")).expect("the disk works");
    let from = Source::Stopped(Path::new("/first"));
    inspect::restore(&shared, &clock, &from, NEWEST, into, HistoryId([8; 20]), &mut |_| {})?;
    fs.rename(Path::new(DIR), Path::new("/before")).expect("the disk works");
    fs.rename(into, Path::new(DIR)).expect("the disk works");
    Ok(done)
}

fn check(fs: &SimFs) -> (Verdict, String) {
    let (shared, mut said): (Arc<dyn FileSystem>, _) = (Arc::new(fs.clone()), String::new());
    let verdict = inspect::check(&shared, Path::new(DIR), &mut |line| said.push_str(&format!("{line}\n")));
    assert!(!said.contains("that no row has"), "parts are deleted with their rows: {said}");
    (verdict.expect("it can be read"), said)
}

fn checked(fs: &SimFs) -> Verdict {
    let (verdict, said) = check(fs);
    if verdict != Verdict::Good {
        println!("{said}");
    }
    verdict
}

/// A directory with several checkpoints and flushes, after an ordered end, and the states that it went through.
fn lived(seed: u64) -> (SimFs, Vec<(Lsn, Digest)>) {
    let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
    let mut life = Life::start(&fs, on_disk()).expect("it starts");
    let mut model = Model::new(&life);
    let states = live(&mut life, &mut model, &mut rng, 14);
    assert!(flushes(&life) > 3);
    life.stop();
    (fs, states)
}

/// Every moment since the oldest checkpoint can be restored, and the copy has what was on disk then, on disk.
#[test]
fn any_moment_is_restored() {
    let (fs, states) = lived(11);
    let (verdict, said) = check(&fs);
    assert!(verdict == Verdict::Good && said.contains("good     lsm-000000"), "{said}");
    let dir = DataDir::open_to_look(Arc::new(fs.clone()), Path::new(DIR));
    let manifest = ManifestFile::load(&dir).expect("it is whole").expect("there is one");
    let oldest = manifest.current().sets.first().expect("there are some").clone();
    assert!(oldest.rows.is_some_and(|rows| rows.lsn > Lsn(0)), "rows have come into it");
    let moments: Vec<_> = states.into_iter().filter(|(lsn, _)| *lsn >= oldest.cut).collect();
    assert!(moments.len() > 20, "{} moments", moments.len());
    for (lsn, state) in moments.iter().step_by(moments.len() / 8) {
        let fs = fs.recover(Outage::ProcessKill);
        restore(&fs, When::At(Point::Lsn(*lsn))).unwrap_or_else(|error| panic!("LSN {lsn}: {error}"));
        assert_eq!(found(&fs, on_disk()).expect("it starts"), *state, "LSN {lsn}");
        assert_eq!(checked(&fs), Verdict::Good);
    }
    let before = When::At(Point::Lsn(Lsn(oldest.cut.0 - 1)));
    let fs = fs.recover(Outage::ProcessKill);
    assert!(restore(&fs, before).is_err_and(|error| error.to_string().contains("no earlier moment can be restored")));
}

/// What a power cut leaves is whole as the tools see it, and a restore has what a start finds.
#[test]
fn power_cuts_leave_what_can_be_restored() {
    let (fs, mut rng) = (SimFs::new(16), Rng::new(16));
    fs.record_crash_points();
    let mut life = Life::start(&fs, on_disk()).expect("it starts");
    let mut model = Model::new(&life);
    live(&mut life, &mut model, &mut rng, 9);
    assert!(flushes(&life) > 1);
    life.crash();
    let points = fs.take_crash_points();
    let step = points.len() / 40;
    assert!(step > 1, "{} crash points", points.len());
    for point in points.iter().skip(rng.below(step as u64) as usize).step_by(step) {
        let what = format!("operation {}", point.operation());
        let left = point.power_cut(16);
        let dir = DataDir::open_to_look(Arc::new(left.clone()), Path::new(DIR));
        if !dir.list().is_ok_and(|listing| listing.manifest) {
            continue;
        }
        assert_eq!(checked(&left), Verdict::Good, "{what}");
        let state = found(&left.recover(Outage::ProcessKill), on_disk()).expect("it starts");
        model.judge(state, point.operation()).unwrap_or_else(|problem| panic!("{what}: {problem}"));
        let again = left.recover(Outage::ProcessKill);
        restore(&again, NEWEST).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(found(&again, on_disk()).expect("it starts"), state, "{what}, restored");
    }
}

/// What a FLUSHALL has removed from databases on disk comes back, after checkpoints and flushes of rows as well.
#[test]
fn a_flushall_is_undone() {
    for checkpoints in [0, 2] {
        let (fs, mut rng) = (SimFs::new(12), Rng::new(12));
        let mut life = Life::start(&fs, on_disk()).expect("it starts");
        let mut model = Model::new(&life);
        for _ in 0..checkpoints {
            model.commands(&mut life, &mut rng, 60);
            life.checkpoint(Cause::Asked).expect("the disk works");
        }
        model.commands(&mut life, &mut rng, 60);
        let (before, lsn) = (model.now(), life.store.log().expect("it is on").end());
        clear(&mut life);
        for _ in 0..3 {
            // Enough for a flush.
            live(&mut life, &mut model, &mut rng, 1);
            life.clock.advance_ms(1_000);
            life.checkpoint(Cause::Asked).expect("the disk works");
        }
        life.stop();
        restore(&fs, When::At(Point::Lsn(lsn))).expect("the set before it is pinned");
        assert_eq!(found(&fs, on_disk()).expect("it starts"), before);
    }
}

fn clear(life: &mut Life) {
    let at = At { now: life.durability.now_ms(), db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Any };
    let run = |txn: &mut Txn<'_>| {
        for number in 0..2 {
            let space = txn.space_of(DbIndex(number)).expect("there are two");
            txn.apply(&Effect::Clear { space });
        }
        Ok(())
    };
    while life.store.commit(&mut life.scratch, &LockSet::All, &at, run).is_err() {
        std::thread::yield_now();
    }
    life.end_turn();
}

/// A backup of a running server has all that was durable, and outlives the server's files.
#[test]
fn a_backup_of_a_running_server() {
    let (fs, mut rng) = (SimFs::new(13), Rng::new(13));
    let mut life = Life::start(&fs, on_disk()).expect("it starts");
    let mut model = Model::new(&life);
    live(&mut life, &mut model, &mut rng, 7);
    let log = life.store.log().expect("it is on");
    life.wait_until(|| log.durable() == log.end());
    let (expected, durable) = (model.now(), log.durable());
    // The server continues, flushes and merges, but keeps what it has named.
    model.commands(&mut life, &mut rng, 40);
    let shared: Arc<dyn FileSystem> = Arc::new(fs.clone());
    let (clock, into) = (ManualClock::new(9_000_000), Path::new("/backup"));
    let mut said = String::new();
    let mut say = |line: &str| said.push_str(line);
    inspect::backup(&shared, &clock, Path::new(DIR), Some(durable), into, HistoryId([9; 20]), &mut say)
        .expect("the disk works");
    assert!(said.contains("linked /backup/lsm-"), "{said}");
    life.stop();
    fs.rename(Path::new(DIR), Path::new("/before")).expect("the disk works");
    fs.rename(into, Path::new(DIR)).expect("the disk works");
    assert_eq!(found(&fs, on_disk()).expect("it starts"), expected);
    let mut life = Life::start(&fs, on_disk()).expect("it starts");
    let mut model = Model::new(&life);
    live(&mut life, &mut model, &mut rng, 4);
    let expected = model.now();
    life.stop();
    assert_eq!(found(&fs, on_disk()).expect("it starts"), expected, "it serves as any other");
}

/// Rows that are damaged are found. Those in use are replaced by the copy of a checkpoint and the log after it; where
/// the copies are damaged as well, nothing is called whole.
#[test]
fn damaged_rows_are_found_and_replaced() {
    let (fs, states) = lived(14);
    let newest = states.last().expect("there are some").1;
    let clock = ManualClock::new(9_000_000);
    let plan = |fs: &SimFs| inspect::plan_repair(&(Arc::new(fs.clone()) as Arc<dyn FileSystem>), Path::new(DIR), false);
    assert!(plan(&fs).expect("it can be read").is_none(), "nothing is damaged");
    let names = |name: &str| fs.read_dir(&Path::new(DIR).join(name)).expect("it is there");
    let rows = Path::new(DIR).join("lsm");
    let manifest = names("lsm").into_iter().find(|entry| entry.name.to_string_lossy().starts_with("MANIFEST"));
    let manifest = rows.join(manifest.expect("there is one").name);
    let damaged = fs.recover(Outage::ProcessKill);
    damaged.flip_bit(&manifest, 30, 1).expect("it is there");
    assert_eq!(check(&damaged).0, Verdict::Damaged);
    let repair = plan(&damaged).expect("it can be read").expect("it is damaged");
    assert_eq!(repair.lost, Vec::<String>::new());
    let own: Arc<dyn FileSystem> = Arc::new(damaged.clone());
    inspect::repair(&own, &clock, Path::new(DIR), &repair, HistoryId([7; 20]), &mut |_| {}).expect("the disk works");
    assert_eq!(found(&damaged, on_disk()).expect("it starts"), newest);
    // MANIFEST is damaged: the copies say which databases are on disk.
    let damaged = fs.recover(Outage::ProcessKill);
    damaged.flip_bit(&Path::new(DIR).join("MANIFEST"), 40, 1).expect("it is there");
    let own: Arc<dyn FileSystem> = Arc::new(damaged.clone());
    let repair = plan(&damaged).expect("it can be read").expect("it is damaged");
    inspect::repair(&own, &clock, Path::new(DIR), &repair, HistoryId([7; 20]), &mut |_| {}).expect("the disk works");
    assert_eq!(found(&damaged, on_disk()).expect("it starts"), newest);
    // A table that all of them share.
    let fs = fs.recover(Outage::ProcessKill);
    let dir = DataDir::open_to_look(Arc::new(fs.clone()), Path::new(DIR));
    for set in dir.list().expect("it is there").row_copies {
        let copy = dir.file(Name::RowsOf { set });
        for entry in fs.read_dir(&copy).expect("it is there") {
            if entry.name.to_string_lossy().ends_with(".sst") {
                fs.flip_bit(&copy.join(entry.name), 20, 1).expect("it is there");
            }
        }
    }
    let (verdict, said) = check(&fs);
    assert!(verdict == Verdict::Damaged && said.contains("DAMAGED  /data/lsm-"), "{said}");
    let refused = plan(&fs).map(|_| ()).expect_err("no copy is whole");
    assert!(refused.to_string().contains("no checkpoint is whole"), "{refused}");
    assert!(restore(&fs, NEWEST).is_err(), "and no restore begins with one");
}

/// A checkpoint of a time when a database was in memory brings it back there.
#[test]
fn a_moment_before_a_database_came_to_disk() {
    let (fs, mut rng) = (SimFs::new(15), Rng::new(15));
    let mut life = Life::start(&fs, policy()).expect("it starts");
    let mut model = Model::new(&life);
    model.commands(&mut life, &mut rng, 40);
    life.checkpoint(Cause::Asked).expect("the disk works");
    let (before, lsn) = (model.now(), life.store.log().expect("it is on").end());
    clear(&mut life);
    life.stop();
    let mut life = Life::start(&fs, on_disk()).expect("both are empty");
    assert!(life.durability.lacks_copy_of_rows(), "the server has one taken");
    life.checkpoint(Cause::Rewrite).expect("the disk works");
    assert!(!life.durability.lacks_copy_of_rows());
    let mut model = Model::new(&life);
    live(&mut life, &mut model, &mut rng, 3);
    let expected = model.now();
    life.stop();
    let old = fs.recover(Outage::ProcessKill);
    restore(&old, When::At(Point::Lsn(lsn))).expect("it is reachable");
    assert_eq!(found(&old, policy()).expect("it is in memory"), before);
    let new = fs.recover(Outage::ProcessKill);
    restore(&new, NEWEST).expect("it is reachable");
    assert_eq!(found(&new, on_disk()).expect("it starts"), expected);
}
