//! From a line of a collection command to a request.

use super::super::line::Words;
use super::super::parser::{Line, TOO_LONG, push, refused_unless};
use super::super::{Command, Limits, Parser, Progress, Refusal, parse_unsigned};
use super::Arcus;
use super::family::Family;
use super::grammar::{self, Removal, Tail};
use super::line::{Block, Read, Wrong, bare, create, may_create, with_element, words_block};
use super::pipe::Pipe;
use super::tree;
use crate::request::Arguments;

/// The longest field of a map.
const FIELD_BYTES_MAX: usize = 250;

/// The most members that one `sop get` names by a count.
const MEMBERS_MAX: u64 = 1000;

/// Where the words of the family begin: after its name and, for most, the name of the command and the key.
fn words_before(family: Family) -> usize {
    if family == Family::Any { 2 } else { 3 }
}

impl Parser {
    /// A line of this family, and what follows it.
    pub(in super::super) fn collection(
        &mut self,
        family: Family,
        line: Line<'_>,
        (input, limits): (&[u8], &Limits),
        words: &Words,
        out: &mut Arguments,
    ) -> Progress {
        let tail = Tail::of(words.bytes(line.bytes, words.len().wrapping_sub(1)));
        let mark = out.mark();
        let progress = self.collection_alone(family, (line, tail), (input, limits), words, out);
        if matches!(progress, Progress::Incomplete | Progress::Foreign { .. }) {
            return progress;
        }
        match (self.pipe, tail) {
            (Pipe::Closed, Tail::Reply | Tail::Silent) => progress,
            (Pipe::Closed, Tail::Piped) => {
                out.rewind(mark);
                (self.pipe, self.skipped_bytes) = (Pipe::Open, 0);
                pipe_mark(Arcus::PipeBegin, words, out)
            }
            (_, Tail::Piped) => progress,
            _ => {
                self.pipe = Pipe::Ending;
                without_last_byte(progress)
            }
        }
    }

    /// The end of a pipe, after its last request.
    pub(in super::super) fn end_pipe(&mut self, out: &mut Arguments) -> Progress {
        self.pipe = Pipe::Closed;
        push((0, 1), out);
        Progress::Request { command: Command::Arcus(Arcus::PipeEnd), consumed: 1 }
    }

    /// The end of a pipe before a line of another command, which a client may not send there.
    pub(in super::super) fn break_pipe(&mut self, words: &Words, out: &mut Arguments) -> Progress {
        (self.pipe, self.skipped_bytes) = (Pipe::Closed, 0);
        pipe_mark(Arcus::PipeEnd, words, out)
    }

    /// A request without regard to pipes.
    fn collection_alone(
        &mut self,
        family: Family,
        (line, tail): (Line<'_>, Tail),
        (input, limits): (&[u8], &Limits),
        words: &Words,
        out: &mut Arguments,
    ) -> Progress {
        let read = read(family, line, words, (tail, self.key_bytes_max)).and_then(|read| read.within(family, limits));
        let read = match read {
            Ok(read) => read,
            Err(Wrong { refusal, skipped }) => {
                self.skipped_bytes = skipped;
                return refused_unless(tail == Tail::Silent, refusal, line);
            }
        };
        let bytes = match read.block {
            Block::Nothing => None,
            Block::Element(bytes) | Block::Words { bytes, .. } => Some(bytes as usize),
        };
        let start = line.end;
        let end = start.saturating_add(bytes.unwrap_or(0));
        let consumed = if bytes.is_some() { end.saturating_add(2) } else { end };
        let Some(block) = input.get(start..end).filter(|_| input.len() >= consumed) else {
            return Progress::Incomplete;
        };
        let is_whole = bytes.is_none() || input.get(end..consumed) == Some(b"\r\n");
        let is_right = match read.block {
            Block::Words { count, len_max, .. } => grammar::are_keys(block, count, len_max),
            _ => true,
        };
        if !is_whole || !is_right {
            return refused_unless(tail == Tail::Silent, Refusal::Data, Line { end: consumed, ..line });
        }
        if matches!(read.command, Arcus::BopMget | Arcus::BopSmget) {
            return tree::request(read.command, ((start, end), consumed), input, words, out);
        }
        let first = words_before(family);
        let (name_start, _) = words.range(0);
        let (_, name_end) = words.range(first.wrapping_sub(2));
        let last = words.len().wrapping_sub(usize::from(tail != Tail::Reply));
        let tail = if tail == Tail::Reply { (0, 0) } else { words.range(last) };
        let rest = (first..last).filter(|index| Some(*index) != read.left_out).map(|index| words.range(index));
        let arguments = [(name_start, name_end), words.range(first.wrapping_sub(1)), (start, end), tail];
        let mark = out.mark();
        match arguments.into_iter().chain(rest).all(|word| push(word, out)) {
            true => Progress::Request { command: Command::Arcus(read.command), consumed },
            false => {
                out.rewind(mark);
                Progress::Foreign { what: TOO_LONG }
            }
        }
    }
}

/// A pipe begins or ends here, before the line of which nothing is consumed.
fn pipe_mark(command: Arcus, words: &Words, out: &mut Arguments) -> Progress {
    push(words.range(0), out);
    Progress::Request { command: Command::Arcus(command), consumed: 0 }
}

/// The same with its last byte left for [`Parser::end_pipe`].
fn without_last_byte(progress: Progress) -> Progress {
    match progress {
        Progress::Request { command, consumed } => Progress::Request { command, consumed: consumed.wrapping_sub(1) },
        Progress::Nothing { consumed } => Progress::Nothing { consumed: consumed.wrapping_sub(1) },
        progress => progress,
    }
}

/// Reads the words of a line.
fn read(family: Family, line: Line<'_>, words: &Words, (tail, key_bytes_max): (Tail, usize)) -> Result<Read, Wrong> {
    let first = words_before(family);
    let last = words.len().wrapping_sub(usize::from(tail != Tail::Reply));
    if tree::names_keys(family, words.bytes(line.bytes, 1)) {
        let rest: Vec<&[u8]> = (2..words.len()).map(|index| words.bytes(line.bytes, index)).collect();
        return tree::read_many(words.bytes(line.bytes, 1), &rest, key_bytes_max);
    }
    if last < first || words.bytes(line.bytes, first.wrapping_sub(1)).len() > key_bytes_max {
        return Err(Refusal::Format.into());
    }
    let rest: Vec<&[u8]> = (first..last).map(|index| words.bytes(line.bytes, index)).collect();
    let name = words.bytes(line.bytes, first.wrapping_sub(2));
    let read = match family {
        Family::List => list(name, &rest),
        Family::Set => set(name, &rest),
        Family::Map => map(name, &rest),
        Family::Tree => tree::read(name, &rest),
        Family::Any => attributes(name, &rest),
    }?;
    if tail == Tail::Piped && !may_be_piped(read.command) {
        return Err(Refusal::Format.into());
    }
    Ok(Read { left_out: read.left_out.map(|index| index.wrapping_add(first)), ..read })
}

/// Whether a pipe takes this command.
fn may_be_piped(command: Arcus) -> bool {
    matches!(
        command,
        Arcus::LopInsert
            | Arcus::LopDelete
            | Arcus::SopInsert
            | Arcus::SopDelete
            | Arcus::SopExist
            | Arcus::MopInsert
            | Arcus::MopUpsert
            | Arcus::MopUpdate
            | Arcus::MopDelete
            | Arcus::BopInsert
            | Arcus::BopUpsert
            | Arcus::BopUpdate
            | Arcus::BopUpdateEflag
            | Arcus::BopDelete
            | Arcus::BopIncr
            | Arcus::BopDecr
    )
}

fn list(name: &[u8], rest: &[&[u8]]) -> Result<Read, Wrong> {
    let has_range = rest.first().is_some_and(|word| grammar::parse_index_range(word).is_some());
    let behind = rest.get(1..).unwrap_or_default();
    match name {
        b"create" => create(Arcus::LopCreate, rest, Family::List),
        b"insert" => {
            let has_index = rest.first().is_some_and(|word| grammar::parse_index(word).is_some());
            with_element(Arcus::LopInsert, rest, 1, has_index && may_create(rest, 2, Family::List))
        }
        b"delete" => bare(Arcus::LopDelete, has_range && Removal::of_delete(behind).is_some()),
        b"get" => bare(Arcus::LopGet, has_range && Removal::of_read(behind).is_some()),
        _ => Err(Refusal::Format.into()),
    }
}

fn set(name: &[u8], rest: &[&[u8]]) -> Result<Read, Wrong> {
    let behind = rest.get(1..).unwrap_or_default();
    match name {
        b"create" => create(Arcus::SopCreate, rest, Family::Set),
        b"insert" => with_element(Arcus::SopInsert, rest, 0, may_create(rest, 1, Family::Set)),
        b"delete" => with_element(Arcus::SopDelete, rest, 0, Removal::of_delete(behind).is_some()),
        // ARCUS accepts a word after the length and ignores it; its Java client 1.13 sends the length twice.
        b"exist" => with_element(Arcus::SopExist, rest, 0, behind.len() <= 1),
        b"get" => {
            let count = rest.first().and_then(|word| parse_unsigned(word));
            let is_right = count.is_some() && Removal::of_read(behind).is_some();
            match count {
                Some(count) if is_right && count > MEMBERS_MAX => Err(Refusal::TooManyMembers.into()),
                _ => bare(Arcus::SopGet, is_right),
            }
        }
        _ => Err(Refusal::Format.into()),
    }
}

fn map(name: &[u8], rest: &[&[u8]]) -> Result<Read, Wrong> {
    let behind = rest.get(2..).unwrap_or_default();
    let with_field = |command, is_right| match rest.first() {
        Some(field) if field.len() > FIELD_BYTES_MAX => Err(Refusal::FieldTooLong.into()),
        _ => with_element(command, rest, 1, is_right),
    };
    match name {
        b"create" => create(Arcus::MopCreate, rest, Family::Map),
        b"insert" => with_field(Arcus::MopInsert, may_create(rest, 2, Family::Map)),
        b"upsert" => with_field(Arcus::MopUpsert, may_create(rest, 2, Family::Map)),
        b"update" => with_field(Arcus::MopUpdate, behind.is_empty()),
        b"delete" => fields(Arcus::MopDelete, rest, Removal::of_delete(behind).is_some()),
        b"get" => fields(Arcus::MopGet, rest, Removal::of_read(behind).is_some()),
        _ => Err(Refusal::Format.into()),
    }
}

/// `lenfields numfields`, and the fields in the block unless both are 0.
fn fields(command: Arcus, rest: &[&[u8]], is_right: bool) -> Result<Read, Wrong> {
    let number = |index: usize| {
        rest.get(index).and_then(|word| parse_unsigned(word)).filter(|number| *number <= i32::MAX as u64)
    };
    let (Some(bytes), Some(count)) = (number(0), number(1)) else { return Err(Refusal::Format.into()) };
    if !is_right || (bytes == 0) != (count == 0) {
        return Err(Refusal::Format.into());
    }
    if bytes == 0 {
        return bare(command, true);
    }
    words_block(command, (bytes, count), u64::MAX, FIELD_BYTES_MAX)
}

/// The most attributes that one `setattr` names.
const SET_ATTRIBUTES_MAX: usize = 5;
/// The most attributes that one `getattr` names.
const ATTRIBUTES_MAX: usize = 11;

fn attributes(name: &[u8], rest: &[&[u8]]) -> Result<Read, Wrong> {
    match name {
        b"getattr" => bare(Arcus::GetAttr, rest.len() <= ATTRIBUTES_MAX),
        _ => {
            let are_pairs = rest.iter().all(|word| word.contains(&b'='));
            bare(Arcus::SetAttr, are_pairs && (1..=SET_ATTRIBUTES_MAX).contains(&rest.len()))
        }
    }
}
