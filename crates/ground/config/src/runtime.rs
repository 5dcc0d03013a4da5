//! CONFIG GET and CONFIG SET.

use crate::directive::{Changes, Kind};
use crate::syntax::printable;
use crate::{Directive, SetError, Settings, ValueError, directives, find, rules};
use base::glob;
use std::borrow::Cow;

impl Settings {
    /// The names that match any of the patterns, with their values, in ascending order of names.
    ///
    /// As in Valkey: an argument without `*`, `?` and `[` is a name, and is answered in the case it was asked in;
    /// aliases are names of their own.
    pub fn get(&self, patterns: &[impl AsRef<[u8]>]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut add = |name: &[u8], row: &Directive| {
            if !found.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
                && let Some(value) = self.answer(row)
            {
                found.push((name.to_vec(), value));
            }
        };
        for pattern in patterns.iter().map(AsRef::as_ref) {
            if pattern.iter().any(|byte| b"[*?".contains(byte)) {
                for (name, row) in directives().flat_map(|row| row.names().map(move |name| (name.as_bytes(), row))) {
                    if glob::matches_ignore_case(pattern, name) {
                        add(name, row);
                    }
                }
            } else if let Some(row) = find(pattern) {
                add(pattern, row);
            }
        }
        found.sort();
        found
    }

    /// What CONFIG GET answers for a row.
    fn answer(&self, row: &Directive) -> Option<Vec<u8>> {
        match &row.kind {
            Kind::Supported(setting) => Some(setting.field.answer(self)),
            Kind::Refused(refusal) => refusal.answer.map(Into::into),
            Kind::NotNeeded { inert, .. } => Some(self.inert.get(row.name, inert)),
            Kind::Include | Kind::User => None,
        }
    }

    /// Works out what CONFIG SET of these pairs would change; nothing has changed yet.
    ///
    /// # Errors
    /// A name that is unknown, cannot be set or occurs twice; then a value its directive does not take; then settings
    /// that conflict.
    pub fn change(&self, pairs: &[(impl AsRef<[u8]>, impl AsRef<[u8]>)]) -> Result<Change, SetError> {
        let pairs: Vec<(&[u8], &[u8])> = pairs.iter().map(|(name, value)| (name.as_ref(), value.as_ref())).collect();
        let mut rows: Vec<(String, &'static Directive)> = Vec::with_capacity(pairs.len());
        for (name, _) in &pairs {
            let row = settable(name)?;
            // Like Valkey, a directive and its alias may stand together; the later one wins.
            let name = printable(name).to_ascii_lowercase();
            if rows.iter().any(|(other, _)| *other == name) {
                return Err(failed(name, "duplicate parameter"));
            }
            rows.push((name, row));
        }
        let mut next = self.clone();
        for ((name, row), (_, value)) in rows.iter().zip(&pairs) {
            set(&mut next, row, value).map_err(|reason| failed(name, reason))?;
        }
        if let Err(error) = rules::check_databases(&next) {
            let cause = rows.iter().find(|(_, row)| rules::DATABASES.contains(&row.name));
            return Err(failed(cause.map(|(name, _)| name.as_str()).unwrap_or_default(), error.to_string()));
        }
        // A file that is named again is read again: its content may have changed.
        let differs = |row: &&Directive| row.names_file || self.answer(row) != next.answer(row);
        let mut changed: Vec<&'static Directive> = Vec::new();
        for row in rows.into_iter().map(|(_, row)| row).filter(differs) {
            if !changed.iter().any(|other| other.name == row.name) {
                changed.push(row);
            }
        }
        Ok(Change { before: self.clone(), next, changed })
    }
}

/// What a CONFIG SET would change.
#[derive(Debug)]
#[must_use = "nothing has changed yet"]
pub struct Change {
    before: Settings,
    next: Settings,
    changed: Vec<&'static Directive>,
}

impl Change {
    /// The rows whose value differs, in the order they were given.
    pub fn changed(&self) -> &[&'static Directive] {
        &self.changed
    }

    /// Puts the change into force: calls `apply` with each changed row and the new settings, for the parts of the
    /// server that read them only once (listeners, budgets). `apply` looks at the row's name and does
    /// nothing for those it need not act on. Then calls `finish`, once, for what must never be undone: no step after it
    /// can fail. Returns the settings to keep from now on.
    ///
    /// # Errors
    /// The first refusal of `apply` or `finish`. Then `apply` has been called again with the old settings for that row
    /// and those before it, last first, so that everything is as it was. What could not be restored is added to the
    /// reason.
    pub fn apply(
        self,
        mut apply: impl FnMut(&'static Directive, &Settings) -> Result<(), String>,
        finish: impl FnOnce(&Settings) -> Result<(), Refused>,
    ) -> Result<Settings, SetError> {
        for (index, row) in self.changed.iter().enumerate() {
            if let Err(reason) = apply(row, &self.next) {
                let done = self.changed.iter().take(index.saturating_add(1));
                return Err(self.restored(done, apply, row.name, reason));
            }
        }
        match finish(&self.next) {
            Ok(()) => Ok(self.next),
            Err(Refused { directive, reason }) => Err(self.restored(self.changed.iter(), apply, directive, reason)),
        }
    }

    /// Puts the old settings into force again for the rows that are `done`. The error that led to it.
    fn restored<'r>(
        &self,
        done: impl DoubleEndedIterator<Item = &'r &'static Directive>,
        mut apply: impl FnMut(&'static Directive, &Settings) -> Result<(), String>,
        name: &str,
        mut reason: String,
    ) -> SetError {
        for row in done.rev() {
            if let Err(error) = apply(row, &self.before) {
                reason = format!("{reason}; the former {} could not be restored: {error}", row.name);
            }
        }
        failed(name, reason)
    }
}

/// Why the last step of a change was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The directive that cannot be put into force.
    pub directive: &'static str,
    /// Why, in words for the client.
    pub reason: String,
}

impl std::fmt::Debug for Directive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

fn failed(name: impl Into<String>, reason: impl Into<Cow<'static, str>>) -> SetError {
    SetError::Failed { name: name.into(), reason: reason.into() }
}

/// The row of a name that CONFIG SET may set.
fn settable(name: &[u8]) -> Result<&'static Directive, SetError> {
    let shown = || printable(name);
    let row = find(name).ok_or_else(|| SetError::Unknown { name: name.to_vec() })?;
    if !row.is_visible() {
        return Err(SetError::Unknown { name: name.to_vec() });
    }
    match row.changes {
        Changes::AtRunTime => Ok(row),
        Changes::AtStart => Err(failed(shown(), "can't set immutable config")),
        Changes::AtStartProtected => Err(failed(shown(), "can't set protected config")),
    }
}

fn set(settings: &mut Settings, row: &Directive, value: &[u8]) -> Result<(), Cow<'static, str>> {
    match &row.kind {
        Kind::Supported(setting) => {
            let words: Vec<&[u8]> = match setting.field.takes_many() {
                true if value.is_empty() => Vec::new(),
                true => value.split(|byte| *byte == b' ').collect(),
                false => vec![value],
            };
            setting.field.start_over(settings);
            setting.field.set(settings, &words).map_err(|error| error.to_string().into())
        }
        Kind::Refused(refusal) if refusal.accepts(&[value]) => Ok(()),
        Kind::Refused(refusal) => {
            let is_flag_value = value.eq_ignore_ascii_case(b"yes") || value.eq_ignore_ascii_case(b"no");
            match refusal.is_flag() && !is_flag_value {
                true => Err(ValueError::NotFlag.to_string().into()),
                false => Err(refusal.reason.into()),
            }
        }
        Kind::NotNeeded { inert, .. } => {
            let words: Vec<&[u8]> = match inert.takes_many() {
                true => value.split(|byte| *byte == b' ').collect(),
                false => vec![value],
            };
            let value = inert.read(&words).map_err(|error| Cow::from(error.to_string()))?;
            settings.inert.set(row.name, inert, value);
            Ok(())
        }
        // `settable` does not let it through.
        Kind::Include | Kind::User => Ok(()),
    }
}
