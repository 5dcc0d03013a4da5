//! MODULE, of a server that loads none. The other subcommands are in [`command::absent`].

use crate::reply_help;
use command::spec::Docs;
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&MODULE];

static MODULE: CommandSpec = CommandSpec {
    name: "module",
    arity: -2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Holds the commands about modules.",
        since: "4.0.0",
        group: "server",
        complexity: "Depends on subcommand.",
        ..Docs::NONE
    },
    run: Run::Container(&[&MODULE_HELP, &MODULE_LIST]),
};

static MODULE_HELP: CommandSpec = CommandSpec {
    name: "help",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lists the subcommands.",
        since: "5.0.0",
        group: "server",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(module_help),
};

static MODULE_LIST: CommandSpec = CommandSpec {
    name: "list",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lists the loaded modules: none.",
        since: "4.0.0",
        group: "server",
        complexity: "O(N) where N is the number of loaded modules.",
        tips: &["nondeterministic_output_order"],
        ..Docs::NONE
    },
    run: Run::Call(module_list),
};

fn module_list(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.array(0);
    Ok(())
}

fn module_help(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_help(
        ctx,
        &[
            "MODULE <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "LIST",
            "    List the loaded modules. There are none.",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}
