//! Damaged databases: the check names what is wrong, the repair makes them open again with everything that still
//! verifies, and says what is lost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::Rng;
use plex::{Background, Db, Indexes, IterOptions, KeySpaceId, Options, Policy, SortedFile, Wal, WriteBatch};
use vfs::{FileSystem, OpenOptions, Outage, SimFs};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

const POLICIES: usize = 4;

fn options(fs: &SimFs, policy: usize) -> Options {
    let indexes = if policy.is_multiple_of(2) { Indexes::Full } else { Indexes::Partitioned };
    let policy = match policy {
        0 => Policy::LdcRanged { space_amp_target: 1.3, runs_max: 3 },
        1 => Policy::Leveled { level0_runs_max: 2, level1_bytes: 4 << 10 },
        2 => Policy::Ldc { runs_per_level: 4, duplicates_max: 1.3 },
        _ => Policy::Tiered { runs_per_level: 3 },
    };
    Options::new()
        .file_system(Arc::new(fs.clone()))
        .seed(7)
        .wal(Wal::Sync)
        .background(Background::Inline)
        .policy(policy)
        .memtable_bytes(1500)
        .table_bytes(1 << 10)
        .block_bytes(256)
        .indexes(indexes)
}

/// A database with tables, deleted ranges and a log; the map after every batch. Every value names its batch.
fn fill(fs: &SimFs, policy: usize, batches: usize) -> Vec<Map> {
    let mut rng = Rng::new(policy as u64);
    let db = options(fs, policy).open("/db").expect("it opens");
    let mut states = vec![Map::new()];
    for number in 1..=batches {
        let mut map = states[number - 1].clone();
        let mut batch = WriteBatch::new();
        for _ in 0..1 + rng.below(4) {
            let key = vec![b'a' + rng.below(20) as u8; 1 + rng.below(3) as usize];
            match rng.below(12) {
                0 => {
                    let end = [&key[..], b"~"].concat();
                    batch.delete_range(&key[..]..&end[..]);
                    map.retain(|k, _| *k < key || *k >= end);
                }
                1 => {
                    batch.delete(&key);
                    map.remove(&key);
                }
                _ => {
                    let value = (number as u32).to_be_bytes().repeat(1 + rng.below(20) as usize);
                    batch.put(&key, &value);
                    map.insert(key, value);
                }
            }
        }
        db.write(&batch).expect("it writes");
        states.push(map);
    }
    states
}

fn contents(db: &Db) -> Map {
    db.iter(IterOptions::default()).expect("it iterates").collect::<plex::Result<_>>().expect("it reads")
}

fn opened(fs: &SimFs, policy: usize) -> Map {
    let db = options(fs, policy).open("/db").unwrap_or_else(|error| panic!("policy {policy}: {error}"));
    db.verify().expect("it is sound");
    db.put(b"after", b"repair").expect("it goes on");
    let mut map = contents(&db);
    map.remove(&b"after"[..]);
    map
}

/// Files whose names end or begin so.
fn files(fs: &SimFs, is_meant: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let name = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(&is_meant);
    fs.contents().into_keys().filter(|path| path.parent() == Some(Path::new("/db")) && name(path)).collect()
}

fn copy(fs: &SimFs) -> SimFs {
    fs.crash_point().after(Outage::ProcessKill)
}

#[test]
fn a_sound_database_keeps_its_contents() {
    for policy in 0..POLICIES {
        let fs = SimFs::new(1);
        let states = fill(&fs, policy, 150);
        assert!(plex::check("/db", &options(&fs, policy)).expect("it reads").is_empty());
        let repair = plex::repair("/db", &options(&fs, policy)).expect("it repairs");
        assert!(repair.losses.is_empty() && !repair.is_rebuilt && repair.tables > 0, "{repair:?}");
        assert_eq!(opened(&fs, policy), states[150], "policy {policy}");
    }
}

#[test]
fn an_open_or_missing_database_is_left_alone() {
    let fs = SimFs::new(1);
    fill(&fs, 0, 5);
    let db = options(&fs, 0).open("/db").expect("it opens");
    assert!(plex::check("/db", &options(&fs, 0)).is_err() && plex::repair("/db", &options(&fs, 0)).is_err());
    drop(db);
    fs.create_dir_all(Path::new("/empty")).expect("it is made");
    assert!(plex::repair("/empty", &options(&fs, 0)).is_err());
    assert!(plex::repair("/nowhere", &options(&fs, 0)).is_err());
}

/// A damaged table takes its keys with it, or lets older values show, and no others.
#[test]
fn a_damaged_table_is_left_out() {
    for policy in 0..POLICIES {
        let fs = SimFs::new(1);
        let states = fill(&fs, policy, 150);
        for (at, table) in files(&fs, |name| name.ends_with(".sst")).into_iter().enumerate() {
            let damaged = copy(&fs);
            if at % 3 == 0 {
                damaged.remove_file(&table).expect("it is there");
            } else {
                damaged.flip_bit(&table, 5, at as u8 % 8).expect("it is there");
            }
            let what = format!("policy {policy}, {}", table.display());
            let damages = plex::check("/db", &options(&damaged, policy)).expect("it reads");
            assert!(damages.len() == 1 && damages[0].to_string().contains(table.to_str().expect("text")), "{what}");
            let repair = plex::repair("/db", &options(&damaged, policy)).expect("it repairs");
            assert!(repair.losses.len() == 1 && !repair.is_rebuilt, "{what}: {repair:?}");
            let lost = Path::new("/db/lost").join(table.file_name().expect("a name"));
            assert_eq!(damaged.exists(&lost).expect("it looks"), at % 3 > 0, "{what}");
            assert!(plex::check("/db", &options(&damaged, policy)).expect("it reads").is_empty(), "{what}");
            for (key, value) in opened(&damaged, policy) {
                assert!(states.iter().any(|map| map.get(&key) == Some(&value)), "{what}: {key:?} never was {value:?}");
            }
        }
    }
}

/// Every fifth byte of the manifest and of the file that names it, and their loss: nothing of the contents is lost.
#[test]
fn without_a_manifest_sequence_numbers_decide() {
    for policy in 0..POLICIES {
        let fs = SimFs::new(1);
        let states = fill(&fs, policy, 150);
        let named = files(&fs, |name| name.starts_with("MANIFEST-") || name == "CURRENT");
        let mut rebuilt = 0;
        let mut repaired = |damaged: &SimFs, what: String| {
            let repair = plex::repair("/db", &options(damaged, policy)).unwrap_or_else(|e| panic!("{what}: {e}"));
            rebuilt += usize::from(repair.is_rebuilt);
            assert!(opened(damaged, policy) == states[150], "{what}: {repair:?}");
        };
        for path in &named {
            for offset in (policy..fs.contents()[path].len()).step_by(5) {
                let damaged = copy(&fs);
                damaged.flip_bit(path, offset as u64, (offset % 8) as u8).expect("it is there");
                // To try and open it first does no harm.
                drop(options(&damaged, policy).open("/db"));
                repaired(&damaged, format!("policy {policy}, {} at {offset}", path.display()));
            }
            let damaged = copy(&fs);
            damaged.remove_file(path).expect("it is there");
            repaired(&damaged, format!("policy {policy}, without {}", path.display()));
        }
        let damaged = copy(&fs);
        named.iter().for_each(|path| damaged.remove_file(path).expect("it is there"));
        repaired(&damaged, format!("policy {policy}, without both"));
        assert!(rebuilt > 10, "{rebuilt}");
    }
}

/// Of a damaged log, what comes before the damage is kept: whole batches, a state that once was.
#[test]
fn a_damaged_log_is_cut() {
    for policy in 0..POLICIES {
        let fs = SimFs::new(1);
        let states = fill(&fs, policy, 140);
        let logs = files(&fs, |name| name.ends_with(".wal"));
        let mut losses = 0;
        for path in &logs {
            for offset in (0..fs.contents()[path].len()).step_by(3) {
                let damaged = copy(&fs);
                damaged.flip_bit(path, offset as u64, (offset % 8) as u8).expect("it is there");
                let what = format!("policy {policy}, {} at {offset}", path.display());
                let repair = plex::repair("/db", &options(&damaged, policy)).unwrap_or_else(|e| panic!("{what}: {e}"));
                losses += repair.losses.len();
                let found = opened(&damaged, policy);
                assert!(states[100..].contains(&found), "{what}: {repair:?}");
                if !repair.losses.is_empty() {
                    let lost = Path::new("/db/lost").join(path.file_name().expect("a name"));
                    assert!(damaged.exists(&lost).expect("it looks"), "{what}");
                }
            }
            let damaged = copy(&fs);
            damaged.remove_file(path).expect("it is there");
            let repair = plex::repair("/db", &options(&damaged, policy)).expect("it repairs");
            assert!(
                repair.losses.len() == 1 && states.contains(&opened(&damaged, policy)),
                "policy {policy}: {repair:?}"
            );
        }
        assert!(losses > 10, "{losses}");
    }
}

/// A power cut at any operation of a repair, and a repair once more: nothing that could be kept is lost.
#[test]
fn a_repair_that_was_cut_short_is_done_again() {
    for policy in 0..POLICIES {
        for loses_manifest in [false, true] {
            let fs = SimFs::new(1);
            let states = fill(&fs, policy, 100);
            let fs = fs.recover(Outage::PowerCut { seed: 1 });
            if loses_manifest {
                // An open removes tables whose removal the cut undid. Without the manifest, their deleted keys would be
                // back (see [`plex::Repair::is_rebuilt`]).
                drop(options(&fs, policy).open("/db").expect("it opens"));
                files(&fs, |name| name.starts_with("MANIFEST-")).iter().for_each(|path| {
                    fs.remove_file(path).expect("it is there");
                });
                fs.sync_dir(Path::new("/db")).expect("it syncs");
            }
            fs.record_crash_points();
            plex::repair("/db", &options(&fs, policy)).expect("it repairs");
            for point in fs.take_crash_points() {
                for seed in 0..3 {
                    let after = point.power_cut(seed);
                    let what = format!("policy {policy}, {point:?}, cut {seed}");
                    let repair =
                        plex::repair("/db", &options(&after, policy)).unwrap_or_else(|e| panic!("{what}: {e}"));
                    assert!(opened(&after, policy) == states[100], "{what}: {repair:?}");
                }
            }
        }
    }
}

/// What a dump prints of a table, a log and a manifest is what was written.
#[test]
fn dumps_name_keys_and_places() {
    let fs = SimFs::new(1);
    let db = options(&fs, 0).open("/db").expect("it opens");
    let mut batch = WriteBatch::new();
    batch.put(b"ada", b"1815\n").delete(b"bob").delete_range(&b"x"[..]..&b"y"[..]);
    db.write(&batch).expect("it writes");
    let lines = |path: &Path| {
        let mut lines = Vec::new();
        plex::dump(path, &options(&fs, 0), |line| lines.push(line)).expect("it reads");
        lines.join("\n")
    };
    let log = lines(&files(&fs, |name| name.ends_with(".wal"))[0]);
    for part in ["48: batch of 3", "1 0 put \"ada\" \"1815\\n\"", "2 0 delete \"bob\"", "3 0 delete-range \"x\" \"y\""]
    {
        assert!(log.contains(part), "{log}");
    }
    db.flush().expect("it flushes");
    let table = lines(&files(&fs, |name| name.ends_with(".sst"))[0]);
    for part in ["entries 2 from \"ada\" to \"y\"", "1 put \"ada\" \"1815\\n\"", "2 delete \"bob\"", "3 delete-range"] {
        assert!(table.contains(part), "{table}");
    }
    let manifest = lines(Path::new("/db"));
    for part in ["key space 0 \"default\"", "level 0 run", "entries 2 from \"ada\" to \"y\""] {
        assert!(manifest.contains(part), "{manifest}");
    }
    assert!(plex::dump("/db/LOCK", &options(&fs, 0), |_| {}).is_err());
}

/// Where the records of a manifest end.
fn record_ends(bytes: &[u8]) -> Vec<usize> {
    const HEADER_LEN: usize = 48;
    let (mut ends, mut at) = (Vec::new(), HEADER_LEN);
    while at < bytes.len() {
        let mut rest = &bytes[at..];
        let len = base::varint::take(&mut rest).expect("a sound record") as usize;
        at = bytes.len() - rest.len() + 4 + len;
        ends.push(at);
    }
    ends
}

/// A manifest that was cut at the end of any edit: an open removed the tables that later edits named, and the check was
/// clean. Without a log the contents of these tables were lost; with one, what was ingested.
#[test]
fn a_manifest_cut_at_the_end_of_an_edit_is_named() {
    for wal in [Wal::Off, Wal::Sync] {
        let fs = SimFs::new(3);
        let with = |fs: &SimFs| options(fs, 0).wal(wal);
        let db = with(&fs).open("/db").expect("it opens");
        let mut expected = Map::new();
        for round in 0..3 {
            for n in 0..3 {
                let (key, value) = (vec![b'a' + round, n], vec![round; 40]);
                db.put(&key, &value).expect("it writes");
                expected.insert(key, value);
            }
            db.flush().expect("it flushes");
            let path = Path::new("/").join(format!("taken-{round}"));
            let mut file = SortedFile::create(&path, &with(&fs)).expect("it is made");
            let (key, value) = (vec![b'm' + round], vec![round; 40]);
            file.put(&key, &value).expect("it is written");
            file.finish().expect("it is whole");
            db.ingest(KeySpaceId::DEFAULT, &[&path]).expect("it is taken in");
            expected.insert(key, value);
        }
        drop(db);
        let [manifest] = &files(&fs, |name| name.starts_with("MANIFEST"))[..] else { panic!("one manifest") };
        let bytes = fs.contents()[manifest].clone();
        let mut named = 0;
        for end in record_ends(&bytes) {
            let cut = copy(&fs);
            cut.open(manifest, OpenOptions::write()).and_then(|file| file.set_len(end as u64)).expect("it is there");
            let damages = plex::check("/db", &with(&cut)).expect("it reads");
            let what = format!("{wal:?}, cut at {end} of {}: {damages:?}", bytes.len());
            match with(&cut).open("/db") {
                Ok(db) => assert!(contents(&db) == expected && damages.is_empty(), "{what}"),
                Err(error) => {
                    assert!(error.is_corruption() && !damages.is_empty(), "{what}: {error}");
                    named += 1;
                    plex::repair("/db", &with(&cut)).expect("it repairs");
                    let db = with(&cut).open("/db").expect("it opens");
                    assert_eq!(contents(&db), expected, "{what}");
                }
            }
        }
        assert!(named >= 6, "{wal:?}: {named} of {}", record_ends(&bytes).len());
    }
}

/// A directory without a database is no damage but a wrong argument. It used to be "CURRENT is missing".
#[test]
fn an_empty_directory_is_no_damaged_database() {
    let fs = SimFs::new(1);
    fs.create_dir_all(Path::new("/db")).expect("it is made");
    let error = plex::check("/db", &options(&fs, 0)).expect_err("there is nothing to check");
    assert_eq!(error.to_string(), "invalid argument: /db holds no database");
}
