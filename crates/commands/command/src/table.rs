//! From the first word of a request to its row.
//!
//! Names of up to sixteen bytes, all common ones, are folded to lower case in one word and looked up in a small table
//! with one probe in nearly every case; the few longer ones go through a hash map.

use crate::spec::{Flags, KeyFlags, Locks, Runs, Spec};
use crate::{Args, Stop, absent, error};
use engine::WriteClass;
use std::collections::HashMap;

/// Slots of the fast table: four times the commands there will ever be, so that collisions are few.
const SLOT_COUNT: usize = 2048;

/// The most rows that a table may have, other dialects included: users keep a bit for each.
pub const COMMANDS_MAX: usize = 1024;

/// All commands of a server, each with an index for its statistics.
pub struct Table<R: 'static> {
    /// Open addressing by a multiplicative hash of the folded name.
    slots: Box<[Slot<R>; SLOT_COUNT]>,
    long: HashMap<Box<[u8]>, Row<R>>,
    /// Every row, containers and subcommands, by index, with full names. Rows of other dialects follow those of RESP.
    rows: Vec<(String, &'static Spec<R>)>,
    /// How many of them are of RESP.
    resp_count: usize,
    top: Vec<&'static Spec<R>>,
}

/// A place of the fast table.
struct Slot<R: 'static> {
    /// The folded name, which is never 0.
    name: u128,
    /// `None` where no command is.
    row: Option<Row<R>>,
}

/// A row found, with its statistics' index, and what every request asks of it at hand. Small, since each request in a
/// batch has its copy.
pub struct Row<R: 'static> {
    /// The row.
    pub spec: &'static Spec<R>,
    /// Index of this row's statistics; a container's subcommands follow it in order.
    pub index: u16,
    /// As in the row; 0, which no request has, for a container.
    arity: i8,
    /// Where its first key stands, if it locks its keys and the place does not depend on the arguments; otherwise 0.
    pub first_key: u8,
    /// Whether that is its only key.
    pub has_one_key: bool,
    /// What it may do to entries; nothing for EXEC, whose queue says it.
    pub writes: WriteClass,
    /// Whether its reply is a message about subscriptions, which is sent even if CLIENT REPLY wants no replies.
    pub confirms_subscriptions: bool,
}

const _: () = assert!(size_of::<Option<Row<()>>>() == 16);

impl<R> Clone for Row<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Row<R> {}

impl<R: Runs> Row<R> {
    pub(crate) fn new(spec: &'static Spec<R>, index: u16) -> Self {
        let first_key = match spec.locks {
            Locks::Keys => spec.first_key().and_then(|first| u8::try_from(first).ok()).unwrap_or(0),
            _ => 0,
        };
        let arity = if spec.run.subcommands().is_none() { spec.arity } else { 0 };
        let arity = i8::try_from(arity).expect("a command has few arguments of its own");
        // PFCOUNT stores what it has counted.
        let edits = spec.keys.iter().any(|key| key.flags.contains(KeyFlags::RW));
        let writes = match edits || spec.flags.contains(Flags::WRITE) {
            false => WriteClass::Nothing,
            true if spec.flags.contains(Flags::FREES) => WriteClass::Frees,
            true => WriteClass::Any,
        };
        let confirms_subscriptions = spec.flags.contains(Flags::PUBSUB.union(Flags::NOSCRIPT));
        // MOVE may have to wait for the database that it writes to.
        let has_one_key = first_key > 0 && spec.has_one_key() && spec.name != "move";
        Self { spec, index, arity, first_key, has_one_key, writes, confirms_subscriptions }
    }

    /// Whether a request of `count` arguments can run. Of a container none can.
    #[inline]
    fn accepts(&self, count: usize) -> bool {
        let arity = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { count >= arity } else { count == arity }
    }
}

impl<R: Runs> Table<R> {
    /// A table of these commands.
    ///
    /// # Panics
    /// When two rows have one name.
    pub fn new(families: &[&[&'static Spec<R>]]) -> Self {
        let mut table = Self {
            slots: Box::new([const { Slot { name: 0, row: None } }; SLOT_COUNT]),
            long: HashMap::new(),
            rows: Vec::new(),
            resp_count: 0,
            top: families.concat(),
        };
        for spec in table.top.clone() {
            let index = u16::try_from(table.rows.len()).expect("fewer than 2^16 commands");
            table.rows.push((spec.name.to_owned(), spec));
            if let Some(rows) = spec.run.subcommands() {
                table.rows.extend(rows.iter().map(|row| (format!("{}|{}", spec.name, row.name), *row)));
            }
            table.insert(spec, index);
        }
        table.resp_count = table.rows.len();
        assert!(table.rows.len() <= COMMANDS_MAX, "more than {COMMANDS_MAX} commands");
        table
    }

    /// Adds the commands of another dialect. They have statistics, under `dialect|name`, but RESP clients cannot call
    /// them. Commands of one name share theirs. Gives their rows, in order.
    ///
    /// # Panics
    /// When there are more than 2^16 rows.
    pub fn add_dialect(&mut self, dialect: &str, specs: &[&'static Spec<R>]) -> Vec<Row<R>> {
        let add = |spec: &&'static Spec<R>| {
            let name = format!("{dialect}|{}", spec.name);
            let place = self.rows.iter().position(|(taken, _)| *taken == name).unwrap_or_else(|| {
                self.rows.push((name, *spec));
                assert!(self.rows.len() <= COMMANDS_MAX, "more than {COMMANDS_MAX} commands");
                self.rows.len().wrapping_sub(1)
            });
            Row::new(spec, u16::try_from(place).expect("fewer than 2^16 commands"))
        };
        specs.iter().map(add).collect()
    }

    fn insert(&mut self, spec: &'static Spec<R>, index: u16) {
        assert!(self.find(spec.name.as_bytes()).is_none(), "two commands named {}", spec.name);
        match fold(spec.name.as_bytes()) {
            None => {
                self.long.insert(spec.name.as_bytes().into(), Row::new(spec, index));
            }
            Some(name) => {
                let mut slot = slot_of(name);
                while self.slots.get(slot).is_some_and(|taken| taken.row.is_some()) {
                    slot = slot.wrapping_add(1) % SLOT_COUNT;
                }
                if let Some(free) = self.slots.get_mut(slot) {
                    *free = Slot { name, row: Some(Row::new(spec, index)) };
                }
            }
        }
    }

    /// The command of this name, in any case.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&Row<R>> {
        let Some(folded) = fold(name) else {
            return self.long.get(name.to_ascii_lowercase().as_slice());
        };
        let mut slot = slot_of(folded);
        while let Some(Slot { name, row: Some(row) }) = self.slots.get(slot) {
            if *name == folded {
                return Some(row);
            }
            slot = slot.wrapping_add(1) % SLOT_COUNT;
        }
        None
    }

    /// The row a request asks for; `None` when [`resolve`](Self::resolve) can say what is wrong with it.
    #[inline]
    pub fn lookup(&self, args: &Args<'_>) -> Option<Row<R>> {
        let row = self.find(&args[0])?;
        if row.accepts(args.len()) { Some(*row) } else { self.lookup_subcommand(args) }
    }

    #[cold]
    fn lookup_subcommand(&self, args: &Args<'_>) -> Option<Row<R>> {
        self.resolve(args).ok()
    }

    /// The row a request asks for, a subcommand's where there is one, with the number of its arguments checked. A
    /// container whose arity lets it stand alone (COMMAND) is then its first subcommand.
    ///
    /// # Errors
    /// No such command or subcommand, one that is absent here ([`absent`]), or a wrong number of arguments.
    pub fn resolve(&self, args: &Args<'_>) -> Result<Row<R>, Stop> {
        let Some(&row) = self.find(&args[0]) else { return Err(unknown_command(args)) };
        match row.spec.run.subcommands() {
            None if row.spec.accepts(args.len()) => Ok(row),
            None => Err(error::wrong_arity(row.spec.name)),
            Some(rows) => resolve_subcommand(row, rows, args),
        }
    }

    /// The row a request names, whatever the number of its arguments: for requests that are refused.
    #[cold]
    pub fn named(&self, args: &Args<'_>) -> Option<Row<R>> {
        let row = *self.find(&args[0])?;
        match (row.spec.run.subcommands(), args.bytes(1)) {
            (Some(rows), Some(word)) => find_subcommand(row, rows, word),
            _ => Some(row),
        }
    }

    /// The row of this full name (`get`, `config|get`), in any case.
    pub fn find_full(&self, name: &[u8]) -> Option<Row<R>> {
        let mut words = name.splitn(2, |byte| *byte == b'|');
        let row = *self.find(words.next()?)?;
        match (words.next(), row.spec.run.subcommands()) {
            (None, _) => Some(row),
            (Some(word), Some(rows)) => find_subcommand(row, rows, word),
            (Some(_), None) => None,
        }
    }

    /// The row of a command with its index. Looks at all commands: for requests of restricted users.
    #[cold]
    pub fn row_of(&self, spec: &'static Spec<R>) -> Option<Row<R>> {
        let index = self.rows.iter().position(|(_, known)| std::ptr::eq(*known, spec))?;
        Some(Row::new(spec, u16::try_from(index).ok()?))
    }

    /// Top-level commands.
    pub fn commands(&self) -> &[&'static Spec<R>] {
        &self.top
    }

    /// Full name (`config|get`) and row by statistics index, containers and the commands of other dialects included.
    pub fn rows(&self) -> &[(String, &'static Spec<R>)] {
        &self.rows
    }

    /// [`Self::rows`] without the commands of other dialects.
    pub fn resp_rows(&self) -> &[(String, &'static Spec<R>)] {
        self.rows.get(..self.resp_count).unwrap_or_default()
    }
}

#[cold]
fn resolve_subcommand<R: Runs>(row: Row<R>, rows: &[&'static Spec<R>], args: &Args<'_>) -> Result<Row<R>, Stop> {
    let Some(word) = args.bytes(1) else {
        return match rows.first() {
            Some(first) if row.spec.arity == -1 => Ok(Row::new(first, row.index.saturating_add(1))),
            _ => Err(error::wrong_arity(row.spec.name)),
        };
    };
    let Some(found) = find_subcommand(row, rows, word) else {
        if let Some(text) = absent::refusal(&[row.spec.name.as_bytes(), b"|", word].concat()) {
            return Err(Stop::error_with(text));
        }
        let container = row.spec.name.to_ascii_uppercase();
        let after = format!("'. Try {container} HELP.");
        return Err(error::repeating("ERR unknown subcommand '", shown(word, SHOWN_BYTES_MAX), &after));
    };
    if !found.spec.accepts(args.len()) {
        return Err(error::wrong_arity(&format!("{}|{}", row.spec.name, found.spec.name)));
    }
    Ok(found)
}

/// The subcommand of this name, in any case.
#[cold]
fn find_subcommand<R: Runs>(container: Row<R>, rows: &[&'static Spec<R>], word: &[u8]) -> Option<Row<R>> {
    let place = rows.iter().position(|sub| word.eq_ignore_ascii_case(sub.name.as_bytes()))?;
    let index = container.index.saturating_add(1).saturating_add(u16::try_from(place).ok()?);
    Some(Row::new(rows.get(place)?, index))
}

/// Of what a client sent, error texts repeat at most this much.
const SHOWN_BYTES_MAX: usize = 128;

fn shown(bytes: &[u8], bytes_max: usize) -> &[u8] {
    error::up_to_zero(bytes.get(..bytes_max).unwrap_or(bytes))
}

/// Says that a command is absent, if it is known; else shows the name and as many arguments as fit, each and all cut at
/// [`SHOWN_BYTES_MAX`].
#[cold]
fn unknown_command(args: &Args<'_>) -> Stop {
    if let Some(text) = absent::refusal(&args[0]) {
        return Stop::error_with(text);
    }
    let mut beginning = Vec::new();
    for arg in args.from(1) {
        let room = SHOWN_BYTES_MAX.saturating_sub(beginning.len());
        if room == 0 {
            break;
        }
        beginning.extend([b"'", shown(arg, room), b"' "].concat());
    }
    let name = shown(&args[0], SHOWN_BYTES_MAX);
    Stop::error_with([b"ERR unknown command '", name, b"', with args beginning with: ", &beginning].concat())
}

/// Up to sixteen bytes in lower case in one word; `None` when longer, and when the name ends with a zero byte, as no
/// command's does: so distinct names stay distinct.
#[inline]
fn fold(name: &[u8]) -> Option<u128> {
    let (low, high) = match name.len() {
        ..=8 => (word(name), 0),
        9..=16 => (word(name.get(..8)?), word(name.get(8..)?)),
        _ => return None,
    };
    (name.last() != Some(&0)).then(|| u128::from(lower(low)) | u128::from(lower(high)) << 64)
}

/// Up to eight bytes as a little-endian word, padded with zeros. Two overlapping loads instead of a loop; of the
/// shorter names, nearly all have three bytes.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let shift = bytes.len().wrapping_sub(4).wrapping_mul(8);
        return u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << shift;
    }
    match *bytes {
        [first, second, third] => u64::from(u32::from_le_bytes([first, second, third, 0])),
        _ => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// The word with ASCII letters in lower case, eight at a time; no carry crosses a byte.
#[inline]
fn lower(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOP: u64 = ONES << 7;
    let seven = word & !TOP;
    // The top bit of a byte shows whether it is at least `A` (0x41), and whether it is above `Z` (0x5A).
    let from_a = seven.wrapping_add(ONES.wrapping_mul(0x3F));
    let above_z = seven.wrapping_add(ONES.wrapping_mul(0x25));
    word | ((from_a ^ above_z) & !word & TOP) >> 2
}

#[inline]
fn slot_of(name: u128) -> usize {
    let mixed = (name as u64 ^ ((name >> 64) as u64).rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 53) as usize
}

const _: () = assert!(SLOT_COUNT == 1 << (64 - 53));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommandTable;

    /// They write, and are not refused for want of memory either.
    #[test]
    fn commands_that_free_are_writes_without_need_of_memory() {
        let table = CommandTable::new(crate::redis::FAMILIES);
        let freeing: Vec<_> = table.rows().iter().filter(|(_, spec)| spec.flags.contains(Flags::FREES)).collect();
        // FLUSHDB and FLUSHALL are another crate's.
        assert_eq!(freeing.len(), 22);
        for (name, spec) in freeing {
            let row = table.find(name.as_bytes()).unwrap_or_else(|| panic!("{name} is no command"));
            assert_eq!(row.writes, WriteClass::Frees, "{name}");
            assert!(spec.flags.contains(Flags::WRITE) && !spec.flags.contains(Flags::DENYOOM), "{name}");
        }
    }

    /// Folding in words agrees with folding byte by byte, for names of every length and bytes at all borders of
    /// letters.
    #[test]
    fn folding_agrees_with_the_plain_way() {
        let mut rng = base::Rng::new(5);
        for length in 0..=17 {
            for _ in 0..500 {
                let bytes = b"@AMZ[`amz{\0\x7F\x80\xC1\xDA\xFF09|-";
                let name: Vec<u8> = (0..length).map(|_| bytes[rng.below(bytes.len() as u64) as usize]).collect();
                let mut plain = [0; 16];
                let plain = (length <= 16 && name.last() != Some(&0)).then(|| {
                    plain.iter_mut().zip(&name).for_each(|(to, from)| *to = from.to_ascii_lowercase());
                    u128::from_le_bytes(plain)
                });
                assert_eq!(fold(&name), plain, "{name:?}");
            }
        }
    }
}
