//! What can be wrong with compressed bytes and with dictionaries.

use crate::dictionary_number::DictionaryNumber;
use crate::lzf::LzfError;
use std::path::PathBuf;

/// Why a stored value, or a dictionary, cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The header is cut short, of an unknown version or form, or not written the one way it can be.
    #[error("stored value: {0}")]
    Header(&'static str),
    /// The value would be longer than the payload can stand for, or than [`LEN_MAX`](crate::stored::LEN_MAX).
    #[error("stored value: {payload} bytes of {form} do not stand for {len}")]
    Length {
        /// Name of the form.
        form: &'static str,
        /// Bytes of payload.
        payload: usize,
        /// Bytes promised.
        len: u64,
    },
    /// The payload is damaged.
    #[error(transparent)]
    Lzf(#[from] LzfError),
    /// The payload is damaged.
    #[error("{form}: {reason}")]
    Payload {
        /// Name of the form.
        form: &'static str,
        /// What the library says.
        reason: String,
    },
    /// The value names a dictionary that is not there.
    #[error("dictionary {0} is not there")]
    NoDictionary(DictionaryNumber),
    /// The bytes are no dictionary that zstd takes.
    #[error("not a dictionary: {0}")]
    NotADictionary(&'static str),
    /// Too few or too uniform samples for a dictionary.
    #[error("no dictionary from {samples} samples of {bytes} bytes: {reason}")]
    Training {
        /// How many samples there were.
        samples: usize,
        /// Their bytes.
        bytes: usize,
        /// What the library says.
        reason: String,
    },
    /// A file is not a dictionary file, or its contents do not have the hash in its name.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    Fs(#[from] vfs::FsError),
}
