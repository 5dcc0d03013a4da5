//! A `default_engine.conf` of arcus-memcached as directives: what a server with the same settings is started with.

use std::path::{Path, PathBuf};

/// The longest file that is read.
pub const FILE_BYTES_MAX: usize = 1 << 20;

/// A setting of ARCUS, and what becomes of its value.
struct Setting {
    name: &'static str,
    means: Means,
}

enum Means {
    /// One of those that are looked at together.
    Persistence,
    /// A number with this directive, and a unit behind it.
    Number { directive: &'static str, unit: &'static str, least: u64, most: u64 },
    /// A number of bytes with this directive; it may end in `k`, `m`, `g` or `t`, or in `KB` and the like.
    Bytes { directive: &'static str, least: u64, most: u64 },
    /// `true` and `false` with the values of this directive.
    Choice { directive: &'static str, if_true: &'static str, if_false: &'static str },
    /// Only this value can be had.
    Only { value: &'static str, instead: &'static str },
    /// No effect, and why.
    Nothing(&'static str),
}

const MEGABYTE_COUNT_MAX: u64 = 1 << 40;
const NO_SLABS: &str = "memory is not divided into slab classes";

const SETTINGS: &[Setting] = &[
    Setting { name: "use_persistence", means: Means::Persistence },
    Setting { name: "async_logging", means: Means::Persistence },
    Setting { name: "data_path", means: Means::Persistence },
    Setting { name: "logs_path", means: Means::Persistence },
    Setting {
        name: "chkpt_interval_pct_snapshot",
        means: Means::Number { directive: "auto-aof-rewrite-percentage", unit: "", least: 1, most: 1000 },
    },
    Setting {
        name: "chkpt_interval_min_logsize",
        means: Means::Number { directive: "auto-aof-rewrite-min-size", unit: "mb", least: 1, most: MEGABYTE_COUNT_MAX },
    },
    Setting { name: "cache_size", means: Means::Bytes { directive: "maxmemory", least: 1, most: u64::MAX } },
    Setting {
        name: "item_size_max",
        means: Means::Bytes { directive: "memcached-item-size-max", least: 1024, most: 128 << 20 },
    },
    Setting {
        name: "eviction",
        means: Means::Choice { directive: "maxmemory-policy", if_true: "allkeys-lru", if_false: "noeviction" },
    },
    Setting { name: "sticky_limit", means: Means::Bytes { directive: "arcus-sticky-limit", least: 0, most: u64::MAX } },
    Setting {
        name: "max_list_size",
        means: Means::Number { directive: "arcus-max-list-size", unit: "", least: 10_000, most: 1_000_000 },
    },
    Setting {
        name: "max_set_size",
        means: Means::Number { directive: "arcus-max-set-size", unit: "", least: 10_000, most: 1_000_000 },
    },
    Setting {
        name: "max_map_size",
        means: Means::Number { directive: "arcus-max-map-size", unit: "", least: 10_000, most: 1_000_000 },
    },
    Setting {
        name: "max_btree_size",
        means: Means::Number { directive: "arcus-max-btree-size", unit: "", least: 10_000, most: 1_000_000 },
    },
    Setting {
        name: "max_element_bytes",
        means: Means::Bytes { directive: "arcus-max-element-bytes", least: 1024, most: 32_768 },
    },
    Setting { name: "prefix_delimiter", means: Means::Only { value: ":", instead: "a prefix ends at a colon" } },
    Setting { name: "use_cas", means: Means::Nothing("items always have CAS ids") },
    Setting { name: "scrub_count", means: Means::Nothing("a scrub takes as much time as clients leave it") },
    Setting { name: "max_stats_prefixes", means: Means::Nothing("`stats prefixes` lists up to 10,000") },
    Setting { name: "factor", means: Means::Nothing(NO_SLABS) },
    Setting { name: "chunk_size", means: Means::Nothing(NO_SLABS) },
    Setting { name: "preallocate", means: Means::Nothing(NO_SLABS) },
    Setting { name: "verbose", means: Means::Nothing("`loglevel` says what is logged") },
];

/// What becomes of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Translation {
    /// Directives and their values.
    pub directives: Vec<(&'static str, String)>,
    /// What has no effect here.
    pub warnings: Vec<String>,
    /// What a server cannot be given.
    pub errors: Vec<String>,
}

/// What `use_persistence` and its companions say together.
#[derive(Default)]
struct Persistence {
    is_on: Option<bool>,
    is_async: Option<bool>,
    data: Option<PathBuf>,
    logs: Option<PathBuf>,
}

/// Names and values of the lines that are no comments, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str, Option<&str>)> {
    text.lines().zip(1..).filter_map(|(line, number)| {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        Some(match line.split_once('=') {
            Some((name, value)) => (number, name.trim(), Some(value.trim())),
            None => (number, line, None),
        })
    })
}

fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// Whether the file is one of ARCUS: it gives a setting that ARCUS knows a value by an equals sign.
pub fn is_one(text: &str) -> bool {
    lines(text).any(|(_, name, value)| value.is_some() && find(name).is_some())
}

/// The directives that stand for the settings of the file.
pub fn translate(text: &str) -> Translation {
    let (mut found, mut persistence) = (Translation::default(), Persistence::default());
    for (number, name, value) in lines(text) {
        let Some(value) = value else {
            found.errors.push(format!("line {number}: `{name}` has no value: write NAME=VALUE"));
            continue;
        };
        let Some(setting) = find(name) else {
            found
                .errors
                .push(format!("line {number}: `{name}` is no setting of ARCUS that is known here: remove the line"));
            continue;
        };
        if let Err(problem) = take(setting, value, number, &mut found, &mut persistence) {
            found.errors.push(format!("line {number}: {name}={value}: {problem}"));
        }
    }
    persistence.add_to(&mut found);
    found
}

/// A number of bytes, as [`Means::Bytes`] has it.
fn bytes(value: &str) -> Option<u64> {
    let lower = value.to_ascii_lowercase();
    let number = lower.strip_suffix('b').filter(|rest| rest.ends_with(['k', 'm', 'g', 't'])).unwrap_or(&lower);
    let unit = match number.chars().last()? {
        'k' => 1 << 10,
        'm' => 1 << 20,
        'g' => 1 << 30,
        't' => 1 << 40,
        _ => return number.parse().ok(),
    };
    number.get(..number.len().saturating_sub(1))?.parse::<u64>().ok()?.checked_mul(unit)
}

fn take(
    setting: &Setting,
    value: &str,
    line: usize,
    found: &mut Translation,
    persistence: &mut Persistence,
) -> Result<(), String> {
    let within = |number: Option<u64>, least: u64, most: u64| match number {
        None => Err("expected a whole number".to_owned()),
        Some(number) if !(least..=most).contains(&number) => Err(format!("expected a number from {least} to {most}")),
        Some(number) => Ok(number),
    };
    match setting.means {
        Means::Persistence => persistence.take(setting.name, value)?,
        Means::Number { directive, unit, least, most } => {
            let number = within(value.parse().ok(), least, most)?;
            found.directives.push((directive, format!("{number}{unit}")));
        }
        Means::Bytes { directive, least, most } => {
            found.directives.push((directive, within(bytes(value), least, most)?.to_string()));
        }
        Means::Choice { directive, if_true, if_false } => {
            found.directives.push((directive, if flag(value)? { if_true } else { if_false }.to_owned()));
        }
        Means::Only { value: only, instead } if value != only => {
            return Err(format!("{instead}, and there is no setting for it: give {only}"));
        }
        Means::Only { .. } => {}
        Means::Nothing(why) => found.warnings.push(format!("line {line}: {} has no effect: {why}", setting.name)),
    }
    Ok(())
}

fn flag(value: &str) -> Result<bool, String> {
    match value {
        "true" | "on" => Ok(true),
        "false" | "off" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

impl Persistence {
    fn take(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "use_persistence" => self.is_on = Some(flag(value)?),
            "async_logging" => self.is_async = Some(flag(value)?),
            _ if value.is_empty() => return Err("expected a directory".to_owned()),
            "data_path" => self.data = Some(PathBuf::from(value)),
            _ => self.logs = Some(PathBuf::from(value)),
        }
        Ok(())
    }

    /// Without `use_persistence` ARCUS keeps nothing, and with it `STORED` waits for the disk unless `async_logging`
    /// says otherwise.
    fn add_to(self, found: &mut Translation) {
        if !self.is_on.unwrap_or(false) {
            found.directives.push(("appendonly", "no".to_owned()));
            found.directives.push(("save", "\"\"".to_owned()));
            return;
        }
        found.directives.push(("appendonly", "yes".to_owned()));
        let mode = if self.is_async.unwrap_or(false) { "everysec" } else { "always" };
        found.directives.push(("appendfsync", mode.to_owned()));
        let apart = |data: &Path, logs: &Path| data != logs;
        match (&self.data, &self.logs) {
            (Some(data), Some(logs)) if apart(data, logs) => found.warnings.push(format!(
                "logs_path={} has no effect: the log is in the directory of the checkpoints, {}",
                logs.display(),
                data.display()
            )),
            _ => {}
        }
        if let Some(directory) = self.data.or(self.logs) {
            found.directives.push(("dir", directory.display().to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directives(text: &str) -> Vec<String> {
        let found = translate(text);
        assert!(found.errors.is_empty(), "{:?}", found.errors);
        found.directives.iter().map(|(name, value)| format!("{name} {value}")).collect()
    }

    const SAMPLE: &str = "# This is a default engine config file\n\n#max_list_size=50000\nmax_btree_size=50000\n\
        max_element_bytes=16KB\n#\nuse_persistence=true\ndata_path=/srv/ARCUS-DB\nlogs_path=/srv/ARCUS-DB\n\
        async_logging=false\nchkpt_interval_pct_snapshot=100\nchkpt_interval_min_logsize=256\n";

    #[test]
    fn a_file_of_arcus_becomes_directives() {
        assert!(is_one(SAMPLE));
        let expected = [
            "arcus-max-btree-size 50000",
            "arcus-max-element-bytes 16384",
            "auto-aof-rewrite-percentage 100",
            "auto-aof-rewrite-min-size 256mb",
            "appendonly yes",
            "appendfsync always",
            "dir /srv/ARCUS-DB",
        ];
        assert_eq!(directives(SAMPLE), expected);
        assert_eq!(directives("use_persistence = true\nasync_logging=true")[1], "appendfsync everysec");
        assert_eq!(directives("async_logging=true"), ["appendonly no", "save \"\""]);
        assert_eq!(
            directives("eviction=false\ncache_size=1048576")[..2],
            ["maxmemory-policy noeviction", "maxmemory 1048576"]
        );
    }

    #[test]
    fn other_files_are_none_of_arcus() {
        for text in ["", "# use_persistence=true\n", "appendonly yes\nport 6379\n", "proc-title-template {title}=x\n"] {
            assert!(!is_one(text), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_had_is_said_with_its_line() {
        for (text, problem) in [
            ("\nsticky_limit=many", "line 2: sticky_limit=many: expected a whole number"),
            ("max_list_size=1000001", "expected a number from 10000 to 1000000"),
            ("max_element_bytes=512", "expected a number from 1024 to 32768"),
            ("max_element_bytes=16XB", "expected a whole number"),
            ("max_element_bytes=1m", "expected a number from 1024 to 32768"),
            ("max_list_size=50k", "expected a whole number"),
            ("prefix_delimiter=.", "a prefix ends at a colon"),
            ("use_persistence=maybe", "expected true or false"),
            ("chkpt_interval_pct_snapshot=0", "expected a number from 1 to 1000"),
            ("use_persistence", "has no value"),
            ("unknown_setting=1", "is no setting of ARCUS"),
            ("data_path=", "expected a directory"),
        ] {
            let errors = translate(text).errors;
            assert!(errors.len() == 1 && errors[0].contains(problem), "{text}: {errors:?}");
        }
        let apart = translate("use_persistence=true\ndata_path=/a\nlogs_path=/b\nscrub_count=96");
        assert_eq!(apart.warnings.len(), 2, "{apart:?}");
        assert!(apart.warnings[1].contains("logs_path=/b has no effect"), "{apart:?}");
    }

    /// Each directive is one that a server takes.
    #[test]
    fn directives_exist() {
        for setting in SETTINGS {
            if let Means::Number { directive, .. } | Means::Bytes { directive, .. } | Means::Choice { directive, .. } =
                setting.means
            {
                assert!(config::find(directive.as_bytes()).is_some(), "{directive}");
            }
        }
    }
}
