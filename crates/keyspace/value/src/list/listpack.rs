//! The size of a list as one of Redis' listpacks: `list-max-listpack-size` limits it and OBJECT ENCODING depends on it.
//!
//! Nothing is stored that way. The size is kept with the elements, so that a list changes its form exactly where
//! Valkey's does, whatever our own forms take.

use base::integer::parse_integer;

/// Bytes of a listpack without elements: its header and its end.
pub(super) const EMPTY_BYTES: u64 = 7;

/// Bytes that a listpack element takes when the list has a limit on elements: more make a list outgrow its packed form.
const SAFETY_BYTES: u64 = 8192;

/// Bytes an element takes in a listpack: how it is encoded, its bytes, and its length once more for the way back.
pub(super) fn element_bytes(element: &[u8]) -> u64 {
    let length = element.len() as u64;
    let encoded = match (parse_integer(element), length) {
        (Some(integer), _) => integer_bytes(integer),
        (None, ..64) => 1 + length,
        (None, ..4096) => 2 + length,
        (None, _) => 5 + length,
    };
    let back = match encoded {
        ..128 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    };
    encoded + back
}

/// Bytes of an integer with its encoding.
fn integer_bytes(integer: i64) -> u64 {
    match integer {
        0..=127 => 1,
        -4096..=4095 => 2,
        -32_768..=32_767 => 3,
        -8_388_608..=8_388_607 => 4,
        -2_147_483_648..=2_147_483_647 => 5,
        _ => 9,
    }
}

/// Up to where a list is packed, from `list-max-listpack-size`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// That many bytes.
    Bytes(u64),
    /// That many elements, and [`SAFETY_BYTES`].
    Elements(u64),
}

impl Limit {
    /// What the setting says: -1 to -5 (and below) are 4 to 64 KiB, 0 is one element.
    pub(super) fn of(setting: i64) -> Self {
        match setting {
            0.. => Self::Elements(setting.unsigned_abs().max(1)),
            _ => Self::Bytes(4096 << (setting.unsigned_abs() - 1).min(4)),
        }
    }

    /// Bytes that it allows at most.
    pub(super) fn bytes_max(self) -> u64 {
        match self {
            Self::Bytes(bytes_max) => bytes_max,
            Self::Elements(_) => SAFETY_BYTES,
        }
    }

    /// Whether a list with this many elements, and this many bytes as a listpack, must leave its packed form. Elements
    /// are counted only if they are limited.
    pub(super) fn is_exceeded(self, bytes: u64, elements: impl FnOnce() -> u64) -> bool {
        match self {
            Self::Bytes(bytes_max) => bytes > bytes_max,
            Self::Elements(elements_max) => bytes > SAFETY_BYTES || elements() > elements_max,
        }
    }

    /// Whether a packed list of this size, and values in this many bytes of changes, are surely within the limit: an
    /// element takes at most twice as much in a listpack as in our packed form (the empty one does), and at least a
    /// byte in each.
    #[inline]
    pub(super) fn surely_holds(self, packed: usize, changes: usize) -> bool {
        let bytes = EMPTY_BYTES.saturating_add(2 * packed as u64).saturating_add(changes as u64);
        let elements = (packed as u64).saturating_add(changes as u64);
        !self.is_exceeded(bytes, || elements)
    }

    /// Whether a tree of this many elements is packed again: below half the limit, so that a list near it is not
    /// converted back and forth.
    pub(super) fn is_well_within(self, bytes: u64, elements: u64) -> bool {
        match self {
            Self::Bytes(bytes_max) => bytes <= bytes_max / 2,
            Self::Elements(elements_max) => bytes <= SAFETY_BYTES && elements <= elements_max / 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes as Valkey's `lpBytes` gives them, taken from its documented encodings.
    #[test]
    fn sizes_are_those_of_a_listpack() {
        for (element, bytes) in [
            ("", 2),
            ("0", 2),
            ("127", 2),
            ("128", 3),
            ("-1", 3),
            ("4096", 4),
            ("-32769", 5),
            ("8388608", 6),
            ("2147483648", 10),
            ("9223372036854775807", 10),
            ("-9223372036854775808", 10),
            ("9223372036854775808", 21),
            ("-0", 4),
            ("007", 5),
            ("+7", 4),
            ("elem0001", 10),
        ] {
            assert_eq!(element_bytes(element.as_bytes()), bytes, "{element}");
        }
        assert_eq!(element_bytes(&[b'x'; 63]), 65);
        assert_eq!(element_bytes(&[b'x'; 64]), 67);
        assert_eq!(element_bytes(&[b'x'; 126]), 130);
        assert_eq!(element_bytes(&[b'x'; 4096]), 4103);
    }

    #[test]
    fn limits_are_bytes_or_elements() {
        let is_exceeded = |setting, bytes, elements| Limit::of(setting).is_exceeded(bytes, || elements);
        assert!(!is_exceeded(-2, 8192, 9999) && is_exceeded(-2, 8193, 1));
        assert!(!is_exceeded(-9, 65_536, 1) && is_exceeded(-9, 65_537, 1));
        assert!(!is_exceeded(3, 100, 3) && is_exceeded(3, 100, 4));
        assert!(is_exceeded(3, 8193, 1) && is_exceeded(0, 100, 2));
        assert!(Limit::of(-2).is_well_within(4096, 9999) && !Limit::of(-2).is_well_within(4097, 1));
        assert!(Limit::of(4).is_well_within(100, 2) && !Limit::of(4).is_well_within(100, 3));
    }
}
