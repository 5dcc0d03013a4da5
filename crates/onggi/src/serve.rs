//! `onggi serve [FILE] [--directive value ...]`: starts the server, says where it is, and ends it on a signal.

use base::random::OsEntropy;
use clap::Args;
use config::{CommandLine, Loaded, Settings, load};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Arguments as redis-server takes them.
#[derive(Args)]
pub struct ServeArgs {
    /// `[FILE|-] [--directive value ...]`
    #[arg(value_name = "FILE|OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Set by a signal or by SHUTDOWN: the server ends soon.
static STOP: AtomicBool = AtomicBool::new(false);

const HELP: &str = "\
Usage: onggi serve [FILE|-] [--directive value ...]

Starts the server. FILE holds directives as redis.conf does; `-` reads them from standard input. Directives on the
command line win over the file: --port 7000 --workers 2 --maxmemory 1gb --save \"\" --appendonly no

  onggi config sample   prints a file with every directive, commented out at its default
  onggi config check    says what is wrong with a configuration, or without effect
";

/// Runs the server until it is told to stop.
pub fn run(args: ServeArgs) -> ExitCode {
    if args.words.iter().any(|word| word == "--help" || word == "-h") {
        return print(HELP);
    }
    let loaded = CommandLine::parse(args.words).and_then(|line| load(&line, &vfs::RealFs, &mut io::stdin().lock()));
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(errors) => {
            eprintln!("{errors}");
            return ExitCode::FAILURE;
        }
    };
    match start(loaded) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("onggi: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start(loaded: Loaded) -> Result<(), Box<dyn std::error::Error>> {
    let settings = &loaded.settings;
    let mut log = Log::open(settings)?;
    for warning in &loaded.warnings {
        log.say(&format!("warning: {warning}"));
    }
    if let Some(sentence) = raise_descriptor_limit(settings) {
        log.say(&sentence);
    }
    let dir = prepare_dir(settings)?;
    signal_hook::flag::register(signal_hook::consts::SIGTERM, stop_flag())?;
    signal_hook::flag::register(signal_hook::consts::SIGINT, stop_flag())?;
    let listeners = server::serve::listen(settings)?;
    let addresses: Vec<_> = listeners.iter().map(|(address, _)| address.as_str()).collect();
    log.say(&banner(settings, &dir, &addresses.join(", ")));
    let socket = settings.unixsocket.clone();
    let listeners = listeners.into_iter().map(|(_, listener)| listener).collect();
    server::serve::serve(loaded, listeners, Arc::new(OsEntropy), &STOP)?;
    if let Some(path) = socket {
        // Another server may have replaced the socket file already.
        let _ = std::fs::remove_file(path);
    }
    log.say("onggi: ended; nothing was saved, since this version keeps data in memory only");
    Ok(())
}

/// A flag for the signal handlers, which a thread of its own carries over to [`STOP`].
fn stop_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let watched = flag.clone();
    std::thread::spawn(move || {
        while !watched.load(Ordering::Acquire) {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        STOP.store(true, Ordering::Release);
    });
    flag
}

/// Where messages go: the log file, or standard output.
struct Log(Box<dyn Write>);

impl Log {
    fn open(settings: &Settings) -> io::Result<Self> {
        Ok(Self(match &settings.logfile {
            Some(path) => Box::new(OpenOptions::new().create(true).append(true).open(path)?),
            None => Box::new(io::stdout()),
        }))
    }

    /// A log that cannot be written is no reason to end.
    fn say(&mut self, text: &str) {
        let _ = writeln!(self.0, "{text}");
        let _ = self.0.flush();
    }
}

fn banner(settings: &Settings, dir: &Path, addresses: &str) -> String {
    let memory = match settings.maxmemory_bytes {
        0 => "no limit (maxmemory 0)".to_owned(),
        bytes => format!("{} MiB, {}", bytes >> 20, settings.maxmemory_policy),
    };
    format!(
        "Onggi {}\n  address         {addresses}\n  data directory  {}\n  durability      none (memory only)\n  memory budget   {memory}\n  process         {}",
        env!("CARGO_PKG_VERSION"),
        dir.display(),
        std::process::id(),
    )
}

fn prepare_dir(settings: &Settings) -> Result<std::path::PathBuf, String> {
    let dir = &settings.dir;
    vfs::FileSystem::create_dir_all(&vfs::RealFs, dir).map_err(|error| format!("data directory: {error}"))?;
    Ok(std::path::absolute(dir).unwrap_or_else(|_| dir.clone()))
}

/// Descriptors beside those of clients: listeners, event queues, log.
const DESCRIPTORS_RESERVED: u64 = 64;

/// Raises the limit of open descriptors to what `maxclients` needs; a sentence when the system does not let it.
fn raise_descriptor_limit(settings: &Settings) -> Option<String> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let needed = u64::from(settings.maxclients) + DESCRIPTORS_RESERVED;
    let now = getrlimit(Resource::Nofile);
    if now.current.is_none_or(|current| current >= needed) {
        return None;
    }
    let maximum = now.maximum.map_or(needed, |maximum| maximum.max(needed));
    let raised = [
        Rlimit { current: Some(needed), maximum: Some(maximum) },
        Rlimit { current: now.maximum.map(|maximum| maximum.min(needed)).or(Some(needed)), maximum: now.maximum },
    ];
    raised.into_iter().find(|limit| setrlimit(Resource::Nofile, *limit).is_ok());
    let current = getrlimit(Resource::Nofile).current?;
    (current < needed).then(|| {
        format!(
            "warning: only {current} descriptors may be open, and maxclients {} needs {needed}: raise the limit (ulimit -n) or \
             lower maxclients",
            settings.maxclients
        )
    })
}

fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
