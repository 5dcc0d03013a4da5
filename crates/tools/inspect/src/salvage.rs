//! What can be kept of a damaged set: its whole blocks.
//!
//! ```text
//! file 0:  block | block | XXXXX | block    -> block | block | block
//! file 1:  tree.. | XXXXX | ..tree | block  -> block                  a collection is kept whole or not at all
//! file 2:  missing                          -> an empty file
//! ```
//!
//! The files are read twice, so that memory is bounded by one block: once to decide which blocks are kept, once to
//! write them.

use crate::error::ToolError;
use crate::present::Present;
use crate::sieve::{BUFFER_BYTES, Keys, SYNC_EVERY_BYTES, Sieve, without};
use crate::text::count;
use base::KeyspaceId;
use base::hash::KeyHasher;
use checkpoint::{CheckpointError, DataDir, Header, Name, SetInfo, SnapshotWriter, WholeBlocks};
use cmdlog::RecordBuilder;
use engine::Effect;
use std::collections::BTreeSet;
use vfs::OutFile;

/// The part of a set that is kept.
#[derive(Clone, Debug)]
pub(crate) struct Salvage {
    /// Its information for the manifest.
    pub set: SetInfo,
    /// Entries in the kept blocks.
    pub kept: u64,
    /// The keys of these entries.
    pub present: Present,
    /// The keyspace of each SELECT number.
    spaces: Vec<KeyspaceId>,
    /// Whole blocks that are useless, by file and offset: parts of collections that lack another part.
    left_out: BTreeSet<(u8, u64)>,
}

impl Salvage {
    /// Reads the remains of a set. The sieve examines every kept entry.
    ///
    /// # Errors
    /// The operating system's error; a newer format.
    pub fn survey(source: &DataDir, set: &SetInfo, hasher: &KeyHasher, sieve: &mut Sieve) -> Result<Self, ToolError> {
        let (mut spaces, mut highest) = (None, KeyspaceId(0));
        let (kept, present, left_out) = (0, Present::default(), BTreeSet::new());
        let mut salvage = Self { set: set.clone(), kept, present, spaces: Vec::new(), left_out };
        for number in (0u8..).take(set.files.len()) {
            let Some(mut blocks) = open(source, set, number)? else { continue };
            spaces = spaces.or_else(|| blocks.header().map(|header| header.spaces.clone()));
            salvage.survey_file(number, &mut blocks, hasher, &mut |effect| {
                sieve.look(effect);
                effect.each_key(|key| highest = highest.max(key.space));
            })?;
        }
        // Without any header, assume the databases as they were before any SWAPDB.
        salvage.spaces = spaces.unwrap_or_else(|| (0..=highest.0).map(KeyspaceId).collect());
        Ok(salvage)
    }

    /// Entries lost.
    pub fn lost(&self) -> u64 {
        self.set.entries().saturating_sub(self.kept)
    }

    /// Decides which blocks of a file are kept, and records their contents.
    fn survey_file(
        &mut self,
        file: u8,
        blocks: &mut WholeBlocks,
        hasher: &KeyHasher,
        see: &mut dyn FnMut(&Effect<'_>),
    ) -> Result<(), CheckpointError> {
        // Parts of a collection whose last part has not been read yet; and whether one that began in a gap may
        // continue.
        let (mut parts, mut may_go_on) = (Vec::new(), false);
        while let Some(block) = blocks.next_block()? {
            let effects: Result<Vec<_>, _> = cmdlog::effects(block.payload, hasher).collect();
            let effects = effects.ok().filter(|effects| !effects.is_empty());
            if block.is_after_gap || effects.is_none() {
                self.left_out.extend(parts.drain(..).map(|offset| (file, offset)));
                may_go_on = true;
            }
            let Some(effects) = effects else {
                self.left_out.insert((file, block.offset));
                continue;
            };
            let is_part = matches!(effects.first(), Some(Effect::Edit { .. } | Effect::Leaves { .. }));
            if may_go_on && is_part && block.entries <= 1 {
                may_go_on = block.entries == 0;
                self.left_out.insert((file, block.offset));
                continue;
            }
            may_go_on = false;
            effects.iter().for_each(&mut *see);
            if block.entries == 0 {
                parts.push(block.offset);
                continue;
            }
            parts.clear();
            self.kept += u64::from(block.entries);
            effects.iter().for_each(|effect| effect.each_key(|key| self.present.note(key, true)));
        }
        self.left_out.extend(parts.into_iter().map(|offset| (file, offset)));
        Ok(())
    }

    /// Writes the set again, under the same number, with the kept blocks and without the entries of `lost`.
    ///
    /// # Errors
    /// The operating system's error; the files are unusable then.
    pub fn write_set(
        &self,
        source: &DataDir,
        target: &DataDir,
        lost: &Keys,
        hasher: &KeyHasher,
        say: &mut dyn FnMut(&str),
    ) -> Result<SetInfo, ToolError> {
        let mut files = Vec::new();
        for file in (0u8..).take(self.set.files.len()) {
            let name = Name::Snapshot { set: self.set.set, file };
            let out = OutFile::create(&**target.fs(), &target.file(name), BUFFER_BYTES, true)?;
            let mut writer = SnapshotWriter::begin(out, &self.header(file), SYNC_EVERY_BYTES)?;
            if let Some(mut blocks) = open(source, &self.set, file)? {
                self.write_blocks(file, &mut blocks, &mut writer, lost, hasher)?;
            }
            let info = writer.finish()?;
            let (path, entries) = (target.file(name), count(info.entries, "entry", "entries"));
            say(&format!("wrote {}: {entries}, the whole blocks", path.display()));
            files.push(info);
        }
        target.fs().sync_dir(target.path())?;
        Ok(SetInfo { files, ..self.set.clone() })
    }

    fn write_blocks(
        &self,
        file: u8,
        blocks: &mut WholeBlocks,
        writer: &mut SnapshotWriter,
        lost: &Keys,
        hasher: &KeyHasher,
    ) -> Result<(), ToolError> {
        let mut left = RecordBuilder::default();
        while let Some(block) = blocks.next_block()? {
            if self.left_out.contains(&(file, block.offset)) {
                continue;
            }
            // What was decoded before can be decoded again.
            let kept = without(block.payload, block.entries, lost, hasher, &mut left);
            match kept {
                Ok(None) => writer.write_block(block.payload, &[], block.entries)?,
                Ok(Some(0)) => {}
                Ok(Some(entries)) => writer.write_block(left.bytes(), &[], entries)?,
                Err(error) => {
                    let path = blocks_path(&self.set, file);
                    return Err(ToolError::Block { path, offset: block.offset, error });
                }
            }
        }
        Ok(())
    }

    fn header(&self, file: u8) -> Header {
        let SetInfo { set, cut, history, created_ms, .. } = self.set;
        let files = self.set.files.len() as u8;
        Header { set, file, files, cut, history, created_ms, key_id: 0, spaces: self.spaces.clone() }
    }
}

fn blocks_path(set: &SetInfo, file: u8) -> std::path::PathBuf {
    Name::Snapshot { set: set.set, file }.to_string().into()
}

/// A file of a set; `None` if it is missing.
fn open(source: &DataDir, set: &SetInfo, file: u8) -> Result<Option<WholeBlocks>, ToolError> {
    let path = source.file(Name::Snapshot { set: set.set, file });
    match WholeBlocks::open(&**source.fs(), &path, set.set, file) {
        Ok(blocks) => Ok(Some(blocks)),
        Err(CheckpointError::FileMissing { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
