//! The hook `tests/hooks/commit-msg` refuses the messages that CONTRIBUTING.md rules out, and no other.

use crate::tree;
use std::io::Write;
use std::process::{Command, Stdio};

/// Why the hook refuses the message; empty when it does not.
fn refusal(message: &str) -> String {
    let hook = tree::root().join("tests/hooks/commit-msg");
    let mut hook = Command::new(hook);
    let hook = hook.arg("/dev/stdin").stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut running = hook.spawn().expect("the hook can be executed");
    running.stdin.take().expect("a pipe").write_all(message.as_bytes()).expect("it reads the message");
    let output = running.wait_with_output().expect("the hook ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.success(), said.is_empty(), "{message}: {said}");
    said
}

#[test]
fn messages_of_commits_have_their_form() {
    let long = format!("area: {}", "x".repeat(66));
    for good in [
        "cmdlog: advance durable LSN on every sync\n",
        "bench/lsm, docs: compare engines\n\nWhat was. Why.\n# a comment of git\n",
        "fixup! docs: name it\n",
        "Revert \"docs: name it\"\n",
        &long,
    ] {
        assert_eq!(refusal(good), "", "{good}");
    }
    let longer = format!("{long}x");
    for (bad, why) in [
        ("wip\n", "unfinished"),
        ("durability: wip\n", "unfinished"),
        ("Merge branch 'main' into lead\n", "merge"),
        ("Fix things\n", "no area"),
        ("docs: name it.\n", "stop"),
        ("docs: name it\nand more\n", "second line"),
        ("", "no area"),
        (&longer, "73 characters"),
    ] {
        assert!(refusal(bad).contains(why), "{bad}: {}", refusal(bad));
    }
}
