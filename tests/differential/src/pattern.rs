//! Which requests a row of a table means: a command and a glob over its arguments as a person would type them.

use base::glob;

use crate::text;

/// A request as the tables see it.
#[derive(Clone, Debug)]
pub struct CommandLine {
    words: Vec<Vec<u8>>,
}

impl CommandLine {
    /// The request with these arguments, the command's name first.
    pub fn new(words: Vec<Vec<u8>>) -> Self {
        Self { words }
    }

    /// The command's name in capitals; empty for a request without one.
    pub fn name(&self) -> String {
        self.words.first().map(|word| text::printable(word).to_ascii_uppercase()).unwrap_or_default()
    }

    /// The arguments after the first `skip` words, quoted where needed and joined by one space.
    fn rest(&self, skip: usize) -> String {
        let words: Vec<String> = self.words.iter().skip(skip).map(|word| text::quoted(word)).collect();
        words.join(" ")
    }
}

impl std::fmt::Display for CommandLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.rest(0))
    }
}

/// `CONFIG GET` and `max*`: the words of the command, in any case, and a glob that the rest matches as a whole. The
/// command `*` is any.
#[derive(Clone, Debug)]
pub struct Pattern {
    command: Vec<String>,
    arguments: String,
}

impl Pattern {
    /// A pattern from its two columns.
    pub fn new(command: &str, arguments: &str) -> Self {
        Self {
            command: command.split_whitespace().map(str::to_ascii_uppercase).collect(),
            arguments: arguments.to_owned(),
        }
    }

    /// Whether it means this request.
    pub fn matches(&self, line: &CommandLine) -> bool {
        let any = self.command == ["*"];
        let same = |(i, word): (usize, &String)| {
            line.words.get(i).is_some_and(|given| given.eq_ignore_ascii_case(word.as_bytes()))
        };
        if !any && !self.command.iter().enumerate().all(same) {
            return false;
        }
        if self.arguments == "*" {
            return true;
        }
        let rest = line.rest(if any { 0 } else { self.command.len() });
        glob::matches_ignore_case(self.arguments.as_bytes(), rest.as_bytes())
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} | {}", self.command.join(" "), self.arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> CommandLine {
        CommandLine::new(words.iter().map(|word| word.as_bytes().to_vec()).collect())
    }

    #[test]
    fn commands_match_by_words_and_arguments_by_glob() {
        let pattern = Pattern::new("config get", "max*");
        assert!(pattern.matches(&line(&["CONFIG", "get", "maxmemory"])));
        assert!(!pattern.matches(&line(&["CONFIG", "get", "hz"])));
        assert!(!pattern.matches(&line(&["CONFIG"])));
        assert!(Pattern::new("GET", "*").matches(&line(&["get"])));
        assert!(Pattern::new("GET", "").matches(&line(&["get"])));
        assert!(!Pattern::new("GET", "").matches(&line(&["get", "k"])));
        assert!(Pattern::new("*", "SET*KEEPTTL").matches(&line(&["set", "a b", "v", "keepttl"])));
    }
}
