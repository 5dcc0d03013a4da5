//! What commands and the node's thread share.

use crate::ring::Ring;
use command::blocking::Task;
use parking_lot::{Condvar, Mutex};
use proto::ReplyBuffer;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The membership of this node.
pub struct Cluster {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    servers: Vec<String>,
    /// Whether the list of servers has changed since the thread has looked.
    has_new_servers: bool,
    is_connected: bool,
    /// The ring, while this node is on the list of nodes.
    ring: Option<Arc<Ring>>,
    service: Option<String>,
    /// Whether the node is to be on the list.
    wants_membership: bool,
    rejoin: Option<Rejoin>,
    is_ended: bool,
}

/// What `stats zookeeper` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Whether a connection is open.
    pub is_connected: bool,
    /// Whether clients find this node.
    pub is_ready: bool,
    /// The service that it belongs to, once known.
    pub service: Option<String>,
    /// How many nodes the ring has; 0 when this one is not on it.
    pub nodes: usize,
}

/// An order to come back to the list after the session was lost; the command waits for its end.
#[derive(Clone, Debug, Default)]
pub struct Rejoin(Arc<OnceLock<bool>>);

impl Rejoin {
    fn end(&self, has_joined: bool) {
        let _ = self.0.set(has_joined);
    }
}

impl Task for Rejoin {
    fn is_over(&self) -> bool {
        self.0.get().is_some()
    }

    fn answer(&self, reply: &mut ReplyBuffer) -> Option<String> {
        match self.0.get() {
            Some(true) => {
                reply.text_line("Successfully rejoined");
                None
            }
            _ => {
                let text = "ERROR failed to rejoin ensemble";
                reply.text_line(text);
                Some(text.to_owned())
            }
        }
    }
}

/// The servers of a list as ARCUS and ZooKeeper write it: `host:port,...`. `None` when it is none.
pub fn parse_servers(list: &str) -> Option<Vec<String>> {
    let is_server = |server: &&str| {
        let parts = server.rsplit_once(':');
        parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0))
    };
    let servers: Vec<&str> = list.split(',').collect();
    servers.iter().all(is_server).then(|| servers.into_iter().map(str::to_owned).collect())
}

impl Cluster {
    /// A node that is on no list yet. It joins at once, or waits for [`Cluster::join`].
    pub fn new(servers: Vec<String>, joins: bool) -> Self {
        let state = State {
            servers,
            has_new_servers: false,
            is_connected: false,
            ring: None,
            service: None,
            wants_membership: joins,
            rejoin: None,
            is_ended: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    // ---- By commands.

    /// What `stats zookeeper` shows.
    pub fn figures(&self) -> Figures {
        let state = self.state.lock();
        Figures {
            is_connected: state.is_connected,
            is_ready: state.ring.is_some(),
            service: state.service.clone(),
            nodes: state.ring.as_ref().map_or(0, |ring| ring.nodes().len()),
        }
    }

    /// Whether clients find this node.
    pub fn is_ready(&self) -> bool {
        self.state.lock().ring.is_some()
    }

    /// The ring; `None` while this node is on no list.
    pub fn ring(&self) -> Option<Arc<Ring>> {
        self.state.lock().ring.clone()
    }

    /// The servers of ZooKeeper.
    pub fn servers(&self) -> Vec<String> {
        self.state.lock().servers.clone()
    }

    /// Moves the session to one of these servers.
    pub fn set_servers(&self, servers: Vec<String>) {
        let mut state = self.state.lock();
        (state.servers, state.has_new_servers) = (servers, true);
        self.changed.notify_all();
    }

    /// Has the node be on the list from now on.
    pub fn join(&self) {
        self.state.lock().wants_membership = true;
        self.changed.notify_all();
    }

    /// Has a node come back to the list that has left it; `None` when it has not left it.
    pub fn rejoin(&self) -> Option<Rejoin> {
        let mut state = self.state.lock();
        if state.wants_membership || state.rejoin.is_some() || state.is_ended {
            return None;
        }
        let order = Rejoin::default();
        (state.rejoin, state.wants_membership) = (Some(order.clone()), true);
        self.changed.notify_all();
        Some(order)
    }

    /// The server ends: the session is closed.
    pub fn end(&self) {
        let mut state = self.state.lock();
        state.is_ended = true;
        state.rejoin.iter().for_each(|order| order.end(false));
        self.changed.notify_all();
    }

    // ---- By the node's thread.

    pub(crate) fn is_ended(&self) -> bool {
        self.state.lock().is_ended
    }

    pub(crate) fn wants_membership(&self) -> bool {
        self.state.lock().wants_membership
    }

    pub(crate) fn take_new_servers(&self) -> bool {
        std::mem::take(&mut self.state.lock().has_new_servers)
    }

    pub(crate) fn set_connected(&self, is_connected: bool) {
        self.state.lock().is_connected = is_connected;
    }

    pub(crate) fn set_service(&self, service: &str) {
        self.state.lock().service = Some(service.to_owned());
    }

    /// The node is on the list, whose ring this is.
    pub(crate) fn set_ring(&self, ring: Arc<Ring>) {
        let mut state = self.state.lock();
        state.ring = Some(ring);
        if let Some(order) = state.rejoin.take() {
            order.end(true);
        }
    }

    /// The node is off the list. It stays off until a command has it come back.
    pub(crate) fn leave(&self) {
        let mut state = self.state.lock();
        (state.ring, state.wants_membership, state.is_connected) = (None, false, false);
    }

    /// An attempt has failed: a command that waits for it is answered.
    pub(crate) fn has_failed(&self) {
        let mut state = self.state.lock();
        if let Some(order) = state.rejoin.take() {
            order.end(false);
            state.wants_membership = false;
        }
    }

    /// Waits this long, or until something is ordered.
    pub(crate) fn wait(&self, time: Duration) {
        let deadline = Instant::now().checked_add(time);
        let mut state = self.state.lock();
        if state.is_ended {
            return;
        }
        if let Some(deadline) = deadline {
            self.changed.wait_until(&mut state, deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_servers() {
        assert_eq!(parse_servers("a:1,[::1]:2181"), Some(vec!["a:1".into(), "[::1]:2181".into()]));
        for list in ["", "a", "a:", ":1", "a:0", "a:1,", "a:70000", "a:1,,b:2"] {
            assert_eq!(parse_servers(list), None, "{list}");
        }
    }

    #[test]
    fn a_node_comes_back_only_after_it_has_left() {
        let cluster = Cluster::new(vec!["a:1".into()], true);
        assert!(cluster.rejoin().is_none() && !cluster.is_ready());
        let ring = || Arc::new(Ring::new(["x:1".into(), "y:1".into()], "x:1"));
        cluster.set_ring(ring());
        assert!(cluster.is_ready() && cluster.figures().nodes == 2);
        cluster.leave();
        assert!(!cluster.is_ready() && !cluster.wants_membership());
        let order = cluster.rejoin().unwrap();
        assert!(!order.is_over() && cluster.rejoin().is_none());
        cluster.has_failed();
        assert!(order.is_over() && !cluster.wants_membership());
        let order = cluster.rejoin().unwrap();
        cluster.set_ring(ring());
        assert_eq!(order.0.get(), Some(&true));
    }
}
