//! The manifest of an append-only log in several files, which Redis since 7.0 and Valkey keep.
//!
//! ```text
//! file appendonly.aof.2.base.rdb seq 2 type b
//! file appendonly.aof.3.incr.aof seq 3 type i
//! ```
//!
//! One base file at most, then increments in ascending order; files of type `h` are history that waits to be removed.

use crate::error::MigrateError;
use std::path::{Path, PathBuf};

/// The files that it names, in the order in which a server loads them.
pub(super) fn parse(path: &Path, text: &str) -> Result<Vec<PathBuf>, MigrateError> {
    let (mut base, mut increments, mut newest) = (None, Vec::new(), 0);
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with('#')) {
        let refuse = |expected| MigrateError::AppendOnlyManifest { path: path.to_owned(), line: number, expected };
        let File { name, sequence, kind } =
            parse_line(line).ok_or_else(|| refuse("`file NAME seq NUMBER type b|i|h`"))?;
        if name.is_empty() || name.contains('/') {
            return Err(refuse("the name of a file next to the manifest"));
        }
        let file = path.with_file_name(&name);
        match kind.as_str() {
            "h" => {}
            "b" if base.is_none() => base = Some(file),
            "b" => return Err(refuse("one base file")),
            "i" if sequence > newest => {
                newest = sequence;
                increments.push(file);
            }
            "i" => return Err(refuse("increments in ascending order")),
            _ => return Err(refuse("a file of type b, i or h")),
        }
    }
    Ok(base.into_iter().chain(increments).collect())
}

/// What a line says.
struct File {
    name: String,
    sequence: u64,
    kind: String,
}

/// Pairs of a name and what it says; those that are not known are passed over, as servers do.
fn parse_line(line: &str) -> Option<File> {
    let words = words(line)?;
    let value = |name: &str| words.chunks_exact(2).find(|pair| pair.first().is_some_and(|word| word == name))?.get(1);
    if words.len() % 2 != 0 {
        return None;
    }
    Some(File { name: value("file")?.clone(), sequence: value("seq")?.parse().ok()?, kind: value("type")?.clone() })
}

/// The words of a line; one with blanks stands in quotes, with a backslash before a quote or a backslash.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut rest) = (Vec::new(), line.chars().peekable());
    while rest.next_if(|letter| letter.is_whitespace()).is_some() || rest.peek().is_some() {
        let mut word = String::new();
        match rest.next_if_eq(&'"') {
            Some(_) => loop {
                match rest.next()? {
                    '"' => break,
                    '\\' => word.push(rest.next()?),
                    letter => word.push(letter),
                }
            },
            None => {
                while let Some(letter) = rest.next_if(|letter| !letter.is_whitespace()) {
                    word.push(letter);
                }
                if word.is_empty() {
                    continue;
                }
            }
        }
        words.push(word);
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(text: &str) -> Result<Vec<String>, String> {
        let found = parse(Path::new("/x/a.manifest"), text).map_err(|error| error.to_string())?;
        Ok(found.iter().map(|path| path.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn the_base_comes_first_and_history_not_at_all() {
        let text = "# made by hand\nfile a.3.incr.aof seq 3 type i startoffset 7\nfile a.1.base.rdb seq 1 type h\n\
                    file \"a b\\\".2.base.rdb\" seq 2 type b\nfile a.4.incr.aof seq 4 type i\n";
        assert_eq!(files(text).unwrap(), ["/x/a b\".2.base.rdb", "/x/a.3.incr.aof", "/x/a.4.incr.aof"]);
        assert_eq!(files(""), Ok(vec![]));
    }

    #[test]
    fn what_no_server_writes_is_refused_with_its_line() {
        for (text, expected) in [
            ("file a seq x type b", "line 1"),
            ("file a seq 1 type b\nfile b seq 2 type b", "line 2: expected one base file"),
            ("file a seq 2 type i\nfile b seq 2 type i", "ascending"),
            ("file ../a seq 2 type i", "next to the manifest"),
            ("file a seq 2 type q", "type b, i or h"),
            ("file \"a seq 2 type i", "line 1"),
            ("file a seq 2", "line 1"),
        ] {
            let error = files(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
