//! DEBUG DIGEST: one number for the whole data set, whatever the order of its tables.
//!
//! Redis' scheme, byte for byte, so that a state can be compared with a Redis or Valkey server's:
//!
//! ```text
//! mix(d, bytes)    d = sha1(d xor sha1(bytes))      the order of calls matters
//! add(d, bytes)    d = d xor sha1(bytes)            it does not
//!
//! value            mix type as four bytes, most significant first; then what it holds; add "!!expire!!" if it expires
//! string           mix it
//! list             mix every element, in order
//! set              add every member
//! hash             for each field: add the digest of (mix field, mix value)
//! sorted set       for each member: add the digest of (mix member, mix the text of the score)
//! stream           for each entry: mix "ms.seq", then every name and value
//! entry            mix the key, then all of its value
//! data set         for every database with entries, ascending: mix its number, then add every entry's digest
//! ```
//!
//! It is about values as commands see them: one that is stored compressed is to be decompressed first
//! ([`Decoder::show`]).
//!
//! It says whether an entry expires, not when, and nothing about groups of consumers or optional fields.
//! [`Store::digest`], by which tests compare stores, adds them.

use crate::scan::visit_all;
use crate::store::Store;
use base::double::DoubleText;
use base::integer::IntegerText;
use base::{DbIndex, UnixMs};
use engine::{Entry, Type};
use sha1::{Digest as _, Sha1};
use types::Decoder;
use value::hash::{Cell, View};
use value::stream::{Big as Stream, Id};
use value::{Progress, btree, list, set, zset};

/// A digest of a value, an entry or a data set; zero is that of nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest([u8; 20]);

impl Digest {
    /// The digest of an entry without its key, fields of hashes that are due at `now` left out: DEBUG DIGEST-VALUE.
    pub fn of_value(entry: &Entry<'_>, now: UnixMs) -> Self {
        let mut digest = Self::default();
        digest.mix_value(entry, now);
        digest
    }

    /// The digest of an entry, fields of hashes that are due at `now` left out.
    pub fn of_entry(entry: &Entry<'_>, now: UnixMs) -> Self {
        let mut digest = Self::default();
        digest.mix(entry.key);
        digest.mix_value(entry, now);
        digest
    }

    /// Adds an entry's digest to those of other entries, in any order.
    pub fn add_entry(&mut self, entry: Self) {
        self.add(&entry.0);
    }

    /// Adds a database to a data set: its number, and what [`Digest::add_entry`] made of its entries, of which there is
    /// at least one. Databases come in ascending order.
    pub fn add_database(&mut self, db: DbIndex, entries: Self) {
        self.mix(&db.0.to_be_bytes());
        self.toggle(entries.0);
    }

    fn mix_value(&mut self, entry: &Entry<'_>, now: UnixMs) {
        self.mix(&(entry.kind as u32).to_be_bytes());
        match entry.kind {
            Type::String => self.mix(entry.value.bytes()),
            Type::List => {
                list::View::of(entry.encoding, entry.value.stored()).forward(0).for_each(|element| self.mix(element));
            }
            Type::Hash => self.add_fields(entry, now),
            Type::Set => self.add_set(set::View::of(entry.encoding, entry.value.stored())),
            Type::Stream => self.mix_stream(Stream::of(entry.value.stored())),
            Type::Btree => btree::View::of(entry.value.stored()).forward(0).for_each(|element| {
                let mut change = Vec::new();
                btree::Change::Put(element).put(&mut change);
                self.mix(&change);
            }),
            Type::Zset => self.add_members(&zset::View::of(entry.value.stored())),
        }
        if entry.expire_at.is_some() {
            self.add(b"!!expire!!");
        }
    }

    fn add_members(&mut self, view: &zset::View<'_>) {
        for entry in view.forward(0) {
            let mut member = Self::default();
            member.mix(entry.member);
            member.mix(DoubleText::in_digest(entry.score).as_bytes());
            self.add(&member.0);
        }
    }

    fn add_set(&mut self, set: set::View<'_>) {
        set.iter().for_each(|member| self.add(member.bytes(&mut IntegerText::default())));
    }

    fn add_fields(&mut self, entry: &Entry<'_>, now: UnixMs) {
        for cell in fields(entry, now) {
            let mut field = Self::default();
            field.mix(cell.field);
            field.mix(cell.value);
            self.add(&field.0);
        }
    }

    fn mix_stream(&mut self, stream: &Stream) {
        for entry in stream.range(Id::MIN, Id::MAX) {
            self.mix(format!("{}.{}", entry.id.ms, entry.id.seq).as_bytes());
            for (name, value) in entry.fields() {
                self.mix(name);
                self.mix(value);
            }
        }
    }

    /// What the digest of an entry leaves out: when it expires, its optional fields that are logged, when its fields
    /// are due, and what groups consume of it.
    fn mix_unseen(&mut self, entry: &Entry<'_>, now: UnixMs) {
        self.mix(&entry.expire_at.unwrap_or(UnixMs::MAX).to_be_bytes());
        let mut buffer = Vec::new();
        let tagged = entry.fields.tagged(&mut buffer);
        if !tagged.is_none() {
            self.mix(tagged.bytes());
        }
        if entry.kind == Type::Stream {
            let mut saved = Vec::new();
            Stream::of(entry.value.stored()).write_changes(Progress::default(), usize::MAX, &mut saved);
            self.mix(&saved);
        }
        for cell in fields(entry, now) {
            let mut time = Self::default();
            time.mix(cell.field);
            time.mix(&cell.expire_at.unwrap_or(UnixMs::MAX).to_be_bytes());
            self.add(&time.0);
        }
    }

    fn mix(&mut self, bytes: &[u8]) {
        self.add(bytes);
        self.0 = Sha1::digest(self.0).into();
    }

    fn add(&mut self, bytes: &[u8]) {
        self.toggle(Sha1::digest(bytes).into());
    }

    fn toggle(&mut self, other: [u8; 20]) {
        self.0.iter_mut().zip(other).for_each(|(byte, other)| *byte ^= other);
    }
}

/// The fields of a hash that are not due; none of an entry of another type.
fn fields<'a>(entry: &Entry<'a>, now: UnixMs) -> impl Iterator<Item = Cell<'a>> {
    let view = (entry.kind == Type::Hash).then(|| View::of(entry.encoding, entry.value.stored()));
    view.into_iter().flat_map(|view| view.iter()).filter(move |cell| !cell.is_due(now))
}

/// Whether a client finds nothing there: its time has come, or that of all its fields.
fn is_absent(entry: &Entry<'_>, now: UnixMs) -> bool {
    entry.is_expired(now) || entry.kind == Type::Hash && fields(entry, now).next().is_none()
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Store {
    /// The digest of all databases at `now`, with all times: entries and fields whose time has come
    /// do not count. Shards are visited one after the other.
    pub fn digest(&self, now: UnixMs) -> Digest {
        let (mut digest, mut decoder) = (Digest::default(), Decoder::default());
        for db in (0..self.spaces.count() as u32).map(DbIndex) {
            let Some(space) = self.spaces.get(db) else { continue };
            let (mut entries, mut count) = (Digest::default(), 0);
            let mut bytes = Vec::new();
            self.each_shard(|shard| {
                visit_all(&mut shard.engine, space, &mut |entry| {
                    // A value that cannot be read counts as an empty one.
                    let entry = self.whole(*entry, &mut bytes).unwrap_or_else(|_| entry.without_value());
                    let entry = &decoder.show(self.source(), entry);
                    if !is_absent(entry, now) {
                        let mut timed = Digest::of_entry(entry, now);
                        timed.mix_unseen(entry, now);
                        entries.add_entry(timed);
                        count += 1;
                    }
                });
            })
            .for_each(drop);
            if count > 0 {
                digest.add_database(db, entries);
            }
        }
        digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::{Encoding, ExtFields, Type, Value};
    use value::Limits;
    use value::hash::{TIMED, UNTIMED};
    use value::stream::Change;

    fn entry<'a>(key: &'a [u8], value: &'a [u8], expire_at: Option<UnixMs>) -> Entry<'a> {
        let (kind, encoding, fields) = (Type::String, Encoding::PLAIN, ExtFields::NONE);
        Entry { key, kind, encoding, value: Value::Bytes(value), expire_at, stamp: 0, fields }
    }

    /// What Valkey 9.1.2 answers for the same hashes. Times of fields are seen by our own digest alone; fields that are
    /// due are seen by none.
    #[test]
    fn fields_count_until_they_are_due() {
        let hash = |packed, encoding| Entry {
            kind: Type::Hash,
            encoding,
            value: Value::Bytes(packed),
            ..entry(b"h", b"", None)
        };
        let one = hash(b"\x01\x02\x01a1", UNTIMED);
        let two = hash(b"\x02\x02\x01a1\x02\x01b2", UNTIMED);
        let timed = hash(b"\x02\x02\x01a1\x03\x01\x50b2", TIMED);
        assert_eq!(Digest::of_value(&one, 0).to_string(), "626a7b57a269f8f179a44902458ecb2f5920d35d");
        assert_eq!(Digest::of_value(&two, 0).to_string(), "6c8f22b3bf510fdcfd6122dd0f908a80e88243bf");
        assert_eq!(Digest::of_value(&timed, 0), Digest::of_value(&two, 0));
        assert_eq!(Digest::of_value(&timed, 0x50), Digest::of_value(&one, 0));
        let with_times = |entry: &Entry<'_>| {
            let mut digest = Digest::of_entry(entry, 0);
            digest.mix_unseen(entry, 0);
            digest
        };
        assert_ne!(with_times(&timed), with_times(&two));
        assert!(!is_absent(&timed, 0x50));
        assert!(is_absent(&hash(b"\x01\x03\x01\x50b2", TIMED), 0x50));
    }

    /// What Valkey 9.1.2 answers for the members `a` of score 0.5 and `m` of score 1,000,000,000.
    #[test]
    fn the_digest_of_a_sorted_set_is_that_of_valkey() {
        let packed = b"\x02\xf1\0\0\0\x3f\x01a\xe3\0\xca\x9a\x3b\x01m";
        let zset = Entry { kind: Type::Zset, encoding: Encoding::PACKED, ..entry(b"z", packed, None) };
        assert_eq!(Digest::of_value(&zset, 0).to_string(), "d95e24981204ec6cc13ace7ffbc13b6c37c76db7");
    }

    /// What Valkey 9.1.2 answers for the same entries in the same databases.
    #[test]
    fn digests_are_those_of_valkey() {
        let (a, b) = (entry(b"a", b"1", None), entry(b"b", b"hello", None));
        let expiring = entry(b"b", b"hello", Some(4_102_444_800_000));
        let data_set = |databases: &[(u32, &[Entry<'_>])]| {
            let mut digest = Digest::default();
            for (db, all) in databases {
                let mut entries = Digest::default();
                all.iter().for_each(|entry| entries.add_entry(Digest::of_entry(entry, 0)));
                digest.add_database(DbIndex(*db), entries);
            }
            digest.to_string()
        };
        assert_eq!(Digest::of_value(&a, 0).to_string(), "b4fc66738120fba0b5aa500ab5c2bf89cea1c5da");
        assert_eq!(Digest::of_value(&expiring, 0).to_string(), "d037c4eb8a8b36b602fbced4000daeab0714c1e3");
        assert_eq!(data_set(&[]), "0".repeat(40));
        assert_eq!(data_set(&[(0, &[a])]), "943d800368fb9c0e951138f1bc0e313ac769d91f");
        assert_eq!(data_set(&[(0, &[a, b])]), "2539797405e828ad7a3aa48c536b3eaf2803a421");
        assert_eq!(data_set(&[(0, &[expiring, a])]), "669dc7955c0119edb82e7cfeb40ea4a28f89f902");
        assert_eq!(data_set(&[(0, &[a, expiring]), (3, &[a])]), "cf61fb80c90dca22cfbb5a5f017cfb290fe0411d");
    }

    /// What Valkey 9.1.2 answers for streams of these entries.
    #[test]
    fn digests_of_streams_are_those_of_valkey() {
        let mut stream = Stream::default();
        let digest = |stream: &Stream| {
            let mut digest = Digest::default();
            digest.mix(&(Type::Stream as u32).to_be_bytes());
            digest.mix_stream(stream);
            digest.to_string()
        };
        let add = |stream: &mut Stream, seq, strings: &[&[u8]]| {
            let mut changes = Vec::new();
            Change::put_add(&mut changes, Id { ms: 1, seq }, strings.len() as u64 / 2, strings.iter().copied());
            stream.apply_all(&changes, &Limits::default());
        };
        add(&mut stream, 1, &[b"a", b"b"]);
        assert_eq!(digest(&stream), "db20534e81d36b705394fcfc8a61996efb6e5a7c");
        add(&mut stream, 2, &[b"a", b"b", b"c", b"d"]);
        assert_eq!(digest(&stream), "0724f2238e16b10fe59dfef5da352c930ed37b56");
    }
}
