//! The line editor of the prompt: hints of arguments, completion of names, and a history without passwords.

use super::docs::Docs;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};
use std::borrow::Cow;
use std::path::PathBuf;

/// Lines kept in the history.
const HISTORY_MAX: usize = 2000;
/// Names the file of the history.
const HISTORY_VARIABLE: &str = "ONGGI_CLI_HISTORY";

/// The editor with its history loaded.
pub struct Lines {
    editor: Editor<Assistant, FileHistory>,
    history: Option<PathBuf>,
}

impl Lines {
    /// On this terminal.
    pub fn new() -> rustyline::Result<Self> {
        let config = Config::builder().max_history_size(HISTORY_MAX)?.auto_add_history(false).build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Assistant::default()));
        let history = history_file();
        if let Some(path) = &history {
            // There is no file before the first line.
            let _ = editor.load_history(path);
        }
        Ok(Self { editor, history })
    }

    /// What the server has reported about its commands.
    pub fn docs(&mut self) -> &mut Docs {
        &mut self.editor.helper_mut().expect("`new` has set it").docs
    }

    /// The next line; an error of the kind Interrupted for Ctrl-C, Eof for Ctrl-D.
    pub fn next(&mut self, prompt: &str) -> rustyline::Result<String> {
        self.editor.readline(prompt)
    }

    /// Adds a line to the history, unless it has a password.
    pub fn remember(&mut self, line: &str, words: &[Vec<u8>]) {
        if has_secret(words) {
            return;
        }
        // A history that cannot be written is no reason to stop.
        let _ = self.editor.add_history_entry(line);
        if let Some(path) = &self.history {
            let _ = self.editor.append_history(path);
        }
    }

    /// Clears the screen.
    pub fn clear(&mut self) -> rustyline::Result<()> {
        self.editor.clear_screen()
    }
}

/// The file of the history; `None` without a home, or if the variable is empty.
fn history_file() -> Option<PathBuf> {
    match std::env::var_os(HISTORY_VARIABLE) {
        Some(path) if path.is_empty() => None,
        Some(path) => Some(path.into()),
        None => Some(PathBuf::from(std::env::var_os("HOME")?).join(".onggi_history")),
    }
}

/// Whether a command carries a password.
fn has_secret(words: &[Vec<u8>]) -> bool {
    let is = |at: usize, name: &str| words.get(at).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let has = |name: &str| words.iter().any(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let mut secrets =
        ["requirepass", "masterauth", "primaryauth", "tls-key-file-pass", "tls-client-key-file-pass"].into_iter();
    is(0, "auth")
        || is(0, "hello") && has("auth")
        || is(0, "migrate") && (has("auth") || has("auth2"))
        || is(0, "acl") && is(1, "setuser")
        || is(0, "config") && is(1, "set") && secrets.any(has)
}

/// Completes and hints.
#[derive(Default)]
struct Assistant {
    docs: Docs,
}

impl Helper for Assistant {}

impl Validator for Assistant {}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = line.get(..at).unwrap_or_default();
        let begins = typed.len() - typed.trim_start().len();
        let typed = typed.trim_start();
        let (is_help, wanted) = match typed.get(..5) {
            Some(word) if word.eq_ignore_ascii_case("help ") => (true, typed.get(5..).unwrap_or_default()),
            _ => (false, typed),
        };
        let is_lower = !wanted.bytes().any(|byte| byte.is_ascii_uppercase());
        let pair = |name: &str| {
            let name = if is_lower { name.to_ascii_lowercase() } else { name.to_owned() };
            let replacement = if is_help { name.clone() } else { format!("{name} ") };
            Pair { display: name, replacement }
        };
        let found = self.docs.beginning(wanted).map(|entry| pair(&entry.name)).collect();
        Ok((begins + typed.len() - wanted.len(), found))
    }
}

impl Hinter for Assistant {
    type Hint = String;

    fn hint(&self, line: &str, at: usize, _: &Context<'_>) -> Option<String> {
        if at < line.len() {
            return None;
        }
        let words: Vec<_> = line.split_whitespace().collect();
        let entry = self.docs.of_line(&words)?;
        let is_in_word = !line.ends_with(char::is_whitespace);
        let typed = words.len() - entry.name.split(' ').count();
        // The word at the cursor is still the argument itself.
        let rest = entry.rest(typed);
        let before = if is_in_word && !rest.is_empty() { " " } else { "" };
        Some(format!("{before}{rest}")).filter(|hint| !hint.is_empty())
    }
}

impl Highlighter for Assistant {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[90m{hint}\x1b[0m"))
    }
}

#[cfg(test)]
mod tests {
    use super::has_secret;

    #[test]
    fn passwords_stay_out_of_the_history() {
        let has = |line: &str| has_secret(&line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>());
        for line in [
            "AUTH x",
            "hello 3 auth default x",
            "ACL SETUSER u >x",
            "config set requirepass x",
            "migrate h 1 k 0 5 AUTH x",
        ] {
            assert!(has(line), "{line}");
        }
        for line in ["set auth x", "config get requirepass", "acl list", "hello 3"] {
            assert!(!has(line), "{line}");
        }
    }
}
