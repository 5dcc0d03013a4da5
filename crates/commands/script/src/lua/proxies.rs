//! Tables that scripts see by proxies, and the environment of libraries.

use crate::lua::stack::{Kind, REGISTRY, Raise, Stack};

/// A key that scripts cannot make.
pub static MARK: u8 = 0;

/// The key under which the registry holds the environment of libraries. Its address tells it from others.
pub static LIBRARY: u8 = 1;

/// Pushes the globals of scripts, not their proxy.
pub fn push_script_globals(stack: &mut Stack) {
    stack.push_mark(&MARK);
    stack.raw_get(REGISTRY);
}

/// Sets a global of scripts to the value on top.
pub fn set_global(stack: &mut Stack, name: &str) {
    push_script_globals(stack);
    stack.insert(-2);
    stack.raw_set_field(-2, name);
    stack.pop(1);
}

/// Pushes the environment of libraries.
pub fn push_library_environment(stack: &mut Stack) {
    stack.push_mark(&LIBRARY);
    stack.raw_get(REGISTRY);
}

/// Pushes the table of a proxy; false, with nothing pushed, of any other value.
pub fn push_real(stack: &mut Stack, index: i32) -> bool {
    if stack.kind(index) != Kind::Table || !stack.push_metatable(index) {
        return false;
    }
    stack.push_mark(&MARK);
    stack.raw_get(-2);
    stack.remove(-2);
    let is_proxy = stack.kind(-1) == Kind::Table;
    if !is_proxy {
        stack.pop(1);
    }
    is_proxy
}

/// Refuses a proxy as the first argument.
pub fn keep(stack: &mut Stack) -> Result<(), Raise> {
    if push_real(stack, 1) {
        stack.pop(1);
        return Err(raise_refused(stack));
    }
    Ok(())
}

fn raise_refused(stack: &mut Stack) -> Raise {
    stack.push_str("Attempt to modify a readonly table");
    Raise::Top
}
