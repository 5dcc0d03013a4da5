//! Shows how far a tool is, as a bar on standard error with an estimate of the time left. The bar is over all files
//! that the tool has to read, or over the file that it reads or writes, where it does not know others. Draws nothing if
//! standard error is not a terminal, or with `--json`.

use crate::report::Report;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use vfs::{AllocateLen, DirEntry, File, FileLock, FileSystem, FsError, Metadata, OpenOptions, RealFs, Region, Space};

/// A bar, and the file system whose files advance it.
pub struct Progress {
    report: Report,
    bar: ProgressBar,
    fs: Arc<dyn FileSystem>,
}

impl Progress {
    /// A bar that appears with the first file, and then shows the current one.
    pub fn new(report: Report) -> Self {
        Self::of(report, None)
    }

    /// A bar over the bytes of a file, or of all files below a directory. A checkpoint counts once one of its files is
    /// opened, since a tool need not read them all.
    pub fn over(report: Report, path: &Path) -> Self {
        let mut plan = HashMap::new();
        // What cannot be listed is the tool's to report.
        let _ = list(path, &mut plan);
        Self::of(report, Some(plan))
    }

    fn of(report: Report, plan: Option<HashMap<PathBuf, u64>>) -> Self {
        let bar = if report.is_json() { ProgressBar::hidden() } else { ProgressBar::no_length() };
        let template = "{msg} [{bar:30}] {bytes} of {total_bytes}, {binary_bytes_per_sec}, {eta} left";
        bar.set_style(ProgressStyle::with_template(template).expect("the template is right").progress_chars("=> "));
        if let Some(plan) = &plan {
            bar.set_length(plan.iter().filter(|(path, _)| set_of(path).is_none()).map(|(_, len)| len).sum());
        }
        let watch = Watch { bar: bar.clone(), opened: AtomicU64::new(0), shown: AtomicU64::new(0) };
        let planned =
            plan.map(|plan| plan.into_iter().map(|(path, len)| (path, Arc::new(Planned::new(len)))).collect());
        let fs = Arc::new(Watched { inner: RealFs, watch: Arc::new(watch), planned, sets: Mutex::default() });
        Self { report, bar, fs }
    }

    /// The file system of this machine.
    pub fn fs(&self) -> &Arc<dyn FileSystem> {
        &self.fs
    }

    /// Says a line, above the bar.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| self.report.say(line));
    }

    /// Whether it reports in JSON.
    pub fn is_json(&self) -> bool {
        self.report.is_json()
    }

    /// Says something of a level, above the bar.
    pub fn message(&self, level: &str, text: &str) {
        self.bar.suspend(|| self.report.message(level, text));
    }

    /// Prints an event with these fields, in JSON alone.
    pub fn event(&self, event: &str, fields: Value) {
        self.report.event(event, fields);
    }

    /// Removes the bar. What follows is the result.
    pub fn ended(self) -> Report {
        self.report
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// All files below a path, with their lengths. Links are not followed.
fn list(path: &Path, plan: &mut HashMap<PathBuf, u64>) -> io::Result<()> {
    let about = fs::symlink_metadata(path)?;
    if about.is_dir() {
        for entry in fs::read_dir(path)? {
            list(&entry?.path(), plan)?;
        }
    } else if about.is_file() {
        plan.insert(path.to_owned(), about.len());
    }
    Ok(())
}

/// The number of the checkpoint that a file belongs to: the first number of the name of it or of its directory.
fn set_of(path: &Path) -> Option<u64> {
    let of = |name: &OsStr| {
        let name = name.to_str()?;
        let rest = ["prdb-", "lsm-"].into_iter().find_map(|begin| name.strip_prefix(begin))?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    path.iter().rev().take(2).find_map(of)
}

/// A file that is to be read.
#[derive(Debug)]
struct Planned {
    len: u64,
    read: AtomicU64,
}

impl Planned {
    fn new(len: u64) -> Self {
        Self { len, read: AtomicU64::new(0) }
    }

    /// Counts bytes, and gives by how much the bar advances. What is read again counts once.
    fn count(&self, bytes: u64) -> u64 {
        let before = self.read.fetch_add(bytes, Ordering::Relaxed);
        self.len.saturating_sub(before).min(bytes)
    }
}

/// The bar and its state.
#[derive(Debug)]
struct Watch {
    bar: ProgressBar,
    /// Files opened.
    opened: AtomicU64,
    /// The number of the file that the bar shows.
    shown: AtomicU64,
}

#[derive(Debug)]
struct Watched {
    inner: RealFs,
    watch: Arc<Watch>,
    /// The files that advance the bar; `None`: each is a bar of its own.
    planned: Option<HashMap<PathBuf, Arc<Planned>>>,
    /// The checkpoints that count.
    sets: Mutex<HashSet<u64>>,
}

impl Watched {
    /// A file is opened: the others of its checkpoint will be.
    fn count_set(&self, planned: &HashMap<PathBuf, Arc<Planned>>, path: &Path) {
        let Some(set) = set_of(path) else { return };
        if self.sets.lock().unwrap_or_else(PoisonError::into_inner).insert(set) {
            let of_set = planned.iter().filter(|(path, _)| set_of(path) == Some(set));
            self.watch.bar.inc_length(of_set.map(|(_, planned)| planned.len).sum());
        }
    }
}

impl FileSystem for Watched {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn File>, FsError> {
        let inner = self.inner.open(path, options)?;
        let planned = match &self.planned {
            Some(planned) => match planned.get(path) {
                Some(one) => {
                    self.count_set(planned, path);
                    Some(Arc::clone(one))
                }
                None => return Ok(inner),
            },
            None => None,
        };
        let number = self.watch.opened.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Arc::new(WatchedFile { inner, number, watch: Arc::clone(&self.watch), planned }))
    }

    fn create_dir_all(&self, path: &Path) -> Result<(), FsError> {
        self.inner.create_dir_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), FsError> {
        self.inner.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> Result<(), FsError> {
        self.inner.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<(), FsError> {
        self.inner.remove_dir(path)
    }

    fn hard_link(&self, existing: &Path, link: &Path) -> Result<(), FsError> {
        self.inner.hard_link(existing, link)
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>, FsError> {
        self.inner.read_dir(path)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata, FsError> {
        self.inner.metadata(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<(), FsError> {
        self.inner.sync_dir(path)
    }

    fn try_lock(&self, path: &Path) -> Result<FileLock, FsError> {
        self.inner.try_lock(path)
    }

    fn free_space(&self, path: &Path) -> Result<Space, FsError> {
        self.inner.free_space(path)
    }

    fn map_writable(&self, path: &Path, options: OpenOptions, len: u64) -> Result<Arc<dyn Region>, FsError> {
        self.inner.map_writable(path, options, len)
    }

    fn is_volatile(&self, path: &Path) -> Result<bool, FsError> {
        self.inner.is_volatile(path)
    }
}

#[derive(Debug)]
struct WatchedFile {
    inner: Arc<dyn File>,
    number: u64,
    watch: Arc<Watch>,
    planned: Option<Arc<Planned>>,
}

impl WatchedFile {
    /// Bytes were read, or written, from this offset of the file.
    fn moved(&self, offset: u64, bytes: usize) {
        let (bar, bytes) = (&self.watch.bar, bytes as u64);
        let is_other = self.watch.shown.swap(self.number, Ordering::Relaxed) != self.number;
        if is_other {
            let name = self.path().file_name().unwrap_or_default().to_string_lossy();
            bar.set_message(name.into_owned());
        }
        if let Some(planned) = &self.planned {
            bar.inc(planned.count(bytes));
            return;
        }
        let offset = offset + bytes;
        if is_other {
            bar.reset();
            bar.set_length(self.inner.len().unwrap_or_default());
        }
        bar.set_position(offset);
        // A file that is being written grows.
        if bar.length().is_none_or(|length| length < offset) {
            bar.set_length(offset);
        }
    }
}

impl File for WatchedFile {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, FsError> {
        let read = self.inner.read_at(buf, offset)?;
        self.moved(offset, read);
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<usize, FsError> {
        let written = self.inner.write_at(bytes, offset)?;
        self.moved(offset, written);
        Ok(written)
    }

    fn write_vectored_at(&self, slices: &[IoSlice<'_>], offset: u64) -> Result<usize, FsError> {
        let written = self.inner.write_vectored_at(slices, offset)?;
        self.moved(offset, written);
        Ok(written)
    }

    fn write_all_synced_at(&self, slices: &mut [IoSlice<'_>], offset: u64) -> Result<(), FsError> {
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        self.inner.write_all_synced_at(slices, offset)?;
        self.moved(offset, bytes);
        Ok(())
    }

    fn sync_data(&self) -> Result<(), FsError> {
        self.inner.sync_data()
    }

    fn sync_all(&self) -> Result<(), FsError> {
        self.inner.sync_all()
    }

    fn set_len(&self, len: u64) -> Result<(), FsError> {
        self.inner.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64, length: AllocateLen) -> Result<(), FsError> {
        self.inner.allocate(offset, len, length)
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<(), FsError> {
        self.inner.punch_hole(offset, len)
    }

    fn expect_reads(&self, offset: u64, len: u64) {
        self.inner.expect_reads(offset, len);
    }

    fn forget_cached(&self, offset: u64, len: u64) {
        self.inner.forget_cached(offset, len);
    }

    fn len(&self) -> Result<u64, FsError> {
        self.inner.len()
    }

    fn alignment(&self) -> usize {
        self.inner.alignment()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One bar over all files: what is read twice counts once, a checkpoint counts with its first file, and what is
    /// written does not.
    #[test]
    fn a_bar_is_over_all_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("lsm-7")).unwrap();
        for (name, len) in [("prdb-6-0", 500), ("prdb-7-0", 300), ("log-1", 200), ("lsm-7/000001.sst", 100)] {
            fs::write(path(name), vec![1; len]).unwrap();
        }
        let report = Report::new("check", false);
        assert_eq!(Progress::over(report, &path("log-1")).bar.length(), Some(200));
        let progress = Progress::over(report, dir.path());
        let at = || (progress.bar.position(), progress.bar.length());
        assert_eq!(at(), (0, Some(200)));
        let read = |name: &str, len: usize| {
            let file = progress.fs().open(&path(name), OpenOptions::read()).unwrap();
            assert_eq!(file.read_at(&mut vec![0; len], 0).unwrap(), len);
        };
        read("log-1", 150);
        assert_eq!(at(), (150, Some(200)));
        read("log-1", 150);
        assert_eq!(at(), (200, Some(200)));
        read("lsm-7/000001.sst", 100);
        assert_eq!(at(), (300, Some(600)));
        read("prdb-7-0", 300);
        let new = progress.fs().open(&path("new"), OpenOptions::write().create_new()).unwrap();
        new.write_at(&[0; 50], 0).unwrap();
        assert_eq!(at(), (600, Some(600)));
    }
}
