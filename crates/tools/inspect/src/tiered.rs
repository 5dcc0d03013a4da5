//! Values on a tier: whether the addresses that checkpoints have lead to them, and copies of the segments.
//!
//! The addresses are gathered first and sorted. Then each segment is read once, from its begin to its end.

use crate::copying::copy;
use crate::error::{ToolError, with_causes};
use crate::text::{count, size};
use base::HistoryId;
use base::checksum::crc32c;
use checkpoint::{DataDir, Manifest, TierInfo};
use engine::{Effect, Key, TierAddress};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tier::offline::COPY_DIR;
use tier::{TierError, TierId, offline};
use vfs::FileSystem;

/// Where the tier of a data directory is.
pub(crate) fn directory(source: &DataDir, info: &TierInfo) -> Result<PathBuf, ToolError> {
    Ok(offline::directory(&**source.fs(), source.path(), TierId(info.id), info.path())?)
}

/// Whether the tier of a data directory is in the directory itself.
pub(crate) fn is_own(source: &DataDir, info: &TierInfo) -> Result<bool, ToolError> {
    Ok(directory(source, info)?.starts_with(source.path()))
}

/// The key and the address of an entry whose value is on a tier.
fn address<'e>(effect: &Effect<'e>) -> Option<(Key<'e>, TierAddress)> {
    let Effect::StoreWith { key, fields, .. } = effect else { return None };
    Some((*key, fields.get().tier?))
}

/// A record that an entry names: offset, length, tag, and the checksum of the key.
type Named = (u32, u32, u32, u32);

/// Addresses of entries, by segment.
#[derive(Default)]
pub(crate) struct Addresses(Mutex<BTreeMap<u32, Vec<Named>>>);

impl Addresses {
    /// Notes the address of an entry, if it has one.
    pub fn note(&self, effect: &Effect<'_>) {
        if let Some((key, TierAddress { segment, offset, len, tag })) = address(effect) {
            let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            named.entry(segment).or_default().push((offset, len, tag, crc32c(key.bytes)));
        }
    }

    fn sorted(self) -> BTreeMap<u32, Vec<Named>> {
        let mut named = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        for records in named.values_mut() {
            records.sort_unstable();
            records.dedup();
        }
        named
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// Values that cannot be read, by segment and offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unreadable(BTreeSet<(u32, u32)>);

impl Unreadable {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the value of an entry lies there.
    pub fn has(&self, effect: &Effect<'_>) -> bool {
        !self.0.is_empty()
            && address(effect).is_some_and(|(_, address)| self.0.contains(&(address.segment, address.offset)))
    }
}

/// What segments are like.
#[derive(Default)]
pub(crate) struct Survey {
    pub segments: u64,
    pub bytes: u64,
    /// Values that are named and whole.
    pub values: u64,
    pub unreadable: Unreadable,
    /// What is lost, one line for each segment.
    pub damage: Vec<String>,
    /// Damage that no entry names.
    pub notes: Vec<String>,
}

/// Reads the segments that addresses name.
pub(crate) fn survey(fs: &dyn FileSystem, dir: &Path, addresses: Addresses) -> Result<Survey, ToolError> {
    let mut survey = Survey::default();
    for (segment, named) in addresses.sorted() {
        let path = offline::segment_path(dir, segment);
        let (lost, why) = match read_segment(fs, &path, &named, &mut survey) {
            Ok(lost) => (lost, "their records are damaged".to_owned()),
            Err(TierError::File(error)) if !error.is_not_found() => return Err(error.into()),
            Err(TierError::File(_)) => (offsets(&named), "the file is missing".to_owned()),
            Err(error) => (offsets(&named), with_causes(&error)),
        };
        survey.values += (named.len() - lost.len()) as u64;
        if let Some(first) = lost.first() {
            survey.damage.push(format!(
                "{}: {} cannot be read, the first at offset {}: {why}",
                path.display(),
                count(lost.len() as u64, "value", "values"),
                u64::from(*first) * 16
            ));
        }
        survey.unreadable.0.extend(lost.into_iter().map(|offset| (segment, offset)));
    }
    Ok(survey)
}

fn offsets(named: &[Named]) -> Vec<u32> {
    named.iter().map(|(offset, ..)| *offset).collect()
}

/// The offsets of named records that are not there.
fn read_segment(fs: &dyn FileSystem, path: &Path, named: &[Named], survey: &mut Survey) -> Result<Vec<u32>, TierError> {
    let mut scan = offline::scan(fs, path)?;
    let (mut lost, mut left) = (Vec::new(), named.iter().peekable());
    while let Some(found) = scan.next_record()? {
        let TierAddress { offset, len, tag, .. } = found.address;
        while let Some((missed, ..)) = left.next_if(|(at, ..)| *at < offset) {
            lost.push(*missed);
        }
        while let Some(at_it) = left.next_if(|(at, ..)| *at == offset) {
            if *at_it != (offset, len, tag, crc32c(found.record.key)) {
                lost.push(offset);
            }
        }
    }
    lost.extend(left.map(|(offset, ..)| *offset));
    (survey.segments, survey.bytes) = (survey.segments + 1, survey.bytes + scan.bytes());
    if let (true, Some(Range { start, end })) = (lost.is_empty(), scan.damaged().first()) {
        let (name, bytes) = (path.display(), size(end - start));
        survey.notes.push(format!("{name}: {bytes} at offset {start} are no record; no checkpoint names them"));
    }
    Ok(lost)
}

/// The segments that were written through memory. The command log may have addresses in any of them.
fn mapped(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<u32>, ToolError> {
    let all = match offline::segments(fs, dir) {
        Err(TierError::File(error)) if error.is_not_found() => Vec::new(),
        all => all?,
    };
    let is_mapped = |segment: u32| {
        let scan = offline::scan(fs, &offline::segment_path(dir, segment));
        scan.is_ok_and(|scan| scan.is_preallocated())
    };
    Ok(all.into_iter().map(|(segment, _)| segment).filter(|segment| is_mapped(*segment)).collect())
}

/// Copies or links the segments that a set of the target names, and all that were written through memory, into a tier
/// of its own within the target, and checks what the set names. The target will be at `at`. `history` gives its id.
/// Gives what the manifest says of it.
pub(crate) fn copy_tier(
    source: &DataDir,
    target: &DataDir,
    manifest: &Manifest,
    (named, links): (Addresses, bool),
    (history, at): (&HistoryId, &Path),
    say: &mut dyn FnMut(&str),
) -> Result<Option<TierInfo>, ToolError> {
    let Some(info) = &manifest.tier else { return Ok(None) };
    let (from, into) = (directory(source, info)?, target.path().join(COPY_DIR));
    let [id @ .., _, _, _, _] = history.0;
    let fs = &**target.fs();
    let mut segments: BTreeSet<u32> = named.0.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect();
    segments.extend(mapped(fs, &from)?);
    if segments.is_empty() {
        return Ok(None);
    }
    offline::create(fs, &into, TierId(id))?;
    for segment in segments {
        let (from, to) = (offline::segment_path(&from, segment), offline::segment_path(&into, segment));
        match copy(fs, &from, &to, links) {
            Ok(how) => say(&format!("{how} {}", to.display())),
            // Its keys answer an error, as they did before.
            Err(ToolError::Fs(error)) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    fs.sync_dir(&into)?;
    let survey = survey(fs, &into, named)?;
    for line in &survey.damage {
        say(&format!("note: {line}; reads of their keys answer an error"));
    }
    let at = at.join(COPY_DIR);
    let dir = std::path::absolute(&at).unwrap_or(at);
    say(&format!("start the server with --tier-dir {}", dir.display()));
    Ok(Some(TierInfo { id, dir: OsStr::as_bytes(dir.as_os_str()).to_vec() }))
}
