//! `onggi import redis://...`: the data of a running server, once or followed.

use super::{ImportArgs, code_of, entropy, import_file, say};
use crate::progress::Progress;
use crate::tools::failed;
use base::Clock;
use base::clock::SystemClock;
use inspect::text::{count, size};
use migrate::{Event, Follow, MigrateError, Receive};
use replication::Primary;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Time between two lines that say how far the stream is.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// `onggi import` of a running server.
pub fn run(args: &ImportArgs, primary: &Primary) -> ExitCode {
    match &args.dir {
        Some(dir) if args.follow => follow(args, primary, dir),
        _ => copy(args, primary),
    }
}

/// Receives a copy as a file, and examines or imports that.
fn copy(args: &ImportArgs, primary: &Primary) -> ExitCode {
    let file = match &args.dir {
        Some(dir) if !args.dry_run => migrate::copy_file(dir),
        _ => std::env::temp_dir().join(format!("onggi-copy-{}.rdb", std::process::id())),
    };
    let code = match receive(primary, &file) {
        Ok(()) => import_file(&ImportArgs { file: file.clone(), ..args.clone() }),
        Err(error) => code_of(&error),
    };
    if let Err(error) = std::fs::remove_file(&file)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        eprintln!("onggi import: {}: {error}", file.display());
    }
    code
}

fn receive(primary: &Primary, file: &Path) -> Result<(), MigrateError> {
    let progress = Progress::new();
    let bytes = migrate::receive(&Receive { fs: progress.fs(), primary, file }, &mut |_| ())?;
    progress.say(&format!("received a copy of {primary}, {}", size(bytes)));
    Ok(())
}

fn follow(args: &ImportArgs, primary: &Primary, dir: &Path) -> ExitCode {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        if let Err(error) = signal_hook::flag::register(signal, Arc::clone(&stop)) {
            return failed("import", &error);
        }
    }
    let progress = Progress::new();
    let follow = Follow {
        fs: progress.fs(),
        primary,
        dir,
        databases: args.databases,
        is_partial: args.partial,
        scratch: std::env::temp_dir(),
    };
    let mut teller = Teller { progress: &progress, primary, said_at: None, was_behind: true, commands: 0 };
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
            progress.say(&format!(
                "ended at offset {} with {}{left_out}; start a server with: onggi serve --dir {}{databases}",
                followed.position.offset,
                count(followed.keys, "key", "keys"),
                dir.display()
            ));
            ExitCode::SUCCESS
        }
        Err(error) => {
            drop(progress);
            code_of(&error)
        }
    }
}

/// Says what happens, and every few seconds how far the stream is.
struct Teller<'a> {
    progress: &'a Progress,
    primary: &'a Primary,
    said_at: Option<Instant>,
    was_behind: bool,
    commands: u64,
}

impl Teller<'_> {
    fn tell(&mut self, event: &Event<'_>) {
        let (progress, primary) = (self.progress, self.primary);
        match event {
            Event::Connected { is_copy: true, position } => {
                self.was_behind = true;
                progress.say(&format!("{primary}: copies all data, as of offset {}", position.offset));
            }
            Event::Connected { is_copy: false, position } => {
                progress.say(&format!("{primary}: goes on at offset {}", position.offset));
            }
            Event::Received(_) | Event::Loaded(_) => {}
            Event::Examined(contents) => say(progress, contents),
            Event::Applied(now) => {
                let is_due = self.said_at.is_none_or(|at| at.elapsed() >= SAY_EVERY) && now.commands > self.commands;
                let has_caught_up = self.was_behind && now.behind == 0;
                if is_due || has_caught_up {
                    (self.said_at, self.commands) = (Some(Instant::now()), now.commands);
                    self.was_behind = now.behind > 0;
                    progress.say(&format!(
                        "offset {}: {} applied, {} behind",
                        now.offset,
                        count(now.commands, "command", "commands"),
                        size(now.behind)
                    ));
                }
            }
            Event::Lost(error) => progress.say(&format!("{error}; connecting again")),
            Event::Said(text) => progress.say(text),
            Event::LeftOut { command, why } => progress.say(&format!("left out: {command}: {why}")),
        }
    }
}
