//! Lua 5.1 for scripts: states, their globals, and the way between values of Lua and replies.
//!
//! ```text
//! rows -> Engine::run -> script -> redis.call -> Host::call -> a row's function -> reply -> value of Lua
//! ```

mod api;
mod arguments;
mod bits;
mod budget;
mod cjson;
mod cmsgpack;
mod engine;
mod failure;
mod function;
mod given;
mod home;
mod install;
mod json_reader;
mod json_settings;
mod library;
mod number;
mod packing;
mod pattern;
mod proxies;
mod registered;
mod registration;
mod replies;
mod sandbox;
mod search;
mod stack;
mod tables;

pub use engine::Engine;
pub use failure::Failure;
pub use function::Function;
pub use registered::Registered;

use command::Args;
use proto::{Protocol, ReplyBuffer};

/// How a command of a script ended. What it answered, an error included, is in [`Host::answer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    /// It answered.
    Answered,
    /// The script is over: it runs again later, and has changed nothing.
    Over,
}

/// What a script asks for.
pub trait Host {
    /// Runs a command.
    fn call(&mut self, args: Args<'_>) -> Called;

    /// What the last command answered.
    fn answer(&mut self) -> &[u8];

    /// Sets the protocol of the replies that the script sees.
    fn set_protocol(&mut self, protocol: Protocol);

    /// The protocol of the replies that the script sees.
    fn protocol(&self) -> Protocol;

    /// Where the script's own reply goes.
    fn reply(&mut self) -> &mut ReplyBuffer;

    /// Whether the user may run a command; `None` when there is no such command.
    fn may_run(&mut self, args: Args<'_>) -> Option<bool>;

    /// Writes a line to the server's log, at one of four levels: debug, verbose, notice, warning.
    fn log(&mut self, level: u8, text: &[u8]);

    /// Looks at the time, now and then. The script is over when this gives an error.
    fn tick(&mut self) -> Result<(), &'static str>;
}
