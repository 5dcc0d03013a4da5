//! The globals of scripts: which there are, that they cannot be changed, and what errors look like.
//!
//! B1. Scripts of all clients share the libraries and change none of them. A script's own tables, the strings'
//!     metatable included, are shown by proxies ([`sandbox.lua`](../sandbox.lua)).
//! B2. Nothing reads files or environment, loads compiled code, or reaches into the state (`io`, `package`, `debug`).

use crate::lua::install::{Library, open, push_globals, register, set_globals};
use crate::lua::proxies::{LIBRARY, MARK, keep, push_library_environment, push_real};
use crate::lua::stack::{Guard, Kind, Native, REGISTRY, Raise, Stack};
use crate::lua::{
    Failure, api, arguments, bits, cjson, cmsgpack, library, packing, proxies, registration, search, tables,
};

/// The keys of the globals that functions see, and of those that a library sees while it is loaded.
static FUNCTION_GLOBALS: u8 = 2;
static LOADING_GLOBALS: u8 = 3;

/// The names of fields that are looked for in errors and replies: kept, so that looking needs no memory.
const FIELDS: [&str; 14] = [
    "err",
    "ok",
    "double",
    "big_number",
    "verbatim_string",
    "map",
    "set",
    "format",
    "string",
    "source",
    "line",
    "ignore_error_stats_update",
    "shown",
    "err",
];

const NATIVES: &[(&str, Native)] = &[
    ("refuse", |_| Err(REFUSED)),
    ("register_function", registration::register_function),
    ("missing", missing),
    ("getmetatable", get_metatable),
    ("pcall", protected_call),
    ("xpcall", handled_call),
    ("load", library::load),
    ("loadstring", library::load_string),
    ("unpack", library::unpack),
    ("__redis__err__handler", handle_error),
    ("__server__err__handler", handle_error),
];

/// Functions of Lua that see a proxy's table, or that would change it.
const GUARDED: &[(&str, &str, Guard)] = &[
    ("", "next", see_through),
    ("", "pairs", pairs),
    ("", "rawget", see_through),
    ("", "rawset", keep_guard),
    ("", "setmetatable", keep_guard),
    ("table", "setn", keep_guard),
    ("table", "foreach", see_through),
    ("", "collectgarbage", library::spend_collection),
    ("string", "lower", library::spend_text),
    ("string", "upper", library::spend_text),
    ("string", "reverse", library::spend_text),
    ("string", "format", library::spend_text),
];

/// Functions that stand in the place of Lua's own.
const REPLACED: &[(&str, &[(&str, Native)])] = &[
    ("math", library::MATH),
    ("string", search::FUNCTIONS),
    ("string", &[("rep", library::repeat)]),
    ("table", tables::FUNCTIONS),
];

const REFUSED: Raise = Raise::Located(c"Attempt to modify a readonly table");

/// Opens the libraries and makes the globals. Tests alone leave Lua's own functions in their places.
pub fn build(stack: &mut Stack, replaces: bool) -> Result<(), Raise> {
    for name in FIELDS {
        stack.push_boolean(true);
        stack.raw_set_field(REGISTRY, name);
    }
    open(stack, c"", Library::Base);
    open(stack, c"table", Library::Table);
    open(stack, c"string", Library::String);
    open(stack, c"math", Library::Math);
    stack.set_top(0);
    push_globals(stack);
    for (library, name, guard) in GUARDED {
        guard_function(stack, library, name, *guard);
    }
    add_library(stack, "server", api::push);
    add_library(stack, "cjson", cjson::push);
    add_library(stack, "cmsgpack", cmsgpack::push);
    add_library(stack, "struct", packing::push);
    add_library(stack, "bit", bits::push);
    add_library(stack, "os", library::push_os);
    for (library, functions) in REPLACED.iter().filter(|_| replaces) {
        stack.raw_get_field(1, library);
        register(stack, functions);
        stack.set_top(1);
    }
    // Scripts get what the real globals are through their proxy; KEYS and ARGV are set in the real ones.
    stack.push_value(1);
    stack.push_mark(&MARK);
    stack.insert(-2);
    stack.raw_set(REGISTRY);
    stack.push_str(include_str!("sandbox.lua"));
    if !stack.load(-1, c"=sandbox") {
        return Err(Raise::Top);
    }
    stack.push_value(1);
    stack.push_table(0, 16);
    register(stack, NATIVES);
    stack.push_mark(&MARK);
    stack.call(3, 4);
    for key in [&LOADING_GLOBALS, &FUNCTION_GLOBALS, &LIBRARY] {
        stack.push_mark(key);
        stack.insert(-2);
        stack.raw_set(REGISTRY);
    }
    set_globals(stack);
    set_loading(stack, false);
    Ok(())
}

/// Has libraries see what they see while they are loaded, or what their functions see.
pub fn set_loading(stack: &mut Stack, is_loading: bool) {
    push_library_environment(stack);
    stack.push_metatable(-1);
    stack.push_mark(if is_loading { &LOADING_GLOBALS } else { &FUNCTION_GLOBALS });
    stack.raw_get(REGISTRY);
    stack.raw_set_field(-2, "__index");
    stack.pop(2);
}

fn add_library(stack: &mut Stack, name: &str, push: fn(&mut Stack)) {
    push(stack);
    stack.raw_set_field(1, name);
}

fn guard_function(stack: &mut Stack, library: &str, name: &str, guard: Guard) {
    stack.push_value(1);
    if !library.is_empty() {
        stack.raw_get_field(-1, library);
    }
    stack.raw_get_field(-1, name);
    stack.guard_function(guard);
    stack.raw_set_field(-2, name);
    stack.set_top(1);
}

/// Lets a function see the table of a proxy.
fn see_through(stack: &mut Stack) -> Result<Option<i32>, Raise> {
    if push_real(stack, 1) {
        stack.replace(1);
        arguments::make_listed(stack, 1);
    }
    Ok(None)
}

/// Keeps a function from changing a proxy.
fn keep_guard(stack: &mut Stack) -> Result<Option<i32>, Raise> {
    keep(stack)?;
    Ok(None)
}

/// `pairs` of a proxy: iterates over its table with the `next` that sees it.
fn pairs(stack: &mut Stack) -> Result<Option<i32>, Raise> {
    if !push_real(stack, 1) {
        return Ok(None);
    }
    let real = stack.top();
    arguments::make_listed(stack, real);
    stack.pop(1);
    proxies::push_script_globals(stack);
    stack.raw_get_field(-1, "next");
    stack.push_value(1);
    stack.push_nil();
    Ok(Some(3))
}

/// What looks for a global that is not there.
fn missing(stack: &mut Stack) -> Result<i32, Raise> {
    if arguments::push_missing(stack)? {
        return Ok(1);
    }
    stack.push_place(1);
    stack.push_str("Script attempted to access nonexistent global variable '");
    stack.push_value(2);
    if stack.text(-1).is_none() {
        stack.pop(1);
        stack.push_str("?");
    }
    stack.push_str("'");
    stack.join(4);
    Err(Raise::Top)
}

/// `getmetatable`: of proxies and strings, what may be shown of their metatable.
fn get_metatable(stack: &mut Stack) -> Result<i32, Raise> {
    if stack.kind(1) == Kind::None {
        return Err(Raise::Argument(1, c"value expected"));
    }
    if !stack.push_metatable(1) {
        stack.push_nil();
        return Ok(1);
    }
    stack.push_mark(&MARK);
    stack.raw_get(-2);
    let is_marked = stack.kind(-1) != Kind::Nil;
    stack.pop(1);
    stack.raw_get_field(-1, if is_marked { "shown" } else { "__metatable" });
    if !is_marked && stack.kind(-1) == Kind::Nil {
        stack.pop(1);
    }
    Ok(1)
}

/// `pcall`: an error of a command is given as its text, as before Redis 7.
fn protected_call(stack: &mut Stack) -> Result<i32, Raise> {
    let count = stack.top();
    if count == 0 {
        return Err(Raise::Argument(1, c"value expected"));
    }
    stack.push_boolean(true);
    stack.insert(1);
    let built = stack.build();
    if !stack.call_protected(count - 1) {
        stack.cut_built(built);
        stack.remove(1);
        if stack.kind(-1) == Kind::Table {
            stack.raw_get_field(-1, "err");
            if matches!(stack.kind(-1), Kind::String | Kind::Number) {
                stack.replace(-2);
            } else {
                stack.pop(1);
            }
        }
        stack.push_boolean(false);
        stack.insert(1);
    }
    Ok(stack.top())
}

/// `xpcall`.
fn handled_call(stack: &mut Stack) -> Result<i32, Raise> {
    if stack.kind(2) == Kind::None {
        return Err(Raise::Argument(2, c"value expected"));
    }
    stack.set_top(2);
    stack.insert(1);
    let built = stack.build();
    let has_returned = stack.call_handled();
    stack.cut_built(built);
    stack.push_boolean(has_returned);
    stack.replace(1);
    Ok(stack.top())
}

/// What every error of a script goes through: a table with the text, and the place of the function that has raised it.
pub fn handle_error(stack: &mut Stack) -> Result<i32, Raise> {
    stack.set_top(1);
    if stack.kind(1) != Kind::Table || push_real(stack, 1) {
        stack.set_top(1);
        stack.push_table(0, 3);
        stack.push_str("ERR ");
        library::push_shown(stack, 1);
        stack.join(2);
        stack.raw_set_field(-2, "err");
        stack.replace(1);
    }
    let caller = match stack.caller(1) {
        Some((_, true)) => stack.caller(2),
        caller => caller,
    };
    if let Some((caller, _)) = caller {
        stack.push_source(&caller);
        stack.raw_set_field(1, "source");
        stack.push_number(f64::from(caller.line));
        stack.raw_set_field(1, "line");
    }
    Ok(1)
}

/// Replaces a text on top, which was raised past [`handle_error`], by the table of an error with it.
pub fn as_error(stack: &mut Stack) {
    if stack.text(-1).is_some() {
        stack.push_str("ERR ");
        stack.insert(-2);
        stack.join(2);
        stack.push_table(0, 1);
        stack.insert(-2);
        stack.raw_set_field(-2, "err");
    }
}

/// What a script has raised, which is on top, as its reply says it.
pub fn describe(stack: &mut Stack) -> Failure {
    if stack.kind(-1) != Kind::Table {
        let text = stack.string(-1).unwrap_or(b"unknown error");
        return Failure::Raised(text.to_vec());
    }
    let error = stack.top();
    let mut text = field(stack, error, "err").unwrap_or_else(|| b"ERR unknown error".to_vec());
    if let (Some(source), Some(line)) = (field(stack, error, "source"), field(stack, error, "line")) {
        text.extend([b" script: on ", source.as_slice(), b":", &line, b"."].concat());
    }
    stack.raw_get_field(error, "ignore_error_stats_update");
    if stack.kind(-1) == Kind::Boolean && stack.truth(-1) { Failure::Answered(text) } else { Failure::Raised(text) }
}

/// A field of an error, if it is text; up to the first zero, as text of C.
fn field(stack: &mut Stack, table: i32, name: &str) -> Option<Vec<u8>> {
    stack.raw_get_field(table, name);
    let text = match stack.kind(-1) {
        Kind::Number => Some(stack.number(-1).to_string().into_bytes()),
        _ => stack.string(-1).map(|text| text.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()),
    };
    stack.pop(1);
    text
}
