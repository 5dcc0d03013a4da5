//! Natural numbers of any size: as much of their arithmetic as reading and writing an extended number takes.

use std::cmp::Ordering;

/// A natural number. The most significant limb is not zero, so zero has no limbs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Natural {
    /// Base 2^32, least significant first.
    limbs: Vec<u32>,
}

const LIMB_BITS: u32 = u32::BITS;

/// The largest power of ten in a limb, and its digits.
const DECIMAL_LIMB: u64 = 1_000_000_000;
const DECIMAL_LIMB_DIGITS: usize = 9;

/// The largest power of five that fits a limb: 5^13 < 2^32 < 5^14.
const FIVES_MAX: usize = 13;

impl Natural {
    pub(super) fn one() -> Self {
        Self { limbs: vec![1] }
    }

    /// The number these digits (not characters) write in a base of at most 16.
    pub(super) fn from_digits(digits: impl Iterator<Item = u32>, base: u32) -> Self {
        let mut number = Self { limbs: Vec::new() };
        // As many digits as fit one limb go in at once.
        let (mut scale, mut part) = (1u32, 0u32);
        for digit in digits {
            scale = scale.wrapping_mul(base);
            part = part.wrapping_mul(base).wrapping_add(digit);
            if scale >= 1 << 24 {
                number.multiply_add(scale, part);
                (scale, part) = (1, 0);
            }
        }
        number.multiply_add(scale, part);
        number
    }

    pub(super) fn is_zero(&self) -> bool {
        self.limbs.is_empty()
    }

    /// The number, if it fits 64 bits.
    pub(super) fn to_u64(&self) -> Option<u64> {
        match *self.limbs.as_slice() {
            [] => Some(0),
            [low] => Some(u64::from(low)),
            [low, high] => Some(u64::from(high) << LIMB_BITS | u64::from(low)),
            _ => None,
        }
    }

    /// How many binary digits it has.
    pub(super) fn bit_count(&self) -> usize {
        let top = self.limbs.last().map_or(0, |limb| LIMB_BITS.wrapping_sub(limb.leading_zeros()) as usize);
        self.limbs.len().saturating_sub(1).saturating_mul(LIMB_BITS as usize).saturating_add(top)
    }

    /// `self * factor + term`
    fn multiply_add(&mut self, factor: u32, term: u32) {
        let mut carry = u64::from(term);
        for limb in &mut self.limbs {
            // (2^32 - 1)^2 + (2^32 - 1) is below 2^64.
            let product = u64::from(*limb).wrapping_mul(u64::from(factor)).wrapping_add(carry);
            *limb = product as u32;
            carry = product >> LIMB_BITS;
        }
        if carry != 0 {
            self.limbs.push(carry as u32);
        }
    }

    /// `self * 5^exponent`
    pub(super) fn multiply_by_power_of_five(&mut self, exponent: usize) {
        let mut rest = exponent;
        while rest > 0 {
            let step = rest.min(FIVES_MAX);
            self.multiply_add(5u32.wrapping_pow(step as u32), 0);
            rest = rest.saturating_sub(step);
        }
    }

    /// `self * 2^bits`
    pub(super) fn shift_left(&mut self, bits: usize) {
        if self.is_zero() {
            return;
        }
        const BITS: usize = LIMB_BITS as usize;
        self.multiply_add(1 << (bits % BITS), 0);
        self.limbs.splice(..0, std::iter::repeat_n(0, bits / BITS));
    }

    /// `self - other`, which is not larger.
    pub(super) fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        let others = other.limbs.iter().copied().chain(std::iter::repeat(0));
        for (limb, subtrahend) in self.limbs.iter_mut().zip(others) {
            let (difference, first) = limb.overflowing_sub(subtrahend);
            let (difference, second) = difference.overflowing_sub(u32::from(borrow));
            *limb = difference;
            borrow = first || second;
        }
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }

    /// The decimal text.
    pub(super) fn to_decimal(&self) -> String {
        let mut limbs = self.limbs.clone();
        let mut groups = Vec::new();
        while !limbs.is_empty() {
            let mut rest = 0u64;
            for limb in limbs.iter_mut().rev() {
                let part = rest << LIMB_BITS | u64::from(*limb);
                *limb = (part / DECIMAL_LIMB) as u32;
                rest = part % DECIMAL_LIMB;
            }
            groups.push(rest);
            while limbs.last() == Some(&0) {
                limbs.pop();
            }
        }
        let mut groups = groups.into_iter().rev();
        let mut text = groups.next().unwrap_or(0).to_string();
        groups.for_each(|group| text.push_str(&format!("{group:0DECIMAL_LIMB_DIGITS$}")));
        text
    }
}

impl PartialOrd for Natural {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Natural {
    fn cmp(&self, other: &Self) -> Ordering {
        self.limbs.len().cmp(&other.limbs.len()).then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn natural(text: &str) -> Natural {
        Natural::from_digits(text.bytes().map(|byte| u32::from(byte - b'0')), 10)
    }

    #[test]
    fn digits_read_and_write_alike() {
        for text in ["0", "1", "999999999", "1000000000", "4294967296", "340282366920938463463374607431768211456"] {
            assert_eq!(natural(text).to_decimal(), text);
        }
        assert_eq!(
            Natural::from_digits([15, 15, 15, 15, 15, 15, 15, 15, 15].into_iter(), 16).to_decimal(),
            "68719476735"
        );
    }

    #[test]
    fn arithmetic_agrees_with_128_bits() {
        let (a, b) = (0x1234_5678_9abc_def0_u128 << 30, 0xffff_ffff_ffff_u128);
        let (mut x, y) = (natural(&a.to_string()), natural(&b.to_string()));
        assert!(x > y);
        assert_eq!(x.bit_count(), 91);
        x.subtract(&y);
        assert_eq!(x.to_decimal(), (a - b).to_string());
        x.shift_left(33);
        assert_eq!(x.to_decimal(), ((a - b) << 33).to_string());
        let mut fives = Natural::one();
        fives.multiply_by_power_of_five(30);
        assert_eq!(fives.to_decimal(), 5u128.pow(30).to_string());
        x.subtract(&x.clone());
        assert!(x.is_zero());
    }
}
