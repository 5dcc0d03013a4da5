//! `repair --salvage` keeps every whole block of a damaged checkpoint and nothing else, and its numbers are right.

use super::*;
use crate::present::Present;
use crate::salvage::Salvage;
use crate::sieve::{Keys, Sieve};
use crate::{RepairPlan, ToolError, Verdict, check, plan_repair, repair};
use checkpoint::{FileInfo, Header, Name, SetId, SetInfo, SnapshotWriter, WholeBlocks};
use vfs::OutFile;

/// A directory whose only checkpoint has several blocks, with the log on top of it.
fn on_top_of_a_checkpoint(seed: u64) -> World {
    let mut world = World::without_log(seed);
    world.unlogged(6000);
    world.switch_on();
    world
}

fn plan(fs: &SimFs, salvage: bool) -> Result<Option<RepairPlan>, ToolError> {
    plan_repair(&shared(fs), Path::new(DIR), salvage)
}

/// Salvages, and returns what a start finds then.
fn salvaged(fs: &SimFs) -> (RepairPlan, Model) {
    let plan = plan(fs, true).expect("it can be salvaged").expect("it is damaged");
    let clock = ManualClock::new(9_000_000);
    repair(&shared(fs), &clock, Path::new(DIR), &plan, HistoryId([9; 20]), &mut |_| {}).unwrap();
    let mut said = String::new();
    let verdict = check(&shared(fs), Path::new(DIR), &mut |line| said.push_str(&line.to_string())).unwrap();
    assert_eq!(verdict, Verdict::Good, "{said}");
    (plan, start(fs, Path::new(DIR)).unwrap())
}

/// The file with most of the entries: which writer takes which blocks is random.
fn biggest(stopped: &Stopped) -> PathBuf {
    let len = |path: &PathBuf| stopped.fs.metadata(path).unwrap().len;
    stopped.files("prdb-").into_iter().max_by_key(len).expect("there are files")
}

/// The number before a word in a line.
fn number_before(line: &str, word: &str) -> usize {
    let before = line.split(word).next().expect("there is a beginning");
    before.split_whitespace().last().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{line}"))
}

/// Any damage: kept data is unchanged, the numbers of kept and lost keys are right, and much is kept.
#[test]
fn whole_blocks_are_kept_and_counted() {
    let stopped = on_top_of_a_checkpoint(41).stop();
    let path = &biggest(&stopped);
    let len = stopped.fs.metadata(path).unwrap().len;
    let mut rng = Rng::new(3);
    for round in 2..40 {
        let fs = stopped.fs.crash_point().after(vfs::Outage::ProcessKill);
        match round {
            2..4 => fs.open(path, vfs::OpenOptions::write()).unwrap().set_len(len / 2).unwrap(),
            // A page of zeros, as a failing disk leaves it.
            4..8 => fs.open(path, vfs::OpenOptions::write()).unwrap().write_all_at(&[0; 4096], len / 3).unwrap(),
            // The header, and the footer.
            8..10 => fs.flip_bit(path, 20, 1).unwrap(),
            10..12 => fs.flip_bit(path, len - 5, 1).unwrap(),
            _ => fs.flip_bit(path, rng.below(len), 1).unwrap(),
        }
        let refused = plan(&fs, false).unwrap_err().to_string();
        assert!(refused.contains("onggi repair --salvage /data` would keep "), "{refused}");
        let (plan, state) = salvaged(&fs);
        assert!(state.iter().all(|(key, value)| stopped.model.get(key) == Some(value)), "round {round}");
        assert!(state.len() > 500, "round {round}: {} keys", state.len());
        let (kept, lost) = (state.len(), 6000 - state.len());
        if lost == 0 {
            assert!((8..12).contains(&round), "round {round}: {plan:?}");
            assert!(plan.lost.is_empty() && plan.kept.contains("with 6000 keys"), "{plan:?}");
            continue;
        }
        assert_eq!(number_before(&plan.kept, " of 6000 keys"), kept, "{plan:?}");
        assert_eq!(number_before(&plan.lost[0], " of 6000 keys"), lost, "{plan:?}");
        assert_eq!(number_before(&refused, " of 6000 keys"), kept, "{refused}");
    }
}

/// A missing file costs its entries, and the other file is kept; if none is left, the plan reports that.
#[test]
fn a_missing_file_costs_its_entries() {
    let stopped = on_top_of_a_checkpoint(42).stop();
    let data = DataDir::open_to_look(shared(&stopped.fs), Path::new(DIR));
    let set = ManifestFile::load(&data).unwrap().unwrap().current().newest().unwrap().clone();
    for file in 0..set.files.len() {
        let fs = stopped.fs.crash_point().after(vfs::Outage::ProcessKill);
        fs.remove_file(&stopped.files("prdb-")[file]).unwrap();
        let kept = set.entries() - set.files[file].entries;
        match plan(&fs, true) {
            Ok(_) => {
                let (plan, state) = salvaged(&fs);
                assert_eq!(state.len() as u64, kept, "{plan:?}");
            }
            Err(error) => assert!(kept == 0 && matches!(error, ToolError::NotRepairable { .. }), "{error}"),
        }
    }
}

/// The log after the checkpoint: each present key has its newest value, changes of lost values are left out, and writes
/// after the damage are kept.
#[test]
fn the_log_after_damaged_blocks_is_followed() {
    for seed in 0..6 {
        let mut world = on_top_of_a_checkpoint(50 + seed);
        let hasher = hasher();
        for n in 0..300 {
            let name = format!("unlogged:{}", n * 17);
            let key = Key::new(&hasher, KeyspaceId(0), name.as_bytes());
            let other = format!("renamed:{n}");
            let to = Key::new(&hasher, KeyspaceId(0), other.as_bytes());
            let place = (0, name.clone().into_bytes());
            match n % 5 {
                0 => world.put(name.as_bytes(), b"written anew"),
                1 => {
                    world.push(&[Effect::Splice { key, offset: 0, bytes: b"" }]);
                }
                2 => {
                    world.push(&[Effect::Delete { key }]);
                    world.model.remove(&place);
                }
                3 => {
                    world.push(&[Effect::Rename { from: key, to }]);
                    let value = world.model.remove(&place).unwrap();
                    world.model.insert((0, other.into_bytes()), value);
                }
                _ => {
                    world.push(&[Effect::Copy { from: key, to }]);
                    let value = world.model[&place].clone();
                    world.model.insert((0, other.into_bytes()), value);
                }
            }
            if n % 50 == 0 {
                world.sync();
            }
        }
        world.put(b"at last", b"value");
        world.sync();
        let stopped = world.stop();
        let path = &biggest(&stopped);
        let len = stopped.fs.metadata(path).unwrap().len;
        stopped.fs.flip_bit(path, len / 2, 1).unwrap();
        let (plan, state) = salvaged(&stopped.fs);
        assert!(state.iter().all(|(key, value)| stopped.model.get(key) == Some(value)), "seed {seed}");
        assert!(state.contains_key(&(0, b"at last".to_vec())) && state.len() > 500, "{plan:?}");
        let anew = (0..300).step_by(5).map(|n| (0, format!("unlogged:{}", n * 17).into_bytes()));
        assert!(anew.into_iter().all(|key| state.contains_key(&key)), "seed {seed}: what was written anew is there");
        assert!(!plan.lost.is_empty());
    }
}

/// A newer state without salvage is better than whole blocks of an older one, and an older whole checkpoint is reported
/// before blocks are used.
#[test]
fn salvage_is_only_for_what_would_be_lost() {
    let stopped = two_sets(61).stop();
    stopped.fs.remove_file(&stopped.files("prdb-00000002")[0]).unwrap();
    let (done, state) = salvaged(&stopped.fs);
    assert!(done.lost.is_empty() && state == stopped.model, "{done:?}");

    let mut world = World::without_log(62);
    world.unlogged(3000);
    world.checkpoint_without_log();
    let older = world.model.clone();
    world.unlogged(6000);
    world.switch_on();
    let stopped = world.stop();
    let files = stopped.files("prdb-00000002").into_iter();
    let path = files.max_by_key(|path| stopped.fs.metadata(path).unwrap().len).unwrap();
    stopped.fs.flip_bit(&path, 5000, 1).unwrap();
    let found = plan(&stopped.fs, false).unwrap().expect("it is damaged");
    assert!(found.kept.contains("checkpoint 00000001") && found.hint.is_some(), "{found:?}");
    let (done, state) = salvaged(&stopped.fs);
    assert!(done.kept.contains("checkpoint 00000002") && done.hint.is_none(), "{done:?}");
    assert!(state.len() > older.len() && state.iter().all(|(key, value)| stopped.model.get(key) == Some(value)));
}

/// A file with these blocks, and the offset of each.
fn file_of(blocks: &[(Vec<Effect<'_>>, u32)]) -> (SimFs, DataDir, SetInfo, Vec<u64>) {
    let fs = SimFs::new(1);
    let dir = DataDir::open(shared(&fs), Path::new(DIR)).unwrap();
    let (set, history) = (SetId(1), HistoryId([1; 20]));
    let name = Name::Snapshot { set, file: 0 };
    let out = OutFile::create(&fs, &dir.file(name), 4096, false).unwrap();
    let (cut, spaces) = (Lsn(1), vec![KeyspaceId(0)]);
    let header = Header { set, file: 0, files: 1, cut, history, created_ms: 0, key_id: 0, spaces };
    let mut writer = SnapshotWriter::begin(out, &header, 1 << 20).unwrap();
    for (effects, entries) in blocks {
        let mut record = RecordBuilder::default();
        effects.iter().for_each(|effect| record.push(effect));
        writer.write_block(record.bytes(), &[], *entries).unwrap();
    }
    let info: FileInfo = writer.finish().unwrap();
    let mut reader = WholeBlocks::open(&fs, &dir.file(name), set, 0).unwrap();
    let mut offsets = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        offsets.push(block.offset);
    }
    assert_eq!(offsets.len(), blocks.len());
    (fs, dir, SetInfo { set, cut, history, created_ms: 0, log_from: None, files: vec![info], rows: None }, offsets)
}

/// A collection over several blocks is kept whole or not at all, whichever of its blocks is damaged, in its frame or
/// its payload.
#[test]
fn a_collection_is_kept_whole_or_not_at_all() {
    let hasher = hasher();
    let key = |name: &'static [u8]| Key::new(&hasher, KeyspaceId(0), name);
    let string =
        |name| Effect::Set { key: key(name), value: Value::Bytes(b"v"), encoding: Encoding::PLAIN, expire_at: None };
    let part = |name| Effect::Leaves { key: key(name), kind: Type::List, leaves: b"\x02\x09\x04\x11\x05\0v" };
    let fields = engine::TaggedFields::check(b"\x01\x04\x07\0\0\0").unwrap();
    let blocks = [
        (vec![string(b"before"), string(b"as well")], 2),
        (vec![part(b"tree")], 0),
        (vec![part(b"tree")], 0),
        (
            vec![
                part(b"tree"),
                Effect::Expire { key: key(b"tree"), at: 9 },
                Effect::Meta { key: key(b"tree"), fields },
            ],
            1,
        ),
        (vec![part(b"second")], 1),
        (vec![string(b"after")], 1),
    ];
    let (whole, _, set, offsets) = file_of(&blocks);
    for (damaged, offset) in offsets.iter().enumerate() {
        for in_frame in [0, 22] {
            let fs = whole.crash_point().after(vfs::Outage::ProcessKill);
            let dir = DataDir::open_to_look(shared(&fs), Path::new(DIR));
            fs.flip_bit(&dir.file(Name::Snapshot { set: SetId(1), file: 0 }), offset + in_frame, 0).unwrap();
            let mut sieve = Sieve::new(std::collections::BTreeSet::new(), Keys::default());
            let salvage = Salvage::survey(&dir, &set, &hasher, &mut sieve).unwrap();
            let has = |name| !salvage.present.is_unknown(&key(name));
            // Without the previous block, it is unknown whether a collection begins in a block or continues there.
            let expected = [damaged != 0, damaged != 0, damaged > 3, ![3, 4].contains(&damaged), damaged != 5];
            let found = [has(b"before"), has(b"as well"), has(b"tree"), has(b"second"), has(b"after")];
            assert_eq!(found, expected, "block {damaged}, byte {in_frame}");
            let kept = found.iter().filter(|found| **found).count() as u64;
            assert_eq!(salvage.kept, kept, "block {damaged}");
        }
    }
}

/// What is known of keys: those of whole blocks, and those that the log has set, deleted or cleared.
#[test]
fn keys_are_unknown_until_the_log_names_them() {
    let hasher = hasher();
    let key = |space, name: &'static [u8]| Key::new(&hasher, KeyspaceId(space), name);
    let mut present = Present::default();
    present.note(&key(0, b"a"), true);
    present.note(&key(0, b"b"), false);
    assert!(!present.is_unknown(&key(0, b"a")) && !present.is_unknown(&key(0, b"b")));
    assert!(present.is_unknown(&key(0, b"c")) && present.is_unknown(&key(1, b"a")));
    present.clear(KeyspaceId(0));
    assert!(!present.is_unknown(&key(0, b"c")) && present.is_unknown(&key(1, b"a")));
}

/// A primary sends only what follows a position. So data that lacks keys has none, in its log and in its checkpoint.
#[test]
fn a_position_goes_with_the_first_lost_key() {
    let hasher = hasher();
    let (lost_key, position) = (Key::new(&hasher, KeyspaceId(0), b"lost"), Effect::Position { text: b"id 7 0" });
    let payload = |effects: &[Effect<'_>]| {
        let mut record = RecordBuilder::default();
        effects.iter().for_each(|effect| record.push(effect));
        record.bytes().to_vec()
    };
    let (record, mut left) = (payload(&[Effect::Persist { key: lost_key }, position]), RecordBuilder::default());
    let mut whole = Sieve::new(std::collections::BTreeSet::new(), Keys::default());
    assert!(!whole.sift(&record, &hasher, &mut left).unwrap());
    assert_eq!(left.bytes(), record);
    let mut lost = Keys::default();
    lost.add(&lost_key);
    let mut lossy = Sieve::new(std::collections::BTreeSet::new(), lost.clone());
    left.clear();
    assert!(lossy.sift(&record, &hasher, &mut left).unwrap());
    assert_eq!(left.bytes(), payload(&[Effect::Position { text: b"" }]));
    for lost in [lost, Keys::default()] {
        let kept = crate::sieve::without(&payload(&[position]), 1, &lost, &hasher, &mut left).unwrap();
        assert_eq!(kept, Some(0), "a block of a set that is written without some of its keys");
    }
}
