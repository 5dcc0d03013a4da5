//! From replies to values of Lua, and from the value a script returns to its reply.

use crate::lua::number::to_integer;
use crate::lua::stack::{Kind, Stack};
use command::limits::REPLY_BYTES_MAX;
use proto::Protocol;

/// Pushes a reply as a value; `at` moves past it. `reply` is a whole reply of this server.
pub fn push_value(stack: &mut Stack, reply: &[u8], at: &mut usize) {
    if !stack.has_room(4) {
        return stack.push_nil();
    }
    let Some((kind, line)) = next_line(reply, at) else { return stack.push_nil() };
    match kind {
        b':' => stack.push_number(integer(line) as f64),
        b'+' => push_field(stack, "ok", line),
        b'-' => push_error(stack, line),
        b'$' => match bulk(reply, at, line) {
            Some(bytes) => stack.push_bytes(bytes),
            None => stack.push_boolean(false),
        },
        b'*' if line == b"-1" => stack.push_boolean(false),
        b'*' | b'>' => push_array(stack, reply, at, count(line)),
        b'%' => push_map(stack, reply, at, count(line)),
        b'~' => push_set(stack, reply, at, count(line)),
        b',' => {
            stack.push_table(0, 1);
            stack.push_number(double(line));
            stack.raw_set_field(-2, "double");
        }
        b'#' => stack.push_boolean(line == b"t"),
        b'(' => push_field(stack, "big_number", line),
        b'=' => push_verbatim(stack, bulk(reply, at, line).unwrap_or_default()),
        _ => stack.push_nil(),
    }
}

/// Pushes the table of an error that a command has answered, which is counted already.
fn push_error(stack: &mut Stack, text: &[u8]) {
    stack.push_table(0, 2);
    stack.push_bytes(text);
    stack.raw_set_field(-2, "err");
    stack.push_boolean(true);
    stack.raw_set_field(-2, "ignore_error_stats_update");
}

fn push_field(stack: &mut Stack, name: &str, text: &[u8]) {
    stack.push_table(0, 1);
    stack.push_bytes(text);
    stack.raw_set_field(-2, name);
}

fn push_array(stack: &mut Stack, reply: &[u8], at: &mut usize, count: usize) {
    stack.push_table(count, 0);
    for index in 1..=i32::try_from(count).unwrap_or(i32::MAX) {
        push_value(stack, reply, at);
        stack.raw_set_index(-2, index);
    }
}

fn push_map(stack: &mut Stack, reply: &[u8], at: &mut usize, count: usize) {
    stack.push_table(0, 1);
    stack.push_table(0, count);
    for _ in 0..count {
        push_value(stack, reply, at);
        push_value(stack, reply, at);
        stack.raw_set(-3);
    }
    stack.raw_set_field(-2, "map");
}

fn push_set(stack: &mut Stack, reply: &[u8], at: &mut usize, count: usize) {
    stack.push_table(0, 1);
    stack.push_table(0, count);
    for _ in 0..count {
        push_value(stack, reply, at);
        stack.push_boolean(true);
        stack.raw_set(-3);
    }
    stack.raw_set_field(-2, "set");
}

fn push_verbatim(stack: &mut Stack, bytes: &[u8]) {
    let (format, text) = (bytes.get(..3).unwrap_or_default(), bytes.get(4..).unwrap_or_default());
    stack.push_table(0, 1);
    stack.push_table(0, 2);
    stack.push_bytes(text);
    stack.raw_set_field(-2, "string");
    stack.push_bytes(format);
    stack.raw_set_field(-2, "format");
    stack.raw_set_field(-2, "verbatim_string");
}

/// The kind and the first line of the reply at `at`.
fn next_line<'r>(reply: &'r [u8], at: &mut usize) -> Option<(u8, &'r [u8])> {
    let rest = reply.get(*at..)?;
    let (kind, text) = rest.split_first()?;
    let end = text.iter().position(|byte| *byte == b'\r')?;
    *at += end + 3;
    Some((*kind, &text[..end]))
}

/// The bytes of a string whose length was read; `None` for nothing.
fn bulk<'r>(reply: &'r [u8], at: &mut usize, line: &[u8]) -> Option<&'r [u8]> {
    let len = usize::try_from(integer(line)).ok()?;
    let bytes = reply.get(*at..*at + len)?;
    *at += len + 2;
    Some(bytes)
}

fn integer(line: &[u8]) -> i64 {
    base::integer::parse_integer(line).unwrap_or(0)
}

fn count(line: &[u8]) -> usize {
    usize::try_from(integer(line)).unwrap_or(0)
}

fn double(line: &[u8]) -> f64 {
    std::str::from_utf8(line).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

/// Writes the value on top as the script's reply: all of it, or an error.
pub fn write_value(stack: &mut Stack) {
    let Some(begin) = stack.with_host(|_, host| host.reply().mark()) else { return };
    if write(stack).is_none() {
        stack.with_host(|_, host| {
            host.reply().rewind(begin);
            host.reply().error(command::error::REPLY_TOO_LONG_TEXT);
        });
    }
}

/// Writes the value on top. `None` when the reply has become too long; the caller answers that.
fn write(stack: &mut Stack) -> Option<()> {
    if stack.with_host(|_, host| host.reply().copied_len())? > REPLY_BYTES_MAX {
        return None;
    }
    if !stack.has_room(6) {
        return stack.with_host(|_, host| host.reply().error("ERR reached lua stack limit"));
    }
    match stack.kind(-1) {
        Kind::String => stack.with_host(|_, host| host.reply().bulk(stack.string(-1).unwrap_or_default())),
        Kind::Boolean => stack.with_host(|_, host| {
            let value = stack.truth(-1);
            match host.protocol() {
                Protocol::Resp3 => host.reply().boolean(value),
                Protocol::Resp2 if value => host.reply().integer(1),
                Protocol::Resp2 => host.reply().null(),
            }
        }),
        Kind::Number => stack.with_host(|_, host| host.reply().integer(to_integer(stack.number(-1)))),
        Kind::Table => write_table(stack),
        _ => stack.with_host(|_, host| host.reply().null()),
    }
}

/// Writes a table: what it is follows from its fields.
fn write_table(stack: &mut Stack) -> Option<()> {
    for (name, write) in FORMS {
        stack.raw_get_field(-1, name);
        let written = write(stack);
        stack.pop(1);
        match written {
            Form::Other => {}
            Form::Written => return Some(()),
            Form::TooLong => return None,
        }
    }
    let open = stack.with_host(|_, host| host.reply().begin_array())?;
    let mut count = 0;
    let mut result = Some(());
    while result.is_some() {
        stack.raw_get_index(-1, i32::try_from(count + 1).ok()?);
        if stack.kind(-1) == Kind::Nil {
            stack.pop(1);
            break;
        }
        result = write(stack);
        stack.pop(1);
        count += 1;
    }
    stack.with_host(|_, host| host.reply().end(open, count))?;
    result
}

/// Whether a field's value is what makes its table something else than an array.
enum Form {
    Other,
    Written,
    TooLong,
}

type WriteForm = fn(&mut Stack) -> Form;

/// The fields by which a table is something else than an array, in the order in which they are looked for.
const FORMS: [(&str, WriteForm); 7] = [
    ("err", |stack| write_line(stack, |reply, text| reply.error(text))),
    ("ok", |stack| write_line(stack, |reply, text| reply.simple(text))),
    ("double", write_double),
    ("big_number", write_big_number),
    ("verbatim_string", write_verbatim),
    ("map", |stack| write_pairs(stack, true)),
    ("set", |stack| write_pairs(stack, false)),
];

fn write_line(stack: &mut Stack, write: fn(&mut proto::ReplyBuffer, &[u8])) -> Form {
    let Some(text) = stack.string(-1) else { return Form::Other };
    // Up to the first zero, as text of C.
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    stack.with_host(|_, host| write(host.reply(), text));
    Form::Written
}

fn write_double(stack: &mut Stack) -> Form {
    if stack.kind(-1) != Kind::Number {
        return Form::Other;
    }
    stack.with_host(|_, host| host.reply().double(stack.number(-1)));
    Form::Written
}

fn write_big_number(stack: &mut Stack) -> Form {
    let Some(text) = stack.string(-1) else { return Form::Other };
    let text: Vec<u8> = text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect();
    stack.with_host(|_, host| host.reply().big_number(&text));
    Form::Written
}

fn write_verbatim(stack: &mut Stack) -> Form {
    if stack.kind(-1) != Kind::Table {
        return Form::Other;
    }
    stack.raw_get_field(-1, "format");
    stack.raw_get_field(-2, "string");
    let is_verbatim = stack.kind(-2) == Kind::String && stack.kind(-1) == Kind::String;
    if is_verbatim {
        let format = stack.string(-2).unwrap_or_default();
        let mut three = *b"   ";
        three.iter_mut().zip(format).for_each(|(to, from)| *to = if from.is_ascii_graphic() { *from } else { b' ' });
        let format = std::str::from_utf8(&three).unwrap_or("txt");
        stack.with_host(|_, host| host.reply().verbatim(format, stack.string(-1).unwrap_or_default()));
    }
    stack.pop(2);
    if is_verbatim { Form::Written } else { Form::Other }
}

/// Writes the table on top as a map, or its keys as a set.
fn write_pairs(stack: &mut Stack, is_map: bool) -> Form {
    if stack.kind(-1) != Kind::Table {
        return Form::Other;
    }
    let open = stack.with_host(|_, host| if is_map { host.reply().begin_map() } else { host.reply().begin_set() });
    let Some(open) = open else { return Form::TooLong };
    let (mut count, mut result) = (0, Some(()));
    stack.push_nil();
    while result.is_some() && stack.next(-2) {
        // The key is written from a copy, since writing looks at it alone.
        stack.push_value(-2);
        result = write(stack);
        stack.pop(1);
        if is_map && result.is_some() {
            result = write(stack);
        }
        stack.pop(1);
        count += 1;
    }
    if result.is_none() {
        stack.pop(1);
    }
    stack.with_host(|_, host| host.reply().end(open, count));
    if result.is_some() { Form::Written } else { Form::TooLong }
}
