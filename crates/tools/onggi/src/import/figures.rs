//! What a source holds, as fields of JSON.

use migrate::{Contents, Database, Log};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Of an RDB file.
pub fn of(contents: &Contents) -> Value {
    let biggest = contents.biggest.iter().map(|key| {
        json!({ "key": key.key, "database": key.db, "type": key.kind, "elements": key.elements, "bytes": key.bytes })
    });
    json!({
        "form": "rdb",
        "version": contents.version,
        "bytes": contents.end.len,
        "has_checksum": contents.end.is_checked,
        "remarks": contents.remarks,
        "keys": contents.keys(),
        "databases": databases(&contents.databases, true),
        "biggest": biggest.collect::<Vec<_>>(),
        "dropped_expired": contents.expired,
        "dropped_expired_fields": contents.expired_fields,
        "dropped_empty": contents.empty,
        "compressed_lzf": contents.compressed,
        "libraries": contents.libraries.len(),
        "cannot_be_imported": contents.untaken.sentences(),
    })
}

/// Of an append-only log.
pub fn of_log(log: &Log) -> Value {
    let files = log.parts.iter().map(|part| {
        json!({ "file": part.path.display().to_string(), "commands": part.commands, "bytes": part.bytes,
            "cut_bytes": part.cut_bytes })
    });
    json!({
        "form": "append-only",
        "bytes": log.bytes(),
        "files": files.collect::<Vec<_>>(),
        "keys": log.databases.values().map(Database::keys).sum::<u64>(),
        "databases": databases(&log.databases, false),
        "dropped_expired": log.expired,
        "libraries": log.libraries.len(),
        "cannot_be_imported": log.untaken.sentences(),
    })
}

/// By number. Elements and bytes of the file are known of an RDB file alone.
fn databases(databases: &BTreeMap<u32, Database>, has_elements: bool) -> Value {
    let types = |database: &Database| -> Map<String, Value> {
        let kinds = database.kinds.iter().map(|(name, kind)| {
            let fields = match has_elements {
                true => json!({ "keys": kind.keys, "elements": kind.elements, "bytes": kind.bytes }),
                false => json!({ "keys": kind.keys }),
            };
            ((*name).to_owned(), fields)
        });
        kinds.collect()
    };
    let all = databases.iter().map(|(db, database)| {
        json!({ "database": db, "keys": database.keys(), "expiring": database.expiring, "types": types(database) })
    });
    all.collect()
}
