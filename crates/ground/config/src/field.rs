//! How one field of [`Settings`] is read from words and written as text, by its type.

use crate::syntax::{format_percentile, format_size, parse_flag, parse_integer, parse_size, quote};
use crate::{
    Address, Databases, EndFlags, Engine, EvictionPolicy, MemoryShare, OutputLimit, OutputLimits, PrimaryAddress,
    SavePoint, SavePoints, Secret, Settings, ValueError,
};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A field and its type. The functions reach into [`Settings`]; the macros next to this type write them from the
/// field's name, so that a row of the table names its field and nothing else.
pub(crate) enum Field {
    /// `yes` or `no`.
    Flag { get: fn(&Settings) -> bool, set: fn(&mut Settings, bool) },
    /// A number within bounds.
    Integer { get: fn(&Settings) -> i64, set: fn(&mut Settings, i64), min: i64, max: i64, power_of_two: bool },
    /// A size within bounds, with units.
    Size { get: fn(&Settings) -> u64, set: fn(&mut Settings, u64), min: u64, max: u64 },
    /// A size, or a percentage of `maxmemory`.
    Share { get: fn(&Settings) -> MemoryShare, set: fn(&mut Settings, MemoryShare) },
    /// Permission bits, in octal.
    Permissions { get: fn(&Settings) -> u32, set: fn(&mut Settings, u32) },
    /// One of several words.
    Choice { words: &'static [&'static str], get: fn(&Settings) -> usize, set: fn(&mut Settings, usize) },
    /// A path; empty for none.
    Path { get: fn(&Settings) -> &Path, set: fn(&mut Settings, PathBuf) },
    /// A password; empty for none.
    Secret { get: fn(&Settings) -> &Secret, set: fn(&mut Settings, Secret) },
    /// The words of `bind`.
    Addresses { get: fn(&Settings) -> &[Address], set: fn(&mut Settings, Vec<Address>) },
    /// The fours of words of `client-output-buffer-limit`.
    OutputLimits { get: fn(&Settings) -> OutputLimits, set: fn(&mut Settings, OutputLimits) },
    /// The threes of words of `database`.
    Databases { get: fn(&Settings) -> &Databases, set: fn(&mut Settings, Databases) },
    /// Pairs of seconds and changes.
    SavePoints { get: fn(&Settings) -> &SavePoints, set: fn(&mut Settings, SavePoints) },
    /// The words of `replicaof`.
    Primary { get: fn(&Settings) -> Option<&PrimaryAddress>, set: fn(&mut Settings, Option<PrimaryAddress>) },
    /// Any text.
    Text { get: fn(&Settings) -> &str, set: fn(&mut Settings, String) },
    /// Letters of classes of events.
    Events { get: fn(&Settings) -> &str, set: fn(&mut Settings, String) },
    /// Words of SHUTDOWN, or `default`.
    Ending { get: fn(&Settings) -> EndFlags, set: fn(&mut Settings, EndFlags) },
    /// Numbers from 0 to 100.
    Percentiles { get: fn(&Settings) -> &[f64], set: fn(&mut Settings, Vec<f64>) },
}

/// The field as `yes` or `no`.
macro_rules! flag {
    ($field:ident) => {
        $crate::field::Field::Flag { get: |s| s.$field, set: |s, value| s.$field = value }
    };
}

/// The field as a number from `min` to `max`, which must fit its type; a test sets both.
macro_rules! integer {
    ($field:ident: $min:expr, $max:expr) => {
        integer!($field: $min, $max, false)
    };
    ($field:ident: $min:expr, $max:expr, power of two) => {
        integer!($field: $min, $max, true)
    };
    ($field:ident: $min:expr, $max:expr, $power_of_two:expr) => {
        $crate::field::Field::Integer {
            get: |s| i64::try_from(s.$field).unwrap_or(i64::MAX),
            set: |s, value| s.$field = value.try_into().unwrap_or(s.$field),
            min: $min,
            max: $max,
            power_of_two: $power_of_two,
        }
    };
}

/// The field as a size from `min` to `max` bytes.
macro_rules! size {
    ($field:ident: $min:expr, $max:expr) => {
        $crate::field::Field::Size { get: |s| s.$field, set: |s, value| s.$field = value, min: $min, max: $max }
    };
}

/// The field as one of the words of its enumeration.
macro_rules! choice {
    ($field:ident: $type:ident) => {
        $crate::field::Field::Choice {
            words: $crate::$type::WORDS,
            get: |s| s.$field as usize,
            set: |s, index| {
                if let Some(choice) = $crate::$type::ALL.get(index) {
                    s.$field = *choice;
                }
            },
        }
    };
}

/// The text in the field.
macro_rules! text {
    ($field:ident) => {
        $crate::field::Field::Text { get: |s| &s.$field, set: |s, text| s.$field = text }
    };
}

/// The optional path in the field.
macro_rules! optional_path {
    ($field:ident) => {
        $crate::field::Field::Path {
            get: |s| s.$field.as_deref().unwrap_or(std::path::Path::new("")),
            set: |s, path| s.$field = (!path.as_os_str().is_empty()).then_some(path),
        }
    };
}

pub(crate) use {choice, flag, integer, optional_path, size, text};

/// As many addresses as Redis takes.
const BIND_ADDRESSES_MAX: usize = 16;
/// More percentiles would make every INFO long.
const PERCENTILES_MAX: usize = 32;
/// More than a schedule of saves needs.
const SAVE_POINTS_MAX: usize = 64;
/// The letters of `notify-keyspace-events`, in the order CONFIG GET shows them, and those that `A` stands for.
const EVENT_CLASSES: &str = "g$lshzxetdnKEm";
const EVENT_CLASSES_OF_ALL: &str = "g$lshzxetd";
/// What `database` says of a database, each in a line of its own, and the policy of one that was given none.
const ENGINE: &str = "engine";
const ORDERED: &str = "ordered";
const POLICY: &str = "maxmemory-policy";
const DATABASE_PROPERTIES: [&str; 3] = [ENGINE, ORDERED, POLICY];
const NO_POLICY: &str = "default";
/// The value of `replicaof` for a server without a primary.
const NO_PRIMARY: [&str; 2] = ["no", "one"];
const SIGNED_MAX: u64 = i64::MAX as u64;

impl Field {
    /// Whether it takes any number of words. One quoted word of the file is then split again.
    pub(crate) fn takes_many(&self) -> bool {
        matches!(
            self,
            Self::Addresses { .. }
                | Self::OutputLimits { .. }
                | Self::Databases { .. }
                | Self::Primary { .. }
                | Self::SavePoints { .. }
                | Self::Percentiles { .. }
                | Self::Ending { .. }
        )
    }

    /// Forgets that earlier lines of a file gave the field a part of its value: what comes now replaces it as a whole.
    pub(crate) fn start_over(&self, settings: &mut Settings) {
        if let Self::SavePoints { get, set } = self {
            set(settings, SavePoints { replaceable: true, ..get(settings).clone() });
        }
    }

    /// Sets the field. No words at all mean an empty list, where the type has one.
    pub(crate) fn set(&self, settings: &mut Settings, words: &[impl AsRef<[u8]>]) -> Result<(), ValueError> {
        let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
        match self {
            Self::Addresses { set, .. } => set(settings, parse_addresses(&words)?),
            Self::OutputLimits { get, set } => set(settings, parse_output_limits(get(settings), &words)?),
            Self::Databases { get, set } => set(settings, parse_databases(get(settings).clone(), &words)?),
            Self::SavePoints { get, set } => set(settings, parse_save_points(get(settings), &words)?),
            Self::Primary { set, .. } => set(settings, parse_primary(&words)?),
            Self::Percentiles { set, .. } => set(settings, parse_percentiles(&words)?),
            Self::Ending { set, .. } => set(settings, parse_end_flags(&words)?),
            _ => {
                let [word] = words.as_slice() else { return Err(ValueError::WordCount) };
                self.set_word(settings, word)?;
            }
        }
        Ok(())
    }

    /// Sets a field of one word.
    fn set_word(&self, settings: &mut Settings, word: &[u8]) -> Result<(), ValueError> {
        match self {
            Self::Flag { set, .. } => set(settings, parse_flag(word).ok_or(ValueError::NotFlag)?),
            Self::Integer { set, min, max, power_of_two, .. } => {
                let number = parse_integer(word).ok_or(ValueError::NotInteger)?;
                if !(*min..=*max).contains(&number) {
                    return Err(ValueError::out_of_range(min, max));
                }
                if *power_of_two && number.count_ones() > 1 {
                    return Err(ValueError::NotPowerOfTwo);
                }
                set(settings, number);
            }
            Self::Size { set, min, max, .. } => {
                let size = parse_size(word).ok_or(ValueError::NotSize)?;
                match u64::try_from(size) {
                    Ok(size) if (*min..=*max).contains(&size) => set(settings, size),
                    Err(_) if *max == u64::MAX => return Err(ValueError::NotSize),
                    _ => return Err(ValueError::out_of_range(min, max)),
                }
            }
            Self::Share { set, .. } => set(settings, parse_share(word)?),
            Self::Permissions { set, .. } => {
                let text =
                    std::str::from_utf8(word).ok().filter(|text| text.bytes().all(|digit| digit.is_ascii_digit()));
                let bits = text.and_then(|text| u32::from_str_radix(text, 8).ok()).ok_or(ValueError::NotOctal)?;
                if bits > 0o777 {
                    return Err(ValueError::out_of_range(&"0", &"777"));
                }
                set(settings, bits);
            }
            Self::Choice { words, set, .. } => {
                let index = words.iter().position(|known| known.as_bytes().eq_ignore_ascii_case(word));
                set(settings, index.ok_or(ValueError::NotOneOf(words))?);
            }
            Self::Path { set, .. } => {
                if word.contains(&0) {
                    return Err(ValueError::NulByte);
                }
                set(settings, PathBuf::from(OsStr::from_bytes(word)));
            }
            Self::Secret { set, .. } => set(settings, Secret::new(word)),
            Self::Text { set, .. } => {
                set(settings, std::str::from_utf8(word).map_err(|_| ValueError::NotText)?.to_owned())
            }
            Self::Events { set, .. } => set(settings, parse_events(word)?),
            Self::Addresses { .. }
            | Self::OutputLimits { .. }
            | Self::Databases { .. }
            | Self::Primary { .. }
            | Self::SavePoints { .. }
            | Self::Percentiles { .. }
            | Self::Ending { .. } => {}
        }
        Ok(())
    }

    /// The value as CONFIG GET answers it.
    pub(crate) fn answer(&self, settings: &Settings) -> Vec<u8> {
        match self {
            Self::Flag { get, .. } => if get(settings) { "yes" } else { "no" }.into(),
            Self::Integer { get, .. } => get(settings).to_string().into(),
            Self::Size { get, .. } => get(settings).to_string().into(),
            Self::Share { get, .. } => match get(settings) {
                MemoryShare::Bytes(bytes) => bytes.to_string().into(),
                MemoryShare::Percent(percent) => format!("{percent}%").into(),
            },
            Self::Permissions { get, .. } => format!("{:o}", get(settings)).into(),
            Self::Choice { words, get, .. } => words.get(get(settings)).copied().unwrap_or_default().into(),
            Self::Path { get, .. } => get(settings).as_os_str().as_bytes().to_vec(),
            Self::Secret { get, .. } => get(settings).expose().to_vec(),
            Self::Text { get, .. } | Self::Events { get, .. } => get(settings).into(),
            Self::Primary { get, .. } => get(settings).map(PrimaryAddress::to_string).unwrap_or_default().into(),
            Self::Addresses { get, .. } => join(get(settings)).into(),
            Self::OutputLimits { get, .. } => {
                let limits = get(settings).classes().map(|(class, limit)| {
                    let class = if class == "replica" { "slave" } else { class };
                    format!("{class} {} {} {}", limit.hard_bytes, limit.soft_bytes, limit.soft_seconds)
                });
                limits.join(" ").into()
            }
            Self::Databases { get, .. } => {
                let databases = get(settings);
                let on_disk = databases.on_disk().map(|number| engine_line(number, Engine::Disk));
                let ordered = databases.ordered().map(|number| ordered_line(number, true));
                let policies = databases.policies().map(|(number, policy)| policy_line(number, Some(policy)));
                on_disk.chain(ordered).chain(policies).collect::<Vec<_>>().join(" ").into()
            }
            Self::SavePoints { get, .. } => {
                let points = get(settings).points.iter().map(|point| format!("{} {}", point.seconds, point.changes));
                points.collect::<Vec<_>>().join(" ").into()
            }
            Self::Percentiles { get, .. } => percentiles(get(settings)).into(),
            Self::Ending { get, .. } => get(settings).to_string().into(),
        }
    }

    /// Whether each line adds to the lines before it.
    pub(crate) fn adds_up(&self) -> bool {
        matches!(self, Self::SavePoints { .. })
    }

    /// The value as the file has it: the words after the name, one text for each line.
    pub(crate) fn lines(&self, settings: &Settings) -> Vec<String> {
        let line = match self {
            Self::Size { get, .. } => format_size(get(settings)),
            Self::Share { get, .. } => match get(settings) {
                MemoryShare::Bytes(bytes) => format_size(bytes),
                MemoryShare::Percent(percent) => format!("{percent}%"),
            },
            Self::Primary { get, .. } if get(settings).is_none() => NO_PRIMARY.join(" "),
            Self::Path { .. } | Self::Secret { .. } | Self::Text { .. } => quote(&self.answer(settings)),
            Self::OutputLimits { get, .. } => {
                return get(settings).classes().map(|(class, limit)| output_limit_line(class, limit)).to_vec();
            }
            Self::Databases { get, .. } => {
                let databases = get(settings);
                let lines_of = |number| {
                    [
                        engine_line(number, databases.engine(number)),
                        ordered_line(number, databases.is_ordered(number)),
                        policy_line(number, databases.policy(number)),
                    ]
                };
                return (0..Databases::COUNT_MAX).flat_map(lines_of).collect();
            }
            _ => String::from_utf8_lossy(&self.answer(settings)).into_owned(),
        };
        vec![if line.is_empty() { "\"\"".to_owned() } else { line }]
    }

    /// Which of [`Self::lines`] a line of the file stands for; `None` when it stands for several.
    pub(crate) fn line_index(&self, words: &[Vec<u8>]) -> Option<usize> {
        match (self, words) {
            (Self::OutputLimits { .. }, [class, _, _, _]) => match class.to_ascii_lowercase().as_slice() {
                b"normal" => Some(0),
                b"replica" | b"slave" => Some(1),
                b"pubsub" => Some(2),
                _ => None,
            },
            (Self::Databases { .. }, [number, property, _]) => {
                let is_named = |known: &str| property.eq_ignore_ascii_case(known.as_bytes());
                let of_property = DATABASE_PROPERTIES.iter().position(|known| is_named(known))?;
                let number = usize::try_from(parse_database(number)?).ok()?;
                number.checked_mul(DATABASE_PROPERTIES.len())?.checked_add(of_property)
            }
            (Self::OutputLimits { .. } | Self::Databases { .. }, _) => None,
            _ => Some(0),
        }
    }

    /// Words that each of [`Self::lines`] has, where a line of the file may stand for several.
    pub(crate) fn words_per_line(&self) -> usize {
        match self {
            Self::OutputLimits { .. } => 4,
            Self::Databases { .. } => 3,
            _ => usize::MAX,
        }
    }

    /// What may be written, for people.
    pub(crate) fn syntax(&self) -> String {
        match self {
            Self::Flag { .. } => "`yes` or `no`".into(),
            Self::Integer { min, max, power_of_two, .. } => {
                let what = match (power_of_two, min) {
                    (false, _) => "integer",
                    (true, 0) => "zero or a power of two",
                    (true, _) => "power of two",
                };
                match *max {
                    i64::MAX => format!("{what}, at least {min}"),
                    _ => format!("{what} from {min} to {max}"),
                }
            }
            Self::Size { min: 0, max, .. } if *max >= SIGNED_MAX => "size".into(),
            Self::Size { min, max, .. } if *max >= SIGNED_MAX => format!("size, at least {}", format_size(*min)),
            Self::Size { min, max, .. } => format!("size from {} to {}", format_size(*min), format_size(*max)),
            Self::Share { .. } => "size, or percentage of `maxmemory`".into(),
            Self::Permissions { .. } => "octal number from 0 to 777".into(),
            Self::Choice { words, .. } => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
            Self::Path { .. } => "path".into(),
            Self::Secret { .. } => "password".into(),
            Self::Primary { .. } => "host and port, or `no one`".into(),
            Self::Text { .. } => "text".into(),
            Self::Events { .. } => format!("letters, any of `A{EVENT_CLASSES}`"),
            Self::Addresses { .. } => format!("up to {BIND_ADDRESSES_MAX} addresses"),
            Self::OutputLimits { .. } => "class, hard limit, soft limit, seconds; may be repeated".into(),
            Self::Databases { .. } => {
                "number, then `engine` and `memory` or `disk`, `ordered` and `yes` or `no`, or `maxmemory-policy` and a \
                 policy or `default`; may be repeated"
                    .into()
            }
            Self::SavePoints { .. } => "seconds and changes, any number of pairs; may be repeated".into(),
            Self::Percentiles { .. } => "numbers from 0 to 100".into(),
            Self::Ending { .. } => "`default`, or words of `save`, `nosave`, `now`, `force`, `safe`, `failover`".into(),
        }
    }
}

/// The letters as CONFIG GET shows them: `A` for all that it stands for, and each once.
fn parse_events(word: &[u8]) -> Result<String, ValueError> {
    let known = |letter: &u8| *letter == b'A' || EVENT_CLASSES.as_bytes().contains(letter);
    if !word.iter().all(known) {
        return Err(ValueError::NotEvents);
    }
    let has =
        |class: char| word.contains(&(class as u8)) || word.contains(&b'A') && EVENT_CLASSES_OF_ALL.contains(class);
    let has_all = EVENT_CLASSES_OF_ALL.chars().all(has);
    let single =
        EVENT_CLASSES.chars().filter(|class| has(*class) && !(has_all && EVENT_CLASSES_OF_ALL.contains(*class)));
    Ok(has_all.then_some('A').into_iter().chain(single).collect())
}

fn parse_share(word: &[u8]) -> Result<MemoryShare, ValueError> {
    if let Some(digits) = word.strip_suffix(b"%") {
        let percent = parse_integer(digits).filter(|percent| *percent >= 0).ok_or(ValueError::NotShare)?;
        return match u8::try_from(percent) {
            Ok(0) => Ok(MemoryShare::Bytes(0)),
            Ok(percent @ 1..=100) => Ok(MemoryShare::Percent(percent)),
            _ => Err(ValueError::PercentTooLarge),
        };
    }
    let size = parse_size(word).and_then(|size| u64::try_from(size).ok()).ok_or(ValueError::NotShare)?;
    if size > SIGNED_MAX { Err(ValueError::out_of_range(&0, &SIGNED_MAX)) } else { Ok(MemoryShare::Bytes(size)) }
}

fn parse_addresses(words: &[&[u8]]) -> Result<Vec<Address>, ValueError> {
    match words {
        [b""] => Ok(Vec::new()),
        words if words.len() > BIND_ADDRESSES_MAX => Err(ValueError::TooManyAddresses),
        words => words.iter().map(|word| Address::parse(word).ok_or(ValueError::NotAddress)).collect(),
    }
}

/// Changes the classes that the words name and leaves the others.
fn parse_output_limits(mut limits: OutputLimits, words: &[&[u8]]) -> Result<OutputLimits, ValueError> {
    let (groups, []) = words.as_chunks::<4>() else { return Err(ValueError::OutputLimitWordCount) };
    for [class, hard, soft, seconds] in groups {
        let limit = limits.class_mut(class).ok_or(ValueError::OutputLimitClass)?;
        let size =
            |word| parse_size(word).and_then(|size| u64::try_from(size).ok()).ok_or(ValueError::OutputLimitNumber);
        let seconds = seconds.strip_prefix(b"+").unwrap_or(seconds);
        let seconds = std::str::from_utf8(seconds).ok().and_then(|text| text.parse().ok());
        *limit = OutputLimit {
            hard_bytes: size(hard)?,
            soft_bytes: size(soft)?,
            soft_seconds: seconds.filter(|seconds| *seconds <= SIGNED_MAX).ok_or(ValueError::OutputLimitNumber)?,
        };
    }
    Ok(limits)
}

/// Changes the databases that the words name and leaves the others.
fn parse_databases(mut databases: Databases, words: &[&[u8]]) -> Result<Databases, ValueError> {
    if let [b""] = words {
        return Ok(databases);
    }
    let (groups, []) = words.as_chunks::<3>() else { return Err(ValueError::DatabaseWords) };
    for [number, property, value] in groups {
        let number = parse_database(number).ok_or(ValueError::DatabaseNumber)?;
        if property.eq_ignore_ascii_case(ENGINE.as_bytes()) {
            databases.set_engine(number, Engine::parse(value).ok_or(ValueError::DatabaseEngine)?);
        } else if property.eq_ignore_ascii_case(ORDERED.as_bytes()) {
            databases.set_ordered(number, parse_flag(value).ok_or(ValueError::DatabaseOrdered)?);
        } else if property.eq_ignore_ascii_case(POLICY.as_bytes()) {
            databases.set_policy(number, parse_policy(value)?);
        } else {
            return Err(ValueError::DatabaseWords);
        }
    }
    Ok(databases)
}

/// The policy that a word gives a database; `None` for the word that takes it away.
fn parse_policy(word: &[u8]) -> Result<Option<EvictionPolicy>, ValueError> {
    if word.eq_ignore_ascii_case(NO_POLICY.as_bytes()) {
        return Ok(None);
    }
    let known = |policy: &&EvictionPolicy| policy.word().as_bytes().eq_ignore_ascii_case(word);
    EvictionPolicy::ALL.iter().find(known).copied().map(Some).ok_or(ValueError::DatabasePolicy)
}

/// The number of a database that `database` can name.
fn parse_database(word: &[u8]) -> Option<u32> {
    let number = parse_integer(word).and_then(|number| u32::try_from(number).ok())?;
    (number < Databases::COUNT_MAX).then_some(number)
}

fn engine_line(number: u32, engine: Engine) -> String {
    format!("{number} {ENGINE} {}", engine.word())
}

fn ordered_line(number: u32, is_ordered: bool) -> String {
    format!("{number} {ORDERED} {}", if is_ordered { "yes" } else { "no" })
}

fn policy_line(number: u32, policy: Option<EvictionPolicy>) -> String {
    format!("{number} {POLICY} {}", policy.map_or(NO_POLICY, EvictionPolicy::word))
}

fn parse_end_flags(words: &[&[u8]]) -> Result<EndFlags, ValueError> {
    let mut flags = EndFlags::default();
    match words {
        [word] if word.eq_ignore_ascii_case(b"default") => Ok(flags),
        [] | [b""] => Err(ValueError::EndFlags),
        words => words.iter().all(|word| flags.add(word)).then_some(flags).ok_or(ValueError::EndFlags),
    }
}

fn parse_primary(words: &[&[u8]]) -> Result<Option<PrimaryAddress>, ValueError> {
    match words {
        [] | [b""] => Ok(None),
        [no, one]
            if [no, one].iter().zip(NO_PRIMARY).all(|(word, text)| word.eq_ignore_ascii_case(text.as_bytes())) =>
        {
            Ok(None)
        }
        [host, port] => {
            let host = std::str::from_utf8(host).ok().filter(|host| !host.is_empty());
            let port = std::str::from_utf8(port).ok().and_then(|port| port.parse().ok()).filter(|port| *port > 0);
            let (Some(host), Some(port)) = (host, port) else { return Err(ValueError::Primary) };
            Ok(Some(PrimaryAddress { host: host.to_owned(), port }))
        }
        _ => Err(ValueError::Primary),
    }
}

fn parse_percentiles(words: &[&[u8]]) -> Result<Vec<f64>, ValueError> {
    if let [b""] = words {
        return Ok(Vec::new());
    }
    if words.len() > PERCENTILES_MAX {
        return Err(ValueError::TooManyPercentiles);
    }
    let parse = |word: &&[u8]| {
        let number: f64 = std::str::from_utf8(word).ok()?.parse().ok()?;
        number.is_finite().then_some(number)
    };
    words
        .iter()
        .map(|word| match parse(word) {
            Some(number) if (0.0..=100.0).contains(&number) => Ok(number),
            Some(_) => Err(ValueError::PercentileRange),
            None => Err(ValueError::NotPercentile),
        })
        .collect()
}

/// Points of one line are added to those of earlier lines; an empty word removes all.
fn parse_save_points(before: &SavePoints, words: &[&[u8]]) -> Result<SavePoints, ValueError> {
    let mut points = if before.replaceable { Vec::new() } else { before.points.clone() };
    match words {
        [] | [[]] => points.clear(),
        _ => {
            for pair in words.chunks(2) {
                let [seconds, changes] = pair else { return Err(ValueError::SavePoints) };
                let number = |word: &[u8]| parse_integer(word).and_then(|number| u64::try_from(number).ok());
                let (Some(seconds @ 1..), Some(changes)) = (number(seconds), number(changes)) else {
                    return Err(ValueError::SavePoints);
                };
                points.push(SavePoint { seconds, changes });
            }
        }
    }
    if points.len() > SAVE_POINTS_MAX {
        return Err(ValueError::out_of_range(&"0", &SAVE_POINTS_MAX));
    }
    Ok(SavePoints { points, replaceable: false })
}

fn output_limit_line(class: &str, limit: OutputLimit) -> String {
    format!("{class} {} {} {}", format_size(limit.hard_bytes), format_size(limit.soft_bytes), limit.soft_seconds)
}

fn join(addresses: &[Address]) -> String {
    addresses.iter().map(Address::to_string).collect::<Vec<_>>().join(" ")
}

fn percentiles(numbers: &[f64]) -> String {
    numbers.iter().copied().map(format_percentile).collect::<Vec<_>>().join(" ")
}
