//! Whether a key occurs twice in a file, in bounded memory: keyed 128-bit hashes of all keys are sorted in runs, runs
//! that do not fit into memory go to a file, and all are merged at the end.
//!
//! ```text
//! key -> mark { hash, offset } -> marks, sorted when they are full --> run, run, ... in the spill file
//!                                                  equal neighbours <-- merge
//! ```
//!
//! Two keys have the same hash once in 2^70 files of a billion keys; the author of a file does not know the hash key.

use base::hash::KeyHasher;
use base::random::Entropy;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;
use std::sync::Arc;
use vfs::{File, FileSystem, FsError, OpenOptions};

/// Marks in memory: 48 MiB.
const MARKS_MAX: usize = 2 << 20;

/// Marks of a run that are read at once: 12 KiB, so that a billion keys are merged with 6 MiB.
const MARKS_READ: usize = 512;

/// Bytes of a mark in the spill file.
const MARK_LEN: usize = 24;

/// A key, as far as it counts here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    hash: [u64; 2],
    offset: u64,
}

impl Mark {
    fn to_bytes(self) -> [u8; MARK_LEN] {
        let mut bytes = [0; MARK_LEN];
        let [first, second] = self.hash;
        for (part, number) in bytes.chunks_exact_mut(8).zip([first, second, self.offset]) {
            part.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: [u8; MARK_LEN]) -> Self {
        let mut numbers = bytes.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number));
        let mut next = || numbers.next().unwrap_or_default();
        Self { hash: [next(), next()], offset: next() }
    }
}

/// Where a key stands twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Twice {
    pub first: u64,
    pub second: u64,
}

/// The keys of a file.
pub(crate) struct Keys {
    hashers: [KeyHasher; 2],
    marks: Vec<Mark>,
    marks_max: usize,
    spill: Spill,
    name: Vec<u8>,
}

impl Keys {
    /// None yet. What does not fit into memory goes into a file in `directory`, which vanishes with this value or the
    /// process.
    pub fn new(fs: Arc<dyn FileSystem>, entropy: &dyn Entropy, directory: PathBuf) -> Self {
        Self::within(MARKS_MAX, fs, entropy, directory)
    }

    fn within(marks_max: usize, fs: Arc<dyn FileSystem>, entropy: &dyn Entropy, directory: PathBuf) -> Self {
        let rng = &mut entropy.rng();
        let path = directory.join(format!("onggi-keys-{:016x}", rng.next_u64()));
        let spill = Spill { fs, path, file: None, runs: Vec::new(), len: 0 };
        Self {
            hashers: [KeyHasher::new(rng), KeyHasher::new(rng)],
            marks: Vec::new(),
            marks_max,
            spill,
            name: Vec::new(),
        }
    }

    /// Adds the key of an entry at this offset.
    ///
    /// # Errors
    /// What the operating system says about the spill file.
    pub fn add(&mut self, db: u32, key: &[u8], offset: u64) -> Result<(), FsError> {
        self.name.clear();
        self.name.extend(db.to_le_bytes());
        self.name.extend_from_slice(key);
        self.marks.push(Mark { hash: self.hashers.each_ref().map(|hasher| hasher.hash(&self.name)), offset });
        if self.marks.len() >= self.marks_max {
            self.marks.sort_unstable();
            self.spill.write_run(&self.marks)?;
            self.marks.clear();
        }
        Ok(())
    }

    /// A key that stands twice, if there is one.
    ///
    /// # Errors
    /// See [`Self::add`].
    pub fn find_twice(mut self) -> Result<Option<Twice>, FsError> {
        self.marks.sort_unstable();
        let mut before = Before(None);
        if self.spill.runs.is_empty() {
            return Ok(self.marks.iter().find_map(|mark| before.is_same(*mark)));
        }
        self.spill.write_run(&self.marks)?;
        self.marks = Vec::new();
        self.spill.merge(|mark| before.is_same(mark))
    }
}

/// The mark before, in order.
struct Before(Option<Mark>);

impl Before {
    fn is_same(&mut self, mark: Mark) -> Option<Twice> {
        let before = self.0.replace(mark)?;
        (before.hash == mark.hash).then_some(Twice { first: before.offset, second: mark.offset })
    }
}

/// Sorted runs in a file without a name.
struct Spill {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    file: Option<Arc<dyn File>>,
    runs: Vec<Run>,
    len: u64,
}

/// Marks in ascending order.
struct Run {
    /// Where the next ones to be read begin, and where the last one ends.
    at: u64,
    end: u64,
    /// Those that were read, the last first.
    ready: Vec<Mark>,
}

impl Spill {
    fn file(&mut self) -> Result<Arc<dyn File>, FsError> {
        if let Some(file) = &self.file {
            return Ok(Arc::clone(file));
        }
        let file = self.fs.open(&self.path, OpenOptions::write().create_new())?;
        // It goes with its handle.
        self.fs.remove_file(&self.path)?;
        Ok(Arc::clone(self.file.insert(file)))
    }

    fn write_run(&mut self, marks: &[Mark]) -> Result<(), FsError> {
        let file = self.file()?;
        let at = self.len;
        let mut bytes = Vec::with_capacity(MARKS_READ * MARK_LEN);
        for part in marks.chunks(MARKS_READ) {
            bytes.clear();
            part.iter().for_each(|mark| bytes.extend(mark.to_bytes()));
            file.write_all_at(&bytes, self.len)?;
            self.len += bytes.len() as u64;
        }
        self.runs.push(Run { at, end: self.len, ready: Vec::new() });
        Ok(())
    }

    /// Shows the marks of all runs in ascending order, until `visit` gives something.
    fn merge<T>(&mut self, mut visit: impl FnMut(Mark) -> Option<T>) -> Result<Option<T>, FsError> {
        let file = self.file()?;
        let mut heads = BinaryHeap::new();
        for (number, run) in self.runs.iter_mut().enumerate() {
            heads.extend(run.next(&*file)?.map(|mark| Reverse((mark, number))));
        }
        while let Some(Reverse((mark, number))) = heads.pop() {
            if let Some(found) = visit(mark) {
                return Ok(Some(found));
            }
            if let Some(run) = self.runs.get_mut(number) {
                heads.extend(run.next(&*file)?.map(|mark| Reverse((mark, number))));
            }
        }
        Ok(None)
    }
}

impl Run {
    fn next(&mut self, file: &dyn File) -> Result<Option<Mark>, FsError> {
        if self.ready.is_empty() && self.at < self.end {
            let len = (self.end - self.at).min((MARKS_READ * MARK_LEN) as u64);
            let mut bytes = vec![0; len as usize];
            file.read_exact_at(&mut bytes, self.at)?;
            self.at += len;
            self.ready.extend(bytes.as_chunks().0.iter().rev().map(|mark| Mark::from_bytes(*mark)));
        }
        Ok(self.ready.pop())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::SeededEntropy;
    use vfs::RealFs;

    fn find(marks_max: usize, keys: &[(u32, &str)]) -> Option<Twice> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        let mut all = Keys::within(marks_max, Arc::new(RealFs), &SeededEntropy::new(1), path);
        for (offset, (db, key)) in (0..).zip(keys) {
            all.add(*db, key.as_bytes(), offset).unwrap();
        }
        assert_eq!(directory.path().read_dir().unwrap().count(), 0, "the spill file has no name");
        all.find_twice().unwrap()
    }

    /// A key that stands twice is found with both places, in memory and in runs; another database makes another key.
    #[test]
    fn keys_that_stand_twice_are_found() {
        let many: Vec<String> = (0..5000).map(|n| format!("key:{n}")).collect();
        let mut keys: Vec<(u32, &str)> = many.iter().map(|key| (0, key.as_str())).collect();
        keys.push((1, "key:7"));
        for marks_max in [1, 100, 513, 10_000] {
            assert_eq!(find(marks_max, &keys), None, "{marks_max} in memory");
        }
        keys.insert(4000, (0, "key:7"));
        for marks_max in [1, 100, 513, 10_000] {
            assert_eq!(find(marks_max, &keys), Some(Twice { first: 7, second: 4000 }), "{marks_max} in memory");
        }
    }
}
