//! What belongs to one Lua state: its memory, the script that runs, and what native functions share.

use crate::lua::Host;
use crate::lua::given::Arguments;
use crate::lua::json_settings::Settings;
use crate::lua::registered::Registered;
use crate::shebang::Flags;
use proto::Span;
use std::any::Any;
use std::time::Instant;

/// The data of a state's allocator, through which native functions find it.
#[derive(Default)]
pub struct Home {
    /// Bytes the state has allocated.
    pub used_bytes: usize,
    /// It gets no more than this.
    pub bytes_max: usize,
    /// What native functions build.
    pub scratch: Vec<u8>,
    /// The same, of functions that call back: each adds after what its callers have there.
    pub building: Vec<u8>,
    /// What native functions have done since the host was asked last.
    pub steps: usize,
    /// When it was asked last.
    pub looked_at: Option<Instant>,
    /// The script has built more than its memory holds, and ends with the next step.
    pub lacks_memory: bool,
    /// The arguments of a call.
    pub spans: Vec<Span>,
    /// The script that runs; set by [`Engine::run`](crate::lua::Engine) alone, for as long as that lasts.
    pub(super) host: Option<*mut (dyn Host + 'static)>,
    /// Its keys and arguments.
    pub arguments: Arguments,
    /// The script is over, whatever it does: it runs again, or a bug has ended it.
    pub is_over: bool,
    pub(super) panic: Option<Box<dyn Any + Send>>,
    /// What the library that is being loaded has registered; `None` when none is.
    pub registered: Option<Vec<Registered>>,
    /// The flags of the function that is being registered.
    pub registered_flags: Flags,
    /// A function of a library runs, not a script.
    pub is_library: bool,
    /// The state of `math.random`.
    pub random: u64,
    /// The settings of `cjson`.
    pub json: Settings,
}

/// More room is not kept for the next script.
const KEPT_BYTES_MAX: usize = 1 << 20;

impl Home {
    /// Whether this many bytes more fit in the memory of the state; what is being built counts.
    pub fn has_memory(&self, bytes: usize) -> bool {
        let taken = self.used_bytes + self.scratch.len() + self.building.len();
        taken.saturating_add(bytes) <= self.bytes_max
    }

    /// Adds an argument of a command to the scratch; false when all together are too long. What does not fit in the
    /// memory of the state is dropped, and the next step raises.
    pub fn add_argument(&mut self, bytes: &[u8]) -> bool {
        let start = self.scratch.len();
        match self.has_memory(bytes.len()) {
            true => self.scratch.extend_from_slice(bytes),
            false => self.lack_memory(),
        }
        self.end_argument(start)
    }

    /// What the scratch has from here on is an argument; false when all together are too long.
    pub fn end_argument(&mut self, start: usize) -> bool {
        let span = Span::new(start, self.scratch.len() - start);
        self.spans.extend(span);
        span.is_some()
    }

    /// Forgets what the last script has built.
    pub fn clear(&mut self) {
        for built in [&mut self.scratch, &mut self.building] {
            built.clear();
            built.shrink_to(KEPT_BYTES_MAX);
        }
        (self.steps, self.lacks_memory, self.looked_at) = (0, false, None);
    }

    /// Keeps what a native function has panicked with.
    pub(super) fn panicked(&mut self, payload: Box<dyn Any + Send>) {
        self.is_over = true;
        self.panic.get_or_insert(payload);
    }

    /// What a native function has panicked with.
    pub(super) fn take_panic(&mut self) -> Option<Box<dyn Any + Send>> {
        self.panic.take()
    }
}
