//! Startup and shutdown: from settings to running workers, and back.

use crate::announce::{Announcer, classes_of};
use crate::carrier::Couriers;
use crate::client_memory::ClientMemory;
use crate::descriptors::raise_limit;
use crate::dialect::Language;
use crate::ending::Ending;
use crate::executor::{ClientLimits, Shared};
use crate::fetching::{Fetches, RowThreads};
use crate::listen::{Acceptor, AcceptorHandle, Endpoint, Entrance, Place, listen_unix};
use crate::mailbox::Mailbox;
use crate::observe;
use crate::socket::Socket;
use crate::strangers::Strangers;
use crate::upkeep::Upkeep;
use crate::worker::{Message, Worker};
use admin::hot_key_session::Totals;
use admin::{
    About, Apply, CommandLog, Configuration, Explanations, Figures, LatencyMonitor, ShutdownRequest, WorkerFigures,
};
use base::rate::OncePerSecond;
use base::{Clock, DbIndex, Entropy};
use command::call::Observer;
use command::clients::{Address, Clients, Closer, TOO_MANY};
use command::limits::{SparseLimit, StampMeaning, StringLimit};
use command::login::Login;
use command::parcel::Carrier;
use command::pause::Pause;
use command::stats::WorkerStats;
use command::{CommandSpec, CommandTable, Host, Session};
use config::{
    CompressionCodec, CompressionTime, Directive, EvictionPolicy, Loaded, MemoryShare, Refused, RewriteError, Settings,
};
use durability::{Durability, DurabilityError, Parts, Phase, Policy, Tell, WriteRdb};
use engine_mem::{EvictionOrder, EvictionScope, StampMode};
use parking_lot::RwLock;
use push::{Outlets, PubSub, Tracking};
use std::convert::Infallible;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};
use store::compression::{self, Codec};
use store::shard::ShardEngine;
use store::slots::SlotMap;
use store::{Store, StoreOptions, Wake, WorkerSet};
use vfs::FileSystem;

/// The least automatic limit of the memory of all clients.
const AUTOMATIC_CLIENT_BYTES_MIN: u64 = 256 << 20;

/// Time between two lines about how far loading is.
const PROGRESS: Duration = Duration::from_secs(5);

/// How long CONFIG SET waits for all shard locks to change `appendfsync`. Commands hold them for microseconds; a worker that
/// the system does not run holds one for some tens of milliseconds.
const MODE_PATIENCE: Duration = Duration::from_millis(500);

/// The same inside EXEC. If EXEC holds a shard itself no wait helps, and meanwhile other clients wait for that shard.
const MODE_PATIENCE_IN_TRANSACTION: Duration = Duration::from_millis(5);

/// After so many rounds of upkeep, ten a second, memory is given back again after a burst: by then whoever held it last has let
/// go of it.
const TRIM_AGAIN_ROUNDS: [u32; 2] = [15, 50];

/// What keeps a server from starting or running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}{}", if source.kind() == io::ErrorKind::AddrInUse {
        " (another program uses it: stop that one, or choose another with --port)"
    } else { "" })]
    Listen {
        /// The address or path.
        address: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Threads or event queues are not to be had, or fail.
    #[error("{0}")]
    System(#[from] io::Error),
    /// Nothing to listen on.
    #[error("nothing to listen on: port is 0 and unixsocket is not set")]
    NoListener,
    /// The data cannot be brought back; nothing was served.
    #[error("{0}")]
    Recovery(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The data directory cannot be opened.
    #[error(
        "cannot open data directory {}: {source}; run as its owner, stop the process that uses it, or choose another directory \
         with --dir",
        path.display()
    )]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: DurabilityError,
    },
    /// The data directory cannot be left in order.
    #[error(transparent)]
    Durability(#[from] DurabilityError),
    /// The server was forced to end although its data could not be saved.
    #[error("ended by force, and the last changes are lost: {why}")]
    Unsaved {
        /// What failed.
        why: String,
    },
    /// The password is too long.
    #[error("requirepass is longer than {} bytes", command::login::PASSWORD_BYTES_MAX)]
    Password,
}

/// The families of all crates that have rows.
fn families() -> Vec<&'static [&'static CommandSpec]> {
    [command::redis::FAMILIES, script::FAMILIES, admin::FAMILIES].concat()
}

/// Wakes workers through their mailboxes, and closes clients there.
#[derive(Default)]
struct Mailboxes(OnceLock<Vec<Arc<Mailbox<Message>>>>);

impl Mailboxes {
    fn all(&self) -> &[Arc<Mailbox<Message>>] {
        self.0.get().map(Vec::as_slice).unwrap_or_default()
    }
}

impl Wake for Mailboxes {
    fn wake(&self, workers: WorkerSet) {
        let woken = self.all().iter().enumerate().filter(|(number, _)| workers.contains(*number));
        woken.for_each(|(_, mailbox)| mailbox.wake());
    }
}

impl Closer for Mailboxes {
    fn close(&self, worker: usize, id: u64) {
        if let Some(mailbox) = self.all().get(worker) {
            mailbox.send(Message::Close(id));
        }
    }

    fn end_wait(&self, worker: usize, id: u64) {
        if let Some(mailbox) = self.all().get(worker) {
            mailbox.send(Message::EndWait(id));
        }
    }
}

/// Puts changed settings into force.
struct Applied {
    shared: Arc<OnceLock<Weak<Shared>>>,
    acceptor: AcceptorHandle,
    memory: Arc<ClientMemory>,
    file: Option<PathBuf>,
    /// The log, which follows its settings; `None` without a data directory.
    tell: Option<Arc<dyn Tell>>,
}

impl Apply for Applied {
    fn apply(&self, row: &'static Directive, settings: &Settings) -> Result<(), String> {
        let Some(shared) = self.shared.get().and_then(Weak::upgrade) else { return Ok(()) };
        *shared.limits.write() = ClientLimits::of(settings);
        set_budget(&shared.store, settings);
        shared.store.notices.ask_for_events(classes_of(&settings.keyspace_events));
        let tracking = shared.host.part::<Arc<Tracking>>();
        tracking.set_keys_max(usize::try_from(settings.tracked_keys_max).unwrap_or(usize::MAX));
        set_packed(&shared.store, settings);
        set_compression(&shared.store, settings);
        self.memory.set_limits(client_bytes_max(settings), settings.maxmemory_bytes);
        match row.name {
            "port" | "bind" | "memcached-port" => self
                .acceptor
                .move_to(&places(settings), backlog(settings))
                .map_err(|(address, error)| format!("cannot listen on {address}: {error}")),
            "database" => {
                Err("the engine of a database is fixed while the server runs, and once it has been written to. Give \
                               an empty database another engine at a start: --database '0 engine disk'"
                    .to_owned())
            }
            "loglevel" | "log-format" | "log-timestamp-format" => {
                self.tell.iter().for_each(|tell| tell.follow(settings));
                Ok(())
            }
            "maxclients" => raise_limit(settings.maxclients)
                .map_err(|possible| format!("the operating system allows descriptors for {possible} clients only")),
            _ => Ok(()),
        }
    }

    fn finish(&self, settings: &Settings, in_transaction: bool) -> Result<(), Refused> {
        let shared = self.shared.get().and_then(Weak::upgrade);
        let Some(durability) = shared.as_ref().and_then(|shared| shared.host.find::<Arc<Durability>>()) else {
            return Ok(());
        };
        let patience = if in_transaction { MODE_PATIENCE_IN_TRANSACTION } else { MODE_PATIENCE };
        durability.set_policy(Policy::of(settings), patience).map_err(|error| Refused {
            directive: "appendfsync",
            reason: match in_transaction {
                true => {
                    "a transaction that uses keys cannot change it, and nothing was changed: send CONFIG SET outside \
                         MULTI"
                        .to_owned()
                }
                false => format!("{error}, and nothing was changed: send it again"),
            },
        })
    }

    fn note(&self, text: &str) {
        self.tell.iter().for_each(|tell| tell.say(text));
    }

    fn rewrite(&self, settings: &Settings) -> Result<(), RewriteError> {
        config::rewrite(settings, self.file.as_deref(), &vfs::RealFs)
    }
}

fn set_budget(store: &Store, settings: &Settings) {
    use EvictionPolicy as P;
    let policy = |scope, order| Some(engine_mem::EvictionPolicy { scope, order });
    let policy = match settings.maxmemory_policy {
        P::NoEviction => None,
        P::AllkeysLru => policy(EvictionScope::All, EvictionOrder::Lru),
        P::AllkeysLfu => policy(EvictionScope::All, EvictionOrder::Lfu),
        P::AllkeysRandom => policy(EvictionScope::All, EvictionOrder::Random),
        P::VolatileLru => policy(EvictionScope::Expiring, EvictionOrder::Lru),
        P::VolatileLfu => policy(EvictionScope::Expiring, EvictionOrder::Lfu),
        P::VolatileRandom => policy(EvictionScope::Expiring, EvictionOrder::Random),
        P::VolatileTtl => policy(EvictionScope::Expiring, EvictionOrder::Ttl),
    };
    let stamps = match settings.maxmemory_policy {
        P::AllkeysLfu | P::VolatileLfu => {
            StampMode::Frequency { log_factor: settings.lfu_log_factor, decay_minutes: settings.lfu_decay_minutes }
        }
        _ => StampMode::Recency,
    };
    store.set_budget(settings.maxmemory_bytes, policy, stamps);
}

fn set_compression(store: &Store, settings: &Settings) {
    let codec = match settings.compression {
        CompressionCodec::Off => Codec::Off,
        CompressionCodec::Lzf => Codec::Lzf,
        CompressionCodec::Lz4 => Codec::Lz4,
        CompressionCodec::Zstd => Codec::Zstd,
    };
    store.compression.set(compression::Settings {
        codec,
        level: i32::try_from(settings.compression_level).unwrap_or(3),
        bytes_min: usize::try_from(settings.compression_bytes_min).unwrap_or(usize::MAX),
        on_write: settings.compression_when == CompressionTime::Write,
        idle_seconds: settings.compression_idle_seconds,
        cpu_percent: settings.compression_cpu_percent,
    });
}

fn set_packed(store: &Store, settings: &Settings) {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let packed = &store.packed;
    packed.set_hash_entries(number(settings.hash_packed_entries));
    packed.set_hash_value(number(settings.hash_packed_value));
    packed.set_list_size(settings.list_packed_size);
    packed.set_set_intset_entries(number(settings.set_integer_entries));
    packed.set_set_entries(number(settings.set_packed_entries));
    packed.set_set_value(number(settings.set_packed_value));
    packed.set_zset_entries(number(settings.zset_packed_entries));
    packed.set_zset_value(number(settings.zset_packed_value));
    packed.set_stream_node_bytes(number(settings.stream_node_bytes));
    packed.set_stream_node_entries(number(settings.stream_node_entries));
}

/// The TCP addresses that the settings name.
fn places(settings: &Settings) -> Vec<Place> {
    let ports = [(settings.port, Language::Resp), (settings.memcached_port, Language::Memcached)];
    let place = |bind: &config::Address, port: u16, language: Language| {
        let ip = match bind.host {
            config::Host::AnyV4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            config::Host::AnyV6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            config::Host::Localhost => IpAddr::V4(Ipv4Addr::LOCALHOST),
            config::Host::Ip(ip) => ip,
        };
        Place { address: SocketAddr::new(ip, port), optional: bind.optional, language }
    };
    let open = ports.into_iter().filter(|(port, _)| *port != 0);
    open.flat_map(|(port, language)| settings.bind.iter().map(move |bind| place(bind, port, language))).collect()
}

fn backlog(settings: &Settings) -> i32 {
    i32::try_from(settings.tcp_backlog).unwrap_or(i32::MAX)
}

/// Listens where the settings say.
///
/// # Errors
/// [`ServeError::Listen`] names the address; an address marked optional that this machine lacks is skipped.
pub fn listen(settings: &Settings) -> Result<Vec<Entrance>, ServeError> {
    let failed = |endpoint: &Endpoint, source| ServeError::Listen { address: endpoint.to_string(), source };
    let mut entrances = Vec::new();
    for place in places(settings) {
        let listened = place.listen(backlog(settings));
        entrances.extend(listened.map_err(|error| failed(&Endpoint::Tcp(place.address), error))?);
    }
    if let Some(path) = &settings.unixsocket {
        let endpoint = Endpoint::Unix(path.clone());
        let listener = listen_unix(path, settings.unixsocketperm).map_err(|error| failed(&endpoint, error))?;
        entrances.push(Entrance { endpoint, language: Language::Resp, listener });
    }
    if entrances.is_empty() { Err(ServeError::NoListener) } else { Ok(entrances) }
}

/// Brings the data back before it is served, on a thread of its own: workers answer that they are loading meanwhile. It
/// fills the store by [`Store::load`] and [`Store::replay`], tells [`store::Gate`] how far it is, and gives up when
/// [`store::Gate::is_cancelled`].
pub type Recover = Box<dyn FnOnce(&Arc<Shared>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> + Send>;

/// How the process reaches its server. Clones are handles of the same.
#[derive(Clone, Default)]
pub struct Control {
    /// Ends it.
    pub shutdown: ShutdownRequest,
    server: Arc<OnceLock<Weak<Shared>>>,
}

impl Control {
    /// The settings in force; `None` before the server has begun, and after its end.
    pub fn settings(&self) -> Option<Arc<Settings>> {
        let shared = self.server.get()?.upgrade()?;
        Some(shared.host.part::<Configuration>().current())
    }

    /// The text of `INFO everything`; `None` before the server has begun, and after its end. Takes the locks of the shards, one
    /// after the other, for moments.
    pub fn info(&self) -> Option<String> {
        observe::info(&*self.server.get()?.upgrade()?)
    }

    /// Whether every worker turns. A server that has not begun or has ended is well.
    ///
    /// # Errors
    /// Which worker does not, in a sentence.
    pub fn health(&self) -> Result<(), String> {
        self.server.get().and_then(Weak::upgrade).map_or(Ok(()), |shared| observe::health(&shared))
    }

    /// Whether clients are served, and their changes taken.
    ///
    /// # Errors
    /// Why not, in a sentence.
    pub fn readiness(&self) -> Result<(), String> {
        let shared = self.server.get().and_then(Weak::upgrade).ok_or("the server has not begun, or has ended")?;
        observe::readiness(&shared)
    }
}

/// Where the data is kept.
pub enum Keeping {
    /// In memory only: for tests. It begins with what the function brings, if there is one.
    Memory(Option<Recover>),
    /// In the data directory of the settings.
    Directory {
        /// The file system it is on.
        fs: Arc<dyn FileSystem>,
        /// Who is told what happens.
        tell: Arc<dyn Tell>,
        /// Who makes RDB files on request.
        rdb: Arc<dyn WriteRdb>,
    },
}

/// Slices of the keyspace for that many workers, unless the settings say how many.
///
/// Each has pages of its own for each size of entries, and lines that the processor's nearest cache has to keep: on one worker
/// 64 cost 5 % more for a GET than 16, and 14 MB more for 60 MB of documents of all sizes.
fn shard_count(asked: usize, workers: usize) -> usize {
    match asked {
        0 => (workers * 8).next_power_of_two().clamp(16, SlotMap::SHARD_COUNT_MAX),
        count => count,
    }
}

/// Runs a server until SHUTDOWN or `control` has ended it, or its acceptor is stopped, which saves nothing. Connections are
/// served from the beginning, data when it has been brought back.
///
/// # Errors
/// See [`ServeError`].
pub fn serve(
    loaded: Loaded,
    acceptor: Acceptor,
    entropy: Arc<dyn Entropy>,
    clock: Arc<dyn Clock>,
    keeping: Keeping,
    control: Control,
) -> Result<(), ServeError> {
    let handle = acceptor.handle();
    let memory = Arc::new(ClientMemory::default());
    let Loaded { settings, file, .. } = loaded;
    let worker_count = match settings.workers as usize {
        0 => thread::available_parallelism().map_or(1, usize::from),
        count => count,
    };
    let mailboxes = Arc::new(Mailboxes::default());
    let store = Arc::new(Store::new(StoreOptions {
        shard_count: shard_count(settings.shards as usize, worker_count),
        database_count: settings.databases,
        clock: clock.clone(),
        entropy: entropy.clone(),
        wake: mailboxes.clone(),
        log: None,
        engine: |engine| ShardEngine::Memory(Box::new(engine)),
    }));
    let held = memory.clone();
    store.count_others(move || held.held_bytes());
    let mut table = CommandTable::new(&families());
    let memcached = memcached::Rows::add_to(&mut table);
    let table = Arc::new(table);
    let row_count = table.rows().len();
    let workers: Vec<_> =
        (0..worker_count).map(|_| Arc::new(WorkerFigures::new(Arc::new(WorkerStats::new(row_count))))).collect();
    let figures = Arc::new(Figures::new(workers.clone()));
    let latency = Arc::new(LatencyMonitor::new(&settings));
    let log = Arc::new(CommandLog::new(&settings, latency.clone()));
    let back = Arc::new(OnceLock::new());
    let clients = Clients::new(&table);
    clients.set_closer(mailboxes.clone());
    let (durability, told, recover) = match keeping {
        Keeping::Memory(recover) => (None, None, recover),
        Keeping::Directory { fs, tell, rdb } => {
            let figures = figures.clone();
            let parts = Parts {
                fs,
                clock: clock.clone(),
                entropy: entropy.clone(),
                dir: settings.dir.clone(),
                store: store.clone(),
                workers: worker_count,
                tell: tell.clone(),
                changes: Box::new(move || figures.sum(|worker| worker.changes.get())),
            };
            let durability = Durability::open(parts, Policy::of(&settings))
                .map_err(|source| ServeError::Directory { path: settings.dir.clone(), source })?;
            durability.set_rdb_writer(rdb);
            (Some(durability.clone()), Some(tell.clone()), Some(recover(durability, tell)))
        }
    };
    let receivers = mailboxes.clone();
    let outlets = Arc::new(Outlets::new(worker_count, move |worker| Wake::wake(&*receivers, WorkerSet::one(worker))));
    let pubsub = Arc::new(PubSub::new(outlets.clone()));
    // Weakly: the store owns who announces.
    let asked = Arc::downgrade(&store);
    let tracking = Arc::new(Tracking::new(outlets.clone(), move |on| {
        if let Some(store) = asked.upgrade() {
            store.notices.ask_for_changes(on);
        }
    }));
    tracking.set_keys_max(usize::try_from(settings.tracked_keys_max).unwrap_or(usize::MAX));
    store.notices.set_announcer(Arc::new(Announcer { pubsub: pubsub.clone(), tracking: tracking.clone() }));
    store.notices.ask_for_events(classes_of(&settings.keyspace_events));
    let mut host = Host::default();
    if let Some(durability) = &durability {
        host = host.with(durability.clone());
    }
    let host = host
        .with(About::new(&mut entropy.rng(), clock.now_ms(), file.clone()))
        .with(table.clone())
        .with(figures.clone())
        .with(latency)
        .with(log.clone())
        .with(Arc::new(Explanations::default()))
        .with::<Arc<dyn Observer>>(log.clone())
        .with(store.clone())
        .with(clients)
        .with(Arc::new(script::Scripts::of_workers(worker_count)))
        .with(Login::default())
        .with(Pause::default())
        .with(pubsub)
        .with(tracking)
        .with(StringLimit::default())
        .with(SparseLimit::default())
        .with(StampMeaning::default())
        .with::<Arc<dyn Carrier>>(Arc::new(Couriers::default()))
        .with(control.shutdown.clone())
        .with(Configuration::new(
            settings.clone(),
            Box::new(Applied {
                shared: back.clone(),
                acceptor: handle.clone(),
                memory: memory.clone(),
                file,
                tell: told.clone(),
            }),
        ));
    admin::follow(&host, &settings);
    admin::set_password(&host, &settings).map_err(|_| ServeError::Password)?;
    set_budget(&store, &settings);
    set_packed(&store, &settings);
    set_compression(&store, &settings);
    memory.set_limits(client_bytes_max(&settings), settings.maxmemory_bytes);
    let watchers = mailboxes.clone();
    let fetchers = mailboxes.clone();
    let fetches = Fetches::new(Box::new(RowThreads::new()), move |worker, fetched| {
        if let Some(mailbox) = fetchers.all().get(worker) {
            mailbox.send(Message::Fetched(fetched));
        }
    });
    let shared = Arc::new(Shared {
        store: store.clone(),
        table,
        memcached,
        host,
        log,
        monitors: AtomicUsize::new(0),
        show: Box::new(move |line| {
            let line: Arc<[u8]> = line.into();
            watchers.all().iter().for_each(|mailbox| mailbox.send(Message::Show(line.clone())));
        }),
        outlets,
        fetches: Arc::new(fetches),
        limits: RwLock::new(ClientLimits::of(&settings)),
    });
    // The settings know the server only weakly: it owns them.
    let _ = back.set(Arc::downgrade(&shared));
    let _ = control.server.set(Arc::downgrade(&shared));

    let queues = (0..worker_count).map(|_| Worker::event_queue()).collect::<io::Result<Vec<_>>>()?;
    let _ = mailboxes.0.set(queues.iter().map(|(_, mailbox)| mailbox.clone()).collect());
    if recover.is_some() {
        // Before the first worker begins.
        store.gate.begin_loading(clock.now_ms());
    }
    let served = thread::scope(|scope| {
        for (number, (queue, figures)) in queues.into_iter().zip(workers).enumerate() {
            let upkeep = upkeep(&shared, &memory, number, worker_count, durability.clone());
            let worker = Worker::new(number, queue, shared.clone(), figures, memory.clone(), upkeep);
            let end = StopAtEnd(handle.clone());
            thread::Builder::new().name(format!("worker-{number}")).spawn_scoped(scope, move || {
                let _end = end;
                let _entered = heap::enter();
                if let Err(error) = worker.run() {
                    tracing::error!("worker {number} cannot go on: {error}");
                }
            })?;
        }
        let recovery = recover.map(|recover| spawn_recovery(scope, recover, &shared, handle.clone())).transpose()?;
        let mut dealer = Dealer {
            shared: &shared,
            mailboxes: mailboxes.all(),
            next: 0,
            strangers: Strangers::default(),
            refusals: OncePerSecond::default(),
        };
        let keeper = durability.as_deref().map(|durability| {
            thread::Builder::new().name("keeper".to_owned()).spawn_scoped(scope, || durability.run())
        });
        let keeper = keeper.transpose()?;
        let trainer = durability.as_deref().map(|durability| {
            thread::Builder::new().name("trainer".to_owned()).spawn_scoped(scope, || durability.train(heap::trim))
        });
        let trainer = trainer.transpose()?;
        let has_rows = settings.database_engines.on_disk().next().is_some();
        let disk = durability.as_deref().filter(|_| has_rows).map(|durability| {
            let flusher = thread::Builder::new().name("flusher".to_owned());
            let compactor = thread::Builder::new().name("compactor".to_owned());
            let flusher = flusher.spawn_scoped(scope, || durability.flush_databases(heap::trim))?;
            io::Result::Ok((flusher, compactor.spawn_scoped(scope, || durability.compact_databases())?))
        });
        let (flusher, compactor) = disk.transpose()?.unzip();
        let ending = Ending {
            host: &shared.host,
            mailboxes: mailboxes.all(),
            kept: durability.as_deref().zip(told),
            acceptor: handle.clone(),
        };
        let ending = thread::Builder::new().name("ending".to_owned()).spawn_scoped(scope, move || ending.run())?;
        let result = acceptor.run(|socket, language| dealer.deal(socket, language));
        control.shutdown.close();
        store.gate.cancel_loading();
        if let Some(durability) = &durability {
            durability.end();
        }
        mailboxes.all().iter().for_each(|mailbox| mailbox.send(Message::Stop));
        for thread in [keeper, trainer, flusher, compactor].into_iter().flatten() {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        let ended = ending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match recovery.map(ScopedJoinHandle::join) {
            Some(Ok(Err(error))) if !is_end(&*error) => Err(ServeError::Recovery(error)),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(_)) | None => {
                result?;
                ended
            }
        }
    });
    // All workers have ended: nothing more comes. Whatever has ended them, what the log has is made durable.
    let closed = durability.map_or(Ok(()), |durability| durability.close().map_err(ServeError::from));
    served.and(closed)
}

/// Loads the data directory.
fn recover(durability: Arc<Durability>, tell: Arc<dyn Tell>) -> Recover {
    Box::new(move |_| {
        let began = Instant::now();
        let recovered = thread::scope(|scope| {
            let (_loading, is_over) = channel();
            let (durability, tell) = (&durability, &*tell);
            scope.spawn(move || say_progress(durability, tell, &is_over));
            durability.recover()
        });
        if recovered.as_ref().is_err_and(DurabilityError::is_damage) {
            let dir = durability.directory().display();
            tell.warn(&format!(
                "the data in {dir} is damaged; nothing was changed. Run `onggi repair {dir}`: it says how many keys it can keep \
                 and what is lost, and asks before it changes anything"
            ));
        }
        let found = recovered?;
        if let Some(torn) = &found.torn {
            tell.warn(torn);
        }
        durability.wait_for_log()?;
        durability.add_databases()?;
        let durability::Recovered { keys, records, .. } = found;
        let seconds = began.elapsed().as_secs_f64();
        tell.say(&format!(
            "ready: {keys} keys of the checkpoint and {records} records of the log loaded in {seconds:.1} s"
        ));
        let now = durability.now_ms();
        tell.say(&format!("restorable: {}", durability.status().restorable(now)));
        tell.phase(Phase::Ready);
        Ok(())
    })
}

/// Says how far loading is, until its sender is gone.
fn say_progress(durability: &Durability, tell: &dyn Tell, is_over: &Receiver<Infallible>) {
    while let Err(RecvTimeoutError::Timeout) = is_over.recv_timeout(PROGRESS) {
        let Some(loading) = durability.loading() else { continue };
        let percent = (loading.done_bytes.saturating_mul(100)).checked_div(loading.total_bytes).unwrap_or(0).min(100);
        tell.say(&format!("loading: {percent} %, {} keys", loading.keys));
        tell.phase(Phase::Loading { percent });
    }
}

/// Whether loading was given up since the server is to end, which is no failure.
fn is_end(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(DurabilityError::Ended(_)))
}

type Recovered = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Has the data brought back, and then served; a server without its data ends.
fn spawn_recovery<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    recover: Recover,
    shared: &Arc<Shared>,
    handle: AcceptorHandle,
) -> io::Result<ScopedJoinHandle<'scope, Recovered>> {
    let shared = shared.clone();
    thread::Builder::new().name("recovery".to_owned()).spawn_scoped(scope, move || {
        // Also when it panics.
        let end = StopAtEnd(handle);
        let _entered = heap::enter();
        recover(&shared)?;
        shared.store.gate.end_loading();
        std::mem::forget(end);
        Ok(())
    })
}

/// Stops the server when a worker ends, even by a panic: its connections would wait forever.
struct StopAtEnd(AcceptorHandle);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Gives new connections to the workers in turn.
struct Dealer<'s> {
    shared: &'s Shared,
    mailboxes: &'s [Arc<Mailbox<Message>>],
    next: usize,
    strangers: Strangers,
    refusals: OncePerSecond,
}

impl Dealer<'_> {
    /// Gives a connection to the next worker, unless there are too many.
    fn deal(&mut self, mut socket: Socket, language: Language) {
        let host = &self.shared.host;
        let (settings, clients) = (host.part::<Configuration>().current(), host.part::<Clients>());
        socket.set_keepalive(settings.tcp_keepalive_seconds);
        let unix = || Address::Unix(settings.unixsocket.as_deref().unwrap_or("".as_ref()).to_string_lossy().into());
        let (peer, local) = match socket.addresses() {
            Some((peer, local)) => (Address::Tcp(peer), Address::Tcp(local)),
            None => (unix(), unix()),
        };
        let worker = self.next % self.mailboxes.len();
        let info = if clients.count() < connections_max(&settings, is_near(&peer)) {
            clients.connect(peer, local, socket.as_raw_fd(), worker, self.shared.store.clock.now_ms())
        } else {
            clients.count_rejected();
            if let Some(others) = self.refusals.pass(self.shared.store.clock.now_ms()) {
                tracing::warn!(
                    "client {peer} refused: maxclients {} is reached ({others} others refused since the last such line)",
                    settings.maxclients
                );
            }
            None
        };
        let Some(info) = info else {
            // The client is told if its socket takes the words at once; it is closed in any case.
            let text = match language {
                Language::Resp => format!("-{TOO_MANY}\r\n"),
                Language::Memcached => "ERROR Too many open connections\r\n".to_owned(),
            };
            let _ = socket.write_all(text.as_bytes());
            return;
        };
        self.next = self.next.wrapping_add(1);
        let authenticated = !host.part::<Login>().needs_password();
        let mut stranger = None;
        if !authenticated {
            let (new, oldest) = self.strangers.enter(info.id, settings.login_clients_max as usize);
            stranger = Some(new);
            if let Some(oldest) = oldest {
                clients.kill(oldest);
            }
        }
        let mut session = Box::new(Session::of(info, authenticated));
        if language == Language::Memcached {
            session.db = DbIndex(settings.memcached_database);
        }
        self.mailboxes[worker].send(Message::Accept { socket, session, language, stranger });
    }
}

/// Whether the peer is on this host: a part of `maxclients` is kept for such connections.
fn is_near(peer: &Address) -> bool {
    match peer {
        Address::Tcp(address) => address.ip().to_canonical().is_loopback(),
        Address::Unix(_) => true,
    }
}

/// How many connections there may be for one more to be taken.
fn connections_max(settings: &Settings, is_near: bool) -> usize {
    let all = settings.maxclients;
    // A reserve as large as a small `maxclients` would shut every other host out.
    let kept = if is_near { 0 } else { settings.maxclients_reserve.min(all / 2) };
    (all - kept) as usize
}

/// How many bytes all clients may hold together.
fn client_bytes_max(settings: &Settings) -> u64 {
    let share = |percent: u8| (u128::from(settings.maxmemory_bytes) * u128::from(percent) / 100) as u64;
    match settings.maxmemory_clients {
        MemoryShare::Bytes(0) => share(10).max(AUTOMATIC_CLIENT_BYTES_MIN),
        MemoryShare::Bytes(bytes) => bytes,
        // A share of no limit is no limit.
        MemoryShare::Percent(_) if settings.maxmemory_bytes == 0 => u64::MAX,
        MemoryShare::Percent(percent) => share(percent),
    }
}

/// The upkeep of one worker; the first also samples the figures, and gives memory back after bursts.
fn upkeep(
    shared: &Arc<Shared>,
    memory: &Arc<ClientMemory>,
    worker: usize,
    worker_count: usize,
    durability: Option<Arc<Durability>>,
) -> Upkeep {
    let shards = shared.store.shard_ids().skip(worker).step_by(worker_count).collect();
    let explanations = shared.host.part::<Arc<Explanations>>().clone();
    if worker != 0 {
        return Upkeep::new(shared.store.clone(), shards, Box::new(|| {}), durability, explanations);
    }
    let store = shared.store.clone();
    let (shared, memory) = (Arc::downgrade(shared), memory.clone());
    let mut rounds_since_burst = u32::MAX;
    let each_round = move || {
        // At once, and again when upkeep has let go of what the clients left behind.
        rounds_since_burst = if memory.has_dropped() { 0 } else { rounds_since_burst.saturating_add(1) };
        if rounds_since_burst == 0 || TRIM_AGAIN_ROUNDS.contains(&rounds_since_burst) {
            // Elsewhere, since it walks the C library's heaps. Without a thread the next burst is the next occasion.
            let _ = thread::Builder::new().name("trim".to_owned()).spawn(heap::trim);
        }
        if let Some(shared) = shared.upgrade() {
            shared.host.part::<Arc<Tracking>>().forget_excess();
            let figures = shared.host.part::<Arc<Figures>>();
            figures.sample(shared.store.clock.monotonic_ns(), shared.store.used_bytes());
            let totals = || Totals::of(figures, u32::try_from(shared.table.rows().len()).unwrap_or(u32::MAX));
            shared.log.hot_key_session.end_when_due(shared.store.clock.now_ms(), totals, &shared.log.hot_keys);
        }
    };
    Upkeep::new(store, shards, Box::new(each_round), durability, explanations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_connections_are_kept_for_this_host() {
        let near = ["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"];
        assert!(near.iter().all(|address| is_near(&Address::Tcp(address.parse().unwrap()))));
        assert!(is_near(&Address::Unix("/s".into())) && !is_near(&Address::Tcp("10.0.0.1:1".parse().unwrap())));
        for (maxclients, reserve, others) in [(100, 32, 68), (100, 0, 100), (10, 32, 5), (1, 32, 1)] {
            let settings = Settings { maxclients, maxclients_reserve: reserve, ..Settings::default() };
            assert_eq!(connections_max(&settings, true), maxclients as usize);
            assert_eq!(connections_max(&settings, false), others, "{maxclients} {reserve}");
        }
    }

    #[test]
    fn memory_of_all_clients() {
        use MemoryShare::{Bytes, Percent};
        for (maxmemory_clients, maxmemory_bytes, expected) in [
            (Bytes(0), 0, 256 << 20),
            (Bytes(0), 10 << 30, 1 << 30),
            (Bytes(5), 10 << 30, 5),
            (Percent(50), 1000, 500),
            (Percent(50), 0, u64::MAX),
        ] {
            let settings = Settings { maxmemory_clients, maxmemory_bytes, ..Settings::default() };
            assert_eq!(client_bytes_max(&settings), expected);
        }
    }
}
