//! MONITOR: a connection that is shown every command of the server.

use command::spec::Docs;
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&MONITOR];

static MONITOR: CommandSpec = CommandSpec {
    name: "monitor",
    arity: 1,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Shows every request the server gets.",
        since: "1.0.0",
        group: "server",
        complexity: "",
        ..Docs::NONE
    },
    run: Run::Call(monitor),
};

fn monitor(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.session.monitor = true;
    ctx.reply.ok();
    Ok(())
}
