//! The manifest: version edits on disk, each durable before anything relies on it.
//!
//! M1. The file `CURRENT` names the manifest that counts; it is replaced whole, after the new manifest is durable.
//! M2. A manifest begins with one edit that holds everything, followed by changes. Each is synced before its tables are
//!     used and before a file that it frees is removed.
//! M3. After a failed write or sync nothing more is appended: what the disk holds is unknown until the next open, or
//!     until another manifest counts.
//! M4. A *mark* follows the last synced edit: an edit that changes nothing. The next edit takes its place. So an edit
//!     with a mark or an edit after it was synced, and damage in it is corruption and no torn tail.
//! M5. The mark is synced before a table is written whose number is not below the `next_number` of the edit before it
//!     (but for tables of merges and flushes that run at the same moment). So if such a table is whole and the manifest
//!     ends without a mark, edits are missing.
//!
//! Format: docs/formats/plex-manifest.md.

use std::path::{Path, PathBuf};

use vfs::FileSystem;

use super::VersionEdit;
use crate::error::{Error, Result};
use crate::log::{FileType, FrameWriter, Frames, Header, record_len};

/// Version 2 has tables that were taken in (tag 10). In version 3 each edit has a mark, which is synced (M5), and key
/// spaces can be dropped (tags 11 and 12). In version 4 key spaces have options (tag 13),
/// in version 5 tables have summaries (tag 14).
const MANIFEST: FileType = FileType { magic: *b"plexman\n", version: 5 };

/// The first version in which a manifest without a mark at its end lacks edits.
const SYNCED_MARKS_VERSION: u32 = 3;

/// Names the manifest that counts.
pub(crate) const CURRENT: &str = "CURRENT";

/// Longest text of that file.
const CURRENT_LEN_MAX: usize = 64;

/// Length at which a manifest is written anew, in bytes, unless its first edit alone is nearly as long.
const BYTES_MAX: u64 = 4 << 20;

/// The manifest that is written to.
pub(crate) struct Manifest {
    pub number: u64,
    frames: FrameWriter,
    /// Length of header and first edit.
    base_len: u64,
    /// The mark of the last edit, where the device had no space for it.
    owed_mark: Option<VersionEdit>,
}

pub(crate) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("MANIFEST-{number:06}"))
}

impl Manifest {
    /// Writes a manifest that begins with `whole`, and makes it the one that counts.
    pub fn create(fs: &dyn FileSystem, dir: &Path, number: u64, identity: u64, whole: &VersionEdit) -> Result<Self> {
        let mut frames = FrameWriter::create(fs, &path(dir, number), MANIFEST, Header { identity, previous: (0, 0) })?;
        frames.push(&whole.encode());
        frames.write()?;
        // One sync for both: before `CURRENT` names the file, damage in it is no loss.
        frames.write_provisional(&mark_of(whole).encode())?;
        frames.file().sync_all()?;
        fs.sync_dir(dir)?;
        vfs::replace_file(fs, &dir.join(CURRENT), format!("MANIFEST-{number:06}\n").as_bytes())?;
        let base_len = frames.end();
        Ok(Self { number, frames, base_len, owed_mark: None })
    }

    /// Appends an edit; it is durable when this returns.
    ///
    /// # Errors
    /// See M3.
    pub fn append(&mut self, edit: &VersionEdit) -> Result<()> {
        self.frames.push(&edit.encode());
        self.frames.write()?;
        self.frames.file().sync_data()?;
        self.owed_mark = Some(mark_of(edit));
        match self.settle_mark() {
            // The edit counts already, so a full device is no reason to fail.
            Err(error) if error.may_pass() => Ok(()),
            other => other,
        }
    }

    /// Writes and syncs the mark of the last edit, if that was not done (M5).
    ///
    /// # Errors
    /// See M3; but after an error that may pass, the mark is still owed.
    pub fn settle_mark(&mut self) -> Result<()> {
        let Some(mark) = &self.owed_mark else { return Ok(()) };
        self.frames.write_provisional(&mark.encode())?;
        self.frames.file().sync_data()?;
        self.owed_mark = None;
        Ok(())
    }

    /// What was written to it so far, in bytes.
    pub fn bytes(&self) -> u64 {
        self.frames.end()
    }

    /// Whether it is time for a new one.
    pub fn is_long(&self) -> bool {
        self.frames.end() > BYTES_MAX.max(2 * self.base_len)
    }
}

fn mark_of(edit: &VersionEdit) -> VersionEdit {
    VersionEdit { next_number: edit.next_number.or(Some(0)), ..VersionEdit::default() }
}

/// Where a manifest ends, if it ends without a mark and nothing torn can have taken its place (M5).
///
/// # Errors
/// Those of the file system.
pub(crate) fn ends_unmarked_at(fs: &dyn FileSystem, dir: &Path, number: u64) -> Result<Option<u64>> {
    let mut frames = Frames::read(fs, &path(dir, number), MANIFEST, None)?;
    let mut last = None;
    while let Some(record) = frames.next() {
        last = VersionEdit::decode(record);
    }
    let Some(last) = last.filter(|_| frames.version >= SYNCED_MARKS_VERSION) else { return Ok(None) };
    let mark = mark_of(&last);
    let is_unmarked = last != mark && frames.bytes_left() < record_len(mark.encode().len());
    Ok(is_unmarked.then(|| frames.offset()))
}

/// The number of the manifest that counts; `None` for a directory without a database.
///
/// # Errors
/// Corruption, if the file does not name one.
pub(crate) fn current(fs: &dyn FileSystem, dir: &Path) -> Result<Option<u64>> {
    let path = dir.join(CURRENT);
    let text = match vfs::read_file(fs, &path, CURRENT_LEN_MAX) {
        Ok(text) => text,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let number = std::str::from_utf8(&text)
        .ok()
        .and_then(|text| text.strip_prefix("MANIFEST-")?.strip_suffix('\n')?.parse().ok())
        .ok_or_else(|| Error::corruption(&path, 0, "the file does not name a manifest"))?;
    Ok(Some(number))
}

/// All edits of a manifest, in order.
///
/// # Errors
/// Corruption. A torn tail is none: the last edit was never relied on. Damage is corruption if anything sound follows
/// it (M4), or if it cannot come from a write that was cut short. So is a manifest without its first edit, which was
/// durable before `CURRENT` named the file.
pub(crate) fn read(fs: &dyn FileSystem, dir: &Path, number: u64) -> Result<Vec<VersionEdit>> {
    let path = path(dir, number);
    let mut frames = match Frames::read(fs, &path, MANIFEST, None) {
        Err(Error::Fs(error)) if error.is_not_found() => {
            let what = format!("the file names manifest {number}, which is missing");
            return Err(Error::corruption(&dir.join(CURRENT), 0, what));
        }
        other => other?,
    };
    if frames.header.is_none() {
        return Err(Error::corruption(&path, 0, "header of the manifest"));
    }
    let mut edits = Vec::new();
    loop {
        let offset = frames.offset();
        let Some(record) = frames.next() else { break };
        let edit = VersionEdit::decode(record);
        edits.push(edit.ok_or_else(|| Error::corruption(&path, offset, "a whole record is no version edit"))?);
    }
    let is_damaged = || frames.has_record_behind() || frames.is_whole_and_not_torn();
    if edits.is_empty() || (!frames.is_at_end() && is_damaged()) {
        let what = "damaged version edit; the tables that it and later edits name would be lost";
        return Err(Error::corruption(&path, frames.offset(), what));
    }
    Ok(edits)
}

/// Where the whole edits of a manifest end, if something follows them.
pub(crate) fn torn_at(fs: &dyn FileSystem, dir: &Path, number: u64) -> Result<Option<u64>> {
    let mut frames = Frames::read(fs, &path(dir, number), MANIFEST, None)?;
    while frames.next().is_some() {}
    Ok((!frames.is_at_end()).then(|| frames.offset()))
}

/// What can be read of a manifest, in order, whatever lies between.
///
/// # Errors
/// A newer format, or the file system's.
pub(crate) fn salvage(fs: &dyn FileSystem, dir: &Path, number: u64) -> Result<Vec<VersionEdit>> {
    let mut frames = Frames::read(fs, &path(dir, number), MANIFEST, None)?;
    let mut edits = Vec::new();
    loop {
        while let Some(record) = frames.next() {
            edits.extend(VersionEdit::decode(record));
        }
        if !frames.skip_damage() {
            return Ok(edits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::edit::tests::{dropping, sample, summed_up, taken_in, with_options};
    use super::*;
    use vfs::SimFs;

    fn edit(n: u64) -> VersionEdit {
        VersionEdit { next_number: Some(n), wal: Some((n, false)), ..VersionEdit::default() }
    }

    /// An edit as a flush makes it, with a table.
    fn flush_edit() -> VersionEdit {
        VersionEdit { wal: Some((3, true)), key_spaces: Vec::new(), removed: Vec::new(), ..sample() }
    }

    fn write(fs: &SimFs) -> Result<()> {
        let dir = Path::new("/");
        let mut manifest = Manifest::create(fs, dir, 1, 77, &edit(1))?;
        manifest.append(&edit(2))?;
        manifest.append(&flush_edit())
    }

    /// At every operation and for many reboots: nothing, or a prefix with every edit that was reported durable.
    #[test]
    fn power_cuts_leave_a_prefix() {
        let fs = SimFs::new(4);
        fs.record_crash_points();
        write(&fs).unwrap();
        let last = fs.operations();
        for point in fs.take_crash_points() {
            for seed in 0..100 {
                let after = point.power_cut(seed);
                let Some(number) = current(&after, Path::new("/")).unwrap() else { continue };
                let edits = read(&after, Path::new("/"), number).unwrap_or_else(|e| panic!("{point:?} {seed}: {e}"));
                let edits = without_marks(edits);
                assert!([edit(1), edit(2), flush_edit()].starts_with(&edits) && !edits.is_empty());
                // The last four operations write edit 3, sync it, mark it and sync the mark. Edit 2 was durable before.
                assert!(edits.len() >= 2 || point.operation() + 4 < last, "{point:?} {seed}: {}", edits.len());
            }
        }
    }

    fn without_marks(mut edits: Vec<VersionEdit>) -> Vec<VersionEdit> {
        edits.retain(|edit| edit.wal.is_some());
        edits
    }

    /// Damage anywhere is named, the last edit included; only what is damaged in the last mark, which says nothing, is
    /// passed over. A flipped bit there used to count as a torn tail, and an open then removed the tables that the last
    /// edit names.
    #[test]
    fn damage_is_named() {
        let fs = SimFs::new(4);
        write(&fs).unwrap();
        let path = path(Path::new("/"), 1);
        let len = fs.metadata(&path).unwrap().len;
        let mark = VersionEdit { next_number: flush_edit().next_number, ..VersionEdit::default() };
        let mark_len = 4 + 1 + mark.encode().len() as u64;
        for offset in 0..len {
            for bit in 0..8 {
                fs.flip_bit(&path, offset, bit).unwrap();
                match read(&fs, Path::new("/"), 1) {
                    Ok(edits) => assert!(without_marks(edits).len() == 3 && offset >= len - mark_len, "{offset}"),
                    Err(error) => assert!(error.to_string().contains("MANIFEST-000001"), "{error}"),
                }
                fs.flip_bit(&path, offset, bit).unwrap();
            }
        }
    }

    /// The same without the mark, which a power cut may take: damage in a whole record does not look like a write cut
    /// short.
    #[test]
    fn a_whole_record_with_a_wrong_checksum_is_damage() {
        let fs = SimFs::new(4);
        write(&fs).unwrap();
        let path = path(Path::new("/"), 1);
        let mark = VersionEdit { next_number: flush_edit().next_number, ..VersionEdit::default() };
        let len = fs.metadata(&path).unwrap().len - (4 + 1 + mark.encode().len() as u64);
        fs.open(&path, vfs::OpenOptions::write()).unwrap().set_len(len).unwrap();
        assert_eq!(without_marks(read(&fs, Path::new("/"), 1).unwrap()).len(), 3);
        let record_len = 4 + 1 + flush_edit().encode().len() as u64;
        // The first byte is the record's length: damaged, it may look like a longer record that was cut short.
        for offset in len - record_len + 1..len {
            fs.flip_bit(&path, offset, 6).unwrap();
            let error = read(&fs, Path::new("/"), 1).unwrap_err();
            assert!(error.is_corruption() && error.to_string().contains("damaged version edit"), "{offset}: {error}");
            fs.flip_bit(&path, offset, 6).unwrap();
        }
    }

    /// A manifest that was cut to its header is damaged: `CURRENT` names it only once its first edit is durable.
    #[test]
    fn a_manifest_without_edits_is_damaged() {
        let fs = SimFs::new(4);
        write(&fs).unwrap();
        let path = path(Path::new("/"), 1);
        for len in [48, 49, 52] {
            fs.open(&path, vfs::OpenOptions::write()).unwrap().set_len(len).unwrap();
            assert!(read(&fs, Path::new("/"), 1).unwrap_err().is_corruption(), "{len}");
        }
    }

    #[test]
    fn golden_file() {
        let fs = SimFs::new(1);
        let dir = Path::new("/");
        let mut manifest = Manifest::create(&fs, dir, 1, 77, &sample()).unwrap();
        manifest.append(&edit(2)).unwrap();
        manifest.append(&taken_in()).unwrap();
        manifest.append(&dropping()).unwrap();
        manifest.append(&with_options()).unwrap();
        manifest.append(&summed_up()).unwrap();
        crate::golden::compare("plex-manifest-5", &fs.contents()[&path(dir, 1)]);
    }

    /// A manifest of which whole edits were cut off ends without a mark, whichever edit is then the last. A torn write
    /// leaves at least as many bytes as the mark had, and older manifests need not have one.
    #[test]
    fn a_cut_at_the_end_of_an_edit_shows() {
        let fs = SimFs::new(4);
        let dir = Path::new("/");
        let mut manifest = Manifest::create(&fs, dir, 1, 77, &edit(1)).unwrap();
        let mut ends = vec![manifest.frames.end()];
        for edit in [edit(2), flush_edit()] {
            manifest.append(&edit).unwrap();
            ends.push(manifest.frames.end());
        }
        let unmarked = |fs: &SimFs| ends_unmarked_at(fs, dir, 1).unwrap();
        assert_eq!(unmarked(&fs), None);
        for end in ends.into_iter().rev() {
            let file = fs.open(&path(dir, 1), vfs::OpenOptions::write()).unwrap();
            file.set_len(end).unwrap();
            assert_eq!(unmarked(&fs), Some(end));
            file.write_all_at(&[9; 3], end).unwrap();
            assert_eq!(unmarked(&fs), Some(end), "a torn mark");
            file.write_all_at(&[9; 40], end).unwrap();
            assert_eq!(unmarked(&fs), None, "a torn edit");
        }
        let file = fs.open(&path(dir, 2), vfs::OpenOptions::write().create_new()).unwrap();
        file.write_all_at(&crate::golden::bytes("plex-manifest-1"), 0).unwrap();
        assert_eq!(ends_unmarked_at(&fs, dir, 2).unwrap(), None);
    }

    #[test]
    fn version_4_is_read() {
        let fs = SimFs::new(1);
        let file = fs.open(&path(Path::new("/"), 1), vfs::OpenOptions::write().create_new()).unwrap();
        file.write_all_at(&crate::golden::bytes("plex-manifest-4"), 0).unwrap();
        let edits = read(&fs, Path::new("/"), 1).unwrap();
        assert!(edits.starts_with(&[sample()]) && edits.contains(&taken_in()) && edits.contains(&with_options()));
    }

    #[test]
    fn version_3_is_read() {
        let fs = SimFs::new(1);
        let file = fs.open(&path(Path::new("/"), 1), vfs::OpenOptions::write().create_new()).unwrap();
        file.write_all_at(&crate::golden::bytes("plex-manifest-3"), 0).unwrap();
        let edits = read(&fs, Path::new("/"), 1).unwrap();
        // Of these, only the last one's mark is left.
        assert!(edits.starts_with(&[sample()]) && edits.contains(&taken_in()) && edits.contains(&dropping()));
    }

    #[test]
    fn version_2_is_read() {
        let fs = SimFs::new(1);
        let file = fs.open(&path(Path::new("/"), 1), vfs::OpenOptions::write().create_new()).unwrap();
        file.write_all_at(&crate::golden::bytes("plex-manifest-2"), 0).unwrap();
        assert_eq!(without_marks(read(&fs, Path::new("/"), 1).unwrap()), [sample(), edit(2), taken_in()]);
    }

    /// What older programs wrote is read; a database that is opened gets a manifest of today's version.
    #[test]
    fn version_1_is_read() {
        let fs = SimFs::new(1);
        let file = fs.open(&path(Path::new("/"), 1), vfs::OpenOptions::write().create_new()).unwrap();
        file.write_all_at(&crate::golden::bytes("plex-manifest-1"), 0).unwrap();
        assert_eq!(read(&fs, Path::new("/"), 1).unwrap(), [sample(), edit(2)]);
    }
}
