"""Lints and documentation, with every warning an error."""

import need
from job import Job, Stage


def run(job: Job):
    need.cargo_component("clippy", "clippy")
    job.command(["cargo", "clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"], name="clippy")
    job.command(["cargo", "doc", "--locked", "--workspace", "--no-deps", "--document-private-items"], name="cargo doc",
                env={"RUSTDOCFLAGS": "-D warnings"})


STAGE = Stage("lints", "clippy and rustdoc find nothing", run)
