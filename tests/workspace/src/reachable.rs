//! No dead files: every Rust file is reached from a file that the compiler starts from, and every other file of a
//! crate is named by one of its sources.

use crate::metadata::{self, Member};
use crate::tree::{self, SourceFile};
use std::collections::BTreeSet;

/// The modules a file declares without a body (`mod name;`), and the files it names by `#[path]` or `include`.
fn declared(text: &str) -> (Vec<&str>, Vec<&str>) {
    let mut modules = Vec::new();
    let mut named = Vec::new();
    for line in text.lines().map(str::trim) {
        let item = line.strip_prefix("pub ").unwrap_or(line);
        let item = item.strip_prefix("pub(crate) ").or(item.strip_prefix("pub(super) ")).unwrap_or(item);
        if let Some(name) = item.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            modules.push(name.trim());
        }
        for opening in ["#[path = \"", "include!(\"", "include_str!(\"", "include_bytes!(\""] {
            if let Some((_, rest)) = line.split_once(opening) {
                named.extend(rest.split('"').next());
            }
        }
    }
    (modules, named)
}

/// Paths at which the compiler looks for `module` declared in `file`.
fn candidates(file: &str, is_root: bool, module: &str) -> [String; 2] {
    let (directory, name) = file.rsplit_once('/').unwrap_or(("", file));
    let stem = name.trim_end_matches(".rs");
    let below = if is_root || stem == "mod" { directory.to_string() } else { format!("{directory}/{stem}") };
    [format!("{below}/{module}.rs"), format!("{below}/{module}/mod.rs")]
}

/// The path of `named`, which `file` includes, with `..` resolved.
fn beside(file: &str, named: &str) -> String {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in named.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    parts.join("/")
}

/// Every Rust file of the package that the compiler reads.
fn reached(member: &Member, files: &[SourceFile]) -> BTreeSet<String> {
    let mut seen: BTreeSet<String> = member.roots.iter().cloned().collect();
    let mut open: Vec<String> = seen.iter().cloned().collect();
    while let Some(path) = open.pop() {
        let Some(file) = files.iter().find(|f| f.path == path) else { continue };
        let (modules, named) = declared(&file.text);
        let is_root = member.roots.contains(&path);
        let below = modules.iter().flat_map(|m| candidates(&path, is_root, m));
        for next in below.chain(named.iter().map(|n| beside(&path, n))) {
            if files.iter().any(|f| f.path == next) && seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    seen
}

#[test]
fn every_rust_file_is_compiled() {
    let files = tree::text_files();
    let members = metadata::members();
    let mut dead = Vec::new();
    for member in &members {
        let reached = reached(member, &files);
        let prefix = format!("{}/", member.directory);
        let own = files.iter().filter(|f| f.path.starts_with(&prefix) && f.extension() == "rs");
        dead.extend(own.filter(|f| !reached.contains(&f.path)).map(|f| format!("{}: no module names it", f.path)));
    }
    tree::none(&dead);
}

#[test]
fn every_other_file_of_a_crate_is_named() {
    let files = tree::text_files();
    let paths = tree::all_paths();
    let mut dead = Vec::new();
    for member in metadata::members().iter().filter(|m| m.directory.starts_with("crates/")) {
        let prefix = format!("{}/", member.directory);
        let sources: Vec<&SourceFile> =
            files.iter().filter(|f| f.path.starts_with(&prefix) && matches!(f.extension(), "rs" | "toml")).collect();
        for path in paths.iter().filter(|p| p.starts_with(&prefix)) {
            let mut parts = path.rsplit('/');
            let name = parts.next().unwrap_or("");
            if name.ends_with(".rs") || matches!(name, "Cargo.toml" | "README.md") {
                continue;
            }
            // Regression seeds of property tests are found by the test runner, by the name of their source.
            if name.ends_with(".txt") && path.contains("proptest-regressions") {
                continue;
            }
            let directory = parts.next().unwrap_or("");
            if !sources.iter().any(|s| s.text.contains(name) || s.text.contains(&format!("{directory}/"))) {
                dead.push(format!("{path}: no source of {} names it or its directory", member.name));
            }
        }
    }
    tree::none(&dead);
}

#[test]
fn declarations_are_read() {
    let text =
        "pub mod a;\nmod b;\npub(crate) mod c;\nmod inline {\n#[path = \"../d.rs\"]\nlet x = include_str!(\"e.txt\");";
    assert_eq!(declared(text), (vec!["a", "b", "c"], vec!["../d.rs", "e.txt"]));
    assert_eq!(candidates("crates/x/src/a.rs", false, "b")[0], "crates/x/src/a/b.rs");
    assert_eq!(candidates("crates/x/src/lib.rs", true, "b")[1], "crates/x/src/b/mod.rs");
    assert_eq!(beside("crates/x/src/a.rs", "../testdata/t"), "crates/x/testdata/t");
}
