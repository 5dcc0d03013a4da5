//! Patterns of Lua 5.1, matched in steps. The results are those of Lua's own `lstrlib.c`.
//!
//! A pattern ends at its first zero, as there. Reading past an end gives a zero.

use crate::lua::budget::STEP_BYTES;
use crate::lua::stack::{Raise, Stack};

/// More captures are refused.
const CAPTURES_MAX: usize = 32;

/// More nested repetitions, options and captures are refused: each takes room on the processor's stack.
const DEPTH_MAX: usize = 500;

/// What a pair of parentheses has matched.
#[derive(Clone, Copy)]
enum Capture {
    /// It is not closed.
    Open(usize),
    /// A place in the subject.
    Place(usize),
    /// From the first place to before the second.
    Bytes(usize, usize),
}

/// A capture, as callers get it.
pub enum Captured<'s> {
    Bytes(&'s [u8]),
    /// A position, from 1 on.
    Position(usize),
}

/// A match in progress. Places are indices of the subject and of the pattern.
pub struct Matcher<'s> {
    subject: &'s [u8],
    pattern: &'s [u8],
    captures: [Capture; CAPTURES_MAX],
    count: usize,
    depth: usize,
    /// Steps that the stack does not know of.
    steps: usize,
}

/// As many steps are counted here before they are spent.
const STEPS_KEPT: usize = 256;

type Found = Result<Option<usize>, Raise>;

impl<'s> Matcher<'s> {
    pub fn new(subject: &'s [u8], pattern: &'s [u8]) -> Self {
        Self { subject, pattern, captures: [Capture::Open(0); CAPTURES_MAX], count: 0, depth: 0, steps: 0 }
    }

    /// Where a match from `from` on ends. The pattern begins at `pattern_from`.
    ///
    /// # Errors
    /// The pattern is malformed, or the script is over.
    pub fn find(&mut self, stack: &mut Stack, from: usize, pattern_from: usize) -> Found {
        (self.count, self.depth) = (0, 0);
        self.run(stack, from, pattern_from)
    }

    /// How many values a match gives: the whole of it without captures.
    pub fn value_count(&self, gives_whole: bool) -> usize {
        if self.count == 0 && gives_whole { 1 } else { self.count }
    }

    /// A capture of the match from `from` to `end`; the first is the whole match where there are none.
    ///
    /// # Errors
    /// There is none, or it is not closed.
    pub fn captured(&self, index: usize, from: usize, end: usize) -> Result<Captured<'s>, Raise> {
        match self.captures[..self.count].get(index) {
            None if index == 0 => Ok(Captured::Bytes(self.whole(from, end))),
            None => Err(Raise::Located(c"invalid capture index")),
            Some(Capture::Open(_)) => Err(Raise::Located(c"unfinished capture")),
            Some(Capture::Place(at)) => Ok(Captured::Position(at + 1)),
            Some(Capture::Bytes(from, end)) => Ok(Captured::Bytes(&self.subject[*from..*end])),
        }
    }

    /// What a match from `from` to `end` has matched.
    pub fn whole(&self, from: usize, end: usize) -> &'s [u8] {
        &self.subject[from..end]
    }

    fn spend(&mut self, stack: &mut Stack, steps: usize) -> Result<(), Raise> {
        self.steps += steps;
        if self.steps < STEPS_KEPT { Ok(()) } else { stack.spend(std::mem::take(&mut self.steps)) }
    }

    fn byte(&self, at: usize) -> u8 {
        self.subject.get(at).copied().unwrap_or(0)
    }

    fn item(&self, at: usize) -> u8 {
        self.pattern.get(at).copied().unwrap_or(0)
    }

    fn run(&mut self, stack: &mut Stack, from: usize, pattern_from: usize) -> Found {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Raise::Located(c"pattern too complex"));
        }
        let found = self.run_items(stack, from, pattern_from);
        self.depth -= 1;
        found
    }

    fn run_items(&mut self, stack: &mut Stack, mut at: usize, mut item: usize) -> Found {
        loop {
            self.spend(stack, 1)?;
            match (self.item(item), self.item(item + 1)) {
                (b'(', b')') => return self.open(stack, at, item + 2, Capture::Place(at)),
                (b'(', _) => return self.open(stack, at, item + 1, Capture::Open(at)),
                (b')', _) => return self.close(stack, at, item + 1),
                (b'%', b'b') => {
                    let Some(end) = self.balance(stack, at, item + 2)? else { return Ok(None) };
                    (at, item) = (end, item + 4);
                }
                (b'%', b'f') => {
                    item += 2;
                    if self.item(item) != b'[' {
                        return Err(Raise::Located(c"missing '[' after '%f' in pattern"));
                    }
                    let end = self.item_end(stack, item)?;
                    let before = if at == 0 { 0 } else { self.byte(at - 1) };
                    if self.is_in_set(before, item, end - 1) || !self.is_in_set(self.byte(at), item, end - 1) {
                        return Ok(None);
                    }
                    item = end;
                }
                (b'%', digit @ b'0'..=b'9') => {
                    let Some(end) = self.repeat_capture(stack, at, digit)? else { return Ok(None) };
                    (at, item) = (end, item + 2);
                }
                (0, _) => return Ok(Some(at)),
                (b'$', 0) => return Ok((at == self.subject.len()).then_some(at)),
                _ => {
                    let end = self.item_end(stack, item)?;
                    let matches = self.is_one(at, item, end);
                    match self.item(end) {
                        b'?' => {
                            if matches && let found @ Some(_) = self.run(stack, at + 1, end + 1)? {
                                return Ok(found);
                            }
                            item = end + 1;
                        }
                        b'*' => return self.expand(stack, at, item, end),
                        b'+' => return if matches { self.expand(stack, at + 1, item, end) } else { Ok(None) },
                        b'-' => return self.expand_least(stack, at, item, end),
                        _ if !matches => return Ok(None),
                        _ => (at, item) = (at + 1, end),
                    }
                }
            }
        }
    }

    /// Where the item of the pattern ends.
    fn item_end(&mut self, stack: &mut Stack, item: usize) -> Result<usize, Raise> {
        let mut at = item + 1;
        match self.item(item) {
            b'%' if self.item(at) == 0 => Err(Raise::Located(c"malformed pattern (ends with '%')")),
            b'%' => Ok(at + 1),
            b'[' => {
                at += usize::from(self.item(at) == b'^');
                loop {
                    let byte = self.item(at);
                    if byte == 0 {
                        return Err(Raise::Located(c"malformed pattern (missing ']')"));
                    }
                    at += 1;
                    at += usize::from(byte == b'%' && self.item(at) != 0);
                    if self.item(at) == b']' {
                        self.spend(stack, (at - item) / 16)?;
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(at),
        }
    }

    /// Whether the byte at a place of the subject matches the item, which ends at `end`.
    fn is_one(&self, at: usize, item: usize, end: usize) -> bool {
        let Some(byte) = self.subject.get(at).copied() else { return false };
        match self.item(item) {
            b'.' => true,
            b'%' => is_of_class(byte, self.item(item + 1)),
            b'[' => self.is_in_set(byte, item, end - 1),
            same => same == byte,
        }
    }

    /// Whether a byte is in the set from `[` at `item` to `]` at `end`.
    fn is_in_set(&self, byte: u8, item: usize, end: usize) -> bool {
        let is_positive = self.item(item + 1) != b'^';
        let mut at = item + usize::from(!is_positive);
        loop {
            at += 1;
            if at >= end {
                return !is_positive;
            }
            let first = self.item(at);
            let is_in = if first == b'%' {
                at += 1;
                is_of_class(byte, self.item(at))
            } else if self.item(at + 1) == b'-' && at + 2 < end {
                at += 2;
                first <= byte && byte <= self.item(at)
            } else {
                first == byte
            };
            if is_in {
                return is_positive;
            }
        }
    }

    /// The end of a balanced piece, whose first and last byte the pattern has at `item`.
    fn balance(&mut self, stack: &mut Stack, at: usize, item: usize) -> Found {
        let (first, last) = (self.item(item), self.item(item + 1));
        if first == 0 || last == 0 {
            return Err(Raise::Located(c"unbalanced pattern"));
        }
        if self.byte(at) != first {
            return Ok(None);
        }
        let mut depth = 1_usize;
        let subject = self.subject;
        for (place, byte) in subject.iter().enumerate().skip(at + 1) {
            self.spend(stack, 1)?;
            if *byte == last {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(place + 1));
                }
            } else if *byte == first {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// As many as possible, then fewer.
    fn expand(&mut self, stack: &mut Stack, at: usize, item: usize, end: usize) -> Found {
        let mut count = 0;
        while self.is_one(at + count, item, end) {
            self.spend(stack, 1 + (end - item) / 16)?;
            count += 1;
        }
        loop {
            if let found @ Some(_) = self.run(stack, at + count, end + 1)? {
                return Ok(found);
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    /// As few as possible, then more.
    fn expand_least(&mut self, stack: &mut Stack, mut at: usize, item: usize, end: usize) -> Found {
        loop {
            if let found @ Some(_) = self.run(stack, at, end + 1)? {
                return Ok(found);
            }
            if !self.is_one(at, item, end) {
                return Ok(None);
            }
            self.spend(stack, 1 + (end - item) / 16)?;
            at += 1;
        }
    }

    fn open(&mut self, stack: &mut Stack, at: usize, item: usize, capture: Capture) -> Found {
        let Some(place) = self.captures.get_mut(self.count) else {
            return Err(Raise::Located(c"too many captures"));
        };
        *place = capture;
        self.count += 1;
        let found = self.run(stack, at, item)?;
        if found.is_none() {
            self.count -= 1;
        }
        Ok(found)
    }

    fn close(&mut self, stack: &mut Stack, at: usize, item: usize) -> Found {
        let last_open = |capture: &Capture| matches!(capture, Capture::Open(_));
        let Some(index) = self.captures[..self.count].iter().rposition(last_open) else {
            return Err(Raise::Located(c"invalid pattern capture"));
        };
        let Capture::Open(from) = self.captures[index] else { return Ok(None) };
        self.captures[index] = Capture::Bytes(from, at);
        let found = self.run(stack, at, item)?;
        if found.is_none() {
            self.captures[index] = Capture::Open(from);
        }
        Ok(found)
    }

    /// The end of what a capture has matched, where it stands here again.
    fn repeat_capture(&mut self, stack: &mut Stack, at: usize, digit: u8) -> Found {
        let index = usize::from(digit).wrapping_sub(usize::from(b'1'));
        let (from, end) = match self.captures[..self.count].get(index) {
            None | Some(Capture::Open(_)) => return Err(Raise::Located(c"invalid capture index")),
            // Longer than any subject, as the length of a position is in Lua.
            Some(Capture::Place(_)) => return Ok(None),
            Some(Capture::Bytes(from, end)) => (*from, *end),
        };
        self.spend(stack, (end - from) / STEP_BYTES)?;
        let is_again = self.subject[at..].starts_with(&self.subject[from..end]);
        Ok(is_again.then_some(at + end - from))
    }
}

/// Whether a byte is of the class of a letter, as `%a`; or the same byte, where it is no letter of a class.
fn is_of_class(byte: u8, class: u8) -> bool {
    let is_of = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => matches!(byte, b' ' | 9..=13),
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is_of == class.is_ascii_lowercase()
}
