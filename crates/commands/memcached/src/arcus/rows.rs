//! The rows of the collection commands.

use super::{
    attributes, cluster, command_lines, config, dump, help, list, long_queries, map, pipe, prefix, scan, set, tree,
    tree_many,
};
use crate::rows::{ALWAYS, CHANGE, FAST_WRITE, FOR_ANYBODY, GROWING_WRITE, READ, keyed, keyless};
use crate::service;
use command::spec::{Begin, Find};
use command::{Categories, CommandSpec, Flags, Handler, KeyFlags, KeySpec, Locks, Run};
use proto::memcached::Arcus;

/// The place of a command in [`COMMANDS`].
#[inline]
pub const fn place(command: Arcus) -> usize {
    command as usize
}

const fn of(categories: Categories, spec: CommandSpec) -> CommandSpec {
    CommandSpec { categories, ..spec }
}

const fn reading(name: &'static str, categories: Categories, run: Handler) -> CommandSpec {
    of(categories, keyed(name, Flags::READONLY.union(Flags::FAST), READ, Run::Call(run)))
}

const fn growing(name: &'static str, categories: Categories, run: Handler) -> CommandSpec {
    of(categories, keyed(name, GROWING_WRITE, CHANGE, Run::Call(run)))
}

/// Also `get`, which can delete.
const fn writing(name: &'static str, categories: Categories, run: Handler) -> CommandSpec {
    of(categories, keyed(name, FAST_WRITE, CHANGE, Run::Call(run)))
}

/// A number of keys, and then the keys.
const MANY: &[KeySpec] = &[KeySpec {
    begin: Begin::Index(1),
    find: Find::Count { count: 0, first: 1, step: 1 },
    ..KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))
}];

const fn merging(name: &'static str, categories: Categories, run: Handler) -> CommandSpec {
    of(categories, keyed(name, Flags::READONLY, MANY, Run::Call(run)))
}

/// For operators: with the rights of CONFIG SET.
const fn administrative(name: &'static str, run: Handler) -> CommandSpec {
    of(Categories::DANGEROUS, keyless(name, ALWAYS.union(Flags::ADMIN), Locks::None, run))
}

/// Every command at its [`place`].
pub static COMMANDS: [(Arcus, &CommandSpec); Arcus::ALL.len()] = {
    const LIST: Categories = Categories::LIST;
    const SET: Categories = Categories::SET;
    const MAP: Categories = Categories::HASH;
    const ANY: Categories = Categories::KEYSPACE;
    const TREE: Categories = Categories::SORTED_SET;
    static PIPE_BEGIN: CommandSpec = keyless("pipe", FOR_ANYBODY, Locks::None, pipe::begin);
    static PIPE_END: CommandSpec = keyless("pipe", FOR_ANYBODY, Locks::None, pipe::end);
    static GETATTR: CommandSpec = reading("getattr", ANY, attributes::get);
    static SETATTR: CommandSpec = writing("setattr", ANY, attributes::set);
    static LOP_CREATE: CommandSpec = growing("lop_create", LIST, list::create);
    static LOP_INSERT: CommandSpec = growing("lop_insert", LIST, list::insert);
    static LOP_DELETE: CommandSpec = writing("lop_delete", LIST, list::delete);
    static LOP_GET: CommandSpec = writing("lop_get", LIST, list::get);
    static SOP_CREATE: CommandSpec = growing("sop_create", SET, set::create);
    static SOP_INSERT: CommandSpec = growing("sop_insert", SET, set::insert);
    static SOP_DELETE: CommandSpec = writing("sop_delete", SET, set::delete);
    static SOP_EXIST: CommandSpec = reading("sop_exist", SET, set::exist);
    static SOP_GET: CommandSpec = writing("sop_get", SET, set::get);
    static MOP_CREATE: CommandSpec = growing("mop_create", MAP, map::create);
    static MOP_INSERT: CommandSpec = growing("mop_insert", MAP, map::insert);
    static MOP_UPSERT: CommandSpec = growing("mop_upsert", MAP, map::upsert);
    static MOP_UPDATE: CommandSpec = growing("mop_update", MAP, map::update);
    static MOP_DELETE: CommandSpec = writing("mop_delete", MAP, map::delete);
    static MOP_GET: CommandSpec = writing("mop_get", MAP, map::get);
    static BOP_CREATE: CommandSpec = growing("bop_create", TREE, tree::create);
    static BOP_INSERT: CommandSpec = growing("bop_insert", TREE, tree::insert);
    static BOP_UPSERT: CommandSpec = growing("bop_upsert", TREE, tree::upsert);
    static BOP_INSERT_GETRIM: CommandSpec = growing("bop_insert", TREE, tree::insert_getrim);
    static BOP_UPSERT_GETRIM: CommandSpec = growing("bop_upsert", TREE, tree::upsert_getrim);
    static BOP_UPDATE: CommandSpec = growing("bop_update", TREE, tree::update);
    static BOP_UPDATE_EFLAG: CommandSpec = growing("bop_update", TREE, tree::update_eflag);
    static BOP_DELETE: CommandSpec = writing("bop_delete", TREE, tree::delete);
    static BOP_GET: CommandSpec = writing("bop_get", TREE, tree::get);
    static BOP_COUNT: CommandSpec = reading("bop_count", TREE, tree::count);
    static BOP_INCR: CommandSpec = growing("bop_incr", TREE, tree::incr);
    static BOP_DECR: CommandSpec = growing("bop_decr", TREE, tree::decr);
    static BOP_POSITION: CommandSpec = reading("bop_position", TREE, tree::position);
    static BOP_GBP: CommandSpec = reading("bop_gbp", TREE, tree::get_by_position);
    static BOP_PWG: CommandSpec = reading("bop_pwg", TREE, tree::position_with_get);
    static SCAN_KEY: CommandSpec = of(ANY, keyless("scan_key", Flags::READONLY, Locks::Cursor(2), scan::keys));
    static SCAN_PREFIX: CommandSpec = of(ANY, keyless("scan_prefix", Flags::READONLY, Locks::None, scan::prefixes));
    static HELP: CommandSpec = keyless("help", ALWAYS.union(Flags::NO_RIGHT), Locks::None, help::help);
    // The data of a login is a password.
    const SECRET: Flags = FOR_ANYBODY.union(Flags::SKIP_MONITOR).union(Flags::SKIP_COMMANDLOG);
    static SASL_MECH: CommandSpec = keyless("sasl_mech", FOR_ANYBODY, Locks::None, service::sasl_mechanisms);
    static SASL_AUTH: CommandSpec = keyless("sasl", SECRET, Locks::None, service::sasl_auth);
    static SHUTDOWN: CommandSpec = administrative("shutdown", service::shutdown);
    static READY: CommandSpec = keyless("ready", ALWAYS.union(Flags::NO_RIGHT), Locks::None, cluster::ready);
    static ENSEMBLE: CommandSpec = administrative("zkensemble", cluster::ensemble);
    static CLUSTER: CommandSpec = administrative("cluster", cluster::join);
    static SCRUB: CommandSpec = administrative("scrub", cluster::scrub);
    static CONFIG: CommandSpec = administrative("config", config::config);
    static DUMP: CommandSpec = administrative("dump", dump::dump);
    static COMMAND_LOG: CommandSpec = administrative("cmdlog", command_lines::command_log);
    static LONG_QUERIES: CommandSpec = administrative("lqdetect", long_queries::long_queries);
    static FLUSH_PREFIX: CommandSpec =
        of(ANY.union(Categories::DANGEROUS), keyless("flush_prefix", Flags::WRITE, Locks::None, prefix::flush));
    static BOP_MGET: CommandSpec = merging("bop_mget", TREE, tree_many::get_each);
    static BOP_SMGET: CommandSpec = merging("bop_smget", TREE, tree_many::get_merged);
    [
        (Arcus::PipeBegin, &PIPE_BEGIN),
        (Arcus::PipeEnd, &PIPE_END),
        (Arcus::GetAttr, &GETATTR),
        (Arcus::SetAttr, &SETATTR),
        (Arcus::LopCreate, &LOP_CREATE),
        (Arcus::LopInsert, &LOP_INSERT),
        (Arcus::LopDelete, &LOP_DELETE),
        (Arcus::LopGet, &LOP_GET),
        (Arcus::SopCreate, &SOP_CREATE),
        (Arcus::SopInsert, &SOP_INSERT),
        (Arcus::SopDelete, &SOP_DELETE),
        (Arcus::SopExist, &SOP_EXIST),
        (Arcus::SopGet, &SOP_GET),
        (Arcus::MopCreate, &MOP_CREATE),
        (Arcus::MopInsert, &MOP_INSERT),
        (Arcus::MopUpsert, &MOP_UPSERT),
        (Arcus::MopUpdate, &MOP_UPDATE),
        (Arcus::MopDelete, &MOP_DELETE),
        (Arcus::MopGet, &MOP_GET),
        (Arcus::BopCreate, &BOP_CREATE),
        (Arcus::BopInsert, &BOP_INSERT),
        (Arcus::BopUpsert, &BOP_UPSERT),
        (Arcus::BopInsertGetrim, &BOP_INSERT_GETRIM),
        (Arcus::BopUpsertGetrim, &BOP_UPSERT_GETRIM),
        (Arcus::BopUpdate, &BOP_UPDATE),
        (Arcus::BopUpdateEflag, &BOP_UPDATE_EFLAG),
        (Arcus::BopDelete, &BOP_DELETE),
        (Arcus::BopGet, &BOP_GET),
        (Arcus::BopCount, &BOP_COUNT),
        (Arcus::BopIncr, &BOP_INCR),
        (Arcus::BopDecr, &BOP_DECR),
        (Arcus::BopPosition, &BOP_POSITION),
        (Arcus::BopGbp, &BOP_GBP),
        (Arcus::BopPwg, &BOP_PWG),
        (Arcus::BopMget, &BOP_MGET),
        (Arcus::BopSmget, &BOP_SMGET),
        (Arcus::ScanKey, &SCAN_KEY),
        (Arcus::Ready, &READY),
        (Arcus::Ensemble, &ENSEMBLE),
        (Arcus::Cluster, &CLUSTER),
        (Arcus::Scrub, &SCRUB),
        (Arcus::Config, &CONFIG),
        (Arcus::Dump, &DUMP),
        (Arcus::CommandLog, &COMMAND_LOG),
        (Arcus::LongQueries, &LONG_QUERIES),
        (Arcus::FlushPrefix, &FLUSH_PREFIX),
        (Arcus::ScanPrefix, &SCAN_PREFIX),
        (Arcus::Help, &HELP),
        (Arcus::SaslMech, &SASL_MECH),
        (Arcus::SaslAuth, &SASL_AUTH),
        (Arcus::Shutdown, &SHUTDOWN),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_its_row() {
        for (index, ((command, _), expected)) in COMMANDS.iter().zip(Arcus::ALL).enumerate() {
            assert_eq!((place(*command), *command), (index, expected));
        }
    }
}
