//! `onggi serve [FILE] [--directive value ...]`: starts the server, says where it is, and ends it on a signal.

use base::clock::SystemClock;
use base::random::OsEntropy;
use clap::Args;
use config::{CommandLine, Loaded, Settings, load};
use durability::Tell;
use migrate::RdbFile;
use server::listen::{Acceptor, AcceptorHandle};
use server::serve::Keeping;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Arguments as redis-server takes them.
#[derive(Args)]
pub struct ServeArgs {
    /// `[FILE|-] [--directive value ...]`
    #[arg(value_name = "FILE|OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

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

fn start(mut loaded: Loaded) -> Result<(), Box<dyn std::error::Error>> {
    let heap = heap::begin();
    let log = Arc::new(Log::open(&loaded.settings)?);
    if let Err(error) = heap {
        log.say(&format!(
            "warning: no heap of the server's own, so growth and deletion of big collections take turns longer: {error}"
        ));
    }
    for warning in &loaded.warnings {
        log.say(&format!("warning: {warning}"));
    }
    if let Err(possible) = server::descriptors::raise_limit(loaded.settings.maxclients) {
        log.say(&format!(
            "warning: the system allows descriptors for {possible} clients and not for maxclients {}, which is lowered to that: \
             raise the limit (ulimit -n, or LimitNOFILE= of systemd) or lower maxclients",
            loaded.settings.maxclients
        ));
        loaded.settings.maxclients = possible.max(1);
    }
    let (entropy, clock) = (Arc::new(OsEntropy), Arc::new(SystemClock::new()));
    let rdb = Arc::new(RdbFile::new(&loaded.settings.rdb_file, clock.clone(), entropy.clone())?);
    let dir = std::path::absolute(&loaded.settings.dir).unwrap_or_else(|_| loaded.settings.dir.clone());
    let listeners = server::serve::listen(&loaded.settings)?;
    let addresses: Vec<_> = listeners.iter().map(|(endpoint, _)| endpoint.to_string()).collect();
    let acceptor = Acceptor::new(listeners)?;
    end_on_signals(acceptor.handle())?;
    log.write(&banner(&loaded.settings, &dir, &addresses.join(", ")));
    let socket = loaded.settings.unixsocket.clone();
    let keeping = Keeping::Directory { fs: Arc::new(vfs::RealFs), tell: log.clone(), rdb };
    let served = server::serve::serve(loaded, acceptor, entropy, clock, keeping);
    if let Some(path) = socket {
        // Another server may have replaced the socket file already.
        let _ = std::fs::remove_file(path);
    }
    served?;
    log.say("ended");
    Ok(())
}

/// Ends the server at the first SIGTERM or SIGINT, and the process at the second: a thread waits for them.
fn end_on_signals(acceptor: AcceptorHandle) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut signals = signals.forever();
        signals.next();
        acceptor.stop();
        if let Some(signal) = signals.next() {
            std::process::exit(128 + signal);
        }
    })?;
    Ok(())
}

/// Only its owner may read a log file: addresses and names of clients stand in it.
const LOG_MODE: u32 = 0o600;

/// Where messages go: the log file, or standard output.
struct Log(Mutex<Box<dyn Write + Send>>);

impl Log {
    fn open(settings: &Settings) -> io::Result<Self> {
        Ok(Self(Mutex::new(match &settings.logfile {
            Some(path) => Box::new(OpenOptions::new().create(true).append(true).mode(LOG_MODE).open(path)?),
            None => Box::new(io::stdout()),
        })))
    }

    /// A log that cannot be written is no reason to end.
    fn write(&self, text: &str) {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(out, "{text}");
        let _ = out.flush();
    }
}

impl durability::Tell for Log {
    fn say(&self, text: &str) {
        self.write(&format!("onggi: {text}"));
    }

    fn stop(&self, text: &str) {
        self.say(text);
        eprintln!("onggi: {text}");
        std::process::exit(1);
    }
}

fn banner(settings: &Settings, dir: &Path, addresses: &str) -> String {
    let memory = match settings.maxmemory_bytes {
        0 => "no limit (maxmemory 0)".to_owned(),
        bytes => format!("{} MiB, {}", bytes >> 20, settings.maxmemory_policy),
    };
    format!(
        "Onggi {}\n  address         {addresses}\n  data directory  {}\n  durability      {}\n  memory budget   {memory}\n  process         {}",
        env!("CARGO_PKG_VERSION"),
        dir.display(),
        durability_of(settings),
        std::process::id(),
    )
}

/// What the settings promise for a power cut, in a few words.
fn durability_of(settings: &Settings) -> String {
    let saves = if settings.save.points.is_empty() { "none by itself" } else { "by save points and at the end" };
    let log = match (settings.appendonly, settings.appendfsync) {
        (false, _) => "no log".to_owned(),
        (true, config::AppendFsync::Always) => "log synced before each reply".to_owned(),
        (true, config::AppendFsync::Everysec) => format!("log synced within {} ms", settings.log_window_ms),
        (true, config::AppendFsync::No) => "log written, synced by the operating system".to_owned(),
    };
    format!("{log}; checkpoints {saves}")
}

fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
