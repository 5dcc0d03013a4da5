//! Crates from outside: each one the workspace names has its reason in `docs/dependencies.md`, and the tree that the
//! server is built from stays small.

use crate::{metadata, tree};
use std::collections::BTreeSet;
use std::fs;

/// Most packages a build of the program may compile, our own included. Every one of them is code that runs as us. Of
/// them, 51 draw `onggi top`, on all systems together.
const SERVER_TREE_MAX: usize = 239;

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

/// The licences that `deny.toml` accepts.
fn accepted_licences() -> Vec<String> {
    let rules = fs::read_to_string(tree::root().join("deny.toml")).expect("deny.toml is there");
    let line = rules.lines().find_map(|line| line.strip_prefix("allow = [")).expect("deny.toml lists licences");
    line.split('"').skip(1).step_by(2).map(str::to_string).collect()
}

/// Whether an SPDX expression can be met with the accepted licences: every part joined by AND, by one of its OR parts.
fn is_accepted(expression: &str, accepted: &[String]) -> bool {
    let plain = |text: &str| text.trim().trim_matches(['(', ')']).to_string();
    !expression.is_empty()
        && expression
            .replace('/', " OR ")
            .split(" AND ")
            .all(|part| part.split(" OR ").any(|one| accepted.contains(&plain(one))))
}

#[test]
fn licences_and_sources_are_accepted() {
    let accepted = accepted_licences();
    let mut wrong = Vec::new();
    for package in metadata::outside() {
        if !is_accepted(&package.licence, &accepted) {
            wrong.push(format!("{}: licence {:?} is not accepted in deny.toml", package.name, package.licence));
        }
        if !package.source.starts_with("registry+https://github.com/rust-lang/crates.io-index") {
            wrong.push(format!("{}: comes from {}", package.name, package.source));
        }
    }
    tree::none(&wrong);
}

#[test]
fn licence_expressions_are_read() {
    let accepted = ["MIT", "Unicode-3.0"].map(str::to_string);
    for good in ["MIT", "MIT OR GPL-3.0-only", "(GPL-2.0-only OR MIT) AND Unicode-3.0", "GPL-2.0/MIT"] {
        assert!(is_accepted(good, &accepted), "{good}");
    }
    for bad in ["", "GPL-3.0-only", "MIT AND GPL-3.0-only"] {
        assert!(!is_accepted(bad, &accepted), "{bad}");
    }
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
