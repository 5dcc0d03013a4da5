//! The crate graph: a crate uses crates with lower numbers only; same-numbered crates do not know each other.

use crate::metadata::{self, Member};
use crate::tree;
use std::fs;

/// The floors, from the ground up: the folders of `crates/`. A crate uses crates of its own floor and of those below.
const FLOORS: [&str; 6] = ["ground", "keyspace", "storage", "commands", "server", "tools"];

/// The layer of every crate, by its directory on its floor. A new crate gets its line here before anything uses it.
const LAYERS: [(&str, u8); 44] = [
    ("base", 0),
    ("calendar", 1),
    ("vfs", 1),
    ("proto", 1),
    // The program's allocator; names nothing of ours.
    ("heap", 1),
    // Certificates and suites; names nothing of ours.
    ("tls", 1),
    // What the kernel takes from the process; names nothing of ours.
    ("sandbox", 1),
    // Sessions with ZooKeeper; names nothing of ours.
    ("zookeeper", 1),
    ("value", 1),
    // Its dictionaries are files.
    ("codec", 2),
    ("engine", 2),
    ("plex", 2),
    ("push", 2),
    ("config", 2),
    // Shows what a server says of itself; reads replies.
    ("web", 2),
    ("engine-mem", 3),
    // Values that memory has no room for; the memory engine knows only the trait.
    ("tier", 3),
    // The rows of backed keyspaces over `plex`; above no engine, since the memory engine knows only the trait.
    ("disk", 3),
    ("cmdlog", 3),
    ("rdb", 3),
    ("checkpoint", 4),
    ("types", 4),
    ("store", 5),
    ("command", 6),
    ("durability", 6),
    // Runs the rows of the command table.
    ("script", 7),
    ("replication", 7),
    // A node of an ARCUS cluster; runs no command.
    ("arcus", 7),
    ("cluster", 8),
    ("admin", 8),
    // Its statistics come from `admin`.
    ("memcached", 9),
    ("ssdb", 9),
    ("server", 10),
    ("inspect", 11),
    ("loadgen", 11),
    ("top", 12),
    // Says sizes and times as `inspect` does.
    ("migrate", 12),
    ("onggi", 13),
    ("sim", TEST_ONLY),
    // Test crates outside `crates/`.
    ("tests/workspace", TEST_ONLY),
    // Its grammar draws the requests of other tests.
    ("tests/differential", TEST_ONLY - 1),
    ("tests/in-process", TEST_ONLY),
    ("tests/faults", TEST_ONLY),
    ("tests/protocol", TEST_ONLY),
];

/// Above every layer: may use all, and nothing uses it.
const TEST_ONLY: u8 = u8::MAX;

/// Edges that go down and are still wrong, each with the sentence that settles the argument.
const FORBIDDEN: [(&str, &str, &str); 5] = [
    ("types", "proto", "types never names a protocol"),
    ("types", "vfs", "types never names a file"),
    ("store", "proto", "wire text appears only in command"),
    ("replication", "engine-mem", "the store stands between replication and any one engine"),
    ("loadgen", "store", "the load generator talks to servers only over sockets"),
];

/// Features that hold test support, by package: what a program is built of enables none of them.
const TEST_SUPPORT: [(&str, &str); 3] = [("onggi-engine", "testing"), ("onggi-value", "testing"), ("onggi-vfs", "sim")];

/// Crates from outside that a layer must never see, since they would let it open sockets or start tasks.
const NO_SOCKETS: [&str; 4] = ["mio", "tokio", "socket2", "polling"];

/// Layers that handle bytes and values only.
const SOCKETLESS: [&str; 6] = ["proto", "types", "engine", "engine-mem", "store", "value"];

/// Crates in which every line is safe code.
const FORBID_UNSAFE: [&str; 13] = [
    "proto",
    "types",
    "rdb",
    "command",
    "replication",
    "cluster",
    "admin",
    "memcached",
    "ssdb",
    "config",
    "tls",
    "zookeeper",
    "arcus",
];

/// The place of a crate's floor among all; `None` of a crate of tests.
fn floor(directory: &str) -> Option<usize> {
    let (floor, _) = directory.strip_prefix("crates/")?.split_once('/')?;
    FLOORS.iter().position(|name| *name == floor)
}

/// The name of a crate's directory on its floor; the whole path of a crate of tests.
fn short_name(directory: &str) -> &str {
    directory.strip_prefix("crates/").and_then(|rest| rest.split_once('/')).map_or(directory, |(_, name)| name)
}

/// The directories of crates of these names, those that there are.
fn directories(names: &[&str]) -> Vec<String> {
    let members = metadata::members();
    let of_these = members.into_iter().filter(|member| names.contains(&short_name(&member.directory)));
    of_these.map(|member| member.directory).collect()
}

fn layer(directory: &str) -> Option<u8> {
    LAYERS.iter().find(|(name, _)| *name == short_name(directory)).map(|(_, layer)| *layer)
}

/// Every edge between two members, as (user, used).
fn edges(members: &[Member]) -> Vec<(&Member, &Member)> {
    let find = |name: &str| members.iter().find(|m| m.name == name);
    members
        .iter()
        .flat_map(|user| {
            user.dependencies.iter().filter(|d| d.inside).filter_map(move |d| Some((user, find(&d.name)?)))
        })
        // A crate of tests may use its own crate, with more features.
        .filter(|(user, used)| user.name != used.name)
        .collect()
}

#[test]
fn every_crate_has_a_layer() {
    let missing: Vec<String> = metadata::members()
        .iter()
        .filter(|m| layer(&m.directory).is_none())
        .map(|m| format!("{} has no layer: give it a line in LAYERS and in ARCHITECTURE.md", m.directory))
        .collect();
    tree::none(&missing);
}

#[test]
fn every_crate_stands_on_a_floor() {
    let members = metadata::members();
    let missing: Vec<String> = members
        .iter()
        .filter(|m| m.directory.starts_with("crates/") && floor(&m.directory).is_none())
        .map(|m| format!("{} is on no floor: {}", m.directory, FLOORS.join(", ")))
        .collect();
    tree::none(&missing);
}

#[test]
fn no_floor_uses_one_above() {
    let members = metadata::members();
    let mut wrong = Vec::new();
    for (user, used) in edges(&members) {
        let (Some(from), Some(to)) = (floor(&user.directory), floor(&used.directory)) else { continue };
        if to > from {
            wrong.push(format!("{} uses {}, on a floor above it", user.directory, used.directory));
        }
    }
    tree::none(&wrong);
}

#[test]
fn edges_go_down() {
    let members = metadata::members();
    let mut wrong = Vec::new();
    for (user, used) in edges(&members) {
        let (Some(from), Some(to)) = (layer(&user.directory), layer(&used.directory)) else { continue };
        if to >= from {
            let (user, used) = (short_name(&user.directory), short_name(&used.directory));
            wrong.push(format!("{user} (layer {from}) uses {used} (layer {to}): a crate uses lower layers only"));
        }
    }
    tree::none(&wrong);
}

#[test]
fn forbidden_edges_are_absent() {
    let members = metadata::members();
    let mut wrong = Vec::new();
    for (user, used) in edges(&members) {
        let pair = (short_name(&user.directory), short_name(&used.directory));
        for (from, to, why) in FORBIDDEN {
            if pair == (from, to) {
                wrong.push(format!("{from} uses {to}: {why}"));
            }
        }
    }
    for member in members.iter().filter(|m| SOCKETLESS.contains(&short_name(&m.directory))) {
        for used in member.dependencies.iter().filter(|d| NO_SOCKETS.contains(&d.name.as_str())) {
            wrong.push(format!("{} uses {}: this layer never opens a socket", member.directory, used.name));
        }
    }
    tree::none(&wrong);
}

#[test]
fn no_program_is_built_with_test_support() {
    let members = metadata::members();
    let mut wrong = Vec::new();
    for (package, feature) in TEST_SUPPORT {
        let of = members.iter().find(|member| member.name == package).expect("a crate of this workspace");
        assert!(of.features.iter().any(|(name, _)| name == feature), "{package} has no feature {feature}");
        let tests = members.iter().flat_map(|user| &user.dependencies).filter(|used| used.is_dev);
        let is_asked = |used: &metadata::Dependency| used.name == package && used.features.iter().any(|f| f == feature);
        assert!(tests.into_iter().any(is_asked), "no test asks for {feature} of {package}");
        for user in &members {
            if user.dependencies.iter().any(|used| !used.is_dev && is_asked(used)) {
                wrong.push(format!("{} enables {feature} of {package}: only dev-dependencies may", user.name));
            }
            // Of the crate itself by name, of others as in `vfs/sim`.
            let ends = format!("/{feature}");
            let enabling = |enabled: &String| enabled.ends_with(&ends) || (user.name == package && enabled == feature);
            // Support of one crate may need that of another.
            let is_support = |name: &str| TEST_SUPPORT.contains(&(&user.name, name));
            for (name, _) in
                user.features.iter().filter(|(name, enables)| !is_support(name) && enables.iter().any(enabling))
            {
                wrong.push(format!("feature {name} of {} enables {feature} of {package}", user.name));
            }
        }
    }
    tree::none(&wrong);
}

#[test]
fn socketless_layers_do_not_name_the_network() {
    let prefixes: Vec<String> = directories(&SOCKETLESS).iter().map(|crate_| format!("{crate_}/src/")).collect();
    assert_eq!(prefixes.len(), SOCKETLESS.len());
    let mut wrong = Vec::new();
    for file in tree::text_files().iter().filter(|f| prefixes.iter().any(|p| f.path.starts_with(p))) {
        for (number, line) in file.lines().filter(|(_, line)| {
            !line.trim_start().starts_with("//") && (line.contains("std::net") || line.contains("os::unix::net"))
        }) {
            wrong.push(format!("{}:{number}: {}", file.path, line.trim()));
        }
    }
    tree::none(&wrong);
}

#[test]
fn safe_layers_forbid_unsafe_code() {
    let mut wrong = Vec::new();
    for directory in directories(&FORBID_UNSAFE) {
        let path = format!("{directory}/src/lib.rs");
        if let Ok(text) = fs::read_to_string(tree::root().join(&path))
            && !text.contains("#![forbid(unsafe_code)]")
        {
            wrong.push(format!("{path}: #![forbid(unsafe_code)] is missing"));
        }
    }
    tree::none(&wrong);
}

#[test]
fn dependencies_inside_the_workspace_are_found() {
    // Guards the tests above: were no edges found, they could not fail.
    let members = metadata::members();
    let is = |member: &Member, name: &str| short_name(&member.directory) == name;
    let found = edges(&members).iter().any(|(user, used)| is(user, "engine") && is(used, "base"));
    assert!(found, "the edge engine -> base was not seen");
}
