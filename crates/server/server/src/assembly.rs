//! A server without threads and sockets: its store, its commands and its parts, put together in one place for
//! production, examples and tests. A part that is added here exists in all of them.
//!
//! ```text
//! ServerBuilder: settings, clock, ...  --assemble-->  Assembly: an empty store; takes more parts  --finish-->  Shared
//! ```

use crate::announce::{Announcer, classes_of};
use crate::executor::{ClientLimits, Shared};
use crate::fetching::Fetches;
use crate::observe::Observed;
use crate::store_settings::follow_settings;
use admin::{
    About, Apply, CommandLog, Configuration, Explanations, Figures, LatencyMonitor, ShutdownRequest, WorkerFigures,
};
use base::{Clock, Entropy};
use command::host::Needs;
use command::stats::WorkerStats;
use command::watchers::{Show, Watchers};
use command::work::remote::Migrator;
use command::{CommandSpec, CommandTable, Host};
use config::Settings;
use engine_mem::MemEngine;
use parking_lot::RwLock;
use push::{Outlets, PubSub, Tracking};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use store::shard::ShardEngine;
use store::slots::SlotMap;
use store::{RecordSink, Store, StoreOptions, Wake, WorkerSet};

/// Why the settings give no server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AssemblyError {
    /// The password is too long.
    #[error("requirepass is longer than {} bytes", command::login::PASSWORD_BYTES_MAX)]
    Password,
    /// Wrong users.
    #[error(transparent)]
    Users(#[from] admin::access::UsersError),
    /// A part is missing that commands need.
    #[error("no part {0} in this server, which its commands need")]
    Lacks(&'static str),
}

/// The commands of a server, for every dialect.
#[derive(Clone)]
pub struct Commands {
    /// All rows.
    pub table: Arc<CommandTable>,
    /// Those of memcached clients.
    pub memcached: memcached::Rows,
    /// Those of clients of SSDB.
    pub ssdb: ssdb::Rows,
}

impl Commands {
    /// The commands of these families, and those of clients of memcached and SSDB.
    pub fn of(families: &[&'static [&'static CommandSpec]]) -> Self {
        let mut table = CommandTable::new(families);
        let memcached = memcached::Rows::add_to(&mut table);
        let ssdb = ssdb::Rows::add_to(&mut table);
        Self { table: Arc::new(table), memcached, ssdb }
    }

    /// The commands of all crates that have rows.
    pub fn all() -> Self {
        Self::of(&[command::redis::FAMILIES, script::FAMILIES, admin::FAMILIES].concat())
    }
}

/// What a server is made of. The commands, the log and the engine have defaults, which production uses.
pub struct ServerBuilder {
    settings: Settings,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    wake: Arc<dyn Wake>,
    file: Option<PathBuf>,
    commands: Option<Commands>,
    log: Option<Arc<dyn RecordSink>>,
    engine: fn(MemEngine) -> ShardEngine,
}

impl ServerBuilder {
    /// A server with these settings. `wake` wakes its workers.
    pub fn new(settings: Settings, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>, wake: Arc<dyn Wake>) -> Self {
        let engine = |engine| ShardEngine::Memory(Box::new(engine));
        Self { settings, clock, entropy, wake, file: None, commands: None, log: None, engine }
    }

    /// The configuration file that the settings came from.
    #[must_use]
    pub fn file(mut self, file: Option<PathBuf>) -> Self {
        self.file = file;
        self
    }

    /// Other commands than all, or a table that several servers share.
    #[must_use]
    pub fn commands(mut self, commands: Commands) -> Self {
        self.commands = Some(commands);
        self
    }

    /// A log from the beginning. Production adds its log once the data is loaded.
    #[must_use]
    pub fn log(mut self, log: Arc<dyn RecordSink>) -> Self {
        self.log = Some(log);
        self
    }

    /// What each shard keeps its entries in. Tests wrap the memory engine.
    #[must_use]
    pub fn engine(mut self, engine: fn(MemEngine) -> ShardEngine) -> Self {
        self.engine = engine;
        self
    }

    /// Makes the store, which is empty, and the parts that need nothing else.
    pub fn assemble(self) -> Assembly {
        let Self { settings, clock, entropy, wake, file, commands, log, engine } = self;
        let worker_count = match settings.workers as usize {
            0 => thread::available_parallelism().map_or(1, usize::from),
            count => count,
        };
        let store = Arc::new(Store::new(StoreOptions {
            shard_count: shard_count(settings.shards as usize, worker_count),
            database_count: settings.databases,
            clock: clock.clone(),
            entropy: entropy.clone(),
            wake: wake.clone(),
            log,
            engine,
        }));
        let commands = commands.unwrap_or_else(Commands::all);
        let row_count = commands.table.rows().len();
        // The attendant is a worker of its own.
        let stats = (0..=worker_count).map(|_| Arc::new(WorkerStats::new(row_count)));
        let workers: Vec<_> = stats.map(|stats| Arc::new(WorkerFigures::new(stats))).collect();
        let figures = Arc::new(Figures::new(workers.clone()).with_attendant());
        let latency = Arc::new(LatencyMonitor::new(&settings));
        let slow_log = Arc::new(CommandLog::new(&settings, latency.clone()));
        let about = About::new(&mut entropy.rng(), clock.now_ms(), file);
        let outlets = Arc::new(Outlets::new(workers.len(), move |worker| wake.wake(WorkerSet::one(worker))));
        let history_id = about.history_id.clone();
        let channels = announcing(&settings, &store, &outlets);
        let mut host = Host::new(about, commands.table.clone(), figures.clone(), channels)
            .with(latency)
            .with(slow_log.clone())
            .with(store.clone())
            .with(Arc::new(script::Scripts::new()))
            .with(Arc::new(Explanations::default()))
            .with(Arc::new(memcached::Sweeps::default()))
            .with(Arc::new(memcached::Details::default()))
            .with(Arc::new(memcached::LongQueries::default()))
            .with(Arc::new(memcached::CommandLines::default()))
            .with(Arc::new(memcached::Dumps::default()))
            .with(Arc::new(tls::Contexts::default()))
            .with(ShutdownRequest::default())
            .with(Observed::default());
        host.observer = Some(slow_log.clone());
        Assembly { settings, store, commands, workers, figures, history_id, slow_log, outlets, host }
    }
}

/// Slices of the keyspace for that many workers, unless the settings say how many.
///
/// Each has pages of its own for each size of entries, and cache lines that L1 has to keep. On one worker, 64 of them
/// cost 5 % more for a GET than 16, and 14 MB more for 60 MB of documents of all sizes.
fn shard_count(asked: usize, workers: usize) -> usize {
    match asked {
        0 => (workers * 8).next_power_of_two().clamp(16, SlotMap::SHARD_COUNT_MAX),
        count => count,
    }
}

/// Channels and tracked keys. The store announces events and changes to them.
fn announcing(settings: &Settings, store: &Arc<Store>, outlets: &Arc<Outlets>) -> (Arc<PubSub>, Arc<Tracking>) {
    let pubsub = Arc::new(PubSub::new(outlets.clone()));
    // A weak reference: the store owns the announcer.
    let asked = Arc::downgrade(store);
    let tracking = Arc::new(Tracking::new(outlets.clone(), move |on| {
        if let Some(store) = asked.upgrade() {
            store.notices.ask_for_changes(on);
        }
    }));
    tracking.set_keys_max(usize::try_from(settings.tracked_keys_max).unwrap_or(usize::MAX));
    store.notices.set_announcer(Arc::new(Announcer { pubsub: pubsub.clone(), tracking: tracking.clone() }));
    store.notices.ask_for_events(classes_of(&settings.keyspace_events));
    (pubsub, tracking)
}

/// A server that has an empty store, and takes the parts that depend on it.
pub struct Assembly {
    settings: Settings,
    /// Its data.
    pub store: Arc<Store>,
    commands: Commands,
    /// What each worker counts, the attendant last.
    pub workers: Vec<Arc<WorkerFigures>>,
    /// The totals of all workers.
    pub figures: Arc<Figures>,
    /// The random name of its data's history, for replication.
    pub history_id: String,
    slow_log: Arc<CommandLog>,
    outlets: Arc<Outlets>,
    /// What commands know of the server.
    pub host: Host,
}

impl Assembly {
    /// What sends keys to other servers.
    #[must_use]
    pub fn migrator(mut self, migrator: Arc<dyn Migrator>) -> Self {
        self.host.migrator = Some(migrator);
        self
    }

    /// Adds a part, replacing one of the same type.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(mut self, part: T) -> Self {
        self.host = self.host.with(part);
        self
    }

    /// Adds a part that only some servers have.
    #[must_use]
    pub fn with_some<T: Send + Sync + 'static>(self, part: Option<T>) -> Self {
        match part {
            Some(part) => self.with(part),
            None => self,
        }
    }

    /// The server. `apply` puts changed settings into force, `fetches` reads rows that are not in memory, and `show`
    /// shows a line to the watchers of all workers.
    ///
    /// # Errors
    /// See [`AssemblyError`].
    pub fn finish(self, apply: Box<dyn Apply>, fetches: Fetches, show: Show) -> Result<Arc<Shared>, AssemblyError> {
        let Self { settings, store, commands, slow_log, outlets, mut host, .. } = self;
        let lists = [
            script::Needed::lacking,
            admin::Needed::lacking,
            memcached::Needed::lacking,
            ssdb::Needed::lacking,
            crate::Needed::lacking,
        ];
        if let Some(part) = lists.iter().find_map(|lacking| lacking(&host)) {
            return Err(AssemblyError::Lacks(part));
        }
        let limits = RwLock::new(ClientLimits::of(&settings));
        let watchers = Arc::new(Watchers::new(show));
        host.watchers = Some(watchers.clone());
        host.configuration = Configuration::new(settings.clone(), apply);
        admin::follow(&host, &settings);
        admin::set_password(&host, &settings).map_err(|_| AssemblyError::Password)?;
        admin::access::set_users(&host, &settings)?;
        follow_settings(&store, &settings);
        Ok(Arc::new(Shared {
            store,
            table: commands.table,
            memcached: commands.memcached,
            ssdb: commands.ssdb,
            host,
            slow_log,
            watchers,
            outlets,
            fetches: Arc::new(fetches),
            limits,
        }))
    }
}
