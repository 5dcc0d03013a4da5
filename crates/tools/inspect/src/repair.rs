//! `onggi repair`: recovers from damaged data the best state that a server can start with.
//!
//! ```text
//! every whole set, with the log as far as it continues it -> the one that reaches furthest, and of several the one
//!                                                            that loses fewest keys  = the plan
//! DIR.repaired: that set, that part of the log, a manifest (as in a restore), then verified
//! DIR -> DIR.damaged-<time>, DIR.repaired -> DIR
//! ```
//!
//! A1. The repair loses no file: all files of the damaged directory stay unchanged, under its new name.
//! A2. A failed repair, or a crash, leaves DIR unchanged up to the last two renames. Between these, DIR is missing and
//!     both others are whole.
//! A3. The plan names the losses beforehand. It claims that nothing is lost only if it reaches the newest state that
//!     the directory ever had: the newest checkpoint itself, or its position by an unbroken log.
//! A4. An unreadable dictionary costs the keys whose values need it, and nothing else (`sieve`).
//! A5. A damaged set is salvaged only on request: its whole blocks, and from the log after it the changes of keys with
//!     a known state (`salvage`, `sieve`). The alternatives - an older state, or a set without whole blocks - are
//!     reported first.

use crate::check::{read_log, read_set};
use crate::decode::lock;
use crate::dictionaries;
use crate::error::{ToolError, with_causes};
use crate::restore::{self, Build, Loss, Point, TierCopy};
use crate::rows;
use crate::salvage::Salvage;
use crate::sieve::{Keys, Sieve};
use crate::text::{count, size, time};
use crate::tiered::{self, Addresses, Unreadable};
use base::hash::KeyHasher;
use base::{Clock, HistoryId, KeyspaceId, Lsn, Rng, UnixMs};
use checkpoint::{DataDir, FileInfo, LogState, Manifest, ManifestFile, Name, RowsInfo, SetId, SetInfo, SnapshotReader};
use cmdlog::{FrameBody, RecordBuilder, RecoverError, SegmentReader};
use codec::{CodecError, Dictionary, DictionaryNumber};
use engine::Effect;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tier::{TierId, offline};
use vfs::FileSystem;

/// The plan of a repair.
#[derive(Clone, Debug)]
pub struct RepairPlan {
    /// The source of the data: only whole checkpoints.
    manifest: Manifest,
    /// The position that it reaches.
    to: Lsn,
    /// The part that cannot be read.
    loss: Loss,
    /// What is wrong, one line each.
    pub damage: Vec<String>,
    /// What the repaired directory will have.
    pub kept: String,
    /// What will be missing, one line each; empty if nothing is lost.
    pub lost: Vec<String>,
    /// What the files do not show, one line each: whether more is missing.
    pub unsure: Vec<String>,
    /// What a plan with salvage would keep, if this one loses data without it.
    pub hint: Option<String>,
}

/// The result of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The position of the directory's new state.
    pub lsn: Lsn,
    /// Where the damaged files are.
    pub damaged: PathBuf,
}

/// Reads everything in a directory and reports what can be saved; `None` if nothing is damaged. Changes nothing. With
/// `salvage`, the whole blocks of a damaged checkpoint are used where any other way would lose later changes.
///
/// # Errors
/// [`ToolError::InUse`]; [`ToolError::NotRepairable`] if nothing can be saved; a newer format, or a failing disk, which
/// a repair could only make worse.
pub fn plan_repair(fs: &Arc<dyn FileSystem>, dir: &Path, salvage: bool) -> Result<Option<RepairPlan>, ToolError> {
    let (source, _held) = lock(fs, dir)?;
    let (mut damage, mut unsure, mut is_gathered) = (Vec::new(), Vec::new(), false);
    let manifest = match ManifestFile::load(&source) {
        Ok(Some(file)) => file.current().clone(),
        Ok(None) => return Ok(None),
        Err(error) if error.is_damage() => {
            damage.push(with_causes(&error));
            let gathered = gather(&source)?;
            unsure = unsure_without_manifest(&source, &gathered)?;
            is_gathered = true;
            gathered
        }
        Err(error) => return Err(error.into()),
    };
    let mut whole = manifest.clone();
    whole.dictionaries.clear();
    for info in &manifest.dictionaries {
        match Dictionary::open(&**source.fs(), source.path(), info.hash) {
            Ok(_) => whole.dictionaries.push(*info),
            Err(CodecError::Fs(error)) => return Err(error.into()),
            // Values that need it cannot be read.
            Err(error) => damage.push(format!("dictionary {}: {error}", info.number)),
        }
    }
    let unreadable = match is_gathered || manifest.tier.is_some() {
        true => Arc::new(on_tier(&source, &manifest, &mut damage)?),
        false => Arc::default(),
    };
    whole.sets.clear();
    if !manifest.disk_spaces.is_empty()
        && let Err(error) = rows::read(&source, Name::Rows)
    {
        note_rows(&source.file(Name::Rows), error, &mut damage)?;
    }
    let (mut lost_of, mut broken) = (BTreeMap::new(), Vec::new());
    for set in &manifest.sets {
        if !has_whole_rows(&source, &manifest, set, &mut damage)? {
            continue;
        }
        let sieve = Sieve::new(readable_by(&whole, set.set), Keys::default()).with_unreadable(unreadable.clone());
        let sieve = Mutex::new(sieve);
        let see = |effect: &Effect<'_>| sieve.lock().unwrap_or_else(PoisonError::into_inner).look(effect);
        match read_set(&source, set, &see) {
            Ok(()) => {
                let Sieve { lost, missed, .. } = sieve.into_inner().unwrap_or_else(PoisonError::into_inner);
                if let Some(number) = missed {
                    let keys = count(lost.len() as u64, "key", "keys");
                    damage.push(format!(
                        "set {}: has values of {keys} that need dictionary {number}, which cannot be read",
                        set.set
                    ));
                }
                whole.sets.push(set.clone());
                lost_of.insert(set.set, lost);
            }
            Err(error) if error.is_damage() => {
                damage.push(with_causes(&error));
                broken.push(set);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let found = best(&source, &whole, manifest.newest(), &lost_of, &mut damage)?;
    let partial = match &found {
        Some(best) if best.is_complete => None,
        _ => partial(&source, &whole, (&broken, &unreadable), found.as_ref(), manifest.newest(), &mut damage)?,
    };
    let mut hint = None;
    let best = match (found, partial) {
        (_, Some(partial)) if salvage => {
            whole.sets.extend(partial.salvage.as_ref().map(|salvage| salvage.set.clone()));
            whole.sets.sort_by_key(|set| set.set);
            partial
        }
        (Some(best), partial) => {
            hint = partial.map(|partial| hinted(&partial, dir));
            best
        }
        (None, partial) => {
            let hint = partial.map_or_else(String::new, |partial| format!("; {}", hinted(&partial, dir)));
            let damage = damage.join("; ");
            let why = format!("no checkpoint is whole, and no log begins with an empty server: {damage}{hint}");
            return Err(ToolError::NotRepairable { path: dir.into(), why });
        }
    };
    if damage.is_empty() {
        return Ok(None);
    }
    let end = furthest(&source, &manifest)?;
    let lost = lost(&best, !unreadable.is_empty(), manifest.newest(), &end);
    // Of several sets with the same cut, a restore uses the newest.
    whole.sets.retain(|set| set.cut <= best.cut && best.set.is_none_or(|best| set.set <= best));
    let kept = kept(&best, &whole);
    let sieve = best.sieve();
    let Reach { to, of_set, salvage, changed_from: from, .. } = best;
    let loss = Loss { salvage, sieve, of_set, from };
    Ok(Some(RepairPlan { manifest: whole, to, loss, damage, kept, lost, unsure, hint }))
}

/// Notes damage of rows.
fn note_rows(path: &Path, error: disk::DiskError, damage: &mut Vec<String>) -> Result<(), ToolError> {
    match error.is_refusal() {
        true => Err(rows::at(path, error)),
        false => {
            damage.push(format!("{}: {}", path.display(), with_causes(&error)));
            Ok(())
        }
    }
}

/// Whether a set has the rows of databases on disk, whole, and the log leads from them to its cut.
fn has_whole_rows(
    source: &DataDir,
    manifest: &Manifest,
    set: &SetInfo,
    damage: &mut Vec<String>,
) -> Result<bool, ToolError> {
    let Some(copy) = &set.rows else {
        let is_usable = set.files.is_empty() || manifest.spaces_on_disk(Some(set)).is_some();
        if !is_usable {
            damage.push(format!("set {}: has no copy of the rows of databases on disk", set.set));
        }
        return Ok(is_usable);
    };
    match rows::read_copy(source, set) {
        Ok(Ok(_)) => {}
        Ok(Err(why)) => {
            damage.push(why);
            return Ok(false);
        }
        Err(error) => {
            note_rows(&source.file(Name::RowsOf { set: set.set }), error, damage)?;
            return Ok(false);
        }
    }
    let mut reached = copy.lsn;
    let mut each = |after: Lsn, _: FrameBody<'_>| {
        reached = after;
        Ok(())
    };
    match cmdlog::recover_frames(&**source.fs(), source.path(), copy.lsn, &mut each, &mut |_| {}) {
        Err(error) if !error.is_damage() => return Err(error.into()),
        // Damage after the cut is found by those who read on from there.
        _ if reached >= set.cut => return Ok(true),
        Err(error) => damage.push(with_causes(&error)),
        Ok(_) => {}
    }
    damage.push(format!("set {}: the log does not lead from its rows, LSN {}, to it", set.set, copy.lsn));
    Ok(false)
}

/// The values on a tier that cannot be read, of all whole sets.
fn on_tier(source: &DataDir, manifest: &Manifest, damage: &mut Vec<String>) -> Result<Unreadable, ToolError> {
    let named = Addresses::default();
    for set in &manifest.sets {
        match read_set(source, set, &|effect| named.note(effect)) {
            Err(error) if !error.is_damage() => return Err(error.into()),
            // Damage of sets is reported on its own.
            _ => {}
        }
    }
    let Some(info) = &manifest.tier else {
        if named.is_empty() {
            return Ok(Unreadable::default());
        }
        let why = "values of its checkpoints are on a tier, and MANIFEST, which names the tier, cannot be read: put \
                   MANIFEST back from a backup"
            .to_owned();
        return Err(ToolError::NotRepairable { path: source.path().into(), why });
    };
    let dir = tiered::directory(source, info)?;
    if offline::id_of(&**source.fs(), &dir)? != Some(TierId(info.id)) {
        let why = format!("its tier is not in {}: mount the device of the tier", dir.display());
        return Err(ToolError::NotRepairable { path: source.path().into(), why });
    }
    let survey = tiered::survey(&**source.fs(), &dir, named)?;
    damage.extend(survey.damage);
    Ok(survey.unreadable)
}

/// What the repaired directory begins with, and how far it reaches.
fn kept(best: &Reach, whole: &Manifest) -> String {
    let set = best.set.and_then(|best| whole.sets.iter().find(|set| set.set == best));
    let missing = best.salvage.as_ref().map_or(0, Salvage::lost) + best.of_set.len() as u64;
    let from = set.map_or_else(
        || "the empty beginning of the log".to_owned(),
        |set| {
            let (all, made) = (set.entries(), time(set.created_ms));
            let of_all = if missing == 0 { String::new() } else { format!("{} of ", all.saturating_sub(missing)) };
            format!("checkpoint {}, {made}, with {of_all}{}", set.set, count(all, "key", "keys"))
        },
    );
    let records = count(best.records, "record", "records");
    let at = best.time.map_or_else(String::new, |at| format!(", {}", time(at)));
    format!("{from}; {records} of the log after it, up to LSN {}{at}", best.to)
}

/// What a salvage would keep.
fn hinted(partial: &Reach, dir: &Path) -> String {
    let Some(salvage) = &partial.salvage else { return String::new() };
    format!(
        "`onggi repair --salvage {}` would keep {} of {} of checkpoint {}, in its whole blocks, and {} of the log \
         after it",
        dir.display(),
        salvage.kept,
        count(salvage.set.entries(), "key", "keys"),
        salvage.set.set,
        count(partial.records, "record", "records")
    )
}

/// What is unknown if the files must replace the manifest.
fn unsure_without_manifest(source: &DataDir, gathered: &Manifest) -> Result<Vec<String>, ToolError> {
    let newest = gathered.newest().map(|set| set.set);
    let listing = source.list()?;
    let mut unsure: Vec<String> = listing
        .snapshots
        .iter()
        .filter(|(set, _)| newest.is_none_or(|newest| *set > newest))
        .map(|&(set, file)| {
            let name = Name::Snapshot { set, file };
            format!("{name} belongs to a newer checkpoint, which is not whole; its state may not be reached")
        })
        .collect();
    unsure.push(
        "MANIFEST cannot be read: files that are missing leave no other trace; compare the number of keys".to_owned(),
    );
    Ok(unsure)
}

/// Carries out a plan for the same directory. Reports each file.
///
/// # Errors
/// As [`restore::restore`]; the directory is unchanged (A2).
pub fn repair(
    fs: &Arc<dyn FileSystem>,
    clock: &dyn Clock,
    dir: &Path,
    plan: &RepairPlan,
    history: HistoryId,
    say: &mut dyn FnMut(&str),
) -> Result<Repaired, ToolError> {
    let (source, _held) = lock(fs, dir)?;
    let (made, damaged) = (beside(dir, "repaired"), beside(dir, &format!("damaged-{}", clock.now_ms())));
    if fs.exists(&made)? && !fs.read_dir(&made)?.is_empty() {
        return Err(ToolError::NotEmpty { path: made });
    }
    let is_own = match &plan.manifest.tier {
        Some(info) => tiered::is_own(&source, info)?,
        None => false,
    };
    let tier = if is_own { TierCopy::Own { at: dir } } else { TierCopy::Stays };
    let build = Build { to: Point::Lsn(plan.to), into: &made, history, links: true, tier, loss: Some(&plan.loss) };
    let done = restore::build(&source, &plan.manifest, clock, &build, say)?;
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs.sync_dir(parent)?;
    for (from, to) in [(dir, damaged.as_path()), (made.as_path(), dir)] {
        fs.rename(from, to)?;
        fs.sync_dir(parent)?;
    }
    Ok(Repaired { lsn: done.lsn, damaged })
}

/// The name of a directory next to another one.
fn beside(dir: &Path, what: &str) -> PathBuf {
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{what}"));
    dir.with_file_name(name)
}

/// The information of the snapshot files themselves, in place of an unreadable manifest: every set whose files all
/// exist.
fn gather(source: &DataDir) -> Result<Manifest, ToolError> {
    let mut sets: BTreeMap<SetId, (SetInfo, usize)> = BTreeMap::new();
    let listing = source.list()?;
    for &(set, file) in &listing.snapshots {
        let path = source.file(Name::Snapshot { set, file });
        let reader = match SnapshotReader::open(&**source.fs(), &path) {
            Ok(reader) => reader,
            // Then the set is not whole.
            Err(error) if error.is_damage() => continue,
            Err(error) => return Err(error.into()),
        };
        let header = reader.header();
        let (found, seen) = sets.entry(header.set).or_insert_with(|| {
            let files = vec![FileInfo { bytes: 0, entries: 0, crc: 0 }; usize::from(header.files)];
            let (cut, history, created_ms) = (header.cut, header.history, header.created_ms);
            (SetInfo { set: header.set, cut, history, created_ms, log_from: Some(cut), files, rows: None }, 0)
        });
        if let Some(place) = found.files.get_mut(usize::from(header.file)) {
            *place = reader.info();
            *seen += 1;
        }
    }
    let mut sets: Vec<_> =
        sets.into_values().filter(|(set, seen)| *seen == set.files.len()).map(|(set, _)| set).collect();
    for set in &mut sets {
        // A log that was off has no segment that continues from the cut.
        let is_logged = read_log(source, set.cut, &mut |_| {}).is_ok_and(|end| end.history.is_some())
            || listing.logs.iter().any(|first| *first <= set.cut);
        set.log_from = set.log_from.filter(|_| is_logged);
    }
    sets.sort_by_key(|set| set.cut);
    let first = listing.logs.first().copied().unwrap_or_default();
    let (history, since_ms) = match sets.last() {
        Some(set) => (set.history, set.created_ms),
        None => (first_history(source, first)?.unwrap_or(HistoryId([0; 20])), 0),
    };
    let log = LogState { on: !listing.logs.is_empty(), since: first, since_ms };
    let disk_spaces = gather_rows(source, &mut sets)?;
    let dictionaries = dictionaries::gathered(&**source.fs(), source.path())?;
    let last_dictionary = dictionaries.last().map_or(0, |info| info.number.0.get());
    Ok(Manifest { sets, dictionaries, last_dictionary, disk_spaces, ..Manifest::new(history, log) })
}

/// Gives sets the copies of rows that belong to them, by their names, and says which keyspaces are on disk.
fn gather_rows(source: &DataDir, sets: &mut [SetInfo]) -> Result<Vec<KeyspaceId>, ToolError> {
    let (listing, mut spaces) = (source.list()?, Vec::new());
    let names = listing.row_copies.iter().map(|set| Name::RowsOf { set: *set });
    for name in names.chain(listing.rows.then_some(Name::Rows)) {
        let found = match rows::look(source, name) {
            Ok(found) => found,
            Err(error) if error.is_refusal() => return Err(rows::at(&source.file(name), error)),
            // Then the set is not whole.
            Err(_) => continue,
        };
        spaces.extend(found.spaces.clone());
        let set = sets.iter_mut().find(|set| name == Name::RowsOf { set: set.set });
        if let Some(set) = set.filter(|set| found.lsn <= set.cut && !found.spaces.is_empty()) {
            set.rows = Some(RowsInfo { lsn: found.lsn, spaces: found.spaces });
        }
    }
    if spaces.is_empty() && (listing.rows || !listing.row_copies.is_empty()) {
        let why =
            "MANIFEST cannot be read, and no directory of rows says which databases are on disk: put MANIFEST back \
                   from a backup"
                .to_owned();
        return Err(ToolError::NotRepairable { path: source.path().into(), why });
    }
    spaces.sort_unstable();
    spaces.dedup();
    Ok(spaces)
}

fn first_history(source: &DataDir, first: Lsn) -> Result<Option<HistoryId>, ToolError> {
    let path = source.file(Name::Log { first });
    if !source.fs().exists(&path)? {
        return Ok(None);
    }
    match SegmentReader::open(&**source.fs(), &path) {
        Ok(reader) => Ok(Some(reader.header().history)),
        Err(error) if error.is_damage() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A beginning, and how far the log continues from it.
struct Reach {
    set: Option<SetId>,
    cut: Lsn,
    to: Lsn,
    /// The last time in the log before that.
    time: Option<UnixMs>,
    records: u64,
    /// Whether damage ends it, rather than the end of the log.
    is_cut: bool,
    /// Whether it reaches the newest state that ever existed, according to the manifest.
    is_complete: bool,
    /// The dictionaries that are readable there.
    known: BTreeSet<DictionaryNumber>,
    /// If the set is damaged: what is kept of it.
    salvage: Option<Salvage>,
    /// Keys of the set that cannot be read.
    of_set: Keys,
    /// Keys that are missing at the end.
    lost: Keys,
    /// Where the first record begins that must be changed.
    changed_from: Option<Lsn>,
}

impl Reach {
    /// A beginning whose log has not been read yet.
    fn at(start: &SetInfo, whole: &Manifest, of_set: Keys) -> Self {
        let set = (!start.files.is_empty()).then_some(start.set);
        Self {
            set,
            cut: start.cut,
            to: start.cut,
            time: set.map(|_| start.created_ms),
            records: 0,
            is_cut: false,
            is_complete: false,
            known: readable_by(whole, set.unwrap_or(SetId(0))),
            salvage: None,
            lost: of_set.clone(),
            of_set,
            changed_from: None,
        }
    }

    /// The sieve for the log after it.
    fn sieve(&self) -> Sieve {
        let present = self.salvage.as_ref().map(|salvage| salvage.present.clone());
        Sieve::new(self.known.clone(), self.of_set.clone()).with_present(present)
    }

    /// Whether this beginning is the better one.
    fn is_better_than(&self, other: &Self) -> bool {
        let rank = |reach: &Self| (reach.to, reach.is_complete, std::cmp::Reverse(reach.lost.len()));
        rank(self) > rank(other)
    }

    /// Whether the log passes through the state of a checkpoint. While the log is off, changes take no positions: a
    /// checkpoint made then may differ from an older one with the same cut.
    fn passes(&self, set: &SetInfo) -> bool {
        set.log_from.is_some() && self.to >= set.cut
    }

    /// Whether it reaches the newest checkpoint's state, and all of the log after it.
    fn comes_to(&self, newest: Option<&SetInfo>) -> bool {
        let is_there = |newest: &SetInfo| self.set.unwrap_or(SetId(0)) == newest.set || self.passes(newest);
        !self.is_cut && newest.is_none_or(is_there)
    }
}

/// The empty state before the first record of a log, if `whole` no longer names it. Only position 0 proves that the
/// state was empty: a log that is switched on later begins at a higher position, on top of a checkpoint.
fn unnamed_beginning(whole: &Manifest) -> Option<SetInfo> {
    let beginning = Manifest { sets: Vec::new(), ..whole.clone() }.beginning();
    beginning.filter(|start| start.cut == Lsn(0) && whole.sets.iter().all(|set| set.cut != start.cut))
}

/// The set, or the beginning of the log, that reaches furthest; of several the one that loses fewest keys, and of those
/// the newest.
fn best(
    source: &DataDir,
    whole: &Manifest,
    newest: Option<&SetInfo>,
    lost_of: &BTreeMap<SetId, Keys>,
    damage: &mut Vec<String>,
) -> Result<Option<Reach>, ToolError> {
    // The beginning of the log is a candidate even when checkpoints have replaced it and no manifest names it.
    let unnamed = unnamed_beginning(whole);
    let mut best: Option<Reach> = None;
    for (set, is_needed) in
        whole.sets.iter().rev().map(|set| (set, true)).chain(unnamed.iter().map(|set| (set, whole.sets.is_empty())))
    {
        let of_set = lost_of.get(&set.set).filter(|_| !set.files.is_empty()).cloned().unwrap_or_default();
        let mut reach = Reach::at(set, whole, of_set);
        if !follow(source, set.log_from, &mut reach, damage, is_needed)? {
            continue;
        }
        reach.is_complete = reach.comes_to(newest);
        if best.as_ref().is_none_or(|best| reach.is_better_than(best)) {
            best = Some(reach);
        }
    }
    Ok(best)
}

/// The newest damaged set with whole blocks that is later than the result without salvage.
fn partial(
    source: &DataDir,
    whole: &Manifest,
    (broken, unreadable): (&[&SetInfo], &Arc<Unreadable>),
    found: Option<&Reach>,
    newest: Option<&SetInfo>,
    damage: &mut Vec<String>,
) -> Result<Option<Reach>, ToolError> {
    let hasher = KeyHasher::new(&mut Rng::new(0));
    let is_later = |set: &SetInfo| found.and_then(|found| found.set).is_none_or(|found| found < set.set);
    for set in broken.iter().rev().filter(|set| is_later(set)) {
        let sieve = Sieve::new(readable_by(whole, set.set), Keys::default());
        let mut sieve = sieve.with_unreadable(unreadable.clone());
        let salvage = Salvage::survey(source, set, &hasher, &mut sieve)?;
        if salvage.kept == 0 {
            continue;
        }
        let mut reach = Reach::at(set, whole, sieve.lost);
        let is_whole = salvage.lost() == 0;
        reach.salvage = Some(salvage);
        follow(source, set.log_from, &mut reach, damage, true)?;
        reach.is_complete = is_whole && reach.comes_to(newest);
        return Ok(Some(reach));
    }
    Ok(None)
}

/// Follows the log from a beginning. Returns false if there is no data at all.
fn follow(
    source: &DataDir,
    from: Option<Lsn>,
    reach: &mut Reach,
    damage: &mut Vec<String>,
    is_needed: bool,
) -> Result<bool, ToolError> {
    let Some(from) = from else { return Ok(true) };
    match read(source, from, reach, damage, is_needed) {
        Ok(true) => Ok(true),
        // Without a set and without a segment there is no data.
        Ok(false) if reach.set.is_none() => Ok(false),
        Ok(false) => {
            reach.is_cut = true;
            damage.push(format!("the command log is needed from LSN {from} on, and no segment is there"));
            Ok(true)
        }
        Err(error) if error.is_damage() => {
            reach.is_cut = true;
            let text = with_causes(&error);
            if is_needed && !damage.contains(&text) {
                damage.push(text);
            }
            Ok(reach.set.is_some() || reach.records > 0)
        }
        Err(error) => Err(error.into()),
    }
}

/// The whole dictionaries among those that a set, and the log after it, may need.
fn readable_by(whole: &Manifest, set: SetId) -> BTreeSet<DictionaryNumber> {
    whole.dictionaries.iter().filter(|info| info.is_needed_by(set)).map(|info| info.number).collect()
}

/// Reads the log from a position on and advances `reach`, up to damage. Reports the first record that needs an
/// unreadable dictionary. Returns false if no segment exists.
fn read(
    source: &DataDir,
    from: Lsn,
    reach: &mut Reach,
    damage: &mut Vec<String>,
    is_needed: bool,
) -> Result<bool, RecoverError> {
    let hasher = KeyHasher::new(&mut Rng::new(0));
    let mut sieve = reach.sieve();
    let (mut left, mut missed) = (RecordBuilder::default(), None);
    let mut each = |after: Lsn, body: FrameBody<'_>| {
        match body {
            FrameBody::Record(payload) => {
                left.clear();
                if sieve.sift(payload, &hasher, &mut left)? {
                    reach.changed_from.get_or_insert(reach.to);
                }
                missed = missed.or(sieve.missed.map(|number| (reach.to, number)));
                reach.records += 1;
            }
            FrameBody::Mark(mark) | FrameBody::End(mark) => reach.time = Some(mark.time_ms),
            FrameBody::Unknown(_) => {}
        }
        reach.to = after;
        Ok(())
    };
    let end = cmdlog::recover_frames(&**source.fs(), source.path(), from, &mut each, &mut |_| {});
    reach.lost = sieve.lost;
    if let Some((lsn, number)) = missed.filter(|_| is_needed) {
        let text =
            format!("the command log has values after LSN {lsn} that need dictionary {number}, which cannot be read");
        if !damage.contains(&text) {
            damage.push(text);
        }
    }
    Ok(end?.history.is_some())
}

/// The last position and time that the files of the directory mention.
fn furthest(source: &DataDir, manifest: &Manifest) -> Result<(Lsn, Option<UnixMs>, u64), ToolError> {
    let newest = manifest.newest();
    let (mut lsn, mut at) = (newest.map_or(Lsn(0), |set| set.cut), newest.map(|set| set.created_ms));
    let mut bytes = 0;
    for first in source.list()?.logs {
        let mut reader = match SegmentReader::open(&**source.fs(), &source.file(Name::Log { first })) {
            Ok(reader) => reader,
            Err(error) if error.is_damage() => continue,
            Err(error) => return Err(error.into()),
        };
        loop {
            match reader.next_frame() {
                Ok(Some(frame)) => {
                    lsn = lsn.max(frame.end);
                    if let FrameBody::Mark(mark) | FrameBody::End(mark) = frame.body {
                        at = at.max(Some(mark.time_ms));
                    }
                }
                Ok(None) => break,
                Err(error) if error.is_damage() => break,
                Err(error) => return Err(error.into()),
            }
        }
        bytes += reader.rest().map_or(0, |rest| rest.bytes);
    }
    Ok((lsn, at, bytes))
}

/// The most keys to list by name; of more, only the number is reported.
const NAMED_MAX: usize = 1000;

/// What is missing at the end of the reach: unreadable keys, and all later changes.
fn lost(
    best: &Reach,
    is_unreadable: bool,
    newest: Option<&SetInfo>,
    (end, at, behind): &(Lsn, Option<UnixMs>, u64),
) -> Vec<String> {
    let why = if best.salvage.is_some() || is_unreadable {
        "its value, or a part of it, cannot be read"
    } else {
        "its value needs a dictionary"
    };
    let mut lost: Vec<String> =
        best.lost.names().take(NAMED_MAX).map(|name| format!("the key {name}: {why}")).collect();
    if best.lost.len() > NAMED_MAX {
        lost.push(format!("{} more, for the same reason", count((best.lost.len() - NAMED_MAX) as u64, "key", "keys")));
    }
    if best.is_complete {
        return lost;
    }
    if let Some(salvage) = best.salvage.as_ref().filter(|salvage| salvage.lost() > 0) {
        let (missing, all) = (salvage.lost(), count(salvage.set.entries(), "key", "keys"));
        let set = salvage.set.set;
        lost.push(format!(
            "{missing} of {all} of checkpoint {set}: their blocks are damaged, and their names not known"
        ));
    }
    if let Some(newest) = newest.filter(|newest| best.set != Some(newest.set) && !best.passes(newest)) {
        let (keys, made) = (count(newest.entries(), "key", "keys"), time(newest.created_ms));
        lost.push(format!("the state of checkpoint {}, {made}, with {keys}: every change up to it", newest.set));
    }
    if *end > best.to {
        let until = at.map_or_else(String::new, |at| format!(", {}", time(at)));
        lost.push(format!("changes from LSN {} to at least LSN {end}{until}: {}", best.to, size(end.0 - best.to.0)));
    } else if best.is_cut {
        lost.push(format!("every change after LSN {}: how many is not known", best.to));
    }
    if *behind > 0 && best.is_cut {
        lost.push(format!("{} of the log that cannot be read as records", size(*behind)));
    }
    lost
}
