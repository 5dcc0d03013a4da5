//! One dictionary, prepared for reading and writing, and the file it is kept in.
//!
//! The format of the file: docs/formats/dictionary-file.md.

use crate::error::CodecError;
use crate::zstd;
use std::fmt;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use xxhash_rust::xxh3::xxh3_128;
use zstd_safe::DDict;

/// How values name their dictionary: unique in a data directory, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DictionaryNumber(pub NonZeroU32);

impl fmt::Display for DictionaryNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// First bytes of every dictionary file.
const MAGIC: [u8; 8] = *b"onggidic";

const VERSION: u8 = 1;

/// Longest name of a class that a file carries.
pub const CLASS_LEN_MAX: usize = 255;

/// Largest dictionary accepted from a file. Those trained here are far smaller.
pub const DICTIONARY_LEN_MAX: usize = 1 << 20;

/// Largest file: header, class, dictionary.
pub(crate) const FILE_LEN_MAX: usize = MAGIC.len() + 1 + 4 + 1 + CLASS_LEN_MAX + DICTIONARY_LEN_MAX;

/// What every dictionary file's name begins with; the hash of its contents follows, in hexadecimal.
pub const FILE_PREFIX: &str = "dict-";

/// The contents of a dictionary file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DictionaryFile {
    /// How values name the dictionary.
    pub number: DictionaryNumber,
    /// What it was trained for: words of the owner, at most [`CLASS_LEN_MAX`] bytes.
    pub class: Vec<u8>,
    /// The dictionary, in the format of zstd, with id 0.
    pub content: Vec<u8>,
}

impl DictionaryFile {
    /// The bytes of the file.
    ///
    /// # Errors
    /// `NotADictionary` when a part is too long, or the content is not what [`zstd::train`] gives.
    pub fn encode(&self) -> Result<Vec<u8>, CodecError> {
        let class_len =
            u8::try_from(self.class.len()).map_err(|_| CodecError::NotADictionary("its class is too long"))?;
        self.check()?;
        let mut bytes = MAGIC.to_vec();
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.number.0.get().to_le_bytes());
        bytes.push(class_len);
        bytes.extend_from_slice(&self.class);
        bytes.extend_from_slice(&self.content);
        Ok(bytes)
    }

    /// Reads the bytes of a file. Whether they are whole is for their hash to say: see [`file_name`].
    ///
    /// # Errors
    /// `NotADictionary` when they are none, or of another version.
    pub fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let wrong = CodecError::NotADictionary;
        let rest = bytes.strip_prefix(&MAGIC).ok_or(wrong("it does not begin with \"onggidic\""))?;
        let rest = rest.strip_prefix(&[VERSION]).ok_or(wrong("it is not of version 1"))?;
        let (number, rest) = rest.split_first_chunk().ok_or(wrong("it ends in its header"))?;
        let number = NonZeroU32::new(u32::from_le_bytes(*number)).ok_or(wrong("its number is 0"))?;
        let (class_len, rest) = rest.split_first().ok_or(wrong("it ends in its header"))?;
        let (class, content) = rest.split_at_checked(usize::from(*class_len)).ok_or(wrong("it ends in its header"))?;
        let file = Self { number: DictionaryNumber(number), class: class.to_vec(), content: content.to_vec() };
        file.check()?;
        Ok(file)
    }

    fn check(&self) -> Result<(), CodecError> {
        match &self.content {
            content if content.len() > DICTIONARY_LEN_MAX => Err(CodecError::NotADictionary("it is too long")),
            content if !zstd::is_dictionary(content) => Err(CodecError::NotADictionary("zstd would not take it")),
            _ => Ok(()),
        }
    }
}

/// The name that a file of these bytes has.
pub fn file_name(bytes: &[u8]) -> String {
    format!("{FILE_PREFIX}{:032x}", xxh3_128(bytes))
}

/// A dictionary that is safe on disk and ready for use by any number of threads.
pub struct Dictionary {
    file: DictionaryFile,
    name: String,
    decoder: DDict<'static>,
    /// Values in memory that were compressed with it. Written by whoever stores or drops such values.
    values: AtomicU64,
    /// Leases on it. Written under the registry's lock when it rises.
    pub(crate) leases: AtomicU64,
}

impl Dictionary {
    /// Prepares the contents of a file of this name.
    pub(crate) fn prepare(file: DictionaryFile, name: String) -> Result<Self, CodecError> {
        let decoder = DDict::try_create(&file.content).ok_or(CodecError::NotADictionary("zstd does not take it"))?;
        Ok(Self { file, name, decoder, values: AtomicU64::new(0), leases: AtomicU64::new(0) })
    }

    /// How values name it.
    pub fn number(&self) -> DictionaryNumber {
        self.file.number
    }

    /// What it was trained for.
    pub fn class(&self) -> &[u8] {
        &self.file.class
    }

    /// Its file's name, which is the hash of the file's bytes: the same name is the same dictionary, on any machine.
    pub fn file_name(&self) -> &str {
        &self.name
    }

    /// The dictionary itself.
    pub fn content(&self) -> &[u8] {
        &self.file.content
    }

    /// Notes values that were stored in this form. Call it before the lease or encoder that made them is given back.
    pub fn values_stored(&self, count: u64) {
        self.values.fetch_add(count, Ordering::Relaxed);
    }

    /// Notes values of this form that are no more.
    pub fn values_dropped(&self, count: u64) {
        // Release: whoever sees 0 and removes the dictionary comes after the last reader of a value.
        self.values.fetch_sub(count, Ordering::Release);
    }

    /// Values noted as stored and not as dropped.
    pub fn value_count(&self) -> u64 {
        self.values.load(Ordering::Acquire)
    }

    /// Leases held on it: encoders, checkpoint sets, log segments.
    pub fn lease_count(&self) -> u64 {
        self.leases.load(Ordering::Acquire)
    }

    pub(crate) fn decoder(&self) -> &DDict<'static> {
        &self.decoder
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary")
            .field("number", &self.number())
            .field("name", &self.name)
            .field("values", &self.value_count())
            .field("leases", &self.lease_count())
            .finish()
    }
}

/// The number of the dictionary in a file of this path and these bytes, after a check of the whole.
pub(crate) fn read(path: &Path, bytes: &[u8]) -> Result<DictionaryFile, CodecError> {
    let wrong = |reason: String| CodecError::File { path: path.to_owned(), reason };
    let expected = file_name(bytes);
    if path.file_name().and_then(|name| name.to_str()) != Some(&expected) {
        return Err(wrong(format!("its contents belong into {expected}")));
    }
    DictionaryFile::decode(bytes).map_err(|error| wrong(error.to_string()))
}
