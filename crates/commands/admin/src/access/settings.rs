//! Users of the configuration: `user` lines and `aclfile` at startup, and lines for CONFIG REWRITE.

use super::file::{load_users, read_file};
use command::Host;
use command::acl::{DEFAULT_USER, FileError, Rules, RulesError};
use config::{Settings, UserLine};
use std::path::PathBuf;
use std::sync::Arc;

/// Why a server does not start with these users.
#[derive(Debug, thiserror::Error)]
pub enum UsersError {
    /// Users in two places.
    #[error("aclfile and user lines cannot be used together; move the user lines to {}, or remove aclfile", .0.display())]
    TwoPlaces(PathBuf),
    /// No ACL file.
    #[error("cannot read the ACL file {}: {error}; create it, or remove aclfile", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A wrong ACL file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A wrong `user` line.
    #[error("user {name}: {text}")]
    Line {
        /// The user.
        name: String,
        /// What is wrong with a rule of it.
        text: String,
    },
}

/// Takes over the users of file and settings; at startup, after `requirepass` and before the first connection.
///
/// # Errors
/// See [`UsersError`].
pub fn set_users(host: &Host, settings: &Settings) -> Result<(), UsersError> {
    if let Some(path) = &settings.acl_file {
        if !settings.users.is_empty() {
            return Err(UsersError::TwoPlaces(path.clone()));
        }
        let text = read_file(path).map_err(|error| UsersError::Unreadable { path: path.clone(), error })?;
        load_users(host, &text, &path.display().to_string())?;
    }
    for line in &settings.users {
        set_user(host, line)?;
    }
    Ok(())
}

/// Creates the user of a line.
fn set_user(host: &Host, line: &UserLine) -> Result<(), UsersError> {
    let (users, table) = (&host.login.users, &host.table);
    // `default` is there already, with every right.
    let rules: Vec<&[u8]> = std::iter::once(&b"reset"[..]).chain(line.rules().iter().map(Vec::as_slice)).collect();
    users.set(line.name(), &rules, table).map_err(|error| {
        let text = match error {
            // Other rules may hold a password.
            RulesError::Rule(_, why) => why.to_string(),
            unmatched => String::from_utf8_lossy(&unmatched.to_text()).into_owned(),
        };
        UsersError::Line { name: String::from_utf8_lossy(line.name()).into_owned(), text }
    })
}

/// The `user` lines that make the users as they are. None for `default` while `requirepass` says all about it.
pub(crate) fn user_lines(host: &Host, settings: &Settings) -> Vec<UserLine> {
    let password = settings.requirepass.expose();
    let mut usual = Rules::all();
    usual.set_password(Some(password).filter(|password| !password.is_empty()));
    let users = host.login.users.all();
    let is_told = |user: &&Arc<command::acl::User>| user.name() != DEFAULT_USER || *user.rules() != usual;
    let line = |user: &Arc<command::acl::User>| {
        let rules = user.rules().describe();
        let words = [user.name()].into_iter().chain(rules.split(|byte| *byte == b' ')).map(<[u8]>::to_vec);
        UserLine { words: words.collect() }
    };
    users.iter().filter(is_told).map(line).collect()
}
