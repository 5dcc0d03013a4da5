//! `onggi restore`: writes the state of an earlier moment to a new directory.
//!
//! ```text
//! newest set at or before the point ---copied, verified---> prdb-*, dict-*  \
//! its copy of rows on disk -----------linked or copied----> lsm-<set>, lsm    \
//! log from its cut up to the point  ---frame by frame-----> log-*            > MANIFEST, last: then INTO counts
//! ------------------------------------ a new history -----> log-<point>    /
//! ```
//!
//! P1. The source is only read. Data after the point is not read, so damage there does no harm.
//! P2. Positions, times and histories of the copy are those of the source; a restore can be repeated from the copy.
//! P3. Memory is bounded by the longest record, because nothing is loaded.

use crate::check::read_set;
use crate::copying::copy;
use crate::error::ToolError;
use crate::history::before_last_flush;
use crate::rows;
use crate::salvage::Salvage;
use crate::sieve::{self, Keys, Rest, Sieve};
use crate::source::Source;
use crate::text::{count, size, time};
use crate::tiered::{self, Addresses};
use base::hash::KeyHasher;
use base::{Clock, HistoryId, Lsn, Rng, UnixMs};
use checkpoint::{DataDir, DictionaryInfo, LogState, Manifest, ManifestFile, Name, SetId, SetInfo};
use cmdlog::{Extract, FrameBody};
use codec::Dictionary;
use std::path::Path;
use std::sync::Arc;
use vfs::FileSystem;

/// A moment of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Every record that ends at or before the position.
    Lsn(Lsn),
    /// Every record before the last mark at or before the time, by the server's clock. Marks are written once a second
    /// while there are writes.
    Time(UnixMs),
}

/// A moment as a person requests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// A given moment.
    At(Point),
    /// The last one before a FLUSHALL or FLUSHDB.
    BeforeLastFlush,
}

/// The result of a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The position of the restored state.
    pub lsn: Lsn,
    /// The checkpoint it began with.
    pub set: Option<checkpoint::SetId>,
    /// Records of the log after it.
    pub records: u64,
    /// The newest time in the log for the state; `None` if no mark precedes it.
    pub at_ms: Option<UnixMs>,
}

/// Makes a data directory at `into`, which is empty or missing, with the state of the data in `from` at a moment, and
/// begins `history` there. Reports each file.
///
/// # Errors
/// [`ToolError::InUse`], [`ToolError::NotEmpty`], [`ToolError::NotReachable`] before anything is written. Damage before
/// the point, and a failing disk: then `into` has no manifest, and no server starts with it.
pub fn restore(
    fs: &Arc<dyn FileSystem>,
    clock: &dyn Clock,
    from: &Source<'_>,
    to: When,
    into: &Path,
    history: HistoryId,
    say: &mut dyn FnMut(&str),
) -> Result<Restored, ToolError> {
    let (source, _held) = from.open(fs)?;
    if fs.exists(into)? && !fs.read_dir(into)?.is_empty() {
        return Err(ToolError::NotEmpty { path: into.into() });
    }
    let unreachable = |why: String| ToolError::NotReachable { path: from.path().into(), why };
    let Some(file) = ManifestFile::load(&source)? else {
        return Err(unreachable("the directory holds no data".to_owned()));
    };
    let (manifest, limit) = (file.current(), from.limit());
    let to = match to {
        When::BeforeLastFlush => Point::Lsn(before_last_flush(&source, manifest, limit).map_err(unreachable)?),
        When::At(Point::Lsn(lsn)) => match limit {
            Some(limit) if lsn > limit => {
                return Err(unreachable(format!("the log is durable up to LSN {limit} so far")));
            }
            _ => Point::Lsn(lsn),
        },
        // Ignore what a running server writes meanwhile: convert the time to a position before it.
        When::At(Point::Time(ms)) => match limit {
            Some(limit) if ms >= clock.now_ms() => Point::Lsn(limit),
            Some(_) => {
                let start = Start::choose(manifest, Point::Time(ms)).map_err(unreachable)?;
                Point::Lsn(find(&source, &start, Point::Time(ms), limit)?.lsn)
            }
            None => Point::Time(ms),
        },
    };
    build(
        &source,
        manifest,
        clock,
        &Build { to, into, history, links: false, tier: TierCopy::Own { at: into }, loss: None },
        say,
    )
}

/// What to build.
pub(crate) struct Build<'b> {
    /// The moment.
    pub to: Point,
    /// The target: empty or missing.
    pub into: &'b Path,
    /// The history that continues there.
    pub history: HistoryId,
    /// Link files that never change instead of copying them, if the file system supports it.
    pub links: bool,
    /// What becomes of values on a tier.
    pub tier: TierCopy<'b>,
    /// The part that cannot be read.
    pub loss: Option<&'b Loss>,
}

/// The tier of a directory that is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TierCopy<'b> {
    /// The tier of the source, where it is.
    Stays,
    /// A tier of its own, with the segments that its checkpoint names.
    Own {
        /// Where the directory will be.
        at: &'b Path,
    },
}

/// Data that is left out because dictionaries are missing or blocks are damaged.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    /// If the set is damaged: what is kept of it.
    pub salvage: Option<Salvage>,
    /// Lost keys of the set.
    pub of_set: Keys,
    /// The sieve for the log.
    pub sieve: Sieve,
    /// Where the log first differs without the lost keys; `None` if it does not.
    pub from: Option<Lsn>,
}

/// [`restore`] from the checkpoints and the log of a manifest, into a directory that is empty or missing.
pub(crate) fn build(
    source: &DataDir,
    manifest: &Manifest,
    clock: &dyn Clock,
    build: &Build<'_>,
    say: &mut dyn FnMut(&str),
) -> Result<Restored, ToolError> {
    let (fs, &Build { to, into, history, links, tier, loss }) = (source.fs(), build);
    let unreachable = |why: String| ToolError::NotReachable { path: source.path().into(), why };
    let start = Start::choose(manifest, to).map_err(unreachable)?;
    let disk_spaces = manifest.spaces_on_disk(start.set).ok_or_else(|| unreachable(no_rows(start.set)))?;
    let found = find(source, &start, to, None)?;
    if let Some(why) = found.why_not(&start, to) {
        return Err(unreachable(why));
    }
    if let Some(word) = found.remark(to) {
        say(&word);
    }

    let target = DataDir::open(Arc::clone(fs), into)?;
    let hasher = KeyHasher::new(&mut Rng::new(0));
    let is_another = |loss: &&Loss| loss.salvage.is_some() || !loss.of_set.is_empty();
    let set = match (start.set, loss.filter(is_another)) {
        (Some(_), Some(Loss { salvage: Some(salvage), of_set, .. })) => {
            Some(salvage.write_set(source, &target, of_set, &hasher, say)?)
        }
        (Some(set), Some(loss)) => Some(sieve::write_set(source, &target, set, &loss.of_set, &hasher, say)?),
        (Some(set), None) => {
            copy_set(source, &target, set, links, say)?;
            Some(set.clone())
        }
        (None, _) => None,
    };
    let named = Addresses::default();
    if let Some(set) = &set {
        // A fault of the copy is a fault of its source or of the disk; either way the copy does not count.
        read_set(&target, set, &|effect| named.note(effect))?;
        target.fs().sync_dir(target.path())?;
    }
    let tier = match tier {
        TierCopy::Stays => manifest.tier.clone(),
        TierCopy::Own { at } => tiered::copy_tier(source, &target, manifest, (named, links), (&history, at), say)?,
    };
    match start.set {
        Some(from) if from.rows.is_some() => rows::put_copy(source, &target, from, links, say)?,
        None if !disk_spaces.is_empty() => rows::put_empty(&target, &disk_spaces, start.lsn())?,
        _ => {}
    }
    let dictionaries = copy_dictionaries(source, &target, manifest, start.set, links, say)?;
    let origin = start.history;
    let mut parent = (origin, found.lsn);
    if let (Some(log_from), Some(from)) = (start.log_from, start.replay_from()) {
        let same_to = loss.and_then(|loss| loss.from).map_or(found.lsn, |from| from.min(found.lsn));
        let part = Extract { dir: source.path(), from, to: same_to, into, history, origin: Some(origin) };
        let told = cmdlog::extract(&**fs, clock, &part, &mut |path| say(&format!("wrote {}", path.display())))?;
        parent = told.map_or(parent, |told| (told.history, told.lsn));
        if let Some(loss) = loss.filter(|_| same_to < found.lsn) {
            let rest = Rest { from: log_from, behind: same_to, to: found.lsn, target: &target, history };
            sieve::write_log(source, &rest, loss.sieve.clone(), &hasher)?;
            say(&format!("wrote the log after LSN {same_to}, without what cannot be read"));
        }
    }
    let earlier = manifest.parents.iter().filter(|(other, last)| *other != parent.0 && *last < found.lsn);
    let next = Manifest {
        history,
        parents: std::iter::once(parent).chain(earlier.copied()).collect(),
        log: LogState { on: start.log_from.is_some(), since: start.lsn(), since_ms: clock.now_ms() },
        sets: set.into_iter().collect(),
        dictionaries,
        last_dictionary: manifest.last_dictionary,
        hash_key: manifest.hash_key,
        disk_spaces,
        disk_since: Lsn(0),
        tier,
    };
    ManifestFile::create(&target, next)?;
    say(&format!("wrote {}", target.file(Name::Manifest).display()));
    Ok(Restored {
        lsn: found.lsn,
        set: start.set.map(|set| set.set),
        records: found.records,
        at_ms: found.last_mark_ms.or(start.set.map(|set| set.created_ms)),
    })
}

/// The beginning of a restore.
struct Start<'m> {
    /// `None`: the empty state at the beginning of the log.
    set: Option<&'m SetInfo>,
    log_from: Option<Lsn>,
    /// Its history.
    history: HistoryId,
}

impl<'m> Start<'m> {
    /// The newest set at or before the point; or why there is none.
    fn choose(manifest: &'m Manifest, to: Point) -> Result<Self, String> {
        let is_before = |lsn: Lsn, ms: UnixMs| match to {
            Point::Lsn(to) => lsn <= to,
            Point::Time(to) => ms <= to,
        };
        if let Some(set) = manifest.sets.iter().rfind(|set| is_before(set.cut, set.created_ms)) {
            let has_files = !set.files.is_empty();
            return Ok(Self { set: Some(set).filter(|_| has_files), log_from: set.log_from, history: set.history });
        }
        if let Some(set) = manifest.beginning().filter(|set| is_before(set.cut, set.created_ms)) {
            return Ok(Self { set: None, log_from: set.log_from, history: set.history });
        }
        let (first, ms, what) = match manifest.sets.first() {
            Some(set) => (set.cut, set.created_ms, "oldest checkpoint"),
            None => (manifest.log.since, manifest.log.since_ms, "beginning of the log"),
        };
        Err(format!("the {what} is of LSN {first}, {}; no earlier moment can be restored", time(ms)))
    }

    /// Where the log begins that its rows need as well.
    fn replay_from(&self) -> Option<Lsn> {
        self.set.map_or(self.log_from, SetInfo::replay_from)
    }

    fn lsn(&self) -> Lsn {
        self.set.map(|set| set.cut).or(self.log_from).unwrap_or_default()
    }
}

/// Why a set cannot be restored.
fn no_rows(set: Option<&SetInfo>) -> String {
    let set = set.map_or(SetId(0), |set| set.set);
    format!(
        "checkpoint {set} has no copy of the rows of databases on disk, as an earlier version made it: take another \
         (BGSAVE), which serves backups, and restores to moments after it"
    )
}

/// The position of a point.
struct Found {
    lsn: Lsn,
    records: u64,
    /// Whether the log was read to its end, with nothing after the point.
    is_end: bool,
    last_mark_ms: Option<UnixMs>,
}

impl Found {
    fn why_not(&self, start: &Start<'_>, to: Point) -> Option<String> {
        let Point::Lsn(to) = to else { return None };
        (self.is_end && self.lsn < to).then(|| match start.log_from {
            Some(_) => format!("the log ends at LSN {}", self.lsn),
            None => format!("the log was off after the checkpoint of LSN {}", self.lsn),
        })
    }

    /// A warning about the state that a person should read before using it.
    fn remark(&self, to: Point) -> Option<String> {
        match to {
            Point::Lsn(to) if self.lsn < to => {
                Some(format!("note: LSN {to} is inside a frame; the state is that of LSN {}, before it", self.lsn))
            }
            Point::Time(to) if self.is_end && self.last_mark_ms.is_none_or(|last| last < to) => {
                let last = self.last_mark_ms.map_or_else(|| "unknown".to_owned(), time);
                Some(format!("note: the log ends before {}: its last mark is {last}; all of it is taken", time(to)))
            }
            _ => None,
        }
    }
}

/// The frame after the point was reached.
#[derive(Debug, thiserror::Error)]
#[error("the point was reached")]
struct Reached;

/// Reads the log up to the point, but not beyond the limit.
fn find(source: &DataDir, start: &Start<'_>, to: Point, limit: Option<Lsn>) -> Result<Found, ToolError> {
    let mut found = Found { lsn: start.lsn(), records: 0, is_end: true, last_mark_ms: None };
    let Some(from) = start.log_from else { return Ok(found) };
    // Records without a mark after them, whose time is unknown.
    let (mut pending, mut pending_lsn, mut is_reached, mut is_limit) = (0, found.lsn, false, false);
    let mut each = |after: Lsn, body: FrameBody<'_>| {
        is_limit |= limit.is_some_and(|limit| after > limit);
        let dated = match (to, body) {
            _ if is_limit => Err(Reached),
            (Point::Lsn(to), _) if after > to => Err(Reached),
            (Point::Lsn(_), _) => Ok(true),
            (Point::Time(to), FrameBody::Mark(mark) | FrameBody::End(mark)) if mark.time_ms > to => Err(Reached),
            (Point::Time(_), FrameBody::Mark(_) | FrameBody::End(_)) => Ok(true),
            (Point::Time(_), _) => Ok(false),
        };
        is_reached |= dated.is_err();
        let dated = dated?;
        pending_lsn = after;
        pending += u64::from(matches!(body, FrameBody::Record(_)));
        if let FrameBody::Mark(mark) | FrameBody::End(mark) = body {
            found.last_mark_ms = Some(mark.time_ms);
        }
        if dated {
            found.lsn = pending_lsn;
            found.records += std::mem::take(&mut pending);
        }
        Ok(())
    };
    let read = cmdlog::recover_frames(&**source.fs(), source.path(), from, &mut each, &mut |_| {});
    let is_exact = matches!(to, Point::Lsn(to) if to == found.lsn);
    match read {
        Err(_) if (is_reached && !is_limit) || is_exact => found.is_end = false,
        // Records of unknown time may be newer than the point.
        Err(_) if is_limit || limit == Some(pending_lsn) => {}
        Err(error) => return Err(error.into()),
        Ok(_) => {
            found.lsn = pending_lsn;
            found.records += pending;
        }
    }
    Ok(found)
}

/// Copies or links a set's files.
fn copy_set(
    source: &DataDir,
    target: &DataDir,
    set: &SetInfo,
    links: bool,
    say: &mut dyn FnMut(&str),
) -> Result<(), ToolError> {
    for (number, info) in (0u8..).zip(&set.files) {
        let name = Name::Snapshot { set: set.set, file: number };
        let how = copy_file(source, target, name, links)?;
        let (path, entries) = (target.file(name), count(info.entries, "entry", "entries"));
        say(&format!("{how} {}: {entries}, {}", path.display(), size(info.bytes)));
    }
    Ok(())
}

/// Copies or links the dictionaries that a set and the log after it need, or the log from its beginning, and verifies
/// them. Returns their entries for the new manifest.
fn copy_dictionaries(
    source: &DataDir,
    target: &DataDir,
    manifest: &Manifest,
    set: Option<&SetInfo>,
    links: bool,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<DictionaryInfo>, ToolError> {
    let set = set.map_or(SetId(0), |set| set.set);
    let needed = manifest.dictionaries.iter().filter(|info| info.is_needed_by(set));
    // Sets made later in the copy assign these values themselves.
    let needed: Vec<_> = needed.map(|info| DictionaryInfo { unneeded_from: None, ..*info }).collect();
    for info in &needed {
        let how = copy_file(source, target, Name::Dictionary(info.hash), links)?;
        Dictionary::open(&**target.fs(), target.path(), info.hash)?;
        say(&format!("{how} {}", target.file(Name::Dictionary(info.hash)).display()));
    }
    if !needed.is_empty() {
        target.fs().sync_dir(target.path())?;
    }
    Ok(needed)
}

/// Copies or links one file of a data directory, and returns which of the two.
fn copy_file(source: &DataDir, target: &DataDir, name: Name, links: bool) -> Result<&'static str, ToolError> {
    copy(&**source.fs(), &source.file(name), &target.file(name), links)
}
