//! MEMORY: what memory is used for.

use crate::explain_rows::MEMORY_EXPLAIN;
use crate::info::human;
use crate::{about, reply_help};
use command::spec::{Argument, Docs, KeyFlags, KeySpec};
use command::{Categories, CommandSpec, Ctx, Flags, Host, Locks, Run, Stop, error};
use engine_mem::MemoryKind;
use proto::ReplyBuffer;
use std::sync::Arc;
use store::Store;
use store::compression::compressed_lengths;

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
        &MEMORY_EXPLAIN,
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
    locks: Locks::Each,
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
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("count").after("SAMPLES").optional(),
            Argument::word("logical", "LOGICAL").optional(),
        ],
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
    /// What readers have thawed of compressed leaves of collections.
    pub(crate) thawed: u64,
    /// The hash tables.
    pub(crate) table: u64,
    /// The expiration index.
    pub(crate) index: u64,
    /// Buffers of clients.
    pub(crate) clients: u64,
    /// What was counted when the server had just started.
    pub(crate) startup: u64,
    /// What the process had besides at its start, as far as it is resident now; no part of `used`.
    pub(crate) base: u64,
}

impl MemoryNow {
    pub(crate) fn of(ctx: &Ctx<'_>) -> Self {
        let memory = &ctx.host.part::<crate::Needed, Arc<Store>>().memory;
        let figures = &ctx.host.figures;
        let clients = client_bytes(ctx.host);
        let used = memory.total() + clients;
        let (startup, resident) = (figures.startup(), about::resident_bytes());
        // The system may have taken back pages of the program that were resident at its start.
        let base = resident.map_or(startup.base_bytes, |bytes| startup.base_bytes.min(bytes.saturating_sub(used)));
        Self {
            used,
            peak: figures.peak_bytes(used),
            resident,
            values: memory.of(MemoryKind::Values),
            large: memory.of(MemoryKind::Large),
            thawed: memory.of(MemoryKind::Thawed),
            table: memory.of(MemoryKind::Table),
            index: memory.of(MemoryKind::Index),
            clients,
            startup: startup.used_bytes,
            base,
        }
    }

    /// What is not entries.
    pub(crate) fn overhead(&self) -> u64 {
        self.table + self.index + self.clients
    }

    /// The share of entries in what was added since the start.
    pub(crate) fn dataset_percent(&self) -> f64 {
        self.dataset() as f64 * 100.0 / self.used.saturating_sub(self.startup).max(1) as f64
    }

    /// What the process needs: what is in use, and what it had in addition at its start. Valkey counts both as used.
    fn needed(&self) -> u64 {
        self.used + self.base
    }

    /// Resident bytes per byte needed.
    pub(crate) fn resident_ratio(&self) -> f64 {
        self.resident.unwrap_or(self.needed()) as f64 / self.needed().max(1) as f64
    }

    /// Resident bytes beyond those needed; negative when some of these are not resident.
    pub(crate) fn resident_excess(&self) -> i64 {
        self.resident.unwrap_or(self.needed()) as i64 - self.needed() as i64
    }

    /// Entries.
    pub(crate) fn dataset(&self) -> u64 {
        self.values + self.large + self.thawed
    }
}

/// Bytes held for all connections.
pub fn client_bytes(host: &Host) -> u64 {
    host.clients.all().iter().map(|client| client.held_bytes() as u64).sum()
}

/// SAMPLES is checked and otherwise ignored: what an entry costs is known, not estimated.
fn memory_usage(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (mut at, mut is_logical) = (3, false);
    while at < ctx.args.len() {
        if ctx.is_word(at, "logical") {
            is_logical = true;
            at += 1;
            continue;
        }
        if !ctx.is_word(at, "samples") || at + 1 >= ctx.args.len() || ctx.integer(at + 1)? < 0 {
            return Err(error::SYNTAX);
        }
        at += 2;
    }
    let key = ctx.key(2);
    // An expired entry may still cost something, but clients do not see it.
    let saved = ctx.ks.peek_head(&key)?.map(|entry| match compressed_lengths(&entry).filter(|_| is_logical) {
        Some((stored, plain)) => plain.saturating_sub(stored),
        None => 0,
    });
    match ctx.ks.cost_bytes(&key).zip(saved) {
        Some((bytes, saved)) => ctx.reply.integer(bytes.saturating_add(saved) as i64),
        None => ctx.reply.null(),
    }
    Ok(())
}

fn memory_stats(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let now = MemoryNow::of(ctx);
    let scripts = script::figures::figures(ctx);
    let spaces: Vec<_> = (0..).map(base::DbIndex).map_while(|db| Some((db, ctx.ks.space_of(db)?))).collect();
    let keys_of: Vec<(u32, u64, u64)> =
        spaces.iter().map(|(db, space)| (db.0, ctx.ks.len(*space), ctx.ks.expiring_len(*space))).collect();
    let (keys, expiring) = keys_of.iter().fold((0, 0), |sum, (_, keys, expiring)| (sum.0 + keys, sum.1 + expiring));
    let share = |bytes: u64, part: u64, whole: u64| bytes.saturating_mul(part).checked_div(whole).unwrap_or(0);
    let mut figures = Vec::new();
    let mut bytes = |name: &str, bytes: u64| figures.push((name.to_owned(), Figure::Bytes(bytes as i64)));
    bytes("peak.allocated", now.peak);
    bytes("total.allocated", now.used);
    bytes("startup.allocated", now.base);
    bytes("replication.backlog", 0);
    bytes("replicas.repl.buffer", 0);
    bytes("clients.slaves", 0);
    bytes("clients.normal", now.clients);
    bytes("cluster.links", 0);
    bytes("cluster.slot_import", 0);
    bytes("cluster.slot_export", 0);
    bytes("aof.buffer", 0);
    bytes("lua.caches", scripts.scripts_bytes as u64);
    bytes("functions.caches", scripts.libraries_bytes as u64);
    for (db, keys_here, expiring_here) in keys_of.into_iter().filter(|(_, keys, _)| *keys > 0) {
        // All databases share the shards' memory; each is shown its part by its number of entries.
        let tables = (share(now.table, keys_here, keys), share(now.index, expiring_here, expiring));
        figures.push((format!("db.{db}"), Figure::Tables(tables.0, tables.1)));
    }
    let mut bytes = |name: &str, bytes: i64| figures.push((name.to_owned(), Figure::Bytes(bytes)));
    bytes("overhead.db.hashtable.lut", now.table as i64);
    bytes("overhead.db.hashtable.rehashing", 0);
    bytes("overhead.total", now.overhead() as i64);
    bytes("db.dict.rehashing.count", 0);
    bytes("keys.count", keys as i64);
    bytes("keys.bytes-per-key", now.used.saturating_sub(now.startup).checked_div(keys).unwrap_or(0) as i64);
    bytes("dataset.bytes", now.dataset() as i64);
    let resident = now.resident.unwrap_or(now.used);
    let (ratio, excess) = (Figure::Ratio(now.resident_ratio()), Figure::Bytes(now.resident_excess()));
    for (name, figure) in [
        ("dataset.percentage", Figure::Ratio(now.dataset_percent())),
        ("peak.percentage", Figure::Ratio(now.used as f64 * 100.0 / now.peak.max(1) as f64)),
        ("allocator.allocated", Figure::Bytes(now.used as i64)),
        ("allocator.active", Figure::Bytes(now.used as i64)),
        ("allocator.resident", Figure::Bytes(resident as i64)),
        ("allocator.muzzy", Figure::Bytes(0)),
        ("allocator-fragmentation.ratio", Figure::Ratio(1.0)),
        ("allocator-fragmentation.bytes", Figure::Bytes(0)),
        ("allocator-rss.ratio", ratio),
        ("allocator-rss.bytes", excess),
        ("rss-overhead.ratio", Figure::Ratio(1.0)),
        ("rss-overhead.bytes", Figure::Bytes(0)),
        ("fragmentation", ratio),
        ("fragmentation.bytes", excess),
    ] {
        figures.push((name.to_owned(), figure));
    }
    ctx.reply.map(figures.len());
    for (name, figure) in figures {
        ctx.reply.bulk(name.as_bytes());
        figure.reply(ctx.reply);
    }
    Ok(())
}

/// A figure of MEMORY STATS.
#[derive(Clone, Copy)]
enum Figure {
    Bytes(i64),
    Ratio(f64),
    /// Bytes of a database's part of the hash table and of the expiration index.
    Tables(u64, u64),
}

impl Figure {
    fn reply(self, reply: &mut ReplyBuffer) {
        match self {
            Self::Bytes(bytes) => reply.integer(bytes),
            Self::Ratio(ratio) => reply.double(ratio),
            Self::Tables(table, index) => {
                reply.map(2);
                reply.bulk(b"overhead.hashtable.main");
                reply.integer(table as i64);
                reply.bulk(b"overhead.hashtable.expires");
                reply.integer(index as i64);
            }
        }
    }
}

/// Below this a server has too little in it for shares to mean anything.
const DIAGNOSED_BYTES_MIN: u64 = 5 << 20;

/// Resident memory is remarkable above this ratio and this excess, as in Valkey.
const RESIDENT_RATIO_MAX: f64 = 1.4;
const RESIDENT_EXCESS_MAX: i64 = 10 << 20;

fn memory_doctor(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let now = MemoryNow::of(ctx);
    let mut found = Vec::new();
    if now.used >= DIAGNOSED_BYTES_MIN {
        if now.peak > now.used + now.used / 2 {
            found.push(format!(
                "Peak: {} were in use at the peak, {} are now. Resident memory may stay high until cleaning has given \
                 pages back.",
                human(now.peak),
                human(now.used)
            ));
        }
        if now.resident_ratio() > RESIDENT_RATIO_MAX && now.resident_excess() > RESIDENT_EXCESS_MAX {
            found.push(format!(
                "Resident: the process has {} of memory, where {} are in use and {} are its own. After many deletions \
                 cleaning gives the rest back.",
                human(now.resident.unwrap_or(0)),
                human(now.used),
                human(now.base)
            ));
        }
        if now.clients > now.used / 5 {
            found.push(format!(
                "Clients: their buffers hold {}, more than a fifth of all memory in use. Look for clients that do not \
                 read their replies, or that send very large requests.",
                human(now.clients)
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
    let uptime = (ctx.now() - ctx.host.about.started_at).max(0) / 1000;
    let text = format!(
        "Pages of the server's own, {uptime} s after the start\nentries: {}\nlarge values: {}\nthawed: {}\nhash tables: {}\n\
         expiration index: {}\nclient buffers: {}\n",
        now.values, now.large, now.thawed, now.table, now.index, now.clients
    );
    ctx.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// Free pages go back to the system automatically, in small steps; there is nothing left to ask for.
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
            "EXPLAIN [PREFIX <prefix>] [DEPTH <parts>] [SEPARATOR <byte>]",
            "    Give what keys cost, by their prefixes. A command of this server alone.",
            "MALLOC-STATS",
            "    Give the bytes used by each kind of memory, as text.",
            "PURGE",
            "    Accepted: free pages are always given back to the system.",
            "STATS",
            "    Give the bytes used by each kind of memory.",
            "USAGE <key> [SAMPLES <count>] [LOGICAL]",
            "    Give the bytes that the key, its value and their place in the table cost.",
            "    SAMPLES is accepted: the figure is exact. With LOGICAL, as if the value were not compressed.",
            "HELP",
            "    Print this help.",
        ],
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program itself takes 30 MB. A server with 28 MB of data showed a fragmentation of 2, and an empty one of
    /// 87,852.
    #[test]
    fn what_the_program_itself_takes_is_no_fragmentation() {
        let now = |used: u64, resident: u64| MemoryNow {
            used,
            peak: used,
            resident: Some(resident),
            values: used,
            large: 0,
            thawed: 0,
            table: 0,
            index: 0,
            clients: 0,
            startup: 0,
            base: 30 << 20,
        };
        let (empty, small, loose) = (now(0, 30 << 20), now(28 << 20, 58 << 20), now(30 << 20, 90 << 20));
        assert_eq!((empty.resident_ratio(), empty.resident_excess()), (1.0, 0));
        assert_eq!((small.resident_ratio(), small.resident_excess()), (1.0, 0));
        assert_eq!((loose.resident_ratio(), loose.resident_excess()), (1.5, 30 << 20));
    }
}
