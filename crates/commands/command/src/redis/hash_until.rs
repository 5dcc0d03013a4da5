//! Fields of hashes read or set together with their times.

use super::hash::reply_value;
use super::hash_fields::{self, Fields};
use super::options::{Accepted, Options};
use crate::error::{self, Stop};
use crate::limits::REPLY_BYTES_MAX;
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use engine::Key;
use types::hash::{Deadline, SetUntil};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&HGETEX, &HSETEX, &HGETDEL];

static HGETEX: CommandSpec = CommandSpec {
    name: "hgetex",
    arity: -5,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the values of fields and sets when they are due.",
        since: "9.0.0",
        group: "hash",
        complexity: "O(N) where N is the number of specified fields.",
        arguments: &[
            Argument::key("key", 0),
            Argument::one_of(
                "expiration",
                &[
                    Argument::integer("seconds").after("EX"),
                    Argument::integer("milliseconds").after("PX"),
                    Argument::unix_time("unix-time-seconds").after("EXAT"),
                    Argument::unix_time("unix-time-milliseconds").after("PXAT"),
                    Argument::word("persist", "PERSIST"),
                ],
            )
            .optional(),
            Argument::block("fields", &[Argument::integer_of("numfields", 0), Argument::string("field").repeated()])
                .after("FIELDS"),
        ],
        ..Docs::NONE
    },
    run: Run::Call(hgetex),
};

fn hgetex(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let word = hash_fields::find(ctx, 2)?;
    let options = Options::parse(ctx, 2..word, Accepted::BY_HGETEX)?;
    let fields = hash_fields::read(ctx, word, 1)?;
    let key = ctx.key(1);
    // The error for another type comes before the one for an invalid time.
    types::hash::peek(ctx.ks, &key)?;
    let deadline = options.deadline(ctx, Deadline::Keep)?;
    check_reply(ctx, &key, &fields)?;
    let reply = &mut *ctx.reply;
    reply.array(fields.len());
    types::hash::get_and_expire(ctx.ks, &key, fields.iter(), deadline, &mut |value| reply_value(reply, value))?;
    Ok(())
}

static HSETEX: CommandSpec = CommandSpec {
    name: "hsetex",
    arity: -6,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sets fields of a hash and when they are due.",
        since: "9.0.0",
        group: "hash",
        complexity: "O(N) where N is the number of specified fields.",
        arguments: &[
            Argument::key("key", 0),
            Argument::one_of("key-condition", &[Argument::word("nx", "NX"), Argument::word("xx", "XX")]).optional(),
            Argument::one_of("fields-condition", &[Argument::word("fnx", "FNX"), Argument::word("fxx", "FXX")])
                .optional(),
            Argument::one_of(
                "expiration",
                &[
                    Argument::integer("seconds").after("EX"),
                    Argument::integer("milliseconds").after("PX"),
                    Argument::unix_time("unix-time-seconds").after("EXAT"),
                    Argument::unix_time("unix-time-milliseconds").after("PXAT"),
                    Argument::word("keepttl", "KEEPTTL"),
                ],
            )
            .optional(),
            Argument::block(
                "fields",
                &[
                    Argument::integer_of("numfields", 0),
                    Argument::block("data", &[Argument::string("field"), Argument::string("value")]).repeated(),
                ],
            )
            .after("FIELDS"),
        ],
        ..Docs::NONE
    },
    run: Run::Call(hsetex),
};

fn hsetex(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let word = hash_fields::find(ctx, 2)?;
    let options = Options::parse(ctx, 2..word, Accepted::BY_HSETEX)?;
    let fields = hash_fields::read(ctx, word, 2)?;
    let key = ctx.key(1);
    // As in HGETEX; and a key that is not as it should be makes the time needless.
    let is_there = !types::hash::peek(ctx.ks, &key)?.is_empty();
    let condition = options.key_condition();
    if !condition.allows(is_there) {
        ctx.reply.integer(0);
        return Ok(());
    }
    let deadline = options.deadline(ctx, Deadline::Never)?;
    let how = SetUntil { key: condition, fields: options.fields, deadline };
    let is_set = types::hash::set_until(ctx.ks, &key, fields.pairs(), how)?;
    ctx.reply.integer(i64::from(is_set));
    Ok(())
}

static HGETDEL: CommandSpec = CommandSpec {
    name: "hgetdel",
    arity: -5,
    flags: Flags::WRITE.union(Flags::FAST).union(Flags::FREES),
    categories: Categories::HASH,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the values of fields and deletes them.",
        since: "9.1.0",
        group: "hash",
        complexity: "O(N) where N is the number of fields to be retrieved and deleted.",
        arguments: &[
            Argument::key("key", 0),
            Argument::block("fields", &[Argument::integer_of("numfields", 0), Argument::string("field").repeated()])
                .after("FIELDS"),
        ],
        ..Docs::NONE
    },
    run: Run::Call(hgetdel),
};

fn hgetdel(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let fields = hash_fields::read_at(ctx, 2)?;
    let key = ctx.key(1);
    check_reply(ctx, &key, &fields)?;
    let reply = &mut *ctx.reply;
    reply.array(fields.len());
    types::hash::get_and_delete(ctx.ks, &key, fields.iter(), &mut |value| reply_value(reply, value))?;
    Ok(())
}

/// An error when the values of these fields are too many bytes for a reply: known before anything changes.
fn check_reply(ctx: &mut Ctx<'_>, key: &Key<'_>, fields: &Fields<'_>) -> Result<(), Stop> {
    if fields.len() == 1 {
        return Ok(());
    }
    let hash = types::hash::peek(ctx.ks, key)?;
    let lengths = fields.iter().filter_map(|field| hash.get(field)).map(|cell| cell.value.len());
    let bytes = lengths.fold(0, usize::saturating_add);
    if bytes <= REPLY_BYTES_MAX { Ok(()) } else { Err(error::REPLY_TOO_LONG) }
}
