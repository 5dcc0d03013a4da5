//! What stands between a request and its command when the connection is not in its plain state: login, transactions.

use crate::acl::{Origin, denial};
use crate::redis::pubsub::is_confined;
use crate::session::{Queued, Transaction};
use crate::stats::WorkerStats;
use crate::{Args, Flags, Host, Locks, Row, Session};
use base::UnixMs;
use proto::ReplyBuffer;

const NOT_LOGGED_IN: &[u8] = b"NOAUTH Authentication required.";

/// Refuses a request that needs a login first, with its reply; false when it may run.
#[cold]
pub fn stop_stranger(
    session: &mut Session,
    host: &Host,
    stats: &WorkerStats,
    row: &Row,
    reply: &mut ReplyBuffer,
) -> bool {
    if !session.authenticated && !row.spec.flags.contains(Flags::NO_AUTH) {
        if host.login.needs_password() {
            reject(session, stats, row, NOT_LOGGED_IN, reply);
            return true;
        }
        // The password was taken away since it connected: it is let in like those that connect now.
        session.log_in(host.login.users.default_user().clone());
    }
    false
}

/// Refuses a request that the session's user may not run, with its reply; false when it may run.
#[cold]
pub fn stop_forbidden(
    session: &mut Session,
    host: &Host,
    stats: &WorkerStats,
    (row, args): (&Row, &Args<'_>),
    now: UnixMs,
    reply: &mut ReplyBuffer,
) -> bool {
    let is_refused_anyway = session.transaction.is_some() && row.spec.flags.contains(Flags::NO_MULTI);
    if session.is_unrestricted() || is_refused_anyway {
        return false;
    }
    let origin = if session.transaction.is_some() { Origin::Multi } else { Origin::TopLevel };
    let Some(denial) = denial(session, host, (row, args), origin, now) else { return false };
    if row.spec.flags.contains(Flags::PART) {
        // An error ends the reply of the whole request, so only its last part may answer one.
        stats.count_refusal(Some(row.index.into()), b"NOPERM");
        return true;
    }
    reject(session, stats, row, &[b"NOPERM ", &*denial.text].concat(), reply);
    true
}

/// Refuses a request of a RESP2 connection with subscriptions that could not distinguish its reply from a message;
/// false when it may run.
#[cold]
pub fn stop_subscriber(
    session: &mut Session,
    stats: &WorkerStats,
    row: &Row,
    name: &str,
    reply: &mut ReplyBuffer,
) -> bool {
    if row.confirms_subscriptions
        || row.spec.flags.contains(Flags::FOR_SUBSCRIBERS)
        || !is_confined(session, reply.protocol())
    {
        return false;
    }
    let text = format!(
        "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
    );
    reject(session, stats, row, text.as_bytes(), reply);
    true
}

/// Whether a request is to be queued inside MULTI, which takes memory whatever the command is.
#[cold]
pub fn is_queued(session: &Session, row: &Row) -> bool {
    session.transaction.is_some() && !row.spec.flags.intersects(Flags::NO_MULTI | Flags::NOT_QUEUED)
}

/// Refuses or queues a request inside MULTI, with its reply; false when it is to run now.
#[cold]
pub fn queue(session: &mut Session, stats: &WorkerStats, row: &Row, args: &Args<'_>, reply: &mut ReplyBuffer) -> bool {
    if session.transaction.is_none() {
        return false;
    }
    if row.spec.flags.contains(Flags::NO_MULTI) {
        let text = format!("ERR Command '{}' not allowed inside a transaction", full_name(row, args));
        reject(session, stats, row, text.as_bytes(), reply);
        return true;
    }
    if row.spec.flags.contains(Flags::NOT_QUEUED) {
        return false;
    }
    if let Some(transaction) = &mut session.transaction {
        if !transaction.poisoned {
            let queued = Queued { row: *row, args: args.to_owned() };
            let bytes = queued.args.held_bytes().saturating_add(size_of_val(&queued));
            transaction.bytes = transaction.bytes.saturating_add(bytes);
            transaction.queue.push(queued);
        }
        reply.simple("QUEUED");
    }
    true
}

/// The name of a row with that of its container, if it has one: `client|reply`.
fn full_name(row: &Row, args: &Args<'_>) -> String {
    let name = row.spec.name;
    match args[0].eq_ignore_ascii_case(name.as_bytes()) {
        true => name.to_owned(),
        false => format!("{}|{name}", String::from_utf8_lossy(&args[0]).to_ascii_lowercase()),
    }
}

/// Refuses a request whose name or number of arguments is wrong. A user that may run no command does not see `error`.
/// `row` is that of the command it names, if there is one.
#[cold]
pub fn refuse(
    session: &mut Session,
    host: &Host,
    stats: &WorkerStats,
    row: Option<&Row>,
    error: &[u8],
    reply: &mut ReplyBuffer,
) {
    let is_for_strangers = row.is_some_and(|row| row.spec.flags.contains(Flags::NO_AUTH));
    let is_stranger = !session.authenticated && host.login.needs_password();
    let error = if is_stranger && !is_for_strangers { NOT_LOGGED_IN } else { error };
    match row {
        Some(row) => reject(session, stats, row, error, reply),
        None => {
            poison(session);
            stats.count_refusal(None, error);
            reply.error(error);
        }
    }
}

/// Refuses a request of which an argument was not kept, so that it is not known what it asks for.
#[cold]
pub fn refuse_unkept(session: &mut Session, stats: &WorkerStats, error: &[u8], reply: &mut ReplyBuffer) {
    poison(session);
    stats.count_refusal(None, error);
    reply.error(error);
}

/// Answers an error in place of running the command. A transaction that would have queued the command is not going to
/// run; one that EXEC would have run ends here.
#[cold]
pub fn reject(session: &mut Session, stats: &WorkerStats, row: &Row, error: &[u8], reply: &mut ReplyBuffer) {
    if row.spec.locks != Locks::Queue {
        stats.count_refusal(Some(row.index.into()), error);
        poison(session);
        return reply.error(error);
    }
    session.transaction = None;
    session.watch = Default::default();
    let error = error.strip_prefix(b"ERR ").unwrap_or(error);
    let error = [b"EXECABORT Transaction discarded because of: ", error].concat();
    stats.count_refusal(Some(row.index.into()), &error);
    reply.error(error);
}

/// Answers a request of which a row cannot be read. It has changed nothing.
#[cold]
pub fn refuse_unreadable(session: &mut Session, stats: &WorkerStats, row: &Row, why: &str, reply: &mut ReplyBuffer) {
    let text = format!("IOERR {why}; nothing was changed");
    reject(session, stats, row, text.as_bytes(), reply);
}

/// A refused request inside MULTI makes EXEC answer EXECABORT.
fn poison(session: &mut Session) {
    if let Some(transaction) = &mut session.transaction {
        *transaction = Transaction { poisoned: true, ..Transaction::default() };
    }
}
