//! Commands that wait for keys, and are run again when one has changed.
//!
//! A command such as BLPOP reads its keys; when there is nothing, it calls [`Ctx::wait_for_keys`] in
//! place of a reply and returns. From then on, a command that changes one of the keys runs *the same function again*,
//! with the same arguments and the locks of all keys of its row. It finds something and replies, or fails, and that is
//! the reply of the waiting connection; or it finds nothing, calls `wait_for_keys` again, and the wait continues. So a
//! function is written as if it were always run for the first time:
//!
//! ```text
//! fn bzpopmin(ctx) {
//!     let until = ctx.timeout(last)?;                       // first, so that a wrong one is reported
//!     for index in keys.clone() {
//!         if let Some(popped) = zset::pop(ctx.ks, &ctx.key(index), ...)? { return reply }
//!     }
//!     let (kind, timed_out) = (Type::Zset, ReplyBuffer::null_array);
//!     ctx.wait_for_keys(KeyWait { keys, kind, until, timed_out, when_gone: false, args: None });
//!     Ok(())
//! }
//! ```
//!
//! Inside a transaction `wait_for_keys` answers at once what a wait answers when it times out. `kind` is the type a key
//! must have for the command to be run again. `when_gone` has it run when a key is gone as well (XREADGROUP, whose
//! group is then gone too). `args` replaces the arguments, where they mean something else later on (the `$` of XREAD).

use crate::acl::{Origin, User, denial};
use crate::args::OwnedArgs;
use crate::attempt::Attempt;
use crate::blocking::{Answer, Awaited, Block, WaitsForKeys};
use crate::clients::{ClientInfo, Closer};
use crate::stats::WorkerStats;
use crate::{CommandSpec, Ctx, Flags, Host, Run, Session, Stop};
use base::{DbIndex, Lsn, UnixMs};
use engine::{Keyspace, Type, WaitNumber, Waiter};
use parking_lot::Mutex;
use proto::{Protocol, ReplyBuffer};
use std::ops::Range;
use std::sync::Arc;
use types::extended::Extended;

/// What a command says that found nothing and is to wait for keys.
pub struct KeyWait {
    /// The arguments that are the keys it waits for. What else it reaches, its row names.
    pub keys: Range<usize>,
    /// The type they must have for it to be run again.
    pub kind: Type,
    /// When the wait is over in any case; `None` for never.
    pub until: Option<UnixMs>,
    /// What it answers then.
    pub timed_out: fn(&mut ReplyBuffer),
    /// Whether it is run again when a key is gone, too.
    pub when_gone: bool,
    /// Its arguments from now on, if others than now.
    pub args: Option<OwnedArgs>,
}

impl Ctx<'_> {
    /// The command waits: see the module.
    pub fn wait_for_keys(&mut self, wait: KeyWait) {
        if self.session.running.is_some() {
            return (wait.timed_out)(self.reply);
        }
        if self.session.attempt != Attempt::First {
            self.session.attempt = Attempt::InVain;
            return;
        }
        let (info, until) = (self.session.info.clone(), wait.until);
        let number = info.wait.begin();
        let command = Arc::new(WaitingCommand {
            spec: self.spec,
            args: wait.args.unwrap_or_else(|| self.args.to_owned()),
            keys: wait.keys,
            db: self.session.db,
            kind: wait.kind,
            when_gone: wait.when_gone,
            timed_out: wait.timed_out,
            protocol: self.reply.protocol(),
            no_touch: self.session.no_touch,
            user: self.session.user.clone(),
            closer: self.host.clients.closer(),
            info,
            number,
            answer: Mutex::default(),
        });
        self.ks.wait(command.clone());
        self.session.block = Some(Block { what: Awaited::Keys(command), until, is_silent: false, number, call: None });
    }

    /// The argument at `index` as the end of a wait, in seconds with fractions; `None` for 0, which means no end.
    ///
    /// # Errors
    /// Not a number, negative, or beyond all time.
    pub fn timeout(&self, index: usize) -> Result<Option<UnixMs>, Stop> {
        let seconds = Extended::parse(&self.args[index]);
        let seconds = seconds.ok_or(Stop::error("ERR timeout is not a float or out of range"))?;
        let ms = seconds.thousandfold();
        // Of what is beyond all time, too, the sign is looked at first.
        if let (None, Extended::Infinite { negative: true } | Extended::Finite { negative: true, .. }) = (ms, seconds) {
            return Err(Stop::error("ERR timeout is negative"));
        }
        end_of_wait(ms, self.now())
    }

    /// The argument at `index` as the end of a wait, in milliseconds; `None` for 0, which means no end.
    ///
    /// # Errors
    /// Not an integer, negative, or beyond all time.
    pub fn timeout_ms(&self, index: usize) -> Result<Option<UnixMs>, Stop> {
        let timeout = self.integer(index).map_err(|_| Stop::error("ERR timeout is not an integer or out of range"))?;
        end_of_wait(Some(timeout), self.now())
    }
}

/// When a wait of `timeout_ms` that begins now is over.
fn end_of_wait(timeout_ms: Option<i64>, now: UnixMs) -> Result<Option<UnixMs>, Stop> {
    let end = timeout_ms.map(|timeout_ms| (timeout_ms, now.checked_add(timeout_ms)));
    match end {
        Some((..0, _)) => Err(Stop::error("ERR timeout is negative")),
        Some((0, _)) => Ok(None),
        Some((_, Some(until))) => Ok(Some(until)),
        Some((_, None)) | None => Err(Stop::error("ERR timeout is out of range")),
    }
}

/// A command that waits for keys.
pub struct WaitingCommand {
    spec: &'static CommandSpec,
    args: OwnedArgs,
    keys: Range<usize>,
    db: DbIndex,
    kind: Type,
    when_gone: bool,
    timed_out: fn(&mut ReplyBuffer),
    protocol: Protocol,
    no_touch: bool,
    /// The waiting user. Its rights are checked again when it is served.
    user: Arc<User>,
    /// Its connection, and which of its waits this is.
    info: Arc<ClientInfo>,
    number: WaitNumber,
    /// Wakes the connection's worker; `None` in tests without any.
    closer: Option<Arc<dyn Closer>>,
    /// Written by the command that serves it, before the wait is finished; taken by the connection's worker.
    answer: Mutex<Answer>,
}

impl WaitingCommand {
    /// Runs it again under the locks of all its keys. False when it still waits, or has ended already.
    pub fn run_again(&self, ks: &mut dyn Keyspace, host: &Host, stats: &WorkerStats) -> bool {
        let Run::Call(run) = self.spec.run else { return false };
        // The connection of a deleted user is being closed.
        if self.user.is_gone() || !self.info.wait.claim(self.number) {
            return false;
        }
        ks.select(self.db);
        let mut session = Session::with_user(self.info.clone(), true, self.user.clone());
        session.db = self.db;
        session.no_touch = self.no_touch;
        session.attempt = Attempt::Again;
        let mut reply = ReplyBuffer::new(self.protocol);
        let mut ctx = Ctx {
            spec: self.spec,
            args: self.args.as_args(),
            reply: &mut reply,
            ks,
            session: &mut session,
            host,
            stats,
            hashed: None,
        };
        let ran = match may_still_run(&ctx) {
            Ok(()) => run(&mut ctx),
            Err(stop) => Err(stop),
        };
        let error = match ran {
            Ok(()) => None,
            Err(Stop::Error(text)) => {
                reply = ReplyBuffer::new(self.protocol);
                reply.error(text.as_bytes());
                Some(text.as_bytes().to_vec())
            }
            Err(Stop::Fetch) => unreachable!("the rows of waiting commands were read before the first change"),
        };
        let is_served = session.attempt == Attempt::Again;
        if is_served {
            *self.answer.lock() = Answer { reply, error, wrote: None, hold: None };
        } else {
            self.info.wait.finish(self.number, false);
        }
        is_served
    }

    /// Whether it may change entries.
    pub fn writes(&self) -> bool {
        self.spec.flags.contains(Flags::WRITE)
    }
}

impl WaitsForKeys for WaitingCommand {
    fn write_timed_out(&self, reply: &mut ReplyBuffer) {
        (self.timed_out)(reply);
    }

    fn take_answer(&self) -> Answer {
        std::mem::take(&mut *self.answer.lock())
    }

    fn held_bytes(&self) -> usize {
        size_of::<Self>().saturating_add(self.args.held_bytes())
    }
}

/// Whether the user of a waiting command has the right to run it, still.
fn may_still_run(ctx: &Ctx<'_>) -> Result<(), Stop> {
    if ctx.session.is_unrestricted() {
        return Ok(());
    }
    let row = ctx.host.table.row_of(ctx.spec);
    let denial = row.and_then(|row| denial(ctx.session, ctx.host, (&row, &ctx.args), Origin::TopLevel, ctx.now()));
    denial.map_or(Ok(()), |denial| Err(Stop::error_with([b"NOPERM ", &*denial.text].concat())))
}

impl Waiter for WaitingCommand {
    fn db(&self) -> DbIndex {
        self.db
    }

    fn visit_keys(&self, visit: &mut dyn FnMut(&[u8], bool)) {
        let args = self.args.as_args();
        self.spec.visit_keys(&args, |index, _| visit(&args[index], self.keys.contains(&index)));
    }

    fn is_open(&self) -> bool {
        self.info.wait.is_open(self.number)
    }

    fn wants(&self, found: Option<Type>) -> bool {
        found.map_or(self.when_gone, |kind| kind == self.kind || self.when_gone)
    }

    fn client(&self) -> u64 {
        self.info.id
    }

    fn settle(&self, wrote: Option<Lsn>, hold: Option<Lsn>) {
        let mut answer = self.answer.lock();
        (answer.wrote, answer.hold) = (wrote, hold);
        drop(answer);
        self.info.wait.finish(self.number, true);
    }

    fn wake(&self) {
        if let Some(closer) = &self.closer {
            closer.end_wait(self.info.worker(), self.info.id);
        }
    }
}

impl std::fmt::Debug for WaitingCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaitingCommand").field("name", &self.spec.name).finish_non_exhaustive()
    }
}
