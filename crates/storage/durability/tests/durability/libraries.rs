//! Libraries of functions survive checkpoints, the log and kills; a power cut undoes only a change that was not
//! durable.

use crate::life::{Life, policy};
use base::{Clock as _, DbIndex};
use cmdlog::LogMode;
use durability::{Cause, Policy};
use engine::{Effect, Keyspace as _};
use store::{At, LockSet, WriteClass};
use vfs::{Outage, SimFs};

fn library(life: &mut Life, name: &[u8], code: &[u8]) {
    let at = At { now: life.clock.now_ms(), db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Any };
    let apply = |txn: &mut store::Txn<'_>| {
        txn.apply(&Effect::Library { name, code });
        Ok(())
    };
    while life.store.commit(&mut life.scratch, &LockSet::All, &at, apply).is_err() {
        std::thread::yield_now();
    }
}

fn is_durable(life: &Life) -> bool {
    life.store.log().is_some_and(|log| log.durable() == log.end())
}

fn found(life: &Life) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    life.store.libraries.get().iter().map(|(name, code)| (text(name), text(code))).collect()
}

fn restarted(life: Life, outage: Outage) -> Life {
    let fs = life.fs.recover(outage);
    life.crash();
    Life::start(&fs, policy()).expect("it starts")
}

fn pair(name: &str, code: &str) -> (String, String) {
    (name.to_owned(), code.to_owned())
}

#[test]
fn libraries_survive_checkpoints_and_kills() {
    let mut life = Life::start(&SimFs::new(1), policy()).expect("it starts");
    library(&mut life, b"a", b"one");
    library(&mut life, b"b", b"two");
    life.end_turn();
    life.wait_until(|| is_durable(&life));
    life = restarted(life, Outage::ProcessKill);
    assert_eq!(found(&life), [pair("a", "one"), pair("b", "two")], "from the log");
    life.checkpoint(Cause::Asked).expect("the disk works");
    life = restarted(life, Outage::ProcessKill);
    assert_eq!(found(&life), [pair("a", "one"), pair("b", "two")], "from a checkpoint");
    assert_eq!(life.recovered.keys, 0, "libraries are no keys");
    library(&mut life, b"a", b"");
    library(&mut life, b"b", b"three");
    life.end_turn();
    life.wait_until(|| is_durable(&life));
    life = restarted(life, Outage::ProcessKill);
    assert_eq!(found(&life), [pair("b", "three")], "from a checkpoint and the log after it");
    life.stop();
}

#[test]
fn a_power_cut_undoes_only_a_library_that_was_not_durable() {
    let policy = Policy { mode: LogMode::Sync, ..policy() };
    for seed in 0..20 {
        let mut life = Life::start(&SimFs::new(seed), policy.clone()).expect("it starts");
        library(&mut life, b"a", b"one");
        life.end_turn();
        life.wait_until(|| is_durable(&life));
        library(&mut life, b"a", b"two");
        let is_second_durable = is_durable(&life);
        let life = restarted(life, Outage::PowerCut { seed });
        let now = found(&life);
        let second = now == [pair("a", "two")];
        assert!(second || !is_second_durable && now == [pair("a", "one")], "{now:?} after cut {seed}");
        life.stop();
    }
}
