//! Arguments that several commands read.

use base::UnixMs;
use base::integer::parse_integer;
use command::{Args, Ctx, Stop};

/// Too few arguments, or one without its other half.
pub const WRONG_COUNT: Stop = Stop::error("client_error wrong number of arguments");

/// The longest part of an argument that an error repeats.
const SHOWN_BYTES_MAX: usize = 64;

/// The refusal of an argument: what it is to be, and what it is.
pub fn refuse(what: &str, given: &[u8]) -> Stop {
    let shown = given.get(..SHOWN_BYTES_MAX).unwrap_or(given).escape_ascii();
    Stop::error_with(format!("client_error {what}, and not '{shown}'"))
}

/// The argument at `index` as an integer.
pub fn integer(args: &Args<'_>, index: usize) -> Result<i64, Stop> {
    let text = args.bytes(index).unwrap_or_default();
    parse_integer(text).ok_or_else(|| refuse("give an integer of 64 bits", text))
}

/// The argument at `index` as an integer, or another number where there is none.
pub fn integer_or(args: &Args<'_>, index: usize, otherwise: i64) -> Result<i64, Stop> {
    if index < args.len() { integer(args, index) } else { Ok(otherwise) }
}

/// The argument at `index` as the most that a reply may give. A negative number is no limit, as in SSDB.
pub fn limit(args: &Args<'_>, index: usize) -> Result<u64, Stop> {
    let text = args.bytes(index).unwrap_or_default();
    let number = parse_integer(text).map(|number| u64::try_from(number).unwrap_or(u64::MAX));
    // 18446744073709551615 is what some clients send for no limit.
    let long = || std::str::from_utf8(text).ok()?.parse().ok();
    number.or_else(long).ok_or_else(|| refuse("give a limit as an integer", text))
}

/// How much to add, which is 1 unless the argument at `index` says another number; the opposite with `is_down`.
pub fn step(args: &Args<'_>, index: usize, is_down: bool) -> Result<i64, Stop> {
    let by = integer_or(args, index, 1)?;
    let by = if is_down { by.checked_neg() } else { Some(by) };
    by.ok_or_else(|| refuse("give a number whose opposite has 64 bits", args.bytes(index).unwrap_or_default()))
}

/// When a key expires that has the seconds in the argument at `index` to live.
pub fn expiration(ctx: &Ctx<'_>, index: usize) -> Result<UnixMs, Stop> {
    let seconds = integer(&ctx.args, index)?;
    Ok(ctx.now().saturating_add(seconds.saturating_mul(1000)))
}
