//! Logs over a simulated disk: what comes in is what the commands have made.

use crate::tests::{DIR, Keys, found};
use crate::{Import, ImportedLog, MigrateError, import_log, is_append_only, report_log};
use base::clock::ManualClock;
use base::random::{Entropy, SeededEntropy};
use rdb::{Strings, Target, Value, Writer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfs::{FileSystem, OpenOptions, SimFs, SimOptions};

const NOW: i64 = 1_700_000_000_000;
const LOG: &str = "/log";

fn put(fs: &SimFs, path: &str, bytes: &[u8]) {
    let file = fs.open(Path::new(path), OpenOptions::write().create().truncate()).unwrap();
    file.write_all_at(bytes, 0).unwrap();
}

fn import_of(fs: &SimFs, path: &str, is_partial: bool) -> Result<ImportedLog, MigrateError> {
    let shared: Arc<dyn FileSystem> = Arc::new(fs.clone());
    let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(1));
    let scratch = PathBuf::from("/scratch");
    let import = Import { fs: &shared, file: Path::new(path), dir: Path::new(DIR), is_partial, scratch };
    import_log(&import, &ManualClock::new(NOW), &entropy, &mut |_| {})
}

/// Commands as a server writes them, a line each.
fn commands(lines: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        bytes.extend(format!("*{}\r\n", words.len()).bytes());
        words.iter().for_each(|word| bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes()));
    }
    bytes
}

fn string(text: &str) -> Value {
    Value::String(text.into())
}

fn keys(all: &[(u32, &str, Option<i64>, Value)]) -> Keys {
    all.iter().map(|(db, key, at, value)| ((*db, key.as_bytes().to_vec()), (*at, value.clone()))).collect()
}

const CHANGES: &str = "SELECT 0
SET a 1
INCR a
SET b soon PXAT 1000
SELECT 3
RPUSH list x y
MULTI
RPUSH list z
SET c later PXAT 1900000000000
EXEC
SELECT 0
APPEND b er
PERSIST b
SET gone v PXAT 5000
SWAPDB 3 4
DEL nothing";

fn changed() -> Keys {
    let list: Strings = ["x", "y", "z"].iter().map(|text| text.as_bytes().to_vec()).collect();
    keys(&[
        (0, "a", None, string("2")),
        (0, "b", None, string("sooner")),
        (4, "c", Some(1_900_000_000_000), string("later")),
        (4, "list", None, Value::List(list)),
    ])
}

/// Nothing expires before the end; then what is due goes.
#[test]
fn commands_make_what_they_made_on_the_server() {
    let fs = SimFs::new(1);
    put(&fs, LOG, &commands(CHANGES));
    assert!(is_append_only(&fs, Path::new(LOG)).unwrap());
    let imported = import_of(&fs, LOG, false).unwrap();
    assert_eq!((imported.log.expired, imported.log.keys(), imported.log.parts[0].commands), (1, 4, 14));
    assert_eq!(found(&fs), Some(changed()));
    let told = report_log(&imported.log).join("\n");
    for part in
        ["append-only log: 1 file", "log: 14 commands", "database 4: 2 keys, 1 of them expires", "1 key is dropped"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
}

fn base(aux: &str) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), Target::V10).unwrap();
    writer.aux(aux.as_bytes(), b"1").unwrap();
    writer.entry(0, b"a", Some(2000), &string("41")).unwrap();
    writer.entry(0, b"old", None, &string("x")).unwrap();
    writer.finish().unwrap()
}

/// The RDB part comes first, its keys do not expire, and each file begins in database 0.
#[test]
fn a_base_and_its_increments_are_one_log() {
    let fs = SimFs::new(1);
    fs.create_dir_all(Path::new("/dir")).unwrap();
    put(
        &fs,
        "/dir/l.manifest",
        b"file b seq 2 type b\nfile h seq 1 type h\nfile i seq 1 type i\nfile j seq 2 type i\n",
    );
    put(&fs, "/dir/b", &base("aof-base"));
    put(&fs, "/dir/i", &commands("SELECT 0\nINCR a\nPERSIST a\nSELECT 2\nSET d 1"));
    put(&fs, "/dir/j", &commands("INCR a\nDEL old"));
    assert!(is_append_only(&fs, Path::new("/dir")).unwrap());
    import_of(&fs, "/dir", false).unwrap();
    assert_eq!(found(&fs), Some(keys(&[(0, "a", None, string("43")), (2, "d", None, string("1"))])));

    put(&fs, "/dir/b", &base("aof-base")[..40]);
    assert!(matches!(import_of(&fs, "/dir", false), Err(MigrateError::NotEmpty { .. })));
}

/// As Redis 4 to 6 have written it.
#[test]
fn an_rdb_part_may_stand_before_the_commands() {
    for (aux, is_log) in [("aof-preamble", true), ("aof-base", true), ("redis-bits", false)] {
        let fs = SimFs::new(1);
        put(&fs, LOG, &[base(aux), commands("INCR a\nPERSIST a\nDEL old")].concat());
        assert_eq!(is_append_only(&fs, Path::new(LOG)).unwrap(), is_log, "{aux}");
        import_of(&fs, LOG, false).unwrap();
        assert_eq!(found(&fs), Some(keys(&[(0, "a", None, string("42"))])), "{aux}");
    }
}

/// Any end is that of a crash; a transaction is taken whole or not at all.
#[test]
fn a_log_may_be_cut_anywhere() {
    let whole = commands(CHANGES);
    let (begin, end) = (
        commands(CHANGES.split("MULTI").next().unwrap()).len(),
        commands(CHANGES.split("SELECT 0\nAPPEND").next().unwrap()).len(),
    );
    for length in 0..whole.len() {
        let fs = SimFs::new(1);
        put(&fs, LOG, &whole[..length]);
        let part = import_of(&fs, LOG, false).unwrap().log.parts.remove(0);
        assert_eq!(part.bytes + part.cut_bytes, length as u64);
        assert!(!(begin as u64 + 1..end as u64).contains(&part.bytes), "cut at {length}, taken up to {}", part.bytes);
    }
}

/// No byte can be changed so that reading it ends in a panic or in half a directory.
#[test]
fn a_wrong_byte_is_an_error_or_another_log() {
    let whole = commands(CHANGES);
    for at in 0..whole.len() {
        for wrong in [0, b'9', whole[at] ^ 0x20] {
            let fs = SimFs::new(1);
            let mut bytes = whole.clone();
            bytes[at] = wrong;
            put(&fs, LOG, &bytes);
            let ended = import_of(&fs, LOG, false);
            assert_eq!(found(&fs).is_some(), ended.is_ok(), "byte {at} is {wrong}");
        }
    }
}

#[test]
fn what_cannot_be_taken_is_named_and_left_out_on_request() {
    let fs = SimFs::new(1);
    put(&fs, LOG, &commands("SET a 1\nFUNCTION LOAD x\nBLPOP l 0\nHSET a f v\nPING\nSHUTDOWN\nSET b 2"));
    let error = import_of(&fs, LOG, false).unwrap_err().to_string();
    for part in [
        "3 commands",
        "FUNCTION at offset 27 of /log (ERR Missing library metadata)",
        "BLPOP",
        "HSET",
        "WRONGTYPE",
        "--partial",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!(found(&fs), None);
    import_of(&fs, LOG, true).unwrap();
    assert_eq!(found(&fs), Some(keys(&[(0, "a", None, string("1")), (0, "b", None, string("2"))])));
}

/// A disk whose files were changed last at this time.
fn fs_of(modified_ms: Option<i64>) -> SimFs {
    SimFs::with_options(SimOptions { modified_ms, ..SimOptions::default() })
}

/// A log with annotations: lines that begin with `#` stand as they are.
fn annotated(lines: &str) -> Vec<u8> {
    let line = |line: &str| if line.starts_with('#') { format!("{line}\r\n").into_bytes() } else { commands(line) };
    lines.lines().flat_map(line).collect()
}

/// The only group of the stream `s`: when each entry was delivered and each consumer seen and active.
fn group(fs: &SimFs) -> (Vec<i64>, Vec<(i64, Option<i64>)>) {
    let keys = found(fs).expect("it is imported");
    let Some((_, Value::Stream(stream))) = keys.get(&(0, b"s".to_vec())) else { panic!("no stream: {keys:?}") };
    let group = &stream.groups[0];
    let consumers = group.consumers.iter().map(|consumer| (consumer.seen_at, consumer.active_at));
    (group.pending.iter().map(|pending| pending.delivered_at).collect(), consumers.collect())
}

/// As servers write an XREADGROUP.
fn delivery(id: &str, at: i64) -> String {
    format!("XCLAIM s g c 0 {id} TIME {at} RETRYCOUNT 1 FORCE JUSTID LASTID {id}")
}

const STREAM: &str =
    "XADD s 1-1 f v\nXADD s 2-1 f v\nXADD s 3-1 f v\nXGROUP CREATE s g 0\nXGROUP CREATECONSUMER s g idle";

/// Pending entries keep the times of their deliveries, so that a worker keeps its jobs: the log's time is that of its
/// annotations, and no delivery is later than that.
#[test]
fn deliveries_keep_their_times_by_annotations() {
    let (first, second) = (1_699_999_000, 1_699_999_050);
    let (early, late, beyond) = (first * 1000 + 400, second * 1000 + 7, second * 1000 + 60_000);
    let [one, two, three] = [delivery("1-1", early), delivery("2-1", late), delivery("3-1", beyond)];
    let fs = fs_of(Some(1));
    put(&fs, LOG, &annotated(&format!("{STREAM}\n#TS:{first}\n{one}\n#TS:{second}\n{two}\n{three}")));
    import_of(&fs, LOG, false).unwrap();
    let (first, last) = (first * 1000 + 999, second * 1000 + 999);
    assert_eq!(group(&fs), (vec![early, late, last], vec![(last, Some(last)), (first, None)]));
}

/// Without annotations, the log's time is that at which its file was changed last; without that, the time of the
/// import.
#[test]
fn deliveries_keep_their_times_without_annotations() {
    let at = NOW - 50_000;
    let log = commands(&format!(
        "{STREAM}\n{}\n{}\n{}",
        delivery("1-1", at),
        delivery("2-1", NOW - 2),
        delivery("3-1", NOW + 9)
    ));
    for (modified, time) in [(Some(NOW - 1), NOW - 1), (Some(NOW - 10_000), NOW - 10_000), (None, NOW)] {
        let fs = fs_of(modified);
        put(&fs, LOG, &log);
        import_of(&fs, LOG, false).unwrap();
        let expected = vec![at, time.min(NOW - 2), time];
        assert_eq!(group(&fs), (expected, vec![(time, Some(time)), (time, None)]), "{modified:?}");
    }
}

/// Each file of a log has a time of its own.
#[test]
fn the_next_file_does_not_go_on_with_the_time_of_the_last() {
    let fs = fs_of(Some(NOW - 5));
    fs.create_dir_all(Path::new("/dir")).unwrap();
    put(&fs, "/dir/l.manifest", b"file i seq 1 type i\nfile j seq 2 type i\n");
    put(&fs, "/dir/i", &annotated("#TS:1600000000\nSET a 1"));
    put(&fs, "/dir/j", &commands(&format!("{STREAM}\n{}", delivery("1-1", NOW - 70))));
    import_of(&fs, "/dir", false).unwrap();
    assert_eq!(group(&fs), (vec![NOW - 70], vec![(NOW - 5, Some(NOW - 5)), (NOW - 5, None)]));
}

/// A stream that was to expire before the time of the log, and then was not: nothing expires while a log is read.
#[test]
fn a_key_does_not_expire_by_the_time_of_the_log() {
    let fs = fs_of(Some(NOW));
    let lines = format!("{STREAM}\nPEXPIREAT s 5000\n{}\nPERSIST s", delivery("1-1", 4000));
    put(&fs, LOG, &commands(&lines));
    import_of(&fs, LOG, false).unwrap();
    assert_eq!(group(&fs), (vec![4000], vec![(4999, Some(4999)), (NOW, None)]));
}

/// XADD with an id of its own choice, and commands of before 2012, name a time from now on: from the log's time on.
#[test]
fn a_time_from_now_on_counts_from_the_time_of_the_log() {
    let lines = "SET a 1\nEXPIRE a 10\nSET b 1 PX 500\nSETEX c 20 1\nPSETEX d 30 1\nSET e 1\nPEXPIRE e 40\nSET f 1\nGETEX f EX 50\n\
                 HSET h x 1 y 2\nHEXPIRE h 60 FIELDS 1 x\nXADD s * f v\nSET i 1 EXAT 1\nPERSIST i";
    for (annotation, modified, time) in
        [("#TS:1700000100\n", Some(1), 1_700_000_100_999), ("", Some(NOW + 5_000), NOW + 5_000), ("", None, NOW)]
    {
        let fs = fs_of(modified);
        put(&fs, LOG, &annotated(&format!("{annotation}{lines}")));
        import_of(&fs, LOG, false).unwrap();
        let keys = found(&fs).unwrap();
        let expires = |key: &str| keys[&(0, key.as_bytes().to_vec())].0.map(|at| at - time);
        let found: Vec<_> = ["a", "b", "c", "d", "e", "f", "i"].map(expires).to_vec();
        assert_eq!(
            found,
            [Some(10_000), Some(500), Some(20_000), Some(30), Some(40), Some(50_000), None],
            "{annotation}"
        );
        let Value::Hash(hash) = &keys[&(0, b"h".to_vec())].1 else { panic!("no hash") };
        let fields: Vec<_> = hash.iter().map(|(_, _, at)| at.map(|at| at - time)).collect();
        assert!(fields.contains(&Some(60_000)) && fields.contains(&None), "{fields:?}");
        let Value::Stream(stream) = &keys[&(0, b"s".to_vec())].1 else { panic!("no stream") };
        assert_eq!(stream.last_id.ms as i64, time);
    }
}

/// Only the last file may end within a command.
#[test]
fn a_file_with_others_behind_it_is_whole() {
    let fs = SimFs::new(1);
    fs.create_dir_all(Path::new("/dir")).unwrap();
    put(&fs, "/dir/l.manifest", b"file i seq 1 type i\nfile j seq 2 type i\n");
    put(&fs, "/dir/i", &commands("SET a 1")[..20]);
    put(&fs, "/dir/j", &commands("SET b 1"));
    let error = import_of(&fs, "/dir", false).unwrap_err();
    assert!(matches!(error, MigrateError::AppendOnlyCut { offset: 0, .. }), "{error}");
}
