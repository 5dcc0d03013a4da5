"""What the stages ask of the Cargo workspace."""

import json
import subprocess

from job import ROOT, Failed


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
