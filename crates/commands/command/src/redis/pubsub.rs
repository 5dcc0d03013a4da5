//! SUBSCRIBE, PUBLISH and their relatives for patterns and shard channels.
//!
//! What a subscriber is sent, confirmations included, are push messages. In RESP2 these look like replies, so that a
//! RESP2 connection with subscriptions may ask for little else.

use crate::error::Stop;
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, Host, KeyFlags, KeySpec, Locks, Run, Session};
use proto::Protocol;
use push::pubsub::From;
use push::{Kind, Subscriptions};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] =
    &[&SUBSCRIBE, &UNSUBSCRIBE, &PSUBSCRIBE, &PUNSUBSCRIBE, &SSUBSCRIBE, &SUNSUBSCRIBE, &PUBLISH, &SPUBLISH];

/// Whether the connection can be sent nothing but messages: what it asks for would be taken for one.
pub fn is_confined(session: &Session, protocol: Protocol) -> bool {
    session.subscriptions.is_some() && protocol == Protocol::Resp2
}

/// Ends all subscriptions of a connection, without confirmations.
pub fn leave_all(session: &mut Session, host: &Host) {
    if let Some(mut subscriptions) = session.subscriptions.take() {
        host.pubsub.leave(&mut subscriptions, session.info.receiver());
        session.publish_subscriptions();
    }
}

/// Documentation that all rows of this family share.
pub(super) const fn docs(summary: &'static str, since: &'static str, complexity: &'static str) -> Docs {
    Docs { summary, since, group: "pubsub", complexity, ..Docs::NONE }
}

/// What a row that changes subscriptions has in common with the others.
const fn change(name: &'static str, arity: i16, docs: &'static Docs, run: crate::Handler) -> CommandSpec {
    CommandSpec {
        name,
        arity,
        flags: Flags::PUBSUB.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
        categories: Categories::empty(),
        keys: &[],
        locks: Locks::None,
        docs,
        run: Run::Call(run),
    }
}

/// Where shard channels stand: routed like keys, and none.
const SHARD_CHANNELS: &[KeySpec] = &[KeySpec::range(1, -1, 1, KeyFlags::NOT_KEY)];

static SUBSCRIBE: CommandSpec = change(
    "subscribe",
    -2,
    &Docs {
        arguments: &[Argument::string("channel").repeated()],
        ..docs("Subscribes to channels.", "2.0.0", "O(N) where N is the number of channels to subscribe to.")
    },
    |ctx| subscribe(ctx, Kind::Channel),
);

static PSUBSCRIBE: CommandSpec = change(
    "psubscribe",
    -2,
    &Docs {
        arguments: &[Argument::pattern("pattern").repeated()],
        ..docs(
            "Subscribes to all channels whose names match patterns.",
            "2.0.0",
            "O(N) where N is the number of patterns to subscribe to.",
        )
    },
    |ctx| subscribe(ctx, Kind::Pattern),
);

static SSUBSCRIBE: CommandSpec = CommandSpec {
    keys: SHARD_CHANNELS,
    ..change(
        "ssubscribe",
        -2,
        &Docs {
            arguments: &[Argument::string("shardchannel").repeated()],
            ..docs(
                "Subscribes to shard channels.",
                "7.0.0",
                "O(N) where N is the number of shard channels to subscribe to.",
            )
        },
        |ctx| subscribe(ctx, Kind::ShardChannel),
    )
};

static UNSUBSCRIBE: CommandSpec = change(
    "unsubscribe",
    -1,
    &Docs {
        arguments: &[Argument::string("channel").optional().repeated()],
        ..docs(
            "Ends subscriptions to these channels, or to all.",
            "2.0.0",
            "O(N) where N is the number of channels to unsubscribe.",
        )
    },
    |ctx| unsubscribe(ctx, Kind::Channel),
);

static PUNSUBSCRIBE: CommandSpec = change(
    "punsubscribe",
    -1,
    &Docs {
        arguments: &[Argument::pattern("pattern").optional().repeated()],
        ..docs(
            "Ends subscriptions to these patterns, or to all.",
            "2.0.0",
            "O(N) where N is the number of patterns to unsubscribe.",
        )
    },
    |ctx| unsubscribe(ctx, Kind::Pattern),
);

static SUNSUBSCRIBE: CommandSpec = CommandSpec {
    keys: SHARD_CHANNELS,
    ..change(
        "sunsubscribe",
        -1,
        &Docs {
            arguments: &[Argument::string("shardchannel").optional().repeated()],
            ..docs(
                "Ends subscriptions to these shard channels, or to all.",
                "7.0.0",
                "O(N) where N is the number of shard channels to unsubscribe.",
            )
        },
        |ctx| unsubscribe(ctx, Kind::ShardChannel),
    )
};

fn subscribe(ctx: &mut Ctx<'_>, kind: Kind) -> Result<(), Stop> {
    let (pubsub, receiver) = (&ctx.host.pubsub, ctx.session.info.receiver());
    for name in ctx.args.from(1) {
        let subscriptions = ctx.session.subscriptions.get_or_insert_default();
        pubsub.subscribe(subscriptions, receiver, kind, name);
        let count = counted(subscriptions, kind);
        confirm(ctx, confirmations(kind).0, Some(name), count);
    }
    ctx.session.publish_subscriptions();
    Ok(())
}

fn unsubscribe(ctx: &mut Ctx<'_>, kind: Kind) -> Result<(), Stop> {
    let (pubsub, receiver) = (&ctx.host.pubsub, ctx.session.info.receiver());
    let mut subscriptions = ctx.session.subscriptions.take().unwrap_or_default();
    let confirmation = confirmations(kind).1;
    let all = if ctx.args.len() > 1 { Vec::new() } else { subscriptions.names(kind) };
    if ctx.args.len() == 1 && all.is_empty() {
        confirm(ctx, confirmation, None, counted(&subscriptions, kind));
    }
    for name in ctx.args.from(1).chain(all.iter().map(|name| &**name)) {
        pubsub.unsubscribe(&mut subscriptions, receiver, kind, name);
        confirm(ctx, confirmation, Some(name), counted(&subscriptions, kind));
    }
    ctx.session.subscriptions = Some(subscriptions).filter(|subscriptions| !subscriptions.is_empty());
    ctx.session.publish_subscriptions();
    Ok(())
}

/// The words that confirm a subscription, and its end.
fn confirmations(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Channel => ("subscribe", "unsubscribe"),
        Kind::Pattern => ("psubscribe", "punsubscribe"),
        Kind::ShardChannel => ("ssubscribe", "sunsubscribe"),
    }
}

/// The number in a confirmation: of channels and patterns together, or of shard channels.
fn counted(subscriptions: &Subscriptions, kind: Kind) -> usize {
    match kind {
        Kind::ShardChannel => subscriptions.count(kind),
        _ => subscriptions.count(Kind::Channel).saturating_add(subscriptions.count(Kind::Pattern)),
    }
}

fn confirm(ctx: &mut Ctx<'_>, word: &str, name: Option<&[u8]>, count: usize) {
    ctx.reply.push(3);
    ctx.reply.bulk(word.as_bytes());
    match name {
        Some(name) => ctx.reply.bulk(name),
        None => ctx.reply.null(),
    }
    ctx.reply.integer(count as i64);
}

const PUBLISH_FLAGS: Flags =
    Flags::PUBSUB.union(Flags::LOADING).union(Flags::STALE).union(Flags::FAST).union(Flags::MAY_REPLICATE);

static PUBLISH: CommandSpec = CommandSpec {
    name: "publish",
    arity: 3,
    flags: PUBLISH_FLAGS,
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        arguments: &[Argument::string("channel"), Argument::string("message")],
        ..docs(
            "Sends a message to the subscribers of a channel.",
            "2.0.0",
            "O(N+M) where N is the number of clients subscribed to the receiving channel and M is the total number of \
             subscribed patterns (by any client).",
        )
    },
    run: Run::Call(|ctx| publish(ctx, Kind::Channel)),
};

static SPUBLISH: CommandSpec = CommandSpec {
    name: "spublish",
    arity: 3,
    flags: PUBLISH_FLAGS,
    categories: Categories::empty(),
    keys: &[KeySpec::one(1, KeyFlags::NOT_KEY)],
    locks: Locks::None,
    docs: &Docs {
        arguments: &[Argument::string("shardchannel"), Argument::string("message")],
        ..docs(
            "Sends a message to the subscribers of a shard channel.",
            "7.0.0",
            "O(N) where N is the number of clients subscribed to the receiving shard channel.",
        )
    },
    run: Run::Call(|ctx| publish(ctx, Kind::ShardChannel)),
};

fn publish(ctx: &mut Ctx<'_>, kind: Kind) -> Result<(), Stop> {
    let pubsub = &ctx.host.pubsub;
    let (channel, text) = (&ctx.args[1], &ctx.args[2]);
    let is_sharded = kind == Kind::ShardChannel;
    // A message of a transaction is sent when that is done, after the events of the commands before it.
    let is_later = ctx.session.running.is_some() && ctx.ks.publish(channel, text, is_sharded);
    let receivers = match is_later {
        true => pubsub.receivers(kind, channel),
        false => {
            let from = From { worker: ctx.session.info.worker(), hold: ctx.session.seen };
            if is_sharded { pubsub.publish_to_shard(channel, text, from) } else { pubsub.publish(channel, text, from) }
        }
    };
    ctx.reply.integer(receivers as i64);
    Ok(())
}
