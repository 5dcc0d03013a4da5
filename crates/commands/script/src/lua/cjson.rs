//! The library `cjson`, as the C library of that name in Valkey: its encoder, and its settings.
//!
//! Settings last for the script that makes them: other scripts of the same state do not see them.

use crate::lua::install::register;
use crate::lua::json_reader;
use crate::lua::json_settings::{InvalidNumbers, Settings};
use crate::lua::number::{to_integer, write_general};
use crate::lua::stack::{Kind, Native, Raise, Stack};

const FUNCTIONS: &[(&str, Native)] = &[
    ("encode", encode),
    ("decode", json_reader::decode),
    ("encode_sparse_array", set_sparse_array),
    ("encode_max_depth", |stack| set_number(stack, |json| &mut json.encode_depth_max, i32::MAX)),
    ("decode_max_depth", |stack| set_number(stack, |json| &mut json.decode_depth_max, i32::MAX)),
    ("encode_number_precision", |stack| set_number(stack, |json| &mut json.precision, 14)),
    ("encode_keep_buffer", |stack| set_switch(stack, |json| &mut json.keeps_buffer)),
    ("encode_invalid_numbers", set_invalid_numbers),
    ("decode_invalid_numbers", |stack| set_switch(stack, |json| &mut json.decode_invalid_numbers)),
    ("new", |stack| {
        push(stack);
        Ok(1)
    }),
];

/// Pushes the table.
pub fn push(stack: &mut Stack) {
    stack.push_table(0, 16);
    register(stack, FUNCTIONS);
    stack.push_null();
    stack.raw_set_field(-2, "null");
    for (name, text) in [("_NAME", "cjson"), ("_VERSION", "2.1.0")] {
        stack.push_str(text);
        stack.raw_set_field(-2, name);
    }
}

fn encode(stack: &mut Stack) -> Result<i32, Raise> {
    if stack.top() != 1 {
        return Err(Raise::Argument(1, c"expected 1 argument"));
    }
    stack.clear_scratch();
    let settings = stack.with_home(|home| home.json);
    append(stack, &settings, 0)?;
    stack.push_scratch();
    Ok(1)
}

/// Appends the value on top.
fn append(stack: &mut Stack, settings: &Settings, depth: i32) -> Result<(), Raise> {
    stack.spend(4)?;
    match stack.kind(-1) {
        Kind::String => append_string(stack, -1),
        Kind::Number => append_number(stack, settings, -1)?,
        Kind::Boolean => stack.write(if stack.truth(-1) { b"true" } else { b"false" }),
        Kind::Nil => stack.write(b"null"),
        Kind::Other if stack.is_null(-1) => stack.write(b"null"),
        Kind::Table => append_table(stack, settings, depth + 1)?,
        _ => return Err(refuse(stack, -1, b"type not supported")),
    }
    Ok(())
}

fn append_table(stack: &mut Stack, settings: &Settings, depth: i32) -> Result<(), Raise> {
    if depth > settings.encode_depth_max || !stack.has_room(5) {
        stack.clear_scratch();
        stack.write(b"Cannot serialise, excessive nesting (");
        stack.write_integer(i64::from(depth));
        stack.write(b")");
        return Err(Raise::Written);
    }
    match array_len(stack, settings)? {
        Some(len @ 1..) => append_array(stack, settings, depth, len),
        _ => append_object(stack, settings, depth),
    }
}

/// The length of the table on top as an array; `None` when it has other keys.
fn array_len(stack: &mut Stack, settings: &Settings) -> Result<Option<i32>, Raise> {
    let (mut max, mut count) = (0_i64, 0_i64);
    stack.push_nil();
    while stack.next(-2) {
        stack.spend(2)?;
        let key = stack.number(-2);
        if stack.kind(-2) == Kind::Number && key >= 1.0 && key.floor() == key {
            max = max.max(to_integer(key));
            count += 1;
            stack.pop(1);
            continue;
        }
        stack.pop(2);
        return Ok(None);
    }
    let is_sparse = settings.sparse_ratio > 0
        && max > count.saturating_mul(i64::from(settings.sparse_ratio))
        && max > i64::from(settings.sparse_safe);
    match i32::try_from(max) {
        Ok(max) if !is_sparse => Ok(Some(max)),
        _ if settings.sparse_convert => Ok(None),
        _ => Err(refuse(stack, -1, b"excessively sparse array")),
    }
}

fn append_array(stack: &mut Stack, settings: &Settings, depth: i32, len: i32) -> Result<(), Raise> {
    stack.write(b"[");
    for index in 1..=len {
        if index > 1 {
            stack.write(b",");
        }
        stack.raw_get_index(-1, index);
        append(stack, settings, depth)?;
        stack.pop(1);
    }
    stack.write(b"]");
    Ok(())
}

fn append_object(stack: &mut Stack, settings: &Settings, depth: i32) -> Result<(), Raise> {
    stack.write(b"{");
    let mut is_first = true;
    stack.push_nil();
    while stack.next(-2) {
        if !std::mem::take(&mut is_first) {
            stack.write(b",");
        }
        match stack.kind(-2) {
            Kind::Number => {
                stack.write(b"\"");
                append_number(stack, settings, -2)?;
                stack.write(b"\":");
            }
            Kind::String => {
                append_string(stack, -2);
                stack.write(b":");
            }
            _ => return Err(refuse(stack, -2, b"table key must be a number or string")),
        }
        append(stack, settings, depth)?;
        stack.pop(1);
    }
    stack.write(b"}");
    Ok(())
}

fn append_number(stack: &Stack, settings: &Settings, index: i32) -> Result<(), Raise> {
    let number = stack.number(index);
    if !number.is_finite() {
        match settings.invalid_numbers {
            InvalidNumbers::Off => return Err(refuse(stack, index, b"must not be NaN or Inf")),
            InvalidNumbers::On if number.is_nan() => {
                stack.write(b"nan");
                return Ok(());
            }
            InvalidNumbers::On => {}
            InvalidNumbers::Null => {
                stack.write(b"null");
                return Ok(());
            }
        }
    }
    write_general(number, usize::try_from(settings.precision).unwrap_or(14), &mut |part| stack.write(part));
    Ok(())
}

fn append_string(stack: &Stack, index: i32) {
    let bytes = stack.string(index).unwrap_or_default();
    stack.write(b"\"");
    let mut plain = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let short: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'/' => b"\\/",
            8 => b"\\b",
            9 => b"\\t",
            10 => b"\\n",
            12 => b"\\f",
            13 => b"\\r",
            0..=31 | 127 => b"",
            _ => continue,
        };
        stack.write(&bytes[plain..at]);
        plain = at + 1;
        if short.is_empty() {
            let digit = |four: u8| b"0123456789abcdef"[usize::from(four)];
            stack.write(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
        } else {
            stack.write(short);
        }
    }
    stack.write(&bytes[plain..]);
    stack.write(b"\"");
}

fn refuse(stack: &Stack, index: i32, reason: &[u8]) -> Raise {
    stack.clear_scratch();
    stack.write(b"Cannot serialise ");
    stack.write(stack.kind_name(index).to_bytes());
    stack.write(b": ");
    stack.write(reason);
    Raise::Written
}

/// The arguments of a setting: fewer than `max` were given, and there are as many.
fn begin_setting(stack: &mut Stack, max: i32) -> Result<(), Raise> {
    if stack.top() > max {
        return Err(Raise::Argument(max + 1, c"found too many arguments"));
    }
    while stack.top() < max {
        stack.push_nil();
    }
    Ok(())
}

/// An integer argument within bounds, if it is given.
fn integer_option(stack: &mut Stack, index: i32, min: i32, max: i32) -> Result<Option<i32>, Raise> {
    if stack.kind(index) == Kind::Nil {
        return Ok(None);
    }
    let value = to_integer(stack.check_number(index)?) as i32;
    if value < min || value > max {
        stack.clear_scratch();
        stack.write(b"expected integer between ");
        stack.write_integer(i64::from(min));
        stack.write(b" and ");
        stack.write_integer(i64::from(max));
        // The C library names the first argument, whichever it is.
        return Err(Raise::WrittenArgument(1));
    }
    Ok(Some(value))
}

fn set_number(stack: &mut Stack, field: fn(&mut Settings) -> &mut i32, max: i32) -> Result<i32, Raise> {
    begin_setting(stack, 1)?;
    let value = integer_option(stack, 1, 1, max)?;
    let now = stack.with_home(|home| {
        let field = field(&mut home.json);
        *field = value.unwrap_or(*field);
        *field
    });
    stack.push_number(f64::from(now));
    Ok(1)
}

fn set_switch(stack: &mut Stack, field: fn(&mut Settings) -> &mut bool) -> Result<i32, Raise> {
    begin_setting(stack, 1)?;
    let value = switch_option(stack, 1, false)?.map(|value| value == InvalidNumbers::On);
    let now = stack.with_home(|home| {
        let field = field(&mut home.json);
        *field = value.unwrap_or(*field);
        *field
    });
    stack.push_boolean(now);
    Ok(1)
}

/// A truth value, or one of the words `off`, `on` and, where it means something, `null`.
fn switch_option(stack: &mut Stack, index: i32, with_null: bool) -> Result<Option<InvalidNumbers>, Raise> {
    match stack.kind(index) {
        Kind::Nil => Ok(None),
        Kind::Boolean => Ok(Some(if stack.truth(index) { InvalidNumbers::On } else { InvalidNumbers::Off })),
        _ => match (with_null, stack.check_text(index)?) {
            (_, b"off") => Ok(Some(InvalidNumbers::Off)),
            (_, b"on") => Ok(Some(InvalidNumbers::On)),
            (true, b"null") => Ok(Some(InvalidNumbers::Null)),
            _ => {
                stack.clear_scratch();
                stack.write(b"invalid option '");
                stack.write(stack.string(index).unwrap_or_default());
                stack.write(b"'");
                Err(Raise::WrittenArgument(index))
            }
        },
    }
}

fn set_invalid_numbers(stack: &mut Stack) -> Result<i32, Raise> {
    begin_setting(stack, 1)?;
    let value = switch_option(stack, 1, true)?;
    let now = stack.with_home(|home| {
        home.json.invalid_numbers = value.unwrap_or(home.json.invalid_numbers);
        home.json.invalid_numbers
    });
    match now {
        InvalidNumbers::Off => stack.push_boolean(false),
        InvalidNumbers::On => stack.push_boolean(true),
        InvalidNumbers::Null => stack.push_str("null"),
    }
    Ok(1)
}

fn set_sparse_array(stack: &mut Stack) -> Result<i32, Raise> {
    begin_setting(stack, 3)?;
    let convert = switch_option(stack, 1, false)?.map(|value| value == InvalidNumbers::On);
    let ratio = integer_option(stack, 2, 0, i32::MAX)?;
    let safe = integer_option(stack, 3, 0, i32::MAX)?;
    let now = stack.with_home(|home| {
        let json = &mut home.json;
        json.sparse_convert = convert.unwrap_or(json.sparse_convert);
        json.sparse_ratio = ratio.unwrap_or(json.sparse_ratio);
        json.sparse_safe = safe.unwrap_or(json.sparse_safe);
        *json
    });
    stack.push_boolean(now.sparse_convert);
    stack.push_number(f64::from(now.sparse_ratio));
    stack.push_number(f64::from(now.sparse_safe));
    Ok(3)
}
