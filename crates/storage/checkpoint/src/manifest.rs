//! The manifest: which snapshot files count, and where the needed part of the log begins.
//!
//! M1. It is replaced as a whole: written to a new file, synced, renamed, the directory synced. So a reader finds one
//!     manifest or its successor.
//! M2. Until a replacement is known to be durable, a power cut may leave the old or the new; files that either names
//!     are kept. A manifest found at a start is not known to be durable: the previous process may have ended, or
//!     failed, before its sync. It is written once more before anything is removed.
//! M3. A dictionary is named, durably, before any value is compressed with it. It stays named until every kept set has
//!     a cut after which no value and no encoder in memory used it. So every set, and the log after it, is readable
//!     with the named dictionaries.

use crate::dir::DataDir;
use crate::envelope::{self, Kind};
use crate::names::Name;
use crate::{CheckpointError, SetId};
use base::{HistoryId, KeyspaceId, Lsn, Rng, UnixMs, varint};
use codec::{CodecError, Dictionary, DictionaryNumber, FileHash};
use std::ffi::OsStr;
use std::num::NonZeroU32;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use value::wire;

/// The manifest's frame.
pub(crate) const MANIFEST: Kind = Kind {
    magic: *b"OnggiMAN",
    version: 3,
    body_len_max: 16 << 20,
    lost: "which checkpoint counts; restore the MANIFEST from a backup",
};

/// The number of the part that names the keyspaces with rows on disk.
const DISK_PART: u64 = 1;

/// The number of the part that names the tier.
const TIER_PART: u64 = 2;

/// The number of the part that names the copies of rows that sets have.
const COPIES_PART: u64 = 5;

/// Which parts a version of the program can use, and names of further ones. It refuses those that it cannot use: none
/// may be ignored.
struct Parts<'a> {
    used: &'a [u64],
    reserved: &'a [(u64, &'static str)],
}

impl Parts<'_> {
    const OF_THIS_VERSION: Parts<'static> = Parts {
        used: &[DISK_PART, TIER_PART, COPIES_PART],
        reserved: &[(3, "a function library"), (4, "cluster slots")],
    };

    fn name(&self, number: u64) -> &'static str {
        self.reserved.iter().find(|part| part.0 == number).map_or("a part of a later version", |part| part.1)
    }
}

/// Keyspaces on disk, at most.
const DISK_SPACES_MAX: usize = 1 << 16;

/// Ends of past histories that are kept. A replica that misses more unclean stops needs a full sync.
const PARENTS_MAX: usize = 1000;

/// The secret key of hash functions whose results are stored. A data directory receives it at its first start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey(pub [u8; 16]);

impl HashKey {
    /// A new random key.
    pub fn random(rng: &mut Rng) -> Self {
        let mut bytes = [0; 16];
        rng.fill(&mut bytes);
        Self(bytes)
    }
}

impl std::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashKey(secret)")
    }
}

/// The tier that values of this directory may lie on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierInfo {
    /// Which tier it is.
    pub id: [u8; 16],
    /// Its directory at the last start, as bytes of a path.
    pub dir: Vec<u8>,
}

impl TierInfo {
    /// Its directory at the last start.
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.dir))
    }
}

/// A snapshot file, as the manifest names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Length of the file.
    pub bytes: u64,
    /// Entries in it.
    pub entries: u64,
    /// The checksum at its end, which covers the whole file.
    pub crc: u32,
}

/// The copy of the rows of databases on disk that belongs to a set, in [`Name::RowsOf`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowsInfo {
    /// The position up to which it has all changes, at or before the cut of the set.
    pub lsn: Lsn,
    /// The keyspaces whose rows it has, ascending.
    pub spaces: Vec<KeyspaceId>,
}

/// A set of snapshot files: one checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetInfo {
    /// Its number.
    pub set: SetId,
    /// The position in the log that it represents.
    pub cut: Lsn,
    /// The history that `cut` belongs to.
    pub history: HistoryId,
    /// When the cut was made.
    pub created_ms: UnixMs,
    /// Where the log continues from it; `None` if the log was off.
    pub log_from: Option<Lsn>,
    /// Its files by number. The set that represents the empty beginning of a log has none; see [`Manifest::beginning`].
    pub files: Vec<FileInfo>,
    /// The copy of rows that it has; `None` when no database was on disk.
    pub rows: Option<RowsInfo>,
}

impl SetInfo {
    /// Where the log begins that brings the set, and its rows, forward; `None` if the log was off.
    pub fn replay_from(&self) -> Option<Lsn> {
        let rows = self.rows.as_ref().map_or(Lsn(u64::MAX), |rows| rows.lsn);
        self.log_from.map(|from| from.min(rows))
    }

    /// Bytes of all its files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
    }

    /// Entries in all its files.
    pub fn entries(&self) -> u64 {
        self.files.iter().map(|file| file.entries).fold(0, u64::saturating_add)
    }
}

/// A dictionary that values in sets, in the log or in memory may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DictionaryInfo {
    /// The number by which values name it.
    pub number: DictionaryNumber,
    /// Its file.
    pub hash: FileHash,
    /// The first set that does not need it, and neither does the log after it; `None` if there is no such set yet.
    pub unneeded_from: Option<SetId>,
}

impl DictionaryInfo {
    /// Whether values of the set, or of the log between it and the next set, may name it.
    pub fn is_needed_by(&self, set: SetId) -> bool {
        self.unneeded_from.is_none_or(|first| set < first)
    }
}

/// Whether changes are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogState {
    /// Whether the log is on. If so, recovery replays it from the newest set's `log_from`.
    pub on: bool,
    /// The position at which it was turned on or off.
    pub since: Lsn,
    /// The time of that change.
    pub since_ms: UnixMs,
}

/// The contents of the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The history in use.
    pub history: HistoryId,
    /// Histories before it, newest first, each with its last LSN.
    pub parents: Vec<(HistoryId, Lsn)>,
    /// Whether changes are logged, and since when.
    pub log: LogState,
    /// Checkpoints, oldest first. A restart loads the newest.
    pub sets: Vec<SetInfo>,
    /// Dictionaries, by number.
    pub dictionaries: Vec<DictionaryInfo>,
    /// The highest dictionary number ever assigned; 0 if there was none.
    pub last_dictionary: u32,
    /// The directory's hash key; `None` if no version that writes one has started in it.
    pub hash_key: Option<HashKey>,
    /// The keyspaces whose rows are in [`Name::Rows`], ascending. No set has entries of them, and replay of the log
    /// begins for them at the position that the rows have.
    pub disk_spaces: Vec<KeyspaceId>,
    /// The position at which the last of them came to disk. A set after it without a copy of rows
    /// ([`SetInfo::rows`]) is of a version that made none, and does not have these databases.
    pub disk_since: Lsn,
    /// The tier: entries of sets may have addresses on it. Programs that know none refuse such a manifest.
    pub tier: Option<TierInfo>,
}

impl Manifest {
    /// The manifest of an empty directory.
    pub fn new(history: HistoryId, log: LogState) -> Self {
        let (parents, sets, dictionaries) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            history,
            parents,
            log,
            sets,
            dictionaries,
            last_dictionary: 0,
            hash_key: None,
            disk_spaces: Vec::new(),
            disk_since: Lsn(0),
            tier: None,
        }
    }

    /// The checkpoint a restart loads.
    pub fn newest(&self) -> Option<&SetInfo> {
        self.sets.last()
    }

    /// Continues under another history; the current one ended at `last`.
    pub fn begin_history(&mut self, history: HistoryId, last: Lsn) {
        self.parents.insert(0, (self.history, last));
        self.parents.truncate(PARENTS_MAX);
        self.history = history;
    }

    /// The empty state before the log's first record, as a set without files: a log that is on and has no set yet began
    /// empty. It serves as an older checkpoint: a restore can return to a moment before a FLUSHALL.
    pub fn beginning(&self) -> Option<SetInfo> {
        let LogState { on, since, since_ms } = self.log;
        let history =
            self.parents.iter().rev().find(|(_, last)| since < *last).map_or(self.history, |(history, _)| *history);
        (on && self.sets.is_empty()).then(|| SetInfo {
            set: SetId(0),
            cut: since,
            history,
            created_ms: since_ms,
            log_from: Some(since),
            files: Vec::new(),
            rows: None,
        })
    }

    /// Where the needed part of the log begins: at the oldest set, or at the log's beginning if there is no set. `None`
    /// if no part of it is needed.
    pub fn log_needed_from(&self) -> Option<Lsn> {
        match self.sets.first() {
            None => self.log.on.then_some(self.log.since),
            Some(_) => self.sets.iter().filter_map(SetInfo::replay_from).min(),
        }
    }

    /// Whether the log connects one set to a later one without a gap, so that every moment between can be restored.
    pub fn leads(&self, from: &SetInfo, to: &SetInfo) -> bool {
        let is_logged = from.log_from.is_some() && to.log_from.is_some();
        is_logged && (from.history == to.history || (self.log.on && from.cut >= self.log.since))
    }

    /// The set from which every moment up to now can be restored, as far as a log connects them; `None` without any
    /// set.
    pub fn restorable_from(&self) -> Option<&SetInfo> {
        let mut sets = self.sets.iter().rev();
        let newest = sets.next()?;
        Some(sets.take_while(|set| self.leads(set, newest)).last().unwrap_or(newest))
    }

    /// Whether it names this snapshot file.
    pub fn names(&self, set: SetId, file: u8) -> bool {
        self.sets.iter().any(|info| info.set == set && usize::from(file) < info.files.len())
    }

    /// Whether it names the copy of rows of this set.
    pub fn names_rows(&self, set: SetId) -> bool {
        self.sets.iter().any(|info| info.set == set && info.rows.is_some())
    }

    /// The keyspaces that are on disk in the state of a set. A state without any set is that of the log's beginning,
    /// where all keyspaces are empty. `None` when the set lacks their rows.
    pub fn spaces_on_disk(&self, set: Option<&SetInfo>) -> Option<Vec<KeyspaceId>> {
        match set {
            None => Some(self.disk_spaces.clone()),
            Some(SetInfo { rows: Some(rows), .. }) => Some(rows.spaces.clone()),
            Some(set) if self.disk_spaces.is_empty() || set.cut <= self.disk_since => Some(Vec::new()),
            Some(_) => None,
        }
    }

    /// Whether it names this dictionary file.
    pub fn names_dictionary(&self, hash: FileHash) -> bool {
        self.dictionaries.iter().any(|info| info.hash == hash)
    }

    /// The dictionaries that a start needs to load the newest set and to replay the log after it.
    pub fn dictionaries_in_use(&self) -> impl Iterator<Item = &DictionaryInfo> {
        self.dictionaries.iter().filter(|info| info.unneeded_from.is_none())
    }

    /// Opens the dictionaries that a start needs.
    ///
    /// # Errors
    /// A dictionary is missing or damaged, or has another number than the manifest gives.
    pub fn open_dictionaries(&self, dir: &DataDir) -> Result<Vec<Dictionary>, CodecError> {
        let open = |info: &DictionaryInfo| {
            let found = Dictionary::open(&**dir.fs(), dir.path(), info.hash)?;
            match found.number() == info.number {
                true => Ok(found),
                false => Err(CodecError::File {
                    path: dir.file(Name::Dictionary(info.hash)),
                    reason: format!("it has number {}, and MANIFEST says {}", found.number(), info.number),
                }),
            }
        };
        self.dictionaries_in_use().map(open).collect()
    }

    /// Adds a dictionary. Its number must be above all earlier ones.
    pub fn add_dictionary(&mut self, number: DictionaryNumber, hash: FileHash) {
        self.last_dictionary = self.last_dictionary.max(number.0.get());
        self.dictionaries.push(DictionaryInfo { number, hash, unneeded_from: None });
    }

    /// Records that the newest set, and everything after its cut, needs only the dictionaries for which `is_in_use` is
    /// true. Drops the dictionaries that no set needs.
    pub fn retire_dictionaries(&mut self, is_in_use: impl Fn(DictionaryNumber) -> bool) {
        let Some(newest) = self.newest().map(|set| set.set) else { return };
        let retired =
            self.dictionaries.iter_mut().filter(|info| info.unneeded_from.is_none() && !is_in_use(info.number));
        retired.for_each(|info| info.unneeded_from = Some(newest));
        let sets = &self.sets;
        self.dictionaries.retain(|info| sets.iter().any(|set| info.is_needed_by(set.set)));
    }

    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let out = &mut body;
        out.extend_from_slice(&self.history.0);
        varint::put(out, self.parents.len() as u64);
        for (history, last) in &self.parents {
            out.extend_from_slice(&history.0);
            varint::put(out, last.0);
        }
        out.push(u8::from(self.log.on));
        varint::put(out, self.log.since.0);
        envelope::put_time(out, self.log.since_ms);
        varint::put(out, self.sets.len() as u64);
        self.sets.iter().for_each(|set| put_set(out, set));
        varint::put(out, u64::from(self.last_dictionary));
        varint::put(out, self.dictionaries.len() as u64);
        self.dictionaries.iter().for_each(|info| put_dictionary(out, info));
        out.push(u8::from(self.hash_key.is_some()));
        out.extend(self.hash_key.into_iter().flat_map(|key| key.0));
        let copies: Vec<_> = self.sets.iter().filter_map(|set| Some((set.set, set.rows.as_ref()?))).collect();
        let has_copies = !copies.is_empty() || self.disk_since > Lsn(0);
        let parts = [!self.disk_spaces.is_empty(), self.tier.is_some(), has_copies];
        varint::put(out, parts.into_iter().filter(|has| *has).count() as u64);
        if !self.disk_spaces.is_empty() {
            let mut part = Vec::new();
            envelope::put_spaces(&mut part, &self.disk_spaces);
            varint::put(out, DISK_PART);
            wire::put_string(out, &part);
        }
        if let Some(tier) = &self.tier {
            varint::put(out, TIER_PART);
            wire::put_string(out, &[&tier.id[..], &tier.dir].concat());
        }
        if has_copies {
            let mut part = Vec::new();
            varint::put(&mut part, self.disk_since.0);
            varint::put(&mut part, copies.len() as u64);
            for (set, rows) in copies {
                varint::put(&mut part, u64::from(set.0));
                varint::put(&mut part, rows.lsn.0);
                envelope::put_spaces(&mut part, &rows.spaces);
            }
            varint::put(out, COPIES_PART);
            wire::put_string(out, &part);
        }
        envelope::seal(&MANIFEST, &body)
    }

    /// Decodes the bytes of the file at `path`; errors name the path.
    ///
    /// # Errors
    /// [`CheckpointError::Newer`] for a newer format; [`CheckpointError::Reserved`] for a part that only a newer
    /// program can use; [`CheckpointError::Damaged`] for anything else that [`Manifest::encode`] does not write in this
    /// or an earlier version.
    pub fn decode(path: &Path, bytes: &[u8]) -> Result<Self, CheckpointError> {
        Self::decode_as(path, bytes, &Parts::OF_THIS_VERSION)
    }

    fn decode_as(path: &Path, bytes: &[u8], parts: &Parts<'_>) -> Result<Self, CheckpointError> {
        let (version, body) = envelope::open(&MANIFEST, path, bytes)?;
        let malformed = || {
            let what = "its fields are malformed though the checksum is right".to_owned();
            envelope::damaged(&MANIFEST, path, envelope::PREFIX_LEN as u64, what)
        };
        let (manifest, reserved) = take_manifest(version, body, parts).ok_or_else(malformed)?;
        match reserved {
            None => Ok(manifest),
            Some(what) => Err(CheckpointError::Reserved { path: path.into(), what }),
        }
    }
}

fn put_set(out: &mut Vec<u8>, set: &SetInfo) {
    varint::put(out, u64::from(set.set.0));
    varint::put(out, set.cut.0);
    out.extend_from_slice(&set.history.0);
    envelope::put_time(out, set.created_ms);
    out.push(u8::from(set.log_from.is_some()));
    if let Some(from) = set.log_from {
        varint::put(out, from.0);
    }
    varint::put(out, set.files.len() as u64);
    for file in &set.files {
        varint::put(out, file.bytes);
        varint::put(out, file.entries);
        out.extend_from_slice(&file.crc.to_le_bytes());
        // The cipher: not encrypted.
        out.extend_from_slice(&0u32.to_le_bytes());
    }
}

fn put_dictionary(out: &mut Vec<u8>, info: &DictionaryInfo) {
    varint::put(out, u64::from(info.number.0.get()));
    out.extend_from_slice(&info.hash.0.to_le_bytes());
    out.push(u8::from(info.unneeded_from.is_some()));
    if let Some(set) = info.unneeded_from {
        varint::put(out, u64::from(set.0));
    }
}

/// A manifest, and the name of a part that the program cannot use.
fn take_manifest(version: u32, mut rest: &[u8], program: &Parts<'_>) -> Option<(Manifest, Option<&'static str>)> {
    let rest = &mut rest;
    let mut is_encrypted = false;
    let history = envelope::take_history(rest)?;
    let parents = envelope::take_list(rest, |rest| Some((envelope::take_history(rest)?, envelope::take_lsn(rest)?)))?;
    let on = take_flag(rest)?;
    let log = LogState { on, since: envelope::take_lsn(rest)?, since_ms: envelope::take_time(rest)? };
    let mut sets = envelope::take_list(rest, |rest| take_set(version, rest, &mut is_encrypted))?;
    let (last_dictionary, dictionaries) = match version {
        // Version 1 had none.
        1 => (0, Vec::new()),
        _ => (u32::try_from(varint::take(rest)?).ok()?, envelope::take_list(rest, take_dictionary)?),
    };
    let (hash_key, parts) = match version {
        1 | 2 => (None, Vec::new()),
        _ => {
            let hash_key = if take_flag(rest)? { Some(HashKey(envelope::take(rest)?)) } else { None };
            let take_part = |rest: &mut &[u8]| {
                let number = varint::take(rest)?;
                wire::take_string(rest).map(|part| (number, part.to_vec()))
            };
            (hash_key, envelope::take_list(rest, take_part)?)
        }
    };
    let ascending = sets.is_sorted_by(|a, b| a.set < b.set)
        && dictionaries.is_sorted_by(|a, b| a.number < b.number)
        && parts.is_sorted_by(|a, b| a.0 < b.0)
        && dictionaries.last().is_none_or(|last| last.number.0.get() <= last_dictionary);
    let disk_part = parts.iter().find(|part| part.0 == DISK_PART);
    let disk_spaces = disk_part.map_or(Some(Vec::new()), |(_, part)| take_disk_spaces(part))?;
    let tier_part = parts.iter().find(|part| part.0 == TIER_PART);
    let tier = tier_part.map_or(Some(None), |(_, part)| take_tier(part).map(Some))?;
    let copies_part = parts.iter().find(|part| part.0 == COPIES_PART);
    let disk_since = copies_part.map_or(Some(Lsn(0)), |(_, part)| take_copies(part, &mut sets))?;
    let manifest = Manifest {
        history,
        parents,
        log,
        sets,
        dictionaries,
        last_dictionary,
        hash_key,
        disk_spaces,
        disk_since,
        tier,
    };
    let unusable = parts.iter().find(|part| !program.used.contains(&part.0));
    let reserved =
        unusable.map(|(number, _)| program.name(*number)).or(is_encrypted.then_some("an encrypted snapshot file"));
    (rest.is_empty() && ascending).then_some((manifest, reserved))
}

/// The id and the directory of a tier.
fn take_tier(part: &[u8]) -> Option<TierInfo> {
    let (id, dir) = part.split_first_chunk()?;
    Some(TierInfo { id: *id, dir: dir.to_vec() })
}

/// The copies of rows that sets have, and the position since which databases are on disk.
fn take_copies(mut part: &[u8], sets: &mut [SetInfo]) -> Option<Lsn> {
    let part = &mut part;
    let since = envelope::take_lsn(part)?;
    let copies = envelope::take_list(part, |part| {
        let set = SetId(u32::try_from(varint::take(part)?).ok()?);
        let rows = RowsInfo { lsn: envelope::take_lsn(part)?, spaces: envelope::take_spaces(part)? };
        let is_possible = (1..=DISK_SPACES_MAX).contains(&rows.spaces.len());
        (is_possible && rows.spaces.is_sorted_by(|a, b| a < b)).then_some((set, rows))
    })?;
    if !part.is_empty() || !copies.is_sorted_by(|a, b| a.0 < b.0) {
        return None;
    }
    for (number, rows) in copies {
        let set = sets.iter_mut().find(|set| set.set == number)?;
        set.rows = Some(rows).filter(|rows| rows.lsn <= set.cut);
        set.rows.as_ref()?;
    }
    Some(since)
}

/// The keyspaces with rows on disk: some, ascending.
fn take_disk_spaces(mut part: &[u8]) -> Option<Vec<KeyspaceId>> {
    let part = &mut part;
    let spaces = envelope::take_spaces(part)?;
    let is_possible = part.is_empty() && (1..=DISK_SPACES_MAX).contains(&spaces.len());
    (is_possible && spaces.is_sorted_by(|a, b| a < b)).then_some(spaces)
}

fn take_set(version: u32, rest: &mut &[u8], is_encrypted: &mut bool) -> Option<SetInfo> {
    let set = SetId(u32::try_from(varint::take(rest)?).ok()?);
    let (cut, history, created_ms) =
        (envelope::take_lsn(rest)?, envelope::take_history(rest)?, envelope::take_time(rest)?);
    let log_from = if take_flag(rest)? { Some(envelope::take_lsn(rest)?) } else { None };
    let files = envelope::take_list(rest, |rest| {
        let (bytes, entries) = (varint::take(rest)?, varint::take(rest)?);
        let crc = envelope::take_u32(rest)?;
        *is_encrypted |= version > 2 && envelope::take_u32(rest)? != 0;
        Some(FileInfo { bytes, entries, crc })
    })?;
    let possible = files.len() <= usize::from(crate::names::FILE_NUMBER_MAX) + 1;
    possible.then_some(SetInfo { set, cut, history, created_ms, log_from, files, rows: None })
}

fn take_dictionary(rest: &mut &[u8]) -> Option<DictionaryInfo> {
    let number = NonZeroU32::new(u32::try_from(varint::take(rest)?).ok()?).map(DictionaryNumber)?;
    let hash = FileHash(envelope::take_u128(rest)?);
    let unneeded_from = if take_flag(rest)? { Some(SetId(u32::try_from(varint::take(rest)?).ok()?)) } else { None };
    Some(DictionaryInfo { number, hash, unneeded_from })
}

fn take_flag(rest: &mut &[u8]) -> Option<bool> {
    match envelope::take_u8(rest)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// The manifest of an open data directory: the only way to change it, and to remove files that it no longer names.
#[derive(Debug)]
pub struct ManifestFile {
    current: Manifest,
    /// Whether `current` is known to survive a power cut (M2).
    is_durable: bool,
    /// The manifests of failed replacements: one of them may be on the disk (M2).
    unsure: Vec<Manifest>,
    /// The highest set number assigned.
    last_set: SetId,
}

impl ManifestFile {
    /// Reads the manifest; `None` in a directory that holds no data yet. Changes nothing.
    ///
    /// # Errors
    /// [`CheckpointError::ManifestMissing`] if data files exist without one; otherwise as [`Manifest::decode`].
    pub fn load(dir: &DataDir) -> Result<Option<Self>, CheckpointError> {
        let path = dir.file(Name::Manifest);
        let listing = dir.list()?;
        if !listing.manifest {
            let snapshot = listing.snapshots.first().map(|&(set, file)| Name::Snapshot { set, file });
            let log = listing.logs.first().map(|&first| Name::Log { first });
            let rows = listing.rows.then_some(Name::Rows);
            let rows = rows.or(listing.row_copies.first().map(|set| Name::RowsOf { set: *set }));
            let found = snapshot.or(log).or(listing.dictionaries.first().copied()).or(rows);
            return match found {
                None => Ok(None),
                Some(found) => {
                    Err(CheckpointError::ManifestMissing { path: dir.path().into(), found: found.to_string() })
                }
            };
        }
        let len_max = envelope::PREFIX_LEN + MANIFEST.body_len_max as usize + envelope::SUFFIX_LEN;
        let bytes = match vfs::read_file(&**dir.fs(), &path, len_max) {
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
                let what = format!("longer than {len_max} bytes, which no manifest is");
                return Err(envelope::damaged(&MANIFEST, &path, len_max as u64, what));
            }
            read => read?,
        };
        let current = Manifest::decode(&path, &bytes)?;
        let named = current.sets.last().map_or(SetId(0), |set| set.set);
        let copies = listing.row_copies.last().copied();
        let lying = listing.snapshots.last().map(|&(set, _)| set).max(copies).unwrap_or_default();
        Ok(Some(Self { current, is_durable: false, unsure: Vec::new(), last_set: named.max(lying) }))
    }

    /// Writes the first manifest of a directory. Call it before anything else is written there.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn create(dir: &DataDir, first: Manifest) -> Result<Self, CheckpointError> {
        let mut file = Self { current: first.clone(), is_durable: false, unsure: Vec::new(), last_set: SetId(0) };
        file.commit(dir, first)?;
        Ok(file)
    }

    /// The current manifest.
    pub fn current(&self) -> &Manifest {
        &self.current
    }

    /// A number for the next set.
    pub fn next_set(&mut self) -> SetId {
        self.last_set = SetId(self.last_set.0.saturating_add(1));
        self.last_set
    }

    /// Replaces the manifest. When this returns, `next` is durable and its checkpoint counts. All files that it names
    /// must be durable before. Blocks for two syncs.
    ///
    /// # Errors
    /// The operating system's error. [`ManifestFile::current`] stays unchanged, and a power cut may leave either
    /// manifest: files that `next` names are kept until a later commit succeeds.
    pub fn commit(&mut self, dir: &DataDir, next: Manifest) -> Result<(), CheckpointError> {
        match vfs::replace_file(&**dir.fs(), &dir.file(Name::Manifest), &next.encode()) {
            Ok(()) => {
                (self.current, self.is_durable) = (next, true);
                self.unsure.clear();
                Ok(())
            }
            Err(error) => {
                self.unsure.push(next);
                Err(error.into())
            }
        }
    }

    /// Where the part of the log begins that any manifest on the disk may need; `None` if no part is needed. Remove
    /// segments before it only after [`ManifestFile::settle`] has succeeded.
    pub fn log_needed_from(&self) -> Option<Lsn> {
        self.manifests().filter_map(Manifest::log_needed_from).min()
    }

    /// Ensures that the current manifest is durable (M2). Does nothing if that is known.
    ///
    /// # Errors
    /// As [`ManifestFile::commit`].
    pub fn settle(&mut self, dir: &DataDir) -> Result<(), CheckpointError> {
        if self.is_durable && self.unsure.is_empty() { Ok(()) } else { self.commit(dir, self.current.clone()) }
    }

    /// Removes the remains of an unfinished checkpoint without writing anything. These are sets after the manifest's
    /// newest that neither it nor an earlier manifest names (M2), and an unfinished replacement of the manifest. For a
    /// disk without room for the manifest that [`ManifestFile::prune`] writes first. Returns the bytes freed.
    ///
    /// # Errors
    /// As [`ManifestFile::load`]; or a file cannot be removed.
    pub fn remove_unfinished(dir: &DataDir) -> Result<u64, CheckpointError> {
        let Some(file) = Self::load(dir)? else { return Ok(0) };
        let listing = dir.list()?;
        let newest = file.current.newest().map_or(SetId(0), |set| set.set);
        let mut freed = 0;
        for set in listing.row_copies.into_iter().filter(|set| *set > newest) {
            freed += dir.remove_rows_of(set)?;
        }
        let snapshots = listing.snapshots.into_iter().filter(|(set, _)| *set > newest);
        let mut names: Vec<Name> = snapshots.map(|(set, file)| Name::Snapshot { set, file }).collect();
        names.extend(listing.manifest_replacement.then_some(Name::ManifestReplacement));
        for path in names.into_iter().map(|name| dir.file(name)) {
            freed += dir.fs().metadata(&path)?.len;
            dir.fs().remove_file(&path)?;
        }
        Ok(freed)
    }

    /// Removes snapshot files and dictionaries that no manifest on the disk can name: sets that retention dropped,
    /// remains of unfinished checkpoints, unused dictionaries. Keeps `writing`, a set that is being written. A start
    /// calls this after it has loaded the newest set. Returns the bytes freed.
    ///
    /// # Errors
    /// As [`ManifestFile::settle`]; then nothing is removed. A file that cannot be removed ends the call with the
    /// operating system's error; the next call retries.
    pub fn prune(&mut self, dir: &DataDir, writing: Option<SetId>) -> Result<u64, CheckpointError> {
        self.settle(dir)?;
        let listing = dir.list()?;
        let snapshots = listing.snapshots.into_iter().map(|(set, file)| Name::Snapshot { set, file });
        let mut freed = 0;
        for set in listing.row_copies {
            if Some(set) != writing && !self.manifests().any(|manifest| manifest.names_rows(set)) {
                freed += dir.remove_rows_of(set)?;
            }
        }
        for name in snapshots.chain(listing.dictionaries) {
            let is_needed = match name {
                Name::Snapshot { set, file } => {
                    Some(set) == writing || self.manifests().any(|manifest| manifest.names(set, file))
                }
                Name::Dictionary(hash) => self.manifests().any(|manifest| manifest.names_dictionary(hash)),
                _ => false,
            };
            if !is_needed {
                let path = dir.file(name);
                let bytes = dir.fs().metadata(&path)?.len;
                dir.fs().remove_file(&path)?;
                freed += bytes;
            }
        }
        Ok(freed)
    }

    fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        std::iter::once(&self.current).chain(&self.unsure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(manifest: &Manifest) -> Vec<u32> {
        manifest.dictionaries.iter().map(|info| info.number.0.get()).collect()
    }

    /// A part for later versions is refused by its name; the manifest does not count as damaged.
    #[test]
    fn parts_of_later_versions_are_refused_by_name() {
        let mut manifest = Manifest::new(HistoryId([1; 20]), LogState { on: true, since: Lsn(0), since_ms: 0 });
        manifest.hash_key = Some(HashKey([7; 16]));
        let path = Path::new("MANIFEST");
        let bytes = manifest.encode();
        assert_eq!(Manifest::decode(path, &bytes).expect("it was just written"), manifest);
        let body = &bytes[envelope::PREFIX_LEN..bytes.len() - envelope::SUFFIX_LEN];
        let (last, before) = body.split_last().expect("there is a count of parts");
        assert_eq!((*last, before.last()), (0, Some(&7)));
        let reserved = Parts::OF_THIS_VERSION.reserved.iter().copied();
        for (number, name) in reserved.chain([(9, "a part of a later version")]) {
            let part = [before, &[1, number as u8, 2, b'x', b'y']].concat();
            match Manifest::decode(path, &envelope::seal(&MANIFEST, &part)) {
                Err(CheckpointError::Reserved { what, .. }) => assert_eq!(what, name),
                other => panic!("{other:?}"),
            }
        }
    }

    /// The keyspaces on disk are named, and what is no ascending list of some is refused.
    #[test]
    fn keyspaces_on_disk() {
        let log = LogState { on: true, since: Lsn(0), since_ms: 0 };
        let disk_spaces = vec![KeyspaceId(0), KeyspaceId(300)];
        let manifest = Manifest { disk_spaces, ..Manifest::new(HistoryId([1; 20]), log) };
        let (path, bytes) = (Path::new("MANIFEST"), manifest.encode());
        assert_eq!(Manifest::decode(path, &bytes).expect("it was just written"), manifest);
        let body = &bytes[envelope::PREFIX_LEN..bytes.len() - envelope::SUFFIX_LEN];
        let before = body.strip_suffix(&[1, 1, 4, 2, 0, 0xac, 2]).expect("one part, of two keyspaces");
        for part in [&[1, 1, 1, 0][..], &[1, 1, 3, 2, 1, 1], &[1, 1, 3, 2, 2, 1], &[1, 1, 3, 1, 0, 0]] {
            let bytes = envelope::seal(&MANIFEST, &[before, part].concat());
            assert!(matches!(Manifest::decode(path, &bytes), Err(CheckpointError::Damaged { .. })), "{part:?}");
        }
    }

    /// Sets name their copies of rows, and what cannot be one is refused.
    #[test]
    fn copies_of_rows() {
        let (history, log) = (HistoryId([1; 20]), LogState { on: true, since: Lsn(0), since_ms: 0 });
        let set = |set, rows| SetInfo {
            set: SetId(set),
            cut: Lsn(300),
            history,
            created_ms: 0,
            log_from: Some(Lsn(300)),
            files: vec![FileInfo { bytes: 1, entries: 0, crc: 0 }],
            rows,
        };
        let rows = RowsInfo { lsn: Lsn(200), spaces: vec![KeyspaceId(0), KeyspaceId(3)] };
        let disk_spaces = vec![KeyspaceId(0), KeyspaceId(3)];
        let sets = vec![set(1, None), set(2, Some(rows))];
        let manifest = Manifest { sets, disk_spaces, disk_since: Lsn(100), ..Manifest::new(history, log) };
        let (path, bytes) = (Path::new("MANIFEST"), manifest.encode());
        assert_eq!(Manifest::decode(path, &bytes).expect("it was just written"), manifest);
        assert_eq!(manifest.log_needed_from(), Some(Lsn(200)), "the rows of the second set need the log from there on");
        assert!(manifest.names_rows(SetId(2)) && !manifest.names_rows(SetId(1)));
        assert_eq!(manifest.spaces_on_disk(manifest.sets.first()), None, "it was made when they were on disk");
        assert_eq!(manifest.spaces_on_disk(manifest.sets.last()), Some(manifest.disk_spaces.clone()));
        let earlier = SetInfo { cut: Lsn(100), ..set(1, None) };
        assert_eq!(manifest.spaces_on_disk(Some(&earlier)), Some(Vec::new()), "they were in memory");
        let body = &bytes[envelope::PREFIX_LEN..bytes.len() - envelope::SUFFIX_LEN];
        let before = body.strip_suffix(&[5, 8, 100, 1, 2, 0xc8, 1, 2, 0, 3]).expect("the example of manifest.md");
        for part in [
            // No such set; a position after its cut; no keyspace; keyspaces that do not ascend; a byte too many.
            &[5, 8, 100, 1, 9, 0xc8, 1, 2, 0, 3][..],
            &[5, 8, 100, 1, 2, 0xc8, 3, 2, 0, 3],
            &[5, 6, 100, 1, 2, 0xc8, 1, 0],
            &[5, 8, 100, 1, 2, 0xc8, 1, 2, 3, 3],
            &[5, 9, 100, 1, 2, 0xc8, 1, 2, 0, 3, 0],
        ] {
            let bytes = envelope::seal(&MANIFEST, &[before, part].concat());
            assert!(matches!(Manifest::decode(path, &bytes), Err(CheckpointError::Damaged { .. })), "{part:?}");
        }
    }

    /// The tier is named by its id and its directory, after the keyspaces on disk; a part that is too short is refused.
    #[test]
    fn a_tier() {
        let log = LogState { on: true, since: Lsn(0), since_ms: 0 };
        let tier = Some(TierInfo { id: *b"0123456789abcdef", dir: b"/tier".to_vec() });
        let disk_spaces = vec![KeyspaceId(0)];
        let manifest = Manifest { tier, disk_spaces, ..Manifest::new(HistoryId([1; 20]), log) };
        let (path, bytes) = (Path::new("MANIFEST"), manifest.encode());
        let decoded = Manifest::decode(path, &bytes).expect("it was just written");
        assert_eq!(decoded, manifest);
        assert_eq!(decoded.tier.expect("there is one").path(), Path::new("/tier"));
        let body = &bytes[envelope::PREFIX_LEN..bytes.len() - envelope::SUFFIX_LEN];
        let before = body.strip_suffix(b"\x02\x01\x02\x01\0\x02\x150123456789abcdef/tier").expect("two parts");
        let short = [before, b"\x01\x02\x0f0123456789abcde"].concat();
        let decoded = Manifest::decode(path, &envelope::seal(&MANIFEST, &short));
        assert!(matches!(decoded, Err(CheckpointError::Damaged { .. })), "{decoded:?}");
    }

    /// The version before the first with tiers refuses a directory that has used one, by a sentence that names it.
    #[test]
    fn older_programs_refuse_a_tier() {
        let log = LogState { on: true, since: Lsn(0), since_ms: 0 };
        let tier = Some(TierInfo { id: *b"0123456789abcdef", dir: b"/tier".to_vec() });
        let manifest = Manifest { tier, ..Manifest::new(HistoryId([1; 20]), log) };
        let before_tiers = Parts {
            used: &[DISK_PART],
            reserved: &[(TIER_PART, "segments of a tier"), (3, "a function library"), (4, "cluster slots")],
        };
        let (path, bytes) = (Path::new("MANIFEST"), manifest.encode());
        let refused = Manifest::decode_as(path, &bytes, &before_tiers).expect_err("it is refused");
        assert_eq!(
            refused.to_string(),
            "MANIFEST: it names segments of a tier, which this version cannot use; nothing was changed; start a newer \
             version"
        );
        let without = Manifest { tier: None, ..manifest.clone() };
        assert_eq!(Manifest::decode_as(path, &without.encode(), &before_tiers).expect("it has no tier"), without);
    }

    /// A dictionary stays named exactly while a set is kept whose cut was made during its use. Its number is never
    /// reused.
    #[test]
    fn dictionaries_go_with_the_last_set_that_needs_them() {
        let mut manifest = Manifest::new(HistoryId([0; 20]), LogState { on: true, since: Lsn(0), since_ms: 0 });
        let number = |number| DictionaryNumber(NonZeroU32::new(number).expect("not 0"));
        let set = |set| SetInfo {
            set: SetId(set),
            cut: Lsn(0),
            history: HistoryId([0; 20]),
            created_ms: 0,
            log_from: None,
            files: Vec::new(),
            rows: None,
        };
        manifest.add_dictionary(number(1), FileHash(1));
        manifest.retire_dictionaries(|_| false);
        assert_eq!(numbers(&manifest), [1], "the log from its beginning may need it");
        manifest.sets.extend([set(0), set(1)]);
        manifest.add_dictionary(number(2), FileHash(2));
        manifest.retire_dictionaries(|in_use| in_use == number(2));
        assert_eq!(numbers(&manifest), [1, 2], "the beginning may need it");
        assert_eq!(manifest.dictionaries_in_use().count(), 1);
        manifest.sets.remove(0);
        manifest.sets.push(set(2));
        manifest.retire_dictionaries(|_| false);
        assert_eq!(numbers(&manifest), [2], "set 1 may need it");
        assert!(manifest.dictionaries[0].is_needed_by(SetId(1)) && !manifest.dictionaries[0].is_needed_by(SetId(2)));
        manifest.sets.remove(0);
        manifest.retire_dictionaries(|_| false);
        assert_eq!((numbers(&manifest), manifest.last_dictionary), (vec![], 2));
    }
}
