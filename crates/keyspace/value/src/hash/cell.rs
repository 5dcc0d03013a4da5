//! A cell: a field with its value, as packed hashes and leaves of trees hold it.
//!
//! ```text
//! 2 * field length + timed | value length | time, if timed | field | value        lengths and time are varints
//! ```

use base::{UnixMs, varint};

/// A field with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell<'a> {
    /// The field.
    pub field: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// When it is due; `None` means never.
    pub expire_at: Option<UnixMs>,
}

impl<'a> Cell<'a> {
    /// Whether it counts as absent at `now`.
    #[inline]
    pub fn is_due(&self, now: UnixMs) -> bool {
        self.expire_at.is_some_and(|at| at <= now)
    }

    /// Bytes of its packed form.
    #[inline]
    pub fn packed_len(&self) -> usize {
        let time = self.expire_at.map_or(0, |at| varint::len(at as u64));
        varint::len(self.head()) + varint::len(self.value.len() as u64) + time + self.field.len() + self.value.len()
    }

    /// Writes its packed form, of [`Self::packed_len`] bytes, to `place`.
    pub fn write(&self, place: &mut [u8]) {
        let rest = write_varint(place, self.head());
        let mut rest = write_varint(rest, self.value.len() as u64);
        if let Some(at) = self.expire_at {
            rest = write_varint(rest, at as u64);
        }
        let (field, rest) = rest.split_at_mut(self.field.len());
        field.copy_from_slice(self.field);
        rest.copy_from_slice(self.value);
    }

    /// Takes one from the front of packed cells; `None` when the bytes are cut short or malformed.
    #[inline]
    pub fn take(rest: &mut &'a [u8]) -> Option<Self> {
        let (head, value, body) = match **rest {
            // Two short lengths, neither the beginning of a longer one.
            [head, value, ..] if (head | value) & 0x80 == 0 => (u64::from(head), u64::from(value), rest.get(2..)?),
            _ => {
                let mut body = *rest;
                (varint::take(&mut body)?, varint::take(&mut body)?, body)
            }
        };
        let mut body = body;
        let expire_at = if head & 1 == 0 { None } else { Some(UnixMs::try_from(varint::take(&mut body)?).ok()?) };
        let (field, body) = body.split_at_checked(usize::try_from(head >> 1).ok()?)?;
        let (value, body) = body.split_at_checked(usize::try_from(value).ok()?)?;
        *rest = body;
        Some(Self { field, value, expire_at })
    }

    fn head(&self) -> u64 {
        (self.field.len() as u64) << 1 | u64::from(self.expire_at.is_some())
    }
}

/// Cells in a row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cells<'a>(pub &'a [u8]);

impl<'a> Cells<'a> {
    /// Leaves out the cells before that of the field; all of them when there is none.
    #[inline]
    pub fn seek(&mut self, field: &[u8]) {
        // Fields that begin alike are common; those that end alike are not.
        let end = field.last_chunk::<8>();
        let is_it =
            |candidate: &[u8]| candidate.len() == field.len() && candidate.last_chunk() == end && candidate == field;
        loop {
            // Of a short cell without a time, most of the time: where its field and the next cell begin.
            if let [head, value, ref body @ ..] = *self.0
                && (head | value) & 0x80 == 0
                && head & 1 == 0
                && let Some((candidate, behind)) = body.split_at_checked(usize::from(head >> 1))
                && let Some(next) = behind.get(usize::from(value)..)
            {
                if is_it(candidate) {
                    return;
                }
                self.0 = next;
                continue;
            }
            let mut rest = self.0;
            match Cell::take(&mut rest) {
                Some(cell) if is_it(cell.field) => return,
                Some(_) => self.0 = rest,
                None => {
                    self.0 = &[];
                    return;
                }
            }
        }
    }
}

impl<'a> Iterator for Cells<'a> {
    type Item = Cell<'a>;

    #[inline]
    fn next(&mut self) -> Option<Cell<'a>> {
        Cell::take(&mut self.0)
    }
}

/// Writes the encoding of [`varint::put`] and returns the rest of the output.
pub fn write_varint(place: &mut [u8], mut value: u64) -> &mut [u8] {
    let length = varint::len(value);
    let (here, rest) = place.split_at_mut(length);
    for byte in here.iter_mut() {
        *byte = value as u8 | 0x80;
        value >>= 7;
    }
    if let Some(last) = here.last_mut() {
        *last &= 0x7f;
    }
    rest
}
