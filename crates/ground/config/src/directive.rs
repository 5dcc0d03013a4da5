//! What a row of the table is made of.

use crate::field::Field;
use crate::inert::Inert;
use crate::syntax::{printable, split_words};
use crate::{Settings, ValueError};

/// Rows that belong together, in the order of the sample file and the manual page.
pub struct Section {
    /// Heading.
    pub title: &'static str,
    /// The rows.
    pub rows: &'static [Directive],
}

/// One row: a name of the configuration file and what becomes of it.
pub struct Directive {
    /// The name, in lower case.
    pub name: &'static str,
    /// Other names of the same directive, most of them older.
    pub aliases: &'static [&'static str],
    /// What becomes of it.
    pub kind: Kind,
    /// Whether its value is a secret: never shown in a message, redacted in logs.
    pub sensitive: bool,
    /// When its value may change.
    pub changes: Changes,
    /// Whether its value names a file: CONFIG SET of the same name reads the file again.
    pub names_file: bool,
}

/// What becomes of a directive.
pub enum Kind {
    /// It sets a field of [`crate::Settings`].
    Supported(Setting),
    /// It has no effect here, and the server does well without: the start warns with the reason and continues.
    NotNeeded {
        /// Why, in words that follow "not needed here: ".
        reason: &'static str,
        /// The values that CONFIG takes and answers.
        inert: Inert,
    },
    /// Doing nothing would break what it promises: the start ends unless the value asks for nothing.
    Refused(Refusal),
    /// `include`: read other files in its place.
    Include,
    /// `user`: a user with its rules. Each line adds one.
    User,
}

/// When a value may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// By CONFIG SET.
    AtRunTime,
    /// At start only.
    AtStart,
    /// At start only, since a client that could set it could write files elsewhere. CONFIG SET words it differently.
    AtStartProtected,
}

/// The supported kind.
pub struct Setting {
    /// Which field it sets, and how its text is read and written.
    pub(crate) field: Field,
    /// The default, in the syntax of the file.
    pub default: &'static str,
    /// What the number counts, or empty.
    pub unit: &'static str,
    /// What it does, in full sentences.
    pub meaning: &'static str,
}

/// The refused kind.
pub struct Refusal {
    /// The values that ask for nothing and are accepted, in lower case, words joined by one space.
    pub accepted: &'static [&'static str],
    /// What CONFIG GET answers. `None`: CONFIG does not know the name.
    pub answer: Option<&'static str>,
    /// Why the others are refused, and what to do instead.
    pub reason: &'static str,
}

impl Refusal {
    /// Whether this value asks for nothing.
    pub(crate) fn accepts(&self, words: &[impl AsRef<[u8]>]) -> bool {
        let value = words.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(&b' ').to_ascii_lowercase();
        self.accepted.iter().any(|accepted| accepted.as_bytes() == value)
    }

    /// Whether it is a directive of `yes` and `no`.
    pub(crate) fn is_flag(&self) -> bool {
        matches!(self.accepted, ["no" | "yes"])
    }
}

impl Setting {
    /// The value as CONFIG GET answers it.
    pub fn answer(&self, settings: &Settings) -> Vec<u8> {
        self.field.answer(settings)
    }

    /// What may be written, for people, with Markdown's backticks around literal words.
    pub fn syntax(&self) -> String {
        self.field.syntax()
    }

    /// Gives the field its default.
    pub(crate) fn set_default(&self, settings: &mut Settings) -> Result<(), ValueError> {
        if self.field.takes_many() {
            let words = split_words(self.default.as_bytes()).ok_or(ValueError::WordCount)?;
            self.field.set(settings, &words)
        } else {
            self.field.set(settings, &[self.default])
        }
    }
}

impl Directive {
    const fn of(name: &'static str, kind: Kind) -> Self {
        Self { name, aliases: &[], kind, sensitive: false, changes: Changes::AtRunTime, names_file: false }
    }

    /// A row that sets a field.
    pub(crate) const fn supported(
        name: &'static str,
        field: Field,
        default: &'static str,
        unit: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self::of(name, Kind::Supported(Setting { field, default, unit, meaning }))
    }

    /// A row the server does well without.
    pub(crate) const fn not_needed(name: &'static str, inert: Inert, reason: &'static str) -> Self {
        Self::of(name, Kind::NotNeeded { reason, inert })
    }

    /// A row that would break a promise; CONFIG GET answers with the accepted value.
    pub(crate) const fn refused(
        name: &'static str,
        accepted: &'static [&'static str],
        answer: &'static str,
        reason: &'static str,
    ) -> Self {
        Self::of(name, Kind::Refused(Refusal { accepted, answer: Some(answer), reason }))
    }

    /// A row that is refused with any value, and that CONFIG does not know.
    pub(crate) const fn always_refused(name: &'static str, reason: &'static str) -> Self {
        Self::of(name, Kind::Refused(Refusal { accepted: &[], answer: None, reason }))
    }

    /// The row of `include`.
    pub(crate) const fn include() -> Self {
        Self::of("include", Kind::Include)
    }

    /// The row of `user`.
    pub(crate) const fn user() -> Self {
        Self::of("user", Kind::User)
    }

    pub(crate) const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    pub(crate) const fn sensitive(mut self) -> Self {
        self.sensitive = true;
        self
    }

    pub(crate) const fn names_file(mut self) -> Self {
        self.names_file = true;
        self
    }

    pub(crate) const fn at_start(mut self) -> Self {
        self.changes = Changes::AtStart;
        self
    }

    pub(crate) const fn protected(mut self) -> Self {
        self.changes = Changes::AtStartProtected;
        self
    }

    /// The name and its aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// The setting, when it is supported.
    pub fn setting(&self) -> Option<&Setting> {
        match &self.kind {
            Kind::Supported(setting) => Some(setting),
            _ => None,
        }
    }

    /// What the log says when CONFIG SET has given it a value without effect; `None` for a directive that has one.
    pub fn without_effect(&self, settings: &Settings) -> Option<String> {
        let Kind::NotNeeded { reason, inert } = &self.kind else { return None };
        let value = settings.inert.get(self.name, inert);
        let value = if self.sensitive { "(redacted)".to_owned() } else { printable(&value) };
        Some(format!("CONFIG SET {} {value} is without effect: {reason}", self.name))
    }

    /// Whether CONFIG GET shows it and CONFIG SET may name it.
    pub(crate) fn is_visible(&self) -> bool {
        match &self.kind {
            Kind::Supported(_) | Kind::NotNeeded { .. } => true,
            Kind::Refused(refusal) => refusal.answer.is_some(),
            Kind::Include | Kind::User => false,
        }
    }
}
