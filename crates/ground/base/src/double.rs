//! Doubles as text.

use crate::grisu::{self, Decimal};

/// A double as Valkey writes it: few digits that read back to the same double, without a point if it is an integer,
/// with an exponent if the plain form would be long; `inf`, `-inf` and `nan` for the others.
///
/// ```
/// # use base::double::DoubleText;
/// assert_eq!(DoubleText::new(0.1).as_str(), "0.1");
/// assert_eq!(DoubleText::new(3.0).as_str(), "3");
/// assert_eq!(DoubleText::new(1e21).as_str(), "1e+21");
/// assert_eq!(DoubleText::new(-1.5e-7).as_str(), "-1.5e-7");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct DoubleText {
    bytes: [u8; LEN_MAX],
    len: usize,
}

/// Sign, 18 digits, and `0.000000` or up to six zeros at the end.
const LEN_MAX: usize = 32;

/// Whole numbers up to here are written with all their digits.
const WHOLE_MAX: f64 = (1i64 << 62) as f64;

impl DoubleText {
    /// The text of `value`.
    pub fn new(value: f64) -> Self {
        Self::with_whole(value, WHOLE_MAX)
    }

    /// The text of `value` as Valkey's digest has it: whole numbers take the form with an exponent where others would.
    ///
    /// ```
    /// # use base::double::DoubleText;
    /// assert_eq!(DoubleText::in_digest(1e9).as_str(), "1e+9");
    /// assert_eq!(DoubleText::in_digest(0.0).as_str(), "0");
    /// ```
    pub fn in_digest(value: f64) -> Self {
        Self::with_whole(value, 0.0)
    }

    /// The text, with whole numbers up to `whole_max` in all their digits.
    fn with_whole(value: f64, whole_max: f64) -> Self {
        let mut text = Self { bytes: [0; LEN_MAX], len: 0 };
        if value.is_nan() {
            text.push(b"nan");
            return text;
        }
        if value.is_sign_negative() {
            text.push(b"-");
        }
        let value = value.abs();
        if value.is_infinite() {
            text.push(b"inf");
        } else if value <= whole_max && value.trunc() == value {
            text.push(itoa::Buffer::new().format(value as u64).as_bytes());
        } else {
            text.push_decimal(grisu::digits(value));
        }
        text
    }

    /// The text, as bytes of ASCII.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// The plain form where it needs few zeros, otherwise the form with an exponent.
    fn push_decimal(&mut self, decimal: Decimal) {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(decimal.digits).as_bytes();
        let count = digits.len() as i32;
        let exponent = decimal.exponent;
        // The exponent of the form with one digit before the point.
        let scientific = exponent.wrapping_add(count).wrapping_sub(1);
        if exponent >= 0 && scientific.unsigned_abs() < digits.len().wrapping_add(7) as u32 {
            self.push(digits);
            self.push_zeros(exponent);
        } else if exponent < 0 && (exponent > -7 || scientific.unsigned_abs() < 4) {
            let whole = count.wrapping_add(exponent);
            if whole <= 0 {
                self.push(b"0.");
                self.push_zeros(whole.wrapping_neg());
                self.push(digits);
            } else {
                let (whole, fraction) = digits.split_at_checked(whole as usize).unwrap_or((digits, &[]));
                self.push(whole);
                self.push(b".");
                self.push(fraction);
            }
        } else {
            let (first, others) = digits.split_at_checked(1).unwrap_or((digits, &[]));
            self.push(first);
            if !others.is_empty() {
                self.push(b".");
                self.push(others);
            }
            self.push(if scientific < 0 { b"e-" } else { b"e+" });
            self.push(itoa::Buffer::new().format(scientific.unsigned_abs()).as_bytes());
        }
    }

    fn push(&mut self, text: &[u8]) {
        let end = self.len.wrapping_add(text.len());
        if let Some(place) = self.bytes.get_mut(self.len..end) {
            place.copy_from_slice(text);
            self.len = end;
        }
    }

    fn push_zeros(&mut self, count: i32) {
        for _ in 0..count {
            self.push(b"0");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `testdata/doubles.txt` holds the bits of doubles and the text that Valkey 9.1 gave for them, as scores in RESP3.
    #[test]
    fn texts_are_those_of_valkey() {
        let mut seen = 0;
        for case in include_str!("../testdata/doubles.txt").lines().filter(|line| !line.starts_with('#')) {
            let (bits, text) = case.split_once(' ').unwrap();
            let value = f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
            assert_eq!(DoubleText::new(value).as_str(), text, "{value:e}");
            seen += 1;
        }
        assert!(seen > 1000);
    }

    #[test]
    fn numbers_that_are_none_have_names() {
        assert_eq!(DoubleText::new(f64::INFINITY).as_str(), "inf");
        assert_eq!(DoubleText::new(f64::NEG_INFINITY).as_str(), "-inf");
        assert_eq!(DoubleText::new(f64::NAN).as_str(), "nan");
        assert_eq!(DoubleText::new(-f64::NAN).as_str(), "nan");
        assert_eq!(DoubleText::new(-0.0).as_str(), "-0");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        /// Every double reads back exactly.
        #[test]
        fn texts_read_back(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(!value.is_nan());
            prop_assert_eq!(DoubleText::new(value).as_str().parse::<f64>().unwrap().to_bits(), bits);
        }
    }
}
