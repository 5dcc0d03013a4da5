//! Unsafe code stands only in the files listed here, exactly as often as listed, and its crates run under Miri.

use crate::{metadata, tree};

/// The list: one `PATH COUNT` a line, followed by `by MODULE` when that module's tests run the code, or `foreign`
/// when it calls into C, which Miri cannot follow. The count is of `unsafe` blocks, functions, traits, implementations,
/// attributes and extern blocks. It may not grow unnoticed: a change of it is a change of this file, with the reason in
/// its commit.
const LIST: &str = include_str!("../unsafe_code.txt");

/// Uses of the keyword in Rust source, outside comments, strings and the names of lints.
fn count(source: &str) -> usize {
    let keyword = ["un", "safe"].concat();
    let code = without_comments_and_strings(source);
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(&keyword)
        .filter(|(at, _)| {
            !code[..*at].chars().next_back().is_some_and(part_of_word)
                && !code[at + keyword.len()..].chars().next().is_some_and(part_of_word)
        })
        .count()
}

/// The source with comments and the contents of string literals left out.
fn without_comments_and_strings(source: &str) -> String {
    let bytes: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at..] {
            ['/', '/', ..] => at = skip_to(&bytes, at, |rest| rest[0] == '\n'),
            ['/', '*', ..] => at = skip_block_comment(&bytes, at),
            ['r', '"', ..] | ['r', '#', '"', ..] | ['r', '#', '#', ..] => at = skip_raw_string(&bytes, at),
            ['"', ..] => at = skip_string(&bytes, at),
            ['\'', '\\', _, '\'', ..] => at += 4,
            ['\'', _, '\'', ..] => at += 3,
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    out
}

fn skip_to(text: &[char], from: usize, found: impl Fn(&[char]) -> bool) -> usize {
    (from..text.len()).find(|at| found(&text[*at..])).unwrap_or(text.len())
}

fn skip_block_comment(text: &[char], from: usize) -> usize {
    let mut depth = 0;
    let mut at = from;
    while at < text.len() {
        match text[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn skip_string(text: &[char], from: usize) -> usize {
    let mut at = from + 1;
    while at < text.len() && text[at] != '"' {
        at += if text[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

fn skip_raw_string(text: &[char], from: usize) -> usize {
    let hashes = text[from + 1..].iter().take_while(|c| **c == '#').count();
    if text.get(from + 1 + hashes) != Some(&'"') {
        return from + 1;
    }
    let closing: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    skip_to(text, from + 2 + hashes, |rest| rest.starts_with(&closing)) + closing.len()
}

/// A file of the list.
struct Listed {
    path: &'static str,
    count: usize,
    miri: Miri,
}

/// How a file's code comes before Miri.
enum Miri {
    /// Its tests, or those of another module, whose name stands in the crate's `[package.metadata.checks]`.
    TestsOf(&'static str),
    /// It calls what Miri has no model of.
    Foreign,
}

fn listed() -> Vec<Listed> {
    let rows = LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|line| {
        let mut words = line.split_whitespace();
        let path = words.next().expect("a line begins with a path");
        let count = words.next().and_then(|count| count.parse().ok()).expect("a count follows the path");
        let own = path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).expect("a Rust file");
        let miri = match (words.next(), words.next()) {
            (None, _) => Miri::TestsOf(own),
            (Some("foreign"), None) => Miri::Foreign,
            (Some("by"), Some(module)) => Miri::TestsOf(module),
            _ => panic!("{line}: after the count comes nothing, `by MODULE` or `foreign`"),
        };
        Listed { path, count, miri }
    })
    .collect()
}

#[test]
fn unsafe_code_is_where_and_as_often_as_listed() {
    let listed = listed();
    let mut wrong = Vec::new();
    let files = tree::text_files();
    for file in files.iter().filter(|f| f.extension() == "rs") {
        let found = count(&file.text);
        let allowed = listed.iter().find(|entry| entry.path == file.path).map_or(0, |entry| entry.count);
        if found != allowed {
            wrong.push(format!("{} {found} (the list says {allowed})", file.path));
        }
    }
    for Listed { path, .. } in &listed {
        if !files.iter().any(|f| f.path == *path) {
            wrong.push(format!("{path} is listed and does not exist"));
        }
    }
    if !wrong.is_empty() {
        wrong.insert(0, "tests/workspace/unsafe_code.txt differs from the tree:".to_string());
    }
    tree::none(&wrong);
}

/// The modules whose tests a crate runs under Miri; `None` without filters, which runs them all.
fn filters(arguments: &[String]) -> Option<Vec<&str>> {
    let names: Vec<&str> =
        arguments.iter().filter(|word| !word.starts_with('-')).map(|word| word.trim_end_matches("::")).collect();
    (!names.is_empty()).then_some(names)
}

#[test]
fn modules_with_unsafe_code_run_under_miri() {
    let mut wrong = Vec::new();
    for member in metadata::members().iter().filter(|m| m.directory.starts_with("crates/")) {
        let prefix = format!("{}/src/", member.directory);
        let asked = member.metadata["checks"]["miri"].as_array();
        let arguments: Option<Vec<String>> =
            asked.map(|words| words.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect());
        for entry in listed().iter().filter(|entry| entry.path.starts_with(&prefix)) {
            let Miri::TestsOf(module) = entry.miri else { continue };
            match arguments.as_deref().map(filters) {
                None => wrong.push(format!("{}: no `[package.metadata.checks] miri = [...]`", member.directory)),
                Some(Some(names)) if !names.contains(&module) => {
                    wrong.push(format!("{}: the tests of `{module}` do not run under Miri", entry.path));
                }
                Some(_) => {}
            }
        }
    }
    tree::none(&wrong);
}

#[test]
fn the_keyword_is_counted_where_it_is_code() {
    let keyword = ["un", "safe"].concat();
    let source = format!(
        "// {keyword}\n/* {keyword} /* {keyword} */ */ let a = \"{keyword} \\\" {keyword}\"; {keyword} {{ }}\n\
         let b = r#\"{keyword}\"#; let c = '\"'; {keyword} fn d<'a>() {{}} #![forbid({keyword}_code)]"
    );
    assert_eq!(count(&source), 2, "{source}");
}
