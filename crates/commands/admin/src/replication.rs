//! ROLE, WAIT and REPLICAOF: this server is a primary without replicas, or the replica of another server.

use crate::adjust_role;
use base::{Entropy, Lsn, UnixMs};
use command::Host;
use command::blocking::{Awaited, Block, Task};
use command::spec::{Argument, Deprecated, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop};
use config::PrimaryAddress;
use durability::{Durability, Tell};
use engine::{Effect, Keyspace};
use proto::ReplyBuffer;
use replication::Role;
use replication::role::{LinkState, Place, Promotion};
use std::sync::Arc;

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
    // A promotion removes the position, and nothing of the primary is applied after it.
    locks: Locks::All,
    docs: &Docs {
        summary: "Makes this server the replica of another, or, with NO ONE, a primary.",
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

/// Makes the server a replica, or a primary again. The thread that replicates does the rest.
fn replicaof(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(role) = ctx.host.find::<Arc<Role>>() else {
        if ctx.is_word(1, "no") && ctx.is_word(2, "one") {
            ctx.reply.ok();
            return Ok(());
        }
        return Err(Stop::error("ERR a server without a data directory cannot be a replica"));
    };
    let settings = ctx.host.configuration.current();
    let client = format!("{} {}", ctx.session.info.id, ctx.session.info.address);
    if ctx.is_word(1, "no") && ctx.is_word(2, "one") {
        if role.primary().is_none() || become_primary(ctx.host, ctx.ks, &format!("user request from client {client}")) {
            adjust_role(ctx.host, &settings);
            ctx.reply.ok();
            return Ok(());
        }
        if ctx.session.running.is_some() {
            return Err(LOG_IS_NOT_ON);
        }
        let promoting = Awaited::Task(Arc::new(Promoting(role.ask_promotion())));
        adjust_role(ctx.host, &settings);
        ctx.session.block = Some(Block::begin(&ctx.session.info, promoting, None));
        return Ok(());
    }
    let port = ctx.integer(2).ok().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
    let port = port.ok_or(Stop::error("ERR Invalid master port"))?;
    let host = String::from_utf8(ctx.args[1].to_vec()).map_err(|_| Stop::error("ERR Invalid master host"))?;
    let primary = Place { host, port };
    if role.primary().as_ref() == Some(&primary) && !role.waits_for_promotion() {
        ctx.reply.simple("OK Already connected to specified master");
        return Ok(());
    }
    if let Some(number) = settings.per_database.on_disk().next() {
        return Err(Stop::error_with(format!(
            "ERR database {number} has engine disk, and a replica cannot have databases on disk yet: restart with \
             database {number} engine memory"
        )));
    }
    say(ctx.host, &format!("REPLICAOF {primary} enabled (user request from client {client})"));
    let address = PrimaryAddress { host: primary.host.clone(), port };
    ctx.host.configuration.set_primary(Some(address));
    role.follow(primary);
    adjust_role(ctx.host, &settings);
    ctx.reply.ok();
    Ok(())
}

/// What REPLICAOF NO ONE answers where it cannot wait.
const LOG_IS_NOT_ON: Stop = Stop::error(
    "ERR the log is off until a checkpoint has the data of the primary, and a transaction cannot wait for it: repeat \
     REPLICAOF NO ONE outside of MULTI",
);

/// REPLICAOF NO ONE that waits for the log.
#[derive(Debug)]
struct Promoting(Promotion);

impl Task for Promoting {
    fn is_over(&self) -> bool {
        self.0.outcome().is_some()
    }

    fn answer(&self, reply: &mut ReplyBuffer) -> Option<String> {
        match self.0.outcome()? {
            Ok(()) => {
                reply.ok();
                None
            }
            Err(why) => {
                let text = format!("ERR this server is still a replica, since it waited for its log: {why}");
                reply.error(&text);
                Some(text)
            }
        }
    }
}

/// Makes a replica a primary, under all locks, unless the log is not on that the settings ask for. Returns whether it
/// is one now.
pub fn become_primary(host: &Host, ks: &mut dyn Keyspace, why: &str) -> bool {
    let Some(role) = host.find::<Arc<Role>>() else { return false };
    let has_log = || host.find::<Arc<Durability>>().is_none_or(|durability| durability.has_log_as_wanted() == Ok(true));
    if !role.promote(new_history_id(), &has_log) {
        return false;
    }
    // In the log before any write of a client, which the primary will not have. No room is asked for: the record is
    // short, and a promotion does not wait for a full disk.
    ks.apply(&Effect::Position { text: b"" });
    let configuration = &host.configuration;
    configuration.set_primary(None);
    adjust_role(host, &configuration.current());
    say(host, &format!("PRIMARY MODE enabled ({why})"));
    true
}

fn say(host: &Host, text: &str) {
    if let Some(log) = host.find::<Arc<dyn Tell>>() {
        log.say(text);
    }
}

/// 40 hexadecimal digits that no history has had.
fn new_history_id() -> String {
    let mut bytes = [0; 20];
    base::random::OsEntropy.rng().fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn role(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let role = ctx.host.find::<Arc<Role>>();
    if let Some((role, figures)) = role.and_then(|role| Some((role, role.figures()?))) {
        ctx.reply.array(5);
        ctx.reply.bulk(b"slave");
        ctx.reply.bulk(figures.primary.host.as_bytes());
        ctx.reply.integer(i64::from(figures.primary.port));
        ctx.reply.bulk(figures.link.name().as_bytes());
        let offset = if figures.link == LinkState::Connected { role.offset() as i64 } else { -1 };
        ctx.reply.integer(offset);
        return Ok(());
    }
    ctx.reply.array(3);
    ctx.reply.bulk(b"master");
    ctx.reply.integer(role.map_or(0, |role| role.offset() as i64));
    ctx.reply.array(0);
    Ok(())
}

/// The id of the history of a server that has no [`Role`].
pub(crate) fn history_id(host: &Host) -> String {
    host.find::<Arc<Role>>().map_or_else(|| host.about.history_id.clone(), |role| role.histories().id)
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

/// The count of replicas at `index`, and the end of the milliseconds after it (0 for none), checked as Valkey does.
pub(crate) fn replicas_and_end(ctx: &Ctx<'_>, index: usize) -> Result<(i64, Option<UnixMs>), Stop> {
    let replicas = ctx.integer(index)?;
    let timeout = ctx.integer(index + 1).map_err(|_| Stop::error("ERR timeout is not an integer or out of range"))?;
    if timeout < 0 {
        return Err(Stop::error("ERR timeout is negative"));
    }
    let until = ctx.now().checked_add(timeout).ok_or(Stop::error("ERR timeout is out of range"))?;
    Ok((replicas, (timeout > 0).then_some(until)))
}
