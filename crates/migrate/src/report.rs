//! What a file holds, in lines for people.

use crate::contents::{Contents, Database, Kind, counted};
use inspect::text::{count, size, time};

/// The lines. They say what is inside, what is dropped, and what cannot be taken.
pub fn report(contents: &Contents) -> Vec<String> {
    let mut lines = vec![head(contents)];
    for (db, database) in &contents.databases {
        lines.push(database_line(*db, database));
        lines.extend(database.kinds.iter().map(|(name, kind)| kind_line(name, kind)));
    }
    if contents.databases.is_empty() {
        lines.push("it holds no key that is taken".to_owned());
    }
    if !contents.biggest.is_empty() {
        lines.push("the biggest keys, by their bytes in the file:".to_owned());
        lines.extend(contents.biggest.iter().map(|key| format!("  {key}")));
    }
    lines.extend(dropped(contents));
    if contents.compressed > 0 {
        let strings = count(contents.compressed, "string is", "strings are");
        lines.push(format!("{strings} compressed by LZF, which an import keeps"));
    }
    if contents.databases_needed() > 16 {
        let databases = contents.databases_needed();
        lines.push(format!("the server has to be started with databases {databases} or more; its default is 16"));
    }
    if !contents.untaken.is_nothing() {
        lines.push("cannot be taken:".to_owned());
        lines.extend(contents.untaken.sentences().iter().map(|sentence| format!("  {sentence}")));
    }
    lines
}

fn head(contents: &Contents) -> String {
    let remark = |name| contents.remarks.get(name);
    let server = match (remark("valkey-ver"), remark("redis-ver")) {
        (Some(version), _) => format!(", written by Valkey {version}"),
        (None, Some(version)) => format!(", written by Redis {version}"),
        (None, None) => String::new(),
    };
    let made =
        remark("ctime").and_then(|seconds| seconds.parse::<i64>().ok()).and_then(|seconds| seconds.checked_mul(1000));
    let made = made.map_or_else(String::new, |at| format!(", {}", time(at)));
    let checksum = if contents.end.is_checked { "its checksum is right" } else { "it has no checksum" };
    format!("RDB version {}{server}{made}: {}, {checksum}", contents.version, size(contents.end.len))
}

fn database_line(db: u32, database: &Database) -> String {
    let keys = count(database.keys(), "key", "keys");
    let expiring = match database.expirations {
        Some((first, last)) => {
            let expire = count(database.expiring, "of them expires", "of them expire");
            format!("{expire}, from {} to {}", time(first), time(last))
        }
        None => "none of them expires".to_owned(),
    };
    format!("database {db}: {keys}, {expiring}")
}

fn kind_line(name: &str, kind: &Kind) -> String {
    let elements = counted(name, kind.elements);
    format!("  {}, {elements}, {} of the file", count(kind.keys, name, &plural(name)), size(kind.bytes))
}

fn plural(name: &str) -> String {
    if name == "hash" { "hashes".to_owned() } else { format!("{name}s") }
}

fn dropped(contents: &Contents) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |number: u64, one: &str, many: &str, why: &str| {
        if number > 0 {
            lines.push(format!("{} {why}", count(number, one, many)));
        }
    };
    add(contents.expired, "key is", "keys are", "dropped: the time of expiration has come");
    add(
        contents.expired_fields,
        "field of a hash is",
        "fields of hashes are",
        "dropped: the time of expiration has come",
    );
    add(contents.empty, "collection is", "collections are", "dropped: without elements, which no server keeps");
    lines
}
