//! What each codec would make of some values, for MEMORY EXPLAIN.
//!
//! Values are taken under the lock of their shard, as they are stored, and tried without it.

use super::Compression;
use base::KeyspaceId;
use codec::stored::Stored;
use codec::training::Choice;
use codec::{Method, Reader, Workspace};
use engine::{Entry, Value};
use types::decoder::may_tree_be_compressed;
use value::Progress;

/// The codecs that are tried.
pub const TRIED: [&str; 3] = ["lzf", "lz4", "zstd"];

/// A value as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    key: Box<[u8]>,
    bytes: Box<[u8]>,
    is_compressed: bool,
}

impl Taken {
    /// The value of an entry, as stored and decompressed, if it has at most `bytes_max` bytes.
    pub fn of(entry: &Entry<'_>, bytes_max: usize) -> Option<Self> {
        if entry.is_away() {
            return None;
        }
        let is_compressed = entry.is_compressed();
        let bytes: Box<[u8]> = match entry.value {
            Value::Big(tree) if tree.content_bytes() <= bytes_max && may_tree_be_compressed(tree) => {
                let mut changes = Vec::new();
                let rest = tree.write_changes(Progress::default(), bytes_max, &mut changes);
                rest.is_none().then_some(changes)?.into()
            }
            Value::Big(_) => return None,
            value if types::decoder::string_len(entry) <= bytes_max => value.bytes().into(),
            _ => return None,
        };
        Some(Self { key: entry.key.into(), bytes, is_compressed })
    }

    /// Bytes that it takes to keep it.
    pub fn held_bytes(&self) -> usize {
        self.key.len() + self.bytes.len()
    }
}

/// What came of some values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// How many could be tried.
    pub values: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that are stored for them now.
    pub stored_bytes: u64,
    /// Bytes it would take, by codec as in [`TRIED`]. A value that does not get shorter stays as it is.
    pub by_codec: [u64; TRIED.len()],
}

impl Compression {
    /// Tries the codecs on values of a keyspace, zstd with the dictionary of their class if there is one. Some ten
    /// microseconds for each KB.
    pub fn try_codecs(&self, space: KeyspaceId, values: &[Taken]) -> Tried {
        let level = self.settings().level;
        let (mut workspace, mut reader, mut tried) = (Workspace::new(), Reader::default(), Tried::default());
        let (mut plain, mut out) = (Vec::new(), Vec::new());
        reader.follow(&self.dictionaries);
        for value in values {
            plain.clear();
            match value.is_compressed {
                // Its dictionary may be gone by now.
                true if workspace.decode(&value.bytes, &mut reader, &mut plain).is_err() => continue,
                true => {}
                false => plain.extend_from_slice(&value.bytes),
            }
            let choice = {
                let mut trainer = self.trainer();
                let class = trainer.class(space, &value.key);
                trainer.choice(class).clone()
            };
            let zstd = match &choice {
                Choice::Dictionary(encoder) => Method::Dictionary(encoder),
                Choice::Raw | Choice::Plain => Method::Zstd(level),
            };
            tried.values += 1;
            tried.bytes += plain.len() as u64;
            tried.stored_bytes += value.bytes.len() as u64;
            for (method, sum) in [Method::Lzf, Method::Lz4, zstd].into_iter().zip(&mut tried.by_codec) {
                out.clear();
                let is_shorter = workspace.encode(method, &plain, super::len_max(plain.len()), &mut out);
                *sum += if is_shorter { out.len() } else { plain.len() } as u64;
            }
        }
        tried
    }

    /// Time spent on compressing values whose keys begin so, in nanoseconds, since the last change of the settings: of
    /// all classes within the prefix, or of the class that the prefix is in.
    pub fn spent_ns(&self, space: KeyspaceId, prefix: &[u8]) -> u64 {
        let report = self.trainer().report();
        let classes = report.iter().filter(|class| class.keyspace == space);
        let is_within = |class: &&codec::training::ClassReport| class.prefix.starts_with(prefix);
        let within: u64 = classes.clone().filter(is_within).map(|class| class.spent_ns).sum();
        let around = classes.filter(|class| !class.prefix.is_empty() && prefix.starts_with(&class.prefix));
        if within > 0 { within } else { around.map(|class| class.spent_ns).max().unwrap_or(0) }
    }
}

/// The bytes of a stored value that is compressed, and those of the value; of a tree of which leaves are, what it
/// takes, and its elements, if these are more. `None` of any other.
pub fn compressed_lengths(entry: &Entry<'_>) -> Option<(u64, u64)> {
    if let Value::Big(tree) = entry.value {
        let (taken, content) = (tree.memory_bytes() as u64, tree.content_bytes() as u64);
        return (taken < content).then_some((taken, content));
    }
    let bytes = entry.value.bytes();
    let stored = entry.is_compressed().then(|| Stored::parse(bytes).ok()).flatten()?;
    Some((bytes.len() as u64, stored.len as u64))
}
