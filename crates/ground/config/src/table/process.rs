//! Files, threads, what else could run inside, and the process seen from outside.

use crate::directive::Directive;
use crate::field::Field;
use crate::field::{choice, flag, integer};
use crate::inert::Inert;
use std::path::Path;

const INT_MAX: i64 = i32::MAX as i64;

pub(super) static FILES: &[Directive] = &[
    Directive::include(),
    Directive::supported(
        "dir",
        Field::Path { get: |s| -> &Path { &s.dir }, set: |s, path| s.dir = path },
        ".",
        "",
        "The data directory. A relative path begins where the server was started. The start creates its last component; the others \
         must exist.",
    )
    .protected(),
    Directive::supported(
        "dir-must-hold-data",
        flag!(dir_must_hold_data),
        "no",
        "",
        "Whether the start refuses a data directory that is missing or holds no data. Set it to yes once the directory holds data: \
         a disk that is not mounted then stops the start, and is not an empty database.",
    )
    .at_start(),
    Directive::supported(
        "ignore-foreign-files",
        flag!(ignore_foreign_files),
        "no",
        "",
        "Whether the server starts, with an empty database, in a directory that holds the files of another server (dump.rdb, \
         appendonlydir and others) and no data of this one. Otherwise it refuses it; onggi import reads such files.",
    )
    .at_start(),
];

const NO_CLOCK_TICK: &str = "timers fire when they are due; there is no periodic tick whose rate could be chosen";
const WORKERS: &str = "workers sets the number of threads that serve clients";

pub(super) static THREADS: &[Directive] = &[
    Directive::supported(
        "workers",
        integer!(workers: 0, 1024),
        "0",
        "threads",
        "How many threads serve clients; each can run any command. 0 stands for one for each core the process may use.",
    )
    .at_start(),
    Directive::supported(
        "shards",
        integer!(shards: 0, 256, power of two),
        "0",
        "shards",
        "How many slices the keyspace has, each with its own table and lock. Several for each worker keep workers from \
         waiting for each other; many take memory that a small store does not fill. 0 stands for eight for each worker, and \
         sixteen at least.",
    )
    .at_start(),
    Directive::supported(
        "databases",
        integer!(databases: 1, 65536),
        "16",
        "databases",
        "How many databases SELECT can choose from, numbered from 0.",
    )
    .at_start(),
    Directive::supported(
        "database",
        Field::Databases { get: |s| &s.per_database, set: |s, databases| s.per_database = databases },
        "",
        "",
        "Where a database keeps its entries: `0 engine disk` for database 0. `memory` is for databases that fit into memory. A \
         database with `disk` has its entries in files, and memory is their cache: it may be larger than memory, and no key \
         of it is ever evicted. It needs `appendonly yes`. The engine of a database is fixed once it has been written to. \
         `0 ordered yes` has a database on disk keep its names in the order of their bytes, so that a walk over a range of \
         them takes as long as the range; each changed key takes memory twice for it. \
         `0 maxmemory-policy allkeys-lru` gives a database another policy than that of `maxmemory-policy`, and `default` takes \
         it away. `maxmemory` is one budget for all databases, and those whose policy evicts keys make room for the others. \
         Each line changes the databases that it names; CONFIG GET lists those on disk, those that are ordered, and those with a policy.",
    ),
    Directive::not_needed("hz", Inert::integer("10", 0, INT_MAX), NO_CLOCK_TICK),
    Directive::not_needed("dynamic-hz", Inert::flag("yes"), NO_CLOCK_TICK),
    Directive::not_needed("io-threads", Inert::integer("1", 1, 256), WORKERS),
    Directive::not_needed("io-threads-do-reads", Inert::flag("no"), WORKERS),
    Directive::not_needed("events-per-io-thread", Inert::integer("2", 0, INT_MAX), WORKERS),
    Directive::not_needed("prefetch-batch-max-size", Inert::integer("16", 0, 128), "the size of a batch follows from what has been measured"),
    Directive::not_needed("hash-seed", Inert::text(""), "each start draws a new seed, which keeps clients from choosing colliding keys"),
];

const EFFECTS: &str = "scripts are logged by their effects, always";

pub(super) static EXTENSIONS: &[Directive] = &[
    Directive::always_refused("loadmodule", "modules are not loaded, so their commands and types would be missing"),
    Directive::supported(
        "busy-reply-threshold",
        integer!(busy_reply_threshold_ms: 0, i64::MAX),
        "5000",
        "milliseconds",
        "Once a script or function has run for this long, other clients get -BUSY, and SCRIPT KILL or FUNCTION KILL ends it if it \
         has changed nothing. With one worker, the server ends it at that time.",
    )
    .alias(&["lua-time-limit"]),
    Directive::not_needed("lua-replicate-commands", Inert::flag("yes"), EFFECTS),
];

const CPU_LISTS: &str = "processors are chosen from outside: taskset, or CPUAffinity= in the systemd unit";
const OOM_SCORE: &str = "it is chosen from outside: choom, or OOMScoreAdjust= in the systemd unit";
const TITLE: &str = "the process keeps the title it was started with";

pub(super) static PROCESS: &[Directive] = &[
    Directive::not_needed(
        "daemonize", Inert::flag("no"), "the server stays in the foreground, where systemd, a container or a shell's & keeps it",
    ),
    Directive::not_needed("pidfile", Inert::text(""), "whatever runs the server in the foreground knows its process id"),
    Directive::supported(
        "supervised",
        choice!(supervised: Supervision),
        "no",
        "",
        "What is notified when the server has loaded its data and serves clients, while it loads, and when it ends. systemd is \
         notified over NOTIFY_SOCKET (Type=notify in the unit); auto does so if that is set.",
    )
    .at_start(),
    Directive::supported(
        "shutdown-on-sigterm",
        Field::Ending { get: |s| s.shutdown_on_sigterm, set: |s, flags| s.shutdown_on_sigterm = flags },
        "default",
        "",
        "How SIGTERM ends the server: with the words of SHUTDOWN, or by default. By default a checkpoint is taken if there are \
         save points and something was changed. If it fails, the server keeps serving; with force it still ends, with \
         exit code 1.",
    ),
    Directive::supported(
        "shutdown-on-sigint",
        Field::Ending { get: |s| s.shutdown_on_sigint, set: |s, flags| s.shutdown_on_sigint = flags },
        "default",
        "",
        "The same for SIGINT. A second SIGINT while the server is ending ends the process at once, without a save.",
    ),
    Directive::not_needed("shutdown-timeout", Inert::integer("10", 0, INT_MAX), "a shutdown has no replicas to wait for"),
    Directive::not_needed("set-proc-title", Inert::flag("yes"), TITLE),
    Directive::not_needed("proc-title-template", Inert::text("{title} {listen-addr} {server-mode}"), TITLE),
    Directive::not_needed("locale-collate", Inert::text(""), "strings are ordered by their bytes"),
    Directive::not_needed("extended-redis-compatibility", Inert::flag("no"), "Redis clients are answered as Redis 7.2 would, always"),
    Directive::not_needed("ignore-warnings", Inert::text(""), "the start checks for none of these faults of the kernel"),
    Directive::not_needed("disable-thp", Inert::flag("yes"), "the server never forks, so huge pages cost it no copies"),
    Directive::not_needed("oom-score-adj", Inert::choice("no", &["no", "yes", "relative", "absolute"]), OOM_SCORE),
    Directive::not_needed("oom-score-adj-values", Inert::scores("0 200 800"), OOM_SCORE),
    Directive::not_needed("server-cpulist", Inert::text(""), CPU_LISTS).alias(&["server_cpulist"]),
    Directive::not_needed("bio-cpulist", Inert::text(""), CPU_LISTS).alias(&["bio_cpulist"]),
    Directive::not_needed("aof-rewrite-cpulist", Inert::text(""), CPU_LISTS).alias(&["aof_rewrite_cpulist"]),
    Directive::not_needed("bgsave-cpulist", Inert::text(""), CPU_LISTS).alias(&["bgsave_cpulist"]),
];
