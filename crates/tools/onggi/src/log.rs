//! The server's log file: lines for people or for programs, in a file or on standard output.
//!
//! ```text
//! tracing::warn!(...) in any crate --\
//!                                     > level --> line in the format of `log-format` --> file or standard output
//! Tell, from durability and server --/
//! ```
//!
//! The formats and the levels are those of Valkey 9.1. Times are in UTC.

use config::{LogFormat, LogLevel, LogTime, Settings};
use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

/// Only the owner may read a log file: it contains addresses and names of clients.
const LOG_MODE: u32 = 0o600;

/// The server's log file. Clones are handles of the same log.
#[derive(Clone)]
pub struct ServerLog(Arc<Mutex<Log>>);

struct Log {
    level: LogLevel,
    format: LogFormat,
    time: LogTime,
    place: Place,
    /// Whether a supervisor is notified.
    is_supervised: bool,
}

/// The destination of lines.
enum Place {
    Output,
    File { path: PathBuf, file: File },
}

impl ServerLog {
    /// Opens the log that the settings describe.
    ///
    /// # Errors
    /// The file cannot be opened; the message names it.
    pub fn open(settings: &Settings) -> io::Result<Self> {
        let place = match &settings.logfile {
            Some(path) => Place::File { path: path.clone(), file: open(path)? },
            None => Place::Output,
        };
        Ok(Self(Arc::new(Mutex::new(Log {
            level: settings.loglevel,
            format: settings.log_format,
            time: settings.log_timestamp_format,
            place,
            is_supervised: crate::supervisor::is_present(settings.supervised),
        }))))
    }

    /// Sends the events of all crates to this log too. Once per process.
    pub fn take_events(&self) {
        // A second log would receive no events.
        let _ = tracing::subscriber::set_global_default(Events(self.clone()));
    }

    /// Reopens the log file.
    ///
    /// # Errors
    /// The file cannot be opened; the old one stays in use.
    pub fn reopen(&self) -> io::Result<()> {
        match &mut self.lock().place {
            Place::Output => Ok(()),
            Place::File { path, file } => {
                *file = open(path)?;
                Ok(())
            }
        }
    }

    /// Writes a message.
    pub fn line(&self, level: LogLevel, text: &str) {
        let mut log = self.lock();
        if (level as u8) < log.level as u8 {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as i64);
        let line = Line { level, text, now, pid: std::process::id() };
        let line = line.format(log.format, log.time);
        log.write(&line);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(path: &Path) -> io::Result<File> {
    let opened = OpenOptions::new().create(true).append(true).mode(LOG_MODE).open(path);
    opened.map_err(|error| {
        let text = format!("cannot open the log file {} (logfile): {}", path.display(), vfs::reason(&error));
        io::Error::new(error.kind(), text)
    })
}

impl Log {
    /// Writes a line. A log that cannot be written does not end the server.
    fn write(&mut self, line: &str) {
        match &mut self.place {
            Place::Output => {
                let mut out = io::stdout().lock();
                let _ = writeln!(out, "{line}").and_then(|()| out.flush());
            }
            Place::File { path, file } => {
                // logrotate has renamed it. If the new file cannot be opened, keep writing to the old one.
                if !is_same(path, file)
                    && let Ok(new) = open(path)
                {
                    *file = new;
                }
                let _ = file.write_all(format!("{line}\n").as_bytes());
            }
        }
    }
}

/// Whether the path still names the open file.
fn is_same(path: &Path, file: &File) -> bool {
    let (Ok(there), Ok(open)) = (std::fs::metadata(path), file.metadata()) else { return false };
    (there.dev(), there.ino()) == (open.dev(), open.ino())
}

/// The contents of a line.
struct Line<'a> {
    level: LogLevel,
    text: &'a str,
    /// Milliseconds since 1970.
    now: i64,
    pid: u32,
}

impl Line<'_> {
    fn format(&self, format: LogFormat, time: LogTime) -> String {
        let (pid, time, level) = (self.pid, self.time(time), self.level);
        match format {
            LogFormat::Legacy => format!("{pid}:M {time} {} {}", self.mark(), one_line(self.text)),
            LogFormat::Logfmt => {
                let text = self.text.replace('"', "'");
                format!(r#"pid={pid} role=primary timestamp="{time}" level={level} message="{}""#, one_line(&text))
            }
            LogFormat::Json => format!(
                r#"{{"pid":{pid},"role":"primary","timestamp":"{time}","level":"{level}","message":"{}"}}"#,
                json_escaped(self.text)
            ),
        }
    }

    /// The character for the level in the legacy format.
    fn mark(&self) -> char {
        match self.level {
            LogLevel::Debug => '.',
            LogLevel::Verbose => '-',
            LogLevel::Notice => '*',
            LogLevel::Warning | LogLevel::Nothing => '#',
        }
    }

    fn time(&self, format: LogTime) -> String {
        let iso = inspect::text::time(self.now);
        match format {
            LogTime::Iso8601 => iso,
            LogTime::Milliseconds => self.now.to_string(),
            LogTime::Legacy => legacy_time(&iso).unwrap_or(iso),
        }
    }
}

/// `22 Nov 2026 06:07:35.120` for `2026-11-22T06:07:35.120Z`.
fn legacy_time(iso: &str) -> Option<String> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (date, clock) = iso.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.split('-');
    let (year, month, day) = (date.next()?, date.next()?, date.next()?);
    let month = MONTHS.get(month.parse::<usize>().ok()?.checked_sub(1)?)?;
    Some(format!("{day} {month} {year} {clock}"))
}

/// Keeps a message on one line, whatever a client's name or a path contains.
fn one_line(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}

fn json_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '"' | '\\' => escaped.extend(['\\', char]),
            _ if char.is_control() => _ = write!(escaped, "\\u{:04x}", u32::from(char)),
            _ => escaped.push(char),
        }
    }
    escaped
}

impl durability::Tell for ServerLog {
    fn say(&self, text: &str) {
        self.line(LogLevel::Notice, text);
    }

    fn warn(&self, text: &str) {
        self.line(LogLevel::Warning, text);
    }

    fn stop(&self, text: &str) {
        self.warn(text);
        eprintln!("onggi: {text}");
        std::process::exit(1);
    }

    fn phase(&self, phase: durability::Phase) {
        if self.lock().is_supervised {
            crate::supervisor::notify(phase);
        }
    }

    fn follow(&self, settings: &Settings) {
        let mut log = self.lock();
        (log.level, log.format, log.time) = (settings.loglevel, settings.log_format, settings.log_timestamp_format);
    }
}

/// Writes the events of other crates: a subscriber without spans.
struct Events(ServerLog);

impl Subscriber for Events {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let level = match *event.metadata().level() {
            Level::ERROR | Level::WARN => LogLevel::Warning,
            Level::INFO => LogLevel::Notice,
            Level::DEBUG => LogLevel::Verbose,
            Level::TRACE => LogLevel::Debug,
        };
        let mut message = Message::default();
        event.record(&mut message);
        self.0.line(level, &(message.text + &message.fields));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// An event as a message: its text, then its fields.
#[derive(Default)]
struct Message {
    text: String,
    fields: String,
}

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.text, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(path: &Path) -> Settings {
        Settings { logfile: Some(path.to_owned()), log_timestamp_format: LogTime::Milliseconds, ..Settings::default() }
    }

    fn messages(path: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| line.split_once("* ").unwrap().1.to_owned()).collect()
    }

    #[test]
    fn lines_have_the_form_of_valkey() {
        let line = Line { level: LogLevel::Warning, text: "a \"b\"\nc\\", now: 1_795_327_655_120, pid: 7 };
        for (format, time, expected) in [
            (LogFormat::Legacy, LogTime::Legacy, r#"7:M 22 Nov 2026 06:07:35.120 # a "b" c\"#),
            (
                LogFormat::Logfmt,
                LogTime::Iso8601,
                r#"pid=7 role=primary timestamp="2026-11-22T06:07:35.120Z" level=warning message="a 'b' c\""#,
            ),
            (
                LogFormat::Json,
                LogTime::Milliseconds,
                concat!(
                    r#"{"pid":7,"role":"primary","timestamp":"1795327655120","level":"warning","#,
                    r#""message":"a \"b\"\u000ac\\"}"#
                ),
            ),
        ] {
            assert_eq!(line.format(format, time), expected);
        }
    }

    /// The server kept writing to a renamed file, and a new one never appeared.
    #[test]
    fn a_renamed_file_is_followed_by_a_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let (path, old) = (dir.path().join("log"), dir.path().join("log.1"));
        let log = ServerLog::open(&settings(&path)).unwrap();
        log.line(LogLevel::Notice, "one");
        std::fs::rename(&path, &old).unwrap();
        log.line(LogLevel::Notice, "two");
        assert_eq!((messages(&old), messages(&path)), (vec!["one".to_owned()], vec!["two".to_owned()]));
        std::fs::rename(&path, &old).unwrap();
        log.reopen().unwrap();
        assert_eq!(messages(&path), Vec::<String>::new(), "SIGHUP makes it at once");
        std::fs::remove_dir_all(&dir).unwrap();
        log.line(LogLevel::Notice, "lost");
        assert!(log.reopen().unwrap_err().to_string().starts_with("cannot open the log file /"));
    }

    #[test]
    fn the_level_decides_what_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let log = ServerLog::open(&settings(&path)).unwrap();
        for level in [LogLevel::Warning, LogLevel::Nothing] {
            durability::Tell::follow(&log, &Settings { loglevel: level, ..settings(&path) });
            log.line(LogLevel::Notice, "left out");
        }
        log.line(LogLevel::Warning, "left out");
        durability::Tell::follow(&log, &Settings { loglevel: LogLevel::Debug, ..settings(&path) });
        tracing::subscriber::with_default(Events(log.clone()), || tracing::info!(client = 3, "an event"));
        assert_eq!(messages(&path), ["an event client=3"]);
    }
}
