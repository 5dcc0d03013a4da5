//! What is compared at all, as data: the commands this project has, and the fields and parameters that every target is
//! expected to show. A family that lands adds its names to `data/`.

use std::collections::{BTreeMap, BTreeSet};

/// The type of a field of INFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// An integer.
    Int,
    /// A decimal number, with or without a percent sign.
    Float,
    /// Anything, empty text included.
    Text,
    /// The value of the reference.
    Exact,
}

impl FieldType {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "int" => Self::Int,
            "float" => Self::Float,
            "text" => Self::Text,
            "exact" => Self::Exact,
            _ => return None,
        })
    }

    /// Whether `value` is of this type.
    pub fn admits(self, value: &str) -> bool {
        match self {
            Self::Int => value.parse::<i64>().is_ok(),
            Self::Float => value.strip_suffix('%').unwrap_or(value).parse::<f64>().is_ok(),
            Self::Text | Self::Exact => true,
        }
    }
}

/// The lists under `data/`.
#[derive(Debug)]
pub struct Scope {
    /// Names in small letters, subcommands as `container|name`.
    commands: BTreeSet<String>,
    info_fields: Vec<(String, String, FieldType)>,
    /// Parameters, and whether their values are compared.
    config: BTreeMap<String, bool>,
    memory_stats: Vec<String>,
}

fn lines(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_whitespace().collect())
}

impl Scope {
    /// Reads the lists that belong to this crate.
    ///
    /// # Panics
    /// When a list has a line that is none: the data is part of the program.
    pub fn load() -> Self {
        let info_fields = lines(include_str!("../data/info-fields.txt")).map(|words| match words[..] {
            [section, field, kind] => {
                let kind = FieldType::from_name(kind).unwrap_or_else(|| panic!("no type of fields: {kind}"));
                (section.to_owned(), field.to_owned(), kind)
            }
            _ => panic!("data/info-fields.txt: not a field: {words:?}"),
        });
        let config = lines(include_str!("../data/config-parameters.txt")).map(|words| match words[..] {
            [name] => (name.to_owned(), true),
            [name, "?"] => (name.to_owned(), false),
            _ => panic!("data/config-parameters.txt: not a parameter: {words:?}"),
        });
        Self {
            commands: Self::command_names().map(str::to_owned).collect(),
            info_fields: info_fields.collect(),
            config: config.collect(),
            memory_stats: lines(include_str!("../data/memory-stats.txt")).flatten().map(str::to_owned).collect(),
        }
    }

    /// Every command compared, in small letters, subcommands as `container|name`.
    pub fn command_names() -> impl Iterator<Item = &'static str> {
        lines(include_str!("../data/commands.txt")).flatten()
    }

    /// Whether the command is compared.
    pub fn has_command(&self, name: &[u8]) -> bool {
        std::str::from_utf8(name).is_ok_and(|name| self.commands.contains(&name.to_ascii_lowercase()))
    }

    /// The fields of INFO that tools read: section, name, type.
    pub fn info_fields(&self) -> &[(String, String, FieldType)] {
        &self.info_fields
    }

    /// `None` for a parameter that is not compared, else whether its value is.
    pub fn config_parameter(&self, name: &[u8]) -> Option<bool> {
        std::str::from_utf8(name).ok().and_then(|name| self.config.get(name).copied())
    }

    /// The figures of MEMORY STATS that tools read.
    pub fn memory_stats(&self) -> &[String] {
        &self.memory_stats
    }
}
