//! What a server outside of a cluster answers to cluster clients. The other subcommands of CLUSTER are in
//! [`command::absent`].

use base::slot::slot_of;
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&CLUSTER, &READONLY, &READWRITE];

static CLUSTER: CommandSpec = CommandSpec {
    name: "cluster",
    arity: -2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Holds the commands about the cluster.",
        since: "3.0.0",
        group: "cluster",
        complexity: "Depends on subcommand.",
        ..Docs::NONE
    },
    run: Run::Container(&[&CLUSTER_KEYSLOT]),
};

static CLUSTER_KEYSLOT: CommandSpec = CommandSpec {
    name: "keyslot",
    arity: 3,
    flags: Flags::STALE,
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Gives the hash slot of a key.",
        since: "3.0.0",
        group: "cluster",
        complexity: "O(N) where N is the number of bytes in the key",
        arguments: &[Argument::string("key")],
        ..Docs::NONE
    },
    run: Run::Call(cluster_keyslot),
};

static READONLY: CommandSpec = CommandSpec {
    name: "readonly",
    arity: 1,
    flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lets a connection read from a replica. Without effect on a primary.",
        since: "3.0.0",
        group: "cluster",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(readonly),
};

static READWRITE: CommandSpec = CommandSpec {
    name: "readwrite",
    arity: 1,
    flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Takes back READONLY. Without effect on a primary.",
        since: "3.0.0",
        group: "cluster",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(readwrite),
};

fn cluster_keyslot(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.integer(i64::from(slot_of(&ctx.args[2]).0));
    Ok(())
}

fn readonly(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.session.read_only = true;
    ctx.reply.ok();
    Ok(())
}

fn readwrite(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.session.read_only = false;
    ctx.reply.ok();
    Ok(())
}
