//! No file of a crate imports one that imports it again, by however many steps: such files can only be read together.
//!
//! A file may name the modules it declares, which is how it shows them to others, and the root of its crate. A name
//! that a file shows again, such as `crate::Ctx` or `crate::acl::User`, leads to the file that has it.

use crate::metadata;
use crate::tree::{self, SourceFile};
use std::collections::{BTreeMap, BTreeSet};

/// A module that is a file, by the names on the way to it; the crate's root has none.
type Module = Vec<String>;

/// The module of a source file, by its path below `src`; `None` for files of tests.
fn module(path: &str) -> Option<Module> {
    let parts: Module = path.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    match parts.last()?.as_str() {
        "lib" | "main" if parts.len() == 1 => Some(Vec::new()),
        _ if parts.iter().any(|part| part == "tests") => None,
        _ => Some(parts),
    }
}

/// The program text of a file: without comments, and without its module of tests, which is its end.
fn program(text: &str) -> String {
    let ends = ["#[cfg(test)]\nmod tests", "#[cfg(test)]\npub(crate) mod tests"];
    let end = ends.iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    text[..end].lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// All paths that begin with `crate::` or `super::`, with the branches of `{}`.
fn paths(text: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    for opening in ["crate::", "super::"] {
        for (at, _) in text.match_indices(opening) {
            // The second `super` of a path belongs to the first, and `$crate` to a macro.
            if !text[..at].ends_with(|c: char| c.is_alphanumeric() || "_:$".contains(c)) {
                branch(&mut Vec::new(), &text[at..], &mut found);
            }
        }
    }
    found
}

/// Reads one path, to which `prefix` leads, and adds it, or all its branches. Gives what follows it.
fn branch<'t>(prefix: &mut Vec<&'t str>, text: &'t str, found: &mut Vec<Vec<&'t str>>) -> &'t str {
    let (depth, mut rest) = (prefix.len(), text.trim_start());
    loop {
        let name = &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())];
        if name.is_empty() {
            break;
        }
        prefix.push(name);
        rest = &rest[name.len()..];
        match rest.strip_prefix("::") {
            Some(after) => rest = after,
            None => break,
        }
    }
    match rest.strip_prefix('{') {
        Some(mut inner) => {
            while !inner.trim_start().starts_with('}') && !inner.is_empty() {
                inner = branch(prefix, inner, found);
                // Over ` as name`, and to the next branch.
                let next = inner.find([',', '}', ';']).unwrap_or(inner.len());
                inner = inner[next..].strip_prefix(',').unwrap_or(&inner[next..]);
                if inner.starts_with(';') {
                    break;
                }
            }
            rest = inner.trim_start().strip_prefix('}').unwrap_or("");
        }
        None => found.push(prefix.clone()),
    }
    prefix.truncate(depth);
    rest
}

/// The names that a file shows again, each with the path on which it has it.
fn shown(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut found = Vec::new();
    for opening in ["pub use ", "pub(crate) use ", "pub(super) use "] {
        for (at, _) in text.match_indices(opening) {
            branch(&mut Vec::new(), &text[at + opening.len()..], &mut found);
        }
    }
    let paths = found.into_iter().map(|path| path.into_iter().skip_while(|name| *name == "self"));
    paths.map(Iterator::collect::<Vec<_>>).filter_map(|path| Some((*path.last()?, path))).collect()
}

/// How often a name is followed that is shown again: more than any is.
const SHOWN_MAX: usize = 8;

/// The file that a path of the module `from` leads to.
fn target(from: &Module, path: &[&str], files: &BTreeMap<Module, BTreeMap<&str, Vec<&str>>>) -> Option<Module> {
    let (mut from, mut path) = (from.clone(), path.to_vec());
    for _ in 0..SHOWN_MAX {
        let ups = path.iter().take_while(|name| **name == "super").count();
        let is_below = ups == 0 && path.first() != Some(&"crate");
        let mut to: Module = match (is_below, ups) {
            (true, _) => from,
            (false, 0) => Vec::new(),
            (false, ups) => from[..from.len().checked_sub(ups)?].to_vec(),
        };
        let names = &path[if is_below { 0 } else { ups.max(1) }..];
        to.extend(names.iter().map(|name| (*name).to_owned()));
        let mut left = 0;
        while !files.contains_key(&to) {
            to.pop()?;
            left += 1;
        }
        let Some(again) = names.len().checked_sub(left).and_then(|at| files[&to].get(names.get(at)?)) else {
            return Some(to);
        };
        (from, path) = (to, again.clone());
    }
    None
}

/// What each file of a crate imports. Its root, and what lies below the file itself, are left out.
fn imports(sources: &[(Module, String)]) -> BTreeMap<Module, BTreeSet<Module>> {
    let files = sources.iter().map(|(module, text)| (module.clone(), shown(text))).collect();
    let mut graph = BTreeMap::new();
    for (module, text) in sources {
        let targets = paths(text).into_iter().filter_map(|path| target(module, &path, &files));
        graph.insert(module.clone(), targets.filter(|to| !to.is_empty() && !to.starts_with(module)).collect());
    }
    graph
}

/// All that is reached from a file.
fn reached(from: &Module, graph: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
    while let Some(module) = open.pop() {
        open.extend(graph[&module].iter().filter(|to| seen.insert((*to).clone())).cloned());
    }
    seen
}

/// Sets of files that all reach each other, each as one line.
fn circles(graph: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<String> {
    let reach: BTreeMap<&Module, BTreeSet<Module>> =
        graph.keys().map(|module| (module, reached(module, graph))).collect();
    let with_circle = graph.keys().filter(|module| reach[module].contains(*module));
    with_circle
        .map(|module| {
            let all = reach[module].iter().filter(|other| reach[other].contains(module));
            all.map(|module| module.join("::")).collect::<Vec<_>>().join(" ")
        })
        .collect()
}

/// A line for each circle: the directory of a crate, and the modules of the circle.
fn found() -> BTreeSet<String> {
    let files = tree::text_files();
    let mut found = BTreeSet::new();
    for member in metadata::members() {
        let source = format!("{}/src/", member.directory);
        let of = |file: &SourceFile| Some((module(file.path.strip_prefix(&source)?)?, program(&file.text)));
        let sources: Vec<(Module, String)> = files.iter().filter_map(of).collect();
        found.extend(circles(&imports(&sources)).into_iter().map(|circle| format!("{}: {circle}", member.directory)));
    }
    found
}

#[test]
fn no_file_imports_itself_by_others() {
    tree::none(&found().into_iter().collect::<Vec<_>>());
}

#[test]
fn circles_are_found() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; use crate::a::X;"),
        ("a.rs", "mod deep; use crate::{b::{self as other, Y}, c};"),
        ("a/deep.rs", "fn f() -> super::super::b::Y { }"),
        ("b.rs", "// use crate::a;\nfn f() { crate::a::deep::g() }"),
        ("c.rs", "use crate::Root;\n#[cfg(test)]\nmod tests { use crate::a; }"),
    ];
    let sources = files.map(|(path, text)| (module(path).expect("no test"), program(text)));
    assert_eq!(circles(&imports(&sources)), BTreeSet::from(["a::deep b".to_owned()]));
}

#[test]
fn circles_by_names_that_are_shown_again_are_found() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; pub use a::{X, deep::Y};\npub(crate) use c::Z;"),
        ("a.rs", "mod deep; mod low; use crate::Z; pub struct X; pub(super) use low::W;"),
        ("a/deep.rs", "pub struct Y;"),
        ("a/low.rs", "fn f(_: crate::d::U) {}"),
        ("b.rs", "fn f(_: crate::X) {}"),
        ("c.rs", "use crate::{X, Y};"),
        ("d.rs", "use crate::a::{self, W};"),
    ];
    let sources = files.map(|(path, text)| (module(path).expect("no test"), program(text)));
    assert_eq!(circles(&imports(&sources)), BTreeSet::from(["a c".to_owned(), "a::low d".to_owned()]));
}
