//! MEMORY: what memory is used for.

use crate::{About, Figures, about, reply_help};
use command::clients::Clients;
use command::spec::{Argument, Docs, KeyFlags, KeySpec};
use command::{Categories, CommandSpec, Ctx, Flags, Host, Locks, Run, Stop, error};
use engine_mem::MemoryKind;
use std::sync::Arc;
use store::Store;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&MEMORY];

static MEMORY: CommandSpec = CommandSpec {
    name: "memory",
    arity: -2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Holds the commands about memory.",
        since: "4.0.0",
        group: "server",
        complexity: "Depends on subcommand.",
        ..Docs::NONE
    },
    run: Run::Container(&[
        &MEMORY_DOCTOR,
        &MEMORY_HELP,
        &MEMORY_MALLOC_STATS,
        &MEMORY_PURGE,
        &MEMORY_STATS,
        &MEMORY_USAGE,
    ]),
};

static MEMORY_DOCTOR: CommandSpec = CommandSpec {
    name: "doctor",
    arity: 2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Says what is unusual about memory.",
        since: "4.0.0",
        group: "server",
        complexity: "O(1)",
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        ..Docs::NONE
    },
    run: Run::Call(memory_doctor),
};

static MEMORY_HELP: CommandSpec = CommandSpec {
    name: "help",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Lists the subcommands.",
        since: "4.0.0",
        group: "server",
        complexity: "O(1)",
        ..Docs::NONE
    },
    run: Run::Call(memory_help),
};

static MEMORY_MALLOC_STATS: CommandSpec = CommandSpec {
    name: "malloc-stats",
    arity: 2,
    flags: Flags::LOADING,
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Tells what memory is used for, as text.",
        since: "4.0.0",
        group: "server",
        complexity: "Depends on how much memory is allocated, could be slow",
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        ..Docs::NONE
    },
    run: Run::Call(memory_malloc_stats),
};

static MEMORY_PURGE: CommandSpec = CommandSpec {
    name: "purge",
    arity: 2,
    flags: Flags::LOADING,
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Gives free memory back to the system.",
        since: "4.0.0",
        group: "server",
        complexity: "Depends on how much memory is allocated, could be slow",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        ..Docs::NONE
    },
    run: Run::Call(memory_purge),
};

static MEMORY_STATS: CommandSpec = CommandSpec {
    name: "stats",
    arity: 2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::All,
    docs: &Docs {
        summary: "Gives the bytes used by each kind of memory.",
        since: "4.0.0",
        group: "server",
        complexity: "O(1)",
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        ..Docs::NONE
    },
    run: Run::Call(memory_stats),
};

static MEMORY_USAGE: CommandSpec = CommandSpec {
    name: "usage",
    arity: -3,
    flags: Flags::READONLY,
    categories: Categories::empty(),
    keys: &[KeySpec::one(2, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the bytes a key costs.",
        since: "4.0.0",
        group: "server",
        complexity: "O(N) where N is the number of samples.",
        arguments: &[Argument::key("key", 0), Argument::integer("count").after("SAMPLES").optional()],
        ..Docs::NONE
    },
    run: Run::Call(memory_usage),
};

/// Memory in use at one moment, in bytes.
pub(crate) struct MemoryNow {
    /// What is counted against `maxmemory`.
    pub(crate) used: u64,
    /// The most that was counted.
    pub(crate) peak: u64,
    /// What the operating system counts.
    pub(crate) resident: Option<u64>,
    /// Pages of entries.
    pub(crate) values: u64,
    /// Values in allocations of their own.
    pub(crate) large: u64,
    /// The hash tables.
    pub(crate) table: u64,
    /// The expiration index.
    pub(crate) index: u64,
    /// Buffers of clients.
    pub(crate) clients: u64,
}

impl MemoryNow {
    pub(crate) fn of(ctx: &Ctx<'_>) -> Self {
        let memory = &ctx.host.part::<Arc<Store>>().memory;
        let figures = ctx.host.part::<Arc<Figures>>();
        let clients = client_bytes(ctx.host);
        let used = memory.total() + clients;
        Self {
            used,
            peak: figures.peak_bytes(used),
            resident: about::resident_bytes(),
            values: memory.of(MemoryKind::Values),
            large: memory.of(MemoryKind::Large),
            table: memory.of(MemoryKind::Table),
            index: memory.of(MemoryKind::Index),
            clients,
        }
    }

    /// What is not entries.
    pub(crate) fn overhead(&self) -> u64 {
        self.table + self.index + self.clients
    }

    /// Entries.
    pub(crate) fn dataset(&self) -> u64 {
        self.values + self.large
    }
}

/// Bytes held for all connections.
pub fn client_bytes(host: &Host) -> u64 {
    host.part::<Clients>().all().iter().map(|client| client.held_bytes() as u64).sum()
}

/// SAMPLES is checked and otherwise ignored: what an entry costs is known, not estimated.
fn memory_usage(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let mut at = 3;
    while at < ctx.args.len() {
        if !ctx.is_word(at, "samples") || at + 1 >= ctx.args.len() {
            return Err(error::SYNTAX);
        }
        if ctx.integer(at + 1)? < 0 {
            return Err(error::SYNTAX);
        }
        at += 2;
    }
    let key = ctx.key(2);
    // An expired entry may still cost something, but clients do not see it.
    let live = ctx.ks.peek(&key)?.is_some();
    match ctx.ks.cost_bytes(&key).filter(|_| live) {
        Some(bytes) => ctx.reply.integer(bytes as i64),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn memory_stats(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let now = MemoryNow::of(ctx);
    let keys = (0..).map(base::DbIndex).map_while(|db| ctx.ks.space_of(db)).map(|space| ctx.ks.len(space)).sum::<u64>();
    let integers = [
        ("peak.allocated", now.peak),
        ("total.allocated", now.used),
        ("clients.normal", now.clients),
        ("overhead.hashtable.main", now.table),
        ("overhead.hashtable.expires", now.index),
        ("overhead.total", now.overhead()),
        ("keys.count", keys),
        ("keys.bytes-per-key", now.used.checked_div(keys).unwrap_or(0)),
        ("dataset.bytes", now.dataset()),
    ];
    let share = |part: u64, whole: u64| part as f64 * 100.0 / whole.max(1) as f64;
    let mut doubles =
        vec![("dataset.percentage", share(now.dataset(), now.used)), ("peak.percentage", share(now.used, now.peak))];
    if let Some(resident) = now.resident {
        doubles.push(("fragmentation", resident as f64 / now.used.max(1) as f64));
    }
    let fragmentation = now.resident.map(|resident| resident as i64 - now.used as i64);
    ctx.reply.map(integers.len() + doubles.len() + usize::from(fragmentation.is_some()));
    for (name, value) in integers {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.integer(value as i64);
    }
    for (name, value) in doubles {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.double(value);
    }
    if let Some(bytes) = fragmentation {
        ctx.reply.bulk(b"fragmentation.bytes");
        ctx.reply.integer(bytes);
    }
    Ok(())
}

/// Below this a server has too little in it for shares to mean anything.
const DIAGNOSED_BYTES_MIN: u64 = 5 << 20;

fn memory_doctor(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let now = MemoryNow::of(ctx);
    let mut found = Vec::new();
    if now.used >= DIAGNOSED_BYTES_MIN {
        if now.peak > now.used + now.used / 2 {
            found.push(format!(
                "Peak: {} bytes were in use at the peak, {} are now. Resident memory may stay high until cleaning has \
                 given pages back.",
                now.peak, now.used
            ));
        }
        if let Some(resident) = now.resident.filter(|resident| *resident > now.used + now.used / 2) {
            found.push(format!(
                "Resident: the process has {resident} bytes of memory for {} in use. After many deletions this passes \
                 when cleaning is done.",
                now.used
            ));
        }
        if now.clients > now.used / 5 {
            found.push(format!(
                "Clients: their buffers hold {} bytes, more than a fifth of all memory in use. Look for clients that \
                 do not read their replies, or that send very large requests.",
                now.clients
            ));
        }
    }
    let text = match found.is_empty() {
        true if now.used < DIAGNOSED_BYTES_MIN => "There is too little data here for a diagnosis.\n".to_owned(),
        true => "No problem with memory was found.\n".to_owned(),
        false => found.iter().map(|problem| format!("* {problem}\n")).collect(),
    };
    ctx.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn memory_malloc_stats(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let now = MemoryNow::of(ctx);
    let uptime = (ctx.now() - ctx.host.part::<About>().started_at).max(0) / 1000;
    let text = format!(
        "Pages of the server's own, {uptime} s after the start\nentries: {}\nlarge values: {}\nhash tables: {}\n\
         expiration index: {}\nclient buffers: {}\n",
        now.values, now.large, now.table, now.index, now.clients
    );
    ctx.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// Free pages go back to the system by themselves, in small steps; there is nothing left to ask for.
fn memory_purge(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.ok();
    Ok(())
}

fn memory_help(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_help(
        ctx,
        &[
            "MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "DOCTOR",
            "    Say what is unusual about memory.",
            "MALLOC-STATS",
            "    Give the bytes used by each kind of memory, as text.",
            "PURGE",
            "    Accepted: free pages are always given back to the system.",
            "STATS",
            "    Give the bytes used by each kind of memory.",
            "USAGE <key> [SAMPLES <count>]",
            "    Give the bytes that the key, its value and their place in the table cost.",
            "    SAMPLES is accepted: the figure is exact.",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}
