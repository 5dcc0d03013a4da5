//! ACL, as far as a server with one user can answer. The other subcommands are in [`command::absent`].

use crate::catalogue::{CATEGORIES, categories};
use crate::reply_help;
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, CommandTable, Ctx, Flags, Locks, Run, Stop, error};
use std::sync::Arc;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&ACL];

/// The only user.
const USER: &[u8] = b"default";

static ACL: CommandSpec = CommandSpec {
    name: "acl",
    arity: -2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Holds the commands about users.",
        since: "6.0.0",
        group: "server",
        complexity: "Depends on subcommand.",
        ..Docs::NONE
    },
    run: Run::Container(&[&ACL_CAT, &ACL_HELP, &ACL_USERS, &ACL_WHOAMI]),
};

static ACL_CAT: CommandSpec = CommandSpec {
    name: "cat",
    arity: -2,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lists the categories of commands, or the commands of one.",
        since: "6.0.0",
        group: "server",
        complexity: "O(1) since the categories and commands are a fixed set.",
        arguments: &[Argument::string("category").optional()],
        ..Docs::NONE
    },
    run: Run::Call(acl_cat),
};

static ACL_HELP: CommandSpec = CommandSpec {
    name: "help",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lists the subcommands.",
        since: "6.0.0",
        group: "server",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(acl_help),
};

static ACL_USERS: CommandSpec = CommandSpec {
    name: "users",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lists the users; there is one.",
        since: "6.0.0",
        group: "server",
        complexity: "O(N). Where N is the number of configured users.",
        ..Docs::NONE
    },
    run: Run::Call(acl_users),
};

static ACL_WHOAMI: CommandSpec = CommandSpec {
    name: "whoami",
    arity: 2,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Gives the user of this connection.",
        since: "6.0.0",
        group: "server",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(acl_whoami),
};

fn acl_whoami(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.bulk(USER);
    Ok(())
}

fn acl_users(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.array(1);
    ctx.reply.bulk(USER);
    Ok(())
}

fn acl_cat(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    match ctx.args.len() {
        2 => {
            ctx.reply.array(CATEGORIES.len());
            CATEGORIES.iter().for_each(|name| ctx.reply.bulk(name.as_bytes()));
        }
        3 => {
            let wanted = &ctx.args[2];
            let known = CATEGORIES.iter().find(|name| wanted.eq_ignore_ascii_case(name.as_bytes()));
            let known = known.ok_or_else(|| error::repeating("ERR Unknown category '", wanted, "'"))?;
            let rows = ctx.host.part::<Arc<CommandTable>>().resp_rows();
            let found: Vec<&str> = rows
                .iter()
                .filter(|(_, spec)| categories(spec).contains(known))
                .map(|(name, _)| name.as_str())
                .collect();
            ctx.reply.array(found.len());
            found.iter().for_each(|name| ctx.reply.bulk(name.as_bytes()));
        }
        _ => {
            let before = "ERR unknown subcommand or wrong number of arguments for '";
            return Err(error::repeating(before, &ctx.args[1], "'. Try ACL HELP."));
        }
    }
    Ok(())
}

fn acl_help(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_help(
        ctx,
        &[
            "ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "CAT [<category>]",
            "    List the categories of commands, or the commands of one.",
            "USERS",
            "    List the users. There is one, default.",
            "WHOAMI",
            "    Give the user of this connection.",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}
