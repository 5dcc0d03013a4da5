//! Links: relative links of the Markdown pages lead to a file and, where they name one, to a heading; `docs/` paths in
//! program text exist.

use crate::tree::{self, SourceFile};
use std::collections::BTreeSet;

/// Targets of `[text](target)` in a page, outside code, with their line numbers.
fn targets(page: &SourceFile) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (number, line) in page.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            let closing = |rest: &'_ str| rest.find(')');
            found.extend(line.match_indices("](").filter_map(|(at, _)| {
                let rest = &line[at + 2..];
                Some((number, &rest[..closing(rest)?]))
            }));
        }
    }
    found
}

/// The anchor that renderers give a heading: lower case, blanks to hyphens, punctuation dropped.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    kept.chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c if c.is_alphanumeric() => Some(c),
            _ => None,
        })
        .collect()
}

fn anchors(page: &SourceFile) -> BTreeSet<String> {
    page.lines().filter(|(_, l)| l.starts_with('#')).map(|(_, l)| anchor(l.trim_start_matches('#'))).collect()
}

/// `target` as seen from the page at `from`, with `.` and `..` resolved.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/').filter(|p| !p.is_empty()) {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    parts.join("/")
}

/// Paths below `docs/` that a line names.
fn docs_paths(line: &str) -> Vec<&str> {
    let start = ["docs", "/"].concat();
    let path_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let mut found = Vec::new();
    for (at, _) in line.match_indices(&start) {
        let before = line[..at].chars().next_back();
        if before.is_some_and(|c| path_char(c) && c != '/') || line[..at].ends_with("website/") {
            continue;
        }
        let end = line[at..].find(|c| !path_char(c)).map_or(line.len(), |length| at + length);
        found.push(line[at..end].trim_end_matches(['.', '/']));
    }
    found
}

#[test]
fn links_between_pages_resolve() {
    let pages: Vec<SourceFile> = tree::text_files().into_iter().filter(|f| f.extension() == "md").collect();
    let mut dead = Vec::new();
    for page in &pages {
        for (number, target) in targets(page) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if path.is_empty() { page.path.clone() } else { resolve(&page.path, path) };
            if !tree::root().join(&path).exists() {
                dead.push(format!("{}:{number}: {target}: no such file", page.path));
            } else if !heading.is_empty()
                && pages.iter().find(|p| p.path == path).is_some_and(|p| !anchors(p).contains(heading))
            {
                dead.push(format!("{}:{number}: {target}: no such heading", page.path));
            }
        }
    }
    tree::none(&dead);
}

#[test]
fn docs_paths_exist() {
    let mut dead = Vec::new();
    for file in tree::text_files().iter().filter(|f| f.is_code() || f.extension() == "md") {
        for (number, line) in file.lines() {
            for path in docs_paths(line) {
                let here = resolve(&file.path, path);
                if !tree::root().join(path).exists() && !tree::root().join(here).exists() {
                    dead.push(format!("{}:{number}: {path} does not exist", file.path));
                }
            }
        }
    }
    tree::none(&dead);
}

#[test]
fn parts_are_read() {
    let text = "[a](b.md) and [c](d/e.md#f)\n```\n[not](this)\n```\n".to_string();
    let page = SourceFile { path: "x.md".to_string(), text };
    assert_eq!(targets(&page), [(1, "b.md"), (1, "d/e.md#f")]);
    assert_eq!(anchor(" The life of a `SET`, once"), "the-life-of-a-set-once");
    assert_eq!(resolve("guide/a/b.md", "../c.md"), "guide/c.md");
    let line = ["see docs", "/design/x.md. And (docs", "/y.md)"].concat();
    assert_eq!(docs_paths(&line), [["docs", "/design/x.md"].concat(), ["docs", "/y.md"].concat()]);
}
