//! The position of a replica is that of its data after every kind of end: it is in the record of the changes before it,
//! and in the checkpoint of the same moment.

use crate::life::{Life, log_off, policy};
use base::{Clock as _, DbIndex, UnixMs};
use cmdlog::LogMode;
use durability::{Cause, Policy};
use engine::{Effect, Encoding, Keyspace as _, Value};
use store::{At, LockSet, WriteClass};
use vfs::{Outage, SimFs};

const KEY: &[u8] = b"key";

fn at(now: UnixMs) -> At {
    At { now, db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Any }
}

/// One step of a primary: the key gets the number that the position has.
fn step(life: &mut Life, number: u64) {
    let (text, at) = (number.to_string(), at(life.clock.now_ms()));
    let apply = |txn: &mut store::Txn<'_>| {
        let (key, value) = (txn.key(KEY), Value::Bytes(text.as_bytes()));
        txn.apply(&Effect::Set { key, value, encoding: Encoding::PLAIN, expire_at: None });
        txn.apply(&Effect::Position { text: text.as_bytes() });
        Ok(())
    };
    while life.store.commit(&mut life.scratch, &LockSet::All, &at, apply).is_err() {
        std::thread::yield_now();
    }
    life.end_turn();
}

/// The number, if data and position agree.
fn number(life: &mut Life) -> String {
    let (mut value, at) = (Vec::new(), at(life.clock.now_ms()));
    let read = |txn: &mut store::Txn<'_>| {
        let key = txn.key(KEY);
        value = txn.peek_value(&key)?.map(|entry| entry.value.bytes().to_vec()).unwrap_or_default();
        Ok(())
    };
    life.store.commit(&mut life.scratch, &LockSet::All, &at, read).expect("nothing else runs");
    let [value, position] = [value, life.store.position.get()].map(|bytes| String::from_utf8(bytes).expect("digits"));
    assert_eq!(value, position, "the data and its position");
    position
}

fn is_durable(life: &Life) -> bool {
    life.store.log().is_some_and(|log| log.durable() == log.end())
}

fn restarted(life: Life, policy: Policy, outage: Outage) -> Life {
    let fs = life.fs.recover(outage);
    life.crash();
    Life::start(&fs, policy).expect("it starts")
}

#[test]
fn a_position_survives_checkpoints_and_kills() {
    let mut life = Life::start(&SimFs::new(1), policy()).expect("it starts");
    (1..=3).for_each(|number| step(&mut life, number));
    life.wait_until(|| is_durable(&life));
    life = restarted(life, policy(), Outage::ProcessKill);
    assert_eq!(number(&mut life), "3", "from the log");
    life.checkpoint(Cause::Asked).expect("the disk works");
    life = restarted(life, policy(), Outage::ProcessKill);
    assert_eq!((number(&mut life), life.recovered.keys), ("3".to_owned(), 1), "from a checkpoint; it is no key");
    step(&mut life, 4);
    life.wait_until(|| is_durable(&life));
    life = restarted(life, policy(), Outage::ProcessKill);
    assert_eq!(number(&mut life), "4", "from a checkpoint and the log after it");
    life.stop();
}

/// Without a log, data and position are those of the last checkpoint.
#[test]
fn without_a_log_the_checkpoint_has_the_position() {
    let mut life = Life::start(&SimFs::new(1), log_off()).expect("it starts");
    step(&mut life, 1);
    life.checkpoint(Cause::Asked).expect("the disk works");
    step(&mut life, 2);
    life = restarted(life, log_off(), Outage::ProcessKill);
    assert_eq!(number(&mut life), "1");
    life.stop();
}

#[test]
fn a_power_cut_undoes_a_position_with_its_data() {
    let policy = Policy { mode: LogMode::Sync, ..policy() };
    for seed in 0..20 {
        let mut life = Life::start(&SimFs::new(seed), policy.clone()).expect("it starts");
        step(&mut life, 1);
        life.wait_until(|| is_durable(&life));
        (2..=9).for_each(|number| step(&mut life, number));
        let mut life = restarted(life, policy.clone(), Outage::PowerCut { seed });
        let found = number(&mut life).parse::<u64>().expect("the first step was durable");
        assert!((1..=9).contains(&found), "{found} after cut {seed}");
        life.stop();
    }
}

/// A start without a primary: clients may write what no primary has.
#[test]
fn a_position_that_is_forgotten_stays_so() {
    let mut life = Life::start(&SimFs::new(1), policy()).expect("it starts");
    step(&mut life, 1);
    life.store.forget_position(0);
    assert!(life.store.position.is_empty());
    life.wait_until(|| is_durable(&life));
    let life = restarted(life, policy(), Outage::ProcessKill);
    assert!(life.store.position.is_empty());
    life.stop();
}
