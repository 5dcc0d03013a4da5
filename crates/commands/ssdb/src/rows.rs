//! The rows of the commands. Every fact about a command stands in its row, as with those of Redis.

use crate::{hash, kv, kv_bits, many, queue, refused, service, zset, zset_ranges};
use command::spec::{Answer, Docs};
use command::{Categories, CommandSpec, CommandTable, Flags, Handler, KeyFlags, KeySpec, Locks, Row, Run};
use std::collections::HashMap;

/// The rows in a server's table.
#[derive(Clone)]
pub struct Rows {
    by_name: HashMap<&'static [u8], Row>,
    unknown: Row,
    wrong_count: Row,
    /// Those for requests with many names.
    many: HashMap<&'static [u8], Row>,
    /// The type of each row that has one, by its index.
    types: Vec<u8>,
}

impl Rows {
    /// Adds the commands to the table, under `ssdb|name`.
    ///
    /// # Panics
    /// When the table is full.
    pub fn add_to(table: &mut CommandTable) -> Self {
        let specs: Vec<&'static CommandSpec> = COMMANDS.iter().chain([&UNKNOWN, &WRONG_COUNT]).collect();
        let mut rows = table.add_dialect("ssdb", &specs);
        let wrong_count = rows.pop().expect("as many rows as commands");
        let unknown = rows.pop().expect("as many rows as commands");
        let mut types = vec![0; rows.iter().map(|row| usize::from(row.index).saturating_add(1)).max().unwrap_or(0)];
        for row in &rows {
            if let Some(number) = types.get_mut(usize::from(row.index)) {
                *number = type_of_name(row.spec.name);
            }
        }
        // Under the same names, and so with the same figures.
        let many = table.add_dialect("ssdb", &MANY.iter().collect::<Vec<_>>());
        let many = many.into_iter().map(|row| (row.spec.name.as_bytes(), row)).collect();
        let by_name = rows.into_iter().map(|row| (row.spec.name.as_bytes(), row)).collect();
        Self { by_name, unknown, wrong_count, many, types }
    }

    /// What a command is about: 0 keys, or nothing, 1 hashes, 2 zsets, 3 queues.
    #[inline]
    pub fn type_of(&self, row: &Row) -> u32 {
        self.types.get(usize::from(row.index)).copied().unwrap_or(0).into()
    }

    /// The row of a request with this name; `count` is the number of arguments with the name.
    #[inline]
    pub fn row(&self, name: &[u8], count: usize) -> Row {
        if count > many::AT_ONCE
            && let Some(row) = self.many.get(name)
        {
            return *row;
        }
        match self.by_name.get(name) {
            None => self.unknown,
            Some(row) if row.spec.accepts(count) => *row,
            Some(_) => self.wrong_count,
        }
    }

    /// The names of all commands, in no order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.by_name.values().map(|row| row.spec.name)
    }
}

/// As [`Rows::type_of`], by the letter that names of commands begin with.
fn type_of_name(name: &str) -> u8 {
    match name.strip_prefix("multi_").unwrap_or(name).as_bytes().first() {
        Some(b'h') => 1,
        Some(b'z') => 2,
        Some(b'q') if name != "quit" => 3,
        _ => 0,
    }
}

const READ: &[KeySpec] = &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))];
const READ_ALL: &[KeySpec] = &[KeySpec::range(1, -1, 1, KeyFlags::RO.union(KeyFlags::ACCESS))];
const CHANGE: &[KeySpec] = &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))];
const GIVE_AND_CHANGE: &[KeySpec] = &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))];
const CHANGE_PAIRS: &[KeySpec] = &[KeySpec::range(1, -1, 2, KeyFlags::RW.union(KeyFlags::UPDATE))];
const REMOVE: &[KeySpec] = &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))];
const REMOVE_ALL: &[KeySpec] = &[KeySpec::range(1, -1, 1, KeyFlags::RW.union(KeyFlags::DELETE))];
const GIVE_AND_REMOVE: &[KeySpec] = &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))];

const READING: Flags = Flags::READONLY.union(Flags::FAST);
const GROWING: Flags = Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST);
const FREEING: Flags = Flags::WRITE.union(Flags::FAST).union(Flags::FREES);
/// About the connection: also while data is loaded.
const ALWAYS: Flags = Flags::LOADING.union(Flags::STALE).union(Flags::FAST);
/// Also before login.
const FOR_ANYBODY: Flags = ALWAYS.union(Flags::NO_AUTH);

const STRING: Categories = Categories::STRING;
const BITMAP: Categories = Categories::BITMAP;
const HASH: Categories = Categories::HASH;
const ZSET: Categories = Categories::SORTED_SET;
const LIST: Categories = Categories::LIST;

const fn spec(
    name: &'static str,
    arity: i16,
    (flags, categories): (Flags, Categories),
    keys: &'static [KeySpec],
    run: Run,
) -> CommandSpec {
    CommandSpec { name, arity, flags, categories, keys, locks: Locks::Keys, docs: &Docs::NONE, run }
}

/// Answers from one entry.
const fn read(name: &'static str, arity: i16, categories: Categories, answer: Answer) -> CommandSpec {
    spec(name, arity, (READING, categories), READ, Run::Read(answer))
}

/// Reads entries in another way.
const fn look(
    name: &'static str,
    arity: i16,
    categories: Categories,
    keys: &'static [KeySpec],
    run: Handler,
) -> CommandSpec {
    spec(name, arity, (Flags::READONLY, categories), keys, Run::Call(run))
}

/// May need memory.
const fn grow(
    name: &'static str,
    arity: i16,
    categories: Categories,
    keys: &'static [KeySpec],
    run: Handler,
) -> CommandSpec {
    spec(name, arity, (GROWING, categories), keys, Run::Call(run))
}

/// Frees memory.
const fn free(
    name: &'static str,
    arity: i16,
    categories: Categories,
    keys: &'static [KeySpec],
    run: Handler,
) -> CommandSpec {
    spec(name, arity, (FREEING, categories), keys, Run::Call(run))
}

/// Looks at all keys, as KEYS of Redis.
const fn walk(name: &'static str, locks: Locks, run: Handler) -> CommandSpec {
    let categories = Categories::KEYSPACE.union(Categories::DANGEROUS);
    CommandSpec { locks, ..spec(name, -4, (Flags::READONLY, categories), &[], Run::Call(run)) }
}

/// Has no keys.
const fn keyless(name: &'static str, arity: i16, flags: Flags, categories: Categories, run: Handler) -> CommandSpec {
    CommandSpec { locks: Locks::None, ..spec(name, arity, (flags, categories), &[], Run::Call(run)) }
}

static UNKNOWN: CommandSpec =
    keyless("unknown", -1, ALWAYS.union(Flags::NO_RIGHT), Categories::CONNECTION, refused::unknown);
static WRONG_COUNT: CommandSpec =
    keyless("refused", -1, ALWAYS.union(Flags::NO_RIGHT), Categories::CONNECTION, refused::wrong_count);

/// Takes the place of the row of the same name when a request has many names.
const fn look_at_many(name: &'static str, categories: Categories, run: Handler) -> CommandSpec {
    CommandSpec { locks: Locks::All, ..look(name, -2, categories, READ_ALL, run) }
}

static MANY: [CommandSpec; 4] = [
    look_at_many("multi_get", STRING, many::multi_get),
    look_at_many("multi_exists", STRING, many::multi_exists),
    look_at_many("multi_hsize", HASH, many::multi_hsize),
    look_at_many("multi_zsize", ZSET, many::multi_zsize),
];

static COMMANDS: [CommandSpec; 103] = [
    read("get", -2, STRING, kv::get),
    grow("set", -3, STRING, CHANGE, kv::set),
    grow("setx", -4, STRING, CHANGE, kv::setx),
    grow("setnx", -3, STRING, CHANGE, kv::setnx),
    grow("getset", -3, STRING, GIVE_AND_CHANGE, kv::getset),
    free("del", -2, STRING, REMOVE, kv::del),
    grow("incr", -2, STRING, GIVE_AND_CHANGE, kv::incr),
    grow("decr", -2, STRING, GIVE_AND_CHANGE, kv::decr),
    look("exists", -2, STRING, READ, kv::exists),
    spec("expire", -3, (Flags::WRITE.union(Flags::FAST), Categories::KEYSPACE), CHANGE, Run::Call(kv::expire)),
    look("ttl", -2, Categories::KEYSPACE, READ, kv::ttl),
    read("strlen", -2, STRING, kv::strlen),
    look("multi_get", -2, STRING, READ_ALL, kv::multi_get),
    grow("multi_set", -3, STRING, CHANGE_PAIRS, kv::multi_set),
    free("multi_del", -2, STRING, REMOVE_ALL, kv::multi_del),
    look("multi_exists", -2, STRING, READ_ALL, kv::multi_exists),
    walk("scan", Locks::All, kv::scan),
    walk("rscan", Locks::All, kv::rscan),
    walk("keys", Locks::Each, kv::keys),
    walk("rkeys", Locks::Each, kv::rkeys),
    read("getbit", -3, BITMAP, kv_bits::getbit),
    grow("setbit", -4, BITMAP, GIVE_AND_CHANGE, kv_bits::setbit),
    look("bitcount", -2, BITMAP, READ, kv_bits::bitcount),
    look("countbit", -2, BITMAP, READ, kv_bits::countbit),
    read("substr", -2, STRING, kv_bits::substr),
    read("getrange", -2, STRING, kv_bits::getrange),
    read("hget", -3, HASH, hash::hget),
    grow("hset", -4, HASH, CHANGE, hash::hset),
    free("hdel", -3, HASH, REMOVE, hash::hdel),
    grow("hincr", -3, HASH, GIVE_AND_CHANGE, hash::hincr),
    grow("hdecr", -3, HASH, GIVE_AND_CHANGE, hash::hdecr),
    read("hexists", -3, HASH, hash::hexists),
    read("hsize", -2, HASH, hash::hsize),
    read("hfix", -2, HASH, hash::hsize),
    look("hgetall", -2, HASH, READ, hash::hgetall),
    look("hkeys", -5, HASH, READ, hash::hkeys),
    look("hvals", -5, HASH, READ, hash::hvals),
    look("hscan", -5, HASH, READ, hash::hscan),
    look("hrscan", -5, HASH, READ, hash::hrscan),
    free("hclear", -2, HASH, REMOVE, hash::hclear),
    walk("hlist", Locks::Each, hash::hlist),
    walk("hrlist", Locks::Each, hash::hrlist),
    read("multi_hget", -3, HASH, hash::multi_hget),
    grow("multi_hset", -4, HASH, CHANGE, hash::hset),
    free("multi_hdel", -3, HASH, REMOVE, hash::hdel),
    read("multi_hexists", -3, HASH, hash::multi_hexists),
    look("multi_hsize", -2, HASH, READ_ALL, hash::multi_hsize),
    read("zget", -3, ZSET, zset::zget),
    grow("zset", -4, ZSET, CHANGE, zset::zset),
    free("zdel", -3, ZSET, REMOVE, zset::zdel),
    grow("zincr", -3, ZSET, GIVE_AND_CHANGE, zset::zincr),
    grow("zdecr", -3, ZSET, GIVE_AND_CHANGE, zset::zdecr),
    read("zexists", -3, ZSET, zset::zexists),
    read("zsize", -2, ZSET, zset::zsize),
    read("zfix", -2, ZSET, zset::zsize),
    read("zrank", -3, ZSET, zset::zrank),
    read("zrrank", -3, ZSET, zset::zrrank),
    look("zrange", -4, ZSET, READ, zset_ranges::zrange),
    look("zrrange", -4, ZSET, READ, zset_ranges::zrrange),
    look("zkeys", -6, ZSET, READ, zset_ranges::zkeys),
    look("zscan", -6, ZSET, READ, zset_ranges::zscan),
    look("zrscan", -6, ZSET, READ, zset_ranges::zrscan),
    look("zcount", -4, ZSET, READ, zset_ranges::zcount),
    look("zsum", -4, ZSET, READ, zset_ranges::zsum),
    look("zavg", -4, ZSET, READ, zset_ranges::zavg),
    free("zclear", -2, ZSET, REMOVE, zset::zclear),
    free("zremrangebyrank", -4, ZSET, REMOVE, zset_ranges::zremrangebyrank),
    free("zremrangebyscore", -4, ZSET, REMOVE, zset_ranges::zremrangebyscore),
    free("zpop_front", -3, ZSET, GIVE_AND_REMOVE, zset_ranges::zpop_front),
    free("zpop_back", -3, ZSET, GIVE_AND_REMOVE, zset_ranges::zpop_back),
    walk("zlist", Locks::Each, zset_ranges::zlist),
    walk("zrlist", Locks::Each, zset_ranges::zrlist),
    read("multi_zget", -3, ZSET, zset::multi_zget),
    grow("multi_zset", -4, ZSET, CHANGE, zset::zset),
    free("multi_zdel", -3, ZSET, REMOVE, zset::zdel),
    read("multi_zexists", -3, ZSET, zset::multi_zexists),
    look("multi_zsize", -2, ZSET, READ_ALL, zset::multi_zsize),
    grow("qpush", -3, LIST, CHANGE, queue::qpush_back),
    grow("qpush_front", -3, LIST, CHANGE, queue::qpush_front),
    grow("qpush_back", -3, LIST, CHANGE, queue::qpush_back),
    free("qpop", -2, LIST, GIVE_AND_REMOVE, queue::qpop_front),
    free("qpop_front", -2, LIST, GIVE_AND_REMOVE, queue::qpop_front),
    free("qpop_back", -2, LIST, GIVE_AND_REMOVE, queue::qpop_back),
    read("qfront", -2, LIST, queue::qfront),
    read("qback", -2, LIST, queue::qback),
    read("qsize", -2, LIST, queue::qsize),
    read("qfix", -2, LIST, queue::qfix),
    free("qclear", -2, LIST, REMOVE, queue::qclear),
    read("qget", -3, LIST, queue::qget),
    grow("qset", -4, LIST, CHANGE, queue::qset),
    look("qrange", -4, LIST, READ, queue::qrange),
    look("qslice", -4, LIST, READ, queue::qslice),
    free("qtrim_front", -2, LIST, REMOVE, queue::qtrim_front),
    free("qtrim_back", -2, LIST, REMOVE, queue::qtrim_back),
    walk("qlist", Locks::Each, queue::qlist),
    walk("qrlist", Locks::Each, queue::qrlist),
    keyless("ping", -1, ALWAYS.union(Flags::NO_RIGHT), Categories::CONNECTION, service::ping),
    keyless("version", -1, ALWAYS.union(Flags::NO_RIGHT), Categories::CONNECTION, service::version),
    keyless("quit", -1, FOR_ANYBODY, Categories::CONNECTION, service::quit),
    // MONITOR and the slow log skip it, since what hides passwords knows those of RESP commands.
    keyless(
        "auth",
        -2,
        FOR_ANYBODY.union(Flags::SKIP_MONITOR).union(Flags::SKIP_COMMANDLOG),
        Categories::CONNECTION,
        service::auth,
    ),
    keyless("dbsize", -1, READING, Categories::KEYSPACE, service::dbsize),
    keyless("info", -1, ALWAYS, Categories::DANGEROUS, service::info),
    CommandSpec {
        locks: Locks::All,
        ..keyless(
            "flushdb",
            -1,
            Flags::WRITE.union(Flags::AUDITED).union(Flags::FREES),
            Categories::KEYSPACE.union(Categories::DANGEROUS),
            service::flushdb,
        )
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use engine::WriteClass;

    /// They are let through while a full disk or memory keeps others from writing.
    #[test]
    fn commands_that_free_are_not_kept_out() {
        let rows = Rows::add_to(&mut CommandTable::new(&[]));
        for spec in COMMANDS.iter().filter(|spec| spec.flags.contains(Flags::WRITE) && spec.name != "expire") {
            let row = rows.row(spec.name.as_bytes(), 7);
            let frees = !spec.flags.contains(Flags::DENYOOM);
            assert_eq!(row.writes == WriteClass::Frees, frees, "{}", spec.name);
        }
        assert_eq!(rows.row(b"zrange", 4).writes, WriteClass::Nothing);
    }

    #[test]
    fn a_request_has_one_row() {
        let mut table = CommandTable::new(&[]);
        let rows = Rows::add_to(&mut table);
        assert_eq!(rows.names().count(), COMMANDS.len(), "no name twice");
        for (name, count, expected) in [
            (&b"get"[..], 2, "get"),
            (b"get", 1, "refused"),
            (b"GET", 2, "unknown"),
            (b"sync140", 4, "unknown"),
            (b"zscan", 7, "zscan"),
        ] {
            assert_eq!(rows.row(name, count).spec.name, expected);
        }
        assert!(table.resp_rows().is_empty() && table.rows().iter().any(|(name, _)| name == "ssdb|qpush"));
        let auth = rows.row(b"auth", 2).spec.flags;
        assert!(auth.contains(Flags::SKIP_MONITOR | Flags::SKIP_COMMANDLOG), "its argument is a password");
    }
}
