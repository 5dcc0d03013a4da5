//! `find`, `match`, `gmatch` and `gsub` of the library `string`.

use crate::lua::library::check_int;
use crate::lua::number::to_integer;
use crate::lua::pattern::{Captured, Matcher};
use crate::lua::stack::{Kind, Native, Raise, Stack, own_value};
use memchr::memmem;

/// What stands in the place of Lua's own functions.
pub const FUNCTIONS: &[(&str, Native)] = &[
    ("find", |stack| search(stack, true)),
    ("match", |stack| search(stack, false)),
    ("gmatch", matches),
    ("gfind", matches),
    ("gsub", substitute),
];

/// What makes a text a pattern.
const SPECIALS: &[u8] = b"^$*+?.([%-";

fn is_plain(pattern: &[u8]) -> bool {
    pattern.iter().take_while(|byte| **byte != 0).all(|byte| !SPECIALS.contains(byte))
}

/// Where a search begins: a position from 1 on, or from the end.
fn begin(stack: &Stack, len: usize) -> Result<usize, Raise> {
    let position = match stack.kind(3) {
        Kind::None | Kind::Nil => 1,
        _ => to_integer(stack.check_number(3)?),
    };
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let position = if position < 0 { position.saturating_add(len + 1) } else { position };
    Ok(usize::try_from((position - 1).clamp(0, len)).unwrap_or(0))
}

fn search(stack: &mut Stack, gives_place: bool) -> Result<i32, Raise> {
    let len = stack.check_text(1)?.len();
    stack.check_text(2)?;
    let from = begin(stack, len)?;
    let (subject, pattern) = (stack.anchored(1), stack.anchored(2));
    if gives_place && (stack.truth(4) || is_plain(pattern)) {
        stack.spend_bytes(len - from)?;
        let Some(place) = memmem::find(&subject[from..], pattern) else {
            stack.push_nil();
            return Ok(1);
        };
        stack.push_number((from + place + 1) as f64);
        stack.push_number((from + place + pattern.len()) as f64);
        return Ok(2);
    }
    let is_anchored = pattern.first() == Some(&b'^');
    let mut matcher = Matcher::new(subject, pattern);
    for at in from..=len {
        if let Some(end) = matcher.find(stack, at, usize::from(is_anchored))? {
            let mut count = 0;
            if gives_place {
                stack.push_number((at + 1) as f64);
                stack.push_number(end as f64);
                count = 2;
            }
            return Ok(count + push_captures(stack, &matcher, !gives_place, at, end)?);
        }
        if is_anchored {
            break;
        }
    }
    stack.push_nil();
    Ok(1)
}

fn push_capture(stack: &mut Stack, matcher: &Matcher<'_>, index: usize, from: usize, end: usize) -> Result<(), Raise> {
    match matcher.captured(index, from, end)? {
        Captured::Bytes(bytes) => {
            stack.spend_bytes(bytes.len())?;
            stack.push_bytes(bytes);
        }
        Captured::Position(position) => stack.push_number(position as f64),
    }
    Ok(())
}

/// Pushes the captures, or the whole match where there are none and it is wanted.
fn push_captures(
    stack: &mut Stack,
    matcher: &Matcher<'_>,
    gives_whole: bool,
    from: usize,
    end: usize,
) -> Result<i32, Raise> {
    let count = matcher.value_count(gives_whole);
    let values = i32::try_from(count).unwrap_or(i32::MAX);
    if !stack.has_room(values) {
        return Err(Raise::Located(c"stack overflow (too many captures)"));
    }
    for index in 0..count {
        push_capture(stack, matcher, index, from, end)?;
    }
    Ok(values)
}

fn matches(stack: &mut Stack) -> Result<i32, Raise> {
    stack.check_text(1)?;
    stack.check_text(2)?;
    stack.set_top(2);
    stack.push_number(0.0);
    stack.push_closure(next_match, 3);
    Ok(1)
}

/// What `gmatch` gives: its own values are its subject, its pattern, and where the next search begins.
fn next_match(stack: &mut Stack) -> Result<i32, Raise> {
    let (subject, pattern) = (stack.anchored(own_value(1)), stack.anchored(own_value(2)));
    let first = stack.number(own_value(3)) as usize;
    let mut matcher = Matcher::new(subject, pattern);
    for at in first..=subject.len() {
        if let Some(end) = matcher.find(stack, at, 0)? {
            // After an empty match, one position further.
            stack.push_number((end + usize::from(end == at)) as f64);
            stack.replace(own_value(3));
            return push_captures(stack, &matcher, true, at, end);
        }
    }
    Ok(0)
}

fn substitute(stack: &mut Stack) -> Result<i32, Raise> {
    let len = stack.check_text(1)?.len();
    stack.check_text(2)?;
    let kind = stack.kind(3);
    let count_max = match stack.kind(4) {
        Kind::None | Kind::Nil => i64::from((len as i64 + 1) as i32),
        _ => check_int(stack, 4)?,
    };
    if !matches!(kind, Kind::Number | Kind::String | Kind::Function | Kind::Table) {
        return Err(Raise::Argument(3, c"string/function/table expected"));
    }
    let (subject, pattern) = (stack.anchored(1), stack.anchored(2));
    let is_anchored = pattern.first() == Some(&b'^');
    let mut matcher = Matcher::new(subject, pattern);
    let start = stack.build();
    let (mut at, mut count) = (0, 0_i64);
    while count < count_max {
        let found = matcher.find(stack, at, usize::from(is_anchored))?;
        if let Some(end) = found {
            count += 1;
            add_replacement(stack, &matcher, kind, at, end)?;
        }
        match found {
            Some(end) if end > at => at = end,
            _ if at < len => {
                stack.add(&subject[at..=at])?;
                at += 1;
            }
            _ => break,
        }
        if is_anchored {
            break;
        }
    }
    stack.add(&subject[at..])?;
    stack.look_at_memory()?;
    stack.push_built(start);
    stack.push_number(count as f64);
    Ok(2)
}

/// Adds what stands for the match from `from` to `end`.
fn add_replacement(stack: &mut Stack, matcher: &Matcher<'_>, kind: Kind, from: usize, end: usize) -> Result<(), Raise> {
    let built = stack.build();
    match kind {
        Kind::Function => {
            stack.push_value(3);
            let count = push_captures(stack, matcher, true, from, end)?;
            stack.call(count, 1);
        }
        Kind::Table => {
            push_capture(stack, matcher, 0, from, end)?;
            stack.get(3);
        }
        _ => return add_template(stack, matcher, from, end),
    }
    stack.cut_built(built);
    match stack.kind(-1) {
        Kind::String | Kind::Number => return stack.add_value(),
        _ if stack.truth(-1) => {
            stack.clear_scratch();
            stack.write(b"invalid replacement value (a ");
            stack.write(stack.kind_name(-1).to_bytes());
            stack.write(b")");
            return Err(Raise::Written);
        }
        _ => stack.pop(1),
    }
    let whole = matcher.whole(from, end);
    stack.add(whole)
}

/// Adds the replacement, with captures in the places of `%1`.
fn add_template(stack: &mut Stack, matcher: &Matcher<'_>, from: usize, end: usize) -> Result<(), Raise> {
    let template = stack.anchored(3);
    let mut at = 0;
    while at < template.len() {
        let plain = template[at..].iter().position(|byte| *byte == b'%').unwrap_or(template.len() - at);
        stack.add(&template[at..at + plain])?;
        at += plain;
        if at == template.len() {
            break;
        }
        // A zero follows the end.
        match template.get(at + 1).copied().unwrap_or(0) {
            b'0' => stack.add(matcher.whole(from, end))?,
            digit @ b'1'..=b'9' => {
                push_capture(stack, matcher, usize::from(digit - b'1'), from, end)?;
                stack.add_value()?;
            }
            same => stack.add(&[same])?,
        }
        at += 2;
    }
    Ok(())
}
