//! Runs commands of a log or of a primary over a store, without clients.

use base::{DbIndex, UnixMs};
use command::call::call_at_once;
use command::stats::WorkerStats;
use command::{Args, CommandTable, Ctx, Flags, Host, Row, Session, Stop};
use engine::Keyspace;
use proto::{Protocol, ReplyBuffer};
use std::sync::Arc;
use store::Txn;

/// Before every time of expiration that a server writes.
pub const BEGINNING: UnixMs = 0;

/// Commands that name a time from now on, and no server has written since 2012; and commands of streams, which store
/// when an entry was delivered and a consumer seen, and take no time of delivery that is still to come.
const TIMED: [&str; 9] =
    ["expire", "pexpire", "setex", "psetex", "hexpire", "hpexpire", "xclaim", "xautoclaim", "createconsumer"];

/// Commands that may name a time from now on, with one of these words, and where their options begin.
const MAYBE_RELATIVE: [(&str, usize); 4] = [("set", 3), ("getex", 2), ("hsetex", 2), ("hgetex", 2)];
const RELATIVE_WORDS: [&str; 2] = ["EX", "PX"];

/// Runs commands, one after the other, in the database that they have selected.
pub struct Runner {
    table: Arc<CommandTable>,
    stats: WorkerStats,
    session: Session,
    reply: ReplyBuffer,
    publishes: bool,
}

impl Runner {
    /// Runs the commands of this table.
    pub fn new(table: Arc<CommandTable>) -> Self {
        let stats = WorkerStats::new(table.rows().len());
        let session = Session::new(1, true, BEGINNING);
        Self { table, stats, session, reply: ReplyBuffer::new(Protocol::Resp2), publishes: false }
    }

    /// Messages are published as well: to the subscribers of this server.
    #[must_use]
    pub fn publishing(mut self) -> Self {
        self.publishes = true;
        self
    }

    /// The selected database.
    pub fn db(&self) -> DbIndex {
        self.session.db
    }

    /// Selects a database.
    pub fn select(&mut self, db: DbIndex) {
        self.session.db = db;
    }

    /// The row of a command that is to be run; `None` for one that changes nothing.
    ///
    /// # Errors
    /// Why it cannot be run.
    pub fn row(&self, args: &Args<'_>) -> Result<Option<Row>, String> {
        let row = match self.table.resolve(args) {
            Ok(row) => row,
            Err(_) if self.table.find(args.bytes(0).unwrap_or_default()).is_none() => {
                return Err("it is not known here".to_owned());
            }
            Err(stop) => return Err(text_of(&stop)),
        };
        if row.spec.flags.contains(Flags::BLOCKING) {
            return Err("it waits, and servers write what it came to".to_owned());
        }
        // Transactions have come to their end, or are not run; what changes nothing has nothing to add.
        let is_message = self.publishes && ["publish", "spublish"].contains(&row.spec.name);
        let is_run = row.spec.flags.contains(Flags::WRITE) || row.spec.name == "select" || is_message;
        Ok(is_run.then_some(row))
    }

    /// Runs a command. `host` has the parts of the server that its function asks for. Values that are not in memory are
    /// read under the locks.
    ///
    /// # Errors
    /// The error that the command answers.
    pub fn run(&mut self, host: &Host, txn: &mut Txn<'_>, row: &Row, args: Args<'_>) -> Result<(), String> {
        if txn.may_fetch() {
            txn.next_command();
        }
        let Self { stats, session, reply, .. } = self;
        let mut ctx = Ctx { spec: row.spec, args, reply, ks: txn, session, host, stats, hashed: None };
        call_at_once(&mut ctx, row);
        let refusal = self.reply.io_slices().next().and_then(|slice| slice.strip_prefix(b"-").map(<[u8]>::to_vec));
        let len = self.reply.len();
        self.reply.advance(len);
        refusal.map_or(Ok(()), |text| Err(String::from_utf8_lossy(&text).trim_end().to_owned()))
    }
}

fn text_of(stop: &Stop) -> String {
    match stop {
        Stop::Error(text) => String::from_utf8_lossy(text.as_bytes()).into_owned(),
        Stop::Fetch => "its rows are not there".to_owned(),
    }
}

/// Whether a command stores or compares with the present time.
pub fn is_timed(name: &str, args: &Args<'_>) -> bool {
    let is = |argument: &[u8], word: &str| argument.eq_ignore_ascii_case(word.as_bytes());
    let is_word = |argument: &[u8]| RELATIVE_WORDS.iter().any(|word| is(argument, word));
    let options = MAYBE_RELATIVE.iter().find(|(maybe, _)| *maybe == name).map(|(_, from)| args.from(*from));
    // Names and values of fields follow that word.
    let mut options = options.into_iter().flatten().take_while(|argument| !is(argument, "FIELDS"));
    let is_restore = name == "restore" && !args.from(4).any(|argument| is(argument, "ABSTTL"));
    let names_its_id = name == "xadd" && args.from(2).any(|argument| argument == b"*");
    TIMED.contains(&name) || is_restore || names_its_id || options.any(is_word)
}
