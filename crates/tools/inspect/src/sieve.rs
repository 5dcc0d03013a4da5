//! The rest of a history in which some values cannot be read, because a dictionary is missing or blocks of the set are
//! damaged.
//! ```text
//! set:  entries ---------------- without those of lost keys --> a set of the same number
//! log:  a value that can be read, DEL, FLUSHDB              --> unchanged; the key is no longer lost
//!       a value that cannot                                 --> DEL; the key is lost
//!       RENAME or COPY of a lost key                        --> DEL of the other, which is lost now
//!       any other change of a lost key                      --> nothing: its value does not exist
//! ```
//!
//! If blocks of the set are damaged, a key in no whole block counts as lost: it may have been in a damaged one
//! ([`Present`]).
//!
//! V1. After each record, a key that is not lost has the value that it had.
//! V2. A lost key is absent; it never has an older value, nor a part of one.

use crate::error::ToolError;
use crate::present::Present;
use crate::text::escape;
use crate::tiered::Unreadable;
use base::clock::ManualClock;
use base::hash::KeyHasher;
use base::{Clock, HistoryId, KeyspaceId, Lsn};
use checkpoint::{DataDir, FileInfo, Name, SetInfo, SnapshotReader, SnapshotWriter};
use cmdlog::{DecodeError, ExtractError, FrameBody, Log, LogMode, LogOptions, LogStart, LogTiming, RecordBuilder};
use codec::DictionaryNumber;
use engine::{Effect, Key};
use std::collections::BTreeSet;
use std::sync::Arc;
use vfs::OutFile;

/// Keys, each with its keyspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keys(BTreeSet<(KeyspaceId, Box<[u8]>)>);

impl Keys {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn add(&mut self, key: &Key<'_>) {
        self.0.insert((key.space, key.bytes.into()));
    }

    fn has(&self, key: &Key<'_>) -> bool {
        !self.0.is_empty() && self.0.contains(&(key.space, key.bytes.into()))
    }

    fn remove(&mut self, key: &Key<'_>) {
        if !self.0.is_empty() {
            self.0.remove(&(key.space, key.bytes.into()));
        }
    }

    /// Their names for people.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(space, key)| format!("\"{}\" of keyspace {space}", escape(key)))
    }
}

/// Passes on what can be read.
#[derive(Clone, Debug)]
pub(crate) struct Sieve {
    /// The readable dictionaries.
    known: BTreeSet<DictionaryNumber>,
    /// The keys that are lost now.
    pub lost: Keys,
    /// The first unreadable dictionary that a value needs.
    pub missed: Option<DictionaryNumber>,
    /// For a set with damaged blocks: which keys are known.
    present: Option<Present>,
    /// Values on a tier that cannot be read.
    unreadable: Arc<Unreadable>,
}

impl Sieve {
    /// For a history that begins with these keys lost.
    pub fn new(known: BTreeSet<DictionaryNumber>, lost: Keys) -> Self {
        Self { known, lost, missed: None, present: None, unreadable: Arc::default() }
    }

    /// For a history that begins with a set with damaged blocks.
    pub fn with_present(self, present: Option<Present>) -> Self {
        Self { present, ..self }
    }

    /// For a directory with values on a tier that cannot be read.
    pub fn with_unreadable(self, unreadable: Arc<Unreadable>) -> Self {
        Self { unreadable, ..self }
    }

    /// Whether the key has, or may have, an unreadable value.
    fn is_lost(&self, key: &Key<'_>) -> bool {
        self.lost.has(key) || self.present.as_ref().is_some_and(|present| present.is_unknown(key))
    }

    /// Sets the state of the key, whatever it was before.
    fn is_known(&mut self, key: &Key<'_>, is_there: bool) {
        self.lost.remove(key);
        if let Some(present) = &mut self.present {
            present.note(key, is_there);
        }
    }

    /// Marks the key of an entry as lost if any part of its value cannot be read.
    pub fn look(&mut self, effect: &Effect<'_>) {
        if self.misses(effect) {
            effect.each_key(|key| self.lost.add(key));
        }
    }

    /// Puts the readable part of a record into `left`, which is empty. Returns whether the record changed.
    pub fn sift(&mut self, payload: &[u8], hasher: &KeyHasher, left: &mut RecordBuilder) -> Result<bool, DecodeError> {
        let mut is_other = false;
        for effect in cmdlog::effects(payload, hasher) {
            is_other |= self.sift_effect(&effect?, left);
        }
        Ok(is_other)
    }

    fn sift_effect(&mut self, effect: &Effect<'_>, left: &mut RecordBuilder) -> bool {
        match effect {
            Effect::Set { key, .. } | Effect::Store { key, .. } | Effect::StoreWith { key, .. }
                if self.misses(effect) =>
            {
                self.is_known(key, false);
                self.lost.add(key);
                left.push(&Effect::Delete { key: *key });
                return true;
            }
            Effect::Set { key, .. } | Effect::Store { key, .. } | Effect::StoreWith { key, .. } => {
                self.is_known(key, true)
            }
            Effect::Delete { key } => self.is_known(key, false),
            Effect::Clear { space } => {
                self.lost.0.retain(|(other, _)| other != space);
                if let Some(present) = &mut self.present {
                    present.clear(*space);
                }
            }
            // A primary sends only what follows its position, and not what is lost here.
            Effect::Position { text } if !text.is_empty() && (!self.lost.is_empty() || self.present.is_some()) => {
                left.push(&Effect::Position { text: b"" });
                return true;
            }
            Effect::Swap { .. } | Effect::Library { .. } | Effect::Position { .. } => {}
            Effect::Rename { from, to } | Effect::Copy { from, to } => {
                let is_lost = self.is_lost(from);
                if matches!(effect, Effect::Rename { .. }) {
                    self.is_known(from, false);
                }
                self.is_known(to, true);
                if is_lost {
                    self.lost.add(to);
                    left.push(&Effect::Delete { key: *to });
                    return true;
                }
            }
            Effect::Splice { key, .. }
            | Effect::Expire { key, .. }
            | Effect::Persist { key }
            | Effect::Meta { key, .. }
            | Effect::Edit { key, .. }
            | Effect::Leaves { key, .. }
            | Effect::Replace { key, .. } => {
                if self.is_lost(key) {
                    self.lost.add(key);
                    return true;
                }
                self.is_known(key, true);
            }
        }
        left.push(effect);
        false
    }

    fn misses(&mut self, effect: &Effect<'_>) -> bool {
        let needed = cmdlog::dictionaries_of(effect);
        let missed = needed.difference(&self.known).next().copied();
        self.missed = self.missed.or(missed);
        missed.is_some() || self.unreadable.has(effect)
    }
}

/// Bytes of a snapshot file that are gathered before a write.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;

/// Data of a file is synced each time this many bytes were written.
pub(crate) const SYNC_EVERY_BYTES: u64 = 32 << 20;

/// Writes a set without the entries of these keys, under the same number, and returns its information for the manifest.
pub(crate) fn write_set(
    source: &DataDir,
    target: &DataDir,
    set: &SetInfo,
    lost: &Keys,
    hasher: &KeyHasher,
    say: &mut dyn FnMut(&str),
) -> Result<SetInfo, ToolError> {
    let mut files = Vec::new();
    for number in (0u8..).take(set.files.len()) {
        let name = Name::Snapshot { set: set.set, file: number };
        let file = write_file(source, target, name, lost, hasher)?;
        say(&format!("wrote {}, without what cannot be read", target.file(name).display()));
        files.push(file);
    }
    target.fs().sync_dir(target.path())?;
    Ok(SetInfo { files, ..set.clone() })
}

fn write_file(
    source: &DataDir,
    target: &DataDir,
    name: Name,
    lost: &Keys,
    hasher: &KeyHasher,
) -> Result<FileInfo, ToolError> {
    let mut reader = SnapshotReader::open(&**source.fs(), &source.file(name))?;
    let out = OutFile::create(&**target.fs(), &target.file(name), BUFFER_BYTES, true)?;
    let mut writer = SnapshotWriter::begin(out, reader.header(), SYNC_EVERY_BYTES)?;
    let mut left = RecordBuilder::default();
    while let Some(block) = reader.next_block()? {
        let kept = without(block.payload, block.entries, lost, hasher, &mut left);
        let damaged = |error| ToolError::Block { path: source.file(name), offset: block.offset, error };
        match kept.map_err(damaged)? {
            None => writer.write_block(block.payload, &[], block.entries)?,
            // No block of a lost tree remains.
            Some(0) => {}
            Some(entries) => writer.write_block(left.bytes(), &[], entries)?,
        }
    }
    Ok(writer.finish()?)
}

/// Puts the effects of a block into `left`, without those of lost keys, and counts the entries among them; `None` if
/// there are no such effects, and the block can stay unchanged. Leaves out the position of a replica: a primary sends
/// only what follows it, and not what is lost here.
pub(crate) fn without(
    payload: &[u8],
    entries: u32,
    lost: &Keys,
    hasher: &KeyHasher,
    left: &mut RecordBuilder,
) -> Result<Option<u32>, DecodeError> {
    left.clear();
    if let Some(Ok(Effect::Position { .. })) = cmdlog::effects(payload, hasher).next() {
        return Ok(Some(0));
    }
    if lost.is_empty() {
        return Ok(None);
    }
    let (mut kept, mut is_other) = (0, false);
    for effect in cmdlog::effects(payload, hasher) {
        let effect = effect?;
        let is_lost = effect.keys().any(|key| lost.has(key));
        is_other |= is_lost;
        if !is_lost {
            left.push(&effect);
            // Expiration and fields belong to the tree before them, which is counted in the last of its blocks.
            kept += u32::from(!matches!(effect, Effect::Expire { .. } | Effect::Meta { .. }));
        }
    }
    Ok(is_other.then_some(kept.min(entries)))
}

/// Records are made durable after this many bytes: the log holds them in memory until then.
const PIECE_BYTES: u64 = 1 << 20;

/// The part of a log to rewrite.
pub(crate) struct Rest<'r> {
    /// Where the records begin to which this sieve applies.
    pub from: Lsn,
    /// The records after this position are written; those before it are unchanged.
    pub behind: Lsn,
    /// The end.
    pub to: Lsn,
    /// The target: a directory with the log up to `behind`, and an empty segment there.
    pub target: &'r DataDir,
    /// The history of that segment.
    pub history: HistoryId,
}

/// Writes the readable part of a range of the log after the log in the target. Records get new positions; marks keep
/// their times.
pub(crate) fn write_log(
    source: &DataDir,
    rest: &Rest<'_>,
    mut sieve: Sieve,
    hasher: &KeyHasher,
) -> Result<(), ToolError> {
    let (target, clock) = (rest.target, Arc::new(ManualClock::new(0)));
    let mut ignore = |_: Lsn, _: &[u8]| Ok(());
    let end = cmdlog::recover(&**target.fs(), target.path(), rest.from, &mut ignore, &mut |_| {})?;
    let options = LogOptions { timing: LogTiming::of(LogMode::WrittenOnly), ..LogOptions::new(target.path(), 1) };
    let (fs, time) = (Arc::clone(target.fs()), Arc::clone(&clock) as Arc<dyn Clock>);
    let start = LogStart::after(end, rest.history);
    let log = Log::create_stepped(fs, time, options, start, Arc::new(())).map_err(ExtractError::from)?;
    let (mut left, mut failure, mut is_reached) = (RecordBuilder::default(), None, false);
    let mut each = |after: Lsn, body: FrameBody<'_>| {
        if after > rest.to {
            is_reached = true;
            return Err(Reached.into());
        }
        match body {
            FrameBody::Record(payload) => {
                left.clear();
                sieve.sift(payload, hasher, &mut left)?;
                if after > rest.behind && !left.bytes().is_empty() {
                    log.append(0, left.bytes());
                }
            }
            FrameBody::Mark(mark) | FrameBody::End(mark) => clock.set_ms(mark.time_ms),
            FrameBody::Unknown(_) => {}
        }
        if log.end_lsn().0 - log.durable_lsn().0 >= PIECE_BYTES
            && let Err(error) = log.sync()
        {
            failure = Some(error);
            return Err(Reached.into());
        }
        Ok(())
    };
    let read = cmdlog::recover_frames(&**source.fs(), source.path(), rest.from, &mut each, &mut |_| {});
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    if !is_reached {
        read?;
    }
    log.close()?;
    Ok(())
}

/// The frame after the last one was reached, or no more can be written.
#[derive(Debug, thiserror::Error)]
#[error("the end was reached")]
struct Reached;
