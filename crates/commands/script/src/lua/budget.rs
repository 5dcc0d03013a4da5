//! What native functions spend: memory, and steps, after which the host is asked whether the script continues.
//!
//! Lua's own hooks count instructions of scripts and see nothing of a native function. Every loop of one that a script
//! makes long spends a step for each turn, about 10 ns of work, so that SCRIPT KILL and `-BUSY` are not late.

use crate::lua::home::Home;
use crate::lua::stack::{Raise, Stack, raise_in};
use mlua_sys as lua;
use std::ffi::c_int;
use std::time::{Duration, Instant};

/// The host is asked after this many steps: a tenth of a millisecond or so.
const STEPS_MAX: usize = 10_000;

/// Bytes that are copied or compared in the time of one step.
pub const STEP_BYTES: usize = 64;

impl Home {
    /// The script needs more memory than it has: its next step raises.
    #[cold]
    pub fn lack_memory(&mut self) {
        self.lacks_memory = true;
        self.steps = STEPS_MAX;
    }
}

impl Stack {
    /// Has done this many steps.
    ///
    /// # Errors
    /// The script is over, or has built more than its memory holds.
    pub fn spend(&mut self, steps: usize) -> Result<(), Raise> {
        let spent = self.with_home(|home| {
            home.steps = home.steps.saturating_add(steps);
            home.steps
        });
        if spent < STEPS_MAX { Ok(()) } else { self.look() }
    }

    /// Has read, written or compared this many bytes.
    ///
    /// # Errors
    /// As [`Stack::spend`].
    pub fn spend_bytes(&mut self, bytes: usize) -> Result<(), Raise> {
        self.spend(1 + bytes / STEP_BYTES)
    }

    /// Asks the host whether the script continues.
    ///
    /// # Errors
    /// As [`Stack::spend`].
    #[cold]
    pub fn look(&mut self) -> Result<(), Raise> {
        self.with_home(|home| home.steps = 0);
        if self.with_home(|home| home.lacks_memory) {
            return Err(Raise::Memory);
        }
        let is_over = self.with_home(|home| home.is_over);
        if is_over || self.with_host(|_, host| host.tick().is_err()).unwrap_or(false) {
            self.end_script();
            return Err(Raise::Located(c"the script is over"));
        }
        Ok(())
    }

    /// Has nothing of the script run any more, whatever it catches.
    pub fn end_script(&mut self) {
        self.with_home(|home| home.is_over = true);
        // SAFETY: the state is alive (S1 of `stack`), and setting a hook is always allowed.
        unsafe { lua::lua_sethook(self.state(), Some(tick), lua::LUA_MASKCOUNT, 1) };
    }

    /// Checks that all fits that was built: it is pushed next.
    ///
    /// # Errors
    /// As [`Stack::spend`].
    pub fn look_at_memory(&self) -> Result<(), Raise> {
        if self.with_home(|home| home.lacks_memory) { Err(Raise::Memory) } else { Ok(()) }
    }

    /// Where what a function builds begins: after that of its callers.
    pub fn build(&self) -> usize {
        self.with_home(|home| home.building.len())
    }

    /// Forgets what functions that were called have left: what was built ends here again.
    pub fn cut_built(&self, len: usize) {
        self.with_home(|home| home.building.truncate(len));
    }

    /// Adds to what is being built.
    ///
    /// # Errors
    /// As [`Stack::spend`].
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), Raise> {
        self.with_home(|home| match home.has_memory(bytes.len()) {
            true => home.building.extend_from_slice(bytes),
            false => home.lack_memory(),
        });
        self.spend_bytes(bytes.len())
    }

    /// Adds the string or number on top, and removes it.
    ///
    /// # Errors
    /// As [`Stack::spend`].
    pub fn add_value(&mut self) -> Result<(), Raise> {
        let bytes = self.anchored(-1);
        self.add(bytes)?;
        self.pop(1);
        Ok(())
    }
}

/// The host is asked after this many instructions.
pub(super) const TICK_INSTRUCTIONS: c_int = 2000;

/// They are slow when they take this long.
const SLOW: Duration = Duration::from_millis(5);

/// Called after a count of instructions.
///
/// Some instructions take milliseconds, such as joining strings of 50 MB. When the last ones were slow, the next call
/// comes after fewer of them.
pub(super) unsafe extern "C-unwind" fn tick(state: *mut lua::lua_State, _: *mut lua::lua_Debug) {
    // SAFETY: a hook is called with a live state.
    let mut stack = unsafe { Stack::of(state) };
    if let Err(raise) = stack.look() {
        raise_in(&stack, raise);
        return;
    }
    let now = Instant::now();
    let passed = stack.with_home(|home| home.looked_at.replace(now)).map(|last| now - last);
    // SAFETY: as above; setting a hook is what a hook may do.
    unsafe {
        let count = lua::lua_gethookcount(state);
        let next = match passed {
            Some(passed) if passed > SLOW => (count / 10).max(1),
            _ => count.saturating_mul(10).min(TICK_INSTRUCTIONS),
        };
        if next != count {
            lua::lua_sethook(state, Some(tick), lua::LUA_MASKCOUNT, next);
        }
    }
}
