//! How values are stored.

use crate::error::Stop;
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use engine::Entry;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&OBJECT];

static OBJECT: CommandSpec = CommandSpec {
    name: "object",
    arity: -2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Holds the commands that look at how a value is stored.",
        since: "2.2.3",
        group: "generic",
        complexity: "Depends on subcommand.",
        ..Docs::NONE
    },
    run: Run::Container(&[&ENCODING, &FREQ, &HELP, &IDLETIME, &REFCOUNT]),
};

/// Replies with what `show` makes of the entry under the key, which does not count as used, or with null.
fn reply_entry(ctx: &mut Ctx<'_>, show: impl FnOnce(&Entry<'_>) -> Shown) -> Result<(), Stop> {
    let key = ctx.key(2);
    let shown = ctx.ks.peek(&key)?.map(|entry| show(&entry));
    ctx.ks.count_peek(shown.is_some());
    match shown {
        None => ctx.reply.null(),
        Some(Shown::Name(name)) => ctx.reply.bulk(name.as_bytes()),
        Some(Shown::Number(number)) => ctx.reply.integer(number),
        Some(Shown::Idle(stamp)) => {
            let seconds = ctx.ks.idle_seconds(stamp);
            ctx.reply.integer(seconds as i64);
        }
        Some(Shown::Frequency(stamp)) => {
            let frequency = ctx.ks.frequency(stamp);
            ctx.reply.integer(i64::from(frequency));
        }
        Some(Shown::Refused(why)) => return Err(Stop::error(why)),
    }
    Ok(())
}

/// What is said about an entry.
enum Shown {
    Name(&'static str),
    Number(i64),
    /// The seconds since last use in this stamp.
    Idle(u32),
    /// The access counter in this stamp.
    Frequency(u32),
    Refused(&'static str),
}

static ENCODING: CommandSpec = CommandSpec {
    name: "encoding",
    arity: 3,
    flags: Flags::READONLY,
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(2, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Names the way a value is stored.",
        since: "2.2.3",
        group: "generic",
        complexity: "O(1)",
        tips: &["nondeterministic_output"],
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(encoding),
};

fn encoding(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_entry(ctx, |entry| Shown::Name(types::encoding::name(entry)))
}

static FREQ: CommandSpec = CommandSpec {
    name: "freq",
    arity: 3,
    flags: Flags::READONLY,
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(2, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives how often a key was used lately, on a logarithmic scale.",
        since: "4.0.0",
        group: "generic",
        complexity: "O(1)",
        tips: &["nondeterministic_output"],
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(freq),
};

fn freq(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let counted = ctx.host.stamp_meaning.is_frequency();
    reply_entry(ctx, |entry| if counted { Shown::Frequency(entry.stamp) } else { Shown::Refused(NO_FREQUENCY) })
}

const NO_FREQUENCY: &str = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that \
    when switching between policies at runtime LRU and LFU data will take some time to adjust.";

static HELP: CommandSpec = CommandSpec {
    name: "help",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::KEYSPACE,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lists what OBJECT can do.",
        since: "6.2.0",
        group: "generic",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(help),
};

fn help(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.array(HELP_LINES.len());
    HELP_LINES.iter().for_each(|line| ctx.reply.simple(line));
    Ok(())
}

const HELP_LINES: &[&str] = &[
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Name the way in which the value under the key is stored.",
    "FREQ <key>",
    "    Give the access counter of the key: the logarithm of how often it was used,",
    "    falling with time. Counted under the LFU policies only.",
    "IDLETIME <key>",
    "    Give the seconds since the key was last used. Kept under all policies but",
    "    the LFU ones.",
    "REFCOUNT <key>",
    "    Give how many references hold the value under the key.",
    "HELP",
    "    Print this help.",
];

static IDLETIME: CommandSpec = CommandSpec {
    name: "idletime",
    arity: 3,
    flags: Flags::READONLY,
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(2, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives how many seconds ago a key was last used.",
        since: "2.2.3",
        group: "generic",
        complexity: "O(1)",
        tips: &["nondeterministic_output"],
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(idletime),
};

fn idletime(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let counted = ctx.host.stamp_meaning.is_frequency();
    reply_entry(ctx, |entry| if counted { Shown::Refused(NO_IDLE_TIME) } else { Shown::Idle(entry.stamp) })
}

const NO_IDLE_TIME: &str = "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when \
    switching between policies at runtime LRU and LFU data will take some time to adjust.";

static REFCOUNT: CommandSpec = CommandSpec {
    name: "refcount",
    arity: 3,
    flags: Flags::READONLY,
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(2, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives how many references hold a value.",
        since: "2.2.3",
        group: "generic",
        complexity: "O(1)",
        tips: &["nondeterministic_output"],
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(refcount),
};

fn refcount(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    // Other holders of a big value (a reply in flight, a checkpoint) do not concern the client.
    reply_entry(ctx, |_| Shown::Number(1))
}
