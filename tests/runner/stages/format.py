"""Formatting: the tree is what rustfmt makes of it, and generated files are what their programs make of them."""

import sys

import need
from job import ROOT, Job, Stage


def run(job: Job):
    need.cargo_component("rustfmt", "fmt")
    job.command(["cargo", "fmt", "--all", "--check"], name="cargo fmt --check")
    for manifest in ("fuzz/Cargo.toml", "bench/papers/Cargo.toml", "tests/clients/redis-rs/Cargo.toml"):
        if (ROOT / manifest).exists():
            job.command(
                ["cargo", "fmt", "--manifest-path", ROOT / manifest, "--check"], name=f"cargo fmt of {manifest}"
            )
    job.command([sys.executable, ROOT / "bench" / "picture.py", "--check"], name="docs/performance.svg")


STAGE = Stage("format", "rustfmt has nothing to change, generated files are up to date", run)
