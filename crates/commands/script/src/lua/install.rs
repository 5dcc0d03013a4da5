//! Functions and libraries in a state, for native code.

use crate::lua::function::Function;
use crate::lua::stack::{Native, REGISTRY, Stack};
use mlua_sys as lua;
use std::ffi::CStr;

/// Keeps the function on top in the registry, and pops it.
pub fn reference(stack: &mut Stack) -> Function {
    // SAFETY: native code runs in protected calls, and the function is on top.
    Function(unsafe { lua::luaL_ref(stack.state(), REGISTRY) })
}

/// Opens a library of Lua: its functions become globals.
pub fn open(stack: &mut Stack, name: &CStr, library: Library) {
    let open = match library {
        Library::Base => lua::luaopen_base,
        Library::Table => lua::luaopen_table,
        Library::String => lua::luaopen_string,
        Library::Math => lua::luaopen_math,
    };
    // SAFETY: in a protected call, as the library is opened once for a new state.
    unsafe {
        lua::lua_pushcclosure(stack.state(), open, 0);
        lua::lua_pushstring_(stack.state(), name.as_ptr());
    }
    stack.call(1, 0);
}

/// A library of Lua.
#[derive(Clone, Copy)]
pub enum Library {
    /// The basic functions, and coroutines.
    Base,
    /// `table`.
    Table,
    /// `string`.
    String,
    /// `math`.
    Math,
}

/// Pushes the table of globals.
pub fn push_globals(stack: &Stack) {
    stack.push_value(lua::LUA_GLOBALSINDEX);
}

/// Replaces the table of globals by the one on top, for what is compiled from now on.
pub fn set_globals(stack: &mut Stack) {
    stack.replace(lua::LUA_GLOBALSINDEX);
}

/// Sets the functions of a list as fields of the table on top.
pub fn register(stack: &mut Stack, functions: &[(&str, Native)]) {
    for (name, function) in functions {
        stack.push_native(*function);
        stack.raw_set_field(-2, name);
    }
}
