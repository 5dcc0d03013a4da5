//! Takes from the process what a server never needs: other programs, and files outside of its directories.
//!
//! ```text
//! places of the settings --files--> Landlock: which files can be opened, by this thread and those that it starts
//!                        programs--> seccomp: no exec, no fork, in all threads
//! ```
//!
//! S1. Both parts are for ever: no call takes them back, and new threads inherit them.
//! S2. Landlock holds for the calling thread. So it begins before the process has others; [`enforce`] says if it has.
//! S3. A part that the kernel lacks is left out, and the report says so. The server starts all the same.
//! S4. Files that are open stay open. Connections are not restricted.

#![forbid(unsafe_code)]

mod files;
mod programs;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What a place is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Its files are read.
    Read,
    /// Its files are read, written, made, renamed and removed.
    Write,
    /// Its files are removed.
    Remove,
}

/// A directory or a file that the server uses. All beneath a directory belongs to it.
#[derive(Clone, Debug)]
pub struct Place {
    /// The path.
    pub path: PathBuf,
    /// What it is for.
    pub access: Access,
}

impl Place {
    /// A directory, and the one that it is a symbolic link to.
    pub fn directory(path: &Path, access: Access) -> Self {
        Self { path: path.to_owned(), access }
    }

    /// The directory that holds a file, and if the file is a symbolic link, the one that holds its target: a program
    /// that renews a file replaces it in its directory.
    pub fn around(file: &Path, access: Access) -> impl Iterator<Item = Self> {
        let target = std::fs::canonicalize(file).ok();
        let parents = [Some(file.to_owned()), target].into_iter().flatten().filter_map(|path| parent(&path));
        parents.map(move |path| Self { path, access })
    }
}

/// The directory that a path names a file in.
fn parent(path: &Path) -> Option<PathBuf> {
    let parent = path.parent()?;
    Some(if parent.as_os_str().is_empty() { PathBuf::from(".") } else { parent.to_owned() })
}

/// What is in force.
#[derive(Debug)]
pub struct Report {
    /// Landlock: `Err` with the reason if it is not in force.
    pub files: Result<(), String>,
    /// Seccomp.
    pub programs: Result<(), String>,
}

/// The readable places, once Landlock is in force.
static READABLE: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// Restricts the process to these places, and to itself. See S1 to S4.
pub fn enforce(places: &[Place]) -> Report {
    let files = match threads() {
        Some(1) => files::restrict(places),
        _ => Err("the process has more than one thread already".to_owned()),
    };
    if let Ok(readable) = &files {
        // The first call counts, as it does for the kernel.
        let _ = READABLE.set(readable.clone());
    }
    Report { files: files.map(drop), programs: programs::forbid() }
}

/// Threads of this process.
fn threads() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}

/// Whether the file or directory lies outside of all places, so that opening it is refused. False without Landlock.
pub fn excludes(path: &Path) -> bool {
    let Some(readable) = READABLE.get() else { return false };
    // Landlock restricts opening, and not the look at names.
    let Ok(path) = std::fs::canonicalize(path) else { return false };
    !readable.iter().any(|place| path.starts_with(place))
}
