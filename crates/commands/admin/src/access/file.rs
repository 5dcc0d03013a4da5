//! ACL SAVE and LOAD: the file that `aclfile` names.

use super::{follow_users, login};
use command::acl::{FileError, Hashing, read_users, write_users};
use command::{Ctx, Host, Stop};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const NO_FILE: Stop = Stop::error(
    "ERR This instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and \
     then issue a CONFIG REWRITE (assuming you have a configuration file set) in order to store users in the configuration.",
);

const NOT_SAVED: Stop =
    Stop::error("ERR There was an error trying to save the ACLs. Please check the server logs for more information");

/// Replaces all users by those of the ACL file with this text.
///
/// # Errors
/// All lines that are wrong; then nothing has changed.
pub(super) fn load_users(host: &Host, text: &[u8], path: &str) -> Result<(), FileError> {
    let (users, table) = (&host.login.users, &host.table);
    users.replace_all(read_users(text, path, table, users.defaults())?);
    Ok(())
}

/// Longest ACL file. A user of the usual rules has some hundred bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The text of an ACL file.
///
/// # Errors
/// The system's error, and what is no file or too long.
pub(super) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    // Before it is opened: opening a named pipe would wait for its writer.
    let about = fs::metadata(path)?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = Vec::new();
    if about.len() <= FILE_BYTES_MAX {
        // It may grow meanwhile.
        fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
        if text.len() as u64 <= FILE_BYTES_MAX {
            return Ok(text);
        }
    }
    Err(io::Error::other("it is longer than 64 MiB"))
}

fn path(ctx: &Ctx<'_>) -> Result<PathBuf, Stop> {
    ctx.host.configuration.current().acl_file.clone().ok_or(NO_FILE)
}

pub(super) fn save(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let path = path(ctx)?;
    let text = write_users(&login(ctx).users.all());
    if let Err(error) = vfs::replace_file(&vfs::RealFs, &path, &text) {
        tracing::warn!("ACL SAVE cannot write {}: {error}", path.display());
        return Err(NOT_SAVED);
    }
    ctx.reply.ok();
    Ok(())
}

pub(super) fn load(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let path = path(ctx)?;
    let shown = path.display().to_string();
    let loaded = read_file(&path)
        .map_err(|error| Stop::error_with(format!("ERR Error loading ACLs, opening file '{shown}': {error}")));
    let text = loaded?;
    let (users, table) = (&login(ctx).users, &ctx.host.table);
    let defaults = users.defaults();
    let read = match defaults.hashing {
        Hashing::Sha256 => read_users(&text, &shown, table, defaults),
        Hashing::Argon2id => {
            let table = table.clone();
            // The file may hold passwords, each of which takes tens of milliseconds.
            ctx.made_of_passwords(move || read_users(&text, &shown, &table, defaults))?
        }
    };
    users.replace_all(read.map_err(|error| Stop::error_with(format!("ERR {error}")))?);
    follow_users(ctx);
    ctx.reply.ok();
    Ok(())
}
