//! `onggi import redis://...`: the data of a running server, once or followed.

use super::pace::{Pace, about, estimate, progress as of_copy};
use super::{ImportArgs, code_of, entropy, import_file, say};
use crate::progress::Progress;
use crate::report::Report;
use base::Clock;
use base::clock::SystemClock;
use inspect::text::{count, size};
use migrate::{Event, Follow, MigrateError, Receive};
use replication::{Copied, Primary};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tls::ClientConfig;

/// Time between two lines that say how far the stream is.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// How the connection uses TLS; `None` for a plain one.
type Tls = Option<Arc<ClientConfig>>;

/// `onggi import` of a running server.
pub fn run(args: &ImportArgs, primary: &Primary, report: Report) -> ExitCode {
    let tls = match primary.is_tls.then(|| args.tls.config()).transpose() {
        Ok(tls) => tls,
        Err(error) => return report.failed(&error),
    };
    match &args.dir {
        Some(dir) if args.follow => follow(args, primary, tls, (dir, report)),
        _ => copy(args, primary, tls, report),
    }
}

/// Receives a copy as a file, and examines or imports that.
fn copy(args: &ImportArgs, primary: &Primary, tls: Tls, report: Report) -> ExitCode {
    let file = match &args.dir {
        Some(dir) if !args.dry_run => migrate::copy_file(dir),
        _ => std::env::temp_dir().join(format!("onggi-copy-{}.rdb", std::process::id())),
    };
    let code = match receive((primary, report), tls, &file) {
        Ok(()) => import_file(&ImportArgs { file: file.clone(), ..args.clone() }, report),
        Err(error) => code_of(&error, report),
    };
    if let Err(error) = std::fs::remove_file(&file)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        eprintln!("onggi import: {}: {error}", file.display());
    }
    code
}

fn receive((primary, report): (&Primary, Report), tls: Tls, file: &Path) -> Result<(), MigrateError> {
    let progress = Progress::new(report);
    let mut teller = Teller::new(&progress, primary);
    let receive = Receive { fs: progress.fs(), primary, tls, file };
    let bytes = migrate::receive(&receive, &mut |copied| teller.tell(&Event::Received(copied)))?;
    progress.say(&format!("received a copy of {primary}, {}", size(bytes)));
    Ok(())
}

fn follow(args: &ImportArgs, primary: &Primary, tls: Tls, (dir, report): (&Path, Report)) -> ExitCode {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        if let Err(error) = signal_hook::flag::register(signal, Arc::clone(&stop)) {
            return report.failed(&error);
        }
    }
    let progress = Progress::new(report);
    let follow = Follow {
        fs: progress.fs(),
        primary,
        tls,
        dir,
        databases: args.databases,
        is_partial: args.partial,
        scratch: std::env::temp_dir(),
    };
    let mut teller = Teller::new(&progress, primary);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let done = migrate::follow(&follow, &clock, &entropy(), &stop, &mut |event| teller.tell(event));
    match done {
        Ok(followed) => {
            let databases =
                if args.databases == 16 { String::new() } else { format!(" --databases {}", args.databases) };
            let left_out = match followed.left_out {
                0 => String::new(),
                commands => format!("; {} left out", count(commands, "command was", "commands were")),
            };
            let line = format!(
                "ended at offset {} with {}{left_out}; start a server with: onggi serve --dir {}{databases}",
                followed.position.offset,
                count(followed.keys, "key", "keys"),
                dir.display()
            );
            let fields = json!({ "is_imported": true, "keys": followed.keys, "offset": followed.position.offset,
                "left_out_commands": followed.left_out, "databases": args.databases,
                "dir": dir.display().to_string() });
            progress.ended().result(0, &[line], fields)
        }
        Err(error) => code_of(&error, progress.ended()),
    }
}

/// Says what happens, and every few seconds how far the stream is.
struct Teller<'a> {
    progress: &'a Progress,
    primary: &'a Primary,
    said_at: Option<Instant>,
    was_behind: bool,
    commands: u64,
    /// Of what is shown now: bytes of the copy, keys, or bytes of the stream.
    pace: Option<Pace>,
    /// Keys of the copy.
    keys: u64,
}

impl<'a> Teller<'a> {
    fn new(progress: &'a Progress, primary: &'a Primary) -> Self {
        Self { progress, primary, said_at: None, was_behind: true, commands: 0, pace: None, keys: 0 }
    }

    /// The rate of an amount since the last call that has given one; `None` unless a line is due.
    fn rate_when_due(&mut self, amount: u64) -> Option<u64> {
        let now = Instant::now();
        let pace = *self.pace.get_or_insert_with(|| Pace::new(now, amount));
        let is_due = self.said_at.get_or_insert(now).elapsed() >= SAY_EVERY;
        is_due.then(|| {
            (self.said_at, self.pace) = (Some(now), Some(Pace::new(now, amount)));
            pace.rate(now, amount)
        })
    }

    fn received(&mut self, copied: &Copied) {
        if let Some(rate) = self.rate_when_due(copied.bytes) {
            if self.progress.is_json() {
                let fields = json!({ "received_bytes": copied.bytes, "of_bytes": copied.total,
                    "bytes_per_second": rate });
                return self.progress.event("progress", fields);
            }
            let (primary, of_copy) = (self.primary, of_copy(copied.bytes, copied.total, rate));
            self.progress.say(&format!("{primary}: received {of_copy}"));
        }
    }

    fn loaded(&mut self, keys: u64) {
        if let Some(rate) = self.rate_when_due(keys) {
            if self.progress.is_json() {
                let fields = json!({ "loaded_keys": keys, "of_keys": self.keys, "keys_per_second": rate });
                return self.progress.event("progress", fields);
            }
            let rest = estimate(self.keys.saturating_sub(keys), rate);
            let rest = rest.map_or(String::new(), |time| format!(", {} left", about(time)));
            self.progress.say(&format!("loaded {keys} of {} keys, {rate}/s{rest}", self.keys));
        }
    }

    fn applied(&mut self, now: &migrate::FollowProgress) {
        let is_due = self.said_at.is_none_or(|at| at.elapsed() >= SAY_EVERY) && now.commands > self.commands;
        let has_caught_up = self.was_behind && now.behind == 0;
        if !is_due && !has_caught_up {
            return;
        }
        let (at, offset) = (Instant::now(), now.offset);
        let rate = self.pace.map_or(0, |pace| pace.rate(at, offset));
        let lag = match estimate(now.behind, rate).filter(|_| now.behind > 0) {
            Some(time) => format!(" ({})", about(time)),
            None => String::new(),
        };
        (self.said_at, self.pace, self.commands) = (Some(at), Some(Pace::new(at, offset)), now.commands);
        self.was_behind = now.behind > 0;
        if self.progress.is_json() {
            let fields = json!({ "offset": offset, "commands": now.commands, "bytes_per_second": rate,
                "behind_bytes": now.behind });
            return self.progress.event("progress", fields);
        }
        self.progress.say(&format!(
            "offset {offset}: {} applied, {}/s, {} behind{lag}",
            count(now.commands, "command", "commands"),
            size(rate),
            size(now.behind)
        ));
    }

    fn tell(&mut self, event: &Event<'_>) {
        let (progress, primary) = (self.progress, self.primary);
        match event {
            Event::Connected { is_copy: true, position } => {
                (self.was_behind, self.pace) = (true, None);
                progress.say(&format!("{primary}: copies all data, as of offset {}", position.offset));
            }
            Event::Connected { is_copy: false, position } => {
                self.pace = Some(Pace::new(Instant::now(), position.offset));
                progress.say(&format!("{primary}: continues at offset {}", position.offset));
            }
            Event::Received(copied) => self.received(copied),
            Event::Loaded(keys) => self.loaded(*keys),
            Event::Examined(contents) => {
                (self.keys, self.pace) = (contents.keys(), None);
                say(progress, contents);
            }
            Event::Applied(now) => self.applied(now),
            Event::Lost(error) => progress.say(&format!("{error}; connecting again")),
            Event::Said(text) => progress.say(text),
            Event::LeftOut { command, why } => progress.say(&format!("left out: {command}: {why}")),
        }
    }
}
