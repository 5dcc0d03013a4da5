"""Every test of the workspace, under the test profile (optimised a little, with assertions and overflow checks)."""

from job import Job, Stage


def run(job: Job):
    job.command(["cargo", "test", "--locked", "--workspace", "--no-fail-fast"], name="cargo test", counts=True)


STAGE = Stage("unit", "the tests of every crate", run)
