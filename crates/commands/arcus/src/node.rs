//! The thread that keeps a node on the list of its cluster.
//!
//! ```text
//! connect -> service of the mapping -> ephemeral node -> list and watch -> ring
//!    ^           ^                                            |
//!    |           '---------------- it was deleted, rejoin ----+
//!    '--- connection lost: the session continues -------------+--> expired: end of the server, or off the list
//! ```

use crate::cluster::{Cluster, Figures};
use crate::name::{Place, ring_name};
use crate::ring::Ring;
use base::Clock;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{info, warn};
use zookeeper::{Error, Identity, Lifetime, Session};

/// Where ARCUS keeps what it has in ZooKeeper.
const MAPPING: &str = "/arcus/cache_server_mapping";
const LISTS: &str = "/arcus/cache_list";
const LOG: &str = "/arcus/cache_server_log";

/// Time between two looks at what is ordered.
const LOOK: Duration = Duration::from_millis(50);
/// Time before what has failed is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// The longest name of a service.
const SERVICE_BYTES_MAX: usize = 128;

/// What the thread needs of its server.
pub struct Surroundings {
    /// For the days of ARCUS' log of nodes.
    pub clock: Arc<dyn Clock>,
    /// Whether the data is loaded.
    pub is_loaded: Box<dyn Fn() -> bool + Send>,
    /// The memory limit in bytes, which the ephemeral node says.
    pub memory_bytes: Box<dyn Fn() -> u64 + Send>,
    /// Whether a server whose session has expired ends.
    pub fails_stop: Box<dyn Fn() -> bool + Send>,
    /// Ends the server.
    pub stop: Box<dyn Fn() + Send>,
    /// Removes keys of other nodes.
    pub scrub: Box<dyn Fn(Arc<Ring>) + Send>,
}

/// The thread's state.
pub struct Node {
    cluster: Arc<Cluster>,
    place: Place,
    timeout: Duration,
    with: Surroundings,
    identity: Identity,
    /// What the last attempt failed with, so that it is said once.
    said: Option<String>,
    /// When keys of other nodes are to be removed, after one has come.
    scrub_at: Option<Instant>,
}

/// Why work on a connection is over.
#[derive(Debug)]
enum Stop {
    /// By ZooKeeper.
    Zookeeper(Error),
    /// This node cannot join now.
    NotNow(String),
    /// Another list of servers is to be used.
    NewServers,
    /// The ephemeral node was deleted by another client.
    Deleted,
    /// The server ends.
    Ended,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Zookeeper(error)
    }
}

impl Node {
    /// A node at this place, whose session ends after a silence of `timeout`.
    pub fn new(cluster: Arc<Cluster>, place: Place, timeout: Duration, with: Surroundings) -> Self {
        Self { cluster, place, timeout, with, identity: Identity::default(), said: None, scrub_at: None }
    }

    /// Keeps the node on the list until the end of the server.
    pub fn run(mut self) {
        while !self.cluster.is_ended() {
            if !(self.with.is_loaded)() || !self.cluster.wants_membership() {
                self.cluster.wait(LOOK);
                continue;
            }
            self.cluster.take_new_servers();
            let stop = self.on_a_connection();
            self.cluster.set_connected(false);
            match stop {
                Stop::Ended | Stop::NewServers => {}
                Stop::Deleted => {
                    warn!("ZooKeeper: the node of this server was deleted; it is off the list until zkensemble rejoin");
                    self.leave();
                }
                Stop::Zookeeper(Error::Expired) => self.has_expired(),
                Stop::Zookeeper(error) => self.failed(error.to_string()),
                Stop::NotNow(why) => self.failed(why),
            }
        }
    }

    /// Says what has failed, unless it said so before, and waits for the next attempt.
    fn failed(&mut self, why: String) {
        if self.said.as_ref() != Some(&why) {
            warn!("ZooKeeper: {why}; trying again");
        }
        self.said = Some(why);
        self.cluster.has_failed();
        self.cluster.wait(RETRY);
    }

    fn has_expired(&mut self) {
        self.identity = Identity::default();
        // A session that was never on the list: no client has used this node by it.
        if !self.cluster.is_ready() {
            return;
        }
        self.leave();
        if (self.with.fails_stop)() {
            warn!("ZooKeeper: the session has expired, and arcus-zkfailstop is yes: the server ends");
            (self.with.stop)();
        } else {
            warn!("ZooKeeper: the session has expired; the server is off the list until zkensemble rejoin");
        }
    }

    fn leave(&mut self) {
        self.scrub_at = None;
        self.cluster.leave();
    }

    /// Connects, joins and follows the list until something stops that.
    fn on_a_connection(&mut self) -> Stop {
        match Session::open(&self.cluster.servers(), &self.identity, self.timeout) {
            Err(error) => error.into(),
            Ok(mut session) => {
                self.identity = session.identity();
                self.cluster.set_connected(true);
                let stop = self.on(&mut session).err().unwrap_or(Stop::Ended);
                self.identity = session.identity();
                if matches!(stop, Stop::Ended | Stop::Deleted) {
                    if self.cluster.is_ready() {
                        self.log(&mut session, "leave");
                    }
                    self.identity = Identity::default();
                    // If it fails, the session ends by its silence.
                    let _ = session.close();
                }
                stop
            }
        }
    }

    fn on(&mut self, session: &mut Session) -> Result<(), Stop> {
        // A node that is on a list stays on it, whatever becomes of the mapping.
        let service = match self.cluster.figures() {
            Figures { is_ready: true, service: Some(service), .. } => service,
            _ => self.service(session)?,
        };
        self.cluster.set_service(&service);
        let list = format!("{LISTS}/{service}");
        if self.register(session, &list)? {
            info!("ZooKeeper: joined {list} as {} by {}", self.place.node_name(), session.server());
            self.log(session, "join");
        }
        self.said = None;
        self.follow(session, &list)
    }

    /// The service that this node was given to.
    fn service(&self, session: &mut Session) -> Result<String, Stop> {
        session.sync(MAPPING)?;
        for name in self.place.mapped_names() {
            let path = format!("{MAPPING}/{name}");
            let children = match session.children(&path, false) {
                Err(Error::NoNode { .. }) => continue,
                children => children?,
            };
            let [child] = children.as_slice() else {
                return Err(Stop::NotNow(format!("{path} has to name one service, and names {}", children.len())));
            };
            // What may follow is for later versions of ARCUS.
            let service = child.split('^').next().unwrap_or(child);
            if service.is_empty() || service.len() > SERVICE_BYTES_MAX {
                return Err(Stop::NotNow(format!("{path}: the name of the service is empty or too long")));
            }
            return Ok(service.to_owned());
        }
        let names = self.place.mapped_names().join(", ");
        Err(Stop::NotNow(format!("{MAPPING} has none of {names}: create one of them with the service as its child")))
    }

    /// Creates the ephemeral node; false when this session has it already.
    fn register(&self, session: &mut Session, list: &str) -> Result<bool, Stop> {
        let path = format!("{list}/{}", self.place.node_name());
        let megabytes = (self.with.memory_bytes)() >> 20;
        match session.create(&path, format!("{megabytes}MB").as_bytes(), Lifetime::Ephemeral) {
            Ok(_) => Ok(true),
            Err(Error::NodeExists { .. }) if session.owns(&path)? => Ok(false),
            Err(Error::NodeExists { .. }) => {
                Err(Stop::NotNow(format!("{path} belongs to an earlier session, which has to end first")))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Follows the list of nodes.
    fn follow(&mut self, session: &mut Session, list: &str) -> Result<(), Stop> {
        self.read_list(session, list)?;
        loop {
            if self.cluster.is_ended() {
                return Err(Stop::Ended);
            }
            if self.cluster.take_new_servers() {
                return Err(Stop::NewServers);
            }
            if self.scrub_at.is_some_and(|at| at <= Instant::now()) {
                self.scrub_at = None;
                self.cluster.ring().into_iter().for_each(|ring| (self.with.scrub)(ring));
            }
            if session.wait(LOOK)?.is_some() {
                self.read_list(session, list)?;
            }
        }
    }

    /// Reads the list, and watches it.
    fn read_list(&mut self, session: &mut Session, list: &str) -> Result<(), Stop> {
        let names = match session.children(list, true) {
            Err(Error::NoNode { .. }) => return Err(Stop::Deleted),
            names => names?,
        };
        let own = self.place.name();
        let ring = Arc::new(Ring::new(names.iter().map(|name| ring_name(name).to_owned()), &own));
        if !ring.has_own() {
            return Err(Stop::Deleted);
        }
        if let Some(before) = self.cluster.ring() {
            if before.nodes() != ring.nodes() {
                info!("ZooKeeper: the nodes of {list} are {}", ring.nodes().join(", "));
            }
            // Clients find a new node at once. Until then, they ask this one for keys that are that node's.
            if ring.nodes().iter().any(|node| !before.nodes().contains(node)) {
                self.scrub_at = Instant::now().checked_add(session.timeout());
            }
        }
        self.cluster.set_ring(ring);
        Ok(())
    }

    /// Notes in ARCUS' log of nodes what has happened. It is for operators, so a failure is no reason to stop.
    fn log(&self, session: &mut Session, what: &str) {
        let local = calendar::local(self.with.clock.now_ms(), &calendar::system_zone());
        let day = local.get(..10).unwrap_or(&local);
        let path = format!("{LOG}/{day}");
        let note = |session: &mut Session| match session.create(&path, b"", Lifetime::Persistent) {
            Ok(_) | Err(Error::NodeExists { .. }) => {
                let path = format!("{path}/{}-", self.place.node_name());
                session.create(&path, what.as_bytes(), Lifetime::PersistentSequential)
            }
            failed => failed,
        };
        if let Err(error) = note(session) {
            info!("ZooKeeper: \"{what}\" is not in {LOG}: {error}");
        }
    }
}
