"""Shuttle: tests of locks and mailboxes under random schedules, for crates that ask with
`[package.metadata.checks] shuttle = [...]`. The tests read SHUTTLE_SCHEDULES, how many schedules
to try, and draw them from ONGGI_TEST_SEED.

`--cfg shuttle` gives these crates other atomics, so their build is kept apart from everybody else's.
"""

import workspace
from job import TARGET, Job, Stage

IN_TEST = 100_000
IN_A_PIECE = 1_000_000
SECONDS_MAX = 1800


def shuttle(job, package, arguments, schedules):
    """The crate's tests under this many schedules."""
    job.command(
        ["cargo", "test", "--locked", "-p", package, *arguments],
        name=package, timeout=SECONDS_MAX, counts=True,
        env={
            "SHUTTLE_SCHEDULES": str(schedules),
            "RUSTFLAGS": "--cfg shuttle",
            "CARGO_TARGET_DIR": str(TARGET / "shuttle"),
            "CARGO_INCREMENTAL": "0",  # it would keep gigabytes for builds that are rare
        },
    )


def run(job: Job):
    for package, arguments in workspace.checks("shuttle"):
        shuttle(job, package, arguments, IN_TEST)


def pieces(_job):
    return [(f"{package}, million {million}", lambda job, p=package, a=arguments: shuttle(job, p, a, IN_A_PIECE))
            for million in range(1, 11) for package, arguments in workspace.checks("shuttle")]


STAGE = Stage("shuttle", "locks and mailboxes under random schedules", run, pieces,
              present=lambda: bool(workspace.checks("shuttle")))
