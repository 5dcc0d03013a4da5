//! `repair`: after any damage it recovers as much as possible, keeps the damaged files, and changes nothing without
//! need.

use super::*;
use crate::sieve::{Keys, Sieve};
use crate::{RepairPlan, ToolError, Verdict, check, plan_repair, repair};

fn planned(fs: &SimFs) -> Result<Option<RepairPlan>, ToolError> {
    let before = fs.contents();
    let plan = plan_repair(&shared(fs), Path::new(DIR), false);
    let after = fs.contents();
    assert!(before.iter().all(|(path, bytes)| path.ends_with("LOCK") || after.get(path) == Some(bytes)), "changed");
    plan
}

/// Repairs, and returns the position and the state that a start finds then.
fn repaired(fs: &SimFs) -> (RepairPlan, Lsn, Model) {
    let plan = planned(fs).unwrap().expect("it is damaged");
    assert!(!plan.damage.is_empty());
    let before = fs.contents();
    let clock = ManualClock::new(9_000_000);
    let done = repair(&shared(fs), &clock, Path::new(DIR), &plan, HistoryId([9; 20]), &mut |_| {}).unwrap();
    let after = fs.contents();
    for (path, bytes) in before.iter().filter(|(path, _)| path.starts_with(DIR) && !path.ends_with("LOCK")) {
        let kept = done.damaged.join(path.strip_prefix(DIR).unwrap());
        assert_eq!(after.get(&kept), Some(bytes), "{} is kept", path.display());
    }
    let mut said = String::new();
    let verdict = check(&shared(fs), Path::new(DIR), &mut |line| said.push_str(&line.to_string())).unwrap();
    assert_eq!(verdict, Verdict::Good, "{said}");
    assert!(planned(fs).unwrap().is_none(), "there is nothing left to repair");
    (plan, done.lsn, start(fs, Path::new(DIR)).unwrap())
}

#[test]
fn whole_directories_need_no_repair() {
    let fs = SimFs::new(1);
    fs.create_dir_all(Path::new(DIR)).unwrap();
    assert!(planned(&fs).unwrap().is_none(), "empty");
    assert!(planned(&two_sets(1).stop().fs).unwrap().is_none());
    assert!(planned(&two_sets(2).kill().fs).unwrap().is_none());
    let world = two_sets(3);
    assert!(matches!(planned(&world.fs), Err(ToolError::InUse { .. })), "a server has it");
}

/// The manifest, or any file of a checkpoint, damaged or missing: the other checkpoint and the log recover everything.
#[test]
fn one_damaged_checkpoint_or_manifest_loses_nothing() {
    let mut rng = Rng::new(6);
    for prefix in ["MANIFEST", "prdb-00000001", "prdb-00000002"] {
        for round in 0..6 {
            let stopped = two_sets(5).stop();
            let files = stopped.files(prefix);
            let path = &files[rng.below(files.len() as u64) as usize];
            match round {
                0 => stopped.fs.remove_file(path).unwrap(),
                _ => {
                    let len = stopped.fs.metadata(path).unwrap().len;
                    stopped.fs.flip_bit(path, rng.below(len), rng.below(8) as u8).unwrap();
                }
            }
            let (plan, _, state) = repaired(&stopped.fs);
            assert!(state == stopped.model, "{prefix}, round {round}: {plan:?}");
            assert!(plan.lost.is_empty(), "{plan:?}");
        }
    }
}

/// Damage in the log: the state before it is kept, and the changes after it are reported as lost. Damage in the log of
/// an older checkpoint alone loses nothing.
#[test]
fn a_damaged_log_is_cut_before_the_damage() {
    let mut rng = Rng::new(7);
    let mut cut = 0;
    for _ in 0..30 {
        let stopped = two_sets(5).stop();
        let data = DataDir::open_to_look(shared(&stopped.fs), Path::new(DIR));
        let manifest = ManifestFile::load(&data).unwrap().unwrap().current().clone();
        let (needed, newest) = (manifest.log_needed_from().unwrap(), manifest.newest().unwrap().cut);
        let last = stopped.states.last().unwrap().0;
        let lsn = Lsn(needed.0 + rng.below(last.0 - needed.0 - 1));
        let firsts = stopped.files("log-").into_iter().map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (u64::from_str_radix(name.trim_start_matches("log-"), 16).unwrap(), path)
        });
        let (first, path) = firsts.filter(|(first, _)| *first <= lsn.0).max().unwrap();
        stopped.fs.flip_bit(&path, 4096 + first % 4096 + lsn.0 - first, 3).unwrap();
        let (plan, to, state) = repaired(&stopped.fs);
        if lsn < newest {
            assert!(state == stopped.model && plan.lost.is_empty(), "{plan:?}");
            continue;
        }
        cut += 1;
        let expected = stopped.states.iter().rfind(|(after, _, _)| *after <= lsn).unwrap();
        assert!(to <= lsn && state == expected.2, "LSN {lsn}, repaired to {to}");
        assert!(!plan.lost.is_empty(), "{plan:?}");
    }
    assert!(cut > 3, "the rounds hit the log behind the newest checkpoint");
}

/// The state without the values that need a dictionary.
fn readable(model: &Model) -> Model {
    model
        .iter()
        .filter(|(_, value)| *value != WITH_DICTIONARY)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// A missing dictionary costs the keys whose values need it, in the log or in a checkpoint, and no others, before and
/// after.
#[test]
fn a_missing_dictionary_costs_what_needs_it() {
    for (is_put, is_saved) in [(false, false), (true, false), (true, true)] {
        let mut world = two_sets(11);
        world.name_dictionary();
        if is_put {
            world.put_with_dictionary();
        }
        world.sync();
        if is_saved {
            world.checkpoint();
        }
        // Records that clear no database.
        (0..20u8).for_each(|n| world.put(&[b'k', n], b"later"));
        let stopped = world.stop();
        let (plan, _, state) = repaired(&stopped.fs);
        let said = plan.damage.join("; ");
        assert!(said.contains("dictionary 7: "), "{said}");
        assert!(state == readable(&stopped.model), "{plan:?}");
        let lost = "the key \"with a dictionary\" of keyspace 0: its value needs a dictionary";
        assert_eq!(plan.lost, vec![lost; usize::from(is_put)]);
        assert_eq!(said.contains("set 00000003: has values of 1 key that need dictionary 7"), is_saved, "{said}");
        assert_eq!(said.contains("the command log has values after LSN"), is_put, "{said}");
    }
}

/// Changes of lost keys: keys that are written, deleted or cleared are no longer lost; keys that get their value from a
/// lost one are lost too; changes of a missing value are left out.
#[test]
fn lost_keys_are_followed_through_the_log() {
    let hasher = hasher();
    let key = |name: &'static [u8]| Key::new(&hasher, KeyspaceId(0), name);
    let elsewhere = Key::new(&hasher, KeyspaceId(1), b"copy");
    for is_saved in [false, true] {
        let mut world = two_sets(12);
        world.name_dictionary();
        for name in [&b"written"[..], b"deleted", b"renamed from", b"kept", b"old"] {
            world.put(name, if name == b"old" { b"an old value" } else { WITH_DICTIONARY });
        }
        world.put(b"target", b"what is renamed over");
        if is_saved {
            world.sync();
            world.checkpoint();
        }
        world.put(b"old", WITH_DICTIONARY);
        world.put(b"written", b"anew");
        world.push(&[
            Effect::Delete { key: key(b"deleted") },
            Effect::Copy { from: key(b"kept"), to: elsewhere },
            Effect::Rename { from: key(b"renamed from"), to: key(b"target") },
            Effect::Splice { key: key(b"kept"), offset: 0, bytes: b"x" },
            Effect::Expire { key: key(b"target"), at: 5 },
            Effect::Persist { key: elsewhere },
            Effect::Copy { from: key(b"written"), to: key(b"copied") },
            Effect::Splice { key: key(b"copied"), offset: 0, bytes: b"A" },
            Effect::Expire { key: key(b"copied"), at: 5 },
        ]);
        world.model.remove(&(0, b"deleted".to_vec()));
        world.model.remove(&(0, b"renamed from".to_vec()));
        world.model.insert((0, b"target".to_vec()), WITH_DICTIONARY.to_vec());
        world.model.insert((1, b"copy".to_vec()), WITH_DICTIONARY.to_vec());
        world.model.insert((0, b"copied".to_vec()), b"Anew".to_vec());
        world.sync();
        // Records of one database alone, so that keys copied to the other stay lost.
        (0..20u8).for_each(|n| world.put(&[b'k', n], b"later"));
        let stopped = world.stop();
        let (plan, _, state) = repaired(&stopped.fs);
        assert!(state == readable(&stopped.model), "{plan:?}");
        let lost = [("kept", 0), ("old", 0), ("target", 0), ("copy", 1)];
        let lost =
            lost.map(|(key, space)| format!("the key \"{key}\" of keyspace {space}: its value needs a dictionary"));
        assert_eq!(plan.lost, lost);
    }
}

/// A checkpoint in which a value was compressed in the background loses nothing if an older one and the log have it
/// uncompressed.
#[test]
fn the_way_is_taken_on_which_fewest_keys_are_lost() {
    let mut world = two_sets(13);
    world.name_dictionary();
    world.put(b"compressed later", b"plain in the log");
    world.sync();
    let plain = world.model.clone();
    world.model.insert((0, b"compressed later".to_vec()), WITH_DICTIONARY.to_vec());
    world.checkpoint();
    world.model = plain;
    world.changes(20);
    let stopped = world.stop();
    let (plan, _, state) = repaired(&stopped.fs);
    assert!(state == stopped.model && plan.lost.is_empty(), "{plan:?}");
    assert!(plan.kept.starts_with("checkpoint 00000002, "), "{plan:?}");
}

/// Nothing was written between two checkpoints, and the newer one has an unreadable value: the older one is used.
#[test]
fn of_two_checkpoints_with_the_same_cut_the_chosen_one_is_taken() {
    let mut world = two_sets(14);
    world.name_dictionary();
    world.put(b"compressed later", b"plain in the log");
    world.checkpoint();
    let plain = world.model.clone();
    world.model.insert((0, b"compressed later".to_vec()), WITH_DICTIONARY.to_vec());
    world.checkpoint();
    world.model = plain;
    let cuts: Vec<_> = world.manifest.current().sets.iter().map(|set| set.cut).collect();
    assert!(cuts.len() == 4 && cuts[2] == cuts[3], "{cuts:?}");
    let stopped = world.stop();
    let (plan, _, state) = repaired(&stopped.fs);
    assert!(plan.kept.starts_with("checkpoint 00000003, "), "{plan:?}");
    assert!(state == stopped.model && plan.lost.is_empty(), "{plan:?}");
}

/// A tree with unreadable leaves loses all its parts; other trees lose nothing.
#[test]
fn trees_are_lost_whole() {
    let (hasher, dictionary) = (hasher(), codec::DictionaryNumber(std::num::NonZeroU32::new(7).expect("not 0")));
    let key = |name: &'static [u8]| Key::new(&hasher, KeyspaceId(0), name);
    let leaf = |stored: &[u8]| [&[2, 9, stored.len() as u8][..], stored].concat();
    let (cold, plain) = (leaf(WITH_DICTIONARY), leaf(b"\x11\x05\0v"));
    let list = Type::List;
    let parts = [
        Effect::Leaves { key: key(b"lost"), kind: list, leaves: &plain },
        Effect::Leaves { key: key(b"lost"), kind: list, leaves: &cold },
        Effect::Leaves { key: key(b"whole"), kind: list, leaves: &plain },
    ];
    let mut sieve = Sieve::new(std::collections::BTreeSet::new(), Keys::default());
    parts.iter().for_each(|effect| sieve.look(effect));
    assert_eq!(sieve.lost.names().collect::<Vec<_>>(), ["\"lost\" of keyspace 0"]);
    assert_eq!(sieve.missed, Some(dictionary));
    let mut sieve = Sieve::new([dictionary].into(), Keys::default());
    parts.iter().for_each(|effect| sieve.look(effect));
    assert!(sieve.lost.is_empty() && sieve.missed.is_none());
}

/// If both checkpoints and the beginning of the log are missing, the repair reports that and changes nothing.
#[test]
fn what_cannot_be_saved_is_left_alone() {
    let stopped = two_sets(7).stop();
    for path in stopped.files("prdb-").iter().chain(&stopped.files("log-")[..2]) {
        stopped.fs.remove_file(path).unwrap();
    }
    let refused = planned(&stopped.fs);
    assert!(matches!(refused, Err(ToolError::NotRepairable { .. })), "{refused:?}");
}

/// A crash at any operation of a repair leaves a directory to repair, or the repaired one. Between the last two
/// renames, both exist under their other names.
#[test]
fn a_crash_in_a_repair_loses_nothing() {
    let stopped = two_sets(5).stop();
    stopped.fs.remove_file(&stopped.files("prdb-00000002")[0]).unwrap();
    stopped.fs.sync_dir(Path::new(DIR)).unwrap();
    cut_at_every_operation(&stopped, &stopped.model);
    // Also of a repair that rewrites a set and a log.
    let mut world = two_sets(5);
    world.name_dictionary();
    world.put_with_dictionary();
    world.sync();
    world.checkpoint();
    world.put(b"also with one", WITH_DICTIONARY);
    world.changes(20);
    let stopped = world.stop();
    cut_at_every_operation(&stopped, &readable(&stopped.model));
}

fn cut_at_every_operation(stopped: &Stopped, expected: &Model) {
    let mut seen = [0; 3];
    for nth in 0.. {
        let fs = stopped.fs.crash_point().power_cut(1);
        let plan = planned(&fs).unwrap().expect("it is damaged");
        fs.crash_at(fs.operations() + 1 + nth);
        let clock = ManualClock::new(9_000_000);
        let done = repair(&shared(&fs), &clock, Path::new(DIR), &plan, HistoryId([9; 20]), &mut |_| {});
        let is_done = done.is_ok();
        let fs = fs.recover(vfs::Outage::PowerCut { seed: nth });
        if !fs.exists(Path::new(DIR)).unwrap() {
            seen[1] += 1;
            assert!(start(&fs, Path::new("/data.repaired")).unwrap() == *expected);
            continue;
        }
        match planned(&fs).unwrap() {
            Some(_) => seen[0] += 1,
            None => {
                seen[2] += 1;
                assert!(start(&fs, Path::new(DIR)).unwrap() == *expected);
            }
        }
        if is_done {
            break;
        }
    }
    assert!(seen[0] > 5 && seen[2] > 0, "{seen:?}");
}
