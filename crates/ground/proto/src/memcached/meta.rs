//! Meta commands: two letters, a key, and flags of one letter, some followed by a value.

use super::limits::{DATA_BYTES_MAX, Limits};
use super::line::Words;
use super::parser::{Line, Parser, Progress, TOO_LONG, push, refused};
use super::{Command, Refusal, parse_unsigned};
use crate::request::Arguments;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;

/// The most words of a line.
const WORDS_MAX: usize = 19;

/// The flag of a key that is base64 text.
const BINARY_KEY: u8 = b'b';

/// The key as base64 text, as a client sends it with the flag `b`.
pub fn encode_key(key: &[u8]) -> String {
    STANDARD.encode(key)
}

impl Parser {
    /// `command key [length] flags`. The flags are arguments as they are; a key in base64 is decoded.
    pub(super) fn meta(
        &mut self,
        command: Command,
        line: Line<'_>,
        input: &[u8],
        words: &Words,
        limits: &Limits,
        out: &mut Arguments,
    ) -> Progress {
        let (count, has_data) = (words.len(), command == Command::MetaSet);
        let key = words.bytes(line.bytes, 1);
        match count {
            0 | 1 if command == Command::MetaDebug => return refused(Refusal::Format, line),
            0 | 1 => return refused(Refusal::Unknown, line),
            _ if key.len() > self.key_bytes_max => return refused(Refusal::Format, line),
            2 if has_data => return refused(Refusal::Format, line),
            _ if count > WORDS_MAX => return refused(Refusal::FlagCount, line),
            _ => {}
        }
        let flags = if has_data { 3 } else { 2 }..count;
        let is_binary = flags.clone().any(|index| words.bytes(line.bytes, index).first() == Some(&BINARY_KEY));
        let decoded = if is_binary { STANDARD.decode(key).ok().filter(|key| !key.is_empty()) } else { None };
        let is_wrong = is_binary && decoded.is_none();
        let push_key = |out: &mut Arguments| match decoded {
            Some(key) => out.push_shared(Arc::new(key)).is_some(),
            None => push(words.range(1), out),
        };
        let (mut end, mut data) = (line.end, None);
        if has_data {
            let len = parse_unsigned(words.bytes(line.bytes, 2)).filter(|len| *len <= DATA_BYTES_MAX);
            let Some(len) = len else { return refused(Refusal::Format, line) };
            if len > limits.item_bytes_max as u64 {
                self.skipped_bytes = len.wrapping_add(2);
                if is_wrong {
                    return refused(Refusal::Key, line);
                }
                return match push(words.range(0), out) && push_key(out) {
                    true => Progress::Request { command: Command::SetTooLarge, consumed: line.end },
                    false => Progress::Foreign { what: TOO_LONG },
                };
            }
            let data_end = line.end.wrapping_add(len as usize);
            end = data_end.wrapping_add(2);
            data = Some((line.end, data_end));
            match input.get(data_end..end) {
                None => return Progress::Incomplete,
                Some(b"\r\n") => {}
                Some(_) => return refused(Refusal::Data, Line { end, ..line }),
            }
        }
        if is_wrong {
            return refused(Refusal::Key, Line { end, ..line });
        }
        let mark = out.mark();
        let is_pushed = push(words.range(0), out)
            && push_key(out)
            && data.is_none_or(|data| push(data, out))
            && flags.clone().all(|index| push(words.range(index), out));
        if !is_pushed {
            out.rewind(mark);
            return Progress::Foreign { what: TOO_LONG };
        }
        Progress::Request { command, consumed: end }
    }
}
