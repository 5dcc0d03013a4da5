//! The server group without a server: requests through the command table and a real store, replies as bytes.

use admin::{
    About, Apply, CommandLog, Configuration, EndOrder, Explanations, Figures, LatencyMonitor, ShutdownRequest,
    WorkerFigures,
};
use base::clock::ManualClock;
use base::random::SeededEntropy;
use command::call::call;
use command::clients::Address;
use command::observer::Observer;
use command::stats::WorkerStats;
use command::{Args, CommandTable, Ctx, Host, Session, Stop};
use config::{Directive, EndFlags, RewriteError, Settings};
use proto::{Protocol, ReplyBuffer, Span};
use std::sync::Arc;
use store::shard::ShardEngine;
use store::{At, LockSet, Scratch, Store, StoreOptions, Wake, WorkerSet};

/// The start of every test's server.
const START: i64 = 1_700_000_000_000;

struct NobodyWaits;

impl Wake for NobodyWaits {
    fn wake(&self, _: WorkerSet) {}
}

/// Refuses one value, as a listener might whose port is taken.
struct Refusing;

impl Apply for Refusing {
    fn apply(&self, row: &'static Directive, settings: &Settings) -> Result<(), String> {
        match row.name {
            "timeout" if settings.timeout_seconds == 13 => Err("not this one".into()),
            _ => Ok(()),
        }
    }

    fn rewrite(&self, _: &Settings) -> Result<(), RewriteError> {
        Err(RewriteError::NoFile)
    }
}

struct Server {
    clock: Arc<ManualClock>,
    store: Arc<Store>,
    table: Arc<CommandTable>,
    host: Host,
    stats: Arc<WorkerStats>,
    session: Session,
    scratch: Scratch,
    reply: ReplyBuffer,
}

impl Server {
    fn new() -> Self {
        Self::with(Settings::default())
    }

    fn with(settings: Settings) -> Self {
        let clock = Arc::new(ManualClock::new(START + 5000));
        let store = Arc::new(Store::new(StoreOptions {
            shard_count: 4,
            database_count: 16,
            clock: clock.clone(),
            entropy: Arc::new(SeededEntropy::new(1)),
            wake: Arc::new(NobodyWaits),
            log: None,
            engine: |engine| ShardEngine::Memory(Box::new(engine)),
        }));
        let table =
            Arc::new(CommandTable::new(&[command::redis::FAMILIES, script::FAMILIES, admin::FAMILIES].concat()));
        let stats = Arc::new(WorkerStats::new(table.rows().len()));
        let latency = Arc::new(LatencyMonitor::new(&settings));
        let mut host = Host::alone(table.clone())
            .with(store.clone())
            .with(Arc::new(CommandLog::new(&settings, latency.clone())))
            .with(latency)
            .with(Arc::new(Explanations::default()))
            .with(ShutdownRequest::default());
        host.figures = Arc::new(Figures::new(vec![Arc::new(WorkerFigures::new(stats.clone()))]));
        host.about = About::new(&mut base::Rng::new(3), START, None);
        host.configuration = Configuration::new(settings, Box::new(Refusing));
        let address = |port| Address::Tcp(([127, 0, 0, 1], port).into());
        let client = host.clients.connect(address(50_000), address(6379), 8, 0, START).expect("room for a client");
        let session = Session::of(client, true);
        let reply = ReplyBuffer::new(Protocol::Resp2);
        Self { clock, store, table, host, stats, session, scratch: Scratch::default(), reply }
    }

    /// The reply to a request, its words separated by blanks.
    fn run(&mut self, request: &str) -> String {
        let (mut spans, mut at) = (Vec::new(), 0);
        for word in request.split(' ') {
            spans.push(Span::new(at, word.len()).unwrap());
            at += word.len() + 1;
        }
        let args = Args::new(request.as_bytes(), &spans, &[]);
        match self.table.resolve(&args) {
            Err(Stop::Error(text)) => self.reply.error(text.as_bytes()),
            Err(Stop::Fetch) => unreachable!("no row is needed to find a command"),
            Ok(row) => {
                let (now, db) = (self.store.clock.now_ms(), self.session.db);
                let at = At { now, db, touch: true, worker: 0, writes: row.writes };
                let ran = self.store.commit(&mut self.scratch, &LockSet::All, &at, |txn| {
                    let mut ctx = Ctx {
                        spec: row.spec,
                        args,
                        reply: &mut self.reply,
                        ks: txn,
                        session: &mut self.session,
                        host: &self.host,
                        stats: &self.stats,
                        hashed: None,
                    };
                    call(&mut ctx, &row)?;
                    let log = self.host.part::<admin::Needed, Arc<CommandLog>>();
                    ctx.show_done(15_000_000, request.len(), ctx.reply.len(), |done| log.done(done));
                    Ok(())
                });
                assert!(ran.is_ok(), "nobody else holds a lock");
                self.stats.command(row.index.into()).unwrap().record(3_000);
            }
        }
        let bytes: Vec<u8> = self.reply.io_slices().flat_map(|slice| slice.to_vec()).collect();
        self.reply.advance(bytes.len());
        String::from_utf8(bytes).unwrap()
    }

    fn check(&mut self, cases: &[(&str, &str)]) {
        for (request, reply) in cases {
            assert_eq!(self.run(request), *reply, "{request}");
        }
    }
}

/// The value of a field of INFO.
fn field<'i>(info: &'i str, name: &str) -> &'i str {
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {info}"))
}

#[test]
fn databases_are_counted_emptied_and_swapped() {
    let mut server = Server::new();
    server.check(&[
        ("SET a 1", "+OK\r\n"),
        ("SET b 1 EX 100", "+OK\r\n"),
        ("DBSIZE", ":2\r\n"),
        ("SWAPDB 0 1", "+OK\r\n"),
        ("DBSIZE", ":0\r\n"),
        (
            "INFO keyspace",
            "$76\r\n# Keyspace\r\ndb1:keys=2,expires=1,avg_ttl=100000,keys_with_volatile_items=0\r\n\r\n",
        ),
        ("FLUSHDB", "+OK\r\n"),
        ("SWAPDB 0 1", "+OK\r\n"),
        ("DBSIZE", ":2\r\n"),
        ("FLUSHALL NOW", "-ERR syntax error\r\n"),
        ("FLUSHALL ASYNC SYNC", "-ERR syntax error\r\n"),
        ("DBSIZE", ":2\r\n"),
        ("FLUSHALL async", "+OK\r\n"),
        ("DBSIZE", ":0\r\n"),
        ("SWAPDB a 1", "-ERR invalid first DB index\r\n"),
        ("SWAPDB 1 a", "-ERR invalid second DB index\r\n"),
        ("SWAPDB 1 99", "-ERR DB index is out of range\r\n"),
        ("SWAPDB 1 1", "+OK\r\n"),
    ]);
}

#[test]
fn info_shows_sections_and_true_figures() {
    let mut server = Server::new();
    server.run("SET a 1");
    let info = server.run("INFO");
    for (name, value) in [
        ("redis_version", "7.2.4"),
        ("server_name", "onggi"),
        ("tcp_port", "6379"),
        ("uptime_in_seconds", "5"),
        ("connected_clients", "1"),
        ("maxmemory", "0"),
        ("maxmemory_human", "0B"),
        ("maxmemory_policy", "noeviction"),
        ("durability", "none (memory only)"),
        ("aof_enabled", "0"),
        ("role", "master"),
        ("cluster_enabled", "0"),
        ("db0", "keys=1,expires=0,avg_ttl=0,keys_with_volatile_items=0"),
    ] {
        assert_eq!(field(&info, name), value, "{name}");
    }
    let used: u64 = field(&info, "used_memory").parse().unwrap();
    assert!(used >= server.store.memory.total() && used > 0);
    assert!(!info.contains("# Commandstats"), "only when asked for");
    let all = server.run("INFO all");
    assert_eq!(field(&all, "cmdstat_set"), "calls=1,usec=3,usec_per_call=3.00,rejected_calls=0,failed_calls=0");
    assert_eq!(field(&all, "latency_percentiles_usec_set"), "p50=3.071,p99=3.071,p99.9=3.071");
    assert!(!all.contains("# Modules"));
    assert!(!info.contains("errorstat_"), "nothing went wrong yet");
    server.check(&[("GETRANGE a b c", "-ERR value is not an integer or out of range\r\n")]);
    let errors = server.run("INFO errorstats commandstats");
    assert_eq!(field(&errors, "errorstat_ERR"), "count=1");
    assert!(field(&errors, "cmdstat_getrange").ends_with("rejected_calls=0,failed_calls=1"), "{errors}");
    assert!(server.run("INFO everything").contains("# Modules"));
    let two = server.run("INFO CPU nosuch replication");
    assert!(two.contains("\r\n# Replication\r\nrole:") && two.contains("\r\n\r\n# CPU\r\nused_cpu_sys:"), "{two}");
    assert_eq!(server.run("INFO nosuch"), "$0\r\n\r\n");
    server.check(&[("CONFIG RESETSTAT", "+OK\r\n")]);
    let stats = server.run("INFO stats");
    for name in ["total_connections_received", "keyspace_hits", "total_error_replies", "expired_keys"] {
        assert_eq!(field(&stats, name), "0", "{name}");
    }
    let zero = server.run("INFO errorstats commandstats");
    assert!(!zero.contains("cmdstat_set") && !zero.contains("errorstat_"), "{zero}");
}

#[test]
fn config_set_changes_all_or_nothing() {
    let mut server = Server::new();
    server.check(&[
        ("CONFIG GET maxmemory nosuch", "*2\r\n$9\r\nmaxmemory\r\n$1\r\n0\r\n"),
        ("CONFIG SET maxmemory 1mb proto-max-bulk-len 2mb", "+OK\r\n"),
        ("CONFIG GET maxmemory", "*2\r\n$9\r\nmaxmemory\r\n$7\r\n1048576\r\n"),
        ("CONFIG SET maxmemory", "-ERR wrong number of arguments for 'config|set' command\r\n"),
        ("CONFIG SET maxmemory 1 timeout", "-ERR syntax error\r\n"),
        ("CONFIG SET nosuch 0", "-ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'\r\n"),
        (
            "CONFIG SET maxmemory 5mb timeout 13",
            "-ERR CONFIG SET failed (possibly related to argument 'timeout') - not this one\r\n",
        ),
        ("CONFIG GET maxmemory", "*2\r\n$9\r\nmaxmemory\r\n$7\r\n1048576\r\n"),
        ("CONFIG REWRITE", "-ERR The server is running without a config file\r\n"),
        ("CONFIG SET requirepass secret maxmemory-policy allkeys-lfu", "+OK\r\n"),
    ]);
    assert_eq!(server.host.string_limit.bytes(), 2 << 20);
    assert!(server.host.stamp_meaning.is_frequency());
    assert!(server.host.login.needs_password());
    server.check(&[(
        "CONFIG SET requirepass other timeout 13",
        "-ERR CONFIG SET failed (possibly related to argument 'timeout') - not this one\r\n",
    )]);
    let login = &server.host.login;
    assert!(login.attempt(b"default", b"secret", &server.session.info.address, START).user.is_some(), "put back");
}

#[test]
fn commands_are_described() {
    let mut server = Server::new();
    let get = "*10\r\n$3\r\nget\r\n:2\r\n~2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n~3\r\n+@read\r\n+@string\r\n+@fast\r\n\
               ~0\r\n~1\r\n%3\r\n$5\r\nflags\r\n~2\r\n+RO\r\n+access\r\n$12\r\nbegin_search\r\n%2\r\n$4\r\ntype\r\n\
               $5\r\nindex\r\n$4\r\nspec\r\n%1\r\n$5\r\nindex\r\n:1\r\n$9\r\nfind_keys\r\n%2\r\n$4\r\ntype\r\n$5\r\nrange\r\n\
               $4\r\nspec\r\n%3\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n*0\r\n";
    let help = "*10\r\n$11\r\nconfig|help\r\n:2\r\n~2\r\n+loading\r\n+stale\r\n:0\r\n:0\r\n:0\r\n~1\r\n+@slow\r\n~0\r\n~0\r\n*0\r\n";
    server.reply.set_protocol(Protocol::Resp3);
    server.check(&[("COMMAND INFO get CONFIG|help nosuch", &format!("*3\r\n{get}{help}_\r\n"))]);
    let docs = server.run("COMMAND DOCS get");
    assert!(docs.starts_with("%1\r\n$3\r\nget\r\n%5\r\n$7\r\nsummary\r\n"), "{docs}");
    let arguments = "$9\r\narguments\r\n*1\r\n%4\r\n$4\r\nname\r\n$3\r\nkey\r\n$4\r\ntype\r\n$3\r\nkey\r\n\
                     $12\r\ndisplay_text\r\n$3\r\nkey\r\n$14\r\nkey_spec_index\r\n:0\r\n";
    assert!(docs.ends_with(arguments), "{docs}");
    for own in ["hotkeys", "backup", "memory|explain"] {
        let docs = server.run(&format!("COMMAND DOCS {own}"));
        assert!(docs.contains("$5\r\nsince\r\n$5\r\n0.1.0\r\n"), "{docs}");
    }
    assert_eq!(server.run("COMMAND"), server.run("COMMAND INFO"));
    let count = server.table.commands().len();
    server.check(&[
        ("COMMAND COUNT", &format!(":{count}\r\n")),
        ("COMMAND GETKEYS mset a b c d", "*2\r\n$1\r\na\r\n$1\r\nc\r\n"),
        ("COMMAND GETKEYS memory usage k", "*1\r\n$1\r\nk\r\n"),
        ("COMMAND GETKEYSANDFLAGS set a b", "*1\r\n*2\r\n$1\r\na\r\n~2\r\n+OW\r\n+update\r\n"),
        ("COMMAND GETKEYSANDFLAGS set a b GET", "*1\r\n*2\r\n$1\r\na\r\n~3\r\n+RW\r\n+access\r\n+update\r\n"),
        (
            "COMMAND GETKEYSANDFLAGS bitfield a overflow wrap get u8 0",
            "*1\r\n*2\r\n$1\r\na\r\n~2\r\n+RO\r\n+access\r\n",
        ),
        ("COMMAND GETKEYS nosuch", "-ERR Invalid command specified\r\n"),
        ("COMMAND GETKEYS config", "-ERR The command has no key arguments\r\n"),
        ("COMMAND GETKEYS config nosuch", "-ERR Invalid command specified\r\n"),
        ("COMMAND GETKEYS spublish channel message", "-ERR The command has no key arguments\r\n"),
        ("COMMAND GETKEYSANDFLAGS ssubscribe a b", "-ERR The command has no key arguments\r\n"),
        ("COMMAND GETKEYS time", "-ERR The command has no key arguments\r\n"),
        ("COMMAND GETKEYS get a b", "-ERR Invalid number of arguments specified for command\r\n"),
        ("COMMAND LIST x", "-ERR syntax error\r\n"),
        ("COMMAND LIST FILTERBY MODULE x", "*0\r\n"),
        ("COMMAND LIST FILTERBY PATTERN swap*", "*1\r\n$6\r\nswapdb\r\n"),
    ]);
}

/// Each command of Valkey has a row, or an error that says why it is absent. COMMAND describes what works, so no name
/// is both.
#[test]
fn fields_of_info_are_rows_in_their_order() {
    use base::figures::{FAMILIES, TABLE};
    let mut server = Server::new();
    let text = server.run("INFO everything");
    let (mut section, mut last) = (String::new(), 0);
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("# ") {
            section = heading.to_lowercase();
        }
        let Some((field, _)) = line.split_once(':') else { continue };
        let is_of_family = FAMILIES.iter().any(|family| field.starts_with(family.beginning) && section != "disk");
        if is_of_family || field.ends_with("_human") || field.starts_with("listener") {
            continue;
        }
        let at = TABLE.iter().position(|row| row.field == field).unwrap_or_else(|| panic!("{field} has no row"));
        assert_eq!(TABLE[at].section, section, "{field}");
        assert!(at >= last, "{field} comes before {}", TABLE[last].field);
        last = at;
    }
    let written = [include_str!("../src/info/sections.rs"), include_str!("../src/info/encryption.rs")].concat();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let named: Vec<_> = written.split("&fields::").filter_map(|rest| rest.split(|c| !is_word(c)).next()).collect();
    for row in TABLE {
        assert!(named.contains(&row.field.to_uppercase().as_str()), "nothing writes {}", row.field);
    }
}

#[test]
fn every_command_of_valkey_has_a_row_or_a_reason() {
    let mut server = Server::new();
    let listed = server.run("COMMAND LIST");
    let has_row = |name: &str| listed.contains(&format!("\r\n{name}\r\n"));
    for name in include_str!("../testdata/commands-valkey-9.1.txt").lines() {
        let container = name.split('|').next().unwrap();
        let reason = command::absent::refusal(name.as_bytes()).or(command::absent::refusal(container.as_bytes()));
        assert!(has_row(name) != reason.is_some(), "{name}: a row is {}, a reason is {reason:?}", has_row(name));
    }
    for name in command::absent::names() {
        assert!(!has_row(name), "{name} has a row");
    }
}

#[test]
fn absent_commands_say_what_is_not_available() {
    let mut server = Server::new();
    let cluster = "-ERR This instance has cluster support disabled\r\n";
    let failover = "is not available in this version: a server has no replicas of its own yet\r\n";
    server.check(&[
        ("failover x", &format!("-ERR FAILOVER {failover}")),
        ("CLUSTER INFO", cluster),
        ("CLUSTER SLOTS", cluster),
        ("ASKING", cluster),
        ("CLUSTER NOSUCH", "-ERR unknown subcommand 'NOSUCH'. Try CLUSTER HELP.\r\n"),
        ("MODULE LOAD x", "-ERR MODULE LOAD is not available in this version: modules are not supported\r\n"),
        (
            "SYNC",
            "-ERR SYNC is not available in this version: a server has no replicas of its own yet; BGSAVE RDB writes a file that \
             Redis and Valkey load\r\n",
        ),
        ("REPLICAOF 127.0.0.1 6379", "-ERR a server without a data directory cannot be a replica\r\n"),
        ("nosuch x", "-ERR unknown command 'nosuch', with args beginning with: 'x' \r\n"),
        ("COMMAND INFO failover", "*1\r\n$-1\r\n"),
        ("COMMAND LIST FILTERBY PATTERN failover*", "*0\r\n"),
    ]);
}

#[test]
fn a_server_alone_answers_clients_that_ask_for_users_modules_and_slots() {
    let mut server = Server::new();
    server.check(&[
        ("ACL WHOAMI", "$7\r\ndefault\r\n"),
        ("ACL USERS", "*1\r\n$7\r\ndefault\r\n"),
        ("ACL CAT TRANSACTION", &server_transaction_commands()),
        ("ACL CAT hyperloglog", "*3\r\n$5\r\npfadd\r\n$7\r\npfcount\r\n$7\r\npfmerge\r\n"),
        ("ACL CAT nosuch", "-ERR Unknown category 'nosuch'\r\n"),
        ("ACL CAT a b", "-ERR unknown subcommand or wrong number of arguments for 'CAT'. Try ACL HELP.\r\n"),
        ("MODULE LIST", "*0\r\n"),
        ("CLUSTER KEYSLOT a", ":15495\r\n"),
        ("CLUSTER KEYSLOT {a}b", ":15495\r\n"),
        ("READONLY", "+OK\r\n"),
        ("READWRITE", "+OK\r\n"),
        ("REPLICAOF NO ONE", "+OK\r\n"),
        ("slaveof no one", "+OK\r\n"),
    ]);
    assert!(server.run("ACL CAT").starts_with("*21\r\n$8\r\nkeyspace\r\n"));
}

/// The commands of the category transaction, in the order of the table.
fn server_transaction_commands() -> String {
    let names = ["multi", "exec", "discard", "watch", "unwatch"];
    let names: String = names.iter().map(|name| format!("${}\r\n{name}\r\n", name.len())).collect();
    format!("*5\r\n{names}")
}

#[test]
fn slow_and_large_calls_are_kept() {
    let mut server = Server::new();
    server.session.info.rename(|names| names.name = "me".into());
    let entry = |id: u32, amount: u32, words: &str| {
        let mut text = format!("*6\r\n:{id}\r\n:1700000005\r\n:{amount}\r\n*{}\r\n", words.split(' ').count());
        words.split(' ').for_each(|word| text.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        text + "$15\r\n127.0.0.1:50000\r\n$2\r\nme\r\n"
    };
    let refused = "-ERR type should be one of the following: slow, large-request, large-reply\r\n";
    let negative = "-ERR count should be greater than or equal to -1\r\n";
    server.check(&[
        ("SLOWLOG LEN", ":0\r\n"),
        ("SLOWLOG RESET", "+OK\r\n"),
        ("CONFIG SET slowlog-log-slower-than 15000 slowlog-max-len 2", "+OK\r\n"),
        ("AUTH pw", "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\r\n"),
        ("SET k v", "+OK\r\n"),
        ("CONFIG SET slowlog-log-slower-than -1 commandlog-request-larger-than 22", "+OK\r\n"),
        ("COMMANDLOG LEN slow", ":2\r\n"),
        ("SET k 0123456789abcdef", "+OK\r\n"),
        ("CONFIG SET commandlog-request-larger-than -1", "+OK\r\n"),
        ("COMMANDLOG GET 1 x", refused),
        ("COMMANDLOG LEN x", refused),
        ("COMMANDLOG GET -2 x", negative),
        ("SLOWLOG GET a", negative),
    ]);
    let slow = server.run("SLOWLOG GET -1");
    assert!(slow.starts_with("*2\r\n") && slow.contains("$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"), "{slow}");
    assert!(slow.contains("$10\r\n(redacted)\r\n") && !slow.contains("pw"), "{slow}");
    let large = server.run("COMMANDLOG GET 10 large-request");
    assert!(large.contains(&entry(1, 22, "SET k 0123456789abcdef")), "{large}");
    server.check(&[("COMMANDLOG RESET large-request", "+OK\r\n"), ("COMMANDLOG LEN large-request", ":0\r\n")]);
}

#[test]
fn latency_is_monitored() {
    let mut server = Server::new();
    server.check(&[
        ("LATENCY LATEST", "*0\r\n"),
        ("LATENCY GRAPH command", "-ERR No samples available for event 'command'\r\n"),
        ("CONFIG SET latency-monitor-threshold 15", "+OK\r\n"),
        ("SET a 1", "+OK\r\n"),
        ("CONFIG SET latency-monitor-threshold 0", "+OK\r\n"),
        ("LATENCY HISTORY command", "*1\r\n*2\r\n:1700000005\r\n:15\r\n"),
        ("LATENCY HISTORY nosuch", "*0\r\n"),
        (
            "LATENCY HISTOGRAM set nosuch",
            "*2\r\n$3\r\nset\r\n*4\r\n$5\r\ncalls\r\n:1\r\n$14\r\nhistogram_usec\r\n*2\r\n:4\r\n:1\r\n",
        ),
        ("LATENCY RESET nosuch", ":0\r\n"),
    ]);
    assert!(server.run("LATENCY GRAPH COMMAND").contains("command - high 15 ms, low 15 ms (all time high 15 ms)"));
    assert!(server.run("LATENCY DOCTOR").contains("command: 1 samples, on average 15 ms"));
    server.check(&[("LATENCY RESET", ":1\r\n"), ("LATENCY LATEST", "*0\r\n")]);
}

/// Every call takes 15 ms here, so that each one is looked at; RESET and what is wrong are as documented.
#[test]
fn the_keys_of_most_calls_are_known() {
    let mut server = Server::new();
    for request in ["SET k value", "GET k", "GET j", "SELECT 3", "GET k"] {
        server.run(request);
    }
    server.check(&[
        ("HOTKEYS COUNT 1", "*1\r\n*4\r\n$1\r\nk\r\n:2\r\n:0\r\n:0\r\n"),
        ("HOTKEYS BY cpu COUNT 1", "*1\r\n*4\r\n$1\r\nk\r\n:30000\r\n:0\r\n:0\r\n"),
        ("HOTKEYS BY bytes COUNT 1", "*1\r\n*4\r\n$1\r\nk\r\n:32\r\n:0\r\n:0\r\n"),
        ("HOTKEYS BY size", "-ERR syntax error\r\n"),
        ("HOTKEYS BY", "-ERR syntax error\r\n"),
        ("HOTKEYS COUNT 0", "-ERR COUNT must be positive\r\n"),
        ("HOTKEYS COUNT x", "-ERR value is not an integer or out of range\r\n"),
        ("HOTKEYS nonsense", "-ERR syntax error\r\n"),
    ]);
    assert!(server.run("HOTKEYS COUNT 9 RESET").starts_with("*3\r\n"), "two keys of one database and one of another");
    server.check(&[("HOTKEYS", "*0\r\n")]);
}

/// The grammar of Redis 8.6, whose tools ask so.
#[test]
fn hot_keys_are_tracked_in_sessions() {
    let mut server = Server::new();
    let syntax = "-ERR syntax error\r\n";
    server.check(&[
        ("HOTKEYS GET", "$-1\r\n"),
        ("HOTKEYS STOP", "$-1\r\n"),
        ("HOTKEYS START", "-ERR METRICS parameter is required\r\n"),
        ("HOTKEYS START METRICS 3 CPU", "-ERR METRICS count must be 1 or 2\r\n"),
        ("HOTKEYS START METRICS 2 CPU", syntax),
        ("HOTKEYS START METRICS 2 CPU CPU", syntax),
        ("HOTKEYS START METRICS 1 CPU COUNT", syntax),
        ("HOTKEYS START METRICS 1 CPU COUNT 0", "-ERR COUNT must be between 1 and 1024\r\n"),
        ("HOTKEYS START METRICS 1 CPU SLOTS 1 0", "-ERR SLOTS parameter cannot be used in non-cluster mode\r\n"),
        ("SET before 1", "+OK\r\n"),
        ("HOTKEYS START METRICS 2 NET CPU COUNT 1 SAMPLE 7 DURATION 60", "+OK\r\n"),
        ("HOTKEYS START METRICS 1 CPU", "-ERR hotkeys tracking session already in progress\r\n"),
        ("SET k 1", "+OK\r\n"),
        ("GET k", "$1\r\n1\r\n"),
    ]);
    let active = server.run("HOTKEYS GET");
    let head = "*1\r\n*24\r\n$15\r\ntracking-active\r\n:1\r\n$12\r\nsample-ratio\r\n:7\r\n";
    assert!(active.starts_with(head), "{active}");
    assert!(active.contains("$14\r\nby-cpu-time-us\r\n*2\r\n$1\r\nk\r\n:30000\r\n"), "{active}");
    assert!(active.contains("$12\r\nby-net-bytes\r\n*2\r\n$1\r\nk\r\n:"), "{active}");
    server.clock.advance_ms(60_000);
    let ended = server.run("HOTKEYS GET");
    assert!(ended.contains("$15\r\ntracking-active\r\n:0\r\n"), "{ended}");
    assert!(ended.contains("$22\r\ncollection-duration-ms\r\n:60000\r\n"), "{ended}");
    server.check(&[("HOTKEYS STOP", "$-1\r\n"), ("GET k", "$1\r\n1\r\n")]);
    assert_eq!(server.run("HOTKEYS GET"), ended, "what comes after it is not in it");
    server.check(&[
        ("HOTKEYS START METRICS 1 CPU", "+OK\r\n"),
        ("HOTKEYS STOP", "+OK\r\n"),
        ("HOTKEYS RESET", "+OK\r\n"),
        ("HOTKEYS GET", "$-1\r\n"),
    ]);
}

#[test]
fn memory_of_keys_and_of_the_server() {
    let mut server = Server::new();
    server.run("SET k v");
    let syntax = "-ERR syntax error\r\n";
    server.check(&[
        ("MEMORY USAGE nosuch", "$-1\r\n"),
        ("MEMORY USAGE k SAMPLES", syntax),
        ("MEMORY USAGE k SAMPLES -1", syntax),
        ("MEMORY USAGE k x 1", syntax),
        ("MEMORY PURGE", "+OK\r\n"),
    ]);
    let small: u64 = server.run("MEMORY USAGE k SAMPLES 0").trim_start_matches(':').trim().parse().unwrap();
    server.run(&format!("SET k {}", "v".repeat(1000)));
    let big: u64 = server.run("MEMORY USAGE k").trim_start_matches(':').trim().parse().unwrap();
    assert!(small > 0 && big >= small + 900, "{small} {big}");
    let stats = server.run("MEMORY STATS");
    assert!(stats.contains("$10\r\nkeys.count\r\n:1\r\n"), "{stats}");
}

#[test]
fn debug_has_to_be_allowed() {
    let mut server = Server::new();
    assert!(server.run("DEBUG DIGEST").starts_with("-ERR DEBUG command not allowed."));
    let local = Settings { enable_debug_command: config::DebugCommand::Local, ..Settings::default() };
    let mut server = Server::with(local);
    let empty = format!("+{}\r\n", "0".repeat(40));
    server.check(&[
        ("DEBUG DIGEST", &empty),
        ("DEBUG SLEEP 0", "+OK\r\n"),
        ("DEBUG OBJECT nosuch", "-ERR no such key\r\n"),
        ("DEBUG nosuch", "-ERR unknown subcommand or wrong number of arguments for 'nosuch'. Try DEBUG HELP.\r\n"),
    ]);
    for request in ["SET a 1", "SET b 2", "SET c 3"] {
        server.run(request);
    }
    let one_way = server.run("DEBUG DIGEST");
    assert_ne!(one_way, empty);
    for request in ["FLUSHALL", "SET c 3", "SET a 1", "SET b 3"] {
        server.run(request);
    }
    assert_ne!(server.run("DEBUG DIGEST"), one_way);
    server.run("SET b 2");
    assert_eq!(server.run("DEBUG DIGEST"), one_way, "the order does not matter");
    let values = server.run("DEBUG DIGEST-VALUE a nosuch");
    assert!(values.starts_with("*2\r\n+") && values.ends_with(&empty), "{values}");
    assert!(server.run("DEBUG OBJECT a").contains(" refcount:1 encoding:int serializedlength:2 lru:"));
    assert!(!server.run("DEBUG OBJECT a FAST").contains("serializedlength"));
    let far = (-1i64 << 32).to_string();
    for (value, len) in [("127", 2), ("-129", 3), ("32768", 5), (far.as_str(), 12), ("0012", 5), (&"x".repeat(64), 66)]
    {
        server.run(&format!("SET a {value}"));
        let object = server.run("DEBUG OBJECT a");
        assert!(object.contains(&format!(" serializedlength:{len} ")), "{value}: {object}");
    }
}

/// Expired entries stay while expiration is off, invisible to reads, and are removed when it is on again.
#[test]
fn active_expiration_can_be_turned_off() {
    let mut server = Server::with(Settings { enable_debug_command: config::DebugCommand::Yes, ..Settings::default() });
    let upkeep = |server: &Server| {
        let mut scratch = store::Scratch::default();
        for shard in server.store.shard_ids() {
            while server.store.upkeep(shard, 0, &mut scratch) {}
        }
    };
    server.check(&[("DEBUG SET-ACTIVE-EXPIRE 0", "+OK\r\n"), ("SET a 1 PX 10", "+OK\r\n")]);
    server.clock.advance_ms(2000);
    upkeep(&server);
    server.check(&[("GET a", "$-1\r\n"), ("DBSIZE", ":1\r\n"), ("DEBUG SET-ACTIVE-EXPIRE 1", "+OK\r\n")]);
    upkeep(&server);
    server.check(&[("DBSIZE", ":0\r\n")]);
}

#[test]
fn what_would_save_is_refused_and_shutdown_ends() {
    let mut server = Server::new();
    let refused = "-ERR this server keeps its data in memory only and cannot save it to disk\r\n";
    let syntax = "-ERR syntax error\r\n";
    server.check(&[
        ("SAVE", refused),
        ("BGSAVE", refused),
        ("BGSAVE foo", syntax),
        ("BGREWRITEAOF", refused),
        ("SHUTDOWN SAVE", refused),
        ("SHUTDOWN foo", syntax),
        ("SHUTDOWN SAVE NOSAVE", syntax),
        ("SHUTDOWN ABORT NOW", syntax),
        ("SHUTDOWN ABORT", "-ERR No shutdown in progress.\r\n"),
        ("LASTSAVE", ":1700000000\r\n"),
        ("ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"),
        ("WAIT 0 0", ":0\r\n"),
        ("WAIT 0 -1", "-ERR timeout is negative\r\n"),
        ("WAIT 0 a", "-ERR timeout is not an integer or out of range\r\n"),
        ("WAITAOF 0 0 0", "*2\r\n:0\r\n:0\r\n"),
        ("WAITAOF 1 0 0", "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n"),
        ("WAITAOF 0 -1 0", "-ERR value is out of range, must be positive\r\n"),
        ("WAITAOF 2 0 0", "-ERR value is out of range, value must between 0 and 1\r\n"),
    ]);
    let request = server.host.part::<admin::Needed, ShutdownRequest>().clone();
    assert!(!request.is_under_way());
    server.check(&[("SHUTDOWN NOSAVE NOW FORCE", "")]);
    assert!(server.session.block.is_some(), "it waits for what becomes of the order");
    let flags = EndFlags { save: Some(false), now: true, force: true, ..EndFlags::default() };
    let (order, task) = request.next().expect("an order");
    assert!(order == EndOrder::Client(flags) && request.is_under_way());
    task.end(Err("the disk is full".to_owned()));
    let refused = server.session.block.take().expect("a wait");
    refused.what.answer(None, &mut server.reply);
    assert_eq!(server.reply.as_contiguous(), Some(&b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n"[..]));
}

#[test]
fn monitors_and_pictures() {
    let mut server = Server::new();
    server.check(&[("MONITOR", "+OK\r\n"), ("LOLWUT VERSION a", "-ERR value is not an integer or out of range\r\n")]);
    assert!(server.session.monitor);
    let syntax = "-ERR Syntax error. Use: LOLWUT [columns rows] [real imaginary]\r\n";
    let (integer, float) = ("-ERR value is not an integer or out of range\r\n", "-ERR value is not a valid float\r\n");
    server.check(&[
        ("LOLWUT 1", syntax),
        ("LOLWUT VERSION", syntax),
        ("LOLWUT VERSION 9 1 2 3", syntax),
        ("LOLWUT 10 a", integer),
        ("LOLWUT VERSION 5 1 1 a", integer),
        ("LOLWUT 1 2 x y", float),
    ]);
    for request in ["LOLWUT", "LOLWUT VERSION 5 1 1 1", "LOLWUT VERSION 8 a", "LOLWUT 10 10", "LOLWUT -1 9 0.5 1e3"] {
        let picture = server.run(request);
        assert!(picture.trim_end().ends_with(&format!("Onggi ver. {}", admin::about::VERSION)), "{picture}");
    }
}

/// Every HELP ends by naming itself, and every row has a sentence about it.
#[test]
fn helps_and_summaries_are_there() {
    let mut server = Server::new();
    for name in ["ACL", "COMMAND", "CONFIG", "SLOWLOG", "COMMANDLOG", "LATENCY", "MEMORY", "MODULE"] {
        let help = server.run(&format!("{name} HELP"));
        assert!(
            help.contains(&format!("+{name} <subcommand>")) && help.ends_with("+    Print this help.\r\n"),
            "{help}"
        );
    }
    for spec in admin::FAMILIES.iter().copied().flatten() {
        assert!(spec.docs.summary.ends_with('.'), "{}", spec.name);
    }
}
