//! `cmdlog`: the lines that memcached clients send, in files.
//!
//! ```text
//! a worker: a line --> CommandLines::note --> a channel --> the thread `cmdlog` --> command_PORT_DAY_TIME_N.log
//! ```
//!
//! C1. A worker never waits: what the channel has no room for is counted and left out.
//! C2. A run takes ten files of 10 MB, and ends then.
//! C3. Data of items is not in the files, and so no password of a login.

use super::for_administrators;
use super::stamps::{stamp, time_of_day};
use crate::files::{self, Opening};
use base::{Clock, UnixMs};
use calendar::{TimeZone, system_zone};
use command::clients::Address;
use command::{Ctx, Stop};
use parking_lot::{Mutex, RwLock};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use store::Store;
use vfs::{File, FileSystem, FsError, OpenOptions};

/// Lines that wait for the thread.
const LINES_MAX: usize = 16 * 1024;
/// The longest line in a file, with its end.
const LINE_BYTES_MAX: usize = 399;
/// Bytes after which a file ends.
const FILE_BYTES_MAX: u64 = 10 << 20;
/// Files of a run.
const FILES_MAX: u32 = 10;
/// Bytes that are written at once.
const WRITE_BYTES: usize = 64 << 10;

const USAGE: &str = "\t* Usage: cmdlog [start [path] | stop | stats]\n";
const STARTED: &str = "\tcommand logging started.\n";
const ALREADY_STARTED: &str = "\tcommand logging already started.\n";
const FAILED: &str = "\tcommand logging failed to start.\n";

/// How far a run has come, in the words of ARCUS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    NotStarted,
    Full,
    Failed,
    Running,
}

impl State {
    fn text(self) -> &'static str {
        match self {
            Self::NotStarted => "Not started",
            Self::Full => "stopped by command log overflow",
            Self::Failed => "stopped by disk flush error",
            Self::Running => "running",
        }
    }
}

/// A run from its start on, and after its end.
struct Run {
    state: State,
    begun: UnixMs,
    /// When it ended or was ended; 0 before.
    ended: UnixMs,
    files: u32,
    directory: String,
    port: u16,
    zone: TimeZone,
}

impl Run {
    fn stats(&self, entered: u64, skipped: u64, now: UnixMs) -> String {
        let ended = if self.ended == 0 && self.begun != 0 { now } else { self.ended };
        let (begun, ended) = (stamp(self.begun, &self.zone), stamp(ended, &self.zone));
        format!(
            "\tCommand logging state : {}\n\tThe last running time : {begun} ~ {ended}\n\
             \tThe number of entered commands : {entered}\n\tThe number of skipped commands : {skipped}\n\
             \tThe number of log files : {}\n\tThe log file name: {}/command_{}_{begun}_{{n}}.log\n",
            self.state.text(),
            self.files,
            self.directory,
            self.port,
        )
    }
}

/// A line that a client has sent.
struct Line {
    at: UnixMs,
    address: String,
    text: Box<[u8]>,
}

impl Line {
    /// As it is in a file.
    fn put(&self, out: &mut Vec<u8>, zone: &TimeZone) {
        let start = out.len();
        out.extend_from_slice(format!("{} {} ", time_of_day(self.at, zone), self.address).as_bytes());
        out.extend_from_slice(&self.text);
        if out.len().saturating_sub(start) < LINE_BYTES_MAX {
            return out.push(b'\n');
        }
        out.truncate(start.saturating_add(LINE_BYTES_MAX).saturating_sub(3));
        out.extend_from_slice(b"..\n");
    }
}

/// The lines of a server's clients.
#[derive(Default)]
pub struct CommandLines {
    /// Where they go while a run is on.
    lines: RwLock<Option<SyncSender<Line>>>,
    run: Mutex<Option<Arc<Mutex<Run>>>>,
    entered: AtomicU64,
    skipped: AtomicU64,
}

impl CommandLines {
    /// Notes the line that `input` begins with. False when the run has ended, and none is to be noted any more.
    #[cold]
    pub fn note(&self, at: UnixMs, address: &Address, input: &[u8]) -> bool {
        let lines = self.lines.read();
        let Some(lines) = &*lines else { return false };
        let text = input.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let text = text.get(..text.len().min(LINE_BYTES_MAX)).unwrap_or_default().into();
        self.entered.fetch_add(1, Ordering::Relaxed);
        match lines.try_send(Line { at, address: address.host(), text }) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.skipped.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }

    /// Begins a run, unless the last one has not ended. Gives what it writes, and whether one is on.
    fn start(&self, run: Run) -> Result<(Arc<Mutex<Run>>, Receiver<Line>), &'static str> {
        let mut last = self.run.lock();
        if let Some(last) = &*last {
            let last = last.lock();
            match last.state {
                State::Running if last.ended == 0 => return Err(ALREADY_STARTED),
                State::Running => return Err(FAILED),
                _ => {}
            }
        }
        let (sender, lines) = sync_channel(LINES_MAX);
        let run = Arc::new(Mutex::new(run));
        *last = Some(run.clone());
        [&self.entered, &self.skipped].into_iter().for_each(|count| count.store(0, Ordering::Relaxed));
        *self.lines.write() = Some(sender);
        Ok((run, lines))
    }

    /// False when none is on.
    fn stop(&self, now: UnixMs) -> bool {
        // Before the thread can see that no more lines come.
        let is_on = self.run.lock().as_ref().is_some_and(|run| {
            let mut run = run.lock();
            let is_on = run.state == State::Running && run.ended == 0;
            if is_on {
                run.ended = now;
            }
            is_on
        });
        *self.lines.write() = None;
        is_on
    }

    fn stats(&self, port: u16, now: UnixMs) -> String {
        let (entered, skipped) = (self.entered.load(Ordering::Relaxed), self.skipped.load(Ordering::Relaxed));
        match &*self.run.lock() {
            Some(run) => run.lock().stats(entered, skipped, now),
            None => none(port).stats(0, 0, now),
        }
    }
}

/// What there is before the first run.
fn none(port: u16) -> Run {
    let (state, directory, zone) = (State::NotStarted, String::new(), TimeZone::UTC);
    Run { state, begun: 0, ended: 0, files: 0, directory, port, zone }
}

/// The thread of a run.
struct Writer {
    fs: Arc<dyn FileSystem>,
    directory: PathBuf,
    run: Arc<Mutex<Run>>,
    clock: Arc<dyn Clock>,
    file_bytes_max: u64,
    buffer: Vec<u8>,
    /// The file, and its length.
    file: Option<(Arc<dyn File>, u64)>,
}

impl Writer {
    /// Writes the lines of a run, and notes how it has ended.
    fn write(mut self, lines: &Receiver<Line>, opening: &Opening) -> Result<(), FsError> {
        let ended = self.write_all(lines, opening);
        let mut run = self.run.lock();
        run.state = match ended {
            Ok(state) => state,
            Err(_) if run.files == 0 => State::NotStarted,
            Err(_) => State::Failed,
        };
        if run.ended == 0 {
            run.ended = self.clock.now_ms();
        }
        ended.map(drop)
    }

    fn write_all(&mut self, lines: &Receiver<Line>, opening: &Opening) -> Result<State, FsError> {
        self.fs.create_dir_all(&self.directory)?;
        self.open_next()?;
        opening.say(true);
        let zone = self.run.lock().zone.clone();
        loop {
            // While no line comes, all that have come are in the file.
            let line = match lines.try_recv() {
                Ok(line) => line,
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {
                    self.flush()?;
                    match lines.recv() {
                        Ok(line) => line,
                        Err(_) => break,
                    }
                }
            };
            line.put(&mut self.buffer, &zone);
            if self.buffer.len() >= WRITE_BYTES {
                self.flush()?;
            }
            if self.file.as_ref().is_some_and(|(_, bytes)| *bytes >= self.file_bytes_max) {
                if self.run.lock().files >= FILES_MAX {
                    return Ok(State::Full);
                }
                self.open_next()?;
            }
        }
        self.flush()?;
        Ok(State::NotStarted)
    }

    fn open_next(&mut self) -> Result<(), FsError> {
        let mut run = self.run.lock();
        let name = format!("command_{}_{}_{}.log", run.port, stamp(run.begun, &run.zone), run.files);
        let file = self.fs.open(&self.directory.join(name), OpenOptions::write().create())?;
        // Of two runs that began in one second the later one continues the file.
        let bytes = file.len()?;
        self.file = Some((file, bytes));
        run.files = run.files.saturating_add(1);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), FsError> {
        if let Some((file, bytes)) = &mut self.file {
            file.write_all_at(&self.buffer, *bytes)?;
            *bytes = bytes.saturating_add(self.buffer.len() as u64);
        }
        self.buffer.clear();
        Ok(())
    }
}

/// Has the workers note lines, or not.
fn switch(ctx: &Ctx<'_>, is_on: bool) {
    ctx.host.figures.each_stats(|stats| stats.outcomes.set_logged(is_on));
}

/// `cmdlog start [directory]`, `stop` or `stats`
pub fn command_log(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    for_administrators(ctx)?;
    let (lines, now) = (ctx.host.part::<crate::Needed, Arc<CommandLines>>().clone(), ctx.now());
    let words: Vec<&[u8]> = ctx.args.from(1).collect();
    let port = ctx.host.configuration.current().memcached_port;
    let text = match words.as_slice() {
        [b"start", rest @ ..] => {
            let directory = rest.first().copied().unwrap_or(b"command_log");
            let (fs, path) = files::named(ctx, "", directory)?;
            let (state, directory) = (State::Running, path.display().to_string());
            let run = Run { state, begun: now, ended: 0, files: 0, directory, port, zone: system_zone() };
            match lines.start(run) {
                Err(text) => text,
                Ok((run, received)) => {
                    switch(ctx, true);
                    let clock = ctx.host.part::<crate::Needed, Arc<Store>>().clock.clone();
                    let (file_bytes_max, buffer) = (FILE_BYTES_MAX, Vec::new());
                    let writer = Writer { fs, directory: path, run, clock, file_bytes_max, buffer, file: None };
                    files::begin(ctx, "cmdlog", (STARTED, FAILED), move |opening| writer.write(&received, opening));
                    return Ok(());
                }
            }
        }
        [b"stop", ..] => {
            switch(ctx, false);
            if lines.stop(now) { "\tcommand logging stopped.\n" } else { "\tcommand logging already stopped.\n" }
        }
        [b"stats", ..] => {
            let text = lines.stats(port, now);
            ctx.reply.raw(text.as_bytes());
            return Ok(());
        }
        _ => USAGE,
    };
    ctx.reply.text_line(text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::clock::ManualClock;
    use command::blocking::Task as _;
    use std::path::Path;
    use vfs::SimFs;

    const BEGUN: UnixMs = 1_790_000_000_123;

    fn run() -> Run {
        Run { state: State::Running, begun: BEGUN, zone: TimeZone::UTC, directory: "/d".to_owned(), ..none(11_211) }
    }

    fn address() -> Address {
        Address::Tcp("127.0.0.1:5".parse().expect("an address"))
    }

    fn writer(fs: &SimFs, run: Arc<Mutex<Run>>) -> Writer {
        let (clock, directory) = (Arc::new(ManualClock::new(BEGUN)), PathBuf::from("/d"));
        Writer { fs: Arc::new(fs.clone()), directory, run, clock, file_bytes_max: 1000, buffer: Vec::new(), file: None }
    }

    fn content(fs: &SimFs, number: u32) -> String {
        let path = format!("/d/command_11211_20260921_141320_{number}.log");
        let file = fs.open(Path::new(&path), OpenOptions::read()).expect("it is there");
        let mut bytes = vec![0; file.len().expect("a length") as usize];
        file.read_exact_at(&mut bytes, 0).expect("it can be read");
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn lines_are_in_the_file_in_their_order() {
        let (fs, lines) = (SimFs::new(1), CommandLines::default());
        assert!(!lines.note(BEGUN, &address(), b"get a\r\n") && !lines.stop(BEGUN));
        assert!(lines.stats(11_211, BEGUN).starts_with("\tCommand logging state : Not started\n"));
        let (state, received) = lines.start(run()).expect("none is on");
        assert_eq!(lines.start(run()).err(), Some(ALREADY_STARTED));
        let long = "k".repeat(500);
        assert!(lines.note(BEGUN, &address(), b"set a 0 0 3\r\nabc\r\n"));
        assert!(lines.note(BEGUN + 1000, &address(), format!("get {long}\r\n").as_bytes()));
        assert!(lines.stop(BEGUN + 2000) && !lines.stop(BEGUN + 3000));
        assert_eq!(lines.start(run()).err(), Some(FAILED), "the last run has not written all");
        let opening = Opening::new((STARTED, FAILED));
        writer(&fs, state).write(&received, &opening).expect("a file");
        let text = content(&fs, 0);
        let (first, second) = text.split_once('\n').expect("lines");
        assert_eq!(first, "14:13:20.123000 127.0.0.1 set a 0 0 3");
        assert!(second.starts_with("14:13:21.123000 127.0.0.1 get kkk") && second.ends_with("kk..\n"), "{second}");
        assert_eq!(second.len(), LINE_BYTES_MAX);
        assert_eq!(
            lines.stats(1, BEGUN + 9000),
            "\tCommand logging state : Not started\n\tThe last running time : 20260921_141320 ~ 20260921_141322\n\
             \tThe number of entered commands : 2\n\tThe number of skipped commands : 0\n\
             \tThe number of log files : 1\n\tThe log file name: /d/command_11211_20260921_141320_{n}.log\n"
        );
        assert!(lines.start(run()).is_ok(), "it can be started again");
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let lines = CommandLines::default();
        let (_, received) = lines.start(run()).expect("none is on");
        assert!((0..LINES_MAX + 5).all(|_| lines.note(BEGUN, &address(), b"get a\n")));
        let stats = lines.stats(1, BEGUN);
        assert!(stats.contains("entered commands : 16389\n") && stats.contains("skipped commands : 5\n"), "{stats}");
        drop(received);
        assert!(!lines.note(BEGUN, &address(), b"get a\n"), "nobody takes them");
    }

    #[test]
    fn a_run_ends_after_ten_files() {
        let (fs, run) = (SimFs::new(1), Arc::new(Mutex::new(run())));
        let (sender, received) = sync_channel(3000);
        let line = || Line { at: BEGUN, address: "127.0.0.1".to_owned(), text: vec![b'x'; 390].into() };
        (0..3000).for_each(|_| sender.send(line()).expect("there is room"));
        writer(&fs, run.clone()).write(&received, &Opening::new((STARTED, FAILED))).expect("files");
        let state = run.lock().state;
        assert_eq!((state, run.lock().files), (State::Full, FILES_MAX));
        let lens: Vec<usize> = (0..FILES_MAX).map(|number| content(&fs, number).len()).collect();
        let whole = WRITE_BYTES.div_ceil(LINE_BYTES_MAX) * LINE_BYTES_MAX;
        assert_eq!(lens, [whole; FILES_MAX as usize]);
        assert!(received.try_recv().is_ok(), "the rest is not read");
    }

    #[test]
    fn a_run_without_a_directory_ends() {
        let (fs, run) = (SimFs::new(1), Arc::new(Mutex::new(run())));
        let (sender, received) = sync_channel::<Line>(16);
        drop(sender);
        let file = fs.open(Path::new("/d"), OpenOptions::write().create()).expect("a file in its way");
        drop(file);
        let opening = Opening::new((STARTED, FAILED));
        writer(&fs, run.clone()).write(&received, &opening).expect_err("no directory");
        let (run, is_over) = (run.lock(), opening.is_over());
        assert!(run.state == State::NotStarted && run.ended == BEGUN && !is_over);
    }
}
