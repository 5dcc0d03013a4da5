//! The rows of memcached's commands. Every fact about a command stands in its row, as with those of Redis.

use crate::{arcus, delta, details, get, meta, refused, service, stats, storage, touch};
use command::spec::{Answer, Docs};
use command::{Categories, CommandSpec, CommandTable, Flags, Handler, KeyFlags, KeySpec, Locks, Row, Run};
use proto::memcached::{Command, Refusal};

/// The rows in a server's table.
#[derive(Clone)]
pub struct Rows {
    rows: Vec<Row>,
    /// Those of commands that get and store items, for `stats detail`.
    detailed: Vec<(Command, Row)>,
    login: Row,
}

/// What decides which row of a command a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The usual one.
    Plain,
    /// The one that notes requests by the prefixes of their keys.
    Detailed,
    /// The client has yet to log in.
    LoggedOut,
}

impl Rows {
    /// Adds the commands to the table, under `memcached|name`.
    ///
    /// # Panics
    /// When the table is full.
    pub fn add_to(table: &mut CommandTable) -> Self {
        let collections = arcus::rows::COMMANDS.iter().map(|(_, spec)| *spec);
        let specs = COMMANDS.iter().map(|(_, spec)| *spec).chain(collections).chain([&LOGIN]);
        let specs: Vec<&'static CommandSpec> = specs.collect();
        let mut rows = table.add_dialect("memcached", &specs);
        let login = rows.pop().expect("as many rows as commands");
        let specs: Vec<&'static CommandSpec> = DETAILED.iter().map(|(_, spec)| *spec).collect();
        let detailed =
            DETAILED.iter().map(|(command, _)| *command).zip(table.add_dialect("memcached", &specs)).collect();
        Self { rows, detailed, login }
    }

    /// The row of a command. What a client sends to log in is a `set`, so it depends on whether the client has done so.
    #[inline]
    pub fn row(&self, command: Command, mode: Mode) -> Row {
        if mode != Mode::Plain
            && let Some(row) = self.special_row(command, mode)
        {
            return row;
        }
        let index = place(command);
        self.rows.get(index).copied().unwrap_or(self.login)
    }

    #[cold]
    fn special_row(&self, command: Command, mode: Mode) -> Option<Row> {
        match mode {
            Mode::LoggedOut => (command == Command::Set).then_some(self.login),
            Mode::Plain | Mode::Detailed => self.detailed.iter().find(|(of, _)| *of == command).map(|(_, row)| *row),
        }
    }
}

/// The place of a command in [`COMMANDS`].
#[inline]
const fn place(command: Command) -> usize {
    match command {
        Command::Get => 0,
        Command::GetMore => 1,
        Command::Gets => 2,
        Command::GetsMore => 3,
        Command::Gat => 4,
        Command::GatMore => 5,
        Command::Gats => 6,
        Command::GatsMore => 7,
        Command::GetNothing => 8,
        Command::Set => 9,
        Command::Add => 10,
        Command::Replace => 11,
        Command::Append => 12,
        Command::Prepend => 13,
        Command::Cas => 14,
        Command::SetTooLarge => 15,
        Command::Delete => 16,
        Command::Incr => 17,
        Command::Decr => 18,
        Command::Touch => 19,
        Command::FlushAll => 20,
        Command::Verbosity => 21,
        Command::Version => 22,
        Command::Stats => 23,
        Command::MetaNoop => 24,
        Command::Quit => 25,
        Command::Refused(Refusal::Unknown) => 26,
        Command::Refused(Refusal::Format) => 27,
        Command::Refused(Refusal::DeleteFormat) => 28,
        Command::Refused(Refusal::Data) => 29,
        Command::Refused(Refusal::TooLarge) => 30,
        Command::Refused(Refusal::Expiration) => 31,
        Command::Refused(Refusal::Delta) => 32,
        Command::Refused(Refusal::FlagCount) => 33,
        Command::Refused(Refusal::Key) => 34,
        Command::MetaGet => 35,
        Command::MetaSet => 36,
        Command::MetaDelete => 37,
        Command::MetaArithmetic => 38,
        Command::MetaDebug => 39,
        Command::Refused(Refusal::ElementTooLarge) => 40,
        Command::Refused(Refusal::FieldTooLong) => 41,
        Command::Refused(Refusal::BadValue) => 42,
        Command::Refused(Refusal::TooManyMembers) => 43,
        Command::Refused(Refusal::TooManyNeighbours) => 44,
        Command::MemoryLimit => 45,
        Command::Arcus(command) => COUNT.saturating_add(arcus::rows::place(command)),
    }
}

const COUNT: usize = 46;

/// A row with one key, after the name.
pub const fn keyed(name: &'static str, flags: Flags, keys: &'static [KeySpec], run: Run) -> CommandSpec {
    CommandSpec {
        name,
        arity: -2,
        flags,
        categories: Categories::STRING,
        keys,
        locks: Locks::Keys,
        docs: &Docs::NONE,
        run,
    }
}

/// A row without keys.
pub const fn keyless(name: &'static str, flags: Flags, locks: Locks, run: Handler) -> CommandSpec {
    CommandSpec {
        name,
        arity: -1,
        flags,
        categories: Categories::CONNECTION,
        keys: &[],
        locks,
        docs: &Docs::NONE,
        run: Run::Call(run),
    }
}

pub const READ: &[KeySpec] = &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))];
pub const CHANGE: &[KeySpec] = &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))];
const REMOVE: &[KeySpec] = &[KeySpec::one(1, KeyFlags::RM.union(KeyFlags::DELETE))];
const FAST_READ: Flags = Flags::READONLY.union(Flags::FAST);
pub const FAST_WRITE: Flags = Flags::WRITE.union(Flags::FAST);
/// `mg` only marks what it gives.
const FREEING_WRITE: Flags = FAST_WRITE.union(Flags::FREES);
pub const GROWING_WRITE: Flags = Flags::WRITE.union(Flags::FAST).union(Flags::DENYOOM);
/// About the connection: also while data is loaded.
pub const ALWAYS: Flags = Flags::LOADING.union(Flags::STALE).union(Flags::FAST);
/// Also before login.
pub const FOR_ANYBODY: Flags = ALWAYS.union(Flags::NO_AUTH);

const fn reading(name: &'static str, answer: Answer) -> CommandSpec {
    keyed(name, FAST_READ, READ, Run::Read(answer))
}

const fn writing(name: &'static str, flags: Flags, run: Handler) -> CommandSpec {
    keyed(name, flags, CHANGE, Run::Call(run))
}

/// A key before others of the same line, which has one reply.
const fn part(spec: CommandSpec) -> CommandSpec {
    CommandSpec { flags: spec.flags.union(Flags::PART), ..spec }
}

const fn refusing(refusal: Refusal) -> CommandSpec {
    // Before login the reply is that the client has to log in.
    keyless("refused", ALWAYS.union(Flags::NO_RIGHT), Locks::None, refused::handler(refusal))
}

/// Every command at its [`place`].
static COMMANDS: [(Command, &CommandSpec); COUNT] = {
    static GET: CommandSpec = reading("get", get::get);
    static GET_MORE: CommandSpec = part(reading("get", get::get_more));
    // Giving an id is no change of the data.
    static GETS: CommandSpec = keyed("gets", FAST_READ, READ, Run::Call(get::gets));
    static GETS_MORE: CommandSpec = part(keyed("gets", FAST_READ, READ, Run::Call(get::gets_more)));
    static GAT: CommandSpec = writing("gat", FAST_WRITE, touch::gat);
    static GAT_MORE: CommandSpec = part(writing("gat", FAST_WRITE, touch::gat_more));
    static GATS: CommandSpec = writing("gats", FAST_WRITE, touch::gats);
    static GATS_MORE: CommandSpec = part(writing("gats", FAST_WRITE, touch::gats_more));
    static GET_NOTHING: CommandSpec = keyless("gat", ALWAYS.union(Flags::NO_RIGHT), Locks::None, get::nothing);
    static SET: CommandSpec = writing("set", GROWING_WRITE, storage::set);
    static ADD: CommandSpec = writing("add", GROWING_WRITE, storage::add);
    static REPLACE: CommandSpec = writing("replace", GROWING_WRITE, storage::replace);
    static APPEND: CommandSpec = writing("append", GROWING_WRITE, storage::append);
    static PREPEND: CommandSpec = writing("prepend", GROWING_WRITE, storage::prepend);
    static CAS: CommandSpec = writing("cas", GROWING_WRITE, storage::cas);
    static SET_TOO_LARGE: CommandSpec = keyed("set", FAST_WRITE, REMOVE, Run::Call(storage::set_too_large));
    static DELETE: CommandSpec = keyed("delete", FREEING_WRITE, REMOVE, Run::Call(touch::delete));
    static INCR: CommandSpec = writing("incr", GROWING_WRITE, delta::incr);
    static DECR: CommandSpec = writing("decr", GROWING_WRITE, delta::decr);
    static TOUCH: CommandSpec = writing("touch", FAST_WRITE, touch::touch);
    // The rights of FLUSHDB, CONFIG SET and INFO.
    static FLUSH_ALL: CommandSpec = CommandSpec {
        categories: Categories::KEYSPACE.union(Categories::DANGEROUS),
        ..keyless("flush_all", Flags::WRITE.union(Flags::AUDITED).union(Flags::FREES), Locks::All, service::flush_all)
    };
    static VERBOSITY: CommandSpec = keyless("verbosity", ALWAYS.union(Flags::ADMIN), Locks::None, service::verbosity);
    static MEMORY_LIMIT: CommandSpec = CommandSpec {
        categories: Categories::DANGEROUS,
        ..keyless("cache_memlimit", ALWAYS.union(Flags::ADMIN), Locks::None, service::memory_limit)
    };
    static VERSION: CommandSpec = keyless("version", ALWAYS.union(Flags::NO_RIGHT), Locks::None, service::version);
    static STATS: CommandSpec =
        CommandSpec { categories: Categories::DANGEROUS, ..keyless("stats", ALWAYS, Locks::None, stats::stats) };
    static META_NOOP: CommandSpec = keyless("mn", ALWAYS.union(Flags::NO_RIGHT), Locks::None, service::meta_noop);
    static QUIT: CommandSpec = keyless("quit", FOR_ANYBODY, Locks::None, service::quit);
    static UNKNOWN: CommandSpec = refusing(Refusal::Unknown);
    static FORMAT: CommandSpec = refusing(Refusal::Format);
    static DELETE_FORMAT: CommandSpec = refusing(Refusal::DeleteFormat);
    static DATA: CommandSpec = refusing(Refusal::Data);
    static TOO_LARGE: CommandSpec = refusing(Refusal::TooLarge);
    static EXPIRATION: CommandSpec = refusing(Refusal::Expiration);
    static DELTA: CommandSpec = refusing(Refusal::Delta);
    static FLAG_COUNT: CommandSpec = refusing(Refusal::FlagCount);
    static KEY: CommandSpec = refusing(Refusal::Key);
    static ELEMENT_TOO_LARGE: CommandSpec = refusing(Refusal::ElementTooLarge);
    static FIELD_TOO_LONG: CommandSpec = refusing(Refusal::FieldTooLong);
    static BAD_VALUE: CommandSpec = refusing(Refusal::BadValue);
    static TOO_MANY_NEIGHBOURS: CommandSpec = refusing(Refusal::TooManyNeighbours);
    static TOO_MANY_MEMBERS: CommandSpec = refusing(Refusal::TooManyMembers);
    // Some flags change the item; without them, too, the first client that gets a stale item is the one to renew it.
    static META_GET: CommandSpec = writing("mg", FREEING_WRITE, meta::get);
    static META_SET: CommandSpec = writing("ms", GROWING_WRITE, meta::set);
    static META_DELETE: CommandSpec = writing("md", FREEING_WRITE, meta::delete);
    static META_ARITHMETIC: CommandSpec = writing("ma", GROWING_WRITE, meta::arithmetic);
    static META_DEBUG: CommandSpec = keyed("me", FAST_READ, READ, Run::Call(meta::debug));
    [
        (Command::Get, &GET),
        (Command::GetMore, &GET_MORE),
        (Command::Gets, &GETS),
        (Command::GetsMore, &GETS_MORE),
        (Command::Gat, &GAT),
        (Command::GatMore, &GAT_MORE),
        (Command::Gats, &GATS),
        (Command::GatsMore, &GATS_MORE),
        (Command::GetNothing, &GET_NOTHING),
        (Command::Set, &SET),
        (Command::Add, &ADD),
        (Command::Replace, &REPLACE),
        (Command::Append, &APPEND),
        (Command::Prepend, &PREPEND),
        (Command::Cas, &CAS),
        (Command::SetTooLarge, &SET_TOO_LARGE),
        (Command::Delete, &DELETE),
        (Command::Incr, &INCR),
        (Command::Decr, &DECR),
        (Command::Touch, &TOUCH),
        (Command::FlushAll, &FLUSH_ALL),
        (Command::Verbosity, &VERBOSITY),
        (Command::Version, &VERSION),
        (Command::Stats, &STATS),
        (Command::MetaNoop, &META_NOOP),
        (Command::Quit, &QUIT),
        (Command::Refused(Refusal::Unknown), &UNKNOWN),
        (Command::Refused(Refusal::Format), &FORMAT),
        (Command::Refused(Refusal::DeleteFormat), &DELETE_FORMAT),
        (Command::Refused(Refusal::Data), &DATA),
        (Command::Refused(Refusal::TooLarge), &TOO_LARGE),
        (Command::Refused(Refusal::Expiration), &EXPIRATION),
        (Command::Refused(Refusal::Delta), &DELTA),
        (Command::Refused(Refusal::FlagCount), &FLAG_COUNT),
        (Command::Refused(Refusal::Key), &KEY),
        (Command::MetaGet, &META_GET),
        (Command::MetaSet, &META_SET),
        (Command::MetaDelete, &META_DELETE),
        (Command::MetaArithmetic, &META_ARITHMETIC),
        (Command::MetaDebug, &META_DEBUG),
        (Command::Refused(Refusal::ElementTooLarge), &ELEMENT_TOO_LARGE),
        (Command::Refused(Refusal::FieldTooLong), &FIELD_TOO_LONG),
        (Command::Refused(Refusal::BadValue), &BAD_VALUE),
        (Command::Refused(Refusal::TooManyMembers), &TOO_MANY_MEMBERS),
        (Command::Refused(Refusal::TooManyNeighbours), &TOO_MANY_NEIGHBOURS),
        (Command::MemoryLimit, &MEMORY_LIMIT),
    ]
};

/// Rows in place of those above while requests are noted by the prefixes of their keys.
static DETAILED: [(Command, &CommandSpec); 20] = {
    static GET: CommandSpec = keyed("get", FAST_READ, READ, Run::Call(details::get));
    static GET_MORE: CommandSpec = part(keyed("get", FAST_READ, READ, Run::Call(details::get_more)));
    static GETS: CommandSpec = keyed("gets", FAST_READ, READ, Run::Call(details::gets));
    static GETS_MORE: CommandSpec = part(keyed("gets", FAST_READ, READ, Run::Call(details::gets_more)));
    static GAT: CommandSpec = writing("gat", FAST_WRITE, details::gat);
    static GAT_MORE: CommandSpec = part(writing("gat", FAST_WRITE, details::gat_more));
    static GATS: CommandSpec = writing("gats", FAST_WRITE, details::gats);
    static GATS_MORE: CommandSpec = part(writing("gats", FAST_WRITE, details::gats_more));
    static SET: CommandSpec = writing("set", GROWING_WRITE, details::set);
    static ADD: CommandSpec = writing("add", GROWING_WRITE, details::add);
    static REPLACE: CommandSpec = writing("replace", GROWING_WRITE, details::replace);
    static APPEND: CommandSpec = writing("append", GROWING_WRITE, details::append);
    static PREPEND: CommandSpec = writing("prepend", GROWING_WRITE, details::prepend);
    static CAS: CommandSpec = writing("cas", GROWING_WRITE, details::cas);
    static DELETE: CommandSpec = keyed("delete", FREEING_WRITE, REMOVE, Run::Call(details::delete));
    static INCR: CommandSpec = writing("incr", GROWING_WRITE, details::incr);
    static DECR: CommandSpec = writing("decr", GROWING_WRITE, details::decr);
    static META_GET: CommandSpec = writing("mg", FREEING_WRITE, details::meta_get);
    static META_SET: CommandSpec = writing("ms", GROWING_WRITE, details::meta_set);
    static META_DELETE: CommandSpec = writing("md", FREEING_WRITE, details::meta_delete);
    [
        (Command::Get, &GET),
        (Command::GetMore, &GET_MORE),
        (Command::Gets, &GETS),
        (Command::GetsMore, &GETS_MORE),
        (Command::Gat, &GAT),
        (Command::GatMore, &GAT_MORE),
        (Command::Gats, &GATS),
        (Command::GatsMore, &GATS_MORE),
        (Command::Set, &SET),
        (Command::Add, &ADD),
        (Command::Replace, &REPLACE),
        (Command::Append, &APPEND),
        (Command::Prepend, &PREPEND),
        (Command::Cas, &CAS),
        (Command::Delete, &DELETE),
        (Command::Incr, &INCR),
        (Command::Decr, &DECR),
        (Command::MetaGet, &META_GET),
        (Command::MetaSet, &META_SET),
        (Command::MetaDelete, &META_DELETE),
    ]
};

/// `set key data flags exptime` of a client that has yet to log in: the data is `user password`. MONITOR and the slow
/// log skip it, since what hides passwords knows those of RESP commands.
static LOGIN: CommandSpec =
    keyless("login", FOR_ANYBODY.union(Flags::SKIP_MONITOR).union(Flags::SKIP_COMMANDLOG), Locks::None, service::login);

#[cfg(test)]
mod tests {
    use super::*;

    /// They are let through while a full disk or memory keeps others from writing.
    #[test]
    fn commands_that_free_are_not_kept_out() {
        let rows = Rows::add_to(&mut CommandTable::new(&[]));
        for command in [Command::Delete, Command::FlushAll, Command::MetaDelete, Command::MetaGet] {
            let row = rows.row(command, Mode::Plain);
            assert_eq!(row.writes, engine::WriteClass::Frees, "{command:?}");
            assert!(!row.spec.flags.contains(Flags::DENYOOM), "{command:?}");
        }
        assert_eq!(rows.row(Command::Set, Mode::Plain).writes, engine::WriteClass::Any);
        assert_eq!(rows.row(Command::Gets, Mode::Plain).writes, engine::WriteClass::Nothing);
    }

    /// They have the keys, the rights and the statistics of those that they stand for.
    #[test]
    fn detailed_rows_differ_in_their_functions_alone() {
        let rows = Rows::add_to(&mut CommandTable::new(&[]));
        for (command, _) in DETAILED {
            let (plain, detailed) = (rows.row(command, Mode::Plain), rows.row(command, Mode::Detailed));
            assert_eq!((plain.index, plain.spec.name), (detailed.index, detailed.spec.name), "{command:?}");
            assert_eq!((plain.spec.flags, plain.writes), (detailed.spec.flags, detailed.writes), "{command:?}");
            assert_eq!(plain.first_key, detailed.first_key, "{command:?}");
        }
        assert_eq!(rows.row(Command::Touch, Mode::Detailed).spec.name, "touch");
    }

    #[test]
    fn every_command_has_its_row() {
        for (index, (command, _)) in COMMANDS.iter().enumerate() {
            assert_eq!(place(*command), index, "{command:?}");
        }
        let mut table = CommandTable::new(&[]);
        let rows = Rows::add_to(&mut table);
        assert_eq!(rows.row(Command::Prepend, Mode::Plain).spec.name, "prepend");
        let login = rows.row(Command::Set, Mode::LoggedOut).spec;
        assert_eq!(login.name, "login");
        assert!(login.flags.contains(Flags::SKIP_MONITOR | Flags::SKIP_COMMANDLOG), "its data is a password");
        assert!(table.resp_rows().is_empty() && table.rows().iter().any(|(name, _)| name == "memcached|prepend"));
    }
}
