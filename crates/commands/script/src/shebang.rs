//! The first line of a script, `#!lua flags=no-writes`: what it may do.

use command::Flags as RowFlags;
use command::Stop;

/// What a script's first line says of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// There is such a line. Without one, a script may do what its commands may.
    pub is_declared: bool,
    /// It changes nothing.
    pub no_writes: bool,
    /// It runs over the memory budget too.
    pub allow_oom: bool,
    /// It runs on a replica whose link to the primary is down, where that serves no data.
    pub allow_stale: bool,
    /// It does not run in a cluster. There is none here.
    pub no_cluster: bool,
    /// In a cluster, it uses keys of several slots.
    pub allow_cross_slot_keys: bool,
}

impl Flags {
    /// Those of a function without flags: it may not do what only a flag allows.
    pub fn of_functions() -> Self {
        Self { is_declared: true, ..Self::default() }
    }

    /// Sets the flag of this name, in any case of letters. False if there is none.
    pub fn set(&mut self, name: &[u8]) -> bool {
        let Some((_, bit)) = NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes())) else {
            return false;
        };
        *bit(self) = true;
        true
    }

    /// What a request may do that runs this, whose row has the flags `row`: what is declared replaces those.
    pub fn of_request(self, row: RowFlags) -> RowFlags {
        if !self.is_declared {
            return row;
        }
        let mut flags = row - (RowFlags::STALE | RowFlags::DENYOOM | RowFlags::WRITE | RowFlags::MAY_REPLICATE);
        flags.set(RowFlags::STALE, self.allow_stale);
        flags.set(RowFlags::DENYOOM, !self.allow_oom && !self.no_writes);
        flags.set(RowFlags::WRITE, !self.no_writes);
        flags
    }

    /// The names of the flags that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().filter(move |(_, bit)| *bit(&mut { self })).map(|(name, _)| *name)
    }
}

type Bit = fn(&mut Flags) -> &mut bool;

/// The flags by name, in the order in which FUNCTION LIST names them.
const NAMES: [(&str, Bit); 5] = [
    ("no-writes", |flags| &mut flags.no_writes),
    ("allow-oom", |flags| &mut flags.allow_oom),
    ("allow-stale", |flags| &mut flags.allow_stale),
    ("no-cluster", |flags| &mut flags.no_cluster),
    ("allow-cross-slot-keys", |flags| &mut flags.allow_cross_slot_keys),
];

/// The flags, and how long the line is: the rest, with the line end, is the script.
///
/// # Errors
/// A line that is no such.
pub fn read(text: &[u8]) -> Result<(Flags, usize), Stop> {
    if !text.starts_with(b"#!") {
        return Ok((Flags::default(), 0));
    }
    let Some(len) = text.iter().position(|byte| *byte == b'\n') else {
        return Err(Stop::error("ERR Invalid script shebang"));
    };
    let mut words = text[..len].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let engine = words.next().unwrap_or_default();
    if engine != b"#!lua" {
        let name = engine.strip_prefix(b"#!").unwrap_or(engine);
        return Err(Stop::error_with([b"ERR Could not find scripting engine '", name, b"'"].concat()));
    }
    let mut flags = Flags { is_declared: true, ..Flags::default() };
    for word in words {
        let Some(names) = word.strip_prefix(b"flags=") else {
            return Err(Stop::error_with([b"ERR Unknown lua shebang option: ", word].concat()));
        };
        for name in names.split(|byte| *byte == b',') {
            if !flags.set(name) {
                return Err(Stop::error_with([b"ERR Unexpected flag in script shebang: ", name].concat()));
            }
        }
    }
    Ok((flags, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_flags_replace_those_of_the_row() {
        let row = RowFlags::NOSCRIPT | RowFlags::STALE | RowFlags::MAY_REPLICATE;
        assert_eq!(Flags::default().of_request(row), row);
        let writes = RowFlags::NOSCRIPT | RowFlags::WRITE;
        assert_eq!(Flags::of_functions().of_request(row), writes | RowFlags::DENYOOM);
        assert_eq!(Flags { allow_oom: true, ..Flags::of_functions() }.of_request(row), writes);
        let reads = Flags { no_writes: true, allow_stale: true, ..Flags::of_functions() };
        assert_eq!(reads.of_request(row), RowFlags::NOSCRIPT | RowFlags::STALE);
    }

    #[test]
    fn flags_are_read_from_the_first_line() {
        assert_eq!(read(b"return 1"), Ok((Flags::default(), 0)));
        let flags = Flags { no_writes: true, allow_oom: true, ..Flags::of_functions() };
        assert_eq!(read(b"#!lua flags=no-writes,allow-oom\nreturn 1"), Ok((flags, 31)));
        for text in [&b"#!lua"[..], b"#!js\n", b"#!lua name=x\n", b"#!lua flags=bad\n"] {
            assert!(read(text).is_err());
        }
    }
}
