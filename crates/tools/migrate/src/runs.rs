//! What commands of a log or of a primary need that are run without a server.

use command::{CommandTable, Host};
use replication::runner::Runner;
use std::sync::Arc;

/// Commands of the data. SWAPDB and FLUSHALL are rows of `admin`. A server writes the effects of EVAL and FCALL,
/// so only FUNCTION is needed of `script`.
fn table() -> Arc<CommandTable> {
    let families = [command::redis::FAMILIES, admin::FAMILIES, &[script::FUNCTIONS]].concat();
    Arc::new(CommandTable::new(&families))
}

/// Runs them.
pub(crate) fn runner() -> Runner {
    Runner::new(table())
}

/// The parts of a server that these commands ask for.
pub(crate) fn host() -> Host {
    Host::alone(table()).with(Arc::<script::Scripts>::default())
}
