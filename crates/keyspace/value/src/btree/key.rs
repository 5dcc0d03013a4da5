//! Keys: numbers of 64 bits, or byte strings.

use crate::wire::take_byte;
use std::cmp::Ordering;

/// A byte string of at most 31 bytes, which owns them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ByteKey {
    len: u8,
    bytes: [u8; ByteKey::BYTES_MAX],
}

impl ByteKey {
    /// The most bytes.
    pub const BYTES_MAX: usize = 31;

    /// These bytes; `None` when they are too many.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut key = Self { len: u8::try_from(bytes.len()).ok()?, bytes: [0; Self::BYTES_MAX] };
        key.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(key)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl Ord for ByteKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl PartialOrd for ByteKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Debug for ByteKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02x?}", self.bytes())
    }
}

/// The key of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bkey {
    /// A number.
    Number(u64),
    /// One byte or more; a string precedes those that it begins.
    Bytes(ByteKey),
}

impl Default for Bkey {
    fn default() -> Self {
        Self::Number(0)
    }
}

/// Set in the first byte of a number's key; the rest is how many bytes follow.
const NUMBER: u8 = 0x20;

impl Bkey {
    /// Most bytes of [`Self::put`].
    pub(super) const ENCODED_MAX: usize = 1 + ByteKey::BYTES_MAX;

    /// Whether both are numbers, or both byte strings.
    pub fn is_like(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Number(_), Self::Number(_)) | (Self::Bytes(_), Self::Bytes(_)))
    }

    /// How far this key is above `low`, which is of the same kind and not above: of byte strings the difference of both
    /// as fractions, in as many bytes as the longer one has.
    pub fn minus(&self, low: &Self) -> Self {
        match (self, low) {
            (Self::Number(high), Self::Number(low)) => Self::Number(high.saturating_sub(*low)),
            (Self::Bytes(high), Self::Bytes(low)) => {
                let (len, mut borrow) = (high.len.max(low.len), 0i16);
                let mut bytes = [0; ByteKey::BYTES_MAX];
                for index in (0..usize::from(len)).rev() {
                    let difference = i16::from(high.bytes[index]) - i16::from(low.bytes[index]) - borrow;
                    borrow = i16::from(difference < 0);
                    bytes[index] = difference.rem_euclid(256) as u8;
                }
                Self::Bytes(ByteKey { len, bytes })
            }
            _ => Self::default(),
        }
    }

    /// Whether this distance, which [`Self::minus`] gave, is more than `max`.
    pub fn is_beyond(&self, max: &Self) -> bool {
        match (self, max) {
            (Self::Bytes(distance), Self::Bytes(max)) => distance.bytes > max.bytes,
            _ => self > max,
        }
    }

    /// Appends it: a byte of kind and length, then the bytes, of a number the shortest big-endian ones.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Number(number) => {
                let bytes = number.to_be_bytes();
                let skipped = (number.leading_zeros() / 8) as usize;
                out.push(NUMBER | (bytes.len() - skipped) as u8);
                out.extend_from_slice(&bytes[skipped..]);
            }
            Self::Bytes(key) => {
                out.push(key.len);
                out.extend_from_slice(key.bytes());
            }
        }
    }

    /// Takes what [`Self::put`] appended; `None` when the bytes are cut short or not the shortest.
    #[inline]
    pub fn take(rest: &mut &[u8]) -> Option<Self> {
        let first = take_byte(rest)?;
        let len = usize::from(first & !NUMBER);
        // A number with eight bytes from where it begins, as nearly all are, is read at once.
        if let (true, Some(bytes)) = (first & NUMBER != 0 && matches!(len, 1..=8), rest.first_chunk()) {
            let number = u64::from_be_bytes(*bytes) >> (64 - 8 * len);
            *rest = &rest[len..];
            return (bytes[0] != 0).then_some(Self::Number(number));
        }
        let (bytes, tail) = rest.split_at_checked(len)?;
        *rest = tail;
        if first & NUMBER == 0 {
            return ByteKey::new(bytes).filter(|key| key.len > 0).map(Self::Bytes);
        }
        if bytes.len() > 8 || bytes.first() == Some(&0) {
            return None;
        }
        Some(Self::Number(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))))
    }
}
