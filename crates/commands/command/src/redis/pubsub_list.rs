//! PUBSUB: which channels and patterns have subscribers, and how many.

use crate::error::Stop;
use crate::redis::pubsub::docs;
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, Locks, Run, error};
use push::Kind;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&PUBSUB];

static PUBSUB: CommandSpec = CommandSpec {
    name: "pubsub",
    arity: -2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &docs("Holds the commands that look at subscriptions.", "2.8.0", "Depends on subcommand."),
    run: Run::Container(&[&CHANNELS, &HELP, &NUMPAT, &NUMSUB, &SHARDCHANNELS, &SHARDNUMSUB]),
};

/// What the subcommands have in common.
const fn subcommand(name: &'static str, arity: i16, docs: &'static Docs, run: crate::Handler) -> CommandSpec {
    CommandSpec {
        name,
        arity,
        flags: Flags::PUBSUB.union(Flags::LOADING).union(Flags::STALE),
        categories: Categories::empty(),
        keys: &[],
        locks: Locks::None,
        docs,
        run: Run::Call(run),
    }
}

static CHANNELS: CommandSpec = subcommand(
    "channels",
    -2,
    &Docs {
        arguments: &[Argument::pattern("pattern").optional()],
        ..docs(
            "Lists the channels with subscribers.",
            "2.8.0",
            "O(N) where N is the number of active channels, and assuming constant time pattern matching (relatively short \
             channels and patterns)",
        )
    },
    |ctx| channels(ctx, Kind::Channel),
);

static SHARDCHANNELS: CommandSpec = subcommand(
    "shardchannels",
    -2,
    &Docs {
        arguments: &[Argument::pattern("pattern").optional()],
        ..docs(
            "Lists the shard channels with subscribers.",
            "7.0.0",
            "O(N) where N is the number of active shard channels, and assuming constant time pattern matching (relatively \
             short shard channels).",
        )
    },
    |ctx| channels(ctx, Kind::ShardChannel),
);

fn channels(ctx: &mut Ctx<'_>, kind: Kind) -> Result<(), Stop> {
    if ctx.args.len() > 3 {
        return Err(error::repeating(
            "ERR unknown subcommand or wrong number of arguments for '",
            &ctx.args[1],
            "'. Try PUBSUB HELP.",
        ));
    }
    let names = ctx.host.pubsub.active(kind, ctx.args.bytes(2));
    ctx.reply.array(names.len());
    names.iter().for_each(|name| ctx.reply.bulk(name));
    Ok(())
}

static NUMPAT: CommandSpec =
    subcommand("numpat", 2, &docs("Counts the patterns with subscribers.", "2.8.0", "O(1)"), |ctx| {
        let patterns = ctx.host.pubsub.count(Kind::Pattern);
        ctx.reply.integer(patterns as i64);
        Ok(())
    });

static NUMSUB: CommandSpec = subcommand(
    "numsub",
    -2,
    &Docs {
        arguments: &[Argument::string("channel").optional().repeated()],
        ..docs(
            "Counts the subscribers of channels, those by patterns not among them.",
            "2.8.0",
            "O(N) for the NUMSUB subcommand, where N is the number of requested channels",
        )
    },
    |ctx| subscribers(ctx, Kind::Channel),
);

static SHARDNUMSUB: CommandSpec = subcommand(
    "shardnumsub",
    -2,
    &Docs {
        arguments: &[Argument::string("shardchannel").optional().repeated()],
        ..docs(
            "Counts the subscribers of shard channels.",
            "7.0.0",
            "O(N) for the SHARDNUMSUB subcommand, where N is the number of requested shard channels",
        )
    },
    |ctx| subscribers(ctx, Kind::ShardChannel),
);

fn subscribers(ctx: &mut Ctx<'_>, kind: Kind) -> Result<(), Stop> {
    let pubsub = &ctx.host.pubsub;
    ctx.reply.array(ctx.args.len().saturating_sub(2).saturating_mul(2));
    for channel in ctx.args.from(2) {
        ctx.reply.bulk(channel);
        ctx.reply.integer(pubsub.subscribers(kind, channel) as i64);
    }
    Ok(())
}

static HELP: CommandSpec = CommandSpec {
    flags: Flags::LOADING.union(Flags::STALE),
    ..subcommand("help", 2, &docs("Lists what PUBSUB can do.", "6.2.0", "O(1)"), |ctx| {
        ctx.reply.array(HELP_LINES.len());
        HELP_LINES.iter().for_each(|line| ctx.reply.simple(line));
        Ok(())
    })
};

const HELP_LINES: &[&str] = &[
    "PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CHANNELS [<pattern>]",
    "    List the channels with subscribers, all or those whose names match.",
    "NUMPAT",
    "    Count the patterns with subscribers.",
    "NUMSUB [<channel> ...]",
    "    Count the subscribers of these channels, those by patterns not among them.",
    "SHARDCHANNELS [<pattern>]",
    "    List the shard channels with subscribers, all or those whose names match.",
    "SHARDNUMSUB [<shardchannel> ...]",
    "    Count the subscribers of these shard channels.",
    "HELP",
    "    Print this help.",
];
