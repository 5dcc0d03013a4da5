//! Data is loaded on a thread of its own, while workers answer that they are loading.

use super::StopAtEnd;
use crate::executor::Shared;
use crate::listen::AcceptorHandle;
use durability::{Cause, Durability, DurabilityError, Phase, Tell};
use replication::Role;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Time between two lines about how far loading is.
const PROGRESS: Duration = Duration::from_secs(5);

/// Brings the data back before it is served, on a thread of its own. Meanwhile workers answer that they are loading.
pub type Recover = Box<dyn FnOnce(&Arc<Shared>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> + Send>;

/// Loads the data directory.
pub(super) fn recover(durability: Arc<Durability>, tell: Arc<dyn Tell>) -> Recover {
    Box::new(move |_| {
        let began = Instant::now();
        let recovered = thread::scope(|scope| {
            let (_loading, is_over) = channel();
            let (durability, tell) = (&durability, &*tell);
            scope.spawn(move || say_progress(durability, tell, &is_over));
            durability.recover()
        });
        if recovered.as_ref().is_err_and(DurabilityError::is_damage) {
            let dir = durability.directory().display();
            tell.warn(&format!(
                "the data in {dir} is damaged; nothing was changed. Run `onggi repair {dir}`: it says how many keys it can keep \
                 and what is lost, and asks before it changes anything"
            ));
        }
        let found = recovered?;
        if let Some(torn) = &found.torn {
            tell.warn(torn);
        }
        durability.wait_for_log()?;
        durability.add_databases()?;
        if durability.lacks_copy_of_rows() {
            // Backups and restores need one; it ends, or fails, on its own.
            drop(durability.schedule(Cause::Rewrite));
        }
        let durability::Recovered { keys, records, .. } = found;
        let seconds = began.elapsed().as_secs_f64();
        tell.say(&format!(
            "ready: {keys} keys of the checkpoint and {records} records of the log loaded in {seconds:.1} s"
        ));
        let now = durability.now_ms();
        tell.say(&format!("restorable: {}", durability.status().restorable(now)));
        tell.phase(Phase::Ready);
        Ok(())
    })
}

/// Says how far loading is, until its sender is gone.
fn say_progress(durability: &Durability, tell: &dyn Tell, is_over: &Receiver<Infallible>) {
    while let Err(RecvTimeoutError::Timeout) = is_over.recv_timeout(PROGRESS) {
        let Some(loading) = durability.loading() else { continue };
        let percent = (loading.done_bytes.saturating_mul(100)).checked_div(loading.total_bytes).unwrap_or(0).min(100);
        tell.say(&format!("loading: {percent} %, {} keys", loading.keys));
        tell.phase(Phase::Loading { percent });
    }
}

/// Whether loading was given up since the server is to end, which is no failure.
pub(super) fn is_end(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(DurabilityError::Ended(_)))
}

pub(super) type Recovered = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Has the data brought back, and then served; a server without its data ends.
pub(super) fn spawn_recovery<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    recover: Recover,
    shared: &Arc<Shared>,
    workers: usize,
    handle: AcceptorHandle,
) -> io::Result<ScopedJoinHandle<'scope, Recovered>> {
    let shared = shared.clone();
    thread::Builder::new().name("recovery".to_owned()).spawn_scoped(scope, move || {
        // Also when it panics.
        let end = StopAtEnd(handle);
        let _entered = heap::enter();
        recover(&shared)?;
        if shared.host.find::<Arc<Role>>().is_none_or(|role| role.primary().is_none()) {
            // The thread that replicates appends as this worker, and has no order yet.
            shared.store.forget_position(workers);
        }
        shared.store.gate.end_loading();
        std::mem::forget(end);
        Ok(())
    })
}
