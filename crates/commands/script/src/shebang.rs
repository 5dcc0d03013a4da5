//! The first line of a script, `#!lua flags=no-writes`: what it may do.

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
}

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
            match name {
                b"no-writes" => flags.no_writes = true,
                b"allow-oom" => flags.allow_oom = true,
                // There are no replicas and no cluster here.
                b"allow-stale" | b"no-cluster" | b"allow-cross-slot-keys" => {}
                _ => return Err(Stop::error_with([b"ERR Unexpected flag in script shebang: ", name].concat())),
            }
        }
    }
    Ok((flags, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_from_the_first_line() {
        assert_eq!(read(b"return 1"), Ok((Flags::default(), 0)));
        let flags = Flags { is_declared: true, no_writes: true, allow_oom: true };
        assert_eq!(read(b"#!lua flags=no-writes,allow-oom\nreturn 1"), Ok((flags, 31)));
        for text in [&b"#!lua"[..], b"#!js\n", b"#!lua name=x\n", b"#!lua flags=bad\n"] {
            assert!(read(text).is_err());
        }
    }
}
