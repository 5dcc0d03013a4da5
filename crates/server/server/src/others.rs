//! The other connections of a worker while a request of one of them runs: a script that takes long lends them from deep
//! in the stack ([`desk`](crate::desk)).

use crate::connection::{Connection, Waiting};
use crate::executor::connections::Connections;
use crate::executor::pending::{CLOSED, Parsing, Pending, Source};
use crate::lent::Lent;
use crate::lent_socket;
use proto::Arguments;
use std::cell::{Cell, RefCell};
use std::ptr;

thread_local! {
    /// The [`Others`] of the innermost [`among`] of this thread.
    static OTHERS: Cell<*const ()> = const { Cell::new(ptr::null()) };
}

/// What has come of other connections and has not run.
#[derive(Clone, Copy)]
pub(crate) struct Unrun<'a> {
    pub(crate) batch: &'a [Pending],
    pub(crate) area: &'a [u8],
    pub(crate) own_inputs: &'a [Vec<u8>],
    pub(crate) arguments: &'a Arguments,
    pub(crate) parsing: &'a Cell<Parsing>,
}

/// The other connections.
pub(crate) struct Others<'a> {
    connections: RefCell<&'a mut Connections>,
    unrun: Unrun<'a>,
}

/// Calls `body`, within which [`others`] finds these connections.
pub(crate) fn among<R>(connections: &mut Connections, unrun: Unrun<'_>, body: impl FnOnce() -> R) -> R {
    /// Puts back what was there, after a panic too.
    struct Reset(*const ());

    impl Drop for Reset {
        fn drop(&mut self) {
            OTHERS.set(self.0);
        }
    }

    if !connections.has_others() {
        return body();
    }
    let others = Others { connections: RefCell::new(connections), unrun };
    let _reset = Reset(OTHERS.replace(ptr::from_ref(&others).cast()));
    body()
}

/// Calls `use_them` with the other connections, if there are any.
pub(crate) fn others<R>(use_them: impl for<'o> FnOnce(&'o Others<'o>) -> R) -> Option<R> {
    let found = OTHERS.get().cast::<Others<'_>>();
    // SAFETY: the pointer is null or was made in `among` of this thread from an `Others` that lives, unmoved and only
    // shared, until `among` has put the pointer before it back. What `use_them` gets is valid for this call alone.
    unsafe { found.as_ref() }.map(use_them)
}

impl Others<'_> {
    /// Takes away those that can be served elsewhere, with their requests that have not run.
    pub(crate) fn lend(&self) -> Vec<Lent> {
        let mut connections = self.connections.borrow_mut();
        let parsing = self.unrun.parsing.get();
        let is_lendable = |id, connection: &mut Connection| connection.is_lendable() && parsing != Parsing::Pinned(id);
        let mut all = Vec::new();
        for (place, connection) in connections.take_those(is_lendable) {
            match lent_socket::duplicate(&connection) {
                Ok(socket) => all.push(Lent { place, connection, socket }),
                // It waits: there are too many descriptors.
                Err(_) => connections.put(place, connection),
            }
        }
        let find = |all: &[Lent], id| all.binary_search_by_key(&id, |lent| lent.place).ok();
        for pending in self.unrun.batch {
            if let Some(index) = find(&all, pending.connection.get()) {
                let args = pending.args(self.unrun.area, self.unrun.own_inputs, self.unrun.arguments).to_owned();
                all[index].connection.waiting.push_back(Waiting { row: pending.row, args });
                pending.connection.set(CLOSED);
            }
        }
        if let Parsing::Rest { id, source, at, end } = parsing
            && let Some(index) = find(&all, id)
        {
            let input = match source {
                Source::Area => self.unrun.area,
                Source::Own(index) => &self.unrun.own_inputs[index as usize],
            };
            all[index].connection.unparsed.extend_from_slice(&input[at..end]);
            self.unrun.parsing.set(Parsing::Nothing);
        }
        for Lent { connection, .. } in &mut all {
            connection.leave();
        }
        all
    }

    /// Puts connections back where they were.
    pub(crate) fn take_back(&self, back: impl Iterator<Item = (usize, Box<Connection>)>) {
        let mut connections = self.connections.borrow_mut();
        for (place, mut connection) in back {
            connection.leave();
            connections.put(place, connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use command::Session;

    fn connection(client: u64) -> Box<Connection> {
        Box::new(Connection::new(Session::new(client, true, 0)))
    }

    fn clients() -> Option<Vec<u64>> {
        others(|others| others.connections.borrow().iter().map(|(_, it)| it.session.id).collect())
    }

    /// What is found is what the innermost call has, also after a panic.
    #[test]
    fn others_are_found_within_the_call() {
        let (arguments, parsing) = (Arguments::new(), Cell::default());
        let unrun = Unrun { batch: &[], area: &[], own_inputs: &[], arguments: &arguments, parsing: &parsing };
        let mut all = Connections::default();
        let ids = [1, 2].map(|client| all.insert(connection(client)));
        let own = all.take(ids[0]).expect("it is there");
        assert_eq!(clients(), None);
        among(&mut all, unrun, || {
            assert_eq!(clients(), Some(vec![2]));
            let mut inner = Connections::default();
            inner.insert(connection(3));
            inner.insert(connection(4));
            let panics = || among(&mut inner, unrun, || std::panic::panic_any(clients()));
            let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).expect_err("it panics");
            assert_eq!(found.downcast_ref(), Some(&Some(vec![3_u64, 4])));
            others(|others| others.take_back([(ids[1], connection(5))].into_iter()));
            assert_eq!(clients(), Some(vec![5]));
        });
        assert_eq!(clients(), None);
        all.put(ids[0], own);
        assert_eq!(all.iter().map(|(_, it)| it.session.id).collect::<Vec<_>>(), [1, 5]);
    }
}
