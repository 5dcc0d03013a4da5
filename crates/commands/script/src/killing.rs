//! SCRIPT KILL and FUNCTION KILL.

use crate::cache::Scripts;
use crate::running::{Kind, Unkillable};
use command::{Ctx, Stop};
use std::sync::Arc;

/// Ends what runs of this kind.
///
/// # Errors
/// What runs cannot be ended.
pub fn kill(ctx: &mut Ctx<'_>, kind: Kind) -> Result<(), Stop> {
    match ctx.host.part::<crate::Needed, Arc<Scripts>>().running.kill(kind) {
        Ok(()) => {
            ctx.reply.ok();
            Ok(())
        }
        Err(Unkillable::NotBusy) => Err(Stop::error("NOTBUSY No scripts in execution right now.")),
        Err(Unkillable::Other(kind)) => Err(Stop::error(kind.busy())),
        Err(Unkillable::HasWritten) => Err(Stop::error(
            "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the \
             script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
        )),
    }
}
