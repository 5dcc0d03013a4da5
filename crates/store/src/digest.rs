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
//! set              add every member
//! entry            mix the key, then all of its value
//! data set         for every database with entries, ascending: mix its number, then add every entry's digest
//! ```
//!
//! It says whether an entry expires, not when. [`Store::digest`], by which tests compare stores, adds the time.

use crate::store::Store;
use base::integer::IntegerText;
use base::{DbIndex, UnixMs};
use engine::{Engine, Entry, Type};
use sha1::{Digest as _, Sha1};
use value::set;

/// A digest of a value, an entry or a data set; zero is that of nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest([u8; 20]);

impl Digest {
    /// The digest of an entry without its key: DEBUG DIGEST-VALUE.
    pub fn of_value(entry: &Entry<'_>) -> Self {
        let mut digest = Self::default();
        digest.mix_value(entry);
        digest
    }

    /// The digest of an entry.
    pub fn of_entry(entry: &Entry<'_>) -> Self {
        let mut digest = Self::default();
        digest.mix(entry.key);
        digest.mix_value(entry);
        digest
    }

    /// Adds an entry's digest to those of other entries, in any order.
    pub fn add_entry(&mut self, entry: Self) {
        self.add(&entry.0);
    }

    /// Adds a database to a data set: its number, and what [`Digest::add_entry`] made of its entries, of which there is at
    /// least one. Databases come in ascending order.
    pub fn add_database(&mut self, db: DbIndex, entries: Self) {
        self.mix(&db.0.to_be_bytes());
        self.toggle(entries.0);
    }

    fn mix_value(&mut self, entry: &Entry<'_>) {
        self.mix(&(entry.kind as u32).to_be_bytes());
        match entry.kind {
            Type::String => self.mix(entry.value.bytes()),
            Type::Set => self.add_set(set::View::of(entry.encoding, entry.value.stored())),
            Type::List | Type::Zset | Type::Hash | Type::Stream => unreachable!("no command makes one yet"),
        }
        if entry.expire_at.is_some() {
            self.add(b"!!expire!!");
        }
    }

    fn add_set(&mut self, set: set::View<'_>) {
        set.iter().for_each(|member| self.add(member.bytes(&mut IntegerText::default())));
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

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Store {
    /// The digest of all databases at `now`, with the times of expiration: entries expired by then do not count. Shards are
    /// visited one after the other.
    pub fn digest(&self, now: UnixMs) -> Digest {
        let mut digest = Digest::default();
        for db in (0..self.spaces.count() as u32).map(DbIndex) {
            let Some(space) = self.spaces.get(db) else { continue };
            let (mut entries, mut count) = (Digest::default(), 0);
            self.each_shard(|shard| {
                let mut from = Some(0);
                while let Some(bound) = from {
                    from = shard
                        .engine
                        .scan(space, bound, &mut |entry| {
                            if !entry.is_expired(now) {
                                let mut timed = Digest::of_entry(entry);
                                timed.mix(&entry.expire_at.unwrap_or(UnixMs::MAX).to_be_bytes());
                                entries.add_entry(timed);
                                count += 1;
                            }
                        })
                        .next;
                }
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
    use engine::{Encoding, Type, Value};

    fn entry<'a>(key: &'a [u8], value: &'a [u8], expire_at: Option<UnixMs>) -> Entry<'a> {
        Entry { key, kind: Type::String, encoding: Encoding::PLAIN, value: Value::Bytes(value), expire_at, stamp: 0 }
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
                all.iter().for_each(|entry| entries.add_entry(Digest::of_entry(entry)));
                digest.add_database(DbIndex(*db), entries);
            }
            digest.to_string()
        };
        assert_eq!(Digest::of_value(&a).to_string(), "b4fc66738120fba0b5aa500ab5c2bf89cea1c5da");
        assert_eq!(Digest::of_value(&expiring).to_string(), "d037c4eb8a8b36b602fbced4000daeab0714c1e3");
        assert_eq!(data_set(&[]), "0".repeat(40));
        assert_eq!(data_set(&[(0, &[a])]), "943d800368fb9c0e951138f1bc0e313ac769d91f");
        assert_eq!(data_set(&[(0, &[a, b])]), "2539797405e828ad7a3aa48c536b3eaf2803a421");
        assert_eq!(data_set(&[(0, &[expiring, a])]), "669dc7955c0119edb82e7cfeb40ea4a28f89f902");
        assert_eq!(data_set(&[(0, &[a, expiring]), (3, &[a])]), "cf61fb80c90dca22cfbb5a5f017cfb290fe0411d");
    }
}
