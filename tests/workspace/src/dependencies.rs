//! Crates from outside: each one the workspace names has its reason in `docs/dependencies.md`, and the tree that the
//! server is built from stays small.

use crate::{metadata, tree};
use std::collections::BTreeSet;
use std::fs;

/// Most packages a build of the server may compile, our own included. Every one of them is code that runs as us.
const SERVER_TREE_MAX: usize = 120;

/// The page that gives the reasons, from the root.
const PAGE: &str = "docs/dependencies.md";

/// Names in the first column of the page's table: rows read "| `name` | used by | reason |".
fn listed() -> BTreeSet<String> {
    let page = fs::read_to_string(tree::root().join(PAGE)).expect("the page of dependencies is there");
    let cell = |line: &str| line.strip_prefix("| `")?.split('`').next().map(str::to_string);
    page.lines().filter_map(cell).collect()
}

#[test]
fn every_direct_dependency_has_its_reason() {
    let direct: BTreeSet<String> = metadata::members()
        .iter()
        .flat_map(|m| m.dependencies.iter().filter(|d| !d.inside).map(|d| d.name.clone()))
        .collect();
    let listed = listed();
    let mut wrong: Vec<String> =
        direct.difference(&listed).map(|name| format!("{name} is used and has no row in {PAGE}")).collect();
    wrong.extend(listed.difference(&direct).map(|name| format!("{name} has a row in {PAGE} and no user")));
    tree::none(&wrong);
}

#[test]
fn rows_say_why() {
    let page = fs::read_to_string(tree::root().join(PAGE)).expect("the page of dependencies is there");
    let short: Vec<String> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .filter(|line| line.split('|').nth(3).is_none_or(|reason| reason.split_whitespace().count() < 4))
        .map(|line| format!("{PAGE}: no reason given in: {line}"))
        .collect();
    tree::none(&short);
}

#[test]
fn the_server_is_built_from_few_packages() {
    let server = "onggi";
    if !metadata::members().iter().any(|m| m.name == server) {
        return;
    }
    let packages = metadata::tree_of(server);
    println!("{} packages in the tree of {server}", packages.len());
    assert!(
        packages.len() <= SERVER_TREE_MAX,
        "{} packages, at most {SERVER_TREE_MAX}:\n{}",
        packages.len(),
        packages.join("\n")
    );
}
