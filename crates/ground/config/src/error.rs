//! What can be wrong with a configuration, and what can be remarkable about one.

use crate::{EvictionPolicy, TierMedium};
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::PathBuf;
use vfs::FsError;

/// Where a directive was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file, from 1.
    File {
        /// As it was named.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    /// A line of standard input, from 1.
    Stdin {
        /// From 1.
        line: usize,
    },
    /// An option on the command line.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Stdin { line } => write!(f, "standard input:{line}"),
            Self::CommandLine => f.write_str("command line"),
        }
    }
}

/// Why a value cannot be taken. The texts are Valkey's where Valkey has one, since clients and test suites match them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// Not one value.
    #[error("wrong number of arguments")]
    WordCount,
    /// Neither `yes` nor `no`.
    #[error("argument must be 'yes' or 'no'")]
    NotFlag,
    /// Not a decimal number, or not one of 64 bits.
    #[error("argument couldn't be parsed into an integer")]
    NotInteger,
    /// A number or size beyond its bounds.
    #[error("argument must be between {min} and {max} inclusive")]
    OutOfRange {
        /// The smallest one allowed.
        min: String,
        /// The largest one allowed.
        max: String,
    },
    /// A number that must be a power of two.
    #[error("argument must be a power of two")]
    NotPowerOfTwo,
    /// Not a size.
    #[error("argument must be a memory value")]
    NotSize,
    /// Neither a size nor a percentage.
    #[error("argument must be a memory or percent value")]
    NotShare,
    /// A percentage above 100.
    #[error("percentage argument must be less or equal to 100")]
    PercentTooLarge,
    /// Not an octal number.
    #[error("argument couldn't be parsed as an octal number")]
    NotOctal,
    /// None of the words.
    #[error("argument(s) must be one of the following: {}", .0.join(", "))]
    NotOneOf(&'static [&'static str]),
    /// Not pairs of seconds above 0 and changes.
    #[error("Invalid save parameters")]
    SavePoints,
    /// No word of SHUTDOWN, or words that contradict each other.
    #[error(
        "argument(s) must be one of the following: default, save, nosave, now, force, safe, failover; and not both save and nosave"
    )]
    EndFlags,
    /// A path with a NUL byte.
    #[error("a path cannot contain a NUL byte")]
    NulByte,
    /// More addresses than `bind` takes.
    #[error("Too many bind addresses specified.")]
    TooManyAddresses,
    /// A word of `bind` that is not an address.
    #[error("bind takes addresses such as 127.0.0.1, ::1, * or ::*, each with an optional '-' before it, and no names")]
    NotAddress,
    /// Not a multiple of four words.
    #[error("Wrong number of arguments in buffer limit configuration.")]
    OutputLimitWordCount,
    /// Not a class of clients.
    #[error("Invalid client class specified in buffer limit configuration.")]
    OutputLimitClass,
    /// A limit that is not a size, or seconds that are not a number.
    #[error("Error in hard, soft or soft_seconds setting in buffer limit configuration.")]
    OutputLimitNumber,
    /// Not threes of number, property and value.
    #[error(
        "database takes a number, then engine and memory or disk, ordered and yes or no, or maxmemory-policy and a policy: \
         database 0 engine disk"
    )]
    DatabaseWords,
    /// Not the number of a database that can have a line.
    #[error("database takes the number of a database, from 0 to 255")]
    DatabaseNumber,
    /// No engine.
    #[error("the engine of a database is memory or disk")]
    DatabaseEngine,
    /// Neither yes nor no.
    #[error("whether a database is ordered is yes or no")]
    DatabaseOrdered,
    /// No policy.
    #[error(
        "the maxmemory-policy of a database is one of those of maxmemory-policy, such as allkeys-lru or noeviction, or default"
    )]
    DatabasePolicy,
    /// A letter that is no class of events.
    #[error("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")]
    NotEvents,
    /// Neither `no one` nor a host and a port.
    #[error("replicaof takes a host and a port from 1 to 65535, or no one")]
    Primary,
    /// A score of the OOM killer that is no number, or too far from 0.
    #[error("Invalid oom-score-adj-values, elements must be between -2000 and 2000.")]
    OomScore,
    /// Not an address of IPv4.
    #[error("Invalid IPv4 address")]
    NotIpv4,
    /// Not an address of IPv6.
    #[error("Invalid IPv6 address")]
    NotIpv6,
    /// A name of a host with other characters.
    #[error("Hostnames may only contain alphanumeric characters, hyphens or dots")]
    NotHostname,
    /// A name of a host that is too long.
    #[error("Hostnames must be less than 256 characters")]
    HostnameTooLong,
    /// Bytes that are no text.
    #[error("argument must be UTF-8 text")]
    NotText,
    /// A percentile that is not a number.
    #[error("Invalid latency-tracking-info-percentiles parameters")]
    NotPercentile,
    /// A percentile beyond 0 to 100.
    #[error("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]")]
    PercentileRange,
    /// More percentiles than INFO shows.
    #[error("Too many percentiles specified.")]
    TooManyPercentiles,
}

impl ValueError {
    pub(crate) fn out_of_range(min: &dyn ToString, max: &dyn ToString) -> Self {
        Self::OutOfRange { min: min.to_string(), max: max.to_string() }
    }
}

/// Why settings that are fine one by one cannot be used together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// Memcached clients would use a database that is not there.
    #[error("memcached-database is {number}, and databases is {count}: give a number below that, or more databases")]
    NoSuchDatabase {
        /// The database that memcached clients would use.
        number: u32,
        /// How many there are.
        count: u32,
    },
    /// Clients of SSDB would use a database that is not there.
    #[error("ssdb-database is {number}, and databases is {count}: give a number below that, or more databases")]
    NoSuchSsdbDatabase {
        /// The database that clients of SSDB would use.
        number: u32,
        /// How many there are.
        count: u32,
    },
    /// Clients of SSDB would use a database that has to fit into memory.
    #[error(
        "ssdb-database is {number}, which is a database in memory: give it --database '{number} engine disk', or leave \
         ssdb-database out"
    )]
    SsdbInMemory {
        /// The database that clients of SSDB would use.
        number: u32,
    },
    /// Types of SSDB would use databases that are not there, or of two engines.
    #[error(
        "ssdb-namespaces separate uses the databases {first} to {last}, for keys, hashes, zsets and queues: give each of them \
         engine {engine} (--database '{last} engine {engine}'), and databases above {last}"
    )]
    SsdbNamespaces {
        /// The database of keys.
        first: u32,
        /// That of queues.
        last: u32,
        /// The engine of the first.
        engine: &'static str,
    },
    /// The servers of ZooKeeper are not a list of them.
    #[error("arcus-zookeeper is {list:?}: give a list such as 10.0.0.1:2181,10.0.0.2:2181")]
    ZookeeperServers {
        /// The value.
        list: String,
    },
    /// Other hosts would reach a page that has no login.
    #[error(
        "http-bind has {address}, which other hosts may reach, and there is no login: set requirepass, aclfile or user \
         lines with passwords, http-token-file, or tls-auth-clients-user; or leave http-bind at 127.0.0.1"
    )]
    PageWithoutLogin {
        /// The first address beyond loopback.
        address: String,
    },
    /// Passwords for the page would cross the network as they are.
    #[error(
        "http-bind has {address}, which other hosts may reach, and their passwords would be readable on the way: set \
         http-tls yes, tls-cert-file and tls-key-file; or leave http-bind at 127.0.0.1, with a proxy on this host"
    )]
    PageWithoutTls {
        /// The first address beyond loopback.
        address: String,
    },
    /// The program has no code that sends figures.
    #[error(
        "{directive} is set, and this program was built without OTLP: build it with cargo build --release --features otlp, \
         or remove the line; /metrics has the same figures"
    )]
    OtlpNotBuilt {
        /// What is set.
        directive: String,
    },
    /// Figures cannot be sent there.
    #[error(
        "otlp-endpoint {url} is not a URL of HTTP: name the one for metrics, such as http://127.0.0.1:4318/v1/metrics"
    )]
    OtlpEndpoint {
        /// What is set.
        url: String,
    },
    /// A header of figures that are sent. Its value may be a secret.
    #[error("otlp-headers: the text number {number} between commas is not NAME=VALUE, with a name as HTTP has them")]
    OtlpHeader {
        /// From 1.
        number: usize,
    },
    /// Clients of ARCUS would find a server that does not listen for them.
    #[error("arcus-zookeeper needs memcached-port: the clients that find this server by ZooKeeper use it")]
    ZookeeperWithoutPort,
    /// A database in memory has its names in no order.
    #[error(
        "database {number} is ordered yes and in memory: only the rows of a database on disk are in the order of their names. \
         Set database {number} engine disk, or ordered no"
    )]
    OrderedInMemory {
        /// The database.
        number: u32,
    },
    /// A database with an engine that is not there.
    #[error("database {number} has engine disk, and databases is {count}: give a number below that, or more databases")]
    NoSuchDiskDatabase {
        /// The database.
        number: u32,
        /// How many there are.
        count: u32,
    },
    /// A policy for a database that is not there.
    #[error(
        "database {number} has a maxmemory-policy, and databases is {count}: give a number below that, or more databases"
    )]
    NoSuchEvictingDatabase {
        /// The database.
        number: u32,
        /// How many there are.
        count: u32,
    },
    /// Eviction of keys that are on disk.
    #[error(
        "database {number} has engine disk and maxmemory-policy {policy}: no key of a database on disk is evicted. Leave out \
         its policy, or set noeviction"
    )]
    DiskWithEviction {
        /// The database.
        number: u32,
        /// Its policy.
        policy: EvictionPolicy,
    },
    /// Of each key it is known when it was used last, or how often.
    #[error(
        "{lfu} counts how often keys are used, and {lru} needs the time they were used last: the server keeps one of these \
         for all databases. Give all of them policies with lfu, or none"
    )]
    TimesAndCounts {
        /// What counts uses: a directive and its value.
        lfu: String,
        /// What needs times.
        lru: String,
    },
    /// A model of a slower medium than mapped files.
    #[error(
        "tier-read-delay-ns and tier-write-delay-ns are for experiments with tier-medium shared, and it is {medium}. Set \
         tier-medium shared, or both delays to 0"
    )]
    DelayWithoutShared {
        /// What it is.
        medium: TierMedium,
    },
    /// A replica, and a database on disk.
    #[error(
        "replicaof is set and database {number} has engine disk: a replica cannot have databases on disk yet. Set \
         database {number} engine memory, or replicaof no one"
    )]
    ReplicaWithDisk {
        /// The database.
        number: u32,
    },
    /// A database on disk, and no log.
    #[error(
        "database {number} has engine disk, which needs the command log: changes that are not flushed yet are only there. \
         Set appendonly yes, or database {number} engine memory"
    )]
    DiskWithoutLog {
        /// The database.
        number: u32,
    },
    /// Neither TCP nor a unix socket.
    #[error("there is nothing to listen on: set port and bind, or unixsocket")]
    NowhereToListen,
}

/// What is wrong with one line or option.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// No such row.
    #[error("unknown directive '{name}'{}", suggestion(.nearest))]
    Unknown {
        /// As given.
        name: String,
        /// The known name that differs least.
        nearest: Option<&'static str>,
    },
    /// Quotes that do not close, or that end inside a word.
    #[error("unbalanced quotes")]
    Quotes,
    /// A byte no text file has.
    #[error("the line contains a NUL byte")]
    NulByte,
    /// A value its directive does not take.
    #[error("{name}: {error}")]
    Value {
        /// The directive.
        name: &'static str,
        /// Why.
        error: ValueError,
    },
    /// A value this server cannot honour.
    #[error("{name} is refused: {reason}")]
    Refused {
        /// The directive.
        name: &'static str,
        /// Why, and what to do instead.
        reason: &'static str,
    },
    /// An included file that cannot be read.
    #[error("cannot include it: {0}")]
    Include(FsError),
    /// An included file that is being read already.
    #[error("{} would include itself", path.display())]
    IncludeCycle {
        /// The included file.
        path: PathBuf,
    },
    /// A second line for one user.
    #[error("this user has a line already; a user can only be defined once")]
    DuplicateUser,
    /// Includes within includes, too many files or too many bytes.
    #[error("too much is included: at most {0}")]
    IncludeLimit(&'static str),
    /// A word before the first option.
    #[error("an option begins with --")]
    NotAnOption,
}

fn suggestion(nearest: &Option<&'static str>) -> String {
    nearest.map(|name| format!(", did you mean '{name}'?")).unwrap_or_default()
}

/// One reason not to start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file named on the command line cannot be read.
    #[error("cannot read the configuration: {0}")]
    File(FsError),
    /// Standard input cannot be read.
    #[error("cannot read the configuration from standard input: {0}")]
    Stdin(io::Error),
    /// Something is wrong with one line or option.
    #[error("{origin}: {problem} (in: {text})")]
    Line {
        /// Where.
        origin: Origin,
        /// The line, without secrets.
        text: String,
        /// What.
        problem: Problem,
    },
    /// The settings cannot be used together.
    #[error(transparent)]
    Rule(#[from] RuleError),
}

/// Every reason not to start, in the order they were found; at least one.
#[derive(Debug)]
pub struct LoadErrors(pub Vec<LoadError>);

impl fmt::Display for LoadErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadErrors {}

/// Something worth a line in the log at start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// Directives without effect here, for one reason.
    NotNeeded {
        /// Their names, each with the place of its last mention.
        given: Vec<(&'static str, Origin)>,
        /// The reason.
        reason: &'static str,
    },
    /// Without a password, clients of other hosts are refused.
    Protected {
        /// The first address beyond loopback.
        address: String,
    },
    /// Reachable by others, open to everybody, and allowed to be.
    Exposed {
        /// The first address beyond loopback.
        address: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNeeded { given, reason } => {
                f.write_str("not needed here: ")?;
                for (index, (name, origin)) in given.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    match origin {
                        Origin::File { line, .. } | Origin::Stdin { line } => write!(f, "{comma}{name} (line {line})")?,
                        Origin::CommandLine => write!(f, "{comma}{name}")?,
                    }
                }
                write!(f, ": {reason}")
            }
            Self::Protected { address } => write!(
                f,
                "bind has {address} and no password is set: clients of other hosts are refused; set requirepass, or \
                 protected-mode no to serve them without a password"
            ),
            Self::Exposed { address } => write!(
                f,
                "protected-mode is off, no password is set and bind has {address}: everybody who reaches this host can \
                 read and change all data"
            ),
        }
    }
}

/// Why CONFIG SET changed nothing. `Display` is the text of the reply, without its `ERR`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetError {
    /// A name CONFIG does not know.
    #[error("Unknown option or number of arguments for CONFIG SET - '{}'", name.escape_ascii())]
    Unknown {
        /// As given, byte by byte.
        name: Vec<u8>,
    },
    /// A value or a directive that cannot be set.
    #[error("CONFIG SET failed (possibly related to argument '{name}') - {reason}")]
    Failed {
        /// The directive.
        name: String,
        /// Why.
        reason: Cow<'static, str>,
    },
}

/// Why CONFIG REWRITE changed nothing. `Display` is the text of the reply, without its `ERR`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// There is no file to rewrite.
    #[error("The server is running without a config file")]
    NoFile,
    /// The file cannot be read or replaced.
    #[error("Rewriting config file: {0}")]
    File(#[from] FsError),
    /// The file has changed since the start and is no longer one that a server would start with; nothing in it is
    /// overwritten.
    #[error("Rewriting config file: {}", .0.to_string().replace('\n', "; "))]
    Invalid(LoadErrors),
}
