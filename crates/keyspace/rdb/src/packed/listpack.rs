//! Listpacks, since Redis 5.0: each element ends with its own length, so they can be read backwards.

use super::{Cursor, int24};
use crate::error::Flaw;
use crate::strings::Strings;

const PACKING: &str = "listpack";

/// Bytes of the total length and the count.
const HEADER_LEN: usize = 6;

/// The end marker, in the place of an element.
const END: u8 = 0xff;

/// The count, if the real one does not fit.
const MANY: u16 = u16::MAX;

/// An element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element<'a> {
    /// A string.
    String(&'a [u8]),
    /// A string that is an integer.
    Integer(i64),
}

impl Element<'_> {
    /// Appends it.
    pub fn push_to(self, out: &mut Strings) {
        match self {
            Self::String(string) => out.push(string),
            Self::Integer(number) => out.push_integer(number),
        }
    }
}

/// Iterates over all elements, in order.
pub struct Elements<'a> {
    cursor: Cursor<'a>,
    count: u16,
    seen: u64,
    is_done: bool,
}

impl<'a> Elements<'a> {
    /// Opens a whole listpack.
    pub fn of(bytes: &'a [u8]) -> Result<Self, Flaw> {
        let mut cursor = Cursor::new(PACKING, bytes);
        let total = u32::from_le_bytes(cursor.array("a header")?);
        let count = u16::from_le_bytes(cursor.array("a header")?);
        cursor.check_total(total)?;
        Ok(Self { cursor, count, seen: 0, is_done: false })
    }

    /// A fault at the next position.
    pub fn flaw(&self, expected: &'static str) -> Flaw {
        self.cursor.flaw(self.cursor.at, expected)
    }

    /// The next element; `None` at the end, if it is where the header says.
    pub fn take(&mut self) -> Result<Option<Element<'a>>, Flaw> {
        if self.is_done {
            return Ok(None);
        }
        if self.cursor.peek() == Some(END) {
            self.cursor.at += 1;
            self.cursor.check_end()?;
            if self.count != MANY && u64::from(self.count) != self.seen {
                return Err(self.cursor.flaw(HEADER_LEN - 2, "the number of its elements"));
            }
            self.is_done = true;
            return Ok(None);
        }
        let start = self.cursor.at;
        let element = take_element(&mut self.cursor)?;
        let len = self.cursor.at - start;
        check_backward_len(&mut self.cursor, len)?;
        self.seen += 1;
        Ok(Some(element))
    }

    /// The next element, which must exist.
    pub fn need(&mut self, expected: &'static str) -> Result<Element<'a>, Flaw> {
        let flaw = self.flaw(expected);
        self.take()?.ok_or(flaw)
    }

    /// The next element, which must be an integer; `None` at the end.
    pub fn take_integer(&mut self, expected: &'static str) -> Result<Option<i64>, Flaw> {
        let flaw = self.flaw(expected);
        match self.take()? {
            Some(Element::Integer(number)) => Ok(Some(number)),
            Some(Element::String(_)) => Err(flaw),
            None => Ok(None),
        }
    }

    /// The next element, which must exist and be an integer.
    pub fn need_integer(&mut self, expected: &'static str) -> Result<i64, Flaw> {
        let flaw = self.flaw(expected);
        self.take_integer(expected)?.ok_or(flaw)
    }
}

fn take_element<'a>(cursor: &mut Cursor<'a>) -> Result<Element<'a>, Flaw> {
    const STRING: &str = "a string";
    const INTEGER: &str = "an integer";
    let start = cursor.at;
    let first = cursor.byte("an element")?;
    let len = match first {
        0x00..=0x7f => return Ok(Element::Integer(i64::from(first))),
        0x80..=0xbf => usize::from(first & 0x3f),
        0xc0..=0xdf => {
            let value = u16::from_be_bytes([first & 0x1f, cursor.byte(INTEGER)?]);
            // 13 bits with a sign.
            return Ok(Element::Integer(i64::from((value << 3).cast_signed() >> 3)));
        }
        0xe0..=0xef => usize::from(u16::from_be_bytes([first & 0x0f, cursor.byte(STRING)?])),
        0xf0 => usize::try_from(u32::from_le_bytes(cursor.array(STRING)?)).unwrap_or(usize::MAX),
        0xf1 => return Ok(Element::Integer(i64::from(i16::from_le_bytes(cursor.array(INTEGER)?)))),
        0xf2 => return Ok(Element::Integer(int24(cursor.array(INTEGER)?))),
        0xf3 => return Ok(Element::Integer(i64::from(i32::from_le_bytes(cursor.array(INTEGER)?)))),
        0xf4 => return Ok(Element::Integer(i64::from_le_bytes(cursor.array(INTEGER)?))),
        0xf5..=0xff => return Err(cursor.flaw(start, "an element")),
    };
    cursor.take(len, STRING).map(Element::String)
}

/// Checks the length after an element: seven bits a byte, the lowest last, all but the first with the high bit set.
fn check_backward_len(cursor: &mut Cursor<'_>, len: usize) -> Result<(), Flaw> {
    let mut expected = [0; 5];
    let written = put_backward_len(len, &mut expected);
    let at = cursor.at;
    if cursor.take(written.len(), "the length of the element before")? == written {
        return Ok(());
    }
    Err(cursor.flaw(at, "the length of the element before"))
}

fn put_backward_len(len: usize, room: &mut [u8; 5]) -> &[u8] {
    let mut rest = len;
    let mut used = 0;
    for byte in room.iter_mut().rev() {
        *byte = (rest & 0x7f) as u8 | 0x80;
        rest >>= 7;
        used += 1;
        if rest == 0 {
            *byte &= 0x7f;
            break;
        }
    }
    room.get(room.len() - used..).unwrap_or_default()
}

/// Appends all elements.
pub fn read(bytes: &[u8], out: &mut Strings) -> Result<(), Flaw> {
    let mut elements = Elements::of(bytes)?;
    while let Some(element) = elements.take()? {
        element.push_to(out);
    }
    Ok(())
}

/// A listpack under construction.
pub struct Builder {
    bytes: Vec<u8>,
    count: u64,
}

impl Builder {
    /// An empty one.
    pub fn new() -> Self {
        Self { bytes: vec![0; HEADER_LEN], count: 0 }
    }

    /// Appends an integer.
    pub fn push_integer(&mut self, number: i64) {
        let start = self.bytes.len();
        if let Ok(small) = u8::try_from(number)
            && small < 0x80
        {
            self.bytes.push(small);
        } else if let Ok(small) = i16::try_from(number) {
            self.bytes.push(0xf1);
            self.bytes.extend(small.to_le_bytes());
        } else if let Ok(middle) = i32::try_from(number) {
            self.bytes.push(0xf3);
            self.bytes.extend(middle.to_le_bytes());
        } else {
            self.bytes.push(0xf4);
            self.bytes.extend(number.to_le_bytes());
        }
        self.end_element(start);
    }

    /// Appends a string, below 4 GiB.
    pub fn push_string(&mut self, string: &[u8]) {
        let start = self.bytes.len();
        match string.len() {
            len @ 0..=0x3f => self.bytes.push(0x80 | len as u8),
            len @ 0x40..=0xfff => self.bytes.extend((0xe000 | len as u16).to_be_bytes()),
            len => {
                self.bytes.push(0xf0);
                self.bytes.extend((len as u32).to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(string);
        self.end_element(start);
    }

    fn end_element(&mut self, start: usize) {
        let mut room = [0; 5];
        let backward = put_backward_len(self.bytes.len() - start, &mut room);
        self.bytes.extend_from_slice(backward);
        self.count += 1;
    }

    /// The finished listpack.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.push(END);
        let total = (self.bytes.len() as u32).to_le_bytes();
        let count = u16::try_from(self.count).unwrap_or(MANY).to_le_bytes();
        for (byte, value) in self.bytes.iter_mut().zip(total.into_iter().chain(count)) {
            *byte = value;
        }
        self.bytes
    }
}
