//! The older searches in an index of places: GEORADIUS and its relatives.

use super::geo::{READ_KEY, UNIT, is_word};
use super::geo_search::{Form, ORDER, WITHCOORD, WITHDIST, WITHHASH, run};
use crate::spec::{Argument, Docs, Keyword};
use crate::{Args, Categories, CommandSpec, Flags, KeyFlags, KeySpec, Locks, Run};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&GEORADIUS, &GEORADIUS_RO, &GEORADIUSBYMEMBER, &GEORADIUSBYMEMBER_RO];

const COMPLEXITY: &str = "O(N+log(M)) where N is the number of elements inside the bounding box of the circular area \
                          delimited by center and radius and M is the number of items inside the index.";

const STORE_FLAGS: KeyFlags = KeyFlags::OW.union(KeyFlags::UPDATE);

/// The word before the key to store at: the last one, if there are several.
fn store_word(args: &Args<'_>) -> Option<usize> {
    let (mut at, mut found) = (5usize, None);
    while at.saturating_add(1) < args.len() {
        if is_word(*args, at, "store") || is_word(*args, at, "storedist") {
            found = Some(at);
            at = at.saturating_add(1);
        }
        at = at.saturating_add(1);
    }
    found
}

const fn stored(keyword: &'static Keyword) -> KeySpec {
    KeySpec::behind(keyword, STORE_FLAGS).varying(|_| STORE_FLAGS)
}

const fn store(from: i32) -> Keyword {
    let find = |args: &Args<'_>| store_word(args).filter(|at| is_word(*args, *at, "store"));
    Keyword { word: "STORE", from, is_optional: true, find }
}

const fn store_distance(from: i32) -> Keyword {
    let find = |args: &Args<'_>| store_word(args).filter(|at| is_word(*args, *at, "storedist"));
    Keyword { word: "STOREDIST", from, is_optional: true, find }
}

static STORE: Keyword = store(6);
static STOREDIST: Keyword = store_distance(6);
static MEMBER_STORE: Keyword = store(5);
static MEMBER_STOREDIST: Keyword = store_distance(5);

const STORE_ARGUMENT: Argument = Argument::one_of(
    "store",
    &[
        Argument::key("storekey", 1).displayed("key").after("STORE"),
        Argument::key("storedistkey", 2).displayed("key").after("STOREDIST"),
    ],
);

const ANY: Argument = Argument::word("any", "ANY");
const COUNT: Argument = Argument::block("count-block", &[Argument::integer("count").after("COUNT"), ANY.optional()]);
const COUNT_SINCE: Argument =
    Argument::block("count-block", &[Argument::integer("count").after("COUNT"), ANY.since("6.2.0").optional()]);

const HISTORY: &[(&str, &str)] = &[("6.2.0", "`COUNT` takes `ANY`."), ("7.0.0", "Takes units in capitals.")];

static GEORADIUS: CommandSpec = CommandSpec {
    name: "georadius",
    arity: -6,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
    categories: Categories::GEO,
    keys: &[READ_KEY, stored(&STORE), stored(&STOREDIST)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the members of an index within a distance of a place, or stores them.",
        since: "3.2.0",
        group: "geo",
        complexity: COMPLEXITY,
        history: HISTORY,
        arguments: &[
            Argument::key("key", 0),
            Argument::double("longitude"),
            Argument::double("latitude"),
            Argument::double("radius"),
            UNIT,
            WITHCOORD.optional(),
            WITHDIST.optional(),
            WITHHASH.optional(),
            COUNT_SINCE.optional(),
            ORDER.optional(),
            STORE_ARGUMENT.optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| run(ctx, Form::Around { may_store: true })),
};

static GEORADIUS_RO: CommandSpec = CommandSpec {
    name: "georadius_ro",
    arity: -6,
    flags: Flags::READONLY,
    categories: Categories::GEO,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the members of an index within a distance of a place.",
        since: "3.2.10",
        group: "geo",
        complexity: COMPLEXITY,
        history: HISTORY,
        arguments: &[
            Argument::key("key", 0),
            Argument::double("longitude"),
            Argument::double("latitude"),
            Argument::double("radius"),
            UNIT,
            WITHCOORD.optional(),
            WITHDIST.optional(),
            WITHHASH.optional(),
            COUNT_SINCE.optional(),
            ORDER.optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| run(ctx, Form::Around { may_store: false })),
};

static GEORADIUSBYMEMBER: CommandSpec = CommandSpec {
    name: "georadiusbymember",
    arity: -5,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
    categories: Categories::GEO,
    keys: &[READ_KEY, stored(&MEMBER_STORE), stored(&MEMBER_STOREDIST)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the members of an index within a distance of a member, or stores them.",
        since: "3.2.0",
        group: "geo",
        complexity: COMPLEXITY,
        history: HISTORY,
        arguments: &[
            Argument::key("key", 0),
            Argument::string("member"),
            Argument::double("radius"),
            UNIT,
            WITHCOORD.optional(),
            WITHDIST.optional(),
            WITHHASH.optional(),
            COUNT.optional(),
            ORDER.optional(),
            STORE_ARGUMENT.optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| run(ctx, Form::AroundMember { may_store: true })),
};

static GEORADIUSBYMEMBER_RO: CommandSpec = CommandSpec {
    name: "georadiusbymember_ro",
    arity: -5,
    flags: Flags::READONLY,
    categories: Categories::GEO,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the members of an index within a distance of a member.",
        since: "3.2.10",
        group: "geo",
        complexity: COMPLEXITY,
        history: HISTORY,
        arguments: &[
            Argument::key("key", 0),
            Argument::string("member"),
            Argument::double("radius"),
            UNIT,
            WITHCOORD.optional(),
            WITHDIST.optional(),
            WITHHASH.optional(),
            COUNT.optional(),
            ORDER.optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| run(ctx, Form::AroundMember { may_store: false })),
};
