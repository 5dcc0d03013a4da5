//! Strings as bits.

use crate::error::{self, Stop};
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use types::bitmap::{Operation, Stretch};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&GETBIT, &SETBIT, &BITCOUNT, &BITPOS, &BITOP];

const BIT_OFFSET_OUT_OF_RANGE: Stop = Stop::error("ERR bit offset is not an integer or out of range");

/// The argument at `index` as the offset of a bit in a string of allowed size.
///
/// `#N` is the offset of the N-th field of that many bits, where a command has such (BITFIELD).
pub(super) fn bit_offset(ctx: &Ctx<'_>, index: usize, field_bits: Option<u64>) -> Result<u64, Stop> {
    let (number, scale) = match (&ctx.args[index], field_bits) {
        ([b'#', number @ ..], Some(bits)) => (number, bits as i64),
        (number, _) => (number, 1),
    };
    let limit = ctx.host.string_limit.bytes();
    types::string::parse_integer(number)
        // Where the product leaves 64 bits, clients of Valkey see it wrapped.
        .map(|number| number.wrapping_mul(scale))
        .and_then(|offset| u64::try_from(offset).ok())
        .filter(|offset| offset / 8 < limit)
        .ok_or(BIT_OFFSET_OUT_OF_RANGE)
}

static GETBIT: CommandSpec = CommandSpec {
    name: "getbit",
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::BITMAP,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives one bit of a string.",
        since: "2.2.0",
        group: "bitmap",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::integer("offset")],
        ..Docs::NONE
    },
    run: Run::Call(getbit),
};

fn getbit(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let offset = bit_offset(ctx, 2, None)?;
    let bit = types::bitmap::bit(ctx.ks, &key, offset)?;
    ctx.reply.integer(i64::from(bit));
    Ok(())
}

static SETBIT: CommandSpec = CommandSpec {
    name: "setbit",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::BITMAP,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sets or clears one bit of a string, which grows to hold it.",
        since: "2.2.0",
        group: "bitmap",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0), Argument::integer("offset"), Argument::integer("value")],
        ..Docs::NONE
    },
    run: Run::Call(setbit),
};

fn setbit(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let offset = bit_offset(ctx, 2, None)?;
    let bit = match &ctx.args[3] {
        b"0" => false,
        b"1" => true,
        _ => return Err(Stop::error("ERR bit is not an integer or out of range")),
    };
    let old = types::bitmap::set_bit(ctx.ks, &key, offset, bit)?;
    ctx.reply.integer(i64::from(old));
    Ok(())
}

static BITCOUNT: CommandSpec = CommandSpec {
    name: "bitcount",
    arity: -2,
    flags: Flags::READONLY,
    categories: Categories::BITMAP,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Counts the set bits of a string or of a part of it.",
        since: "2.6.0",
        group: "bitmap",
        complexity: "O(N)",
        history: &[
            ("7.0.0", "Counts within bits as well as within bytes: `BYTE` and `BIT`."),
            ("8.0.0", "`end` may be left out and means the last byte then."),
        ],
        arguments: &[
            Argument::key("key", 0),
            Argument::block(
                "range",
                &[
                    Argument::integer("start"),
                    Argument::block(
                        "end-unit-block",
                        &[
                            Argument::integer("end"),
                            Argument::one_of("unit", &[Argument::word("byte", "BYTE"), Argument::word("bit", "BIT")])
                                .since("7.0.0")
                                .optional(),
                        ],
                    )
                    .optional(),
                ],
            )
            .optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(bitcount),
};

fn bitcount(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let stretch = stretch(ctx, 2)?;
    let set = types::bitmap::count(ctx.ks, &key, stretch)?;
    ctx.reply.integer(set as i64);
    Ok(())
}

/// The stretch in the arguments from `from` on: start, end and unit, each of which may be left out with all after it.
fn stretch(ctx: &Ctx<'_>, from: usize) -> Result<Stretch, Stop> {
    let (end, unit) = (from.saturating_add(1), from.saturating_add(2));
    let given = ctx.args.len().saturating_sub(from);
    if given == 0 {
        return Ok(Stretch::ALL);
    }
    if given > 3 {
        return Err(error::SYNTAX);
    }
    // In this order Valkey looks at them.
    let start = ctx.integer(from)?;
    let bits = match given {
        3 if ctx.is_word(unit, "bit") => true,
        3 if !ctx.is_word(unit, "byte") => return Err(error::SYNTAX),
        _ => false,
    };
    let end = if given > 1 { ctx.integer(end)? } else { Stretch::ALL.end };
    Ok(Stretch { start, end, bits })
}

static BITPOS: CommandSpec = CommandSpec {
    name: "bitpos",
    arity: -3,
    flags: Flags::READONLY,
    categories: Categories::BITMAP,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the position of the first set or first clear bit of a string.",
        since: "2.8.7",
        group: "bitmap",
        complexity: "O(N)",
        history: &[("7.0.0", "Searches within bits as well as within bytes: `BYTE` and `BIT`.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("bit"),
            Argument::block(
                "range",
                &[
                    Argument::integer("start"),
                    Argument::block(
                        "end-unit-block",
                        &[
                            Argument::integer("end"),
                            Argument::one_of("unit", &[Argument::word("byte", "BYTE"), Argument::word("bit", "BIT")])
                                .since("7.0.0")
                                .optional(),
                        ],
                    )
                    .optional(),
                ],
            )
            .optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(bitpos),
};

fn bitpos(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let bit = match ctx.integer(2)? {
        0 => false,
        1 => true,
        _ => return Err(Stop::error("ERR The bit argument must be 1 or 0.")),
    };
    let stretch = stretch(ctx, 3)?;
    let open = ctx.args.len() < 5;
    let position = types::bitmap::position(ctx.ks, &key, bit, stretch, open)?;
    ctx.reply.integer(position.map_or(-1, |position| position as i64));
    Ok(())
}

static BITOP: CommandSpec = CommandSpec {
    name: "bitop",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::BITMAP,
    keys: &[
        KeySpec::one(2, KeyFlags::OW.union(KeyFlags::UPDATE)),
        KeySpec::range(3, -1, 1, KeyFlags::RO.union(KeyFlags::ACCESS)),
    ],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Combines strings bit by bit and stores the result.",
        since: "2.6.0",
        group: "bitmap",
        complexity: "O(N)",
        arguments: &[
            Argument::one_of(
                "operation",
                &[
                    Argument::word("and", "AND"),
                    Argument::word("or", "OR"),
                    Argument::word("xor", "XOR"),
                    Argument::word("not", "NOT"),
                ],
            ),
            Argument::key("destkey", 0),
            Argument::key("key", 1).repeated(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(bitop),
};

fn bitop(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let operation = [("and", Operation::And), ("or", Operation::Or), ("xor", Operation::Xor), ("not", Operation::Not)]
        .into_iter()
        .find_map(|(word, operation)| ctx.is_word(1, word).then_some(operation))
        .ok_or(error::SYNTAX)?;
    if operation == Operation::Not && ctx.args.len() != 4 {
        return Err(Stop::error("ERR BITOP NOT must be called with a single source key."));
    }
    let to = ctx.key(2);
    let len = types::bitmap::combine(ctx.ks, operation, &to, ctx.args.from(3))?;
    ctx.reply.integer(len as i64);
    Ok(())
}
