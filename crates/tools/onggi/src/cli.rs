//! `onggi cli`: commands to a server from the command line, from standard input, or from a prompt. It prints replies as
//! redis-cli does.
//!
//! ```text
//!  words --+                              +--> reply: for people, plain, JSON
//!  lines --+--> Session::send --> Value --+
//!  prompt -+    (one connection)
//! ```

mod docs;
mod editor;
mod lru;
mod pipe;
mod prompt;
mod reply;
mod session;
mod spectrum;
mod url;
mod walk;
mod watch;
mod words;

use crate::report::failed;
use clap::Args;
use loadgen::cli::security::SecurityArgs;
use loadgen::client::{Address, Login};
use loadgen::error::BenchError;
use reply::Form;
use session::{Sent, Session};
use std::error::Error;
use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use url::Url;
use walk::{Measure, Walk};

/// Sends commands to a server, with the options and the output of redis-cli: the command of the command line, or one of
/// each line of standard input. On a terminal without a command it opens a prompt with hints, completion and a history.
///
/// Replies have types and quotes on a terminal, and are plain in a pipe; see --no-raw, --raw and --json.
///
/// Exit code: 0 done, 1 an error reply with -e, --pipe or a walk over the keys, 2 no connection.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct CliArgs {
    /// Host.
    #[arg(short = 'h', value_name = "HOST", default_value = "127.0.0.1")]
    host: String,
    /// Port.
    #[arg(short = 'p', value_name = "PORT", default_value_t = 6379)]
    port: u16,
    /// Unix socket, instead of host and port.
    #[arg(short = 's', value_name = "PATH", conflicts_with = "url")]
    socket: Option<PathBuf>,
    /// Address with login and database, such as redis://USER:PASSWORD@HOST:PORT/DB, or rediss:// with TLS. It replaces
    /// the other options.
    #[arg(short = 'u', value_name = "URL")]
    url: Option<Url>,
    /// Password. Other users of the machine can see it in the list of processes; the variable is private.
    #[arg(short = 'a', long = "pass", value_name = "PASSWORD", env = "REDISCLI_AUTH", hide_env_values = true)]
    password: Option<String>,
    /// User name; the default user if missing.
    #[arg(long, value_name = "USER", requires = "password")]
    user: Option<String>,
    /// Database.
    #[arg(short = 'n', value_name = "DB", default_value_t = 0)]
    database: u32,
    /// Speaks RESP2, which is the default.
    #[arg(short = '2', conflicts_with = "resp3")]
    resp2: bool,
    /// Speaks RESP3.
    #[arg(short = '3')]
    resp3: bool,
    /// Exits with 1 after an error reply.
    #[arg(short = 'e')]
    fails_on_error: bool,
    /// Plain replies, on a terminal too.
    #[arg(long, conflicts_with = "no_raw")]
    raw: bool,
    /// Replies with types and quotes, in a pipe too.
    #[arg(long)]
    no_raw: bool,
    /// Replies as JSON, one a line, over RESP3 unless -2 is given. Bytes that are not UTF-8 become U+FFFD.
    #[arg(long, conflicts_with_all = ["raw", "no_raw"])]
    json: bool,
    /// Replies as one line of values between commas.
    #[arg(long, conflicts_with_all = ["raw", "no_raw", "json"])]
    csv: bool,
    /// Reads the last argument of the command from standard input.
    #[arg(short = 'x', requires = "command")]
    reads_argument: bool,
    /// Sends the command this many times; -1 until interrupted. Rows of --stat, --latency-dist and --lru-test.
    #[arg(short = 'r', value_name = "COUNT", default_value_t = 1, allow_hyphen_values = true)]
    repeats: i64,
    /// Seconds between two of these commands, such as 0.5; between two rows of --stat and --latency-history; or of a
    /// pause after each 100 pages of a walk over the keys.
    #[arg(short = 'i', value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    interval: Duration,
    #[command(flatten)]
    mode: ModeArgs,
    #[command(flatten)]
    security: SecurityArgs,
    /// Prints this text.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// The command and its arguments.
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// What to do in place of sending a command.
#[derive(Args)]
#[group(multiple = false)]
struct Modes {
    /// Prints all keys, one a line.
    #[arg(long, conflicts_with = "command")]
    scan: bool,
    /// Shows the key with the most elements or bytes of each type.
    #[arg(long, conflicts_with = "command")]
    bigkeys: bool,
    /// Shows the key that takes the most memory of each type.
    #[arg(long, conflicts_with = "command")]
    memkeys: bool,
    /// Shows the keys that are used most. The server's maxmemory-policy has to be one of LFU.
    #[arg(long, conflicts_with = "command")]
    hotkeys: bool,
    /// Prints a row of figures every second: keys, memory, clients, requests.
    #[arg(long, conflicts_with = "command")]
    stat: bool,
    /// Measures round trips of PING, in milliseconds: in a pipe those of a second, on a terminal until interrupted.
    #[arg(long, conflicts_with = "command")]
    latency: bool,
    /// The same, with a row for each 15 seconds or for the time of -i.
    #[arg(long, conflicts_with = "command")]
    latency_history: bool,
    /// Shows round trips of PING by their duration, as a row of colours for each second or for the time of -i.
    #[arg(long, conflicts_with = "command")]
    latency_dist: bool,
    /// Writes and reads this many keys as a cache does, of which a fifth has four fifths of the requests, and prints
    /// hits and misses of each second. It fills the server: give it a maxmemory.
    #[arg(long, value_name = "KEYS", conflicts_with = "command", value_parser = clap::value_parser!(u64).range(1..))]
    lru_test: Option<u64>,
    /// Sends standard input as it is, which has to be requests of the protocol, and counts replies and errors.
    #[arg(long, conflicts_with = "command")]
    pipe: bool,
    /// Runs the Lua script of a file. Its keys and, after a comma between blanks, its arguments follow.
    #[arg(long, value_name = "FILE")]
    eval: Option<PathBuf>,
    /// Refused: there is no cluster to manage here.
    #[arg(long, hide = true)]
    cluster: bool,
    /// Refused: the server sends no copies of its data.
    #[arg(long, hide = true, value_name = "FILE")]
    rdb: Option<PathBuf>,
    /// Refused like --rdb.
    #[arg(long, hide = true, value_name = "FILE")]
    functions_rdb: Option<PathBuf>,
    /// Refused like --rdb.
    #[arg(long, hide = true, alias = "slave")]
    replica: bool,
    /// Refused: the server has no debugger of scripts.
    #[arg(long, hide = true, alias = "ldb-sync-mode")]
    ldb: bool,
}

/// A mode and its options.
#[derive(Args)]
struct ModeArgs {
    #[command(flatten)]
    modes: Modes,
    /// Walks over keys that match this pattern.
    #[arg(long, value_name = "PATTERN")]
    pattern: Option<String>,
    /// Walks over keys of this type, such as hash.
    #[arg(long = "type", value_name = "TYPE")]
    of_type: Option<String>,
    /// Keys of a page of SCAN.
    #[arg(long, value_name = "KEYS", default_value = "100", value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Samples of a big collection for --memkeys; 0 for all of it.
    #[arg(long, value_name = "COUNT")]
    memkeys_samples: Option<u64>,
    /// Grey in place of colours, for --latency-dist.
    #[arg(long)]
    mono: bool,
    /// Seconds without a reply after which --pipe gives up; 0 for never.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pipe_timeout: u64,
}

impl ModeArgs {
    fn walk(&self, interval: Duration) -> Walk {
        Walk { pattern: self.pattern.clone(), of_type: self.of_type.clone(), count: self.count, interval }
    }
}

/// Reads a number of seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is not a number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// `onggi cli`
pub fn run(args: CliArgs) -> ExitCode {
    match talk(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => match error.downcast_ref::<io::Error>() {
            // The reader has closed the pipe, as `head` does.
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            _ if error.is::<walk::Refused>() => {
                eprintln!("onggi cli: {error}");
                ExitCode::FAILURE
            }
            _ => failed("cli", &*error),
        },
    }
}

impl CliArgs {
    fn address(&self) -> Address {
        match (&self.url, &self.socket) {
            (Some(url), _) => url.address.clone(),
            (None, Some(path)) => Address::Unix(path.clone()),
            (None, None) if self.host.contains(':') => Address::Tcp(format!("[{}]:{}", self.host, self.port)),
            (None, None) => Address::Tcp(format!("{}:{}", self.host, self.port)),
        }
    }

    fn login(&self) -> Result<Login, BenchError> {
        let resp3 = self.resp3 || self.json && !self.resp2;
        let is_asked_by_address = self.url.as_ref().is_some_and(|url| url.is_tls);
        let security = self.security.security(&self.address(), is_asked_by_address)?;
        let (user, password) = (self.user.clone(), self.password.clone());
        let given = Login { user, password, database: self.database, resp3, security };
        Ok(match &self.url {
            Some(url) => Login {
                user: url.user.clone().or(given.user),
                password: url.password.clone().or(given.password),
                database: url.database.unwrap_or(given.database),
                ..given
            },
            None => given,
        })
    }

    fn form(&self) -> Form {
        match () {
            () if self.json => Form::Json,
            () if self.csv => Form::Csv,
            () if self.no_raw || !self.raw && io::stdout().is_terminal() => Form::People,
            () => Form::Plain,
        }
    }
}

/// Sends everything; false after an error reply if that counts.
fn talk(args: CliArgs) -> Result<bool, Box<dyn Error>> {
    if let Some(why) = args.mode.modes.refusal() {
        return Err(why.into());
    }
    if !args.mode.modes.walks() && (args.mode.pattern.is_some() || args.mode.of_type.is_some()) {
        return Err("--pattern and --type are for --scan, --bigkeys, --memkeys and --hotkeys".into());
    }
    // What clap requires is not required next to a command, which these modes conflict with.
    if args.mode.mono && !args.mode.modes.latency_dist {
        return Err("--mono is for --latency-dist".into());
    }
    if args.mode.memkeys_samples.is_some() && !args.mode.modes.memkeys {
        return Err("--memkeys-samples is for --memkeys".into());
    }
    let script = args.mode.modes.eval.as_deref().map(|file| evaluation(file, &args.command)).transpose()?;
    let mut session = Session::open(args.address(), args.login()?)?;
    let (form, fails_on_error) = (args.form(), args.fails_on_error);
    if let Some(done) = in_mode(&args, &mut session, form)? {
        return Ok(done);
    }
    if let Some(command) = script {
        return Ok(send(&mut session, &command, form)? || !fails_on_error);
    }
    if args.command.is_empty() && io::stdin().is_terminal() && io::stdout().is_terminal() {
        return prompt::run(session, form).map(|()| true);
    }
    if args.command.is_empty() {
        return each_line(&mut session, form, fails_on_error);
    }
    let mut command: Vec<Vec<u8>> = args.command.into_iter().map(OsString::into_vec).collect();
    if args.reads_argument {
        let mut argument = Vec::new();
        io::stdin().lock().read_to_end(&mut argument)?;
        command.push(argument);
    }
    let mut left = args.repeats;
    while left != 0 {
        if !send(&mut session, &command, form)? && fails_on_error {
            return Ok(false);
        }
        left -= 1;
        if left != 0 {
            std::thread::sleep(args.interval);
        }
    }
    Ok(true)
}

impl Modes {
    /// Why a mode of redis-cli is not offered, and what to use in its place.
    fn refusal(&self) -> Option<&'static str> {
        Some(match () {
            () if self.cluster => {
                "--cluster is for Redis Cluster, which this program has no commands for; use redis-cli or valkey-cli"
            }
            () if self.rdb.is_some() => {
                "--rdb asks for a copy by SYNC, which the server does not send; use BGSAVE RDB on its machine, or \
                 onggi export with a backup"
            }
            () if self.functions_rdb.is_some() => {
                "--functions-rdb asks for a copy by SYNC, which the server does not send; use FUNCTION DUMP, which \
                 FUNCTION RESTORE takes"
            }
            () if self.replica => {
                "--replica asks for changes by SYNC, which the server does not send; use MONITOR to see its commands"
            }
            () if self.ldb => "--ldb needs SCRIPT DEBUG, which the server does not have; run the script with --eval",
            () => return None,
        })
    }

    /// Whether it is a walk over the keys.
    fn walks(&self) -> bool {
        self.scan || self.bigkeys || self.memkeys || self.hotkeys
    }
}

/// Does what a mode does; `None` without one, and for a script.
fn in_mode(args: &CliArgs, session: &mut Session, form: Form) -> Result<Option<bool>, Box<dyn Error>> {
    let (modes, walk) = (&args.mode.modes, args.mode.walk(args.interval));
    // -r bounds what else continues until it is interrupted.
    let rows = if args.repeats == 1 { -1 } else { args.repeats };
    match () {
        () if modes.scan => walk::scan(session, &walk, form)?,
        () if modes.bigkeys => walk::biggest(session, &walk, Measure::Elements)?,
        () if modes.memkeys => walk::biggest(session, &walk, Measure::Memory(args.mode.memkeys_samples))?,
        () if modes.hotkeys => walk::hottest(session, &walk)?,
        () if modes.stat => watch::stat(session, args.interval, rows)?,
        () if modes.latency || modes.latency_history => {
            watch::latency(session, args.interval, form, modes.latency_history)?;
        }
        () if modes.latency_dist => spectrum::distribution(session, args.interval, args.mode.mono, rows)?,
        () if modes.lru_test.is_some() => lru::test(session, modes.lru_test.unwrap_or(1), rows)?,
        () if modes.pipe => {
            let patience = Some(args.mode.pipe_timeout).filter(|seconds| *seconds > 0).map(Duration::from_secs);
            return pipe::run(session, patience).map(Some);
        }
        () => return Ok(None),
    }
    Ok(Some(true))
}

/// EVAL of a file with keys, and arguments after a comma.
fn evaluation(file: &Path, words: &[OsString]) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let script = std::fs::read(file).map_err(|error| format!("{}: {}", file.display(), vfs::reason(&error)))?;
    let comma = words.iter().position(|word| word == ",");
    let keys = comma.unwrap_or(words.len());
    let mut command = vec![b"EVAL".to_vec(), script, keys.to_string().into_bytes()];
    let parts = [words.get(..keys), words.get(keys.saturating_add(1)..)];
    command.extend(parts.into_iter().flatten().flatten().map(|word| word.clone().into_vec()));
    Ok(command)
}

/// Sends the command of each line of standard input.
fn each_line(session: &mut Session, form: Form, fails_on_error: bool) -> Result<bool, Box<dyn Error>> {
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        match words::split(&line) {
            Some(words) if words.is_empty() => {}
            Some(words) => {
                if !send(session, &words, form)? && fails_on_error {
                    return Ok(false);
                }
            }
            None => {
                eprintln!("onggi cli: quotes do not match in: {}", String::from_utf8_lossy(line.trim_ascii()));
                if fails_on_error {
                    return Ok(false);
                }
            }
        }
        line.clear();
    }
    Ok(true)
}

/// Sends a command and prints its reply, or its messages until the connection ends; false after an error reply.
fn send(session: &mut Session, command: &[Vec<u8>], form: Form) -> Result<bool, Box<dyn Error>> {
    let mut is_good = true;
    let form = reply::form_of(command, form);
    let sent = session.send(command, &mut |value| {
        is_good &= value.as_error().is_none();
        let mut out = io::stdout().lock();
        out.write_all(&reply::shown(value, form))?;
        out.flush()
    })?;
    if sent == Sent::Interrupted {
        session.reconnect_next_time();
    }
    Ok(is_good)
}
