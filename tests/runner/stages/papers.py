"""The experiments of papers: their own tests, and one of them at a small size; see bench/papers and tests/papers."""

import need
from job import ROOT, TARGET, Job, Stage

MANIFEST = ROOT / "bench" / "papers" / "Cargo.toml"
SECONDS_MAX = 600


def run(job: Job):
    shared = {"CARGO_TARGET_DIR": str(TARGET)}
    job.command(["cargo", "clippy", "--locked", "--manifest-path", MANIFEST, "--all-targets", "--", "-D", "warnings"],
                name="clippy of bench/papers", env=shared)
    job.command(["cargo", "test", "--locked", "--manifest-path", MANIFEST], name="tests of bench/papers", env=shared,
                counts=True)
    job.command(["python3", ROOT / "tests" / "papers" / "main.py", need.papers(), need.onggi()], name="a picture",
                timeout=SECONDS_MAX, counts=True)


STAGE = Stage("papers", "the experiments of papers run", run)
