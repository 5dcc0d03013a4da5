"""Every test of the workspace, under the test profile (optimised a little, with assertions and overflow checks)."""

from job import Job, Stage


# Compared servers are needed for this one: it has a stage of its own.
ELSEWHERE = ["--exclude", "onggi-differential"]


def run(job: Job):
    job.command(
        ["cargo", "test", "--locked", "--workspace", *ELSEWHERE, "--no-fail-fast"], name="cargo test", counts=True
    )


STAGE = Stage("unit", "the tests of every crate", run)
