//! FCALL, and FUNCTION.

use crate::declared_keys::{CHANGED_KEYS, CHANGES, READ_KEYS, READS, key_count_of};
use crate::functions;
use crate::killing::kill;
use crate::run;
use crate::running::Kind;
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, Flags, Locks, Run};

/// The rows that keep libraries.
pub const FAMILY: &[&CommandSpec] = &[&FUNCTION];

/// The rows that call functions.
pub const CALLS: &[&CommandSpec] = &[&FCALL, &FCALL_RO];

const fn docs(summary: &'static str, since: &'static str, complexity: &'static str) -> Docs {
    Docs { summary, since, group: "scripting", complexity, ..Docs::NONE }
}

const OF_FUNCTION: &[Argument] = &[
    Argument::string("function"),
    Argument::integer("numkeys"),
    Argument::key("key", 0).optional().repeated(),
    Argument::string("arg").optional().repeated(),
];

/// Every row of FUNCTION: what is its own follows.
const SUBCOMMAND: CommandSpec = CommandSpec {
    name: "",
    arity: 2,
    flags: Flags::NOSCRIPT,
    categories: Categories::SCRIPTING,
    keys: &[],
    locks: Locks::All,
    docs: &Docs::NONE,
    run: Run::Container(&[]),
};

const TO_ALL_SHARDS: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];

static FCALL: CommandSpec = CommandSpec {
    name: "fcall",
    arity: -3,
    flags: CHANGES,
    categories: Categories::SCRIPTING,
    keys: &[CHANGED_KEYS.noting("The function decides what it does with a key; clients may assume a change.")],
    locks: Locks::Declared,
    docs: &Docs { arguments: OF_FUNCTION, ..docs("Calls a function.", "7.0.0", "Depends on the function.") },
    run: Run::Call(|ctx| run::run_function(ctx, key_count_of, false)),
};

static FCALL_RO: CommandSpec = CommandSpec {
    name: "fcall_ro",
    arity: -3,
    flags: READS,
    categories: Categories::SCRIPTING,
    keys: &[READ_KEYS.noting("The function decides what it does with a key; clients may assume that it reads it.")],
    locks: Locks::Declared,
    docs: &Docs {
        arguments: OF_FUNCTION,
        ..docs("Calls a function that reads only.", "7.0.0", "Depends on the function.")
    },
    run: Run::Call(|ctx| run::run_function(ctx, key_count_of, true)),
};

static FUNCTION: CommandSpec = CommandSpec {
    name: "function",
    arity: -2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &docs("Holds the commands about libraries of functions.", "7.0.0", "Depends on subcommand."),
    run: Run::Container(&[&DELETE, &DUMP, &FLUSH, &HELP, &KILL, &LIST, &LOAD, &RESTORE, &STATS]),
};

static DELETE: CommandSpec = CommandSpec {
    name: "delete",
    arity: 3,
    flags: Flags::NOSCRIPT.union(Flags::WRITE).union(Flags::AUDITED).union(Flags::FREES),
    docs: &Docs {
        tips: TO_ALL_SHARDS,
        arguments: &[Argument::string("library-name")],
        ..docs("Deletes a library and its functions.", "7.0.0", "O(1)")
    },
    run: Run::Call(functions::delete),
    ..SUBCOMMAND
};

static DUMP: CommandSpec = CommandSpec {
    name: "dump",
    docs: &docs("Gives all libraries as one payload.", "7.0.0", "O(N) where N is the number of functions"),
    run: Run::Call(functions::dump),
    ..SUBCOMMAND
};

static FLUSH: CommandSpec = CommandSpec {
    name: "flush",
    arity: -2,
    flags: Flags::NOSCRIPT.union(Flags::WRITE).union(Flags::AUDITED),
    docs: &Docs {
        tips: TO_ALL_SHARDS,
        arguments: &[Argument::one_of(
            "flush-type",
            &[Argument::word("async", "ASYNC"), Argument::word("sync", "SYNC")],
        )
        .optional()],
        ..docs("Deletes all libraries.", "7.0.0", "O(N) where N is the number of functions deleted")
    },
    run: Run::Call(functions::flush),
    ..SUBCOMMAND
};

static HELP: CommandSpec = CommandSpec {
    name: "help",
    flags: Flags::LOADING.union(Flags::STALE),
    locks: Locks::None,
    docs: &docs("Lists the subcommands.", "7.0.0", "O(1)"),
    run: Run::Call(|ctx| {
        ctx.reply.array(HELP_LINES.len());
        HELP_LINES.iter().for_each(|line| ctx.reply.simple(line));
        Ok(())
    }),
    ..SUBCOMMAND
};

const HELP_LINES: [&str; 21] = [
    "FUNCTION <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DELETE <library-name>",
    "    Delete a library.",
    "DUMP",
    "    Give all libraries as a payload for FUNCTION RESTORE.",
    "FLUSH [ASYNC|SYNC]",
    "    Delete all libraries.",
    "KILL",
    "    End the running function, if it has changed nothing.",
    "LIST [LIBRARYNAME <pattern>] [WITHCODE]",
    "    Describe all libraries, or those whose names match.",
    "LOAD [REPLACE] <code>",
    "    Create a library. Its first line is #!lua name=<library-name>.",
    "RESTORE <payload> [FLUSH|APPEND|REPLACE]",
    "    Create the libraries of a payload: in place of all others (FLUSH), if no name",
    "    is taken (APPEND, the default), or in place of those with the same names",
    "    (REPLACE).",
    "STATS",
    "    Describe the running function, and count libraries and functions.",
    "HELP",
    "    Print this help.",
];

static KILL: CommandSpec = CommandSpec {
    name: "kill",
    flags: Flags::NOSCRIPT.union(Flags::ALLOW_BUSY),
    locks: Locks::None,
    docs: &Docs {
        tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
        ..docs("Ends the running function.", "7.0.0", "O(1)")
    },
    run: Run::Call(|ctx| kill(ctx, Kind::Function)),
    ..SUBCOMMAND
};

static LIST: CommandSpec = CommandSpec {
    name: "list",
    arity: -2,
    docs: &Docs {
        tips: &["nondeterministic_output_order"],
        arguments: &[
            Argument::string("library-name-pattern").after("LIBRARYNAME").optional(),
            Argument::word("withcode", "WITHCODE").optional(),
        ],
        ..docs("Describes libraries.", "7.0.0", "O(N) where N is the number of functions")
    },
    run: Run::Call(functions::list),
    ..SUBCOMMAND
};

static LOAD: CommandSpec = CommandSpec {
    name: "load",
    arity: -3,
    flags: Flags::NOSCRIPT.union(Flags::WRITE).union(Flags::DENYOOM).union(Flags::AUDITED),
    docs: &Docs {
        tips: TO_ALL_SHARDS,
        arguments: &[Argument::word("replace", "REPLACE").optional(), Argument::string("function-code")],
        ..docs("Creates a library.", "7.0.0", "O(1), without the compilation")
    },
    run: Run::Call(functions::load),
    ..SUBCOMMAND
};

static RESTORE: CommandSpec = CommandSpec {
    name: "restore",
    arity: -3,
    flags: Flags::NOSCRIPT.union(Flags::WRITE).union(Flags::DENYOOM).union(Flags::AUDITED),
    docs: &Docs {
        tips: TO_ALL_SHARDS,
        arguments: &[
            Argument::string("serialized-value"),
            Argument::one_of(
                "policy",
                &[
                    Argument::word("flush", "FLUSH"),
                    Argument::word("append", "APPEND"),
                    Argument::word("replace", "REPLACE"),
                ],
            )
            .optional(),
        ],
        ..docs("Creates the libraries of a payload.", "7.0.0", "O(N) where N is the number of functions on the payload")
    },
    run: Run::Call(functions::restore),
    ..SUBCOMMAND
};

static STATS: CommandSpec = CommandSpec {
    name: "stats",
    flags: Flags::NOSCRIPT.union(Flags::ALLOW_BUSY),
    locks: Locks::None,
    docs: &Docs {
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        ..docs("Describes the running function, and counts libraries.", "7.0.0", "O(1)")
    },
    run: Run::Call(functions::stats),
    ..SUBCOMMAND
};
