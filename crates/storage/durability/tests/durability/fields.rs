//! Optional fields of entries of every form survive checkpoints, the log after them, and a kill.

use crate::life::{Life, policy};
use crate::model::Model;
use base::{Clock as _, DbIndex};
use durability::Cause;
use engine::{Effect, Encoding, Fields, Keyspace as _, Known, Type, Value};
use store::{At, LockSet, Txn, WriteClass};
use value::list;
use vfs::{Outage, SimFs};

/// Elements of a list that is a tree.
const MANY: usize = 5_000;

fn run(life: &mut Life, command: impl Fn(&mut Txn<'_>)) {
    let now = life.clock.now_ms();
    let at = At { now, db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Any };
    let command = |txn: &mut Txn<'_>| {
        command(txn);
        Ok(())
    };
    life.store.commit(&mut life.scratch, &LockSet::All, &at, command).expect("nothing blocks");
    life.end_turn();
}

fn store(txn: &mut Txn<'_>, name: &str, value: &[u8], expire_at: Option<i64>, fields: &Fields<'_>) {
    let key = txn.key(name.as_bytes());
    types::fields::set(txn, &key, Value::Bytes(value), expire_at, fields);
}

fn replace(txn: &mut Txn<'_>, name: &str, fields: &Fields<'_>) {
    let key = txn.key(name.as_bytes());
    let is_stored = types::fields::replace(txn, &key, fields).expect("in memory");
    assert!(is_stored, "{name}");
}

fn push(txn: &mut Txn<'_>, name: &str, count: usize) {
    let mut changes = Vec::new();
    (0..count).for_each(|_| list::Change::Push { end: list::End::Tail, value: b"element" }.put(&mut changes));
    let edited = txn.edit(&txn.key(name.as_bytes()), Type::List, &changes, Known::Read);
    edited.expect("an edit after a read");
}

/// One entry of each form: inside the page and outside, packed and a tree, with and without an expiration.
fn fill(txn: &mut Txn<'_>) {
    let some = Fields { flags: 7, ..Fields::default() };
    let more = Fields { is_sticky: true, attributes: b"maxcount", unknown: b"\xfe\x01x", ..some };
    let at = txn.now() + 1_000_000;
    let later = Some(at);
    store(txn, "small", b"value", None, &some);
    store(txn, "expires", b"value", later, &more);
    store(txn, "big", &[b'x'; 100_000], later, &more);
    store(txn, "plain", b"value", None, &Fields::default());
    push(txn, "packed", 3);
    replace(txn, "packed", &more);
    push(txn, "tree", MANY);
    replace(txn, "tree", &some);
    push(txn, "tree that expires", MANY);
    replace(txn, "tree that expires", &more);
    txn.apply(&Effect::Expire { key: txn.key(b"tree that expires"), at });
}

/// Changes that keep fields, change them, drop them, and give them to other keys.
fn change(txn: &mut Txn<'_>) {
    let [small, big, packed, tree, plain] =
        ["small", "big", "packed", "tree", "plain"].map(|name| txn.key(name.as_bytes()));
    replace(txn, "plain", &Fields { flags: 1, ..Fields::default() });
    replace(txn, "expires", &Fields::default());
    txn.apply(&Effect::Splice { key: small, offset: 3, bytes: b"longer" });
    txn.apply(&Effect::Splice { key: big, offset: 3, bytes: b"changed" });
    push(txn, "packed", 1);
    push(txn, "tree", 1);
    for (from, to) in [(small, "small copy"), (packed, "packed copy"), (tree, "tree copy")] {
        txn.apply(&Effect::Copy { from, to: txn.key(to.as_bytes()) });
    }
    txn.apply(&Effect::Rename { from: big, to: txn.key(b"big renamed") });
    let (encoding, value) = (Encoding::PLAIN, Value::Bytes(b"again"));
    txn.apply(&Effect::Set { key: plain, value, encoding, expire_at: None });
}

/// What is left after a kill, once everything is durable.
fn killed(life: Life) -> Life {
    life.wait_until(|| life.store.log().is_some_and(|log| log.durable() == log.end()));
    let fs = life.fs.recover(Outage::ProcessKill);
    life.crash();
    Life::start(&fs, policy()).expect("it starts")
}

#[test]
fn fields_survive_checkpoints_and_kills() {
    let mut life = Life::start(&SimFs::new(1), policy()).expect("it starts");
    run(&mut life, fill);
    let filled = Model::digest(&life.store);
    life = killed(life);
    assert_eq!(Model::digest(&life.store), filled, "from the log");
    life.checkpoint(Cause::Asked).expect("the disk works");
    life = killed(life);
    assert_eq!(Model::digest(&life.store), filled, "from a checkpoint");
    run(&mut life, change);
    let changed = Model::digest(&life.store);
    assert_ne!(changed, filled);
    life = killed(life);
    assert_eq!(Model::digest(&life.store), changed, "from a checkpoint and the log after it");
    life.checkpoint(Cause::Asked).expect("the disk works");
    life = killed(life);
    assert_eq!(Model::digest(&life.store), changed, "from a second checkpoint");
    // The digest sees fields, so it would have seen a loss.
    run(&mut life, |txn| replace(txn, "tree", &Fields { flags: 8, ..Fields::default() }));
    assert_ne!(Model::digest(&life.store), changed);
    life.stop();
}
