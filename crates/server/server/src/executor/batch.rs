//! Runs the batch in order: what its requests will read is prefetched, and a request that has to wait is parked.

use super::pending::{CLOSED, Pending};
use super::requests::is_same_key;
use super::{BATCH_LEN, Executor, deliver};
use crate::ahead::STEP_LEN;
use crate::connection::Waiting;
use crate::key_route::KeyRoute;
use crate::others::{Unrun, among};
use crate::turn::Turn;
use command::{Categories, Flags, Locks, Row};
use engine::Key;
use store::WriteClass;
use value::reaper;

/// When at least this many requests in a row have the same key, its elements are prefetched.
const LOADED_MIN: usize = 4;

impl Executor {
    /// Runs the batch and starts the input area over. Called when every input byte is parsed or copied away.
    pub fn run_batch(&mut self) {
        self.run_batch_keeping_input();
        self.start_input_over();
    }

    pub(super) fn start_input_over(&mut self) {
        self.filled = 0;
        self.own_inputs.clear();
    }

    /// Prefetches the elements of one collection that consecutive requests name.
    #[inline(never)]
    fn load_elements(&self) {
        let mut first = 0;
        for run in self.places.chunk_by(|one, next| is_same_key(Some(one), next)) {
            if let (Some(place), LOADED_MIN..) = (&run[0], run.len()) {
                self.load_elements_of(place, &self.batch[first..first + run.len()]);
            }
            first += run.len();
        }
    }

    fn load_elements_of(&self, place: &KeyRoute, run: &[Pending]) {
        let mut requests: [[&[u8]; 2]; BATCH_LEN] = [[&[]; 2]; BATCH_LEN];
        let (mut key, mut is_edit) = (None, false);
        for (request, pending) in requests.iter_mut().zip(run) {
            let args = pending.args(&self.input, &self.own_inputs, &self.arguments);
            let Some(row) = pending.row.as_ref().filter(|row| names_elements(row)) else { return };
            let first_key = usize::from(row.first_key);
            *request = [1, 2].map(|behind| args.bytes(first_key + behind).unwrap_or_default());
            key = key.or(args.bytes(first_key));
            is_edit |= row.writes != WriteClass::Nothing;
        }
        if let Some(bytes) = key {
            let key = Key { space: place.space, bytes, slot: place.slot, hash: place.hash };
            self.shared.store.load_elements(place.shard, &key, &requests[..run.len()], is_edit);
        }
    }

    pub(super) fn run_batch_keeping_input(&mut self) {
        self.follow_users();
        self.ahead.begin(&self.shared.store, &self.places);
        if std::mem::take(&mut self.has_runs) {
            self.load_elements();
        }
        let batch = std::mem::take(&mut self.batch);
        let mut turn = Turn::new(self.worker, &self.shared, &self.stats, &self.limits, &mut self.scratch, self.now);
        let begun_ns = turn.so_far_ns();
        // The connection of the last request, taken out of the others.
        let (mut id, mut taken) = (CLOSED, None);
        for (at, pending) in batch.iter().enumerate() {
            if at % STEP_LEN == 0 {
                self.ahead.step(&self.shared.store, &self.places, at);
            }
            // Messages published by earlier requests follow their replies, and precede the replies of requests that
            // they cause.
            if self.shared.outlets.has_any(self.worker) {
                if let Some(connection) = taken.take() {
                    self.connections.put(std::mem::replace(&mut id, CLOSED), connection);
                }
                let output = (&mut self.connections, &mut self.to_send, &self.limits);
                deliver(self.worker, &self.shared, &mut self.deliveries, output);
            }
            if id != pending.connection.get() {
                if let Some(connection) = taken {
                    self.connections.put(id, connection);
                }
                id = pending.connection.get();
                taken = self.connections.take(id);
            }
            let Some(connection) = taken.as_deref_mut() else { continue };
            // After QUIT, and after another client's KILL has been answered, nothing more of a connection runs.
            if connection.session.close_after_replies || connection.session.info.is_killed() {
                continue;
            }
            connection.session.info.commands.add(1);
            if !connection.listed
                && let Some(memory) = self.spare_replies.pop()
            {
                connection.reply.adopt(memory);
            }
            let args = pending.args(&self.input, &self.own_inputs, &self.arguments);
            if !connection.waiting.is_empty() || connection.session.is_busy() {
                connection.waiting.push_back(Waiting { row: pending.row, args: args.to_owned() });
            } else if connection.reply.len() > self.limits.output_pause_bytes
                || turn.so_far_ns().saturating_sub(begun_ns) > self.batch_ns
            {
                connection.paused = true;
                connection.waiting.push_back(Waiting { row: pending.row, args: args.to_owned() });
            } else if let Err(blocked) = match (self.ahead.led_to(&self.places, at), pending.row.as_ref()) {
                (None, Some(row)) if may_take_long(row) => {
                    let unrun = Unrun {
                        batch: &batch[at + 1..],
                        area: &self.input,
                        own_inputs: &self.own_inputs,
                        arguments: &self.arguments,
                        parsing: &self.parsing,
                    };
                    let run = || turn.run(&mut self.scratch, connection, Some(row), &args, None);
                    among(&mut self.connections, unrun, run)
                }
                (way, row) => turn.run(&mut self.scratch, connection, row, &args, way),
            } {
                connection.waiting.push_back(Waiting { row: pending.row, args: args.to_owned() });
                match blocked {
                    store::Blocked::Log => self.waiting_for_room.push(id),
                    store::Blocked::Memory => {
                        self.awaits_memory = true;
                        self.waiting_for_room.push(id);
                    }
                    _ if connection.session.has_work() => self.working.push_back(id),
                    store::Blocked::Fetch => self.fetching.lack(id, self.scratch.take_wants()),
                    _ => self.waiting.push(id),
                }
            } else if let Some(block) = &mut connection.session.block {
                block.count_from(self.now, &*self.shared.store.clock);
                self.blocked.insert(id, block);
            }
            if !connection.listed {
                connection.listed = true;
                self.to_send.push(id);
            }
        }
        if let Some(connection) = taken {
            self.connections.put(id, connection);
        }
        if self.fetching.has_lacking() {
            self.park_for_rows();
        }
        self.deliver();
        self.stats.commands_processed.add(batch.len() as u64);
        self.stats.keyspace_hits.add(std::mem::take(&mut self.scratch.hits));
        self.shared.store.compression.count_decompressed(self.scratch.take_decompressed());
        self.stats.keyspace_misses.add(std::mem::take(&mut self.scratch.misses));
        self.batch = batch;
        self.batch.clear();
        self.places.clear();
        self.ahead.clear();
        self.arguments.take_large().for_each(reaper::free_bytes);
        self.arguments.clear();
    }
}

/// Whether it may run a script.
#[inline]
pub(super) fn may_take_long(row: &Row) -> bool {
    matches!(row.spec.locks, Locks::Declared | Locks::Queue)
}

/// Whether it is a command on elements of a hash, a set or a sorted set, named after its key: this holds for nearly all
/// commands of these types that read few elements. Where it does not hold, the look-up has no effect.
fn names_elements(row: &Row) -> bool {
    const TYPES: Categories = Categories::HASH.union(Categories::SET).union(Categories::SORTED_SET);
    row.spec.flags.contains(Flags::FAST) && row.spec.categories.intersects(TYPES)
}
