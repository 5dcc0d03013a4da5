//! A worker as the attendant, and as one that gets its connections back ([`desk`](crate::desk)).

use super::{Wire, Worker};
use crate::client_memory::Charge;
use crate::connection::Connection;
use crate::desk::Returned;
use crate::lent_socket;
use crate::message::Message;
use crate::socket::Socket;
use command::Session;
use command::clients::{ClientInfo, Clients};
use command::login::Login;
use mio::event::Source;
use proto::Protocol;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// A connection that the attendant has.
pub(super) struct Lent {
    /// The worker that it goes to.
    home: usize,
    /// That worker has a descriptor of its socket, and a place for it.
    is_known_there: bool,
}

impl Worker {
    /// A script keeps that worker: borrows its connections.
    pub(super) fn attend(&mut self, busy: usize) {
        for message in self.desk.untaken(busy) {
            if let Message::Accept { session, .. } = &message {
                session.info.move_to(self.number);
                self.lent.insert(session.id, Lent { home: busy, is_known_there: false });
            }
            self.handle(message);
        }
        let clients = self.shared.host.part::<Clients>().all();
        clients.into_iter().filter(|info| info.worker() == busy).for_each(|info| self.borrow(info, busy));
    }

    fn borrow(&mut self, info: Arc<ClientInfo>, home: usize) {
        if !info.lend(self.number) {
            return;
        }
        let Ok(socket) = lent_socket::duplicate(&info) else { return info.move_to(home) };
        let session = Session::from_info(info.clone(), self.shared.host.part::<Login>().users.default_user());
        let mut connection = Connection::new(session);
        if info.protocol_version() == 3 {
            connection.reply.set_protocol(Protocol::Resp3);
        }
        connection.last_command = info.last_command();
        self.lent.insert(info.id, Lent { home, is_known_there: true });
        self.accept(socket, connection);
    }

    /// A new connection goes to a worker as soon as no script keeps any.
    pub(super) fn note_new(&mut self, client: u64) {
        if self.number == self.desk.attendant() {
            let home = self.desk.next_worker();
            self.lent.entry(client).or_insert(Lent { home, is_known_there: false });
        }
    }

    /// The script has ended: its worker gets its connections back, and waits for that.
    pub(super) fn leave(&mut self, left: &Sender<()>) {
        self.give_all_back();
        // Without a receiver the server ends.
        let _ = left.send(());
    }

    /// Gives the connections back that can be moved now.
    pub(super) fn give_all_back(&mut self) {
        let clients: Vec<u64> = self.lent.keys().copied().collect();
        clients.into_iter().for_each(|client| self.give_back(client));
    }

    fn give_back(&mut self, client: u64) {
        let (Some(&id), Some(lent)) = (self.by_client.get(&client), self.lent.get_mut(&client)) else { return };
        let is_known_there = std::mem::take(&mut lent.is_known_there);
        let home = lent.home;
        if !self.is_movable(id) {
            if is_known_there {
                self.desk.give(home, Returned::Gone(client));
            }
            return;
        }
        self.lent.remove(&client);
        let Some((mut connection, socket)) = self.release(id) else { return };
        connection.session.info.move_to(home);
        connection.awaits_log = false;
        let socket = socket.filter(|_| !is_known_there);
        self.desk.give(home, Returned::Back { connection: Box::new(connection), socket });
    }

    fn is_movable(&mut self, id: usize) -> bool {
        let is_open = self
            .wires
            .get(id)
            .and_then(Option::as_ref)
            .is_some_and(|wire| !wire.socket.is_handshaking() && !wire.socket.has_pending() && !wire.ended);
        is_open && self.executor.connection(id).is_some_and(|connection| connection.is_movable())
    }

    /// Forgets a connection that lives on elsewhere.
    fn release(&mut self, id: usize) -> Option<(Connection, Option<Socket>)> {
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
        self.memory.change(std::mem::take(&mut connection.charge), Charge::default());
        Some((connection, socket))
    }

    /// A connection is being closed: the worker that has lent it forgets it, too.
    pub(super) fn note_closed(&mut self, client: u64, id: usize) {
        let Some(lent) = self.lent.remove(&client) else { return };
        if lent.is_known_there {
            // Or the client would not learn of it before the script ends.
            self.wires.get(id).iter().copied().flatten().for_each(|wire| wire.socket.shut_down());
            self.desk.give(lent.home, Returned::Gone(client));
        }
    }

    /// Takes over what the attendant has given.
    #[cold]
    pub(super) fn take_returned(&mut self) {
        for returned in self.desk.take_returned(self.number) {
            match returned {
                Returned::Gone(client) => {
                    if let Some(id) = self.by_client.get(&client).copied() {
                        self.release(id);
                    }
                }
                Returned::Back { connection, socket } => self.take_back(*connection, socket),
            }
        }
    }

    fn take_back(&mut self, connection: Connection, socket: Option<Socket>) {
        let client = connection.session.id;
        match (self.by_client.get(&client).copied(), socket) {
            (Some(id), _) => {
                self.executor.replace(id, connection);
                if let Some(wire) = self.wires.get_mut(id).and_then(Option::as_mut) {
                    // What the events said meanwhile was for the attendant.
                    (wire.readable, wire.writable) = (true, true);
                }
            }
            (None, Some(socket)) => self.accept(socket, connection),
            (None, None) => return self.shared.host.part::<Clients>().disconnect(client),
        }
        let Some(id) = self.by_client.get(&client).copied() else { return };
        if self.executor.connection(id).is_some_and(|connection| connection.session.info.is_killed()) {
            return self.close(id);
        }
        self.send(id);
        self.make_ready(id);
    }

    /// Notes that nothing of a connection is under way, if that is so.
    #[inline]
    pub(super) fn note_rest(&mut self, id: usize) {
        let is_plain = self.wires.get(id).and_then(Option::as_ref).is_some_and(|wire| wire.socket.is_plain());
        if is_plain
            && let Some(connection) = self.executor.connection(id)
            && connection.is_at_rest()
        {
            connection.session.info.rest();
        }
    }
}
