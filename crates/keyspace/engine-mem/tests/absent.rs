//! Edits of trees whose leaves are rows: what stops has changed nothing, and what comes to its end is the same edit.

use base::hash::KeyHasher;
use base::{KeyspaceId, Rng};
use engine::{Encoding, Engine, Key, Known, Type, Value};
use engine_mem::{MemEngine, MemoryUse};
use std::collections::BTreeMap;
use std::sync::Arc;
use value::absent::{self, aside::Aside};
use value::hash::{Change, View};

const SPACE: KeyspaceId = KeyspaceId(0);
const START: i64 = 1_700_000_000_000;

type Fields = BTreeMap<Vec<u8>, Vec<u8>>;

fn fields(engine: &mut MemEngine, key: &Key<'_>) -> Fields {
    let Some(entry) = engine.read(key, false).expect("it is in memory") else { return Fields::new() };
    let view = View::of(entry.encoding, entry.value.stored());
    view.iter().map(|cell| (cell.field.to_vec(), cell.value.to_vec())).collect()
}

#[test]
fn an_edit_that_stops_has_changed_nothing() {
    let (hasher, memory) = (KeyHasher::new(&mut Rng::new(1)), Arc::new(MemoryUse::default()));
    let mut engine = MemEngine::new(hasher.clone(), Rng::new(2), memory.clone());
    engine.set_time(START);
    let (key, mut rng, aside) = (Key::new(&hasher, SPACE, b"hash"), Rng::new(3), Arc::new(Aside::default()));
    let (mut model, mut stops) = (Fields::new(), 0);
    for round in 0..1_500 {
        let field = format!("field {}", rng.below(700)).into_bytes();
        let value = vec![b'v'; rng.below(200) as usize];
        let mut changes = Vec::new();
        match round > 700 && rng.one_in(2) {
            true => Change::Delete(&field).put(&mut changes),
            false => Change::Set { field: &field, value: &value, expire_at: None }.put(&mut changes),
        }
        let is_tree = engine.read(&key, false).unwrap().is_some_and(|entry| entry.encoding == Encoding::BIG);
        if is_tree && rng.one_in(4) {
            engine.reform(&key, &mut |tree| aside.take(tree, &mut || rng.one_in(2)));
        }
        let mut held = Vec::new();
        loop {
            let before = memory.total();
            let Err(stop) = absent::catch(|| engine.edit(&key, Type::Hash, &changes, Known::Read, false)) else {
                break;
            };
            assert_eq!(memory.total(), before, "nothing is charged");
            assert!(held.len() < 8, "an edit reaches few leaves");
            if rng.one_in(20) {
                assert_eq!(absent::waiting(|| fields(&mut engine, &key)), model);
            }
            stop.leaf.fetch().expect("the row is readable");
            held.push(stop);
            stops += 1;
        }
        match Change::take(&mut &changes[..]) {
            Some(Change::Delete(_)) => _ = model.remove(&field),
            _ => _ = model.insert(field, value),
        }
        if round % 50 == 0 {
            assert_eq!(absent::aside::run(|| fields(&mut engine, &key)), model);
        }
    }
    assert!(stops > 100, "{stops} stops");
    let Some(Value::Big(tree)) = engine.read(&key, false).unwrap().map(|entry| entry.value) else { panic!("a tree") };
    assert!(tree.may_have_rows());
    assert!(engine.remove(&key));
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while aside.held() > 0 {
        assert!(std::time::Instant::now() < deadline, "{} rows are left", aside.held());
        std::thread::yield_now();
    }
}
