//! ROLE, WAIT and REPLICAOF, as a primary without replicas answers them.

use base::{Lsn, UnixMs};
use command::blocking::{Awaited, Block};
use command::spec::{Argument, Deprecated, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&ROLE, &WAIT, &REPLICAOF, &SLAVEOF];

static ROLE: CommandSpec = CommandSpec {
    name: "role",
    arity: 1,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::FAST),
    categories: Categories::DANGEROUS,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Tells whether this is a primary or a replica.",
        since: "2.8.12",
        group: "server",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(role),
};

static WAIT: CommandSpec = CommandSpec {
    name: "wait",
    arity: 3,
    flags: Flags::BLOCKING,
    categories: Categories::CONNECTION,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Waits until replicas have the connection's writes.",
        since: "3.0.0",
        group: "generic",
        complexity: "O(1)",
        tips: &["request_policy:all_shards", "response_policy:agg_min"],
        arguments: &[Argument::integer("numreplicas"), Argument::integer("timeout")],
        ..Docs::NONE
    },
    run: Run::Call(wait),
};

/// What REPLICAOF and SLAVEOF take.
const PRIMARY: &[Argument] = &[Argument::one_of(
    "args",
    &[
        Argument::block("host-port", &[Argument::string("host"), Argument::integer("port")]),
        Argument::block("no-one", &[Argument::word("no", "NO"), Argument::word("one", "ONE")]),
    ],
)];

static REPLICAOF: CommandSpec = CommandSpec {
    name: "replicaof",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Accepts NO ONE, since this server is a primary. Replication is not supported.",
        since: "5.0.0",
        group: "server",
        complexity: "O(1)",
        arguments: PRIMARY,
        ..Docs::NONE
    },
    run: Run::Call(replicaof),
};

static SLAVEOF: CommandSpec = CommandSpec {
    name: "slaveof",
    docs: &Docs {
        summary: "The old name of REPLICAOF.",
        since: "1.0.0",
        group: "server",
        complexity: "O(1)",
        arguments: PRIMARY,
        deprecated: Some(Deprecated { since: "5.0.0", replaced_by: "`REPLICAOF`" }),
        ..Docs::NONE
    },
    ..REPLICAOF
};

/// Makes a primary of a primary; there is no way to make it a replica.
fn replicaof(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if !(ctx.is_word(1, "no") && ctx.is_word(2, "one")) {
        let name = ctx.spec.name.to_ascii_uppercase();
        return Err(Stop::error_with(format!(
            "ERR {name} HOST PORT is not available in this version: replication is not supported"
        )));
    }
    ctx.reply.ok();
    Ok(())
}

fn role(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.array(3);
    ctx.reply.bulk(b"master");
    ctx.reply.integer(0);
    ctx.reply.array(0);
    Ok(())
}

/// No replica is there whose word could be waited for, so asking for one takes until the timeout.
fn wait(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (replicas, until) = replicas_and_end(ctx, 1)?;
    block_or_answer(ctx, Awaited::Replicas(replicas), until, None);
    Ok(())
}

/// Has the connection wait, unless that is over already or it runs a transaction.
pub(crate) fn block_or_answer(ctx: &mut Ctx<'_>, what: Awaited, until: Option<UnixMs>, durable: Option<Lsn>) {
    if what.is_over(durable) || ctx.session.running.is_some() {
        what.answer(durable, ctx.reply);
    } else {
        ctx.session.block = Some(Block::begin(&ctx.session.info, what, until));
    }
}

/// The count of replicas at `index`, and the end of the milliseconds behind it (0 for none), checked as Valkey does.
pub(crate) fn replicas_and_end(ctx: &Ctx<'_>, index: usize) -> Result<(i64, Option<UnixMs>), Stop> {
    let replicas = ctx.integer(index)?;
    let timeout = ctx.integer(index + 1).map_err(|_| Stop::error("ERR timeout is not an integer or out of range"))?;
    if timeout < 0 {
        return Err(Stop::error("ERR timeout is negative"));
    }
    let until = ctx.now().checked_add(timeout).ok_or(Stop::error("ERR timeout is out of range"))?;
    Ok((replicas, (timeout > 0).then_some(until)))
}
