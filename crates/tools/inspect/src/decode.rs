//! `onggi inspect`: prints the contents of a file, or an overview of a directory.

use crate::dictionaries;
use crate::error::{ToolError, with_causes};
use crate::item::{Item, Moment, hex};
use crate::shortened::Shortened;
use base::Rng;
use base::hash::KeyHasher;
use checkpoint::{DataDir, Manifest, Name, SnapshotReader};
use cmdlog::{FrameBody, SegmentReader};
use codec::{CodecError, Dictionary, FileHash, Reader};
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tier::TierError;
use vfs::{FileKind, FileSystem, OpenOptions};

/// Longest manifest to read; real ones have a few hundred bytes.
const MANIFEST_LEN_MAX: usize = (16 << 20) + 64;

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// What to print, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Show {
    /// The format.
    pub format: Format,
    /// Print keys and values whole, not only their beginnings.
    pub full: bool,
}

/// Prints a whole file, or the header of each file in a directory. Returns whether everything read is whole. Changes
/// nothing; a server may be running.
///
/// # Errors
/// [`ToolError::NotOurs`]; a failing disk or output. Damage is not an error: it is printed like the rest, and ends the
/// file.
pub fn decode(fs: &Arc<dyn FileSystem>, path: &Path, show: Show, out: &mut dyn Write) -> Result<bool, ToolError> {
    let kind = fs.metadata(path)?.kind;
    let mut decoder = Decoder { show, out, whole: true, dictionaries: Reader::default() };
    match kind {
        FileKind::Dir => decoder.directory(fs, path)?,
        FileKind::File => {
            if let Some(dir) = path.parent().map(|dir| if dir.as_os_str().is_empty() { Path::new(".") } else { dir }) {
                decoder.dictionaries = dictionaries::known(&**fs, dir)?.reader();
            }
            decoder.file(&**fs, path, true)?;
        }
    }
    decoder.out.flush()?;
    Ok(decoder.whole)
}

struct Decoder<'o> {
    show: Show,
    out: &'o mut dyn Write,
    whole: bool,
    /// The dictionaries in the file's directory.
    dictionaries: Reader,
}

impl Decoder<'_> {
    fn put(&mut self, item: &Item) -> Result<(), ToolError> {
        match self.show.format {
            Format::Text => writeln!(self.out, "{item}")?,
            Format::Json => {
                serde_json::to_writer(&mut *self.out, item).map_err(std::io::Error::from)?;
                writeln!(self.out)?;
            }
        }
        Ok(())
    }

    fn damage(&mut self, path: &Path, what: String) -> Result<(), ToolError> {
        self.whole = false;
        self.put(&Item::Damage { path: path.display().to_string(), what })
    }

    fn directory(&mut self, fs: &Arc<dyn FileSystem>, path: &Path) -> Result<(), ToolError> {
        let mut entries = fs.read_dir(path)?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        for entry in entries {
            let file = path.join(&entry.name);
            let name = entry.name.to_string_lossy().into_owned();
            let meaning = match Name::parse(&entry.name) {
                Name::Rows => "the rows of databases on disk",
                Name::RowsOf { .. } => "the copy of these rows that belongs to a checkpoint",
                _ if entry.kind == FileKind::Dir => "a directory, not part of the data",
                Name::Manifest | Name::Snapshot { .. } | Name::Log { .. } | Name::Dictionary(_) => {
                    match self.file(&**fs, &file, false) {
                        // A running server may remove files meanwhile.
                        Err(ToolError::Fs(error)) if error.is_not_found() => {}
                        done => done?,
                    }
                    continue;
                }
                Name::DictionaryReplacement(_) => "a dictionary that was not finished: a leftover",
                Name::Lock => "held while a server uses the directory",
                Name::ManifestReplacement => "a replacement of the manifest that was not finished: a leftover",
                Name::Other if is_tier_segment(&file) => {
                    self.file(&**fs, &file, false)?;
                    continue;
                }
                Name::Other if name == tier::offline::ID_FILE => "names the tier",
                Name::Other if cmdlog::is_segment_copy(&entry.name) => "a segment that was not finished: a leftover",
                Name::Other => "not part of the data",
            };
            self.put(&Item::Other { name, meaning })?;
        }
        Ok(())
    }

    /// Identifies a file by its first bytes or, if these are damaged, by its name.
    fn file(&mut self, fs: &dyn FileSystem, path: &Path, with_contents: bool) -> Result<(), ToolError> {
        let mut magic = [0; 8];
        let file = fs.open(path, OpenOptions::read())?;
        let is_long = file.len()? >= magic.len() as u64;
        if is_long {
            file.read_exact_at(&mut magic, 0)?;
        }
        let name = path.file_name().map_or(Name::Other, Name::parse);
        match (&magic, name) {
            (b"OnggiMAN", _) => self.manifest(fs, path),
            (b"OnggiSNP", _) => self.snapshot(fs, path, with_contents),
            (b"ONGGILOG", _) => self.segment(fs, path, with_contents),
            (b"OnggiTIR", _) => self.tier_segment(fs, path, with_contents),
            (_, Name::Dictionary(hash)) => self.dictionary(fs, path, hash),
            (_, Name::Manifest | Name::ManifestReplacement) => self.manifest(fs, path),
            (_, Name::Snapshot { .. }) => self.snapshot(fs, path, with_contents),
            (_, Name::Log { .. }) => self.segment(fs, path, with_contents),
            _ if is_tier_segment(path) => self.tier_segment(fs, path, with_contents),
            _ => Err(ToolError::NotOurs { path: path.into() }),
        }
    }

    fn manifest(&mut self, fs: &dyn FileSystem, path: &Path) -> Result<(), ToolError> {
        let bytes = match vfs::read_file(fs, path, MANIFEST_LEN_MAX) {
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
                return self.damage(path, format!("longer than {MANIFEST_LEN_MAX} bytes, which no manifest is"));
            }
            read => read?,
        };
        let manifest = match Manifest::decode(path, &bytes) {
            Ok(manifest) => manifest,
            Err(error) => return self.damage(path, with_causes(&error)),
        };
        self.put(&Item::Manifest {
            path: path.display().to_string(),
            history: hex(&manifest.history),
            log_on: manifest.log.on,
            log_since_lsn: manifest.log.since.0,
            log_since: Moment::new(manifest.log.since_ms),
            log_needed_from_lsn: manifest.log_needed_from().map(|lsn| lsn.0),
        })?;
        for info in &manifest.dictionaries {
            self.put(&Item::Dictionary {
                number: info.number.0.get(),
                name: info.hash.to_string(),
                unneeded_from_set: info.unneeded_from.map(|set| set.0),
            })?;
        }
        for (history, last) in &manifest.parents {
            self.put(&Item::Parent { history: hex(history), last_lsn: last.0 })?;
        }
        for set in &manifest.sets {
            self.put(&Item::Set {
                set: set.set.0,
                cut_lsn: set.cut.0,
                cut: Moment::new(set.created_ms),
                history: hex(&set.history),
                log_from_lsn: set.log_from.map(|lsn| lsn.0),
                rows_lsn: set.rows.as_ref().map(|rows| rows.lsn.0),
                files: set.files.len() as u64,
                entries: set.entries(),
                bytes: set.bytes(),
            })?;
            for (number, file) in (0u8..).zip(&set.files) {
                self.put(&Item::SetFile {
                    name: Name::Snapshot { set: set.set, file: number }.to_string(),
                    bytes: file.bytes,
                    entries: file.entries,
                    crc: format!("{:#010x}", file.crc),
                })?;
            }
        }
        Ok(())
    }

    fn dictionary(&mut self, fs: &dyn FileSystem, path: &Path, hash: FileHash) -> Result<(), ToolError> {
        let found = match Dictionary::open(fs, path.parent().unwrap_or(Path::new("")), hash) {
            Ok(found) => found,
            Err(CodecError::Fs(error)) => return Err(error.into()),
            Err(error) => return self.damage(path, error.to_string()),
        };
        let class = codec::training::parse_name(found.class());
        self.put(&Item::DictionaryFile {
            path: path.display().to_string(),
            number: found.number().0.get(),
            keyspace: class.map(|(keyspace, _)| keyspace.0),
            prefix: class.map(|(_, prefix)| Shortened::new(prefix, self.show.full)),
            bytes: found.content().len() as u64,
        })
    }

    fn snapshot(&mut self, fs: &dyn FileSystem, path: &Path, with_contents: bool) -> Result<(), ToolError> {
        let mut reader = match SnapshotReader::open(fs, path) {
            Ok(reader) => reader,
            Err(error) => return self.damage(path, with_causes(&error)),
        };
        let (header, footer, bytes) = (reader.header().clone(), *reader.footer(), reader.info().bytes);
        self.put(&Item::Snapshot {
            path: path.display().to_string(),
            set: header.set.0,
            file: header.file,
            files: header.files,
            cut_lsn: header.cut.0,
            cut: Moment::new(header.created_ms),
            history: hex(&header.history),
            keyspaces: header.spaces.iter().map(|space| space.0).collect(),
            bytes,
            blocks: footer.blocks,
            entries: footer.entries,
        })?;
        if !with_contents {
            return Ok(());
        }
        loop {
            let block = match reader.next_block() {
                Ok(Some(block)) => block,
                Ok(None) => return Ok(()),
                Err(error) => return self.damage(path, with_causes(&error)),
            };
            let (offset, number, entries) = (block.offset, block.number, block.entries);
            self.put(&Item::Block { offset, number, entries, bytes: block.payload.len() as u64 })?;
            if let Some(what) = self.effects(block.payload)? {
                return self.damage(path, format!("block {number} at offset {offset}: {what}"));
            }
        }
    }

    fn segment(&mut self, fs: &dyn FileSystem, path: &Path, with_contents: bool) -> Result<(), ToolError> {
        let mut reader = match SegmentReader::open(fs, path) {
            Ok(reader) => reader,
            Err(cmdlog::RecoverError::Header { .. }) => {
                return self.damage(path, "header damaged: no frame can be checked without it".to_owned());
            }
            Err(cmdlog::RecoverError::File { source }) => return Err(source.into()),
            Err(error) => return self.damage(path, with_causes(&error)),
        };
        let header = reader.header();
        self.put(&Item::Segment {
            path: path.display().to_string(),
            first_lsn: reader.first().0,
            history: hex(&header.history),
            parent: header.parent.map(|parent| hex(&parent.history)),
            parent_lsn: header.parent.map(|parent| parent.lsn.0),
            durable_lsn: header.durable.0,
            created: Moment::new(header.created_ms),
            bytes: reader.file_bytes(),
        })?;
        if !with_contents {
            return Ok(());
        }
        while let Some(frame) = reader.next_frame()? {
            let (lsn, end_lsn, offset) = (frame.lsn.0, frame.end.0, frame.offset);
            let (mark, clean_end) = match frame.body {
                FrameBody::Record(payload) => {
                    self.put(&Item::Record { lsn, end_lsn, offset, bytes: payload.len() as u64 })?;
                    if let Some(what) = self.effects(payload)? {
                        self.damage(path, format!("record at offset {offset}: {what}"))?;
                    }
                    continue;
                }
                FrameBody::Unknown(kind) => {
                    self.put(&Item::Unknown { lsn, end_lsn, offset, kind })?;
                    continue;
                }
                FrameBody::Mark(mark) => (mark, false),
                FrameBody::End(mark) => (mark, true),
            };
            let (time, durable_lsn) = (Moment::new(mark.time_ms), mark.durable_lsn.0);
            self.put(&Item::Mark { lsn, end_lsn, offset, time, durable_lsn, clean_end })?;
        }
        let rest = reader.rest()?;
        self.put(&Item::SegmentEnd {
            lsn: rest.lsn.0,
            offset: rest.offset,
            bytes_behind: rest.bytes,
            durable_lsn: rest.durable.map(|lsn| lsn.0),
        })
    }

    fn tier_segment(&mut self, fs: &dyn FileSystem, path: &Path, with_contents: bool) -> Result<(), ToolError> {
        let mut scan = match tier::offline::scan(fs, path) {
            Ok(scan) => scan,
            Err(TierError::File(error)) => return Err(error.into()),
            Err(error) => return self.damage(path, with_causes(&error)),
        };
        let tier = scan.tier().0.iter().map(|byte| format!("{byte:02x}")).collect();
        let shown = path.display().to_string();
        self.put(&Item::TierSegment { path: shown, segment: scan.segment(), tier, bytes: scan.bytes() })?;
        if !with_contents {
            return Ok(());
        }
        while let Some(found) = scan.next_record()? {
            let item = Item::tier_value(&found, self.show.full, &mut self.dictionaries);
            self.put(&item)?;
        }
        for Range { start, end } in scan.damaged().to_vec() {
            self.damage(path, format!("{} bytes at offset {start} are no record", end - start))?;
        }
        Ok(())
    }

    /// Prints entries or effects; returns the fault of the first that is invalid.
    fn effects(&mut self, payload: &[u8]) -> Result<Option<String>, ToolError> {
        let hasher = KeyHasher::new(&mut Rng::new(0));
        for effect in cmdlog::effects(payload, &hasher) {
            match effect {
                Ok(effect) => {
                    let item = Item::effect(&effect, self.show.full, &mut self.dictionaries);
                    self.put(&item)?;
                }
                Err(error) => return Ok(Some(error.to_string())),
            }
        }
        Ok(None)
    }
}

fn is_tier_segment(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).and_then(tier::segment_number).is_some()
}

/// Opens the directory for reading, unless a server uses it. If no lock file exists, no server does, and none is
/// created. No server can use the directory while the returned lock is held.
///
/// # Errors
/// [`ToolError::InUse`]; the operating system's error.
pub fn lock(fs: &Arc<dyn FileSystem>, dir: &Path) -> Result<(DataDir, Option<vfs::FileLock>), ToolError> {
    let path = dir.join(Name::Lock.to_string());
    let held = match fs.exists(&path)?.then(|| fs.try_lock(&path)) {
        Some(Err(vfs::FsError::Locked { pid, .. })) => return Err(ToolError::InUse { path: dir.into(), pid }),
        // No server can run on a read-only medium either.
        Some(Err(error)) if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem => None,
        Some(held) => Some(held?),
        None => None,
    };
    Ok((DataDir::open_to_look(Arc::clone(fs), dir), held))
}
