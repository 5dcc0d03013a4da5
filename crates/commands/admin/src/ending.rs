//! The end of the server, asked for by SHUTDOWN or by a signal. Both take the same way:
//!
//! ```text
//! SHUTDOWN, SIGTERM, SIGINT --> ShutdownRequest --> the server's ending thread --> EndTask: refused, or never answered
//! ```
//!
//! The ending thread (`server::ending`) holds writes, decides what is saved, saves, and ends the server or refuses to.

use crate::persistence::MEMORY_ONLY;
use command::blocking::{Awaited, Block, Task};
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop, error};
use config::EndFlags;
use durability::Durability;
use parking_lot::{Condvar, Mutex};
use proto::ReplyBuffer;
use script::Scripts;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use store::Store;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&SHUTDOWN];

static SHUTDOWN: CommandSpec = CommandSpec {
    name: "shutdown",
    arity: -1,
    flags: Flags::ADMIN
        .union(Flags::NOSCRIPT)
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::NO_MULTI)
        .union(Flags::ALLOW_BUSY),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Ends the server.",
        since: "1.0.0",
        group: "server",
        complexity: "O(N) when saving, where N is the total number of keys in all databases when saving data, otherwise O(1)",
        history: &[("7.0.0", "Takes `NOW`, `FORCE` and `ABORT`."), ("9.0.0", "Takes `SAFE` and `FAILOVER`.")],
        arguments: &[Argument::one_of(
            "abort-selector",
            &[
                Argument::block(
                    "save-selector-block",
                    &[
                        Argument::one_of(
                            "save-selector",
                            &[Argument::word("nosave", "NOSAVE"), Argument::word("save", "SAVE")],
                        )
                        .optional(),
                        Argument::word("now", "NOW").since("7.0.0").optional(),
                        Argument::word("force", "FORCE").since("7.0.0").optional(),
                        Argument::word("safe", "SAFE").since("9.0.0").optional(),
                        Argument::word("failover", "FAILOVER").since("9.0.0").optional(),
                    ],
                ),
                Argument::word("abort", "ABORT").since("7.0.0"),
            ],
        )
        .optional()],
        ..Docs::NONE
    },
    run: Run::Call(shutdown),
};

/// What a refused SHUTDOWN answers: the words of Redis, which clients match.
const REFUSED: &str = "ERR Errors trying to SHUTDOWN. Check logs.";

/// Why an order was refused that SHUTDOWN ABORT called off.
pub const CALLED_OFF: &str = "called off by SHUTDOWN ABORT";

/// What asks the server to end, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndOrder {
    /// SHUTDOWN with these words.
    Client(EndFlags),
    /// SIGTERM; `shutdown-on-sigterm` says how.
    Terminate,
    /// SIGINT; `shutdown-on-sigint` says how.
    Interrupt,
}

impl std::fmt::Display for EndOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Client(_) => "SHUTDOWN",
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
        })
    }
}

/// What becomes of an order. Clones are handles of the same.
#[derive(Clone, Debug, Default)]
pub struct EndTask(Arc<OnceLock<Result<(), String>>>);

impl EndTask {
    /// `None` until it is decided. An error says why the server keeps serving.
    pub fn outcome(&self) -> Option<&Result<(), String>> {
        self.0.get()
    }

    /// Decides it, once.
    pub fn end(&self, outcome: Result<(), String>) {
        let _ = self.0.set(outcome);
    }
}

impl Task for EndTask {
    fn is_over(&self) -> bool {
        self.outcome().is_some()
    }

    /// A server that ends answers nothing and closes the connection.
    fn answer(&self, reply: &mut ReplyBuffer) -> Option<String> {
        let Err(_) = self.outcome()? else { return None };
        reply.error(REFUSED);
        Some(REFUSED.to_owned())
    }
}

/// Orders to end on their way to the thread that ends the server. Clones are handles of the same.
#[derive(Clone, Default)]
pub struct ShutdownRequest(Arc<Orders>);

#[derive(Default)]
struct Orders {
    state: Mutex<State>,
    /// Notified when the state changes.
    stir: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(EndOrder, EndTask)>,
    is_busy: bool,
    is_closed: bool,
    /// Whether the order in execution is called off, or can no longer be.
    fate: Fate,
}

/// What SHUTDOWN ABORT finds of the order in execution.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Fate {
    /// It can be called off.
    #[default]
    Open,
    CalledOff,
    /// The server ends.
    Decided,
}

impl ShutdownRequest {
    /// Asks the server to end. Orders are taken one after the other: the next when one was refused.
    pub fn ask(&self, order: EndOrder) -> EndTask {
        let task = EndTask::default();
        let mut state = self.0.state.lock();
        if state.is_closed {
            task.end(Ok(()));
        } else {
            state.waiting.push_back((order, task.clone()));
            self.0.stir.notify_all();
        }
        task
    }

    /// Whether an order was given that is not refused yet.
    pub fn is_under_way(&self) -> bool {
        let state = self.0.state.lock();
        state.is_busy || state.is_closed || !state.waiting.is_empty()
    }

    /// Calls off all orders; false when there is none, or the server is already ending.
    pub fn call_off(&self) -> bool {
        let mut state = self.0.state.lock();
        let is_open = state.is_busy && state.fate == Fate::Open;
        if state.is_closed || !is_open && state.waiting.is_empty() {
            return false;
        }
        state.waiting.drain(..).for_each(|(_, task)| task.end(Err(CALLED_OFF.to_owned())));
        if is_open {
            state.fate = Fate::CalledOff;
        }
        true
    }

    /// Whether the order in execution was called off.
    pub fn is_called_off(&self) -> bool {
        self.0.state.lock().fate == Fate::CalledOff
    }

    /// From now on the order in execution cannot be called off; false when it was.
    pub fn decide(&self) -> bool {
        let mut state = self.0.state.lock();
        if state.fate == Fate::Open {
            state.fate = Fate::Decided;
        }
        state.fate == Fate::Decided
    }

    /// The next order, to be executed; the one before was refused. Blocks; `None` when the server has ended.
    pub fn next(&self) -> Option<(EndOrder, EndTask)> {
        let mut state = self.0.state.lock();
        (state.is_busy, state.fate) = (false, Fate::Open);
        while state.waiting.is_empty() && !state.is_closed {
            self.0.stir.wait(&mut state);
        }
        let order = state.waiting.pop_front().filter(|_| !state.is_closed)?;
        state.is_busy = true;
        Some(order)
    }

    /// The server has ended: all orders are executed.
    pub fn close(&self) {
        let mut state = self.0.state.lock();
        state.is_closed = true;
        state.waiting.drain(..).for_each(|(_, task)| task.end(Ok(())));
        self.0.stir.notify_all();
    }

    /// Whether [`ShutdownRequest::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.0.state.lock().is_closed
    }
}

fn shutdown(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (mut flags, mut abort) = (EndFlags::default(), false);
    for word in ctx.args.from(1) {
        if word.eq_ignore_ascii_case(b"abort") {
            abort = true;
        } else if !flags.add(word) {
            return Err(error::SYNTAX);
        }
    }
    if abort && ctx.args.len() > 2 {
        return Err(error::SYNTAX);
    }
    if abort {
        if !ctx.host.part::<crate::Needed, ShutdownRequest>().call_off() {
            return Err(Stop::error("ERR No shutdown in progress."));
        }
        ctx.reply.ok();
        return Ok(());
    }
    let store = ctx.host.find::<Arc<Store>>();
    if flags.save != Some(false) && store.is_some_and(|store| store.gate.is_busy()) {
        return Err(Stop::error(ctx.host.part::<crate::Needed, Arc<Scripts>>().running.kind().busy()));
    }
    if flags.save == Some(true) && ctx.host.find::<Arc<Durability>>().is_none() {
        return Err(MEMORY_ONLY);
    }
    let task = ctx.host.part::<crate::Needed, ShutdownRequest>().ask(EndOrder::Client(flags));
    ctx.session.block = Some(Block::begin(&ctx.session.info, Awaited::Task(Arc::new(task)), None));
    Ok(())
}
