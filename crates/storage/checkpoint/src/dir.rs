//! The data directory: its lock and its contents.

use crate::names::{LOCK, Name};
use crate::{CheckpointError, SetId};
use base::Lsn;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfs::{FileLock, FileSystem};

/// An open data directory. Locked against other processes until it is dropped, unless it was opened for reading only.
#[derive(Debug)]
pub struct DataDir {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    _lock: Option<FileLock>,
}

/// Onggi's files in a data directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Whether there is a manifest.
    pub manifest: bool,
    /// Whether there is an unfinished replacement of the manifest.
    pub manifest_replacement: bool,
    /// Snapshot files: set and number, ascending.
    pub snapshots: Vec<(SetId, u8)>,
    /// First LSNs of the log's segments, ascending.
    pub logs: Vec<Lsn>,
    /// Dictionaries, finished or not.
    pub dictionaries: Vec<Name>,
    /// Whether there is a directory of rows.
    pub rows: bool,
    /// Sets with a copy of rows, ascending.
    pub row_copies: Vec<SetId>,
}

impl DataDir {
    /// Creates the directory if it is missing, and locks it.
    ///
    /// # Errors
    /// [`vfs::FsError::Locked`] with the id of the process that holds the lock; otherwise the operating system's error.
    pub fn open(fs: Arc<dyn FileSystem>, path: &Path) -> Result<Self, CheckpointError> {
        vfs::create_dirs_synced(&*fs, path)?;
        let lock = fs.try_lock(&path.join(LOCK))?;
        Ok(Self { fs, path: path.to_owned(), _lock: Some(lock) })
    }

    /// Opens a directory that another process may be using. Only for reading.
    pub fn open_to_look(fs: Arc<dyn FileSystem>, path: &Path) -> Self {
        Self { fs, path: path.to_owned(), _lock: None }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its file system.
    pub fn fs(&self) -> &Arc<dyn FileSystem> {
        &self.fs
    }

    /// The path of one of its files.
    pub fn file(&self, name: Name) -> PathBuf {
        self.path.join(name.to_string())
    }

    /// Its contents.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn list(&self) -> Result<Listing, CheckpointError> {
        let mut listing = Listing::default();
        for entry in self.fs.read_dir(&self.path)? {
            match Name::parse(&entry.name) {
                Name::Manifest => listing.manifest = true,
                Name::ManifestReplacement => listing.manifest_replacement = true,
                Name::Snapshot { set, file } => listing.snapshots.push((set, file)),
                Name::Log { first } => listing.logs.push(first),
                name @ (Name::Dictionary(_) | Name::DictionaryReplacement(_)) => listing.dictionaries.push(name),
                Name::Rows => listing.rows = true,
                Name::RowsOf { set } => listing.row_copies.push(set),
                Name::Lock | Name::Other => {}
            }
        }
        listing.snapshots.sort_unstable();
        listing.logs.sort_unstable();
        listing.row_copies.sort_unstable();
        Ok(listing)
    }

    /// Removes the copy of rows of a set, which no manifest on the disk may name. Its tables share their bytes with the
    /// rows in use. Returns the bytes of its files.
    ///
    /// # Errors
    /// A file cannot be removed. What is left is no copy.
    pub(crate) fn remove_rows_of(&self, set: SetId) -> Result<u64, CheckpointError> {
        let path = self.file(Name::RowsOf { set });
        let mut bytes = 0;
        // Tables last: what makes them a copy is not there any more when the first of them goes.
        let mut entries = self.fs.read_dir(&path)?;
        entries.sort_by_key(|entry| entry.name.to_string_lossy().ends_with(".sst"));
        for entry in entries {
            let file = path.join(&entry.name);
            bytes += self.fs.metadata(&file)?.len;
            self.fs.remove_file(&file)?;
        }
        self.fs.remove_dir(&path)?;
        Ok(bytes)
    }
}
