//! Commands that wait: what for, how long, and what they answer when it is over.
//!
//! A function that has to wait leaves a [`Block`] in its session in place of a reply. Its worker then runs nothing more
//! of the connection until the wait is over, and has the block written as the reply. How commands wait for keys,
//! [`waiting`](crate::waiting) says.

use crate::args::OwnedArgs;
use crate::clients::ClientInfo;
use crate::spec::{Flags, KeySpec};
use base::{Clock, Lsn, UnixMs};
use engine::{WaitNumber, Waiter};
use proto::ReplyBuffer;
use std::borrow::Cow;
use std::sync::Arc;

/// The wait of a connection.
#[derive(Clone, Debug)]
pub struct Block {
    /// What is waited for, and how it is answered.
    pub what: Awaited,
    /// The first moment at which it is over in any case; `None` for never.
    pub until: Option<UnixMs>,
    /// CLIENT REPLY had its reply suppressed when it began.
    pub is_silent: bool,
    /// Which of the connection's waits it is.
    pub number: WaitNumber,
    /// The call that waits, for the figures: it counts when its wait ends.
    pub call: Option<Arc<WaitingCall>>,
}

/// A call whose wait has not ended.
pub struct WaitingCall {
    /// The name of the command that ran.
    pub name: &'static str,
    /// How it behaves.
    pub flags: Flags,
    /// Where its keys stand.
    pub keys: &'static [KeySpec],
    /// Its index in the statistics.
    pub index: u32,
    /// Its arguments.
    pub args: OwnedArgs,
    /// How long it ran until it began to wait.
    pub duration_ns: u64,
}

impl std::fmt::Debug for WaitingCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaitingCall").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Block {
    /// A wait of this connection, which begins now.
    pub fn begin(info: &ClientInfo, what: Awaited, until: Option<UnixMs>) -> Self {
        let is_firm = matches!(&what, Awaited::Task(task) if !task.can_be_left());
        let number = if is_firm { info.wait.begin_firm() } else { info.wait.begin() };
        Self { what, until, is_silent: false, number, call: None }
    }

    /// Puts the end off by what the clock has moved since `turn`, when the end was counted from: no wait ends early.
    pub fn count_from(&mut self, turn: UnixMs, clock: &dyn Clock) {
        let is_inside_ms = !clock.monotonic_ns().is_multiple_of(1_000_000);
        let begun = clock.now_ms().saturating_add(i64::from(is_inside_ms));
        let late_ms = begun.saturating_sub(turn).max(0);
        self.until = self.until.map(|until| until.saturating_add(late_ms));
    }

    /// Bytes held while it lasts.
    pub fn held_bytes(&self) -> usize {
        let call = self.call.as_ref().map_or(0, |call| call.args.held_bytes());
        match &self.what {
            Awaited::Keys(command) => command.held_bytes().saturating_add(call),
            _ => call,
        }
    }
}

/// Work of another thread that a connection waits for, such as a checkpoint.
pub trait Task: Send + Sync + std::fmt::Debug {
    /// Whether it has ended.
    fn is_over(&self) -> bool;

    /// What came of it, as the reply. An error, whose text is given, when it failed. Asked for when it has ended, and
    /// when CLIENT UNBLOCK ends the wait for it.
    fn answer(&self, reply: &mut ReplyBuffer) -> Option<String>;

    /// Whether CLIENT UNBLOCK may end the wait: the answer then says so, and the task's outcome does not depend on a
    /// waiting client.
    fn can_be_left(&self) -> bool {
        false
    }
}

/// What is waited for.
#[derive(Clone, Debug)]
pub enum Awaited {
    /// The end of a task.
    Task(Arc<dyn Task>),
    /// WAIT: that many replicas have the connection's writes. There are none yet.
    Replicas(i64),
    /// WAITAOF: they are durable here, and in that many replicas.
    Durable {
        /// The position after the connection's last write.
        position: Lsn,
        /// Whether they are to be durable here.
        local: bool,
        /// Replicas.
        replicas: i64,
    },
    /// A change of a key; the command that makes it has the answer.
    Keys(Arc<dyn WaitsForKeys>),
}

/// Replicas that have anything.
const REPLICAS: i64 = 0;

impl Awaited {
    /// Whether what is waited for has come, or never can; `durable` is how far the log is safe, `None` when it is off.
    pub fn is_over(&self, durable: Option<Lsn>) -> bool {
        match *self {
            Self::Task(ref task) => task.is_over(),
            Self::Keys(_) => false,
            Self::Replicas(replicas) => replicas <= REPLICAS,
            Self::Durable { local: true, .. } if durable.is_none() => true,
            Self::Durable { position, local, replicas } => {
                replicas <= REPLICAS && (!local || durable.is_some_and(|durable| durable >= position))
            }
        }
    }

    /// Whether it can come by the log's becoming durable further.
    pub fn is_for_log(&self) -> bool {
        matches!(self, Self::Durable { local: true, .. })
    }

    /// Whether it can come at any time, without a moment or a position that could be looked at.
    pub fn is_task(&self) -> bool {
        matches!(self, Self::Task(_))
    }

    /// What has come so far, as the reply. An error, whose text is given, when it never can.
    pub fn answer(&self, durable: Option<Lsn>, reply: &mut ReplyBuffer) -> Option<Cow<'static, str>> {
        match *self {
            Self::Task(ref task) => return task.answer(reply).map(Cow::Owned),
            Self::Keys(ref command) => command.write_timed_out(reply),
            Self::Replicas(_) => reply.integer(REPLICAS),
            Self::Durable { local: true, .. } if durable.is_none() => {
                reply.error(LOG_IS_OFF);
                return Some(Cow::Borrowed(LOG_IS_OFF));
            }
            Self::Durable { position, .. } => {
                reply.array(2);
                reply.integer(i64::from(durable.is_some_and(|durable| durable >= position)));
                reply.integer(REPLICAS);
            }
        }
        None
    }
}

/// A command that waits for keys.
pub trait WaitsForKeys: Waiter + std::fmt::Debug {
    /// Writes what it answers when its wait ends without one.
    fn write_timed_out(&self, reply: &mut ReplyBuffer);

    /// Takes the answer, once the wait has ended with it.
    fn take_answer(&self) -> Answer;

    /// Bytes held while it waits.
    fn held_bytes(&self) -> usize;
}

/// What came of running a waiting command again.
#[derive(Debug, Default)]
pub struct Answer {
    /// The reply.
    pub reply: ReplyBuffer,
    /// The text of the error that it is, if it is one.
    pub error: Option<Vec<u8>>,
    /// The position in the log after what it has changed; `None` without a log.
    pub wrote: Option<Lsn>,
    /// The reply is to be kept back until the log is durable up to here.
    pub hold: Option<Lsn>,
}

/// WAITAOF without a log.
pub const LOG_IS_OFF: &str = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";

/// Answered to a connection whose wait CLIENT UNBLOCK ends with an error.
pub const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";

#[cfg(test)]
mod tests {
    use super::*;
    use proto::Protocol;

    fn answer(what: Awaited, durable: Option<Lsn>) -> String {
        let mut reply = ReplyBuffer::new(Protocol::Resp2);
        what.answer(durable, &mut reply);
        String::from_utf8(reply.as_contiguous().unwrap().to_vec()).unwrap()
    }

    #[test]
    fn waits_are_over_when_all_they_name_has_come() {
        let durable = |local, replicas| Awaited::Durable { position: Lsn(10), local, replicas };
        assert!(!Awaited::Replicas(1).is_over(Some(Lsn(99))) && Awaited::Replicas(0).is_over(None));
        assert!(!durable(true, 0).is_over(Some(Lsn(9))) && durable(true, 0).is_over(Some(Lsn(10))));
        assert!(!durable(true, 1).is_over(Some(Lsn(10))));
        assert!(durable(true, 1).is_over(None), "the log was turned off: it cannot come any more");
        assert!(!durable(false, 1).is_over(None) && durable(false, 0).is_over(None));
        assert_eq!(answer(durable(true, 0), Some(Lsn(9))), "*2\r\n:0\r\n:0\r\n");
        assert_eq!(answer(durable(false, 5), Some(Lsn(10))), "*2\r\n:1\r\n:0\r\n");
        assert_eq!(answer(durable(false, 5), None), "*2\r\n:0\r\n:0\r\n");
        assert_eq!(answer(durable(true, 5), None), format!("-{LOG_IS_OFF}\r\n"));
        assert_eq!(answer(Awaited::Replicas(3), None), ":0\r\n");
    }
}
