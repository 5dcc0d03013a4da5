"""Miri: the tests of crates with unsafe code, run by an interpreter that sees undefined behaviour.

A crate asks for it with `[package.metadata.checks] miri = [ARGUMENTS OF cargo miri test]`, and for more than the usual
with `miri-flags = [FLAGS OF miri]`; that every crate with unsafe code asks is checked in tests/workspace. The long form
repeats the tests under many schedules of threads.
"""

import need
import workspace
from job import TARGET, Job, Stage

SECONDS_MAX = 1200
SCHEDULES = 64


def miri(job, package, arguments, seed):
    """The crate's tests under one schedule."""
    need.nightly("miri", "rust-src")
    own = dict(workspace.checks("miri-flags")).get(package, [])
    flags = " ".join(["-Zmiri-disable-isolation", "-Zmiri-strict-provenance", f"-Zmiri-seed={seed}", *own])
    job.command(
        ["cargo", "+nightly", "miri", "test", "--locked", "-p", package, *arguments],
        name=f"{package} seed {seed}",
        env={"MIRIFLAGS": flags, "CARGO_TARGET_DIR": str(TARGET / "miri")},
        timeout=SECONDS_MAX,
        counts=True,
    )


def run(job: Job):
    for package, arguments in workspace.checks("miri"):
        miri(job, package, arguments, seed=0)


def pieces(_job):
    return [(f"{package} seed {seed}", lambda job, p=package, a=arguments, s=seed: miri(job, p, a, s))
            for seed in range(1, SCHEDULES + 1) for package, arguments in workspace.checks("miri")]


STAGE = Stage("miri", "unsafe code under Miri", run, pieces, present=lambda: bool(workspace.checks("miri")))
