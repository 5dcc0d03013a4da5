//! ACL files: one user a line, `user NAME RULE...`. Empty lines are permitted, comments are not, as in Valkey.

use super::rule_error::RuleError;
use super::rules::{Defaults, Rules, RulesError};
use super::selector::has_spaces;
use super::users::User;
use crate::spec::Runs;
use crate::table::Table;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What stands at the end of every error.
const NOTHING_CHANGED: &str =
    "WARNING: ACL errors detected, no change to the previously active ACL rules was performed";

/// All that is wrong with an ACL file, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FileError(String);

/// Reads the users of an ACL file. `path` is for the error.
///
/// # Errors
/// Every line that is wrong, with its number.
pub fn read_users(
    text: &[u8],
    path: &str,
    table: &Table<impl Runs>,
    defaults: Defaults,
) -> Result<Vec<(Vec<u8>, Rules)>, FileError> {
    let mut users: BTreeMap<Vec<u8>, Rules> = BTreeMap::new();
    let mut errors = String::new();
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let mut words = line.split(|byte| *byte == b' ');
        let (first, name) = (words.next(), words.next());
        let Some(name) = name.filter(|_| first == Some(b"user")) else {
            errors += &format!("{path}:{number} should start with user keyword followed by the username. ");
            continue;
        };
        let shown = String::from_utf8_lossy(name);
        if has_spaces(name) {
            errors += &format!("'{path}:{number}: username '{shown}' contains invalid characters. ");
            continue;
        }
        if users.contains_key(name) {
            errors += &format!("WARNING: Duplicate user '{shown}' found on line {number}. ");
            continue;
        }
        let words: Vec<&[u8]> = words.map(<[u8]>::trim_ascii).collect();
        match Rules::new(defaults.has_all_channels).with(&words, table, defaults) {
            Ok(rules) => _ = users.insert(name.to_vec(), rules),
            Err(error) => errors += &described(path, number, &error),
        }
    }
    if errors.is_empty() { Ok(users.into_iter().collect()) } else { Err(FileError(errors + NOTHING_CHANGED)) }
}

fn described(path: &str, number: usize, error: &RulesError) -> String {
    match error {
        RulesError::Unmatched(_) => format!("{path}:{number}: Unmatched parenthesis in selector definition."),
        // Other rules may hold a password.
        RulesError::Rule(rule, why @ RuleError::Unknown) => {
            let rule = String::from_utf8_lossy(rule);
            format!("{path}:{number}: Error in applying operation '{rule}': {why}. ")
        }
        RulesError::Rule(_, why) => format!("{path}:{number}: {why}. "),
    }
}

/// The text of an ACL file with these users.
pub fn write_users(users: &[Arc<User>]) -> Vec<u8> {
    let line = |user: &Arc<User>| [b"user ", user.name(), b" ", &*user.rules().describe(), b"\n"].concat();
    users.iter().flat_map(line).collect()
}
