//! What a worker reuses from command to command.

use crate::compression::Coder;
use crate::hold::HoldTable;
use crate::locking::HeldShards;
use crate::notices::{Notice, Notices};
use crate::record_sink::LogView;
use crate::serve::serving::Serving;
use crate::store::Store;
use crate::wants::want::Want;
use base::{DbIndex, Lsn, ShardId};
use cmdlog::RecordBuilder;
use engine::Key;
use types::Decoder;

/// What a worker reuses from command to command.
#[derive(Default)]
pub struct Scratch {
    /// The record of the running command.
    pub record: RecordBuilder,
    /// Reads that found an entry.
    pub hits: u64,
    /// Reads that found none.
    pub misses: u64,
    /// Effects applied, as INFO's `rdb_changes_since_last_save` counts them.
    pub changes: u64,
    /// Entries removed because their time had come.
    pub expired: u64,
    /// Entries removed to make room.
    pub evicted: u64,
    /// The client whose command runs; 0 for none.
    pub client: u64,
    /// The database that decides whether the command has to wait for a flush, if it is not the one selected.
    pub admitted_by: Option<DbIndex>,
    /// The notices of the running command.
    pub(crate) notices: Vec<Notice>,
    /// See [`engine::Keyspace::take_buffer`].
    pub(super) buffer: Vec<u8>,
    /// Reads values that are stored compressed.
    pub(crate) decoder: Decoder,
    /// Compresses what is written.
    pub(super) coder: Coder,
    /// Optional fields of an entry that is stored on a tier.
    pub(super) tagged: Vec<u8>,
    pub(crate) rng: Option<base::Rng>,
    /// The log in force.
    pub(crate) log: LogView,
    /// What the running command changes, while replies wait for the log.
    pub(crate) touched: Touched,
    /// Up to where the log has to be durable before the last command may be answered.
    pub(crate) hold: Lsn,
    /// The position after the last command's record; 0 when it has none.
    pub(crate) wrote: Lsn,
    /// Commands that wait for what it changes.
    pub(crate) serving: Serving,
    /// Rows that the running command lacks.
    pub(crate) wants: Vec<Want>,
    /// The running command has changed something where leaves may be absent.
    pub(crate) waits_for_leaves: bool,
}

impl Scratch {
    /// Whether there was a log when the last command ran; only then do the other two methods mean anything.
    #[inline]
    pub fn is_logged(&self) -> bool {
        self.log.sink.is_some()
    }

    /// How many values were decompressed since the last call.
    pub fn take_decompressed(&mut self) -> u64 {
        self.decoder.take_count()
    }

    /// The position after the last command's record; `None` when it changed nothing.
    pub fn wrote(&self) -> Option<Lsn> {
        (self.wrote > Lsn(0)).then_some(self.wrote)
    }

    /// Has the last command's notices announced, under its locks. True when there are any.
    #[inline]
    pub(crate) fn hand_over_notices(&mut self, to: &Notices) -> bool {
        !self.notices.is_empty() && self.queue_notices(to)
    }

    #[cold]
    fn queue_notices(&mut self, to: &Notices) -> bool {
        to.queue(std::mem::take(&mut self.notices), self.hold().unwrap_or(Lsn(0)));
        true
    }

    /// Hold the last command's reply back until the log is durable up to here: the reply shows its own change, or one
    /// of another command that could still be lost. `None` when replies do not wait.
    pub fn hold(&self) -> Option<Lsn> {
        (self.log.holds && self.hold > Lsn(0)).then_some(self.hold)
    }
}

/// Keys changed by a command before their position in the log is known.
#[derive(Default)]
pub(crate) struct Touched {
    keys: Vec<(ShardId, u8)>,
    /// There are too many to name, or whole keyspaces are among them.
    pub(super) all: bool,
    /// Libraries have changed.
    pub(super) libraries: bool,
}

/// Keys named at most: a command that changes more holds back replies about all keys of its shards.
const TOUCHED_MAX: usize = 1024;

impl Touched {
    pub(super) fn add(&mut self, shard: ShardId, key: &Key<'_>) {
        match self.keys.len() < TOUCHED_MAX {
            true => self.keys.push((shard, HoldTable::bits(key.hash))),
            false => self.all = true,
        }
    }

    /// Puts the position of the changes into the shards' tables.
    pub(crate) fn apply(&mut self, store: &Store, held: &mut HeldShards<'_>, lsn: Lsn) {
        if std::mem::take(&mut self.libraries) {
            store.libraries.set_changed_at(lsn);
        }
        if std::mem::take(&mut self.all) {
            held.iter_mut().filter_map(|shard| shard.holds.as_mut()).for_each(|holds| holds.touch_all(lsn));
        } else {
            for (shard, bits) in &self.keys {
                if let Some(holds) = &mut held.get(*shard).holds {
                    holds.touch(*bits, lsn);
                }
            }
        }
        self.keys.clear();
    }
}
