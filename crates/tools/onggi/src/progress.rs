//! Shows how far a tool has read or written a file, as a bar on standard error with an estimate of the time left. Draws
//! nothing if standard error is not a terminal, or with `--json`.

use crate::report::Report;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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

    /// A bar that shows how far this file has been read.
    pub fn of_file(report: Report, path: &Path) -> Self {
        Self::of(report, Some(path.to_owned()))
    }

    fn of(report: Report, only: Option<PathBuf>) -> Self {
        let bar = if report.is_json() { ProgressBar::hidden() } else { ProgressBar::no_length() };
        let template = "{msg} [{bar:30}] {bytes} of {total_bytes}, {binary_bytes_per_sec}, {eta} left";
        bar.set_style(ProgressStyle::with_template(template).expect("the template is right").progress_chars("=> "));
        let watch = Watch { bar: bar.clone(), opened: AtomicU64::new(0), shown: AtomicU64::new(0) };
        let fs = Arc::new(Watched { inner: RealFs, watch: Arc::new(watch), only });
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
    /// The one file that advances the bar; `None`: all do.
    only: Option<PathBuf>,
}

impl FileSystem for Watched {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Arc<dyn File>, FsError> {
        let inner = self.inner.open(path, options)?;
        if self.only.as_deref().is_some_and(|only| only != path) {
            return Ok(inner);
        }
        let number = self.watch.opened.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Arc::new(WatchedFile { inner, number, watch: Arc::clone(&self.watch) }))
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
}

impl WatchedFile {
    /// The work has reached this offset of the file.
    fn reached(&self, offset: u64) {
        let bar = &self.watch.bar;
        if self.watch.shown.swap(self.number, Ordering::Relaxed) != self.number {
            let name = self.path().file_name().unwrap_or_default().to_string_lossy();
            bar.reset();
            bar.set_message(name.into_owned());
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
        self.reached(offset + read as u64);
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<usize, FsError> {
        let written = self.inner.write_at(bytes, offset)?;
        self.reached(offset + written as u64);
        Ok(written)
    }

    fn write_vectored_at(&self, slices: &[IoSlice<'_>], offset: u64) -> Result<usize, FsError> {
        let written = self.inner.write_vectored_at(slices, offset)?;
        self.reached(offset + written as u64);
        Ok(written)
    }

    fn write_all_synced_at(&self, slices: &mut [IoSlice<'_>], offset: u64) -> Result<(), FsError> {
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        self.inner.write_all_synced_at(slices, offset)?;
        self.reached(offset + bytes as u64);
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
