//! Rows that a command lacks: which they are, how they come into memory, and how long they stay there.
//!
//! A read that answers [`Fetch`](engine::Fetch) notes its row here, in the worker's [`Scratch`]. The caller that runs
//! the command takes the list, has the rows read without any lock, installs them and runs the command again. The rows
//! stay until they are released.

pub(crate) mod want;

use crate::locking::HeldShards;
use crate::store::Store;
use crate::txn::Scratch;
use base::ShardId;
use engine::{Engine, Got, Key, Ticket, Wanted};
use std::io;
use std::sync::atomic::Ordering;
use value::cold::{Cold, absent};
use want::{NO_SHARD, Want};

impl Scratch {
    /// The rows that the last command lacked, each as often as it asked for it. Empty unless it was answered
    /// [`Blocked::Fetch`](crate::Blocked::Fetch). The caller that takes them releases them: [`Store::release`].
    pub fn take_wants(&mut self) -> Vec<Want> {
        std::mem::take(&mut self.wants)
    }

    /// Notes that the running command lacks a row.
    #[cold]
    pub(crate) fn want(&mut self, shard: ShardId, key: &Key<'_>) {
        if self.wants.last().is_some_and(|last| last.space == key.space && *last.key == *key.bytes) {
            return;
        }
        let (space, hash, key) = (key.space, key.hash, key.bytes.into());
        self.wants.push(Want { shard, space, hash, key, ticket: Ticket(0), rows: None, is_loaded: false, leaf: None });
    }

    /// Notes that the command that was run last lacks a leaf.
    pub fn want_leaf(&mut self, leaf: Cold) {
        self.wants.push(Want::of_leaf(leaf));
    }

    /// From its first change on, the running command reads absent leaves at once: half of it must not be left behind.
    /// Until its wants are forgotten.
    pub(crate) fn wait_for_leaves(&mut self) {
        if !std::mem::replace(&mut self.waits_for_leaves, true) {
            absent::begin_waiting();
            // Any want has the end of the command look here.
            self.wants.push(Want::of_nothing());
        }
    }

    /// The command has run, or will not run any more.
    #[cold]
    pub(crate) fn forget_wants(&mut self) {
        self.wants.clear();
        if std::mem::take(&mut self.waits_for_leaves) {
            absent::end_waiting();
        }
    }

    /// Asks the engines for tickets, still under the locks; without a fetch, what was noted is forgotten.
    #[cold]
    pub(crate) fn ask_for_wants(&mut self, held: &mut HeldShards<'_>, is_fetch: bool) {
        for want in self.wants.extract_if(.., |want| want.is_loaded) {
            held.get(want.shard).engine.release(&want.key());
        }
        if !is_fetch {
            return self.forget_wants();
        }
        // Wants of an earlier command that were never taken are of other shards.
        self.wants.retain(|want| held.has(want.shard));
        for want in &mut self.wants {
            let Wanted { ticket, rows } = held.get(want.shard).engine.want(&want.key());
            (want.ticket, want.rows) = (ticket, rows);
        }
    }
}

impl HeldShards<'_> {
    /// Reads rows while the shards are locked, and waits for the device. They stay until the locks are opened: that a
    /// row is absent is known only while something wants it.
    #[cold]
    pub(crate) fn load(&mut self, wants: &mut [Want]) -> io::Result<()> {
        let (mut row, mut result) = (Vec::new(), Ok(()));
        for want in wants.iter_mut().filter(|want| !want.is_loaded && want.shard != NO_SHARD) {
            let engine = &mut self.get(want.shard).engine;
            let Wanted { ticket, rows } = engine.want(&want.key());
            want.is_loaded = true;
            let Some(rows) = rows else { continue };
            row.clear();
            match rows.get(&want.key, &mut row) {
                Ok(is_there) => {
                    engine.install(&want.key(), ticket, is_there.then_some(&row));
                }
                Err(error) => {
                    engine.withdraw(&want.key(), ticket);
                    result = Err(io::Error::other(want.unreadable(&error)));
                }
            }
        }
        result
    }
}

impl Store {
    /// Puts a row that was read into memory; `None` when there is none. A ticket that is void changes nothing. Over the
    /// memory budget others leave the shard for it.
    pub fn install(&self, want: &Want, row: Option<&[u8]>) {
        if want.leaf.is_some() {
            return;
        }
        let mut held = self.lock_patiently(want.shard);
        let is_new = held.engine.install(&want.key(), want.ticket, row);
        if is_new && self.tier.get().is_some() && !held.engine.is_backed(want.space) {
            self.tier_counts.promoted.fetch_add(1, Ordering::Relaxed);
        }
        if is_new && self.is_over_budget() {
            held.engine.make_room(2 * row.map_or(0, <[u8]>::len));
        }
        self.notices.look_for_leaves(&held.engine);
        self.unlock_one(held);
    }

    /// Has a row in memory, waiting for the device if it is not: for replay, while nothing else runs. Gives what is to
    /// be released; `None` when the row was there.
    ///
    /// # Errors
    /// When the row cannot be read.
    pub(crate) fn load_row(&self, key: &Key<'_>) -> io::Result<Option<Want>> {
        let shard = self.shard_of(key);
        let mut held = self.lock_patiently(shard);
        let is_lacking = held.engine.read(key, false).map_or(true, |entry| entry.is_some_and(|entry| entry.is_away()));
        let wanted = is_lacking.then(|| held.engine.want(key));
        self.unlock_one(held);
        let Some(Wanted { ticket, rows }) = wanted else { return Ok(None) };
        let (space, hash, bytes) = (key.space, key.hash, key.bytes.into());
        let want = Want { shard, space, hash, key: bytes, ticket, rows, is_loaded: false, leaf: None };
        if let Err(error) = self.read_in(&want) {
            self.release(&[want]);
            return Err(error);
        }
        Ok(Some(want))
    }

    /// Reads a row that a command lacks into memory. Blocks for the device.
    ///
    /// # Errors
    /// When the row cannot be read.
    pub fn read_in(&self, want: &Want) -> io::Result<()> {
        if !want.is_read() {
            return Ok(());
        }
        match want.read() {
            Ok(row) => self.install(want, row.as_deref()),
            Err(why) => {
                self.withdraw(want);
                return Err(io::Error::other(why));
            }
        }
        Ok(())
    }

    /// A row could not be read: the next command that wants it has it read again.
    pub fn withdraw(&self, want: &Want) {
        if want.leaf.is_some() {
            return;
        }
        let mut held = self.lock_patiently(want.shard);
        held.engine.withdraw(&want.key(), want.ticket);
        self.unlock_one(held);
    }

    /// Installs the row if reading it takes no I/O. False, with nothing done, when it does.
    pub fn install_at_once(&self, want: &Want, buffer: &mut Vec<u8>) -> bool {
        if let Some(leaf) = &want.leaf {
            return leaf.is_thawed();
        }
        let Some(rows) = &want.rows else { return false };
        buffer.clear();
        match rows.try_get(&want.key, buffer) {
            Got::Row => self.install(want, Some(buffer)),
            Got::Absent => self.install(want, None),
            Got::NeedsIo => return false,
        }
        true
    }

    /// The command that wanted these rows has run, or will not run any more: they may leave memory.
    pub fn release(&self, wants: &[Want]) {
        for want in wants.iter().filter(|want| want.leaf.is_none()) {
            let mut held = self.lock_patiently(want.shard);
            held.engine.release(&want.key());
            self.drop_if_read_once(&mut held, &want.key());
            self.unlock_one(held);
        }
    }
}
