//! EVAL and its relatives, and SCRIPT.

use crate::cache::{self, NO_SCRIPT, Script, Scripts};
use crate::declared_keys::{CHANGED_KEYS, CHANGES, READ_KEYS, READS, key_count};
use crate::function_rows;
use crate::killing::kill;
use crate::run;
use crate::running::Kind;
use crate::shebang;
use command::spec::{Argument, Docs};
use command::{Args, Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop};
use engine::Libraries;
use std::sync::Arc;

/// The rows of scripts and functions.
pub const FAMILIES: &[&[&CommandSpec]] =
    &[&[&EVAL, &EVAL_RO, &EVALSHA, &EVALSHA_RO, &SCRIPT], function_rows::CALLS, function_rows::FAMILY];

/// Documentation that all rows of this family share.
const fn docs(summary: &'static str, since: &'static str, complexity: &'static str) -> Docs {
    Docs { summary, since, group: "scripting", complexity, ..Docs::NONE }
}

const OF_TEXT: &[Argument] = &[
    Argument::string("script"),
    Argument::integer("numkeys"),
    Argument::key("key", 0).optional().repeated(),
    Argument::string("arg").optional().repeated(),
];

const OF_DIGEST: &[Argument] = &[
    Argument::string("sha1"),
    Argument::integer("numkeys"),
    Argument::key("key", 0).optional().repeated(),
    Argument::string("arg").optional().repeated(),
];

static EVAL: CommandSpec = CommandSpec {
    name: "eval",
    arity: -3,
    flags: CHANGES,
    categories: Categories::SCRIPTING,
    keys: &[CHANGED_KEYS.noting("The script decides what it does with a key; clients may assume that it changes it.")],
    locks: Locks::Declared,
    docs: &Docs { arguments: OF_TEXT, ..docs("Runs a Lua script.", "2.6.0", "Depends on the script.") },
    run: Run::Call(|ctx| eval(ctx, false)),
};

static EVAL_RO: CommandSpec = CommandSpec {
    name: "eval_ro",
    arity: -3,
    flags: READS,
    categories: Categories::SCRIPTING,
    keys: &[READ_KEYS.noting("The script decides what it does with a key; clients may assume that it reads it.")],
    locks: Locks::Declared,
    docs: &Docs { arguments: OF_TEXT, ..docs("Runs a Lua script that reads only.", "7.0.0", "Depends on the script.") },
    run: Run::Call(|ctx| eval(ctx, true)),
};

static EVALSHA: CommandSpec = CommandSpec {
    name: "evalsha",
    arity: -3,
    flags: CHANGES,
    categories: Categories::SCRIPTING,
    keys: &[CHANGED_KEYS],
    locks: Locks::Declared,
    docs: &Docs { arguments: OF_DIGEST, ..docs("Runs a cached Lua script.", "2.6.0", "Depends on the script.") },
    run: Run::Call(|ctx| eval_digest(ctx, false)),
};

static EVALSHA_RO: CommandSpec = CommandSpec {
    name: "evalsha_ro",
    arity: -3,
    flags: READS,
    categories: Categories::SCRIPTING,
    keys: &[READ_KEYS],
    locks: Locks::Declared,
    docs: &Docs {
        arguments: OF_DIGEST,
        ..docs("Runs a cached Lua script that reads only.", "7.0.0", "Depends on the script.")
    },
    run: Run::Call(|ctx| eval_digest(ctx, true)),
};

static SCRIPT: CommandSpec = CommandSpec {
    name: "script",
    arity: -2,
    flags: Flags::empty(),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &docs("Holds the commands about the cache of scripts.", "2.6.0", "Depends on subcommand."),
    run: Run::Container(&[
        &SCRIPT_DEBUG,
        &SCRIPT_EXISTS,
        &SCRIPT_FLUSH,
        &SCRIPT_HELP,
        &SCRIPT_KILL,
        &SCRIPT_LOAD,
        &SCRIPT_SHOW,
    ]),
};

static SCRIPT_DEBUG: CommandSpec = CommandSpec {
    name: "debug",
    arity: -3,
    flags: Flags::NOSCRIPT,
    categories: Categories::SCRIPTING,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        arguments: &[
            Argument::one_of(
                "mode",
                &[Argument::word("yes", "YES"), Argument::word("sync", "SYNC"), Argument::word("no", "NO")],
            ),
            Argument::string("engine").since("9.1.0").optional(),
        ],
        ..docs("Switches the debugger of scripts, which this server does not have.", "3.2.0", "O(1)")
    },
    run: Run::Call(|ctx| match ctx.is_word(2, "no") {
        true => {
            ctx.reply.ok();
            Ok(())
        }
        false => {
            Err(Stop::error("ERR scripts cannot be debugged on this server; use redis.log or a reply to look inside"))
        }
    }),
};

static SCRIPT_EXISTS: CommandSpec = CommandSpec {
    name: "exists",
    arity: -3,
    flags: Flags::NOSCRIPT.union(Flags::STALE),
    categories: Categories::SCRIPTING,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        tips: &["request_policy:all_shards", "response_policy:agg_logical_and"],
        arguments: &[Argument::string("sha1").repeated()],
        ..docs("Tells which scripts are cached.", "2.6.0", "O(N) with N being the number of scripts to check.")
    },
    run: Run::Call(|ctx| {
        ctx.reply.array(ctx.args.len().saturating_sub(2));
        for sha in ctx.args.from(2) {
            let exists = ctx.host.part::<crate::Needed, Arc<Scripts>>().find(sha).is_some();
            ctx.reply.integer(i64::from(exists));
        }
        Ok(())
    }),
};

static SCRIPT_FLUSH: CommandSpec = CommandSpec {
    name: "flush",
    arity: -2,
    flags: Flags::NOSCRIPT.union(Flags::STALE).union(Flags::AUDITED),
    categories: Categories::SCRIPTING,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        history: &[("6.2.0", "Takes `ASYNC` and `SYNC`.")],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        arguments: &[Argument::one_of(
            "flush-type",
            &[Argument::word("async", "ASYNC"), Argument::word("sync", "SYNC")],
        )
        .since("6.2.0")
        .optional()],
        ..docs("Empties the cache of scripts.", "2.6.0", "O(N) with N being the number of scripts in cache")
    },
    run: Run::Call(|ctx| {
        let is_known =
            ctx.args.len() == 2 || ctx.args.len() == 3 && (ctx.is_word(2, "async") || ctx.is_word(2, "sync"));
        if !is_known {
            return Err(Stop::error("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
        }
        ctx.host.part::<crate::Needed, Arc<Scripts>>().flush();
        ctx.reply.ok();
        Ok(())
    }),
};

static SCRIPT_HELP: CommandSpec = CommandSpec {
    name: "help",
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    categories: Categories::SCRIPTING,
    keys: &[],
    locks: Locks::None,
    docs: &docs("Lists the subcommands.", "5.0.0", "O(1)"),
    run: Run::Call(|ctx| {
        ctx.reply.array(HELP.len());
        HELP.iter().for_each(|line| ctx.reply.simple(line));
        Ok(())
    }),
};

const HELP: [&str; 15] = [
    "SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DEBUG (YES|SYNC|NO)",
    "    Refused unless it is NO: there is no debugger.",
    "EXISTS <sha1> [<sha1> ...]",
    "    Tell which scripts are cached.",
    "FLUSH [ASYNC|SYNC]",
    "    Empty the cache of scripts.",
    "KILL",
    "    End the running script, if it has changed nothing.",
    "LOAD <script>",
    "    Cache a script without running it.",
    "SHOW <sha1>",
    "    Give the text of a cached script.",
    "HELP",
    "    Print this help.",
];

static SCRIPT_KILL: CommandSpec = CommandSpec {
    name: "kill",
    arity: 2,
    flags: Flags::NOSCRIPT.union(Flags::ALLOW_BUSY),
    categories: Categories::SCRIPTING,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
        ..docs("Ends the running script.", "2.6.0", "O(1)")
    },
    run: Run::Call(|ctx| kill(ctx, Kind::Script)),
};

static SCRIPT_LOAD: CommandSpec = CommandSpec {
    name: "load",
    arity: 3,
    flags: Flags::NOSCRIPT.union(Flags::STALE),
    categories: Categories::SCRIPTING,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        arguments: &[Argument::string("script")],
        ..docs("Caches a script.", "2.6.0", "O(N) with N being the length in bytes of the script body.")
    },
    run: Run::Call(|ctx| {
        let script = known(ctx, false)?;
        ctx.reply.bulk(&script.sha);
        Ok(())
    }),
};

static SCRIPT_SHOW: CommandSpec = CommandSpec {
    name: "show",
    arity: 3,
    flags: Flags::NOSCRIPT.union(Flags::STALE),
    categories: Categories::SCRIPTING,
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        arguments: &[Argument::string("sha1")],
        ..docs("Gives the text of a cached script.", "8.0.0", "O(1).")
    },
    run: Run::Call(|ctx| {
        let script = ctx.host.part::<crate::Needed, Arc<Scripts>>().find(&ctx.args[2]).ok_or(NO_SCRIPT)?;
        ctx.reply.bulk(&script.text);
        Ok(())
    }),
};

/// The script whose text a request brings, compiled and cached.
fn known(ctx: &Ctx<'_>, is_evaluated: bool) -> Result<Arc<Script>, Stop> {
    let text = &ctx.args[if is_evaluated { 1 } else { 2 }];
    let scripts = ctx.host.part::<crate::Needed, Arc<Scripts>>();
    if let Some(script) = scripts.find(&cache::sha1_hex(text)) {
        scripts.add(script.clone(), is_evaluated);
        return Ok(script);
    }
    let script = Arc::new(cache::script(text)?);
    run::check(ctx, &script)?;
    scripts.add(script.clone(), is_evaluated);
    Ok(script)
}

/// What a request of scripts and functions may do: what they declare, or else what its row says.
#[cold]
pub fn flags_of(
    scripts: &Arc<Scripts>,
    libraries: impl FnOnce() -> Arc<Libraries>,
    row: &CommandSpec,
    args: &Args<'_>,
) -> Flags {
    let Some(named) = args.bytes(1) else { return row.flags };
    let declared = match row.name {
        "eval" | "eval_ro" => shebang::read(named).ok().map(|(flags, _)| flags),
        "evalsha" | "evalsha_ro" => scripts.find(named).map(|script| script.flags),
        _ => run::flags_of_function(scripts, &libraries(), named),
    };
    declared.map_or(row.flags, |declared| declared.of_request(row.flags))
}

fn eval(ctx: &mut Ctx<'_>, is_read_only: bool) -> Result<(), Stop> {
    let key_count = key_count(ctx)?;
    let script = known(ctx, true)?;
    run::run(ctx, &script, key_count, is_read_only)
}

fn eval_digest(ctx: &mut Ctx<'_>, is_read_only: bool) -> Result<(), Stop> {
    if ctx.args[1].len() != 40 {
        return Err(NO_SCRIPT);
    }
    let key_count = key_count(ctx)?;
    run::run_digest(ctx, key_count, is_read_only)
}
