//! Accepts connections, and bounds those of other hosts.
//!
//! D1. A connection of another host has [`Limits::login_within`] for its handshake and its login.
//! D2. Of those that have not logged in there are [`STRANGERS_MAX`]: one more closes the oldest.
//! D3. A second has [`FAR_PER_SECOND`] new connections of other hosts, since a handshake takes processor time from the
//!     workers. Others are closed at once.

use crate::Facts;
use crate::socket::Socket;
use crate::visit::Visit;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};

/// Connections of other hosts without a login.
const STRANGERS_MAX: usize = 64;

/// New connections of other hosts, each second.
const FAR_PER_SECOND: u32 = 50;

/// Time until accepting is tried again when the process has no descriptor left.
const RETRY: Duration = Duration::from_millis(100);

/// How clients connect.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Whether they speak TLS.
    pub is_tls: bool,
    /// How long one of another host may take to log in.
    pub login_within: Duration,
    /// Whether a client is on this host.
    pub is_near: fn(&SocketAddr) -> bool,
}

/// Connections of other hosts, over all addresses.
#[derive(Default)]
pub struct Strangers {
    queue: VecDeque<Weak<Visit>>,
    second: Option<Instant>,
    accepted: u32,
}

impl Strangers {
    /// Takes one in, unless this second has had too many (D2, D3).
    fn take(&mut self, visit: &Arc<Visit>, now: Instant) -> bool {
        if self.second.is_none_or(|second| now.duration_since(second) >= Duration::from_secs(1)) {
            (self.second, self.accepted) = (Some(now), 0);
        }
        if self.accepted >= FAR_PER_SECOND {
            return false;
        }
        self.accepted += 1;
        self.queue.retain(|other| other.upgrade().is_some_and(|other| !other.has_entered()));
        if self.queue.len() >= STRANGERS_MAX
            && let Some(oldest) = self.queue.pop_front().and_then(|oldest| oldest.upgrade())
        {
            oldest.end();
        }
        self.queue.push_back(Arc::downgrade(visit));
        true
    }
}

/// The listener of one address.
pub struct Door {
    tcp: TcpListener,
    facts: Arc<dyn Facts>,
    limits: Limits,
    strangers: Arc<Mutex<Strangers>>,
}

impl Door {
    /// Accepts from this listener.
    pub fn new(tcp: TcpListener, facts: Arc<dyn Facts>, limits: Limits, strangers: Arc<Mutex<Strangers>>) -> Self {
        Self { tcp, facts, limits, strangers }
    }

    /// The connection, unless it is one too many, or there are no certificates for it.
    fn admit(&self, tcp: TcpStream, address: SocketAddr) -> Option<(Socket, Visitor)> {
        let visit = Arc::new(Visit::new(address, (self.limits.is_near)(&address)));
        if !visit.is_near {
            let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
            if !strangers.take(&visit, Instant::now()) {
                return None;
            }
        }
        let config = if self.limits.is_tls { Some(self.facts.tls()?) } else { None };
        let socket = Socket::new(tcp, config, visit.clone(), self.limits.login_within).ok()?;
        Some((socket, Visitor(visit)))
    }
}

/// The visit of a connection, for its requests.
#[derive(Clone, Debug)]
pub struct Visitor(pub Arc<Visit>);

impl Connected<IncomingStream<'_, Door>> for Visitor {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Self {
        stream.remote_addr().clone()
    }
}

impl Listener for Door {
    type Io = Socket;
    type Addr = Visitor;

    async fn accept(&mut self) -> (Socket, Visitor) {
        loop {
            match self.tcp.accept().await {
                Ok((tcp, address)) => {
                    if let Some(admitted) = self.admit(tcp, address) {
                        return admitted;
                    }
                }
                Err(_) => tokio::time::sleep(RETRY).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<Visitor> {
        Ok(Visitor(Arc::new(Visit::new(self.tcp.local_addr()?, true))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    fn far() -> Arc<Visit> {
        Arc::new(Visit::new(([10, 0, 0, 1], 1).into(), false))
    }

    #[test]
    fn the_oldest_stranger_makes_room() {
        let (mut strangers, mut now) = (Strangers::default(), Instant::now());
        let mut visits = Vec::new();
        let mut take = |visit: &Arc<Visit>| {
            now += Duration::from_secs(1);
            assert!(strangers.take(visit, now));
        };
        for number in 0..=STRANGERS_MAX {
            visits.push(far());
            take(&visits[number]);
        }
        let is_over = |visit: &Arc<Visit>| visit.is_over(Waker::noop());
        assert!(is_over(&visits[0]) && visits[1..].iter().all(|visit| !is_over(visit)));
        visits[1].enter();
        visits.push(far());
        take(&visits[STRANGERS_MAX + 1]);
        assert!(visits[1..].iter().all(|visit| !is_over(visit)), "one that logged in makes room, and stays");
    }

    #[test]
    fn new_connections_are_limited_by_the_second() {
        let (mut strangers, now) = (Strangers::default(), Instant::now());
        let taken = (0..FAR_PER_SECOND + 5).filter(|_| strangers.take(&far(), now)).count();
        assert_eq!(taken, FAR_PER_SECOND as usize);
        assert!(strangers.take(&far(), now + Duration::from_secs(1)));
    }
}
