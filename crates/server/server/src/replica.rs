//! The thread that makes a server the replica of a Redis or Valkey server.
//!
//! ```text
//! order -> connect -> +CONTINUE -----------------------------------------------> stream -> applied, acknowledged
//!            ^    '-> +FULLRESYNC -> FILE -> examined -> databases emptied -> loaded ---'      |
//!            '---------------------------- a moment ------------------------------ lost ------'
//! ```
//!
//! P1. A copy is received into a file and read once before anything is removed: a copy that breaks off, is damaged or
//!     cannot be taken leaves the old data.
//! P2. While a copy is loaded, clients get LOADING, and there is no log. A process that ends then starts with the old
//!     data.
//! P3. Nothing of the primary is applied before every turn of a worker that began before the order has ended. So no
//!     write of a client comes between.
//! P4. The position is data of the store: it changes in the record of the effects before it, so a killed process
//!     continues exactly where its data is. It is removed in the moment of a promotion, before any client can write.
//! P5. A promotion while a copy has the log off waits for the log, so that what is written after it is in the log. The
//!     server is a replica without a link meanwhile. No copy begins after a promotion was asked for.
//! P6. With `repl-diskless-load swapdb`, a copy is loaded into keyspaces above those of the databases, and takes their
//!     place under all locks. Commands see all of the old data until then, and REPLICAOF is refused. P1 and P2 hold,
//!     but for what clients get: what cannot be taken is found while loading, and what was loaded is dropped.

mod copy;

use crate::mailbox::Mailbox;
use crate::message::Message;
use crate::{executor::Shared, replica::copy::NotTaken};
use admin::adjust_role;
use base::DbIndex;
use command::Host;
use command::clients::Unblock;
use command::stats::WorkerStats;
use command::waiting::WaitingCommand;
use config::Settings;
use durability::{Durability, Tell};
use engine::{Effect, Keyspace, Serve, Waiter, WriteClass};
use replication::apply::{Applier, ApplyError, Outcome, Surroundings};
use replication::role::{LinkState, Next, Order};
use replication::runner::{BEGINNING, Runner};
use replication::{Link, LinkError, Opened, Position, Primary, Pump, Role, Spool, SpoolReader, Terms};
use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use store::{At, LockSet, Scratch, Txn};
use vfs::{FileSystem, FsError};

/// Time between two looks at whether something has happened.
const LOOK: Duration = Duration::from_millis(50);

/// Time before a lost connection is opened again, and before a copy is asked for again that could not be taken.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_OF_COPY: Duration = Duration::from_secs(10);

/// Files in the data directory that exist while a copy is received and the stream is applied.
const COPY_FILE: &str = ".replica-copy";
const STREAM_FILE: &str = ".replica-stream";

/// What the thread needs of its server.
pub(crate) struct Replica {
    pub shared: Arc<Shared>,
    pub role: Arc<Role>,
    pub mailboxes: Vec<Arc<Mailbox<Message>>>,
    pub durability: Arc<Durability>,
    pub fs: Arc<dyn FileSystem>,
    pub tell: Arc<dyn Tell>,
    /// Changes of the primary, for `save`.
    pub changes: Arc<AtomicU64>,
    /// The number by which locks and log know this thread.
    pub worker: usize,
}

/// Why a connection has ended.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    File(#[from] FsError),
    #[error(transparent)]
    Copy(#[from] NotTaken),
    #[error("{0}")]
    Stream(String),
    /// Another order, or the end of the server.
    #[error("the order is over")]
    Over,
}

impl From<ApplyError> for Lost {
    fn from(error: ApplyError) -> Self {
        Self::Stream(match error {
            ApplyError::Form { offset, expected } => format!("offset {offset} of the stream: expected {expected}"),
            ApplyError::Spool { offset, source } => format!("offset {offset} of the stream cannot be read: {source}"),
            ApplyError::Command { offset, why, .. } => format!("offset {offset} of the stream: {why}"),
            ApplyError::NotKept { .. } | ApplyError::Over => return Self::Over,
        })
    }
}

impl Replica {
    /// Follows what [`Role`] orders, until the end of the server.
    pub fn run(self) {
        let scratch = self.scratch();
        let runner = Runner::new(self.shared.table.clone()).publishing();
        let databases = self.settings().databases;
        let (store, clock) = (self.shared.store.clone(), self.shared.store.clock.clone());
        let mut applier = Applier::new(store, clock, (runner, scratch), self.worker, databases);
        while let Some(next) = self.role.wait_for_order() {
            match next {
                Next::Follow(order) => self.follow(&order, &mut applier),
                Next::Promote => self.promote(),
            }
        }
    }

    /// What serves the clients that wait for what is changed.
    fn scratch(&self) -> Scratch {
        let stats = Arc::new(WorkerStats::new(self.shared.table.rows().len()));
        let mut scratch = Scratch::default();
        scratch.serve_with(Arc::new(ServeReaders { shared: self.shared.clone(), stats }));
        scratch
    }

    /// Promotes the server when the log is on again (P5).
    fn promote(&self) {
        self.tell.say("PRIMARY MODE waits for the log, which a checkpoint of the copied data switches on");
        while self.role.wait_before_promotion(LOOK) {
            match self.durability.has_log_as_wanted() {
                Ok(true) => return promote_when_quiet(&self.shared, self.worker),
                Ok(false) => {}
                Err(why) => {
                    self.tell.warn(&format!("PRIMARY MODE is not enabled, since the log cannot be switched on: {why}"));
                    return self.role.refuse_promotion(why);
                }
            }
        }
    }

    /// Follows one order until it is over.
    fn follow(&self, order: &Order, applier: &mut Applier) {
        // The data of a start is loaded first.
        while order.stands() && self.shared.store.gate.is_loading() {
            self.role.wait(order, LOOK);
        }
        if !self.has_quiet_workers(&|| order.stands()) {
            return;
        }
        let clients = &self.shared.host.clients;
        for client in clients.all().iter().filter(|client| client.is_blocked()) {
            clients.unblock(client.id, Unblock::Error);
        }
        self.recall(order, applier);
        while order.stands() {
            let lost = self.session(order, applier);
            self.set_link(order, LinkState::Connect);
            let pause = match &lost {
                Err(Lost::Over) => continue,
                Err(Lost::Copy(_)) => RETRY_OF_COPY,
                _ => RETRY,
            };
            if order.stands() {
                match lost {
                    Ok(()) => self.tell.warn("Connection with primary lost."),
                    Err(why) => self.tell.warn(&format!("Connection with primary lost: {why}")),
                }
                self.role.wait(order, pause);
            }
        }
    }

    /// Continues where the data is. From primary to primary, ids say whether the data is the same.
    fn recall(&self, order: &Order, applier: &mut Applier) {
        applier.forget();
        applier.recall(&String::from_utf8_lossy(&self.shared.store.position.get()));
        if let Some(Position { id, offset }) = applier.position() {
            self.role.begin(order, id, *offset);
        }
    }

    /// Waits until each worker has ended the turn that it is in (P3); false when there is nothing to wait for any more.
    fn has_quiet_workers(&self, goes_on: &dyn Fn() -> bool) -> bool {
        let (passed, all_passed) = channel();
        self.mailboxes.iter().for_each(|mailbox| mailbox.send(Message::Fence(passed.clone())));
        let mut left = self.mailboxes.len();
        while left > 0 {
            match all_passed.recv_timeout(LOOK) {
                Ok(()) => left -= 1,
                Err(RecvTimeoutError::Timeout) if goes_on() => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// One connection, until it is lost or the order is over.
    fn session(&self, order: &Order, applier: &mut Applier) -> Result<(), Lost> {
        self.tell.say(&format!("Connecting to PRIMARY {}", order.primary));
        self.set_link(order, LinkState::Connecting);
        let settings = self.settings();
        let primary = primary_of(order, &settings);
        let (mut link, opened) = self.open(order, &primary, &settings, applier.position().cloned())?;
        self.role.connected(order, link.acknowledger());
        let copy = match &opened {
            Opened::Copy(position) => {
                self.tell.say(&format!("Full resync from primary: {}:{}", position.id, position.offset));
                self.set_link(order, LinkState::Sync);
                Some(self.receive_copy(order, &mut link)?)
            }
            Opened::Continue(position) => {
                let Position { id, offset } = position;
                self.tell.say(&format!("Successful partial resynchronization with primary: {id}:{offset}"));
                None
            }
        };
        let (Opened::Copy(position) | Opened::Continue(position)) = opened;
        self.role.begin(order, &position.id, position.offset);
        let path = self.path(STREAM_FILE);
        let spool = Arc::new(Spool::create(&*self.fs, &path)?);
        let silence_max = Duration::from_secs(settings.repl_timeout_seconds.into());
        let role = self.role.clone();
        let heard = Box::new(move |bytes| role.has_received(bytes));
        let pump = Pump::start(link, &primary, spool.clone(), order.is_over.clone(), silence_max, heard)?;
        let loaded = copy.map_or(Ok(()), |copy| self.load_copy(order, &copy, applier, &position));
        let done = loaded.and_then(|()| {
            applier.begin(position);
            self.set_link(order, LinkState::Connected);
            self.apply(order, applier, &spool, &pump)
        });
        let ended = pump.end();
        let _ = self.fs.remove_file(&path);
        done?;
        Ok(ended?)
    }

    /// Connects on a separate thread: a host that does not answer delays neither another order nor the end.
    fn open(
        &self,
        order: &Order,
        primary: &Primary,
        settings: &Settings,
        from: Option<Position>,
    ) -> Result<(Link, Opened), Lost> {
        let port = match settings.replica_announce_port {
            0 if settings.tls_replication && settings.tls_port != 0 => settings.tls_port,
            0 => settings.port,
            announced => announced,
        };
        let address = Some(settings.replica_announce_ip.clone()).filter(|address| !address.is_empty());
        let terms = Terms {
            port,
            address,
            silence_max: Duration::from_secs(settings.repl_timeout_seconds.into()),
            tls: self.shared.host.part::<crate::Needed, Arc<tls::Contexts>>().client(),
        };
        let (opened, result) = channel();
        let primary = primary.clone();
        thread::spawn(move || {
            // A receiver that is gone needs no link.
            let _ = opened.send(Link::open(&primary, &terms, from.as_ref()));
        });
        loop {
            match result.recv_timeout(LOOK) {
                Ok(opened) => return Ok(opened?),
                Err(RecvTimeoutError::Timeout) if order.stands() => {}
                Err(_) => return Err(Lost::Over),
            }
        }
    }

    /// Applies the stream until it ends.
    fn apply(&self, order: &Order, applier: &mut Applier, spool: &Arc<Spool>, pump: &Pump) -> Result<(), Lost> {
        let mut around = Around { replica: self, order, warned: None };
        applier.read(SpoolReader::new(spool.clone()));
        pump.processed(applier.offset());
        loop {
            if !order.stands() {
                return Err(Lost::Over);
            }
            if applier.has_more() || spool.wait(LOOK) {
                let outcome = applier.step(&mut around)?;
                pump.processed(applier.offset());
                self.role.has_applied(applier.offset());
                self.changes.fetch_add(applier.take_changes(), Ordering::Relaxed);
                match outcome {
                    Outcome::Applied => {}
                    Outcome::Asked => pump.acknowledge_now(),
                    Outcome::Ended => return Ok(()),
                }
            }
        }
    }

    fn set_link(&self, order: &Order, link: LinkState) {
        self.role.set_link(order, link);
        adjust_role(&self.shared.host, &self.settings());
    }

    fn settings(&self) -> Arc<Settings> {
        self.shared.host.configuration.current()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.durability.directory().join(name)
    }
}

/// Removes the position and makes the server a primary, under all locks: nothing of a client comes between.
fn promote_when_quiet(shared: &Shared, worker: usize) {
    let mut scratch = Scratch::default();
    let at = At { now: BEGINNING, db: DbIndex(0), touch: false, worker, writes: WriteClass::Nothing };
    let mut promote = || {
        shared.store.commit(&mut scratch, &LockSet::All, &at, |txn| {
            admin::become_primary(&shared.host, txn, "waited for the log");
            Ok(())
        })
    };
    while promote().is_err() {
        thread::yield_now();
    }
    if let Some(log) = shared.store.log_of(&mut scratch) {
        log.end_turn(worker);
    }
}

fn primary_of(order: &Order, settings: &Settings) -> Primary {
    let password = String::from_utf8_lossy(settings.primaryauth.expose()).into_owned();
    let user = settings.primaryuser.clone();
    Primary {
        host: order.primary.host.clone(),
        port: order.primary.port,
        user: Some(user).filter(|user| !user.is_empty()),
        password: Some(password).filter(|password| !password.is_empty()),
        is_tls: settings.tls_replication,
    }
}

/// The server, for the commands of its primary.
struct Around<'r> {
    replica: &'r Replica,
    order: &'r Order,
    /// When a log that takes nothing was warned about.
    warned: Option<Instant>,
}

impl Surroundings for Around<'_> {
    fn host(&self) -> &Host {
        &self.replica.shared.host
    }

    fn keep(&self, txn: &mut Txn<'_>, position: &str) {
        txn.apply(&Effect::Position { text: position.as_bytes() });
    }

    fn may_apply(&self) -> bool {
        self.order.stands()
    }

    fn leave_out(&mut self, command: &[u8], why: &str) -> bool {
        let name = command.escape_ascii();
        self.replica.tell.warn(&format!("the command {name} of the primary was left out, and the data differs: {why}"));
        true
    }

    fn wait_for_log(&mut self, why: &str) -> bool {
        if self.warned.is_none_or(|at| at.elapsed() > RETRY_OF_COPY) {
            self.warned = Some(Instant::now());
            self.replica.tell.warn(&format!("commands of the primary wait: {why}"));
        }
        self.replica.role.wait(self.order, LOOK);
        self.order.stands()
    }
}

/// Runs commands again that wait for what the primary changes. None of them changes anything itself.
struct ServeReaders {
    shared: Arc<Shared>,
    stats: Arc<WorkerStats>,
}

impl Serve for ServeReaders {
    fn serve(&self, ks: &mut dyn Keyspace, waiter: &dyn Waiter) -> bool {
        let waiter: &dyn Any = waiter;
        let command = waiter.downcast_ref::<WaitingCommand>().filter(|command| !command.writes());
        command.is_some_and(|command| command.run_again(ks, &self.shared.host, &self.stats))
    }
}
