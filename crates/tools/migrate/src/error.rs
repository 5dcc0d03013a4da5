//! Why a file cannot be examined, imported or written.

use crate::contents::Untaken;
use base::Lsn;
use checkpoint::CheckpointError;
use cmdlog::RecoverError;
use codec::CodecError;
use durability::DurabilityError;
use inspect::ToolError;
use inspect::text::count;
use rdb::{RdbError, WriteError};
use replication::LinkError;
use std::path::PathBuf;
use vfs::FsError;

/// Every error of this crate. Damage, what cannot be taken, a directory in use and a failing disk stay apart.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// The rows of databases on disk cannot be read.
    #[error("{}: {error}; `onggi check` says what is whole", path.display())]
    Rows {
        /// The directory of rows.
        path: PathBuf,
        /// Why.
        error: Box<durability::DiskError>,
    },
    /// The checkpoint does not have the rows of databases on disk.
    #[error(
        "checkpoint {set} has no copy of the rows of databases on disk: `onggi export` reads a stopped server's directory"
    )]
    NoRows {
        /// Its number.
        set: checkpoint::SetId,
    },
    /// A memcached cannot be reached, or has ended the connection.
    #[error("memcached {cache}: {source}; give memcached://HOST:PORT of a server that runs")]
    CacheConnection {
        /// Its address.
        cache: String,
        /// Why.
        source: std::io::Error,
    },
    /// A memcached does not list or give its items.
    #[error(
        "memcached {cache} answers {received:?}, expected {expected}; its items can be read from version 1.6 on, unless \
         lru_crawler is disabled or busy"
    )]
    CacheReply {
        /// Its address.
        cache: String,
        /// What was expected.
        expected: &'static str,
        /// What came instead.
        received: String,
    },
    /// An SSDB cannot be reached, or has ended the connection.
    #[error("SSDB {ssdb}: {source}")]
    SsdbConnection {
        /// Its address.
        ssdb: String,
        /// Why.
        source: std::io::Error,
    },
    /// What answers is no SSDB, or says something that none says.
    #[error("SSDB {ssdb} answers {received:?}, expected {expected}")]
    SsdbReply {
        /// Its address.
        ssdb: String,
        /// What was expected.
        expected: &'static str,
        /// What came instead.
        received: String,
    },
    /// An SSDB answers an error.
    #[error("SSDB {ssdb} refuses {request}: {reply}; give its password as ssdb://:PASSWORD@HOST:PORT if it has one")]
    SsdbRefused {
        /// Its address.
        ssdb: String,
        /// The request.
        request: String,
        /// Its reply.
        reply: String,
    },
    /// An SSDB does not say what changes.
    #[error(
        "SSDB {ssdb} has data and an empty binlog, so its changes cannot be followed: set replication.binlog to yes there \
         and restart it, or, if it is yes, change one key; then start this command again"
    )]
    SsdbBinlog {
        /// Its address.
        ssdb: String,
    },
    /// The end was asked for too early.
    #[error("stopped {when}; {target} has a part of the data, and the same command continues")]
    SsdbStopped {
        /// The database.
        target: String,
        /// When.
        when: &'static str,
    },
    /// The end was asked for while an SSDB was examined.
    #[error("stopped before all rows were read; nothing was written")]
    SsdbUnread,
    /// Something of an SSDB cannot be taken.
    #[error(
        "{target}: {failure}; to leave such things out, start again with --partial. a database has one type of each \
         name, and --ssdb-namespaces separate uses four databases"
    )]
    SsdbUntaken {
        /// The database.
        target: String,
        /// The request, and why.
        failure: String,
    },
    /// The server that receives a copy cannot be reached, or has ended the connection.
    #[error("{target}: {source}")]
    TargetConnection {
        /// Its address.
        target: String,
        /// Why.
        source: std::io::Error,
    },
    /// The server that receives a copy answers an error.
    #[error("{target} refuses {request}: {reply}")]
    TargetRefused {
        /// Its address.
        target: String,
        /// The request.
        request: String,
        /// Its error.
        reply: String,
    },
    /// The database that is to receive a copy is in use.
    #[error("{target} has {found}; name a database that is empty")]
    TargetHasData {
        /// The database.
        target: String,
        /// What is in it.
        found: String,
    },
    /// The operating system refused.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The tier that has values of the directory.
    #[error(transparent)]
    Tier(#[from] tier::TierError),
    /// The directory or its files.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A dictionary that compressed values need is missing or damaged.
    #[error(
        "a dictionary that compressed values need cannot be used: {0}; put the file back from a backup of the directory"
    )]
    Dictionary(#[from] CodecError),
    /// `dbfilename` is no name for an RDB file.
    #[error(
        "dbfilename {}: give the name of a file in the data directory, such as dump.rdb, and not a path or the name of a file that \
         the server keeps there",
        name.display()
    )]
    RdbName {
        /// As it was given.
        name: PathBuf,
    },
    /// A file that BGSAVE RDB would replace is not one of its own.
    #[error(
        "{} was not written by Onggi ({what}) and is not replaced: move it away, or set another dbfilename",
        path.display()
    )]
    ForeignRdb {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: String,
    },
    /// The file is not what a server wrote, of a version that is not known, or cannot be read.
    #[error("{}: {}; {}", path.display(), with_cause(error), lost(error, *keys))]
    File {
        /// The file.
        path: PathBuf,
        /// Keys before that place.
        keys: u64,
        /// What is wrong, with the offset.
        error: RdbError,
    },
    /// A key stands in the file twice, which no server writes and none loads.
    #[error("{}: the key at offset {second} is that at offset {first} again; which of the two counts cannot be told", path.display())]
    Duplicate {
        /// The file.
        path: PathBuf,
        /// Where it stands first.
        first: u64,
        /// Where it stands again.
        second: u64,
    },
    /// A database beyond those that a server can have.
    #[error("{}: offset {offset}: a key of database {db}; a server has at most {databases} databases", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// Where the key stands.
        offset: u64,
        /// Its database.
        db: u32,
        /// How many there can be.
        databases: u32,
    },
    /// Bytes follow where the data ends: commands, in an append-only file.
    #[error("{}: {bytes} bytes follow the end of the data at offset {offset}, and nothing in the file says that commands of an append-only log follow", path.display())]
    GoesOn {
        /// The file.
        path: PathBuf,
        /// Where the data ends.
        offset: u64,
        /// How many bytes follow.
        bytes: u64,
    },
    /// Bytes that no server writes into an append-only file.
    #[error("{}: offset {offset}: expected {expected}; everything after that place is lost", path.display())]
    AppendOnly {
        /// The file.
        path: PathBuf,
        /// Where they begin.
        offset: u64,
        /// What should have been there.
        expected: &'static str,
    },
    /// A file of a log ends within a command, and others follow it.
    #[error("{}: ends within a command, or a transaction, that begins at offset {offset}; only the last file of a log may", path.display())]
    AppendOnlyCut {
        /// The file.
        path: PathBuf,
        /// Where the command begins.
        offset: u64,
    },
    /// The manifest of an append-only log is not what a server wrote.
    #[error("{}: line {line}: expected {expected}", path.display())]
    AppendOnlyManifest {
        /// The manifest.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What should have been there.
        expected: &'static str,
    },
    /// A directory is no append-only log, or holds several.
    #[error("{}: has {count} files whose names end with .manifest, expected one; name a manifest or a file", path.display())]
    AppendOnlyDirectory {
        /// The directory.
        path: PathBuf,
        /// How many manifests it has.
        count: usize,
    },
    /// The file has something that cannot be taken.
    #[error("{}: {untaken}; Onggi cannot import this, pass --partial to skip it", path.display())]
    Untaken {
        /// The file.
        path: PathBuf,
        /// What it is.
        untaken: Box<Untaken>,
    },
    /// The directory has files already.
    #[error("{}: has files already, {found} among them; name a directory that is empty or missing", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of the files.
        found: String,
    },
    /// The directory cannot be looked at.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The command log is damaged.
    #[error(transparent)]
    Log(#[from] RecoverError),
    /// The checkpoint leads on to a log that is not there.
    #[error("{}: the command log is needed from LSN {from} on, and is not there; `onggi check` says what is", path.display())]
    LogMissing {
        /// The data directory.
        path: PathBuf,
        /// From where.
        from: Lsn,
    },
    /// The directory holds nothing to export.
    #[error("{}: holds no data", path.display())]
    NoData {
        /// The data directory.
        path: PathBuf,
    },
    /// A checkpoint whose entries are not all in the RDB file made of it, which is therefore not kept.
    #[error(
        "{found} entries of the checkpoint's {expected} came out of it: this is a bug, please report it; onggi export reads it another way"
    )]
    Incomplete {
        /// Written, or expired.
        found: u64,
        /// In its files.
        expected: u64,
    },
    /// The file to be made is there.
    #[error("{}: is there already; name another file, or remove it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A hash has fields that expire, which only Valkey 9 reads.
    #[error(
        "fields of the hash \"{key}\" in database {db} expire, which versions 10 and 11 of the format cannot say; --for valkey-9 makes a file that Valkey 9.0 and above load"
    )]
    NeedsNewer {
        /// Its database.
        db: u32,
        /// It, as printable text.
        key: String,
    },
    /// The file cannot be written.
    #[error("{}: {}", path.display(), write_cause(error))]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: WriteError,
    },
    /// A primary, or the connection to it.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The primary's stream has something that is no command.
    #[error("{primary}: offset {offset} of the stream: expected {expected}")]
    Stream {
        /// Which primary.
        primary: String,
        /// Where the command should begin.
        offset: u64,
        /// What should have come.
        expected: &'static str,
    },
    /// A command of the primary cannot be run here.
    #[error(
        "{primary}: offset {offset} of the stream: {command}: {why}; the directory has everything before it. To leave such \
         commands out, start again with --partial"
    )]
    Command {
        /// Which primary.
        primary: String,
        /// Where it begins.
        offset: u64,
        /// Its name.
        command: String,
        /// Why.
        why: String,
    },
    /// The data directory of a copy cannot be opened or written.
    #[error(transparent)]
    Durability(#[from] DurabilityError),
    /// The log or a checkpoint of the copy failed.
    #[error("{}: {why}", path.display())]
    NotKept {
        /// The data directory.
        path: PathBuf,
        /// Why, in a sentence.
        why: String,
    },
    /// The file has other contents than a moment ago.
    #[error("{}: changed while it was read; import a file that no program writes to", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

/// The error, and what the operating system says about it.
fn with_cause(error: &RdbError) -> String {
    match error {
        RdbError::Io { source, .. } => format!("{error}: {source}"),
        _ => error.to_string(),
    }
}

/// As [`with_cause`], of writing.
fn write_cause(error: &WriteError) -> String {
    match error {
        WriteError::Io(source) => format!("{error}: {source}"),
        _ => error.to_string(),
    }
}

/// What is lost by it, in a few words.
fn lost(error: &RdbError, keys: u64) -> String {
    let keys = count(keys, "key", "keys");
    match error {
        RdbError::Checksum { .. } => format!("which of its {keys} are wrong cannot be told"),
        RdbError::Damaged { .. } | RdbError::Truncated { .. } => {
            format!("{keys} before that can be read, everything after it is lost")
        }
        _ => format!("{keys} before that can be read"),
    }
}
