//! Scripts: readable lists of commands whose replies are compared with the reference's, command by command.
//!
//! ```text
//! # A comment.
//! == a title            begins a section: all targets are emptied, all connections opened anew
//! SET k "two words"     a request on connection 1
//! @2 GET k              a request on connection 2
//! CLIENT KILL ID {id:2} a server's choice: {id:N}, {addr:N}, {laddr:N} of connection N; {repeat:N:text}: long value
//! !without redis        from here to the end of the section that server sits out; `!with redis` takes it in again
//! !resp2                the section runs only in this protocol (or !resp3); the others run in both
//! !inline PING          the request as a line of text
//! !silent GET k         a request that gets no reply now; `!reply GET k` reads the one it is owed
//! !raw 1 "*1\r\n"       bytes as they are, and the number of replies they cause
//! !scan COUNT 3         SCAN from 0 to the end with these arguments: all keys
//! @2 !blocked           waits until connection 2 is blocked
//! !closed               the server closes the connection
//! !reopen               the client closes and opens the connection, and the server knows that
//! ```
//!
//! A failing random sequence prints in this form too, so that it can be kept as a script.

use std::path::{Path, PathBuf};

use crate::step::{Action, Argument, Step};
use crate::target::Kind;
use crate::text;

/// The protocol a connection speaks from its first request on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// What every connection begins with.
    Resp2,
    /// After HELLO 3.
    Resp3,
}

/// A part of a script that stands on its own.
#[derive(Clone, Debug)]
pub struct Section {
    /// The title after `==`.
    pub title: String,
    /// The protocols it runs in.
    pub protocols: Vec<Protocol>,
    /// Its steps.
    pub steps: Vec<Step>,
    /// The line of each step in the file.
    pub lines: Vec<usize>,
}

impl Section {
    /// The highest connection it uses.
    pub fn connections(&self) -> usize {
        self.steps.iter().map(|step| step.connection).max().unwrap_or(1)
    }
}

/// Every script of the project: name and text, in the order of names.
///
/// # Errors
/// When the directory or a file in it cannot be read.
pub fn all() -> Result<Vec<(String, String)>, String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let entries = std::fs::read_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let scripts = paths.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "txt"));
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        Ok((name, text))
    };
    scripts.map(read).collect()
}

/// The sections of a script.
///
/// # Errors
/// The number of the first line that is none, and why.
pub fn parse(text: &str) -> Result<Vec<Section>, String> {
    let mut sections: Vec<Section> = Vec::new();
    let mut without: Vec<Kind> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(title) = line.strip_prefix("==") {
            without.clear();
            let protocols = vec![Protocol::Resp2, Protocol::Resp3];
            let title = title.trim().to_owned();
            sections.push(Section { title, protocols, steps: Vec::new(), lines: Vec::new() });
            continue;
        }
        let section = sections.last_mut().ok_or_else(|| format!("line {number}: a script begins with a section"))?;
        let parsed = line_of(line, section, &mut without).map_err(|error| format!("line {number}: {error}"))?;
        if let Some((connection, action)) = parsed {
            section.steps.push(Step { connection, action, without: without.clone() });
            section.lines.push(number);
        }
    }
    Ok(sections)
}

/// The step of a line, or `None` when it is a directive that concerns the section.
fn line_of(line: &str, section: &mut Section, without: &mut Vec<Kind>) -> Result<Option<(usize, Action)>, String> {
    let mut words = text::split(line)?;
    let bare = |word: &text::Word| (!word.quoted).then(|| String::from_utf8_lossy(&word.bytes).into_owned());
    let mut connection = 1;
    if let Some(number) = words.first().and_then(bare).as_deref().and_then(|word| word.strip_prefix('@')) {
        connection = number.parse().map_err(|_| format!("no connection: @{number}"))?;
        words.remove(0);
    }
    let directive = words.first().and_then(bare).filter(|word| word.starts_with('!'));
    if directive.is_some() {
        words.remove(0);
    }
    let kind_named = || {
        let name = words.first().and_then(bare).unwrap_or_default();
        Kind::from_name(&name).ok_or_else(|| format!("no server: {name}"))
    };
    let arguments = || -> Vec<Argument> {
        let argument = |word: &text::Word| match bare(word) {
            Some(bare) => long_value(&bare).unwrap_or_else(|| Argument::from_word(&bare)),
            None => Argument::Bytes(word.bytes.clone()),
        };
        words.iter().map(argument).collect()
    };
    let action = match directive.as_deref() {
        None => Action::Command(arguments()),
        Some("!inline") => Action::Inline(arguments()),
        Some("!silent") => Action::Silent(arguments()),
        Some("!reply") => Action::Reply(arguments()),
        Some("!scan") => Action::Scan(arguments()),
        Some("!blocked") => Action::Blocked,
        Some("!closed") => Action::Closed,
        Some("!reopen") => Action::Reopen,
        Some("!raw") => {
            let replies = words.first().and_then(bare).and_then(|word| word.parse().ok());
            let replies = replies.ok_or("!raw takes the number of replies first")?;
            Action::Raw(words[1..].iter().flat_map(|word| word.bytes.clone()).collect(), replies)
        }
        Some("!without") => {
            without.push(kind_named()?);
            return Ok(None);
        }
        Some("!with") => {
            let kind = kind_named()?;
            without.retain(|left_out| *left_out != kind);
            return Ok(None);
        }
        Some("!resp2") => {
            section.protocols = vec![Protocol::Resp2];
            return Ok(None);
        }
        Some("!resp3") => {
            section.protocols = vec![Protocol::Resp3];
            return Ok(None);
        }
        Some(other) => return Err(format!("no directive: {other}")),
    };
    Ok(Some((connection, action)))
}

/// `{repeat:N:text}`.
fn long_value(word: &str) -> Option<Argument> {
    let (count, text) = word.strip_prefix("{repeat:")?.strip_suffix('}')?.split_once(':')?;
    Some(Argument::Bytes(text.as_bytes().repeat(count.parse().ok()?)))
}

/// Steps as a script that does the same.
pub fn print(title: &str, steps: &[Step]) -> String {
    let mut text = format!("== {title}\n");
    for step in steps {
        text.push_str(&format!("{step}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "# words\n== first\nSET k \"a b\"\n@2 !inline GET k\n!without redis\nCLIENT KILL ID {id:2}\n\
        !with redis\n!raw 2 \"PING\\r\\n\" \"PING\\r\\n\"\n== second\n!resp2\nSET k {repeat:3:ab}\n";

    #[test]
    fn sections_steps_and_directives_are_read() {
        let sections = parse(SCRIPT).expect("the script parses");
        assert_eq!(sections.len(), 2);
        assert_eq!(sections[0].connections(), 2);
        assert_eq!(sections[0].lines, [3, 4, 6, 8]);
        assert_eq!(sections[0].steps[2].without, [Kind::Redis]);
        assert_eq!(sections[0].steps[2].arguments().map(|arguments| &arguments[3]), Some(&Argument::Id(2)));
        assert_eq!(sections[0].steps[3].action, Action::Raw(b"PING\r\nPING\r\n".to_vec(), 2));
        assert_eq!(sections[1].protocols, [Protocol::Resp2]);
        let long = sections[1].steps[0].arguments().expect("a request")[2].clone();
        assert_eq!(long, Argument::Bytes(b"ababab".to_vec()));
    }

    #[test]
    fn what_is_printed_is_read_back() {
        let steps = parse(SCRIPT).expect("the script parses").remove(0).steps;
        let again = parse(&print("again", &steps)).expect("the printed script parses").remove(0).steps;
        let actions = |steps: &[Step]| steps.iter().map(|s| (s.connection, s.action.clone())).collect::<Vec<_>>();
        assert_eq!(actions(&steps), actions(&again));
    }

    #[test]
    fn lines_that_are_none_are_named() {
        for (script, complaint) in [("GET k", "line 1"), ("== a\n!jump", "!jump"), ("== a\nGET \"k", "never closed")] {
            assert!(parse(script).is_err_and(|error| error.contains(complaint)), "{script}");
        }
    }
}
