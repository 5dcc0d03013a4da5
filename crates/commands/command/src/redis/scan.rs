//! Over all keys of a database.

use super::scan_in_order;
use super::scanning::{self, Found, ScanOptions, Scanned};
use crate::error::{self, Stop};
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, Locks, Run};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&SCAN, &KEYS, &RANDOMKEY];

static SCAN: CommandSpec = CommandSpec {
    name: "scan",
    arity: -2,
    flags: Flags::READONLY,
    categories: Categories::KEYSPACE,
    keys: &[],
    locks: Locks::Cursor(1),
    docs: &Docs {
        summary: "Walks over the keys of the database, a part at each call.",
        since: "2.8.0",
        group: "generic",
        complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection.",
        history: &[("6.0.0", "Takes `TYPE`.")],
        tips: &["nondeterministic_output", "request_policy:special", "response_policy:special"],
        arguments: &[
            Argument::integer("cursor"),
            Argument::pattern("pattern").after("MATCH").optional(),
            Argument::integer("count").after("COUNT").optional(),
            Argument::string("type").after("TYPE").since("6.0.0").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(scan),
};

fn scan(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let cursor = scanning::cursor(ctx, 1)?;
    let options = ScanOptions::parse(ctx, 2, Scanned::Keys)?;
    if let Some(step) = scan_in_order::step(ctx, cursor, &options) {
        let (found, next) = step?;
        found.reply(next, ctx.reply);
        return Ok(());
    }
    let mut found = Found::default();
    let next = types::walk::scan(ctx.ks, cursor, options.count, &mut |entry| {
        if options.wants(entry.key) && options.wants_type(entry.kind.name()) {
            found.push(entry.key);
        }
    });
    found.reply(next, ctx.reply);
    Ok(())
}

static KEYS: CommandSpec = CommandSpec {
    name: "keys",
    arity: 2,
    flags: Flags::READONLY,
    categories: Categories::KEYSPACE.union(Categories::DANGEROUS),
    keys: &[],
    locks: Locks::Each,
    docs: &Docs {
        summary: "Lists every key that matches a pattern.",
        since: "1.0.0",
        group: "generic",
        complexity: "O(N) with N being the number of keys in the database, under the assumption that the key names in the database and the given pattern have limited length.",
        tips: &["request_policy:all_shards", "nondeterministic_output_order"],
        arguments: &[Argument::pattern("pattern")],
        ..Docs::NONE
    },
    run: Run::Call(keys),
};

fn keys(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let pattern = &ctx.args[1];
    scanning::check_pattern(pattern)?;
    let reply = &mut *ctx.reply;
    let (open, mut found, mut fits) = (reply.begin_array(), 0usize, Ok(()));
    types::walk::all(ctx.ks, &mut |entry| {
        if fits.is_ok() && scanning::matches(pattern, entry.key) {
            reply.bulk(entry.key);
            found = found.saturating_add(1);
            fits = error::check_reply(reply);
        }
    });
    reply.end(open, found);
    fits
}

static RANDOMKEY: CommandSpec = CommandSpec {
    name: "randomkey",
    arity: 1,
    flags: Flags::READONLY,
    categories: Categories::KEYSPACE,
    keys: &[],
    locks: Locks::All,
    docs: &Docs {
        summary: "Gives some key of the database.",
        since: "1.0.0",
        group: "generic",
        complexity: "O(1)",
        tips: &["request_policy:all_shards", "response_policy:special", "nondeterministic_output"],
        ..Docs::NONE
    },
    run: Run::Call(randomkey),
};

fn randomkey(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let reply = &mut *ctx.reply;
    if !types::walk::random_key(ctx.ks, &mut |key| reply.bulk(key)) {
        reply.null();
    }
    Ok(())
}
