"""Disk faults: a disk that is full, whose syncs fail, that is slow, or that stands still; see tests/faults/. Needs root
and a loop device."""

import faults
import need
from job import Job, Skip, Stage

# The disk has room for small segments and one checkpoint, and for no history: others need two thirds of it.
SMALL = ("log-segment-size=1mb", "checkpoint-retain-sets=1", "checkpoint-retain-time=0")

# Which syncs of each thread fail: some of the start, then of the log.
SYNCS = (3, 8, 30, 150)


def full(job, mode, rounds):
    """The disk becomes full so often."""
    faults.can_mount()
    return faults.run(job, "disk-full", "--rounds", rounds, mode=mode, options=SMALL)


def sync_error(job, numbers):
    """Of every thread, the syncs of these numbers fail; then a disk whose own storage is full."""
    faults.can_mount()
    faults.can_trace()
    return faults.run(job, "sync-error", "--numbers", ",".join(map(str, numbers)), options=("log-segment-size=4mb",))


def slow(job, mode, seconds):
    """A megabyte a second, for this many seconds."""
    faults.can_mount()
    return faults.run(job, "slow-disk", "--seconds", seconds, mode=mode)


def frozen(job, mode, seconds):
    """Nothing at all, for this many seconds."""
    faults.can_mount()
    need.program("fsfreeze", "util-linux")
    return faults.run(job, "frozen-disk", "--seconds", seconds, mode=mode)


def run(job: Job):
    for name, fault in (
        ("full disk, sync", lambda: full(job, "sync", 2)),
        ("full disk, async", lambda: full(job, "async", 3)),
        ("sync error", lambda: sync_error(job, SYNCS)),
        ("slow disk", lambda: slow(job, "sync", 20)),
        ("frozen disk, sync", lambda: frozen(job, "sync", 3)),
        ("frozen disk, async", lambda: frozen(job, "async", 3)),
    ):
        try:
            fault()
        except Skip as reason:
            job.skip_check(name, str(reason))


def pieces(_job):
    def piece(fault):
        return lambda job: faults.record(job, "disk-faults", fault(job))

    return [
        *(
            (f"full disk, {mode}, {number}", piece(lambda job, mode=mode: full(job, mode, 25)))
            for mode in ("sync", "async")
            for number in range(1, 5)
        ),
        *(
            (f"sync errors from {first}", piece(lambda job, first=first: sync_error(job, range(first, first + 50))))
            for first in range(1, 1000, 50)
        ),
        *((f"slow disk, {mode}", piece(lambda job, mode=mode: slow(job, mode, 600))) for mode in ("sync", "async")),
        *((f"frozen disk, {mode}", piece(lambda job, mode=mode: frozen(job, mode, 30))) for mode in ("sync", "async")),
    ]


STAGE = Stage(
    "disk-faults",
    "disks that are full, fail, are slow or stand still: clear errors, no false promise, and back by itself", run,
    pieces,
)
