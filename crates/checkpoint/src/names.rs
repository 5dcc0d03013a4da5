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

/// Most files a set can have: two digits.
pub(crate) const FILE_NUMBER_MAX: u8 = 99;

/// The number of a set of snapshot files. Higher is newer; a number is used once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId(pub u32);

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08}", self.0)
    }
}

/// What a name in the data directory stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// `LOCK`: held while a server uses the directory.
    Lock,
    /// `MANIFEST`
    Manifest,
    /// `MANIFEST.new`: a replacement that was not finished.
    ManifestReplacement,
    /// `prdb-<set>-<nn>`: one file of a checkpoint.
    Snapshot {
        /// Which checkpoint.
        set: SetId,
        /// Which of its files, from 0.
        file: u8,
    },
    /// `log-<first LSN>`: a segment of the command log.
    Log {
        /// Where it begins.
        first: Lsn,
    },
    /// `dict-<hash>`: a dictionary.
    Dictionary(FileHash),
    /// `dict-<hash>.new`: one that was not finished.
    DictionaryReplacement(FileHash),
    /// Not ours: left alone.
    Other,
}

impl Name {
    /// Reads a name. Only the exact spelling counts, so that no two names mean the same file.
    pub fn parse(name: &OsStr) -> Self {
        let Some(name) = name.to_str() else { return Self::Other };
        let parsed = match name {
            LOCK => Self::Lock,
            MANIFEST => Self::Manifest,
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
        let (set, file) = name.strip_prefix("prdb-")?.split_once('-')?;
        Some(Self::Snapshot { set: SetId(set.parse().ok()?), file: file.parse().ok()? })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock => f.write_str(LOCK),
            Self::Manifest => f.write_str(MANIFEST),
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

    /// Names read back as what they were made from, and near misses are not ours.
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
