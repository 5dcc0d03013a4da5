//! Prose that a busy engineer can read: comments, messages and pages avoid a list of phrases, sentences are short, lines
//! fit a screen.

use crate::tree::{self, SourceFile};

/// Longest line, comments included.
const COLUMNS_MAX: usize = 120;

/// Longest sentence of a page, in words. Style asks for 25; this catches the unreadable.
const WORDS_MAX: usize = 40;

/// Phrases with a plainer form, and that form.
const PHRASES: &[(&str, &str)] = &[
    ("whoever", "name the actor"),
    ("nobody", "name the actor: no client, no thread"),
    ("somebody", "name the actor"),
    ("is told", "receives, or is notified of"),
    ("are told", "receive, or are notified of"),
    ("in vain", "without effect"),
    ("goes behind", "follows"),
    ("comes behind", "follows"),
    ("stands behind", "follows"),
    ("stands beside", "with, or next to"),
    ("so many", "as many as, or the number"),
    ("so few", "the number"),
    ("so much", "as much as, or the number"),
    ("so long", "until, or the time"),
    ("for so long", "until, or the time"),
    ("beside", "with, next to, or in addition to"),
    ("by itself", "alone, or automatically"),
    ("by themselves", "alone, or automatically"),
    ("goes on", "continues, or keeps"),
    ("go on", "continue, or keep"),
    ("told apart", "distinguished"),
];

/// Kept results say what was said when they were made.
const RECORDS: &str = "bench/results/";

/// The files that are read: program text of ours and pages, without data.
fn pages_and_code() -> Vec<SourceFile> {
    let is_read = |f: &SourceFile| {
        matches!(f.extension(), "rs" | "md" | "py")
            && !f.path.starts_with(RECORDS)
            && !f.path.contains("/testdata/")
            && f.path != "tests/workspace/src/prose.rs"
    };
    tree::text_files().into_iter().filter(is_read).collect()
}

/// The prose of a line: the whole line of a page, the comment of program text.
fn prose<'a>(file: &SourceFile, line: &'a str) -> Option<&'a str> {
    let comment = match file.extension() {
        "md" => return Some(line),
        "rs" => "//",
        _ => "#",
    };
    line.trim_start().starts_with(comment).then_some(line)
}

/// The strings of a line of program text: what users and operators read.
fn messages(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2)
}

/// Where the tests of a file begin: they talk to no user.
fn program_end(file: &SourceFile) -> usize {
    let is_tests = file.path.contains("/tests/") || file.path.ends_with("tests.rs");
    match file.extension() {
        "rs" if file.path.starts_with("crates/") && !is_tests => {
            file.lines().find(|(_, line)| *line == "#[cfg(test)]").map_or(usize::MAX, |(n, _)| n)
        }
        _ => 0,
    }
}

/// The first phrase of the list in a text, with what to write instead. "so long as" and the like are fine.
fn phrase(text: &str) -> Option<&'static (&'static str, &'static str)> {
    let lower = text.to_lowercase();
    PHRASES.iter().find(|(phrase, _)| {
        lower.match_indices(phrase).any(|(at, _)| {
            let end = at + phrase.len();
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let starts = !lower[..at].chars().next_back().is_some_and(is_word);
            let ends = !lower[end..].chars().next().is_some_and(is_word);
            let compares = phrase.starts_with("so ") && [" as", " that"].iter().any(|w| lower[end..].starts_with(w));
            starts && ends && !compares
        })
    })
}

/// The sentences of a page with the line on which their paragraph begins: without code, tables and headings.
fn sentences(page: &SourceFile) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut begun, mut text, mut in_code) = (0, String::new(), false);
    for (number, line) in page.lines().chain([(0, "")]) {
        let trimmed = line.trim_start();
        let is_fence = trimmed.starts_with("```");
        in_code ^= is_fence;
        let is_prose = !in_code && !is_fence && !trimmed.starts_with(['|', '#']) && !line.starts_with("    ");
        if !is_prose || trimmed.is_empty() || trimmed.starts_with(['-', '*']) {
            found.extend(split(&text).into_iter().map(|sentence| (begun, sentence)));
            text.clear();
        }
        if is_prose && !trimmed.is_empty() {
            if text.is_empty() {
                begun = number;
            }
            text.push_str(trimmed);
            text.push(' ');
        }
    }
    found
}

/// The sentences of a paragraph. A stop inside a word, as in "0.1" or "a.rs", ends none.
fn split(paragraph: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for word in paragraph.split_whitespace() {
        let last = found.last_mut().expect("one at least");
        last.push_str(word);
        last.push(' ');
        if word.trim_end_matches([')', '*', '"', '`']).ends_with(['.', '!', '?']) {
            found.push(String::new());
        }
    }
    found
}

/// Every offence of a file.
fn offences(file: &SourceFile) -> Vec<String> {
    let (mut found, program_end) = (Vec::new(), program_end(file));
    for (number, line) in file.lines() {
        let is_row = file.extension() == "md" && (line.starts_with('|') || line.contains("]("));
        let is_indented = file.extension() == "md" && line.starts_with("    ");
        // rustfmt keeps code within the columns; it leaves strings as they are.
        let is_text = line.contains('"') || line.ends_with('\\');
        let has_text = file.extension() == "rs" && is_text && prose(file, line).is_none();
        if line.chars().count() > COLUMNS_MAX && !is_row && !is_indented && !has_text {
            found.push(format!("{}:{number}: longer than {COLUMNS_MAX} columns", file.path));
        }
        let found_here = match prose(file, line) {
            Some(text) => phrase(text),
            None if number < program_end => messages(line).find_map(phrase),
            None => None,
        };
        if let Some((phrase, better)) = found_here {
            found.push(format!("{}:{number}: \"{phrase}\" (write: {better}): {}", file.path, line.trim()));
        }
    }
    if file.extension() == "md" {
        for (number, sentence) in sentences(file) {
            let words = sentence.split_whitespace().count();
            if words > WORDS_MAX {
                found.push(format!("{}:{number}: a sentence of {words} words: {sentence}", file.path));
            }
        }
    }
    found
}

#[test]
fn prose_is_plain() {
    let wrong: Vec<String> = pages_and_code().iter().flat_map(offences).collect();
    tree::none(&wrong);
}

#[test]
fn offences_are_seen() {
    let page = |text: &str| SourceFile { path: "x.md".to_string(), text: text.to_string() };
    assert!(phrase("Whoever reads").is_some() && phrase("It is told so").is_some());
    assert!(phrase("so long as it holds").is_none() && phrase("so much that").is_none() && phrase("nobodys").is_none());
    let long = "word ".repeat(WORDS_MAX + 1);
    assert_eq!(offences(&page(&format!("{}\n{}.\n", &long[..100], &long[100..].trim_end()))).len(), 1);
    assert_eq!(offences(&page(&format!("A version 0.1 of {}. And {}.\n", "a ".repeat(20), "b ".repeat(20)))).len(), 0);
    assert_eq!(offences(&page(&format!("{}\n", "x".repeat(COLUMNS_MAX + 1)))).len(), 1);
    let code = SourceFile { path: "x.rs".to_string(), text: "let nobody = 1;\n// nobody reads\n".to_string() };
    assert_eq!(offences(&code).len(), 1);
    let text = "let nobody = f(\"nobody reads\", 'x', \"all read\");\n#[cfg(test)]\nmod tests {\n\"nobody\" }\n";
    assert_eq!(offences(&SourceFile { path: "crates/x.rs".to_string(), text: text.to_string() }).len(), 1);
}

/// The most lines of the page that a visitor reads first.
const README_LINES_MAX: usize = 150;
/// The most rows of its table of figures, without the two of its head.
const FIGURES_MAX: usize = 10;

#[test]
fn the_first_page_is_short() {
    let files = tree::text_files();
    let readme = files.iter().find(|file| file.path == "README.md").expect("a first page");
    let lines = readme.text.lines().count();
    assert!(lines <= README_LINES_MAX, "README.md has {lines} lines, at most {README_LINES_MAX}");
    let figures = readme.text.split("## ").find(|part| part.starts_with("Speed and memory")).expect("figures");
    let rows = figures.lines().filter(|line| line.starts_with('|')).count().saturating_sub(2);
    assert!((1..=FIGURES_MAX).contains(&rows), "the table of figures has {rows} rows, at most {FIGURES_MAX}");
}
