//! The libraries of a worker: those of the store, compiled in its Lua state.
//!
//! The store holds texts, which are data. A worker compiles them when it first needs a function or is asked about them
//! after a change. It runs a library once, which registers its functions; their local variables belong to this worker.

use crate::lua::{Called, Engine, Failure, Function, Host, Registered};
use crate::metadata::{self, Metadata};
use crate::reach::{self, Reach};
use crate::shebang::Flags;
use command::{Args, Stop};
use engine::Libraries;
use proto::{Protocol, ReplyBuffer};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A library that registers its functions for longer than this is refused.
const LOAD_DURATION_MAX: Duration = Duration::from_millis(500);

/// A function of a library.
#[derive(Debug)]
pub struct LibraryFunction {
    /// Its name, as it was registered.
    pub name: Vec<u8>,
    /// Its Lua function.
    pub function: Function,
    /// What it does, in words.
    pub description: Option<Vec<u8>>,
    /// What it may do.
    pub flags: Flags,
    /// What it has used.
    pub reach: Cell<Reach>,
}

/// A compiled library.
#[derive(Debug)]
pub struct Library {
    /// Its text.
    pub code: Arc<[u8]>,
    /// Its functions, in the order in which they were registered.
    pub functions: Vec<LibraryFunction>,
}

/// The compiled libraries of a worker.
#[derive(Debug, Default)]
pub struct Compiled {
    /// What the store had when they were compiled.
    source: Arc<Libraries>,
    libraries: BTreeMap<Vec<u8>, Library>,
    /// Functions by name in lower case: the library, and the place in it.
    functions: HashMap<Vec<u8>, (Vec<u8>, usize)>,
}

impl Compiled {
    /// The function of this name, in any case of letters.
    pub fn function(&self, name: &[u8]) -> Option<&LibraryFunction> {
        let (library, place) = self.functions.get(&name.to_ascii_lowercase())?;
        self.libraries.get(library)?.functions.get(*place)
    }

    /// The library that has a function of this name.
    pub fn library_of(&self, name: &[u8]) -> Option<&[u8]> {
        self.functions.get(&name.to_ascii_lowercase()).map(|(library, _)| library.as_slice())
    }

    /// All libraries, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &Library)> {
        self.libraries.iter().map(|(name, library)| (name.as_slice(), library))
    }

    /// How many functions there are.
    pub fn function_count(&self) -> usize {
        self.libraries.values().map(|library| library.functions.len()).sum()
    }

    /// What the store had when these were compiled.
    pub fn source(&self) -> &Arc<Libraries> {
        &self.source
    }

    /// Becomes what the store has now. False when nothing has changed.
    pub fn follow(&mut self, engine: &mut Engine, now: &Arc<Libraries>) -> bool {
        let is_other = !Arc::ptr_eq(&self.source, now);
        if is_other {
            self.rebuild(engine, now);
        }
        is_other
    }

    /// Takes over libraries that were compiled and stored: what the store has now.
    pub fn adopt(&mut self, engine: &mut Engine, now: &Arc<Libraries>, libraries: BTreeMap<Vec<u8>, Library>) {
        for (name, library) in libraries {
            let code = now.get(&name).cloned().unwrap_or(library.code);
            if let Some(old) = self.libraries.insert(name, Library { code, functions: library.functions }) {
                forget(engine, old.functions);
            }
        }
        self.rebuild(engine, now);
    }

    #[cold]
    fn rebuild(&mut self, engine: &mut Engine, now: &Arc<Libraries>) {
        let is_current =
            |name: &[u8], library: &Library| now.get(name).is_some_and(|code| Arc::ptr_eq(code, &library.code));
        self.libraries.retain(|name, library| {
            let is_kept = is_current(name, library);
            if !is_kept {
                forget(engine, std::mem::take(&mut library.functions));
            }
            is_kept
        });
        for (name, code) in now.iter() {
            if self.libraries.contains_key(name) {
                continue;
            }
            match compile(engine, code) {
                Ok((_, library)) => drop(self.libraries.insert(name.to_vec(), library)),
                Err(stop) => tracing::warn!(
                    "library {} cannot be loaded, its functions are not found: {}",
                    name.escape_ascii(),
                    text_of(&stop).escape_ascii(),
                ),
            }
        }
        self.source = now.clone();
        self.functions = HashMap::new();
        for (name, library) in &self.libraries {
            for (place, function) in library.functions.iter().enumerate() {
                let place = (name.clone(), place);
                self.functions.entry(function.name.to_ascii_lowercase()).or_insert(place);
            }
        }
    }
}

/// Forgets functions that are not called any more.
pub fn forget(engine: &mut Engine, functions: Vec<LibraryFunction>) {
    functions.into_iter().for_each(|function| engine.forget(function.function));
}

/// Compiles a library, and has it register its functions.
///
/// # Errors
/// As FUNCTION LOAD answers them.
pub fn compile(engine: &mut Engine, code: &Arc<[u8]>) -> Result<(Vec<u8>, Library), Stop> {
    let Metadata { name, len } = metadata::read(code)?;
    let mut host = Loading { since: Instant::now(), reply: ReplyBuffer::new(Protocol::Resp2), is_late: false };
    let loaded = engine.load_library(code.get(len..).unwrap_or_default(), &mut host);
    let registered = match loaded {
        Err(failure) => return Err(described(b"ERR Error compiling function: ", failure)),
        Ok(Err(_)) if host.is_late => {
            return Err(Stop::error("ERR Error registering functions: ERR FUNCTION LOAD timeout"));
        }
        Ok(Err(failure)) => return Err(described(b"ERR Error registering functions: ", failure)),
        Ok(Ok(registered)) => registered,
    };
    let mut functions = Vec::with_capacity(registered.len());
    let mut fault = None;
    for Registered { name, function, description, flags } in registered {
        if fault.is_none() {
            fault = fault_of(&name, &functions);
        }
        functions.push(LibraryFunction { name, function, description, flags, reach: Cell::default() });
    }
    if functions.is_empty() {
        fault = Some(Stop::error("ERR No functions registered"));
    }
    match fault {
        None => Ok((name, Library { code: code.clone(), functions })),
        Some(fault) => {
            forget(engine, functions);
            Err(fault)
        }
    }
}

/// Why a library may not have a function of this name besides these.
fn fault_of(name: &[u8], others: &[LibraryFunction]) -> Option<Stop> {
    if !metadata::is_name(name) {
        return Some(Stop::error(
            "ERR Function names can only contain letters, numbers, or underscores(_) and must be at least one \
             character long",
        ));
    }
    // Calls ignore the case of a name; registration does not, as in Valkey.
    let is_taken = others.iter().any(|other| other.name == name);
    is_taken.then(|| Stop::error("ERR Function already exists in the library"))
}

fn described(what: &[u8], failure: Failure) -> Stop {
    match failure {
        Failure::Raised(text) | Failure::Answered(text) => Stop::error_with([what, &text].concat()),
        Failure::Memory | Failure::Over => Stop::error_with([what, b"ERR not enough memory"].concat()),
    }
}

fn text_of(stop: &Stop) -> &[u8] {
    match stop {
        Stop::Error(text) => text.as_bytes(),
        Stop::Fetch => b"rows are missing",
    }
}

/// What a library can reach while it is loaded: the server's log.
struct Loading {
    since: Instant,
    reply: ReplyBuffer,
    is_late: bool,
}

impl Host for Loading {
    fn call(&mut self, _: Args<'_>) -> Called {
        Called::Over
    }

    fn answer(&mut self) -> &[u8] {
        b""
    }

    fn set_protocol(&mut self, _: Protocol) {}

    fn protocol(&self) -> Protocol {
        Protocol::Resp2
    }

    fn reply(&mut self) -> &mut ReplyBuffer {
        &mut self.reply
    }

    fn may_run(&mut self, _: Args<'_>) -> Option<bool> {
        None
    }

    fn log(&mut self, level: u8, text: &[u8]) {
        reach::log(level, text);
    }

    fn tick(&mut self) -> Result<(), &'static str> {
        self.is_late = self.since.elapsed() >= LOAD_DURATION_MAX;
        if self.is_late { Err("the library is loaded for too long") } else { Ok(()) }
    }
}
