//! A Lua state, its memory and its functions.
//!
//! All code of scripts runs in calls that Lua protects; what lies outside of them raises nothing.

use crate::lua::arguments::{self, push_strings};
use crate::lua::budget::{TICK_INSTRUCTIONS, tick};
use crate::lua::function::Function;
use crate::lua::given::Asked;
use crate::lua::home::Home;
use crate::lua::install::reference;
use crate::lua::json_settings::Settings;
use crate::lua::registered::Registered;
use crate::lua::stack::{REGISTRY, Raise, Stack};
use crate::lua::{Failure, Host, proxies, replies, sandbox};
use mlua_sys as lua;
use std::ffi::{CStr, c_int, c_void};
use std::panic::resume_unwind;
use std::ptr;

/// One Lua state.
pub struct Engine {
    state: *mut lua::lua_State,
    home: *mut Home,
    /// [`run_protected`] and the handler of errors, made once.
    entry: Option<Function>,
    handler: Function,
    /// Which of KEYS and ARGV each function has asked for, by its number.
    asked: Vec<Asked>,
}

impl Engine {
    /// A state with the globals that scripts see. `None` when `bytes_max` is too little for it.
    pub fn new(bytes_max: usize) -> Option<Self> {
        Self::with_libraries(bytes_max, true)
    }

    fn with_libraries(bytes_max: usize, replaces: bool) -> Option<Self> {
        let home = Box::into_raw(Box::new(Home { bytes_max, ..Home::default() }));
        // SAFETY: the allocator gets the home, which is freed after the state.
        let state = unsafe { lua::lua_newstate(allocate, home.cast()) };
        let mut engine = Self { state, home, entry: None, handler: Function(0), asked: Vec::new() };
        if state.is_null() {
            return None;
        }
        let (mut entry, mut handler) = (None, Function(0));
        let built = engine.protected(&mut |stack| {
            sandbox::build(stack, replaces)?;
            stack.push_native(sandbox::handle_error);
            handler = reference(stack);
            // SAFETY: in a protected call.
            unsafe { lua::lua_pushcclosure(stack.state(), run_protected, 0) };
            entry = Some(reference(stack));
            Ok(0)
        });
        (engine.entry, engine.handler) = (entry, handler);
        built.is_ok().then_some(engine)
    }

    /// Bytes that the state uses.
    pub fn used_bytes(&self) -> usize {
        // SAFETY: the home lives as long as the engine, and no script runs while the engine is borrowed here.
        unsafe { (*self.home).used_bytes }
    }

    /// Compiles a script.
    ///
    /// # Errors
    /// The message of the compiler, or no memory.
    pub fn compile(&mut self, text: &[u8]) -> Result<Function, Failure> {
        self.compile_named(text, c"@user_script", false)
    }

    fn compile_named(&mut self, text: &[u8], name: &CStr, is_library: bool) -> Result<Function, Failure> {
        let mut function = Function(0);
        self.protected(&mut |stack| {
            stack.push_bytes(text);
            if !stack.load(-1, name) {
                return Err(Raise::Top);
            }
            if is_library {
                proxies::push_library_environment(stack);
                stack.set_environment(-2);
            }
            function = reference(stack);
            Ok(0)
        })?;
        Ok(function)
    }

    /// Compiles a library and runs it once, so that it registers its functions.
    ///
    /// # Errors
    /// The outer error: it does not compile. The inner one: it has raised, or the host has ended it.
    pub fn load_library(
        &mut self,
        text: &[u8],
        host: &mut dyn Host,
    ) -> Result<Result<Vec<Registered>, Failure>, Failure> {
        let function = self.compile_named(text, c"@user_function", true)?;
        let running = Running::begin(self, host);
        running.with_home(|home| home.registered = Some(Vec::new()));
        let mut lacked_memory = false;
        let result = self.protected(&mut |stack| {
            sandbox::set_loading(stack, true);
            stack.raw_get_index(REGISTRY, function.0);
            // SAFETY: the function is on top.
            let status = unsafe { lua::lua_pcall(stack.state(), 0, 0, 0) };
            sandbox::set_loading(stack, false);
            match status {
                lua::LUA_OK => Ok(0),
                status => {
                    lacked_memory = status == lua::LUA_ERRMEM;
                    sandbox::as_error(stack);
                    Err(Raise::Top)
                }
            }
        });
        let registered = running.with_home(|home| home.registered.take()).unwrap_or_default();
        let (is_over, panic) = running.end();
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
        self.forget(function);
        let failure = match result {
            _ if is_over => Failure::Over,
            Ok(()) => return Ok(Ok(registered)),
            Err(_) if lacked_memory => Failure::Memory,
            Err(failure) => failure,
        };
        registered.into_iter().for_each(|registered| self.forget(registered.function));
        Ok(Err(failure))
    }

    /// Forgets a function.
    pub fn forget(&mut self, function: Function) {
        *self.asked_by(function) = Asked::default();
        // SAFETY: removing a reference allocates nothing: it reuses the slot.
        unsafe { lua::luaL_unref(self.state, REGISTRY, function.0) };
    }

    /// Runs a script with its keys and arguments, and writes what it returns to the host's reply.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run<'a>(
        &mut self,
        function: Function,
        keys: &mut dyn ExactSizeIterator<Item = &'a [u8]>,
        args: &mut dyn ExactSizeIterator<Item = &'a [u8]>,
        host: &mut dyn Host,
    ) -> Result<(), Failure> {
        self.run_as(false, function, keys, args, host)
    }

    /// [`Engine::run`] of a function of a library, which gets keys and arguments as its two arguments.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn call<'a>(
        &mut self,
        function: Function,
        keys: &mut dyn ExactSizeIterator<Item = &'a [u8]>,
        args: &mut dyn ExactSizeIterator<Item = &'a [u8]>,
        host: &mut dyn Host,
    ) -> Result<(), Failure> {
        self.run_as(true, function, keys, args, host)
    }

    fn asked_by(&mut self, function: Function) -> &mut Asked {
        let number = usize::try_from(function.0).unwrap_or(0);
        if number >= self.asked.len() {
            self.asked.resize(number + 1, Asked::default());
        }
        &mut self.asked[number]
    }

    fn run_as<'a>(
        &mut self,
        is_library: bool,
        function: Function,
        keys: &mut dyn ExactSizeIterator<Item = &'a [u8]>,
        args: &mut dyn ExactSizeIterator<Item = &'a [u8]>,
        host: &mut dyn Host,
    ) -> Result<(), Failure> {
        let (handler, asked) = (self.handler, *self.asked_by(function));
        let running = Running::begin(self, host);
        if is_library {
            running.with_home(|home| home.is_library = true);
        } else {
            // SAFETY: the home forgets them when `running` ends, before they do.
            running.with_home(|home| unsafe { home.arguments.begin(&mut *keys, &mut *args) });
        }
        let mut lacked_memory = false;
        let result = self.protected(&mut |stack| {
            stack.raw_get_index(REGISTRY, handler.0);
            let argument_count = if is_library {
                stack.raw_get_index(REGISTRY, function.0);
                push_strings(stack, keys);
                push_strings(stack, args);
                2
            } else {
                arguments::prepare(stack, asked);
                stack.raw_get_index(REGISTRY, function.0);
                0
            };
            // SAFETY: the function, below its arguments, is on top of its handler.
            let status = unsafe { lua::lua_pcall(stack.state(), argument_count, 1, -2 - argument_count) };
            match status {
                lua::LUA_OK => replies::write_value(stack),
                status => {
                    lacked_memory = status == lua::LUA_ERRMEM;
                    return Err(Raise::Top);
                }
            }
            Ok(0)
        });
        let asked = running.with_home(|home| home.arguments.are_there);
        let (is_over, panic) = running.end();
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
        if !is_library {
            *self.asked_by(function) = asked;
        }
        match result {
            _ if is_over => Err(Failure::Over),
            Err(_) if lacked_memory => Err(Failure::Memory),
            result => result,
        }
    }

    /// Runs native code in a call that Lua protects.
    fn protected(&self, run: &mut dyn FnMut(&mut Stack) -> Result<i32, Raise>) -> Result<(), Failure> {
        let mut run = run;
        let run = ptr::from_mut(&mut run).cast();
        // SAFETY: `run_protected` uses the pointer during the call alone. Without memory for the call itself,
        // `lua_cpcall` fails; what is done in its place once there is an entry needs none.
        let status = unsafe {
            match self.entry {
                None => lua::lua_cpcall(self.state, run_protected, run),
                Some(entry) => {
                    lua::lua_rawgeti_(self.state, REGISTRY, entry.0);
                    lua::lua_pushlightuserdata(self.state, run);
                    lua::lua_pcall(self.state, 1, 0, 0)
                }
            }
        };
        let result = match status {
            lua::LUA_OK => Ok(()),
            lua::LUA_ERRMEM => Err(Failure::Memory),
            _ => Err(self.failure()),
        };
        // SAFETY: nothing is left on the stack of the state between calls.
        unsafe { lua::lua_settop(self.state, 0) };
        result
    }

    /// What the value on top says: it was raised.
    fn failure(&self) -> Failure {
        // SAFETY: the state is alive. Looking at the strings of a table allocates nothing but the interned names of
        // its fields, which `sandbox` keeps.
        let mut stack = unsafe { Stack::of(self.state) };
        sandbox::describe(&mut stack)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: the state was made by `new` and is closed once; its home is freed after it.
        unsafe {
            if !self.state.is_null() {
                lua::lua_close(self.state);
            }
            drop(Box::from_raw(self.home));
        }
    }
}

/// The host is set while a script runs.
struct Running(*mut Home, *mut lua::lua_State);

impl Running {
    /// To be dropped before the host.
    fn begin(engine: &Engine, host: &mut dyn Host) -> Self {
        let host: *mut (dyn Host + '_) = host;
        // SAFETY: the pointer is used until this is dropped, also by a panic. Home and state live as long as the
        // engine; no other code of the engine runs.
        unsafe {
            let host = std::mem::transmute::<*mut (dyn Host + '_), *mut (dyn Host + 'static)>(host);
            (*engine.home).host = Some(host);
            (*engine.home).is_over = false;
            (*engine.home).is_library = false;
            (*engine.home).clear();
            (*engine.home).json = Settings::default();
            lua::lua_sethook(engine.state, Some(tick), lua::LUA_MASKCOUNT, TICK_INSTRUCTIONS);
        }
        Self(engine.home, engine.state)
    }

    fn with_home<R>(&self, body: impl FnOnce(&mut Home) -> R) -> R {
        // SAFETY: as above.
        body(unsafe { &mut *self.0 })
    }

    fn end(self) -> (bool, Option<Box<dyn std::any::Any + Send>>) {
        // SAFETY: as above.
        unsafe { ((*self.0).is_over, (*self.0).take_panic()) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe {
            (*self.0).host = None;
            (*self.0).registered = None;
            (*self.0).arguments.end();
            (*self.0).clear();
            lua::lua_sethook(self.1, None, 0, 0);
        }
    }
}

/// What [`Engine::protected`] has Lua call: the only value is the code to run.
unsafe extern "C-unwind" fn run_protected(state: *mut lua::lua_State) -> c_int {
    type Run<'r> = &'r mut dyn FnMut(&mut Stack) -> Result<i32, Raise>;
    // SAFETY: `protected` passes a pointer that is valid during this call.
    let (run, mut stack) = unsafe { (&mut *lua::lua_touserdata(state, 1).cast::<Run<'_>>(), Stack::of(state)) };
    match run(&mut stack) {
        Ok(count) => count,
        // SAFETY: what is raised is on top.
        Err(Raise::Top) => unsafe { lua::lua_error(state) },
        Err(_) => 0,
    }
}

/// The allocator of a state: the C library's, up to the limit of the home.
unsafe extern "C" fn allocate(home: *mut c_void, block: *mut c_void, old: usize, new: usize) -> *mut c_void {
    // SAFETY: Lua passes the home it was made with, and blocks that this function gave with their lengths.
    unsafe {
        let home = home.cast::<Home>();
        let old = if block.is_null() { 0 } else { old };
        let used = (*home).used_bytes - old;
        if new == 0 {
            (*home).used_bytes = used;
            libc::free(block);
            return ptr::null_mut();
        }
        // Shrinking never fails, as Lua expects.
        if new > old && used.saturating_add(new) > (*home).bytes_max {
            return ptr::null_mut();
        }
        let block = libc::realloc(block, new);
        if !block.is_null() {
            (*home).used_bytes = used + new;
        }
        block
    }
}

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod libraries;
#[cfg(test)]
mod tests;
