//! Streams as files keep them: entries in nodes, and groups with what is pending.

use crate::strings::Strings;
use base::UnixMs;

/// The id of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Milliseconds, as a rule.
    pub ms: u64,
    /// Which of that millisecond.
    pub seq: u64,
}

impl StreamId {
    /// As 16 bytes that sort as ids do.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }

    /// From [`Self::to_bytes`].
    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        let both = u128::from_be_bytes(bytes);
        Self { ms: (both >> 64) as u64, seq: both as u64 }
    }
}

/// A stream. Two are equal when they hold the same, however entries are distributed over nodes.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    pub(crate) nodes: Vec<Node>,
    /// The id that new entries are above.
    pub last_id: StreamId,
    /// The highest id that was deleted.
    pub max_deleted_id: StreamId,
    /// How many entries were ever added.
    pub entries_added: u64,
    /// The groups, with distinct names.
    pub groups: Vec<StreamGroup>,
}

impl Stream {
    /// How many entries.
    pub fn len(&self) -> u64 {
        self.nodes.iter().map(|node| node.entries.len() as u64).sum()
    }

    /// Whether it has no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries, by ascending id.
    pub fn entries(&self) -> impl Iterator<Item = StreamEntry<'_>> {
        self.nodes.iter().flat_map(|node| node.entries.iter().map(move |place| StreamEntry { node, place }))
    }

    /// The id of the first entry; `0-0` when there is none.
    pub fn first_id(&self) -> StreamId {
        self.entries().next().map(|entry| entry.id()).unwrap_or_default()
    }

    /// Appends an entry with its fields and values in turn, above all that are in it.
    pub fn push(&mut self, id: StreamId, fields: impl IntoIterator<Item = impl AsRef<[u8]>>) {
        if self.nodes.is_empty() {
            self.nodes.push(Node::default());
        }
        let Some(node) = self.nodes.last_mut() else { return };
        let first = node.texts.len();
        fields.into_iter().for_each(|text| node.texts.push(text.as_ref()));
        node.entries.push(EntryPlace { id, first, len: node.texts.len() - first, has_names: true });
        self.last_id = self.last_id.max(id);
    }
}

impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        let seen = |stream: &Self| (stream.last_id, stream.max_deleted_id, stream.entries_added);
        let are_equal = |(left, right): (StreamEntry<'_>, StreamEntry<'_>)| {
            left.id() == right.id() && left.fields().eq(right.fields())
        };
        seen(self) == seen(other)
            && self.groups == other.groups
            && self.len() == other.len()
            && self.entries().zip(other.entries()).all(are_equal)
    }
}

/// A run of entries. Those that have the names of its first entry do not repeat them, neither in the file nor here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// The names of fields that entries share.
    pub names: Strings,
    /// What entries have of their own.
    pub texts: Strings,
    pub entries: Vec<EntryPlace>,
}

/// Where an entry stands in its node.
#[derive(Clone, Debug)]
pub(crate) struct EntryPlace {
    pub id: StreamId,
    /// The first of its texts.
    pub first: usize,
    /// How many texts.
    pub len: usize,
    /// The texts are names and values in turn; else only values, of the shared names.
    pub has_names: bool,
}

/// An entry of a stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamEntry<'s> {
    node: &'s Node,
    place: &'s EntryPlace,
}

impl<'s> StreamEntry<'s> {
    /// Its id.
    pub fn id(self) -> StreamId {
        self.place.id
    }

    /// Its fields and their values.
    pub fn fields(self) -> impl ExactSizeIterator<Item = (&'s [u8], &'s [u8])> {
        let EntryPlace { first, len, has_names, .. } = *self.place;
        let Node { names, texts, .. } = self.node;
        let text = move |at: usize| texts.get(first + at).unwrap_or_default();
        let count = if has_names { len / 2 } else { len };
        (0..count).map(move |at| match has_names {
            true => (text(2 * at), text(2 * at + 1)),
            false => (names.get(at).unwrap_or_default(), text(at)),
        })
    }
}

/// A group of consumers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamGroup {
    /// Its name.
    pub name: Vec<u8>,
    /// The last id that was delivered to it.
    pub last_id: StreamId,
    /// How many entries up to there were ever added; `None` when that is not known.
    pub entries_read: Option<u64>,
    /// Its consumers, with distinct names.
    pub consumers: Vec<StreamConsumer>,
    /// What was delivered and not acknowledged, by ascending id.
    pub pending: Vec<StreamPending>,
}

/// A consumer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamConsumer {
    /// Its name.
    pub name: Vec<u8>,
    /// When it last asked.
    pub seen_at: UnixMs,
    /// When it last was given an entry; `None`: never.
    pub active_at: Option<UnixMs>,
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamPending {
    /// The entry, which may be gone.
    pub id: StreamId,
    /// When it was last delivered.
    pub delivered_at: UnixMs,
    /// How often it was.
    pub deliveries: u64,
    /// To whom: a place among the group's consumers.
    pub consumer: usize,
}
