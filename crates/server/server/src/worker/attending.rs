//! A worker as the attendant, and as one that gets its connections back ([`desk`](crate::desk)).

use super::{Wire, Worker};
use crate::connection::Connection;
use crate::desk::Returned;
use crate::lent::{Back, Lent};
use crate::message::Message;
use crate::socket::Socket;
use mio::event::Source;

/// A connection that the attendant has for another worker.
#[derive(Clone, Copy)]
pub(super) struct Ward {
    /// The worker that it goes to.
    home: usize,
    /// Its place there, if it was lent; else it is new.
    place: Option<usize>,
}

impl Worker {
    /// A script keeps that worker: serves its connections.
    pub(super) fn attend(&mut self, busy: usize, lent: Vec<Lent>) {
        for message in self.desk.untaken(busy) {
            if let Message::Accept { session, .. } = &message {
                session.info.move_to(self.number);
                self.wards.insert(session.id, Ward { home: busy, place: None });
            }
            self.handle(message);
        }
        for Lent { place, mut connection, socket } in lent {
            let client = connection.session.id;
            connection.is_lent = true;
            self.wards.insert(client, Ward { home: busy, place: Some(place) });
            self.accept(socket, connection);
            if let Some(id) = self.by_client.get(&client).copied() {
                // Replies of the turn that the script has stopped.
                self.send(id);
            }
        }
    }

    /// A new connection goes to a worker as soon as no script keeps any.
    pub(super) fn note_new(&mut self, client: u64) {
        if self.number == self.desk.attendant() {
            let home = self.desk.next_worker();
            self.wards.entry(client).or_insert(Ward { home, place: None });
        }
    }

    /// The script of that worker has ended: what it has lent.
    pub(super) fn leave(&mut self, worker: usize) -> Vec<Back> {
        let mut back = Vec::new();
        self.closed_wards.retain(|(client, home, place)| {
            let is_meant = *home == worker;
            if is_meant {
                back.push(Back { place: *place, client: *client, connection: None });
            }
            !is_meant
        });
        let lent = self.wards.iter().filter_map(|(client, ward)| Some((*client, *ward, ward.place?)));
        let lent: Vec<_> = lent.filter(|(_, ward, _)| ward.home == worker).collect();
        for (client, _, place) in lent {
            self.wards.remove(&client);
            let connection = self.by_client.get(&client).copied().and_then(|id| self.release(id)).map(|(it, _)| it);
            back.push(Back { place, client, connection });
        }
        if !self.desk.is_attending() {
            self.give_new();
        }
        back
    }

    /// Gives the new connections that can be moved now to their workers.
    pub(super) fn give_new(&mut self) {
        let new = self.wards.iter().filter(|(_, ward)| ward.place.is_none());
        let new: Vec<(u64, usize)> = new.map(|(client, ward)| (*client, ward.home)).collect();
        for (client, home) in new {
            let Some(id) = self.by_client.get(&client).copied().filter(|id| self.is_movable(*id)) else { continue };
            self.wards.remove(&client);
            if let Some((connection, Some(socket))) = self.release(id) {
                connection.session.info.move_to(home);
                self.desk.give(home, Returned::New { connection, socket });
            }
        }
    }

    fn is_movable(&mut self, id: usize) -> bool {
        let wire = self.wires.get(id).and_then(Option::as_ref);
        let is_open =
            wire.is_some_and(|wire| !wire.socket.is_handshaking() && !wire.socket.has_pending() && !wire.ended);
        is_open && self.executor.connection(id).is_some_and(|connection| connection.is_movable())
    }

    /// Forgets a connection that lives on elsewhere.
    fn release(&mut self, id: usize) -> Option<(Box<Connection>, Option<Socket>)> {
        let socket = self.wires.get_mut(id).and_then(Option::take).map(|Wire { mut socket, .. }| {
            // One that is gone already needs no deregistration.
            let _ = socket.deregister(self.poll.registry());
            socket
        });
        for list in [&mut self.held, &mut self.log_held, &mut self.unfinished] {
            list.retain(|other| *other != id);
        }
        self.ready.retain(|other| *other != id);
        self.handshakes.retain(|other| *other != id);
        let mut connection = self.executor.release(id)?;
        self.by_client.remove(&connection.session.id);
        (connection.is_lent, connection.awaits_log) = (false, false);
        Some((connection, socket))
    }

    /// A connection is being closed: the worker that has lent it is to forget it, too.
    pub(super) fn note_closed(&mut self, client: u64, id: usize) {
        let Some(Ward { home, place }) = self.wards.remove(&client) else { return };
        if let Some(place) = place {
            self.closed_wards.push((client, home, place));
            if let Some(Some(wire)) = self.wires.get_mut(id) {
                // Or the client would not learn of it before the script ends.
                wire.socket.close();
                wire.socket.shut_down();
            }
        }
    }

    /// Continues with what this worker was given.
    #[cold]
    pub(super) fn take_returned(&mut self) {
        for returned in self.desk.take_returned(self.number) {
            match returned {
                Returned::Closed { place, client } => {
                    self.release(place);
                    self.by_client.remove(&client);
                }
                Returned::Back(place) => {
                    if let Some(wire) = self.wires.get_mut(place).and_then(Option::as_mut) {
                        // What the events said meanwhile was for the attendant.
                        (wire.readable, wire.writable) = (true, true);
                    }
                    self.go_on(place);
                }
                Returned::New { connection, socket } => {
                    let client = connection.session.id;
                    self.accept(socket, connection);
                    self.by_client.get(&client).copied().into_iter().for_each(|id| self.go_on(id));
                }
            }
        }
    }

    fn go_on(&mut self, id: usize) {
        if self.executor.connection(id).is_some_and(|connection| connection.session.info.is_killed()) {
            return self.close(id);
        }
        self.send(id);
        self.make_ready(id);
    }
}
