//! The ends of waits of blocked commands: served, timed out, unblocked, or the log has come far enough.

use super::{Executor, Shared};
use base::{Lsn, UnixMs};
use command::Session;
use command::blocking::{Awaited, UNBLOCKED, WaitingCall};
use command::clients::Unblock;
use command::observer::Done;
use command::stats::WorkerStats;
use engine::WaitEnd;
use std::borrow::Cow;
use store::RecordSink;

impl Executor {
    /// Ends waits of commands that have timed out, or for which the log or a task has come far enough. Their
    /// connections continue.
    pub fn end_blocks(&mut self) {
        let Self { shared, scratch, blocked, now, .. } = &mut *self;
        for id in blocked.take_due(*now, || shared.store.log_of(scratch).map(RecordSink::durable)) {
            self.end_block(id);
        }
    }

    /// Checks whether another thread has ended the wait of a connection, or what it prepares, and then lets it
    /// continue.
    pub fn end_wait(&mut self, id: usize) {
        self.end_work(id);
        if let Some(block) = self.connections.get(id).and_then(|connection| connection.session.block.as_ref()) {
            self.blocked.remove(id, block);
            self.end_block(id);
        }
    }

    /// Ends the wait of one connection, which is in no list, with its reply; unless it still waits.
    fn end_block(&mut self, id: usize) {
        let durable = self.durable();
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(block) = connection.session.block.take() else { return };
        let is_late = block.until.is_some_and(|until| until <= self.now);
        let is_over = is_late || block.what.is_over(durable);
        let Some(end) = connection.session.info.wait.end(block.number, is_over) else {
            self.blocked.insert(id, &block);
            connection.session.block = Some(block);
            return;
        };
        let mark = connection.reply.mark();
        let error = match (end, &block.what) {
            (WaitEnd::Served, Awaited::Keys(command)) => {
                let answer = command.take_answer();
                connection.session.last_write = answer.wrote.unwrap_or(connection.session.last_write);
                if let Some(lsn) = answer.hold.filter(|_| !block.is_silent) {
                    connection.held.hold(connection.reply.len_before(mark), lsn);
                }
                connection.reply.append(answer.reply);
                answer.error.map(Cow::Owned)
            }
            (WaitEnd::Unblocked(Unblock::Error), _) => {
                connection.reply.error(UNBLOCKED);
                Some(Cow::Borrowed(UNBLOCKED.as_bytes()))
            }
            _ => block.what.answer(durable, &mut connection.reply).map(|text| match text {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            }),
        };
        if let Some(error) = &error {
            self.stats.count_error(error);
        }
        if let Some(call) = &block.call {
            let reply_bytes = connection.reply.len() - connection.reply.len_before(mark);
            account(call, &connection.session, (&self.shared, &self.stats, self.now), error.is_some(), reply_bytes);
        }
        if block.is_silent {
            connection.reply.rewind(mark);
        }
        if let (Awaited::Keys(command), true) = (&block.what, end != WaitEnd::Served) {
            self.shared.store.forget_waiter(&**command);
        }
        connection.go_on_behind();
        self.run_waiting_of(id);
    }

    /// Whether a command of the connection waits.
    pub fn is_blocked(&self, id: usize) -> bool {
        self.connections.get(id).is_some_and(|connection| connection.session.block.is_some())
    }

    /// Milliseconds until a wait is over for its time; `None` when none is limited.
    pub fn ms_to_next_end(&self) -> Option<u64> {
        self.blocked.ms_to_next_end(self.now)
    }

    /// Whether a command waits for the log; then, how far it was durable when that was last looked at.
    pub fn awaits_log(&self) -> Option<Option<Lsn>> {
        self.blocked.awaits_log()
    }
}

/// Counts a call whose wait has ended, as others are counted when they are done.
#[cold]
fn account(
    call: &WaitingCall,
    session: &Session,
    (shared, stats, now): (&Shared, &WorkerStats, UnixMs),
    has_failed: bool,
    reply_bytes: usize,
) {
    if let Some(command) = stats.command(call.index) {
        command.record(call.duration_ns);
        command.failed.add(u64::from(has_failed));
    }
    let (args, duration_ns) = (call.args.as_args(), call.duration_ns);
    let request_bytes = args.total_bytes();
    let Some(space) = shared.store.spaces.get(session.db) else { return };
    if shared.slow_log.wants(stats, duration_ns, request_bytes, reply_bytes) {
        shared.slow_log.look(&Done {
            flags: call.flags,
            keys: call.keys,
            args,
            client: &session.info,
            stats,
            hashed: None,
            hash: &|bytes| shared.store.key(space, bytes),
            now,
            duration_ns,
            request_bytes,
            reply_bytes,
        });
    }
}
