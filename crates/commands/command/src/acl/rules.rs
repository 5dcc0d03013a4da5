//! What a user is and may do: the rules of ACL SETUSER, read, applied and described.

use super::password::{Hashing, Kept};
use super::phc::PREFIX;
use super::rule_error::RuleError;
use super::selector::{Selector, is_space};
use crate::error;
use crate::spec::Runs;
use crate::table::Table;

/// Which rule of several cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RulesError {
    /// This selector, as far as it was given, has no end.
    Unmatched(Vec<u8>),
    /// This rule is wrong.
    Rule(Vec<u8>, RuleError),
}

impl RulesError {
    /// The text of the error that ACL SETUSER answers.
    pub fn to_text(&self) -> Vec<u8> {
        match self {
            Self::Unmatched(rule) => {
                let before: &[u8] = b"ERR Unmatched parenthesis in acl selector starting at '";
                [before, error::up_to_zero(rule), b"'."].concat()
            }
            Self::Rule(rule, why) => {
                let after = format!("': {why}");
                [b"ERR Error in ACL SETUSER modifier '", error::up_to_zero(rule), after.as_bytes()].concat()
            }
        }
    }
}

/// What new users and passwords are like.
#[derive(Clone, Copy, Debug, Default)]
pub struct Defaults {
    /// `acl-pubsub-default allchannels`
    pub has_all_channels: bool,
    /// `acl-password-hash`
    pub hashing: Hashing,
}

/// A user without its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `on`: it is possible to log in.
    pub is_enabled: bool,
    /// `nopass`: any password is right.
    pub needs_no_password: bool,
    passwords: Vec<Kept>,
    root: Selector,
    selectors: Vec<Selector>,
}

impl Rules {
    /// A user as ACL SETUSER creates one: off, without passwords and rights. Channels are as `acl-pubsub-default` says.
    pub fn new(has_all_channels: bool) -> Self {
        let root = Selector::none(has_all_channels);
        Self { is_enabled: false, needs_no_password: false, passwords: Vec::new(), root, selectors: Vec::new() }
    }

    /// The user `default` as a server without settings has it: on, without a password, with every right.
    pub fn all() -> Self {
        Self { is_enabled: true, needs_no_password: true, root: Selector::all(), ..Self::new(true) }
    }

    /// The rules after these changes, in order. Slow if [`Self::is_slow`].
    ///
    /// # Errors
    /// The first rule that cannot be applied.
    pub fn with(
        &self,
        rules: &[impl AsRef<[u8]>],
        table: &Table<impl Runs>,
        defaults: Defaults,
    ) -> Result<Self, RulesError> {
        let mut next = self.clone();
        for rule in merged(rules)? {
            next.apply(&rule, table, defaults).map_err(|why| RulesError::Rule(rule, why))?;
        }
        Ok(next)
    }

    /// Whether a change hashes passwords with Argon2id, which takes tens of milliseconds for each.
    pub fn is_slow(&self, rules: &[impl AsRef<[u8]>], defaults: Defaults) -> bool {
        let names_password = rules.iter().any(|rule| matches!(rule.as_ref().first(), Some(b'>' | b'<')));
        let has_slow = || self.passwords.iter().any(|kept| kept.slow().is_some()) || adds_slow(rules);
        names_password && (defaults.hashing == Hashing::Argon2id || has_slow())
    }

    /// Applies one rule.
    ///
    /// # Errors
    /// See [`RuleError`].
    pub fn apply(&mut self, rule: &[u8], table: &Table<impl Runs>, defaults: Defaults) -> Result<(), RuleError> {
        let has_all_channels = defaults.has_all_channels;
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        match rule {
            [] => {}
            _ if is("on") => self.is_enabled = true,
            _ if is("off") => self.is_enabled = false,
            // RESTORE always checks what it is given.
            _ if is("sanitize-payload") || is("skip-sanitize-payload") => {}
            _ if is("nopass") => (self.needs_no_password, self.passwords) = (true, Vec::new()),
            _ if is("resetpass") => (self.needs_no_password, self.passwords) = (false, Vec::new()),
            [b'>', password @ ..] => self.hash_password(password, defaults.hashing),
            [b'#', hash @ ..] => self.add_password(parse(hash)?),
            [b'<', password @ ..] => self.remove_password(|kept| kept.is_of(password))?,
            [b'!', hash @ ..] => {
                let hash = parse(hash)?;
                self.remove_password(|kept| *kept == hash)?;
            }
            [b'(', inner @ .., b')'] => {
                let mut selector = Selector::none(has_all_channels);
                for rule in inner.split(|byte| is_space(*byte)).filter(|rule| !rule.is_empty()) {
                    // An ACL file with it would end the selector there, and not load.
                    if rule.ends_with(b")") {
                        return Err(RuleError::Syntax);
                    }
                    selector.apply(rule, table)?;
                }
                self.selectors.push(selector);
            }
            _ if is("clearselectors") => self.selectors.clear(),
            _ if is("reset") => *self = Self::new(has_all_channels),
            _ => self.root.apply(rule, table)?,
        }
        Ok(())
    }

    /// Adds a password. One that the user has already is not hashed again, but a SHA-256 hash is replaced by an
    /// Argon2id hash if new passwords are to have that.
    fn hash_password(&mut self, password: &[u8], hashing: Hashing) {
        if hashing == Hashing::Argon2id {
            self.passwords.retain(|kept| kept.slow().is_some() || !kept.is_of(password));
        }
        if !self.passwords.iter().any(|kept| kept.is_of(password)) {
            self.passwords.push(Kept::of(password, hashing));
        }
        self.needs_no_password = false;
    }

    fn add_password(&mut self, hash: Kept) {
        if !self.passwords.contains(&hash) {
            self.passwords.push(hash);
        }
        self.needs_no_password = false;
    }

    fn remove_password(&mut self, is_meant: impl Fn(&Kept) -> bool) -> Result<(), RuleError> {
        let place = self.passwords.iter().position(is_meant).ok_or(RuleError::NoSuchPassword)?;
        self.passwords.remove(place);
        Ok(())
    }

    /// Replaces all passwords by this one, kept as SHA-256; by `nopass` when there is none.
    pub fn set_password(&mut self, password: Option<&[u8]>) {
        self.needs_no_password = password.is_none();
        self.passwords = password.map(|password| Kept::of(password, Hashing::Sha256)).into_iter().collect();
    }

    /// Whether a connection is logged in as this user without a password.
    pub fn is_open(&self) -> bool {
        self.is_enabled && self.needs_no_password
    }

    /// The hashes of its passwords.
    pub fn passwords(&self) -> &[Kept] {
        &self.passwords
    }

    /// The permissions outside of parentheses.
    pub fn root(&self) -> &Selector {
        &self.root
    }

    /// The permissions in parentheses.
    pub fn selectors(&self) -> &[Selector] {
        &self.selectors
    }

    /// All permissions; one of them has to permit a request.
    pub fn all_selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.selectors)
    }

    /// Whether no request needs a check.
    pub fn is_unrestricted(&self) -> bool {
        self.all_selectors().any(Selector::is_unrestricted)
    }

    /// The words of GETUSER's flags.
    pub fn flags(&self) -> impl Iterator<Item = &'static str> {
        let enabled = if self.is_enabled { "on" } else { "off" };
        [Some(enabled), self.needs_no_password.then_some("nopass")].into_iter().flatten()
    }

    /// All rules, in the form of ACL LIST and of ACL files: what re-creates the user.
    pub fn describe(&self) -> Vec<u8> {
        let flags = self.flags().map(|flag| flag.as_bytes().to_vec());
        let passwords = self.passwords.iter().map(|hash| format!("#{hash}").into_bytes());
        let selectors = self.selectors.iter().map(|selector| [b"(", &*selector.describe(), b")"].concat());
        let parts: Vec<_> = flags.chain(passwords).chain([self.root.describe()]).chain(selectors).collect();
        parts.join(&b' ')
    }
}

fn parse(hash: &[u8]) -> Result<Kept, RuleError> {
    let is_slow = hash.starts_with(PREFIX);
    Kept::parse(hash).ok_or(if is_slow { RuleError::NotSlowHash } else { RuleError::NotHash })
}

fn adds_slow(rules: &[impl AsRef<[u8]>]) -> bool {
    rules.iter().any(|rule| rule.as_ref().strip_prefix(b"#").is_some_and(|hash| hash.starts_with(PREFIX)))
}

/// Joins the arguments of a selector that was given in several.
fn merged(rules: &[impl AsRef<[u8]>]) -> Result<Vec<Vec<u8>>, RulesError> {
    let mut merged: Vec<Vec<u8>> = Vec::with_capacity(rules.len());
    let mut open: Option<(Vec<u8>, &[u8])> = None;
    for rule in rules.iter().map(AsRef::as_ref) {
        open = match open {
            None if rule.starts_with(b"(") && !rule.ends_with(b")") => Some((rule.to_vec(), rule)),
            None => {
                merged.push(rule.to_vec());
                None
            }
            Some((mut selector, first)) => {
                selector.push(b' ');
                selector.extend_from_slice(rule);
                if rule.ends_with(b")") {
                    merged.push(selector);
                    None
                } else {
                    Some((selector, first))
                }
            }
        };
    }
    match open {
        Some((_, first)) => Err(RulesError::Unmatched(first.to_vec())),
        None => Ok(merged),
    }
}
