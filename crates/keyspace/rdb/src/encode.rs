//! Encodes values in forms that every server of the target's version or later loads.
//!
//! Collections are written element by element, not packed: a server packs small ones by its own limits while it loads.
//! Only streams have no other form than listpacks.

use crate::format::{VERSION_VALKEY, kind, string_encoding};
use crate::packed::listpack;
use crate::stream::{Stream, StreamEntry, StreamGroup, StreamId};
use crate::strings::Strings;
use crate::value::{Module, Value};
use base::integer::parse_integer;
use codec::lzf::Compressor;
use std::io;

/// Strings up to this length are not compressed: they would not get shorter.
const COMPRESSED_LEN_MIN: usize = 21;

/// Limits of a stream's node, in entries and bytes: the servers' own defaults.
const NODE_ENTRIES_MAX: usize = 100;
const NODE_BYTES_MAX: usize = 4096;

/// The oldest server that must read the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Redis 7.0 and later, Valkey. Without the times at which consumers of streams were last active.
    V10,
    /// Redis 7.2 and later, Valkey.
    V11,
    /// Valkey 9.0 and later. Fields of hashes can expire.
    Valkey9,
}

impl Target {
    /// The oldest target that can express all of a value.
    pub fn oldest_for(value: &Value) -> Self {
        match value {
            Value::Hash(hash) if hash.has_expirations() => Self::Valkey9,
            Value::Stream(stream) if stream.groups.iter().any(tells_when_active) => Self::V11,
            _ => Self::V10,
        }
    }

    /// The target for a version of the format, if there is one.
    pub fn of_version(version: i64) -> Option<Self> {
        [Self::V10, Self::V11, Self::Valkey9].into_iter().find(|target| i64::from(target.version()) == version)
    }

    /// The version of the format.
    pub fn version(self) -> u32 {
        match self {
            Self::V10 => 10,
            Self::V11 => 11,
            Self::Valkey9 => VERSION_VALKEY,
        }
    }

    /// The first bytes of a file.
    pub(crate) fn header(self) -> &'static [u8] {
        match self {
            Self::V10 => b"REDIS0010",
            Self::V11 => b"REDIS0011",
            Self::Valkey9 => b"VALKEY080",
        }
    }
}

/// Why a value was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Fields of a hash expire, which the target does not support.
    #[error("fields of the hash expire, which version {} of the format cannot say", target.version())]
    NeedsNewer {
        /// The target.
        target: Target,
    },
    /// Only its module can write the value.
    #[error("a value of the module {}, version {}, cannot be written", module.name, module.version)]
    Module {
        /// The module.
        module: Module,
    },
    /// The output failed.
    #[error("writing failed")]
    Io(#[from] io::Error),
}

/// Writes values into buffers.
pub(crate) struct Encoder {
    target: Target,
    compressor: Option<Compressor>,
    compressed: Vec<u8>,
}

impl Encoder {
    pub fn new(target: Target) -> Self {
        Self { target, compressor: None, compressed: Vec::new() }
    }

    /// Compresses strings where that makes them shorter.
    pub fn compressing(mut self) -> Self {
        self.compressor = Some(Compressor::new());
        self
    }

    /// The type number under which the value will be written.
    pub fn kind(&self, value: &Value) -> Result<u8, WriteError> {
        Ok(match value {
            Value::String(_) => kind::STRING,
            Value::List(_) => kind::LIST,
            Value::Set(_) => kind::SET,
            Value::Zset(_) => kind::ZSET_2,
            Value::Hash(hash) if !hash.has_expirations() => kind::HASH,
            Value::Hash(_) if self.target == Target::Valkey9 => kind::HASH_2,
            Value::Hash(_) => return Err(WriteError::NeedsNewer { target: self.target }),
            Value::Stream(_) if self.target == Target::V10 => kind::STREAM_LISTPACKS_2,
            Value::Stream(_) => kind::STREAM_LISTPACKS_3,
            Value::Module(module) => return Err(WriteError::Module { module: module.clone() }),
        })
    }

    /// Appends the value without its type.
    pub fn put_value(&mut self, value: &Value, out: &mut Vec<u8>) {
        match value {
            Value::String(string) => self.put_string(string, out),
            Value::List(all) | Value::Set(all) => {
                put_length(all.len() as u64, out);
                all.iter().for_each(|string| self.put_string(string, out));
            }
            Value::Zset(zset) => {
                put_length(zset.members().len() as u64, out);
                for (member, score) in zset.iter() {
                    self.put_string(member, out);
                    out.extend(score.to_le_bytes());
                }
            }
            Value::Hash(hash) => {
                put_length(hash.len() as u64, out);
                for (field, value, expire_at) in hash.iter() {
                    self.put_string(field, out);
                    self.put_string(value, out);
                    if hash.has_expirations() {
                        out.extend(expire_at.unwrap_or(-1).to_le_bytes());
                    }
                }
            }
            Value::Stream(stream) => self.put_stream(stream, out),
            // `kind` has refused it already.
            Value::Module(_) => {}
        }
    }

    /// Appends a string: as an integer, compressed, or raw.
    pub fn put_string(&mut self, string: &[u8], out: &mut Vec<u8>) {
        if let Some(number) = parse_integer(string).and_then(|number| i32::try_from(number).ok()) {
            put_integer(number, out);
        } else if !self.put_compressed(string, out) {
            put_length(string.len() as u64, out);
            out.extend_from_slice(string);
        }
    }

    fn put_compressed(&mut self, string: &[u8], out: &mut Vec<u8>) -> bool {
        /// The compressed string must be shorter by this much, because two lengths precede it.
        const SAVED_MIN: usize = 4;
        let Some(compressor) = &mut self.compressor else { return false };
        self.compressed.clear();
        if string.len() < COMPRESSED_LEN_MIN
            || !compressor.compress(string, string.len() - SAVED_MIN, &mut self.compressed)
        {
            return false;
        }
        put_lzf(&self.compressed, string.len(), out);
        true
    }

    fn put_stream(&mut self, stream: &Stream, out: &mut Vec<u8>) {
        let nodes = pack_nodes(stream);
        put_length(nodes.len() as u64, out);
        for (first, listpack) in &nodes {
            put_length(16, out);
            out.extend(first.to_bytes());
            self.put_string(listpack, out);
        }
        put_length(stream.len(), out);
        put_id(stream.last_id, out);
        put_id(stream.first_id(), out);
        put_id(stream.max_deleted_id, out);
        put_length(stream.entries_added, out);
        put_length(stream.groups.len() as u64, out);
        stream.groups.iter().for_each(|group| self.put_group(group, out));
    }

    fn put_group(&mut self, group: &StreamGroup, out: &mut Vec<u8>) {
        self.put_string(&group.name, out);
        put_id(group.last_id, out);
        put_length(group.entries_read.unwrap_or(u64::MAX), out);
        put_length(group.pending.len() as u64, out);
        for pending in &group.pending {
            out.extend(pending.id.to_bytes());
            out.extend(pending.delivered_at.to_le_bytes());
            put_length(pending.deliveries, out);
        }

        // Ids by consumer; each list is ascending because the whole is.
        let mut owned = vec![Vec::new(); group.consumers.len()];
        for pending in &group.pending {
            if let Some(ids) = owned.get_mut(pending.consumer) {
                ids.push(pending.id);
            }
        }
        put_length(group.consumers.len() as u64, out);
        for (consumer, ids) in group.consumers.iter().zip(owned) {
            self.put_string(&consumer.name, out);
            out.extend(consumer.seen_at.to_le_bytes());
            if self.target > Target::V10 {
                out.extend(consumer.active_at.unwrap_or(-1).to_le_bytes());
            }
            put_length(ids.len() as u64, out);
            ids.iter().for_each(|id| out.extend(id.to_bytes()));
        }
    }
}

/// Whether a consumer was active at another time than it was last seen. If the first is missing, servers use the
/// second.
fn tells_when_active(group: &StreamGroup) -> bool {
    group.consumers.iter().any(|consumer| consumer.active_at != Some(consumer.seen_at))
}

/// Appends a length in its shortest form.
pub(crate) fn put_length(length: u64, out: &mut Vec<u8>) {
    if length < 1 << 6 {
        out.push(length as u8);
    } else if length < 1 << 14 {
        out.extend((0x4000 | length as u16).to_be_bytes());
    } else if let Ok(length) = u32::try_from(length) {
        out.push(0x80);
        out.extend(length.to_be_bytes());
    } else {
        out.push(0x81);
        out.extend(length.to_be_bytes());
    }
}

/// Appends an already compressed string whose original length is `len`.
pub(crate) fn put_lzf(lzf: &[u8], len: usize, out: &mut Vec<u8>) {
    out.push(0xc0 | string_encoding::LZF);
    put_length(lzf.len() as u64, out);
    put_length(len as u64, out);
    out.extend_from_slice(lzf);
}

fn put_integer(number: i32, out: &mut Vec<u8>) {
    if let Ok(number) = i8::try_from(number) {
        out.push(0xc0 | string_encoding::INT8);
        out.extend(number.to_le_bytes());
    } else if let Ok(number) = i16::try_from(number) {
        out.push(0xc0 | string_encoding::INT16);
        out.extend(number.to_le_bytes());
    } else {
        out.push(0xc0 | string_encoding::INT32);
        out.extend(number.to_le_bytes());
    }
}

fn put_id(id: StreamId, out: &mut Vec<u8>) {
    put_length(id.ms, out);
    put_length(id.seq, out);
}

/// The entries in listpacks, each with the id of its first entry.
fn pack_nodes(stream: &Stream) -> Vec<(StreamId, Vec<u8>)> {
    let mut nodes = Vec::new();
    let mut open: Vec<StreamEntry<'_>> = Vec::new();
    let mut bytes = 0;
    for entry in stream.entries() {
        let repeats = open.first().is_some_and(|first| has_names_of(*first, entry));
        let len: usize = entry.fields().map(|(name, value)| value.len() + if repeats { 0 } else { name.len() }).sum();
        if open.len() == NODE_ENTRIES_MAX || (bytes + len > NODE_BYTES_MAX && !open.is_empty()) {
            nodes.extend(pack_node(&open));
            open.clear();
            bytes = 0;
        }
        bytes += len;
        open.push(entry);
    }
    nodes.extend(pack_node(&open));
    nodes
}

fn has_names_of(first: StreamEntry<'_>, entry: StreamEntry<'_>) -> bool {
    entry.fields().map(|(name, _)| name).eq(first.fields().map(|(name, _)| name))
}

/// A node: the field names of its first entry, then all entries; those with the same names omit them.
fn pack_node(entries: &[StreamEntry<'_>]) -> Option<(StreamId, Vec<u8>)> {
    const SAME_NAMES: i64 = 2;
    let first = entries.first()?;
    let base = first.id();
    let names: Strings = first.fields().map(|(name, _)| name).collect();

    let mut pack = listpack::Builder::new();
    pack.push_integer(entries.len() as i64);
    pack.push_integer(0);
    pack.push_integer(names.len() as i64);
    names.iter().for_each(|name| pack.push_string(name));
    pack.push_integer(0);
    for entry in entries {
        let has_same_names = has_names_of(*first, *entry);
        pack.push_integer(if has_same_names { SAME_NAMES } else { 0 });
        pack.push_integer(entry.id().ms.wrapping_sub(base.ms).cast_signed());
        pack.push_integer(entry.id().seq.wrapping_sub(base.seq).cast_signed());
        let count = entry.fields().len() as i64;
        if has_same_names {
            entry.fields().for_each(|(_, value)| pack.push_string(value));
            pack.push_integer(count + 3);
            continue;
        }
        pack.push_integer(count);
        for (name, value) in entry.fields() {
            pack.push_string(name);
            pack.push_string(value);
        }
        pack.push_integer(2 * count + 4);
    }
    Some((base, pack.finish()))
}
