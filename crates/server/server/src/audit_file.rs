//! The file of the audit log: a thread that writes the lines of [`command::audit`], and rotates the file.
//!
//! The file is opened again when it was renamed or removed, and on SIGHUP. Above `audit-log-max-size` the server
//! renames it itself: `FILE` to `FILE.1`, `FILE.1` to `FILE.2`, and so on.

use base::{Clock, UnixMs};
use command::audit::{Audit, Message, line_about_log, line_end};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

/// Only the owner may read it: it has addresses, names of users and rules.
const MODE: u32 = 0o600;

/// Lines that are written at once.
const BATCH_LINES_MAX: usize = 256;

/// When the file is rotated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rotation {
    /// `audit-log-max-size`; 0 for never.
    pub(crate) bytes_max: u64,
    /// `audit-log-max-files`
    pub(crate) files_max: u32,
}

/// The open file.
pub(crate) struct AuditFile {
    path: PathBuf,
    file: File,
    /// The last write has failed.
    is_failing: bool,
}

impl AuditFile {
    /// Opens the file to append to it.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: append(path)?, is_failing: false })
    }

    /// Writes lines until the audit log ends.
    pub(crate) fn run(
        mut self,
        lines: &Receiver<Message>,
        audit: &Audit,
        clock: &dyn Clock,
        rotation: impl Fn() -> Rotation,
    ) {
        self.about_log("start", audit, clock.now_ms());
        while let Ok(first) = lines.recv() {
            let (mut text, mut count, mut ends) = (String::new(), 0, false);
            for message in std::iter::once(first).chain(lines.try_iter()).take(BATCH_LINES_MAX) {
                match message {
                    Message::Line(line) => {
                        text += &line;
                        let lost = audit.take_lost();
                        text += &line_end(lost);
                        count += 1 + lost;
                    }
                    Message::Reopen => self.reopen(),
                    Message::End => ends = true,
                }
            }
            self.write(&text, count, audit, rotation());
            if ends {
                break;
            }
        }
        self.about_log("end", audit, clock.now_ms());
        // The lines of the last moments before a power cut count as much as others.
        let _ = self.file.sync_data();
    }

    fn about_log(&mut self, event: &str, audit: &Audit, now: UnixMs) {
        let lost = audit.take_lost();
        let text = line_about_log(event, now) + &line_end(lost);
        self.write(&text, 1 + lost, audit, Rotation { bytes_max: 0, files_max: 1 });
    }

    /// Writes this text of `count` lines. Lines that the file refuses are lost, and counted.
    fn write(&mut self, text: &str, count: u64, audit: &Audit, rotation: Rotation) {
        if !self.is_at_path() {
            self.reopen();
        } else if self.is_full(text.len(), rotation) {
            self.rotate(rotation.files_max);
        }
        match self.file.write_all(text.as_bytes()) {
            Ok(()) => self.is_failing = false,
            Err(error) => {
                audit.lose(count);
                if !std::mem::replace(&mut self.is_failing, true) {
                    let (path, why) = (self.path.display(), vfs::reason(&error));
                    tracing::warn!("cannot write the audit log {path}: {why}; its lines are lost until it can be");
                }
            }
        }
    }

    fn is_full(&self, more_bytes: usize, rotation: Rotation) -> bool {
        let bytes = self.file.metadata().map_or(0, |about| about.len());
        rotation.bytes_max > 0 && bytes > 0 && bytes.saturating_add(more_bytes as u64) > rotation.bytes_max
    }

    /// Whether the path still names the open file.
    fn is_at_path(&self) -> bool {
        let (Ok(there), Ok(open)) = (std::fs::metadata(&self.path), self.file.metadata()) else { return false };
        (there.dev(), there.ino()) == (open.dev(), open.ino())
    }

    /// Opens the path again. If it cannot be opened, the old file is written to.
    fn reopen(&mut self) {
        match append(&self.path) {
            Ok(file) => self.file = file,
            Err(error) => {
                let (path, why) = (self.path.display(), vfs::reason(&error));
                tracing::warn!("cannot open the audit log {path} again: {why}; the file that was open is written to");
            }
        }
    }

    /// Makes room for a new file. The oldest is removed.
    fn rotate(&mut self, files_max: u32) {
        for number in (1..files_max).rev() {
            // It need not be there.
            let _ = std::fs::rename(self.numbered(number), self.numbered(number + 1));
        }
        if let Err(error) = std::fs::rename(&self.path, self.numbered(1)) {
            let (path, why) = (self.path.display(), vfs::reason(&error));
            return tracing::warn!("cannot rename the audit log {path}: {why}; it grows beyond audit-log-max-size");
        }
        self.reopen();
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(MODE).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::read_to_string;

    const NEVER: Rotation = Rotation { bytes_max: 0, files_max: 1 };

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_full_file_is_rotated_and_the_oldest_goes() {
        let (dir, audit) = (tempfile::tempdir().unwrap(), Audit::default());
        let path = dir.path().join("audit");
        let mut file = AuditFile::open(&path).unwrap();
        for line in ["one\n", "two\n", "three\n", "four\n"] {
            file.write(line, 1, &audit, Rotation { bytes_max: 6, files_max: 2 });
        }
        assert_eq!(names(dir.path()), ["audit", "audit.1", "audit.2"]);
        let text = |name: &str| read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(
            (text("audit"), text("audit.1"), text("audit.2")),
            ("four\n".into(), "three\n".into(), "two\n".into())
        );
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, MODE);
    }

    #[test]
    fn a_renamed_file_is_followed_by_a_new_one() {
        let (dir, audit) = (tempfile::tempdir().unwrap(), Audit::default());
        let (path, old) = (dir.path().join("audit"), dir.path().join("audit.old"));
        let mut file = AuditFile::open(&path).unwrap();
        file.write("one\n", 1, &audit, NEVER);
        std::fs::rename(&path, &old).unwrap();
        file.write("two\n", 1, &audit, NEVER);
        assert_eq!((read_to_string(&old).unwrap(), read_to_string(&path).unwrap()), ("one\n".into(), "two\n".into()));
        std::fs::rename(&path, &old).unwrap();
        file.reopen();
        assert_eq!(read_to_string(&path).unwrap(), "", "SIGHUP makes it at once");
    }

    #[test]
    fn lines_that_the_file_refuses_are_counted() {
        let (dir, audit) = (tempfile::tempdir().unwrap(), Audit::default());
        let path = dir.path().join("audit");
        let mut file = AuditFile::open(&path).unwrap();
        // Every write to it answers ENOSPC.
        file.file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        file.path = "/dev/full".into();
        file.write("one\n", 3, &audit, NEVER);
        assert_eq!(audit.take_lost(), 3);
        file.path = path.clone();
        file.write("two\n", 1, &audit, NEVER);
        assert_eq!(read_to_string(&path).unwrap(), "two\n");
    }
}
