//! Functions of Lua's libraries that are written anew: they are the same for scripts, and safe to give to them.

use crate::lua::install::register;
use crate::lua::stack::{Kind, Native, Raise, Stack};
use std::ffi::CStr;

/// `math.random` and `math.randomseed`.
pub const MATH: &[(&str, Native)] = &[("random", random), ("randomseed", seed)];

/// More results than this are refused by `unpack`, as by Lua.
const RESULTS_MAX: i64 = 8000;

/// Pushes the library `os`, which has the clock alone.
pub fn push_os(stack: &mut Stack) {
    stack.push_table(0, 1);
    register(stack, &[("clock", clock)]);
}

/// Processor seconds of the process.
fn clock(stack: &mut Stack) -> Result<i32, Raise> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    stack.push_number(time.tv_sec as f64 + (time.tv_nsec / 1000) as f64 / 1e6);
    Ok(1)
}

/// The next of the 48-bit numbers of `lrand48`, which Valkey uses too.
fn next_random(stack: &Stack) -> f64 {
    let state = stack.with_home(|home| {
        home.random = home.random.wrapping_mul(0x0005_DEEC_E66D).wrapping_add(0xB) & 0xFFFF_FFFF_FFFF;
        home.random
    });
    let value = (state >> 17) as u32 & 0x7FFF_FFFF;
    f64::from(value % 0x7FFF_FFFF) / f64::from(0x7FFF_FFFF)
}

fn random(stack: &mut Stack) -> Result<i32, Raise> {
    let random = next_random(stack);
    let value = match stack.top() {
        0 => random,
        1 => {
            let high = check_int(stack, 1)?;
            if high < 1 {
                return Err(Raise::Argument(1, c"interval is empty"));
            }
            (random * high as f64).floor() + 1.0
        }
        2 => {
            let (low, high) = (check_int(stack, 1)?, check_int(stack, 2)?);
            if low > high {
                return Err(Raise::Argument(2, c"interval is empty"));
            }
            (random * (high - low + 1) as f64).floor() + low as f64
        }
        _ => return Err(Raise::Located(c"wrong number of arguments")),
    };
    stack.push_number(value);
    Ok(1)
}

fn seed(stack: &mut Stack) -> Result<i32, Raise> {
    let seed = check_int(stack, 1)?;
    stack.with_home(|home| home.random = (seed as u64 & 0xFFFF_FFFF) << 16 | 0x330E);
    Ok(0)
}

/// An argument as an `int` of C.
pub fn check_int(stack: &Stack, index: i32) -> Result<i64, Raise> {
    Ok(i64::from(crate::lua::number::to_integer(stack.check_number(index)?) as i32))
}

/// `unpack`, with a count that does not overflow (CVE-2025-46817).
pub fn unpack(stack: &mut Stack) -> Result<i32, Raise> {
    stack.check_table(1)?;
    let first = if matches!(stack.kind(2), Kind::None | Kind::Nil) { 1 } else { check_int(stack, 2)? };
    let last = match stack.kind(3) {
        Kind::None | Kind::Nil => i64::try_from(stack.len(1)).unwrap_or(i64::MAX),
        _ => check_int(stack, 3)?,
    };
    if first > last {
        return Ok(0);
    }
    let count = last - first + 1;
    let room = i32::try_from(count).ok().filter(|_| count < RESULTS_MAX);
    let Some(count) = room.filter(|count| stack.has_room(*count)) else {
        return Err(Raise::Located(c"too many results to unpack"));
    };
    for index in first..=last {
        stack.raw_get_index(1, index as i32);
    }
    Ok(count)
}

/// `loadstring`, which takes no compiled code.
pub fn load_string(stack: &mut Stack) -> Result<i32, Raise> {
    let bytes = stack.check_text(1)?.len();
    stack.spend_bytes(bytes)?;
    let is_named = !matches!(stack.kind(2), Kind::None | Kind::Nil);
    if is_named {
        stack.check_text(2)?;
    }
    load_text(stack, 1, if is_named { 2 } else { 1 })
}

/// `load`, which takes no compiled code. The pieces are put together before they are compiled.
pub fn load(stack: &mut Stack) -> Result<i32, Raise> {
    if stack.kind(1) != Kind::Function {
        return Err(Raise::Type(1, c"function"));
    }
    let is_named = !matches!(stack.kind(2), Kind::None | Kind::Nil);
    if is_named {
        stack.check_text(2)?;
    }
    stack.set_top(2);
    if !is_named {
        stack.push_str("=(load)");
        stack.replace(2);
    }
    stack.push_str("");
    loop {
        stack.push_value(1);
        if !stack.call_protected(0) {
            return Ok(failed(stack));
        }
        stack.set_top(4);
        match stack.kind(-1) {
            Kind::Nil => break,
            Kind::String | Kind::Number => {
                if stack.text(-1).is_none_or(<[u8]>::is_empty) {
                    break;
                }
                let bytes = stack.len(-2);
                stack.spend_bytes(bytes)?;
                stack.join(2);
            }
            _ => {
                stack.push_str("reader function must return a string");
                return Ok(failed(stack));
            }
        }
    }
    stack.set_top(3);
    load_text(stack, 3, 2)
}

/// Compiles the text at an index under the name at another; gives the function, or nothing and the message.
fn load_text(stack: &mut Stack, text: i32, name: i32) -> Result<i32, Raise> {
    let mut buffer = [0; NAME_BYTES_MAX + 1];
    let bytes = stack.string(name).unwrap_or_default();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()).min(NAME_BYTES_MAX);
    buffer[..end].copy_from_slice(&bytes[..end]);
    let name = CStr::from_bytes_until_nul(&buffer).unwrap_or(c"?");
    if stack.load(text, name) {
        if stack.with_home(|home| home.is_library) {
            crate::lua::proxies::push_library_environment(stack);
            stack.set_environment(-2);
        }
        return Ok(1);
    }
    Ok(failed(stack))
}

/// Gives nothing, and the message on top.
fn failed(stack: &mut Stack) -> i32 {
    stack.push_nil();
    stack.insert(-2);
    2
}

/// Of a name, messages show less than this.
const NAME_BYTES_MAX: usize = 255;

/// `string.rep`, which refuses what does not fit before it works on it.
pub fn repeat(stack: &mut Stack) -> Result<i32, Raise> {
    let len = stack.check_text(1)?.len();
    let count = stack.check_number(2)?;
    let bytes_max = stack.with_home(|home| home.bytes_max);
    if len as f64 * count > bytes_max as f64 {
        return Err(Raise::Located(c"not enough memory"));
    }
    let (text, count) = (stack.anchored(1), if len == 0 { 0 } else { check_int(stack, 2)? });
    let start = stack.build();
    for _ in 0..count {
        stack.add(text)?;
    }
    stack.look_at_memory()?;
    stack.push_built(start);
    Ok(1)
}

/// Spends steps for the bytes of the first argument, which the function copies.
pub fn spend_text(stack: &mut Stack) -> Result<Option<i32>, Raise> {
    let bytes = stack.text(1).map_or(0, <[u8]>::len);
    stack.spend_bytes(bytes)?;
    Ok(None)
}

/// Asks the host before all memory of the state is walked through.
pub fn spend_collection(stack: &mut Stack) -> Result<Option<i32>, Raise> {
    let bytes = stack.with_home(|home| home.used_bytes);
    stack.spend_bytes(bytes)?;
    Ok(None)
}

/// Pushes a value as `tostring` shows it, without metamethods.
pub fn push_shown(stack: &mut Stack, index: i32) {
    match stack.kind(index) {
        Kind::String | Kind::Number => {
            stack.push_value(index);
            let _ = stack.text(-1);
        }
        Kind::Nil | Kind::None => stack.push_str("nil"),
        Kind::Boolean => stack.push_str(if stack.truth(index) { "true" } else { "false" }),
        _ => {
            let name = stack.kind_name(index).to_bytes();
            stack.write(name);
            let address = stack.address(index) as usize;
            let mut digits = [0; 24];
            let mut at = digits.len();
            let mut rest = address;
            loop {
                at -= 1;
                digits[at] = b"0123456789abcdef"[rest & 15];
                rest >>= 4;
                if rest == 0 {
                    break;
                }
            }
            stack.write(b": 0x");
            stack.write(&digits[at..]);
            stack.push_scratch();
        }
    }
}
