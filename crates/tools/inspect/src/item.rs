//! The parts of a file, one item at a time: as a line of text, or as a JSON object.

use crate::fields::ShownFields;
use crate::shortened::Shortened;
use crate::text;
use base::{HistoryId, KeyspaceId, UnixMs};
use codec::Reader;
use engine::tier::{NewRecord, TierRecord};
use engine::{Effect, Encoding, Type};
use serde::Serialize;
use std::fmt;

/// A moment: milliseconds since 1970, and as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// Milliseconds since 1970-01-01 UTC.
    pub ms: UnixMs,
    /// The same for people.
    pub text: String,
}

impl Moment {
    pub(crate) fn new(ms: UnixMs) -> Self {
        Self { ms, text: text::time(ms) }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// How a string is compressed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Compressed {
    /// How a string is compressed.
    pub codec: &'static str,
    /// The number of its dictionary, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dictionary: Option<u32>,
    /// Bytes stored.
    pub bytes: u64,
}

impl fmt::Display for Compressed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "compressed by {} to {}", self.codec, text::size(self.bytes))?;
        put(f, ", with dictionary ", self.dictionary.as_ref())
    }
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "item", rename_all = "snake_case")]
#[expect(missing_docs, reason = "fields are those of docs/formats, and the text of each says what it is")]
pub enum Item {
    /// A manifest.
    Manifest {
        path: String,
        history: String,
        log_on: bool,
        log_since_lsn: u64,
        log_since: Moment,
        log_needed_from_lsn: Option<u64>,
    },
    /// A history before the current one.
    Parent { history: String, last_lsn: u64 },
    /// A dictionary in the manifest, and the first set that no longer needs it.
    Dictionary {
        number: u32,
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        unneeded_from_set: Option<u32>,
    },
    /// A dictionary file; `keyspace` and `prefix` are those of the keys it was trained for.
    DictionaryFile {
        path: String,
        number: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        keyspace: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        prefix: Option<Shortened>,
        bytes: u64,
    },
    /// A checkpoint in the manifest.
    Set {
        set: u32,
        cut_lsn: u64,
        cut: Moment,
        history: String,
        log_from_lsn: Option<u64>,
        /// The position of its copy of the rows of databases on disk.
        #[serde(skip_serializing_if = "Option::is_none")]
        rows_lsn: Option<u64>,
        files: u64,
        entries: u64,
        bytes: u64,
    },
    /// A file of a checkpoint, as listed in the manifest.
    SetFile { name: String, bytes: u64, entries: u64, crc: String },
    /// A snapshot file.
    Snapshot {
        path: String,
        set: u32,
        file: u8,
        files: u8,
        cut_lsn: u64,
        cut: Moment,
        history: String,
        keyspaces: Vec<u32>,
        bytes: u64,
        blocks: u64,
        entries: u64,
    },
    /// A block of a snapshot file.
    Block { offset: u64, number: u64, entries: u32, bytes: u64 },
    /// A segment of the command log.
    Segment {
        path: String,
        first_lsn: u64,
        history: String,
        parent: Option<String>,
        parent_lsn: Option<u64>,
        durable_lsn: u64,
        created: Moment,
        bytes: u64,
    },
    /// The effects of one command or transaction, which follow.
    Record { lsn: u64, end_lsn: u64, offset: u64, bytes: u64 },
    /// An entry of a block, or an effect of a record.
    Effect {
        effect: &'static str,
        keyspace: u32,
        /// The type of a collection.
        #[serde(skip_serializing_if = "Option::is_none")]
        of: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        key: Option<Shortened>,
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<Shortened>,
        /// How a value is compressed. `value` is the string, or the bytes of the collection, unless it needs a missing
        /// dictionary.
        #[serde(skip_serializing_if = "Option::is_none")]
        compressed: Option<Compressed>,
        #[serde(skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        expire_at: Option<Moment>,
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<Shortened>,
        #[serde(skip_serializing_if = "Option::is_none")]
        other_keyspace: Option<u32>,
        /// The optional fields that the entry has from then on.
        #[serde(skip_serializing_if = "Option::is_none")]
        fields: Option<Box<ShownFields>>,
    },
    /// A statement about time and durability; `clean_end` if the server shut down in order.
    Mark { lsn: u64, end_lsn: u64, offset: u64, time: Moment, durable_lsn: u64, clean_end: bool },
    /// A frame that only a newer version knows.
    Unknown { lsn: u64, end_lsn: u64, offset: u64, kind: u8 },
    /// Where the frames of a segment end, and the bytes after them.
    SegmentEnd { lsn: u64, offset: u64, bytes_behind: u64, durable_lsn: Option<u64> },
    /// A segment of a tier; `tier` is the id of the tier that wrote it.
    TierSegment { path: String, segment: u32, tier: String, bytes: u64 },
    /// A value in a segment of a tier.
    TierValue {
        offset: u64,
        key: Shortened,
        of: &'static str,
        value: Option<Shortened>,
        #[serde(skip_serializing_if = "Option::is_none")]
        compressed: Option<Compressed>,
        checksum: String,
    },
    /// Another file in the directory.
    Other { name: String, meaning: &'static str },
    /// Damage; the rest of this file cannot be read.
    Damage { path: String, what: String },
}

/// Fields that few effects have.
#[derive(Default)]
struct Extra {
    of: Option<&'static str>,
    key: Option<Shortened>,
    value: Option<Shortened>,
    compressed: Option<Compressed>,
    offset: Option<u64>,
    expire_at: Option<Moment>,
    to: Option<Shortened>,
    other_keyspace: Option<u32>,
    fields: Option<Box<ShownFields>>,
}

impl Item {
    /// A value in a segment of a tier. Reads strings with the dictionaries.
    pub(crate) fn tier_value(found: &TierRecord<'_>, full: bool, dictionaries: &mut Reader) -> Self {
        let NewRecord { key, kind, encoding, value } = found.record;
        let (value, compressed) = shown(value, encoding, full, dictionaries);
        Self::TierValue {
            offset: u64::from(found.address.offset) * 16,
            key: Shortened::new(key, full),
            of: kind.name(),
            value,
            compressed,
            checksum: format!("{:#010x}", found.address.tag),
        }
    }

    /// An effect, or an entry, which is the effect that creates it. Reads strings with the dictionaries.
    pub(crate) fn effect(effect: &Effect<'_>, full: bool, dictionaries: &mut Reader) -> Self {
        let short = |bytes: &[u8]| Some(Shortened::new(bytes, full));
        let keyed = |key: &engine::Key<'_>| Extra { key: short(key.bytes), ..Extra::default() };
        let (name, keyspace, extra) = match effect {
            Effect::Set { key, value, encoding, expire_at } => {
                let (value, compressed) = shown(value.bytes(), *encoding, full, dictionaries);
                let expire_at = expire_at.map(Moment::new);
                ("set", key.space, Extra { value, compressed, expire_at, ..keyed(key) })
            }
            Effect::Splice { key, offset, bytes } => {
                ("splice", key.space, Extra { offset: Some(*offset), value: short(bytes), ..keyed(key) })
            }
            Effect::Delete { key } => ("delete", key.space, keyed(key)),
            Effect::Expire { key, at } => {
                ("expire", key.space, Extra { expire_at: Some(Moment::new(*at)), ..keyed(key) })
            }
            Effect::Store { key, kind, encoding, value, expire_at } => {
                let (value, compressed) = shown(value.bytes(), *encoding, full, dictionaries);
                let expire_at = expire_at.map(Moment::new);
                ("store", key.space, Extra { of: Some(kind.name()), value, compressed, expire_at, ..keyed(key) })
            }
            Effect::StoreWith { key, kind, encoding, value, expire_at, fields } => {
                let (value, compressed) = shown(value.bytes(), *encoding, full, dictionaries);
                let (expire_at, fields) = (expire_at.map(Moment::new), Some(Box::new(ShownFields::new(*fields, full))));
                let (name, of) = if *kind == Type::String { ("set", None) } else { ("store", Some(kind.name())) };
                (name, key.space, Extra { of, value, compressed, expire_at, fields, ..keyed(key) })
            }
            Effect::Edit { key, kind, changes } => {
                ("edit", key.space, Extra { of: Some(kind.name()), value: short(changes), ..keyed(key) })
            }
            Effect::Leaves { key, kind, leaves } => {
                ("leaves", key.space, Extra { of: Some(kind.name()), value: short(leaves), ..keyed(key) })
            }
            Effect::Replace { key, tree, changes } => {
                ("edit", key.space, Extra { of: Some(tree.kind().name()), value: short(changes), ..keyed(key) })
            }
            Effect::Copy { from, to } => {
                let extra = Extra { to: short(to.bytes), other_keyspace: Some(to.space.0), ..keyed(from) };
                ("copy", from.space, extra)
            }
            Effect::Persist { key } => ("persist", key.space, keyed(key)),
            Effect::Meta { key, fields } => {
                ("meta", key.space, Extra { fields: Some(Box::new(ShownFields::new(*fields, full))), ..keyed(key) })
            }
            Effect::Rename { from, to } => ("rename", from.space, Extra { to: short(to.bytes), ..keyed(from) }),
            Effect::Clear { space } => ("clear", *space, Extra::default()),
            Effect::Swap { a, b } => ("swap", *a, Extra { other_keyspace: Some(b.0), ..Extra::default() }),
            Effect::Library { name, code } => {
                let value = (!code.is_empty()).then(|| Shortened::new(code, full));
                ("library", KeyspaceId(0), Extra { key: short(name), value, ..Extra::default() })
            }
            Effect::Position { text } => ("position", KeyspaceId(0), Extra { value: short(text), ..Extra::default() }),
        };
        let Extra { of, key, value, compressed, offset, expire_at, to, other_keyspace, fields } = extra;
        let keyspace = keyspace.0;
        Self::Effect {
            effect: name,
            keyspace,
            of,
            key,
            value,
            compressed,
            offset,
            expire_at,
            to,
            other_keyspace,
            fields,
        }
    }
}

/// The value, and its compression if it has one.
fn shown(
    stored: &[u8],
    encoding: Encoding,
    full: bool,
    dictionaries: &mut Reader,
) -> (Option<Shortened>, Option<Compressed>) {
    match encoding.is_compressed() {
        true => decompressed(stored, full, dictionaries),
        false => (Some(Shortened::new(stored, full)), None),
    }
}

/// The decompressed value and its compression; the stored bytes if they cannot be decompressed here.
fn decompressed(stored: &[u8], full: bool, dictionaries: &mut Reader) -> (Option<Shortened>, Option<Compressed>) {
    let mut string = Vec::new();
    let shown = match codec::Workspace::new().decode(stored, dictionaries, &mut string) {
        Ok(()) => &string,
        Err(_) => stored,
    };
    let compressed = codec::stored::Stored::parse(stored).ok().map(|parsed| Compressed {
        codec: parsed.form.codec(),
        dictionary: parsed.form.dictionary().map(|number| number.0.get()),
        bytes: stored.len() as u64,
    });
    (Some(Shortened::new(shown, full)), compressed)
}

/// Writes ` word value`, if there is a value.
fn put<T: fmt::Display>(f: &mut fmt::Formatter<'_>, word: &str, value: Option<&T>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, "{word}{value}"))
}

pub(crate) fn hex(history: &HistoryId) -> String {
    history.to_string()
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manifest { path, history, log_on, log_since_lsn, log_since, log_needed_from_lsn } => {
                let on = if *log_on { "on" } else { "off" };
                writeln!(f, "manifest {path}")?;
                writeln!(f, "  history {history}")?;
                write!(f, "  command log {on} since LSN {log_since_lsn}, {log_since}")?;
                put(f, "; needed from LSN ", log_needed_from_lsn.as_ref())
            }
            Self::Parent { history, last_lsn } => write!(f, "  earlier history {history} up to LSN {last_lsn}"),
            Self::Dictionary { number, name, unneeded_from_set } => {
                write!(f, "  dictionary {number}: {name}")?;
                put(f, ", not needed from set ", unneeded_from_set.as_ref())
            }
            Self::DictionaryFile { path, number, keyspace, prefix, bytes } => {
                writeln!(f, "dictionary file {path}")?;
                write!(f, "  dictionary {number} of {}", text::size(*bytes))?;
                put(f, ", for keyspace ", keyspace.as_ref())?;
                put(f, ", keys that begin with ", prefix.as_ref())
            }
            Self::Set { set, cut_lsn, cut, history, log_from_lsn, rows_lsn, files, entries, bytes } => {
                let entries = text::count(*entries, "entry", "entries");
                let files = text::count(*files, "file", "files");
                writeln!(f, "  set {set}: {entries} in {files}, {}", text::size(*bytes))?;
                write!(f, "    as of LSN {cut_lsn}, {cut}, of history {history}")?;
                match log_from_lsn {
                    Some(from) => write!(f, "; the log continues from LSN {from}"),
                    None => write!(f, "; the log was off"),
                }?;
                put(f, "; rows on disk as of LSN ", rows_lsn.as_ref())
            }
            Self::SetFile { name, bytes, entries, crc } => {
                let entries = text::count(*entries, "entry", "entries");
                write!(f, "    {name}: {entries}, {bytes} bytes, checksum {crc}")
            }
            Self::Snapshot { path, set, file, files, cut_lsn, cut, history, keyspaces, bytes, blocks, entries } => {
                writeln!(f, "snapshot file {path}")?;
                writeln!(f, "  file {file} of set {set}, which has {files}")?;
                writeln!(f, "  as of LSN {cut_lsn}, {cut}, of history {history}")?;
                let named = keyspaces.iter().enumerate().filter(|(db, space)| *db as u64 != u64::from(**space));
                for (db, space) in named {
                    writeln!(f, "  database {db} is keyspace {space}")?;
                }
                let entries = text::count(*entries, "entry", "entries");
                write!(f, "  {entries} in {}, {}", text::count(*blocks, "block", "blocks"), text::size(*bytes))
            }
            Self::Block { offset, number, entries, bytes } => {
                let entries = text::count(u64::from(*entries), "entry", "entries");
                write!(f, "  block {number} at offset {offset}: {entries}, {}", text::size(*bytes))
            }
            Self::Segment { path, first_lsn, history, parent, parent_lsn, durable_lsn, created, bytes } => {
                writeln!(f, "segment {path}")?;
                writeln!(f, "  from LSN {first_lsn} on, {}, made {created}", text::size(*bytes))?;
                write!(f, "  history {history}")?;
                if let (Some(parent), Some(lsn)) = (parent, parent_lsn) {
                    write!(f, ", which left {parent} at LSN {lsn}")?;
                }
                write!(f, "\n  known to be durable up to LSN {durable_lsn}")
            }
            Self::Record { lsn, end_lsn, offset, bytes } => {
                write!(f, "  {lsn}..{end_lsn} at offset {offset}: record of {}", text::size(*bytes))
            }
            Self::Effect {
                effect,
                keyspace,
                of,
                key,
                value,
                compressed,
                offset,
                expire_at,
                to,
                other_keyspace,
                fields,
            } => {
                write!(f, "    {effect} keyspace {keyspace}")?;
                put(f, " ", of.as_ref())?;
                put(f, " key ", key.as_ref())?;
                put(f, " at ", offset.as_ref())?;
                put(f, " value ", value.as_ref())?;
                put(f, " ", compressed.as_ref())?;
                put(f, " to ", to.as_ref())?;
                put(f, " with keyspace ", other_keyspace.as_ref())?;
                put(f, " expires ", expire_at.as_ref())?;
                put(f, " fields: ", fields.as_ref())
            }
            Self::Mark { lsn, end_lsn, offset, time, durable_lsn, clean_end } => {
                let name = if *clean_end { "end in order" } else { "mark" };
                write!(f, "  {lsn}..{end_lsn} at offset {offset}: {name}, {time}, durable up to LSN {durable_lsn}")
            }
            Self::Unknown { lsn, end_lsn, offset, kind } => {
                write!(f, "  {lsn}..{end_lsn} at offset {offset}: kind {kind}, unknown to this version")
            }
            Self::SegmentEnd { lsn, offset, bytes_behind, durable_lsn } => {
                write!(f, "  frames end at LSN {lsn}, offset {offset}")?;
                match (bytes_behind, durable_lsn) {
                    (0, _) => Ok(()),
                    (bytes, Some(durable)) if durable > lsn => write!(
                        f,
                        "; {} after them, with a mark that says the log was durable up to LSN {durable}: damaged, \
                         unless another segment has these frames",
                        text::size(*bytes)
                    ),
                    (bytes, _) => write!(f, "; {} after them: a torn tail, or a leftover", text::size(*bytes)),
                }
            }
            Self::TierSegment { path, segment, tier, bytes } => {
                writeln!(f, "tier segment {path}")?;
                write!(f, "  segment {segment} of tier {tier}, {}", text::size(*bytes))
            }
            Self::TierValue { offset, key, of, value, compressed, checksum } => {
                write!(f, "  {of} at offset {offset}, checksum {checksum}: key {key}")?;
                put(f, " value ", value.as_ref())?;
                put(f, " ", compressed.as_ref())
            }
            Self::Other { name, meaning } => write!(f, "{name}: {meaning}"),
            Self::Damage { path, what } => {
                if what.starts_with(path.as_str()) {
                    write!(f, "DAMAGED {what}")
                } else {
                    write!(f, "DAMAGED {path}: {what}")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::hash::KeyHasher;
    use base::{KeyspaceId, Rng};
    use engine::{Fields, Key, Value};

    /// Effects about optional fields, as text and as JSON.
    #[test]
    fn fields_are_shown() {
        let hasher = KeyHasher::new(&mut Rng::new(1));
        let key = Key::new(&hasher, KeyspaceId(2), b"k");
        let some = Fields { flags: 7, is_sticky: true, unknown: b"\xfe\x01x", ..Fields::default() }.pack();
        let (mut buffer, mut none) = (Vec::new(), Vec::new());
        let (some, none) = (some.get().tagged(&mut buffer), Fields::default().pack().get().tagged(&mut none));
        let (encoding, value, expire_at) = (Encoding::PLAIN, Value::Bytes(b"v"), None);
        let store = |kind| Effect::StoreWith { key, kind, encoding, value, expire_at, fields: some };
        let fields = r#"flags 7, sticky, unknown fields "\xfe\x01x""#;
        for (effect, expected) in [
            (store(Type::String), format!(r#"    set keyspace 2 key "k" value "v" fields: {fields}"#)),
            (store(Type::List), format!(r#"    store keyspace 2 list key "k" value "v" fields: {fields}"#)),
            (Effect::Meta { key, fields: some }, format!(r#"    meta keyspace 2 key "k" fields: {fields}"#)),
            (Effect::Meta { key, fields: none }, r#"    meta keyspace 2 key "k" fields: none"#.to_owned()),
        ] {
            assert_eq!(Item::effect(&effect, false, &mut Reader::default()).to_string(), expected);
        }
    }
}
