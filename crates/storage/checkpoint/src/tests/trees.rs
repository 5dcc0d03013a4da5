//! Collections in a checkpoint: packed ones unchanged, trees in ordered parts.

use super::*;
use engine::model::{Content, ModelEngine};
use engine::{Engine, ExtFields, Key, Known, NewEntry};
use value::list::{Change, End};

/// More than three blocks, so that it is written in parts.
const ELEMENTS: usize = 5_000;

fn element(list: usize, index: usize) -> Vec<u8> {
    format!("list {list}, element {index:06}, with some text to make it longer").into_bytes()
}

/// Lists of all sizes, and strings that keep other threads busy.
fn filled(rng: &mut Rng) -> ModelEngine {
    let mut engine = ModelEngine::with_hasher(Rng::new(1), hasher());
    for list in 0..12 {
        let name = format!("list:{list}");
        let count = [1, 20, ELEMENTS][list % 3];
        let mut changes = Vec::new();
        for index in 0..count {
            Change::Push { end: End::Tail, value: &element(list, index) }.put(&mut changes);
        }
        let key = Key::new(&hasher(), KeyspaceId(0), name.as_bytes());
        assert!(engine.edit(&key, Type::List, &changes, Known::Read, false).is_ok());
        if list % 2 == 0 {
            engine.set_expiration(&key, Some(10_000 + list as i64));
        }
    }
    for number in 0..3_000u32 {
        let (name, mut value) = (format!("string:{number}"), vec![0; 200]);
        rng.fill(&mut value);
        let value = Value::Bytes(&value);
        let new =
            NewEntry { kind: Type::String, encoding: Encoding::PLAIN, value, expire_at: None, fields: ExtFields::NONE };
        engine.write(&Key::new(&hasher(), KeyspaceId(0), name.as_bytes()), &new);
    }
    engine
}

/// Stores what a load returns, in one engine under a lock.
fn apply(engine: &Mutex<ModelEngine>, effect: &Effect<'_>) {
    let engine = &mut *engine.lock();
    match *effect {
        Effect::Set { ref key, value, encoding, expire_at } => {
            engine.write(key, &NewEntry { kind: Type::String, encoding, value, expire_at, fields: ExtFields::NONE });
        }
        Effect::Store { ref key, kind, encoding, value, expire_at } => {
            engine.write(key, &NewEntry { kind, encoding, value, expire_at, fields: ExtFields::NONE });
        }
        Effect::Edit { ref key, kind, changes } => assert!(engine.edit(key, kind, changes, Known::Read, false).is_ok()),
        Effect::Expire { ref key, at } => assert!(engine.set_expiration(key, Some(at))),
        _ => panic!("{effect:?} was not saved"),
    }
}

/// Every element comes back in its place, whichever thread reads which block; so does the expiration of the lists.
#[test]
fn trees_come_back_in_order() {
    let fs = SimFs::new(1);
    let dir = data_dir(&fs);
    let mut saved = filled(&mut Rng::new(3));
    let feed = Feed::new(FeedOptions::default(), Arc::new(Backlog::default()));
    let mut writer =
        Writer::create(&dir, SetId(1), WriterOptions { threads: 2, ..WriterOptions::default() }, &feed).unwrap();
    saved.begin_checkpoint(feed.sink());
    writer.begin(head(1)).unwrap();
    saved.walk_checkpoint(usize::MAX);
    let mut sink = saved.end_checkpoint().expect("it was running");
    sink.finish();
    drop(sink);
    let info = writer.finish().unwrap();
    let expected = saved.contents();
    assert_eq!(info.entries(), expected.len() as u64, "a tree counts once");
    assert!(expected.values().any(|stored| matches!(stored.value, Content::Big(_))));
    for threads in [1, 4] {
        let loaded = Mutex::new(ModelEngine::with_hasher(Rng::new(1), hasher()));
        let report =
            load(&dir, &info, threads, &hasher(), &|effect| apply(&loaded, effect), &LoadProgress::default()).unwrap();
        assert_eq!(report.entries, expected.len() as u64);
        assert!(loaded.into_inner().contents() == expected, "with {threads} threads");
    }
}

/// A file cut after a part, with a matching footer, is damage and not a shorter list.
#[test]
fn a_tree_without_its_end_is_damage() {
    let fs = SimFs::new(1);
    let dir = data_dir(&fs);
    let path = dir.file(Name::Snapshot { set: SetId(1), file: 0 });
    let file = OutFile::create(&fs, &path, BUFFER_BYTES, true).unwrap();
    let header = Header {
        set: SetId(1),
        file: 0,
        files: 1,
        cut: Lsn(1),
        history: HISTORY,
        created_ms: 1_000,
        key_id: 0,
        spaces: (0..4).map(KeyspaceId).collect(),
    };
    let mut writer = SnapshotWriter::begin(file, &header, u64::MAX).unwrap();
    let (mut part, mut changes) = (Vec::new(), Vec::new());
    Change::Push { end: End::Tail, value: b"a" }.put(&mut changes);
    cmdlog::record::put_edit_head(&mut part, KeyspaceId(0), b"list", Type::List, changes.len());
    writer.write_block(&part, &changes, 0).unwrap();
    let info = writer.finish().unwrap();
    let SetHead { cut, history, created_ms, log_from, .. } = head(1);
    let set = SetInfo { set: SetId(1), cut, history, created_ms, log_from, files: vec![info], rows: None };
    let result = load(&dir, &set, 1, &hasher(), &|_| {}, &LoadProgress::default());
    let error = result.expect_err("the list has no end").to_string();
    assert!(error.contains("within a collection"), "{error}");
}
