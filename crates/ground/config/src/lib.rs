//! Configuration: one table of directives, from which the configuration file, the command line, `CONFIG GET`, `CONFIG
//! SET`, `CONFIG REWRITE`, the sample file and the manual page all follow.
//!
//! ```text
//!   file, includes, stdin --\                       /--> settings.port, settings.maxmemory_bytes ... (plain fields)
//!                            > words -> TABLE row --
//!   --directive value ------/     ^        |        \--> CONFIG GET, REWRITE, sample file, manual page
//!   CONFIG SET ------------------/         +-- not needed here: one warning with the reason; CONFIG keeps the value
//!                                          +-- refused: the start ends, with the reason
//! ```
//!
//! C1. Every name of Redis 7.0's and Valkey 9.1's `CONFIG GET *` and of Debian's `redis.conf` has a row; a name without
//!     a row is an error that names its nearest neighbour.
//! C2. A row is *supported* only if its field steers something. What would do nothing is *not needed*; what would break
//!     a promise by doing nothing is *refused*.
//! C3. A default stands in the row only, as text in the syntax of the file; [`Settings::default`] parses it.
//! C4. `CONFIG SET` changes a copy: either every pair of it is in force afterwards, or none.
//! C5. A rewritten file, loaded again, gives the settings it was written from; rewriting it again changes no byte.
//! C6. No secret appears in an error, a warning or a `Debug` output.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod command_line;
mod differences;
mod directive;
pub mod document;
mod error;
mod field;
mod include;
mod inert;
mod load;
mod nearest;
mod redacted;
mod rewrite;
mod rules;
mod runtime;
mod settings;
mod syntax;
mod table;
mod values;

pub use command_line::{CommandLine, FileArgument, Given};
pub use differences::Difference;
pub use directive::{Changes, Directive, Kind, Refusal, Section, Setting};
pub use error::{LoadError, LoadErrors, Origin, Problem, RewriteError, RuleError, SetError, ValueError, Warning};
pub use inert::{Inert, InertValues};
pub use load::{Loaded, load};
pub use rewrite::rewrite;
pub use runtime::{Change, Refused};
pub use settings::{Settings, UserLine};
pub use table::{TABLE, directives, find};
pub use values::{
    Address, AppendFsync, ChannelDefault, CompressionCodec, CompressionTime, CopyLoad, Databases, DebugCommand,
    EndFlags, Engine, EvictionPolicy, Host, LogErrorAction, LogFormat, LogLevel, LogTime, MemoryShare, OutputLimit,
    OutputLimits, PasswordHash, PrimaryAddress, SavePoint, SavePoints, Secret, SsdbNamespaces, Supervision, TierMedium,
    TierPolicy, TlsAuthClients, TlsClientUser,
};
