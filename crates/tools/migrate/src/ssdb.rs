//! The data of a running SSDB, into a running server: once, or followed until the applications move.
//!
//! ```text
//! SSDB --dump: binlog's end, and then rows of one moment--> requests --MULTI: and the place--> server
//!   '----sync140: entries from that place on------------------^
//! ```
//!
//! S1. The requests of some rows or entries, and the place after them, are one transaction of the receiving server. So
//!     a copy continues exactly where it is, whichever of the three programs is killed.
//! S2. `dump` reads LevelDB's rows as of one moment, the newest entries of the binlog first. So the entries that the
//!     rows have are known exactly.
//! S3. After a lost connection the rows that are missing are of a later moment, and which entries they have is known
//!     but for those of a short time. Keys, hashes and zsets do not mind an entry that is applied again. A queue does:
//!     one that an unsure entry changes is read again ([`place::Fate::Unknown`]).
//! S4. A request never replaces what has another type: SSDB may have a key and a hash of one name, and in one database
//!     the second of them is refused by the server.
//!
//! SSDB's own copy (`sync140 0`) does not serve: during it, SSDB sends the pops of queues by the order of names and the
//! rows by another, so that its replicas lose items or have some twice.
//!
//! Source: <https://github.com/ideawu/ssdb>, and what SSDB 1.9.9 answers.

mod address;
mod examine;
mod place;
mod row;
mod session;
mod target;
mod wire;

pub use address::{Ssdb, SsdbAddressError, Target};
pub use examine::{SsdbFound, examine_ssdb};

use crate::MigrateError;
use session::{Ended, Session};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tls::ClientConfig;

/// Time before a lost connection is opened again.
const RETRY: Duration = Duration::from_secs(1);

/// Time between two looks at whether the end is asked for.
const LOOK: Duration = Duration::from_millis(50);

/// What is copied, and where to.
#[derive(Clone, Debug)]
pub struct SsdbCopy<'a> {
    /// The source.
    pub ssdb: &'a Ssdb,
    /// The server that receives it.
    pub target: &'a Target,
    /// How the connection to that server uses TLS; `None` for a plain one.
    pub tls: Option<Arc<ClientConfig>>,
    /// Applies changes, too, until the end is asked for.
    pub is_followed: bool,
    /// What the server refuses is left out.
    pub is_partial: bool,
    /// Hashes, zsets and queues go into the three databases after that of keys.
    pub is_separate: bool,
}

/// What was read of an SSDB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SsdbRows {
    /// Keys.
    pub keys: u64,
    /// Fields of hashes.
    pub fields: u64,
    /// Members of zsets.
    pub members: u64,
    /// Items of queues.
    pub items: u64,
    /// Keys that expire.
    pub expiring: u64,
    /// Bytes of names and values.
    pub bytes: u64,
}

impl SsdbRows {
    /// All of them, times of keys left out.
    pub fn all(&self) -> u64 {
        self.keys + self.fields + self.members + self.items
    }
}

/// How far the changes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SsdbProgress {
    /// The last entry of the binlog that is applied.
    pub sequence: u64,
    /// Entries that are not, as far as is known.
    pub behind: u64,
    /// Queues that are to be read again.
    pub queues: u64,
}

/// What happens during a copy.
#[derive(Debug)]
pub enum SsdbEvent<'a> {
    /// The copy begins, or continues after a row.
    Copying {
        /// Whether it continues.
        is_continued: bool,
    },
    /// Rows that were read since the command began.
    Read(&'a SsdbRows),
    /// All rows were read; changes follow from this entry on.
    Following(u64),
    /// Called a few times a second.
    Applied(SsdbProgress),
    /// A connection is lost and will be opened again.
    Lost(&'a MigrateError),
    /// Something that a person wants to know.
    Said(&'a str),
    /// A request was left out.
    LeftOut {
        /// Its word and key.
        request: &'a str,
        /// Why.
        why: &'a str,
    },
}

/// A copy that was ended in order.
#[derive(Clone, Copy, Debug)]
pub struct SsdbCopied {
    /// Rows read by this command.
    pub rows: SsdbRows,
    /// Keys in the database.
    pub keys: u64,
    /// The last entry of the binlog that is applied.
    pub sequence: u64,
    /// Requests left out.
    pub left_out: u64,
}

/// Copies an SSDB; with [`SsdbCopy::is_followed`], applies its changes until `stop` is set. Called again after a crash,
/// it continues where the database is.
///
/// # Errors
/// Every [`MigrateError`] with SSDB or a target in its name. Another call can continue, except where the error says
/// otherwise.
pub fn copy_ssdb(
    copy: &SsdbCopy<'_>,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&SsdbEvent<'_>),
) -> Result<SsdbCopied, MigrateError> {
    let mut rows = SsdbRows::default();
    let mut has_begun = false;
    loop {
        let ended = Session::open(copy, stop, &mut rows, tell).and_then(|mut session| {
            has_begun = true;
            session.run()
        });
        match ended {
            Ok(Ended::Done(copied)) => return Ok(copied),
            Ok(Ended::Again) => {}
            Err(error) => {
                let may_pass =
                    matches!(error, MigrateError::SsdbConnection { .. } | MigrateError::TargetConnection { .. });
                // Before anything was read, a wrong address is more likely than a lost connection.
                if !may_pass || !has_begun || stop.load(Ordering::Relaxed) {
                    return Err(error);
                }
                tell(&SsdbEvent::Lost(&error));
                let until = Instant::now() + RETRY;
                while Instant::now() < until && !stop.load(Ordering::Relaxed) {
                    thread::sleep(LOOK);
                }
            }
        }
    }
}
