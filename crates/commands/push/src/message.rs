//! What subscribers are sent.

use crate::subscriptions::Kind;
use base::Lsn;
use proto::PushFrame;

/// A message to subscribers.
#[derive(Debug)]
pub struct Message {
    /// What its receivers have subscribed to.
    pub kind: Kind,
    /// The name of that.
    pub name: Box<[u8]>,
    /// What they are sent.
    pub frame: PushFrame,
    /// The message reveals a change that may be lost until the log is durable up to here, so it waits; 0 if it need
    /// not.
    pub hold: Lsn,
}
