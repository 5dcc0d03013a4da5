"""Formatting: the tree is what rustfmt makes of it."""

from job import Job, Stage


def run(job: Job):
    job.command(["cargo", "fmt", "--all", "--check"], name="cargo fmt --check")


STAGE = Stage("format", "rustfmt has nothing to change", run)
