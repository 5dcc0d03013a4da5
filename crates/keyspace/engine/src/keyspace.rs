//! The two faces of storage: [`Keyspace`] as commands see it, [`Engine`] as each shard's storage implements it.

use crate::{
    ChangedNames, Edited, Effect, Encoding, Entry, EntrySink, ExtFields, Key, Known, Libraries, Names, NewEntry,
    NotifyClass, Rows, Ticket, Type, Unedited, Value, Waiter, WalkProgress, Wanted,
};
use base::hash::KeyHasher;
use base::{DbIndex, KeyspaceId, ShardId, UnixMs};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use value::Big;

/// The engine does not have the row in memory. The command gives up, having changed nothing, and runs again later. This
/// error does not name the row: the caller asks the engine for a ticket ([`Engine::want`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the row has to be fetched first")]
pub struct Fetch;

/// One step of a SCAN over a keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanStep {
    /// Where the next step starts; `None` when the walk is complete.
    pub next: Option<u64>,
}

/// What commands see: the locked part of the keyspaces, a fixed time, and one way to change something.
///
/// A command may use only the keys its key specification names, since only their shards are locked; the implementation
/// asserts this.
pub trait Keyspace {
    /// Wall time of this command (of the whole transaction inside EXEC).
    fn now(&self) -> UnixMs;

    /// The keyspace SELECT has chosen.
    fn space(&self) -> KeyspaceId;

    /// Switches to another database, which exists.
    fn select(&mut self, index: DbIndex);

    /// Sets the flag when the key changes from now on (WATCH).
    fn watch(&mut self, key: &Key<'_>, changed: &Arc<AtomicBool>);

    /// Enlists a command that found nothing and waits. From now on a command that changes one of its keys serves it, in
    /// the order in which commands began to wait. All its keys are locked.
    fn wait(&mut self, _waiter: Arc<dyn Waiter>) {}

    /// The keyspace of a SELECT number; `None` when there are fewer databases.
    fn space_of(&self, index: DbIndex) -> Option<KeyspaceId>;

    /// Hashes a key of the selected keyspace.
    fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k>;

    /// The entry under the key, as a client would see it, counted as an access; expired entries are absent. One that is
    /// compressed is decompressed, once in a command.
    ///
    /// # Errors
    /// [`Fetch`] when the row is not in memory: return at once.
    fn read(&mut self, key: &Key<'_>) -> Result<Option<Entry<'_>>, Fetch>;

    /// The entry under the key as it is stored, perhaps compressed ([`Entry::is_compressed`]). Leaves no trace: the
    /// access stamp stays, and INFO counts neither a hit nor a miss.
    ///
    /// # Errors
    /// [`Fetch`] when the row is not in memory: return at once.
    fn peek(&mut self, key: &Key<'_>) -> Result<Option<Entry<'_>>, Fetch>;

    /// [`Keyspace::peek`] for what the entry says without its value: type, expiration, optional fields. The value may
    /// be away ([`Entry::is_away`]).
    ///
    /// # Errors
    /// [`Fetch`] when the row is not in memory: return at once.
    fn peek_head(&mut self, key: &Key<'_>) -> Result<Option<Entry<'_>>, Fetch> {
        self.peek(key)
    }

    /// [`Keyspace::peek`] that decompresses.
    ///
    /// # Errors
    /// [`Fetch`] when the row is not in memory: return at once.
    fn peek_value(&mut self, key: &Key<'_>) -> Result<Option<Entry<'_>>, Fetch> {
        self.peek(key)
    }

    /// [`Keyspace::peek`] by a command that uses the entry, but not its value: an access, but neither a hit nor a miss.
    ///
    /// # Errors
    /// [`Fetch`] when the row is not in memory: return at once.
    fn read_stored(&mut self, key: &Key<'_>) -> Result<Option<Entry<'_>>, Fetch> {
        self.read_to_edit(key)
    }

    /// [`Keyspace::read`] by a command that then edits the entry: an access, but neither a hit nor a miss.
    ///
    /// # Errors
    /// [`Fetch`] when the row is not in memory: return at once.
    fn read_to_edit(&mut self, key: &Key<'_>) -> Result<Option<Entry<'_>>, Fetch> {
        self.read(key)
    }

    /// The CAS id of the string under the key, given now if it has none; `None` when there is no string. See
    /// [`Engine::cas_id`]. Leaves no other trace, as [`Keyspace::peek`].
    ///
    /// # Errors
    /// [`Fetch`] when the row is not in memory: return at once.
    fn cas_id(&mut self, key: &Key<'_>) -> Result<Option<u64>, Fetch>;

    /// Has the [sticky](Entry::is_sticky) entry of the key's shard that was changed last counted as it is now.
    fn settle_sticky(&mut self, _key: &Key<'_>) {}

    /// Counts a [`Keyspace::peek`] as a hit or a miss, for commands that ask about keys without using them (TYPE, TTL,
    /// OBJECT).
    fn count_peek(&mut self, _found: bool) {}

    /// Takes what has been counted since the last call: reads that found an entry, and reads that found none.
    fn take_read_counts(&mut self) -> (u64, u64) {
        (0, 0)
    }

    /// Whether reads can answer [`Fetch`] at all; when not, a transaction need not read its rows beforehand.
    fn may_fetch(&self) -> bool {
        true
    }

    /// Reads the rows that the last [`Fetch`] was about, while the locks are held: for a command that cannot run again
    /// from its start, because an earlier command of its script or transaction has made a change. Waits for the device.
    ///
    /// # Errors
    /// When a row cannot be read.
    fn load_lacking(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    /// A further command of a script begins: it may lack rows although an earlier one has made changes.
    fn next_command(&mut self) {}

    /// Applies the effect and adds it to the record of this command. Cannot fail: check first.
    fn apply(&mut self, effect: &Effect<'_>);

    /// [`Keyspace::apply`] of an [`Effect::Edit`] that returns what was before and what is left. At least one change.
    ///
    /// # Errors
    /// With [`Known::Read`] none. With [`Known::Nothing`], which is for changes that do not depend on what is stored,
    /// the reason why [`Keyspace::read_to_edit`] has to come first; nothing is done then.
    fn edit(&mut self, key: &Key<'_>, kind: Type, changes: &[u8], known: Known) -> Result<Edited, Unedited>;

    /// Whether what is applied is recorded: the changes of an [`Effect::Replace`] are left out where it is not.
    fn is_recorded(&self) -> bool {
        true
    }

    /// An empty buffer, for changes that are being collected, with memory of earlier ones.
    fn take_buffer(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Gives the buffer back.
    fn give_buffer(&mut self, _buffer: Vec<u8>) {}

    /// Publishes an event of the key, after its change and in the words of Redis. Clients that asked for its class are
    /// notified when the command is done. Costs next to nothing when no client has asked.
    fn notify(&mut self, _class: NotifyClass, _event: &'static str, _key: &Key<'_>) {}

    /// Publishes a message when the transaction that runs is done, as [`Keyspace::notify`] does with events and in
    /// order with them. False when the implementation cannot: the caller publishes at once.
    fn publish(&mut self, _channel: &[u8], _text: &[u8], _is_sharded: bool) -> bool {
        false
    }

    /// Keeps nothing of what the command has changed for the log: the server ends, and entries are not read again.
    fn abandon(&mut self) {}

    /// Whether the command may use any key: all shards are locked.
    fn has_all_locks(&self) -> bool {
        true
    }

    /// Locks all shards in the middle of a script, which has changed something. False, with nothing changed, when
    /// another script does.
    fn lock_all(&mut self) -> bool {
        true
    }

    /// The libraries of functions, as a reply shows them. `None` where the implementation has none.
    fn libraries(&mut self) -> Option<Arc<Libraries>> {
        None
    }

    /// Up to where collections are packed, and how big the nodes of streams are.
    fn limits(&self) -> Arc<value::Limits> {
        Arc::default()
    }

    /// What orders the elements of collections: the same for as long as the process lives.
    fn hasher(&self) -> &KeyHasher;

    /// Entries of the keyspace, expired ones not yet removed included.
    fn len(&self, space: KeyspaceId) -> u64;

    /// Whether the keyspace has no entry, which [`Keyspace::len`] may say of one that has some.
    fn is_empty(&self, space: KeyspaceId) -> bool {
        self.len(space) == 0
    }

    /// Entries of the keyspace that have an expiration.
    fn expiring_len(&self, space: KeyspaceId) -> u64;

    /// Collections of the keyspace that have elements with a time of their own.
    fn timed_len(&self, _space: KeyspaceId) -> u64 {
        0
    }

    /// The average time the entries with an expiration have left, in milliseconds: an estimate from a few of each
    /// shard. `None` when there are none, or when the implementation has no such estimate.
    fn average_ttl_ms(&mut self, _space: KeyspaceId) -> Option<u64> {
        None
    }

    /// One step of a walk over the shard that `cursor` names, visiting live and expired entries alike; every entry
    /// present throughout a whole walk is visited at least once. Cursor 0 starts, and a `next` of `None` ends.
    fn scan(&mut self, space: KeyspaceId, cursor: u64, visit: &mut dyn FnMut(&Entry<'_>)) -> ScanStep;

    /// What has changed in a range of names since rows were stored, up to `limit` names of each shard: the begin of a
    /// step over names in order. `None` for a keyspace that keeps no order.
    fn changed_names(&mut self, _space: KeyspaceId, _range: &Names, _limit: usize) -> Option<ChangedNames> {
        None
    }

    /// The cursor of SCAN for a name, where names are kept in order. It is never 0.
    fn cursor_at(&mut self, _space: KeyspaceId, _name: &[u8]) -> Option<u64> {
        None
    }

    /// The name of such a cursor, or one before it; of 0, the first. `None` for a keyspace that keeps no order.
    fn name_at(&mut self, _space: KeyspaceId, _cursor: u64) -> Option<Vec<u8>> {
        None
    }

    /// Some entry that is not expired, each about equally likely; `None` when there is none.
    fn random_entry(&mut self, space: KeyspaceId) -> Option<Entry<'_>>;

    /// A random number below `bound`, each equally likely; 0 when that is 0. For choices of elements, which are then
    /// recorded by name.
    fn random_below(&mut self, bound: u64) -> u64;

    /// Seconds since the entry was last used, from its stamp.
    fn idle_seconds(&self, stamp: u32) -> u64;

    /// The logarithmic access counter in the stamp, decayed to now; meaningful under an LFU policy only.
    fn frequency(&self, stamp: u32) -> u8;

    /// Sets the access stamp of an entry, which exists. Not logged: usage does not survive a restart.
    fn set_usage(&mut self, _key: &Key<'_>, _usage: Usage) {}

    /// Bytes an entry costs: its allocation, its share of the table and of the expiration index.
    fn cost_bytes(&mut self, key: &Key<'_>) -> Option<u64>;

    /// Forgets entries that rows hold and nothing wants, of each shard about this many bytes: for tests. Returns how
    /// many bytes that were.
    fn drop_clean(&mut self, _bytes: u64) -> u64 {
        0
    }
}

/// Serves commands that wait. The code that runs commands gives it to the store.
pub trait Serve: Send + Sync {
    /// Runs the command again, with the locks of all its keys. False when it still waits.
    fn serve(&self, ks: &mut dyn Keyspace, waiter: &dyn Waiter) -> bool;
}

/// How an entry has been used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// Idle for this many seconds.
    IdleSeconds(u64),
    /// So often, on the logarithmic scale of [`Keyspace::frequency`].
    Frequency(u8),
}

/// What of an entry is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The entry.
    Entry,
    /// Some of its elements (fields of a hash).
    Elements,
}

/// Storage of one shard for the keyspaces it serves. Used under the shard's lock only.
pub trait Engine: Send {
    /// Sets the time; called whenever the lock was taken for a batch. Reads compare expirations with it.
    fn set_time(&mut self, now: UnixMs);

    /// The live entry under the key. `touch` renews its access stamp; the entry given still has the one before. Its
    /// value may be away ([`Entry::is_away`]): a caller that uses the value answers [`Fetch`] then.
    ///
    /// # Errors
    /// [`Fetch`] when the row is not in memory.
    fn read(&mut self, key: &Key<'_>, touch: bool) -> Result<Option<Entry<'_>>, Fetch>;

    /// Notes that a command wants the row that a read has answered [`Fetch`] about. It stays in memory, once it is
    /// there, until [`Engine::release`] was called as often as this.
    fn want(&mut self, _key: &Key<'_>) -> Wanted {
        Wanted { ticket: Ticket(0), rows: None }
    }

    /// Takes over the row that was read for a ticket; `None` when there is none. False, with nothing done, when the
    /// ticket is void: the key was written meanwhile, or the row is there.
    fn install(&mut self, _key: &Key<'_>, _ticket: Ticket, _row: Option<&[u8]>) -> bool {
        false
    }

    /// The row of a ticket could not be read: the next command that wants it gets another ticket.
    fn withdraw(&mut self, _key: &Key<'_>, _ticket: Ticket) {}

    /// A command that wanted the row has run, or will not run any more.
    fn release(&mut self, _key: &Key<'_>) {}

    /// Whether there may be a live entry under the key: false only when there is none. Asks for no row, so it may be
    /// called after a change.
    fn may_hold(&mut self, key: &Key<'_>) -> bool {
        self.read(key, false).map_or(true, |entry| entry.is_some())
    }

    /// Stores the entry with its optional fields, replacing what was there: fields that are not given are gone.
    fn write(&mut self, key: &Key<'_>, entry: &NewEntry<'_>);

    /// Overwrites bytes of a stored string at `offset`, growing it, zero-filled, as needed; marks it
    /// [`crate::Encoding::EDITED`]. Its optional fields stay. The entry exists. False when the string is compressed and
    /// there are bytes to write: nothing has changed then, and it is to be decompressed first.
    #[must_use]
    fn splice(&mut self, key: &Key<'_>, offset: u64, bytes: &[u8]) -> bool;

    /// Stores the same value in another form, compressed or decompressed. Its expiration, access stamp and
    /// optional fields stay, and to a running checkpoint it is no change. The entry exists.
    fn recode(&mut self, key: &Key<'_>, encoding: Encoding, value: Value<'_>);

    /// Lets `change` bring leaves of the tree under the key into another form, compressed or not; a tree that is being
    /// loaded may get leaves that way. Otherwise it is no change, as [`Engine::recode`]. The entry exists, and is a
    /// tree.
    fn reform(&mut self, key: &Key<'_>, change: &mut dyn FnMut(&mut Big));

    /// Applies changes to the collection under the key, which is made if it is absent. With its last element it goes,
    /// unless it has attributes: then it stays, packed and without bytes, and has 0 elements. Its expiration and
    /// optional fields stay. An edit with [`Known::Nothing`] is also a read with this `touch`.
    ///
    /// # Errors
    /// With [`Known::Read`] only [`Unedited::Compressed`]: it is to be decompressed first. With [`Known::Nothing`] also
    /// what a read would have shown; an engine may refuse all of these. Nothing has changed then.
    ///
    /// # Panics
    /// When the bytes are no changes of this type.
    fn edit(
        &mut self,
        key: &Key<'_>,
        kind: Type,
        changes: &[u8],
        known: Known,
        touch: bool,
    ) -> Result<Edited, Unedited>;

    /// Sets or clears the expiration. False when nothing is stored there.
    fn set_expiration(&mut self, key: &Key<'_>, at: Option<UnixMs>) -> bool;

    /// Replaces all optional fields of the entry. False when nothing is stored there.
    fn set_fields(&mut self, key: &Key<'_>, fields: ExtFields<'_>) -> bool;

    /// An entry was stored under the key that is [sticky](Entry::is_sticky): an engine that evicts counts these.
    fn sticky_stored(&mut self, _key: &Key<'_>) {}

    /// Counts the sticky entry that was changed last, which is left out of the counts until the next change.
    fn settle_sticky(&mut self) {}

    /// The CAS id of the live string under the key, given now if it has none; `None` when there is no such string. When
    /// the string is edited it gets another id, and when it is replaced it loses its id. Its expiration and its other
    /// fields change without one. Ids are in memory only (X3 of [`crate::fields`]): giving one is no change, as
    /// [`Engine::recode`].
    ///
    /// # Errors
    /// [`Fetch`] when the row is not in memory.
    fn cas_id(&mut self, key: &Key<'_>) -> Result<Option<u64>, Fetch>;

    /// Removes what is stored there, expired or not. False when there was nothing.
    fn remove(&mut self, key: &Key<'_>) -> bool;

    /// Removes every entry of the keyspace; memory is given back in later [`Engine::clean`] steps.
    fn clear(&mut self, space: KeyspaceId);

    /// Entries stored, expired ones included.
    fn len(&self, space: KeyspaceId) -> u64;

    /// Entries with an expiration.
    fn expiring_len(&self, space: KeyspaceId) -> u64;

    /// Entries that are collections with elements that have a time of their own.
    fn timed_len(&self, space: KeyspaceId) -> u64;

    /// Visits the stretch of the keyspace that starts at the hash bound `from` (0 starts), and says where the next
    /// begins. Every entry present throughout a walk is visited, while the table grows and entries move.
    fn scan(&mut self, space: KeyspaceId, from: u64, visit: &mut dyn FnMut(&Entry<'_>)) -> ScanStep;

    /// Visits entries of the keyspace that [`Engine::scan`] does not, since only rows hold them, from a position on;
    /// and says where the next step begins. Entries that `scan` has visited may be visited again, unless `since` is
    /// what [`Engine::loads`] gave before that walk began and nothing has come into memory meanwhile.
    fn scan_rows(
        &mut self,
        _space: KeyspaceId,
        _from: u64,
        _since: Option<u64>,
        _visit: &mut dyn FnMut(&Entry<'_>),
    ) -> Option<u64> {
        None
    }

    /// Adds up to `limit` names of the range that have changed since rows were stored, and the rows. False for a
    /// keyspace that keeps no order.
    fn changed_names(
        &self,
        _space: KeyspaceId,
        _shard: ShardId,
        _range: &Names,
        _limit: usize,
        _changed: &mut ChangedNames,
    ) -> bool {
        false
    }

    /// The rows of a keyspace that keeps its names in order.
    fn ordered_rows(&self, _space: KeyspaceId) -> Option<&Arc<dyn Rows>> {
        None
    }

    /// Changes whenever a row comes into memory. 0 for a keyspace that has no rows elsewhere.
    fn loads(&self, _space: KeyspaceId) -> u64 {
        0
    }

    /// Whether [`Engine::len`] is the number of entries. When not, there may be some although it is 0.
    fn is_len_exact(&self, _space: KeyspaceId) -> bool {
        true
    }

    /// [`Engine::scan`] that visits each entry with its cost ([`Engine::cost_bytes`]), and no entry whose hash is below
    /// `from`: a walk in which each step begins where the one before has ended visits no entry twice.
    fn survey(&mut self, space: KeyspaceId, from: u64, visit: &mut dyn FnMut(&Entry<'_>, u64)) -> ScanStep;

    /// A random entry, live or expired.
    fn random_entry(&mut self, space: KeyspaceId) -> Option<Entry<'_>>;

    /// When a random one of the entries with an expiration expires, each about equally likely; for estimates. `None`
    /// when none was found.
    fn random_expiration(&mut self, _space: KeyspaceId) -> Option<UnixMs> {
        None
    }

    /// Gives up to `limit` keys whose entries or elements are due at the time set; the caller logs their deletion and
    /// removes them. A key whose elements are due is given again until they are removed. Returns the number given.
    fn due(&mut self, limit: usize, visit: &mut dyn FnMut(Key<'_>, Due)) -> usize;

    /// Does up to `budget` units of upkeep (entries moved, pages returned); false when there is nothing to do.
    fn clean(&mut self, budget: usize) -> bool;

    /// Seconds since last use, from a stamp.
    fn idle_seconds(&self, stamp: u32) -> u64;

    /// The decayed access counter in a stamp.
    fn frequency(&self, stamp: u32) -> u8;

    /// Sets the access stamp of an entry, if it is stored.
    fn set_usage(&mut self, _key: &Key<'_>, _usage: Usage) {}

    /// Bytes the entry costs; `None` when nothing is stored there.
    fn cost_bytes(&mut self, key: &Key<'_>) -> Option<u64>;

    /// Starts a checkpoint: every entry stored now will go to the sink exactly once, as it is now, even if it is
    /// changed before the walk reaches it.
    fn begin_checkpoint(&mut self, sink: Box<dyn EntrySink>);

    /// Gives up to about `budget` further entries to the sink.
    fn walk_checkpoint(&mut self, budget: usize) -> WalkProgress;

    /// Ends the checkpoint, complete or not, and gives the sink back; `None` when none was running.
    fn end_checkpoint(&mut self) -> Option<Box<dyn EntrySink>>;
}
