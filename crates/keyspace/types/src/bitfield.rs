//! Integers of any width at any bit of a string.
//!
//! B1. The caller checks all fields before the first write; nothing here fails after the first change but a fetch of a
//!     row that was just read, which does not happen.
//! B2. A request that writes extends the string to its last written field at once, even when every write then overflows
//!     and is refused: Redis stores this too.

use crate::string::{self, string_value};
use crate::{TypeError, range};
use engine::{Effect, Encoding, Key, Keyspace, NotifyClass, Value};

/// Bytes that a field of 64 bits can touch.
const WINDOW_BYTES: usize = 9;

/// The width of a field and whether its first bit is a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    signed: bool,
    bits: u8,
}

impl Width {
    /// 1 to 64 bits signed, 1 to 63 unsigned; `None` otherwise.
    pub fn new(signed: bool, bits: i64) -> Option<Self> {
        let most = if signed { 64 } else { 63 };
        let bits = u8::try_from(bits).ok().filter(|bits| (1..=most).contains(bits))?;
        Some(Self { signed, bits })
    }

    /// Bits.
    pub fn bits(self) -> u64 {
        u64::from(self.bits)
    }

    /// Smallest and largest number.
    fn bounds(self) -> (i128, i128) {
        let values = 1i128 << self.bits;
        if self.signed {
            ((values >> 1).wrapping_neg(), (values >> 1).wrapping_sub(1))
        } else {
            (0, values.wrapping_sub(1))
        }
    }

    /// A number to store in a signed field. If it is so far below a narrow field that Redis' check of it leaves 64
    /// bits, a number with the same low bits above the field: there Redis saturates upwards.
    fn as_redis_checks(self, number: i64) -> i128 {
        let (_, most) = self.bounds();
        let number = i128::from(number);
        let wraps = self.bits < 64 && number < most.wrapping_sub(i128::from(i64::MAX));
        if wraps { number.wrapping_add(1 << 64) } else { number }
    }

    /// The number that these low bits are.
    fn number(self, bits: u64) -> i64 {
        let unused = 64u32.saturating_sub(u32::from(self.bits));
        let high = bits << unused;
        if self.signed { (high as i64) >> unused } else { (high >> unused) as i64 }
    }
}

/// What happens when a number does not fit its field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// Its low bits are stored.
    #[default]
    Wrap,
    /// The nearest number that fits is stored.
    Saturate,
    /// Nothing is stored.
    Fail,
}

/// What to do with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Gives its number.
    Get,
    /// Stores a number and gives the one before.
    Set(i64, Overflow),
    /// Adds a number and gives the sum.
    Increment(i64, Overflow),
}

/// One step of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The first bit.
    pub offset: u64,
    /// How wide it is.
    pub width: Width,
    /// What to do.
    pub action: Action,
}

impl Field {
    fn writes(&self) -> bool {
        self.action != Action::Get
    }

    fn end_byte(&self) -> u64 {
        self.offset.saturating_add(self.width.bits()).div_ceil(8)
    }
}

/// Runs the steps in order and shows what each gives: `None` for a write that was refused ([`Overflow::Fail`]).
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn run(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    fields: &[Field],
    show: &mut dyn FnMut(Option<i64>),
) -> Result<(), TypeError> {
    let Some(len) = fields.iter().filter(|field| field.writes()).map(Field::end_byte).max() else {
        let bytes = string::get(ks, key)?.map_or(&[][..], Value::bytes);
        for field in fields {
            show(Some(field.width.number(Window::new(bytes, field).bits(field))));
        }
        return Ok(());
    };
    let mut is_changed = prepare(ks, key, len)?;
    for field in fields {
        let mut window = match ks.peek_value(key)? {
            Some(entry) => Window::new(string_value(&entry)?.bytes(), field),
            None => Window::new(&[], field),
        };
        let old = field.width.number(window.bits(field));
        let (result, new) = field.compute(old);
        if let Some(new) = new.filter(|new| *new != old) {
            window.put(field, new as u64);
            ks.apply(&Effect::Splice { key: *key, offset: field.offset / 8, bytes: window.bytes(field) });
            is_changed = true;
        }
        show(result);
    }
    if is_changed {
        ks.notify(NotifyClass::STRING, "setbit", key);
    }
    Ok(())
}

/// Makes the string at least `len` bytes long and counted as edited (B2). False when it was long enough.
fn prepare(ks: &mut dyn Keyspace, key: &Key<'_>, len: u64) -> Result<bool, TypeError> {
    let (present, old, encoding) = match ks.read_to_edit(key)? {
        None => (false, 0, Encoding::EDITED),
        Some(entry) => (true, string_value(&entry)?.len() as u64, entry.encoding),
    };
    if old < len {
        range::write(ks, key, present, len.saturating_sub(1), Value::Bytes(&[0]));
    } else {
        range::mark_edited(ks, key, old, encoding);
    }
    Ok(old < len)
}

impl Field {
    /// What a step gives and what it stores, from the number that is there.
    fn compute(&self, old: i64) -> (Option<i64>, Option<i64>) {
        let (number, overflow) = match self.action {
            Action::Get => return (Some(old), None),
            // An unsigned field takes a negative number for the large one with the same bits.
            Action::Set(number, overflow) if self.width.signed => (self.width.as_redis_checks(number), overflow),
            Action::Set(number, overflow) => (i128::from(number as u64), overflow),
            Action::Increment(by, overflow) => (i128::from(old).wrapping_add(i128::from(by)), overflow),
        };
        let (least, most) = self.width.bounds();
        let fits = (least..=most).contains(&number);
        let new = match overflow {
            Overflow::Fail if !fits => return (None, None),
            Overflow::Saturate => number.clamp(least, most) as i64,
            Overflow::Wrap | Overflow::Fail => self.width.number(number as u64),
        };
        let result = if matches!(self.action, Action::Set(..)) { old } else { new };
        (Some(result), Some(new))
    }
}

/// The bytes of a string that a field touches, zeros beyond its end.
struct Window {
    bytes: [u8; WINDOW_BYTES],
}

impl Window {
    fn new(string: &[u8], field: &Field) -> Self {
        let start = usize::try_from(field.offset / 8).unwrap_or(usize::MAX);
        let mut bytes = [0; WINDOW_BYTES];
        let there = string.get(start..).unwrap_or_default();
        bytes.iter_mut().zip(there).for_each(|(to, from)| *to = *from);
        Self { bytes }
    }

    /// The window as one number, its first byte highest, and how far to the right of it the field ends.
    fn wide(&self, field: &Field) -> (u128, u64) {
        let wide = self.bytes.iter().fold(0u128, |wide, byte| wide << 8 | u128::from(*byte));
        let behind = (WINDOW_BYTES as u64).saturating_mul(8).saturating_sub(field.offset % 8);
        (wide, behind.saturating_sub(field.width.bits()))
    }

    /// The field's bits, lowest last; higher bits are arbitrary.
    fn bits(&self, field: &Field) -> u64 {
        let (wide, behind) = self.wide(field);
        (wide >> behind) as u64
    }

    fn put(&mut self, field: &Field, bits: u64) {
        let (wide, behind) = self.wide(field);
        let mask = (1u128 << field.width.bits()).wrapping_sub(1);
        let wide = wide & !(mask << behind) | (u128::from(bits) & mask) << behind;
        self.bytes
            .iter_mut()
            .rev()
            .enumerate()
            .for_each(|(index, byte)| *byte = (wide >> index.saturating_mul(8)) as u8);
    }

    /// The bytes that the field touches.
    fn bytes(&self, field: &Field) -> &[u8] {
        let len = field.end_byte().saturating_sub(field.offset / 8);
        self.bytes.get(..len as usize).unwrap_or(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    fn field(signed: bool, bits: i64, offset: u64, action: Action) -> Field {
        Field { offset, width: Width::new(signed, bits).expect("a width"), action }
    }

    /// A number put anywhere is read back, and no other bit of the window changes.
    #[test]
    fn fields_do_not_touch_their_neighbours() {
        let mut rng = Rng::new(9);
        for _ in 0..20_000 {
            let signed = rng.one_in(2);
            let bits = 1 + rng.below(if signed { 64 } else { 63 }) as i64;
            let field = field(signed, bits, rng.below(8), Action::Get);
            let mut string = [0u8; WINDOW_BYTES];
            rng.fill(&mut string);
            let (mut window, number) = (Window::new(&string, &field), field.width.number(rng.next_u64()));
            window.put(&field, number as u64);
            assert_eq!(field.width.number(window.bits(&field)), number);
            for at in 0..72u64 {
                let bit = |bytes: &[u8]| bytes[(at / 8) as usize] >> (7 - at % 8) & 1;
                let inside = at >= field.offset && at < field.offset + field.width.bits();
                assert!(inside || bit(&window.bytes) == bit(&string), "bit {at} of {field:?}");
            }
        }
    }

    #[test]
    fn overflow_wraps_saturates_or_fails() {
        use Overflow::{Fail, Saturate, Wrap};
        for (signed, bits, action, old, expected) in [
            (false, 8, Action::Set(256, Wrap), 5, (Some(5), Some(0))),
            (false, 8, Action::Set(-1, Saturate), 5, (Some(5), Some(255))),
            (false, 8, Action::Set(256, Fail), 5, (None, None)),
            (true, 8, Action::Set(200, Wrap), 5, (Some(5), Some(-56))),
            (true, 8, Action::Set(-200, Saturate), 5, (Some(5), Some(-128))),
            (true, 8, Action::Set(i64::MIN + 128, Saturate), 5, (Some(5), Some(-128))),
            (true, 8, Action::Set(i64::MIN + 127, Saturate), 5, (Some(5), Some(127))),
            (true, 64, Action::Set(i64::MIN, Saturate), 5, (Some(5), Some(i64::MIN))),
            (true, 8, Action::Set(i64::MIN, Wrap), 5, (Some(5), Some(0))),
            (true, 8, Action::Increment(i64::MIN, Saturate), -1, (Some(-128), Some(-128))),
            (false, 63, Action::Increment(-1, Saturate), 0, (Some(0), Some(0))),
            (false, 8, Action::Increment(-1000, Saturate), 5, (Some(0), Some(0))),
            (false, 8, Action::Increment(10, Wrap), 250, (Some(4), Some(4))),
            (true, 64, Action::Increment(1, Wrap), i64::MAX, (Some(i64::MIN), Some(i64::MIN))),
            (true, 64, Action::Increment(-1, Fail), i64::MIN, (None, None)),
            (true, 64, Action::Increment(1, Saturate), i64::MAX, (Some(i64::MAX), Some(i64::MAX))),
            (false, 63, Action::Increment(1, Wrap), i64::MAX, (Some(0), Some(0))),
            (true, 1, Action::Set(1, Wrap), 0, (Some(0), Some(-1))),
        ] {
            assert_eq!(field(signed, bits, 0, action).compute(old), expected, "{action:?} of {bits} bits on {old}");
        }
    }
}
