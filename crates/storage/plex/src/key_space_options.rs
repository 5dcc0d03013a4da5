//! Options of one key space, which the manifest keeps.

use std::collections::BTreeMap;
use std::time::Duration;

use base::varint;

use crate::error::{Error, Result};
use crate::expiry::Expiry;
use crate::sstable::{self, Compression, TableOptions};

/// Numbers of the fields in the manifest.
mod field {
    pub const HAS_TIMES: u64 = 1;
    pub const TTL_MS: u64 = 2;
    pub const BLOCK_BYTES: u64 = 3;
    pub const FILTER_BITS_PER_KEY: u64 = 4;
    pub const PREFIX_FILTER_BYTES: u64 = 5;
    pub const COMPRESSION: u64 = 6;
}

/// More levels than any policy makes; a bound for what is read.
const LEVEL_COUNT_MAX: u64 = 64;

/// Options of one key space, given to [`Db::key_space_with`](crate::Db::key_space_with). What is not set here is as the
/// database's [`Options`](crate::Options) say. The database keeps them; the policy is the database's, since it may be
/// another one at each open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySpaceOptions {
    /// Whether values are stored with the time of their write, for life.
    pub(crate) has_times: bool,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) block_bytes: Option<usize>,
    pub(crate) filter_bits_per_key: Option<u32>,
    pub(crate) prefix_filter_bytes: Option<usize>,
    pub(crate) compression: Option<Vec<Compression>>,
}

impl KeySpaceOptions {
    /// Those of the database.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long a value lives after its write, in whole milliseconds, at least one. From then on no reader sees it,
    /// read views included. Its space comes back with flushes and merges, and where nothing else is merged, by merges
    /// of tables of which about half is over. Each value takes 8 bytes more, and must be 8 bytes shorter than 1 GiB.
    ///
    /// A key space is made with a time to live or without. It may change later, and a key space that was made with one
    /// may be without for a while: values then stay. Time is that of [`Options::clock`](crate::Options::clock).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.has_times = true;
        self.ttl_ms = Some(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// As [`Options::block_bytes`](crate::Options::block_bytes).
    pub fn block_bytes(mut self, bytes: usize) -> Self {
        self.block_bytes = Some(bytes);
        self
    }

    /// As [`Options::filter_bits_per_key`](crate::Options::filter_bits_per_key).
    pub fn filter_bits_per_key(mut self, bits: u32) -> Self {
        self.filter_bits_per_key = Some(bits);
        self
    }

    /// As [`Options::prefix_filter_bytes`](crate::Options::prefix_filter_bytes).
    pub fn prefix_filter_bytes(mut self, bytes: usize) -> Self {
        self.prefix_filter_bytes = Some(bytes);
        self
    }

    /// As [`Options::compression`](crate::Options::compression).
    pub fn compression(mut self, by_level: impl IntoIterator<Item = Compression>) -> Self {
        self.compression = Some(by_level.into_iter().collect());
        self
    }

    /// How long values live; `None` for ever.
    pub fn time_to_live(&self) -> Option<Duration> {
        self.ttl_ms.map(Duration::from_millis)
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.ttl_ms == Some(0) {
            return Err(Error::InvalidArgument("ttl is below one millisecond".into()));
        }
        sstable::check_options(
            self.block_bytes.unwrap_or(sstable::BLOCK_BYTES_MIN),
            self.filter_bits_per_key.unwrap_or(0),
            self.prefix_filter_bytes.unwrap_or(0),
            self.compression.as_deref().unwrap_or_default(),
        )
        .map_err(|what| Error::InvalidArgument(what.into()))
    }

    /// When values expire; `None` where they have no time of their write.
    pub(crate) fn expiry(&self, now_ms: u64) -> Option<Expiry> {
        self.has_times.then_some(Expiry { ttl_ms: self.ttl_ms, now_ms })
    }

    /// How tables of a level are built, where those of the database are built as `of_database` says. Prefixes are not
    /// known to filters where `knows_prefixes` is false.
    pub(crate) fn of_tables(&self, level: usize, of_database: TableOptions, knows_prefixes: bool) -> TableOptions {
        let compression = self
            .compression
            .as_ref()
            .map(|by_level| by_level.get(level).or(by_level.last()).copied().unwrap_or_default());
        TableOptions {
            block_bytes: self.block_bytes.unwrap_or(of_database.block_bytes),
            filter_bits_per_key: self.filter_bits_per_key.unwrap_or(of_database.filter_bits_per_key),
            prefix_bytes: self.prefix_filter_bytes.filter(|_| knows_prefixes).unwrap_or(of_database.prefix_bytes),
            compression: compression.unwrap_or(of_database.compression),
            has_times: self.has_times,
            ..of_database
        }
    }

    /// Number of fields, then of each its number and contents.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let numbers = [
            (field::HAS_TIMES, self.has_times.then_some(1)),
            (field::TTL_MS, self.ttl_ms),
            (field::BLOCK_BYTES, self.block_bytes.map(|bytes| bytes as u64)),
            (field::FILTER_BITS_PER_KEY, self.filter_bits_per_key.map(u64::from)),
            (field::PREFIX_FILTER_BYTES, self.prefix_filter_bytes.map(|bytes| bytes as u64)),
        ];
        let given = || numbers.iter().filter_map(|(field, number)| Some((*field, (*number)?)));
        varint::put(out, given().count() as u64 + u64::from(self.compression.is_some()));
        for (field, number) in given() {
            varint::put(out, field);
            varint::put(out, number);
        }
        if let Some(by_level) = &self.compression {
            varint::put(out, field::COMPRESSION);
            varint::put(out, by_level.len() as u64);
            by_level.iter().for_each(|compression| varint::put(out, compression.number()));
        }
    }

    /// `None` for what is no option of this release.
    pub(crate) fn take(rest: &mut &[u8]) -> Option<Self> {
        let mut options = Self::default();
        for _ in 0..varint::take(rest)? {
            match varint::take(rest)? {
                field::HAS_TIMES => options.has_times = varint::take(rest)? == 1,
                field::TTL_MS => options.ttl_ms = Some(varint::take(rest)?),
                field::BLOCK_BYTES => options.block_bytes = Some(usize::try_from(varint::take(rest)?).ok()?),
                field::FILTER_BITS_PER_KEY => {
                    options.filter_bits_per_key = Some(u32::try_from(varint::take(rest)?).ok()?);
                }
                field::PREFIX_FILTER_BYTES => {
                    options.prefix_filter_bytes = Some(usize::try_from(varint::take(rest)?).ok()?);
                }
                field::COMPRESSION => {
                    let levels = varint::take(rest).filter(|count| *count <= LEVEL_COUNT_MAX)?;
                    let by_level = (0..levels).map(|_| Compression::of_number(varint::take(rest)?));
                    options.compression = Some(by_level.collect::<Option<_>>()?);
                }
                _ => return None,
            }
        }
        (options.check().is_ok() && (options.has_times || options.ttl_ms.is_none())).then_some(options)
    }
}

/// Options of those key spaces that have any.
pub(crate) type OptionsOfSpaces = BTreeMap<u32, KeySpaceOptions>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Options come back from the manifest's bytes, and cut ones are refused.
    #[test]
    fn options_round_trip() {
        let all =
            [Compression::None, Compression::Lz4, Compression::Zstd { level: -7 }, Compression::Zstd { level: 19 }];
        let full = KeySpaceOptions::new()
            .ttl(Duration::from_secs(3600))
            .block_bytes(1 << 14)
            .filter_bits_per_key(0)
            .prefix_filter_bytes(4)
            .compression(all);
        for options in [KeySpaceOptions::new(), full, KeySpaceOptions { has_times: true, ..KeySpaceOptions::new() }] {
            let mut bytes = Vec::new();
            options.encode(&mut bytes);
            assert_eq!(KeySpaceOptions::take(&mut &bytes[..]), Some(options));
            for len in 0..bytes.len() {
                assert_eq!(KeySpaceOptions::take(&mut &bytes[..len]), None);
            }
        }
        assert!(KeySpaceOptions::new().ttl(Duration::from_nanos(1)).check().is_err());
        assert!(KeySpaceOptions::new().filter_bits_per_key(65).check().is_err());
    }
}
