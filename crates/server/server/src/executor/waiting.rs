//! Requests that could not run at once, in their connections: for a lock, a delay, room in the log or in a checkpoint,
//! or until their work is done. Those that wait for rows have a list of their own (`fetching`).

use super::batch::may_take_long;
use super::{Executor, STEPS_NS, deliver};
use crate::others::{Unrun, among};
use crate::turn::Turn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use value::absent;

/// Milliseconds after which a write that waits for room is tried again without being woken.
const ROOM_PATIENCE_MS: i64 = 50;

impl Executor {
    /// Tries the waiting requests again, in the order the connections came to wait. Those that wait for room are tried
    /// when the worker was woken, which it is when there is room: there may be thousands, and each would be refused
    /// alike.
    pub fn run_waiting(&mut self, is_woken: bool) {
        self.run_fetched();
        for id in std::mem::take(&mut self.waiting) {
            self.run_waiting_of(id);
        }
        let is_due = is_woken || self.awaits_memory || self.now - self.tried_for_room >= ROOM_PATIENCE_MS;
        if self.waiting_for_room.is_empty() || !is_due {
            return;
        }
        self.awaits_memory = false;
        self.tried_for_room = self.now;
        let mut ids = std::mem::take(&mut self.waiting_for_room).into_iter();
        for id in ids.by_ref() {
            self.run_waiting_of(id);
            if !self.waiting_for_room.is_empty() {
                break;
            }
        }
        // Whom the room was not enough for, in its old order: the one that was tried stays first.
        self.waiting_for_room.extend(ids);
    }

    /// Runs some steps of one request's work. Its connection continues when that was the last.
    pub fn step_work(&mut self) {
        let Some(id) = self.working.pop_front() else { return };
        let Some(connection) = self.connections.get_mut(id) else { return };
        if let Some(pending) = &mut connection.session.pending {
            let begun_ns = self.stats.now();
            loop {
                match catch_unwind(AssertUnwindSafe(|| absent::waiting(|| pending.step()))) {
                    // The thread that does the step wakes the connection.
                    Ok(true) if pending.is_elsewhere() => return,
                    Ok(true) if self.stats.now().saturating_sub(begun_ns) < STEPS_NS => continue,
                    Ok(true) => return self.working.push_back(id),
                    Ok(false) => {}
                    // A bug: the request meets it again where it is answered.
                    Err(_) => pending.abandon(),
                }
                break;
            }
        }
        self.run_waiting_of(id);
    }

    /// Another thread has done the work of a request of the connection.
    pub(super) fn end_work(&mut self, id: usize) {
        let has_work = self.connections.get(id).is_some_and(|connection| connection.session.has_work());
        if has_work && !self.working.contains(&id) {
            self.working.push_back(id);
        }
    }

    /// Whether any request has work that this worker can continue.
    pub fn has_work(&self) -> bool {
        !self.working.is_empty()
    }

    /// Continues with the requests of a connection until one has to wait again.
    pub(super) fn run_waiting_of(&mut self, id: usize) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.session.has_work() {
            return;
        }
        if connection.session.is_busy() {
            // Listed while an earlier request waited; what keeps it busy needs no help.
            return;
        }
        let mut turn = Turn::new(self.worker, &self.shared, &self.stats, &self.limits, &mut self.scratch, self.now);
        let begun_ns = turn.so_far_ns();
        loop {
            // As in a batch: messages published by earlier requests follow their replies and precede later ones.
            if self.shared.outlets.has_any(self.worker) {
                let output = (&mut self.connections, &mut self.to_send, &self.limits);
                deliver(self.worker, &self.shared, &mut self.deliveries, output);
            }
            let Some(connection) = self.connections.get_mut(id) else { return };
            let Some(waiting) = connection.waiting.pop_front() else { break };
            if connection.session.close_after_replies {
                connection.waiting.clear();
                break;
            }
            if connection.reply.len() > self.limits.output_pause_bytes
                || turn.so_far_ns().saturating_sub(begun_ns) > self.batch_ns
            {
                connection.paused = true;
                connection.waiting.push_front(waiting);
                break;
            }
            let (row, args) = (waiting.row.as_ref(), waiting.args.as_args());
            let outcome = match row {
                Some(row) if may_take_long(row) => {
                    let Some(mut taken) = self.connections.take(id) else { return };
                    let unrun = Unrun {
                        batch: &self.batch,
                        area: &self.input,
                        own_inputs: &self.own_inputs,
                        arguments: &self.arguments,
                        parsing: &self.parsing,
                    };
                    let run = || turn.run(&mut self.scratch, &mut taken, Some(row), &args, None);
                    let outcome = among(&mut self.connections, unrun, run);
                    self.connections.put(id, taken);
                    outcome
                }
                row => turn.run(&mut self.scratch, connection, row, &args, None),
            };
            let Some(connection) = self.connections.get_mut(id) else { return };
            if let Err(blocked) = outcome {
                connection.waiting.push_front(waiting);
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
                break;
            }
            connection.session.pending = None;
            connection.session.info.set_postponed(false);
            self.fetching.has_run(id);
            if let Some(block) = &mut connection.session.block {
                block.count_from(self.now, &*self.shared.store.clock);
                self.blocked.insert(id, block);
            }
            if connection.session.is_busy() {
                break;
            }
        }
        let finished = self
            .connections
            .get(id)
            .is_some_and(|connection| connection.waiting.is_empty() && !connection.session.is_busy());
        self.park_for_rows();
        self.release_rows(id);
        self.list(id);
        if finished {
            self.parse_own(id);
            self.run_batch_keeping_input();
        }
    }

    /// Whether any request waits, for anything but rows that are being read.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.waiting_for_room.is_empty() || self.has_fetched()
    }

    /// Whether any request waits for memory that its tries help to free.
    pub fn awaits_memory(&self) -> bool {
        self.awaits_memory && !self.waiting_for_room.is_empty()
    }

    /// Whether any request waits for what may come without a wake-up.
    pub fn is_retrying(&self) -> bool {
        !self.waiting.is_empty()
    }
}
