//! Integers of any width inside strings.

use super::bitmap::bit_offset;
use crate::error::{self, Stop};
use crate::spec::{Argument, Docs};
use crate::{Args, Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use types::bitfield::{Action, Field, Overflow, Width};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&BITFIELD, &BITFIELD_RO];

static BITFIELD: CommandSpec = CommandSpec {
    name: "bitfield",
    arity: -2,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::BITMAP,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))
        .varying(key_flags)
        .noting("Some operations only read, others write.")],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Reads, stores and adds to integers of any width inside a string.",
        since: "3.2.0",
        group: "bitmap",
        complexity: "O(1) for each subcommand specified",
        arguments: &[
            Argument::key("key", 0),
            Argument::one_of(
                "operation",
                &[
                    Argument::block("get-block", &[Argument::string("encoding"), Argument::integer("offset")])
                        .after("GET"),
                    Argument::block(
                        "write",
                        &[
                            Argument::one_of(
                                "overflow-block",
                                &[
                                    Argument::word("wrap", "WRAP"),
                                    Argument::word("sat", "SAT"),
                                    Argument::word("fail", "FAIL"),
                                ],
                            )
                            .after("OVERFLOW")
                            .optional(),
                            Argument::one_of(
                                "write-operation",
                                &[
                                    Argument::block(
                                        "set-block",
                                        &[
                                            Argument::string("encoding"),
                                            Argument::integer("offset"),
                                            Argument::integer("value"),
                                        ],
                                    )
                                    .after("SET"),
                                    Argument::block(
                                        "incrby-block",
                                        &[
                                            Argument::string("encoding"),
                                            Argument::integer("offset"),
                                            Argument::integer("increment"),
                                        ],
                                    )
                                    .after("INCRBY"),
                                ],
                            ),
                        ],
                    ),
                ],
            )
            .optional()
            .repeated(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(bitfield),
};

/// Only reads as long as there are only GET and OVERFLOW; what cannot be understood may write.
fn key_flags(args: &Args<'_>) -> KeyFlags {
    let mut index = 2;
    while index < args.len() {
        let left = args.len().saturating_sub(index).saturating_sub(1);
        let words = match &args[index] {
            word if word.eq_ignore_ascii_case(b"get") && left >= 2 => 3,
            word if word.eq_ignore_ascii_case(b"overflow") && left >= 1 => 2,
            _ => return KeyFlags::RW | KeyFlags::ACCESS | KeyFlags::UPDATE,
        };
        index = index.saturating_add(words);
    }
    KeyFlags::RO | KeyFlags::ACCESS
}

fn bitfield(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let fields = fields(ctx)?;
    run(ctx, &fields)
}

static BITFIELD_RO: CommandSpec = CommandSpec {
    name: "bitfield_ro",
    arity: -2,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::BITMAP,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Reads integers of any width inside a string.",
        since: "6.0.0",
        group: "bitmap",
        complexity: "O(1) for each subcommand specified",
        arguments: &[
            Argument::key("key", 0),
            Argument::block("get-block", &[Argument::string("encoding"), Argument::integer("offset")])
                .after("GET")
                .optional()
                .repeated_with_token(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(bitfield_ro),
};

fn bitfield_ro(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let fields = fields(ctx)?;
    if fields.iter().any(|field| field.action != Action::Get) {
        return Err(Stop::error("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    run(ctx, &fields)
}

fn run(ctx: &mut Ctx<'_>, fields: &[Field]) -> Result<(), Stop> {
    let key = ctx.key(1);
    let reply = &mut *ctx.reply;
    reply.array(fields.len());
    types::bitfield::run(ctx.ks, &key, fields, &mut |result| match result {
        Some(number) => reply.integer(number),
        None => reply.null(),
    })?;
    Ok(())
}

/// The steps that the arguments after the key ask for.
fn fields(ctx: &Ctx<'_>) -> Result<Vec<Field>, Stop> {
    let mut fields = Vec::new();
    let mut overflow = Overflow::default();
    let mut at = 2;
    while at < ctx.args.len() {
        let behind = ctx.args.len().saturating_sub(at).saturating_sub(1);
        let (width, offset, number) = (at.saturating_add(1), at.saturating_add(2), at.saturating_add(3));
        let action: Option<fn(i64, Overflow) -> Action> = if ctx.is_word(at, "overflow") && behind >= 1 {
            overflow = parse_overflow(ctx, width)?;
            at = at.saturating_add(2);
            continue;
        } else if ctx.is_word(at, "get") && behind >= 2 {
            None
        } else if ctx.is_word(at, "set") && behind >= 3 {
            Some(Action::Set)
        } else if ctx.is_word(at, "incrby") && behind >= 3 {
            Some(Action::Increment)
        } else {
            return Err(error::SYNTAX);
        };
        let width = parse_width(&ctx.args[width])?;
        let offset = bit_offset(ctx, offset, Some(width.bits()))?;
        let (action, next) = match action {
            None => (Action::Get, number),
            Some(action) => (action(ctx.integer(number)?, overflow), number.saturating_add(1)),
        };
        fields.push(Field { offset, width, action });
        at = next;
    }
    Ok(fields)
}

fn parse_overflow(ctx: &Ctx<'_>, index: usize) -> Result<Overflow, Stop> {
    [("wrap", Overflow::Wrap), ("sat", Overflow::Saturate), ("fail", Overflow::Fail)]
        .into_iter()
        .find_map(|(word, overflow)| ctx.is_word(index, word).then_some(overflow))
        .ok_or(Stop::error("ERR Invalid OVERFLOW type specified"))
}

/// `i` or `u` and the number of bits.
fn parse_width(text: &[u8]) -> Result<Width, Stop> {
    let (signed, bits) = match text {
        [b'i', bits @ ..] => (true, bits),
        [b'u', bits @ ..] => (false, bits),
        _ => (false, &[][..]),
    };
    types::string::parse_integer(bits).and_then(|bits| Width::new(signed, bits)).ok_or(Stop::error(
        "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
    ))
}
