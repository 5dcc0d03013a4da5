//! One dictionary, prepared for reading and writing, and the file it is kept in.
//!
//! The format of the file: docs/formats/dictionary-file.md.

use crate::dictionary_number::DictionaryNumber;
use crate::error::CodecError;
use crate::zstd;
use std::fmt;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use vfs::FileSystem;
use xxhash_rust::xxh3::xxh3_128;
use zstd_safe::DDict;

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

    /// Reads the bytes of a file. Whether they are whole is for their hash to say: see [`FileHash`].
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

/// The hash of a file's bytes, which is its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileHash(pub u128);

impl FileHash {
    /// Of a file of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(xxh3_128(bytes))
    }
}

impl fmt::Display for FileHash {
    /// The file's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FILE_PREFIX}{:032x}", self.0)
    }
}

/// A dictionary that is safe on disk and ready for use by any number of threads.
pub struct Dictionary {
    file: DictionaryFile,
    hash: FileHash,
    decoder: DDict<'static>,
    /// Leases on it. Written under the registry's lock when it rises.
    pub(crate) leases: AtomicU64,
}

impl Dictionary {
    /// Writes a dictionary to its file in `dir` and makes it durable. Blocks for two syncs.
    ///
    /// # Errors
    /// `NotADictionary` before anything is written; or the file cannot be written.
    pub fn create(fs: &dyn FileSystem, dir: &Path, file: DictionaryFile) -> Result<Self, CodecError> {
        let bytes = file.encode()?;
        let prepared = Self::prepare(file, FileHash::of(&bytes))?;
        vfs::replace_file(fs, &dir.join(prepared.hash.to_string()), &bytes)?;
        Ok(prepared)
    }

    /// Reads the file of this hash in `dir`.
    ///
    /// # Errors
    /// `File` when it is missing, or is not what its name promises; or it cannot be read.
    pub fn open(fs: &dyn FileSystem, dir: &Path, hash: FileHash) -> Result<Self, CodecError> {
        let path = dir.join(hash.to_string());
        let wrong = |reason: String| CodecError::File { path: path.clone(), reason };
        let bytes = match vfs::read_file(fs, &path, FILE_LEN_MAX) {
            Err(error) if error.is_not_found() => return Err(wrong("it is missing".to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
                return Err(wrong(format!("longer than {FILE_LEN_MAX} bytes, which no dictionary is")));
            }
            read => read?,
        };
        let found = FileHash::of(&bytes);
        if found != hash {
            return Err(wrong(format!("its contents belong into {found}")));
        }
        let file = DictionaryFile::decode(&bytes).map_err(|error| wrong(error.to_string()))?;
        Self::prepare(file, hash)
    }

    fn prepare(file: DictionaryFile, hash: FileHash) -> Result<Self, CodecError> {
        let decoder = DDict::try_create(&file.content).ok_or(CodecError::NotADictionary("zstd does not take it"))?;
        Ok(Self { file, hash, decoder, leases: AtomicU64::new(0) })
    }

    /// How values name it.
    pub fn number(&self) -> DictionaryNumber {
        self.file.number
    }

    /// What it was trained for.
    pub fn class(&self) -> &[u8] {
        &self.file.class
    }

    /// The hash of its file's bytes, which is the file's name: the same hash is the same dictionary, on any machine.
    pub fn hash(&self) -> FileHash {
        self.hash
    }

    /// The dictionary itself.
    pub fn content(&self) -> &[u8] {
        &self.file.content
    }

    /// Leases held on it: by encoders, and by readers of values outside of a store.
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
            .field("name", &self.hash.to_string())
            .field("leases", &self.lease_count())
            .finish()
    }
}
