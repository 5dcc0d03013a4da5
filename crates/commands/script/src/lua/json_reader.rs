//! The decoder of `cjson`. Messages count characters as the C library does.

use crate::lua::json_settings::Settings;
use crate::lua::stack::{Raise, Stack};

/// A piece of the text.
#[derive(Clone, Copy, PartialEq)]
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    /// Its bytes are in the scratch.
    String,
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

impl Token {
    fn name(self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::String => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Error(what) => what,
        }
    }
}

/// Where the decoder is.
struct Reader {
    at: usize,
    depth: i32,
    /// Where the last token, or the error in it, is.
    token_at: usize,
    settings: Settings,
}

/// `cjson.decode`.
pub fn decode(stack: &mut Stack) -> Result<i32, Raise> {
    if stack.top() != 1 {
        return Err(Raise::Argument(1, c"expected 1 argument"));
    }
    if let [0, ..] | [_, 0, ..] = stack.check_text(1)?
        && stack.len(1) >= 2
    {
        return Err(Raise::Located(c"JSON parser does not support UTF-16 or UTF-32"));
    }
    let settings = stack.with_home(|home| home.json);
    let mut reader = Reader { at: 0, depth: 0, token_at: 0, settings };
    let token = reader.next(stack);
    reader.push(stack, token)?;
    match reader.next(stack) {
        Token::End => Ok(1),
        token => Err(reader.unexpected(stack, "the end", token)),
    }
}

impl Reader {
    /// The byte `by` bytes ahead; 0 at the end, as after a string of C.
    fn ahead(&self, stack: &Stack, by: usize) -> u8 {
        stack.string(1).and_then(|text| text.get(self.at + by)).copied().unwrap_or(0)
    }

    fn begins_with(&self, stack: &Stack, word: &[u8]) -> bool {
        stack.string(1).and_then(|text| text.get(self.at..)).is_some_and(|rest| rest.starts_with(word))
    }

    fn next(&mut self, stack: &mut Stack) -> Token {
        while matches!(self.ahead(stack, 0), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        self.token_at = self.at;
        let token = match self.ahead(stack, 0) {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            0 => return Token::End,
            b'"' => return self.string(stack),
            b'-' | b'0'..=b'9' => return self.number(stack),
            b't' if self.begins_with(stack, b"true") => return self.word(4, Token::Boolean(true)),
            b'f' if self.begins_with(stack, b"false") => return self.word(5, Token::Boolean(false)),
            b'n' if self.begins_with(stack, b"null") => return self.word(4, Token::Null),
            b'f' | b'i' | b'I' | b'n' | b'N' | b't' | b'+'
                if self.settings.decode_invalid_numbers && self.is_invalid_number(stack) =>
            {
                return self.number_as_it_is(stack);
            }
            _ => return Token::Error("invalid token"),
        };
        self.at += 1;
        token
    }

    fn word(&mut self, len: usize, token: Token) -> Token {
        self.at += len;
        token
    }

    fn number(&mut self, stack: &Stack) -> Token {
        if !self.settings.decode_invalid_numbers && self.is_invalid_number(stack) {
            return self.error("invalid number");
        }
        self.number_as_it_is(stack)
    }

    fn number_as_it_is(&mut self, stack: &Stack) -> Token {
        let (number, len) = stack.number_prefix(1, self.at);
        if len == 0 {
            return self.error("invalid number");
        }
        self.at += len;
        Token::Number(number)
    }

    /// Whether it is a number of C and not of JSON: with a plus, hexadecimal, leading zeros, infinity, not a number.
    fn is_invalid_number(&self, stack: &Stack) -> bool {
        let from = usize::from(self.ahead(stack, 0) == b'-');
        match self.ahead(stack, from) {
            b'+' => from == 0,
            b'0' => matches!(self.ahead(stack, from + 1), b'x' | b'X' | b'0'..=b'9'),
            ..=b'9' => false,
            _ => {
                let three = [0, 1, 2].map(|by| self.ahead(stack, from + by).to_ascii_lowercase());
                matches!(&three, b"inf" | b"nan")
            }
        }
    }

    fn error(&mut self, what: &'static str) -> Token {
        self.token_at = self.at;
        Token::Error(what)
    }

    fn string(&mut self, stack: &Stack) -> Token {
        stack.clear_scratch();
        self.at += 1;
        loop {
            match self.ahead(stack, 0) {
                b'"' => break,
                0 => return self.error("unexpected end of string"),
                b'\\' => {
                    let plain = match self.ahead(stack, 1) {
                        b'u' => match self.unicode(stack) {
                            Some(len) => {
                                self.at += len;
                                continue;
                            }
                            None => return self.error("invalid unicode escape code"),
                        },
                        b'b' => 8,
                        b't' => 9,
                        b'n' => 10,
                        b'f' => 12,
                        b'r' => 13,
                        same @ (b'"' | b'\\' | b'/') => same,
                        _ => return self.error("invalid escape code"),
                    };
                    stack.write(&[plain]);
                    self.at += 2;
                }
                _ => {
                    let rest = stack.string(1).and_then(|text| text.get(self.at..)).unwrap_or_default();
                    let len = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0)).unwrap_or(rest.len());
                    stack.write(&rest[..len]);
                    self.at += len;
                }
            }
        }
        self.at += 1;
        Token::String
    }

    /// Appends the character of an escape, and gives the length of the escape.
    fn unicode(&self, stack: &Stack) -> Option<usize> {
        let four = |from: usize| (0..4).try_fold(0, |code, by| Some(code << 4 | self.hex(stack, from + by)?));
        let code = four(2)?;
        let (code, len) = match code {
            0xD800..=0xDBFF => {
                if self.ahead(stack, 6) != b'\\' || self.ahead(stack, 7) != b'u' {
                    return None;
                }
                let low = four(8).filter(|low| (0xDC00..=0xDFFF).contains(low))?;
                (((code & 0x3FF) << 10 | low & 0x3FF) + 0x1_0000, 12)
            }
            0xDC00..=0xDFFF => return None,
            code => (code, 6),
        };
        stack.write(char::from_u32(code)?.encode_utf8(&mut [0; 4]).as_bytes());
        Some(len)
    }

    fn hex(&self, stack: &Stack, by: usize) -> Option<u32> {
        char::from(self.ahead(stack, by)).to_digit(16)
    }

    /// Pushes the value that begins with a token.
    fn push(&mut self, stack: &mut Stack, token: Token) -> Result<(), Raise> {
        stack.spend(4)?;
        match token {
            Token::String => {
                stack.spend_bytes(stack.scratch_len())?;
                stack.push_scratch();
            }
            Token::Number(number) => stack.push_number(number),
            Token::Boolean(value) => stack.push_boolean(value),
            Token::Null => stack.push_null(),
            Token::ObjectBegin => return self.push_object(stack),
            Token::ArrayBegin => return self.push_array(stack),
            _ => return Err(self.unexpected(stack, "value", token)),
        }
        Ok(())
    }

    fn descend(&mut self, stack: &Stack) -> Result<(), Raise> {
        self.depth += 1;
        if self.depth <= self.settings.decode_depth_max && stack.has_room(6) {
            return Ok(());
        }
        stack.clear_scratch();
        stack.write(b"Found too many nested data structures (");
        stack.write_integer(i64::from(self.depth));
        stack.write(b") at character ");
        stack.write_integer(i64::try_from(self.at).unwrap_or(i64::MAX));
        Err(Raise::Written)
    }

    fn push_object(&mut self, stack: &mut Stack) -> Result<(), Raise> {
        self.descend(stack)?;
        stack.push_table(0, 0);
        let mut token = self.next(stack);
        while token != Token::ObjectEnd {
            if token != Token::String {
                return Err(self.unexpected(stack, "object key string", token));
            }
            stack.push_scratch();
            token = self.next(stack);
            if token != Token::Colon {
                return Err(self.unexpected(stack, "colon", token));
            }
            token = self.next(stack);
            self.push(stack, token)?;
            stack.raw_set(-3);
            token = self.next(stack);
            match token {
                Token::ObjectEnd => break,
                Token::Comma => token = self.next(stack),
                _ => return Err(self.unexpected(stack, "comma or object end", token)),
            }
            if token == Token::ObjectEnd {
                return Err(self.unexpected(stack, "object key string", token));
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn push_array(&mut self, stack: &mut Stack) -> Result<(), Raise> {
        self.descend(stack)?;
        stack.push_table(0, 0);
        let mut token = self.next(stack);
        let mut index = 1;
        while token != Token::ArrayEnd || index > 1 {
            self.push(stack, token)?;
            stack.raw_set_index(-2, index);
            index += 1;
            match self.next(stack) {
                Token::ArrayEnd => break,
                Token::Comma => token = self.next(stack),
                token => return Err(self.unexpected(stack, "comma or array end", token)),
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn unexpected(&self, stack: &Stack, expected: &str, token: Token) -> Raise {
        stack.clear_scratch();
        stack.write(b"Expected ");
        stack.write(expected.as_bytes());
        stack.write(b" but found ");
        stack.write(token.name().as_bytes());
        stack.write(b" at character ");
        stack.write_integer(i64::try_from(self.token_at + 1).unwrap_or(i64::MAX));
        Raise::Written
    }
}
