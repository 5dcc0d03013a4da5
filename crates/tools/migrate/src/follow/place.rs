//! Where a copy keeps its position: a key of a database above those of the primary.

use super::{Event, Follow};
use crate::error::MigrateError;
use crate::runs;
use base::{DbIndex, KeyspaceId};
use command::Host;
use engine::{Effect, Encoding, Keyspace, SharedBytes, Value, WriteClass};
use inspect::text::escape;
use rdb::RdbError;
use replication::apply::{ApplyError, Surroundings};
use replication::runner::BEGINNING;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use store::{At, Blocked, LockSet, Scratch, Store, Txn};

/// The key, and the only one in its database.
const KEY: &[u8] = b"position";

/// Time between two attempts while the log or a checkpoint has no room.
const RETRY: Duration = Duration::from_micros(200);

/// The keyspace of the position, and what commands need.
pub(super) struct Place {
    store: Arc<Store>,
    space: KeyspaceId,
    host: Host,
    is_partial: bool,
    /// Commands left out.
    pub left_out: u64,
}

/// [`Place`], with a listener.
pub(super) struct Listened<'a> {
    pub place: &'a mut Place,
    pub tell: &'a mut dyn FnMut(&Event<'_>),
}

impl Place {
    pub fn new(store: &Arc<Store>, follow: &Follow<'_>) -> Self {
        let space = store.spaces.get(DbIndex(follow.databases)).unwrap_or_default();
        Self { store: Arc::clone(store), space, host: runs::host(), is_partial: follow.is_partial, left_out: 0 }
    }

    /// The text that was stored last; empty without one.
    pub fn text(&self) -> String {
        let at = At { now: BEGINNING, db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Nothing };
        let key = self.store.key(self.space, KEY);
        let mut found = Vec::new();
        let _read = self.store.commit(&mut Scratch::default(), &LockSet::All, &at, |txn| {
            match txn.read(&key)?.map(|entry| entry.value) {
                Some(Value::Bytes(bytes)) => found = bytes.to_vec(),
                Some(Value::Shared(bytes)) => found = bytes.to_vec(),
                _ => {}
            }
            Ok(())
        });
        String::from_utf8_lossy(&found).into_owned()
    }

    /// Stores it, past the log.
    pub fn load(&self, text: String) {
        let text = SharedBytes::new(text.into_bytes());
        let key = self.store.key(self.space, KEY);
        self.store.load(&Effect::Set { key, value: Value::Shared(&text), encoding: Encoding::PLAIN, expire_at: None });
    }

    /// Removes it: the copy is complete, and a server has no use for it.
    ///
    /// # Errors
    /// The log takes nothing.
    pub fn clear(&self, follow: &Follow<'_>) -> Result<(), MigrateError> {
        let mut scratch = Scratch::default();
        loop {
            let at = At { now: BEGINNING, db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Any };
            let cleared = self.store.commit(&mut scratch, &LockSet::All, &at, |txn| {
                txn.apply(&Effect::Clear { space: self.space });
                Ok(())
            });
            match cleared {
                Ok(()) => return Ok(()),
                Err(Blocked::Refused) => {
                    let log = self.store.log_of(&mut scratch);
                    let why =
                        log.and_then(|log| log.refusal()).unwrap_or_else(|| "the log takes no changes".to_owned());
                    return Err(MigrateError::NotKept { path: follow.dir.to_owned(), why });
                }
                Err(_) => thread::sleep(RETRY),
            }
        }
    }
}

impl Surroundings for Listened<'_> {
    fn host(&self) -> &Host {
        &self.place.host
    }

    fn keep(&self, txn: &mut Txn<'_>, position: &str) {
        let key = self.place.store.key(self.place.space, KEY);
        let value = Value::Bytes(position.as_bytes());
        txn.apply(&Effect::Set { key, value, encoding: Encoding::PLAIN, expire_at: None });
    }

    fn leave_out(&mut self, command: &[u8], why: &str) -> bool {
        if self.place.is_partial {
            self.place.left_out += 1;
            (self.tell)(&Event::LeftOut { command: &escape(command), why });
        }
        self.place.is_partial
    }

    fn wait_for_log(&mut self, _why: &str) -> bool {
        false
    }
}

/// The same error, with the primary and the directory.
pub(super) fn told(follow: &Follow<'_>, error: ApplyError) -> MigrateError {
    let primary = follow.primary.to_string();
    match error {
        ApplyError::Form { offset, expected } => MigrateError::Stream { primary, offset, expected },
        ApplyError::Command { offset, command, why } => {
            MigrateError::Command { primary, offset, command: escape(&command), why }
        }
        // An import never says so.
        ApplyError::Over => super::stopped(follow),
        ApplyError::NotKept { why } => MigrateError::NotKept { path: follow.dir.to_owned(), why },
        ApplyError::Spool { offset, source } => {
            let path = super::beside(follow.dir, ".copy.stream");
            MigrateError::File { path, keys: 0, error: RdbError::Io { offset, source } }
        }
    }
}
