//! The command line of the server: `[FILE|-] [--directive value ...]`, read as redis-server reads it.

use crate::redacted::redacted;
use crate::syntax::split_words;
use crate::{LoadError, LoadErrors, Origin, Problem};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// What the command line asks for.
#[derive(Debug, Default)]
pub struct CommandLine {
    /// The file, if one is named.
    pub file: Option<FileArgument>,
    /// The options, in order; they are in force over the file.
    pub options: Vec<Given>,
}

/// The first argument.
#[derive(Debug, PartialEq, Eq)]
pub enum FileArgument {
    /// `-`.
    Stdin,
    /// A path.
    Path(PathBuf),
}

/// A directive with its words.
#[derive(Debug, PartialEq, Eq)]
pub struct Given {
    /// The name as given, without dashes.
    pub name: Vec<u8>,
    /// The values.
    pub words: Vec<Vec<u8>>,
}

impl CommandLine {
    /// Reads the arguments that follow the program and its subcommand.
    ///
    /// An argument with two dashes begins an option, unless the option before it still lacks its first value: so a
    /// value may begin with dashes (`--requirepass --x`). `--save` alone stands for `--save ""`. A name and its values
    /// may share one argument (`"--port 0"`).
    ///
    /// # Errors
    /// An argument after the file that belongs to no option, or quotes that do not close inside an argument.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, LoadErrors> {
        let mut arguments = arguments.into_iter().map(OsStringExt::into_vec).peekable();
        let mut line = Self::default();
        if let Some(file) = arguments.next_if(|argument| !argument.starts_with(b"--")) {
            line.file = Some(match file.as_slice() {
                b"-" => FileArgument::Stdin,
                _ => FileArgument::Path(OsString::from_vec(file).into()),
            });
        }
        while let Some(argument) = arguments.next() {
            let Some(begin) = argument.strip_prefix(b"--") else {
                return Err(problem(Problem::NotAnOption, &argument));
            };
            let Some(mut words) = split_words(begin) else {
                return Err(problem(Problem::Quotes, begin));
            };
            let name = if words.is_empty() { Vec::new() } else { words.remove(0) };
            if words.is_empty() {
                let is_save = name.eq_ignore_ascii_case(b"save");
                match arguments.next_if(|next| !(is_save && next.starts_with(b"--"))) {
                    Some(value) => words.push(value),
                    None if is_save => words.push(Vec::new()),
                    None => {}
                }
            }
            while let Some(value) = arguments.next_if(|next| !next.starts_with(b"--")) {
                words.push(value);
            }
            line.options.push(Given { name, words });
        }
        Ok(line)
    }
}

fn problem(problem: Problem, argument: &[u8]) -> LoadErrors {
    LoadErrors(vec![LoadError::Line { origin: Origin::CommandLine, text: redacted(argument), problem }])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<String, String> {
        let line = CommandLine::parse(arguments.iter().map(OsString::from)).map_err(|error| error.to_string())?;
        let mut shown = match line.file {
            None => "none".to_owned(),
            Some(FileArgument::Stdin) => "stdin".to_owned(),
            Some(FileArgument::Path(path)) => path.display().to_string(),
        };
        for Given { name, words } in line.options {
            let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
            shown += &format!(" | {} {words:?}", String::from_utf8_lossy(&name));
        }
        Ok(shown)
    }

    /// The same argument lists were given to Valkey 9.1, which reads them so.
    #[test]
    fn arguments() {
        for (arguments, expected) in [
            (&[][..], Ok("none")),
            (&["a.conf"], Ok("a.conf")),
            (&["-", "--port", "0"], Ok(r#"stdin | port ["0"]"#)),
            (
                &["a.conf", "--port", "0", "--bind", "127.0.0.1", "::1"],
                Ok(r#"a.conf | port ["0"] | bind ["127.0.0.1", "::1"]"#),
            ),
            (&["--bind", "127.0.0.1 ::1"], Ok(r#"none | bind ["127.0.0.1 ::1"]"#)),
            (&["--save", "", "--appendonly", "no"], Ok(r#"none | save [""] | appendonly ["no"]"#)),
            (&["--save", "--appendonly", "no"], Ok(r#"none | save [""] | appendonly ["no"]"#)),
            (&["--save"], Ok(r#"none | save [""]"#)),
            (&["--save", "60", "1"], Ok(r#"none | save ["60", "1"]"#)),
            (&["--port"], Ok("none | port []")),
            (&["--requirepass", "--foo"], Ok(r#"none | requirepass ["--foo"]"#)),
            (&["--port 0", "--unixsocket s"], Ok(r#"none | port ["0"] | unixsocket ["s"]"#)),
            (&["--port", "0", "x"], Ok(r#"none | port ["0", "x"]"#)),
            (&["a.conf", "x"], Err("command line: an option begins with -- (in: x)")),
            (&["--"], Ok("none |  []")),
        ] {
            assert_eq!(
                parse(arguments).as_deref(),
                expected.map_err(String::from).as_ref().map(|s| *s),
                "{arguments:?}"
            );
        }
    }
}
