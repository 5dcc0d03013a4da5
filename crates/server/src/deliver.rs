//! Messages that are no replies, from the worker's outlet into the output of its connections.
//!
//! They go in between requests, so that a message stands behind the reply of the command that caused it and never inside one.

use crate::connection::Connection;
use crate::executor::ClientLimits;
use base::Lsn;
use push::{Delivery, Message, Receiver};
use slab::Slab;

/// Output delivered in one step: other connections have their turn in between.
pub(crate) const DELIVERED_BYTES_MAX: usize = 1 << 20;

/// Gives all deliveries to their receivers, and lists these for sending.
pub(crate) fn deliver(
    deliveries: &mut Vec<Delivery>,
    connections: &mut Slab<Connection>,
    to_send: &mut Vec<usize>,
    limits: &ClientLimits,
) {
    for delivery in deliveries.drain(..) {
        for receiver in delivery.to.receivers() {
            let Some(connection) = receiving(connections, receiver) else { continue };
            if is_wanted(connection, &delivery) {
                give(connection, &delivery.message, limits);
                if !connection.listed {
                    connection.listed = true;
                    to_send.push(receiver.slot);
                }
            }
        }
    }
}

/// The connection that is meant, unless it has closed meanwhile.
fn receiving<'c>(connections: &'c mut Slab<Connection>, receiver: &Receiver) -> Option<&'c mut Connection> {
    connections.get_mut(receiver.slot).filter(|connection| connection.session.id == receiver.client)
}

fn is_wanted(connection: &Connection, delivery: &Delivery) -> bool {
    let Message { kind, name, .. } = &*delivery.message;
    let subscriptions = connection.session.subscriptions.as_deref();
    subscriptions.is_some_and(|subscriptions| subscriptions.wants(*kind, name, delivery.number))
}

fn give(connection: &mut Connection, message: &Message, limits: &ClientLimits) {
    let unsent = connection.reply.len();
    if unsent > limits.output_of(&connection.session).hard_bytes {
        connection.is_overrun = true;
        return;
    }
    if message.hold > Lsn(0) {
        connection.held.hold(unsent, message.hold);
    }
    connection.reply.push_frame(&message.frame);
}
