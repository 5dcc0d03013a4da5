//! What `cargo metadata` says of the workspace, reduced to what the tests here ask.

use crate::tree;
use serde_json::Value;
use std::process::Command;

/// A package of the workspace.
pub struct Member {
    /// Package name, as in `onggi-base`.
    pub name: String,
    /// Directory from the root, as in `crates/ground/base`.
    pub directory: String,
    /// Direct dependencies of all kinds.
    pub dependencies: Vec<Dependency>,
    /// Source files that the compiler starts from (`lib.rs`, `main.rs`, integration tests, benches), from the root.
    pub roots: Vec<String>,
    /// `[package.metadata]`.
    pub metadata: Value,
    /// `[features]`: what each enables.
    pub features: Vec<(String, Vec<String>)>,
}

/// A direct dependency.
pub struct Dependency {
    /// Package name.
    pub name: String,
    /// Whether it lies in this workspace.
    pub inside: bool,
    /// Whether only tests, examples and benches use it.
    pub is_dev: bool,
    /// Features of it that this dependency enables.
    pub features: Vec<String>,
}

/// The packages of the workspace, sorted by name.
pub fn members() -> Vec<Member> {
    let all = run(&["--no-deps"]);
    let root = format!("{}/", tree::root().display());
    let mut members: Vec<Member> = array(&all["packages"]).iter().map(|package| member(package, &root)).collect();
    members.sort_by(|a, b| a.name.cmp(&b.name));
    members
}

fn member(package: &Value, root: &str) -> Member {
    let from_root = |path: &Value| text(path).trim_start_matches(root).to_string();
    let dependencies = array(&package["dependencies"])
        .iter()
        .map(|d| Dependency {
            name: text(&d["name"]).to_string(),
            inside: d.get("path").is_some(),
            is_dev: d["kind"].as_str() == Some("dev"),
            features: texts(&d["features"]),
        })
        .collect();
    Member {
        name: text(&package["name"]).to_string(),
        directory: from_root(&package["manifest_path"]).trim_end_matches("/Cargo.toml").to_string(),
        dependencies,
        roots: array(&package["targets"]).iter().map(|target| from_root(&target["src_path"])).collect(),
        metadata: package["metadata"].clone(),
        features: object(&package["features"]).map(|(name, enables)| (name.clone(), texts(enables))).collect(),
    }
}

/// Names of all packages that a build of `package` for this machine compiles, without those only its tests need.
pub fn tree_of(package: &str) -> Vec<String> {
    let all = run(&["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let nodes = array(&all["resolve"]["nodes"]);
    let node = |id: &str| nodes.iter().find(|n| text(&n["id"]) == id).expect("every edge ends at a node");
    let is_package = |p: &&Value| text(&p["name"]) == package;
    let start = array(&all["packages"]).iter().find(is_package).unwrap_or_else(|| panic!("no package {package}"));
    let mut seen = vec![text(&start["id"]).to_string()];
    let mut next = 0;
    while next < seen.len() {
        for edge in array(&node(&seen[next])["deps"]) {
            let compiled = array(&edge["dep_kinds"]).iter().any(|kind| kind["kind"].as_str() != Some("dev"));
            let id = text(&edge["pkg"]).to_string();
            if compiled && !seen.contains(&id) {
                seen.push(id);
            }
        }
        next += 1;
    }
    seen.sort();
    seen
}

/// A package from outside, as its own manifest describes it.
pub struct Outside {
    /// Name and version.
    pub name: String,
    /// The licence as an SPDX expression; empty when none is given.
    pub licence: String,
    /// Where it comes from.
    pub source: String,
}

/// Every package from outside that the lock file names and that a build on Linux may compile, tests included.
pub fn outside() -> Vec<Outside> {
    let all = run(&["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let used: Vec<&str> = array(&all["resolve"]["nodes"]).iter().map(|node| text(&node["id"])).collect();
    let is_outside = |p: &&Value| !p["source"].is_null() && used.contains(&text(&p["id"]));
    array(&all["packages"])
        .iter()
        .filter(is_outside)
        .map(|p| Outside {
            name: format!("{} {}", text(&p["name"]), text(&p["version"])),
            licence: p["license"].as_str().unwrap_or("").to_string(),
            source: text(&p["source"]).to_string(),
        })
        .collect()
}

fn run(extra: &[&str]) -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(extra)
        .current_dir(tree::root())
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string in cargo's metadata")
}

fn array(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list in cargo's metadata")
}

fn texts(value: &Value) -> Vec<String> {
    array(value).iter().map(|text_| text(text_).to_string()).collect()
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().expect("a table in cargo's metadata").iter()
}
