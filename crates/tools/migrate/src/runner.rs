//! Runs commands of a log or of a primary over a store, without clients.

use base::{DbIndex, UnixMs};
use command::call::call;
use command::limits::{SparseLimit, StampMeaning, StringLimit};
use command::stats::WorkerStats;
use command::table::Row;
use command::{Args, CommandTable, Ctx, Flags, Host, Session, Stop};
use engine::Fetch;
use proto::{Protocol, ReplyBuffer};
use store::Txn;

/// Before every time of expiration that a server writes.
pub(crate) const BEGINNING: UnixMs = 0;

/// Commands that name a time from now on, and no server has written since 2012; and commands of streams, which store
/// when an entry was delivered and a consumer seen, and take no time of delivery that is still to come.
const TIMED: [&str; 9] =
    ["expire", "pexpire", "setex", "psetex", "hexpire", "hpexpire", "xclaim", "xautoclaim", "createconsumer"];

/// Commands that may name a time from now on, with one of these words, and where their options begin.
const MAYBE_RELATIVE: [(&str, usize); 4] = [("set", 3), ("getex", 2), ("hsetex", 2), ("hgetex", 2)];
const RELATIVE_WORDS: [&str; 2] = ["EX", "PX"];

/// The commands, and what they need besides the store.
pub(crate) struct Runner {
    table: CommandTable,
    host: Host,
    stats: WorkerStats,
    session: Session,
    reply: ReplyBuffer,
}

impl Runner {
    pub fn new() -> Self {
        // SWAPDB and FLUSHALL are rows of `admin`.
        let table = CommandTable::new(&[command::redis::FAMILIES, admin::FAMILIES].concat());
        let stats = WorkerStats::new(table.rows().len());
        let host =
            Host::default().with(StringLimit::default()).with(SparseLimit::default()).with(StampMeaning::default());
        let session = Session::new(1, true, BEGINNING);
        Self { table, host, stats, session, reply: ReplyBuffer::new(Protocol::Resp2) }
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
        let is_run = row.spec.flags.contains(Flags::WRITE) || row.spec.name == "select";
        Ok(is_run.then_some(row))
    }

    /// Runs a command. The inner error is what it answers.
    ///
    /// # Errors
    /// [`Fetch`], with nothing changed: of keyspaces with rows elsewhere, which no caller has.
    pub fn run(&mut self, txn: &mut Txn<'_>, row: &Row, args: Args<'_>) -> Result<Result<(), String>, Fetch> {
        let Self { host, stats, session, reply, .. } = self;
        let mut ctx = Ctx { spec: row.spec, args, reply, ks: txn, session, host, stats, hashed: None };
        call(&mut ctx, row)?;
        let refusal = self.reply.io_slices().next().and_then(|slice| slice.strip_prefix(b"-").map(<[u8]>::to_vec));
        let len = self.reply.len();
        self.reply.advance(len);
        Ok(refusal.map_or(Ok(()), |text| Err(String::from_utf8_lossy(&text).trim_end().to_owned())))
    }
}

fn text_of(stop: &Stop) -> String {
    match stop {
        Stop::Error(text) => String::from_utf8_lossy(text.as_bytes()).into_owned(),
        Stop::Fetch => "its rows are not there".to_owned(),
    }
}

/// Whether a command stores or compares with the present time.
pub(crate) fn is_timed(name: &str, args: &Args<'_>) -> bool {
    let is = |argument: &[u8], word: &str| argument.eq_ignore_ascii_case(word.as_bytes());
    let is_word = |argument: &[u8]| RELATIVE_WORDS.iter().any(|word| is(argument, word));
    let options = MAYBE_RELATIVE.iter().find(|(maybe, _)| *maybe == name).map(|(_, from)| args.from(*from));
    // Names and values of fields follow that word.
    let mut options = options.into_iter().flatten().take_while(|argument| !is(argument, "FIELDS"));
    let is_restore = name == "restore" && !args.from(4).any(|argument| is(argument, "ABSTTL"));
    let names_its_id = name == "xadd" && args.from(2).any(|argument| argument == b"*");
    TIMED.contains(&name) || is_restore || names_its_id || options.any(is_word)
}
