//! The keys of a database in a file, for `dump`.
//!
//! ```text
//! a walk in steps (crate::sweep) --> Dump: lines --> a channel of CHUNKS_MAX chunks --> the thread `dump` --> the file
//! ```
//!
//! D1. The walk waits, not a worker: while the channel is full it makes no step.

use crate::files::Opening;
use crate::key_prefix::prefix_of;
use crate::listing::letter_of;
use crate::prefixes::NULL;
use base::{Clock, UnixMs};
use engine::Type;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use vfs::{FileSystem, FsError, OpenOptions};

/// Bytes of lines that go to the thread at once.
const CHUNK_BYTES: usize = 64 << 10;
/// Chunks that wait for it.
const CHUNKS_MAX: usize = 4;

/// Which keys are written: all, or those of a prefix, where `None` are those without one.
pub type Wanted = Option<Option<Box<[u8]>>>;

fn wanted_name(wanted: &Wanted) -> &[u8] {
    match wanted {
        None => b"<all>",
        Some(prefix) => prefix.as_deref().unwrap_or(NULL),
    }
}

/// How far a dump has come.
pub struct Run {
    is_running: bool,
    /// Its file is whole.
    is_whole: bool,
    is_asked_to_stop: bool,
    begun: UnixMs,
    ended: UnixMs,
    dumped: u64,
    wanted: Wanted,
    path: PathBuf,
}

/// The lines of a dump on their way to its thread.
struct Lines {
    bytes: Vec<u8>,
    /// `None` after the last.
    sender: Option<SyncSender<Vec<u8>>>,
}

/// What a walk does for a dump.
pub struct Dump {
    wanted: Wanted,
    run: Arc<Mutex<Run>>,
    lines: Mutex<Lines>,
}

/// What a walk is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Make a step.
    Step,
    /// Wait for the thread.
    Wait,
    /// End: it was stopped, or the file cannot be written.
    End,
}

impl Dump {
    /// One whose chunks the thread gets.
    pub fn new(wanted: Wanted, run: Arc<Mutex<Run>>) -> (Self, Receiver<Vec<u8>>) {
        let (sender, chunks) = sync_channel(CHUNKS_MAX);
        let lines = Mutex::new(Lines { bytes: Vec::new(), sender: Some(sender) });
        (Self { wanted, run, lines }, chunks)
    }

    /// What comes next; hands lines to the thread if there are enough, or at the end.
    pub fn next(&self, is_end: bool, now: UnixMs) -> Next {
        if self.run.lock().is_asked_to_stop {
            return Next::End;
        }
        let mut lines = self.lines.lock();
        let Lines { bytes, sender } = &mut *lines;
        let Some(to) = sender else { return Next::End };
        if bytes.len() < CHUNK_BYTES && !is_end {
            return Next::Step;
        }
        let mark = bytes.len();
        if is_end {
            bytes.extend_from_slice(&self.summary(now));
        }
        // Under this lock the thread cannot note its end between the two.
        let mut run = self.run.lock();
        match to.try_send(std::mem::take(bytes)) {
            Ok(()) => {
                if is_end {
                    run.is_whole = true;
                    *sender = None;
                }
                Next::Step
            }
            Err(TrySendError::Full(unsent)) => {
                *bytes = unsent;
                bytes.truncate(mark);
                Next::Wait
            }
            Err(TrySendError::Disconnected(_)) => Next::End,
        }
    }

    /// Takes the line of an entry that expires in `left` seconds, if it is one of those that are wanted.
    pub fn take(&self, key: &[u8], kind: Type, left: i64) {
        let is_wanted = self.wanted.as_ref().is_none_or(|prefix| prefix_of(key) == prefix.as_deref());
        let Some(letter) = letter_of(kind).filter(|_| is_wanted && is_one_word(key)) else { return };
        let mut lines = self.lines.lock();
        lines.bytes.extend_from_slice(&[letter, b' ']);
        lines.bytes.extend_from_slice(key);
        lines.bytes.extend_from_slice(format!(" {left}\n").as_bytes());
        let mut run = self.run.lock();
        run.dumped = run.dumped.saturating_add(1);
    }

    /// The end of the walk: nothing more comes.
    pub fn end(&self) {
        self.lines.lock().sender = None;
    }

    fn summary(&self, now: UnixMs) -> Vec<u8> {
        let run = self.run.lock();
        let seconds = now.saturating_sub(run.begun).max(0) / 1000;
        let rest = format!(", count={}, elapsed={seconds} }}\n", run.dumped);
        [b"DUMP SUMMARY: { prefix=", wanted_name(&self.wanted), rest.as_bytes()].concat()
    }
}

/// Whether a line can hold the key: clients of Redis may give keys that have spaces or line ends.
fn is_one_word(key: &[u8]) -> bool {
    key.iter().all(|byte| *byte > b' ' && *byte != 0x7f)
}

/// The last dump of a server.
#[derive(Default)]
pub struct Dumps {
    last: Mutex<Option<Arc<Mutex<Run>>>>,
}

impl Run {
    /// Notes that it has not begun.
    pub fn give_up(&mut self) {
        self.is_running = false;
    }
}

impl Dumps {
    /// `None` while one is running.
    pub fn start(&self, wanted: &Wanted, path: &Path, now: UnixMs) -> Option<Arc<Mutex<Run>>> {
        let mut last = self.last.lock();
        if last.as_ref().is_some_and(|run| run.lock().is_running) {
            return None;
        }
        let (wanted, path) = (wanted.clone(), path.to_owned());
        let (is_running, is_whole, is_asked_to_stop, ended, dumped) = (true, false, false, 0, 0);
        let run = Run { is_running, is_whole, is_asked_to_stop, begun: now, ended, dumped, wanted, path };
        let run = Arc::new(Mutex::new(run));
        *last = Some(run.clone());
        Some(run)
    }

    /// Has the one that is running end.
    pub fn stop(&self) {
        if let Some(run) = &*self.last.lock() {
            let mut run = run.lock();
            run.is_asked_to_stop = run.is_running;
        }
    }

    /// The lines of `stats dump`: names and values.
    pub fn figures(&self) -> Vec<(&'static str, Vec<u8>)> {
        let last = self.last.lock();
        let run = last.as_ref().map(|run| run.lock());
        let is_running = run.as_ref().is_some_and(|run| run.is_running);
        let word = |word: &str| word.as_bytes().to_vec();
        let mut lines = vec![("dumper:status", word(if is_running { "running" } else { "stopped" }))];
        if !is_running {
            let is_whole = run.as_ref().is_some_and(|run| run.is_whole);
            lines.push(("dumper:success", word(if is_whole { "true" } else { "false" })));
        }
        if let Some(run) = run {
            lines.push(("dumper:mode", word("key")));
            if !is_running {
                let seconds = run.ended.saturating_sub(run.begun).max(0) / 1000;
                lines.push(("dumper:last_run", word(&seconds.to_string())));
            }
            lines.push(("dumper:dumped", word(&run.dumped.to_string())));
            lines.push(("dumper:prefix", wanted_name(&run.wanted).to_vec()));
            lines.push(("dumper:filepath", word(&run.path.display().to_string())));
        }
        lines
    }
}

/// The thread: writes what comes, and notes the end.
///
/// # Errors
/// The operating system's error.
pub fn write(
    (fs, path, run): (Arc<dyn FileSystem>, PathBuf, Arc<Mutex<Run>>),
    clock: &dyn Clock,
    chunks: &Receiver<Vec<u8>>,
    opening: &Opening,
) -> Result<(), FsError> {
    let written = write_all(&*fs, &path, chunks, opening);
    let mut run = run.lock();
    run.is_running = false;
    run.is_whole &= written.is_ok();
    run.ended = clock.now_ms();
    written
}

fn write_all(fs: &dyn FileSystem, path: &Path, chunks: &Receiver<Vec<u8>>, opening: &Opening) -> Result<(), FsError> {
    if let Some(directory) = path.parent() {
        fs.create_dir_all(directory)?;
    }
    let (file, mut at) = (fs.open(path, OpenOptions::write().create().truncate())?, 0u64);
    opening.say(true);
    for chunk in chunks {
        file.write_all_at(&chunk, at)?;
        at = at.saturating_add(chunk.len() as u64);
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::clock::ManualClock;
    use vfs::SimFs;

    const BEGUN: UnixMs = 1_790_000_000_123;

    fn parts(dumps: &Dumps, wanted: Wanted, room: usize) -> (Dump, Arc<Mutex<Run>>, Receiver<Vec<u8>>) {
        let run = dumps.start(&wanted, Path::new("/data/arcus/dump/f"), BEGUN).expect("none is running");
        let (sender, chunks) = sync_channel(room);
        let lines = Mutex::new(Lines { bytes: Vec::new(), sender: Some(sender) });
        (Dump { wanted, run: run.clone(), lines }, run, chunks)
    }

    fn finish(fs: &SimFs, run: &Arc<Mutex<Run>>, chunks: &Receiver<Vec<u8>>) -> String {
        let path = PathBuf::from("/data/arcus/dump/f");
        let clock = ManualClock::new(BEGUN + 2500);
        write((Arc::new(fs.clone()), path.clone(), run.clone()), &clock, chunks, &Opening::new(("", "")))
            .expect("a file");
        let file = fs.open(&path, OpenOptions::read()).expect("it is there");
        let mut bytes = vec![0; file.len().expect("a length") as usize];
        file.read_exact_at(&mut bytes, 0).expect("it can be read");
        String::from_utf8(bytes).expect("text")
    }

    fn figures(dumps: &Dumps) -> String {
        let lines = dumps.figures().into_iter();
        lines.map(|(name, value)| format!("{name}={} ", String::from_utf8_lossy(&value))).collect()
    }

    #[test]
    fn keys_are_in_the_file() {
        let (fs, dumps) = (SimFs::new(1), Dumps::default());
        assert_eq!(figures(&dumps), "dumper:status=stopped dumper:success=false ");
        let (dump, run, chunks) = parts(&dumps, Some(Some(b"p".as_slice().into())), 2);
        assert!(dumps.start(&None, Path::new("/x"), BEGUN).is_none(), "one is running");
        for (key, kind) in
            [(&b"p:a"[..], Type::String), (b"p:b", Type::Btree), (b"p:c", Type::Hash), (b"q:d", Type::List)]
        {
            dump.take(key, kind, 0);
        }
        dump.take(b"p:e", Type::Set, 5);
        dump.take(b"p:f g", Type::String, 0);
        dump.take(b"p:z", Type::Zset, 0);
        assert_eq!(dump.next(false, BEGUN), Next::Step);
        assert_eq!(dump.next(true, BEGUN + 1500), Next::Step);
        dump.end();
        let expected = "K p:a 0\nB p:b 0\nM p:c 0\nS p:e 5\nDUMP SUMMARY: { prefix=p, count=4, elapsed=1 }\n";
        assert_eq!(finish(&fs, &run, &chunks), expected);
        let figures = figures(&dumps);
        assert_eq!(
            figures,
            "dumper:status=stopped dumper:success=true dumper:mode=key dumper:last_run=2 dumper:dumped=4 \
             dumper:prefix=p dumper:filepath=/data/arcus/dump/f "
        );
    }

    #[test]
    fn a_walk_waits_for_the_thread_and_ends_when_it_is_stopped() {
        let (fs, dumps) = (SimFs::new(1), Dumps::default());
        let (dump, run, chunks) = parts(&dumps, Some(None), 1);
        let long = vec![b'k'; 60_000];
        let step = || {
            [&long[..], b"x:y", &long].into_iter().for_each(|key| dump.take(key, Type::List, 0));
            dump.next(false, BEGUN)
        };
        assert_eq!([step(), step(), step()], [Next::Step, Next::Wait, Next::Wait]);
        assert_eq!(dump.next(true, BEGUN), Next::Wait);
        assert!(
            figures(&dumps).starts_with("dumper:status=running dumper:mode=key dumper:dumped=6 dumper:prefix=<null> ")
        );
        dumps.stop();
        assert_eq!(dump.next(false, BEGUN), Next::End);
        dump.end();
        assert!(!finish(&fs, &run, &chunks).contains("SUMMARY"), "the file is a part");
        assert!(figures(&dumps).starts_with("dumper:status=stopped dumper:success=false "));
    }

    #[test]
    fn a_walk_ends_when_nobody_writes() {
        let dumps = Dumps::default();
        let (dump, _, chunks) = parts(&dumps, None, 1);
        drop(chunks);
        assert_eq!(dump.next(true, BEGUN), Next::End);
    }
}
