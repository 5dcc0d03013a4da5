//! Files that real servers wrote (testdata/make.sh), and files in forms that no current server writes
//! (testdata/make_old.py), read as their `.txt` files say. Written again, they read the same. Every changed byte is
//! detected, except in files without a checksum.

use rdb::{FileEntry, Item, RdbError, Reader, Stream, Target, Value, Writer};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// Every committed file, by name.
fn files() -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(testdata())
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rdb"))
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    assert_eq!(files.len(), 9, "files of testdata");
    files
}

/// Every offset of a file; every seventh in files that resemble another one.
fn places(name: &str, bytes: &[u8]) -> impl Iterator<Item = usize> + use<> {
    let is_like_another = name.ends_with("plain") || name.ends_with("bare") || name == "old-forms";
    (0..bytes.len()).step_by(if is_like_another { 7 } else { 1 })
}

fn read(bytes: &[u8]) -> Result<(Vec<Item>, Reader<&[u8]>), RdbError> {
    let mut reader = Reader::new(bytes, Some(bytes.len() as u64))?;
    let mut items = Vec::new();
    while let Some(item) = reader.next_item()? {
        items.push(item);
    }
    Ok((items, reader))
}

#[test]
fn files_of_real_servers() {
    for (name, bytes) in files() {
        let (items, reader) = read(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut text = format!("version {} of {:?}\n", reader.version(), reader.dialect());
        items.iter().for_each(|item| show(item, &mut text));
        let end = reader.end().unwrap();
        writeln!(text, "{} bytes, checksum {}", end.len, if end.is_checked { "right" } else { "not written" }).unwrap();
        let path = testdata().join(format!("{name}.txt"));
        if std::env::var_os("ONGGI_REWRITE_TESTDATA").is_some() {
            fs::write(&path, &text).unwrap();
        }
        assert_eq!(text, fs::read_to_string(&path).unwrap(), "{name}");
    }
}

#[test]
fn what_is_written_is_read_the_same() {
    for (name, bytes) in files() {
        let (items, _) = read(&bytes).unwrap();
        let target = if name.contains("fields") { Target::Valkey9 } else { Target::V11 };
        let written = write(&items, target);
        let (again, reader) = read(&written).unwrap();
        assert_eq!(reader.version(), target.version());
        let written = |entry: &&FileEntry| !matches!(entry.value, Value::Module(_));
        let before: Vec<_> = entries(&items).into_iter().filter(written).collect();
        let after = entries(&again);
        assert_eq!(before.len(), after.len(), "{name}");
        for (before, after) in before.into_iter().zip(after) {
            assert_eq!((before.db, &before.key, before.expire_at), (after.db, &after.key, after.expire_at));
            assert_eq!(before.value, after.value);
            let payload = rdb::dump::write(&before.value, target).unwrap();
            assert_eq!(rdb::dump::read(&payload).unwrap().1, before.value);
        }
    }
}

/// The checksum detects every changed byte. Without one, changed bytes still give only well-formed values.
#[test]
fn changed_bytes_are_noticed() {
    for (name, bytes) in files() {
        let has_checksum = read(&bytes).unwrap().1.end().unwrap().is_checked;
        for at in places(&name, &bytes) {
            let mut bytes = bytes.clone();
            bytes[at] ^= [0x01, 0x80, 0xff, 0x0f][at % 4];
            if let Ok((items, _)) = read(&bytes) {
                assert!(!has_checksum, "{name}: byte {at} was changed, and nothing was said");
                let again = write(&items, Target::Valkey9);
                let (again, _) = read(&again).unwrap_or_else(|error| panic!("{name}, byte {at}: {error}"));
                for (before, after) in entries(&items).into_iter().zip(entries(&again)) {
                    assert_eq!(before.value, after.value);
                }
            }
        }
    }
}

#[test]
fn cut_files_are_noticed() {
    for (name, bytes) in files() {
        for len in places(&name, &bytes) {
            assert!(read(&bytes[..len]).is_err(), "{name} cut to {len} bytes");
        }
    }
}

/// The source may return few bytes at a time, and its length may be unknown.
#[test]
fn bytes_may_come_one_by_one() {
    struct Dripping<'a>(&'a [u8]);
    impl std::io::Read for Dripping<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let len = buffer.len().min(1);
            std::io::Read::read(&mut self.0, &mut buffer[..len])
        }
    }
    for (name, bytes) in files() {
        let (items, _) = read(&bytes).unwrap();
        let mut reader = Reader::new(Dripping(&bytes), None).unwrap();
        for item in items {
            assert_eq!(reader.next_item().unwrap(), Some(item), "{name}");
        }
        assert_eq!(reader.next_item().unwrap(), None);
    }
}

#[test]
fn versions_that_are_not_known_are_refused() {
    for (header, version) in
        [("REDIS0005", 5), ("REDIS0013", 13), ("REDIS0080", 80), ("VALKEY011", 11), ("VALKEY081", 81)]
    {
        let opened = Reader::new(header.as_bytes(), None);
        assert!(matches!(opened, Err(RdbError::Version { version: found, .. }) if found == version), "{header}");
    }
    assert!(matches!(Reader::new(&b"MEMCACHED"[..], None), Err(RdbError::Damaged { offset: 0, .. })));
    assert!(matches!(Reader::new(&b"REDIS00x1"[..], None), Err(RdbError::Damaged { .. })));
    assert!(matches!(Reader::new(&b"REDIS"[..], None), Err(RdbError::Truncated { .. })));
}

fn entries(items: &[Item]) -> Vec<&FileEntry> {
    items.iter().filter_map(|item| if let Item::Entry(entry) = item { Some(&**entry) } else { None }).collect()
}

fn write(items: &[Item], target: Target) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), target).unwrap();
    for item in items {
        match item {
            Item::Aux { name, value } => writer.aux(name, value).unwrap(),
            Item::Function(source) => writer.function(source).unwrap(),
            Item::Entry(entry) if !matches!(entry.value, Value::Module(_)) => {
                writer.entry(entry.db, &entry.key, entry.expire_at, &entry.value).unwrap();
            }
            _ => {}
        }
    }
    writer.finish().unwrap()
}

/// The most bytes of a string to show.
const SHOWN_MAX: usize = 40;

fn shown(string: &[u8]) -> String {
    match string.get(..SHOWN_MAX) {
        Some(head) if string.len() > SHOWN_MAX => {
            format!("\"{}\"... ({} bytes)", head.escape_ascii(), string.len())
        }
        _ => format!("\"{}\"", string.escape_ascii()),
    }
}

fn show(item: &Item, text: &mut String) {
    match item {
        Item::Aux { name, value } => writeln!(text, "aux {} {}", shown(name), shown(value)).unwrap(),
        Item::Sizes { db, keys, expiring } => writeln!(text, "db {db}: {keys} keys, {expiring} expire").unwrap(),
        Item::Function(source) => writeln!(text, "function {}", shown(source)).unwrap(),
        Item::Entry(entry) => {
            write!(text, "{} {}: {}", entry.db, shown(&entry.key), entry.form.name()).unwrap();
            if let Some(time) = entry.expire_at {
                write!(text, ", expires at {time}").unwrap();
            }
            if let Some(frequency) = entry.frequency {
                write!(text, ", frequency {frequency}").unwrap();
            }
            if let Some(idle) = entry.idle_s {
                write!(text, ", idle for {idle} s").unwrap();
            }
            text.push('\n');
            show_value(&entry.value, text);
        }
        other => writeln!(text, "{other:?}").unwrap(),
    }
}

fn show_value(value: &Value, text: &mut String) {
    match value {
        Value::String(string) => writeln!(text, "    {}", shown(string)).unwrap(),
        Value::List(all) | Value::Set(all) => {
            all.iter().for_each(|string| writeln!(text, "    {}", shown(string)).unwrap());
        }
        Value::Zset(zset) => {
            zset.iter().for_each(|(member, score)| writeln!(text, "    {} {score:?}", shown(member)).unwrap());
        }
        Value::Hash(hash) => {
            for (field, value, expire_at) in hash.iter() {
                let expires = expire_at.map_or(String::new(), |time| format!(", expires at {time}"));
                writeln!(text, "    {} {}{expires}", shown(field), shown(value)).unwrap();
            }
        }
        Value::Stream(stream) => {
            for entry in stream.entries() {
                let id = entry.id();
                write!(text, "    {}-{}", id.ms, id.seq).unwrap();
                entry.fields().for_each(|(name, value)| write!(text, " {} {}", shown(name), shown(value)).unwrap());
                text.push('\n');
            }
            let Stream { last_id, max_deleted_id, entries_added, .. } = &**stream;
            writeln!(text, "    last {last_id:?}, deleted {max_deleted_id:?}, added {entries_added}").unwrap();
            for group in &stream.groups {
                let name = shown(&group.name);
                writeln!(text, "    group {name}: last {:?}, read {:?}", group.last_id, group.entries_read).unwrap();
                group.consumers.iter().for_each(|consumer| {
                    let (seen, active) = (consumer.seen_at, consumer.active_at);
                    writeln!(text, "        {}: seen {seen}, active {active:?}", shown(&consumer.name)).unwrap();
                });
                group.pending.iter().for_each(|pending| writeln!(text, "        {pending:?}").unwrap());
            }
        }
        Value::Module(module) => writeln!(text, "    module {} version {}", module.name, module.version).unwrap(),
    }
}
