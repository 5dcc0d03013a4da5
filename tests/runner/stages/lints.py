"""Lints and documentation, with every warning an error."""

from job import Job, Stage


def run(job: Job):
    job.command(["cargo", "clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"], name="clippy")
    job.command(["cargo", "doc", "--locked", "--workspace", "--no-deps", "--document-private-items"], name="cargo doc",
                env={"RUSTDOCFLAGS": "-D warnings"})


STAGE = Stage("lints", "clippy and rustdoc find nothing", run)
