//! Users and what they may do: the access control lists of Valkey 9.1.
//!
//! ```text
//! ACL SETUSER alice on >secret +get ~cache:*        AUTH alice secret
//!            |                                              |
//!     Rules (rules.rs): flags, passwords, selectors   Users::find ---> Arc<User> in the Session
//!            '--> replaces the rules of one User (users.rs)            '--> check() (check.rs) before each command
//! ```
//!
//! A [`Selector`] holds everything about commands, keys, channels and databases. A user has one, the root, and further
//! ones in parentheses. A request may run when one selector permits all of it.
//!
//! A1. Rules are immutable. A change builds new rules and swaps them in, so a check sees the rules before or after it.
//! A2. A session of a user without restrictions runs no check: [`Session::is_plain`](crate::Session::is_plain) tests
//!     one flag. Workers compute that flag again when [`Users::generation`] has advanced, before they run the next
//!     batch.
//! A3. Passwords are kept as SHA-256 or Argon2id hashes, which are compared in constant time.

mod category;
mod check;
mod deny;
mod file;
mod log;
mod password;
mod phc;
mod rule_error;
mod rules;
mod selector;
mod users;

pub use category::{Category, categories};
pub use check::{Denied, Reason, Scope, check, may_read_all_keys};
pub use deny::{Denial, denial};
pub use file::{FileError, read_users, write_users};
pub use log::{Entry, Log, Origin};
pub use password::{Hash, Hashing, Kept};
pub use phc::SlowHash;
pub use rule_error::RuleError;
pub use rules::{Defaults, Rules, RulesError};
pub use selector::{KeyPattern, Selector};
pub use users::{DEFAULT_USER, User, Users};

#[cfg(test)]
mod tests;
