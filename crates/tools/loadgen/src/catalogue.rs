//! The named tests: each has a command template and the data it needs. Adding a test is adding a row.

use crate::error::{BenchError, Result};

/// A named command to measure.
#[derive(Clone, Copy, Debug)]
pub struct NamedTest {
    /// Its name for `--test`.
    pub name: &'static str,
    /// The command measured.
    pub command: &'static str,
    /// What is written first, `rounds` times over all keys in order; `None` if the test needs no data.
    pub load: Option<Load>,
}

/// A load phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The command that writes.
    pub command: &'static str,
    /// How often each key is written: elements per key for collections.
    pub rounds: u64,
}

const STRINGS: Load = Load { command: "SET {key} {value}", rounds: 1 };
const HASHES: Load = Load { command: "HSET bench:h{id:9} field:{field:20:10} {value}", rounds: 20 };
const LISTS: Load = Load { command: "RPUSH bench:l{id:9} {value}", rounds: 20 };
const SETS: Load = Load { command: "SADD bench:s{id:9} member:{field:20:9}", rounds: 20 };
const ZSETS: Load = Load { command: "ZADD bench:z{id:9} {int:1000000} member:{field:20:9}", rounds: 20 };

/// All named tests. Collections have 20 elements per key, of 16 bytes each.
pub const TESTS: &[NamedTest] = &[
    NamedTest { name: "ping", command: "PING", load: None },
    NamedTest { name: "set", command: "SET {key} {value}", load: Some(STRINGS) },
    NamedTest { name: "get", command: "GET {key}", load: Some(STRINGS) },
    NamedTest { name: "incr", command: "INCR bench:c{id:9}", load: None },
    NamedTest { name: "setex", command: "SETEX {key} 3600 {value}", load: Some(STRINGS) },
    NamedTest { name: "expire", command: "EXPIRE {key} {int:100000}", load: Some(STRINGS) },
    NamedTest { name: "append", command: "APPEND bench:a{id:9} {value}", load: None },
    NamedTest { name: "exists", command: "EXISTS {key}", load: Some(STRINGS) },
    NamedTest { name: "del", command: "DEL {key}", load: Some(STRINGS) },
    NamedTest { name: "insert", command: "SET {newkey} {value}", load: None },
    NamedTest { name: "mget10", command: MGET10, load: Some(STRINGS) },
    NamedTest { name: "setbit", command: "SETBIT bench:b{id:9} {int:1000} 1", load: None },
    NamedTest { name: "hset", command: HASHES.command, load: Some(HASHES) },
    NamedTest { name: "hget", command: "HGET bench:h{id:9} field:{field:20:10}", load: Some(HASHES) },
    NamedTest { name: "lpush", command: "LPUSH bench:l{id:9} {value}", load: Some(LISTS) },
    NamedTest { name: "rpop", command: "RPOP bench:l{id:9}", load: Some(LISTS) },
    NamedTest { name: "sadd", command: SETS.command, load: Some(SETS) },
    NamedTest { name: "sismember", command: "SISMEMBER bench:s{id:9} member:{field:20:9}", load: Some(SETS) },
    NamedTest { name: "zadd", command: ZSETS.command, load: Some(ZSETS) },
    NamedTest { name: "zrange10", command: "ZRANGE bench:z{id:9} 5 14", load: Some(ZSETS) },
    NamedTest { name: "zrank", command: "ZRANK bench:z{id:9} member:{field:20:9}", load: Some(ZSETS) },
    NamedTest { name: "xadd", command: XADD, load: None },
];

const MGET10: &str = "MGET {key} {key} {key} {key} {key} {key} {key} {key} {key} {key}";
const XADD: &str = "XADD bench:x{id:9} MAXLEN ~ 1000 * first {value} second {value}";

/// What one row of a run measures: one command, or several mixed by weight.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TestSpec {
    /// Name in tables.
    pub name: String,
    /// Command templates with their weights.
    pub commands: Vec<(String, u32)>,
    /// Load phases needed first: command template and rounds over all keys.
    pub loads: Vec<(String, u64)>,
}

impl TestSpec {
    /// Reads `get`, or a mix such as `set:1+get:9` (also written `mixed:1:9`).
    ///
    /// # Errors
    /// An unknown name (the text lists the known ones) or a weight that is not a positive integer.
    pub fn parse(text: &str) -> Result<Self> {
        if let Some(ratio) = text.strip_prefix("mixed") {
            let ratio = if ratio.is_empty() { ":1:10" } else { ratio };
            let mut weights = ratio.trim_start_matches(':').split(':');
            if let (Some(set), Some(get), None) = (weights.next(), weights.next(), weights.next()) {
                let mut mix = Self::parse(&format!("set:{set}+get:{get}"))?;
                mix.name = format!("mixed {set}:{get}");
                return Ok(mix);
            }
            return Err(BenchError::Usage(format!("test `{text}`: expected mixed:SETS:GETS, such as mixed:1:10")));
        }
        let mut spec = Self { name: text.to_owned(), commands: Vec::new(), loads: Vec::new() };
        for part in text.split('+') {
            let (name, weight) = part.split_once(':').unwrap_or((part, "1"));
            let test = TESTS.iter().find(|test| test.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
                let known: Vec<_> = TESTS.iter().map(|test| test.name).collect();
                BenchError::Usage(format!("no test named `{name}`; known: mixed, {}", known.join(", ")))
            })?;
            let weight = weight.parse::<u32>().ok().filter(|&weight| weight > 0);
            let weight =
                weight.ok_or_else(|| BenchError::Usage(format!("test `{text}`: weights are positive integers")))?;
            spec.commands.push((test.command.to_owned(), weight));
            if let Some(load) = test.load {
                let load = (load.command.to_owned(), load.rounds);
                if !spec.loads.contains(&load) {
                    spec.loads.push(load);
                }
            }
        }
        Ok(spec)
    }

    /// A command of the user's own; it loads nothing.
    pub fn command(text: &str) -> Self {
        Self { name: text.to_owned(), commands: vec![(text.to_owned(), 1)], loads: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::{KEY_PREFIX, KeyFormat, Template};

    #[test]
    fn every_row_compiles_and_names_are_unique() {
        for (at, test) in TESTS.iter().enumerate() {
            Template::new(test.command, &KeyFormat::default()).unwrap();
            if let Some(load) = test.load {
                Template::new(load.command, &KeyFormat::default()).unwrap();
            }
            assert!(TESTS[..at].iter().all(|other| other.name != test.name), "{} twice", test.name);
            let key = test.command.split(' ').nth(1).unwrap_or("{key}");
            assert!(key.starts_with(KEY_PREFIX) || ["{key}", "{newkey}"].contains(&key), "{}", test.command);
        }
    }

    #[test]
    fn mixes_share_their_load() {
        let mix = TestSpec::parse("set:1+get:9").unwrap();
        assert_eq!(mix.commands, [("SET {key} {value}".to_owned(), 1), ("GET {key}".to_owned(), 9)]);
        assert_eq!(mix.loads.len(), 1);
        assert_eq!(TestSpec::parse("mixed:1:9").unwrap().commands, mix.commands);
        for bad in ["nope", "set:0", "set:x", "mixed:1", "mixed:1:2:3", ""] {
            assert!(TestSpec::parse(bad).is_err(), "{bad}");
        }
    }
}
