//! What the server says about itself to other threads of its process: the text of INFO, whether it works, whether it
//! serves.

use crate::certificate_login;
use crate::executor::Shared;
use admin::info::section_names;
use base::{DbIndex, UnixMs};
use command::acl::{self, Origin, User};
use command::audit::Proof;
use command::blocking::{Awaited, Block, Task};
use command::call::call;
use command::clients::{Address, ClientInfo};
use command::redis::connection::note_wrong;
use command::stats::{BUCKET_COUNT, WorkerStats};
use command::{Args, Ctx, Row, Session};
use durability::Durability;
use parking_lot::Mutex;
use proto::{Protocol, ReplyBuffer, Span};
use script::Scripts;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::{At, LockSet, Scratch, WriteClass};

/// Longest time between the beginnings of two turns of a worker that works: an idle one turns twenty times a second.
const TURN_WITHIN_MS: i64 = 2000;

/// The section of INFO that needs the locks of all shards. A worker counts it.
const KEYSPACE: &str = "keyspace";

/// The user in ACL LOG and the audit log of a token that is wrong.
const TOKEN: &str = "(token)";

/// Longest reply that is handed out, in bytes.
const REPLY_BYTES_MAX: usize = 16 << 20;

/// What workers note for other threads: a part of the [`Host`](command::Host).
#[derive(Default)]
pub struct Observed {
    /// The section Keyspace of INFO, of at most a second ago while it is asked for.
    keyspace: Mutex<Option<String>>,
    /// Whether it was asked for since it was last counted.
    is_wanted: AtomicBool,
}

impl Observed {
    /// Counts the keys of all databases after a scrape. Called once a second by one worker, which takes the locks of
    /// the shards one after the other.
    pub fn count(&self, shared: &Shared) {
        if self.is_wanted.swap(false, Ordering::Relaxed)
            && let Some(Asked::Reply(reply)) = ask(shared, &["INFO", KEYSPACE])
        {
            *self.keyspace.lock() = verbatim(&reply);
        }
    }
}

/// What a command answers.
pub enum Asked {
    /// Its reply in RESP3.
    Reply(Vec<u8>),
    /// Workers are at it.
    Task(Arc<dyn Task>),
}

/// The text of `INFO everything`, without a lock of a shard: keys are those that a worker has counted last.
pub fn info(shared: &Shared) -> Option<String> {
    let words: Vec<_> = std::iter::once("INFO").chain(section_names().filter(|name| *name != KEYSPACE)).collect();
    let Some(Asked::Reply(reply)) = ask(shared, &words) else { return None };
    let mut text = verbatim(&reply)?;
    let keyspace = shared.host.find::<Observed>().and_then(|observed| {
        observed.is_wanted.store(true, Ordering::Relaxed);
        observed.keyspace.lock().clone()
    });
    text.push_str("\r\n\r\n");
    text.push_str(keyspace.as_deref().unwrap_or("# Keyspace"));
    Some(text)
}

/// Whether a client may run a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It may.
    Granted,
    /// It needs to log in, or its login was wrong.
    NoLogin,
    /// It has logged in as a user that may not run the command.
    Forbidden,
}

/// A client of the page.
#[derive(Clone, Copy, Debug)]
pub struct Visitor {
    /// Its address.
    pub address: SocketAddr,
    /// Whether it is on this host. If not, nothing is shown without a password.
    pub is_near: bool,
    /// Whether its connection has not logged in before: the audit log has one line for each.
    pub is_new: bool,
}

impl Visitor {
    /// Where the failures of its logins are counted. Those of this host have a source of their own: a page with a wrong
    /// password does not delay logins of other clients here.
    fn source(&self) -> Address {
        Address::Tcp(if self.is_near { (Ipv4Addr::UNSPECIFIED, 0).into() } else { self.address })
    }

    /// A session for the logs, which is in no list of clients.
    fn session(&self, user: Arc<User>, now: UnixMs) -> Session {
        let address = Address::Tcp(self.address);
        Session::with_user(Arc::new(ClientInfo::new(0, address.clone(), address, now)), true, user)
    }
}

/// What a client of the page shows to log in.
#[derive(Clone, Copy, Debug)]
pub enum Shown<'a> {
    /// The name of a user and its password; or a token and no password, from a browser that asks for both.
    Password(&'a str, &'a str),
    /// A token of `http-token-file`.
    Token(&'a str),
    /// The certificate of its connection, in DER. TLS has checked it.
    Certificate(&'a [u8]),
}

/// Whether a client of the page may run a command, as the user that it logs in as, or else as `default`; and how long
/// the answer has to be kept back. A hash that is slow is computed on this thread.
pub fn access(shared: &Shared, from: &Visitor, shown: Option<Shown<'_>>, words: &[&str]) -> (Access, Duration) {
    let Some(shown) = shown else { return (access_of_default(shared, from, words), Duration::ZERO) };
    let now = shared.store.clock.now_ms();
    let (session, delay) = match shown {
        Shown::Certificate(certificate) => (by_certificate(shared, from, certificate, now), Duration::ZERO),
        Shown::Password(..) | Shown::Token(_) => by_secret(shared, from, shown, now),
    };
    let Some(session) = session else { return (Access::NoLogin, delay) };
    let may = permits(shared, words, |row, args| {
        acl::denial(&session, &shared.host, (row, args), Origin::TopLevel, now).is_none()
    });
    (if may { Access::Granted } else { Access::Forbidden }, delay)
}

/// Logs in by a password or a token. After failures of the address the answer has to be kept back.
fn by_secret(shared: &Shared, from: &Visitor, shown: Shown<'_>, now: UnixMs) -> (Option<Session>, Duration) {
    let users = &shared.host.login;
    let shown = match shown {
        Shown::Password(token, "") if users.tokens.has(token.as_bytes()) => Shown::Token(token),
        shown => shown,
    };
    let (attempt, name, proof) = match shown {
        Shown::Password(name, password) => {
            let mut attempt = users.attempt(name.as_bytes(), password.as_bytes(), &from.source(), now);
            // A user with `nopass` is let in from this host alone.
            attempt.user = attempt.user.filter(|user| from.is_near || !user.rules().needs_no_password);
            (attempt, name, Proof::Password)
        }
        Shown::Token(token) => (users.attempt_by_token(token.as_bytes(), &from.source(), now), TOKEN, Proof::Token),
        Shown::Certificate(_) => return (None, Duration::ZERO),
    };
    let delay = Duration::from_millis(u64::try_from(attempt.delay_ms).unwrap_or_default());
    let Some(user) = attempt.user else {
        let session = from.session(users.users.default_user().clone(), now);
        note_wrong(&session, &shared.host, ("auth", b"http"), (name.as_bytes(), proof), now);
        return (None, delay);
    };
    let session = from.session(user, now);
    if from.is_new {
        users.audit.login(&session.info, (session.user.name(), proof), true, now);
    }
    (Some(session), delay)
}

/// Logs in by a certificate, if `tls-auth-clients-user` says that certificates name users.
fn by_certificate(shared: &Shared, from: &Visitor, certificate: &[u8], now: UnixMs) -> Option<Session> {
    let users = &shared.host.login;
    let field = shared.host.configuration.current().tls_auth_clients_user;
    let session = from.session(users.users.default_user().clone(), now);
    let (name, user) = certificate_login::user(field, certificate, &session, &shared.host, now)?;
    let session = from.session(user, now);
    if from.is_new {
        users.audit.login(&session.info, (session.user.name(), Proof::Certificate(&name)), true, now);
    }
    Some(session)
}

/// The same without a login.
fn access_of_default(shared: &Shared, from: &Visitor, words: &[&str]) -> Access {
    let users = &shared.host.login.users;
    let rules = users.default_user().rules();
    let is_open = from.is_near && rules.is_open();
    let may =
        is_open && permits(shared, words, |row, args| acl::check(&rules, row, args, users.scope(DbIndex(0))).is_ok());
    // Another user may be allowed to run it.
    if may { Access::Granted } else { Access::NoLogin }
}

/// Asks about the row of a request.
fn permits(shared: &Shared, words: &[&str], ask: impl FnOnce(&Row, &Args<'_>) -> bool) -> bool {
    let Some((bytes, spans)) = request(words) else { return false };
    let args = Args::new(&bytes, &spans, &[]);
    shared.table.resolve(&args).is_ok_and(|row| ask(&row, &args))
}

/// The bytes of a request, and where its words are in them.
fn request(words: &[&str]) -> Option<(Vec<u8>, Vec<Span>)> {
    let (bytes, mut spans) = (words.concat().into_bytes(), Vec::with_capacity(words.len()));
    let mut from = 0;
    for word in words {
        spans.push(Span::new(from, word.len())?);
        from += word.len();
    }
    Some((bytes, spans))
}

/// Runs a command that takes no lock of a shard, as a client of no connection. The statistics leave its calls out.
pub fn ask(shared: &Shared, words: &[&str]) -> Option<Asked> {
    let (bytes, spans) = request(words)?;
    let args = Args::new(&bytes, &spans, &[]);
    let row = shared.table.resolve(&args).ok()?;
    let now = shared.store.clock.now_ms();
    let mut session = Session::new(0, true, now);
    let mut reply = ReplyBuffer::new(Protocol::Resp3);
    // Figures of no command: a call that is in no table is not counted.
    let stats = WorkerStats::new(0);
    let at = At { now, db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Nothing };
    let called = shared.store.commit(&mut Scratch::default(), &LockSet::None, &at, |txn| {
        let (session, reply) = (&mut session, &mut reply);
        call(
            &mut Ctx { spec: row.spec, args, reply, ks: txn, session, host: &shared.host, stats: &stats, hashed: None },
            &row,
        )
    });
    called.ok()?;
    if let Some(Block { what: Awaited::Task(task), .. }) = session.block.take() {
        return Some(Asked::Task(task));
    }
    Some(Asked::Reply(bytes_of(&reply)))
}

/// The reply of a task that is over.
pub fn answer(task: &dyn Task) -> Option<Vec<u8>> {
    if !task.is_over() {
        return None;
    }
    let mut reply = ReplyBuffer::new(Protocol::Resp3);
    // An error is a reply as well.
    let _ = task.answer(&mut reply);
    Some(bytes_of(&reply))
}

fn bytes_of(reply: &ReplyBuffer) -> Vec<u8> {
    let mut bytes = Vec::new();
    for slice in reply.io_slices() {
        bytes.extend_from_slice(&slice);
    }
    bytes.truncate(REPLY_BYTES_MAX);
    bytes
}

/// The text of `=123\r\ntxt:text\r\n`.
fn verbatim(reply: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(reply);
    text.split_once("\r\ntxt:").map(|(_, text)| text.trim_end().to_owned())
}

/// Calls of all commands by their duration: the buckets of [`command::stats::bucket_upper_ns`].
pub fn durations(shared: &Shared) -> Vec<u64> {
    let mut sums = vec![0u64; BUCKET_COUNT];
    for worker in shared.host.figures.workers() {
        for command in (0..).map_while(|row| worker.stats.command(row)).filter(|command| command.calls.get() > 0) {
            for (sum, bucket) in sums.iter_mut().zip(&command.durations) {
                *sum = sum.wrapping_add(bucket.get());
            }
        }
    }
    sums
}

/// Whether every worker turns.
///
/// # Errors
/// Which one does not.
pub fn health(shared: &Shared) -> Result<(), String> {
    late_workers(shared).first().map_or(Ok(()), |(number, late_ms)| Err(no_turn(*number, *late_ms)))
}

/// Whether a supervisor should let the process live: every worker turns, except those that scripts keep. SCRIPT KILL
/// ends these, and other clients are answered in the meantime.
///
/// # Errors
/// Which worker does not turn, without such a reason.
pub fn liveness(shared: &Shared) -> Result<(), String> {
    let late = late_workers(shared);
    let of_scripts = shared.host.part::<script::Needed, Arc<Scripts>>().running.count();
    late.get(of_scripts).map_or(Ok(()), |(number, late_ms)| Err(no_turn(*number, *late_ms)))
}

/// Workers that have begun no turn for too long, and for how many milliseconds.
fn late_workers(shared: &Shared) -> Vec<(usize, i64)> {
    let now = shared.store.clock.now_ms();
    let mut late = Vec::new();
    for (number, worker) in shared.host.figures.workers().iter().enumerate() {
        let turned_at = worker.stats.turned_at.get().cast_signed();
        let late_ms = now.saturating_sub(turned_at);
        if turned_at > 0 && late_ms > TURN_WITHIN_MS {
            late.push((number, late_ms));
        }
    }
    late
}

fn no_turn(worker: usize, late_ms: i64) -> String {
    format!("worker {worker} has begun no turn for {} s", late_ms / 1000)
}

/// Whether the data is loaded, and changes are taken.
///
/// # Errors
/// Why not.
pub fn readiness(shared: &Shared) -> Result<(), String> {
    if shared.store.gate.is_loading() {
        return Err("the data is being loaded".to_owned());
    }
    let status = shared.host.find::<Arc<Durability>>().map(|durability| durability.status());
    if status.and_then(|status| status.log).is_some_and(|log| log.failure.is_some()) {
        return Err("the log takes no changes; see the server's log, and the room on the disk".to_owned());
    }
    if shared.store.gate.refuses_writes() {
        return Err("the last checkpoint failed, so changes are refused; see the server's log".to_owned());
    }
    Ok(())
}
