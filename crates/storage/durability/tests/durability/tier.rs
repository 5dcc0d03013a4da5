//! Values on a tier in whole lives: demoted at random between commands, named by checkpoints, cut by power at every
//! operation, and read again after starts.

use crate::life::{Life, found, policy};
use crate::model::{Model, seeds};
use base::{DbIndex, KeyspaceId, Rng};
use durability::{Cause, DurabilityError, Policy, TierPolicy};
use engine::{Effect, Encoding, Fetch, Keyspace, Known, Type, Value};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use store::{At, Blocked, LockSet, Txn, WriteClass};
use tier::{Medium, Options};
use value::{hash, list, set, zset};
use vfs::{Delays, FileSystem, Outage, SimFs, SimOptions};

const DIR: &str = "/tier";

/// All values may go to the tier, in segments so small that there are many. Cleaning is asked for.
fn tiered() -> Policy {
    let (max_bytes, value_len_min, segment_bytes) = (u64::MAX, 8, 1 << 10);
    let (medium, delays) = (Medium::File, Delays::NONE);
    let options = Options { max_bytes, value_len_min, takes_written: false, segment_bytes, medium, delays };
    let tier = TierPolicy {
        dir: PathBuf::from(DIR),
        options,
        retain_max_bytes: u64::MAX,
        has_cleaner: false,
        scrub_seconds: 0,
    };
    Policy { tier: Some(tier), ..policy() }
}

fn figures(life: &Life) -> tier::Figures {
    life.durability.tier().expect("there is one").figures()
}

/// Cleans until nothing is to be gained.
fn clean(life: &Life) {
    while life.durability.clean_tier(false) {}
}

/// Demotes values of random shards.
fn demote(life: &Life, rng: &mut Rng) {
    for shard in life.store.shard_ids() {
        if rng.one_in(2) {
            life.store.demote(shard, rng.below(4000) as usize);
        }
    }
    if rng.one_in(2) {
        demote_written(life);
    }
}

/// What workers do between turns.
fn demote_written(life: &Life) {
    while life.store.demote_step(0) {}
}

/// The policy `write`.
fn written() -> Policy {
    let mut policy = tiered();
    policy.tier.as_mut().expect("there is one").options.takes_written = true;
    policy
}

/// A machine and a policy with a medium that follows from the seed: files, the page cache, persistent memory.
fn machine(seed: u64, policy: Policy) -> (SimFs, Policy) {
    let medium = [Medium::File, Medium::Shared, Medium::Dax][seed as usize % 3];
    (
        SimFs::with_options(SimOptions { seed, is_dax: medium == Medium::Dax, ..SimOptions::default() }),
        on(medium, policy),
    )
}

fn on(medium: Medium, mut policy: Policy) -> Policy {
    policy.tier.as_mut().expect("there is one").options.medium = medium;
    policy
}

fn demote_all(life: &Life) {
    life.store.shard_ids().for_each(|shard| while life.store.demote(shard, usize::MAX) > 0 {});
}

/// A life with a demotion after every few commands, and checkpoints.
fn live(life: &mut Life, model: &mut Model, rng: &mut Rng, rounds: usize) {
    for round in 0..rounds {
        model.commands(life, rng, 8);
        demote(life, rng);
        assert_eq!(Model::digest(&life.store), model.now(), "a demotion changes no value");
        if rng.one_in(2) {
            while life.durability.clean_tier(true) {}
            assert_eq!(Model::digest(&life.store), model.now(), "cleaning changes no value");
        }
        if round % 3 == 2 {
            life.checkpoint(Cause::Asked).expect("the disk works");
        }
    }
}

/// What a start finds is a state that was, at or after the last that was durable: with values whose only copy is on the
/// tier, and with values that only the log has.
#[test]
fn power_cuts_lose_no_value_on_a_tier() {
    for seed in seeds(3) {
        let mut rng = Rng::new(seed);
        let (fs, policy) = machine(seed, if seed % 2 == 0 { tiered() } else { written() });
        fs.record_crash_points();
        let mut life = Life::start(&fs, policy.clone()).expect("it starts");
        let mut model = Model::new(&life);
        live(&mut life, &mut model, &mut rng, 9);
        let figures = figures(&life);
        assert!(figures.appended_values > 20 && figures.read_values > 20, "{figures:?}");
        life.crash();
        let points = fs.take_crash_points();
        println!("seed {seed}: {} crash points", points.len());
        for point in points.iter().skip(rng.below(2) as usize).step_by(2) {
            let (operation, what) = (point.operation(), format!("seed {seed}, operation {}", point.operation()));
            let state = found(&point.power_cut(seed), policy.clone()).unwrap_or_else(|error| panic!("{what}: {error}"));
            model.judge(state, operation).unwrap_or_else(|problem| panic!("{what}: {problem}"));
            if operation.is_multiple_of(9) {
                live_on(&model, &point.after(Outage::ProcessKill), &policy, operation, &what);
            }
        }
    }
}

/// Database 1 has its rows on disk, next to values of database 0 on a tier: copies go from one to the other, and both
/// are read again after every power cut and kill.
#[test]
fn power_cuts_lose_nothing_next_to_a_database_on_disk() {
    for seed in seeds(2) {
        let mut rng = Rng::new(seed);
        let (fs, policy) = machine(seed, if seed % 2 == 0 { tiered() } else { written() });
        let policy = Policy { disk_databases: vec![1], flush_bytes: 2 << 10, ..policy };
        fs.record_crash_points();
        let mut life = Life::start(&fs, policy.clone()).expect("it starts");
        let mut model = Model::new(&life);
        for _ in 0..4 {
            live(&mut life, &mut model, &mut rng, 2);
            let flushes = || life.durability.flush_status().map_or(0, |status| status.count);
            let before = flushes();
            life.store.pressure.want();
            life.wait_until(|| flushes() > before);
            let shards = life.store.shard_ids();
            let dropped: usize = shards.map(|shard| life.store.drop_clean(shard, KeyspaceId(1), usize::MAX)).sum();
            println!("seed {seed}: {dropped} bytes of rows left memory");
            assert_eq!(Model::digest(&life.store), model.now(), "what rows have is read again");
        }
        let (of_tier, of_rows) = (figures(&life), life.durability.flush_status().expect("there are rows"));
        assert!(of_tier.appended_values > 10 && of_tier.read_values > 10 && of_rows.count > 0, "{of_tier:?}");
        life.crash();
        let points = fs.take_crash_points();
        println!("seed {seed}: {} crash points", points.len());
        for point in points.iter().skip(rng.below(3) as usize).step_by(3) {
            let (operation, what) = (point.operation(), format!("seed {seed}, operation {}", point.operation()));
            for outage in [Outage::PowerCut { seed }, Outage::ProcessKill] {
                let state =
                    found(&point.after(outage), policy.clone()).unwrap_or_else(|error| panic!("{what}: {error}"));
                model.judge(state, operation).unwrap_or_else(|problem| panic!("{what}, {outage:?}: {problem}"));
            }
        }
    }
}

/// After a kill a second life continues with the same tier, and is cut by power at its end.
fn live_on(model: &Model, fs: &SimFs, policy: &Policy, operation: u64, what: &str) {
    let mut rng = Rng::new(operation);
    let mut life = Life::start(fs, policy.clone()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut second = Model::new(&life);
    model.judge(second.now(), operation).unwrap_or_else(|problem| panic!("{what}: {problem}"));
    live(&mut life, &mut second, &mut rng, 3);
    second.look(&life);
    let end = fs.operations() + 1;
    life.crash();
    let state = found(&fs.recover(Outage::PowerCut { seed: operation }), policy.clone());
    let state = state.unwrap_or_else(|error| panic!("{what}, then cut: {error}"));
    second.judge(state, end).unwrap_or_else(|problem| panic!("{what}, then cut: {problem}"));
}

/// Sets a key to a value that follows from its number and round.
fn set(life: &mut Life, number: u64, round: u64) {
    let (name, value) = (format!("key:{number}"), format!("{number}:{round}:").repeat(12));
    run(life, |txn| {
        let (key, value) = (txn.key(name.as_bytes()), Value::Bytes(value.as_bytes()));
        txn.apply(&Effect::Set { key, value, encoding: Encoding::PLAIN, expire_at: None });
        Ok(())
    });
}

/// A crash at any operation while segments are cleaned, named and removed loses nothing, and no value is wrong.
#[test]
fn cleaning_survives_every_crash() {
    for seed in seeds(3) {
        let mut rng = Rng::new(seed);
        let (fs, policy) = machine(seed, tiered());
        let mut life = Life::start(&fs, policy.clone()).expect("it starts");
        let mut model = Model::new(&life);
        for round in 0..5 {
            for number in 0..40 {
                if round == 0 || rng.one_in(3) {
                    set(&mut life, number, round);
                    model.push(&life);
                }
            }
            demote_all(&life);
            model.look(&life);
            if round == 0 {
                life.checkpoint(Cause::Asked).expect("the disk works");
                fs.record_crash_points();
            }
            while life.durability.clean_tier(true) {}
            assert_eq!(Model::digest(&life.store), model.now(), "cleaning changes no value");
            life.checkpoint(Cause::Asked).expect("the disk works");
        }
        let figures = figures(&life);
        assert!(figures.cleaned_segments > 5 && figures.cleaning_bytes > 2000, "{figures:?}");
        life.crash();
        let points = fs.take_crash_points();
        println!("seed {seed}: {} crash points, {figures:?}", points.len());
        for point in points {
            for outage in [Outage::PowerCut { seed }, Outage::ProcessKill] {
                let (operation, what) =
                    (point.operation(), format!("seed {seed}, {outage:?} at {}", point.operation()));
                let state =
                    found(&point.after(outage), policy.clone()).unwrap_or_else(|error| panic!("{what}: {error}"));
                model.judge(state, operation).unwrap_or_else(|problem| panic!("{what}: {problem}"));
            }
        }
    }
}

/// A read in progress keeps the segment that it reads, while cleaning moves the value.
#[test]
fn a_read_in_progress_keeps_its_segment() {
    let one_set = checkpoint::Retention { sets: 1, ..checkpoint::Retention::default() };
    let fs = SimFs::new(10);
    let mut life = Life::start(&fs, Policy { retention: one_set, ..tiered() }).expect("it starts");
    // The first is in a segment with others, whatever the order of demotion.
    set(&mut life, 0, 0);
    demote_all(&life);
    (1..30).for_each(|number| set(&mut life, number, 0));
    demote_all(&life);
    let at = At { now: 0, db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Nothing };
    let read = life.store.commit(&mut life.scratch, &LockSet::All, &at, |txn| {
        let key = txn.key(b"key:0");
        txn.read(&key).map(drop)
    });
    assert!(matches!(read, Err(Blocked::Fetch)), "{read:?}");
    let wants = life.scratch.take_wants();
    (1..30).for_each(|number| set(&mut life, number, 1));
    demote_all(&life);
    while life.durability.clean_tier(true) {}
    for _ in 0..2 {
        life.checkpoint(Cause::Asked).expect("the disk works");
        life.clock.advance_ms(10_000);
    }
    assert!(figures(&life).cleaned_segments > 0);
    let [want] = &wants[..] else { panic!("{wants:?}") };
    let mut row = Vec::new();
    let rows = want.rows.as_ref().expect("it is on the tier");
    assert!(rows.get(&want.key, &mut row).expect("its segment is there"));
    assert_eq!(row[1..], *"0:0:".repeat(12).as_bytes());
    let before = figures(&life).segments;
    life.store.release(&wants);
    drop(wants);
    life.checkpoint(Cause::Asked).expect("the disk works");
    assert!(figures(&life).segments < before, "its segment goes after the read");
    life.stop();
}

/// Reads a key, and brings what that lacks.
fn read(life: &mut Life, number: u64) {
    let name = format!("key:{number}");
    run(life, |txn| {
        let key = txn.key(name.as_bytes());
        assert!(txn.read(&key)?.is_some_and(|entry| !entry.is_away()));
        Ok(())
    });
}

/// Near the budget a value comes back for good at its second read, and before that without a write; with room at once.
#[test]
fn the_second_read_promotes() {
    let fs = SimFs::new(11);
    let mut life = Life::start(&fs, tiered()).expect("it starts");
    (0..10).for_each(|number| set(&mut life, number, 0));
    demote_all(&life);
    let appended = figures(&life).appended_values;
    let reads = |life: &mut Life, number: u64| -> Vec<u64> {
        let before = figures(life).read_values;
        let each = |_| {
            read(life, number);
            figures(life).read_values - before
        };
        (0..4).map(each).collect()
    };
    assert_eq!(reads(&mut life, 0), [1, 1, 1, 1], "there is room");
    let used = life.store.memory.total();
    life.store.set_budget(used + used / 20, None, Default::default());
    assert_eq!(reads(&mut life, 1), [1, 2, 2, 2], "there is little room");
    for number in 2..6 {
        read(&mut life, number);
    }
    assert_eq!(life.store.tier_counts.promoted.load(Ordering::Relaxed), 2);
    assert_eq!(reads(&mut life, 3), [1, 1, 1, 1], "it was read once before");
    assert_eq!(figures(&life).appended_values, appended, "nothing is written");
    // A value that changes after its first read stays as it is then.
    set(&mut life, 7, 0);
    assert_eq!(reads(&mut life, 7), [0, 0, 0, 0]);
    life.stop();
}

/// With the policy `write`, values leave memory after they are written, also if they were edited, and come back at
/// their second read. Short ones stay.
#[test]
fn written_values_go_to_the_tier() {
    let fs = SimFs::new(13);
    let mut policy = written();
    policy.tier.as_mut().expect("there is one").options.value_len_min = 64;
    let mut life = Life::start(&fs, policy).expect("it starts");
    (0..20).for_each(|number| set(&mut life, number, 1000));
    run(&mut life, |txn| {
        let (key, value) = (txn.key(b"short"), Value::Bytes(&[7; 63]));
        txn.apply(&Effect::Set { key, value, encoding: Encoding::PLAIN, expire_at: None });
        Ok(())
    });
    assert!(life.store.wants_demotion());
    demote_written(&life);
    assert!(!life.store.wants_demotion());
    assert_eq!(figures(&life).appended_values, 20);
    // A change of a value brings it back, and it goes again.
    for round in 0..2u8 {
        run(&mut life, |txn| {
            let key = txn.key(b"key:3");
            txn.read_to_edit(&key)?;
            txn.apply(&Effect::Splice { key, offset: 0, bytes: &[round] });
            Ok(())
        });
        demote_written(&life);
        assert_eq!(figures(&life).appended_values, 21 + u64::from(round));
    }
    let before = figures(&life).read_values;
    (0..4).for_each(|_| read(&mut life, 5));
    assert_eq!(figures(&life).read_values - before, 2);
    // One that is deleted, and one that is written twice.
    set(&mut life, 30, 1000);
    set(&mut life, 31, 1000);
    set(&mut life, 31, 1001);
    run(&mut life, |txn| {
        let key = txn.key(b"key:30");
        txn.apply(&Effect::Delete { key });
        Ok(())
    });
    demote_written(&life);
    assert_eq!(figures(&life).appended_values, 23);
    let expected = Model::digest(&life.store);
    life.stop();
    assert_eq!(found(&fs, tiered()).expect("it starts"), expected);
}

/// On persistent memory the log has addresses: a SET of 1 KB takes 64 bytes of it at most, and a start replays the
/// addresses without reading a value. In the page cache the log has the values.
#[test]
fn the_log_has_addresses_on_persistent_memory() {
    const KEYS: u64 = 50;
    for (medium, bytes_at_most) in [(Medium::Dax, 64), (Medium::Shared, 1100)] {
        let fs = SimFs::with_options(SimOptions { is_dax: medium == Medium::Dax, ..SimOptions::default() });
        let mut policy = on(medium, written());
        policy.tier.as_mut().expect("there is one").options.segment_bytes = 16 << 10;
        let mut life = Life::start(&fs, policy.clone()).expect("it starts");
        let value = vec![b'v'; 1024];
        let put = |life: &mut Life, number: u64| {
            let name = format!("key:{number:012}");
            run(life, |txn| {
                let (key, value) = (txn.key(name.as_bytes()), Value::Bytes(&value));
                txn.apply(&Effect::Set { key, value, encoding: Encoding::PLAIN, expire_at: None });
                Ok(())
            });
            life.durability.tier().expect("there is one").write_waiting().expect("the disk works");
        };
        life.durability.tier().expect("there is one").write_waiting().expect("the disk works");
        put(&mut life, 0);
        let end = |life: &Life| life.store.log().expect("the log is on").end().0;
        let bytes_of = |number| {
            let begin = end(&life);
            put(&mut life, number);
            end(&life) - begin
        };
        let mut bytes: Vec<u64> = (0..KEYS).map(bytes_of).collect();
        bytes.sort_unstable();
        // The median: on a busy machine a segment may not be ready in time, and the log has the value.
        let bytes = bytes[KEYS as usize / 2];
        assert!(bytes <= bytes_at_most, "{medium:?}: {bytes} bytes of log for a SET");
        assert_eq!(bytes < 200, medium == Medium::Dax, "{medium:?}: {bytes} bytes");
        let appended = figures(&life).appended_values;
        assert!(appended > KEYS, "{appended}");
        let expected = Model::digest(&life.store);
        life.stop();
        let life = Life::start(&fs, policy.clone()).expect("it starts");
        assert_eq!((figures(&life).read_values, figures(&life).appended_values == 0), (0, medium == Medium::Dax));
        assert_eq!(Model::digest(&life.store), expected);
        life.stop();
        // A segment that is gone costs its keys, and no start.
        if medium == Medium::Dax {
            fs.remove_file(&Path::new(DIR).join("seg-0000000002")).expect("it is there");
            let life = Life::start(&fs, policy).expect("it starts nevertheless");
            assert_eq!(figures(&life).missing_segments, 1);
            life.stop();
        }
    }
}

/// Segments that only the log names are kept until a checkpoint makes the log needless.
#[test]
fn segments_that_the_log_names_outlive_their_values() {
    let fs = SimFs::with_options(SimOptions { is_dax: true, ..SimOptions::default() });
    let mut life = Life::start(&fs, on(Medium::Dax, written())).expect("it starts");
    for round in 0..20 {
        (0..10).for_each(|number| set(&mut life, number, round));
        clean(&life);
        life.durability.tier().expect("there is one").write_waiting().expect("the disk works");
    }
    let before = figures(&life);
    assert!(before.pinned_bytes > before.live_bytes, "{before:?}");
    life.clock.advance_ms(100_000_000);
    for _ in 0..4 {
        life.checkpoint(Cause::Asked).expect("the disk works");
        life.clock.advance_ms(100_000_000);
    }
    let after = figures(&life);
    assert!(after.pinned_bytes < before.pinned_bytes / 2, "{before:?}, {after:?}");
    life.stop();
}

/// A value that expires within five seconds is not worth a write.
#[test]
fn values_about_to_expire_stay() {
    let fs = SimFs::new(12);
    let mut life = Life::start(&fs, tiered()).expect("it starts");
    for (name, after) in [("soon", 4_000), ("later", 6_000)] {
        run(&mut life, |txn| {
            let (key, expire_at) = (txn.key(name.as_bytes()), Some(crate::life::START_MS + after));
            txn.apply(&Effect::Set { key, value: Value::Bytes(&[7; 100]), encoding: Encoding::PLAIN, expire_at });
            Ok(())
        });
    }
    demote_all(&life);
    assert_eq!(figures(&life).appended_values, 1);
    life.stop();
}

/// Under uniform overwrites of twice the live data, with everything on the tier, its files take at most 1.3 bytes per
/// live byte, and cleaning writes at most 1.5 bytes per byte written.
#[test]
fn cleaning_bounds_space_and_writes() {
    const KEYS: u64 = 1500;
    let (fs, mut rng) = (SimFs::new(8), Rng::new(8));
    let log_off = Policy { log_wanted: false, ..tiered() };
    let mut life = Life::start(&fs, log_off).expect("it starts");
    for number in 0..KEYS {
        set(&mut life, number, 0);
        demote_all(&life);
    }
    let loaded = figures(&life);
    let mut worst = 0.0f64;
    for round in 0..2 * KEYS {
        set(&mut life, rng.below(KEYS), round);
        demote_all(&life);
        clean(&life);
        let now = figures(&life);
        worst = worst.max(now.bytes as f64 / now.live_bytes as f64);
    }
    let now = figures(&life);
    let written = now.appended_bytes - loaded.appended_bytes;
    let share = now.cleaning_bytes as f64 / written as f64;
    println!("{worst:.3} bytes per live byte, {share:.3} bytes cleaned per byte written, {now:?}");
    assert!(worst <= 1.3, "{worst} bytes per live byte: {now:?}");
    assert!(share <= 1.5, "cleaning wrote {share} bytes per byte written: {now:?}");
    assert!(now.cleaned_segments > 100, "{now:?}");
    life.stop();
}

/// An ordered stop leaves segments that are as long as their records, also those that were open, and no spare one.
#[test]
fn an_ordered_stop_cuts_open_segments() {
    for medium in [Medium::Shared, Medium::Dax] {
        let fs = SimFs::with_options(SimOptions { is_dax: medium == Medium::Dax, ..SimOptions::default() });
        let mut life = Life::start(&fs, on(medium, tiered())).expect("it starts");
        (0..5).for_each(|number| set(&mut life, number, 0));
        demote_all(&life);
        let (tier, expected) = (life.durability.tier().expect("there is one").clone(), Model::digest(&life.store));
        life.stop();
        // Other holders keep the tier, so it is not dropped.
        let files = tier::offline::segments(&fs, Path::new(DIR)).expect("the disk works");
        let (held, figures) = (files.iter().map(|(_, bytes)| bytes).sum::<u64>(), tier.figures());
        assert_eq!(held, figures.live_bytes + files.len() as u64 * tier::HEADER_BYTES as u64, "{medium:?}: {files:?}");
        drop(tier);
        assert_eq!(found(&fs, on(medium, tiered())).expect("it starts"), expected, "{medium:?}");
    }
}

/// Old checkpoints keep dead segments up to a limit. Then the oldest is given up, which is reported.
#[test]
fn the_oldest_checkpoint_is_given_up_for_space() {
    let (fs, limit) = (SimFs::new(9), 20 << 10);
    let many_sets = checkpoint::Retention { sets: 8, ..checkpoint::Retention::default() };
    let mut limited = Policy { retention: many_sets, ..tiered() };
    limited.tier.as_mut().expect("there is one").retain_max_bytes = limit;
    let mut life = Life::start(&fs, limited).expect("it starts");
    for round in 0..8 {
        (0..80).for_each(|number| set(&mut life, number, round));
        demote_all(&life);
        clean(&life);
        life.checkpoint(Cause::Asked).expect("the disk works");
        life.clock.advance_ms(10_000);
        let figures = figures(&life);
        assert!(figures.pinned_bytes <= limit, "round {round}: {figures:?}");
    }
    let sets = life.durability.status().sets;
    assert!((2..6).contains(&sets), "{sets} checkpoints are kept");
    assert!(life.told.0.lock().iter().any(|text| text.contains("checkpoint 1 is given up: dead segments of the tier")));
    let expected = Model::digest(&life.store);
    life.stop();
    assert_eq!(found(&fs, tiered()).expect("it starts"), expected);
}

/// A start loads addresses, and reads no value that a checkpoint names.
#[test]
fn a_start_reads_no_value_of_the_tier() {
    let (fs, mut rng) = (SimFs::new(1), Rng::new(1));
    let mut life = Life::start(&fs, tiered()).expect("it starts");
    let mut model = Model::new(&life);
    model.commands(&mut life, &mut rng, 200);
    demote_all(&life);
    life.checkpoint(Cause::Asked).expect("the disk works");
    let before = life.durability.tier().expect("there is one").figures();
    let expected = model.now();
    life.stop();
    let life = Life::start(&fs, tiered()).expect("it starts");
    let after = life.durability.tier().expect("there is one").figures();
    assert_eq!((after.read_values, after.live_bytes), (0, before.live_bytes));
    assert!(after.live_bytes > 0);
    assert_eq!(Model::digest(&life.store), expected);
    assert!(life.durability.tier().expect("there is one").figures().read_values > 0, "the digest reads");
    life.stop();
}

/// A segment that is gone costs its keys: others are served, and its keys can be deleted.
#[test]
fn a_missing_segment_costs_its_keys_alone() {
    let (fs, mut rng) = (SimFs::new(2), Rng::new(2));
    let mut life = Life::start(&fs, tiered()).expect("it starts");
    let mut model = Model::new(&life);
    model.commands(&mut life, &mut rng, 100);
    demote_all(&life);
    life.checkpoint(Cause::Asked).expect("the disk works");
    // Records of the log after the checkpoint change values that cannot be read any more.
    model.commands(&mut life, &mut rng, 40);
    life.stop();
    fs.remove_file(&Path::new(DIR).join("seg-0000000001")).expect("it is there");
    let mut life = Life::start(&fs, tiered()).expect("it starts nevertheless");
    assert_eq!(life.durability.tier().expect("there is one").figures().missing_segments, 1);
    let at = At { now: i64::MAX, db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Any };
    let deleted = life.store.commit(&mut life.scratch, &LockSet::All, &at, |txn| {
        for (db, number) in (0..2).flat_map(|db| (0..24).map(move |number| (db, number))) {
            txn.select(DbIndex(db));
            let name = format!("key:{number}");
            let key = txn.key(name.as_bytes());
            txn.apply(&Effect::Delete { key });
        }
        Ok(())
    });
    deleted.expect("nothing has to be read");
    assert_eq!(life.durability.tier().expect("there is one").figures().live_bytes, 0);
    life.stop();
}

/// A scrub finds damage of live values, says where it is, and takes nothing else for it.
#[test]
fn a_scrub_finds_what_is_damaged() {
    for medium in [Medium::File, Medium::Shared, Medium::Dax] {
        let options = SimOptions { seed: 11, is_dax: medium == Medium::Dax, ..SimOptions::default() };
        let (fs, policy) = (SimFs::with_options(options), on(medium, tiered()));
        let mut life = Life::start(&fs, policy.clone()).expect("it starts");
        (0..40).for_each(|number| set(&mut life, number, 1));
        while figures(&life).appended_values < 40 {
            demote_all(&life);
            // On a mapped medium a demotion ends when no segment is ready.
            life.durability.tier().expect("there is one").write_waiting().expect("the medium works");
        }
        life.checkpoint(Cause::Asked).expect("the disk works");
        life.stop();
        let mut life = Life::start(&fs, policy).expect("it starts");
        let tier = life.durability.tier().expect("there is one").clone();
        let path = |number| tier::offline::segment_path(Path::new(DIR), number);
        // A segment that is ready for records to come is not read.
        let segments = tier.segments_to_scrub();
        let bytes: u64 = segments.iter().map(|number| fs.metadata(&path(*number)).expect("it is there").len).sum();
        assert!(life.durability.scrub_tier());
        let whole = figures(&life);
        assert_eq!((whole.scrubbed_segments, whole.scrub_rounds, whole.damaged_bytes), (4, 1, 0), "{medium:?}");
        assert_eq!(whole.scrubbed_bytes, bytes, "{medium:?}");
        // The first record of the first segment, and all of the second one.
        let mut scan = tier.scan(1).expect("it is whole");
        let first = scan.next_record().expect("it can be read").expect("it has records");
        let first = tier::record_bytes(first.record.key.len(), first.address.len);
        let second = tier.live_bytes_of(2);
        assert!(first > 0 && second > first, "{first} and {second} bytes");
        fs.flip_bit(&path(1), 70, 1).expect("it is there");
        fs.damage(&path(2), 48, &vec![0x55; second as usize]).expect("it is there");
        for round in 2..4 {
            assert!(life.durability.scrub_tier());
            let damaged = figures(&life);
            assert_eq!((damaged.damaged_bytes, damaged.scrub_rounds), (first + second, round), "{medium:?}");
        }
        let told = life.told.0.lock().iter().filter(|told| told.contains("is damaged")).cloned().collect::<Vec<_>>();
        let [of_first, of_second] = &told[..] else { panic!("each is told once: {told:?}") };
        assert!(of_first.contains(&format!("segment 1 is damaged: {first} bytes")), "{of_first}");
        assert!(of_first.contains("offset 48") && of_second.contains("segment 2"), "{told:?}");
        // What nothing has any more is no damage.
        (0..40).for_each(|number| set(&mut life, number, 2));
        assert!(life.durability.scrub_tier());
        assert_eq!((figures(&life).damaged_bytes, figures(&life).scrub_rounds), (0, 4));
        drop(tier);
        life.stop();
    }
}

/// Runs a command that reads before it changes, and brings what it lacks.
fn run(life: &mut Life, mut command: impl FnMut(&mut Txn<'_>) -> Result<(), Fetch>) {
    let (mut wants, now) = (Vec::new(), 0);
    let at = At { now, db: DbIndex(0), touch: true, worker: 0, writes: WriteClass::Any };
    while let Err(blocked) = life.store.commit(&mut life.scratch, &LockSet::All, &at, &mut command) {
        assert!(matches!(blocked, Blocked::Fetch | Blocked::Shard | Blocked::Log), "{blocked:?}");
        for want in life.scratch.take_wants() {
            let mut row = Vec::new();
            let rows = want.rows.as_ref().expect("a value on a tier is read");
            assert!(rows.get(&want.key, &mut row).expect("the disk works"));
            life.store.install(&want, Some(&row));
            wants.push(want);
        }
    }
    life.store.release(&wants);
    life.end_turn();
}

/// A change of a collection of each type, by number.
fn change_of(number: u64) -> (Type, Vec<u8>) {
    let (element, mut changes) = (format!("{:0>40}", number / 5).into_bytes(), Vec::new());
    let kind = match number % 4 {
        0 => {
            hash::Change::Set { field: &element, value: &element, expire_at: None }.put(&mut changes);
            Type::Hash
        }
        1 => {
            list::Change::Push { end: list::End::Tail, value: &element }.put(&mut changes);
            Type::List
        }
        2 => {
            set::Change::Add(&element).put(&mut changes);
            Type::Set
        }
        _ => {
            zset::Change::Add { score: number as f64, member: &element }.put(&mut changes);
            Type::Zset
        }
    };
    (kind, changes)
}

/// Packed collections go to the tier and come back, are edited, and grow into trees, which stay in memory.
#[test]
fn collections_come_back_and_are_edited() {
    let (fs, mut rng) = (SimFs::new(5), Rng::new(5));
    let mut plain = Life::start(&SimFs::new(6), policy()).expect("it starts");
    let mut life = Life::start(&fs, tiered()).expect("it starts");
    for number in 0..600 {
        let (kind, changes) = change_of(number);
        let name = format!("{kind:?}:{}", rng.below(4));
        for life in [&mut plain, &mut life] {
            run(life, |txn| {
                let key = txn.key(name.as_bytes());
                txn.read_to_edit(&key)?;
                txn.edit(&key, kind, &changes, Known::Read).expect("an edit after a read");
                Ok(())
            });
        }
        demote(&life, &mut rng);
        assert_eq!(Model::digest(&life.store), Model::digest(&plain.store), "change {number}");
    }
    let figures = life.durability.tier().expect("there is one").figures();
    assert!(figures.appended_values > 50, "{figures:?}");
    life.checkpoint(Cause::Asked).expect("the disk works");
    let expected = Model::digest(&plain.store);
    life.stop();
    assert_eq!(found(&fs, tiered()).expect("it starts"), expected);
}

/// Segments go when nothing in memory and no retained checkpoint has them.
#[test]
fn dead_segments_go_with_the_checkpoints_that_name_them() {
    let (fs, mut rng) = (SimFs::new(3), Rng::new(3));
    let one_set = checkpoint::Retention { sets: 1, age_ms: None, ..checkpoint::Retention::default() };
    let policy = Policy { retention: one_set, ..tiered() };
    for life_number in 0..4 {
        let mut life = Life::start(&fs, policy.clone()).expect("it starts");
        let mut model = Model::new(&life);
        model.commands(&mut life, &mut rng, 100);
        demote_all(&life);
        life.checkpoint(Cause::Asked).expect("the disk works");
        assert!(life.durability.tier().expect("there is one").figures().live_bytes > 0, "life {life_number}");
        life.stop();
    }
    let mut life = Life::start(&fs, policy).expect("it starts");
    let at = At { now: 0, db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Any };
    let cleared = life.store.commit(&mut life.scratch, &LockSet::All, &at, |txn| {
        (0..2).for_each(|db| {
            let space = txn.space_of(DbIndex(db)).expect("there are so many databases");
            txn.apply(&Effect::Clear { space });
        });
        Ok(())
    });
    cleared.expect("the log takes it");
    life.end_turn();
    for shard in life.store.shard_ids() {
        while life.store.upkeep(shard, 0, &mut life.scratch) {}
    }
    // The first comes after the clearing, and the set before it goes.
    life.checkpoint(Cause::Asked).expect("the disk works");
    life.clock.advance_ms(100_000_000);
    life.checkpoint(Cause::Asked).expect("the disk works");
    life.checkpoint(Cause::Asked).expect("the disk works");
    let figures = life.durability.tier().expect("there is one").figures();
    assert_eq!((figures.live_bytes, figures.segments), (0, 0), "{figures:?}");
    life.stop();
}

/// A directory with values on a tier does not start without it, nor with another one.
#[test]
fn a_start_without_its_tier_is_refused() {
    let (fs, mut rng) = (SimFs::new(4), Rng::new(4));
    let mut life = Life::start(&fs, tiered()).expect("it starts");
    Model::new(&life).commands(&mut life, &mut rng, 20);
    life.stop();
    match Life::start(&fs, policy()).map(|_| ()) {
        Err(error @ DurabilityError::TierNeeded { .. }) => assert!(error.to_string().contains("--tier-dir /tier")),
        other => panic!("{other:?}"),
    }
    let mut other = tiered();
    other.tier.as_mut().expect("there is one").dir = PathBuf::from("/elsewhere");
    let error = Life::start(&fs, other).map(|_| ()).expect_err("its device is not mounted");
    assert!(matches!(error, DurabilityError::Tier(tier::TierError::Missing { .. })), "{error}");
    Life::start(&fs, tiered()).expect("it starts").stop();
}
