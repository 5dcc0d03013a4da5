//! The accepted differences: the tables of `docs/protocol/differences.md`.
//!
//! D1. A row counts only for the kind of server whose section it stands in.
//! D2. A row accepts a reply only if request, reference reply and reply all match, so it cannot hide another
//!     difference of the same command.
//! D3. Rows count their hits; [`Differences::unhit`] names those that explain nothing any more.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use base::glob;

use crate::pattern::{CommandLine, Pattern};
use crate::resp::Value;
use crate::target::Kind;

/// One accepted difference.
#[derive(Debug)]
pub struct Difference {
    kind: Kind,
    pattern: Pattern,
    reference: String,
    other: String,
    line: usize,
    hits: Cell<u64>,
}

/// Both tables.
#[derive(Debug)]
pub struct Differences {
    rows: Vec<Difference>,
}

/// The page, from this crate's place in the source tree.
pub fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol/differences.md")
}

impl Differences {
    /// Reads the page.
    ///
    /// # Errors
    /// When it cannot be read, or a row has not five cells or no reason; the sentence names the line.
    pub fn load() -> Result<Self, String> {
        let path = path();
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut kind = None;
        let mut rows = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(title) = line.strip_prefix("## ") {
                kind = Some(if title.contains("Redis 7.0") { Kind::Redis } else { Kind::Onggi });
            }
            let Some(cells) = cells(line) else { continue };
            if cells[0] == "Command" || cells[0].starts_with("--") {
                continue;
            }
            let ([command, arguments, reference, other, reason], Some(kind)) = (&cells[..], kind) else {
                return Err(format!("differences.md:{number}: a row has five cells and stands in a section"));
            };
            if reason.is_empty() {
                return Err(format!("differences.md:{number}: a row gives its reason"));
            }
            let pattern = Pattern::new(command, arguments);
            let (reference, other) = (reference.clone(), other.clone());
            rows.push(Difference { kind, pattern, reference, other, line: number, hits: Cell::new(0) });
        }
        Ok(Self { rows })
    }

    /// Whether a server of this kind may answer `other` where the reference answers `reference`; counts the hit.
    pub fn accept(&self, kind: Kind, line: &CommandLine, reference: &Value, other: &Value) -> bool {
        let mut candidates = self.rows.iter().filter(|row| row.kind == kind && row.pattern.matches(line)).peekable();
        if candidates.peek().is_none() {
            return false;
        }
        let (reference, other) = (reference.to_string(), other.to_string());
        let row = candidates.find(|row| reads(&row.reference, &reference) && reads(&row.other, &other));
        row.map(|row| row.hits.set(row.hits.get() + 1)).is_some()
    }

    /// The rows of this kind that accepted nothing, as `differences.md:LINE: COMMAND | ARGUMENTS`.
    pub fn unhit(&self, kind: Kind) -> Vec<String> {
        let unhit = self.rows.iter().filter(|row| row.kind == kind && row.hits.get() == 0);
        unhit.map(|row| format!("differences.md:{}: {}", row.line, row.pattern)).collect()
    }
}

fn reads(pattern: &str, reply: &str) -> bool {
    pattern == "*" || glob::matches(pattern.as_bytes(), reply.as_bytes())
}

/// The cells of a table's line, code marks taken off; `None` for a line that is none.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let mut cells = vec![String::new()];
    let mut previous = ' ';
    for character in inner.chars() {
        let cell = cells.last_mut()?;
        match character {
            '|' if previous == '\\' => {
                cell.pop();
                cell.push('|');
            }
            '|' => cells.push(String::new()),
            other => cell.push(other),
        }
        previous = character;
    }
    let bare = |cell: String| {
        let cell = cell.trim();
        cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`')).unwrap_or(cell).to_owned()
    };
    Some(cells.into_iter().map(bare).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "## Where Redis 7.0 differs\n\
        | Command | Arguments | Valkey 9.1 | Redis 7.0 | Reason |\n|---|---|---|---|---|\n\
        | GET | `a\\|b` | `:1` | `-ERR *` | Younger. |\n";

    fn line(words: &[&str]) -> CommandLine {
        CommandLine::new(words.iter().map(|word| word.as_bytes().to_vec()).collect())
    }

    #[test]
    fn a_row_accepts_only_its_own_difference_and_counts_it() {
        let differences = Differences::parse(PAGE).expect("the page parses");
        let error = Value::Error(b"ERR no".to_vec());
        assert_eq!(differences.unhit(Kind::Redis).len(), 1);
        assert_eq!(differences.unhit(Kind::Onggi).len(), 0);
        assert!(!differences.accept(Kind::Onggi, &line(&["get", "a|b"]), &Value::Int(1), &error));
        assert!(!differences.accept(Kind::Redis, &line(&["get", "b"]), &Value::Int(1), &error));
        assert!(!differences.accept(Kind::Redis, &line(&["get", "a|b"]), &Value::Int(2), &error));
        assert!(differences.accept(Kind::Redis, &line(&["get", "a|b"]), &Value::Int(1), &error));
        assert!(differences.unhit(Kind::Redis).is_empty());
    }

    #[test]
    fn a_row_without_reason_or_cell_is_refused() {
        assert!(Differences::parse("## Redis 7.0\n| GET | * | :1 | :2 | |\n").is_err());
        assert!(Differences::parse("## Redis 7.0\n| GET | * | :1 | r |\n").is_err());
    }

    #[test]
    fn the_page_of_the_project_parses() {
        Differences::load().expect("docs/protocol/differences.md parses");
    }
}
