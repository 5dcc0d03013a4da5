//! What commands of a log or of a primary need that are run without a server.

use command::limits::{SparseLimit, StampMeaning, StringLimit};
use command::{CommandTable, Host};
use replication::runner::Runner;
use std::sync::Arc;

/// Runs commands of the data. SWAPDB and FLUSHALL are rows of `admin`. A server writes the effects of EVAL and FCALL,
/// so only FUNCTION is needed of `script`.
pub(crate) fn runner() -> Runner {
    let families = [command::redis::FAMILIES, admin::FAMILIES, &[script::FUNCTIONS]].concat();
    Runner::new(Arc::new(CommandTable::new(&families)))
}

/// The parts of a server that these commands ask for.
pub(crate) fn host() -> Host {
    Host::default()
        .with(StringLimit::default())
        .with(SparseLimit::default())
        .with(StampMeaning::default())
        .with(Arc::<script::Scripts>::default())
}
