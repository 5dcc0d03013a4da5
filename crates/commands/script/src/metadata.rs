//! The first line of a library, `#!lua name=NAME`.

use command::Stop;

/// What the first line of a library says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The name of the library: letters, digits and underscores.
    pub name: Vec<u8>,
    /// Length of the line without its end: the rest is the code.
    pub len: usize,
}

/// Reads the first line.
///
/// # Errors
/// It is none, or names no library or another engine.
pub fn read(text: &[u8]) -> Result<Metadata, Stop> {
    if !text.starts_with(b"#!") {
        return Err(Stop::error("ERR Missing library metadata"));
    }
    const INVALID: Stop = Stop::error("ERR Invalid library metadata");
    let Some(len) = text.iter().position(|byte| matches!(byte, b'\n' | 0)).filter(|at| text[*at] == b'\n') else {
        return Err(INVALID);
    };
    let words = split_words(&text[..len]).ok_or(INVALID)?;
    let mut words = words.iter();
    let engine = words.next().map_or(&b""[..], Vec::as_slice);
    let mut name = None;
    for word in words {
        match word.split_at_checked(5) {
            Some((key, _)) if key.eq_ignore_ascii_case(b"name=") && name.is_some() => {
                return Err(Stop::error("ERR Invalid metadata value, name argument was given multiple times"));
            }
            Some((key, value)) if key.eq_ignore_ascii_case(b"name=") => name = Some(value.to_vec()),
            _ => return Err(Stop::error_with([b"ERR Invalid metadata value given: ", &word[..]].concat())),
        }
    }
    let Some(name) = name else { return Err(Stop::error("ERR Library name was not given")) };
    if !is_name(&name) {
        return Err(Stop::error(
            "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character \
             long",
        ));
    }
    let engine = engine.strip_prefix(b"#!").unwrap_or(engine);
    if !engine.eq_ignore_ascii_case(b"lua") {
        return Err(Stop::error_with([b"ERR Engine '", engine, b"' not found"].concat()));
    }
    Ok(Metadata { name, len })
}

/// Whether a library or a function may have this name.
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Splits a line into words, which may be quoted. `None` when a quote is not closed, or text follows one.
fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut words, mut at) = (Vec::new(), 0);
    loop {
        at += line[at..].iter().take_while(|byte| is_space(**byte)).count();
        if at == line.len() {
            return Some(words);
        }
        let mut word = Vec::new();
        while let Some(byte) = line.get(at).copied().filter(|byte| !is_space(*byte)) {
            match byte {
                b'"' | b'\'' => at = take_quoted(line, at, &mut word)?,
                byte => {
                    word.push(byte);
                    at += 1;
                }
            }
        }
        words.push(word);
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | 11 | 12)
}

/// Appends what is between the quote at `start` and its end, and returns where the line continues.
fn take_quoted(line: &[u8], start: usize, word: &mut Vec<u8>) -> Option<usize> {
    let quote = line[start];
    let mut at = start + 1;
    loop {
        let byte = *line.get(at)?;
        at += 1;
        if byte == quote {
            let is_end = line.get(at).is_none_or(|next| is_space(*next));
            return is_end.then_some(at);
        }
        if byte != b'\\' {
            word.push(byte);
            continue;
        }
        let next = *line.get(at)?;
        if quote == b'\'' {
            if next == b'\'' {
                at += 1;
            }
            word.push(if next == b'\'' { next } else { byte });
            continue;
        }
        if let Some(digits) = line.get(at + 1..at + 3).filter(|_| next == b'x')
            && let Some(code) = hexadecimal(digits)
        {
            word.push(code);
            at += 3;
            continue;
        }
        at += 1;
        word.push(match next {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'a' => 7,
            other => other,
        });
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    digits.iter().try_fold(0u8, |code, digit| Some(code << 4 | char::from(*digit).to_digit(16)? as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(result: Result<Metadata, Stop>) -> String {
        match result {
            Ok(Metadata { name, len }) => format!("{} {len}", String::from_utf8_lossy(&name)),
            Err(Stop::Error(text)) => String::from_utf8_lossy(text.as_bytes()).into_owned(),
            Err(stop) => panic!("{stop:?}"),
        }
    }

    /// As Valkey 9.1 reads them.
    #[test]
    fn the_first_line_names_the_library() {
        const NAMES: &str = "ERR Library names can only contain letters, numbers, or underscores(_) and must be at \
                             least one character long";
        for (line, expected) in [
            ("", "ERR Missing library metadata"),
            ("x", "ERR Missing library metadata"),
            ("#!lua", "ERR Invalid library metadata"),
            ("#!lua name=a\0b\nx", "ERR Invalid library metadata"),
            ("#!lua name=\"q\nx", "ERR Invalid library metadata"),
            ("#!lua name='q'x\nx", "ERR Invalid library metadata"),
            ("#!lua\n", "ERR Library name was not given"),
            ("#!\nx", "ERR Library name was not given"),
            ("#!lua name=\nx", NAMES),
            ("#!lua name=a-b\nx", NAMES),
            ("#!js name=a-b\nx", NAMES),
            ("#!lua name=a b\nx", "ERR Invalid metadata value given: b"),
            ("#!lua name\nx", "ERR Invalid metadata value given: name"),
            ("#!lua foo=1 name=a\nx", "ERR Invalid metadata value given: foo=1"),
            ("#!lua name=a name=b\nx", "ERR Invalid metadata value, name argument was given multiple times"),
            ("#!js name=a\nx", "ERR Engine 'js' not found"),
            ("#! name=a\nx", "ERR Engine '' not found"),
            ("#!LUA NAME=Up_1\nx", "Up_1 15"),
            ("#!lua  name='q' \r\nx", "q 17"),
            ("#!lua name=\"\\x71\"\nx", "q 17"),
        ] {
            assert_eq!(text(read(line.as_bytes())), expected, "{line:?}");
        }
    }
}
