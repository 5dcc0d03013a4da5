//! A server about to run: assembled for production, with its data directory, its mailboxes and its threads.

use super::apply::{Applied, client_bytes_max};
use super::control::Control;
use super::mailboxes::Mailboxes;
use super::recovery::{Recover, recover};
use super::rounds::upkeep;
use super::{EndAttendant, Keeping, ServeError, StopAtEnd};
use crate::assembly::{Assembly, ServerBuilder};
use crate::audit_file::{AuditFile, Rotation};
use crate::client_memory::ClientMemory;
use crate::cluster_node;
use crate::desk::Desk;
use crate::executor::Shared;
use crate::fetching::{Fetches, RowThreads};
use crate::listen::AcceptorHandle;
use crate::message::Message;
use crate::migration::Migrations;
use crate::replica::Replica;
use crate::worker::{EventQueue, Worker};
use admin::WorkerFigures;
use base::{Clock, Entropy};
use config::{Loaded, PrimaryAddress, Settings};
use durability::{Durability, Parts, Policy, Tell};
use replication::Role;
use script::Scripts;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, Scope, ScopedJoinHandle};
use std::time::Duration;
use vfs::FileSystem;

/// What keeps the data of a server that has a data directory.
pub(super) struct Kept {
    pub(super) durability: Arc<Durability>,
    pub(super) tell: Arc<dyn Tell>,
    fs: Arc<dyn FileSystem>,
    role: Arc<Role>,
}

/// A server in production, before and while its threads run.
pub(super) struct Server {
    pub(super) shared: Arc<Shared>,
    pub(super) mailboxes: Arc<Mailboxes>,
    /// The attendant is the last.
    pub(super) workers: Vec<Arc<WorkerFigures>>,
    /// `None` where the data is kept in memory only.
    pub(super) kept: Option<Kept>,
    audit: Option<AuditFile>,
    memory: Arc<ClientMemory>,
    /// Changes that a primary has sent.
    replicated: Arc<AtomicU64>,
    acceptor: AcceptorHandle,
    has_rows: bool,
}

impl Server {
    /// Opens what the settings name, and puts the server together. Gives what loads its data, too.
    pub(super) fn assemble(
        loaded: Loaded,
        acceptor: AcceptorHandle,
        (entropy, clock): (Arc<dyn Entropy>, Arc<dyn Clock>),
        keeping: Keeping,
        control: &Control,
        contexts: Arc<tls::Contexts>,
    ) -> Result<(Self, Option<Recover>), ServeError> {
        let Loaded { settings, file, .. } = loaded;
        let audit = settings
            .audit_log_file
            .as_deref()
            .map(|path| AuditFile::open(path).map_err(|source| ServeError::Audit { path: path.to_owned(), source }));
        let audit = audit.transpose()?;
        let memory = Arc::new(ClientMemory::default());
        let mailboxes = Arc::new(Mailboxes::default());
        let builder = ServerBuilder::new(settings.clone(), clock.clone(), entropy.clone(), mailboxes.clone());
        let assembly = builder.file(file.clone()).assemble();
        let workers = assembly.workers.clone();
        let held = memory.clone();
        assembly.store.count_others(move || held.held_bytes());
        memory.set_limits(client_bytes_max(&settings), settings.maxmemory_bytes);
        assembly.host.clients.set_closer(mailboxes.clone());
        let replicated = Arc::new(AtomicU64::new(0));
        let (kept, recover) = match keeping {
            Keeping::Memory(recover) => (None, recover),
            Keeping::Directory { fs, tell, rdb } => {
                let durability = open(&assembly, &settings, (entropy, clock), (&fs, &tell), replicated.clone())?;
                durability.set_rdb_writer(rdb);
                let role = role(&assembly, &settings);
                let recover = recover(durability.clone(), tell.clone());
                (Some(Kept { durability, tell, fs, role }), Some(recover))
            }
        };
        let back = Arc::new(OnceLock::new());
        let apply = Applied {
            shared: back.clone(),
            acceptor: acceptor.clone(),
            memory: memory.clone(),
            file,
            on_disk: settings.per_database.on_disk().collect(),
            ordered: settings.per_database.ordered().collect(),
            tls: contexts.clone(),
            tell: kept.as_ref().map(|kept| kept.tell.clone()),
        };
        let (fetchers, watchers) = (mailboxes.clone(), mailboxes.clone());
        let fetches = Fetches::new(Box::new(RowThreads::new()), move |worker, fetched| {
            if let Some(mailbox) = fetchers.all().get(worker) {
                mailbox.send(Message::Fetched(fetched));
            }
        });
        let show = move |line: &[u8]| {
            let line: Arc<[u8]> = line.into();
            watchers.all().iter().for_each(|mailbox| mailbox.send(Message::Show(line.clone())));
        };
        let shared = assembly
            .with_some(kept.as_ref().map(|kept| kept.durability.clone()))
            .with_some(kept.as_ref().map(|kept| kept.tell.clone()))
            .with_some(kept.as_ref().map(|kept| kept.role.clone()))
            .with_some(kept.as_ref().map(|kept| memcached::Files(kept.fs.clone())))
            .with_some(cluster_node::cluster(&settings))
            .migrator(Arc::new(Migrations::new(contexts.clone())))
            .with(control.shutdown.clone())
            .with(contexts)
            .finish(Box::new(apply), fetches, Box::new(show))?;
        // The settings know the server only weakly: it owns them.
        let _ = back.set(Arc::downgrade(&shared));
        let _ = control.server.set(Arc::downgrade(&shared));
        let has_rows = settings.per_database.on_disk().next().is_some();
        Ok((Self { shared, mailboxes, workers, kept, audit, memory, replicated, acceptor, has_rows }, recover))
    }

    /// Begins the thread that writes the audit log, if there is one.
    pub(super) fn spawn_audit(&mut self) -> io::Result<Option<JoinHandle<()>>> {
        let Some(file) = self.audit.take() else { return Ok(None) };
        let Some(lines) = self.shared.host.login.audit.open() else { return Ok(None) };
        let shared = self.shared.clone();
        let writer = thread::Builder::new().name("audit".to_owned()).spawn(move || {
            let rotation = || {
                let settings = shared.host.configuration.current();
                Rotation { bytes_max: settings.audit_log_bytes_max, files_max: settings.audit_log_files_max }
            };
            file.run(&lines, &shared.host.login.audit, &*shared.store.clock, rotation);
        })?;
        Ok(Some(writer))
    }

    /// Begins the workers. The end of one, even by a panic, stops the server.
    pub(super) fn spawn_workers<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        queues: Vec<EventQueue>,
        desk: &Arc<Desk>,
    ) -> io::Result<()> {
        let count = queues.len() - 1;
        self.shared.host.part::<script::Needed, Arc<Scripts>>().running.set_attendant(desk.clone());
        for (number, (queue, figures)) in queues.into_iter().zip(self.workers.iter().cloned()).enumerate() {
            let is_attendant = number == count;
            let durability = self.kept.as_ref().map(|kept| kept.durability.clone()).filter(|_| !is_attendant);
            let upkeep = upkeep(&self.shared, &self.memory, number, count, durability);
            let memory = self.memory.clone();
            let worker = Worker::new(number, queue, self.shared.clone(), figures, memory, upkeep, desk.clone());
            let end = StopAtEnd(self.acceptor.clone());
            let end_attendant = EndAttendant(is_attendant.then(|| desk.clone()));
            let name = if is_attendant { "attendant".to_owned() } else { format!("worker-{number}") };
            thread::Builder::new().name(name).spawn_scoped(scope, move || {
                let _ends = (end, end_attendant);
                let _entered = heap::enter();
                if let Err(error) = worker.run() {
                    tracing::error!("worker {number} cannot continue: {error}");
                }
            })?;
        }
        Ok(())
    }

    /// Begins the threads that keep the data: checkpoints, dictionaries, flushes and merges of databases on disk, and
    /// the changes of a primary. Another one keeps the server on the list of its cluster.
    pub(super) fn spawn_background<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
    ) -> io::Result<Vec<ScopedJoinHandle<'scope, ()>>> {
        let Some(kept) = &self.kept else { return Ok(Vec::new()) };
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let durability = &*kept.durability;
        let mut threads = vec![
            named("keeper").spawn_scoped(scope, || durability.run())?,
            named("trainer").spawn_scoped(scope, || durability.train(heap::trim))?,
        ];
        if self.has_rows {
            let flushed = |took: Duration| {
                heap::trim();
                self.shared.note_latency("disk-flush", took);
            };
            threads.push(named("flusher").spawn_scoped(scope, move || durability.flush_databases(flushed))?);
            threads.push(named("compactor").spawn_scoped(scope, || durability.compact_databases())?);
            threads.push(named("expirer").spawn_scoped(scope, || durability.look_for_due_rows())?);
        }
        let replica = Replica {
            shared: self.shared.clone(),
            role: kept.role.clone(),
            mailboxes: self.mailboxes.all().to_vec(),
            durability: kept.durability.clone(),
            fs: kept.fs.clone(),
            tell: kept.tell.clone(),
            changes: self.replicated.clone(),
            worker: self.workers.len(),
        };
        threads.push(named("replica").spawn_scoped(scope, move || {
            let _entered = heap::enter();
            replica.run();
        })?);
        if let Some(cluster) = self.shared.host.find::<Arc<arcus::Cluster>>() {
            let node = cluster_node::node(cluster.clone(), &self.shared);
            threads.push(named("zookeeper").spawn_scoped(scope, move || node.run())?);
        }
        Ok(threads)
    }

    /// Has all threads end.
    pub(super) fn end(&self) {
        self.shared.store.gate.cancel_loading();
        if let Some(kept) = &self.kept {
            kept.role.end();
            kept.durability.end();
        }
        self.shared.host.find::<Arc<arcus::Cluster>>().iter().for_each(|cluster| cluster.end());
        self.mailboxes.all().iter().for_each(|mailbox| mailbox.send(Message::Stop));
    }
}

/// Opens the data directory.
fn open(
    assembly: &Assembly,
    settings: &Settings,
    (entropy, clock): (Arc<dyn Entropy>, Arc<dyn Clock>),
    (fs, tell): (&Arc<dyn FileSystem>, &Arc<dyn Tell>),
    replicated: Arc<AtomicU64>,
) -> Result<Arc<Durability>, ServeError> {
    let figures = assembly.figures.clone();
    let changes = move || {
        let of_clients = figures.sum(|worker| worker.changes.get());
        of_clients.saturating_add(replicated.load(Ordering::Relaxed))
    };
    let parts = Parts {
        fs: fs.clone(),
        clock,
        entropy,
        dir: settings.dir.clone(),
        store: assembly.store.clone(),
        // And the thread that replicates.
        workers: assembly.workers.len() + 1,
        tell: tell.clone(),
        changes: Box::new(changes),
    };
    Durability::open(parts, Policy::of(settings))
        .map_err(|source| ServeError::Directory { path: settings.dir.clone(), source })
}

/// The role in replication; it follows the primary that the settings name.
fn role(assembly: &Assembly, settings: &Settings) -> Arc<Role> {
    let role = Arc::new(Role::new(assembly.history_id.clone()));
    if let Some(PrimaryAddress { host, port }) = settings.replicaof.clone() {
        role.follow(replication::role::Place { host, port });
    }
    role
}
