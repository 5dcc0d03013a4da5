//! Files that administrators have a thread write: those of `cmdlog` and `dump`.
//!
//! All are below `arcus` in the data directory, in a directory that holds nothing else. So no name that a client gives
//! is that of a file with data.

use command::blocking::{Awaited, Block, Task};
use command::{Ctx, Stop};
use proto::ReplyBuffer;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread;
use vfs::{FileSystem, FsError};

/// The directory of these files.
const DIRECTORY: &str = "arcus";
/// The longest name.
const NAME_BYTES_MAX: usize = 128;

const IN_MEMORY: Stop = Stop::error("SERVER_ERROR this server has no data directory");
const BAD_NAME: Stop = Stop::error(
    "CLIENT_ERROR bad value: give a name of up to 128 letters, digits, '_', '-' and '.', without directories",
);

/// The file system of the data directory.
pub struct Files(pub Arc<dyn FileSystem>);

/// The file system, and the path of what a client names, below this directory of `arcus`.
pub fn named(ctx: &Ctx<'_>, below: &str, name: &[u8]) -> Result<(Arc<dyn FileSystem>, PathBuf), Stop> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let name = std::str::from_utf8(name).map_err(|_| BAD_NAME)?;
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.starts_with('.') || !name.bytes().all(is_known) {
        return Err(BAD_NAME);
    }
    let Files(fs) = ctx.host.find::<Files>().ok_or(IN_MEMORY)?;
    let directory = ctx.host.configuration.current().dir.join(DIRECTORY);
    Ok((fs.clone(), directory.join(below).join(name)))
}

/// Whether a thread could open its first file: what the client waits for.
#[derive(Debug)]
pub struct Opening {
    is_open: OnceLock<bool>,
    /// The replies after it could, and after it could not.
    replies: (&'static str, &'static str),
}

impl Opening {
    /// It is still open whether it can.
    pub fn new(replies: (&'static str, &'static str)) -> Self {
        Self { is_open: OnceLock::new(), replies }
    }

    /// Notes whether it could. The first word counts.
    pub fn say(&self, is_open: bool) {
        let _ = self.is_open.set(is_open);
    }
}

impl Task for Opening {
    fn is_over(&self) -> bool {
        self.is_open.get().is_some()
    }

    fn answer(&self, reply: &mut ReplyBuffer) -> Option<String> {
        let (opened, failed) = self.replies;
        reply.text_line(if self.is_open.get() == Some(&true) { opened } else { failed });
        None
    }
}

/// Begins a thread that writes files, and answers when it has opened the first, or could not. An error is logged.
pub fn begin(
    ctx: &mut Ctx<'_>,
    name: &'static str,
    replies: (&'static str, &'static str),
    write: impl FnOnce(&Opening) -> Result<(), FsError> + Send + 'static,
) {
    let opening = Arc::new(Opening::new(replies));
    let told = opening.clone();
    let work = move || {
        if let Err(error) = write(&told) {
            tracing::warn!("{name} ends: {error}");
        }
        told.say(false);
    };
    if let Err(error) = thread::Builder::new().name(name.to_owned()).spawn(work) {
        tracing::warn!("{name} does not begin: {error}");
        opening.say(false);
    }
    ctx.session.block = Some(Block::begin(&ctx.session.info, Awaited::Task(opening), None));
}
