//! What a file holds, in lines for people.

use crate::appendonly::{Log, Part};
use crate::contents::{Contents, Database, Kind, Untaken, counted};
use engine::Libraries;
use inspect::text::{count, escape, size, time};

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
    lines.extend(functions(&contents.libraries));
    lines.extend(needs(contents.databases_needed()));
    lines.extend(untaken(&contents.untaken));
    lines
}

/// The lines about an append-only log.
pub fn report_log(log: &Log) -> Vec<String> {
    let files = count(log.parts.len() as u64, "file", "files");
    let mut lines = vec![format!("append-only log: {files}, {}", size(log.bytes()))];
    log.parts.iter().for_each(|part| lines.extend(part_lines(part)));
    for (db, database) in &log.databases {
        lines.push(database_line(*db, database));
        lines.extend(database.kinds.iter().map(|(name, kind)| format!("  {}", count(kind.keys, name, &plural(name)))));
    }
    if log.databases.is_empty() {
        lines.push("it holds no key that is taken".to_owned());
    }
    if log.expired > 0 {
        let keys = count(log.expired, "key is", "keys are");
        lines.push(format!("{keys} dropped: the time of expiration has come"));
    }
    lines.extend(functions(&log.libraries));
    lines.extend(needs(log.databases_needed()));
    lines.extend(untaken(&log.untaken));
    lines
}

fn functions(libraries: &Libraries) -> Option<String> {
    let names: Vec<_> = libraries.iter().map(|(name, _)| escape(name)).collect();
    let number = count(libraries.len() as u64, "library of functions", "libraries of functions");
    (!names.is_empty()).then(|| format!("{number}: {}", names.join(", ")))
}

fn part_lines(part: &Part) -> Vec<String> {
    let name = part.path.file_name().unwrap_or(part.path.as_os_str()).to_string_lossy();
    let mut lines = Vec::new();
    if let Some(contents) = &part.rdb {
        lines.push(format!("  {name}: {}, {}", head(contents), count(contents.keys(), "key", "keys")));
    }
    if part.commands > 0 || part.rdb.is_none() {
        let seconds = |at: i64| time(at.saturating_mul(1000));
        let times = part
            .times
            .map_or_else(String::new, |(first, last)| format!(", from {} to {}", seconds(first), seconds(last)));
        lines.push(format!("  {name}: {}{times}", count(part.commands, "command", "commands")));
    }
    if part.cut_bytes > 0 {
        let bytes = count(part.cut_bytes, "byte is", "bytes are");
        lines.push(format!(
            "  the last {bytes} dropped, from offset {} on: a command, or a transaction, that was not written to its end; a server \
             that loads the file drops it too",
            part.bytes
        ));
    }
    lines
}

fn needs(databases: u32) -> Option<String> {
    (databases > 16)
        .then(|| format!("the server has to be started with databases {databases} or more; its default is 16"))
}

fn untaken(untaken: &Untaken) -> Vec<String> {
    if untaken.is_nothing() {
        return Vec::new();
    }
    let sentences = untaken.sentences().into_iter().map(|sentence| format!("  {sentence}"));
    std::iter::once("cannot be imported:".to_owned()).chain(sentences).collect()
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
