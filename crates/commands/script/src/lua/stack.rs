//! The stack of a Lua function that is written in Rust: arguments in, results out.
//!
//! Lua leaves a function by `longjmp` when it has no memory or meets an error of its own, and runs no destructors on
//! the way.
//!
//! S1. A [`Stack`] exists only while its Lua state does, inside a call that Lua protects.
//! S2. A native function owns nothing with a destructor while it calls a method of its stack. What it has to build
//!     goes into [`Home::scratch`].
//! S3. Bytes borrowed from a value stay valid while the value is on the stack. Methods that remove values borrow
//!     mutably.
//! S4. A function has room for 20 values beyond its arguments; before more are pushed, [`Stack::has_room`] is asked.

use crate::lua::Host;
use crate::lua::home::Home;
use mlua_sys as lua;
use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// A function that Lua calls. Gives how many results it has pushed.
pub type Native = fn(&mut Stack) -> Result<i32, Raise>;

/// What a native function raises.
pub enum Raise {
    /// The value on top of the stack.
    Top,
    /// There is no memory.
    Memory,
    /// This text, after the place of the caller.
    Located(&'static CStr),
    /// The scratch, after the place of the caller.
    Written,
    /// "bad argument", with its number, and what is wrong with it in the scratch.
    WrittenArgument(i32),
    /// "bad argument", with its number and what is wrong with it.
    Argument(i32, &'static CStr),
    /// "bad argument", with its number and the name of the type it should have.
    Type(i32, &'static CStr),
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No value: the index is beyond the top.
    None,
    /// `nil`.
    Nil,
    /// A truth value.
    Boolean,
    /// A number.
    Number,
    /// A string.
    String,
    /// A table.
    Table,
    /// A function.
    Function,
    /// Anything else.
    Other,
}

/// Where the running function is called from.
pub struct Caller {
    /// The source of the function, as `@user_script`.
    pub source: *const std::ffi::c_char,
    /// The line that it has come to.
    pub line: i32,
}

/// The pseudo-index of the registry.
pub const REGISTRY: i32 = lua::LUA_REGISTRYINDEX;

/// The stack of the running function. Indices count from 1, negative ones from the top.
pub struct Stack {
    state: *mut lua::lua_State,
}

macro_rules! call {
    ($($body:tt)*) => {
        // SAFETY: the state is alive (S1), the indices are those of values or beyond the top, and what may raise is
        // called where Lua protects the call and nothing has to be dropped (S2).
        unsafe { $($body)* }
    };
}

impl Stack {
    /// # Safety
    /// The state has to be alive while the stack is used, and made with a [`Home`] as its allocator's data.
    pub(super) unsafe fn of(state: *mut lua::lua_State) -> Self {
        Self { state }
    }

    /// The state.
    pub(super) fn state(&self) -> *mut lua::lua_State {
        self.state
    }

    /// What the state belongs to.
    pub fn home(&self) -> *mut Home {
        let mut data = ptr::null_mut();
        call! { lua::lua_getallocf(self.state, &mut data) };
        data.cast()
    }

    /// Uses the home. `body` uses no stack.
    pub fn with_home<R>(&self, body: impl FnOnce(&mut Home) -> R) -> R {
        body(call! { &mut *self.home() })
    }

    /// Uses the home and the host of the script that runs; `None` when none runs. `body` uses no stack.
    pub fn with_host<R>(&self, body: impl FnOnce(&mut Home, &mut dyn Host) -> R) -> Option<R> {
        let home = call! { &mut *self.home() };
        let host = home.host?;
        // The host is set for as long as the script runs, and is no part of the home.
        Some(body(home, call! { &mut *host }))
    }

    /// How much the scratch holds.
    pub fn scratch_len(&self) -> usize {
        call! { (*self.home()).scratch.len() }
    }

    /// What the last command answered. Valid until the next one, which native code that reads it does not run.
    pub fn answer<'a>(&self) -> Option<&'a [u8]> {
        let answer = self.with_host(|_, host| ptr::from_ref(host.answer()))?;
        // The host keeps it until the next command.
        Some(call! { &*answer })
    }

    /// Empties the scratch.
    pub fn clear_scratch(&self) {
        call! { (*self.home()).scratch.clear() }
    }

    /// Appends an integer to the scratch.
    pub fn write_integer(&self, value: i64) {
        let mut digits = [0; 20];
        let (mut at, mut rest) = (digits.len(), value.unsigned_abs());
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            self.write(b"-");
        }
        self.write(&digits[at..]);
    }

    /// Reads a number as C does, from a position of a string on: the number, and how many bytes it has.
    pub fn number_prefix(&self, index: i32, at: usize) -> (f64, usize) {
        let bytes = self.bytes_at(index);
        if at >= bytes.len() {
            return (0.0, 0);
        }
        call! {
            // A string of Lua has a zero after its bytes.
            let start: *const std::ffi::c_char = bytes.as_ptr().add(at).cast();
            let mut end = ptr::null_mut();
            let number = libc::strtod(start, &mut end);
            (number, end.offset_from(start).unsigned_abs())
        }
    }

    /// Appends to the scratch. What does not fit in the memory of the state is dropped, and the next step raises.
    pub fn write(&self, bytes: &[u8]) {
        self.with_home(|home| match home.has_memory(bytes.len()) {
            true => home.scratch.extend_from_slice(bytes),
            false => home.lack_memory(),
        });
    }

    /// The bytes of a string, or of a number, which becomes a string. The caller leaves the value where it is for as
    /// long as it uses them.
    pub fn anchored<'a>(&self, index: i32) -> &'a [u8] {
        let bytes = ptr::from_ref(if matches!(self.kind(index), Kind::String | Kind::Number) {
            self.bytes_at(index)
        } else {
            &[]
        });
        call! { &*bytes }
    }

    /// Pushes what was built, and begins anew.
    pub fn push_scratch(&mut self) {
        let home = self.home();
        if self.with_home(|home| home.lacks_memory) {
            raise_in(self, Raise::Memory);
        }
        call! {
            let scratch = &(*home).scratch;
            lua::lua_pushlstring_(self.state, scratch.as_ptr().cast(), scratch.len());
            (*home).scratch.clear();
        }
    }

    /// How many values there are.
    pub fn top(&self) -> i32 {
        call! { lua::lua_gettop(self.state) }
    }

    /// Leaves this many values.
    pub fn set_top(&mut self, top: i32) {
        call! { lua::lua_settop(self.state, top) }
    }

    /// Removes this many values from the top.
    pub fn pop(&mut self, count: i32) {
        call! { lua::lua_settop(self.state, -count - 1) }
    }

    /// Removes a value; those above it move down.
    pub fn remove(&mut self, index: i32) {
        call! { lua::lua_remove(self.state, index) }
    }

    /// Moves the value on top to this place; those above it move up.
    pub fn insert(&mut self, index: i32) {
        call! { lua::lua_insert(self.state, index) }
    }

    /// Puts the value on top in the place of another.
    pub fn replace(&mut self, index: i32) {
        call! { lua::lua_replace(self.state, index) }
    }

    /// Makes room for this many values more; false when the stack would grow too large.
    #[must_use]
    pub fn has_room(&self, count: i32) -> bool {
        call! { lua::lua_checkstack(self.state, count) != 0 }
    }

    /// The type of a value.
    pub fn kind(&self, index: i32) -> Kind {
        match call! { lua::lua_type(self.state, index) } {
            lua::LUA_TNONE => Kind::None,
            lua::LUA_TNIL => Kind::Nil,
            lua::LUA_TBOOLEAN => Kind::Boolean,
            lua::LUA_TNUMBER => Kind::Number,
            lua::LUA_TSTRING => Kind::String,
            lua::LUA_TTABLE => Kind::Table,
            lua::LUA_TFUNCTION => Kind::Function,
            _ => Kind::Other,
        }
    }

    /// The name of the type of a value.
    pub fn kind_name(&self, index: i32) -> &'static CStr {
        call! { CStr::from_ptr(lua::lua_typename(self.state, lua::lua_type(self.state, index))) }
    }

    /// Whether it is a number, or a string that is one.
    pub fn is_numeric(&self, index: i32) -> bool {
        call! { lua::lua_isnumber(self.state, index) != 0 }
    }

    /// The number, or that of a string; otherwise 0.
    pub fn number(&self, index: i32) -> f64 {
        call! { lua::lua_tonumber(self.state, index) }
    }

    /// Whether it counts as true.
    pub fn truth(&self, index: i32) -> bool {
        call! { lua::lua_toboolean(self.state, index) != 0 }
    }

    /// The bytes of a string; `None` of anything else, numbers included.
    pub fn string(&self, index: i32) -> Option<&[u8]> {
        (self.kind(index) == Kind::String).then(|| self.bytes_at(index))
    }

    /// The bytes of a string, or of a number, which becomes a string; `None` of anything else.
    pub fn text(&mut self, index: i32) -> Option<&[u8]> {
        matches!(self.kind(index), Kind::String | Kind::Number).then(|| self.bytes_at(index))
    }

    fn bytes_at(&self, index: i32) -> &[u8] {
        let mut len = 0;
        call! {
            let start = lua::lua_tolstring(self.state, index, &mut len);
            std::slice::from_raw_parts(start.cast(), len)
        }
    }

    /// The bytes of a string or number that an argument has to be.
    ///
    /// # Errors
    /// Another type.
    pub fn check_text(&mut self, index: i32) -> Result<&[u8], Raise> {
        self.text(index).ok_or(Raise::Type(index, c"string"))
    }

    /// The number that an argument has to be.
    ///
    /// # Errors
    /// Another type.
    pub fn check_number(&self, index: i32) -> Result<f64, Raise> {
        if self.is_numeric(index) { Ok(self.number(index)) } else { Err(Raise::Type(index, c"number")) }
    }

    /// Checks that an argument is a table.
    ///
    /// # Errors
    /// Another type.
    pub fn check_table(&self, index: i32) -> Result<(), Raise> {
        if self.kind(index) == Kind::Table { Ok(()) } else { Err(Raise::Type(index, c"table")) }
    }

    /// The length of a string, or the border of a table.
    pub fn len(&self, index: i32) -> usize {
        call! { lua::lua_objlen(self.state, index) }
    }

    /// Where a value is, for messages.
    pub fn address(&self, index: i32) -> *const c_void {
        call! { lua::lua_topointer(self.state, index) }
    }

    /// Whether it is the null of cjson.
    pub fn is_null(&self, index: i32) -> bool {
        let is_light = call! { lua::lua_type(self.state, index) == lua::LUA_TLIGHTUSERDATA };
        is_light && call! { lua::lua_touserdata(self.state, index).is_null() }
    }

    /// Pushes `nil`.
    pub fn push_nil(&self) {
        call! { lua::lua_pushnil(self.state) }
    }

    /// Pushes the null of cjson.
    pub fn push_null(&self) {
        call! { lua::lua_pushlightuserdata(self.state, ptr::null_mut()) }
    }

    /// Pushes a key that scripts cannot make: the address of something static.
    pub fn push_mark(&self, mark: &'static u8) {
        call! { lua::lua_pushlightuserdata(self.state, ptr::from_ref(mark).cast_mut().cast()) }
    }

    /// Pushes a truth value.
    pub fn push_boolean(&self, value: bool) {
        call! { lua::lua_pushboolean(self.state, c_int::from(value)) }
    }

    /// Pushes a number.
    pub fn push_number(&self, value: f64) {
        call! { lua::lua_pushnumber(self.state, value) }
    }

    /// Pushes a string.
    pub fn push_bytes(&self, bytes: &[u8]) {
        call! { lua::lua_pushlstring_(self.state, bytes.as_ptr().cast(), bytes.len()) }
    }

    /// Pushes a string of static bytes.
    pub fn push_str(&self, text: &str) {
        self.push_bytes(text.as_bytes());
    }

    /// Pushes a value again.
    pub fn push_value(&self, index: i32) {
        call! { lua::lua_pushvalue(self.state, index) }
    }

    /// Pushes a new table with room.
    pub fn push_table(&self, elements: usize, fields: usize) {
        let room = |count: usize| c_int::try_from(count.min(ROOM_MAX)).unwrap_or(0);
        call! { lua::lua_createtable(self.state, room(elements), room(fields)) }
    }

    /// Pushes a function.
    pub fn push_native(&self, function: Native) {
        call! {
            lua::lua_pushlightuserdata(self.state, function as *mut c_void);
            lua::lua_pushcclosure(self.state, call_native, 1);
        }
    }

    /// Pushes a function with the values on top as its own: [`own_value`] has their indices. They are popped.
    pub fn push_closure(&mut self, function: Native, values: i32) {
        call! {
            lua::lua_pushlightuserdata(self.state, function as *mut c_void);
            lua::lua_insert(self.state, -1 - values);
            lua::lua_pushcclosure(self.state, call_native, 1 + values);
        }
    }

    /// Pushes bytes of what is being built, from a place on, and removes them.
    pub fn push_built(&mut self, from: usize) {
        let home = self.home();
        call! {
            let building = &(*home).building;
            let built = building.get(from..).unwrap_or_default();
            lua::lua_pushlstring_(self.state, built.as_ptr().cast(), built.len());
            (*home).building.truncate(from);
        }
    }

    /// Whether one value is less than another, as `<` says.
    pub fn is_less(&mut self, one: i32, other: i32) -> bool {
        call! { lua::lua_lessthan(self.state, one, other) != 0 }
    }

    /// Replaces the key on top by its value in the table, with metamethods.
    pub fn get(&mut self, table: i32) {
        call! { lua::lua_gettable_(self.state, table) }
    }

    /// Replaces the C function on top by one that runs `guard` first: where that gives no results, the function
    /// itself runs in its place, as if called by the script. Its first upvalue stays.
    pub fn guard_function(&mut self, guard: Guard) {
        call! {
            let Some(function) = lua::lua_tocfunction(self.state, -1) else { return };
            if lua::lua_getupvalue(self.state, -1, 1).is_null() {
                lua::lua_pushnil(self.state);
            }
            lua::lua_pushlightuserdata(self.state, guard as *mut c_void);
            lua::lua_pushlightuserdata(self.state, function as *mut c_void);
            lua::lua_pushcclosure(self.state, call_guarded, 3);
            lua::lua_remove(self.state, -2);
        }
    }

    /// Sets the globals that a function sees to the table on top.
    pub fn set_environment(&mut self, function: i32) {
        call! { lua::lua_setfenv(self.state, function) };
    }

    /// Replaces the key on top by its value in the table.
    pub fn raw_get(&mut self, table: i32) {
        call! { lua::lua_rawget_(self.state, table) }
    }

    /// Pushes the element at `index` of the table.
    pub fn raw_get_index(&self, table: i32, index: i32) {
        call! { lua::lua_rawgeti_(self.state, table, index) }
    }

    /// Pushes a field of the table, without metamethods. `table` is no relative index below the top.
    pub fn raw_get_field(&mut self, table: i32, name: &str) {
        self.push_str(name);
        let table = if table < 0 && table > REGISTRY { table - 1 } else { table };
        self.raw_get(table);
    }

    /// Sets the value under the key, which are on top: key below value.
    pub fn raw_set(&mut self, table: i32) {
        call! { lua::lua_rawset(self.state, table) }
    }

    /// Sets the element at `index` of the table to the value on top.
    pub fn raw_set_index(&mut self, table: i32, index: i32) {
        call! { lua::lua_rawseti_(self.state, table, index) }
    }

    /// Sets a field of the table to the value on top, without metamethods.
    pub fn raw_set_field(&mut self, table: i32, name: &str) {
        self.push_str(name);
        self.insert(-2);
        let table = if table < 0 && table > REGISTRY { table - 1 } else { table };
        self.raw_set(table);
    }

    /// Replaces the key on top by the next key and its value; false, without the key, after the last. The key has to
    /// be one of the table's, or `nil`: another raises.
    pub fn next(&mut self, table: i32) -> bool {
        call! { lua::lua_next(self.state, table) != 0 }
    }

    /// Pushes the metatable of a value; false if it has none.
    pub fn push_metatable(&self, index: i32) -> bool {
        call! { lua::lua_getmetatable(self.state, index) != 0 }
    }

    /// Calls the function below the arguments on top.
    pub fn call(&mut self, arguments: i32, results: i32) {
        call! { lua::lua_call(self.state, arguments, results) }
    }

    /// Calls the function below the arguments on top; false when it raised, with the value on top. All its results
    /// are pushed.
    pub fn call_protected(&mut self, arguments: i32) -> bool {
        call! { lua::lua_pcall(self.state, arguments, lua::LUA_MULTRET, 0) == lua::LUA_OK }
    }

    /// Calls the function at index 2 with the handler at index 1, as `xpcall` does; false when it raised. A script
    /// that is over runs no handler: hooks are off while one runs for the error of a hook, so that nothing could end
    /// it.
    pub fn call_handled(&mut self) -> bool {
        call! {
            lua::lua_pushvalue(self.state, 1);
            lua::lua_pushcclosure(self.state, handle, 1);
            lua::lua_replace(self.state, 1);
            lua::lua_pcall(self.state, 0, lua::LUA_MULTRET, 1) == lua::LUA_OK
        }
    }

    /// Compiles a text, and pushes the function; false, with the message on top, when it is wrong. `name` is a string
    /// on the stack: the parser holds it by nothing else (CVE-2025-49844). Compiled code is parsed as text, and so
    /// refused.
    pub fn load(&mut self, text: i32, name: &CStr) -> bool {
        self.push_value(text);
        if self.bytes_at(-1).starts_with(&[0x1B]) {
            self.push_str(" ");
            self.insert(-2);
            self.join(2);
        }
        let bytes = self.bytes_at(-1);
        call! {
            lua::lua_pushstring_(self.state, name.as_ptr());
            let (start, len) = (bytes.as_ptr().cast(), bytes.len());
            let loaded = lua::luaL_loadbuffer(self.state, start, len, name.as_ptr());
            lua::lua_remove(self.state, -2);
            lua::lua_remove(self.state, -2);
            loaded == lua::LUA_OK
        }
    }

    /// Pushes the place of the function at this level, or an empty string.
    pub fn push_place(&self, level: i32) {
        call! { lua::luaL_where(self.state, level) }
    }

    /// Joins the strings on top.
    pub fn join(&mut self, count: i32) {
        call! { lua::lua_concat(self.state, count) }
    }

    /// The function at this level, the running one being 0: where it is. `None` beyond the first. The flag says that
    /// it is no Lua code.
    pub fn caller(&self, level: i32) -> Option<(Caller, bool)> {
        call! {
            let mut debug: lua::lua_Debug = std::mem::zeroed();
            if lua::lua_getstack(self.state, level, &mut debug) == 0 {
                return None;
            }
            lua::lua_getinfo(self.state, c"Sl".as_ptr(), &mut debug);
            let is_native = *debug.what == b'C' as std::ffi::c_char;
            Some((Caller { source: debug.source, line: debug.currentline }, is_native))
        }
    }

    /// Pushes the source of a function.
    pub fn push_source(&self, caller: &Caller) {
        call! { lua::lua_pushstring_(self.state, caller.source) }
    }
}

/// The index of the values that a closure was made with, from 1 on.
pub fn own_value(number: i32) -> i32 {
    lua::lua_upvalueindex(1 + number)
}

/// More room is not made in advance, whatever a reply says of itself.
const ROOM_MAX: usize = 1 << 16;

/// What runs before a C function: gives its results, or nothing to have the function itself called.
pub type Guard = fn(&mut Stack) -> Result<Option<i32>, Raise>;

/// Every native function: the one in the first upvalue is called.
unsafe extern "C-unwind" fn call_native(state: *mut lua::lua_State) -> c_int {
    // SAFETY: Lua calls it with a live state, and only `push_native` makes the closure.
    let (mut stack, function) = unsafe {
        let function = lua::lua_touserdata(state, lua::lua_upvalueindex(1));
        (Stack::of(state), std::mem::transmute::<*mut c_void, Native>(function))
    };
    let result = match catch_unwind(AssertUnwindSafe(|| function(&mut stack))) {
        Ok(result) => result,
        Err(payload) => panicked(&stack, payload),
    };
    match result {
        Ok(count) => count,
        Err(raise) => raise_in(&stack, raise),
    }
}

/// Every guarded function.
unsafe extern "C-unwind" fn call_guarded(state: *mut lua::lua_State) -> c_int {
    // SAFETY: as above; only `guard_function` makes the closure.
    let (mut stack, guard, function) = unsafe {
        let guard = lua::lua_touserdata(state, lua::lua_upvalueindex(2));
        let function = lua::lua_touserdata(state, lua::lua_upvalueindex(3));
        let guard = std::mem::transmute::<*mut c_void, Guard>(guard);
        (Stack::of(state), guard, std::mem::transmute::<*mut c_void, lua::lua_CFunction>(function))
    };
    match guard(&mut stack) {
        Ok(Some(count)) => count,
        // SAFETY: the function gets the state as if Lua had called it, in the frame of this closure.
        Ok(None) => unsafe { function(state) },
        Err(raise) => raise_in(&stack, raise),
    }
}

/// The handler of [`Stack::call_handled`]: the script's own is its upvalue.
unsafe extern "C-unwind" fn handle(state: *mut lua::lua_State) -> c_int {
    // SAFETY: Lua calls it with a live state and one argument; the closure has its upvalue.
    unsafe {
        if !(*Stack::of(state).home()).is_over {
            lua::lua_settop(state, 1);
            lua::lua_pushvalue(state, lua::lua_upvalueindex(1));
            lua::lua_insert(state, 1);
            lua::lua_call(state, 1, 1);
        }
        1
    }
}

/// A bug: the script ends, and then the worker panics with it.
#[cold]
fn panicked(stack: &Stack, payload: Box<dyn std::any::Any + Send>) -> Result<i32, Raise> {
    call! { (*stack.home()).panicked(payload) };
    stack.push_str("internal error");
    Err(Raise::Top)
}

/// Raises: this does not return.
pub(super) fn raise_in(stack: &Stack, raise: Raise) -> c_int {
    let state = stack.state;
    call! {
        match raise {
            Raise::Top => lua::lua_error(state),
            Raise::Memory => {
                (*stack.home()).lacks_memory = false;
                (*stack.home()).scratch.clear();
                // No state has room for another as large as itself: this does not return.
                lua::lua_newuserdata(state, (*stack.home()).bytes_max);
                0
            }
            Raise::Located(text) => lua::luaL_error(state, c"%s".as_ptr(), text.as_ptr()),
            Raise::Written => {
                let scratch = &(*stack.home()).scratch;
                lua::luaL_where(state, 1);
                lua::lua_pushlstring_(state, scratch.as_ptr().cast(), scratch.len());
                lua::lua_concat(state, 2);
                lua::lua_error(state)
            }
            Raise::WrittenArgument(index) => {
                let scratch = &(*stack.home()).scratch;
                lua::lua_pushlstring_(state, scratch.as_ptr().cast(), scratch.len());
                lua::luaL_argerror(state, index, lua::lua_tolstring(state, -1, ptr::null_mut()))
            }
            Raise::Argument(index, what) => lua::luaL_argerror(state, index, what.as_ptr()),
            Raise::Type(index, name) => lua::luaL_typerror(state, index, name.as_ptr()),
        }
    }
}
