//! Unsafe code stands only in the files listed here, exactly as often as listed, and its crates run under Miri.

use crate::{metadata, tree};

/// The list: one `PATH COUNT` a line. The count is of `unsafe` blocks, functions, traits, implementations, attributes
/// and extern blocks. It may not grow unnoticed: a change of it is a change of this file, with the reason in its commit.
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

fn listed() -> Vec<(&'static str, usize)> {
    let rows = LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|line| {
        let (path, count) = line.rsplit_once(' ').expect("a line is PATH COUNT");
        (path.trim(), count.parse().expect("the count is a number"))
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
        let allowed = listed.iter().find(|(path, _)| *path == file.path).map_or(0, |(_, count)| *count);
        if found != allowed {
            wrong.push(format!("{} {found} (the list says {allowed})", file.path));
        }
    }
    for (path, _) in &listed {
        if !files.iter().any(|f| f.path == *path) {
            wrong.push(format!("{path} is listed and does not exist"));
        }
    }
    if !wrong.is_empty() {
        wrong.insert(0, "tests/workspace/unsafe_code.txt differs from the tree:".to_string());
    }
    tree::none(&wrong);
}

#[test]
fn crates_with_unsafe_code_run_under_miri() {
    let mut wrong = Vec::new();
    for member in metadata::members().iter().filter(|m| m.directory.starts_with("crates/")) {
        let prefix = format!("{}/src/", member.directory);
        if listed().iter().any(|(path, _)| path.starts_with(&prefix)) && member.metadata["checks"]["miri"].is_null() {
            wrong.push(format!("{}: unsafe code, and no `[package.metadata.checks] miri = [...]`", member.directory));
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
