//! Numbers of x87 extended precision, in which Redis adds for INCRBYFLOAT: 64 bits of mantissa, 15 of exponent.
//!
//! Rust has no such type, so reading, adding and writing are done here on integers. All three round exactly once, to
//! the nearest, ties to even, as the processor and a correct C library do; so every sum has the same text as in Valkey
//! on x86. (Where `long double` is another type, Valkey itself answers differently.)
//!
//! F1. A finite number is `mantissa * 2^exponent`; the mantissa's top bit is set unless the exponent is the least, or
//!     the number is zero.
//! F2. Work and memory are bounded by the text, which is at most [`TEXT_BYTES_MAX`] long, and by the exponent's range.
//!
//! Formats and rounding: IEEE 754-2019, section 3; the division that reads a decimal is the schoolbook one of Clinger,
//! "How to read floating point numbers accurately", 1990.

mod natural;

use natural::Natural;
use std::cmp::Ordering;

/// Longer texts are not read: the longest number written has 4952 characters.
pub const TEXT_BYTES_MAX: usize = 5119;

/// The weight of the last bit of the smallest numbers.
const EXPONENT_MIN: i32 = -16_445;

/// The weight of the first bit of the largest numbers.
const LEADING_EXPONENT_MAX: i32 = 16_383;

/// Decimal exponents beyond this, either way, are out of range whatever the digits are.
const DECIMAL_EXPONENT_MAX: i64 = 5_000;

/// Digits after the point that are written, at most.
const FRACTION_DIGITS: usize = 17;

/// A number of extended precision; never "not a number".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extended {
    /// `mantissa * 2^exponent`
    Finite {
        /// Below zero, or the zero below zero.
        negative: bool,
        /// Zero, or with its top bit set (F1).
        mantissa: u64,
        /// The weight of the mantissa's last bit.
        exponent: i32,
    },
    /// Beyond all finite numbers.
    Infinite {
        /// On which side.
        negative: bool,
    },
}

impl Extended {
    /// Zero.
    pub const ZERO: Self = Self::Finite { negative: false, mantissa: 0, exponent: 0 };

    /// Reads what C's `strtold` reads, if it is all of the text: decimal or hexadecimal, with or without an exponent,
    /// or a word for infinity. `None` for anything else: blanks before or after, NaN, and numbers too large or too
    /// small to be distinguished from infinity or zero.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let (negative, unsigned) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        if unsigned.eq_ignore_ascii_case(b"inf") || unsigned.eq_ignore_ascii_case(b"infinity") {
            return Some(Self::Infinite { negative });
        }
        let literal = match unsigned {
            [b'0', b'x' | b'X', rest @ ..] => Literal::parse(rest, 16, b'p')?,
            rest => Literal::parse(rest, 10, b'e')?,
        };
        let number = literal.round(negative)?;
        if matches!(number, Self::Infinite { .. }) { None } else { Some(number) }
    }

    /// The sum, rounded once. `None` when it is not a number (infinity minus infinity).
    pub fn checked_add(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Infinite { negative: one }, Self::Infinite { negative: another }) => {
                (one == another).then_some(self)
            }
            (Self::Infinite { .. }, _) => Some(self),
            (_, Self::Infinite { .. }) => Some(other),
            (
                Self::Finite { negative: one, mantissa: a, exponent: x },
                Self::Finite { negative: another, mantissa: b, exponent: y },
            ) => Some(if a == 0 || (b != 0 && y > x) {
                add((another, b, y), (one, a, x))
            } else {
                add((one, a, x), (another, b, y))
            }),
        }
    }

    /// Whether it is not infinite.
    pub fn is_finite(self) -> bool {
        matches!(self, Self::Finite { .. })
    }

    /// A thousand times the number, rounded up to an integer: seconds as milliseconds. `None` when that is beyond 64
    /// bits.
    pub fn thousandfold(self) -> Option<i64> {
        let Self::Finite { negative, mantissa, exponent } = self else { return None };
        let product = u128::from(mantissa).checked_mul(1000)?;
        // The product is rounded to the precision of the type first, so that a thousand times the number read from
        // 0.001 is 1.
        let excess = u128::BITS.saturating_sub(product.leading_zeros()).saturating_sub(u64::BITS);
        let half = (1u128 << excess) >> 1;
        let is_odd = (product >> excess) & 1;
        let rounded = product.checked_add(half.saturating_sub(1)).and_then(|sum| sum.checked_add(is_odd))? >> excess;
        let exponent = exponent.checked_add_unsigned(excess)?;
        let whole = match exponent.unsigned_abs() {
            left if exponent >= 0 => rounded.checked_mul(1u128.checked_shl(left)?)?,
            right => {
                let floor = rounded.checked_shr(right).unwrap_or(0);
                let is_exact = floor.checked_shl(right) == Some(rounded);
                floor.checked_add(u128::from(!is_exact && !negative))?
            }
        };
        let whole = i64::try_from(whole).ok()?;
        if negative { whole.checked_neg() } else { Some(whole) }
    }

    /// The text for people: no exponent, at most 17 digits after the point, without zeros at the end. Infinity as C
    /// writes it.
    pub fn to_text(self) -> String {
        let Self::Finite { negative, mantissa, exponent } = self else {
            return if self == (Self::Infinite { negative: true }) { "-inf" } else { "inf" }.to_owned();
        };
        let (whole, fraction) = if exponent >= 0 {
            (shifted(mantissa, exponent).to_decimal(), 0)
        } else {
            let (whole, fraction) = split(mantissa, exponent.unsigned_abs());
            (whole.to_string(), fraction)
        };
        let mut text = whole;
        if fraction != 0 {
            let digits = format!(".{fraction:0FRACTION_DIGITS$}");
            text.push_str(digits.trim_end_matches('0'));
        }
        // A number that is written as zero has lost its sign with its digits.
        if negative && text != "0" {
            text.insert(0, '-');
        }
        text
    }
}

/// `mantissa * 2^exponent` for an exponent that is not negative.
fn shifted(mantissa: u64, exponent: i32) -> Natural {
    let digits = (0..16u32).rev().map(|digit| (mantissa >> digit.wrapping_mul(4)) as u32 & 0xF);
    let mut number = Natural::from_digits(digits, 16);
    number.shift_left(exponent.unsigned_abs() as usize);
    number
}

/// Whole part of `mantissa / 2^shift`, and the rest in units of 10^-17, rounded.
fn split(mantissa: u64, shift: u32) -> (u64, u64) {
    const UNITS: u64 = 10u64.pow(FRACTION_DIGITS as u32);
    let whole = mantissa.checked_shr(shift).unwrap_or(0);
    let rest = mantissa.wrapping_sub(whole.checked_shl(shift).unwrap_or(0));
    // Below 2^64 * 10^17, which is below 2^121.
    let units = round_shift(u128::from(rest).wrapping_mul(u128::from(UNITS)), shift) as u64;
    if units == UNITS { (whole.wrapping_add(1), 0) } else { (whole, units) }
}

/// `number / 2^shift`, to the nearest, ties to even. `number` is below 2^127.
fn round_shift(number: u128, shift: u32) -> u128 {
    if shift == 0 {
        return number;
    }
    let quotient = number.checked_shr(shift).unwrap_or(0);
    let rest = number.wrapping_sub(quotient.checked_shl(shift).unwrap_or(0));
    // From 2^128 on, `number` is less than half.
    let Some(half) = 1u128.checked_shl(shift.wrapping_sub(1)) else { return 0 };
    let up = rest > half || rest == half && quotient & 1 == 1;
    quotient.wrapping_add(u128::from(up))
}

/// Adds two finite numbers as sign, mantissa and exponent; the first has the larger exponent or the second is zero.
fn add(large: (bool, u64, i32), small: (bool, u64, i32)) -> Extended {
    /// Room for the bits of the smaller number that the larger one does not have: two guard bits would do.
    const GUARD_BITS: u32 = 62;
    let ((negative, a, exponent), (other, b, lower)) = (large, small);
    let distance = exponent.wrapping_sub(lower).unsigned_abs();
    let wide = u128::from(b) << GUARD_BITS;
    let kept = if b == 0 { 0 } else { wide.checked_shr(distance).unwrap_or(0) };
    // What was shifted out decides ties only: one bit stands for it.
    let lost = b != 0 && kept.checked_shl(distance).unwrap_or(0) != wide;
    let (a, b) = (u128::from(a) << GUARD_BITS, kept | u128::from(lost));
    let (negative, sum) = match (negative == other, a >= b) {
        (true, _) => (negative, a.wrapping_add(b)),
        (false, true) => (negative, a.wrapping_sub(b)),
        (false, false) => (other, b.wrapping_sub(a)),
    };
    if sum == 0 {
        return Extended::Finite { negative: negative && other, mantissa: 0, exponent: 0 };
    }
    let unit = exponent.wrapping_sub(GUARD_BITS as i32);
    let bits = u128::BITS.wrapping_sub(sum.leading_zeros());
    let leading = unit.wrapping_add(bits as i32).wrapping_sub(1);
    let drop = (bits as i32).wrapping_sub(mantissa_bits(leading) as i32);
    let rounded = if drop <= 0 { sum << drop.unsigned_abs() } else { round_shift(sum, drop.unsigned_abs()) };
    finish(negative, rounded, unit.wrapping_add(drop))
}

/// How many bits the mantissa of a number has whose first bit weighs `2^leading`: fewer at the small end.
fn mantissa_bits(leading: i32) -> u32 {
    leading.wrapping_sub(EXPONENT_MIN).wrapping_add(1).clamp(0, 64).unsigned_abs()
}

/// Puts a rounded mantissa, which may have gained a bit by rounding, into its form.
fn finish(negative: bool, mantissa: u128, exponent: i32) -> Extended {
    let (mantissa, exponent) = match u64::try_from(mantissa) {
        Ok(mantissa) => (mantissa, exponent),
        Err(_) => (1 << 63, exponent.wrapping_add(1)),
    };
    let leading = exponent.wrapping_add(63).wrapping_sub(mantissa.leading_zeros() as i32);
    if mantissa != 0 && leading > LEADING_EXPONENT_MAX {
        return Extended::Infinite { negative };
    }
    Extended::Finite { negative, mantissa, exponent }
}

/// A number as it is written: `digits * base^exponent`, where hexadecimal digits have an exponent of two.
struct Literal<'a> {
    /// Before and after the point.
    digits: [&'a [u8]; 2],
    base: u32,
    exponent: i64,
}

impl<'a> Literal<'a> {
    /// Reads digits, perhaps with a point among or around them, and perhaps a mark and an exponent.
    fn parse(text: &'a [u8], base: u32, mark: u8) -> Option<Self> {
        let (digits, exponent) = match text.iter().position(|byte| byte.to_ascii_lowercase() == mark) {
            None => (text, 0),
            Some(at) => (text.get(..at)?, parse_exponent(text.get(at.saturating_add(1)..)?)?),
        };
        let (whole, fraction) = match digits.iter().position(|byte| *byte == b'.') {
            None => (digits, &[][..]),
            Some(at) => (digits.get(..at)?, digits.get(at.saturating_add(1)..)?),
        };
        let digits = [whole, fraction];
        if whole.is_empty() && fraction.is_empty() || !digits.concat().iter().all(|byte| is_digit(*byte, base)) {
            return None;
        }
        let digit_exponent = if base == 16 { 4 } else { 1 };
        let exponent = exponent.saturating_sub((fraction.len() as i64).saturating_mul(digit_exponent));
        Some(Self { digits, base, exponent })
    }

    /// The nearest number. `None` when the text is not zero, but the number is.
    fn round(&self, negative: bool) -> Option<Extended> {
        let digits = self.digits.iter().copied().flatten().filter_map(|byte| char::from(*byte).to_digit(self.base));
        let digits = digits.skip_while(|digit| *digit == 0);
        let mut numerator = Natural::from_digits(digits.clone(), self.base);
        if numerator.is_zero() {
            return Some(Extended::Finite { negative, mantissa: 0, exponent: 0 });
        }
        let mut denominator = Natural::one();
        if self.base == 10 {
            let size = self.exponent.saturating_add(digits.count() as i64);
            if size > DECIMAL_EXPONENT_MAX {
                return Some(Extended::Infinite { negative });
            }
            if size < -DECIMAL_EXPONENT_MAX {
                return None;
            }
            let fives = usize::try_from(self.exponent.unsigned_abs()).ok()?;
            if self.exponent >= 0 { &mut numerator } else { &mut denominator }.multiply_by_power_of_five(fives);
        }
        let exponent = i32::try_from(self.exponent.clamp(-1_000_000, 1_000_000)).ok()?;
        let number = quotient(negative, numerator, denominator, exponent);
        let vanished = matches!(number, Extended::Finite { mantissa: 0, .. });
        (!vanished).then_some(number)
    }
}

fn is_digit(byte: u8, base: u32) -> bool {
    char::from(byte).is_digit(base)
}

/// An optional sign and decimal digits. What does not fit is as good as the largest.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() {
        return None;
    }
    let mut exponent = 0i64;
    for byte in digits {
        let digit = char::from(*byte).to_digit(10)?;
        exponent = exponent.saturating_mul(10).saturating_add(i64::from(digit));
    }
    let exponent = exponent.min(i64::from(i32::MAX));
    Some(if negative { exponent.saturating_neg() } else { exponent })
}

/// `numerator / denominator * 2^exponent`, rounded; neither is zero.
fn quotient(negative: bool, mut numerator: Natural, mut denominator: Natural, exponent: i32) -> Extended {
    // Both to the same length, so that the quotient is between 1/2 and 2, and then between 1 and 2.
    let (above, below) = (numerator.bit_count(), denominator.bit_count());
    let mut leading = exponent.saturating_add(above as i32).saturating_sub(below as i32);
    let (quotient, bits, half) = if let (Some(above), Some(below)) = (numerator.to_u64(), denominator.to_u64()) {
        let (above, below) = (above << above.leading_zeros(), below << below.leading_zeros());
        leading = leading.saturating_sub(i32::from(above < below));
        let bits = mantissa_bits(leading);
        let (quotient, half) = divide_short(above, below, bits);
        (quotient, bits, half)
    } else {
        denominator.shift_left(above.saturating_sub(below));
        numerator.shift_left(below.saturating_sub(above));
        if numerator < denominator {
            numerator.shift_left(1);
            leading = leading.saturating_sub(1);
        }
        let bits = mantissa_bits(leading);
        let (quotient, half) = divide_long(numerator, &denominator, bits);
        (quotient, bits, half)
    };
    if leading > LEADING_EXPONENT_MAX {
        return Extended::Infinite { negative };
    }
    if leading < EXPONENT_MIN.saturating_sub(1) {
        return Extended::ZERO;
    }
    let up = half == Ordering::Greater || half == Ordering::Equal && quotient & 1 == 1;
    let mantissa = u128::from(quotient).wrapping_add(u128::from(up));
    finish(negative, mantissa, leading.saturating_sub(bits as i32).saturating_add(1))
}

/// The first `bits` (at most 64) binary digits of a quotient between 1 and 2, and how the rest compares with half of
/// the last digit. The dividend is doubled first if it is the smaller one; both have their top bit set.
fn divide_short(dividend: u64, divisor: u64, bits: u32) -> (u64, Ordering) {
    let dividend = u128::from(dividend) << u32::from(dividend < divisor);
    let divisor = u128::from(divisor);
    // The dividend is below 2^65, so 63 places to the left still fit.
    let (shift, wide) = match bits.checked_sub(1) {
        // No digit is asked for: the quotient, 1 or more, counts halves.
        None => return (0, dividend.cmp(&divisor)),
        Some(shift) => (shift, dividend << shift),
    };
    debug_assert_eq!(wide >> shift, dividend);
    let (quotient, rest) = (wide.checked_div(divisor).unwrap_or(0), wide.checked_rem(divisor).unwrap_or(0));
    (quotient as u64, (rest << 1).cmp(&divisor))
}

/// [`divide_short`] for numbers of any size; the dividend is not the smaller one.
fn divide_long(mut dividend: Natural, divisor: &Natural, bits: u32) -> (u64, Ordering) {
    let mut quotient = 0u64;
    for _ in 0..bits {
        let bit = dividend >= *divisor;
        if bit {
            dividend.subtract(divisor);
        }
        quotient = quotient << 1 | u64::from(bit);
        dividend.shift_left(1);
    }
    // What is left now counts halves of the last digit.
    (quotient, dividend.cmp(divisor))
}

#[cfg(test)]
mod tests;
