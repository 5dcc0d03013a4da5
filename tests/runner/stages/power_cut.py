"""Power cut: a file system of our own forgets what was not synced, under load; see tests/faults/. Needs root and a loop
device."""

import faults
from job import Job, Skip, Stage

# Per mode: cuts of `make test`, longest load before a cut in milliseconds, cuts of a piece.
MODES = {"sync": (20, 500, 100), "async": (20, 2000, 100)}
# The same with strings that are compressed.
COMPRESSED = {"sync": (8, 1000, 50), "async": (8, 2000, 50)}
PIECES = 3
FORMATS = ("ext4", "xfs")


def cut(job, mode, file_system, cuts, load_ms, is_compressed):
    """This many cuts in a mode on a file system; the figures."""
    faults.can_mount(file_system)
    return faults.run(job, "power-cut", "--format", file_system, "--cycles", cuts, "--load-ms", load_ms, mode=mode,
                      is_compressed=is_compressed)


def runs():
    """Name, mode, file system, figures and whether strings are compressed, of each run."""
    return [
        (f"{mode}{' compressed' if is_compressed else ''} on {file_system}", mode, file_system, figures, is_compressed)
        for file_system in FORMATS
        for is_compressed, modes in ((False, MODES), (True, COMPRESSED))
        for mode, figures in modes.items()
    ]


def run(job: Job):
    for name, mode, file_system, (cuts, load_ms, _), is_compressed in runs():
        try:
            cut(job, mode, file_system, cuts, load_ms, is_compressed)
        except Skip as reason:
            job.skip_check(name, str(reason))


def pieces(_job):
    def piece(mode, file_system, cuts, load_ms, is_compressed):
        return lambda job: faults.record(job, "power-cut", cut(job, mode, file_system, cuts, load_ms, is_compressed))

    return [(f"{name} {number}", piece(mode, file_system, cuts, load_ms, is_compressed))
            for number in range(1, PIECES + 1) for name, mode, file_system, (_, load_ms, cuts), is_compressed in runs()]


STAGE = Stage(
    "power-cut", "power cuts on ext4 and XFS: nothing promised is lost, and the server starts by itself", run, pieces
)
