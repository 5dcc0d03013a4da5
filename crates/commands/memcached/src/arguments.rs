//! Arguments that several commands read, which the parser has checked.

use crate::sticky;
use base::UnixMs;
use command::{Args, Ctx, Stop};
use proto::memcached::{parse_signed, parse_unsigned};
use types::string::Expiration;

/// Expirations up to here are seconds from now; later ones are Unix times.
const RELATIVE_SECONDS_MAX: i64 = 60 * 60 * 24 * 30;

/// Not a number, where the parser has seen one. No client can bring this about.
const NOT_A_NUMBER: Stop = Stop::error("SERVER_ERROR a checked number cannot be read: a bug of this server");

/// The argument at `index` as a number.
pub fn number(args: &Args<'_>, index: usize) -> Result<u64, Stop> {
    parse_unsigned(args.bytes(index).unwrap_or_default()).ok_or(NOT_A_NUMBER)
}

/// How long an item lasts.
#[derive(Clone, Copy)]
pub struct Lifetime {
    /// When it expires.
    pub expiration: Expiration,
    /// Whether it is never evicted either.
    pub is_sticky: bool,
}

impl Lifetime {
    /// That of an item which may be evicted.
    pub fn of(expiration: Expiration) -> Self {
        Self { expiration, is_sticky: false }
    }
}

/// The time that the argument at `index` asks for: 0 for never, -1 for sticky where such items are allowed, another
/// negative one for at once.
pub fn lifetime(ctx: &Ctx<'_>, index: usize) -> Result<Lifetime, Stop> {
    let seconds = parse_signed(ctx.args.bytes(index).unwrap_or_default()).ok_or(NOT_A_NUMBER)?;
    let is_sticky = seconds == sticky::SECONDS && sticky::bytes_max(ctx) > 0;
    let expiration = if is_sticky { Expiration::Never } else { expiration_of(seconds, ctx.now()) };
    Ok(Lifetime { expiration, is_sticky })
}

/// When an item expires that is given this many seconds to live, or a Unix time.
pub fn expiration_of(seconds: i64, now: UnixMs) -> Expiration {
    match seconds {
        0 => Expiration::Never,
        ..0 => Expiration::At(now),
        1..=RELATIVE_SECONDS_MAX => Expiration::At(now.saturating_add(seconds.saturating_mul(1000))),
        _ => Expiration::At(seconds.saturating_mul(1000)),
    }
}

/// Whole seconds until then, rounded up.
pub fn remaining_seconds(at: UnixMs, now: UnixMs) -> i64 {
    at.saturating_sub(now).saturating_add(999).div_euclid(1000)
}

/// Answers, unless the request ends with `noreply` after its `count` arguments.
pub fn answer(ctx: &mut Ctx<'_>, count: usize, text: &str) {
    if ctx.args.len() <= count {
        ctx.reply.text_line(text);
    }
}

/// The outcome of a request that is refused; without a reply if it ends with `noreply` after its `count` arguments.
pub fn refuse(ctx: &Ctx<'_>, count: usize, refusal: Stop) -> Result<(), Stop> {
    if ctx.args.len() <= count { Err(refusal) } else { Ok(()) }
}

/// Answers with a number, unless the request ends with `noreply` after its `count` arguments.
pub fn answer_number(ctx: &mut Ctx<'_>, count: usize, number: u64) {
    if ctx.args.len() <= count {
        ctx.reply.number_line(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expirations_are_relative_up_to_thirty_days() {
        const NOW: UnixMs = 1_700_000_000_000;
        for (seconds, expected) in [
            (0, Expiration::Never),
            (-1, Expiration::At(NOW)),
            (1, Expiration::At(NOW + 1000)),
            (2_592_000, Expiration::At(NOW + 2_592_000_000)),
            (2_592_001, Expiration::At(2_592_001_000)),
            (i64::MAX, Expiration::At(i64::MAX)),
        ] {
            assert_eq!(expiration_of(seconds, NOW), expected, "{seconds}");
        }
    }
}
