//! `onggi serve [FILE] [--directive value ...]`: starts the server, reports its address, and stops it on a signal.

use crate::log::ServerLog;
use crate::{confined, renewal, signals, supervisor, web};
use base::clock::SystemClock;
use base::random::OsEntropy;
use clap::Args;
use config::{CommandLine, Loaded, Settings, load};
use durability::Tell;
use migrate::RdbFile;
use server::data_directory::{self, Found};
use server::listen::Acceptor;
use server::serve::{Control, Keeping};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Arguments in the style of redis-server.
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

/// Runs the server until it is asked to stop.
pub fn run(args: ServeArgs) -> ExitCode {
    if args.words.iter().any(|word| word == "--help" || word == "-h") {
        return print(HELP);
    }
    let loaded = CommandLine::parse(args.words)
        .and_then(|line| load(&line, &vfs::RealFs, &mut io::stdin().lock()).map(|loaded| (line, loaded)));
    let (line, loaded) = match loaded {
        Ok(loaded) => loaded,
        Err(errors) => {
            eprintln!("{errors}");
            return ExitCode::FAILURE;
        }
    };
    let log = match ServerLog::open(&loaded.settings) {
        Ok(log) => log,
        Err(error) => {
            eprintln!("onggi: {error}");
            return ExitCode::FAILURE;
        }
    };
    let has_file = loaded.settings.logfile.is_some();
    match start(line, loaded, &log) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if has_file {
                log.warn(&error.to_string());
            }
            eprintln!("onggi: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start(line: CommandLine, mut loaded: Loaded, log: &ServerLog) -> Result<(), Box<dyn std::error::Error>> {
    log.take_events();
    let dir = std::path::absolute(&loaded.settings.dir).unwrap_or_else(|_| loaded.settings.dir.clone());
    let found = data_directory::look(&vfs::RealFs, &loaded.settings)?;
    let listeners = server::serve::listen(&loaded.settings)?;
    // Before the first thread: the kernel restricts this one and those that it starts.
    let sandboxed = confined::begin(&loaded)?;
    if let Err(error) = heap::begin() {
        log.warn(&format!("arena allocator disabled ({error}); large collections may cause latency spikes"));
    }
    loaded.warnings.iter().for_each(|warning| log.warn(&warning.to_string()));
    if let Some(warning) = supervisor::warning(loaded.settings.supervised) {
        log.warn(warning);
    }
    if let Err(possible) = server::descriptors::raise_limit(loaded.settings.maxclients) {
        log.warn(&format!(
            "the system allows descriptors for {possible} clients and not for maxclients {}, which is lowered to that: \
             raise the limit (ulimit -n, or LimitNOFILE= of systemd) or lower maxclients",
            loaded.settings.maxclients
        ));
        loaded.settings.maxclients = possible.max(1);
    }
    let (entropy, clock) = (Arc::new(OsEntropy), Arc::new(SystemClock::new()));
    let rdb = Arc::new(RdbFile::new(&loaded.settings.rdb_file, clock.clone(), entropy.clone())?);
    let addresses: Vec<_> = listeners.iter().map(ToString::to_string).collect();
    let acceptor = Acceptor::new(listeners)?;
    let control = Control::default();
    let page = web::start(&loaded, &control)?;
    let _push = web::push(&loaded.settings, &control, log)?;
    page.warning().iter().for_each(|warning| log.warn(warning));
    supervisor::watch(loaded.settings.supervised, control.clone(), log.clone())?;
    signals::handle(control.clone(), log.clone(), line)?;
    renewal::follow(control.clone(), log.clone())?;
    banner(&loaded, &dir, &addresses.join(", "), &page.place(), &sandboxed).iter().for_each(|line| log.say(line));
    if let Found::New { others } = found {
        log.say(&format!("new data directory {}: the database is empty{}", dir.display(), beside(others)));
    }
    let socket = loaded.settings.unixsocket.clone();
    let keeping = Keeping::Directory { fs: Arc::new(vfs::RealFs), tell: Arc::new(log.clone()), rdb };
    let served = server::serve::serve(loaded, acceptor, entropy, clock, keeping, control);
    if let Some(path) = socket {
        // Another server may have replaced the socket file already.
        let _ = std::fs::remove_file(path);
    }
    served?;
    log.say("ended");
    Ok(())
}

/// Describes files of other programs in a new data directory.
fn beside(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => "; one other file in it is left alone".to_owned(),
        others => format!("; {others} other files in it are left alone"),
    }
}

/// The first lines of the log.
fn banner(loaded: &Loaded, dir: &Path, addresses: &str, page: &str, sandboxed: &str) -> Vec<String> {
    let settings = &loaded.settings;
    let memory = match settings.maxmemory_bytes {
        0 => "no limit (maxmemory 0)".to_owned(),
        bytes => format!("{} MiB, {}", bytes >> 20, settings.maxmemory_policy),
    };
    let memory = format!("{memory}{}", policies_of(settings));
    let file = loaded.file.as_ref().map_or_else(|| "none".to_owned(), |file| file.display().to_string());
    vec![
        format!("Onggi {} starts, process {}", env!("CARGO_PKG_VERSION"), std::process::id()),
        format!("configuration:  {file}"),
        format!("address:        {addresses}"),
        format!("data directory: {}", dir.display()),
        format!("durability:     {}", durability_of(settings)),
        format!("memory budget:  {memory}"),
        format!("compression:    {}", settings.compression),
        format!("page, metrics:  {page}"),
        format!("sandbox:        {sandboxed}"),
    ]
}

/// Databases whose policy is not that of all, and which one holds for the items of memcached clients.
fn policies_of(settings: &Settings) -> String {
    let own = settings.policies_of_databases().into_iter();
    let own: String = own.map(|(number, policy)| format!("; database {number}: {policy}")).collect();
    match settings.memcached_database {
        shared if settings.memcached_port != 0 && settings.own_memcached_database().is_none() => {
            let policy = settings.policy_of_database(shared);
            format!("{own}; items of memcached clients are in database {shared}, as other keys are: {policy}")
        }
        _ => own,
    }
}

/// What the settings guarantee in a power cut, in a few words.
fn durability_of(settings: &Settings) -> String {
    let saves = if settings.save.points.is_empty() { "none automatically" } else { "by save points and at the end" };
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
