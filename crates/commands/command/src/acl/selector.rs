//! One set of permissions: commands, keys, channels and databases.

use super::category::Category;
use super::rule_error::RuleError;
use crate::absent;
use crate::spec::{Runs, Spec};
use crate::table::{COMMANDS_MAX, Row, Table};
use std::collections::{BTreeMap, BTreeSet};

/// Words of 64 commands.
const WORDS: usize = COMMANDS_MAX / 64;

/// What one rule set permits. A fresh one permits nothing, in every database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// One bit for each row of the command table.
    commands: [u64; WORDS],
    /// All commands, none taken away since: the bits need no test.
    pub(super) has_all_commands: bool,
    /// Commands of later versions are permitted, too: the rules began with `+@all`.
    begins_with_all: bool,
    /// First arguments with which a command runs although its bit is not set.
    first_arguments: BTreeMap<u16, Vec<Box<[u8]>>>,
    /// The rules about commands since the last `+@all` or `-@all`, as they are shown: true adds.
    command_rules: Vec<(bool, String)>,
    /// Any key. Then `keys` is empty.
    pub(super) has_all_keys: bool,
    pub(super) keys: Vec<KeyPattern>,
    /// Any channel. Then `channels` is empty.
    pub(super) has_all_channels: bool,
    pub(super) channels: Vec<Box<[u8]>>,
    /// The databases; `None` for all.
    pub(super) databases: Option<BTreeSet<u32>>,
}

/// A pattern of keys with what may be done to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPattern {
    /// Keys may be read.
    pub read: bool,
    /// Keys may be changed.
    pub write: bool,
    /// The glob.
    pub pattern: Box<[u8]>,
}

impl KeyPattern {
    fn describe(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(match (self.read, self.write) {
            (true, false) => b"%R~",
            (false, true) => b"%W~",
            _ => b"~",
        });
        text.extend_from_slice(&self.pattern);
    }
}

impl Selector {
    /// Permits nothing but, if it says so, all channels.
    pub fn none(has_all_channels: bool) -> Self {
        Self {
            commands: [0; WORDS],
            has_all_commands: false,
            begins_with_all: false,
            first_arguments: BTreeMap::new(),
            command_rules: Vec::new(),
            has_all_keys: false,
            keys: Vec::new(),
            has_all_channels,
            channels: Vec::new(),
            databases: None,
        }
    }

    /// Permits everything.
    pub fn all() -> Self {
        let mut selector = Self { has_all_keys: true, ..Self::none(true) };
        selector.set_all_commands(true);
        selector
    }

    /// Whether no request needs a check.
    pub fn is_unrestricted(&self) -> bool {
        self.has_all_commands && self.has_all_keys && self.has_all_channels && self.databases.is_none()
    }

    /// Applies one rule.
    ///
    /// # Errors
    /// See [`RuleError`]; then nothing has changed.
    pub fn apply(&mut self, rule: &[u8], table: &Table<impl Runs>) -> Result<(), RuleError> {
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        match rule {
            _ if is("allkeys") || rule == b"~*" => (self.has_all_keys, self.keys) = (true, Vec::new()),
            _ if is("resetkeys") => (self.has_all_keys, self.keys) = (false, Vec::new()),
            _ if is("allchannels") || rule == b"&*" => (self.has_all_channels, self.channels) = (true, Vec::new()),
            _ if is("resetchannels") => (self.has_all_channels, self.channels) = (false, Vec::new()),
            _ if is("allcommands") || is("+@all") => self.set_all_commands(true),
            _ if is("nocommands") || is("-@all") => self.set_all_commands(false),
            _ if is("alldbs") => self.databases = None,
            _ if is("resetdbs") => self.databases = Some(BTreeSet::new()),
            [b'd' | b'D', b'b' | b'B', b'=', list @ ..] => self.databases = Some(databases(list)?),
            [b'~', pattern @ ..] => self.add_keys(true, true, pattern)?,
            [b'%', flags @ ..] => self.add_flagged_keys(flags)?,
            [b'&', pattern @ ..] => self.add_channels(pattern)?,
            [b'+', b'@', name @ ..] => self.set_category(name, true, table)?,
            [b'-', b'@', name @ ..] => self.set_category(name, false, table)?,
            [b'+', name @ ..] => self.add_command(name, table)?,
            [b'-', name @ ..] => self.remove_command(name, table)?,
            _ => return Err(RuleError::Syntax),
        }
        Ok(())
    }

    fn set_all_commands(&mut self, are_permitted: bool) {
        self.commands = [if are_permitted { u64::MAX } else { 0 }; WORDS];
        (self.has_all_commands, self.begins_with_all) = (are_permitted, are_permitted);
        self.command_rules.clear();
        self.first_arguments.clear();
    }

    /// `%R~pattern` and its like, without the `%`.
    fn add_flagged_keys(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        if self.has_all_keys {
            return Err(RuleError::KeysAfterAll);
        }
        // Without it, Valkey takes an empty pattern.
        let tilde = rule.iter().position(|byte| *byte == b'~').unwrap_or(rule.len());
        let (flags, pattern) = rule.split_at(tilde);
        let (mut read, mut write) = (false, false);
        for flag in flags {
            match flag.to_ascii_uppercase() {
                b'R' if !read => read = true,
                b'W' if !write => write = true,
                _ => return Err(RuleError::Syntax),
            }
        }
        if !read && !write {
            return Err(RuleError::Syntax);
        }
        self.add_keys(read, write, pattern.get(1..).unwrap_or_default())
    }

    fn add_keys(&mut self, read: bool, write: bool, pattern: &[u8]) -> Result<(), RuleError> {
        if self.has_all_keys {
            return Err(RuleError::KeysAfterAll);
        }
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        match self.keys.iter_mut().find(|known| *known.pattern == *pattern) {
            Some(known) => (known.read, known.write) = (known.read || read, known.write || write),
            None => self.keys.push(KeyPattern { read, write, pattern: pattern.into() }),
        }
        Ok(())
    }

    fn add_channels(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        if self.has_all_channels {
            return Err(RuleError::ChannelsAfterAll);
        }
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        if !self.channels.iter().any(|known| **known == *pattern) {
            self.channels.push(pattern.into());
        }
        Ok(())
    }

    fn set_category(&mut self, name: &[u8], is_permitted: bool, table: &Table<impl Runs>) -> Result<(), RuleError> {
        let category = Category::find(name).ok_or(RuleError::Unknown)?;
        for (index, (_, spec)) in (0..).zip(table.rows()) {
            if category.has(spec) {
                self.set_row(index, spec, is_permitted);
            }
        }
        self.note(is_permitted, format!("@{}", category.name()));
        Ok(())
    }

    /// `+name`, without the `+`: a command, a subcommand, or a command with its first argument.
    fn add_command(&mut self, rule: &[u8], table: &Table<impl Runs>) -> Result<(), RuleError> {
        let Some(bar) = rule.iter().rposition(|byte| *byte == b'|') else {
            let (name, row) = find(rule, table).ok_or(RuleError::Unknown)?;
            if let Some(row) = row {
                self.set_row(row.index, row.spec, true);
            }
            self.note(true, name);
            return Ok(());
        };
        let (before, argument) = rule.split_at(bar);
        let argument = argument.get(1..).unwrap_or_default();
        let (_, row) = find(before, table).ok_or(RuleError::Unknown)?;
        if before.contains(&b'|') {
            return Err(RuleError::FirstArgumentOfSubcommand);
        }
        // Others would be several rules, or another one, in an ACL file.
        if argument.is_empty() || has_spaces(argument) || std::str::from_utf8(argument).is_err() {
            return Err(RuleError::Syntax);
        }
        match row {
            Some(row) if row.spec.run.subcommands().is_some() => {
                let (_, row) = find(rule, table).ok_or(RuleError::Unknown)?;
                if let Some(row) = row {
                    self.set_row(row.index, row.spec, true);
                }
            }
            Some(row) => {
                let permitted = self.first_arguments.entry(row.index).or_default();
                if !permitted.iter().any(|known| **known == *argument) {
                    permitted.push(argument.into());
                }
            }
            None => {}
        }
        self.note(true, lower(rule));
        Ok(())
    }

    fn remove_command(&mut self, rule: &[u8], table: &Table<impl Runs>) -> Result<(), RuleError> {
        let (name, row) = find(rule, table).ok_or(RuleError::Unknown)?;
        if let Some(row) = row {
            self.set_row(row.index, row.spec, false);
        }
        self.note(false, name);
        Ok(())
    }

    /// Permits or forbids a command, with all subcommands of a container.
    fn set_row(&mut self, index: u16, spec: &Spec<impl Runs>, is_permitted: bool) {
        let subcommands = spec.run.subcommands().map_or(0, <[_]>::len);
        self.first_arguments.remove(&index);
        let first = usize::from(index);
        for bit in first..=first.saturating_add(subcommands) {
            if let Some(word) = self.commands.get_mut(bit / 64) {
                let mask = 1 << (bit % 64);
                *word = if is_permitted { *word | mask } else { *word & !mask };
            }
        }
        self.has_all_commands &= is_permitted;
    }

    /// Remembers a rule in place of an equal one and of those about subcommands, which it overrules.
    fn note(&mut self, adds: bool, name: String) {
        self.command_rules.retain(|(_, known)| {
            let rest = known.strip_prefix(name.as_str());
            !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('|'))
        });
        self.command_rules.push((adds, name));
    }

    /// Whether a command may run, by its bit or with this first argument (of a subcommand, the one after its name).
    pub(super) fn permits(&self, index: u16, first_argument: Option<&[u8]>) -> bool {
        let bit = usize::from(index);
        if self.commands.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1) {
            return true;
        }
        let permitted = self.first_arguments.get(&index);
        first_argument
            .zip(permitted)
            .is_some_and(|(argument, permitted)| permitted.iter().any(|known| known.eq_ignore_ascii_case(argument)))
    }

    /// The rules about commands: `+@all -admin`.
    pub fn describe_commands(&self) -> String {
        let mut text = if self.begins_with_all { "+@all".to_owned() } else { "-@all".to_owned() };
        for (adds, name) in &self.command_rules {
            text.push_str(if *adds { " +" } else { " -" });
            text.push_str(name);
        }
        text
    }

    /// The patterns of keys: `~a %R~b`.
    pub fn describe_keys(&self) -> Vec<u8> {
        if self.has_all_keys {
            return b"~*".to_vec();
        }
        let mut text = Vec::new();
        for (index, pattern) in self.keys.iter().enumerate() {
            if index > 0 {
                text.push(b' ');
            }
            pattern.describe(&mut text);
        }
        text
    }

    /// The patterns of channels: `&a &b`.
    pub fn describe_channels(&self) -> Vec<u8> {
        if self.has_all_channels {
            return b"&*".to_vec();
        }
        self.channels.iter().map(|pattern| [b"&", &**pattern].concat()).collect::<Vec<_>>().join(&b' ')
    }

    /// The databases: `alldbs`, `resetdbs`, `db=0,1`.
    pub fn describe_databases(&self) -> String {
        match &self.databases {
            None => "alldbs".to_owned(),
            Some(none) if none.is_empty() => "resetdbs".to_owned(),
            Some(some) => {
                let numbers: Vec<String> = some.iter().map(u32::to_string).collect();
                format!("db={}", numbers.join(","))
            }
        }
    }

    /// All rules, in the form of ACL LIST and of ACL files.
    pub fn describe(&self) -> Vec<u8> {
        let mut parts: Vec<Vec<u8>> = vec![self.describe_keys()];
        if !self.has_all_channels {
            parts.push(b"resetchannels".to_vec());
        }
        parts.push(self.describe_channels());
        if self.databases.is_some() {
            parts.push(self.describe_databases().into());
        }
        parts.push(self.describe_commands().into());
        parts.retain(|part| !part.is_empty());
        parts.join(&b' ')
    }
}

/// The row of this name (`config|get` for a subcommand), with its name in lower case. No row for commands that are
/// known and absent here: rules may name them, so that ACL files of Valkey load.
fn find<R: Runs>(name: &[u8], table: &Table<R>) -> Option<(String, Option<Row<R>>)> {
    match table.find_full(name) {
        Some(row) => Some((lower(name), Some(row))),
        None => absent::refusal(name).map(|_| (lower(name), None)),
    }
}

fn lower(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_ascii_lowercase()
}

/// Whether rules that are written in lines could not hold these bytes.
pub(super) fn has_spaces(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| is_space(*byte) || *byte == 0)
}

/// As `isspace` of C has it: the vertical tab is one, too.
pub(super) fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0B
}

/// Numbers with commas between them, each with blanks and a plus sign before it as `strtoll` permits.
fn databases(list: &[u8]) -> Result<BTreeSet<u32>, RuleError> {
    list.split(|byte| *byte == b',').map(database).collect()
}

fn database(text: &[u8]) -> Result<u32, RuleError> {
    let start = text.iter().position(|byte| !is_space(*byte)).unwrap_or(text.len());
    let text = text.get(start..).unwrap_or_default();
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(RuleError::Syntax);
    }
    let number = digits
        .iter()
        .try_fold(0u32, |number, digit| number.checked_mul(10)?.checked_add(u32::from(digit.wrapping_sub(b'0'))));
    number
        .filter(|number| *number <= i32::MAX.unsigned_abs() && (*number == 0 || !is_negative))
        .ok_or(RuleError::DatabaseOutOfRange)
}
