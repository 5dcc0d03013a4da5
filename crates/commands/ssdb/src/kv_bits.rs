//! Parts and bits of strings.

use crate::answer;
use crate::arguments::{integer, integer_or, refuse};
use command::spec::Look;
use command::{Ctx, Stop};
use proto::ReplyBuffer;
use std::ops::Range;
use types::bitmap::{self, Stretch};
use types::string::string_value;

/// Where a place counted from an end is; `None` before the first byte and after the last.
fn place(at: i64, len: usize) -> Option<usize> {
    let at = if at < 0 { at.checked_add_unsigned(len as u64)? } else { at };
    usize::try_from(at).ok().filter(|at| *at < len)
}

/// `size` bytes from a place on; a negative size is the number of bytes left out at the end.
fn of_size(start: i64, size: i64, len: usize) -> Range<usize> {
    let Some(start) = place(start, len) else { return 0..0 };
    let end = match usize::try_from(size) {
        Ok(size) => start.saturating_add(size).min(len),
        Err(_) => len.saturating_sub(usize::try_from(size.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    start..end.max(start)
}

/// The bytes between two places, both included.
fn between(start: i64, end: i64, len: usize) -> Range<usize> {
    let Some(start) = place(start, len) else { return 0..0 };
    let end = if end < 0 { end.saturating_add_unsigned(len as u64) } else { end };
    let end = usize::try_from(end).map_or(0, |end| end.saturating_add(1)).min(len);
    start..end.max(start)
}

fn bytes<'a>(look: &Look<'a>) -> Result<&'a [u8], Stop> {
    Ok(look.entry.map(string_value).transpose()?.map_or(&[], |value| value.bytes()))
}

/// `substr key [start [size]]`
pub fn substr(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let (start, size) = (integer_or(&look.args, 2, 0)?, integer_or(&look.args, 3, i64::MAX)?);
    let bytes = bytes(look)?;
    answer::bytes(reply, Some(bytes.get(of_size(start, size, bytes.len())).unwrap_or_default()));
    Ok(())
}

/// `getrange key [start [end]]`
pub fn getrange(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let (start, end) = (integer_or(&look.args, 2, 0)?, integer_or(&look.args, 3, -1)?);
    let bytes = bytes(look)?;
    answer::bytes(reply, Some(bytes.get(between(start, end, bytes.len())).unwrap_or_default()));
    Ok(())
}

/// `getbit key offset`
pub fn getbit(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let offset = integer(&look.args, 2)?;
    let offset =
        u64::try_from(offset).map_err(|_| refuse("give an offset from 0", look.args.bytes(2).unwrap_or(b"")))?;
    let byte = usize::try_from(offset / 8).ok().and_then(|at| bytes(look).ok()?.get(at).copied());
    bytes(look)?;
    answer::boolean(reply, byte.unwrap_or(0) & 0x80u8.wrapping_shr((offset % 8) as u32) != 0);
    Ok(())
}

/// `setbit key offset bit`
pub fn setbit(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let bit = match ctx.args.bytes(3) {
        Some(b"0") => false,
        Some(b"1") => true,
        _ => return Err(Stop::error("client_error bit is not an integer or out of range")),
    };
    let bits = ctx.host.string_limit.bytes().saturating_mul(8);
    let offset = u64::try_from(integer(&ctx.args, 2)?).ok().filter(|offset| *offset < bits);
    let offset = offset.ok_or_else(|| {
        Stop::error_with(format!("client_error offset is out of range [0, {}]", bits.saturating_sub(1)))
    })?;
    let key = ctx.key(1);
    let old = bitmap::set_bit(ctx.ks, &key, offset, bit)?;
    answer::boolean(ctx.reply, old);
    Ok(())
}

/// `bitcount key [start [end]]`
pub fn bitcount(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (start, end) = (integer_or(&ctx.args, 2, 0)?, integer_or(&ctx.args, 3, -1)?);
    count(ctx, |len| between(start, end, len))
}

/// `countbit key [start [size]]`
pub fn countbit(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (start, size) = (integer_or(&ctx.args, 2, 0)?, integer_or(&ctx.args, 3, i64::MAX)?);
    count(ctx, |len| of_size(start, size, len))
}

fn count(ctx: &mut Ctx<'_>, range: impl FnOnce(usize) -> Range<usize>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let len = types::string::len(ctx.ks, &key)?;
    let Range { start, end } = range(len);
    let set = match end.checked_sub(1).filter(|_| start < end) {
        None => 0,
        Some(last) => {
            let stretch = Stretch { start: start as i64, end: last as i64, bits: false };
            bitmap::count(ctx.ks, &key, stretch)?
        }
    };
    answer::count(ctx.reply, set);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_as_in_ssdb() {
        for (start, size, expected) in
            [(0, 2, "ab"), (1, i64::MAX, "bcde"), (-2, 5, "de"), (0, -1, "abcd"), (3, -9, ""), (5, 1, ""), (-6, 9, "")]
        {
            assert_eq!(&"abcde"[of_size(start, size, 5)], expected, "{start} {size}");
        }
        for (start, end, expected) in
            [(0, -1, "abcde"), (1, 2, "bc"), (-2, -1, "de"), (-6, -1, ""), (3, 1, ""), (2, 100, "cde"), (0, -6, "")]
        {
            assert_eq!(&"abcde"[between(start, end, 5)], expected, "{start} {end}");
        }
    }
}
