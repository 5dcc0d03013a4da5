//! Values as files hold them.

use crate::stream::Stream;
use crate::strings::Strings;
use base::UnixMs;

/// A verified value of any type: members and fields are distinct, scores are numbers, ids ascend.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A byte string.
    String(Vec<u8>),
    /// A sequence.
    List(Strings),
    /// Distinct members, in the order of the file.
    Set(Strings),
    /// Members with scores, in the order of the file.
    Zset(Zset),
    /// Fields with values, in the order of the file.
    Hash(Hash),
    /// Entries by id, and groups.
    Stream(Box<Stream>),
    /// A value that only a module can read. Its content was skipped.
    Module(Module),
}

impl Value {
    /// The name of the type, as TYPE returns it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::String(_) => "string",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::Zset(_) => "zset",
            Self::Hash(_) => "hash",
            Self::Stream(_) => "stream",
            Self::Module(_) => "module",
        }
    }

    /// Whether it is an empty collection, which no server keeps, except for streams.
    pub fn is_empty_collection(&self) -> bool {
        match self {
            Self::List(all) | Self::Set(all) => all.is_empty(),
            Self::Zset(zset) => zset.members().is_empty(),
            Self::Hash(hash) => hash.is_empty(),
            Self::String(_) | Self::Stream(_) | Self::Module(_) => false,
        }
    }
}

/// A sorted set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Zset {
    members: Strings,
    scores: Vec<f64>,
}

impl Zset {
    /// Joins members and scores; `None` if their numbers differ, or a score is not a number.
    pub(crate) fn of(members: Strings, scores: Vec<f64>) -> Option<Self> {
        (members.len() == scores.len() && scores.iter().all(|score| !score.is_nan()))
            .then_some(Self { members, scores })
    }

    /// The members.
    pub fn members(&self) -> &Strings {
        &self.members
    }

    /// Each member with its score.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], f64)> {
        self.members.iter().zip(self.scores.iter().copied())
    }

    /// Appends a member that is not in it.
    pub fn push(&mut self, member: &[u8], score: f64) {
        self.members.push(member);
        self.scores.push(score);
    }
}

/// A hash.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hash {
    /// Fields and values, in turn.
    pairs: Strings,
    /// Expirations by field index; fields beyond the end have none.
    expirations: Vec<Option<UnixMs>>,
}

impl Hash {
    /// From fields and values in turn, none of which expires; `None` if a value is missing.
    pub(crate) fn of(pairs: Strings) -> Option<Self> {
        pairs.len().is_multiple_of(2).then_some(Self { pairs, expirations: Vec::new() })
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.pairs.len() / 2
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Fields and values, in turn.
    pub(crate) fn pairs(&self) -> &Strings {
        &self.pairs
    }

    /// Each field with its value and its expiration time.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8], Option<UnixMs>)> {
        (0..self.len()).map(|at| {
            let string = |at| self.pairs.get(at).unwrap_or_default();
            (string(2 * at), string(2 * at + 1), self.expirations.get(at).copied().flatten())
        })
    }

    /// Whether a field expires.
    pub fn has_expirations(&self) -> bool {
        !self.expirations.is_empty()
    }

    /// Removes the expired fields and returns their number.
    pub fn drop_due(&mut self, now: UnixMs) -> usize {
        let is_due = |expire_at: Option<UnixMs>| expire_at.is_some_and(|at| at <= now);
        if !self.expirations.iter().any(|expire_at| is_due(*expire_at)) {
            return 0;
        }
        let mut kept = Self::default();
        for (field, value, expire_at) in self.iter().filter(|(_, _, expire_at)| !is_due(*expire_at)) {
            kept.push(field, value, expire_at);
        }
        let dropped = self.len() - kept.len();
        *self = kept;
        dropped
    }

    /// Appends a field that is not in it.
    pub fn push(&mut self, field: &[u8], value: &[u8], expire_at: Option<UnixMs>) {
        self.pairs.push(field);
        self.pairs.push(value);
        self.expire_last(expire_at);
    }

    /// Appends what `write` adds to the strings: a field and its value.
    pub(crate) fn push_with<E>(
        &mut self,
        expire_at: Option<UnixMs>,
        write: impl FnOnce(&mut Strings) -> Result<(), E>,
    ) -> Result<(), E> {
        write(&mut self.pairs)?;
        self.expire_last(expire_at);
        Ok(())
    }

    /// Sets the expiration time of the last field.
    pub(crate) fn expire_last(&mut self, expire_at: Option<UnixMs>) {
        if expire_at.is_some() {
            self.expirations.resize(self.len().saturating_sub(1), None);
            self.expirations.push(expire_at);
        }
    }
}

/// The module that wrote a value, and the version of its encoding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Module {
    /// The name of its type: nine letters, digits, `-` or `_`.
    pub name: String,
    /// The version of its encoding.
    pub version: u16,
}

impl Module {
    /// Decodes the number in the file: nine letters of six bits each, then ten bits of version.
    pub(crate) fn of_id(id: u64) -> Self {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let letter = |place: u32| LETTERS.get((id >> (10 + 6 * place) & 63) as usize).map(|letter| char::from(*letter));
        Self { name: (0..9).rev().filter_map(letter).collect(), version: (id & 1023) as u16 }
    }
}
