//! What survives a restart. Nothing does yet, and what asks for it is refused.

use crate::directive::Directive;

const NO_AOF: &str = "there is no append-only file yet, and appendonly yes is refused";
const NO_RDB: &str = "no snapshot file is written yet, and save points are refused";

pub(super) static PERSISTENCE: &[Directive] = &[
    Directive::refused(
        "save",
        &[""],
        "",
        "data is kept in memory only so far, so no snapshot would be written; set save \"\" to accept that",
    ),
    Directive::refused(
        "appendonly",
        &["no"],
        "no",
        "data is kept in memory only so far, so acknowledged writes would be lost; set appendonly no to accept that",
    ),
    Directive::not_needed("appendfsync", NO_AOF),
    Directive::not_needed("appendfilename", NO_AOF),
    Directive::not_needed("appenddirname", NO_AOF),
    Directive::not_needed("no-appendfsync-on-rewrite", NO_AOF),
    Directive::not_needed("auto-aof-rewrite-percentage", NO_AOF),
    Directive::not_needed("auto-aof-rewrite-min-size", NO_AOF),
    Directive::not_needed("aof-load-truncated", NO_AOF),
    Directive::not_needed("aof-use-rdb-preamble", NO_AOF),
    Directive::not_needed("aof-timestamp-enabled", NO_AOF),
    Directive::not_needed("aof-rewrite-incremental-fsync", NO_AOF),
    Directive::not_needed("aof-disable-auto-gc", NO_AOF),
    Directive::not_needed("dbfilename", NO_RDB),
    Directive::not_needed("rdbcompression", NO_RDB),
    Directive::not_needed("rdbchecksum", NO_RDB),
    Directive::not_needed("rdb-del-sync-files", NO_RDB),
    Directive::not_needed("rdb-save-incremental-fsync", NO_RDB),
    Directive::not_needed("rdb-version-check", NO_RDB),
    Directive::not_needed("stop-writes-on-bgsave-error", NO_RDB),
    Directive::not_needed("sanitize-dump-payload", "no serialized values are read yet"),
];
