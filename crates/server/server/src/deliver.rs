//! Messages that are no replies, from the worker's outlet into the output of its connections.
//!
//! They go in between requests, so that a message follows the reply of the command that caused it and is never inside
//! one.

use crate::connection::Connection;
use crate::executor::connections::Connections;
use crate::executor::limits::ClientLimits;
use base::Lsn;
use proto::Protocol;
use push::{Content, Delivery, Invalidation, Message, Receiver};

/// Output delivered in one step: other connections have their turn in between.
pub(crate) const DELIVERED_BYTES_MAX: usize = 1 << 20;

/// The channel on which a RESP2 connection receives the invalidations that another connection redirects to it.
const INVALIDATION_CHANNEL: &[u8] = b"__redis__:invalidate";

/// Where deliveries end.
pub(crate) struct Receivers<'e> {
    pub(crate) connections: &'e mut Connections,
    /// Connections with output to send; each that gets something is listed.
    pub(crate) to_send: &'e mut Vec<usize>,
    pub(crate) limits: &'e ClientLimits,
    /// Called with a client whose redirection leads nowhere any more.
    pub(crate) redirection_is_broken: &'e dyn Fn(Receiver),
}

impl Receivers<'_> {
    /// Gives all deliveries to their receivers.
    pub(crate) fn deliver(&mut self, deliveries: &mut Vec<Delivery>) {
        for delivery in deliveries.drain(..) {
            for receiver in delivery.to.receivers() {
                self.deliver_to(*receiver, &delivery);
            }
        }
    }

    fn deliver_to(&mut self, receiver: Receiver, delivery: &Delivery) {
        // Another connection may have its place.
        let found = self.connections.get_mut(receiver.slot);
        let Some(connection) = found.filter(|connection| connection.session.id == receiver.client) else {
            if let Content::Invalidation { redirected_from: Some(origin), .. } = &delivery.content {
                (self.redirection_is_broken)(*origin);
            }
            return;
        };
        if connection.unsent_bytes() > self.limits.output_of(&connection.session).hard_bytes {
            connection.is_overrun = true;
        } else {
            match &delivery.content {
                Content::Message(message) => give_message(connection, message, delivery.number),
                Content::Invalidation { invalidation, redirected_from } => {
                    let is_redirected = redirected_from.is_some();
                    connection.give(Lsn(0), |connection| give_invalidation(connection, invalidation, is_redirected));
                }
                Content::RedirectionBroken => connection.give(Lsn(0), give_broken_redirection),
            }
        }
        if !connection.listed {
            connection.listed = true;
            self.to_send.push(receiver.slot);
        }
    }
}

fn give_message(connection: &mut Connection, message: &Message, delivery: u64) {
    let subscriptions = connection.session.subscriptions.as_deref();
    if !subscriptions.is_some_and(|subscriptions| subscriptions.wants(message.kind, &message.name, delivery)) {
        return;
    }
    connection.give(message.hold, |connection| connection.reply.push_frame(&message.frame));
}

/// RESP2 has no pushes: there only a subscriber that another connection has chosen receives them, as messages.
fn give_invalidation(connection: &mut Connection, invalidation: &Invalidation, is_redirected: bool) {
    let reply = &mut connection.reply;
    match reply.protocol() {
        Protocol::Resp3 => {
            reply.push(2);
            reply.bulk(b"invalidate");
        }
        Protocol::Resp2 if is_redirected && connection.session.subscriptions.is_some() => {
            reply.push(3);
            reply.bulk(b"message");
            reply.bulk(INVALIDATION_CHANNEL);
        }
        Protocol::Resp2 => return,
    }
    match &invalidation.keys {
        None => reply.null(),
        Some(keys) => {
            reply.array(keys.len());
            keys.iter().for_each(|key| reply.bulk(key));
        }
    }
}

fn give_broken_redirection(connection: &mut Connection) {
    let Connection { session, reply, .. } = connection;
    let Some(caching) = &mut session.tracking else { return };
    caching.is_broken = true;
    if reply.protocol() == Protocol::Resp3 {
        reply.push(2);
        reply.bulk(b"tracking-redir-broken");
        reply.integer(caching.redirect.cast_signed());
    }
    session.publish_tracking();
}
