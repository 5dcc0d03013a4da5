//! The tier: appends, reads, syncs, and the removal of dead segments.

use crate::format::{self, KEY_LEN_MAX, RECORD_HEAD_BYTES, UNIT_BYTES, record_bytes};
use crate::ledger::{Ledger, Segment};
use crate::mapped::{MappedSegment, MappedSegments, MappedTail};
use crate::medium::{Medium, MediumInUse};
use crate::scan::Scan;
use crate::tail::{Place, Tail};
use crate::{TierError, TierId, identity, names, offline};
use engine::tier::{NewRecord, Origin, VALUE_LEN_MAX};
use engine::{Encoding, TierAddress, TierRefusal, ValueTier};
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Display;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use vfs::{Delays, File, FileLock, FileSystem, OpenOptions};

/// Segment files that are kept open for reads.
const OPEN_FILES_MAX: usize = 256;

/// Time between two tries of a write that has failed.
const RETRY: Duration = Duration::from_secs(1);

/// How a tier is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of all segments, at most.
    pub max_bytes: u64,
    /// Values shorter than this stay in memory.
    pub value_len_min: usize,
    /// Values go to the tier soon after they are written, even if there is memory for them.
    pub takes_written: bool,
    /// The longest segment: of [`crate::segment_bytes_for`], or less in tests. In force from the opening on.
    pub segment_bytes: u64,
    /// What it is made of. In force from the opening on.
    pub medium: Medium,
    /// How much longer accesses to mapped segments take than the medium needs: for experiments. In force from the
    /// opening on.
    pub delays: Delays,
}

/// How often the cleaner looks for work.
const LOOK: Duration = Duration::from_millis(500);

/// Segments of space that only cleaning may take, and the share of `max_bytes` that they are at most.
const RESERVED_SEGMENTS: u64 = 2;
const RESERVED_SHARE: u64 = 16;

/// Headers of the segments that one cleaning may begin.
const HEADERS_BYTES: u64 = 2 * format::HEADER_BYTES as u64;

/// What a tier has and has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Segments.
    pub segments: u64,
    /// Segments that entries name and that have no file.
    pub missing_segments: u64,
    /// Bytes of all segments.
    pub bytes: u64,
    /// Bytes of records that entries have.
    pub live_bytes: u64,
    /// Bytes of values that no entry has, in segments with live ones. Cleaning gives them back.
    pub dead_bytes: u64,
    /// Bytes of segments without live values. They go with the checkpoints that may name them.
    pub pinned_bytes: u64,
    /// Bytes in memory that are to be written.
    pub waiting_bytes: u64,
    /// Values appended since the start.
    pub appended_values: u64,
    /// Bytes of their records.
    pub appended_bytes: u64,
    /// Segments cleaned since the start.
    pub cleaned_segments: u64,
    /// Bytes of the records that cleaning has moved.
    pub cleaning_bytes: u64,
    /// Values read since the start.
    pub read_values: u64,
    /// Reads that failed.
    pub failed_reads: u64,
    /// Segments that scrubbing has read since the start.
    pub scrubbed_segments: u64,
    /// Bytes of their files.
    pub scrubbed_bytes: u64,
    /// Times that scrubbing has come through all segments.
    pub scrub_rounds: u64,
    /// Bytes of records that entries have and that cannot be read, as scrubbing found last.
    pub damaged_bytes: u64,
    /// Whether it takes no values: it is full, or cannot be written.
    pub is_full: bool,
}

#[derive(Default)]
struct Counters {
    appended_values: AtomicU64,
    appended_bytes: AtomicU64,
    cleaned_segments: AtomicU64,
    cleaning_bytes: AtomicU64,
    read_values: AtomicU64,
    failed_reads: AtomicU64,
    scrubbed_segments: AtomicU64,
    scrubbed_bytes: AtomicU64,
    scrub_rounds: AtomicU64,
}

/// What changes with every append.
#[derive(Default)]
struct State {
    tail: Tail,
    /// On a mapped medium, in place of `tail`.
    mapped: Option<MappedTail>,
    ledger: Ledger,
    /// The number of the next segment.
    next: u32,
    /// Segments with bytes that are not durable.
    unsynced: BTreeSet<u32>,
    /// The oldest checkpoint that is retained, or that may come to be; `None` while there is none.
    oldest: Option<u32>,
    /// Why the last write failed, until one succeeds.
    write_failure: Option<String>,
    /// Bytes of live records that scrubbing could not read, by segment.
    damaged: BTreeMap<u32, u64>,
    /// Why the first sync failed (T2).
    sync_failure: Option<String>,
    is_full: bool,
    /// A segment is being cleaned, so there will be room soon.
    is_cleaning: bool,
    /// All entries of a start are loaded, so live bytes are known.
    is_loaded: bool,
    is_ended: bool,
}

impl State {
    /// Bytes that the files of all segments take.
    fn held(&self) -> u64 {
        self.ledger.bytes().saturating_add(self.mapped.as_ref().map_or(0, MappedTail::unfilled))
    }

    /// Whether records go to the segment.
    fn is_writing(&self, segment: u32) -> bool {
        is_writing(&self.tail, self.mapped.as_ref(), segment)
    }
}

fn is_writing(tail: &Tail, mapped: Option<&MappedTail>, segment: u32) -> bool {
    tail.is_writing(segment) || mapped.is_some_and(|mapped| mapped.is_writing(segment))
}

type Tell = Box<dyn Fn(&str) + Send + Sync>;

/// An open tier. Locked against other processes.
pub struct Tier {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    place: Place,
    medium: MediumInUse,
    delays: Delays,
    max_bytes: AtomicU64,
    value_len_min: AtomicUsize,
    takes_written: AtomicBool,
    /// There is a command log, which may have addresses (T6).
    is_logged: AtomicBool,
    state: Mutex<State>,
    /// Notified when a chunk is ready, and at the end.
    work: Condvar,
    /// Notified when a segment is begun, and at the end.
    garbage: Condvar,
    /// Held while a chunk is written: the file of the segment written last.
    writing: Mutex<Option<(u32, Arc<dyn File>)>>,
    files: Mutex<HashMap<u32, Arc<dyn File>>>,
    /// On a mapped medium, the segments that are mapped.
    segments: RwLock<MappedSegments>,
    counters: Counters,
    tell: Tell,
    _lock: FileLock,
}

impl Tier {
    /// Opens the tier in a directory, and makes it if there is none. `expected` is the tier that the data directory
    /// names; without one the directory must have no segments. `new` names a tier that is made. `tell` says what an
    /// operator has to know.
    ///
    /// # Errors
    /// The directory has another tier, or none although one is expected; or it cannot be read or locked.
    pub fn open(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        expected: Option<TierId>,
        new: TierId,
        options: Options,
        tell: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Arc<Self>, TierError> {
        let path = || dir.to_owned();
        if expected.is_some() && identity::read(&*fs, dir)?.is_none() {
            return Err(TierError::Missing { path: path() });
        }
        vfs::create_dirs_synced(&*fs, dir)?;
        let lock = fs.try_lock(&dir.join(names::LOCK))?;
        let mut segments = offline::segments(&*fs, dir)?;
        if expected.is_none() && fs.exists(&dir.join(names::NEW))? {
            // A crash before the data directory named it: nothing has an address in it.
            let leftovers = segments.drain(..).map(|(number, _)| dir.join(names::segment(number)));
            leftovers.into_iter().try_for_each(|path| fs.remove_file(&path))?;
        }
        let id = match (identity::read(&*fs, dir)?, expected) {
            (Some(found), Some(expected)) if found == expected => found,
            (Some(found), None) if segments.is_empty() => found,
            (None, None) if segments.is_empty() => {
                vfs::replace_file(&*fs, &dir.join(names::NEW), b"")?;
                identity::write(&*fs, dir, new)?;
                new
            }
            (None, Some(_)) => return Err(TierError::Missing { path: path() }),
            _ => return Err(TierError::Foreign { path: path() }),
        };
        let medium = options.medium.of(&*fs, dir)?;
        let mapped = medium.is_mapped().then(MappedTail::default);
        let mut state = State { mapped, ..State::default() };
        segments.iter().for_each(|(number, bytes)| state.ledger.add(*number, *bytes));
        state.next = state.ledger.last().map_or(1, |last| last.saturating_add(1));
        Ok(Arc::new(Self {
            fs,
            dir: dir.to_owned(),
            place: Place { id, segment_bytes: options.segment_bytes },
            medium,
            delays: options.delays,
            max_bytes: AtomicU64::new(options.max_bytes),
            value_len_min: AtomicUsize::new(options.value_len_min),
            takes_written: AtomicBool::new(options.takes_written),
            is_logged: AtomicBool::new(false),
            state: Mutex::new(state),
            work: Condvar::new(),
            garbage: Condvar::new(),
            writing: Mutex::new(None),
            files: Mutex::default(),
            segments: RwLock::default(),
            counters: Counters::default(),
            tell: Box::new(tell),
            _lock: lock,
        }))
    }

    /// Which tier it is.
    pub fn id(&self) -> TierId {
        self.place.id
    }

    /// What it is made of.
    pub fn medium(&self) -> MediumInUse {
        self.medium
    }

    /// How much longer accesses take than the medium needs.
    pub fn delays(&self) -> Delays {
        self.delays
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The data directory names the tier, durably.
    ///
    /// # Errors
    /// The file system's.
    pub fn named(&self) -> Result<(), TierError> {
        match self.fs.remove_file(&self.dir.join(names::NEW)) {
            Err(error) if error.is_not_found() => Ok(()),
            removed => Ok(removed.and_then(|()| self.fs.sync_dir(&self.dir))?),
        }
    }

    /// Follows changed settings.
    pub fn set_options(&self, options: Options) {
        self.max_bytes.store(options.max_bytes, Ordering::Relaxed);
        self.value_len_min.store(options.value_len_min, Ordering::Relaxed);
        self.takes_written.store(options.takes_written, Ordering::Relaxed);
        self.state.lock().is_full = false;
    }

    /// Whether there is a command log.
    pub fn set_logged(&self, is_logged: bool) {
        self.is_logged.store(is_logged, Ordering::Relaxed);
    }

    /// Writes what is ready until [`Tier::end`]: the work of a thread.
    pub fn run(&self) {
        loop {
            let mut state = self.state.lock();
            if state.is_ended {
                return;
            }
            if state.write_failure.is_some() {
                self.work.wait_for(&mut state, RETRY);
            } else if state.mapped.as_ref().is_some_and(MappedTail::lacks_spare) {
                // Perhaps for lack of room, which comes without notice.
                if !self.may_add_segment(&state) || state.sync_failure.is_some() {
                    self.work.wait_for(&mut state, RETRY);
                }
            } else if state.tail.first().is_none() {
                self.work.wait(&mut state);
            }
            let oldest = state.oldest;
            drop(state);
            // `write_waiting` reports a failure, and this loop tries again.
            let _ = self.write_waiting();
            // Without checkpoints nothing else asks for it.
            if oldest.is_none() {
                let _ = self.retire(oldest);
            }
        }
    }

    /// Ends [`Tier::run`].
    pub fn end(&self) {
        self.state.lock().is_ended = true;
        self.work.notify_all();
        self.garbage.notify_all();
    }

    /// The tier takes no more values, and open segments are cut to their records (P2). It can be read as before.
    pub fn close(&self) {
        self.end();
        let _writing = self.writing.lock();
        self.state.lock().mapped.iter_mut().for_each(MappedTail::close_all);
        self.cut_full();
    }

    /// Writes the chunks that are ready.
    ///
    /// # Errors
    /// The file system's. What is not written stays in memory. The tier takes no values until a later call succeeds.
    pub fn write_waiting(&self) -> Result<(), TierError> {
        let mut writing = self.writing.lock();
        if self.medium.is_mapped() {
            let result = self.make_ready();
            return self.note_written(self.state.lock(), result);
        }
        loop {
            let Some(chunk) = self.state.lock().tail.first() else { return Ok(()) };
            let result = self.file_to_write(&mut writing, chunk.segment);
            let result = result.and_then(|file| Ok(file.write_all_at(&chunk.bytes, chunk.at)?));
            let mut state = self.state.lock();
            if result.is_ok() {
                state.tail.written();
                state.unsynced.insert(chunk.segment);
            }
            self.note_written(state, result)?;
        }
    }

    /// Says when writes begin to fail, and when they succeed again.
    fn note_written<E: Display>(&self, mut state: MutexGuard<'_, State>, result: Result<(), E>) -> Result<(), E> {
        let text = match &result {
            Ok(()) if state.write_failure.take().is_some() => "the tier can be written again".to_owned(),
            Err(error) if state.write_failure.replace(error.to_string()).is_none() => {
                format!("the tier in {} cannot be written, values stay in memory: {error}", self.dir.display())
            }
            _ => return result,
        };
        drop(state);
        (self.tell)(&text);
        result
    }

    /// Whether there is room for a segment of the greatest length.
    fn may_add_segment(&self, state: &State) -> bool {
        state.held().saturating_add(self.place.segment_bytes) <= self.limit(Origin::Cleaning)
    }

    /// Cuts full segments, and makes a spare one if there is none, and room for one (P2). The caller holds `writing`.
    fn make_ready(&self) -> Result<(), TierError> {
        self.cut_full();
        let number = {
            let mut state = self.state.lock();
            let lacks = state.mapped.as_ref().is_some_and(MappedTail::lacks_spare);
            if !lacks || state.is_ended || state.sync_failure.is_some() || !self.may_add_segment(&state) {
                return Ok(());
            }
            let number = state.next;
            state.next = number.saturating_add(1);
            number
        };
        let (path, segment_bytes) = (self.path(number), self.place.segment_bytes);
        let made = self.fs.map_writable(&path, OpenOptions::write().create_new(), segment_bytes).and_then(|region| {
            region.write_nt(&format::header(number, self.place.id, true), 0)?;
            region.fence();
            self.fs.sync_dir(&self.dir)?;
            Ok(region)
        });
        let region = made.inspect_err(|_| {
            // Part of a segment has no record. The next start counts it as dead if it cannot be removed now.
            let _ = self.fs.remove_file(&path);
        })?;
        let region = self.delays.of(region);
        self.segments.write().add(number, region.clone(), true);
        self.state.lock().mapped.iter_mut().for_each(|mapped| mapped.add_spare(number, region.clone()));
        Ok(())
    }

    /// Cuts full segments. The caller holds `writing`, or has the tier to itself.
    fn cut_full(&self) {
        let first_full = || self.state.lock().mapped.as_ref()?.first_full();
        while let Some((number, len)) = first_full() {
            self.cut(number, len);
            self.state.lock().mapped.iter_mut().for_each(|mapped| mapped.cut(number));
        }
    }

    /// Cuts a segment to its records, or removes it if it has none. What cannot be cut takes space until it is cleaned.
    fn cut(&self, number: u32, len: u64) {
        let path = self.path(number);
        let _ = match len {
            0 => self.fs.remove_file(&path),
            _ => self.fs.open(&path, OpenOptions::write()).and_then(|file| file.set_len(len)),
        };
    }

    fn file_to_write(
        &self,
        writing: &mut Option<(u32, Arc<dyn File>)>,
        segment: u32,
    ) -> Result<Arc<dyn File>, TierError> {
        if let Some((number, file)) = writing
            && *number == segment
        {
            return Ok(file.clone());
        }
        let file = self.fs.open(&self.path(segment), OpenOptions::write().create())?;
        *writing = Some((segment, file.clone()));
        Ok(file)
    }

    fn path(&self, segment: u32) -> PathBuf {
        self.dir.join(names::segment(segment))
    }

    /// Makes all values durable that were appended before the call. Blocks for as long as the device takes.
    ///
    /// # Errors
    /// A write failed, which may be tried again; or a sync failed, now or earlier (T2).
    pub fn sync(&self) -> Result<(), TierError> {
        self.state.lock().tail.close_chunks();
        self.write_waiting()?;
        let unsynced = {
            let mut state = self.state.lock();
            if let Some(why) = &state.sync_failure {
                return Err(TierError::Unsynced { why: why.clone() });
            }
            std::mem::take(&mut state.unsynced)
        };
        if unsynced.is_empty() {
            return Ok(());
        }
        let sync_one = |segment: &u32| {
            // On persistent memory each append has done it (P1).
            if let Some(mapped) = self.segments.read().get(*segment).cloned() {
                return Ok(mapped.region.durable_barrier()?);
            }
            Ok(self.fs.open(&self.path(*segment), OpenOptions::write())?.sync_all()?)
        };
        let synced: Result<(), TierError> = unsynced.iter().try_for_each(sync_one);
        let synced = synced.and_then(|()| Ok(self.fs.sync_dir(&self.dir)?));
        synced.map_err(|error| {
            let why = error.to_string();
            self.state.lock().sync_failure = Some(why.clone());
            TierError::Unsynced { why }
        })
    }

    /// A checkpoint of this number begins. Call it before its cut.
    pub fn begin_set(&self, set: u32) {
        let mut state = self.state.lock();
        state.ledger.begin_set(set);
        state.oldest.get_or_insert(set);
    }

    /// All entries of a start are loaded; `set` is the newest checkpoint.
    pub fn loaded(&self, set: u32) {
        let mut state = self.state.lock();
        state.ledger.loaded(set);
        state.is_loaded = true;
    }

    /// Removes segments that nothing needs; `oldest` is the oldest checkpoint that is retained, durably. Does nothing
    /// before all entries of a start are loaded, since only then it is known what they need.
    ///
    /// # Errors
    /// A file cannot be removed. It is tried again at the next start.
    pub fn retire(&self, oldest: Option<u32>) -> Result<(), TierError> {
        let dead = {
            let mut state = self.state.lock();
            if !state.is_loaded {
                return Ok(());
            }
            let State { ledger, tail, mapped, unsynced, damaged, oldest: known, .. } = &mut *state;
            // One that has begun meanwhile counts as retained until it has failed.
            *known = oldest.or(*known);
            if known.is_none() && self.is_logged.load(Ordering::Relaxed) {
                return Ok(());
            }
            let dead = ledger.take_dead(*known, |segment| is_writing(tail, mapped.as_ref(), segment));
            unsynced.retain(|segment| !dead.contains(segment));
            damaged.retain(|segment, _| !dead.contains(segment));
            state.is_full &= dead.is_empty();
            dead
        };
        for segment in dead {
            self.files.lock().remove(&segment);
            self.segments.write().remove(segment);
            match self.fs.remove_file(&self.path(segment)) {
                // It had none.
                Err(error) if error.is_not_found() => {}
                removed => removed?,
            }
        }
        Ok(())
    }

    /// Bytes that segments may take for values of this origin. Cleaning may take more, or a full tier could not be
    /// cleaned.
    fn limit(&self, origin: Origin) -> u64 {
        let max = self.max_bytes.load(Ordering::Relaxed);
        // A mapped segment takes its greatest length from the beginning.
        let share = if self.medium.is_mapped() { 2 } else { RESERVED_SHARE };
        let reserved = (RESERVED_SEGMENTS * self.place.segment_bytes).min(max / share);
        match origin {
            Origin::Memory if max < u64::MAX => max - reserved,
            _ => max,
        }
    }

    /// The segment to clean next, if there is enough to gain; with `is_short` as if space were short.
    pub fn victim(&self, is_short: bool) -> Option<u32> {
        let state = self.state.lock();
        self.victim_of(&state, is_short)
    }

    /// Bytes of records that cleaning can write now.
    fn room_to_clean(&self, state: &State) -> u64 {
        let Some(mapped) = &state.mapped else {
            return self.limit(Origin::Cleaning).saturating_sub(state.ledger.bytes() + HEADERS_BYTES);
        };
        let has_segment = !mapped.lacks_spare() || self.may_add_segment(state);
        let segment =
            if has_segment { self.place.segment_bytes.saturating_sub(format::HEADER_BYTES as u64) } else { 0 };
        mapped.left(Origin::Cleaning).saturating_add(segment)
    }

    fn victim_of(&self, state: &State, is_short: bool) -> Option<u32> {
        if !state.is_loaded || state.write_failure.is_some() || state.sync_failure.is_some() {
            return None;
        }
        let near = state.held().saturating_add(RESERVED_SEGMENTS * self.place.segment_bytes);
        let is_short = is_short || near > self.limit(Origin::Memory);
        state.ledger.victim(is_short, self.room_to_clean(state), |segment| state.is_writing(segment))
    }

    /// Waits for a segment to clean; `None` at the end.
    pub fn wait_for_victim(&self) -> Option<u32> {
        let mut state = self.state.lock();
        while !state.is_ended {
            let victim = self.victim_of(&state, false);
            state.is_cleaning = victim.is_some();
            if victim.is_some() {
                return victim;
            }
            self.garbage.wait_for(&mut state, LOOK);
        }
        None
    }

    /// Cleaning finds no room to move values to: a full tier refuses values meanwhile.
    pub fn stop_cleaning(&self) {
        self.state.lock().is_cleaning = false;
    }

    /// Pauses cleaning or scrubbing; false at the end.
    pub fn pause(&self, time: Duration) -> bool {
        let (mut state, until) = (self.state.lock(), Instant::now() + time);
        while !state.is_ended && !self.garbage.wait_until(&mut state, until).timed_out() {}
        !state.is_ended
    }

    /// Whether there is so little space that cleaning should not pause.
    pub fn is_short(&self) -> bool {
        let state = self.state.lock();
        let (space, held) = (state.ledger.space(), state.held());
        space.dead > space.live / 2 || held > self.limit(Origin::Memory)
    }

    /// The longest segment.
    pub fn segment_bytes(&self) -> u64 {
        self.place.segment_bytes
    }

    /// All records of a segment that is not being written.
    ///
    /// # Errors
    /// It cannot be read, or its header is damaged.
    pub fn scan(&self, segment: u32) -> Result<Scan, TierError> {
        Scan::new(self.file_to_read(segment)?, Some(segment))
    }

    /// The segments that scrubbing is to read: those that have live records, and are not being written.
    pub fn segments_to_scrub(&self) -> Vec<u32> {
        let state = self.state.lock();
        let is_due = |number, segment: &Segment| segment.live > 0 && !segment.is_missing && !state.is_writing(number);
        state.ledger.iter().filter(|(number, segment)| is_due(*number, segment)).map(|(number, _)| number).collect()
    }

    /// Bytes of records of the segment that entries have.
    pub fn live_bytes_of(&self, segment: u32) -> u64 {
        self.state.lock().ledger.live_of(segment)
    }

    /// The checksum of the record at an address was compared (P3).
    pub fn note_checked(&self, address: TierAddress) {
        if let Some(mapped) = self.segments.read().get(address.segment) {
            mapped.note_checked(address);
        }
    }

    /// Scrubbing has read a segment of `bytes` bytes, and found `damaged` bytes of its live records damaged. True when
    /// it knew of fewer before.
    pub fn note_scrubbed(&self, segment: u32, bytes: u64, damaged: u64) -> bool {
        self.counters.scrubbed_segments.fetch_add(1, Ordering::Relaxed);
        self.counters.scrubbed_bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut state = self.state.lock();
        let before = match damaged {
            0 => state.damaged.remove(&segment),
            _ => state.damaged.insert(segment, damaged),
        };
        damaged > before.unwrap_or(0)
    }

    /// Scrubbing has come through all segments.
    pub fn note_scrub_round(&self) {
        self.counters.scrub_rounds.fetch_add(1, Ordering::Relaxed);
    }

    /// All live records that could be moved from a segment are moved.
    pub fn set_cleaned(&self, segment: u32) {
        self.state.lock().ledger.set_cleaned(segment);
        self.counters.cleaned_segments.fetch_add(1, Ordering::Relaxed);
    }

    /// Bytes of segments without live values that go when all checkpoints before `set` are given up, and of those that
    /// then stay.
    pub fn pinned_before(&self, set: u32) -> (u64, u64) {
        self.state.lock().ledger.pinned_before(set)
    }

    /// What it has and has done.
    pub fn figures(&self) -> Figures {
        let state = self.state.lock();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let space = state.ledger.space();
        let (mut segments, mut missing_segments) = (0, 0);
        state.ledger.iter().for_each(|(_, segment)| match segment.is_missing {
            true => missing_segments += 1,
            false => segments += 1,
        });
        Figures {
            segments,
            missing_segments,
            bytes: state.held(),
            live_bytes: state.ledger.live(),
            dead_bytes: space.dead,
            pinned_bytes: space.pinned,
            waiting_bytes: state.tail.bytes() as u64,
            appended_values: read(&self.counters.appended_values),
            appended_bytes: read(&self.counters.appended_bytes),
            cleaned_segments: read(&self.counters.cleaned_segments),
            cleaning_bytes: read(&self.counters.cleaning_bytes),
            read_values: read(&self.counters.read_values),
            failed_reads: read(&self.counters.failed_reads),
            scrubbed_segments: read(&self.counters.scrubbed_segments),
            scrubbed_bytes: read(&self.counters.scrubbed_bytes),
            scrub_rounds: read(&self.counters.scrub_rounds),
            // What has left since is no damage.
            damaged_bytes: state
                .damaged
                .iter()
                .map(|(segment, bytes)| state.ledger.live_of(*segment).min(*bytes))
                .sum(),
            is_full: state.is_full || state.write_failure.is_some() || state.sync_failure.is_some(),
        }
    }

    fn file_to_read(&self, segment: u32) -> Result<Arc<dyn File>, vfs::FsError> {
        if let Some(file) = self.files.lock().get(&segment) {
            return Ok(file.clone());
        }
        let file = self.fs.open(&self.path(segment), OpenOptions::read())?;
        let mut files = self.files.lock();
        if files.len() >= OPEN_FILES_MAX {
            files.clear();
        }
        files.insert(segment, file.clone());
        Ok(file)
    }

    /// The segment's mapping, made if there is none. `None` when it cannot be mapped: read its file.
    fn segment_to_read(&self, segment: u32) -> Option<Arc<MappedSegment>> {
        if let Some(mapped) = self.segments.read().get(segment) {
            return Some(mapped.clone());
        }
        let path = self.path(segment);
        let len = self.fs.metadata(&path).ok()?.len;
        let region = self.delays.of(self.fs.map_writable(&path, OpenOptions::write(), len).ok()?);
        let mut segments = self.segments.write();
        Some(match segments.get(segment) {
            Some(mapped) => mapped.clone(),
            None => segments.add(segment, region, false),
        })
    }

    fn read_mapped(
        segment: &MappedSegment,
        key: &[u8],
        address: TierAddress,
        value: &mut Vec<u8>,
    ) -> Result<Encoding, TierError> {
        segment.read(key, address, value).map_err(|what| {
            let offset = u64::from(address.offset) * UNIT_BYTES;
            TierError::Damaged { segment: address.segment, offset, what }
        })
    }

    fn read(&self, key: &[u8], address: TierAddress, value: &mut Vec<u8>) -> Result<Encoding, TierError> {
        let mapped = self.medium.is_mapped().then(|| self.segment_to_read(address.segment)).flatten();
        match mapped {
            Some(mapped) => Self::read_mapped(&mapped, key, address, value),
            None => read_record(self.file_to_read(address.segment), key, address, value),
        }
    }

    /// Reads a value for a tool that has no open tier.
    ///
    /// # Errors
    /// As [`ValueTier::get`].
    pub fn read_in(
        fs: &dyn FileSystem,
        dir: &Path,
        key: &[u8],
        address: TierAddress,
        value: &mut Vec<u8>,
    ) -> Result<Encoding, TierError> {
        let file = fs.open(&dir.join(names::segment(address.segment)), OpenOptions::read());
        read_record(file, key, address, value)
    }
}

/// Reads the record at an address from its segment's file, and checks it (T4).
fn read_record(
    file: vfs::Result<Arc<dyn File>>,
    key: &[u8],
    address: TierAddress,
    value: &mut Vec<u8>,
) -> Result<Encoding, TierError> {
    let at = u64::from(address.offset) * UNIT_BYTES;
    let damaged = |what| TierError::Damaged { segment: address.segment, offset: at, what };
    let mut record = vec![0; RECORD_HEAD_BYTES + key.len() + address.len as usize];
    file.and_then(|file| file.read_exact_at(&mut record, at)).map_err(|error| damaged(error.to_string()))?;
    let (encoding, bytes) = format::check(&record, key, address).map_err(damaged)?;
    value.extend_from_slice(bytes);
    Ok(encoding)
}

impl Drop for Tier {
    fn drop(&mut self) {
        self.close();
    }
}

impl ValueTier for Tier {
    fn append(&self, record: &NewRecord<'_>, origin: Origin) -> Result<TierAddress, TierRefusal> {
        if record.value.len() > VALUE_LEN_MAX || record.key.len() > KEY_LEN_MAX {
            return Err(TierRefusal::Full);
        }
        let bytes = record_bytes(record.key.len(), record.value.len() as u32);
        let mut state = self.state.lock();
        if state.write_failure.is_some() || state.sync_failure.is_some() {
            return Err(TierRefusal::Full);
        }
        let max = self.limit(origin);
        let is_over = match &state.mapped {
            None => state.ledger.bytes().saturating_add(bytes) > max,
            // The spare counts as held.
            Some(mapped) if mapped.needs_spare(origin, bytes) => match mapped.lacks_spare() {
                true => !self.may_add_segment(&state),
                false => state.held() > max,
            },
            Some(_) => false,
        };
        if is_over && origin == Origin::Memory && state.is_cleaning {
            return Err(TierRefusal::Busy);
        }
        if is_over {
            self.garbage.notify_all();
            if !std::mem::replace(&mut state.is_full, true) {
                let (held, space) = (state.held(), state.ledger.space());
                drop(state);
                (self.tell)(&format!(
                    "the tier is full: {held} bytes of {max}, {} of them in use and {} kept for checkpoints; values \
                     stay in memory. Raise tier-max-bytes, or keep fewer checkpoints",
                    space.live, space.pinned
                ));
            }
            return Err(TierRefusal::Full);
        }
        if state.tail.is_busy() || state.mapped.as_ref().is_some_and(|mapped| mapped.is_busy(origin, bytes)) {
            drop(state);
            self.work.notify_one();
            return Err(TierRefusal::Busy);
        }
        let next = state.next;
        let appended = match &mut state.mapped {
            None => state.tail.append(record, origin, next, self.place),
            Some(_) if bytes > self.place.segment_bytes - format::HEADER_BYTES as u64 => return Err(TierRefusal::Full),
            Some(mapped) => match mapped.append(record, origin) {
                Ok(appended) => appended,
                Err(error) => {
                    let _ = self.note_written(state, Err(error));
                    self.work.notify_one();
                    return Err(TierRefusal::Full);
                }
            },
        };
        if let Some(begun) = appended.begun {
            state.next = state.next.max(begun.saturating_add(1));
            state.ledger.add(begun, 0);
        }
        if matches!(self.medium, MediumInUse::Shared | MediumInUse::Volatile) {
            state.unsynced.insert(appended.address.segment);
        }
        state.ledger.grow(appended.address.segment, appended.bytes);
        drop(state);
        if appended.is_chunk_full {
            self.work.notify_one();
        }
        if appended.begun.is_some() {
            self.garbage.notify_all();
        }
        match origin {
            Origin::Memory => {
                self.counters.appended_values.fetch_add(1, Ordering::Relaxed);
                self.counters.appended_bytes.fetch_add(appended.bytes, Ordering::Relaxed);
            }
            Origin::Cleaning => _ = self.counters.cleaning_bytes.fetch_add(appended.bytes, Ordering::Relaxed),
        }
        Ok(appended.address)
    }

    fn retain(&self, key: &[u8], address: TierAddress) {
        let mut state = self.state.lock();
        let is_missing = state.ledger.retain(address.segment, record_bytes(key.len(), address.len));
        if is_missing {
            // Its number is not given again.
            state.next = state.next.max(address.segment.saturating_add(1));
            drop(state);
            (self.tell)(&format!(
                "tier segment {} is missing in {}: reads of its values answer an error",
                address.segment,
                self.dir.display()
            ));
        }
    }

    fn release(&self, key: &[u8], address: TierAddress) {
        self.state.lock().ledger.release(address.segment, record_bytes(key.len(), address.len));
    }

    fn try_get(&self, key: &[u8], address: TierAddress, value: &mut Vec<u8>) -> Option<Encoding> {
        if self.medium.is_mapped() {
            // What is wrong with it is said by `get`.
            let encoding = self.segments.read().get(address.segment)?.read(key, address, value).ok()?;
            self.counters.read_values.fetch_add(1, Ordering::Relaxed);
            return Some(encoding);
        }
        let state = self.state.lock();
        let (encoding, bytes) = format::check(state.tail.record(address)?, key, address).ok()?;
        value.extend_from_slice(bytes);
        drop(state);
        self.counters.read_values.fetch_add(1, Ordering::Relaxed);
        Some(encoding)
    }

    fn prefetch(&self, key_len: usize, address: TierAddress) {
        if let Some(mapped) = self.segments.read().get(address.segment) {
            let at = u64::from(address.offset) * UNIT_BYTES;
            mapped.region.prefetch(at, record_bytes(key_len, address.len));
        }
    }

    fn try_copy(
        &self,
        key: &[u8],
        address: TierAddress,
        bytes_max: usize,
        record: &mut Vec<u8>,
    ) -> Option<(Encoding, Range<usize>)> {
        let begin = RECORD_HEAD_BYTES + key.len();
        let end = begin.checked_add(address.len as usize).filter(|end| *end <= bytes_max)?;
        if record.len() < end {
            record.resize(end, 0);
        }
        let part = record.get_mut(..end)?;
        let encoding = match self.medium.is_mapped() {
            true => self.segments.read().get(address.segment)?.copy(key, address, part).ok()?,
            false => {
                let state = self.state.lock();
                let bytes = state.tail.record(address)?.get(..end)?;
                let (encoding, _) = format::check(bytes, key, address).ok()?;
                part.copy_from_slice(bytes);
                encoding
            }
        };
        self.counters.read_values.fetch_add(1, Ordering::Relaxed);
        Some((encoding, begin..end))
    }

    fn get(&self, key: &[u8], address: TierAddress, value: &mut Vec<u8>) -> io::Result<Encoding> {
        if let Some(encoding) = self.try_get(key, address, value) {
            return Ok(encoding);
        }
        let result = self.read(key, address, value);
        let counter = if result.is_ok() { &self.counters.read_values } else { &self.counters.failed_reads };
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(result?)
    }

    fn relieve(&self) {
        // `write_waiting` reports a failure, and the tier then refuses values.
        let _ = self.write_waiting();
    }

    fn value_len_min(&self) -> usize {
        self.value_len_min.load(Ordering::Relaxed)
    }

    fn takes_written(&self) -> bool {
        self.takes_written.load(Ordering::Relaxed)
    }

    fn is_mapped(&self) -> bool {
        self.medium.is_mapped()
    }

    fn is_durable_at_once(&self) -> bool {
        self.medium == MediumInUse::Dax
    }
}
