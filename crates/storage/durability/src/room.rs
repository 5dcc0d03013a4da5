//! A start on a full disk: the server serves what was read and refuses every change with the reason. When there is
//! room, the start continues automatically.
//!
//! N1. Nothing changes before the log is in force: its place is taken by a sink that admits no record, so the store
//!     stays at what was read, and the log can continue where it was found to end.
//! N2. Each attempt searches the end of the log again, since the attempt before may have written a part of what it had
//!     to.

use crate::error::DurabilityError;
use crate::keeper::Durability;
use base::{Lsn, UnixMs};
use checkpoint::ManifestFile;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Admission, RecordSink};

/// Room at which it is tried again: the smallest segment, a manifest, and as much again.
const ROOM_BYTES: u64 = 4 << 20;
/// The first time between two looks, which doubles.
const LOOK_MIN: Duration = Duration::from_millis(20);
/// The longest.
const LOOK_MAX: Duration = Duration::from_secs(1);
/// Attempts take at most one part in this many of the time: each reads the log.
const ATTEMPT_SHARE: u32 = 10;

/// Refuses every change.
struct NoRoom {
    refusal: String,
    end: Lsn,
}

impl RecordSink for NoRoom {
    fn admit(&self, _: usize, _: engine::WriteClass) -> Admission {
        Admission::Refused
    }

    fn refusal(&self) -> Option<String> {
        Some(self.refusal.clone())
    }

    fn append(&self, _: usize, _: &[u8]) -> Lsn {
        unreachable!("nothing is admitted")
    }

    fn durable(&self) -> Lsn {
        self.end
    }

    fn end(&self) -> Lsn {
        self.end
    }

    fn counts(&self) -> bool {
        false
    }
}

impl Durability {
    /// Serves what was read, without changes, until the first writes of the start succeed. `from` is where the log was
    /// read from.
    pub(crate) fn begin_when_there_is_room(
        &self,
        error: DurabilityError,
        from: Option<Lsn>,
        began_ms: UnixMs,
    ) -> Result<ManifestFile, DurabilityError> {
        let sentence = format!(
            "the server started on a full disk: {error}. What it has is read as ever and nothing is changed; free space on the \
             device, and writes go on by themselves"
        );
        self.parts.tell.say(&format!("the disk is full: serving reads, refusing writes until there is room ({error})"));
        self.set_log(Some(Arc::new(NoRoom { refusal: sentence.clone(), end: from.unwrap_or(Lsn(0)) })))?;
        self.state.lock().no_room = Some(sentence);
        self.loading.end();
        self.parts.store.gate.end_loading();
        let mut look = LOOK_MIN;
        loop {
            self.sleep(look);
            self.loading.go_on()?;
            look = (look * 2).min(LOOK_MAX);
            if self.dir.fs().free_space(self.dir.path()).is_ok_and(|space| space.available < ROOM_BYTES) {
                // What a checkpoint has left that was not finished may be what fills it.
                ManifestFile::remove_unfinished(&self.dir)?;
                continue;
            }
            let began = Instant::now();
            match self.begin_anew(from, began_ms) {
                Err(error) if error.is_out_of_space() => look = look.max(began.elapsed() * ATTEMPT_SHARE),
                file => {
                    let file = file?;
                    self.state.lock().no_room = None;
                    self.parts.tell.say("there is room on the disk: writes resume");
                    return Ok(file);
                }
            }
        }
    }

    /// Finds the end of the log as it is now, and tries again (N2).
    fn begin_anew(&self, from: Option<Lsn>, began_ms: UnixMs) -> Result<ManifestFile, DurabilityError> {
        let found = ManifestFile::load(&self.dir)?;
        let find = |from| cmdlog::recover(&*self.parts.fs, self.dir.path(), from, &mut |_, _| Ok(()), &mut |_| {});
        // A log that begins with this start was read from nowhere, and may have begun.
        let from = from.or(found.as_ref().map(ManifestFile::current).filter(|new| new.log.on).map(|new| new.log.since));
        let end = from.map(find).transpose()?;
        self.begin_writing(found, end, began_ms)
    }
}
