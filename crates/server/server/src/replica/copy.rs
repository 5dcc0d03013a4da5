//! A copy of all data: received into a file, examined, and loaded in place of what was there.

use super::{COPY_FILE, Lost, Replica};
use base::{DbIndex, KeyspaceId};
use config::CopyLoad;
use engine::{Effect, Keyspace, WriteClass};
use rdb::{Item, RdbError, Reader, Value};
use replication::load::{load, load_into};
use replication::role::{LinkState, Order};
use replication::{Link, Position, Source, apply::Applier};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use store::{At, LockSet, Txn};
use vfs::{File, FsError, OpenOptions};

/// Keys between two looks at whether the server ends.
const KEYS_PER_LOOK: u64 = 1024;

/// Why a copy does not replace the data.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotTaken {
    #[error("the copy is damaged: {0}; the old data stays")]
    Damaged(#[from] RdbError),
    #[error("the copy cannot be opened: {0}")]
    File(#[from] FsError),
    #[error("the copy has keys in database {0}; start this server with more `databases`. The old data stays")]
    Database(u32),
    #[error("the copy has values of a module, which cannot be taken. The old data stays")]
    Module,
    #[error("the log cannot be switched off for the copy: {0}. The old data stays")]
    Log(String),
}

/// A copy that can be loaded.
pub(super) struct Copy {
    path: PathBuf,
    bytes: u64,
}

impl Replica {
    /// Receives a copy and examines it (P1).
    pub(super) fn receive_copy(&self, order: &Order, link: &mut Link) -> Result<Copy, Lost> {
        let path = self.path(COPY_FILE);
        let file = self.fs.open(&path, OpenOptions::write().create().truncate())?;
        let mut out = Out { file, at: 0, order };
        let bytes = link.pass_copy(&mut out, &mut |copied| self.role.has_copied(copied))?;
        self.tell.say(&format!("PRIMARY <-> REPLICA sync: received {bytes} bytes from primary to disk"));
        Ok(Copy { path, bytes })
    }

    /// Reads all of a copy, and says why it cannot be taken.
    fn examine(&self, copy: &Copy, order: &Order) -> Result<(), Lost> {
        let mut keys: u64 = 0;
        self.each_item(copy, &mut |item, _| {
            self.check(&item)?;
            keys += 1;
            if keys.is_multiple_of(KEYS_PER_LOOK) && !order.stands() { Err(Lost::Over) } else { Ok(()) }
        })
    }

    /// Whether an item can be taken.
    fn check(&self, item: &Item) -> Result<(), NotTaken> {
        match item {
            Item::Entry(entry) if entry.db >= self.databases() => return Err(NotTaken::Database(entry.db)),
            Item::Entry(entry) if matches!(entry.value, Value::Module(_)) => return Err(NotTaken::Module),
            Item::Function(code) if script::metadata::read(code).is_err() => {
                self.tell.warn("the copy has a library of functions with an invalid first line, which is left out");
            }
            _ => {}
        }
        Ok(())
    }

    /// Calls `visit` with each item and the offset after it.
    fn each_item(&self, copy: &Copy, visit: &mut dyn FnMut(Item, u64) -> Result<(), Lost>) -> Result<(), Lost> {
        let (source, len) = Source::open(&*self.fs, &copy.path, 0).map_err(NotTaken::from)?;
        let mut reader = Reader::new(source, Some(len)).map_err(NotTaken::from)?.keeping_lzf();
        while let Some(item) = reader.next_item().map_err(NotTaken::from)? {
            visit(item, reader.offset())?;
        }
        Ok(())
    }

    /// Replaces all data by a copy, in place (P2) or from aside (P6).
    pub(super) fn load_copy(
        &self,
        order: &Order,
        copy: &Copy,
        applier: &mut Applier,
        position: &Position,
    ) -> Result<(), Lost> {
        let is_aside = self.settings().repl_diskless_load == CopyLoad::SwapDb && self.durability.tier().is_none();
        let loaded = match is_aside {
            true => self.load_aside(order, copy, applier, position),
            false => self.load_in_place(order, copy, applier, position),
        };
        // Removed in any case; the next copy replaces one that stays.
        let _ = self.fs.remove_file(&copy.path);
        if loaded.is_ok() {
            self.tell.say("PRIMARY <-> REPLICA sync: Finished with success");
        }
        self.set_link(order, LinkState::Sync);
        loaded
    }

    /// Switches the log off, unless the order is over.
    fn begin_replacing(&self, order: &Order) -> Result<(), Lost> {
        if !self.role.if_it_stands(order, &|| self.durability.intend_replacing()) {
            return Err(Lost::Over);
        }
        Ok(self.durability.begin_replacing().map_err(NotTaken::Log)?)
    }

    fn load_in_place(
        &self,
        order: &Order,
        copy: &Copy,
        applier: &mut Applier,
        position: &Position,
    ) -> Result<(), Lost> {
        self.examine(copy, order).and_then(|()| {
            self.begin_replacing(order)?;
            applier.forget();
            let gate = &self.shared.store.gate;
            self.tell.say("PRIMARY <-> REPLICA sync: Flushing old data, loading DB in memory");
            gate.begin_loading(self.shared.store.clock.now_ms());
            gate.set_total_bytes(copy.bytes);
            // Requests see either all of the old data or LOADING.
            let is_quiet = self.has_quiet_workers(&|| !gate.is_cancelled());
            // From here on no order comes. One that came before has ended this one, and clients may have written.
            let stands = order.stands();
            let loaded = if is_quiet && stands { self.load_all(copy) } else { Err(Lost::Over) };
            match &loaded {
                Ok(()) => self.shared.store.load(&Effect::Position { text: applier.loaded(position).as_bytes() }),
                // The server ends, and starts with the old data.
                Err(_) if gate.is_cancelled() => return loaded,
                Err(_) if !stands => {}
                // It could be read a moment ago. Half a copy is not served.
                Err(_) => self.clear(),
            }
            gate.end_loading();
            self.durability.end_replacing();
            loaded
        })
    }

    /// Loads a copy into keyspaces that no database has, and puts them in place of the old ones at one moment. What
    /// cannot be taken is found while loading, and leaves the old data.
    fn load_aside(&self, order: &Order, copy: &Copy, applier: &mut Applier, position: &Position) -> Result<(), Lost> {
        self.begin_replacing(order)?;
        let store = &self.shared.store;
        self.tell.say("PRIMARY <-> REPLICA sync: Loading DB in memory next to the old data, which is served");
        store.gate.begin_loading_aside(store.clock.now_ms());
        store.gate.set_total_bytes(copy.bytes);
        // No worker works at values in the background from here on, and REPLICAOF is refused.
        let is_quiet = self.has_quiet_workers(&|| order.stands());
        let loaded = if is_quiet && order.stands() { self.load_all_aside(copy, order) } else { Err(Lost::Over) };
        let done = loaded.map(|libraries| self.swap_in(&libraries, applier, position));
        if done.is_err() {
            self.under_all_locks(&mut |txn| {
                (0..self.databases()).for_each(|db| txn.apply(&Effect::Clear { space: self.aside_of(db) }));
            });
        }
        store.gate.end_loading_aside();
        self.durability.end_replacing();
        done
    }

    /// The keyspace that takes the copy of a database: above those that databases have.
    fn aside_of(&self, db: u32) -> KeyspaceId {
        KeyspaceId(self.databases() + db)
    }

    fn databases(&self) -> u32 {
        self.shared.store.spaces.count() as u32
    }

    /// Returns the libraries of functions.
    fn load_all_aside(&self, copy: &Copy, order: &Order) -> Result<Vec<Vec<u8>>, Lost> {
        let store = &self.shared.store;
        let (mut keys, mut shown, mut room, mut libraries): (u64, u64, Vec<u8>, _) = (0, 0, Vec::new(), Vec::new());
        self.each_item(copy, &mut |item, offset| {
            self.check(&item)?;
            match item {
                Item::Entry(entry) => load_into(store, self.aside_of(entry.db), *entry, &mut room),
                Item::Function(code) => libraries.push(code),
                _ => return Ok(()),
            }
            keys += 1;
            if !keys.is_multiple_of(KEYS_PER_LOOK) {
                return Ok(());
            }
            store.gate.add_loaded_bytes(offset - std::mem::replace(&mut shown, offset));
            if order.stands() { Ok(()) } else { Err(Lost::Over) }
        })?;
        Ok(libraries)
    }

    /// Puts what was loaded in place of the old data.
    fn swap_in(&self, libraries: &[Vec<u8>], applier: &mut Applier, position: &Position) {
        let store = &self.shared.store;
        applier.forget();
        let text = applier.loaded(position);
        self.under_all_locks(&mut |txn| {
            for db in 0..self.databases() {
                let Some(space) = store.spaces.get(DbIndex(db)) else { continue };
                txn.take_over(space, self.aside_of(db));
            }
            store.libraries.get().iter().for_each(|(name, _)| txn.apply(&Effect::Library { name, code: b"" }));
            libraries.iter().for_each(|code| _ = script::load_library(store, code));
            txn.apply(&Effect::Position { text: text.as_bytes() });
        });
    }

    fn load_all(&self, copy: &Copy) -> Result<(), Lost> {
        let store = &self.shared.store;
        self.clear();
        let (mut keys, mut shown, mut room): (u64, u64, Vec<u8>) = (0, 0, Vec::new());
        self.each_item(copy, &mut |item, offset| {
            match item {
                Item::Entry(entry) => load(store, *entry, &mut room),
                // One that is invalid was reported before.
                Item::Function(code) => _ = script::load_library(store, &code),
                _ => return Ok(()),
            }
            keys += 1;
            if !keys.is_multiple_of(KEYS_PER_LOOK) {
                return Ok(());
            }
            store.gate.add_loaded_bytes(offset - std::mem::replace(&mut shown, offset));
            if store.gate.is_cancelled() { Err(Lost::Over) } else { Ok(()) }
        })
    }

    /// Empties all databases, and removes all libraries of functions and the position. There is no log.
    fn clear(&self) {
        let store = &self.shared.store;
        let spaces: Vec<_> = (0..self.databases()).filter_map(|db| store.spaces.get(DbIndex(db))).collect();
        self.under_all_locks(&mut |txn| {
            spaces.iter().for_each(|space| txn.apply(&Effect::Clear { space: *space }));
            store.libraries.get().iter().for_each(|(name, _)| txn.apply(&Effect::Library { name, code: b"" }));
            txn.apply(&Effect::Position { text: b"" });
        });
    }

    /// Runs this once it has all locks.
    fn under_all_locks(&self, run: &mut dyn FnMut(&mut Txn<'_>)) {
        let mut scratch = self.scratch();
        let at = At { now: 0, db: DbIndex(0), touch: false, worker: self.worker, writes: WriteClass::Any };
        let mut commit = || {
            self.shared.store.commit(&mut scratch, &LockSet::All, &at, |txn| {
                run(txn);
                Ok(())
            })
        };
        while commit().is_err() {
            thread::yield_now();
        }
    }
}

/// A file that is written from its beginning, until the order is over.
struct Out<'a> {
    file: Arc<dyn File>,
    at: u64,
    order: &'a Order,
}

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.order.stands() {
            return Err(io::Error::other("the order is over"));
        }
        let written = self.file.write_at(bytes, self.at).map_err(io::Error::other)?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
