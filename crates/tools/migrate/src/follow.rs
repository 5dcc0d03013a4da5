//! The data of a running primary: received once as a file, or followed until the applications move.
//!
//! ```text
//! primary --copy--> FILE --load--> store --checkpoint--> DIR
//!    |                               ^  '-----log-------> DIR
//!    '--stream--> pump --> spool --apply: commands, and the position after them, in one record
//! ```
//!
//! F1. What a command changes and the position after it are one record of the log. So a directory continues exactly
//!     where it is, after a kill too.
//! F2. The position is a key of a database above those of the primary. A server that has only the primary's databases
//!     refuses to open it, so an unfinished copy is not served by mistake. The end removes it, and a checkpoint
//!     follows.
//! F3. Nothing expires here: a primary sends what expired as deletions. Its commands run at a time before every
//!     expiration, but for those that store or compare with the present time.
//! F4. While the log is off, a copy replaces all that was there; it counts when the log is on again, with a checkpoint.
//! F5. The stream is read at all times, also while a copy is loaded, so that the primary's buffers stay small. What is
//!     not applied yet waits in a file.

mod keep;
mod place;

use crate::contents::Contents;
use crate::error::MigrateError;
use crate::examine::{Examination, examine};
use base::random::Entropy;
use base::{Clock, UnixMs};
use keep::Kept;
use place::Listened;
use replication::apply::{Applier, Outcome};
use replication::{Copied, Link, LinkError, Opened, Position, Primary, Pump, SILENCE_MAX, Spool, SpoolReader, Terms};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use store::Scratch;
use tls::ClientConfig;
use vfs::{File, FileSystem, OpenOptions};

/// Time before a lost connection is opened again.
const RETRY: Duration = Duration::from_secs(1);

/// Time between two looks at whether the end is asked for.
const LOOK: Duration = Duration::from_millis(50);

/// What is received of a primary.
#[derive(Clone, Debug)]
pub struct Receive<'a> {
    /// The file system of all paths.
    pub fs: &'a Arc<dyn FileSystem>,
    /// The primary.
    pub primary: &'a Primary,
    /// How the connection to it uses TLS; `None` for a plain one.
    pub tls: Option<Arc<ClientConfig>>,
    /// The file to make.
    pub file: &'a Path,
}

/// Receives a primary's copy of all its data as an RDB file. Calls `read` with what is received so far. Blocks until
/// all is received.
///
/// # Errors
/// The connection, or the disk. A file that was begun stays.
pub fn receive(receive: &Receive<'_>, read: &mut dyn FnMut(Copied)) -> Result<u64, MigrateError> {
    let (mut link, opened) = Link::open(receive.primary, &terms(&receive.tls), None)?;
    match opened {
        Opened::Copy(_) => receive_copy(&mut link, &**receive.fs, receive.file, &AtomicBool::new(false), read),
        // Not asked for.
        Opened::Continue(_) => Ok(0),
    }
}

fn terms(tls: &Option<Arc<ClientConfig>>) -> Terms {
    Terms { tls: tls.clone(), ..Terms::default() }
}

/// What is followed, and where to.
#[derive(Clone, Debug)]
pub struct Follow<'a> {
    /// The file system of all paths.
    pub fs: &'a Arc<dyn FileSystem>,
    /// The primary.
    pub primary: &'a Primary,
    /// How the connection to it uses TLS; `None` for a plain one.
    pub tls: Option<Arc<ClientConfig>>,
    /// The data directory: empty, missing, or one that a call before has begun.
    pub dir: &'a Path,
    /// Databases of the primary.
    pub databases: u32,
    /// What cannot be taken is left out.
    pub is_partial: bool,
    /// See [`Examination::scratch`].
    pub scratch: PathBuf,
}

/// What happens while a primary is followed.
#[derive(Debug)]
pub enum Event<'a> {
    /// Connected, for a copy of everything (`true`), or for the stream from the directory's position on.
    Connected {
        /// Whether the primary sends a copy.
        is_copy: bool,
        /// Where the stream begins.
        position: &'a Position,
    },
    /// How much of the copy was received.
    Received(Copied),
    /// What the copy holds.
    Examined(&'a Contents),
    /// Keys of the copy that were loaded.
    Loaded(u64),
    /// The stream: called about ten times a second.
    Applied(Progress),
    /// The connection is lost and will be opened again.
    Lost(&'a LinkError),
    /// What the log or a checkpoint has to say.
    Said(&'a str),
    /// A command was left out, since what cannot be taken is.
    LeftOut {
        /// Its name.
        command: &'a str,
        /// Why.
        why: &'a str,
    },
}

/// How far the stream is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Offset up to which everything is applied.
    pub offset: u64,
    /// Bytes received and not applied yet.
    pub behind: u64,
    /// Commands applied since the start, those that change nothing included.
    pub commands: u64,
}

/// A copy that was ended in order.
#[derive(Clone, Debug)]
pub struct Followed {
    /// Keys in all databases.
    pub keys: u64,
    /// The end of what was applied.
    pub position: Position,
    /// Commands left out.
    pub left_out: u64,
}

/// Copies a primary and applies its stream until `stop` is set; then what was received is applied, and the directory is
/// one that a server opens. Called again after a crash, it continues where the directory is, if the primary still has
/// that part of its stream.
///
/// # Errors
/// Every [`MigrateError`]. Except after [`MigrateError::NotEmpty`], another call can continue with the directory.
pub fn follow(
    follow: &Follow<'_>,
    clock: &Arc<dyn Clock>,
    entropy: &Arc<dyn Entropy>,
    stop: &Arc<AtomicBool>,
    tell: &mut dyn FnMut(&Event<'_>),
) -> Result<Followed, MigrateError> {
    let mut kept = Kept::open(follow, clock, entropy)?;
    let (runner, scratch) = (crate::runs::runner(), Scratch::default());
    let mut applier = Applier::new(Arc::clone(&kept.store), Arc::clone(clock), (runner, scratch), 0, follow.databases);
    applier.recall(&kept.place.text());
    if !kept.is_fresh() && applier.position().is_none() {
        kept.close()?;
        return Err(MigrateError::NotEmpty { path: follow.dir.to_owned(), found: "data of another origin".to_owned() });
    }
    let done = follow_until(follow, &mut kept, &mut applier, &**entropy, stop, tell).and_then(|()| {
        let position = applier.position().cloned().ok_or_else(|| stopped(follow))?;
        kept.place.clear(follow)?;
        kept.set_log(true)?;
        kept.checkpoint()?;
        Ok(Followed { keys: kept.keys(), position, left_out: kept.place.left_out })
    });
    kept.each_said(&mut |text| tell(&Event::Said(text)));
    let closed = kept.close();
    let done = done?;
    closed?;
    Ok(done)
}

fn stopped(follow: &Follow<'_>) -> MigrateError {
    let why = "stopped before the copy was complete; the directory holds no data".to_owned();
    MigrateError::NotKept { path: follow.dir.to_owned(), why }
}

fn follow_until(
    follow: &Follow<'_>,
    kept: &mut Kept,
    applier: &mut Applier,
    entropy: &dyn Entropy,
    stop: &Arc<AtomicBool>,
    tell: &mut dyn FnMut(&Event<'_>),
) -> Result<(), MigrateError> {
    while !stop.load(Ordering::Relaxed) {
        match session(follow, kept, applier, entropy, stop, tell) {
            Err(MigrateError::Link(_)) if stop.load(Ordering::Relaxed) => break,
            // Before anything is there, a wrong address is more likely than a lost connection.
            Err(MigrateError::Link(error)) if error.may_pass() && applier.position().is_some() => {
                tell(&Event::Lost(&error));
                let until = Instant::now() + RETRY;
                while Instant::now() < until && !stop.load(Ordering::Relaxed) {
                    thread::sleep(LOOK);
                }
            }
            done => done?,
        }
    }
    Ok(())
}

/// One connection, until it is lost or the end is asked for.
fn session(
    follow: &Follow<'_>,
    kept: &mut Kept,
    applier: &mut Applier,
    entropy: &dyn Entropy,
    stop: &Arc<AtomicBool>,
    tell: &mut dyn FnMut(&Event<'_>),
) -> Result<(), MigrateError> {
    let (mut link, opened) = Link::open(follow.primary, &terms(&follow.tls), applier.position())?;
    let (is_copy, position) = match opened {
        Opened::Copy(position) => (true, position),
        Opened::Continue(position) => (false, position),
    };
    tell(&Event::Connected { is_copy, position: &position });
    let file = copy_file(follow.dir);
    if is_copy {
        receive_copy(&mut link, &**follow.fs, &file, stop, &mut |copied| tell(&Event::Received(copied)))?;
    }
    let spool_path = beside(follow.dir, ".copy.stream");
    let spool = Arc::new(Spool::create(&**follow.fs, &spool_path)?);
    let (shared, stopped) = (Arc::clone(&spool), Arc::clone(stop));
    let pump = Pump::start(link, follow.primary, shared, stopped, SILENCE_MAX, Box::new(|_| ()))?;
    let done = if is_copy { load_copy(follow, kept, applier, entropy, &file, &position, tell) } else { Ok(()) };
    let done = done.and_then(|()| {
        applier.begin(position);
        apply(follow, kept, applier, &spool, &pump, tell)
    });
    let ended = pump.end();
    remove(&**follow.fs, &spool_path)?;
    done?;
    Ok(ended?)
}

/// Applies the stream until it ends.
fn apply(
    follow: &Follow<'_>,
    kept: &mut Kept,
    applier: &mut Applier,
    spool: &Arc<Spool>,
    pump: &Pump,
    tell: &mut dyn FnMut(&Event<'_>),
) -> Result<(), MigrateError> {
    applier.read(SpoolReader::new(Arc::clone(spool)));
    let mut told = Instant::now();
    pump.processed(applier.offset());
    loop {
        // What is idle says how far it is all the same.
        if applier.has_more() || spool.wait(LOOK) {
            let stepped = applier.step(&mut Listened { place: &mut kept.place, tell });
            let outcome = stepped.map_err(|error| place::told(follow, error))?;
            pump.processed(applier.offset());
            match outcome {
                Outcome::Applied => {}
                Outcome::Asked => pump.acknowledge_now(),
                Outcome::Ended => return Ok(()),
            }
        }
        if told.elapsed() >= LOOK * 2 {
            told = Instant::now();
            kept.each_said(&mut |text| tell(&Event::Said(text)));
            let (offset, commands) = (applier.offset(), applier.commands());
            tell(&Event::Applied(Progress { offset, behind: spool.waiting(), commands }));
        }
    }
}

/// Replaces everything by a copy.
fn load_copy(
    follow: &Follow<'_>,
    kept: &mut Kept,
    applier: &mut Applier,
    entropy: &dyn Entropy,
    file: &Path,
    position: &Position,
    tell: &mut dyn FnMut(&Event<'_>),
) -> Result<(), MigrateError> {
    // A primary keeps expired keys until it deletes them, and so do its replicas.
    let examination = Examination { fs: follow.fs, file, now: UnixMs::MIN, scratch: follow.scratch.clone() };
    let contents = examine(&examination, entropy)?;
    tell(&Event::Examined(&contents));
    if !follow.is_partial && !contents.untaken.is_nothing() {
        remove(&**follow.fs, file)?;
        return Err(MigrateError::Untaken { path: follow.dir.to_owned(), untaken: contents.untaken.into() });
    }
    kept.set_log(false)?;
    kept.clear()?;
    kept.load(follow, file, &contents, &mut |keys| tell(&Event::Loaded(keys)))?;
    kept.place.load(applier.loaded(position));
    kept.set_log(true)?;
    remove(&**follow.fs, file)
}

fn receive_copy(
    link: &mut Link,
    fs: &dyn FileSystem,
    path: &Path,
    stop: &AtomicBool,
    read: &mut dyn FnMut(Copied),
) -> Result<u64, MigrateError> {
    let file = fs.open(path, OpenOptions::write().create().truncate())?;
    let mut out = Out { file, at: 0, stop };
    Ok(link.pass_copy(&mut out, read)?)
}

/// A file that is written from its beginning, until the end is asked for.
struct Out<'a> {
    file: Arc<dyn File>,
    at: u64,
    stop: &'a AtomicBool,
}

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("the end was asked for"));
        }
        let written = self.file.write_at(bytes, self.at).map_err(io::Error::other)?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The file next to a data directory that receives a copy: `DIR.copy.rdb`.
pub fn copy_file(dir: &Path) -> PathBuf {
    beside(dir, ".copy.rdb")
}

/// A path next to the directory, whether that is written with a slash at its end or without.
fn beside(dir: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = dir.components().as_path().into();
    name.push(suffix);
    name.into()
}

fn remove(fs: &dyn FileSystem, path: &Path) -> Result<(), MigrateError> {
    if fs.exists(path)? {
        fs.remove_file(path)?;
    }
    Ok(())
}
