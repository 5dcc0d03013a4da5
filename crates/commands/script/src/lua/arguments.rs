//! The globals KEYS and ARGV. A table is made when a script first asks for it: many scripts have no use for one of
//! them. A script that has asked before gets it at once.
//!
//! A1. What a script sees is what it would see if both were made before it began.
//! A2. Those of the script before are gone: a script cannot set globals, so that this module knows which there are.

use crate::lua::given::Asked;
use crate::lua::proxies::{push_script_globals, set_global};
use crate::lua::stack::{Raise, Stack};

const NAMES: [&str; 2] = ["KEYS", "ARGV"];

/// Makes the tables that a script is known to ask for, and removes those of the one before.
pub fn prepare(stack: &mut Stack, asked: Asked) {
    for (index, name) in NAMES.iter().enumerate() {
        if asked[index] {
            if push(stack, index) {
                stack.pop(1);
            }
        } else if stack.with_home(|home| std::mem::take(&mut home.arguments.are_there[index])) {
            stack.push_nil();
            set_global(stack, name);
        }
    }
}

/// Pushes a table that is made now; false when it was made before.
fn push(stack: &mut Stack, index: usize) -> bool {
    let Some(strings) = stack.with_home(|home| home.arguments.strings[index].take()) else { return false };
    // SAFETY: a script runs, so that they are alive (`Arguments::begin`), and they were taken: nothing else uses them.
    push_strings(stack, unsafe { &mut *strings });
    stack.push_value(-1);
    set_global(stack, NAMES[index]);
    stack.with_home(|home| home.arguments.are_there[index] = true);
    true
}

/// Pushes the global that the second value names, if that is one of the two and the first value are the globals of
/// scripts; false with nothing pushed if not.
///
/// # Errors
/// There was no memory for it.
pub fn push_missing(stack: &mut Stack) -> Result<bool, Raise> {
    if !stack.with_home(|home| home.arguments.is_script) || !are_globals(stack, 1) {
        return Ok(false);
    }
    let name = stack.string(2).unwrap_or_default();
    let Some(index) = NAMES.iter().position(|other| other.as_bytes() == name) else { return Ok(false) };
    // What is not there, and cannot be made, is what memory was lacking for.
    if push(stack, index) { Ok(true) } else { Err(Raise::Memory) }
}

/// Makes both if the value at `index` are the globals of scripts: they are about to be listed.
pub fn make_listed(stack: &mut Stack, index: i32) {
    if stack.with_home(|home| home.arguments.is_script) && are_globals(stack, index) {
        for index in 0..NAMES.len() {
            if push(stack, index) {
                stack.pop(1);
            }
        }
    }
}

fn are_globals(stack: &mut Stack, index: i32) -> bool {
    push_script_globals(stack);
    let are_same = stack.address(index) == stack.address(-1);
    stack.pop(1);
    are_same
}

/// Pushes a table of strings.
pub fn push_strings(stack: &mut Stack, strings: &mut dyn ExactSizeIterator<Item = &[u8]>) {
    stack.push_table(strings.len(), 0);
    for (index, bytes) in (1..).zip(strings) {
        stack.push_bytes(bytes);
        stack.raw_set_index(-2, index);
    }
}
