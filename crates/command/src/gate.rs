//! What stands between a request and its command when the connection is not in its plain state: login, transactions.

use crate::session::Queued;
use crate::table::Row;
use crate::{Args, Flags, Session};
use proto::ReplyBuffer;

/// Commands that act on the transaction itself and are never queued.
const NEVER_QUEUED: [&str; 6] = ["exec", "discard", "multi", "watch", "quit", "reset"];

/// Refuses or queues the request, with its reply; false when it is to run now.
#[cold]
pub fn stop(session: &mut Session, row: &Row, args: &Args<'_>, reply: &mut ReplyBuffer) -> bool {
    if !session.authenticated && !row.spec.flags.contains(Flags::NO_AUTH) {
        poison(session);
        reply.error("NOAUTH Authentication required.");
        return true;
    }
    if session.transaction.is_none() {
        return false;
    }
    if row.spec.flags.contains(Flags::NO_MULTI) {
        poison(session);
        reply.error(format!("ERR Command '{}' not allowed inside a transaction", row.spec.name));
        return true;
    }
    if NEVER_QUEUED.contains(&row.spec.name) {
        return false;
    }
    if let Some(transaction) = &mut session.transaction {
        let args = args.to_owned();
        transaction.bytes = transaction.bytes.saturating_add(args.held_bytes()).saturating_add(size_of::<Queued>());
        if !transaction.poisoned {
            transaction.queue.push(Queued { row: *row, args });
        }
        reply.simple("QUEUED");
    }
    true
}

/// A refused request inside MULTI makes EXEC answer EXECABORT.
pub fn poison(session: &mut Session) {
    if let Some(transaction) = &mut session.transaction {
        transaction.poisoned = true;
    }
}
