//! What survives a restart: the command log and the checkpoints.

use crate::directive::Directive;
use crate::field::{Field, choice, flag, integer, size};
use crate::inert::Inert;
use std::path::Path;

const FIXED_NAMES: &str = "files of the data directory have fixed names";
const NO_REWRITE: &str = "the log is never rewritten: a checkpoint takes the place of its older segments, and is written and \
                          synced in bounded pieces, separately from the log";
const ALWAYS_CHECKED: &str = "every block and record has a checksum that is always verified";

pub(super) static PERSISTENCE: &[Directive] = &[
    Directive::supported(
        "appendonly",
        flag!(appendonly),
        "yes",
        "",
        "Whether every change is written to the command log. Switched on while the server runs, it counts as on when a \
         checkpoint of all data is durable. Without it, what was changed since the last checkpoint is lost at a stop.",
    ),
    Directive::supported(
        "appendfsync",
        choice!(appendfsync: AppendFsync),
        "everysec",
        "",
        "When the log is synced. `always`: a reply is sent when what it shows is durable. `everysec`: in the background; a \
         power cut loses at most the writes of `log-window`, twice as long if the disk is slow, and then writes wait. \
         `no`: written within the window, synced by the operating system. CONFIG SET answers OK when the new mode is in \
         force, and an error inside a transaction that uses keys.",
    ),
    Directive::supported(
        "log-window",
        integer!(log_window_ms: 10, 3_600_000),
        "1000",
        "milliseconds",
        "The window of `appendfsync everysec`.",
    ),
    Directive::supported(
        "log-segment-size",
        size!(log_segment_bytes: 1 << 20, 1 << 40),
        "64mb",
        "bytes",
        "Size of one file of the log. Space is reserved for a file as a whole.",
    )
    .at_start(),
    Directive::supported(
        "log-buffer-size",
        size!(log_buffer_bytes: 1 << 20, 1 << 30),
        "16mb",
        "bytes",
        "Memory for records that are not known to be durable, all workers together. When it is used up, writes wait. It is a \
         sixteenth of `maxmemory` at most, as that was when the log was begun.",
    )
    .at_start(),
    Directive::supported(
        "log-on-error",
        choice!(log_on_error: LogErrorAction),
        "rotate",
        "",
        "After a failed write or sync of the log, writes are refused with MISCONF. `rotate`: a new file is begun with \
         everything that is not known to be durable, again and again until that works; then writes are accepted. `stop`: the \
         process ends.",
    )
    .at_start(),
    Directive::supported(
        "flush-error-wait",
        integer!(flush_error_wait_ms: 0, 3_600_000),
        "2000",
        "milliseconds",
        "Changes of a database on disk that cannot be flushed to its rows fill their share of memory. Then writes to the \
         database wait. After this time they are answered MISCONF, until a flush succeeds. Other databases continue.",
    ),
    Directive::supported(
        "save",
        Field::SavePoints { get: |s| &s.save, set: |s, value| s.save = value },
        "3600 1 300 100 60 10000",
        "",
        "A checkpoint is taken when more than this many seconds have passed since the last one, with at least this many \
         changes. `save \"\"` takes none by time.",
    ),
    Directive::supported(
        "auto-aof-rewrite-percentage",
        integer!(auto_aof_rewrite_percentage: 0, i32::MAX as i64),
        "100",
        "percent",
        "A checkpoint is taken when the log since the last one has grown to this share of its size. 0 takes none by size.",
    ),
    Directive::supported(
        "auto-aof-rewrite-min-size",
        size!(auto_aof_rewrite_bytes_min: 0, i64::MAX as u64),
        "64mb",
        "bytes",
        "A log shorter than this is left to grow.",
    ),
    Directive::supported(
        "stop-writes-on-bgsave-error",
        flag!(stop_writes_on_bgsave_error),
        "yes",
        "",
        "Whether writes are refused after a checkpoint by `save` has failed, until one succeeds.",
    ),
    Directive::supported(
        "checkpoint-threads",
        integer!(checkpoint_threads: 1, 16),
        "2",
        "",
        "Threads that write a checkpoint, each a file of its own. Loading uses every core.",
    ),
    Directive::supported(
        "checkpoint-retain-sets",
        integer!(checkpoint_retain_sets: 1, 1000),
        "2",
        "",
        "At least this many checkpoints are kept, with the log from the oldest of them on: every moment since then can be \
         restored. With two, a damaged one loses nothing.",
    ),
    Directive::supported(
        "checkpoint-retain-time",
        integer!(checkpoint_retain_seconds: 0, i64::MAX),
        "86400",
        "seconds",
        "Every moment of this time can be restored: the checkpoint that leads there is kept, with the log after it. In \
         between at most 24 further checkpoints are kept, which make restores faster. The checkpoint before a FLUSHALL or \
         FLUSHDB is kept for a day, even where this is shorter.",
    ),
    Directive::supported(
        "checkpoint-retain-size",
        size!(checkpoint_retain_bytes: 0, i64::MAX as u64),
        "0",
        "bytes",
        "Checkpoints and log together may take no more than this. 0 is six times the largest checkpoint, at least \
         1 GB, and at most half of the disk space that is free or theirs. When they reach it, checkpoints in between go first, then the oldest one with its log: restores reach less \
         far back. Never removed: the last checkpoint and the log after it. Enforced after each checkpoint and each new \
         file of the log, but not by the checkpoint at a stop.",
    ),
    Directive::supported(
        "dbfilename",
        Field::Path { get: |s| -> &Path { &s.rdb_file }, set: |s, path| s.rdb_file = path },
        "dump.rdb",
        "",
        "The file in the data directory that BGSAVE RDB makes, for other servers; this one never reads it. Not the name of \
         a file of its own (prdb-*, log-*, dict-*, MANIFEST, LOCK).",
    )
    .protected(),
    Directive::not_needed("appendfilename", Inert::text("appendonly.aof"), FIXED_NAMES),
    Directive::not_needed("appenddirname", Inert::text("appendonlydir"), FIXED_NAMES),
    Directive::not_needed("no-appendfsync-on-rewrite", Inert::flag("no"), NO_REWRITE),
    Directive::not_needed("aof-load-truncated", Inert::flag("yes"), "a torn end of the log is always cut, with a message"),
    Directive::not_needed("aof-use-rdb-preamble", Inert::flag("yes"), NO_REWRITE),
    Directive::not_needed("aof-timestamp-enabled", Inert::flag("no"), "the log always holds times"),
    Directive::not_needed("aof-rewrite-incremental-fsync", Inert::flag("yes"), NO_REWRITE),
    Directive::not_needed("aof-disable-auto-gc", Inert::flag("no"), "checkpoint-retain-sets, -time and -size say what is kept"),
    Directive::not_needed("rdbcompression", Inert::flag("yes"), "compression says which values are compressed, and files carry them as they are"),
    Directive::not_needed("rdbchecksum", Inert::flag("yes"), ALWAYS_CHECKED),
    Directive::not_needed("rdb-version-check", Inert::choice("strict", &["strict", "relaxed"]), ALWAYS_CHECKED),
    Directive::not_needed("rdb-del-sync-files", Inert::flag("no"), "there are no replicas yet"),
    Directive::not_needed("rdb-save-incremental-fsync", Inert::flag("yes"), NO_REWRITE),
    Directive::not_needed("sanitize-dump-payload", Inert::choice("no", &["no", "yes", "clients"]), "RESTORE always checks the whole payload"),
];
