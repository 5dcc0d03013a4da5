//! `onggi check`: are all files whole, and would a start find them?

use crate::decode::lock;
use crate::error::{ToolError, with_causes};
use crate::rows;
use crate::text::{count, size, time};
use crate::tiered::{self, Addresses};
use base::hash::KeyHasher;
use base::{Lsn, Rng};
use checkpoint::{CheckpointError, DataDir, LoadProgress, Manifest, ManifestFile, Name, SetInfo, SnapshotReader};
use cmdlog::{LogEnd, RecoverError, SegmentReader};
use codec::{CodecError, Dictionary, DictionaryNumber};
use engine::Effect;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tier::{TierId, offline};
use vfs::{FileKind, FileSystem};

/// The result of a check, in order of severity: known damage outweighs files that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Everything was read and is whole, and a start would find it.
    Good,
    /// Something could not be read or is of a newer format; nothing is known to be damaged.
    Unchecked,
    /// Something is damaged or missing.
    Damaged,
}

/// What a check says of something that it read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It was read, and its checksums are correct.
    Good,
    /// Information, not a fault.
    Note,
    /// Bytes were changed, or a file is missing.
    Damaged,
    /// It could not be judged.
    Unknown,
}

impl Level {
    /// The word, such as `damaged`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Damaged => "damaged",
            Self::Unknown => "unknown",
        }
    }
}

/// A line of a check: its display begins with the level.
#[derive(Clone, Copy, Debug)]
pub struct Finding<'t> {
    /// The level.
    pub level: Level,
    /// What was read, and what is wrong with it.
    pub text: &'t str,
}

impl fmt::Display for Finding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.level == Level::Damaged { "DAMAGED" } else { self.level.word() };
        write!(f, "{word:<8} {}", self.text)
    }
}

/// Reads everything in a directory and reports in `say`, line by line, what it is and what is wrong. Changes nothing.
///
/// # Errors
/// [`ToolError::InUse`] with the process that uses the directory; or the directory cannot be read.
pub fn check(fs: &Arc<dyn FileSystem>, dir: &Path, say: &mut dyn FnMut(Finding<'_>)) -> Result<Verdict, ToolError> {
    let (dir, _held) = lock(fs, dir)?;
    let mut check = Check { dir: &dir, say, verdict: Verdict::Good };
    check.run()?;
    Ok(check.verdict)
}

struct Check<'c> {
    dir: &'c DataDir,
    say: &'c mut dyn FnMut(Finding<'_>),
    verdict: Verdict,
}

impl Check<'_> {
    fn run(&mut self) -> Result<(), ToolError> {
        let listing = self.dir.list()?;
        let manifest = match ManifestFile::load(self.dir) {
            Ok(Some(file)) => Some(file.current().clone()),
            Ok(None) => {
                self.good("the directory holds no data yet: a start begins empty");
                return self.leftovers(None, None);
            }
            Err(error) => {
                self.checkpoint_error(&error);
                None
            }
        };
        let mut rows_lsn = None;
        match &manifest {
            Some(manifest) => {
                self.manifest(manifest);
                self.dictionaries(manifest);
                let named = Addresses::default();
                for set in &manifest.sets {
                    self.set(manifest, set, &named);
                }
                self.tier(manifest, named)?;
                rows_lsn = self.rows(manifest);
            }
            // Which of them count is unknown; each can still be read alone.
            None => listing.snapshots.iter().for_each(|&(set, file)| self.snapshot_alone(Name::Snapshot { set, file })),
        }
        for &first in &listing.logs {
            self.segment(first)?;
        }
        let end = manifest.as_ref().and_then(|manifest| self.log(manifest, rows_lsn));
        self.leftovers(manifest.as_ref(), end.as_ref())
    }

    fn good(&mut self, what: &str) {
        (self.say)(Finding { level: Level::Good, text: what });
    }

    fn note(&mut self, what: &str) {
        (self.say)(Finding { level: Level::Note, text: what });
    }

    fn damaged(&mut self, what: &str) {
        self.verdict = self.verdict.max(Verdict::Damaged);
        (self.say)(Finding { level: Level::Damaged, text: what });
    }

    fn unchecked(&mut self, what: &str) {
        self.verdict = self.verdict.max(Verdict::Unchecked);
        (self.say)(Finding { level: Level::Unknown, text: what });
    }

    fn checkpoint_error(&mut self, error: &CheckpointError) {
        let text = with_causes(error);
        if error.is_damage() { self.damaged(&text) } else { self.unchecked(&text) }
    }

    fn log_error(&mut self, error: &RecoverError) {
        let text = with_causes(error);
        if error.is_damage() { self.damaged(&text) } else { self.unchecked(&text) }
    }

    fn manifest(&mut self, manifest: &Manifest) {
        let sets = manifest.sets.iter().filter(|set| !set.files.is_empty()).count();
        let sets = count(sets as u64, "checkpoint", "checkpoints");
        let log = if manifest.log.on { "on" } else { "off" };
        self.good(&format!("MANIFEST: {sets}, command log {log} since {}", time(manifest.log.since_ms)));
    }

    /// Whether all dictionaries that the manifest names exist and are whole.
    fn dictionaries(&mut self, manifest: &Manifest) {
        let mut whole = 0;
        for info in &manifest.dictionaries {
            match Dictionary::open(&**self.dir.fs(), self.dir.path(), info.hash) {
                Ok(found) if found.number() == info.number => whole += 1,
                Ok(found) => {
                    let (path, number) = (self.dir.file(Name::Dictionary(info.hash)), found.number());
                    self.damaged(&format!(
                        "{}: it has number {number}, and MANIFEST says {}",
                        path.display(),
                        info.number
                    ));
                }
                Err(CodecError::Fs(error)) => self.unchecked(&with_causes(&error)),
                Err(error) => self.damaged(&format!("dictionary {}: {error}; put it back from a backup", info.number)),
            }
        }
        if whole > 0 {
            self.good(&format!("{}, whole", count(whole, "dictionary", "dictionaries")));
        }
    }

    /// Whether the rows of databases on disk, and the copies that checkpoints have, are whole. Gives the position up to
    /// which the rows have all changes.
    fn rows(&mut self, manifest: &Manifest) -> Option<Lsn> {
        for set in &manifest.sets {
            let name = Name::RowsOf { set: set.set };
            if set.rows.is_none() {
                if !set.files.is_empty() && manifest.spaces_on_disk(Some(set)).is_none() {
                    let set = set.set;
                    self.note(&format!(
                        "set {set}: has no copy of the rows of databases on disk, so none is restored from it"
                    ));
                }
                continue;
            }
            match rows::read_copy(self.dir, set) {
                Ok(Ok(whole)) => self.good(&format!("{name}: {whole}")),
                Ok(Err(why)) => self.damaged(&why),
                Err(error) => self.rows_error(name, error),
            }
        }
        if manifest.disk_spaces.is_empty() {
            return None;
        }
        match rows::read(self.dir, Name::Rows) {
            Ok(whole) => {
                self.good(&format!("{}: {whole}", Name::Rows));
                Some(whole.lsn)
            }
            Err(error) => {
                self.rows_error(Name::Rows, error);
                None
            }
        }
    }

    fn rows_error(&mut self, name: Name, error: disk::DiskError) {
        let text = format!("{}: {}", self.dir.file(name).display(), with_causes(&error));
        if error.is_refusal() { self.unchecked(&text) } else { self.damaged(&text) }
    }

    /// Whether the addresses of all sets lead to whole values on the tier.
    fn tier(&mut self, manifest: &Manifest, named: Addresses) -> Result<(), ToolError> {
        let Some(info) = &manifest.tier else {
            if !named.is_empty() {
                self.damaged("checkpoints have values on a tier, and MANIFEST names none");
            }
            return Ok(());
        };
        let (fs, dir) = (&**self.dir.fs(), tiered::directory(self.dir, info)?);
        match offline::id_of(fs, &dir) {
            Ok(Some(id)) if id == TierId(info.id) => {}
            Ok(Some(_)) => {
                self.damaged(&format!("{}: the tier of another data directory", dir.display()));
                return Ok(());
            }
            Ok(None) => {
                let what = format!("{}: no tier is there, and MANIFEST names one: mount its device", dir.display());
                self.damaged(&what);
                return Ok(());
            }
            Err(error) => {
                self.damaged(&with_causes(&error));
                return Ok(());
            }
        }
        let all = offline::segments(fs, &dir)?.len() as u64;
        let survey = tiered::survey(fs, &dir, named)?;
        survey.damage.iter().for_each(|line| self.damaged(line));
        survey.notes.iter().for_each(|line| self.note(line));
        self.good(&format!(
            "tier {}: {} of checkpoints, whole, in {}, {}",
            dir.display(),
            count(survey.values, "value", "values"),
            count(survey.segments, "segment", "segments"),
            size(survey.bytes)
        ));
        if let Some(unnamed @ 1..) = all.checked_sub(survey.segments) {
            self.note(&format!("tier: no checkpoint names {}", count(unnamed, "other segment", "other segments")));
        }
        Ok(())
    }

    fn set(&mut self, manifest: &Manifest, set: &SetInfo, named: &Addresses) {
        let needed = Mutex::default();
        let see = |effect: &Effect<'_>| {
            note_dictionary(effect, &mut needed.lock().unwrap_or_else(PoisonError::into_inner));
            named.note(effect);
        };
        match read_set(self.dir, set, &see) {
            Ok(()) if set.files.is_empty() => {
                self.good(&format!("beginning of the log: nothing, as of LSN {}, {}", set.cut, time(set.created_ms)));
            }
            Ok(()) => self.good(&format!(
                "set {}: {} in {}, {}, as of LSN {}, {}",
                set.set,
                count(set.entries(), "entry", "entries"),
                count(set.files.len() as u64, "file", "files"),
                size(set.bytes()),
                set.cut,
                time(set.created_ms)
            )),
            Err(error) => self.checkpoint_error(&error),
        }
        let needed = needed.into_inner().unwrap_or_else(PoisonError::into_inner);
        let listed =
            |number| manifest.dictionaries.iter().any(|info| info.number == number && info.is_needed_by(set.set));
        self.unlisted(&format!("set {}", set.set), needed, listed);
    }

    /// Values that need a dictionary that MANIFEST does not list for them. A start refuses them, and the dictionary may
    /// be removed.
    fn unlisted(&mut self, place: &str, needed: BTreeSet<DictionaryNumber>, listed: impl Fn(DictionaryNumber) -> bool) {
        for number in needed.into_iter().filter(|number| !listed(*number)) {
            self.damaged(&format!(
                "{place}: has strings that need dictionary {number}, which MANIFEST does not list for it"
            ));
        }
    }

    /// Reads a snapshot file that no manifest names.
    fn snapshot_alone(&mut self, name: Name) {
        let read = || -> Result<u64, CheckpointError> {
            let mut reader = SnapshotReader::open(&**self.dir.fs(), &self.dir.file(name))?;
            while reader.next_block()?.is_some() {}
            Ok(reader.footer().entries)
        };
        match read() {
            Ok(entries) => {
                self.good(&format!("{name}: {}, whole for itself", count(entries, "entry", "entries")));
            }
            Err(error) => self.checkpoint_error(&error),
        }
    }

    /// Reads a segment alone. [`Check::log`] decides which of its frames count, from all segments together.
    fn segment(&mut self, first: Lsn) -> Result<(), ToolError> {
        let name = Name::Log { first };
        let mut reader = match SegmentReader::open(&**self.dir.fs(), &self.dir.file(name)) {
            Ok(reader) => reader,
            Err(RecoverError::Header { .. }) => {
                self.note(&format!("{name}: its header is damaged"));
                return Ok(());
            }
            Err(error) => {
                self.log_error(&error);
                return Ok(());
            }
        };
        let mut frames = 0u64;
        let read = loop {
            match reader.next_frame() {
                Ok(Some(_)) => frames += 1,
                Ok(None) => break reader.rest(),
                Err(error) => break Err(error),
            }
        };
        match read {
            Ok(rest) => {
                let frames = count(frames, "frame", "frames");
                let behind = match rest.bytes {
                    0 => String::new(),
                    bytes => {
                        format!("; {} after them that {} no frame", size(bytes), if bytes == 1 { "is" } else { "are" })
                    }
                };
                self.note(&format!("{name}: {frames}, LSN {first} to {}{behind}", rest.lsn));
            }
            Err(error) => self.log_error(&error),
        }
        Ok(())
    }

    /// Whether the log continues from every set, and from the newest as a start reads it.
    fn log(&mut self, manifest: &Manifest, rows: Option<Lsn>) -> Option<LogEnd> {
        let set_from = match manifest.newest() {
            Some(set) => set.log_from,
            None => manifest.log.on.then_some(manifest.log.since),
        };
        let newest_from = set_from.map(|from| rows.map_or(from, |rows| from.min(rows)));
        let (mut end, mut needed) = (None, BTreeSet::new());
        let mut see = |effect: &Effect<'_>| note_dictionary(effect, &mut needed);
        if let Some(from) = newest_from {
            match read_log(self.dir, from, &mut see) {
                Ok(found) if found.history.is_none() && manifest.newest().is_some() => {
                    self.damaged(&format!("the command log is needed from LSN {from} on, and no segment is there"));
                }
                Ok(found) => {
                    self.good(&said(&found, from));
                    if let Some(rows) = rows.filter(|rows| *rows > found.end_lsn) {
                        let end = found.end_lsn;
                        self.damaged(&format!(
                            "{} has changes up to LSN {rows}, and the log ends at {end}",
                            Name::Rows
                        ));
                    }
                    end = Some(found);
                }
                Err(error) => self.log_error(&error),
            }
        } else {
            self.note("the command log was off at the newest checkpoint: a start loads that alone");
        }
        // Older sets need more of the log, for restores to an earlier time.
        let older = manifest.sets.split_last().map_or(&[][..], |(_, older)| older);
        if let Some(from) =
            older.iter().filter_map(SetInfo::replay_from).min().filter(|from| Some(*from) != newest_from)
        {
            match read_log(self.dir, from, &mut see) {
                Ok(found) => {
                    self.good(&format!(
                        "restores can go back to LSN {from}: the log leads from there to LSN {}",
                        found.end_lsn
                    ));
                }
                Err(error) if end.is_some() => {
                    self.log_error(&error);
                    self.note("a start does not need that part of the log; restores to an earlier time do");
                }
                // Reported already, or both are unreadable for the same reason.
                Err(error) => self.log_error(&error),
            }
        }
        let listed = |number| manifest.dictionaries.iter().any(|info| info.number == number);
        self.unlisted("command log", needed, listed);
        end
    }

    fn leftovers(&mut self, manifest: Option<&Manifest>, end: Option<&LogEnd>) -> Result<(), ToolError> {
        let needed = manifest.and_then(Manifest::log_needed_from);
        let logs = self.dir.list()?.logs;
        for entry in self.dir.fs().read_dir(self.dir.path())? {
            let shown = entry.name.to_string_lossy().into_owned();
            match Name::parse(&entry.name) {
                Name::Snapshot { set, file } if manifest.is_some_and(|manifest| !manifest.names(set, file)) => {
                    self.note(&format!(
                        "{shown}: a leftover that the manifest does not name; the next start removes it"
                    ));
                }
                Name::Dictionary(hash) if manifest.is_some_and(|manifest| !manifest.names_dictionary(hash)) => {
                    self.note(&format!(
                        "{shown}: a dictionary that the manifest does not name; the next start removes it"
                    ));
                }
                Name::DictionaryReplacement(_) => self.note(&format!("{shown}: a leftover; it is never read")),
                Name::Log { first } if end.is_some_and(|end| first >= end.end_lsn && end.end_lsn != first) => {
                    self.note(&format!("{shown}: a leftover after the end of the log; the next start removes it"));
                }
                Name::Log { first } if manifest.is_some() => {
                    let next = logs.iter().find(|next| **next > first);
                    let is_needed = needed.is_some_and(|needed| next.is_none_or(|next| *next > needed));
                    if !is_needed {
                        self.note(&format!("{shown}: not needed by any checkpoint"));
                    }
                }
                Name::ManifestReplacement => self.note(&format!("{shown}: a leftover; it is never read")),
                Name::Other if cmdlog::is_segment_copy(&entry.name) => {
                    self.note(&format!("{shown}: a leftover; it is never read"));
                }
                Name::Other if entry.kind == FileKind::Dir => {
                    self.note(&format!("{shown}: a directory, not looked into"))
                }
                Name::Other => self.note(&format!("{shown}: not a file of Onggi's")),
                Name::Rows if manifest.is_some_and(|manifest| manifest.disk_spaces.is_empty()) => {
                    self.note(&format!("{shown}: rows that the manifest does not name; no start reads them"));
                }
                Name::RowsOf { set } if manifest.is_some_and(|manifest| !manifest.names_rows(set)) => {
                    self.note(&format!(
                        "{shown}: a leftover that the manifest does not name; the next start removes it"
                    ));
                }
                Name::Rows | Name::RowsOf { .. } => {}
                Name::Lock | Name::Manifest | Name::Snapshot { .. } | Name::Log { .. } | Name::Dictionary(_) => {}
            }
        }
        Ok(())
    }
}

fn said(end: &LogEnd, from: Lsn) -> String {
    let records = count(end.records, "record", "records");
    let mut text = format!("command log: {records} from LSN {from} to {}", end.end_lsn);
    if let Some(mark) = end.last_mark {
        text.push_str(&format!(", last mark {}", time(mark.time_ms)));
    }
    match &end.torn {
        _ if end.clean => text.push_str("; ended in order"),
        Some(torn) => text.push_str(&format!(
            "; a torn tail of {} at offset {} of {}, which was never acknowledged as durable: a start cuts it",
            size(torn.bytes),
            torn.offset,
            torn.path.display()
        )),
        None => {}
    }
    text
}

/// Records the dictionaries that the value of an effect needs.
fn note_dictionary(effect: &Effect<'_>, needed: &mut BTreeSet<DictionaryNumber>) {
    needed.extend(cmdlog::dictionaries_of(effect));
}

/// Reads every block of a set, verifies all checksums and counts, and passes each effect to `see`.
pub(crate) fn read_set(
    dir: &DataDir,
    set: &SetInfo,
    see: &(dyn Fn(&Effect<'_>) + Sync),
) -> Result<(), CheckpointError> {
    let hasher = KeyHasher::new(&mut Rng::new(0));
    checkpoint::load(dir, set, 1, &hasher, see, &LoadProgress::default()).map(drop)
}

/// Reads the log from a position on, as a start does, and passes each effect to `see`.
pub(crate) fn read_log(dir: &DataDir, from: Lsn, see: &mut dyn FnMut(&Effect<'_>)) -> Result<LogEnd, RecoverError> {
    let hasher = KeyHasher::new(&mut Rng::new(0));
    let mut each = |_: Lsn, payload: &[u8]| {
        for effect in cmdlog::effects(payload, &hasher) {
            see(&effect?);
        }
        Ok(())
    };
    cmdlog::recover(&**dir.fs(), dir.path(), from, &mut each, &mut |_| {})
}
