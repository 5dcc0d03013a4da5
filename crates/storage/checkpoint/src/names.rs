//! Names in a data directory.

use base::Lsn;
use codec::FileHash;
use codec::dictionary::FILE_PREFIX;
use std::ffi::OsStr;
use std::fmt;

/// The lock file.
pub(crate) const LOCK: &str = "LOCK";
/// The manifest.
pub(crate) const MANIFEST: &str = "MANIFEST";
/// The directory of rows.
const ROWS: &str = "lsm";

/// The most files of a set: two digits.
pub(crate) const FILE_NUMBER_MAX: u8 = 99;

/// The number of a set of snapshot files. Higher is newer; no number is reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId(pub u32);

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08}", self.0)
    }
}

/// The meaning of a name in the data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// `LOCK`: held while a server uses the directory.
    Lock,
    /// `MANIFEST`
    Manifest,
    /// `MANIFEST.new`: an unfinished replacement.
    ManifestReplacement,
    /// `prdb-<set>-<nn>`: one file of a checkpoint.
    Snapshot {
        /// The checkpoint.
        set: SetId,
        /// Its file, from 0.
        file: u8,
    },
    /// `log-<first LSN>`: a segment of the command log.
    Log {
        /// Its first LSN.
        first: Lsn,
    },
    /// `dict-<hash>`: a dictionary.
    Dictionary(FileHash),
    /// `dict-<hash>.new`: an unfinished dictionary.
    DictionaryReplacement(FileHash),
    /// `lsm`: the directory with the rows of databases on disk.
    Rows,
    /// `lsm-<set>`: the copy of those rows that belongs to a checkpoint.
    RowsOf {
        /// The checkpoint.
        set: SetId,
    },
    /// Not one of Onggi's names: left alone.
    Other,
}

impl Name {
    /// Parses a name. Only the exact spelling counts, so that no two names mean the same file.
    pub fn parse(name: &OsStr) -> Self {
        let Some(name) = name.to_str() else { return Self::Other };
        let parsed = match name {
            LOCK => Self::Lock,
            MANIFEST => Self::Manifest,
            ROWS => Self::Rows,
            _ if name.strip_prefix(MANIFEST) == Some(vfs::REPLACEMENT_SUFFIX) => Self::ManifestReplacement,
            _ => Self::parse_numbered(name).unwrap_or(Self::Other),
        };
        if parsed.to_string() == name { parsed } else { Self::Other }
    }

    fn parse_numbered(name: &str) -> Option<Self> {
        if let Some(digits) = name.strip_prefix("log-") {
            return u64::from_str_radix(digits, 16).ok().map(|first| Self::Log { first: Lsn(first) });
        }
        if let Some(digits) = name.strip_prefix(FILE_PREFIX) {
            let (digits, is_replacement) = match digits.strip_suffix(vfs::REPLACEMENT_SUFFIX) {
                Some(digits) => (digits, true),
                None => (digits, false),
            };
            let hash = FileHash(u128::from_str_radix(digits, 16).ok()?);
            return Some(if is_replacement { Self::DictionaryReplacement(hash) } else { Self::Dictionary(hash) });
        }
        if let Some(set) = name.strip_prefix(ROWS).and_then(|rest| rest.strip_prefix('-')) {
            return Some(Self::RowsOf { set: SetId(set.parse().ok()?) });
        }
        let (set, file) = name.strip_prefix("prdb-")?.split_once('-')?;
        Some(Self::Snapshot { set: SetId(set.parse().ok()?), file: file.parse().ok()? })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock => f.write_str(LOCK),
            Self::Manifest => f.write_str(MANIFEST),
            Self::Rows => f.write_str(ROWS),
            Self::RowsOf { set } => write!(f, "{ROWS}-{set}"),
            Self::ManifestReplacement => write!(f, "{MANIFEST}{}", vfs::REPLACEMENT_SUFFIX),
            Self::Snapshot { set, file } => write!(f, "prdb-{set}-{file:02}"),
            Self::Log { first } => write!(f, "log-{:016x}", first.0),
            Self::Dictionary(hash) => hash.fmt(f),
            Self::DictionaryReplacement(hash) => write!(f, "{hash}{}", vfs::REPLACEMENT_SUFFIX),
            Self::Other => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names parse back to their origin, and similar names are not Onggi's.
    #[test]
    fn only_exact_names_are_ours() {
        for name in [
            Name::Lock,
            Name::Manifest,
            Name::ManifestReplacement,
            Name::Snapshot { set: SetId(1), file: 0 },
            Name::Snapshot { set: SetId(u32::MAX), file: FILE_NUMBER_MAX },
            Name::Log { first: Lsn(0) },
            Name::Log { first: Lsn(u64::MAX) },
            Name::Dictionary(FileHash(0xab)),
            Name::DictionaryReplacement(FileHash(u128::MAX)),
            Name::Rows,
            Name::RowsOf { set: SetId(1) },
        ] {
            assert_eq!(Name::parse(OsStr::new(&name.to_string())), name);
        }
        for other in [
            "",
            "prdb-1-0",
            "prdb-00000001-0",
            "prdb-00000001-000",
            "prdb-00000001",
            "log-0",
            "lsm-1",
            "lsm-",
            "log-00000000000000aG",
            "manifest",
            "dict-ab",
            "dict-000000000000000000000000000000AB",
        ] {
            assert_eq!(Name::parse(OsStr::new(other)), Name::Other, "{other}");
        }
        assert_eq!(Name::Snapshot { set: SetId(7), file: 3 }.to_string(), "prdb-00000007-03");
    }
}
