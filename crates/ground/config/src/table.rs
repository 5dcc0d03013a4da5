//! The table: one row for each directive, one file for each group of sections.
//!
//! Which kind a row has follows from invariant C2: supported if its field steers something in this server, refused if
//! an operator who sets it would rely on something that does not happen, not needed otherwise.

mod clients;
mod clustering;
mod compression;
mod encodings;
mod logging;
mod memory;
mod network;
mod persistence;
mod process;
mod security;
mod tier;

use crate::Settings;
use crate::directive::{Directive, Section};
use crate::nearest::nearest;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Every directive, in sections.
pub static TABLE: &[Section] = &[
    Section { title: "Files", rows: process::FILES },
    Section { title: "Network", rows: network::NETWORK },
    Section { title: "Memcached clients", rows: network::MEMCACHED },
    Section { title: "Clients of SSDB", rows: network::SSDB },
    Section { title: "ARCUS cluster", rows: network::ARCUS },
    Section { title: "Metrics and page", rows: network::HTTP },
    Section { title: "Threads and databases", rows: process::THREADS },
    Section { title: "Security", rows: security::SECURITY },
    Section { title: "Clients and limits", rows: clients::CLIENTS },
    Section { title: "Memory", rows: memory::MEMORY },
    Section { title: "Tier", rows: tier::TIER },
    Section { title: "Compression", rows: compression::COMPRESSION },
    Section { title: "Expiration and freeing", rows: memory::FREEING },
    Section { title: "Encodings", rows: encodings::ENCODINGS },
    Section { title: "Log", rows: logging::LOG },
    Section { title: "Slow commands and latency", rows: logging::LATENCY },
    Section { title: "Persistence", rows: persistence::PERSISTENCE },
    Section { title: "Replication", rows: clustering::REPLICATION },
    Section { title: "Cluster", rows: clustering::CLUSTER },
    Section { title: "TLS", rows: network::TLS },
    Section { title: "Other transports", rows: network::TRANSPORTS },
    Section { title: "Keyspace events, scripts and modules", rows: process::EXTENSIONS },
    Section { title: "Process", rows: process::PROCESS },
];

/// The rows of every section.
pub fn directives() -> impl Iterator<Item = &'static Directive> {
    TABLE.iter().flat_map(|section| section.rows)
}

static BY_NAME: LazyLock<HashMap<&'static str, &'static Directive>> =
    LazyLock::new(|| directives().flat_map(|row| row.names().map(move |name| (name, row))).collect());

/// The row of a name or alias, in any case.
pub fn find(name: &[u8]) -> Option<&'static Directive> {
    let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
    BY_NAME.get(name.as_str()).copied()
}

/// The name that differs least from an unknown one.
pub(crate) fn nearest_name(name: &[u8]) -> Option<&'static str> {
    let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
    nearest(&name, directives().flat_map(Directive::names))
}

impl Default for Settings {
    /// The defaults of the table.
    ///
    /// # Panics
    /// When a default of the table is not a value of its field; a test reads them all.
    fn default() -> Self {
        let mut settings = Self::blank();
        for directive in directives() {
            if let Some(setting) = directive.setting()
                && let Err(error) = setting.set_default(&mut settings)
            {
                panic!("the default of {}: {error}", directive.name);
            }
        }
        settings.save.replaceable = true;
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Settings};
    use std::collections::HashSet;

    /// C1: the lists were taken from the two servers and from the file; they are facts about them, not about Onggi.
    #[test]
    fn every_name_of_redis_and_valkey_has_a_row() {
        for (list, names) in [
            ("Valkey 9.1", include_str!("../testdata/names-valkey-9.1.txt")),
            ("Redis 7.0", include_str!("../testdata/names-redis-7.0.txt")),
            ("Debian's redis.conf", include_str!("../testdata/names-debian-redis-7.0.txt")),
        ] {
            let missing: Vec<_> = names.lines().filter(|name| find(name.as_bytes()).is_none()).collect();
            assert!(missing.is_empty(), "{list} has {missing:?}");
        }
    }

    /// A name in two rows would make one of them unreachable.
    #[test]
    fn names_are_unique_and_lower_case() {
        let mut seen = HashSet::new();
        for name in directives().flat_map(Directive::names) {
            assert!(seen.insert(name), "{name} is there twice");
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b)), "{name}");
        }
    }

    /// C3, and every field of the settings is steered by a row.
    #[test]
    fn defaults_are_values_of_their_fields() {
        let settings = Settings::default();
        let rows: Vec<_> = directives().filter_map(|row| row.setting().map(|setting| (row, setting))).collect();
        assert_eq!(rows.len(), Settings::FIELD_COUNT);
        for (row, setting) in rows {
            let mut again = settings.clone();
            for line in setting.field.lines(&settings) {
                let words = crate::syntax::split_words(line.as_bytes()).unwrap();
                setting.field.set(&mut again, &words).unwrap_or_else(|error| panic!("{}: {error}", row.name));
            }
            assert_eq!(setting.field.answer(&again), setting.field.answer(&settings), "{}", row.name);
        }
    }

    /// Two rows with the same field would overwrite each other; a bound that its field cannot hold would be ignored.
    #[test]
    fn each_row_has_a_field_of_its_own_that_holds_its_bounds() {
        use crate::field::Field;
        for row in directives() {
            let Some(setting) = row.setting() else { continue };
            let bounds = match &setting.field {
                Field::Integer { min, max, .. } => vec![min.to_string(), max.to_string()],
                Field::Size { min, max, .. } => vec![min.to_string(), max.to_string()],
                Field::Flag { .. } => vec!["yes".into(), "no".into()],
                Field::Choice { words, .. } => words.iter().map(|word| word.to_string()).collect(),
                Field::Permissions { .. } => vec!["0".into(), "777".into()],
                Field::Path { .. } | Field::Secret { .. } | Field::Text { .. } => vec!["x y".into(), "".into()],
                Field::Share { .. } => vec!["100%".into(), "7".into()],
                Field::Addresses { .. } => vec!["* -::*".into(), "127.0.0.1".into()],
                Field::OutputLimits { .. } => vec!["normal 1 2 3 slave 4 5 6 pubsub 7 8 9".into()],
                Field::Databases { .. } => vec!["0 engine disk 255 engine disk".into()],
                Field::SavePoints { .. } => vec!["".into(), "1 0".into(), "900 1 60 10000".into()],
                Field::Primary { .. } => vec!["".into(), "10.0.0.1 6379".into()],
                Field::Events { .. } => vec!["".into(), "A".into(), "g$lKE".into(), "AnKEm".into()],
                Field::Percentiles { .. } => vec!["0 99.5 100".into()],
                Field::Ending { .. } => vec!["default".into(), "nosave now force safe failover".into(), "save".into()],
            };
            for value in bounds {
                let before = Settings::default();
                let mut after = before.clone();
                let words: Vec<_> = if setting.field.takes_many() {
                    value.split(' ').map(String::from).collect()
                } else {
                    vec![value.clone()]
                };
                setting.field.set(&mut after, &words).unwrap_or_else(|error| panic!("{} {value}: {error}", row.name));
                assert_eq!(String::from_utf8_lossy(&setting.field.answer(&after)), value, "{}", row.name);
                for other in directives().filter(|other| other.name != row.name) {
                    if let Some(other_setting) = other.setting() {
                        let unchanged = other_setting.field.answer(&after) == other_setting.field.answer(&before);
                        assert!(unchanged, "{} changes {}", row.name, other.name);
                    }
                }
            }
        }
    }

    /// The manual page and the messages are made of these texts.
    #[test]
    fn texts_are_there() {
        for row in directives() {
            match &row.kind {
                Kind::Supported(setting) => assert!(setting.meaning.ends_with('.'), "{}", row.name),
                Kind::NotNeeded { reason, .. } => assert!(!reason.is_empty() && !reason.ends_with('.'), "{}", row.name),
                Kind::Refused(refusal) => {
                    assert!(!refusal.reason.ends_with('.'), "{}", row.name);
                    let answered = refusal
                        .answer
                        .is_none_or(|answer| refusal.accepted.contains(&answer) || refusal.accepted.is_empty());
                    assert!(answered, "{}: what CONFIG GET answers should be accepted", row.name);
                }
                Kind::Include | Kind::User => {}
            }
        }
    }

    #[test]
    fn secrets_are_marked() {
        for name in
            ["requirepass", "masterauth", "primaryauth", "tls-key-file-pass", "tls-client-key-file-pass", "user"]
        {
            assert!(find(name.as_bytes()).unwrap().sensitive, "{name}");
        }
    }
}
