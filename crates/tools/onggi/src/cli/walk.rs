//! Modes that walk all keys: `--scan`, `--bigkeys`, `--memkeys` and `--hotkeys`, with the output of redis-cli.
//!
//! Memory is bounded by a page of SCAN: a key is asked about when it is met, and only the largest are kept.

use super::reply::{Form, quoted};
use super::session::Session;
use proto::reply::Value;
use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

/// Hot keys that are shown.
const HOT_MAX: usize = 16;

/// Pages between two pauses of `-i`.
const PAGES_UNPAUSED: u32 = 100;

/// What is done with the keys of a page.
type Each<'e> = &'e mut dyn FnMut(&mut Session, Vec<Vec<u8>>) -> Result<(), Box<dyn Error>>;

/// The walk over the keys.
pub struct Walk {
    /// MATCH of SCAN.
    pub pattern: Option<String>,
    /// TYPE of SCAN.
    pub of_type: Option<String>,
    /// COUNT of SCAN.
    pub count: u64,
    /// The pause after each [`PAGES_UNPAUSED`] pages.
    pub interval: Duration,
}

impl Walk {
    /// Passes each page of keys.
    fn pages(&self, session: &mut Session, each: Each<'_>) -> Result<(), Box<dyn Error>> {
        let (mut cursor, mut pages) = (b"0".to_vec(), 0);
        let count = self.count.to_string().into_bytes();
        loop {
            let mut command = vec![b"SCAN".to_vec(), cursor, b"COUNT".to_vec(), count.clone()];
            for (word, value) in [("MATCH", &self.pattern), ("TYPE", &self.of_type)] {
                command.extend(value.iter().flat_map(|value| [word.into(), value.clone().into_bytes()]));
            }
            let reply = good(session.ask(&command)?)?;
            let (next, keys) = match reply {
                Value::Array(parts) => match <[Value; 2]>::try_from(parts) {
                    Ok([next, Value::Array(keys)]) => (next.as_bytes().unwrap_or_default().to_vec(), keys),
                    _ => return Err("SCAN answered something else than a cursor and keys".into()),
                },
                _ => return Err("SCAN answered something else than a cursor and keys".into()),
            };
            each(session, keys.iter().filter_map(Value::as_bytes).map(<[u8]>::to_vec).collect())?;
            if next == b"0" {
                return Ok(());
            }
            cursor = next;
            pages += 1;
            if pages % PAGES_UNPAUSED == 0 {
                std::thread::sleep(self.interval);
            }
        }
    }
}

/// An error reply.
#[derive(Debug)]
pub struct Refused(String);

impl Error for Refused {}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server answers: {}", self.0)
    }
}

/// A reply that is no error.
pub fn good(reply: Value) -> Result<Value, Box<dyn Error>> {
    match reply.as_error() {
        Some(text) => Err(Refused(String::from_utf8_lossy(text).into_owned()).into()),
        None => Ok(reply),
    }
}

/// An integer of a reply.
fn number(reply: Value) -> Result<u64, Box<dyn Error>> {
    match good(reply)? {
        Value::Integer(number) => Ok(u64::try_from(number).unwrap_or_default()),
        // A key that is gone has no size.
        reply if reply.is_null() => Ok(0),
        other => Err(format!("expected an integer: {other:?}").into()),
    }
}

/// `--scan`: prints each key.
pub fn scan(session: &mut Session, walk: &Walk, form: Form) -> Result<(), Box<dyn Error>> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    walk.pages(session, &mut |_, keys| {
        for key in keys {
            match form {
                Form::People => out.write_all(&quoted(&key))?,
                Form::Json => out.write_all(serde_json::json!(String::from_utf8_lossy(&key)).to_string().as_bytes())?,
                Form::Plain | Form::Text | Form::Csv => out.write_all(&key)?,
            }
            out.write_all(b"\n")?;
        }
        Ok(out.flush()?)
    })
}

/// What the sizes of keys are measured in.
#[derive(Clone, Copy)]
pub enum Measure {
    /// Elements, or bytes of a string.
    Elements,
    /// MEMORY USAGE with this many samples, or the server's number.
    Memory(Option<u64>),
}

/// What is known of a type.
struct Kind {
    name: String,
    /// The command that counts its elements, and what they are.
    size: Option<(&'static str, &'static str)>,
    keys: u64,
    total: u64,
    biggest: Option<(Vec<u8>, u64)>,
}

/// Types, their commands and units, in the order of redis-cli.
const KINDS: [(&str, &str, &str); 6] = [
    ("string", "STRLEN", "bytes"),
    ("list", "LLEN", "items"),
    ("set", "SCARD", "members"),
    ("hash", "HLEN", "fields"),
    ("zset", "ZCARD", "members"),
    ("stream", "XLEN", "entries"),
];

/// `--bigkeys` and `--memkeys`: the biggest key of each type, and sums.
pub fn biggest(session: &mut Session, walk: &Walk, measure: Measure) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    writeln!(out, "\n# Scanning the entire keyspace to find biggest keys as well as")?;
    head(&mut out)?;
    let mut kinds: Vec<Kind> =
        KINDS.iter().map(|(name, command, unit)| Kind::new((*name).to_owned(), Some((command, unit)))).collect();
    let total = number(session.ask(&[b"DBSIZE".to_vec()])?)?;
    let (mut sampled, mut length) = (0, 0);
    walk.pages(session, &mut |session, keys| {
        let types = session.ask_all(&keys.iter().map(|key| vec![b"TYPE".to_vec(), key.clone()]).collect::<Vec<_>>())?;
        let mut asked = Vec::new();
        for (key, reply) in keys.iter().zip(types) {
            let name = String::from_utf8_lossy(good(reply)?.as_bytes().unwrap_or_default()).into_owned();
            // It is gone since SCAN named it.
            if name == "none" {
                continue;
            }
            let at = kinds.iter().position(|kind| kind.name == name).unwrap_or_else(|| {
                kinds.push(Kind::new(name, None));
                kinds.len() - 1
            });
            let command = match (measure, kinds.get(at).and_then(|kind| kind.size)) {
                (Measure::Elements, Some((command, _))) => Some(vec![command.into(), key.clone()]),
                (Measure::Elements, None) => None,
                (Measure::Memory(samples), _) => {
                    let mut command = vec![b"MEMORY".to_vec(), b"USAGE".to_vec(), key.clone()];
                    command.extend(samples.iter().flat_map(|n| [b"SAMPLES".to_vec(), n.to_string().into_bytes()]));
                    Some(command)
                }
            };
            asked.push((key, at, command));
        }
        let commands: Vec<_> = asked.iter().filter_map(|(_, _, command)| command.clone()).collect();
        let mut sizes = session.ask_all(&commands)?.into_iter();
        for (key, at, command) in asked {
            let size = match command {
                Some(_) => number(sizes.next().unwrap_or(Value::Null))?,
                None => 0,
            };
            sampled += 1;
            length += key.len() as u64;
            let done = share(sampled, total);
            let Some(kind) = kinds.get_mut(at) else { continue };
            if kind.take(key, size) {
                let (name, unit) = (&kind.name, kind.unit(measure));
                write!(out, "[{done:05.2}%] Biggest {name:<6} found so far '")?;
                out.write_all(&quoted(key))?;
                writeln!(out, "' with {size} {unit}")?;
            }
            if sampled % 1_000_000 == 0 {
                writeln!(out, "[{done:05.2}%] Sampled {sampled} keys so far")?;
            }
        }
        Ok(())
    })?;
    let mean = |total: u64, of: u64| if of == 0 { 0.0 } else { total as f64 / of as f64 };
    writeln!(out, "\n-------- summary -------\n\nSampled {sampled} keys in the keyspace!")?;
    writeln!(out, "Total key length in bytes is {length} (avg len {:.2})\n", mean(length, sampled))?;
    for kind in &kinds {
        if let Some((key, size)) = &kind.biggest {
            write!(out, "Biggest {:>6} found '", kind.name)?;
            out.write_all(&quoted(key))?;
            writeln!(out, "' has {size} {}", kind.unit(measure))?;
        }
    }
    writeln!(out)?;
    for kind in &kinds {
        let Kind { name, keys, total, .. } = kind;
        let (of_all, mean) = (100.0 * mean(*keys, sampled), mean(*total, *keys));
        let unit = kind.unit(measure);
        writeln!(out, "{keys} {name}s with {total} {unit} ({of_all:05.2}% of keys, avg size {mean:.2})")?;
    }
    Ok(())
}

impl Kind {
    fn new(name: String, size: Option<(&'static str, &'static str)>) -> Self {
        Self { name, size, keys: 0, total: 0, biggest: None }
    }

    /// Counts a key; true if it is the biggest so far.
    fn take(&mut self, key: &[u8], size: u64) -> bool {
        self.keys += 1;
        self.total += size;
        let is_biggest = self.biggest.as_ref().is_none_or(|(_, biggest)| size > *biggest);
        if is_biggest {
            self.biggest = Some((key.to_vec(), size));
        }
        is_biggest
    }

    fn unit(&self, measure: Measure) -> &'static str {
        match (measure, self.size) {
            (Measure::Memory(_), _) => "bytes",
            (Measure::Elements, Some((_, unit))) => unit,
            (Measure::Elements, None) => "?",
        }
    }
}

fn head(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "# average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec")?;
    writeln!(out, "# per 100 SCAN commands (not usually needed).\n")
}

/// Per cent of the keys. There may be more now than at the start.
fn share(sampled: u64, total: u64) -> f64 {
    if total == 0 { 100.0 } else { (100.0 * sampled as f64 / total as f64).min(100.0) }
}

/// `--hotkeys`: the keys with the largest counters of OBJECT FREQ.
pub fn hottest(session: &mut Session, walk: &Walk) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    writeln!(out, "\n# Scanning the entire keyspace to find hot keys as well as")?;
    head(&mut out)?;
    let total = number(session.ask(&[b"DBSIZE".to_vec()])?)?;
    let (mut sampled, mut hot) = (0, Vec::<(u64, Vec<u8>)>::new());
    walk.pages(session, &mut |session, keys| {
        let asked = |key: &Vec<u8>| vec![b"OBJECT".to_vec(), b"FREQ".to_vec(), key.clone()];
        for (key, reply) in keys.iter().zip(session.ask_all(&keys.iter().map(asked).collect::<Vec<_>>())?) {
            sampled += 1;
            // A key that is gone is no fault.
            let is_gone = reply.as_error().is_some_and(|text| text.starts_with(b"ERR no such key"));
            let uses = if is_gone { 0 } else { number(reply)? };
            let coldest = hot.iter().map(|(uses, _)| *uses).min();
            if uses == 0 || hot.len() == HOT_MAX && coldest.is_some_and(|coldest| uses <= coldest) {
                continue;
            }
            hot.push((uses, key.clone()));
            hot.sort_by(|one, other| other.cmp(one));
            hot.truncate(HOT_MAX);
            write!(out, "[{:05.2}%] Hot key '", share(sampled, total))?;
            out.write_all(&quoted(key))?;
            writeln!(out, "' found so far with counter {uses}")?;
        }
        Ok(())
    })?;
    writeln!(out, "\n-------- summary -------\n\nSampled {sampled} keys in the keyspace!")?;
    for (uses, key) in hot {
        write!(out, "hot key found with counter: {uses}\tkeyname: ")?;
        out.write_all(&quoted(&key))?;
        writeln!(out)?;
    }
    Ok(())
}
