//! Sorted files that are taken in: as if written by one batch, under every policy; all or nothing after a crash; and
//! refused when they are not what they should be.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use base::Rng;
use plex::{Background, Db, Error, IterOptions, KeySpaceId, Options, Policy, SortedFile, Wal};
use vfs::{FileSystem, SimFs};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(fs: &SimFs) -> Options {
    let options = Options::new().file_system(Arc::new(fs.clone())).seed(1).background(Background::Inline);
    options.memtable_bytes(2 << 10).table_bytes(2 << 10).block_bytes(256)
}

fn write_file(fs: &SimFs, path: &str, pairs: &Map) {
    let mut file = SortedFile::create(path, &options(fs)).expect("it is made");
    pairs.iter().for_each(|(key, value)| file.put(key, value).expect("it is added"));
    file.finish().expect("it is finished");
}

fn random_map(rng: &mut Rng, from: u64) -> Map {
    (0..rng.below(60))
        .map(|_| (format!("{:04}", from + rng.below(150)).into_bytes(), vec![rng.next_u64() as u8; 20]))
        .collect()
}

fn contents(db: &Db, space: KeySpaceId) -> Map {
    db.iter_in(space, IterOptions::default()).expect("it iterates").collect::<plex::Result<_>>().expect("it reads")
}

/// Written and ingested pairs win over each other in the order of the calls, in look-ups, scans and views.
#[test]
fn random_files_agree_with_a_map() {
    let policies = [Policy::ldc_ranged(), Policy::leveled(), Policy::tiered(), Policy::ldc()];
    for (seed, policy) in policies.into_iter().enumerate() {
        let (fs, mut rng) = (SimFs::new(seed as u64), Rng::new(seed as u64));
        let mut db = options(&fs).policy(policy.clone()).open("/db").expect("it opens");
        let spaces = [KeySpaceId::DEFAULT, db.key_space("second").expect("it is made")];
        let mut maps = [Map::new(), Map::new()];
        for round in 0..60 {
            let at = rng.below(2) as usize;
            for (key, value) in random_map(&mut rng, 0) {
                db.put_in(spaces[at], &key, &value).expect("it writes");
                maps[at].insert(key, value);
            }
            let (view, before) = (db.view(), maps[at].clone());
            let files = [format!("/in-{round}-a"), format!("/in-{round}-b")];
            for (file, from) in files.iter().zip([150, 0]) {
                let pairs = random_map(&mut rng, from);
                write_file(&fs, file, &pairs);
                maps[at].extend(pairs);
            }
            db.ingest(spaces[at], &files).expect("it is taken in");
            assert_eq!(contents(&db, spaces[at]), maps[at], "{policy:?} {round}");
            let seen: Map = view
                .iter_in(spaces[at], IterOptions::default())
                .expect("it iterates")
                .map(|pair| pair.expect("it reads"))
                .collect();
            assert_eq!(seen, before, "{policy:?} {round}");
            for (key, value) in maps[at].iter().step_by(7) {
                assert_eq!(db.get_in(spaces[at], key).expect("it reads").as_ref(), Some(value));
            }
            drop(view);
            if rng.one_in(6) {
                drop(db);
                db = options(&fs).policy(policy.clone()).open("/db").expect("it opens");
            }
        }
        db.settle().expect("it merges");
        for (space, map) in spaces.iter().zip(&maps) {
            assert_eq!(contents(&db, *space), *map, "{policy:?}");
        }
        db.verify().expect("all tables are sound");
    }
}

/// A power cut at every operation of an ingest: all of the files or none, and with them all that was written before.
#[test]
fn crashes_leave_all_or_nothing() {
    for wal in [Wal::Sync, Wal::Async] {
        let (fs, mut rng) = (SimFs::new(7), Rng::new(7));
        let db = options(&fs).wal(wal).open("/db").expect("it opens");
        let mut states = vec![Map::new()];
        let note = |states: &mut Vec<Map>, pairs: Map| {
            let mut next = states[states.len() - 1].clone();
            next.extend(pairs);
            states.push(next);
        };
        for number in 0..20u8 {
            let pair = (vec![b'0', number], vec![number; 30]);
            db.put(&pair.0, &pair.1).expect("it writes");
            note(&mut states, Map::from([pair]));
        }
        db.sync().expect("it syncs");
        let synced = states.len() - 1;
        let pairs = random_map(&mut rng, 0);
        write_file(&fs, "/in", &pairs);
        fs.sync_dir(Path::new("/")).expect("the name is durable");
        fs.record_crash_points();
        db.put(b"before", b"1").expect("it writes");
        note(&mut states, Map::from([(b"before".to_vec(), b"1".to_vec())]));
        db.ingest(KeySpaceId::DEFAULT, &["/in"]).expect("it is taken in");
        note(&mut states, pairs);
        let (ingested, done) = (states.len() - 1, fs.operations());
        db.put(b"after", b"1").expect("it writes");
        note(&mut states, Map::from([(b"after".to_vec(), b"1".to_vec())]));
        for point in fs.take_crash_points() {
            for cut in 0..4 {
                let db =
                    options(&point.power_cut(cut)).open("/db").unwrap_or_else(|error| panic!("{point:?}: {error}"));
                let floor = if point.operation() > done { ingested } else { synced };
                let found = contents(&db, KeySpaceId::DEFAULT);
                assert!(states[floor..].contains(&found), "{point:?} {cut}: {found:?}");
            }
        }
    }
}

#[test]
fn what_is_no_sorted_file_is_refused() {
    let fs = SimFs::new(1);
    let db = options(&fs).open("/db").expect("it opens");
    db.put(b"a", b"1").expect("it writes");
    db.flush().expect("it flushes");
    let mut file = SortedFile::create("/unsorted", &options(&fs)).expect("it is made");
    file.put(b"b", b"").expect("it is added");
    assert!(matches!(file.put(b"b", b""), Err(Error::InvalidArgument(_))), "twice the same key");
    assert!(matches!(file.put(b"a", b""), Err(Error::InvalidArgument(_))), "a smaller key");
    let pairs = |from: u8, to: u8| (from..to).map(|key| (vec![key], vec![key])).collect::<Map>();
    write_file(&fs, "/left", &pairs(0, 10));
    write_file(&fs, "/right", &pairs(9, 20));
    write_file(&fs, "/empty", &Map::new());
    let refused = |paths: &[&str]| db.ingest(KeySpaceId::DEFAULT, paths).expect_err("it is refused");
    assert!(matches!(refused(&["/right", "/left"]), Error::InvalidArgument(_)), "they overlap");
    let own = fs.contents().into_keys().find(|path| path.extension().is_some_and(|e| e == "sst")).expect("a table");
    assert!(matches!(refused(&[own.to_str().expect("text")]), Error::InvalidArgument(_)), "a table of a database");
    assert!(matches!(refused(&["/nowhere"]), Error::Fs(_)));
    assert!(refused(&["/db/CURRENT"]).is_corruption(), "no table at all");
    fs.flip_bit(Path::new("/left"), 20, 3).expect("the file is there");
    assert!(refused(&["/left"]).is_corruption());
    assert_eq!(contents(&db, KeySpaceId::DEFAULT).len(), 1, "nothing was taken");
    db.ingest(KeySpaceId::DEFAULT, &["/empty", "/right"]).expect("it is taken in");
    assert_eq!(contents(&db, KeySpaceId::DEFAULT).len(), 12);
    let hashed = options(&fs).policy(Policy::trie()).open("/hashed").expect("it opens");
    assert!(matches!(hashed.ingest(KeySpaceId::DEFAULT, &["/right"]), Err(Error::Unsupported(_))));
}

/// Files that need not be cut get a second name: nothing is copied, their pairs still win over older and lose to newer
/// ones, views from before do not see them, and the same file may come again.
#[test]
fn files_that_fit_are_not_copied() {
    for policy in [Policy::leveled(), Policy::tiered(), Policy::ldc(), Policy::ldc_ranged()] {
        let fs = SimFs::new(3);
        let open = || options(&fs).policy(policy.clone()).block_cache_bytes(64 << 10).open("/db").expect("it opens");
        let db = open();
        db.put(b"0010", b"old").expect("it writes");
        db.put(b"5000", b"old").expect("it writes");
        let view = db.view();
        let pairs: Map = (0..40).map(|i| (format!("{i:04}").into_bytes(), vec![i as u8; 20])).collect();
        // Of one seed, so of one identity.
        let other: Map = (6000..6040).map(|i| (format!("{i:04}").into_bytes(), vec![i as u8; 20])).collect();
        write_file(&fs, "/in", &pairs);
        write_file(&fs, "/other", &other);
        db.ingest(KeySpaceId::DEFAULT, &["/in", "/other"]).expect("they are taken in");
        assert_eq!(db.stats().ingest_bytes, 0, "{policy:?}");
        let mut map = Map::from([(b"5000".to_vec(), b"old".to_vec())]);
        map.extend(pairs.clone());
        map.extend(other);
        assert_eq!(contents(&db, KeySpaceId::DEFAULT), map, "{policy:?}");
        assert_eq!(view.get(b"0010").expect("it reads"), Some(b"old".to_vec()));
        assert_eq!(view.get(b"0011").expect("it reads"), None);
        assert_eq!(view.iter(IterOptions::default()).expect("it iterates").count(), 2, "{policy:?}");
        let mut back = view.iter(IterOptions::default()).expect("it iterates");
        back.seek_before(b"0011").expect("it seeks");
        assert_eq!(
            back.entry().map(|(key, value)| (key.to_vec(), value.to_vec())),
            Some((b"0010".to_vec(), b"old".to_vec()))
        );
        drop((view, back));
        db.put(b"0011", b"new").expect("it writes");
        db.delete_range(&b"0020"[..]..&b"0030"[..]).expect("it deletes");
        map.insert(b"0011".to_vec(), b"new".to_vec());
        map.retain(|key, _| !(&b"0020"[..]..b"0030").contains(&&key[..]));
        fs.remove_file(Path::new("/other")).expect("it goes");
        assert_eq!(contents(&db, KeySpaceId::DEFAULT), map, "{policy:?}");
        drop(db);
        let db = open();
        assert_eq!(contents(&db, KeySpaceId::DEFAULT), map, "{policy:?}");
        db.flush().and_then(|()| db.settle()).expect("it merges");
        assert_eq!(contents(&db, KeySpaceId::DEFAULT), map, "{policy:?}");
        db.ingest(KeySpaceId::DEFAULT, &["/in"]).expect("it is taken in again");
        map.extend(pairs);
        assert_eq!(contents(&db, KeySpaceId::DEFAULT), map, "{policy:?}");
        db.settle().and_then(|()| db.verify()).expect("it merges");
        drop(db);
        assert!(plex::check("/db", &options(&fs).policy(policy.clone())).expect("it reads").is_empty());
        assert_eq!(contents(&open(), KeySpaceId::DEFAULT), map, "{policy:?}");
    }
}

/// A file that was changed after it was taken in: damage, and no wrong answer.
#[test]
fn a_file_changed_afterwards_is_noticed() {
    let fs = SimFs::new(3);
    let db = options(&fs).policy(Policy::tiered()).block_cache_bytes(0).open("/db").expect("it opens");
    write_file(&fs, "/in", &(0..40).map(|i| (vec![i], vec![i; 20])).collect());
    db.ingest(KeySpaceId::DEFAULT, &["/in"]).expect("it is taken in");
    fs.flip_bit(Path::new("/in"), 30, 1).expect("the file is there");
    assert!(db.get(&[1]).expect_err("it is damaged").is_corruption());
}
