//! CONFIG.

use crate::{change_settings, reply_help, rewrite_settings};
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop, error};
use config::SetError;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&CONFIG];

static CONFIG: CommandSpec = CommandSpec {
    name: "config",
    arity: -2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Holds the commands about settings.",
        since: "2.0.0",
        group: "server",
        complexity: "Depends on subcommand.",
        ..Docs::NONE
    },
    run: Run::Container(&[&CONFIG_GET, &CONFIG_HELP, &CONFIG_RESETSTAT, &CONFIG_REWRITE, &CONFIG_SET]),
};

static CONFIG_GET: CommandSpec = CommandSpec {
    name: "get",
    arity: -3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Gives settings and their values.",
        since: "2.0.0",
        group: "server",
        complexity: "O(N) when N is the number of configuration parameters provided",
        history: &[("7.0.0", "Takes several patterns.")],
        arguments: &[Argument::string("parameter").repeated()],
        ..Docs::NONE
    },
    run: Run::Call(config_get),
};

static CONFIG_HELP: CommandSpec = CommandSpec {
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
    run: Run::Call(config_help),
};

static CONFIG_RESETSTAT: CommandSpec = CommandSpec {
    name: "resetstat",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Sets the counters of INFO back to zero.",
        since: "2.0.0",
        group: "server",
        complexity: "O(1)",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        ..Docs::NONE
    },
    run: Run::Call(config_resetstat),
};

static CONFIG_REWRITE: CommandSpec = CommandSpec {
    name: "rewrite",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Writes the settings in force to the configuration file.",
        since: "2.8.0",
        group: "server",
        complexity: "O(1)",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        ..Docs::NONE
    },
    run: Run::Call(config_rewrite),
};

static CONFIG_SET: CommandSpec = CommandSpec {
    name: "set",
    arity: -4,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Changes settings while the server runs.",
        since: "2.0.0",
        group: "server",
        complexity: "O(N) when N is the number of configuration parameters provided",
        history: &[("7.0.0", "Sets several directives at once.")],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        arguments: &[Argument::block("data", &[Argument::string("parameter"), Argument::string("value")]).repeated()],
        ..Docs::NONE
    },
    run: Run::Call(config_set),
};

fn config_get(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let patterns: Vec<&[u8]> = ctx.args.from(2).collect();
    let found = ctx.host.configuration.current().get(&patterns);
    ctx.reply.map(found.len());
    for (name, value) in found {
        ctx.reply.bulk(&name);
        ctx.reply.bulk(&value);
    }
    Ok(())
}

fn config_set(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let words: Vec<&[u8]> = ctx.args.from(2).collect();
    let (pairs, rest) = words.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(error::SYNTAX);
    }
    let pairs: Vec<(&[u8], &[u8])> = pairs.iter().map(|[name, value]| (*name, *value)).collect();
    let in_transaction = ctx.session.running.is_some();
    let changed = change_settings(ctx.host, &pairs, in_transaction);
    changed.map_err(|error| match error {
        SetError::Unknown { name } => {
            error::repeating("ERR Unknown option or number of arguments for CONFIG SET - '", &name, "'")
        }
        error => Stop::error_with(format!("ERR {error}")),
    })?;
    ctx.reply.ok();
    Ok(())
}

/// What CONFIG RESETSTAT does: figures begin anew.
pub fn reset_statistics(ctx: &Ctx<'_>) {
    let used = crate::memory::MemoryNow::of(ctx).used;
    ctx.host.figures.reset(used);
    ctx.host.clients.reset_counts();
    ctx.host.login.log.reset_counts();
}

fn config_resetstat(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reset_statistics(ctx);
    ctx.reply.ok();
    Ok(())
}

fn config_rewrite(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let rewritten = rewrite_settings(ctx.host);
    rewritten.map_err(|error| Stop::error_with(format!("ERR {error}")))?;
    ctx.reply.ok();
    Ok(())
}

fn config_help(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_help(
        ctx,
        &[
            "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "GET <pattern> [<pattern> ...]",
            "    Give the settings whose names match a glob pattern, with their values.",
            "SET <directive> <value> [<directive> <value> ...]",
            "    Change settings: all of them or, when one is refused, none.",
            "RESETSTAT",
            "    Set the counters that INFO shows back to zero.",
            "REWRITE",
            "    Write the settings in force to the configuration file.",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}
