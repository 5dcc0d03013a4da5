//! What the server says about itself to other threads of its process: the text of INFO, whether it works, whether it serves.

use crate::executor::Shared;
use admin::Figures;
use base::DbIndex;
use command::call::call;
use command::stats::WorkerStats;
use command::{Args, Ctx, Session};
use durability::Durability;
use proto::{Protocol, ReplyBuffer, Span};
use std::sync::Arc;
use store::{At, LockSet, Scratch, WriteClass};

/// Longest time between the beginnings of two turns of a worker that works: an idle one turns twenty times a second.
const TURN_WITHIN_MS: i64 = 2000;

/// The text of `INFO everything`. Shards are locked one after the other, each for the time that two numbers take to read.
pub fn info(shared: &Shared) -> Option<String> {
    const WORDS: &[u8] = b"INFOeverything";
    let spans = [Span::new(0, 4)?, Span::new(4, WORDS.len() - 4)?];
    let args = Args::new(WORDS, &spans, &[]);
    let row = shared.table.resolve(&args).ok()?;
    let now = shared.store.clock.now_ms();
    let mut session = Session::new(0, true, now);
    let mut reply = ReplyBuffer::new(Protocol::Resp3);
    // These calls belong to no client, so the statistics leave them out.
    let stats = WorkerStats::new(shared.table.rows().len());
    let at = At { now, db: DbIndex(0), touch: false, worker: 0, writes: WriteClass::Nothing };
    let called = shared.store.commit(&mut Scratch::default(), &LockSet::None, &at, |txn| {
        let (session, reply) = (&mut session, &mut reply);
        call(
            &mut Ctx { spec: row.spec, args, reply, ks: txn, session, host: &shared.host, stats: &stats, hashed: None },
            &row,
        )
    });
    called.ok()?;
    let bytes: Vec<u8> = reply.io_slices().flat_map(|slice| slice.to_vec()).collect();
    // `=123\r\ntxt:` and the text.
    let text = String::from_utf8_lossy(&bytes);
    text.split_once("\r\ntxt:").map(|(_, text)| text.trim_end().to_owned())
}

/// Whether every worker turns.
///
/// # Errors
/// Which one does not.
pub fn health(shared: &Shared) -> Result<(), String> {
    let now = shared.store.clock.now_ms();
    for (number, worker) in shared.host.part::<Arc<Figures>>().workers().iter().enumerate() {
        let turned_at = worker.stats.turned_at.get().cast_signed();
        let late_ms = now.saturating_sub(turned_at);
        if turned_at > 0 && late_ms > TURN_WITHIN_MS {
            return Err(format!("worker {number} has begun no turn for {} s", late_ms / 1000));
        }
    }
    Ok(())
}

/// Whether the data is loaded, and changes are taken.
///
/// # Errors
/// Why not.
pub fn readiness(shared: &Shared) -> Result<(), String> {
    if shared.store.gate.is_loading() {
        return Err("the data is being loaded".to_owned());
    }
    let status = shared.host.find::<Arc<Durability>>().map(|durability| durability.status());
    if status.and_then(|status| status.log).is_some_and(|log| log.failure.is_some()) {
        return Err("the log takes no changes; see the server's log, and the room on the disk".to_owned());
    }
    shared.store.gate.refusal().map_or(Ok(()), Err)
}
