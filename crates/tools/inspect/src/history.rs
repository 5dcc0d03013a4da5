//! `onggi history`: the moments that a restore can reach, and the flushes that it can undo.
//!
//! A *stretch* is a set and the log after it, up to where the log ends or was off: all its moments can be restored.

use crate::error::{ToolError, with_causes};
use crate::source::Source;
use crate::text::{count, size};
use base::hash::KeyHasher;
use base::{Lsn, Rng, UnixMs};
use calendar::{TimeZone, ago, local, span};
use checkpoint::{DataDir, Manifest, ManifestFile, SetInfo};
use cmdlog::FrameBody;
use engine::Effect;
use std::collections::BTreeMap;
use std::sync::Arc;
use vfs::FileSystem;

/// What can be restored.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Checkpoints, oldest first.
    pub sets: Vec<SetInfo>,
    /// Flushes, oldest first.
    pub flushes: Vec<Flush>,
    /// Stretches, oldest first.
    pub stretches: Vec<Stretch>,
    /// Parts that could not be read.
    pub notes: Vec<String>,
}

/// One or more flushes without a change between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flush {
    /// The position before the flush.
    pub before: Lsn,
    /// Its time, to the second: that of the next mark in the log.
    pub at_ms: UnixMs,
    /// Databases that it emptied.
    pub databases: usize,
}

/// Moments without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first.
    pub from_ms: UnixMs,
    /// The last one for which the log has a time.
    pub to_ms: UnixMs,
}

/// Reads which moments of a directory can be restored. Changes nothing.
///
/// # Errors
/// [`ToolError::InUse`]; a damaged or missing manifest. Damage of the log becomes a note.
pub fn history(fs: &Arc<dyn FileSystem>, source: &Source<'_>) -> Result<History, ToolError> {
    let (dir, _held) = source.open(fs)?;
    let Some(file) = ManifestFile::load(&dir)? else {
        let why = "the directory holds no data".to_owned();
        return Err(ToolError::NotReachable { path: source.path().into(), why });
    };
    Ok(read(&dir, file.current(), source.limit()))
}

/// The position before the last flush.
///
/// # Errors
/// There was none.
pub(crate) fn before_last_flush(dir: &DataDir, manifest: &Manifest, limit: Option<Lsn>) -> Result<Lsn, String> {
    let found = read(dir, manifest, limit);
    let notes = || found.notes.iter().map(|note| format!("; {note}")).collect::<String>();
    let last = found.flushes.last().map(|flush| flush.before);
    last.ok_or_else(|| format!("there is no FLUSHALL or FLUSHDB in the history that is kept{}", notes()))
}

fn read(dir: &DataDir, manifest: &Manifest, limit: Option<Lsn>) -> History {
    let beginning = manifest.beginning();
    let sets: Vec<&SetInfo> = manifest.sets.iter().chain(&beginning).collect();
    let mut found = History { sets: sets.iter().map(|set| (*set).clone()).collect(), ..History::default() };
    let mut flushes = BTreeMap::new();
    for (index, set) in sets.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| sets.get(before));
        if before.is_some_and(|before| manifest.leads(before, set)) {
            continue;
        }
        let mut scan = Scan { last_ms: set.created_ms, ..Scan::default() };
        if let Some(from) = set.log_from
            && let Err(note) = scan.run(dir, from, limit)
        {
            found.notes.push(note);
        }
        let latest = sets.iter().skip(index).take_while(|other| other.set == set.set || manifest.leads(set, other));
        let to_ms = latest.last().map_or(scan.last_ms, |latest| latest.created_ms.max(scan.last_ms));
        found.stretches.push(Stretch { from_ms: set.created_ms, to_ms });
        flushes.extend(scan.dated().map(|flush| (flush.before, flush)));
    }
    found.flushes = flushes.into_values().collect();
    found
}

/// A pass over the log.
#[derive(Default)]
struct Scan {
    flushes: Vec<(Flush, bool)>,
    /// The last record was a flush.
    is_flushed: bool,
    last_ms: UnixMs,
}

/// Records after the limit are not read.
#[derive(Debug, thiserror::Error)]
#[error("the end was reached")]
struct Ended;

impl Scan {
    /// Reads from a position on; returns a note about what could not be read.
    fn run(&mut self, dir: &DataDir, from: Lsn, limit: Option<Lsn>) -> Result<(), String> {
        let hasher = KeyHasher::new(&mut Rng::new(0));
        let (mut at, mut is_over) = (from, false);
        let mut each = |after: Lsn, body: FrameBody<'_>| {
            if limit.is_some_and(|limit| after > limit) {
                is_over = true;
                return Err(Ended.into());
            }
            self.frame(at, body, &hasher)?;
            at = after;
            Ok(())
        };
        let read = cmdlog::recover_frames(&**dir.fs(), dir.path(), from, &mut each, &mut |_| {});
        match read {
            Err(error) if !is_over && limit != Some(at) => {
                Err(format!("the log cannot be read beyond LSN {at}: {}", with_causes(&error)))
            }
            _ => Ok(()),
        }
    }

    fn frame(
        &mut self,
        at: Lsn,
        body: FrameBody<'_>,
        hasher: &KeyHasher,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        match body {
            FrameBody::Record(payload) => {
                let mut databases = 0;
                for effect in cmdlog::effects(payload, hasher) {
                    databases += usize::from(matches!(effect?, Effect::Clear { .. }));
                }
                self.record(at, databases);
            }
            FrameBody::Mark(mark) | FrameBody::End(mark) => {
                self.last_ms = mark.time_ms;
                let undated = self.flushes.iter_mut().rev().take_while(|(_, is_dated)| !is_dated);
                undated.for_each(|(flush, is_dated)| (flush.at_ms, *is_dated) = (mark.time_ms, true));
            }
            FrameBody::Unknown(_) => {}
        }
        Ok(())
    }

    /// A second flush directly after the first had nothing to remove; a person wants the state before both.
    fn record(&mut self, at: Lsn, databases: usize) {
        match self.flushes.last_mut().filter(|_| self.is_flushed) {
            Some((flush, _)) => flush.databases += databases,
            None if databases > 0 => self.flushes.push((Flush { before: at, at_ms: self.last_ms, databases }, false)),
            None => {}
        }
        self.is_flushed = databases > 0;
    }

    fn dated(self) -> impl Iterator<Item = Flush> {
        self.flushes.into_iter().map(|(flush, _)| flush)
    }
}

impl History {
    /// Lines for people, oldest first.
    pub fn lines(&self, now: UnixMs, zone: &TimeZone) -> Vec<String> {
        let mut rows: Vec<_> = self.sets.iter().map(|set| (set.created_ms, set.cut, describe(set))).collect();
        rows.extend(self.flushes.iter().map(|flush| {
            let databases = count(flush.databases as u64, "database", "databases");
            (flush.at_ms, flush.before, format!("FLUSH of {databases}"))
        }));
        rows.sort_by_key(|(_, lsn, _)| *lsn);
        let mut lines: Vec<_> = rows
            .into_iter()
            .map(|(at, lsn, what)| format!("{}  {:<16}  {what} (LSN {lsn})", local(at, zone), ago(at, now)))
            .collect();
        for Stretch { from_ms, to_ms } in &self.stretches {
            let (from, to) = (local(*from_ms, zone), local(*to_ms, zone));
            lines.push(match to_ms.saturating_sub(*from_ms) {
                0 => format!("restorable: {from}, {}", ago(*from_ms, now)),
                length => format!("restorable: every moment from {from} to {to} ({})", span(length.unsigned_abs())),
            });
        }
        lines.push(match self.flushes.last() {
            None => "before-last-flush: there is no FLUSHALL or FLUSHDB in this time".to_owned(),
            Some(flush) => format!("before-last-flush: LSN {}, {}", flush.before, ago(flush.at_ms, now)),
        });
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        lines
    }
}

fn describe(set: &SetInfo) -> String {
    if set.files.is_empty() {
        return "beginning: no keys".to_owned();
    }
    let (keys, bytes) = (count(set.entries(), "key", "keys"), size(set.bytes()));
    format!("checkpoint {}: {keys}, {bytes}", set.set)
}
