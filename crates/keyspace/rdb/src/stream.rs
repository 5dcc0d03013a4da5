//! Streams as files hold them: entries in nodes, and groups with their pending entries.

use crate::strings::Strings;
use base::UnixMs;

/// The id of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Usually milliseconds.
    pub ms: u64,
    /// The sequence number within that millisecond.
    pub seq: u64,
}

impl StreamId {
    /// As 16 bytes whose order is that of the ids.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }

    /// The inverse of [`Self::to_bytes`].
    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        let both = u128::from_be_bytes(bytes);
        Self { ms: (both >> 64) as u64, seq: both as u64 }
    }
}

/// A stream. Two streams are equal if their contents are, however their entries are distributed over nodes.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    pub(crate) nodes: Vec<Node>,
    /// New entries have ids above this.
    pub last_id: StreamId,
    /// The highest deleted id.
    pub max_deleted_id: StreamId,
    /// Number of entries ever added.
    pub entries_added: u64,
    /// The groups, with distinct names.
    pub groups: Vec<StreamGroup>,
}

impl Stream {
    /// Number of entries.
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

    /// Appends an entry above all others, with its fields and values in turn.
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

/// Consecutive entries. Those with the same names as the first entry do not repeat them, in the file and here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// The field names that entries share.
    pub names: Strings,
    /// The entries' own texts.
    pub texts: Strings,
    pub entries: Vec<EntryPlace>,
}

/// The texts of an entry in its node.
#[derive(Clone, Debug)]
pub(crate) struct EntryPlace {
    pub id: StreamId,
    /// The index of its first text.
    pub first: usize,
    /// Number of its texts.
    pub len: usize,
    /// Whether the texts are names and values in turn; otherwise only values, of the shared names.
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
    /// The last id delivered to it.
    pub last_id: StreamId,
    /// Number of entries ever added up to there; `None` if unknown.
    pub entries_read: Option<u64>,
    /// Its consumers, with distinct names.
    pub consumers: Vec<StreamConsumer>,
    /// Delivered and unacknowledged entries, by ascending id.
    pub pending: Vec<StreamPending>,
}

/// A consumer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamConsumer {
    /// Its name.
    pub name: Vec<u8>,
    /// Time of its last request.
    pub seen_at: UnixMs,
    /// Time of its last delivery; `None`: never.
    pub active_at: Option<UnixMs>,
}

/// A delivered and unacknowledged entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamPending {
    /// The entry, which may be deleted.
    pub id: StreamId,
    /// Time of its last delivery.
    pub delivered_at: UnixMs,
    /// Number of deliveries.
    pub deliveries: u64,
    /// Its consumer: an index into the group's consumers.
    pub consumer: usize,
}
