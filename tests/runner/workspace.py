"""What the stages ask of the Cargo workspace."""

import json
import subprocess
from pathlib import Path

from job import ROOT, Failed

# The features of tests and lints: those that the program can have, and has not unless it is asked for them.
FEATURES = ["--features", "onggi/otlp"]
# What the stage `unit` runs: everything but the comparison with other servers, which has a stage of its own.
TESTED = ["--locked", "--workspace", "--exclude", "onggi-differential", *FEATURES]


def test_programs(job, *crates, target=None):
    """The test programs of these crates, as the stage `unit` builds them, each with its crate's directory; of one file
    of `tests/` alone, if it is named.

    `cargo test -p` would build most of the workspace again: a part of it asks for other features of what it shares."""
    messages = job.build(
        ["cargo", "test", "--locked", "--workspace", *FEATURES, "--no-run",
         "--message-format=json-render-diagnostics", "--quiet"],
        says=False,
    )
    found = []
    for message in map(json.loads, (line for line in messages.splitlines() if line.startswith("{"))):
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            home = Path(message["manifest_path"]).parent
            of = message["target"]
            if home.name in crates and (target is None or of["name"] == target and "test" in of["kind"]):
                found.append((message["executable"], home))
    missing = set(crates) - {home.name for _, home in found}
    if missing:
        raise Failed(f"no test programs of {', '.join(sorted(missing))}")
    return found


def checks(kind):
    """(package, arguments) of every crate that asks for a kind of dynamic check in `[package.metadata.checks]`."""
    done = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"],
        cwd=ROOT, capture_output=True, text=True,
    )
    if done.returncode != 0:
        raise Failed(f"cargo metadata: {done.stderr.strip()}")
    packages = json.loads(done.stdout)["packages"]
    asked = [(p["name"], ((p["metadata"] or {}).get("checks") or {}).get(kind)) for p in packages]
    return [(name, arguments) for name, arguments in asked if arguments is not None]
