//! BACKUP: what `onggi backup` asks a running server for. Redis has no such command.

use crate::reply_help;
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop};
use durability::{BeingRemoved, Durability};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use store::Store;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&BACKUP];

static BACKUP: CommandSpec = CommandSpec {
    name: "backup",
    arity: -2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Holds the commands of `onggi backup`.",
        since: "0.1.0",
        group: "server",
        complexity: "Depends on subcommand.",
        ..Docs::NONE
    },
    run: Run::Container(&[&BACKUP_HELP, &BACKUP_HOLD, &BACKUP_RELEASE]),
};

static BACKUP_HOLD: CommandSpec = CommandSpec {
    name: "hold",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Keeps all files of the data directory in place for some seconds, and tells where they are.",
        since: "0.1.0",
        group: "server",
        complexity: "O(1)",
        arguments: &[Argument::integer("seconds")],
        ..Docs::NONE
    },
    run: Run::Call(hold),
};

static BACKUP_RELEASE: CommandSpec = CommandSpec {
    name: "release",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lets obsolete files be removed again.",
        since: "0.1.0",
        group: "server",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(release),
};

static BACKUP_HELP: CommandSpec = CommandSpec {
    name: "help",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lists the subcommands.",
        since: "0.1.0",
        group: "server",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(help),
};

const HELP: [&str; 9] = [
    "BACKUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "HOLD <seconds>",
    "    Keep all files of the data directory in place for this time (1 to 86400), so that they",
    "    can be copied. Replies the directory and the position up to which the log is durable.",
    "RELEASE",
    "    Let obsolete files be removed again. Holds of all clients end.",
    "HELP",
    "    Print this help.",
    "See `onggi backup`, which asks for these.",
];

/// A hold of a day is an operator's mistake.
const SECONDS_MAX: i64 = 86_400;

const BUSY: Stop = Stop::error("BUSY obsolete files are being removed at this moment; ask again");

fn hold(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let seconds = ctx.integer(2)?;
    if !(1..=SECONDS_MAX).contains(&seconds) {
        return Err(Stop::error("ERR a hold is of 1 to 86400 seconds"));
    }
    let durability = durability(ctx)?;
    durability.hold_files(seconds.unsigned_abs() * 1000).map_err(|BeingRemoved| BUSY)?;
    // Looked at after the hold: what is durable now is in files that stay.
    let durable = ctx.host.part::<crate::Needed, Arc<Store>>().log().map(|log| log.durable());
    ctx.reply.map(2);
    ctx.reply.bulk(b"directory");
    let directory = durability.directory();
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    ctx.reply.bulk(absolute.as_os_str().as_bytes());
    ctx.reply.bulk(b"durable");
    match durable {
        Some(lsn) => ctx.reply.bulk(lsn.to_string().as_bytes()),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn release(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    durability(ctx)?.release_files().map_err(|BeingRemoved| BUSY)?;
    ctx.reply.ok();
    Ok(())
}

fn help(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_help(ctx, &HELP);
    Ok(())
}

fn durability<'c>(ctx: &Ctx<'c>) -> Result<&'c Durability, Stop> {
    let found = ctx.host.find::<Arc<Durability>>();
    found.map(|durability| &**durability).ok_or(Stop::error("ERR this server keeps its data in memory only"))
}
