"""Power cut: a file system of our own forgets what was not synced, under load; see tests/faults/. Needs root and a loop
device."""

import faults
from job import Job, Skip, Stage

# Per mode: cuts of `make test`, longest load before a cut in milliseconds, cuts of a piece.
MODES = {"sync": (20, 500, 100), "async": (20, 2000, 100)}
PIECES = 3
FORMATS = ("ext4", "xfs")


def cut(job, mode, file_system, cuts, load_ms):
    """So many cuts in a mode on a file system; the figures."""
    faults.can_mount()
    if file_system == "xfs":
        faults.can_xfs()
    return faults.run(job, "power-cut", "--format", file_system, "--cycles", cuts, "--load-ms", load_ms, mode=mode)


def run(job: Job):
    for file_system in FORMATS:
        for mode, (cuts, load_ms, _) in MODES.items():
            try:
                cut(job, mode, file_system, cuts, load_ms)
            except Skip as reason:
                job.skip_check(f"{mode} on {file_system}", str(reason))


def pieces(_job):
    def piece(mode, file_system, cuts, load_ms):
        return lambda job: faults.record(job, "power-cut", cut(job, mode, file_system, cuts, load_ms))

    return [(f"{mode} on {file_system} {number}", piece(mode, file_system, cuts, load_ms))
            for number in range(1, PIECES + 1) for file_system in FORMATS for mode, (_, load_ms, cuts) in MODES.items()]


STAGE = Stage("power-cut", "power cuts on ext4 and XFS: nothing promised is lost, and the server starts by itself", run, pieces,
              present=lambda: faults.SERVER_KEEPS, measures=True)
